"""Local hashing by linear maps: few bytes a report, any number of categories, no hash family.

Categories are points of the space of m binary digits, m the smallest that holds them. A client
draws b independent linear forms on it (rows of m digits), which hash its category to one of
g = 2^b values, puts subset selection on the hash (a set of ``kept`` values, mostly one: randomized
response), and sends forms and set. The report supports the points that hash into the set: a flat,
or a union of parallel ones.

Such unions are a 3-design, so the error is that of subset selection with blocks of 2^m kept / g
points: every client has fresh forms, and no bias is left by a shared family of hashes.

Decoding needs no loop over categories: with addition modulo 2,

    1[A i in T] = g^-1 sum over s of (sum over z in T of (-1)^(s z)) (-1)^((A^T s) i),

so a report is g - 1 small numbers at the Fourier indices A^T s (and a constant), and the supports
of all categories are one Walsh-Hadamard transform of the sum of the reports.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.subset_selection import BlockOracle
from discreet.local.randomizer import Reports, Tally, codes, pack, padded, unpack, walsh_hadamard
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers

# The counts of a server are 8 * 2^m bytes, and a report is added in g steps.
_MOST_DIGITS = 24
_MOST_HASH_DIGITS = 8
# Pairs of hash digits and values in a set that are tried: the cheapest first. Sets of three fill
# the gaps between the powers of two where these are widest.
_SHAPES = ((1, 1), (2, 1), (3, 1), (3, 3), (4, 1), (4, 3), (5, 1), (5, 3), (6, 1), (7, 1), (8, 1))
# Twice the bytes are not worth two hundredths of the variance.
_NEAR = 1.02
_CHUNK = 1 << 16
# Tables of all sets of hash values stay small.
_MOST_SETS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHashing(BlockOracle):
    """A set of ``kept`` of 2^hash_digits hash values, the hash being random linear forms."""

    kind: ClassVar[str] = "olh"
    categories: int
    epsilon: Fraction
    hash_digits: int
    kept: int = 1

    @property
    def digits(self) -> int:
        """Binary digits of a category."""
        return (self.categories - 1).bit_length()

    @property
    def points(self) -> int:
        return 1 << self.digits

    @property
    def chosen(self) -> int:
        return self.kept << (self.digits - self.hash_digits)

    @property
    def _fields(self) -> list[int]:
        """Digits of the parts of a report: the forms, and the number of the set."""
        sets = math.comb(1 << self.hash_digits, self.kept)
        return [self.digits] * self.hash_digits + [(sets - 1).bit_length()]

    @property
    def width(self) -> int:
        return (sum(self._fields) + 7) // 8

    @property
    def size(self) -> int:
        return self.points

    def parameters(self) -> dict[str, Any]:
        hashes = 1 << self.hash_digits
        return {"categories": self.categories, "hashes": hashes, "kept": self.kept}

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client, exactly of the stated law."""
        own = codes(value, self.categories)
        source = resolve_rng(rng)
        reports = np.empty((len(own), self.width), dtype=np.uint8)
        for start in range(0, len(own), _CHUNK):
            part = slice(start, start + _CHUNK)
            reports[part] = self._encode(own[part], source)
        return reports

    def _encode(self, own: Ints, rng: RandomSource) -> Reports:
        forms = self._forms(len(own), rng)
        hashed = np.zeros(len(own), dtype=np.int64)
        for place, form in enumerate(forms):
            hashed |= (np.bitwise_count(form & own) & 1).astype(np.int64) << place
        # A set for the hash 0, moved by the hash: moving keeps the law of a uniform set.
        sets = _sets(self.hash_digits, self.kept)
        moved = sets.moved[self._response(len(own), rng), hashed]
        return pack([*forms, moved], self._fields)

    def _response(self, size: int, rng: RandomSource) -> Ints:
        """Numbers of the sets of clients whose hash is 0."""
        sets = _sets(self.hash_digits, self.kept)
        lies = bernoulli_real(self._lie, size, rng)
        # Both are drawn for all, so that the time does not tell how many lied.
        true = sets.holding[uniform_integers(len(sets.holding), size, rng)]
        return np.where(lies, sets.lacking[uniform_integers(len(sets.lacking), size, rng)], true)

    def _forms(self, size: int, rng: RandomSource) -> Ints:
        """Independent forms for each client, uniform: dependent ones are all drawn again."""
        forms = np.empty((self.hash_digits, size), dtype=np.int64)
        todo = np.arange(size)
        while todo.size:
            drawn = uniform_integers(self.points, self.hash_digits * todo.size, rng)
            forms[:, todo] = drawn.reshape(self.hash_digits, -1)
            todo = todo[~_independent(forms[:, todo])]
        return forms

    def tally(self, reports: Reports) -> Tally:
        """Add up signs; dependent forms, no number of a set, or stray digits are refused."""
        counts = np.zeros(self.size, dtype=np.int64)
        # Long enough that emptying a table costs less than filling it, within bounds.
        chunk = min(max(_CHUNK, 2 * self.points), 16 * _CHUNK)
        for start in range(0, len(reports), chunk):
            counts += self._count(reports[start : start + chunk])
        accepted = int(counts[0]) // self.kept
        return Tally(counts, accepted, len(reports) - accepted)

    def _count(self, reports: Reports) -> Ints:
        """What the reports add at their Fourier indices."""
        sets = _sets(self.hash_digits, self.kept)
        fields = unpack(reports, self._fields)
        forms, response = fields[:-1], fields[-1]
        formed = ~padded(reports, sum(self._fields)) & (response < len(sets.moved))
        formed &= _independent(forms)
        forms, response = forms[:, formed], response[formed]
        # All sums of forms in the order of Gray's code, each one addition from the last.
        index = np.zeros(len(response), dtype=np.int64)
        counts = np.zeros(self.points)
        for step in range(1 << self.hash_digits):
            if step:
                index ^= forms[(step & -step).bit_length() - 1]
            # Whole numbers far below 2^53: exact.
            weights = sets.signs[step ^ step >> 1][response]
            counts += np.bincount(index, weights=weights, minlength=self.points)
        return counts.astype(np.int64)

    def supports(self, counts: Ints) -> Floats:
        whole = walsh_hadamard(counts)[: self.categories] >> self.hash_digits
        return whole.astype(np.float64)

    def __repr__(self) -> str:
        kept = f", kept={self.kept}" if self.kept > 1 else ""
        hashes = 1 << self.hash_digits
        return f"olh({self.guarantee!r}, categories={self.categories}, hashes={hashes}{kept})"


def olh(
    *, categories: int, epsilon: Number, hashes: int | None = None, kept: int = 1
) -> LocalHashing:
    """Create optimal local hashing (OLH), with short reports for many categories.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`. At most 2**24.
        epsilon: Privacy loss of one report.
        hashes: Number of values of the hash function: a power of two, at most 256 and at most
            `categories`. If None, the shortest report within 2% of the least error.
        kept: Number of values of the hash function that a report names, below `hashes`.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.olh(categories=1000, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: a report is epsilon-DP in the local model, exactly. The error is that of subset
    #   selection with blocks of 2^m kept / hashes points, below that of independent supports (F48).
    # Proof: the forms are drawn without the value. For any forms and any two values, a set has one
    #   of two probabilities, of ratio e^epsilon. For the error: blocks are a 3-design, since affine
    #   maps take any three points to any three others; then see `BlockOracle`.
    # Source: Wang, Blocki, Li, Jha 2017 for local hashing; Feldman, Nelson, Nguyen, Talwar 2022 for
    #   designs of subspaces. F14, corrected: three values of one hash must be independent, and are.
    # Needs: 2 <= categories <= 2^24, epsilon > 0. `hashes` is a power of two, at most 256 and
    #   the categories; `kept` is below it, and of few hashes: there are at most 5000 such sets.
    size = count("categories", categories, minimum=2)
    if size > 1 << _MOST_DIGITS:
        raise InvalidArgument(f"categories must be at most 2**{_MOST_DIGITS}, got {size}.")
    loss = positive("epsilon", epsilon)
    most = min((size - 1).bit_length(), _MOST_HASH_DIGITS)
    several = count("kept", kept)
    if hashes is None and several != 1:
        raise InvalidArgument("kept goes with hashes: give both, or neither.")
    if hashes is None:
        options = [
            LocalHashing(categories=size, epsilon=loss, hash_digits=digits, kept=chosen)
            for digits, chosen in _SHAPES
            if digits <= most
        ]
        enough = _NEAR * min(option.contrast_variance() for option in options)
        return next(option for option in options if option.contrast_variance() <= enough)
    given = count("hashes", hashes, minimum=2)
    if given & (given - 1) or given > 1 << most:
        raise InvalidArgument(f"hashes must be a power of two from 2 to {1 << most}, got {given}.")
    digits = given.bit_length() - 1
    # A set is looked up by its members, written one after the other in a whole number of 62 digits.
    many = several * digits > 62 or math.comb(given, several) > _MOST_SETS
    if several >= given or (several > 1 and many):
        raise InvalidArgument(f"kept={several} of {given} hashes are too many.")
    return LocalHashing(categories=size, epsilon=loss, hash_digits=digits, kept=several)


def hadamard_response(*, categories: int, epsilon: Number) -> LocalHashing:
    """Create Hadamard response: one random sign of the category, kept or flipped.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`. At most 2**24.
        epsilon: Privacy loss of one report.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> local.hadamard_response(categories=16, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: epsilon-DP in the local model, exactly; the estimates are those of the sign's
    #   coefficient, scaled by c = (e^epsilon + 1) / (e^epsilon - 1) and transformed back.
    # Proof: one form is an index j, and the hash's digit is the sign H[v, j]: local hashing to two
    #   values, `olh` with hashes=2. Support and sign of a category are affine in each other, so are
    #   the two estimators, and both are unbiased: they are equal. The index 0, whose sign
    #   says nothing, is never drawn: the variance is below c^2 (F46).
    # Source: Bassily, Smith 2015; Cormode, Kulkarni, Srivastava 2018.
    # Needs: 2 <= categories <= 2^24, epsilon > 0.
    return olh(categories=categories, epsilon=epsilon, hashes=2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sets:
    """All sets of some hash values, in lexicographic order; their place in it is their number."""

    moved: Ints
    """Number of each set when every member is moved by each hash value."""
    holding: Ints
    lacking: Ints
    """Numbers of the sets with, and without the value 0."""
    signs: Floats
    """For each s, the sum of (-1)^(s z) over the members z of each set."""


@lru_cache(maxsize=32)
def _sets(digits: int, kept: int) -> _Sets:
    values = np.arange(1 << digits)
    members = np.array(list(itertools.combinations(range(1 << digits), kept)))
    places = len(values) ** np.arange(kept)[::-1]
    order = members @ places
    moved = np.sort(members[:, None, :] ^ values[:, None], axis=2) @ places
    parity = (np.bitwise_count(values[:, None, None] & members) & 1).astype(np.float64)
    return _Sets(
        moved=np.searchsorted(order, moved),
        holding=np.flatnonzero(members[:, 0] == 0),
        lacking=np.flatnonzero(members[:, 0] != 0),
        signs=(1 - 2 * parity).sum(axis=2),
    )


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
