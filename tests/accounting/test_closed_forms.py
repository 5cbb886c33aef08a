"""What is not known, does not converge or is too large: infinity, one, or an error."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from discreet.accounting import _event_tree as leaves
from discreet.accounting import _numeric_composition as dominating
from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import pld as cells
from discreet.accounting import renyi, shuffle
from discreet.accounting.dominating_pairs import (
    AddPair,
    AtomPair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.accounting.guarantee import Guarantee, pure_dp
from discreet.accounting.shuffle import block_design_parts
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import NOTHING, LaplaceEvent, PureEvent, SampledEvent, ZcdpEvent, repeat
from discreet_studies.noise_mechanisms.normal_laplace import NormalLaplace

F = Fraction


def test_unknown_events_are_refused():
    with pytest.raises(Unsupported, match="object is not known"):
        list(leaves.leaves(object()))
    with pytest.raises(Unsupported, match="Zcdp has no numerical pair"):
        dominating.leaf_pairs(ZcdpEvent(F(1)), "upper")
    assert renyi._numerical(ZcdpEvent(F(1)), 2.0) == math.inf


def test_losses_that_are_too_large_are_not_followed():
    event = repeat(PureEvent(F(1000)), 3)
    assert numeric.delta(event, epsilon=1.0, side="upper") == 1
    assert numeric.delta(event, epsilon=1.0, side="lower") == 0
    assert numeric.epsilon(event, delta=1e-6, side="upper") == math.inf
    assert numeric.epsilon(event, delta=1e-6, side="lower") == 0
    assert renyi.leaf_divergence(SampledEvent(F(1, 2), LaplaceEvent(F(1, 500))), 2.0) == math.inf
    assert renyi._upper_masses(AtomPair(np.zeros(1), np.ones(1))) is None
    assert renyi._upper_masses(LaplacePair(401.0)) is None
    assert renyi._upper_masses(LaplacePair(400.0)) is not None


def test_nothing_is_nothing_by_every_way():
    for side in ("upper", "lower"):
        assert numeric.delta(NOTHING, epsilon=0.0, side=side) == 0
        assert numeric.epsilon(NOTHING, delta=1e-9, side=side) == 0


def test_only_guarantees_are_added():
    for wrong in (1, True, "x", None):
        with pytest.raises(TypeError):
            wrong + pure_dp(1)
        with pytest.raises(TypeError):
            pure_dp(1) + wrong
    with pytest.raises(InvalidArgument):
        Guarantee.from_json('{"relation": "ADD_REMOVE"}')


def test_moments_beyond_the_last_cell():
    """E_Q[(dP/dQ)^order] where the loss is larger, by quadrature."""
    mu, order, beyond = 0.8, 3.0, 1.5
    start = (beyond + mu**2 / 2) / mu  # the loss of N(mu, 1) against N(0, 1) is mu x - mu^2/2

    def moment(ratio, x):
        return stats.norm.pdf(x) * ratio(math.exp(mu * x - mu**2 / 2)) ** order

    exact = integrate.quad(lambda x: moment(float, x), start, start + 30)[0]
    assert renyi._tail(GaussianPair(mu), order, beyond) == pytest.approx(math.log(exact), rel=1e-8)
    # A sample: the ratio there is bounded by that of the inner law times a constant.
    rate = 0.3
    inner = math.log1p(math.expm1(beyond) / rate)
    start = (inner + mu**2 / 2) / mu
    exact = integrate.quad(lambda x: moment(lambda r: 1 - rate + rate * r, x), start, start + 30)[0]
    found = renyi._tail(RemovePair(rate, GaussianPair(mu)), order, beyond)
    assert math.log(exact) <= found <= math.log(exact) + 0.3
    assert renyi._tail(AddPair(rate, GaussianPair(mu)), order, beyond) == -math.inf
    assert renyi._tail(LaplacePair(1.0), order, beyond) == math.inf
    assert renyi._tail(GaussianPair(mu), order, 0.0) == math.inf


def test_an_infinite_loss_is_certain_at_most():
    certain = LatticeLaplacePair(0.5, 3, 1)  # no output of one law is one of the other
    assert certain.infinity == 1
    assert WithoutReplacementPair(1.0, certain).infinity == 1
    assert RemovePair(0.5, certain).infinity == pytest.approx(0.5)


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
def test_divergences_of_laplace_noise_are_rounded_up(order):
    for epsilon in (1e-4, 1e-2, 0.3, 2.0):
        with mpmath.workdps(40):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            inside = a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)
            true = mpmath.log(inside / (2 * a - 1)) / (a - 1)
        found = renyi._laplace(epsilon, order)
        assert true <= found
        assert found <= true * (1 + 1e-11) + 1e-14 / (order - 1)


def test_all_mass_is_in_the_tails():
    """A tail larger than half keeps the largest atom, and what is left out is told."""
    atoms = AtomPair(np.array([-1.0, 0.0, 2.0]), np.array([0.3, 0.4, 0.3]))
    losses, masses, low, high = cells._trimmed(atoms, 0.9)
    assert (losses.tolist(), masses.tolist()) == ([0.0], [0.4])
    assert (low, high) == pytest.approx((0.3, 0.3))
    losses, _, low, high = cells._trimmed(atoms, 0.3)
    assert (losses.size, low, high) == (1, 0.3, 0.3)
    losses, _, low, high = cells._trimmed(atoms, 0.29)
    assert (losses.size, low, high) == (3, 0, 0)


def test_merged_atoms_keep_both_laws():
    """P- and Q-mass stay, or the atom moves down; no atom is given away."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        size = int(rng.integers(1, 40))
        losses = np.sort(rng.uniform(-1, 1, size))
        mass = rng.dirichlet(np.full(size, 0.5)) + 1e-9
        index, merged = cells._merged(losses, mass, 0.05)
        assert merged.sum() == pytest.approx(mass.sum(), rel=1e-12)
        assert (merged > 0).all()
        before, after = (mass * np.exp(-losses)).sum(), (merged * np.exp(-0.05 * index)).sum()
        assert after >= before * (1 - 1e-12)
        for epsilon in (-0.5, 0.0, 0.3, 0.7):
            true = (mass * np.maximum(0, -np.expm1(epsilon - losses))).sum()
            found = (merged * np.maximum(0, -np.expm1(epsilon - 0.05 * index))).sum()
            assert found <= true * (1 + 1e-9) + 1e-15


def test_merging_loses_little():
    losses, step = np.arange(-30, 31) * 0.0337, 0.0043
    mass = np.exp(-((losses - 0.1) ** 2)) / np.exp(-((losses - 0.1) ** 2)).sum()
    index, merged = cells._merged(losses, mass, step)
    true = (mass * np.maximum(0, -np.expm1(0.2 - losses))).sum()
    found = (merged * np.maximum(0, -np.expm1(0.2 - step * index))).sum()
    alone = (mass * np.maximum(0, -np.expm1(0.2 - step * np.floor(losses / step)))).sum()
    assert true - found < 0.1 * (true - alone)


def test_a_certain_clone():
    found = shuffle._below(np.array([3.0, 4.0, 5.0]), np.array([4.0, 4.0, 4.0]), 1.0)
    assert found.tolist() == [0, 0, 1]


def test_reports_that_hide_nowhere(monkeypatch):
    assert shuffle.local_epsilon(1.0, delta=1e-15, reports=1) == 1
    # A root that is none is not believed.
    monkeypatch.setattr(shuffle.scipy.optimize, "brentq", lambda _f, _low, high, **_: high)
    assert shuffle.local_epsilon(1.0, delta=1e-6, reports=100) == 1


def test_roots_are_lowered_until_they_are_certified(monkeypatch):
    true = shuffle.local_epsilon(1.0, delta=1e-6, reports=100)
    steps = (1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2)
    for step in steps:
        wrong = true * (1 + step / 2)
        monkeypatch.setattr(shuffle.scipy.optimize, "brentq", lambda *_, wrong=wrong, **__: wrong)
        found = shuffle.local_epsilon(1.0, delta=1e-6, reports=100)
        assert true * (1 - 1.1 * step) <= found <= true * (1 + 1e-9)


@pytest.mark.parametrize("local", [1e-17, 1e-13, 1e-9, 1e-7])
@pytest.mark.parametrize("parts", [(), block_design_parts(points=2)], ids=["any", "binary"])
def test_reports_that_say_almost_nothing(local, parts):
    """One report is a randomized response: delta at zero is tanh(local/2), never less."""
    (found,) = shuffle.shuffled_delta(np.array([0.0]), local=local, reports=1, parts=parts)
    assert math.tanh(local / 2) <= found <= math.tanh(local / 2) * (1 + 1e-7) + 2e-15


def test_noise_that_hides_nothing_or_all():
    law = NormalLaplace(0, 1)
    assert law.delta(1.0, shift=1) == 0
    assert law.delta(0.999, shift=1) == pytest.approx(-math.expm1(-0.0005), rel=1e-6)
    assert law.delta(-2.0, shift=1) == -math.expm1(-2)
