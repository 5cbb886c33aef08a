"""Exact laws behind published claims: what mechanisms of Biswal 2024 really give.

Pairs of continuous laws of different scale and center, in closed form. They judge claims in audits
and studies, in doubles; nothing here certifies a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import optimize, special


def laplace_delta(epsilon: float, *, left: float, right: float, shift: float) -> float:
    """How far Laplace noise of scale ``left`` exceeds e^epsilon times that of scale ``right``."""
    # Theorem: the supremum over sets A of P(A) - e^epsilon Q(A), P around 0 and Q around `shift`.
    # Proof: the log-ratio is linear between the centers and beyond them. Its crossings of epsilon
    #   (one for each piece at most) and the centers cut the line into parts where it stays above
    #   or below; the former count with closed-form masses.
    # Source: B46.
    low, high = min(0.0, shift), max(0.0, shift)
    cuts = [low, high]
    for signs, (a, b) in {
        (1, 1): (-math.inf, low),
        (-1, 1) if shift > 0 else (1, -1): (low, high),
        (-1, -1): (high, math.inf),
    }.items():
        # loss(x) = ln(right/left) + signs[0] x/left - signs[1] (x - shift)/right
        slope = signs[0] / left - signs[1] / right
        level = epsilon - math.log(right / left) - signs[1] * shift / right
        if slope:
            root = level / slope
            if a < root < b:
                cuts.append(root)
    ends = [-math.inf, *sorted(cuts), math.inf]
    factor = math.exp(epsilon)
    gains = [
        _laplace_mass(a, b, 0.0, left) - factor * _laplace_mass(a, b, shift, right)
        for a, b in pairwise(ends)
    ]
    return math.fsum(gain for gain in gains if gain > 0)


def _laplace_mass(a: float, b: float, center: float, scale: float) -> float:
    """Between two points on one side of the center."""
    near, far = sorted((abs(a - center) / scale, abs(b - center) / scale))
    return -math.exp(-near) * math.expm1(near - far) / 2 if math.isfinite(near) else 0.0


def gaussian_delta(epsilon: float, *, left: float, right: float, shift: float) -> float:
    """The same for Gaussian noise of two standard deviations."""
    # Proof: the log-ratio is a quadratic; it exceeds epsilon between or outside of its roots.
    # Source: B46; Balle and Wang 2018 for equal deviations.
    if left == right:
        mu = abs(shift) / left
        return _far(mu, epsilon) if mu else 0.0
    # ln(right/left) - x^2/(2 left^2) + (x - shift)^2/(2 right^2) - epsilon
    a = (1 / right**2 - 1 / left**2) / 2
    b = -shift / right**2
    c = math.log(right / left) + shift**2 / (2 * right**2) - epsilon
    room = b * b - 4 * a * c
    if room <= 0:
        return 0.0 if a < 0 else max(0.0, -math.expm1(epsilon))
    first, second = sorted(((-b - math.sqrt(room)) / (2 * a), (-b + math.sqrt(room)) / (2 * a)))
    factor = math.exp(epsilon)
    if a < 0:
        return max(
            0.0,
            _normal_mass(first / left, second / left)
            - factor * _normal_mass((first - shift) / right, (second - shift) / right),
        )
    below = special.ndtr(first / left) - factor * special.ndtr((first - shift) / right)
    above = special.ndtr(-second / left) - factor * special.ndtr((shift - second) / right)
    return max(0.0, float(below)) + max(0.0, float(above))


def _normal_mass(a: float, b: float) -> float:
    low, high = (a, b) if a + b < 0 else (-b, -a)
    return float(special.ndtr(high) - special.ndtr(low))


def _far(mu: float, epsilon: float) -> float:
    """B18, with the second term in logarithms."""
    near = float(special.ndtr(mu / 2 - epsilon / mu))
    return near - math.exp(epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(delta: float, *, mu: float) -> float:
    """The epsilon that Gaussian noise pays at delta, for sensitivity ``mu`` standard deviations."""
    high = 1.0
    while _far(mu, high) > delta:
        high *= 2
    return float(optimize.brentq(lambda e: _far(mu, e) - delta, 0.0, high, xtol=1e-12))


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The smallest standard deviation for sensitivity 1 (B18)."""
    return float(optimize.brentq(lambda s: _far(1 / s, epsilon) - delta, 1e-3, 1e4, xtol=1e-13))


def classical_sigma(epsilon: float, delta: float) -> float:
    """The textbook's standard deviation for sensitivity 1, proved for epsilon below 1 only."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


# ── smooth sensitivity ────────────────────────────────────────────────────────────────────────


def thesis_beta(epsilon: float, delta: float) -> float:
    """The smoothness that the thesis takes for Laplace and for Gaussian noise (B31, B33)."""
    return epsilon / (2 * math.log(2 / delta))


def gaussian_beta(epsilon: float, delta: float) -> float:
    """The smoothness that the literature takes for Gaussian noise in one dimension (B33)."""
    return epsilon / (4 * (1 + math.log(2 / delta)))


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Standard deviations per smooth sensitivity, as published (B33)."""
    return 5 * math.sqrt(2 * math.log(2 / delta)) / epsilon


def smooth_laplace_delta(epsilon: float, *, beta: float, multiplier: float) -> float:
    """The exact delta of Laplace noise of scale ``multiplier S / epsilon`` (B31)."""
    # Theorem: (1 - e^-beta) exp(-(epsilon + beta)/(e^beta - 1)) cosh((epsilon/c)/(e^beta - 1)) is
    #   the worst over shifts up to the smaller S and ratios of S up to e^beta, for c >= 1 and beta
    #   <= epsilon (1 - e^-beta / c); otherwise the corners are taken.
    c, grown = multiplier, math.expm1(beta)
    if c >= 1 and beta <= epsilon * (1 - math.exp(-beta) / c):
        inner = epsilon / c / grown
        log_cosh = inner + math.log1p(math.exp(-2 * inner)) - math.log(2)
        return -math.expm1(-beta) * math.exp(-(epsilon + beta) / grown + log_cosh)
    return _corners(laplace_delta, epsilon, beta, c / epsilon)


def smooth_laplace_multiplier(epsilon: float, delta: float, *, beta: float) -> float:
    """The smallest c that keeps delta (B31); infinite if none does."""
    grown = math.expm1(beta)
    log_y = math.log(delta) + (epsilon + beta) / grown - math.log(-math.expm1(-beta))
    if log_y <= 0:
        return math.inf
    angle = log_y + math.log(2) if log_y > 20 else math.acosh(math.exp(log_y))
    return max(1.0, epsilon / grown / angle)


def smooth_gaussian_delta(epsilon: float, *, beta: float, multiplier: float) -> float:
    """The worst corner of Gaussian noise of deviation ``multiplier S`` (B33, a scan: no proof)."""
    return _corners(gaussian_delta, epsilon, beta, multiplier)


def _corners(law: Callable[..., float], epsilon: float, beta: float, multiplier: float) -> float:
    wide = math.exp(beta)
    unit = multiplier
    return max(
        law(epsilon, left=unit * a, right=unit * b, shift=shift)
        for a, b in ((wide, 1.0), (1.0, wide), (1.0, 1.0))
        for shift in (0.0, 0.5, 1.0)
    )


def general_claim(epsilon: float, beta: float) -> float:
    """The delta that the thesis claims for any scale within e^beta: e^(eps/2 - eps/(2 beta))."""
    return math.exp(epsilon / 2 - epsilon / (2 * beta))


def weighted_delta(epsilon: float, weight: float) -> float:
    """The exact delta of scale ((1 - b) LS + b D)/epsilon (B36), b the weight of the global one."""
    if weight >= 1:
        return 0.0
    rest = 1 - weight
    return rest * math.exp(-weight * (epsilon + math.log(1 / weight)) / rest)


def smallest_weight(law: Callable[[float], float], delta: float) -> float:
    """The smallest weight b whose delta is at most this; ``law`` falls with b."""
    return float(optimize.brentq(lambda b: law(b) - delta, 1e-9, 1 - 1e-9, xtol=1e-12))


def heavy_tail_loss(power: float, *, scale: float, beta: float, points: int = 40_001) -> float:
    """The largest log-ratio of noise with density 1/(1 + |z|^power), by a grid (B32, M26)."""
    far = np.geomspace(1e-6, 1e8, points)
    z = np.concatenate((-far[::-1], [0.0], far))
    worst = 0.0
    for ratio in (math.exp(beta), math.exp(-beta), 1.0):
        # The shift is at most the smaller of the two smooth sensitivities.
        for shift in np.linspace(0, min(1.0, ratio) / scale, 5):
            log_ratio = (
                np.log1p(np.abs((z - shift) / ratio) ** power) - np.log1p(np.abs(z) ** power)
            ) + math.log(ratio)
            worst = max(worst, float(np.abs(log_ratio).max()))
    return worst


# ── sums of noise, and bounded noise ──────────────────────────────────────────────────────────


def two_laplace_delta(epsilon: float, *, shift: float = 1.0) -> float:
    """Delta of the sum of two Laplace noises of scale 1 (B22): log-concave, so a half-line."""

    def log_density(x: float) -> float:
        return math.log1p(abs(x)) - abs(x)

    def loss(x: float) -> float:
        return log_density(x) - log_density(x - shift)

    if loss(-1e9) <= epsilon:
        return 0.0
    end = float(optimize.brentq(lambda x: loss(x) - epsilon, -1e9, 1e3, xtol=1e-12))
    return _two_laplace_cdf(end) - math.exp(epsilon) * _two_laplace_cdf(end - shift)


def two_laplace_loss(reach: float, *, shift: float = 1.0) -> float:
    """The largest log-ratio of that sum and its shift on |q| <= reach, which is at -reach."""
    return math.log1p(reach) - math.log1p(reach + shift) + shift


def _two_laplace_cdf(x: float) -> float:
    tail = (2 + abs(x)) * math.exp(-abs(x)) / 4
    return tail if x <= 0 else 1 - tail


def bounded_loss(scale: float, *, sensitivity: float, width: float) -> float:
    """The pure epsilon of Laplace noise conditioned on an interval of this width (B44)."""
    u, v, w = sensitivity / scale, (width - sensitivity) / scale, width / scale
    return u + math.log1p(math.expm1(-u) * math.expm1(-v) / -math.expm1(-w))


def bounded_scale(epsilon: float, delta: float, *, sensitivity: float, width: float) -> float:
    """The published scale of bounded Laplace noise: implicit, so by bisection, upper end (B44)."""
    budget = epsilon - math.log1p(-delta)
    low, high = sensitivity / budget, 4 * sensitivity / budget
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        fits = bounded_loss(middle, sensitivity=sensitivity, width=width) <= budget
        low, high = (low, middle) if fits else (middle, high)
    return high


def bounded_delta(
    epsilon: float, scale: float, *, sensitivity: float, width: float, centers: int = 2001
) -> float:
    """The exact delta of that noise: the worst of many centers, both orders (B54)."""
    places = np.linspace(0, width - sensitivity, centers)
    return max(
        _bounded_pair(epsilon, scale, left=q + a, right=q + b, width=width)
        for q in places
        for a, b in ((0.0, sensitivity), (sensitivity, 0.0))
    )


def _bounded_pair(epsilon: float, b: float, *, left: float, right: float, width: float) -> float:
    """The log-ratio is constant, linear, constant: one crossing, hence one half-line."""
    low, high = min(left, right), max(left, right)
    ratio = math.log(_normalizer(right, b, width) / _normalizer(left, b, width))
    reach = (high - low) / b
    if ratio + reach <= epsilon:
        return 0.0
    # The loss falls from ratio + reach at the left center to ratio - reach at the right one.
    traveled = min(max((ratio + reach - epsilon) * b / 2, 0.0), high - low)
    whole = ratio - reach > epsilon
    end = width if whole else (left + traveled if left < right else left - traveled)
    inside = (0.0, end) if left < right else (0.0 if whole else end, width)
    p, q = (
        (_cdf(inside[1], c, b) - _cdf(inside[0], c, b)) / _normalizer(c, b, width)
        for c in (left, right)
    )
    return max(0.0, p - math.exp(epsilon) * q)


def _normalizer(q: float, b: float, width: float) -> float:
    return 1 - (math.exp(-q / b) + math.exp(-(width - q) / b)) / 2


def _cdf(x: float, center: float, b: float) -> float:
    tail = math.exp(-abs(x - center) / b) / 2
    return tail if x <= center else 1 - tail


def exact_bounded_scale(epsilon: float, delta: float, *, sensitivity: float, width: float) -> float:
    """The smallest scale with that exact delta, upper end of a bisection (B54)."""
    low, high = 1e-3, bounded_scale(epsilon, delta, sensitivity=sensitivity, width=width)
    while high - low > 1e-5:
        middle = (low + high) / 2
        fits = bounded_delta(epsilon, middle, sensitivity=sensitivity, width=width) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def bounded_error(q: float, scale: float, *, width: float) -> float:
    """Mean squared error of Laplace noise around q, conditioned on [0, width], by integration."""
    x = np.linspace(0, width, 200_001)
    middle = (x[1:] + x[:-1]) / 2
    mass = np.exp(-np.abs(middle - q) / scale)
    return float((mass * (middle - q) ** 2).sum() / mass.sum())


def clamped_error(q: float, scale: float, *, width: float) -> float:
    """Mean squared error of Laplace noise around q, clamped to [0, width], in closed form."""
    # E min(|Z|, d)^2 on one side: integral of 2 z P(|Z| > z) from 0 to d, halved for the side.
    return sum(scale**2 * (1 - math.exp(-d / scale) * (1 + d / scale)) for d in (q, width - q))
