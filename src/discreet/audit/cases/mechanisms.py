"""Our own mechanisms, registered for the audit.

Each is attacked as a user would meet it: through ``release``, with seeded bits because an audit is
a simulation. Where the output law can be listed it is, from the exact laws of the noise.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit import lattice_distribution as lattice
from discreet.audit.case import AuditCase, Draw
from discreet.audit.cases import partition_selection as partitions
from discreet.audit.lattice_distribution import LatticeDistribution
from discreet.local.oracles.randomized_response import RandomizedResponse, randomized_response
from discreet.mechanisms.above_threshold import AboveThreshold, above_threshold
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    Selection,
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng

Scores: TypeAlias = tuple[int, ...]


def mechanism_cases() -> tuple[AuditCase, ...]:
    """List an audit case for every mechanism of discreet.

    Returns:
        Cases on the neighboring inputs that are hardest to protect.

    Examples:
        >>> from discreet import audit
        >>> audit.mechanism_cases()[0].name
        'laplace'
    """
    additive = (*_laplace(), *_gaussian(), *_scalar())
    return (*additive, *_response(), *_selection(), *_threshold(), *partitions.cases())


def _laplace() -> tuple[AuditCase, ...]:
    real = laplace(sensitivity=1, epsilon=1, domain="reals")
    return (
        _integers("laplace", laplace(sensitivity=1, epsilon=1, domain="integers"), 1),
        _integers(
            "laplace, sensitivity 3", laplace(sensitivity=3, epsilon=0.5, domain="integers"), 3
        ),
        _integers("laplace, small scale", laplace(sensitivity=1, epsilon=4, domain="integers"), 1),
        _integers(
            "laplace, large scale", laplace(sensitivity=10**6, epsilon=1, domain="integers"), 10**6
        ),
        _reals("laplace, reals", real, 0.0, 1.0),
        _reals("laplace, reals off the grid", real, 1 / 3, -2 / 3),
        _reals(
            "laplace, tiny reals", laplace(sensitivity=1e-9, epsilon=1, domain="reals"), 0.0, 1e-9
        ),
        _case("laplace, no domain given", laplace(sensitivity=1, epsilon=1), 0, 1),
        _vector("laplace, vector", laplace(sensitivity=2, epsilon=1, domain="integers"), (1, 1, 0)),
    )


def _gaussian() -> tuple[AuditCase, ...]:
    real = gaussian(sensitivity=1, mu=1, domain="reals")
    return (
        _integers("gaussian", gaussian(sensitivity=1, epsilon=1, delta=1e-3, domain="integers"), 1),
        _integers("gaussian, zCDP", gaussian(sensitivity=1, rho=0.5, domain="integers"), 1),
        _integers("gaussian, GDP", gaussian(sensitivity=1, mu=1, domain="integers"), 1),
        _coarse(
            "gaussian, reals", gaussian(sensitivity=1, mu=1, domain="reals", granularity=2**-10)
        ),
        _case("gaussian, reals off the grid", real, 1 / 3, -2 / 3),
        _case("gaussian, vector", gaussian(sensitivity=2, mu=1), (0,) * 4, (1,) * 4),
    )


def _scalar() -> tuple[AuditCase, ...]:
    return (
        _scalar_case("staircase", staircase(sensitivity=4, epsilon=2)),
        _scalar_case("grafted", grafted(sensitivity=1, epsilon=1, delta=0.01)),
        _scalar_case("grafted, sensitivity 3", grafted(sensitivity=3, epsilon=0.5, delta=1e-4)),
        _scalar_case("truncated laplace", truncated_laplace(sensitivity=1, epsilon=1, delta=0.01)),
        _scalar_case(
            "truncated laplace, sensitivity 2",
            truncated_laplace(sensitivity=2, epsilon=0.5, delta=1e-4),
        ),
    )


def _response() -> tuple[AuditCase, ...]:
    return tuple(_response_case(randomized_response(categories=k, epsilon=1)) for k in (2, 5))


def _selection() -> tuple[AuditCase, ...]:
    makers = (exponential_mechanism, permute_and_flip, report_noisy_max)
    # Scores that move apart, and scores that all move up: the steepest at a likely outcome.
    return tuple(
        _selection_case(make(sensitivity=1, epsilon=1, monotonic=monotonic), left, right)
        for make in makers
        for monotonic, left, right in (
            (False, (0, 0, 0, 0), (1, -1, -1, -1)),
            (False, (0, 4), (1, 3)),
            (True, (0, 4), (1, 4)),
        )
    )


def _threshold() -> tuple[AuditCase, ...]:
    return (
        _threshold_case(above_threshold(sensitivity=1, epsilon=1), (0,) * 5, (1,) * 4 + (-1,)),
        _threshold_case(
            above_threshold(sensitivity=1, epsilon=1, positives=2), (0,) * 6, (1,) * 4 + (-1,) * 2
        ),
        _threshold_case(
            above_threshold(sensitivity=1, epsilon=1, monotonic=True), (0,) * 5, (1,) * 4 + (0,)
        ),
    )


# ── additive noise ────────────────────────────────────────────────────────────────────────────


def additive_draw(mechanism: AdditiveMechanism) -> Draw:
    """Many releases at once: the noise of an array is independent from entry to entry."""

    def draw(value: Any, n: int, seed: int) -> object:
        return mechanism.release(np.repeat([value], n, axis=0), rng=seeded_rng(seed))

    return draw


def _integers(name: str, mechanism: AdditiveMechanism, shift: int) -> AuditCase:
    return _case(name, mechanism, 0, shift, laws=lambda: integer_distributions(mechanism, shift))


def _vector(name: str, mechanism: AdditiveMechanism, shifts: tuple[int, ...]) -> AuditCase:
    def laws() -> exact.OutputPair:
        moved = [integer_distributions(mechanism, shift) for shift in shifts if shift]
        return reduce(exact.product, moved)

    return _case(name, mechanism, (0,) * len(shifts), shifts, laws=laws)


def integer_distributions(mechanism: AdditiveMechanism, shift: int) -> exact.OutputPair:
    """The laws of the outputs on 0 and on shift, listed integer by integer."""
    assert mechanism.integers is not None  # noqa: S101 - all of these are made on integers
    noise = mechanism.integers.noise
    if isinstance(noise, DiscreteLaplace):
        k = np.arange(0, shift + 1)
        masses = (noise.pmf(k), noise.pmf(k - shift))
        # Beyond both centers the ratio is constant: all that lies there may be one outcome.
        for mass, at in zip(masses, (0, shift), strict=True):
            mass[0] += float(noise.cdf(-1 - at))
            mass[-1] += float(noise.sf(shift - at))
        return exact.OutputPair(outcomes=range(shift + 1), left=masses[0], right=masses[1])
    if isinstance(noise, RoundedGaussian):
        listed = _rounded_gaussian(float(noise.square) ** 0.5)
    else:
        listed = lattice.listed(noise)
    return exact.pair(listed, listed.shift(shift))


def _reals(name: str, mechanism: AdditiveMechanism, left: float, right: float) -> AuditCase:
    return _case(
        name,
        mechanism,
        left,
        right,
        laws=lambda: rounded_laplace_distributions(mechanism, left, right),
    )


def rounded_laplace_distributions(
    mechanism: AdditiveMechanism, left: float, right: float
) -> exact.OutputPair:
    """Laplace noise around two reals, rounded to the grid: every multiple between them listed."""
    assert mechanism.reals is not None  # noqa: S101 - all of these are made on reals
    step = mechanism.reals.step
    first, last = (round(x / step) for x in (min(left, right), max(left, right)))
    edges = (np.arange(first, last + 2, dtype=np.float64) - 0.5) * step
    return exact.laplace_pair(left, right, scale=mechanism.reals.scale, edges=edges)


def _coarse(name: str, mechanism: AdditiveMechanism) -> AuditCase:
    """Gaussian noise on reals, on a grid so coarse that every output can be listed."""
    assert mechanism.reals is not None  # noqa: S101 - all of these are made on reals
    steps = round(1 / mechanism.reals.step)

    def laws() -> exact.OutputPair:
        noise = _rounded_gaussian(mechanism.std * steps)
        return exact.pair(noise, noise.shift(steps))

    return _case(name, mechanism, 0.0, 1.0, laws=laws)


def _case(
    name: str, mechanism: AdditiveMechanism, left: object, right: object, **more: Any
) -> AuditCase:
    return AuditCase(
        name=name,
        claimed=mechanism.guarantee,
        draw=additive_draw(mechanism),
        left=left,
        right=right,
        mechanism=mechanism,
        **more,
    )


def _rounded_gaussian(sigma: float) -> LatticeDistribution:
    """P(k) of round(sigma * normal), from the tail that is small."""
    radius = int(10 * sigma) + 2
    tail = stats.norm.sf((np.arange(0, radius + 1) + 0.5) / sigma)
    side = tail[:-1] - tail[1:]
    middle = [float(-np.expm1(np.log(2 * tail[0])))]
    return LatticeDistribution(
        start=-radius,
        mass=np.concatenate((side[::-1], middle, side)),
        missing=float(2 * tail[-1]),
    )


# ── the others: one release at a time ─────────────────────────────────────────────────────────

ONE_BY_ONE = 3_000
"""Samples where every output is a release of its own; the exact laws are the sharper check."""


def _scalar_case(name: str, mechanism: ScalarNoise) -> AuditCase:
    shift = mechanism.scale.shift

    def draw(value: int, n: int, seed: int) -> object:
        bits = seeded_rng(seed)
        return [mechanism.release(value, rng=bits) for _ in range(n)]

    def laws() -> exact.OutputPair:
        noise = lattice.listed(mechanism.noise)
        return exact.pair(noise, noise.shift(shift))

    epsilon, delta = map(float, mechanism.target)
    return AuditCase(
        name=name,
        claimed=(epsilon, delta),
        draw=draw,
        left=0,
        right=shift,
        laws=laws,
        samples=ONE_BY_ONE,
        mechanism=mechanism,
    )


def _response_case(mechanism: RandomizedResponse) -> AuditCase:
    def law(value: int) -> dict[int, float]:
        return outputs.randomized_response(
            value, keep=mechanism.keep, categories=mechanism.categories
        )

    return AuditCase(
        name=f"randomized response, {mechanism.categories} categories",
        claimed=mechanism.guarantee,
        draw=lambda value, n, seed: mechanism.release(np.full(n, value), rng=seeded_rng(seed)),
        left=0,
        right=1,
        laws=lambda: exact.pair(law(0), law(1)),
        mechanism=mechanism,
    )


def _selection_case(mechanism: Selection, left: Scores, right: Scores) -> AuditCase:
    def draw(scores: Scores, n: int, seed: int) -> object:
        bits = seeded_rng(seed)
        return [mechanism.release(scores, rng=bits) for _ in range(n)]

    way = ", monotonic" if mechanism.monotonic else ""
    return AuditCase(
        name=f"{mechanism.name.replace('_', ' ')}, {len(left)} candidates{way}",
        claimed=mechanism.guarantee,
        draw=draw,
        left=left,
        right=right,
        laws=lambda: exact.pair(
            selection_distribution(mechanism, left),
            selection_distribution(mechanism, right),
            error=1e-15,
        ),
        samples=ONE_BY_ONE,
        mechanism=mechanism,
    )


def selection_distribution(mechanism: Selection, scores: Scores) -> dict[int, float]:
    """The law of the choice by our own enumeration, not by the mechanism's."""
    weight = float(mechanism.rate)
    match mechanism:
        case ExponentialMechanism():
            return outputs.exponential(scores, weight=weight)
        case PermuteAndFlip():
            return outputs.permute_and_flip(scores, weight=weight)
        case _:
            return outputs.noisy_max(scores, lattice.discrete_laplace(1 / weight), ties="first")


def _threshold_case(mechanism: AboveThreshold, left: Scores, right: Scores) -> AuditCase:
    def draw(values: Scores, n: int, seed: int) -> object:
        bits = seeded_rng(seed)
        return [tuple(mechanism.release(values, threshold=0, rng=bits)) for _ in range(n)]

    def laws() -> exact.OutputPair:
        listed = outputs.SparseVectorOutputs(
            threshold=0,
            threshold_noise=lattice.listed(mechanism.threshold_noise),
            query_noise=lattice.listed(mechanism.query_noise),
            cutoff=mechanism.positives,
        )
        return exact.pair(listed.law(left), listed.law(right), error=listed.error(left))

    way = ", monotonic" if mechanism.monotonic else ""
    return AuditCase(
        name=f"above threshold, {mechanism.positives} positive{way}",
        claimed=mechanism.guarantee,
        draw=draw,
        left=left,
        right=right,
        laws=laws,
        samples=ONE_BY_ONE,
        mechanism=mechanism,
    )
