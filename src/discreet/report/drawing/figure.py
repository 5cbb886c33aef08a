"""Panels below each other, as one figure: SVG text or, through matplotlib, any other format.

A picture is laid out once, as SVG. Other formats are the same lines and words drawn by matplotlib,
so a file in the one format looks like a file in the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.report.drawing.panel import Panel

FORMATS = (".svg", ".png", ".pdf", ".eps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
_INCH = 96
"""Units of SVG in an inch."""
_POINT = _INCH / 72
_DPI = 192
_FONT = 12.0


@dataclass(frozen=True, eq=False, repr=False)
class Figure:
    """What `plot` draws. Notebooks show it; `save` writes it into a file.

    Attributes:
        panels: The charts, one below the other.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"smokes": [True, False] * 50})
        >>> people = discreet.table(rows, columns={"smokes": discreet.boolean()}, budget=1)
        >>> figure = people.count(by="smokes", epsilon=1).plot()
        >>> len(figure.panels), figure.svg[:4]
        (1, '<svg')
    """

    panels: tuple[Panel, ...]

    @cached_property
    def svg(self) -> str:
        """The figure as SVG text; it needs no library and refers to nothing outside."""
        return stacked([panel.svg() for panel in self.panels])

    def save(self, path: str | Path) -> Path:
        """Write the figure into a file; the format follows the suffix.

        Args:
            path: The file, which ends in .svg, .png, .pdf or another format of matplotlib.

        Returns:
            The path.

        Raises:
            InvalidArgument: The suffix or the folder is unknown.
            Unsupported: Other formats than SVG need matplotlib.

        Examples:
            >>> import tempfile
            >>> import discreet
            >>> import pandas as pd
            >>> account = discreet.Ledger("memory://").account("demo", limit=discreet.pure_dp(1))
            >>> rows = pd.DataFrame({"smokes": [True, False] * 50})
            >>> columns = {"smokes": discreet.boolean()}
            >>> people = discreet.table(rows, columns=columns, account=account)
            >>> figure = people.count(by="smokes", epsilon=1).plot()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     figure.save(f"{folder}/smokers.svg").name
            'smokers.svg'
        """
        target = writable(path)
        if target.suffix.lower() == ".svg":
            target.write_text(self.svg, encoding="utf-8")
        else:
            self.to_matplotlib().savefig(target, dpi=_DPI)
        return target

    def to_matplotlib(self) -> Any:
        """Return the same lines and words as a figure of matplotlib.

        Returns:
            A `matplotlib.figure.Figure` of the size of the SVG.

        Raises:
            Unsupported: matplotlib is not installed.

        Examples:
            >>> figure.to_matplotlib()  # doctest: +ELLIPSIS
            <Figure size ... with 1 Axes>
        """
        return _painted(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Figure({'; '.join(panel.title for panel in self.panels)})"


def writable(path: str | Path) -> Path:
    """Return a path that a figure can be written to, or refuse it."""
    if not isinstance(path, str | Path):
        raise InvalidArgument(f"path must be a file's name, got {type(path).__name__}.")
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidArgument(f"path must end in {', '.join(FORMATS)}, got {target.name!r}.")
    if not target.parent.is_dir():
        raise InvalidArgument(f"path lies in {str(target.parent)!r}, which is no folder: make it.")
    return target


def save(panels: Sequence[Panel], path: str | Path) -> Path:
    """Draw panels below each other into a file."""
    return Figure(tuple(panels)).save(path)


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


# ── Other formats ────────────────────────────────────────────────────────────────────────────────


def _painted(svg: str) -> Any:
    """Draw the elements of our own SVG with matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise Unsupported(
            "Figures need matplotlib (pip install 'discreet[plot]'); a path that ends in .svg "
            "needs nothing."
        ) from None
    root = ET.fromstring(svg)  # noqa: S314 - our own text, not what somebody sent
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    canvas = Canvas(figsize=(width / _INCH, height / _INCH))
    FigureCanvasAgg(canvas)
    axes = canvas.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    _draw(root, axes, 0.0)
    return canvas


def _draw(element: ET.Element, axes: Any, top: float) -> None:
    """One element and those inside; ``top`` is where its picture begins."""
    kind, given = element.tag.rpartition("}")[2], element.attrib
    ink = {
        "color": given.get("stroke", "none"),
        "linewidth": float(given.get("stroke-width", 1)) / _POINT,
    }

    def at(name: str) -> float:
        return float(given[name]) + (top if name.startswith(("y", "cy")) else 0.0)

    match kind:
        case "svg":
            top += float(given.get("y", 0))
        case "rect" if given["width"] != "100%":  # the paper is white anyway
            axes.add_patch(_box(given, at("x"), at("y")))
        case "circle":
            axes.add_patch(_disc(given, at("cx"), at("cy")))
        case "line":
            axes.plot([at("x1"), at("x2")], [at("y1"), at("y2")], **ink)
        case "polyline" | "polygon":
            points = [tuple(map(float, one.split(","))) for one in given["points"].split()]
            x, y = [x for x, _ in points], [y + top for _, y in points]
            if kind == "polyline":
                axes.plot(x, y, **ink, linestyle=_dash(given), solid_joinstyle="round")
            elif points:
                axes.fill(
                    x,
                    y,
                    facecolor=given.get("fill"),
                    edgecolor=ink["color"],
                    zorder=2,
                    linewidth=ink["linewidth"],
                )
        case "text":
            _write(given, element.text or "", axes, (at("x"), at("y")))
    for inner in element:
        _draw(inner, axes, top)


def _box(given: dict[str, str], x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle

    size = float(given["width"]), float(given["height"])
    return Rectangle((x, y), *size, zorder=2, **_filled(given))


def _disc(given: dict[str, str], x: float, y: float) -> Any:
    from matplotlib.patches import Circle

    return Circle((x, y), float(given["r"]), zorder=3, **_filled(given))


def _filled(given: dict[str, str]) -> dict[str, Any]:
    face = given.get("fill", "#000")
    gray = re.fullmatch(r"rgb\((\d+),(\d+),(\d+)\)", face)
    return {
        "facecolor": face if gray is None else tuple(int(part) / 255 for part in gray.groups()),
        "edgecolor": given.get("stroke", "none"),
        "linewidth": float(given.get("stroke-width", 1)) / _POINT,
    }


def _dash(given: dict[str, str]) -> Any:
    """Dashes in units of the line's width, which is how matplotlib counts them."""
    if "stroke-dasharray" not in given:
        return "-"
    wide = float(given.get("stroke-width", 1))
    return (0, tuple(float(part) / wide for part in given["stroke-dasharray"].split()))


def _write(given: dict[str, str], text: str, axes: Any, place: tuple[float, float]) -> None:
    anchors = {"start": "left", "middle": "center", "end": "right"}
    axes.text(
        *place,
        text,
        ha=anchors[given.get("text-anchor", "start")],
        va="baseline",
        fontsize=float(given.get("font-size", _FONT)) / _POINT,
        fontweight=given.get("font-weight", "normal"),
        color=given.get("fill", "#000"),
        rotation=90 if "transform" in given else 0,
        rotation_mode="anchor",
        parse_math=False,
        zorder=4,
    )
