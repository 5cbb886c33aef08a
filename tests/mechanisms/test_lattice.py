"""Where outputs lie is settled by the mechanism: one number's type, size or digits change nothing.

Values are drawn as Python objects; what they should mean is computed here in fractions.
"""

from __future__ import annotations

import math
import statistics
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.mechanisms._inputs import LARGEST_INPUT, ScoreScale, read_integers, read_reals
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import RoundedLaplace
from discreet.noise.random_source import seeded_rng

NUMBERS = [
    0, 1, -3, True, 2**53 + 1, -(2**53) - 1, 2**61, 2**61 + 1, 2**62, -(2**63), 2**64, 10**5000,
    -(10**400), 0.5, -0.5, 2.5, -2.5, 1e-320, -0.0, 1e305, -1e18, 2.0**41 + 0.5, math.inf,
    -math.inf, Decimal("2.5"), Decimal("-0.5000000000000000000000001"), Decimal("1e500"),
    Decimal("-inf"), Fraction(1, 3), Fraction(-7, 2), Fraction(2**200 + 1, 3), np.int8(-3),
    np.uint64(2**63), np.int64(-(2**63)), np.float16(1.5), np.float32(0.1), np.float64(-2.5),
    np.longdouble(1) / 3, np.bool_(True), np.array(2.5), np.array(7), np.array(3, dtype=object),
]  # fmt: skip


def exact(value):
    """What a number is, here once more by hand."""
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio())
    if isinstance(value, Decimal | float | np.floating) and not math.isfinite(value):
        return math.inf if value > 0 else -math.inf
    if isinstance(value, np.generic):
        value = value.item()
    return Fraction(value)


def clamped(number, end):
    return end if number >= end else -end if number <= -end else Fraction(number)


def _scalar_mechanisms():
    for domain, kind in (("integers", int), ("reals", float)):
        yield discreet.laplace(sensitivity=2, epsilon=1, domain=domain), kind
        yield discreet.gaussian(sensitivity=2, epsilon=1, delta=1e-6, domain=domain), kind
        yield discreet.gaussian(sensitivity=2, mu=1, domain=domain), kind
    for s, kind in ((2, int), (2.0, int), (Fraction(1, 3), float), (1e-9, float), (1e280, float)):
        if s != 1e280:
            yield discreet.laplace(sensitivity=s, epsilon=1), kind
            yield discreet.truncated_laplace(sensitivity=s, epsilon=1, delta=1e-4), kind
            yield staircase(sensitivity=s, epsilon=1), kind
            yield grafted(sensitivity=s, epsilon=1, delta=1e-4), kind
            yield discreet.best_additive_noise(sensitivity=s, epsilon=1), kind
        else:
            yield discreet.laplace(sensitivity=s, epsilon=1, domain="reals"), kind
    for way in (discreet.clamp_output, discreet.reflect_output):
        whole = discreet.laplace(sensitivity=2, epsilon=1)
        yield way(whole, lower=-5, upper=10), int
        yield way(whole, lower=-4.5, upper=10.25), float
        yield way(discreet.laplace(sensitivity=0.5, epsilon=1), lower=-5, upper=10), float
        yield way(discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-4), lower=0,
                  upper=9), int  # fmt: skip
    yield discreet.bounded_laplace(lower=0, upper=9, sensitivity=1, epsilon=1), int
    yield discreet.bounded_laplace(lower=0, upper=9, sensitivity=0.5, epsilon=1), float


MECHANISMS = list(_scalar_mechanisms())


@pytest.mark.parametrize(("mechanism", "kind"), MECHANISMS, ids=lambda one: repr(one)[:60])
def test_one_type_comes_out_whatever_number_goes_in(mechanism, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in NUMBERS:
            released = mechanism.release(value, rng=seeded_rng(1))
            assert type(released) is kind
            assert math.isfinite(released)


def test_whether_a_sum_can_be_divided_is_not_seen():
    """The mean of [1, 2, 3] is the integer 2, that of [1, 2, 3, 3] the float 2.25."""
    kinds = [type(statistics.mean(rows)) for rows in ([1, 2, 3], [1, 2, 3, 3])]
    assert kinds == [int, float]
    for sensitivity in (1, 0.25):
        mechanism = discreet.laplace(sensitivity=sensitivity, epsilon=1)
        released = [mechanism.release(statistics.mean(rows)) for rows in ([1, 2, 3], [1, 2, 3, 3])]
        assert type(released[0]) is type(released[1])
    named = discreet.laplace(sensitivity=0.25, epsilon=1)
    assert named.release(2, rng=seeded_rng(3)) == named.release(2.0, rng=seeded_rng(3))


@pytest.mark.parametrize("exponent", [0, -20, 5, 70])
def test_steps_are_the_nearest_halves_up_and_clamped(exponent):
    for value in NUMBERS:
        number = clamped(exact(value), Fraction(2) ** (61 + exponent))
        expected = math.floor(number / Fraction(2) ** exponent + Fraction(1, 2))
        alone, shape = read_integers(value, exponent=exponent)
        assert alone.tolist() == [expected]
        assert shape == ()
        # The same in company: no neighbor in a list changes it.
        for other in (0, 0.5, 10**30, Fraction(1, 7), np.float32(3)):
            item = value[()] if isinstance(value, np.ndarray) else value
            assert read_integers([item, other], exponent=exponent)[0][0] == expected


@pytest.mark.parametrize("exponent", [-1040, -20, 0, 30, 970])
def test_reals_are_read_exactly(exponent):
    limit = min(Fraction(2) ** (61 + exponent), Fraction(np.finfo(float).max))
    for value in NUMBERS:
        alone, shape = read_reals(value, exponent=exponent)
        assert shape == ()
        assert Fraction(alone[0]) == clamped(exact(value), limit)


def test_arrays_are_read_like_their_values():
    wide = np.array([2**53 + 1, 0, -(2**62)])
    for array in (wide, wide.astype(np.uint64), wide.astype(object), wide.astype(np.float64)):
        found, _ = read_reals(array, exponent=-20)
        end = Fraction(2) ** 41
        assert [Fraction(one) for one in found] == [clamped(exact(one), end) for one in array]
        steps, _ = read_integers(array, exponent=-20)
        assert steps.tolist() == [clamped(exact(one), end) * 2**20 for one in array]


@pytest.mark.parametrize("distance", [4_000_001])
def test_long_integers_stay_as_far_apart_as_they_are(distance):
    """As doubles, 2**60 + 128 and 2**60 + 4,000,129 lie 4,000,256 apart."""
    for exponent in (-1, 3):
        ends = [read_reals(2**58 + 128 + d, exponent=exponent)[0][0] for d in (0, distance)]
        assert ends[1] - ends[0] == distance
    scale = ScoreScale.of(4_000_001.5)
    ends = scale.read([2**36 + 1, 2**36 + 1 + distance])
    assert ends[1] - ends[0] <= scale.shift


@pytest.mark.parametrize("noise", [RoundedLaplace(Fraction(2) ** 20, -20),
                                   RoundedGaussian(Fraction(2) ** 40, -20)])  # fmt: skip
def test_exact_numbers_get_the_noise_that_doubles_get(noise):
    values = np.arange(-500, 500) / 7
    exactly = np.array([Fraction(one) for one in values.tolist()], dtype=object)
    drawn = noise.add(values, seeded_rng(5))
    assert (noise.add(exactly, seeded_rng(5)) == drawn).all()
    shifted = np.array([one + 2**40 + 1 for one in exactly], dtype=object)
    assert (noise.add(shifted, seeded_rng(5)) - drawn == (2**40 + 1) << 20).all()


def test_a_release_of_long_integers_is_not_rounded():
    mechanism = discreet.laplace(sensitivity=1.5, epsilon=2.0**-20, granularity=1.0)
    for value in (2**53 + 1, -(2**53) - 1, 2**60 + 1):
        near = mechanism.release(0, rng=seeded_rng(1))
        assert mechanism.release(value, rng=seeded_rng(1)) == float(value + int(near))
    assert mechanism.release(1e300, rng=seeded_rng(1)) == float(2**61 + int(near))
    assert mechanism.release([0.0, math.inf], rng=seeded_rng(1))[1] >= 2.0**60


@pytest.mark.parametrize(
    "strange", [10**5000, math.inf, -math.inf, Decimal("1e400"), 2**62, True], ids=range(6)
)
def test_choices_take_scores_of_any_size(strange):
    for make in (
        discreet.report_noisy_max,
        discreet.exponential_mechanism,
        discreet.permute_and_flip,
    ):
        for sensitivity in (1, 0.3):
            mechanism = make(sensitivity=sensitivity, epsilon=1)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                chosen = mechanism.release([strange, 3, 0.5], rng=seeded_rng(1))
            assert type(chosen) is int
            if exact(strange) > 10**6:
                assert chosen == 0
    for sensitivity in (1, 0.3):
        mechanism = discreet.above_threshold(sensitivity=sensitivity, epsilon=1)
        found = mechanism.release([strange, 3, 0.5], threshold=10**6, rng=seeded_rng(1))
        assert found.dtype == bool
        assert found[0] == (exact(strange) > 10**6)


@pytest.mark.parametrize("domain", ["integers", "reals"])
def test_empty_and_shaped_arrays(domain):
    mechanism = discreet.laplace(sensitivity=1, epsilon=1, domain=domain)
    kind = np.int64 if domain == "integers" else np.float64
    for value in ([], np.empty((0, 3)), np.empty(0, dtype=int), np.zeros((2, 1)), [[1, 2], [3, 4]],
                  np.zeros((2, 2), dtype=bool), [[1, 0.5], [Fraction(1, 2), 2**70]]):  # fmt: skip
        released = mechanism.release(value)
        assert released.dtype == kind
        assert released.shape == np.shape(value)


def test_one_refusal_for_all_that_is_no_number():
    texts = set()
    for value in (math.nan, None, "7", [1, None], [1.0, math.nan], [[1], [1, 2]], object(), 1j,
                  np.array([math.nan]), np.float32(math.nan), {"a": 1}, [np.datetime64("2020")],
                  "x" * 10**6, ["x" * 10**6, *range(10_000)]):  # fmt: skip
        for domain in ("integers", "reals"):
            with pytest.raises(OutOfDomain) as caught:
                discreet.laplace(sensitivity=1, epsilon=1, domain=domain).release(value)
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_grid_and_integers_are_not_asked_for_together():
    for make, how in ((discreet.laplace, {"epsilon": 1}), (discreet.gaussian, {"rho": 1})):
        with pytest.raises(InvalidArgument, match="granularity is for reals"):
            make(sensitivity=1, domain="integers", granularity=2**-10, **how)


def test_a_root_is_not_whole():
    """One real number that moves by the root of 2 may move by 2 when it is rounded."""
    made = discreet.gaussian(sensitivity=math.sqrt(2), rho=1)
    assert made.domain == "reals"
    made = discreet.gaussian(sensitivity=math.sqrt(2), rho=1, domain="integers")
    assert made.guarantee.event.shift_squared == 2


def test_composition_counts_the_lattice_that_is_used():
    """Three Laplace at 0.9 and two Gaussians of mu 0.4 on reals: the worse lattice costs 5.156."""

    def total(domain):
        noise = discreet.laplace(sensitivity=1, epsilon=0.9, domain=domain).guarantee * 3
        return (
            noise + discreet.gaussian(sensitivity=1, mu=0.4, domain=domain).guarantee * 2
        ).epsilon(1e-6)  # fmt: skip

    assert total("reals") == pytest.approx(5.0414338, rel=1e-7)
    assert total("integers") == pytest.approx(5.1556299, rel=1e-7)
    default = discreet.laplace(sensitivity=1, epsilon=0.9)
    assert default.guarantee.event == events.DiscreteLaplaceEvent(Fraction(10, 9), 1)
    assert discreet.laplace(sensitivity=0.5, epsilon=0.9).guarantee.event == events.LaplaceEvent(
        Fraction(10, 9)
    )


def test_a_stored_choice_of_lattices_still_counts():
    parts = (events.DiscreteLaplaceEvent(Fraction(10, 9), 1), events.LaplaceEvent(Fraction(10, 9)))
    both = events.EitherEvent(parts)
    found = events.from_json(events.to_json(both))
    assert found == both
    alone = [discreet.Guarantee(one).epsilon(1e-3) for one in parts]
    assert discreet.Guarantee(found).epsilon(1e-3) == pytest.approx(max(alone), rel=1e-9)


def test_the_largest_input_is_a_bound_of_the_integers():
    mechanism = discreet.laplace(sensitivity=1, epsilon=1)
    noise = mechanism.release(0, rng=seeded_rng(9))
    for value in (LARGEST_INPUT, LARGEST_INPUT + 1, math.inf, 10**5000):
        assert mechanism.release(value, rng=seeded_rng(9)) == LARGEST_INPUT + noise
    assert mechanism.release([10**5000], rng=seeded_rng(9))[0] == LARGEST_INPUT + noise
