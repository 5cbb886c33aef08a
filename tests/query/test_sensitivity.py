"""Every part of every question, under both relations, by brute force over all neighbors."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import query as queries
from discreet.audit.sensitivity import SensitivityError, check_sensitivity
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer
from discreet.data.source import open_source
from discreet.query import _measure as parts
from discreet.query._measure import coarsen_sensitivity, measure
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import BudgetChange, QueryBudget

SCHEMA = {"x": integer(lower=-1, upper=3), "g": category(["a", "b"], include_other=False)}
LIMITS = {
    "rows": ContributionLimits(max_rows_per_unit=2),
    "rows and groups": ContributionLimits(max_rows_per_unit=3, max_groups_per_unit=1),
    "rows in a group": ContributionLimits(max_rows_per_unit_per_group=1),
    "one row": ContributionLimits(max_rows_per_unit=1),
    "three rows": ContributionLimits(max_rows_per_unit=3),
}
QUESTIONS = {
    "count": queries.count,
    "units": queries.count_units,
    "known": lambda **k: queries.count(of="x", **k),
    "sum": lambda **k: queries.sum("x", **k),
    "mean": lambda **k: queries.mean("x", **k),
    "variance": lambda **k: queries.variance("x", **k),
    "covariance": lambda **k: queries.covariance("x", col("g") == "a", **k),
    "mean in the population": lambda **k: queries.mean("x", sampling=True, **k),
    "correlation": lambda **k: queries.correlation("x", col("g") == "a", **k),
    "ratio": lambda **k: queries.ratio("x", col("g") == "a", sampling=True, **k),
    "weighted mean": lambda **k: queries.weighted_mean("x", col("x") + 1, sampling=True, **k),
    "share of a sum": lambda by: queries.share(by=by or {"all": col("x") < 9}, value=col("x") + 1),
    "compare": lambda by: queries.compare("x", by="g", to="a"),  # always grouped
    "distinct": lambda by: queries.count_distinct("x", at_least=2, by=by),
}
ROWS = [(x, g) for x in (-1, 1, 3) for g in "ab"]
# What one unit can have: up to two rows of any kind, and more rows than any limit allows.
UNITS = [
    *(unit for size in range(3) for unit in combinations_with_replacement(ROWS, size)),
    *combinations_with_replacement([(-1, "a"), (3, "a"), (3, "b")], 4),
    ((1, "a"),) * 4,
    # A row adds nothing to a sum over known values if its own is unknown.
    ((None, "a"),),
    ((3, None), (-1, "a")),
    ((None, "a"), (3, "a"), (3, "b")),
    ((None, None), (3, None), (3, "b"), (3, "a"), (None, "b")),
]
RELATIONS = [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]


def frame(data):
    """Units keep their name whoever else is there: removing one renames nobody."""
    seen = {}
    rows = []
    for unit in data:
        seen[unit] = seen.get(unit, 0) + 1
        name = UNITS.index(unit) * 10 + seen[unit]
        rows += [(name, x, g) for x, g in unit]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "x": pl.Int64, "g": pl.String}, orient="row")


@cache
def asked(kind, grouped, relation, limits):
    query = QUESTIONS[kind](by="g" if grouped else None)
    setting = TableSpec(schema=SCHEMA, privacy_unit="u", limits=LIMITS[limits], relation=relation)
    return plan_release([query], setting=setting, budget=QueryBudget(rho=1))


@cache
def exact(kind, grouped, limits, data):
    """What is measured on a data set, before noise."""
    planned = asked(kind, grouped, NeighboringRelation.ADD_REMOVE, limits)
    question = planned.questions[0]
    sums = collect(planned.passes[0], source=open_source(frame(data)), key=7).columns
    return tuple(
        tuple(measure(one.part, sums, shift=one.shift).tolist()) for one in question.measurements
    )


def slack(kind, grouped, relation, limits, part, norm):
    """Where the claim is not attained, and why."""
    if relation is NeighboringRelation.REPLACE_ONE and part == "sum" and grouped and norm == "l2":
        return "bounds of both signs: the two extremes do not meet in one group"
    if relation is NeighboringRelation.REPLACE_ONE and kind == "covariance" and grouped:
        return "the other value is that of the group"
    if kind in ("correlation", "ratio", "weighted mean"):
        return "both values belong together: not every pair of them is a row"
    if kind in ("compare", "share of a sum", "distinct"):
        return "groups differ from those of the other questions"
    return None


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("grouped", [False, True], ids=["whole", "grouped"])
@pytest.mark.parametrize("kind", QUESTIONS)
def test_sensitivities_hold_and_are_attained(kind, grouped, relation, limits):
    question = asked(kind, grouped, relation, limits).questions[0]
    for i, one in enumerate(question.measurements):
        for norm, claim in (("l1", one.move.l1), ("l2", math.sqrt(one.move.l2_squared))):
            check_sensitivity(
                lambda data, i=i: exact(kind, grouped, limits, data)[i],
                claim,
                values=UNITS,
                rows=1,
                relation=relation,
                norm=norm,
                slack=slack(kind, grouped, relation, limits, one.part.name, norm),
            )


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_other_units_do_not_matter(relation):
    question = asked("variance", True, relation, "rows").questions[0]
    for i, one in enumerate(question.measurements):
        check_sensitivity(
            lambda data, i=i: exact("variance", True, "rows", data)[i],
            one.move.l1,
            values=[UNITS[0], UNITS[1], UNITS[6], UNITS[20], *UNITS[-4:]],
            rows=3,
            relation=relation,
            slack="few values are tried",
        )


def test_a_claim_that_is_too_small_is_found():
    question = asked("sum", False, NeighboringRelation.REPLACE_ONE, "rows").questions[0]
    with pytest.raises(SensitivityError, match="too small"):
        check_sensitivity(
            lambda data: exact("sum", False, "rows", data)[0],
            question.measurements[0].move.l1 - 1,
            values=UNITS,
            rows=1,
            relation=NeighboringRelation.REPLACE_ONE,
        )


def test_rows_that_are_units_of_their_own():
    setting = TableSpec(schema=SCHEMA)
    for query, moves in (
        (queries.count(by="g"), [(1, 1)]),
        (queries.count_units(), [(1, 1)]),
        (queries.sum("x"), [(3, 9)]),
        (queries.mean("x"), [(1, 1), (4, 16)]),
        (queries.variance("x"), [(1, 1), (4, 16), (16, 256)]),
        (queries.covariance("x", col("g") == "a"), [(1, 1), (4, 16), (1, 1), (4, 16)]),
    ):
        (question,) = plan_release(
            [query], setting=setting, budget=QueryBudget(epsilon=1)
        ).questions
        assert [(m.move.l1, m.move.l2_squared) for m in question.measurements] == moves


def test_the_local_relation_has_no_table():
    setting = TableSpec(schema=SCHEMA, relation=NeighboringRelation.LOCAL)
    with pytest.raises(InvalidArgument, match="ADD_REMOVE"):
        plan_release([queries.count()], setting=setting, budget=QueryBudget(epsilon=1))


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=6),
    st.lists(st.integers(-300, 300), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_rounding_down_moves_no_further_than_claimed(values, changes, largest):
    patch = pytest.MonkeyPatch()
    patch.setattr(parts, "_LARGEST_MOVE", 1 << largest)
    many = min(len(values), len(changes))
    left = np.array(values[:many])
    change = np.array(changes[:many])
    l1, l2 = int(np.abs(change).sum()), int(np.square(change).sum())
    move, shift = coarsen_sensitivity(
        BudgetChange(l1=max(l1, 1), l2_squared=max(l2, 1)),
        entries=int(np.count_nonzero(change)) or 1,
    )
    patch.undo()
    moved = ((left + change) >> shift) - (left >> shift)
    assert np.abs(moved).sum() <= move.l1
    assert np.square(moved).sum() <= move.l2_squared
    assert shift == 0 or l1 > 1 << largest >> 1


def test_rows_in_many_blocks_of_a_group_move_no_further_than_claimed():
    """Each block that a unit is in is rounded by itself, not each group."""
    rows, groups, bins = 2**20, 2**10, 2**16
    schema = {"x": integer(lower=0, upper=bins - 1), "g": integer(lower=0, upper=groups - 1)}
    limits = ContributionLimits(max_rows_per_unit_per_group=rows)
    setting = TableSpec(schema=schema, privacy_unit="u", limits=limits)
    asked = queries.median("x", by="g", bins=bins, method="tree")
    leaves = plan_release([asked], setting=setting, budget=QueryBudget(epsilon=1)).measurements[-1]
    assert leaves.part.per_group == bins
    assert leaves.shift == 1
    # In half of the bins the unit has 15 rows, in half 17; the others have one in each.
    added = [15, 17]
    assert sum(added) * bins // 2 == rows
    moved = groups * (bins // 2) * sum(((1 + many) >> 1) - (1 >> 1) for many in added)
    assert moved <= leaves.move.l1


def test_fine_grids_are_made_coarser():
    fine = {"x": integer(lower=0, upper=2**40)}
    (question,) = plan_release(
        [queries.variance("x")], setting=TableSpec(schema=fine), budget=QueryBudget(epsilon=1)
    ).questions
    assert question.estimator.shifts[0] == 0
    assert question.estimator.shifts[2] > question.estimator.shifts[1] > 0
    assert all(m.move.l1 <= 2**31 for m in question.measurements)
