"""The error of ranges from a square wave, before anything is collected.

The error of these estimates depends on the data, so there is no closed form: one number for what an
unbiased estimate could do, and a simulation of the real one on a guessed distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr, solve_triangular

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.local.distribution import SquareWave
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

_MOST_CELLS = 4096


def unbiased_variance(wave: SquareWave, first: Ints, last: Ints) -> Floats:
    """Variance times n of the best unbiased estimate of shares of cells first .. last.

    If all cells are equally frequent, and conditional on the data. The estimates of `SquareWave`
    are not unbiased: that no share is negative, early stopping and smoothing bring their error far
    below this unless there are very many reports.
    """
    # Theorem: with M the channel and f the uniform shares, the best linear unbiased estimate of w'f
    #   has n times the variance w' J^-1 w - sum f w^2, where J = M' diag(1 / Mf) M.
    # Proof: B = J^-1 M' diag(1 / Mf) satisfies B M = 1; one report's column of B has the covariance
    #   B diag(Mf) B' - ff' = J^-1 - ff' if the client is drawn from f. Of that, diag(f) - ff' is
    #   the drawing of clients, which is no error. By Gauss and Markov no other B does better.
    # Source: F52 (the Cramer-Rao bound), less the drawing of clients.
    cells = wave.cells
    if cells > _MOST_CELLS:
        raise InvalidArgument(f"wave must have at most {_MOST_CELLS} cells for this, got {cells}.")
    channel = np.array([wave.window.weights(i) for i in range(cells)]).T / wave.window.total
    expected = channel.mean(axis=1)
    (triangle,) = qr(channel / np.sqrt(expected)[:, None], mode="r", overwrite_a=True)
    # w' J^-1 w is the squared length of R^-T w, for the prefixes w and then their differences.
    prefixes = np.triu(np.ones((cells, cells)))
    lengths = np.zeros((cells + 1, cells))
    lengths[1:] = solve_triangular(triangle[:cells], prefixes, trans="T").T
    low, high = np.asarray(first), np.asarray(last) + 1
    spread: Floats = ((lengths[high] - lengths[low]) ** 2).sum(axis=-1)
    return spread - (high - low) / cells


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedError:
    """Mean square error of the shares of all ranges, by simulation: of this many runs."""

    error: float
    std: float
    """Standard error of the simulation."""
    runs: int


def simulate_square_wave_error(
    wave: SquareWave,
    *,
    reports: int,
    shares: ArrayLike | None = None,
    smooth: bool = True,
    runs: int = 20,
    rng: RandomSource | None = None,
) -> SimulatedError:
    """Simulate the mean squared error of a square wave over all ranges.

    The result depends on your guess of the distribution. No private value is involved.

    Args:
        wave: Randomizer, made by `square_wave`.
        reports: Number of reports.
        shares: Guess of the share of clients in each cell. If None, uniform, which suits smoothing.
        smooth: Whether the estimate is smoothed.
        runs: Number of simulated collections.
        rng: Random source of the simulation. If None, the operating system's.

    Returns:
        The mean squared error, and the standard deviation of this mean.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Nothing private is read.

    Examples:
        >>> from discreet import local
        >>> wave = local.square_wave(cells=8, epsilon=1)
        >>> local.simulate_square_wave_error(wave, reports=1000, runs=2).runs
        2
    """
    n, repeated = count("reports", reports), count("runs", runs, minimum=2)
    guess = np.full(wave.cells, 1.0) if shares is None else np.asarray(shares, dtype=np.float64)
    if guess.shape != (wave.cells,) or not (guess >= 0).all() or not 0 < guess.sum() < np.inf:
        raise InvalidArgument(f"shares must be {wave.cells} numbers, none negative, not all zero.")
    guess = guess / guess.sum()
    generator = np.random.Generator(np.random.Philox(resolve_rng(rng).words(2)))
    errors = np.empty(repeated)
    for run in range(repeated):
        clients = generator.multinomial(n, guess)
        told = wave.estimate(_reported(wave, clients, generator), n, smooth=smooth).shares
        errors[run] = _all_ranges(np.cumsum(told - clients / n))
    spread = float(errors.std(ddof=1)) / repeated**0.5
    return SimulatedError(error=float(errors.mean()), std=spread, runs=repeated)


def _reported(wave: SquareWave, clients: Ints, rng: np.random.Generator) -> Ints:
    """Counts of the symbols that so many clients in each cell send, without drawing each one."""
    channel = wave.window
    near = rng.binomial(clients, channel.width * channel.near / channel.total)
    counts = np.zeros(channel.symbols, dtype=np.int64)
    for cell, (inside, all_of) in enumerate(zip(near, clients, strict=True)):
        if all_of == 0:
            continue
        window = rng.multinomial(inside, np.full(channel.width, 1 / channel.width))
        rest = rng.multinomial(
            all_of - inside, np.full(channel.inputs - 1, 1 / (channel.inputs - 1))
        )
        counts[:cell] += rest[:cell]
        counts[cell : cell + channel.width] += window
        counts[cell + channel.width :] += rest[cell:]
    return counts


def _all_ranges(prefixes: Floats) -> float:
    """Mean square over all ranges, from the errors of the prefixes (that of none is zero)."""
    number = len(prefixes) + 1
    squares = number * float(prefixes @ prefixes) - float(prefixes.sum()) ** 2
    return squares / (number * (number - 1) / 2)
