"""E7, E8: columns clipped from above, in training rows only or in all rows (Figures 4.7, 4.8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from discreet_studies.checks import Claims
from discreet_studies.linear_regression import reference_values as stated
from discreet_studies.linear_regression.datasets import SMALL, RegressionDataSet, synthetic_buzz
from discreet_studies.linear_regression.folds import Folds, folds
from discreet_studies.linear_regression.preprocessing import Map
from discreet_studies.linear_regression.run_helpers import (
    HEAVY_UP_TO,
    THESIS,
    RegressionRuns,
    Sets,
    figure,
    level,
    runs,
)
from discreet_studies.study import Figure, Findings, StudyCheck, StudySetting

_METHOD = "Alg. 3"
_AT = (0.1, 1.0, 3.0)
_CLIPS = (1.0, 1.3, 1.6, 3.0)
"""The four multiples of the figures are lost; the text names the best as 1.3 to 1.6."""
_HELPED = ("airfoil", "wine", "housing", "concrete")
_BUZZ = Claims(
    source="M7, Figures 4.7 and 4.8",
    why="The thesis suspects an error in its code. A mismatch is enough: scales shrink with the "
    "clipped training rows, so that rows which are not clipped land far outside of the unit ball, "
    "where larger coefficients err more.",
)
_LIMIT = Claims(
    source="M8, Figure 4.7",
    why="Clipping from above leaves the negative outliers of elevators, and test rows that are not "
    "clipped are outside of the ball.",
)


def train_only(setting: StudySetting) -> Findings:
    """E7: as the thesis advises."""
    return _clipping(setting, "E7", both=False)


def train_and_test(setting: StudySetting) -> Findings:
    """E8: the same for rows that are predicted."""
    return _clipping(setting, "E8", both=True)


def _clipping(setting: StudySetting, experiment: str, *, both: bool) -> Findings:
    checks: list[StudyCheck] = []
    figures: list[Figure] = []
    source = f"{THESIS}, Figure 4.{'8' if both else '7'}"
    names = (*SMALL, "california") if setting.quick else (*SMALL, "california", "bio_train")
    sets = Sets.of(setting, names)
    for data in sets:
        run = runs(setting, experiment, data.name, full=100 if data.name in SMALL else 40)
        none = folds(data, Map(kind="max"))
        checks += _reference(experiment, data, run, both=both)
        checks += _orders(data, none, run, both=both)
        if data.name in SMALL:
            figures.append(_picture(experiment, data, none, run, both=both))
    heavy = _heavy_tail(setting)
    run = runs(setting, experiment, heavy.name, full=20, quick=6)
    none = folds(heavy, Map(kind="max"))
    checks += _tails(heavy, none, run, both=both)
    figures.append(_picture(experiment, heavy, none, run, both=both))
    checks += sets.unchecked(experiment, source)
    checks += [
        Claims(source=source, why="Buzz is in no package that can be had.").beyond(
            f"{experiment}/Buzz", "what is stated of Buzz; made-up rows of its shape stand in"
        )
    ]
    return Findings(checks=tuple(checks), figures=tuple(figures))


@cache
def _heavy_tail(setting: StudySetting) -> RegressionDataSet:
    return synthetic_buzz(setting.rng("E7/synthetic Buzz"), setting.times(60_000, quick=8_000))


def _reference(
    experiment: str, data: RegressionDataSet, run: RegressionRuns, *, both: bool
) -> Iterator[StudyCheck]:
    name = data.name
    kept = Claims(source="reference")
    # Unclipped test outliers decide the error: it depends on the split.
    loose = not both and name in ("elevators", "california")
    for clip, (ridge, *cells) in stated.CLIPPED[name].items():
        seen = folds(data, Map(kind="max", clip=clip, clip_test=both))
        yield kept.number(
            f"{experiment}/ridge/{name}/{clip:g}", f"error of ridge, clip {clip:g}, {name}",
            expected=ridge[both], got=seen.ridge(),
            relative=0.05 if loose or name in ("housing", "bio_train") else 0.025,
        )  # fmt: skip
        for epsilon, cell in zip(_AT, cells, strict=True):
            hard = epsilon <= HEAVY_UP_TO.get(name, 0.0)
            where = f"clip {clip:g}, {name}, epsilon {epsilon:g}"
            if hard and (clip >= 3.0 or not both):
                continue  # a mean that a few fits decide, in the reference as well
            yield kept.number(
                f"{experiment}/Alg. 3/{name}/{clip:g}, epsilon {epsilon:g}",
                f"error of Alg. 3, {where}",
                expected=cell[both],
                got=(run.middle if hard else run.mean)(seen, _METHOD, epsilon),
                relative=0.25 if loose else 0.15 if hard else 0.05,
            )


def _orders(
    data: RegressionDataSet, none: Folds, run: RegressionRuns, *, both: bool
) -> Iterator[StudyCheck]:
    name = data.name
    clipped = folds(data, Map(kind="max", clip=1.3, clip_test=both))
    ratio = run.mean(clipped, _METHOD, 3.0) / run.mean(none, _METHOD, 3.0)
    figured = Claims(source=f"{THESIS}, Figure 4.{'8' if both else '7'}")
    if both:
        yield figured.at_most(
            f"E8/gain/{name}", f"error when all rows are clipped over that without, {name}, "
            "epsilon 3", expected=1.0, got=ratio,
        )  # fmt: skip
    elif name in (*_HELPED, "bio_train"):
        yield figured.at_most(
            f"E7/gain/{name}", f"error when training rows are clipped over that without, {name}, "
            "epsilon 3", expected=0.95, got=ratio,
        )  # fmt: skip
    else:
        claims = _LIMIT if name == "elevators" else _BUZZ
        yield claims.at_least(
            f"E7/loss/{name}", "error when training rows only are clipped over that of predicting "
            f"zero, {name}, epsilon 3", expected=1.0,
            got=run.mean(clipped, _METHOD, 3.0) / none.trivial,
        )  # fmt: skip
    if name == "california":
        end = run.mean(clipped, _METHOD, 3.0) / none.trivial
        if both:
            yield _BUZZ.at_most("E8/california", "error when all rows are clipped over that of "
                                "predicting zero, epsilon 3", expected=0.6, got=end)  # fmt: skip
        else:
            yield _BUZZ.at_least("E7/california", "error when training rows only are clipped over "
                                 "that of predicting zero, epsilon 3",
                                 expected=3.0, got=end)  # fmt: skip


def _tails(
    data: RegressionDataSet, none: Folds, run: RegressionRuns, *, both: bool
) -> Iterator[StudyCheck]:
    """On heavy tails: with epsilon the error rises, or falls."""
    clipped = folds(data, Map(kind="max", clip=1.3, clip_test=both))
    small, large = (run.mean(clipped, _METHOD, e) for e in (0.3, 3.0))
    if not both:
        yield _BUZZ.at_least(
            "E7/heavy tail",
            "error at epsilon 3 over that of predicting zero, training rows only",
            expected=1.0,
            got=large / none.trivial,
        )
        yield _BUZZ.at_least(
            "E7/heavy tail, rises",
            "error at epsilon 3 over that at 0.3, training rows only",
            expected=1.0,
            got=large / small,
        )
        return  # fmt: skip
    yield _BUZZ.at_most("E8/heavy tail, falls", "error at epsilon 3 over that at 0.3, all rows",
                        expected=1.0, got=large / small)  # fmt: skip
    for epsilon in (0.3, 1.0, 3.0):
        ratio = run.mean(clipped, _METHOD, epsilon) / run.mean(none, _METHOD, epsilon)
        yield _BUZZ.at_most(f"E8/heavy tail, gain/epsilon {epsilon:g}", "error when all rows are "
                            f"clipped over that without, epsilon {epsilon:g}",
                            expected=1.0, got=ratio)  # fmt: skip


def _picture(
    experiment: str, data: RegressionDataSet, none: Folds, run: RegressionRuns, *, both: bool
) -> Figure:
    which = "all rows" if both else "training rows"
    lines = [run.curve("not clipped", none, _METHOD, middle=True)]
    for clip in _CLIPS:
        seen = folds(data, Map(kind="max", clip=clip, clip_test=both))
        lines.append(run.curve(f"at {clip:g} deviations", seen, _METHOD, middle=True))
    return figure(
        f"{experiment}/{data.name}",
        f"Clipped {which}, {data.name} (Figure 4.{'8' if both else '7'})",
        (*lines, level("zero", none.trivial)),
        draws=run.draws,
    )
