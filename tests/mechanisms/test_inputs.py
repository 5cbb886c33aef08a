"""Bad input gets an error that names the argument, quotes no value and draws no randomness."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain, PrivacyError


class NoBits:
    """Randomness that must not be touched."""

    width = 64
    private = False

    def words(self, count):
        if count:
            raise AssertionError("randomness was drawn")
        return np.empty(0, dtype=np.uint64)


SECRET = 8_675_309
NOT_POSITIVE = [0, -1, -0.0, math.nan, math.inf, -math.inf, "1", None, True, 1j, [1]]
BUILDERS = {
    "laplace": lambda **k: discreet.laplace(**{"sensitivity": 1, "epsilon": 1, **k}),
    "gaussian": lambda **k: discreet.gaussian(
        **{"sensitivity": 1, "epsilon": 1, "delta": 1e-6, **k}
    ),
    "truncated": lambda **k: discreet.truncated_laplace(
        **{"sensitivity": 1, "epsilon": 1, "delta": 1e-3, **k}
    ),
    "exponential": lambda **k: discreet.exponential_mechanism(
        **{"sensitivity": 1, "epsilon": 1, **k}
    ),
    "permute": lambda **k: discreet.permute_and_flip(**{"sensitivity": 1, "epsilon": 1, **k}),
    "noisy_max": lambda **k: discreet.report_noisy_max(**{"sensitivity": 1, "epsilon": 1, **k}),
    "threshold": lambda **k: discreet.above_threshold(**{"sensitivity": 1, "epsilon": 1, **k}),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("argument", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=repr)
def test_parameters_must_be_positive_and_finite(name, argument, bad):
    if bad is None:
        with pytest.raises((InvalidArgument, TypeError)):
            BUILDERS[name](**{argument: bad})
        return
    with pytest.raises(InvalidArgument, match=argument):
        BUILDERS[name](**{argument: bad})


@pytest.mark.parametrize("bad", [0, 1, -1e-9, 1.5, math.nan, math.inf, "x"])
def test_delta_must_lie_inside_the_unit_interval(bad):
    for name in ("gaussian", "truncated"):
        with pytest.raises(InvalidArgument, match="delta"):
            BUILDERS[name](delta=bad)
    if bad != 0:
        with pytest.raises(InvalidArgument, match="delta"):
            discreet.approx_dp(1, bad)


@pytest.mark.parametrize("bad", [0, -3, math.nan, math.inf, True])
def test_scales_must_be_positive_and_finite(bad):
    with pytest.raises(InvalidArgument, match="scale"):
        discreet.laplace(sensitivity=1, scale=bad)
    for name in ("sigma", "rho", "mu"):
        with pytest.raises(InvalidArgument, match=name):
            discreet.gaussian(sensitivity=1, **{name: bad})


def test_exactly_one_way_to_say_how_much():
    with pytest.raises(InvalidArgument, match="either"):
        discreet.laplace(sensitivity=1)
    with pytest.raises(InvalidArgument, match="either"):
        discreet.laplace(sensitivity=1, epsilon=1, scale=1)
    for wrong in ({}, {"epsilon": 1}, {"delta": 0.1}, {"rho": 1, "mu": 1}):
        with pytest.raises(InvalidArgument, match="gaussian takes"):
            discreet.gaussian(sensitivity=1, **wrong)


BAD_VALUES = [
    math.nan,
    [1.0, math.nan],
    [1, math.nan],
    [1, None],
    Decimal("nan"),
    np.array([1.0, math.nan]),
    "secret",
    ["a", "b"],
    [[1, 2], [3]],
    None,
    object(),
    1 + 2j,
    np.datetime64("2020-01-01"),
    np.array([np.datetime64("2020-01-01")]),
    np.array([1.0, None], dtype=object),
    np.array([1], dtype=np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else math.nan,
]


@pytest.mark.parametrize("value", BAD_VALUES, ids=range(len(BAD_VALUES)))
def test_bad_values_are_refused_before_randomness_is_drawn(value):
    for mechanism in (
        BUILDERS["laplace"](),
        BUILDERS["gaussian"](),
        BUILDERS["laplace"](domain="reals"),
    ):
        with pytest.raises(OutOfDomain):
            mechanism.release(value, rng=NoBits())


def test_errors_do_not_quote_the_private_value():
    attempts = [
        lambda: BUILDERS["laplace"]().release([SECRET + 0.5, SECRET]),
        lambda: BUILDERS["laplace"]().release([SECRET, math.nan]),
        lambda: BUILDERS["laplace"]().release(f"{SECRET}"),
        lambda: BUILDERS["laplace"]().release([[SECRET], [SECRET, SECRET]]),
        lambda: BUILDERS["exponential"]().release([[SECRET]]),
        lambda: BUILDERS["truncated"]().release([SECRET, SECRET]),
        lambda: discreet.randomized_response(categories=3, epsilon=1).release(SECRET),
        lambda: BUILDERS["threshold"]().release([SECRET], threshold=math.nan),
    ]
    for attempt in attempts:
        with pytest.raises(PrivacyError) as caught:
            attempt()
        shown = f"{caught.value!r} {caught.value.__cause__!r}"
        assert str(SECRET) not in shown
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("scores", [[], [[1, 2]], 5, math.nan, [math.nan], ["a"], [None]], ids=repr)
def test_bad_scores_are_refused(scores):
    for name in ("exponential", "permute", "noisy_max"):
        with pytest.raises(OutOfDomain):
            BUILDERS[name]().release(scores, rng=NoBits())


@pytest.mark.parametrize("codes", [3, -1, [0, 3], 0.5, [0, 0.5], math.nan, "a", None], ids=repr)
def test_bad_categories_are_refused(codes):
    with pytest.raises(OutOfDomain):
        discreet.randomized_response(categories=3, epsilon=1).release(codes, rng=NoBits())


def test_empty_arrays_are_released_empty_without_randomness():
    for mechanism in (BUILDERS["laplace"](), BUILDERS["gaussian"]()):
        assert mechanism.release(np.empty((0, 3)), rng=NoBits()).shape == (0, 3)
        assert mechanism.release(np.empty(0, dtype=int), rng=NoBits()).dtype == np.int64


def test_huge_scales_work_or_are_refused():
    assert abs(discreet.laplace(sensitivity=1, epsilon=1e-12).release(0)) < 10**15
    with pytest.raises(InvalidArgument, match="coarser grid"):
        discreet.laplace(sensitivity=1, epsilon=1e-18)
    real = discreet.laplace(sensitivity=1.5, epsilon=1e-30)
    assert real.reals.step > 1e20  # the grid grows with the noise
    assert math.isfinite(real.release(1.0))


def test_a_grid_must_be_a_power_of_two_below_the_noise():
    assert discreet.laplace(sensitivity=1.0, epsilon=1, granularity=2**-6).release(0.3) % 2**-6 == 0
    assert discreet.laplace(sensitivity=1.0, epsilon=1, granularity=2.0**-30).reals.step == 2.0**-30
    with pytest.raises(InvalidArgument, match="power of two"):
        discreet.laplace(sensitivity=1.0, epsilon=1, granularity=0.1)
    with pytest.raises(InvalidArgument, match="sixteenth"):
        discreet.laplace(sensitivity=1.0, epsilon=1, granularity=2)


numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.fractions(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
)


@given(sensitivity=numbers, epsilon=numbers, delta=numbers, value=numbers)
def test_anything_gives_a_release_or_our_own_error(sensitivity, epsilon, delta, value):
    """Fuzz: never another exception, never a non-finite or off-grid output."""
    for build in (
        lambda: discreet.laplace(sensitivity=sensitivity, epsilon=epsilon),
        lambda: discreet.gaussian(sensitivity=sensitivity, mu=epsilon),
        lambda: discreet.truncated_laplace(sensitivity=sensitivity, epsilon=epsilon, delta=delta),
    ):
        try:
            released = build().release(value, rng=discreet.seeded_rng(1))
        except PrivacyError:
            continue
        assert isinstance(released, int | float)
        assert math.isfinite(released)


def test_sensitivities_convert_between_norms():
    assert discreet.laplace(sensitivity=1, epsilon=1, norm="linf", dimension=5).std == (
        discreet.laplace(sensitivity=5, epsilon=1).std
    )
    l2 = discreet.laplace(sensitivity=1, epsilon=1, norm="l2", dimension=4)
    assert l2.std == discreet.laplace(sensitivity=2, epsilon=1).std
    odd = discreet.laplace(sensitivity=1, epsilon=1, norm="l2", dimension=5).reals.event.scale
    assert odd == 1  # per unit of L1 sensitivity
    wide = discreet.gaussian(
        sensitivity=1, rho=Fraction(1, 2), norm="linf", dimension=9, domain="reals"
    )
    assert wide.reals.scale == pytest.approx(3)
    for bad in ({"norm": "l2"}, {"norm": "linf"}, {"norm": "l7"}, {"norm": "linf", "dimension": 0}):
        with pytest.raises(InvalidArgument):
            discreet.laplace(sensitivity=1, epsilon=1, **bad)


def test_mechanisms_are_immutable():
    with pytest.raises(AttributeError):
        BUILDERS["laplace"]().relation = None


@pytest.mark.parametrize(
    "asked",
    [{"mu": 2.0**-59}, {"sigma": 2.0**59, "granularity": 1, "domain": "reals"}, {"mu": 2.0**-80}],
)
def test_gaussian_noise_that_could_leave_64_bits_is_refused(asked):
    with pytest.raises(InvalidArgument, match="coarser grid"):
        discreet.gaussian(sensitivity=1, **asked)


def test_scalars_of_numpy_are_numbers():
    made = discreet.laplace(
        sensitivity=np.float32(0.1), epsilon=np.int64(1), granularity=np.float32(2**-10)
    )
    assert made == discreet.laplace(
        sensitivity=float(np.float32(0.1)), epsilon=1, granularity=2**-10
    )
    assert discreet.laplace(sensitivity=np.int32(3), epsilon=1) == discreet.laplace(
        sensitivity=3, epsilon=1
    )
