"""Cells, edges and steps one by one; and what laws that are only nearly those stated are worth."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import _numeric_composition as dominating
from discreet.accounting import _numeric_composition as grid
from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import composition, conversion, pld, renyi
from discreet.accounting import dominating_pairs as pairs
from discreet.accounting import pld as cells
from discreet.accounting._event_tree import ReducedEvents
from discreet.accounting.conversion import UNDERFLOW
from discreet.accounting.dominating_pairs import (
    AddPair,
    AtomPair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
)
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GdpEvent,
    LaplaceEvent,
    SampledEvent,
    repeat,
)

F = Fraction


# ── cells ────────────────────────────────────────────────────────────────────


def test_an_atom_goes_to_both_ends_of_its_cell():
    found = cells.upper_masses(
        AtomPair(np.array([0.0, 0.13]), np.array([0.4, 0.6])), step=0.1, tail=1e-9
    )
    assert found.offset == pytest.approx(0.03)
    assert found.index.tolist() == [-1, 0, 1, 2]
    up = math.expm1(-0.07) / math.expm1(-0.1)
    assert found.mass == pytest.approx([0.4 * (1 - up), 0.4 * up, 0.6, 0], rel=1e-6, abs=1e-6)
    losses = 0.03 + 0.1 * found.index
    assert (found.mass * np.exp(-losses)).sum() == pytest.approx(0.4 + 0.6 * math.exp(-0.13))
    assert found.mass.sum() > 1


def test_tails_of_atoms_are_kept_above_and_left_out_below():
    atoms = AtomPair(np.array([-2.0, 0.0, 1.0, 3.0]), np.array([1e-4, 0.5, 0.4997, 1e-4]), 1e-4)
    high = cells.upper_masses(atoms, step=0.5, tail=2e-4)
    assert high.infinity == pytest.approx(2e-4)  # the highest loss counts as infinite
    assert high.mass.sum() == pytest.approx(0.9998)  # the lowest moves up
    assert 0.5 * high.index[0] + high.offset == pytest.approx(0.0)
    low = cells.lower_masses(atoms, step=0.5, tail=2e-4)
    assert low.infinity == pytest.approx(1e-4, rel=1e-9)
    assert low.infinity < 1e-4
    assert low.mass.sum() == pytest.approx(0.9997)
    assert cells.lower_masses(GaussianPair(1.0), step=0.1, tail=1e-9).infinity == 0
    assert cells.upper_masses(GaussianPair(1.0), step=0.1, tail=1e-9).infinity >= UNDERFLOW


def test_masses_of_cells_from_the_side_where_they_are_small():
    pair = GaussianPair(1.0)
    losses = np.array([-12.0, -8.0, 0.0, 0.5, 9.0, 13.0])
    p, q, p_error, q_error, low, high = cells.cells(pair, losses)
    at = pair.tails(losses)
    assert low == at.p_below[0]
    assert high == at.p_above[-1]
    assert p[0] == pytest.approx(at.p_below[1] - at.p_below[0], rel=1e-12)
    assert p[-1] == pytest.approx(at.p_above[-2] - at.p_above[-1], rel=1e-12)
    assert q[-1] == pytest.approx(at.q_above[-2] - at.q_above[-1], rel=1e-12)
    assert p.sum() + low + high == pytest.approx(1)
    smaller = np.minimum(at.p_above[:-1], at.p_below[1:])
    assert p_error == pytest.approx(2e-15 * smaller, rel=1e-9)
    assert q_error == pytest.approx(2e-15 * np.minimum(at.q_above[:-1], at.q_below[1:]), rel=1e-9)


def test_edges_follow_the_spread():
    pair = GaussianPair(1.0)
    step = 1e-3
    edges = cells._edges(pair, step=step, tail=1e-12)
    spread = pair.spread(1e-12, count=700) / step
    assert edges[0] == math.floor(spread[0])
    assert edges[-1] == math.ceil(spread[-1])
    widths = np.diff(edges)[1:-1]
    gap = spread[1] - spread[0]
    assert set(widths) == {2.0 ** math.floor(math.log2(gap))}
    fine = cells._edges(pair, step=0.5, tail=1e-12)  # never finer than the grid
    assert set(np.diff(fine)) == {1}
    one = cells._edges(LaplacePair(0.0), step=0.1, tail=1e-12)
    assert one.tolist() == [0, 1]


def test_ends_of_lower_cells_are_centered_on_the_grid():
    ends, offset = cells._lower_ends(GaussianPair(1.0), step=0.5, tail=1e-9)
    assert offset == 0
    assert ((ends[1:-1] / 0.5) % 1 == 0.5).all()
    ends, offset = cells._lower_ends(LaplacePair(1.03), step=0.1, tail=1e-9)
    assert offset == pytest.approx(0.03)
    assert ends[0] == pytest.approx(-1.13)
    assert ends[1] == -1.03
    assert ends[-1] == 1.03
    assert 0 < ends[-1] - ends[-2] < 1e-14
    assert ((ends[2:-2] - 0.03) / 0.1 % 1) == pytest.approx(0.5)
    assert ends[2:-2].min() > -1.03
    assert ends[2:-2].max() < 1.03


@pytest.mark.parametrize("pair", [GaussianPair(0.9), LaplacePair(0.77), BoundedRangePair(0.8)])
def test_cells_lose_little(pair):
    """The bracket of one use at a step of a hundredth, and its order."""
    high, low = (f(pair, step=0.01, tail=1e-13) for f in (cells.upper_masses, cells.lower_masses))
    for epsilon in (0.0, 0.2, 0.5, 0.7):
        true = float(pairs.delta(pair, np.array([epsilon]))[0])

        def gain(masses, epsilon=epsilon):
            losses = masses.offset + 0.01 * masses.index
            return float(masses.mass @ np.maximum(0, -np.expm1(epsilon - losses)))

        assert true * (1 - 1e-9) <= gain(high) + high.infinity <= true + 3e-5
        assert true - 1e-4 <= gain(low) + low.infinity <= true * (1 + 1e-12)


@pytest.mark.parametrize("kind", [RemovePair, AddPair])
def test_atoms_of_samples(kind):
    inner = AtomPair(np.array([-0.5, 0.5]), np.array([0.3, 0.6]), 0.1)
    found = cells.atoms_of(kind(0.25, inner))
    for epsilon in (-0.2, 0.0, 0.05, 0.1, 0.2):
        at = np.array([epsilon])
        true = float(pairs.delta(kind(0.25, inner), at)[0])
        assert float(found.profile(at)[0]) == pytest.approx(true, rel=1e-9, abs=1e-12)
    assert found.masses.sum() + found.infinity == pytest.approx(1)
    assert (np.diff(found.losses) > 0).all()
    far = cells.atoms_of(kind(0.25, AtomPair(np.array([-800.0, 800.0]), np.array([0.0, 1.0]))))
    large = 800 + math.log(0.25)
    assert large in (pytest.approx(far.losses[-1]), pytest.approx(-far.losses[0]))
    many = AtomPair(np.linspace(-1, 1, 1001), np.full(1001, 1 / 1001))
    assert cells.atoms_of(kind(0.25, many)) is None
    assert cells.atoms_of(kind(0.25, GaussianPair(1.0))) is None
    assert cells.atoms_of(LatticeLaplacePair(1e-3, 4000)) is None


def test_outputs_that_hardly_ever_happen_do_not_overflow():
    q = AtomPair(np.array([-800.0, 0.0]), np.array([1e-320, 1.0])).other
    assert np.isfinite(q).all()
    tiny = Guarantee(repeat(SampledEvent(F(1, 2), DiscreteGaussianEvent(F(1, 100), F(9))), 3))
    assert tiny.delta(1.0) == 1  # losses that are too large are not followed


# ── steps ────────────────────────────────────────────────────────────────────


def chosen(parts, tilt=0.0):
    return grid.choose_grid(parts, grid.sketch(parts, 1e-12), tilt=tilt, tail=1e-12)


def test_steps_have_a_floor_and_lower_ones_a_limit():
    wide = [(AtomPair(np.array([-1.0, 0.0, 300.0]), np.array([1e-6, 1 - 1e-6 - 1e-9, 1e-9])), 1)]
    assert chosen(wide).step == pytest.approx(301 / 65536)
    pair = [(AtomPair(np.array([-2.0, 2.0]), np.full(2, 0.5)), 1), (LaplacePair(1e-3), 1)]
    found = chosen(pair)
    assert found.step == pytest.approx(math.sqrt(2) / 64, rel=1e-6)
    assert found.steps == (found.step / 4, found.step / 256)
    middle = chosen([(GaussianPair(1.0), 1), (LaplacePair(1.0), 1)])
    sd = math.sqrt(grid.sketch([(LaplacePair(1.0), 1)], 1e-12).moments(0.0)[1][0])
    wanted = max(0, math.ceil(math.log2(middle.step / (sd / 100))))
    assert middle.steps[1] == middle.step / 2**wanted
    assert grid._lower_fineness(LaplacePair(1.0)) == 100
    assert grid._lower_fineness(LatticeLaplacePair(1.0, 1)) == 100
    assert grid._lower_fineness(AtomPair(np.zeros(1), np.ones(1))) == 200
    assert grid._lower_fineness(GaussianPair(1.0)) == 12


def test_evenly_spaced_losses_are_aligned_only_if_they_are_wide_enough():
    even = [(AtomPair(np.linspace(-1, 1, 41), np.full(41, 1 / 41)), 2)]
    found = chosen(even)
    assert 0.05 / found.step == pytest.approx(2 * math.ceil(0.05 / (math.sqrt(0.35) / 64) / 2))
    dense = [(AtomPair(np.linspace(-1, 1, 2001), np.full(2001, 1 / 2001)), 2)]
    loose = chosen(dense)
    assert loose.step > 0.001
    assert len(loose.steps) == 1


def test_a_composition_as_one_pair():
    parts = [(LaplacePair(0.3), 2), (GaussianPair(0.4), 1)]
    whole = grid.as_atoms(parts)
    assert whole.masses.sum() + whole.infinity == pytest.approx(1, abs=1e-6)
    event = ComposedEvent(((LaplaceEvent(F(10, 3)), 2), (GdpEvent(F(2, 5)), 1)))
    for epsilon in (0.0, 0.5, 1.0):
        exact = numeric.delta(event, epsilon=epsilon, side="upper")
        found = float(whole.profile(np.array([epsilon]))[0])
        assert exact * (1 - 1e-4) <= found <= exact * 1.001


def test_beyond_the_last_point():
    masses = cells.LossMasses(index=np.array([-1, 1]), mass=np.array([0.4, 0.6]), infinity=0.0)
    source = replace(pld.tilt_masses(masses, step=0.5, tilt=2.0), lost=1e-3)
    profile = pld.profile(source, side="upper")
    last = profile.delta(0.5)
    far = profile.delta(5.5)
    assert profile.epsilon(math.sqrt(last * far)) == 0.5 + 10 * 0.5
    assert profile.epsilon(far) == 5.5
    assert profile.epsilon(far * 0.9) == math.inf


# ── profiles and slack ───────────────────────────────────────────────────────


def test_where_a_profile_falls():
    for rate, level in ((100.0, 1e-25), (7.0, 1e-3)):
        found = dominating._falls_to(lambda e, rate=rate: np.exp(-rate * e), level, 10.0)
        true = -math.log(level) / rate
        assert true <= found <= true * 1.03


def test_slack_moves_epsilon_twice_and_delta_once():
    pair = LaplacePair(1.0)
    profile = dominating._both((pair, pair, 0.01))
    for epsilon in (0.1, 0.5):
        true = math.exp(0.01) * -math.expm1((epsilon - 0.02 - 1) / 2)
        assert float(profile(np.array([epsilon]))[0]) == pytest.approx(true, rel=1e-10)
    worse = dominating._both((pair, LaplacePair(2.0), 0.0))
    assert float(worse(np.array([0.5]))[0]) == pytest.approx(-math.expm1(-0.75), rel=1e-10)
    assert float(worse(np.array([-50.0]))[0]) == pytest.approx(1)
    assert float(profile(np.array([-50.0]))[0]) == 1  # slack makes no chance larger than one


def test_slack_of_a_sum(monkeypatch):
    event = repeat(LaplaceEvent(F(4)), 3)
    plain = {side: numeric.composition_problem(event, side) for side in ("upper", "lower")}
    exact = {
        (side, sign): numeric.epsilon(event, delta=1e-3 * math.exp(sign * 0.01), side=side)
        for side, sign in (("upper", -1), ("lower", 1))
    }
    deltas = {
        side: numeric.delta(event, epsilon=at, side=side)
        for side, at in (("upper", 0.28), ("lower", 0.32))
    }
    monkeypatch.setattr(
        numeric, "composition_problem", lambda _, side: replace(plain[side], slack=0.01)
    )
    high = numeric.epsilon(event, delta=1e-3, side="upper")
    assert high == pytest.approx(exact["upper", -1] + 0.02, rel=1e-6)
    low = numeric.epsilon(event, delta=1e-3, side="lower")
    assert low == pytest.approx(exact["lower", 1] - 0.02, rel=1e-6)
    above = numeric.delta(event, epsilon=0.3, side="upper")
    assert above == pytest.approx(deltas["upper"] * math.exp(0.01), rel=1e-4)
    below = numeric.delta(event, epsilon=0.3, side="lower")
    assert below == pytest.approx(deltas["lower"] * math.exp(-0.01), rel=1e-4)


def test_slack_of_gaussians(monkeypatch):
    event = ComposedEvent(((GdpEvent(F(1)), 1), (GdpEvent(F(2)), 1)))
    monkeypatch.setattr(
        composition, "reduce_event", lambda *_: ReducedEvents(mu_squared=1.0, slack=0.01)
    )
    found = composition._closed_delta(event, 0.5)
    true = math.exp(0.01) * float(conversion.gaussian_delta(0.48, mu=1.0))
    assert true < found == pytest.approx(true, rel=1e-10)
    monkeypatch.setattr(composition, "reduce_event", lambda *_: ReducedEvents())
    assert composition._closed_delta(event, 0.5) == 0
    for more in ({"rho": F(1)}, {"xi": F(1)}, {"parts": ((GdpEvent(F(1)), 1),)}):
        monkeypatch.setattr(
            composition, "reduce_event", lambda *_, more=more: ReducedEvents(**more)
        )
        assert composition._closed_delta(event, 0.5) == math.inf


def test_slack_of_divergences(monkeypatch):
    event, pair = SampledEvent(F(1, 2), GdpEvent(F(1))), LaplacePair(0.5)
    monkeypatch.setattr(renyi, "leaf_pairs", lambda *_: (pair, LaplacePair(0.7), 0.0))
    without = renyi._numerical(event, 3.0)
    assert without == pytest.approx(renyi._of_pair(LaplacePair(0.7), 3.0))
    monkeypatch.setattr(renyi, "leaf_pairs", lambda *_: (pair, LaplacePair(0.7), 0.01))
    assert renyi._numerical(event, 3.0) == pytest.approx(without + 0.01 * 4)
