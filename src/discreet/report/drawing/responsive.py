"""Panels for a page that may be narrow or wide, light or dark.

Places are shares of the width, so letters keep their size on a phone; colors are classes of the
page's style sheet, so no style stands in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.core.number_format import short
from discreet.report.drawing import bar_chart as svg
from discreet.report.drawing.line_chart import ChartAxis, ChartBand, ChartCurve, ChartScale
from discreet.report.drawing.panel import BarPanel, HeatPanel, LinePanel, Panel, printable

_MOST = 40
_TALL = 220
_FINE = 1000
"""Units of a drawing that is stretched to the width."""
_SERIES = 6
"""Kinds of lines that the style sheet tells apart."""


def drawn(panel: Panel) -> str:
    """A panel as HTML with SVG inside; everything is escaped."""
    match panel:
        case BarPanel():
            return _bars(panel)
        case LinePanel():
            return _lines(panel)
        case HeatPanel():
            return f'<figure class="chart">{panel.svg()}</figure>'


def meter(parts: Sequence[tuple[str, float]], *, words: str) -> str:
    """Shares of a whole as one bar: (class, share) from the left; ``words`` say the same."""
    boxes, left = [], 0.0
    for kind, share in parts:
        wide = max(0.0, min(100.0 * share, 100.0 - left))
        boxes.append(f'<rect class="{escape(kind)}" x="{left:.2f}%" width="{wide:.2f}%"/>')
        left += wide
    return (
        f'<svg class="meter" role="img" aria-label="{escape(words)}">'
        f'<rect class="rest" width="100%"/>{"".join(boxes)}</svg>'
    )


# ── bars ──────────────────────────────────────────────────────────────────────────────────────


def _bars(panel: BarPanel) -> str:
    many = min(len(panel.labels), _MOST)
    ends = (*panel.low[:many], *panel.high[:many])
    shown = [*panel.values[:many], *(end for end in ends if end is not None)] or [0.0]
    low, high = (
        svg.log_ends(shown) if panel.log else svg.plain_ends(shown if panel.dots else [*shown, 0.0])
    )
    scale = ChartScale(low=low, high=high, start=0.0, end=100.0, log=panel.log)
    rows = "\n".join(_bar(panel, i, scale) for i in range(many))
    left = len(panel.labels) - many
    more = f" {left:,} more are in the table." if left else ""
    return (
        f'<figure class="chart"><figcaption>{escape(panel.title)}</figcaption>\n'
        f'<ul class="bars">{rows}</ul>\n'
        f'<p class="note">{escape(f"{panel.unit}. {panel.note}".strip() + more)}</p></figure>'
    )


def _bar(panel: BarPanel, i: int, scale: ChartScale) -> str:
    value, low, high = panel.values[i], panel.low[i], panel.high[i]
    foot = scale.low if panel.log or panel.dots else 0.0
    at, base = _place(scale, value), _place(scale, foot)
    parts = [f'<line class="base" x1="{base:.2f}%" x2="{base:.2f}%" y1="0" y2="22"/>']
    if panel.dots:
        parts.append(f'<circle class="dot" cx="{at:.2f}%" cy="11" r="4"/>')
    else:
        start, end = sorted((at, base))
        parts.append(
            f'<rect class="bar" x="{start:.2f}%" width="{end - start:.2f}%" y="5" height="12"/>'
        )
    words, least, most = svg.rounded(value, low, high)
    if low is not None and high is not None:
        a, b = _place(scale, low), _place(scale, high)
        parts += [
            f'<line class="whisker" x1="{a:.2f}%" x2="{b:.2f}%" y1="11" y2="11"/>',
            f'<line class="whisker" x1="{a:.2f}%" x2="{a:.2f}%" y1="6" y2="16"/>',
            f'<line class="whisker" x1="{b:.2f}%" x2="{b:.2f}%" y1="6" y2="16"/>',
        ]
        words = f"{words} <small>{least} to {most}</small>"
    label = escape(printable(panel.labels[i]))
    return (
        f'<li><span class="of">{label}</span>'
        f'<svg class="track" aria-hidden="true">{"".join(parts)}</svg>'
        f'<span class="is">{words}</span></li>'
    )


def _place(scale: ChartScale, value: float) -> float:
    place = scale.place(value)
    return 0.0 if place is None else min(max(place, 0.0), 100.0)


# ── curves ────────────────────────────────────────────────────────────────────────────────────


def _lines(panel: LinePanel) -> str:
    across = ChartScale.of(
        [v for line in panel.lines for v in line.x], panel.x, start=0.0, end=100.0
    )
    heights = [v for line in panel.lines for v in line.y]
    heights += [] if panel.band is None else [*panel.band.low, *panel.band.high]
    up = ChartScale.of(heights, panel.y, start=100.0, end=0.0)
    inside = [] if panel.band is None else [_band(panel.band, across, up)]
    inside += [_path(line, i, across, up) for i, line in enumerate(panel.lines)]
    dots = [_dots(line, i, across, up) for i, line in enumerate(panel.lines)]
    legend = "".join(_legend(line, i) for i, line in enumerate(panel.lines))
    title = escape(panel.title)
    return (
        f'<figure class="chart"><figcaption>{title}</figcaption>\n'
        f'<p class="axis">{escape(_named(panel.y))}</p>\n'
        f'<div class="plot"><svg class="up" height="{_TALL}" aria-hidden="true">{_up(up)}</svg>\n'
        f'<svg class="area" height="{_TALL}" role="img" aria-label="{title}">{_grid(up)}'
        f'<svg width="100%" height="100%" viewBox="0 0 {_FINE} {_FINE}" '
        f'preserveAspectRatio="none">{"".join(inside)}</svg>{"".join(dots)}</svg>\n'
        f'<svg class="across" height="20" aria-hidden="true">{_across(across, panel.x)}</svg>'
        f'</div>\n<p class="axis end">{escape(_named(panel.x))}</p>\n'
        f'<ul class="legend">{legend}</ul>\n<p class="note">{escape(panel.note)}</p></figure>'
    )


def _up(up: ChartScale) -> str:
    return "".join(
        f'<text x="100%" y="{_place(up, tick):.2f}%" dy="4" text-anchor="end">{short(tick)}</text>'
        for tick in up.ticks()
    )


def _grid(up: ChartScale) -> str:
    return "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{y:.2f}%" y2="{y:.2f}%"/>'
        for y in (_place(up, tick) for tick in up.ticks())
    )


def _across(across: ChartScale, axis: ChartAxis) -> str:
    told = [(t, short(t) if axis.words is None else axis.words(t)) for t in across.ticks()]
    told = [(t, words) for t, words in told if words]
    # A phone has room for five words.
    told = told[:: max(1, -(-len(told) // 5))]
    return "".join(
        f'<text x="{place:.2f}%" y="14" text-anchor="{_anchor(place)}">{escape(words)}</text>'
        for place, words in ((_place(across, t), words) for t, words in told)
    )


def _anchor(place: float) -> str:
    return "start" if place < 4 else "end" if place > 96 else "middle"


def _points(
    x: Sequence[float], y: Sequence[float], across: ChartScale, up: ChartScale
) -> list[tuple[float, float]]:
    return [
        (px, py)
        for vx, vy in zip(x, y, strict=True)
        if (px := across.place(vx)) is not None and (py := up.place(vy)) is not None
    ]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    share = _FINE / 100
    return " ".join(f"{x * share:.1f},{y * share:.1f}" for x, y in points)


def _path(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> str:
    points = _points(line.x, line.y, across, up)
    if not line.joined or len(points) < 2:
        return ""
    return f'<polyline class="line s{i % _SERIES + 1}" points="{_joined(points)}"/>'


def _band(band: ChartBand, across: ChartScale, up: ChartScale) -> str:
    there = _points(band.x, band.high, across, up)
    back = _points(band.x, band.low, across, up)[::-1]
    return f'<polygon class="band" points="{_joined([*there, *back])}"/>'


def _dots(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> str:
    points = _points(line.x, line.y, across, up)
    if line.joined and len(points) > 12:
        return ""  # the line itself is enough
    size = 3 if line.joined else 5
    return "".join(
        f'<circle class="dot s{i % _SERIES + 1}" cx="{x:.2f}%" cy="{y:.2f}%" r="{size}"/>'
        for x, y in points
    )


def _legend(line: ChartCurve, i: int) -> str:
    kind = f"s{i % _SERIES + 1}"
    mark = (
        f'<line class="line {kind}" x1="0" x2="24" y1="6" y2="6"/>'
        if line.joined
        else f'<circle class="dot {kind}" cx="12" cy="6" r="5"/>'
    )
    return (
        f'<li><svg width="24" height="12" aria-hidden="true">{mark}</svg> '
        f"{escape(printable(line.label))}</li>"
    )


def _named(axis: ChartAxis) -> str:
    return f"{axis.label} (log scale)" if axis.log else axis.label
