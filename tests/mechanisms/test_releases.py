"""Releases follow their exact laws, certificates hold, and wrong mechanisms are not certified."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.core import events
from discreet.core.errors import NotCertified, OutOfDomain, RelationMismatch
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._inputs import LARGEST_OUTPUT
from discreet.mechanisms.additive import IntegerMechanism
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from tests.choice_tree import enumerate_sampler
from tests.distributions import follows, frequency

N = 100_000
ALL = [
    discreet.laplace(sensitivity=1, epsilon=0.5),
    discreet.laplace(sensitivity=3, epsilon=2),
    discreet.laplace(sensitivity=0.25, epsilon=1),
    discreet.laplace(sensitivity=10**6, epsilon=Fraction(1, 3)),
    discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6),
    discreet.gaussian(sensitivity=5, epsilon=0.3, delta=1e-9),
    discreet.gaussian(sensitivity=0.1, epsilon=3, delta=1e-3),
    discreet.gaussian(sensitivity=1, rho=0.5),
    discreet.gaussian(sensitivity=2, mu=0.7),
    discreet.gaussian(sensitivity=10**5, sigma=10**6),
    discreet.truncated_laplace(sensitivity=2, epsilon=1, delta=1e-4),
    discreet.truncated_laplace(sensitivity=0.3, epsilon=1, delta=1e-6),
    discreet.randomized_response(categories=5, epsilon=1),
    *(
        build(sensitivity=s, epsilon=1, monotonic=monotonic)
        for build in (
            discreet.exponential_mechanism,
            discreet.permute_and_flip,
            discreet.report_noisy_max,
        )
        for s in (1, 2)
        for monotonic in (False, True)
    ),
    discreet.above_threshold(sensitivity=1, epsilon=1),
    discreet.above_threshold(sensitivity=0.5, epsilon=2, positives=3, monotonic=True),
]


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_every_mechanism_is_certified(mechanism):
    certificate = mechanism.certify()
    assert certificate.holds
    assert "certified" in str(certificate)
    assert certificate.guarantee == mechanism.guarantee


def test_a_scale_too_small_is_not_certified():
    good = discreet.laplace(sensitivity=1, epsilon=1, domain="integers")
    small = IntegerMechanism(
        noise=DiscreteLaplace(Fraction(9, 10)),
        event=events.DiscreteLaplaceEvent(Fraction(9, 10), 1),
    )
    with pytest.raises(NotCertified, match="NOT CERTIFIED"):
        dataclasses.replace(good, integers=small).certify()


def test_a_discrete_gaussian_with_the_analytic_sigma_is_not_certified():
    """K36: on a coarse lattice the discrete Gaussian is not exactly Gaussian DP."""
    good = discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6, domain="integers")
    sigma = Fraction(
        discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6, domain="reals").reals.scale
    )
    analytic = IntegerMechanism(
        noise=DiscreteGaussian(sigma), event=events.DiscreteGaussianEvent(sigma**2, Fraction(1), 1)
    )
    with pytest.raises(NotCertified):
        dataclasses.replace(good, integers=analytic).certify()


def test_gaussian_sigma_is_analytic_on_the_grid_and_certified_on_integers():
    asked = {"sensitivity": 1, "epsilon": 1, "delta": 1e-6}
    grid, whole = (discreet.gaussian(**asked, domain=one) for one in ("reals", "integers"))
    # Balle and Wang's curve, solved here with another routine.
    from scipy.optimize import brentq

    def excess(sigma):
        a, b = 0.5 / sigma - sigma, -0.5 / sigma - sigma
        return stats.norm.cdf(a) - math.e * stats.norm.cdf(b) - 1e-6

    assert grid.reals.scale == pytest.approx(brentq(excess, 1, 10, xtol=1e-13), rel=1e-6)
    sigma = math.sqrt(whole.integers.noise.square)
    assert grid.reals.scale < sigma < grid.reals.scale * 1.002
    # It is the smallest: a little less is no longer (1, 1e-6)-DP by the exact law.
    less = events.DiscreteGaussianEvent(Fraction(sigma * (1 - 1e-6)) ** 2, Fraction(1), 1)
    assert divergence.exact_delta(less, 1.0)[0] > 1e-6
    assert "integers with sigma" in str(whole.certify())
    assert "reals in steps" in str(grid.certify())


def test_a_delta_buys_less_laplace_noise():
    """B16: b = D / (epsilon - 2 ln(1 - delta)), exact on the line, certified on the integers."""
    for domain in ("reals", "integers"):
        mechanism = discreet.laplace(sensitivity=1, epsilon=0.5, delta=0.01, domain=domain)
        assert mechanism.certify().holds
        assert mechanism.guarantee.delta(0.5) <= 0.01
        assert mechanism.std < discreet.laplace(sensitivity=1, epsilon=0.5, domain=domain).std
    grid = discreet.laplace(sensitivity=1, epsilon=0.5, delta=0.01, domain="reals")
    assert grid.reals.scale == pytest.approx(1 / (0.5 - 2 * math.log(0.99)), rel=1e-8)


def test_pure_epsilon_is_exact():
    assert discreet.laplace(sensitivity=1, epsilon=0.1).guarantee.epsilon() == 0.1
    assert (discreet.laplace(sensitivity=1, epsilon=0.1).guarantee * 10).epsilon() == 1.0
    assert discreet.gaussian(sensitivity=1, rho=0.5).guarantee.rdp(2) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (discreet.laplace(sensitivity=1, epsilon=0.1), DiscreteLaplace(10)),
        (discreet.gaussian(sensitivity=1, sigma=7), DiscreteGaussian(7)),
    ],
)
def test_integer_releases_add_the_stated_noise(mechanism, law):
    released = mechanism.release(np.full(N, 1000), rng=discreet.seeded_rng(40))
    assert released.dtype == np.int64
    assert follows(released, lambda k: law.cdf(k - 1000))
    assert not follows(released, lambda k: law.cdf(k - 1001))


@pytest.mark.parametrize("value", [0.0, 1 / 3, -1e5 / 7])
def test_real_releases_add_the_stated_noise(value):
    for mechanism, law in (
        (discreet.laplace(sensitivity=1.0, epsilon=0.1, domain="reals"), stats.laplace(value, 10)),
        (discreet.gaussian(sensitivity=1.0, sigma=10, domain="reals"), stats.norm(value, 10)),
    ):
        released = mechanism.release(np.full(N, value), rng=discreet.seeded_rng(41))
        steps = released / mechanism.reals.step
        assert np.array_equal(steps, np.floor(steps))  # multiples of the grid, nothing else
        assert follows(steps, lambda k, m=mechanism, law=law: law.cdf((k + 0.5) * m.reals.step))


def test_scalars_stay_scalars_and_shapes_stay():
    mechanism = discreet.laplace(sensitivity=1, epsilon=1)
    assert type(mechanism.release(3)) is int
    assert type(mechanism.release(3.5)) is int
    assert mechanism.release(np.zeros((2, 3), dtype=np.int16)).shape == (2, 3)
    assert type(discreet.laplace(sensitivity=0.5, epsilon=1).release(3)) is float


def test_outputs_are_clamped_at_the_edge_of_the_range():
    wide = discreet.laplace(sensitivity=1, scale=2**50, domain="integers")
    released = wide.release(np.full(1000, 2**61), rng=discreet.seeded_rng(42))
    assert np.abs(released).max() <= LARGEST_OUTPUT


def test_intervals_hold_the_noise():
    for mechanism in (
        discreet.laplace(sensitivity=1, epsilon=0.3),
        discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-5),
        discreet.truncated_laplace(sensitivity=1, epsilon=0.3, delta=1e-3),
    ):
        low, high = mechanism.interval(0.9)
        assert low == -high
        noise = np.array([mechanism.release(0, rng=discreet.seeded_rng(i)) for i in range(2000)])
        inside = int((np.abs(noise) <= high).sum())
        # The exact coverage is at least 0.9: far fewer would be a proof of the contrary.
        assert stats.binom.cdf(inside, 2000, 0.9) > 1e-9
        assert noise.std() == pytest.approx(mechanism.std, rel=0.1)


def test_a_vector_of_reals_is_rounded_only_if_it_was_declared():
    """Ten coordinates that move by 0.1 each move by 1 together, and by up to 10 when rounded."""
    reals = np.array([0.4, 0.6])
    for vector in (reals, list(reals), (1, 0.5), reals.astype(np.float16), reals.astype(object)):
        with pytest.raises(OutOfDomain, match="domain='reals'"):
            discreet.laplace(sensitivity=1, epsilon=1).release(vector)
        declared = discreet.laplace(sensitivity=1, epsilon=1, domain="integers")
        assert declared.release(vector).dtype == np.int64
    # A whole bound on each coordinate holds for the rounded ones as well.
    each = discreet.gaussian(sensitivity=1, norm="linf", dimension=2, rho=1)
    assert each.release(reals).dtype == np.int64


def test_relations_do_not_mix():
    one = discreet.laplace(sensitivity=1, epsilon=1).guarantee
    other = discreet.laplace(
        sensitivity=1, epsilon=1, relation=discreet.NeighboringRelation.REPLACE_ONE
    ).guarantee
    with pytest.raises(RelationMismatch):
        one + other


SCORES = np.array([3, 0, 5, 4])


@pytest.mark.parametrize(
    "mechanism",
    [
        discreet.exponential_mechanism(sensitivity=1, epsilon=2),
        discreet.permute_and_flip(sensitivity=1, epsilon=2),
    ],
    ids=repr,
)
def test_choices_have_the_stated_law_by_enumeration(mechanism):
    enumerated = enumerate_sampler(
        lambda bits: mechanism.release(SCORES, rng=bits), width=3, depth=6
    )
    exact = mechanism.probabilities(SCORES)
    for index, mass in enumerated.masses.items():
        assert float(mass) - 1e-12 <= exact[index] <= float(mass + enumerated.unresolved) + 1e-12
    assert enumerated.unresolved < Fraction(1, 4)


@pytest.mark.parametrize(
    "build", [discreet.exponential_mechanism, discreet.permute_and_flip, discreet.report_noisy_max]
)
def test_choices_have_the_stated_frequencies(build):
    mechanism = build(sensitivity=1, epsilon=1)
    bits = discreet.seeded_rng(43)
    chosen = np.bincount([mechanism.release(SCORES, rng=bits) for _ in range(20_000)], minlength=4)
    for index, p in enumerate(mechanism.probabilities(SCORES)):
        assert frequency(chosen[index], 20_000, p)
    assert mechanism.probabilities(SCORES).sum() == pytest.approx(1, abs=1e-9)
    wrong = build(sensitivity=1, epsilon=2).probabilities(SCORES)
    assert not all(frequency(chosen[i], 20_000, wrong[i]) for i in range(4))


def test_permute_and_flip_never_loses_more_than_exponential():
    """McKenna and Sheldon 2020: its expected score is at least as good, everywhere."""
    generator = np.random.default_rng(44)
    for _ in range(50):
        scores = generator.integers(0, 30, size=generator.integers(2, 9))
        flip, choice = (
            build(sensitivity=1, epsilon=1).probabilities(scores) @ scores
            for build in (discreet.permute_and_flip, discreet.exponential_mechanism)
        )
        assert flip >= choice - 1e-9


@pytest.mark.parametrize(
    "build", [discreet.exponential_mechanism, discreet.permute_and_flip, discreet.report_noisy_max]
)
@pytest.mark.parametrize("monotonic", [False, True])
def test_choices_keep_epsilon_on_random_neighbors(build, monotonic):
    mechanism = build(sensitivity=1, epsilon=1, monotonic=monotonic)
    generator = np.random.default_rng(45)
    worst = 0.0
    for _ in range(60):
        scores = generator.integers(-3, 4, size=4)
        step = generator.integers(0, 2, 4) if monotonic else generator.integers(-1, 2, 4)
        p, q = mechanism.probabilities(scores), mechanism.probabilities(scores + step)
        worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert worst <= 1 + 1e-9
    assert worst > 0.4  # the neighbors were not trivial


def test_above_threshold_stops_and_has_the_stated_law():
    mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
    values = [0, 3, 10, 2]
    bits = discreet.seeded_rng(46)
    runs = [mechanism.release(values, threshold=5, rng=bits) for _ in range(20_000)]
    stops = [len(run) - 1 if run[-1] else 4 for run in runs]
    assert all(run[:-1].sum() == 0 for run in runs)
    exact = mechanism.probabilities(values, threshold=5)
    assert exact.sum() == pytest.approx(1, abs=1e-9)
    for index, p in enumerate(exact):
        assert frequency(stops.count(index), 20_000, p)
    assert not frequency(stops.count(2), 20_000, exact[2] * 1.1)


def test_above_threshold_with_more_positives_stops_at_the_last():
    mechanism = discreet.above_threshold(sensitivity=1, epsilon=50, positives=2)
    answers = mechanism.release([100, 0, 100, 100, 0], threshold=50, rng=discreet.seeded_rng(47))
    assert answers.tolist() == [True, False, True]


def test_randomized_response_has_the_stated_law_and_estimates():
    mechanism = discreet.randomized_response(categories=4, epsilon=1)
    truth = np.repeat([0, 1, 2, 3], [50_000, 30_000, 15_000, 5_000])
    reports = mechanism.release(truth, rng=discreet.seeded_rng(48))
    assert frequency((reports[:50_000] == 0).sum(), 50_000, mechanism.keep)
    assert frequency((reports[:50_000] == 3).sum(), 50_000, mechanism.other)
    assert not frequency((reports[:50_000] == 3).sum(), 50_000, mechanism.other * 1.1)
    estimated = mechanism.estimate(np.bincount(reports), 100_000)
    low, high = estimated.interval(1 - 1e-9, guaranteed=True)
    assert np.all((low <= [0.5, 0.3, 0.15, 0.05]) & (high >= [0.5, 0.3, 0.15, 0.05]))
    enumerated = enumerate_sampler(lambda bits: mechanism.release(2, rng=bits), width=6, depth=3)
    for code, mass in enumerated.masses.items():
        p = mechanism.keep if code == 2 else mechanism.other
        assert float(mass) - 1e-12 <= p <= float(mass + enumerated.unresolved) + 1e-12


def test_binary_flip_boundary():
    """B20: with epsilon = ln 3 and delta = 0.1 a lie of 0.225 passes and 0.2249 fails."""
    for lie, passes in ((0.225, True), (0.2249, False)):
        assert ((1 - lie) - 3 * lie <= 0.1 + 1e-12) is passes
    mechanism = discreet.randomized_response(categories=2, epsilon=math.log(3))
    assert mechanism.other == pytest.approx(0.25)


def test_splits_of_a_squared_shift():
    assert divergence.partitions(4) == [(2,), (1, 1, 1, 1)]
    assert set(divergence.partitions(6)) == {(2, 1, 1), (1,) * 6}
    assert divergence.partitions(0) == [()]
