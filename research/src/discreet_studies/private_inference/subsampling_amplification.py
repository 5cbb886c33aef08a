"""Amplification by sampling, for a single (epsilon, delta); curves and compositions use events."""

from __future__ import annotations

import math

from discreet.accounting.conversion import UP
from discreet.core import _validate as check


def poisson(epsilon: float, *, delta: float = 0.0, rate: float) -> tuple[float, float]:
    """(epsilon, delta) of a mechanism run on a Poisson sample, under add/remove."""
    # Theorem: `(log(1 + q (e^eps - 1)), q delta)`.
    # Proof: removal: HS of `(1-q) Q + q P` from `Q` at `1 + q (e^eps - 1)` is q HS_eps(P|Q);
    #   addition is smaller by convexity.
    # Source: Balle, Barthe, Gaboardi 2018, Theorem 8.
    q = float(check.probability("rate", rate))
    e = float(check.non_negative("epsilon", epsilon))
    d = float(check.probability("delta", delta, one=False))
    return math.log1p(q * math.expm1(e)) * (UP if 0 < q < 1 else 1.0), q * d


def without_replacement(
    epsilon: float, *, delta: float = 0.0, sample: int, population: int
) -> tuple[float, float]:
    """The same for ``sample`` of ``population`` units without replacement, under replace-one."""
    # Theorem: `(log(1 + q (e^eps - 1)), q delta)` with `q = sample/population`.
    # Source: Balle, Barthe, Gaboardi 2018, Theorem 9.
    of = check.count("population", population)
    taken = min(check.count("sample", sample, minimum=0), of)
    return poisson(epsilon, delta=delta, rate=taken / of)
