"""Where the rows are: files, a DuckDB relation, a frame, a stream of Arrow batches, a cluster.

Opening a source reads names and types, never a row. What a source holds appears in no message and
no repr, not even its column names: the first line of a CSV without a header is somebody's data.
"""

from __future__ import annotations

import csv
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

import duckdb
import narwhals.stable.v2 as nw

from discreet.core.errors import InvalidArgument, PrivacyError, Unsupported
from discreet.data.program import Key, Program, fields
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    Column,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    TextColumn,
    kind_of,
)

Type: TypeAlias = Literal[
    "integer",
    "exact",
    "float",
    "text",
    "boolean",
    "date",
    "time",
    "time_s",
    "time_ns",
    "object",
    "other",
]
"""What a source says a column is; `exact`: decimals and integers beyond 64 bits, read as text;
`time_s`: moments in seconds or milliseconds, which microseconds may not hold."""
Format: TypeAlias = Literal["csv", "parquet", "arrow"]
EngineName: TypeAlias = Literal["spark"]
T = TypeVar("T")

_SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_LONGEST_HEADER = 2**20
POSTGRES = ("postgresql://", "postgres://")
_INTEGERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"]
_TEXTS: frozenset[Type] = frozenset({"text", "object"})
_NUMBERS: frozenset[Type] = _TEXTS | {"integer", "exact", "float", "boolean"}


class EngineFailure(PrivacyError):
    """An engine could not read the source or finish; its own message is withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """Files of one format with the same columns, read by DuckDB as they stream by."""

    paths: tuple[str, ...]
    format: Format
    columns: Mapping[str, Type] = field(repr=False)
    delimiter: str = ","


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBSource:
    """A DuckDB relation, run on its own connection."""

    relation: duckdb.DuckDBPyRelation = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource:
    """A frame in memory, or a lazy one that is collected column by column."""

    frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowStreamSource:
    """Arrow batches of the named columns, read once by DuckDB as they arrive."""

    batches: Callable[[Sequence[str]], AbstractContextManager[Any]] = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSource:
    """A Spark frame, run on its own session's cluster."""

    frame: Any = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSource:
    """A source whose rows also get columns of their unit's row in another private source."""

    source: Source
    other: Source
    unit: str
    attached: Mapping[str, Column] = field(repr=False)

    @property
    def columns(self) -> Mapping[str, Type]:
        """The fields of the source itself."""
        return self.source.columns


Source: TypeAlias = (
    FileSource | DuckDBSource | FrameSource | ArrowStreamSource | SparkSource | JoinedSource
)


def run_sealed(what: str, action: Callable[[], T]) -> T:
    """Run an engine; its exceptions can quote rows and are dropped with all their context."""
    try:
        return action()
    except (PrivacyError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001, S110  # a panic of Rust is no Exception, and quotes rows
        pass
    # Raised outside of the handler, so that not even __context__ keeps the original. The class of
    # the error is withheld as well: it tells what kind of value a row holds.
    raise EngineFailure(f"{what} failed; details are withheld, they can quote rows.")


def open_source(
    thing: object,
    *,
    format: Format | None = None,  # noqa: A002
    delimiter: str = ",",
    engine: EngineName | None = None,
    spark: str | None = None,
) -> Source:
    """What `discreet.table` takes: a path, an address, a DuckDB relation, or a frame.

    Files are read by DuckDB, or with ``engine="spark"`` by the active Spark session; without one, a
    session is started on the master that ``spark`` or Spark's own configuration names.
    """
    if engine not in (None, "spark"):
        raise InvalidArgument(f"engine must be 'spark' or left out, got {engine!r}.")
    if spark is not None and engine is None:
        raise InvalidArgument("spark names a master: it needs engine='spark'.")
    if isinstance(thing, str) and thing.startswith(POSTGRES):
        if engine is not None:
            raise Unsupported("a PostgreSQL table is read by DuckDB: leave engine out.")
        return _optional("discreet.data._postgres_source").open_postgres(thing)  # type: ignore[no-any-return]
    if isinstance(thing, str) and "://" in thing:  # not quoted: it may hold a password
        raise InvalidArgument(
            "source must be a path, or an address of PostgreSQL (postgresql://...): fetch what "
            "stands elsewhere into a file."
        )
    if isinstance(thing, str | Path):
        files = _files(Path(thing), format=format, delimiter=delimiter)
        if engine is None:
            return files
        spark_source = _optional("discreet.data._spark.source")
        return spark_source.read_files(files, master=spark)  # type: ignore[no-any-return]
    if isinstance(thing, duckdb.DuckDBPyRelation):
        return DuckDBSource(relation=thing, columns=_relation_columns(thing))
    return _frame(thing)


def _optional(module: str) -> Any:
    """A module of this package whose libraries are optional."""
    return importlib.import_module(module)


def _frame(thing: object) -> Source:
    frame = run_sealed("reading the frame", lambda: nw.from_native(thing, pass_through=True))
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise InvalidArgument(
            f"source must be a path, a DuckDB relation or a data frame, got {type(thing).__name__}."
        )
    kind = frame.implementation
    if kind.is_duckdb():
        return open_source(frame.to_native())
    if kind.is_pyspark() or kind.is_pyspark_connect():
        spark_source = _optional("discreet.data._spark.source")
        return spark_source.open_frame(frame.to_native())  # type: ignore[no-any-return]
    if kind.is_ibis():
        return _ibis(frame.to_native())
    if isinstance(frame, nw.LazyFrame) and not kind.is_polars():
        raise Unsupported(
            f"a lazy frame of {kind.value} cannot be read: write it to Parquet, or compute it."
        )
    schema = run_sealed("reading the frame's schema", frame.collect_schema)
    types = {name: _frame_type(dtype) for name, dtype in schema.items()}
    return FrameSource(frame=frame, columns=MappingProxyType(types))


def _ibis(table: Any) -> Source:
    """An Ibis expression: DuckDB's is a relation, other backends hand over batches."""
    backend = run_sealed("finding the backend of the Ibis table", table.get_backend)
    if backend.name == "duckdb":
        query = run_sealed(
            "reading the Ibis table", lambda: backend.con.sql(backend.compile(table))
        )
        return open_source(query)

    @contextmanager
    def batches(names: Sequence[str]) -> Iterator[Any]:
        with table.select(*names).to_pyarrow_batches() as reader:
            yield reader

    schema = run_sealed("reading the schema", lambda: table.schema().to_pyarrow())
    return ArrowStreamSource(batches=batches, columns=arrow_columns(schema))


def arrow_columns(schema: Any) -> Mapping[str, Type]:
    """The types that DuckDB sees in Arrow batches of this schema."""

    def types() -> Mapping[str, Type]:
        check_distinct_names(schema.names)
        with private_connection() as connection:
            return _relation_columns(connection.from_arrow(schema.empty_table()))

    return run_sealed("reading the schema", types)


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse names that DuckDB takes for one another: the unit would be read from elsewhere."""
    if len({name.lower() for name in names}) != len(names):
        raise InvalidArgument(
            "the columns of the source must differ by more than upper and lower case: rename one."
        )


def public_keys(table: object, *, columns: Sequence[str]) -> tuple[Key, ...]:
    """The different rows of a *public* frame, as group keys; missing values are left out."""
    frame = nw.from_native(table, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame) or not set(columns) <= set(frame.columns):
        raise InvalidArgument(f"keys must come from a data frame with the columns {list(columns)}.")
    rows = frame.select(list(columns)).drop_nulls().rows()
    return tuple(dict.fromkeys(rows))


def check_source(program: Program, source: Source) -> None:
    """Refuse a program whose columns the source does not have, or not with a fitting type."""
    wanted = [name for name, _ in fields(program)]
    missing = [n for n in (*wanted, program.unit) if n is not None and n not in source.columns]
    if missing:
        raise InvalidArgument(f"columns {missing} are not in the source: check names and header.")
    for name, column in fields(program):
        check_type(name, column, source.columns[name])
    if program.unit is not None and source.columns[program.unit] not in _TEXTS | {
        "integer",
        "float",
    }:
        raise InvalidArgument(f"unit {program.unit!r} must be whole numbers or text in the source.")
    if program.unit is not None:
        check_unit_type(program.unit, source)


def check_unit_type(unit: str, source: Source) -> None:
    """Refuse units that pandas holds as doubles: one missing id makes doubles of all integers."""
    if isinstance(source, JoinedSource):
        check_unit_type(source.unit, source.other)
        check_unit_type(unit, source.source)
        return
    chosen = isinstance(source, FrameSource) and source.frame.implementation.is_pandas_like()
    if chosen and source.columns.get(unit) == "float":
        raise InvalidArgument(
            f"unit {unit!r} is a column of doubles in pandas, as a single missing id makes it, and "
            "doubles cannot tell large ids apart: use astype('Int64') where the ids are read, or "
            "text."
        )


def check_type(name: str, column: ColumnSpec, kind: Type) -> None:
    """Refuse a declaration that the type of a field in its source does not fit."""
    allowed = _allowed(column)
    if kind not in allowed:
        raise InvalidArgument(
            f"column {name!r} is {kind} in the source; as a "
            f"{kind_of(column)} it must be one of {sorted(allowed)}."
        )


def _allowed(column: ColumnSpec) -> frozenset[Type]:
    match column:
        case CategoryColumn() if isinstance(column.categories[0], str):
            return _TEXTS
        case TextColumn() | LookupColumn(textual=True):
            return _TEXTS
        case BooleanColumn():
            return _NUMBERS - {"exact"}
        case DateColumn():
            return _TEXTS | {"date", "time", "time_s", "time_ns"}
        case _:
            return _NUMBERS


def _files(path: Path, *, format: Format | None, delimiter: str) -> FileSource:  # noqa: A002
    if not path.exists():
        raise InvalidArgument(f"source {str(path)!r} does not exist.")
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] not in "._")
    else:
        found = [path]
    kinds = {format or _SUFFIXES.get(p.suffix.lower()) for p in found}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None or kind not in _SUFFIXES.values():
        raise InvalidArgument(
            f"source {str(path)!r} must be a CSV, Parquet or Arrow file, or a folder of one kind."
        )
    if any(re.search(r"[*?\[]", str(p)) for p in found):
        raise InvalidArgument("paths must not contain *, ? or [: engines read them as patterns.")
    if not isinstance(delimiter, str):
        raise InvalidArgument(f"delimiter must be one character, got {type(delimiter).__name__}.")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidArgument("delimiter must be one character, no quote and no line break.")
    headers = [_header(p, kind, delimiter) for p in found]
    if any(list(header.items()) != list(headers[0].items()) for header in headers):
        raise InvalidArgument(
            f"the files in {str(path)!r} must all have the same columns in the same order."
        )
    paths = tuple(str(p) for p in found)
    columns = MappingProxyType(headers[0])
    return FileSource(paths=paths, format=kind, columns=columns, delimiter=delimiter)


def _header(path: Path, kind: Format, delimiter: str) -> dict[str, Type]:
    """Names and types, from the header or the footer of one file."""
    match kind:
        case "csv":
            return run_sealed("reading the header", lambda: _csv_header(path, delimiter))
        case "parquet":
            return run_sealed("reading the header", lambda: _parquet_header(path))
        case "arrow":
            return run_sealed("reading the header", lambda: _arrow_header(path))


def _csv_header(path: Path, delimiter: str) -> dict[str, Type]:
    # Bytes: a text file would decode a block of rows ahead of the first line.
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    line: str | None = None
    with suppress(UnicodeDecodeError):  # whose context would quote the line
        line = first.split(b"\r")[0].decode("utf-8-sig")
    if line is None:
        raise InvalidArgument("the first line of a CSV must be UTF-8: save the file as UTF-8.")
    names = next(csv.reader([line], delimiter=delimiter), [])
    if not names or len({name.lower() for name in names}) != len(names) or "" in names:
        raise InvalidArgument("the first line of a CSV must hold different column names.")
    return dict.fromkeys(names, "text")


def _parquet_header(path: Path) -> dict[str, Type]:
    with private_connection() as connection:
        return dict(_relation_columns(connection.read_parquet(str(path), hive_partitioning=False)))


def private_connection() -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, that fetches no extension from anywhere."""
    return duckdb.connect(config={"autoinstall_known_extensions": "false"})


def _arrow_header(path: Path) -> dict[str, Type]:
    return dict(arrow_columns(arrow_dataset((str(path),)).schema))


def arrow_dataset(paths: tuple[str, ...]) -> Any:
    """A lazy Arrow dataset; DuckDB's own reader would be a download."""
    try:
        module = importlib.import_module("pyarrow.dataset")
    except ImportError:
        module = None
    if module is None:
        raise Unsupported("Arrow files need pyarrow: pip install pyarrow, or convert to Parquet.")
    return module.dataset(list(paths), format="ipc")


def _relation_columns(relation: duckdb.DuckDBPyRelation) -> Mapping[str, Type]:
    types = {
        name: _duckdb_type(str(kind))
        for name, kind in zip(relation.columns, relation.types, strict=True)
    }
    return MappingProxyType(types)


def _duckdb_type(name: str) -> Type:
    if name in _INTEGERS:
        return "integer"
    if name in {"UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"} or name.startswith("DECIMAL"):
        return "exact"
    if name in {"VARCHAR", "UUID"} or name.startswith("ENUM"):
        return "text"
    single: Mapping[str, Type] = {
        "FLOAT": "float",
        "DOUBLE": "float",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "time",
        "TIMESTAMP_S": "time_s",
        "TIMESTAMP_MS": "time_s",
        "TIMESTAMP WITH TIME ZONE": "time",
        "TIMESTAMP_NS": "time_ns",
    }
    return single.get(name, "other")


def _frame_type(dtype: Any) -> Type:
    if dtype in {nw.UInt64, nw.Int128, nw.UInt128} or dtype == nw.Decimal:
        return "exact"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "float"
    if dtype in {nw.String, nw.Categorical} or dtype == nw.Enum:
        return "text"
    if dtype == nw.Datetime:
        return "time"
    single: Mapping[Any, Type] = {nw.Boolean: "boolean", nw.Date: "date", nw.Object: "object"}
    return single.get(dtype if isinstance(dtype, type) else type(dtype), "other")
