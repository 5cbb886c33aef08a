"""Intervals by inverting a test of a linear form of noisy sums: Fieller with the exact noise.

A ratio theta = A / B is never read from two separate intervals. For each candidate theta the form
A - theta B has a noise of known distribution, plus a normal part if sampling counts; theta stays
in the interval unless the form is further from zero than that explains. All of it is
post-processing: it reads noisy sums and public constants only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy  # its parts are slow to import: they are when they are needed
from numpy.typing import NDArray

from discreet.core.errors import Unsupported
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

Floats: TypeAlias = NDArray[np.float64]
Inside: TypeAlias = Callable[[Floats], NDArray[np.bool_]]
_GAP = 1.01
"""Scales are kept apart by a hundredth: equal ones would divide by zero. Larger ones are safe."""
_LEAST = 1e-3
"""A Laplace scale is at least this share of the normal part's deviation: larger is safe."""
_HALVINGS = 60
_OPEN = 1e-12
"""Beyond the start by this inverse many units, an open range counts as passed."""
_POINTS = 100
_AT_ONCE = 20_000
"""So many points are tried in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormNoise:
    """A bound of the noise of a linear form: normal variance, Laplace scales, and a margin."""

    variance: Floats
    scales: Floats
    """One row for each Laplace variable."""
    margin: Floats
    """What rounding to whole numbers adds at most."""

    def tail(self, distance: Floats, *, sampling: Floats | float = 0.0) -> Floats:
        """The probability that the form is further from zero than this, or more.

        ``sampling`` is the variance of an independent normal part.
        """
        # Theorem: P(|sum c_i Z_i + N| > w) is at most the value at w.
        # Proof: let U be uniform on (-1/2, 1/2). `|sum c_i Z_i|` is within `sum |c_i| / 2` of
        #   `|sum c_i (Z_i + U_i)|`. Each Z + U has a symmetric unimodal density, and is at most as
        #   often far from zero as the continuous variable of `dominating`; sums of independent
        #   symmetric unimodal variables keep this order (Birnbaum 1948, from Anderson's lemma).
        #   The sum of Laplace variables of different scales is their mixture with the weights
        #   `product over j of b_i**2 / (b_i**2 - b_j**2)` (partial fractions of its characteristic
        #   function), also after convolution with a normal variable. A larger scale is the same
        #   variable plus an independent symmetric unimodal one.
        # Source: Fieller 1954; Reed 2006 (normal-Laplace); docs/theory/queries.md.
        # Needs: discrete Laplace or Gaussian noise; the parts are independent.
        w = np.maximum(distance - self.margin, 0.0)
        return sum_tail(w, self.scales, self.variance + sampling)


def dominating(law: Distribution) -> tuple[float, float]:
    """Normal variance and Laplace scale of a continuous variable beyond the noise plus uniform."""
    match law:
        case DiscreteLaplace():
            # The density of Z + U at zero is that of a Laplace variable of this scale.
            return 0.0, 1 / (2 * math.tanh(1 / (2 * float(law.scale))))
        case DiscreteGaussian():
            return float(law.square) + 0.25, 0.0
        case _:
            raise Unsupported(
                f"Intervals are known for discrete Laplace and Gaussian noise only, "
                f"not for {type(law).__name__}."
            )


def form_noise(
    laws: Sequence[Distribution], shifts: Sequence[int], factors: Sequence[Floats | float]
) -> FormNoise:
    """The noise of ``sum of factor * part``; what a shift rounds away is at most half a step."""
    shape = np.broadcast_shapes(*(np.shape(one) for one in factors))
    variance, margin, scales = np.zeros(shape), np.zeros(shape), []
    for law, shift, factor in zip(laws, shifts, factors, strict=True):
        size = np.ldexp(np.abs(np.broadcast_to(factor, shape)), shift)
        normal, scale = dominating(law)
        variance = variance + np.square(size) * normal
        margin = margin + size * (1.0 if shift else 0.5)
        if scale:
            scales.append(size * scale)
    return FormNoise(
        variance=variance, scales=np.array(scales).reshape(len(scales), *shape), margin=margin
    )


def sum_tail(w: Floats, scales: Floats, variance: Floats) -> Floats:
    """P(|N + Laplace variables| >= w), both sides, at the safe side where scales are alike."""
    deviation = np.sqrt(variance)
    if not len(scales):
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 2 * scipy.special.ndtr(-w / deviation)
        return np.asarray(np.where(deviation > 0, found, w <= 0))
    scales = np.sort(np.broadcast_to(scales, (len(scales), *np.shape(w + deviation))), axis=0)
    scales = np.where(scales > 0, np.maximum(scales, _LEAST * deviation), 0.0)
    for i in range(1, len(scales)):
        scales[i] = np.maximum(scales[i], _GAP * scales[i - 1])
    total = np.zeros(scales.shape[1:])
    for i, scale in enumerate(scales):
        weight = (scale > 0).astype(np.float64)
        for j, other in enumerate(scales):
            if j != i:
                gap = np.where((scale > 0) & (other > 0), scale**2 - other**2, 1.0)
                weight = weight * np.where(other > 0, np.square(scale) / gap, 1.0)
        total += weight * _normal_laplace(w, np.where(scale > 0, scale, 1.0), deviation)
    alone = 2 * scipy.special.ndtr(-w / np.where(deviation > 0, deviation, 1.0))
    alone = np.where(deviation > 0, alone, w <= 0)
    return np.asarray(np.where(scales[-1] > 0, np.clip(total, 0.0, 1.0), alone))


def _normal_laplace(w: Floats, scale: Floats, deviation: Floats) -> Floats:
    """P(|N + Laplace| >= w), in closed form."""
    s = np.maximum(deviation, 1e-9 * scale)
    size, x = s / scale, w / s
    half = np.square(size) / 2
    above = np.exp(np.minimum(half - w / scale + scipy.special.log_ndtr(x - size), 0.0))
    below = np.exp(np.minimum(half + w / scale + scipy.special.log_ndtr(-x - size), 0.0))
    return np.asarray(2 * scipy.special.ndtr(-x) + above - below)


def margin_of(noise: FormNoise, tail: float) -> Floats:
    """What the noise passes upwards with probability at most ``tail``, at most 0.03."""
    # Proof: for small tails one Laplace variable of the same variance passes further than any sum
    #   of Laplace and normal variables; the tests compare at 0.03 and below.
    scale = np.sqrt(np.square(noise.scales).sum(axis=0) + noise.variance / 2)
    return np.asarray(scale * math.log(1 / (2 * tail)) + noise.margin)


def nuisance_tail(confidence: float) -> float:
    """What is spent on each quantity that the test itself has to know."""
    return min((1 - confidence) / 10, 0.02)


def determined(rows: Floats, noise: FormNoise, tail: float) -> NDArray[np.bool_]:
    """Whether a denominator is known to be positive; otherwise nothing can be said of a ratio."""
    return np.asarray((rows > 0) & (noise.tail(np.abs(rows)) < tail))


def accepted_range(
    inside: Inside,
    start: Floats,
    *,
    lower: Floats | float,
    upper: Floats | float,
    unit: Floats | float = 1.0,
    scan: bool,
) -> tuple[Floats, Floats]:
    """The outermost accepted values on both sides of the start.

    With ``scan``, 100 points are tried on either side, for sets that might have gaps. An end may be
    infinite; ``unit`` then tells where halves begin. ``inside`` is given both sides at once, and
    many points: further axes before those of the start.
    """
    to = np.stack([np.broadcast_to(np.float64(end), start.shape) for end in (lower, upper)])
    finite = np.isfinite(to)
    side, reach = np.where(to < start, -1.0, 1.0), np.where(finite, to, 0) - start

    def place(u: Floats) -> Floats:
        open_ = start + side * unit * u / np.maximum(1 - u, _OPEN)
        return np.asarray(np.where(finite, start + reach * u, open_))

    near, beyond = np.zeros_like(to), np.ones_like(to)
    if scan:
        many = max(1, _AT_ONCE // max(to.size, 1))
        shares = np.square(np.arange(1, _POINTS + 1) / _POINTS)  # denser near the start
        for first in range(0, _POINTS, many):
            u = shares[first : first + many].reshape(-1, *(1,) * to.ndim)
            tried = (u < 1) | finite
            held = tried & inside(np.where(tried, place(u), start))
            near = np.maximum(near, np.max(np.where(held, u, 0.0), axis=0))
        after = np.square(np.minimum(np.sqrt(near) + 1 / _POINTS, 1.0))
        beyond = np.where(near >= 1, 1.0, after)
    else:
        near = np.where(finite & inside(np.where(finite, to, start)), 1.0, near)
    for _ in range(_HALVINGS):
        middle = (near + beyond) / 2
        held = inside(place(middle))
        near, beyond = np.where(held, middle, near), np.where(held, beyond, middle)
    ends = np.where(finite | (beyond < 1 - _OPEN), place(beyond), to)
    return ends[0], ends[1]


def quantile(noise: FormNoise, tail: float) -> Floats:
    """The distance that the form passes with probability at most ``tail``, rounded up."""
    near = np.zeros_like(noise.margin)
    far = np.ones_like(near)
    while np.any(noise.tail(far) >= tail):
        far *= 2
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        held = noise.tail(middle) >= tail
        near, far = np.where(held, middle, near), np.where(held, far, middle)
    return far
