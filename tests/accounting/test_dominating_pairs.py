"""Tails of dominating pairs, against laws written out."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import _numeric_composition as dominating
from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import conversion
from discreet.accounting import dominating_pairs as pairs
from discreet.accounting import pld as cells
from discreet.accounting._event_tree import lattice_gaussian, simple_pair
from discreet.accounting.conversion import UNDERFLOW, UP
from discreet.accounting.dominating_pairs import (
    AddPair,
    AtomPair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.core.events import (
    ApproxEvent,
    GaussianEvent,
    GroupEvent,
    LaplaceEvent,
    PureEvent,
    SampledEvent,
    ZcdpEvent,
)

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


ATOMS = AtomPair(np.array([-0.5, 0.1, 1.0]), np.array([0.2, 0.5, 0.29]), 0.01)


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
    large = AtomPair(np.linspace(-1, 1, 2001), np.full(2001, 0.99 / 2001), 0.01)
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
    near = np.array([-0.4, 0.0, 0.7])
    assert pairs.delta(whole, near).tolist() == pairs.delta(inner, near).tolist()
    same(whole.tails(LOSSES), [getattr(inner.tails(LOSSES), n) for n in pairs.PairTails.__slots__])


def test_failures_of_a_draw_without_replacement():
    pair = WithoutReplacementPair(0.25, AtomPair(np.array([-1.0, 1.0]), np.array([0.2, 0.7]), 0.1))
    assert pair.infinity == pytest.approx(0.025, rel=1e-11)
    at = pair.tails(np.array([-2.0, 2.0]))
    assert at.p_above == pytest.approx([0.975, 0])
    assert at.q_below == pytest.approx([0.025, 1])


# ── leaves ───────────────────────────────────────────────────────────────────


def test_responses():
    e = math.exp(0.7)
    for event, delta in (
        (PureEvent(Fraction(7, 10)), 0.0),
        (ApproxEvent(Fraction(7, 10), Fraction(1, 8)), 1 / 8),
    ):
        atoms = simple_pair(event)
        assert atoms.losses == pytest.approx([-0.7, 0.7])
        assert atoms.masses == pytest.approx([(1 - delta) / (1 + e), (1 - delta) * e / (1 + e)])
        assert atoms.infinity == pytest.approx(delta)
    none = simple_pair(ApproxEvent(Fraction(0), Fraction(1, 8)))
    assert (none.losses.tolist(), none.infinity) == ([0.0], pytest.approx(1 / 8))
    assert none.masses == pytest.approx([7 / 8])
    many = simple_pair(GroupEvent(3, ApproxEvent(Fraction(1, 10), Fraction(1, 100))))
    assert many.losses == pytest.approx([-0.3, 0.3])
    assert many.infinity == pytest.approx(0.01 * sum(math.exp(0.1 * i) for i in range(3)))
    assert simple_pair(ZcdpEvent(Fraction(1))) is None


def test_a_lattice_gaussian_is_written_out():
    atoms = lattice_gaussian(2.0, 3)
    y = np.arange(-54, 55)
    p = np.exp(-(y**2) / 4.0)
    p /= p.sum()
    order = np.argsort(-y)
    assert atoms.masses == pytest.approx(p[order], rel=1e-12, abs=1e-320)
    assert atoms.losses == pytest.approx(((y - 3.0) ** 2 - y**2)[order] / 4)
    assert atoms.infinity == UNDERFLOW


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
    pair = dominating.zcdp_pair(Fraction(1, 10), Fraction(1, 5))
    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 3.0):
        bound = float(conversion.zcdp_delta(epsilon, rho=0.1, xi=0.2))
        found = float(pairs.delta(pair, np.array([epsilon]))[0])
        assert bound * (1 - 1e-9) <= found or epsilon < 0.3  # the hull cuts what is not convex
        assert found == pytest.approx(bound, rel=0.5, abs=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_groups_of_samples_grow_by_the_chain(size):
    inner = SampledEvent(Fraction(1, 5), LaplaceEvent(Fraction(1)))
    one = dominating._both(dominating.event_pairs(inner, "upper"))
    grown = dominating._grouped_profile(one, size)
    for epsilon in (0.0, 0.05, 0.2, 0.6):
        step = epsilon / size
        chain = sum(math.exp(step * i) for i in range(size))
        true = min(1.0, float(one(np.array([step]))[0]) * chain)
        assert float(grown(np.array([epsilon]))[0]) == pytest.approx(true, rel=1e-9)


def test_what_is_known_from_below_is_attained():
    """Lower sides take a part, or what some mechanism of the kind attains."""
    from discreet.core.events import (
        BoundedRangeEvent,
        EitherEvent,
        SampledWithoutReplacementEvent,
        compose,
    )

    def lower(event):
        return dominating.event_pairs(event, "lower")

    half = dominating.leaf_pairs(BoundedRangeEvent(Fraction(1)), "lower")[0]
    assert half.losses == pytest.approx([-0.5, 0.5])
    weak, strong = PureEvent(Fraction(1, 4)), PureEvent(Fraction(1))
    assert dominating.leaf_pairs(EitherEvent((weak, strong)), "lower")[0].losses[
        1
    ] == pytest.approx(1)
    both = lower(compose([weak, LaplaceEvent(Fraction(2))]))[0]
    assert isinstance(both, AtomPair | LaplacePair)
    concentrated = lower(compose([ZcdpEvent(Fraction(1, 2)), GaussianEvent(Fraction(1))]))[0]
    assert concentrated.mu == pytest.approx(math.sqrt(2))
    drawn = dominating.leaf_pairs(SampledWithoutReplacementEvent(1, 4, strong), "lower")[0]
    assert isinstance(drawn, RemovePair)
    assert drawn.rate == 0.25
    assert numeric.epsilon(PureEvent(Fraction(1)), delta=0.0, side="lower") == 0
    assert numeric.epsilon(PureEvent(Fraction(1)), delta=0.0, side="upper") == math.inf


def test_margins_of_pairs():
    assert pairs.ROUNDING == 2e-15
    assert cells.SNAP == 1e-7
    assert simple_pair(LaplaceEvent(Fraction(2))).epsilon == 0.5 * UP
