"""Each answer says what it leaves out, from what is public alone."""

import datetime as dt
import json
from dataclasses import replace

import polars as pl
import pytest

import discreet
from discreet import col, query
from discreet.core.errors import InvalidArgument
from discreet.report.release_report import ReleaseReport, as_html, csv_metadata

ROWS = pl.DataFrame(
    {
        "who": [f"planted-{n}" for n in range(40)] * 2,
        "age": [n % 90 for n in range(80)],
        "paid": [1.5, None] * 40,
        "region": ["north", "planted-place"] * 40,
        "day": ["2026-01-02", None] * 40,
    }
)
COLUMNS = {
    "age": discreet.integer(0, 120, missing=7),
    "paid": discreet.real(0, 10, granularity=0.5),
    "region": discreet.category(["north", "south"], missing="exclude"),
    "strict": discreet.category(["north"], include_other=False),
    "day": discreet.date(dt.date(2026, 1, 1), dt.date(2026, 12, 31), required=True),
}


@pytest.fixture
def people():
    rows = ROWS.with_columns(strict=pl.col("region"))
    limits = {"privacy_unit": "who", "max_rows_per_unit": 5}
    return discreet.table(rows, columns=COLUMNS, budget=10**6, **limits)


def test_an_answer_names_limits_filter_bounds_and_policies(people):
    asked = query.mean("age", by="region", where=col("paid") > 3)
    assert people.release([asked], epsilon=1)[0].about == (
        "at most 5 rows of each who are used, others are left out",
        "only rows in which 3 < paid is true are used",
        "values of age below 0 or above 120 count as the bound",
        "values of age are rounded to whole numbers",
        "unknown values of age count as 7",
        "values of paid below 0 or above 10 count as the bound",
        "values of paid are rounded to multiples of 0.5",
        "missing values of region are unknown, unlisted ones are in '(other)'",
        "rows in which region is unknown are in no group",
        "the interval covers the noise only",
    )


def test_limits_of_a_query_and_policies_of_other_kinds(people):
    asked = query.count(by=["strict"], where=col("day").is_known())
    asked = asked.limit_contributions(max_groups_per_unit=1)
    about = people.release([asked], epsilon=1)[0].about
    assert "at most 1 group of each who is used, others are left out" in about
    assert "missing and unlisted values of strict are unknown" in about
    assert "rows in which strict is unknown are in no group" in about
    assert "dates of day before 2026-01-01 or after 2026-12-31 are unknown" in about
    assert "rows in which day is unknown are left out of every query" in about


def test_rows_of_keys_that_were_not_asked_for(people):
    asked = query.count(by="region", keys=["north"])
    beyond = "rows of keys that were not asked for are"
    some, rest, every = people.release(
        [asked, replace(asked, include_other=True), query.count(by="region")], epsilon=1
    )
    assert some.keys == (("north",),)
    assert f"{beyond} left out" in some.about
    assert rest.keys == (("north",), ("(other)",))
    assert f"{beyond} in '(other)'" in rest.about
    assert not any(beyond in one for one in every.about)


QUERIES = [
    query.count(),
    query.count(of="paid"),
    query.count_units(),
    query.sum("paid"),
    query.mean(col("age") + col("paid")),
    query.variance("paid"),
    query.std("paid"),
    query.covariance("age", "paid"),
    query.correlation("age", "paid"),
    query.ratio("paid", "age"),
    query.median("paid"),
    query.quantiles("paid", q=[0.1, 0.9]),
    query.share(value="paid", by="region"),
    query.compare("paid", by="region", to="north"),
]


@pytest.mark.parametrize("asked", QUERIES, ids=lambda one: one.text)
def test_every_kind_of_query_has_limits_bounds_policy_and_interval(people, asked):
    made = people.release([asked], epsilon=1)[0]
    first, *middle, last = made.about
    assert "at most 5 rows of each who" in first
    assert "interval" in last
    if asked.value is not None:
        assert any("values of paid below 0 or above 10" in one for one in middle)
        assert any("is unknown are left out" in one for one in middle)
    if "region" in asked.by:
        assert any("values of region" in one for one in middle)
    assert not any("planted" in one for one in made.about)
    assert discreet.Release.from_json(made.to_json()).about == made.about


def test_what_is_told_of_intervals_is_what_there_is(people):
    count, median = people.release([query.count(), query.median("age")], epsilon=1)
    assert count.about[-1] == "the interval covers the noise only"
    assert count.map(float).about[-1] == "the value was mapped, so it has no interval"
    with pytest.raises(discreet.Unsupported):
        count.map(float).interval()
    has = not median.about[-1].endswith("no interval")
    assert has == median._has_interval


def test_sentences_depend_on_no_row(people):
    asked = [query.mean("paid", by="region"), query.count(where=col("age") > 50)]
    rows = ROWS.with_columns(strict=pl.col("region")).head(1)
    limits = {"privacy_unit": "who", "max_rows_per_unit": 5}
    other = discreet.table(rows, columns=COLUMNS, budget=10**6, **limits)
    for one, two in zip(
        people.release(asked, epsilon=1), other.release(asked, epsilon=1), strict=True
    ):
        assert one.about == two.about


def test_they_stand_in_html_and_are_escaped():
    rows = pl.DataFrame({"<b>": [1, 2]})
    table = discreet.table(rows, columns={"<b>": discreet.integer(0, 3)}, budget=10)
    made = table.sum("<b>", epsilon=1)
    assert "values of &lt;b&gt; below 0 or above 3 count as the bound" in made.to_html()
    assert "<b>" not in made.to_html()


def test_releases_without_facts_are_read_and_facts_without_limits_are_not(people):
    held = json.loads(people.count(epsilon=1).to_json())
    old = {name: one for name, one in held.items() if name not in ("facts", "about")}
    read = discreet.Release.from_json(json.dumps(old))
    assert "at most 5 rows are used of each" in read.about[0]
    del held["facts"]["limits"]
    with pytest.raises(InvalidArgument):
        discreet.Release.from_json(json.dumps(held))


def test_merged_groups_say_the_same(people):
    made = people.count(by="region", epsilon=1)
    assert made.merge_small_groups(below=5).about == made.about


def test_reports_say_it_beside_each_number(people):
    made = people.release([query.mean("age"), query.mean("paid")], epsilon=1)
    whole = made[0].guarantee
    report = ReleaseReport(title="ages", releases=tuple(made), guarantee=whole, account="")
    page = as_html(report)
    assert page.count("values of age below 0 or above 120 count as the bound") == 1
    assert page.count("values of paid below 0 or above 10 count as the bound") == 1
    notes = json.loads(csv_metadata(report, csv="a.csv", card="a.json"))["notes"]
    assert [tuple(one["about"]) for one in notes] == [one.about for one in made]


CELLS = {
    "ranges": lambda people, where: people.ranges("age", where=where, epsilon=1),
    "rectangles": lambda people, where: people.ranges(["age", "region"], where=where, epsilon=1),
    "many tables": lambda people, where: people.marginals(
        [["region", "old"]],
        columns={"region": "region", "old": col("age") > 60},
        where=where,
        epsilon=1,
    ),
}


@pytest.mark.parametrize("kind", CELLS)
def test_ranges_rectangles_and_many_tables_say_it_too(people, kind):
    made = CELLS[kind](people, col("paid") > 3)
    assert made.about[:2] == (
        "at most 5 rows of each who are used, others are left out",
        "only rows in which 3 < paid is true are used",
    )
    assert "values of age below 0 or above 120 count as the bound" in made.about
    assert "unknown values of age count as 7" in made.about
    assert not any("day" in one or "strict" in one for one in made.about)
    if kind != "ranges":
        assert "missing values of region are unknown, unlisted ones are in '(other)'" in made.about
        assert "rows in which region is unknown are left out" in made.about
    assert made.about[-1] == "the intervals cover the noise only"
    assert type(made).from_json(made.to_json()).about == made.about
    held = json.loads(made.to_json())
    del held["release"]["about"]  # as it was written before
    assert type(made).from_json(json.dumps(held)).about == (made.privacy_statement,)
    held["release"]["about"] = 5
    with pytest.raises(InvalidArgument):
        type(made).from_json(json.dumps(held))
