"""Estimates of the local model as rows of plain values: for a table, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.core.errors import Unsupported
from discreet.local._heavy_hitters import HeavyHittersEstimate
from discreet.local.collection.spec import CollectionSpec
from discreet.local.distribution import DistributionEstimate
from discreet.local.means.base import MeanEstimate
from discreet.local.oracles.base import Frequencies
from discreet.local.ranges.release import LocalRanges

if TYPE_CHECKING:
    from discreet.local.randomizer import LocalRandomizer

Row: TypeAlias = dict[str, Any]
_SHARES = ("share", "std", "low", "high", "count")


def estimate_rows(found: object, collection: CollectionSpec, *, confidence: float) -> list[Row]:
    """One row for each category, cell, text or mean."""
    match found:
        case Frequencies():
            names: Iterable[Any] = collection.labels or range(len(found.shares))
            columns = (found.shares, found.std, *found.interval(confidence), found.counts)
            return _columns(("category", *_SHARES), names, *columns)
        case HeavyHittersEstimate():
            counts = found.shares * found.reports
            columns = (found.shares, found.std, *found.interval(confidence), counts)
            return _columns(("text", *_SHARES), found.texts, *columns)
        case LocalRanges():
            return _cells(found, confidence)
        case DistributionEstimate():
            edges, shares = found.edges, found.shares
            return _columns(("from", "to", "share"), edges[:-1].tolist(), edges[1:], shares)
        case MeanEstimate():
            return [_mean(found, confidence)]
        case dict():
            return [{"column": name, **_mean(one, confidence)} for name, one in found.items()]
    raise Unsupported(
        f"The estimate of {collection.randomizer.kind} is no table: read the state in Python."
    )


def _cells(found: LocalRanges, confidence: float) -> list[Row]:
    """Numbers of clients, cell by cell; ranges of cells are answered from the artifact."""
    labels = [found.domain.label(cell) for cell in range(found.domain.size)]
    ends = [(label, label) if not isinstance(label, tuple) else label for label in labels]
    first, last = (np.array([end[side] for end in ends]) for side in (0, 1))
    low, high = found.answer_interval(first, last, confidence=confidence)
    columns = (found.cells, found.answer_std(first, last), low, high)
    return _columns(("cell", "count", "std", "low", "high"), map(str, labels), *columns)


def _mean(found: MeanEstimate, confidence: float) -> Row:
    low, high = found.interval(confidence)
    return {"mean": found.value, "std": found.std, "low": low, "high": high}


def _columns(heads: tuple[str, ...], names: Iterable[Any], *columns: Any) -> list[Row]:
    plain = (np.asarray(column).tolist() for column in columns)
    return [dict(zip(heads, row, strict=True)) for row in zip(names, *plain, strict=True)]


def standard_error(randomizer: LocalRandomizer, *, reports: int) -> float:
    """The largest standard error of an estimate from so many reports."""
    return float(randomizer.std / reports**0.5)
