"""LNMax: the winner of votes with discrete Laplace noise, the first rule of this kind (M9).

With composition in view Gaussian noise is cheaper; this one has pure differential privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core import events
from discreet.core.check import positive
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.models.pate.aggregate import as_counts
from discreet.models.pate.assignment import UNITS, Assignment
from discreet.models.pate.published import laplace_cost
from discreet.noise.bits import Bits, source_of
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.law import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMax:
    """The plurality after Laplace noise of ``scale`` votes on every count.

    Theorem: an answer is ``2 share / scale``-DP for an owner whose data move ``share``.
    Proof: the counts move by at most ``2 share`` in L1; the winner is a post-processing.
    Source: Papernot et al. 2017; Muehl 2021 (M9), with discrete noise (M44).
    """

    scale: Number

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    def answer(self, assignment: Assignment) -> PersonalGuarantee:
        """What every owner pays for an answer."""
        scale = positive("scale", self.scale) * UNITS
        return personal(
            {
                name: Guarantee(events.DiscreteLaplace(scale, 2 * share), Relation.ADD_REMOVE)
                for name, share in assignment.shares.items()
            }
        )

    def answers(self, counts: ArrayLike, *, bits: Bits | None = None) -> NDArray[np.int64]:
        """The winner of each row; of equal noisy counts the first."""
        found = as_counts(counts)
        law = DiscreteLaplace(positive("scale", self.scale) * UNITS)
        noise = law.sample(found.size, source_of(bits)).reshape(found.shape)
        return np.asarray((found + noise).argmax(axis=1), dtype=np.int64)


def log_error(counts: ArrayLike, *, scale: Number) -> Floats:
    """The logarithm of a bound on the chance that the plurality does not win.

    Theorem: at most the sum over the other classes of P(X - Y >= gap) = r^g (g (1 - r) +
        (1 + r^2) / (1 + r) + r) / (1 + r)^2, with r = e^(-1/scale) in units. Ties count as lost.
    Proof: P(X - Y = d) = ((1 - r) / (1 + r))^2 r^d (d + 1 + 2 r^2 / (1 - r^2)); sum over d >= g.
    """
    rate = 1 / (float(positive("scale", scale)) * UNITS)
    r = math.exp(-rate)
    ordered = np.sort(as_counts(counts), axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    inside = gaps * -math.expm1(-rate) + (1 + r * r) / (1 + r) + r
    found = sp.logsumexp(np.log(inside) - gaps * rate - 2 * math.log1p(r), axis=1)
    return np.asarray(found + 1e-12)


def answer_cost(log_error: ArrayLike, *, scale: float, share: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of an answer, in both directions: a diagnosis (M9).

    Theorem and proof: the published bound at the votes, and at a neighbour with the same class,
    whose errors there are at most ``e^(2 share / scale)`` times as likely (pure privacy).
    """
    if share == 0:
        return np.zeros((*np.shape(log_error), np.size(orders)))
    gamma = share / scale
    here = np.minimum(np.asarray(log_error, dtype=np.float64), 0.0)
    there = np.minimum(here + 2 * gamma, 0.0)
    found = [laplace_cost(each, gamma=gamma, orders=orders) for each in (here, there)]
    return np.asarray(np.maximum(*found))
