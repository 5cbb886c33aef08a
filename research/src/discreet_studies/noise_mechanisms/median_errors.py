"""How well each private median does, on made-up columns of different shapes.

For choosing a mechanism before any data are touched, and for figures. The columns are quantiles of
a law at evenly spaced levels: the same each time, so that all differences are the mechanisms'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from discreet.core._rational import Number
from discreet.core._validate import count
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.quantiles import private_quantile
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, seeded_rng

LOWER, UPPER = 0, 100
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianError:
    """One mechanism on one column."""

    shape: str
    mechanism: str
    mean_absolute: float
    root_mean_square: float
    mean_ranks: float
    """How many rows lie between the answer and the median, on average."""


def shapes(rows: int) -> Mapping[str, Floats]:
    """Made-up columns between 0 and 100."""
    p = (np.arange(count("rows", rows)) + 0.5) / rows
    two = np.concatenate((stats.norm(25, 3).ppf(p), stats.norm(75, 3).ppf(p)))[::2]
    columns = {
        "uniform": 100 * p,
        "normal": stats.norm(50, 10).ppf(p),
        "narrow normal": stats.norm(20, 0.5).ppf(p),
        "exponential": stats.expon(scale=10).ppf(p),
        "heavy-tailed": stats.lomax(1.5, scale=5).ppf(p),
        "skewed": 100 * stats.beta(2, 8).ppf(p),
        "two groups": two,
        "whole numbers": stats.norm(40, 15).ppf(p).round(),
        "half zeros": np.maximum(0.0, 200 * (p - 0.55)),
    }
    return {name: np.clip(column, LOWER, UPPER) for name, column in columns.items()}


def mechanisms(
    rows: int, *, epsilon: Number = 1, delta: Number = 1e-6
) -> Mapping[str, Callable[[Floats, RandomSource], float]]:
    """All private medians for a public number of rows. Those with "δ" are not pure."""
    public = {"lower": LOWER, "upper": UPPER, "epsilon": epsilon}
    smooth_median = partial(smooth_sensitivity, "median", public_rows=rows, **public)  # type: ignore[arg-type]
    choose = partial(private_quantile, relation=NeighboringRelation.REPLACE_ONE, **public)  # type: ignore[arg-type]
    plain = laplace(
        sensitivity=UPPER - LOWER,
        epsilon=epsilon,
        domain="reals",
        relation=NeighboringRelation.REPLACE_ONE,
    )
    return {
        "interpolated choice": _released(choose(method="interpolated").release),
        "exponential mechanism": _released(choose(method="exponential").release),
        "smooth, Lomax": _released(smooth_median(noise="lomax").release),
        "smooth, Cauchy": _released(smooth_median(noise="cauchy").release),
        "smooth, Laplace, δ": _released(smooth_median(noise="laplace", delta=delta).release),
        "smooth, Gaussian, δ": _released(smooth_median(noise="gaussian", delta=delta).release),
        "weighted, Laplace, δ": _released(
            weighted_sensitivity("median", public_rows=rows, delta=delta, **public).release  # type: ignore[arg-type]
        ),
        "Laplace, global": lambda values, bits: float(
            np.clip(plain.release(float(np.median(values)), rng=bits), LOWER, UPPER)
        ),
    }


def median_errors(
    *, rows: int = 1001, epsilon: Number = 1, delta: Number = 1e-6, trials: int = 200
) -> tuple[MedianError, ...]:
    """Errors of every mechanism on every shape, over seeded ``trials``; shapes in turn."""
    known = mechanisms(rows, epsilon=epsilon, delta=delta)
    found = []
    for shape, values in shapes(rows).items():
        ordered, truth = np.sort(values), float(np.median(values))
        for name, release in known.items():
            bits = seeded_rng(_SEED)
            answers = np.array([release(values, bits) for _ in range(trials)])
            errors = answers - truth
            found.append(
                MedianError(
                    shape=shape,
                    mechanism=name,
                    mean_absolute=float(np.abs(errors).mean()),
                    root_mean_square=float(np.sqrt(np.square(errors).mean())),
                    mean_ranks=float(_ranks(ordered, answers).mean()),
                )
            )
    return tuple(found)


def _ranks(ordered: Floats, answers: Floats) -> Floats:
    """Distance of each answer's ranks from the middle, 0 if it is a median."""
    middle = len(ordered) / 2
    low = np.searchsorted(ordered, answers) - middle
    high = middle - np.searchsorted(ordered, answers, side="right")
    ranks: Floats = np.maximum(np.maximum(low, high), 0.0)
    return ranks


def _released(release: Callable[..., float]) -> Callable[[ArrayLike, RandomSource], float]:
    return lambda values, bits: release(values, rng=bits)
