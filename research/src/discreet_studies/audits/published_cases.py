"""Claims of Biswal 2024 that do not hold, as simulations, each beside what keeps its promise.

`discreet audit --published` runs them. As `mistakes`, they cannot release: no guarantee, and a
plain seeded generator. Some demonstrators of the same thesis are registered in `broken`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discreet.audit import exact
from discreet.audit.case import AuditCase, broken_case
from discreet.audit.cases import broken
from discreet.audit.cases.sparse_vector import laplace_integers
from discreet.audit.lattice_distribution import Floats, discrete_laplace
from discreet_studies.audits import corrected_mechanisms as published_sound
from discreet_studies.audits import published_distributions as published_laws

EPSILON = 1.0
ELSEWHERE = (
    "median by local sensitivity",
    "mixed noise mechanism",
    "block mean by the whole size",
    "deviation by R/n",
    "mean by max(|lower|, |upper|)/n",
    "mean of a secret size",
    "Gaussian without the squares",
)
"""Registered in `broken`, and shown here, too."""


def cases() -> tuple[AuditCase, ...]:
    """What `discreet audit --published` shows of the thesis: broken claims, then what is right."""
    known = {case.name: case for case in broken.cases()}
    return (*(known[name] for name in ELSEWHERE), *published(), *published_sound.cases())


def published() -> tuple[AuditCase, ...]:
    """What was published and is not what it claims."""
    return (*_sensitivities(), *_scales(), *_blocks(), *_disclosure())


# ── sensitivities that are none ───────────────────────────────────────────────────────────────


def _sensitivities() -> tuple[AuditCase, ...]:
    few, many = (0.0,) * 4 + (1.0,), (0.0,) * 4 + (100.0,)
    blur = 0.9 * 0.2 + 0.1  # half of epsilon times the scale, in local sensitivities
    blurred = 2 * blur / 4
    mixed = math.sqrt(2 * 0.01**2 + _MIXED_ROOM) - math.sqrt(_MIXED_ROOM)
    return (
        broken_case(
            "mean by leaving one out",
            _left_out,
            few,
            many,
            laws=lambda: exact.binned(stats.laplace(0.2, 0.2), stats.laplace(20, 20)),
            why="the scale is that of the data at hand (M38, M39)",
        ),
        broken_case(
            "blurred local sensitivity",
            partial(_laplace, scale=blurred),
            0.0,
            1.0,
            claimed=(4.0, published_laws.general_claim(4, math.log(1 + 0.1 / 0.18))),
            laws=lambda: exact.binned(stats.laplace(0, blurred), stats.laplace(1, blurred)),
            why="the blur is below the local sensitivity: true delta 0.79 (M33)",
        ),
        broken_case(
            "mixed noise of any sigma",
            partial(_normal, sigma=0.01),
            0.0,
            mixed,
            claimed=(EPSILON, 0.01),
            laws=lambda: exact.binned(stats.norm(0, 0.01), stats.norm(mixed, 0.01)),
            why="a bound on densities is none on probabilities: true delta 0.0245 (M35, M36)",
        ),
    )


_MIXED_ROOM = 2 * math.sqrt(2) * 0.01**3 / (math.sqrt(math.pi) * 0.01)
"""B39: A = 2 sqrt(2) sigma^3 / (sqrt(pi) delta), at sigma and delta 0.01."""


def _left_out(data: Sequence[float], n: int, seed: int) -> Floats:
    """M38: Laplace noise for the largest change of the mean when one record is left out."""
    mean = float(np.mean(data))
    change = max(abs(x - mean) for x in data) / (len(data) - 1)
    return _laplace(mean, n, seed, scale=change / EPSILON)


# ── noise of the wrong scale ──────────────────────────────────────────────────────────────────


def _scales() -> tuple[AuditCase, ...]:
    wide = math.exp(published_laws.thesis_beta(6, 0.1))
    beta = published_laws.thesis_beta(8, 0.1)
    sigma = published_laws.gaussian_multiplier(8, 0.1)
    grown = sigma * math.exp(beta)
    return (
        broken_case(
            "smooth Laplace, dilation at epsilon 6",
            _scaled_laplace,
            wide,
            1.0,
            claimed=(3.0, 0.05),
            laws=lambda: exact.binned(stats.laplace(0, wide), stats.laplace(0, 1)),
            samples=2_000_000,
            why="the lemma is for epsilon below 1: true delta 0.062 (M23)",
        ),
        broken_case(
            "smooth Gaussian, published smoothness",
            _scaled_normal,
            (0.0, grown),
            (1.0, sigma),
            claimed=(8.0, 0.1),
            laws=lambda: exact.binned(stats.norm(0, grown), stats.norm(1, sigma)),
            samples=4_000_000,
            why="beta is that of Laplace noise: true delta 0.224 (M25)",
        ),
        broken_case(
            "bounded Laplace by D/epsilon",
            _bounded,
            0.0,
            1.0,
            laws=_bounded_laws,
            why="the normalizing constant depends on the data: true epsilon 1.49 (M48)",
        ),
        broken_case(
            "one flip, answered twice",
            _two_flips,
            0,
            1,
            claimed=(math.log(3), 0.1),
            laws=lambda: exact.pair(_flips(0), _flips(1)),
            why="fresh noise for every answer is paid for: true delta 0.375 (B20)",
        ),
    )


def _scaled_laplace(scale: float, n: int, seed: int) -> Floats:
    return _laplace(0.0, n, seed, scale=scale)


def _scaled_normal(value: tuple[float, float], n: int, seed: int) -> Floats:
    return _normal(value[0], n, seed, sigma=value[1])


def _bounded(value: float, n: int, seed: int) -> Floats:
    """M48: Laplace noise of scale 1 conditioned on [0, 10], by its inverse distribution."""
    law = stats.laplace(value, 1 / EPSILON)
    low, high = law.cdf((0.0, 10.0))
    return _read(law.ppf(np.random.default_rng(seed).uniform(low, high, n)))


def _bounded_laws() -> exact.OutputPair:
    edges = np.linspace(0, 10, 2001)
    masses = [np.diff(stats.laplace(q, 1 / EPSILON).cdf(edges)) for q in (0.0, 1.0)]
    left, right = (mass / mass.sum() for mass in masses)
    return exact.OutputPair(outcomes=range(len(left)), left=left, right=right, error=1e-11)


def _two_flips(bit: int, n: int, seed: int) -> NDArray[np.int64]:
    wrong = np.random.default_rng(seed).random((n, 2)) < 0.25
    return (bit ^ wrong).astype(np.int64)


def _flips(bit: int) -> dict[tuple[int, int], float]:
    return {
        (i, j): (0.75 if i == bit else 0.25) * (0.75 if j == bit else 0.25)
        for i in (0, 1)
        for j in (0, 1)
    }


# ── blocks ────────────────────────────────────────────────────────────────────────────────────


def _blocks() -> tuple[AuditCase, ...]:
    one = exact.one_apart(discrete_laplace(1 / EPSILON))
    return (
        broken_case(
            "parts by value, the worst part",
            _two_counts,
            (1, 0),
            (0, 1),
            laws=lambda: exact.product(one.swapped(), one),
            why="a replaced record leaves one part and enters another: true epsilon 2 (M15, B26)",
        ),
        broken_case(
            "blocks of values, left edge for empty ones",
            _two_blocks,
            (0.2, 0.2),
            (0.0, 0.4),
            laws=_two_block_laws,
            why="two bins move by their whole width: true epsilon 2 (M41)",
        ),
        broken_case(
            "subsample and aggregate, not clamped",
            partial(_laplace, scale=1 / (5 * EPSILON)),
            0.0,
            2.0,
            laws=lambda: exact.laplace_pair(0, 2, scale=0.2),
            why="an estimate outside of its range moves the mean by more (M47)",
        ),
    )


def _two_counts(counts: Sequence[int], n: int, seed: int) -> NDArray[np.int64]:
    noise = laplace_integers(1 / EPSILON, 2 * n, np.random.default_rng(seed))
    return np.asarray(counts) + noise.reshape(n, 2)


def _two_blocks(values: Sequence[float], n: int, seed: int) -> Floats:
    """The two bins of five that a record leaves and enters, each with noise for its width."""
    noise = np.random.default_rng(seed).laplace(0, 0.2 / EPSILON, (n, 2))
    return _read(np.asarray(values) + noise)


def _two_block_laws() -> exact.OutputPair:
    inner = np.linspace(0, 0.2, 101)
    return exact.product(
        exact.laplace_pair(0.2, 0.0, scale=0.2, edges=inner),
        exact.laplace_pair(0.2, 0.4, scale=0.2, edges=inner + 0.2),
    )


# ── disclosure control called private ─────────────────────────────────────────────────────────


def _disclosure() -> tuple[AuditCase, ...]:
    return (
        broken_case(
            "k-noise called private",
            _jitter,
            40.0,
            41.0,
            laws=lambda: exact.binned(stats.uniform(37.5, 5), stats.uniform(38.5, 5)),
            why="bounded noise excludes what is farther away: delta 0.2 at any epsilon (B12)",
        ),
        broken_case(
            "k-PRAM called private",
            _redraw,
            44.0,
            46.0,
            laws=lambda: exact.pair({40: 1.0}, {45: 1.0}),
            samples=20_000,
            why="the bin is released as it is (B10)",
        ),
    )


def _jitter(value: float, n: int, seed: int) -> Floats:
    return _read(value + np.random.default_rng(seed).uniform(-2.5, 2.5, n))


def _redraw(value: float, n: int, seed: int) -> Floats:
    """The bin is all that a redrawn value depends on, so it is shown as its lower edge."""
    drawn = 5 * math.floor(value / 5) + np.random.default_rng(seed).uniform(0, 5, n)
    return 5 * np.floor(drawn / 5)


def _laplace(value: float, n: int, seed: int, *, scale: float) -> Floats:
    return _read(value + np.random.default_rng(seed).laplace(0, scale, n))


def _normal(value: float, n: int, seed: int, *, sigma: float) -> Floats:
    return _read(value + np.random.default_rng(seed).normal(0, sigma, n))


def _read(values: Floats) -> Floats:
    """On a public grid: an audit shall catch the mistake, not the low bits of doubles."""
    return np.round(values * 2.0**30) / 2.0**30
