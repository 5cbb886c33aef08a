"""Noisy counts in a tree of blocks, made consistent: prefix counts with their exact variance.

Leaves are the bins; every level above adds up ``branching`` blocks of the one below. Each level is
measured once, the root is not. All arrays have the groups as first axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import Unsupported
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

Floats: TypeAlias = NDArray[np.float64]
_STEPS = 256
_OUTWARD = 1 + 2.0**-36
"""Room for the rounding of sums over a tree."""
_LEAST_VARIANCE = 1e-12
_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileTree:
    """A tree over ``leaves`` bins; ``height`` levels are measured."""

    leaves: int
    branching: int

    @property
    def height(self) -> int:
        """The number of levels below the root."""
        height = 1
        while self.branching**height < self.leaves:
            height += 1
        return height

    def block(self, level: int) -> int:
        """How many leaves a node of a level holds; level 0 is the one below the root."""
        return int(self.branching ** (self.height - 1 - level))

    def nodes(self, level: int) -> int:
        """How many nodes of a level hold a leaf."""
        return -(-self.leaves // self.block(level))


@lru_cache(maxsize=256)
def best_shape(leaves: int, *, gaussian: bool) -> QuantileTree:
    """The branching with the least variance at the worst prefix, for equal shares of a budget."""

    def worst(shape: QuantileTree) -> float:
        # With h levels Laplace variances grow like h**2, Gaussian ones like h.
        noise = float(shape.height) ** (1 if gaussian else 2)
        return float(spread(shape, [noise] * shape.height, target=0.5).variance.max())

    return min((QuantileTree(leaves=leaves, branching=b) for b in _BRANCHINGS), key=worst)


def leaves_of(
    shape: QuantileTree, levels: Sequence[NDArray[np.int64]], noise: Sequence[float]
) -> Floats:
    """The least-squares estimate of all leaves from noisy counts of all levels.

    Upwards, the estimate of a node from its subtree is joined with its own measurement by inverse
    variances; downwards, what a node's estimate gained is divided among its children in proportion
    to their variances (Hay et al. 2010, here for any variances). Blocks beyond the last leaf are
    known to be empty: their variance is zero.
    """
    up = _up(shape, noise)
    means: list[Floats] = []
    for level in reversed(range(shape.height)):
        y = _padded(shape, levels[level].astype(np.float64), level)
        if means:
            below = means[-1].reshape(*y.shape, shape.branching).sum(axis=-1)
            y = below + up.gain[level] * (y - below)
        means.append(y)
    means.reverse()
    found = means[0]
    for level in range(1, shape.height):
        children = means[level].reshape(*found.shape, shape.branching)
        missing = found - children.sum(axis=-1)
        share = up.inside[level].reshape(found.shape[-1], shape.branching)
        total = np.maximum(share.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        found = (children + share / total * missing[..., None]).reshape(means[level].shape)
    return np.asarray(found[..., : shape.leaves])


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixError:
    """The error of ``C_k - target * N`` for each prefix k: variance and largest coefficient."""

    variance: Floats
    largest: Floats


def spread(shape: QuantileTree, noise: Sequence[float], *, target: float) -> PrefixError:
    """Variance of the estimate of ``C_k - target * N``, and its largest coefficient, for every k.

    With ``f = 1 - target`` on leaves up to k and ``-target`` beyond, the functional is the sum of
    f times leaf. A node whose leaves all have the same f contributes ``f z``, of variance
    ``f**2 V``. On the path to k the estimate is updated by the node's own measurement y as in a
    Kalman filter: with V, C, W the variance of the total, its covariance with the functional and
    the variance of the functional, all from the subtree, the gain is ``C / (V + s)``, and the
    update leaves ``W - C**2 / (V + s)``. At the root, which is not measured, W is the variance.

    The coefficient of a measurement in a subtree off the path is that of its total times a weight
    in [0, 1]; the totals and the measurements on the path are followed here one by one.
    """
    up = _up(shape, noise)
    k = np.arange(shape.leaves)
    own = up.inside[-1][k]
    left, right = 1 - target, -target
    c, w = left * own, left**2 * own
    factors: list[tuple[Floats, Floats]] = []  # (coefficient of the functional, of the total)
    factors.append((np.full(len(k), left), np.ones(len(k))))
    for level in reversed(range(shape.height)):
        node = k // shape.block(level)
        first = node - node % shape.branching
        sums = np.concatenate([[0.0], np.cumsum(up.inside[level])])
        before = sums[node] - sums[first]
        after = sums[np.minimum(first + shape.branching, len(sums) - 1)] - sums[node + 1]
        c = c + left * before + right * after
        w = w + left**2 * before + right**2 * after
        factors += [
            (np.where(before > 0, left, 0.0), np.where(before > 0, 1.0, 0.0)),
            (np.where(after > 0, right, 0.0), np.where(after > 0, 1.0, 0.0)),
        ]
        if level == 0:
            break
        above = k // shape.block(level - 1)
        s, v = noise[level - 1], up.below[level - 1][above]
        gain, kept = c / (v + s), s / (v + s)
        factors = [(f - gain * t, t * kept) for f, t in factors]
        factors.append((gain, 1 - kept))
        w, c = w - c**2 / (v + s), c * kept
    largest = np.max([np.abs(f) for f, _ in factors], axis=0)
    return PrefixError(variance=w, largest=largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Up:
    """Variances on the way up: of each node from its children, and with its own measurement."""

    below: tuple[Floats, ...]
    inside: tuple[Floats, ...]
    gain: tuple[Floats, ...]


def _up(shape: QuantileTree, noise: Sequence[float]) -> _Up:
    below: list[Floats] = []
    inside: list[Floats] = []
    gain: list[Floats] = []
    for level in reversed(range(shape.height)):
        s = float(noise[level])
        if inside:
            v = inside[-1].reshape(-1, shape.branching).sum(axis=-1)
            g = v / (v + s)
        else:
            many = shape.branching**shape.height
            v = np.where(np.arange(many) < shape.leaves, s, 0.0)
            g = np.ones(many)
        below.append(v)
        gain.append(g)
        inside.append(v * s / (v + s) if inside else v)
    return _Up(below=tuple(below[::-1]), inside=tuple(inside[::-1]), gain=tuple(gain[::-1]))


def _padded(shape: QuantileTree, values: Floats, level: int) -> Floats:
    missing = shape.branching ** (level + 1) - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def reach(laws: Sequence[Distribution], errors: PrefixError, tail: float) -> Floats:
    """For each prefix a width that its error passes upwards with probability at most ``tail``."""
    # Theorem: P(error >= width) <= tail, and the same downwards.
    # Proof: Chernoff's bound. Let a_i be the coefficients and A >= max(1, |a_i|). A discrete
    #   Laplace of variance v has the moment generating function `1 / (1 - v (cosh t - 1))`, and
    #   `cosh(a t) - 1 <= (a / A)**2 (cosh(A t) - 1)`. As `-log(1 - x) / x` increases, the logarithm
    #   of the product is at most `(V / c) * -log(1 - c (cosh(A t) - 1) / A**2)` with V the sum and
    #   c any bound of the largest of the `a_i**2 v_i`. A discrete Gaussian of parameter s is
    #   sub-Gaussian: at most `exp(s t**2 / 2)`. Every t gives a bound; the best of a grid counts.
    # Source: Canonne, Kamath, Steinke 2020 (sub-Gaussian); docs/theory/queries.md.
    # Needs: `spread` from variances (Gaussian: parameters) of these laws.
    log_tail = math.log(1 / tail)
    if all(isinstance(law, DiscreteGaussian) for law in laws):
        found: Floats = np.sqrt(2 * log_tail * errors.variance) * _OUTWARD
        return found
    if not all(isinstance(law, DiscreteLaplace) for law in laws):
        raise Unsupported("Prefix errors are known for discrete Laplace or Gaussian noise.")
    a = np.maximum(errors.largest, 1.0)
    c = np.minimum(errors.largest**2 * max(map(parameter, laws)), errors.variance)
    c = np.maximum(c, np.finfo(float).tiny)
    end = np.arccosh(1 + a**2 / c) / a
    steps = np.arange(1, _STEPS) / _STEPS
    t = end * steps[:, None]
    inner = c / a**2 * (np.cosh(a * t) - 1)
    bounds = (log_tail - errors.variance / c * np.log1p(-inner)) / t
    least: Floats = bounds.min(axis=0) * _OUTWARD
    return least


def parameter(law: Distribution) -> float:
    """The variance that `spread` and `reach` count with: for a Gaussian its parameter.

    Noise that is almost never there counts a little, so that weights are finite.
    """
    return max(
        float(law.square) if isinstance(law, DiscreteGaussian) else law.variance, _LEAST_VARIANCE
    )
