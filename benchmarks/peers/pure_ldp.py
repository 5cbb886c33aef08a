"""pure-ldp: one call for each client, one for each report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from pure_ldp.frequency_oracles import (
    FastLHClient,
    FastLHServer,
    HadamardResponseClient,
    HadamardResponseServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)

from benchmarks.tasks import codes

Round = Callable[[], float]


def local_oue(*, n: int, categories: int, epsilon: float) -> Round:
    """Optimized unary encoding."""
    return _round(
        n,
        categories,
        lambda: UEClient(epsilon, categories, use_oue=True),
        lambda: UEServer(epsilon, categories, use_oue=True),
    )


def local_sue(*, n: int, categories: int, epsilon: float) -> Round:
    """Symmetric unary encoding."""
    return _round(
        n, categories, lambda: UEClient(epsilon, categories), lambda: UEServer(epsilon, categories)
    )


def local_olh(*, n: int, categories: int, epsilon: float, family: int = 0) -> Round:
    """Local hashing: a function for each client, or ``family`` of them, tabulated beforehand."""
    if not family:
        return _round(
            n,
            categories,
            lambda: LHClient(epsilon, categories, use_olh=True),
            lambda: LHServer(epsilon, categories, use_olh=True),
        )
    server = FastLHServer(epsilon, categories, family, use_olh=True)

    def emptied() -> Any:
        server.reset()
        server.hash_counts[:] = 0
        return server

    return _round(
        n, categories, lambda: FastLHClient(epsilon, categories, family, use_olh=True), emptied
    )


def local_hadamard(*, n: int, categories: int, epsilon: float) -> Round:
    """Hadamard response."""
    return _round(
        n,
        categories,
        lambda: HadamardResponseClient(epsilon, categories, None),
        lambda: HadamardResponseServer(epsilon, categories),
    )


def _round(n: int, categories: int, client: Callable[[], Any], server: Callable[[], Any]) -> Round:
    """Encode, aggregate and estimate; the root mean squared error of shares times sqrt(n)."""
    held = codes(categories, n)
    truth = np.bincount(held, minlength=categories) / n
    values = (held + 1).tolist()  # counted from 1

    def work() -> float:
        warnings.simplefilter("ignore")
        sender, receiver = client(), server()
        for value in values:
            receiver.aggregate(sender.privatize(value))
        shares = np.asarray(receiver.estimate_all(range(1, categories + 1))) / n
        return float(np.sqrt(np.mean((shares - truth) ** 2) * n))

    return work
