"""Reports in a Spark frame, summed where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.core.errors import Unsupported
from discreet.data._spark.engine import STATE, Worker, added
from discreet.local.collection._report_frames import add
from discreet.local.collection.aggregator import Aggregator
from discreet.local.randomizer import LocalRandomizer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def aggregate(frame: DataFrame, randomizer: LocalRandomizer, *, column: str) -> Aggregator:
    """Count the reports of a column. Workers need discreet installed, as the driver does."""
    if find_spec("pandas") is None or find_spec("pyarrow") is None:
        raise Unsupported("Spark sums reports through pandas and pyarrow: pip install both.")
    states = added(frame, [column], add=_counting(randomizer), merge=_merging(randomizer))
    total = Aggregator(randomizer)
    for state in states:
        total.merge(Aggregator.from_bytes(state, randomizer))
    return total


def _counting(randomizer: LocalRandomizer) -> Worker:
    """What a worker does with a partition: batches of reports become one sum."""

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        counted = Aggregator(randomizer)
        for batch in batches:
            add(counted, batch.column(0))
        yield from _sent(counted)

    return count


def _merging(randomizer: LocalRandomizer) -> Worker:
    """What a worker of the second stage does: sums become one sum."""

    def merge(batches: Iterable[Any]) -> Iterator[Any]:
        merged = Aggregator(randomizer)
        for batch in batches:
            for state in batch.column(0):
                merged.merge(Aggregator.from_bytes(state.as_py(), randomizer))
        yield from _sent(merged)

    return merge


def _sent(counted: Aggregator) -> Iterator[Any]:
    """One row, or none if nothing was seen."""
    if counted.reports or counted.refused:
        import pyarrow as pa  # noqa: PLC0415 - Spark brings it

        state = pa.array([counted.to_bytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([state], names=[STATE])
