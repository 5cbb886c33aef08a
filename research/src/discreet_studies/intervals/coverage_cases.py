"""Every interval of this package with a law on which its coverage can be counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import betaincinv

from discreet.intervals._bootstrap import Bootstrap
from discreet.intervals._coverage import Coverage, Draw, Method, coverage, each
from discreet.intervals._mean import difference_interval, mean_interval, variance_interval
from discreet.intervals._proportion import proportion_interval
from discreet.intervals._quantile import quantile_interval
from discreet.intervals.interval import Interval
from discreet.local import report_intervals as reports
from discreet.noise.distribution import Floats
from discreet.noise.random_source import Bits
from discreet_studies.intervals.mean_comparison import LAWS

_LEVEL = 0.95
_SCALE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An interval, made-up columns, and the parameter it should hold."""

    method: Method
    draw: Draw
    truth: float
    rows: int
    guaranteed: bool
    """Or only for so many rows that estimates are normal; None of them for a bootstrap."""

    def run(self, *, trials: int, seed: int = 0) -> Coverage:
        """Count."""
        return coverage(
            self.method,
            draw=self.draw,
            truth=self.truth,
            rows=self.rows,
            level=_LEVEL,
            trials=trials,
            seed=seed,
        )


def entries() -> dict[str, Entry]:
    """All of them, by name."""
    return {**_means(), **_others(), **_reports()}


def _means() -> dict[str, Entry]:
    uniform, truth, std = LAWS["uniform"]
    found = {}
    for name, method in (("mean", "safe"), ("mean, calibrated", "calibrated")):
        plan = mean_interval(lower=0, upper=1, rows=200, epsilon=1, std=std, method=method)  # type: ignore[arg-type]
        found[name] = Entry(
            method=plan.simulate, draw=uniform, truth=truth, rows=200, guaranteed=False
        )
    sure = mean_interval(lower=0, upper=1, rows=100, epsilon=2, std=0.1, assume="nothing")
    found["mean, nothing assumed"] = Entry(
        method=sure.simulate, draw=_rare, truth=0.02, rows=100, guaranteed=True
    )
    model = mean_interval(lower=0, upper=1, rows=100, epsilon=1, share=Fraction(3, 10))
    found["mean, bootstrap"] = Entry(
        method=Bootstrap(plan=model, trials=100).simulate,
        draw=uniform,
        truth=truth,
        rows=100,
        guaranteed=False,
    )
    return found


def _others() -> dict[str, Entry]:
    uniform, _, std = LAWS["uniform"]
    beta = LAWS["beta 2 5"][0]
    middle = float(betaincinv(2, 5, 0.5))
    proportion = proportion_interval(rows=100, epsilon=1)
    variance = variance_interval(lower=0, upper=1, rows=400, epsilon=2, std=std)
    sure = variance_interval(lower=0, upper=1, rows=100, epsilon=2, assume="nothing")
    groups = difference_interval(lower=0, upper=1, rows=(120, 80), epsilon=1, std=std)
    median = quantile_interval(lower=0, upper=1, rows=200, epsilon=2, std=0.2)
    third = quantile_interval(Fraction(3, 10), lower=0, upper=1, rows=200, epsilon=2, std=0.3)
    return {
        "proportion": Entry(
            method=proportion.simulate, draw=_rare, truth=0.02, rows=100, guaranteed=True
        ),
        "variance": Entry(
            method=variance.simulate, draw=uniform, truth=1 / 12, rows=400, guaranteed=False
        ),
        "variance, nothing assumed": Entry(
            method=sure.simulate, draw=_rare, truth=0.02 * 0.98, rows=100, guaranteed=True
        ),
        "difference": Entry(
            method=groups.simulate, draw=_groups, truth=0.2, rows=200, guaranteed=False
        ),
        "median": Entry(method=median.simulate, draw=beta, truth=middle, rows=200, guaranteed=True),
        "quantile": Entry(
            method=third.simulate, draw=uniform, truth=0.3, rows=200, guaranteed=True
        ),
    }


def _reports() -> dict[str, Entry]:
    uniform = LAWS["uniform"][0]
    beta = LAWS["beta 2 5"][0]
    middle = float(betaincinv(2, 5, 0.5))

    def noisy(draw: Draw) -> Draw:
        return lambda g, size: np.asarray(draw(g, size) + g.laplace(0, _SCALE, size))

    def lied(g: np.random.Generator, size: tuple[int, int]) -> Floats:
        lies = g.random(size) < 1 / (1 + math.e)
        return np.asarray((_rare(g, size) > 0) ^ lies, dtype=np.float64)

    def entry(
        read: Callable[[Floats], Interval], draw: Draw, truth: float, *, rows: int = 500,
        guaranteed: bool = False,
    ) -> Entry:  # fmt: skip
        return Entry(method=_read(read), draw=draw, truth=truth, rows=rows, guaranteed=guaranteed)

    return {
        "reports, mean": entry(reports.reports_interval, noisy(uniform), 0.5),
        "reports, variance": entry(
            lambda c: reports.reports_variance_interval(c, scale=_SCALE), noisy(uniform), 1 / 12,
            rows=2000,
        ),
        "reports, difference": entry(
            lambda c: reports.reports_difference(c[:300], c[300:]), noisy(uniform), 0.0
        ),
        "reports, proportion": entry(
            lambda c: reports.reports_proportion(c, epsilon=1), lied, 0.02, guaranteed=True
        ),
        "reports, median": entry(
            lambda c: reports.reports_quantile(c, lower=0, upper=1, scale=_SCALE),
            noisy(beta), middle, guaranteed=True,
        ),
    }  # fmt: skip


def _read(read: Callable[[Floats], Interval]) -> Method:
    def ends(column: Floats, _bits: Bits) -> tuple[float, float]:
        found = read(column)
        return found.low, found.high

    return each(ends)


def _rare(g: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray(g.random(size) < 0.02, dtype=np.float64)


def _groups(g: np.random.Generator, size: tuple[int, int]) -> Floats:
    """The first 120 rows are 0.2 higher, and spread differently."""
    rows = g.random(size) * 0.6
    rows[:, :120] = 0.3 + 0.4 * g.random((size[0], 120))
    return np.asarray(rows)
