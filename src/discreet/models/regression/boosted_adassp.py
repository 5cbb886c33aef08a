"""Boosted least squares: one noisy matrix, then rounds of clipped residuals (Tang et al. 2023).

The matrix only sets the direction of the steps. Where they come to rest depends on the residuals
alone, so its noise leaves no bias; and residuals are small where targets are not, so they can be
clipped far tighter, with less noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.models._model_inputs import Floats
from discreet.models.regression._residual_rounds import (
    descend,
    encode_rows,
    gradient_square,
    noisy_gram,
)
from discreet.models.regression._row_lattice import Ints, Mapping, RowLattice, RowMap
from discreet.models.regression._row_mapping import (
    CELLS,
    RADII,
    cell_counts,
    least_scale,
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
from discreet.models.regression.clipped_gradient import (
    INTERCEPT,
    PRODUCTS,
    RADIUS,
    row_radius,
    target_level,
    target_parts,
    target_spread,
)
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget

CENTERS = "median of a feature"
SPREADS = "spread of a feature"
MATRIX = "X'X"
# Four of five normal values lie within this many deviations.
_NORMAL = 1.28
# A radius this small, of the largest one, is one of the few smallest candidates.
_NOTHING = 2.0**-12.5
# How far features are kept, in deviations, and targets, in spreads.
_KEPT = 3.0
_TARGET_KEPT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostedAdaSSP:
    """Private medians and spreads of all columns, a noisy matrix, and rounds of residuals.

    Public constants: ``rounds``; ``clip``, the largest residual in spreads of the target; and how
    the budget is shared.
    """

    name: str = "boosted"
    rounds: int = 10
    clip: float = 0.9
    target_share: Fraction = Fraction(8, 100)
    feature_share: Fraction = Fraction(10, 100)
    radius_share: Fraction = Fraction(4, 100)
    matrix_share: Fraction = Fraction(1, 4)
    enough: float = 150.0
    """From this signal on, clipping is the looser the less the noise weighs."""
    mapping: Mapping | None = None
    """How far rows get into the ball: projected, or weighted if there is one feature alone.

    Projected rows predict better where targets are no line in the features far out.
    """

    def parts(self, task: RegressionTask) -> Sequence[FitStage]:
        """Medians, spreads, a radius, the matrix, and the rounds."""
        grid, d = self._lattice(task), task.features
        left = 1 - self.target_share - self.feature_share - self.radius_share
        each = self.feature_share / (2 * d)
        matrix = task.vector(grid.row_squared**2, replaced=2)
        gradient = task.vector(gradient_square(grid, self._clip(grid)))
        share = left * (1 - self.matrix_share) / self.rounds
        return [
            *target_parts(task, self.target_share),
            *(
                FitStage(name=CENTERS, sensitivity=median_sensitivity(task), share=each)
                for _ in range(d)
            ),
            *(
                FitStage(name=SPREADS, sensitivity=radius_sensitivity(task), share=each)
                for _ in range(d)
            ),
            FitStage(name=RADIUS, sensitivity=radius_sensitivity(task), share=self.radius_share),
            FitStage(name=MATRIX, sensitivity=matrix, share=left * self.matrix_share),
            *(
                FitStage(name=PRODUCTS, sensitivity=gradient, share=share)
                for _ in range(self.rounds)
            ),
        ]

    def plan(self, task: RegressionTask, amount: QueryBudget) -> NoiseScales:
        """Noise for all parts that costs the amount."""
        return spend(tuple(self.parts(task)), amount, relation=task.relation)

    def fit(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RegressionFit:
        """Find coordinates, release the matrix, and boost."""
        mapped = self._mapped(rows, task, noises=noises, rng=rng)
        grid = mapped.lattice
        (noise,) = noises.additive(MATRIX)
        codes = encode_rows(rows, mapped)
        matrix = noisy_gram(codes, grid, noise=noise, rng=rng)
        sigma = noise.std / grid.steps**2
        # As in K33: lift the matrix above the edge of its own noise.
        edge = sigma * (math.sqrt(2 * grid.columns) + 1)
        penalty = max(0.0, edge - float(np.linalg.eigvalsh(matrix)[0]))
        step = np.asarray(np.linalg.inv(matrix + penalty * np.eye(grid.columns)), dtype=np.float64)
        theta = descend(
            codes,
            grid,
            noises=noises.additive(PRODUCTS),
            clip=self._clip(grid),
            step=step,
            rng=rng,
        )
        return RegressionFit(map=mapped, theta=theta, notes={"penalty": penalty})

    def looseness(self, task: RegressionTask) -> float:
        """By how much everything is clipped later: a public function of rows, columns, budget.

        Noise grows with it, the bias of clipping falls; one more for ten times the signal.
        """
        return float(np.clip(1 + math.log10(max(task.signal / self.enough, 1.0)), 1.0, 4.0))

    def _mapped(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RowMap:
        level = target_level(rows, task, noises=noises, rng=rng)
        spread = target_spread(rows, task, level, noises=noises, rng=rng)
        center, scale = _coordinates(rows, task, noises=noises, rng=rng)
        loose = self.looseness(task)
        lower, upper = task.lower, task.upper
        mapping = self.mapping or ("ball" if task.features > 1 else "weighted")
        if mapping == "ball":
            lower = np.maximum(lower, center - _KEPT * loose * scale)
            upper = np.minimum(upper, center + _KEPT * loose * scale)
        reach = row_radius(
            rows,
            _KEPT * loose * math.sqrt(task.features),
            box=(lower, upper, center, scale),
            noises=noises,
            rng=rng,
        )
        return RowMap(
            lattice=self._lattice(task),
            mapping=mapping,
            lower=lower,
            upper=upper,
            center=center,
            scale=scale,
            radius=loose * reach,
            target_center=np.array([level]),
            target_half=np.array([_TARGET_KEPT * loose * spread]),
        )

    def _lattice(self, task: RegressionTask) -> RowLattice:
        return RowLattice.of(features=task.features, intercept=INTERCEPT)

    def _clip(self, grid: RowLattice) -> int:
        return max(1, round(self.clip / _TARGET_KEPT * grid.target_steps))


def _coordinates(
    rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
) -> tuple[Floats, Floats]:
    """Private medians and deviations of all features."""
    d = task.features
    counts = rows.add_up(partial(_cells, task), start=empty(d * CELLS)).reshape(d, CELLS)
    bounds = zip(task.lower, task.upper, strict=True)
    center = np.array(
        [
            median(counts[i], float(low), float(high), mechanism=mechanism, rng=rng)
            for i, (mechanism, (low, high)) in enumerate(
                zip(noises.choices(CENTERS), bounds, strict=True)
            )
        ]
    )
    tops = 2 * task.half
    near = rows.add_up(partial(_radii, task, center, tops), start=empty(d * RADII))
    near = near.reshape(d, RADII)
    spread = [
        radius(near[i], float(tops[i]), mechanism=mechanism, rng=rng)
        for i, mechanism in enumerate(noises.choices(SPREADS))
    ]
    # Where most rows are equal, as in a column of zeros, the radius says nothing of the others.
    equal = np.array(spread) < tops * _NOTHING
    scale = np.where(equal, task.half, np.array(spread) / _NORMAL)
    return center, np.maximum(scale, least_scale(task.lower, task.upper))


def _cells(task: RegressionTask, x: Floats, _: Floats) -> Ints:
    return cell_counts(x, task.lower, task.upper).ravel()


def _radii(task: RegressionTask, center: Floats, tops: Floats, x: Floats, _: Floats) -> Ints:
    return radius_counts(np.abs(np.clip(x, task.lower, task.upper) - center), tops).ravel()
