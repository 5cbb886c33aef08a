"""The data of the large regression: many rows of twenty numbers, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.environments import CACHE

_PART = 1_000_000


def file(*, n: int, d: int) -> Path:
    """A folder of Parquet files, made once: ``x0 .. x{d-1}`` and ``y``, all within -1 and 1."""
    folder = CACHE / "data" / f"wide-{n}-{d}"
    if not folder.exists():
        unfinished = folder.with_suffix(".part")
        unfinished.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        slopes = rng.uniform(-1, 1, d) / d
        for part, start in enumerate(range(0, n, _PART)):
            x = rng.uniform(-1, 1, (min(_PART, n - start), d))
            y = np.clip(x @ slopes + rng.normal(0, 0.1, len(x)), -1, 1)
            columns = {f"x{i}": x[:, i] for i in range(d)}
            pl.DataFrame({**columns, "y": y}).write_parquet(unfinished / f"{part:03}.parquet")
        unfinished.rename(folder)
    return folder / "*.parquet"
