"""Ranges of a table: cells, contributions and counts from declarations; charged before reading."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import replace
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
from discreet.query._release_plan import ReleasePlan
from discreet.query.budget import budget
from discreet.ranges import workload
from discreet.ranges.domain import BinnedDomain, DateDomain, IntegerDomain, OrdinalDomain
from discreet.ranges.grid.table_query import plan_grid_query, rectangles
from discreet.ranges.table_query import ROWS, cells_of, plan_query, ranges
from discreet.tables._execute import execute
from discreet.tables.range_release import ChargedGridRelease, ChargedRangeRelease

DAYS = dt.date(2024, 2, 27), dt.date(2024, 3, 2)
COLUMNS = {
    "day": discreet.date(lower=DAYS[0], upper=DAYS[1]),
    "hour": discreet.date(lower=DAYS[0], upper=DAYS[0], step="hour"),
    "age": discreet.integer(lower=-2, upper=9),
    "pay": discreet.real(lower=0, upper=10, granularity=0.25),
    "grade": discreet.category(["fail", "pass", "good"]),
    "well": discreet.boolean(),
    "note": discreet.text(),
}
MANY = 400


def frame():
    random = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "who": random.integers(0, 60, MANY),
            "day": [DAYS[0] + dt.timedelta(days=int(d)) for d in random.integers(0, 5, MANY)],
            "age": random.integers(-4, 12, MANY),
            "pay": random.uniform(-1, 12, MANY),
            "grade": random.choice(["fail", "pass", "good", "lost"], MANY),
            "well": random.integers(0, 2, MANY) == 1,
            "hour": [dt.datetime(2024, 2, 27, 5, tzinfo=dt.UTC)] * MANY,
            "note": ["seen"] * MANY,
        }
    )


@pytest.fixture
def account(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        yield ledger.account("survey", limit=discreet.pure_dp(10**6))


@pytest.fixture
def table(account):
    return discreet.table(frame(), columns=COLUMNS, account=account)


def exact(answer, counts):
    """At an epsilon of 200 the noise is zero."""
    assert answer.cells == pytest.approx(counts, abs=1e-6)


def test_every_kind_of_column_is_counted_cell_by_cell(table):
    rows = frame()
    whole = table.ranges("age", epsilon=200)
    ages = np.clip(rows["age"].to_numpy(), -2, 9)
    exact(whole, [(ages == age).sum() for age in range(-2, 10)])
    assert whole.answer(0, 3) == pytest.approx(((ages >= 0) & (ages <= 3)).sum())
    days = table.ranges("day", workload="points", epsilon=200)
    exact(days, [(rows["day"] == DAYS[0] + dt.timedelta(days=d)).sum() for d in range(5)])
    assert days.answer("2024-02-29", "2024-02-29") == pytest.approx(
        (rows["day"] == dt.date(2024, 2, 29)).sum()
    )
    grades = table.ranges("grade", epsilon=200)
    found = Counter(rows["grade"])
    exact(grades, [found[grade] for grade in ("fail", "pass", "good", "lost")])
    assert grades.answer("pass", "(other)") == pytest.approx(MANY - found["fail"])


@pytest.mark.parametrize("bins", [{"bins": 7}, {"bins": 20}, {"edges": [2, 2.1, 7.5]}])
def test_real_numbers_are_cut(table, bins):
    """Clipped, rounded to the grid, and counted between the edges that the domain states."""
    made = table.ranges("pay", **bins, epsilon=200)
    pay = np.floor(np.clip(frame()["pay"].to_numpy(), 0, 10) * 4 + 0.5) / 4
    edges = np.array(made.domain.edges)
    assert edges[0] == 0
    assert edges[-1] >= 10
    assert made.total == pytest.approx(MANY)
    exact(made, np.histogram(pay, edges)[0])


def test_conditions_expressions_and_pairs(table):
    rows = frame()
    made = table.ranges(
        col("day").day(), where=col("well"), workload=[(27, 29), (1, 2)], epsilon=200
    )
    assert made.query_text == "ranges of day.day() where well"
    days = rows.filter(pl.col("well"))["day"].dt.day()
    assert made.answer(27, 29) == pytest.approx((days >= 27).sum())


@pytest.mark.parametrize(
    ("asked", "domain"),
    [
        ({"value": "age"}, IntegerDomain(lower=-2, upper=9)),
        ({"value": "day"}, DateDomain(lower=DAYS[0], upper=DAYS[1])),
        ({"value": "grade"}, OrdinalDomain(labels=("fail", "pass", "good", "(other)"))),
        ({"value": "age", "edges": [-2, 0, 9]}, BinnedDomain(edges=(-2.0, 0.0, 9.0))),
        ({"value": "age", "edges": [5]}, BinnedDomain(edges=(-2.0, 5.0, 9.0))),
        (
            {"value": "age", "bins": 100},
            BinnedDomain(edges=tuple(map(float, [*range(-2, 10), 10]))),
        ),
        ({"value": "pay", "bins": 4}, BinnedDomain(edges=(0.0, 2.75, 5.5, 8.25, 10.0))),
    ],
)
def test_domains_follow_from_declarations(asked, domain):
    assert cells_of(ranges(asked.pop("value"), **asked), COLUMNS)[1] == domain


def test_hours_are_named():
    domain = cells_of(ranges("hour"), COLUMNS)[1]
    assert domain == OrdinalDomain(labels=("2024-02-27 00:00",))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"value": "pay"}, "bins="),
        ({"value": "well"}, "boolean"),
        ({"value": "note"}, "text with unknown values"),
        ({"value": "day", "bins": 3}, "cut numbers"),
        ({"value": "age", "bins": 3, "edges": [1]}, "not both"),
        ({"value": "age", "edges": [20]}, "declared bounds"),
        ({"value": "age", "edges": [-2, 9]}, "at least once"),
        ({"value": "age", "workload": "everything"}, "all, points"),
        ({"value": "age", "workload": [3]}, "pairs"),
        ({"value": "age", "workload": [(0, 70)]}, "declared domain"),
        ({"value": "age", "where": "well"}, "condition"),
        ({"value": "age", "epsilon": 0}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_spent(table, account, asked, words):
    with pytest.raises(InvalidArgument, match=words):
        table.ranges(**{"epsilon": 1, **asked})
    assert account.remaining == 10**6


def test_too_many_cells_are_refused():
    huge = {"n": discreet.integer(lower=0, upper=2**40)}
    with pytest.raises(InvalidArgument, match="bins="):
        cells_of(ranges("n"), huge)
    with pytest.raises(InvalidArgument, match="at most 10"):
        cells_of(ranges("n", bins=2**30), huge)
    assert cells_of(ranges("n", bins=2**10), huge)[1].size == 1024 - (2**40 + 1 < 2**40)


LIMITS = (
    {"max_rows_per_unit": 3},
    {"max_groups_per_unit": 2, "max_rows_per_unit_per_group": 2},
    {"max_rows_per_unit": 3, "max_rows_per_unit_per_group": 1},
)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_no_unit_moves_the_measurements_further_than_stated(limits, relation):
    """Take each unit away, or put another's rows in its place, and look at every structure."""
    cells = {"day": discreet.integer(lower=0, upper=3)}
    setting = TableSpec(
        schema=cells, privacy_unit="who", limits=ContributionLimits(**limits), relation=relation
    )
    random = np.random.default_rng(3)
    who = np.repeat(np.arange(6), 5)
    day = random.integers(0, 4, who.size)
    day[:5], day[5:10] = [0, 0, 0, 1, 1], 3  # as far as limits allow: in few cells, in one
    found = plan_query(ranges("day"), setting=setting, budget=budget(epsilon=1))

    def counts(w, d):
        source = discreet.table(pl.DataFrame({"who": w, "day": d}), columns=cells)._source
        return collect(found.counted, source=source, key=1).columns[ROWS]

    whole = counts(who, day)
    others = [counts(who[who != unit], day[who != unit]) for unit in range(6)]
    if relation is NeighboringRelation.REPLACE_ONE:
        others = [
            counts(who, np.where(who == unit, np.tile([a, a, a, b, b], 6), day))
            for unit in range(6)
            for a in range(4)
            for b in range(4)
        ]
    reached = 0
    for candidate in found.ranked.candidates:
        strategy = candidate.design.strategy
        moves = strategy.moves(candidate.design.contribution, relation)
        for other in others:
            pairs = zip(strategy.measure(whole), strategy.measure(other), moves, strict=True)
            for a, b, move in pairs:
                assert np.abs(a - b).sum() <= move.l1
                assert np.square(a - b).sum() <= move.l2_squared
                reached += np.abs(a - b).sum() == move.l1
    assert reached  # some unit goes as far as is stated


def test_the_engine_keeps_to_the_limits_cell_by_cell():
    rows = pl.DataFrame({"who": [1] * 9 + [2], "day": [0] * 6 + [1] * 3 + [3]})
    cells = {"day": discreet.integer(lower=0, upper=3)}
    limits = ContributionLimits(max_rows_per_unit=3, max_rows_per_unit_per_group=2)
    setting = TableSpec(schema=cells, privacy_unit="who", limits=limits)
    found = plan_query(ranges("day"), setting=setting, budget=budget(epsilon=1))
    contribution = found.ranked.best.contribution
    assert (contribution.rows, contribution.per_cell) == (3, 2)
    source = discreet.table(rows, columns=cells)._source
    counts = collect(found.counted, source=source, key=1).columns[ROWS]
    assert counts.max() <= 2
    assert counts.sum() == 4


def test_the_guarantee_is_the_budget_and_is_charged_before_reading(table, account, monkeypatch):
    def fail(*_, **__):
        raise OSError("the disk is gone")

    before = account.remaining
    made = table.ranges("age", epsilon=Fraction(1, 2))
    assert made.guarantee.epsilon(0) == pytest.approx(0.5, rel=1e-9)
    assert made.guarantee.epsilon(0) <= 0.5 * (1 + 1e-12)
    assert before - account.remaining == Fraction(1, 2)
    assert made.receipt.guarantee == made.guarantee
    monkeypatch.setattr("discreet.data.execute.tabulate", fail)
    with pytest.raises(OSError, match="disk"):
        table.ranges("age", epsilon=Fraction(1, 2))
    assert before - account.remaining == 1


def test_a_short_budget_reads_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr("discreet.data.execute.tabulate", fail)
    with discreet.Ledger(f"sqlite:///{tmp_path}/small.db") as ledger:
        short = ledger.account("small", limit=discreet.pure_dp(1))
        table = discreet.table(frame(), columns=COLUMNS, account=short)
        with pytest.raises(BudgetExceeded):
            table.ranges("age", epsilon=2)


def test_questions_and_ranges_are_reserved_together(table, account):
    asked = discreet.query.count()
    work = replace(
        table._design([asked], None, epsilon=1),
        ranges=(plan_query(ranges("age"), setting=table.spec, budget=budget(epsilon=2)),),
    )
    before = account.remaining
    (count,), (ages,), _ = execute(table, work, label="both", rng=discreet.system_rng())
    assert before - account.remaining == 3
    assert count.receipt == ages.receipt
    assert count.receipt.label == "both"
    # A plan for other limits, or under the other relation, is not this table's.
    other = TableSpec(schema=COLUMNS, relation=NeighboringRelation.REPLACE_ONE)
    foreign = plan_query(ranges("age"), setting=other, budget=budget(epsilon=1))
    with pytest.raises(InvalidArgument, match="relation"):
        execute(table, ReleasePlan(ranges=(foreign,)), rng=discreet.system_rng())
    with pytest.raises(InvalidArgument, match="at least one"):
        ReleasePlan()


def test_seeds_are_refused(table):
    found = plan_query(ranges("age"), setting=table.spec, budget=budget(epsilon=1))
    with pytest.raises(NotCertified, match="private"):
        execute(table, ReleasePlan(ranges=(found,)), rng=seeded_rng(1))


def test_the_json_stands_alone(table):
    made = table.ranges("day", epsilon=1)
    text = made.to_json()
    for reader in (ChargedRangeRelease, discreet.RangeRelease):
        again = reader.from_json(text)
        assert again.answer("2024-02-28", None) == made.answer("2024-02-28", None)
        assert again.answer_interval(None, "2024-02-28") == made.answer_interval(None, "2024-02-28")
    again = ChargedRangeRelease.from_json(text)
    assert again.receipt == made.receipt
    assert again.to_json() == text
    assert str(again) == str(made)
    bare = json.loads(text)
    del bare["release"]
    with pytest.raises(InvalidArgument, match="without a receipt"):
        ChargedRangeRelease.from_json(json.dumps(bare))


def test_plans_read_nothing_and_need_no_account():
    gone = discreet.table(frame(), columns=COLUMNS, privacy_unit="who", max_rows_per_unit=4)
    plan = gone.plan_ranges("day", workload="prefixes", epsilon=1, expected_rows=1000)
    assert plan.best.contribution.rows == 4
    assert "of all rows" in str(plan)
    one = discreet.table(frame(), columns=COLUMNS).plan_ranges(
        "day", workload="prefixes", epsilon=1
    )
    assert plan.candidates[0].rmse > 2 * one.candidates[0].rmse


def test_the_number_of_rows_is_not_public_in_a_table():
    """Under REPLACE_ONE it may be, but conditions change it: it only scales what is shown."""
    table = discreet.table(frame(), columns=COLUMNS, relation=NeighboringRelation.REPLACE_ONE)
    with_rows = table.plan_ranges("age", epsilon=1, expected_rows=MANY)
    without = table.plan_ranges("age", epsilon=1)
    assert with_rows.candidates[0].mean == without.candidates[0].mean
    assert with_rows.best.strategy.total is None


def test_plans_from_the_top():
    by_column = discreet.plan_ranges(discreet.integer(lower=1, upper=64), "short", epsilon=1)
    by_size = discreet.plan_ranges(64, workload.short(), epsilon=1)
    assert by_column.candidates[0].mean == by_size.candidates[0].mean
    assert by_column.domain == IntegerDomain(lower=1, upper=64)
    three = discreet.plan_ranges(64, "short", epsilon=1, max_rows_per_unit=3)
    assert three.candidates[0].rmse > 2.5 * by_size.candidates[0].rmse
    aware = discreet.plan_ranges(64, "short", epsilon=1, data_aware=True)
    assert len(aware.aware) > 0 == len(by_size.aware)
    with pytest.raises(InvalidArgument, match="boolean"):
        discreet.plan_ranges(discreet.boolean(), epsilon=1)
    with pytest.raises(InvalidArgument, match="bins="):
        discreet.plan_ranges(discreet.real(lower=0, upper=1, granularity=0.5), epsilon=1)


def test_grids_of_two_columns(table):
    rows = frame()
    made = table.ranges(["day", "grade"], where=col("well"), epsilon=400)
    well = rows.filter(pl.col("well"))
    found = Counter(zip(well["day"], well["grade"].replace("lost", "(other)"), strict=True))
    days = [DAYS[0] + dt.timedelta(days=d) for d in range(5)]
    grades = ("fail", "pass", "good", "(other)")
    exact(made, np.array([[found[day, grade] for grade in grades] for day in days]))
    early = sum(n for (day, grade), n in found.items() if day <= days[1] and grade == "fail")
    assert made.answer((None, days[1]), ("fail", "fail")) == pytest.approx(early)
    assert made.query_text == "ranges of day by grade where well"
    text = made.to_json()
    assert ChargedGridRelease.from_json(text).to_json() == text
    assert discreet.GridRelease.from_json(text).total == made.total
    with pytest.raises(InvalidArgument, match="GridRelease"):
        ChargedGridRelease.from_json(json.dumps({**json.loads(text), "release": {}}))


def test_grids_are_charged_and_planned(table, account):
    before = account.remaining
    plan = table.plan_ranges(
        ["age", "pay"], bins={"pay": 8}, workload="marginals", epsilon=1, expected_rows=9
    )
    assert plan.grid.shape == (12, 7)
    assert before == account.remaining
    made = table.ranges(["age", "pay"], bins={"pay": 8}, workload="marginals", epsilon=1)
    assert made.guarantee.epsilon(0) <= 1 + 1e-12
    assert before - account.remaining == 1
    assert made.receipt.guarantee == made.guarantee


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"value": ["age"]}, "two different"),
        ({"value": []}, "two different"),
        ({"value": ["age", "age"]}, "two different"),
        ({"value": ["age", "pay"]}, "bins="),
        ({"value": ["age", "day"], "bins": {"pay": 3}}, "the columns are"),
        ({"value": ["age", "day"], "workload": "prefixes"}, "all, points, marginals"),
        ({"value": ["age", "well"]}, "boolean"),
    ],
)
def test_grids_that_make_no_sense_are_refused(table, account, asked, words):
    with pytest.raises(InvalidArgument, match=words):
        table.ranges(**asked, epsilon=1)
    assert account.remaining == 10**6


@pytest.mark.parametrize("limits", LIMITS)
def test_no_unit_moves_the_boxes_further_than_stated(limits):
    cells = {"a": discreet.integer(lower=0, upper=2), "b": discreet.integer(lower=0, upper=1)}
    setting = TableSpec(schema=cells, privacy_unit="who", limits=ContributionLimits(**limits))
    found = plan_grid_query(rectangles(["a", "b"]), setting=setting, budget=budget(epsilon=1))
    random = np.random.default_rng(3)
    who = np.repeat(np.arange(6), 5)
    a, b = random.integers(0, 3, who.size), random.integers(0, 2, who.size)
    a[:5], b[:5] = [0, 0, 0, 2, 2], [1, 1, 1, 0, 0]

    def counts(kept):
        rows = pl.DataFrame({"who": who[kept], "a": a[kept], "b": b[kept]})
        source = discreet.table(rows, columns=cells)._source
        return collect(found.counted, source=source, key=1).columns[ROWS].reshape(3, 2)

    whole, reached = counts(who >= 0), 0
    for candidate in found.ranked.candidates:
        strategy = candidate.design.strategy
        moves = strategy.moves(candidate.design.contribution, NeighboringRelation.ADD_REMOVE)
        for unit in range(6):
            other = counts(who != unit)
            pairs = zip(strategy.measure(whole), strategy.measure(other), moves, strict=True)
            for x, y, move in pairs:
                assert np.abs(x - y).sum() <= move.l1
                assert np.square(x - y).sum() <= move.l2_squared
                reached += np.abs(x - y).sum() == move.l1
    assert reached  # some unit goes as far as is stated


# ── limits of its own, and stated accuracies ───────────────────────────────────────────────────


@pytest.fixture
def visits(account):
    """Nine rows of one, three of each of the others."""
    rows = pl.DataFrame(
        {"who": [1] * 9 + [2] * 3 + [3] * 3, "day": [0] * 6 + [1] * 3 + [2, 2, 3] * 2}
    )
    cells = {"day": discreet.integer(lower=0, upper=3)}
    return discreet.table(
        rows, columns=cells, privacy_unit="who", max_rows_per_unit=9, account=account
    )


def test_limits_of_its_own(visits, account):
    wide = visits.plan_ranges("day", epsilon=1)
    once = visits.plan_ranges("day", epsilon=1, max_rows_per_unit=1)
    assert wide.best.contribution.rows == 9
    assert once.best.contribution.rows == 1
    assert once.candidates[0].rmse < wide.candidates[0].rmse / 8
    before = account.remaining
    made = visits.ranges("day", epsilon=200, max_rows_per_unit=2)
    assert before - account.remaining == 200
    assert made.total == pytest.approx(6, abs=1e-6)
    assert "at most 2 rows are used of each" in made.privacy_statement
    each = visits.ranges("day", epsilon=2000, max_rows_per_unit_per_group=1)
    assert each.cells == pytest.approx([1, 1, 2, 2], abs=1e-6)
    assert "at most 9 rows are used of each" in each.privacy_statement  # the table's still holds
    grid = visits.plan_ranges(["day", col("day") + 1], epsilon=1, max_rows_per_unit=1)
    assert grid.best.contribution.rows == 1
    with pytest.raises(InvalidArgument, match="max_rows_per_unit"):
        visits.ranges("day", epsilon=1, max_rows_per_unit=0)


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
@pytest.mark.parametrize("workload", ["all", "points", [(0, 3), (5, 5)]], ids=str)
def test_a_stated_accuracy_is_met_and_not_exceeded_by_much(table, currency, workload):
    asked = {"workload": workload}
    amount = table.budget_for_ranges("age", within=20, measure=currency, **asked)
    assert list(map(type, amount.values())) == [float]
    best = table.plan_ranges("age", **asked, **amount).candidates[0]
    assert 0.98 * 20 < best.width(confidence=0.95) <= 20
    less = table.plan_ranges("age", **asked, **{currency: amount[currency] * 0.98})
    assert less.candidates[0].width(confidence=0.95) > 20


def test_the_width_is_that_of_the_interval(table):
    plan = table.plan_ranges("age", epsilon=1)
    made = plan.best.release(np.zeros(12, dtype=np.int64), rng=seeded_rng(4))
    widths = []
    for a in range(12):
        for b in range(a, 12):
            low, high = made.answer_interval(a - 2, b - 2)
            widths.append((high - low) / 2)
            assert plan.best.width(a, b, confidence=0.95) == pytest.approx(widths[-1], rel=1e-6)
    assert plan.candidates[0].width(confidence=0.95) == pytest.approx(max(widths), rel=0.02)


def test_accuracies_that_make_no_sense(table):
    for words, given in {
        "within": {"within": 0},
        "measure": {"within": 5, "measure": "mu"},
        "delta": {"within": 5, "measure": "rho", "delta": 1e-6},
        "confidence": {"within": 5, "confidence": 1},
    }.items():
        with pytest.raises(InvalidArgument, match=words):
            table.budget_for_ranges("age", **given)


def test_a_stated_accuracy_with_limits_of_its_own(visits):
    often = visits.budget_for_ranges("day", within=50)
    once = visits.budget_for_ranges("day", within=50, max_rows_per_unit=1)
    assert 8 < often["epsilon"] / once["epsilon"] < 10
