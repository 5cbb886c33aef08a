"""E1, E2: noise on the sums alone, and with a private penalty (Figures 4.1 and 4.2)."""

from __future__ import annotations

from discreet_studies.checks import Claims
from discreet_studies.linear_regression import reference_values as stated
from discreet_studies.linear_regression.datasets import SMALL, RegressionDataSet
from discreet_studies.linear_regression.folds import Folds, folds
from discreet_studies.linear_regression.preprocessing import Map
from discreet_studies.linear_regression.run_helpers import (
    HEAVY_UP_TO,
    THESIS,
    RegressionRuns,
    by_set,
    figure,
    level,
)
from discreet_studies.study import Figure, Findings, StudyCheck, StudySetting

ROW_BEFORE = Map(kind="row", when="before")


def plain(setting: StudySetting) -> Findings:
    """E1: SSP, as coded by Wang and with the thesis's noise."""
    return by_set(setting, "E1", SMALL, source=f"{THESIS}, Figure 4.1", each=_plain)


def _plain(data: RegressionDataSet, run: RegressionRuns) -> tuple[list[StudyCheck], Figure]:
    seen = folds(data, ROW_BEFORE)
    checks = [*_baselines(data.name, seen), *_unstable(data.name, seen, run)]
    drawn = figure(
        f"E1/{data.name}",
        f"SSP on {data.name} (Figure 4.1)",
        (
            run.curve("SSP, Wang's code (median)", seen, "SSP code", middle=True),
            run.curve("SSP, fixed (median)", seen, "SSP fixed", middle=True),
            run.curve("Alg. 3", seen, "Alg. 3"),
            level("ridge", seen.ridge()),
            level("zero", seen.trivial),
        ),
        draws=run.draws,
    )
    return checks, drawn


def _baselines(name: str, seen: Folds) -> list[StudyCheck]:
    zero, ridge = stated.BASELINES[name]
    kept = Claims(source="reference, Wang 2018")
    # Housing has 506 rows: its split alone moves the error of ridge by 3%.
    room = 0.035 if name == "housing" else 0.02
    return [
        kept.number(f"E1/zero/{name}", f"error of predicting zero, {name}",
                    expected=zero, got=seen.trivial, relative=0.02),
        kept.number(f"E1/ridge/{name}", f"error of ridge, {name}",
                    expected=ridge, got=seen.ridge(), relative=room),
    ]  # fmt: skip


def worse(seen: Folds, run: RegressionRuns, method: str, epsilon: float) -> float:
    """The share of fits that are worse than predicting zero."""
    return float((run.errors(seen, method, epsilon) > seen.test_square[:, None]).mean())


def _unstable(name: str, seen: Folds, run: RegressionRuns) -> list[StudyCheck]:
    figured = Claims(source=f"{THESIS}, Figure 4.1")
    means = Claims(
        source="M18",
        why="The thesis compares means of one draw for each fold. The error has no mean: the share "
        "of fits that are worse than predicting zero is what can be compared.",
    )
    far = {
        e: float(run.errors(seen, "SSP fixed", e).mean()) / seen.trivial for e in (0.01, 0.05, 0.1)
    }
    made = [
        figured.at_least(f"E1/unstable/{name}/epsilon {e:g}", f"mean error of SSP in that of "
                         f"predicting zero, {name}, epsilon {e:g}", expected=10.0, got=got)
        for e, got in far.items()
    ]  # fmt: skip
    made += [
        figured.at_least(f"E1/AdaSSP wins/{name}/epsilon {e:g}", "median error of SSP over that of "
                         f"Alg. 3, {name}, epsilon {e:g}", expected=1.0,
                         got=run.middle(seen, "SSP fixed", e) / run.middle(seen, "Alg. 3", e))
        for e in (0.1, 0.2, 0.5)
    ]  # fmt: skip
    for method, table in stated.WORSE_THAN_TRIVIAL.items():
        made += means.numbers(
            f"E1/worse than zero/{method}/{name}",
            f"share of fits of {method} worse than predicting zero, {name}",
            expected={f"epsilon {e:g}": p for e, p in zip(stated.AT, table[name], strict=True)},
            got={f"epsilon {e:g}": worse(seen, run, method, e) for e in stated.AT},
            absolute=0.08,
        )
    return made


def adaptive(setting: StudySetting) -> Findings:
    """E2: AdaSSP, as printed by Wang, as coded by him, and with the thesis's noise."""
    return by_set(setting, "E2", SMALL, source=f"{THESIS}, Figure 4.2", each=_adaptive)


def _adaptive(data: RegressionDataSet, run: RegressionRuns) -> tuple[list[StudyCheck], Figure]:
    seen = folds(data, ROW_BEFORE)
    checks = [*_same(data.name, seen, run), *_little(data.name, seen, run)]
    drawn = figure(
        f"E2/{data.name}",
        f"AdaSSP on {data.name} (Figure 4.2)",
        (
            run.curve("Alg. 2 (Wang 2018)", seen, "Alg. 2", middle=True),
            run.curve("Alg. 3 (Kalaja 2020)", seen, "Alg. 3", middle=True),
            run.curve("two releases, joint", seen, "joint, 2", middle=True),
            level("ridge", seen.ridge()),
            level("zero", seen.trivial),
        ),
        draws=run.draws,
    )
    return checks, drawn


def _same(name: str, seen: Folds, run: RegressionRuns) -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for method, row in stated.ROW_BEFORE[name].items():
        made += run.judged(
            Claims(source="reference"),
            f"E2/{method}/{name}",
            f"error of {method}, {name}",
            data=seen,
            method=method,
            expected=dict(zip(stated.GRID, row, strict=True)),
            heavy=HEAVY_UP_TO.get(name, 0.0),
        )
    return made


def _little(name: str, seen: Folds, run: RegressionRuns) -> list[StudyCheck]:
    """Nearly equal, the thesis's a little worse."""
    figured = Claims(source=f"{THESIS}, Figure 4.2")
    excess = []
    for epsilon in stated.GRID:
        two, three = (run.middle(seen, method, epsilon) for method in ("Alg. 2", "Alg. 3"))
        excess.append(three / two - 1)
    return [
        # Below epsilon 0.2 both are near the error of predicting zero and chance decides.
        figured.at_least(f"E2/Alg. 3 is not better/{name}", "least excess of Alg. 3 over Alg. 2, "
                         f"median over draws, {name}", expected=-0.01, got=min(excess)),
        figured.at_most(f"E2/Alg. 3 is not much worse/{name}", "largest excess of Alg. 3 over "
                        f"Alg. 2, median over draws, {name}", expected=0.15, got=max(excess)),
    ]  # fmt: skip
