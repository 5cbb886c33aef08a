"""E9: the errors that Wang 2018 published, beside ours."""

from __future__ import annotations

import math

from discreet_studies.checks import Claims
from discreet_studies.linear_regression import reference_values as stated
from discreet_studies.linear_regression.folds import folds
from discreet_studies.linear_regression.perturbed_sums import ROW_BEFORE
from discreet_studies.linear_regression.run_helpers import Sets, runs
from discreet_studies.study import Cell, Findings, StudyCheck, StudySetting, StudyTable

_SOURCE = "Wang 2018, results file"
_METHOD = "Alg. 2 code"


def wang(setting: StudySetting) -> Findings:
    """Zero, ridge, SSP and AdaSSP, row map with statistics of all rows."""
    sets = Sets.of(setting, tuple(stated.WANG))
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    for data in sets:
        name, run = data.name, runs(setting, "E9", data.name, full=400, quick=100)
        seen = folds(data, ROW_BEFORE)
        zero, ridge, printed = stated.WANG[name]
        kept = Claims(source=_SOURCE)
        checks += [
            kept.number(f"E9/zero/{name}", f"error of predicting zero, {name}",
                        expected=zero, got=seen.trivial, relative=0.02),
            kept.number(f"E9/ridge/{name}", f"error of ridge, {name}", expected=ridge,
                        got=seen.ridge(), relative=0.02),
        ]  # fmt: skip
        joint = {e: run.mean(seen, "joint, 2", e) for e in stated.WANG_AT}
        for epsilon, published in zip(stated.WANG_AT, printed, strict=True):
            if published is None:
                continue
            found = run.mean(seen, _METHOD, epsilon)
            checks.append(_one_draw(name, epsilon, published, found))
            rows.append((name, epsilon, zero, ridge, published, found, joint[epsilon]))
        if name in stated.WANG_SSP:
            checks += _ssp(name, [float(run.middle(seen, "SSP code", e)) for e in stated.WANG_AT])
    checks += sets.unchecked("E9", _SOURCE)
    return Findings(
        checks=tuple(checks),
        tables=(
            StudyTable(
                id="E9/AdaSSP",
                title="AdaSSP as published (one draw for each of ten folds), run again, and two "
                "releases accounted for together",
                columns=("set", "epsilon", "zero", "ridge", "published", "again", "joint"),
                rows=tuple(rows),
                note="delta 1e-6; row map with statistics of all rows, which are not private.",
            ),
        ),
    )


def _one_draw(name: str, epsilon: float, published: float, found: float) -> StudyCheck:
    """Published means have one draw for each fold: their standard error is up to a tenth."""
    spread = dict(zip((0.1, 1.0), stated.WANG_SPREAD[name], strict=True)).get(epsilon, 0.0)
    # Two standard errors of a mean over ten folds, or 15%.
    return Claims(source=_SOURCE).number(
        f"E9/AdaSSP/{name}/epsilon {epsilon:g}",
        f"error of AdaSSP as published, {name}, epsilon {epsilon:g}",
        expected=published,
        got=found,
        relative=0.15,
        absolute=2 * spread / 10**0.5,
    )


def _ssp(name: str, found: list[float]) -> list[StudyCheck]:
    """A law without a mean: what can be compared is where it is unstable, and where no more."""
    why = Claims(
        source=_SOURCE,
        why="Published means of SSP are decided by single fits. Medians over draws are compared, "
        "and only their order of magnitude.",
    )
    published, zero = stated.WANG_SSP[name][0], stated.WANG[name][0]
    return [
        why.at_least(f"E9/SSP, unstable/{name}", "median error of SSP at epsilon 0.1 in that of "
                     f"predicting zero, {name}", expected=1.5, got=found[0] / zero),
        why.number(f"E9/SSP, magnitude/{name}", "decimal logarithm of the published mean error of "
                   f"SSP at epsilon 0.1 over our median, {name}",
                   expected=0.0, got=math.log10(published / found[0]), absolute=1.0),
    ]  # fmt: skip
