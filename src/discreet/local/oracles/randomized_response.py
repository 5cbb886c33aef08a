"""Randomized response: the oldest local randomizer, and the building block of others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Enclosure, Number, ceil_div, light_share
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import Reports, Tally, codes, coin_check
from discreet.mechanisms._inputs import Released, read_whole, restore
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers

# Codes are added up in this many at a time: a bounded amount of memory for any number of reports.
_CHUNK = 1 << 18
_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(FrequencyOracle):
    """Keep a category with probability e^epsilon / (e^epsilon + k - 1), else another at random.

    A report is the code in the fewest whole bytes, the lowest first.
    """

    kind: ClassVar[str] = "grr"
    categories: int
    epsilon: Fraction

    @property
    def keep(self) -> float:
        """Probability that a category is reported as it is."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    @property
    def other(self) -> float:
        """Probability of each wrong category."""
        return 1 / (math.exp(min(float(self.epsilon), 700.0)) + self.categories - 1)

    @property
    def width(self) -> int:
        return ceil_div((self.categories - 1).bit_length(), 8)

    @property
    def size(self) -> int:
        return self.categories

    def release(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Released:
        """Randomized categories in the shape of ``value``, coded 0 .. categories - 1.

        The coin is exact: a lie has the real probability (k - 1) / (e^epsilon + k - 1), not a
        double's.
        """
        _, shape = read_whole(value)
        return restore(self._answers(codes(value, self.categories), rng), shape)

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client, exactly of the stated law."""
        answers = self._answers(codes(value, self.categories), rng).astype("<u8")
        rows = answers.view(np.uint8).reshape(-1, 8)
        return np.ascontiguousarray(rows[:, : self.width])

    def _answers(self, own: Ints, rng: RandomSource | None) -> Ints:
        source = resolve_rng(rng)
        lies = bernoulli_real(self._lie, own.size, source)
        # Drawn for all, so that the time does not tell how many lied.
        shifts = 1 + uniform_integers(self.categories - 1, own.size, source)
        return np.where(lies, (own + shifts) % self.categories, own)

    def tally(self, reports: Reports) -> Tally:
        """Count codes; what is no code is refused."""
        counts = np.zeros(self.categories, dtype=np.int64)
        accepted = 0
        for start in range(0, len(reports), _CHUNK):
            sent = self._sent(reports[start : start + _CHUNK])
            valid = sent[sent < self.categories]
            counts += np.bincount(valid, minlength=self.categories)
            accepted += len(valid)
        return Tally(counts, accepted, len(reports) - accepted)

    def _sent(self, rows: Reports) -> Ints:
        sent = np.zeros(len(rows), dtype=np.int64)
        for place in range(self.width):
            sent |= rows[:, place].astype(np.int64) << (8 * place)
        return sent

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n of a range: a report supports one category, so they exclude. F13."""
        p, q = self.keep, self.other
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        a, b = p + (r - 1) * q, r * q
        law = (f * a * (1 - a) + (1 - f) * b * (1 - b)) / (p - q) ** 2
        # All categories together are certain; what is left there is rounding.
        return np.where(r == self.categories, 0.0, law)

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Shares add up to one by themselves: pinning changes nothing."""
        return self.range_variance(length, share)

    def contrast_variance(self) -> float:
        """Variance times n of a unit contrast: 1 / (d (p - q)^2) - 1/d. F49."""
        return (1 / (self.keep - self.other) ** 2 - 1) / self.categories

    def _lie(self, precision: int) -> Enclosure:
        """Enclose (k - 1) r / (1 + (k - 1) r) with r = e^-epsilon."""
        return light_share(self.epsilon, precision, light=self.categories - 1, heavy=1)

    def certify(self) -> Certificate:
        """The divergence of the reports of two clients, from the coin."""
        part, light = f"{self.categories} categories", self.categories - 1
        check = coin_check(part, self._lie, epsilon=self.epsilon, light=light, heavy=1)
        return Certificate(
            mechanism="randomized_response",
            guarantee=self.guarantee,
            checks=(check,),
            drawn=self._looks(),
        ).demand()

    def __repr__(self) -> str:
        return f"randomized_response({self.guarantee!r}, categories={self.categories})"


def randomized_response(*, categories: int, epsilon: Number) -> RandomizedResponse:
    """Create generalized randomized response (GRR); two categories are Warner's.

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
        >>> import discreet
        >>> randomizer = discreet.randomized_response(categories=2, epsilon=1)
        >>> randomizer.randomize([0, 1, 1]).shape
        (3, 1)
    """
    # Theorem: each report is epsilon-DP in the local model, and no report of this kind is better.
    # Proof: a report has probability keep or other under any two inputs; keep / other = e^epsilon.
    # Source: Warner 1965; Kairouz, Oh, Viswanath 2014. B20, F13.
    # Needs: categories >= 2, epsilon > 0.
    if count("categories", categories, minimum=2) > _LARGEST:
        raise InvalidArgument(f"categories must be at most 2**31, got {categories}.")
    return RandomizedResponse(categories=int(categories), epsilon=positive("epsilon", epsilon))


grr = randomized_response
"""The name under which the literature on the local model knows it."""
