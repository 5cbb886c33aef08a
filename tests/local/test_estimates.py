"""Estimates and their parts at the edges: few reports, other units, ties, several words."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain
from discreet.local._window_channel import WindowChannel
from discreet.local.collection.client import BudgetedClient, MemoizedClient
from discreet.local.distribution import _smoothed, fit, square_wave
from discreet.local.longitudinal import longitudinal_olh, rappor
from discreet.local.means.base import on_grid, uniforms
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.means.piecewise import _spread, duchi, piecewise_mean
from discreet.local.oracles import subset_selection as subset
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue
from discreet.local.randomizer import pack, padded, unpack
from discreet.local.registry import rebuild
from discreet.noise.random_source import seeded_rng

COLUMNS = {"a": (10, 14), "b": (0, 1)}


class Listed:
    """Bits that are given."""

    private = False

    def __init__(self, words, width):
        self.width = width
        self.left = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        out, self.left = self.left[:count], self.left[count:]
        return out


def drawn_variance(ones, size, drawn):
    """Of the mean of so many drawn of a population of zeros and ones, over all draws."""
    population = [1] * ones + [0] * (size - ones)
    means = [Fraction(sum(some), drawn) for some in itertools.combinations(population, drawn)]
    center = sum(means) / len(means)
    return float(sum((mean - center) ** 2 for mean in means) / len(means))


@pytest.mark.parametrize(("told", "reports", "ones"), [(2, 4, 2), (2, 8, 4), (4, 8, 2), (4, 6, 3)])
def test_a_column_that_some_tell_varies_by_who_tells_it(told, reports, ones):
    part = duchi(epsilon=45, lower=0, upper=1)  # which tells nearly the truth
    made = dataclasses.replace(
        multidimensional_mean(columns=COLUMNS, epsilon=45, sampled=1), part=part
    )
    counts = np.zeros(made.size, dtype=np.int64)
    counts[:2] = told - told * ones // reports, told * ones // reports
    found = made.estimate(counts, reports)["a"]
    assert found.value == pytest.approx(10 + 4 * ones / reports)
    assert found.reports == told
    drawing = drawn_variance(ones, reports, told)
    own = part.estimate(counts[:2], told).std
    assert found.std == pytest.approx(4 * math.sqrt(own**2 + drawing), rel=1e-6)
    assert found.bounds == (10, 14)
    assert found.one == pytest.approx((4 * math.sqrt(part.std**2 + 1 / 4), 4))


def test_one_of_two_tells_a_column():
    part = piecewise_mean(epsilon=1, lower=0, upper=1, steps=4, window=3)
    made = dataclasses.replace(
        multidimensional_mean(columns=COLUMNS, epsilon=1, sampled=1), part=part
    )
    counts = np.zeros(made.size, dtype=np.int64)
    counts[3] = 1  # the middle of seven symbols
    found = made.estimate(counts, 2)["a"]
    own = part.estimate(counts[:7], 1)
    assert found.value == pytest.approx(12)
    # Of two clients with a mean in the middle one is at either end.
    assert found.std == pytest.approx(4 * math.sqrt(own.std**2 + drawn_variance(1, 2, 1)))
    every = made.estimate(counts, 1)["a"]
    assert every.std == pytest.approx(4 * own.std)
    assert every.one == pytest.approx((4 * part.std, 4 * own.one[1]))


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_the_error_of_one_of_several_columns(sampled):
    columns = dict.fromkeys("abc", (0, 1))
    part = duchi(epsilon=Fraction(2, sampled), lower=0, upper=1)
    made = dataclasses.replace(
        multidimensional_mean(columns=columns, epsilon=2, sampled=sampled), part=part
    )
    half = 10**9 * sampled // 2
    counts = np.tile([half, half], 3)
    found = made.estimate(counts, 3 * 10**9)["b"]
    assert found.reports == 2 * half
    assert found.std * math.sqrt(3 * 10**9) == pytest.approx(made.std, rel=1e-8)
    assert made.width == 2 * sampled
    assert made.size == 6


@pytest.mark.parametrize("sampled", [1, 2])
def test_a_described_part_spends_its_share_of_epsilon(sampled):
    made = multidimensional_mean(columns=COLUMNS, epsilon=3, sampled=sampled)
    again = rebuild(json.dumps(made.describe()))
    assert again == made
    assert again.part.epsilon == Fraction(3, sampled)
    assert again.certify().holds
    with pytest.raises(InvalidArgument, match="epsilon / sampled"):
        dataclasses.replace(made, epsilon=Fraction(4)).certify()


def test_a_small_epsilon_is_for_one_column():
    assert multidimensional_mean(columns=COLUMNS, epsilon=0.5).sampled == 1


@pytest.mark.parametrize("cells", [4, 9])
def test_the_mean_of_a_wave_in_any_unit(cells):
    made = square_wave(cells=cells, epsilon=2, lower=-3, upper=12)
    cell = 15 / cells
    counts = np.arange(made.size) ** 2
    n = int(counts.sum())
    found = made.mean(counts, n)
    gain, middle = made.window.gain, (made.size - 1) / 2
    assert found.value == pytest.approx(
        4.5 + cell * (counts @ (np.arange(made.size) - middle)) / gain / n
    )
    ends = [(s - middle) / gain * cell for s in (0, made.size - 1)]
    assert found.one == pytest.approx((made.std, ends[1] - ends[0]))
    assert found.bias == pytest.approx(cell / 2)
    worst = max(
        sum(p * ((s - middle) / gain * cell) ** 2 for s, p in enumerate(law))
        - ((i - (cells - 1) / 2) * cell) ** 2
        for i in range(cells)
        for law in [made.window.weights(i) / made.window.total]
    )
    assert made.std == pytest.approx(math.sqrt(worst))
    assert found.std == pytest.approx(math.sqrt(worst / n))


@pytest.mark.parametrize("make", [duchi, piecewise_mean])
def test_the_variance_in_the_unit_of_the_numbers(make):
    given = {} if make is duchi else {"steps": 4, "window": 2}
    made = make(epsilon=1, lower=-1, upper=4, **given)
    levels = -1 + 5 * made.levels
    for number in (-1, 0.3, 1.5, 2.75, 4, 9):
        place = (min(number, 4) + 1) / 5 * made.steps
        below = min(math.floor(place), made.steps - 1)
        law = sum(
            weight * made.window.weights(point) / made.window.total
            for point, weight in ((below, 1 - place + below), (below + 1, place - below))
        )
        mean = law @ levels
        assert mean == pytest.approx(min(number, 4))
        assert made.variance(number)[0] == pytest.approx(law @ levels**2 - mean**2)
    dense = made.variance(np.linspace(-1, 4, 2001)).max()
    assert dense <= made.std**2 * (1 + 1e-12)
    assert dense == pytest.approx(made.std**2, rel=1e-4)


def test_places_on_a_grid_by_given_words():
    words = np.array([0.0, 0.49, 0.5, 0.51, 0.99])
    assert on_grid(np.full(5, 3 / 8), 4, words).tolist() == [2, 2, 1, 1, 1]
    assert on_grid(np.array([0.0, 1.0, 0.25]), 4, np.zeros(3)).tolist() == [0, 4, 1]


def test_uniform_doubles_are_the_highest_digits_of_a_word():
    words = [0, 1 << 11, (1 << 64) - 1, 1 << 63, (1 << 11) - 1]
    found = uniforms(5, Listed(words, 64))
    assert found.tolist() == [0, 2.0**-53, 1 - 2.0**-53, 0.5, 0]
    assert uniforms(3, Listed([0, 1, 255], 8)).tolist() == [0, 1 / 256, 255 / 256]


@pytest.mark.parametrize("seed", range(6))
def test_fields_across_words(seed):
    rng = np.random.default_rng(seed)
    shapes = ([32, 32], [62, 2], [60, 5], [1], [8], [62, 62, 62], [64 - 7, 7, 64 - 9, 9, 3])
    for digits in (*shapes, rng.integers(1, 63, size=7).tolist()):
        fields = [[int(rng.integers(0, 1 << d)) for _ in range(5)] for d in digits]
        fields = [[*some, (1 << d) - 1, 0] for some, d in zip(fields, digits, strict=True)]
        packed = pack([np.array(some) for some in fields], digits)
        for row, values in zip(packed, zip(*fields, strict=True), strict=True):
            whole, place = 0, 0
            for value, length in zip(values, digits, strict=True):
                whole |= value << place
                place += length
            assert row.tobytes() == whole.to_bytes(math.ceil(place / 8), "little")
        assert unpack(packed, digits).tolist() == fields
        assert not padded(packed, sum(digits)).any()
        spare = -sum(digits) % 8
        for bit in range(8):
            stray = packed.copy()
            stray[:, -1] |= np.uint8(1 << bit)
            assert padded(stray, sum(digits)).all() == (bit >= 8 - spare)


def test_widths_of_windows_that_are_tried():
    assert _spread(1) == [1]
    assert _spread(256) == list(range(1, 257))
    assert _spread(257)[-1] == 257
    many = _spread(10**5)
    assert (many[0], many[-1]) == (1, 10**5)
    assert 150 < len(many) <= 256
    assert all(0 < b - a <= 1 + 0.047 * a for a, b in itertools.pairwise(many))


def test_a_list_is_sent_if_it_takes_less_than_half_the_bytes():
    even = subset_selection(categories=16, epsilon=1, chosen=2)
    assert (even.listed, even.width) == (False, 2)
    less = subset_selection(categories=17, epsilon=1, chosen=1)
    assert (less.listed, less.digits, less.width) == (True, 5, 1)
    more = subset_selection(categories=64, epsilon=1, chosen=5)
    assert (more.listed, more.width) == (True, 4)
    full = subset_selection(categories=64, epsilon=1, chosen=6)
    assert (full.listed, full.width) == (False, 8)


def test_numbers_of_as_many_digits_as_categories_need():
    for categories in (2, 3, 9, 16, 17, (1 << 16), (1 << 16) + 1, 1 << 17):
        found = subset._digits(4000, categories, seeded_rng(5))
        top = 1 << math.ceil(math.log2(categories))
        assert len(found) == 4000
        assert 0.9 * top - 1 <= found.max() < top
        assert found.min() <= 0.1 * top
    assert subset._start(0, 9) == 0
    assert subset._start(9, 9) == 1
    # A little too small is best: within two deviations of the size.
    assert 250 - 2 * math.sqrt(1000 * 3 / 16) < 1000 * subset._start(250, 1000) < 250


def test_the_fit_ends_as_it_is_told():
    channel = WindowChannel(inputs=4, width=2, near=30, far=10)
    counts = np.array([5, 9, 2, 1, 3])
    one = fit(channel, counts, smooth=False, enough=math.inf)
    assert (one.iterations, one.converged) == (1, True)
    three = fit(channel, counts, smooth=False, enough=-math.inf, most=3)
    assert (three.iterations, three.converged) == (3, False)
    assert fit(channel, counts, smooth=True, enough=0, most=1).iterations == 1
    # The published ends: a thousandth, and e^epsilon times that without smoothing.
    for smooth, enough in ((True, 1e-3), (False, 3e-3)):
        usual = fit(channel, counts * 9, smooth=smooth)
        given = fit(channel, counts * 9, smooth=smooth, enough=enough)
        assert usual.iterations == given.iterations
        assert usual.shares.tolist() == given.shares.tolist()
        assert (
            fit(channel, counts * 9, smooth=smooth, enough=enough / 5).iterations > given.iterations
        )
    # A step by the matrix.
    law = np.array([channel.weights(i) for i in range(4)]) / channel.total
    start = np.full(4, 1 / 4)
    step = start * (law @ (counts / (start @ law))) / counts.sum()
    assert one.shares == pytest.approx(step / step.sum())
    assert fit(channel, 0 * counts, smooth=True).shares.tolist() == [0.25] * 4
    assert fit(channel, 0 * counts, smooth=True).iterations == 0


def test_smoothing_keeps_the_sum():
    assert _smoothed(np.array([1.0, 0, 0, 0])).tolist() == [0.75, 0.25, 0, 0]
    assert _smoothed(np.array([0.0, 1, 0, 0])).tolist() == [0.25, 0.5, 0.25, 0]
    assert _smoothed(np.array([0.0, 0, 0, 1])).tolist() == [0, 0, 0.25, 0.75]


def test_shares_that_are_cut():
    def cut(*shares):
        found = Frequencies(shares=np.array(shares), reports=9, variance=np.zeros(len(shares)))
        return found.norm_cut().shares.tolist()

    assert cut(0.25, 0.5, 0.25) == [0.25, 0.5, 0.25]
    assert cut(0.25, 0.75, -0.25, 0.125) == [0.25, 0.75, 0, 0]
    assert cut(0.25, 1.5) == [0, 1]
    assert cut(-1.0, -2.0) == [0, 0]


def test_intervals_without_a_law():
    shares, variance = np.array([0.5, 0.25]), np.array([0.04, 0.01])
    bare = Frequencies(shares=shares, reports=100, variance=variance)
    nobody = Frequencies(
        shares=shares, reports=0, variance=variance, oracle=grr(categories=2, epsilon=1)
    )
    z = stats.norm.ppf(0.95)
    for found in (bare, nobody):
        low, high = found.interval(0.9)
        assert low == pytest.approx([0.5 - 0.2 * z, 0.25 - 0.1 * z])
        assert high == pytest.approx([0.5 + 0.2 * z, 0.25 + 0.1 * z])


def test_pinned_shares_have_the_variance_of_their_coins():
    oracle = oue(categories=3, epsilon=2)
    p, q = oracle.keep, oracle.other
    found = Frequencies(
        shares=np.array([1.5, 0.25, -0.45]), reports=50, variance=np.zeros(3), oracle=oracle
    ).pinned()
    moved = [1.5 - 0.1, 0.25 - 0.1, -0.45 - 0.1]
    assert found.shares == pytest.approx(moved)
    assert found.adjusted == "pinned"
    for i, share in enumerate(moved):
        held = min(max(share, 0), 1)
        law = 0.0
        for own, chance in ((i, held), ((i + 1) % 3, 1 - held)):
            for j in range(3):
                coin = p * (1 - p) if j == own else q * (1 - q)
                law += chance * coin * ((i == j) - 1 / 3) ** 2 / (p - q) ** 2
        assert found.variance[i] == pytest.approx(law / 50)


def test_twenty_categories_are_shown():
    def lines(size):
        shares = np.linspace(0.1, 0.2, size)
        return str(Frequencies(shares=shares, reports=5, variance=shares)).splitlines()

    assert len(lines(20)) == 21
    assert len(lines(21)) == 22
    assert lines(21)[-1].strip() == "... and 1 more"
    assert len(lines(3)) == 4


def test_nobody_reported_and_what_stays():
    oracle = grr(categories=2, epsilon=1)
    nobody = Frequencies(
        shares=np.array([9.0, 0.0]), reports=0, variance=np.zeros(2), oracle=oracle
    )
    one = dataclasses.replace(nobody, reports=1)
    assert nobody.base_cut().shares.tolist() == one.base_cut().shares.tolist() == [9, 0]
    assert math.isinf(nobody.range(0, 0).std)


def test_a_budget_may_be_spent_to_its_end():
    fresh = BudgetedClient(grr(categories=3, epsilon=Fraction(1, 4)), budget=1)
    for sent in range(4):
        assert fresh.sent == sent
        fresh.report(1, rng=seeded_rng(1))
    with pytest.raises(BudgetExceeded, match="4 reports"):
        fresh.report(1, rng=seeded_rng(1))
    assert fresh.guarantee.epsilon() == 1
    lasting = MemoizedClient(
        rappor(categories=3, epsilon=Fraction(1, 4), permanent_epsilon=Fraction(1, 2)),
        budget=1,
        reports=None,
    )
    for _ in range(2):
        lasting.memoize(1, rng=seeded_rng(1))
    with pytest.raises(BudgetExceeded, match="2 periods"):
        lasting.memoize(1, rng=seeded_rng(1))


@pytest.mark.parametrize("make", [rappor, longitudinal_olh])
def test_memories_are_rows_of_bytes(make):
    plan = make(categories=20, epsilon=1, permanent_epsilon=2)
    memory = plan.remember(np.arange(4), rng=seeded_rng(1))
    assert plan.report(memory, rng=seeded_rng(2)).shape == memory.shape == (4, plan.width)
    for wrong in (
        memory.astype(np.int8),
        memory.astype(np.int64),
        memory.ravel(),
        memory[0],
        memory[None],
        memory[:, :-1],
        np.concatenate((memory, memory), axis=1),
    ):
        with pytest.raises(OutOfDomain, match=f"rows of {plan.width} bytes"):
            plan.report(wrong)


def test_a_period_has_as_many_reports_as_it_may():
    client = MemoizedClient(
        rappor(categories=3, epsilon=1, permanent_epsilon=2), budget=9, reports=2
    )
    for _ in range(2):
        client.memoize(1, rng=seeded_rng(1))
        assert client.sent == 0
        for _ in range(2):
            client.report(rng=seeded_rng(1))
        with pytest.raises(BudgetExceeded, match="All 2"):
            client.report(rng=seeded_rng(1))
    assert (client.periods, client.sent) == (2, 2)


def test_saved_clients_are_written_in_one_way():
    plan = rappor(categories=3, epsilon=1, permanent_epsilon=2)
    fresh, lasting = BudgetedClient(plan, budget=9), MemoizedClient(plan, budget=9)
    for client in (fresh, lasting):
        text = client.to_json()
        assert text == json.dumps(json.loads(text), sort_keys=True)
    assert BudgetedClient.from_json(fresh.to_json(), randomizer=plan).sent == 0
    again = MemoizedClient.from_json(lasting.to_json(), plan=plan)
    assert (again.periods, again.sent, again.limit) == (0, 0, None)
    lasting.memoize(2, rng=seeded_rng(1))
    again = MemoizedClient.from_json(lasting.to_json(), plan=plan)
    assert (again.periods, again.sent) == (1, 0)
    assert again.to_json() == lasting.to_json()
