"""The artifact: answers, errors, curves, quantiles, heavy cells, polishing, JSON."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import workload as w
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import dates, integers
from discreet.ranges.release import RangeRelease
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies.base import Contribution
from discreet.ranges.strategies.haar import haar
from discreet.ranges.strategies.hierarchical_histogram import HierarchicalHistogram, flat, tree
from discreet.ranges.strategies.square_root import SquareRootStrategy
from discreet.ranges.strategies.weighted_sums import optimal_sums
from tests.distributions import frequency

SIZE = 60
COUNTS = np.random.default_rng(1).poisson(40, size=SIZE)
TRUTH = np.concatenate([[0], np.cumsum(COUNTS)])
MIXED = HierarchicalHistogram(
    size=SIZE, sizes=(1, 8, 32), shares=(Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
)
DESIGNS = {
    "flat": (flat(SIZE), "laplace", budget(epsilon=1)),
    "blocks": (MIXED, "laplace", budget(epsilon=1)),
    "blocks, rho": (MIXED, "gaussian", budget(rho=1)),
    "blocks, approximate": (MIXED, "gaussian", budget(epsilon=1, delta=1e-6)),
    "haar": (haar(SIZE), "laplace", budget(epsilon=1)),
    "square root": (SquareRootStrategy(size=SIZE), "gaussian", budget(rho=1)),
    "optimal": (dense.optimal_gaussian(SIZE, workload=w.all_ranges()), "gaussian", budget(rho=1)),
    "sums of cells": (optimal_sums(SIZE, workload=w.points()), "laplace", budget(epsilon=1)),
    "sums of blocks": (
        optimal_sums(SIZE, workload=w.all_ranges(), block=16),
        "laplace",
        budget(epsilon=1),
    ),
}


def design(name, **more):
    strategy, family, cost = DESIGNS[name]
    return RangeDesign(
        domain=integers(1, SIZE), strategy=strategy, budget=cost, family=family, **more
    )


@pytest.fixture(params=DESIGNS, name="planned")
def fixture_planned(request):
    return design(request.param)


def test_the_cost_is_the_budget(planned):
    cost = planned.budget
    guarantee = planned.guarantee
    if cost.rho is not None:
        assert guarantee.rdp(8.0) == pytest.approx(8 * float(cost.rho))
    elif cost.delta is None:
        assert guarantee.epsilon() == float(cost.epsilon)
    else:
        assert guarantee.delta(float(cost.epsilon)) <= float(cost.delta)
        assert guarantee.delta(float(cost.epsilon)) >= 0.99 * float(cost.delta)


def test_answers_agree_with_each_other(planned):
    release = planned.release(COUNTS, rng=seeded_rng(1))
    whole = release.answer_many(np.arange(1, SIZE + 1), np.arange(1, SIZE + 1))
    assert whole == pytest.approx(release.cells)
    assert release.answer(5, 9) == pytest.approx(release.cells[4:9].sum())
    assert release.answer(None, 9) + release.answer(10, None) == pytest.approx(release.total)
    assert release.answer() == pytest.approx(release.total)
    assert release.answer_std(5, 9) ** 2 == pytest.approx(float(planned.variance(4, 8)))
    assert not release.private
    assert "not private" in str(release)


def test_the_artifact_stands_alone(planned):
    release = planned.release(COUNTS, rng=seeded_rng(2))
    again = RangeRelease.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert again.guarantee == release.guarantee == planned.guarantee
    a, b, _ = w.listed(w.all_ranges(), SIZE)
    assert (again.answer_many(a + 1, b + 1) == release.answer_many(a + 1, b + 1)).all()
    assert again.answer_interval(3, 20) == release.answer_interval(3, 20)
    assert again.quantile(0.3) == release.quantile(0.3)


def test_measurements_are_noisy_and_frozen(planned):
    release = planned.release(COUNTS)
    assert release.private
    exact = planned.strategy.measure(COUNTS)
    for noisy, truth in zip(release.measured, exact, strict=True):
        assert noisy.shape == truth.shape
        with pytest.raises(ValueError, match="read-only"):
            noisy[0] = 0
    assert any((n != t).any() for n, t in zip(release.measured, exact, strict=True))
    with pytest.raises(ValueError, match="read-only"):
        release.cells[0] = 0
    again = planned.release(COUNTS)
    assert any((n != m).any() for n, m in zip(release.measured, again.measured, strict=True))


def test_the_exact_law_of_a_small_release():
    """All outcomes of a two-cell tree: neighbors differ by at most e^epsilon, exactly."""
    strategy = tree(2, branching=2, root=True)
    planned = RangeDesign(
        domain=integers(0, 1), strategy=strategy, budget=budget(epsilon=1), family="laplace"
    )
    k = np.arange(-30, 31)
    laws = [law.log_pmf(k) for law in planned.laws]
    assert len(laws) == 2
    assert all(float(law.scale) == 2 for law in planned.laws)

    def log_mass(counts):
        leaves, root = strategy.measure(np.array(counts))
        first, second, top = (
            planned.laws[group].log_pmf(k - truth)
            for group, truth in ((0, leaves[0]), (0, leaves[1]), (1, root[0]))
        )
        return first[:, None, None] + second[None, :, None] + top[None, None, :]

    worst = max(
        np.abs(log_mass(x) - log_mass(y)).max()
        for x, y in (([0, 0], [1, 0]), ([3, 2], [3, 3]), ([5, 0], [4, 0]))
    )
    assert worst == pytest.approx(1.0)


def test_intervals_cover(planned):
    a, b, _ = w.listed(w.all_ranges(), SIZE)
    few = np.random.default_rng(3).integers(0, len(a), 12)
    a, b = a[few], b[few]
    times = 150
    low, high = planned.release(COUNTS, rng=seeded_rng(0)).answer_interval(
        a + 1, b + 1, confidence=0.9
    )
    width = (high - low) / 2
    errors = np.array(
        [
            planned.release(COUNTS, rng=seeded_rng(seed)).answer_many(a + 1, b + 1)
            - (TRUTH[b + 1] - TRUTH[a])
            for seed in range(times)
        ]
    )
    hits = (np.abs(errors) <= width).sum(axis=0)
    # Each range by itself, against 90 percent: coverage may be more, never less.
    assert all(hit >= 0.9 * times or frequency(hit, times, 0.9) for hit in hits)
    assert (width <= 2.5 * np.sqrt(planned.variance(a, b))).all()
    narrow = (np.abs(errors) <= width / 4).sum(axis=0)
    assert not all(hit >= 0.9 * times or frequency(hit, times, 0.9) for hit in narrow)


def test_more_ranges_get_wider_intervals_that_still_hold():
    release = design("blocks").release(COUNTS, rng=seeded_rng(4))
    a, b, _ = w.listed(w.all_ranges(), SIZE)
    low, high = release.answer_interval(a + 1, b + 1)
    close_low, close_high = release.answer_interval(a[:9] + 1, b[:9] + 1)
    assert (low[:9] <= close_low).all()
    assert (high[:9] >= close_high).all()
    assert np.mean((low <= TRUTH[b + 1] - TRUTH[a]) & (TRUTH[b + 1] - TRUTH[a] <= high)) > 0.99


def test_covariances_and_unions(planned):
    release = planned.release(COUNTS, rng=seeded_rng(5))
    assert release.covariance((3, 9), (3, 9)) == pytest.approx(release.answer_std(3, 9) ** 2)
    # The variance of a sum of two neighbors is that of the joined range.
    parts = release.answer_std(3, 9) ** 2 + release.answer_std(10, 20) ** 2
    joined = parts + 2 * release.covariance((3, 9), (10, 20))
    assert joined == pytest.approx(release.answer_std(3, 20) ** 2)
    value, std = release.union([(10, 20), (3, 9)])
    assert value == pytest.approx(release.answer(3, 20))
    assert std == pytest.approx(release.answer_std(3, 20))
    overlap = release.covariance((3, 9), (5, 20))
    split = release.covariance((3, 4), (5, 20)) + release.covariance((5, 9), (5, 20))
    assert overlap == pytest.approx(split)
    with pytest.raises(InvalidArgument, match="disjoint"):
        release.union([(3, 9), (9, 20)])
    with pytest.raises(InvalidArgument, match="at least one"):
        release.union([])


def test_the_distribution_function_has_a_band_for_all_cells(planned):
    for seed in range(5):
        curve = planned.release(COUNTS, rng=seeded_rng(seed)).cdf(confidence=0.999)
        assert (curve.low <= TRUTH[1:]).all()
        assert (curve.high >= TRUTH[1:]).all()
        assert (np.diff(curve.values) >= 0).all()
        assert (np.diff(curve.low) >= 0).all()
        assert (np.diff(curve.high) >= 0).all()
    assert curve.labels == tuple(range(1, SIZE + 1))


def test_quantiles_hold_the_true_one(planned):
    hits, width = 0, 0
    for seed in range(40):
        release = planned.release(COUNTS, rng=seeded_rng(seed))
        for share in (0.1, 0.5, 0.9):
            found = release.quantile(share, confidence=0.95)
            true = int(np.searchsorted(TRUTH[1:], share * TRUTH[-1])) + 1
            hits += found.low <= true <= found.high
            width += found.high - found.low
            assert found.low <= found.label <= found.high or share in (0.1, 0.9)
    assert hits >= 0.95 * 120 or frequency(hits, 120, 0.95)
    assert width / 120 < 8


def test_heavy_cells_are_heavy():
    counts = COUNTS.copy()
    counts[[7, 30]] = 400, 900
    release = design("flat").release(counts, rng=seeded_rng(6))
    found = release.cells_above(100)
    assert [one.label for one in found] == [31, 8]
    assert found[0].low <= 900 <= found[0].high
    assert release.cells_above(10_000) == []


def test_polished_answers_are_counts_of_the_estimated_total(planned):
    sparse = np.zeros(SIZE, dtype=np.int64)
    sparse[[3, 40]] = 200, 50
    release = planned.release(sparse, rng=seeded_rng(7))
    polished = release.nonnegative()
    assert polished.cells.min() >= 0
    assert polished.cells.sum() == pytest.approx(max(release.total, 0))
    assert polished.answer() == pytest.approx(polished.pinned)
    truth = np.concatenate([[0], np.cumsum(sparse)])
    a, b, _ = w.listed(w.points(), SIZE)
    raw = release.answer_many(a + 1, b + 1) - (truth[b + 1] - truth[a])
    smooth = polished.answer(a + 1, b + 1) - (truth[b + 1] - truth[a])
    assert np.square(smooth).sum() < np.square(raw).sum()


def test_polishing_is_least_squares():
    """Against a general solver: the same point."""
    from scipy.optimize import minimize

    strategy = HierarchicalHistogram(size=6, sizes=(1, 3), shares=(Fraction(1, 2),) * 2)
    planned = RangeDesign(
        domain=integers(0, 5), strategy=strategy, budget=budget(epsilon=0.2), family="laplace"
    )
    release = planned.release(np.array([0, 9, 0, 0, 0, 30]), rng=seeded_rng(8))
    polished = release.nonnegative()
    normal = np.stack([strategy.precision(e, planned.noise) for e in np.eye(6)])
    solved = minimize(
        lambda f: (f - release.cells) @ normal @ (f - release.cells),
        np.full(6, polished.pinned / 6),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda f: f.sum() - polished.pinned},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert polished.cells == pytest.approx(solved.x, abs=1e-2)


def test_a_public_total_is_for_replacement_only():
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        design("flat").release(COUNTS, rng=seeded_rng(9)).nonnegative(total=100)
    replaced = design("flat", relation=NeighboringRelation.REPLACE_ONE)
    polished = replaced.release(COUNTS, rng=seeded_rng(9)).nonnegative(total=int(COUNTS.sum()))
    assert polished.cells.sum() == pytest.approx(COUNTS.sum())
    many = design(
        "flat", relation=NeighboringRelation.REPLACE_ONE, contribution=Contribution(rows=2)
    )
    with pytest.raises(InvalidArgument, match="one row"):
        many.release(COUNTS, rng=seeded_rng(9)).nonnegative(total=100)


def test_a_public_total_is_answered_exactly():
    planned = RangeDesign(
        domain=integers(1, SIZE),
        strategy=flat(SIZE, total=int(COUNTS.sum())),
        budget=budget(epsilon=1),
        family="laplace",
        relation=NeighboringRelation.REPLACE_ONE,
    )
    assert [float(law.scale) for law in planned.laws] == [2]
    release = planned.release(COUNTS, rng=seeded_rng(10))
    assert release.total == pytest.approx(COUNTS.sum())
    assert release.answer_std() == 0
    lengths = np.arange(1, SIZE + 1)
    law = planned.laws[0].variance
    expected = law * lengths * (1 - lengths / SIZE)
    assert planned.strategy.by_length(lengths, planned.noise) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("price", [{"epsilon": 500}, {"epsilon": 10**6}, {"rho": 10**4}])
@pytest.mark.parametrize("strategy", [flat(SIZE), MIXED, haar(SIZE)])
def test_less_noise_than_doubles_can_tell_leaves_exact_answers(strategy, price):
    made = RangeDesign(
        domain=integers(1, SIZE),
        strategy=strategy,
        budget=budget(**price),
        family="laplace" if "epsilon" in price else "gaussian",
    ).release(COUNTS, rng=seeded_rng(3))
    assert made.cells == pytest.approx(COUNTS, abs=1e-9)
    low, high = made.answer_interval(2, 40)
    assert low <= TRUTH[40] - TRUTH[1] <= high
    assert high - low < 1e-6
    assert made.answer_std(2, 40) < 1e-10
    assert (made.cdf().high >= TRUTH[1:]).all()
    assert made.quantile(0.5).label == 1 + np.searchsorted(TRUTH[1:], TRUTH[-1] / 2)
    assert made.nonnegative().cells == pytest.approx(COUNTS, abs=1e-6)


def test_wrong_counts_are_refused_without_showing_them():
    planned = design("flat")
    for counts in (COUNTS[:-1], COUNTS.astype(float), COUNTS.reshape(2, -1)):
        with pytest.raises(OutOfDomain, match="60 integers") as caught:
            planned.release(counts)
        assert str(COUNTS[0]) not in str(caught.value)
    with pytest.raises(OutOfDomain, match="cells"):
        RangeDesign(
            domain=integers(1, 5), strategy=flat(4), budget=budget(epsilon=1), family="laplace"
        )


def test_one_range_or_many():
    release = design("flat").release(COUNTS, rng=seeded_rng(11))
    with pytest.raises(InvalidArgument, match="answer_many"):
        release.answer([1, 2], [3, 4])
    with pytest.raises(InvalidArgument, match="confidence"):
        release.answer_interval(1, 2, confidence=1)
    with pytest.raises(InvalidArgument, match="share"):
        release.quantile(1.5)


def test_texts_that_are_no_release():
    good = json.loads(design("blocks").release(COUNTS, rng=seeded_rng(12)).to_json())
    assert RangeRelease.from_json(json.dumps(good)).total
    wrong = [
        "",
        "[]",
        "{}",
        json.dumps({**good, "discreet_ranges": 2}),
        json.dumps({**good, "measured": good["measured"][:2]}),
        json.dumps({**good, "measured": ["AAAA", *good["measured"][1:]]}),
        json.dumps({**good, "measured": good["measured"][::-1]}),
        json.dumps({**good, "noise": good["noise"][:1]}),
        json.dumps({**good, "noise": [{"law": "none"}] * 3}),
        json.dumps({**good, "domain": {"kind": "integers", "lower": 0, "upper": 5}}),
        json.dumps({**good, "strategy": {"kind": "cloud"}}),
        json.dumps({**good, "guarantee": {}}),
    ]
    for text in wrong:
        with pytest.raises(InvalidArgument):
            RangeRelease.from_json(text)


def test_dates_are_asked_by_dates():
    planned = RangeDesign(
        domain=dates("2024-01-01", "2024-02-29"),
        strategy=MIXED,
        budget=budget(epsilon=1),
        family="laplace",
    )
    release = planned.release(COUNTS, rng=seeded_rng(13))
    assert release.answer("2024-01-31", "2024-02-01") == pytest.approx(release.cells[30:32].sum())
    assert str(release.quantile(0).label) == "2024-01-01"
    assert Guarantee.from_json(json.dumps(json.loads(release.to_json())["guarantee"]))
    assert math.isfinite(release.answer_std("2024-01-31", None))
