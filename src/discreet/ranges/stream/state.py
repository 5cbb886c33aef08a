"""Running a stream: steps are fed in, answers come out, and the state is plain numbers.

`advance` is a function: it draws noise, but changes nothing. The owner of the state, in memory or
in a file, decides when the answers count: they must not be seen before the new state is safe.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.rows import cells, shape_of
from discreet.boundary.values import steps as boundary_steps
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.tabular import Record
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.query.result import Result, records
from discreet.ranges.stream.blt_counter import BLTState
from discreet.ranges.stream.plan import StreamPlan
from discreet.ranges.stream.tree_counter import LARGEST_COUNT, TreeState

_PIECE = 1 << 15
"""Steps that are counted at once: more would leave the cache."""
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Counts(Result):
    """Published counts, one for each step, for each key.

    The total so far or, if the plan has a window, what happened in the last so many steps.

    Attributes:
        plan: Plan of the stream, with its guarantee and its error.
        first: Step after which the first of them holds; the first step of a stream is 1.
        values: The counts: one for each step, or one row for each step and a column for each key.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
        >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
        ...     counts = visits.feed([3, 0, 5])
        >>> counts.first, counts.values.shape
        (1, (3,))
    """

    plan: StreamPlan = field(repr=False)
    first: int
    values: Floats

    @property
    def guarantee(self) -> Guarantee:
        """Of the whole stream, however long it runs."""
        return self.plan.guarantee

    def _title(self) -> str:
        return f"Counts after steps {self.first:,} to {self.first + len(self.values) - 1:,}"

    def __len__(self) -> int:
        """How many numbers: one for each step and key."""
        return int(self.values.size)

    @property
    def steps(self) -> Ints:
        """The steps after which the answers hold."""
        return np.arange(self.first, self.first + len(self.values))

    @property
    def std(self) -> Floats:
        """The standard deviation of each, the same for every key."""
        found = self.plan.std(self.steps)
        return found if self.plan.keys is None else np.tile(found[:, None], self.plan.lanes)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return bounds that hold the exact counts.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper ends.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
            ...     counts = visits.feed([12, 7, 9])
            >>> low, high = counts.interval(0.9)
            >>> bool((low < counts.values).all() and (counts.values < high).all())
            True
        """
        reach = self.plan.half_width(self.steps, confidence=confidence)
        if self.plan.keys is not None:
            reach = reach[:, None]
        return self.values - reach, self.values + reach

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """Return one record for each step, and for each key if there are keys.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Dictionaries with the step, the key, `value`, `std`, `low` and `high`.

        Examples:
            >>> [row["step"] for row in counts.rows()]
            [1, 2, 3]
        """
        low, high = self.interval(confidence)
        steps = self.steps.tolist()
        names: tuple[str, ...] = ("step",)
        keys: Iterable[tuple[Any, ...]] = ((step,) for step in steps)
        if self.plan.keys is not None:
            names, keys = ("step", "key"), product(steps, self.plan.keys)
        return records(
            names,
            keys,
            value=self.values.ravel(),
            std=self.std.ravel(),
            low=low.ravel(),
            high=high.ravel(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """All that a stream needs to go on. Private: it holds exact counts."""

    step: int
    base: Floats
    """The last answers of the epochs that are over, added up."""
    counter: TreeState | BLTState
    behind: Floats
    """With a window: the noisy counts of the last epoch after each of its steps."""
    whole: Ints
    part: Floats
    """With a window: what the same will be made of for this epoch."""

    @property
    def numbers(self) -> int:
        """How many numbers are held."""
        held = self.base, self.behind, self.whole, self.part
        return 1 + self.counter.numbers + sum(array.size for array in held)


def begin(plan: StreamPlan) -> StreamState:
    """Before the first step."""
    lanes = plan.lanes
    return StreamState(
        step=0,
        base=np.zeros(lanes),
        counter=plan.counter(0).start(lanes),
        behind=np.zeros((0, lanes)),
        whole=np.zeros((0, lanes), dtype=np.int64),
        part=np.zeros((0, lanes)),
    )


def advance(
    plan: StreamPlan, state: StreamState, counts: ArrayLike, *, rng: RandomSource
) -> tuple[StreamState, Counts]:
    """Feed the counts of the next steps: the new state, and one answer for each step."""
    # Theorem: all answers together have the plan's guarantee, if every step is fed once.
    # Proof: theory/streams.
    # Source: as `StreamPlan.guarantee`.
    # Needs: the new state is kept, durably, before an answer is seen; fresh bits.
    rows = check_counts(plan, counts)
    if plan.horizon is not None and state.step + len(rows) > plan.horizon:
        raise InvalidArgument(
            f"counts must end at the horizon of {plan.horizon} steps, {state.step} are over; "
            "plan without horizon for a stream without end."
        )
    first = state.step + 1
    answers = []
    while len(rows):
        epoch = plan.epoch(state.step + 1)
        left = plan.start(epoch) + plan.length(epoch) - state.step
        piece, rows = np.split(rows, [min(left, _PIECE)])
        state, values = _advance(plan, state, piece, rng)
        answers.append(values)
    values = np.concatenate(answers) if answers else np.zeros((0, plan.lanes))
    if plan.keys is None:
        values = values[:, 0]
    values.setflags(write=False)
    return state, Counts(plan=plan, first=first, values=values)


def _advance(
    plan: StreamPlan, state: StreamState, rows: Ints, rng: RandomSource
) -> tuple[StreamState, Floats]:
    """Some steps of one epoch."""
    epoch = plan.epoch(state.step + 1)
    counter = plan.counter(epoch)
    # Cut off, not refused: an error would tell that there was so much.
    inner, fed = counter.feed(state.counter, np.minimum(rows, counter.most), rng)
    step = state.step + len(rows)
    over = step == plan.start(epoch) + plan.length(epoch)
    base, behind, whole, part = state.base, state.behind, state.whole, state.part
    if plan.window is None:
        values = base + fed.prefix
        base = values[-1] if over else base
    else:
        place = state.step - plan.start(epoch)
        values = fed.prefix.copy()
        if epoch:
            values += behind[place : place + len(rows)]
        whole, part = np.concatenate((whole, fed.whole)), np.concatenate((part, fed.part))
        if over:
            add_whole, add_part = counter.closing(inner)
            behind = (whole + add_whole) + (part + add_part)
            behind[-1] = 0.0
            whole, part = whole[:0], part[:0]
    if over and plan.horizon is None:
        inner = plan.counter(epoch + 1).start(plan.lanes)
    new = StreamState(step=step, base=base, counter=inner, behind=behind, whole=whole, part=part)
    return new, values


def check_counts(plan: StreamPlan, counts: ArrayLike) -> Ints:
    """The counts as (steps, lanes), or OutOfDomain."""
    wanted = "(steps,)" if plan.keys is None else f"(steps, {plan.lanes})"
    shape = shape_of(counts, axes=1 if plan.keys is None else 2)
    rows = None
    if shape is not None and (len(shape) == 1 or shape[1] == plan.lanes or not shape[0]):
        rows = cells(counts, shape=shape, lower=0, upper=LARGEST_COUNT)
    if rows is None:
        raise OutOfDomain(f"counts must be whole numbers of the shape {wanted}.")
    return rows.reshape(len(rows), plan.lanes)


def tally(
    plan: StreamPlan,
    steps: ArrayLike,
    *,
    after: int,
    keys: Any = None,
    end: int,
    kept: NDArray[np.bool_] | None = None,
) -> Ints:
    """Count events into steps: ``counts`` of the steps after ``after`` up to ``end``.

    ``steps`` says for each event to which step it belongs, ``keys`` to which key of the plan (by
    its place among them). Each event is read by itself: one whose step is not open, or whose key is
    none of the plan's, is left out, because an error would tell of it.
    """
    lanes = event_lanes(plan, steps, after=after, keys=keys, end=end)
    if kept is not None:
        lanes = lanes[kept]
    # What has no place is counted before the first, and not told.
    flat = np.bincount(lanes + 1, minlength=(end - after) * plan.lanes + 1)[1:]
    return flat if plan.keys is None else flat.reshape(-1, plan.lanes)


def event_lanes(
    plan: StreamPlan, steps: ArrayLike, *, after: int, keys: Any = None, end: int
) -> Ints:
    """The place of each event among all open steps and keys; -1 for one that has none."""
    check.count("end", end, minimum=after)
    if (keys is None) != (plan.keys is None):
        raise InvalidArgument("keys must be given if the plan has keys, and only then.")
    # What is outside stays outside when it is clipped.
    at = _whole("steps", steps, lower=after, upper=end + 1)
    found = at - (after + 1)
    found[at > end] = -1
    if keys is None:
        return found
    lane = _whole("keys", keys, lower=-1, upper=plan.lanes)
    if lane.shape != at.shape:
        raise OutOfDomain("keys must be places among the plan's keys, one for each event.")
    known = (found >= 0) & (lane >= 0) & (lane < plan.lanes)
    return np.where(known, found * plan.lanes + lane, -1)


def _whole(name: str, values: ArrayLike, *, lower: int, upper: int) -> Ints:
    """Whole numbers of a list, each by itself; the type and shape of an array are public."""
    odd = isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind not in "biufO")
    if odd or isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise OutOfDomain(f"{name} must be whole numbers, one for each event.")
    return boundary_steps(values, exponent=0, lower=lower, upper=upper, misfit=lower)


def pack(state: StreamState) -> bytes:
    """The state as bytes: private, like the data."""
    arrays: dict[str, Any] = {
        "version": np.array(_VERSION),
        "step": np.array(state.step),
        "base": state.base,
        "behind": state.behind,
        "whole": state.whole,
        "part": state.part,
        "inner_step": np.array(state.counter.step),
        "total": state.counter.total,
    }
    match state.counter:
        case TreeState(noise=noise):
            arrays |= {f"noise{level}": group for level, group in enumerate(noise)}
        case BLTState(counts=counts, buffers=buffers, released=released, read=read):
            arrays |= {"counts": counts, "buffers": buffers, "released": released, "read": read}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def unpack(data: bytes) -> StreamState:
    """The state of these bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        if int(held["version"]) != _VERSION:
            raise InvalidArgument("The state is of another version.")
        inner: TreeState | BLTState
        if "read" in held:
            inner = BLTState(
                step=int(held["inner_step"]),
                total=held["total"],
                **{name: held[name] for name in ("counts", "buffers", "released", "read")},
            )
        else:
            levels = sum(name.startswith("noise") for name in held)
            noise = tuple(held[f"noise{level}"] for level in range(levels))
            inner = TreeState(step=int(held["inner_step"]), total=held["total"], noise=noise)
        return StreamState(
            step=int(held["step"]),
            counter=inner,
            **{name: held[name] for name in ("base", "behind", "whole", "part")},
        )
