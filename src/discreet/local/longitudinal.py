"""The same client again and again: a permanent response, and fresh noise on top of it.

Reports of one client add up: k fresh reports cost k epsilon, and soon nothing is left. Instead a
client randomises its value once and for all (the permanent response), keeps that to itself, and
sends, whenever asked, a copy with fresh noise. However many copies it sends, they say no more
about the value than the permanent response does.

A permanent response belongs to a *period*. The client answers once a period, with its value of
then; periods begin at times that do not depend on values, and cost the permanent epsilon each.
A memory by value, in which a client changes its response when its value changes, would show when
that happened: no number of this module would bound it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical, events
from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number, exp_minus
from discreet.core.relation import Relation
from discreet.mechanisms.local.oracle import Oracle
from discreet.mechanisms.local.randomiser import Reports, Tally
from discreet.mechanisms.local.unary import ONE, Unary, oue, sue
from discreet.mechanisms.mechanism import Certificate, Check
from discreet.noise.bits import Bits, source_of
from discreet.noise.coins import packed_bernoulli
from discreet.noise.law import Floats

# Digits to which e^-epsilon, and powers that only ever lower a claim, are known.
_PRECISION = 256


class Memoised(Oracle):
    """A permanent response, of which every report is a noisy copy.

    ``epsilon`` is the cost of one report, ``permanent`` that of any number from one permanent
    response.
    """

    permanent: Fraction

    @abstractmethod
    def remember(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        """Permanent responses, one row a client. Never sent: each belongs to its client alone."""

    @abstractmethod
    def report(self, memory: Reports, *, bits: Bits | None = None) -> Reports:
        """Noisy copies of permanent responses, drawn afresh: these are sent."""

    @abstractmethod
    def loss_after(self, reports: int) -> float:
        """Logarithm of the largest ratio of that many reports under two values, not below it."""

    @abstractmethod
    def mean_variance(self, share: ArrayLike, *, rounds: int) -> Floats:
        """Variance times n of a share, averaged over rounds of reports of the same n clients.

        The error of the permanent response stays, however many rounds: that is the protection.
        """

    def encode(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        """The first report of clients whose memory is not kept: they must not send a second."""
        source = source_of(bits)
        return self.report(self.remember(value, bits=source), bits=source)

    def after(self, reports: int | None = None) -> Guarantee:
        """What this many reports from one permanent response cost; None: any number of them."""
        if reports is None:
            return Guarantee(events.Pure(self.permanent), Relation.LOCAL)
        if count("reports", reports) == 1:
            return self.guarantee
        spent = min(self.permanent, Fraction(self.loss_after(reports)))
        return Guarantee(events.Pure(spent), Relation.LOCAL)

    def _rows(self, memory: Reports) -> Reports:
        if memory.dtype != np.uint8 or memory.ndim != 2 or memory.shape[1] != self.width:
            raise OutOfDomain(f"memory must be rows of {self.width} bytes, as remember() returns.")
        return memory

    def __repr__(self) -> str:
        return (
            f"{self.kind}(categories={self.categories}, first={float(self.epsilon):g}, "
            f"permanent={float(self.permanent):g})"
        )


class MemoisedUnary(Memoised):
    """A permanent unary response, of which every report is a copy with flipped bits.

    All coins are whole numbers of 2**-32, so both costs are known in integers.
    """

    @property
    @abstractmethod
    def response(self) -> Unary:
        """How the permanent response is made."""

    @property
    def flip(self) -> Fraction:
        """Probability that a bit of the permanent response is sent wrong."""
        return Fraction(_flip(self.response.coins, self.epsilon), ONE)

    @property
    def keep(self) -> float:
        return float(self._ones(own=True))

    @property
    def other(self) -> float:
        return float(self._ones(own=False))

    def _ones(self, *, own: bool) -> Fraction:
        """Probability of a one in a report at the own, or at any other category."""
        one = Fraction(self.response.coins[0 if own else 1], ONE)
        return one * (1 - self.flip) + (1 - one) * self.flip

    @property
    def width(self) -> int:
        return self.response.width

    @property
    def size(self) -> int:
        return self.categories

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories, "permanent": canonical.ratio(self.permanent)}

    def remember(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        return self.response.encode(value, bits=bits)

    def report(self, memory: Reports, *, bits: Bits | None = None) -> Reports:
        rows, source = self._rows(memory), source_of(bits)
        flips = packed_bernoulli(self.flip, rows=len(rows), columns=self.categories, bits=source)
        return rows ^ flips

    def tally(self, reports: Reports) -> Tally:
        return self.response.tally(reports)

    def ratio_after(self, reports: int | None = None) -> Fraction:
        """The largest ratio of probabilities of this many reports under two values.

        Theorem: with P, Q the coins of the permanent response, b the flip and t = (b / (1 - b))^k,
        k reports have largest ratio (P + (1-P) t) / (Q + (1-Q) t) * (1-Q + Q t) / (1-P + P t);
        it grows with k to P (1-Q) / (Q (1-P)), the ratio of the permanent response.
        Proof: bits are independent, and two values change the laws of two of them. Of the k copies
        of a bit only the number c of ones matters, and P(c | own) / P(c | other) grows with c: both
        are mixtures of Binomial(k, 1-b) and Binomial(k, b), the own with more of the first. So the
        worst has all ones at the one bit and all zeros at the other.
        Source: Erlingsson, Pihur, Korolova 2014 for one report and the limit; F58.
        """
        p, q = (Fraction(coin, ONE) for coin in self.response.coins)
        power = Fraction(0)
        # A smaller power makes the ratio larger: rounding it down is safe.
        if reports is not None and reports <= 1 << 16:
            exact = (self.flip / (1 - self.flip)) ** count("reports", reports)
            scaled = (exact.numerator << _PRECISION) // exact.denominator
            power = exact if reports == 1 else Fraction(scaled, 1 << _PRECISION)
        first = (p + (1 - p) * power) / (q + (1 - q) * power)
        return first * (1 - q + q * power) / (1 - p + p * power)

    def loss_after(self, reports: int) -> float:
        # The logarithm of doubles is off by far less: in all, or near one by 2**-53.
        return math.log(self.ratio_after(reports)) * (1 + 2.0**-40) + 2.0**-50

    def mean_variance(self, share: ArrayLike, *, rounds: int) -> Floats:
        k = count("rounds", rounds)
        p, q = self.response.keep, self.response.other
        f, b = np.asarray(share, dtype=np.float64), float(self.flip)
        lasting = f * p * (1 - p) + (1 - f) * q * (1 - q)
        return (lasting + b * (1 - b) / (k * (1 - 2 * b) ** 2)) / (p - q) ** 2

    def certify(self) -> Certificate:
        """One report, and any number of them, from the integers of the coins."""
        checks = tuple(
            _check(part, self.ratio_after(reports), epsilon)
            for part, reports, epsilon in (
                ("one report", 1, self.epsilon),
                ("any number of reports", None, self.permanent),
            )
        )
        return Certificate(mechanism=self.kind, guarantee=self.guarantee, checks=checks).demand()


Made = TypeVar("Made", bound=MemoisedUnary)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rappor(MemoisedUnary):
    """Both steps symmetric: every bit flipped with one probability, then with another."""

    kind: ClassVar[str] = "rappor"
    categories: int
    epsilon: Fraction
    permanent: Fraction

    @property
    def response(self) -> Unary:
        return sue(categories=self.categories, epsilon=self.permanent)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OptimisedMemoised(MemoisedUnary):
    """The permanent response by optimised unary encoding, the copies flipped symmetrically."""

    kind: ClassVar[str] = "l_osue"
    categories: int
    epsilon: Fraction
    permanent: Fraction

    @property
    def response(self) -> Unary:
        return oue(categories=self.categories, epsilon=self.permanent)


def rappor(*, categories: int, epsilon: Number, permanent: Number | str) -> Rappor:
    """RAPPOR without its hashing (L-SUE): ``epsilon`` for one report, ``permanent`` for all.

    Theorem: one report is epsilon-DP, any number from one permanent response permanent-DP, in the
    local model; `Memoised.after` says what lies between.
    Proof: `MemoisedUnary.ratio_after`, in integers; the flip is the least whole number of 2**-32
    for which one report keeps its epsilon.
    Source: Erlingsson, Pihur, Korolova 2014; Arcolezi, Couchot, Al Bouna, Xiao 2022. F58.
    Needs: categories >= 2, 0 < epsilon < permanent.
    """
    one, lasting = losses(epsilon, permanent)
    size = count("categories", categories, minimum=2)
    return _useful(Rappor(categories=size, epsilon=one, permanent=lasting))


def l_osue(*, categories: int, epsilon: Number, permanent: Number | str) -> OptimisedMemoised:
    """Longitudinal optimised unary encoding: less error than `rappor` at the same two epsilons.

    Theorem: as `rappor`, with the permanent response of `oue`; one report has the error of `oue`
    with that epsilon.
    Proof: `MemoisedUnary.ratio_after`; the fair coin of the own bit stays fair under flips.
    Source: Arcolezi, Couchot, Al Bouna, Xiao 2022. F58.
    Needs: categories >= 2, 0 < epsilon < permanent.
    """
    one, lasting = losses(epsilon, permanent)
    size = count("categories", categories, minimum=2)
    return _useful(OptimisedMemoised(categories=size, epsilon=one, permanent=lasting))


def losses(epsilon: Number, permanent: Number | str) -> tuple[Fraction, Fraction]:
    """The cost of one report and of all of them, checked."""
    one = positive("epsilon", epsilon)
    if isinstance(permanent, str):
        permanent = canonical.read_ratio("permanent", permanent)
    lasting = positive("permanent", permanent)
    if one >= lasting:
        raise InvalidArgument(
            f"epsilon must be below permanent={permanent}, got {epsilon}: "
            "one report cannot cost more than all of them."
        )
    return one, lasting


def _useful(made: Made) -> Made:
    if made.flip >= Fraction(1, 2):
        raise InvalidArgument("epsilon is too small: coins of 32 bits cannot tell the bits apart.")
    return made


@lru_cache(maxsize=256)
def _flip(coins: tuple[int, int], epsilon: Fraction) -> int:
    """The least flip, in units of 2**-32, at which one report has a ratio of at most e^epsilon."""
    least = exp_minus(epsilon, _PRECISION)[1]  # e^-epsilon, not below
    square = ONE * ONE

    def holds(flip: int) -> bool:
        p, q = (coin * (ONE - flip) + (ONE - coin) * flip for coin in coins)
        return (q * (square - p) << _PRECISION) >= least * p * (square - q)

    low, high = -1, ONE // 2  # at one half both laws are the same
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check(part: str, ratio: Fraction, epsilon: Fraction) -> Check:
    least = Fraction(exp_minus(epsilon, _PRECISION)[1], 1 << _PRECISION)
    holds = ratio * least <= 1
    return Check(
        part=part,
        epsilon=float(epsilon),
        claimed=0.0,
        exact=0.0 if holds else max(float(1 - 1 / (ratio * least)), 1e-9),
        route="exact law of the reports, in integers",
    )
