"""Where the rows are: files, a DuckDB relation, a frame, a stream of Arrow batches, a cluster.

Opening a source reads names and types. Of a CSV it also reads each line once, by itself, and of
Parquet each text, so that whatever can go wrong goes wrong then, and not when something is asked:
see `csv_records`. What a source holds appears in no message and no repr, not even the column names
of a CSV: the first line of one without a header is somebody's data.
"""

from __future__ import annotations

import csv
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar
from urllib.parse import unquote

import duckdb
import narwhals.stable.v2 as nw

from discreet.core._plugins import SOURCES, load, plugins
from discreet.core.errors import InvalidArgument, PrivacyError, Unsupported
from discreet.data._chosen_types import from_pandas, written_by_pandas
from discreet.data.csv_records import (
    LONGEST_COPY,
    CsvHeader,
    Dialect,
    PrivateFolder,
    Records,
    check_quoted,
    is_plain,
    read_header,
    write_clean,
)
from discreet.data.program import Key, Program, fields
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    Column,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    TextColumn,
    field_of,
    kind_of,
    spelling_of,
)
from discreet.data.unit import Unit, unit_columns

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
    "mixed",
    "other",
]
"""What a source says a column is; `exact`: decimals and integers beyond 64 bits, read as text;
`time_s`: moments in seconds or milliseconds, which microseconds may not hold; `mixed`: what the
files of a folder do not say alike."""
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
_FILE = "discreet_file_of_the_row"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
POSTGRES = ("postgresql://", "postgres://")
_INTEGERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"]
_EXACT = 2**53
"""Whole numbers up to here are doubles."""
_TEXTS: frozenset[Type] = frozenset({"text", "object"})
_DATES: frozenset[Type] = frozenset({"date", "time", "time_s", "time_ns"})
_NUMBERS: frozenset[Type] = _TEXTS | {"integer", "exact", "float", "boolean"}


class EngineFailure(PrivacyError):
    """An engine could not read the source or finish; its own message is withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """What tells that a file was written to or replaced."""

    size: int
    modified: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCopies:
    """What is read in place of the files: copies that were made when they were opened."""

    paths: tuple[str, ...]
    format: Format
    folder: PrivateFolder = field(repr=False)


class _Unpickled:
    """A source that is no file: a pickle would hold the rows, or needs what is open here."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            "Only a table over files can be pickled: a pickle of this one would hold its rows, or "
            "needs a connection that is open here. Open the table where it is needed."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderColumns:
    """Columns whose values are in the names of folders, ``year=2024``: one row for each file."""

    names: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """Files of one format, read by DuckDB as they stream by."""

    paths: tuple[str, ...]
    format: Format
    columns: Mapping[str, Type] = field(repr=False)
    delimiter: str = ","
    records: Records = "lines"
    stamps: tuple[FileStamp, ...] = field(default=(), repr=False)
    """What each file was when it was opened."""
    copies: FileCopies | None = field(default=None, repr=False)
    through_arrow: bool = field(default=False, repr=False)
    """Parquet in which DuckDB would fail on a value: read by Arrow, which hands it over."""
    root: str | None = field(default=None, repr=False)
    """The folder that was opened; the names of those below it may hold values."""
    folders: FolderColumns | None = field(default=None, repr=False)
    parts: tuple[FileSource, ...] = field(default=(), repr=False)
    """The same files by the columns that they have, where not all have the same ones."""

    def __reduce__(self) -> tuple[Callable[..., FileSource], tuple[object, ...]]:
        """A pickle names the files; they are checked again where it is read."""
        given = self.paths, self.format, self.delimiter, self.records, self.stamps, self.root
        return _reopened, given

    @property
    def stored(self) -> Mapping[str, Type]:
        """The columns that stand in the files themselves."""
        outside = () if self.folders is None else self.folders.names
        return {name: kind for name, kind in self.columns.items() if name not in outside}


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBSource(_Unpickled):
    """A DuckDB relation, run on its own connection."""

    relation: duckdb.DuckDBPyRelation = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource(_Unpickled):
    """A frame in memory, or a lazy one that is collected column by column."""

    frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowStreamSource(_Unpickled):
    """Arrow batches of the named columns, read once by DuckDB as they arrive."""

    batches: Callable[[Sequence[str]], AbstractContextManager[Any]] = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSource(_Unpickled):
    """A Spark frame, run on its own session's cluster."""

    frame: Any = field(repr=False)
    columns: Mapping[str, Type] = field(repr=False)
    paths: tuple[str, ...] = field(default=(), repr=False)
    """The files that it reads, if it was opened by their path, and what each was then."""
    stamps: tuple[FileStamp, ...] = field(default=(), repr=False)


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
    records: Records = "lines",
    engine: EngineName | None = None,
    spark: str | None = None,
) -> Source:
    """What `discreet.table` takes: a path, an address, a DuckDB relation, or a frame.

    Files are read by DuckDB, or with ``engine="spark"`` by the active Spark session; without one, a
    session is started on the master that ``spark`` or Spark's own configuration names.
    """
    if records not in ("lines", "quoted"):
        raise InvalidArgument(f"records must be 'lines' or 'quoted', got {records!r}.")
    if engine not in (None, "spark"):
        raise InvalidArgument(f"engine must be 'spark' or left out, got {engine!r}.")
    if spark is not None and engine is None:
        raise InvalidArgument("spark names a master: it needs engine='spark'.")
    if isinstance(thing, str) and thing.startswith(POSTGRES):
        if engine is not None:
            raise Unsupported("a PostgreSQL table is read by DuckDB: leave engine out.")
        return _optional("discreet.data._postgres_source").open_postgres(thing)  # type: ignore[no-any-return]
    if isinstance(thing, str) and "://" in thing:
        thing = _of_guest(thing)
    if isinstance(thing, str) and "://" in thing:  # not quoted: it may hold a password
        raise InvalidArgument(
            "source must be a path, or an address of PostgreSQL (postgresql://...) or of an "
            "installed package (see: discreet guests): fetch what stands elsewhere into a file."
        )
    if isinstance(thing, str | Path):
        files = _files(Path(thing), format=format, delimiter=delimiter, records=records)
        if engine is None:
            return run_sealed("reading the lines", lambda: _readable(files))
        check_records(files)
        run_sealed("reading the moments", lambda: _check_moments(files))
        spark_source = _optional("discreet.data._spark.source")
        return spark_source.read_files(files, master=spark)  # type: ignore[no-any-return]
    if isinstance(thing, duckdb.DuckDBPyRelation):
        return DuckDBSource(relation=thing, columns=_relation_columns(thing))
    return _frame(thing)


def _of_guest(address: str) -> object:
    """What another installed package opens an address as; the address, if none knows it."""
    point = plugins(SOURCES).get(address.partition("://")[0])
    opener = None if point is None else load(point)
    return address if opener is None else run_sealed("opening the address", lambda: opener(address))


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
    types = run_sealed("reading the frame's schema", lambda: _frame_types(frame, schema))
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
            plain = without_zones(reader.schema)
            yield reader if plain == reader.schema else reader.cast(plain)

    schema = run_sealed("reading the schema", lambda: table.schema().to_pyarrow())
    return ArrowStreamSource(batches=batches, columns=arrow_columns(without_zones(schema)))


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
    """Refuse a program whose columns the source does not have, or not with a fitting type.

    Also files that are no longer those that were opened.
    """
    check_unchanged(source)
    wanted = fields(program)
    names = [name for name, _ in wanted]
    missing = [n for n in (*names, *program.unit_columns) if n not in source.columns]
    if missing:
        raise InvalidArgument(f"columns {missing} are not in the source: check names and header.")
    for name, column in wanted:
        check_type(name, column, source.columns[name])
        _check_exact(name, column, source)
    for name in program.unit_columns:
        kind = source.columns[name]
        if kind not in _TEXTS | {"integer", "float"}:
            by = " Declare it as a date and use discreet.col()." if kind in _DATES else ""
            raise InvalidArgument(f"unit {name!r} must be whole numbers or text in the source.{by}")
        check_unit_type(name, source)


def check_names(schema: Mapping[str, ColumnSpec], unit: Unit | None, source: Source) -> None:
    """Refuse declared columns that the source does not have, when it is opened."""
    wanted = [field_of(name, column) for name, column in schema.items()]
    missing = [n for n in (*wanted, *unit_columns(unit)) if n not in source.columns]
    if missing:
        close = [f"{name!r} may be {found!r}" for name in missing for found in _near(name, source)]
        hint = f"; {', '.join(close)}" if close else ""
        raise InvalidArgument(
            f"columns {missing} are not in the source: check names and header{hint}."
        )
    for name in wanted:
        _check_alike(name, source.columns[name])
    if isinstance(source, FileSource) and unit is not None:
        _check_unit_of_files(unit_columns(unit), source)


def _check_unit_of_files(unit: Sequence[str], files: FileSource) -> None:
    """Refuse people with folders of their own, which show who is there, or without a name."""
    parts = files.parts or (files,)
    outside = {name for part in parts if part.folders for name in part.folders.names}
    if set(unit) <= outside:
        raise InvalidArgument(
            f"unit {list(unit)} is in the names of folders, which show who is there: write the "
            "files with a column of it."
        )
    lacking = [name for name in unit if any(name not in part.columns for part in parts)]
    if lacking:
        raise InvalidArgument(
            f"unit {lacking} is not in all files of the folder: their rows would belong to nobody."
        )


def _near(name: str, source: Source) -> list[str]:
    """A column of nearly this name. Of a CSV only the same letters in another form.

    The first line of a CSV without a header is somebody's data, which no message may quote.
    """
    plain = {found.strip().casefold(): found for found in source.columns}
    same = plain.get(name.strip().casefold())
    if same is not None:
        return [same]
    if isinstance(source, FileSource) and source.format == "csv":
        return []
    return get_close_matches(name, list(source.columns), n=1, cutoff=0.8)


def check_unit_type(unit: str, source: Source) -> None:
    """Refuse units that pandas holds as doubles: one missing id makes doubles of all integers."""
    if isinstance(source, JoinedSource):
        check_unit_type(source.unit, source.other)
        check_unit_type(unit, source.source)
        return
    if source.columns.get(unit) == "float" and _is_of_pandas(source):
        raise InvalidArgument(
            f"unit {unit!r} is a column of doubles in pandas, as a single missing id makes it, and "
            "doubles cannot tell large ids apart: use astype('Int64') where the ids are read, or "
            "text."
        )


def _check_exact(name: str, column: ColumnSpec, source: Source) -> None:
    """Refuse doubles of pandas under a declaration that tells whole numbers beyond 2**53 apart.

    One missing value makes doubles of everybody's integers, and all of those are then rounded.
    """
    while isinstance(source, JoinedSource):
        source = source.source  # columns of the other one were checked when they were attached
    if source.columns.get(name) == "float" and _reaches(column) > _EXACT and _is_of_pandas(source):
        raise InvalidArgument(
            f"column {name!r} is a column of doubles in pandas, as a single missing value makes "
            "it, and doubles cannot tell the whole numbers apart that are declared, beyond 2**53: "
            "use astype('Int64') where the rows are read."
        )


def _reaches(column: ColumnSpec) -> Fraction:
    """How far from zero whole numbers of the source matter; zero for what is no number there."""
    match column:
        case NumericColumn(lower=lower, upper=upper, exponent=exponent):
            return max(abs(lower), abs(upper)) * Fraction(2) ** exponent
        case CategoryColumn(categories=named):
            # The number after 2**53 would be rounded to it.
            return Fraction(max((abs(one) + 1 for one in named if isinstance(one, int)), default=0))
        case LookupColumn(keys=keys):
            return Fraction(max((abs(one) + 1 for one in keys if isinstance(one, int)), default=0))
    return Fraction(0)


def _is_of_pandas(source: Source) -> bool:
    match source:
        case FrameSource():
            kind = source.frame.implementation
            return kind.is_pandas_like() or (
                kind.is_pyarrow() and from_pandas(source.frame.to_native())
            )
        case FileSource(paths=paths, format=name):
            return run_sealed("reading the header", lambda: written_by_pandas(paths, name))
        case SparkSource(paths=paths) if paths:
            return run_sealed("reading the header", lambda: written_by_pandas(paths, "parquet"))
    return False


def check_type(name: str, column: ColumnSpec, kind: Type) -> None:
    """Refuse a declaration that the type of a field in its source does not fit."""
    spelling = spelling_of(column)
    if kind == "time_s" and spelling is not None and spelling.local is not None:
        raise InvalidArgument(
            f"column {name!r} holds moments in seconds or milliseconds, which may have a zone: "
            "leave zone out, or convert them to microseconds."
        )
    _check_alike(name, kind)
    allowed = _allowed(column)
    if kind not in allowed:
        raise InvalidArgument(
            f"column {name!r} is {kind} in the source; as a "
            f"{kind_of(column)} it must be one of {sorted(allowed)}."
        )


def _check_alike(name: str, kind: Type) -> None:
    if kind == "mixed":
        raise InvalidArgument(
            f"column {name!r} has types in the files of this folder that are not read alike: write "
            "them with one type, or open the files as tables of their own."
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
            return _TEXTS | _DATES
        case _:
            return _NUMBERS


def _files(
    path: Path,
    *,
    format: Format | None,  # noqa: A002
    delimiter: str,
    records: Records,
) -> FileSource:
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
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InvalidArgument("delimiter must be one character, no quote and no line break.")
    if records == "quoted" and not delimiter.isascii():
        raise InvalidArgument("delimiter must be an ASCII character where records='quoted'.")
    root = str(path.absolute()) if path.is_dir() else None
    return _described(found, kind, delimiter=delimiter, records=records, root=root)


def _reopened(
    paths: tuple[str, ...],
    kind: Format,
    delimiter: str,
    records: Records,
    stamps: tuple[FileStamp, ...],
    root: str | None = None,
) -> FileSource:
    """The files that a pickle names, if they are still those."""

    def read() -> FileSource:
        found = _described(
            list(map(Path, paths)), kind, delimiter=delimiter, records=records, root=root
        )
        if found.stamps != stamps:
            raise InvalidArgument("source: the file changed since it was opened; open it again.")
        return _readable(found)

    if not all(Path(path).exists() for path in paths):
        raise InvalidArgument("source: the files that this pickle names are not here.")
    return run_sealed("reading the lines", read)


def _described(
    found: Sequence[Path], kind: Format, *, delimiter: str, records: Records, root: str | None
) -> FileSource:
    """Files with their columns, of which the header alone is read."""
    # Absolute: neither os.chdir nor another process may lead to other files.
    paths = tuple(str(p.absolute()) for p in found)
    stamps = tuple(_stamp(p) for p in found)
    headers = [_header(p, kind, delimiter) for p in found]
    folders = None if root is None else _folder_columns(paths, root)

    def files(places: Sequence[int], header: _Header) -> FileSource:
        """Some of the files, all with this header."""
        stored = {name.lower() for name in header.columns}
        # What a file says itself is said by its rows.
        kept = (
            [i for i, name in enumerate(folders.names) if name.lower() not in stored]
            if folders
            else []
        )
        outside = None
        if folders is not None and kept:
            outside = FolderColumns(
                names=tuple(folders.names[i] for i in kept),
                values=tuple(tuple(folders.values[place][i] for i in kept) for place in places),
            )
        named: dict[str, Type] = dict.fromkeys(outside.names, "text") if outside else {}
        return FileSource(
            paths=tuple(paths[place] for place in places),
            format=kind,
            columns=MappingProxyType({**header.columns, **named}),
            delimiter=delimiter,
            records=records,
            stamps=tuple(stamps[place] for place in places),
            root=root,
            folders=outside,
        )

    places: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, header in enumerate(headers):
        places.setdefault(header.exact, []).append(place)
    parts = tuple(files(same, headers[same[0]]) for same in places.values())
    if len(parts) == 1:
        return parts[0]
    whole = FileSource(
        paths=paths,
        format=kind,
        columns=MappingProxyType({}),
        delimiter=delimiter,
        records=records,
        stamps=stamps,
        root=root,
    )
    return _together(whole, parts, _exact_types(headers))


def _folder_columns(paths: Sequence[str], root: str) -> FolderColumns | None:
    """Names and values of folders that are all named ``name=value``, as Hive and Spark do."""
    found = []
    for path in paths:
        pairs = [name.partition("=") for name in Path(path).relative_to(root).parent.parts]
        found.append({name: value for name, sign, value in pairs if name and sign})
        if len(found[-1]) != len(pairs) or list(found[-1]) != list(found[0]):
            return None
    names = tuple(found[0]) if found else ()
    if not names or len({name.lower() for name in names}) != len(names):
        return None
    return FolderColumns(
        names=names, values=tuple(tuple(map(_folder_value, one.values())) for one in found)
    )


def _folder_value(value: str) -> str | None:
    """What the name of a folder says; some characters cannot be in it as they are."""
    if value == _NO_VALUE:
        return None
    with suppress(UnicodeDecodeError):
        return unquote(value, errors="strict")
    return None


def _exact_types(headers: Sequence[_Header]) -> Mapping[str, frozenset[str]]:
    """All types that a column has in the words of the files."""
    found: dict[str, set[str]] = {}
    for header in headers:
        for name, kind in header.exact:
            found.setdefault(name, set()).add(kind)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def _together(
    whole: FileSource, parts: tuple[FileSource, ...], exact: Mapping[str, frozenset[str]]
) -> FileSource:
    """Files by the names of their columns: a column that a file does not have is missing there."""
    kinds: dict[str, list[Type]] = {}
    for part in parts:
        for name, kind in part.columns.items():
            kinds.setdefault(name, []).append(kind)
    check_distinct_names(list(kinds))
    columns = {name: _common(given, exact.get(name, frozenset())) for name, given in kinds.items()}
    return replace(whole, parts=parts, columns=MappingProxyType(columns))


def _common(kinds: Sequence[Type], exact: frozenset[str]) -> Type:
    """What a column is in files that differ: numbers of any width, or exactly the same type."""
    given = set(kinds)
    if given == {"text"} or (len(exact) <= 1 and len(given) == 1):
        return kinds[0]
    if given == {"integer"}:
        return "integer"
    if given <= {"integer", "exact"}:
        return "exact"
    if given <= {"integer", "float"}:
        return "float"
    return "mixed"


def _stamp(path: Path) -> FileStamp:
    found = path.stat()
    return FileStamp(size=found.st_size, modified=found.st_mtime_ns, inode=found.st_ino)


def is_changed(source: Source) -> bool:
    """Whether a file was written to, replaced or removed since it was opened."""
    match source:
        case FileSource(paths=paths, stamps=stamps) | SparkSource(paths=paths, stamps=stamps):
            try:
                return tuple(_stamp(Path(path)) for path in paths) != stamps
            except OSError:
                return True
        case JoinedSource(source=one, other=other):
            return is_changed(one) or is_changed(other)
        case _:
            return False


def check_unchanged(source: Source) -> None:
    """Refuse files that changed: what was checked when they were opened may no longer hold."""
    if is_changed(source):
        raise InvalidArgument("source: the file changed since it was opened; open it again.")


def check_records(files: FileSource) -> tuple[int, bool]:
    """Refuse CSV files with ``records="quoted"`` that are not of RFC 4180.

    Returns how many records there are, and whether a field of them holds a line break.
    """
    if files.parts:
        each = [check_records(part) for part in files.parts]
        return sum(many for many, _ in each), any(has_breaks for _, has_breaks in each)
    if files.format != "csv" or files.records != "quoted":
        return 0, False
    dialect = Dialect(delimiter=files.delimiter, fields=len(files.stored))
    found = [check_quoted(Path(p), dialect, read_header(Path(p))) for p in files.paths]
    return sum(one.records for one in found), any(one.has_breaks for one in found)


def _readable(files: FileSource) -> FileSource:
    """Files that no record can make unreadable: as they are, or copies in their place."""
    if files.parts:
        if files.format == "parquet" and not all(map(_fits_duckdb, files.parts)):
            parts = tuple(map(_handed_over, files.parts))  # all of them: types stay alike
            found = _together(files, parts, {})
            mixed = {name: kind for name, kind in files.columns.items() if kind == "mixed"}
            return replace(found, columns=MappingProxyType({**found.columns, **mixed}))
        return replace(files, parts=tuple(map(_readable, files.parts)))
    if files.format == "parquet" and not _fits_duckdb(files):
        return _handed_over(files)
    if files.format != "csv":
        return files
    if files.records == "quoted":
        records, has_breaks = check_records(files)
        return _as_parquet(files, records) if has_breaks else files
    dialect = Dialect(delimiter=files.delimiter, fields=len(files.stored))
    folder: PrivateFolder | None = None
    paths = []
    for place, path in enumerate(map(Path, files.paths)):
        header = read_header(path)
        if is_plain(path, dialect, header):
            paths.append(str(path))
            continue
        folder = folder or PrivateFolder()
        target = folder.path / f"{place}.csv"
        write_clean(path, target, dialect, header)
        paths.append(str(target))
    if folder is None:
        return files
    return replace(files, copies=FileCopies(paths=tuple(paths), format="csv", folder=folder))


def _fits_duckdb(files: FileSource) -> bool:
    """Whether all texts are UTF-8, and all moments within what microseconds hold."""
    texts = [name for name, kind in files.stored.items() if kind == "text"]
    return _is_readable(
        files,
        [
            *(f"octet_length(encode(CAST({quoted_name(name)} AS VARCHAR)))" for name in texts),
            *_milliseconds(files),
        ],
    )


def _milliseconds(files: FileSource) -> list[str]:
    """Moments that are stored in milliseconds, in microseconds; some may not fit."""
    if not any(kind.startswith("time") for kind in files.columns.values()):
        return []  # a connection takes longer than the header of a file
    listed = ", ".join(map(quoted_text, files.paths))
    with private_connection() as connection:
        query = f"FROM parquet_schema([{listed}]) WHERE converted_type = 'TIMESTAMP_MILLIS'"
        found = connection.sql(f"SELECT DISTINCT name {query}").fetchall()
    return [f"epoch_us({quoted_name(name)})" for (name,) in found if name in files.stored]


def _is_readable(files: FileSource, values: Sequence[str]) -> bool:
    """Whether DuckDB can compute these whole numbers for all rows."""
    if not values:
        return True
    # No statistics of a file can answer this.
    query = f"SELECT {', '.join(f'bit_xor({value})' for value in values)}"
    with private_connection() as connection, suppress(duckdb.Error):
        connection.sql(f"{query} {parquet_query(files.paths)}").fetchall()
        return True
    return False


def _check_moments(files: FileSource) -> None:
    """Refuse Parquet in which Spark would fail on a moment, whatever is asked."""
    for part in files.parts:
        _check_moments(part)
    if files.parts:
        return
    if files.format == "parquet" and not _is_readable(files, _milliseconds(files)):
        raise InvalidArgument(
            "source holds moments in milliseconds that microseconds do not hold: leave engine out, "
            "or convert them."
        )


def _handed_over(files: FileSource) -> FileSource:
    """The same files through Arrow, which looks at no value: what does not fit is missing."""
    dataset = arrow_files(files, format="parquet")
    columns = arrow_columns(dataset.schema)
    with private_connection() as connection:  # what is damaged fails here
        connection.from_arrow(dataset).aggregate("bit_xor(hash(COLUMNS(*)))").fetchall()
    return replace(files, columns=columns, through_arrow=True)


def _as_parquet(files: FileSource, records: int) -> FileSource:
    """Fields with line breaks: DuckDB must read them from the first byte on, so only once."""
    folder = PrivateFolder()
    target = str(folder.path / "records.parquet")
    with private_connection() as connection:
        connection.execute(f"SET temp_directory = {quoted_text(str(folder.path))}")
        rows = connection.sql(csv_query(files, parallel=False))
        rows.write_parquet(target)
        found = connection.read_parquet(target).count("*").fetchall()[0][0]
    if found != records:
        raise EngineFailure("DuckDB reads other records than there are: convert to Parquet.")
    return replace(files, copies=FileCopies(paths=(target,), format="parquet", folder=folder))


def read_query(files: FileSource) -> str:
    """How DuckDB reads CSV or Parquet files of one header."""
    read = files.copies or files
    if read.format == "csv":
        return csv_query(files)
    # Copies hold the values of the folders.
    return parquet_query(read.paths, folders=files.folders if files.copies is None else None)


def csv_query(files: FileSource, *, parallel: bool = True) -> str:
    """How DuckDB reads CSV files; nothing is detected: no row decides on types or the dialect."""
    read = files.copies or files
    paths = ", ".join(map(quoted_text, read.paths))
    columns = ", ".join(f"{quoted_text(column)}: 'VARCHAR'" for column in files.stored)
    # DuckDB fails on longer lines than it was told of; by default 2,000,000 bytes.
    longer = "" if files.copies is None else f"max_line_size = {LONGEST_COPY}, "
    named, more = _file_name(files.folders)
    query = (
        f"FROM read_csv([{paths}], auto_detect = false, header = true, "
        f"delim = {quoted_text(files.delimiter)}, quote = '\"', escape = '\"', nullstr = '', "
        f"hive_partitioning = false, parallel = {str(parallel).lower()}, "
        f"{longer}columns = {{{columns}}}{named})"
    )
    return more(query, read.paths)


def parquet_query(paths: Sequence[str], *, folders: FolderColumns | None = None) -> str:
    """How DuckDB reads Parquet files: the names of folders are columns only if that is asked."""
    listed = ", ".join(map(quoted_text, paths))
    named, more = _file_name(folders)
    return more(f"FROM read_parquet([{listed}], hive_partitioning = false{named})", paths)


def _file_name(folders: FolderColumns | None) -> tuple[str, Callable[[str, Sequence[str]], str]]:
    """An option that names the file of each row, and the query that finds its folders' values."""
    if folders is None:
        return "", lambda query, _: query

    def found(query: str, paths: Sequence[str]) -> str:
        listed = ", ".join(map(quoted_text, paths))
        columns = "".join(
            f", unnest({_decoded_texts(values)}) AS {quoted_name(name)}"
            for name, values in zip(folders.names, zip(*folders.values, strict=True), strict=True)
        )
        names = ", ".join(f"folder.{quoted_name(name)}" for name in folders.names)
        table = f"(SELECT unnest([{listed}]) AS {_FILE}{columns})"
        rows = f"SELECT rows.* EXCLUDE ({_FILE}), {names} FROM ({query}) AS rows"  # noqa: S608
        return f"{rows} LEFT JOIN {table} AS folder ON rows.{_FILE} = folder.{_FILE}"

    return f", filename = '{_FILE}'", found


def _decoded_texts(values: Sequence[str | None]) -> str:
    """A list of texts of which no character is part of the SQL; what is missing is empty."""
    digits = ",".join((value or "").encode().hex() for value in values)
    return f"list_transform(string_split('{digits}', ','), lambda one: decode(unhex(one)))"


def quoted_text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def quoted_name(identifier: str) -> str:
    """An identifier in SQL."""
    return '"' + identifier.replace('"', '""') + '"'


def decoded(
    relation: duckdb.DuckDBPyRelation, columns: Mapping[str, Type]
) -> duckdb.DuckDBPyRelation:
    """The same rows; a text that is not UTF-8 is missing. Arrow hands such texts over unseen."""
    texts = [quoted_name(name) for name in relation.columns if columns.get(name) == "text"]
    if not texts:
        return relation
    replaced = (f"TRY(decode(encode(CAST({one} AS VARCHAR)))) AS {one}" for one in texts)
    return relation.project(f"* REPLACE ({', '.join(replaced)})")


@dataclass(frozen=True, slots=True)
class _Header:
    """What the header or the footer of one file says of its columns."""

    columns: dict[str, Type]
    exact: tuple[tuple[str, str], ...]
    """Names and types in the file's own words."""


def _header(path: Path, kind: Format, delimiter: str) -> _Header:
    """Names and types, from the header or the footer of one file."""
    match kind:
        case "csv":
            return run_sealed("reading the header", lambda: _csv_header(path, delimiter))
        case "parquet":
            return run_sealed("reading the header", lambda: _parquet_header(path))
        case "arrow":
            return run_sealed("reading the header", lambda: _arrow_header(path))


def _csv_header(path: Path, delimiter: str) -> _Header:
    header = read_header(path)
    names = _names(header, delimiter)
    if not names or len({name.lower() for name in names}) != len(names) or "" in names:
        raise InvalidArgument("the first line of a CSV must hold different column names.")
    return _Header(dict.fromkeys(names, "text"), tuple((name, "text") for name in names))


def _names(header: CsvHeader, delimiter: str) -> list[str]:
    line: str | None = None
    with suppress(UnicodeDecodeError):  # whose context would quote the line
        line = header.line.decode("utf-8-sig")
    if line is None or "\0" in line:
        raise InvalidArgument("the first line of a CSV must be UTF-8: save the file as UTF-8.")
    names = next(csv.reader([line], delimiter=delimiter), [])
    pattern = Dialect(delimiter=delimiter, fields=len(names)).line_pattern if names else ""
    if not re.fullmatch(pattern, line):
        raise InvalidArgument("the first line of a CSV must hold names, with no stray quote.")
    return names


def _parquet_header(path: Path) -> _Header:
    with private_connection() as connection:
        found = connection.read_parquet(str(path), hive_partitioning=False)
        exact = zip(found.columns, map(str, found.types), strict=True)
        return _Header(dict(_relation_columns(found)), tuple(exact))


def private_connection() -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, that fetches no extension from anywhere."""
    return duckdb.connect(config={"autoinstall_known_extensions": "false"})


def _arrow_header(path: Path) -> _Header:
    schema = arrow_dataset((str(path),), format="arrow").schema
    exact = ((column.name, str(column.type)) for column in schema)
    return _Header(dict(arrow_columns(schema)), tuple(exact))


def arrow_files(files: FileSource, *, format: Format) -> Any:  # noqa: A002
    """A lazy dataset of files of one header, with the columns that their folders hold."""
    read = files.copies or files
    return arrow_dataset(read.paths, format=format, root=files.root, folders=files.folders)


def arrow_dataset(
    paths: tuple[str, ...],
    *,
    format: Format,  # noqa: A002
    root: str | None = None,
    folders: FolderColumns | None = None,
) -> Any:
    """A lazy dataset of Arrow, of Arrow files or of Parquet."""
    try:
        module = importlib.import_module("pyarrow.dataset")
    except ImportError:
        module = None
    if module is None:
        raise Unsupported(
            "these files can be read only with pyarrow: pip install pyarrow, or convert them to "
            "Parquet with texts in UTF-8 and moments in microseconds."
        )
    given: dict[str, Any] = {"format": "parquet" if format == "parquet" else "ipc"}
    if folders is not None:
        arrow = importlib.import_module("pyarrow")
        named = arrow.schema([(name, arrow.string()) for name in folders.names])
        given |= {"partitioning": module.HivePartitioning(named), "partition_base_dir": root}
    found = module.dataset(list(paths), **given)
    plain = without_zones(found.schema)
    return found if plain == found.schema else module.dataset(list(paths), schema=plain, **given)


def without_zones(schema: Any) -> Any:
    """An Arrow schema in which moments of a coarse unit have no zone: they stay the same moments.

    DuckDB turns moments with a zone into microseconds as it reads them, and fails where that does
    not fit; those without a zone it hands over as they are.
    """
    arrow = importlib.import_module("pyarrow")
    for place, column in enumerate(schema):
        unit = getattr(column.type, "unit", None)
        if getattr(column.type, "tz", None) is not None and unit in ("s", "ms"):
            schema = schema.set(place, column.with_type(arrow.timestamp(unit)))
    return schema


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


def _frame_types(frame: Any, schema: Mapping[str, Any]) -> dict[str, Type]:
    kinds = {name: _frame_type(dtype) for name, dtype in schema.items()}
    native = frame.to_native()
    if frame.implementation.is_pandas_like():
        return {name: _pandas_type(native.dtypes[name], kind) for name, kind in kinds.items()}
    if frame.implementation.is_pyarrow():
        return {name: _arrow_type(native.schema.field(name).type, k) for name, k in kinds.items()}
    return kinds


def _pandas_type(dtype: Any, kind: Type) -> Type:
    """What pandas itself says of a column: narwhals would look at the first hundred rows."""
    if str(dtype) == "object":
        return "object"
    if getattr(dtype, "pyarrow_dtype", None) is not None:
        # pandas has no function for views of texts.
        view = str(dtype.pyarrow_dtype) == "string_view"
        return "other" if view else _arrow_type(dtype.pyarrow_dtype, kind)
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return kind
    inner = _frame_type(nw.from_native(categories.to_series(), series_only=True).dtype)
    inner = _pandas_type(categories.dtype, inner)
    # Categories of whole numbers become text, or doubles, only by their own type.
    return "object" if inner in ("text", "integer", "exact", "boolean") else inner


def _arrow_type(dtype: Any, kind: Type) -> Type:
    """What the values of an Arrow dictionary are; what Arrow cannot write as text is nothing."""
    if getattr(dtype, "scale", 0) < 0:
        return "other"
    if not hasattr(dtype, "value_type") or not hasattr(dtype, "index_type"):
        return kind
    empty = importlib.import_module("pyarrow").chunked_array([], dtype.value_type)
    return _frame_type(nw.from_native(empty, series_only=True).dtype)


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
