"""Unary encodings: a report is one bit a category, each flipped by itself.

The bit of the client's own category is one with probability ``keep``, every other bit with
probability ``other``, all independent. Both are whole numbers of 2**-32, rounded toward privacy
(``keep`` down, ``other`` up), so that integers decide every bit, what is spent is known as a ratio
of integers, and the estimate is unbiased for the coins that are really thrown.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import canonical_json as canonical
from discreet.core._rational import Enclosure, Number, ceil_div, exp_minus, light_share, round_up
from discreet.core._validate import count, finite, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import Reports, Tally, codes
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.noise._packed_bernoulli import dyadic, packed_bernoulli
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli

Made = TypeVar("Made", bound="UnaryEncoding")

ONE = 1 << 32
"""Coins are whole numbers of 1 / ONE."""

# Bytes of reports added up at once.
_CHUNK = 1 << 20
# Words that are added in lanes of eight bits before a lane could overflow, this many at a time.
_LANES = 255
_WIDE = 64
_LOWEST = np.uint64(0x0101010101010101)
# e^-64 and less round to the same coins: no need to know them better.
_FARTHEST = Fraction(64)


class UnaryEncoding(FrequencyOracle):
    """What all unary encodings share: packed bits, independent coins, counts by position."""

    @property
    @abstractmethod
    def coins(self) -> tuple[int, int]:
        """``keep`` and ``other`` as whole numbers of 2**-32."""

    @property
    def keep(self) -> float:
        return self.coins[0] / ONE

    @property
    def other(self) -> float:
        return self.coins[1] / ONE

    @property
    def width(self) -> int:
        return ceil_div(self.categories, 8)

    @property
    def size(self) -> int:
        return self.categories

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a report under two categories.

        Two categories change the laws of two bits. The ratio is largest for a report with a one at
        the first and a zero at the second: keep (1 - other) / (other (1 - keep)).
        """
        p, q = self.coins
        return Fraction(p * (ONE - q), q * (ONE - p))

    @property
    def realized(self) -> float:
        """The epsilon of the coins as thrown, rounded up: at most the stated one."""
        # A ratio near one is a double only to 2**-53, which is much of a small logarithm.
        return min(math.log(self.ratio) * (1 + 2.0**-50) + 2.0**-52, round_up(self.epsilon))

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client: coins for all bits, then the own bit thrown anew.

        Every client throws the same number of coins whatever its category.
        """
        source = resolve_rng(rng)
        own = codes(value, self.categories)
        p, q = (Fraction(coin, ONE) for coin in self.coins)
        rows = packed_bernoulli(q, rows=len(own), columns=self.categories, rng=source)
        ones = bernoulli(p, len(own), source).astype(np.uint8)
        client, byte = np.arange(len(own)), own >> 3
        place = (own & 7).astype(np.uint8)
        rows[client, byte] = rows[client, byte] & ~(np.uint8(1) << place) | ones << place
        return rows

    def tally(self, reports: Reports) -> Tally:
        """Count ones by position; a report with a bit past the last category is refused."""
        counts = np.zeros(self.categories, dtype=np.int64)
        accepted = 0
        step = max(1, _CHUNK // self.width)
        padding = np.uint8(-(1 << (self.categories - 1) % 8 + 1) & 0xFF)
        for start in range(0, len(reports), step):
            rows = reports[start : start + step]
            if padding:
                stray = rows[:, -1] & padding
                rows = rows[stray == 0] if stray.any() else rows
            counts += ones_by_position(rows)[: self.categories]
            accepted += len(rows)
        return Tally(counts, accepted, len(reports) - accepted)

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Exact for independent supports and any data: weights 1 - r/d inside, -r/d outside."""
        p, q = self.keep, self.other
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        x = r / self.categories
        own = f * (1 - x) ** 2 + (1 - f) * x**2
        return (r * (1 - x) * q * (1 - q) + own * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def certify(self) -> Certificate:
        """The divergence of two clients' reports, from the integers of the coins."""
        scale = 1 << 256
        p, q = (Fraction(coin, ONE) for coin in self.coins)
        first, second = p * (1 - q), q * (1 - p)
        least = Fraction(exp_minus(self.epsilon, 256)[1], scale)  # e^-epsilon, not below
        gap = first - second / least
        check = CertificateCheck(
            part=f"{self.categories} bits",
            epsilon=float(self.epsilon),
            claimed=self.guarantee.delta(float(self.epsilon)),
            exact=0.0 if gap <= 0 else max(float(gap), 1e-9),
            route="exact law of a report, in integers",
        )
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()

    def __repr__(self) -> str:
        return f"{self.kind}({self.guarantee!r}, categories={self.categories})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SymmetricUnary(UnaryEncoding):
    """Every bit flipped with the same probability."""

    kind: ClassVar[str] = "sue"
    categories: int
    epsilon: Fraction

    @property
    def coins(self) -> tuple[int, int]:
        flip = _odds(self.epsilon / 2)
        return ONE - flip, flip


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OptimizedUnary(UnaryEncoding):
    """A fair coin for the own bit, all else spent on the zeros."""

    kind: ClassVar[str] = "oue"
    categories: int
    epsilon: Fraction

    @property
    def coins(self) -> tuple[int, int]:
        return ONE // 2, _odds(self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ThresholdHistogramEncoding(UnaryEncoding):
    """Bits that say which entries of a one-hot vector with Laplace noise pass a threshold."""

    kind: ClassVar[str] = "the"
    categories: int
    epsilon: Fraction
    threshold: Fraction

    @property
    def coins(self) -> tuple[int, int]:
        return _passing(self.epsilon, self.threshold)

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories, "threshold": canonical.ratio(self.threshold)}


def sue(*, categories: int, epsilon: Number) -> SymmetricUnary:
    """Create symmetric unary encoding (SUE), the basic RAPPOR.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.sue(categories=4, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model; n Var = e^(eps/2) / (e^(eps/2) - 1)^2.
    # Proof: `Unary.ratio` with other = 1 - keep is (keep / other)^2; other is rounded up.
    # Source: Erlingsson, Pihur, Korolova 2014; Wang et al. 2017. F44.
    # Needs: categories >= 2, epsilon > 0 (large enough for a coin of 32 bits).
    return _distinct(SymmetricUnary(categories=_categories(categories), epsilon=_eps(epsilon)))


def oue(*, categories: int, epsilon: Number) -> OptimizedUnary:
    """Create optimized unary encoding (OUE).

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> local.oue(categories=4, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model; n Var = 4 e^eps / (e^eps - 1)^2 +
    #   share.
    # Proof: `Unary.ratio` with keep = 1/2 is (1 - other) / other; other is rounded up.
    # Source: Wang, Blocki, Li, Jha 2017. F44.
    # Needs: categories >= 2, epsilon > 0 (large enough for a coin of 32 bits).
    return _distinct(OptimizedUnary(categories=_categories(categories), epsilon=_eps(epsilon)))


def threshold_histogram_encoding(
    *, categories: int, epsilon: Number, threshold: Number | str | None = None
) -> ThresholdHistogramEncoding:
    """Create threshold histogram encoding (THE), for comparison.

    It spends less than `epsilon`, so `oue` at that epsilon has less error.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.
        threshold: Threshold that an entry of the noisy one-hot vector must pass, from 1/2 to 1, as
            a number or as text such as "7/10". If None, the best one on a grid.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> oracle = local.threshold_histogram_encoding(categories=4, epsilon=1, threshold="7/10")
        >>> oracle.guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model. What is really spent (`realized`) is
    #   less, so `oue` with that epsilon is better: this is here for comparison.
    # Proof: noise of scale 2/epsilon on a vector of L1 sensitivity 2, then post-processing. The
    #   bits are drawn directly: keep = 1 - e^(eps (t - 1) / 2) / 2 and other = e^(-eps t / 2) / 2.
    # Source: Wang, Blocki, Li, Jha 2017. F45.
    # Needs: categories >= 2, epsilon > 0, threshold in [1/2, 1] (left out: the best, on a grid).
    eps = _eps(epsilon)
    if threshold is None:
        cut = Fraction(round(best_threshold(float(eps)) * 1024), 1024)
    else:
        cut = _cut(threshold)
    made = ThresholdHistogramEncoding(
        categories=_categories(categories), epsilon=eps, threshold=cut
    )
    return _distinct(made)


def _cut(threshold: Number | str) -> Fraction:
    if isinstance(threshold, str):
        cut = canonical.read_ratio("threshold", threshold)
    else:
        cut = finite("threshold", threshold)
    if not Fraction(1, 2) <= cut <= 1:
        raise InvalidArgument(f"threshold must lie in [1/2, 1], got {threshold}.")
    return cut


def best_threshold(epsilon: float) -> float:
    """The threshold of least variance of an empty category, by a search. F45."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to import

    def variance(cut: float) -> float:
        p = 1 - math.exp(epsilon * (cut - 1) / 2) / 2
        q = math.exp(-epsilon * cut / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    found = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded", options={"xatol": 1e-9})
    return float(found.x)


def ones_by_position(rows: Reports) -> Ints:
    """How many rows have a one at each bit: as many numbers as there are bits in a row.

    Eight rows of w bytes are w words of 64 bits; ``wide`` such groups stand side by side. Each of
    the eight bits of a byte is moved to the lowest place and added in lanes of eight bits, 255
    words at a time, so that no lane overflows.
    """
    width = rows.shape[1]
    wide = ceil_div(_WIDE, width)
    whole = len(rows) - len(rows) % (8 * wide)
    left = np.zeros((8 * wide if whole < len(rows) else 0, width), dtype=np.uint8)
    left[: len(rows) - whole] = rows[whole:]
    totals = np.zeros((width, 8), dtype=np.int64)
    room = np.empty((_LANES, wide * width), dtype=np.uint64)
    for part in (rows[:whole], left):
        words = np.ascontiguousarray(part).reshape(-1).view(np.uint64).reshape(-1, wide * width)
        for start in range(0, len(words), _LANES):
            block = words[start : start + _LANES]
            lanes = room[: len(block)]
            for bit in range(8):
                np.right_shift(block, np.uint64(bit), out=lanes)
                np.bitwise_and(lanes, _LOWEST, out=lanes)
                sums = lanes.sum(axis=0).view(np.uint8).reshape(-1, width)
                totals[:, bit] += sums.sum(axis=0, dtype=np.int64)
    return totals.ravel()


def _categories(value: int) -> int:
    return count("categories", value, minimum=2)


def _eps(value: Number) -> Fraction:
    return positive("epsilon", value)


def _distinct(made: Made) -> Made:
    keep, other = made.coins
    if keep <= other:
        raise InvalidArgument("epsilon is too small: coins of 32 bits cannot tell the bits apart.")
    return made


@lru_cache(maxsize=256)
def _odds(exponent: Fraction) -> int:
    """1 / (e^exponent + 1) in units of 2**-32, rounded up."""
    return dyadic(partial(light_share, min(exponent, _FARTHEST), light=1, heavy=1), up=True)


@lru_cache(maxsize=256)
def _passing(epsilon: Fraction, cut: Fraction) -> tuple[int, int]:
    def keep(precision: int) -> Enclosure:
        low, high = exp_minus(min(epsilon * (1 - cut) / 2, _FARTHEST), precision + 8)
        one = 1 << (precision + 9)
        return (one - high) >> 9, ceil_div(one - low, 1 << 9)

    def other(precision: int) -> Enclosure:
        low, high = exp_minus(min(epsilon * cut / 2, _FARTHEST), precision + 8)
        return low >> 9, ceil_div(high, 1 << 9)

    top = ONE // 2 if cut == 1 else dyadic(keep, up=False)
    return top, dyadic(other, up=True)
