"""Bars, curves and shades as data, each with its SVG.

Labeled, with units and error bars, readable without color.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from discreet.noise.distribution import Floats
from discreet.report.drawing import bar_chart as svg
from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.heat_map import heat
from discreet.report.drawing.line_chart import curves


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel:
    """Horizontal bars with whiskers from ``low`` to ``high`` where these are known."""

    labels: Sequence[str]
    values: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    title: str
    note: str
    unit: str
    dots: bool = False
    """Places are shown and not sizes, so the axis need not begin at zero."""
    log: bool = False

    def svg(self) -> str:
        """As SVG text."""
        return svg.bars(
            labels=[printable(label) for label in self.labels],
            values=self.values,
            low=self.low,
            high=self.high,
            title=self.title,
            note=f"{self.unit}. {self.note}".strip(),
            dots=self.dots,
            log=self.log,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel:
    """Up to nine curves, and a gray band."""

    lines: Sequence[ChartCurve]
    x: ChartAxis
    y: ChartAxis
    title: str
    note: str
    band: ChartBand | None = None

    def svg(self) -> str:
        """As SVG text."""
        return curves(
            self.lines, x=self.x, y=self.y, title=self.title, note=self.note, band=self.band
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeatPanel:
    """A table of numbers as shades of gray, with a row for each label of ``down``."""

    values: Floats
    across: Sequence[str]
    down: Sequence[str]
    title: str
    note: str
    texts: Sequence[Sequence[str]] | None = None
    """What is written into the cells; else their numbers."""

    def svg(self) -> str:
        """As SVG text."""
        return heat(
            self.values,
            across=self.across,
            down=self.down,
            title=self.title,
            note=self.note,
            texts=self.texts,
        )


Panel: TypeAlias = BarPanel | LinePanel | HeatPanel


def printable(text: str) -> str:
    """Text that anybody may have sent, without what would break or turn around a picture."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
