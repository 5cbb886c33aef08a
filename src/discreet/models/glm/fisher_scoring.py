"""Noisy Fisher scoring: scores and Hessians with noise, and what they say about the coefficients.

    plan = plan_scoring(family, features=3, epsilon=1, delta=1e-6)  # nothing is read
    fitted = plan.release(rows, lower=lower, upper=upper)  # the only step that reads rows

First the columns' centers and spreads are found, from two releases of products of columns; then
each step releases the score and its derivative at the parameters so far. The last step gets most of
the budget and also releases the squares of the scores, for the covariance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import moves
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate, DrawCheck
from discreet.models._model_inputs import Floats, bounds_of
from discreet.models.glm.families import Family
from discreet.models.glm.weighted_rows import (
    LONGEST,
    MOST_FEATURES,
    NARROWEST,
    Ints,
    Units,
    WeightedRows,
    moment_sums,
    score_sums,
    sums_size,
    whole_parameters,
)
from discreet.models.regression._row_sources import RowSource, exact_sums
from discreet.models.regression.sufficient_statistics import gaussian_budget, gaussians
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import BudgetChange

# Shares of the budget: two looks at the columns, steps, and the last step.
_LOOKS = (Fraction(3, 100), Fraction(7, 100))
_STEPS = (Fraction(4, 100), Fraction(6, 100), Fraction(8, 100), Fraction(14, 100))
_LAST = 1 - sum(_LOOKS, start=Fraction(0)) - sum(_STEPS, start=Fraction(0))
# Lengths in a joint release, in units of the longest score: products with targets beside products
# of columns; squares of scores beside scores.
_CROSS = 0.5
_SQUARES = 0.5
# The length of a step before the last: margins usually move no more.
_FARTHEST = 1.5
# How far a parameter that was not determined may be from where it was left.
_USUAL = 3.0
# Rows count in full up to the root of so many times the number of columns.
_ROOM = 1.75
# Deviations by which an eigenvalue must exceed those that noise alone makes.
_BEYOND = 0.5
# Noise is small below this part of the sampling error, or its square of a Hessian.
_SMALL = 0.25
# A coefficient is lost if directions without information have more than this part of it.
_LOST = 0.02
# Deviations of the noise that a number must exceed to be believed.
_SURE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoringFit:
    """What a release says: coefficients and their covariance, in units of the features.

    The last entry is the intercept. Undetermined coefficients have infinite standard errors.
    """

    rows: WeightedRows = field(repr=False)
    coefficients: Floats
    covariance: Floats = field(repr=False)
    standard_errors: Floats
    determined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringPlan:
    """The noise of a fit by Fisher scoring, before a row is read.

    Args:
        family: Distribution of the targets.
        features: Number of features.
        radius: Length of a scaled row beyond which its weight falls.
        adaptive: Whether steps use a larger radius if their noise is small.
        relation: Neighboring relation.
        max_rows_per_unit: Largest number of rows per privacy unit.
        looks: Noises of the products of columns, which centers and spreads are found from.
        steps: Noises of the steps; the last one is that of the last step.

    Examples:
        >>> from discreet.models import PrivateLogit
        >>> plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=3)
        >>> plan.columns
        4
    """

    family: Family
    features: int
    radius: float
    adaptive: bool
    relation: NeighboringRelation
    max_rows_per_unit: int
    looks: tuple[AdditiveMechanism, ...]
    steps: tuple[AdditiveMechanism, ...]

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of everything that is released."""
        first, *others = (one.guarantee for one in (*self.looks, *self.steps))
        return sum(others, start=first)

    @property
    def columns(self) -> int:
        """Number of parameters, the intercept among them."""
        return self.features + 1

    def release(
        self,
        rows: RowSource,
        *,
        lower: Floats,
        upper: Floats,
        rng: RandomSource | None = None,
    ) -> ScoringFit:
        """Fit to private rows.

        Args:
            rows: The rows.
            lower: Lower bounds of the features.
            upper: Upper bounds of the features.
            rng: Random source. By default the operating system's.

        Returns:
            Coefficients and their covariance.

        Raises:
            InvalidArgument: The bounds are not one pair per feature, finite and in order.

        Privacy:
            The release satisfies `guarantee` under the plan's relation. This method charges no
            account; `PrivateLogit` and `PrivatePoisson` do.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> from discreet.models.regression._row_sources import ArrayRows
            >>> plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=1)
            >>> x = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> rows = ArrayRows(x, (x > 0.2).astype(float))
            >>> ends = numpy.array([-1.0]), numpy.array([1.0])
            >>> plan.release(rows, lower=ends[0], upper=ends[1]).coefficients.shape
            (2,)
        """
        # Theorem: the result keeps `guarantee` under the plan's relation.
        # Proof: every look and every step is its mechanism on a vector of sums that a row moves by
        #   at most `LONGEST`, whatever the public numbers before it (`weighted_rows`); these are
        #   functions of earlier releases (adaptive composition, post-processing).
        source = resolve_rng(rng)
        # With bounds that are equal or not finite a row is no number, and none is short.
        ends = bounds_of("bounds", list(zip(lower, upper, strict=True)), columns=self.features)
        mapped = WeightedRows.of(*ends, radius=self.radius)
        first, second = self.looks
        products, _ = self._look(rows, mapped, first, source)
        hidden = np.ones(self.features, dtype=bool)
        mapped, hidden = _rescaled(mapped, products, self._look_noise(first), hidden)
        products, cross = self._look(rows, mapped, second, source)
        theta = _start(self.family, products, cross, noise=self._look_noise(second))
        finer, _ = _rescaled(mapped, products, self._look_noise(second), hidden)
        theta, mapped = _theta_of(_moved(theta, mapped, finer), finer), finer
        mapped = self._widened(mapped, theta, products)
        for noise in self.steps[:-1]:
            score, (hessian,) = self._step(rows, mapped, noise, theta, source)
            change = _damped(
                score, hessian, self._step_units(mapped.radius, 1).matrix_noise(noise.std, 0)
            )
            theta = _theta_of(theta - change, mapped)
        last = self.steps[-1]
        score, (hessian, squares) = self._step(rows, mapped, last, theta, source, matrices=2)
        return self._concluded(mapped, theta, score, hessian, squares)

    def certify(self) -> Certificate:
        """Recompute the guarantees of the noises, and how far one row moves them.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy its guarantee.

        Examples:
            >>> from discreet.models import PrivateLogit
            >>> plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=1)
            >>> plan.certify().holds
            True
        """
        found = [one.certify() for one in (*self.looks, *self.steps)]
        return Certificate(
            mechanism="Fisher scoring",
            guarantee=self.guarantee,
            checks=tuple(check for one in found for check in one.checks),
            drawn=(*(look for one in found for look in one.drawn), *self._moves()),
        ).demand()

    def _moves(self) -> tuple[DrawCheck, ...]:
        """Rows at all corners of their bounds and beyond: how far they move each kind of sums."""
        features = self.features
        mapped = WeightedRows.of(-np.ones(features), np.ones(features), radius=self.radius)
        x = np.concatenate([np.eye(features) * size for size in (-2.0, 0.1, 2.0)])
        x = np.concatenate((x, np.ones((1, features)), np.zeros((1, features))))
        pieces: dict[str, Callable[[Floats, Floats], Ints]] = {
            "products of columns": partial(
                moment_sums, mapped, self._look_units(), self.family.most
            )
        }
        for name, matrices in (("score", 1), ("score and its squares", 2)):
            for level in (-9.0, 0.0, 0.3, 9.0):
                theta = np.full(self.columns, level / self.columns)
                whole, exponent = whole_parameters(theta, mapped)
                units = self._step_units(self.radius, matrices)
                pieces[f"{name} at {level:g}"] = partial(
                    score_sums, mapped, units, self.family, whole, exponent
                )
        found = []
        for name, piece in pieces.items():
            longest = max(
                float(np.square(piece(row[None, :], np.array([[target]])).astype(np.float64)).sum())
                for row in x
                for target in (0.0, self.family.most / 2, self.family.most)
            )
            found.append(moves(f"{name}, one row", longest, float(LONGEST) ** 2))
        return tuple(found)

    # ── What the noises are handed ───────────────────────────────────────────────────────────────

    def _look_units(self) -> Units:
        # Coefficients of a row: at most one for the matrix, at most one for the vector.
        factor = 1 / _CROSS
        return Units.of(radius=self.radius, length=math.hypot(1.0, factor), matrices=(factor,))

    def _step_units(self, radius: float, matrices: int) -> Units:
        family = self.family
        factors = (family.hessian_length, _SQUARES / family.most)
        length = family.joint_length
        if matrices > 1:
            length = math.hypot(length, _SQUARES * family.most)
        return Units.of(radius=radius, length=length, matrices=factors[:matrices])

    def _widened(self, mapped: WeightedRows, theta: Floats, products: Floats) -> WeightedRows:
        """A radius that holds more rows in full, where noise that grows with it is small anyway."""
        if not self.adaptive:
            return mapped
        variance = float(self.family.variances(self.family.means(theta[:1]))[0])
        said = max(products[0, 0], 0.0) * variance
        units, std = self._step_units(1.0, 2), self.steps[-1].std
        score = _SMALL * math.sqrt(said) / units.vector_noise(std)
        edge = math.sqrt(2 * self.columns) * units.matrix_noise(std, 0)
        hessian = math.sqrt(_SMALL**2 * said / edge)
        longest = float(np.linalg.norm(mapped.reaches(math.inf)))
        return replace(mapped, radius=max(self.radius, min(score, hessian, longest)))

    def _look_noise(self, noise: AdditiveMechanism) -> float:
        return self._look_units().matrix_noise(noise.std, 0)

    def _look(
        self, rows: RowSource, mapped: WeightedRows, noise: AdditiveMechanism, rng: RandomSource
    ) -> tuple[Floats, Floats]:
        units = self._look_units()
        piece = partial(moment_sums, mapped, units, self.family.most)
        total = self._noisy(rows, piece, noise, rng, size=sums_size(self.columns, 1))
        cross, (products,) = units.read(total, self.columns)
        return products, cross * self.family.most

    def _step(
        self,
        rows: RowSource,
        mapped: WeightedRows,
        noise: AdditiveMechanism,
        theta: Floats,
        rng: RandomSource,
        *,
        matrices: int = 1,
    ) -> tuple[Floats, list[Floats]]:
        """The noisy score and matrices at parameters; the score points away from the solution."""
        units = self._step_units(mapped.radius, matrices)
        whole, exponent = whole_parameters(theta, mapped)
        piece = partial(score_sums, mapped, units, self.family, whole, exponent)
        size = sums_size(self.columns, matrices)
        total = self._noisy(rows, piece, noise, rng, size=size)
        score, found = units.read(total, self.columns)
        return -score, found

    def _noisy(
        self,
        rows: RowSource,
        piece: Callable[[Floats, Floats], Ints],
        noise: AdditiveMechanism,
        rng: RandomSource,
        *,
        size: int,
    ) -> Floats:
        exact = exact_sums(rows, piece, size=size)
        return np.asarray(noise.release(exact, rng=rng), dtype=np.float64)

    # ── What the last step says ──────────────────────────────────────────────────────────────────

    def _concluded(
        self, mapped: WeightedRows, theta: Floats, score: Floats, hessian: Floats, squares: Floats
    ) -> ScoringFit:
        """The last step, and the covariance of where it ends."""
        # Theorem (to first order): where a step ends is the solution plus `inverse` times the sum
        #   of the score's sampling error, the score's noise and the Hessian's noise times the step.
        units, std = self._step_units(mapped.radius, 2), self.steps[-1].std
        hessian_noise = units.matrix_noise(std, 0)
        values, vectors = np.linalg.eigh(hessian)
        # Noise alone makes eigenvalues of about `sqrt(2 columns)` deviations.
        sure = values > (math.sqrt(2 * self.columns) + _BEYOND) * hessian_noise
        inverse = (vectors[:, sure] / values[sure]) @ vectors[:, sure].T
        change = -inverse @ score
        outer = np.outer(change, change)
        moved = (change @ change * np.eye(self.columns) + outer) / 2
        # What a step leaves out grows with the square of its length.
        reaches = mapped.reaches(mapped.radius)
        left = (change @ change + reaches * np.square(change)) / 2
        middle = (
            _psd(squares)
            + units.vector_noise(std) ** 2 * np.eye(self.columns)
            + hessian_noise**2 * moved
        )
        # The curvature may be smaller than it looks: the mean of its inverse square, to the second
        # order in its noise.
        doubt = np.sqrt(1 + 3 * np.square(hessian_noise / values[sure]))
        wider = (vectors[:, sure] * (doubt / values[sure])) @ vectors[:, sure].T
        covariance = wider @ middle @ wider + np.diag(left**2)
        lost = vectors[:, ~sure]
        covariance += _USUAL**2 * (lost @ lost.T)
        unknown = np.square(lost).sum(axis=1) > _LOST
        # A step so long says that the steps have not settled.
        unknown |= reaches * np.abs(change) > self.family.settled
        matrix = mapped.in_units()
        covariance = matrix @ covariance @ matrix.T
        errors = np.sqrt(covariance.diagonal())
        errors[np.abs(matrix) @ unknown > 0] = np.inf
        return ScoringFit(
            rows=mapped,
            coefficients=matrix @ (theta + change),
            covariance=covariance,
            standard_errors=errors,
            determined=not unknown.any(),
        )


def _psd(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return found


def _rescaled(
    rows: WeightedRows, products: Floats, noise: float, hidden: NDArray[np.bool_]
) -> tuple[WeightedRows, NDArray[np.bool_]]:
    """Centers and spreads of columns from products, and of which the noise hides the spread.

    Only of columns that were ``hidden`` before: once a column is scaled, its long rows weigh less,
    and what is left would make its spread too small.
    """
    many = products[0, 0]
    if many < _SURE * noise:
        return rows, hidden
    error = noise / many
    mean = np.clip(products[0, 1:] / many, -1 / NARROWEST, 1 / NARROWEST)
    variance = products.diagonal()[1:] / many - np.square(mean)
    # Noise makes a spread too small as easily as too large; too small would make long rows.
    spread = np.minimum(np.sqrt(np.maximum(variance + error, _SURE * error)), 1.0)
    found = rows.scaled(
        np.where(hidden, rows.center + mean * rows.scale, rows.center),
        np.where(hidden, spread, 1.0) * rows.scale,
    )
    return found, hidden & (variance < _SURE * error)


def _start(family: Family, products: Floats, cross: Floats, *, noise: float) -> Floats:
    """One step from the model without features."""
    theta = np.zeros(len(cross))
    many = products[0, 0]
    if many < _SURE * noise:
        return theta
    theta[0] = family.link(cross[0] / many)
    mean = family.means(theta[:1])
    variance = float(family.variances(mean)[0])
    score = mean[0] * products[:, 0] - cross
    return theta - _damped(score, variance * products, variance * noise)


def _damped(score: Floats, hessian: Floats, noise: float) -> Floats:
    """A Newton step that does not follow directions which the noise hides."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    floor = noise * math.sqrt(2 * len(score))
    step = vectors @ (values / (values**2 + floor**2) * (vectors.T @ score))
    length = float(np.linalg.norm(step))
    shorter: Floats = step * min(1.0, _FARTHEST / length) if length > 0 else step
    return shorter


def _theta_of(theta: Floats, rows: WeightedRows) -> Floats:
    """The parameters as they are used."""
    whole, exponent = whole_parameters(theta, rows)
    found: Floats = np.ldexp(whole, -exponent)
    return found


def _moved(theta: Floats, old: WeightedRows, new: WeightedRows) -> Floats:
    """The same function of a row in other centers and scales."""
    slopes = theta[1:] / old.scale
    level = theta[0] + slopes @ (new.center - old.center)
    return np.concatenate(([level], slopes * new.scale))


def plan_scoring(
    family: Family,
    *,
    features: int,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    max_rows_per_unit: int = 1,
    radius: float | None = None,
) -> ScoringPlan:
    """Plan the noise of a fit for a budget; nothing is read."""
    width = count("features", features)
    if width > MOST_FEATURES:
        raise Unsupported(
            f"At most {MOST_FEATURES} features have standard errors: use "
            "PrivateLogisticRegression, or fewer columns."
        )
    amount = gaussian_budget(epsilon=epsilon, delta=delta, rho=rho)
    rows = count("max_rows_per_unit", max_rows_per_unit)
    changed = rows if relation is NeighboringRelation.ADD_REMOVE else 2 * rows
    shares = (*_LOOKS, *_STEPS, _LAST)
    # Only squared lengths count for Gaussian noise.
    squared = (LONGEST * changed) ** 2
    move = BudgetChange(l1=squared, l2_squared=squared)
    noises = gaussians(amount, [move] * len(shares), shares=shares, relation=relation)
    length = math.sqrt(_ROOM * (width + 1)) if radius is None else float(positive("radius", radius))
    return ScoringPlan(
        family=family,
        features=width,
        radius=length,
        adaptive=radius is None,
        relation=relation,
        max_rows_per_unit=rows,
        looks=noises[: len(_LOOKS)],
        steps=noises[len(_LOOKS) :],
    )
