"""Noisy moments of rows and targets: one release that serves every model fitted from it.

    plan = plan_sufficient_statistics(lattice, epsilon=1, delta=1e-6)  # nothing is read
    moments = plan.release(sum_moments(rows, x, y), rows=rows)  # the only step that reads rows

The matrix of products gets independent noise in all its entries, and is then averaged with its
transpose: the variance is sigma^2 on the diagonal and sigma^2/2 off it, the least that the
sensitivity allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import Handed, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate, DrawCheck
from discreet.models._model_inputs import Floats
from discreet.models.regression._residual_rounds import (
    COARSE,
    LEVELS,
    residual_norm,
    residual_products,
    steps_of,
)
from discreet.models.regression._row_lattice import (
    CHUNK,
    Ints,
    MomentSums,
    RowLattice,
    RowMap,
    sum_moments,
)
from discreet.models.regression._row_sources import RowSource, exact_sums
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import BudgetChange, Noise, QueryBudget, budget

SQUARES_SHARE = Fraction(1, 20)
SCALING_SHARE = Fraction(1, 5)
# Residuals are clipped at so many of their deviations.
_RESIDUAL = 4.0
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
        if isinstance(self.guarantee.event, events.DiscreteGaussianEvent):
            return f"{self.name}: mu {short(self.mu)}"
        return f"{self.name}: {describe_epsilon(self.guarantee)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisySufficientStatistics:
    """Released moments: noisy Gram matrix, products with targets, squares and count.

    All numbers are in mapped units: features lie in the unit ball, targets between -1 and 1, and
    the first column is the intercept, if there is one.

    Attributes:
        map: Map of the rows.
        gram: Noisy Gram matrix.
        cross: Noisy products of columns with targets.
        squares: Noisy sums of squares of the targets, or None.
        rows: Number of rows, noisy unless the relation makes it public. For weighted rows, the sum
            of squared weights.
        sigma: Standard deviation of the noise on the diagonal of the Gram matrix. Off the diagonal
            it is smaller by a factor of √2.
        sigma_cross: Standard deviation of the noise of the products.
        sigma_squares: Standard deviation of the noise of the sums of squares, or None.
        sigma_rows: Standard deviation of the noise of the count, zero if it is public.
        kept: Indices of the features that are left after `subset`.
        guarantee: Privacy guarantee of the release.
        relation: Neighboring relation.
        released: Each released statistic with its cost.
        smallest: Noisy smallest eigenvalue, if it was released for AdaSSP.
        sigma_smallest: Standard deviation of its noise.
        published_log: Logarithm in the published constants, if these were used.
        scores: For each target, the noisy sum of products of columns times the squared residual of
            the row: the covariance of what the coefficients solve. None if it was not released.
        sigma_scores: For each target, the standard deviation of its noise on the diagonal.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> model.moments_.columns
        3
    """

    map: RowMap = field(repr=False)
    gram: Floats = field(repr=False)
    cross: Floats = field(repr=False)
    squares: Floats | None = field(repr=False)
    rows: float
    sigma: float
    sigma_cross: float
    sigma_squares: float | None
    sigma_rows: float
    kept: tuple[int, ...]
    guarantee: Guarantee
    relation: NeighboringRelation
    released: tuple[ReleasedStatistic, ...] = field(repr=False)
    smallest: float | None = field(default=None, repr=False)
    sigma_smallest: float | None = None
    published_log: float | None = None
    scores: Floats | None = field(default=None, repr=False)
    sigma_scores: Floats | None = None

    @property
    def columns(self) -> int:
        """Number of columns of the matrix, with the intercept."""
        return len(self.gram)

    @property
    def intercept(self) -> float:
        """The constant in the first column, or 0 if there is none."""
        grid = self.map.lattice
        return grid.intercept / grid.steps

    def subset(self, features: Sequence[int]) -> NoisySufficientStatistics:
        """Keep the moments of some features, and the intercept.

        Args:
            features: Indices of the features to keep.

        Returns:
            The smaller moments.

        Raises:
            InvalidArgument: An index is repeated, too large, or was removed before.

        Privacy:
            Post-processing. It costs no budget.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.moments_.subset([1]).columns
            2
        """
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
            # Residuals of fewer columns are others.
            scores=None,
            sigma_scores=None,
        )

    def full(self, theta: Floats) -> Floats:
        """Insert zeros for the features that were removed.

        Args:
            theta: Coefficients of the remaining columns, columns x outputs.

        Returns:
            Coefficients of all columns.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> from discreet.models import regression
            >>> part = model.moments_.subset([1])
            >>> part.full(regression.project_psd(part).theta).shape
            (3, 1)
        """
        grid = self.map.lattice
        first = grid.columns - grid.features
        found = np.zeros((grid.columns, grid.outputs))
        found[:first] = theta[:first]
        found[[first + place for place in self.kept]] = theta[first:]
        return found

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Convert mapped coefficients to original units.

        Args:
            theta: Coefficients of the remaining columns, columns x outputs.

        Returns:
            Slopes, outputs x features, and intercepts.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> slopes, intercepts = model.moments_.coefficients(model.solution_.theta)
            >>> slopes.shape
            (1, 2)
        """
        return self.map.coefficients(self.full(theta))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SufficientStatisticsPlan:
    """The noise of a release of moments, before a row is read.

    Args:
        lattice: Lattice of the mapped rows.
        relation: Neighboring relation.
        max_rows_per_unit: Largest number of rows per privacy unit.
        joint: Mechanism for the Gram matrix, the products and the count together.
        squares: Mechanism for the sums of squares of the targets, or None.
        smallest: Mechanism for the smallest eigenvalue, or None.
        published_log: Logarithm in the published constants, if these are used.
        scaling: Mechanisms for the private scaling that is released first.
        residuals: Mechanism for the products of columns times squared residuals, or None. They are
            released last.

    Examples:
        >>> from discreet.models import regression
        >>> lattice = regression.RowLattice.of(features=2)
        >>> plan = regression.plan_sufficient_statistics(lattice, rho=1)
        >>> len(plan.released)
        2
    """

    lattice: RowLattice
    relation: NeighboringRelation
    max_rows_per_unit: int = 1
    joint: AdditiveMechanism
    squares: AdditiveMechanism | None
    smallest: AdditiveMechanism | None = None
    published_log: float | None = None
    scaling: tuple[AdditiveMechanism, ...] = ()
    residuals: AdditiveMechanism | None = None

    @property
    def released(self) -> tuple[ReleasedStatistic, ...]:
        """Each statistic that is released, with its cost."""
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
        if self.residuals is not None:
            name = "X'X times squared residuals"
            found.append(ReleasedStatistic(name=name, guarantee=self.residuals.guarantee))
        return tuple(found)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of everything that is released."""
        first, *others = (one.guarantee for one in self.released)
        return sum(others, start=first)

    @property
    def rows_public(self) -> bool:
        """Whether the relation makes the number of rows public.

        With several rows per unit the number of units is public, but not the number of rows.
        """
        return self.relation is not NeighboringRelation.ADD_REMOVE and self.max_rows_per_unit == 1

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of the Gram matrix, in mapped units."""
        return self.joint.std / self.lattice.steps**2

    @property
    def sigma_cross(self) -> float:
        """Standard deviation of the noise of the products with targets, in mapped units."""
        return self.joint.std / (self.lattice.steps * self.lattice.target_steps)

    @property
    def sigma_squares(self) -> float | None:
        """Standard deviation of the noise of the sums of squares, or None.

        It is in mapped units.
        """
        return None if self.squares is None else self.squares.std / self.lattice.target_steps**2

    @property
    def sigma_rows(self) -> float:
        """Standard deviation of the noise of the number of rows, zero if it is public."""
        if self.rows_public:
            return 0.0
        return self.joint.std / (self.lattice.intercept**2 or self.lattice.count_steps)

    def release(
        self, sums: MomentSums, *, rows: RowMap, rng: RandomSource | None = None
    ) -> NoisySufficientStatistics:
        """Release noisy moments of exact sums.

        Args:
            sums: Exact sums, from `sum_moments`.
            rows: Map with which the rows were coded.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy moments.

        Raises:
            InvalidArgument: `rows` has another lattice than the plan.
            OutOfDomain: AdaSSP was given more than 2**38 numbers.

        Privacy:
            The release satisfies `guarantee` under the plan's relation. This method charges no
            account; `PrivateLinearRegression` does.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> from discreet.models import regression
            >>> rows = model.moments_.map
            >>> plan = regression.plan_sufficient_statistics(rows.lattice, rho=1)
            >>> plan.release(regression.sum_moments(rows, X, X[:, :1]), rows=rows).columns
            3

        References:
            [Theory](../theory/regression.md).
        """
        # Theorem: the released numbers keep `guarantee` under the plan's relation.
        # Proof: the vector of all entries of X'X, X'y and the count is whole and moves by at most
        #   `lattice.joint` in squared norm, that of y'y by `lattice.squares`; both mechanisms
        #   add discrete Gaussian noise that their own laws certify for these moves, together; all
        #   else is a function of what they release.
        # Source: K9, K31, K33, K36; docs/theory/regression.md.
        # Needs: sums of rows that this lattice's `RowMap` coded.
        grid = self.lattice
        if rows.lattice != grid:
            raise InvalidArgument("rows must be coded on the lattice of the plan.")
        source = resolve_rng(rng)
        d, k = grid.columns, grid.outputs
        exact = [sums.total[:d, :d].ravel(), sums.total[:d, d:].ravel()]
        counted = not self.rows_public and grid.count_steps > 0
        if counted:
            exact.append(np.array([sums.rows * grid.count_steps]))
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

    def release_residuals(
        self,
        moments: NoisySufficientStatistics,
        rows: RowSource,
        *,
        theta: Floats,
        rng: RandomSource | None = None,
    ) -> NoisySufficientStatistics:
        """Release products of columns times squared residuals, for standard errors.

        Args:
            moments: Moments that `release` returned.
            rows: The rows.
            theta: Coefficients that the residuals belong to, columns x outputs.
            rng: Random source. By default the operating system's.

        Returns:
            The moments, with `scores`.

        Raises:
            Unsupported: The plan has no noise for it, or the moments have no sums of squares.

        Privacy:
            Costs what `residuals` says, which is part of `guarantee`. `theta` must be a function of
            what was released.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model.fit(X, X @ [1, -0.5]).moments_.scores.shape  # a fit calls this
            (1, 3, 3)
        """
        # Theorem: as private as `residuals`; clips and coefficients are functions of released
        #   moments, so composition is adaptive.
        # Proof: `residual_products`; a replaced row moves the sum by at most root two times as far,
        #   because the products of two positive semidefinite matrices are not negative.
        if self.residuals is None or moments.squares is None:
            raise Unsupported("The plan has no noise for residuals.")
        grid, source = self.lattice, resolve_rng(rng)
        spread = np.sqrt(residual_variance(moments, theta))
        largest = [max(1, round(grid.target_steps * min(1.0, _RESIDUAL * s))) for s in spread]
        clips = tuple(largest)
        piece = partial(residual_products, steps_of(theta, grid), clips)
        coded = partial(_coded, piece, moments.map)
        exact = exact_sums(rows, coded, size=grid.outputs * grid.columns**2)
        noisy = np.asarray(self.residuals.release(exact, rng=source), dtype=np.float64)
        unit = np.square(np.array(clips) / grid.target_steps) * COARSE**2 / (LEVELS * grid.steps**2)
        found = noisy.reshape(grid.outputs, grid.columns, grid.columns) * unit[:, None, None]
        return replace(
            moments,
            scores=(found + found.transpose(0, 2, 1)) / 2,
            sigma_scores=self.residuals.std * unit,
        )

    def certify(self) -> Certificate:
        """Recompute the guarantees of the noises, and how far one row moves them.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy its guarantee.

        Examples:
            >>> from discreet.models import regression
            >>> lattice = regression.RowLattice.of(features=2)
            >>> regression.plan_sufficient_statistics(lattice, rho=1).certify().holds
            True
        """
        own = (self.joint, self.squares, self.smallest, *self.scaling, self.residuals)
        found = [one.certify() for one in own if one is not None]
        return Certificate(
            mechanism="moments",
            guarantee=self.guarantee,
            checks=tuple(check for one in found for check in one.checks),
            drawn=(*(look for one in found for look in one.drawn), *self._moved()),
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        """Rows as long as they may be, added and turned around: what the noises are handed."""
        grid = self.lattice
        rows = RowMap(
            lattice=grid,
            mapping="ball",
            lower=np.full(grid.features, -np.inf),
            upper=np.full(grid.features, np.inf),
            center=np.zeros(grid.features),
            scale=np.ones(grid.features),
            radius=1.0,
            target_center=np.zeros(grid.outputs),
            target_half=np.ones(grid.outputs),
        )
        ends = np.zeros((4, grid.features))
        ends[0, 0], ends[1, -1], ends[2, 0] = 2.0, 2.0, -2.0
        sums = [
            sum_moments(rows, x[None, :], np.full((1, grid.outputs), y))
            for x in ends
            for y in (-1.0, 1.0)
        ]
        nobody = MomentSums(np.zeros_like(sums[0].total), 0)
        handed = [self._handed(one, rows) for one in (nobody, *sums)]
        added = self.relation is NeighboringRelation.ADD_REMOVE
        pairs = [(handed[0], one) for one in handed[1:]] if added else combinations(handed[1:], 2)
        worst: dict[str, float] = {}
        for one, other in pairs:
            for name in one:
                gap = np.abs(one[name] - other[name])
                size = float(gap.sum()) if self._named(name).name == "laplace" else float(gap @ gap)
                worst[name] = max(worst.get(name, 0.0), size)
        return (
            *(
                moves(f"{name}, one row", size, float(self._named(name).sensitivity))
                for name, size in worst.items()
            ),
            *self._moved_residuals(rows, ends),
        )

    def _moved_residuals(self, rows: RowMap, ends: Floats) -> tuple[DrawCheck, ...]:
        """The same of squared residuals, for coefficients of zero: then those are the targets."""
        if self.residuals is None:
            return ()
        grid = self.lattice
        theta, clips = np.zeros((grid.columns, grid.outputs)), (grid.target_steps,) * grid.outputs
        one = [
            residual_products(theta, clips, rows.codes(x[None, :], np.ones((1, grid.outputs))))
            for x in ends
        ]
        if self.relation is NeighboringRelation.ADD_REMOVE:
            gaps = one
        else:
            gaps = [a - b for a, b in combinations(one, 2)]
        worst = max(float(np.square(gap.astype(np.float64)).sum()) for gap in gaps)
        return (moves("residuals, one row", worst, float(self.residuals.sensitivity)),)

    def _named(self, name: str) -> AdditiveMechanism:
        noise = getattr(self, name)
        assert isinstance(noise, AdditiveMechanism)  # noqa: S101 - only those that are there
        return noise

    def _handed(self, sums: MomentSums, rows: RowMap) -> dict[str, Floats]:
        """What a release hands to each of its noises."""
        own = {name: getattr(self, name) for name in ("joint", "squares", "smallest")}
        noted = {name: Handed(one) for name, one in own.items() if one is not None}
        with_stand_in(self, **noted).release(sums, rows=rows)
        return {name: np.ravel(one.handed).astype(np.float64) for name, one in noted.items()}


def _smallest_eigenvalue(gram: Ints, *, rows: int) -> int:
    """Rounded down; zero or above."""
    # Theorem: one row moves it by at most `row_squared` (Weyl), and with the rounding of doubles by
    #   at most a part 2**-10 more.
    # Proof: the computed value is off by at most `4 d 2**-52` times the largest eigenvalue, which
    #   is at most `rows * row_squared`; twice that is below `2**-10 row_squared` as long as
    #   `rows * d <= 2**38`. Rounding two numbers down moves them apart by less than one.
    # Source: K4, K11.
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
    """How far a unit moves the joint vector, and the sums of squares."""
    # Theorem: a unit of m rows moves each at most m times as far as one row.
    # Proof: its rows are added (or replaced) one after the other; triangle inequality. Where a unit
    #   is replaced by one with more rows or fewer, some are added: that moves the vector, with the
    #   count, less far than a replaced row, by `17/16 T^4 + T^2 V^2` at most.
    times = count("max_rows_per_unit", max_rows_per_unit) ** 2
    joint, squares = lattice.joint(relation) * times, lattice.squares() * times
    return BudgetChange(l1=joint, l2_squared=joint), BudgetChange(l1=squares, l2_squared=squares)


def residual_sensitivity(
    lattice: RowLattice, *, relation: NeighboringRelation, max_rows_per_unit: int = 1
) -> BudgetChange:
    """How far a unit moves the products of columns times squared residuals, of all outputs."""
    # Theorem, proof: `residual_products`, `release_residuals`; m rows move it m times as far.
    times = count("max_rows_per_unit", max_rows_per_unit) ** 2
    if relation is not NeighboringRelation.ADD_REMOVE:
        times *= 2
    move = lattice.outputs * residual_norm(lattice) ** 2 * times
    return BudgetChange(l1=move, l2_squared=move)


def residual_variance(moments: NoisySufficientStatistics, theta: Floats) -> Floats:
    """Variance of the residuals of each output: estimated, and one deviation of its error more."""
    assert moments.squares is not None  # noqa: S101 - checked by the callers
    assert moments.sigma_squares is not None  # noqa: S101 - checked by the callers
    free = max(moments.rows - len(theta), 1.0)
    fitted = np.einsum("ik,ij,jk->k", theta, moments.gram, theta)
    total = moments.squares - 2 * np.einsum("ik,ik->k", theta, moments.cross) + fitted
    found = np.maximum(total, 0.0) / free
    norm = np.square(theta).sum(axis=0)
    error = np.hypot(
        np.hypot(moments.sigma_squares, 2 * np.sqrt(norm) * moments.sigma_cross),
        norm * moments.sigma,
    )
    return np.asarray(np.minimum(1.0, found + np.hypot(error / free, found * math.sqrt(2 / free))))


def _coded(piece: Callable[[Floats], Ints], rows: RowMap, x: Floats, y: Floats) -> Ints:
    """``piece`` of the codes of rows, a chunk at a time."""
    total: Ints | None = None
    for start in range(0, max(len(x), 1), CHUNK):
        part = piece(rows.codes(x[start : start + CHUNK], y[start : start + CHUNK]))
        total = part if total is None else total + part
    assert total is not None  # noqa: S101 - there is at least one chunk
    return total


def plan_sufficient_statistics(  # noqa: PLR0913 - the budget and how it is split
    lattice: RowLattice,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    max_rows_per_unit: int = 1,
    squares_share: Number = SQUARES_SHARE,
    residuals_share: Number = 0,
    smallest_share: Number = 0,
    scaling: Sequence[tuple[BudgetChange, Fraction]] = (),
    scaling_share: Number = SCALING_SHARE,
) -> SufficientStatisticsPlan:
    """Plan the noise of moments for a budget.

    Args:
        lattice: Lattice of the mapped rows.
        epsilon: Privacy loss. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        relation: Neighboring relation.
        max_rows_per_unit: Largest number of rows per privacy unit.
        squares_share: Share of the budget for the sums of squares of the targets, which standard
            errors need. 0 leaves them out.
        residuals_share: Share of the budget for the products of columns times squared residuals,
            for standard errors that hold where residuals spread unequally. 0 leaves them out.
        smallest_share: Share of the budget for the smallest eigenvalue, for AdaSSP.
        scaling: Sensitivities of statistics that are released first, each with its part of
            `scaling_share`.
        scaling_share: Share of the budget for these statistics.

    Returns:
        The plan. No row is read.

    Raises:
        InvalidArgument: The budget or a share is not valid, or nothing is left for the moments.

    Privacy:
        The plan costs no budget. Its releases satisfy the budget for one privacy unit.

    Examples:
        >>> from discreet.models import regression
        >>> lattice = regression.RowLattice.of(features=2)
        >>> plan = regression.plan_sufficient_statistics(lattice, rho=1)
        >>> round(plan.guarantee.rdp(2), 3)
        2.0
    """
    amount = gaussian_budget(epsilon=epsilon, delta=delta, rho=rho)
    parts = {
        "squares": probability("squares_share", squares_share, one=False),
        "residuals": probability("residuals_share", residuals_share, one=False),
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
    if parts["residuals"]:
        moved = residual_sensitivity(
            lattice, relation=relation, max_rows_per_unit=max_rows_per_unit
        )
        wanted.append((moved, parts["residuals"]))
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
        residuals=noises.pop() if parts["residuals"] else None,
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


def mechanisms_within(
    amount: QueryBudget,
    moves: Sequence[BudgetChange],
    *,
    shares: Sequence[Fraction],
    relation: NeighboringRelation,
) -> tuple[Noise, ...]:
    """Mechanisms whose guarantee, as users ask for it, never exceeds the amount.

    They are calibrated by the delta at the amount's epsilon. The epsilon at its delta is found by
    a search of its own, from above: it may exceed the amount by a rounding, and then the noise is
    made a little wider.
    """
    made = amount.mechanisms(moves, shares=shares, relation=relation)
    if amount.epsilon is None or amount.delta is None:
        return made
    asked, less = float(amount.epsilon), Fraction(1, 1 << 20)
    while True:
        first, *others = (one.guarantee for one in made)
        if sum(others, start=first).epsilon(float(amount.delta)) <= asked:
            return made
        lower = QueryBudget(epsilon=amount.epsilon * (1 - less), delta=amount.delta)
        made, less = lower.mechanisms(moves, shares=shares, relation=relation), 2 * less


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
    noises = mechanisms_within(amount, wanted, shares=shares, relation=relation)
    found = tuple(one for one in noises if isinstance(one, AdditiveMechanism))
    if len(found) != len(noises):
        raise Unsupported("Only additive noise is planned here.")
    return found
