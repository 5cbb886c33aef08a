"""Noise that follows the area: A3, A15, A19, A39-A41."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.mechanisms.data_dependent._smooth_noise import laplace_delta
from discreet.noise.random_source import seeded_rng
from discreet_studies.blackbox_ranges.area_tables import ranges
from discreet_studies.blackbox_ranges.input_partition import chessboard
from discreet_studies.blackbox_ranges.prototypes import advanced_as_published, pair_delta, prototype
from discreet_studies.blackbox_ranges.smooth_ranges import (
    joint_ranges,
    kappa,
    local_sensitivities,
    smooth_as_published,
    smooth_bounds,
    smooth_ranges,
    textbook,
)

EDGES = [(a, b) for a, b in itertools.product(np.ndindex(3, 2, 3), repeat=2)
         if sum(i != j for i, j in zip(a, b, strict=True)) == 1]  # fmt: skip


def stick(epsilon, scale, shift, other):
    """The hockey-stick divergence of Laplace(0, scale) from Laplace(shift, other), integrated."""

    def excess(x):
        p = math.exp(-abs(x) / scale) / (2 * scale)
        q = math.exp(-abs(x - shift) / other) / (2 * other)
        return max(0.0, p - math.exp(epsilon) * q)

    # Where the logarithms of the two cross: in each of three pieces they are linear.
    marks = {0.0, shift}
    gap = math.log(other / scale) - epsilon
    for s, t in itertools.product((-1, 1), repeat=2):
        slope = -s / scale + t / other
        if slope:
            marks.add((t * shift / other - gap) / slope)
    far = 60 * max(scale, other)
    ends = sorted({-far, far, *(m for m in marks if abs(m) < far)})
    return sum(integrate.quad(excess, a, b, epsabs=1e-14)[0] for a, b in itertools.pairwise(ends))


def random_ranges(seed):
    rng = np.random.default_rng(seed)
    low = rng.integers(-60, 60, size=(3, 2, 3))
    return low, low + rng.integers(0, 50, size=(3, 2, 3))


# ── calibration ───────────────────────────────────────────────────────────────────────────────

KAPPAS = {
    0.1: {0.001: 1.0550, 0.005: 1.5199, 0.01: 4.1030},
    0.5: {0.001: 1.0105, 0.005: 1.0734, 0.01: 1.1780, 0.02: 1.4964, 0.0345: 2.5952},
    1: {0.001: 1.0052, 0.01: 1.0817, 0.0345: 1.4437, 0.05: 1.8794, 0.07: 3.1862},
    2: {0.001: 1.0026, 0.05: 1.3054, 0.1: 2.0676, 0.15: 5.8302},
    4: {0.001: 1.0013, 0.1: 1.3480, 0.2: 2.3912},
    8: {0.05: 1.0621, 0.1: 1.1482, 0.2: 1.4102},
}


@pytest.mark.parametrize("epsilon", KAPPAS)
def test_a40_multipliers_are_the_stated_ones(epsilon):
    for smoothness, wanted in KAPPAS[epsilon].items():
        found = kappa(epsilon=epsilon, delta=1e-6, smoothness=smoothness)
        assert found == pytest.approx(wanted, abs=0.0002)


@pytest.mark.parametrize(
    ("epsilon", "smoothness"), [(0.5, 0.05), (1, 0.1), (2, 0.2), (1, 1.0), (1, 2.0), (0.1, 0.0120)]
)
def test_a40_what_no_noise_can_keep_is_refused(epsilon, smoothness):
    with pytest.raises(InvalidArgument):
        kappa(epsilon=epsilon, delta=1e-6, smoothness=smoothness)
    assert kappa(epsilon=epsilon, delta=1e-6, smoothness=0) == 1


def test_a40_no_ratio_of_scales_exceeds_delta_and_the_closed_form_is_the_integral():
    for epsilon, delta, smoothness in ((1, 1e-6, 0.0345), (2, 1e-3, 0.2), (0.5, 1e-2, 0.05)):
        k = kappa(epsilon=epsilon, delta=delta, smoothness=smoothness)
        at_worst = stick(
            epsilon, k / epsilon, math.exp(-smoothness), k * math.exp(-smoothness) / epsilon
        )
        assert at_worst == pytest.approx(laplace_delta(epsilon, smoothness, k), abs=1e-8)
        for s in np.exp(np.linspace(-smoothness, smoothness, 41)):
            found = stick(epsilon, k / epsilon, min(1, s), k * s / epsilon)
            assert found <= delta * (1 + 1e-6) + 1e-12


def test_a3_the_textbook_multiplier_is_kept_to_where_it_holds():
    smoothness, two = textbook(epsilon=1, delta=1e-6)
    assert smoothness == pytest.approx(0.03446, abs=1e-5)
    assert two == 2
    for epsilon, delta in ((8, 0.01), (8, 0.1), (1, 1e-6), (0.1, 0.05)):
        smoothness, _ = textbook(epsilon=epsilon, delta=delta)
        assert stick(epsilon, 2 / epsilon, math.exp(-smoothness),
                     2 * math.exp(-smoothness) / epsilon) <= delta  # fmt: skip
    for epsilon, delta in ((8.1, 1e-6), (1, 0.11), (16, 1e-2)):
        with pytest.raises(InvalidArgument, match="up to 8"):
            textbook(epsilon=epsilon, delta=delta)
    smoothness = 16 / (2 * math.log(2 / 1e-2))
    assert stick(16, 2 / 16, math.exp(-smoothness), 2 * math.exp(-smoothness) / 16) > 1e-2


# ── ranges with smooth noise ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_a39_bounds_hold_are_smooth_and_are_what_brute_force_gives(seed):
    low, high = random_ranges(seed)
    local = local_sensitivities(low, high)
    every = list(np.ndindex(low.shape))
    wanted = {a: max([int(high[a] - low[a]),
                      *(max(int(high[a] - low[b]), int(high[b] - low[a]))
                        for c, b in EDGES if c == a)]) for a in every}  # fmt: skip
    assert all(local[a] == wanted[a] for a in every)
    bounds = smooth_bounds(local, 0.2)
    for a in every:
        apart = {b: sum(i != j for i, j in zip(a, b, strict=True)) for b in every}
        assert bounds[a] == pytest.approx(max(math.exp(-0.2 * apart[b]) * wanted[b] for b in every))
    assert (bounds >= local * (1 - 1e-12)).all()
    assert max(bounds[a] / bounds[b] for a, b in EDGES) <= math.exp(0.2) * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta", "smoothness"), [(1, 1e-3, 0.08), (2, 1e-2, 0.2)])
def test_a39_the_released_law_keeps_delta_on_every_ordered_edge(epsilon, delta, smoothness):
    low, high = random_ranges(7)
    made = smooth_ranges(low // 4, high // 4, epsilon=epsilon, delta=delta, smoothness=smoothness)
    made.certify()
    scales = made.bounds * float(made.noise.multiplier) * (1 + 2.0**-38)
    k = np.arange(-4000, 4001)

    def law(center, scale):
        def cdf(x):
            return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0) / scale),
                            1 - 0.5 * np.exp(-np.maximum(x, 0) / scale))  # fmt: skip

        return cdf(k + 0.5 - center) - cdf(k - 0.5 - center)

    worst = 0.0
    for a, b in [*EDGES, *((a, a) for a in np.ndindex(low.shape))]:
        for one, other in ((made.high[a], made.low[b]), (made.low[a], made.high[b])):
            p, q = law(int(one), scales[a]), law(int(other), scales[b])
            worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    assert worst <= delta * (1 + 1e-9)
    smaller = scales / 1.3  # with less noise it would not hold
    p, q = (law(c, smaller[a]) for c, a in _widest(made))
    assert float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) > delta


def _widest(made):
    _, a, b = max((int(made.high[a] - made.low[b]), a, b) for a, b in EDGES)
    return (int(made.high[a]), a), (int(made.low[b]), b)


def test_a39_releases_are_clipped_and_empty_ranges_refused():
    low, high = random_ranges(8)
    made = smooth_ranges(low, high, epsilon=1, delta=1e-3)
    assert made.guarantee.epsilon(1e-3) <= 1
    drawn = [made.release(10**9, (0, 0, 0), rng=seeded_rng(i)) for i in range(200)]
    scale = float(made.expected_noise()[0, 0, 0])
    assert abs(np.median(drawn) - high[0, 0, 0]) < scale
    with pytest.raises(NotCertified, match="empty"):
        smooth_ranges(high + 1, high, epsilon=1, delta=1e-3)
    with pytest.raises(NotCertified, match="replace"):
        smooth_ranges(low, high, epsilon=1, delta=1e-3, adjacency="step")
    with pytest.raises(InvalidArgument, match="rounding"):
        smooth_ranges(low, high, epsilon=1, delta=1e-3, smoothness=1e-9)
    with pytest.raises(InvalidArgument, match="whole numbers"):
        smooth_ranges(low / 2, high / 2, epsilon=1, delta=1e-3)


def test_a39_short_tuples_cannot_gain():
    smoothness, two = textbook(epsilon=1, delta=1e-6)
    assert math.log(two) / smoothness == pytest.approx(20.1, abs=0.1)
    low, high = ranges(np.zeros((2,) * 4, dtype=np.int64), 100)
    assert two * smooth_bounds(local_sensitivities(low, high), smoothness).min() > 100


COUNTS = {10: (1.798, 2.942, 1.804), 50: (0.462, 0.667, 0.454), 200: (0.122, 0.104, 0.075)}


@pytest.mark.parametrize("n", COUNTS)
def test_a41_the_count_of_ones_has_the_stated_errors(n):
    j = np.arange(n + 1)
    y = 10 / (1 + np.exp(-10 * (j / n - 0.5)))
    edges = np.column_stack((j[:-1], j[1:]))

    def solve(smoothness, k):
        return joint_ranges(edges, y, areas=j, many=n + 1, epsilon=1, smoothness=smoothness,
                            multiplier=k)  # fmt: skip

    book = textbook(epsilon=1, delta=1e-6)
    exact = [
        solve(b, kappa(epsilon=1, delta=1e-6, smoothness=b)) for b in (0.001, 0.01, 0.0345, 0.05)
    ]
    best = min(exact, key=lambda one: one.error)
    found = (solve(0, 1).error, solve(*book).error, best.error)
    assert found == pytest.approx(COUNTS[n], abs=0.002)
    # Bounds are recomputed from whole ranges for a release, and are positive.
    low = np.floor(best.low * 1024).astype(np.int64)
    high = np.maximum(low, np.floor(best.high * 1024).astype(np.int64))
    bounds = smooth_bounds(np.maximum(local_sensitivities(low, high, adjacency="step"), 1), 0.05,
                           adjacency="step")  # fmt: skip
    assert bounds.min() > 0


# ── as published ──────────────────────────────────────────────────────────────────────────────


def test_a15_bounds_reach_zero_next_to_noise():
    # M2: seven binary positions, one center of 0.3 at all ones.
    centers = np.zeros((2,) * 7, dtype=np.int64)
    centers[(1,) * 7] = 5
    bounds, _ = smooth_as_published(centers, width=Fraction(6, 10), step=Fraction(6, 100),
                                    gamma=Fraction(12, 100))  # fmt: skip
    ones = np.indices(centers.shape).sum(axis=0)
    assert set(bounds[ones <= 3]) == {0}
    assert set(bounds[ones == 4]) == {Fraction(12, 100)}
    assert pair_delta(0.0, 0.12, epsilon=1) == 1


def test_a15_the_listing_floods_to_two_levels():
    rng = np.random.default_rng(9)
    for _ in range(40):
        centers = rng.integers(0, 6, size=(3, 3, 3))
        bounds, _ = smooth_as_published(centers, width=Fraction(10), step=Fraction(1),
                                        gamma=Fraction(1), listing=True)  # fmt: skip
        assert len(set(bounds.ravel())) <= 2


def test_a19_the_true_delta_of_the_published_variant():
    assert pair_delta(0.24, 0.12, epsilon=1) == pytest.approx(0.119, abs=0.001)
    assert pair_delta(0.24, 0.12, epsilon=1, shift=0.12) == pytest.approx(0.104, abs=0.001)
    assert pair_delta(0.24, 0.12, epsilon=1, shift=0) == pytest.approx(0.092, abs=0.001)
    assert 2 * math.exp(-1 / (2 * 0.12)) == pytest.approx(0.031, abs=0.001)  # M4


def test_a19_the_second_prototype_cannot_release():
    rng = np.random.default_rng(10)
    x = rng.uniform(size=(20, 3))
    board = chessboard(positions=3, parts=3, lower=0, upper=1)
    first = prototype(board, public_inputs=x, public_outputs=np.sin(9 * x.sum(axis=1)),
                      sensitivity=0.6)  # fmt: skip
    second = advanced_as_published(first, epsilon=1)
    assert not second.is_private
    with pytest.raises(NotCertified, match="no DP guarantee"):
        second.release(np.sum, x[0], epsilon=1)
    assert second.true_delta() > 2 * math.exp(-1 / (2 * float(second.gamma)))  # what it claims
    assert second.low.shape == (3, 3, 3)


def test_a39_short_integers_do_not_wrap_around():
    low, high = (np.full((2, 2), end, dtype=np.int8) for end in (-100, 100))
    made = smooth_ranges(low, high, epsilon=1, delta=1e-6)
    assert made.bounds.min() == pytest.approx(200)
    high[0, 0] = -100  # what was proved stays
    assert made.high[0, 0] == 100
    with pytest.raises(InvalidArgument, match="whole"):
        smooth_ranges(low, high.astype(float), epsilon=1, delta=1e-6)
    with pytest.raises(InvalidArgument, match="larger step"):
        smooth_ranges(low.astype(np.int64) * 2**55, high.astype(np.int64), epsilon=1, delta=1e-6)
