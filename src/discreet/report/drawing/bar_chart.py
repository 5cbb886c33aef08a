"""Bars with error bars: their layout, which every painter shares, and SVG text.

The SVG needs no library, is readable in black and white and safe to embed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet.core.number_format import short
from discreet.core.tabular import cell
from discreet.report.drawing.axis import ChartScale
from discreet.report.drawing.paper import cut, line, paper

_MOST = 40
_ROW = 24
_LEFT, _PLOT, _RIGHT = 190, 430, 140
_TOP, _BOTTOM = 34, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBar:
    """One bar: where it begins and ends, its whisker, and what is written beside it."""

    label: str
    foot: float
    at: float
    whisker: tuple[float, float] | None
    text: str
    ends: tuple[str, str]


def placed(
    *,
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float | None],
    high: Sequence[float | None],
    dots: bool,
    log: bool,
    start: float,
    end: float,
) -> tuple[list[PlacedBar], ChartScale, str]:
    """The first 40 bars between two places, their scale, and what is said of those left out.

    With ``dots`` places are shown and not sizes, so the axis need not begin at zero. With ``log``
    it begins at a power of ten.
    """
    many = min(len(labels), _MOST)
    shown = [x for x in (*values[:many], *low[:many], *high[:many]) if x is not None]
    shown += [] if dots or log else [0.0]
    scale = ChartScale.tight(shown, log=log, start=start, end=end)
    foot = scale.within(scale.low if dots or log else 0.0)
    bars = [
        _placed(labels[i], values[i], (low[i], high[i]), foot=foot, scale=scale)
        for i in range(many)
    ]
    left = len(labels) - many
    return bars, scale, f" {short(left)} more are in the table." if left else ""


def _placed(
    label: str,
    value: float,
    ends: tuple[float | None, float | None],
    *,
    foot: float,
    scale: ChartScale,
) -> PlacedBar:
    text, below, above = _rounded(value, *ends)
    low, high = ends
    whisker = None if low is None or high is None else (scale.within(low), scale.within(high))
    at = scale.within(value)
    return PlacedBar(label=label, foot=foot, at=at, whisker=whisker, text=text, ends=(below, above))


def _rounded(value: float, low: float | None, high: float | None) -> tuple[str, str, str]:
    """A value and the ends of its interval as text, rounded to the noise; four digits without."""
    if low is None or high is None:
        return short(value), "", ""
    row = {"value": value, "low": low, "high": high}
    return cell(row, "value"), cell(row, "low"), cell(row, "high")


def bars(
    *,
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float | None],
    high: Sequence[float | None],
    title: str,
    note: str,
    dots: bool = False,
    log: bool = False,
) -> str:
    """Horizontal bars whose whiskers reach from ``low`` to ``high``; the first 40 of them."""
    shown, scale, more = placed(
        labels=labels,
        values=values,
        low=low,
        high=high,
        dots=dots,
        log=log,
        start=_LEFT,
        end=_LEFT + _PLOT,
    )
    base = _TOP + _ROW * len(shown)
    lines = paper(_LEFT + _PLOT + _RIGHT, base + _BOTTOM, title)
    for i, one in enumerate(shown):
        lines += _bar(one, _TOP + _ROW * i, dots=dots)
    foot = scale.within(scale.low if dots or log else 0.0)
    lines.append(_line(foot, _TOP, foot, base))
    for tick in scale.ticks(tens=True):  # long numbers, side by side
        at = scale.within(tick)
        lines.append(_line(at, base, at, base + 4))
        lines.append(
            f'<text x="{at:.1f}" y="{base + 17}" text-anchor="middle">{short(tick)}</text>'
        )
    lines.append(f'<text x="4" y="{base + 34}" fill="#555">{escape(cut(note, 120) + more)}</text>')
    return "\n".join([*lines, "</svg>"])


def _bar(one: PlacedBar, y: float, *, dots: bool) -> list[str]:
    middle, label, text = y + _ROW / 2, cut(one.label, 28), one.text
    lines = [f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(label)}</text>']
    if dots:
        lines.append(f'<circle cx="{one.at:.1f}" cy="{middle}" r="4" fill="#000"/>')
    else:
        left, right = sorted((one.foot, one.at))
        lines.append(
            f'<rect x="{left:.1f}" y="{y + 4}" width="{right - left:.1f}" height="{_ROW - 8}" '
            'fill="#bbb" stroke="#333" stroke-width="0.8"/>'
        )
    if one.whisker is not None:
        low, high = one.whisker
        lines += [
            _line(low, middle, high, middle),
            _line(low, middle - 4, low, middle + 4),
            _line(high, middle - 4, high, middle + 4),
        ]
        text = f"{text}  [{one.ends[0]}, {one.ends[1]}]"
    place = f'x="{_LEFT + _PLOT + 6}" y="{middle + 4}"'
    return [*lines, f'<text {place} font-size="10">{escape(text)}</text>']


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return line(x1, y1, x2, y2, width="1.2")
