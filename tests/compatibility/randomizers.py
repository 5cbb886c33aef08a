"""Every kind of local report, with values that clients of it may have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet import local
from discreet.local.randomizer import LocalRandomizer, Reports
from discreet.noise.random_source import seeded_rng

CODES = [place % 7 for place in range(24)]
NUMBERS = [place / 24 for place in range(24)]
AGES = [place * 5 % 64 for place in range(24)]
DAYS = [f"2026-01-{1 + place % 16:02}" for place in range(24)]
WORDS = ["anna", "ben", "cleo"] * 8

MADE: Mapping[str, tuple[LocalRandomizer, Any]] = {
    "grr": (local.grr(categories=7, epsilon=0.5), CODES),
    "sue": (local.sue(categories=7, epsilon=1), CODES),
    "oue": (local.oue(categories=7, epsilon=1), CODES),
    "the": (local.threshold_histogram_encoding(categories=7, epsilon=1, threshold=0.75), CODES),
    "she": (local.summation_histogram_encoding(categories=7, epsilon=1, steps=64), CODES),
    "olh": (local.olh(categories=7, epsilon=1.5), CODES),
    "hadamard": (local.hadamard_response(categories=7, epsilon=1), CODES),
    "subset_selection": (local.subset_selection(categories=7, epsilon=1), CODES),
    "rappor": (local.rappor(categories=7, epsilon=1, permanent_epsilon=2), CODES),
    "l_osue": (local.l_osue(categories=7, epsilon=1, permanent_epsilon=2), CODES),
    "l_olh": (local.longitudinal_olh(categories=7, epsilon=1, permanent_epsilon=2), CODES),
    "duchi": (local.duchi(epsilon=1, lower=0, upper=1), NUMBERS),
    "piecewise": (local.piecewise_mean(epsilon=1, lower=0, upper=1), NUMBERS),
    "balanced": (local.balanced_piecewise(epsilon=1, lower=0, upper=1), NUMBERS),
    "hybrid": (local.hybrid_mean(epsilon=2, lower=0, upper=1), NUMBERS),
    "local_laplace": (local.local_laplace(epsilon=1, lower=-2, upper=3), NUMBERS),
    "several": (
        local.multidimensional_mean(columns={"a": (0, 1), "b": (-1, 1)}, epsilon=1),
        {"a": NUMBERS, "b": NUMBERS[::-1]},
    ),
    "square_wave": (local.square_wave(cells=16, epsilon=1), NUMBERS),
    "ranges.tree": (
        local.hierarchical_histogram(domain=local.integers(0, 63), epsilon=1, branching=4),
        AGES,
    ),
    "ranges.flat": (local.flat_histogram(domain=local.integers(0, 63), epsilon=1), AGES),
    "ranges.haar": (local.haar_wavelet(domain=local.integers(0, 63), epsilon=1), AGES),
    "ranges.partition": (
        local.adaptive_hierarchy(
            domain=local.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 16)), epsilon=1
        ).randomizer,
        DAYS,
    ),
    "grid": (
        local.hybrid_grid(
            {"a": local.integers(0, 15), "b": local.integers(0, 7)}, epsilon=1, fine=4, coarse=2
        ),
        {"a": [age % 16 for age in AGES], "b": [age % 8 for age in AGES]},
    ),
    "heavy_hitters": (
        local.heavy_hitters(length=4, epsilon=3, cell_digits=8, step=8, most=8),
        WORDS,
    ),
}


def encoded(name: str) -> Reports:
    """Reports of seeded clients."""
    randomizer, values = MADE[name]
    given = values if isinstance(values, Mapping) else np.array(values)
    return randomizer.randomize(given, rng=seeded_rng(100 + list(MADE).index(name)))
