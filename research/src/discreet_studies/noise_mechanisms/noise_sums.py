"""E3, E7 and E9: sums of noise, textbook Gaussians, bounded noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.additive import gaussian
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.noise.distribution import Floats
from discreet_studies.audits import published_distributions as laws
from discreet_studies.checks import Claims
from discreet_studies.noise_mechanisms.normal_laplace import NormalLaplace
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable


def normal_laplace(setting: StudySetting) -> Findings:
    """E3: N(0, 1) + Lap(2)."""
    rng = setting.rng("E3")
    draws = setting.times(1_000_000, quick=400_000)
    x = rng.normal(0, 1, draws) + rng.laplace(0, 2, draws)
    law = NormalLaplace(1.0, 2.0)
    heights, edges = np.histogram(x, bins=200, range=(-15, 15))
    middle = (edges[1:] + edges[:-1]) / 2
    density = heights / (draws * (edges[1] - edges[0]))
    inner = np.linspace(-60, 60, 240_001)
    mass = law.pdf(inner) * (inner[1] - inner[0])
    stated = Claims(source="Biswal 2024, figure of the normal-Laplace law; B23")
    # E W^4 of a sum is 3 s^4 + 6 s^2 (2 b^2) + 24 b^4.
    fourth = 3 + 6 * 8 + 24 * 16
    return Findings(
        checks=(
            stated.simulated(
                "E3/variance", f"variance of {draws:,} draws, exactly 9",
                values=np.square(x), expected=9.0, spread=math.sqrt(fourth - 81)),
            stated.at_most("E3/histogram", "largest difference of histogram and density",
                           expected=0.004 if not setting.quick else 0.006,
                           got=float(np.abs(density - law.pdf(middle)).max())),
            stated.number("E3/peak", "height of the density at zero", expected=0.17481,
                          got=float(law.pdf(0.0)), absolute=6e-6),
            stated.number("E3/integral", "integral of the density", expected=1.0,
                          got=math.fsum(mass), absolute=1e-9),
            stated.number("E3/variance of the density", "second moment of the density",
                          expected=9.0, got=math.fsum(mass * inner**2), absolute=1e-6),
        ),
        figures=(
            Figure(
                id="E3/density", title="Normal plus Laplace noise", x="value", y="density",
                lines=(
                    Line(label="draws", x=tuple(middle), y=tuple(density), points=True),
                    Line(label="density", x=tuple(middle), y=tuple(law.pdf(middle))),
                    Line(label="normal, same variance", x=tuple(middle),
                         y=tuple(np.exp(-(middle**2) / 18) / math.sqrt(18 * math.pi))),
                    Line(label="Laplace, same variance", x=tuple(middle),
                         y=tuple(np.exp(-np.abs(middle) * math.sqrt(2) / 3) / (3 * math.sqrt(2)))),
                ),
                note=f"{draws:,} draws; sigma 1, scale 2",
            ),
        ),
    )  # fmt: skip


# ── E7 ────────────────────────────────────────────────────────────────────────────────────────

_DELTAS = (0.05, 0.002, 1e-4, 4e-6)


def textbook(setting: StudySetting) -> Findings:
    """E7: variance against delta, textbook and exact."""
    del setting
    classical = dict(zip(_DELTAS, (6.44, 12.88, 18.87, 25.31), strict=True))
    analytic = dict(zip(_DELTAS, (1.78, 5.64, 10.149, 15.47), strict=True))
    better = Claims(
        source="E7, B18", why="The thesis draws the textbook's boundary; this is the true one."
    )
    ours = {
        d: gaussian(sensitivity=1, epsilon=1, delta=d, domain="reals").std ** 2 for d in _DELTAS
    }
    x = tuple(10 ** (-6 + k / 12) for k in range(58))
    return Findings(
        checks=(
            *Claims(source="Biswal 2024, area plot of delta and sigma^2").numbers(
                "E7/textbook",
                "sigma^2 = 2 ln(1.25/delta)",
                expected={f"delta {d:g}": value for d, value in classical.items()},
                got={f"delta {d:g}": laws.classical_sigma(1, d) ** 2 for d in _DELTAS},
                absolute=0.006,
            ),
            *better.numbers(
                "E7/exact",
                "smallest sigma^2",
                expected={f"delta {d:g}": value for d, value in analytic.items()},
                got={f"delta {d:g}": laws.analytic_sigma(1, d) ** 2 for d in _DELTAS},
                absolute=0.006,
            ),
            *better.numbers(
                "E7/released",
                "variance of our noise is the smallest one, up to the grid",
                expected={f"delta {d:g}": laws.analytic_sigma(1, d) ** 2 for d in _DELTAS},
                got={f"delta {d:g}": value for d, value in ours.items()},
                relative=1e-4,
            ),
        ),
        figures=(
            Figure(
                id="E7/variance", title="Gaussian noise for epsilon 1", x="delta",
                y="variance over squared sensitivity",
                lines=(
                    Line(label="textbook", x=x,
                         y=tuple(laws.classical_sigma(1, d) ** 2 for d in x)),
                    Line(label="exact", x=x, y=tuple(laws.analytic_sigma(1, d) ** 2 for d in x)),
                    Line(label="Laplace", x=(x[0], x[-1]), y=(2.0, 2.0)),
                ),
                note="exact; epsilon 1",
                log_x=True,
            ),
        ),
    )  # fmt: skip


# ── E9 ────────────────────────────────────────────────────────────────────────────────────────

_SCALES = {
    (1.0, 0.0, 1.0, 10.0): 1.61156,
    (0.1, 0.0, 1.0, 10.0): 18.77274,
    (1.0, 0.1, 1.0, 2.0): 1.27020,
    (2.0, 0.0, 1.0, 5.0): 0.69700,
    (1.0, 0.0, 1.0, 2.0): 1.41334,
    (1.0, 0.0, 1.0, 1.0): 1.0,
}


def bounded(setting: StudySetting) -> Findings:
    """E9: noise inside an interval."""
    return Findings(
        checks=(*_bounded_scales(), *_exactly(), *_released(), *_errors(), *_simulated(setting)),
        tables=(_scale_table(),),
        figures=(_error_figure(),),
    )


def _scale(at: tuple[float, float, float, float]) -> float:
    epsilon, delta, sensitivity, width = at
    return laws.bounded_scale(epsilon, delta, sensitivity=sensitivity, width=width)


def _bounded_scales() -> tuple[StudyCheck, ...]:
    def name(at: tuple[float, ...]) -> str:
        return ", ".join(f"{value:g}" for value in at)

    return Claims(source="B44; Holohan et al. 2020").numbers(
        "E9/scale",
        "published scale of bounded Laplace noise at (epsilon, delta, sensitivity, width)",
        expected={name(at): value for at, value in _SCALES.items()},
        got={name(at): _scale(at) for at in _SCALES},
        absolute=1e-4,
    )


def _exactly() -> list[StudyCheck]:
    naive = Claims(source="M48", why="Laplace noise of scale D/epsilon redrawn until it fits.")
    loose = Claims(source="M48, B54", why="The delta of the theorem is loose.")
    published = _scale((1.0, 0.1, 1.0, 10.0))

    def delta(scale: float) -> float:
        return laws.bounded_delta(1, scale, sensitivity=1, width=10)

    return [
        naive.number("E9/naive/epsilon 1", "true epsilon of scale D/epsilon, width 10",
                     expected=1.49, absolute=0.006,
                     got=laws.bounded_loss(1.0, sensitivity=1, width=10)),
        naive.number("E9/naive/epsilon 0.1", "true epsilon of scale D/epsilon, width 10",
                     expected=0.186, absolute=0.0006,
                     got=laws.bounded_loss(10.0, sensitivity=1, width=10)),
        loose.number("E9/published delta", "exact delta of the published scale at delta 0.1",
                     expected=0.00467, got=delta(published), absolute=2e-5),
        loose.number("E9/exact scale", "smallest scale at epsilon 1, delta 0.1, width 10",
                     expected=0.9189, absolute=1e-4,
                     got=laws.exact_bounded_scale(1, 0.1, sensitivity=1, width=10)),
        loose.at_least("E9/too small", "exact delta of scale 0.916, which is too small",
                       expected=0.1, got=delta(0.916)),
    ]  # fmt: skip


def _released() -> tuple[StudyCheck, ...]:
    """What the house releases, on a grid of ten million steps."""
    stated = {(1.0, 0.0): 1.61156, (0.1, 0.0): 18.77274, (1.0, 0.1): 0.9189, (1.0, 0.01): 1.3550,
              (1.0, 1e-6): 1.60880}  # fmt: skip
    return Claims(source="B44, B54").numbers(
        "E9/released scale",
        "scale of our bounded Laplace noise, sensitivity 1, width 10",
        expected={f"epsilon {e:g}, delta {d:g}": value for (e, d), value in stated.items()},
        got={
            f"epsilon {e:g}, delta {d:g}": bounded_laplace(
                lower=0, upper=10, sensitivity=1, epsilon=e, delta=d, domain="reals"
            ).width
            for e, d in stated
        },
        absolute=1e-4,
    )


def _errors() -> list[StudyCheck]:
    dear = Claims(
        source="M48",
        why="The thesis prefers bounded noise; clamping plain Laplace noise is free and better "
        "unless the scale is comparable to the width and the value is central.",
    )
    made: list[StudyCheck] = []
    for epsilon, q, inside, clamped in ((1.0, 0.0, 4.93, 1.0), (1.0, 5.0, 3.26, 1.92),
                                        (0.1, 5.0, 7.78, 18.0)):  # fmt: skip
        scale = _scale((epsilon, 0.0, 1.0, 10.0))
        where = f"epsilon {epsilon:g}, value {q:g}"
        made += [
            dear.number(f"E9/error, bounded/{where}", f"mean squared error, bounded, {where}",
                        expected=inside, got=laws.bounded_error(q, scale, width=10),
                        absolute=0.006),
            dear.number(f"E9/error, clamped/{where}", f"mean squared error, clamped, {where}",
                        expected=clamped, got=laws.clamped_error(q, 1 / epsilon, width=10),
                        relative=0.003),
        ]  # fmt: skip
    return made


def _simulated(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E9")
    draws = setting.times(400_000, quick=100_000)
    noise = rng.laplace(0, 1, draws)
    variance, n, span = 2.0, 100, 10.0  # of ages, say; sensitivity of a variance is R^2/n
    negative = 0.5 * math.exp(-variance * n / span**2)
    stated = Claims(source="Biswal 2024, section 5.5; E9")
    return [
        stated.simulated("E9/Mars", "share of negative answers to a count of zero",
                         values=_indicator(noise < 0), expected=0.5, spread=0.5),
        stated.simulated("E9/negative variance", "share of negative noisy variances",
                         values=_indicator(variance + noise * span**2 / n < 0), expected=negative,
                         spread=math.sqrt(negative * (1 - negative))),
        stated.number("E9/whole range", "scale when the sensitivity is the width, 110 years",
                      expected=110.0, got=_scale((1.0, 0.0, 110.0, 110.0)), absolute=1e-9),
    ]  # fmt: skip


def _scale_table() -> StudyTable:
    return StudyTable(
        id="E9/scales",
        title="Scale of bounded Laplace noise",
        columns=("epsilon", "delta", "sensitivity", "width", "D/epsilon", "published"),
        rows=tuple((*at, at[2] / at[0], _scale(at)) for at in _SCALES),
    )


def _error_figure() -> Figure:
    q = tuple(k / 10 for k in range(101))
    scales = {e: _scale((e, 0.0, 1.0, 10.0)) for e in (1.0, 0.1)}
    return Figure(
        id="E9/errors",
        title="Bounded noise against clamped noise on [0, 10]",
        x="true value",
        y="mean squared error",
        lines=tuple(
            line
            for e, scale in scales.items()
            for line in (
                Line(label=f"bounded, epsilon {e:g}", x=q[::5],
                     y=tuple(laws.bounded_error(v, scale, width=10) for v in q[::5])),
                Line(label=f"clamped, epsilon {e:g}", x=q,
                     y=tuple(laws.clamped_error(v, 1 / e, width=10) for v in q)),
            )
        ),
        note="exact; sensitivity 1, delta 0",
        log_y=True,
    )  # fmt: skip


def _indicator(flags: NDArray[np.bool_]) -> Floats:
    return flags.astype(np.float64)
