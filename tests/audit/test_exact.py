"""The exact audit against closed forms and the numbers of the literature."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit import lattice_distribution as lattice
from discreet.core.errors import InvalidArgument


def laplace_pair(scale: float, shift: int) -> exact.OutputPair:
    # Beyond both centers the ratio is constant: clamping there loses nothing.
    noise = lattice.discrete_laplace(scale)
    return exact.pair(noise.clamp(0, shift), noise.shift(shift).clamp(0, shift))


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (3.0, 2), (100.0, 50), (0.5, 3)])
def test_laplace_is_exactly_shift_over_scale(scale: float, shift: int) -> None:
    low, high = exact.epsilon(laplace_pair(scale, shift))
    assert low <= shift / scale <= high
    assert high - low < 1e-11


@pytest.mark.parametrize("eps", [0.0, 0.25, 0.5, 0.9, 1.0, 1.5])
def test_fine_laplace_has_the_continuous_profile(eps: float) -> None:
    """delta = 1 - exp((eps - 1)/2), B16, up to the grid."""
    steps = 2000
    low, high = exact.delta(laplace_pair(steps, steps), eps)
    assert high - low < 1e-11
    assert high == pytest.approx(max(0.0, -math.expm1((eps - 1) / 2)), abs=1 / steps)


@pytest.mark.parametrize(
    ("eps", "single", "double"),
    [(0.25, 0.313, 0.146), (0.5, 0.2212, 0.0572), (0.75, 0.118, 0.0044)],
)
def test_sum_of_two_laplace_noises(eps: float, single: float, double: float) -> None:
    """B22, M17: the profile improves although pure epsilon does not; densities and lattice."""

    def one(x: float) -> float:
        return math.exp(-abs(x)) / 2

    def two(x: float) -> float:
        return (1 + abs(x)) * math.exp(-abs(x)) / 4

    breaks = [-40.0, 0.0, *np.linspace(0.05, 1, 20), 40.0]
    for density, true in [(one, single), (two, double)]:
        found = exact.density_delta(
            density, lambda x, f=density: f(x - 1), epsilon=eps, breaks=breaks
        )
        assert found == pytest.approx(true, abs=5e-4 if true > 0.1 else 1e-4)
    step = 100
    noise = lattice.discrete_laplace(step, unseen=1e-12)
    twice = noise.plus(noise)
    listed = exact.delta(exact.pair(twice, twice.shift(step)), eps).upper
    assert listed == pytest.approx(double, abs=2e-3)


def test_binary_flip_boundary() -> None:
    """B20: (ln 3, 0.1) holds from p = 0.225 and not below."""

    def flip(p: float) -> exact.OutputPair:
        laws = [outputs.randomized_response(bit, keep=1 - p) for bit in (0, 1)]
        return exact.pair(*laws)

    assert exact.delta(flip(0.225), math.log(3)).lower <= 0.1
    assert exact.delta(flip(0.2249), math.log(3)).lower > 0.1
    assert exact.epsilon(flip(0.25)).lower == pytest.approx(math.log(3), abs=1e-12)


def test_two_flips_fail_where_one_passes() -> None:
    """B20: 9/16 > 3/16 + 0.1."""
    one = {0: Fraction(3, 4), 1: Fraction(1, 4)}
    other = {0: Fraction(1, 4), 1: Fraction(3, 4)}
    twice = exact.pair(
        {(a, b): one[a] * one[b] for a in one for b in one},
        {(a, b): other[a] * other[b] for a in one for b in one},
    )
    assert exact.delta(twice, math.log(3)).lower == pytest.approx(9 / 16 - 3 / 16, abs=1e-12)
    assert exact.witness(twice, math.log(3)) == ((0, 0),)


@pytest.mark.parametrize(
    ("eps", "true"),
    [(0.1, 0.00264), (0.5, 0.0160), (1.0, 0.0396), (2.0, 0.1145), (5.0, 0.530), (10.0, 0.975)],
)
def test_mixed_noise_mechanism_numbers(eps: float, true: float) -> None:
    """M35: sigma = sqrt(2) Delta / epsilon, whatever the claimed delta."""
    steps = 600
    noise = lattice.discrete_gaussian(math.sqrt(2) * steps / eps)
    laws = exact.pair(noise, noise.shift(steps))
    assert exact.delta(laws, eps).upper == pytest.approx(true, rel=6e-3)


def test_misprinted_gaussian_numbers() -> None:
    """M13: sigma^2 = 2 Delta ln(1.25/delta)/epsilon at Delta = 10 gives 0.028, not 1e-5."""
    sigma = math.sqrt(2 * 10 * math.log(1.25e5))
    noise = lattice.discrete_gaussian(sigma * 20)
    assert exact.delta(exact.pair(noise, noise.shift(200)), 1.0).lower == pytest.approx(
        0.028, abs=5e-4
    )


def test_epsilon_and_delta_are_inverse() -> None:
    noise = lattice.discrete_gaussian(5.0)
    laws = exact.pair(noise, noise.shift(3))
    for eps in (0.1, 0.7, 1.3):
        d = exact.delta(laws, eps)
        found = exact.epsilon(laws, d.upper)
        assert found.lower <= eps <= found.upper + 1e-9
        assert found.upper - found.lower < 1e-6


def test_quadrature_agrees_with_the_gaussian_closed_form() -> None:
    sigma, eps = 2.0, 0.5
    closed = stats.norm.cdf(1 / (2 * sigma) - eps * sigma) - math.exp(eps) * stats.norm.cdf(
        -1 / (2 * sigma) - eps * sigma
    )
    found = exact.density_delta(
        stats.norm(1, sigma).pdf,
        stats.norm(0, sigma).pdf,
        epsilon=eps,
        breaks=[-40, 0.5 + eps * sigma**2, 40],
    )
    assert found == pytest.approx(closed, abs=1e-11)


def test_half_line_equals_the_full_sum() -> None:
    noise = lattice.discrete_gaussian(30.0)
    for shift, eps in [(1, 0.01), (20, 0.5), (30, 1.0)]:
        low, high = exact.delta_one_way(exact.pair(noise, noise.shift(shift)), eps)
        found = exact.additive_delta(noise.cdf, shift=shift, epsilon=eps, lower=-300, upper=300)
        assert low - 1e-12 <= found <= high + 1e-12
        assert found > 0


def test_unlisted_mass_is_never_in_favor_of_the_claim() -> None:
    noise = lattice.discrete_laplace(1.0, unseen=1e-3)
    laws = exact.pair(noise, noise.shift(1))
    assert exact.epsilon(laws).upper == math.inf
    assert exact.delta(laws, 1.0).upper >= 1e-3
    # The listed part already proves what it proves.
    assert exact.epsilon(laws, 0.01).lower > 0.9


def test_what_is_only_unlisted_is_not_impossible() -> None:
    noise = lattice.discrete_laplace(1.0)
    laws = exact.pair(noise, noise.shift(10))
    assert 9.9 < exact.epsilon(laws).lower <= 10.0


def test_an_impossible_outcome_is_an_infinite_epsilon() -> None:
    laws = exact.pair({"a": 0.5, "b": 0.5}, {"a": 1.0})
    assert exact.epsilon(laws) == (math.inf, math.inf)
    assert exact.epsilon(laws, 0.5 + 1e-9).upper == 0.0
    assert exact.delta(laws, 800.0).lower == 0.5
    assert exact.witness(laws, 3.0) == ("b",)


@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=6),
    st.lists(st.integers(1, 50), min_size=2, max_size=6),
    st.floats(0, 3),
)
def test_delta_is_the_best_of_all_sets(a: list[int], b: list[int], eps: float) -> None:
    size = min(len(a), len(b))
    p = np.array(a[:size]) / sum(a[:size])
    q = np.array(b[:size]) / sum(b[:size])
    best = max(
        sum(p[i] - math.exp(eps) * q[i] for i in range(size) if mask >> i & 1)
        for mask in range(1 << size)
    )
    laws = exact.OutputPair(outcomes=range(size), left=p, right=q)
    low, high = exact.delta_one_way(laws, eps)
    assert low - 1e-12 <= best <= high + 1e-12
    assert exact.epsilon_one_way(laws, high).lower <= eps + 1e-9


def test_products_compose() -> None:
    """Independent outputs: epsilons add, and a shift split over two coordinates costs no more."""
    flip = exact.pair({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75})
    twice = exact.product(flip, flip)
    assert exact.epsilon(twice).lower == pytest.approx(2 * math.log(3), abs=1e-11)
    assert exact.delta(twice, math.log(3)).lower == pytest.approx(9 / 16 - 3 / 16, abs=1e-12)
    assert exact.witness(twice, math.log(3)) == ((0, 0),)
    split = exact.product(laplace_pair(2.0, 1), laplace_pair(2.0, 1))
    for eps in (0.0, 0.3, 0.7, 1.0):
        assert exact.delta(split, eps).lower <= exact.delta(laplace_pair(2.0, 2), eps).upper


def test_bad_arguments_are_refused() -> None:
    good = exact.pair({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75})
    with pytest.raises(InvalidArgument, match="epsilon"):
        exact.delta(good, math.nan)
    with pytest.raises(InvalidArgument, match="delta"):
        exact.epsilon(good, 1.5)
    with pytest.raises(InvalidArgument, match="sum"):
        lattice.LatticeDistribution(start=0, mass=np.array([0.4, 0.4]))
    with pytest.raises(InvalidArgument, match="left"):
        exact.OutputPair(outcomes=range(1), left=np.array([2.0]), right=np.array([1.0]))
    # What is not listed may be what tells the inputs apart: it must be stated.
    with pytest.raises(InvalidArgument, match="right must be masses that sum to 1"):
        exact.pair({0: 0.5, 1: 0.5}, {0: 0.5})
    half = np.array([0.5])
    exact.OutputPair(outcomes=range(1), left=half, right=half, missing=0.5)
    with pytest.raises(InvalidArgument, match="left must be masses that sum to 1"):
        exact.OutputPair(outcomes=range(1), left=half, right=half, missing=0.4)
    with pytest.raises(InvalidArgument, match="scale"):
        lattice.discrete_laplace(0.0)
