"""What each text and each typed value means under a declared spelling, the same on every engine."""

# ruff: noqa: DTZ001  # moments without a zone are what is tested
from __future__ import annotations

import datetime as dt
import pickle

import pyarrow as pa
import pytest

from discreet.core.errors import InvalidArgument
from discreet.data._integer_ops import CodeConst, CodeRef
from discreet.data.execute import collect, engine_of
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, Program, compile_program, count
from discreet.data.schema import (
    MISSING,
    OTHER,
    CategoryColumn,
    DateColumn,
    boolean,
    category,
    date,
    date_code,
    integer,
    real,
    text,
)
from discreet.data.source import open_source
from discreet.spec.table import table_spec
from discreet.tables._public_facts import column_facts
from tests.data import sources

NONE = "unknown"
YEARS = dt.date(2019, 1, 1), dt.date(2022, 1, 1)


def day(year, month, number):
    return dt.date(year, month, number)


def hour(month, number, clock, year=2020):
    return dt.datetime(year, month, number, clock, tzinfo=dt.UTC)


NUMBER = {"lower": -2000, "upper": 13_000_000}
# A column, and what texts mean in it.
GOLDEN = {
    "missing numbers": (
        integer(-99, 99, missing_values=["NA", -9, "none", "-7.5"]),
        [("NA", NONE), (" na\t", NONE), ("NONE", NONE), ("-9", NONE), (" -9.0 ", NONE),
         ("-9e0", NONE), ("-7.5", NONE), ("-8", -8), ("9", 9), ("-7.4", -7), ("nan", NONE),
         ("nonE ", NONE), ("no", NONE), ("", NONE)],
    ),
    "replaced": (
        real(0, 8, granularity=0.5, missing=8, missing_values=[0.5]),
        [("0.5", 8), (".50", 8), ("x", 8), ("", 8), ("0.4", 0.5), ("1", 1)],
    ),
    "thousands": (
        real(**NUMBER, granularity=0.5, thousands=","),
        [("1,234", 1234), ("12,345.5", 12345.5), ("1,234,567", 1234567), ("-1,000", -1000),
         ("1,23", NONE), ("1234,567", NONE), ("1,2345", NONE), (",123", NONE), ("1234", 1234),
         ("1,234e1", 12340), ("+1,234", 1234), ("1,,234", NONE), ("1 234", NONE), ("5.", 5)],
    ),
    "comma": (
        real(**NUMBER, granularity=0.5, decimal=",", thousands=".", missing_values=["-1,5"]),
        [("1.234,5", 1234.5), ("3,5", 3.5), ("1234,5", 1234.5), ("1.234", 1234), ("1.5", NONE),
         (" ,5", 0.5), ("-1,50", NONE), ("-1,0", -1), ("1e1", 10), ("INF", 13_000_000)],
    ),
    "spaces": (
        integer(0, 10**6, thousands="\u202f"),
        [("1\u202f234", 1234), ("1 234", NONE), ("12\u202f34", NONE), ("900000000", 10**6)],
    ),
    "truth": (
        boolean(true=["J", 1], false=["N", 2], missing_values=["k.A.", 9]),
        [("J", True), (" j", True), ("1", True), ("1.0", True), ("n", False), ("2", False),
         ("0", NONE), ("true", NONE), ("9", NONE), ("K.A.", NONE), ("", NONE), ("JJ", NONE)],
    ),
    "truth with gaps": (
        boolean(missing=False, missing_values=["n"]),
        [("n", False), ("no", False), ("y", True), ("?", False), ("1", True)],
    ),
    "levels": (
        category(["a", "NA b"], missing=MISSING, missing_values=["NA", "-9"], strip=True),
        [("a", "a"), (" a\t", "a"), ("A", OTHER), ("NA", MISSING), (" NA ", MISSING),
         ("na", OTHER), ("NA b ", "NA b"), ("", MISSING), ("  ", MISSING), ("-9", MISSING),
         ("-9.0", OTHER), ("\u00a0a", OTHER)],
    ),
    "exact levels": (
        category(["a"], missing=MISSING, missing_values=["it's -- \u00fc"]),
        [("a", "a"), (" a", OTHER), ("it's -- \u00fc", MISSING), (" it's -- \u00fc", OTHER)],
    ),
    "whole levels": (
        category([1, 2], missing=MISSING, missing_values=["x", 9]),
        [("1", 1), ("1.0", 1), ("9", MISSING), ("9.0", MISSING), (" X ", MISSING), ("3", OTHER),
         ("y", OTHER), ("", MISSING)],
    ),
    "days": (
        date(*YEARS, format="%d/%m/%Y", missing_values=["0/0/0", "31/12/2021"]),
        [("31/12/2020", day(2020, 12, 31)), ("1/2/2020", day(2020, 2, 1)), ("12/31/2020", NONE),
         ("29/02/2021", NONE), ("29/02/2020", day(2020, 2, 29)), ("2020-01-01", NONE),
         ("31/12/2021", NONE), ("31/12/20", NONE), (" 01/02/2020\t", day(2020, 2, 1)),
         ("001/02/2020", NONE), ("1/2/2020 ", day(2020, 2, 1)), ("1/2/2020x", NONE)],
    ),
    "compact": (
        date(*YEARS, format="%Y%m%d"),
        [("20200102", day(2020, 1, 2)), ("2020012", NONE), ("20201301", NONE), ("", NONE)],
    ),
    "clock": (
        date(*YEARS, step="hour", format="(%m.%d.%Y) %H:%M:%S", zone="Europe/Berlin"),
        [("(1.2.2020) 0:30:00", hour(1, 1, 23)), ("(07.02.2020) 00:30:59", hour(7, 1, 22)),
         ("(07.02.2020) 24:00:00", NONE), ("(07.02.2020) 00:60:00", NONE), ("1.2.2020", NONE)],
    ),
    "zone": (
        date(*YEARS, step="hour", zone="Europe/Berlin", missing_values=["2021-06-01T12:00"]),
        [("2020-01-01", hour(1, 1, 0)), ("2020-01-01 05:00", hour(1, 1, 4)),
         ("2020-01-01T05:00Z", hour(1, 1, 5)), ("2020-01-01T05:00:00", hour(1, 1, 4)),
         ("2020-01-01T05:00-02:00", hour(1, 1, 7)), ("2020-07-01 05:00", hour(7, 1, 3)),
         # the hour that there is not, and the one that there is twice
         ("2020-03-29 01:59", hour(3, 29, 0)), ("2020-03-29 02:30", hour(3, 29, 1)),
         ("2020-03-29 03:00", hour(3, 29, 1)), ("2020-10-25 02:30", hour(10, 25, 0)),
         ("2020-10-25 03:00", hour(10, 25, 2)), ("2020-10-25 01:59", hour(10, 24, 23)),
         ("2021-06-01T10:00Z", NONE), ("2021-06-01 12:59", NONE), ("x", NONE)],
    ),
    "far zone": (
        date(*YEARS, step="hour", zone="Asia/Kathmandu"),
        [("2020-01-01 05:00", hour(12, 31, 23, 2019)), ("2020-01-01 06:00", hour(1, 1, 0))],
    ),
}  # fmt: skip
TYPED = [
    (integer(-9, 99, missing_values=[5, 7.5]), pa.int64(), [(5, NONE), (6, 6), (None, NONE)]),
    (integer(-9, 99, missing_values=["5"]), pa.float64(), [(5.0, NONE), (5.4, 5), (None, NONE)]),
    (real(0, 9, granularity=0.5, missing_values=[5]), pa.int64(), [(5, NONE), (6, 6.0)]),
    (real(0, 9, granularity=0.5, missing_values=[2.5]), pa.float64(), [(2.5, NONE), (3, 3.0)]),
    (real(0, 9, granularity=0.5, decimal=","), pa.float64(), [(2.5, 2.5), (-3.0, 0.0)]),
    (boolean(true=[2], false=["1"]), pa.int64(), [(1, False), (2, True), (0, NONE), (3, NONE)]),
    (boolean(true=["x", 2], false=[0.5]), pa.float64(), [(0.5, False), (2.0, True), (1, NONE)]),
    (boolean(true=["J"], false=["N"]), pa.bool_(), [(True, True), (False, False), (None, NONE)]),
    (boolean(missing_values=[1]), pa.int64(), [(1, NONE), (0, False)]),
    (category([1, 2], missing=MISSING, missing_values=[9, "x"]), pa.int64(),
     [(9, MISSING), (1, 1), (3, OTHER), (None, MISSING)]),
    (category([1, 2], missing=MISSING, missing_values=[9]), pa.float64(),
     [(9.0, MISSING), (1.0, 1), (1.5, OTHER)]),
    (date(*YEARS, format="%d.%m.%Y", missing_values=["1.1.2020"], zone="Europe/Berlin"),
     pa.date32(), [(day(2020, 1, 1), NONE), (day(2020, 1, 2), day(2020, 1, 2))]),
    (date(*YEARS, step="hour", zone="Europe/Berlin"), pa.timestamp("us"),
     [(dt.datetime(2020, 7, 1, 5, 30), hour(7, 1, 3)), (dt.datetime(1, 1, 1), NONE),
      (dt.datetime(9999, 12, 31, 23), NONE), (None, NONE)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


def check(cases, opened):
    """All columns in one scan: each row's code of each column, beside the number of the row."""
    longest = max(len(values) for *_, values in cases)
    rows = [{"place": place} for place in range(longest)]
    types = {"place": pa.int64()}
    for i, (_, kind, values) in enumerate(cases):
        types[f"t{i}"] = kind
        for place, row in enumerate(rows):
            row[f"t{i}"] = values[place][0] if place < len(values) else None
    columns = {f"t{i}": column for i, (column, *_) in enumerate(cases)}
    program = Program(
        columns=(*columns.items(), ("place", integer(0, longest))),
        unit=None,
        where=None,
        index=CodeConst(0),
        cells=None,
        size=1,
        values=tuple(CodeRef(name) for name in ("place", *columns)),
        sums=(),
        count_units=False,
        limits=ContributionLimits(),
    )
    codes = engine_of(opened(sources.arrow(rows, types))).values(program, key=1)
    order = codes[0].argsort()
    for (column, _, values), found in zip(cases, codes[1:], strict=True):
        expected = [(value, code_of(label, column)) for value, label in values]
        got = found[order][: len(values)].tolist()
        assert [(value, code) for (value, _), code in zip(values, got, strict=True)] == expected


def code_of(label, column):
    if label is NONE:
        return column.missing
    if isinstance(column, CategoryColumn):
        return column.labels.index(label)
    if isinstance(column, DateColumn):
        return date_code("label", label, step=column.step)
    return int(label * 2 ** -getattr(column, "exponent", 0))


def check_texts(opened):
    check([(column, pa.string(), texts) for column, texts in GOLDEN.values()], opened)


def check_values(opened):
    check(TYPED, opened)


@pytest.mark.parametrize("make", sources.EVERY)
def test_texts(make, folder):
    check_texts(lambda table: open_source(make(table, folder)))


@pytest.mark.parametrize("make", [one for one in sources.EVERY if one is not sources.csv_file])
def test_typed_values(make, folder):
    check_values(lambda table: open_source(make(table, folder)))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("checked", [check_texts, check_values])
def test_spark(checked, folder):
    checked(lambda table: open_source(sources.spark_frame(table, folder)))


def test_moments_with_a_zone_of_their_own_stay(folder):
    column = date(*YEARS, step="hour", zone="Europe/Berlin")
    moment = dt.datetime(2020, 7, 1, 5, tzinfo=dt.UTC)
    table = pa.table({"t": pa.array([moment], pa.timestamp("us", "Asia/Tokyo"))})
    plan = compile_program(schema={"t": column}, by={"t": col("t")}, keys=((hour(7, 1, 5),),),
                     aggregates={"n": count()})  # fmt: skip
    for make in (sources.polars, sources.pyarrow_table, sources.parquet, sources.relation):
        assert collect(plan, source=open_source(make(table, folder)), key=1).columns["n"] == [1]


def test_open_text_is_found_in_its_usual_form(folder):
    rows = [{"t": one} for one in (" a", "a\t", "NA", "b")]
    plan = compile_program(
        schema={"t": text(strip=True, missing_values=["NA"])},
        by={"t": col("t")},
        keys=(("a",), ("b",), ("NA",)),
        aggregates={"n": count()},
    )
    for make in (sources.polars, sources.parquet):
        source = open_source(make(sources.arrow(rows, {"t": pa.string()}), folder))
        assert collect(plan, source=source, key=1).columns["n"].tolist() == [2, 1, 0]


def test_declarations_are_values():
    for column, _ in GOLDEN.values():
        assert pickle.loads(pickle.dumps(column)) == column
        assert "discreet" not in repr(column)
    assert repr(integer(0, 9, missing_values=[-9, "NA"], decimal=",")) == (
        "integer(lower=0, upper=9, missing_values=['-9', 'NA'], decimal=',')"
    )
    assert repr(text(strip=True)) == "text(strip=True)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: integer(0, 9, missing_values="NA"),
        lambda: integer(0, 9, missing_values=[True]),
        lambda: integer(0, 9, missing_values=["a\nb"]),
        lambda: integer(0, 9, missing_values=[2**53]),
        lambda: integer(0, 9, decimal=";"),
        lambda: integer(0, 9, thousands="."),
        lambda: integer(0, 9, thousands="0"),
        lambda: boolean(true=["x"]),
        lambda: boolean(true=["x"], false=[]),
        lambda: boolean(true=["X"], false=["x "]),
        lambda: boolean(true=[1], false=["2"], missing_values=["1.0"]),
        lambda: category(["a"], missing_values=["a"]),
        lambda: category([9], missing_values=["9.0"]),
        lambda: category([1], strip=True),
        lambda: category([" a"], strip=True),
        lambda: date(*YEARS, format="%d/%m"),
        lambda: date(*YEARS, format="%d/%m/%y"),
        lambda: date(*YEARS, format="%d/%m/%Y %M"),
        lambda: date(*YEARS, format="%d/%d/%m/%Y"),
        lambda: date(*YEARS, format="%d/%m/20%Y"),
        lambda: date(*YEARS, zone="Mars/Base"),
        lambda: date(*YEARS, zone="../../etc/passwd"),
        lambda: text(missing_values=[None]),
    ],
)
def test_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_release_files_and_cards_know_the_words():
    settings = {"kind": "integer", "lower": 0, "upper": 9, "missing_values": ["NA", -9]}
    spec = table_spec({}, {"x": settings})
    column = integer(0, 9, missing_values=["NA", -9])
    assert spec.schema == {"x": column}
    assert column_facts("x", spec.schema)["spelling"] == {"missing_values": ["NA", "-9"]}
    with pytest.raises(InvalidArgument, match="missing_values"):
        table_spec({}, {"x": settings | {"missing_values": "NA"}})
