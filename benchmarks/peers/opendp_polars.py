"""OpenDP with Polars: rows of a person cut to a limit, then noise on each group."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import opendp.prelude
import polars as pl

dp: Any = opendp.prelude  # what Polars gets from it is not typed
dp.enable_features("contrib", "honest-but-curious")
warnings.filterwarnings("ignore")

_ROWS = 10_000_000


def table(
    *, file: str, limit: int, keys: int, epsilon: float = 0.0, rho: float = 0.0
) -> Callable[[], dict[str, list[float]]]:
    """Count and sum of each shop; the mean is their quotient, which costs nothing."""
    loss = dp.loss_of(epsilon=epsilon) if epsilon else dp.loss_of(rho=rho)
    unit = dp.unit_of(contributions=1, identifier="person")

    def work() -> dict[str, list[float]]:
        amount: Any = pl.col("amount").fill_null(0)
        sums = amount.dp.sum((0, 100)).alias("sum")
        query = _context(file, unit, loss, keys).query().truncate_per_group(limit)
        query = query.group_by("shop").agg(dp.len(signed=True).alias("count"), sums)
        found = query.with_keys(_keys(keys)).release().collect().sort("shop")
        counts, totals = found["count"].to_list(), found["sum"].to_list()
        means = [s / max(n, 1) for n, s in zip(counts, totals)]  # noqa: B905
        return {"count": counts, "sum": totals, "mean": means}

    return work


def grouped_count(*, file: str, keys: int, epsilon: float) -> Callable[[], None]:
    """How many rows each shop has, every row another person's."""
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=epsilon)

    def work() -> None:
        query = _context(file, unit, loss, keys).query().group_by("shop").agg(dp.len(signed=True))
        query.with_keys(_keys(keys)).release().collect()

    return work


def _context(file: str, unit: Any, loss: Any, keys: int) -> Any:
    margins = [
        dp.polars.Margin(by=[], max_length=_ROWS),
        dp.polars.Margin(by=["shop"], max_length=_ROWS, max_groups=keys),
    ]
    return dp.Context.compositor(
        data=pl.scan_parquet(file),
        privacy_unit=unit,
        privacy_loss=loss,
        split_evenly_over=1,
        margins=margins,
    )


def _keys(keys: int) -> pl.LazyFrame:
    return pl.LazyFrame({"shop": pl.Series(range(keys), dtype=pl.Int32)})
