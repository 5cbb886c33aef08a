"""Piecewise constant noise: the staircase distribution, and any symmetric falling shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Enclosure, Number, ceil_div, exp_minus, light_share
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Distribution, Floats, Ints, check_size, floats, moment_order
from discreet.noise.laplace import LARGEST_NOISE_SCALE, Geometric
from discreet.noise.random_source import RandomSource
from discreet.noise.uniform import bernoulli_real, uniform_integers

# ── Staircase noise ──────────────────────────────────────────────────────────────────────────────
# Staircase noise: the law of least loss among all that keep a pure epsilon.


_LARGEST = 1 << 61


@dataclass(frozen=True)
class Staircase(Distribution):
    """P(k) proportional to b^j, or b^(j+1) from ``tread`` steps on: |k| = j shift + u, b = e^-eps.

    The ratio of two places that are at most ``shift`` apart is never above e^epsilon, and for
    places exactly ``shift`` apart on one side it is that. A sample is a geometric number of
    flights, a tread or a riser, a place on it and a sign; minus zero is drawn again.
    """

    # Source: Geng, Viswanath 2014.

    epsilon: Fraction
    shift: int
    tread: int

    def __init__(self, epsilon: Number, *, shift: int, tread: int) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "shift", count("shift", shift))
        object.__setattr__(self, "tread", count("tread", tread))
        if self.tread > self.shift:
            raise InvalidArgument(f"tread must be at most shift={shift}, got {tread}.")
        if self.shift > LARGEST_NOISE_SCALE * self.epsilon or self.shift > _LARGEST:
            raise InvalidArgument(
                "shift must be at most 2**55 epsilon, and 2**61: use a coarser grid."
            )

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def _ratio(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _flight(self) -> float:
        """Weight of one flight, in units of its first place."""
        return self.tread + self._ratio * (self.shift - self.tread)

    @property
    def _total(self) -> float:
        return 2 * self._flight / -math.expm1(-self.epsilon) - 1

    def log_pmf(self, k: ArrayLike) -> Floats:
        flights, place = np.divmod(np.abs(floats(k)), self.shift)
        return -float(self.epsilon) * (flights + (place >= self.tread)) - math.log(self._total)

    def cdf(self, k: ArrayLike) -> Floats:
        return self.sf(-np.floor(floats(k)) - 1)

    def sf(self, k: ArrayLike) -> Floats:
        x = np.floor(floats(k))
        tail = self._tail(np.where(x >= 0, x + 1, -x))
        return np.where(x >= 0, tail, 1 - tail)

    def _tail(self, k: Floats) -> Floats:
        """P(X >= k) for k >= 1."""
        b = self._ratio
        flights, place = np.divmod(k, self.shift)
        rest = np.maximum(self.tread - place, 0) + b * (self.shift - np.maximum(place, self.tread))
        later = b * self._flight / -math.expm1(-self.epsilon)
        reached: Floats = np.exp(-float(self.epsilon) * flights) * (rest + later) / self._total
        return reached

    def at_least(self, k: int, precision: int) -> Enclosure:
        if k <= 0:
            low, high = self.at_least(1 - k, precision)
            return (1 << precision) - high, (1 << precision) - low
        flights, place = divmod(k, self.shift)
        work = precision + self.shift.bit_length() + 8
        scale = 1 << work
        ends = [Fraction(end, scale) for end in exp_minus(self.epsilon, work)]
        powers = [Fraction(end, scale) for end in exp_minus(self.epsilon * flights, work)]
        # P = b^j (rest (1 - b) + b flight) / (2 flight - (1 - b)), with b between two ends.
        tops, bottoms = [], []
        for b, other in (ends, ends[::-1]):
            flight: Fraction = self.tread + b * (self.shift - self.tread)
            rest: Fraction = max(self.tread - place, 0) + b * (self.shift - max(place, self.tread))
            tops.append(rest * (1 - other) + b * flight)
            bottoms.append(2 * flight - (1 - b))
        least = (powers[0] * tops[0] / bottoms[1]) * (1 << precision)
        most = (powers[1] * tops[1] / bottoms[0]) * (1 << precision)
        return math.floor(least), math.ceil(most)

    def moment(self, order: int) -> float:
        return 0.0 if moment_order(order) % 2 else self.absolute_moment(order)

    def absolute_moment(self, order: int) -> float:
        """``E[|X|**order]`` for orders 1 to 4."""
        first, whole = power_sums(self.tread), power_sums(self.shift)
        within = [a + self._ratio * (b - a) for a, b in zip(first, whole, strict=True)]
        gap = -math.expm1(-self.epsilon)
        flights = [1 / gap]
        flights += [Geometric(1 / self.epsilon).moment(i) / gap for i in range(1, order + 1)]
        total = sum(
            math.comb(order, i) * float(self.shift) ** i * flights[i] * within[order - i]
            for i in range(order + 1)
        )
        return 2 * total / self._total

    def sample(self, size: int, rng: RandomSource) -> Ints:
        out = np.empty(check_size(size), dtype=np.int64)
        todo = np.arange(len(out))
        while todo.size:
            flights = Geometric(1 / self.epsilon).sample(todo.size, rng)
            place = self._places(todo.size, rng)
            negative = uniform_integers(2, todo.size, rng) == 1
            magnitude = flights * self.shift + place
            out[todo] = np.where(negative, -magnitude, magnitude)
            todo = todo[negative & (magnitude == 0)]
        return out

    def _places(self, size: int, rng: RandomSource) -> Ints:
        on_tread = uniform_integers(self.tread, size, rng)
        if self.tread == self.shift:
            return on_tread
        on_riser = self.tread + uniform_integers(self.shift - self.tread, size, rng)
        return np.where(bernoulli_real(self._riser, size, rng), on_riser, on_tread)

    def _riser(self, precision: int) -> Enclosure:
        """Enclose the share of a flight that is past the tread: b (s - r) / (r + b (s - r))."""
        light = self.shift - self.tread
        return light_share(self.epsilon, precision, light=light, heavy=self.tread)


def power_sums(n: int) -> tuple[int, ...]:
    """Sums of u^i over 0 <= u < n, for i = 0 .. 4."""
    one, two = n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
    return n, one, two, one * one, two * (3 * n * n - 3 * n - 1) // 5


# ── Any falling shape ────────────────────────────────────────────────────────────────────────────


TOTAL = 1 << 62
"""Weights of all cells together."""


@dataclass(frozen=True)
class PiecewiseConstant(Distribution):
    """Cell c (and -c) has probability ``weights[c] / 2**62``; places within a cell are alike.

    A cell is ``width`` integers, an odd number, the cell 0 around zero. Weights never rise away
    from zero. A draw is one uniform number below 2**62 looked up in the cumulated weights, and a
    place: exact, because the weights are whole numbers.
    """

    weights: tuple[int, ...]
    width: int

    def __init__(self, weights: Sequence[int], *, width: int = 1) -> None:
        object.__setattr__(self, "weights", tuple(int(weight) for weight in weights))
        object.__setattr__(self, "width", count("width", width))
        if self.width % 2 == 0:
            raise InvalidArgument(f"width must be odd, so that zero is in the middle, got {width}.")
        falling = all(a >= b >= 0 for a, b in pairwise((*self.weights, 0)))
        if not self.weights or not falling or 2 * sum(self.weights) - self.weights[0] != TOTAL:
            raise InvalidArgument("weights must never rise, and sum to 2**62 with both signs.")
        if self.support[1] > _LARGEST:
            raise InvalidArgument("noise must stay within 2**61 steps: use a coarser grid.")

    @property
    def support(self) -> tuple[float, float]:
        reach = (len(self.weights) - 1) * self.width + self.width // 2
        return -reach, reach

    @cached_property
    def _half(self) -> Floats:
        return np.array(self.weights, dtype=np.float64) * 2.0**-62

    @cached_property
    def _ends(self) -> Ints:
        """Cumulated weights from the lowest cell on."""
        every = np.array((*self.weights[:0:-1], *self.weights), dtype=np.int64)
        return np.cumsum(every)

    def log_pmf(self, k: ArrayLike) -> Floats:
        x = floats(k)
        cell = np.floor((np.abs(x) + self.width // 2) / self.width)
        inside = (cell < len(self.weights)) & (x == np.floor(x))
        found = self._half[np.where(inside, cell, 0).astype(np.int64)] / self.width
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(found), -np.inf)

    def cdf(self, k: ArrayLike) -> Floats:
        return self.sf(-np.floor(floats(k)) - 1)

    def sf(self, k: ArrayLike) -> Floats:
        """From the exact tails of whole cells, and the part of the cell that is cut."""
        x = np.floor(floats(k))
        tail = self._tail(np.minimum(np.where(x >= 0, x + 1, -x), self.support[1] + 1))
        return np.where(x >= 0, tail, 1 - tail)

    def _tail(self, k: Floats) -> Floats:
        """P(X >= k) for k >= 1, within the support or one above."""
        cell = np.floor((k + self.width // 2) / self.width)
        index = cell.astype(np.int64)
        after = np.array([*np.cumsum(self._half[::-1])[::-1], 0.0, 0.0])
        part = (cell * self.width + self.width // 2 + 1 - k) / self.width
        here = np.append(self._half, 0.0)[index]
        return after[index + 1] + here * part

    def at_least(self, k: int, precision: int) -> Enclosure:
        if k <= 0:
            low, high = self.at_least(1 - k, precision)
            return (1 << precision) - high, (1 << precision) - low
        cell = (k + self.width // 2) // self.width
        if cell >= len(self.weights):
            return 0, 0
        part = cell * self.width + self.width // 2 + 1 - k
        mass = self.width * sum(self.weights[cell + 1 :]) + part * self.weights[cell]
        scaled, total = mass << precision, TOTAL * self.width
        return scaled // total, ceil_div(scaled, total)

    def moment(self, order: int) -> float:
        return 0.0 if moment_order(order) % 2 else self.absolute_moment(order)

    def absolute_moment(self, order: int) -> float:
        """``E[|X|**order]`` for orders 1 to 4."""
        sums = power_sums(self.width // 2 + 1)
        inner = [1.0, *(2 * total / self.width for total in sums[1:])]
        cells = self.width * np.arange(len(self.weights), dtype=np.float64)
        powers = np.zeros(len(cells))
        for i in range(0, order + 1, 2):  # odd powers of the places of a cell cancel
            powers += math.comb(order, i) * cells ** (order - i) * inner[i]
        powers[0] = inner[order]
        double = np.where(np.arange(len(cells)) > 0, 2.0, 1.0)
        return float(np.sum(double * self._half * powers))

    def sample(self, size: int, rng: RandomSource) -> Ints:
        size = check_size(size)
        found = np.searchsorted(self._ends, uniform_integers(TOTAL, size, rng), side="right")
        cells = found.astype(np.int64) - (len(self.weights) - 1)
        if self.width == 1:
            return cells
        return cells * self.width + uniform_integers(self.width, size, rng) - self.width // 2

    def delta(self, shift: int, epsilon: Fraction) -> Fraction:
        """The hockey-stick divergence at ``epsilon`` of this law and itself moved by ``shift``."""
        # Theorem: at least the exact divergence, above it by less than 2**-60, and the same both
        #   ways; smaller shifts have less.
        # Proof: moved by `j` cells and `r` places, the share 1 - r/width of every cell meets the
        #   cell j away and the rest the one j + 1 away, so the divergence is that mixture of those
        #   of whole cells. These are sums over integers, with e^epsilon replaced by something
        #   smaller. The law is symmetric, hence "both ways". Weights never rise away from zero, so
        #   a larger shift never makes the other's mass larger where this one's is in excess.
        cells, rest = divmod(shift, self.width)
        part = Fraction(rest, self.width)
        first = (1 - part) * self._cell_delta(cells, epsilon)
        return first + (part * self._cell_delta(cells + 1, epsilon) if rest else 0)

    def _cell_delta(self, cells: int, epsilon: Fraction) -> Fraction:
        # e^epsilon from below, as a whole number of 2**-64. With 192 bits it is good to 2**-120 as
        # long as it is below 2**63; beyond, no cell is in excess of one that has any weight.
        factor = (1 << 256) // exp_minus(epsilon, 192)[1]
        every = (*self.weights[:0:-1], *self.weights)
        moved = (*(0,) * cells, *every)
        excess = sum(
            max(0, (own << 64) - factor * other) for own, other in zip(every, moved, strict=False)
        )
        return Fraction(excess, TOTAL << 64)
