"""Distances between two output laws: what a definition of privacy bounds (B7).

All are one-way, left from right, by exact sums over listed outcomes; take the larger of both
directions for a symmetric relation. Unlisted mass is left out: every value is the value itself, up
to rounding, when nothing is missing. Else it is a lower bound, but for Rényi of order 1 and less.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.audit.exact import OutputPair, epsilon_one_way
from discreet.audit.lattice_distribution import Floats
from discreet.core.errors import InvalidArgument


def total_variation(laws: OutputPair) -> float:
    """The largest difference of the two probabilities of any event."""
    return 0.5 * math.fsum(np.abs(laws.left - laws.right))


def kullback_leibler(laws: OutputPair) -> float:
    """The expected privacy loss (infinite if left reaches where right does not)."""
    return renyi(laws, 1.0)


def max_divergence(laws: OutputPair) -> float:
    """The largest privacy loss: pure epsilon, one way."""
    return epsilon_one_way(laws).lower


def renyi(laws: OutputPair, order: float) -> float:
    """Rényi: log E_left[(p/q)^(order - 1)] / (order - 1); at order 1 the limit, E_left[log p/q]."""
    # Source: Mironov 2017 (arXiv:1702.07476v3), definition 3. zCDP of rho is renyi <= rho * order
    #   at every order above 1 (Bun and Steinke 2016).
    if not order > 0:
        raise InvalidArgument(f"order must be positive, got {order}.")
    if math.isinf(order):
        return max_divergence(laws)
    used = laws.left > 0
    p, q = laws.left[used], laws.right[used]
    if order >= 1 and np.any(q == 0):
        return math.inf
    p, q = p[q > 0], q[q > 0]
    if p.size == 0:
        return math.inf
    loss: Floats = np.log(p) - np.log(q)
    if order == 1:
        return max(0.0, math.fsum(p * loss))
    exponents = np.log(p) + (order - 1) * loss
    top = float(exponents.max())
    return max(0.0, (top + math.log(math.fsum(np.exp(exponents - top)))) / (order - 1))


def normal_total_variation(shift: float, sigma: float) -> float:
    """Between two normals of equal sigma: 2 Phi(|shift| / (2 sigma)) - 1 (M5)."""
    return math.erf(abs(shift) / (2 * math.sqrt(2) * sigma))


def normal_renyi(shift: float, sigma: float, order: float) -> float:
    """Between two normals of equal sigma: order shift^2 / (2 sigma^2)."""
    return order * shift**2 / (2 * sigma**2)
