"""Spark on a cluster of its own: the contract of every engine, and what is special about it."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import functions

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._duckdb.engine import DuckDBEngine, open_files, spilling
from discreet.data._spark.engine import SparkEngine, compile_frame
from discreet.data.execute import KeyPlan, collect, collect_keys
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import LookupColumn, category, date, integer, real, text
from discreet.data.source import EngineFailure, FileSource, SparkSource, open_source
from tests.data import reference, sources
from tests.data.test_contract import SCHEMA, TYPES, UNIT, Contract, folder, plans, some_row

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
__all__ = ["folder"]
SECRET = "CANARY-7316"


def integers(plan, source, *, key=3):
    table = collect(plan, source=source, key=key)
    return {name: [int(v) for v in column] for name, column in table.columns.items()}


def opened(make, table, folder):
    engine = "spark" if make in sources.SPARK_FILES else None
    return open_source(make(table, folder), engine=engine)


class TestContract(Contract):
    """The whole contract, on a frame of three partitions."""

    step = 3

    @pytest.fixture
    def make(self):
        return sources.spark_frame


@pytest.mark.parametrize("make", sources.SPARK_FILES)
def test_files(make, folder):
    rng = random.Random(9)
    rows = [some_row(rng) for _ in range(90)]
    source = opened(make, sources.arrow(rows, TYPES), folder)
    assert isinstance(source, SparkSource)
    for plan in plans()[3::13]:
        assert integers(plan, source) == reference.collect(plan, rows, key=3)


SETTINGS = [
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    },
    {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.session.timeZone": "Pacific/Kiritimati",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.optimizer.disableHints": "true",
        "spark.sql.codegen.wholeStage": "false",
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["loose", "strict"])
def test_settings_of_a_session_change_nothing(cluster, folder, settings):
    rng = random.Random(10)
    rows = [some_row(rng) for _ in range(60)]
    path = sources.parquet(sources.arrow(rows, TYPES), folder)
    session = cluster.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    source = open_source(session.read.parquet(str(path)))
    for plan in plans()[2::11]:
        assert integers(plan, source) == reference.collect(plan, rows, key=3)
    assert all(session.conf.get(name) == value for name, value in settings.items())


def test_moments_with_a_zone(cluster):
    moments = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)]
    moments += [dt.datetime(1970, 1, 1, h, 29, tzinfo=dt.UTC) for h in (0, 5, 23)]
    frame = cluster.createDataFrame([(m,) for m in [*moments, None]], "t timestamp")
    bounds = dt.date(1969, 12, 31), dt.datetime(1970, 1, 1, 23, tzinfo=dt.UTC)
    for step in ("hour", "day"):
        schema = {
            "t": date(lower=bounds[0], upper=bounds[1], step=step, missing=dt.date(1970, 1, 1))
        }
        plan = compile_program(schema=schema, by={"t": col("t")}, aggregates={"n": count()})
        got = integers(plan, open_source(frame))["n"]
        places = [23, 24, 29, 47, 24] if step == "hour" else [0, 1, 1, 1, 1]
        assert got == [places.count(i) for i in range(48 if step == "hour" else 2)]


def test_moments_beyond_any_calendar(cluster):
    frame = cluster.range(1).selectExpr(
        "timestamp_micros(-9223372036854775808) AS a",
        "timestamp_micros(9223372036854775807) AS b",
        "date_from_unix_date(2147483647) AS c",
        "date_from_unix_date(-2147483648) AS d",
    )
    schema = {
        n: date(lower=dt.date(1, 1, 1), upper=dt.date(9999, 12, 31), missing=dt.date(1, 1, 1))
        for n in "abcd"
    }
    ranges = [dt.date(1, 1, 2)]
    plan = compile_program(
        schema=schema, by={n: col(n).cut(ranges) for n in "abcd"}, aggregates={"n": count()}
    )
    assert integers(plan, open_source(frame))["n"] == [1] + [0] * 15


def test_decimals_and_small_types(cluster):
    frame = cluster.createDataFrame(
        [(Decimal(d), i, i, 1.5) for i, d in enumerate(["2.5", "-7", "1e20", "0.0000001", "0"])],
        "d decimal(38,10), b byte, s short, f float",
    )
    schema = {
        "d": integer(lower=-(2**63), upper=2**63 - 1, missing=-(2**63)),
        "b": integer(lower=0, upper=3),
        "s": category([1, 9]),
        "f": real(lower=0, upper=2, granularity=0.5),
    }
    sums = {n: total(col(n)) for n in ("d", "b", "f")}
    plan = compile_program(schema=schema, aggregates=sums)
    assert integers(plan, open_source(frame)) == {"d": [3 - 7 + 2**63 - 1], "b": [9], "f": [15]}
    plan = compile_program(schema=schema, by={"s": col("s")}, aggregates={"n": count()})
    assert integers(plan, open_source(frame))["n"] == [1, 0, 4]


def test_names_that_sql_would_confuse(cluster):
    names = ["x", "X", "a.b", "a`b", "select", "s0", "u"]
    session = cluster.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    frame = session.createDataFrame([tuple(range(1, 8))]).toDF(*names)
    session.conf.set("spark.sql.caseSensitive", "false")
    for place, name in enumerate(names, start=1):
        plan = compile_program(
            schema={name: integer(lower=0, upper=9)},
            aggregates={"n": total(col(name))},
            unit=name,
            limits=ContributionLimits(max_rows_per_unit=1),
        )
        assert integers(plan, open_source(frame)) == {"n": [place]}
    with pytest.raises(InvalidArgument, match="different names"):
        open_source(frame.toDF(*["x"] * 7))


def test_collations_merge_nobody(cluster):
    names = ["anna", "ANNA", "Anna"]
    plain = cluster.createDataFrame([(n, n) for n in names * 3], "who string, k string")
    frame = plain.selectExpr("who COLLATE UTF8_LCASE AS who", "k COLLATE UNICODE_CI AS k")
    plan = compile_program(
        schema={"k": category(["anna", "Anna"])},
        unit="who",
        by={"k": col("k")},
        aggregates={"n": count(), "u": units()},
        limits=ContributionLimits(max_rows_per_unit=2),
    )
    assert integers(plan, open_source(frame)) == {"n": [2, 2, 2], "u": [1, 1, 1]}


def test_bins_and_many_edges_like_duckdb(cluster, folder):
    rng = random.Random(11)
    rows = [some_row(rng) for _ in range(300)]
    table = sources.arrow(rows, TYPES)
    spark, files = (open_source(sources.parquet(table, folder), engine=e) for e in ("spark", None))
    edges = [x / 4 for x in range(-6, 13)]
    for value in (col("x").cut(edges[:-3]), col("x").cut(edges[:1]), col("sex")):
        plan = compile_program(
            schema=SCHEMA,
            unit=UNIT,
            by={"yes": col("yes")},
            bins=value,
            aggregates={"n": count(), "w": total(col("whole"))},
            limits=ContributionLimits(max_rows_per_unit=9, max_groups_per_unit=1),
        )
        assert integers(plan, spark) == integers(plan, files)


def test_keys_look_ups_and_divisions_like_duckdb(cluster, folder):
    rng = random.Random(13)
    names = [None, "", "a", "b", "\u00e4", "z" * 40, "7"]
    rows = [
        some_row(rng) | {"who": rng.choice(names), "sex": rng.choice(names)} for _ in range(200)
    ]
    table = sources.arrow(rows, TYPES | {"who": pa.string()})
    spark, files = (open_source(sources.parquet(table, folder), engine=e) for e in ("spark", None))
    schema = SCHEMA | {
        "sex": text(),
        "found": LookupColumn(
            source="text",
            inner=integer(lower=0, upper=9),
            textual=True,
            keys=("1", "abc"),
            codes=(3, 9),
        ),
    }
    for unit in ("who", UNIT):
        keys = KeyPlan(
            schema=schema,
            by={"sex": col("sex"), "yes": col("yes")},
            max_groups_per_unit=3,
            unit=unit,
        )
        got = [collect_keys(keys, source=source, key=5) for source in (spark, files)]
        assert got[0].keys == got[1].keys
        assert got[0].units.tolist() == got[1].units.tolist()
        plan = compile_program(
            schema=schema,
            unit=unit,
            by={"sex": col("sex")},
            keys=(("a",), ("7",)),
            other=True,
            aggregates={"n": count(), "f": total(col("found")), "d": total(col("x") / 3)},
            limits=ContributionLimits(max_rows_per_unit=20),
        )
        assert integers(plan, spark) == integers(plan, files)
        engines = SparkEngine(spark), DuckDBEngine(files)
        ours, theirs = (sorted(map(tuple, e.rows(plan, key=5))) for e in engines)
        assert ours == theirs
        ours, theirs = ([sorted(map(tuple, part)) for part in e.spread(plan)] for e in engines)
        assert ours == theirs


def test_sums_up_to_the_last_bit(cluster):
    """Products of 2**86 in absolute value, and sums of them that need all parts."""
    wide, narrow = 2**62 - 1, 2**24 - 1
    rows = [(s * (wide - i), t * (narrow - i)) for i in range(50) for s in (1, -1) for t in (1, -1)]
    rows += rows[:50]
    frame = cluster.createDataFrame(rows, "a bigint, b bigint").repartition(4)
    schema = {"a": integer(lower=-wide, upper=wide), "b": integer(lower=-narrow, upper=narrow)}
    sums = {"ab": total(col("a"), col("b")), "a": total(col("a")), "b": total(col("b"))}
    got = integers(compile_program(schema=schema, aggregates=sums), open_source(frame))
    assert got["ab"] == [sum(a * b for a, b in rows)]
    assert got["a"] == [sum(a for a, _ in rows)]
    assert got["b"] == [sum(b for _, b in rows)]


WORKERS = re.compile(
    r"\brand|uuid|shuffle\(|monotonically|python|pandas|arroweval|udf", re.IGNORECASE
)


def test_nothing_random_and_no_python_runs_on_the_workers(cluster, folder, capsys):
    rows = [some_row(random.Random(12)) for _ in range(5)]
    source = open_source(sources.parquet(sources.arrow(rows, TYPES), folder), engine="spark")
    plan_text = ""
    for plan in (plans()[7], plans()[19]):
        compile_frame(plan, source=source, key=5).explain(extended=True)
        plan_text += capsys.readouterr().out
    assert "Physical Plan" in plan_text
    assert WORKERS.search(plan_text) is None
    cluster.range(1).selectExpr("rand()").explain(extended=True)
    assert WORKERS.search(capsys.readouterr().out) is not None


def test_only_groups_reach_this_process(cluster):
    frame = cluster.range(100_000).selectExpr("id", "id % 7 AS k")
    plan = compile_program(
        schema={"k": category(range(7))},
        unit="id",
        by={"k": col("k")},
        aggregates={"n": count(), "u": units()},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    compiled = compile_frame(plan, source=open_source(frame), key=1)
    assert len(compiled.collect()) == 7


@pytest.mark.parametrize("sql", [True, False])
def test_a_failure_on_a_worker_quotes_nothing(cluster, capfd, caplog, sql):
    """A frame whose own expressions fail; PySpark logs the two kinds differently."""
    frame = cluster.createDataFrame([(SECRET,)], "who string")
    number = functions.col("who").cast("int")
    broken = frame.selectExpr("CAST(who AS INT) AS x") if sql else frame.select(number.alias("x"))
    plan = compile_program(
        schema={"x": integer(lower=0, upper=1)}, aggregates={"x": total(col("x"))}
    )
    with pytest.raises(EngineFailure) as caught:
        collect(plan, source=open_source(broken), key=1)
    assert caught.value.__context__ is None
    said = str(caught.value) + repr(open_source(broken)) + caplog.text + "".join(capfd.readouterr())
    assert SECRET not in said


BROKEN = [
    b"9,3,Z\xfcrich", b"9999,3", b"9999,3,z,1", b'9999,3,"z', b'9999,"3"x,z', b"9,3,a\0b", b"",
    b'9,3,"a""b"', b' "9" ,3, "q,r" ', b'9,"3",z\r9,3,y', b"\xef\xbb\xbf9,3,z", b"9,3,z\\",
    b'9,3,\\"z', b"9,3," + b"A" * (2**20 + 5), b'9999,3,z"', b"  ",
]  # fmt: skip


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_each_line_of_a_csv_is_read_by_itself(cluster, tmp_path, end):
    honest = [b"%d,3,z" % i for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_bytes(end.join([b"who,x,t", *itertools.chain(*zip(BROKEN, honest, strict=False))]))
    source = open_source(path, engine="spark")
    with spilling() as connection:
        files = open_source(path)
        assert isinstance(files, FileSource)
        expected = open_files(files, connection).fetchall()

    def plain(rows):
        return sorted(tuple(value or "" for value in row) for row in rows)

    assert isinstance(source, SparkSource)
    assert plain(source.frame.collect()) == plain(expected)
    path.write_bytes(b"who,x,t\n")
    plan = compile_program(
        schema={"x": integer(lower=0, upper=1)}, aggregates={"x": total(col("x"))}
    )
    with pytest.raises(InvalidArgument, match="changed"):
        collect(plan, source=source, key=1)


def test_moments_that_spark_cannot_hold_are_refused_when_they_are_opened(cluster, tmp_path):
    path = tmp_path / "t.parquet"
    for far in (10, 2**62):
        moments = pa.array([10, far], pa.timestamp("ms"))
        pa.parquet.write_table(pa.table({"x": moments}), path)
        if far == 10:
            open_source(path, engine="spark")
        else:
            with pytest.raises(InvalidArgument, match="milliseconds"):
                open_source(path, engine="spark")


def test_what_spark_cannot_open(cluster, tmp_path, folder):
    table = pa.table({"x": [1]})
    with pytest.raises(Unsupported, match="Arrow"):
        open_source(sources.arrow_file(table, folder), engine="spark")
    with pytest.raises(InvalidArgument, match="is active"):
        open_source(sources.parquet(table, folder), engine="spark", spark="spark://elsewhere:7077")
    with pytest.raises(InvalidArgument, match="engine must be"):
        open_source(sources.parquet(table, folder), engine="dask")
    with pytest.raises(InvalidArgument, match="needs engine"):
        open_source(sources.parquet(table, folder), spark="local")


def test_five_million_rows_like_duckdb(cluster, tmp_path):
    path = tmp_path / "visits"
    path.mkdir()
    parts = 8
    for part in range(parts):
        duckdb.sql(
            f"""COPY (SELECT CAST(hash(i) % 500000 AS BIGINT) AS who,
            CAST(hash(i + 1) % 1000 AS INTEGER) AS k, CAST(hash(i + 3) % 997 AS INTEGER) AS y,
            CAST(hash(i + 2) % 100000 AS DOUBLE) / 64 AS x
            FROM range({part}, 5000000, {parts}) t(i)) TO '{path}/{part}.parquet'"""
        )
    schema = {
        "k": category(range(1000), include_other=False),
        "x": real(lower=0, upper=1000, granularity=2**-4),
        "y": integer(lower=-5, upper=900),
    }
    plan = compile_program(
        schema=schema,
        unit="who",
        by={"k": col("k")},
        where=col("y") < 950,
        aggregates={
            "n": count(),
            "u": units(),
            "x": total(col("x")),
            "xy": total(col("x"), col("y")),
        },
        limits=ContributionLimits(
            max_rows_per_unit=6, max_groups_per_unit=8, max_rows_per_unit_per_group=2
        ),
    )
    spark = integers(plan, open_source(path, engine="spark"))
    assert spark == integers(plan, open_source(path))
    assert 2_000_000 < sum(spark["n"]) < 3_000_000
