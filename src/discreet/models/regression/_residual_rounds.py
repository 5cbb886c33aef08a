"""Rounds of clipped residuals: each releases the products of rows and residuals, with noise.

The prediction of a row is an exact integer, because the coefficients are rounded to a public grid
before each round: no order of summation can make the residual of one row depend on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.additive import AdditiveMechanism
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import CHUNK, Ints, RowLattice, RowMap
from discreet.models.regression._row_sources import ArrayRows, RowSource, exact_sums
from discreet.noise.random_source import RandomSource

# Coefficients on the grid: below 2**23 steps of 2**-16, so that predictions stay below 2**53.
_PLACES = 16
_LARGEST = float((1 << 23) - 1)


def gradient_square(lattice: RowLattice, clip: int) -> int:
    """By how much one row moves the products of rows and residuals, in squared norm."""
    # Theorem: `row_squared * clip**2`, attained.
    # Proof: a row adds `r (a, u)` with `|r| <= clip` and `|(a, u)|^2 <= row_squared`.
    return lattice.row_squared * clip**2


def steps_of(theta: Floats, lattice: RowLattice) -> Floats:
    """Coefficients as whole steps, held as doubles: what the rounds work with."""
    scale = 2.0**_PLACES * lattice.target_steps / lattice.steps
    return np.clip(np.rint(theta * scale), -_LARGEST, _LARGEST)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows as whole steps, kept in 16 bits: coded once, read in every round. Private."""

    codes: NDArray[np.int16] = field(repr=False)

    def add_up(self, piece: Callable[[Floats], Ints], *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over chunks of rows, exactly."""
        total = start.copy()
        for first in range(0, len(self.codes), CHUNK):
            total += piece(self.codes[first : first + CHUNK].astype(np.float64))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class RowCoding:
    """Rows that are elsewhere: coded anew in every round."""

    rows: RowSource = field(repr=False)
    map: RowMap

    def add_up(self, piece: Callable[[Floats], Ints], *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces of the table, exactly."""
        return self.rows.add_up(lambda x, y: piece(self.map.codes(x, y)), start=start)


def encode_rows(rows: RowSource, mapped: RowMap) -> EncodedRows | RowCoding:
    """Codes of rows in memory are kept; others are made when they are needed."""
    if not isinstance(rows, ArrayRows):
        return RowCoding(rows, mapped)
    rows = rows.used()
    many, width = len(rows.x), mapped.lattice.columns + mapped.lattice.outputs
    codes = np.empty((many, width), dtype=np.int16)
    for first in range(0, many, CHUNK):
        chunk = slice(first, first + CHUNK)
        codes[chunk] = mapped.codes(rows.x[chunk], rows.y[chunk])
    return EncodedRows(codes)


def products(steps: Floats, clip: int, codes: Floats) -> Ints:
    """Exact products of rows and clipped residuals, summed over some rows: private."""
    design, target = codes[:, :-1], codes[:, -1]
    predicted = np.rint((design @ steps) * 2.0**-_PLACES)
    residuals = np.clip(target - predicted, -clip, clip)
    return np.asarray(design.T @ residuals).astype(np.int64)


LEVELS = 1 << 6
"""Levels of a squared residual between zero and the square of the clip."""
COARSE = 1 << 4
"""Steps of the lattice in a step of these products, whose noise would be too wide otherwise."""


def residual_products(theta: Floats, clips: tuple[int, ...], codes: Floats) -> Ints:
    """Products of columns, times the clipped squared residual of the row, in levels: private.

    ``theta`` holds one column of steps for each output (see `steps_of`); the result is flat, one
    matrix for each.
    """
    # Theorem: a row moves the matrix of each output by at most `residual_norm(lattice)` in norm.
    # Proof: it adds `q c c'` with `0 <= q <= LEVELS` and c its columns in coarse steps, cut toward
    #   zero, so that `|c|^2 <= row_squared / COARSE^2`, and both are whole.
    columns = len(theta)
    design = codes[:, :columns]
    coarse = np.trunc(design / COARSE)
    found = []
    for output, clip in enumerate(clips):
        predicted = np.rint((design @ theta[:, output]) * 2.0**-_PLACES)
        residuals = np.clip(codes[:, columns + output] - predicted, -clip, clip)
        levels = np.rint(np.square(residuals) * (LEVELS / clip**2))
        # Whole numbers below 2**53, so in any order the same.
        found.append((coarse.T @ (coarse * levels[:, None])).astype(np.int64).ravel())
    return np.concatenate(found)


def residual_norm(lattice: RowLattice) -> int:
    """How far one row moves the products with its squared residual, in Frobenius norm."""
    return LEVELS * (lattice.row_squared // COARSE**2)


def gram(codes: Floats) -> Ints:
    """The exact Gram matrix of some rows, flat: private."""
    design = codes[:, :-1]
    return (design.T @ design).astype(np.int64).ravel()


def noisy_gram(
    rows: EncodedRows | RowCoding,
    lattice: RowLattice,
    *,
    noise: AdditiveMechanism,
    rng: RandomSource,
) -> Floats:
    """The Gram matrix with symmetric noise, in mapped units."""
    size = lattice.columns
    exact = exact_sums(rows, gram, size=size * size)
    noisy = np.asarray(noise.release(exact, rng=rng), dtype=np.float64).reshape(size, size)
    return np.asarray((noisy + noisy.T) / (2 * lattice.steps**2))


def descend(
    rows: EncodedRows | RowCoding,
    grid: RowLattice,
    *,
    noises: list[AdditiveMechanism],
    clip: int,
    step: Floats,
    rng: RandomSource,
) -> Floats:
    """The mean of the coefficients over the second half of the rounds.

    Each round adds ``step`` times the noisy products of rows and clipped residuals.
    """
    # Theorem: as private as the composition of `noises`.
    # Proof: a round releases a vector that one row moves by `gradient_square`; coefficients are
    #   functions of what was released, so composition is adaptive.
    # Source: Abadi et al. 2016 with all rows in each round; Tang et al. 2023 for the
    #   preconditioner.
    theta, mean = np.zeros(grid.columns), np.zeros(grid.columns)
    first = len(noises) // 2
    for turn, noise in enumerate(noises):
        piece = partial(products, steps_of(theta, grid), clip)
        exact = exact_sums(rows, piece, size=grid.columns)
        noisy = np.asarray(noise.release(exact, rng=rng), dtype=np.float64)
        theta = theta + step @ (noisy / (grid.steps * grid.target_steps))
        if turn >= first:
            mean += theta / (len(noises) - first)
    return mean
