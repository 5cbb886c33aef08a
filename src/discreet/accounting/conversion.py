"""Conversions between the languages of privacy: pure functions of numbers.

Results that are claims are rounded outward by ``UP``, a relative margin far above the error of the
special functions used (a few units in the last place) and far below anything one would notice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, gammaln, log_ndtr

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]

UP = 1.0 + 1e-12
# Above every number that underflows, below every delta of interest: no bound of an unbounded loss
# is ever rounded to zero.
UNDERFLOW = 1e-300
# Far in the tail the curve is all but flat, then steep: more steps than SciPy takes by itself.
_MOST_ITERATIONS = 10_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


# ── Gaussian differential privacy ────────────────────────────────────────────


def gaussian_delta(epsilon: ArrayLike, *, mu: float) -> Floats:
    """The delta of mu-GDP at each epsilon: HS divergence of N(mu, 1) from N(0, 1)."""
    # Theorem: `delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`.
    # Proof: the likelihood ratio is monotone, so the best test set is a half-line. With
    #   `t = eps/mu - mu/2` and Mills' ratio R both terms share the factor phi(t), so
    #   `delta = phi(t) (R(t) - R(t + mu))`, which does not cancel in the tail; for small mu the
    #   difference is the integral of `-R' = 1 - s R(s)`.
    # Source: Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 2.13 (B18, K8, C18).
    # Needs: `mu >= 0`.
    eps = np.asarray(epsilon, dtype=np.float64)
    if mu == 0:
        return np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
    with np.errstate(over="ignore"):
        t = np.minimum(eps / mu - mu / 2, 1e150)  # its square is a double, and delta is zero
    result = np.empty_like(t)
    right = t > -1.0
    s = t[right]
    if mu < 0.2:
        points = s[..., None] + mu * (_NODES + 1) / 2
        difference = ((1 - points * _mills(points)) * _WEIGHTS).sum(axis=-1) * mu / 2
    else:
        difference = _mills(s) - _mills(s + mu)
    result[right] = np.exp(-s * s / 2 - 0.5 * math.log(2 * math.pi)) * difference
    s, e = t[~right], eps[~right]
    with np.errstate(over="ignore"):
        result[~right] = np.exp(log_ndtr(-s)) - np.exp(e + log_ndtr(-s - mu))
    return np.clip(result, 0.0, 1.0)


def _mills(t: Floats) -> Floats:
    ratio: Floats = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    return ratio


def gaussian_epsilon(delta: float, *, mu: float) -> float:
    """The smallest epsilon >= 0 of mu-GDP at ``delta``, rounded up (C18)."""
    if mu == 0 or gaussian_delta(0.0, mu=mu) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    inverse = math.log(1 / delta) if delta > 1e-300 else -math.log(delta)  # 1/delta is a double
    high = mu * mu / 2 + mu * math.sqrt(2 * inverse)
    return round_root(lambda e: float(gaussian_delta(e, mu=mu)) - delta, 0.0, high)


def gaussian_mu(epsilon: float, *, delta: float) -> float:
    """The largest mu whose GDP curve passes below (epsilon, delta), rounded down (K8, C18)."""
    if not 0 < delta < 1 or not 0 <= epsilon < math.inf:
        raise InvalidArgument(
            f"epsilon must be finite and >= 0 and delta in (0, 1), got {epsilon} and {delta}."
        )
    low = high = 1.0
    while gaussian_delta(epsilon, mu=low) > delta:
        low /= 2
    while gaussian_delta(epsilon, mu=high) <= delta:
        high *= 2
    root = float(
        scipy.optimize.brentq(
            lambda m: float(gaussian_delta(epsilon, mu=m)) - delta,
            low,
            high,
            xtol=1e-300,
            rtol=1e-14,
            maxiter=_MOST_ITERATIONS,
        )
    )
    step = 1e-14
    while gaussian_delta(epsilon, mu=root) > delta:
        root *= 1 - step
        step *= 1.5
    return root / UP


def gaussian_sigma(epsilon: float, *, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest sigma of the analytic Gaussian mechanism, rounded up (B18, C17)."""
    sigma = UP / gaussian_mu(epsilon, delta=delta)
    # Epsilon at delta is rounded up by itself, and so is mu: what users read is within what was
    # asked. Mostly one step is enough. Near the smallest double, deltas have few digits, and the
    # curve is a staircase with wide steps: the search must grow to pass one.
    factor = UP
    while gaussian_epsilon(delta, mu=1 / sigma * UP * UP) > epsilon:
        sigma *= factor
        factor = 1 + 1.5 * (factor - 1)
    return sensitivity * sigma


def classical_sigma(epsilon: float, *, delta: float, sensitivity: float = 1.0) -> float:
    """The textbook sigma ``D sqrt(2 ln(1.25/delta)) / eps``; proved for epsilon < 1 only (K7)."""
    if not 0 < epsilon < 1:
        raise InvalidArgument(
            f"epsilon must lie in (0, 1) for the classical formula, got {epsilon}; "
            "use gaussian_sigma, which holds for every epsilon."
        )
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon * UP


# ── pure and concentrated DP ─────────────────────────────────────────────────


def pure_to_rho(epsilon: float) -> float:
    """The zCDP of an arbitrary epsilon-DP mechanism: ``eps tanh(eps/2)``."""
    # Theorem: epsilon-DP implies rho-zCDP with `rho = eps tanh(eps/2) <= eps^2/2`, attained.
    # Source: Harrison, Manurangsi 2025 (C16); randomized response is the worst pair.
    return epsilon * math.tanh(epsilon / 2) * UP


def laplace_to_rho(epsilon: float) -> float:
    """The zCDP of Laplace noise of loss ``epsilon``: ``eps + e^-eps - 1``."""
    # Theorem: Laplace noise with scale = sensitivity/epsilon is exactly that; L1 vectors too.
    # Proof: with p = a(a-1), f(eps) = E_Q[(dP/dQ)^a] solves f'' + f' = p f with f(0) = 1, f'(0) =
    #   0; exp(p (eps + e^-eps - 1)) has the same start and at least that growth, so f is below it.
    #   The limit a -> 1 is the Kullback-Leibler divergence, which attains it. Vectors: convex in
    #   eps and zero at zero, so one coordinate is the worst split.
    # Source: Harrison, Manurangsi 2025 (C16).
    if epsilon < 1e-3:  # the sum cancels; the next term of the series is negative
        return epsilon**2 / 2 * (1 - epsilon / 3 + epsilon**2 / 12) * UP
    return (epsilon + math.expm1(-epsilon)) * UP


def discrete_laplace_to_rho(step: float, shift: int) -> float:
    """The zCDP of discrete Laplace noise of scale ``1 / step`` on integers that move ``shift``."""
    # Theorem: with q = e^-step it is exactly `step (shift - 2 q (1 - q^shift) / (1 - q^2))`, which
    #   is `eps + (e^-eps - 1) step / sinh(step)` for eps = shift step; L1 vectors too.
    # Proof: fix a > 1, p = a(a-1), f(n) = E_Q[(dP/dQ)^a] for a shift of n, and K(n) the stated
    #   number. f(n) is a sum of q^(a n) and q^((1-a) n), so R(n) = f(n+1)/f(n) = s - q / R(n-1),
    #   s = q^a + q^(1-a); and k(n) = K(n+1) - K(n) is q k(n-1) + step (1-q), increasing from
    #   k(0) = step tanh(step/2). R(n) <= e^(p k(n)) for all n, which sums to f(n) <= e^(p K(n)):
    #   for n = 0 the pair is randomized response (`pure_to_rho`), and R(0) = s / (1+q). If it
    #   holds for n-1, then R(n) <= s - q e^(-p k(n-1)), and it is to be shown that G(k) =
    #   e^(p (q k + step (1-q))) + q e^(-p k) >= s at k = k(n-1). G grows for k >= 0, so take k(0):
    #   with y = p k(0) it is e^(y (1+2q)) + q e^-y >= (1+q) e^y by convexity, and (1+q) e^y >=
    #   (1+q) R(0) = s. The limit a -> 1 is the Kullback-Leibler divergence, which is K. Vectors: K
    #   is convex and zero at zero, so one coordinate is the worst split.
    # Source: ours; the continuous limit is Harrison, Manurangsi 2025 (C16).
    epsilon = step * shift
    if step < 1e-2:  # 1 - step / sinh(step), whose terms alternate: at most this
        gap = step**2 / 6 - 7 * step**4 / 360 + 31 * step**6 / 15120
    else:
        gap = 1 - 2 * step * math.exp(-step) / -math.expm1(-2 * step)
    return (laplace_to_rho(epsilon) - math.expm1(-epsilon) * gap * UP) * UP


def zcdp_epsilon(rho: float, *, delta: float, xi: float = 0.0) -> float:
    """The textbook conversion ``xi + rho + 2 sqrt(rho ln(1/delta))`` (C16)."""
    if delta <= 0:
        return xi if rho == 0 else math.inf
    return (xi + rho + 2 * math.sqrt(rho * math.log(1 / delta))) * UP


def zcdp_rho(epsilon: float, *, delta: float, xi: float = 0.0) -> float:
    """The rho whose textbook conversion gives (epsilon, delta), rounded down (C16)."""
    log = math.log(1 / delta)
    if epsilon < xi:
        raise InvalidArgument(f"epsilon must be at least xi={xi}, got {epsilon}.")
    gap = epsilon - xi
    return (gap / (math.sqrt(gap + log) + math.sqrt(log))) ** 2 / UP


def zcdp_epsilon_optimal(rho: float, *, delta: float, xi: float = 0.0) -> float:
    """The best epsilon that follows from (xi, rho)-zCDP by optimizing over the order (CKS)."""
    if delta <= 0:
        return xi if rho == 0 else math.inf
    if rho == 0:
        return xi * UP

    def value(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return renyi_epsilon(xi + rho * order, order=order, delta=delta)

    best = scipy.optimize.minimize_scalar(
        value, bounds=(-30.0, 50.0), method="bounded", options={"xatol": 1e-10}
    )
    return float(best.fun)  # any order gives a valid bound


def zcdp_delta(epsilon: ArrayLike, *, rho: float, xi: float = 0.0) -> Floats:
    """The best delta that follows from (xi, rho)-zCDP at each epsilon (CKS, a grid of orders)."""
    eps = np.ravel(np.asarray(epsilon, dtype=np.float64))
    if rho == 0:
        pure: Floats = np.where(eps >= xi, 0.0, 1.0)
        return pure.reshape(np.shape(epsilon))
    # Around the optimum (eps - xi + rho)/(2 rho) of the exponent; every order is valid. With a
    # large delta the best is larger, because of the factor before the exponential.
    center = np.maximum((eps - xi + rho) / (2 * rho), 1.0)
    factors = np.exp(np.linspace(-1.5, 3.5, 501))
    order = 1 + np.maximum(center - 0.5, 1e-6)[:, None] * factors
    log = (order - 1) * (xi + rho * order - eps[:, None]) + _cks(order)
    result = np.minimum(np.exp(np.minimum(log.min(axis=1), 0.0)) * UP + UNDERFLOW, 1.0)
    shaped: Floats = result.reshape(np.shape(epsilon))
    return shaped


def renyi_epsilon(divergence: float, *, order: float, delta: float) -> float:
    """Epsilon at ``delta`` from one Rényi divergence."""
    # Theorem: `eps = D + (ln(1/(order delta)))/(order-1) + ln(1 - 1/order)`.
    # Proof: for every x, (1 - e^{eps-x})_+ <= c e^{(order-1)(x-eps)} with c the maximum of the
    #   quotient, attained at e^{x-eps} = order/(order-1); take the mean over the privacy loss.
    # Source: Canonne, Kamath, Steinke 2020 (arXiv:2004.00010v4), Proposition 12.
    # Needs: `order > 1`.
    if not divergence >= 0:  # negative or not a number: fail closed
        return math.inf
    excess = order - 1
    value = divergence - (math.log(order) + math.log(delta)) / excess + math.log1p(-1 / order)
    return max(0.0, value + abs(value) * 1e-12)


def renyi_delta(divergence: float, *, order: float, epsilon: float) -> float:
    """Delta at ``epsilon`` from one Rényi divergence (the same theorem, solved for delta)."""
    if divergence < 0 or not math.isfinite(divergence):
        return 1.0
    log = (order - 1) * (divergence - epsilon) + float(_cks(np.asarray(order)))
    return min(1.0, math.exp(min(log, 0.0)) * UP + UNDERFLOW)


def _cks(order: Floats) -> Floats:
    constant: Floats = (order - 1) * np.log1p(-1 / order) - np.log(order)
    return constant


# ── composition, groups, relations ───────────────────────────────────────────


def group(epsilon: float, *, delta: float, size: int) -> tuple[float, float]:
    """(epsilon, delta) for ``size`` steps of the relation."""
    # Theorem: `(k eps, delta expm1(k eps)/expm1(eps))`, and k delta at eps = 0.
    # Proof: chain k steps: delta (1 + e^eps + ... + e^{(k-1) eps}).
    # Source: B24; for k = 2 it is the step from add/remove to replace-one, B1.
    size = check.count("size", size)
    if epsilon == 0:
        return 0.0, min(1.0, size * delta)
    if size * epsilon > 700:
        return size * epsilon, 0.0 if delta == 0 else 1.0
    grown = delta * math.expm1(size * epsilon) / math.expm1(epsilon)
    return size * epsilon, min(1.0, grown if size == 1 else grown * UP)


def replace_one(epsilon: float, *, delta: float = 0.0) -> tuple[float, float]:
    """What an add/remove guarantee gives under replace-one; there is no way back (B1)."""
    return group(epsilon, delta=delta, size=2)


def advanced_composition(
    epsilon: float, *, delta: float, count: int, slack: float
) -> tuple[float, float]:
    """(epsilon, delta) of ``count`` runs by the advanced composition theorem."""
    # Theorem: `eps' = k eps tanh(eps/2) + eps sqrt(2 k ln(1/slack))`, `delta' = k delta + slack`.
    # Proof: the privacy loss is at most eps and has mean at most eps tanh(eps/2); Azuma.
    # Source: Dwork, Rothblum, Vadhan 2010; mean by Harrison, Manurangsi 2025.
    mean = count * epsilon * math.tanh(epsilon / 2)
    total = mean + epsilon * math.sqrt(2 * count * math.log(1 / slack))
    return min(total, count * epsilon) * UP, min(1.0, (count * delta + slack) * UP)


def optimal_composition(epsilon: float, *, delta: float, count: int, target: float) -> float:
    """The smallest epsilon at which ``count`` (epsilon, delta) runs have delta ``target``."""
    # Theorem: exact for the worst mechanism: delta of the product of randomized responses.
    # Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    if delta == target == 0:
        return count * epsilon

    def excess(e: float) -> float:
        return homogeneous_delta(e, epsilon=epsilon, delta=delta, count=count) - target

    return 0.0 if excess(0.0) <= 0 else round_root(excess, 0.0, count * epsilon)


def homogeneous_delta(at: float, *, epsilon: float, delta: float, count: int) -> float:
    """Delta at ``at`` of ``count`` independent (epsilon, delta) randomized responses (KOV15)."""
    ones = np.arange(count + 1)
    loss = (2 * ones - count) * epsilon
    # The binomial law of `ones` heads with probability 1 / (1 + e^-epsilon).
    ways = gammaln(count + 1) - gammaln(ones + 1) - gammaln(count - ones + 1)
    log_mass = ways - (count - ones) * epsilon - count * math.log1p(math.exp(-epsilon))
    gain = np.where(loss > at, -np.expm1(np.minimum(at - loss, 0.0)), 0.0)
    finite = float(np.sum(np.exp(log_mass) * gain))
    stay = math.exp(count * math.log1p(-delta))
    # Logarithms of factorials are good to some units in their last place.
    margin = 1 + 1e-10 + 4e-16 * count * math.log(count + 1)
    return min(1.0, (-math.expm1(count * math.log1p(-delta)) + stay * finite) * margin)


def round_root(excess: Callable[[float], float], low: float, high: float) -> float:
    """A point where the decreasing ``excess`` is not positive, at most 1e-13 beyond its root."""
    while excess(high) > 0:
        low, high = high, 2 * high + 1e-12
        if high > 1e12:
            return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= 1e-14 * high:
            break
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return high * UP
