"""Grids, routes and searches: which one is taken, and that it finds the best there is."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms.bounded._divergence import BoundedOutputs, spendable, worst_divergence
from discreet.mechanisms.bounded.compare import _truths
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.data_dependent import weighted_sensitivity as weighted
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.personalized._prices import PricedLevels
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.partition import privacy_aware, utility_based
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar import _base as loss
from discreet.mechanisms.scalar import best_noise as best
from discreet.mechanisms.scalar import grafted, staircase
from discreet.noise.laplace import DiscreteLaplace

REPLACE = {"relation": NeighboringRelation.REPLACE_ONE}
MENU = {
    "strict": discreet.pure_dp(Fraction(1, 2), **REPLACE),
    "open": discreet.pure_dp(2, **REPLACE),
    "usual": discreet.pure_dp(1, **REPLACE),
}

# -- grids --------------------------------------------------------------------------------------


def test_columns_have_so_many_steps():
    assert SortedColumn.of(0, 1, None) == SortedColumn(first=0, span=2**26, exponent=-26)
    assert SortedColumn.of(0, 1.99, None).exponent == -26
    assert SortedColumn.of(2**30, 2**30 + 1, None).exponent == -8  # 2**38 steps from zero
    assert SortedColumn.of(0, 2**40, 1).span == 2**40
    assert SortedColumn.of(-(2**40), -1, 1).first == -(2**40)
    for lower, upper in ((0, 2**40 + 1), (-(2**40) - 1, -1)):
        with pytest.raises(InvalidArgument):
            SortedColumn.of(lower, upper, 1)


def test_columns_are_refined_without_a_move():
    fine, stride = SortedColumn.of(3, 10, 1).refined()
    assert stride == 2**23
    assert fine == SortedColumn(first=3 * stride, span=7 * stride, exponent=-23)
    fine, stride = SortedColumn.of(2**38, 2**38 + 2, 1).refined()
    assert (fine.first, stride, fine.exponent) == (2**40, 4, -2)
    same = SortedColumn(first=0, span=2**26, exponent=0)
    assert same.refined() == (same, 1)


def test_groups_are_estimated_on_a_grid():
    def exponent(width, epsilon):
        (found,) = {
            sample_and_aggregate(
                np.mean, lower=lower, upper=lower + width, groups=3, epsilon=epsilon
            ).column.exponent
            for lower in (0, -width, 3 * width)
        }
        return found

    assert exponent(1, 1) == -20
    assert exponent(8, 1) == -17
    # The scale of the noise has at most 2**31 steps.
    assert exponent(1, Fraction(1, 2**10)) == -20
    assert exponent(1, Fraction(1, 2**11)) == 11 - 31 + 1
    assert exponent(1, Fraction(1, 2**15)) == 15 - 31 + 1


def test_bounded_noise_has_a_grid_that_can_be_drawn():
    def exponent(**options):
        return bounded_laplace(**{"epsilon": 1, "domain": "reals"} | options).column.exponent

    assert exponent(lower=0, upper=1, sensitivity=0.5) == -21
    assert exponent(lower=0, upper=2**30, sensitivity=0.5) == 30 - 39 + 1
    assert exponent(lower=2**30 - 1, upper=2**30, sensitivity=0.5) == 30 - 39 + 1
    assert exponent(lower=0, upper=1, sensitivity=0.5, epsilon=2.0**-11) == -1 + 11 - 31 + 1
    whole = bounded_laplace(lower=-3, upper=9, sensitivity=2, epsilon=1)
    assert whole.column == SortedColumn(first=-3, span=12, exponent=0)
    assert bounded_laplace(lower=0, upper=1, sensitivity=1, epsilon=256).scale > 0
    with pytest.raises(InvalidArgument):
        bounded_laplace(lower=0, upper=1, sensitivity=1, epsilon=256.01)


def test_a_delta_is_spent_where_it_is_worth_something():
    small, one = Fraction(1, 2**36), Fraction(1)
    assert spendable(one, small) == small
    assert spendable(one, small - Fraction(1, 2**60)) == 0
    assert spendable(64 * one, small) == small
    assert spendable(64 + Fraction(1, 1000), small) == 0


def test_truths_of_a_prior():
    small = bounded_laplace(lower=-2, upper=2, sensitivity=1, epsilon=1)
    for prior in ("uniform", "worst"):
        assert _truths(prior, small) == [-2, -1, 0, 1, 2]
    for upper, many in ((64, 65), (65, 64)):
        made = bounded_laplace(lower=0, upper=upper, sensitivity=1, epsilon=1)
        assert len(_truths("uniform", made)) == many
    made = bounded_laplace(lower=0, upper=128, sensitivity=1, epsilon=1)
    assert _truths("uniform", made) == [1 + 2 * i for i in range(64)]
    assert _truths("worst", made) == [2 * i for i in range(65)]
    assert _truths([0, 128, 3.5], made) == [0, 128, 3.5]
    for prior in ([-0.5], [128.5], []):
        with pytest.raises(InvalidArgument):
            _truths(prior, made)


# -- routes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "route"),
    [
        (events.DiscreteLaplaceEvent(Fraction(17476), 16), "sum"),
        (events.DiscreteLaplaceEvent(Fraction(17476), 17), "tails"),
        (events.TruncatedLaplaceEvent(scale=Fraction(9), bound=2**20 - 3, shift=3), "sum"),
        (events.TruncatedLaplaceEvent(scale=Fraction(9), bound=2**20 - 2, shift=3), "tails"),
        (events.DiscreteGaussianEvent(Fraction(4096**2), Fraction(4), 1), "sum"),
        (events.DiscreteGaussianEvent(Fraction(4097**2), Fraction(4), 1), "tails"),
        (events.DiscreteGaussianEvent(Fraction(1), Fraction(12), 12), "sum over the lattice, 5 "),
        (events.DiscreteGaussianEvent(Fraction(1), Fraction(13), 13), "sum over the lattice, 2 "),
    ],
)
def test_large_lattices_are_not_summed(event, route):
    assert divergence.exact_delta(event, 0.01)[1].startswith(route)


def test_tables_of_bounded_noise_have_at_most_400_outputs():
    for span, words in ((399, "all pairs"), (400, "tails")):
        _, route = worst_divergence(BoundedOutputs(span=span, shift=1), Fraction(2), 0.5)
        assert words in route


def test_alike_noises_are_taken_in_the_usual_order(monkeypatch):
    def choose(first, second):
        losses = {"laplace": first, "staircase": second}
        monkeypatch.setattr(best, "_loss", lambda mechanism, _: losses[mechanism.name])
        return best.best_additive_noise(sensitivity=3, epsilon=1).chosen.name

    assert choose(1.0, 1.0) == "laplace"
    assert choose(1.0 + 0.9e-6, 1.0) == "laplace"
    assert choose(1.0 + 1.1e-6, 1.0) == "staircase"
    assert choose(1.0, 0.5) == "staircase"


# -- searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 64, 65, 66, 700, 5000])
def test_the_best_tread_is_found(most):
    for at in {1, min(2, most), most // 3 + 1, most // 2 + 1, max(most - 1, 1), most}:
        assert staircase._smallest(lambda tread, at=at: abs(tread - at), most) == at
        steep = staircase._smallest(
            lambda tread, at=at: (tread - at) * (3 if tread > at else -1), most
        )
        assert steep == at


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_the_share_of_the_global_sensitivity_is_the_smallest(epsilon, delta):
    share = weighted.smallest_share(epsilon, delta)
    step = Fraction(1, 2**20)
    assert share % step == 0
    assert weighted.weighted_delta(epsilon, float(share)) <= delta
    assert weighted.weighted_delta(epsilon, float(share - step)) > delta * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("slope", [0.4, 2.0])
def test_the_shortest_core_is_found(epsilon, slope):
    cells, delta = 8, 1e-4
    shape = grafted._fit(slope, cells, epsilon, delta)
    if shape is None:
        longest = grafted._Shape(slope, 51.5 / slope)
        assert longest.divergence(cells, epsilon) > delta
        return
    assert shape.divergence(cells, epsilon) <= delta
    shorter = dataclasses.replace(shape, core=shape.core / (1 + 1e-6))
    assert shorter.divergence(cells, epsilon) > delta


@pytest.mark.parametrize(("slope", "core"), [(1.0, 0.5), (0.3, 4.0), (2.0, 30.0)])
def test_the_shape_of_grafted_noise(slope, core):
    """A Laplace core, a normal tail that goes on at the same height, and an end far down."""
    cells = 6
    found = grafted._Shape(slope, core).weights(cells)
    for cell, weight in enumerate(found):
        t = cell / cells
        falls = slope * t if t <= core else slope * (t * t + core * core) / (2 * core)
        assert weight == pytest.approx(math.exp(-falls), rel=1e-12)
    assert found[-1] <= math.exp(-47.5)
    assert found[-2] > math.exp(-47.5)
    every = np.concatenate((found[:0:-1], found))
    every /= every.sum()
    exact = 0.0
    for k in range(len(every)):
        moved = every[k - cells] if k >= cells else 0.0
        exact += max(0.0, every[k] - math.exp(0.7) * moved)
    shape = grafted._Shape(slope, core)
    assert shape.divergence(cells, 0.7) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_losses_of_a_sum():
    law = DiscreteLaplace(Fraction(3))
    assert loss._summed(law) == pytest.approx(1 / math.sinh(1 / 3), rel=1e-12)


# -- noise that follows the data ----------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["median", "mean", "variance"])
def test_smooth_bounds_are_raised_for_the_rounding_of_doubles(statistic):
    made = smooth_sensitivity(statistic, lower=0, upper=50, public_rows=7, epsilon=1, granularity=1)
    assert made.family.order == 4
    codes = np.array([0, 3, 4, 9, 20, 30, 50])
    raw = made.statistic.smooth_bound(
        codes, 50, beta=made.smoothness - 2.0**-36, least=float(made._least)
    )
    extra = 0 if statistic == "median" else 1  # rounded down to a step
    assert made.bound(codes) == Fraction(raw) * (1 + Fraction(1, 2**38)) + extra
    largest = made.statistic.largest(50) * (1 + Fraction(1, 2**38)) + extra
    assert made.largest_steps == max(largest, made._least) * made.family.multiplier
    assert made._least == max(1, 16 / made.family.multiplier)


# -- a budget for each --------------------------------------------------------------------------


def test_prices_are_whole_and_in_order():
    menu = PricedLevels.of(MENU)
    assert menu.names == ("strict", "usual", "open")
    assert menu.prices == (1, 2, 4)
    assert menu.unit == Fraction(1, 2)


def test_prices_of_answers_are_those_of_the_cheapest_people():
    levels = ["open", "strict", "usual", "open", "strict"]
    price = {"strict": 1, "usual": 2, "open": 4}
    having = np.array([1, 0, 0, 1, 1])
    found = personalized_count(MENU).distances(having, levels)
    for answer in range(6):
        cheapest = min(
            sum(price[levels[i]] for i in range(5) if flips[i])
            for flips in itertools.product((0, 1), repeat=5)
            if sum(having ^ np.array(flips)) == answer
        )
        assert found[answer] == cheapest
    values = np.array([3, 1, 4, 0, 3])
    for quantile in (0, 0.3, 0.5, 1):
        made = personalized_quantile(MENU, quantile=quantile, lower=0, upper=4)
        found = made.distances(values, levels)
        rank = max(1, math.ceil(quantile * 5))
        for answer in range(5):
            cheapest = min(
                sum(price[levels[i]] for i in range(5) if moved[i])
                for moved in itertools.product((0, 1), repeat=5)
                if sum(not m and v < answer for m, v in zip(moved, values, strict=True)) <= rank - 1
                and sum(not m and v > answer for m, v in zip(moved, values, strict=True))
                <= 5 - rank
            )
            assert found[answer] == cheapest
        law = made.probabilities(values, levels)
        weights = np.exp(-found / 4)
        assert law == pytest.approx(weights / weights.sum(), rel=1e-12)


def test_pulled_values():
    levels = ["open", "strict", "usual", "open", "strict"]
    price = {"strict": 1, "usual": 2, "open": 4}
    values = [3, 11, 8, -5, 7]
    for quantile, rank in ((0, 1), (0.2, 1), (0.21, 2), (0.5, 3), (1, 5)):
        for anchor, middle in ((2, 2), (None, 4)):
            made = stretched_quantile(MENU, quantile=quantile, lower=-1, upper=9, anchor=anchor)
            pulled = sorted(
                price[name] * (min(max(value, -1), 9) - middle)
                for name, value in zip(levels, values, strict=True)
            )
            assert made.anchor == middle
            assert made.exact(values, levels) == pulled[rank - 1]
            assert made.std == pytest.approx(DiscreteLaplace(Fraction(20)).std / 4, rel=1e-12)
    total = stretched_sum(MENU, lower=-1, upper=9)
    assert total.weights == {"strict": Fraction(1, 4), "usual": Fraction(1, 2), "open": 1}
    assert total.guarantee.epsilons() == {"open": 2.0, "strict": 0.5, "usual": 1.0}


@pytest.mark.parametrize("smallest", [1, 2, 3])
@pytest.mark.parametrize("runs", [1, 2, 3, 6])
def test_runs_are_the_best_of_all(smallest, runs):
    budgets = [0.5, 2.0, 0.7, 0.1, 2.5, 0.6, 0.55]
    ordered = sorted(budgets)

    def squares(part):
        return sum((budget - part[0]) ** 2 for budget in part)

    def sizes(part):
        return 3 + 1 / (len(part) * part[0])

    def least(cost):
        ways = []
        for many in range(1, runs + 1):
            for cuts in itertools.combinations(range(1, 7), many - 1):
                ends = [0, *cuts, 7]
                parts = [ordered[a:b] for a, b in itertools.pairwise(ends)]
                if min(map(len, parts)) >= smallest:
                    ways.append((sum(map(cost, parts)), parts))
        return min(ways)

    found = privacy_aware(budgets, runs=runs, smallest=smallest)
    cost, parts = least(squares)
    assert found.cost == pytest.approx(cost, abs=1e-12)
    assert found.epsilons == tuple(part[0] for part in parts)
    assert [sorted(budgets[i] for i in part) for part in found.parts] == parts
    found = utility_based(
        budgets, loss=lambda size, low: 3 + 1 / (size * low), runs=runs, smallest=smallest
    )
    cost, parts = least(sizes)
    assert found.cost == pytest.approx(cost, rel=1e-12)
    assert [sorted(budgets[i] for i in part) for part in found.parts] == parts
