"""Composition of privacy-loss distributions, with everything that is left out accounted for.

All masses are *tilted*: multiplied by ``e^{tilt * loss}`` and scaled to sum to one. The tilt moves
the bulk of the distribution to the epsilon that is asked for, so that rounding errors and
truncated tails, which are relative to the bulk, are relative to delta and not to one.

Whatever tilted mass is lost, wrapped around or mistaken adds to ``lost``; it can change
``delta(eps)`` by at most ``lost * e^{log_scale - tilt * eps}`` (T6).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy.fft import irfft, next_fast_len, rfft

from discreet.accounting.cells import SNAP, Masses
from discreet.accounting.conversion import Floats

# Truncation per operation, in tilted mass.
TRUNCATE = 1e-15
# ||fft(a) - computed|| <= FFT_ERROR log2(n) ||fft(a)|| (Higham 2002, Theorem 24.2, generous).
FFT_ERROR = 8 * 2.0**-53
LARGEST = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A tilted distribution of losses ``offset + step * (start + i)``."""

    step: float
    tilt: float
    start: int
    weights: Floats
    log_scale: float
    offset: float = 0.0
    infinity: float = 0.0
    lost: float = 0.0
    count: int = 1

    def losses(self) -> Floats:
        index = np.arange(self.weights.size, dtype=np.float64)
        grid: Floats = self.offset + self.step * (self.start + index)
        return grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """The profile of a composed distribution, rounded to one side.

    With the grid point ``l_j`` at or above eps and ``g = l_j - eps`` the tilted sum over all losses
    above eps is ``e^{-tilt g} (T_j - e^{-g} U_j)``, where T and U are running sums that decay by
    ``e^{-tilt step}`` and ``e^{-(tilt+1) step}`` from one point to the next.
    """

    source: Composed
    side: str
    points: Floats
    first: Floats
    second: Floats

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon."""
        return float(self._at(np.asarray([epsilon]))[0])

    def _at(self, epsilon: Floats) -> Floats:
        source = self.source
        # Snapped losses are paid for here.
        drift = 2 * SNAP * source.step * source.count
        at = epsilon - drift if self.side == "upper" else epsilon + drift
        place = np.searchsorted(self.points, at, side="left")
        inside = place < self.points.size
        j = np.minimum(place, self.points.size - 1)
        gap = np.where(inside, self.points[j] - at, 0.0)
        total = np.where(
            inside,
            np.exp(-source.tilt * gap) * (self.first[j] - np.exp(-gap) * self.second[j]),
            0.0,
        )
        total += source.lost if self.side == "upper" else -source.lost
        with np.errstate(divide="ignore"):
            exponent = source.log_scale - source.tilt * at + np.log(np.maximum(total, 0.0))
        finite = np.exp(np.minimum(exponent, 0.0))
        margin = 1 + 1e-11 if self.side == "upper" else 1 - 1e-11
        return np.minimum(1.0, (source.infinity + finite) * margin)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon certified at ``delta``, or the largest one refuted.

        Far from the target the bounds are loose, so they are scanned at all grid points.
        """
        values = self._at(self.points)
        if self.side == "upper":
            good = np.flatnonzero((values <= delta) & (self.points >= 0))
            if self.delta(0.0) <= delta:
                return 0.0
            if good.size == 0:
                beyond = float(self.points[-1]) + 10 * self.source.step
                return beyond if beyond > 0 and self.delta(beyond) <= delta else math.inf
            high = float(self.points[good[0]])
            low = max(0.0, high - self.source.step)
            return self._bisect(low, high, delta)[1] * (1 + 1e-11)
        bad = np.flatnonzero((values > delta) & (self.points > 0))
        if bad.size == 0:
            return 0.0
        low = float(self.points[bad[-1]])
        return self._bisect(low, low + self.source.step, delta)[0] * (1 - 1e-10)

    def _bisect(self, low: float, high: float, delta: float) -> tuple[float, float]:
        for _ in range(40):
            middle = (low + high) / 2
            if self.delta(middle) > delta:
                low = middle
            else:
                high = middle
        return low, high


def profile(source: Composed, *, side: str) -> Profile:
    """Prepare the running sums."""
    backwards = source.weights[::-1]
    slow, fast = math.exp(-source.tilt * source.step), math.exp(-(source.tilt + 1) * source.step)
    return Profile(
        source=source,
        side=side,
        points=source.losses(),
        first=scipy.signal.lfilter([1.0], [1.0, -slow], backwards)[::-1],
        second=scipy.signal.lfilter([1.0], [1.0, -fast], backwards)[::-1],
    )


def tilted(masses: Masses, *, step: float, tilt: float) -> Composed:
    """Tilt masses and set them on a dense array."""
    start, stop = int(masses.index[0]), int(masses.index[-1])
    log = tilt * (masses.offset + step * masses.index)
    scale = float(log.max())
    values = masses.mass * np.exp(log - scale)
    total = float(values.sum())
    if stop - start >= LARGEST:
        raise OverflowError
    weights = np.zeros(stop - start + 1)
    weights[masses.index - start] = values / total
    return Composed(
        step=step,
        tilt=tilt,
        start=start,
        weights=weights,
        log_scale=scale + math.log(total),
        offset=masses.offset,
        infinity=masses.infinity,
        lost=weights.size * 1e-18,
    )


def power(part: Composed, count: int) -> Composed:
    """``count``-fold self-composition by one power in the frequency domain.

    Theorem: the circular result on a window that holds all but ``tail`` of the tilted mass differs
        from the true one by at most ``tail`` outside and by what wraps around inside.
    Proof: Chernoff's bound on both ends of the sum of ``count`` tilted losses; T6 for round-off.
    """
    if count == 1:
        return part
    index = np.arange(part.weights.size, dtype=np.float64)
    low, high = _window(index, part.weights, count)
    full = (part.weights.size - 1) * count
    low, high = max(0, low), min(full, high)
    size = next_fast_len(max(high - low + 1, part.weights.size), real=True)
    if size > LARGEST:
        raise OverflowError
    frequency = rfft(part.weights, size)
    magnitude = np.abs(frequency)
    # T6: |F^n - G^n| <= n max(|F|, |G|)^(n-1) |F - G|; by Cauchy-Schwarz over the frequencies the
    # error of one bin is at most n (mean |F|^(2n-2))^(1/2) times the 2-norm error of the transform.
    relative = FFT_ERROR * math.log2(size)
    norm = float(np.linalg.norm(part.weights))
    largest = np.minimum(magnitude + relative * math.sqrt(size) * norm, 1.0)
    forth = count * relative * norm * math.sqrt(2 * float(np.mean(largest ** (2 * count - 2))))
    back = relative * math.sqrt(2 * float(np.mean(magnitude ** (2 * count))))
    error = forth + back
    values = irfft(frequency**count, size)
    values = np.roll(values, -(low % size))[: high - low + 1]
    weights = np.maximum(values, 0.0)
    return replace(
        part,
        start=part.start * count + low,
        weights=weights,
        log_scale=part.log_scale * count,
        offset=part.offset * count,
        infinity=-math.expm1(count * math.log1p(-min(part.infinity, 1 - 1e-16))),
        lost=count * part.lost + 4 * TRUNCATE + error * _reach(part, weights.size),
        count=part.count * count,
    )


def _reach(part: Composed, size: int) -> float:
    """How many errors of one bin a tilted sum over all bins can collect."""
    if part.tilt <= 0:
        return float(size)
    return min(float(size), 1 + 1 / (part.tilt * part.step))


def _window(index: Floats, weights: Floats, count: int) -> tuple[int, int]:
    """Indices that hold all but 2 * TRUNCATE of the mass of ``count`` draws (Chernoff)."""
    mean = float(weights @ index)
    centred = index - mean
    sd = math.sqrt(max(float(weights @ centred**2), 1e-12))
    budget = math.log(1 / TRUNCATE)
    start = math.sqrt(2 * budget / count) / sd
    rates = start * np.exp(np.linspace(-4.0, 3.0, 36))
    widest = max(float(centred[-1]), -float(centred[0]), 1e-300)
    rates = rates[rates * widest < 600]
    if rates.size == 0:
        rates = np.array([600 / widest])
    grown = np.exp(np.outer(rates, centred)) @ weights
    shrunk = np.exp(np.outer(-rates, centred)) @ weights
    up = float(np.min((count * np.log(grown) + budget) / rates))
    down = float(np.min((count * np.log(shrunk) + budget) / rates))
    return math.floor(count * mean - down), math.ceil(count * mean + up)


def convolve(left: Composed, right: Composed) -> Composed:
    """The composition of two; the coarser grid is first set on the finer one."""
    left, right = _same_step(left, right)
    size = left.weights.size + right.weights.size - 1
    if size > LARGEST:
        raise OverflowError
    if min(left.weights.size, right.weights.size) < 64:
        weights = np.convolve(left.weights, right.weights)
        error = 0.0
    else:
        fast = next_fast_len(size, real=True)
        weights = irfft(rfft(left.weights, fast) * rfft(right.weights, fast), fast)[:size]
        weights = np.maximum(weights, 0.0)
        norms = float(np.linalg.norm(left.weights) * np.linalg.norm(right.weights))
        error = 3 * FFT_ERROR * math.log2(fast) * norms
    weights, skipped = _trim(weights)
    return Composed(
        step=left.step,
        tilt=left.tilt,
        start=left.start + right.start + skipped,
        weights=weights,
        log_scale=left.log_scale + right.log_scale,
        offset=left.offset + right.offset,
        infinity=left.infinity + right.infinity - left.infinity * right.infinity,
        lost=left.lost + right.lost + 2 * TRUNCATE + error * _reach(left, weights.size),
        count=left.count + right.count,
    )


def _same_step(left: Composed, right: Composed) -> tuple[Composed, Composed]:
    if left.step == right.step:
        return left, right
    step = min(left.step, right.step)
    return _refined(left, step), _refined(right, step)


def _refined(part: Composed, step: float) -> Composed:
    factor = round(part.step / step)
    if factor == 1:
        return part
    weights = np.zeros((part.weights.size - 1) * factor + 1)
    weights[::factor] = part.weights
    return replace(part, step=step, start=part.start * factor, weights=weights)


def _trim(weights: Floats) -> tuple[Floats, int]:
    """Cut TRUNCATE from both ends."""
    below = np.cumsum(weights)
    first = int(np.searchsorted(below, TRUNCATE))
    above = np.cumsum(weights[::-1])
    last = weights.size - int(np.searchsorted(above, TRUNCATE))
    return weights[first:last], first


def compose(parts: list[Composed]) -> Composed:
    """All parts, the smallest two first, so that large arrays are touched rarely."""
    heap = [(-part.step, part.weights.size, number, part) for number, part in enumerate(parts)]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        joined = convolve(first[3], second[3])
        number += 1
        heapq.heappush(heap, (-joined.step, joined.weights.size, number, joined))
    return heap[0][3]
