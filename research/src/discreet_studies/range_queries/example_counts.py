"""Counts for the study: even ones, and daily visits to a library that never was.

The visits of the thesis (one library in Aarhus, 2014 to 2019) are not at hand, and its text prints
no total. The generator below stands in for them; real daily counts are in `studies/births.py`.
"""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np

from discreet.noise.distribution import Floats, Ints

SEED = 775147
"""The number of the library."""
PER_DAY = 300
"""Visits a day where all days are alike."""
_FIRST = date(2014, 1, 1)
_SHAPE = 8
_WEEK = (1.10, 1.12, 1.10, 1.12, 1.05, 0.95, 0.56)
_CLOSED = {(1, 1), (12, 24), (12, 25), (12, 26), (12, 31)}
_CLOSED_BY_CHANCE = 0.02


def even(days: int, *, per_day: int = PER_DAY) -> Ints:
    """The same count on every day."""
    return np.full(days, per_day, dtype=np.int64)


def visits(days: int) -> Ints:
    """Negative binomial visits with a week, a year, a July and closed days; always the same."""
    mean, closed = _means(days)
    rng = np.random.default_rng(SEED)
    drawn = rng.negative_binomial(_SHAPE, _SHAPE / (_SHAPE + mean))
    closed |= rng.random(days) < _CLOSED_BY_CHANCE
    return np.where(closed, 0, drawn).astype(np.int64)


def total_distribution(days: int) -> tuple[float, float]:
    """Mean and standard deviation of the total that `visits` draws."""
    mean, closed = _means(days)
    mean = np.where(closed, 0.0, mean)
    stay = 1 - _CLOSED_BY_CHANCE
    second = mean + mean**2 / _SHAPE + mean**2
    return float(stay * mean.sum()), math.sqrt((stay * second - (stay * mean) ** 2).sum())


def _means(days: int) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    dates = [_FIRST + timedelta(days=day) for day in range(days)]
    week = np.array([_WEEK[day.weekday()] for day in dates])
    july = np.array([day.month == 7 for day in dates])
    season = 0.15 * np.cos(2 * np.pi * (np.arange(days) - 20) / 365.25)
    closed = np.array([(day.month, day.day) in _CLOSED for day in dates])
    return 300 * week * (1 + season - 0.25 * july), closed
