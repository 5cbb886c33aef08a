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
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.boundary.values import as_whole, listed, numeric_array
from discreet.core._rational import Number
from discreet.core._validate import as_tuple, count, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import number, short
from discreet.core.tabular import Record
from discreet.disclosure._disclosure_risk import UtilityLoss, checked_edges, places, sample, utility
from discreet.disclosure._k_noise import between
from discreet.disclosure.generalization_hierarchy import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers
from discreet.query.result import Result, records

# ── PRAM
# ───────────────────────────────────────────────────────────────────────────────────────────


Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

_LARGEST = 1 << 62
_SHOWN = 8
_MOST_CATEGORIES = 1000
_CLOSE = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True, kw_only=True)
class PramEstimate(Result):
    """Original counts, estimated from randomized counts.

    Attributes:
        counts: Estimated counts. They are unbiased if `unique`, and may be negative.
        projected: Nearest counts that are not negative.
        covariance: Covariance matrix of the estimate.
        unique: Whether the matrix is regular. Otherwise the counts are the shortest of many
            solutions.

    Examples:
        >>> from discreet import disclosure
        >>> matrix = disclosure.symmetric_pram(0.8, categories=2)
        >>> matrix.estimate([50, 50]).counts.round(1).tolist()
        [50.0, 50.0]
    """

    counts: Floats
    projected: Floats
    covariance: Floats = field(repr=False)
    unique: bool

    @property
    def std(self) -> Floats:
        """Standard deviation of each count, for the estimated composition."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the estimated count of each category.

        Args:
            confidence: Probability with which each interval holds, if errors are normal.

        Returns:
            One record for each: category, value, std, low and high.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> from discreet import disclosure
            >>> found = disclosure.pram([[0.8, 0.2], [0.2, 0.8]]).estimate([70, 30])
            >>> [round(row["value"], 1) for row in found.rows()]
            [83.3, 16.7]
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        reach = NormalDist().inv_cdf((1 + inside) / 2) * self.std
        keys = ((place,) for place in range(len(self.counts)))
        low, high = self.counts - reach, self.counts + reach
        return records(("category",), keys, value=self.counts, std=self.std, low=low, high=high)

    def __repr__(self) -> str:
        pairs = list(zip(self.counts.tolist(), self.std.tolist(), strict=True))
        shown = ", ".join(
            f"{number(count, error=std)} ± {number(std, error=std)}"
            for count, std in pairs[:_SHOWN]
        )
        shown += ", ..." if len(pairs) > _SHOWN else ""
        note = "" if self.unique else "; the matrix is singular: one of many solutions"
        return f"counts before PRAM: {shown}{note}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PRAM:
    """A randomization of categories by public matrices. Made by `pram`.

    The method is called post-randomization (PRAM).

    Args:
        stages: Matrices that are applied one after another. Row k holds the probabilities of what
            category k becomes.

    Examples:
        >>> from discreet import disclosure
        >>> matrix = disclosure.pram([[0.9, 0.1], [0.2, 0.8]])
        >>> matrix.categories
        2
    """

    stages: tuple[Matrix, ...] = field(repr=False)

    @property
    def categories(self) -> int:
        """Number of categories."""
        return len(self.stages[0])

    @property
    def matrix(self) -> Matrix:
        """Exact probability of each released category, given the original one.

        Rows are original categories and columns are released categories.
        """
        return reduce(_product, self.stages)

    @property
    def floats(self) -> Floats:
        """The matrix in double precision."""
        return reduce(np.matmul, [np.array(stage, dtype=np.float64) for stage in self.stages])

    @property
    def local_epsilon(self) -> float:
        """Local privacy loss of one released category, infinite if the matrix has a zero.

        It is the largest log-ratio of two entries of a column, and says nothing about other columns
        of the row. For a guarantee use `discreet.randomized_response`.
        """
        P = self.floats
        low, high = P.min(axis=0), P.max(axis=0)
        if (low[high > 0] == 0).any():
            return math.inf
        largest = float(np.log(high[high > 0] / low[high > 0]).max())
        # Sums of positive products: each step loses less than one unit in the last place.
        return largest + 1e-15 * len(P) * len(self.stages) if largest > 0 else 0.0

    def apply(self, codes: ArrayLike, *, rng: RandomSource | None = None) -> Ints:
        """Randomize categories, each independently of the others.

        Args:
            codes: Categories as integers, from 0 to `categories - 1`.
            rng: Random source. By default the operating system's.

        Returns:
            The randomized categories, with exactly the probabilities of the matrix.

        Raises:
            OutOfDomain: A code is not an integer or is outside the range.

        Privacy:
            Each category satisfies local DP with `local_epsilon`. Other columns of the same row are
            not protected.

        Examples:
            >>> from discreet import disclosure
            >>> matrix = disclosure.symmetric_pram(0.8, categories=3)
            >>> len(matrix.apply([0, 1, 2, 2]))
            4
        """
        values = _codes(codes, self.categories)
        source = resolve_rng(rng)
        for stage in self.stages:
            values = _drawn(values, stage, source)
        return values

    def expected(self, counts: ArrayLike) -> Floats:
        """Compute the expected counts after randomization.

        Args:
            counts: Original counts, one per category.

        Returns:
            One expected count per category.

        Raises:
            OutOfDomain: `counts` does not have one non-negative number per category.

        Examples:
            >>> from discreet import disclosure
            >>> disclosure.symmetric_pram(0.8, categories=2).expected([100, 0]).round(6).tolist()
            [80.0, 20.0]
        """
        return self.floats.T @ _counts(counts, self.categories)

    def estimate(self, counts: ArrayLike) -> PramEstimate:
        """Estimate original counts from randomized counts.

        Args:
            counts: Randomized counts, one per category.

        Returns:
            The estimated counts with their covariance.

        Raises:
            OutOfDomain: `counts` does not have one non-negative number per category.

        Examples:
            >>> from discreet import disclosure
            >>> matrix = disclosure.symmetric_pram(0.8, categories=2)
            >>> matrix.estimate([68, 32]).counts.round(1).tolist()
            [80.0, 20.0]

        References:
            Gouweleeuw, Kooiman, Willenborg and De Wolf (1998).
            [Proof](../theory/theorems.md#disclosure._pram.PRAM.estimate).
        """
        # Theorem: unbiased if the matrix is regular.
        # Proof: E[counts] = P^T T; solve for T.
        # Source: Gouweleeuw, Kooiman, Willenborg, De Wolf 1998. B9.
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
        """Compute the covariance of the estimate for given original counts.

        Args:
            counts: Original counts, one per category.

        Returns:
            The covariance matrix of the estimated counts.

        Raises:
            OutOfDomain: `counts` does not have one non-negative number per category.

        Examples:
            >>> from discreet import disclosure
            >>> disclosure.symmetric_pram(0.8, categories=2).covariance([50, 50]).shape
            (2, 2)
        """
        # Proof: the records of category k give a multinomial with covariance
        #   T_k (diag(P_k) - P_k^T P_k); they are independent, and the estimate is linear.
        original = _counts(counts, self.categories)
        P = self.floats
        spread = np.diag(P.T @ original) - (P.T * original) @ P
        back = np.linalg.pinv(P)
        return back.T @ spread @ back

    def posterior_odds(self, counts: ArrayLike) -> Floats:
        """Compute the odds that a released category is the original one.

        Args:
            counts: Original counts, one per category.

        Returns:
            One ratio of probabilities per released category. It is infinite if no other category
            can become this one.

        Raises:
            OutOfDomain: `counts` does not have one non-negative number per category.

        Examples:
            >>> from discreet import disclosure
            >>> matrix = disclosure.symmetric_pram(0.8, categories=2)
            >>> matrix.posterior_odds([50, 50]).round(6).tolist()
            [4.0, 4.0]
        """
        original = _counts(counts, self.categories)
        P = self.floats
        own = np.diag(P) * original
        rest = P.T @ original - own
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                rest > 0, own / np.where(rest > 0, rest, 1), np.where(own > 0, np.inf, np.nan)
            )

    def invariant(self, counts: ArrayLike) -> PRAM:
        """Add a second matrix that preserves the given counts in expectation.

        Args:
            counts: Original counts, integers, one per category.

        Returns:
            A randomization in two stages. The second matrix depends on the original counts and
            reveals them to everyone who can read it.

        Raises:
            OutOfDomain: `counts` does not have one non-negative integer per category.

        Examples:
            >>> from discreet import disclosure
            >>> matrix = disclosure.symmetric_pram(0.8, categories=2).invariant([60, 40])
            >>> matrix.expected([60, 40]).round(6).tolist()
            [60.0, 40.0]

        References:
            Gouweleeuw, Kooiman, Willenborg and De Wolf (1998).
            [Proof](../theory/theorems.md#disclosure._pram.PRAM.invariant).
        """
        # Theorem: with q_lk = p_kl T_k / (T P)_l and R = P Q, T R = T.
        # Proof: (T P Q)_k = sum over l of (T P)_l p_kl T_k / (T P)_l = T_k.
        # Source: Gouweleeuw et al. 1998. B9.
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
            f"Pram({self.categories} categories, kept with chance {short(stay.min(), digits=3)} to "
            f"{short(stay.max(), digits=3)}; a category tells epsilon "
            f"{short(self.local_epsilon)} of its original)"
        )


def pram(matrix: Sequence[Sequence[Number]]) -> PRAM:
    """Create a post-randomization (PRAM) from a matrix.

    Args:
        matrix: Square matrix. Row k holds the probabilities of what category k becomes. Decimal
            numbers are read exactly, so 0.8 is 4/5, and rows must sum to 1 up to 10**-12.

    Returns:
        A randomization with `apply(codes)`, `estimate(counts)` and `local_epsilon`.

    Raises:
        InvalidArgument: The matrix is not square, or a row does not sum to 1.

    Privacy:
        Each category satisfies local DP with `local_epsilon`. Other columns of the same row are not
        protected.

    Examples:
        >>> from discreet import disclosure
        >>> matrix = disclosure.pram([[0.8, 0.2], [0.2, 0.8]])
        >>> round(matrix.local_epsilon, 3)
        1.386

    See Also:
        `discreet.randomized_response`: the same idea with a guarantee.
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
    """Create a PRAM that keeps each category with the same probability.

    Args:
        chance: Probability that a category is kept. Otherwise it becomes one of the others, all
            equally likely.
        categories: Number of categories, from 2 to 1000.

    Returns:
        The randomization.

    Raises:
        InvalidArgument: `chance` is not a probability, or the number of categories is outside its
            range.

    Examples:
        >>> from discreet import disclosure
        >>> round(disclosure.symmetric_pram(0.75, categories=4).local_epsilon, 3)
        2.197
    """
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
    """Codes read one by one: their content appears in no error and no warning."""
    array = numeric_array(codes)
    if array is None:
        kinds = int | np.integer
        listed_codes = listed(codes)
        read = [as_whole(v) if isinstance(v, kinds) else None for v in listed_codes]
        plain = [-1 if v is None or not 0 <= v < categories else v for v in read]
        array = np.array(plain, dtype=np.int64)
    elif array.ndim != 1 or array.dtype.kind not in "iu":
        array = np.array([-1])
    if array.size and not 0 <= array.min() <= array.max() < categories:
        raise OutOfDomain(f"codes must be a list of whole numbers from 0 to {categories - 1}.")
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
class KPramRelease(Result):
    """Numbers that were redrawn inside their bins (k-PRAM).

    Attributes:
        values: Released values.
        edges: Edges of the bins.
        counts: Number of records in each bin, before and after.
        utility: Errors of the released values.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.k_pram([1, 2, 6, 7], edges=[0, 5, 10], k=2).k
        2
    """

    values: Floats = field(repr=False)
    edges: Floats = field(repr=False)
    counts: Ints
    utility: UtilityLoss

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no interval is meant
        """List the released values.

        Args:
            confidence: Without effect: each value was drawn again in its bin.

        Returns:
            One record for each: record, value, std, low and high, the last three None.

        Examples:
            >>> from discreet import disclosure
            >>> len(disclosure.k_pram([1, 2, 6, 7], edges=[0, 5, 10], k=2).rows())
            4
        """
        keys = ((place,) for place in range(len(self.values)))
        return records(("record",), keys, value=self.values)

    @property
    def k(self) -> int:
        """Size of the smallest bin that is not empty."""
        return int(self.counts[self.counts > 0].min())

    def __repr__(self) -> str:
        return (
            f"{len(self.values):,} values by k-PRAM in {len(self.counts)} bins, k = {self.k}\n"
            f"  {self.utility}\n"
            f"  chance to find a record by its bin alone: at most {short(1 / self.k, digits=3)}\n"
            "  Not differentially private: the counts of bins are exact."
        )


def k_pram(
    values: ArrayLike, *, edges: Iterable[float], k: int, rng: RandomSource | None = None
) -> KPramRelease:
    """Replace each number by a uniform draw from its bin (k-PRAM).

    Args:
        values: Values to release.
        edges: Public edges of the bins, in increasing order. All values must lie between the first
            and the last edge.
        k: Smallest number of records that a bin may hold, unless it is empty.
        rng: Random source. By default the operating system's.

    Returns:
        The released values with the counts of the bins and the utility.

    Raises:
        OutOfDomain: A value lies outside the edges, or a bin holds fewer than k records.
        InvalidArgument: The edges do not increase, or `k` is not a positive integer.

    Privacy:
        Not differentially private: the counts of the bins are released exactly.

    Examples:
        >>> from discreet import disclosure
        >>> release = disclosure.k_pram([1, 2, 6, 7], edges=[0, 5, 10], k=2)
        >>> release.counts.tolist()
        [2, 2]

    References:
        Biswal (2024). [Proof](../theory/theorems.md#disclosure._pram.k_pram).
    """
    # Theorem: the counts of bins do not change; with values uniform in a bin of width w, the mean
    #   squared error is w^2/6.
    # Proof: two independent uniforms on a bin differ by w^2/6 in mean square.
    # Source: Biswal 2024. B10, on a public range and with actual counts.
    # Needs: all values within the edges. Not differentially private.
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
    """Create a PRAM that changes categories only within groups.

    Args:
        blocks: Pairs of codes and their matrix. Together the groups must contain the codes 0 to
            `categories - 1`, each once.

    Returns:
        The randomization.

    Raises:
        InvalidArgument: A code is missing or repeated, or a matrix does not fit its codes.

    Privacy:
        Not differentially private: the counts of the groups are released exactly.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.block_pram([([0, 1], [[0.5, 0.5], [0.5, 0.5]]), ([2], [[1]])]).categories
        3

    See Also:
        `group_sizes`.
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
    """Count the records in each group of a block PRAM.

    Args:
        codes: Categories as integers, from 0 to `categories - 1`.
        matrix: Randomization, for example made by `block_pram`.

    Returns:
        One number per group. The smallest is the k that the block PRAM achieves.

    Raises:
        InvalidArgument: `matrix` is not a PRAM.
        OutOfDomain: `codes` is empty or contains a code outside the range.

    Examples:
        >>> from discreet import disclosure
        >>> matrix = disclosure.block_pram([([0, 1], [[0.5, 0.5], [0.5, 0.5]]), ([2], [[1]])])
        >>> disclosure.group_sizes([0, 1, 1, 2, 2], matrix=matrix).tolist()
        [3, 2]
    """
    if not isinstance(matrix, PRAM):
        raise InvalidArgument(f"matrix must be a Pram, got {type(matrix).__name__}.")
    array = _codes(codes, matrix.categories)
    if not array.size:
        raise OutOfDomain("codes must be a list of at least one whole number.")
    linked = np.array([[entry > 0 for entry in row] for row in matrix.matrix])
    linked |= linked.T | np.eye(len(linked), dtype=np.bool_)
    # Reachability by squaring: blocks are what is connected.
    for _ in range(max(1, (len(linked) - 1).bit_length())):
        linked = (linked.astype(np.int64) @ linked.astype(np.int64)) > 0
    block = np.unique(linked.argmax(axis=1), return_inverse=True)[1]
    return np.bincount(block[array], minlength=int(block.max()) + 1)
