"""The level of the target: what is fitted when there are too few rows for anything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.models.inputs import Floats
from discreet.models.regression.lattice import Lattice
from discreet.models.regression.quantiles import (
    CELLS,
    RADII,
    cell_counts,
    median,
    median_move,
    radius,
    radius_counts,
    radius_move,
)
from discreet.models.regression.rows import Ints, RowMap
from discreet.models.regression.tables import Rows, empty
from discreet.models.regression.task import Fit, Noises, Part, Task, spend
from discreet.noise.bits import Bits
from discreet.queries.budget import Budget

LEVEL = "median of the target"
SPREAD = "spread of the target"
INTERCEPT = 0.65
"""The constant in the first column, where the features fill the unit ball."""


def target_parts(task: Task, share: Fraction) -> list[Part]:
    """Centre and spread of the target, in two halves of the share."""
    return [
        Part(name=LEVEL, move=median_move(task), share=share / 2),
        Part(name=SPREAD, move=radius_move(task), share=share / 2),
    ]


def target_level(rows: Rows, task: Task, *, noises: Noises, bits: Bits) -> float:
    """The private median of the target; the midpoint of its bounds unless the rows object."""
    lower, upper = np.array([task.target[0]]), np.array([task.target[1]])
    counts = rows.add_up(partial(_target_cells, lower, upper), start=empty(CELLS))
    (mechanism,) = noises.choices(LEVEL)
    return median(counts, *task.target, mechanism=mechanism, bits=bits, prior=task.target_middle)


def target_spread(rows: Rows, task: Task, centre: float, *, noises: Noises, bits: Bits) -> float:
    """The private radius around ``centre`` that holds about four of five targets."""
    top = np.array([2 * task.target_half])
    counts = rows.add_up(partial(_target_radii, centre, task, top), start=empty(RADII))
    (mechanism,) = noises.choices(SPREAD)
    return radius(counts, float(top[0]), mechanism=mechanism, bits=bits)


def _target_cells(lower: Floats, upper: Floats, _: Floats, y: Floats) -> Ints:
    return cell_counts(y, lower, upper).ravel()


def _target_radii(centre: float, task: Task, top: Floats, _: Floats, y: Floats) -> Ints:
    return radius_counts(np.abs(np.clip(y, *task.target) - centre), top).ravel()


def box_map(task: Task, *, centre: float, half: float) -> RowMap:
    """Rows scaled by the declared bounds, all of them within the ball."""
    return RowMap(
        lattice=Lattice.of(features=task.features, intercept=INTERCEPT),
        mapping="ball",
        lower=task.lower,
        upper=task.upper,
        centre=task.middle,
        scale=task.half,
        radius=math.sqrt(task.features) * (1 + 2.0**-40),
        target_centre=np.array([centre]),
        target_half=np.array([half]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Predict one number for everybody: the private median of the target.

    The midpoint of the declared bounds is believed in before any row is read, and given up only
    for evidence: the result is never much worse than that midpoint, and far better where it is off.
    """

    name: str = "level"

    def parts(self, task: Task) -> Sequence[Part]:
        """Only the median."""
        return [Part(name=LEVEL, move=median_move(task), share=Fraction(1))]

    def plan(self, task: Task, amount: Budget) -> Noises:
        """A choice that costs the amount; epsilon alone, because a delta buys next to nothing.

        So an account that has just this epsilon left can pay.
        """
        whole = amount if amount.rho is not None else Budget(epsilon=amount.epsilon)
        return spend(tuple(self.parts(task)), whole, relation=task.relation)

    def fit(self, rows: Rows, task: Task, *, noises: Noises, bits: Bits) -> Fit:
        """No slopes at all."""
        centre = target_level(rows, task, noises=noises, bits=bits)
        mapped = box_map(task, centre=centre, half=task.target_half)
        return Fit(map=mapped, theta=np.zeros(mapped.lattice.columns))
