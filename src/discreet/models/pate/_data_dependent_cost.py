"""What noisy votes cost, as a function of the votes: two-sided, and for the noise that is drawn.

Smaller than what the aggregators charge, and as private as the votes: a `DataDependentCost`, which
no ledger takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.optimize
import scipy.special as sp
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.conversion import renyi_epsilon
from discreet.core._rational import Number
from discreet.core._validate import finite, positive
from discreet.core.errors import InvalidArgument
from discreet.models.pate.aggregators import ConfidentGNMax, as_counts, gaussian_cost
from discreet.models.pate.teacher_assignment import UNITS
from discreet.noise.distribution import Floats

ORDERS: Floats = np.concatenate(
    [
        np.arange(11, 20) / 10,
        np.arange(4, 21) / 2,
        np.arange(11, 65),
        np.arange(72, 257, 8),
        np.arange(320, 1025, 64),
    ]
)
"""Orders by default."""
_MANY = 1 << 14
_UP = 1 + 1e-9


def log_error(counts: ArrayLike, *, sigma: Number) -> Floats:
    """The logarithm of a bound on the chance that another class than the plurality is named.

    ``counts``: whole units of votes, a row for each item; ``sigma``: votes. Not capped.
    """
    # Theorem: at most the sum over the other classes of Phi(-(gap - 1 unit) / (sqrt(2) sigma)).
    # Proof: the difference of two discrete Gaussians has P(d) = e^(-d^2/4s^2) * sum_k
    #   e^(-(k+d/2)^2/s^2) / (sum_k e^(-k^2/2s^2))^2, in units, and by Poisson summation that is at
    #   most (1 + 1e-15) times the normal density of variance 2 s^2 (Needs: s >= 2). The density
    #   falls, so its sum from the gap on is at most its integral from one unit before. Ties count
    #   as lost. (The formula for continuous noise, without the unit, is too small, M44.)
    s = float(positive("sigma", sigma)) * UNITS
    if s < 2:
        raise InvalidArgument(f"sigma must be at least {2 / UNITS} votes, got {sigma}.")
    ordered = np.sort(as_counts(counts), axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    logs = sp.log_ndtr((1 - gaps) / (math.sqrt(2) * s))
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)) + 1e-12)


def error_after(log_error: ArrayLike, *, classes: int, step: float) -> Floats:
    """The largest `log_error` after ``step * sigma`` votes were moved."""
    # Theorem: with z = Phi^-1(q/(m-1)) it is ln (m-1) Phi(z + sqrt(2) step).
    # Proof: every gap shrinks by at most twice what is moved, `sqrt(2) step` in units of the
    #   deviation of a difference; Phi(Phi^-1(u) + c) is concave in u, so equal terms are the
    #   worst (Jensen). The plurality has the smallest sum of all classes, so if it changes the sum
    #   only gets smaller.
    # Source: Papernot et al. 2018, Proposition 11 (M16).
    share = math.log(classes - 1)
    place = sp.ndtri_exp(np.minimum(np.asarray(log_error, dtype=np.float64) - share, 0.0))
    return np.asarray(share + sp.log_ndtr(place + math.sqrt(2) * step))


def answer_cost(
    log_error: ArrayLike, *, classes: int, sigma: float, share: float, orders: ArrayLike
) -> Floats:
    """The Rényi cost of an answer, in both directions, to owners who move ``share`` votes."""
    # Theorem: D_a(M(D) || M(D')) and D_a(M(D') || M(D)) are at most this for all neighbors D'.
    # Proof: Theorem 6 of Papernot et al. 2018 at D with the plurality of D and its errors; and at
    #   D' with the same class, whose errors there are at most `error_after`. Its two Rényi costs
    #   are those of discrete Gaussian noise, equal to the continuous ones.
    if share == 0:
        return np.zeros((*np.shape(log_error), np.size(orders)))
    seen = sigma / share
    found = np.minimum(np.asarray(log_error, dtype=np.float64), 0.0)
    moved = np.minimum(error_after(found, classes=classes, step=1 / seen), 0.0)
    here = gaussian_cost(found, sigma=seen, orders=orders)
    there = gaussian_cost(moved, sigma=seen, orders=orders)
    loose = np.asarray(orders, dtype=np.float64) / seen**2
    return np.asarray(np.minimum(np.maximum(here, there) * _UP, loose))


def query_cost(
    largest: ArrayLike, *, threshold: Number, sigma: float, share: float, orders: ArrayLike
) -> Floats:
    """The Rényi cost of the test whether the largest count passes, in both directions.

    ``largest``: units of votes. Theorem and proof as in `answer_cost`: of two outcomes the less
    likely has probability at most Phi(-(distance - 1 unit)/sigma), after a move Phi(... + share).
    """
    if share == 0:
        return np.zeros((*np.shape(largest), np.size(orders)))
    limit = math.ceil(finite("threshold", threshold) * UNITS)
    away = np.asarray(largest, dtype=np.float64) - limit
    # Fails below the limit: by at least one unit where it should pass.
    away = np.maximum(np.where(away >= 0, away, -away - 1), 0.0) / (sigma * UNITS)
    seen = math.sqrt(2) * sigma / share
    here = gaussian_cost(sp.log_ndtr(-away), sigma=seen, orders=orders)
    moved = np.minimum(sp.log_ndtr(share / sigma - away), 0.0)
    there = gaussian_cost(moved, sigma=seen, orders=orders)
    loose = np.asarray(orders, dtype=np.float64) / seen**2
    return np.asarray(np.minimum(np.maximum(here, there) * _UP, loose))


def bit_cost(step: float, *, orders: ArrayLike) -> Floats:
    """The exact Rényi cost of a threshold test, whatever the value: `step` = share / sigma."""
    # Theorem: sup over x of D_a(Ber(Phi(x)) || Ber(Phi(x +- step))), below `a step^2 / 2`.
    # Needs: continuous noise. A window that does not grow with the order misses the maximum.

    def value(x: ArrayLike, order: float) -> Floats:
        """Both directions are one by the symmetry x -> -x."""
        at = np.asarray(x, dtype=np.float64)
        terms = [
            order * sp.log_ndtr(side * at) + (1 - order) * sp.log_ndtr(side * (at + step))
            for side in (1, -1)
        ]
        return np.asarray(np.logaddexp(*terms) / (order - 1))

    found = []
    for order in np.atleast_1d(np.asarray(orders, dtype=np.float64)).tolist():
        loose = order * step**2 / 2
        reach = order * step + 10
        grid = np.linspace(-reach, reach, max(2001, math.ceil(200 * reach)))
        best = float(grid[int(np.argmax(value(grid, order)))])
        near = scipy.optimize.minimize_scalar(
            lambda x, order=order: -float(value(x, order)),
            bounds=(best - 0.02, best + 0.02),
            method="bounded",
            options={"xatol": 1e-10},
        )
        # What rounding may have taken from terms of this size.
        size = 1 + order * abs(float(sp.log_ndtr(-abs(best) - step)))
        most = max(-float(near.fun), float(value(best, order))) + 4e-15 * size / (order - 1)
        ratio = min(most / loose * (1 + 1e-6), 1.0)
        # Below 2/pi the search, or the arithmetic of a tiny cost, has failed.
        found.append(loose * (ratio if 2 / math.pi - 1e-6 <= ratio <= 1 else 1.0))
    return np.array(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDependentCost:
    """Costs that depend on the votes: for the curator's eyes, not a guarantee.

    No ledger takes it, and its numbers are not in its text. They are as private as the votes.
    """

    orders: Floats = field(repr=False)
    curves: Mapping[str, Floats] = field(repr=False)
    """For each level the Rényi costs added up, at each order."""

    def epsilons(self, delta: float) -> dict[str, float]:
        """Epsilon of each level after the fact, at the best order (Canonne, Kamath, Steinke)."""
        return {
            name: min(
                renyi_epsilon(float(cost), order=float(order), delta=delta)
                for cost, order in zip(curve, self.orders, strict=True)
            )
            for name, curve in self.curves.items()
        }


def data_dependent_cost(
    counts: ArrayLike,
    answered: ArrayLike,
    *,
    aggregator: ConfidentGNMax,
    shares: Mapping[str, int],
    orders: ArrayLike = ORDERS,
) -> DataDependentCost:
    """Compute what a run cost each level, as a function of the votes.

    It is smaller than the guarantee of the plan if the votes agree. Queries are counted at their
    fixed cost.

    Args:
        counts: Vote counts in units, one row per item that was asked.
        answered: Whether each item was answered.
        aggregator: Aggregator that was used.
        shares: Units that one person of each level can move, `TeacherAssignment.shares`.
        orders: Orders of the Rényi divergences.

    Returns:
        An object with `epsilons(delta)` that hides its numbers from its representation.

    Raises:
        OutOfDomain: `counts` is not a table of integers.
        InvalidArgument: `answered` does not have one entry per row.

    Privacy:
        The result is as private as the votes. It is a diagnosis for the data owner, not a
        guarantee, and no ledger accepts it.

    Examples:
        >>> from discreet.models import pate
        >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
        >>> counts = pate.count_votes([[0] * 95 + [1] * 5], teachers, classes=2)
        >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10)
        >>> cost = pate.data_dependent_cost(
        ...     counts, [True], aggregator=aggregator, shares=teachers.shares
        ... )
        >>> cost.epsilons(1e-5)["all"] < 1
        True

    References:
        Papernot et al. (2018).
    """
    found, told = check_answered(counts, answered)
    a = np.asarray(orders, dtype=np.float64)
    errors, times = _together(
        log_error(found[told], sigma=aggregator.sigma_votes), classes=found.shape[1]
    )
    curves = {}
    for name, units in shares.items():
        share = units / UNITS
        votes = answer_cost(
            errors,
            classes=found.shape[1],
            sigma=float(aggregator.sigma_votes),
            share=share,
            orders=a,
        )
        curves[name] = times @ votes + threshold_costs(
            len(found), share, aggregator=aggregator, orders=a
        )
    return DataDependentCost(orders=a, curves=curves)


def check_answered(
    counts: ArrayLike, answered: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Counts, and of each row whether it was answered."""
    found, told = as_counts(counts), np.asarray(answered, dtype=bool)
    if told.shape != found.shape[:1]:
        raise InvalidArgument("answered must say of each row of counts whether it was answered.")
    return found, told


def threshold_costs(
    asked: int, share: float, *, aggregator: ConfidentGNMax, orders: Floats
) -> Floats:
    """So many questions at their fixed price, to a level with this share."""
    return asked * share**2 * orders / (2 * float(aggregator.sigma_threshold) ** 2)


def _together(errors: Floats, *, classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct errors and how often each occurs; very many are first rounded up in z."""
    if len(errors) > _MANY:
        share = math.log(classes - 1)
        place = sp.ndtri_exp(np.minimum(errors - share, 0.0))
        with np.errstate(invalid="ignore"):
            errors = share + sp.log_ndtr(np.ceil(place * 1024) / 1024)
    return np.unique(errors, return_counts=True)
