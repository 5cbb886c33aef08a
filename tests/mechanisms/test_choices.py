"""Laws of choices, bounds that follow the data and errors between bounds, written out."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.mechanisms import _piecewise_exponential as quantile_pieces
from discreet.mechanisms.bounded._divergence import BoundedOutputs
from discreet.mechanisms.bounded._error import bounded_error, clamped_error, folded_error
from discreet.mechanisms.data_dependent import _smooth_statistics as smooth_statistics
from discreet.mechanisms.data_dependent._smooth_noise import laplace_log_density, turns_beyond
from discreet.mechanisms.data_dependent._smooth_statistics import (
    SmoothVariance,
    TrimmedMean,
    pad_with_bounds,
)
from discreet.mechanisms.data_dependent.smooth_sensitivity import divergence
from discreet.mechanisms.quantiles import SortedColumn

# -- choices ------------------------------------------------------------------------------------

SCORES = [0, 2, 2, -1]


def flips(rate):
    """Permute and flip: every order, until a head comes up; a best one always does."""
    p = [math.exp(-rate * (max(SCORES) - score)) for score in SCORES]
    law = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1 / 24
        for i in order:
            law[i] += left * p[i]
            left *= 1 - p[i]
    return law


def maxima(rate):
    """The largest noisy score, ties to the first: three noises below each value of one."""
    k = np.arange(-90, 91)
    mass = np.exp(-rate * np.abs(k))
    mass /= mass.sum()
    law = np.zeros(4)
    for i, score in enumerate(SCORES):
        for noise, weight in zip(k, mass, strict=True):
            value = score + noise
            stays = [
                mass[k + other < value].sum() if j < i else mass[k + other <= value].sum()
                for j, other in enumerate(SCORES)
                if j != i
            ]
            law[i] += weight * math.prod(stays)
    return law


@pytest.mark.parametrize("monotonic", [False, True])
def test_laws_of_choices(monotonic):
    options = {"sensitivity": 3, "epsilon": 2, "monotonic": monotonic}
    rate = 2 / 3 if monotonic else 1 / 3
    weights = np.exp(rate * np.array(SCORES))
    found = discreet.exponential_mechanism(**options).probabilities(SCORES)
    assert found == pytest.approx(weights / weights.sum(), rel=1e-12)
    found = discreet.permute_and_flip(**options).probabilities(SCORES)
    assert found == pytest.approx(flips(rate), rel=1e-12)
    found = discreet.report_noisy_max(**options).probabilities(SCORES)
    assert found == pytest.approx(maxima(rate), rel=1e-9)


@pytest.mark.parametrize("others", [1, 7])
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4])
def test_losses_of_choices(others, miss):
    for make in (discreet.exponential_mechanism, discreet.permute_and_flip):
        made = make(sensitivity=3, epsilon=2)
        lag = made.lag(others, miss)
        assert lag == pytest.approx(max(0.0, 3 * math.log(others / miss)), rel=1e-12)
        assert made.interval(1 - miss, candidates=others + 1) == pytest.approx((0.0, lag))
        assert made.interval(1 - miss, candidates=1) == made.interval(1 - miss, candidates=2)
    made = discreet.report_noisy_max(sensitivity=3, epsilon=2)
    k = np.arange(-150, 151)
    mass = np.exp(-np.abs(k) / 3)
    mass /= mass.sum()
    gaps = np.convolve(mass, mass[::-1])
    behind = [gaps[300 + g :].sum() for g in range(100)]
    assert made.lag(others, miss) == min(g for g in range(100) if others * behind[g] <= miss)


def test_the_neighbors_that_are_hardest_to_protect():
    for monotonic in (False, True):
        made = discreet.exponential_mechanism(sensitivity=2, epsilon=1, monotonic=monotonic)
        pairs = [tuple(tuple(side.tolist()) for side in pair) for pair in made._neighbors(3)]
        equal = (0.0, 0.0, 0.0)
        apart = equal if monotonic else (2.0, -2.0, -2.0)
        far = (-40.0, 0.0, 0.0), (-38.0, 0.0, 0.0)
        assert pairs == [((2.0, 0.0, 0.0), equal), (apart, equal), (far[1], far[0])]
        certificate = made.certify()
        assert [check.part for check in certificate.checks] == [
            "2 candidates",
            "3 candidates",
            "10 candidates",
        ]


# -- bounds that follow the data ----------------------------------------------------------------

SPAN = 9
COLUMNS = [[0, 0, 1, 4, 9], [2, 3, 3, 3, 5], [0, 2, 4, 6, 8], [9, 9, 9, 9, 9]]


@pytest.mark.parametrize("values", COLUMNS)
@pytest.mark.parametrize(("below", "above"), [(0, 0), (2, 2), (0, 4), (1, 2), (3, 0)])
def test_smooth_bounds_leave_nothing_out(values, below, above):
    made = TrimmedMean(public_rows=5, below=below, above=above)
    codes = np.array(values)
    padded = pad_with_bounds(codes, SPAN)
    reaches = [made.reach(padded, k) for k in range(7 - made.kept)] + [SPAN] * 3
    for beta in (0.1, 0.7, 3.0):
        for least in (0.0, 0.3, 20.0):
            exact = max(math.exp(-beta * k) * r / made.kept for k, r in enumerate(reaches[:8]))
            found = made.smooth_bound(codes, SPAN, beta=beta, least=least)
            assert found == pytest.approx(max(exact, least), rel=1e-12)
    for bound in (Fraction(0), Fraction(1), Fraction(3, 2), Fraction(3), Fraction(SPAN)):
        passes = [
            k for k in range(8 - made.kept)
            if k == 7 - made.kept or Fraction(reaches[k], made.kept) > bound
        ]  # fmt: skip
        assert made.distance(codes, SPAN, bound=bound) == passes[0]


@pytest.mark.parametrize("values", [column[:4] for column in COLUMNS])
def test_smooth_bounds_of_variances(values):
    """U_k by trying every choice of a row that is left out and of k others that are moved."""
    made = SmoothVariance(public_rows=4)
    far = []
    for changes in range(4):
        largest = Fraction(0)
        for out in range(4):
            rest = values[:out] + values[out + 1 :]
            for moved in itertools.combinations(range(3), min(changes, 3)):
                for end in (0, SPAN):
                    held = [end if i in moved else value for i, value in enumerate(rest)]
                    mean = Fraction(sum(held), 3)
                    largest = max(largest, mean, SPAN - mean)
        far.append(largest**2 / 4)
    for beta in (0.05, 0.4, 2.0):
        exact = max(math.exp(-beta * k) * float(u) for k, u in enumerate(far))
        found = made.smooth_bound(np.array(values), SPAN, beta=beta, least=0.0)
        assert found == pytest.approx(exact, rel=1e-12)
        assert made.smooth_bound(np.array(values), SPAN, beta=beta, least=99.0) == 99


def test_sums_of_squares_are_exact(monkeypatch):
    values = np.array([0, 1, 2**20 - 1, 2**20, 2**20 + 1, 2**39 + 12345, 2**40 - 1])
    exact = sum(int(value) ** 2 for value in values)
    assert smooth_statistics._squares(values) == exact
    monkeypatch.setattr(smooth_statistics, "_PIECE", 2)
    assert smooth_statistics._squares(values) == exact
    mean = Fraction(int(values.sum()), 7)
    variance = sum((int(value) - mean) ** 2 for value in values) / 6
    assert SmoothVariance(public_rows=7).value(values) == variance


def test_quantiles_of_rows():
    for rows in (1, 2, 5, 10):
        for level in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(7, 10), Fraction(1)):
            made = TrimmedMean.quantile(rows, level)
            rank = next(r for r in range(1, rows + 1) if r >= level * rows)
            assert (made.below, made.above, made.kept) == (rank - 1, rows - rank, 1)
            assert made.value(np.arange(10, 10 + rows)) == 9 + rank


@pytest.mark.parametrize("z", [Fraction(1, 50), Fraction(1, 2), Fraction(2, 3), Fraction(1)])
@pytest.mark.parametrize("turned", [False, True])
def test_angles_are_enclosed(z, turned):
    z = 1 / z if turned else z
    low, high = turns_beyond(z, 120)
    assert 0 < high - low <= 2
    assert low / 2**120 == pytest.approx(2 / math.pi * math.atan(1 / z), rel=1e-14)
    finer = turns_beyond(z, 300)
    assert low <= finer[0] >> 180 <= finer[1] >> 180 <= high


@pytest.mark.parametrize(("p", "q"), [((0.0, 1.0), (0.4, 1.3)), ((0.4, 1.3), (0.0, 1.0))])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.9])
def test_divergences_by_integration(p, q, epsilon):
    x = np.linspace(-60, 60, 1_200_001)
    one, other = (np.exp(-np.abs(x - c) / s) / (2 * s) for c, s in (p, q))
    exact = np.maximum(one - math.exp(epsilon) * other, 0).sum() * (x[1] - x[0])
    found = divergence(laplace_log_density, p, q, epsilon)
    assert found == pytest.approx(exact, rel=1e-4, abs=1e-9)


# -- bounds that are public ---------------------------------------------------------------------


@pytest.mark.parametrize(("span", "shift"), [(5, 1), (30, 4), (400, 10), (400, 399)])
@pytest.mark.parametrize("scale", [0.7, 5.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_worst_center_is_found(span, shift, scale, epsilon):
    every = np.arange(span + 1)
    laws = np.exp(-np.abs(every[:, None] - every) / scale)
    laws /= laws.sum(axis=1, keepdims=True)
    excess = np.maximum(laws[: span + 1 - shift] - math.exp(epsilon) * laws[shift:], 0).sum(axis=1)
    found, center = BoundedOutputs(span=span, shift=shift).worst(scale, epsilon)
    assert found == pytest.approx(excess.max(), rel=1e-9, abs=1e-12)
    assert excess[center] == pytest.approx(excess.max(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("truth", [0, 37, 600, 1000])
@pytest.mark.parametrize("scale", [128, 129, 300])
def test_errors_of_wide_noise_by_cells(truth, scale):
    """Points up to a scale of 128 steps, cells beyond: both as the lattice has it, nearly."""
    column = SortedColumn(first=0, span=1000, exponent=-2)
    outputs = np.arange(1001)
    k = np.arange(-60 * scale, 60 * scale + 1)
    mass = np.exp(-np.abs(k) / scale)
    mass /= mass.sum()
    inside = np.exp(-np.abs(outputs - truth) / scale)
    inside /= inside.sum()
    there = np.clip(truth + k, 0, 1000)
    turn = (truth + k) % 2000
    back = np.minimum(turn, 2000 - turn)
    noise = discreet.laplace(sensitivity=Fraction(scale, 4), epsilon=1, domain="reals")
    ways = [
        (bounded_error(truth, column, scale), outputs - truth, inside),
        (clamped_error(truth, column, noise), there - truth, mass),
        (folded_error(truth, column, scale), back - truth, mass),
    ]
    for law, errors, masses in ways:
        assert law.masses.sum() == pytest.approx(1, rel=1e-9)
        size = math.sqrt(errors**2 @ masses) / 4
        assert law.root_mean_square == pytest.approx(size, rel=3e-3)
        assert law.mean_absolute == pytest.approx(np.abs(errors) @ masses / 4, rel=6e-3)
        assert law.bias == pytest.approx(errors @ masses / 4, abs=5e-3 * size)


@pytest.mark.parametrize("base", [0, 1000, -1000])
def test_laws_of_choices_depend_on_differences(base):
    scores = [base + score for score in SCORES]
    for make in (
        discreet.exponential_mechanism,
        discreet.permute_and_flip,
        discreet.report_noisy_max,
    ):
        made = make(sensitivity=3, epsilon=2)
        assert made.probabilities(scores) == pytest.approx(made.probabilities(SCORES), rel=1e-12)


# -- borders ------------------------------------------------------------------------------------


class Told:
    """Words that are told: the first one, then zeros and the largest in turn."""

    private = False

    def __init__(self, first, width):
        self.width = width
        self.left = [first, *[0, (1 << width) - 1] * 50]

    def words(self, count):
        return np.array([self.left.pop(0) for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize("width", [4, 5, 6, 7, 8, 64])
def test_draws_near_a_border_are_settled_exactly(width, monkeypatch):
    asked = []
    end = quantile_pieces._end
    monkeypatch.setattr(quantile_pieces, "_end", lambda *given: asked.append(given) or end(*given))
    choice = quantile_pieces.PiecewiseExponential(
        values=np.array([3, 7]), span=12, level=Fraction(1, 2), climbing=False, rate=Fraction(1)
    )
    masses = choice.pieces().masses(Fraction(1))
    borders = np.cumsum(masses)[:-1] / masses.sum()

    def exactly(word):
        asked.clear()
        choice.draw(Told(word, width))
        return bool(asked)

    if width < 64:
        for word in range(1 << width):
            inside = any(word <= border * 2**width <= word + 1 for border in borders)
            assert exactly(word) or not inside
        return
    for border in borders:
        place = int(Fraction(border) * 2**64)
        for away in (0, 20, 40):  # in units of the rounding of doubles, 2**-51
            assert exactly(place + (away << 13))
            assert exactly(place - (away << 13))
        for away in (200, 4000):
            assert not exactly(place + (away << 13))
            assert not exactly(place - (away << 13))
