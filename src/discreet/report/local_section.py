"""Estimates of the local model as panels: shares, ranges, distributions, means, texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.accounting.guarantee import describe_epsilon
from discreet.core._validate import probability
from discreet.core.number_format import number
from discreet.local._heavy_hitters import HeavyHittersEstimate
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.distribution import DistributionBootstrap, DistributionEstimate
from discreet.local.longitudinal import MemoizedOracle
from discreet.local.means.base import MeanEstimate
from discreet.local.oracles.base import Frequencies, FrequencyOracle
from discreet.local.randomizer import LocalRandomizer
from discreet.local.ranges._consistency import GridEstimate
from discreet.local.ranges.adaptive import AdaptiveHierarchy
from discreet.local.ranges.release import LocalRanges
from discreet.noise.distribution import Floats
from discreet.ranges.domain import Domain
from discreet.ranges.release import NonnegativeRelease
from discreet.report import comparison_charts as ladder
from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.panel import BarPanel, LinePanel, Panel

TABLES = ("Release", "ChargedRanges", "ChargedGrid", "RangePlan")
"""What is drawn of tables."""
KINDS = (
    *("State", "Aggregate", "Adaptive", "Frequencies", "LocalRanges", "Polished", "Distribution"),
    *("Bootstrap", "Mean", "a dict of means", "Found", "GridEstimate", "LocalPlan", "Ladder"),
    *("BestAdditive", "Comparisons"),
)
"""What is drawn besides."""
_TOP = 20
_PARTS = 16
_POINTS = 300
_NONE = "No reports: nothing is known."


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateContext:
    """What an estimate itself does not know: the level asked for, the cost, names of categories."""

    confidence: float
    cost: str = ""
    labels: Sequence[str] = ()

    @property
    def often(self) -> str:
        """The level in words; errors are taken to be normal."""
        return f"about {number(100 * self.confidence)} times of 100"

    def by(self, randomizer: LocalRandomizer) -> EstimateContext:
        """Together with what one report costs."""
        return replace(self, cost=_cost(randomizer))

    def after(self, reports: int) -> str:
        """How many reports there were, and what each of them cost."""
        return f"({reports:,} reports{self.cost})"


def panels(shown: object, *, confidence: float = 0.95) -> tuple[Panel, ...] | None:
    """How an object of the local model, or a comparison, is drawn; None if it is none."""
    inside = float(probability("confidence", confidence, zero=False, one=False))
    return _panels(*_estimated(shown, EstimateContext(confidence=inside)))


def _estimated(shown: object, told: EstimateContext) -> tuple[object, EstimateContext]:
    """What was counted becomes what it says, and what one report cost is remembered."""
    match shown:
        case AggregatorState():
            labeled = replace(told, labels=shown.collection.labels)
            return _estimated(shown.aggregate, labeled)
        case Aggregator() | AdaptiveHierarchy():
            return shown.estimate(), told.by(shown.randomizer)
    return shown, told


def _panels(shown: object, told: EstimateContext) -> tuple[Panel, ...] | None:
    match shown:
        case Frequencies():
            return (_shares(shown, told),)
        case LocalRanges():
            cost = replace(told, cost=f" of {describe_epsilon(shown.guarantee)}")
            return _parts(shown, cost), _cumulative(shown, cost)
        case NonnegativeRelease():
            return (_polished(shown, told),)
        case DistributionEstimate() | DistributionBootstrap():
            return (_density(shown, told),)
        case MeanEstimate():
            return (_mean("mean", shown, told),)
        case dict() if shown and all(isinstance(one, MeanEstimate) for one in shown.values()):
            return tuple(_mean(str(name), one, told) for name, one in shown.items())
        case HeavyHittersEstimate():
            return (_texts(shown, told),)
        case GridEstimate():
            return tuple(_attribute(shown, name, told) for name in shown.domains)
    return ladder.panels(shown)


def _shares(found: Frequencies, told: EstimateContext) -> BarPanel:
    """The largest shares with their intervals."""
    if isinstance(found.oracle, FrequencyOracle):
        told = told.by(found.oracle)
    size = len(found.shares)
    order = [share.category for share in found.top(_TOP)]
    exact = found.adjusted in ("", "pinned") and found.reports > 0
    note = f"Whiskers: {told.often}, each by itself."
    if not found.reports:
        note = _NONE
    elif not exact:
        note = f"After {found.adjusted}(): no error is known."
    elif size > _TOP:
        note += " Being the largest, they tend to be too large."
    low, high = found.interval(told.confidence) if exact else (None, None)
    which = f"The {_TOP} largest of {size:,} shares" if size > _TOP else f"{size} shares"
    return BarPanel(
        labels=[told.labels[i] if told.labels else str(i) for i in order],  # type: ignore[index]
        values=_percent(found.shares, order),
        low=_percent(low, order),
        high=_percent(high, order),
        title=f"{which} {told.after(found.reports)}",
        note=note,
        unit="% of the clients",
    )


def _texts(found: HeavyHittersEstimate, told: EstimateContext) -> BarPanel:
    """Heavy hitters, most frequent first."""
    order = range(len(found.items))
    low, high = found.interval(told.confidence)
    note = (
        f"Whiskers: {told.often}, each by itself. Near the threshold shares are a little too high."
    )
    if not found.items:
        note = "Nothing stands out of the noise." if found.reports else _NONE
    return BarPanel(
        labels=found.texts,
        values=_percent(found.shares, order),
        low=_percent(low, order),
        high=_percent(high, order),
        title=f"{len(order)} texts that stand out {told.after(found.reports)}",
        note=note,
        unit="% of the clients",
    )


def _mean(name: str, mean: MeanEstimate, told: EstimateContext) -> BarPanel:
    low, high = mean.interval(told.confidence)
    lower, upper = mean.bounds
    return BarPanel(
        labels=[name],
        values=[mean.value],
        low=[low],
        high=[high],
        title=f"Mean between {number(lower)} and {number(upper)} {told.after(mean.reports)}",
        note=f"The whisker holds the mean {told.often}." if mean.reports else _NONE,
        unit="In the unit of the numbers",
        dots=True,
    )


def _parts(release: LocalRanges, told: EstimateContext) -> BarPanel:
    """Equal parts of the domain with their intervals; single cells if they are few."""
    domain = release.domain
    spans = _spans(domain)
    first, last = ([end[side] for end in spans] for side in (0, 1))
    low, high = release.answer_interval(first, last, confidence=told.confidence)
    order = range(len(spans))
    return BarPanel(
        labels=_named(spans),
        values=release.answer_many(first, last).tolist(),
        low=_at(low, order),
        high=_at(high, order),
        title=f"{domain} in {len(spans)} parts {told.after(release.reports)}",
        note=f"Whiskers hold the number without noise {told.often}, each by itself."
        if release.reports
        else _NONE,
        unit="Clients",
    )


def _attribute(found: GridEstimate, name: str, told: EstimateContext) -> BarPanel:
    """One attribute of several, in equal parts."""
    spans = _spans(found.domains[name])
    none = [None] * len(spans)
    return BarPanel(
        labels=_named(spans),
        values=[100 * found.share(**{name: span}) for span in spans],
        low=none,
        high=none,
        title=f"{name}: {found.domains[name]} in {len(spans)} parts {told.after(found.reports)}",
        note="All grids together: consistent, biased, and no error is known."
        if found.reports
        else _NONE,
        unit="% of the clients",
    )


def _cumulative(release: LocalRanges, told: EstimateContext) -> LinePanel:
    """How many clients there are up to each cell, with a band that holds all of it."""
    curve = release.cdf(confidence=told.confidence)
    places = _places(release.domain)
    x = places.astype(float).tolist()
    return LinePanel(
        lines=[ChartCurve(label="up to here", x=x, y=curve.values[places].tolist())],
        x=_cells(release.domain),
        y=ChartAxis(label="clients up to here"),
        title=f"Clients of {release.domain} up to each value {told.after(release.reports)}",
        note=f"The gray band holds all of the curve without noise {told.often}."
        if release.reports
        else _NONE,
        # Never infinite: no client is outside, and their number is known.
        band=ChartBand(x=x, low=curve.low[places].tolist(), high=curve.high[places].tolist()),
    )


def _polished(found: NonnegativeRelease, told: EstimateContext) -> LinePanel:
    """The same without a band: no error is known."""
    places = _places(found.domain)
    sums = np.cumsum(found.cells)
    in_all = (
        told.after(round(found.pinned)) if told.cost else f"({number(round(found.pinned))} in all)"
    )
    return LinePanel(
        lines=[
            ChartCurve(label="up to here", x=places.astype(float).tolist(), y=sums[places].tolist())
        ],
        x=_cells(found.domain),
        y=ChartAxis(label="clients up to here" if told.cost else "rows up to here"),
        title=f"{found.domain} up to each value {in_all}",
        note="Made non-negative: biased, and no error is known.",
    )


def _density(
    found: DistributionEstimate | DistributionBootstrap, told: EstimateContext
) -> LinePanel:
    """Share by unit, as steps; from a bootstrap with about where the truth is."""
    estimate = found.estimate if isinstance(found, DistributionBootstrap) else found
    x = np.repeat(estimate.edges, 2)[1:-1].tolist()
    note = "No error is known: simulate it with bootstrap()." if estimate.reports else _NONE
    band = None
    if isinstance(found, DistributionBootstrap):
        low, high = found.interval_of(lambda one: one.density, told.confidence)
        note = (
            f"Gray: roughly where the truth is, cell by cell ({told.often}): simulated, no theorem."
        )
        band = ChartBand(x=x, low=_steps(np.maximum(low, 0)), high=_steps(np.maximum(high, 0)))
    if not estimate.converged:
        note = f"Not settled: more iterations would move it. {note}"
    return LinePanel(
        lines=[ChartCurve(label="estimate", x=x, y=_steps(estimate.density))],
        x=ChartAxis(label="number, in its unit", zero=False),
        y=ChartAxis(label="share of the clients by unit"),
        title=f"Distribution in {len(estimate.shares)} cells {told.after(estimate.reports)}",
        note=note,
        band=band,
    )


def _steps(values: Floats) -> list[float]:
    return np.repeat(values, 2).tolist()


def _spans(domain: Domain) -> list[tuple[Any, Any]]:
    marks = np.unique(np.linspace(0, domain.size, _PARTS + 1).astype(np.int64))
    return [(_end(domain, a, 0), _end(domain, b - 1, 1)) for a, b in pairwise(marks.tolist())]


def _named(spans: Sequence[tuple[Any, Any]]) -> list[str]:
    return [_word(a) if a == b else f"{_word(a)} – {_word(b)}" for a, b in spans]


def _end(domain: Domain, cell: int, side: int) -> Any:
    """The label at which a range starts (0) or ends (1) that has this cell there."""
    label = domain.label(cell)
    return label[side] if isinstance(label, tuple) else label  # bins have two edges


def _places(domain: Domain) -> Any:
    return np.unique(np.linspace(0, domain.size - 1, _POINTS).astype(np.int64))


def _cells(domain: Domain) -> ChartAxis:
    def words(tick: float) -> str:
        inside = tick == int(tick) and 0 <= tick < domain.size
        return _word(_end(domain, int(tick), 1))[:12] if inside else ""

    return ChartAxis(label=str(domain), words=words)


def _word(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _at(values: Any, order: Sequence[Any] | range) -> list[Any]:
    """Those at some places; None where nothing finite is known."""
    if values is None:
        return [None] * len(order)
    found = (float(values[i]) for i in order)
    return [value if math.isfinite(value) else None for value in found]


def _percent(shares: Any, order: Sequence[Any] | range) -> list[Any]:
    return [None if share is None else 100 * share for share in _at(shares, order)]


def _cost(randomizer: LocalRandomizer) -> str:
    """What one report costs its client, and all of them where a response is kept."""
    cost = f" of {describe_epsilon(randomizer.guarantee)}"
    if isinstance(randomizer, MemoizedOracle):
        cost += f", {describe_epsilon(randomizer.after())} a period"
    return cost
