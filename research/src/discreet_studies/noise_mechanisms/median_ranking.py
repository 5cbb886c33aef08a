"""E13: private medians that keep their promise, ranked over data of many shapes."""

from __future__ import annotations

import math

from discreet_studies.checks import Claims
from discreet_studies.noise_mechanisms.median_errors import MedianError, median_errors
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_ROWS = 1001
_TIES = "whole numbers"
_WEIGHTED = "weighted, Laplace, δ"
_FLOOR = 1e-3
"""Errors below a thousandth of the data's unit are drawn as that: data with ties have none."""


def median_ranking(setting: StudySetting) -> Findings:
    """Every mechanism for a median, on nine shapes of data."""
    trials = setting.times(200, quick=40)
    found = median_errors(rows=_ROWS, trials=trials)
    return Findings(
        checks=tuple(_checks(found)), tables=(_table(found),), figures=(_figure(found, trials),)
    )


def _of(found: tuple[MedianError, ...]) -> dict[str, dict[str, float]]:
    """Mean absolute errors, by mechanism and shape."""
    errors: dict[str, dict[str, float]] = {}
    for one in found:
        errors.setdefault(one.mechanism, {})[one.shape] = one.mean_absolute
    return errors


def _checks(found: tuple[MedianError, ...]) -> list[StudyCheck]:
    errors = _of(found)
    ranked = Claims(
        source="B48, section 5.4",
        why="The thesis has noise at local sensitivity, weighted sensitivity and blocks. Choosing "
        "a value by its rank is private and better, but for many equal values.",
    )
    chosen = errors["interpolated choice"]
    noises = [name for name in errors if name.startswith("smooth") or "Laplace" in name]
    made = [
        ranked.at_most(
            f"E13/choice/{shape}",
            f"mean error of choosing by rank over the least of all noises, {shape} data",
            expected=1.0,
            got=value / max(_FLOOR, min(errors[name][shape] for name in noises)),
        )
        for shape, value in chosen.items()
        if shape != _TIES
    ]
    means = {name: _mean_log(values) for name, values in errors.items()}
    return [
        *made,
        Claims(source="B34", why="Where many values are equal it is tiny.").at_most(
            "E13/ties", "mean error of smooth sensitivity over that of choosing, whole numbers",
            expected=1.0, got=errors["smooth, Lomax"][_TIES] / chosen[_TIES],
        ),
        ranked.order(
            "E13/order",
            "from the least to the largest mean logarithm of the error",
            expected=("interpolated choice", "smooth, Lomax", "smooth, Laplace, δ",
                      "smooth, Gaussian, δ", "Laplace, global"),
            got={name: value for name, value in means.items()
                 if name not in ("exponential mechanism", "smooth, Cauchy", _WEIGHTED)},
        ),
        Claims(
            source="M34, B36",
            why="At a delta for people nearly all weight is on the global sensitivity.",
        ).number(
            "E13/weighted", "geometric mean error of weighted over global sensitivity, delta 1e-6",
            expected=1.0, got=math.exp(means[_WEIGHTED] - means["Laplace, global"]), relative=0.2,
        ),
    ]  # fmt: skip


def _mean_log(values: dict[str, float]) -> float:
    return math.fsum(math.log(max(value, _FLOOR)) for value in values.values()) / len(values)


def _table(found: tuple[MedianError, ...]) -> StudyTable:
    errors = _of(found)
    shapes = tuple(next(iter(errors.values())))
    return StudyTable(
        id="E13/errors",
        title="Mean absolute error of private medians of 1001 values on [0, 100]",
        columns=("mechanism", *shapes),
        rows=tuple((name, *(values[shape] for shape in shapes)) for name, values in errors.items()),
        note="epsilon 1; delta 1e-6 where the name has δ. Choices are made on a fine grid; on "
        "that of whole numbers, whole numbers would be exact, too.",
    )


def _figure(found: tuple[MedianError, ...], trials: int) -> Figure:
    errors = _of(found)
    shapes = tuple(next(iter(errors.values())))
    x = tuple(float(k) for k in range(1, len(shapes) + 1))
    return Figure(
        id="E13/errors",
        title="Private medians over nine shapes of data",
        x="shape of the data, in the order of the table",
        y="mean absolute error",
        lines=tuple(
            Line(label=name, x=x, y=tuple(max(values[shape], _FLOOR) for shape in shapes))
            for name, values in errors.items()
        ),
        note=f"epsilon 1, delta 1e-6, 1001 values on [0, 100], {trials} runs of each",
        log_y=True,
    )
