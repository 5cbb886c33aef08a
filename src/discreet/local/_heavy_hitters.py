"""Heavy hitters: the texts that many clients hold, out of far more than could be listed.

A client draws one of several groups inside the randomizer. A group is a length of prefix and a
public hash; the client hashes the prefix of its text into one of 2^16 cells and reports the cell
through local hashing at the full epsilon. The server keeps one sketch for each group, of fixed size
whatever is collected, and searches: prefixes that are frequent are extended by every next piece,
and those that stay above the noise are extended again, until whole texts are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import shake_128
from statistics import NormalDist
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.tabular import Record
from discreet.local.oracles.local_hashing import LocalHashing, olh
from discreet.local.randomizer import LocalRandomizer, Reports, Tally
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers
from discreet.query.result import Result, records

# ── Estimate ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeavyHittersEstimate(Result):
    """Texts that stand out of the noise, most frequent first.

    The noise of all `tried` candidates of a level together passes the threshold of that level
    with probability 0.05. Shares are unbiased for a text chosen in advance; those of texts that
    were found *because* their estimate is high are a little too high, the more the nearer they
    are to the threshold. A text that shares cells with heavy ones under two of the public hashes
    may be found wrongly: more hashes or cells make that rarer.

    Attributes:
        items: Texts that were found, as bytes.
        shares: Estimated share of the clients with each text.
        std: Standard deviation of each share.
        reports: Number of reports.
        tried: Number of candidates of a level.
        guarantee: What each report satisfies.

    Examples:
        >>> from discreet import local
        >>> collection = local.heavy_hitters(length=2, epsilon=6)
        >>> reports = collection.randomize(["ab"] * 4000 + ["cd"] * 2000)
        >>> found = collection.estimate(collection.tally(reports).counts, 6000)
        >>> found.texts[:2]
        ('ab', 'cd')
    """

    items: tuple[bytes, ...]
    shares: Floats
    std: Floats
    reports: int
    tried: int
    guarantee: Guarantee | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The items as text; bytes that are none are replaced."""
        return tuple(item.decode("utf-8", errors="replace") for item in self.items)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return bounds of each share, by the normal approximation.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper ends, one for each text.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = found.interval(0.95)
            >>> bool((low < found.shares).all() and (found.shares < high).all())
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        z = NormalDist().inv_cdf((1 + inside) / 2)
        return self.shares - z * self.std, self.shares + z * self.std

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List one record for each text, the most frequent first.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Dictionaries with `text`, `value`, `std`, `low` and `high`.

        Examples:
            >>> [row["text"] for row in found.rows()][:2]
            ['ab', 'cd']
        """
        low, high = self.interval(confidence)
        keys = ((text,) for text in self.texts)
        return records(("text",), keys, value=self.shares, std=self.std, low=low, high=high)

    def _title(self) -> str:
        return f"{len(self.items)} texts found in {self.reports:,} reports, shares"


# ── Prefixes ─────────────────────────────────────────────────────────────────────────────────────
# Texts as rows of bits, their prefixes, and public hashes of prefixes into few cells.


Texts: TypeAlias = NDArray[np.uint8]
"""Texts as rows of bytes of one length, filled with zeros; the first bit of a byte is highest."""


def texts(value: Iterable[str | bytes], length: int) -> Texts:
    """Private texts as rows: UTF-8, cut after ``length`` bytes, filled with zeros."""
    if isinstance(value, (str, bytes)):
        value = [value]
    if not isinstance(value, Iterable):
        raise OutOfDomain("value must hold texts or bytes.")
    rows = []
    for text in value:
        if not isinstance(text, (str, bytes)):
            raise OutOfDomain("value must hold texts or bytes.")
        whole = text.encode("utf-8", errors="replace") if isinstance(text, str) else text
        rows.append(whole[:length].ljust(length, b"\0"))
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), length)


def prefixes(rows: Texts, digits: int) -> Texts:
    """The same rows with all bits after the first ``digits`` zero."""
    whole, left = divmod(digits, 8)
    cut = rows.copy()
    if left:
        cut[:, whole] &= np.uint8(0xFF << (8 - left) & 0xFF)
    cut[:, whole + (left > 0) :] = 0
    return cut


def extended(rows: Texts, digits: int, step: int) -> Texts:
    """Every row (zero after ``digits`` bits) with all values of the next ``step`` bits."""
    length = rows.shape[1]
    endings = np.zeros((1 << step, length), dtype=np.uint8)
    numbers = np.arange(1 << step)
    for place in range(step):
        byte, bit = divmod(digits + place, 8)
        ones = (numbers >> (step - 1 - place) & 1).astype(np.uint8)
        endings[:, byte] |= ones << np.uint8(7 - bit)
    return (rows[:, None, :] | endings[None]).reshape(-1, length)


def readable(rows: Texts) -> list[bytes]:
    """Rows as bytes without the zeros that fill them."""
    return [row.tobytes().rstrip(b"\0") for row in rows]


@dataclass(frozen=True, slots=True)
class PublicHash:
    """A random affine map over the field of two elements, known to everyone."""

    # Theorem: two different rows fall into one cell with probability 2^-digits over the maps.
    # Proof: the map sends the difference of the rows, which is not zero, to a uniform value.

    masks: Texts
    shift: int

    @classmethod
    def of(cls, *, seed: int, number: int, length: int, digits: int) -> PublicHash:
        """The map with this number of a family: the digits of SHAKE-128 of its name."""
        name = f"discreet public hash {seed}/{number}/{length}/{digits}"
        stream = shake_128(name.encode()).digest(length * digits + 8)
        masks = np.frombuffer(stream[:-8], dtype=np.uint8).reshape(digits, length)
        return cls(masks, int.from_bytes(stream[-8:], "little") % (1 << digits))

    def cells(self, rows: Texts) -> Ints:
        """The cell of each row: digit j is the parity of the bits that mask j selects."""
        found = np.full(len(rows), self.shift, dtype=np.int64)
        chosen = _words(rows)
        for digit, mask in enumerate(_words(self.masks)):
            ones = np.bitwise_count(chosen & mask).sum(axis=1, dtype=np.int64)
            found ^= (ones & 1) << digit
        return found


@lru_cache(maxsize=64)
def family(seed: int, members: int, length: int, digits: int) -> Sequence[PublicHash]:
    """The public hashes of a collection."""
    return tuple(
        PublicHash.of(seed=seed, number=number, length=length, digits=digits)
        for number in range(members)
    )


def _words(rows: Texts) -> NDArray[np.uint64]:
    """Eight bytes at a time, filled with zeros; parities do not mind their order."""
    filled = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), dtype=np.uint8)
    filled[:, : rows.shape[1]] = rows
    return filled.view(np.uint64)


# ── Randomizer ───────────────────────────────────────────────────────────────────────────────────


_CHUNK = 1 << 16
_FIRST = 16
_STEP = 12
_LONGEST = 64
# Candidates of a level, each of the length of a text.
_TRIED = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountSketch:
    """One group's estimated shares of cells, and the number of its reports."""

    group: int
    shares: Floats
    reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(LocalRandomizer):
    """Reports about hashed prefixes of a text of at most ``length`` bytes."""

    kind: ClassVar[str] = "heavy_hitters"
    epsilon: Fraction
    length: int
    hashes: int
    cell_digits: int
    first: int
    step: int
    most: int
    seed: int

    @property
    def levels(self) -> tuple[int, ...]:
        """Lengths of the prefixes in bits, shortest first; the last is the whole text."""
        whole = 8 * self.length
        return (*range(min(self.first, whole), whole, self.step), whole)

    @property
    def cells(self) -> LocalHashing:
        """What randomizes a cell."""
        return olh(categories=1 << self.cell_digits, epsilon=self.epsilon)

    @property
    def groups(self) -> int:
        """Prefix lengths times public hashes."""
        return len(self.levels) * self.hashes

    @property
    def width(self) -> int:
        return 1 + self.cells.width

    @property
    def size(self) -> int:
        return self.groups * (self.cells.size + 1)

    @property
    def std(self) -> float:
        """Of an estimated share from one report (divide by sqrt(n) for n reports)."""
        return math.sqrt(len(self.levels)) * self.cells.std

    def parameters(self) -> dict[str, Any]:
        names = ("length", "hashes", "first", "step", "most", "seed")
        shape = {name: getattr(self, name) for name in names}
        return {**shape, "cells": self.cells.parameters()}

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client: a group in one byte, and the noisy cell of its prefix."""
        rows = texts(cast("Iterable[str | bytes]", value), self.length)
        source = resolve_rng(rng)
        reports = np.empty((len(rows), self.width), dtype=np.uint8)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            groups = uniform_integers(self.groups, len(rows[part]), source)
            codes = np.empty(len(groups), dtype=np.int64)
            for group in range(self.groups):
                mine = np.flatnonzero(groups == group)
                codes[mine] = self._place(rows[part][mine], group)
            reports[part, 0] = groups
            reports[part, 1:] = self.cells.randomize(codes, rng=source)
        return reports

    def tally(self, reports: Reports) -> Tally:
        """One sketch a group; unknown groups and malformed reports are refused."""
        counts = np.zeros(self.size, dtype=np.int64)
        states = counts.reshape(self.groups, -1)
        accepted = 0
        for group in range(self.groups):
            mine = np.ascontiguousarray(reports[reports[:, 0] == group, 1:])
            tally = self.cells.tally(mine)
            states[group, :-1] += tally.counts
            states[group, -1] += tally.accepted
            accepted += tally.accepted
        return Tally(counts, accepted, len(reports) - accepted)

    def estimate(self, counts: Ints, reports: int) -> HeavyHittersEstimate:
        """The texts that stand out, from the longest prefixes that do, level by level."""
        candidates = np.zeros((1, self.length), dtype=np.uint8)
        known = tried = 0
        sketches: list[_CountSketch] = []
        states = counts.reshape(len(self.levels), self.hashes, -1)
        for level, digits in enumerate(self.levels):
            candidates = extended(candidates, known, digits - known)
            tried = len(candidates)
            sketches = self._sketches(states[level], level)
            candidates = candidates[self._survivors(sketches, candidates)]
            known = digits
        shares, variance = self._shares(sketches, candidates)
        order = np.argsort(-shares, kind="stable")
        return HeavyHittersEstimate(
            items=tuple(readable(candidates[order])),
            shares=shares[order],
            std=np.sqrt(variance[order]),
            reports=reports,
            tried=tried,
            guarantee=self.guarantee,
        )

    def _place(self, rows: Texts, group: int) -> Ints:
        """Cells of the texts in this group."""
        mapping = family(self.seed, self.groups, self.length, self.cell_digits)[group]
        return mapping.cells(prefixes(rows, self.levels[group // self.hashes]))

    def _sketches(self, states: Ints, level: int) -> list[_CountSketch]:
        """Estimated shares of all cells, by public hash; hashes without reports are left out."""
        return [
            _CountSketch(
                group=level * self.hashes + member,
                shares=self.cells.estimate(state[:-1], int(state[-1])).shares,
                reports=int(state[-1]),
            )
            for member, state in enumerate(states)
            if state[-1]
        ]

    def _survivors(self, sketches: list[_CountSketch], candidates: Texts) -> Ints:
        """Candidates that stand out under every hash but one, the most frequent ones first.

        A heavy text lifts all that share its cell under one hash. So the largest of a candidate's
        estimates is left out; what is left is below the mean of any fixed choice, so noise alone
        passes the threshold no more often than stated.
        """
        if not sketches or not len(candidates):
            return np.empty(0, dtype=np.int64)
        cells = 1 << self.cell_digits
        sums, largest = np.zeros(len(candidates)), np.full(len(candidates), -np.inf)
        for sketch in sketches:
            seen = sketch.shares[self._place(candidates, sketch.group)] - 1 / cells
            seen *= sketch.reports
            sums += seen
            np.maximum(largest, seen, out=largest)
        left = sum(sketch.reports for sketch in sketches)
        if len(sketches) > 1:
            sums -= largest
            # The bound must hold whichever was left out: the largest number of reports.
            left -= max(sketch.reports for sketch in sketches)
        noise = math.sqrt(float(self.cells.variance(0.0)) / left)
        order = np.argsort(-sums, kind="stable")[: self.most].astype(np.int64)
        kept: Ints = order[sums[order] / left > self._quantile(len(candidates)) * noise]
        return kept

    def _shares(self, sketches: list[_CountSketch], found: Texts) -> tuple[Floats, Floats]:
        """Shares of what was found, by least squares: its collisions with itself are resolved.

        What was not found spreads evenly over the cells in the mean over the public hashes.
        """
        size = len(found)
        if not size:
            return np.zeros(0), np.zeros(0)
        total = sum(sketch.reports for sketch in sketches)
        together, right = np.zeros((size, size)), np.zeros(size)
        for sketch in sketches:
            cells = self._place(found, sketch.group)
            weight = sketch.reports / total
            together += weight * (cells[:, None] == cells[None, :])
            right += weight * sketch.shares[cells]
        spread = 1 / (1 << self.cell_digits)
        # The rest, one less the sum of all shares, lies in any cell with this probability.
        inverse = np.linalg.pinv(together - spread)
        shares = inverse @ (right - spread)
        noise = self.cells.variance(np.clip(shares, 0, 1)) / total
        return shares, noise * np.diag(inverse)

    @staticmethod
    def _quantile(tried: int) -> float:
        """Noise of ``tried`` empty candidates passes this many deviations 0.05 times in all."""
        return NormalDist().inv_cdf(1 - 0.05 / tried)

    def detects(self, reports: int, *, power: float = 0.9) -> float:
        """The share of clients from which on a text is found with this probability, about.

        Known before anything is collected. Every level must keep its prefix: levels are
        independent, so each must do so with the root of the power.
        """
        n = count("reports", reports) / len(self.levels)
        wanted = float(probability("power", power, zero=False, one=False))
        pieces = [b - a for a, b in zip((0, *self.levels), self.levels, strict=False)]
        tried = max(1 << pieces[0], *(self.most << piece for piece in pieces[1:]), 2)
        z = self._quantile(tried) + NormalDist().inv_cdf(wanted ** (1 / len(self.levels)))
        used, lost = n, 0.0
        if self.hashes > 1:
            used = n * (self.hashes - 1) / self.hashes
            # The largest of k normal numbers, left out, takes this much from the sum of the rest.
            largest = NormalDist().inv_cdf((self.hashes - 0.375) / (self.hashes + 0.25))
            lost = largest / math.sqrt(self.hashes - 1)
        return (z + lost) * math.sqrt(float(self.cells.variance(0.0)) / used)

    def certify(self) -> Certificate:
        """That of the cells: group and prefix length do not depend on the text."""
        inner = self.cells.certify()
        return replace(
            inner,
            mechanism=self.kind,
            guarantee=self.guarantee,
            drawn=(*inner.drawn, *self._looks()),
        ).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return [b""] * many, [b"\xff" * self.length] * many

    def __repr__(self) -> str:
        levels = ", ".join(map(str, self.levels))
        return f"heavy_hitters({self.guarantee!r}, length={self.length}, prefixes of {levels} bits)"


def described(
    *,
    epsilon: Fraction,
    length: int,
    hashes: int,
    cells: dict[str, int],
    first: int,
    step: int,
    most: int,
    seed: int,
) -> HeavyHitters:
    """The collection of a description; its cells must be those that are made here."""
    return heavy_hitters(
        epsilon=epsilon,
        length=length,
        hashes=hashes,
        cell_digits=int(cells["categories"]).bit_length() - 1,
        first=first,
        step=step,
        most=most,
        seed=seed,
    )


def heavy_hitters(
    *,
    length: int,
    epsilon: Number,
    hashes: int = 4,
    cell_digits: int = 16,
    first: int = _FIRST,
    step: int = _STEP,
    most: int = 32,
    seed: int = 0,
) -> HeavyHitters:
    """Collect texts that many clients share (heavy hitters).

    Each client reports about one prefix of its text. The server extends the frequent prefixes step
    by step.

    Args:
        length: Largest length of a text in bytes, at most 64. Longer texts are cut.
        epsilon: Privacy loss of one report.
        hashes: Number of public hash functions. More make false texts rarer, with fewer clients for
            each.
        cell_digits: Base-2 logarithm of the number of cells of a hash function, from 8 to 20.
        first: Number of bits of the first prefix, at most 20.
        step: Number of bits by which prefixes grow, at most 20.
        most: Number of prefixes that are kept at each step.
        seed: Seed of the public hash functions. It protects nothing.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid, or the search would need too much memory.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> collection = local.heavy_hitters(length=4, epsilon=1)
        >>> collection.guarantee.epsilon()
        1.0
    """
    # Theorem: each report is epsilon-DP in the local model, exactly.
    # Proof: the group is drawn without the text. Given the group, the report is local hashing of a
    #   public function of the text, which is epsilon-DP (`olh`).
    # Source: Bassily, Nissim, Stemmer, Thakurta 2017; Wang, Li, Jha 2019 (prefix extension); the
    #   sketch is the count-mean sketch of local hashing. docs/theory/local-beyond.md.
    # Needs: 1 <= length <= 64; `most` prefixes are carried from level to level, and
    #   most * 2^step candidates tried at each, at most 2^20.
    made = HeavyHitters(
        epsilon=positive("epsilon", epsilon),
        length=count("length", length),
        hashes=count("hashes", hashes),
        cell_digits=count("cell_digits", cell_digits, minimum=8),
        first=count("first", first),
        step=count("step", step),
        most=count("most", most),
        seed=count("seed", seed, minimum=0),
    )
    if made.length > _LONGEST:
        raise InvalidArgument(f"length must be at most {_LONGEST} bytes, got {made.length}.")
    if made.groups > 256:
        raise InvalidArgument(
            f"Prefix lengths times hashes must be at most 256, got {made.groups}: "
            "give a longer step or fewer hashes."
        )
    if made.cell_digits > 20 or max(made.first, made.step) > 20 or made.most << made.step > _TRIED:
        raise InvalidArgument(
            "cell_digits, first and step must be at most 20, most * 2**step at most 2**20: "
            "more takes more memory than a search should."
        )
    return made
