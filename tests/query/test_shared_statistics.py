"""Statistics from shared sums: exact numbers, intervals of one engine, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet
from discreet import col, seeded_rng
from discreet import query as queries
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._integer_ops import CodeBinary, CodeRef
from discreet.data.schema import boolean, integer
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.query import _fieller as fieller
from discreet.query._answer import read_estimator
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget

SCHEMA = {
    "x": integer(lower=0, upper=100, missing=0),
    "y": integer(lower=0, upper=100, missing=0),
    "w": integer(lower=0, upper=8, missing=0),
    "b": boolean(missing=False),
}
SETTING = TableSpec(schema=SCHEMA)
ONE = QueryBudget(epsilon=Fraction(1))


# ── the engine ───────────────────────────────────────────────────────────────


def beyond(law, x):
    """P(|Z + U| > x) for U uniform on (-1/2, 1/2): straight lines between half numbers."""
    k = np.arange(-900, 901)
    chance = law.pmf(k)
    knots = np.concatenate([[0.0], np.arange(900) + 0.5])
    tails = [1.0, *np.cumsum(chance[::-1])[:900][::-1] * 2]
    return np.interp(x, knots, tails)


LAWS = [DiscreteLaplace(Fraction(one)) for one in (0.1, 0.5, 1, 3, 20)]
LAWS += [DiscreteGaussian(square=Fraction(one)) for one in (0.05, 0.3, 1, 4, 50)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_continuous_variable_is_never_nearer_to_zero(law):
    x = np.linspace(0, 200, 80_001)
    variance, scale = fieller.dominating(law)
    own = np.exp(-x / scale) if scale else 2 * stats.norm.sf(x / np.sqrt(variance))
    assert np.all(beyond(law, x) <= own + 1e-12)
    less = np.exp(-x / scale / 0.97) if scale else 2 * stats.norm.sf(x / np.sqrt(variance * 0.8))
    assert (
        np.any(beyond(law, x) > less + 1e-12) or not 0.2 < float(law.std) < 5
    )  # nor needlessly far


def convolved(laws, factors, unit=1):
    """The exact law of a whole combination, on a lattice."""
    total = np.array([1.0])
    for law, factor in zip(laws, factors, strict=True):
        reach = max(map(abs, law.interval(1 - 1e-9)))
        one = np.zeros(2 * reach * factor + 1)
        one[::factor] = law.pmf(np.arange(-reach, reach + 1))
        total = np.convolve(total, one)
    middle = len(total) // 2
    return np.arange(len(total)) - middle, total


MIXES = [
    ([DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(3))], [1, 1]),
    ([DiscreteLaplace(Fraction(20)), DiscreteLaplace(Fraction(1, 2))], [1, 17]),
    ([DiscreteLaplace(Fraction(2))] * 4, [1, 2, 3, 9]),
    ([DiscreteGaussian(square=Fraction(2)), DiscreteLaplace(Fraction(4))], [3, 1]),
    ([DiscreteGaussian(square=Fraction(1, 2))] * 2, [1, 4]),
    ([DiscreteLaplace(Fraction(5))] * 6, [1] * 6),
]


@pytest.mark.parametrize(("laws", "factors"), MIXES)
def test_tails_hold_against_the_exact_law(laws, factors):
    values, chance = convolved(laws, factors)
    noise = fieller.form_noise(laws, [0] * len(laws), [np.array([float(f)]) for f in factors])
    for distance in np.quantile(np.abs(values), [0.01, 0.05, 0.1, 0.2, 0.3]):
        exact = chance[np.abs(values) > distance].sum()
        claimed = noise.tail(np.array([distance]))[0]
        assert exact <= claimed + 1e-9
    for tail in (0.2, 0.05, 0.01):
        width = fieller.quantile(noise, tail)[0]
        assert chance[np.abs(values) > width].sum() <= tail
        assert chance[np.abs(values) > 0.6 * width - 2 * sum(factors)].sum() > tail


@pytest.mark.parametrize(("laws", "factors"), MIXES)
def test_margins_of_nuisances_hold(laws, factors):
    values, chance = convolved(laws, factors)
    noise = fieller.form_noise(laws, [0] * len(laws), [np.array([float(f)]) for f in factors])
    for tail in (0.02, 0.005, 0.0005):
        assert chance[values > fieller.margin_of(noise, tail)[0]].sum() <= tail


def test_the_normal_part_is_exact():
    law = DiscreteLaplace(Fraction(10**6))
    noise = fieller.form_noise([law], [0], [np.array([1.0])])
    w = np.array([1.5e6])
    drawn = np.random.default_rng(3)
    sample = drawn.laplace(scale=1e6, size=400_000) + drawn.normal(scale=2e6, size=400_000)
    share = np.mean(np.abs(sample) > w)
    exact = noise.tail(w, sampling=4e12)[0]
    assert abs(share - exact) < 6 * np.sqrt(exact * (1 - exact) / 400_000)


# ── coverage on simulated tables ─────────────────────────────────────────────


def _code(code, columns):
    if isinstance(code, CodeRef):
        return columns[code.column].astype(np.float64)
    assert isinstance(code, CodeBinary)
    return _code(code.left, columns) * _code(code.right, columns)


def measured(query, columns, *, budget=ONE, rng, setting=SETTING):
    """The noisy sums of many tables at once: columns are runs x rows."""
    plan = plan_release([query], setting=setting, budget=budget)
    (question,), (scan,) = plan.questions, plan.passes
    runs, rows = next(iter(columns.values())).shape
    sums = {}
    for name, one in scan.aggregates.items():
        if one.kind == "count":
            sums[name] = np.full(runs, rows, dtype=np.int64)
            continue
        total = np.ones((runs, rows))
        for factor in one.factors:
            total = total * _code(factor.bind(setting.schema).code, columns)
        sums[name] = np.round(total.sum(axis=1)).astype(np.int64)
    return question, tuple(one.noisy(sums, rng=rng) for one in question.measurements)


def covered(question, parts, truth, level=0.95, *, sampling=False):
    low, high = map(np.array, question.estimator.interval(parts, level, sampling=sampling))
    return (low <= truth) & (truth <= high)


RUNS = 400
FEWEST = int(stats.binom.ppf(1e-6 / 20, RUNS, 0.95))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    x = np.clip(np.round(rng.normal(50, 15, (RUNS, 500))), 0, 100).astype(np.int64)
    y = np.round(0.6 * x + rng.normal(20, 8, x.shape)).clip(0, 100).astype(np.int64)
    w = rng.integers(1, 9, x.shape)
    return {"x": x, "y": y, "w": w, "b": (rng.random(x.shape) < 0.2).astype(np.int64)}


def _correlation(x, y):
    a, b = (one - one.mean(axis=1, keepdims=True) for one in (x, y))
    return (a * b).mean(axis=1) / x.std(axis=1) / y.std(axis=1)


STATISTICS = {
    "mean": (queries.mean("x"), lambda t: t["x"].mean(axis=1)),
    "variance": (queries.variance("x"), lambda t: t["x"].var(axis=1)),
    "std": (queries.std("x"), lambda t: t["x"].std(axis=1)),
    "correlation": (queries.correlation("x", "y"), lambda t: _correlation(t["x"], t["y"])),
    "ratio": (queries.ratio("y", "x"), lambda t: t["y"].sum(axis=1) / t["x"].sum(axis=1)),
    "weighted mean": (
        queries.weighted_mean("x", "w"),
        lambda t: (t["x"] * t["w"]).sum(axis=1) / t["w"].sum(axis=1),
    ),
}


@pytest.mark.parametrize("budget", [ONE, QueryBudget(rho=Fraction(1, 4))], ids=["pure", "zcdp"])
@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_cover_the_noise(name, budget, table):
    query, truth = STATISTICS[name]
    question, parts = measured(query, table, budget=budget, rng=seeded_rng(12))
    assert covered(question, parts, truth(table)).sum() >= FEWEST
    # Of noise that is thought to be a third as wide, fewer than stated.
    third = [
        DiscreteLaplace(p.law.scale / 3)
        if isinstance(p.law, DiscreteLaplace)
        else DiscreteGaussian(square=p.law.square / 9)
        for p in parts
    ]
    wrong = tuple(replace(p, noise=one) for p, one in zip(parts, third, strict=True))
    assert covered(question, wrong, truth(table)).sum() < FEWEST


POPULATION = {
    "mean": (queries.mean("x", sampling=True), 50.0),
    "boolean": (queries.mean("b", sampling=True), 0.2),
    "weighted mean": (queries.weighted_mean("x", "w", sampling=True), 50.0),
}


@pytest.mark.parametrize("name", POPULATION)
def test_intervals_cover_the_population(name, table):
    query, truth = POPULATION[name]
    question, parts = measured(query, table, rng=seeded_rng(13))
    assert covered(question, parts, truth, sampling=True).sum() >= FEWEST
    if name != "weighted mean":  # there the noise is most of the error
        assert covered(question, parts, truth).sum() < FEWEST


def test_a_measured_spread_makes_intervals_short(table):
    short, parts = measured(queries.mean("x", sampling=True), table, rng=seeded_rng(14))
    long, others = measured(queries.mean("x"), table, rng=seeded_rng(14))
    widths = [
        np.median(np.subtract(*question.estimator.interval(noisy, 0.95, sampling=True)[::-1]))
        for question, noisy in ((short, parts), (long, others))
    ]
    assert widths[0] < widths[1] / 2
    values = [np.var(q.estimator.values(p)) for q, p in ((short, parts), (long, others))]
    assert values[0] < 2 * values[1]  # the mean itself loses little


def test_differences_hold_at_once():
    rng, means = np.random.default_rng(15), np.array([40.0, 50, 55])
    setting = TableSpec(schema={"x": integer(lower=0, upper=100), "g": integer(lower=0, upper=2)})
    query = queries.compare("x", by="g", to=1, sampling=True)
    plan = plan_release([query], setting=setting, budget=ONE)
    (question,) = plan.questions
    assert question.keys == ((0,), (2,))
    inside, runs = 0, 100
    for _ in range(runs):
        x = np.round(rng.normal(means[:, None], 10, (3, 400))).clip(0, 100)
        sums = {
            name: np.array([400] * 3)
            if one.kind == "count"
            else (x ** len(one.factors)).sum(axis=1).astype(np.int64)
            for name, one in plan.passes[0].aggregates.items()
        }
        (parts,) = plan.noisy([sums], rng=seeded_rng(int(rng.integers(1 << 30))))
        low, high = question.estimator.interval(parts, 0.95, sampling=True)
        inside += all(low <= means[[0, 2]] - means[1]) and all(means[[0, 2]] - means[1] <= high)
    assert inside >= stats.binom.ppf(1e-7, runs, 0.95)


@pytest.mark.parametrize("sampling", [False, True])
def test_shares_cover(sampling):
    rng, shares = np.random.default_rng(16), np.array([0.02, 0.3, 0.38, 0.1, 0.1, 0.05, 0.05])
    setting = TableSpec(schema={"g": integer(lower=0, upper=6)})
    plan = plan_release([queries.share(by="g")], setting=setting, budget=ONE)
    (question,) = plan.questions
    inside, runs = np.zeros(7), 150
    for _ in range(runs):
        cells = rng.multinomial(800, shares)
        (parts,) = plan.noisy([{"count 0": cells}], rng=seeded_rng(int(rng.integers(1 << 30))))
        assert sum(question.estimator.values(parts)) == pytest.approx(1)
        low, high = map(np.array, question.estimator.interval(parts, 0.95, sampling=sampling))
        truth = shares if sampling else cells / cells.sum()
        inside += (low <= truth) & (truth <= high)
    assert np.all(inside >= stats.binom.ppf(1e-6 / 20, runs, 0.95))


# ── whole releases ───────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(17)
    rows = pl.DataFrame(
        {
            "x": rng.integers(0, 101, 2000),
            "y": rng.integers(0, 51, 2000),
            "w": rng.integers(0, 9, 2000),
            "g": rng.choice(["a", "b", "c"], 2000, p=[0.7, 0.295, 0.005]),
        }
    ).with_columns(y=(pl.col("x") + pl.col("y")).clip(0, 100))
    account = discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(10**9))
    columns = {
        "x": discreet.integer(0, 100),
        "y": discreet.integer(0, 100),
        "w": discreet.integer(0, 8),
        "g": discreet.category(["a", "b", "c"]),
    }
    return rows, discreet.table(rows, columns=columns, account=account)


def exact(people, query):
    return people.release([query], epsilon=10**6)[0].value


def test_without_noise_the_numbers_are_those_of_polars(people):
    rows, table = people
    x, y, w = (rows[name].to_numpy().astype(float) for name in "xyw")
    assert exact(table, queries.std("x")) == pytest.approx(x.std(), rel=1e-3)
    found = exact(table, queries.correlation("x", "y"))
    assert found == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-3)
    assert exact(table, queries.ratio("y", "x")) == pytest.approx(y.sum() / x.sum(), rel=1e-3)
    found = exact(table, queries.weighted_mean("x", "w"))
    assert found == pytest.approx((w * x).sum() / w.sum(), rel=1e-3)
    counts = dict(rows["g"].value_counts().iter_rows())
    shares = table.share(by="g", epsilon=10**6)
    assert shares["a"] == pytest.approx(counts["a"] / 2000, rel=1e-3)
    difference = table.compare("x", by="g", to="a", epsilon=10**6)
    means = dict(rows.group_by("g").agg(pl.col("x").mean()).iter_rows())
    assert difference["b"] == pytest.approx(means["b"] - means["a"], abs=1e-2)
    assert difference.keys[:2] == (("b",), ("c",))
    assert table.count_distinct("g", at_least=50, epsilon=10).value == 2
    assert table.count_distinct("g", at_least=1, epsilon=10**6).value == 3
    assert table.minimum("x", epsilon=10**6).value <= 1
    assert table.maximum("x", epsilon=10**6).value >= 99


EVERY = [
    queries.mean("x", sampling=True),
    queries.std("x", by="g"),
    queries.correlation("x", "y", where=col("w") > 2),
    queries.ratio("y", "x", by="g", sampling=True),
    queries.weighted_mean("x", "w"),
    queries.share(by="g", value="x"),
    queries.compare("x", by="g", to="b", sampling=True),
    queries.count_distinct("w", at_least=9, by="g"),
    queries.maximum("x", by="g"),
]


@pytest.mark.parametrize("query", EVERY, ids=lambda query: query.text)
def test_a_release_is_read_back_with_its_intervals(query, people):
    (release,) = people[1].release([query], epsilon=2)
    again = discreet.Release.from_json(release.to_json())
    assert again.rows() == release.rows()
    assert again.title == query.title
    low, high = (np.atleast_1d(end) for end in release.interval())
    assert np.all((low <= np.atleast_1d(release.value)) & (np.atleast_1d(release.value) <= high))
    estimator = release._estimator
    assert read_estimator(estimator.content()) == estimator
    assert people[1].forecast(query, epsilon=2, expected_rows=700).width > 0


def test_what_several_statistics_need_is_measured_once():
    together = [queries.mean("x"), queries.std("x"), queries.correlation("x", "y")]
    made = plan_release(together, setting=SETTING, budget=ONE)
    assert len(made.measurements) == 6
    alone = plan_release(together[2:], setting=SETTING, budget=QueryBudget(epsilon=Fraction(1, 3)))
    for one, own in zip(made.questions[2].measurements, alone.measurements, strict=True):
        assert one.law.std <= own.law.std  # nobody loses


def test_shares_of_a_budget_follow_the_measured_parts():
    made = plan_release([queries.mean("x", sampling=True)], setting=SETTING, budget=ONE)
    shares = [one.move.l1 / one.law.scale for one in made.measurements]
    assert [float(one) for one in shares] == pytest.approx([0.35, 0.45, 0.2])
    # What is a row is public: of two values the spread is known.
    made = plan_release([queries.mean("b", sampling=True)], setting=SETTING, budget=ONE)
    assert len(made.measurements) == 2


def test_an_unknown_denominator_is_said():
    (question,) = plan_release([queries.ratio("y", "x")], setting=SETTING, budget=ONE).questions
    parts = [
        NoisyIntegers(name=one.part.name, noise=one.law, values=(value,))
        for one, value in zip(question.measurements, (50, -3), strict=True)
    ]
    assert question.estimator.interval(parts, 0.95) == ([0.0], [np.inf])


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: queries.share(by=None), "by must name the groups"),
        (lambda: queries.compare("x", by=None, to="a"), "by must name the groups"),
        (lambda: queries.compare("x", by=["b", "w"], to=1), "one value for each column"),
        (lambda: queries.count_distinct("b", at_least=0), "at_least"),
        (lambda: queries.count_distinct("b", at_least=2, by="b"), "must not be one of"),
        (lambda: queries.mean("x", sampling=1), "sampling must be True or False"),
        (lambda: queries.ratio("x", "y", expected_ratio="a"), "expected_ratio"),
    ],
)
def test_what_is_wrong_is_named_at_once(ask, said):
    with pytest.raises(InvalidArgument, match=said):
        ask()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (queries.compare("x", by="b", to="c"), "to must be one of the groups"),
        (queries.weighted_mean("x", col("w") - 3), "weight must not be negative"),
        (queries.correlation("x", "x"), "two different columns"),
        (queries.ratio("x", "x"), "two different columns"),
        (queries.share(by="b", value=col("x") - 5), "value must not be negative"),
    ],
)
def test_what_is_wrong_is_named_when_it_is_planned(query, said):
    with pytest.raises(InvalidArgument, match=said):
        plan_release([query], setting=SETTING, budget=ONE)


@pytest.mark.parametrize(
    "query", [queries.std("x"), queries.correlation("x", "y"), queries.ratio("x", "y")]
)
def test_no_population_where_none_was_measured(query):
    (question,) = plan_release([query], setting=SETTING, budget=ONE).questions
    parts = [
        NoisyIntegers(name=one.part.name, noise=one.law, values=(500,))
        for one in question.measurements
    ]
    with pytest.raises(Unsupported):
        question.estimator.interval(parts, 0.9, sampling=True)
