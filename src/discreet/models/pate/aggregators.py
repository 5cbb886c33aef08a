"""The cost of noisy votes as Papernot et al. (2017, 2018) and Muehl (2021) account for it.

Functions of the votes themselves, so their values are as private as the votes: a diagnosis, never a
guarantee. The published bounds are one-sided, and hold for continuous noise; `costs` has the
two-sided ones for the noise that is really drawn.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument
from discreet.noise.law import Floats


def gaussian_log_error(votes: ArrayLike, *, sigma: float) -> Floats:
    """The logarithm of a bound on the chance that GNMax does not name the plurality (M11).

    ``votes``: one histogram, or one in each row.
    """
    gaps = _gaps(votes) / (math.sqrt(2) * sigma)
    return _capped(sp.logsumexp(sp.log_ndtr(-gaps), axis=-1), gaps.shape[-1] + 1)


def laplace_log_error(votes: ArrayLike, *, gamma: float) -> Floats:
    """The logarithm of a bound on the chance that LNMax does not name the plurality (M9)."""
    gaps = _gaps(votes) * gamma
    return _capped(sp.logsumexp(np.log((2 + gaps) / 4) - gaps, axis=-1), gaps.shape[-1] + 1)


def gaussian_cost(log_error: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of GNMax at each order, one row for each query (M12).

    Theorem: for the actual data D and any neighbour D', D_a(M(D) || M(D')) is at most this. Not so
        in the other direction: that one is governed by the errors on D' (trap T3).
    Source: Papernot et al. 2018, Theorem 6 with the orders of Proposition 10.
    """
    lnq, a = np.asarray(log_error, dtype=np.float64)[..., None], np.asarray(orders, dtype=float)
    loose = a / sigma**2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        second = sigma * np.sqrt(-lnq)
        tight = _theorem_six(lnq, a, first=second + 1, second=second, per_order=1 / sigma**2)
    tight = np.where(lnq == -np.inf, 0.0, tight)
    return np.asarray(np.fmin(tight, loose))  # fmin: where a condition fails, the loose bound


def laplace_cost(log_error: ArrayLike, *, gamma: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of LNMax at each order, one row for each query (M9)."""
    lnq, a = np.asarray(log_error, dtype=np.float64)[..., None], np.asarray(orders, dtype=float)
    step = 2 * gamma
    loose = np.minimum(step, 2 * gamma**2 * a)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stay = np.log1p(-np.exp(lnq))
        inside = a * stay - (a - 1) * np.log1p(-np.exp(step + lnq))
        tight = np.logaddexp(inside, lnq + step * (a - 1)) / (a - 1)
        tight = np.where(lnq < -np.log1p(np.exp(step)), tight, np.nan)
    tight = np.where(lnq == -np.inf, 0.0, tight)
    return np.asarray(np.fmin(tight, loose))


def threshold_cost(
    largest: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """The data-dependent cost of asking whether the largest count passes a threshold (M13)."""
    reach = (np.asarray(largest, dtype=np.float64) - threshold) / sigma
    lnq = np.minimum(sp.log_ndtr(reach), sp.log_ndtr(-reach))
    return gaussian_cost(lnq, sigma=math.sqrt(2) * sigma, orders=orders)


def with_share(sigma: float, share: float) -> float:
    """The noise as owners see it whose data move ``share`` votes: costs depend on the ratio (M19).

    The error probability stays that of the votes and the noise as they are.
    """
    if not share > 0:
        raise InvalidArgument(f"share must be positive, got {share}; owners without votes pay 0.")
    return sigma / share


def classic_epsilon(costs: ArrayLike, *, orders: ArrayLike, delta: float) -> tuple[float, float]:
    """Epsilon by the conversion of Mironov 2017 that the thesis uses, and its order (M4 a)."""
    a = np.asarray(orders, dtype=np.float64)
    found = np.asarray(costs, dtype=np.float64) + math.log(1 / delta) / (a - 1)
    best = int(np.argmin(found))
    return float(found[best]), float(a[best])


def _theorem_six(
    lnq: Floats, a: Floats, *, first: Floats, second: Floats, per_order: float
) -> Floats:
    """The bound of Theorem 6 in logarithms; not a number where a condition fails."""
    eps1, eps2 = first * per_order, second * per_order
    limit = (second - 1) * eps2 - second * (
        np.log(first / (first - 1)) + np.log(second / (second - 1))
    )
    stay = _log1mexp(lnq)
    la = (a - 1) * (stay - _log1mexp((lnq + eps2) * (1 - 1 / second)))
    lb = (a - 1) * (eps1 - lnq / (first - 1))
    bound = np.logaddexp(stay + la, lnq + lb) / (a - 1)
    valid = (second > 1) & (lnq + eps2 < 0) & (lnq <= limit) & (a <= first)
    return np.where(valid, bound, np.nan)


def _log1mexp(x: Floats) -> Floats:
    """ln(1 - e^x) for x < 0."""
    return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _gaps(votes: ArrayLike) -> Floats:
    """How far each class but the plurality lies below it."""
    counts = np.asarray(votes, dtype=np.float64)
    if counts.ndim < 1 or counts.shape[-1] < 2:
        raise InvalidArgument("votes must have a count for each of at least two classes.")
    ordered = np.sort(counts, axis=-1)
    return np.asarray(ordered[..., -1:] - ordered[..., :-1])


def _capped(log_error: Floats, classes: int) -> Floats:
    return np.minimum(log_error, math.log1p(-1 / classes))
