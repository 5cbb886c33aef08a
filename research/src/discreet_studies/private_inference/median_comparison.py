"""E1: the median with noise before and after the query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.quantiles import private_quantile
from discreet.noise.distribution import Floats
from discreet_studies.audits.published_distributions import laplace_delta
from discreet_studies.checks import Claims
from discreet_studies.noise_mechanisms.disclosure_control import ages
from discreet_studies.private_inference.reference_values import Mode
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_WIDTH = 110.0
_EPSILON = 1.0
_ROWS = 659
_POINTS = 200
_STANDS_IN = (
    "The file of 659 ages is not at hand: ages are drawn within the counts of its twelve bins."
)
_CODED = Claims(source="Biswal 2024, figure 5.15, listing A.0.6")
_NOT_PRIVATE = Claims(
    source="M7",
    why="The listing takes |median(0..109) - median(1..110)| = 1 for the global sensitivity of a "
    "median on [0, 110]; it is 110. What it plots is not private.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Bias and deviation of a noisy statistic of given data."""

    bias: float
    std: float


def medians(setting: StudySetting) -> Findings:
    """Noise on every age, on the median, and a choice by rank."""
    x = ages(setting.rng("E1"))
    before, chosen = noisy_median(x, _WIDTH / _EPSILON), chosen_median(x)
    return Findings(
        checks=(
            *_coded(before),
            *_ranking(before, chosen),
            *_simulated(setting, x, before),
            *_skew(),
            *_means(),
        ),
        tables=(_table(before, chosen),),
        figures=(_figure(x),),
    )


def output_std(mode: Mode) -> float:
    """Deviation of Laplace noise on the median: for a sensitivity of 1 as coded, of 110 else."""
    return math.sqrt(2) * (1.0 if mode == "as_coded" else _WIDTH) / _EPSILON


def noisy_median(x: Floats, scale: float) -> Error:
    """The median of an odd number of rows with Laplace noise on each, exactly.

    The median is below t if more than half of the rows are: a sum of independent, unequal coins,
    whose law is built up row by row for all t at once.
    """
    middle, spread = float(np.median(x)), scale * 10 / math.sqrt(len(x)) + float(np.ptp(x))
    at = np.linspace(middle - spread, middle + spread, _POINTS)
    z = (at[:, None] - x) / scale
    below = np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)
    half = (len(x) + 1) // 2
    # Number of rows below, up to `half`, where it stays.
    law = np.zeros((_POINTS, half + 1))
    law[:, 0] = 1.0
    for p in below.T[:, :, None]:
        moved = law[:, :-1] * p
        law[:, :-1] -= moved
        law[:, 1:] += moved
    masses = np.diff(law[:, half])
    centers = (at[1:] + at[:-1]) / 2 - middle
    bias = float(centers @ masses)
    # A law cut into bins of width h has h^2/12 more variance.
    variance = float((centers - bias) ** 2 @ masses) - (at[1] - at[0]) ** 2 / 12
    return Error(bias=bias, std=math.sqrt(variance))


def chosen_median(x: Floats, *, epsilon: float = _EPSILON) -> Error:
    """The exponential mechanism on ranks: the exact law of what this package would release."""
    grid = Fraction(1, 64)
    made = private_quantile(
        lower=0, upper=int(_WIDTH), epsilon=Fraction(epsilon), method="exponential",
        granularity=grid,
        relation=NeighboringRelation.REPLACE_ONE,
    )  # fmt: skip
    law = made.probabilities(x)
    away = np.arange(len(law)) * float(grid) - float(np.median(x))
    bias = float(law @ away)
    return Error(bias=bias, std=math.sqrt(float(law @ (away - bias) ** 2)))


def _coded(before: Error) -> list[StudyCheck]:
    coded = output_std("as_coded")
    return [
        _CODED.number("E1/post, as coded", "deviation of the noise on the median, as coded",
                      expected=1.41, got=coded, relative=0.05),
        _CODED.number("E1/spread, as coded", "deviation with noise on rows over that, as coded",
                      expected=3.3, got=before.std / coded, absolute=0.1),
        _NOT_PRIVATE.number("E1/true delta, as coded", "true delta at epsilon 1, 0 claimed",
                            expected=1.0, absolute=1e-9,
                            got=laplace_delta(_EPSILON, left=1.0, right=1.0, shift=_WIDTH)),
        Claims(source="M7", why="The listing takes 18.5/659 = 0.028 for it.").number(
            "E1/variance", "global sensitivity of the variance, range 110, 659 rows",
            expected=18.36, got=_WIDTH**2 / _ROWS, absolute=0.005),
        Claims(source="Biswal 2024, figure 5.15", why=_STANDS_IN).beyond(
            "E1/original ages", "the plotted medians of the original ages"),
    ]  # fmt: skip


def _ranking(before: Error, chosen: Error) -> list[StudyCheck]:
    stand_in = Claims(source="E1, C6", why=_STANDS_IN)
    right = Claims(
        source="M7, C6",
        why="Figure 5.15 shows that noise on the median wins; with the right sensitivity it loses "
        "to noise on the rows, and both lose to a choice by rank.",
    )
    after = output_std("corrected")
    return [
        stand_in.number("E1/pre, bias", "bias of the median of noisy ages", expected=1.76,
                        got=before.bias, absolute=0.3),
        stand_in.number("E1/pre, deviation", "deviation of the median of noisy ages",
                        expected=4.68, got=before.std, absolute=0.15),
        right.number("E1/post, deviation", "deviation of the noise on the median", expected=155.6,
                     got=after, absolute=0.05),
        stand_in.number("E1/choice, bias", "bias of the exponential mechanism", expected=0.03,
                        got=chosen.bias, absolute=0.12),
        stand_in.number("E1/choice, deviation", "deviation of the exponential mechanism",
                        expected=0.22, got=chosen.std, absolute=0.1),
        right.at_least("E1/ratio, low", "deviation of noise on the median over noise on rows",
                       expected=25.0, got=after / before.std),
        right.at_most("E1/ratio, high", "deviation of noise on the median over noise on rows",
                      expected=45.0, got=after / before.std),
        right.order("E1/order", "private medians by their deviation",
                    expected=("choice by rank", "noise on rows", "noise on the median"),
                    got={"noise on the median": after, "noise on rows": before.std,
                         "choice by rank": chosen.std}),
    ]  # fmt: skip


def _simulated(setting: StudySetting, x: Floats, before: Error) -> list[StudyCheck]:
    rng = setting.rng("E1 runs")
    runs = setting.times(20_000, quick=1_000)
    noisy = np.concatenate([
        np.median(x + rng.laplace(scale=_WIDTH / _EPSILON, size=(500, _ROWS)), axis=1)
        for _ in range(runs // 500)
    ])  # fmt: skip
    exact = Claims(source="C6")
    return [
        exact.simulated("E1/pre, simulated", f"bias of the median of noisy ages, {runs} runs",
                        values=noisy - np.median(x), expected=before.bias, spread=before.std),
        # Squares of a nearly normal error have a relative variance of 2.
        exact.simulated("E1/pre, variance, simulated", f"its variance, {runs} runs",
                        values=np.square(noisy - np.median(x) - before.bias),
                        expected=before.std**2, spread=1.5 * before.std**2),
    ]  # fmt: skip


def _skew() -> list[StudyCheck]:
    # Exp(1) + Laplace(2) is below t > 0 with probability 1 - e^(-t/2) + e^(-t)/3.
    noisy = -2 * math.log(1.5 * (1 - math.sqrt(1 / 3)))
    why = "The thesis calls the median of noisy rows unbiased; its law is that of rows plus noise."
    return list(
        Claims(source="M7", why=why).numbers(
            "E1/skewed",
            "median of an exponential law",
            expected={"with noise of scale 2": 0.92, "without": 0.69},
            got={"with noise of scale 2": noisy, "without": math.log(2)},
            absolute=0.01,
        )
    )


def _means() -> list[StudyCheck]:
    both = Claims(source="C1, C2, C3")
    matched = math.sqrt(_ROWS) * _EPSILON
    return [
        both.number("E1/mean, pre", "deviation of the mean of noisy ages", expected=6.06,
                    got=_WIDTH / _EPSILON * math.sqrt(2 / _ROWS), absolute=0.005),
        both.number("E1/mean, post", "deviation of the noise on the mean", expected=0.236,
                    got=math.sqrt(2) * _WIDTH / (_ROWS * _EPSILON), absolute=0.0005),
        Claims(source="C3", why="Typeset as the root of n times epsilon.").number(
            "E1/mean, matched", "variance of noisy rows at epsilon sqrt(n) over that of a noisy "
            "mean at epsilon 1", expected=1.0,
            got=2 / (matched**2 * _ROWS) * (_EPSILON * _ROWS) ** 2 / 2, absolute=1e-12),
    ]  # fmt: skip


def _table(before: Error, chosen: Error) -> StudyTable:
    return StudyTable(
        id="E1/medians",
        title="Median of 659 ages on [0, 110] at epsilon 1",
        columns=("mechanism", "mode", "bias", "standard deviation", "private"),
        rows=(
            ("Laplace noise on every age", "as_coded", before.bias, before.std, "yes"),
            ("Laplace noise on the median", "as_coded", 0.0, output_std("as_coded"), "no"),
            ("Laplace noise on the median", "as_text", 0.0, output_std("as_text"), "yes"),
            ("choice by rank", "corrected", chosen.bias, chosen.std, "yes"),
        ),
        note="Exact for one draw of the stand-in ages.",
    )


def _figure(x: Floats) -> Figure:
    epsilons = tuple(0.25 * 2**k for k in range(6))
    return Figure(
        id="E1/medians",
        title="Deviation of a private median of 659 ages",
        x="epsilon",
        y="standard deviation (years)",
        lines=(
            Line(
                label="noise on the median",
                x=epsilons,
                y=tuple(output_std("corrected") / e for e in epsilons),
            ),
            Line(
                label="noise on every age",
                x=epsilons,
                y=tuple(noisy_median(x, _WIDTH / e).std for e in epsilons),
            ),
            Line(
                label="noise on the median as coded: not private",
                x=epsilons,
                y=tuple(output_std("as_coded") / e for e in epsilons),
            ),
            Line(
                label="choice by rank",
                x=epsilons,
                y=tuple(chosen_median(x, epsilon=e).std for e in epsilons),
            ),
        ),
        note="exact for one draw of the stand-in ages, range 0 to 110",
        log_x=True,
        log_y=True,
    )
