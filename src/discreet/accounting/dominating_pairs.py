"""Dominating pairs: for each kind of noise the two output laws that are easiest to tell apart.

A pair (P, Q) is known by its *tails*: the P- and Q-mass on each side of a privacy loss
``L = log dP/dQ``. All else follows: the profile ``delta(eps) = P(L > eps) - e^eps Q(L > eps)``,
and the cells from which compositions are made. Tails on both sides are asked for because the
complement of a small tail is not a small tail in floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from discreet.accounting.conversion import UNDERFLOW, UP, Floats, gaussian_delta

# Relative error of one evaluated tail, generously; enters every difference of tails.
ROUNDING = 2e-15


@dataclass(frozen=True, slots=True)
class PairTails:
    """Mass above a loss (finite losses only) and at or below it, under P and under Q."""

    p_above: Floats
    q_above: Floats
    p_below: Floats
    q_below: Floats


class DominatingPair(Protocol):
    """What composition needs to know about a dominating pair."""

    @property
    def infinity(self) -> float:
        """P-mass of an infinite loss: outputs that Q never gives."""

    def tails(self, loss: Floats) -> PairTails:
        """The tails at each finite loss."""

    def spread(self, tail: float, *, count: int) -> Floats:
        """Increasing losses, dense where P is; P has at most ``tail`` (finite) mass above them."""


def delta(pair: DominatingPair, epsilon: Floats) -> Floats:
    """The profile of a pair at each epsilon, rounded up."""
    # Theorem: the hockey-stick divergence is `P(L > eps) - e^eps Q(L > eps)`, P(inf) included.
    # Proof: the set where dP > e^eps dQ is the best test set.
    if isinstance(pair, GaussianPair):
        return np.minimum(gaussian_delta(epsilon, mu=pair.mu) * UP + UNDERFLOW, 1.0)
    if isinstance(pair, (LaplacePair, BoundedRangePair, RemovePair, WithoutReplacementPair)):
        return pair.profile(epsilon)
    if isinstance(pair, AtomPair) and epsilon.size * pair.losses.size <= 2_000_000:
        return pair.profile(epsilon)
    if isinstance(pair, LatticeLaplacePair) and pair.bound is not None:
        epsilon = epsilon * (1 - 1e-15)  # the losses of a bounded law are not rounded up
    at = pair.tails(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = np.where(at.q_above > 0, np.exp(epsilon) * at.q_above, 0.0)
        finite = np.maximum(at.p_above - weighted, 0.0) + ROUNDING * (at.p_above + weighted)
    finite = np.where(at.p_above > 0, finite, 0.0)
    return np.minimum((finite + pair.infinity) * UP, 1.0)


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """N(0, 1) against N(mu, 1): the loss is N(mu^2/2, mu^2) under P, N(-mu^2/2, mu^2) under Q.

    Tails that underflow count as an infinite loss, so that no delta is ever claimed to be zero.
    """

    mu: float
    infinity: float = UNDERFLOW

    def tails(self, loss: Floats) -> PairTails:
        z = loss / self.mu
        half = self.mu / 2
        return PairTails(ndtr(half - z), ndtr(-half - z), ndtr(z - half), ndtr(z + half))

    def spread(self, tail: float, *, count: int) -> Floats:
        reach = math.sqrt(2 * math.log(1 / tail))
        return self.mu * (self.mu / 2 + np.linspace(-reach, reach, count))


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Laplace noise of scale 1 against the same moved by ``epsilon``."""

    # Theorem: it also dominates every *vector* of independent Laplace noise whose L1 shift is
    #   `epsilon` in units of the scale; its profile is `1 - e^{(eps' - epsilon)/2}`.
    # Proof: theorem T1 of docs/theory/accounting.md (one coordinate is the worst split).
    # Source: B16 (which left the vector case open).

    epsilon: float
    infinity: float = 0.0

    def tails(self, loss: Floats) -> PairTails:
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        p_below = np.exp((inside - e) / 2) / 2
        q_above = np.exp((-inside - e) / 2) / 2
        above, below = loss >= e, loss < -e
        return PairTails(
            np.where(above, 0.0, np.where(below, 1.0, 1 - p_below)),
            np.where(above, 0.0, np.where(below, 1.0, q_above)),
            np.where(above, 1.0, np.where(below, 0.0, p_below)),
            np.where(above, 1.0, np.where(below, 0.0, 1 - q_above)),
        )

    def profile(self, epsilon: Floats) -> Floats:
        """B16; below ``-epsilon`` every output is in the test set."""
        inside = np.maximum(epsilon, -self.epsilon)
        value = -np.expm1((np.minimum(inside, self.epsilon) - self.epsilon) / 2)
        value = np.where(epsilon < -self.epsilon, -np.expm1(np.minimum(epsilon, 0.0)), value)
        return np.minimum(value * UP, 1.0)

    def spread(self, tail: float, *, count: int) -> Floats:  # noqa: ARG002
        return np.linspace(-self.epsilon, self.epsilon, count)


@dataclass(frozen=True, slots=True)
class LatticeLaplacePair:
    """Discrete Laplace noise (decay `1/scale` per step) against itself moved by `shift` steps."""

    # Theorem: the loss of output y is (|y - s| - |y|)/scale, decreasing in y, so `L > l` is the
    #   half-line y <= c - 1 with `c = ceil((s - l scale)/2)` inside (0, s); with a bound, outputs
    #   below s - bound have infinite loss. Covers vectors of L1 shift s (T1) when unbounded.
    # Source: Ghosh, Roughgarden, Sundararajan 2009; Geng et al. 2020 for the truncated law (B49).

    decay: float
    shift: int
    bound: int | None = None

    @property
    def infinity(self) -> float:
        if self.bound is None:
            return 0.0
        edge = np.asarray(float(self.shift - self.bound - 1))
        return min(1.0, float(self._cdf(edge)[0]) * UP + UNDERFLOW)

    def _cdf(self, y: Floats) -> tuple[Floats, Floats]:
        """P(X <= y) and P(X > y), each without cancellation in its own tail."""
        a = self.decay
        low = np.exp(a * np.minimum(y, 0.0))  # r^{-y} for y <= 0
        high = np.exp(-a * np.maximum(y + 1, 0.0))  # r^{y+1} for y >= -1
        if self.bound is None:
            share = 1 / (1 + math.exp(-a))
            below = np.where(y < 0, low * share, 1 - high * share)
            above = np.where(y < 0, 1 - low * share, high * share)
            return below, above
        # What is cut off, r^{bound+1}, is taken from each without cancellation.
        end = self.bound + 1
        total = -math.expm1(-a * end) - math.exp(-a) * math.expm1(-a * self.bound)
        left = low * -np.expm1(-a * np.maximum(end + np.minimum(y, 0.0), 0.0)) / total
        right = high * -np.expm1(-a * np.maximum(end - np.maximum(y + 1, 0.0), 0.0)) / total
        return np.where(y < 0, left, 1 - right), np.where(y < 0, 1 - left, right)

    def tails(self, loss: Floats) -> PairTails:
        s = float(self.shift)
        top = s * self.decay
        # Outputs y <= last have loss above l; all losses lie in [-top, top].
        last = np.ceil((s - loss / self.decay) / 2 * (1 - 1e-15)) - 1
        last = np.clip(last, 0.0, s - 1)
        last = np.where(loss >= top, -np.inf, np.where(loss < -top, np.inf, last))
        if self.bound is not None:
            last = np.clip(last, s - self.bound - 1, self.bound)
            floor = np.asarray(s - self.bound - 1)
            p_above = np.maximum(self._cdf(last)[0] - self._cdf(floor)[0], 0.0)
            p_above = np.where(last <= floor, 0.0, p_above)
            moved = self._cdf(last - s)
            return PairTails(p_above, moved[0], self._cdf(last)[1], moved[1])
        here, moved = self._cdf(last), self._cdf(last - s)
        return PairTails(here[0], moved[0], here[1], moved[1])

    def spread(self, tail: float, *, count: int) -> Floats:  # noqa: ARG002
        top = self.shift * self.decay
        steps = min(count, self.shift + 1)
        return np.linspace(-top, top, max(steps, 2))


@dataclass(frozen=True, slots=True)
class BoundedRangePair:
    """The envelope of all mechanisms of bounded range ``epsilon``."""

    # Theorem: `delta(eps') = (1 - e^{(eps' - eps)/2})^2 / (1 - e^-eps)` for |eps'| <= eps.
    # Proof: such a pair is dominated by the two-point pairs with losses t and t - eps; maximize
    #   over t (t = (eps + eps')/2). The curve is convex in e^eps', so some pair has it as its
    #   profile, and that pair dominates all.
    # Source: Dong, Durfee, Rogers 2020, Lemma 3.2 and Theorem 3.

    epsilon: float
    infinity: float = 0.0

    def tails(self, loss: Floats) -> PairTails:
        e = self.epsilon
        inside = np.clip(loss, -e, e)
        total = -math.expm1(-e)
        p_above = -np.expm1((inside - e) / 2) / total
        q_below = -np.expm1(-(inside + e) / 2) / total
        # e^-e (e^((e -+ inside)/2) - 1), which would overflow.
        q_above = np.exp(-(e + inside) / 2) * p_above
        p_below = np.exp((inside - e) / 2) * q_below
        return PairTails(p_above, q_above, p_below, q_below)

    def profile(self, epsilon: Floats) -> Floats:
        """The theorem; below ``-epsilon`` every output is in the test set."""
        e = self.epsilon
        gap = np.expm1((np.clip(epsilon, -e, e) - e) / 2)
        value = -gap * (gap / math.expm1(-e))
        value = np.where(epsilon < -e, -np.expm1(np.minimum(epsilon, 0.0)), value)
        return np.minimum(value * UP, 1.0)

    def spread(self, tail: float, *, count: int) -> Floats:  # noqa: ARG002
        return np.linspace(-self.epsilon, self.epsilon, count)


@dataclass(frozen=True, slots=True, eq=False)
class AtomPair:
    """A pair with finitely many losses (increasing), their P-masses, and the infinite ones."""

    losses: Floats
    masses: Floats
    infinity: float = 0.0

    @property
    def other(self) -> Floats:
        """The Q-masses; below what underflows they are outputs that P never gives."""
        result: Floats = self.masses * np.exp(-np.maximum(self.losses, -700.0))
        return result

    def profile(self, epsilon: Floats) -> Floats:
        """Direct sum of positive terms."""
        gap = np.minimum(np.asarray(epsilon)[..., None] - self.losses, 0.0)
        return np.minimum(((-np.expm1(gap)) @ self.masses + self.infinity) * UP, 1.0)

    def tails(self, loss: Floats) -> PairTails:
        p, q = self.masses, self.other
        cut = np.searchsorted(self.losses, loss, side="right")
        p_above = np.append(np.cumsum(p[::-1])[::-1], 0.0)
        q_above = np.append(np.cumsum(q[::-1])[::-1], 0.0)
        p_below = np.append(0.0, np.cumsum(p))
        q_below = np.append(0.0, np.cumsum(q)) + max(0.0, 1.0 - float(q_above[0]))
        return PairTails(p_above[cut], q_above[cut], p_below[cut], q_below[cut])

    def spread(self, tail: float, *, count: int) -> Floats:  # noqa: ARG002
        return self.losses


@dataclass(frozen=True, slots=True)
class RemovePair:
    """A Poisson sample of rate q, the unit removed: ``(1-q) Q + q P`` against ``Q``."""

    # Theorem: if (P, Q) dominates removal in the inner mechanism, this dominates it in the sample.
    # Source: Zhu, Dong, Wang 2022, Theorem 11 (Proposition 30 of the preprint).

    rate: float
    inner: DominatingPair

    @property
    def infinity(self) -> float:
        return min(1.0, self.rate * self.inner.infinity * UP)

    def _inside(self, loss: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The loss within the sample, and whether a loss is below all that the sample has."""
        floor = math.log1p(-self.rate)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inside = np.log1p(np.maximum(np.expm1(loss) / self.rate, -1.0))
            big = loss - math.log(self.rate)  # expm1 overflows
            inside = np.where(loss > 700, big, inside)
        low = ~(loss > floor) | np.isneginf(inside)
        return np.where(low, 0.0, inside), low

    def profile(self, epsilon: Floats) -> Floats:
        """``q delta(log(1 + (e^eps - 1)/q))``: a difference of tails would lose digits."""
        inside, low = self._inside(epsilon)
        every = -np.expm1(np.minimum(epsilon, 0.0))
        value = np.where(low, every, self.rate * delta(self.inner, inside))
        floor = UNDERFLOW if self.inner.infinity > 0 else 0.0
        return np.minimum(value * UP + floor, 1.0)

    def tails(self, loss: Floats) -> PairTails:
        inside, low = self._inside(loss)
        at = self.inner.tails(inside)
        q = self.rate
        p_above = (1 - q) * at.q_above + q * at.p_above
        p_below = (1 - q) * at.q_below + q * at.p_below
        return PairTails(
            np.where(low, 1.0 - self.infinity, p_above),
            np.where(low, 1.0, at.q_above),
            np.where(low, 0.0, p_below),
            np.where(low, 0.0, at.q_below),
        )

    def spread(self, tail: float, *, count: int) -> Floats:
        inner = self.inner.spread(tail, count=count)
        moved = np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + inner)
        return np.append(math.log1p(-self.rate), moved)


@dataclass(frozen=True, slots=True)
class AddPair:
    """A Poisson sample of rate q, the unit added: ``P`` against ``(1-q) P + q Q``."""

    rate: float
    inner: DominatingPair
    infinity: float = 0.0

    def tails(self, loss: Floats) -> PairTails:
        ceiling = -math.log1p(-self.rate)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inside = -np.log1p(np.maximum(np.expm1(-loss) / self.rate, -1.0))
            inside = np.where(loss < -700, loss + math.log(self.rate), inside)
        high = ~(loss < ceiling) | np.isposinf(inside)
        at = self.inner.tails(np.where(high, 0.0, inside))
        q = self.rate
        p_above = at.p_above + self.inner.infinity
        q_above = (1 - q) * p_above + q * at.q_above
        q_below = (1 - q) * at.p_below + q * at.q_below
        return PairTails(
            np.where(high, 0.0, p_above),
            np.where(high, 0.0, q_above),
            np.where(high, 1.0, at.p_below),
            np.where(high, 1.0, q_below),
        )

    def spread(self, tail: float, *, count: int) -> Floats:
        inner = self.inner.spread(tail, count=count)
        moved = -np.logaddexp(math.log1p(-self.rate), math.log(self.rate) - inner)
        return np.append(moved, -math.log1p(-self.rate))


@dataclass(frozen=True, slots=True)
class WithoutReplacementPair:
    """A fraction q drawn without replacement, one unit replaced; the inner pair is symmetric."""

    # Theorem: `delta'(log(1 + q (e^eps - 1))) = q delta(eps)` for eps >= 0, symmetric below.
    # Proof: above zero the tails are those of `(1-q) Q + q P` against `Q` (differentiate); the
    #   relation is symmetric, so below zero they are the mirror image.
    # Source: Balle, Barthe, Gaboardi 2018, Theorem 9; Zhu, Dong, Wang 2022.

    rate: float
    inner: DominatingPair

    @property
    def infinity(self) -> float:
        return min(1.0, self.rate * self.inner.infinity * UP)

    def profile(self, epsilon: Floats) -> Floats:
        """That of the removal above zero, and its mirror image below."""
        if self.rate == 1:
            return delta(self.inner, epsilon)
        value = RemovePair(self.rate, self.inner).profile(np.abs(epsilon))
        less = np.minimum(epsilon, 0.0)
        mirrored = -np.expm1(less) + np.exp(less) * value
        return np.minimum(np.where(epsilon >= 0, value, mirrored * UP), 1.0)

    def tails(self, loss: Floats) -> PairTails:
        positive = loss >= 0
        at = RemovePair(self.rate, self.inner).tails(np.abs(loss)) if self.rate < 1 else None
        if at is None:
            return self.inner.tails(loss)
        atom = 1.0 - self.infinity
        p_low = np.maximum(atom - at.p_above, 0.0)
        q_low = 1.0 - at.q_above
        # Mirror: P(L > -l) = Q(L <= l) and Q(L > -l) = P(L <= l), infinite losses included.
        return PairTails(
            np.where(positive, at.p_above, np.maximum(q_low - self.infinity, 0.0)),
            np.where(positive, at.q_above, p_low),
            np.where(positive, p_low, at.q_above),
            np.where(positive, q_low, at.p_above + self.infinity),
        )

    def spread(self, tail: float, *, count: int) -> Floats:
        upper = RemovePair(self.rate, self.inner).spread(tail, count=count)
        upper = upper[upper > 0]
        return np.concatenate([-upper[::-1], [0.0], upper])
