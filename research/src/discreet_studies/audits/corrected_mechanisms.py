"""What keeps its promise where a published mechanism does not, on the same neighbors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.audit import exact
from discreet.audit.case import AuditCase, one_by_one
from discreet.audit.cases.mechanisms import integer_distributions
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.bin_statistics import bin_statistics
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import Noise, smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.quantiles import private_quantile
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.noise.random_source import RandomSource, seeded_rng

_FEW = (0.0,) * 3 + (1.0,) * 2
_MORE = (0.0,) * 4 + (1.0,)


def cases() -> tuple[AuditCase, ...]:
    """The same questions, by mechanisms with a guarantee."""
    return (*_sensitivities(), *_medians(), *_bounded(), *_blocks())


def _sensitivities() -> tuple[AuditCase, ...]:
    one = NeighboringRelation.REPLACE_ONE
    mean = laplace(sensitivity=0.4, epsilon=1, relation=one)
    deviation = laplace(sensitivity=0.2, epsilon=1, relation=one)
    mixed = best_additive_noise(sensitivity=1, epsilon=1, delta=1e-3)
    return (
        _additive("mean by (upper - lower)/n", mean, -1.0, -0.6),
        _additive("deviation by R/sqrt(n)", deviation, 0.0, 0.2),
        _additive("Gaussian noise, exact", gaussian(sensitivity=10, epsilon=1, delta=1e-5), 0, 10),
        one_by_one("best additive noise for mixed noise", mixed.release, 0, 1, claimed=(1.0, 1e-3)),
    )


def _medians() -> tuple[AuditCase, ...]:
    share = weighted_sensitivity(lower=0, upper=1, public_rows=5, epsilon=4, delta=0.08)
    test = propose_test_release(bound=0.25, lower=0, upper=1, public_rows=5, epsilon=1, delta=0.01)
    choice = private_quantile(lower=0, upper=1, epsilon=1, relation=NeighboringRelation.REPLACE_ONE)

    def proposed(data: Any, *, rng: RandomSource) -> float:
        answer = test.release(data, rng=rng)
        return -1.0 if answer is None else float(answer)

    return (
        _median("median by smooth sensitivity", epsilon=1),
        _median("median by smooth sensitivity, Laplace", epsilon=6, delta=0.05),
        _median("median by smooth sensitivity, Gaussian", epsilon=8, delta=0.1, noise="gaussian"),
        one_by_one("median by weighted sensitivity", share.release, _FEW, _MORE,
                    claimed=(4.0, 0.08)),
        one_by_one("median by propose, test, release", proposed, _FEW, _MORE,
                    claimed=(1.0, 0.01)),
        one_by_one("median by choice", choice.release, _FEW, _MORE, claimed=(1.0, 0.0)),
    )  # fmt: skip


def _median(
    name: str, *, epsilon: int, delta: float = 0.0, noise: Noise | None = None
) -> AuditCase:
    mechanism = smooth_sensitivity(
        lower=0, upper=1, public_rows=5, epsilon=epsilon, delta=delta, noise=noise
    )
    return one_by_one(name, mechanism.release, _FEW, _MORE, claimed=(float(epsilon), delta))


def _bounded() -> tuple[AuditCase, ...]:
    mechanism = bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1, domain="integers")

    def law(center: int) -> dict[int, float]:
        mass = [math.exp(-abs(k - center) / mechanism.scale) for k in range(11)]
        return {k: m / math.fsum(mass) for k, m in enumerate(mass)}

    return (
        one_by_one("bounded Laplace, its own scale", mechanism.release, 0, 1, claimed=(1.0, 0.0),
                    laws=lambda: exact.pair(law(0), law(1))),
    )  # fmt: skip


def _blocks() -> tuple[AuditCase, ...]:
    one = NeighboringRelation.REPLACE_ONE
    moved = laplace(sensitivity=2, epsilon=1, domain="integers", relation=one)
    one_moved = integer_distributions(moved, 1)
    bins = bin_statistics(lower=0, upper=1, bins=5, epsilon=1, empty="lower", relation=one)
    groups = sample_and_aggregate(np.mean, lower=0, upper=1, groups=5, epsilon=1, summary="mean")
    return (
        _additive(
            "counts by value, one replaced",
            moved,
            (1, 0),
            (0, 1),
            laws=lambda: exact.product(one_moved.swapped(), one_moved),
        ),
        one_by_one("blocks of values, both bins paid", bins.release, (0.199,), (0.399,),
                    claimed=(1.0, 0.0)),
        one_by_one("subsample and aggregate, clamped", groups.release, (0.0,) * 4,
                    (0.0,) * 4 + (10.0,), claimed=(1.0, 0.0)),
    )  # fmt: skip


def _additive(
    name: str,
    mechanism: AdditiveMechanism,
    left: Any,
    right: Any,
    *,
    laws: Callable[[], exact.OutputPair] | None = None,
) -> AuditCase:
    def draw(value: Any, n: int, seed: int) -> object:
        rows = np.tile(np.asarray(value), (n, 1)) if np.ndim(value) else np.full(n, value)
        return np.asarray(mechanism.release(rows, rng=seeded_rng(seed)))

    return AuditCase(
        name=name, claimed=mechanism.guarantee, draw=draw, left=left, right=right, laws=laws
    )
