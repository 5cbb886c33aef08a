"""Intervals for a mean against published ones, at the same coverage, over a grid of cases.

A published interval plugs a noisy variance into the normal one. It counts where a simulation does
not refute its level; and to compare at the same coverage, its half-widths are multiplied by what
makes it cover just as often as ours does, which nobody could do without knowing the law.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.intervals._coverage import CoverageEstimate, Draw
from discreet.intervals._mean import mean_interval
from discreet.intervals.statistics import IntervalStatistic
from discreet.intervals.studentized import Method, StudentizedInterval
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, seeded_rng


def _narrow(made_up: np.random.Generator, size: tuple[int, int]) -> Floats:
    return np.asarray(0.5 + 0.1 * np.clip(made_up.standard_normal(size), -5, 5))


DISTRIBUTIONS: dict[str, tuple[Draw, float, float]] = {
    "uniform": (lambda g, size: g.random(size), 1 / 2, 12**-0.5),
    "beta 2 5": (lambda g, size: g.beta(2, 5, size), 2 / 7, math.sqrt(10 / 392)),
    "beta 2 50": (lambda g, size: g.beta(2, 50, size), 1 / 26, math.sqrt(100 / (52**2 * 53))),
    "yes or no": (
        lambda g, size: np.asarray(g.random(size) < 0.3, dtype=np.float64),
        0.3,
        math.sqrt(0.21),
    ),
    "normal": (_narrow, 0.5, 0.1),
}
"""Laws on [0, 1]: how to draw, mean, standard deviation."""
ROWS = (100, 300, 1000)
EPSILONS = (0.1, 0.5, 1.0, 5.0)
SPLITS = (Fraction(1, 2), Fraction(1, 10), Fraction(1, 50))
_DELTA = 1e-5
_CELLS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A published interval in one case."""

    noise: str
    coverage: CoverageEstimate
    matched: float
    """Mean width, tuned so that it covers as often as ours."""

    @property
    def counts(self) -> bool:
        """Whether its level is not refuted here, at 99.9 %."""
        return self.coverage.bounds()[1] >= self.coverage.nominal


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCase:
    """Our interval and its rivals, for one law, number of rows and epsilon."""

    law: str
    rows: int
    epsilon: float
    ours: CoverageEstimate
    width: float
    """Mean width of ours."""
    rivals: tuple[Rival, ...]

    def ratio(self, *, tuned: bool = False) -> float:
        """Our width over the best rival's; of ``tuned`` rivals even those that fall short count."""
        widths = [rival.matched for rival in self.rivals if tuned or rival.counts]
        return self.width / min(widths) if widths else 0.0


def against_published(
    *,
    method: Method = "safe",
    rows: Sequence[int] = ROWS,
    epsilons: Sequence[float] = EPSILONS,
    laws: Iterable[str] = tuple(DISTRIBUTIONS),
    level: float = 0.95,
    trials: int = 20_000,
    seed: int = 0,
) -> list[ComparisonCase]:
    """Each case of the grid, with both our guesses (of mean and deviation) right."""
    return [
        case
        for size in rows
        for name in laws
        for case in _Column(name=name, rows=size, level=level, seed=seed).cases(
            epsilons, method, trials
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    name: str
    rows: int
    level: float
    seed: int

    def cases(
        self, epsilons: Sequence[float], method: Method, trials: int
    ) -> Iterator[ComparisonCase]:
        """The same made-up columns for every epsilon."""
        draw, truth, std = DISTRIBUTIONS[self.name]
        statistic = self._plan(1.0).statistic
        numbers = _numbers(statistic, draw, np.random.default_rng(self.seed), trials)
        for epsilon in epsilons:
            bits = seeded_rng(self.seed)
            ours = mean_interval(
                lower=0,
                upper=1,
                public_rows=self.rows,
                confidence=self.level,
                epsilon=epsilon,
                std=std,
                mean=truth,
                method=method,
            )
            found = ours.read(*ours.noisy(*numbers, bits))
            measured = _measured(found.low, found.high, truth, self.level)
            rivals = [
                _rival(
                    self._plan(epsilon, share=share, delta=delta), numbers, bits, truth, measured
                )
                for share in SPLITS
                for delta in (0.0, _DELTA)
            ]
            yield ComparisonCase(
                law=self.name,
                rows=self.rows,
                epsilon=epsilon,
                ours=measured,
                width=float(np.mean(found.high - found.low)),
                rivals=tuple(rivals),
            )

    def _plan(
        self, epsilon: float, *, share: Fraction = SPLITS[0], delta: float = 0.0
    ) -> StudentizedInterval:
        return mean_interval(
            lower=0,
            upper=1,
            public_rows=self.rows,
            confidence=self.level,
            epsilon=epsilon,
            delta=delta,
            share=share,
            method="published",
        )


def _numbers(
    statistic: IntervalStatistic, draw: Draw, made_up: np.random.Generator, trials: int
) -> tuple[Floats, Floats]:
    piece = max(1, _CELLS // statistic.rows)
    parts = [
        statistic.numbers(draw(made_up, (min(piece, trials - start), statistic.rows)))
        for start in range(0, trials, piece)
    ]
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def _measured(low: Floats, high: Floats, truth: float, level: float) -> CoverageEstimate:
    lower, middle, upper = np.quantile(high - low, (0.25, 0.5, 0.75))
    return CoverageEstimate(
        held=int(((low <= truth) & (truth <= high)).sum()),
        trials=len(low),
        nominal=level,
        width=float(middle),
        quartiles=(float(lower), float(upper)),
        plain=math.nan,
    )


def _rival(
    plan: StudentizedInterval,
    numbers: tuple[Floats, Floats],
    rng: RandomSource,
    truth: float,
    ours: CoverageEstimate,
) -> Rival:
    value, error = plan.noisy(*numbers, rng)
    read, half = plan.read(value, error), plan.half(error)
    factor = float(np.quantile(np.abs(value - truth) / half, ours.rate))
    widths = np.clip(value + factor * half, 0, 1) - np.clip(value - factor * half, 0, 1)
    return Rival(
        noise=plan.center.name,
        coverage=_measured(read.low, read.high, truth, ours.nominal),
        matched=float(np.mean(widths)),
    )


def summary(cases: Sequence[ComparisonCase], *, slack: float = 0.01) -> str:
    """How the grid went, in words; ``slack`` is for the error of the simulation."""
    many, low = len(cases), min(case.ours.rate for case in cases)
    holds = sum(case.ours.holds() for case in cases)
    counted = sum(case.ratio() <= 1 + slack for case in cases)
    tuned = sum(case.ratio(tuned=True) <= 1 + slack for case in cases)
    worst = max(case.ratio(tuned=True) for case in cases)
    short = min(rival.coverage.rate for case in cases for rival in case.rivals)
    return (
        f"lowest coverage {low:.4f} (published: {short:.3f}); holds at 99.9 % in {holds} of {many} "
        f"cases; no wider than the best published one that holds in {counted}, than the best tuned "
        f"one in {tuned}; at most {100 * (worst - 1):.1f} % wider"
    )
