"""Curves as SVG text: no library, told apart by dashes and marks, readable in black and white."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from discreet.core.number_format import short
from discreet.report.drawing.axis import (
    ChartAxis,
    ChartBand,
    ChartCurve,
    ChartScale,
    around,
    points,
    reach,
)
from discreet.report.drawing.paper import line as _line
from discreet.report.drawing.paper import paper

_WIDTH, _HEIGHT = 460, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 74, 34, 236, 76
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2 2 2", "3 1")
_MARKS = ("circle", "square", "triangle", "diamond", "cross", "ring", "bar", "box", "plus")
_GRAYS = ("#000", "#555", "#000", "#555", "#000", "#555", "#000", "#555", "#000")
_LEGEND = 31
"""Letters beside a mark; longer labels take a second line."""


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
    places, heights = reach(lines, band)
    across = ChartScale.of(places, x, start=_LEFT, end=_LEFT + _WIDTH)
    up = ChartScale.of(heights, y, start=_TOP + _HEIGHT, end=_TOP)
    height = _TOP + _HEIGHT + _BOTTOM
    parts = paper(_LEFT + _WIDTH + _RIGHT, height, title)
    parts += _axes(across, up, x, y)
    if band is not None:
        path = _path(around(band, across, up))
        parts.append(f'<polygon points="{path}" fill="#ccc" stroke="none"/>')
    every = 20 if all(len(line.label) <= _LEGEND for line in lines) else 32
    for i, line in enumerate(lines):
        parts += _curve(line, i, across, up)
        parts += _legend(line, i, every)
    parts.append(f'<text x="4" y="{height - 8}" fill="#555" font-size="11">{escape(note)}</text>')
    return "\n".join([*parts, "</svg>"])


def _axes(across: ChartScale, up: ChartScale, x: ChartAxis, y: ChartAxis) -> list[str]:
    base, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = [_line(_LEFT, base, right, base), _line(_LEFT, _TOP, _LEFT, base)]
    for tick, words in x.told(across.ticks()):
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
        f"{escape(x.title)}</text>"
    )
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(y.title)}</text>"
    )
    return parts


def _curve(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> list[str]:
    places = points(line.x, line.y, across, up)
    parts = []
    if line.joined and places:
        parts.append(f'<polyline points="{_path(places)}" fill="none" {_stroke(i)}/>')
    # A dozen marks tell curves apart; one on each of a thousand points would hide them.
    every = max(1, len(places) // 12) if line.joined else 1
    return parts + [_mark(px, py, i) for px, py in places[::every]]


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


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
    path = _path([(x + dx, y + dy) for dx, dy in corners])
    return f'<polygon points="{path}" fill="#fff" {ink}/>'
