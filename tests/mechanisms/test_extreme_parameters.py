"""What can be made can be released and certified, however small or large its parameters are."""

import math
from fractions import Fraction

import pytest

import discreet
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.mechanisms.above_threshold import above_threshold
from discreet.mechanisms.additive import gaussian, laplace
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.mechanisms.selection import exponential_mechanism, report_noisy_max

SIZES = (1e-300, 1e-12, 1e-6, 1e3, 1e12, 1e300)
COLUMN = {"lower": 0, "upper": 8, "public_rows": 5}
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_grid_too_fine_for_its_noise_is_refused():
    """Its releases stop at 2**62 steps, of which the noise would have been more."""
    with pytest.raises(InvalidArgument, match="granularity"):
        laplace(sensitivity=1, epsilon=1, granularity=Fraction(1, 1 << 100))
    finest = laplace(sensitivity=1, epsilon=1, granularity=Fraction(1, 1 << 55))
    errors = [abs(finest.release(0.0)) for _ in range(200)]
    # P(all of 200 below 0.3) = (1 - e^-0.3)^200 < 1e-100.
    assert max(errors) > 0.3
    assert finest.std == pytest.approx(math.sqrt(2))


def test_integer_noise_far_below_a_step_is_refused():
    """It is accepted once in a million tries: a release would not return."""
    with pytest.raises(InvalidArgument, match="no noise"):
        gaussian(sensitivity=1, mu=10**6)
    assert gaussian(sensitivity=1, mu=64).release(5) == 5


def test_a_threshold_that_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidArgument, match="at most 2\\*\\*55 steps"):
        above_threshold(sensitivity=1, epsilon=1e-17)
    assert above_threshold(sensitivity=1, epsilon=1e-9).certify().holds


@pytest.mark.parametrize("delta", [1e-30, 1e-300])
def test_tiny_deltas_are_calibrated(delta):
    sigma = discreet.accounting.conversion.gaussian_sigma(1e-9, delta=delta)
    found = discreet.accounting.conversion.gaussian_delta(1e-9, mu=1 / sigma)
    assert 0.99 * delta <= found <= delta


MAKERS = {
    "laplace": (lambda e: laplace(sensitivity=1, epsilon=e), 1),
    "laplace on reals": (lambda e: laplace(sensitivity=0.3, epsilon=e), 1),
    "laplace with delta": (lambda e: laplace(sensitivity=0.3, epsilon=e, delta=1e-9), 1),
    "mu": (lambda e: gaussian(sensitivity=0.3, mu=e), 1),
    "mu on integers": (lambda e: gaussian(sensitivity=1, mu=e), 1),
    "sigma": (lambda e: gaussian(sensitivity=0.3, sigma=e), 1),
    "truncated": (lambda e: truncated_laplace(sensitivity=1, epsilon=e, delta=1e-9), 1),
    "grafted": (lambda e: grafted(sensitivity=1, epsilon=e, delta=1e-9), 1),
    "bounded": (lambda e: bounded_laplace(lower=0, upper=8, sensitivity=1, epsilon=e), 1),
    "exponential": (lambda e: exponential_mechanism(sensitivity=1, epsilon=e), [0, 1]),
    "noisy max": (lambda e: report_noisy_max(sensitivity=1, epsilon=e), [0, 1]),
    "keys": (lambda e: partition_selection(groups=2, rho=e, delta=0.9), [1, 2]),
    "weighted": (lambda e: weighted_sensitivity(**COLUMN, epsilon=e, delta=1e-9), VALUES),
    "tested": (lambda e: propose_test_release(**COLUMN, bound=1, epsilon=e, delta=1e-9), VALUES),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_made_works(name, size):
    make, value = MAKERS[name]
    try:
        made = make(size)
    except (InvalidArgument, Unsupported):
        return  # refused where it is written
    made.release(value)
    assert made.certify().holds
