"""A release as a picture."""

from __future__ import annotations

from pathlib import Path

from discreet.queries.quantiles import Quantiles
from discreet.report import svg
from discreet.report.figures import save_bars
from discreet.table.release import Release, worth


def plot(release: Release, path: str | Path, *, level: float = 0.95) -> Path:
    """Draw a release as bars with error bars into a file; the format follows the suffix.

    SVG needs nothing; other formats need matplotlib (``pip install 'discreet[plot]'``).
    """
    target = Path(path)
    if target.suffix.lower() == ".svg":
        target.write_text(picture(release, level=level), encoding="utf-8")
        return target
    rows = release.rows(level)
    return save_bars(
        target,
        labels=labels(release),
        values=[row["value"] for row in rows],
        low=[row["low"] for row in rows],
        high=[row["high"] for row in rows],
        title=f"{heading(release)}, error bars {_often(level)}",
        unit=release.question,
        dots=_places(release),
    )


def picture(release: Release, *, level: float = 0.95) -> str:
    """The release as SVG text."""
    rows = release.rows(level)
    whiskers = f"Whiskers hold the value without noise {_often(level)}."
    if any(row["low"] is None for row in rows):
        whiskers = "Chosen by rank: no interval."
    return svg.bars(
        labels=labels(release),
        values=[row["value"] for row in rows],
        low=[row["low"] for row in rows],
        high=[row["high"] for row in rows],
        title=heading(release),
        note=f"{whiskers} {release.question}",
        dots=_places(release),
    )


def heading(release: Release) -> str:
    """What is shown and what it cost."""
    return f"{release.title} ({worth(release.guarantee)})"


def labels(release: Release) -> list[str]:
    """A short label for each group."""
    return [", ".join(map(str, key)) or "all" for key in release.keys]


def _places(release: Release) -> bool:
    """Whether the values are places on an axis and not sizes."""
    return release.answer is not None and isinstance(release.answer.scale, Quantiles)


def _often(level: float) -> str:
    return f"{100 * level:g} times of 100"
