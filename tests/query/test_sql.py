"""SQL asks the same questions as Python, bit by bit; everything else is refused in words."""

import collections
import contextlib
import csv
import datetime as dt
import importlib
import random
import string
import types
from pathlib import Path

import pandas as pd
import pytest
import sqlglot

import discreet
from discreet import col, query, seeded_rng, when
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.query._release_plan import plan_release
from discreet.query._sql import DEEPEST
from discreet.query.budget import budget

CASES = list(
    csv.reader(
        Path(__file__).with_name("sql-cases.tsv").read_text("utf-8").splitlines()[1:],
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
    )
)
COLUMNS = {
    "age": discreet.integer(0, 120),
    "cost": discreet.real(0, 1000, granularity=0.5),
    "visits": discreet.integer(0, 20),
    "ward": discreet.category(["a", "b", "c"]),
    "sex": discreet.category(["f", "m"], include_other=False),
    "smoker": discreet.boolean(),
    "day": discreet.date(dt.date(2026, 1, 1), dt.date(2026, 12, 31)),
}
ROWS = pd.DataFrame(
    {
        "person": [f"p{i // 2}" for i in range(200)],
        "age": [i % 90 for i in range(200)],
        "cost": [float(i) for i in range(200)],
        "visits": [i % 20 for i in range(200)],
        "ward": ["a", "b", "c", "d"] * 50,
        "sex": ["f", "m"] * 100,
        "smoker": [i % 3 == 0 for i in range(200)],
        "day": [dt.date(2026, 1 + i % 12, 1 + i % 28) for i in range(200)],
    }
)
age, cost, visits, ward, sex, smoker, day = map(col, COLUMNS)
n, sm, av = query.count, query.sum, query.mean
band = when(age < 18).then(0).otherwise(when(age < 65).then(1).otherwise(2))
first, last = dt.date(2026, 1, 1), dt.date(2026, 3, 31)

# What the accepted statements of the file are in Python, in their order.
IN_PYTHON = [
    *([n()] for _ in range(4)),
    [query.count_units()],
    [sm("cost")],
    [av("cost")],
    [av("cost"), av("age")],
    *([query.variance("age")] for _ in range(2)),
    *([query.std("age")] for _ in range(2)),
    [query.median("age")],
    [query.quantiles("age", [0.5])],
    [query.quantiles("cost", [0.9])],
    [query.covariance("age", "visits")],
    [n(by="ward")],
    [n(by="ward"), av("cost", by="ward")],
    [n(by=["ward", "sex"])],
    *([n(by="ward")] for _ in range(5)),
    [n(by={"y": day.year()})],
    [sm("cost", by={"m": day.month()})],
    [n(by={"band": band})],
    [n(by={"is_a": when(ward == "a").then(1).otherwise(0)})],
    *([n(where=age >= 65)] for _ in range(2)),
    [n(where=(age >= 18) & (age <= 64))],
    *([n(where=~((age >= 18) & (age <= 64)))] for _ in range(2)),
    [n(where=ward.isin(["a", "b"]))],
    [n(where=~ward.isin(["a"]))],
    [n(where=((ward == "a") & (sex == "f")) | (age > 80))],
    [n(where=((ward == "a") | (ward == "b")) & ~smoker)],
    [n(where=smoker)],
    [n(where=smoker == True)],  # noqa: E712 - as the statement says it
    *([n(where=ward != "c")] for _ in range(2)),
    [n(where=day >= first)],
    [n(where=(day >= first) & (day <= last))],
    [n(where=age == -1)],
    [n(where=cost > 12.5)],
    [n(where=age < visits)],
    [sm(cost * 2)],
    [sm(cost + age)],
    [sm(-cost)],
    [av(abs(age - 40))],
    [sm(when(smoker).then(cost).otherwise(0))],
    [av(when(age >= 65).then(1).otherwise(0))],
    *([n(by="ward")] for _ in range(4)),
    [av("age")],
    [n(where=age >= 18)],
    [n()],
    [
        query.count_units(by="ward", where=sex == "f"),
        sm("cost", by="ward", where=sex == "f"),
        query.median("age", by="ward", where=sex == "f"),
    ],
    [n(by={"w": day.truncate("week")})],
    [sm("cost", by={"m": day.truncate("month")})],
    [n(by={"q": day.truncate("quarter"), "ward": ward})],
    [av("age", by={"y": day.truncate("year")}, where=smoker)],
]

MORE = [
    ("SELECT COUNT(*) AS a, COUNT(1) AS b FROM visits", [n(), n()]),
    ("SELECT CORR(age, cost) FROM visits", [query.correlation("age", "cost")]),
    ("SELECT CORR(age, visits) AS r FROM visits", [query.correlation("age", "visits")]),
    ("SELECT SUM(age * 3 - 2) FROM visits", [sm(age * 3 - 2)]),
    ("SELECT SUM(2 * age) FROM visits", [sm(2 * age)]),
    ("SELECT SUM(100 - age) FROM visits", [sm(100 - age)]),
    ("SELECT SUM(age * visits) FROM visits", [sm(age * visits)]),
    ("SELECT AVG(age - visits) FROM visits", [av(age - visits)]),
    ("SELECT AVG(-(age)) FROM visits", [av(-age)]),
    ("SELECT AVG(ABS(-age)) FROM visits", [av(abs(-age))]),
    ("SELECT MEDIAN(age + 1) FROM visits", [query.median(age + 1)]),
    ("SELECT VARIANCE(cost) AS v FROM visits", [query.variance("cost")]),
    ("SELECT STDDEV(cost), AVG(cost) FROM visits", [query.std("cost"), av("cost")]),
    ("SELECT COVAR_POP(cost, age) FROM visits", [query.covariance("cost", "age")]),
    (
        "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY visits) FROM visits",
        [query.quantiles("visits", [0.25])],
    ),
    (
        "SELECT PERCENTILE_CONT(:q) WITHIN GROUP (ORDER BY age) FROM visits",
        [query.quantiles("age", [0.75])],
    ),
    ("SELECT sex, SUM(visits) FROM visits GROUP BY sex", [sm("visits", by="sex")]),
    ("SELECT smoker, AVG(age) FROM visits GROUP BY 1", [av("age", by="smoker")]),
    ("SELECT sex AS s, smoker AS k, COUNT(*) FROM visits GROUP BY s, k", None),
    (
        "SELECT sex, COUNT(DISTINCT person) FROM visits GROUP BY sex",
        [query.count_units(by="sex")],
    ),
    ("SELECT MEDIAN(cost), sex FROM visits GROUP BY sex", [query.median("cost", by="sex")]),
    (
        "SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM visits GROUP BY 1",
        [n(by={"m": day.month()})],
    ),
    (
        "SELECT EXTRACT(DAY FROM day) AS d, COUNT(*) FROM visits GROUP BY d",
        [n(by={"d": day.day()})],
    ),
    (
        "SELECT CASE WHEN smoker THEN 1 ELSE 0 END AS s, AVG(age) FROM visits GROUP BY s",
        [av("age", by={"s": when(smoker).then(1).otherwise(0)})],
    ),
    ("SELECT COUNT(*) FROM visits WHERE age < 18 OR age > 65", [n(where=(age < 18) | (age > 65))]),
    ("SELECT COUNT(*) FROM visits WHERE NOT (age < 18)", [n(where=~(age < 18))]),
    ("SELECT COUNT(*) FROM visits WHERE NOT smoker", [n(where=~smoker)]),
    (
        "SELECT COUNT(*) FROM visits WHERE smoker = FALSE",
        [n(where=smoker == False)],  # noqa: E712 - as the statement says it
    ),
    ("SELECT COUNT(*) FROM visits WHERE age + visits > 30", [n(where=age + visits > 30)]),
    ("SELECT COUNT(*) FROM visits WHERE age * 2 >= 40", [n(where=age * 2 >= 40)]),
    ("SELECT COUNT(*) FROM visits WHERE ABS(age - 40) < 5", [n(where=abs(age - 40) < 5)]),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1, 2, 3)", [n(where=age.isin([1, 2, 3]))]),
    ("SELECT COUNT(*) FROM visits WHERE visits NOT IN (0)", [n(where=~visits.isin([0]))]),
    (
        "SELECT COUNT(*) FROM visits WHERE EXTRACT(MONTH FROM day) = 2",
        [n(where=day.month() == 2)],
    ),
    ("SELECT COUNT(*) FROM visits WHERE day < DATE '2026-06-01'", None),
    (
        "SELECT COUNT(*) FROM visits WHERE day = DATE '2026-01-01'",
        [n(where=day == first)],
    ),
    ("SELECT COUNT(*) FROM visits WHERE ward = :w", [n(where=ward == "b")]),
    ("SELECT COUNT(*) FROM visits WHERE day >= :since", [n(where=day >= first)]),
    (
        "SELECT COUNT(*) FROM visits WHERE cost BETWEEN :low AND 99.5",
        [n(where=(cost >= 18) & (cost <= 99.5))],
    ),
    ("SELECT SUM(cost * :low) FROM visits", [sm(cost * 18)]),
    ("SELECT AVG(cost) FROM visits WHERE sex = 'm' AND smoker", None),
    (
        "SELECT sex, AVG(cost) FROM visits WHERE ward <> 'a' GROUP BY sex",
        [av("cost", by="sex", where=ward != "a")],
    ),
    (
        "SELECT AVG(CASE ward WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END) FROM visits",
        [av(when(ward == "a").then(1).otherwise(when(ward == "b").then(2).otherwise(0)))],
    ),
    (
        "SELECT SUM(CASE WHEN age > 18 AND sex = 'f' THEN visits ELSE 0 END) FROM visits",
        [sm(when((age > 18) & (sex == "f")).then(visits).otherwise(0))],
    ),
    ("select\n  avg(age)\nfrom visits\nwhere age > 5", [av("age", where=age > 5)]),
    ("SELECT COUNT(*) FROM visits WHERE (((age))) > (5)", [n(where=age > 5)]),
    ('SELECT COUNT(*) FROM "visits" WHERE "age" > 5', [n(where=age > 5)]),
    ("SELECT Count(*) FROM Visits AS x WHERE x.Age > 5", [n(where=age > 5)]),
    ("SELECT sex, COUNT(*) AS c FROM visits GROUP BY sex ORDER BY 2 DESC", [n(by="sex")]),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY sex ORDER BY COUNT(*) LIMIT 1", [n(by="sex")]),
    ("SELECT COUNT(age) FROM visits", [n(of="age")]),
    ("SELECT COUNT(*) FROM visits WHERE age IS NULL", [n(where=age.is_missing())]),
    ("SELECT COUNT(*) FROM visits WHERE age IS NOT NULL", [n(where=age.is_known())]),
    (
        "SELECT COUNT(*) FROM visits WHERE (age > 3) IS NULL OR day IS NULL",
        [n(where=(age > 3).is_missing() | day.is_missing())],
    ),
    ("SELECT COUNT(*) FROM visits WHERE smoker IS TRUE", [n(where=smoker.fill_missing(False))]),
    (
        "SELECT COUNT(*) FROM visits WHERE (age > 3) IS NOT FALSE",
        [n(where=~(~(age > 3)).fill_missing(False))],
    ),
    ("SELECT SUM(COALESCE(cost, 0)) FROM visits", [sm(cost.fill_missing(0))]),
    ("SELECT AVG(COALESCE(age, :low)) FROM visits", [av(age.fill_missing(18))]),
    (
        "SELECT SUM(COALESCE(age, visits, 7)) FROM visits",
        [sm(when(age.is_known()).then(age).otherwise(visits.fill_missing(7)))],
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE COALESCE(smoker, TRUE)",
        [n(where=smoker.fill_missing(True))],
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE age > 3), AVG(cost) FROM visits WHERE smoker",
        [n(where=smoker & (age > 3)), av("cost", where=smoker)],
    ),
    (
        "SELECT ward, SUM(cost) FILTER (WHERE sex = 'f') FROM visits GROUP BY ward",
        [sm("cost", by="ward", where=sex == "f")],
    ),
    ("SELECT AVG(cost / 100) FROM visits", [av(cost / 100)]),
    ("SELECT AVG(age / 10.0) FROM visits", [av(age / 10)]),
    ("SELECT SUM(cost) / SUM(visits) FROM visits", [query.ratio("cost", "visits")]),
    (
        "SELECT sex, 1.0 * SUM(age) / SUM(visits) AS r FROM visits GROUP BY sex",
        [query.ratio("age", "visits", by="sex")],
    ),
    (
        "SELECT EXTRACT(WEEK FROM day) AS w, COUNT(*) FROM visits GROUP BY w",
        [n(by={"w": day.week()})],
    ),
    (
        "SELECT EXTRACT(QUARTER FROM day) AS q, COUNT(*) FROM visits GROUP BY q",
        [n(by={"q": day.quarter()})],
    ),
    (
        "SELECT ward, DATE_TRUNC('QUARTER', day), AVG(age) FROM visits GROUP BY ward, 2",
        [av("age", by={"ward": ward, "group 2": day.truncate("quarter")})],
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) = '2026-02'",
        [n(where=day.truncate("month") == "2026-02")],
    ),
]
MORE = [
    (
        text,
        found
        or {
            18: [n(by={"s": sex, "k": smoker})],
            34: [n(where=day < dt.date(2026, 6, 1))],
            40: [av("cost", where=(sex == "m") & smoker)],
        }[place],
    )
    for place, (text, found) in enumerate(MORE)
]
REFUSED = [
    ("SELECT", "no FROM"),
    ("", "not SQL"),
    ("SELECT COUNT(*) FROM visits WHERE", "not SQL"),
    ("hello world", "not"),
    ("SELECT COUNT(*) FROM visits;;SELECT 1", "several statements"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "not a SELECT"),
    ("ALTER TABLE visits ADD COLUMN x INT", "not a SELECT"),
    ("TRUNCATE TABLE visits", "not a SELECT"),
    ("GRANT ALL ON visits TO me", "not a SELECT"),
    ("SET x = 1", "not a SELECT"),
    ("VALUES (1)", "not a SELECT"),
    ("SELECT COUNT(*) FROM visits INTERSECT SELECT COUNT(*) FROM visits", "UNION"),
    ("SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM visits", "UNION"),
    ("SELECT *, COUNT(*) FROM visits", "star"),
    ("SELECT COUNT(*), ward FROM visits", "bare column"),
    ("SELECT ward, sex, COUNT(*) FROM visits GROUP BY ward", "bare column"),
    ("SELECT age + 1, COUNT(*) FROM visits", "bare column"),
    ("SELECT AVG(person) FROM visits", "unit as a value"),
    ("SELECT COUNT(*) FROM visits WHERE PERSON > 'a'", "unit as a value"),
    ("SELECT PERSON, COUNT(*) FROM visits GROUP BY 1", "GROUP BY unit"),
    ("SELECT COUNT(*) FROM visits GROUP BY 7", "GROUP BY"),
    ("SELECT COUNT(*) FROM visits GROUP BY 1", "GROUP BY"),
    ("SELECT COUNT(*) FROM other.visits", "DB"),
    ("SELECT COUNT(*) FROM visits WHERE other.visits.age > 3", "unknown table"),
    ("SELECT SUM(visits.nothing) FROM visits", "unknown column"),
    ("SELECT COUNT(*) FROM visits NATURAL JOIN people", "JOIN"),
    ("SELECT COUNT(*) FROM visits CROSS JOIN people", "JOIN"),
    ("SELECT COUNT(*) FROM visits, LATERAL (SELECT 1) AS q", "JOIN"),
    ("SELECT (SELECT COUNT(*) FROM visits)", "subquery"),
    ("SELECT COUNT(*) FROM visits WHERE age > ANY (SELECT 1)", "subquery"),
    ("SELECT DISTINCT ON (ward) ward, COUNT(*) FROM visits GROUP BY ward", "DISTINCT"),
    ("SELECT AVG(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT COUNT(DISTINCT person, ward) FROM visits", "COUNT(DISTINCT)"),
    ("SELECT COUNT(2) FROM visits", "COUNT(column)"),
    ("SELECT SUM(cost) OVER () FROM visits", "window function"),
    ("SELECT RANK() OVER (ORDER BY age), COUNT(*) FROM visits", "window function"),
    ("SELECT ward, COUNT(*) FROM visits GROUP BY CUBE (ward)", "GROUP BY ROLLUP"),
    ("SELECT ward, COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward), ())", "GROUP BY ROLLUP"),
    ("SELECT SUM(NULLIF(age, 3)) FROM visits", "COALESCE"),
    ("SELECT SUM(COALESCE(age)) FROM visits", "COALESCE"),
    ("SELECT SUM(COALESCE(3, age)) FROM visits", "constant"),
    ("SELECT SUM(COALESCE(person, 3)) FROM visits", "unit as a value"),
    ("SELECT COUNT(*) FROM visits WHERE person IS NULL", "unit as a value"),
    ("SELECT COUNT(*) FROM visits WHERE 3 IS NULL", "constant"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1, NULL)", "NULL"),
    ("SELECT SUM(CASE WHEN smoker THEN cost ELSE NULL END) FROM visits", "NULL"),
    ("SELECT COUNT(*) FROM visits WHERE age IS DISTINCT FROM 3", "unknown function"),
    ("SELECT AVG(age / 10) FROM visits", "division"),
    ("SELECT AVG(3 / age) FROM visits", "division"),
    ("SELECT AVG(cost / 0) FROM visits", "types"),
    ("SELECT SUM(age) / SUM(visits) FROM visits", "division"),
    ("SELECT SUM(cost) / SUM(visits) * 2 FROM visits", "arithmetic on aggregates"),
    ("SELECT SUM(SUM(cost)) / SUM(visits) FROM visits", "arithmetic on aggregates"),
    ("SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM visits", "aggregate in the wrong place"),
    ("SELECT EXTRACT(DOW FROM day) AS w, COUNT(*) FROM visits GROUP BY w", "date part"),
    ("SELECT SUM(age::float) FROM visits", "CAST"),
    ("SELECT COUNT(*) FROM visits WHERE day > '2026-01-01'::text", "CAST"),
    ("SELECT COUNT(*) FROM visits WHERE day > DATE 'yesterday'", "date"),
    ("SELECT COUNT(*) - 1 FROM visits", "arithmetic on aggregates"),
    ("SELECT 2 * AVG(age) FROM visits", "arithmetic on aggregates"),
    ("SELECT AVG(age) FROM visits WHERE AVG(age) > 3", "aggregate in the wrong place"),
    ("SELECT COUNT(*) FROM visits WHERE TRUE", "constant condition"),
    ("SELECT COUNT(*) FROM visits WHERE 'a' = 'a'", "constant condition"),
    ("SELECT 'x' AS k, COUNT(*) FROM visits", "constant"),
    ("SELECT AVG('a') FROM visits", "constant"),
    ("SELECT COUNT(*) FROM visits WHERE age > 'x'", "types"),
    ("SELECT SUM(ward) FROM visits", "types"),
    ("SELECT COUNT(*) FROM visits WHERE ward < 3", "types"),
    ("SELECT COUNT(*) FROM visits WHERE age", "types"),
    ("SELECT STRING_AGG(ward, ',') FROM visits", "unknown function"),
    ("SELECT ARRAY_AGG(age) FROM visits", "unknown function"),
    ("SELECT COUNT(*) FROM visits WHERE LENGTH(ward) > 1", "unknown function"),
    ("SELECT COUNT(*) FROM visits WHERE UPPER(ward) = 'A'", "unknown function"),
    ("SELECT COUNT(*) FROM visits LIMIT 1", "LIMIT without ORDER BY"),
    ("SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY sex", "ORDER BY"),
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n LIMIT 1 + 1", "LIMIT"),
    ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) FROM visits", "unknown function"),
    ("SELECT PERCENTILE_CONT('x') WITHIN GROUP (ORDER BY age) FROM visits", "PERCENTILE"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC) FROM visits", "PERCENTILE"),
    ("SELECT COUNT(*) INTO x FROM visits", "INTO"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e999", "number"),
    ("SELECT COUNT(*) FROM visits WHERE age >= $1", "parameter"),
]
PARAMETERS = {"low": 18, "q": 0.75, "w": "b", "since": first}


@pytest.fixture(scope="module")
def table():
    account = discreet.Ledger("memory://").account("x", limit=discreet.pure_dp(10**6))
    return discreet.table(
        ROWS, columns=COLUMNS, privacy_unit="person", max_rows_per_unit=3, account=account
    )


def planned(table, text):
    return table.plan_sql(text, parameters=PARAMETERS, name="visits")


@pytest.fixture
def released(table, monkeypatch):
    """Numbers from seeded bits, which no account pays for."""
    receipt = types.SimpleNamespace(receipt=None)
    door = importlib.import_module("discreet.tables._execute")
    held = contextlib.nullcontext(receipt)
    monkeypatch.setattr(door, "reserve_budget", lambda *_, **__: held)

    def release(queries):
        plan = plan_release(queries, setting=table.spec, budget=budget(epsilon=1))
        releases, *_ = door.execute(table, plan, rng=seeded_rng(7))
        return [(one.keys, one.value, one.guarantee) for one in releases]

    return release


ACCEPTED = [one[2] for one in CASES if one[0] == "accept"]


@pytest.mark.parametrize("place", range(len(ACCEPTED)))
def test_the_cases_are_the_same_questions_as_in_python_bit_by_bit(place, table, released):
    asked = planned(table, ACCEPTED[place]).queries
    assert released(asked) == released(IN_PYTHON[place])


@pytest.mark.parametrize(("text", "meant"), MORE, ids=[text for text, _ in MORE])
def test_more_statements_are_the_same_bit_by_bit(text, meant, table, released):
    assert released(planned(table, text).queries) == released(meant)


def test_the_comparison_finds_another_question(table, released):
    asked = planned(table, "SELECT COUNT(*) FROM visits WHERE age > 5").queries
    assert released(asked) != released([n(where=age > 6)])


@pytest.mark.parametrize(
    ("text", "name"), [*[(one[2], one[1]) for one in CASES if one[0] == "refuse"], *REFUSED]
)
def test_everything_else_is_refused_by_name_and_nothing_is_charged(text, name, table):
    before = len(table.account.history)
    with pytest.raises(InvalidArgument) as error:
        table.sql(text, epsilon=1, parameters=PARAMETERS, name="visits")
    assert str(error.value).startswith(f"SQL: {name}")
    assert len(table.account.history) == before


def test_there_are_enough_cases():
    assert len(ACCEPTED) == len(IN_PYTHON) == 64
    assert len(CASES) == 141
    assert len(MORE) >= 50
    assert len(REFUSED) >= 50


def test_a_refusal_names_the_place(table):
    with pytest.raises(InvalidArgument, match=r"HAVING \(line 2, column 22\): Filter the released"):
        planned(table, "SELECT ward, COUNT(*) FROM visits\nGROUP BY ward HAVING COUNT(*) > 10")


def test_sizes_are_limited(table):
    for text in (
        "SELECT COUNT(*) FROM visits WHERE age IN (" + "1," * 2_500 + "1)",
        "SELECT COUNT(*) FROM visits WHERE " + "NOT " * (DEEPEST + 9) + "smoker",
        "SELECT COUNT(*) FROM visits -- " + "x" * 10_000,
        "SELECT " + "(" * 4_000 + "1" + ")" * 4_000,
    ):
        with pytest.raises(InvalidArgument, match="size|not SQL"):
            planned(table, text)


def test_an_answer_has_the_order_names_and_rows_of_the_select(table):
    answer = table.sql(
        "SELECT COUNT(*) AS n, ward, AVG(age) FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2",
        epsilon=5,
    )
    rows = answer.rows()
    names = ["n", "n low", "n high", "ward", "avg", "avg low", "avg high"]
    assert list(rows[0]) == names
    assert len(rows) == 2
    assert rows[0]["n"] >= rows[1]["n"] >= max(sorted(answer.releases[0].values)[:-2])
    assert answer.guarantee.epsilon() == pytest.approx(5)
    assert len(answer.releases) == 2
    assert "avg" in str(answer)
    assert list(answer.to_pandas().columns) == names


def test_names_of_columns_do_not_collide(table):
    columns = planned(table, "SELECT AVG(age), AVG(cost), COUNT(*) AS avg FROM visits").rows()
    assert [one["column"] for one in columns] == ["avg", "avg_2", "avg_3"]


def test_the_name_of_the_table_is_free_unless_it_is_given(table):
    assert table.plan_sql("SELECT COUNT(*) FROM anything").queries[0].text == "count"
    with pytest.raises(InvalidArgument, match="unknown table"):
        table.plan_sql("SELECT COUNT(*) FROM anything", name="visits")


def test_text_of_the_data_never_enters_the_message(table):
    with pytest.raises(InvalidArgument) as error:
        table.plan_sql("SELECT COUNT(*) FROM visits WHERE ward = 'd'")
    assert "p0" not in str(error.value)


def test_without_the_parser_the_extra_is_named(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    with pytest.raises(Unsupported, match=r"discreet\[sql\]"):
        table.plan_sql("SELECT COUNT(*) FROM visits")


PIECES = (  # noqa: SIM905 - a list of strings in quotes would be unreadable
    "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT AND OR NOT IN BETWEEN CASE WHEN THEN ELSE END "
    "COUNT(*) SUM( AVG( ABS( EXTRACT( PERCENTILE_CONT(0.5) WITHIN ( ) , * + - / % = < <> || :: . ; "
    ":low $1 ? 'a' '' \"age\" age cost ward day person visits NULL TRUE 1 0 1e400 0x1F INTERVAL "
    "DATE ROW( ARRAY[ ] { } DISTINCT AS x OVER () FILTER UNION WITH q JOIN ON LATERAL UNNEST( "
    "VALUES FETCH OFFSET TABLESAMPLE COLLATE IS LIKE ~ @> -> # /* */ -- \\ \x00 é ∑ EXISTS ANY "
    "CAST( INT PIVOT STRUCT MAP EXCLUDE QUALIFY WINDOW GROUPING SETS CUBE FOR UPDATE INTO COPY"
).split(" ")


def crossed(draw, trees):
    """A statement in which one part is a part of another."""
    tree = draw.choice(trees).copy()
    parts = [one for one in tree.walk() if one.parent is not None]
    other = draw.choice(list(draw.choice(trees).walk())).copy()
    if parts:
        draw.choice(parts).replace(other)
    return tree.sql("postgres")


def mangled(draw, whole):
    """A statement with words or letters put in, replaced or left out."""
    words = draw.choice(whole).split(" ")
    for _ in range(draw.randint(1, 2)):
        place = draw.randrange(len(words) + 1)
        match draw.randrange(4):
            case 0:
                words.insert(place, draw.choice(PIECES))
            case 1:
                words[place : place + 1] = [draw.choice(PIECES)]
            case 2:
                del words[place : place + 1]
            case _:
                words.insert(place, "".join(draw.choices(string.printable, k=3)))
    return " ".join(words)


@pytest.mark.parametrize("many", [600, pytest.param(8_000, marks=pytest.mark.slow)])
def test_strange_statements_are_translated_or_refused_and_never_fail_otherwise(many, table):
    draw = random.Random(29)
    whole = [*[one[2] for one in CASES], *[text for text, _ in MORE + REFUSED]]
    trees = []
    for text in whole:
        with contextlib.suppress(sqlglot.errors.SqlglotError):
            trees += [one for one in sqlglot.parse(text, read="postgres") if one is not None]
    before, names = len(table.account.history), collections.Counter()
    for turn in range(many):
        try:
            text = crossed(draw, trees) if turn % 2 else mangled(draw, whole)
        except (ValueError, TypeError, AttributeError, sqlglot.errors.SqlglotError):
            continue  # what sqlglot cannot write is no statement
        try:
            planned(table, text)
            names["translated"] += 1
        except InvalidArgument as error:
            names[str(error).split(":")[1].split(" (")[0]] += str(error).startswith("SQL: ")
    assert len(table.account.history) == before
    assert names["translated"] > many / 50
    assert len(names) > 30
    assert min(names.values()) > 0  # each is one of our own refusals
