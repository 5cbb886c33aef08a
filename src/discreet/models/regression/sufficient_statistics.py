"""Noisy moments of rows and targets: one release that serves every model fitted from it (K39).

    plan = plan_sufficient_statistics(lattice, epsilon=1, delta=1e-6)  # nothing is read
    moments = plan.release(sum_moments(rows, x, y), rows=rows)  # the only step that reads rows

The matrix of products gets independent noise in all its entries, and is then averaged with its
transpose: the variance is sigma^2 on the diagonal and sigma^2/2 off it, the least that the
sensitivity allows (K9, shape c).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import Ints, MomentSums, RowLattice, RowMap
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import BudgetChange, QueryBudget, budget

SQUARES_SHARE = Fraction(1, 20)
SCALING_SHARE = Fraction(1, 5)
SCALED = ("features", "targets")
"""What is scaled privately, in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedStatistic:
    """A released statistic and what it costs."""

    name: str
    guarantee: Guarantee

    @property
    def mu(self) -> float:
        """How many deviations of its noise one step of the relation moves it, at most."""
        event = self.guarantee.event
        if not isinstance(event, events.DiscreteGaussianEvent):
            raise Unsupported("Only discrete Gaussian noise has a mu here.")
        return math.sqrt(event.shift_squared / event.variance)

    def __str__(self) -> str:
        return f"{self.name}: mu {self.mu:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisySufficientStatistics:
    """Noisy Gram matrix, products with the targets, sums of squares, and rows: all public.

    In mapped units: features lie in the unit ball, targets between -1 and 1, and the first column
    is the intercept, a constant, if there is one. ``rows`` is noisy unless the relation makes it
    public; of weighted rows it is the sum of their squared weights. The columns that are left after
    `subset` are named by their places in ``kept``.
    """

    map: RowMap = field(repr=False)
    gram: Floats = field(repr=False)
    cross: Floats = field(repr=False)
    squares: Floats | None = field(repr=False)
    rows: float
    sigma: float
    """Noise of the Gram matrix: on its diagonal; off it, divided by the root of two."""
    sigma_cross: float
    sigma_squares: float | None
    sigma_rows: float
    """Zero where the number of rows is public."""
    kept: tuple[int, ...]
    guarantee: Guarantee
    relation: NeighboringRelation
    released: tuple[ReleasedStatistic, ...] = field(repr=False)
    smallest: float | None = field(default=None, repr=False)
    """The noisy smallest eigenvalue of the whole matrix, if AdaSSP asked for it."""
    sigma_smallest: float | None = None
    published_log: float | None = None
    """The logarithm in the published constants, if these were used."""

    @property
    def columns(self) -> int:
        """Columns of the matrix, with the intercept."""
        return len(self.gram)

    @property
    def intercept(self) -> float:
        """The constant in the first column, or 0 if there is none."""
        grid = self.map.lattice
        return grid.intercept / grid.steps

    def subset(self, features: Sequence[int]) -> NoisySufficientStatistics:
        """The moments of some features (and the intercept): post-processing, at no cost (K39)."""
        many = self.map.lattice.features
        chosen = [count("features", place, minimum=0) for place in features]
        if len(set(chosen)) != len(chosen) or any(place >= many for place in chosen):
            raise InvalidArgument(f"features must be different places below {many}.")
        places = [self.kept.index(place) for place in chosen if place in self.kept]
        if len(places) != len(chosen):
            raise InvalidArgument("features must be among those that are left in these moments.")
        first = self.columns - len(self.kept)
        index = [*range(first), *(first + place for place in places)]
        return replace(
            self,
            gram=self.gram[np.ix_(index, index)],
            cross=self.cross[index],
            kept=tuple(chosen),
        )

    def full(self, theta: Floats) -> Floats:
        """Coefficients of all columns, with zeros for those that were left out."""
        grid = self.map.lattice
        first = grid.columns - grid.features
        found = np.zeros((grid.columns, grid.outputs))
        found[:first] = theta[:first]
        found[[first + place for place in self.kept]] = theta[first:]
        return found

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Slopes and intercepts in original units, of mapped coefficients."""
        return self.map.coefficients(self.full(theta))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SufficientStatisticsPlan:
    """Lattice and noise of a release of moments, before a row is read."""

    lattice: RowLattice
    relation: NeighboringRelation
    max_rows_per_unit: int = 1
    joint: AdditiveMechanism
    """For the Gram matrix, the products and the count, together."""
    squares: AdditiveMechanism | None
    smallest: AdditiveMechanism | None = None
    """For the smallest eigenvalue of the Gram matrix (K11)."""
    published_log: float | None = None
    scaling: tuple[AdditiveMechanism, ...] = ()
    """For what is released first, to find centers and scales: part of the whole guarantee."""

    @property
    def released(self) -> tuple[ReleasedStatistic, ...]:
        """Each statistic with its cost."""
        also = "" if self.lattice.intercept or self.rows_public else ", number of rows"
        found = [
            *(
                ReleasedStatistic(
                    name=f"histograms of {SCALED[i % 2]}, round {i // 2 + 1}", guarantee=g
                )
                for i, g in enumerate(one.guarantee for one in self.scaling)
            ),
            ReleasedStatistic(name=f"X'X and X'y{also}", guarantee=self.joint.guarantee),
        ]
        if self.squares is not None:
            found.append(ReleasedStatistic(name="y'y", guarantee=self.squares.guarantee))
        if self.smallest is not None:
            name = "smallest eigenvalue of X'X"
            found.append(ReleasedStatistic(name=name, guarantee=self.smallest.guarantee))
        return tuple(found)

    @property
    def guarantee(self) -> Guarantee:
        """What everything costs together (K31)."""
        first, *others = (one.guarantee for one in self.released)
        return sum(others, start=first)

    @property
    def rows_public(self) -> bool:
        """Whether the relation makes the number of rows public.

        A unit of several rows may be replaced by one with fewer: units are then public, rows not.
        """
        return self.relation is not NeighboringRelation.ADD_REMOVE and self.max_rows_per_unit == 1

    @property
    def sigma(self) -> float:
        """Noise of the Gram matrix in mapped units."""
        return self.joint.std / self.lattice.steps**2

    @property
    def sigma_cross(self) -> float:
        """Noise of the products with the targets in mapped units."""
        return self.joint.std / (self.lattice.steps * self.lattice.target_steps)

    @property
    def sigma_squares(self) -> float | None:
        """Noise of the sums of squares in mapped units; None if they are not released."""
        return None if self.squares is None else self.squares.std / self.lattice.target_steps**2

    @property
    def sigma_rows(self) -> float:
        """Noise of the number of rows; zero where it is public."""
        if self.rows_public:
            return 0.0
        return self.joint.std / (self.lattice.intercept**2 or self.lattice.count_steps)

    def release(
        self, sums: MomentSums, *, rows: RowMap, rng: RandomSource | None = None
    ) -> NoisySufficientStatistics:
        """Exact private sums in, noisy public moments out.

        Theorem: the released numbers keep `guarantee` under the plan's relation.
        Proof: the vector of all entries of X'X, X'y and the count is whole and moves by at most
            ``lattice.joint`` in squared norm, that of y'y by ``lattice.squares``; both mechanisms
            add discrete Gaussian noise that their own laws certify for these moves, together; all
            else is a function of what they release.
        Source: K9, K31, K33, K36; docs/theory/regression.md.
        Needs: sums of rows that this lattice's `RowMap` coded.
        """
        grid = self.lattice
        if rows.lattice != grid:
            raise InvalidArgument("rows must be coded on the lattice of the plan.")
        if sums.rows > grid.most_rows:
            raise OutOfDomain("The sums of so many rows do not fit 64 bits.")
        source = resolve_rng(rng)
        d, k = grid.columns, grid.outputs
        exact = [sums.total[:d, :d].ravel(), sums.total[:d, d:].ravel()]
        counted = not self.rows_public and grid.count_steps > 0
        if counted:
            exact.append(np.array([sums.rows * grid.count_steps], dtype=np.int64))
        noisy = np.asarray(self.joint.release(np.concatenate(exact), rng=source), dtype=np.float64)
        matrix = noisy[: d * d].reshape(d, d)
        squares = None
        if self.squares is not None:
            own = self.squares.release(sums.total.diagonal()[d:].copy(), rng=source)
            squares = np.asarray(own, dtype=np.float64) / grid.target_steps**2
        smallest = None
        if self.smallest is not None:
            least = _smallest_eigenvalue(sums.total[:d, :d], rows=sums.rows)
            smallest = float(self.smallest.release(least, rng=source)) / grid.steps**2
        weighted = rows.mapping == "weighted"
        if self.rows_public and not weighted:
            many = float(sums.rows)
        else:
            many = noisy[-1] / grid.count_steps if counted else matrix[0, 0] / grid.intercept**2
        return NoisySufficientStatistics(
            map=rows,
            gram=(matrix + matrix.T) / (2 * grid.steps**2),
            cross=noisy[d * d : d * d + d * k].reshape(d, k) / (grid.steps * grid.target_steps),
            squares=squares,
            rows=float(many),
            sigma=self.sigma,
            sigma_cross=self.sigma_cross,
            sigma_squares=self.sigma_squares,
            sigma_rows=self.joint.std / grid.intercept**2 if weighted else self.sigma_rows,
            kept=tuple(range(grid.features)),
            guarantee=self.guarantee,
            relation=self.relation,
            released=self.released,
            smallest=smallest,
            sigma_smallest=None if self.smallest is None else self.smallest.std / grid.steps**2,
            published_log=self.published_log,
        )

    def certify(self) -> Certificate:
        """Recompute the guarantees of the noises from their exact laws."""
        own = (self.joint, self.squares, self.smallest, *self.scaling)
        parts = [one for one in own if one is not None]
        checks = tuple(found for part in parts for found in part.certify().checks)
        return Certificate(mechanism="moments", guarantee=self.guarantee, checks=checks).demand()


def _smallest_eigenvalue(gram: Ints, *, rows: int) -> int:
    """Rounded down; zero or above.

    Theorem: one row moves it by at most ``row_squared`` (Weyl), and with the rounding of doubles by
        at most a part 2**-10 more.
    Proof: the computed value is off by at most ``4 d 2**-52`` times the largest eigenvalue, which
        is at most ``rows * row_squared``; twice that is below ``2**-10 row_squared`` as long as
        ``rows * d <= 2**38``. Rounding two numbers down moves them apart by less than one.
    Source: K4, K11.
    """
    if rows * len(gram) > 1 << 38:
        raise OutOfDomain("AdaSSP takes at most 2**38 entries: use another method.")
    return max(0, math.floor(float(np.linalg.eigvalsh(gram.astype(np.float64))[0])))


def eigenvalue_sensitivity(lattice: RowLattice, *, max_rows_per_unit: int = 1) -> BudgetChange:
    """How far a unit moves the smallest eigenvalue, as computed."""
    row = lattice.row_squared
    furthest = max_rows_per_unit * (row + (row >> 10) + 1)
    return BudgetChange(l1=furthest, l2_squared=furthest**2)


def moment_sensitivities(
    lattice: RowLattice, *, relation: NeighboringRelation, max_rows_per_unit: int = 1
) -> tuple[BudgetChange, BudgetChange]:
    """How far a unit moves the joint vector, and the sums of squares.

    Theorem: a unit of m rows moves each at most m times as far as one row.
    Proof: its rows are added (or replaced) one after the other; triangle inequality. Where a unit
        is replaced by one with more rows or fewer, some are added: that moves the vector, with the
        count, less far than a replaced row, by ``17/16 T^4 + T^2 V^2`` at most.
    """
    times = count("max_rows_per_unit", max_rows_per_unit) ** 2
    joint, squares = lattice.joint(relation) * times, lattice.squares() * times
    return BudgetChange(l1=joint, l2_squared=joint), BudgetChange(l1=squares, l2_squared=squares)


def plan_sufficient_statistics(  # noqa: PLR0913 - the budget and how it is split
    lattice: RowLattice,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    max_rows_per_unit: int = 1,
    squares_share: Number = SQUARES_SHARE,
    smallest_share: Number = 0,
    scaling: Sequence[tuple[BudgetChange, Fraction]] = (),
    scaling_share: Number = SCALING_SHARE,
) -> SufficientStatisticsPlan:
    """Noise for moments on a lattice: epsilon with delta, or rho.

    ``squares_share`` of the budget goes to the sums of squares of the targets, which standard
    errors need; 0 leaves them out. ``smallest_share`` goes to the smallest eigenvalue, for AdaSSP;
    ``scaling_share`` to the vectors that move by ``scaling`` and are released first, each with its
    part of that share.
    """
    amount = gaussian_budget(epsilon=epsilon, delta=delta, rho=rho)
    parts = {
        "squares": probability("squares_share", squares_share, one=False),
        "smallest": probability("smallest_share", smallest_share, one=False),
        "scaling": probability("scaling_share", scaling_share, one=False, zero=not scaling),
    }
    if not scaling:
        parts["scaling"] = Fraction(0)
    left = 1 - sum(parts.values(), start=Fraction(0))
    if left <= 0:
        raise InvalidArgument("The shares must leave something for the moments themselves.")
    joint, squares = moment_sensitivities(
        lattice, relation=relation, max_rows_per_unit=max_rows_per_unit
    )
    wanted = [(joint, left), *((one, parts["scaling"] * part) for one, part in scaling)]
    if parts["squares"]:
        wanted.append((squares, parts["squares"]))
    if parts["smallest"]:
        wanted.append(
            (
                eigenvalue_sensitivity(lattice, max_rows_per_unit=max_rows_per_unit),
                parts["smallest"],
            )
        )
    noises = list(
        gaussians(
            amount,
            [move for move, _ in wanted],
            shares=[share for _, share in wanted],
            relation=relation,
        )
    )
    return SufficientStatisticsPlan(
        lattice=lattice,
        relation=relation,
        max_rows_per_unit=max_rows_per_unit,
        joint=noises[0],
        scaling=tuple(noises[1 : 1 + len(scaling)]),
        smallest=noises.pop() if parts["smallest"] else None,
        squares=noises.pop() if parts["squares"] else None,
    )


def gaussian_budget(
    *, epsilon: Number | None, delta: Number | None, rho: Number | None
) -> QueryBudget:
    """A budget for Gaussian noise."""
    found = budget(epsilon=epsilon, delta=delta, rho=rho)
    if found.rho is None and found.delta is None:
        raise InvalidArgument("delta must be given with epsilon: the noise is Gaussian. Or rho.")
    return found


def gaussians(
    amount: QueryBudget,
    wanted: Sequence[BudgetChange],
    *,
    shares: Sequence[Fraction],
    relation: NeighboringRelation,
) -> tuple[AdditiveMechanism, ...]:
    """Discrete Gaussian mechanisms that cost the amount together."""
    return _calibrated(amount, tuple(wanted), tuple(shares), relation)


@lru_cache(maxsize=64)
def _calibrated(
    amount: QueryBudget,
    wanted: tuple[BudgetChange, ...],
    shares: tuple[Fraction, ...],
    relation: NeighboringRelation,
) -> tuple[AdditiveMechanism, ...]:
    """Found once for the same public numbers: simulations and folds plan the same again."""
    noises = amount.mechanisms(wanted, shares=shares, relation=relation)
    found = tuple(one for one in noises if isinstance(one, AdditiveMechanism))
    if len(found) != len(noises):
        raise Unsupported("Only additive noise is planned here.")
    return found
