"""Reports in a Spark frame: every partition is summed by the worker that holds it.

What travels is one sum for each partition, never a report. The sums are added in a second, smaller
stage, so that the driver gets a bounded number of them however many partitions there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.core.errors import Unsupported
from discreet.data.source import sealed
from discreet.local.aggregate import Aggregate
from discreet.local.frames import add
from discreet.mechanisms.local.randomiser import Randomiser

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUMS = 16
"""Most sums that reach the driver."""
_SCHEMA = "state binary"


def aggregate(frame: DataFrame, randomiser: Randomiser, *, column: str) -> Aggregate:
    """Count the reports of a column. Workers need discreet installed, as the driver does."""
    if find_spec("pandas") is None or find_spec("pyarrow") is None:
        raise Unsupported("Spark sums reports through pandas and pyarrow: pip install both.")

    def run() -> list[bytes] | None:
        # By position: to a session, a dot in a name means a field, and its case may not matter.
        place = [field.name for field in frame.schema.fields].index(column)
        narrow = frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).select(f"c{place}")
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, of which nothing is used here.
            warnings.filterwarnings(
                "ignore", message="PySpark does not yet", category=FutureWarning
            )
            sums = narrow.mapInArrow(_counting(randomiser), _SCHEMA)
            merged = sums.repartition(SUMS).mapInArrow(_merging(randomiser), _SCHEMA)
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
    total = Aggregate(randomiser)
    for state in states:
        total.merge(Aggregate.from_bytes(state, randomiser))
    return total


def _counting(randomiser: Randomiser) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker does with a partition: batches of reports become one sum."""

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        counted = Aggregate(randomiser)
        for batch in batches:
            add(counted, batch.column(0))
        yield from _sent(counted)

    return count


def _merging(randomiser: Randomiser) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker of the second stage does: sums become one sum."""

    def merge(batches: Iterable[Any]) -> Iterator[Any]:
        merged = Aggregate(randomiser)
        for batch in batches:
            for state in batch.column(0):
                merged.merge(Aggregate.from_bytes(state.as_py(), randomiser))
        yield from _sent(merged)

    return merge


def _sent(counted: Aggregate) -> Iterator[Any]:
    """One row, or none if nothing was seen."""
    if counted.reports or counted.refused:
        import pyarrow as pa  # noqa: PLC0415 - Spark brings it

        state = pa.array([counted.to_bytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([state], names=["state"])
