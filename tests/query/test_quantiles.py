"""Quantiles: the tree against dense least squares, scores against all neighbors, exact laws."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet import query as queries
from discreet.audit.sensitivity import SensitivityError, check_sensitivity
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer, real
from discreet.data.source import open_source
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query._answer import read_estimator
from discreet.query._measure import measure
from discreet.query._quantile_tree import (
    PrefixError,
    QuantileTree,
    best_shape,
    leaves_of,
    reach,
    spread,
)
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget
from discreet.query.error_forecast import forecast

SCHEMA = {"x": integer(lower=-1, upper=3), "g": category(["a", "b"], include_other=False)}
BUDGETS = [
    QueryBudget(epsilon=Fraction(1)),
    QueryBudget(rho=Fraction(1, 2)),
    QueryBudget(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
]
RELATIONS = [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]


# ── the tree ─────────────────────────────────────────────────────────────────


def dense(shape, noise):
    """Design matrix, variances, and the matrix that maps measurements to leaves."""
    rows, variances = [], []
    for level in range(shape.height):
        for node in range(shape.nodes(level)):
            row = np.zeros(shape.leaves)
            row[node * shape.block(level) : (node + 1) * shape.block(level)] = 1
            rows.append(row)
            variances.append(noise[level])
    a, v = np.array(rows), np.array(variances)
    return a, v, np.linalg.solve(a.T @ (a / v[:, None]), (a / v[:, None]).T)


@given(st.integers(1, 20), st.integers(2, 6), st.integers(0, 10**6))
def test_the_tree_is_weighted_least_squares(leaves, branching, seed):
    shape = QuantileTree(leaves=leaves, branching=branching)
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.5, 9, shape.height)
    _, v, solve = dense(shape, noise)
    sizes = [shape.nodes(level) for level in range(shape.height)]
    y = rng.integers(-20, 50, (3, sum(sizes)))
    levels = np.split(y, np.cumsum(sizes)[:-1], axis=1)
    assert np.allclose(leaves_of(shape, levels, noise), y @ solve.T)
    for target in (0.5, 0.05, 1.0):
        found = spread(shape, noise, target=target)
        for k in range(leaves):
            weights = np.where(np.arange(leaves) <= k, 1 - target, -target) @ solve
            assert found.variance[k] == pytest.approx((weights**2 * v).sum(), rel=1e-9, abs=1e-12)
            assert np.abs(weights).max() <= found.largest[k] + 1e-9


def test_the_branching_is_chosen_by_variance():
    for gaussian in (False, True):
        best = best_shape(300, gaussian=gaussian)
        for branching in (2, 4, 16):
            other = QuantileTree(leaves=300, branching=branching)
            worst = [
                spread(s, [float(s.height) ** (2 - gaussian)] * s.height, target=0.5).variance.max()
                for s in (best, other)
            ]
            assert worst[0] <= worst[1]


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(2))])
@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.5, 0.25), (0.9, -0.1, 0.02, 0.02, 0.02)])
def test_tails_hold_against_the_exact_law(law, weights):
    """The exact law of a weighted sum, from a convolution on a lattice that holds all weights."""
    unit = 0.01
    steps = [round(abs(w) / unit) for w in weights]
    cut = 120
    total = np.array([1.0])
    for step in steps:  # laws are symmetric: signs do not matter
        one = np.zeros(2 * cut * step + 1)
        one[::step] = law.pmf(np.arange(-cut, cut + 1))
        total = np.convolve(total, one)
    middle = len(total) // 2
    variance = law.square if isinstance(law, DiscreteGaussian) else law.variance
    errors = PrefixError(
        variance=np.array([sum(w * w for w in weights) * float(variance)]),
        largest=np.array([max(map(abs, weights))]),
    )
    for tail in (0.2, 0.025, 1e-4):
        width = reach([law], errors, tail)[0]
        first = middle + math.ceil(width / unit - 1e-9)
        beyond = float(total[first:].sum())
        assert beyond <= tail
        assert beyond > tail / 50  # not uselessly wide


# ── sensitivities ────────────────────────────────────────────────────────────

ROWS = [(x, g) for x in (-1, 1, 3) for g in "ab"]
UNITS = [
    *(unit for size in range(3) for unit in combinations_with_replacement(ROWS, size)),
    *combinations_with_replacement([(-1, "a"), (3, "a"), (3, "b")], 4),
]
LIMITS = {
    "rows": ContributionLimits(max_rows_per_unit=2),
    "rows and groups": ContributionLimits(max_rows_per_unit=3, max_groups_per_unit=1),
    "rows in a group": ContributionLimits(max_rows_per_unit_per_group=1),
}


def frame(data):
    """Units keep their name whoever else is there."""
    named = [(10 * UNITS.index(unit) + data[:i].count(unit), unit) for i, unit in enumerate(data)]
    rows = [(name, *row) for name, unit in named for row in unit]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "x": pl.Int64, "g": pl.String}, orient="row")


def planned(query, limits, relation):
    setting = TableSpec(schema=SCHEMA, privacy_unit="u", limits=LIMITS[limits], relation=relation)
    return plan_release([query], setting=setting, budget=QueryBudget(epsilon=1))


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("grouped", [False, True], ids=["whole", "grouped"])
@pytest.mark.parametrize("method", ["tree", "exponential"])
def test_sensitivities_hold(method, grouped, relation, limits):
    query = queries.quantiles("x", [0.25, 0.5], by="g" if grouped else None, method=method)
    made = planned(query, limits, relation)
    tables = {}

    def exact(data, one):
        if data not in tables:
            tables[data] = collect(made.passes[0], source=open_source(frame(data)), key=7).columns
        return measure(one.part, tables[data], shift=0)

    def furthest(data, one):
        """For each group the scores; the distance of a group is its largest."""
        return exact(data, one).tolist()

    def distance(a, b):
        return float(np.abs(np.subtract(a, b)).max(axis=-1).sum())

    for one in made.measurements:
        if method == "tree":
            for norm, claim in (("l1", one.move.l1), ("l2", math.sqrt(one.move.l2_squared))):
                check_sensitivity(
                    lambda data, one=one: exact(data, one).tolist(),
                    claim,
                    values=UNITS,
                    rows=1,
                    relation=relation,
                    norm=norm,
                    slack="blocks that hold all bins cannot move under replacement",
                )
            continue
        pairs = neighbors(relation)
        moved = max(distance(furthest(a, one), furthest(b, one)) for a, b in pairs)
        assert moved <= one.move.l1
        if not (relation is NeighboringRelation.REPLACE_ONE and grouped):
            assert moved == one.move.l1  # attained


def neighbors(relation):
    others = [(), (UNITS[1],) * 9, (UNITS[8],)]
    if relation is NeighboringRelation.ADD_REMOVE:
        return [(rest, (*rest, unit)) for rest in others for unit in UNITS]
    return [((*rest, a), (*rest, b)) for rest in others[:2] for a in UNITS for b in UNITS]


def test_a_tree_that_claims_too_little_is_found():
    made = planned(queries.median("x", method="tree"), "rows", NeighboringRelation.ADD_REMOVE)
    (one, *_) = made.measurements

    def exact(data):
        table = collect(made.passes[0], source=open_source(frame(data)), key=7)
        return measure(one.part, table.columns, shift=0).tolist()

    with pytest.raises(SensitivityError):
        check_sensitivity(
            exact, one.move.l1 - 1, values=UNITS, rows=1, relation=NeighboringRelation.ADD_REMOVE
        )


def test_the_exact_law_of_a_grouped_choice_keeps_the_budget():
    """Products over groups of exact choice probabilities, on all neighbors."""
    for relation in RELATIONS:
        made = planned(queries.median("x", by="g", method="exponential"), "rows", relation)
        (one,) = made.measurements
        logs = {}

        def law(data, made=made, one=one, logs=logs):
            if data not in logs:
                table = collect(made.passes[0], source=open_source(frame(data)), key=7)
                scores = measure(one.part, table.columns, shift=0)
                logs[data] = np.log([one.mechanism.probabilities(row) for row in scores])
            return logs[data]

        worst = 0.0
        for a, b in neighbors(relation):
            ratio = law(a) - law(b)
            worst = max(worst, ratio.max(axis=1).sum(), -ratio.min(axis=1).sum())
        assert 0.4 < worst <= 1 + 1e-9


# ── engines ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limits", LIMITS)
def test_engines_count_the_same_rows_in_bins(limits, tmp_path):
    rng = np.random.default_rng(3)
    rows = pl.DataFrame(
        {
            "u": rng.integers(0, 40, 300),
            "x": rng.integers(-3, 6, 300),
            "g": rng.choice(["a", "b", "c"], 300),
        }
    )
    rows.write_csv(tmp_path / "rows.csv")
    for by, keys in ((None, None), ("g", None), ("g", ["b"])):
        query = queries.quantiles("x", [0.5], by=by, keys=keys, bins=3, method="tree")
        made = planned(query, limits, NeighboringRelation.ADD_REMOVE)
        (plan,) = made.passes
        (name,) = plan.aggregates
        found = [
            collect(plan, source=open_source(source), key=5).columns[name].tolist()
            for source in (rows, tmp_path / "rows.csv")
        ]
        assert found[0] == found[1]
        # The limits do not know bins: the same rows are kept as for a count of the groups.
        whole = collect(replace(plan, bins=None), source=open_source(rows), key=5)
        assert sum(found[0]) == sum(whole.columns[name].tolist())


# ── answers ──────────────────────────────────────────────────────────────────

RUNS = 1000
WIDE = {
    "x": integer(lower=0, upper=99),
    "y": real(lower=0, upper=1, granularity=2**-30),
    "g": category(range(RUNS), include_other=False),
}
SETTING = TableSpec(schema=WIDE, privacy_unit="u", limits=ContributionLimits(max_rows_per_unit=2))
VALUES = np.sort(np.random.default_rng(1).integers(0, 60, 500))
LEVELS = [0.05, 0.25, 0.5, 0.9]


def released(amount, *, method, column="x", values=VALUES, seed=5, levels=LEVELS):
    """The same rows in each of many groups: as many independent answers."""
    query = queries.quantiles(column, levels, by="g", method=method)
    made = plan_release([query], setting=SETTING, budget=amount)
    (plan,) = made.passes
    (name,) = plan.aggregates
    bins = plan.bins[1]
    width = made.questions[0].estimator.width
    counts = np.bincount(np.asarray(values) // width, minlength=bins)
    (parts,) = made.noisy([{name: np.tile(counts, RUNS)}], rng=seeded_rng(seed))
    return made.questions[0], parts


def quantile(values, q):
    """The smallest value that a share q of the rows does not exceed."""
    ordered = np.sort(values)
    return ordered[math.ceil(q * len(ordered)) - 1]


@pytest.mark.parametrize("amount", BUDGETS, ids=str)
def test_intervals_of_a_tree_cover(amount):
    question, parts = released(amount, method="tree")
    low, high = (np.array(end).reshape(RUNS, -1) for end in question.estimator.interval(parts, 0.8))
    values = np.array(question.estimator.values(parts)).reshape(RUNS, -1)
    assert np.all((low <= values) & (values <= high))
    assert np.all(np.diff(values, axis=1) >= 0)
    for i, q in enumerate(LEVELS):
        truth = quantile(VALUES, q)
        inside = np.sum((low[:, i] <= truth) & (truth <= high[:, i]))
        assert inside >= stats.binom.ppf(1e-6 / 12, RUNS, 0.8)
    assert np.median(high[:, 1:3] - low[:, 1:3]) < 15
    # Intervals for an eighth of the noise are found out.
    if amount.delta is None and amount.rho is None:
        wrong = [replace(p, noise=DiscreteLaplace(p.law.scale / 8)) for p in parts]
        low, high = (np.array(end)[2::4] for end in question.estimator.interval(wrong, 0.8))
        truth = quantile(VALUES, 0.5)
        assert np.sum((low <= truth) & (truth <= high)) < stats.binom.ppf(1e-6, RUNS, 0.8)


@pytest.mark.parametrize("method", ["tree", "exponential"])
@pytest.mark.parametrize("amount", BUDGETS, ids=str)
def test_ranks_are_as_close_as_forecast(amount, method):
    question, parts = released(amount, method=method)
    expected = forecast(question, expected_rows=len(VALUES), confidence=0.9)
    assert expected.step == 1
    values = np.array(question.estimator.values(parts)).reshape(RUNS, -1)
    n = len(VALUES)
    for i, q in enumerate(LEVELS):
        upto = np.searchsorted(VALUES, values[:, i], side="right") / n
        before = np.searchsorted(VALUES, values[:, i], side="left") / n
        close = (before <= q + expected.width) & (upto >= q - expected.width)
        assert np.sum(close) >= stats.binom.ppf(1e-6 / 24, RUNS, 0.9)
    assert expected.width < 0.5
    assert "rank within" in str(expected)


@pytest.mark.parametrize("method", ["tree", "exponential"])
def test_large_budgets_give_the_truth(method):
    sure = QueryBudget(epsilon=Fraction(10**5))
    question, parts = released(sure, method=method)
    values = question.estimator.values(parts)
    assert values[:4] == [quantile(VALUES, q) for q in LEVELS]
    # Reals: right up to the width of a bin.
    fine = np.random.default_rng(2).integers(0, 2**30, 400)
    question, parts = released(sure, method=method, column="y", values=fine)
    for value, q in zip(question.estimator.values(parts)[:4], LEVELS, strict=True):
        assert abs(value - quantile(fine, q) / 2**30) <= question.estimator.step
    assert question.estimator.step == pytest.approx(1 / 1024, rel=0.01)


def test_costs_and_defaults():
    several = [0.1 * k for k in range(1, 10)]
    for amount in BUDGETS:
        one = plan_release([queries.median("x")], setting=SETTING, budget=amount)
        assert one.questions[0].query.method == "exponential"
        many = plan_release([queries.quantiles("x", several)], setting=SETTING, budget=amount)
        by_hand = {
            method: forecast(
                plan_release(
                    [queries.quantiles("x", several, method=method)], setting=SETTING, budget=amount
                ).questions[0],
                expected_rows=1000,
            ).width
            for method in ("tree", "exponential")
        }
        assert many.questions[0].query.method == min(by_hand, key=by_hand.get)
        mixed = plan_release(
            [queries.quantiles("x", several), queries.median("x"), queries.count()],
            setting=SETTING,
            budget=amount,
        )
        for made in (one, many, mixed):
            if amount.delta is not None:
                least = 0.0 if made.questions[0].noise_name == "laplace" else 0.9e-6
                assert least <= made.guarantee.delta(1.0) <= 1e-6
            elif amount.rho is not None:
                assert made.guarantee.rdp(2.0) == pytest.approx(1.0, rel=1e-6)
            else:
                assert made.guarantee.epsilon(0.0) == pytest.approx(1.0)
    # Equal levels of two questions are chosen once.
    twice = plan_release(
        [queries.median("x"), queries.quantiles("x", [0.5, 0.9], method="exponential")],
        setting=SETTING,
        budget=BUDGETS[0],
    )
    assert len(twice.measurements) == 2


def test_bins_follow_the_range_and_the_groups():
    def bins(query):
        return plan_release([query], setting=SETTING, budget=BUDGETS[0]).questions[0].estimator.bins

    assert bins(queries.median("x")) == 100
    assert bins(queries.median("x", bins=8)) == 8
    assert bins(queries.median("y")) == 1024
    assert bins(queries.median("y", by=["g", "x"])) == 64


def test_quantiles_survive_json():
    for method in ("tree", "exponential"):
        question, parts = released(BUDGETS[0], method=method)
        again = read_estimator(question.estimator.content())
        assert again == question.estimator
        again.check(parts, RUNS * len(LEVELS))
        with pytest.raises(InvalidArgument):
            again.check(parts, RUNS * len(LEVELS) + 1)
        if method == "exponential":
            wrong = [replace(part, values=(again.bins,) * RUNS) for part in parts]
            with pytest.raises(InvalidArgument):
                again.check(wrong, RUNS * len(LEVELS))
            with pytest.raises(Unsupported, match="method='tree'"):
                question.estimator.interval(parts, 0.9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: queries.quantiles("x", []),
        lambda: queries.quantiles("x", [0.5, 0.5]),
        lambda: queries.quantiles("x", [0.5, 0.2]),
        lambda: queries.quantiles("x", [0]),
        lambda: queries.quantiles("x", [1.0]),
        lambda: queries.quantiles("x", "0.5"),
        lambda: queries.quantiles("x", [Fraction(1, 10**8)]),
        lambda: queries.median("x", bins=1),
        lambda: queries.median("x", method="sort"),
        lambda: planned(queries.median("g"), "rows", NeighboringRelation.ADD_REMOVE),
        lambda: plan_release([queries.median("y", bins=2**20)], setting=SETTING, budget=BUDGETS[0]),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises((InvalidArgument, Unsupported)):
        wrong()
