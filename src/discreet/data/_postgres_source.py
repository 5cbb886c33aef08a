"""A table or view in PostgreSQL, read through ADBC as Arrow batches.

The address is that of libpq with the table behind a hash: ``postgresql://host/db#schema.visits``.
Names and types come from the catalog. Addresses can hold passwords: they are in no repr and no
message. One statement reads all rows, so they are those of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.source import ArrowStreamSource, Type, check_distinct_names, run_sealed

_CATALOG = """
SELECT n.nspname::text, c.relname::text, a.attname::text, b.typname::text, b.typtype::text
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_TYPES: Mapping[str, Type] = {
    "int2": "integer",
    "int4": "integer",
    "int8": "integer",
    "numeric": "exact",
    "float4": "float",
    "float8": "float",
    "text": "text",
    "varchar": "text",
    "bpchar": "text",
    "name": "text",
    "citext": "text",
    "uuid": "text",
    "bool": "boolean",
    "date": "date",
    "timestamp": "time",
    "timestamptz": "time",
}


def open_postgres(url: str) -> ArrowStreamSource:
    """The named table; no row is read."""
    address, _, table = url.partition("#")
    if not table:
        raise InvalidArgument(
            "a PostgreSQL source names its table behind a hash: postgresql://host/db#schema.table."
        )
    found = run_sealed("asking PostgreSQL for the table", lambda: _catalog(address, unquote(table)))
    if not found:
        raise InvalidArgument(
            f"there is no table {unquote(table)!r} that this user can see: check the name (letters "
            "in upper case need double quotes) and the schema."
        )
    check_distinct_names([column for _, _, column, _, _ in found])
    schema, name = found[0][:2]
    kinds = {column: _type(kind, family) for _, _, column, kind, family in found}
    stored = {column: kind for _, _, column, kind, _ in found}
    source = f"{_quoted(schema)}.{_quoted(name)}"

    @contextmanager
    def batches(names: Sequence[str]) -> Iterator[Any]:
        picked = ", ".join(_value(column, kinds[column], stored[column]) for column in names)
        with _connected(address) as cursor:
            cursor.execute(f"SELECT {picked} FROM {source}")  # noqa: S608 - quoted names only
            with cursor.fetch_record_batch() as reader:
                yield reader

    return ArrowStreamSource(batches=batches, columns=MappingProxyType(kinds))


def _type(kind: str, family: str) -> Type:
    return "text" if family == "e" else _TYPES.get(kind, "other")


def _value(column: str, kind: Type, stored: str) -> str:
    """One column of the query; texts as texts, and moments that a calendar of ours has."""
    name = _quoted(column)
    if kind in ("text", "exact"):
        return f"{name}::text AS {name}"
    if kind in ("date", "time"):
        zone = "+00" if stored == "timestamptz" else ""
        first, last = (f"'{day}{zone}'::{stored}" for day in ("0001-01-01", "9999-12-31 23:59:59"))
        # Infinity, too: it would not fit into an Arrow column.
        return f"CASE WHEN {name} BETWEEN {first} AND {last} THEN {name} END AS {name}"
    return name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _catalog(address: str, table: str) -> list[tuple[str, ...]]:
    with _connected(address) as cursor:
        cursor.execute(_CATALOG, (table,))
        rows: list[tuple[str, ...]] = cursor.fetchall()
        return rows


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A cursor of a connection of its own, in a transaction that is never committed."""
    with _driver()(address) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        yield cursor


def _driver() -> Callable[[str], Any]:
    try:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - optional
    except ImportError:
        raise Unsupported(
            "a PostgreSQL source needs ADBC and Arrow: pip install 'discreet[postgres]'."
        ) from None
    connect: Callable[[str], Any] = dbapi.connect
    return connect
