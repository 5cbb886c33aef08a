"""Parametric bootstrap: what was released is simulated again, clipping and noise included."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.intervals.interval import Interval
from discreet.intervals.statistics import MeanStatistic
from discreet.intervals.studentized import StudentizedInterval
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, seeded_rng

Model: TypeAlias = Callable[[np.random.Generator, tuple[int, int], float, float], Floats]
"""A table of made-up rows of a law with this mean and standard deviation."""
_CELLS = 1 << 21
# Below this part of the range clipping is left out of the fit; and how often it is improved.
_NARROW = 1e-3
_STEPS = 60


def bootstrap(
    plan: StudentizedInterval,
    answer: Interval,
    *,
    model: Model | None = None,
    trials: int = 1000,
    seed: int = 0,
) -> Interval:
    """Compute a bootstrap interval for a mean that was released.

    It simulates columns from a model with the released mean and variance, with the same clipping
    and noise. Nothing private is read, so it costs no budget. This is a heuristic: where the noise
    of the variance is large, it covers less often than its confidence level.

    Args:
        plan: Plan made by `discreet.intervals.mean` that releases a variance or knows it.
        answer: Interval that the plan released.
        model: Function `(generator, size, mean, std)` that draws a table of rows. By default normal
            rows that have the released mean and variance after clipping.
        trials: Number of simulated columns, at least 20.
        seed: Seed of the simulation.

    Returns:
        An interval whose `guaranteed` coverage is None.

    Raises:
        InvalidArgument: `trials` is too small, or the plan has neither a released nor a known
            variance.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.mean(
        ...     lower=0, upper=10, public_rows=1_000, epsilon=1, variance=4
        ... )
        >>> interval = discreet.intervals.bootstrap(plan, plan.release([5] * 1_000), trials=20)
        >>> interval.low <= interval.high
        True

    References:
        Ferrando, Wang and Sheldon (2022).
    """
    # Source: Ferrando, Wang, Sheldon 2022.
    # Needs: a plan of `mean_interval` that released a variance, or knows it.
    many = check.count("trials", trials, minimum=20)
    again = MeanBootstrap(plan=plan, model=model, trials=many)
    return again.interval(answer.released, np.random.default_rng(seed), seeded_rng(seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanBootstrap:
    """The same for many columns, for `coverage`."""

    plan: StudentizedInterval
    model: Model | None = None
    trials: int = 300

    def simulate(self, tables: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        """Ends of one interval for each row of ``tables``."""
        found = self.plan.answers(tables, rng)
        made_up = np.random.default_rng(rng.words(2))
        ends = [
            self.interval(tuple(float(part[i]) for part in found.released), made_up, rng)
            for i in range(len(tables))
        ]
        return np.array([one.low for one in ends]), np.array([one.high for one in ends])

    def interval(
        self, released: tuple[float, ...], made_up: np.random.Generator, rng: RandomSource
    ) -> Interval:
        """From the noisy mean and, if there is one, its noisy squared error."""
        plan = self.plan
        if not isinstance(plan.statistic, MeanStatistic) or not released:
            raise InvalidArgument("plan must be one of mean_interval, and answer its release.")
        error = plan.known if plan.known is not None else (*released, None)[1]
        if error is None:
            raise InvalidArgument(
                "plan must release a variance or know it: share=0 leaves no model to simulate."
            )
        low, high = plan.statistic.bounds
        mean = min(max(released[0], low), high)
        std = min(max(error, 0.0), plan.statistic.most) * plan.public_rows
        off = self._errors(mean, float(np.sqrt(std)), made_up, rng)
        tail = (1 - plan.confidence) / 2
        below, above = np.quantile(off, (tail, 1 - tail))
        ends = np.clip((released[0] - above, released[0] - below), low, high)
        return Interval(
            low=float(ends[0]),
            high=float(ends[1]),
            value=released[0],
            spread=float(np.sqrt(std)),
            nominal=plan.confidence,
            guaranteed=None,
            released=released,
        )

    def _errors(
        self, mean: float, std: float, made_up: np.random.Generator, rng: RandomSource
    ) -> Floats:
        """Noisy means of made-up columns less the mean of the clipped model."""
        plan, found, total = self.plan, [], 0.0
        low, high = plan.statistic.bounds
        model, given = self.model, (mean, std)
        if model is None:
            model, given = _normal, fit_clipped_normal(mean, std, low, high)
        piece = max(1, _CELLS // plan.public_rows)
        for start in range(0, self.trials, piece):
            size = (min(piece, self.trials - start), plan.public_rows)
            table = np.clip(model(made_up, size, *given), low, high)
            total += float(table.sum())
            found.append(plan.noisy(*plan.statistic.numbers(table), rng)[0])
        return np.asarray(np.concatenate(found) - total / (self.trials * plan.public_rows))


def _normal(made_up: np.random.Generator, size: tuple[int, int], mean: float, std: float) -> Floats:
    return made_up.normal(mean, std, size)


def fit_clipped_normal(mean: float, std: float, low: float, high: float) -> tuple[float, float]:
    """Mean and deviation of normal rows that have these once they are clipped, or nearly."""
    width = high - low
    if std < _NARROW * width:
        return mean, std
    center, spread = mean, std
    for _ in range(_STEPS):
        found, deviation = _clipped(center, spread, low, high)
        center = min(max(center + mean - found, low - width), high + width)
        spread = min(spread * std / deviation, 4 * width)
    return center, spread


def _clipped(mean: float, std: float, low: float, high: float) -> tuple[float, float]:
    """Mean and deviation of clipped normal rows."""
    a, b = (low - mean) / std, (high - mean) / std
    inside = float(ndtr(b) - ndtr(a))
    f, g = (math.exp(-end * end / 2) / math.sqrt(2 * math.pi) for end in (a, b))
    first = a * float(ndtr(a)) + b * float(ndtr(-b)) + f - g
    second = a * a * float(ndtr(a)) + b * b * float(ndtr(-b)) + inside + a * f - b * g
    return mean + std * first, std * math.sqrt(max(second - first**2, 1e-12))
