"""Ranges around surrogates: sums over records, curves of counts, trees and forests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.blackbox.lipschitz_fit import least_deviations
from discreet.models.blackbox.metrics import (
    FINE,
    ONE,
    Floats,
    Ints,
    Metric,
    Records,
    UnitCount,
    WindowGroups,
)
from discreet.models.blackbox.output_ranges import (
    LARGEST_FINE,
    LeaveOneOutRange,
    MetricRanges,
    OutputRanges,
    common,
    exponent_of,
    make_read_only,
    power_of_two,
    same_shape,
    slope_and_width,
    whole_steps,
)

# ── Sums over records ────────────────────────────────────────────────────────────────────────────


# So high, doubles still tell whole numbers apart, and so many add up within 64 bits.
_HIGHEST = 1 << 50
_MOST_COLUMNS = 1 << 12


class AdditiveClip(MetricRanges):
    """Ranges around a sum of bounded contributions, one from each record.

    What a record contributes is read off lines between ``knots``, one function for each attribute
    of each position, with whole ``heights`` in units of 2**-20 steps; the sum over its attributes
    is held between zero and ``slope`` steps (a share of it, if neighbors may replace a run of
    records). ``metric`` says who is a neighbor; its distances are not used.
    """

    # Theorem: clipping changes by at most `width` steps between neighbors, whatever knots, heights
    #   and offset are.
    # Proof: let c_i in [0, m] be the contributions and T_b twice the sum of those outside a
    #   neighborhood b of r records, plus r m. Twice the whole sum is within r m <= slope of T_b,
    #   so all T_b are within 2 slope <= 2 width of each other, and neighbors that differ in b
    #   share T_b. The rest is the proof of LooClip. Contributions depend on their own record only,
    #   and everything after them is a sum of integers.
    # Source: sums of clipped scores as in private averages; leaving one out as in A35.

    def __init__(
        self,
        *,
        knots: Sequence[ArrayLike],
        heights: Sequence[ArrayLike],
        offset: int,
        shape: tuple[int, int],
        slope: int,
        width: int,
        metric: Metric,
        step: Number = 1,
    ) -> None:
        self.slope, self.width = slope_and_width(slope, width)
        self.step: Fraction = power_of_two(step)
        self.metric, self.shape = metric, shape
        self.run = run_of(metric)
        self.positions = shape[0] if _level(metric) == "record" else shape[0] * shape[1]
        self.run = min(self.run, self.positions)
        self.most = (self.slope << FINE) // self.run
        self.knots, self.heights = _curves(knots, heights, columns=shape[0] * shape[1])
        self.offset = count("offset", offset, minimum=-LARGEST_FINE)
        if abs(self.offset) + self.positions * self.most + (self.width << FINE) > LARGEST_FINE >> 1:
            raise InvalidArgument("offset, slope and width have too many steps: use a larger step.")

    @classmethod
    def fitted(
        cls,
        *,
        inputs: ArrayLike,
        y: ArrayLike,
        slope: int,
        width: int,
        metric: Metric,
        step: Number = 1,
        pieces: int = 6,
        shared: bool = False,
    ) -> AdditiveClip:
        """The contributions whose sum deviates least from y (in steps) beyond the tube.

        ``pieces`` lines for each function, between quantiles of the public inputs. With ``shared``
        all positions have the same functions, for what does not depend on the order.
        """
        public = metric.cleaned(inputs)
        _, n, d = public.shape
        knots = [
            _knots(public[:, :, j] if shared else public[:, i, j], pieces)
            for i in range(n)
            for j in range(d)
        ]
        basis = _bases(public, knots, shared=shared)
        level = _level(metric)
        most = slope / min(run_of(metric), n if level == "record" else n * d)
        target = np.asarray(y, dtype=np.float64)
        solved = least_deviations(
            basis,
            target,
            most=most,
            tube=(width - slope) / 2,
            together=d if level == "record" else 1,
        )
        heights = solved[0] * n if shared else solved[0]
        return cls(
            knots=knots,
            heights=[np.rint(curve * ONE).astype(np.int64) for curve in heights],
            offset=round(solved[1] * ONE),
            shape=(n, d),
            slope=slope,
            width=width,
            metric=metric,
            step=step,
        )

    @property
    def hull(self) -> tuple[int, int]:
        lowest = 2 * self.offset + self.run * self.most
        highest = lowest + 2 * (self.positions - self.run) * self.most
        spread = self.width << FINE
        return (lowest - spread) // (2 * ONE), (highest + spread) // (2 * ONE)

    def contributions(self, inputs: ArrayLike) -> Ints:
        """What each record adds, in fine units: (inputs, positions)."""
        array = self.metric.cleaned(same_shape(inputs, self.shape))
        flat = array.reshape(len(array), -1)
        columns = [
            _on_lines(flat[:, at], curve, height)
            for at, (curve, height) in enumerate(zip(self.knots, self.heights, strict=True))
        ]
        summed: Ints = np.stack(columns, axis=1).reshape(len(array), self.positions, -1).sum(axis=2)
        return np.clip(summed, 0, self.most)

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        added = self.contributions(inputs)
        before = np.zeros((len(added), self.positions + 1), dtype=np.int64)
        np.cumsum(added, axis=1, out=before[:, 1:])
        within = before[:, self.run :] - before[:, : -self.run]
        doubled = 2 * (self.offset + before[:, -1:] - within) + self.run * self.most
        return common(doubled, spread=self.width << FINE)


def run_of(metric: Metric) -> int:
    """How many records in a row a neighbor may replace."""
    if not metric.record_like:
        raise Unsupported("Sums of contributions need neighbors that replace whole entries.")
    return metric.length if isinstance(metric, WindowGroups) else 1


def _level(metric: Metric) -> str:
    return str(getattr(metric, "level", "record"))


def _curves(
    knots: Sequence[ArrayLike], heights: Sequence[ArrayLike], *, columns: int
) -> tuple[tuple[Floats, ...], tuple[Ints, ...]]:
    places = tuple(np.asarray(curve, dtype=np.float64) for curve in knots)
    values = tuple(np.asarray(height) for height in heights)
    if not len(places) == len(values) == columns:
        raise InvalidArgument(f"knots and heights must be {columns}, one for each attribute.")
    if columns > _MOST_COLUMNS:
        raise InvalidArgument(f"shape may have at most {_MOST_COLUMNS} entries, got {columns}.")
    for curve, height in zip(places, values, strict=True):
        if curve.ndim != 1 or curve.size == 0 or curve.shape != height.shape:
            raise InvalidArgument("Each of knots needs as many heights, at least one.")
        if not np.isfinite(curve).all() or (np.diff(curve) <= 0).any():
            raise InvalidArgument("knots must be finite and increasing.")
        if height.dtype.kind not in "iu" or np.abs(height).max() > _HIGHEST:
            raise InvalidArgument("heights must be whole numbers of at most 2**50.")
    return places, tuple(make_read_only(height.astype(np.int64)) for height in values)


def _on_lines(x: Floats, knots: Floats, heights: Ints) -> Ints:
    """Heights between knots, made whole: a function of each entry alone."""
    if len(knots) == 1:
        return np.full(len(x), heights[0])
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    with np.errstate(over="ignore"):
        share = np.clip((x - knots[at]) / (knots[at + 1] - knots[at]), 0, 1)
    rise = (heights[at + 1] - heights[at]).astype(np.float64)
    climbed: Ints = heights[at] + np.rint(rise * share).astype(np.int64)
    return climbed


def _knots(values: Floats, pieces: int) -> Floats:
    levels = np.linspace(0, 1, count("pieces", pieces) + 1)
    return np.unique(np.quantile(values, levels))


def _bases(public: Floats, knots: list[Floats], *, shared: bool) -> list[Floats]:
    """How much of each height each input takes, summed over positions if they share functions."""
    _, n, d = public.shape

    def hats(x: Floats, curve: Floats) -> Floats:
        return np.stack([np.interp(x, curve, line) for line in np.eye(len(curve))], axis=-1)

    if shared:
        return [hats(public[:, :, j], knots[j]).sum(axis=1) for j in range(d)]
    return [hats(public[:, i, j], knots[i * d + j]) for i in range(n) for j in range(d)]


# ── Curves of counts ─────────────────────────────────────────────────────────────────────────────


class CountTube(MetricRanges):
    """A tube around a sum of curves, one for each count, where one event is a neighbor.

    A curve is a chain of lines between whole ``knots``; ``rises`` are their slopes per event, whole
    numbers of 2**-20 steps, at most ``slope`` steps either way. Beyond the knots it is flat.
    """

    # Theorem: clipping changes by at most `width` steps between inputs one event apart; with
    #   `slope == width`, by at most `d * width` between inputs d events apart.
    # Proof: counts are whole, so one event moves one curve by one of its rises, at most `slope`
    #   steps, exactly. The rest is the proof of TubeClip. A37.
    # Source: Aoutouf 2021, chapter 7, with the neighbors that it names: one car.

    def __init__(
        self,
        *,
        knots: Sequence[ArrayLike],
        rises: Sequence[ArrayLike],
        offset: int,
        shape: tuple[int, int],
        slope: int,
        width: int,
        step: Number = 1,
        missing: float = 0.0,
    ) -> None:
        self.slope, self.width = slope_and_width(slope, width)
        self.step: Fraction = power_of_two(step)
        self.shape, self.metric = shape, UnitCount(missing=missing)
        self.knots = tuple(_whole("knots", curve) for curve in knots)
        self.rises = tuple(_whole("rises", curve) for curve in rises)
        if not len(self.knots) == len(self.rises) == shape[0] * shape[1]:
            raise InvalidArgument(
                "knots and rises must be one for each attribute of each position."
            )
        for curve, rise in zip(self.knots, self.rises, strict=True):
            if len(curve) != len(rise) + 1 or (np.diff(curve) <= 0).any():
                raise InvalidArgument("knots must increase, and be one more than their rises.")
            if np.abs(rise).max(initial=0) > self.slope << FINE:
                raise InvalidArgument(f"rises must be at most slope={slope} steps either way.")
        self.offset = count("offset", offset, minimum=-LARGEST_FINE)
        # What each curve climbs from its first knot to each of the others.
        self._climbs = tuple(
            np.concatenate([[0], np.cumsum(rise * np.diff(curve))])
            for curve, rise in zip(self.knots, self.rises, strict=True)
        )
        reach = sum((self.slope << FINE) * int(curve[-1] - curve[0]) for curve in self.knots)
        if abs(self.offset) + reach + (self.width << FINE) > LARGEST_FINE >> 1:
            raise InvalidArgument("offset, slope or width have too many steps: use a larger step.")

    @classmethod
    def fitted(
        cls,
        *,
        inputs: ArrayLike,
        y: ArrayLike,
        slope: int,
        width: int,
        step: Number = 1,
        pieces: int = 4,
        missing: float = 0.0,
    ) -> CountTube:
        """The curves whose sum deviates least from y (in steps) beyond the tube.

        ``pieces`` lines for each count, between quantiles of the public inputs.
        """
        metric = UnitCount(missing=missing)
        public = metric.coordinates(inputs)
        many, n, d = public.shape
        flat = public.reshape(many, n * d)
        levels = np.linspace(0, 1, count("pieces", pieces) + 1)
        knots = [np.unique(np.rint(np.quantile(column, levels))) for column in flat.T]
        # How far each count has gone along each line.
        blocks = [
            np.clip(column[:, None] - curve[:-1], 0, np.diff(curve))
            for column, curve in zip(flat.T, knots, strict=True)
        ]
        # Rises from -slope to slope are heights from zero to twice the slope, moved down.
        target = np.asarray(y, dtype=np.float64) + slope * sum(b.sum(axis=1) for b in blocks)
        heights, offset = least_deviations(blocks, target, most=2 * slope, tube=(width - slope) / 2)
        rises = np.concatenate(heights) - slope
        most = slope << FINE
        whole = np.clip(np.rint(rises * ONE), -most, most).astype(np.int64)
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        return cls(
            knots=[curve.astype(np.int64) for curve in knots],
            rises=np.split(whole, ends),
            offset=round(offset * ONE),
            shape=(n, d),
            slope=slope,
            width=width,
            step=step,
            missing=missing,
        )

    @property
    def proportional(self) -> bool:
        """Whether farther inputs are protected in proportion to their distance: only unclipped."""
        return self.width == self.slope

    @property
    def hull(self) -> tuple[int, int]:
        spread = (self.width - self.slope) << FINE
        low = 2 * (self.offset + sum(int(climb.min()) for climb in self._climbs)) - spread
        high = 2 * (self.offset + sum(int(climb.max()) for climb in self._climbs)) + spread
        return low // (2 * ONE), high // (2 * ONE)

    def surrogate(self, inputs: ArrayLike) -> Ints:
        """The sum of the curves, in fine units."""
        found = self.metric.coordinates(same_shape(inputs, self.shape))
        flat = found.reshape(len(found), -1)
        total = np.full(len(flat), self.offset)
        for column, curve, rise, climb in zip(
            flat.T, self.knots, self.rises, self._climbs, strict=True
        ):
            if len(rise) == 0:
                continue
            x = np.clip(column, curve[0], curve[-1])
            at = np.clip(np.searchsorted(curve, x, side="right") - 1, 0, len(rise) - 1)
            total += climb[at] + rise[at] * (x - curve[at])
        return total

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        doubled = 2 * self.surrogate(inputs)[:, None]
        return common(doubled, spread=(self.width - self.slope) << FINE)


def _whole(name: str, values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgument(f"{name} must be sequences of whole numbers.")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) > LARGEST_FINE:
        raise InvalidArgument(f"{name} are too large: use a larger step.")
    return make_read_only(array.astype(np.int64))


# ── Trees and forests ────────────────────────────────────────────────────────────────────────────


_UNBOUNDED = 1 << 40
_MOST_STEPS = 2.0**40


@dataclass(frozen=True, kw_only=True)
class _InBoxes(Records):
    """One for each record that lies outside a box; boxes are half open, ``(low, high]``.

    Coordinates of inputs are single-precision numbers in order, those of boxes pairs of ends.
    """

    def coordinates(self, inputs: ArrayLike) -> Ints:
        return _ordered(self.cleaned(inputs))

    def between(self, queries: Ints, anchors: Ints) -> Ints:
        d = queries.shape[-1]
        outside = np.zeros((len(queries), *anchors.shape[:2]), dtype=bool)
        for j in range(d):
            entry = queries[:, None, :, j]
            outside |= (entry <= anchors[None, :, :, j]) | (entry > anchors[None, :, :, d + j])
        parts: Ints = outside.astype(np.int64) << FINE
        return parts


def _ordered(values: Floats) -> Ints:
    """Single-precision numbers as integers in the same order, as trees of scikit-learn see them."""
    with np.errstate(over="ignore"):
        single = (values.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    return np.where(single < 0, -(single & 0x7FFFFFFF), single)


class TreeLeaves:
    """The leaves of a tree: boxes ``(low, high]`` of shape (leaves, positions, attributes)."""

    def __init__(self, *, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = (np.asarray(ends, dtype=np.float64) for ends in (low, high))
        if self.low.ndim != 3 or self.low.shape != self.high.shape:
            raise InvalidArgument("low and high must have shape (leaves, positions, attributes).")
        if np.isnan(self.low).any() or np.isnan(self.high).any():
            raise InvalidArgument("low and high must be numbers.")

    def ends(self) -> Ints:
        """Both ends as ordered integers: (leaves, positions, 2 attributes)."""
        low = np.where(np.isneginf(self.low), -_UNBOUNDED, _ordered(self.low))
        high = np.where(np.isposinf(self.high), _UNBOUNDED, _ordered(self.high))
        return np.concatenate([low, high], axis=-1)

    def apart(self) -> Ints:
        """How many positions every input of one box must change to come into another.

        Those at which the projections do not meet: (leaves, leaves).
        """
        apart = np.zeros((len(self.low),) * 2, dtype=np.int64)
        for i in range(self.low.shape[1]):
            low, high = self.low[:, i], self.high[:, i]
            apart += (np.maximum(low[:, None], low) >= np.minimum(high[:, None], high)).any(axis=-1)
        return apart

    def within(self, domain: tuple[float, float]) -> tuple[TreeLeaves, Ints]:
        """The boxes that hold a point of the public domain, cut to it, and which they are."""
        start, end = np.nextafter(float(domain[0]), -np.inf), float(domain[1])
        low, high = np.maximum(self.low, start), np.minimum(self.high, end)
        kept = np.flatnonzero((low < high).all(axis=(1, 2)))
        return TreeLeaves(low=low[kept], high=high[kept]), kept


def leaves_of(tree: Any, shape: tuple[int, int]) -> tuple[TreeLeaves, Floats]:
    """The boxes and values of a fitted regression tree of scikit-learn, on inputs of ``shape``."""
    nodes = tree.tree_
    n, d = shape
    if nodes.n_features != n * d or nodes.value.shape[1:] != (1, 1):
        raise InvalidArgument(f"tree must have one output and {n * d} features (positions first).")
    low, high, values = [], [], []
    stack = [(0, np.full(n * d, -np.inf), np.full(n * d, np.inf))]
    while stack:
        node, start, end = stack.pop()
        left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
        if left == right:
            low.append(start)
            high.append(end)
            values.append(float(nodes.value[node, 0, 0]))
            continue
        feature, cut = int(nodes.feature[node]), float(nodes.threshold[node])
        below, above = end.copy(), start.copy()
        # x <= cut in single precision: the largest single below the cut is as good a cut.
        below[feature] = above[feature] = _single_below(cut)
        stack += [(left, start, below), (right, above, end)]
    boxes = TreeLeaves(low=np.reshape(low, (-1, n, d)), high=np.reshape(high, (-1, n, d)))
    return boxes, np.array(values)


def _single_below(cut: float) -> float:
    nearest = np.float32(cut)
    down = np.nextafter(nearest, np.float32(-np.inf)) if float(nearest) > cut else nearest
    return float(down)


class TreeClip(LeaveOneOutRange):
    """Ranges around a tree, exact: no training data, no fit.

    ``centers`` are the values of its leaves in whole steps. The middle of its two ``envelopes`` is
    the best function of its slope: no other has a smaller largest error, which is
    ``largest_error``.
    """

    # Theorem: clipping changes by at most `width` steps when one record is replaced.
    # Proof: LooClip, with boxes for anchors: a record is outside a box or not, which is a part in
    #   {0, 1} that depends on this record only. A38.
    # Source: Aoutouf 2021, chapter 6, replaced by the envelopes of a piecewise constant function.

    def __init__(
        self,
        *,
        boxes: TreeLeaves,
        centers: ArrayLike,
        slope: int,
        width: int,
        step: Number = 1,
        missing: float = 0.0,
    ) -> None:
        self.boxes = boxes
        self.centers = whole_steps("centers", centers)
        if len(self.centers) != len(boxes.low):
            raise InvalidArgument(f"centers must be {len(boxes.low)}, one for each box.")
        example = np.zeros((1, *boxes.low.shape[1:]))
        self._accept(_InBoxes(missing=missing), boxes.ends(), example)
        self._steps(slope, width, step)

    @classmethod
    def of(
        cls, tree: Any, *, shape: tuple[int, int], slope: int, width: int, step: Number
    ) -> TreeClip:
        """The ranges of a fitted tree of scikit-learn; its values are rounded down to steps."""
        boxes, values = leaves_of(tree, shape)
        return cls(boxes=boxes, centers=_down(values, step), slope=slope, width=width, step=step)

    def envelopes(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """``min(v + slope k)`` and ``max(v - slope k)``, k the records outside the leaf of v.

        The largest function of this slope that is nowhere above the tree, and the smallest that is
        nowhere below it, in steps.
        """
        found = self.metric.coordinates(same_shape(inputs, self.shape))
        rise = self.slope * (
            self.metric.total(self.metric.between(found, self._coordinates)) >> FINE
        )
        return (self.centers + rise).min(axis=1), (self.centers - rise).max(axis=1)

    @property
    def largest_error(self) -> Fraction:
        """How far the middle of the envelopes is from the tree at worst, in steps: the least."""
        excess = self.centers[:, None] - self.centers - self.slope * self.boxes.apart()
        return Fraction(max(0, int(excess.max())), 2)


class SumClip(OutputRanges):
    """The ranges of a sum: the sums of the ranges of its terms."""

    # Theorem: clipping the sum changes by at most the sum of the widths.
    # Proof: `high - low'` adds up, term by term, for the same pair of neighbors.

    def __init__(self, terms: Sequence[OutputRanges]) -> None:
        if not terms or len({(term.step, term.relation_words) for term in terms}) != 1:
            raise InvalidArgument(
                "terms must be ranges of one step and one relation, at least one."
            )
        self.terms = tuple(terms)
        self.step = terms[0].step
        self.width = sum(term.width for term in terms)

    @classmethod
    def of_forest(
        cls, forest: Any, *, shape: tuple[int, int], slope: int, width: int, step: Number
    ) -> SumClip:
        """The ranges of a fitted forest of scikit-learn: slope and width are split over its trees.

        What does not divide goes to the first trees.
        """
        trees = list(forest.estimators_)
        slopes, widths = _split(slope, len(trees)), _split(width, len(trees))
        terms = []
        for tree, part_slope, part_width in zip(trees, slopes, widths, strict=True):
            boxes, values = leaves_of(tree, shape)
            centers = _down(values / len(trees), step)
            terms.append(
                TreeClip(
                    boxes=boxes, centers=centers, slope=part_slope, width=part_width, step=step
                )
            )
        return cls(terms)

    @property
    def relation_words(self) -> str:
        return self.terms[0].relation_words

    @property
    def hull(self) -> tuple[int, int]:
        hulls = [term.hull for term in self.terms]
        return sum(low for low, _ in hulls), sum(high for _, high in hulls)

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        ends = [term.ranges(inputs) for term in self.terms]
        lows: Ints = np.sum([low for low, _ in ends], axis=0)
        highs: Ints = np.sum([high for _, high in ends], axis=0)
        return lows, highs


def _split(steps: int, parts: int) -> list[int]:
    share, rest = divmod(count("steps", steps, minimum=0), parts)
    return [share + (at < rest) for at in range(parts)]


def _down(values: Floats, step: Number) -> Ints:
    scaled = np.floor(np.ldexp(values, -exponent_of(power_of_two(step))))
    if np.abs(scaled).max() > _MOST_STEPS:
        raise InvalidArgument("step is too small for the values of the tree.")
    return scaled.astype(np.int64)
