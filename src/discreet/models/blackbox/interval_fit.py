"""Ranges fitted directly, at a fixed sensitivity or at the best one, and a proof in integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.blackbox.lipschitz_fit import Indices, assignment, check_samples
from discreet.models.blackbox.metrics import FINE, Floats, Ints, Metric
from discreet.models.blackbox.output_ranges import (
    MetricRanges,
    check_anchors,
    chunks,
    common,
    make_read_only,
    power_of_two,
    same_shape,
    whole_steps,
)

_ROUNDING = 1e-12
_LARGEST = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFit:
    """Ranges at the anchors with ``high_j - low_k <= width * max(1, d_jk)``, and their loss.

    ``loss`` is the total distance of y to the ranges; no mechanism that clips to ranges and has
    this sensitivity has a loss below ``loss - gap``.
    """

    low: Floats
    high: Floats
    width: float
    loss: float
    gap: float


def fit_intervals(y: ArrayLike, distances: ArrayLike, width: float) -> IntervalFit:
    """The ranges of sensitivity ``width`` that y leaves least.

    >>> fit_intervals([0, 10], [[0, 1], [1, 0]], 4).loss
    6.0
    """
    # Theorem: the least loss is the largest weight of an assignment of samples i to samples j,
    #   where a pair weighs `max(0, y_i - y_j - width * max(1, d_ij))`.
    # Proof: the dual is a flow from upper ends that are too low to lower ends that are too high. A
    #   detour over a third sample costs `width` times two distances, each at least one, whose sum
    #   is no less than that of the direct way. See the centers, which have one end only. A33, A32.
    values, apart = _pairs(y, distances)
    size = float(non_negative("width", width))
    toll = size * apart
    high_at, low_at, gain = assignment(values, toll)
    area = (np.asarray(distances) == 0).argmax(axis=1)
    low, high = _ends(values, toll, (high_at, low_at), area)
    found = float((np.maximum(values - high, 0) + np.maximum(low - values, 0)).sum())
    broken = float(np.maximum(high[:, None] - low[None, :] - toll, 0).max())
    empty = float(np.maximum(low - high, 0).max())
    return IntervalFit(
        low=low,
        high=high,
        width=size,
        loss=found,
        gap=found - gain + 2 * len(values) * (broken + empty),
    )


def best_width(y: ArrayLike, distances: ArrayLike, *, epsilon: Number) -> IntervalFit:
    """The ranges with the least ``mean loss + width / epsilon``: the sensitivity is chosen too.

    The objective is convex and piecewise linear in the width, and the assignment at one width is a
    line below it. Where a falling and a rising line cross is tried next, until the crossing lies on
    the objective: that is its least. It may be at zero: then the best answer is a public constant.
    """
    values, apart = _pairs(y, distances)
    price = 1 / float(positive("epsilon", epsilon))

    def line(width: float) -> tuple[float, float]:
        high_at, low_at, gain = assignment(values, width * apart)
        slope = price - float(apart[high_at, low_at].sum()) / len(values)
        return gain / len(values) + (price - slope) * width, slope

    at, falling, rising = 0.0, line(0.0), (0.0, price)  # wide ranges have no loss
    while falling[1] < 0:
        at = (falling[0] - rising[0]) / (rising[1] - falling[1])
        crossing, found = falling[0] + falling[1] * at, line(at)
        if found[0] + found[1] * at <= crossing + _ROUNDING * float(np.ptp(values)):
            break
        falling, rising = (found, rising) if found[1] < 0 else (falling, found)
    return fit_intervals(values, np.asarray(distances), at)


def _pairs(y: ArrayLike, distances: ArrayLike) -> tuple[Floats, Floats]:
    """What must be apart by at most so many widths: the distances, and one within an area."""
    values, apart = check_samples(y, distances)
    return values, np.maximum(apart, 1)


def _ends(
    y: Floats, toll: Floats, pairs: tuple[Indices, Indices], area: Indices
) -> tuple[Floats, Floats]:
    """The middle of all best ranges: halfway between the highest and the lowest of them."""
    high_at, low_at = pairs
    low, high = _highest(y, toll, (high_at, low_at), area)
    # Turned upside down, low ends are high ends.
    high_turned, low_turned = _highest(-y, toll.T, (low_at, high_at), area)
    return (low - low_turned) / 2, (high - high_turned) / 2


def _highest(
    y: Floats, toll: Floats, pairs: tuple[Indices, Indices], area: Indices
) -> tuple[Floats, Floats]:
    """The highest ranges that the assignment allows: shortest paths, as for the centers."""
    above, below = pairs
    back = toll[above, below]
    high, low = np.full(len(y), np.inf), y.copy()
    high[above] = y[above]
    low[below] = np.inf
    for _ in range(2 * len(y) + 2):
        before = np.concatenate([low, high])
        high = np.minimum(high, (low + toll).min(axis=1))
        low[below] = np.minimum(low[below], high[above] - back)
        low = np.minimum(low, high)
        for ends in (low, high):  # samples of one area have one range
            least = np.full(len(y), np.inf)
            np.minimum.at(least, area, ends)
            ends[:] = least[area]
        if np.allclose(before, np.concatenate([low, high]), rtol=1e-13, atol=0):
            break
    return low, high


class IntervalClip(MetricRanges):
    """Fitted ranges at public anchors, carried over to every area without listing areas."""

    # Theorem: clipping changes by at most `width` steps between neighbors.
    # Proof: the ends at the anchors keep `high_j - low_k <= width max(1, d_jk)` and low <= high:
    #   the constructor checks all pairs in integers and refuses otherwise. Any other area gets
    #   the floored middle between the least `low_a + width max(1, d)` and the greatest `high_a
    #   - width max(1, d)`, which keeps the same inequalities. On a line (all areas that differ
    #   in one position) the highest high and the lowest low are then at most `width` apart;
    #   the interval of length `width` around their middle holds all ranges of the line and
    #   depends on the line only. The range is the intersection over all lines. Rounding floors
    #   both ends alike. A33, A34.
    # Source: Aoutouf 2021, corrected.
    # Needs: a metric of cells (`Records` or `CellMetric`), which has finitely many areas on a
    #   line.

    def __init__(
        self,
        *,
        anchors: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        width: int,
        metric: Metric,
        step: Number = 1,
    ) -> None:
        self.low, self.high = whole_steps("low", low), whole_steps("high", high)
        self.anchors = check_anchors(metric, anchors, len(self.low))
        self.width = count("width", width, minimum=0)
        self.step: Fraction = power_of_two(step)
        self.metric = metric
        if not metric.discrete:
            raise InvalidArgument("metric must be one of cells: Records or Cells.")
        self._coordinates = make_read_only(metric.coordinates(self.anchors))
        farthest = self.anchors[0].size + 1
        if max(abs(end) for end in self.hull) + farthest * self.width > _LARGEST:
            raise InvalidArgument("low, high and width have too many steps: use a larger step.")
        apart = metric.distances(self.anchors, self.anchors) >> FINE
        certify_intervals(self.low, self.high, apart, width=self.width)
        self._lines = _lines(metric, self._coordinates)

    @classmethod
    def fitted(
        cls, *, anchors: ArrayLike, y: ArrayLike, width: int, metric: Metric, step: Number = 1
    ) -> IntervalClip:
        """The best ranges for y, in whole steps, at the anchors (public, all of it).

        Whole y and width have whole solutions of the assignment, and their middle, floored at both
        ends, keeps every inequality; the constructor checks that in integers all the same.
        """
        steps = whole_steps("y", y)
        apart = metric.distances(anchors, anchors) >> FINE
        fit = fit_intervals(steps, apart, width)
        low, high = (np.floor(ends).astype(np.int64) for ends in (fit.low, fit.high))
        return cls(anchors=anchors, low=low, high=high, width=width, metric=metric, step=step)

    @property
    def hull(self) -> tuple[int, int]:
        # Middles lie between the lowest low and the highest high, and so does every line's center.
        low, high = int(self.low.min()), int(self.high.max())
        return (2 * low - self.width) // 2, (2 * high + self.width) // 2

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        whole = same_shape(inputs, self.anchors.shape[1:])
        lows, highs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for few in chunks(whole, len(self.low) * len(self._lines)):
            parts = self.metric.between(self.metric.coordinates(few), self._coordinates) >> FINE
            rest = self.metric.left_out(parts)
            doubled = np.stack(
                [self._doubled(rest[:, :, i], line) for i, line in enumerate(self._lines)], axis=1
            )
            low, high = common(doubled, spread=self.width, unit=1)
            lows.append(low)
            highs.append(high)
        return np.concatenate(lows), np.concatenate(highs)

    def _doubled(self, rest: Ints, line: _Line) -> Ints:
        """Twice the center of a line, from the distances ``rest`` to the anchors without it."""
        near = self.width * np.maximum(rest, 1)[:, line.order]
        far = self.width * (rest + 1)
        low, high = self.low[line.order], self.high[line.order]
        top = np.minimum(
            np.minimum.reduceat(low + near, line.starts, axis=1),
            (self.low + far).min(axis=1, keepdims=True),
        )
        bottom = np.maximum(
            np.maximum.reduceat(high - near, line.starts, axis=1),
            (self.high - far).max(axis=1, keepdims=True),
        )
        middle = (top + bottom) // 2
        # An area with an anchor keeps the range of the anchor.
        here = rest[:, line.order] == 0
        trained = np.logical_or.reduceat(here, line.starts, axis=1)
        own_low = np.minimum.reduceat(np.where(here, low, _LARGEST), line.starts, axis=1)
        own_high = np.maximum.reduceat(np.where(here, high, -_LARGEST), line.starts, axis=1)
        lowest = np.where(trained, own_low, middle).min(axis=1)
        highest = np.where(trained, own_high, middle).max(axis=1)
        if line.others:
            empty = (self.low + far).min(axis=1) + (self.high - far).max(axis=1)
            lowest, highest = np.minimum(lowest, empty // 2), np.maximum(highest, empty // 2)
        doubled: Ints = lowest + highest
        return doubled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The anchors in the order of their cells at one position, and where each cell begins."""

    order: Indices
    starts: Indices
    others: bool
    """Whether the position has cells that no anchor lies in."""


def _lines(metric: Metric, coordinates: Ints) -> list[_Line]:
    labels, sizes = metric.cells(coordinates)
    lines = []
    for column, size in zip(labels.T, sizes, strict=True):
        order = np.argsort(column, kind="stable")
        starts = np.flatnonzero(np.diff(column[order], prepend=-1))
        others = size is None or len(starts) < size
        lines.append(_Line(order=order, starts=starts, others=others))
    return lines


def certify_intervals(low: Ints, high: Ints, distances: Ints, *, width: int) -> None:
    """Refuse ranges at anchors that break one of the inequalities, in integers.

    These checks certify every area, also those without an anchor, by the proof of IntervalClip.
    """
    if low.shape != high.shape:
        raise InvalidArgument("low and high must be as many.")
    if (low > high).any():
        raise NotCertified(f"The range of anchor {int((low - high).argmax())} is empty.")
    excess = high[:, None] - low[None, :] - width * np.maximum(distances, 1)
    if (excess > 0).any():
        worst = tuple(int(k) for k in np.unravel_index(int(excess.argmax()), excess.shape))
        raise NotCertified(f"The ranges of anchors {worst} are {int(excess.max())} steps too far.")
    same = distances == 0
    if (same & ((low[:, None] != low) | (high[:, None] != high))).any():
        raise NotCertified("Anchors in one area must have one range.")
