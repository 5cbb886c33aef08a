"""Estimates of the local model as rows of plain values: for a table, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from discreet.core.errors import Unsupported
from discreet.local.collection import Collection
from discreet.mechanisms.local.distribution import Distribution
from discreet.mechanisms.local.frequencies import Frequencies
from discreet.mechanisms.local.mean import Mean
from discreet.queries.ranges.local.found import Found
from discreet.queries.ranges.local.release import LocalRanges

Row: TypeAlias = dict[str, Any]
_SHARES = ("share", "std", "low", "high", "count")


def rows(found: object, collection: Collection, *, level: float) -> list[Row]:
    """One row for each category, cell, text or mean."""
    match found:
        case Frequencies():
            names: Iterable[Any] = collection.labels or range(len(found.shares))
            columns = (found.shares, found.std, *found.interval(level), found.counts)
            return _columns(("category", *_SHARES), names, *columns)
        case Found():
            counts = found.shares * found.reports
            columns = (found.shares, found.std, *found.interval(level), counts)
            return _columns(("text", *_SHARES), found.texts, *columns)
        case LocalRanges():
            return _cells(found, level)
        case Distribution():
            edges, shares = found.edges, found.shares
            return _columns(("from", "to", "share"), edges[:-1].tolist(), edges[1:], shares)
        case Mean():
            return [_mean(found, level)]
        case dict():
            return [{"column": name, **_mean(one, level)} for name, one in found.items()]
    raise Unsupported(
        f"The estimate of {collection.randomiser.kind} is no table: read the state in Python."
    )


def _cells(found: LocalRanges, level: float) -> list[Row]:
    """Numbers of clients, cell by cell; ranges of cells are answered from the artefact."""
    labels = [found.domain.label(cell) for cell in range(found.domain.size)]
    ends = [(label, label) if not isinstance(label, tuple) else label for label in labels]
    first, last = (np.array([end[side] for end in ends]) for side in (0, 1))
    low, high = found.interval(first, last, level=level)
    columns = (found.cells, found.std(first, last), low, high)
    return _columns(("cell", "count", "std", "low", "high"), map(str, labels), *columns)


def _mean(found: Mean, level: float) -> Row:
    low, high = found.interval(level)
    return {"mean": found.value, "std": found.std, "low": low, "high": high}


def _columns(heads: tuple[str, ...], names: Iterable[Any], *columns: Any) -> list[Row]:
    plain = (np.asarray(column).tolist() for column in columns)
    return [dict(zip(heads, row, strict=True)) for row in zip(names, *plain, strict=True)]
