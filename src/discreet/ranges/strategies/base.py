"""What every strategy offers: integers to measure, their sensitivity, and estimates from them.

A strategy measures groups of integers, exact linear combinations of the counts. Each group gets
independent noise of one distribution; ``noise`` is its exact variance, group by group. Estimates
are the best linear unbiased ones, so every variance is exact and known before a row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.conversion import gaussian_sigma
from discreet.boundary import rows as boundary_rows
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.query.budget import BudgetChange, QueryBudget
from discreet.ranges.workload import Workload

# ── Noise ────────────────────────────────────────────────────────────────────────────────────────
# The variance that a share of a budget buys for each group, before calibration.


Family: TypeAlias = Literal["laplace", "gaussian"]
_CONTINUOUS = 64.0
"""Above this variance a discrete Gaussian has that of its parameter, to the last bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementCost:
    """The inverse variance of the noise as a smooth function of the share of a budget."""

    family: Family
    strength: float
    """epsilon for Laplace noise; ``1 / sigma^2`` at unit sensitivity for Gaussian noise."""

    def precision(self, share: Floats, l1: Floats, l2_squared: Floats) -> Floats:
        """The inverse variance; for Gaussian noise that of its parameter, which is no more."""
        if self.family == "gaussian":
            return self.strength * share / l2_squared
        # A scale of l1 / (epsilon share): the variance is 1 / (2 sinh^2(1 / (2 scale))).
        return 2 * np.square(np.sinh(np.minimum(self.strength * share / (2 * l1), 300)))

    def slope(self, share: Floats, l1: Floats, l2_squared: Floats) -> Floats:
        """The derivative of ``precision``."""
        if self.family == "gaussian":
            return self.strength / l2_squared + 0 * share
        return self.strength / l1 * np.sinh(np.minimum(self.strength * share / l1, 600))

    def variances(self, shares: Sequence[Fraction], moves: Sequence[BudgetChange]) -> Floats:
        """The variance of the noise of each group: exact for Laplace noise and for rho.

        For (epsilon, delta) it is that of continuous noise; what is calibrated later differs by
        less than one part in a hundred.
        """
        l1 = np.array([float(move.l1) for move in moves])
        l2 = np.array([float(move.l2_squared) for move in moves])
        found = 1 / self.precision(np.array([float(share) for share in shares]), l1, l2)
        if self.family == "gaussian":
            exact = [
                DiscreteGaussian(square=Fraction(value)).variance if value < _CONTINUOUS else value
                for value in found
            ]
            return np.array(exact)
        return found


def measurement_cost(budget: QueryBudget, *, family: Family) -> MeasurementCost:
    """What a budget buys in noise of a family. Laplace noise does not need the delta."""
    if family == "laplace":
        return MeasurementCost(family=family, strength=float(budget.epsilon or 0))
    if budget.rho is not None:
        return MeasurementCost(family=family, strength=2 * float(budget.rho))
    sigma = gaussian_sigma(float(budget.epsilon or 0), delta=float(budget.delta or 0))
    return MeasurementCost(family=family, strength=sigma**-2)


def families(budget: QueryBudget) -> tuple[Family, ...]:
    """The kinds of noise that can keep a budget."""
    if budget.rho is not None:
        return ("gaussian",)
    return ("laplace",) if budget.delta is None else ("laplace", "gaussian")


def family_budget(budget: QueryBudget, *, family: Family) -> QueryBudget:
    """The budget as the mechanisms of a family take it: Laplace noise is pure."""
    return QueryBudget(epsilon=budget.epsilon) if family == "laplace" else budget


# ── Strategies ───────────────────────────────────────────────────────────────────────────────────


LARGEST_COUNT = 1 << 40
"""A cell holds no more: larger counts are clamped, which moves no pair of data sets apart."""
_LARGEST_VALUE = 1 << 61  # what a mechanism takes

Terms: TypeAlias = tuple[tuple[Floats, Floats], ...]
"""For each group the different weights of its noise in an answer, and how often each occurs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one unit may have in a histogram: so many rows, and so many in one cell (F42)."""

    rows: int = 1
    per_cell: int | None = None
    """All rows may be in one cell unless this is stated and enforced."""

    def __post_init__(self) -> None:
        check.count("rows", self.rows)
        if self.per_cell is not None:
            check.count("per_cell", self.per_cell)

    def within(self, cells: int) -> int:
        """The most rows that one unit has in so many cells."""
        return self.rows if self.per_cell is None else min(self.rows, self.per_cell * cells)


class Strategy(Protocol):
    """A structure on ``size`` cells, with the share of the budget that each group gets."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Shares of the budget; they sum to one."""

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far one step of the relation moves each group."""

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        """The exact integers of each group: private."""

    def estimate(self, noisy: Sequence[Ints], noise: Floats) -> Floats:
        """The best linear unbiased estimate of each cell."""

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        """The exact variance of the answers to ranges of cells ``a .. b``."""

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        """The mean of ``variance`` over a workload, in closed form."""

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        """The mean of ``variance`` over all ranges of each length."""

    def terms(self, a: int, b: int, noise: Floats) -> Terms:
        """The weights of the noise in the answer to one range."""

    def largest_weights(self, noise: Floats) -> Floats:
        """No noise of a group has a larger weight in any range or difference of ranges."""

    def precision(self, x: Floats, noise: Floats) -> Floats:
        """``A^T Sigma^-1 A x`` for the matrix A of what is measured."""

    def content(self) -> dict[str, Any]:
        """As JSON."""

    def describe(self) -> str:
        """In a few words."""


def group_move(
    contribution: Contribution,
    relation: NeighboringRelation,
    *,
    entries: int,
    cells: int,
    signed: bool = False,
) -> BudgetChange:
    """How far one unit moves integers of which each sums (signed: contrasts) some of the cells."""
    # Theorem: with at most `rows` rows of a unit, of which `r = within(cells)` count in one entry
    #   with one sign, adding or removing it moves the entries by at most `rows` in L1 and by
    #   `Q = floor(rows/r) r^2 + (rows mod r)^2` in squared L2; replacing it by at most twice
    #   that, or four times in squared L2 if entries are signed, and never more than what each
    #   entry can: r, or 2r if signed.
    # Proof: a row counts in one entry, by one. Each entry moves by at most r and all by at most
    #   `rows`; a sum of squares is convex, so it is largest with as many full entries as
    #   possible. To replace is to take x away and to add y of this kind: `|x - y|^2` is at most
    #   `|x|^2 + |y|^2` if no product of entries is negative, else at most twice that.
    # Source: F4, F42; docs/theory/ranges.md.
    # Needs: every row counts in exactly one entry, or in none.
    most = contribution.within(cells)
    full, rest = divmod(contribution.rows, most)
    squares = full * most**2 + rest**2
    l1, l2, each = contribution.rows, squares, most
    if central_relation(relation) is NeighboringRelation.REPLACE_ONE:
        l1, l2 = 2 * contribution.rows, (4 if signed else 2) * squares
        each = 2 * most if signed else most
    return BudgetChange(l1=min(l1, entries * each), l2_squared=min(l2, entries * each**2))


def matrix_move(contribution: Contribution, *, l1: int, l2_squared: int) -> BudgetChange:
    """How far one unit moves ``A x``, if one row, or one row replaced, moves it by these."""
    # Proof: a unit of several rows is several steps, and norms obey the triangle inequality.
    rows = contribution.rows
    return BudgetChange(l1=rows * l1, l2_squared=rows**2 * l2_squared)


def checked_shares(shares: Sequence[Fraction], groups: int) -> None:
    """Refuse shares that are not one for each group, positive, with a sum of one."""
    if len(shares) != groups or any(share <= 0 for share in shares) or sum(shares) != 1:
        raise InvalidArgument(f"shares must be {groups} positive rationals that sum to one.")


def rounded_shares(weights: Floats, *, unit: int = 4096) -> tuple[Fraction, ...]:
    """Positive rationals in proportion to the weights, with a sum of exactly one."""
    parts = weights / weights.sum() * (unit - len(weights))
    whole = np.floor(parts).astype(int) + 1
    # What flooring left over goes to those that lost most.
    order = np.argsort(parts - np.floor(parts))[::-1]
    whole[order[: unit - int(whole.sum())]] += 1
    return tuple(Fraction(int(part), unit) for part in whole)


def cells_within(counts: Ints, *, padded: int) -> Ints:
    """Counts on a padded domain, cut so that no sum of them passes what a mechanism takes.

    Cutting each cell moves no pair of data sets apart, so it needs no check of the data.
    """
    cells = np.zeros(padded, dtype=np.int64)
    np.minimum(counts, min(LARGEST_COUNT, _LARGEST_VALUE // padded), out=cells[: len(counts)])
    return cells


def read_cells(counts: ArrayLike, *, shape: tuple[int, ...], wanted: str) -> Ints:
    """The counts of all cells, each by itself; cut, which moves no pair of data sets apart."""
    found = boundary_rows.cells(counts, shape=shape, lower=0, upper=LARGEST_COUNT)
    if found is None:
        raise OutOfDomain(f"counts must be {wanted}.")
    return found


def clamp_counts(values: Ints) -> Ints:
    """Within what a mechanism takes; entry by entry, so that no distance grows."""
    return np.clip(values, -_LARGEST_VALUE, _LARGEST_VALUE)
