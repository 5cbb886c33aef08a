"""Doors that take tables: frames, files, relations and databases, and what a table releases."""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import discreet
from discreet.core.relation import NeighboringRelation
from tests.data import sources
from tests.hostile.catalogue import CSV_LINES, STRANGE, strange
from tests.hostile.columns import ordinary_number
from tests.hostile.harness import REFUSED, Door, Pair, Session

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
Row = dict[str, Any]
LEVELS = ["a", "b", "é", "5"]
COLUMNS = {
    "x": discreet.real(lower=0, upper=10, granularity=0.25),
    "w": discreet.integer(lower=-5, upper=5),
    "t": discreet.category(LEVELS),
    "b": discreet.boolean(),
    "f": discreet.integer(lower=0, upper=1),
    "d": discreet.date(lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31)),
}
GAPS = ["NA", -3, 5, "it's --"]
YEAR = {"lower": dt.date(2020, 1, 1), "upper": dt.date(2020, 12, 31)}
POLICIES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "x": lambda: [
        {"missing": 2.5},
        {"missing": "exclude"},
        {"required": True},
        {"missing_values": GAPS, "decimal": ",", "thousands": "."},
    ],
    "w": lambda: [
        {"missing": 0},
        {"missing": "exclude"},
        {"required": True},
        {"missing_values": GAPS, "thousands": "_"},
    ],
    "t": lambda: [
        {"missing": "(missing)"},
        {"missing": "a"},
        {"required": True},
        {"missing_values": ["z", "NA"], "strip": True},
    ],
    "b": lambda: [
        {"missing": False},
        {"missing": "exclude"},
        {"required": True},
        {"true": ["true", "x", 5], "false": ["false", 0], "missing_values": GAPS[:2]},
    ],
    "d": lambda: [
        {"format": "%d.%m.%Y", "missing_values": ["NA", "1.1.2020", dt.date(2020, 5, 30)]},
        {"zone": "Europe/Berlin"},
        {"zone": "America/St_Johns", "missing_values": ["2020-01-01T00:00Z"]},
    ],
}
"""What a column may declare of the values that are missing, and of how values are written."""


def declared(draw: random.Random) -> dict[str, Any]:
    """The columns, with or without what is declared of their missing values."""

    def more(name: str) -> dict[str, Any]:
        return draw.choice([{}, {}, *POLICIES[name]()])

    return {
        **COLUMNS,
        "x": discreet.real(lower=0, upper=10, granularity=0.25, **more("x")),
        "w": discreet.integer(lower=-5, upper=5, **more("w")),
        "t": discreet.category(LEVELS, **more("t")),
        "b": discreet.boolean(**more("b")),
        "d": discreet.date(**YEAR, **more("d")),
    }


DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=30 * i) for i in range(12)]
TYPES = {
    "who": pa.string(),
    "x": pa.float64(),
    "w": pa.int64(),
    "t": pa.string(),
    "b": pa.bool_(),
    "f": pa.bool_(),
    "d": pa.date32(),
}
LIMIT = 2
_files = itertools.count()

QUESTIONS: dict[str, Callable[[], Any]] = {
    "count": discreet.query.count,
    "count by t": lambda: discreet.query.count(by="t"),
    "count where": lambda: discreet.query.count(where=discreet.col("x") > 5),
    "count of x": lambda: discreet.query.count(of="x"),
    "count where missing": lambda: discreet.query.count(where=discreet.col("d").is_missing()),
    "sum of filled w": lambda: discreet.query.sum(discreet.col("w").fill_missing(3)),
    "units by t": lambda: discreet.query.count_units(by="t"),
    "sum x": lambda: discreet.query.sum("x"),
    "sum w by t": lambda: discreet.query.sum("w", by="t"),
    "mean x": lambda: discreet.query.mean("x"),
    "mean x by b": lambda: discreet.query.mean("x", by="b"),
    "variance x": lambda: discreet.query.variance("x"),
    "covariance": lambda: discreet.query.covariance("x", "w"),
    "mean x in the population": lambda: discreet.query.mean("x", sampling=True),
    "std": lambda: discreet.query.std("x", by="b"),
    "correlation": lambda: discreet.query.correlation("x", "w"),
    "ratio": lambda: discreet.query.ratio("x", "w", sampling=True),
    "share": lambda: discreet.query.share(by="b"),
    "compare": lambda: discreet.query.compare("x", by="b", to=True),
    "count_distinct": lambda: discreet.query.count_distinct("b", at_least=3),
    "share by t": lambda: discreet.query.share(by="t", value="f"),
    "compare w by t": lambda: discreet.query.compare("w", by="t", to="a"),
    "count_distinct days": lambda: discreet.query.count_distinct("d", at_least=2),
    "count_distinct numbers": lambda: discreet.query.count_distinct("w", at_least=2),
    "weighted mean": lambda: discreet.query.weighted_mean("x", "f", by="b"),
    "maximum": lambda: discreet.query.maximum("x"),
    "minimum": lambda: discreet.query.minimum("w", by="b"),
    "histogram": lambda: discreet.query.histogram("x", edges=[1, 2.5, 5]),
    "median": lambda: discreet.query.median("x"),
    "quantiles": lambda: discreet.query.quantiles("w", [0.25, 0.75]),
    "sum of a product": lambda: discreet.query.sum(discreet.col("x") * discreet.col("w")),
    "sum of a quotient": lambda: discreet.query.sum(
        discreet.col("x").divide(discreet.col("w"), lower=-3, upper=3, granularity=0.25)
    ),
    "sum of a whole quotient": lambda: discreet.query.sum(discreet.col("w") // 2, by="b"),
    "mean of a case": lambda: discreet.query.mean(
        discreet.when(discreet.col("x") > discreet.col("w"))
        .then(abs(discreet.col("w")))
        .otherwise(3)
    ),
    "count by weekday": lambda: discreet.query.count(
        by={"day": discreet.col("d").weekday(), "month": discreet.col("d").month()}
    ),
    "count by parts": lambda: discreet.query.count(by=discreet.col("x").cut([2, 4, 6])),
    "count by region": lambda: discreet.query.count(
        by=discreet.col("t").map({"a": "n", "b": "s"}), where=discreet.col("t").isin(["a", "é"])
    ),
    "count of known": lambda: discreet.query.count(of="x", by="b"),
    "count of missing": lambda: discreet.query.count(where=discreet.col("x").is_missing()),
    "mean of filled": lambda: discreet.query.mean(discreet.col("w").fill_missing(1)),
    "sum of unknown conditions": lambda: discreet.query.sum(
        "w", where=~((discreet.col("x") > 5) & discreet.col("b")) | (discreet.col("t") == "a")
    ),
    "count by day": lambda: discreet.query.count(by="d", keys=DAYS),
    "sum of flags": lambda: discreet.query.sum("f"),
}


PERSON_DAY = ["who", discreet.col("d")]


def limited(unit: str | list[Any] | None) -> dict[str, Any]:
    """What a table with units is opened with."""
    if unit is None:
        return {}
    return {"privacy_unit": unit, "max_rows_per_unit": LIMIT}


# ── Honest rows, and those of one person ─────────────────────────────────────────────────────────


def honest_rows(draw: random.Random, *, whole_units: bool = False) -> list[Row]:
    gaps = draw.choice([0.0, 0.0, 0.3])
    nans = draw.choice([0.0, 0.3])
    low, high = draw.choice([(-1, 11), (1, 9)])

    def row(place: int) -> Row:
        name: Any = 2**61 + 7 * place if whole_units else f"p{place}"
        x: float | None = math.nan if draw.random() < nans else draw.uniform(low, high)
        found = {
            "who": name,
            "x": x,
            "w": draw.randrange(-6, 7),
            "t": draw.choice([*LEVELS, "z"]),
            "b": draw.random() < 0.5,
            "f": draw.random() < 0.5,
            "d": draw.choice(DAYS),
        }
        return {k: None if k != "who" and draw.random() < gaps else v for k, v in found.items()}

    many = draw.randrange(6, 40)
    return [row(draw.randrange(many) if draw.random() < 0.2 else i) for i in range(many)]


def _typed(kind: pa.DataType, *, text_units: bool = True) -> dict[str, object]:
    """Strange values that a column of this type can hold."""
    found: dict[str, object] = {"none": None}
    for name, value in STRANGE.items():
        if kind == pa.string():
            if isinstance(value, str) and type(value) in (str, np.str_):
                try:
                    str(value).encode()
                except UnicodeEncodeError:
                    continue
                found[name] = str(value)
            continue
        if kind == pa.bool_():
            continue
        if kind == pa.date32():
            if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
                found[name] = value
            continue
        number = ordinary_number(value)
        if kind == pa.float64():
            found[name] = math.nan if number is None else number
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
            found[name] = int.__int__(value)
    return found


STRANGE_TYPED = {str(kind): _typed(kind) for kind in TYPES.values()}
STRANGE_TYPED["bool"] |= {"true": True, "false": False}
STRANGE_TYPED["int64"] |= {"-2**63": -(2**63)}
_USUAL = {"x": 5.0, "w": 1, "t": "a", "b": True, "f": True, "d": DAYS[0]}


def typed_person(draw: random.Random, types: dict[str, Any], name: object) -> tuple[str, list[Row]]:
    """One to three rows of one person, in types that all others have, too."""
    told, rows = [], []
    for _ in range(draw.randrange(1, 4)):
        row = {"who": name, **_USUAL}
        for column in draw.sample(sorted(_USUAL), draw.randrange(1, 4)):
            listed = STRANGE_TYPED[str(types[column])]
            label = draw.choice(sorted(listed))
            row[column] = listed[label]
            told.append(f"{column}={label}")
        rows.append(row)
    return ", ".join(told), rows


def any_person(draw: random.Random, name: object) -> tuple[str, list[Row]]:
    """One to three rows of one person, of any types."""
    told, rows = [], []
    for _ in range(draw.randrange(1, 4)):
        row = {"who": name, **_USUAL}
        for column in draw.sample(sorted(_USUAL), draw.randrange(1, 4)):
            label, row[column] = strange(draw)
            told.append(f"{column}={label}")
        rows.append(row)
    return ", ".join(told), rows


# ── Sources ──────────────────────────────────────────────────────────────────────────────────────


def objects(rows: Sequence[Row], folder: Path) -> Any:
    def column(name: str) -> Any:
        held = np.empty(len(rows), dtype=object)
        for place, row in enumerate(rows):
            held[place] = row[name]
        return pd.Series(held, dtype=object)

    return pd.DataFrame({name: column(name) for name in rows[0]})


def inferred(rows: Sequence[Row], folder: Path) -> Any:
    """pandas chooses the type of each column from all rows."""
    frame = objects(rows, folder)
    return frame.assign(**{name: frame[name].infer_objects() for name in frame.columns})


def _path(folder: Path, ending: str) -> Path:
    return folder / f"{next(_files)}.{ending}"


def parquet_by(writer: str) -> Callable[[Any, Path], Any]:
    def written(table: pa.Table, folder: Path) -> Path:
        path = _path(folder, "parquet")
        if writer == "polars":
            pl.from_arrow(table).write_parquet(path)
        elif writer == "pandas":
            # With the types of Arrow: else one missing id makes doubles of all, in the file too.
            table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path)
        elif writer == "duckdb":
            duckdb.from_arrow(table).write_parquet(str(path))
        else:
            rows = max(1, table.num_rows // 3)
            pq.write_table(table, path, row_group_size=rows)
        return path

    return written


def arrow_by_polars(table: pa.Table, folder: Path) -> Path:
    path = _path(folder, "arrow")
    pl.from_arrow(table).write_ipc(path)
    return path


def relation_of_file(table: pa.Table, folder: Path) -> Any:
    return duckdb.connect().read_parquet(str(parquet_by("pyarrow")(table, folder)))


def pandas_arrow(table: pa.Table, folder: Path) -> Any:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def polars_categories(table: pa.Table, folder: Path) -> Any:
    frame = pl.from_arrow(table)
    return frame.with_columns(pl.col("t").cast(pl.Categorical))


def arrow_dictionaries(table: pa.Table, folder: Path) -> Any:
    place = table.column_names.index("t")
    return table.set_column(place, "t", table["t"].combine_chunks().dictionary_encode())


def pandas_nullable(table: pa.Table, folder: Path) -> Any:
    mapped = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    return table.to_pandas(types_mapper=mapped.get)


def pandas_file(frame: Any, folder: Path) -> Path:
    path = _path(folder, "parquet")
    frame.to_parquet(path)
    return path


def written_by_spark(ending: str) -> Callable[[Any, Path], Any]:
    """A folder as Spark leaves it: several parts, and files beside them that hold no rows."""

    def written(table: pa.Table, folder: Path) -> Path:
        path = _path(folder, ending)
        sources.spark_frame(table, folder).write.save(str(path), format=ending, header=True)
        return path

    return written


SERVICES: dict[str, Any] = {}
"""What tests with a server or a cluster put here: the address of a database."""


def postgres(table: pa.Table, folder: Path) -> Any:
    import psycopg

    kinds = {"string": "text", "double": "float8", "int64": "int8", "bool": "bool"}
    kinds |= {"date32[day]": "date"}
    name = f"hostile_{next(_files)}"
    columns = ", ".join(f'"{one.name}" {kinds[str(one.type)]}' for one in table.schema)
    with psycopg.connect(SERVICES["postgres"], autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
    return f"{SERVICES['postgres']}#public.{name}"


def _without_nul(rows: list[Row]) -> bool:
    """PostgreSQL has no text with a NUL, and no date beyond its own."""
    return not any("\0" in str(value) for row in rows for value in row.values())


CHEAP: dict[str, Callable[[Any, Path], Any]] = {
    "polars": sources.polars,
    "lazy polars": sources.polars_lazy,
    "arrow table": sources.pyarrow_table,
    "pandas": sources.pandas,
    "pandas nullable": pandas_nullable,
    "pandas arrow": pandas_arrow,
    "polars categories": polars_categories,
    "arrow dictionaries": arrow_dictionaries,
}
FILES: dict[str, Callable[[Any, Path], Any]] = {
    "parquet of pyarrow": parquet_by("pyarrow"),
    "parquet of polars": parquet_by("polars"),
    "parquet of pandas": parquet_by("pandas"),
    "parquet of duckdb": parquet_by("duckdb"),
    "folder": sources.partitioned,
    "folder of files that differ": sources.drifting,
    "arrow file": sources.arrow_file,
    "arrow file of polars": arrow_by_polars,
    "duckdb relation": sources.relation,
    "duckdb relation of a file": relation_of_file,
    "ibis": sources.ibis_table,
    "ibis on polars": sources.ibis_polars,
}


# ── One table, several questions ─────────────────────────────────────────────────────────────────


def fresh_account(relation: NeighboringRelation = ADD) -> Any:
    limit = discreet.pure_dp(10**9, relation=relation)
    return discreet.Ledger("memory://").account("a", limit=limit)


def _told(release: Any) -> object:
    return (release.value, tuple(release.keys), release.guarantee)


def people(
    draw: random.Random,
    *,
    types: dict[str, Any] | None,
    relation: NeighboringRelation,
    unit: str | None,
    rows: list[Row],
) -> Iterator[Pair]:
    """The honest rows with those of one person added, or in the place of another's."""
    place = draw.randrange(len(rows))
    replaced = rows[place]["who"]
    rest = rows
    if relation is REPLACE:
        rest = [row for row in rows if row["who"] != replaced]
        if unit is None:
            rest = [*rows[:place], *rows[place + 1 :]]
    whole = not isinstance(rows[0]["who"], str)
    owner: object = 17 if whole else "somebody"
    while True:
        name = "usual"
        if unit is not None and draw.random() < 0.4:
            if types is None:
                name, owner = strange(draw)
            else:
                listed = STRANGE_TYPED[str(types["who"])]
                name = draw.choice(sorted(listed))
                owner = listed[name]
        else:
            owner = 17 if whole else "somebody"
        if types is None:
            label, strange_rows = any_person(draw, owner)
        else:
            label, strange_rows = typed_person(draw, types, owner)
        if unit is None:
            strange_rows = strange_rows[:1]
        where = draw.choice([0, len(rest), draw.randrange(len(rest) + 1)])
        found = [*rest[:where], *strange_rows, *rest[where:]]
        yield Pair(f"{label}; owner {name}; at {where} of {len(rest)}", found)


def on_one_day(
    draw: random.Random, pairs: Iterator[Pair], *, base: list[Row], typed: bool
) -> Iterator[Pair]:
    """The same people, all of whose rows are of one day, or of what is none."""
    there = {id(row) for row in base}
    listed = STRANGE_TYPED["date32[day]"]
    for pair in pairs:
        label, day = ("usual", draw.choice(DAYS)) if draw.random() < 0.5 else strange(draw)
        if typed and label != "usual":
            label = draw.choice(sorted(listed))
            day = listed[label]
        rows = [row if id(row) in there else {**row, "d": day} for row in pair.data]
        yield Pair(f"{pair.name}; all on {label}", rows)


def opened(
    source: Callable[[Any, Path], Any] | None,
    *,
    holds: Callable[[list[Row]], bool] = lambda _: True,
    asks: Callable[[Any, Any], Any] = lambda table, asked: table.release(asked, epsilon=2),
    by_day: bool = False,
) -> Callable[[random.Random, Path], Session]:
    """Sessions of questions to a kind of source; None: pandas objects."""

    def started(draw: random.Random, folder: Path) -> Session:
        relation = ADD if by_day else draw.choice([ADD, REPLACE])
        unit = "who" if by_day else draw.choice([None, "who", "who"])
        rows = honest_rows(draw, whole_units=draw.random() < 0.5)
        whole = not isinstance(rows[0]["who"], str)
        types = {**TYPES, "who": pa.int64() if whole else pa.string()}
        account = fresh_account(relation)
        columns = declared(draw)
        asked = draw.sample(sorted(QUESTIONS), draw.randrange(2, 5))
        questions = [QUESTIONS[name]() for name in asked]

        def run(given: list[Row]) -> object:
            made = objects(given, folder) if source is None else None
            if source is not None:
                made = source(sources.arrow(given, types), folder)
            table = discreet.table(
                made,
                columns=columns,
                account=account,
                relation=relation,
                **limited(PERSON_DAY if by_day else unit),
            )
            found = tuple(map(_told, asks(table, questions)))
            if isinstance(made, Path) and made.is_file():
                made.unlink()
            return found

        def pairs() -> Iterator[Pair]:
            found = people(
                draw,
                types=None if source is None else types,
                relation=relation,
                unit=unit,
                rows=rows,
            )
            if by_day:
                found = on_one_day(draw, found, base=rows, typed=source is not None)
            return (pair for pair in found if holds(pair.data))

        return Session(base=rows, run=run, pairs=pairs, local=False, account=account)

    return started


def chosen_by_pandas(
    draw: random.Random, folder: Path, *, written: Callable[[Any, Path], Any] | None = None
) -> Session:
    """Frames whose types follow from all rows: a type may be refused, but is never misread.

    So are files that pandas writes of them.
    """
    rows = honest_rows(draw, whole_units=draw.random() < 0.5)
    for row in rows:
        row |= {k: _USUAL[k] for k, v in row.items() if v is None}
        row["x"] = 5.0 if row["x"] != row["x"] else row["x"]
    account = fresh_account()
    questions = [QUESTIONS[name]() for name in draw.sample(sorted(QUESTIONS), 3)]

    def run(given: list[Row]) -> object:
        made = inferred(given, folder)
        if written is not None:
            made = written(made, folder)
        try:
            table = discreet.table(made, columns=COLUMNS, account=account, **limited("who"))
            return tuple(map(_told, table.release(questions, epsilon=2)))
        except discreet.InvalidArgument:
            return REFUSED

    def pairs() -> Iterator[Pair]:
        whole = not isinstance(rows[0]["who"], str)
        types = {**TYPES, "who": pa.int64() if whole else pa.string()}
        # Values of the same columns' types, and none: NumPy has no missing integer or boolean.
        return people(draw, types=types, relation=ADD, unit="who", rows=rows)

    return Session(base=rows, run=run, pairs=pairs, local=False, account=account)


LARGE = 2**60
LARGE_COLUMNS = {
    "k": discreet.category([LARGE, LARGE + 1]),
    "n": discreet.integer(lower=LARGE, upper=LARGE + 10),
    "x": discreet.real(lower=LARGE, upper=LARGE + 2**12, granularity=256),
}
LARGE_TYPES = {"who": pa.string(), **dict.fromkeys(LARGE_COLUMNS, pa.int64())}
LARGE_QUESTIONS: list[Callable[[], Any]] = [
    lambda: discreet.query.count(by="k"),
    lambda: discreet.query.count(where=discreet.col("n") > LARGE + 4),
    lambda: discreet.query.count(by="n", keys=[LARGE, LARGE + 1, LARGE + 3]),
    lambda: discreet.query.sum("n"),
    lambda: discreet.query.sum("x"),
    lambda: discreet.query.median("n"),
]


def large_numbers(draw: random.Random, folder: Path) -> Session:
    """Whole numbers that doubles cannot tell apart, in frames whose types pandas chose, and others.

    Under replace-one a sum may move by as little as the bounds are apart.
    """
    relation = draw.choice([ADD, REPLACE])
    many = draw.randrange(6, 40)
    rows = [
        {
            "who": f"p{place}",
            "k": draw.choice([LARGE, LARGE + 1]),
            "n": LARGE + draw.randrange(11),
            "x": LARGE + draw.randrange(2**12),
        }
        for place in range(many)
    ]
    typed = ["polars", "lazy polars", "arrow table", "pandas nullable", "pandas arrow"]
    kind = draw.choice(["pandas", "pandas", "file of pandas", "objects", *typed])
    account = fresh_account(relation)
    questions = [make() for make in draw.sample(LARGE_QUESTIONS, 3)]
    place = draw.randrange(many)

    def made(given: list[Row]) -> Any:
        if kind in typed:
            return CHEAP[kind](sources.arrow(given, LARGE_TYPES), folder)
        return objects(given, folder) if kind == "objects" else inferred(given, folder)

    def run(given: list[Row]) -> object:
        source = made(given)
        if kind == "file of pandas":
            source = pandas_file(source, folder)
        table = discreet.table(source, columns=LARGE_COLUMNS, account=account, relation=relation)
        try:
            return tuple(map(_told, table.release(questions, epsilon=2)))
        except discreet.InvalidArgument:
            if kind in typed or kind == "objects":
                raise
            return REFUSED

    def pairs() -> Iterator[Pair]:
        while True:
            row = dict(rows[place], who="somebody")
            for column in draw.sample(sorted(LARGE_COLUMNS), draw.randrange(1, 4)):
                listed = [None, 2**53, -(2**63), 2**63 - 1, LARGE + draw.randrange(20)]
                if kind in ("pandas", "objects"):
                    listed += [0.5, 2**64, "5", float(LARGE)]
                row[column] = draw.choice(listed)
            kept = rows if relation is ADD else [*rows[:place], *rows[place + 1 :]]
            yield Pair(str({k: v for k, v in row.items() if k != "who"}), [*kept, row])

    return Session(base=rows, run=run, pairs=pairs, local=False, account=account)


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────

CSV_COLUMNS = ("x", "t", "w")
CSV_QUESTIONS = [
    "count", "count by t", "units by t", "sum x", "mean x", "sum w by t", "variance x", "median",
]  # fmt: skip


def csv_lines(draw: random.Random, folder: Path) -> Session:
    """Lines of bytes: one hostile line is one record that does not fit, or two of one person."""
    unit = draw.choice([None, "who", "who"])
    account = fresh_account()
    chosen = declared(draw)
    columns = {name: chosen[name] for name in CSV_COLUMNS}
    questions = [QUESTIONS[name]() for name in draw.sample(CSV_QUESTIONS, 3)]
    end = draw.choice([b"\n", b"\r\n"])
    quoted = draw.random() < 0.3
    many = draw.choice([5, 40, 3000])

    def line(place: int) -> bytes:
        text = draw.choice(["a", "b", "é", "z", ""])
        if quoted:
            text = f'"{text}"'
        return f"p{place},{draw.uniform(0, 10):.3f},{text},{draw.randrange(-6, 7)}".encode()

    base = [line(i) for i in range(many)]

    def run(lines: list[bytes]) -> object:
        path = _path(folder, "csv")
        path.write_bytes(b"who,x,t,w" + end + end.join(lines) + end)
        table = discreet.table(path, columns=columns, account=account, **limited(unit))
        found = tuple(map(_told, table.release(questions, epsilon=2)))
        path.unlink()
        return found

    names = [n for n in sorted(CSV_LINES) if unit is not None or b"\r" not in CSV_LINES[n]]

    def pairs() -> Iterator[Pair]:
        while True:
            if draw.random() < 0.8:
                name = draw.choice(names)
                strange_line = CSV_LINES[name].replace(b"{u}", b"somebody")
            else:
                name = "random bytes"
                bytes_ = draw.randbytes(draw.randrange(1, 40)).replace(b"\n", b"")
                strange_line = bytes_ if unit is not None else bytes_.replace(b"\r", b"")
                if draw.random() < 0.5:
                    strange_line = b"somebody," + strange_line
            where = draw.choice([0, len(base), draw.randrange(len(base) + 1)])
            lines = [*base[:where], strange_line, *base[where:]]
            yield Pair(f"{name} at {where} of {many}", lines)

    return Session(base=base, run=run, pairs=pairs, local=False, account=account)


def csv_written(writer: str) -> Callable[[random.Random, Path], Session]:
    """Files by the writers that people have, with texts that need quotes."""

    def written(table: pa.Table, folder: Path) -> Path:
        path = _path(folder, "csv")
        if writer == "polars":
            pl.from_arrow(table).write_csv(path)
        elif writer == "pandas":
            table.to_pandas().to_csv(path, index=False)
        elif writer == "duckdb":
            duckdb.from_arrow(table).write_csv(str(path))
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                out = csv.writer(file)
                out.writerow(table.column_names)
                columns = [column.to_pylist() for column in table.columns]
                out.writerows(zip(*columns, strict=True))
        return path

    def started(draw: random.Random, folder: Path) -> Session:
        rows = honest_rows(draw)
        account = fresh_account()
        asked = draw.sample(CSV_QUESTIONS, 3)
        questions = [QUESTIONS[name]() for name in asked]

        def run(given: list[Row]) -> object:
            path = written(sources.arrow(given, TYPES), folder)
            table = discreet.table(
                path, columns=COLUMNS, records="quoted", account=account, **limited("who")
            )
            found = tuple(map(_told, table.release(questions, epsilon=2)))
            path.unlink()
            return found

        def pairs() -> Iterator[Pair]:
            for pair in people(draw, types=TYPES, relation=ADD, unit="who", rows=rows):
                # A NUL is not of RFC 4180: such a file is refused when it is opened.
                if not any("\0" in str(v) for row in pair.data for v in row.values()):
                    yield pair

        return Session(base=rows, run=run, pairs=pairs, local=False, account=account)

    return started


METHODS = (
    *("count", "count_units", "sum", "mean", "variance", "covariance", "median"),
    *("std", "correlation", "ratio", "weighted_mean", "share", "compare", "count_distinct"),
    *("minimum", "maximum"),
)
RELEASED = tuple(
    f"discreet.Table.{name}" for name in (*METHODS, "quantiles", "histogram", "release")
)

DOORS: list[Door] = [
    Door("pandas objects", ("discreet.table", *RELEASED), opened(None)),
    Door(
        "quality",
        ("discreet.Table.quality",),
        opened(None, asks=lambda table, _: table.quality(epsilon=2)),
        pairs=10,
    ),
    *(Door(name, ("discreet.table",), opened(one), pairs=10) for name, one in CHEAP.items()),
    *(
        Door(f"{name}, by day", ("discreet.table",), opened(one, by_day=True), pairs=8)
        for name, one in (
            ("pandas objects", None),
            ("lazy polars", sources.polars_lazy),
            ("parquet", parquet_by("pyarrow")),
        )
    ),
    *(Door(name, ("discreet.table",), opened(one), pairs=5) for name, one in FILES.items()),
    Door(
        "postgres",
        ("discreet.table",),
        opened(postgres, holds=_without_nul),
        needs="postgres",
        pairs=8,
    ),
    Door("spark", ("discreet.table",), opened(sources.spark_frame), needs="spark", pairs=3),
    *(
        Door(
            f"{ending} of spark",
            ("discreet.table",),
            opened(written_by_spark(ending)),
            needs="spark",
            pairs=3,
        )
        for ending in ("parquet", "csv")
    ),
    Door("pandas of NumPy", ("discreet.table",), chosen_by_pandas, pairs=12),
    Door(
        "parquet of pandas of NumPy",
        ("discreet.table",),
        partial(chosen_by_pandas, written=pandas_file),
        pairs=6,
    ),
    Door("large numbers", ("discreet.table",), large_numbers, pairs=10),
    Door("csv", ("discreet.table",), csv_lines, pairs=10),
    *(
        Door(f"csv of {writer}", ("discreet.table",), csv_written(writer), pairs=4)
        for writer in ("python", "polars", "pandas", "duckdb")
    ),
]
