"""Exact elementary draws: uniform integers, coins, weighted choice, permutations, subsets."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import Enclosure, Number, Real, ceil_div, exp_minus
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.distribution import Floats, Ints, check_size
from discreet.noise.random_source import RandomSource, Words

# ── Comparing a uniform number with a threshold ──────────────────────────────────────────────────
# Comparing a uniform number with a real threshold, exactly.
#
# A uniform number on [0, 1) is an infinite string of bits of which only the first few are ever
# needed: after ``bits`` of them it is known to lie in ``[value, value + 1) / 2**bits``. A
# threshold is a real number known by enclosures. The comparison draws more bits, and asks for
# narrower enclosures, until the two separate; the answer is the answer for the exact real numbers.


# The first enclosure is this much finer than the uniform, so that it seldom is what fails.
_GUARD = 8


class LazyUniform:
    """A uniform number on [0, 1) whose bits are drawn when a comparison asks for them."""

    __slots__ = ("_source", "bits", "value")

    def __init__(self, source: RandomSource, *, value: int = 0, bits: int = 0) -> None:
        self._source = source
        self.value = value
        self.bits = bits

    def extend(self) -> None:
        """Learn one more word of the number."""
        self.value = self.value << self._source.width | int(self._source.words(1)[0])
        self.bits += self._source.width

    def below(self, threshold: Real) -> bool:
        """Whether the number is below the threshold."""
        if self.bits == 0:
            self.extend()
        while True:
            low, high = threshold(self.bits + _GUARD)
            if (self.value + 1) << _GUARD <= low:
                return True
            if self.value << _GUARD >= high:
                return False
            self.extend()


def invert(uniform: LazyUniform, at_least: Callable[[int], Real], guess: int) -> int:
    """The largest ``m`` with ``uniform < at_least(m)``: an exact inverse transform.

    ``at_least(m)`` is P(X >= m), non-increasing in ``m``, 1 or more far to the left and 0 far to
    the right. A good guess makes it two comparisons.
    """
    m = guess
    if uniform.below(at_least(m)):
        step = 1
        while uniform.below(at_least(m + step)):
            m += step
            step *= 2
        low, high = m, m + step
    else:
        step = 1
        while not uniform.below(at_least(m - step)):
            m -= step
            step *= 2
        low, high = m - step, m
    while high - low > 1:
        middle = (low + high) // 2
        if uniform.below(at_least(middle)):
            low = middle
        else:
            high = middle
    return low


# ── Elementary draws ─────────────────────────────────────────────────────────────────────────────


# Error of a double-precision exponential of a product, with a wide margin: exp is good to 4 units
# in the last place, and x * 2**-52 * exp(-x) never exceeds 2**-53.
_EXP_ERROR = 2.0**-46


def uniform_integers(bound: int, size: int, rng: RandomSource) -> Ints:
    """Uniform integers in 0 .. bound - 1, without modulo bias (words past a multiple go back)."""
    bound = count("bound", bound)
    size = check_size(size)
    space = 1 << rng.width
    if bound > min(space, 1 << 63):
        raise InvalidArgument(f"bound must be at most 2**{min(rng.width, 63)}, got {bound}.")
    last = np.uint64(space - space % bound - 1)
    words = rng.words(size)
    rejected = np.flatnonzero(words > last)
    if rejected.size:
        words = words.copy()
    while rejected.size:
        words[rejected] = rng.words(rejected.size)
        rejected = rejected[words[rejected] > last]
    if bound & (bound - 1) == 0:
        return (words & np.uint64(bound - 1)).view(np.int64)
    return (words % np.uint64(bound)).view(np.int64)


def bernoulli(p: Number, size: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Coins that are True with probability exactly ``p``, a rational."""
    p = probability("p", p)
    words = rng.words(check_size(size))
    threshold = (p.numerator << rng.width) // p.denominator
    if threshold >= 1 << rng.width:
        return np.ones(size, dtype=np.bool_)
    coins = words < np.uint64(threshold)
    real = partial(_rational, p)
    return _settle(coins, words == np.uint64(threshold), words, rng, lambda _: real)


def bernoulli_real(p: Real, size: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Coins that are True with probability exactly ``p``, a real number in [0, 1)."""
    words = rng.words(check_size(size))
    low, high = p(rng.width)
    last = (1 << rng.width) - 1
    coins = words < np.uint64(min(low, last))
    doubtful = (words >= np.uint64(min(low, last))) & (words <= np.uint64(min(high, last)))
    return _settle(coins, doubtful, words, rng, lambda _: p)


def bernoulli_exp(steps: Ints, rate: Fraction, rng: RandomSource) -> NDArray[np.bool_]:
    """Coins that are True with probability exactly ``exp(-rate * steps[i])``, steps >= 0."""
    words = rng.words(len(steps))
    p = np.exp(-float(rate) * steps)
    u = _unit(words, rng.width)
    error = _EXP_ERROR + 2.0**-rng.width
    return _settle(
        u < p,
        np.abs(u - p) <= error,
        words,
        rng,
        lambda i: partial(exp_minus, rate * int(steps[i])),
    )


def exponential_choice(scores: Ints, rate: Number, rng: RandomSource) -> int:
    """An index drawn with probability exactly proportional to ``exp(rate * scores[i])``.

    One uniform is placed on the cumulated weights. Where double precision cannot tell on which
    side of a border it falls, the border is computed in integers.
    """
    rate = positive("rate", rate)
    gaps = _gaps(scores)
    weights = np.exp(-float(rate) * gaps)
    ends = np.cumsum(weights)
    uniform = LazyUniform(rng)
    uniform.extend()
    total = float(ends[-1])
    u = (uniform.value + 0.5) * 2.0**-rng.width * total
    error = total * ((len(gaps) + 16) * 2.0**-51 + 2.0**-rng.width)
    first, last = np.searchsorted(ends, (u - error, u + error), side="right")
    if first == last:
        return int(first)
    borders = _Borders(gaps, rate)
    for index in range(int(first), int(last)):  # the number is below the last border of all
        if uniform.below(partial(borders.end, index)):
            return index
    return int(last)


class _Borders:
    """Cumulated weights of the exponential choice as exact enclosures."""

    def __init__(self, gaps: Ints, rate: Fraction) -> None:
        self._gaps = gaps
        self._rate = rate

    def end(self, index: int, precision: int) -> Enclosure:
        """Enclose P(choice <= index)."""
        work = precision + len(self._gaps).bit_length() + 8
        low, high = self._sum(self._gaps[: index + 1], work)
        rest_low, rest_high = self._sum(self._gaps[index + 1 :], work)
        # low / (low + rest) increases in the first and decreases in the second argument.
        return (
            (low << precision) // (low + rest_high),
            ceil_div(high << precision, high + rest_low),
        )

    def _sum(self, gaps: Ints, precision: int) -> Enclosure:
        low = high = 0
        for gap, times in zip(*np.unique(gaps, return_counts=True), strict=True):
            one_low, one_high = exp_minus(self._rate * int(gap), precision)
            low += one_low * int(times)
            high += one_high * int(times)
        return low, high


def permutation(size: int, rng: RandomSource) -> Ints:
    """A uniformly random order of 0 .. size - 1."""
    # Proof: independent uniform keys, given that they are distinct, are in uniformly random order;
    #   keys with a tie are all drawn again.
    return np.argsort(_distinct(check_size(size), rng), kind="stable").astype(np.int64)


def subset(size: int, chosen: int, rng: RandomSource) -> Ints:
    """A uniformly random set of ``chosen`` of the indices 0 .. size - 1, in increasing order."""
    size = check_size(size)
    chosen = count("chosen", chosen, minimum=0)
    if chosen > size:
        raise InvalidArgument(f"chosen must be at most size={size}, got {chosen}.")
    if chosen in (0, size):
        return np.arange(chosen, dtype=np.int64)
    order = np.argpartition(_distinct(size, rng), chosen - 1)[:chosen]
    return np.sort(order).astype(np.int64)


def _distinct(size: int, rng: RandomSource) -> Words:
    if size > 1 << rng.width:
        raise InvalidArgument(f"size must be at most 2**{rng.width}, got {size}.")
    while True:
        keys = rng.words(size)
        if len(np.unique(keys)) == size:
            return keys


def _gaps(scores: Ints) -> Ints:
    if len(scores) == 0:
        raise OutOfDomain("scores must hold at least one candidate.")
    gaps: Ints = scores.max() - scores
    return gaps


def _rational(value: Fraction, precision: int) -> Enclosure:
    scaled = value.numerator << precision
    return scaled // value.denominator, ceil_div(scaled, value.denominator)


def _settle(
    coins: NDArray[np.bool_],
    doubtful: NDArray[np.bool_],
    words: Words,
    rng: RandomSource,
    threshold: Callable[[int], Real],
) -> NDArray[np.bool_]:
    """Decide the doubtful coins exactly."""
    if doubtful.any():
        for i in np.flatnonzero(doubtful):
            uniform = LazyUniform(rng, value=int(words[i]), bits=rng.width)
            coins[i] = uniform.below(threshold(int(i)))
    return coins


def _unit(words: Words, width: int) -> Floats:
    """Centers of the intervals that words stand for, in double precision."""
    return (words.astype(np.float64) + 0.5) * 2.0**-width
