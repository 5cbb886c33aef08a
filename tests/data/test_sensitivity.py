"""One unit moves an aggregate by no more than the plan says, and the bound is attained."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data._numpy import contribution_limits as limit_numpy
from discreet.data._numpy import engine as narwhals_engine
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import category, integer, real
from discreet.data.source import open_source
from tests.data import reference, sources

TYPES = {"u": pa.int64(), "x": pa.float64(), "w": pa.int64(), "k": pa.string()}
SCHEMA = {
    "x": real(lower=-1, upper=2, granularity=0.5),
    "w": integer(lower=-3, upper=1),
    "k": category(["a", "b", "c"], include_other=True),
}
AGGREGATES = {
    "rows": count(),
    "people": units(),
    "x": total(col("x")),
    "xw": total(col("x"), col("w")),
    "gain": total(col("x") - col("w") * 3),
}
LIMITS = [
    ContributionLimits(max_rows_per_unit=1),
    ContributionLimits(max_rows_per_unit=2),
    ContributionLimits(max_rows_per_unit_per_group=2),
    ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=1),
    ContributionLimits(max_groups_per_unit=1, max_rows_per_unit=3),
    ContributionLimits(max_groups_per_unit=3, max_rows_per_unit=4, max_rows_per_unit_per_group=3),
]
PLANS = [
    compile_program(
        schema=SCHEMA, unit="u", by=by, where=where, aggregates=AGGREGATES, limits=limits
    )
    for limits in LIMITS
    for by in ({"k": col("k")}, {"k": col("k"), "w": col("w").cut([0])}, {})
    for where in (None, col("x") >= 0)
]
ROW = st.fixed_dictionaries(
    {
        "u": st.integers(1, 4),
        "x": st.one_of(
            st.none(), st.floats(-3, 3), st.sampled_from([math.inf, -math.inf, math.nan])
        ),
        "w": st.integers(-5, 3),
        "k": st.sampled_from(["a", "b", "c", "d", None]),
    }
)


def moved(plan, rows, unit, engine):
    """By how much each aggregate changes when a unit goes."""
    with_all = engine(plan, rows)
    without = engine(plan, [row for row in rows if row["u"] != unit])
    return {
        name: [int(a) - int(b) for a, b in zip(with_all[name], without[name], strict=True)]
        for name in plan.aggregates
    }


def check(plan, rows, engine):
    for unit in {row["u"] for row in rows}:
        for name, change in moved(plan, rows, unit, engine).items():
            reach = plan.reach(name)
            assert sum(c != 0 for c in change) <= reach.groups
            assert max(map(abs, change)) <= reach.linf
            assert sum(map(abs, change)) <= reach.l1
            assert sum(c * c for c in change) <= reach.l2_squared


def frame_engine(plan, rows):
    return collect(plan, source=open_source(sources.arrow(rows, TYPES)), key=11).columns


def duckdb_engine(plan, rows):
    with duckdb.connect() as connection:
        relation = connection.from_arrow(sources.arrow(rows, TYPES))
        return collect(plan, source=open_source(relation), key=11).columns


@settings(max_examples=150)
@given(rows=st.lists(ROW, min_size=1, max_size=16), plan=st.sampled_from(PLANS))
def test_no_unit_moves_more_in_frames(rows, plan):
    check(plan, rows, frame_engine)


@settings(max_examples=15)
@given(rows=st.lists(ROW, min_size=1, max_size=16), plan=st.sampled_from(PLANS))
def test_no_unit_moves_more_in_duckdb(rows, plan):
    check(plan, rows, duckdb_engine)


def everywhere(keys):
    return [{"u": 1, "x": 2.0, "w": -3, "k": k} for k in keys for _ in range(5)]


@pytest.mark.parametrize("plan", [plan for plan in PLANS if len(plan.by) < 2])
def test_the_bounds_are_attained(plan):
    """A unit at the bounds, with rows in one group or in all, moves as much as is claimed."""
    for name in plan.aggregates:
        one = moved(plan, everywhere("a"), 1, frame_engine)[name]
        all_ = moved(plan, everywhere(["a", "b", "c", None]), 1, frame_engine)[name]
        reach = plan.reach(name)
        assert max(map(abs, one)) == reach.linf
        assert sum(map(abs, all_)) == reach.l1


def test_other_units_keep_their_rows():
    """The whole contribution of every other unit is untouched, not only its size."""
    rows = [{"u": u, "x": x / 2, "w": u, "k": "abcd"[x % 4]} for u in (1, 2, 3) for x in range(9)]
    for plan in PLANS[:12]:
        whole = reference.collect(plan, rows, key=11)
        parts = [
            reference.collect(plan, [r for r in rows if r["u"] == u], key=11) for u in (1, 2, 3)
        ]
        for name, values in whole.items():
            assert values == [sum(column) for column in zip(*(p[name] for p in parts), strict=True)]


MANY = [{"u": 1, "x": 2.0, "w": -3, "k": k} for k in "abc" for _ in range(4)]


def test_a_forgotten_row_limit_is_noticed(monkeypatch):
    monkeypatch.setattr(limit_numpy, "_keep_rows", lambda _, rows, **__: rows)
    with pytest.raises(AssertionError):
        check(PLANS[0], MANY, frame_engine)


def test_a_forgotten_group_limit_is_noticed(monkeypatch):
    plan = next(p for p in PLANS if p.limits.max_groups_per_unit == 2 and p.by and p.where is None)
    monkeypatch.setattr(limit_numpy, "_keep_groups", lambda rows, **_: rows)
    with pytest.raises(AssertionError):
        check(plan, MANY, frame_engine)


def test_a_forgotten_clip_is_noticed(monkeypatch):
    monkeypatch.setattr(
        narwhals_engine, "encode", lambda s, c, kind: 100 + 0 * s.is_null().to_numpy()
    )
    plan = compile_program(
        # A column with a value for what is missing: codes beyond the bounds are left out of others.
        schema={**SCHEMA, "x": integer(lower=-1, upper=2, missing=0)},
        unit="u",
        aggregates={"x": total(col("x"))},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    with pytest.raises(AssertionError):
        check(plan, MANY, frame_engine)


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_each_row_is_kept_equally_often(limit):
    """Over all starts, each of n places is kept exactly ``limit`` times: no row is favored."""
    for n in range(limit + 1, 12):
        kept = [0] * n
        for start in range(n):
            chosen = reference.choose(range(n), limit=limit, offset=start)
            assert len(chosen) == limit
            for place in chosen:
                kept[place] += 1
        assert kept == [limit] * n


def test_starts_are_spread_evenly():
    """The start of many units, modulo small numbers: exact binomial bounds, family-wise 1e-6."""
    from scipy.stats import binom

    n, cells = 20_000, 2 + 3 + 7 + 10
    for units_of in (range(n), (f"person {i}" for i in range(n))):
        starts = [reference.start(99, "rows", unit, 0) for unit in units_of]
        for modulus in (2, 3, 7, 10):
            low, high = binom.interval(1 - 1e-6 / (2 * cells), n, 1 / modulus)
            for rest in range(modulus):
                assert low <= sum(s % modulus == rest for s in starts) <= high
            skewed = [s // 2 * 2 for s in starts]
            assert not all(
                low <= sum(s % modulus == r for s in skewed) <= high for r in range(modulus)
            ) or modulus in (3, 7)
