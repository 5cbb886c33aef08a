"""How far apart two bounded Laplace distributions are: the smallest scale, and its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import exp_minus
from discreet.core.errors import Unsupported
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.distribution import Floats, floats
from discreet.noise.laplace import LARGEST_SCALE

# ── The smallest scale ───────────────────────────────────────────────────────────────────────────
# How far apart two bounded Laplace laws are, and the smallest scale that keeps a promise.
#
# Outputs are 0..span, and ``P(k) = r^|k - q| / Z(q)`` with ``r = exp(-1 / scale)``: around a
# center q near an edge the noise that would leave is spread over the rest. The normalizer Z
# depends on the private center, so noise of the usual scale does not keep the usual promise.


# A delta below the first, or beside an epsilon above the second, is worth nothing here.
_SMALLEST_DELTA = Fraction(1, 1 << 36)
_LARGEST_EPSILON = 64

_PRECISION = 160
# Intervals of centers that are held at a time: more of them count as "not shown".
_MOST_CELLS = 1 << 15
_NODES = 256
_HALVINGS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedOutputs:
    """Outputs 0..span of a statistic that moves by at most ``shift`` between neighbors."""

    span: int
    shift: int

    def keeps_pure(self, scale: Fraction, epsilon: Fraction) -> bool:
        """Whether a scale is epsilon-DP, decided in whole numbers."""
        # Theorem: if and only if `e^-epsilon (1 + r - r^(d+1) - r^(w-d+1)) <= r^d (1 - r^(w+1))`,
        #   d the shift and w the span; an enclosure that cannot tell says no.
        # Proof: Z(q) is proportional to `1 + r - r^(q+1) - r^(w-q+1)`, concave in q, so log Z is,
        #   and `log Z(q + s) - log Z(q)` is largest at q = 0. The largest loss of a pair (q, q +
        #   s) is `s / scale` plus that, attained at outputs up to q. It grows with s, because
        #   `Z(q + 1) >= r Z(q)` term by term. So the worst pair is (0, d), and by reflection
        #   (w, w - d) for the other order. The inequality is its loss, multiplied out.
        # Source: Holohan, Antonatos, Braghin, Mac Aonghusa 2020, here on a lattice. B44.
        work = _PRECISION + int(scale).bit_length() + int(2 * epsilon)
        d, w = self.shift, self.span
        exponents = (epsilon, 1 / scale, (d + 1) / scale, (w - d + 1) / scale)
        (_, e), (_, r), (near, _), (far, _) = (exp_minus(x, work) for x in exponents)
        (moved, _), (_, whole) = (exp_minus(x, work) for x in (d / scale, (w + 1) / scale))
        one = 1 << work
        return e * (one + r - near - far) <= moved * (one - whole)

    def divergence(self, q: ArrayLike, scale: float, epsilon: float) -> Floats:
        """The divergence at epsilon of the law around q from that around q + shift."""
        center = floats(q)
        return self._excess(center, self._ratio(center, scale), scale, epsilon)

    def _excess(self, q: Floats, ratio: Floats, t: float, epsilon: float) -> Floats:
        """The same with any ``ratio`` in place of the logarithm of Z(q + shift) / Z(q).

        Around q, the output q + j has the loss ``ratio + (shift - 2 j) / scale``, for j below zero
        that of j = 0: it falls in j, so the worst set is all outputs below the one where it meets
        epsilon. Sums are geometric.
        """
        above = self.shift + (ratio - epsilon) * t
        top = np.clip(np.ceil(above / 2) - 1, 0, self.shift - 1)
        r = math.exp(-1 / t)
        left = -r * np.expm1(-q / t)
        own = left - np.expm1(-(top + 1) / t)
        its = left + r * np.expm1(np.minimum((top + 1) / t, 700.0))
        less = np.exp(np.minimum(epsilon - ratio - self.shift / t, 0.0)) * its
        found = np.maximum(own - less, 0.0) / self._normalizer(q, t)
        return np.where(above > 0, found, 0.0)

    def _ratio(self, q: Floats, t: float) -> Floats:
        return np.log(self._normalizer(q + self.shift, t) / self._normalizer(q, t))

    def _normalizer(self, q: Floats, t: float) -> Floats:
        """``Z(q) (1 - r)``, as a sum of two positive numbers."""
        return -np.expm1(-(self.span - q + 1) / t) - math.exp(-1 / t) * np.expm1(-q / t)

    def bound(self, low: Floats, high: Floats, scale: float, epsilon: float) -> Floats:
        """At least the divergence of every center from ``low`` to ``high``."""
        # Proof: log Z is concave, so the ratio falls in the center and is at most that at `low`:
        #   the excess is at most the expectation of a function that falls in j, the distance from
        #   the center. The larger the center, the farther its distances reach down and the less
        #   up, so that expectation grows with it: it is largest at `high`.
        return self._excess(high, self._ratio(low, scale), scale, epsilon)

    def keeps(self, scale: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether a scale is shown to be (epsilon, delta)-DP: all centers, by branch and bound."""
        # Theorem: if True, the divergence of any two centers at most `shift` apart, in both
        #   orders, is at most delta.
        # Proof: laws of larger centers are larger in the sense of likelihood ratios. So for a fixed
        #   set {k <= t} the mass falls in the center, and the divergence of (q, q') with q < q'
        #   falls in q and grows in q': the worst shift is the largest. Intervals of centers whose
        #   `bound` is above delta are halved; an interval of one center is exact. The other order
        #   is the reflection of this one. Doubles are off by less than `_margin`: all masses are
        #   sums of positive terms, good to 2**-48, with exponents up to epsilon.
        # Source: B54, where the worst shift was a scan.
        t, eps, target = float(scale), float(epsilon), float(delta) - _margin(float(epsilon))
        low, high = np.zeros(1), np.array([float(self.span - self.shift)])
        while len(low):
            open_ = self.bound(low, high, t, eps) > target
            low, high = low[open_], high[open_]
            middle = np.floor((low + high) / 2)
            if len(low) > _MOST_CELLS or np.any(self.divergence(middle, t, eps) > target):
                return False
            # An interval of one center that is still open is settled by the line above.
            low, high = np.concatenate((low, middle + 1)), np.concatenate((middle, high))
        return True

    def worst(self, scale: float, epsilon: float) -> tuple[float, int]:
        """The largest divergence that a search finds, and the center: a forecast, not a proof."""
        last = self.span - self.shift
        reach = min(last, math.ceil(60 * scale) + 1)
        nodes = np.unique(
            np.concatenate(([0.0, last], np.rint(np.geomspace(1, reach + 1, _NODES))))
        )
        nodes = nodes[nodes <= last]
        for _ in range(3):
            found = self.divergence(nodes, scale, epsilon)
            best = int(found.argmax())
            low, high = nodes[max(best - 1, 0)], nodes[min(best + 1, len(nodes) - 1)]
            nodes = np.unique(np.append(np.rint(np.linspace(low, high, _NODES)), nodes[best]))
        found = self.divergence(nodes, scale, epsilon)
        return float(found.max()), int(nodes[found.argmax()])

    def calibrate(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The smallest scale that is shown to keep (epsilon, delta), to about a millionth."""
        if self.shift == self.span and delta == 0:
            return self.span / epsilon  # then both normalizers are alike
        if delta == 0:
            return _smallest(
                lambda scale: self.keeps_pure(Fraction(scale), epsilon), self.shift / epsilon
            )
        aim = float(delta) - _margin(float(epsilon))
        guess = _smallest(
            lambda scale: self.worst(scale, float(epsilon))[0] <= aim, self.shift / epsilon
        )
        for finer in range(22, -12, -1):
            scale = guess * (1 + Fraction(1, 1 << finer) if finer > 0 else Fraction(1 << -finer))
            if self.keeps(scale, epsilon, delta):
                return scale
        raise Unsupported("No scale could be shown to keep this epsilon and delta.")


def spendable(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The delta, or zero where it would be worth nothing."""
    useful = delta >= _SMALLEST_DELTA and epsilon <= _LARGEST_EPSILON
    return delta if useful else Fraction(0)


def _margin(epsilon: float) -> float:
    """More than doubles can be off in a divergence."""
    return (16 + epsilon) * 2.0**-46


def _smallest(keeps: Callable[[float], bool], start: Fraction) -> Fraction:
    """The smallest scale at which ``keeps`` turns true, from above."""
    low = high = float(start)
    while not keeps(high):
        low, high = high, 2 * high
        if high > LARGEST_SCALE:
            raise Unsupported("No scale of up to 2**33 steps keeps this epsilon: use a larger one.")
    if low == high:
        while keeps(low):
            low, high = low / 2, low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return Fraction(high)


# ── The certificate ──────────────────────────────────────────────────────────────────────────────


# Up to so many outputs all pairs of laws are compared point by point.
_LARGEST_TABLE = 400
_FEW_NODES = 24


def worst_divergence(outputs: BoundedOutputs, scale: Fraction, epsilon: float) -> tuple[float, str]:
    """The largest divergence of two centers, both orders, and how it was found."""
    if outputs.span < _LARGEST_TABLE:
        return _all_pairs(outputs, scale, epsilon), "sum over the outputs, all pairs of centers"
    found = _some_pairs(outputs, scale, epsilon)
    return found, "tails of the laws, centers near both edges and the worst one"


def table(span: int, scale: Fraction) -> Floats:
    """All laws: row q, column output."""
    every = np.arange(span + 1)
    return np.array(
        [
            BoundedDiscreteLaplace(scale, lower=-q, upper=span - q).pmf(every - q)
            for q in every.tolist()
        ]
    )


def _all_pairs(outputs: BoundedOutputs, scale: Fraction, epsilon: float) -> float:
    laws = table(outputs.span, scale)
    factor = math.exp(epsilon) * (1 + 1e-13)  # rounding of doubles is not a loss
    worst = 0.0
    for shift in range(1, outputs.shift + 1):
        for one, other in ((laws[:-shift], laws[shift:]), (laws[shift:], laws[:-shift])):
            excess = np.maximum(one - factor * other, 0).sum(axis=1)
            worst = max(worst, float(excess.max(initial=0.0)))
    return worst


def _some_pairs(outputs: BoundedOutputs, scale: Fraction, epsilon: float) -> float:
    """Centers near both edges and where the search found the worst, shifts whole and halved."""
    last = outputs.span - outputs.shift
    suspect = outputs.worst(float(scale), epsilon)[1]
    spread = np.rint(np.geomspace(1, last + 1, _FEW_NODES)).astype(np.int64) - 1
    centers = np.unique(np.clip(np.append(np.append(spread, last - spread), suspect), 0, last))
    worst = 0.0
    for q in centers.tolist():
        for shift in (outputs.shift, max(1, outputs.shift // 2)):
            for one, other in ((q, q + shift), (q + shift, q)):
                worst = max(worst, _half_line(outputs.span, scale, (one, other), epsilon))
    return worst


def _half_line(span: int, scale: Fraction, pair: tuple[int, int], epsilon: float) -> float:
    """The excess of the worst half-line, among those that end between the two centers."""
    laws = [BoundedDiscreteLaplace(scale, lower=-q, upper=span - q) for q in pair]
    low, high = min(pair), max(pair)
    # The loss is monotone between the centers: find where it passes epsilon, and look around it.
    falling = pair[0] < pair[1]
    first, last = low - 1, high
    while last - first > 1:
        middle = (first + last) // 2
        logs = [float(law.log_pmf(middle - q)) for law, q in zip(laws, pair, strict=True)]
        beyond = (logs[0] - logs[1] > epsilon) == falling
        first, last = (middle, last) if beyond else (first, middle)
    ends = np.arange(first - 2, first + 3, dtype=np.float64)
    own, its = (
        law.cdf(ends - q) if falling else law.sf(ends - q)
        for law, q in zip(laws, pair, strict=True)
    )
    return max(0.0, float(np.max(own - math.exp(epsilon) * its * (1 + 1e-13))))
