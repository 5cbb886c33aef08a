"""Results as pictures: how each of them is drawn, and every other by its rows."""

from __future__ import annotations

import math
from pathlib import Path

from discreet.accounting.guarantee import describe_epsilon
from discreet.accounting.meaning import AttackBounds
from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import short
from discreet.disclosure import TableAudit
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query.result import NUMBERS, Result
from discreet.ranges.plan import RangePlan
from discreet.report import local_section as local
from discreet.report import range_section as ranges
from discreet.report import table_audit_report as table_audits
from discreet.report.attack_curve import attack_curve
from discreet.report.drawing.figure import Figure, writable
from discreet.report.drawing.panel import BarPanel, Panel
from discreet.tables.personalized_table import PersonalizedRelease
from discreet.tables.range_release import ChargedGridRelease, ChargedRangeRelease
from discreet.tables.release import Release


def plot(
    result: object, path: str | Path | None = None, *, confidence: float | None = None
) -> Figure:
    """Draw a result with its errors.

    SVG needs no library; other formats are drawn by matplotlib.

    Args:
        result: A release, an estimate or another result, counts of the local model, or a plan that
            compares.
        path: File to write as well; the format follows its suffix. Other formats than SVG need
            matplotlib (`pip install 'discreet[plot]'`).
        confidence: Probability with which each interval holds, 0.95 unless the result has intervals
            of another one.

    Returns:
        The figure, which notebooks show, with `svg` and `save`.

    Raises:
        InvalidArgument: The result cannot be drawn, or the path cannot be written.
        Unsupported: The format needs matplotlib.

    Examples:
        >>> import discreet
        >>> best = discreet.best_additive_noise(sensitivity=1, epsilon=1)
        >>> plot(best)
        Figure(Noise for one number (epsilon 1); the first is used)
    """
    if confidence is not None:
        probability("confidence", confidence, zero=False, one=False)
    target = None if path is None else writable(path)
    figure = Figure(panels(result, confidence=confidence))
    if target is not None:
        figure.save(target)
    return figure


def panels(result: object, *, confidence: float | None = None) -> tuple[Panel, ...]:
    """How a result is drawn."""
    inside = 0.95 if confidence is None else confidence
    match result:
        case Release() if result._estimator is not None:
            return (panel(result, confidence=inside),)
        case PersonalizedRelease():
            return panels(result.release, confidence=inside)
        case ChargedRangeRelease():
            return (ranges.cumulative(result, confidence=inside),)
        case RangePlan():
            return (ranges.against_length(result),)
        case ChargedGridRelease():
            return (ranges.shades(result),)
        case AttackBounds():
            return (attack_curve(result),)
        case TableAudit():
            return table_audits.maps(result)
    found = local.panels(result, confidence=inside)
    if found is None and isinstance(result, Result):
        return (rows_panel(result, confidence=confidence),)
    if found is None:
        raise InvalidArgument(
            f"result must be what can be drawn, got {type(result).__name__}. These can be drawn: "
            f"every result, {', '.join(local.TABLES + local.KINDS)}."
        )
    return found


def rows_panel(result: Result, *, confidence: float | None = None) -> BarPanel:
    """The rows of any result as bars, or as dots if they are places on an axis."""
    rows = result.rows() if confidence is None else result.rows(confidence)
    if any(isinstance(row["value"], bool) or not _is_number(row["value"]) for row in rows):
        raise Unsupported("The values are no numbers and cannot be drawn: see the rows.")
    level = result._confidence if confidence is None else confidence
    known = any(row["low"] is not None for row in rows)
    return BarPanel(
        labels=[
            ", ".join(str(held) for name, held in row.items() if name not in NUMBERS) or "all"
            for row in rows
        ],
        values=[float(row["value"]) for row in rows],
        low=[_finite(row["low"]) for row in rows],
        high=[_finite(row["high"]) for row in rows],
        title=result._caption(),
        note=f"Whiskers hold the value {_often(level)}." if known else "No interval is known.",
        unit="Value",
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def panel(release: Release, *, confidence: float = 0.95) -> BarPanel:
    """The release as bars with error bars."""
    rows = release.rows(confidence)
    whiskers = f"Whiskers hold the value without noise {_often(confidence)}."
    if any(row["low"] is None for row in rows):
        whiskers = "Chosen by rank: no interval."
    return BarPanel(
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
    return isinstance(release._estimator, QuantileEstimator)


def _often(confidence: float) -> str:
    return f"{short(100 * confidence)} times of 100"
