"""Published and shipped mistakes, as simulations.

They cannot release: there is no guarantee to charge, and the randomness is a plain seeded
generator. Continuous noise is read on a public grid (`_read`), so that what an audit catches is
the mistake and not the low bits of doubles; `float_laplace` is the one that shows those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit.cases.sparse_vector import laplace_integers

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
EPSILON = 1.0
MISPRINTED = math.sqrt(2 * 10 * math.log(1.25 / 1e-5) / EPSILON)
"""M13 at sensitivity 10, epsilon 1, delta 1e-5."""
THRESHOLD = 6
MIXED = 8e-4
"""A sensitivity below the mixed mechanism's threshold sqrt(pi) delta epsilon / 2 at delta 1e-3."""


def small_scale(value: int, n: int, seed: int) -> Ints:
    """Discrete Laplace noise with 90% of the scale that epsilon needs."""
    return value + laplace_integers(0.9 / EPSILON, n, np.random.default_rng(seed))


def small_sigma(value: float, n: int, seed: int) -> Floats:
    """Gaussian noise with 90% of the standard deviation that mu = 1 needs."""
    return _read(value + np.random.default_rng(seed).normal(0, 0.9, n))


def inverted_scale(value: int, n: int, seed: int) -> Ints:
    """Lap(epsilon) in place of Lap(1/epsilon), at epsilon 1/2."""
    return value + laplace_integers(0.5, n, np.random.default_rng(seed))


def float_laplace(value: float, n: int, seed: int) -> Floats:
    """Double-precision Laplace noise added to a double: the low bits tell the input."""
    return value + np.random.default_rng(seed).laplace(0, 1 / EPSILON, n)


def redrawn(value: int, n: int, seed: int) -> Ints:
    """Noise drawn again until the result is positive."""
    rng = np.random.default_rng(seed)
    out = value + laplace_integers(1 / EPSILON, n, rng)
    while np.any(out <= 0):
        again = out <= 0
        out[again] = value + laplace_integers(1 / EPSILON, int(again.sum()), rng)
    return out


def same_noise_twice(values: Sequence[int], n: int, seed: int) -> Ints:
    """Two queries, one draw."""
    noise = laplace_integers(2 / EPSILON, n, np.random.default_rng(seed))
    return np.stack([value + noise for value in values], axis=1)


def seed_reuse(value: int, n: int, seed: int) -> Ints:
    """Every release starts the generator anew from the same seed."""
    del seed  # that is the mistake
    return np.repeat(value + laplace_integers(1 / EPSILON, 1, np.random.default_rng(7)), n)


def off_grid(value: float, n: int, seed: int) -> Floats:
    """Integer noise on a value that is no integer: the fraction passes through."""
    noise = laplace_integers(1 / EPSILON, n, np.random.default_rng(seed))
    return value + noise.astype(np.float64)


def forgotten_clamp(data: Sequence[int], n: int, seed: int) -> Ints:
    """A sum of values declared to lie in [0, 1], without the clamp."""
    return sum(data) + laplace_integers(1 / EPSILON, n, np.random.default_rng(seed))


def half_range_mean(data: Sequence[float], n: int, seed: int) -> Floats:
    """M2: the mean on [-1, 1] with noise for max(|lower|, |upper|)/n, half of what it needs."""
    noise = np.random.default_rng(seed).laplace(0, 1 / (len(data) * EPSILON), n)
    return _read(float(np.mean(data)) + noise)


def secret_size_mean(data: Sequence[float], n: int, seed: int) -> Floats:
    """B2: the mean on [0, 1] when the size is secret, with a scale that depends on the size."""
    return half_range_mean(data, n, seed)


def local_median(data: Sequence[float], n: int, seed: int) -> Floats:
    """B28: the median on [0, 1] with noise for its local sensitivity on these very data."""
    scale = _local_sensitivity_of_median(data) / EPSILON
    return _read(float(np.median(data)) + np.random.default_rng(seed).laplace(0, 1, n) * scale)


def deviation_by_range(data: Sequence[float], n: int, seed: int) -> Floats:
    """M49: the standard deviation on [0, 1] with noise for R/n; it can move by R/sqrt(n)."""
    noise = np.random.default_rng(seed).laplace(0, 1 / (len(data) * EPSILON), n)
    return _read(float(np.std(data, ddof=1)) + noise)


def block_mean(data: Sequence[float], n: int, seed: int) -> Floats:
    """M43: a block's mean with noise for n records, although the block may hold a single one."""
    population = 1000
    noise = np.random.default_rng(seed).laplace(0, 2 / (population * EPSILON), n)
    return _read(float(np.mean(data)) + noise)


def wrapping_sum(data: Sequence[int], n: int, seed: int) -> Ints:
    """A sum in 32 bits that wraps around."""
    total = (sum(data) + 2**31) % 2**32 - 2**31
    return total + laplace_integers(1 / EPSILON, n, np.random.default_rng(seed))


def misprinted_gaussian(value: float, n: int, seed: int) -> Floats:
    """M13: sigma^2 = 2 D ln(1.25/delta)/epsilon, without the squares, at D = 10."""
    return _read(value + np.random.default_rng(seed).normal(0, MISPRINTED, n))


def mixed_noise(value: float, n: int, seed: int) -> Floats:
    """B39, M35: the mixed noise mechanism: Gaussian noise of variance 2 (D/epsilon)^2."""
    return _read(value + np.random.default_rng(seed).normal(0, math.sqrt(2) * MIXED / EPSILON, n))


def nan_passes(data: Sequence[float], n: int, seed: int) -> Floats:
    """A clamped mean that lets NaN through."""
    mean = float(np.mean(np.clip(data, 0, 1)))
    return _read(mean + np.random.default_rng(seed).laplace(0, 1 / len(data), n))


def keys_that_occur(data: Sequence[int], n: int, seed: int) -> list[tuple[int, ...]]:
    """A noisy histogram of the keys that occur in the data, with the keys."""
    rng = np.random.default_rng(seed)
    keys = sorted(set(data))
    counts = [data.count(k) + laplace_integers(1 / EPSILON, n, rng) for k in keys]
    return [(*keys, *row) for row in np.stack(counts, axis=1).tolist()]


def threshold_reached(data: Sequence[int], n: int, seed: int) -> NDArray[np.bool_]:
    """A key is shown when its noisy count reaches THRESHOLD; delta was computed for exceeding."""
    noise = laplace_integers(1 / EPSILON, n, np.random.default_rng(seed))
    return (noise + len(data) >= THRESHOLD) & bool(data)


def bounds_from_data(data: Sequence[float], n: int, seed: int) -> Floats:
    """A sum whose noise is scaled by the largest value that occurs."""
    noise = np.random.default_rng(seed).laplace(0, max(data) / EPSILON, n)
    return _read(sum(data) + noise)


def free_count(data: Sequence[int], n: int, seed: int) -> Ints:
    """The exact count, charged nothing."""
    del seed
    return np.full(n, len(data), dtype=np.int64)


def _local_sensitivity_of_median(data: Sequence[float]) -> float:
    """B3, replace-one, odd size: the larger gap next to the middle."""
    x = sorted(data)
    m = len(x) // 2
    return max(x[m + 1] - x[m], x[m] - x[m - 1])


def _read(values: Floats) -> Floats:
    return np.round(values * 2.0**30) / 2.0**30
