"""Noise in shares: the law of a share, of the sum of all, and what a server reads off it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.local.distributed_noise import Polya, distributed_laplace
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from tests.choice_tree import enumerate_sampler
from tests.distributions import distance, follows

K = np.arange(400)


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(7, 2)])
def test_all_shares_together_are_geometric_and_their_differences_laplace(shares, scale):
    one = Polya(scale=scale, shares=shares).pmf(K)
    total = np.ones(1)
    for _ in range(shares):
        total = np.convolve(total, one)[:400]
    assert total == pytest.approx(Geometric(scale).pmf(K), abs=1e-14)
    differences = np.convolve(total, total[::-1])
    middle = np.arange(-100, 101)
    assert differences[399 + middle] == pytest.approx(DiscreteLaplace(scale).pmf(middle), abs=1e-14)


@pytest.mark.parametrize("shares", [2, 3, 4])
def test_a_share_on_every_string_of_bits(shares):
    law = Polya(scale=Fraction(1, 2), shares=shares)
    found = enumerate_sampler(lambda bits: int(law.sample(1, bits)[0]), width=4, depth=4)
    left = float(found.unresolved)
    assert left < 0.02
    for k, mass in found.masses.items():
        assert float(mass) - 1e-13 <= law.pmf(k) <= float(mass) + left + 1e-13
    other = Polya(scale=Fraction(1, 2), shares=shares + 1)
    assert not float(found.masses[0]) <= other.pmf(0) <= float(found.masses[0]) + left


def test_the_sum_of_the_shares_by_drawing():
    shares = distributed_laplace(sensitivity=3, epsilon=1, min_honest_reports=4)
    drawn = [shares.noise(100_000, rng=seeded_rng(client)) for client in range(5)]
    law = DiscreteLaplace(3)
    assert follows(sum(drawn[:4]), law.cdf)
    # One too few, or one too many, is seen.
    assert not follows(sum(drawn[:3]), law.cdf)
    assert not follows(sum(drawn), law.cdf)
    assert distance(drawn[0], law.cdf) > 0.1


def test_words_of_any_width_give_the_law():
    law = Polya(scale=Fraction(3), shares=6)
    cumulated = np.cumsum(law.pmf(K))
    sample = law.sample(50_000, SeededRandomSource(3, width=16))
    assert follows(sample, lambda k: np.where(k < 0, 0.0, cumulated[np.maximum(k, 0)]))
    assert law.variance == pytest.approx(float(law.pmf(K) @ K**2 - (law.pmf(K) @ K) ** 2))


def test_a_histogram_without_a_trusted_server():
    clients, honest = 300, 200
    made = distributed_laplace(sensitivity=2, epsilon=1, min_honest_reports=honest, modulus=1 << 16)
    values = np.random.default_rng(0).integers(0, 3, clients)
    bits = seeded_rng(7)
    messages = [made.randomize(np.eye(4, dtype=np.int64)[v], rng=bits) for v in values]
    assert all((m >= 0).all() and (m < 1 << 16).all() for m in messages)
    total = np.sum(messages, axis=0) % made.modulus
    noisy = made.decode(total, clients=clients)
    truth = np.bincount(values, minlength=4)
    assert np.abs(noisy - truth).max() < 8 * made.std(clients)
    assert (noisy != truth).any()
    assert made.guarantee.epsilon() == 1.0
    assert made.guarantee.relation is NeighboringRelation.REPLACE_ONE
    assert made.std(clients) == pytest.approx(made.std() * math.sqrt(1.5))


def test_sums_below_zero_and_their_residues():
    made = distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=2, modulus=11)
    assert made.decode([0, 5, 6, 10, 21], clients=2).tolist() == [0, 5, -5, -1, -1]
    even = distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=2, modulus=8)
    assert even.decode([3, 4, 7], clients=2).tolist() == [3, -4, -1]


def test_too_few_clients_are_refused():
    made = distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=10)
    with pytest.raises(InvalidArgument, match="Do not publish"):
        made.decode([1], clients=9)
    with pytest.raises(InvalidArgument):
        made.std(9)


def test_what_makes_no_shares():
    good = {"sensitivity": 1, "epsilon": 1, "min_honest_reports": 10}
    for wrong in (
        {"sensitivity": 0},
        {"epsilon": 0},
        {"min_honest_reports": 0},
        {"epsilon": Fraction(1, 1 << 17)},
        {"modulus": 1},
        {"modulus": 1 << 63},
        {"relation": NeighboringRelation.LOCAL},
    ):
        with pytest.raises(InvalidArgument):
            distributed_laplace(**(good | wrong))
    with pytest.raises(OutOfDomain):
        distributed_laplace(**good, modulus=8).randomize([4])
    with pytest.raises(OutOfDomain):
        distributed_laplace(**good).randomize([0.5])
