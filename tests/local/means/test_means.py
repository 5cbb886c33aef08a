"""Means of bounded numbers: exact laws by enumeration, then the way from client to estimate."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import optimize, stats

from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.local._window_channel import WindowChannel, histogram, rows, window
from discreet.local.collection.aggregator import Aggregator
from discreet.local.distribution import square_wave
from discreet.local.means.balanced_piecewise import balanced_piecewise, levels
from discreet.local.means.base import on_grid
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.local_laplace import local_laplace
from discreet.local.means.multidimensional import best_mean_randomizer
from discreet.local.means.piecewise import PiecewiseMean, duchi, piecewise_mean
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from tests.counting_source import CountedBits
from tests.distributions import frequency, mean_of

EPSILONS = [0.01, 0.5, 1, Fraction(7, 3), 6, 40]
SMALL = {
    "duchi": lambda epsilon: duchi(epsilon=epsilon, lower=-1, upper=1),
    "piecewise": lambda epsilon: piecewise_mean(
        epsilon=epsilon, lower=-1, upper=1, steps=4, window=2
    ),
    "balanced": lambda epsilon: balanced_piecewise(
        epsilon=epsilon, lower=-1, upper=1, steps=4, window=3
    ),
    "hybrid": lambda epsilon: hybrid_mean(
        epsilon=epsilon, lower=-1, upper=1, steps=3, window=2, share=20000
    ),
}
MAKERS = [duchi, piecewise_mean, balanced_piecewise, hybrid_mean, local_laplace]


def law(randomizer, point):
    """Exact probabilities of all symbols at a grid point, as fractions."""
    if isinstance(randomizer, PiecewiseMean):
        weights = randomizer.window.weights(point)
        return [Fraction(int(w), randomizer.window.total) for w in weights]
    share = Fraction(randomizer.share, 1 << 16)
    wide = law(randomizer.wide, point)
    low, high = law(randomizer.bit, 0), law(randomizer.bit, 1)
    up = Fraction(point, randomizer.steps)  # the bit rounds to an end
    bit = [up * h + (1 - up) * ell for ell, h in zip(low, high, strict=True)]
    return [share * p for p in wide] + [(1 - share) * p for p in bit]


class Listed:
    """Bits that deal out given words, in order."""

    width = 64
    private = False

    def __init__(self, words):
        self.left = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        out, self.left = self.left[:count], self.left[count:]
        assert len(out) == count
        return out


@pytest.mark.parametrize(("inputs", "width"), list(itertools.product([2, 3, 5], [1, 2, 4])))
def test_a_window_draws_each_symbol_as_often_as_it_weighs(inputs, width):
    channel = WindowChannel(inputs=inputs, width=width, near=3, far=2)
    for point in range(inputs):
        points = np.full(channel.total, point)
        symbols = channel.draw(points, Listed(range(channel.total)))
        seen = np.bincount(symbols, minlength=channel.symbols)
        assert (seen == channel.weights(point)).all()


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-9, 700, 10**6])
@pytest.mark.parametrize(("inputs", "width"), [(2, 1), (5, 3), (1000, 400)])
def test_the_weights_keep_epsilon_and_hardly_less(inputs, width, epsilon):
    made = window(inputs=inputs, width=width, epsilon=Fraction(epsilon))
    mp.dps = 80
    kept = mp.log(mpf(made.near) / made.far)
    exact = mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
    assert kept <= exact
    assert made.total <= 1 << 62
    assert made.far >= 1
    if epsilon <= 20:
        assert kept >= exact * (1 - mpf(2) ** -15)
        assert kept >= exact - mpf(2) ** -38


def test_a_window_that_tells_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="epsilon must be larger"):
        window(inputs=5, width=3, epsilon=Fraction(1, 10**19))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", SMALL)
def test_no_symbol_tells_more_than_epsilon(kind, epsilon):
    randomizer = SMALL[kind](epsilon)
    laws = [law(randomizer, point) for point in range(randomizer.steps + 1)]
    assert all(sum(one) == 1 for one in laws)
    worst = max(max(ps) / min(ps) for ps in zip(*laws, strict=True))
    mp.dps = 60
    assert mp.log(mpf(worst.numerator) / worst.denominator) <= mpf(
        randomizer.epsilon.numerator
    ) / int(randomizer.epsilon.denominator)
    randomizer.certify()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", SMALL)
def test_mean_and_variance_are_exact_between_grid_points_too(kind, epsilon):
    randomizer = SMALL[kind](epsilon)
    levels = randomizer.levels * 2 - 1  # in the unit of the numbers
    for place in (0, 1 / 7, 1 / 2, 0.83, 1):
        below, up = divmod(place * randomizer.steps, 1)
        points = [int(below)] + ([int(below) + 1] if up else [])
        mixed = [1 - up, up][: len(points)]
        p = sum(
            m * np.array(law(randomizer, i), dtype=float)
            for m, i in zip(mixed, points, strict=True)
        )
        x = 2 * place - 1
        size = np.abs(levels).max()
        assert math.fsum(p * levels) == pytest.approx(x, abs=1e-12 * size)
        variance = math.fsum(p * (levels - x) ** 2)
        assert float(randomizer.variance(x)[0]) == pytest.approx(variance, rel=1e-11)
    grid = np.linspace(-1, 1, 20001)
    assert randomizer.std**2 == pytest.approx(randomizer.variance(grid).max(), rel=1e-6)
    assert randomizer.std**2 >= randomizer.variance(grid).max() * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_published_variances_are_the_limit_of_fine_grids(epsilon):
    s, e = math.exp(epsilon / 2), math.exp(epsilon)
    for x in (0, 0.5, 1):
        bit = duchi(epsilon=epsilon, lower=-1, upper=1)
        assert bit.variance(x)[0] == pytest.approx(((e + 1) / (e - 1)) ** 2 - x * x, rel=1e-12)
        fine = piecewise_mean(
            epsilon=epsilon, lower=-1, upper=1, steps=20000, window=round(20000 / s)
        )
        known = x * x / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
        assert fine.variance(x)[0] == pytest.approx(known, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1, 2, 4, 8])
def test_the_best_is_no_worse_than_the_published(epsilon):
    s, e = math.exp(epsilon / 2), math.exp(epsilon)
    one_bit, wide = ((e + 1) / (e - 1)) ** 2, 4 * s / (3 * (s - 1) ** 2)
    mixed = (s + 3) / (3 * s * (s - 1)) + one_bit / s if epsilon > 0.61 else one_bit
    best = best_mean_randomizer(epsilon=epsilon, lower=-1, upper=1)
    assert best.std**2 <= min(one_bit, wide, mixed, 8 / epsilon**2) * (1 + 1e-9)
    assert best.width == 1


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1, 1.7, 3.3, 9])
def test_the_best_is_the_best_of_all(epsilon):
    best = best_mean_randomizer(epsilon=epsilon, lower=-1, upper=1)
    every = [make(epsilon=epsilon, lower=-1, upper=1) for make in MAKERS]
    assert best in every
    assert best.std <= min(other.std for other in every) * 1.005
    assert best.size == (2 if epsilon < 0.2 else 256)
    if best.size > 2:
        assert best.std == min(other.std for other in every)


@pytest.mark.parametrize(("inputs", "width"), [(2, 1), (5, 4), (5, 2), (6, 3), (9, 1), (4, 3)])
def test_levels_are_unbiased_and_least_squares(inputs, width):
    channel = WindowChannel(inputs=inputs, width=width, near=5, far=2)
    law = np.array([channel.weights(i) for i in range(inputs)]) / channel.total
    places = np.linspace(-0.5, 0.5, inputs)
    rng = np.random.default_rng(1)
    for _ in range(5):
        shares = rng.random(inputs)
        shares = (shares + shares[::-1]) / (2 * shares.sum())
        found = levels(channel, shares)
        assert law @ found == pytest.approx(places, abs=1e-12)
        # Any other unbiased levels differ by what no grid point sees, and have a larger square.
        _, _, right = np.linalg.svd(law)
        unseen = right[np.linalg.matrix_rank(law) :]
        assert unseen @ ((shares @ law) * found) == pytest.approx(0, abs=1e-12)
    uneven = np.arange(1, inputs + 1) / (inputs * (inputs + 1) / 2)
    if width > 1:
        assert law @ levels(channel, uneven) != pytest.approx(places, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2.5])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_balanced_levels_have_nearly_the_least_worst_variance(epsilon, width):
    made = balanced_piecewise(epsilon=epsilon, lower=-0.5, upper=0.5, steps=4, window=width)
    law = np.array([made.window.weights(i) for i in range(5)]) / made.window.total
    places = np.linspace(-0.5, 0.5, 5)
    start = np.append(made.levels - 0.5, 10)
    least = optimize.minimize(
        lambda free: free[-1],
        start,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda free: law @ free[:-1] - places},
            {"type": "ineq", "fun": lambda free: free[-1] + places**2 - law @ free[:-1] ** 2},
        ],
        options={"maxiter": 500},
    )
    assert least.success
    at_grid = (made.squares - places**2).max()
    assert at_grid <= least.fun * 1.01
    even = piecewise_mean(epsilon=epsilon, lower=-0.5, upper=0.5, steps=4, window=width)
    assert at_grid <= (even.squares - places**2).max() * (1 + 1e-9)


def test_the_chosen_window_and_coin_are_the_best_of_all():
    for epsilon in (0.8, 3):
        made = hybrid_mean(epsilon=epsilon, lower=0, upper=1, steps=12)
        every = (
            hybrid_mean(epsilon=epsilon, lower=0, upper=1, steps=12, window=w, share=s)
            for w in range(1, 13)
            for s in range(0, 65537, 1024)
        )
        # The rule for the coin leaves out the rounding between the points of a coarse grid.
        assert made.std <= min(one.std for one in every) * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.3, 2])
def test_laplace_noise_has_the_stated_law(epsilon):
    mp.dps = 40
    made = local_laplace(epsilon=epsilon, lower=-1, upper=1, steps=3)
    r = mp.exp(-mpf(Fraction(str(epsilon)).numerator) / Fraction(str(epsilon)).denominator / 3)
    symbols = range(made.size)
    first = None
    for point in range(4):
        inner = [(1 - r) / (1 + r) * r ** abs(j - made.reach - point) for j in symbols]
        # The two cut-off symbols take all that lies beyond.
        inner[0] = r ** (point + made.reach) / (1 + r)
        inner[-1] = r ** (3 + made.reach - point) / (1 + r)
        assert abs(sum(inner) - 1) < 1e-30
        levels = [mpf(j - made.reach) / 3 * 2 - 1 for j in symbols]
        mean = sum(p * y for p, y in zip(inner, levels, strict=True))
        x = mpf(point) / 3 * 2 - 1
        assert abs(mean - x) <= made.bias
        variance = sum(p * (y - mean) ** 2 for p, y in zip(inner, levels, strict=True))
        assert float(variance) <= made.variance(float(x))[0] * (1 + 1e-12)
        assert float(variance) == pytest.approx(made.variance(float(x))[0], rel=1e-9)
        if first:
            ratios = [max(a / b, b / a) for a, b in zip(inner, first, strict=True)]
            assert mp.log(max(ratios)) <= mpf(str(epsilon)) * point / 3 * (1 + mpf(10) ** -30)
        first = first or inner
    assert made.bias < 1e-12


@pytest.mark.parametrize("make", MAKERS)
def test_estimates_follow_their_law(make):
    randomizer = make(epsilon=1.5, lower=-3, upper=5)
    numbers = np.linspace(-3, 5, 20_000) ** 3 / 25 - 0.4  # some lie outside
    inside = np.clip(numbers, -3, 5)
    variance = randomizer.variance(numbers).mean()
    made = []
    for seed in range(8):
        reports = randomizer.randomize(numbers, rng=seeded_rng(seed))
        assert reports.shape == (len(numbers), randomizer.width)
        aggregate = Aggregator(randomizer).add(reports[:5000]).add(reports[5000:])
        estimate = aggregate.estimate()
        assert aggregate.refused == 0
        assert estimate.std >= math.sqrt(variance / len(numbers))
        made.append(estimate.value)
    assert mean_of(np.array(made), inside.mean(), variance / len(numbers))
    # A wrong version: levels as if nothing had been randomized.
    plain = np.bincount(
        reports[:, 0] if randomizer.width == 1 else reports.view("<u2").ravel(),
        minlength=randomizer.size,
    )
    shrunk = plain @ np.linspace(-3, 5, randomizer.size) / len(numbers)
    if make is not local_laplace:
        assert not mean_of(np.array([shrunk]), inside.mean(), variance / len(numbers))


def draw_from_all(channel, points, rng):
    """A wrong window: what is not near is drawn from all symbols."""
    generator = np.random.default_rng(int(rng.words(1)[0]))
    near = generator.random(len(points)) < channel.width * channel.near / channel.total
    inside = points + generator.integers(channel.width, size=len(points))
    return np.where(near, inside, generator.integers(channel.symbols, size=len(points)))


def test_symbols_follow_their_weights_and_a_wrong_window_does_not():
    channel = window(inputs=4, width=2, epsilon=Fraction(2))
    n = 200_000
    right = np.bincount(channel.draw(np.full(n, 1), seeded_rng(3)), minlength=5)
    wrong = np.bincount(draw_from_all(channel, np.full(n, 1), seeded_rng(3)), minlength=5)
    p = channel.weights(1) / channel.total
    assert all(frequency(right[j], n, p[j]) for j in range(5))
    assert not all(frequency(wrong[j], n, p[j]) for j in range(5))


def mixed(randomizer, place):
    """Exact probabilities of all symbols at any place: a mixture of two grid points."""
    point, up = divmod(place * randomizer.steps, 1)
    laws = [np.array(law(randomizer, int(point) + k), dtype=float) for k in (0, 1)]
    return (1 - up) * laws[0] + up * laws[1]


@pytest.mark.parametrize("kind", SMALL)
def test_reports_follow_the_exact_law_of_their_symbols(kind):
    randomizer, n = SMALL[kind](1), 200_000
    seen = (
        Aggregator(randomizer).add(randomizer.randomize(np.full(n, 0.34), rng=seeded_rng(9))).counts
    )

    def fits(p):
        return all(frequency(k, n, one) for k, one in zip(seen, p, strict=True))

    assert fits(mixed(randomizer, 0.67))
    assert not fits(mixed(randomizer, 0.6))


def test_laplace_reports_follow_the_exact_law():
    made, n = local_laplace(epsilon=2, lower=0, upper=1, steps=2), 200_000
    seen = Aggregator(made).add(made.randomize(np.full(n, 0.25), rng=seeded_rng(10))).counts
    k = np.arange(made.size) - made.reach
    p = (np.exp(-np.abs(k)) + np.exp(-np.abs(k - 1))) / 2 * math.tanh(0.5)
    assert all(frequency(a, n, b) for a, b in zip(seen, p, strict=True) if b > 1e-4)
    p = np.exp(-np.abs(k)) * math.tanh(0.5)
    assert not all(frequency(a, n, b) for a, b in zip(seen, p, strict=True) if b > 1e-4)


def test_rounding_to_the_grid_keeps_the_mean():
    uniform = (np.arange(1000) + 0.5) / 1000
    for place in (0.0, 0.1234, 0.5, 0.999, 1.0):
        points = on_grid(np.full(1000, place), 7, uniform)
        assert points.mean() / 7 == pytest.approx(place, abs=1e-3 / 7)
        assert set(points) <= {math.floor(place * 7), math.ceil(place * 7)}


@pytest.mark.parametrize("make", MAKERS)
def test_every_string_of_bytes_is_counted_and_moves_no_more_than_a_client(make):
    randomizer = make(epsilon=1, lower=0, upper=1)
    strings = np.array(list(itertools.product(range(256), repeat=randomizer.width)), dtype=np.uint8)
    aggregate = Aggregator(randomizer).add(strings)
    assert aggregate.reports == randomizer.size
    assert aggregate.refused == len(strings) - randomizer.size
    assert (aggregate.counts == 1).all()
    span = np.ptp(randomizer.levels)
    n, base = 1000, randomizer.randomize(np.full(1000, 0.3), rng=seeded_rng(1))
    before = Aggregator(randomizer).add(base).estimate().value
    for row in strings[:: max(1, len(strings) // 100)]:
        moved = Aggregator(randomizer).add(base).add(row[None]).estimate().value
        assert abs(moved - before) <= span / n
    wide = np.zeros((7, randomizer.width + 1), dtype=np.uint8)
    assert Aggregator(randomizer).add(wide).refused == 7


@pytest.mark.parametrize("make", MAKERS)
def test_a_description_rebuilds_the_randomizer(make):
    made = make(epsilon=0.7, lower=0.1, upper=120)
    again = randomizer_from_json(json.dumps(made.describe()))
    assert again == made
    assert again.fingerprint == made.fingerprint


def distribution(randomizer, places):
    """The exact law of the estimate from one report at each place, by convolution."""
    counted = np.ones(1)
    for point in places:
        counted = np.convolve(counted, np.array(law(randomizer, point), dtype=float))
    return counted


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("reports", [1, 7, 60])
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_guaranteed_intervals_hold_whatever_the_data(epsilon, reports, level):
    bit = duchi(epsilon=epsilon, lower=0, upper=1)
    wide = piecewise_mean(epsilon=epsilon, lower=0, upper=1, steps=4, window=2)
    for randomizer in (bit, wide):
        for points in ([0] * reports, [i % (randomizer.steps + 1) for i in range(reports)]):
            p = distribution(randomizer, points)
            truth = np.mean(points) / randomizer.steps
            held = 0.0
            # The estimate depends on the sum of the symbols only, for these levels.
            step = randomizer.levels[1] - randomizer.levels[0]
            for total, chance in enumerate(p):
                value = randomizer.levels[0] + step * total / reports
                low, high = dataclasses.replace(
                    randomizer.estimate(np.zeros(randomizer.size, dtype=np.int64), 0),
                    value=value,
                    reports=reports,
                    std=1.0,
                ).guaranteed(level)
                held += chance * (low - 1e-12 <= truth <= high + 1e-12)
            assert held >= level


def test_intervals_stay_within_the_bounds_and_shrink():
    made = best_mean_randomizer(epsilon=1, lower=10, upper=20)
    nothing = made.estimate(np.zeros(made.size, dtype=np.int64), 0)
    assert nothing.interval() == nothing.guaranteed() == (10, 20)
    counts = np.zeros(made.size, dtype=np.int64)
    counts[0] = counts[-1] = 5 * 10**9
    many = made.estimate(counts, 10**10)
    assert many.value == pytest.approx(15, abs=1e-9)
    low, high = many.interval(0.95)
    assert high - low == pytest.approx(2 * stats.norm.ppf(0.975) * many.std)
    assert many.std == pytest.approx(made.std * 1e-5)
    assert many.guaranteed()[0] <= low
    assert made.estimate(np.eye(made.size, dtype=np.int64)[0], 1).interval()[0] == 10


def test_what_is_no_number_is_refused():
    made = duchi(epsilon=1, lower=0, upper=1)
    for bad in (math.nan, [0.1, math.nan], "0.5", None, [0.1, "0.5"]):
        with pytest.raises(OutOfDomain, match="must be a number"):
            made.randomize(bad)
    assert made.randomize([]).shape == (0, 1)
    with pytest.raises(InvalidArgument, match="lower must be below upper"):
        duchi(epsilon=1, lower=1, upper=1)
    for lower, upper in ((-1e308, 1e308), (0, 10**400), (-(10**301), 0)):
        with pytest.raises(InvalidArgument, match="must be at most 1e300 in size"):
            duchi(epsilon=1, lower=lower, upper=upper)
    for lower, upper in ((-6e299, 6e299), (-(10**300), 1)):
        with pytest.raises(InvalidArgument, match="within -1e300"):
            duchi(epsilon=1, lower=lower, upper=upper)
    with pytest.raises(InvalidArgument, match="1e-300 apart"):
        duchi(epsilon=1, lower=0, upper=5e-324)
    with pytest.raises(InvalidArgument, match="decimal number"):
        duchi(epsilon=1, lower=0, upper=Fraction(1, 3))
    with pytest.raises(InvalidArgument, match="at most 1048576"):
        local_laplace(epsilon=1e-4, lower=0, upper=1)
    with pytest.raises(InvalidArgument, match="symbols"):
        piecewise_mean(epsilon=1, lower=0, upper=1, steps=1 << 20)
    with pytest.raises(InvalidArgument, match="share must be at most"):
        hybrid_mean(epsilon=1, lower=0, upper=1, share=70000)


def test_a_window_that_breaks_its_promise_is_not_certified():
    made = piecewise_mean(epsilon=1, lower=0, upper=1, steps=4, window=2)
    wide = dataclasses.replace(made.window, near=made.window.near + made.window.near // 1000)
    with pytest.raises(NotCertified):
        dataclasses.replace(made, window=wide).certify()


@pytest.mark.parametrize("make", [*MAKERS, square_wave])
def test_the_work_and_the_size_of_a_report_do_not_depend_on_the_number(make):
    extra = {"cells": 50} if make is square_wave else {}
    made = make(epsilon=1.3, lower=0, upper=1, **extra)
    seen = set()
    for number in (0, 0.25, 1 / 3, 0.999, 1, -5, 1e9):
        bits = CountedBits(11)
        shape = made.randomize(np.full(3000, number), rng=bits).shape
        seen.add((bits.drawn, shape))
    assert len(seen) == 1


def test_numbers_outside_count_as_the_bound():
    made = hybrid_mean(epsilon=2, lower=-1, upper=1)
    far = made.randomize(np.full(1000, 1e300), rng=seeded_rng(5))
    assert (far == made.randomize(np.full(1000, 1.0), rng=seeded_rng(5))).all()
    small = duchi(epsilon=2, lower=0, upper=1e-299)
    assert (
        small.randomize([1e308] * 9, rng=seeded_rng(6))
        == small.randomize([1] * 9, rng=seeded_rng(6))
    ).all()
    wave = square_wave(cells=4, epsilon=45, lower=0, upper=1e-299)
    assert wave.randomize([1e308, 0], rng=seeded_rng(6)).ravel().tolist() == [3, 0]


def test_symbols_of_several_bytes_come_back():
    symbols = np.array([0, 1, 255, 256, 65535, 65536, 99_999])
    counted = histogram(rows(symbols, 3), 100_000)
    assert counted.accepted == 7
    assert (np.flatnonzero(counted.counts) == symbols).all()
    assert histogram(rows(symbols, 3), 99_999).refused == 1
