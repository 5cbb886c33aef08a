"""Sums over a Spark frame: each partition is added up by the worker that holds it.

What travels is one sum for each partition, never a row; a second stage adds those up, so that the
driver gets a bounded number of them however many partitions there are.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from logging import LogRecord
from operator import add, eq, le, lt, mul, sub
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray
from pyspark.logger import PySparkLogger
from pyspark.sql import Column as Value
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from discreet.core.errors import Unsupported
from discreet.data._integer_ops import CodeBin, CodeBinary, CodeClip, CodeDivide, CodePick, Operator
from discreet.data._spark.contribution_limits import chosen_keys, limited
from discreet.data._spark.encode import floor, numbered, steps, whole
from discreet.data.program import MOST_ROWS, Program, Row, SumSpec, fields, has_text_unit, layered
from discreet.data.schema import INT64, TextColumn
from discreet.data.source import SparkSource, Type, run_sealed

# ── Spark engine ─────────────────────────────────────────────────────────────────────────────────
# Spark: the whole program as one lazy frame of column expressions, run where the rows are.
#
# No Python runs on the workers, nothing there is random, and only sums per group come back: noise
# is drawn in this process. The frame's session is left as it is; `encode_spark` says how.


_SPLIT = 21  # bits: sums of 2**40 such numbers stay below 2**62
_HIGH = 44  # bits: what is left of a product below 2**87 has 43


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A Spark frame, run by its own session."""

    source: SparkSource

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        rows = _answer(lambda: compile_frame(program, source=self.source, key=key))
        shifts = [_shifts(total) for total in program.sums]
        return [_joined(row, shifts) for row in rows]

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return _answer(lambda: compile_keys(program, source=self.source, key=key))

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        textual = has_text_unit(program, self.source.columns)
        unit = f.col("u").cast("string") if textual else f.col("u")
        values = [f"v{i}" for i in range(len(program.values))]
        return _answer(lambda: _limited(program, source=self.source, key=key).select(unit, *values))

    def values(self, program: Program, *, key: int) -> tuple[NDArray[np.int64], ...]:
        many = len(program.values)
        names = [f"v{i}" for i in range(many)]
        rows = _answer(lambda: _limited(program, source=self.source, key=key).select(*names))
        found = np.array(rows, dtype=np.int64).reshape(-1, many)
        return tuple([found[:, i] for i in range(many)])

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        def units_by(many: Value) -> DataFrame:
            frame = _limited(program, source=self.source, key=0)
            each = frame.groupBy("u").agg(many.alias("many"))
            return each.groupBy("many").agg(f.count(f.lit(1)))

        rows, groups = f.count(f.lit(1)), f.count_distinct(f.col("g"))
        return _answer(lambda: units_by(rows)), _answer(lambda: units_by(groups))


def _answer(build: Callable[[], DataFrame]) -> list[tuple[Any, ...]]:
    """Run a frame and fetch what comes out."""

    def run() -> list[tuple[Any, ...]]:
        with _silent():
            return [tuple(row) for row in build().collect()]

    return run_sealed("the Spark job", run)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep from PySpark's own logs why a row failed: they would quote the row."""
    loggers = [
        PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")
    ]

    def refuse(_: LogRecord) -> bool:
        return False

    for logger in loggers:
        logger.addFilter(refuse)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(refuse)


def _joined(row: Row, shifts: Sequence[Sequence[int]]) -> Row:
    """Put the parts of each sum together, in integers without end."""
    whole, place = list(row[:3]), 3
    for each in shifts:
        parts = row[place : place + len(each)]
        whole.append(sum(int(part) << shift for part, shift in zip(parts, each, strict=True)))
        place += len(each)
    return whole


def compile_frame(program: Program, *, source: SparkSource, key: int) -> DataFrame:
    """The whole program as one lazy frame: group, rows, units, parts of sums."""
    frame = _limited(program, source=source, key=key)
    if program.bins is not None:
        place, many = program.bins
        frame = frame.withColumn("g", f.col("g") * many + f.col(f"v{place}"))
    return _aggregate(program, frame)


def compile_keys(program: Program, *, source: SparkSource, key: int) -> DataFrame:
    """The different units of each key that occurs: index, units, then the texts of the key."""
    frame, where, index, _ = _evaluate(program, _encode(program, source))
    if where is not None:
        frame = frame.where(where == 1)
    places = [name for name, _ in program.columns]
    texts = [f.col(f"c{places.index(one)}") for one in program.texts]
    names = [f"k{i}" for i in range(len(texts))]
    renamed = [text.alias(name) for text, name in zip(texts, names, strict=True)]
    frame = frame.select("u", *renamed, index.alias("g"))
    for name in names:
        frame = frame.where(f.col(name).isNotNull())
    if program.unit is not None:
        frame = frame.distinct()
        if program.limits.max_groups_per_unit is not None:
            frame = chosen_keys(frame, limit=program.limits.max_groups_per_unit, key=key)
    counted = frame.groupBy(*names, "g").agg(f.count(f.lit(1)).alias("units"))
    return counted.select("g", "units", *(f.col(name).cast("string") for name in names))


def _limited(program: Program, *, source: SparkSource, key: int) -> DataFrame:
    """The rows that count: unit, group, values."""
    frame = _encode(program, source)
    frame, where, index, values = _evaluate(program, frame)
    frame = _group(program, frame, where=where, index=index, values=values)
    return frame if program.unit is None else limited(program, frame, key=key)


def _encode(program: Program, source: SparkSource) -> DataFrame:
    # By position: a session may hold that x and X, or what a dot separates, are the same name.
    stored = {field.name: field.dataType for field in source.frame.schema.fields}
    places = {field: f"s{i}" for i, field in enumerate(source.columns)}
    frame: DataFrame = source.frame.toDF(*places.values())
    parts = [
        steps(
            column,
            kind=source.columns[field],
            source=f.col(places[field]),
            stored=stored[field],
            i=i,
        )
        for i, (field, column) in enumerate(fields(program))
    ]
    raws = [part.raw.alias(f"r{i}") for i, part in enumerate(parts)]
    if program.unit is None:
        frame = frame.select(f.lit(None).cast("bigint").alias("u"), *raws)
    else:
        unit = _unit(program, source.columns, places)
        frame = frame.select(unit.alias("u"), *raws).where(f.col("u").isNotNull())
    frame = frame.select("*", *(part.number.alias(f"n{i}") for i, part in enumerate(parts)))
    for i, part in enumerate(parts):
        if part.levels is not None:
            names = (f"level{i}", f"place{i}")
            levels = numbered(frame.sparkSession, part.levels, names=names, places=part.places)
            frame = frame.join(levels, on=f.col(f"n{i}") == f.col(names[0]), how="left")
    frame = frame.select("u", *(part.code.alias(f"c{i}") for i, part in enumerate(parts)))
    for i, (name, column) in enumerate(program.columns):
        if name in program.known and not isinstance(column, TextColumn):
            frame = frame.where(f.col(f"c{i}").between(whole(column.lower), whole(column.upper)))
    return frame


def _unit(program: Program, types: Mapping[str, Type], places: Mapping[str, str]) -> Value:
    """Whose a row is, as `discreet.data.program.has_text_unit` says; null if nobody's."""
    owners = [_owner(types[name], f.col(places[name])) for name in program.unit_columns]
    if isinstance(program.unit, str):
        return owners[0]
    parts = []
    for name, owner in zip(program.unit_columns, owners, strict=True):
        part = owner if types[name] == "text" else owner.cast("string").cast("binary")
        # After its length no part can look like the beginning of the next one.
        length = f.concat(f.octet_length(part).cast("string"), f.lit(":")).cast("binary")
        parts += [length, part]
    return f.concat(f.lit("").cast("binary"), *parts)


def _owner(kind: Type, field: Value) -> Value:
    """Whole numbers as they are, text as bytes (collations must not merge people)."""
    match kind:
        case "text":
            name = field.cast("binary")
            return f.when(f.length(name) > 0, name)
        case "float":
            number = field.cast("double")
            fine = (number == floor(number).cast("double")) & (f.abs(number) <= 2.0**53)
            return f.when(fine, floor(number))
        case _:
            return field.cast("bigint")


def _evaluate(
    program: Program, frame: DataFrame
) -> tuple[DataFrame, Value | None, Value, list[Value]]:
    """Add one column for each node of the expressions, innermost first."""
    found = layered(program, column=f.col, constant=whole, node=_node)
    for layer in found.layers:
        frame = frame.select("*", *(value.alias(name) for name, value in layer))
    if found.unit_value is not None:
        value = found.unit_value.cast("string").cast("binary")
        frame = frame.withColumn("u", f.concat(f.col("u"), value))
    return frame, found.where, found.index, found.values


def _node(
    code: CodeBinary | CodeClip | CodeBin | CodePick | CodeDivide, inner: list[Value]
) -> Value:
    x = inner[0]
    match code:
        case CodeBinary(operator):
            return _OPERATIONS[operator](x, inner[1]).cast("bigint")
        case CodeDivide(_, _, zero):
            # div cuts toward zero: one less where signs differ and a rest is left.
            y = f.when(inner[1] != 0, inner[1])
            less = (x % y != 0) & ((x < 0) != (y < 0))
            return f.coalesce(f.call_function("div", x, y) - less.cast("bigint"), whole(zero))
        case CodeClip(_, lower, upper):
            return f.least(f.greatest(x, whole(lower)), whole(upper))
        case CodeBin(_, edges):
            return _position(x, edges)
        case CodePick(_, first, table):
            return f.get(_array(table), x - whole(first))
        case _:
            assert_never(code)


_OPERATIONS: Mapping[Operator, Callable[[Value, Value], Value]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "<": lt,
    "<=": le,
    "=": eq,
    "and": f.least,
    "or": f.greatest,
}


def _array(values: Sequence[int]) -> Value:
    return f.from_json(f.lit(json.dumps(values)), "array<bigint>")


def _position(x: Value, edges: Sequence[int]) -> Value:
    """How many edges are not above x, by halving: adds 2**k whenever that many more are."""
    steps = [2**k for k in reversed(range(len(edges).bit_length()))]
    marks = _array(edges)

    def further(found: Value, step: Value) -> Value:
        # Beyond the last edge there is null, which is not below x.
        return found + f.when(f.get(marks, found + step - 1) <= x, step).otherwise(whole(0))

    return f.aggregate(_array(steps), whole(0), further)


def _group(
    program: Program, frame: DataFrame, *, where: Value | None, index: Value, values: list[Value]
) -> DataFrame:
    """Rows that pass the filter and have a public key: unit, group, values."""
    if where is not None:
        frame = frame.where(where == 1)
    kept = [value.alias(f"v{i}") for i, value in enumerate(values)]
    frame = frame.select("u", index.alias("g"), *kept)
    if program.cells is None:
        return frame
    keys = numbered(frame.sparkSession, program.cells, names=("cell", "k"))
    how = "left" if program.rest else "inner"
    joined = frame.join(keys, on=f.col("g") == f.col("cell"), how=how)
    place = f.coalesce(f.col("k"), whole(len(program.cells)))
    return joined.select("u", place.alias("g"), *(f"v{i}" for i in range(len(values))))


def _aggregate(program: Program, frame: DataFrame) -> DataFrame:
    columns, parts = [f.count(f.lit(1)).alias("n")], 0
    for total in program.sums:
        for part in _parts(total):
            columns.append(f.sum(part).alias(f"p{parts}"))
            parts += 1
    sums = [f"p{i}" for i in range(parts)]
    if not program.count_units or program.unit is None:
        frame = frame.groupBy("g").agg(*columns)
        return frame.select("g", "n", f.col("n").alias("u"), *sums)
    # First each unit in each group, then the groups: distinct units come as a plain count.
    frame = frame.groupBy("u", "g").agg(*columns)
    units = f.count(f.lit(1)).alias("units")
    return frame.groupBy("g").agg(f.sum("n"), units, *(f.sum(part) for part in sums))


def _shifts(total: SumSpec) -> list[int]:
    """How far each part of a sum is shifted."""
    if total.weight * MOST_ROWS <= INT64:
        return [0]
    thirds = [0, _SPLIT, 2 * _SPLIT]
    return thirds if total.weight <= INT64 else [*thirds, *(_HIGH + shift for shift in thirds)]


def _parts(total: SumSpec) -> list[Value]:
    """64-bit parts of a product, so small that sums of them cannot overflow.

    Spark's sum of 64-bit numbers may wrap around, and its widest decimal ends below 2**127.
    """
    factors = [f.col(f"v{place}") for place in total.factors]
    if total.weight * MOST_ROWS <= INT64:
        return [reduce(mul, factors)]
    if total.weight <= INT64:
        return _thirds(reduce(mul, factors))
    wide = "decimal(20,0)"
    product = reduce(mul, [factor.cast(wide) for factor in factors])
    split = f.lit(2**_HIGH).cast(wide)
    return [
        *_thirds((product % split).cast("bigint")),
        *_thirds(f.call_function("div", product, split)),
    ]


def _thirds(value: Value) -> list[Value]:
    mask = whole(2**_SPLIT - 1)
    return [
        value.bitwiseAND(mask),
        f.shiftright(value, _SPLIT).bitwiseAND(mask),
        f.shiftright(value, 2 * _SPLIT),
    ]


# ── Spark sums ───────────────────────────────────────────────────────────────────────────────────


SUMS = 16
"""Most sums that reach the driver."""
STATE = "state"
Worker: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]
"""Arrow batches in, at most one with a single ``STATE`` out. Runs where discreet is installed."""


def added(
    frame: Any, columns: Iterable[str], *, cast: str | None = None, add: Worker, merge: Worker
) -> list[bytes]:
    """The sums of the workers over these columns, read as a type (what is not of it is missing)."""

    def run() -> list[bytes] | None:
        # By position: to a session, a dot in a name means a field, and its case may not matter.
        names = [field.name for field in frame.schema.fields]
        plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
        places = [f"c{names.index(name)}" for name in columns]
        read = places if cast is None else [f"try_cast({place} AS {cast})" for place in places]
        narrow = plain.selectExpr(*(f"{one} AS d{i}" for i, one in enumerate(read)))
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, of which nothing is used here.
            warnings.filterwarnings(
                "ignore", message="PySpark does not yet", category=FutureWarning
            )
            sums = narrow.mapInArrow(add, f"{STATE} binary")
            merged = sums.repartition(SUMS).mapInArrow(merge, f"{STATE} binary")
        try:
            return [bytes(row[0]) for row in merged.collect()]
        except Exception as error:
            if "No module named" in str(error):
                return None
            raise

    states = run_sealed("the Spark job", run)
    if states is None:
        raise Unsupported(
            "The workers of Spark cannot import discreet: install it in the Python that they run, "
            "and name that one in PYSPARK_PYTHON before the session starts."
        )
    return states
