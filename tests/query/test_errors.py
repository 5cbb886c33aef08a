"""Costs are what was asked, intervals cover, forecasts hold: exactly, then by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from discreet import query as queries
from discreet.accounting.filters import rho_of
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.expression import col
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer, real
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query._estimate import half_width
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import TableSpec, join_plans, plan_release
from discreet.query.budget import QueryBudget, budget
from discreet.query.error_forecast import forecast

RUNS = 4000  # groups of the same data: as many independent answers in one release
SCHEMA = {
    "x": integer(lower=-2, upper=7, missing=-2),
    "y": real(lower=0, upper=10, granularity=2**-20, missing=0),
    "g": category(range(RUNS), include_other=False),
    "s": category(["f", "m"]),
}
SETTING = TableSpec(schema=SCHEMA, privacy_unit="u", limits=ContributionLimits(max_rows_per_unit=2))
BUDGETS = [
    QueryBudget(epsilon=1),
    QueryBudget(rho=Fraction(1, 2)),
    QueryBudget(epsilon=1, delta=Fraction(1, 10**6)),
]
DATA = {
    "x": np.array([-2, 0, 0, 1, 3, 7, 7, 7, 5, 2] * 6),
    "y": np.array([0.5, 9.75, 3.125, 4.0, 4.5] * 12),
}


def planned(query, amount):
    return plan_release([query], setting=SETTING, budget=amount).questions[0]


def sums_of(query):
    """What the engine would return if every group held the same rows."""
    (plan,) = plan_release([query], setting=SETTING, budget=QueryBudget(epsilon=1)).passes
    return sums_for(plan)


def sums_for(plan):
    codes = {
        name: [int(value / 2.0 ** SCHEMA[name].exponent) for value in values]
        for name, values in DATA.items()
    }

    def exact(aggregate):
        rows = [1] * len(codes["x"])
        for factor in aggregate.factors:
            name = factor.bind(SCHEMA).code.column
            rows = [row * code for row, code in zip(rows, codes[name], strict=True)]
        return sum(rows)

    return {
        name: np.array([exact(aggregate)] * RUNS, dtype=object)
        for name, aggregate in plan.aggregates.items()
    }


def drawn(question, sums, seed):
    bits = seeded_rng(seed)
    return [one.noisy(sums, rng=bits) for one in question.measurements]


TRUTH = {
    "count": lambda x: len(x),
    "count_units": lambda x: len(x),
    "sum": np.sum,
    "mean": np.mean,
    "variance": np.var,
    "covariance": lambda _: np.cov(DATA["x"], DATA["y"], ddof=0)[0, 1],
}


def asked(kind, column):
    if kind in ("count", "count_units"):
        return getattr(queries, kind)(by="g")
    if kind == "covariance":
        return queries.covariance("x", "y", by="g")
    return {"sum": queries.sum, "mean": queries.mean, "variance": queries.variance}[kind](
        column, by="g"
    )


def covered(question, noisy, truth, level=0.9):
    low, high = map(np.array, question.estimator.interval(noisy, level))
    assert np.all(low <= high)
    return int(np.sum((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("amount", BUDGETS, ids=str)
@pytest.mark.parametrize("kind", TRUTH)
def test_intervals_cover_at_least_as_often_as_stated(kind, amount, column):
    question = planned(asked(kind, column), amount)
    noisy = drawn(question, sums_of(question.query), 11)
    truth = TRUTH[kind](DATA[column])
    fewest = stats.binom.ppf(1e-6 / 30, RUNS, 0.9)
    assert covered(question, noisy, truth) >= fewest
    # A law that claims half of the noise is found out, so the test can fail.
    if kind in ("count", "sum") and amount.delta is None and amount.rho is None:
        wrong = [replace(part, noise=DiscreteLaplace(part.law.scale / 2)) for part in noisy]
        assert covered(question, wrong, truth) < fewest


@pytest.mark.parametrize("amount", BUDGETS, ids=str)
@pytest.mark.parametrize("kind", TRUTH)
def test_forecasts_hold(kind, amount):
    question = planned(asked(kind, "x"), amount)
    truth, rows = TRUTH[kind](DATA["x"]), len(DATA["x"])
    expected = forecast(question, expected_rows=rows, confidence=0.9)
    values = np.array(question.estimator.values(drawn(question, sums_of(question.query), 12)))
    hit = int(np.sum(np.abs(values - truth) <= expected.width * (1 + 1e-12)))
    assert hit >= stats.binom.ppf(1e-6 / 15, RUNS, 0.9)
    assert expected.groups == RUNS
    assert "(90% confidence" in str(expected)


@pytest.mark.parametrize("amount", BUDGETS, ids=str)
def test_the_width_of_a_count_is_the_smallest_by_its_exact_law(amount):
    question = planned(queries.count(), amount)
    law = question.measurements[0].law
    width = half_width(law, 0.95)
    inside = [float(law.pmf(np.arange(-w, w + 1)).sum()) for w in (width, width - 1)]
    assert inside[0] >= 0.95 > inside[1]
    assert forecast(question).width == width
    assert forecast(question).std == pytest.approx(law.std)


def test_the_deviation_of_a_mean_is_right_to_first_order():
    question = planned(queries.mean("x", by="g"), QueryBudget(epsilon=40))
    noisy = drawn(question, sums_of(question.query), 13)
    values, stds = question.estimator.values(noisy), question.estimator.std(noisy)
    found = np.std(values)
    # The standard deviation of a sample of normal-like values has relative error 1 / sqrt(2 n).
    assert np.median(stds) == pytest.approx(found, rel=6 * 1.5 / math.sqrt(2 * RUNS))
    worst = forecast(question, expected_rows=len(DATA["x"])).std
    assert worst >= np.median(stds)


def test_estimates_without_noise_are_exact():
    for kind in ("mean", "variance", "covariance"):
        question = planned(asked(kind, "y"), QueryBudget(epsilon=1))
        sums = sums_of(question.query)
        quiet = [
            NoisyIntegers(
                name=one.part.name,
                noise=one.law,
                values=tuple(
                    int(v) >> shift for v in sum(f * sums[name] for f, name in one.part.terms)
                ),
            )
            for one, shift in zip(question.measurements, question.estimator.shifts, strict=True)
        ]
        assert question.estimator.values(quiet)[0] == pytest.approx(
            TRUTH[kind](DATA["y"]), rel=1e-6
        )


def test_costs_are_what_was_asked():
    several = [
        queries.count(by="s"),
        queries.mean("x", by="s"),
        queries.variance("y", where=col("x") > 0),
    ]
    for weights in (None, [1, 2, 5]):
        pure = plan_release(
            several, setting=SETTING, budget=QueryBudget(epsilon=Fraction(1, 3)), weights=weights
        )
        assert pure.guarantee.epsilon(0.0) == pytest.approx(1 / 3, rel=1e-12)
        rho = plan_release(
            several, setting=SETTING, budget=QueryBudget(rho=Fraction(1, 8)), weights=weights
        )
        assert rho_of(rho.guarantee.event) == Fraction(1, 8)
        both = plan_release(
            several,
            setting=SETTING,
            budget=QueryBudget(epsilon=Fraction(1), delta=Fraction(1, 10**6), noise="gaussian"),
            weights=weights,
        )
        assert 0.999e-6 < both.guarantee.delta(1.0) <= 1e-6
    shares = [float(m.mechanism.guarantee.epsilon(0.0)) for m in pure.measurements]
    # The count and the mean share 3/24: rows and centered sum get half of it each.
    assert shares == pytest.approx([1.5 / 24, 1.5 / 24, *[5 / 72] * 3])


def test_questions_about_the_same_groups_share_a_pass():
    same = [queries.count(by="s"), queries.sum("x", by="s"), queries.mean("y", by="s")]
    other = [queries.count(by="s", where=col("x") > 0), queries.count(by={"sex": col("s")})]
    assert len(plan_release(same, setting=SETTING, budget=QueryBudget(epsilon=1)).passes) == 1
    whole = plan_release([*same, *other], setting=SETTING, budget=QueryBudget(epsilon=1))
    assert len(whole.passes) == 3
    twice = join_plans([whole, plan_release(same, setting=SETTING, budget=QueryBudget(rho=1))])
    assert [q.measurements[0].place for q in twice.questions] == [0, 0, 0, 1, 2, 3, 3, 3]


@pytest.mark.parametrize("epsilon", [2, 8])
@pytest.mark.parametrize("rows", [(3, 3, 3, -1), (1,), (-1, 0, 2, 3) * 10])
def test_means_cover_exactly_as_often_as_the_law_says(rows, epsilon):
    """The exact coverage, summed over all noise, and what 95 % of the noise would give."""
    question = planned(queries.mean("x"), QueryBudget(epsilon=epsilon))
    laws = [one.law for one in question.measurements]
    reach = [half_width(law, 1 - 1e-5) for law in laws]
    grid = np.meshgrid(*(np.arange(-w, w + 1) for w in reach), indexing="ij")
    chance = laws[0].pmf(grid[0].ravel()) * laws[1].pmf(grid[1].ravel())
    middle = SCHEMA["x"].upper + SCHEMA["x"].lower
    exact = len(rows), sum(2 * one - middle for one in rows)
    parts = [
        NoisyIntegers(name=one.part.name, noise=one.law, values=tuple((noise + x).ravel().tolist()))
        for one, noise, x in zip(question.measurements, grid, exact, strict=True)
    ]
    truth = sum(rows) / len(rows)
    for level in (0.5, 0.9, 0.99):
        low, high = map(np.array, question.estimator.interval(parts, level))
        assert chance[(low <= truth) & (truth <= high)].sum() >= level - 3e-5
    if len(rows) > 30:
        wide = [np.array(end) for end in question.estimator.interval(parts, 0.5)]
        assert chance[(wide[0] <= truth) & (truth <= wide[1])].sum() < 0.9  # not uselessly wide


def test_of_a_group_without_rows_nothing_is_claimed():
    x = SCHEMA["x"]
    whole = {
        queries.mean("x"): (x.lower, x.upper),
        queries.variance("x"): (0, ((x.upper - x.lower) / 2) ** 2),
    }
    for query, ends in whole.items():
        question = planned(query, QueryBudget(epsilon=4))
        parts = [
            NoisyIntegers(name=one.part.name, noise=one.law, values=(value,))
            for one, value in zip(question.measurements, (-40, 70, 900), strict=False)
        ]
        low, high = question.estimator.interval(parts, 0.9)
        assert (low[0], high[0]) == ends


@pytest.mark.parametrize("n", [-40, 2, 30])
@pytest.mark.parametrize("s", [-150, 70])
def test_the_box_of_a_covariance(n, s):
    question = planned(queries.covariance("x", col("x") - 1), QueryBudget(epsilon=16))
    h = question.estimator.width
    for t, p in ((90, 500), (-60, -900)):
        parts = [
            NoisyIntegers(name=one.part.name, noise=one.law, values=(value,))
            for one, value in zip(question.measurements, (n, s, t, p), strict=True)
        ]
        reaches = [half_width(part.law, 1 - 0.1 / 4) for part in parts]
        ends = [
            (part.values[0] - r, part.values[0] + r) for part, r in zip(parts, reaches, strict=True)
        ]
        found = []
        for k, b, c, a in product(*ends):
            sums = (b, h), (c, h), (a, h * h)
            x, y, both = (np.clip(v / max(k, 1), -m, m) for v, m in sums)
            found.append(np.clip(both - x * y, -h * h, h * h) / 4)
        low, high = question.estimator.interval(parts, 0.9)
        assert low[0] <= min(found) + 1e-9
        assert high[0] >= max(found) - 1e-9
        assert low[0] <= question.estimator.values(parts)[0] <= high[0]


def test_means_of_few_rows_stay_within_the_bounds():
    question = planned(queries.mean("x", by="g"), QueryBudget(epsilon=Fraction(1, 100)))
    noisy = drawn(question, sums_of(question.query), 14)
    low, high = question.estimator.interval(noisy, 0.95)
    values = question.estimator.values(noisy)
    assert min(low) >= -2
    assert max(high) <= 7
    assert all(a <= v <= b for a, v, b in zip(low, values, high, strict=True))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: budget(),
        lambda: budget(epsilon=1, rho=1),
        lambda: budget(rho=1, delta=1e-6),
        lambda: budget(epsilon=0),
        lambda: budget(epsilon=1, delta=0),
        lambda: budget(epsilon=math.nan),
        lambda: queries.sum(3),
        lambda: queries.count(by=["s", "s"]),
        lambda: queries.count(keys=["f"]),
        lambda: queries.count(where="x > 0"),
        lambda: queries.count(by="s", keys="f"),
        lambda: queries.count(name="a\nb"),
        lambda: queries.count(name=5),
        lambda: queries.count(by="sex", keys=[["f"]]),
        lambda: planned(queries.mean("s"), QueryBudget(epsilon=1)),
        lambda: planned(queries.mean("nobody"), QueryBudget(epsilon=1)),
        lambda: planned(queries.count(by="s", keys=["x"]), QueryBudget(epsilon=1)),
        lambda: plan_release([], setting=SETTING, budget=QueryBudget(epsilon=1)),
        lambda: plan_release(["count"], setting=SETTING, budget=QueryBudget(epsilon=1)),
        lambda: plan_release(
            [queries.count()], setting=SETTING, budget=QueryBudget(epsilon=1), weights=[1, 1]
        ),
        lambda: join_plans([]),
        lambda: QueryBudget(epsilon=1).mechanisms([], shares=[], relation=SETTING.relation),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises((InvalidArgument, Unsupported)):
        wrong()


def test_a_question_says_itself_in_words():
    query = queries.mean("x", where=(col("x") > 0) & (col("s") == "f"), by=["s", col("x").cut([3])])
    assert query.text == "mean of x where (0 < x) & (s = 'f') by s, x.cut(['3'])"
    assert queries.count(name="People").title == "People"
