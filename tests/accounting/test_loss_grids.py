"""The arithmetic of composed losses, and the grids that they are set on."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.accounting import _numeric_composition as grid
from discreet.accounting import pld
from discreet.accounting import pld as cells
from discreet.accounting.dominating_pairs import (
    AtomPair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
)

# ── composed losses ──────────────────────────────────────────────────────────


def part(weights, *, start=0, step=0.25, tilt=1.0, **more):
    found = np.asarray(weights, dtype=float)
    return pld.ComposedLoss(step=step, tilt=tilt, start=start, weights=found, log_scale=0.1, **more)


def test_tilted_masses_keep_their_law():
    masses = cells.LossMasses(
        index=np.array([-2, 0, 3]), mass=np.array([0.2, 0.5, 0.25]), infinity=0.05, offset=0.01
    )
    found = pld.tilt_masses(masses, step=0.25, tilt=1.5)
    assert found.start == -2
    assert found.losses() == pytest.approx(0.01 + 0.25 * np.arange(-2, 4))
    assert found.weights.sum() == pytest.approx(1)
    back = found.weights * np.exp(found.log_scale - 1.5 * found.losses())
    assert back == pytest.approx([0.2, 0, 0.5, 0, 0, 0.25])
    assert (found.infinity, found.count) == (0.05, 1)
    assert found.lost == pytest.approx(6e-18)
    wide = replace(masses, index=np.array([-2, 0, pld.LARGEST - 2]))
    with pytest.raises(OverflowError):
        pld.tilt_masses(wide, step=1e-9, tilt=0.0)
    assert pld.tilt_masses(replace(wide, index=wide.index - [0, 0, 1]), step=1e-9, tilt=0.0)


@pytest.mark.parametrize("count", [2, 3, 40])
def test_powers_are_convolutions(count):
    rng = np.random.default_rng(1)
    one = part(rng.dirichlet(np.ones(9)), start=-3, offset=0.02, infinity=0.01, lost=1e-17)
    true = np.ones(1)
    for _ in range(count):
        true = np.convolve(true, one.weights)
    found = pld.power(one, count)
    assert (found.step, found.tilt, found.count) == (0.25, 1.0, count)
    assert found.log_scale == pytest.approx(0.1 * count)
    assert found.offset == pytest.approx(0.02 * count)
    assert found.infinity == pytest.approx(1 - 0.99**count)
    # T6, over all frequencies: the transforms' errors, the tails, what was lost before.
    size = found.weights.size
    spectrum = np.abs(np.fft.fft(one.weights, size))
    relative = 8 * 2.0**-53 * math.log2(size)
    forth = count * relative * np.linalg.norm(one.weights)
    forth *= math.sqrt(np.mean(spectrum ** (2 * count - 2)))
    error = (forth + relative * math.sqrt(np.mean(spectrum ** (2 * count)))) * min(size, 5)
    known = count * 1e-17 + 4e-15
    assert known + error <= found.lost <= (known + error) * 1.6
    whole = np.zeros_like(true)
    first = found.start + 3 * count
    whole[first : first + found.weights.size] = found.weights
    assert whole == pytest.approx(true, abs=1e-15)
    assert np.abs(whole - true).sum() <= found.lost
    assert pld.power(one, 1) is one


def test_powers_take_a_window_that_holds_almost_all():
    one = part(np.full(200, 1 / 200))
    found = pld.power(one, 1000)
    assert found.weights.size < 40_000  # of 199 001: sixteen standard deviations, about
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    mean = float(found.weights @ (found.start + np.arange(found.weights.size)))
    assert mean == pytest.approx(1000 * 99.5, abs=1e-6)
    with pytest.raises(OverflowError):
        pld.power(part(np.full(1 << 16, 2.0**-16)), 2000)


@pytest.mark.parametrize(("many", "other"), [(5, 7), (100, 7), (100, 150), (64, 64)])
def test_sums_are_convolutions(many, other):
    rng = np.random.default_rng(2)
    left = part(rng.dirichlet(np.ones(many)), start=-4, infinity=0.1, lost=1e-16, offset=0.1)
    right = part(rng.dirichlet(np.ones(other)), start=6, infinity=0.2, lost=2e-16, count=3)
    found = pld.convolve(left, right)
    assert found.weights == pytest.approx(np.convolve(left.weights, right.weights), abs=1e-15)
    assert (found.start, found.count) == (2, 4)
    assert found.log_scale == pytest.approx(0.2)
    assert found.offset == pytest.approx(0.1)
    assert found.infinity == pytest.approx(1 - 0.9 * 0.8)
    # Long ones go by transforms, whose error is paid for.
    known = 3e-16 + 2 * pld.TRUNCATE
    assert (found.lost > known * (1 + 1e-9)) is (min(many, other) >= 64)
    assert found.lost < 1e-14


def test_a_coarse_grid_is_set_on_the_finer():
    coarse = part([0.25, 0.75], start=3, step=0.5)
    fine = part([0.5, 0.25, 0.25], start=-1, step=0.125)
    for found in (pld.convolve(coarse, fine), pld.convolve(fine, coarse)):
        assert found.step == 0.125
        assert found.start == 11
        assert (found.infinity, found.offset) == (0, 0)
        true = np.convolve([0.25, 0, 0, 0, 0.75], [0.5, 0.25, 0.25])
        assert found.weights == pytest.approx(true)
    all_three = pld.compose([coarse, fine, coarse])
    twice = np.convolve([0.25, 0, 0, 0, 0.75], [0.25, 0, 0, 0, 0.75])
    assert all_three.weights == pytest.approx(np.convolve(twice, [0.5, 0.25, 0.25]))
    assert all_three.start == 23
    assert all_three.count == 3


def test_ends_are_trimmed_by_what_is_paid_for():
    tiny = pld.TRUNCATE / 3
    weights, first = pld._trim(np.array([tiny, tiny, 0.5, 0.5, tiny, tiny, tiny / 2]))
    assert weights.tolist() == [0.5, 0.5]
    assert first == 2
    weights, first = pld._trim(np.array([4 * tiny, 0.5, 4 * tiny]))
    assert (weights.size, first) == (3, 0)
    with pytest.raises(OverflowError):
        pld.convolve(part(np.ones(pld.LARGEST // 2 + 1)), part(np.ones(pld.LARGEST // 2 + 1)))


def test_errors_reach_as_far_as_the_tilt_lets_them():
    assert pld._reach(part([1.0], tilt=0.0), 7) == 7
    assert pld._reach(part([1.0], tilt=2.0), 7) == pytest.approx(3)  # 1 + 1/(2 * 0.25)
    assert pld._reach(part([1.0], tilt=2.0), 2) == 2


@pytest.mark.parametrize("tilt", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_the_profile_of_a_grid_is_its_sum(tilt, side):
    rng = np.random.default_rng(3)
    mass = rng.dirichlet(np.ones(40)) * 0.999
    masses = cells.LossMasses(index=np.arange(-15, 25), mass=mass, infinity=0.001, offset=0.013)
    source = pld.tilt_masses(masses, step=0.1, tilt=tilt)
    profile = pld.profile(source, side=side)
    losses = source.losses()

    def true(epsilon):
        return 0.001 + float((mass * np.maximum(0, -np.expm1(epsilon - losses))).sum())

    outward = 1 if side == "upper" else -1
    for epsilon in (-2.0, -1.487, -0.3, 0.0, 0.013, 0.77, 2.3, 2.413, 2.5, 9.0):
        found = profile.delta(epsilon)
        assert found == pytest.approx(true(epsilon), rel=1e-6, abs=1e-12)
        assert (found - true(epsilon)) * outward >= -1e-16
    for delta in (0.3, 0.1, 0.02, 0.0011):
        epsilon = profile.epsilon(delta)
        assert true(epsilon) == pytest.approx(delta, rel=1e-5)
        assert (true(epsilon) - delta) * outward <= 1e-13
    # Below what is lost for ever no epsilon helps; above all there is, none is needed.
    assert profile.epsilon(0.0009) == (math.inf if side == "upper" else pytest.approx(2.4, abs=0.3))
    assert profile.epsilon(0.9) == 0


def test_what_was_lost_is_paid_for():
    masses = cells.LossMasses(index=np.array([-1, 1]), mass=np.array([0.4, 0.6]), infinity=0.0)
    source = replace(pld.tilt_masses(masses, step=0.5, tilt=2.0), lost=1e-3)
    exact = 0.6 * -math.expm1(0.1 - 0.5)
    gap = 1e-3 * math.exp(source.log_scale - 2.0 * 0.1)
    for side, sign in (("upper", 1), ("lower", -1)):
        found = pld.profile(source, side=side).delta(0.1)
        assert found == pytest.approx(exact + sign * gap, rel=1e-6)
    beyond = pld.profile(source, side="lower").delta(3.0)
    assert beyond == 0
    assert pld.profile(source, side="upper").delta(3.0) == pytest.approx(
        1e-3 * math.exp(source.log_scale - 6.0), rel=1e-6
    )
    # Snapped losses count too: twice the snap for every use.
    many = replace(source, lost=0.0, count=10**6)
    drift = 2 * cells.SNAP * 0.5 * 10**6
    for side, sign in (("upper", -1), ("lower", 1)):
        found = pld.profile(many, side=side).delta(0.2)
        assert found == pytest.approx(0.6 * -math.expm1(0.2 + sign * drift - 0.5), rel=1e-9)


# ── grids ────────────────────────────────────────────────────────────────────


def test_a_sketch_has_the_moments_of_the_laws():
    parts = [(AtomPair(np.array([-1.0, 1.0]), np.array([0.25, 0.75])), 3), (GaussianPair(0.6), 2)]
    drawn = grid.sketch(parts, 1e-9)
    for tilt in (0.0, 0.5, 2.0):
        whole, variances = drawn.moments(tilt)
        weights = np.array([0.25, 0.75]) * np.exp(tilt * np.array([-1.0, 1.0]))
        exact = 3 * math.log(weights.sum()) + 2 * 0.18 * (tilt + tilt**2)
        assert whole == pytest.approx(exact, rel=1e-2, abs=1e-6)
        weights /= weights.sum()
        mean = weights @ [-1.0, 1.0]
        assert variances[0] == pytest.approx(1 - mean**2)
        assert variances[1] == pytest.approx(0.36, rel=1e-2)
    assert drawn.counts.tolist() == [3, 2]
    for wide in (AtomPair(np.array([0.0, 401.0]), np.full(2, 0.5)), GaussianPair(60.0)):
        with pytest.raises(OverflowError):
            grid.sketch([(wide, 1)], 1e-9)
    assert grid.sketch([(AtomPair(np.array([0.0, 400.0]), np.full(2, 0.5)), 1)], 1e-9)
    with pytest.raises(OverflowError):
        grid.sketch([(AtomPair(np.zeros(1), np.array([1e-9])), 1)], 1e-9)


def test_the_tilt_is_the_best_chernoff_order():
    """For Gaussians the moments are known, and with them the best order."""
    mu, count = 0.3, 20
    parts = [(GaussianPair(mu), count)]
    drawn = grid.sketch(parts, 1e-30)
    half = count * mu**2 / 2
    orders = np.exp(np.linspace(-5, 4, 4001))
    cks = orders * np.log1p(-1 / (1 + orders)) - np.log1p(orders)
    by_delta = (half * (orders + orders**2) - math.log(1e-6) + cks) / orders
    assert grid.tilt_for_delta(drawn, 1e-6) == pytest.approx(orders[by_delta.argmin()], rel=0.05)
    by_epsilon = half * (orders + orders**2) - orders * 4.0 + cks
    tilt, log = grid.tilt_for_epsilon(drawn, 4.0)
    assert tilt == pytest.approx(orders[by_epsilon.argmin()], rel=0.05)
    assert log == pytest.approx(by_epsilon.min(), rel=1e-2)


def test_steps_are_fine_and_evenly_spaced_losses_fit_them():
    parts = [(GaussianPair(0.5), 4), (LaplacePair(0.1), 5)]
    drawn = grid.sketch(parts, 1e-12)
    chosen = grid.choose_grid(parts, drawn, tilt=2.0, tail=1e-12)
    variances = drawn.moments(2.0)[1]
    mean = math.sqrt((4 * variances[0] + 5 * variances[1]) / 9)
    assert chosen.step == pytest.approx(mean / 64)
    # Below: twelve steps to a standard deviation, a hundred for laws with atoms; powers of two.
    for finer, variance, wanted in zip(chosen.steps, variances, (12, 100), strict=True):
        assert math.log2(chosen.step / finer) == int(math.log2(chosen.step / finer))
        assert finer <= max(chosen.step, math.sqrt(variance)) / 1
        assert finer == chosen.step or wanted / 2 < math.sqrt(variance) / finer / 1 < 2 * wanted
    even = [(AtomPair(np.array([-1.0, 0.0, 1.0]), np.array([0.2, 0.3, 0.5])), 9)]
    fit = grid.choose_grid(even, grid.sketch(even, 1e-12), tilt=0.0, tail=1e-12)
    assert 0.5 / fit.step == pytest.approx(round(0.5 / fit.step))
    assert fit.steps == (fit.step,)
    assert grid._pitch(even) == pytest.approx(1)
    assert grid._pitch([(LaplacePair(0.3), 2)]) == pytest.approx(0.6)
    assert grid._pitch([(LatticeLaplacePair(0.5, 3), 2)]) == pytest.approx(1)
    assert (
        grid._pitch([(AtomPair(np.array([-0.5, 0.1, 1.0]), np.array([0.2, 0.5, 0.29]), 0.01), 2)])
        is None
    )
    assert grid._pitch([(GaussianPair(1.0), 2)]) is None
    assert grid._pitch([*even, *even]) is None
    assert grid._pitch([(AtomPair(np.zeros(1), np.ones(1)), 2)]) is None
