"""The data of the table benchmarks: visits of people to shops, the same on every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.environments import CACHE

MOST = 120  # a few amounts pass the upper bound of the questions, 100
_ROW_GROUP = 122_880


def file(*, rows: int, people: int, keys: int, even: int, csv: int = 0) -> Path:
    """A Parquet or CSV file, made once: person, shop (``0 .. keys - 1``), amount in whole units.

    Who made a visit is random; with ``even`` everyone made as many, to different shops.
    """
    path = CACHE / "data" / f"visits-{rows}-{people}-{keys}-{even}.{'csv' if csv else 'parquet'}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        table = pl.DataFrame(_columns(rows=rows, people=people, keys=keys, even=bool(even)))
        if csv:
            table.write_csv(unfinished)
        else:
            table.write_parquet(unfinished, compression="snappy", row_group_size=_ROW_GROUP)
        unfinished.rename(path)
    return path


def truth(path: Path, *, keys: int) -> dict[str, list[float]]:
    """Count, sum and mean of each shop with amounts cut at 100, without any limit."""
    table = pl.read_parquet(path)
    shop = table["shop"].to_numpy()
    amount = np.minimum(table["amount"].to_numpy(), 100)
    counts = np.bincount(shop, minlength=keys)
    sums = np.bincount(shop, weights=amount, minlength=keys)
    return {"count": counts.tolist(), "sum": sums.tolist(), "mean": (sums / counts).tolist()}


def _columns(*, rows: int, people: int, keys: int, even: bool) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(1)
    if even:
        person = np.arange(rows) % people
        shop = (person + np.arange(rows) // people) % keys
    else:
        person = rng.integers(0, people, rows)
        shop = rng.integers(0, keys, rows)
    amount = np.minimum(rng.gamma(2.0, 12.0, rows), MOST)
    return {
        "person": person.astype(np.int64),
        "shop": shop.astype(np.int32),
        "amount": amount.astype(np.int32),
    }
