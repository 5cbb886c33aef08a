"""Formulas where they cancel: tiny losses, joints of two formulas, laws without one of their parts.

Every value is compared with many digits of the same theorem.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.accounting import _binomial as binomial
from discreet.accounting import calibrate, conversion, renyi
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import (
    BoundedRangeEvent,
    GdpEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    TruncatedLaplaceEvent,
)
from discreet.core.relation import NeighboringRelation
from discreet_studies.noise_mechanisms import location_scale_pairs as scales
from discreet_studies.noise_mechanisms.normal_laplace import NormalLaplace

F = Fraction
TINY = [10.0**-k for k in range(12)] + [0.99e-3, 1e-3, 1.01e-3, 3e-5, 7.3e-7, 2.7, 30.0]


def close(value, rel=1e-11):
    return pytest.approx(value, rel=rel, abs=0)


@pytest.mark.parametrize("epsilon", TINY)
def test_the_rho_of_a_loss_is_never_less_than_it_is(epsilon):
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        laplace = e + mpmath.expm1(-e)
        pure = e * mpmath.tanh(e / 2)
    assert laplace <= conversion.laplace_to_rho(epsilon) <= laplace * (1 + 3e-11)
    assert pure <= conversion.pure_to_rho(epsilon) <= pure * (1 + 3e-12)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 30.0, 2000.0])
@pytest.mark.parametrize("epsilon", TINY)
def test_divergences_of_tiny_losses_are_never_less_than_they_are(epsilon, order):
    """Mironov 2017: of a randomized response and of Laplace noise."""
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
        top = mpmath.exp(a * e) + mpmath.exp((1 - a) * e)
        response = mpmath.log(top / (1 + mpmath.exp(e))) / (a - 1)
        inside = a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)
        laplace = mpmath.log(inside / (2 * a - 1)) / (a - 1)
    for found, true in (
        (renyi._response(epsilon, order), response),
        (renyi._laplace(epsilon, order), laplace),
    ):
        assert true * (1 - 1e-13) <= found
        slack = min(1e-14 / (order - 1), 1e-2 * float(true))
        assert found <= true * (1 + 1e-10) + slack
        assert found <= epsilon


def test_very_many_tiny_reports_are_not_free():
    """Their divergences add up to that of the sum of their rho, about."""
    count, epsilon = 10**16, F(1, 10**8)
    one = renyi.divergence(PureEvent(epsilon), order=2.0)
    assert 0.99 <= count * one <= 1.02


# ── binomial laws ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [16.0, 17.0, 20.0, 40.0, 1000.0])
def test_the_series_of_stirling_to_its_last_term(n):
    with mpmath.workdps(50):
        m = mpmath.mpf(n)
        true = mpmath.loggamma(m + 1) - (m + 0.5) * mpmath.log(m) + m
        true -= mpmath.log(2 * mpmath.pi) / 2
    assert float(binomial._stirling(np.array([n]))[0]) == pytest.approx(float(true), abs=3e-16)


@pytest.mark.parametrize("gap", [0.0999, -0.0999, 0.05, -0.02, 1e-3])
def test_the_series_of_the_deviance_to_its_last_term(gap):
    with mpmath.workdps(50):
        mean = mpmath.mpf(64.0)
        x = mpmath.mpf(float(64.0 * (1 + gap)))
        true = x * mpmath.log(x / mean) - x + mean
    found = binomial._deviance(np.array([float(x)]), np.array([64.0]))
    assert float(found[0]) == pytest.approx(float(true), rel=2e-15 + 1e-18 / gap**2)


# ── sums of noise ────────────────────────────────────────────────────────────


def test_one_part_alone_has_its_own_density():
    for scale in (0.3, 2.0, 5.0):
        law = NormalLaplace(0, scale)
        for x in (-7.0, 0.0, 1.5):
            assert float(law.logpdf(x)) == close(-abs(x) / scale - math.log(2 * scale))
            tail = math.exp(-abs(x) / scale) / 2
            assert float(law.sf(x)) == close(tail if x >= 0 else 1 - tail)
    for sigma in (0.3, 2.0, 5.0):
        law = NormalLaplace(sigma, 0)
        for x in (-7.0, 0.0, 1.5):
            true = -(x**2) / (2 * sigma**2) - math.log(sigma) - math.log(2 * math.pi) / 2
            assert float(law.logpdf(x)) == close(true)
            assert float(law.sf(x)) == close(math.erfc(x / sigma / math.sqrt(2)) / 2)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_below_the_smallest_loss_every_output_counts(sigma):
    """Then the divergence is 1 - e^epsilon, whatever the laws are."""
    law = NormalLaplace(sigma, 1.0)
    for epsilon in (-1.0, -1.5, -30.0):
        assert law.delta(epsilon, shift=1.0) == pytest.approx(-math.expm1(epsilon), rel=1e-9)


def test_quantiles_of_both_sides():
    law = NormalLaplace(1.0, 2.0)
    for p in (0.01, 0.49, 0.499999):
        assert law.quantile(p) == close(-law.quantile(1 - p), rel=1e-9)
        assert law.quantile(p) < 0
        assert float(law.cdf(law.quantile(p))) == close(p, rel=1e-9)
    assert law.quantile(0.5) == 0


# ── laws that differ in place and width ──────────────────────────────────────


def test_normal_laws_that_differ_in_both():
    """By the sum over a fine grid: the center of mass of no formula."""
    x = np.linspace(-60, 60, 400_001)
    for m1, s1, m2, s2 in ((0.0, 1.0, 0.7, 1.2), (0.4, 1.5, -0.3, 1.0), (0.0, 2.0, 1.0, 1.9)):
        p = np.exp(-(((x - m1) / s1) ** 2) / 2) / (s1 * math.sqrt(2 * math.pi))
        q = np.exp(-(((x - m2) / s2) ** 2) / 2) / (s2 * math.sqrt(2 * math.pi))
        for epsilon in (0.0, 0.3, 1.0):
            true = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))
            found = scales.gaussian_pair_delta(m1, s1, m2, s2, epsilon)
            assert found == pytest.approx(true, rel=1e-5, abs=1e-7)


def test_laplace_laws_that_differ_in_both():
    x = np.linspace(-60, 60, 400_001)
    for m1, b1, m2, b2 in ((0.0, 1.0, 0.7, 1.2), (0.4, 1.5, -0.3, 1.0), (0.0, 2.0, 1.0, 1.9)):
        p = np.exp(-np.abs(x - m1) / b1) / (2 * b1)
        q = np.exp(-np.abs(x - m2) / b2) / (2 * b2)
        for epsilon in (0.0, 0.1, 0.5):
            true = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))
            found = scales.laplace_pair_delta(m1, b1, m2, b2, epsilon)
            assert found == pytest.approx(true, rel=1e-4, abs=1e-7)


# ── joints of formulas ───────────────────────────────────────────────────────


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("t", [-0.99, -0.5, 0.0, 0.5, 1.0, 4.0])
def test_a_tiny_shift_of_a_gaussian_keeps_its_digits(mu, t):
    epsilon = mu * (t + mu / 2)
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        true = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert float(conversion.gaussian_delta(epsilon, mu=mu)) == close(float(true), rel=1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-3])
def test_the_best_epsilon_of_a_rho_and_its_delta_meet(rho, delta):
    """No order is better by a millionth, and the delta of the best epsilon is the one asked for."""
    epsilon = conversion.zcdp_epsilon_optimal(rho, delta=delta)
    assert epsilon > 0
    back = float(conversion.zcdp_delta(epsilon, rho=rho))
    assert back == close(delta, rel=5e-4)
    assert back >= delta * (1 - 1e-8)


def test_scales_end_forty_digits_below_their_first():
    for scale in (1 / 3, 0.7, 1.1, 3.3e-9, 12345.678, 2.0**20 + 1 / 3):
        found = calibrate._short(scale)
        unit = F(2) ** (math.floor(math.log2(scale)) - 40)
        assert (found / unit).denominator == 1
        assert 0 <= found - F(scale) < unit


def test_the_search_for_a_scale_ends_within_a_thousand_millionth():
    edge = F(7, 3)
    asked = []

    def certified(scale):
        asked.append(scale)
        return scale >= edge

    found = calibrate._bisect(certified, start=F(1))
    assert edge <= found <= edge * (1 + F(1, 10**9))
    assert max(scale for scale in asked if scale < edge) >= found * (1 - F(11, 10**10))
    assert len(asked) < 40


def test_where_the_laws_lie_does_not_matter():
    """Moved together, or mirrored, two laws are as easy to tell apart as before."""
    for closed in (scales.laplace_pair_delta, scales.gaussian_pair_delta):
        for m, s1, s2 in ((0.7, 1.0, 1.2), (-0.7, 1.5, 1.0), (2.0, 1.0, 1.0), (0.0, 1.0, 1.3)):
            for epsilon in (0.0, 0.2, 0.5):
                here = closed(0.0, s1, m, s2, epsilon)
                for move in (-16.0, 5.0, 64.0):
                    moved = closed(move, s1, m + move, s2, epsilon)
                    assert moved == pytest.approx(here, rel=1e-9, abs=1e-13)
                assert closed(0.0, s1, -m, s2, epsilon) == pytest.approx(here, rel=1e-9, abs=1e-15)


# ── one is not zero ──────────────────────────────────────────────────────────


def test_a_rho_of_one_is_worth_what_its_formula_says():
    for convert in (conversion.zcdp_epsilon, conversion.zcdp_epsilon_optimal):
        assert convert(1.0, delta=0.0) == math.inf
        assert 1 < convert(1.0, delta=1e-6) <= (1 + 2 * math.sqrt(math.log(1e6))) * (1 + 2e-12)
    # At order two: e^{2 - eps} / 4.
    assert 0 < float(conversion.zcdp_delta(3.0, rho=1.0)) <= math.exp(-1) / 4 * (1 + 1e-9)


def test_a_beta_of_one_is_worth_what_its_formula_says():
    w = math.expm1(1.0)
    true = -math.expm1(-1.0) * math.exp(-4.0 / w) * math.cosh(1.5 / w)
    assert scales.smooth_laplace_delta(2.0, epsilon=3.0, beta=1.0) == close(true)
    found = scales.smooth_laplace_multiplier(3.0, delta=true * (1 + 1e-9), beta=1.0)
    assert found == close(2.0, rel=1e-6)
    assert scales._positive(1.0, -0.5, -math.inf, math.inf) == (0.5, math.inf)
    assert scales._positive(-1.0, -0.5, -math.inf, math.inf) == (-math.inf, -0.5)
    assert scales._positive(0.0, 1.0, -1.0, 2.0) == (-1.0, 2.0)
    assert scales._positive(0.0, 0.0, -1.0, 2.0) == (0.0, 0.0)


def test_a_scale_of_one_beside_a_sigma():
    """The density at zero: e^{s^2/2} Phi(-s), s = sigma/scale."""
    for sigma in (0.5, 2.0):
        tail = math.erfc(sigma / math.sqrt(2)) / 2
        found = float(NormalLaplace(sigma, 1.0).pdf(0.0))
        assert found == close(math.exp(sigma**2 / 2) * tail, rel=1e-10)


@pytest.mark.parametrize(
    ("mu", "percent", "away"),
    [(0.0053, 20, 34.4), (0.0012, 42, 27.7), (0.05, 69, 27.0), (2, 60, 9)],
)
def test_the_delta_of_a_sampled_gaussian_is_never_less_than_it_is(mu, percent, away):
    """``q delta(log(1 + (e^eps - 1)/q))``, far out in the tail."""
    event, rate = GdpEvent(F(str(mu))), F(percent, 100)
    epsilon = math.log1p(float(rate) * math.expm1(mu * (away + mu / 2)))
    with mpmath.workdps(60):
        m, q, e = (
            mpmath.mpf(x.numerator) / x.denominator for x in (event.mu, rate, F(repr(epsilon)))
        )
        inside = mpmath.log1p(mpmath.expm1(e) / q)
        above = mpmath.ncdf(m / 2 - inside / m)
        true = q * (above - mpmath.exp(inside) * mpmath.ncdf(-m / 2 - inside / m))
    poisson = Guarantee(SampledEvent(rate, event)).delta(epsilon)
    drawn = Guarantee(
        SampledWithoutReplacementEvent(percent, 100, event), NeighboringRelation.REPLACE_ONE
    )
    for found in (poisson, drawn.delta(epsilon)):
        assert true <= found <= true * (1 + 1e-8)


@pytest.mark.parametrize(
    ("scale", "shift", "bound"),
    [(1 << 31, 1, 53_400_279), (1 << 32, 1, 5_436_364), (1 << 33, 2, 34_454_287_184), (3, 2, 40)],
)
def test_what_truncated_noise_gives_away_is_never_less_than_it_is(scale, shift, bound):
    """The mass beyond the neighbor's reach, ``(r^(b+1-s) - r^(b+1)) / (1 + r - 2 r^(b+1))``."""
    event = TruncatedLaplaceEvent(F(scale), shift, bound)
    with mpmath.workdps(60):
        a = mpmath.mpf(1) / scale
        end = mpmath.exp(-a * (bound + 1))
        true = end * mpmath.expm1(a * shift) / (1 + mpmath.exp(-a) - 2 * end)
    for epsilon in (F(shift, scale), F(2 * shift, scale)):
        assert true <= Guarantee(event).delta(epsilon) <= true * (1 + 1e-11)


def test_just_below_the_largest_loss_of_truncated_noise_all_outputs_count():
    """A rounding below 20/0.68, nearly all the mass has a loss above epsilon."""
    scale = F("0.6836047581829002")
    epsilon = float(20 / scale)
    with mpmath.workdps(60):
        gap = mpmath.mpf((20 / scale).numerator) / (20 / scale).denominator - mpmath.mpf(
            repr(epsilon)
        )
        true = -mpmath.expm1(-gap) / 2
    assert 1e-16 < true <= Guarantee(TruncatedLaplaceEvent(scale, 20, 74)).delta(epsilon) < 1e-12


@pytest.mark.parametrize(
    "epsilon", [F(1, 10**300), F(1, 10**20), F(1, 10**8), F(3), F(750), F(10**6)]
)
def test_a_bounded_range_of_any_length(epsilon):
    """Dong, Durfee, Rogers 2020: ``(1 - e^((at - eps)/2))^2 / (1 - e^-eps)``."""
    for share in (F(0), F(1, 2), F(9999, 10000)):
        at = epsilon * share
        with mpmath.workdps(60):
            e, x = (mpmath.mpf(one.numerator) / one.denominator for one in (epsilon, at))
            true = mpmath.expm1((x - e) / 2) ** 2 / -mpmath.expm1(-e)
        found = Guarantee(BoundedRangeEvent(epsilon)).delta(at)
        assert true <= found <= true * (1 + 1e-6) + 1e-320


def test_a_million_responses_are_never_worth_less_than_they_are():
    """Logarithms of large factorials have large errors in their last place."""
    count, epsilon, at = 10**6, 0.001, 2.0
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        ones = 501_000
        log = (
            mpmath.loggamma(count + 1)
            - mpmath.loggamma(ones + 1)
            - mpmath.loggamma(count - ones + 1)
        )
        mass = mpmath.exp(log + ones * mpmath.log(p) + (count - ones) * mpmath.log(1 - p))
        true, first = mpmath.mpf(0), mass
        while mass > first * mpmath.mpf(10) ** -14:
            true += mass * -mpmath.expm1(min(at - (2 * ones - count) * mpmath.mpf(epsilon), 0))
            mass *= mpmath.mpf(count - ones) / (ones + 1) * p / (1 - p)
            ones += 1
    found = conversion.homogeneous_delta(at, epsilon=epsilon, delta=0.0, count=count)
    assert true <= found <= true * (1 + 1e-8)
