"""Columns of doubles in a Spark frame, added up as arrays of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from discreet.core.errors import OutOfDomain
from discreet.data._float_columns import Doubles, Ints, Piece, of_batch
from discreet.data._spark.engine import STATE, Worker, added


def add_up(frame: Any, columns: list[str], piece: Piece, *, start: Ints) -> Ints:
    """``start`` plus the sum of ``piece`` over the rows. Workers need discreet installed."""
    size = len(start)
    states = added(frame, columns, cast="double", add=_adding(piece, size), merge=_merging(size))
    total = np.concatenate((start, [0]))
    for state in states:
        total += np.frombuffer(state, dtype=np.int64)
    if total[-1]:
        raise OutOfDomain("A column holds missing or infinite values, or text that is no number.")
    return np.asarray(total[:-1], dtype=np.int64)


def _adding(piece: Piece, size: int) -> Worker:
    """What a worker does with a partition; behind the sums, how many pieces were refused."""

    def counted(values: Doubles) -> Ints:
        if np.isfinite(values).all():
            return np.concatenate((piece(values), [0])).astype(np.int64)
        return np.concatenate((np.zeros(size, dtype=np.int64), [1]))

    def add(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _one(size, batches, lambda batch: counted(of_batch(batch)))

    return add


def _merging(size: int) -> Worker:
    """What a worker of the second stage does: arrays become one."""

    def states(batch: Any) -> Ints:
        total = np.zeros(size + 1, dtype=np.int64)
        for state in batch.column(0):
            total += np.frombuffer(state.as_py(), dtype=np.int64)
        return total

    def merge(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _one(size, batches, states)

    return merge


def _one(size: int, batches: Iterable[Any], function: Callable[[Any], Ints]) -> Iterator[Any]:
    """One row with the sum over all batches, or none if there are no batches."""
    total, kind = np.zeros(size + 1, dtype=np.int64), None
    for batch in batches:
        total += function(batch)
        kind = type(batch)
    if kind is not None:
        yield kind.from_pydict({STATE: [total.tobytes()]})
