"""E6: the student, by number of labels alone (Tables 6.6 and 6.7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.datasets import digits
from discreet_studies.personalized_pate.labels import runs_of
from discreet_studies.personalized_pate.reference_values import (
    HIGHS,
    LABELS,
    SHARES,
    STUDENT_BASELINE,
    STUDENTS,
)
from discreet_studies.personalized_pate.run_helpers import Run, baseline, menu, until
from discreet_studies.personalized_pate.teachers import COPIES, ImageSplit, split
from discreet_studies.personalized_pate.votes import WORLDS, World, public_split
from discreet_studies.study import (
    Cell,
    Figure,
    Findings,
    Line,
    StudyCheck,
    StudySetting,
    StudyTable,
)

_TABLES = {"MNIST": "Table 6.6", "Adult": "Table 6.7"}
_ROWS = 4000
"""Rows that a student learns from at most, copies included."""
POINTS = {
    "weighting": ((1.5, 0.5), (2.0, 0.5), (3.0, 0.5), (5.0, 0.5), (2.0, 0.75)),
    "upsampling": ((2.0, 0.25), (2.0, 0.5)),
    "vanishing": ((2.0, 0.25), (2.0, 0.5), (3.0, 0.5), (5.0, 0.5)),
}
_RUNS = 4
"""Of each point: those of the first ensemble."""
_TESTED = 2000
"""Items beside the test that a student is tested on."""
NEAR_POINTS = {"MNIST": 2.5, "Adult": 2.0}
"""How far a student may be from what is printed."""
ALIKE = (1.0, 0.0)
_FEW = 150
"""Below so many labels one student differs much from the next."""


def students(setting: StudySetting) -> Findings:
    """Accuracy of students; on few digits in a quick run."""
    if setting.quick:
        return _few(setting)
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    figures = []
    for world in WORLDS:
        points = _points(setting, world)
        for (way, cell), (labels, mean, error) in points.items():
            printed = _printed(world, way, cell)
            where = f"{cell[0]:g}, {cell[1]:.0%}"
            again = f"{mean:.1f} ± {error:.1f}"
            rows.append((world.name, way, where, round(labels), again, printed))
        checks += [*_stated(world, points), *_one_curve(world, points)]
        figures.append(_figure(world, points))
    table = StudyTable(
        id="E6/students", title="Accuracy of students in per cent, again and printed",
        columns=("set", "way", "high, share", "labels", "again", "printed"), rows=tuple(rows),
        note="Tested on 1,000 records and 2,000 items that were not asked. ± one standard error.",
    )  # fmt: skip
    return Findings(checks=tuple(checks), tables=(table,), figures=tuple(figures))


def accuracy(
    data: ImageSplit, items: NDArray[np.intp], told: NDArray[np.int64], asked: NDArray[np.intp]
) -> float:
    """A student learns from items with labels, and is tested on the rest, in per cent."""
    versions = max(1, min(COPIES + 1, _ROWS // max(1, len(items))))
    width = data.columns * versions if data.images else data.columns
    model: Any = data.learner()
    model.fit(data.public[items, :width], told)
    rest = np.setdiff1d(np.arange(len(data.public)), asked)[:_TESTED]
    x = np.concatenate([data.test[:, : data.columns], data.public[rest, : data.columns]])
    y = np.concatenate([data.test_y, data.public_y[rest]])
    return 100 * float((model.predict(x) == y).mean())


def _points(
    setting: StudySetting, world: World
) -> dict[tuple[str, tuple[float, float]], tuple[float, float, float]]:
    """Labels, accuracy and its standard error, by way and cell; first ensemble."""
    rng = setting.rng(f"E6/{world.name}")
    data = public_split(world, setting.data, 0, COPIES)
    one = baseline(setting, world, 0)
    alone = [until(one, {"low": menu(2.0)["low"]}, rng) for _ in range(_RUNS)]
    found = {("weighting", ALIKE): _mean(data, alone, rng)}
    for way, cells in POINTS.items():
        for cell in cells:
            found[way, cell] = _mean(data, runs_of(setting, world, way, cell)[:_RUNS], rng)
    return found


def _mean(
    data: ImageSplit, runs: Sequence[Run], rng: np.random.Generator
) -> tuple[float, float, float]:
    right = [accuracy(data, run.asked[run.told], run.voted(rng), run.asked) for run in runs]
    labels = float(np.mean([run.labels for run in runs]))
    return labels, float(np.mean(right)), float(np.std(right, ddof=1) / math.sqrt(len(right)))


def _printed(world: World, way: str, cell: tuple[float, float]) -> float | None:
    if cell == ALIKE:
        return STUDENT_BASELINE[world.name]
    return STUDENTS[world.name][way][HIGHS.index(cell[0])][SHARES.index(cell[1])]


def _stated(
    world: World, points: Mapping[tuple[str, tuple[float, float]], tuple[float, float, float]]
) -> list[StudyCheck]:
    """Printed accuracies, where there are labels enough; and what more labels gain."""
    source = Claims(source=_TABLES[world.name])
    made = []
    for (way, cell), (labels, mean, _) in points.items():
        printed = _printed(world, way, cell)
        if labels >= _FEW and printed is not None:
            made.append(
                source.number(
                    f"E6/{world.name}/{way}/{cell[0]:g}, {cell[1]:.0%}",
                    f"accuracy of students, {way}, {world.name}",
                    expected=printed, got=mean, absolute=NEAR_POINTS[world.name],
                )
            )  # fmt: skip
    most = points["weighting", (5.0, 0.5)][1] - points["weighting", ALIKE][1]
    if world.name == "MNIST":
        made.append(source.number("E6/MNIST/gain", "points gained from the labels of everybody at "
                                  "epsilon 1 to those of (1, 5), half generous", expected=4.8,
                                  got=most, absolute=2.0))  # fmt: skip
    return made


def _one_curve(
    world: World, points: Mapping[tuple[str, tuple[float, float]], tuple[float, float, float]]
) -> list[StudyCheck]:
    """Upsampling and vanishing lie on the curve of weighting."""
    curve = sorted((labels, mean) for (way, _), (labels, mean, _) in points.items()
                   if way == "weighting")  # fmt: skip
    at = np.log([labels for labels, _ in curve])
    made = []
    for (way, cell), (labels, mean, _) in points.items():
        if way == "weighting" or labels < math.exp(at[0]) * 0.75:
            continue
        near = float(np.interp(math.log(labels), at, [value for _, value in curve]))
        made.append(
            Claims(source="Section 6.3.4").number(
                f"E6/one curve/{world.name}/{way}/{cell[0]:g}, {cell[1]:.0%}", "accuracy at so "
                f"many labels, {way}, against weighting, {world.name}", expected=near, got=mean,
                absolute=1.5,
            )
        )  # fmt: skip
    return made


def _figure(
    world: World, points: Mapping[tuple[str, tuple[float, float]], tuple[float, float, float]]
) -> Figure:
    lines = []
    for way in POINTS:
        found = sorted((n, mean) for (w, _), (n, mean, _) in points.items() if w == way)
        lines.append(Line(label=way, x=tuple(p[0] for p in found), y=tuple(p[1] for p in found),
                          points=True))  # fmt: skip
    stated = sorted(
        (float(count), accurate)
        for way in POINTS
        for cell, count in LABELS[world.name][way].items()
        if count is not None and (accurate := _printed(world, way, cell)) is not None
    )
    lines.append(Line(label="printed", x=tuple(p[0] for p in stated),
                      y=tuple(p[1] for p in stated)))  # fmt: skip
    return Figure(
        id=f"E6/{world.name}", title=f"{world.name}: a student knows what its labels tell",
        x="labels", y="accuracy of students, per cent", lines=tuple(lines), log_x=True,
        note=f"delta 1e-5; means of {_RUNS} runs, noise drawn",
    )  # fmt: skip


def _few(setting: StudySetting) -> Findings:
    """On few digits: students with labels of which 97 % are right."""
    data = digits(setting.data)
    rng = setting.rng("E6/digits")
    found = split(data, sizes=(0, 1000, 500), copies=COPIES, rng=rng)
    right = {}
    for labels in (40, 160, 640):
        made = []
        for _ in range(3):
            items = rng.permutation(1000)[:labels]
            wrong = rng.random(labels) < 0.03
            told = np.where(wrong, rng.integers(0, 10, labels), found.public_y[items])
            made.append(accuracy(found, items, told, items))
        right[str(labels)] = float(np.mean(made))
    source = Claims(source="Table 6.6")
    return Findings(
        checks=(
            source.order("E6/digits/order", f"accuracy grows with labels, {data.name}",
                         expected=tuple(right), got=right),
            source.at_least("E6/digits/most", f"accuracy with 640 labels, {data.name}",
                            expected=85.0, got=right["640"]),
        ),
        tables=(
            StudyTable(id="E6/students", title=f"Accuracy of students in per cent, {data.name}",
                  columns=("labels", "accuracy"),
                  rows=tuple((int(n), value) for n, value in right.items()),
                  note="97 % of the labels are right."),
        ),
    )  # fmt: skip
