"""Quantiles on huge domains: the true ones without noise, ranks within the width, one charge."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import col
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.program import ContributionLimits
from discreet.noise.random_source import seeded_rng
from discreet.query._measure import TableSpec
from discreet.query.budget import budget
from discreet.ranges._strategy_design import noise_distribution
from discreet.ranges.quantile_search import plan_quantile_search, quantile_search
from discreet.ranges.table_query import ROWS
from discreet.tables._large_domain_quantiles import release_large_domain_quantiles

LEVELS = [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]
FIRST = dt.date(2000, 1, 1)
COLUMNS = {
    "huge": discreet.integer(lower=-(2**61), upper=2**61 - 1),
    "pay": discreet.real(lower=0, upper=1e9, granularity=2.0**-20),
    "day": discreet.date(lower=FIRST, upper=dt.date(2040, 1, 1)),
    "well": discreet.boolean(),
    "place": discreet.category(["here", "there"]),
    "note": discreet.text(),
    "one": discreet.integer(lower=3, upper=3),
}
MANY = 501


def frame():
    random = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "who": np.arange(MANY) % 100,
            "huge": random.integers(-(2**61), 2**61, MANY),
            "pay": np.floor(random.lognormal(10, 3, MANY) * 2**20) / 2**20,
            "day": [FIRST + dt.timedelta(days=int(d)) for d in random.integers(0, 14_000, MANY)],
            "well": random.integers(0, 2, MANY) == 1,
            "place": ["here"] * MANY,
            "note": ["seen"] * MANY,
            "one": [3] * MANY,
        }
    )


@pytest.fixture
def account(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        yield ledger.account("survey", limit=discreet.pure_dp(10**6))


@pytest.fixture
def table(account):
    return discreet.table(frame(), columns=COLUMNS, account=account)


def true(values, level):
    """The smallest value that a share of the rows does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-level.numerator * len(ordered) // level.denominator) - 1)]


@pytest.mark.parametrize("column", ["huge", "pay", "day"])
def test_without_noise_they_are_the_true_ones(table, column):
    made = table.large_domain_quantiles(column, LEVELS, epsilon=10_000)
    values = np.minimum(frame()[column], 1e9) if column == "pay" else frame()[column]
    assert list(made.values) == [true(values, level) for level in LEVELS]
    assert made.at(0.5) == made.values[1]
    some = table.large_domain_quantiles(column, [0.5], where=col("well"), epsilon=10_000)
    assert some.values == (true(frame().filter(pl.col("well"))[column], LEVELS[1]),)


def test_charged_once_and_before_reading(table, account, monkeypatch):
    def fail(*_, **__):
        raise OSError("the disk is gone")

    before = account.remaining
    made = table.large_domain_quantiles("huge", LEVELS, epsilon=Fraction(1, 2))
    assert before - account.remaining == Fraction(1, 2)
    assert made.guarantee.epsilon(0) == pytest.approx(0.5, rel=1e-9)
    assert made.receipt.guarantee == made.guarantee
    monkeypatch.setattr("discreet.data.execute.tabulate", fail)
    with pytest.raises(OSError, match="disk"):
        table.large_domain_quantiles("huge", LEVELS, epsilon=1)
    assert before - account.remaining == Fraction(3, 2)
    with pytest.raises(BudgetExceeded):
        table.large_domain_quantiles("huge", LEVELS, epsilon=10**7)


def test_what_is_told(table):
    made = table.large_domain_quantiles("day", LEVELS, epsilon=1)
    content = json.loads(made.to_json())
    assert [one["level"] for one in content["quantiles"]] == ["1/10", "1/2", "9/10"]
    assert dt.date.fromisoformat(content["quantiles"][0]["value"]) == made.values[0]
    assert made.query_text == "quantiles 0.1, 0.5, 0.9 of day"
    assert "ranks within" in str(made)
    with pytest.raises(InvalidArgument, match=r"0\.1, 0\.5, 0\.9"):
        made.at(0.2)


def design(
    levels=(Fraction(1, 2),),
    column="huge",
    *,
    unit=None,
    relation=NeighboringRelation.ADD_REMOVE,
    **more,
):
    limits = more.pop("limits", ContributionLimits())
    setting = TableSpec(schema=COLUMNS, privacy_unit=unit, limits=limits, relation=relation)
    return plan_quantile_search(
        quantile_search(column, levels), setting=setting, budget=budget(**more)
    )


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}])
def test_ranks_are_within_the_width(cost):
    found = design([Fraction(1, 4), Fraction(1, 2)], **cost)
    codes = np.sort(np.random.default_rng(3).integers(-(2**61), 2**61, 20_000))
    width = found.rank_width()
    worst = 0.0
    for seed in range(60):
        values = found.walk(
            lambda edges: np.bincount(
                np.searchsorted(np.array(edges), codes, side="right"), minlength=len(edges) + 1
            ),
            rng=seeded_rng(seed),
        )
        for q, value in zip((0.25, 0.5), values, strict=True):
            below, upto = np.searchsorted(codes, value), np.searchsorted(codes, value, side="right")
            off = max(below - q * len(codes), q * len(codes) - upto)
            worst = max(worst, off)
            assert off <= width
    assert worst > width / 30  # the width is no fantasy: a thirtieth of it would not do


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize(
    "limits",
    [
        ContributionLimits(max_rows_per_unit=3),
        ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=2),
    ],
    ids=["rows", "cells"],
)
def test_no_unit_moves_a_level_further_than_stated(limits, relation):
    """Whatever the edges are, take each unit away, or put its rows elsewhere."""
    found = design(column="day", unit="who", limits=limits, relation=relation, epsilon=1)
    # At epsilon 1, a share 1 / height of which buys noise of scale height times the sensitivity.
    most = noise_distribution(found.mechanisms[0]).scale / len(found.widths)
    random = np.random.default_rng(2)
    who = np.repeat(np.arange(5), 5)
    days = random.integers(0, 14_000, who.size)
    days[:5] = [3, 3, 3, 3_500, 3_500]

    def counts(edges, kept, placed):
        day = [FIRST + dt.timedelta(days=int(d)) for d in placed[kept]]
        rows = pl.DataFrame({"who": who[kept], "day": day})
        source = discreet.table(rows, columns={"day": COLUMNS["day"]})._source
        return collect(found.counted(edges), source=source, key=1).columns[ROWS]

    first = found.bound.lower
    reached = 0
    for cuts in ([2_000, 5_000, 9_000], *random.choice(14_000, (2, 6), replace=False)):
        edges = tuple(sorted(first + int(cut) for cut in cuts))
        whole = counts(edges, who >= 0, days)
        for unit in range(5):
            if relation is NeighboringRelation.ADD_REMOVE:
                other = counts(edges, who != unit, days)
            else:
                elsewhere = np.where(who == unit, (days + 7_000) % 14_000, days)
                other = counts(edges, who >= 0, elsewhere)
            moved = int(np.abs(whole - other).sum())
            assert moved <= most
            reached += moved == most
    assert reached


def test_the_way_down():
    found = design(epsilon=1)
    assert found.fan in (8, 16)
    assert found.widths[-1] == 1
    assert found.fan ** len(found.widths) >= 2**62 > found.fan ** (len(found.widths) - 1)
    assert found.guarantee.epsilon(0) == pytest.approx(1, rel=1e-9)
    assert found.guarantee.epsilon(0) <= 1
    # Edges are those of the blocks' children; the ends of the domain are none.
    assert found.edges(((0, 10), (4, 10)), 4) == (0, 4, 8, 10)
    tiny = design(column="day", epsilon=1)
    day = tiny.bound.lower
    assert tiny.edges(((day, tiny.bound.upper + 1),), 10**4) == (day + 10**4,)


def test_more_is_better():
    assert design(epsilon=2).rank_width() < design(epsilon=1).rank_width()
    assert design(epsilon=1).rank_width(confidence=0.99) > design(epsilon=1).rank_width()
    assert design(column="day", epsilon=1).rank_width() < design(epsilon=1).rank_width() / 2
    one = design(unit="who", limits=ContributionLimits(max_rows_per_unit=1), epsilon=1).rank_width()
    four = design(
        unit="who", limits=ContributionLimits(max_rows_per_unit=4), epsilon=1
    ).rank_width()
    assert four == pytest.approx(4 * one, rel=0.02)


def test_limits_of_its_own(account):
    table = discreet.table(
        frame(), columns=COLUMNS, privacy_unit="who", max_rows_per_unit=6, account=account
    )
    made = table.large_domain_quantiles("huge", [0.5], max_rows_per_unit=1, epsilon=1)
    assert "at most 1 row is used" in made.privacy_statement
    wide = table.plan_large_domain_quantiles("huge", [0.5], epsilon=1).rank_width()
    assert made.rank_width < wide / 5


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"value": "well"}, "numbers and dates"),
        ({"value": "place"}, "numbers and dates"),
        ({"value": "note"}, "text"),
        ({"value": "one"}, "single"),
        ({"q": []}, "q must increase"),
        ({"q": [0.5, 0.2]}, "increase"),
        ({"q": [1]}, "levels"),
        ({"epsilon": 0}, "epsilon"),
        ({"where": "well"}, "condition"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_spent(table, account, asked, words):
    with pytest.raises(InvalidArgument, match=words):
        table.large_domain_quantiles(**{"value": "huge", "q": [0.5], "epsilon": 1, **asked})
    assert account.remaining == 10**6


def test_seeds_are_refused(table):
    found = table.plan_large_domain_quantiles("huge", [0.5], epsilon=1)
    with pytest.raises(NotCertified, match="private"):
        release_large_domain_quantiles(table, found, rng=seeded_rng(1))
