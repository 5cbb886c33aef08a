"""Public cuts that divide an ordered tuple of records into areas: a chessboard, or those of a tree.

A data set has n positions of d attributes. The cuts of one position make its cells; one cell for
each position is an area. Areas are never listed here: an area is n small integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.boundary.values import as_double, numeric_array
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.distribution import Floats, Ints

LARGEST_TABLE = 10_000_000
"""Areas of a partition that may still be listed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputPartition:
    """Cuts for each position and attribute, all public; made by `chessboard` or `of_tree`."""

    # Needs: nothing of it taken from private data.

    cuts: tuple[tuple[Floats, ...], ...]
    lower: Floats
    upper: Floats
    of_a_tree: bool = False
    """Whether a value on a cut belongs below it, and values are compared in single precision."""

    def __post_init__(self) -> None:
        if not self.cuts or not self.cuts[0]:
            raise InvalidArgument("cuts must name at least one position and one attribute.")
        if any(len(row) != self.attributes for row in self.cuts):
            raise InvalidArgument("Every position of cuts must have the same attributes.")
        for row in self.cuts:
            for one in row:
                if one.ndim != 1 or not np.isfinite(one).all() or (np.diff(one) <= 0).any():
                    raise InvalidArgument("cuts must be finite, in order, and without repetition.")
        for name, ends in (("lower", self.lower), ("upper", self.upper)):
            if ends.shape != (self.positions, self.attributes) or not np.isfinite(ends).all():
                raise InvalidArgument(f"{name} must be finite, one for each position, attribute.")
        if not (self.lower < self.upper).all():
            raise InvalidArgument("lower must lie below upper.")

    @property
    def positions(self) -> int:
        """Records of a data set: n."""
        return len(self.cuts)

    @property
    def attributes(self) -> int:
        """Numbers of a record: d."""
        return len(self.cuts[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each position."""
        return tuple(math.prod(len(one) + 1 for one in row) for row in self.cuts)

    @property
    def areas(self) -> int:
        """Their number, which may be astronomical."""
        return math.prod(self.shape)

    def inside(self, data: ArrayLike) -> Floats:
        """Data sets (any number of them) within the domain; what is no number is its middle."""
        found: Floats = np.asarray(np.nan)
        with suppress(Exception):  # said below, with the shape that is wanted
            found = _entries(data)
        wanted = (self.positions, self.attributes)
        if self.attributes == 1 and found.shape[-1:] == (self.positions,):
            found = found[..., None] if found.shape[-2:] != wanted else found
        if found.ndim < 2 or found.shape[-2:] != wanted:
            raise OutOfDomain(
                f"Data sets must be numbers, {self.positions} positions of {self.attributes} "
                "attributes."
            )
        middle = self.lower / 2 + self.upper / 2
        return np.clip(np.where(np.isnan(found), middle, found), self.lower, self.upper)

    def cells(self, data: ArrayLike) -> Ints:
        """The cell of every position: an array with one axis less than the data (A4, A5, A20).

        Every data set has cells: values beyond the domain are those of its ends.
        """
        held = self.inside(data)
        if self.of_a_tree:
            held = held.astype(np.float32).astype(np.float64)
        side = "left" if self.of_a_tree else "right"
        made = np.zeros(held.shape[:-1], dtype=np.int64)
        for i, row in enumerate(self.cuts):
            for j, one in enumerate(row):
                found = np.searchsorted(one, held[..., i, j], side=side)  # type: ignore[call-overload]
                made[..., i] = made[..., i] * (len(one) + 1) + found
        return made

    def numbers(self, data: ArrayLike) -> Ints:
        """The area of each data set as one number, where the areas can be listed."""
        if self.areas > LARGEST_TABLE:
            raise InvalidArgument(
                f"The partition has {self.areas:.3g} areas, too many to be listed: use LooClip."
            )
        cells = self.cells(data)
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(cells, -1, 0)), self.shape))


def _entries(data: ArrayLike) -> Floats:
    """Return doubles of the same shape; an entry that is no number is NaN."""
    array = numeric_array(data)
    if array is not None:
        return array.astype(np.float64)
    entries = np.asarray(data, dtype=object)
    return np.array([as_double(entry) for entry in entries.ravel()]).reshape(entries.shape)


def chessboard(
    *, positions: int, parts: int, lower: float, upper: float, attributes: int = 1
) -> InputPartition:
    """Every attribute cut into equal parts (A4)."""
    n, d, m = count("positions", positions), count("attributes", attributes), count("parts", parts)
    cuts = lower + (upper - lower) * np.arange(1, m) / m
    return InputPartition(
        cuts=((cuts,) * d,) * n,
        lower=np.full((n, d), float(lower)),
        upper=np.full((n, d), float(upper)),
    )


def of_cuts(
    cuts: Sequence[Sequence[Sequence[float]]],
    *,
    lower: float,
    upper: float,
    of_a_tree: bool = False,
) -> InputPartition:
    """A partition by listed cuts, for each position and attribute."""
    made = tuple(tuple(np.unique(np.array(one, dtype=np.float64)) for one in row) for row in cuts)
    shape = (len(made), len(made[0]) if made else 0)
    return InputPartition(
        cuts=made,
        lower=np.full(shape, float(lower)),
        upper=np.full(shape, float(upper)),
        of_a_tree=of_a_tree,
    )


def of_tree(tree: Any, *, positions: int, lower: float, upper: float) -> InputPartition:
    """The grid of all thresholds of a fitted regression tree (A5).

    ``tree`` is scikit-learn's, fitted on public data sets that were flattened position by
    position. Every area lies in one leaf, so the tree is constant on it.
    """
    inner = tree.tree_
    n = count("positions", positions)
    if int(inner.n_features) % n:
        raise InvalidArgument(
            f"positions={n} must divide the {inner.n_features} columns that the tree was fitted on."
        )
    d = int(inner.n_features) // n
    cuts: list[list[list[float]]] = [[[] for _ in range(d)] for _ in range(n)]
    for feature, threshold in zip(inner.feature, inner.threshold, strict=True):
        if feature >= 0:
            cuts[feature // d][feature % d].append(float(threshold))
    return of_cuts(cuts, lower=lower, upper=upper, of_a_tree=True)
