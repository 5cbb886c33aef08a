"""Whether pandas made a file or an Arrow table: it may have chosen a column's type from its rows.

pandas leaves its name in the schema, which is public. One missing id makes doubles of a column of
integers there; a program that has no other number, such as R, writes doubles whatever the rows are.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping

import duckdb

_NAME = b"pandas"


def written_by_pandas(paths: Iterable[str], format_name: str) -> bool:
    """Return whether pandas wrote one of these files; CSV does not tell."""
    if format_name == "parquet":
        with duckdb.connect() as connection:
            return any(_parquet(connection, path) for path in paths)
    return format_name == "arrow" and any(map(_arrow, paths))


def from_pandas(table: object) -> bool:
    """Return whether an Arrow table was made of a pandas frame."""
    metadata: Mapping[bytes, bytes] | None = getattr(
        getattr(table, "schema", None), "metadata", None
    )
    return _NAME in (metadata or {})


def _parquet(connection: duckdb.DuckDBPyConnection, path: str) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM parquet_kv_metadata(?) WHERE key = ?", [path, _NAME]
    ).fetchone()
    return found is not None and bool(found[0])


def _arrow(path: str) -> bool:
    datasets = importlib.import_module("pyarrow.dataset")
    return from_pandas(datasets.dataset([path], format="arrow"))
