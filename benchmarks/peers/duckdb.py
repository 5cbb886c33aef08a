"""DuckDB: the same questions in plain SQL, as an analyst without privacy would write them."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

_CUT = "least(greatest(amount, 0), 100)"


def table(*, file: str, limit: int, keys: int, epsilon: float = 0.0) -> Callable[[], None]:
    """At most so many rows of a person (0: all), then count, sum and mean of each shop."""
    del keys, epsilon  # all shops, no noise
    kept = f"{'read_csv' if file.endswith('.csv') else 'read_parquet'}('{file}')"
    if limit:
        place = "row_number() OVER (PARTITION BY person) AS place"
        kept = f"(SELECT *, {place} FROM {kept}) WHERE place <= {limit}"
    query = f"SELECT shop, count(*), sum({_CUT}), avg({_CUT}) FROM {kept} GROUP BY shop"
    return lambda: _run(query)


def grouped_count(*, file: str, keys: int, epsilon: float = 0.0) -> Callable[[], None]:
    """How many rows each shop has."""
    del keys, epsilon
    return lambda: _run(f"SELECT shop, count(*) FROM read_parquet('{file}') GROUP BY shop")


def regression_file(*, file: str, n: int, d: int, epsilon: float = 0.0) -> Callable[[], None]:
    """All sums of products that least squares needs."""
    del n, epsilon
    names = [f"x{i}" for i in range(d)] + ["y"]
    sums = [f"sum({a} * {b})" for i, a in enumerate(names) for b in names[i:]]
    sums += [f"sum({name})" for name in names]
    query = f"SELECT count(*), {', '.join(sums)} FROM read_parquet('{file}')"
    return lambda: _run(query)


def _run(query: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(query).fetchall()
