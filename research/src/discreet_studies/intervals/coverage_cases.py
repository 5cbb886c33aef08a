"""Every interval of this package with a law on which its coverage can be counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv

from discreet.intervals._bootstrap import MeanBootstrap
from discreet.intervals._coverage import CoverageEstimate, Draw, Method, coverage, per_column
from discreet.intervals._mean import difference_interval, mean_interval, variance_interval
from discreet.intervals._proportion import proportion_interval
from discreet.intervals._quantile import quantile_interval
from discreet.intervals.interval import Interval
from discreet.local import report_intervals as reports
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource
from discreet_studies.intervals.mean_comparison import DISTRIBUTIONS

_LEVEL = 0.95
_SCALE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCase:
    """An interval, made-up columns, and the parameter it should hold."""

    method: Method
    draw: Draw
    truth: float
    rows: int
    guaranteed: bool
    """Or only for so many rows that estimates are normal; None of them for a bootstrap."""

    def run(self, *, trials: int, seed: int = 0) -> CoverageEstimate:
        """Count."""
        return coverage(
            self.method,
            draw=self.draw,
            truth=self.truth,
            rows=self.rows,
            confidence=_LEVEL,
            trials=trials,
            seed=seed,
        )


def entries() -> dict[str, CoverageCase]:
    """All of them, by name."""
    return {**_means(), **_others(), **_reports()}


def _means() -> dict[str, CoverageCase]:
    uniform, truth, std = DISTRIBUTIONS["uniform"]
    found = {}
    for name, method in (("mean", "safe"), ("mean, calibrated", "calibrated")):
        plan = mean_interval(lower=0, upper=1, public_rows=200, epsilon=1, std=std, method=method)  # type: ignore[arg-type]
        found[name] = CoverageCase(
            method=plan.simulate, draw=uniform, truth=truth, rows=200, guaranteed=False
        )
    sure = mean_interval(lower=0, upper=1, public_rows=100, epsilon=2, std=0.1, assume="nothing")
    found["mean, nothing assumed"] = CoverageCase(
        method=sure.simulate, draw=_rare, truth=0.02, rows=100, guaranteed=True
    )
    model = mean_interval(lower=0, upper=1, public_rows=100, epsilon=1, share=Fraction(3, 10))
    found["mean, bootstrap"] = CoverageCase(
        method=MeanBootstrap(plan=model, trials=100).simulate,
        draw=uniform,
        truth=truth,
        rows=100,
        guaranteed=False,
    )
    return found


def _others() -> dict[str, CoverageCase]:
    uniform, _, std = DISTRIBUTIONS["uniform"]
    beta = DISTRIBUTIONS["beta 2 5"][0]
    middle = float(betaincinv(2, 5, 0.5))
    proportion = proportion_interval(public_rows=100, epsilon=1)
    variance = variance_interval(lower=0, upper=1, public_rows=400, epsilon=2, std=std)
    sure = variance_interval(lower=0, upper=1, public_rows=100, epsilon=2, assume="nothing")
    groups = difference_interval(lower=0, upper=1, public_rows=(120, 80), epsilon=1, std=std)
    median = quantile_interval(lower=0, upper=1, public_rows=200, epsilon=2, std=0.2)
    third = quantile_interval(
        Fraction(3, 10), lower=0, upper=1, public_rows=200, epsilon=2, std=0.3
    )
    return {
        "proportion": CoverageCase(
            method=proportion.simulate, draw=_rare, truth=0.02, rows=100, guaranteed=True
        ),
        "variance": CoverageCase(
            method=variance.simulate, draw=uniform, truth=1 / 12, rows=400, guaranteed=False
        ),
        "variance, nothing assumed": CoverageCase(
            method=sure.simulate, draw=_rare, truth=0.02 * 0.98, rows=100, guaranteed=True
        ),
        "difference": CoverageCase(
            method=groups.simulate, draw=_groups, truth=0.2, rows=200, guaranteed=False
        ),
        "median": CoverageCase(
            method=median.simulate, draw=beta, truth=middle, rows=200, guaranteed=True
        ),
        "quantile": CoverageCase(
            method=third.simulate, draw=uniform, truth=0.3, rows=200, guaranteed=True
        ),
    }


def _reports() -> dict[str, CoverageCase]:
    uniform = DISTRIBUTIONS["uniform"][0]
    beta = DISTRIBUTIONS["beta 2 5"][0]
    middle = float(betaincinv(2, 5, 0.5))

    def noisy(draw: Draw) -> Draw:
        return lambda g, size: np.asarray(draw(g, size) + g.laplace(0, _SCALE, size))

    def lied(g: np.random.Generator, size: tuple[int, int]) -> Floats:
        lies = g.random(size) < 1 / (1 + math.e)
        return np.asarray((_rare(g, size) > 0) ^ lies, dtype=np.float64)

    def entry(
        read: Callable[[Floats], Interval], draw: Draw, truth: float, *, rows: int = 500,
        guaranteed: bool = False,
    ) -> CoverageCase:  # fmt: skip
        return CoverageCase(
            method=_read(read), draw=draw, truth=truth, rows=rows, guaranteed=guaranteed
        )

    return {
        "reports, mean": entry(reports.mean_from_reports, noisy(uniform), 0.5),
        "reports, variance": entry(
            lambda c: reports.variance_from_reports(c, scale=_SCALE), noisy(uniform), 1 / 12,
            rows=2000,
        ),
        "reports, difference": entry(
            lambda c: reports.difference_from_reports(c[:300], c[300:]), noisy(uniform), 0.0
        ),
        "reports, proportion": entry(
            lambda c: reports.proportion_from_reports(c, epsilon=1), lied, 0.02, guaranteed=True
        ),
        "reports, median": entry(
            lambda c: reports.quantile_from_reports(c, lower=0, upper=1, scale=_SCALE),
            noisy(beta), middle, guaranteed=True,
        ),
    }  # fmt: skip


def _read(read: Callable[[Floats], Interval]) -> Method:
    def ends(column: Floats, _bits: RandomSource) -> tuple[float, float]:
        found = read(column)
        return found.low, found.high

    return per_column(ends)


def _rare(g: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray(g.random(size) < 0.02, dtype=np.float64)


def _groups(g: np.random.Generator, size: tuple[int, int]) -> Floats:
    """The first 120 rows are 0.2 higher, and spread differently."""
    rows = g.random(size) * 0.6
    rows[:, :120] = 0.3 + 0.4 * g.random((size[0], 120))
    return np.asarray(rows)
