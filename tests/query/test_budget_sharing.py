"""What several questions need is measured once, paid once, and nobody loses by it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet import query as queries
from discreet.audit.sensitivity import SensitivityError, check_sensitivity
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer
from discreet.data.source import open_source
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query._measure import measure, share_budget
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget
from discreet.query.error_forecast import forecast

SCHEMA = {
    "x": integer(lower=-1, upper=3, missing=-1),
    "y": integer(lower=0, upper=10, missing=0),
    "g": category(["a", "b"], include_other=False),
}
SETTING = TableSpec(schema=SCHEMA, privacy_unit="u", limits=ContributionLimits(max_rows_per_unit=2))
ALL = {
    "count": queries.count(by="g"),
    "sum": queries.sum("x", by="g"),
    "mean": queries.mean("x", by="g"),
    "variance": queries.variance("x", by="g"),
}
ONE = QueryBudget(epsilon=Fraction(1))


def shares(*kinds, weights=None):
    made = plan_release([ALL[kind] for kind in kinds], setting=SETTING, budget=ONE, weights=weights)
    return {m.part.name: m.mechanism.guarantee.epsilon(0.0) for m in made.measurements}


def test_the_rule():
    assert shares("mean") == {"rows": 0.5, "centred sum": 0.5}
    assert shares("count", "mean") == {"rows": 0.5, "centred sum": 0.5}
    assert shares("count", "sum", "mean") == {"rows": 0.5, "centred sum": 0.5}
    assert shares("count", "count") == {"rows": 1}
    # The count keeps the half that it would have had alone.
    assert shares("count", "variance") == {
        "rows": 0.5,
        "centred sum": 0.25,
        "centred squares": 0.25,
    }
    # A sum by itself is measured by itself, and where sharing would cost it.
    assert shares("sum") == {"sum": 1}
    assert shares("count", "sum") == {"rows": 0.5, "sum": 0.5}
    assert set(shares("sum", "mean", weights=[9, 1])) == {"sum", "rows", "centred sum"}
    assert set(shares("sum", "variance")) == {"sum", "rows", "centred sum", "centred squares"}


def test_other_rows_groups_or_values_share_nothing():
    asked = [
        queries.count(by="g"),
        queries.count(),
        queries.mean("x", by="g", where=col("x") > 0),
        queries.count_units(by="g"),
    ]
    assert len(plan_release(asked, setting=SETTING, budget=ONE).measurements) == 5
    both = plan_release([queries.mean("x"), queries.mean("y")], setting=SETTING, budget=ONE)
    assert [m.part.name for m in both.measurements] == ["rows", "centred sum", "centred sum"]
    # The same value written in another way is the same value.
    same = plan_release([queries.mean("x"), queries.sum(col("x"))], setting=SETTING, budget=ONE)
    assert len(same.measurements) == 2


@pytest.mark.parametrize(
    "amount",
    [
        ONE,
        QueryBudget(rho=Fraction(1, 2)),
        QueryBudget(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
    ],
    ids=str,
)
@pytest.mark.parametrize("many", [2, 3, 4])
def test_nobody_gets_more_noise_and_the_budget_is_kept(amount, many):
    for kinds in combinations(ALL, many):
        asked = [ALL[kind] for kind in kinds]
        together = plan_release(asked, setting=SETTING, budget=amount)
        if amount.rho is not None:
            assert together.guarantee.rdp(2) == pytest.approx(float(2 * amount.rho))
        elif amount.delta is None:
            assert together.guarantee.epsilon(0.0) == pytest.approx(1, rel=1e-12)
        else:
            assert together.guarantee.delta(1.0) <= 1e-6
            continue  # the parts of a joint calibration have no amounts of their own
        part = replace(
            amount,
            **{
                name: value / many
                for name in ("epsilon", "rho")
                if (value := getattr(amount, name)) is not None
            },
        )
        for shared, query in zip(together.questions, asked, strict=True):
            (alone,) = plan_release([query], setting=SETTING, budget=part).questions
            before, now = (forecast(q, expected_rows=100).std for q in (alone, shared))
            assert now <= before * (1 + 1e-12), (kinds, query.kind)


def test_the_exact_errors_of_count_sum_and_mean():
    asked = [ALL["count"], ALL["sum"], ALL["mean"]]
    count, total, mean = plan_release(asked, setting=SETTING, budget=ONE).questions
    rows, centered = DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(16))  # 2 rows, width 4
    assert forecast(count).std == rows.std
    # middle = -1 + 3
    assert forecast(total).std == pytest.approx(np.sqrt(centered.variance + 4 * rows.variance) / 2)
    worst = np.sqrt(centered.variance + 16 * rows.variance) / 50 / 2
    assert forecast(mean, expected_rows=50).std == pytest.approx(worst)
    direct = plan_release(
        [ALL["sum"]], setting=SETTING, budget=replace(ONE, epsilon=Fraction(1, 3))
    )
    assert forecast(total).std < forecast(direct.questions[0]).std / 2


RUNS = 4000


def test_a_shared_sum_is_read_right():
    wide = {**SCHEMA, "g": category(range(RUNS), include_other=False)}
    for low, high in ((-1, 3), (-5, 2), (0, 7)):
        schema = {**wide, "x": integer(lower=low, upper=high, missing=low)}
        asked = [queries.count(by="g"), queries.sum("x", by="g"), queries.mean("x", by="g")]
        made = plan_release(asked, setting=replace(SETTING, schema=schema), budget=ONE)
        (plan,) = made.passes
        truth = 20 * high + 5 * low
        sums = {
            name: np.full(RUNS, {"count": 25, "sum": truth}[one.kind], dtype=object)
            for name, one in plan.aggregates.items()
        }
        count, total, mean = made.noisy([sums], rng=seeded_rng(5))
        assert count[0] is total[0] is mean[0]  # one draw
        scale = made.questions[1].estimator
        values = np.array(scale.values(total))
        std = scale.std(total)[0]
        assert std == pytest.approx(forecast(made.questions[1]).std)
        assert abs(values.mean() - truth) < 5.2 * std / np.sqrt(RUNS)
        assert np.std(values) == pytest.approx(std, rel=5.2 * np.sqrt(5 / 4 / RUNS))
        low_end, high_end = map(np.array, scale.interval(total, 0.9))
        assert np.sum((low_end <= truth) & (truth <= high_end)) >= stats.binom.ppf(1e-6, RUNS, 0.9)
        width = forecast(made.questions[1], confidence=0.9).width
        assert np.all(high_end - values <= width * (1 + 1e-9))


ROWS = [(x, g) for x in (-1, 3) for g in "ab"]
UNITS = [(), *((row,) for row in ROWS), *combinations(ROWS, 2), (ROWS[0],) * 4]


def frame(data):
    """Units keep their name whoever else is there."""
    named = [(10 * UNITS.index(unit) + data[:i].count(unit), unit) for i, unit in enumerate(data)]
    rows = [(name, *row) for name, unit in named for row in unit]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "x": pl.Int64, "g": pl.String}, orient="row")


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_the_whole_loss_is_within_the_budget(relation):
    """Sum over all that is drawn of distance / scale, over all neighbors."""
    setting = replace(SETTING, relation=relation)
    made = plan_release(list(ALL.values()), setting=setting, budget=ONE)

    def losses(data, factor=1.0):
        columns = collect(made.passes[0], source=open_source(frame(data)), key=3).columns
        return [
            factor * value / float(one.law.scale)
            for one in made.measurements
            for value in measure(one.part, columns, shift=one.shift).tolist()
        ]

    settings = {"values": UNITS, "rows": 1, "relation": relation}
    check_sensitivity(losses, 1 + 1e-9, slack="not all parts move furthest at once", **settings)
    with pytest.raises(SensitivityError):
        check_sensitivity(lambda d: losses(d, 1.5), 1, slack="too small", **settings)


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 20)),
        min_size=1,
        max_size=6,
    )
)
def test_shares_are_fair(questions):
    claims = [
        (Fraction(w), dict.fromkeys(parts, Fraction(w, len(parts)))) for parts, w in questions
    ]
    found = share_budget(claims)
    assert sum(found.values()) == sum(portion for portion, _ in claims)
    for portion, leasts in claims:
        assert all(found[part] >= least for part, least in leasts.items())
        # Nobody pays for what others ask.
        assert sum(found[part] for part in leasts) >= portion or len(claims) > 1
    greedy = [(portion, dict.fromkeys(leasts, portion)) for portion, leasts in claims]
    if sum(len(leasts) for _, leasts in greedy) == len(greedy):
        assert share_budget(greedy) is not None
    portion, leasts = claims[0]
    assert share_budget([(portion, dict.fromkeys(leasts, portion + 1))]) is None
