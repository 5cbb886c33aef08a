"""Local hashing by linear maps: few bytes a report, any number of categories, no hash family.

Categories are points of the space of m binary digits, m the smallest that holds them. A client
draws b independent linear forms on it (rows of m digits), which hash its category to b digits,
puts randomised response on the hash, and sends forms and response. The report supports the points
that hash to the response: a flat, one of g = 2^b parallel ones.

Flats of one dimension are a 2-design, so the error is that of subset selection with blocks of
2^m / g points: every client has fresh forms, and no bias is left by a shared family of hashes.

Decoding needs no loop over categories: with addition modulo 2,

    1[A i = z] = g^-1 sum over s of (-1)^(s z) (-1)^((A^T s) i),

so a report is g - 1 signs at the Fourier indices A^T s (and the constant), and the supports of all
categories are one Walsh-Hadamard transform of the sum of the reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.mechanisms.local.design import BlockOracle
from discreet.mechanisms.local.hadamard import walsh_hadamard
from discreet.mechanisms.local.packing import pack, padded, unpack
from discreet.mechanisms.local.randomiser import Reports, Tally, codes
from discreet.noise.bits import Bits, system
from discreet.noise.law import Floats, Ints
from discreet.noise.uniform import below, bernoulli_real

# The counts of a server are 8 * 2^m bytes, and a report is added in 2^b steps.
_MOST_DIGITS = 24
_MOST_HASH_DIGITS = 8
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing(BlockOracle):
    """Randomised response on ``hash_digits`` random linear forms of the category."""

    kind: ClassVar[str] = "olh"
    categories: int
    epsilon: Fraction
    hash_digits: int

    @property
    def digits(self) -> int:
        """Binary digits of a category."""
        return (self.categories - 1).bit_length()

    @property
    def points(self) -> int:
        return 1 << self.digits

    @property
    def chosen(self) -> int:
        return 1 << (self.digits - self.hash_digits)

    @property
    def width(self) -> int:
        return (self.hash_digits * (self.digits + 1) + 7) // 8

    @property
    def size(self) -> int:
        return self.points

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories, "hashes": 1 << self.hash_digits}

    def encode(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        own = codes(value, self.categories)
        source = system() if bits is None else bits
        reports = np.empty((len(own), self.width), dtype=np.uint8)
        for start in range(0, len(own), _CHUNK):
            part = slice(start, start + _CHUNK)
            reports[part] = self._encode(own[part], source)
        return reports

    def _encode(self, own: Ints, bits: Bits) -> Reports:
        """One linear form and one digit of the noisy hash a field."""
        forms = self._forms(len(own), bits)
        lies = bernoulli_real(self._lie, len(own), bits)
        # Drawn for all, so that the time does not tell how many lied.
        noise = np.where(lies, 1 + below((1 << self.hash_digits) - 1, len(own), bits), 0)
        places = np.arange(self.hash_digits)[:, None]
        hashed = (np.bitwise_count(forms & own) & 1) ^ (noise >> places & 1)
        return pack(forms | hashed << self.digits, self.digits + 1)

    def _forms(self, size: int, bits: Bits) -> Ints:
        """Independent forms for each client, uniform: dependent ones are all drawn again."""
        forms = np.empty((self.hash_digits, size), dtype=np.int64)
        todo = np.arange(size)
        while todo.size:
            drawn = below(self.points, self.hash_digits * todo.size, bits)
            forms[:, todo] = drawn.reshape(self.hash_digits, -1)
            todo = todo[~_independent(forms[:, todo])]
        return forms

    def tally(self, reports: Reports) -> Tally:
        counts = np.zeros(self.size, dtype=np.int64)
        # Long enough that emptying the table costs less than filling it.
        chunk = max(_CHUNK, 2 * self.points)
        for start in range(0, len(reports), chunk):
            counts += self._count(reports[start : start + chunk])
        accepted = int(counts[0])
        return Tally(counts=counts, accepted=accepted, refused=len(reports) - accepted)

    def _count(self, reports: Reports) -> Ints:
        """The signs of the reports at their Fourier indices."""
        fields = unpack(reports, self.digits + 1, self.hash_digits)
        formed = ~padded(reports, self.hash_digits * (self.digits + 1))
        formed &= _independent(fields & (self.points - 1))
        fields = fields[:, formed]
        signed = np.zeros(2 * self.points, dtype=np.int64)
        # All sums of fields in the order of Gray's code, each one addition from the last; the
        # highest digit of a sum is its sign.
        current = np.zeros(fields.shape[1], dtype=np.int64)
        for step in range(1 << self.hash_digits):
            if step:
                current ^= fields[(step & -step).bit_length() - 1]
            signed += np.bincount(current, minlength=2 * self.points)
        return signed[: self.points] - signed[self.points :]

    def supports(self, counts: Ints) -> Floats:
        whole = walsh_hadamard(counts)[: self.categories] >> self.hash_digits
        return whole.astype(np.float64)

    def __repr__(self) -> str:
        hashes = 1 << self.hash_digits
        return f"olh({self.guarantee!r}, categories={self.categories}, hashes={hashes})"


def olh(*, categories: int, epsilon: Number, hashes: int | None = None) -> Hashing:
    """Optimal local hashing: the number of hash values with the smallest error.

    Theorem: a report is epsilon-DP in the local model, exactly. The error is that of subset
    selection with blocks of 2^m / hashes points, and below that of independent supports (F48).
    Proof: the forms are drawn without the value. For any forms and any two values, the response
    has probabilities among e^epsilon / (e^epsilon + g - 1) and 1 / (e^epsilon + g - 1).
    For the error: flats of one dimension are a 2-design, since linear maps take any two points to
    any two others; then see `BlockOracle`.
    Source: Wang, Blocki, Li, Jha 2017 for local hashing; Feldman, Nelson, Nguyen, Talwar 2022 for
    designs of subspaces. F14, corrected: three values of one hash must be independent, and are.
    Needs: 2 <= categories <= 2^24, epsilon > 0; ``hashes`` a power of two, at most 256.
    """
    size = count("categories", categories, minimum=2)
    if size > 1 << _MOST_DIGITS:
        raise InvalidArgument(f"categories must be at most 2**{_MOST_DIGITS}, got {size}.")
    loss = positive("epsilon", epsilon)
    most = min((size - 1).bit_length(), _MOST_HASH_DIGITS)
    if hashes is None:
        options = [
            Hashing(categories=size, epsilon=loss, hash_digits=b) for b in range(1, most + 1)
        ]
        return min(options, key=Hashing.contrast_variance)
    given = count("hashes", hashes, minimum=2)
    if given & (given - 1) or given > 1 << most:
        raise InvalidArgument(f"hashes must be a power of two from 2 to {1 << most}, got {given}.")
    return Hashing(categories=size, epsilon=loss, hash_digits=given.bit_length() - 1)


def hadamard_response(*, categories: int, epsilon: Number) -> Hashing:
    """Hadamard randomised response: one random sign of the category, kept or flipped.

    Theorem: epsilon-DP in the local model, exactly; the estimates are those of the sign's
    coefficient, scaled by c = (e^epsilon + 1) / (e^epsilon - 1) and transformed back.
    Proof: one form is an index j, and the hash's digit is the sign H[v, j]: local hashing to two
    values, `olh` with hashes=2. Support and sign of a category are affine in each other, so are
    the two estimators, and both are unbiased: they are equal. The index 0, whose sign
    says nothing, is never drawn: the variance is (1 - 1/2^m) c^2 and less, not c^2 (F46).
    Source: Bassily, Smith 2015; Cormode, Kulkarni, Srivastava 2018.
    Needs: 2 <= categories <= 2^24, epsilon > 0.
    """
    return olh(categories=categories, epsilon=epsilon, hashes=2)


def _independent(forms: Ints) -> NDArray[np.bool_]:
    """Whether the forms of each client (columns) are linearly independent, by elimination."""
    full = np.ones(forms.shape[1], dtype=np.bool_)
    basis: list[tuple[Ints, Ints]] = []
    for form in forms:
        rest = form.copy()
        for pivot, lowest in basis:
            rest ^= np.where(rest & lowest, pivot, 0)
        full &= rest != 0
        basis.append((rest, rest & -rest))
    return full
