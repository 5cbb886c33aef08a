"""Trees and forests: their best bounded envelopes, without any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.models.learned.loo import LooClip
from discreet.models.learned.metrics import FINE, Floats, Ints, Records
from discreet.models.learned.ranges import (
    Ranges,
    exponent_of,
    power_of_two,
    same_shape,
    whole_steps,
)

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


class Boxes:
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
        """How many positions every input of one box must change to come into another (A1 v).

        Those at which the projections do not meet: (leaves, leaves).
        """
        apart = np.zeros((len(self.low),) * 2, dtype=np.int64)
        for i in range(self.low.shape[1]):
            low, high = self.low[:, i], self.high[:, i]
            apart += (np.maximum(low[:, None], low) >= np.minimum(high[:, None], high)).any(axis=-1)
        return apart

    def within(self, domain: tuple[float, float]) -> tuple[Boxes, Ints]:
        """The boxes that hold a point of the public domain, cut to it, and which they are."""
        start, end = np.nextafter(float(domain[0]), -np.inf), float(domain[1])
        low, high = np.maximum(self.low, start), np.minimum(self.high, end)
        kept = np.flatnonzero((low < high).all(axis=(1, 2)))
        return Boxes(low=low[kept], high=high[kept]), kept


def leaves_of(tree: Any, shape: tuple[int, int]) -> tuple[Boxes, Floats]:
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
    boxes = Boxes(low=np.reshape(low, (-1, n, d)), high=np.reshape(high, (-1, n, d)))
    return boxes, np.array(values)


def _single_below(cut: float) -> float:
    nearest = np.float32(cut)
    down = np.nextafter(nearest, np.float32(-np.inf)) if float(nearest) > cut else nearest
    return float(down)


class TreeClip(LooClip):
    """Ranges around a tree, exact: no training data, no fit.

    ``centres`` are the values of its leaves in whole steps. The middle of its two ``envelopes`` is
    the best function of its slope: no other has a smaller largest error, which is
    ``largest_error``.

    Theorem: clipping changes by at most ``width`` steps when one record is replaced.
    Proof: LooClip, with boxes for anchors: a record is outside a box or not, which is a part in
        {0, 1} that depends on this record only. A38.
    Source: Aoutouf 2021, chapter 6, replaced by the envelopes of a piecewise constant function.
    """

    def __init__(
        self,
        *,
        boxes: Boxes,
        centres: ArrayLike,
        slope: int,
        width: int,
        step: Number = 1,
        missing: float = 0.0,
    ) -> None:
        self.boxes = boxes
        self.centres = whole_steps("centres", centres)
        if len(self.centres) != len(boxes.low):
            raise InvalidArgument(f"centres must be {len(boxes.low)}, one for each box.")
        example = np.zeros((1, *boxes.low.shape[1:]))
        self._accept(_InBoxes(missing=missing), boxes.ends(), example)
        self._steps(slope, width, step)

    @classmethod
    def of(
        cls, tree: Any, *, shape: tuple[int, int], slope: int, width: int, step: Number
    ) -> TreeClip:
        """The ranges of a fitted tree of scikit-learn; its values are rounded down to steps."""
        boxes, values = leaves_of(tree, shape)
        return cls(boxes=boxes, centres=_down(values, step), slope=slope, width=width, step=step)

    def envelopes(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """``min(v + slope k)`` and ``max(v - slope k)``, k the records outside the leaf of v.

        The largest function of this slope that is nowhere above the tree, and the smallest that is
        nowhere below it, in steps.
        """
        found = self.metric.coordinates(same_shape(inputs, self.shape))
        rise = self.slope * (
            self.metric.total(self.metric.between(found, self._coordinates)) >> FINE
        )
        return (self.centres + rise).min(axis=1), (self.centres - rise).max(axis=1)

    @property
    def largest_error(self) -> Fraction:
        """How far the middle of the envelopes is from the tree at worst, in steps: the least."""
        excess = self.centres[:, None] - self.centres - self.slope * self.boxes.apart()
        return Fraction(max(0, int(excess.max())), 2)


class SumClip(Ranges):
    """The ranges of a sum: the sums of the ranges of its terms.

    Theorem: clipping the sum changes by at most the sum of the widths.
    Proof: ``high - low'`` adds up, term by term, for the same pair of neighbours.
    """

    def __init__(self, terms: Sequence[Ranges]) -> None:
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
            centres = _down(values / len(trees), step)
            terms.append(
                TreeClip(
                    boxes=boxes, centres=centres, slope=part_slope, width=part_width, step=step
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
