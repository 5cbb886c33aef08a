"""How far one record moves a model that was trained without noise (C42).

Noise is then added to the finished model alone ("bolt-on" or output perturbation). The sensitivity
is in L2: it takes Gaussian noise, or Laplace noise of sqrt(p) times the scale.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, non_negative, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import Relation
from discreet.models.sgd.schedule import Floats, positives

Order: TypeAlias = Literal["permutation", "with replacement"]


def contraction(rate: ArrayLike, *, smoothness: float, strong_convexity: float = 0.0) -> Floats:
    """By how much a gradient step shrinks distances: ``max(|1 - eta m|, |1 - eta L|)``.

    Theorem: for an m-strongly convex, L-smooth loss the step is Lipschitz with this constant; up to
        ``eta = 2/L`` it is at most 1.
    Proof: the mean of the Hessian between two points has its eigenvalues in [m, L].
    """
    eta = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    top, low = float(positive("smoothness", smoothness)), float(strong_convexity)
    if not 0 <= low <= top:
        raise InvalidArgument("strong_convexity must lie between 0 and smoothness.")
    if float(eta.max()) * top > 2:
        raise Unsupported(f"Rates above 2/L = {2 / top:g} can drive two runs apart.")
    return np.maximum(np.abs(1 - eta * low), np.abs(1 - eta * top))


def pass_sensitivity(
    rates: ArrayLike,
    *,
    rows: int,
    passes: int,
    lipschitz: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    order: Order = "permutation",
) -> float:
    """How far one replaced record moves the last iterate of noiseless passes, in L2.

    ``rates`` holds one rate for each update, ``passes * rows`` of them, one record at a time in an
    order that does not depend on the data and is the same in every pass. ``lipschitz`` bounds a
    record's gradient without the penalty.

    Theorem: a record at place i of the order moves the iterate by at most
        ``2 G sum_t eta_t prod_{s > t} c_s`` over its own updates t; this is the largest over i.
    Proof: an update with the same record is c-Lipschitz; with the replaced one it adds the
        distance of two gradients at one theta, ``2 eta G``, once more.
    Source: Wu et al. 2017, for their rates: ``2 k eta G`` (convex),
        ``2 eta G / (1 - (1 - eta m)^n)`` (strongly convex, constant rate), ``2 G / (m n)``
        (strongly convex, ``min(1/L, 1/(m t))``).
    Needs: no clipping that is ever active, no draws with replacement.
    """
    if order != "permutation":
        raise Unsupported(
            "Drawn with replacement, a record may be met in every step: take "
            "with_replacement_sensitivity, or noise in every step (trajectory)."
        )
    eta = positives("rates", rates)
    n, k = count("rows", rows), count("passes", passes)
    if eta.size != n * k:
        raise InvalidArgument(f"rates must have {n * k} numbers, one for each update.")
    shrink = contraction(eta, smoothness=smoothness, strong_convexity=strong_convexity)
    later = np.append(np.cumprod(shrink[:0:-1])[::-1], 1.0)
    moved = (2 * float(positive("lipschitz", lipschitz)) * eta * later).reshape(k, n).sum(axis=0)
    return float(moved.max()) * (1 + 4 * eta.size * 2.0**-52)


def constant_rate_limit(
    *, rate: float, rows: int, lipschitz: float, strong_convexity: float
) -> float:
    """The limit of `pass_sensitivity` for many passes: ``2 eta G / (1 - (1 - eta m)^n)``.

    For ``eta <= 1/L``. The printed ``2 G / (m n)`` is smaller, and false for a constant rate: the
    last record alone moves the model by ``2 eta G``.
    """
    eta, m = float(positive("rate", rate)), float(positive("strong_convexity", strong_convexity))
    if eta * m >= 1:
        raise InvalidArgument("rate must be below 1/m.")
    kept = -math.expm1(count("rows", rows) * math.log1p(-eta * m))
    return 2 * eta * float(positive("lipschitz", lipschitz)) / kept


def falling_rates(*, rows: int, passes: int, smoothness: float, strong_convexity: float) -> Floats:
    """``min(1/L, 1/(m t))`` for t = 1, 2, ...: the sensitivity is then at most 2 G / (m n)."""
    top = float(positive("smoothness", smoothness))
    low = float(positive("strong_convexity", strong_convexity))
    t = np.arange(1, count("rows", rows) * count("passes", passes) + 1, dtype=np.float64)
    rates: Floats = np.minimum(1 / top, 1 / (low * t))
    return rates


def with_replacement_sensitivity(rates: ArrayLike, *, lipschitz: float) -> float:
    """``2 G sum eta``: all that holds if records are drawn with replacement (convex, smooth)."""
    return 2 * float(positive("lipschitz", lipschitz)) * float(positives("rates", rates).sum())


def minimiser_sensitivity(
    *,
    lipschitz: float,
    strong_convexity: float,
    rows: int,
    relation: Relation = Relation.REPLACE_ONE,
    tolerance: float = 0.0,
) -> float:
    """How far one record moves the minimiser of ``sum of losses / rows + l2/2 ||theta||^2``, in L2.

    Theorem: ``2 G / (m n)`` for a replaced record, ``G / (m n)`` for one added or removed, if the
        sum is divided by a public constant n; a gradient of length ``tolerance`` in the place of
        zero adds ``2 tolerance / m``.
    Proof: with F m-strongly convex, ``m ||a - b|| <= ||F'(a) - F'(b)||``. At the two minimisers
        the gradients of one objective differ by that of the records that are not shared.
    Source: Chaudhuri, Monteleoni, Sarwate 2011; Wu et al. 2017. C42.
    """
    g, m = positive("lipschitz", lipschitz), positive("strong_convexity", strong_convexity)
    match relation:
        case Relation.REPLACE_ONE:
            records = 2
        case Relation.ADD_REMOVE:
            records = 1
        case _:
            raise InvalidArgument(f"relation must be replace-one or add/remove, got {relation!r}.")
    moved = records * float(g) / count("rows", rows) + 2 * float(
        non_negative("tolerance", tolerance)
    )
    return moved / float(m)
