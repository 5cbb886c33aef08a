"""E1: a hundred structures answer the same range (Figures 6 and 7 of the thesis)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.ranges.strategies import hierarchical_histogram as blocks
from discreet_studies.checks import MOST_SIMULATED, Claims
from discreet_studies.range_queries import central_model
from discreet_studies.range_queries import discreet_results as house
from discreet_studies.range_queries.example_counts import total_distribution, visits
from discreet_studies.range_queries.local_model import Flat, Levels, LocalModel, published
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting

_DAYS, _LENGTH, _FIRST = 256, 24, 100
_STRUCTURES = 100


def sanity(setting: StudySetting) -> Findings:
    """Answers are centered at the truth, and follow the law that was predicted."""
    errors = _many_errors(setting)
    return Findings(
        checks=(*_centered(setting), _law(errors), *_generator()),
        figures=(_picture(errors[:_STRUCTURES]),),
    )


def _centered(setting: StudySetting) -> list[StudyCheck]:
    claims = Claims(source="Friis 2021, Figures 6 and 7")
    rng = setting.rng("E1")
    first = np.array([_FIRST])
    counts = visits(_DAYS)
    truth = int(counts[_FIRST : _FIRST + _LENGTH].sum())
    found: dict[str, tuple[Floats, float]] = {}
    for name, model in {
        "central flat": central_model.flat(first, length=_LENGTH, domain=_DAYS, epsilon=1),
        "central tree, corrected": central_model.tree(
            first, length=_LENGTH, domain=_DAYS, degree=2, epsilon=1
        ),
        "central tree, as coded": central_model.tree_as_coded(
            first, length=_LENGTH, domain=_DAYS, degree=2, epsilon=1
        ),
    }.items():
        drawn = central_model.simulate(model, structures=_STRUCTURES, rng=rng)
        found[name] = drawn[:, 0], math.sqrt(model.variances[0])
    local_models: dict[str, LocalModel] = {
        "local flat, as coded": Flat(oracle=published(1)),
        "local tree, as coded": Levels(oracle=published(1), degree=2, root=True),
    }
    for name, local in local_models.items():
        drawn = local.simulate(counts, first, length=_LENGTH, structures=_STRUCTURES, rng=rng)
        spread = math.sqrt(local.variances(counts, first, length=_LENGTH)[0])
        found[name] = drawn[:, 0], spread
    return [
        claims.simulated(
            f"E1/{name}",
            f"the mean of {_STRUCTURES} structures is close to the truth, {name}",
            values=truth + error,
            expected=truth,
            spread=spread,
        )
        for name, (error, spread) in found.items()
    ]


def _many_errors(setting: StudySetting) -> Floats:
    return house.simulate(
        blocks.flat(_DAYS),
        visits(_DAYS),
        np.array([_FIRST]),
        length=_LENGTH,
        epsilon=1,
        structures=setting.times(10000, quick=2000),
        rng=seeded_rng(setting.seed),
    )[:, 0]


def _exact_law() -> tuple[Ints, Floats]:
    """Values and distribution function of a sum of discrete Laplace noise, by convolution."""
    reach = 40
    single = DiscreteLaplace(Fraction(1)).pmf(np.arange(-reach, reach + 1))
    together = np.array([1.0])
    for _ in range(_LENGTH):
        together = np.convolve(together, single)
    half = len(together) // 2
    return np.arange(-half, half + 1), np.cumsum(together)


def _law(errors: Floats) -> StudyCheck:
    values, exact = _exact_law()
    seen = np.searchsorted(np.sort(errors), values + 0.5) / len(errors)
    # Dvoretzky-Kiefer-Wolfowitz with Massart's constant, at the error of one simulated check.
    allowed = math.sqrt(math.log(2 * MOST_SIMULATED / 1e-6) / (2 * len(errors)))
    return Claims(source="E1").at_most(
        "E1/law",
        f"{len(errors)} answers of the flat histogram follow the exact law of the noise: largest "
        "distance of the distribution functions",
        expected=allowed,
        got=float(np.abs(seen - exact).max()),
    )


def _generator() -> list[StudyCheck]:
    days = 2048
    counts = visits(days)
    mean, spread = total_distribution(days)
    claims = Claims(
        source="generator of visits",
        why="588,782 visits are stated for a run of the generator; the order of its draws is not, "
        "so the total is another one of the same law.",
    )
    return [
        claims.simulated(
            "E1/visits", "visits of 2048 days", values=counts.sum()[None] * 1.0, expected=mean,
            spread=spread,
        ),
        claims.simulated(
            "E1/visits stated", "the stated total has the same law", values=np.array([588782.0]),
            expected=mean, spread=spread,
        ),
        Claims(source="generator of visits").number(
            "E1/zeros", "share of days without visits", expected=0.033,
            got=float((counts == 0).mean()), absolute=0.02,
        ),
        Claims(
            source="Friis 2021, data",
            why="The visits of the library are not at hand and no total is printed; numbers of the "
            "local model scale with the square root of the visits. 300 a day stand in.",
        ).beyond("E1/data", "errors on the daily visits of one library in Aarhus, 2014 to 2019"),
    ]  # fmt: skip


def _picture(errors: Floats) -> Figure:
    values, exact = _exact_law()
    inside = np.abs(values) <= 30
    ordered = np.sort(errors)
    return Figure(
        id="E1/law",
        title="The same range asked of a hundred flat histograms",
        x="answer minus truth (visits)",
        y="share of structures with at most this error",
        lines=(
            Line(label="exact law", x=tuple(values[inside] * 1.0), y=tuple(exact[inside])),
            Line(
                label="structures",
                x=tuple(ordered),
                y=tuple((np.arange(len(ordered)) + 1) / len(ordered)),
                points=True,
            ),
        ),
        note=f"epsilon 1, {_DAYS} days, range of {_LENGTH} days, {len(ordered)} structures",
    )
