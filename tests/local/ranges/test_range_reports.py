"""Reports by levels: their law, hostile bytes, aggregates, releases, and the real path."""

import itertools
import json
import math
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.ranges.haar import LocalHaar, haar_wavelet
from discreet.local.ranges.hierarchical import (
    LocalHierarchicalHistogram,
    blocks,
    flat_histogram,
    hierarchical_histogram,
    place,
)
from discreet.local.ranges.release import LocalRanges
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from discreet.noise.uniform import uniform_integers
from discreet.ranges._range_answers import RangeAnswers
from discreet.ranges.domain import bins, dates, integers, ordered
from discreet.ranges.workload import all_ranges
from tests.distributions import ALPHA, frequency
from tests.local.ranges.messages import message_laws

SIXTEEN = integers(0, 15)
MADE = {
    "flat": flat_histogram(domain=SIXTEEN, epsilon=2, oracle="oue"),
    "tree, best": hierarchical_histogram(domain=SIXTEEN, epsilon=2),
    "tree, oue": hierarchical_histogram(domain=SIXTEEN, epsilon=2, oracle="oue"),
    "mixed radix": blocks(
        domain=integers(10, 33),
        epsilon=4,
        sizes=(1, 2, 6, 12),
        shares=(Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)),
        oracle="grr",
    ),
    "padded": blocks(domain=integers(0, 12), epsilon=2, sizes=(1, 4), oracle="grr"),
    "haar": haar_wavelet(domain=SIXTEEN, epsilon=2, workload=all_ranges()),
}


@pytest.fixture(params=MADE, name="made")
def fixture_made(request):
    return MADE[request.param]


def lower(randomizer):
    return randomizer.domain.lower


class Counting:
    """All words from zero on, once: every level is drawn as often as its share says."""

    width = 64
    private = False

    def words(self, count):
        return np.arange(count, dtype=np.uint64)


def test_levels_are_drawn_with_exactly_their_shares(made):
    unit = math.lcm(*(share.denominator for share in made.shares))
    levels = np.bincount(made._levels(unit, Counting()), minlength=len(made.shares))
    assert [Fraction(int(count), unit) for count in levels] == list(made.shares)


@pytest.mark.parametrize(
    "randomizer",
    [
        hierarchical_histogram(domain=integers(0, 3), epsilon=1, oracle="grr"),
        blocks(domain=integers(0, 5), epsilon=Fraction(1, 2), sizes=(1, 3), oracle="grr"),
        haar_wavelet(domain=integers(0, 3), epsilon=1),
        haar_wavelet(domain=integers(0, 4), epsilon=2),
    ],
)
def test_a_message_costs_epsilon_and_is_drawn_so(randomizer):
    laws = list(message_laws(randomizer))
    ratio = max(a[m] / b[m] for a, b in itertools.permutations(laws, 2) for m in a)
    assert ratio == pytest.approx(math.exp(randomizer.epsilon), rel=1e-12)
    trials = 20_000
    for cell, law in enumerate(laws):
        assert sum(law.values()) == pytest.approx(1)
        rows = randomizer.randomize(np.full(trials, cell), rng=seeded_rng(cell))
        sent = [tuple(row) for row in rows[:, :2].tolist()]
        for message, chance in law.items():
            assert frequency(sent.count(message), trials, chance)
        assert set(sent) <= set(law)
    # A client that reports its block without noise on one level is told apart.
    honest, trials = laws[0], 20_000
    message = max(honest, key=honest.get)
    assert not frequency(trials * float(randomizer.shares[0]), trials, honest[message])


def test_the_guarantee_is_certified(made):
    assert made.certify().holds
    assert made.guarantee.epsilon() == float(made.epsilon)


@pytest.mark.parametrize("name", ["padded", "haar", "tree"])
def test_hostile_bytes_are_refused_or_are_a_report(name):
    randomizer = {
        "padded": blocks(domain=integers(0, 5), epsilon=1, sizes=(1, 3), oracle="grr"),
        "haar": haar_wavelet(domain=integers(0, 3), epsilon=1),
        "tree": hierarchical_histogram(domain=integers(0, 7), epsilon=1, oracle="oue"),
    }[name]
    assert randomizer.width == 2
    every = np.array(list(itertools.product(range(256), repeat=2)), dtype=np.uint8)
    tally = randomizer.tally(every)
    assert tally.accepted + tally.refused == len(every)
    # Accepted is what clients send and nothing else: of each level, its part's own messages.
    bytes_ = np.arange(256, dtype=np.uint8)[:, None]
    sent = [
        [level, int(byte[0])]
        for level, part in enumerate(randomizer.parts)
        for byte in bytes_
        if part.tally(byte[None]).accepted
    ]
    assert tally.accepted == len(sent)
    honest = randomizer.tally(np.array(sent, dtype=np.uint8))
    assert (honest.accepted, honest.refused) == (len(sent), 0)
    assert np.array_equal(tally.counts, honest.counts)
    drawn = randomizer.randomize(
        np.repeat(np.arange(randomizer.domain.size), 3000), rng=seeded_rng(5)
    )
    assert {tuple(row) for row in drawn.tolist()} <= {tuple(row) for row in sent}


def test_what_stands_behind_a_report_must_be_zero():
    randomizer = blocks(domain=integers(0, 31), epsilon=1, sizes=(1, 8), oracle="oue")
    rows = randomizer.randomize(np.zeros(2000, dtype=int), rng=seeded_rng(1))
    upper = rows[rows[:, 0] == 1]
    assert upper[:, 2:].max() == 0
    assert randomizer.tally(upper).accepted == len(upper)
    upper[:, -1] = 1
    tally = randomizer.tally(upper)
    assert (tally.accepted, tally.refused) == (0, len(upper))
    assert not tally.counts.any()


def test_aggregates_merge_and_come_back(made):
    values = lower(made) + np.random.default_rng(3).integers(0, made.domain.size, 5000)
    rows = made.randomize(values, rng=seeded_rng(4))
    whole = Aggregator(made).add(rows)
    split = Aggregator(made).add(rows[:1234]) + Aggregator(made).add(rows[1234:])
    assert whole == split
    assert whole.reports == 5000
    assert Aggregator.from_bytes(whole.to_bytes()) == whole
    assert randomizer_from_json(json.dumps(made.describe())) == made
    assert sum(state[-1] for state in made.states(whole.counts)) == 5000


def test_a_release_stands_alone(made):
    values = lower(made) + np.random.default_rng(3).integers(0, made.domain.size, 5000)
    release = Aggregator(made).add(made.randomize(values, rng=seeded_rng(4))).estimate()
    again = LocalRanges.from_json(release.to_json())
    assert np.array_equal(again.cells, release.cells)
    ends = lower(made) + np.array([0, 2, 5]), lower(made) + np.array([3, 2, 11])
    assert np.array_equal(again.answer_std(*ends), release.answer_std(*ends))
    assert again.answer_interval(*ends)[0] == pytest.approx(release.answer_interval(*ends)[0])
    assert again.guarantee == release.guarantee == made.guarantee
    assert release.total == pytest.approx(5000)
    assert release.answer_std() == 0
    first, second = lower(made) + 1, lower(made) + 4
    together = release.answer(first, second) + release.answer(second + 1, None)
    assert release.answer(first, None) == pytest.approx(together)
    assert release.share(first, second) == pytest.approx(release.answer(first, second) / 5000)
    ends = np.arange(made.domain.size + 1)
    for p, q in ((np.zeros_like(ends), ends), (ends, np.full_like(ends, made.domain.size))):
        kept = release._variances(p, q)
        assert kept == pytest.approx(RangeAnswers._variances(release, p, q), rel=1e-6, abs=1e-6)
    polished = release.nonnegative()
    assert polished.cells.min() >= 0
    assert polished.answer() == pytest.approx(5000)
    median = release.quantile(0.5)
    told = f"  median: {median.label}  (95% between {median.low} and {median.high})"
    assert "5,000 local reports" in str(release)
    assert str(release).splitlines()[1:] == [told]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("levels"),
        lambda content: content.update(discreet_local_ranges=2),
        lambda content: content.update(structure="grid"),
        lambda content: content["levels"].pop(),
        lambda content: content["levels"][0].update(values="AAAA"),
        lambda content: content["levels"][0].update(block=3),
        lambda content: content.update(reports=-1),
        lambda content: content.update(levels=[]),
        lambda content: content["levels"][0].update(spread=[math.nan, 0]),
    ],
)
def test_a_damaged_release_is_refused(change):
    randomizer = MADE["tree, oue"]
    release = (
        Aggregator(randomizer)
        .add(randomizer.randomize(np.arange(16), rng=seeded_rng(1)))
        .estimate()
    )
    content = json.loads(release.to_json())
    change(content)
    with pytest.raises(InvalidArgument):
        LocalRanges.from_json(json.dumps(content))


def test_no_report_says_nothing(made):
    release = Aggregator(made).estimate()
    assert release.answer() == 0
    assert np.isfinite(release.cells).all()
    assert release.answer_std(lower(made), lower(made) + 1) == math.inf
    # One report, on one level: the others are unknown, and nothing breaks.
    one = Aggregator(made).add(made.randomize([lower(made)], rng=seeded_rng(2))).estimate()
    assert one.answer() == pytest.approx(1)
    assert np.isfinite(one.cells).all()
    if len(made.shares) > 1:
        assert one.answer_std(lower(made), lower(made)) == math.inf


@pytest.mark.parametrize(
    ("domain", "value", "cells"),
    [
        (integers(5, 9), [5, 9, 7], [0, 4, 2]),
        (dates("2024-02-28", "2024-03-01"), [date(2024, 2, 29), date(2024, 3, 1)], [1, 2]),
        (bins([0, 0.5, 2, 10]), [0.0, 0.49, 0.5, 10.0, 9.9], [0, 0, 1, 2, 2]),
        (ordered(["low", "mid", "high"]), ["high", "low"], [2, 0]),
    ],
)
def test_labels_find_their_cells(domain, value, cells):
    assert place(domain, value).tolist() == cells
    assert len(flat_histogram(domain=domain, epsilon=1).randomize(value)) == len(value)


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (integers(5, 9), [4]),
        (integers(5, 9), [10]),
        (bins([0, 0.5, 2]), [2.1]),
        (bins([0, 0.5, 2]), [-0.1]),
        (bins([0, 0.5, 2]), [math.nan]),
        (dates("2024-02-28", "2024-03-01"), ["2024-03-02"]),
        (dates("2024-02-28", "2024-03-01"), ["yesterday"]),
        (dates("2024-02-28", "2024-03-01"), [10**30]),
        (ordered(["low", "high"]), ["highest"]),
        (integers(5, 9), [6.5]),
        (integers(5, 9), [10**30]),
        (bins([0, 0.5, 2]), ["many"]),
    ],
)
def test_other_values_are_refused_and_not_shown(domain, value):
    with pytest.raises(OutOfDomain) as refusal:
        flat_histogram(domain=domain, epsilon=1).randomize(value)
    assert str(value[0]) not in str(refusal.value)


def test_malformed_structures_are_refused():
    made = MADE["padded"]
    third = Fraction(1, 3)
    for sizes in ((2,), (1, 3, 5), (1, 16), ()):
        with pytest.raises(InvalidArgument, match="sizes"):
            blocks(domain=SIXTEEN, epsilon=1, sizes=sizes)
    for shares in ((third, third), (Fraction(1), Fraction(0)), (Fraction(1, 2),)):
        with pytest.raises(InvalidArgument, match="share"):
            blocks(domain=SIXTEEN, epsilon=1, sizes=(1, 4), shares=shares)
    with pytest.raises(InvalidArgument, match="oracle"):
        flat_histogram(domain=SIXTEEN, epsilon=1, oracle="olh2")
    with pytest.raises(InvalidArgument, match="oracles"):
        LocalHierarchicalHistogram(
            domain=SIXTEEN,
            epsilon=made.epsilon,
            sizes=made.sizes,
            shares=made.shares,
            oracles=made.oracles[::-1],
        )
    with pytest.raises(InvalidArgument, match="epsilon"):
        LocalHierarchicalHistogram(
            domain=made.domain,
            epsilon=Fraction(3),
            sizes=made.sizes,
            shares=made.shares,
            oracles=made.oracles,
        )
    with pytest.raises(InvalidArgument, match="two cells"):
        haar_wavelet(domain=integers(1, 1), epsilon=1)
    with pytest.raises(InvalidArgument, match="halved"):
        LocalHaar(domain=SIXTEEN, epsilon=Fraction(1), shares=(Fraction(1),))
    with pytest.raises(InvalidArgument, match="bits"):
        flat_histogram(domain=SIXTEEN, epsilon=1, oracle="oue", max_report_bits=8)


ROUNDS, CLIENTS = 150, 3000


def whitened(randomizer, laws, client=None):
    """Sum over rounds of e' C^-1 e for the errors e of all prefixes, C as each law states it."""
    size = randomizer.domain.size
    rng = np.random.default_rng(11)
    shares = rng.dirichlet(np.full(size, 0.5))
    values = np.repeat(np.arange(size), rng.multinomial(CLIENTS, shares))
    truth = np.bincount(values, minlength=size)
    points = np.arange(size + 1)
    p, q = np.meshgrid(points, points, indexing="ij")
    low, high = np.minimum(p, q), np.maximum(p, q)
    apart = high > low
    bits = seeded_rng(12)
    sums = np.zeros(len(laws))
    for _ in range(ROUNDS):
        sent = (client or type(randomizer).randomize)(
            randomizer, lower(randomizer) + values, rng=bits
        )
        release = Aggregator(randomizer).add(sent).estimate()
        error = np.cumsum(release.cells - truth)[:-1]
        for place_, law in enumerate(laws):
            v = np.where(
                apart, law(release, np.where(apart, low, 0), np.where(apart, high - 1, 0), truth), 0
            )
            prefix = (v[:1, 1:-1] + v[1:-1, :1] - v[1:-1, 1:-1]) / 2
            sums[place_] += error @ np.linalg.solve(prefix, error)
    return sums


def right(release, a, b, truth):
    release.__dict__["shares"] = truth / CLIENTS
    low = release.domain.lower
    return np.square(release.answer_std(low + a, low + b))


def independent(release, a, b, truth):
    """As if the levels' clients were drawn independently: sampling errors do not cancel."""
    f = np.concatenate([[0.0], np.cumsum(truth / CLIENTS)])
    inside = f[b + 1] - f[a]
    return right(release, a, b, truth) + CLIENTS * inside * (1 - inside)


def lying_about_all(randomizer, values, *, rng):
    """Randomized response that lies with any value, its own among them."""
    rows = randomizer.randomize(values, rng=rng)
    lies = uniform_integers(20, len(rows), rng) == 0
    rows[lies & (rows[:, 0] == 0), 1] = uniform_integers(randomizer.domain.size, len(rows), rng)[
        lies & (rows[:, 0] == 0)
    ]
    return rows


@pytest.mark.parametrize("name", ["tree, best", "mixed radix", "haar", "flat", "padded"])
def test_the_real_path_has_the_stated_law(name):
    randomizer = MADE[name]
    sums = whitened(randomizer, [right])
    freedom = ROUNDS * (randomizer.domain.size - 1)
    # Sums of thousands of bounded terms: normal far beyond what is tested here.
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], freedom)
    assert low <= sums[0] <= high


def test_a_wrong_law_and_a_wrong_client_are_noticed():
    randomizer = MADE["mixed radix"]
    freedom = ROUNDS * (randomizer.domain.size - 1)
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], freedom)
    assert whitened(randomizer, [independent])[0] < low
    assert whitened(randomizer, [right], client=lying_about_all)[0] > high


@pytest.mark.parametrize("name", ["tree, best", "haar"])
def test_intervals_hold_as_often_as_they_say(name):
    randomizer = MADE[name]
    rng = np.random.default_rng(21)
    values = rng.binomial(15, 0.4, size=4000)
    truth = np.concatenate([[0], np.cumsum(np.bincount(values, minlength=16))])
    median = int(np.searchsorted(truth[1:], 2000))
    bits = seeded_rng(22)
    held = np.zeros(3, dtype=int)
    for _ in range(150):
        release = Aggregator(randomizer).add(randomizer.randomize(values, rng=bits)).estimate()
        low, high = release.answer_interval(3, 9, confidence=0.9)
        held[0] += low <= truth[10] - truth[3] <= high
        curve = release.cdf(confidence=0.9)
        held[1] += ((curve.low <= truth[1:] + 1e-9) & (truth[1:] <= curve.high + 1e-9)).all()
        found = release.quantile(0.5, confidence=0.9)
        held[2] += found.low <= median <= found.high
    assert frequency(held[0], 150, 0.9)
    assert stats.binomtest(int(held[1]), 150, 0.9, alternative="less").pvalue >= ALPHA
    assert stats.binomtest(int(held[2]), 150, 0.9, alternative="less").pvalue >= ALPHA
