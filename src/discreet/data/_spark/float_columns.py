"""Columns of doubles in a Spark frame, added up as arrays of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from discreet.data._float_columns import Ints, Piece, of_batch
from discreet.data._spark.engine import STATE, Worker, added

_BITS = 32


def add_up(frame: Any, columns: list[str], piece: Piece, *, start: Ints) -> Ints:
    """``start`` plus the sum of ``piece`` over the rows. Workers need discreet installed."""
    size = 2 * len(start)
    states = added(frame, columns, cast="double", add=_adding(piece, size), merge=_merging(size))
    total = start.copy()
    for state in states:
        high, low = np.split(np.frombuffer(state, dtype=np.int64).astype(start.dtype), 2)
        total += (high << _BITS) + low
    return total


def _halves(values: Ints) -> Ints:
    """High and low halves of whole numbers: their sums have room for any number of rows."""
    return np.concatenate((values >> _BITS, values & (1 << _BITS) - 1))


def _adding(piece: Piece, size: int) -> Worker:
    """What a worker does with a partition."""

    def add(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _one(size, batches, lambda batch: _halves(piece(of_batch(batch))))

    return add


def _merging(size: int) -> Worker:
    """What a worker of the second stage does: arrays become one."""

    def states(batch: Any) -> Ints:
        total = np.zeros(size, dtype=np.int64)
        for state in batch.column(0):
            total += np.frombuffer(state.as_py(), dtype=np.int64)
        return total

    def merge(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _one(size, batches, states)

    return merge


def _one(size: int, batches: Iterable[Any], function: Callable[[Any], Ints]) -> Iterator[Any]:
    """One row with the sum over all batches, or none if there are no batches."""
    total, kind = np.zeros(size, dtype=np.int64), None
    for batch in batches:
        total += function(batch)
        kind = type(batch)
    if kind is not None:
        yield kind.from_pydict({STATE: [total.tobytes()]})
