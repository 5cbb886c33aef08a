"""The surrogate between the anchors: the largest and smallest functions of bounded slope."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.models.learned.metrics import FINE, ONE, Ints, Metric
from discreet.models.learned.ranges import (
    LARGEST_FINE,
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

# So many distances of counts add up without leaving the 64 bits.
_MOST_ENTRIES = 1 << 12


class Extension:
    """McShane-Whitney extension of centres at anchors to all inputs; no area is ever listed.

    ``upper(D) = min(z_k + slope d(D, k))`` and ``lower(D) = max(z_k - slope d(D, k))``, and their
    middle.

    Theorem: all three change by at most ``slope * d(D, D')`` between any two inputs, for any
        centres; they meet the centres if ``z_j - z_k <= slope d(j, k)`` for all anchors. Hence
        fitting only the anchors loses nothing against fitting every area there is.
    Proof: each term changes by at most slope d(D, D') by the triangle inequality, and so do
        minimum, maximum and mean. Floors of integers over an integer keep whole differences. A31.
    Source: McShane 1934; Whitney 1934.
    """

    def __init__(
        self, *, anchors: ArrayLike, centres: ArrayLike, slope: int, metric: Metric
    ) -> None:
        self.centres = whole_steps("centres", centres)
        self.anchors = anchored(metric, anchors, len(self.centres))
        self.slope, _ = slope_and_width(slope, slope)
        self.metric = metric
        if math.prod(self.anchors.shape[1:]) > _MOST_ENTRIES:
            raise InvalidArgument(f"anchors may have at most {_MOST_ENTRIES} entries each.")
        self._coordinates = fixed(metric.coordinates(self.anchors))
        # Distances beyond this cannot matter and are cut off, which keeps them a metric.
        self._farthest = (LARGEST_FINE >> 2) // max(1, self.slope)
        fits(self.centres, 1, self.slope, farthest=ONE)

    def ends(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """The largest and the smallest extension, in fine units of 2**-20 steps."""
        whole = same_shape(inputs, self.anchors.shape[1:])
        uppers, lowers = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        z = self.centres << FINE
        for few in chunks(whole, self._coordinates.size):
            parts = self.metric.between(self.metric.coordinates(few), self._coordinates)
            rise = np.minimum(self.metric.total(parts), self._farthest) * self.slope
            uppers.append((z + rise).min(axis=1))
            lowers.append((z - rise).max(axis=1))
        return np.concatenate(uppers), np.concatenate(lowers)

    def doubled(self, inputs: ArrayLike) -> Ints:
        """Twice the middle, in fine units."""
        upper, lower = self.ends(inputs)
        return upper + lower

    def middle(self, inputs: ArrayLike) -> Ints:
        """The middle in whole steps, rounded down."""
        return self.doubled(inputs) // (2 * ONE)


class TubeClip(MetricRanges):
    """Ranges of fixed width around the surrogate, for any metric (A37).

    Theorem: clipping changes by at most ``width`` steps between inputs at distance at most one.
        With ``slope == width`` the range is a single point, the surrogate itself: then inputs at
        whole distance d differ by at most ``d * width``, which is privacy in proportion to the
        distance. A wider range has no such proportion: then only neighbours are protected.
    Proof: the ends are the floors of (T -+ (width - slope)) / 2, and T moves by at most 2 slope
        between neighbours: (T + width - slope) - (T' - width + slope) <= 2 width.
    Source: Aoutouf 2021; Chatzikokolakis, Andrés, Bordenabe, Palamidessi 2013 (metric privacy).
    Needs: the triangle inequality, which the metrics of this package have.

    >>> from discreet.models.learned.metrics import UnitCount
    >>> cars = TubeClip(anchors=[[5, 7]], centres=[60], slope=1, width=1, metric=UnitCount())
    >>> cars.ranges([[5, 9]])
    (array([60]), array([60]))
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
        slope, self.width = slope_and_width(slope, width)
        self.metric = metric
        self.surrogate = Extension(anchors=anchors, centres=centres, slope=slope, metric=metric)
        self.step: Fraction = power_of_two(step)
        fits(self.surrogate.centres, 1, self.width, farthest=ONE)

    @property
    def proportional(self) -> bool:
        """Whether farther inputs are protected in proportion to their distance: only unclipped."""
        return self.width == self.surrogate.slope

    @property
    def hull(self) -> tuple[int, int]:
        centres, spread = self.surrogate.centres, self.width - self.surrogate.slope
        return (2 * int(centres.min()) - spread) // 2, (2 * int(centres.max()) + spread) // 2

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        doubled = self.surrogate.doubled(inputs)[:, None]
        return common(doubled, spread=(self.width - self.surrogate.slope) << FINE)
