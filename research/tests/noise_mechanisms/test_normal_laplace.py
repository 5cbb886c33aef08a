"""B6, B22, B23, B27: laws of sums of noise, and what adding noise does to the profile."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import discreet
from discreet.core.errors import InvalidArgument
from discreet_studies.noise_mechanisms.normal_laplace import NormalLaplace

LAWS = [NormalLaplace(1, 2), NormalLaplace(3, 0.5), NormalLaplace(0, 0.7), NormalLaplace(1.5, 0)]


def test_the_worked_values():
    law = NormalLaplace(1, 2)
    assert law.variance == 9
    assert law.pdf(0.0) == pytest.approx(0.17481, abs=5e-6)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_density_distribution_and_quantile_agree(law):
    def area(f, low, high):
        return integrate.quad(f, low, high, limit=400, epsabs=1e-13)[0]

    reach = 60 * math.sqrt(law.variance)
    assert area(law.pdf, -reach, 0) + area(law.pdf, 0, reach) == pytest.approx(1, abs=1e-9)
    second = 2 * area(lambda x: x * x * law.pdf(x), 0, reach)
    assert second == pytest.approx(law.variance, rel=1e-6)
    for x in (-4.0, -0.3, 0.0, 1.1, 5.0):
        assert law.cdf(x) == pytest.approx(0.5 + area(law.pdf, 0, x), abs=1e-9)
    for p in (1e-8, 0.2, 0.5, 0.9, 1 - 1e-6):
        assert law.cdf(law.quantile(p)) == pytest.approx(p, rel=1e-7)


def test_tails_are_not_lost():
    law = NormalLaplace(1, 2)
    x = 40 * law.variance**0.5
    # Far out only the exponential is left: e^(s^2/2) times the Laplace tail.
    assert float(law.sf(x)) == pytest.approx(0.5 * math.exp(1 / 8 - x / 2), rel=1e-9)
    assert np.isfinite(law.logpdf(1e4))


def test_adding_gaussian_noise_improves_the_profile():
    """M17: normal-Laplace (1, 2) against Laplace(2) at shift 1 and epsilon 0.25."""
    assert NormalLaplace(0, 2).delta(0.25, shift=1) == pytest.approx(0.1175, abs=5e-5)
    assert NormalLaplace(1, 2).delta(0.25, shift=1) == pytest.approx(0.0743, abs=5e-5)
    by_sum = integrate.quad(
        lambda x: max(
            0.0, NormalLaplace(1, 2).pdf(x) - math.exp(0.25) * NormalLaplace(1, 2).pdf(x - 1)
        ),
        -60,
        60,
        limit=500,
    )[0]
    assert NormalLaplace(1, 2).delta(0.25, shift=1) == pytest.approx(by_sum, abs=1e-7)


def test_two_laplace_noises_are_private_and_better_than_one():
    """B22, M16: density (1 + |q|) e^-|q| / 4; the thesis's claim that this is not DP is false."""

    def density(q):
        return (1 + abs(q)) * math.exp(-abs(q)) / 4

    def delta(epsilon):
        return integrate.quad(
            lambda q: max(0.0, density(q) - math.exp(epsilon) * density(q - 1)), -60, 60, limit=800
        )[0]

    for epsilon, single, double in (
        (0.25, 0.313, 0.146),
        (0.5, 0.2212, 0.0572),
        (0.75, 0.118, 0.0044),
    ):
        assert NormalLaplace(0, 1).delta(epsilon, shift=1) == pytest.approx(single, abs=5e-4)
        assert delta(epsilon) == pytest.approx(double, abs=5e-4)
    assert max(math.log(density(q) / density(q - 1)) for q in np.linspace(-60, 60, 999)) < 1


def test_the_error_of_a_release_adds_to_the_error_of_the_estimate():
    """B27: MSE of the release = MSE of the estimate + variance of the noise."""
    generator = np.random.default_rng(60)
    runs, n = 20_000, 50
    means = generator.uniform(0, 1, (runs, n)).mean(axis=1)
    noise = discreet.laplace(
        sensitivity=1 / n, epsilon=1, relation=discreet.NeighboringRelation.REPLACE_ONE
    )
    squared = (noise.release(means, rng=discreet.seeded_rng(61)) - 0.5) ** 2
    expected = 1 / (12 * n) + noise.std**2
    # Var of a squared error is at most its fourth moment, 24 scale^4-like: take it from the sample
    # of the exact law by the fourth moments of both parts.
    fourth = 3 * (1 / (12 * n)) ** 2 + 6 * (1 / (12 * n)) * noise.std**2 + 6 * noise.std**4
    z = stats.norm.isf(5e-10)
    assert abs(squared.mean() - expected) <= z * math.sqrt(fourth / runs)
    assert abs(squared.mean() - (expected + noise.std**2)) > z * math.sqrt(fourth / runs)


def test_norms_of_product_laplace():
    """B6: E|Z|_1^2 = p^2 + p and E|Z|_2^2 = 2p for p independent Laplace(1)."""
    p, runs = 5, 200_000
    draws = np.abs(
        discreet.laplace(sensitivity=1.0, epsilon=1, domain="reals").release(
            np.zeros((runs, p)), rng=discreet.seeded_rng(62)
        )
    )
    assert (draws.sum(axis=1) ** 2).mean() == pytest.approx(p * p + p, rel=0.02)
    assert (draws**2).sum(axis=1).mean() == pytest.approx(2 * p, rel=0.02)


@pytest.mark.parametrize("bad", [(-1, 1), (1, -1), (0, 0), (math.nan, 1), (1, math.inf)])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(InvalidArgument):
        NormalLaplace(*bad)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_divergence_does_not_depend_on_the_unit(law, unit):
    scaled = NormalLaplace(law.sigma * unit, law.scale * unit)
    for epsilon in (0.05, 0.5, 2.0):
        expected = law.delta(epsilon, shift=1)
        assert scaled.delta(epsilon, shift=unit) == pytest.approx(expected, rel=1e-6, abs=1e-14)
