"""The best additive noise: published numbers, exact promises, and never beaten."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.mechanisms.scalar import _base as loss
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import seeded_rng


def table(law, reach):
    return law.pmf(np.arange(-reach, reach + 1))


def divergence(law, shift, epsilon, reach):
    masses = table(law, reach)
    moved = np.concatenate([np.zeros(shift), masses])[: len(masses)]
    return np.maximum(masses - math.exp(epsilon) * moved, 0).sum()


# -- staircase ------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "shift", "tread"), [(0.5, 4, 2), (1, 5, 1), (3, 7, 3)])
def test_a_staircase_keeps_its_epsilon_at_every_distance(epsilon, shift, tread):
    law = Staircase(epsilon, shift=shift, tread=tread)
    k = np.arange(-60, 61)
    for distance in range(1, shift + 1):
        ratio = np.max(np.abs(law.log_pmf(k) - law.log_pmf(k + distance)))
        assert ratio <= epsilon + 1e-12
    assert np.max(law.log_pmf(k) - law.log_pmf(k + shift + 1)) > epsilon + 1e-9


def test_no_tread_is_better_than_the_chosen_one():
    for epsilon, name in product((0.3, 1, 3, 6), loss.LOSSES):
        chosen = staircase(sensitivity=12, epsilon=epsilon, loss=name).noise
        losses = [
            loss.LOSSES[name](Staircase(epsilon, shift=12, tread=tread)) for tread in range(1, 13)
        ]
        assert loss.LOSSES[name](chosen) == min(losses)


def test_the_staircase_of_one_step_is_discrete_laplace():
    law, other = staircase(sensitivity=1, epsilon=1).noise, DiscreteLaplace(1)
    k = np.arange(-40, 41)
    assert law.log_pmf(k) == pytest.approx(other.log_pmf(k), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 8])
def test_a_staircase_on_reals_approaches_the_published_optimum(epsilon):
    # Geng and Viswanath 2014: the tread gamma of least mean square error in the continuum.
    b = math.exp(-epsilon)
    gamma = -b / (1 - b) + (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3) / (
        2 ** (1 / 3) * (1 - b) ** 2
    )
    made = staircase(sensitivity=0.3, epsilon=epsilon)
    assert made.noise.tread / made.scale.shift == pytest.approx(gamma, abs=2e-3)
    assert made.std < discreet.laplace(sensitivity=0.3, epsilon=epsilon).std
    assert made.certify().holds


# -- stepped and grafted ----------------------------------------------------------------------


def stepped(width, seed=3):
    weights = np.sort(np.random.default_rng(seed).integers(1, 1 << 55, 9))[::-1].tolist()
    return PiecewiseConstant([TOTAL - 2 * sum(weights), *weights], width=width)


@pytest.mark.parametrize("width", [1, 3, 5])
@pytest.mark.parametrize("shift", [1, 2, 3, 4, 7, 11])
def test_the_exact_divergence_of_a_table_is_that_of_its_masses(width, shift):
    law = stepped(width)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        expected = divergence(law, shift, float(epsilon), 12 * width + shift)
        assert float(law.delta(shift, epsilon)) == pytest.approx(expected, rel=1e-12)
        assert law.delta(shift, epsilon) >= law.delta(shift - 1, epsilon)


def test_weights_that_rise_are_refused():
    with pytest.raises(InvalidArgument, match="never rise"):
        PiecewiseConstant([TOTAL - 2 * (1 + 2), 1, 2])
    with pytest.raises(InvalidArgument, match="sum to"):
        PiecewiseConstant([5, 1])
    with pytest.raises(InvalidArgument, match="odd"):
        PiecewiseConstant([TOTAL], width=2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "variance", "tolerance"),
    [(0.5, 0.01, 5.876, 0.005), (1, 0.01, 1.704, 0.002), (0.1, 0.01, 76.35, 0.05)],
)
def test_grafted_noise_has_the_published_variance(epsilon, delta, variance, tolerance):
    # B49, in units of the squared sensitivity.
    made = grafted(sensitivity=0.25, epsilon=epsilon, delta=delta)
    assert (made.std / 0.25) ** 2 == pytest.approx(variance, abs=tolerance)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1, 1e-6), (2, 0.2)])
@pytest.mark.parametrize("sensitivity", [1, 3, 0.7])
def test_grafted_noise_keeps_its_promise_and_wastes_little(sensitivity, epsilon, delta):
    made = grafted(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert made.certify().holds
    exact = made.noise.delta(made.scale.shift, Fraction(str(epsilon)))
    assert 0.98 * delta <= exact <= Fraction(str(delta))
    # A wrong version, with half the noise, is not certified.
    half = grafted(sensitivity=sensitivity / 2, epsilon=epsilon, delta=delta, domain="reals")
    wrong = half.noise.delta(2 * half.scale.shift, Fraction(str(epsilon)))
    assert wrong > Fraction(str(delta))


# -- losses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(Fraction(7, 3)),
        DiscreteGaussian(9),
        BoundedDiscreteLaplace(3, lower=-8, upper=8),
        Staircase(1, shift=4, tread=2),
        stepped(1),
        stepped(3),
    ],
    ids=repr,
)
def test_losses_are_those_of_the_masses(law):
    reach = 200
    k, masses = np.arange(-reach, reach + 1), table(law, reach)
    assert loss.mean_square(law) == pytest.approx(np.sum(k**2 * masses), rel=1e-9)
    assert loss.mean_absolute(law) == pytest.approx(np.sum(np.abs(k) * masses), rel=1e-9)
    high = loss.large_error(law)
    assert np.sum(masses[np.abs(k) <= high]) >= 0.95 - 1e-12
    assert np.sum(masses[np.abs(k) < high]) < 0.95


@pytest.mark.parametrize("scale", [300, 5_000, 10**6])
def test_long_sums_equal_their_terms(scale):
    law = BoundedDiscreteLaplace(scale, lower=-400_000, upper=400_000)
    k = np.arange(-400_000, 400_001, dtype=np.float64)
    masses = law.pmf(k)
    assert law.moment(2) == pytest.approx(np.sum(k**2 * masses), rel=1e-11)
    assert law.absolute_moment(1) == pytest.approx(np.sum(np.abs(k) * masses), rel=1e-11)


# -- the choice -------------------------------------------------------------------------------


def test_pure_privacy_on_counts_is_laplace_and_on_reals_a_staircase():
    assert best_additive_noise(sensitivity=1, epsilon=1).chosen.name == "laplace"
    assert best_additive_noise(sensitivity=0.5, epsilon=3).chosen.name == "staircase"
    for made in (
        best_additive_noise(sensitivity=1, epsilon=1),
        best_additive_noise(sensitivity=2, epsilon=3),
    ):
        assert made.guarantee.epsilon(0) <= 3
        assert made.certify().holds


def test_the_choice_is_explained():
    made = discreet.best_additive_noise(sensitivity=0.5, epsilon=0.1, delta=0.01)
    assert made.explain().startswith("Smallest root of the mean squared error: truncated_laplace.")
    assert "gaussian" in made.explain()
    pure = best_additive_noise(sensitivity=1, epsilon=1)
    assert "needs a delta above zero" in pure.explain()


def test_releases_are_whole_for_counts_and_on_the_grid_for_reals():
    count = best_additive_noise(sensitivity=1, epsilon=0.5, delta=0.01)
    assert isinstance(count.release(100, rng=seeded_rng(1)), int)
    real = best_additive_noise(sensitivity=1, epsilon=0.5, delta=0.01, domain="reals")
    value = real.release(100.25, rng=seeded_rng(1))
    assert value == round(value * 2**20) / 2**20
    low, high = real.interval(0.99)
    assert low == -high
    with pytest.raises(OutOfDomain, match="one number"):
        count.release([1, 2])


def test_large_whole_sensitivities_fit_or_are_refused():
    """No table as long as the sensitivity, no search that never ends, no noise that wraps."""
    best = best_additive_noise(sensitivity=10**10, epsilon=1, delta=1e-6)
    assert {one.name for one in best.candidates} >= {"laplace", "gaussian", "staircase", "grafted"}
    assert best.certify().holds
    with pytest.raises(Unsupported, match="coarser"):
        best_additive_noise(sensitivity=2**58, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidArgument, match="coarser"):
        Staircase(Fraction(1, 1000), shift=2**56, tread=1)
    with pytest.raises(InvalidArgument, match="coarser"):
        PiecewiseConstant([TOTAL // 2, TOTAL // 4], width=2**61 + 1)


def test_bad_questions_are_named():
    with pytest.raises(InvalidArgument, match="loss"):
        best_additive_noise(sensitivity=1, epsilon=1, loss="rmse")
    with pytest.raises(InvalidArgument, match="whole sensitivity"):
        truncated_laplace(sensitivity=0.5, epsilon=1, delta=0.1, domain="integers")
    with pytest.raises(Unsupported, match="too small"):
        grafted(sensitivity=0.5, epsilon=1e-4, delta=0.1)
    assert best_additive_noise(sensitivity=0.5, epsilon=1e-4, delta=0.1).certify().holds


def beaten(epsilon, delta, name, sensitivity):
    """How much better any single noise of the catalog is than the choice."""
    best = best_additive_noise(sensitivity=sensitivity, epsilon=epsilon, delta=delta, loss=name)
    assert best.certify().holds
    measure = loss.LOSSES[name]
    scale = 1.0 if isinstance(sensitivity, int) else None
    singles = [discreet.laplace(sensitivity=sensitivity, epsilon=epsilon, delta=delta)]
    if delta:
        singles.append(discreet.gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta))
    losses = []
    for one in singles:
        part = one.reals if scale is None else one.integers
        value = measure(part.noise)
        losses.append(part.step * (math.sqrt(value) if name == "mse" else value))
    losses += [one.loss for one in best.candidates]
    least = min(losses)
    return best.candidates[0].loss / least if least else 1 + best.candidates[0].loss


@pytest.mark.parametrize("name", ["mse", "mae", "p95"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 0.05), (5, 1e-9), (1, 0)])
@pytest.mark.parametrize("sensitivity", [1, 0.5])
def test_the_choice_is_not_beaten(epsilon, delta, name, sensitivity):
    assert beaten(epsilon, delta, name, sensitivity) <= 1 + 2e-6


@pytest.mark.slow
def test_the_choice_is_not_beaten_on_two_hundred_pairs():
    for epsilon in np.geomspace(0.02, 20, 20):
        for delta in (0.0, *np.geomspace(1e-12, 0.4, 9)):
            assert beaten(float(epsilon), float(delta), "mse", 1) <= 1 + 2e-6
