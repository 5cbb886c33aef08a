"""What mechanisms say before a release - errors, bounds, words - against the exact laws."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms.bin_statistics import bin_statistics, private_bin_counts
from discreet.mechanisms.bounded.mechanism import clamp_output, reflect_output
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.quantiles import private_quantiles
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.mechanisms.scalar.staircase import staircase

LEVEL = 0.9


def laplace(**more):
    return discreet.laplace(sensitivity=1, epsilon=1, **more)


# -- choices and thresholds -----------------------------------------------------------------


CHOICES = [discreet.exponential_mechanism, discreet.permute_and_flip, discreet.report_noisy_max]


@pytest.mark.parametrize("make", CHOICES)
@pytest.mark.parametrize(("level", "candidates"), [(0.9, 10), (0.99, 2), (1 - 1e-9, 2), (0.5, 2)])
def test_the_loss_of_a_choice_stays_within_its_interval(make, level, candidates):
    """All others just beyond the bound are together chosen with at most 1 - level."""
    mechanism = make(sensitivity=1, epsilon=0.5)
    low, high = mechanism.interval(level, candidates=candidates)
    scores = np.zeros(candidates, dtype=int)
    scores[-1] = math.ceil(high)  # ties go to the others
    assert low == 0
    assert 1 - mechanism.probabilities(scores)[-1] <= (1 - level) * (1 + 1e-6)
    if candidates == 2:  # then a union bound takes nothing away: the noisy maximum is exact
        scores[-1] = math.ceil(high) - 2 if high > 2 else 0
        lost = 1 - mechanism.probabilities(scores)[-1]
        assert lost > (1 - level) / (1 if make is discreet.report_noisy_max else 4)


@pytest.mark.parametrize("make", CHOICES)
def test_the_interval_of_a_choice_scales(make):
    fine = make(sensitivity=0.5, epsilon=1, monotonic=True)
    assert fine.interval(LEVEL, candidates=1) == fine.interval(LEVEL, candidates=2)
    high = fine.interval(LEVEL, candidates=10)[1]
    if make is discreet.report_noisy_max:
        # e^-x (2 + x) / 4 is the tail of the difference of two Laplace noises.
        x = 2 * high
        assert 9 * math.exp(-x) * (2 + x) / 4 == pytest.approx(1 - LEVEL, rel=1e-5)
    else:
        assert high == pytest.approx(math.log(90) / 2)
    assert make(sensitivity=0.5, epsilon=1).interval(LEVEL, candidates=10)[1] == (
        pytest.approx(2 * high, rel=1e-5)
    )
    assert fine.interval(1e-9, candidates=2)[1] == pytest.approx(0, abs=1e-8)
    with pytest.raises(Unsupported, match="standard deviation"):
        _ = fine.std


def test_the_law_of_very_noisy_maxima_is_not_computed():
    mechanism = discreet.report_noisy_max(sensitivity=10**6, epsilon=0.1)
    with pytest.raises(Unsupported, match="10\\*\\*5"):
        mechanism.probabilities([0, 1])


@pytest.mark.parametrize(("positives", "monotonic"), [(1, False), (1, True), (4, False)])
def test_the_noise_of_a_threshold_is_split_where_it_is_least(positives, monotonic):
    mechanism = discreet.above_threshold(
        sensitivity=3, epsilon=2, positives=positives, monotonic=monotonic
    )
    factor = positives * (1 if monotonic else 2)
    threshold, query = mechanism.threshold_noise, mechanism.query_noise
    # The two prices add up to epsilon: one shift of the threshold, `factor` of a query.
    assert 3 / threshold.scale + 3 * factor / query.scale == 2
    assert mechanism.std == pytest.approx(math.hypot(threshold.std, query.std), rel=1e-12)
    # Lyu, Su, Li 2017: the ratio of the prices is 1 : factor^(2/3).
    assert float(query.scale / threshold.scale) == pytest.approx(factor ** (1 / 3), rel=2e-3)


@pytest.mark.parametrize("sensitivity", [2, 0.5])
def test_the_interval_of_a_threshold_holds_all_queries(sensitivity):
    mechanism = discreet.above_threshold(sensitivity=sensitivity, epsilon=1)
    low, high = mechanism.interval(LEVEL, queries=10)
    assert low == -high
    step = mechanism.scale.step
    tail = (1 - LEVEL) / 2
    parts = [
        float(mechanism.threshold_noise.scale) * math.log(1 / tail),
        float(mechanism.query_noise.scale) * math.log(10 / tail),
    ]
    assert high == pytest.approx(sum(parts) * step, abs=4 * step)
    if sensitivity == 2:
        # Nine queries that lie so far below, then one so far above: stopped at the last.
        values = [-high] * 9 + [high]
        assert mechanism.probabilities(values, threshold=0)[9] >= LEVEL


def test_unknown_noise_and_events_have_no_exact_route():
    with pytest.raises(Unsupported, match="No interval is known for int"):
        divergence.half_width(3, 0.5)
    with pytest.raises(Unsupported, match="No exact law is known for Pure"):
        divergence.exact_delta(events.PureEvent(Fraction(1)), 1.0)


def test_noise_says_what_it_is():
    pure, rho = laplace(), discreet.gaussian(sensitivity=1, rho=0.5)
    unit = NeighboringRelation.ADD_REMOVE.value
    on = "integers with scale 1"
    assert repr(pure) == f"laplace(epsilon 1, {unit}; std {pure.std:.4g}; on {on})"
    on = "integers with sigma 1"
    assert repr(rho) == f"gaussian(rho 0.5, {unit}; std {rho.std:.4g}; on {on})"
    grid = discreet.gaussian(sensitivity=1, rho=0.5, domain="reals")
    on = f"reals in steps of {grid.reals.step:.3g} with sigma 1"
    assert repr(grid) == f"gaussian(rho 0.5, {unit}; std {grid.std:.4g}; on {on})"
    both = discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    assert repr(both).startswith(f"gaussian(epsilon 1, delta 1e-06, {unit}; std ")
    cut = discreet.truncated_laplace(sensitivity=0.5, epsilon=1, delta=1e-3)
    assert cut.bound == cut.noise.upper * cut.scale.step
    assert repr(cut) == f"truncated_laplace({cut.guarantee!r}, |noise| <= {cut.bound:g})"
    above = discreet.above_threshold(sensitivity=1, epsilon=1)
    assert repr(above) == f"above_threshold({above.guarantee!r}, std={above.std:.4g})"
    choice = discreet.report_noisy_max(sensitivity=1, epsilon=1)
    assert repr(choice) == f"noisy_max({choice.guarantee!r})"


def test_deviations_of_gaussian_noise():
    """Rounding continuous noise to whole numbers adds the variance of a rounding, 1/12."""
    rounded = discreet.gaussian(sensitivity=3, mu=0.5, domain="integers")
    assert rounded.std == pytest.approx(math.sqrt(36 + 1 / 12), rel=1e-12)
    assert discreet.gaussian(sensitivity=3, mu=0.5, domain="reals").std == pytest.approx(6)
    assert discreet.gaussian(sensitivity=1, sigma=3, domain="reals").std == pytest.approx(3)
    assert discreet.gaussian(sensitivity=4, rho=0.5, domain="reals").std == pytest.approx(4)


# -- wrappers say what their noise says ------------------------------------------------------


def test_best_noise_speaks_for_the_chosen():
    best = best_additive_noise(sensitivity=1, epsilon=3)
    assert best.std == best.chosen.std == best.candidates[0].mechanism.std
    assert repr(best) == f"best_additive_noise({best.chosen!r})"
    stairs = staircase(sensitivity=1, epsilon=3)
    assert repr(stairs) == f"staircase({stairs.guarantee!r}; std {stairs.std:.4g})"


@pytest.mark.parametrize("statistic", ["median", "largest"])
def test_bins_state_the_noise_of_one_bin(statistic):
    made = bin_statistics(
        lower=0, upper=64, bins=4, epsilon=1, statistic=statistic, granularity=0.5
    )
    width = 15.5  # steps of 0.5 from 0 to 64 are 129 numbers: at most 33, or 32 steps, in a bin
    factor = 0.5 if statistic == "median" else 1
    scale = factor * (width + 0.5)
    assert made.std == pytest.approx(math.sqrt(2) * scale, rel=1e-2)
    low, high = made.interval(LEVEL)
    assert low == -high
    assert high == pytest.approx(scale * math.log(10), rel=3e-2)
    assert made.guarantee.epsilon() == 1
    assert made.guarantee == made.inner.guarantee
    assert repr(made) == f"bin_statistics({statistic} of 4 bins; {made.inner!r})"


def test_counts_of_bins_state_the_noise_of_one_count():
    made = private_bin_counts(lower=0, upper=1, bins=7, epsilon=1)
    assert made.interval(LEVEL) == laplace(domain="integers").interval(LEVEL)
    assert made.std == laplace(domain="integers").std
    assert made.certify().holds
    assert repr(made) == f"private_bin_counts(7 bins; {made.inner!r})"


def test_blocks_say_what_they_are():
    made = sample_and_aggregate(np.mean, lower=0, upper=1, groups=9, epsilon=1)
    assert repr(made) == f"sample_and_aggregate(9 groups; {made.inner!r})"


def test_bounded_noise_says_what_it_is():
    inner = laplace()
    assert repr(clamp_output(inner, lower=0, upper=8)) == f"clamp_output({inner!r}, [0, 8])"
    assert repr(reflect_output(inner, lower=0, upper=8)) == f"reflect_output({inner!r}, [0, 8])"


def test_the_error_of_a_root_is_the_root_of_the_error():
    """|sqrt(a) - sqrt(b)| <= sqrt(|a - b|), and E sqrt(Y) <= sqrt(E Y)."""
    options = {"lower": 0, "upper": 1, "public_rows": 50, "epsilon": 1}
    variance, after = private_variance(**options), private_std(**options)
    assert variance.std == variance.inner.std
    assert after.std == math.sqrt(variance.std)
    assert private_std(**options, direct=True).std == pytest.approx(math.sqrt(2 / 50), rel=1e-6)
    assert repr(variance) == f"private_variance({variance.inner!r})"
    assert repr(after) == f"private_std({after.inner!r})"


def test_key_selection_says_what_it_is():
    plain = partition_selection(groups=1, epsilon=1, delta=1e-5)
    assert repr(plain) == (
        f"partition_selection({plain.guarantee!r}; laplace noise with std {plain.std:.4g}, "
        f"shown above {plain.threshold})"
    )
    strict = partition_selection(groups=40, rho=0.1, delta=1e-5, minimum=5)
    assert repr(strict).endswith(
        f"gaussian noise with std {strict.std:.4g}, "
        f"shown above {strict.threshold + 4}, keys of fewer than 5 units never)"
    )


def test_chosen_quantiles_have_no_deviation():
    with pytest.raises(Unsupported, match="standard deviation"):
        _ = private_quantiles(q=[0.5], lower=0, upper=1, epsilon=1).std


# -- noise that follows the data -------------------------------------------------------------

FAMILIES = {
    "laplace": {"delta": 1e-6},
    "gaussian": {"delta": 1e-6, "noise": "gaussian"},
    "lomax": {"order": 3},
    "cauchy": {"noise": "cauchy"},
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("level", [0.5, 0.99])
def test_tails_hold_the_stated_share(name, level):
    """The density, integrated between the bounds with another routine."""
    from scipy.integrate import quad

    made = smooth_sensitivity(lower=0, upper=1, public_rows=99, epsilon=1, **FAMILIES[name])
    end = made.family.tail(level)
    share, _ = quad(lambda z: float(np.exp(made.family.log_density(np.array(z)))), 0, end)
    assert 2 * share == pytest.approx(level, rel=1e-6)
    low, high = made.interval(level)
    assert low == -high
    assert high == pytest.approx(
        float(made.largest_steps) * end * made.column.step + made.column.step, rel=1e-12
    )


def test_deviations_of_the_families():
    std = {
        name: smooth_sensitivity(lower=0, upper=1, public_rows=99, epsilon=1, **options).family.std
        for name, options in FAMILIES.items()
    }
    # The variance of two-sided Lomax noise is 2 / ((k - 1)(k - 2)).
    assert std == {"laplace": math.sqrt(2), "gaussian": 1, "lomax": 1, "cauchy": math.inf}
    two = smooth_sensitivity(lower=0, upper=1, public_rows=99, epsilon=1, order=2)
    assert two.family.std == math.inf
    assert two.smoothness == pytest.approx(0.5, rel=1e-12)


def test_smooth_noise_says_what_it_is():
    pure = smooth_sensitivity(
        "quantile", quantile=0.25, lower=0, upper=1, public_rows=99, epsilon=1
    )
    assert pure.guarantee == discreet.pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)
    assert repr(pure) == f"smooth_sensitivity(quantile 0.25, lomax noise; {pure.guarantee!r})"
    both = smooth_sensitivity(lower=0, upper=1, public_rows=99, epsilon=1, delta=1e-6)
    assert both.guarantee == discreet.approx_dp(1, 1e-6, relation=NeighboringRelation.REPLACE_ONE)
    assert repr(both) == f"smooth_sensitivity(median, laplace noise; {both.guarantee!r})"
    for wrong in ({"statistic": "quantile"}, {"quantile": 0.25}):
        with pytest.raises(InvalidArgument, match="needed by, the statistic 'quantile'"):
            smooth_sensitivity(**{"lower": 0, "upper": 1, "public_rows": 99, "epsilon": 1, **wrong})


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_test_and_answer_cost_what_was_asked(share):
    made = propose_test_release(
        lower=0, upper=1, public_rows=99, epsilon=2, delta=1e-6, bound=0.5, test=share
    )
    assert made.guarantee == discreet.approx_dp(2, 1e-6, relation=NeighboringRelation.REPLACE_ONE)
    assert (made.test, made.answer) == (2 * Fraction(share), 2 * (1 - Fraction(share)))


def test_weighted_noise_is_bounded_by_that_of_the_global_sensitivity():
    made = weighted_sensitivity(lower=0, upper=100, public_rows=99, epsilon=2, delta=1e-6)
    low, high = made.interval(LEVEL)
    assert low == -high
    assert high == pytest.approx(100 / 2 * math.log(10) + made.column.step, rel=1e-6)
    assert made.std == pytest.approx(math.sqrt(2) * 50, rel=1e-6)
