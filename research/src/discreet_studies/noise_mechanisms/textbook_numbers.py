"""E11: numbers of the chapters on sensitivity, divergences and noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.audit import exact
from discreet.core import events
from discreet.core.relation import NeighboringRelation
from discreet_studies.audits import published_distributions as laws
from discreet_studies.checks import Claims
from discreet_studies.noise_mechanisms.normal_laplace import NormalLaplace
from discreet_studies.noise_mechanisms.output_divergences import normal_total_variation
from discreet_studies.noise_mechanisms.parallel_composition import RecordPartition, parallel
from discreet_studies.study import Findings, StudyCheck, StudySetting, StudyTable

_Query = Callable[[Sequence[float]], float]


def basics(setting: StudySetting) -> Findings:
    """Sensitivities by brute force, divergences and composition by closed forms."""
    rng = setting.rng("E11")
    return Findings(
        checks=(*_sensitivities(), *_variance(rng), *_gaussians(), *_sums(), *_compositions()),
        tables=(_sensitivity_table(),),
    )


# ── sensitivities, by every neighbor of small data ───────────────────────────────────────────


def _mean(x: Sequence[float]) -> float:
    return math.fsum(x) / len(x)


def _deviation(x: Sequence[float]) -> float:
    return math.sqrt(_spread(x))


def _spread(x: Sequence[float]) -> float:
    middle = _mean(x)
    return math.fsum((value - middle) ** 2 for value in x) / (len(x) - 1)


def _middle(x: Sequence[float]) -> float:
    return float(np.median(x))


def replaced(query: _Query, *, rows: int, grid: Sequence[float]) -> float:
    """The largest change when one of the rows is replaced, over all data on a grid."""
    worst = 0.0
    for rest in itertools.product(grid, repeat=rows - 1):
        answers = [query((*rest, value)) for value in grid]
        worst = max(worst, max(answers) - min(answers))
    return worst


_RANGE = (-1.0, 0.0, 1.0)
_UNIT = (0.0, 0.5, 1.0)
_TRUE: dict[str, tuple[_Query, int, Sequence[float], float, float]] = {
    # query, rows, grid, published, true
    "mean of 3 on [-1, 1]": (_mean, 3, _RANGE, 1 / 3, 2 / 3),
    "mean of 5 on [-1, 1]": (_mean, 5, _RANGE, 1 / 5, 2 / 5),
    "deviation of 4 on [0, 1]": (_deviation, 4, _UNIT, 1 / 4, 1 / 2),
    "deviation of 5 on [0, 1]": (_deviation, 5, _UNIT, 1 / 5, 1 / math.sqrt(5)),
    "variance of 5 on [0, 1]": (_spread, 5, _UNIT, 1 / 5, 1 / 5),
    "median of 5 on [0, 1]": (_middle, 5, _UNIT, 1.0, 1.0),
    "median of 4 on [0, 1]": (_middle, 4, _UNIT, 1.0, 0.5),
}


def _sensitivities() -> list[StudyCheck]:
    wrong = Claims(
        source="M2, M49, B2",
        why="The thesis takes max(|lower|, |upper|)/n for a mean, R/n for a deviation, R for every "
        "median.",
    )
    right = Claims(source="B2")
    return [
        (right if published == true else wrong).number(
            f"E11/sensitivity/{name}",
            f"largest change when one record is replaced, {name}",
            expected=true,
            got=replaced(query, rows=rows, grid=grid),
            absolute=1e-12,
        )
        for name, (query, rows, grid, published, true) in _TRUE.items()
    ]


def _sensitivity_table() -> StudyTable:
    return StudyTable(
        id="E11/sensitivities",
        title="Sensitivities as published and by every neighbor of small data",
        columns=("statistic", "published", "true"),
        rows=tuple((name, row[3], row[4]) for name, row in _TRUE.items()),
    )


def _variance(rng: np.random.Generator) -> list[StudyCheck]:
    """M4: how the variance changes when one of 50 exponential draws is left out."""
    x = rng.exponential(size=50)
    n = len(x)
    total, square = x.sum(), np.square(x).sum()
    rest_mean = (total - x) / (n - 1)
    rest = (square - x**2 - (n - 1) * rest_mean**2) / (n - 2)
    direct = np.abs(x.var(ddof=1) - rest)
    closed = np.abs(-rest / (n - 1) + (x - rest_mean) ** 2 / n)
    return [
        Claims(
            source="M4", why="The printed expansion lacks a term and the absolute value."
        ).at_most(
            "E11/variance, one left out",
            "largest difference of the recursion s^2 = (n - 2)/(n - 1) s_-j^2 + (x_j - m_-j)^2/n "
            "and the change of the variance, 50 draws",
            expected=1e-12,
            got=float(np.abs(direct - closed).max()),
        )
    ]


# ── Gaussian noise ────────────────────────────────────────────────────────────────────────────


def _gaussians() -> list[StudyCheck]:
    squares = Claims(
        source="M13b", why="Two passages print sigma^2 = 2 D ln(1.25/delta)/epsilon, no squares."
    )
    beyond = Claims(source="M13c", why="The textbook's sigma is proved for epsilon below 1 only.")
    misprint = {(10.0, 1.0): 0.028, (1.0, 0.1): 0.0019}
    classical = {1: 4.1e-8, 10: 2.265e-5, 20: 1.53e-3}

    def printed(sensitivity: float, epsilon: float) -> float:
        sigma = math.sqrt(2 * sensitivity * math.log(1.25e5) / epsilon)
        return laws.gaussian_delta(epsilon, left=sigma, right=sigma, shift=sensitivity)

    def textbook(epsilon: float) -> float:
        sigma = laws.classical_sigma(epsilon, 1e-5)
        return laws.gaussian_delta(epsilon, left=sigma, right=sigma, shift=1.0)

    tail = 0.5 * math.erfc(2 / math.sqrt(2))
    return [
        *squares.numbers(
            "E11/Gaussian misprint",
            "true delta for a claimed 1e-5",
            expected={f"D {d:g}, epsilon {e:g}": value for (d, e), value in misprint.items()},
            got={f"D {d:g}, epsilon {e:g}": printed(d, e) for d, e in misprint},
            relative=0.03,
        ),
        *beyond.numbers(
            "E11/Gaussian of the textbook",
            "true delta for a claimed 1e-5",
            expected={f"epsilon {e}": value for e, value in classical.items()},
            got={f"epsilon {e}": textbook(e) for e in classical},
            relative=0.01,
        ),
        Claims(
            source="M13a",
            why="The printed tail bound exp(-t^2/(2 sigma^2)) sigma/sqrt(2 pi) lacks 1/t.",
        ).at_least(
            "E11/tail bound",
            "the tail of N(0, 0.01^2) beyond 0.02 is above the printed bound",
            expected=0.01 / math.sqrt(2 * math.pi) * math.exp(-2),
            got=tail,
        ),
        Claims(
            source="M5", why="Printed as 4 Phi(mu/(2 sigma^2)) - 2, which is 0.7658 here."
        ).number(
            "E11/total variation",
            "total variation of N(0, 1) and N(1, 1)",
            expected=0.38292,
            got=normal_total_variation(1.0, 1.0),
            absolute=1e-5,
        ),
        Claims(source="M37", why="The thesis says that more kurtosis means less utility.").at_most(
            "E11/absolute error",
            "mean absolute error of Laplace over that of Gaussian noise of the same variance",
            expected=0.89,
            got=math.sqrt(0.5) / math.sqrt(2 / math.pi),
        ),
    ]


# ── sums of noise ─────────────────────────────────────────────────────────────────────────────


def _sums() -> list[StudyCheck]:
    better = Claims(
        source="M17, B22",
        why="The thesis: adding noise does not improve privacy. True of pure epsilon only.",
    )
    profile = {0.25: (0.313, 0.146), 0.5: (0.2212, 0.0572), 0.75: (0.118, 0.0044)}
    made = [
        check
        for epsilon, (single, double) in profile.items()
        for check in (
            better.number(
                f"E11/one Laplace/epsilon {epsilon}", f"delta at shift 1, epsilon {epsilon}",
                expected=single, got=-math.expm1((epsilon - 1) / 2), absolute=0.0006,
            ),
            better.number(
                f"E11/two Laplace/epsilon {epsilon}",
                f"delta of the sum of two at shift 1, epsilon {epsilon}",
                expected=double, got=laws.two_laplace_delta(epsilon), absolute=0.0006,
            ),
        )
    ]  # fmt: skip
    both = NormalLaplace(1.0, 2.0)
    return [
        *made,
        Claims(source="M16", why="The thesis: a sum of two Laplace noises is not private.").number(
            "E11/loss of a sum", "largest loss of the sum at shift 1 on |q| <= 60, near 1",
            expected=0.984, got=laws.two_laplace_loss(60.0), absolute=0.0006,
        ),
        better.number(
            "E11/normal-Laplace", "delta of N(0, 1) + Lap(2) at shift 1, epsilon 0.25",
            expected=0.0743, got=both.delta(0.25, shift=1.0), absolute=0.0006,
        ),
        better.number(
            "E11/Laplace alone", "delta of Lap(2) at shift 1, epsilon 0.25",
            expected=0.1175, got=-math.expm1((0.25 - 0.5) / 2), absolute=0.0001,
        ),
    ]  # fmt: skip


# ── composition ───────────────────────────────────────────────────────────────────────────────


def _compositions() -> list[StudyCheck]:
    parts = [
        Guarantee(events.PureEvent(Fraction(e)), NeighboringRelation.ADD_REMOVE)
        for e in ("1", "0.1")
    ]
    moved = parallel(
        parts, partition=RecordPartition.VALUE, relation=NeighboringRelation.REPLACE_ONE
    )
    three = Guarantee(
        events.GroupEvent(3, events.ApproxEvent(Fraction(1), Fraction(1, 10**6))),
        NeighboringRelation.ADD_REMOVE,
    )
    pair = Guarantee(
        events.GroupEvent(2, events.ApproxEvent(Fraction(1), Fraction(1, 10**6))),
        NeighboringRelation.ADD_REMOVE,
    )
    one, two = (exact.delta(_flips(times), math.log(3)).lower for times in (1, 2))
    edge, beyond = (exact.delta(_flips(1, wrong=p), math.log(3)).lower for p in (0.225, 0.2249))
    return [
        Claims(
            source="M15, B26",
            why="The thesis takes the largest epsilon, 1; a record may stay inside its part.",
        ).number(
            "E11/parts by value", "epsilon of parts (1, 0.1) by value when a record is replaced",
            expected=2.0, got=moved.epsilon(0.0), absolute=1e-9,
        ),
        Claims(source="B24").number(
            "E11/group", "delta of 3 people at epsilon 1, delta 1e-6",
            expected=1.1107e-5, got=three.delta(3.0), relative=1e-4,
        ),
        Claims(source="B20").at_most(
            "E11/one flip", "delta of one flip with p = 1/4 at epsilon ln 3", expected=0.1, got=one,
        ),
        Claims(source="B1").number(
            "E11/replaced", "delta when one of the rows is replaced, (1, 1e-6) if added or removed",
            expected=3.718e-6, got=pair.delta(2.0), relative=1e-3,
        ),
        Claims(source="B20").number(
            "E11/flip, edge", "delta of a flip with p = 0.225 at epsilon ln 3",
            expected=0.1, got=edge, absolute=1e-9,
        ),
        Claims(source="B20").at_least(
            "E11/flip, beyond", "delta of a flip with p = 0.2249, which breaks 0.1",
            expected=0.1 + 1e-5, got=beyond,
        ),
        *Claims(
            source="B2", why="Scale R/(n epsilon) tells n when n is secret: there is a delta.",
        ).numbers(
            "E11/secret size", "delta of a mean at epsilon 1 when a record is removed",
            expected={"n 10": 0.019, "n 100": 0.0018},
            got={f"n {n}": _secret(n) for n in (10, 100)}, relative=0.04,
        ),
        Claims(source="B20").number(
            "E11/two flips", "delta of two flips at epsilon ln 3, which breaks 0.1",
            expected=0.375, got=two, absolute=1e-12,
        ),
    ]  # fmt: skip


def _secret(n: int) -> float:
    """A mean on [0, 1] of n values, one of them 1, and of n - 1 without it: both directions."""
    scales = 1 / n, 1 / (n - 1)
    return max(
        laws.laplace_delta(1.0, left=a, right=b, shift=1 / n) for a, b in (scales, scales[::-1])
    )


def _flips(times: int, *, wrong: float = 0.25) -> exact.OutputPair:
    """So many independent answers that are wrong with this probability."""
    answer = exact.pair({0: 1 - wrong, 1: wrong}, {0: wrong, 1: 1 - wrong})
    return reduce(exact.product, [answer] * times)
