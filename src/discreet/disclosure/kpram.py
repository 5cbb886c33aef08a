"""k-PRAM: values are randomised inside groups of at least k records, never across.

The counts of groups stay as they are, and are released exactly: not differentially private.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, listed
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.disclosure.classes import Floats, Ints
from discreet.disclosure.matrix import Pram, pram
from discreet.disclosure.metrics import Utility, checked_edges, places, sample, utility
from discreet.disclosure.uniform import between
from discreet.noise.bits import Bits, source_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """Numbers drawn again inside their bins, with risk and utility."""

    values: Floats = field(repr=False)
    edges: Floats = field(repr=False)
    counts: Ints
    """Records in each bin, before and after."""
    utility: Utility

    @property
    def k(self) -> int:
        """The smallest bin that is not empty."""
        return int(self.counts[self.counts > 0].min())

    def __repr__(self) -> str:
        return (
            f"Redrawn({len(self.values):,} values in {len(self.counts)} bins, k = {self.k})\n"
            f"  {self.utility}\n"
            f"  chance to find a record by its bin alone: at most {1 / self.k:.3g}\n"
            "  Not differentially private: the counts of bins are exact."
        )


def k_pram(
    values: ArrayLike, *, edges: Iterable[float], k: int, bits: Bits | None = None
) -> Redrawn:
    """Replace each number by a uniform draw from its bin; every bin must hold none or k records.

    Theorem: the counts of bins do not change; with values uniform in a bin of width w, the mean
        squared error is w^2/6.
    Proof: two independent uniforms on a bin differ by w^2/6 in mean square.
    Source: Biswal 2024. B10, on a public range and with actual counts.
    Needs: all values within the edges. Not differentially private.
    """
    x, bins, least = sample("values", values), checked_edges(edges), count("k", k)
    place = places(x, bins)
    if (place < 0).any() or (place >= len(bins) - 1).any():
        raise OutOfDomain("values must lie within the first and the last edge.")
    counts = np.bincount(place, minlength=len(bins) - 1)
    if ((counts > 0) & (counts < least)).any():
        raise OutOfDomain(f"a bin holds fewer than k = {least} records: take wider bins.")
    drawn = between(bins[place], bins[place + 1], source_of(bits))
    return Redrawn(
        values=drawn, edges=bins, counts=counts, utility=utility(x, released=drawn, edges=bins)
    )


def block_pram(blocks: Sequence[tuple[Sequence[int], Sequence[Sequence[Number]]]]) -> Pram:
    """A matrix that changes categories inside groups only: pairs of codes and their matrix.

    Together the groups must hold the codes 0 .. M - 1, each once.

    >>> block_pram([([0, 1], [[0.5, 0.5], [0.5, 0.5]]), ([2], [[1]])]).categories
    3
    """
    pairs: list[Any] = [listed("blocks", block) for block in listed("blocks", blocks)]
    if any(len(pair) != 2 for pair in pairs):
        raise InvalidArgument("blocks must be pairs of codes and their matrix.")
    groups = [[count("code", code, minimum=0) for code in listed("codes", a)] for a, _ in pairs]
    codes = [code for group in groups for code in group]
    many = len(codes)
    if sorted(codes) != list(range(many)):
        raise InvalidArgument(f"blocks must hold the codes 0 to {many - 1}, each once.")
    whole = [[Fraction(0)] * many for _ in range(many)]
    for group, (_, matrix) in zip(groups, pairs, strict=True):
        inner = pram(matrix).matrix
        if len(inner) != len(group):
            raise InvalidArgument("the matrix of a block must have a row for each of its codes.")
        for i, row in zip(group, inner, strict=True):
            for j, entry in zip(group, row, strict=True):
                whole[i][j] = entry
    return pram(whole)


def group_sizes(codes: ArrayLike, *, matrix: Pram) -> Ints:
    """Records in each block of a block matrix: the smallest is the k that block PRAM achieves."""
    if not isinstance(matrix, Pram):
        raise InvalidArgument(f"matrix must be a Pram, got {type(matrix).__name__}.")
    try:
        array = np.asarray(codes)
    except ValueError:  # lists of different lengths
        array = np.empty(0)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise OutOfDomain("codes must be a list of at least one whole number.")
    if not 0 <= array.min() <= array.max() < matrix.categories:
        raise OutOfDomain(f"codes must lie from 0 to {matrix.categories - 1}.")
    linked = np.array([[entry > 0 for entry in row] for row in matrix.matrix])
    linked |= linked.T | np.eye(len(linked), dtype=np.bool_)
    # Reachability by squaring: blocks are what is connected.
    for _ in range(max(1, (len(linked) - 1).bit_length())):
        linked = (linked.astype(np.int64) @ linked.astype(np.int64)) > 0
    block = np.unique(linked.argmax(axis=1), return_inverse=True)[1]
    return np.bincount(block[array.astype(np.int64)], minlength=int(block.max()) + 1)
