"""Conversions against tables, round trips and independent formulas."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import integrate, stats

from discreet.accounting import conversion
from discreet.core.errors import InvalidArgument, Unsupported
from discreet_studies.noise_mechanisms.location_scale_pairs import (
    gaussian_pair_delta,
    laplace_pair_delta,
    smooth_laplace_delta,
    smooth_laplace_multiplier,
)
from discreet_studies.private_inference import subsampling_amplification as amplification


def reference(epsilon, mu):
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(1, 0.2), (5e-6, 1e-6), (0.005, 1e-3), (0, 1e-6), (10, 0.5), (-1, 1), (1300, 50), (2, 0.19)],
)
def test_gaussian_delta_has_full_precision_in_the_tails(epsilon, mu):
    assert float(conversion.gaussian_delta(epsilon, mu=mu)) == pytest.approx(
        reference(epsilon, mu), rel=1e-13
    )


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 1.0), (1.0, 0.3), (3.0, 2.0)])
def test_gaussian_delta_is_the_integral(epsilon, mu):
    def excess(x):
        return stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x)

    edge = epsilon / mu + mu / 2
    direct, _ = integrate.quad(excess, edge, edge + 12)
    assert float(conversion.gaussian_delta(epsilon, mu=mu)) == pytest.approx(direct, abs=1e-10)


@given(st.floats(1e-6, 50), st.floats(1e-12, 0.4))
def test_gaussian_epsilon_inverts_delta(mu, delta):
    epsilon = conversion.gaussian_epsilon(delta, mu=mu)
    assert float(conversion.gaussian_delta(epsilon, mu=mu)) <= delta
    if epsilon > 0:
        assert float(conversion.gaussian_delta(epsilon * (1 - 1e-9), mu=mu)) > delta * (1 - 1e-7)


# K: the column mu(epsilon, 1e-6) of the table of noise levels.
@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [
        (0.01, 0.00326),
        (0.1, 0.02754),
        (0.2, 0.05266),
        (0.5, 0.12411),
        (1, 0.23670),
        (2, 0.44833),
        (3, 0.64773),
        (5, 1.0204),
        (10, 1.8481),
    ],
)
def test_table_of_mu(epsilon, mu):
    found = conversion.gaussian_mu(epsilon, delta=1e-6)
    assert found == pytest.approx(mu, abs=1e-5 if mu < 1 else 1e-4)
    assert conversion.gaussian_epsilon(1e-6, mu=found) == pytest.approx(epsilon, rel=1e-9)


# E5: sigma at delta = 1e-5 by four routes.
E5 = [
    (0.05, 96.90, 96.08, 64.27, 57.77),
    (0.1, 48.45, 48.09, 33.98, 30.75),
    (0.3, 16.15, 16.10, 12.30, 11.24),
    (0.5, 9.690, 9.700, 7.667, 7.032),
    (0.9, 5.383, 5.434, 4.457, 4.107),
    (1, None, 4.901, 4.045, 3.731),
    (2, None, 2.499, 2.149, 1.994),
    (5, None, 1.055, 0.953, 0.892),
]


@pytest.mark.parametrize(("epsilon", "classical", "zcdp", "cks", "analytic"), E5)
def test_table_of_sigma(epsilon, classical, zcdp, cks, analytic):
    delta = 1e-5
    if classical is None:
        with pytest.raises(InvalidArgument):
            conversion.classical_sigma(epsilon, delta=delta)
    else:
        assert conversion.classical_sigma(epsilon, delta=delta) == pytest.approx(
            classical, rel=6e-4
        )
    rho = conversion.zcdp_rho(epsilon, delta=delta)
    assert 1 / math.sqrt(2 * rho) == pytest.approx(zcdp, rel=6e-4)
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(epsilon, rel=1e-11)
    assert conversion.zcdp_epsilon_optimal(1 / (2 * cks**2), delta=delta) == pytest.approx(
        epsilon, rel=2e-3
    )
    assert conversion.gaussian_sigma(epsilon, delta=delta) == pytest.approx(analytic, rel=6e-4)


def test_zcdp_beats_classical_below_446():
    def zcdp(epsilon):
        return 1 / math.sqrt(2 * conversion.zcdp_rho(epsilon, delta=1e-5))

    assert zcdp(0.4) < conversion.classical_sigma(0.4, delta=1e-5)
    assert zcdp(0.5) > conversion.classical_sigma(0.5, delta=1e-5)


# E6: k Gaussian releases at sigma = 10, delta = 1e-6.
@pytest.mark.parametrize(
    ("count", "zcdp", "cks", "exact"),
    [
        (1, 0.531, 0.430, 0.397),
        (2, 0.753, 0.622, 0.575),
        (5, 1.200, 1.014, 0.941),
        (10, 1.712, 1.472, 1.368),
        (100, 5.757, 5.222, 4.887),
    ],
)
def test_table_of_repeated_gaussians(count, zcdp, cks, exact):
    rho = count / 200
    assert conversion.zcdp_epsilon(rho, delta=1e-6) == pytest.approx(zcdp, abs=6e-4)
    assert conversion.zcdp_epsilon_optimal(rho, delta=1e-6) == pytest.approx(cks, abs=6e-4)
    assert conversion.gaussian_epsilon(1e-6, mu=math.sqrt(2 * rho)) == pytest.approx(
        exact, abs=6e-4
    )


@example(1 / 128, 1 / 16)
@given(st.floats(1e-4, 10), st.floats(1e-12, 0.1))
def test_optimal_conversion_never_loses(rho, delta):
    best = conversion.zcdp_epsilon_optimal(rho, delta=delta)
    assert best <= conversion.zcdp_epsilon(rho, delta=delta) * (1 + 1e-9)
    assert best >= conversion.gaussian_epsilon(delta, mu=math.sqrt(2 * rho)) * (1 - 1e-9)
    back = float(conversion.zcdp_delta(best, rho=rho))
    assert back <= delta * 1.01
    assert best == 0 or back >= delta * 0.99


def test_b18():
    assert conversion.gaussian_sigma(1, delta=1e-4) ** 2 == pytest.approx(10.149, abs=0.005)
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert float(conversion.gaussian_delta(10.0, mu=1 / classical)) == pytest.approx(
        2.265e-5, rel=1e-3
    )


def test_groups_and_relations():
    assert conversion.group(1.0, delta=1e-6, size=3)[1] == pytest.approx(1.1107e-5, rel=1e-4)  # B24
    assert conversion.group(0.0, delta=1e-6, size=3) == (0.0, pytest.approx(3e-6))
    assert conversion.replace_one(1.0) == (2.0, 0.0)  # B1
    assert conversion.replace_one(1.0, delta=1e-6)[1] == pytest.approx(3.718e-6, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
def test_concentrated_laplace_and_pure_are_tight(epsilon):
    """C16: the supremum of D_a / a over orders is the closed form, approached at order 1."""
    laplace, response = 0.0, 0.0
    for excess in np.exp(np.linspace(math.log(1e-4), math.log(1e4), 200)):
        a = 1 + excess
        top = np.logaddexp(math.log(a) + excess * epsilon, math.log(excess) - a * epsilon)
        laplace = max(laplace, (top - math.log(2 * a - 1)) / excess / a)
        top = np.logaddexp(a * epsilon, (1 - a) * epsilon)
        response = max(response, (top - np.logaddexp(0, epsilon)) / excess / a)
    assert laplace == pytest.approx(conversion.laplace_to_rho(epsilon), rel=1e-3)
    assert response == pytest.approx(conversion.pure_to_rho(epsilon), rel=1e-3)
    assert conversion.pure_to_rho(epsilon) <= epsilon**2 / 2 * (1 + 1e-9)


def test_optimal_composition_is_the_smallest():
    exact = conversion.optimal_composition(0.1, delta=0.0, count=100, target=1e-6)
    advanced, spent = conversion.advanced_composition(0.1, delta=0.0, count=100, slack=1e-6)
    assert exact == pytest.approx(4.774568, rel=1e-6)
    assert exact < advanced <= 10
    assert spent == pytest.approx(1e-6)
    assert conversion.optimal_composition(0.1, delta=0.0, count=100, target=0.0) == pytest.approx(
        10
    )
    assert conversion.optimal_composition(0.1, delta=1e-3, count=10, target=1e-3) == math.inf


def test_amplification():
    epsilon, delta = amplification.poisson(1.0, delta=1e-6, rate=0.1)
    assert epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    assert delta == pytest.approx(1e-7)
    assert amplification.without_replacement(1.0, sample=5, population=50)[0] == pytest.approx(
        epsilon
    )
    assert amplification.poisson(1.0, rate=1)[0] == pytest.approx(1.0)
    with pytest.raises(InvalidArgument):
        amplification.poisson(1.0, rate=1.1)


def laplace_log(x, m, b):
    return -np.abs(x - m) / b - np.log(2 * b)


def normal_log(x, m, b):
    return -(((x - m) / b) ** 2) / 2 - np.log(b * np.sqrt(2 * np.pi))


@pytest.mark.parametrize(
    ("log", "law", "closed"),
    [
        (laplace_log, stats.laplace, laplace_pair_delta),
        (normal_log, stats.norm, gaussian_pair_delta),
    ],
)
def test_pairs_of_different_scale_equal_quadrature(log, law, closed):
    """B46: on 10^3 random pairs, against sign changes found on a grid and refined."""
    random = np.random.default_rng(3)
    worst = 0.0
    for _ in range(1000):
        m1, m2 = random.normal(size=2)
        s1, s2 = np.exp(random.uniform(-1, 1, size=2))
        epsilon = random.uniform(0, 2)
        vertex = (m1 / s1**2 - m2 / s2**2) / (1 / s1**2 - 1 / s2**2)  # of the normal log-ratio
        x = np.sort(np.concatenate([np.linspace(-60, 60, 2001), [m1, m2, vertex]]))

        def ratio(at, m1=m1, m2=m2, s1=s1, s2=s2, epsilon=epsilon):
            return log(at, m1, s1) - log(at, m2, s2) - epsilon > 0

        inside = ratio(x)
        change = np.flatnonzero(inside[1:] != inside[:-1])
        low, high = x[change], x[change + 1]
        for _ in range(70):
            middle = (low + high) / 2
            same = ratio(middle) == inside[change]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        edges = np.array([-np.inf, *low, np.inf])
        mass = np.diff(law.cdf(edges, m1, s1)) - math.exp(epsilon) * np.diff(law.cdf(edges, m2, s2))
        worst = max(worst, abs(np.maximum(mass, 0).sum() - closed(m1, s1, m2, s2, epsilon)))
    assert worst < 1e-10


# A40: the multiplier at delta = 1e-6.
KAPPA = {
    0.5: {0.001: 1.0105, 0.005: 1.0734, 0.01: 1.1780, 0.02: 1.4964, 0.0345: 2.5952},
    1.0: {
        0.001: 1.0052,
        0.005: 1.0354,
        0.01: 1.0817,
        0.02: 1.1988,
        0.0345: 1.4437,
        0.05: 1.8794,
        0.07: 3.1862,
    },
    2.0: {0.001: 1.0026, 0.02: 1.0904, 0.0345: 1.1816, 0.07: 1.5222, 0.1: 2.0676, 0.15: 5.8302},
    4.0: {0.001: 1.0013, 0.01: 1.0193, 0.05: 1.1325, 0.1: 1.3480, 0.15: 1.7055, 0.2: 2.3912},
    8.0: {0.05: 1.0621, 0.1: 1.1482, 0.2: 1.4102},
    0.1: {0.001: 1.0550, 0.005: 1.5199, 0.01: 4.1030},
}


@pytest.mark.parametrize(("epsilon", "beta"), [(e, b) for e, row in KAPPA.items() for b in row])
def test_table_of_kappa(epsilon, beta):
    kappa = smooth_laplace_multiplier(epsilon, delta=1e-6, beta=beta)
    assert kappa == pytest.approx(KAPPA[epsilon][beta], abs=2e-4)
    for s in np.exp(np.linspace(-beta, beta, 41)):  # the worst ratio of scales is at the end
        found = laplace_pair_delta(0.0, kappa / epsilon, min(1.0, s), kappa * s / epsilon, epsilon)
        assert found <= 1e-6 * (1 + 1e-9)
    worst = math.exp(-beta)
    at_end = laplace_pair_delta(0.0, kappa / epsilon, worst, kappa * worst / epsilon, epsilon)
    assert at_end == pytest.approx(
        smooth_laplace_delta(kappa, epsilon=epsilon, beta=beta), abs=1e-12
    )


def test_smooth_multiplier_limits():
    assert smooth_laplace_multiplier(1.0, delta=1e-6, beta=0.0) == 1.0
    with pytest.raises(InvalidArgument):
        smooth_laplace_multiplier(1.0, delta=1e-6, beta=1.0)
    with pytest.raises(Unsupported):
        smooth_laplace_multiplier(1.0, delta=1e-6, beta=0.1)
