"""Sum the reports in a Spark frame on the workers that hold its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.core.errors import Unsupported
from discreet.data._spark.engine import STATE, Worker, added
from discreet.local.collection._report_frames import Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Count: TypeAlias = Callable[[Iterable[Piece]], bytes | None]
"""The sum of some values of a column as bytes; None if there were none."""
Merge: TypeAlias = Callable[[Iterable[bytes]], bytes | None]
"""The sum of such sums; None if there were none."""


def sum_partitions(frame: DataFrame, column: str, *, count: Count, merge: Merge) -> list[bytes]:
    """A few sums of a column's reports. Workers need discreet installed, as the driver does."""
    if find_spec("pandas") is None or find_spec("pyarrow") is None:
        raise Unsupported("Spark sums reports through pandas and pyarrow: pip install both.")
    return added(frame, [column], add=_counting(count), merge=_merging(merge))


def _counting(count: Count) -> Worker:
    """What a worker does with a partition: batches of reports become one sum."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _batches(count(batch.column(0) for batch in batches))

    return run


def _merging(merge: Merge) -> Worker:
    """What a worker of the second stage does: sums become one sum."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from _batches(merge(state.as_py() for batch in batches for state in batch.column(0)))

    return run


def _batches(state: bytes | None) -> Iterator[Any]:
    """One batch of one row, or none."""
    if state is not None:
        import pyarrow as pa  # noqa: PLC0415 - Spark brings it

        yield pa.RecordBatch.from_arrays([pa.array([state], pa.binary())], names=[STATE])
