"""Intervals for the population: exact coverage, over sampling and noise together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import query as queries
from discreet.core.errors import Unsupported
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer
from discreet.noise.random_source import seeded_rng
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget
from discreet.tables.release import Release

SCHEMA = {"x": integer(lower=-1, upper=3), "g": category(["a", "b"], include_other=False)}
SETTING = TableSpec(schema=SCHEMA)


def released(question, names, keys, parts):
    """What these noisy integers say; the rest of a release is not looked at."""
    return Release(
        title="",
        query_text="",
        guarantee=question.guarantee,
        receipt=None,
        mechanism="",
        privacy_statement="",
        _names=names,
        _keys=keys,
        _parts=parts,
        _estimator=question.estimator,
        _independent=question.independent,
    )


def answered(query, *vectors, setting=SETTING, epsilon=Fraction(2)):
    """An answer with these noisy integers, as many groups as they have."""
    (question,) = plan_release(
        [query], setting=setting, budget=QueryBudget(epsilon=epsilon)
    ).questions
    parts = tuple(
        NoisyIntegers(name=one.part.name, noise=one.law, values=tuple(map(int, values)))
        for one, values in zip(question.measurements, vectors, strict=True)
    )
    keys = tuple((i,) for i in range(len(vectors[0])))
    answer = released(question, ("i",), keys, parts)
    return answer, [one.law for one in question.measurements]


def inside(answer, truth, level, *, sampling):
    low, high = map(np.array, answer.interval(level, sampling=sampling))
    return (low <= truth) & (truth <= high)


@pytest.mark.parametrize("mean", [0.5, 20.0, 300.0])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_counts_cover_their_expectation(mean, share):
    size = max(1, round(mean / share))
    seen = np.arange(-60, size + 61)
    answer, (law,) = answered(queries.count(), seen)
    counts = np.arange(size + 1)
    chance = stats.binom.pmf(counts, size, share)
    # The law of what is seen: binomial plus noise.
    noise = law.pmf(np.arange(-60, 61))
    seen_chance = np.convolve(chance, noise)
    for level in (0.5, 0.9, 0.99):
        covered = seen_chance[inside(answer, size * share, level, sampling=True)].sum()
        assert covered >= level - 1e-9
    plain = seen_chance[inside(answer, size * share, 0.9, sampling=False)].sum()
    if size * share > 100 and share < 0.5:
        assert plain < 0.9  # the interval for noise alone does not


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
def test_means_cover_the_mean_of_the_population(share):
    """Values are -1 or 3; 30 rows; the exact law of count and sum after noise."""
    rows, width, middle = 30, 4, 2
    hits = np.arange(rows + 1)
    centered = rows * (2 * -1 - middle) + hits * 2 * width
    reach_n, reach_s = 9, 36
    n_noise, s_noise = np.arange(-reach_n, reach_n + 1), np.arange(-reach_s, reach_s + 1)
    n, k, s = (a.ravel() for a in np.meshgrid(n_noise, hits, s_noise, indexing="ij"))
    answer, laws = answered(queries.mean("x"), rows + n, centered[k] + s, epsilon=Fraction(4))
    chance = laws[0].pmf(n) * laws[1].pmf(s) * stats.binom.pmf(k, rows, share)
    assert chance.sum() > 1 - 1e-4
    truth = -1 + width * share
    for level in (0.5, 0.9):
        covered = chance[inside(answer, truth, level, sampling=True)].sum()
        assert covered >= level
    plain = chance[inside(answer, truth, 0.5, sampling=False)].sum()
    assert plain < 0.5 or share < 0.1


def test_means_of_extremes_stay_in_the_range():
    answer, _ = answered(queries.mean("x"), [5, 1000, -3], [-(10**6), 10**6, 0])
    low, high = answer.interval(0.9, sampling=True)
    assert low[0] == -1
    assert high[1] == 3
    assert (low[2], high[2]) == (-1, 3)


RUNS = 600


@pytest.mark.parametrize("rows", [5, 100, 2000])
def test_quantiles_cover_those_of_the_population(rows):
    schema = {"x": integer(lower=0, upper=63), "g": category(range(RUNS), include_other=False)}
    query = queries.quantiles("x", [0.1, 0.5], by="g", method="tree")
    made = plan_release(
        [query], setting=TableSpec(schema=schema), budget=QueryBudget(epsilon=Fraction(2))
    )
    (plan,) = made.passes
    (name,) = plan.aggregates
    chances = np.exp(-np.arange(64) / 9.0)
    chances /= chances.sum()
    counts = np.random.default_rng(7).multinomial(rows, chances, size=RUNS).astype(np.int64)
    (parts,) = made.noisy([{name: counts.ravel()}], rng=seeded_rng(8))
    (question,) = made.questions
    answer = released(question, question.names, question.keys, parts)
    truth = np.searchsorted(np.cumsum(chances), [0.1, 0.5])
    found = inside(answer, np.tile(truth, RUNS), 0.8, sampling=True).reshape(RUNS, 2)
    fewest = stats.binom.ppf(1e-6 / 6, RUNS, 0.8)
    assert np.all(found.sum(axis=0) >= fewest)
    low, high = (np.array(end) for end in answer.interval(0.8, sampling=True))
    plain = [np.array(end) for end in answer.interval(0.8)]
    assert np.all((low <= plain[0]) & (plain[1] <= high))


def test_only_independent_rows():
    count = [5]
    alone = ContributionLimits(max_rows_per_unit=1)
    several = ContributionLimits(max_rows_per_unit=2)
    in_group = ContributionLimits(max_rows_per_unit_per_group=1)
    for limits, fine in ((alone, True), (several, False), (in_group, True)):
        setting = TableSpec(schema=SCHEMA, privacy_unit="u", limits=limits)
        answer, _ = answered(queries.count(), count, setting=setting)
        if fine:
            assert answer.interval(0.9, sampling=True)
        else:
            with pytest.raises(Unsupported, match="max_rows_per_unit=1"):
                answer.interval(0.9, sampling=True)
    setting = TableSpec(schema=SCHEMA, privacy_unit="u", limits=several)
    assert answered(queries.count_units(), count, setting=setting)[0].interval(0.9, sampling=True)


@pytest.mark.parametrize(
    ("query", "parts"),
    [(queries.sum("x"), 1), (queries.variance("x"), 3), (queries.covariance("x", "x"), 4)],
)
def test_what_is_not_covered_is_said(query, parts):
    answer, _ = answered(query, *[[5]] * parts)
    with pytest.raises(Unsupported, match="counts, means and quantiles"):
        answer.interval(0.9, sampling=True)
