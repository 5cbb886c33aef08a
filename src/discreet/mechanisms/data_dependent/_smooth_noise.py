"""Noise whose scale follows the data: how much of it a smooth bound needs, and exact draws.

Two neighbors get noise of one shape p, of scales s and s' with ``|log(s / s')| <= beta``, around
centers that are at most ``min(s, s') / multiplier`` apart. A family gives the smallest multiplier
for which any two such laws keep (epsilon, delta). The noise is continuous and the exact sum is
rounded to a public grid: post-processing, so the continuous laws decide.

Shapes are symmetric and unimodal. Then (i) the divergence of two such laws grows with the distance
of their centers, since it is ``1 - int |{p > t} cap {e^eps q > t}| dt`` and the sets are intervals
around the centers; so only the largest distance counts. (ii) On a cell ``r <= s/s' <= eta r`` of
ratios the wider density is at most eta times that at the upper end, and at least 1/eta of that at
the lower end: the divergences at the ends, at ``epsilon - log eta``, bound those inside.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol, Self

import numpy as np
from scipy import special

from discreet.core._rational import Enclosure, ceil_div, exp_minus, round_down
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.random_source import RandomSource
from discreet.noise.uniform import LazyUniform, invert

# ── Arctangent of rational numbers ───────────────────────────────────────────────────────────────
# Arcus tangens of rational numbers, enclosed in integers.


def turns_beyond(z: Fraction, precision: int) -> Enclosure:
    """Enclose ``(2 / pi) atan(1 / z) * 2**precision``, P(|Z| > z) for standard Cauchy Z, z > 0."""
    work = precision + 16
    low, high = _angle(1 / z, work)
    quarter_low, quarter_high = _quarter(work)
    return (low << precision) // (2 * quarter_high), ceil_div(high << precision, 2 * quarter_low)


def _angle(x: Fraction, precision: int) -> Enclosure:
    """Enclose ``atan(x) * 2**precision`` for x > 0.

    Reduced to at most 1/2 by ``atan x = pi/2 - atan(1/x)`` and ``atan x = pi/4 + atan((x - 1) /
    (x + 1))``.
    """
    if x <= Fraction(1, 2):
        return _series(x, precision)
    quarter_low, quarter_high = _quarter(precision)
    if x >= 2:
        low, high = _series(1 / x, precision)
        return 2 * quarter_low - high, 2 * quarter_high - low
    turned = (x - 1) / (x + 1)
    low, high = _series(abs(turned), precision)
    if turned < 0:
        low, high = -high, -low
    return quarter_low + low, quarter_high + high


@lru_cache(maxsize=64)
def _quarter(precision: int) -> Enclosure:
    """Enclose ``pi / 4 * 2**precision``, by 4 atan(1/5) - atan(1/239)."""
    low, high = _series(Fraction(1, 5), precision)
    less_low, less_high = _series(Fraction(1, 239), precision)
    return 4 * low - less_high, 4 * high - less_low


def _series(x: Fraction, precision: int) -> Enclosure:
    """Enclose ``atan(x) * 2**precision`` for 0 <= x <= 1/2, by ``sum (-1)^i x^(2i+1) / (2i+1)``.

    Powers are kept as floors and ceilings, so each term is enclosed; the terms fall and their signs
    alternate, so what is left out is at most its first term, which is at most one.
    """
    square = x * x
    low = (x.numerator << precision) // x.denominator
    high = ceil_div(x.numerator << precision, x.denominator)
    sum_low = sum_high = 0
    i = 0
    while high > 1:
        term_low, term_high = low // (2 * i + 1), ceil_div(high, 2 * i + 1)
        if i % 2:
            sum_low, sum_high = sum_low - term_high, sum_high - term_low
        else:
            sum_low, sum_high = sum_low + term_low, sum_high + term_high
        low = low * square.numerator // square.denominator
        high = ceil_div(high * square.numerator, square.denominator)
        i += 1
    return sum_low - 1, sum_high + 1


# ── Families of noise ────────────────────────────────────────────────────────────────────────────


SMALLEST_BETA = 2.0**-20
"""Below this the rounding of a bound would matter."""
# Multipliers are rounded up by this much, far above the rounding of what they are computed from.
_UP = 1 + 2.0**-28
_CELLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFamily(ABC):
    """Noise of scale ``multiplier * S`` for a beta-smooth bound S."""

    epsilon: Fraction
    delta: Fraction
    beta: float
    multiplier: Fraction

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation at scale 1 (infinite for the heaviest tails)."""

    @abstractmethod
    def log_density(self, z: Floats) -> Floats:
        """Logarithm of the density at scale 1."""

    @abstractmethod
    def tail(self, level: float) -> float:
        """The z that the noise at scale 1 exceeds in size with probability ``1 - level``."""

    @abstractmethod
    def draw(self, scale: Fraction, rng: RandomSource) -> int:
        """Noise of ``scale`` steps, rounded to the nearest step: exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLaplace(NoiseFamily):
    """exp(-|z|) / 2."""

    @classmethod
    def calibrated(cls, epsilon: Fraction, delta: Fraction, beta: float | None) -> Self:
        """The smallest multiplier, in closed form; ``beta`` by default the best for even gaps."""
        # Theorem: with scale `c S / epsilon`, c >= 1 and beta <= epsilon (1 - e^-beta / c) the
        #   largest divergence is `(1 - e^-beta) exp(-(epsilon + beta) / (e^beta - 1)) cosh(
        #   (epsilon / c) / (e^beta - 1))`.
        # Proof: docs/theory/smooth-sensitivity.md.
        # Source: B31; Nissim, Raskhodnikova, Smith 2007 (the mechanism).
        # Needs: 0 < delta < 1.
        eps, dlt = float(epsilon), float(delta)
        if dlt == 0:  # also one that is too small for a double
            raise InvalidArgument("delta must be positive for Laplace noise: or use 'lomax'.")
        chosen = _best(partial(laplace_multiplier, eps, dlt), eps) if beta is None else beta
        multiplier = laplace_multiplier(eps, dlt, chosen) / eps
        _possible(multiplier, chosen)
        up = Fraction(multiplier * _UP)
        return cls(epsilon=epsilon, delta=delta, beta=chosen, multiplier=up)

    @property
    def std(self) -> float:
        return math.sqrt(2)

    def log_density(self, z: Floats) -> Floats:
        return laplace_log_density(z)

    def tail(self, level: float) -> float:
        return -math.log1p(-level)

    def draw(self, scale: Fraction, rng: RandomSource) -> int:
        return laplace_draw(scale, rng)


def laplace_log_density(z: Floats) -> Floats:
    """Logarithm of exp(-|z|) / 2."""
    return np.asarray(-np.abs(z) - math.log(2))


def laplace_draw(scale: Fraction, rng: RandomSource) -> int:
    """Laplace noise of ``scale`` steps, rounded to the nearest step: exact."""

    def beyond(z: Fraction, precision: int) -> Enclosure:
        return exp_minus(z / scale, precision)

    return _rounded(beyond, lambda u: -math.log(u) * float(scale), rng)


def laplace_multiplier(epsilon: float, delta: float, beta: float) -> float:
    """The smallest c for which scale ``c S / epsilon`` keeps delta; infinite if there is none.

    For large deltas, where the closed form does not reach, a larger c is taken.
    """
    rate = math.expm1(beta)
    log_y = math.log(delta) + (epsilon + beta) / rate - math.log(-math.expm1(-beta))
    if log_y <= 0:
        return math.inf
    # arccosh(y) = log(y + sqrt(y^2 - 1)).
    arc = log_y + math.log1p(math.sqrt(-math.expm1(-2 * log_y)))
    # The closed form is for c >= 1 and beta <= epsilon (1 - e^-beta / c).
    return max(1.0, epsilon / (rate * arc), math.exp(-beta) / (1 - beta / epsilon))


def laplace_delta(epsilon: float, beta: float, c: float) -> float:
    """The largest divergence at scale ``c S / epsilon``."""
    rate = math.expm1(beta)
    x = epsilon / (c * rate)
    log_cosh = x + math.log1p(math.exp(-2 * x)) - math.log(2)
    return math.exp(math.log(-math.expm1(-beta)) - (epsilon + beta) / rate + log_cosh)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothGaussian(NoiseFamily):
    """exp(-z^2 / 2) / sqrt(2 pi)."""

    @classmethod
    def calibrated(cls, epsilon: Fraction, delta: Fraction, beta: float | None) -> Self:
        """The smallest multiplier that a scan with bounds between its points allows."""
        # Theorem: (epsilon, delta) holds for every pair of laws.
        # Proof: by (i) and (ii) above the largest divergence over all ratios of scales is at most
        #   that of finitely many pairs, each from the roots of a quadratic.
        # Source: B33, B46.
        # Needs: 1e-12 <= delta < 1, so that doubles resolve it.
        eps, dlt = float(epsilon), float(delta)
        if dlt < 1e-12:
            raise InvalidArgument(f"delta must be at least 1e-12 for Gaussian noise, got {dlt:g}.")
        search = partial(_gaussian_multiplier, eps, dlt)
        chosen = _best(lambda b: search(b, cells=1), eps) if beta is None else beta
        multiplier = search(chosen, cells=_CELLS)
        _possible(multiplier, chosen)
        up = Fraction(multiplier * _UP)
        return cls(epsilon=epsilon, delta=delta, beta=chosen, multiplier=up)

    @property
    def std(self) -> float:
        return 1.0

    def log_density(self, z: Floats) -> Floats:
        return -z * z / 2 - math.log(2 * math.pi) / 2

    def tail(self, level: float) -> float:
        return float(special.ndtri((1 + level) / 2))

    def draw(self, scale: Fraction, rng: RandomSource) -> int:
        return int(RoundedGaussian(scale * scale, 0).add(np.zeros(1), rng)[0])


def gaussian_delta(epsilon: float, ratio: float, shift: float) -> float:
    """The divergence of N(0, ratio^2) from N(shift, 1) at ``epsilon``."""
    # log p - log q - epsilon = a x^2 + b x + c
    a = (1 - ratio**-2) / 2
    b, c = -shift, shift * shift / 2 - math.log(ratio) - epsilon
    if abs(a) < 1e-12:
        edge = c / shift if shift else math.inf
        return max(0.0, _normal(-math.inf, edge, ratio, shift, epsilon))
    square = b * b - 4 * a * c
    if square <= 0:
        return 0.0 if a < 0 else -math.expm1(epsilon)
    q = -(b + math.copysign(math.sqrt(square), b)) / 2 if b else math.sqrt(square) / 2
    left, right = sorted((q / a, c / q))
    if a < 0:
        return max(0.0, _normal(left, right, ratio, shift, epsilon))
    tails = _normal(-math.inf, left, ratio, shift, epsilon)
    return max(0.0, tails + _normal(right, math.inf, ratio, shift, epsilon))


def _normal(low: float, high: float, ratio: float, shift: float, epsilon: float) -> float:
    """P(low < X < high) - e^epsilon Q(low < X < high)."""
    p = _between(low / ratio, high / ratio)
    return p - math.exp(epsilon) * _between(low - shift, high - shift)


def _between(low: float, high: float) -> float:
    """The standard normal probability of an interval, accurate in both tails."""
    if low > 0:
        low, high = -high, -low
    return float(special.ndtr(high) - special.ndtr(low))


def gaussian_worst(epsilon: float, beta: float, multiplier: float, *, cells: int) -> float:
    """A bound on the divergence over all ratios of scales up to e^beta, in both directions."""
    width = beta / cells
    eta = math.exp(width)
    shift = 1 / multiplier
    worst = 0.0
    for cell in range(cells):
        low, high = math.exp(cell * width), math.exp((cell + 1) * width)
        wide = eta * gaussian_delta(epsilon - width, high, shift)
        narrow = gaussian_delta(epsilon - width, 1 / low, shift / low)
        worst = max(worst, wide, narrow)
    return worst


def _gaussian_multiplier(epsilon: float, delta: float, beta: float, *, cells: int) -> float:
    if beta >= epsilon or gaussian_worst(epsilon, beta, 1e12, cells=cells) > delta:
        return math.inf
    low, high = 1e-3, 1e-2
    while gaussian_worst(epsilon, beta, high, cells=cells) > delta:
        low, high = high, 2 * high
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        keeps = gaussian_worst(epsilon, beta, middle, cells=cells) <= delta
        low, high = (low, middle) if keeps else (middle, high)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class Lomax(NoiseFamily):
    """(order / 2) (1 + |z|)^-(order + 1): tails of a power, and no delta."""

    order: int

    @classmethod
    def calibrated(cls, epsilon: Fraction, order: int) -> Self:
        """The smallest multiplier for ``beta = epsilon / order``."""
        # Theorem: pure epsilon-DP with scale S / c, `c = min(e^(eps/(k+1)) - 1, e^beta
        #   (e^((eps - beta)/(k+1)) - 1))` and `k beta <= eps`; no larger c will do.
        # Proof: docs/theory/smooth-sensitivity.md.
        # Source: B47; Hladík, Tětek 2025.
        # Needs: order at least 2, so that the mean exists (3 for a variance).
        if order < 2:
            raise InvalidArgument(f"order must be at least 2, got {order}.")
        eps, k = float(epsilon), order
        beta = round_down(epsilon / order)
        at_once = math.expm1(eps / (k + 1))
        later = math.exp(beta) * math.expm1((eps - beta) / (k + 1))
        up = Fraction(1 / min(at_once, later) * _UP)
        return cls(epsilon=epsilon, delta=Fraction(0), beta=beta, multiplier=up, order=order)

    @property
    def std(self) -> float:
        k = self.order
        return math.sqrt(2 / ((k - 1) * (k - 2))) if k > 2 else math.inf

    def log_density(self, z: Floats) -> Floats:
        return math.log(self.order / 2) - (self.order + 1) * np.log1p(np.abs(z))

    def tail(self, level: float) -> float:
        return math.expm1(-math.log1p(-level) / self.order)

    def draw(self, scale: Fraction, rng: RandomSource) -> int:
        def beyond(z: Fraction, precision: int) -> Enclosure:
            power = (scale / (scale + z)) ** self.order
            scaled = power.numerator << precision
            return scaled // power.denominator, ceil_div(scaled, power.denominator)

        return _rounded(beyond, lambda u: math.expm1(-math.log(u) / self.order) * float(scale), rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cauchy(NoiseFamily):
    """1 / (pi (1 + z^2)): no delta, and no mean."""

    @classmethod
    def calibrated(cls, epsilon: Fraction, beta: float | None) -> Self:
        """The smallest multiplier; ``beta`` by default the best for even gaps."""
        # Theorem: pure epsilon-DP with scale S / a if and only if `a^2 <= 2 (cosh epsilon - 1)` and
        #   `a^2 <= 2 e^beta (cosh epsilon - 1) - (e^beta - 1)^2`.
        # Proof: the ratio of the densities of (0, 1) and (d, r) at x is `((x - d)^2 + r^2) / (r (1
        #   + x^2))`, a quadratic form in the unit vector along (x, 1) with determinant 1 and trace
        #   `(1 + d^2 + r^2) / r`: its largest and smallest value are e^L and e^-L with `2 cosh L =
        #   (1 + d^2 + r^2) / r`. It is convex in r, so r = 1 and r = e^beta decide, with d = a.
        # Source: Nissim, Raskhodnikova, Smith 2007 (the mechanism); sharper than B32.
        # Needs: beta < epsilon.
        eps = float(epsilon)
        chosen = _best(partial(cauchy_multiplier, eps), eps) if beta is None else beta
        multiplier = cauchy_multiplier(eps, chosen)
        _possible(multiplier, chosen)
        up = Fraction(multiplier * _UP)
        return cls(epsilon=epsilon, delta=Fraction(0), beta=chosen, multiplier=up)

    @property
    def std(self) -> float:
        return math.inf

    def log_density(self, z: Floats) -> Floats:
        return -np.log1p(z * z) - math.log(math.pi)

    def tail(self, level: float) -> float:
        return math.tan(math.pi * level / 2)

    def draw(self, scale: Fraction, rng: RandomSource) -> int:
        def beyond(z: Fraction, precision: int) -> Enclosure:
            return turns_beyond(z / scale, precision)

        return _rounded(beyond, lambda u: float(scale) / math.tan(math.pi * u / 2), rng)


def cauchy_multiplier(epsilon: float, beta: float) -> float:
    """The smallest multiplier of Cauchy noise; infinite if there is none."""
    room = 4 * math.sinh(epsilon / 2) ** 2  # 2 (cosh epsilon - 1)
    square = min(room, math.exp(beta) * room - math.expm1(beta) ** 2)
    return 1 / math.sqrt(square) if square > 0 else math.inf


def _rounded(beyond: _Tail, guess: _Guess, rng: RandomSource) -> int:
    """A signed draw, rounded to the nearest whole number, from P(|Z| > z), strictly falling."""
    negative = bool(int(rng.words(1)[0]) & 1)
    uniform = LazyUniform(rng)
    uniform.extend()
    first = math.floor(guess((uniform.value + 0.5) * 2.0**-uniform.bits) + 0.5)
    size = invert(uniform, partial(_at_least, beyond), first)
    return -size if negative else size


class _Tail(Protocol):
    def __call__(self, z: Fraction, precision: int) -> Enclosure: ...


class _Guess(Protocol):
    def __call__(self, u: float, /) -> float: ...


def _at_least(beyond: _Tail, m: int) -> partial[Enclosure]:
    """P(round(|Z|) >= m), which is P(|Z| > m - 1/2): halves have no probability."""
    return partial(_certain) if m <= 0 else partial(beyond, Fraction(2 * m - 1, 2))


def _certain(precision: int) -> Enclosure:
    return 1 << precision, 1 << precision


def _best(multiplier: _Guess, epsilon: float) -> float:
    """The beta of least ``multiplier / beta``: bounds on evenly spaced values grow as 1 / beta."""
    grid = epsilon * np.geomspace(1e-3, 0.9, 120)
    return min(map(float, grid), key=lambda b: multiplier(b) / b)


def _possible(multiplier: float, beta: float) -> None:
    if not math.isfinite(multiplier):
        raise InvalidArgument(
            f"smoothness={beta:g} is too large for this delta: use a smaller one."
        )


LARGEST_STEPS: dict[type[NoiseFamily], int] = {
    SmoothLaplace: 1 << 500,
    SmoothGaussian: 1 << 47,
    Lomax: 1 << 500,
    Cauchy: 1 << 500,
}
"""Scales that can be drawn: Gaussian noise in 64 bits, the others while doubles can guess."""
