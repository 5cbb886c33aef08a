"""Panels for a page that may be narrow or wide, light or dark.

Places are shares of the width, so letters keep their size on a phone; colors are classes of the
page's style sheet, so no style stands in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.core.number_format import short
from discreet.report.drawing.axis import (
    ChartAxis,
    ChartCurve,
    ChartScale,
    around,
    few,
    points,
    reach,
)
from discreet.report.drawing.bar_chart import PlacedBar, placed
from discreet.report.drawing.panel import BarPanel, HeatPanel, LinePanel, Panel, printable

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
    shown, _, more = placed(
        labels=[printable(label) for label in panel.labels],
        values=panel.values,
        low=panel.low,
        high=panel.high,
        dots=panel.dots,
        log=panel.log,
        start=0.0,
        end=100.0,
    )
    rows = "\n".join(_bar(one, dots=panel.dots) for one in shown)
    return (
        f'<figure class="chart"><figcaption>{escape(panel.title)}</figcaption>\n'
        f'<ul class="bars">{rows}</ul>\n'
        f'<p class="note">{escape(f"{panel.unit}. {panel.note}".strip() + more)}</p></figure>'
    )


def _bar(one: PlacedBar, *, dots: bool) -> str:
    base = f'x1="{one.foot:.2f}%" x2="{one.foot:.2f}%"'
    parts = [f'<line class="base" {base} y1="0" y2="22"/>']
    if dots:
        parts.append(f'<circle class="dot" cx="{one.at:.2f}%" cy="11" r="4"/>')
    else:
        start, end = sorted((one.at, one.foot))
        parts.append(
            f'<rect class="bar" x="{start:.2f}%" width="{end - start:.2f}%" y="5" height="12"/>'
        )
    words = escape(one.text)
    if one.whisker is not None:
        a, b = one.whisker
        parts += [
            f'<line class="whisker" x1="{a:.2f}%" x2="{b:.2f}%" y1="11" y2="11"/>',
            f'<line class="whisker" x1="{a:.2f}%" x2="{a:.2f}%" y1="6" y2="16"/>',
            f'<line class="whisker" x1="{b:.2f}%" x2="{b:.2f}%" y1="6" y2="16"/>',
        ]
        words = f"{words} <small>{escape(' to '.join(one.ends))}</small>"
    return (
        f'<li><span class="of">{escape(one.label)}</span>'
        f'<svg class="track" aria-hidden="true">{"".join(parts)}</svg>'
        f'<span class="is">{words}</span></li>'
    )


# ── curves ────────────────────────────────────────────────────────────────────────────────────


def _lines(panel: LinePanel) -> str:
    places, heights = reach(panel.lines, panel.band)
    across = ChartScale.of(places, panel.x, start=0.0, end=100.0)
    up = ChartScale.of(heights, panel.y, start=100.0, end=0.0)
    inside = (
        []
        if panel.band is None
        else [f'<polygon class="band" points="{_joined(around(panel.band, across, up))}"/>']
    )
    inside += [_path(line, i, across, up) for i, line in enumerate(panel.lines)]
    dots = [_dots(line, i, across, up) for i, line in enumerate(panel.lines)]
    legend = "".join(_legend(line, i) for i, line in enumerate(panel.lines))
    title = escape(panel.title)
    return (
        f'<figure class="chart"><figcaption>{title}</figcaption>\n'
        f'<p class="axis">{escape(panel.y.title)}</p>\n'
        f'<div class="plot"><svg class="up" height="{_TALL}" aria-hidden="true">{_up(up)}</svg>\n'
        f'<svg class="area" height="{_TALL}" role="img" aria-label="{title}">{_grid(up)}'
        f'<svg width="100%" height="100%" viewBox="0 0 {_FINE} {_FINE}" '
        f'preserveAspectRatio="none">{"".join(inside)}</svg>{"".join(dots)}</svg>\n'
        f'<svg class="across" height="20" aria-hidden="true">{_across(across, panel.x)}</svg>'
        f'</div>\n<p class="axis end">{escape(panel.x.title)}</p>\n'
        f'<ul class="legend">{legend}</ul>\n<p class="note">{escape(panel.note)}</p></figure>'
    )


def _up(up: ChartScale) -> str:
    return "".join(
        f'<text x="100%" y="{up.within(tick):.2f}%" dy="4" text-anchor="end">{short(tick)}</text>'
        for tick in up.ticks()
    )


def _grid(up: ChartScale) -> str:
    return "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{y:.2f}%" y2="{y:.2f}%"/>'
        for y in (up.within(tick) for tick in up.ticks())
    )


def _across(across: ChartScale, axis: ChartAxis) -> str:
    # A phone has room for five words.
    told = [(across.within(tick), words) for tick, words in few(axis.told(across.ticks()))]
    return "".join(
        f'<text x="{place:.2f}%" y="14" text-anchor="{_anchor(place)}">{escape(words)}</text>'
        for place, words in told
    )


def _anchor(place: float) -> str:
    return "start" if place < 4 else "end" if place > 96 else "middle"


def _joined(points: Sequence[tuple[float, float]]) -> str:
    share = _FINE / 100
    return " ".join(f"{x * share:.1f},{y * share:.1f}" for x, y in points)


def _path(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> str:
    places = points(line.x, line.y, across, up)
    if not line.joined or len(places) < 2:
        return ""
    return f'<polyline class="line s{i % _SERIES + 1}" points="{_joined(places)}"/>'


def _dots(line: ChartCurve, i: int, across: ChartScale, up: ChartScale) -> str:
    places = points(line.x, line.y, across, up)
    if line.joined and len(places) > 12:
        return ""  # the line itself is enough
    size = 3 if line.joined else 5
    return "".join(
        f'<circle class="dot s{i % _SERIES + 1}" cx="{x:.2f}%" cy="{y:.2f}%" r="{size}"/>'
        for x, y in places
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
