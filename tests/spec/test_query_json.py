"""A question that was sent as JSON is the question that was asked."""

import datetime as dt
import json
from fractions import Fraction

import pytest

from discreet import boolean, category, col, date, integer, keys, real
from discreet import query as queries
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.program import ContributionLimits
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import budget
from discreet.ranges import workload
from discreet.ranges.grid.table_query import plan_grid_query, rectangles
from discreet.ranges.table_query import plan_query, ranges
from discreet.spec.query_json import write_query
from discreet.spec.statistics import release_spec

SETTING = TableSpec(
    schema={
        "age": integer(lower=0, upper=120),
        "pay": real(lower=0, upper=1024, granularity=0.25),
        "place": category(["a", "b", "c"]),
        "day": date(lower=dt.date(2025, 1, 1), upper=dt.date(2026, 12, 31)),
        "well": boolean(),
    },
    privacy_unit="who",
    limits=ContributionLimits(max_rows_per_unit=4),
)
OLD = (col("age") >= 65) & ~col("well")
QUERIES = [
    queries.count(),
    queries.count(where=OLD, name="Old"),
    queries.count_units(by="place").limit_contributions(max_groups_per_unit=1),
    queries.count_units(by={"year": col("day").year()}),
    queries.sum("pay", by=["place", "well"]),
    queries.mean(col("pay") / 4, where=col("day") < dt.date(2026, 6, 1)),
    queries.variance("age"),
    queries.covariance("age", 2 * col("pay")),
    queries.mean("age", sampling=True),
    queries.std("age", by="well"),
    queries.correlation("age", col("pay") / 2),
    queries.ratio("pay", "age", expected_ratio=Fraction(1, 3), sampling=True),
    queries.weighted_mean("pay", "age", by="place"),
    queries.share(by=["place", "well"]),
    queries.share(by="place", value="pay"),
    queries.compare("pay", by="place", to="b", sampling=True),
    queries.compare("pay", by=["place", "well"], to=("b", True)),
    queries.count_distinct("place", at_least=10, by="well"),
    queries.minimum("age", bins=10),
    queries.maximum("age", method="exponential"),
    queries.median("age", bins=10, method="tree"),
    queries.quantiles("pay", [Fraction(1, 3), 0.5], by="well"),
    queries.histogram("age", edges=[18, 65]),
    queries.histogram("place"),
    queries.count(by="place", keys=keys(["a", "b"], include_other=True)),
    queries.count(by=["place", "well"], keys=[("a", True)]),
]


def sent(query):
    return json.loads(json.dumps(write_query(query)))


def told(made):
    """All that noise and reading follow from."""
    return [
        (q.query.title, q.query.text, q.keys, q.names, [(m.part, m.move, m.mechanism) for m in ms])
        for q in made.questions
        for ms in [q.measurements]
    ], list(made.passes)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text)
def test_the_same_question_arrives(query):
    back = release_spec([{**sent(query), "epsilon": 0.3}], setting=SETTING)
    local = plan_release([query], setting=SETTING, budget=budget(epsilon=0.3))
    assert repr(told(back.design())) == repr(told(local))


@pytest.mark.parametrize(
    "amount",
    [{"epsilon": 1}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}],
    ids=["pure", "concentrated", "approximate"],
)
@pytest.mark.parametrize("weights", [None, [1, 2, 3]])
def test_questions_that_share_a_budget(amount, weights):
    several = [QUERIES[0], QUERIES[2], QUERIES[5]]
    shares = zip(several, weights or [1, 1, 1], strict=True)
    words = [{**sent(one), **amount, "weight": weight} for one, weight in shares]
    back = release_spec(words, setting=SETTING)
    local = plan_release(several, setting=SETTING, budget=budget(**amount), weights=weights)
    assert repr(told(back.plan())) == repr(told(local))
    assert back.order() == [0, 1, 2]


def test_ranges_and_rectangles():
    one = ranges(
        "pay",
        edges=[Fraction(1, 2), 100],
        where=OLD,
        name="Pay",
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    two = ranges("day", workload=[("2025-01-01", "2025-12-31")])
    three = rectangles(["age", "place"], bins={"age": 10}, workload="marginals")
    back = release_spec(
        [{**sent(query), "rho": 0.1} for query in (one, two, three)], setting=SETTING
    )
    amount = budget(rho=0.1)
    local = [plan_query(query, setting=SETTING, budget=amount) for query in (one, two)]
    local.append(plan_grid_query(three, setting=SETTING, budget=amount))
    for found, expected in zip(back.plan().ranges, local, strict=True):
        assert found.query.title == expected.query.title
        assert found.counted == expected.counted
        assert found.ranked.best.describe() == expected.ranked.best.describe()
        assert found.guarantee.event == expected.guarantee.event


def test_a_workload_of_another_kind_stays_here():
    with pytest.raises(Unsupported, match="workload"):
        write_query(ranges("age", workload=workload.prefixes()))


def test_only_equal_amounts_are_shared():
    words = {"kind": "count", "weight": 1}
    given = [{**words, "epsilon": 1}, {**words, "epsilon": 1}, {**words, "epsilon": 2}]
    assert release_spec(given, setting=SETTING).plan().guarantee.epsilon(0) == 3


@pytest.mark.parametrize(
    "statistic",
    [
        5,
        {"kind": "count", "epsilon": 1, "weight": 0},
        {"kind": "count", "epsilon": 1, "weight": "much"},
        {"kind": "count", "within": 5, "weight": 1},
        {"kind": "ranges", "of": "age", "epsilon": 1, "weight": 1},
        {"kind": "sum", "of": {"expression": ["col", "age"], "more": 1}, "epsilon": 1},
        {"kind": "sum", "of": {"expression": 5}, "epsilon": 1},
        {"kind": "count", "where": {"expression": ["col"]}, "epsilon": 1},
        {"kind": "count", "by": {"column": "x", "expression": []}, "epsilon": 1},
        {"kind": "count", "by": "place", "keys": {"file": "/etc/passwd"}, "epsilon": 1},
        {"kind": "count", "epsilon": {"number": "1e9"}},
    ],
)
def test_what_makes_no_sense_is_refused(statistic):
    with pytest.raises(InvalidArgument):
        release_spec([statistic], setting=SETTING).plan()
