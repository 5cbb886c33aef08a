"""A surrogate that adds up curves of counts, none steeper than one event may move it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.models.learned.deviations import least_deviations
from discreet.models.learned.metrics import FINE, ONE, Ints, UnitCount
from discreet.models.learned.ranges import (
    LARGEST_FINE,
    MetricRanges,
    common,
    fixed,
    power_of_two,
    same_shape,
    slope_and_width,
)


class CountTube(MetricRanges):
    """A tube around a sum of curves, one for each count, where one event is a neighbour.

    A curve is a chain of lines between whole ``knots``; ``rises`` are their slopes per event, whole
    numbers of 2**-20 steps, at most ``slope`` steps either way. Beyond the knots it is flat.

    Theorem: clipping changes by at most ``width`` steps between inputs one event apart; with
        ``slope == width``, by at most ``d * width`` between inputs d events apart.
    Proof: counts are whole, so one event moves one curve by one of its rises, at most ``slope``
        steps, exactly. The rest is the proof of TubeClip. A37.
    Source: Aoutouf 2021, chapter 7, with the neighbours that it names: one car.
    """

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
    return fixed(array.astype(np.int64))
