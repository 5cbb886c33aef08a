"""A table of numbers as shades of gray: SVG text, no library, readable in black and white."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from discreet.core.number_format import number, short
from discreet.noise.distribution import Floats
from discreet.report.drawing.paper import cut, paper

_WIDTH, _TALLEST = 560, 420
_LEFT, _TOP, _BOTTOM, _RIGHT = 120, 34, 86, 20
_SHADES = 9
_FEW = 12
_TICKS = 5
_LONGEST = 16


def heat(
    values: Floats,
    *,
    across: Sequence[str],
    down: Sequence[str],
    title: str,
    note: str,
    texts: Sequence[Sequence[str]] | None = None,
) -> str:
    """Cells from white (none) to black (most); ``values`` has a row for each label of ``down``.

    ``texts`` are written into the cells instead of the values, as far as there is room; then the
    note says what the shades mean.
    """
    rows, columns = values.shape
    wide = _WIDTH / columns
    tall = min(max(_TALLEST / rows, 6.0), 36.0)
    top = float(values.max()) if values.size and values.max() > 0 else 1.0
    height = _TOP + tall * rows + _BOTTOM
    width = _LEFT + _WIDTH + _RIGHT
    parts = paper(width, height, title)
    for i in range(rows):
        for j in range(columns):
            shade = _shade(float(values[i, j]), top)
            x, y = _LEFT + wide * j, _TOP + tall * i
            if shade:  # white is the paper
                parts.append(_box(x, y, wide, tall, shade))
            if columns <= _FEW and tall >= 16:
                ink = "#fff" if shade > _SHADES // 2 else "#000"
                word = number(round(float(values[i, j]))) if texts is None else texts[i][j]
                parts.append(_words(x + wide / 2, y + tall / 2 + 4, word, ink))
    base = _TOP + tall * rows
    parts.append(
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{tall * rows:.1f}" fill="none" '
        'stroke="#000"/>'
    )
    parts += _labels(across, down, wide, tall, base)
    if texts is None:
        parts += _legend(top, base + 34)
    parts.append(
        f'<text x="4" y="{height - 8:.0f}" fill="#555" font-size="11">{escape(note)}</text>'
    )
    return "\n".join([*parts, "</svg>"])


def _shade(value: float, top: float) -> int:
    """From 0, white, for nothing (or less) to `_SHADES` for the largest."""
    return max(0, min(_SHADES, math.ceil(_SHADES * value / top - 0.5)))


def _box(x: float, y: float, wide: float, tall: float, shade: int) -> str:
    gray = round(245 * (1 - shade / _SHADES))
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide + 0.05:.2f}" height="{tall:.1f}" '
        f'fill="rgb({gray},{gray},{gray})"/>'
    )


def _words(x: float, y: float, text: str, ink: str = "#000", anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{ink}">{escape(text)}</text>'


def _labels(
    across: Sequence[str], down: Sequence[str], wide: float, tall: float, base: float
) -> list[str]:
    every = 1 if len(across) <= _TICKS else -(-len(across) // _TICKS)
    found = [
        _words(_LEFT + wide * (j + 0.5), base + 16, cut(across[j], _LONGEST))
        for j in range(0, len(across), every)
    ]
    step = max(1, math.ceil(14 / tall))
    return found + [
        _words(_LEFT - 6, _TOP + tall * (i + 0.5) + 4, cut(down[i], _LONGEST), anchor="end")
        for i in range(0, len(down), step)
    ]


def _legend(top: float, y: float) -> list[str]:
    parts = [_words(_LEFT, y + 12, "0", anchor="end")]
    parts += [_box(_LEFT + 8 + 18 * shade, y, 18, 14, shade) for shade in range(_SHADES + 1)]
    end = 18 * (_SHADES + 1)
    parts.append(
        f'<rect x="{_LEFT + 8}" y="{y}" width="{end}" height="14" fill="none" stroke="#000"/>'
    )
    return [*parts, _words(_LEFT + 14 + end, y + 12, short(top), anchor="start")]
