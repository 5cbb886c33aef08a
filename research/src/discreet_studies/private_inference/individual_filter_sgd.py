"""Private gradient descent in which everyone spends an own budget, gradient by gradient (M37).

Who has short gradients spends little and takes part longer; who has spent all contributes nothing
from then on. The number of steps is fixed, so that nothing tells who that is.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd.losses import Floats
from discreet.models.dp_sgd.train import (
    FEATURE_BITS,
    RANGE,
    SlopeGrid,
    Steps,
    TrainingRun,
    follow,
    rounded_parameters,
    squared_norms,
    whole_slopes,
)
from discreet.noise.random_source import RandomSource

# Squared lengths are counted in units of 2**20 square steps, rounded up: a full step is 2**40 of
# them, and 2**20 full steps fit 64 bits.
_COARSE = 2.0**20
_MOST = 1 << 62
_ROUND = 1 + 2.0**-40  # more than rounding can take from a product of whole numbers
_ROWS = 1 << 12


class Contributions:
    """Clipped gradients of all records, each within what its person has left."""

    # Theorem: over all steps the squared lengths of a record's contributions add up to at most
    #   `budgets` (in square steps), in whole numbers.
    # Proof: what is left bounds the length of the next contribution (root and quotient rounded
    #   down); its square is rounded up before it is taken off.

    def __init__(self, steps: Steps, targets: Floats, *, run: TrainingRun, budgets: Floats) -> None:
        self._steps, self._targets, self._objective = steps, targets, run.objective
        grid = SlopeGrid(clip=run.clip)
        self._caps = grid.caps(steps)
        self._slopes = whole_slopes(run.objective, grid)
        self._squares = np.empty(len(steps))
        for start in range(0, len(steps), _ROWS):
            rows = steps[start : start + _ROWS].astype(np.float64)
            self._squares[start : start + _ROWS] = squared_norms(rows)
        limit = np.minimum(np.floor(budgets / _COARSE / _ROUND), float(_MOST))
        self._left: NDArray[np.int64] = limit.astype(np.int64)

    @property
    def left(self) -> Floats:
        """What each record has left, in square steps. Private."""
        return np.asarray(self._left * _COARSE, dtype=np.float64)

    def sum(self, theta: Floats) -> NDArray[np.int64]:
        """The sum of all contributions, in steps, exactly; every record pays for its own."""
        whole, exponent = rounded_parameters(theta, self._steps.shape[1])
        total = np.zeros(len(theta), dtype=np.int64)
        for start in range(0, len(self._steps), _ROWS):
            part = slice(start, start + _ROWS)
            rows = self._steps[part].astype(np.float64)
            margins = np.ldexp(self._objective.margins(whole, rows), -FEATURE_BITS - exponent)
            room = np.sqrt(self._left[part] * _COARSE / np.maximum(self._squares[part], 1.0))
            caps = np.minimum(self._caps[part], np.floor(room / _ROUND))
            slopes = self._slopes(margins, self._targets[part], caps)
            used = slopes**2 if slopes.ndim == 1 else squared_norms(slopes)
            spent = np.ceil(used * self._squares[part] / _COARSE * _ROUND).astype(np.int64)
            # Rounding up can pass what is left by one unit: such a record stays out.
            out = spent > self._left[part]
            slopes[out] = 0.0
            self._left[part] -= np.where(out, 0, spent)
            total += (slopes.T @ rows).ravel().astype(np.int64)
        return total


def descend_filtered(
    steps: Steps, targets: Floats, limits: ArrayLike, *, run: TrainingRun, rng: RandomSource
) -> Floats:
    """The parameters after a run on all records, one record a person.

    ``limits``: the rho (zCDP) of each person; ``run.rate`` must be 1.
    """
    # Theorem: the run is `limits[i]`-zCDP for person i under add/remove.
    # Proof: step t costs person i |c_t(i)|^2 / (2 sigma^2), a function of earlier outputs and of
    #   the own record; the sum is kept below the limit by shortening contributions (individual
    #   filters, Feldman, Zrnic 2021; Theorem 4.3). The number of steps is fixed.
    # Needs: what each person has left is private, and who was shortened too.
    if run.rate != 1:
        raise InvalidArgument("run.rate must be 1: budgets are spent on all records, no sample.")
    allowed = np.asarray(limits, dtype=np.float64)
    if allowed.shape != (len(steps),) or not ((allowed >= 0) & np.isfinite(allowed)).all():
        raise InvalidArgument("limits must be one rho for each record, finite and not negative.")
    grid = SlopeGrid(clip=run.clip)
    if len(steps) * grid.sensitivity > RANGE:
        raise InvalidArgument("There are too many records for exact sums: at most 2**31.")
    # Noise has the deviation noise * sensitivity steps, so rho is length^2 / (2 of its square).
    worth = float(2 * (run.noise * grid.sensitivity) ** 2 * (1 - Fraction(1, 1 << 40)))
    shares = Contributions(steps, targets, run=run, budgets=allowed * worth)
    mechanism = run.mechanism

    def noisy_sum(theta: Floats) -> NDArray[np.int64]:
        zeros = np.zeros(len(theta), dtype=np.int64)
        noise: NDArray[np.int64] = mechanism.release(zeros, rng=rng)
        return shares.sum(theta) + noise

    return follow(noisy_sum, run=run, features=steps.shape[1])
