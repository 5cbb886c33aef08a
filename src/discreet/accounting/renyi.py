"""Rényi divergences of events: they add under composition and need no grid of losses.

The answer is the worse of both directions, always an upper bound, infinite where nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy
from scipy.special import log_ndtr

from discreet.accounting import conversion
from discreet.accounting import pld as cells
from discreet.accounting._event_tree import leaves
from discreet.accounting._numeric_composition import LARGEST_LOSS, leaf_pairs
from discreet.accounting.dominating_pairs import AddPair, DominatingPair, GaussianPair, RemovePair
from discreet.core.errors import Unsupported
from discreet.core.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    EitherEvent,
    Event,
    GdpEvent,
    GroupEvent,
    LaplaceEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ZcdpEvent,
)

ORDERS = tuple(1 + x for x in np.exp(np.linspace(math.log(0.01), math.log(2000.0), 120)).tolist())
"""Orders that a conversion to (epsilon, delta) tries first."""
# What a difference of two logarithms of the size of one loses: all of it for tiny losses, which
# zCDP bounds then (C16).
_CANCELED = 1e-15


def divergence(event: Event, *, order: float) -> float:
    """The Rényi divergence of an event, an upper bound."""
    # Theorem: divergences add under adaptive composition.
    # Source: Mironov 2017, Proposition 1 (C15).
    # Needs: `order > 1`.
    total = 0.0
    for leaf, count in leaves(event):
        total += count * leaf_divergence(leaf, order)
    if not total >= 0:  # negative or not a number: fail closed
        return math.inf
    return total * conversion.UP


@lru_cache(maxsize=65536)
def leaf_divergence(leaf: Event, order: float) -> float:
    """The divergence of one leaf: closed forms, else from the cells of its pairs."""
    match leaf:
        case GdpEvent(mu):
            return order * float(mu) ** 2 / 2
        case ZcdpEvent(rho, xi):
            return float(xi) + order * float(rho)
        case DiscreteGaussianEvent(variance, shift_squared, _):
            # CKS20, Theorem 14 and Proposition 5: no worse than the continuous Gaussian.
            return order * float(shift_squared / variance) / 2
        case PureEvent(epsilon):
            return _response(float(epsilon), order)
        case LaplaceEvent(scale):
            return _laplace(float(1 / scale), order)
        case BoundedRangeEvent(epsilon):
            # Cesar, Rogers 2021, Lemma 4: eps^2/8-zCDP.
            return min(order * float(epsilon) ** 2 / 8, float(epsilon))
        case EitherEvent(branches):
            return max(divergence(branch, order=order) for branch in branches)
        case GroupEvent(_, SampledEvent() | SampledWithoutReplacementEvent()):
            return math.inf
        case _:
            return _numerical(leaf, order)


def _response(epsilon: float, order: float) -> float:
    """Randomized response: log((e^{a eps} + e^{(1-a) eps})/(1 + e^eps))/(a - 1)."""
    top = np.logaddexp(order * epsilon, (1 - order) * epsilon)
    exact = max(0.0, float(top - np.logaddexp(0.0, epsilon)) / (order - 1))
    return min(exact + _CANCELED / (order - 1), order * conversion.pure_to_rho(epsilon), epsilon)


def _laplace(epsilon: float, order: float) -> float:
    """Mironov 2017, Proposition 6, for L1 vectors by T1."""
    excess = order - 1
    whole = np.logaddexp(
        math.log(order) + excess * epsilon, math.log(excess) - order * epsilon
    ) - math.log(2 * order - 1)
    exact = max(0.0, float(whole) / excess)
    return min(exact + _CANCELED / excess, order * conversion.laplace_to_rho(epsilon), epsilon)


def _numerical(leaf: Event, order: float) -> float:
    """The larger divergence of both directions, from their upper cells."""
    # Theorem: `E_P[e^{(order-1) L}]` is convex in `dP/dQ`, so connecting the dots raises it (T4).
    try:
        remove, add, slack = leaf_pairs(leaf, "upper")
    except Unsupported:
        return math.inf
    worst = max(_of_pair(remove, order), _of_pair(add, order))
    return worst + slack * (2 * order / (order - 1) + 1)


@lru_cache(maxsize=2048)
def _upper_masses(pair: DominatingPair) -> tuple[cells.LossMasses, float] | None:
    spread = pair.spread(1e-200, count=50)
    width = float(spread[-1] - spread[0])
    if not width > 0 or max(abs(spread[0]), abs(spread[-1])) > LARGEST_LOSS:
        return None
    step = width / 20_000
    return cells.upper_masses(pair, step=step, tail=1e-200), step


def _of_pair(pair: DominatingPair, order: float) -> float:
    if pair.infinity > 1e-250:
        return math.inf
    found = _upper_masses(pair)  # type: ignore[arg-type]
    if found is None:
        return math.inf
    masses, step = found
    losses = masses.offset + step * masses.index
    raw = np.log(np.maximum(masses.mass, 1e-320)) + (order - 1) * losses
    top = float(raw.max())
    log_moment = top + math.log(float(np.exp(raw - top).sum()))
    if masses.infinity > 0:
        log_moment = float(np.logaddexp(log_moment, _tail(pair, order, float(losses[-1]))))
    return max(0.0, log_moment) / (order - 1)


def _tail(pair: DominatingPair, order: float, beyond: float) -> float:
    """The log of E_Q[(dP/dQ)^order] beyond the last cell, for Gaussians and their samples.

    A sample's ratio 1 - q + q r is at most r (q + (1 - q)/r0) where r >= r0.
    """
    inner, start, factor = pair, beyond, 0.0
    while isinstance(inner, RemovePair):
        start = float(np.log1p(np.expm1(start) / inner.rate))
        factor += math.log(inner.rate + (1 - inner.rate) * math.exp(-start))
        inner = inner.inner
    if isinstance(inner, AddPair):
        return -math.inf  # the loss is bounded
    if not isinstance(inner, GaussianPair) or start <= 0:
        return math.inf
    mu = inner.mu
    return order * (factor + (order - 1) * mu**2 / 2) + float(
        log_ndtr(-(start - (order - 0.5) * mu**2) / mu)
    )


def epsilon(event: Event, *, delta: float) -> float:
    """Epsilon at ``delta``: the best conversion over a grid of orders and its refinement."""
    if delta <= 0:
        return math.inf
    return _best_order(
        lambda order: conversion.renyi_epsilon(
            divergence(event, order=order), order=order, delta=delta
        )
    )


def delta(event: Event, *, epsilon: float) -> float:
    """Delta at ``epsilon``: the best conversion over the same orders."""
    return min(
        1.0,
        _best_order(
            lambda order: conversion.renyi_delta(
                divergence(event, order=order), order=order, epsilon=epsilon
            )
        ),
    )


def _best_order(value: Callable[[float], float]) -> float:
    """Scan the orders, then look between the neighbors of the best one; every order is valid."""
    coarse = ORDERS[::6]
    values = [value(order) for order in coarse]
    best = int(np.argmin(values))
    if not math.isfinite(values[best]):
        return math.inf
    near = coarse[max(best - 1, 0) : best + 2]
    with np.errstate(invalid="ignore"):  # infinite at some orders
        found = scipy.optimize.minimize_scalar(
            lambda log_excess: value(1 + math.exp(log_excess)),
            bounds=(math.log(near[0] - 1), math.log(near[-1] - 1)),
            method="bounded",
        )
    return float(min(values[best], found.fun))
