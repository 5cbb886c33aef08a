"""Curves as SVG text: no library, told apart by dashes and marks, readable in black and white."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from discreet.core.number_format import short

_WIDTH, _HEIGHT = 460, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 74, 34, 236, 76
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2 2 2", "3 1")
_MARKS = ("circle", "square", "triangle", "diamond", "cross", "ring", "bar", "box", "plus")
_MOST_WORDS = 5
_GRAYS = ("#000", "#555", "#000", "#555", "#000", "#555", "#000", "#555", "#000")
_LEGEND = 31
"""Letters beside a mark; longer labels take a second line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartCurve:
    """Points in order; ``joined`` by a line or alone."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """What is shown, in which unit, and whether by its logarithm."""

    label: str
    log: bool = False
    words: Callable[[float], str] | None = None
    """What is written at a tick, if that is not its number; nothing there, no tick."""
    zero: bool = True
    """Whether zero is on it, unless by logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBand:
    """What lies between two curves over the same places, in gray."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def curves(
    lines: Sequence[ChartCurve],
    *,
    x: ChartAxis,
    y: ChartAxis,
    title: str,
    note: str,
    band: ChartBand | None = None,
) -> str:
    """A chart of up to nine curves; what is infinite, or not positive on logs, is left out."""
    across = ChartScale.of(
        [v for line in lines for v in line.x], x, start=_LEFT, end=_LEFT + _WIDTH
    )
    heights = [v for line in lines for v in line.y]
    heights += [] if band is None else [*band.low, *band.high]
    up = ChartScale.of(heights, y, start=_TOP + _HEIGHT, end=_TOP)
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="4" y="18" font-size="13" font-weight="bold">{escape(title)}</text>',
        *_axes(across, up, x, y),
    ]
    parts += [] if band is None else [_between(band, across, up)]
    every = 20 if all(len(line.label) <= _LEGEND for line in lines) else 32
    for i, line in enumerate(lines):
        parts += _curve(line, i, across, up)
        parts += _legend(line, i, every)
    parts.append(f'<text x="4" y="{height - 8}" fill="#555" font-size="11">{escape(note)}</text>')
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartScale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    @classmethod
    def of(
        cls, values: Sequence[float], axis: ChartAxis, *, start: float, end: float
    ) -> ChartScale:
        kept = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)] or [1.0]
        low, high = min(kept), max(kept)
        if axis.zero and not axis.log:
            low, high = min(low, 0.0), high * 1.04 if high > 0 else 0.0
        if low == high:
            low, high = (low / 2, high * 2) if axis.log else (low - 0.5, high + 0.5)
        return cls(low=low, high=high, start=start, end=end, log=axis.log)

    def place(self, value: float) -> float | None:
        """Where a value is drawn."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers inside."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 3 else (1,)
            marks = [s * 10.0**k for k in range(first, last + 1) for s in steps]
            return [v for v in marks if self.low * 0.999 <= v <= self.high * 1.001]
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        while (self.high - self.low) / step < 4:
            step /= 2
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * k for k in range(first, last + 1)]


def _axes(across: ChartScale, up: ChartScale, x: ChartAxis, y: ChartAxis) -> list[str]:
    base, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = [_line(_LEFT, base, right, base), _line(_LEFT, _TOP, _LEFT, base)]
    for tick, words in _told(across.ticks(), x):
        place = across.place(tick) or 0.0
        parts.append(_line(place, base, place, base + 4))
        parts.append(
            f'<text x="{place:.1f}" y="{base + 17}" text-anchor="middle">{escape(words)}</text>'
        )
    for tick in up.ticks():
        place = up.place(tick) or 0.0
        parts.append(_line(_LEFT, place, right, place, stroke="#ddd"))
        parts.append(
            f'<text x="{_LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{short(tick)}</text>'
        )
    middle = _TOP + _HEIGHT / 2
    parts.append(
        f'<text x="{_LEFT + _WIDTH / 2}" y="{base + 36}" text-anchor="middle">'
        f"{escape(_named(x))}</text>"
    )
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(_named(y))}</text>"
    )
    return parts


def _told(ticks: Sequence[float], axis: ChartAxis) -> list[tuple[float, str]]:
    """Ticks with what is written there; words are longer than numbers, so there are fewer."""
    if axis.words is None:
        return [(tick, short(tick)) for tick in ticks]
    told = [(tick, words) for tick in ticks if (words := axis.words(tick))]
    return told[:: -(-len(told) // _MOST_WORDS) or 1]


def _between(band: ChartBand, across: ChartScale, up: ChartScale) -> str:
    there = list(zip(band.x, band.high, strict=True))
    back = list(zip(band.x, band.low, strict=True))[::-1]
    path = " ".join(
        f"{px:.1f},{py:.1f}"
        for vx, vy in (*there, *back)
        if (px := across.place(vx)) is not None and (py := up.place(vy)) is not None
    )
    return f'<polygon points="{path}" fill="#ccc" stroke="none"/>'


def _named(axis: ChartAxis) -> str:
    return f"{axis.label} (log scale)" if axis.log else axis.label


def _curve(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> list[str]:
    places = [
        (px, py)
        for vx, vy in zip(line.x, line.y, strict=True)
        if (px := across.place(vx)) is not None and (py := up.place(vy)) is not None
    ]
    parts = []
    if line.joined and places:
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        parts.append(f'<polyline points="{path}" fill="none" {_stroke(i)}/>')
    # A dozen marks tell curves apart; one on each of a thousand points would hide them.
    every = max(1, len(places) // 12) if line.joined else 1
    return parts + [_mark(px, py, i) for px, py in places[::every]]


def _legend(line: ChartCurve, i: int, every: int) -> list[str]:
    left, y = _LEFT + _WIDTH + 12, _TOP + 10 + every * i
    parts = []
    if line.joined:
        parts.append(f'<polyline points="{left},{y} {left + 34},{y}" fill="none" {_stroke(i)}/>')
    parts.append(_mark(left + 17, y, i))
    rows = wrap(line.label, _LEGEND, max_lines=2, placeholder="…") or [""]
    return parts + [
        f'<text x="{left + 42}" y="{y + 4 + 13 * row}" font-size="11">{escape(words)}</text>'
        for row, words in enumerate(rows)
    ]


def _stroke(i: int) -> str:
    k = i % len(_DASHES)
    dash = f' stroke-dasharray="{_DASHES[k]}"' if _DASHES[k] else ""
    return f'stroke="{_GRAYS[k]}" stroke-width="1.4"{dash}'


def _mark(x: float, y: float, i: int) -> str:
    k = i % len(_MARKS)
    corners: tuple[tuple[int, int], ...]
    ink = f'stroke="{_GRAYS[k]}" stroke-width="1.2"'
    match _MARKS[k]:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_GRAYS[k]}"/>'
        case "ring":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#fff" {ink}/>'
        case "square":
            return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="#fff" {ink}/>'
        case "box":
            return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="#555"/>'
        case "triangle":
            corners = ((0, -4), (4, 3), (-4, 3))
        case "diamond":
            corners = ((0, -4), (4, 0), (0, 4), (-4, 0))
        case "bar":
            corners = ((0, -5), (0, 5))
        case "plus":
            corners = ((0, -4), (0, 4), (0, 0), (-4, 0), (4, 0), (0, 0))
        case _:
            corners = ((-3, -3), (3, 3), (0, 0), (3, -3), (-3, 3), (0, 0))
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{path}" fill="#fff" {ink}/>'


def _line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = "#000") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{stroke}" stroke-width="1"/>'
    )
