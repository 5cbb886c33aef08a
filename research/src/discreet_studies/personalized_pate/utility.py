"""E1: how good teachers and voted labels are, and how many items are rejected (Figure 6.2)."""

from __future__ import annotations

import numpy as np

from discreet.models.pate._tune_aggregator import expected_label_quality
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.datasets import digits
from discreet_studies.personalized_pate.reference_values import REJECTED, TEACHERS, VOTED
from discreet_studies.personalized_pate.run_helpers import baseline, panel
from discreet_studies.personalized_pate.teachers import COPIES, KernelRidge, split
from discreet_studies.personalized_pate.votes import MNIST, WORLDS, World, plain, plain_assignment
from discreet_studies.study import Cell, Findings, StudyCheck, StudySetting, StudyTable

_SOURCE = "Section 6.3.1, Figure 6.2"


def utility(setting: StudySetting) -> Findings:
    """Accuracy of teachers and labels, rejections, copies of images."""
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    for world in WORLDS:
        answered, right = judged(setting, world)
        mean = float(plain(setting, world).accuracies.mean())
        checks += _world(setting, world, answered, right, mean)
        rows.append((world.name, mean, TEACHERS[world.name], right, VOTED[world.name],
                     1 - answered, REJECTED[world.name]))  # fmt: skip
    checks += _few(setting) if setting.quick else _copies(setting)
    return Findings(checks=tuple(checks), tables=(_table(setting, rows),))


def judged(setting: StudySetting, world: World, *, copies: int = COPIES) -> tuple[float, float]:
    """The share of items that are answered and the share of labels that are right, expected."""
    votes = plain(setting, world, copies=copies)
    found = panel(votes, plain_assignment(), world.rule)
    return expected_label_quality(found.counts, found.truth, world.rule)


def _world(
    setting: StudySetting, world: World, answered: float, right: float, mean: float
) -> list[StudyCheck]:
    source = Claims(source=_SOURCE)
    rng = setting.rng(f"E1/{world.name}")
    found = baseline(setting, world, 0)
    drawn = np.mean([found.drawn(rng)[1].mean() for _ in range(5)])
    made = [
        source.number(f"E1/{world.name}/rejected", f"share of items without an answer, "
                      f"{world.name}", expected=REJECTED[world.name], got=1 - answered,
                      absolute=0.03),
        source.number(f"E1/{world.name}/drawn", "the same when noise is drawn, against the mean of "
                      f"Phi, {world.name}", expected=1 - answered, got=1 - float(drawn),
                      absolute=0.012),
    ]  # fmt: skip
    if not setting.quick:
        made += [
            source.number(f"E1/{world.name}/teachers", f"mean accuracy of teachers, {world.name}",
                          expected=TEACHERS[world.name], got=mean, absolute=0.02),
            source.number(f"E1/{world.name}/labels", f"share of labels that are right, "
                          f"{world.name}", expected=VOTED[world.name], got=right, absolute=0.02),
        ]  # fmt: skip
    return made


def _copies(setting: StudySetting) -> list[StudyCheck]:
    """Turned and shifted copies inside each teacher cost nothing and help."""
    source = Claims(source=f"{_SOURCE}; Papernot et al. 2018")
    teachers = [float(plain(setting, MNIST, copies=c).accuracies.mean()) for c in (0, COPIES)]
    voted = [judged(setting, MNIST, copies=c)[1] for c in (0, COPIES)]
    return [
        source.number("E1/MNIST/without copies", "mean accuracy of teachers without copies of "
                      "images (Papernot et al.: 83.86 %)", expected=0.8386, got=teachers[0],
                      absolute=0.025),
        source.at_least("E1/MNIST/copies, teachers", "accuracy of teachers gained by copies",
                        expected=0.03, got=teachers[1] - teachers[0]),
        source.at_least("E1/MNIST/copies, labels", "accuracy of labels gained by copies",
                        expected=0.02, got=voted[1] - voted[0]),
    ]  # fmt: skip


def _few(setting: StudySetting) -> list[StudyCheck]:
    """The same on few digits: teachers with 40 records each."""
    data = digits(setting.data)
    rng = setting.rng("E1/digits")
    found = split(data, sizes=(1000, 500, 100), copies=COPIES, rng=rng)
    right = {0: 0.0, COPIES: 0.0}
    for copies in right:
        width = found.columns * (copies + 1)
        for start in range(0, 1000, 40):
            own = slice(start, start + 40)
            model = KernelRidge(found.columns).fit(found.private[own, :width],
                                                   found.private_y[own])  # fmt: skip
            right[copies] += float((model.predict(found.public) == found.public_y).mean()) / 25
    return [
        Claims(source=_SOURCE).at_least(
            "E1/digits/copies", f"accuracy of teachers gained by copies, {data.name}",
            expected=0.0, got=right[COPIES] - right[0],
        )
    ]  # fmt: skip


def _table(setting: StudySetting, rows: list[tuple[Cell, ...]]) -> StudyTable:
    note = "Simulated votes." if setting.quick else (
        "Kernel ridge with copies stands in for the thesis's networks (MNIST); forests (Adult)."
    )  # fmt: skip
    return StudyTable(
        id="E1/utility",
        title="Teachers, labels and rejections, again and printed",
        columns=("set", "teachers", "printed", "labels right", "printed", "rejected", "printed"),
        rows=tuple(rows),
        note=note,
    )
