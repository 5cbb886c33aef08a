"""Sums over a Spark frame: each partition is added up by the worker that holds it.

What travels is one sum for each partition, never a row; a second stage adds those up, so that the
driver gets a bounded number of them however many partitions there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from discreet.core.errors import Unsupported
from discreet.data.source import sealed

SUMS = 16
"""Most sums that reach the driver."""
STATE = "state"
Worker: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]
"""Arrow batches in, at most one with a single ``STATE`` out. Runs where discreet is installed."""


def added(
    frame: Any, columns: Iterable[str], *, cast: str | None = None, add: Worker, merge: Worker
) -> list[bytes]:
    """The sums of the workers over these columns, read as a type (what is not of it is missing)."""

    def run() -> list[bytes] | None:
        # By position: to a session, a dot in a name means a field, and its case may not matter.
        names = [field.name for field in frame.schema.fields]
        plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
        places = [f"c{names.index(name)}" for name in columns]
        read = places if cast is None else [f"try_cast({place} AS {cast})" for place in places]
        narrow = plain.selectExpr(*(f"{one} AS d{i}" for i, one in enumerate(read)))
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, of which nothing is used here.
            warnings.filterwarnings(
                "ignore", message="PySpark does not yet", category=FutureWarning
            )
            sums = narrow.mapInArrow(add, f"{STATE} binary")
            merged = sums.repartition(SUMS).mapInArrow(merge, f"{STATE} binary")
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
    return states
