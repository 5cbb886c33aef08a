"""What is refused, at the edge: the last allowed value passes, the next does not."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._piecewise_exponential import _weight
from discreet.mechanisms.bounded import _divergence as bounded_pair
from discreet.mechanisms.bounded.mechanism import bounded_laplace, clamp_output
from discreet.mechanisms.data_dependent._smooth_noise import Lomax
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_delta
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar import truncated_laplace as truncated
from discreet.mechanisms.scalar.grafted import grafted
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng


def pure(epsilon):
    return discreet.pure_dp(epsilon, relation=NeighboringRelation.REPLACE_ONE)


# -- arguments of additive noise ---------------------------------------------------------------


def test_lattices_have_names():
    for make in (discreet.laplace, discreet.truncated_laplace):
        more = {"delta": 1e-3} if make is discreet.truncated_laplace else {}
        with pytest.raises(InvalidArgument, match="domain must be"):
            make(sensitivity=1, epsilon=1, domain="rationals", **more)
        with pytest.raises(InvalidArgument, match="whole sensitivity"):
            make(sensitivity=1.5, epsilon=1, domain="integers", **more)


def test_norms_have_names():
    with pytest.raises(InvalidArgument, match="norm must be"):
        discreet.gaussian(sensitivity=1, rho=1, norm="l7")


@pytest.mark.parametrize(
    "make", [discreet.laplace, discreet.report_noisy_max, discreet.exponential_mechanism]
)
def test_relations_are_not_words(make):
    with pytest.raises(
        InvalidArgument, match="relation must be one of discreet.NeighboringRelation, got str"
    ):
        make(sensitivity=1, epsilon=1, relation="add_remove")


def test_a_threshold_is_one_number():
    mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
    with pytest.raises(OutOfDomain, match="threshold must be one number"):
        mechanism.release([1, 2], threshold=[1])


# -- columns -----------------------------------------------------------------------------------


def test_bounds_of_a_column_are_in_order():
    for lower, upper in ((1, 1), (2, 1)):
        with pytest.raises(InvalidArgument, match="lower must be below upper"):
            SortedColumn.of(lower, upper, None)


def test_a_column_has_at_most_two_to_the_forty_steps():
    assert SortedColumn.of(0, 2**40, 1).span == 2**40
    assert SortedColumn.of(-(2**40), -(2**40) + 8, 1).first == -(2**40)
    for lower, upper in ((0, 2**40 + 1), (-(2**40) - 1, 0), (-(2**40), 2**40)):
        with pytest.raises(InvalidArgument, match="coarser grid"):
            SortedColumn.of(lower, upper, 1)


def test_a_column_is_no_finer_than_doubles():
    """Two to the 26 steps between the bounds, but at most two to the 38 from zero."""
    assert SortedColumn.of(0, 1, None).exponent == -26
    assert SortedColumn.of(2**20, 2**20 + 1, None).exponent == 20 - 38
    assert SortedColumn.of(-(2**20) - 1, -(2**20), None).exponent == 20 - 38
    assert SortedColumn.of(-1, 2**10, None).exponent == 10 - 26


def test_a_finer_column_stays_within_its_steps():
    coarse = SortedColumn.of(0, 8, 1)
    fine, stride = coarse.refined()
    assert (fine.first, fine.span, fine.step * stride) == (0, 8 * stride, 1.0)
    assert stride == 2 ** (26 - 4)
    far, stride = SortedColumn.of(2**39, 2**39 + 8, 1).refined()
    assert stride == 2
    assert (far.first, far.span, far.step) == (2**40, 16, 0.5)


def test_a_column_reads_one_number_for_each_row():
    column = SortedColumn.of(0, 8, 1)
    assert column.sorted([5, 1.5, 9, -3]).tolist() == [0, 2, 5, 8]
    assert column.sorted([[1, 2], 3, None]).tolist() == [3]
    for values in (np.ones((2, 2)), 3):
        with pytest.raises(OutOfDomain, match="one for each row"):
            column.sorted(values)
    with pytest.raises(OutOfDomain, match="number of rows, 3"):
        column.sorted([1, 2], rows=3)


# -- bounded noise -----------------------------------------------------------------------------


def test_bounds_far_away_are_refused():
    noise = discreet.laplace(sensitivity=1, epsilon=1)
    assert clamp_output(noise, lower=-(2**60), upper=2**60).upper == 2**60
    for lower, upper in ((-(2**60) - 1, 0), (0, 2**60 + 1)):
        with pytest.raises(Unsupported, match="2\\*\\*60"):
            clamp_output(noise, lower=lower, upper=upper)


def test_a_promise_that_no_scale_is_shown_to_keep_is_not_made(monkeypatch):
    with pytest.raises(Unsupported, match="2\\*\\*33"):
        bounded_laplace(lower=0, upper=1000, sensitivity=1, epsilon=Fraction(1, 2**40))
    options = {"lower": 0, "upper": 1000, "sensitivity": 1, "epsilon": 1, "delta": 1e-3}
    assert bounded_laplace(**options).width < bounded_laplace(**{**options, "delta": 0}).width
    monkeypatch.setattr(bounded_pair, "_MOST_CELLS", -1)  # nothing can be shown
    with pytest.raises(Unsupported, match="could be shown"):
        bounded_laplace(**options)


# -- tables of noise ---------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(100, 0.1), (1, 1e-30), (5, 1e-18)])
def test_grafted_noise_that_cannot_keep_a_promise_is_refused(epsilon, delta):
    """Masses of a table are multiples of 2**-62: neither e^-100 nor 10**-30 can be written."""
    with pytest.raises(Unsupported, match="use laplace"):
        grafted(sensitivity=1, epsilon=epsilon, delta=delta)


def test_grafted_noise_of_a_large_delta_is_almost_none():
    made = grafted(sensitivity=1, epsilon=1, delta=0.9)
    assert made.std < 0.25
    assert made.certify().holds


@pytest.mark.parametrize("start", [3, 4, 7, 1000])
def test_the_start_of_a_search_does_not_matter(monkeypatch, start):
    wanted = truncated.truncated_laplace(sensitivity=3, epsilon=1, delta=1e-4)
    monkeypatch.setattr(truncated, "truncation", lambda _, sensitivity: max(start, sensitivity))
    found = truncated.truncated_laplace(sensitivity=3, epsilon=1, delta=1e-4)
    assert found == wanted


@pytest.mark.parametrize("exponent", [Fraction(-3), Fraction(-1, 10**9), Fraction(0), Fraction(2)])
def test_weights_are_enclosed_for_exponents_of_either_sign(exponent):
    low, high = _weight(exponent, 80)
    exact = math.exp(-float(exponent))
    assert low <= high
    assert high - low < 2**12
    assert low / 2**80 == pytest.approx(exact, rel=1e-14)
    assert high / 2**80 == pytest.approx(exact, rel=1e-14)


# -- noise that follows the data ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 2**-20, "order": 4}, "too small"),
        ({"statistic": "variance", "trim": 1}, "trim for"),
        ({"smoothness": 1.0, "delta": 1e-6}, "between 0 and epsilon"),
        ({"smoothness": 0, "delta": 1e-6}, "between 0 and epsilon"),
        ({"smoothness": 0.1}, "give order"),
        ({"noise": "uniform"}, "noise must be"),
        ({"noise": "laplace"}, "delta must be positive"),
        ({"noise": "laplace", "delta": Fraction(1, 10**400)}, "delta must be positive"),
        ({"noise": "gaussian", "delta": 9e-13}, "at least 1e-12"),
        ({"noise": "cauchy", "delta": 1e-6}, "needs no delta"),
        ({"noise": "laplace", "delta": 1e-6, "smoothness": 0.5}, "smaller one"),
        ({"epsilon": 1e-3, "noise": "gaussian", "delta": 1e-12, "smoothness": 9e-4}, "smaller one"),
        ({"epsilon": 101}, "at most 100"),
        ({"order": 1}, "order"),
    ],
)
def test_smooth_noise_names_what_is_wrong(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        smooth_sensitivity(**{"lower": 0, "upper": 1, "public_rows": 9, "epsilon": 1, **wrong})


def test_lomax_noise_has_a_mean():
    with pytest.raises(InvalidArgument, match="order must be at least 2, got 1"):
        Lomax.calibrated(Fraction(1), 1)


def test_all_of_the_global_sensitivity_needs_no_delta():
    assert weighted_delta(1.0, 1.0) == 0
    assert weighted_delta(1.0, 1 - 2**-20) < 1e-6
    assert weighted_delta(1.0, 0.5) == pytest.approx(0.5 * math.exp(-1 - math.log(2)))


def test_an_unbounded_mean_takes_the_declared_rows_and_tail():
    options = {
        "unit": 1,
        "epsilon": 100,
        "public_rows": 100,
        "relation": NeighboringRelation.REPLACE_ONE,
    }
    with pytest.raises(OutOfDomain, match="number of rows, 100"):
        mean_without_bounds(**options).release([1.0] * 99)
    made = mean_without_bounds(**options, tail=0.125).release(np.arange(100), rng=seeded_rng(1))
    assert made.lower == pytest.approx(12, abs=1.5)
    assert made.upper == pytest.approx(87, abs=1.5)
    assert made.value == pytest.approx(49.5, abs=1.5)


# -- a budget for each --------------------------------------------------------------------------


LONG = {"a": pure(Fraction(1, 2**31 - 1)), "b": pure(Fraction(1, 2**30 + 3))}


def test_exact_sums_of_prices_must_fit():
    """Prices are 2**30 + 3 and 2**31 - 1: twice 2**30 people would overflow, 2**31 words."""
    count, quantile = personalized_count(LONG), personalized_quantile(LONG, lower=0, upper=9)
    for mechanism in (count, quantile):
        assert mechanism.guarantee == mechanism.menu.limits
        assert mechanism.guarantee["a"] == LONG["a"]
    assert count.menu.prices == (2**30 + 3, 2**31 - 1)
    with pytest.raises(InvalidArgument, match="one level for each"):
        count.menu.codes([], 2**31)
    with pytest.raises(InvalidArgument, match="too many digits"):
        count.menu.codes([], 2**31 + 2)


def test_exact_sums_of_values_must_fit():
    menu = {"a": pure(2**30)}  # a price of 2**30: values up to 2**31 fit
    top = 2**31 - 1
    fits = stretched_sum(menu, lower=top - 1, upper=top)
    assert fits.release([top], ["a"], rng=seeded_rng(1)) == pytest.approx(top, abs=1e-3)
    for low, people in ((top, 1), (-top - 1, 1), (2**30, 2)):
        with pytest.raises(InvalidArgument, match="too many digits"):
            stretched_sum(menu, lower=low, upper=low + 1).release([1] * people, ["a"] * people)


@pytest.mark.parametrize("make", [personalized_quantile, stretched_quantile])
def test_a_quantile_is_of_somebody(make):
    mechanism = make({"a": pure(1)}, lower=0, upper=9)
    for nobody in ([], np.empty(0, dtype=int)):
        with pytest.raises(OutOfDomain, match="values must be whole numbers"):
            mechanism.release(nobody, [])


def test_deviations_are_in_units_of_the_values():
    menu = {"strict": pure(0.5), "open": pure(2)}
    for mechanism in (
        stretched_sum(menu, lower=0, upper=10),
        stretched_quantile(menu, lower=0, upper=10),
    ):
        # Prices 1 and 4 of a half: noise of scale 10 / (1/2), in quarters.
        assert mechanism.std == DiscreteLaplace(Fraction(20)).std / 4


def test_who_can_afford_nothing_never_takes_part():
    sample = personalized_sampling(discreet.pure_dp(1), {"none": discreet.pure_dp(1e-12)})
    assert sample.rates == (("none", 0),)
    assert sample.guarantee["none"].epsilon() == 0
    assert not sample.draw(["none"] * 100, rng=seeded_rng(1)).any()
