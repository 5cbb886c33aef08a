"""E14: the same sets with what is released here, `discreet.models.regression`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.noise.distribution import Floats
from discreet.noise.random_source import seeded_rng
from discreet_studies.checks import Claims
from discreet_studies.linear_regression.datasets import RegressionDataSet
from discreet_studies.linear_regression.folds import FOLDS, folds
from discreet_studies.linear_regression.methods import DELTA, METHODS
from discreet_studies.linear_regression.preprocessing import Map
from discreet_studies.linear_regression.run_helpers import Sets, runs
from discreet_studies.linear_regression.valid_guarantees import DOMAINS
from discreet_studies.study import Cell, Findings, StudyCheck, StudySetting, StudyTable

_AT = (0.3, 1.0, 3.0)
_SOURCE = "K33 to K36"
_OURS = Claims(
    source=_SOURCE,
    why="The thesis adds up epsilons and takes scales from the data; here nothing is taken for "
    "free: discrete noise, one guarantee for everything that is released.",
)


def discreet_results(setting: StudySetting) -> Findings:
    """Noise and errors of a regression that keeps its guarantee."""
    if importlib.util.find_spec("sklearn") is None:
        missing = Claims(source=_SOURCE, why="scikit-learn is not installed (discreet[models]).")
        return Findings(checks=(missing.beyond("E14/models", "errors of our own regression"),))
    from discreet.models.regression import PrivateLinearRegression

    sets = Sets.of(setting, tuple(DOMAINS))
    checks = _noise(PrivateLinearRegression)
    rows: list[tuple[Cell, ...]] = []
    for data in sets:
        run = runs(setting, "E14", data.name)
        leaking = folds(data, Map(kind="max"))
        for epsilon in _AT:
            many = setting.times(FOLDS, quick=3)
            found = _errors(PrivateLinearRegression, data, epsilon, many=many)
            thesis = run.mean(leaking, "Alg. 3", epsilon)
            mean = float(found.mean())
            rows.append((data.name, epsilon, leaking.trivial, thesis, mean))
            checks += _kept(data.name, epsilon, mean / leaking.trivial, mean / thesis)
    checks += sets.unchecked("E14", _SOURCE)
    return Findings(
        checks=tuple(checks),
        tables=(
            StudyTable(
                id="E14/errors",
                title="Our own regression from bounds of a code book, and the thesis's algorithm "
                "with scales from the data",
                columns=("set", "epsilon", "zero", "max norm, Alg. 3 (leaks)", "ours"),
                rows=tuple(rows),
                note=f"delta 1e-6; means over up to {FOLDS} folds, one fit each. Ours pays for "
                "scales, sums of squares and the number of rows, too.",
            ),
        ),
    )


def _noise(regression: Callable[..., Any]) -> list[StudyCheck]:
    """Noise on X'X for the same bound on rows, in that of the thesis."""
    thesis = METHODS["Alg. 3"].deviation(1.0, DELTA)
    made = []
    for label, intercept in (("without intercept", False), ("with intercept", True)):
        for d in (5, 18):
            how = {"scaling": "bounds", "mapping": "ball", "fit_intercept": intercept}
            plan = regression(epsilon=1, delta=1e-6, **how).plan(features=d)
            bound = plan.lattice.row_squared / plan.lattice.steps**2
            made.append(
                _OURS.at_most(f"E14/noise, {label}/{d}", "noise on X'X in that of the thesis for "
                              f"the same bound, {label}, {d} columns, epsilon 1, delta 1e-6",
                              expected=0.4, got=plan.sigma / (bound * thesis))
            )  # fmt: skip
    return made


def _errors(
    regression: Callable[..., Any], data: RegressionDataSet, epsilon: float, *, many: int
) -> Floats:
    """Test errors of one fit for each of some folds, in units of the largest centered target."""
    assert data.raw is not None  # noqa: S101 - all sets of DOMAINS have known means
    x, y = data.raw
    order = np.random.Generator(np.random.Philox(0)).permutation(len(x))
    x, y = x[order], y[order]
    tops, top = DOMAINS[data.name]
    made = []
    for fold, part in enumerate(np.array_split(np.arange(len(x)), FOLDS)[:many]):
        keep = np.ones(len(x), dtype=bool)
        keep[part] = False
        model = regression(
            epsilon=epsilon,
            delta=1e-6,
            bounds=[(0, upper) for upper in tops],
            target_bounds=(0, top),
            scaling="private",
            mapping="ball",  # for prediction
            rng=seeded_rng(2020 + fold),
        ).fit(x[keep], y[keep])
        unit = float(np.abs(y[keep] - y.mean()).max())
        made.append(float(np.square((model.predict(x[part]) - y[part]) / unit).mean()))
    return np.array(made)


def _kept(name: str, epsilon: float, of_zero: float, of_thesis: float) -> list[StudyCheck]:
    made = [
        _OURS.at_most(f"E14/guarded/{name}/epsilon {epsilon:g}", "error of our own regression over "
                      f"that of predicting zero, {name}, epsilon {epsilon:g}",
                      expected=1.5, got=of_zero)
    ]  # fmt: skip
    if epsilon >= 1:
        made.append(
            _OURS.at_most(f"E14/against the thesis/{name}/epsilon {epsilon:g}", "error of our own "
                          "regression over that of the thesis with scales from the data, "
                          f"{name}, epsilon {epsilon:g}", expected=1.0, got=of_thesis)
        )  # fmt: skip
    return made
