"""Gradient descent on clipped residuals, in centered coordinates: for few rows or little budget.

Nothing is spent on the matrix of products: its noise, not that of the products with the target, is
what ruins a fit from moments when rows are few. Stopping early takes the place of a penalty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.models._model_inputs import Floats
from discreet.models.regression._residual_rounds import descend, encode_rows, gradient_square
from discreet.models.regression._row_lattice import Ints, RowLattice, RowMap
from discreet.models.regression._row_mapping import (
    CELLS,
    RADII,
    cell_counts,
    median,
    median_sensitivity,
    radius,
    radius_counts,
    radius_sensitivity,
)
from discreet.models.regression._row_sources import RowSource, empty
from discreet.models.regression._task import (
    FitStage,
    NoiseScales,
    RegressionFit,
    RegressionTask,
    spend,
)
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget

# ── Median baseline ──────────────────────────────────────────────────────────────────────────────
# What is fitted when there are too few rows for anything else.


LEVEL = "median of the target"
SPREAD = "spread of the target"
INTERCEPT = 0.65
"""The constant in the first column, where the features fill the unit ball."""


def target_parts(task: RegressionTask, share: Fraction) -> list[FitStage]:
    """Center and spread of the target, in two halves of the share."""
    return [
        FitStage(name=LEVEL, sensitivity=median_sensitivity(task), share=share / 2),
        FitStage(name=SPREAD, sensitivity=radius_sensitivity(task), share=share / 2),
    ]


def target_level(
    rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
) -> float:
    """The private median of the target; the midpoint of its bounds unless the rows object."""
    lower, upper = np.array([task.target[0]]), np.array([task.target[1]])
    counts = rows.add_up(partial(_target_cells, lower, upper), start=empty(CELLS))
    (mechanism,) = noises.choices(LEVEL)
    return median(counts, *task.target, mechanism=mechanism, rng=rng, prior=task.target_middle)


def target_spread(
    rows: RowSource, task: RegressionTask, center: float, *, noises: NoiseScales, rng: RandomSource
) -> float:
    """The private radius around ``center`` that holds about four of five targets."""
    top = np.array([2 * task.target_half])
    counts = rows.add_up(partial(_target_radii, center, task, top), start=empty(RADII))
    (mechanism,) = noises.choices(SPREAD)
    return radius(counts, float(top[0]), mechanism=mechanism, rng=rng)


def _target_cells(lower: Floats, upper: Floats, _: Floats, y: Floats) -> Ints:
    return cell_counts(y, lower, upper).ravel()


def _target_radii(center: float, task: RegressionTask, top: Floats, _: Floats, y: Floats) -> Ints:
    return radius_counts(np.abs(np.clip(y, *task.target) - center), top).ravel()


def box_map(task: RegressionTask, *, center: float, half: float) -> RowMap:
    """Rows scaled by the declared bounds, all of them within the ball."""
    return RowMap(
        lattice=RowLattice.of(features=task.features, intercept=INTERCEPT),
        mapping="ball",
        lower=task.lower,
        upper=task.upper,
        center=task.middle,
        scale=task.half,
        radius=math.sqrt(task.features) * (1 + 2.0**-40),
        target_center=np.array([center]),
        target_half=np.array([half]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianBaseline:
    """Predict one number for everybody: the private median of the target.

    The midpoint of the declared bounds is believed in before any row is read, and given up only
    for evidence: the result is never much worse than that midpoint, and far better where it is off.
    """

    name: str = "level"

    def parts(self, task: RegressionTask) -> Sequence[FitStage]:
        """Only the median."""
        return [FitStage(name=LEVEL, sensitivity=median_sensitivity(task), share=Fraction(1))]

    def plan(self, task: RegressionTask, amount: QueryBudget) -> NoiseScales:
        """A choice that costs the amount; epsilon alone, because a delta buys next to nothing.

        So an account that has just this epsilon left can pay.
        """
        whole = amount if amount.rho is not None else QueryBudget(epsilon=amount.epsilon)
        return spend(tuple(self.parts(task)), whole, relation=task.relation)

    def fit(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RegressionFit:
        """No slopes at all."""
        center = target_level(rows, task, noises=noises, rng=rng)
        mapped = box_map(task, center=center, half=task.target_half)
        return RegressionFit(map=mapped, theta=np.zeros(mapped.lattice.columns))


# ── Clipped gradient ─────────────────────────────────────────────────────────────────────────────


MEANS = "means of the features"
RADIUS = "radius of the rows"
PRODUCTS = "products with clipped residuals"
_STEPS = 1 << 12
# How far, in spreads, targets are kept and residuals are clipped.
_KEPT = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedGradient:
    """Plain descent from the level of the target, with all rows in each round.

    Public constants: ``rounds``; ``clip``, the largest residual in spreads of the target;
    ``steepest`` and ``caution``: the step is the smaller of the first and the second times rows
    times mu, so that what the noise adds up to stays below the spread of the target.
    """

    name: str = "gradient"
    rounds: int = 50
    clip: float = 0.4
    steepest: float = 4.2
    caution: float = 0.03

    def parts(self, task: RegressionTask) -> Sequence[FitStage]:
        """Level and spread of the target, means, a radius, and the rounds."""
        grid = self._lattice(task)
        left = Fraction(66, 100) / self.rounds
        round_move = task.vector(gradient_square(grid, self._clip(grid)))
        return [
            *target_parts(task, Fraction(15, 100)),
            FitStage(
                name=MEANS,
                sensitivity=task.vector(task.features * _STEPS**2),
                share=Fraction(15, 100),
            ),
            FitStage(name=RADIUS, sensitivity=radius_sensitivity(task), share=Fraction(4, 100)),
            *(
                FitStage(name=PRODUCTS, sensitivity=round_move, share=left)
                for _ in range(self.rounds)
            ),
        ]

    def plan(self, task: RegressionTask, amount: QueryBudget) -> NoiseScales:
        """Noise for all parts that costs the amount."""
        return spend(tuple(self.parts(task)), amount, relation=task.relation)

    def fit(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RegressionFit:
        """Center, scale, descend."""
        level = target_level(rows, task, noises=noises, rng=rng)
        spread = target_spread(rows, task, level, noises=noises, rng=rng)
        center = self._means(rows, task, noises=noises, rng=rng)
        mapped = RowMap(
            lattice=self._lattice(task),
            mapping="ball",
            lower=task.lower,
            upper=task.upper,
            center=center,
            scale=task.half,
            radius=row_radius(
                rows,
                2 * math.sqrt(task.features),
                box=(task.lower, task.upper, center, task.half),
                noises=noises,
                rng=rng,
            ),
            target_center=np.array([level]),
            target_half=np.array([_KEPT * spread]),
        )
        grid = mapped.lattice
        steps = noises.additive(PRODUCTS)
        # The mu of all rounds together.
        moved = math.sqrt(gradient_square(grid, self._clip(grid)))
        mu = moved * math.sqrt(len(steps)) / steps[0].std
        rate = min(self.steepest, self.caution * task.rows * mu) / max(task.rows, 1.0)
        theta = descend(
            encode_rows(rows, mapped),
            grid,
            noises=steps,
            clip=self._clip(grid),
            step=rate * np.eye(grid.columns),
            rng=rng,
        )
        return RegressionFit(map=mapped, theta=theta, notes={"rate": rate})

    def _lattice(self, task: RegressionTask) -> RowLattice:
        return RowLattice.of(features=task.features, intercept=INTERCEPT)

    def _clip(self, grid: RowLattice) -> int:
        return max(1, round(self.clip / _KEPT * grid.target_steps))

    def _means(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> Floats:
        exact = rows.add_up(partial(_codes, task), start=empty(task.features))
        (noise,) = noises.additive(MEANS)
        noisy = np.asarray(noise.release(exact, rng=rng), dtype=np.float64)
        shift = np.clip(noisy / (_STEPS * max(task.rows, 1.0)), -1.0, 1.0)
        return np.asarray(task.middle + task.half * shift)


def _codes(task: RegressionTask, x: Floats, _: Floats) -> Ints:
    """Sums of the features in whole steps between -4096 and 4096."""
    scaled = (np.clip(x, task.lower, task.upper) - task.middle) / task.half
    codes = np.rint(np.clip(scaled, -1, 1) * _STEPS)
    return np.asarray(codes.sum(axis=0), dtype=np.int64)


def row_radius(
    rows: RowSource,
    top: float,
    *,
    box: tuple[Floats, Floats, Floats, Floats],
    noises: NoiseScales,
    rng: RandomSource,
) -> float:
    """The private radius, up to ``top``, that holds about four of five rows.

    ``box``: lower and upper bounds, centers and scales, by which rows are clipped and scaled.
    """
    counts = rows.add_up(partial(norm_counts, *box, np.array([top])), start=empty(RADII))
    (mechanism,) = noises.choices(RADIUS)
    return radius(counts, top, mechanism=mechanism, rng=rng)


def norm_counts(
    lower: Floats, upper: Floats, center: Floats, scale: Floats, top: Floats, x: Floats, _: Floats
) -> Ints:
    """Rows between candidate radii of their norms, after clipping, centering and scaling."""
    z = (np.clip(x, lower, upper) - center) / scale
    square = np.zeros(len(z))
    for column in z.T:  # in a fixed order, so that no row depends on another's place
        square += column * column
    return radius_counts(np.sqrt(square)[:, None], top).ravel()
