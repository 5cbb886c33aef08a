"""Seeded draws stay what they were, and take as many words as they took.

A study that is run again gives the same numbers. Narrow words send many draws through the exact
path, so that a change of what double precision is trusted with shows here as another count.
"""

import zlib
from fractions import Fraction

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import SeededRandomSource
from discreet.noise.uniform import (
    bernoulli,
    bernoulli_exp,
    bernoulli_real,
    exponential_choice,
    permutation,
    subset,
    uniform_integers,
)

SIZE = 300
VALUES = np.linspace(-3, 3, SIZE)
SCORES = np.array([3, 0, 5, 5, -4])
SAMPLERS = {
    "geometric": lambda bits: Geometric(5).sample(SIZE, bits),
    "geometric of a large scale": lambda bits: Geometric(1 << 40).sample(SIZE, bits),
    "Laplace of half a step": lambda bits: DiscreteLaplace(Fraction(1, 2)).sample(SIZE, bits),
    "Laplace": lambda bits: DiscreteLaplace(7).sample(SIZE, bits),
    "Laplace one by one": lambda bits: np.array(
        [DiscreteLaplace(7).sample(1, bits)[0] for _ in range(SIZE)]
    ),
    "Laplace of a large scale": lambda bits: DiscreteLaplace(1 << 40).sample(SIZE, bits),
    "Gaussian of half a step": lambda bits: DiscreteGaussian(Fraction(1, 2)).sample(SIZE, bits),
    "Gaussian": lambda bits: DiscreteGaussian(30).sample(SIZE, bits),
    "Gaussian of few draws": lambda bits: DiscreteGaussian(30).sample(200, bits),
    "Gaussian in blocks": lambda bits: DiscreteGaussian(5000).sample(SIZE, bits),
    "bounded Laplace": lambda bits: BoundedDiscreteLaplace(3, lower=-4, upper=9).sample(SIZE, bits),
    "one-sided": lambda bits: BoundedDiscreteLaplace(100, lower=0, upper=50).sample(SIZE, bits),
    "staircase": lambda bits: Staircase(Fraction(1, 3), shift=7, tread=3).sample(SIZE, bits),
    "rounded Laplace": lambda bits: RoundedLaplace(Fraction(3), -2).add(VALUES, bits),
    "rounded Gaussian": lambda bits: RoundedGaussian(Fraction(90000), -2).add(VALUES, bits),
    "integers": lambda bits: uniform_integers(10, SIZE, bits),
    "coins": lambda bits: bernoulli(Fraction(1, 3), SIZE, bits),
    "coins of a real number": lambda bits: bernoulli_real(
        lambda precision: exp_minus(Fraction(1, 3), precision), SIZE, bits
    ),
    "coins of an exponential": lambda bits: bernoulli_exp(np.arange(SIZE), Fraction(1, 100), bits),
    "packed coins": lambda bits: packed_bernoulli(
        Fraction(314573, 1 << 20), rows=40, columns=21, rng=bits
    ),
    "choices": lambda bits: np.array(
        [exponential_choice(SCORES, Fraction(1, 3), bits) for _ in range(SIZE)]
    ),
    "orders": lambda bits: np.array([permutation(9, bits) for _ in range(20)]),
    "sets": lambda bits: np.array([subset(9, 4, bits) for _ in range(20)]),
}


class Counted:
    """Seeded words, counted."""

    private = False

    def __init__(self, seed, width):
        self._source = SeededRandomSource(seed, width=width)
        self.width = width
        self.used = 0

    def words(self, count):
        self.used += count
        return self._source.words(count)


def drawn(name, width):
    bits = Counted(71, width)
    draws = np.ascontiguousarray(SAMPLERS[name](bits))
    return zlib.crc32(draws.astype("<i8").tobytes()), bits.used


# For each width of words: a checksum of the draws, and the words they took.
SEEN = {
    ("geometric", 64): (1692028712, 300),
    ("geometric", 16): (538476800, 313),
    ("geometric", 9): (2546349051, 385),
    ("geometric", 6): (2593764700, 504),
    ("geometric of a large scale", 64): (1612087954, 901),
    ("geometric of a large scale", 16): (1517603500, 1501),
    ("geometric of a large scale", 9): (2682389413, 1987),
    ("Laplace of half a step", 64): (2579384105, 300),
    ("Laplace of half a step", 16): (2579384105, 311),
    ("Laplace of half a step", 9): (1243355105, 365),
    ("Laplace of half a step", 6): (3904988341, 440),
    ("Laplace", 64): (3769294396, 300),
    ("Laplace", 16): (3769294396, 312),
    ("Laplace", 9): (2188835815, 389),
    ("Laplace", 6): (832703464, 508),
    ("Laplace one by one", 64): (3769294396, 300),
    ("Laplace one by one", 16): (176637497, 312),
    ("Laplace one by one", 9): (2395902886, 396),
    ("Laplace one by one", 6): (1307263405, 518),
    ("Laplace of a large scale", 64): (66624730, 1201),
    ("Laplace of a large scale", 16): (1315893334, 1801),
    ("Laplace of a large scale", 9): (3923422308, 2287),
    ("Gaussian of half a step", 64): (3836548709, 300),
    ("Gaussian of half a step", 16): (3836548709, 300),
    ("Gaussian of half a step", 9): (2559036280, 305),
    ("Gaussian of half a step", 6): (2094194251, 317),
    ("Gaussian", 64): (2098255090, 300),
    ("Gaussian", 16): (2065278622, 301),
    ("Gaussian", 9): (3761585777, 381),
    ("Gaussian", 6): (3749638252, 616),
    ("Gaussian of few draws", 64): (2191298828, 200),
    ("Gaussian of few draws", 16): (3677784968, 201),
    ("Gaussian of few draws", 9): (2053958785, 249),
    ("Gaussian of few draws", 6): (1036377301, 408),
    ("Gaussian in blocks", 64): (3422918500, 600),
    ("Gaussian in blocks", 16): (1892679819, 612),
    ("Gaussian in blocks", 9): (1482248002, 911),
    ("Gaussian in blocks", 6): (354207120, 1084),
    ("bounded Laplace", 64): (3868559366, 300),
    ("bounded Laplace", 16): (3868559366, 300),
    ("bounded Laplace", 9): (3868559366, 304),
    ("bounded Laplace", 6): (3934792517, 349),
    ("one-sided", 64): (1357684648, 300),
    ("one-sided", 16): (1357684648, 300),
    ("one-sided", 9): (3305457606, 323),
    ("one-sided", 6): (3455606269, 536),
    ("staircase", 64): (1757743948, 1535),
    ("staircase", 16): (1604381070, 1564),
    ("staircase", 9): (4192754711, 1614),
    ("staircase", 6): (316911431, 1730),
    ("rounded Laplace", 64): (1496833583, 300),
    ("rounded Laplace", 16): (1496833583, 311),
    ("rounded Laplace", 9): (1282181438, 373),
    ("rounded Laplace", 6): (3837131315, 470),
    ("rounded Gaussian", 64): (622115808, 600),
    ("rounded Gaussian", 16): (3678998005, 628),
    ("rounded Gaussian", 9): (2612075717, 960),
    ("rounded Gaussian", 6): (2703560052, 1136),
    ("integers", 64): (3325177751, 300),
    ("integers", 16): (1376363152, 301),
    ("integers", 9): (2976821471, 303),
    ("integers", 6): (2701053467, 317),
    ("coins", 64): (1401235226, 300),
    ("coins", 16): (1401235226, 300),
    ("coins", 9): (90832735, 301),
    ("coins", 6): (1227354167, 310),
    ("coins of a real number", 64): (3181904751, 300),
    ("coins of a real number", 16): (3181904751, 300),
    ("coins of a real number", 9): (3181904751, 300),
    ("coins of a real number", 6): (506670051, 304),
    ("coins of an exponential", 64): (504418840, 300),
    ("coins of an exponential", 16): (504418840, 300),
    ("coins of an exponential", 9): (82247072, 302),
    ("coins of an exponential", 6): (82247072, 305),
    ("packed coins", 64): (1005763421, 30),
    ("packed coins", 16): (2207804652, 121),
    ("packed coins", 9): (2362128408, 241),
    ("packed coins", 6): (4142831786, 362),
    ("choices", 64): (4169156008, 300),
    ("choices", 16): (4169156008, 300),
    ("choices", 9): (399932742, 302),
    ("choices", 6): (938508074, 315),
    ("orders", 64): (3029719048, 180),
    ("orders", 16): (1761503849, 189),
    ("orders", 9): (1400632589, 216),
    ("orders", 6): (1091046643, 324),
    ("sets", 64): (3122747345, 180),
    ("sets", 16): (2062018088, 189),
    ("sets", 9): (615681326, 216),
    ("sets", 6): (3792823911, 324),
}
STEPPED = (3538076832, 600)


@pytest.mark.parametrize(("name", "width"), SEEN, ids=str)
def test_seeded_draws_stay_what_they_were(name, width):
    assert drawn(name, width) == SEEN[name, width]


def test_stepped_draws_stay_what_they_were():
    half = [int(2.0**62 * 0.5**k / 3) for k in range(1, 12)]
    bits = Counted(71, 64)
    draws = PiecewiseConstant([TOTAL - 2 * sum(half), *half], width=5).sample(SIZE, bits)
    assert (zlib.crc32(draws.astype("<i8").tobytes()), bits.used) == STEPPED
