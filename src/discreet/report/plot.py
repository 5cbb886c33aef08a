"""Results as pictures: releases of tables, and what comes out of the local model."""

from __future__ import annotations

from pathlib import Path

from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.ranges.plan import RangePlan
from discreet.report import local_section as local
from discreet.report import range_section as grid
from discreet.report import range_section as ranges
from discreet.report.drawing import bar_chart as svg
from discreet.report.drawing import panel as panels
from discreet.report.drawing.panel import save_bars
from discreet.tables.range_release import ChargedGridRelease, ChargedRangeRelease
from discreet.tables.release import Release, describe_epsilon

_FORMATS = (".svg", ".png", ".pdf", ".eps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")


def plot(result: object, path: str | Path, *, confidence: float = 0.95) -> Path:
    """Draw a result with its errors into a file; the format follows the suffix.

    Takes a release, ranges and grids of a table, counts and estimates of the local model, and
    plans that compare. SVG needs nothing; other formats need matplotlib
    (``pip install 'discreet[plot]'``). Grids are drawn as SVG only.
    """
    target = _writable(path)
    inside = float(probability("confidence", confidence, zero=False, one=False))
    match result:
        case Release():
            return _plot_release(result, target, confidence=inside)
        case ChargedRangeRelease():
            return panels.save((ranges.cumulative(result, confidence=inside),), target)
        case RangePlan():
            return panels.save((ranges.against_length(result),), target)
        case ChargedGridRelease():
            if target.suffix.lower() != ".svg":
                raise Unsupported("A grid is drawn as SVG: end path in .svg.")
            target.write_text(grid.picture(result), encoding="utf-8")
            return target
    return panels.save(local.panels(result, confidence=inside), target)


def _writable(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise InvalidArgument(f"path must be a file's name, got {type(path).__name__}.")
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise InvalidArgument(f"path must end in {', '.join(_FORMATS)}, got {target.name!r}.")
    if not target.parent.is_dir():
        raise InvalidArgument(f"path lies in {str(target.parent)!r}, which is no folder: make it.")
    return target


def _plot_release(release: Release, target: Path, *, confidence: float) -> Path:
    if target.suffix.lower() == ".svg":
        target.write_text(picture(release, confidence=confidence), encoding="utf-8")
        return target
    rows = release.rows(confidence)
    return save_bars(
        target,
        labels=labels(release),
        values=[row["value"] for row in rows],
        low=[row["low"] for row in rows],
        high=[row["high"] for row in rows],
        title=f"{heading(release)}, error bars {_often(confidence)}",
        unit=release.query_text,
        dots=_places(release),
    )


def picture(release: Release, *, confidence: float = 0.95) -> str:
    """The release as SVG text."""
    shown = panel(release, confidence=confidence)
    return svg.bars(
        labels=shown.labels,
        values=shown.values,
        low=shown.low,
        high=shown.high,
        title=shown.title,
        note=f"{shown.note} {release.query_text}",
        dots=shown.dots,
    )


def panel(release: Release, *, confidence: float = 0.95) -> panels.BarPanel:
    """The release as bars with error bars."""
    rows = release.rows(confidence)
    whiskers = f"Whiskers hold the value without noise {_often(confidence)}."
    if any(row["low"] is None for row in rows):
        whiskers = "Chosen by rank: no interval."
    return panels.BarPanel(
        labels=labels(release),
        values=[row["value"] for row in rows],
        low=[row["low"] for row in rows],
        high=[row["high"] for row in rows],
        title=heading(release),
        note=whiskers,
        unit=release.query_text,
        dots=_places(release),
    )


def heading(release: Release) -> str:
    """What is shown and what it cost."""
    return f"{release.title} ({describe_epsilon(release.guarantee)})"


def labels(release: Release) -> list[str]:
    """A short label for each group."""
    return [", ".join(map(str, key)) or "all" for key in release.keys]


def _places(release: Release) -> bool:
    """Whether the values are places on an axis and not sizes."""
    return release._noisy is not None and isinstance(release._answer.scale, QuantileEstimator)


def _often(confidence: float) -> str:
    return f"{100 * confidence:g} times of 100"
