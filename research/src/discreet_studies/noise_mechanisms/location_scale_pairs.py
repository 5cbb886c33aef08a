"""Two laws that differ in place *and* in width: what smooth sensitivity needs (B46, A40)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from discreet.accounting.conversion import UP
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported


def laplace_pair_delta(m1: float, b1: float, m2: float, b2: float, epsilon: float) -> float:
    """The hockey-stick divergence of Lap(m1, b1) from Lap(m2, b2) at epsilon."""
    # Theorem: the log-ratio is linear between the two centers and beyond them, so the set where it
    #   exceeds epsilon is a union of at most two intervals; their masses are closed forms.
    # Source: B46.
    breaks = sorted({float(m1), float(m2)})
    points = [-math.inf, *breaks, math.inf]
    constant = math.log(b2 / b1) - epsilon
    total = 0.0
    for left, right in pairwise(points):
        inside = _middle(left, right)
        slope = -_sign(inside - m1) / b1 + _sign(inside - m2) / b2
        level = constant + _sign(inside - m1) * m1 / b1 - _sign(inside - m2) * m2 / b2
        a, b = _positive(slope, level, left, right)
        if a < b:
            total += _laplace_mass(a, b, m1, b1)
            total -= math.exp(epsilon) * _laplace_mass(a, b, m2, b2)
    return min(1.0, max(0.0, total))


def gaussian_pair_delta(m1: float, s1: float, m2: float, s2: float, epsilon: float) -> float:
    """The hockey-stick divergence of N(m1, s1^2) from N(m2, s2^2) at epsilon."""
    # Theorem: the log-ratio is a quadratic; its roots bound the test set.
    # Source: B46.
    a = (1 / s2**2 - 1 / s1**2) / 2
    b = m1 / s1**2 - m2 / s2**2
    c = (m2**2 / s2**2 - m1**2 / s1**2) / 2 + math.log(s2 / s1) - epsilon
    if a == 0:
        pieces = [_positive(b, c, -math.inf, math.inf)]
    else:
        root = b * b - 4 * a * c
        if root <= 0:
            pieces = [(-math.inf, math.inf)] if a > 0 else []
        else:
            q = -(b + math.copysign(math.sqrt(root), b)) / 2
            low, high = sorted((q / a, c / q))
            pieces = [(-math.inf, low), (high, math.inf)] if a > 0 else [(low, high)]
    total = 0.0
    for left, right in pieces:
        if left < right:
            total += _normal_mass(left, right, m1, s1)
            total -= math.exp(epsilon) * _normal_mass(left, right, m2, s2)
    return min(1.0, max(0.0, total))


def smooth_laplace_delta(kappa: float, *, epsilon: float, beta: float) -> float:
    """The delta of Laplace noise of scale ``kappa S/epsilon`` with a beta-smooth bound S (A40)."""
    # Theorem: for `kappa >= max(1, eps e^-beta/(eps - beta))` the worst ratio of scales is e^-beta
    #   and, with `w = e^beta - 1`,
    #   `delta = (1 - e^-beta) exp(-(eps + beta)/w) cosh((eps/kappa)/w)`.
    # Source: A40 (Aoutouf), with its correction; B31.
    if beta == 0:
        return 0.0 if kappa >= 1 else math.inf
    width = math.expm1(beta)
    near = -(epsilon - epsilon / kappa + beta) / width
    far = -(epsilon + epsilon / kappa + beta) / width
    return -math.expm1(-beta) * (math.exp(near) + math.exp(far)) / 2 * UP


def smooth_laplace_multiplier(epsilon: float, *, delta: float, beta: float) -> float:
    """The smallest multiplier kappa for smooth-sensitivity Laplace noise, rounded up (A40)."""
    # Needs: `0 <= beta < epsilon` and delta above the limit as kappa grows; else refused.
    e = float(check.positive("epsilon", epsilon))
    d = float(check.probability("delta", delta, zero=False, one=False))
    b = float(check.non_negative("beta", beta))
    if b >= e:
        raise InvalidArgument(f"beta must be below epsilon={e}, got {b}.")
    if b == 0:
        return 1.0
    least = max(1.0, e * math.exp(-b) / (e - b))
    if smooth_laplace_delta(math.inf, epsilon=e, beta=b) >= d:
        raise Unsupported(f"No multiplier reaches delta={d:g} at beta={b:g}; lower beta.")
    if smooth_laplace_delta(least, epsilon=e, beta=b) <= d:
        return least * UP
    low = high = least
    while smooth_laplace_delta(high, epsilon=e, beta=b) > d:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if smooth_laplace_delta(middle, epsilon=e, beta=b) > d:
            low = middle
        else:
            high = middle
    return high * UP


def _sign(value: float) -> float:
    return math.copysign(1.0, value)


def _middle(left: float, right: float) -> float:
    if math.isinf(left):
        return right - 1.0
    return left + 1.0 if math.isinf(right) else (left + right) / 2


def _positive(slope: float, level: float, left: float, right: float) -> tuple[float, float]:
    """Where ``level + slope x > 0`` within an interval."""
    if slope == 0:
        return (left, right) if level > 0 else (0.0, 0.0)
    root = -level / slope
    return (max(left, root), right) if slope > 0 else (left, min(right, root))


def _laplace_mass(a: float, b: float, m: float, scale: float) -> float:
    """P(a < X < b) without cancellation in either tail; the center is not inside."""
    low, high = (a - m) / scale, (b - m) / scale
    if low >= 0:
        low, high = -high, -low
    return (math.exp(high) - math.exp(low)) / 2


def _normal_mass(a: float, b: float, m: float, sd: float) -> float:
    low, high = (a - m) / sd, (b - m) / sd
    if low > 0:
        low, high = -high, -low
    return float(ndtr(np.float64(high)) - ndtr(np.float64(low)))
