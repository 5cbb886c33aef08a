"""PostgreSQL through ADBC: the contract of every engine, on a real server."""

from __future__ import annotations

import datetime as dt
import itertools
import math

import psycopg
import pyarrow as pa
import pytest

from discreet.core.errors import InvalidArgument, PrivacyError, Unsupported
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import boolean, category, date, integer, real
from discreet.data.source import ArrowStreamSource, EngineFailure, open_source
from tests.data.test_contract import Contract, folder
from tests.data.test_declared_spellings import check_texts, check_values

pytestmark = pytest.mark.postgres
__all__ = ["folder"]
SECRET = "CANARY-7316"
NAMES = {
    pa.int64(): "int8",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.bool_(): "bool",
}
_tables = itertools.count()


@pytest.fixture(scope="module")
def database(server):
    url = server.empty()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "odd ""one"')
        yield url, connection
        connection.execute('DROP SCHEMA "odd ""one" CASCADE')


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def filled(database, columns, rows):
    """The address of a new table."""
    url, connection = database
    name = f'"odd ""one"."Table {next(_tables)}"'
    types = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
    connection.execute(f"CREATE TABLE {name} ({types})")
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    return f"{url}#{name}"


def numbers(plan, url, *, key=1):
    table = collect(plan, source=open_source(url), key=key)
    return {name: [int(v) for v in column] for name, column in table.columns.items()}


class TestContract(Contract):
    step = 4

    @pytest.fixture
    def make(self, database):
        def make(table, folder):
            columns = {field.name: NAMES[field.type] for field in table.schema}
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            return filled(database, columns, rows)

        return make

    def test_declared_spellings(self, make):
        check_texts(lambda table: open_source(make(table, None)))
        check_values(lambda table: open_source(make(table, None)))


def test_types(database):
    connection = database[1]
    connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    connection.execute("CREATE DOMAIN years AS int4 CHECK (VALUE >= 0)")
    columns = {
        "who": "uuid",
        "a": "years",
        "b": "int2",
        "c": "numeric",
        "d": "char(4)",
        "e": "mood",
        "f": "float4",
        "g": "timestamptz",
        "h": "bytea",
    }
    person = "9f5c1f7e-2b7a-4a6e-8f5e-0c2f3a4b5c6d"
    early, late = "1970-01-01 01:30+02", "294276-12-31 23:59:59+00"
    rows = [
        (person, 40, 1, "2.5", "ab", "good", 0.5, early, b"x"),
        (person, 40, 2, "1e30", "ab", "bad", math.inf, late, b"x"),
        (None, 40, 3, "1", "ab", "good", 0.5, "infinity", b"x"),
        (person.upper(), None, None, "NaN", None, None, None, "-infinity", None),
    ]
    url = filled(database, columns, rows)
    schema = {
        "a": integer(lower=0, upper=99, missing=0),
        "b": integer(lower=0, upper=99, missing=7),
        "c": integer(lower=-1, upper=2**60, missing=-1),
        "d": category(["ab"]),
        "e": category(["good", "bad"]),
        "f": real(lower=0, upper=2, granularity=0.5, missing=0),
        "g": date(
            lower=dt.date(1969, 12, 31), upper=dt.date(1970, 1, 1), missing=dt.date(1970, 1, 1)
        ),
    }
    sums = {name: total(col(name)) for name in "abcf"}
    plan = compile_program(
        schema=schema,
        unit="who",
        by={n: col(n) for n in "deg"},
        aggregates={"n": count(), "u": units(), **sums},
        limits=ContributionLimits(max_rows_per_unit=9),
    )
    table = collect(plan, source=open_source(url), key=1)
    rows = zip(table.keys, *(table.columns[n].tolist() for n in ("n", "u", *sums)), strict=True)
    first, second = dt.date(1969, 12, 31), dt.date(1970, 1, 1)
    assert [row for row in rows if row[1]] == [
        (("ab", "good", first), 1, 1, 40, 1, 3, 1),
        (("ab", "bad", second), 1, 1, 40, 2, 2**60, 4),
        (("(other)", "(other)", second), 1, 1, 0, 7, -1, 0),
    ]
    wrong = compile_program(schema={"h": boolean()}, aggregates={"n": total(col("h"))})
    with pytest.raises(InvalidArgument, match="column 'h' is other"):
        collect(wrong, source=open_source(url), key=1)


def test_only_the_needed_columns_are_read(database):
    """A column that cannot be read, because its values divide by zero, is not touched."""
    url, connection = database
    connection.execute("CREATE VIEW v AS SELECT x, 1 / (x - x) AS y FROM (VALUES (1), (2)) t(x)")
    source = open_source(f"{url}#v")
    assert isinstance(source, ArrowStreamSource)
    assert list(source.columns) == ["x", "y"]
    schema = {n: integer(lower=0, upper=9) for n in "xy"}
    assert numbers(compile_program(schema=schema, aggregates={"n": total(col("x"))}), f"{url}#v")[
        "n"
    ] == [3]
    assert numbers(compile_program(schema=schema, aggregates={"n": count()}), f"{url}#public.v")[
        "n"
    ] == [2]
    with pytest.raises(EngineFailure):
        collect(
            compile_program(schema=schema, aggregates={"n": total(col("y"))}), source=source, key=1
        )


def test_names_that_differ_in_case_only_are_refused(database):
    url = filled(database, {"row": "int8", "ROW": "int8"}, [(1, 7), (2, 7)])
    with pytest.raises(InvalidArgument, match="upper and lower case"):
        open_source(url)


def test_rows_arrive_in_batches(database):
    url, connection = database
    rows = "SELECT x, repeat('x', 400) AS t FROM generate_series(1, 200000) x"
    connection.execute(f"CREATE TABLE long AS {rows}")
    with open_source(f"{url}#long").batches(["x", "t"]) as reader:
        sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 200_000
    assert max(sizes) < 100_000


def secretive(action, error=PrivacyError):
    with pytest.raises(error) as caught:
        action()
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return caught.value


def test_passwords_and_rows_are_never_said(database, capfd, caplog):
    caplog.set_level("DEBUG")
    url, connection = database
    address = url.replace("ledger@", f"ledger:{SECRET}@")
    connection.execute("CREATE TABLE t (who text, x int)")
    connection.execute("INSERT INTO t VALUES (%s, 1)", [SECRET])
    connection.execute("CREATE VIEW broken AS SELECT who, CAST(who AS int) AS x FROM t")
    source = open_source(f"{address}#t")
    assert SECRET not in repr(source) + str(source)
    plan = compile_program(
        schema={"x": integer(lower=0, upper=9)},
        unit="who",
        aggregates={"x": total(col("x"))},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    assert SECRET not in repr(collect(plan, source=source, key=1))
    broken = open_source(f"{address}#broken")
    secretive(lambda: collect(plan, source=broken, key=1), EngineFailure)
    secretive(lambda: open_source(f"{address}#nowhere"), InvalidArgument)
    secretive(lambda: open_source(address), InvalidArgument)
    closed = f"postgresql://somebody:{SECRET}@127.0.0.1:1/db#t"
    secretive(lambda: open_source(closed), EngineFailure)
    secretive(lambda: open_source(f"postgresql://%zz{SECRET}@x/db#t"), EngineFailure)
    secretive(lambda: open_source(f"{address}#t", engine="spark"), Unsupported)
    assert SECRET not in caplog.text + "".join(capfd.readouterr())


def test_the_name_of_a_table_is_no_sql(database):
    url, connection = database
    connection.execute("CREATE TABLE kept (x int)")
    for name in ("kept; DROP TABLE kept", "kept--", "(SELECT 1) AS t", "kept, kept"):
        with pytest.raises(PrivacyError):
            open_source(f"{url}#{name}")
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
