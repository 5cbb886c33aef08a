"""Every sampler, run on every string of short words, has exactly the stated law.

Words of six or eight bits send almost every draw through the refinement path.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import gaussian as blocks
from discreet.noise import uniform
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import BlockGaussian, DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from tests.choice_tree import enumerate_sampler

LAWS = [
    Geometric(Fraction(1, 3)),
    Geometric(5),
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(1),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteLaplace(20),
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(1),
    DiscreteGaussian(Fraction(7, 3)),
    BoundedDiscreteLaplace(2, lower=-3, upper=3),
    BoundedDiscreteLaplace(Fraction(5, 2), lower=-1, upper=9),
    BoundedDiscreteLaplace(1, lower=0, upper=7),
    BoundedDiscreteLaplace(100, lower=-20, upper=20),
]


def matches(enumerated, probability, *, missing=0.0):
    """The enumerated masses enclose the probabilities, up to double precision of the latter."""
    slack = 1e-13
    left_out = 1.0
    for outcome, mass in enumerated.masses.items():
        p = probability(outcome)
        left_out -= p
        if not float(mass) - slack <= p <= float(mass + enumerated.unresolved) + slack:
            return False
    return left_out <= float(enumerated.unresolved) + missing + slack


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_law_by_enumeration(law):
    enumerated = enumerate_sampler(lambda bits: int(law.sample(1, bits)[0]), width=6, depth=3)
    assert enumerated.unresolved < Fraction(1, 500)
    assert matches(enumerated, lambda k: float(law.pmf(k)))


@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_enumeration_rejects_another_scale(factor):
    law = DiscreteLaplace(Fraction(7, 3))
    other = DiscreteLaplace(law.scale * factor)
    enumerated = enumerate_sampler(lambda bits: int(law.sample(1, bits)[0]), width=6, depth=3)
    assert not matches(enumerated, lambda k: float(other.pmf(k)))


@pytest.mark.parametrize("value", [0.0, 0.3, -0.7, 0.5])
def test_rounded_laplace_by_enumeration(value):
    noise = RoundedLaplace(Fraction(3, 2), 0)

    def cdf(x):
        return math.exp(x / 1.5) / 2 if x < 0 else 1 - math.exp(-x / 1.5) / 2

    enumerated = enumerate_sampler(
        lambda bits: int(noise.add(np.array([value]), bits)[0]), width=6, depth=3
    )
    assert enumerated.unresolved < Fraction(1, 1000)
    assert matches(enumerated, lambda k: cdf(k + 0.5 - value) - cdf(k - 0.5 - value))


class FourSteps(BlockGaussian):
    """Blocks of four steps, so that a few bits enumerate them."""

    @property
    def block(self):
        return 4


def one_round(monkeypatch, sampler, *, width, depth):
    """Enumerate a single proposal; a rejection is the outcome None."""

    class Rejected(Exception):
        pass

    first = blocks._Draw.of.__func__
    calls = []

    def of(cls, *args, **kwargs):
        if calls:
            raise Rejected
        calls.append(1)
        return first(cls, *args, **kwargs)

    monkeypatch.setattr(blocks._Draw, "of", classmethod(of))

    def run(rng):
        calls.clear()
        try:
            return sampler(rng)
        except Rejected:
            return None

    return enumerate_sampler(run, width=width, depth=depth)


def accepted_with(enumerated, probability):
    """The law conditioned on acceptance, enclosed: mass / (1 - rejected)."""
    rejected = enumerated.masses.pop(None)
    kept = 1 - rejected
    unsure = enumerated.unresolved
    for outcome, mass in enumerated.masses.items():
        low, high = mass / kept, (mass + unsure) / (kept - unsure)
        if not float(low) - 1e-12 <= probability(outcome) <= float(high) + 1e-12:
            return False
    return True


def test_gaussian_blocks_by_enumeration(monkeypatch):
    law = DiscreteGaussian(10)
    sampler = FourSteps(Fraction(100))
    enumerated = one_round(
        monkeypatch, lambda bits: int(sampler.integers(1, bits)[0]), width=5, depth=3
    )
    assert enumerated.unresolved < Fraction(1, 10)
    assert accepted_with(enumerated, lambda k: float(law.pmf(k)))


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_rounded_gaussian_by_enumeration(monkeypatch, value):
    sampler = FourSteps(Fraction(36))
    enumerated = one_round(
        monkeypatch, lambda b: int(sampler.rounded(np.array([value]), 0, b)[0]), width=5, depth=3
    )
    assert enumerated.unresolved < Fraction(2, 5)

    def phi(x):
        return 0.5 * math.erfc(-x / 6 / math.sqrt(2))

    def probability(k):
        return phi(k + 0.5 - value) - phi(k - 0.5 - value)

    assert accepted_with(enumerated, probability)


def test_uniform_integers_by_enumeration():
    for bound in (1, 3, 5, 16, 37):
        enumerated = enumerate_sampler(
            lambda bits, bound=bound: int(uniform.uniform_integers(bound, 1, bits)[0]),
            width=6,
            depth=3,
        )
        assert sorted(enumerated.masses) == list(range(bound))
        assert len(set(enumerated.masses.values())) == 1  # exactly equal, as rationals
        assert sum(enumerated.masses.values()) + enumerated.unresolved == 1


def test_a_modulo_bias_is_seen():
    enumerated = enumerate_sampler(lambda bits: int(bits.words(1)[0]) % 5, width=6, depth=1)
    assert len(set(enumerated.masses.values())) > 1


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 64), Fraction(99, 100), 0, 1, 0.1])
def test_bernoulli_by_enumeration(p):
    enumerated = enumerate_sampler(
        lambda bits: bool(uniform.bernoulli(p, 1, bits)[0]), width=6, depth=4
    )
    assert enumerated.unresolved <= Fraction(1, 64**4)
    assert matches(enumerated, lambda coin: float(p) if coin else 1 - float(p))


@pytest.mark.parametrize(("steps", "rate"), [(1, Fraction(1, 2)), (3, Fraction(1, 7)), (0, 1)])
def test_bernoulli_exp_by_enumeration(steps, rate):
    rate = Fraction(rate)
    enumerated = enumerate_sampler(
        lambda bits: bool(uniform.bernoulli_exp(np.array([steps]), rate, bits)[0]),
        width=6,
        depth=4,
    )
    p = math.exp(-steps * float(rate))
    assert enumerated.unresolved <= Fraction(2, 64**4)
    assert matches(enumerated, lambda coin: p if coin else 1 - p)


def test_exponential_choice_by_enumeration():
    scores = np.array([3, 0, 5, 5, -4])
    weights = np.exp(scores / 3)
    enumerated = enumerate_sampler(
        lambda bits: uniform.exponential_choice(scores, Fraction(1, 3), bits), width=6, depth=3
    )
    assert enumerated.unresolved <= Fraction(8, 64**3)
    assert matches(enumerated, lambda i: float(weights[i] / weights.sum()))


def test_permutations_are_equally_likely():
    enumerated = enumerate_sampler(
        lambda bits: tuple(uniform.permutation(3, bits)), width=3, depth=3
    )
    assert len(enumerated.masses) == 6
    assert len(set(enumerated.masses.values())) == 1


def test_subsets_are_equally_likely():
    enumerated = enumerate_sampler(lambda bits: tuple(uniform.subset(4, 2, bits)), width=2, depth=4)
    assert len(enumerated.masses) == 6
    assert len(set(enumerated.masses.values())) == 1
