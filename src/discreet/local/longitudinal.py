"""Longitudinal collection: reports of the same client again and again, with memoization.

Reports of one client add up: k fresh reports cost k epsilon. Instead a client randomizes its value
once (the permanent response), keeps that to itself, and sends copies with fresh noise. However many
copies it sends, they reveal no more about the value than the permanent response does.

A permanent response belongs to a *period*. The client answers once per period, with its value of
that time. Periods begin at times that do not depend on values, and cost the permanent epsilon each.
A memory by value, in which a client changes its response when its value changes, would show when
that happened: no number of this module would bound it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core._rational import Enclosure, Number, ceil_div, exp_minus, round_up
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.local_hashing import LocalHashing, olh
from discreet.local.oracles.unary_encoding import ONE, UnaryEncoding, oue, sue
from discreet.local.randomizer import Reports, Tally, coin_check, means_follow, pack, unpack
from discreet.mechanisms._drawn import MANY, EvenWords
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers

# ── Unary encodings ──────────────────────────────────────────────────────────────────────────────


# Digits to which e^-epsilon, and powers that only ever lower a claim, are known.
_PRECISION = 256


class MemoizedOracle(FrequencyOracle):
    """A permanent response, of which every report is a noisy copy.

    ``epsilon`` is the cost of one report, ``permanent_epsilon`` that of any number from one
    permanent response.
    """

    permanent_epsilon: Fraction

    @abstractmethod
    def remember(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """Permanent responses, one row a client. Never sent: each belongs to its client alone."""

    @abstractmethod
    def report(self, memory: Reports, *, rng: RandomSource | None = None) -> Reports:
        """Noisy copies of permanent responses, drawn afresh: these are sent."""

    @abstractmethod
    def loss_after(self, reports: int) -> float:
        """Logarithm of the largest ratio of that many reports under two values, not below it."""

    @abstractmethod
    def mean_variance(self, share: ArrayLike, *, rounds: int) -> Floats:
        """Variance times n of a share, averaged over rounds of reports of the same n clients.

        The error of the permanent response stays, however many rounds: that is the protection.
        """

    @property
    @abstractmethod
    def response(self) -> FrequencyOracle:
        """How the permanent response is made."""

    def _remembered(self) -> tuple[DrawCheck, ...]:
        """Permanent responses against the law of the oracle that makes them."""
        many = max(1, MANY // self.width)
        looks = []
        for last in (0, self.categories - 1):
            memory = self.remember(np.full(many, last), rng=EvenWords())
            means = np.full(self.categories, self.response.other)
            means[last] = self.response.keep
            found = self.response.supports(self.response.tally(memory).counts) / many
            look = means_follow(found[: self.categories], means, many)
            looks.append(replace(look, part=f"permanent responses, {look.part}"))
        return tuple(looks)

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The first report of clients whose memory is not kept: they must not send a second."""
        source = resolve_rng(rng)
        return self.report(self.remember(value, rng=source), rng=source)

    def after(self, reports: int | None = None) -> Guarantee:
        """Return the guarantee of several reports from one permanent response.

        Args:
            reports: Number of reports. If None, any number.

        Returns:
            The guarantee in the local model.

        Raises:
            InvalidArgument: `reports` is not a positive whole number.
        """
        if reports is None:
            return Guarantee(events.PureEvent(self.permanent_epsilon), NeighboringRelation.LOCAL)
        if count("reports", reports) == 1:
            return self.guarantee
        spent = min(self.permanent_epsilon, Fraction(self.loss_after(reports)))
        return Guarantee(events.PureEvent(spent), NeighboringRelation.LOCAL)

    def _rows(self, memory: Reports) -> Reports:
        if memory.dtype != np.uint8 or memory.ndim != 2 or memory.shape[1] != self.width:
            raise OutOfDomain(f"memory must be rows of {self.width} bytes, as remember() returns.")
        return memory

    def __repr__(self) -> str:
        return (
            f"{self.kind}(categories={self.categories}, first={float(self.epsilon):g}, "
            f"permanent_epsilon={float(self.permanent_epsilon):g})"
        )


class MemoizedUnary(MemoizedOracle):
    """A permanent unary response, of which every report is a copy with flipped bits.

    All coins are whole numbers of 2**-32, so both costs are known in integers.
    """

    @property
    @abstractmethod
    def response(self) -> UnaryEncoding:
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
        return {"categories": self.categories, "permanent": canonical.ratio(self.permanent_epsilon)}

    def remember(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        return self.response.randomize(value, rng=rng)

    def report(self, memory: Reports, *, rng: RandomSource | None = None) -> Reports:
        rows, source = self._rows(memory), resolve_rng(rng)
        flips = packed_bernoulli(self.flip, rows=len(rows), columns=self.categories, rng=source)
        return rows ^ flips

    def tally(self, reports: Reports) -> Tally:
        return self.response.tally(reports)

    def ratio_after(self, reports: int | None = None) -> Fraction:
        """The largest ratio of probabilities of this many reports under two values."""
        # Theorem: with P, Q the coins of the permanent response, b the flip and t = (b / (1 -
        #   b))^k, k reports have largest ratio (P + (1-P) t) / (Q + (1-Q) t) * (1-Q + Q t) / (1-P +
        #   P t); it grows with k to P (1-Q) / (Q (1-P)), the ratio of the permanent response.
        # Proof: bits are independent, and two values change the laws of two of them. Of the k
        #   copies of a bit only the number c of ones matters, and P(c | own) / P(c | other) grows
        #   with c: both are mixtures of Binomial(k, 1-b) and Binomial(k, b), the own with more of
        #   the first. So the worst has all ones at the one bit and all zeros at the other.
        # Source: Erlingsson, Pihur, Korolova 2014 for one report and the limit; F58.
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
                ("any number of reports", None, self.permanent_epsilon),
            )
        )
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=checks
        ).demand()
        return replace(certificate, drawn=(*self._looks(), *self._remembered())).demand()


Made = TypeVar("Made", bound=MemoizedUnary)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RAPPOR(MemoizedUnary):
    """Both steps symmetric: every bit flipped with one probability, then with another."""

    kind: ClassVar[str] = "rappor"
    categories: int
    epsilon: Fraction
    permanent_epsilon: Fraction

    @property
    def response(self) -> UnaryEncoding:
        return sue(categories=self.categories, epsilon=self.permanent_epsilon)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LOSUE(MemoizedUnary):
    """The permanent response by optimized unary encoding, the copies flipped symmetrically."""

    kind: ClassVar[str] = "l_osue"
    categories: int
    epsilon: Fraction
    permanent_epsilon: Fraction

    @property
    def response(self) -> UnaryEncoding:
        return oue(categories=self.categories, epsilon=self.permanent_epsilon)


def rappor(*, categories: int, epsilon: Number, permanent_epsilon: Number | str) -> RAPPOR:
    """Create RAPPOR without its hashing (L-SUE), for repeated collection.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.
        permanent_epsilon: Privacy loss of all reports from one permanent response together, above
            `epsilon`: a number, or a ratio as text such as "7/2".

    Returns:
        A longitudinal randomizer, for `MemoizedClient`.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        In the local model, one report is epsilon-DP, and all reports from one permanent response
        together are `permanent_epsilon`-DP.

    Examples:
        >>> from discreet import local
        >>> local.rappor(categories=4, epsilon=0.5, permanent_epsilon=2).guarantee.epsilon() <= 2
        True
    """
    # Theorem: one report is epsilon-DP, any number from one permanent response permanent-DP, in the
    #   local model; `Memoized.after` says what lies between.
    # Proof: `MemoizedUnary.ratio_after`, in integers; the flip is the least whole number of 2**-32
    #   for which one report keeps its epsilon.
    # Source: Erlingsson, Pihur, Korolova 2014; Arcolezi, Couchot, Al Bouna, Xiao 2022. F58.
    # Needs: categories >= 2, 0 < epsilon < permanent.
    one, lasting = losses(epsilon, permanent_epsilon)
    size = count("categories", categories, minimum=2)
    return _useful(RAPPOR(categories=size, epsilon=one, permanent_epsilon=lasting))


def l_osue(*, categories: int, epsilon: Number, permanent_epsilon: Number | str) -> LOSUE:
    """Create longitudinal optimized symmetric unary encoding (L-OSUE).

    It has less error than `rappor` at the same two epsilons.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.
        permanent_epsilon: Privacy loss of all reports from one permanent response together, above
            `epsilon`: a number, or a ratio as text such as "7/2".

    Returns:
        A longitudinal randomizer, for `MemoizedClient`.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        In the local model, one report is epsilon-DP, and all reports from one permanent response
        together are `permanent_epsilon`-DP.

    Examples:
        >>> local.l_osue(categories=4, epsilon=0.5, permanent_epsilon=2).categories
        4
    """
    # Theorem: as `rappor`, with the permanent response of `oue`; one report has the error of `oue`
    #   with that epsilon.
    # Proof: `MemoizedUnary.ratio_after`; the fair coin of the own bit stays fair under flips.
    # Source: Arcolezi, Couchot, Al Bouna, Xiao 2022. F58.
    # Needs: categories >= 2, 0 < epsilon < permanent.
    one, lasting = losses(epsilon, permanent_epsilon)
    size = count("categories", categories, minimum=2)
    return _useful(LOSUE(categories=size, epsilon=one, permanent_epsilon=lasting))


def losses(epsilon: Number, permanent_epsilon: Number | str) -> tuple[Fraction, Fraction]:
    """The cost of one report and of all of them, checked."""
    one = positive("epsilon", epsilon)
    if isinstance(permanent_epsilon, str):
        permanent_epsilon = canonical.read_ratio("permanent_epsilon", permanent_epsilon)
    lasting = positive("permanent_epsilon", permanent_epsilon)
    if one >= lasting:
        raise InvalidArgument(
            f"epsilon must be below permanent_epsilon={permanent_epsilon}, got {epsilon}: "
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


def _check(part: str, ratio: Fraction, epsilon: Fraction) -> CertificateCheck:
    least = Fraction(exp_minus(epsilon, _PRECISION)[1], 1 << _PRECISION)
    holds = ratio * least <= 1
    return CertificateCheck(
        part=part,
        epsilon=float(epsilon),
        claimed=0.0,
        exact=0.0 if holds else max(float(1 - 1 / (ratio * least)), 1e-9),
        route="exact law of the reports, in integers",
    )


# ── Local hashing ────────────────────────────────────────────────────────────────────────────────
# The permanent response is a report of local hashing: forms, and a hash value that is right with
# some probability. A copy has the same forms and a hash value that is drawn once more. Two
# randomized responses in a row are one of a smaller epsilon, so to the server a copy is an
# ordinary report.
#
# The forms stay the same from copy to copy: reports of one client are linked by them, as by a
# name.


_CHUNK = 1 << 16
# Beyond it e^epsilon is not a double; no finer claim is made there.
_LARGEST = 700.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoizedHashing(MemoizedOracle, LocalHashing):
    """Local hashing at ``permanent_epsilon``, of which every report is a copy worth ``epsilon``."""

    kind: ClassVar[str] = "l_olh"
    categories: int
    epsilon: Fraction
    hash_digits: int
    permanent_epsilon: Fraction
    kept: int = 1

    @property
    def response(self) -> LocalHashing:
        """How the permanent response is made."""
        return olh(categories=self.categories, epsilon=self.permanent_epsilon, hashes=self.hashes)

    @property
    def hashes(self) -> int:
        """Number of hash values."""
        return 1 << self.hash_digits

    def parameters(self) -> dict[str, Any]:
        return {
            "categories": self.categories,
            "hashes": self.hashes,
            "permanent": canonical.ratio(self.permanent_epsilon),
        }

    def remember(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        return self.response.randomize(value, rng=rng)

    def report(self, memory: Reports, *, rng: RandomSource | None = None) -> Reports:
        rows, source = self._rows(memory), resolve_rng(rng)
        reports = np.empty_like(rows)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            fields = unpack(rows[part], self._fields)
            fields[-1] ^= self._noise(fields.shape[1], source)
            reports[part] = pack(fields, self._fields)
        return reports

    def _noise(self, size: int, rng: RandomSource) -> Ints:
        """What is added to a remembered hash value: mostly nothing."""
        lies = bernoulli_real(self._second_lie, size, rng)
        # Drawn for all, so that the time does not tell how many lied.
        return np.where(lies, 1 + uniform_integers(self.hashes - 1, size, rng), 0)

    def _second_lie(self, precision: int) -> Enclosure:
        """Enclose (g - 1) (r - s) / ((1 - s) (1 + (g - 1) r)), r = e^-epsilon, s = e^-permanent.

        Proof that a copy is worth epsilon: randomized response keeps a share
        (1 - r) / (1 + (g - 1) r) of the difference of two values and one after the other keeps
        the product. Solve for the second, which lies with probability (g - 1) / g of the rest.
        """
        work = precision + self.hashes.bit_length() + 64
        one, others = 1 << work, self.hashes - 1
        r_low, r_high = exp_minus(self.epsilon, work)
        s_low, s_high = exp_minus(self.permanent_epsilon, work)
        least = (one - s_high) * (one + others * r_low)
        most = (one - s_low) * (one + others * r_high)
        low, high = max(0, others * (r_low - s_high)), others * (r_high - s_low)
        return (low << (work + precision)) // most, ceil_div(high << (work + precision), least)

    def _either_lie(self, precision: int) -> Enclosure:
        """Enclose the probability that a report is wrong, from the coins of its two steps.

        Two lies x and y in a row are x + y - x y g / (g - 1), as 1 of g - 1 second ones undoes
        the first; that grows with both.
        """
        unit, g = 1 << precision, self.hashes
        first = self.response._lie(precision)  # noqa: SLF001 - of its own kind
        second = self._second_lie(precision)
        low, high = (
            Fraction(x + y) - Fraction(x * y * g, unit * (g - 1))
            for x, y in zip(first, second, strict=True)
        )
        return math.floor(low), math.ceil(high)

    @property
    def _steps(self) -> tuple[float, float, float, float]:
        """Right and each wrong value: in the permanent response, and in a copy of it."""
        r, s = (math.exp(-min(float(x), _LARGEST)) for x in (self.epsilon, self.permanent_epsilon))
        g = self.hashes
        p = 1 / (1 + (g - 1) * s)
        c = (r - s) / ((1 - s) * (1 + (g - 1) * r))
        return p, p * s, 1 - (g - 1) * c, c

    def loss_after(self, reports: int) -> float:
        """Logarithm of the largest ratio of that many reports under two values, not below it."""
        # Theorem: with p, q the probabilities of the right and of a wrong value in the permanent
        #   response, a, c those in a copy and t = (c / a)^k, it is that of
        #   (p + (g-1) q t) / (q + (p + (g-2) q) t).
        # Proof: with L(z) the likelihood of the copies given the permanent value z, and values that
        #   hash to h and h', the ratio is (q S + (p - q) L(h)) / (q S + (p - q) L(h')), S the sum
        #   of L. It grows with L(h) and falls with every other L: largest if all copies show h.
        # Source: Arcolezi, Pinzón, Palamidessi, Gambs 2023 for the limit (LOLOHA).
        if self.permanent_epsilon > _LARGEST:
            return round_up(self.permanent_epsilon)
        p, q, a, c = self._steps
        g, k = self.hashes, count("reports", reports)
        t = (c / a) ** k
        ratio = (p + (g - 1) * q * t) / (q + (p + (g - 2) * q) * t)
        # Doubles are off by far less than this: a few units in the last place for each factor.
        return math.log(ratio) * (1 + 2.0**-40) + (k + 64) * 2.0**-46

    def mean_variance(self, share: ArrayLike, *, rounds: int) -> Floats:
        """Variance times n of a share, averaged over rounds of reports of the same n clients.

        Two copies of one client agree on a category if both show its hash: the own one, with the
        permanent value right or wrong; or another one, that hashes to the own one's value or not.
        """
        k = count("rounds", rounds)
        p, q, a, c = self._steps
        right, wrong = p * a**2 + (1 - p) * c**2, q * a**2 + (1 - q) * c**2
        met = (self.chosen - 1) / (self.points - 1)
        own = right - self.keep**2
        other = met * right + (1 - met) * wrong - self.other**2
        f = np.asarray(share, dtype=np.float64)
        lasting = (f * own + (1 - f) * other) / (self.keep - self.other) ** 2
        return lasting + (self.variance(f) - lasting) / k

    def certify(self) -> Certificate:
        """One report, composed of its two steps, and the permanent response."""
        part, light = "one report, of two steps", self.hashes - 1
        check = coin_check(part, self._either_lie, epsilon=self.epsilon, light=light, heavy=1)
        response = self.response.certify()
        return Certificate(
            mechanism=self.kind,
            guarantee=self.guarantee,
            checks=(check, *response.checks),
            drawn=(*response.drawn, *self._looks(), *self._remembered()),
        ).demand()


def longitudinal_olh(
    *, categories: int, epsilon: Number, permanent_epsilon: Number | str, hashes: int | None = None
) -> MemoizedHashing:
    """Create longitudinal optimal local hashing, with reports of a few bytes.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`. At most 2**24.
        epsilon: Privacy loss of one report.
        permanent_epsilon: Privacy loss of all reports from one permanent response together, above
            `epsilon`: a number, or a ratio as text such as "7/2".
        hashes: Number of values of the hash function, a power of two. If None, as for `olh`.

    Returns:
        A longitudinal randomizer, for `MemoizedClient`.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        In the local model, one report is epsilon-DP, and all reports from one permanent response
        together are `permanent_epsilon`-DP.

    Examples:
        >>> local.longitudinal_olh(categories=16, epsilon=0.5, permanent_epsilon=2).categories
        16
    """
    # Theorem: one report is epsilon-DP, any number from one permanent response permanent-DP, in the
    #   local model; one report has the law and the error of `olh` with that epsilon and these
    #   hashes.
    # Proof: two randomized responses in a row are one, `MemoizedHashing._second_lie`; for many,
    #   post-processing.
    # Source: Arcolezi, Pinzón, Palamidessi, Gambs 2023 (LOLOHA), with linear hashing. F58.
    # Needs: 2 <= categories <= 2^24, 0 < epsilon < permanent; `hashes` as for `olh`.
    one, lasting = losses(epsilon, permanent_epsilon)
    size = count("categories", categories, minimum=2)
    # Powers of two only: what two steps make of sets of three is not one step of such sets.
    every = [2**b for b in range(1, 9) if 2 ** (b - 1) < size]
    options = every if hashes is None else [hashes]
    made = [olh(categories=size, epsilon=one, hashes=g) for g in options]
    best = min(made, key=LocalHashing.contrast_variance)
    return MemoizedHashing(
        categories=best.categories,
        epsilon=one,
        hash_digits=best.hash_digits,
        permanent_epsilon=lasting,
    )
