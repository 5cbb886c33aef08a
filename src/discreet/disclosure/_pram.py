"""Post-randomization (PRAM): categories are changed at random, by a published matrix; and k-PRAM.

The original counts can be estimated from the matrix without bias. Posterior odds and the ratio of
the entries in a column of the matrix measure what an attacker learns about one record. k-PRAM
randomizes inside groups of at least k records, never across: the counts of groups are released
exactly, which is not differentially private.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import as_tuple, count, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.disclosure._disclosure_risk import UtilityLoss, checked_edges, places, sample, utility
from discreet.disclosure._k_noise import between
from discreet.disclosure.generalization_hierarchy import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

# ── PRAM
# ───────────────────────────────────────────────────────────────────────────────────────────


Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

_LARGEST = 1 << 62
_SHOWN = 8
_MOST_CATEGORIES = 1000
_CLOSE = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True, kw_only=True)
class PramEstimate:
    """Original counts as they follow from randomized ones.

    ``counts`` are unbiased if ``unique``; otherwise the matrix is singular, and they are the
    shortest of many solutions. ``projected`` are the nearest counts that are not negative.
    """

    counts: Floats
    projected: Floats
    covariance: Floats = field(repr=False)
    unique: bool

    @property
    def std(self) -> Floats:
        """Standard deviation of each count, for the estimated composition."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def __repr__(self) -> str:
        pairs = list(zip(self.counts, self.std, strict=True))
        shown = ", ".join(f"{count:.1f} ± {std:.1f}" for count, std in pairs[:_SHOWN])
        shown += ", ..." if len(pairs) > _SHOWN else ""
        note = "" if self.unique else "; the matrix is singular: one of many solutions"
        return f"Estimate({shown}{note})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PRAM:
    """Categories 0 .. M - 1, changed by one matrix after another. Made by `pram`."""

    stages: tuple[Matrix, ...] = field(repr=False)

    @property
    def categories(self) -> int:
        """How many categories there are."""
        return len(self.stages[0])

    @property
    def matrix(self) -> Matrix:
        """Row k, column l: the exact chance that category k is released as l."""
        return reduce(_product, self.stages)

    @property
    def floats(self) -> Floats:
        """The matrix in double precision."""
        return reduce(np.matmul, [np.array(stage, dtype=np.float64) for stage in self.stages])

    @property
    def local_epsilon(self) -> float:
        """The largest logarithm of a ratio of two entries of a column; infinite with a zero.

        What one released category tells about the original one. It says nothing about other
        columns of the same row; for a guarantee use `discreet.randomized_response`.
        """
        P = self.floats
        low, high = P.min(axis=0), P.max(axis=0)
        if (low[high > 0] == 0).any():
            return math.inf
        largest = float(np.log(high[high > 0] / low[high > 0]).max())
        # Sums of positive products: each step loses less than one unit in the last place.
        return largest + 1e-15 * len(P) * len(self.stages) if largest > 0 else 0.0

    def apply(self, codes: ArrayLike, *, rng: RandomSource | None = None) -> Ints:
        """Randomize codes 0 .. M - 1, each on its own, with exactly the stated chances."""
        values = _codes(codes, self.categories)
        source = resolve_rng(rng)
        for stage in self.stages:
            values = _drawn(values, stage, source)
        return values

    def expected(self, counts: ArrayLike) -> Floats:
        """Expected counts after randomization: P^T T."""
        return self.floats.T @ _counts(counts, self.categories)

    def estimate(self, counts: ArrayLike) -> PramEstimate:
        """Original counts from randomized ones, with their covariance (estimated, too).

        Theorem: unbiased if the matrix is regular.
        Proof: E[counts] = P^T T; solve for T.
        Source: Gouweleeuw, Kooiman, Willenborg, De Wolf 1998. B9.
        """
        seen = _counts(counts, self.categories)
        P = self.floats
        unique = bool(np.linalg.matrix_rank(P) == len(P))
        found = np.linalg.pinv(P.T) @ seen
        projected = _simplex(found, float(seen.sum()))
        return PramEstimate(
            counts=found,
            projected=projected,
            covariance=self.covariance(projected),
            unique=unique,
        )

    def covariance(self, counts: ArrayLike) -> Floats:
        """Covariance of the estimate if these are the original counts.

        Proof: the records of category k give a multinomial with covariance
        T_k (diag(P_k) - P_k^T P_k); they are independent, and the estimate is linear.
        """
        original = _counts(counts, self.categories)
        P = self.floats
        spread = np.diag(P.T @ original) - (P.T * original) @ P
        back = np.linalg.pinv(P)
        return back.T @ spread @ back

    def posterior_odds(self, counts: ArrayLike) -> Floats:
        """For each released category the odds that it is the original one: p_ll t_l / the rest."""
        original = _counts(counts, self.categories)
        P = self.floats
        own = np.diag(P) * original
        rest = P.T @ original - own
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                rest > 0, own / np.where(rest > 0, rest, 1), np.where(own > 0, np.inf, np.nan)
            )

    def invariant(self, counts: ArrayLike) -> PRAM:
        """The matrix followed by a second that keeps these counts in expectation: T R = T.

        The second matrix is made of the original counts, which it tells to whoever reads it.

        Theorem: with q_lk = p_kl T_k / (T P)_l and R = P Q, T R = T.
        Proof: (T P Q)_k = sum over l of (T P)_l p_kl T_k / (T P)_l = T_k.
        Source: Gouweleeuw et al. 1998. B9.
        """
        original = _whole(counts, self.categories)
        P = self.matrix
        second = []
        for l in range(self.categories):  # noqa: E741 - as in the formula
            weights = [row[l] * t for row, t in zip(P, original, strict=True)]
            total = sum(weights, Fraction(0))
            # A category that nothing becomes keeps itself.
            own = [Fraction(int(k == l)) for k in range(self.categories)]
            second.append(tuple(w / total for w in weights) if total else tuple(own))
        return PRAM(stages=(*self.stages, tuple(second)))

    def __repr__(self) -> str:
        stay = np.diag(self.floats)
        return (
            f"Pram({self.categories} categories, kept with chance {stay.min():.3g} to "
            f"{stay.max():.3g}; a category tells epsilon {self.local_epsilon:.4g} of its original)"
        )


def pram(matrix: Sequence[Sequence[Number]]) -> PRAM:
    """Post-randomization by a matrix: row k holds the chances of what category k becomes.

    Entries are read as the rationals a person means (0.8 is 4/5). Rows must sum to 1; what rounded
    entries lack of it, up to 10^-12, is given to the largest entry of the row.

    >>> pram([[0.8, 0.2], [0.2, 0.8]])
    Pram(2 categories, kept with chance 0.8 to 0.8; a category tells epsilon 1.386 of its original)
    """
    rows = [
        [probability("matrix", entry) for entry in row]
        for row in (as_tuple("matrix", one) for one in as_tuple("matrix", matrix))
    ]
    if not rows or any(len(row) != len(rows) for row in rows):
        raise InvalidArgument("matrix must be square, one row for each category.")
    for row in rows:
        lack = 1 - sum(row, Fraction(0))
        if abs(lack) > _CLOSE:
            raise InvalidArgument(f"rows of matrix must sum to 1, got {float(1 - lack):g}.")
        row[row.index(max(row))] += lack
    return PRAM(stages=(tuple(map(tuple, rows)),))


def symmetric_pram(chance: Number, *, categories: int) -> PRAM:
    """Each category kept with this chance, else one of the others, all alike."""
    stay = probability("chance", chance)
    if count("categories", categories, minimum=2) > _MOST_CATEGORIES:
        raise InvalidArgument(f"categories must be at most {_MOST_CATEGORIES}, got {categories}.")
    other = (1 - stay) / (categories - 1)
    return pram([[stay if k == j else other for j in range(categories)] for k in range(categories)])


def _drawn(codes: Ints, matrix: Matrix, rng: RandomSource) -> Ints:
    """One draw for each code: a uniform whole number on the cumulated weights of its row."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(matrix) + 1))
    out = np.empty(len(codes), dtype=np.int64)
    for row, (start, stop) in enumerate(pairwise(bounds.tolist())):
        if stop > start:
            common = math.lcm(*(entry.denominator for entry in matrix[row]))
            if common > _LARGEST:
                raise InvalidArgument("matrix has entries that are too fine: round them.")
            weights = [int(entry * common) for entry in matrix[row]]
            ends = np.cumsum(np.array(weights, dtype=np.int64))
            draws = uniform_integers(common, stop - start, rng)
            out[order[start:stop]] = np.searchsorted(ends, draws, side="right")
    return out


def _product(first: Matrix, second: Matrix) -> Matrix:
    columns = list(zip(*second, strict=True))
    return tuple(
        tuple(sum((a * b for a, b in zip(row, c, strict=True)), Fraction(0)) for c in columns)
        for row in first
    )


def _codes(codes: ArrayLike, categories: int) -> Ints:
    array = np.asarray(codes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise OutOfDomain("codes must be a list of whole numbers.")
    if array.size and not 0 <= array.min() <= array.max() < categories:
        raise OutOfDomain(f"codes must lie from 0 to {categories - 1}.")
    return array.astype(np.int64)


def _counts(counts: ArrayLike, categories: int) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != (categories,) or not np.isfinite(array).all() or (array < 0).any():
        raise OutOfDomain(f"counts must be {categories} numbers that are not negative.")
    return array


def _whole(counts: ArrayLike, categories: int) -> list[int]:
    array = _counts(counts, categories)
    if (array != np.floor(array)).any():
        raise OutOfDomain("counts must be whole numbers.")
    return [int(value) for value in array]


def _simplex(values: Floats, total: float) -> Floats:
    """The nearest vector that is not negative and has this sum."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1]) if total > 0 else 0
    nearest: Floats = np.maximum(values - excess[last], 0)
    return nearest


# ── k-PRAM
# ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class KPramRelease:
    """Numbers drawn again inside their bins, with risk and utility."""

    values: Floats = field(repr=False)
    edges: Floats = field(repr=False)
    counts: Ints
    """Records in each bin, before and after."""
    utility: UtilityLoss

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
    values: ArrayLike, *, edges: Iterable[float], k: int, rng: RandomSource | None = None
) -> KPramRelease:
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
    drawn = between(bins[place], bins[place + 1], resolve_rng(rng))
    return KPramRelease(
        values=drawn, edges=bins, counts=counts, utility=utility(x, released=drawn, edges=bins)
    )


def block_pram(blocks: Sequence[tuple[Sequence[int], Sequence[Sequence[Number]]]]) -> PRAM:
    """A matrix that changes categories inside groups only: pairs of codes and their matrix.

    Together the groups must hold the codes 0 .. M - 1, each once.

    >>> block_pram([([0, 1], [[0.5, 0.5], [0.5, 0.5]]), ([2], [[1]])]).categories
    3
    """
    pairs: list[Any] = [as_tuple("blocks", block) for block in as_tuple("blocks", blocks)]
    if any(len(pair) != 2 for pair in pairs):
        raise InvalidArgument("blocks must be pairs of codes and their matrix.")
    groups = [[count("code", code, minimum=0) for code in as_tuple("codes", a)] for a, _ in pairs]
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


def group_sizes(codes: ArrayLike, *, matrix: PRAM) -> Ints:
    """Records in each block of a block matrix: the smallest is the k that block PRAM achieves."""
    if not isinstance(matrix, PRAM):
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
