"""Columns of doubles in a Spark frame: each partition is added up by the worker that holds it.

What travels is one array of whole numbers for each partition, never a row; a second stage adds
those up, so that the driver gets a bounded number of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from discreet.core.errors import OutOfDomain, Unsupported
from discreet.data.doubles import Doubles, Ints, Piece, of_batch
from discreet.data.source import sealed

SUMS = 16
"""Most arrays that reach the driver."""
_SCHEMA = "state binary"


def add_up(frame: Any, columns: list[str], piece: Piece, *, start: Ints) -> Ints:
    """``start`` plus the sum of ``piece`` over the rows. Workers need discreet installed."""

    def run() -> list[bytes] | None:
        # By position: to a session, a dot in a name means a field, and its case may not matter.
        names = [field.name for field in frame.schema.fields]
        plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
        narrow = plain.selectExpr(
            *(f"try_cast(c{names.index(name)} AS double) AS d{i}" for i, name in enumerate(columns))
        )
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, of which nothing is used here.
            warnings.filterwarnings(
                "ignore", message="PySpark does not yet", category=FutureWarning
            )
            sums = narrow.mapInArrow(_adding(piece, len(start)), _SCHEMA)
            merged = sums.repartition(SUMS).mapInArrow(_merging(len(start)), _SCHEMA)
        try:
            return [bytes(row[0]) for row in merged.collect()]
        except Exception as error:
            if "No module named" in str(error):
                return None
            raise

    states = sealed("the Spark job", run)
    if states is None:
        raise Unsupported(
            "The workers of Spark cannot import discreet: install it in the Python that they run, "
            "and name that one in PYSPARK_PYTHON before the session starts."
        )
    total = np.concatenate((start, [0]))
    for state in states:
        total += np.frombuffer(state, dtype=np.int64)
    if total[-1]:
        raise OutOfDomain("A column holds missing or infinite values, or text that is no number.")
    return np.asarray(total[:-1], dtype=np.int64)


def _adding(piece: Piece, size: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker does with a partition; behind the sums, how many pieces were refused."""

    def counted(values: Doubles) -> Ints:
        if np.isfinite(values).all():
            return np.concatenate((piece(values), [0])).astype(np.int64)
        return np.concatenate((np.zeros(size, dtype=np.int64), [1]))

    def add(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _one(size, batches, lambda batch: counted(of_batch(batch)))

    return add


def _merging(size: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
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
        yield kind.from_pydict({"state": [total.tobytes()]})
