"""Pairs at the ends of their range: every atom of a lattice, margins, curves and their tails."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import _numeric_composition as dominating
from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import conversion, renyi
from discreet.accounting import dominating_pairs as pairs
from discreet.accounting import pld as cells
from discreet.accounting.dominating_pairs import (
    AddPair,
    AtomPair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.core.events import (
    ComposedEvent,
    DiscreteLaplaceEvent,
    EitherEvent,
    GdpEvent,
    GroupEvent,
    LaplaceEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    repeat,
)

F = Fraction


def close(value, rel=1e-11):
    return pytest.approx(value, rel=rel, abs=0)


def at(pair, epsilon):
    return float(pairs.delta(pair, np.array([epsilon]))[0])


# ── atoms ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("shift", "bound"), [(9, None), (4, None), (1, None), (9, 12), (3, 30)])
def test_every_atom_of_a_lattice(shift, bound):
    """Output y of noise that halves with every step has the loss |y - shift| - |y|, in halvings."""
    reach = 200 if bound is None else bound
    total = sum(2.0 ** -abs(y) for y in range(-reach, reach + 1))
    masses = dict.fromkeys(range(-shift, shift + 1, 2), 0.0)
    for y in range(-reach, reach + 1):
        if bound is None or abs(y - shift) <= bound:
            masses[abs(y - shift) - abs(y)] += 2.0 ** -abs(y) / total
    atoms = cells.atoms_of(LatticeLaplacePair(math.log(2), shift, bound))
    assert atoms.losses == close([math.log(2) * loss for loss in sorted(masses)])
    assert atoms.masses == close([masses[loss] for loss in sorted(masses)], rel=1e-10)


@pytest.mark.parametrize("kind", [RemovePair, AddPair])
def test_the_largest_tables_of_atoms(kind):
    assert cells.atoms_of(LatticeLaplacePair(1e-3, 3999)).losses.size == 4000
    many = AtomPair(np.linspace(-1, 1, 1000), np.full(1000, 1 / 1000))
    assert cells.atoms_of(kind(0.25, many)).losses.size == 1001


def test_a_profile_of_atoms_is_summed_or_taken_from_tails_alike():
    """Two million terms are summed one by one, more are not: then a margin is added."""
    atoms = AtomPair(np.linspace(-1, 1, 2000), np.full(2000, 1 / 2000))
    summed = pairs.delta(atoms, np.linspace(0, 1.2, 1000))
    assert (summed == atoms.profile(np.linspace(0, 1.2, 1000))).all()
    assert summed[-1] == 0
    by_tails = pairs.delta(atoms, np.linspace(0, 1.2, 1001))
    assert (by_tails[:-170] > atoms.profile(np.linspace(0, 1.2, 1001))[:-170]).all()


# ── margins ──────────────────────────────────────────────────────────────────


def test_a_difference_of_tails_pays_for_their_rounding():
    """A sample so thin that its delta is of the size of the rounding of two tails of a third."""
    rate = 1e-14
    true = rate * float(conversion.gaussian_delta(0.0, mu=1.0))
    both = 2 * 0.3085  # P and Q above zero, nearly alike
    found = at(RemovePair(rate, GaussianPair(1.0)), 0.0)
    assert found - true == pytest.approx(2e-15 * both, rel=0.3)


def test_points_of_a_draw_without_replacement_differ():
    for pair in (LaplacePair(1.0), AtomPair(np.array([-1.0, 0.0, 1.0]), np.array([0.2, 0.3, 0.5]))):
        spread = WithoutReplacementPair(0.5, pair).spread(1e-9, count=9)
        assert (np.diff(spread) > 0).all()
        assert 0 in spread


def test_the_largest_loss_of_either_side_is_looked_at():
    """Samples are lopsided: one end is far, the other near."""
    top = 401 - math.log(0.5)
    for pair in (RemovePair(0.5, LaplacePair(top)), AddPair(0.5, LaplacePair(top))):
        assert renyi._upper_masses(pair) is None
    less = 399 - math.log(0.5)
    for pair in (RemovePair(0.5, LaplacePair(less)), AddPair(0.5, LaplacePair(less))):
        masses, step = renyi._upper_masses(pair)
        first, last = math.log(0.5), 399
        ends = sorted((first, last)) if isinstance(pair, RemovePair) else (-last, -first)
        assert step == close((last - first) / 20_000, rel=1e-6)
        assert masses.offset + step * masses.index[0] == pytest.approx(ends[0], abs=2 * step)


# ── compositions as one pair ─────────────────────────────────────────────────


def test_a_part_that_is_used_again_is_composed():
    one, _, _ = dominating.event_pairs(LaplaceEvent(F(2)), "upper")
    assert isinstance(one, LaplacePair)
    for event, top in (
        (repeat(LaplaceEvent(F(2)), 3), 1.5),
        (ComposedEvent(((LaplaceEvent(F(2)), 1), (LaplaceEvent(F(4)), 1))), 0.75),
    ):
        for pair in dominating.event_pairs(event, "upper")[:2]:
            losses = pair.losses[pair.masses > 1e-9]
            assert losses[-1] == pytest.approx(top, abs=0.02)
            for epsilon in (0.0, 0.3, 0.6):
                low = numeric.delta(event, epsilon=epsilon, side="lower")
                assert low <= at(pair, epsilon) <= low * 1.01 + 1e-4
        # From below a part stands for the whole.
        assert isinstance(dominating.event_pairs(event, "lower")[0], LaplacePair)


def test_a_sample_of_a_composition_is_that_of_all_of_it():
    event = SampledEvent(F(1, 2), repeat(LaplaceEvent(F(2)), 3))
    for epsilon in (0.2, 0.7):
        inner = math.log1p(2 * math.expm1(epsilon))
        low = numeric.delta(repeat(LaplaceEvent(F(2)), 3), epsilon=inner, side="lower") / 2
        found = float(dominating.leaf_delta(event, np.array([epsilon]))[0])
        assert low <= found <= low * 1.02 + 1e-4


# ── curves ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0, 15.0])
def test_the_worst_of_several_is_followed_into_its_tail(epsilon):
    pair, _, _ = dominating.leaf_pairs(EitherEvent((GdpEvent(F(1)), GdpEvent(F(2)))), "upper")
    true = float(conversion.gaussian_delta(epsilon, mu=2.0))
    assert true <= at(pair, epsilon) <= true * 1.01
    assert pair.infinity < 1e-29


@pytest.mark.parametrize(
    "inner",
    [SampledEvent(F(1, 4), GdpEvent(F(1))), SampledWithoutReplacementEvent(1, 4, GdpEvent(F(1)))],
)
def test_a_group_on_a_sample_is_followed_into_its_tail(inner):
    """B24 by hand: delta(eps/k) (1 + e^{eps/k} + ...)."""
    pair, _, _ = dominating.leaf_pairs(GroupEvent(3, inner), "upper")
    for epsilon in (1.0, 6.0, 15.0):
        one = float(dominating.leaf_delta(inner, np.array([epsilon / 3]))[0])
        true = min(1.0, one * sum(math.exp(i * epsilon / 3) for i in range(3)))
        assert true * (1 - 1e-12) <= at(pair, epsilon) <= true * 1.02
    assert pair.infinity < 1e-23


def test_concentrated_privacy_is_followed_into_its_tail():
    pair = dominating.zcdp_pair(F(1, 8), F(0))
    for epsilon in (0.5, 2.0, 5.0):
        true = float(conversion.zcdp_delta(epsilon, rho=0.125))
        assert true <= at(pair, epsilon) <= true * 1.02
    assert pair.infinity < 1e-39


def test_curves_are_certain_at_most_and_cover_a_point():
    whole = dominating.curve(np.ones_like, 1.0)
    assert whole.infinity == 1
    # A profile of nothing but a failure: losses of next to nothing still make a pair.
    thin = dominating.curve(lambda e: np.full_like(e, 0.25), 0.0)
    assert 0.25 < thin.infinity <= 0.25 * (1 + 2e-12)
    assert np.abs(thin.losses).max() <= 1e-6 * (1 + 1e-9)
    # Beyond the largest loss that is followed a curve counts as infinite.
    far = dominating.curve(lambda e: np.exp(-e / 100), 1e6)
    assert far.infinity == close(math.exp(-4))


def test_kinks_inside_a_curve_are_dots_of_it():
    """With few dots of its own, a bent curve is followed exactly where a kink is told."""

    def profile(e):
        return np.maximum(0.5 * -np.expm1(e - 1.0), 0.0)

    told = dominating.curve(profile, 2.0, kinks=np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), count=2)
    assert at(told, 1.0) == pytest.approx(0, abs=1e-9)
    assert at(told, 0.5) == pytest.approx(float(profile(np.array([0.5]))[0]), rel=1e-6)
    untold = dominating.curve(profile, 2.0, count=2)
    assert at(untold, 1.0) > 0.01
    assert told.losses[-1] <= 2


def test_the_worst_of_several_is_exact_at_all_their_losses():
    """Between the atoms of a lattice a profile is straight: every atom is a dot of the curve."""
    pair, _, _ = dominating.leaf_pairs(
        EitherEvent((DiscreteLaplaceEvent(F(2), 5), DiscreteLaplaceEvent(F(3), 5))), "upper"
    )
    for loss in (0.5, 1.5, 1 / 3, 1.0, 5 / 3):
        true = max(at(LatticeLaplacePair(1 / scale, 5), loss) for scale in (2, 3))
        assert true <= at(pair, loss) <= true * (1 + 3e-9)
    assert at(pair, 2.5) < 1e-8


class OneCell:
    """A pair whose mass above a loss of zero has the same P- and Q-mass, in one cell."""

    infinity = 0.0

    def tails(self, loss):
        above = np.where(loss > 0, 0.0, 0.4)
        return pairs.PairTails(above, above, 1 - above, 1 - above)

    def spread(self, tail, *, count):
        return np.array([0.0, 1e-6])


def test_cells_pay_for_the_rounding_of_their_masses():
    """All mass belongs to the lower end; what goes up is the error of both, over the step."""
    found = cells.upper_masses(OneCell(), step=1e-6, tail=1e-9)
    assert found.index.tolist() == [0, 1]
    assert found.mass[1] == pytest.approx(2 * 2e-15 * 0.4 / 1e-6, rel=1e-3)
    assert found.mass.sum() == pytest.approx(1, abs=1e-12)
    assert found.mass.sum() > 1


class Unshadowed(OneCell):
    """Outputs of a finite loss so large that their Q-mass is no number any more."""

    infinity = 0.125

    def tails(self, loss):
        some, none = np.full(loss.shape, 0.25), np.zeros(loss.shape)
        return pairs.PairTails(some, none, 0.625 + none, 1 + none)


def test_mass_that_the_other_law_lacks_counts_whole():
    for epsilon in (0.0, 1.0, 800.0):
        assert at(Unshadowed(), epsilon) == close(0.375)


def test_what_is_sure_to_fail_fails_in_a_sample_of_all():
    sure = AtomPair(np.zeros(1), np.zeros(1), 1.0)
    assert RemovePair(1.0, sure).infinity == 1
    assert 0.5 <= RemovePair(0.5, sure).infinity <= 0.5 * (1 + 1e-9)
