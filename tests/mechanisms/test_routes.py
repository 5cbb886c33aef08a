"""Routes that end at the right place anyway: each part of them by itself, against sums."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core import events
from discreet.core.errors import NotCertified, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms import quantiles as quantile_tree
from discreet.mechanisms.bounded import _divergence as bounded_check
from discreet.mechanisms.bounded._divergence import BoundedOutputs
from discreet.mechanisms.data_dependent import _smooth_noise as smooth_noise
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng


def excess(weights, shift, epsilon):
    """The divergence of a law and the same law moved up, point by point."""
    law = weights / weights.sum()
    moved = np.append(np.zeros(shift), law[:-shift])
    return math.fsum(np.maximum(law - math.exp(epsilon) * moved, 0))


# -- divergences --------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [0, 1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_a_lattice_is_summed_up_to_its_reach_and_tails_count_in_full(reach, epsilon):
    law, shift = DiscreteLaplace(Fraction(2)), 7
    norm = math.tanh(0.25)

    def mass(k):
        return norm * math.exp(-abs(k) / 2)

    inside = sum(
        max(0.0, mass(k) - math.exp(epsilon) * mass(k - shift)) for k in range(-reach, reach + 1)
    )
    tails = 2 * sum(mass(k) for k in range(reach + 1, 200))
    found, _ = divergence.lattice_delta(law, shift, epsilon, reach)
    assert found == pytest.approx(inside + tails, rel=1e-12)


@pytest.mark.parametrize("epsilon", [600, 800, 10**4])
def test_an_epsilon_whose_exponential_no_double_holds_is_certified(epsilon):
    (check,) = truncated_laplace(sensitivity=1, epsilon=epsilon, delta=1e-6).certify().checks
    assert 0 <= check.exact < 1e-250


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_divergences_of_noise_that_is_too_wide_for_a_table(epsilon):
    scale, shift = 1 << 15, 20_001
    k = np.arange(-33 * scale, 33 * scale + 1)
    weights = np.exp(-np.abs(k) / scale)
    found, route = divergence.exact_delta(
        events.DiscreteLaplaceEvent(Fraction(scale), shift), epsilon
    )
    assert route == "tails of the lattice"
    assert found == pytest.approx(excess(weights, shift, epsilon), rel=1e-9)
    # Shorter noise: what the neighbor cannot reach counts too, and may be all that counts.
    bound = (1 << 20) - shift + 1
    event = events.TruncatedLaplaceEvent(scale=Fraction(scale), bound=bound, shift=shift)
    found, route = divergence.exact_delta(event, epsilon)
    assert route == "tails of the lattice"
    assert found == pytest.approx(excess(weights * (np.abs(k) <= bound), shift, epsilon), rel=1e-9)
    sigma, shift = 5000, 6001
    k = np.arange(-8 * sigma, 8 * sigma + 1)
    event = events.DiscreteGaussianEvent(Fraction(sigma**2), Fraction(shift**2), 1)
    found, route = divergence.exact_delta(event, epsilon)
    assert route == "tails of the lattice"
    exact = excess(np.exp(-((k / sigma) ** 2) / 2), shift, epsilon)
    assert found == pytest.approx(exact, rel=1e-9)


def test_a_truncated_law_may_be_told_apart_by_its_end_alone():
    scale, shift, bound = 1 << 15, 5, 1 << 20
    k = np.arange(-bound, bound + 1)
    weights = np.append(np.exp(-np.abs(k) / scale), np.zeros(shift))
    event = events.TruncatedLaplaceEvent(scale=Fraction(scale), bound=bound, shift=shift)
    found, _ = divergence.exact_delta(event, 1.0)
    assert found == pytest.approx(excess(weights, shift, 1.0), rel=1e-6)
    assert found > 0


# -- the staircase ------------------------------------------------------------------------------


class Bump:
    """A law that is alike everywhere but at one place."""

    def __init__(self, tread, place):
        self.tread, self.place = tread, place
        self.std = 1.0

    def log_pmf(self, k):
        return np.where(np.asarray(k) == self.place, 10.0, 0.0)


def test_a_fault_at_any_edge_of_a_staircase_is_found():
    made = staircase(sensitivity=9, epsilon=1)
    assert made.certify().holds
    tread, shift = 4, 9
    edges = {0, tread - 1, tread, shift - 1, shift, 2 * shift}
    for place in edges | {-edge for edge in edges} | {edge - shift for edge in edges}:
        wrong = dataclasses.replace(made, noise=Bump(tread, place))
        with pytest.raises(NotCertified):
            wrong.certify()


def test_the_staircase_is_compared_with_its_epsilon():
    made = staircase(sensitivity=9, epsilon=1)
    assert made.exact()[0] == 0.0
    less = (made.target[0] - Fraction(1, 10**9), Fraction(0))
    assert dataclasses.replace(made, target=less).exact()[0] == 1.0


# -- bounded noise ------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [2, 5, 20])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_both_certificates_of_bounded_noise_agree_with_all_pairs(span, scale, epsilon, monkeypatch):
    every = range(span + 1)
    laws = np.array([[math.exp(-abs(k - q) / float(scale)) for k in every] for q in every])
    laws /= laws.sum(axis=1, keepdims=True)
    for shift in sorted({1, span // 2, span}):
        exact = max(
            np.maximum(laws[a] - math.exp(epsilon) * laws[b], 0).sum()
            for a, b in itertools.product(every, every)
            if abs(a - b) <= shift
        )
        outputs = BoundedOutputs(span=span, shift=shift)
        found, route = bounded_check.worst_divergence(outputs, scale, epsilon)
        assert "all pairs" in route
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr(bounded_check, "_LARGEST_TABLE", 0)
            found, route = bounded_check.worst_divergence(outputs, scale, epsilon)
        assert "tails" in route
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)
        for low in range(span - shift + 1):
            for pair in ((low, low + shift), (low + shift, low)):
                one, other = laws[pair[0]], laws[pair[1]]
                exact = np.maximum(one - math.exp(epsilon) * other, 0).sum()
                found = bounded_check._half_line(span, scale, pair, epsilon)
                assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)


# -- grafted noise ------------------------------------------------------------------------------


def test_cells_of_grafted_noise():
    """At most 32 a sensitivity, an odd number of integers each, and a table that is not long."""
    assert grafted._cells(1, 1.0) == (1, 1)
    assert grafted._cells(5, 1.0) == (5, 1)
    assert grafted._cells(32, 1.0) == (32, 1)
    assert grafted._cells(33, 1.0) == (32, 3)
    assert grafted._cells(96, 1.0) == (32, 3)
    assert grafted._cells(97, 1.0) == (32, 5)
    fewest = 47.5 / 2**15  # of epsilon, for one cell
    assert grafted._cells(1000, 5.5 * fewest) == (5, 201)
    assert grafted._cells(1000, 1.001 * fewest) == (1, 1001)
    with pytest.raises(Unsupported):
        grafted._cells(1000, 0.999 * fewest)


# -- quantiles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(2, 7), Fraction(9, 10)])
@pytest.mark.parametrize("stride", [1, 2])
def test_scores_of_flipped_points_are_counts(level, stride):
    made = private_quantile(
        level, lower=0, upper=8, granularity=1, epsilon=1, method="permute_and_flip"
    )
    made = dataclasses.replace(made, stride=stride)
    for data in [(), (3,), (0, 0, 8), (1, 2, 2, 5, 7), (4,) * 6]:
        found = made._scores(np.array(data, dtype=np.int64), 8)
        expected = []
        for point in range(0, 9, stride):
            below = sum(value < point for value in data)
            up_to = sum(value <= point for value in data)
            target = level * len(data)
            expected.append(-max(below - target, target - up_to, 0) * level.denominator)
        assert found.tolist() == expected


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_several_quantiles_are_certified_as_medians_of_their_step(relation, monkeypatch):
    seen = []
    certify = quantile_tree.PrivateQuantile.certify
    monkeypatch.setattr(
        quantile_tree.PrivateQuantile, "certify", lambda self: seen.append(self) or certify(self)
    )
    made = private_quantiles([0.2, 0.5, 0.9], lower=0, upper=10, epsilon=1, relation=relation)
    assert made.certify().holds
    (single,) = seen
    assert single.quantile == Fraction(1, 2)
    assert single.epsilon == (
        Fraction(1, 2) if relation is NeighboringRelation.ADD_REMOVE else Fraction(1, 4)
    )
    assert single.relation is NeighboringRelation.ADD_REMOVE


# -- noise that follows the data ----------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "cauchy", "lomax"])
def test_a_draw_begins_where_it_ends(noise, monkeypatch):
    """The first guess is nearly always the answer, so that the exact search is short."""
    pairs = []
    invert = smooth_noise.invert

    def spied(uniform, at_least, first):
        found = invert(uniform, at_least, first)
        pairs.append((first, found))
        return found

    monkeypatch.setattr(smooth_noise, "invert", spied)
    delta = 1e-6 if noise == "laplace" else 0
    family = smooth_sensitivity(
        lower=0, upper=1, public_rows=9, epsilon=1, delta=delta, noise=noise
    ).family
    bits = seeded_rng(7)
    draws = [family.draw(Fraction(4001, 4), bits) for _ in range(60)]
    assert [first for first, _ in pairs] == [found for _, found in pairs] == list(map(abs, draws))
    assert len(set(map(abs, draws))) > 10
    assert min(draws) < 0 < max(draws)


def test_noise_has_sixteen_steps_at_least():
    made = smooth_sensitivity(lower=0, upper=2, public_rows=9, epsilon=100, granularity=1)
    assert made.family.multiplier < 1
    assert made.largest_steps == 16
    assert made._least * made.family.multiplier == 16
