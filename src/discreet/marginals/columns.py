"""The columns of tables: their levels, and the contrasts that are measured along each of them.

Along a column with a *chain* ``1 = s_0 | s_1 | ... | s_k`` of block sizes, level ``l`` compares the
children of each block of ``s_l`` cells: ``K_b = b I - 1 1'`` applied to the sums of its
``b = s_l / s_(l-1)`` children. The rows of different levels are orthogonal, and together with the
sum of all they span everything. An unordered column with n values has the chain ``1 | n``.

Where no chain ends at the number of values, cells lie evenly on a few more positions, each cell on
one or several; only the first of them holds anything.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.data.schema import Label
from discreet.noise.distribution import Floats, Ints

MOST_ORDERED = 4096
"""The most values of a column whose ranges are asked for."""
_PADDING = 5 / 4
"""So many times as many positions as values are tolerated for a chain of powers of two."""


@dataclass(frozen=True, kw_only=True)
class MarginalColumn:
    """One column of the tables: its name, what its values are called, and its chain."""

    name: str
    labels: tuple[Label, ...]
    chain: tuple[int, ...]
    bins: tuple[tuple[Label, Label], ...] = ()
    """If values are bins of numbers or dates: the first and the last value in each."""
    unit: float = 1.0
    """The step between numbers in a bin; dates have days, times hours."""

    def __post_init__(self) -> None:
        steps = [b % a == 0 and b > a for a, b in zip(self.chain, self.chain[1:], strict=False)]
        fits = self.chain[:1] == (1,) and all(steps) and self.chain[-1] >= len(self.labels)
        if len(self.labels) < 2 or len(self.chain) < 2 or not fits:
            raise InvalidArgument(
                f"column {self.name!r} must have two values or more and a chain that holds them."
            )
        if len(set(map(_key, self.labels))) != len(self.labels):
            raise InvalidArgument(f"column {self.name!r} must have different values.")
        if len(self.bins) not in (0, self.size) or not 0 < self.unit < math.inf:
            raise InvalidArgument(f"column {self.name!r} must have a bin for each value.")

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.labels)

    @property
    def positions(self) -> int:
        """How many positions its values lie on."""
        return self.chain[-1]

    @property
    def levels(self) -> range:
        """The levels that have contrasts, from the finest."""
        return range(1, len(self.chain))

    @property
    def plain(self) -> bool:
        """Whether every value has one position and looks like every other."""
        return self.positions == self.size

    @cached_property
    def starts(self) -> Ints:
        """The first position of each value, and the end."""
        return np.arange(self.size + 1, dtype=np.int64) * self.positions // self.size

    def branching(self, level: int) -> int:
        """How many children a block has; at level 0 (the sum of all) there is one."""
        return self.chain[level] // self.chain[level - 1] if level else 1

    # ── Measuring ────────────────────────────────────────────────────────────────────────────

    def placed(self, table: Ints, axis: int) -> Ints:
        """The counts at their positions along an axis."""
        if self.plain:
            return table
        shape = list(table.shape)
        shape[axis] = self.positions
        made = np.zeros(shape, dtype=table.dtype)
        made[_at(self.starts[:-1], axis)] = table
        return made

    def contrasts(self, table: Ints, axis: int, level: int) -> Ints:
        """The contrasts of a level along an axis of positions: exact integers."""
        s, b = self.chain[level - 1], self.branching(level)
        before, after = table.shape[:axis], table.shape[axis + 1 :]
        children = table.reshape(*before, self.positions // s, s, *after).sum(axis=axis + 1)
        blocks = children.reshape(*before, self.positions // (s * b), b, *after)
        compared = b * blocks - blocks.sum(axis=axis + 1, keepdims=True)
        found: Ints = compared.reshape(children.shape)
        return found

    # ── Estimating ───────────────────────────────────────────────────────────────────────────

    def centered(self, noisy: Floats, axis: int, level: int) -> Floats:
        """Noisy contrasts without what cannot come from counts: the mean of each block's noise."""
        b = self.branching(level)
        before, after = noisy.shape[:axis], noisy.shape[axis + 1 :]
        blocks = noisy.reshape(*before, noisy.shape[axis] // b, b, *after)
        centered = blocks - blocks.mean(axis=axis + 1, keepdims=True)
        found: Floats = centered.reshape(noisy.shape)
        return found

    def spread(self, part: Floats, axis: int, level: int) -> Floats:
        """What is known of blocks, spread evenly over their positions and added up to values."""
        if level == 0:
            widths = np.diff(self.starts) / self.positions
            shape = [1] * part.ndim
            shape[axis] = self.size
            return part * widths.reshape(shape)
        s = self.chain[level - 1]
        cells = np.repeat(part / s, s, axis=axis) if s > 1 else part
        return cells if self.plain else np.add.reduceat(cells, self.starts[:-1], axis=axis)

    # ── Errors ───────────────────────────────────────────────────────────────────────────────

    def energy(self, weights: Floats, level: int) -> float:
        """How much of the normalized variance of a level reaches a weighted sum of the values."""
        if level == 0:
            return float((weights * np.diff(self.starts)).sum() / self.positions) ** 2
        over = np.repeat(weights, np.diff(self.starts))
        fine, coarse = (self._projected(over, k) for k in (level - 1, level))
        return max(fine - coarse, 0.0) / self.chain[level - 1]

    def _projected(self, over: Floats, level: int) -> float:
        s = self.chain[level]
        return float(np.square(over.reshape(-1, s).sum(axis=1)).sum() / s)

    @cached_property
    def cell_energies(self) -> Floats:
        """For each level, and each value (or for all, if they are alike), the energy of a cell."""
        if self.plain:
            fine = 1 / np.array(self.chain, dtype=np.float64)
            found = (fine[:-1] - fine[1:]) / np.array(self.chain[:-1])
            return np.append(fine[-1] ** 2, found)[:, None]
        eye = np.eye(self.size)
        levels = range(len(self.chain))
        return np.array([[self.energy(cell, level) for cell in eye] for level in levels])

    @cached_property
    def mean_cell_energies(self) -> Floats:
        """The mean of the energies over all values."""
        found: Floats = self.cell_energies.mean(axis=1)
        return found

    @cached_property
    def mean_range_energies(self) -> Floats:
        """The mean of the energies over all ranges of values."""
        # Proof: a range takes from a block the difference of a running count at its two ends, so
        #   the sum over all ranges of its square is that over all pairs of ends: (n + 1) times the
        #   sum of squares of the running count, less the square of its sum.
        n = self.size
        pairs = n * (n + 1) / 2
        found = []
        for s in self.chain:
            total = 0.0
            for first in range(0, self.positions, s):
                run = np.clip(self.starts - first, 0, s).astype(np.float64)
                total += (n + 1) * float((run * run).sum()) - float(run.sum()) ** 2
            found.append(total / pairs / s)
        top = found[-1] / self.positions
        levels = [
            max(found[level - 1] - found[level], 0.0) / self.chain[level - 1]
            for level in self.levels
        ]
        return np.array([top, *levels])

    # ── Labels ───────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {_key(label): place for place, label in enumerate(self.labels)}

    def place(self, label: object) -> int:
        """The position of a value among all."""
        try:
            return self._places[_key(label)]
        except (KeyError, TypeError):
            some = ", ".join(map(repr, self.labels[:5]))
            more = ", ..." if self.size > 5 else ""
            raise InvalidArgument(
                f"{label!r} is not a value of column {self.name!r}; it has {some}{more}."
            ) from None

    def weights(self, wanted: object) -> Floats:
        """One for the values that are wanted: a value, a pair (first, last), or a list."""
        found = np.zeros(self.size)
        if isinstance(wanted, tuple):
            if len(wanted) != 2:
                raise InvalidArgument(
                    f"a range of {self.name!r} must be a pair (first, last); for some values give "
                    "a list."
                )
            first = 0 if wanted[0] is None else self.place(wanted[0])
            last = self.size - 1 if wanted[1] is None else self.place(wanted[1])
            if first > last:
                raise InvalidArgument(f"a range of {self.name!r} must not end before it starts.")
            found[first : last + 1] = 1
        elif isinstance(wanted, list | set | frozenset):
            found[[self.place(one) for one in wanted]] = 1
        else:
            found[self.place(wanted)] = 1
        return found

    # ── Rows ─────────────────────────────────────────────────────────────────────────────────

    def decoded(
        self, codes: Ints, values: Literal["uniform", "middle", "label"], rng: np.random.Generator
    ) -> list[Label]:
        """A value for each position: its label, or one within its bin."""
        if values == "label" or not self.bins:
            return [self.labels[code] for code in codes.tolist()]
        first = self.bins[0][0]
        unit: Any = self.unit
        if isinstance(first, dt.date):
            unit = dt.timedelta(hours=1) if isinstance(first, dt.datetime) else dt.timedelta(days=1)
        elif self.unit.is_integer():
            unit = int(self.unit)
        bins: tuple[tuple[Any, Any], ...] = self.bins
        begins = [begin for begin, _ in bins]
        steps = np.array([round((end - begin) / unit) for begin, end in bins])
        middle = (steps // 2)[codes]
        taken = middle if values == "middle" else rng.integers(0, steps[codes] + 1)
        pairs = zip(codes.tolist(), taken.tolist(), strict=True)
        return [begins[code] + step * unit for code, step in pairs]

    def content(self) -> dict[str, Any]:
        """As JSON."""
        found: dict[str, Any] = {
            "name": self.name,
            "kind": _kind(self.labels[0]),
            "labels": [_plain_text(label) for label in self.labels],
            "chain": list(self.chain),
        }
        if self.bins:
            found["bin_kind"] = _kind(self.bins[0][0])
            found["bins"] = [[_plain_text(end) for end in ends] for ends in self.bins]
            found["unit"] = self.unit
        return found


def read_column(content: dict[str, Any]) -> MarginalColumn:
    """The inverse of `content`."""
    read, read_end = (_READERS[content.get(one, "plain")] for one in ("kind", "bin_kind"))
    bins = [(read_end(first), read_end(last)) for first, last in content.get("bins", [])]
    for first, last in bins:
        if any(isinstance(one, str | bool) for one in (first, last)) or last < first:
            raise InvalidArgument("text has a bin that is none.")
    return MarginalColumn(
        name=str(content["name"]),
        labels=tuple(read(label) for label in content["labels"]),
        chain=tuple(int(s) for s in content["chain"]),
        bins=tuple(bins),
        unit=float(content.get("unit", 1.0)),
    )


def _kind(label: Label) -> str:
    is_time, is_date = isinstance(label, dt.datetime), isinstance(label, dt.date)
    return "time" if is_time else "date" if is_date else "plain"


def _plain_text(label: Label) -> Label:
    return label.isoformat() if isinstance(label, dt.date) else label


def unordered_chain(size: int) -> tuple[int, ...]:
    """The chain of a column whose values have no order that matters."""
    return 1, size


def ordered_chain(size: int) -> tuple[int, ...]:
    """A chain for ranges: powers of two, or the divisors that need the fewest more positions."""
    if size > MOST_ORDERED:
        raise InvalidArgument(
            f"ranges must be of columns with at most {MOST_ORDERED} values; cut it into bins."
        )
    padded = 1 << (size - 1).bit_length()
    if padded <= _PADDING * size:
        return tuple(1 << k for k in range(padded.bit_length()))
    # The fewest positions above that are a product of twos and threes.
    for more in range(size, padded + 1):
        rest, chain = more, [1]
        for factor in (2, 3):
            while rest % factor == 0:
                rest //= factor
                chain.append(chain[-1] * factor)
        if rest == 1:
            return tuple(chain)
    raise AssertionError  # a power of two is among them


def _at(places: Ints, axis: int) -> tuple[Any, ...]:
    return (slice(None),) * axis + (places,)


def _key(label: object) -> Any:
    """Labels as they are told apart: True is not 1."""
    if isinstance(label, np.generic):
        label = label.item()
    return (isinstance(label, bool), label)


def _plain(label: object) -> Label:
    if not isinstance(label, str | int | float | bool):
        raise InvalidArgument("text has a label that is neither text nor a number.")
    return label


def cells(columns: Sequence[MarginalColumn]) -> int:
    """The number of cells of the table of these columns."""
    return math.prod(column.size for column in columns)


_READERS: dict[str, Callable[[Any], Any]] = {
    "time": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "plain": _plain,
}
