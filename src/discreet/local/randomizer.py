"""Local randomizers: what every client of a collection does, and how a server counts the reports.

A report is a row of bytes of fixed width, the same in memory, in a file and on a wire. A server
adds reports into a vector of 64-bit counts, and vectors of disjoint sets of reports add up. So a
collection of any size is a sum, and the order and place of its parts do not matter.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core._rational import Real, exp_minus
from discreet.core.errors import OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import read
from discreet.mechanisms.mechanism import CertificateCheck, Mechanism
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource

# ── Coins ────────────────────────────────────────────────────────────────────────────────────────
# The privacy loss of a coin that decides between truth and lie, from the coin as it is thrown.


# An epsilon beyond it is not certified: the coin would have to be known to too many digits.
_LARGEST = 20_000


def coin_check(
    part: str, lie: Real, *, epsilon: Fraction, light: int, heavy: int
) -> CertificateCheck:
    """Whether ``heavy`` true reports are at most e^epsilon times likelier than ``light`` lies.

    Theorem: what is returned is at least the divergence of the reports of two clients at epsilon,
        and zero but for rounding if the coin is the stated one.
    Proof: a report has probability (1 - lie) / heavy or lie / light, by whether it is true of its
        client. Only reports that are true of the first client and a lie of the second can be more
        than e^epsilon times likelier; under the first they have at most 1 - lie in all. The lie
        and e^epsilon enter by their lower ends, in integers.
    """
    precision = 256 + 2 * min(math.floor(epsilon), _LARGEST)
    low, _ = lie(precision)
    _, rarer = exp_minus(epsilon, precision)
    told = Fraction((1 << precision) - low, 1 << precision) - Fraction(heavy * low, light * rarer)
    return CertificateCheck(
        part=part,
        epsilon=float(epsilon),
        claimed=0.0,
        exact=float(max(Fraction(0), told)),
        route="the coin as it is thrown, in integers",
    )


# ── Walsh-Hadamard transform ─────────────────────────────────────────────────────────────────────


def walsh_hadamard(values: Ints) -> Ints:
    """Sums of values times (-1)^(number of common binary digits of i and j), for every j.

    The length is a power of two. Applied twice it multiplies by the length.
    """
    out = np.array(values, dtype=np.int64)
    step = 1
    while step < len(out):
        pairs = out.reshape(-1, 2, step)
        first = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = first
        step *= 2
    return out


# ── Randomizers ──────────────────────────────────────────────────────────────────────────────────


Reports: TypeAlias = NDArray[np.uint8]
"""Reports as rows of bytes: shape (number of reports, width)."""

VERSION = 1
"""Version of the wire format; a reader refuses a version it does not know."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a server keeps of some reports: their sum, and how many were well formed.

    A report that no client can send is left out of the sum and counted in ``refused``, so that it
    moves nothing; a report that some client can send moves the sum as that client would.
    """

    counts: Ints
    accepted: int
    refused: int


class LocalRandomizer(Mechanism):
    """The public description of one kind of report. Subclasses are frozen dataclasses."""

    kind: ClassVar[str]
    epsilon: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """What one report costs its client."""
        return Guarantee(events.PureEvent(self.epsilon), NeighboringRelation.LOCAL)

    def __repr__(self) -> str:
        return f"{self.kind}({self.guarantee!r}, reports of {self.width} bytes)"

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of one report."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the vector of counts that a server keeps."""

    @abstractmethod
    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client: one row a value. This is all that leaves a client."""

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """Add up reports of the right width; anything may stand in them."""

    @abstractmethod
    def estimate(self, counts: Ints, reports: int) -> Any:
        """What the counts of that many accepted reports say, with its error (post-processing)."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The public parameters besides epsilon: with kind and epsilon they rebuild this object."""

    def describe(self) -> dict[str, Any]:
        """Everything a client in any language needs to know, as JSON holds it."""
        epsilon = canonical.ratio(self.epsilon)
        return {"version": VERSION, "kind": self.kind, "epsilon": epsilon, **self.parameters()}

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ between descriptions."""
        return sha256(canonical.text(self.describe()).encode()).hexdigest()[:16]


def codes(value: ArrayLike, categories: int) -> Ints:
    """Private categories as a flat array of codes 0 .. categories - 1."""
    values = read(value)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    array = values.whole
    if array is None or not 0 <= array.min() <= array.max() < categories:
        raise OutOfDomain(f"value must hold whole numbers from 0 to {categories - 1}.")
    return array


# ── Packing ──────────────────────────────────────────────────────────────────────────────────────
# Whole numbers of a few binary digits side by side in bytes, lowest digits first.


def pack(fields: Sequence[Ints] | Ints, digits: Sequence[int]) -> Reports:
    """Bytes of each column of the fields, one after the other; what is left of a byte is zero.

    A field is a whole number of so many digits, at most 62.
    """
    total = sum(digits)
    limbs = np.zeros((len(fields[0]), (total + 63) // 64), dtype="<u8")
    place = 0
    for field, length in zip(fields, digits, strict=True):
        limb, offset = divmod(place, 64)
        whole = field.astype(np.uint64)
        limbs[:, limb] |= whole << np.uint64(offset)
        if offset + length > 64:
            limbs[:, limb + 1] |= whole >> np.uint64(64 - offset)
        place += length
    return limbs.view(np.uint8)[:, : (total + 7) // 8]


def unpack(reports: Reports, digits: Sequence[int]) -> Ints:
    """The fields of each report, as columns."""
    whole = np.zeros((len(reports), 8 * ((sum(digits) + 63) // 64)), dtype=np.uint8)
    whole[:, : reports.shape[1]] = reports
    limbs = np.ascontiguousarray(whole.view("<u8").T)
    fields = np.empty((len(digits), len(reports)), dtype=np.uint64)
    place = 0
    for j, length in enumerate(digits):
        limb, offset = divmod(place, 64)
        fields[j] = limbs[limb] >> np.uint64(offset)
        if offset + length > 64:
            fields[j] |= limbs[limb + 1] << np.uint64(64 - offset)
        fields[j] &= np.uint64((1 << length) - 1)
        place += length
    return fields.view(np.int64)


def padded(reports: Reports, digits: int) -> NDArray[np.bool_]:
    """Whether a report has a digit set beyond the first ``digits``: no client sends that."""
    spare = 8 * reports.shape[1] - digits
    return reports[:, -1] >> (8 - spare) != 0 if spare else np.zeros(len(reports), dtype=np.bool_)
