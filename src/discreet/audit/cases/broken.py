"""Mechanisms that are not what they claim, kept to be caught.

Each one is a mistake that was published or shipped (`discreet.audit.mistakes`), on the inputs
that show it, with its exact output laws where they can be listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from scipy import stats

from discreet.accounting.conversion import gaussian_delta
from discreet.audit import exact
from discreet.audit.case import AuditCase, broken_case
from discreet.audit.cases import known_mistakes as mistakes
from discreet.audit.cases import partition_selection as partitions
from discreet.audit.cases import sparse_vector as variants
from discreet.audit.cases.known_mistakes import EPSILON, MISPRINTED, MIXED, THRESHOLD
from discreet.audit.lattice_distribution import LatticeDistribution, discrete_laplace, point


def cases() -> tuple[AuditCase, ...]:
    """Every demonstrator, with the inputs that show the mistake."""
    wrong_variants = (case for case in variants.cases() if case.broken)
    noise = (*_scales(), *_noise(), *wrong_variants)
    return (*noise, *_sensitivities(), *_theorems(), *_inputs(), *partitions.broken())


# ── the noise has the wrong size ──────────────────────────────────────────────────────────────


def _scales() -> tuple[AuditCase, ...]:
    return (
        _lattice_case(
            "scale 10% too small",
            mistakes.small_scale,
            discrete_laplace(0.9 / EPSILON),
            why="scale 0.9 where 1 is needed",
        ),
        AuditCase(
            name="sigma 10% too small",
            # mu = 1: the point of the curve at epsilon 1/2.
            claimed=(0.5, float(gaussian_delta(0.5, mu=1.0))),
            draw=mistakes.small_sigma,
            left=0.0,
            right=1.0,
            laws=lambda: exact.binned(stats.norm(0, 0.9), stats.norm(1, 0.9)),
            broken=True,
            samples=2_000_000,
            why="sigma 0.9 where 1 is needed",
        ),
        _lattice_case(
            "Lap(epsilon) for Lap(1/epsilon)",
            mistakes.inverted_scale,
            discrete_laplace(0.5),
            claimed=0.5,
            why="the scale is upside down",
        ),
    )


# ── the noise is not what the proof assumes ───────────────────────────────────────────────────


def _noise() -> tuple[AuditCase, ...]:
    one = discrete_laplace(1 / EPSILON)
    two = discrete_laplace(2 / EPSILON)
    return (
        broken_case(
            "float Laplace, low bits", mistakes.float_laplace, 0.0, 1.0, why="Mironov 2012"
        ),
        broken_case(
            "redrawn until positive",
            mistakes.redrawn,
            1,
            2,
            # Clamping beyond both centers loses nothing: the ratio is constant there.
            laws=lambda: exact.pair(
                one.shift(1).condition(1, 60).clamp(1, 30),
                one.shift(2).condition(1, 60).clamp(1, 30),
            ),
            why="the normalizing constant depends on the input",
        ),
        broken_case(
            "same noise twice",
            mistakes.same_noise_twice,
            (0, 0),
            (1, 0),
            laws=lambda: exact.pair(
                {(k, k): m for k, m in _items(two)}, {(k + 1, k): m for k, m in _items(two)}
            ),
            why="the difference of the answers is exact",
        ),
        broken_case(
            "seed used again",
            mistakes.seed_reuse,
            0,
            1,
            laws=lambda: exact.pair(point(0), point(1)),
            why="the noise is a constant that can be subtracted",
        ),
        broken_case(
            "value off the grid",
            mistakes.off_grid,
            0.0,
            0.5,
            laws=lambda: exact.pair(
                {float(k): m for k, m in _items(one)}, {k + 0.5: m for k, m in _items(one)}
            ),
            why="the value modulo the grid passes through",
        ),
    )


# ── the sensitivity is wrong ──────────────────────────────────────────────────────────────────


def _sensitivities() -> tuple[AuditCase, ...]:
    one = discrete_laplace(1 / EPSILON)
    return (
        broken_case(
            "clamp forgotten",
            mistakes.forgotten_clamp,
            (),
            (10,),
            laws=lambda: exact.pair(one.clamp(0, 10), one.shift(10).clamp(0, 10)),
            why="one value of 10 where 1 was declared",
        ),
        broken_case(
            "mean by max(|lower|, |upper|)/n",
            mistakes.half_range_mean,
            (-1.0,) * 5,
            (-1.0,) * 4 + (1.0,),
            laws=lambda: exact.laplace_pair(0, 0.4, scale=0.2),
            why="the range is twice the larger bound (M2)",
        ),
        broken_case(
            "mean of a secret size",
            mistakes.secret_size_mean,
            (0.0,) * 9 + (1.0,),
            (0.0,) * 9,
            laws=lambda: exact.binned(
                stats.laplace(0.1, 0.1), stats.laplace(0, 1 / 9), bins=400_000
            ),
            why="the scale itself depends on the data (B2)",
        ),
        broken_case(
            "median by local sensitivity",
            mistakes.local_median,
            (0.0,) * 3 + (1.0,) * 2,
            (0.0,) * 4 + (1.0,),
            why="noise on one input, none on the other (B28)",
        ),
        broken_case(
            "deviation by R/n",
            mistakes.deviation_by_range,
            (0.0,) * 25,
            (0.0,) * 24 + (1.0,),
            laws=lambda: exact.laplace_pair(0, 0.2, scale=0.04),
            why="it can move by R / sqrt(n) (M49)",
        ),
        broken_case(
            "block mean by the whole size",
            mistakes.block_mean,
            (0.0,),
            (0.2,),
            laws=lambda: exact.laplace_pair(0, 0.2, scale=0.002),
            why="a block may hold a single record (M43)",
        ),
        broken_case(
            "sum wraps around", mistakes.wrapping_sum, (2**31 - 1,), (2**31 - 1, 1), why="overflow"
        ),
    )


# ── the theorem is wrong ──────────────────────────────────────────────────────────────────────


def _theorems() -> tuple[AuditCase, ...]:
    return (
        AuditCase(
            name="Gaussian without the squares",
            claimed=(EPSILON, 1e-5),
            draw=mistakes.misprinted_gaussian,
            left=0.0,
            right=10.0,
            laws=lambda: exact.binned(stats.norm(0, MISPRINTED), stats.norm(10, MISPRINTED)),
            broken=True,
            why="two squares are missing: true delta 0.028 (M13)",
        ),
        AuditCase(
            name="mixed noise mechanism",
            claimed=(EPSILON, 1e-3),
            draw=mistakes.mixed_noise,
            left=0.0,
            right=MIXED,
            laws=lambda: exact.binned(stats.norm(0, math.sqrt(2)), stats.norm(1, math.sqrt(2))),
            broken=True,
            why="sigma is too small whatever the sensitivity: true delta 0.0396 (M35)",
        ),
    )


# ── the input is not checked, the cost is not charged ─────────────────────────────────────────


def _inputs() -> tuple[AuditCase, ...]:
    return (
        broken_case(
            "NaN passes", mistakes.nan_passes, (0.5, 0.5), (0.5, math.nan), why="NaN is an answer"
        ),
        broken_case(
            "keys that occur",
            mistakes.keys_that_occur,
            (1, 1),
            (1, 1, 2),
            why="new key",
            samples=50_000,
        ),
        AuditCase(
            name="threshold reached, not exceeded",
            # What P(noise > THRESHOLD - 1) would be, for a key that one person holds.
            claimed=(EPSILON, float(discrete_laplace(1 / EPSILON).sf(THRESHOLD - 1))),
            draw=mistakes.threshold_reached,
            left=(),
            right=(1,),
            laws=_threshold_laws,
            broken=True,
            why="off by one in delta (opendp#2922)",
        ),
        broken_case(
            "bounds from the data",
            mistakes.bounds_from_data,
            (0.5, 0.5),
            (0.5, 0.5, 1.0),
            laws=lambda: exact.binned(stats.laplace(1, 0.5), stats.laplace(2, 1)),
            why="the scale tells the largest value",
        ),
        AuditCase(
            name="exact count for nothing",
            claimed=(0.0, 0.0),
            draw=mistakes.free_count,
            left=(0,) * 7,
            right=(0,) * 8,
            laws=lambda: exact.pair(point(7), point(8)),
            broken=True,
            samples=10_000,
            why="no noise, no charge",
        ),
    )


def _threshold_laws() -> exact.OutputPair:
    shown = float(discrete_laplace(1 / EPSILON).sf(THRESHOLD - 2))
    return exact.pair({False: 1.0}, {True: shown, False: 1 - shown}, error=1e-15)


# ── how cases are put together ────────────────────────────────────────────────────────────────


def _lattice_case(
    name: str,
    draw: Callable[..., object],
    noise: LatticeDistribution,
    *,
    why: str,
    claimed: float = EPSILON,
) -> AuditCase:
    laws = partial(exact.one_apart, noise)
    return broken_case(name, draw, 0, 1, why=why, laws=laws, claimed=(claimed, 0.0))


def _items(noise: LatticeDistribution) -> list[tuple[int, float]]:
    return list(zip(noise.support.tolist(), noise.mass.tolist(), strict=True))
