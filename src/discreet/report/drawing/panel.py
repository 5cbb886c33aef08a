"""Bars and curves as data, drawn as SVG text or, with matplotlib, in any other format.

Both look alike: labeled, with units and error bars, readable without color.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

from discreet.core.errors import Unsupported
from discreet.report.drawing import bar_chart as svg
from discreet.report.drawing.line_chart import ChartAxis, ChartBand, ChartCurve, curves, number

# ── Bar charts with matplotlib
# ─────────────────────────────────────────────────────────────────────


def save_bars(
    path: Path,
    *,
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float | None],
    high: Sequence[float | None],
    title: str,
    unit: str,
    dots: bool = False,
) -> Path:
    """Draw bars whose whiskers reach from ``low`` to ``high``; the format follows the suffix.

    With ``dots`` places are shown and not sizes, so the axis need not begin at zero.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("Figures need matplotlib: pip install 'discreet[plot]'.") from None

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = range(len(labels))
    below = [0.0 if end is None else value - end for value, end in zip(values, low, strict=True)]
    above = [0.0 if end is None else end - value for value, end in zip(values, high, strict=True)]
    style = "ko" if dots else "none"
    axes.errorbar(places, values, yerr=[below, above], fmt=style, ecolor="black", capsize=4)
    axes.set_xticks(places, labels)
    axes.set_ylabel(unit)
    axes.set_title(title, loc="left", fontsize=11)
    if not dots:
        axes.bar(places, values, color="0.75", edgecolor="0.2", linewidth=0.8)
        axes.axhline(0, color="0.2", linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    return path


# ── Panels
# ─────────────────────────────────────────────────────────────────────────────────────────


_STYLES = (
    ("-", "o", "0"),
    ("--", "s", "0.35"),
    (":", "^", "0"),
    ("-.", "D", "0.35"),
    ((0, (4, 2)), "x", "0"),
    ((0, (9, 3)), "h", "0.35"),
    ((0, (1, 1)), "|", "0"),
    ((0, (5, 1, 1, 1, 1, 1)), "p", "0.35"),
    ((0, (3, 1)), "+", "0"),
)
_WIDE, _TALL, _ROW = 9.0, 4.2, 0.28
_MOST = 40
_LINE = 110
"""Letters of a note in a line."""


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

    @property
    def tall(self) -> float:
        """Height in inches."""
        return 1.5 + _ROW * min(len(self.labels), _MOST)

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

    def draw(self, axes: Any) -> None:
        """Into axes of matplotlib."""
        many = min(len(self.labels), _MOST)
        rows = range(many)
        values = self.values[:many]
        axes.set_xscale("log" if self.log else "linear")
        axes.set_xlim(*self._ends(many))
        if self.dots:
            axes.plot(values, rows, "ko")
        else:
            axes.barh(rows, values, color="0.75", edgecolor="0.2", linewidth=0.8)
            axes.axvline(0, color="0.2", linewidth=0.8)
        for row, value, low, high in zip(rows, values, self.low, self.high, strict=False):
            end = value if self.dots else max(value, 0.0)
            if low is not None and high is not None:
                # Not `errorbar`: an interval need not hold the value itself.
                axes.plot([low, high], [row, row], "k|-", linewidth=1.2, markersize=8)
                end = max(end, high)
            axes.annotate(f" {number(value)}", (end, row), va="center", fontsize=8)
        axes.xaxis.set_major_formatter(lambda tick, _: number(tick))
        axes.set_yticks(rows, [plain(printable(label)) for label in self.labels[:many]])
        axes.set_ylim(many - 0.4, -0.6)
        left = len(self.labels) - many
        more = f"; {left} more are in the table" if left else ""
        axes.set_xlabel(plain(self.unit + more))

    def _ends(self, many: int) -> tuple[float, float]:
        """Of the axis, with room for numbers to the right."""
        ends = (*self.low[:many], *self.high[:many])
        shown = [*self.values[:many], *(end for end in ends if end is not None)]
        if self.log:
            start, end = svg.log_ends(shown)
            return start, end * (end / start) ** 0.15
        start, end = svg.plain_ends(shown if self.dots else [*shown, 0.0])
        span = end - start
        return start - (0.05 * span if start else 0.0), end + 0.15 * span


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel:
    """Up to nine curves, and a gray band."""

    lines: Sequence[ChartCurve]
    x: ChartAxis
    y: ChartAxis
    title: str
    note: str
    band: ChartBand | None = None

    @property
    def tall(self) -> float:
        """Height in inches."""
        return _TALL

    def svg(self) -> str:
        """As SVG text."""
        return curves(
            self.lines, x=self.x, y=self.y, title=self.title, note=self.note, band=self.band
        )

    def draw(self, axes: Any) -> None:
        """Into axes of matplotlib."""
        if self.band is not None:
            axes.fill_between(self.band.x, self.band.low, self.band.high, color="0.8", linewidth=0)
        for i, line in enumerate(self.lines):
            style, mark, gray = _STYLES[i % len(_STYLES)]
            points = [
                (x, y)
                for x, y in zip(line.x, line.y, strict=True)
                if (x > 0 or not self.x.log) and (y > 0 or not self.y.log)
            ]
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                linestyle=style if line.joined else "none",
                marker=mark,
                color=gray,
                markerfacecolor="white" if gray != "0" else gray,
                markersize=5,
                markevery=max(1, len(points) // 12) if line.joined else 1,
                linewidth=1.3,
                label=plain(fill(line.label, 34)),
            )
        axes.set_xscale("log" if self.x.log else "linear")
        axes.set_yscale("log" if self.y.log else "linear")
        axes.xaxis.set_major_formatter(lambda tick, _: plain((self.x.words or number)(tick)))
        axes.yaxis.set_major_formatter(lambda tick, _: number(tick))
        axes.set_xlabel(plain(_named(self.x)))
        axes.set_ylabel(plain(_named(self.y)))
        axes.grid(axis="y", color="0.87")
        if not self.y.log and self.y.zero:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)


Panel: TypeAlias = BarPanel | LinePanel


def save(panels: Sequence[Panel], path: Path) -> Path:
    """Draw panels below each other into a file; the format follows the suffix.

    SVG needs nothing; other formats need matplotlib.
    """
    if path.suffix.lower() == ".svg":
        path.write_text(stacked([panel.svg() for panel in panels]), encoding="utf-8")
        return path
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported(
            "Figures need matplotlib (pip install 'discreet[plot]'); a path that ends in .svg "
            "needs nothing."
        ) from None
    heights = [panel.tall for panel in panels]
    figure = Figure(figsize=(_WIDE, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    places = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, axes in zip(panels, places, strict=True):
        panel.draw(axes)
        axes.set_title(plain(panel.title), loc="left", fontsize=11)
        below = f"{axes.get_xlabel()}\n{plain(fill(panel.note, _LINE))}".rstrip()
        axes.set_xlabel(below, fontsize=9)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    return path


def stacked(pictures: Sequence[str]) -> str:
    """Several SVG texts below each other."""
    if len(pictures) == 1:
        return pictures[0]
    parts, top, wide = [], 0.0, 0.0
    for picture in pictures:
        found = re.search(r'viewBox="0 0 (\S+) (\S+)"', picture)
        width, height = map(float, found.groups()) if found else (0.0, 0.0)
        parts.append(picture.replace("<svg ", f'<svg y="{top:g}" ', 1))
        top, wide = top + height, max(wide, width)
    size = f'viewBox="0 0 {wide:g} {top:g}" width="{wide:g}" height="{top:g}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *parts, "</svg>"])


def printable(text: str) -> str:
    """Text that anybody may have sent, without what would break or turn around a picture."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def plain(text: str) -> str:
    """Text in which matplotlib sees no formulas."""
    return text.replace("$", r"\$")


def _named(axis: ChartAxis) -> str:
    return f"{axis.label} (log scale)" if axis.log else axis.label
