"""Tails of dominating pairs, and the arithmetic of composed losses, against laws written out."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import cells, conversion, dominating, grid, numeric, pairs, pld
from discreet.accounting.conversion import UNDERFLOW, UP
from discreet.accounting.leaves import lattice_gaussian, simple_pair
from discreet.accounting.pairs import (
    AddPair,
    Atoms,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.core.events import Approx, GaussianNoise, Group, LaplaceNoise, Pure, Sampled, Zcdp

LOSSES = np.array([-900.0, -3.0, -1.0, -0.51, -0.2, 0.0, 0.1, 0.49, 0.8, 1.0, 1.7, 6.0, 900.0])


def tails(p, q, loss):
    """Masses above and at or below each loss, of two laws given output by output."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(p > 0, np.log(p / q), -np.inf)
    finite = (own > loss[:, None]) & np.isfinite(own)
    low = own <= loss[:, None]
    return (finite @ p, finite @ q, low @ p, low @ q)


def same(found, true, abs_=1e-13):
    got = (found.p_above, found.q_above, found.p_below, found.q_below)
    for one, other in zip(got, true, strict=True):
        assert one == pytest.approx(other, rel=1e-11, abs=abs_)


def laplace(scale, shift, bound=None):
    k = np.arange(-60 * scale, 60 * scale + shift + 1.0)
    p, q = np.exp(-np.abs(k) / scale), np.exp(-np.abs(k - shift) / scale)
    if bound is not None:
        p, q = np.where(np.abs(k) <= bound, p, 0), np.where(np.abs(k - shift) <= bound, q, 0)
    return p / p.sum(), q / q.sum()


@pytest.mark.parametrize(("scale", "shift"), [(2, 1), (2, 5), (1, 1), (7, 4)])
@pytest.mark.parametrize("bound", [None, 12])
def test_lattice_laplace(scale, shift, bound):
    pair = LatticeLaplacePair(1 / scale, shift, bound)
    p, q = laplace(scale, shift, bound)
    same(pair.tails(LOSSES), tails(p, q, LOSSES + 1e-12))
    assert pair.infinity == pytest.approx(p[q == 0].sum() if bound else 0, rel=1e-10)
    atoms = cells.atoms_of(pair)
    assert atoms.losses == pytest.approx(np.arange(-shift, shift + 1, 2) / scale)
    assert atoms.masses.sum() + atoms.infinity == pytest.approx(1, abs=1e-11)
    steps = pair.spread(1e-9, count=4)
    assert steps[[0, -1]] == pytest.approx([-shift / scale, shift / scale])
    assert steps.size == max(2, min(4, shift + 1))


def test_laplace_between_its_atoms():
    e = 0.8
    found = LaplacePair(e).tails(LOSSES)
    for i, loss in enumerate(LOSSES):
        # L > l is y < (e - l)/2 for noise around 0 against noise around e.
        y = (e - loss) / 2
        if loss >= e:
            true = 0.0, 0.0
        elif loss < -e:
            true = 1.0, 1.0
        else:
            true = 1 - math.exp(-y) / 2, math.exp(y - e) / 2
        got = found.p_above[i], found.q_above[i]
        assert got == pytest.approx(true, rel=1e-12)
        below = found.p_below[i], found.q_below[i]
        assert below == pytest.approx((1 - true[0], 1 - true[1]), rel=1e-12)
    profile = pairs.delta(LaplacePair(e), np.array([-2.0, -0.8, 0.0, 0.3, 0.8, 2.0]))
    true = [-math.expm1(-2), -math.expm1(-0.8), -math.expm1(-0.4), -math.expm1(-0.25), 0, 0]
    assert profile == pytest.approx(true, rel=1e-11)
    assert LaplacePair(e).spread(1e-9, count=5) == pytest.approx([-0.8, -0.4, 0, 0.4, 0.8])


def test_gaussian_tails_and_reach():
    from scipy import stats

    mu, pair = 1.3, GaussianPair(1.3)
    loss = LOSSES[1:-1]
    above = stats.norm(mu**2 / 2, mu).sf(loss), stats.norm(-(mu**2) / 2, mu).sf(loss)
    below = stats.norm(mu**2 / 2, mu).cdf(loss), stats.norm(-(mu**2) / 2, mu).cdf(loss)
    same(pair.tails(loss), (*above, *below))
    spread = pair.spread(1e-9, count=3)
    assert spread[1] == pytest.approx(mu**2 / 2)
    assert stats.norm(mu**2 / 2, mu).sf(spread[-1]) <= 1e-9
    assert spread[-1] - spread[1] == pytest.approx(mu * math.sqrt(2 * math.log(1e9)))
    assert pairs.delta(pair, np.array([1e4]))[0] == UNDERFLOW
    assert pairs.delta(pair, np.array([-1e4]))[0] == 1


def test_bounded_range_is_its_envelope():
    e = 1.2
    pair = BoundedRangePair(e)
    inside = np.linspace(-e, e, 9)[1:-1]
    found = pair.tails(inside)
    # P(L > l) and Q(L > l) are those of the convex curve: its value and its slope in e^l.
    value = (1 - np.exp((inside - e) / 2)) ** 2 / -math.expm1(-e)
    assert found.p_above - np.exp(inside) * found.q_above == pytest.approx(value, rel=1e-10)
    assert found.p_above + found.p_below == pytest.approx(1)
    assert found.q_above + found.q_below == pytest.approx(1)
    assert pair.tails(np.array([-2.0, 2.0])).p_above == pytest.approx([1, 0])
    assert pair.tails(np.array([-2.0, 2.0])).q_below == pytest.approx([0, 1])
    assert pair.spread(1e-9, count=3) == pytest.approx([-e, 0, e])


ATOMS = Atoms(np.array([-0.5, 0.1, 1.0]), np.array([0.2, 0.5, 0.29]), 0.01)


def test_atoms_are_summed():
    p, q = ATOMS.masses, ATOMS.masses * np.exp(-ATOMS.losses)
    rest = 1 - q.sum()  # outputs that P never gives
    found = ATOMS.tails(LOSSES)
    above = ATOMS.losses > LOSSES[:, None]
    same(found, (above @ p, above @ q, ~above @ p, ~above @ q + rest))
    # The direct sum and the tails agree; the tails serve where the table would be too large.
    epsilon = np.array([-1.0, -0.5, 0.0, 0.1, 0.7, 1.0, 3.0])
    direct = ATOMS.profile(epsilon)
    true = [(p * np.maximum(0, -np.expm1(e - ATOMS.losses))).sum() + 0.01 for e in epsilon]
    assert direct == pytest.approx(true, rel=1e-11)
    large = Atoms(np.linspace(-1, 1, 2001), np.full(2001, 0.99 / 2001), 0.01)
    many = np.linspace(-1.2, 1.2, 1001)
    np.testing.assert_allclose(pairs.delta(large, many), large.profile(many), rtol=1e-11)
    assert pairs.delta(ATOMS, np.array([0.7]))[0] == direct[4]


# ── samples ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("bound", [None, 9])
def test_samples_are_mixtures(rate, bound):
    inner = LatticeLaplacePair(0.5, 3, bound)
    p, q = laplace(2, 3, bound)
    mixed = (1 - rate) * q + rate * p
    at = LOSSES + 1e-9  # between the losses
    remove = RemovePair(rate, inner)
    same(remove.tails(at), tails(mixed, q, at), abs_=1e-12)
    assert remove.infinity == pytest.approx(rate * inner.infinity, rel=1e-10)
    add = AddPair(rate, inner)
    mixed = (1 - rate) * p + rate * q
    same(add.tails(at), tails(p, mixed, at), abs_=1e-12)
    assert add.infinity == 0
    for pair, first, last in (
        (remove, math.log1p(-rate), math.log(1 - rate + rate * math.exp(1.5))),
        (add, -math.log(1 - rate + rate * math.exp(1.5)), -math.log1p(-rate)),
    ):
        spread = pair.spread(1e-9, count=9)
        assert (np.diff(spread) >= 0).all()
        assert spread[0] == pytest.approx(first)
        assert spread[-1] == pytest.approx(last)


def test_samples_of_huge_losses():
    """Where exponentials overflow: a loss of 750 in the sample is one of 750 - log(rate) inside."""
    from scipy.special import ndtr

    inner, edge = GaussianPair(40.0), 750 - math.log(0.1)
    share = 0.1 * ndtr((800 - edge) / 40)
    assert float(RemovePair(0.1, inner).tails(np.array([750.0])).p_above[0]) == pytest.approx(share)
    assert float(AddPair(0.1, inner).tails(np.array([-750.0])).q_below[0]) == pytest.approx(share)


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_a_draw_without_replacement_is_symmetric(rate):
    inner = LatticeLaplacePair(0.5, 3)
    pair = WithoutReplacementPair(rate, inner)
    for epsilon in (0.0, 0.05, 0.3, 0.8):
        moved = math.log1p(rate * math.expm1(epsilon))
        one = float(pairs.delta(inner, np.array([epsilon]))[0])
        found = float(pairs.delta(pair, np.array([moved]))[0])
        assert found == pytest.approx(rate * one, rel=1e-9, abs=1e-14)
        # HS_{-e}(P|Q) = 1 - e^-e (1 - HS_e(Q|P)), and the relation is symmetric.
        mirror = float(pairs.delta(pair, np.array([-moved]))[0])
        assert mirror == pytest.approx(1 - math.exp(-moved) * (1 - found), rel=1e-9)
    at = pair.tails(np.array([-0.2, 0.0, 0.2]))
    assert at.p_above + at.p_below == pytest.approx(1)
    assert at.q_above + at.q_below == pytest.approx(1)
    spread = pair.spread(1e-9, count=9)
    assert spread == pytest.approx(-spread[::-1])
    assert spread[-1] == pytest.approx(math.log(1 - rate + rate * math.exp(1.5)))
    whole = WithoutReplacementPair(1.0, inner)
    same(whole.tails(LOSSES), [getattr(inner.tails(LOSSES), n) for n in pairs.Tails.__slots__])


def test_failures_of_a_draw_without_replacement():
    pair = WithoutReplacementPair(0.25, Atoms(np.array([-1.0, 1.0]), np.array([0.2, 0.7]), 0.1))
    assert pair.infinity == pytest.approx(0.025, rel=1e-11)
    at = pair.tails(np.array([-2.0, 2.0]))
    assert at.p_above == pytest.approx([0.975, 0])
    assert at.q_below == pytest.approx([0.025, 1])


# ── leaves ───────────────────────────────────────────────────────────────────


def test_responses():
    e = math.exp(0.7)
    for event, delta in (
        (Pure(Fraction(7, 10)), 0.0),
        (Approx(Fraction(7, 10), Fraction(1, 8)), 1 / 8),
    ):
        atoms = simple_pair(event)
        assert atoms.losses == pytest.approx([-0.7, 0.7])
        assert atoms.masses == pytest.approx([(1 - delta) / (1 + e), (1 - delta) * e / (1 + e)])
        assert atoms.infinity == pytest.approx(delta)
    none = simple_pair(Approx(Fraction(0), Fraction(1, 8)))
    assert (none.losses.tolist(), none.infinity) == ([0.0], pytest.approx(1 / 8))
    assert none.masses == pytest.approx([7 / 8])
    many = simple_pair(Group(3, Approx(Fraction(1, 10), Fraction(1, 100))))
    assert many.losses == pytest.approx([-0.3, 0.3])
    assert many.infinity == pytest.approx(0.01 * sum(math.exp(0.1 * i) for i in range(3)))
    assert simple_pair(Zcdp(Fraction(1))) is None


def test_a_lattice_gaussian_is_written_out():
    atoms = lattice_gaussian(2.0, 3)
    y = np.arange(-54, 55)
    p = np.exp(-(y**2) / 4.0)
    p /= p.sum()
    order = np.argsort(-y)
    assert atoms.masses == pytest.approx(p[order], rel=1e-12, abs=1e-320)
    assert atoms.losses == pytest.approx(((y - 3.0) ** 2 - y**2)[order] / 4)
    assert atoms.infinity == UNDERFLOW


# ── composed losses ──────────────────────────────────────────────────────────


def part(weights, *, start=0, step=0.25, tilt=1.0, **more):
    found = np.asarray(weights, dtype=float)
    return pld.Composed(step=step, tilt=tilt, start=start, weights=found, log_scale=0.1, **more)


def test_tilted_masses_keep_their_law():
    masses = cells.Masses(
        index=np.array([-2, 0, 3]), mass=np.array([0.2, 0.5, 0.25]), infinity=0.05, offset=0.01
    )
    found = pld.tilted(masses, step=0.25, tilt=1.5)
    assert found.start == -2
    assert found.losses() == pytest.approx(0.01 + 0.25 * np.arange(-2, 4))
    assert found.weights.sum() == pytest.approx(1)
    back = found.weights * np.exp(found.log_scale - 1.5 * found.losses())
    assert back == pytest.approx([0.2, 0, 0.5, 0, 0, 0.25])
    assert (found.infinity, found.count) == (0.05, 1)
    assert found.lost == pytest.approx(6e-18)
    wide = replace(masses, index=np.array([-2, 0, pld.LARGEST - 2]))
    with pytest.raises(OverflowError):
        pld.tilted(wide, step=1e-9, tilt=0.0)
    assert pld.tilted(replace(wide, index=wide.index - [0, 0, 1]), step=1e-9, tilt=0.0)


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
    masses = cells.Masses(index=np.arange(-15, 25), mass=mass, infinity=0.001, offset=0.013)
    source = pld.tilted(masses, step=0.1, tilt=tilt)
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
    masses = cells.Masses(index=np.array([-1, 1]), mass=np.array([0.4, 0.6]), infinity=0.0)
    source = replace(pld.tilted(masses, step=0.5, tilt=2.0), lost=1e-3)
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
    parts = [(Atoms(np.array([-1.0, 1.0]), np.array([0.25, 0.75])), 3), (GaussianPair(0.6), 2)]
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
    for wide in (Atoms(np.array([0.0, 401.0]), np.full(2, 0.5)), GaussianPair(60.0)):
        with pytest.raises(OverflowError):
            grid.sketch([(wide, 1)], 1e-9)
    assert grid.sketch([(Atoms(np.array([0.0, 400.0]), np.full(2, 0.5)), 1)], 1e-9)
    with pytest.raises(OverflowError):
        grid.sketch([(Atoms(np.zeros(1), np.array([1e-9])), 1)], 1e-9)


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
    chosen = grid.choose(parts, drawn, tilt=2.0, tail=1e-12)
    variances = drawn.moments(2.0)[1]
    mean = math.sqrt((4 * variances[0] + 5 * variances[1]) / 9)
    assert chosen.step == pytest.approx(mean / 64)
    # Below: twelve steps to a standard deviation, a hundred for laws with atoms; powers of two.
    for finer, variance, wanted in zip(chosen.steps, variances, (12, 100), strict=True):
        assert math.log2(chosen.step / finer) == int(math.log2(chosen.step / finer))
        assert finer <= max(chosen.step, math.sqrt(variance)) / 1
        assert finer == chosen.step or wanted / 2 < math.sqrt(variance) / finer / 1 < 2 * wanted
    even = [(Atoms(np.array([-1.0, 0.0, 1.0]), np.array([0.2, 0.3, 0.5])), 9)]
    fit = grid.choose(even, grid.sketch(even, 1e-12), tilt=0.0, tail=1e-12)
    assert 0.5 / fit.step == pytest.approx(round(0.5 / fit.step))
    assert fit.steps == (fit.step,)
    assert grid._pitch(even) == pytest.approx(1)
    assert grid._pitch([(LaplacePair(0.3), 2)]) == pytest.approx(0.6)
    assert grid._pitch([(LatticeLaplacePair(0.5, 3), 2)]) == pytest.approx(1)
    assert grid._pitch([(ATOMS, 2)]) is None
    assert grid._pitch([(GaussianPair(1.0), 2)]) is None
    assert grid._pitch([*even, *even]) is None
    assert grid._pitch([(Atoms(np.zeros(1), np.ones(1)), 2)]) is None


# ── curves ───────────────────────────────────────────────────────────────────


def test_a_curve_is_above_its_profile_and_close():
    def profile(epsilon):
        return conversion.gaussian_delta(epsilon, mu=0.7)

    found = dominating.curve(profile, 4.0)
    for epsilon in np.linspace(-3, 3.9, 41):
        true = float(conversion.gaussian_delta(epsilon, mu=0.7))
        got = float(pairs.delta(found, np.array([epsilon]))[0])
        assert true <= got <= true + 1e-5
    total = found.masses.sum() + found.infinity
    assert total == pytest.approx(1, abs=1e-6)
    kinked = dominating.curve(lambda e: np.maximum(0, -np.expm1(e - 1)) / 2, 2.0, kinks=np.ones(1))
    at = np.array([0.999, 1.0, 1.3])
    assert pairs.delta(kinked, at) == pytest.approx(-np.expm1(at - 1).clip(max=0) / 2, abs=1e-9)


def test_the_hull_is_convex_and_below():
    x = np.array([0.0, 1, 2, 3, 4, 5])
    y = np.array([5.0, 3, 2.9, 1, 0.9, 0])
    assert dominating._hull(x, y) == [0, 1, 3, 5]
    assert dominating._hull(x[:2], y[:2]) == [0, 1]


def test_zcdp_becomes_a_pair_above_its_curve():
    pair = dominating.concentrated(Fraction(1, 10), Fraction(1, 5))
    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 3.0):
        bound = float(conversion.zcdp_delta(epsilon, rho=0.1, xi=0.2))
        found = float(pairs.delta(pair, np.array([epsilon]))[0])
        assert bound * (1 - 1e-9) <= found or epsilon < 0.3  # the hull cuts what is not convex
        assert found == pytest.approx(bound, rel=0.5, abs=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_groups_of_samples_grow_by_the_chain(size):
    inner = Sampled(Fraction(1, 5), LaplaceNoise(Fraction(1)))
    one = dominating._both(dominating.event_pairs(inner, "upper"))
    grown = dominating._grouped_profile(one, size)
    for epsilon in (0.0, 0.05, 0.2, 0.6):
        step = epsilon / size
        chain = sum(math.exp(step * i) for i in range(size))
        true = min(1.0, float(one(np.array([step]))[0]) * chain)
        assert float(grown(np.array([epsilon]))[0]) == pytest.approx(true, rel=1e-9)


def test_what_is_known_from_below_is_attained():
    """Lower sides take a part, or what some mechanism of the kind attains."""
    from discreet.core.events import BoundedRange, Either, SampledWithoutReplacement, compose

    def lower(event):
        return dominating.event_pairs(event, "lower")

    half = dominating.leaf_pairs(BoundedRange(Fraction(1)), "lower")[0]
    assert half.losses == pytest.approx([-0.5, 0.5])
    weak, strong = Pure(Fraction(1, 4)), Pure(Fraction(1))
    assert dominating.leaf_pairs(Either((weak, strong)), "lower")[0].losses[1] == pytest.approx(1)
    both = lower(compose([weak, LaplaceNoise(Fraction(2))]))[0]
    assert isinstance(both, Atoms | LaplacePair)
    concentrated = lower(compose([Zcdp(Fraction(1, 2)), GaussianNoise(Fraction(1))]))[0]
    assert concentrated.mu == pytest.approx(math.sqrt(2))
    drawn = dominating.leaf_pairs(SampledWithoutReplacement(1, 4, strong), "lower")[0]
    assert isinstance(drawn, RemovePair)
    assert drawn.rate == 0.25
    assert numeric.epsilon(Pure(Fraction(1)), delta=0.0, side="lower") == 0
    assert numeric.epsilon(Pure(Fraction(1)), delta=0.0, side="upper") == math.inf


def test_margins_of_pairs():
    assert pairs.ROUNDING == 2e-15
    assert cells.SNAP == 1e-7
    assert simple_pair(LaplaceNoise(Fraction(2))).epsilon == 0.5 * UP
