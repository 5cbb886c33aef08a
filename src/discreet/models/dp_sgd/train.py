"""Private gradient descent: exact clipped sums of a secret sample, noise in whole numbers (C43).

Each step draws every record independently with probability ``rate``, adds up the clipped gradients
of the drawn ones as whole numbers, adds Gaussian noise that is rounded to whole numbers, and takes
a step along the result. All else (momentum, averages, the penalty) is post-processing. The number
of steps is fixed before the first record is read; nothing stops a run early.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import NotCertified, OutOfDomain
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.gaussian import gaussian
from discreet.models.sgd.features import FEATURE_BITS, Steps
from discreet.models.sgd.objectives import Floats, Objective
from discreet.models.sgd.slopes import Grid, whole_slopes
from discreet.noise.bits import Bits
from discreet.noise.coins import packed_bernoulli

RATE_BITS = 32
"""Sampling rates are multiples of 2**-32, so that coins of exactly that probability exist."""

# Rows multiplied at once (they stay in the cache); noise and coins drawn at once.
_ROWS = 1 << 10
_NOISE = 1 << 20
_COINS = 1 << 25
_FINEST_PARAMETER = 26
# Sums stay within this range and noisy sums are cut to it: noise that was itself cut, at twice the
# range, then shows nothing of the sum.
RANGE = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """All public choices of a run, fixed before a record is read."""

    objective: Objective
    rate: Fraction
    steps: int
    noise: Fraction
    """Standard deviation of the noise in units of ``clip``: the noise multiplier."""
    clip: float
    rows: float
    """The number of records that sums are divided by: declared, public or paid for."""
    learning_rate: float
    momentum: float = 0.0
    average: float = 0.0
    """Share of the steps, counted from the end, whose parameters are averaged; 0: the last."""

    @property
    def mechanism(self) -> Additive:
        """The noise of one step, on an integer vector that one record moves by ``clip``.

        Theorem: rounded Gaussian noise is a post-processing of the Gaussian mechanism with
            ``noise`` times the sensitivity: each step costs ``GaussianNoise(noise)``, sampled.
        Proof: the vector is whole, so rounding after the addition and adding rounded noise are
            the same; one record's share has a length of at most ``sensitivity`` (see `Grid`).
        """
        return gaussian(
            sensitivity=Grid(clip=self.clip).sensitivity, mu=1 / self.noise, on="integers"
        )


def descend(steps: Steps, targets: Floats, *, run: Descent, bits: Bits) -> Floats:
    """The parameters after a run on mapped rows (see `features`) and their targets.

    Theorem: the parameters cost ``run.steps`` times ``Sampled(rate, GaussianNoise(noise))`` under
        add/remove, whatever the rows.
    Proof: given the parameters so far, a step is the mechanism of `Descent` on a Poisson sample;
        the parameters are a function of the noisy sums (adaptive composition, post-processing).
    Source: Abadi et al. 2016; C43, C45.
    Needs: targets that the objective understands, one for each row; private bits for a release.
    """
    batch = Batch(steps=steps, targets=targets, run=run)
    draws = _draws(len(steps), run.objective.dimension(steps.shape[1]), run, bits)

    def noisy_sum(theta: Floats) -> NDArray[np.int64]:
        chosen, noise = next(draws)
        return batch.sum(theta, chosen) + noise

    return follow(noisy_sum, run=run, features=steps.shape[1])


def follow(
    noisy_sum: Callable[[Floats], NDArray[np.int64]], *, run: Descent, features: int
) -> Floats:
    """The parameters after a run along noisy sums of gradients: post-processing of them."""
    scale = Grid(clip=run.clip).unit / (float(run.rate) * run.rows)
    theta = np.zeros(run.objective.dimension(features))
    velocity, total = np.zeros_like(theta), np.zeros_like(theta)
    first = min(run.steps - 1, run.steps - math.floor(run.average * run.steps))
    for step in range(run.steps):
        noisy = np.clip(noisy_sum(theta), -RANGE, RANGE) * scale
        velocity = run.momentum * velocity + noisy + run.objective.penalty_gradient(theta)
        theta = theta - run.learning_rate * velocity
        if not np.abs(theta).max() < 2.0**40:
            raise NotCertified("The steps diverge: take a smaller learning_rate.")
        if step >= first:
            total += theta
    return total / (run.steps - first)


def _draws(
    rows: int, width: int, run: Descent, bits: Bits
) -> Iterator[tuple[NDArray[np.intp] | None, NDArray[np.int64]]]:
    """For each step the rows that are drawn (None: all) and its noise; many steps at a time."""
    mechanism = run.mechanism
    most = max(1, min(_NOISE // width, _COINS // max(rows, 1)))
    for start in range(0, run.steps, most):
        count = min(most, run.steps - start)
        # Noise on zeros is noise: the sums are whole, so that it can be added to them later.
        noise = mechanism.release(np.zeros((count, width), dtype=np.int64), bits=bits)
        if run.rate == 1 or not rows:
            yield from ((None, part) for part in noise)
            continue
        coins = packed_bernoulli(run.rate, rows=count, columns=rows, bits=bits)
        for packed, part in zip(coins, noise, strict=True):
            drawn = np.unpackbits(packed, count=rows, bitorder="little")
            yield np.flatnonzero(drawn.view(np.bool_)), part


class Batch:
    """The rows with their caps, and exact sums of clipped gradients over some of them."""

    def __init__(self, *, steps: Steps, targets: Floats, run: Descent) -> None:
        grid = Grid(clip=run.clip)
        if len(steps) * grid.sensitivity > RANGE:
            raise OutOfDomain("X has too many rows for exact sums: at most 2**31.")
        self.steps, self.targets = steps, targets
        self.caps = grid.caps(steps)
        self.slopes = whole_slopes(run.objective, grid)
        self.objective = run.objective
        # Where drawn rows are gathered: fetched short, multiplied as doubles, in the cache.
        self._short = np.empty((_ROWS, steps.shape[1]), dtype=np.int16)
        self._rows = np.empty(self._short.shape)

    def sum(self, theta: Floats, chosen: NDArray[np.intp] | None) -> NDArray[np.int64]:
        """The sum of the clipped gradients of the chosen rows, in steps, exactly."""
        whole, exponent = rounded_parameters(theta, self.steps.shape[1])
        total = np.zeros(len(theta), dtype=np.int64)
        count = len(self.steps) if chosen is None else len(chosen)
        for start in range(0, count, len(self._rows)):
            part = slice(start, min(start + len(self._rows), count))
            picked = part if chosen is None else chosen[part]
            rows = self._gathered(picked)
            # Whole numbers below 2**53 all the way: exact, however the products are added up.
            margins = np.ldexp(self.objective.margins(whole, rows), -FEATURE_BITS - exponent)
            slopes = self.slopes(margins, self.targets[picked], self.caps[picked])
            total += (slopes.T @ rows).ravel().astype(np.int64)
        return total

    def _gathered(self, picked: slice | NDArray[np.intp]) -> Floats:
        if isinstance(picked, slice):
            short = self.steps[picked]
        else:
            short = self._short[: len(picked)]
            np.take(self.steps, picked, axis=0, out=short, mode="clip")
        rows = self._rows[: len(short)]
        rows[:] = short
        return rows


def rounded_parameters(theta: Floats, width: int) -> tuple[Floats, int]:
    """Parameters in whole steps of ``2**-exponent``, and that exponent: margins are exact then."""
    exponent = _exponent(theta, width)
    return np.rint(np.ldexp(theta, exponent)), exponent


def _exponent(theta: Floats, width: int) -> int:
    """Bits after the point of rounded parameters, few enough that margins are exact."""
    largest = max(1.0, float(np.abs(theta).max()))
    room = 52 - FEATURE_BITS - math.ceil(math.log2(width)) - math.ceil(math.log2(largest))
    return min(_FINEST_PARAMETER, room)
