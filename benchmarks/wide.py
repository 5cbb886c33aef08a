"""The data of the large regression: many rows of twenty numbers, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.environments import CACHE

_PART = 250_000


def file(*, n: int, d: int) -> Path:
    """A Parquet file, made once: ``x0 .. x{d-1}`` and ``y``, all within -1 and 1."""
    path = CACHE / "data" / f"wide-{n}-{d}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        names = [*(f"x{i}" for i in range(d)), "y"]
        schema = pa.schema([(name, pa.float64()) for name in names])
        rng = np.random.default_rng(1)
        slopes = rng.uniform(-1, 1, d) / d
        with pq.ParquetWriter(unfinished, schema) as writer:
            for start in range(0, n, _PART):
                x = rng.uniform(-1, 1, (min(_PART, n - start), d))
                y = np.clip(x @ slopes + rng.normal(0, 0.1, len(x)), -1, 1)
                writer.write_table(pa.table([*x.T, y], schema=schema))
        unfinished.rename(path)
    return path
