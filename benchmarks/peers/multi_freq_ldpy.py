"""multi-freq-ldpy: compiled clients, called one by one; its shares are cut at zero and scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

from benchmarks.tasks import codes

Round = Callable[[], float | None]


def local_oue(*, n: int, categories: int, epsilon: float, told: int, **_: int) -> Round:
    """Optimized unary encoding."""
    return _round(
        n,
        categories,
        lambda value: UE_Client(value, categories, epsilon),
        lambda reports: UE_Aggregator_MI(reports, epsilon),
        told=bool(told),
    )


def local_subset(*, n: int, categories: int, epsilon: float, told: int, **_: int) -> Round:
    """Subset selection."""
    return _round(
        n,
        categories,
        lambda value: SS_Client(value, categories, epsilon),
        lambda reports: SS_Aggregator_MI(reports, categories, epsilon),
        told=bool(told),
    )


def local_olh(*, n: int, categories: int, epsilon: float, told: int, **_: int) -> Round:
    """Local hashing."""
    return _round(
        n,
        categories,
        lambda value: LH_Client(value, categories, epsilon),
        lambda reports: LH_Aggregator_MI(reports, categories, epsilon),
        told=bool(told),
    )


def _round(
    n: int,
    categories: int,
    client: Callable[[int], Any],
    server: Callable[[list[Any]], Any],
    *,
    told: bool,
) -> Round:
    """Encode, aggregate and estimate; the root mean squared error of shares times sqrt(n).

    It is not told for fewer clients: cut shares do not err in proportion to 1/sqrt(n).
    """
    held = codes(categories, n)
    truth = np.bincount(held, minlength=categories) / n
    values = held.tolist()

    def work() -> float | None:
        shares = np.asarray(server([client(value) for value in values]))
        return float(np.sqrt(np.mean((shares - truth) ** 2) * n)) if told else None

    return work
