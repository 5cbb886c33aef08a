"""Means of one or several numbers per client: the randomizer of least error, and sampled columns.

With several numbers, every report is about a few of them, drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import canonical_json as canonical
from discreet.core._rational import Number
from discreet.core._validate import as_mapping, as_tuple, count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local._window_channel import rows, symbols_of
from discreet.local.means.balanced_piecewise import balanced_piecewise
from discreet.local.means.base import BoundedMeanRandomizer, MeanEstimate, bounds, places, plain
from discreet.local.means.piecewise import duchi
from discreet.local.randomizer import VERSION, LocalRandomizer, Reports, Tally
from discreet.local.registry import rebuild
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

# ── One number ───────────────────────────────────────────────────────────────────────────────────


_EQUAL = 1.005  # a standard deviation that is less by half a percent is not worth more symbols


def best_mean_randomizer(*, epsilon: Number, lower: Number, upper: Number) -> BoundedMeanRandomizer:
    """Create the randomizer for a mean with the smallest largest variance.

    It is one bit for small epsilon, and `balanced_piecewise` otherwise. Both send one byte.

    Args:
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.best_mean_randomizer(epsilon=0.5, lower=0, upper=10).guarantee.epsilon() <= 0.5
        True
    """
    # Theorem: each report is epsilon-DP in the local model; the estimate is unbiased.
    # Proof: it is `duchi` or `balanced`, chosen by epsilon alone.
    # Source: as these.
    # Needs: lower < upper; numbers outside count as the nearer bound.
    bit = duchi(epsilon=epsilon, lower=lower, upper=upper)
    wide = balanced_piecewise(epsilon=epsilon, lower=lower, upper=upper)
    return bit if bit.std <= _EQUAL * wide.std else wide


# ── Several numbers ──────────────────────────────────────────────────────────────────────────────


MOST_COLUMNS = 255
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MultidimensionalMean(LocalRandomizer):
    """``sampled`` of the columns, each as its place between its bounds. Made by `several`."""

    kind: ClassVar[str] = "several"

    epsilon: Fraction
    columns: tuple[tuple[str, Fraction, Fraction], ...]
    sampled: int
    part: BoundedMeanRandomizer
    """What randomizes one place, at epsilon / sampled."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in their order on the wire: sorted."""
        return tuple(name for name, _, _ in self.columns)

    @property
    def width(self) -> int:
        return self.sampled * (1 + self.part.width)

    @property
    def size(self) -> int:
        return len(self.columns) * self.part.size

    @property
    def std(self) -> float:
        """Of one column's mean from one report, at worst, as a share of the column's range."""
        return math.sqrt(_worst(self.part, len(self.columns), self.sampled))

    def parameters(self) -> dict[str, Any]:
        ends = {name: [plain(low), plain(high)] for name, low, high in self.columns}
        shape = {k: v for k, v in self.part.parameters().items() if k not in ("lower", "upper")}
        return {"columns": ends, "sampled": self.sampled, "part": {"kind": self.part.kind, **shape}}

    def randomize(
        self, value: Mapping[str, ArrayLike] | ArrayLike, *, rng: RandomSource | None = None
    ) -> Reports:
        """The report of each client, from its numbers by column (or columns in order of names)."""
        source = resolve_rng(rng)
        every = self._places(value)
        out = np.empty((len(every), self.width), dtype=np.uint8)
        for start in range(0, len(every), _CHUNK):
            here = every[start : start + _CHUNK]
            chosen = _chosen(len(here), len(self.columns), self.sampled, source)
            told = np.take_along_axis(here, chosen, axis=1).ravel()
            symbols = rows(self.part.draw(told, source), self.part.width)
            fields = np.concatenate((chosen.reshape(-1, 1).astype(np.uint8), symbols), axis=1)
            out[start : start + _CHUNK] = fields.reshape(len(here), self.width)
        return out

    def tally(self, reports: Reports) -> Tally:
        """Count symbols by column; a report with a bad field, or a column twice, is refused."""
        fields = reports.reshape(-1, 1 + self.part.width)
        column = fields[:, 0].astype(np.int64)
        symbol = symbols_of(fields[:, 1:]).astype(np.int64)
        good = (column < len(self.columns)) & (symbol < self.part.size)
        fair = good.reshape(-1, self.sampled).all(axis=1)
        ordered = np.sort(column.reshape(-1, self.sampled), axis=1)
        fair &= (np.diff(ordered, axis=1) > 0).all(axis=1)
        kept = (column * self.part.size + symbol).reshape(-1, self.sampled)[fair].ravel()
        counts = np.bincount(kept, minlength=self.size).astype(np.int64)
        accepted = int(fair.sum())
        return Tally(counts, accepted, len(reports) - accepted)

    def estimate(self, counts: Ints, reports: int) -> dict[str, MeanEstimate]:
        """The unbiased mean of every column."""
        # Theorem: given how many clients told a column, its mean is unbiased, with the variance of
        #   the randomizer plus that of a sample without replacement; `MeanEstimate.guaranteed`
        #   holds.
        # Proof: those who tell a column are a uniformly random set of the clients. For exponential
        #   moments the set is no worse than drawing clients with replacement (Hoeffding 1963,
        #   theorem 4, for the logarithms of the clients' own moments), and then levels are
        #   independent, in the same range, with at most 1/4 more variance.
        by_column = counts.reshape(len(self.columns), self.part.size)
        return {
            name: self._scaled(one, low, high, reports)
            for (name, low, high), one in zip(self.columns, by_column, strict=True)
        }

    def _scaled(self, counts: Ints, lower: Fraction, upper: Fraction, reports: int) -> MeanEstimate:
        told = int(counts.sum())
        found = self.part.estimate(counts, told)
        length, low = float(upper - lower), float(lower)
        missed = 1 - told / reports if reports > 1 else 0.0
        place = min(max(found.value, 0.0), 1.0)
        # Numbers with this mean vary most if all lie at the bounds.
        drawing = place * (1 - place) * missed * reports / max(told * (reports - 1), 1)
        one, span = found.one
        return MeanEstimate(
            value=low + found.value * length,
            reports=told,
            std=math.sqrt(found.std**2 + drawing) * length,
            bounds=(low, float(upper)),
            one=(math.sqrt(one**2 + (missed > 0) / 4) * length, span * length),
            bias=found.bias * length,
            guarantee=self.guarantee,
        )

    def certify(self) -> Certificate:
        """The weights of one column, and that the columns' epsilons add up."""
        inner = self.part.certify()
        if self.part.epsilon * self.sampled != self.epsilon:
            raise InvalidArgument("part must have epsilon / sampled.")
        return replace(
            inner,
            mechanism=self.kind,
            guarantee=self.guarantee,
            drawn=(*inner.drawn, *self._looks()),
        ).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        low, high = (
            {name: np.full(many, float(ends[side])) for name, *ends in self.columns}
            for side in (0, 1)
        )
        return low, high

    def _places(self, value: Mapping[str, ArrayLike] | ArrayLike) -> Floats:
        if isinstance(value, Mapping):
            if set(value) != set(self.names):
                raise OutOfDomain(f"value must have the columns {', '.join(self.names)}.")
            given: Sequence[Any] = [np.atleast_1d(np.asarray(value[name])) for name in self.names]
        else:
            array = np.asarray(value)
            if array.ndim != 2 or array.shape[1] != len(self.columns):
                raise OutOfDomain(f"value must have a column each for {', '.join(self.names)}.")
            given = list(array.T)
        if len({len(column) for column in given}) != 1:
            raise OutOfDomain("value must have equally many numbers in every column.")
        ends = ((low, high) for _, low, high in self.columns)
        found = [places(column, *end) for column, end in zip(given, ends, strict=True)]
        return np.stack(found, axis=1)


def multidimensional_mean(
    *,
    columns: Mapping[str, Sequence[Number]],
    epsilon: Number,
    sampled: int | None = None,
) -> MultidimensionalMean:
    """Create a randomizer for the means of several bounded numbers of each client.

    Args:
        columns: Public bounds (lower, upper) of each number, by name; at most 255.
        epsilon: Privacy loss of one report about all numbers of a client.
        sampled: How many of its numbers a client reports. If None, the number with the least error:
            one unless epsilon is large.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for all numbers of the client together, in the local model.

    Examples:
        >>> columns = {"age": (0, 120), "income": (0, 10_000)}
        >>> local.multidimensional_mean(columns=columns, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model, for all numbers of a client together.
    # Proof: which columns are told does not depend on the numbers; given these, the report is
    #   `sampled` independent draws, each (epsilon / sampled)-DP, and the epsilons add up.
    # Source: Wang et al. 2019.
    # Needs: 1 to 255 columns; lower < upper; numbers outside count as the nearer bound.
    if not 1 <= len(as_mapping("columns", columns)) <= MOST_COLUMNS:
        raise InvalidArgument(f"columns must name 1 to {MOST_COLUMNS} columns with their bounds.")
    eps = positive("epsilon", epsilon)
    ends = tuple((name, *_ends(name, columns[name])) for name in sorted(columns))
    if sampled is None:
        most = min(len(ends), math.ceil(eps))
        tried = [_of(ends, eps, number) for number in range(1, most + 1)]
        return min(tried, key=lambda one: one.std)
    number = count("sampled", sampled)
    if number > len(ends):
        raise InvalidArgument(f"sampled must be at most {len(ends)}, got {number}.")
    return _of(ends, eps, number)


def described(
    *,
    epsilon: Fraction,
    columns: Mapping[str, Sequence[Number]],
    sampled: int,
    part: Mapping[str, Any],
) -> MultidimensionalMean:
    """The randomizer that `MultidimensionalMean.parameters` describes, part and all."""
    made = multidimensional_mean(columns=columns, epsilon=epsilon, sampled=sampled)
    ratio = canonical.ratio(epsilon / made.sampled)
    told = rebuild({"version": VERSION, "epsilon": ratio, "lower": 0, "upper": 1, **part})
    if not isinstance(told, BoundedMeanRandomizer):
        raise InvalidArgument("part must describe a randomizer of one bounded number.")
    return replace(made, part=told)


def _of(
    ends: tuple[tuple[str, Fraction, Fraction], ...], epsilon: Fraction, told: int
) -> MultidimensionalMean:
    part = best_mean_randomizer(epsilon=epsilon / told, lower=0, upper=1)
    return MultidimensionalMean(epsilon=epsilon, columns=ends, sampled=told, part=part)


def _ends(name: str, pair: Sequence[Number]) -> tuple[Fraction, Fraction]:
    if len(as_tuple("columns", pair)) != 2:
        raise InvalidArgument(f"columns must give {name!r} a pair: its lower and upper bound.")
    return bounds(*pair)


def _worst(part: BoundedMeanRandomizer, columns: int, sampled: int) -> float:
    """Variance times n: columns / sampled as many reports are needed, and clients are drawn."""
    return columns / sampled * (part.std**2 + (1 - sampled / columns) / 4)


def _chosen(size: int, columns: int, sampled: int, rng: RandomSource) -> Ints:
    """For each client, ``sampled`` of the columns: the first of a Fisher-Yates shuffle."""
    order = np.tile(np.arange(columns, dtype=np.int64), (size, 1))
    every = np.arange(size)
    for place in range(sampled):
        other = place + uniform_integers(columns - place, size, rng)
        order[every, place], order[every, other] = order[every, other], order[every, place]
    return order[:, :sampled]
