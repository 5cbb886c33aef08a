"""Many quantiles of a column: the middle one splits the rest, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import listed, positive, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Number
from discreet.core.relation import Relation, trusted
from discreet.mechanisms.column import Column
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.quantile_pieces import Choice
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Ints

_MOST = 1 << 10
_LARGEST_DENOMINATOR = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Mechanism):
    """Several quantiles of a column. Made by `private_quantiles`."""

    column: Column
    levels: tuple[Fraction, ...]
    epsilon: Fraction
    relation: Relation

    @property
    def depth(self) -> int:
        """How often the column is split: every row takes part in one choice each time."""
        return len(self.levels).bit_length()

    @property
    def step(self) -> Fraction:
        """The epsilon of one choice, for a row added or removed."""
        replaced = 2 if self.relation is Relation.REPLACE_ONE else 1
        return self.epsilon / (self.depth * replaced)

    @property
    def guarantee(self) -> Guarantee:
        """What one release of all of them costs."""
        one = events.BoundedRange(self.epsilon / self.depth)
        return Guarantee(events.repeat(one, self.depth), self.relation)

    @property
    def std(self) -> float:
        """A choice has no standard deviation that holds for all data."""
        raise Unsupported("A chosen quantile has no standard deviation.")

    def release(self, values: ArrayLike, *, bits: Bits | None = None) -> list[float]:
        """One number for each level, in order."""
        codes = self.column.sorted(values)
        found = [0] * len(self.levels)
        source = source_of(bits)
        self._split(codes, (0, self.column.span), (0, len(found)), found, source)
        return [self.column.number(place) for place in found]

    def _split(
        self,
        codes: Ints,
        ends: tuple[int, int],
        part: tuple[int, int],
        found: list[int],
        bits: Bits,
    ) -> None:
        """Fill in the levels of ``part``, from the values that lie between ``ends``."""
        first, last = part
        if first == last:
            return
        middle = (first + last) // 2
        below = self.levels[first - 1] if first else Fraction(0)
        above = self.levels[last] if last < len(self.levels) else Fraction(1)
        level = (self.levels[middle] - below) / (above - below)
        low, high = ends
        if low == high:
            found[first:last] = [low] * (last - first)
            return
        level = level.limit_denominator(_LARGEST_DENOMINATOR)
        choice = Choice(
            values=codes - low,
            span=high - low,
            level=level,
            climbing=True,
            rate=self.step / (2 * max(level, 1 - level)),
        )
        place = low + choice.draw(bits)
        found[middle] = place
        # A value at the split belongs to one side only.
        cut = int(np.searchsorted(codes, place))
        self._split(codes[:cut], (low, place), (first, middle), found, bits)
        self._split(codes[cut:], (place, high), (middle + 1, last), found, bits)

    def certify(self) -> Certificate:
        """Recompute the guarantee of one choice, at the hardest level."""
        single = Quantile(
            column=self.column,
            quantile=Fraction(1, 2),
            epsilon=self.step,
            method="interpolated",
            relation=Relation.ADD_REMOVE,
        )
        checks = single.certify().checks
        return Certificate(mechanism=repr(self), guarantee=self.guarantee, checks=checks).demand()

    def __repr__(self) -> str:
        return f"private_quantiles({len(self.levels)} levels; {self.guarantee!r})"


def private_quantiles(
    levels: Sequence[Number],
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    grid: Number | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> Quantiles:
    """Several quantiles of a column, in increasing order, for one epsilon.

    The middle level is chosen first, as by `private_quantile`; it splits the values, and each side
    goes on by itself. m levels cost log2(m + 1) choices, not m.

    Theorem: epsilon-DP under ``relation``.
    Proof: a row added or removed is in one part of every splitting, the parts being made by points
        that were released; so of the choices of one depth only one changes, and its log-ratio has a
        range of epsilon / depth (`private_quantile`). A replaced row changes at most two, each made
        for half of that. Depths compose.
    Source: Kaplan, Schnapp, Stemmer 2022. B48.
    Needs: levels strictly increasing, in (0, 1); public bounds and grid.

    >>> private_quantiles([0.25, 0.5, 0.75], lower=0, upper=100, epsilon=1).depth
    2
    """
    given = listed("levels", levels)
    asked = tuple(probability("levels", level, zero=False, one=False) for level in given)
    if not asked or len(asked) > _MOST or any(a >= b for a, b in pairwise(asked)):
        raise InvalidArgument("levels must be strictly increasing, from 1 to 1024 of them.")
    trusted(relation)
    return Quantiles(
        column=Column.of(lower, upper, grid),
        levels=asked,
        epsilon=positive("epsilon", epsilon),
        relation=relation,
    )
