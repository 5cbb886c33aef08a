"""Local hashing by linear maps: its law by enumeration, its sampler, and hostile reports."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.local_hashing import LocalHashing, _sets, hadamard_response, olh
from discreet.local.randomizer import pack, padded, unpack, walsh_hadamard
from discreet.local.registry import rebuild
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers
from tests.block_reports import blocks, check_moments, every_report, follow, work
from tests.choice_tree import enumerate_sampler

SMALL = [(2, 2, 1), (3, 2, 1), (4, 2, 1), (4, 4, 1), (5, 2, 1), (7, 4, 1), (8, 2, 1), (8, 4, 1)]
SMALL += [(4, 4, 2), (5, 4, 3), (8, 4, 3)]


@pytest.mark.parametrize(("categories", "hashes", "kept"), SMALL)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2])
def test_mean_and_variance_are_exact(categories, hashes, kept, epsilon):
    check_moments(olh(categories=categories, epsilon=epsilon, hashes=hashes, kept=kept))


@pytest.mark.parametrize(("categories", "hashes", "kept"), SMALL)
def test_a_report_moves_what_an_honest_one_moves(categories, hashes, kept):
    """Whatever is accepted is a flat; the number accepted is that of independent forms."""
    oracle = olh(categories=categories, epsilon=1, hashes=hashes, kept=kept)
    supports = blocks(oracle)
    assert len(supports) == matrices(oracle) * math.comb(hashes, kept)
    assert set(np.unique(supports)) <= {0, 1}
    if categories == oracle.points:
        assert (supports.sum(axis=1) == oracle.chosen).all()


@pytest.mark.parametrize(("categories", "hashes", "kept"), SMALL)
def test_epsilon_is_exact_and_attained(categories, hashes, kept):
    """Forms are independent of the value; given them, the response has ratio e^epsilon."""
    oracle = olh(categories=categories, epsilon=Fraction(3, 2), hashes=hashes, kept=kept)
    low, high = oracle._lie(60)
    g, k = hashes, kept
    lie = (g - k) / (k * math.exp(1.5) + g - k)
    assert low / 2**60 <= lie * (1 + 1e-14)
    assert high / 2**60 >= lie * (1 - 1e-14)
    holding, lacking = math.comb(g - 1, k - 1), math.comb(g - 1, k)
    ratio = (1 - lie) / holding / (lie / lacking)
    assert math.log(ratio) == pytest.approx(1.5, rel=1e-14)
    assert oracle.keep == pytest.approx(1 - lie, rel=1e-14)
    assert oracle.certify().holds


@pytest.mark.parametrize("value", [0, 3])
def test_sampler_by_enumeration(value):
    """Every string of short words, through the client's own code, gives the stated law."""
    oracle = olh(categories=4, epsilon=1, hashes=2)
    found = enumerate_sampler(
        lambda bits: oracle.randomize([value], rng=bits).tobytes(), width=2, depth=7
    )
    assert found.unresolved < Fraction(1, 50)
    assert len(found.masses) == 6  # three forms, two signs each
    for report, mass in found.masses.items():
        field = int.from_bytes(report, "little")
        form, sign = field & 3, field >> 2
        holds = (form & value).bit_count() % 2 == sign
        p = (oracle.keep if holds else 1 - oracle.keep) / 3
        assert float(mass) <= p <= float(mass + found.unresolved)


def matrices(oracle):
    """Number of matrices of independent forms."""
    return math.prod(oracle.points - 2**k for k in range(oracle.hash_digits))


def reports_follow(oracle, value, n=60_000):
    rows = oracle.randomize(np.full(n, value), rng=seeded_rng(11))
    number = matrices(oracle) * math.comb(1 << oracle.hash_digits, oracle.kept)
    return follow(oracle, rows, value, number=number)


class LiesToo(LocalHashing):
    """The published mistake: a lie is drawn from all hash values, the truth among them."""

    def _response(self, size, rng):
        lies = bernoulli_real(self._lie, size, rng)
        return np.where(lies, uniform_integers(1 << self.hash_digits, size, rng), 0)


def test_reports_follow_their_law():
    assert reports_follow(olh(categories=4, epsilon=1, hashes=4), 2)
    assert reports_follow(olh(categories=8, epsilon=1, hashes=2), 0)
    assert reports_follow(olh(categories=4, epsilon=1, hashes=4, kept=2), 3)


def test_a_wrong_sampler_is_seen():
    wrong = LiesToo(categories=4, epsilon=Fraction(1), hash_digits=2)
    assert not reports_follow(wrong, 2)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_estimates_within_their_error(epsilon):
    """The whole way of 200,000 reports, with chunks, merging and categories short of a power."""
    oracle = olh(categories=100, epsilon=epsilon)
    values = np.minimum(np.arange(200_000) % 150, 99)
    rows = oracle.randomize(values, rng=seeded_rng(5))
    first, second = Aggregator(oracle).add(rows[:70_001]), Aggregator(oracle).add(rows[70_001:])
    found = first.merge(second).estimate()
    truth = np.bincount(values, minlength=100) / len(values)
    error = (found.shares - truth) / np.sqrt(oracle.variance(truth) / len(values))
    assert np.abs(error).max() < 7  # 100 categories, two sides: 3e-10
    assert 0.5 < np.mean(error**2) < 1.7
    assert found.reports == len(values)
    whole = Aggregator(oracle).add(rows)
    assert (whole.counts == first.counts).all()


@pytest.mark.parametrize("kept", [1, 3])
def test_supports_are_counted_exactly(kept):
    """Against the definition: a report supports what hashes into its set."""
    oracle = olh(categories=21, epsilon=1, hashes=8, kept=kept)
    rows = oracle.randomize(np.arange(300) % 21, rng=seeded_rng(3))
    fields = unpack(rows, oracle._fields)
    expected = np.zeros(21)
    sets = list(itertools.combinations(range(8), kept))
    for *forms, number in fields.T.tolist():
        for i in range(21):
            hashed = sum((form & i).bit_count() % 2 << j for j, form in enumerate(forms))
            expected[i] += hashed in sets[number]
    assert (oracle.supports(oracle.tally(rows).counts) == expected).all()


@pytest.mark.parametrize(("hashes", "kept"), [(16, 15), (16, 5), (32, 3), (32, 29), (128, 127)])
def test_sets_move_as_they_say_or_are_refused(hashes, kept):
    """Sets are found by a whole number made of their members: it must not wrap around."""
    try:
        olh(categories=hashes, epsilon=1, hashes=hashes, kept=kept)
    except InvalidArgument:
        assert kept > 15
        return
    members = np.array(list(itertools.combinations(range(hashes), kept)))
    moved = _sets(hashes.bit_length() - 1, kept).moved
    for value in range(hashes):
        assert (np.sort(members ^ value, axis=1) == members[moved[:, value]]).all()


def test_a_size_of_sets_needs_its_hashes():
    with pytest.raises(InvalidArgument, match="kept"):
        olh(categories=100, epsilon=1, kept=3)


VECTORS = [
    (0.5, 3, 126.9923, None),
    (0.5, 2, 133.1163, 96.7115),
    (1, 4, 29.8379, 21.2702),
    (1, 2, 37.2116, 27.0307),
    (2, 8, 6.0293, 4.0242),  # the best set of subset selection, of 4 points, in three bytes
    (2, 2, 13.5425, 9.8336),
]


@pytest.mark.parametrize(("epsilon", "g", "published", "ours"), VECTORS)
def test_published_law_and_ours(epsilon, g, published, ours):
    """Range of 8 of 32 with a quarter of the clients: independent supports, then ours (F48)."""
    e = math.exp(epsilon)
    p, q, r, f = e / (e + g - 1), 1 / g, 8, 0.25
    independent = (r * q * (1 - q) + f * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2
    assert independent == pytest.approx(published, abs=1e-4)
    if ours is not None:
        oracle = olh(categories=32, epsilon=epsilon, hashes=g)
        assert oracle.range_variance(r, f) == pytest.approx(ours, abs=1e-4)


def test_best_number_of_hashes():
    found = {}
    for epsilon in (0.3, 0.5, 1, 1.5, 2, 3, 4, 20):
        oracle = olh(categories=1024, epsilon=epsilon)
        found[epsilon] = (1 << oracle.hash_digits, oracle.kept)
    assert found == {
        0.3: (2, 1),
        0.5: (8, 3),
        1: (4, 1),
        1.5: (16, 3),
        2: (8, 1),
        3: (16, 1),
        4: (64, 1),
        20: (256, 1),
    }


def test_error_is_near_the_least():
    """Of blocks of any real size: 4 e^epsilon / (e^epsilon - 1)^2."""
    for epsilon in np.linspace(0.05, 6, 200):
        e = math.exp(epsilon)
        best = (1 - 2.0**-16) * 4 * e / (e - 1) ** 2 - 2.0**-16
        found = olh(categories=1 << 16, epsilon=epsilon).contrast_variance()
        assert found < (1.033 if epsilon < 2.7 else 1.06) * best


def test_as_many_hashes_as_points_is_randomized_response():
    oracle = olh(categories=4, epsilon=1, hashes=4)
    e = math.e
    assert oracle.keep == pytest.approx(e / (e + 3))
    assert oracle.other == pytest.approx(1 / (e + 3))
    assert oracle.contrast_variance() == pytest.approx(((e + 3) ** 2 / (e - 1) ** 2 - 1) / 4)


def test_hadamard_response_is_hashing_to_two_values():
    """Its estimate is the transform of the mean signs, scaled by c (F46)."""
    oracle = hadamard_response(categories=8, epsilon=1)
    assert oracle == olh(categories=8, epsilon=1, hashes=2)
    values = np.arange(5000) % 5
    rows = oracle.randomize(values, rng=seeded_rng(8))
    index, sign = rows[:, 0] & 7, 1 - 2 * (rows[:, 0].astype(int) >> 3)
    assert index.min() == 1
    c = (math.e + 1) / (math.e - 1)
    # The index is one of seven, and the coefficient of index zero is known: one.
    means = np.bincount(index, weights=sign, minlength=8) * 7 / len(values) * c
    means[0] = 1
    shares = np.array([[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)])
    estimate = Aggregator(oracle).add(rows).estimate()
    np.testing.assert_allclose(estimate.shares, shares @ means / 8, atol=1e-12)
    assert oracle.variance(0) < c**2


def test_transform():
    values = np.array([3, -1, 4, 1, 5, -9, 2, 6])
    matrix = [[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)]
    assert (walsh_hadamard(values) == np.array(matrix) @ values).all()
    assert values[0] == 3


@pytest.mark.parametrize(("number", "digits"), [(1, 1), (3, 5), (4, 21), (8, 25), (5, 32)])
def test_packing(number, digits):
    fields = uniform_integers(1 << digits, 50 * number, seeded_rng(1)).reshape(number, 50)
    rows = pack(fields, [digits] * number)
    assert rows.shape == (50, -(-number * digits // 8))
    assert (unpack(rows, [digits] * number) == fields).all()
    assert not padded(rows, number * digits).any()
    whole = sum(int(fields[j, 7]) << (j * digits) for j in range(number))
    assert rows[7].tobytes() == whole.to_bytes(rows.shape[1], "little")


def test_padding_and_dependent_forms_are_refused():
    oracle = olh(categories=8, epsilon=1, hashes=2)  # one form of three digits, one digit
    assert oracle.width == 1
    tally = oracle.tally(every_report(oracle))
    assert (tally.accepted, tally.refused) == (14, 242)
    aggregate = Aggregator(oracle).add(np.zeros((5, 2), dtype=np.uint8))
    assert (aggregate.reports, aggregate.refused) == (0, 5)


@pytest.mark.parametrize("hashes", [2, 64])
def test_no_reports(hashes):
    oracle = olh(categories=100, epsilon=1, hashes=hashes)
    assert oracle.randomize([], rng=seeded_rng(1)).shape == (0, oracle.width)
    estimate = Aggregator(oracle).add(np.empty((0, oracle.width), dtype=np.uint8)).estimate()
    assert np.isinf(estimate.variance).all()


def test_large_domains_have_small_reports():
    assert [olh(categories=d, epsilon=1).width for d in (128, 1024, 65_536, 1 << 20)] == [
        2,
        3,
        5,
        6,
    ]


def test_short_words_serve_too():
    oracle = olh(categories=8, epsilon=1)
    values = np.arange(4000) % 8
    rows = oracle.randomize(values, rng=SeededRandomSource(4, width=5))
    found = Aggregator(oracle).add(rows).estimate()
    assert np.abs(found.shares - 1 / 8).max() < 7 * math.sqrt(oracle.variance(0) / 4000)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match=r"hashes must be a power of two from 2 to 8, got 3"):
        olh(categories=8, epsilon=1, hashes=3)
    with pytest.raises(InvalidArgument, match="hashes must be a power of two from 2 to 8, got 16"):
        olh(categories=8, epsilon=1, hashes=16)
    with pytest.raises(InvalidArgument, match="categories must be at most"):
        olh(categories=(1 << 24) + 1, epsilon=1)
    with pytest.raises(OutOfDomain, match="whole numbers from 0 to 7"):
        olh(categories=8, epsilon=1).randomize([8])


def test_a_description_is_read_back():
    for oracle in (olh(categories=100, epsilon=2), hadamard_response(categories=9, epsilon=0.1)):
        assert rebuild(json.dumps(oracle.describe())) == oracle


def test_clients_draw_as_many_words_whatever_they_have():
    for epsilon in (0.5, 1, 3):
        assert len(work(olh(categories=100, epsilon=epsilon), range(100))) == 1
