"""E4: the width of confidence intervals for a mean, with Laplace and with Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.conversion import gaussian_sigma
from discreet.intervals.interval import normal_laplace
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.private_inference import reference_values as stated
from discreet_studies.private_inference.interval_coverage import samples, textbook_noise
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_NOISES = ("Laplace", "classical Gaussian", "exact Gaussian", "none")


def laplace_width(n: int, *, epsilon: float = 1.0) -> float:
    """Of the interval with the exact law of a normal mean with Laplace noise (C12)."""
    sigma = np.array([math.sqrt(stated.UNIFORM_VARIANCE / n)])
    return 2 * float(normal_laplace(sigma, 1 / (n * epsilon), tail=stated.ALPHA / 2)[0])


def widths_at(n: int) -> dict[str, float]:
    """Widths at epsilon 1, delta 1e-5 for Gaussian noise, sigma known."""
    sigma = math.sqrt(stated.UNIFORM_VARIANCE / n)
    exact = gaussian_sigma(1.0, delta=stated.DELTA, sensitivity=1 / n)
    return {
        "Laplace": laplace_width(n),
        "classical Gaussian": 2 * stated.Z * math.hypot(sigma, textbook_noise(n, 1.0)),
        "exact Gaussian": 2 * stated.Z * math.hypot(sigma, exact),
        "none": 2 * stated.Z * sigma,
    }


def widths(setting: StudySetting) -> Findings:
    """Laplace against Gaussian noise: pure privacy, and narrower."""
    rng = setting.rng("E4")
    found = {n: widths_at(n) for n in stated.WIDTHS}
    claims = {
        "Laplace": Claims(source="C12, M13", why="The thesis calls this interval infeasible."),
        **dict.fromkeys(_NOISES[1:], Claims(source="E4")),
    }
    checks: list[StudyCheck] = []
    for column, noise in enumerate(_NOISES):
        checks += claims[noise].numbers(
            f"E4/{noise}", f"width of a 95 % interval, noise: {noise}",
            expected={f"n {n}": row[column] for n, row in stated.WIDTHS.items()},
            got={f"n {n}": found[n][noise] for n in stated.WIDTHS},
            absolute=0.00006, relative=0.0005,
        )  # fmt: skip
    runs = {n: setting.times(40_000, quick=4_000 if n < 5000 else 400) for n in stated.WIDTHS}
    checks += claims["Laplace"].numbers(
        "E4/coverage", "coverage with Laplace noise",
        expected={f"n {n}": row[4] for n, row in stated.WIDTHS.items()},
        got={f"n {n}": _laplace_coverage(n, runs[n], rng) for n in stated.WIDTHS},
        absolute=stated.COVERAGE_CHANCE,
    )  # fmt: skip
    checks.append(
        claims["Laplace"].order(
            "E4/order", "widths at n 100",
            expected=("none", "Laplace", "exact Gaussian", "classical Gaussian"), got=found[100])
    )  # fmt: skip
    checks += [*_far_quantile(), *_local(setting)]
    return Findings(checks=tuple(checks), tables=(_width_table(found),), figures=(_width_figure(),))


def _laplace_coverage(n: int, runs: int, rng: np.random.Generator) -> float:
    """Over the noise exact, over samples the mean of many."""
    off = samples(n, runs, rng).mean - 0.5
    half = laplace_width(n) / 2
    return float(np.mean(_laplace_cdf(n * (half - off)) - _laplace_cdf(n * (-half - off))))


def _laplace_cdf(x: Floats) -> Floats:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _far_quantile() -> list[StudyCheck]:
    got = float(normal_laplace(np.array([1.0]), 2.0, tail=stated.ALPHA / 2)[0])
    return [
        Claims(source="C12").number("E4/quantile", "0.975 quantile of N(0, 1) plus Laplace(2)",
                                    expected=6.241, got=got, absolute=0.02),
    ]  # fmt: skip


def _local(setting: StudySetting) -> list[StudyCheck]:
    """C13: rows with noise are rows; their own spread gives the right interval."""
    rng = setting.rng("E4 local")
    runs = setting.times(20_000, quick=4_000)
    got = {}
    for scale in (1.0, 5.0):
        held = 0
        for _ in range(runs // 1000):
            y = rng.random((1000, 659)) + rng.laplace(scale=scale, size=(1000, 659))
            half = stated.Z * y.std(axis=1, ddof=1) / math.sqrt(659)
            held += int((np.abs(y.mean(axis=1) - 0.5) <= half).sum())
        got[f"noise of scale {scale:g}"] = held / runs
    return list(
        Claims(source="C13, M13", why="The thesis says that this level is wrong.").numbers(
            "E4/local", "coverage from 659 noisy rows", got=got, absolute=0.012,
            expected={"noise of scale 1": 0.950, "noise of scale 5": 0.949},
        )
    )  # fmt: skip


def _width_table(found: dict[int, dict[str, float]]) -> StudyTable:
    return StudyTable(
        id="E4/widths",
        title="Width of 95 % intervals for the mean of uniform rows at epsilon 1",
        columns=("rows", *_NOISES),
        rows=tuple((n, *(row[noise] for noise in _NOISES)) for n, row in found.items()),
        note="Exact. delta 1e-5 for Gaussian noise; Laplace noise needs none.",
    )


def _width_figure() -> Figure:
    n = tuple(float(round(10 ** (1 + k / 6))) for k in range(25))
    found = [widths_at(int(k)) for k in n]
    return Figure(
        id="E4/widths",
        title="Width of a 95 % interval over that without privacy",
        x="rows",
        y="ratio of widths",
        lines=tuple(
            Line(label=noise, x=n, y=tuple(row[noise] / row["none"] for row in found))
            for noise in _NOISES[:3]
        ),
        note="exact; epsilon 1, delta 1e-5 for Gaussian noise, sigma known",
        log_x=True,
        log_y=True,
    )
