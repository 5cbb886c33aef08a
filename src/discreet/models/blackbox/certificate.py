"""Whether ranges keep their sensitivity: recomputed exactly, with a pair to point at."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.mechanisms._exact_divergence import exact_delta
from discreet.models.blackbox.metrics import Floats, Metric, UnitCount, WindowGroups
from discreet.models.blackbox.output_ranges import OutputRanges, clip_to_range

Adjacency: TypeAlias = Literal["replace", "step"]
Pair: TypeAlias = tuple[Any, Any]

_MOST_INPUTS = 100_000
# What functions and sensors really return.
_ODD = (np.nan, np.inf, -np.inf, 1e300, -1e300, -0.0, 5e-324)
_ADVERSARIES = (1e300, -1e300, np.inf, -np.inf, np.nan, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCertificate:
    """The largest ``high(D) - low(D')`` of neighbors (and of D itself), against the claim.

    ``proof`` is true if every pair there is was checked, false if pairs were drawn.
    """

    width: Fraction
    largest: Fraction
    witness: Pair | None
    empty: Any
    """An area or input whose range is empty, or None."""
    pairs: int
    proof: bool

    @property
    def holds(self) -> bool:
        """Whether the sensitivity is at most the claim, and no range is empty."""
        return self.empty is None and self.largest <= self.width

    def demand(self) -> RangeCertificate:
        """This certificate, or NotCertified."""
        if not self.holds:
            raise NotCertified(str(self))
        return self

    def __str__(self) -> str:
        how = "all pairs of neighbors" if self.proof else f"{self.pairs} drawn pairs"
        if self.empty is not None:
            return f"NOT CERTIFIED: the range of {self.empty} is empty."
        verdict = "certified" if self.holds else "NOT CERTIFIED"
        where = "" if self.holds else f", at {self.witness}"
        return f"{verdict}: changes by at most {self.largest} of {self.width} ({how}{where})."


def certify_table(
    low: ArrayLike, high: ArrayLike, *, width: Number, adjacency: Adjacency = "replace"
) -> RangeCertificate:
    """Check a table of ranges, one axis for each position, exactly.

    Neighbors differ in one position: by anything (``replace``) or by one cell (``step``). Doubles
    are taken as the rationals they are.

    >>> print(certify_table([0, 0], [3, 4], width=4))
    certified: changes by at most 4 of 4 (all pairs of neighbors).
    """
    bottom, top = _exact(low), _exact(high)
    if bottom.dtype != top.dtype:
        bottom, top = bottom.astype(object), top.astype(object)
    if bottom.shape != top.shape or bottom.size == 0:
        raise InvalidArgument("low and high must have one shape, and not be empty.")
    non_negative("width", width)
    empties = np.argwhere(bottom > top)
    worst, witness = _at_most(top - bottom, lambda at: (at, at))
    search = _along if adjacency == "replace" else _beside
    for axis in np.flatnonzero(np.array(bottom.shape) > 1).tolist():
        gap, pair = search(bottom, top, axis)
        if gap > worst:
            worst, witness = gap, pair
    return RangeCertificate(
        width=Fraction(width),
        largest=Fraction(worst),
        witness=witness,
        empty=tuple(empties[0].tolist()) if len(empties) else None,
        pairs=bottom.size,
        proof=True,
    )


def _exact(table: ArrayLike) -> NDArray[Any]:
    array = np.asarray(table)
    if array.dtype.kind in "iu":
        # Beyond this, differences would wrap around: whole numbers of any size then.
        large = array.size and max(-int(array.min()), int(array.max())) >= 1 << 62
        return array.astype(object if large else np.int64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidArgument("low and high must be finite.")
    exact: NDArray[Any] = np.frompyfunc(Fraction, 1, 1)(array)
    return exact


def _at_most(gaps: NDArray[Any], name: Callable[[tuple[int, ...]], Pair]) -> tuple[Any, Pair]:
    at = np.unravel_index(int(gaps.argmax()), gaps.shape)
    where = tuple(int(k) for k in at)
    return gaps[where], name(where)


def _along(low: NDArray[Any], high: NDArray[Any], axis: int) -> tuple[Any, Pair]:
    """The largest high minus the smallest low on a line."""
    gaps = high.max(axis=axis) - low.min(axis=axis)

    def pair(line: tuple[int, ...]) -> Pair:
        tops, bottoms = (np.moveaxis(table, axis, -1)[line] for table in (high, low))
        ends = (int(tops.argmax()), int(bottoms.argmin()))
        one, other = ((*line[:axis], end, *line[axis:]) for end in ends)
        return one, other

    return _at_most(np.asarray(gaps), pair)


def _beside(low: NDArray[Any], high: NDArray[Any], axis: int) -> tuple[Any, Pair]:
    """The largest high minus the low of the next cell, either way."""
    after = np.delete(np.arange(low.shape[axis]), 0)
    here = (high.take(after, axis), high.take(after - 1, axis))
    there = (low.take(after - 1, axis), low.take(after, axis))

    def pair(at: tuple[int, ...], shift: int) -> Pair:
        moved = tuple(k + (j == axis) for j, k in enumerate(at))
        return (moved, at) if shift == 0 else (at, moved)

    found = [
        _at_most(here[shift] - there[shift], lambda at, shift=shift: pair(at, shift))  # type: ignore[misc]
        for shift in (0, 1)
    ]
    return max(found, key=lambda one: one[0])


def certify_all(
    ranges: OutputRanges, metric: Metric, values: Sequence[float], *, positions: int
) -> RangeCertificate:
    """Check every input with these values, one attribute, and all its neighbors.

    A proof for a domain of these values; with the odd ones among them, for what stands for them.
    """
    if len(values) ** positions > _MOST_INPUTS:
        raise InvalidArgument(f"values and positions give more than {_MOST_INPUTS} inputs.")
    inputs = np.array(list(itertools.product(values, repeat=positions)), dtype=np.float64)
    low, high = ranges.ranges(inputs)
    worst, witness, pairs = -(1 << 62), None, 0
    labels = np.array(list(itertools.product(range(len(values)), repeat=positions)))
    for at, label in enumerate(labels):
        near = _neighbors(metric, labels, label, inputs, inputs[at])
        gaps = high[at] - low[near]
        pairs += len(gaps)
        if gaps.max() > worst:
            worst = int(gaps.max())
            witness = (tuple(inputs[at]), tuple(inputs[near][int(gaps.argmax())]))
    empties = np.flatnonzero(low > high)
    return RangeCertificate(
        width=Fraction(ranges.width),
        largest=Fraction(worst),
        witness=witness,
        empty=tuple(inputs[empties[0]]) if len(empties) else None,
        pairs=pairs,
        proof=True,
    )


def _neighbors(
    metric: Metric, labels: NDArray[Any], label: NDArray[Any], inputs: Floats, one: Floats
) -> NDArray[np.intp]:
    if isinstance(metric, UnitCount):
        return np.flatnonzero(np.abs(inputs - one).sum(axis=1) <= 1)
    differs = labels != label
    first, last = differs.argmax(axis=1), differs.shape[1] - 1 - differs[:, ::-1].argmax(axis=1)
    run = metric.length if isinstance(metric, WindowGroups) else 1
    return np.flatnonzero(~differs.any(axis=1) | (last - first < run))


def certify_drawn(
    ranges: OutputRanges, metric: Metric, examples: ArrayLike, *, pairs: int = 2000, seed: int = 0
) -> RangeCertificate:
    """Try drawn neighbors, odd inputs and hostile functions: evidence, not proof.

    ``examples`` are public inputs; pairs are made from them by mixing, by odd values and by new
    ones, and clipped with functions that return odd values on purpose.
    """
    rng = np.random.default_rng(seed)
    public = metric.cleaned(examples)
    one = public[rng.integers(len(public), size=count("pairs", pairs))].copy()
    mixed = rng.random(one.shape) < 0.3
    one[mixed] = rng.choice(np.concatenate([np.ravel(public), _ODD]), size=int(mixed.sum()))
    other = _changed(metric, one, public, rng)
    low, high = ranges.ranges(one)
    low_other, high_other = ranges.ranges(other)
    gaps = np.max([high - low, high - low_other, high_other - low], axis=0)
    for lifted, lowered in itertools.product(_ADVERSARIES, repeat=2):
        up = clip_to_range(np.full(len(one), lifted), low, high, step=ranges.step)
        down = clip_to_range(np.full(len(one), lowered), low_other, high_other, step=ranges.step)
        gaps = np.maximum(gaps, np.abs(up - down))
    at = int(gaps.argmax())
    empties = np.flatnonzero((low > high) | (low_other > high_other))
    return RangeCertificate(
        width=Fraction(ranges.width),
        largest=Fraction(int(gaps[at])),
        witness=(one[at].tolist(), other[at].tolist()),
        empty=one[empties[0]].tolist() if len(empties) else None,
        pairs=pairs,
        proof=False,
    )


def drawn_neighbors(metric: Metric, examples: Floats, pairs: int) -> tuple[Floats, Floats]:
    """Inputs, and a neighbor of each, changed as much as possible."""
    rng = np.random.default_rng(0)
    one = metric.cleaned(examples)[rng.integers(len(examples), size=pairs)]
    if isinstance(metric, UnitCount):
        one = np.floor(one)
    return one, _changed(metric, one, metric.cleaned(examples), rng)


def _changed(metric: Metric, one: Floats, public: Floats, rng: np.random.Generator) -> Floats:
    """A neighbor of each input: what the metric allows, changed as much as possible."""
    many, n, d = one.shape
    rows = np.arange(many)
    if isinstance(metric, UnitCount):
        other = np.floor(metric.cleaned(one))
        entry = rows, rng.integers(n, size=many), rng.integers(d, size=many)
        other[entry] += rng.choice([-1, 1], size=many)
        return other
    other = one.copy()
    pool = np.concatenate([np.ravel(public), _ODD])
    run = metric.length if isinstance(metric, WindowGroups) else 1
    start = rng.integers(max(1, n - run + 1), size=many)
    for offset in range(min(run, n)):
        i = start + offset
        if getattr(metric, "level", "record") == "attribute":
            other[rows, i, rng.integers(d, size=many)] = rng.choice(pool, size=many)
        else:
            other[rows, i] = rng.choice(pool, size=(many, d))
    return other


def loss_at_worst(*, width: int, scale: Number) -> Fraction:
    """The largest log-ratio of two outputs with discrete Laplace noise, exactly.

    The masses are proportional to ``exp(-|k| / scale)``: two centers ``width`` steps apart have
    ratios up to ``exp(width / scale)``, attained at every output beyond one of them.
    """
    return Fraction(count("width", width, minimum=0)) / positive("scale", scale)


def delta_at_worst(*, width: int, scale: Number, epsilon: Number) -> float:
    """The hockey-stick divergence of two outputs ``width`` steps apart, summed over the lattice."""
    if count("width", width, minimum=0) == 0:
        return 0.0
    event = events.DiscreteLaplaceEvent(positive("scale", scale), width)
    return exact_delta(event, float(non_negative("epsilon", epsilon)))[0]
