"""Staircase noise: the law of least loss among all that keep a pure epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Enclosure, Number, exp_minus, light_share
from discreet.noise.bits import Bits
from discreet.noise.laplace import LARGEST_NOISE_SCALE, Geometric
from discreet.noise.law import Floats, Ints, Law, floats, moment_order, sized
from discreet.noise.uniform import below, bernoulli_real

_LARGEST = 1 << 61


@dataclass(frozen=True)
class Staircase(Law):
    """P(k) proportional to b^j, or b^(j+1) from ``tread`` steps on: |k| = j shift + u, b = e^-eps.

    The ratio of two places that are at most ``shift`` apart is never above e^epsilon, and for
    places exactly ``shift`` apart on one side it is that. A sample is a geometric number of
    flights, a tread or a riser, a place on it and a sign; minus zero is drawn again.

    Source: Geng, Viswanath 2014.
    """

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

    def sample(self, size: int, bits: Bits) -> Ints:
        out = np.empty(sized(size), dtype=np.int64)
        todo = np.arange(len(out))
        while todo.size:
            flights = Geometric(1 / self.epsilon).sample(todo.size, bits)
            place = self._places(todo.size, bits)
            negative = below(2, todo.size, bits) == 1
            magnitude = flights * self.shift + place
            out[todo] = np.where(negative, -magnitude, magnitude)
            todo = todo[negative & (magnitude == 0)]
        return out

    def _places(self, size: int, bits: Bits) -> Ints:
        on_tread = below(self.tread, size, bits)
        if self.tread == self.shift:
            return on_tread
        on_riser = self.tread + below(self.shift - self.tread, size, bits)
        return np.where(bernoulli_real(self._riser, size, bits), on_riser, on_tread)

    def _riser(self, precision: int) -> Enclosure:
        """Enclose the share of a flight that is past the tread: b (s - r) / (r + b (s - r))."""
        light = self.shift - self.tread
        return light_share(self.epsilon, precision, light=light, heavy=self.tread)


def power_sums(n: int) -> tuple[int, ...]:
    """Sums of u^i over 0 <= u < n, for i = 0 .. 4."""
    one, two = n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
    return n, one, two, one * one, two * (3 * n * n - 3 * n - 1) // 5
