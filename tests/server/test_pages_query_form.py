"""A form becomes a question in the words of a release file, and the other way round."""

from __future__ import annotations

import datetime as dt

import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data import schema
from discreet.data.program import ContributionLimits
from discreet.query._release_plan import TableSpec
from discreet.server.pages.query_form import (
    FIRST,
    KINDS,
    fields_of,
    kept_queries,
    query_of_form,
    query_words,
)
from discreet.server.schemas import ColumnInfo
from discreet.spec.statistics import release_spec

COLUMNS = (
    ColumnInfo(name="age", kind="integer", lower=0, upper=99),
    ColumnInfo(name="pay", kind="real", lower=0, upper=100, step=0.25),
    ColumnInfo(name="site", kind="category", levels=(1, 2, 3)),
    ColumnInfo(name="sex", kind="category", levels=("female", "male")),
    ColumnInfo(name="ill", kind="boolean"),
    ColumnInfo(name="day", kind="date", lower="2020-01-01", upper="2020-12-31", step="day"),
)
SETTING = TableSpec(
    schema={
        "age": schema.integer(lower=0, upper=99),
        "pay": schema.real(lower=0, upper=100, granularity=0.25),
        "site": schema.category([1, 2, 3], include_other=False),
        "sex": schema.category(["female", "male"], include_other=False),
        "ill": schema.boolean(),
        "day": schema.date(lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31)),
    },
    privacy_unit="person",
    limits=ContributionLimits(max_rows_per_unit=2),
    relation=NeighboringRelation.ADD_REMOVE,
)
AMOUNT = {"aim": ["amount"], "measure": ["epsilon"], "amount": ["0.5"]}
OF = {"of": ["pay"], "also": ["age"]}


def form(**fields: str | list[str]) -> dict[str, list[str]]:
    given = {name: [one] if isinstance(one, str) else one for name, one in fields.items()}
    return {**AMOUNT, **given}


def test_the_first_form_asks_for_a_count():
    assert query_of_form(FIRST, COLUMNS) == {"kind": "count", "epsilon": 0.1}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_a_question_that_can_be_planned(kind):
    given = form(kind=kind, bins="16" if kind == "ranges" else "", **OF)
    made = release_spec([query_of_form(given, COLUMNS)], setting=SETTING, limit={"epsilon": 1})
    assert made.plan().guarantee.epsilon(0.0) == pytest.approx(0.5, rel=1e-9)


def test_all_fields_are_read():
    given = form(
        kind="mean",
        of="pay",
        name="Pay",
        by=["sex", "ill"],
        cut="age",
        points="18; 65",
        expected_rows="2 000",
        where_column_1="site",
        where_test_1="in",
        where_value_1="1, 3",
        where_column_2="ill",
        where_test_2="is",
        where_value_2="True",
        where_column_3="age",
        where_test_3="at_least",
        where_value_3="30",
        max_rows_per_unit="1",
        measure="rho",
        delta="1e-6",
    )
    assert query_of_form(given, COLUMNS) == {
        "kind": "mean",
        "name": "Pay",
        "of": "pay",
        "by": ["sex", "ill", {"column": "age", "cut": [18, 65]}],
        "where": [
            {"column": "site", "in": [1, 3]},
            {"column": "ill", "is": True},
            {"column": "age", "at_least": 30},
        ],
        "expected_rows": 2000,
        "max_rows_per_unit": 1,
        "rho": 0.5,
    }


def test_a_field_of_another_kind_is_not_read():
    given = form(kind="count", q="0.5", edges="1, 2", of="pay", method="tree")
    assert query_of_form(given, COLUMNS) == {"kind": "count", "epsilon": 0.5}


def test_ranges_of_two_columns_are_rectangles():
    given = form(kind="ranges", of="pay", other="age", bins="8", workload="all")
    made = query_of_form(given, COLUMNS)
    assert made["of"] == ["pay", "age"]
    assert made["bins"] == {"pay": 8}
    assert release_spec([made], setting=SETTING, limit={"epsilon": 1}).plan().ranges


def test_an_error_may_be_asked_for_instead_of_a_price():
    given = form(kind="count", aim="within", within="50")
    assert query_of_form(given, COLUMNS) == {"kind": "count", "within": 50}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "dance"}, "kind"),
        ({"kind": "mean", "of": "shoes"}, "of"),
        ({"kind": "count", "amount": "much"}, "epsilon: write a number"),
        ({"kind": "count", "amount": ""}, "epsilon: write a number"),
        ({"kind": "count", "max_rows_per_unit": "1.5"}, "whole number"),
        ({"kind": "count", "cut": "age"}, "points"),
        ({"kind": "count", "measure": "gold"}, "measure"),
        ({"kind": "median", "of": "pay", "method": "magic"}, "method"),
        (
            {"kind": "count", "where_column_1": "ill", "where_value_1": "maybe"},
            "condition 1: write true",
        ),
        ({"kind": "count", "where_column_2": "shoes", "where_value_2": "1"}, "condition 2"),
    ],
)
def test_what_is_wrong_is_named(fields, said):
    with pytest.raises(InvalidArgument, match=said):
        query_of_form(form(**fields), COLUMNS)


QUESTIONS = [
    {"kind": "count", "epsilon": 0.5},
    {"kind": "covariance", "of": ["pay", "age"], "expected_rows": 10, "rho": 0.5},
    {"kind": "correlation", "of": ["pay", "age"], "expected_rows": 10, "epsilon": 0.5},
    {"kind": "maximum", "of": "pay", "method": "tree", "epsilon": 0.5},
    {"kind": "quantiles", "of": "pay", "q": [0.1, 0.9], "method": "tree", "epsilon": 1},
    {"kind": "histogram", "of": "age", "edges": [20, 40], "epsilon": 1, "delta": 1e-06},
    {
        "kind": "histogram",
        "of": "day",
        "edges": [{"date": "2020-03-01"}, {"date": "2020-06-01"}],
        "where": [{"column": "day", "at_least": {"date": "2020-02-01"}}],
        "epsilon": 1,
    },
    {"kind": "ranges", "of": ["pay", "age"], "bins": {"pay": 8}, "epsilon": 1},
    {"kind": "ranges", "of": "pay", "workload": "short", "bins": 16, "within": 20},
    {
        "kind": "units",
        "name": "Women, by age",
        "by": ["site", {"column": "age", "cut": [18, 65]}],
        "where": [{"column": "sex", "is": "female"}, {"column": "site", "in": [1, 2]}],
        "max_groups_per_unit": 1,
        "epsilon": 0.25,
    },
]


@pytest.mark.parametrize("one", QUESTIONS, ids=lambda one: one["kind"])
def test_a_question_survives_the_form(one):
    assert query_of_form(fields_of(one), COLUMNS) == one
    assert release_spec([one], setting=SETTING, limit={"epsilon": 1}).plan().guarantee


def test_questions_that_were_kept_come_back():
    assert kept_queries({"kept": ['[{"kind": "count"}]']}) == [{"kind": "count"}]
    assert kept_queries({}) == []


@pytest.mark.parametrize("text", ["{", "{}", "[1]", "[" * 10_000])
def test_what_is_kept_must_be_questions(text):
    with pytest.raises(InvalidArgument, match="kept"):
        kept_queries({"kept": [text]})


def test_a_question_has_words():
    assert query_words(QUESTIONS[-1]) == "Women, by age"
    assert query_words({"kind": "mean", "of": "pay", "by": ["sex"]}) == "Mean of pay by sex"
    assert query_words({"kind": "ranges", "of": ["pay", "age"]}) == "All ranges of pay, age"
    where = [{"column": "site", "in": [1, 2]}, {"column": "age", "at_least": 30}]
    told = "Number of rows, where site is one of 1, 2 and age is at least 30"
    assert query_words({"kind": "count", "where": where}) == told
    assert query_words({"kind": "count", "where": {"expression": [1]}}) == "Number of rows, where …"
