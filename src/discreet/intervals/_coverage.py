"""Does an interval hold what it says? Coverage of any method, on made-up data, with its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.bits import Bits, seeded
from discreet.noise.law import Floats

Method: TypeAlias = Callable[[Floats, Bits], tuple[Floats, Floats]]
"""Ends of one interval for each row of a table of made-up columns."""
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""A table of independent numbers of the law under test."""

_CELLS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often an interval held the truth, in a simulation."""

    held: int
    trials: int
    nominal: float
    width: float
    """Median."""
    quartiles: tuple[float, float]
    """Of the width."""
    plain: float
    """Median width of the normal interval of the same columns, without privacy."""

    @property
    def rate(self) -> float:
        """Share of the trials in which the truth was held."""
        return self.held / self.trials

    def bounds(self, confidence: float = 0.999) -> tuple[float, float]:
        """Wilson's interval for the true coverage, one-sided on each side at ``confidence``."""
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        z = NormalDist().inv_cdf(inside)
        n, p = self.trials, self.rate
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, centre - half), min(1.0, centre + half)

    def holds(self, confidence: float = 0.999) -> bool:
        """Whether the true coverage is nominal or above, with this confidence."""
        return self.bounds(confidence)[0] >= self.nominal

    def __str__(self) -> str:
        low, high = self.bounds()
        return (
            f"coverage {self.rate:.4f} ({low:.4f} to {high:.4f}) of {self.nominal:g}, "
            f"width {self.width:.4g} ({self.plain:.4g} without privacy)"
        )


def coverage(
    method: Method,
    *,
    draw: Draw,
    truth: float,
    rows: int,
    level: float,
    trials: int = 20_000,
    seed: int = 0,
) -> Coverage:
    """Simulate an interval on made-up columns of a law whose parameter is known (C14).

    ``method(table, bits)`` gives the ends of one interval for each row of a table, like
    `MeanInterval.simulate`; `each` lifts a method for one column. Columns are made and given over
    in pieces, so that memory does not grow with ``trials``.
    """
    many, size = check.count("trials", trials), check.count("rows", rows, minimum=2)
    nominal = float(check.probability("level", level, zero=False, one=False))
    aim = float(check.finite("truth", truth))
    made_up, bits = np.random.default_rng(seed), seeded(seed)
    held, widths, plain = 0, np.empty(many), np.empty(many)
    z = 2 * NormalDist().inv_cdf((1 + nominal) / 2) / math.sqrt(size)
    piece = max(1, _CELLS // size)
    for start in range(0, many, piece):
        part = slice(start, min(start + piece, many))
        table = np.asarray(draw(made_up, (part.stop - start, size)), dtype=np.float64)
        if table.shape != (part.stop - start, size):
            raise InvalidArgument("draw must give a table of the size that it is asked for.")
        low, high = method(table, bits)
        if len(low) != len(table) or not np.all(low <= high):  # also catches NaN
            raise OutOfDomain("method must give one interval, low <= high, for each row.")
        held += int(((low <= aim) & (aim <= high)).sum())
        widths[part] = high - low
        plain[part] = z * table.std(axis=1, ddof=1)
    lower, middle, upper = np.quantile(widths, (0.25, 0.5, 0.75))
    return Coverage(
        held=held,
        trials=many,
        nominal=nominal,
        width=float(middle),
        quartiles=(float(lower), float(upper)),
        plain=float(np.median(plain)),
    )


def each(release: Callable[[Floats, Bits], tuple[float, float]]) -> Method:
    """A method for tables from one that gives the ends for one column."""

    def method(table: Floats, bits: Bits) -> tuple[Floats, Floats]:
        ends = np.array([release(column, bits) for column in table], dtype=np.float64)
        return ends[:, 0], ends[:, 1]

    return method
