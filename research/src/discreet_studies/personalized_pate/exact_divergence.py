"""The exact divergences of noisy votes: what the bounds are measured against (M42).

A diagnosis: the exact cost of a histogram is as private as the histogram, and unlike the bound of
`costs` it is no function of a single number that moves slowly, so `smooth` cannot publish it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument
from discreet.models.pate._data_dependent_cost import (
    ORDERS,
    DataDependentCost,
    check_answered,
    threshold_costs,
)
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.teacher_assignment import UNITS
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import DiscreteGaussian

_REACH = 11.0  # beyond it the normal density is below 1e-27 of its top
_NODES = 100
_PANEL = 12.0
_SMALL = 1e-2


def log_pmf(votes: ArrayLike, *, sigma: float) -> Floats:
    """Logarithms of the probabilities that each class wins, under continuous Gaussian noise.

    Each is the integral of phi(z) prod_i Phi(z + (n_j - n_i)/sigma), by Gauss and Legendre on
    panels short enough for twelve digits.
    """
    counts = np.asarray(votes, dtype=np.float64) / sigma
    behind = counts.max(axis=-1, keepdims=True) - counts
    panels = math.ceil((2 * _REACH + float(behind.max(initial=0))) / _PANEL)
    nodes, weights = _rule(panels)
    # The mass of a class that lies behind by b is where the noise is up to b.
    width = 2 * _REACH + behind[..., None]
    z = -_REACH + nodes * width
    logs = np.log(weights * width) - z * z / 2 - math.log(2 * math.pi) / 2
    for i in range(counts.shape[-1]):
        others = np.arange(counts.shape[-1]) != i
        gap = counts[..., others] - counts[..., i : i + 1]
        logs[..., others, :] += sp.log_ndtr(z[..., others, :] + gap[..., None])
    return np.asarray(sp.logsumexp(logs, axis=-1))


def discrete_pmf(counts: ArrayLike, *, sigma: Fraction) -> Floats:
    """Probabilities that each class wins under discrete noise, ties to the first; small sigma.

    ``counts``: one histogram of whole numbers, in the units of ``sigma``.
    """
    law = DiscreteGaussian(square=sigma**2)
    found = np.asarray(counts, dtype=np.int64)
    reach = math.ceil(13 * law.sigma) + int(found.max() - found.min())
    if reach > 1 << 20:
        raise InvalidArgument("sigma must be small here; use log_law for large noise.")
    z = np.arange(-reach, reach + 1)
    mass = np.exp(law.log_pmf(z))
    chances = []
    for j, own in enumerate(found):
        below = np.ones(len(z))
        for i, other in enumerate(found):
            if i != j:
                # An earlier class keeps a tie, so a later one must be above it.
                below = below * law.cdf(z + own - other - (i < j))
        chances.append(float((mass * below).sum()))
    return np.array(chances)


def divergence(log_p: ArrayLike, log_q: ArrayLike, *, orders: ArrayLike) -> Floats:
    """Rényi divergences of two laws on the last axis, without loss of digits when they are near.

    The sum of q (r^a - 1 - a (r - 1)), whose terms are not negative, with r = p / q.
    """
    p, q = np.asarray(log_p, dtype=np.float64)[..., None], np.asarray(log_q)[..., None]
    a = np.asarray(orders, dtype=np.float64)
    r = p - q
    with np.errstate(over="ignore", invalid="ignore"):
        series = sum(
            (a**k - a) * r**k / math.factorial(k) for k in range(2, 9)
        )  # the next term is below 1e-19 of the first
        plain = np.expm1(a * r) - a * np.expm1(r)
        terms = np.exp(q) * np.where(np.abs(a * r) < _SMALL, series, plain)
        near = np.log1p(terms.sum(axis=-2)) / (a - 1)
        far = sp.logsumexp(a * p + (1 - a) * q, axis=-2) / (a - 1)
    found = np.where((a * r).max(axis=-2) < 30, near, far)
    return np.asarray(np.maximum(found, 0.0))


def exact_cost(
    votes: ArrayLike,
    *,
    sigma: float,
    share: float,
    orders: ArrayLike,
    threshold: tuple[float, float] | None = None,
) -> tuple[Floats, Floats]:
    """The largest divergences from and to the neighbors of one histogram, at each order.

    Neighbors: ``share`` votes move together from a class that has them to another. ``threshold``
    (its value and its noise) includes the test of a Confident rule.
    """
    # Needs: the owner's votes move together, as weighting does; copies in several teachers move
    #   apart, and there only the bounds of `costs` hold.
    here = np.asarray(votes, dtype=np.float64)
    if here.ndim != 1 or len(here) < 2:
        raise InvalidArgument("votes must be one histogram of at least two classes.")
    moved: dict[tuple[float, float], Floats] = {}
    for i in np.flatnonzero(here >= share):
        for j in range(len(here)):
            if i != j:
                there = here.copy()
                there[i] -= share
                there[j] += share
                # The cost sees the pairs of counts only, not which classes they belong to.
                moved.setdefault((float(here[i]), float(here[j])), there)
    if not moved:
        return np.zeros(np.size(orders)), np.zeros(np.size(orders))
    near = np.array(list(moved.values()))
    p, q = (_outputs(x, sigma, threshold) for x in (here[None, :], near))
    p = np.broadcast_to(p, q.shape)
    forward = divergence(p, q, orders=orders).max(axis=0)
    return forward, divergence(q, p, orders=orders).max(axis=0)


def diagnose_exactly(
    counts: ArrayLike,
    answered: ArrayLike,
    *,
    aggregator: ConfidentGNMax,
    shares: Mapping[str, int],
    orders: ArrayLike = ORDERS,
) -> DataDependentCost:
    """As `data_dependent_cost`, with the exact cost of each answer, the worse of both directions.

    Tens of milliseconds for a histogram of ten classes; equal ones are computed once. The noise is
    taken as continuous: on a grid of 1/1000 vote the difference is below a thousandth.
    """
    # Needs: weighting; copies of a record in several teachers move apart (`exact_cost`).
    found, told = check_answered(counts, answered)
    a = np.asarray(orders, dtype=np.float64)
    # Which class has which count does not matter.
    kinds, times = np.unique(np.sort(found[told], axis=1), axis=0, return_counts=True)
    curves = {}
    for name, units in shares.items():
        share = units / UNITS
        total = threshold_costs(len(found), share, aggregator=aggregator, orders=a)
        for kind, often in zip(kinds if share else [], times, strict=False):
            both = exact_cost(
                kind / UNITS, sigma=float(aggregator.sigma_votes), share=share, orders=a
            )
            total = total + often * np.maximum(*both)
        curves[name] = total
    return DataDependentCost(orders=a, curves=curves)


def _outputs(votes: Floats, sigma: float, threshold: tuple[float, float] | None) -> Floats:
    law = log_pmf(votes, sigma=sigma)
    if threshold is None:
        return law
    limit, noise = threshold
    over = (votes.max(axis=-1, keepdims=True) - limit) / noise
    return np.concatenate([sp.log_ndtr(-over), sp.log_ndtr(over) + law], axis=-1)


@lru_cache(maxsize=16)
def _rule(panels: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    starts = np.arange(panels)[:, None]
    return (
        np.asarray(((nodes + 1) / 2 + starts).ravel() / panels),
        np.asarray(np.tile(weights / 2, panels) / panels),
    )
