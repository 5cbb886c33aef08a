"""From values to places: axes, scales, ticks and points, the same for every painter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discreet.core.number_format import short

_MOST_WORDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartCurve:
    """Points in order; ``joined`` by a line or alone."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBand:
    """What lies between two curves over the same places, in gray."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """What is shown, in which unit, and whether by its logarithm."""

    label: str
    log: bool = False
    words: Callable[[float], str] | None = None
    """What is written at a tick, if that is not its number; nothing there, no tick."""
    zero: bool = True
    """Whether zero is on it, unless by logarithms."""

    @property
    def title(self) -> str:
        """What is written beside the axis."""
        return f"{self.label} (log scale)" if self.log else self.label

    def told(self, ticks: Sequence[float]) -> list[tuple[float, str]]:
        """Ticks with what is written there; words are longer than numbers, so there are fewer."""
        if self.words is None:
            return [(tick, short(tick)) for tick in ticks]
        return few([(tick, words) for tick in ticks if (words := self.words(tick))])


def few(told: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Every so many-th of the ticks, so that five words have room."""
    return list(told[:: max(1, -(-len(told) // _MOST_WORDS))])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartScale:
    """From values to places between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    @classmethod
    def of(
        cls, values: Sequence[float], axis: ChartAxis, *, start: float, end: float
    ) -> ChartScale:
        """The scale of an axis that holds all values; with air above them."""
        kept = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)] or [1.0]
        low, high = min(kept), max(kept)
        if axis.zero and not axis.log:
            low, high = min(low, 0.0), high * 1.04 if high > 0 else 0.0
        if low == high:
            low, high = (low / 2, high * 2) if axis.log else (low - 0.5, high + 0.5)
        return cls(low=low, high=high, start=start, end=end, log=axis.log)

    @classmethod
    def tight(cls, values: Sequence[float], *, log: bool, start: float, end: float) -> ChartScale:
        """The scale that begins and ends with its values; by logarithms, at a power of ten."""
        kept = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        kept = kept or [1.0 if log else 0.0]
        low, high = min(kept), max(kept)
        if log:
            low = 10.0 ** math.floor(math.log10(low / 1.5))
        elif low == high:
            low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
        return cls(low=low, high=high, start=start, end=end, log=log)

    def place(self, value: float) -> float | None:
        """Where a value is drawn."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def within(self, value: float) -> float:
        """Where a value is drawn, or the nearest end of the scale."""
        place = self.place(value)
        if place is None:
            return self.end if value == math.inf else self.start
        return min(max(place, min(self.start, self.end)), max(self.start, self.end))

    def ticks(self, *, tens: bool = False) -> list[float]:
        """Round numbers inside; with ``tens``, by logarithms, only powers of ten."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 3 and not tens else (1,)
            marks = [s * 10.0**k for k in range(first, last + 1) for s in steps]
            return [v for v in marks if self.low * 0.999 <= v <= self.high * 1.001]
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        while (self.high - self.low) / step < 4:
            step /= 2
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * k for k in range(first, last + 1)]


def points(
    x: Sequence[float], y: Sequence[float], across: ChartScale, up: ChartScale
) -> list[tuple[float, float]]:
    """The places of points that have one: what is infinite, or not positive on logs, has none."""
    return [
        (px, py)
        for vx, vy in zip(x, y, strict=True)
        if (px := across.place(vx)) is not None and (py := up.place(vy)) is not None
    ]


def around(band: ChartBand, across: ChartScale, up: ChartScale) -> list[tuple[float, float]]:
    """The corners of a band, there and back."""
    return points(band.x, band.high, across, up) + points(band.x, band.low, across, up)[::-1]


def reach(lines: Sequence[ChartCurve], band: ChartBand | None) -> tuple[list[float], list[float]]:
    """All that the axes of curves and their band have to hold: across, and up."""
    heights = [v for line in lines for v in line.y]
    return [v for line in lines for v in line.x], heights + (
        [] if band is None else [*band.low, *band.high]
    )
