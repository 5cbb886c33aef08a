"""A surrogate that adds up what each record contributes, and the ranges around it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Number
from discreet.models.learned.deviations import least_deviations
from discreet.models.learned.metrics import FINE, ONE, Floats, Ints, Metric, WindowGroups
from discreet.models.learned.ranges import (
    LARGEST_FINE,
    MetricRanges,
    common,
    fixed,
    power_of_two,
    same_shape,
    slope_and_width,
)

# So high, doubles still tell whole numbers apart, and so many add up within 64 bits.
_HIGHEST = 1 << 50
_MOST_COLUMNS = 1 << 12


class AdditiveClip(MetricRanges):
    """Ranges around a sum of bounded contributions, one from each record.

    What a record contributes is read off lines between ``knots``, one function for each attribute
    of each position, with whole ``heights`` in units of 2**-20 steps; the sum over its attributes
    is held between zero and ``slope`` steps (a share of it, if neighbours may replace a run of
    records). ``metric`` says who is a neighbour; its distances are not used.

    Theorem: clipping changes by at most ``width`` steps between neighbours, whatever knots, heights
        and offset are.
    Proof: let c_i in [0, m] be the contributions and T_b twice the sum of those outside a
        neighbourhood b of r records, plus r m. Twice the whole sum is within r m <= slope of T_b,
        so all T_b are within 2 slope <= 2 width of each other, and neighbours that differ in b
        share T_b. The rest is the proof of LooClip. Contributions depend on their own record only,
        and everything after them is a sum of integers.
    Source: sums of clipped scores as in private averages; leaving one out as in A35.
    """

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
    """How many records in a row a neighbour may replace."""
    if not metric.record_like:
        raise Unsupported("Sums of contributions need neighbours that replace whole entries.")
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
    return places, tuple(fixed(height.astype(np.int64)) for height in values)


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
