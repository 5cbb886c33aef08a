"""Rounds of clipped residuals: each releases the products of rows and residuals, with noise.

The prediction of a row is an exact integer, because the coefficients are rounded to a public grid
before each round: no order of summation can make the residual of one row depend on another.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from discreet.mechanisms.additive import Additive
from discreet.models.inputs import Floats
from discreet.models.regression.lattice import Lattice
from discreet.models.regression.rows import Ints, RowMap
from discreet.models.regression.tables import Rows, empty
from discreet.noise.bits import Bits

# Coefficients on the grid: below 2**23 steps of 2**-16, so that predictions stay below 2**53.
_PLACES = 16
_LARGEST = float((1 << 23) - 1)


def gradient_square(lattice: Lattice, clip: int) -> int:
    """By how much one row moves the products of rows and residuals, in squared norm.

    Theorem: ``row_squared * clip**2``, attained.
    Proof: a row adds ``r (a, u)`` with ``|r| <= clip`` and ``|(a, u)|^2 <= row_squared``.
    """
    return lattice.row_squared * clip**2


def steps_of(theta: Floats, lattice: Lattice) -> Floats:
    """Coefficients as whole steps, held as doubles: what the rounds work with."""
    scale = 2.0**_PLACES * lattice.target_steps / lattice.steps
    return np.clip(np.rint(theta * scale), -_LARGEST, _LARGEST)


def products(rows: RowMap, steps: Floats, clip: int, x: Floats, y: Floats) -> Ints:
    """Exact products of rows and clipped residuals, summed over some rows: private."""
    codes = rows.codes(x, y)
    design, target = codes[:, :-1], codes[:, -1]
    predicted = np.rint((design @ steps) * 2.0**-_PLACES)
    residuals = np.clip(target - predicted, -clip, clip)
    return np.asarray(design.T @ residuals).astype(np.int64)


def gram(rows: RowMap, x: Floats, y: Floats) -> Ints:
    """The exact Gram matrix of some rows, flat: private."""
    design = rows.codes(x, y)[:, :-1]
    return (design.T @ design).astype(np.int64).ravel()


def noisy_gram(rows: Rows, mapped: RowMap, *, noise: Additive, bits: Bits) -> Floats:
    """The Gram matrix with symmetric noise, in mapped units (K9, shape c)."""
    size = mapped.lattice.columns
    exact = rows.add_up(partial(gram, mapped), start=empty(size * size))
    noisy = np.asarray(noise.release(exact, bits=bits), dtype=np.float64).reshape(size, size)
    return np.asarray((noisy + noisy.T) / (2 * mapped.lattice.steps**2))


def descend(
    rows: Rows,
    mapped: RowMap,
    *,
    noises: list[Additive],
    clip: int,
    step: Floats,
    bits: Bits,
) -> Floats:
    """The mean of the coefficients over the second half of the rounds.

    Each round adds ``step`` times the noisy products of rows and clipped residuals.

    Theorem: as private as the composition of ``noises``.
    Proof: a round releases a vector that one row moves by `gradient_square`; coefficients are
        functions of what was released, so composition is adaptive.
    Source: Abadi et al. 2016 with all rows in each round; Tang et al. 2023 for the preconditioner.
    """
    grid = mapped.lattice
    theta, mean = np.zeros(grid.columns), np.zeros(grid.columns)
    first = len(noises) // 2
    for turn, noise in enumerate(noises):
        piece = partial(products, mapped, steps_of(theta, grid), clip)
        exact = rows.add_up(piece, start=empty(grid.columns))
        noisy = np.asarray(noise.release(exact, bits=bits), dtype=np.float64)
        theta = theta + step @ (noisy / (grid.steps * grid.target_steps))
        if turn >= first:
            mean += theta / (len(noises) - first)
    return mean
