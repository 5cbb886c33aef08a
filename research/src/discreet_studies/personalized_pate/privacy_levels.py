"""E7: menus of three levels from user studies (Boenisch et al. 2023), and the law of labels."""

from __future__ import annotations

import numpy as np

from discreet.accounting.guarantee import approx_dp
from discreet.models.pate.label_plan import expected_label_ratio
from discreet.models.pate.teacher_assignment import assign_weighting
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.labels import plain_counts, repetitions
from discreet_studies.personalized_pate.reference_values import MENUS
from discreet_studies.personalized_pate.run_helpers import panel, until
from discreet_studies.personalized_pate.votes import DELTA, TEACHERS, WORLDS, plain
from discreet_studies.study import Cell, Findings, StudyCheck, StudySetting, StudyTable

_LAW = Claims(source="M41")


def privacy_levels(setting: StudySetting) -> Findings:
    """Labels by weighting with three levels."""
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    ensembles, shuffles = repetitions(setting)
    for name, (shares, factor) in MENUS.items():
        people = {f"epsilon {e}": share for e, share in shares.items()}
        limits = {f"epsilon {e}": approx_dp(e, DELTA) for e in shares}
        law = expected_label_ratio(people, limits, against=approx_dp(1, DELTA))
        checks.append(_LAW.number(f"E7/{name}/law", f"labels by the law over everybody at "
                                  f"epsilon 1, menu {name}", expected=factor, got=law,
                                  absolute=0.005))  # fmt: skip
        made = assign_weighting(
            TEACHERS, people=people, sensitivities={f"epsilon {e}": float(e) for e in shares}
        )
        for world in WORLDS:
            rng = setting.rng(f"E7/{name}/{world.name}")
            found = []
            for run in range(ensembles):
                votes = panel(plain(setting, world, run=run), made, world.rule)
                found += [until(votes, limits, rng).labels for _ in range(shuffles)]
            alone = float(plain_counts(setting, world, 1.0).mean())
            got = float(np.mean(found)) / alone
            checks.append(_LAW.number(f"E7/{name}/{world.name}", f"labels over everybody at "
                                      f"epsilon 1, menu {name}, {world.name}", expected=law,
                                      got=got, relative=0.15))  # fmt: skip
            rows.append((name, world.name, round(alone), round(float(np.mean(found))), got, law))
    table = StudyTable(
        id="E7/menus",
        title="Three levels (epsilon 1, 2, 3) with the shares of two user studies",
        columns=("menu", "set", "everybody at 1", "weighting", "factor", "law"),
        rows=tuple(rows),
        note="Boenisch et al. 2023 report about 365 and 1,310 labels for 34/43/23 on MNIST, a "
        "factor of 3.6. Accounting of the thesis.",
    )
    return Findings(checks=tuple(checks), tables=(table,))
