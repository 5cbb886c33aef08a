"""What certificates, intervals and forecasts are made of, part by part."""

import dataclasses
import math
import statistics
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import special

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms import additive
from discreet.mechanisms.bin_statistics import BinnedColumn
from discreet.mechanisms.bounded import _divergence as bounded_check
from discreet.mechanisms.bounded import mechanism as bounded
from discreet.mechanisms.bounded._divergence import BoundedOutputs
from discreet.mechanisms.bounded._error import ErrorDistribution, _distribution, _Window
from discreet.mechanisms.bounded.compare import (
    BoundedComparison,
    BoundedOption,
    compare_bounded_noise,
)
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.personalized import stretching
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar import _base as loss
from discreet.mechanisms.scalar import best_noise as best
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.random_source import seeded_rng

REPLACE = {"relation": NeighboringRelation.REPLACE_ONE}

# -- noise on numbers ---------------------------------------------------------------------------


def test_reals_are_released_in_pieces(monkeypatch):
    sizes = []
    kind = additive.RoundedLaplace
    monkeypatch.setattr(
        kind, "add", lambda self, x, _: sizes.append(len(x)) or np.rint(x / 2.0**self.exponent)
    )
    made = discreet.laplace(sensitivity=1, epsilon=1, domain="reals")
    values = np.arange(2**17 + 3) / 8
    assert np.array_equal(made.release(values, rng=seeded_rng(1)), values)
    assert sizes == [2**16, 2**16, 3]


def test_the_larger_noise_is_stated():
    """Rounded to whole numbers, normal noise is a little larger than on reals."""
    made = discreet.gaussian(sensitivity=1, mu=1)
    assert made.std == pytest.approx(math.sqrt(1 + 1 / 12), rel=1e-12)
    assert discreet.gaussian(sensitivity=1, mu=1, domain="reals").std == pytest.approx(1, rel=1e-9)
    inside = special.ndtri(0.95)
    assert made.interval(0.9)[1] == pytest.approx(inside + 0.5, rel=1e-9)
    reals = discreet.gaussian(sensitivity=1, mu=1, domain="reals", granularity=2.0**-6)
    assert reals.interval(0.9)[1] == pytest.approx(inside + 2.0**-7, rel=1e-9)
    flat = discreet.laplace(sensitivity=1, epsilon=1, domain="reals", granularity=2.0**-6)
    assert flat.interval(0.9)[1] == pytest.approx(math.log(10) + 2.0**-7, rel=1e-9)
    assert flat.interval(0.9)[0] == -flat.interval(0.9)[1]


@pytest.mark.parametrize("on", ["integers", "reals"])
def test_levels_and_sizes_of_normal_noise(on):
    made = discreet.gaussian(sensitivity=3, rho=Fraction(1, 8), domain=on)
    assert made.std == pytest.approx(6, rel=1e-9)
    for noise in (made, discreet.laplace(sensitivity=3, epsilon=1, domain=on)):
        for level in (0, 1):
            with pytest.raises(InvalidArgument, match="confidence"):
                noise.interval(level)


@pytest.mark.parametrize("steps", [-40, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 40])
def test_chances_of_noise_up_to_a_number(steps):
    options = {"sensitivity": 1, "domain": "reals", "granularity": 1}
    flat = _distribution(discreet.laplace(**options, scale=16))
    tail = math.exp(-abs(steps) / 16) / 2
    assert flat(np.array([steps])) == pytest.approx([1 - tail if steps > 0 else tail], rel=1e-12)
    normal = _distribution(discreet.gaussian(**options, sigma=16))
    assert normal(np.array([steps])) == pytest.approx([special.ndtr(steps / 16)], rel=1e-12)
    whole = discreet.laplace(sensitivity=1, scale=16, domain="integers")
    k = np.arange(-3000, math.floor(steps) + 1)
    exact = math.fsum(np.exp(-np.abs(k) / 16)) * math.tanh(1 / 32)
    assert _distribution(whole)(np.array([steps])) == pytest.approx([exact], rel=1e-9)


def test_one_lattice_is_one_event():
    whole = discreet.laplace(sensitivity=3, epsilon=2, domain="integers")
    assert whole.guarantee.event == events.DiscreteLaplaceEvent(Fraction(3, 2), 3)
    reals = discreet.laplace(sensitivity=3, epsilon=2, domain="reals")
    assert reals.guarantee.event == events.LaplaceEvent(Fraction(1, 2))
    for sensitivity in (3, 3.0, Fraction(3), np.float32(3)):
        assert discreet.laplace(sensitivity=sensitivity, epsilon=2).guarantee == whole.guarantee
    assert discreet.laplace(sensitivity=3, epsilon=2, granularity=2**-9).domain == "reals"
    assert discreet.laplace(sensitivity=2.5, epsilon=2).domain == "reals"


def test_certificates_look_along_the_curve():
    made = discreet.gaussian(sensitivity=1, sigma=2, domain="integers")
    worth = made.guarantee.epsilon(1e-6)
    assert [check.epsilon for check in made.certify().checks] == [0, worth / 2, worth]
    made = discreet.gaussian(sensitivity=1, epsilon=3, delta=1e-4, domain="reals")
    checks = made.certify().checks
    assert [check.epsilon for check in checks] == [0, 1.5, 3]
    assert checks[2].claimed == 1e-4
    assert checks[1].claimed == pytest.approx(made.guarantee.delta(1.5), rel=1e-9)


def test_normal_noise_has_a_largest_deviation():
    made = discreet.gaussian(sensitivity=1, sigma=2**58, domain="reals", granularity=1)
    assert made.reals.noise.square == 2**116
    with pytest.raises(InvalidArgument, match="coarser"):
        discreet.gaussian(sensitivity=1, sigma=2**58 + 1, domain="reals", granularity=1)


def test_no_loss_at_all_is_the_least(monkeypatch):
    monkeypatch.setattr(best, "_loss", lambda *_: 0.0)
    assert best.best_additive_noise(sensitivity=3, epsilon=1).chosen.name == "laplace"


@pytest.mark.parametrize("square", [Fraction(1, 100), Fraction(1, 4), Fraction(9), Fraction(10**4)])
def test_absolute_errors_of_discrete_normal_noise(square):
    k = np.arange(1, 5000)
    weights = np.exp(-k * k / (2 * float(square)))
    exact = 2 * math.fsum(k * weights) / (1 + 2 * math.fsum(weights))
    assert loss.mean_absolute(DiscreteGaussian(square=square)) == pytest.approx(exact, rel=1e-12)


# -- divergences --------------------------------------------------------------------------------


def test_the_farther_end_of_an_interval_counts():
    law = BoundedDiscreteLaplace(Fraction(4), lower=-2, upper=9)
    low, high = law.interval(0.9)
    assert -low != high
    assert divergence.half_width(law, 0.9) == max(-low, high)
    law = BoundedDiscreteLaplace(Fraction(4), lower=-9, upper=2)
    assert divergence.half_width(law, 0.9) == max(-low, high)


@pytest.mark.parametrize(("shifts", "square"), [((1,), 1), ((1, 1), 2), ((2,), 4)])
@pytest.mark.parametrize("sigma", [Fraction(1), Fraction(13, 10)])
def test_what_is_not_summed_counts_in_full(shifts, square, sigma):
    """Beyond twelve deviations and two steps, on both sides, for every coordinate that moves."""
    event = events.DiscreteGaussianEvent(sigma**2, Fraction(square), len(shifts))
    k = np.arange(1, 100)
    weights = np.exp(-k * k / (2 * float(sigma) ** 2))
    reach = math.ceil(12 * sigma) + 2
    tail = math.fsum(weights[reach:]) / (1 + 2 * math.fsum(weights))
    found = divergence.exact_delta(event, 60.0)[0]
    assert found == pytest.approx(2 * len(shifts) * tail, rel=1e-9, abs=0)


def test_shifts_of_many_coordinates(monkeypatch):
    asked = []
    monkeypatch.setattr(
        divergence, "_shifted_gaussian", lambda _, shifts, __: asked.append(shifts) or 0.5
    )

    def splits(square, dimension):
        asked.clear()
        divergence.exact_delta(events.DiscreteGaussianEvent(Fraction(9), square, dimension), 1.0)
        return sorted(asked)

    assert splits(Fraction(5), 5) == [(1, 1, 1, 1, 1), (2, 1)]
    assert splits(Fraction(5, 2), 2) == [(1, 1)]  # whole numbers move by a whole square
    assert splits(Fraction(13), 13) == [(1,) * 13, (3,)]
    assert splits(Fraction(65), 65) == [(1,) * 64, (8,)]
    assert splits(Fraction(64), 64) == [(1,) * 64, (8,)]
    assert splits(Fraction(10), 1) == [(3,)]


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1, 2), Fraction(7, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_divergences_of_narrow_noise(scale, epsilon):
    k = np.arange(-300, 301)
    weights = np.exp(-np.abs(k) / float(scale))
    law = weights / weights.sum()
    exact = math.fsum(np.maximum(law[2:] - math.exp(epsilon) * law[:-2], 0)) + law[:2].sum()
    found, _ = divergence.exact_delta(events.DiscreteLaplaceEvent(scale, 2), epsilon)
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("sigma", "epsilon"), [(20, 0.4), (20, 0.1), (0.5, 30.0), (3, 2.0)])
def test_divergences_far_out(sigma, epsilon):
    """Next to nothing, and known to many digits."""
    found, _ = divergence.exact_delta(events.GaussianEvent(Fraction(sigma)), epsilon)
    upper, lower = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    exact = special.ndtr(upper) - math.exp(epsilon) * special.ndtr(lower)
    assert found == pytest.approx(exact, rel=1e-8, abs=0)


# -- bounds -------------------------------------------------------------------------------------


def test_numbers_that_leave_the_bounds_of_the_grid_come_back(monkeypatch):
    made = bounded.bounded_laplace(lower=0.1, upper=0.7, sensitivity=0.3, epsilon=1)
    span = made.column.span
    assert made.column.number(0) < 0.1
    assert made.column.number(span) > 0.7
    drawn = []
    monkeypatch.setattr(bounded, "sample_between", lambda low, *_: np.array([drawn[-1] + low[0]]))
    for steps, number in ((0, 0.1), (span, 0.7), (span // 2, made.column.number(span // 2))):
        drawn.append(steps)
        assert made.release(0.3) == number


def test_the_largest_error_of_bounded_noise_is_stated(monkeypatch):
    made = bounded.bounded_laplace(lower=0, upper=20, sensitivity=1, epsilon=Fraction(1, 10))
    every = [made.error(value).root_mean_square for value in range(21)]
    assert made.std == max(every) > min(every)
    asked = []

    def error(_, value):
        asked.append(value)
        return ErrorDistribution(errors=np.array([-abs(value - 37.0)]), masses=np.ones(1))

    monkeypatch.setattr(bounded.BoundedLaplaceMechanism, "error", error)
    made = bounded.bounded_laplace(lower=0, upper=64, sensitivity=1, epsilon=1)
    assert made.std == 37
    assert asked == list(range(65))


def test_grids_of_bounds_on_both_sides_of_zero():
    made = bounded.bounded_laplace(lower=-(2**30), upper=2**30, sensitivity=0.5, epsilon=1)
    assert made.column.exponent == 31 - 39 + 1


def test_bounds_of_clamped_noise_have_a_largest():
    noise = discreet.laplace(sensitivity=1, epsilon=1)
    for within in (bounded.clamp_output, bounded.reflect_output):
        made = within(noise, lower=-(2**60), upper=2**60)
        assert (made.lower, made.upper) == (-(2**60), 2**60)
        for lower, upper in ((0, 2**60 + 1), (-(2**60) - 1, 0)):
            with pytest.raises(Unsupported):
                within(noise, lower=lower, upper=upper)


def test_whole_bounds_stay_whole():
    noise = discreet.laplace(sensitivity=1, epsilon=1)
    for lower, upper, kind in ((0, 3, int), (0, 2.5, float), (0.5, 3, float), (0.5, 2.5, float)):
        made = bounded.clamp_output(noise, lower=lower, upper=upper)
        assert type(made.lower) is type(made.upper) is kind


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8])
def test_spreads_stay_below_the_largest_there_is(rows):
    widest = max(statistics.variance(map(Fraction, data)) for data in product((0, 3), repeat=rows))
    options = {"lower": 2, "upper": 5, "public_rows": rows, "epsilon": 1, "granularity": 1}
    assert private_variance(**options).inner.upper == float(widest)
    assert private_std(**options).inner.upper == float(widest)
    upper = private_std(**options, direct=True).inner.upper
    assert math.sqrt(widest) < upper < math.sqrt(widest) * (1 + 2**-48)
    assert private_variance(**options).inner.lower == 0


def test_both_edges_and_the_suspect_are_certified(monkeypatch):
    outputs, suspect = BoundedOutputs(span=10_000, shift=10), 4321
    monkeypatch.setattr(BoundedOutputs, "worst", lambda *_: (0.0, suspect))
    pairs = []
    monkeypatch.setattr(bounded_check, "_half_line", lambda _, __, pair, ___: pairs.append(pair))
    monkeypatch.setattr(bounded_check, "max", lambda a, b: b if b is None else max(a, b), False)
    bounded_check._some_pairs(outputs, Fraction(100), 1.0)
    last = 10_000 - 10
    for q in (0, 1, 2, last - 2, last - 1, last, suspect):
        for shift in (10, 5):
            assert {(q, q + shift), (q + shift, q)} <= set(pairs)
    centers = {min(pair) for pair in pairs}
    assert centers - {suspect} == {last - q for q in centers - {suspect}}
    assert len(pairs) == 4 * len(centers)
    assert len(centers) <= 2 * 24 + 1


def test_guessing_as_well_is_not_worth_it():
    advice = compare_bounded_noise(lower=0, upper=4, sensitivity=1, epsilon=1)
    option = BoundedOption(name="any", mechanism=advice.best, loss=2.0)
    for constant, worth in ((2.0, False), (2.1, True), (1.9, False)):
        made = BoundedComparison(options=(option,), loss="mse", constant=constant)
        assert made.worthwhile is worth
        assert ("Guessing is as good" in made.explain()) is not worth


def test_a_size_that_is_not_reached_is_the_largest():
    law = ErrorDistribution(errors=np.array([-3.0, 1.0, 2.0]), masses=np.array([0.1, 0.2, 0.3]))
    assert law.size(0.95) == 3
    assert law.size(0.5) == 2


def test_forecasts_look_a_little_farther_than_so_many_scales():
    column = SortedColumn(first=0, span=1000, exponent=0)
    errors = _Window.of(500, column, 2.01).errors
    assert (errors[0], errors[-1]) == (-91, 91)  # 45 scales, rounded up


# -- bins and groups ----------------------------------------------------------------------------


def test_curves_of_rough_counts_stay_between_nothing_and_all():
    found = BinnedColumn(edges=(0.0, 2.0, 6.0, 8.0), counts=(4, 8, 4))
    assert found.quantile(1 / 32) == 0.25
    # 0, -2, 4 is made to rise as 0, 0, 4; and 0, 6, 4 as 0, 4, 4.
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(-2, 6)).quantile(0.5) == 4
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(6, -2)).quantile(0.5) == 1
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(0, 1)).quantile(0.5) == 4
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(1, 0)).mean() == 1


def test_a_default_may_be_a_bound():
    for default, steps in ((0, 0), (1, 2**20), (None, 2**19), (0.25, 2**18)):
        made = sample_and_aggregate(
            np.mean, lower=0, upper=1, groups=3, epsilon=1, default=default, summary="mean"
        )
        assert made.default == steps
    for default in (-0.001, 1.001):
        with pytest.raises(InvalidArgument, match="default"):
            sample_and_aggregate(np.mean, lower=0, upper=1, groups=3, epsilon=1, default=default)


def test_errors_of_a_median_are_in_ranks():
    options = {"lower": 0, "upper": 8, "groups": 4, "epsilon": 1}
    made = sample_and_aggregate(np.mean, **options)
    assert made.interval(0.9) == made.inner.interval(0.9)
    made = sample_and_aggregate(np.mean, **options, summary="mean")
    low, high = made.inner.interval(0.9)
    assert made.interval(0.9) == (low * made.column.step / 4, high * made.column.step / 4)
    assert made.std == pytest.approx(math.sqrt(2) * 8 / 4, rel=1e-3)


def test_columns_move_their_bounds_outward():
    assert SortedColumn.of(-0.3, 0.7, 0.25) == SortedColumn(first=-2, span=5, exponent=-2)
    assert SortedColumn.of(0.25, 0.5, 0.25) == SortedColumn(first=1, span=1, exponent=-2)


# -- a budget for each --------------------------------------------------------------------------


def priced(*prices):
    return {f"level {i}": discreet.pure_dp(price, **REPLACE) for i, price in enumerate(prices)}


def test_prices_have_so_many_digits():
    level = ["level 0"]
    for price, people in ((2**62 - 1, 1), (2**61 - 1, 2), (2**59 - 1, 8)):
        made = personalized_count(priced(price))
        assert made.distances([1] * people, level * people)[0] == price * people
    for prices, people in (((2**62,), 1), ((2**61,), 2), ((2**59,), 8), ((1, 2**61), 2)):
        with pytest.raises(InvalidArgument, match="too many digits"):
            personalized_count(priced(*prices)).distances([1] * people, level * people)
    with pytest.raises(Unsupported):
        personalized_count(priced(0))


def test_who_can_just_afford_the_base_always_takes_part():
    for base in (discreet.approx_dp(1, 1e-6), discreet.pure_dp(1)):
        assert personalized_sampling(base, {"a": base}).rates == (("a", 1),)


def test_one_draw_is_made(monkeypatch):
    def sample(self, size, _):
        assert (self.scale, size) == (Fraction(18), 1)
        return np.array([5])

    monkeypatch.setattr(stretching.DiscreteLaplace, "sample", sample)
    menu, levels = priced(Fraction(1, 2), 2), ["level 0", "level 1", "level 1"]
    total = stretched_sum(menu, lower=0, upper=9).release([4, 9, 7], levels)
    assert total == (1 * 4 + 4 * 9 + 4 * 7 + 5) / 4
    middle = stretched_quantile(menu, lower=0, upper=9).release([4, 9, 7], levels)
    assert middle == 4 + (4 * (7 - 4) + 5) / 4
    low = stretched_quantile(menu, lower=0, upper=9, quantile=0, anchor=9)
    assert low.release([0, 0, 0], levels) == 9 + (4 * -9 + 5) / 4
    assert stretched_quantile(menu, lower=0, upper=9, quantile=1).release([9] * 3, levels) == 9


def test_quantiles_of_so_many_values():
    menu = priced(1)
    for lower in (0, -(2**23), 2**40):
        made = personalized_quantile(menu, lower=lower, upper=lower + 2**24 - 1)
        assert (made.lower, made.upper) == (lower, lower + 2**24 - 1)
        with pytest.raises(InvalidArgument, match="2\\*\\*24"):
            personalized_quantile(menu, lower=lower, upper=lower + 2**24)


def test_bounds_of_stretched_values():
    menu, far = priced(1), 2**40
    for make in (stretched_sum, stretched_quantile):
        made = make(menu, lower=-far, upper=far)
        assert (made.lower, made.upper) == (-far, far)
        for lower, upper in ((-far, far + 1), (-far - 1, far), (3, 3), (4, 3)):
            with pytest.raises(InvalidArgument):
                make(menu, lower=lower, upper=upper)
    for anchor in (-far, 0, far):
        assert stretched_quantile(menu, lower=-far, upper=far, anchor=anchor).anchor == anchor
    for anchor in (-4, 6):
        with pytest.raises(InvalidArgument, match="anchor"):
            stretched_quantile(menu, lower=-3, upper=5, anchor=anchor)
    for anchor in (-3, 5):
        assert stretched_quantile(menu, lower=-3, upper=5, anchor=anchor).anchor == anchor


@pytest.mark.parametrize(
    ("lower", "upper", "prices", "people"),
    [(0, 1, (2**61,), 1), (0, 4, (2**57,), 4), (-8, 1, (2**58,), 1), (0, 1, (3, 2**60), 2)],
)
def test_sums_that_are_too_long_for_64_bits_are_refused(lower, upper, prices, people):
    made = stretched_sum(priced(*prices), lower=lower, upper=upper)
    with pytest.raises(InvalidArgument, match="too many digits"):
        made.release([1] * people, ["level 0"] * people, rng=seeded_rng(1))
    fewer = priced(*(max(1, price - 1) for price in prices))
    made = stretched_sum(fewer, lower=lower, upper=upper)
    assert math.isfinite(made.release([1] * people, ["level 0"] * people, rng=seeded_rng(1)))


@pytest.mark.parametrize(
    ("lower", "upper", "prices"), [(0, 1, (2**61,)), (-2, 2, (2**59,)), (-4, 0, (1, 2**59))]
)
def test_values_that_are_too_long_for_64_bits_are_refused(lower, upper, prices):
    with pytest.raises(InvalidArgument, match="too many digits"):
        stretched_quantile(priced(*prices), lower=lower, upper=upper)
    fewer = priced(*(max(1, price - 1) for price in prices))
    made = stretched_quantile(fewer, lower=lower, upper=upper)
    assert dataclasses.replace(made) == made
