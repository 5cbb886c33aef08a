"""Numbers behind releases and certificates, each against a formula or a sum written out here."""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms import above_threshold as threshold
from discreet.mechanisms._inputs import ScoreScale
from discreet.mechanisms._piecewise_exponential import RankPieces, _run, _tail
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.data_dependent._smooth_noise import (
    Cauchy,
    Lomax,
    SmoothGaussian,
    SmoothLaplace,
    cauchy_multiplier,
    gaussian_delta,
    gaussian_worst,
    laplace_delta,
    laplace_multiplier,
)
from discreet.mechanisms.mechanism import CertificateCheck
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_sum
from discreet.mechanisms.quantiles import SortedColumn, private_quantile
from discreet.mechanisms.scalar import _base as loss
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace
from discreet.noise.random_source import seeded_rng
from discreet_studies.noise_mechanisms.median_errors import LOWER, UPPER, _ranks, shapes

# -- losses and intervals -----------------------------------------------------------------------


def test_losses_of_rounded_noise():
    """The error of a rounded number is that of the noise and of the rounding, 1/12."""
    scale, square = Fraction(100), Fraction(10**4)
    laplace, gauss = RoundedLaplace(scale, 0), RoundedGaussian(square, 0)
    assert loss.mean_square(laplace) == pytest.approx(2 * 100**2 + 1 / 12, rel=1e-12)
    assert loss.mean_square(gauss) == pytest.approx(100**2 + 1 / 12, rel=1e-12)
    assert loss.mean_absolute(laplace) == pytest.approx(stats.laplace(0, 100).expect(abs), rel=1e-6)
    assert loss.mean_absolute(gauss) == pytest.approx(stats.norm(0, 100).expect(abs), rel=1e-6)
    assert loss.large_error(laplace) == pytest.approx(100 * math.log(20) + 0.5, rel=1e-12)
    assert loss.large_error(gauss) == pytest.approx(100 * stats.norm.ppf(0.975) + 0.5, rel=1e-9)


def test_losses_of_discrete_noise():
    law = DiscreteLaplace(Fraction(3))
    k = np.arange(-400, 401)
    assert loss.mean_absolute(law) == pytest.approx(np.abs(k) @ law.pmf(k), rel=1e-12)
    assert loss.mean_square(law) == pytest.approx(k * k @ law.pmf(k), rel=1e-12)
    width = loss.large_error(law)
    inside = np.abs(k) <= width
    assert law.pmf(k[inside]).sum() >= 0.95
    assert law.pmf(k[np.abs(k) < width]).sum() < 0.95


@pytest.mark.parametrize("method", ["interpolated", "exponential"])
@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_the_interval_of_a_quantile(method, relation):
    made = private_quantile(
        Fraction(1, 4),
        lower=0,
        upper=255,
        granularity=1,
        epsilon=2,
        method=method,
        relation=relation,
    )
    rate = 1 if relation is NeighboringRelation.REPLACE_ONE else 4 / 3
    low, high = made.interval(0.9)
    assert low == -high
    assert high == pytest.approx(math.log(256 / 0.1) / rate + 0.5, rel=1e-12)
    # One value a point, 256 points: the rank of point x is about x.
    law = made.probabilities(np.arange(256))
    assert law[np.abs(np.arange(256) - 64) <= high].sum() >= 0.9


# -- scores and pieces --------------------------------------------------------------------------


def test_scores_are_rounded_to_steps_half_upwards():
    scale = ScoreScale(exponent=-2, shift=4)
    assert scale.read([0.25, 0.3, 0.375, -0.375, -1.0, 3]).tolist() == [1, 1, 2, -1, -4, 12]
    coarse = ScoreScale(exponent=3, shift=1)
    assert coarse.read([8, 3.9, 4.0, -4.0, -4.1]).tolist() == [1, 0, 1, 0, -1]
    assert ScoreScale.of(0.75).step * ScoreScale.of(0.75).shift == pytest.approx(0.75, rel=1e-5)
    assert ScoreScale.of(0.75).step * ScoreScale.of(0.75).shift >= 0.75
    assert ScoreScale.of(3) == ScoreScale(exponent=0, shift=3)


def test_pieces_count_their_rest_in_gaps():
    one = np.array([1, 1])
    found = RankPieces(
        start=one,
        way=one,
        points=np.array([5, 7]),
        ranks=np.array([4, 6]),
        rest=np.array([1, 0]),
        gap=np.array([1, 0]),
        unit=2,
    )
    assert found.scores().tolist() == [2.5, 3.0]
    assert [found.exact(0), found.exact(1)] == [Fraction(5, 2), 3]
    wide = dataclasses.replace(found, gap=np.array([4, 0]))
    assert wide.scores().tolist() == [2.125, 3.0]
    assert wide.exact(0) == Fraction(17, 8)
    rate = Fraction(1, 3)
    first = sum(math.exp(-float(rate) * j / 4) for j in range(5))
    assert wide.masses(rate) == pytest.approx([first, 7 * math.exp(-0.875 / 3)], rel=1e-12)


@pytest.mark.parametrize(("points", "gap"), [(5, 4), (1, 3), (6, 0), (1000, 3)])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 10**6), Fraction(50)])
def test_runs_are_enclosed(points, gap, rate):
    low, high = _run(points, gap, rate, 90)
    exact = math.fsum(math.exp(-float(rate) * j / gap) if gap else 1.0 for j in range(points))
    assert 0 <= high - low <= (low >> 60) + 2**20
    assert low / 2**90 == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("slope", [Fraction(1, 3), Fraction(1, 10**6), Fraction(5)])
def test_tails_of_a_run_are_enclosed(slope):
    weights = [math.exp(-float(slope) * j) for j in range(20)]
    for j in (0, 1, 7, 19, 20):
        low, high = _tail(20, slope, j, 90)
        assert low <= high
        exact = math.fsum(weights[j:]) / math.fsum(weights)
        assert low / 2**90 == pytest.approx(exact, rel=1e-9, abs=1e-20)
        assert high / 2**90 == pytest.approx(exact, rel=1e-9, abs=1e-20)


def test_a_column_across_a_power_of_two_takes_the_coarser_grid():
    assert SortedColumn.of(2**20 - 1, 2**20, None).exponent == -18
    assert SortedColumn.of(-(2**20), 1 - 2**20, None).exponent == -18


# -- noise that follows the data ----------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 1.3, 1 / 1.3])
@pytest.mark.parametrize(("epsilon", "shift"), [(0.5, 1.0), (1.0, 0.2), (0.1, 0.0)])
def test_the_divergence_of_two_normal_laws(ratio, epsilon, shift):
    x = np.linspace(-12, 12, 400_001)
    p, q = stats.norm(0, ratio).pdf(x), stats.norm(shift, 1).pdf(x)
    exact = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0])
    assert gaussian_delta(epsilon, ratio, shift) == pytest.approx(exact, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("part", [0.02, 0.2, 0.6])
def test_the_multiplier_of_laplace_noise_is_the_smallest_of_its_form(epsilon, delta, part):
    beta = part * epsilon
    c = laplace_multiplier(epsilon, delta, beta)
    floor = max(1.0, math.exp(-beta) / (1 - beta / epsilon))
    if math.isinf(c):
        assert laplace_delta(epsilon, beta, 1e9) > delta
        return
    assert c >= floor
    assert laplace_delta(epsilon, beta, c) <= delta * (1 + 1e-9)
    if c > floor * (1 + 1e-9):
        assert laplace_delta(epsilon, beta, c) == pytest.approx(delta, rel=1e-6)
    # Scales 1 and e^beta, centers a smaller one's share apart: integrated.
    wide, shift = math.exp(beta), epsilon / c

    def excess(x):
        near = math.exp(-abs(x - shift)) / 2
        far = math.exp(-abs(x) / wide) / (2 * wide)
        return max(0.0, near - math.exp(epsilon) * far), max(0.0, far - math.exp(epsilon) * near)

    for side in (0, 1):
        ends = sorted((-60.0 * wide, 0.0, shift, 60.0 * wide))
        total = sum(
            integrate.quad(lambda x, side=side: excess(x)[side], a, b, limit=200)[0]
            for a, b in pairwise(ends)
        )
        assert total <= delta * (1 + 1e-6) + 1e-9


def test_multipliers_are_rounded_up():
    """By far more than doubles can be off, and by far less than anybody notices."""
    eps, delta = Fraction(1), Fraction(1, 10**6)
    laplace = SmoothLaplace.calibrated(eps, delta, 0.02)
    cauchy, lomax = Cauchy.calibrated(eps, 0.3), Lomax.calibrated(eps, 4)
    pairs = [
        (laplace, laplace_multiplier(1.0, 1e-6, 0.02)),
        (cauchy, cauchy_multiplier(1.0, 0.3)),
        (lomax, 1 / min(math.expm1(1 / 5), math.exp(0.25) * math.expm1(0.75 / 5))),
    ]
    for family, exact in pairs:
        assert 1e-9 < float(family.multiplier / Fraction(exact)) - 1 < 1e-8
    gauss = SmoothGaussian.calibrated(eps, delta, 0.02)
    assert gaussian_worst(1.0, 0.02, float(gauss.multiplier) / (1 + 1e-9), cells=64) <= 1e-6


# -- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [discreet.exponential_mechanism, discreet.permute_and_flip, discreet.report_noisy_max]
)
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_a_choice_that_costs_a_little_more_is_not_certified(make, monotonic, sensitivity):
    made = make(sensitivity=sensitivity, epsilon=1, monotonic=monotonic)
    assert made.rate == Fraction(1, sensitivity * (1 if monotonic else 2))
    assert made.certify().holds
    with pytest.raises(NotCertified):
        dataclasses.replace(made, rate=made.rate * Fraction(13, 10)).certify()


@pytest.mark.parametrize("monotonic", [False, True])
def test_a_threshold_with_too_little_noise_is_not_certified(monkeypatch, monotonic):
    made = discreet.above_threshold(sensitivity=5, epsilon=1, monotonic=monotonic, positives=4)
    certificate = made.certify()
    parts = ["any number of queries", "1 queries", "3 queries", "10 queries"]
    assert [check.part for check in certificate.checks] == parts
    kind = threshold.AboveThreshold
    noise = kind.query_noise.fget
    part = Fraction(3 if monotonic else 6, 10)
    less = property(lambda self: DiscreteLaplace(noise(self).scale * part))
    monkeypatch.setattr(kind, "query_noise", less)
    with pytest.raises(NotCertified):
        made.certify()


def test_a_check_allows_for_rounding_only():
    def check(exact):
        return CertificateCheck(part="all", epsilon=1.0, claimed=0.5, exact=exact, route="sum")

    assert check(0.5).holds
    assert check(0.5 * (1 + 1e-13)).holds
    assert not check(0.501).holds
    assert not check(0.5 * (1 + 1e-3)).holds
    assert check(0.25).verdict == "delta is 0.25, claimed 0.5"
    assert check(0.0).verdict == "delta is 0 up to rounding, claimed 0.5"


def test_certificates_of_bounded_noise_name_the_outputs():
    made = bounded_laplace(lower=0, upper=10, sensitivity=2, epsilon=1)
    (check,) = made.certify().checks
    assert check.part == f"scale {made.width:.6g} on 11 outputs"


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_exact_divergences_by_sums_and_tails_agree(epsilon, monkeypatch):
    """The same laws by another route: every route for noise that is small and large."""
    made = [
        events.DiscreteLaplaceEvent(Fraction(7, 2), 3),
        events.DiscreteGaussianEvent(Fraction(9), Fraction(4), 1),
        events.TruncatedLaplaceEvent(scale=Fraction(5), bound=20, shift=3),
    ]
    summed = [divergence.exact_delta(event, epsilon) for event in made]
    k = np.arange(-400, 401)
    laws = [
        np.exp(-np.abs(k) / 3.5),
        np.exp(-k * k / 18.0),
        np.exp(-np.abs(k) / 5) * (abs(k) <= 20),
    ]
    for (found, route), weights, shift in zip(summed, laws, (3, 2, 3), strict=True):
        assert route.startswith("sum over the lattice")
        law = weights / weights.sum()
        moved = np.append(np.zeros(shift), law[:-shift])
        exact = np.maximum(law - math.exp(epsilon) * moved, 0).sum()
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-15)
    monkeypatch.setattr(divergence, "_LARGEST_SUM", 1)
    monkeypatch.setattr(divergence, "_LARGEST_SIGMA", 0.5)
    for event, (found, _) in zip(made, summed, strict=True):
        again, route = divergence.exact_delta(event, epsilon)
        assert route == "tails of the lattice"
        assert again == pytest.approx(found, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_exact_divergences_of_continuous_noise(epsilon):
    laplace, _ = divergence.exact_delta(events.LaplaceEvent(Fraction(2)), epsilon)
    assert laplace == pytest.approx(max(0.0, -math.expm1((epsilon - 0.5) / 2)), abs=1e-9)
    gauss, _ = divergence.exact_delta(events.GaussianEvent(Fraction(2)), epsilon)
    cdf = stats.norm.cdf
    exact = cdf(0.25 - 2 * epsilon) - math.exp(epsilon) * cdf(-0.25 - 2 * epsilon)
    assert gauss == pytest.approx(exact, rel=1e-8)


def test_splits_into_squares():
    assert divergence.partitions(0) == [()]
    assert sorted(divergence.partitions(5)) == [(1, 1, 1, 1, 1), (2, 1)]
    assert len(divergence.partitions(12)) == len(
        [1 for a in range(2) for b in range(4) if 9 * a + 4 * b <= 12]
    )


def test_many_coordinates_take_the_worst_split():
    """(1, 1) is worse than what a single coordinate of squared length 2 cannot be."""
    event = events.DiscreteGaussianEvent(Fraction(1), Fraction(2), 2)
    found, route = divergence.exact_delta(event, 0.5)
    assert "1 split(s)" in route
    k = np.arange(-12, 13)
    law = np.exp(-k * k / 2)
    law /= law.sum()
    moved = np.append(0.0, law[:-1])
    excess = np.maximum(np.outer(law, law) - math.exp(0.5) * np.outer(moved, moved), 0)
    assert found == pytest.approx(excess.sum(), rel=1e-9)
    many = divergence.exact_delta(events.DiscreteGaussianEvent(Fraction(40), Fraction(13), 13), 0.5)
    assert "2 split(s)" in many[1]


# -- a budget for each --------------------------------------------------------------------------


def test_a_base_of_any_price_is_sampled():
    for price in (100, 699):
        sample = personalized_sampling(discreet.pure_dp(price), {"a": discreet.pure_dp(1)})
        assert sample.rates == (("a", 0),)
    half = personalized_sampling(discreet.pure_dp(1), {"a": discreet.pure_dp(0.5)})
    exact = math.expm1(0.5) / math.expm1(1)
    assert float(half.rates[0][1]) == pytest.approx(exact, abs=2**-31)
    assert float(half.rates[0][1]) <= exact
    free = personalized_sampling(discreet.pure_dp(0), {"a": discreet.pure_dp(0.5)})
    assert free.rates == (("a", 1),)


def test_prices_of_small_values_may_have_more_digits():
    def total(price):
        menu = {"a": discreet.pure_dp(price, relation=NeighboringRelation.REPLACE_ONE)}
        return stretched_sum(menu, lower=0, upper=1).release([1], ["a"], rng=seeded_rng(1))

    assert total(2**60) == pytest.approx(1)
    with pytest.raises(InvalidArgument, match="too many digits"):
        total(2**61)


# -- made-up columns ----------------------------------------------------------------------------


def test_shapes_are_the_laws_they_are_called():
    rows = 1001
    found = shapes(rows)
    p = (np.arange(rows) + 0.5) / rows
    assert found["uniform"] == pytest.approx(100 * p)
    expected = {
        "normal": (50, 50 + 10 * stats.norm.ppf(0.75)),
        "narrow normal": (20, 20 + 0.5 * stats.norm.ppf(0.75)),
        "exponential": (10 * math.log(2), 10 * math.log(4)),
        "heavy-tailed": (5 * (2 ** (2 / 3) - 1), 5 * (4 ** (2 / 3) - 1)),
        "skewed": (100 * stats.beta(2, 8).median(), 100 * stats.beta(2, 8).ppf(0.75)),
        "whole numbers": (40, 50),
        "half zeros": (0, 40),
    }
    for name, (half, upper) in expected.items():
        assert np.median(found[name]) == pytest.approx(half, abs=0.02), name
        assert np.quantile(found[name], 0.75) == pytest.approx(upper, abs=0.1), name
    two = np.sort(found["two groups"])
    assert len(two) == rows
    assert two[250] == pytest.approx(25, abs=0.1)
    assert two[750] == pytest.approx(75, abs=0.1)
    assert all(column.min() >= LOWER and column.max() <= UPPER for column in found.values())


def test_ranks_from_the_middle():
    ordered = np.array([1.0, 2.0, 3.0, 4.0])
    answers = np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 9.0])
    assert _ranks(ordered, answers).tolist() == [2, 1, 1, 0, 0, 0, 1, 1, 2]


def test_above_threshold_of_very_many_positives():
    made = discreet.above_threshold(sensitivity=1, epsilon=1, positives=10**6)
    assert 1 / made.threshold_noise.scale + 2 * 10**6 / made.query_noise.scale == 1
    assert made.threshold_noise.scale == 1000
