"""Subset selection: a report is a random set of fixed size that is likelier to hold the own item.

A set is sent as a bitmap, or as a list of its members in increasing order if that takes less than
half the bytes. Which of the two depends on public parameters only.

Everything is drawn as if the own category were number 0, and 0 and the own category change places
at the end: so neither what is drawn nor the time it takes depends on the value. First a uniform set
of ``chosen - 1`` others, then one more member: number 0, or a uniform one of the others that are
left, by the coin. Both are drawn before the coin is used.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Enclosure, Number, ceil_div, light_share
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.unary_encoding import ones_by_position
from discreet.local.randomizer import Reports, Tally, codes, coin_check, pack, padded, unpack
from discreet.mechanisms.mechanism import Certificate
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers

# ── Reports that form a block design ─────────────────────────────────────────────────────────────
# A report is a block: a set of ``chosen`` of ``points`` points. Every point lies in equally many
# blocks, and so does every pair and every triple of points (a 3-design: all sets of a size, or all
# flats of one dimension over two elements). A client sends a block with its own point with
# probability ``keep``, uniform among those, and otherwise a block without it, uniform among those.
# The error follows from this alone. Oracles of this kind differ in how many bytes a block takes.


class BlockOracle(FrequencyOracle):
    """A randomizer whose report is a block, e^epsilon times likelier if it holds the own point."""

    # Theorem: a report is epsilon-DP in the local model, exactly. Its supports have means `keep`
    #   and `other`, and the error of every sum of estimates is that of `range_variance`.
    # Proof: if N blocks hold a point and M do not, N / M = chosen / (points - chosen), and a block
    #   has probability keep / N or (1 - keep) / M, of ratio e^epsilon. Second moments of supports
    #   given the value involve the own point and two others: counted by the design. Full proof:
    #   theory page "Oracles of the local model".
    # Source: Ye, Barg 2018 for all sets of a size; Feldman, Nelson, Nguyen, Talwar 2022 for
    #   designs.

    @property
    @abstractmethod
    def points(self) -> int:
        """Number of points of the design: at least the categories."""

    @property
    @abstractmethod
    def chosen(self) -> int:
        """Number of points of a block."""

    @property
    def _odds(self) -> float:
        """Of a report that does not hold the client's own category."""
        # Beyond 700 doubles hold no difference.
        rarer = math.exp(-min(float(self.epsilon), 700.0))
        return (self.points - self.chosen) / self.chosen * rarer

    @property
    def _miss(self) -> float:
        """Probability that a report does not hold the client's own category."""
        return self._odds / (1 + self._odds)

    @property
    def keep(self) -> float:
        return 1 / (1 + self._odds)

    @property
    def other(self) -> float:
        # F47: chosen - 1 or chosen points are left for the other points, by the own coin.
        return (self.chosen - 1 + self._miss) / (self.points - 1)

    @property
    def _covariances(self) -> tuple[float, float]:
        """Of the supports of own and other, and of two others.

        A block has a constant size, so each row of the covariances adds up to zero.
        """
        with_own = -self.keep * self._miss / (self.points - 1)
        if self.points == 2:
            return with_own, 0.0
        return with_own, -(self.other * (1 - self.other) + with_own) / (self.points - 2)

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n of the estimated share of ``length`` categories, holding ``share``. F47.

        Conditional on the data, exact, and zero for all points together.
        """
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        one = self.other * (1 - self.other)
        with_own, others = self._covariances
        inside = self.keep * self._miss + (r - 1) * (one + 2 * with_own + (r - 2) * others)
        outside = r * (one + (r - 1) * others)
        law = (f * inside + (1 - f) * outside) / (self.keep - self.other) ** 2
        return np.maximum(law, 0.0)  # for all points together what is left is rounding

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """The same once all shares were moved alike so that they add up to one. F15.

        Exact, whatever the data. Proof: the range has weights 1 - r/k inside and -r/k outside,
        that add up to zero. With w the weight of the own point, the others' add up to -w.
        """
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        with_own, others = self._covariances
        beside = self.other * (1 - self.other) - others
        own = self.keep * self._miss - 2 * with_own + others - beside
        part = r / self.categories
        weight = f * (1 - part) ** 2 + (1 - f) * part**2
        law = (weight * own + r * (1 - part) * beside) / (self.keep - self.other) ** 2
        return np.maximum(law, 0.0)

    def contrast_variance(self) -> float:
        """Variance times n of a contrast of unit length between equally frequent categories."""
        # Proof: with equal shares 1/k all variances are alike, and all covariances; a contrast has
        #   the one less the other.
        k = self.categories
        with_own, others = self._covariances
        diagonal = (self.keep * self._miss + (k - 1) * self.other * (1 - self.other)) / k
        beside = (2 * with_own + (k - 2) * others) / k
        return (diagonal - beside) / (self.keep - self.other) ** 2

    def _lie(self, precision: int) -> Enclosure:
        """Enclose the probability of a block without the own point."""
        light = self.points - self.chosen
        return light_share(self.epsilon, precision, light=light, heavy=self.chosen)

    def certify(self) -> Certificate:
        """The divergence of the reports of two clients, from the coin."""
        part, light = f"blocks of {self.chosen} of {self.points} points", self.points - self.chosen
        check = coin_check(part, self._lie, epsilon=self.epsilon, light=light, heavy=self.chosen)
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()


# ── Subset selection ─────────────────────────────────────────────────────────────────────────────


_MOST_CATEGORIES = 1 << 24
# Bytes of bitmaps, and members of lists, that are worked on at once.
_CHUNK = 1 << 22
_ONE = np.uint8(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(BlockOracle):
    """A uniform set of ``chosen`` categories, e^epsilon times likelier if it holds the own one."""

    kind: ClassVar[str] = "subset_selection"
    categories: int
    epsilon: Fraction
    chosen: int

    @property
    def points(self) -> int:
        return self.categories

    @property
    def digits(self) -> int:
        """Binary digits of a category."""
        return (self.categories - 1).bit_length()

    @property
    def listed(self) -> bool:
        """Whether a report is a list of members instead of a bitmap."""
        return 2 * self.chosen * self.digits < self.categories

    @property
    def width(self) -> int:
        return ceil_div(self.chosen * self.digits if self.listed else self.categories, 8)

    @property
    def size(self) -> int:
        return self.categories

    @property
    def _step(self) -> int:
        """Reports worked on at once."""
        return max(1, _CHUNK // (self.chosen * 8 if self.listed else self.width))

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories, "chosen": self.chosen}

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client, exactly of the stated law."""
        own = codes(value, self.categories)
        source = resolve_rng(rng)
        reports = np.empty((len(own), self.width), dtype=np.uint8)
        for start in range(0, len(own), self._step):
            part = slice(start, start + self._step)
            lies = bernoulli_real(self._lie, len(own[part]), source)
            draw = self._list if self.listed else self._bitmap
            reports[part] = draw(own[part], ~lies, source)
        return reports

    def _list(self, own: Ints, held: NDArray[np.bool_], rng: RandomSource) -> Reports:
        members = _distinct(len(own), self.chosen, self.categories, rng)
        clients = np.arange(len(own))
        extra = uniform_integers(self.chosen, len(own), rng)
        members[clients, extra] = np.where(held, 0, members[clients, extra])
        # Number 0 and the own category change places.
        mine = own[:, None].astype(np.int32)
        members = np.where(members == 0, mine, np.where(members == mine, 0, members))
        members.sort(axis=1)
        return pack(members.T.astype(np.int64), [self.digits] * self.chosen)

    def _bitmap(self, own: Ints, held: NDArray[np.bool_], rng: RandomSource) -> Reports:
        maps = _subsets(len(own), self.chosen - 1, self.categories, rng)
        clients = np.arange(len(own))
        extra = np.where(held, 0, _outsiders(maps, self.categories, rng))
        maps[clients, extra >> 3] |= _mask(extra)
        # Number 0 and the own category change places: both flip if they differ.
        mine = maps[clients, own >> 3] >> (own & 7).astype(np.uint8) & _ONE
        differ = mine ^ held
        maps[:, 0] ^= differ
        maps[clients, own >> 3] ^= differ << (own & 7).astype(np.uint8)
        return maps

    def tally(self, reports: Reports) -> Tally:
        """Count members; what is not a set of the right size in its canonical form is refused."""
        counts = np.zeros(self.categories, dtype=np.int64)
        accepted = 0
        for start in range(0, len(reports), self._step):
            rows = reports[start : start + self._step]
            if self.listed:
                members = self._members(rows)
                counts += np.bincount(members.ravel(), minlength=self.categories)
                accepted += members.shape[1]
            else:
                rows = rows[(_sizes(rows) == self.chosen) & ~padded(rows, self.categories)]
                counts += ones_by_position(rows)[: self.categories]
                accepted += len(rows)
        return Tally(counts, accepted, len(reports) - accepted)

    def _members(self, rows: Reports) -> Ints:
        """Members of the lists that are well formed, as columns."""
        members = unpack(rows, [self.digits] * self.chosen)
        formed = ~padded(rows, self.chosen * self.digits) & (members[-1] < self.categories)
        formed &= (members[1:] > members[:-1]).all(axis=0)
        return members[:, formed]

    def __repr__(self) -> str:
        return (
            f"subset_selection({self.guarantee!r}, categories={self.categories}, "
            f"chosen={self.chosen})"
        )


def subset_selection(
    *, categories: int, epsilon: Number, chosen: int | None = None
) -> SubsetSelection:
    """Create subset selection (SS), the frequency oracle with the least error.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`. At most 2**24.
        epsilon: Privacy loss of one report.
        chosen: Number of categories that a report names. If None, the one with the least error.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.subset_selection(categories=16, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: a report is epsilon-DP in the local model, exactly; the error is that of F47.
    # Proof: a set with the own category has probability e^epsilon times that of one without, for
    #   every client alike; all sets of a size are a 3-design, so the rest is `BlockOracle`'s.
    # Source: Ye, Barg 2018; Wang, Huang, Nie, Wang, Xu, Yang 2019. F47, F49.
    # Needs: 2 <= categories <= 2^24, epsilon > 0, 1 <= chosen < categories.
    size = count("categories", categories, minimum=2)
    if size > _MOST_CATEGORIES:
        raise InvalidArgument(
            f"categories must be at most {_MOST_CATEGORIES}, got {size}; use olh() for more."
        )
    loss = positive("epsilon", epsilon)
    if chosen is None:
        # The ideal size is seldom whole: the law decides between its neighbors.
        ideal = math.floor(size / (math.exp(min(float(loss), 700.0)) + 1))
        sizes = [k for k in (ideal, ideal + 1) if 1 <= k < size]
        options = [SubsetSelection(categories=size, epsilon=loss, chosen=k) for k in sizes]
        return min(options, key=SubsetSelection.contrast_variance)
    given = count("chosen", chosen)
    if given >= size:
        raise InvalidArgument(f"chosen must be below categories={size}, got {given}.")
    return SubsetSelection(categories=size, epsilon=loss, chosen=given)


def _distinct(rows: int, chosen: int, categories: int, rng: RandomSource) -> NDArray[np.int32]:
    """Uniform sets of ``chosen`` of the numbers 1 .. categories - 1, each in increasing order."""
    # Proof: what is equal to another is drawn again until nothing is. Renaming the numbers renames
    #   the outcome and changes no probability, so all sets are alike.
    drawn = 1 + uniform_integers(categories - 1, rows * chosen, rng)
    members = drawn.astype(np.int32).reshape(rows, chosen)
    members.sort(axis=1)
    todo = np.arange(rows)
    while todo.size:
        part = members[todo]
        again = np.zeros(part.shape, dtype=np.bool_)
        again[:, 1:] = part[:, 1:] == part[:, :-1]
        repeated = again.any(axis=1)
        todo, part, again = todo[repeated], part[repeated], again[repeated]
        part[again] = 1 + uniform_integers(categories - 1, int(again.sum()), rng)
        part.sort(axis=1)
        members[todo] = part
    return members


def _subsets(rows: int, chosen: int, categories: int, rng: RandomSource) -> Reports:
    """Bitmaps of uniform sets of ``chosen`` of the numbers 1 .. categories - 1."""
    # Proof: independent coins of any one probability, then uniform members leave or uniform
    #   others join until the size is right. Renaming the numbers renames the outcome and changes no
    #   probability, so all sets of the size are alike.
    maps = packed_bernoulli(_start(chosen, categories), rows=rows, columns=categories, rng=rng)
    maps[:, 0] &= np.uint8(0xFE)
    missing = chosen - _sizes(maps)
    _flip(maps, missing, categories, rng, joining=True)
    _flip(maps, -missing, categories, rng, joining=False)
    return maps


def _flip(maps: Reports, times: Ints, categories: int, rng: RandomSource, *, joining: bool) -> None:
    """Let ``times`` uniform others of each set join it (or members leave), one after the other."""
    width, flat = maps.shape[1], maps.reshape(-1)
    todo = np.flatnonzero(times > 0)
    first, left = todo * width, times[todo]
    while left.size:
        drawn = _digits(left.size, categories, rng)
        place, mask = first + np.minimum(drawn >> 3, width - 1), _mask(drawn)
        found = flat[place]
        fits = ((found & mask) == 0) == joining
        # Number 0 stays out, and so do the numbers past the end that a draw may show.
        fits &= (drawn > 0) & (drawn < categories)
        flat[place] = found ^ mask * fits
        left -= fits
        open_ones = np.flatnonzero(left)
        first, left = first[open_ones], left[open_ones]


def _digits(size: int, categories: int, rng: RandomSource) -> NDArray[Any]:
    """Uniform numbers of as many binary digits as categories need."""
    digits = (categories - 1).bit_length()
    if digits <= 16 and rng.width == 64:
        words = rng.words(ceil_div(size, 4)).view(np.uint16)[:size]
        return words & np.uint16((1 << digits) - 1)
    return uniform_integers(1 << digits, size, rng)


def _outsiders(maps: Reports, categories: int, rng: RandomSource) -> Ints:
    """For each bitmap a uniform one of the numbers 1 .. categories - 1 that are not in it."""
    found = np.empty(len(maps), dtype=np.int64)
    todo = np.arange(len(maps))
    while todo.size:
        drawn = 1 + uniform_integers(categories - 1, todo.size, rng)
        found[todo] = drawn
        todo = todo[maps[todo, drawn >> 3] & _mask(drawn) != 0]
    return found


def _start(chosen: int, categories: int) -> Fraction:
    """Probability of a coin of the first draft of a set: any will do, this one is fast.

    A draw finds somebody who may join more often than somebody who may leave, so a draft had
    better be too small: the deviation at which both cost the same.
    """
    share = chosen / categories
    if not 0 < share < 1:
        return Fraction(int(share > 0))
    spread = math.sqrt(share * (1 - share) / categories)
    better = min(max(share - spread * NormalDist().inv_cdf(1 - share), 0.0), 1.0)
    return Fraction(round(better * (1 << 16)), 1 << 16)


def _mask(numbers: Ints) -> Reports:
    return np.left_shift(_ONE, (numbers & 7).astype(np.uint8))


def _sizes(maps: Reports) -> Ints:
    """Members of each bitmap."""
    words = maps.view(np.uint64) if maps.shape[1] % 8 == 0 and maps.flags.c_contiguous else maps
    sizes: Ints = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return sizes
