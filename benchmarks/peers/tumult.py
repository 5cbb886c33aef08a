"""Tumult Analytics on a local Spark, private ids."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

_CORES = os.cpu_count() or 1


def _spark() -> SparkSession:
    """One session, started by the warm-up; as many shuffle partitions as cores, not 200."""
    builder = SparkSession.builder.master(f"local[{_CORES}]")
    options = {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": str(_CORES),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def table(
    *, file: str, limit: int, keys: int, epsilon: float = 0.0, rho: float = 0.0
) -> Callable[[], dict[str, list[float]]]:
    """Count and sum of each shop; the mean is their quotient, which costs nothing."""
    kind, amount = (PureDPBudget, epsilon) if epsilon else (RhoZCDPBudget, rho)
    spark, shops = _spark(), KeySet.from_dict({"shop": list(range(keys))})

    def work() -> dict[str, list[float]]:
        session = _session(spark, file, kind(amount), AddRowsWithID("person"))
        groups = QueryBuilder("visits").enforce(MaxRowsPerID(limit)).groupby(shops)
        counts = _values(session, groups.count(name="value"), kind(amount / 2), keys)
        sums = _values(session, groups.sum("amount", 0, 100, name="value"), kind(amount / 2), keys)
        means = [s / max(n, 1) for n, s in zip(counts, sums)]  # noqa: B905
        return {"count": counts, "sum": sums, "mean": means}

    return work


def grouped_count(*, file: str, keys: int, epsilon: float) -> Callable[[], None]:
    """How many rows each shop has, every row another person's."""
    spark, shops = _spark(), KeySet.from_dict({"shop": list(range(keys))})

    def work() -> None:
        session = _session(spark, file, PureDPBudget(epsilon), AddOneRow())
        question = QueryBuilder("visits").groupby(shops).count(name="value")
        _values(session, question, PureDPBudget(epsilon), keys)

    return work


def _session(spark: SparkSession, file: str, budget: Any, change: Any) -> Session:
    visits = spark.read.parquet(file)
    return Session.from_dataframe(budget, "visits", visits, protected_change=change)


def _values(session: Session, question: Any, budget: Any, keys: int) -> list[float]:
    found = {
        row["shop"]: float(row["value"]) for row in session.evaluate(question, budget).collect()
    }
    return [found[key] for key in range(keys)]
