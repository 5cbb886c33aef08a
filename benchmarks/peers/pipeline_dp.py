"""PipelineDP on its local backend: rows as Python tuples, in memory."""

from __future__ import annotations

from collections.abc import Callable

import pipeline_dp
import pyarrow.parquet as pq

_NO_DELTA = 1e-30  # Laplace noise and public keys need none, but it must be positive


def table(
    *, file: str, limit: int, keys: int, epsilon: float
) -> Callable[[], dict[str, list[float]]]:
    """Count, sum and mean of each shop with at most so many rows of a person."""
    metrics = [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN]
    params = pipeline_dp.AggregateParams(
        metrics=metrics,
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_contributions=limit,
        min_value=0,
        max_value=100,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def work() -> dict[str, list[float]]:
        columns = pq.read_table(file)
        rows = list(zip(*(columns[c].to_pylist() for c in ("person", "shop", "amount"))))  # noqa: B905
        accountant = pipeline_dp.NaiveBudgetAccountant(epsilon, _NO_DELTA)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        answers = engine.aggregate(rows, params, extractors, public_partitions=list(range(keys)))
        accountant.compute_budgets()
        found = dict(answers)
        return {
            name: [float(getattr(found[key], name)) for key in range(keys)]
            for name in ("count", "sum", "mean")
        }

    return work
