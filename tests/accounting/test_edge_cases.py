"""Conversions and laws at their edges: zero, infinity, equal scales, the last case that is refused.

Every value is written out by another way than the code takes.
"""

import math
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest

from discreet.accounting import _binomial as binomial
from discreet.accounting import conversion
from discreet.accounting.conversion import UP
from discreet.core.errors import InvalidArgument, Unsupported
from discreet_studies.noise_mechanisms import location_scale_pairs as scales
from discreet_studies.private_inference import subsampling_amplification as amplification


def close(value, rel=1e-11):
    return pytest.approx(value, rel=rel, abs=0)


# ── Gaussian ─────────────────────────────────────────────────────────────────


def test_no_shift_has_the_profile_of_equal_laws():
    found = conversion.gaussian_delta(np.array([-2.0, -1e-3, 0.0, 1.0]), mu=0)
    assert found == close([-math.expm1(-2), -math.expm1(-1e-3), 0.0, 0.0])
    assert conversion.gaussian_epsilon(0.0, mu=0) == 0


def test_gaussian_delta_is_precise_on_both_sides_of_its_branches():
    """The change of formula lies at mu = 0.2 and at t = eps/mu - mu/2 = -1."""
    for mu in (0.05, 0.199, 0.2, 0.201, 1.0, 4.0):
        for t in (-6.0, -1.01, -1.0, -0.99, 0.0, 3.0):
            epsilon = mu * (t + mu / 2)
            with mpmath.workdps(50):
                e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
                true = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            found = float(conversion.gaussian_delta(epsilon, mu=mu))
            assert found == pytest.approx(float(true), rel=2e-13, abs=1e-15)


def test_a_gaussian_is_never_pure():
    assert conversion.gaussian_epsilon(0.0, mu=1e-3) == math.inf
    at_zero = float(conversion.gaussian_delta(0.0, mu=1.0))
    assert conversion.gaussian_epsilon(at_zero, mu=1.0) == 0
    assert conversion.gaussian_epsilon(at_zero * (1 - 1e-6), mu=1.0) > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(-0.1, 0.1), (math.inf, 0.1), (1, 0), (1, 1)])
def test_mu_is_refused_outside_its_domain(epsilon, delta):
    with pytest.raises(InvalidArgument):
        conversion.gaussian_mu(epsilon, delta=delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (0.01, 1e-9), (30, 0.9), (5, 1e-30)])
def test_mu_is_the_largest(epsilon, delta):
    mu = conversion.gaussian_mu(epsilon, delta=delta)
    assert float(conversion.gaussian_delta(epsilon, mu=mu)) <= delta
    assert float(conversion.gaussian_delta(epsilon, mu=mu * (1 + 1e-11))) > delta
    assert conversion.gaussian_sigma(epsilon, delta=delta, sensitivity=3) == close(3 / mu)


def test_the_classical_formula_ends_at_one():
    found = conversion.classical_sigma(0.5, delta=1e-5, sensitivity=3)
    assert found == close(3 * math.sqrt(2 * math.log(125_000)) / 0.5)
    for epsilon in (0, 1):
        with pytest.raises(InvalidArgument):
            conversion.classical_sigma(epsilon, delta=1e-5)


# ── pure, concentrated, Rényi ────────────────────────────────────────────────


def test_concentrated_conversions_at_zero():
    for convert in (conversion.zcdp_epsilon, conversion.zcdp_epsilon_optimal):
        assert convert(0.0, delta=0.0, xi=0.25) == 0.25
        assert convert(0.1, delta=0.0) == math.inf
        assert convert(0.0, delta=1e-6, xi=0.25) == close(0.25)
    edge = conversion.zcdp_delta(np.array([0.0, 0.24, 0.25, 1.0]), rho=0, xi=0.25)
    assert edge.tolist() == [1, 1, 0, 0]
    assert conversion.zcdp_delta(1.0, rho=0.1).shape == ()
    assert conversion.zcdp_delta(np.ones((2, 3)), rho=0.1).shape == (2, 3)


def test_an_offset_moves_the_curve():
    """(xi, rho)-zCDP is rho-zCDP moved by xi."""
    rho, xi = 0.05, 0.3
    assert conversion.zcdp_epsilon(rho, delta=1e-6, xi=xi) == close(
        xi + rho + 2 * math.sqrt(rho * math.log(1e6))
    )
    plain = conversion.zcdp_epsilon_optimal(rho, delta=1e-6)
    assert conversion.zcdp_epsilon_optimal(rho, delta=1e-6, xi=xi) == close(plain + xi, rel=1e-9)
    for epsilon in (0.5, 1.0, 2.0):
        moved = float(conversion.zcdp_delta(epsilon + xi, rho=rho, xi=xi))
        assert moved == close(float(conversion.zcdp_delta(epsilon, rho=rho)))
    assert conversion.zcdp_rho(1.3, delta=1e-6, xi=0.3) == close(
        conversion.zcdp_rho(1.0, delta=1e-6)
    )
    assert conversion.zcdp_rho(0.3, delta=1e-6, xi=0.3) == 0
    with pytest.raises(InvalidArgument):
        conversion.zcdp_rho(0.29, delta=1e-6, xi=0.3)


@pytest.mark.parametrize(
    ("rho", "delta"), [(1e-9, 1e-9), (1e-3, 0.2), (0.02, 1e-6), (5, 1e-12), (300, 1e-3)]
)
def test_the_best_order_is_found(rho, delta):
    """Against a fine grid of orders; every order of the conversion is valid, so none is better."""
    orders = 1 + np.exp(np.linspace(-12, 25, 40_001))
    exact = rho * orders - np.log(orders * delta) / (orders - 1) + np.log1p(-1 / orders)
    best = max(0.0, float(exact.min()))
    found = conversion.zcdp_epsilon_optimal(rho, delta=delta)
    assert found == pytest.approx(best, rel=1e-6, abs=1e-9)
    if best > 0:
        logs = (orders - 1) * (rho * orders - best) + (orders - 1) * np.log1p(-1 / orders)
        least = float(np.exp((logs - np.log(orders)).min()))
        assert float(conversion.zcdp_delta(best, rho=rho)) == close(least, rel=1e-3)
        assert float(conversion.zcdp_delta(best, rho=rho)) >= least * (1 - 1e-5)


def test_one_order_converts_both_ways():
    """Canonne, Kamath, Steinke 2020: delta = e^{(a-1)(D-eps)} (1 - 1/a)^{a-1} / a."""
    for order, divergence, delta in ((2.0, 0.5, 1e-3), (10.0, 1.0, 1e-6), (1.1, 0.01, 0.4)):
        epsilon = conversion.renyi_epsilon(divergence, order=order, delta=delta)
        true = divergence + math.log((1 - 1 / order) ** (order - 1) / (order * delta)) / (order - 1)
        assert epsilon == pytest.approx(max(0.0, true), rel=1e-11)
        if true > 0:
            back = conversion.renyi_delta(divergence, order=order, epsilon=epsilon)
            assert back == close(delta, rel=1e-9)
    assert conversion.renyi_epsilon(0.0, order=2.0, delta=0.9) == 0
    assert conversion.renyi_epsilon(-1e-9, order=2.0, delta=0.1) == math.inf
    for wrong in (-1e-9, math.inf, math.nan):
        assert conversion.renyi_delta(wrong, order=2.0, epsilon=1.0) == 1
    assert conversion.renyi_delta(50.0, order=2.0, epsilon=0.0) == 1
    assert conversion.renyi_delta(0.0, order=2.0, epsilon=1e6) == conversion.UNDERFLOW
    assert conversion.renyi_delta(0.0, order=2.0, epsilon=0.0) == close(0.25)


# ── groups and compositions ──────────────────────────────────────────────────


def test_groups_at_their_edges():
    assert conversion.group(1.0, delta=1e-6, size=1) == (1.0, 1e-6)
    epsilon, delta = conversion.group(0.5, delta=1e-6, size=4)
    assert epsilon == 2
    assert delta == close(1e-6 * sum(math.exp(0.5 * i) for i in range(4)))
    assert delta > 1e-6 * sum(math.exp(0.5 * i) for i in range(4))
    assert conversion.group(0.0, delta=0.3, size=4) == (0.0, 1.0)
    assert conversion.group(1.0, delta=0.3, size=4) == (4.0, 1.0)
    # Beyond the largest exponential: no failure stays none, any other is certain.
    assert conversion.group(400.0, delta=0.0, size=2) == (800.0, 0.0)
    assert conversion.group(400.0, delta=1e-300, size=2) == (800.0, 1.0)
    assert conversion.group(350.0, delta=1e-300, size=2)[1] == close(1e-300 * (math.exp(350) + 1))
    with pytest.raises(InvalidArgument):
        conversion.group(1.0, delta=0.0, size=0)


def test_advanced_composition_is_its_formula():
    epsilon, delta = conversion.advanced_composition(0.1, delta=1e-9, count=100, slack=1e-6)
    mean = 100 * 0.1 * math.tanh(0.05)
    assert epsilon == close(mean + 0.1 * math.sqrt(2 * 100 * math.log(1e6)))
    assert delta == close(1e-7 + 1e-6)
    # Never more than the sum, never more than certain.
    assert conversion.advanced_composition(1.0, delta=0.0, count=2, slack=1e-9)[0] == close(2.0)
    assert conversion.advanced_composition(1.0, delta=0.6, count=2, slack=0.1)[1] == 1


def response_delta(at, epsilon, delta, count):
    """Kairouz, Oh, Viswanath 2015, written out."""
    keep = 1 / (1 + math.exp(-epsilon))
    finite = sum(
        comb(count, i)
        * max(
            0.0,
            keep**i * (1 - keep) ** (count - i)
            - math.exp(at) * keep ** (count - i) * (1 - keep) ** i,
        )
        for i in range(count + 1)
    )
    stay = (1 - delta) ** count
    return 1 - stay + stay * finite


def test_responses_compose_as_written_out():
    for count, epsilon, delta in ((1, 0.7, 0.0), (3, 0.4, 0.0), (5, 1.1, 0.01), (8, 0.2, 1e-4)):
        for at in (0.0, 0.1, 0.5, 1.3):
            found = conversion.homogeneous_delta(at, epsilon=epsilon, delta=delta, count=count)
            true = response_delta(at, epsilon, delta, count)
            assert true * (1 - 1e-13) <= found == close(true, rel=1e-9)
    assert conversion.homogeneous_delta(0.0, epsilon=50.0, delta=0.5, count=3) == close(1)


def test_optimal_composition_at_its_edges():
    lost = 1 - 0.99**5
    for epsilon, delta, count, target in ((0.3, 0.0, 6, 1e-3), (0.3, 0.01, 5, lost + 0.01)):
        found = conversion.optimal_composition(epsilon, delta=delta, count=count, target=target)
        assert response_delta(found, epsilon, delta, count) <= target
        assert response_delta(found * (1 - 1e-8), epsilon, delta, count) > target
    assert conversion.optimal_composition(0.3, delta=0.01, count=5, target=lost / 2) == math.inf
    # What is lost anyway is all there is to lose: no finite epsilon meets it.
    exact = -math.expm1(5 * math.log1p(-0.01))
    assert conversion.optimal_composition(0.3, delta=0.01, count=5, target=exact) == math.inf
    assert conversion.optimal_composition(0.3, delta=0.0, count=5, target=0.0) == 1.5
    assert conversion.optimal_composition(0.3, delta=0.0, count=5, target=-1e-9) == math.inf
    assert conversion.optimal_composition(0.01, delta=0.0, count=2, target=0.5) == 0


def test_roots_are_rounded_to_the_safe_side():
    def excess(x):
        return math.sqrt(2) - x

    for high in (2.0, 1.0, 1e-3, 0.0):  # the last ones lie below the root and are doubled
        found = conversion.round_root(excess, 0.0, high)
        assert math.sqrt(2) <= found <= math.sqrt(2) * (1 + 2e-12)
    assert conversion.round_root(lambda _: 1.0, 0.0, 1.0) == math.inf
    assert conversion.round_root(lambda x: 5e11 - x, 0.0, 1.0) == close(5e11)


def test_amplification_at_its_edges():
    assert amplification.poisson(1.5, delta=1e-6, rate=1) == (1.5, 1e-6)
    assert amplification.poisson(1.5, delta=1e-6, rate=0) == (0, 0)
    above = amplification.poisson(1.0, rate=0.5)[0]
    with mpmath.workdps(40):
        true = mpmath.log(1 + (mpmath.e - 1) / 2)
    assert float(true) < above <= float(true) * (1 + 2e-12)
    # A sample that is larger than the population is the population; an empty one says nothing.
    assert amplification.without_replacement(1.0, delta=0.1, sample=9, population=5) == (1.0, 0.1)
    assert amplification.without_replacement(1.0, sample=0, population=5) == (0, 0)
    for wrong in ({"sample": -1, "population": 5}, {"sample": 1, "population": 0}):
        with pytest.raises(InvalidArgument):
            amplification.without_replacement(1.0, **wrong)
    with pytest.raises(InvalidArgument):
        amplification.poisson(1.0, delta=1.0, rate=0.5)


# ── laws that differ in place and width ──────────────────────────────────────


def test_equal_widths_are_the_known_profiles():
    for shift, scale, epsilon in ((1.0, 2.0, 0.1), (0.5, 0.5, 0.5), (3.0, 1.0, 2.9)):
        laplace = scales.laplace_pair_delta(0.0, scale, shift, scale, epsilon)
        assert laplace == close(-math.expm1((epsilon - shift / scale) / 2))
        assert scales.laplace_pair_delta(shift, scale, 0.0, scale, epsilon) == close(laplace)
        normal = scales.gaussian_pair_delta(0.0, scale, shift, scale, epsilon)
        assert normal == close(float(conversion.gaussian_delta(epsilon, mu=shift / scale)), 1e-9)
    assert scales.laplace_pair_delta(0.0, 1.0, 1.0, 1.0, 1.0) == 0
    for closed in (scales.laplace_pair_delta, scales.gaussian_pair_delta):
        assert closed(1.0, 2.0, 1.0, 2.0, 0.0) == 0
        assert closed(1.0, 2.0, 1.0, 2.0, 0.5) == 0


def test_equal_places_are_two_tails_or_a_middle():
    """Wider against narrower exceeds in both tails, narrower against wider in the middle."""
    epsilon, b = 0.2, 2.0
    edge = (epsilon + math.log(b)) / (1 - 1 / b)  # log(1/b) - x/b + x = epsilon
    tails = math.exp(-edge / b) - math.exp(epsilon - edge)
    assert scales.laplace_pair_delta(0.0, b, 0.0, 1.0, epsilon) == close(tails)
    edge = (math.log(b) - epsilon) / (1 - 1 / b)
    middle = -math.expm1(-edge) + math.exp(epsilon) * math.expm1(-edge / b)
    assert scales.laplace_pair_delta(0.0, 1.0, 0.0, b, epsilon) == close(middle)
    assert scales.laplace_pair_delta(0.0, 1.0, 0.0, b, 5.0) == 0
    from scipy.special import ndtr

    edge = math.sqrt(2 * (epsilon + math.log(b)) / (1 - 1 / b**2))
    tails = 2 * (ndtr(-edge / b) - math.exp(epsilon) * ndtr(-edge))
    assert scales.gaussian_pair_delta(0.0, b, 0.0, 1.0, epsilon) == close(tails)
    edge = math.sqrt(2 * (math.log(b) - epsilon) / (1 - 1 / b**2))
    middle = math.erf(edge / math.sqrt(2)) - math.exp(epsilon) * math.erf(edge / b / math.sqrt(2))
    assert scales.gaussian_pair_delta(0.0, 1.0, 0.0, b, epsilon) == close(middle)
    assert scales.gaussian_pair_delta(0.0, 1.0, 0.0, b, 5.0) == 0
    # Below -log b the wider law exceeds everywhere.
    assert scales.gaussian_pair_delta(0.0, b, 0.0, 1.0, -1.0) == close(-math.expm1(-1.0))


def test_far_tails_do_not_cancel():
    """Masses far out on either side, where one minus a probability would be zero."""
    for sign in (1, -1):
        found = scales.laplace_pair_delta(0.0, 1.0, sign * 1e-9, 0.5, 60.0)
        edge = (60 - math.log(0.5)) / (1 / 0.5 - 1)
        true = math.exp(-edge) - math.exp(60 - 2 * edge)
        assert found == close(true, rel=1e-6)
    found = scales.gaussian_pair_delta(0.0, 1.0, 0.0, 0.5, 60.0)
    with mpmath.workdps(40):
        edge = mpmath.sqrt(2 * (60 + mpmath.log(2)) / 3)
        true = 2 * (mpmath.ncdf(-edge) - mpmath.exp(60) * mpmath.ncdf(-2 * edge))
    assert found == close(float(true), rel=1e-9)


def test_smooth_noise_without_smoothing():
    assert scales.smooth_laplace_delta(1.0, epsilon=1.0, beta=0) == 0
    assert scales.smooth_laplace_delta(0.99, epsilon=1.0, beta=0) == math.inf
    found = scales.smooth_laplace_delta(2.0, epsilon=1.0, beta=0.1)
    w = math.expm1(0.1)
    true = -math.expm1(-0.1) * math.exp(-1.1 / w) * math.cosh(0.5 / w)
    assert true < found == close(true)


def test_the_smooth_multiplier_is_the_smallest():
    for epsilon, delta, beta in ((1.0, 1e-6, 0.03), (1.0, 0.2, 0.3), (0.5, 1e-3, 0.04)):
        found = scales.smooth_laplace_multiplier(epsilon, delta=delta, beta=beta)
        least = max(1.0, epsilon * math.exp(-beta) / (epsilon - beta))
        assert found >= least
        assert scales.smooth_laplace_delta(found, epsilon=epsilon, beta=beta) <= delta
        if found > least * (1 + 1e-9):
            less = scales.smooth_laplace_delta(found * (1 - 1e-9), epsilon=epsilon, beta=beta)
            assert less > delta
        else:
            assert found == close(least)
    limit = scales.smooth_laplace_delta(math.inf, epsilon=1.0, beta=0.1)
    with pytest.raises(Unsupported):
        scales.smooth_laplace_multiplier(1.0, delta=limit, beta=0.1)
    assert scales.smooth_laplace_multiplier(1.0, delta=limit * 1.01, beta=0.1) > 5


# ── binomial laws ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("n", "chance"), [(1, 0.3), (7, 0.5), (40, 0.015625), (200, 0.9375), (33, 0.5)]
)
def test_every_mass_and_tail_of_small_laws(n, chance):
    k = np.arange(n + 1.0)
    p = Fraction(chance)
    exact = [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    found = np.exp(binomial.log_mass(k, trials=float(n), chance=chance))
    assert found == pytest.approx([float(x) for x in exact], rel=1e-12)
    tails = [float(sum(exact[i:])) for i in range(n + 1)]
    assert binomial.at_least(k, trials=float(n), chance=chance) == pytest.approx(tails, rel=1e-12)
    outside = binomial.at_least(np.array([-1.0, 0.0, n + 1.0]), trials=float(n), chance=chance)
    assert outside.tolist() == [1, 1, 0]
    # A law of its own for each.
    mixed = binomial.log_mass(np.array([0.0, n]), trials=np.array([2.0, n]), chance=chance)
    assert mixed == pytest.approx([2 * math.log1p(-chance), n * math.log(chance)], rel=1e-13)


def test_the_correction_of_stirling_joins_its_series():
    for n in (1.0, 2.0, 15.0, 15.9, 16.0, 17.0, 300.0):
        with mpmath.workdps(40):
            m = mpmath.mpf(n)
            true = mpmath.loggamma(m + 1) - (m + 0.5) * mpmath.log(m) + m
            true -= mpmath.log(2 * mpmath.pi) / 2
        assert float(binomial._stirling(np.array([n]))[0]) == pytest.approx(float(true), abs=3e-14)


def test_the_deviance_joins_its_series():
    for gap in (-0.999, -0.11, -0.1, -0.099, -1e-6, 0.0, 1e-6, 0.099, 0.1, 0.11, 3.0):
        with mpmath.workdps(40):
            mean, x = mpmath.mpf(50.0), mpmath.mpf(50.0 * (1 + gap))
            true = x * mpmath.log(x / mean) - x + mean
        found = binomial._deviance(np.array([float(x)]), np.array([50.0]))
        assert float(found[0]) == pytest.approx(float(true), rel=2e-12, abs=1e-28)


def chernoff(k, n, chance):
    """n KL(k/n, chance)."""
    x, y = k / n, 1 - k / n
    first = x * math.log(x / chance) if x else 0.0
    return n * (first + (y * math.log(y / (1 - chance)) if y else 0.0))


@pytest.mark.parametrize(("n", "chance"), [(1, 0.5), (20, 0.3), (1000, 0.01), (1000, 0.9)])
@pytest.mark.parametrize("tail", [1e-2, 1e-6, 1e-30])
def test_windows_are_as_narrow_as_the_bound_allows(n, chance, tail):
    span = binomial.window(n, chance=chance, tail=tail)
    wanted = math.log(1 / tail)
    assert 0 <= span.first <= n * chance <= span.last <= n
    assert span.first == 0 or chernoff(span.first - 1, n, chance) > wanted
    assert span.last == n or chernoff(span.last + 1, n, chance) > wanted
    assert span.first == math.floor(n * chance) or chernoff(span.first, n, chance) <= wanted
    assert span.last == math.ceil(n * chance) or chernoff(span.last, n, chance) <= wanted


def test_margins_are_the_margin():
    assert pytest.approx(1e-12, rel=1e-3) == UP - 1
    assert conversion.pure_to_rho(1.0) == math.tanh(0.5) * UP
    assert conversion.laplace_to_rho(1.0) == math.exp(-1) * UP
