"""Memoised local hashing: repeated reports of a few bytes, whatever the number of categories.

The permanent response is a report of local hashing, forms and a hash value that is right with some
probability; a copy has the same forms and a hash value that is drawn once more. Two randomised
responses in a row are one of a smaller epsilon, so to the server a copy is an ordinary report of
local hashing.

The forms stay the same from copy to copy: reports of one client are linked by them, as by a name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import canonical
from discreet.core.check import count
from discreet.core.exact import Enclosure, Number, ceil_div, exp_minus, round_up
from discreet.mechanisms.local.coin import coin_check
from discreet.mechanisms.local.hashing import Hashing, olh
from discreet.mechanisms.local.longitudinal import Memoised, losses
from discreet.mechanisms.local.packing import pack, unpack
from discreet.mechanisms.local.randomiser import Reports
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats, Ints
from discreet.noise.uniform import below, bernoulli_real

_CHUNK = 1 << 16
# Beyond it e^epsilon is not a double; no finer claim is made there.
_LARGEST = 700.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoisedHashing(Memoised, Hashing):
    """Local hashing at ``permanent``, of which every report is a copy worth ``epsilon``."""

    kind: ClassVar[str] = "l_olh"
    categories: int
    epsilon: Fraction
    hash_digits: int
    permanent: Fraction
    kept: int = 1

    @property
    def response(self) -> Hashing:
        """How the permanent response is made."""
        return olh(categories=self.categories, epsilon=self.permanent, hashes=self.hashes)

    @property
    def hashes(self) -> int:
        """Number of hash values."""
        return 1 << self.hash_digits

    def parameters(self) -> dict[str, Any]:
        return {
            "categories": self.categories,
            "hashes": self.hashes,
            "permanent": canonical.ratio(self.permanent),
        }

    def remember(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        return self.response.encode(value, bits=bits)

    def report(self, memory: Reports, *, bits: Bits | None = None) -> Reports:
        rows, source = self._rows(memory), source_of(bits)
        reports = np.empty_like(rows)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            fields = unpack(rows[part], self._fields)
            fields[-1] ^= self._noise(fields.shape[1], source)
            reports[part] = pack(fields, self._fields)
        return reports

    def _noise(self, size: int, bits: Bits) -> Ints:
        """What is added to a remembered hash value: mostly nothing."""
        lies = bernoulli_real(self._second_lie, size, bits)
        # Drawn for all, so that the time does not tell how many lied.
        return np.where(lies, 1 + below(self.hashes - 1, size, bits), 0)

    def _second_lie(self, precision: int) -> Enclosure:
        """Enclose (g - 1) (r - s) / ((1 - s) (1 + (g - 1) r)), r = e^-epsilon, s = e^-permanent.

        Proof that a copy is worth epsilon: randomised response keeps a share
        (1 - r) / (1 + (g - 1) r) of the difference of two values and one after the other keeps
        the product. Solve for the second, which lies with probability (g - 1) / g of the rest.
        """
        work = precision + self.hashes.bit_length() + 64
        one, others = 1 << work, self.hashes - 1
        r_low, r_high = exp_minus(self.epsilon, work)
        s_low, s_high = exp_minus(self.permanent, work)
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
        r, s = (math.exp(-min(float(x), _LARGEST)) for x in (self.epsilon, self.permanent))
        g = self.hashes
        p = 1 / (1 + (g - 1) * s)
        c = (r - s) / ((1 - s) * (1 + (g - 1) * r))
        return p, p * s, 1 - (g - 1) * c, c

    def loss_after(self, reports: int) -> float:
        """Logarithm of the largest ratio of that many reports under two values, not below it.

        Theorem: with p, q the probabilities of the right and of a wrong value in the permanent
        response, a, c those in a copy and t = (c / a)^k, it is that of
        (p + (g-1) q t) / (q + (p + (g-2) q) t).
        Proof: with L(z) the likelihood of the copies given the permanent value z, and values that
        hash to h and h', the ratio is (q S + (p - q) L(h)) / (q S + (p - q) L(h')), S the sum of
        L. It grows with L(h) and falls with every other L: largest if all copies show h.
        Source: Arcolezi, Pinzón, Palamidessi, Gambs 2023 for the limit (LOLOHA).
        """
        if self.permanent > _LARGEST:
            return round_up(self.permanent)
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
        checks = (check, *self.response.certify().checks)
        return Certificate(mechanism=self.kind, guarantee=self.guarantee, checks=checks).demand()


def l_olh(
    *, categories: int, epsilon: Number, permanent: Number | str, hashes: int | None = None
) -> MemoisedHashing:
    """Longitudinal local hashing: a few bytes a report, ``permanent`` for any number of them.

    Theorem: one report is epsilon-DP, any number from one permanent response permanent-DP, in the
    local model; one report has the law and the error of `olh` with that epsilon and these hashes.
    Proof: two randomised responses in a row are one, `MemoisedHashing._second_lie`; for many,
    post-processing.
    Source: Arcolezi, Pinzón, Palamidessi, Gambs 2023 (LOLOHA), with linear hashing. F58.
    Needs: 2 <= categories <= 2^24, 0 < epsilon < permanent; ``hashes`` as for `olh`.
    """
    one, lasting = losses(epsilon, permanent)
    size = count("categories", categories, minimum=2)
    # Powers of two only: what two steps make of sets of three is not one step of such sets.
    every = [2**b for b in range(1, 9) if 2 ** (b - 1) < size]
    options = every if hashes is None else [hashes]
    made = [olh(categories=size, epsilon=one, hashes=g) for g in options]
    best = min(made, key=Hashing.contrast_variance)
    return MemoisedHashing(
        categories=best.categories, epsilon=one, hash_digits=best.hash_digits, permanent=lasting
    )
