"""Local randomizers: what every client of a collection does, and how a server counts the reports.

A report is a row of bytes of fixed width, the same in memory, in a file and on a wire. A server
adds reports into a vector of 64-bit counts, and vectors of disjoint sets of reports add up. So a
collection of any size is a sum, and the order and place of its parts do not matter.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import doubles
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core._rational import Real, exp_minus
from discreet.core.errors import OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import MANY, REFUSED, EvenWords
from discreet.mechanisms._inputs import NO_NUMBER, read_numbers, read_whole
from discreet.mechanisms.mechanism import CertificateCheck, DrawCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

# ── Coins ────────────────────────────────────────────────────────────────────────────────────────
# The privacy loss of a coin that decides between truth and lie, from the coin as it is thrown.


# An epsilon beyond it is not certified: the coin would have to be known to too many digits.
_LARGEST = 20_000


def coin_check(
    part: str, lie: Real, *, epsilon: Fraction, light: int, heavy: int
) -> CertificateCheck:
    """Whether ``heavy`` true reports are at most e^epsilon times likelier than ``light`` lies."""
    # Theorem: what is returned is at least the divergence of the reports of two clients at epsilon,
    #   and zero but for rounding if the coin is the stated one.
    # Proof: a report has probability (1 - lie) / heavy or lie / light, by whether it is true of its
    #   client. Only reports that are true of the first client and a lie of the second can be more
    #   than e^epsilon times likelier; under the first they have at most 1 - lie in all. The lie
    #   and e^epsilon enter by their lower ends, in integers.
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

# A certificate looks at reports of so many bytes together, at least so many, and at this many
# counts at most; beyond the last no ratio is too large.
_BYTES = 1 << 20
_FEWEST = 64
_MOST_COUNTS = 1 << 20
_LARGEST_LOOK = 700.0

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
    """Describe how clients randomize one kind of value, and how the server estimates.

    All of it is public. Factories such as `local.oue` make one; clients and servers share its
    description.

    Attributes:
        kind: Name of the kind, such as `"oue"`, as descriptions and certificates have it.
        epsilon: Privacy loss of one report.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.oue(categories=4, epsilon=1)
        >>> randomizer.kind, randomizer.epsilon
        ('oue', Fraction(1, 1))
    """

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
        """Randomize values into reports, one for each client.

        This is all that leaves a client. A client that reports again pays again; see
        `BudgetedClient`.

        Args:
            value: Value of one client, or an array with one value for each client.
            rng: Random source of the client. If None, the operating system's; pass another one in
                tests only.

        Returns:
            An array with one row of bytes for each report.

        Raises:
            OutOfDomain: A value cannot be reported. The error does not quote it.

        Privacy:
            Each report is epsilon-DP for the client in the local model: neighbors are any two
            values of the client.

        Examples:
            >>> from discreet import local
            >>> local.grr(categories=4, epsilon=1).randomize([0, 3]).shape
            (2, 1)
        """

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """Add up reports.

        Args:
            reports: Array with one row of bytes for each report. Malformed reports are refused and
                counted.

        Returns:
            The counts, and how many reports were accepted.

        Examples:
            >>> randomizer = local.grr(categories=4, epsilon=1)
            >>> randomizer.tally(randomizer.randomize([0, 3])).accepted
            2
        """

    @abstractmethod
    def estimate(self, counts: Ints, reports: int) -> Any:
        """Estimate from counts of reports, with the error.

        This is post-processing: it costs nothing. `Aggregator.estimate` calls it.

        Args:
            counts: Counts of `tally`.
            reports: Number of reports that were counted.

        Returns:
            The estimate; its type depends on the randomizer.

        Examples:
            >>> import numpy as np
            >>> randomizer.estimate(np.array([400, 250, 200, 150]), 1000).shares.round(2).tolist()
            [0.75, 0.25, 0.08, -0.08]
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the public parameters besides epsilon.

        Returns:
            A dictionary. With the kind and epsilon, it describes the randomizer.

        Examples:
            >>> randomizer.parameters()
            {'categories': 4}
        """

    def _farthest(self, many: int) -> tuple[Any, Any]:  # noqa: ARG002 - others use it
        """Two values, for so many clients each, that reports should tell apart least well."""
        raise Unsupported(f"{type(self).__name__} names no values to look at.")

    def _told(self, counts: Ints) -> Floats:
        """What a vector of counts says."""
        return counts.astype(np.float64)

    def _stated(self, last: bool) -> Floats | None:  # noqa: ARG002, FBT001 - others state it
        """What a report of the first or the last of these values adds to that on average."""
        return None

    def _looks(self) -> tuple[DrawCheck, ...]:
        """What made-up clients send: against the stated law, and against the stated epsilon."""
        many = max(_FEWEST, min(MANY, _BYTES // self.width))
        both = [self.randomize(value, rng=EvenWords()) for value in self._farthest(many)]
        looks = [_told_apart(both[0], both[1], self.guarantee)]
        for last, reports in enumerate(both):
            stated = self._stated(bool(last)) if self.size <= _MOST_COUNTS else None
            if stated is not None:
                found = self._told(self.tally(reports).counts) / many
                looks.append(means_follow(found[: len(stated)], stated, many))
        return tuple(looks)

    def describe(self) -> dict[str, Any]:
        """Return what a client in any language needs to know.

        Returns:
            A dictionary for JSON, which `randomizer_from_json` reads.

        Examples:
            >>> local.grr(categories=4, epsilon=1).describe()["categories"]
            4
        """
        epsilon = canonical.ratio(self.epsilon)
        return {"version": VERSION, "kind": self.kind, "epsilon": epsilon, **self.parameters()}

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ between descriptions."""
        return sha256(canonical.text(self.describe()).encode()).hexdigest()[:16]


def means_follow(found: Floats, stated: Floats, many: int) -> DrawCheck:
    """Mean counts of reports against the stated ones, each between zero and one."""
    gap = found - stated
    if math.isclose(float(stated.sum()), 1, rel_tol=1e-9):
        gap = np.cumsum(gap)  # one count a report: sums of many see more than each
    room = math.log(2 * len(stated) / REFUSED)
    return DrawCheck(
        part=f"{len(stated)} counts",
        found=float(np.abs(gap).max()),
        allowed=math.sqrt(room / (2 * many)),
        route=f"{many} reports of one value, largest distance of a mean count from its law",
    )


def _told_apart(first: Reports, last: Reports, guarantee: Guarantee) -> DrawCheck:
    """Whether reports of two values differ by more than epsilon allows, byte by byte.

    What is found is certain but for a probability of 1e-12: bounds of Clopper and Pearson.
    """
    many, width = first.shape
    factor = math.exp(min(guarantee.epsilon(), _LARGEST_LOOK))
    kinds = [_byte_counts(rows) for rows in (first, last)]
    if width <= 2:
        whole = [rows.astype(np.int64) @ (256 ** np.arange(width)) for rows in (first, last)]
        kinds = [np.bincount(one, minlength=1 << 16) for one in whole]
    tail = REFUSED / (2 * kinds[0].size)
    worst = 0.0
    for here, there in (kinds, kinds[::-1]):
        seen = here > 0
        least = special.betaincinv(here[seen], many - here[seen] + 1, tail)
        most = special.betaincinv(there[seen] + 1, np.maximum(many - there[seen], 1e-9), 1 - tail)
        worst = max(worst, float(np.max(least - factor * most)))
    return DrawCheck(
        part="two values",
        found=worst,
        allowed=0.0,
        route=f"{many} reports of each: what one value sends more often than epsilon allows",
    )


def _byte_counts(rows: Reports) -> Ints:
    """How often each byte stands at each place."""
    places = np.arange(rows.shape[1], dtype=np.int64) << 8
    return np.bincount((rows + places).ravel(), minlength=rows.shape[1] << 8).astype(np.int64)


def codes(value: ArrayLike, categories: int) -> Ints:
    """Private categories as a flat array of codes 0 .. categories - 1."""
    array: Ints | None = None
    with suppress(OutOfDomain):
        array, _ = read_whole(value)
    if array is None or (array.size and not 0 <= array.min() <= array.max() < categories):
        raise OutOfDomain(f"value must hold whole numbers from 0 to {categories - 1}.")
    return array


def reals(value: ArrayLike) -> Floats:
    """Private numbers as a flat array of doubles, infinite beyond all doubles."""
    array = read_numbers(value).reshape(-1)
    found = array.astype(np.float64) if array.dtype.kind != "O" else doubles(array)
    if np.isnan(found).any():
        raise OutOfDomain(NO_NUMBER)
    return found


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
