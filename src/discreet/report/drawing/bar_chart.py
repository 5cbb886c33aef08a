"""Bars with error bars as SVG text: no library, readable in black and white, safe to embed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from discreet.core.number_format import short
from discreet.core.tabular import cell

_MOST = 40
_ROW = 24
_LEFT, _PLOT, _RIGHT = 190, 430, 140
_TOP, _BOTTOM = 34, 40


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
    """Horizontal bars whose whiskers reach from ``low`` to ``high``; the first 40 of them.

    With ``dots`` places are shown and not sizes, so the axis need not begin at zero. With ``log``
    it begins at a power of ten.
    """
    many = min(len(labels), _MOST)
    shown = [x for x in (*values[:many], *low[:many], *high[:many]) if x is not None]
    start, end = log_ends(shown) if log else plain_ends(shown if dots else [*shown, 0.0])

    def x(value: float) -> float:
        if log:
            return _LEFT + _PLOT * math.log(max(value, start) / start) / math.log(end / start)
        return _LEFT + _PLOT * (value - start) / (end - start)

    width, height = _LEFT + _PLOT + _RIGHT, _TOP + _ROW * many + _BOTTOM
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="4" y="18" font-size="13" font-weight="bold">{escape(cut(title, 100))}</text>',
    ]
    for i in range(many):
        y = _TOP + _ROW * i
        lines += _bar(x, y, cut(labels[i], 28), values[i], (low[i], high[i]), dots=dots)
    base = _TOP + _ROW * many
    foot = start if dots or log else 0.0
    lines.append(_line(x(foot), _TOP, x(foot), base))
    for tick in _tens(start, end) if log else _ticks(start, end):
        lines.append(_line(x(tick), base, x(tick), base + 4))
        lines.append(
            f'<text x="{x(tick):.1f}" y="{base + 17}" text-anchor="middle">{short(tick)}</text>'
        )
    more = f"; {len(labels) - many} more are in the table" if len(labels) > many else ""
    lines.append(f'<text x="4" y="{base + 34}" fill="#555">{escape(cut(note, 120) + more)}</text>')
    return "\n".join([*lines, "</svg>"])


def _bar(
    x: Callable[[float], float],
    y: float,
    label: str,
    value: float,
    ends: tuple[float | None, float | None],
    *,
    dots: bool,
) -> list[str]:
    middle = y + _ROW / 2
    lines = [f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(label)}</text>']
    text, below, above = rounded(value, *ends)
    if dots:
        lines.append(f'<circle cx="{x(value):.1f}" cy="{middle}" r="4" fill="#000"/>')
    else:
        left, right = sorted((x(0.0), x(value)))
        lines.append(
            f'<rect x="{left:.1f}" y="{y + 4}" width="{right - left:.1f}" height="{_ROW - 8}" '
            'fill="#bbb" stroke="#333" stroke-width="0.8"/>'
        )
    if ends[0] is not None and ends[1] is not None:
        low, high = x(ends[0]), x(ends[1])
        lines += [
            _line(low, middle, high, middle),
            _line(low, middle - 4, low, middle + 4),
            _line(high, middle - 4, high, middle + 4),
        ]
        text = f"{text}  [{below}, {above}]"
    place = f'x="{_LEFT + _PLOT + 6}" y="{middle + 4}"'
    return [*lines, f'<text {place} font-size="10">{escape(text)}</text>']


def rounded(value: float, low: float | None, high: float | None) -> tuple[str, str, str]:
    """A value and the ends of its interval as text, rounded to the noise; four digits without."""
    if low is None or high is None:
        return short(value), "", ""
    row = {"value": value, "low": low, "high": high}
    return cell(row, "value"), cell(row, "low"), cell(row, "high")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        'stroke="#000" stroke-width="1.2"/>'
    )


def plain_ends(shown: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest; apart, if there is only one."""
    start, end = min(shown), max(shown)
    if start == end:
        return start - (abs(start) or 1.0) / 2, end + (abs(end) or 1.0) / 2
    return start, end


def log_ends(shown: Sequence[float]) -> tuple[float, float]:
    """The power of ten below all that is positive, and the largest."""
    positive = [value for value in shown if value > 0] or [1.0]
    start = 10.0 ** math.floor(math.log10(min(positive) / 1.5))
    return start, max(positive)


def _tens(start: float, end: float) -> list[float]:
    first, last = round(math.log10(start)), math.floor(math.log10(end))
    return [10.0**k for k in range(first, last + 1)]


def _ticks(start: float, end: float) -> list[float]:
    """Four to ten round numbers."""
    step = 10.0 ** math.floor(math.log10(end - start))
    while (end - start) / step < 4:
        step /= 2
    first, last = math.ceil(start / step), math.floor(end / step)
    return [step * k for k in range(first, last + 1)]


def cut(text: str, most: int) -> str:
    """A text that has room."""
    return text if len(text) <= most else text[: most - 1] + "…"
