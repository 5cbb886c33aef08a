"""When a run would end by costs that depend on votes: rules A and C of the thesis (M26).

For study. A run that ends when such a cost reaches a limit tells about private votes by its
length; `plan` ends by numbers that are fixed beforehand (rules D and E).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.models.pate.label_plan import target
from discreet.noise.distribution import Floats

Rule: TypeAlias = Literal["discard", "reserve"]
Conversion: TypeAlias = Literal["classic", "tight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingPoint:
    """Where a run ends. Private: a diagnosis."""

    queries: int
    """Queries whose output counts."""
    epsilons: Mapping[str, Floats]
    """Epsilon of each level after each of them."""
    orders: Mapping[str, Floats]
    """The order at which it is least."""


def stop(
    costs: Mapping[str, ArrayLike],
    worst: Mapping[str, ArrayLike],
    limits: Mapping[str, Guarantee],
    *,
    orders: ArrayLike,
    rule: Rule = "reserve",
    conversion: Conversion = "tight",
) -> StoppingPoint:
    """The end of a run whose query i costs a level ``costs[level][i]``, at each order.

    ``discard`` (rule A): a query that passes a limit is thrown away, and all ends. ``reserve``
    (rule C): a query is asked only if ``worst[level]``, the most it can cost, would fit.
    """
    a = np.asarray(orders, dtype=np.float64)
    if rule not in ("discard", "reserve") or conversion not in ("classic", "tight"):
        raise InvalidArgument("rule must be discard or reserve, conversion classic or tight.")
    ends, epsilons, best = [], {}, {}
    for name, limit in limits.items():
        most, delta = target(limit)
        spent = np.cumsum(np.asarray(costs[name], dtype=np.float64), axis=0)
        if spent.ndim != 2 or spent.shape[1] != len(a):
            raise InvalidArgument("costs must have a row for each query, a column for each order.")
        found = _converted(spent, a, delta, conversion)
        epsilons[name], best[name] = found.min(axis=1), a[found.argmin(axis=1)]
        if rule == "discard":
            ahead = epsilons[name]
        else:
            before = np.vstack([np.zeros(len(a)), spent[:-1]])
            ahead = _converted(before + np.asarray(worst[name]), a, delta, conversion).min(axis=1)
        over = ahead > most
        ends.append(int(over.argmax()) if over.any() else len(spent))
    last = min(ends)
    return StoppingPoint(
        queries=last,
        epsilons={name: each[:last] for name, each in epsilons.items()},
        orders={name: each[:last] for name, each in best.items()},
    )


def _converted(spent: Floats, a: Floats, delta: float, conversion: Conversion) -> Floats:
    """Epsilon at every order: Mironov 2017, or Canonne, Kamath, Steinke 2020."""
    if conversion == "classic":
        return np.asarray(spent - np.log(delta) / (a - 1))
    found = spent - (np.log(delta) + np.log(a)) / (a - 1) + np.log1p(-1 / a)
    return np.asarray(np.maximum(found, 0.0))
