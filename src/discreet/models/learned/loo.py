"""Ranges from leaving one record out: a private wrapper for any function, in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.models.learned.metrics import FINE, ONE, Floats, Ints, Metric
from discreet.models.learned.ranges import (
    MetricRanges,
    anchored,
    chunks,
    common,
    fits,
    fixed,
    power_of_two,
    same_shape,
    slope_and_width,
    whole_steps,
)

# So many anchors are tried to see whether a metric keeps its bounds.
_TRIED = 16


class LooClip(MetricRanges):
    """Ranges around a public surrogate that never look at the record that may change.

    ``anchors`` are public inputs (K, positions, attributes), ``centres`` what the function should
    be near there, in whole steps; between anchors the surrogate changes by at most ``slope`` steps
    per unit of distance. ``width`` is the sensitivity. Both are in steps of ``step``.

    Theorem: for every function g, clipping g(D) into the range of D changes by at most ``width``
        steps between neighbours of ``metric``, whatever the centres are, fitted well or badly.
    Proof: for a neighbourhood b (a record, an attribute, a window) let e_k be the distance of D to
        anchor k without b, and lo = min(z_k + slope e_k), hi = max(z_k - slope e_k), T = lo + hi.
        The full distance lies in [e_k, e_k + 1], so the surrogate's two ends lie in [lo, lo +
        slope] and [hi - slope, hi], and their sum within ``slope`` of T: the T of all b differ by
        at most 2 slope <= 2 width, so ``max T - width <= min T + width`` and, floored alike at
        both ends, low <= high. Neighbours that differ in b share T_b, and both lie in the floors of
        (T_b -+ width) / 2, which are ``width`` steps apart. Everything is a sum of integers. A35.
    Source: Aoutouf 2021 (clipping to learned ranges); McShane 1934, Whitney 1934 (extension).
    Needs: slope <= width; parts of distances in [0, 1] (held there by force, so any metric will
        do, symmetric or not); public anchors, centres, slope, width and metric.

    >>> from discreet.models.learned.metrics import Records
    >>> clip = LooClip(anchors=[[0, 0]], centres=[10], slope=2, width=4, metric=Records())
    >>> clip.ranges([[0, 0], [1, 0]])
    (array([8, 8]), array([12, 12]))
    """

    def __init__(
        self,
        *,
        anchors: ArrayLike,
        centres: ArrayLike,
        slope: int,
        width: int,
        metric: Metric,
        step: Number = 1,
    ) -> None:
        self.centres = whole_steps("centres", centres)
        self.anchors = anchored(metric, anchors, len(self.centres))
        self._accept(metric, metric.coordinates(self.anchors), self.anchors[:_TRIED])
        self._steps(slope, width, step)

    def _accept(self, metric: Metric, coordinates: Ints, examples: Floats) -> None:
        """Keep the coordinates of what distances are taken to; refuse a metric that is none."""
        if not metric.record_like:
            raise InvalidArgument(
                f"{type(metric).__name__} has no record to leave out: use TubeClip."
            )
        self.metric = metric
        self.shape: tuple[int, ...] = examples.shape[1:]
        self._coordinates = fixed(coordinates)
        parts = metric.between(metric.coordinates(examples), coordinates)
        if parts.min() < 0 or parts.max() > ONE:
            raise InvalidArgument("metric must have parts between 0 and 1, in units of 2**-20.")
        self.positions = parts.shape[-1]

    def _steps(self, slope: int, width: int, step: Number) -> None:
        self.slope, self.width = slope_and_width(slope, width)
        self.step: Fraction = power_of_two(step)
        fits(self.centres, self.slope, self.width, farthest=self.positions * ONE)

    @property
    def hull(self) -> tuple[int, int]:
        # With k attaining lo, hi >= z_k - slope e_k, so T >= 2 z_k; likewise T <= 2 max z.
        low, high = int(self.centres.min()), int(self.centres.max())
        return (2 * low - self.width) // 2, (2 * high + self.width) // 2

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        whole = same_shape(inputs, self.shape)
        if len(whole) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        ends = [self._few(few) for few in chunks(whole, len(self.centres) * self.positions)]
        return (
            np.concatenate([low for low, _ in ends]),
            np.concatenate([high for _, high in ends]),
        )

    def doubled(self, inputs: ArrayLike) -> Ints:
        """Twice the centres of the intervals, one for each neighbourhood, in fine units: (Q, B)."""
        parts = self.metric.between(self.metric.coordinates(inputs), self._coordinates)
        np.clip(parts, 0, ONE, out=parts)
        rise = self.metric.left_out(parts)
        rise *= self.slope
        z = (self.centres << FINE)[:, None]
        lowest: Ints = (z + rise).min(axis=1)
        highest: Ints = np.subtract(z, rise, out=rise).max(axis=1)
        return lowest + highest

    def _few(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        return common(self.doubled(inputs), spread=self.width << FINE)
