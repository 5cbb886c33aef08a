"""Exact profiles against sums and integrals that know nothing of the closed forms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting._event_tree import lattice_gaussian
from discreet.accounting.conversion import gaussian_delta
from discreet.accounting.dominating_pairs import BoundedRangePair, LaplacePair, delta
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EitherEvent,
    LaplaceEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    TruncatedLaplaceEvent,
)
from discreet.core.relation import NeighboringRelation


def hockey(p, q, epsilon):
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0).sum())


def check(event, p, q, relation=NeighboringRelation.ADD_REMOVE):
    """The claimed delta equals the sum over outputs, in the worse direction."""
    guarantee = Guarantee(event, relation)
    for epsilon in (0.0, 0.01, 0.1, 0.3, 0.7, 1.1, 2.0):
        true = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
        claimed = guarantee.delta(epsilon)
        assert claimed >= true - 1e-14  # the sum itself is only that exact
        assert claimed == pytest.approx(true, rel=1e-9, abs=1e-14)


def lattice(log_weight, shift, reach):
    k = np.arange(-reach, reach + 1)
    p = np.exp(log_weight(k))
    q = np.exp(log_weight(k - shift))
    total = np.exp(log_weight(np.arange(-3 * reach, 3 * reach + 1))).sum()
    return p / total, q / total


@given(st.fractions(Fraction(1, 2), 20), st.integers(1, 12))
def test_discrete_laplace(scale, shift):
    t = float(scale)
    p, q = lattice(lambda k: -np.abs(k) / t, shift, 40 * math.ceil(t) + shift)
    check(DiscreteLaplaceEvent(scale, shift), p, q)


@given(st.fractions(Fraction(1, 2), 60), st.integers(1, 5))
def test_discrete_gaussian(variance, shift):
    v = float(variance)
    p, q = lattice(lambda k: -(k**2) / (2 * v), shift, 40 * math.ceil(math.sqrt(v)) + shift)
    check(DiscreteGaussianEvent(variance, Fraction(shift**2), 1), p, q)


@given(st.fractions(Fraction(1, 2), 20), st.integers(1, 6), st.integers(0, 40))
def test_truncated_laplace(scale, shift, bound):
    k = np.arange(-bound - shift, bound + shift + 1)
    w = np.where(np.abs(k) <= bound, np.exp(-np.abs(k) / float(scale)), 0)
    moved = np.where(np.abs(k - shift) <= bound, np.exp(-np.abs(k - shift) / float(scale)), 0)
    check(TruncatedLaplaceEvent(scale, shift, bound), w / w.sum(), moved / moved.sum())


@given(st.fractions(Fraction(1, 5), 5), st.fractions(Fraction(1, 50), Fraction(9, 10)))
def test_poisson_sample_of_a_lattice(scale, rate):
    t, r = float(scale), float(rate)
    p, q = lattice(lambda k: -np.abs(k) / t, 2, 60 * math.ceil(t) + 2)
    check(SampledEvent(rate, DiscreteLaplaceEvent(scale, 2)), (1 - r) * q + r * p, q)


@given(st.integers(1, 9))
def test_sample_without_replacement_is_the_worst_third_law(sample):
    """Undrawn records may give any third law: the claim covers all of them, and one attains it."""
    r = sample / 10
    p, q = lattice(lambda k: -np.abs(k) / 2.0, 2, 120)
    inner = DiscreteLaplaceEvent(Fraction(2), 2)
    claim = Guarantee(
        SampledWithoutReplacementEvent(sample, 10, inner), NeighboringRelation.REPLACE_ONE
    )
    k = np.arange(-120, 121)
    for epsilon in (0.0, 0.05, 0.2, 0.5):
        attained = 0.0
        for center in (0, 1, 2):  # all within distance 2 of one another
            third = np.exp(-np.abs(k - center) / 2.0)
            third /= third.sum()
            attained = max(
                attained, hockey((1 - r) * third + r * p, (1 - r) * third + r * q, epsilon)
            )
        assert claim.delta(epsilon) >= attained * (1 - 1e-9)
        assert claim.delta(epsilon) == pytest.approx(attained, rel=1e-6, abs=1e-12)


def test_bounded_range_is_the_envelope_of_two_point_laws():
    pair = BoundedRangePair(1.0)
    for epsilon in np.linspace(0, 1, 9):
        t = np.linspace(0, 1, 20001)
        high = (1 - np.exp(t - 1)) / (1 - math.exp(-1))
        low = 1 - high
        true = np.maximum(high * -np.expm1(epsilon - t), 0) + np.maximum(
            low * -np.expm1(epsilon - t + 1), 0
        )
        assert float(delta(pair, np.array([epsilon]))[0]) == pytest.approx(true.max(), abs=1e-8)


def test_exponential_mechanism_stays_below_bounded_range():
    random = np.random.default_rng(1)
    guarantee = Guarantee(BoundedRangeEvent(Fraction(1)))
    for _ in range(300):
        scores = random.uniform(0, 3, size=5)
        moved = scores + random.uniform(0, 1, size=5)  # one-sided: range of the loss at most 1
        p, q = np.exp(scores) / np.exp(scores).sum(), np.exp(moved) / np.exp(moved).sum()
        for epsilon in (0.0, 0.2, 0.5, 0.9):
            assert guarantee.delta(epsilon) >= max(hockey(p, q, epsilon), hockey(q, p, epsilon))


def test_either_is_the_worst():
    branches = (
        DiscreteLaplaceEvent(Fraction(2), 1),
        DiscreteGaussianEvent(Fraction(4), Fraction(4), 1),
    )
    both = Guarantee(EitherEvent(branches))
    for epsilon in (0.0, 0.1, 0.4, 0.6, 1.0, 2.0):
        worst = max(Guarantee(branch).delta(epsilon) for branch in branches)
        assert worst * (1 - 1e-12) <= both.delta(epsilon) <= worst * (1 + 1e-9)


# ── T1: one coordinate is the worst split of an L1 shift ─────────────────────


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("split", [(1, 1), (2, 1), (3, 1), (2, 2), (1, 1, 1)])
def test_t1_discrete_splits_are_dominated(scale, split):
    total = sum(split)
    one = Guarantee(DiscreteLaplaceEvent(Fraction(scale), total))
    pairs = [lattice(lambda k: -np.abs(k) / scale, s, 40 * math.ceil(scale) + s) for s in split]
    p, q = np.ones(1), np.ones(1)
    for a, b in pairs:
        keep = a > 1e-9 if len(split) > 2 else a > 0
        p, q = np.outer(p, a[keep]).ravel(), np.outer(q, b[keep]).ravel()
    for epsilon in np.linspace(0, total / scale, 12)[:-1]:
        assert hockey(p, q, epsilon) <= one.delta(float(epsilon)) * (1 + 1e-9) + 1e-12


def test_t1_continuous_splits_are_dominated():
    """Each cell's mass at its lower end bounds the split's divergence from below."""
    for split in [(0.5, 0.5), (1.2, 0.3), (2.0, 2.0)]:
        losses, masses = [], []
        for e in split:
            grid = np.linspace(-e, e, 1501)
            below = LaplacePair(e).tails(grid).p_below
            losses.append(np.append(-e, grid[:-1]))
            masses.append(np.append(below[0], np.diff(below)))
        total = np.add.outer(*losses).ravel()
        mass = np.outer(*masses).ravel()
        assert mass.sum() == pytest.approx(1)
        one = LaplacePair(sum(split))
        for epsilon in np.linspace(0, sum(split), 7)[:-1]:
            low = float((mass * np.maximum(-np.expm1(epsilon - total), 0)).sum())
            assert low <= float(delta(one, np.array([epsilon]))[0]) * (1 + 1e-9)


# ── T2, T3: a discrete Gaussian is nearly a Gaussian, in any dimension ───────


@pytest.mark.parametrize("variance", [9, 25, 100])
@pytest.mark.parametrize("smoothing", [0.6, 0.9, 1.5])
def test_t2_and_t3_bracket_the_exact_law(variance, smoothing):
    eta = 2 * sum(math.exp(-2 * math.pi**2 * smoothing * j * j) for j in range(1, 5))
    width = variance * smoothing / (variance + smoothing)
    eta_low = 2 * sum(math.exp(-2 * math.pi**2 * width * j * j) for j in range(1, 5))
    exact = lattice_gaussian(float(variance), 2)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        true = float(exact.profile(np.array([epsilon]))[0])
        slack = math.log1p(eta) - math.log1p(-eta)
        high = math.exp(slack) * gaussian_delta(
            epsilon - 2 * slack, mu=2 / math.sqrt(variance - smoothing)
        )
        slack = math.log1p(eta_low) - math.log1p(-eta_low)
        low = math.exp(-slack) * gaussian_delta(
            epsilon + 2 * slack, mu=2 / math.sqrt(variance + smoothing)
        )
        assert float(low) <= true <= float(high)


def test_t2_covers_every_direction_of_a_vector():
    """All integer shifts of squared length 5 in the plane, by direct sums."""
    event = DiscreteGaussianEvent(Fraction(9), Fraction(5), 2)
    claim = Guarantee(event)
    k = np.arange(-40, 41)
    for shift in set(itertools.permutations((2, 1))) | {(2, 0), (1, 1)}:
        one = [np.exp(-((k - s) ** 2) / 18) / np.exp(-(k**2) / 18).sum() for s in shift]
        zero = np.exp(-(k**2) / 18) / np.exp(-(k**2) / 18).sum()
        p, q = np.outer(zero, zero), np.outer(one[0], one[1])
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            assert claim.delta(epsilon) >= hockey(p, q, epsilon)


def test_short_shifts_of_a_vector_are_exact():
    """A squared shift of 2 on integers moves two coordinates by one: the product law, exactly."""
    claim = Guarantee(DiscreteGaussianEvent(Fraction(2), Fraction(2), 100))
    k = np.arange(-40, 41)
    zero = np.exp(-(k**2) / 4.0)
    one = np.exp(-((k - 1) ** 2) / 4.0)
    p, q = np.outer(zero, zero) / zero.sum() ** 2, np.outer(one, one) / zero.sum() ** 2
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        true = hockey(p, q, epsilon)
        assert true <= claim.delta(epsilon) <= true * 1.001


def test_discrete_gaussian_is_not_gaussian():
    """K36: the discrete law leaks more than the curve of the continuous one."""
    for variance, excess in [(1, 0.3), (4, 0.05)]:
        gains = []
        for epsilon in np.linspace(0, 4 / math.sqrt(variance), 40):
            exact = Guarantee(DiscreteGaussianEvent(Fraction(variance), Fraction(1), 1)).delta(
                float(epsilon)
            )
            gains.append(exact / float(gaussian_delta(epsilon, mu=1 / math.sqrt(variance))))
        assert max(gains) > 1 + excess


def test_laplace_profile_is_b16():
    claim = Guarantee(LaplaceEvent(Fraction(2)))
    for epsilon in (0.0, 0.1, 0.4, 0.5, 1.0):
        assert claim.delta(epsilon) == pytest.approx(
            max(0.0, 1 - math.exp((epsilon - 0.5) / 2)), rel=1e-9, abs=1e-15
        )
