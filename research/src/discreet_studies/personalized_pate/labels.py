"""E5: labels until a budget is spent (Tables 6.4 and 6.5), beside the law of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np

from discreet.accounting.guarantee import approx_dp
from discreet.models.pate.label_plan import vanishing_label_ratio
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.accounting_errors import law
from discreet_studies.personalized_pate.reference_values import (
    BASELINE,
    CENSORED,
    HIGHS,
    LABELS,
    PLAIN_AT_3,
    REFERENCE_PLAIN,
    REJECTED,
    SHARES,
)
from discreet_studies.personalized_pate.run_helpers import (
    ENSEMBLES,
    SHUFFLES,
    VANISHING_RUNS,
    Panel,
    Run,
    baseline,
    copied,
    menu,
    until,
    vanished,
    weighted,
)
from discreet_studies.personalized_pate.votes import DELTA, WORLDS, World
from discreet_studies.study import (
    Cell,
    Figure,
    Findings,
    Line,
    StudyCheck,
    StudySetting,
    StudyTable,
)

CELLS = tuple((high, share) for high in HIGHS for share in SHARES)
WAYS = ("upsampling", "vanishing", "weighting")
NEAR = 0.10
"""Relative tolerance against printed counts."""
_LOOSER = 0.25
"""The same for simulated votes, of which only the costs are like those of real ones."""
_SOURCES = {"MNIST": "Table 6.4", "Adult": "Table 6.5"}


def labels(setting: StudySetting) -> Findings:
    """Both data sets, all cells, three ways."""
    checks: list[StudyCheck] = []
    tables: list[StudyTable] = []
    figures: list[Figure] = []
    for world in WORLDS:
        found = counts(setting, world)
        plain = plain_counts(setting, world, 1.0)
        checks += [*_plain(setting, world), *_printed(setting, world, found)]
        checks += [*_orders(setting, world, found, plain), *_gains(world, found, plain)]
        if not setting.quick:
            checks += uniform(world, found["weighting"], plain_counts(setting, world, 3.0))
        tables += [_table(world, found, plain), _gain_table(world, found, plain)]
        figures.append(_figure(setting, world, found))
    return Findings(checks=tuple(checks), tables=tuple(tables), figures=tuple(figures))


# ── runs ──────────────────────────────────────────────────────────────────────────────────────


def needed(world: World, cell: tuple[float, float]) -> int:
    """Items that teachers with shared records are asked: a quarter more than a run will take."""
    expected = law(cell) * BASELINE[world.name]
    wanted = math.ceil(1.25 * expected / (1 - REJECTED[world.name]))
    return min(wanted, world.sizes[1])


@cache
def runs_of(
    setting: StudySetting, world: World, way: str, cell: tuple[float, float]
) -> tuple[Run, ...]:
    """Runs of a cell: of all ensembles, each with several orders of the items."""
    rng = setting.rng(f"E5/{world.name}/{way}/{cell}")
    ensembles, shuffles = repetitions(setting)
    if way == "upsampling":
        panel = copied(setting, world, cell, needed(world, cell))
        return tuple(until(panel, menu(cell[0]), rng) for _ in range(ensembles * shuffles))
    if way == "vanishing":
        return tuple(
            vanished(setting, world, run, cell, rng)
            for run in range(ensembles)
            for _ in range(setting.times(VANISHING_RUNS, quick=2))
        )
    made = []
    for run in range(ensembles):
        panel = weighted(setting, world, run, cell)
        made += [until(panel, menu(cell[0]), rng) for _ in range(shuffles)]
    return tuple(made)


def repetitions(setting: StudySetting) -> tuple[int, int]:
    """Ensembles and orders of items for each."""
    return setting.times(ENSEMBLES, quick=1), setting.times(SHUFFLES, quick=6)


@cache
def counts(
    setting: StudySetting, world: World
) -> Mapping[str, Mapping[tuple[float, float], Floats]]:
    """Labels of all runs, by way and cell."""
    return {
        way: {
            cell: np.array([run.labels for run in runs_of(setting, world, way, cell)], dtype=float)
            for cell in cells(setting)
        }
        for way in WAYS
    }


def cells(setting: StudySetting) -> tuple[tuple[float, float], ...]:
    """Of both tables; a quick run has fewer."""
    return tuple(cell for cell in CELLS if cell[0] in (2.0, 3.0)) if setting.quick else CELLS


@cache
def plain_counts(setting: StudySetting, world: World, epsilon: float) -> Floats:
    """Labels of the plain ensemble."""
    rng = setting.rng(f"E5/{world.name}/plain {epsilon}")
    ensembles, shuffles = repetitions(setting)
    made = []
    for run in range(ensembles):
        found: Panel = baseline(setting, world, run)
        made += [
            until(found, {"low": approx_dp(epsilon, DELTA)}, rng).labels for _ in range(shuffles)
        ]
    return np.array(made, dtype=float)


# ── checks ────────────────────────────────────────────────────────────────────────────────────


def _plain(setting: StudySetting, world: World) -> list[StudyCheck]:
    near = _LOOSER if setting.quick else NEAR
    source = Claims(source=_SOURCES[world.name])
    made = [
        source.number(
            f"E5/{world.name}/baseline", f"labels at epsilon 1 for all, {world.name}",
            expected=BASELINE[world.name], got=float(plain_counts(setting, world, 1.0).mean()),
            relative=near,
        )
    ]  # fmt: skip
    again = {f"epsilon {e}": float(n) for e, n in REFERENCE_PLAIN[world.name].items()}
    got = {f"epsilon {e}": float(plain_counts(setting, world, float(e)).mean()) for e in (1, 2, 3)}
    made += Claims(source="reference run").numbers(
        f"E5/{world.name}/plain", f"labels for all alike, {world.name}", expected=again, got=got,
        relative=near,
    )  # fmt: skip
    if world.name == "MNIST":
        made.append(
            Claims(source="Section 6.3").number(
                "E5/MNIST/plain at 3", "labels of the plain ensemble at epsilon 3",
                expected=PLAIN_AT_3, got=got["epsilon 3"], relative=near,
            )
        )  # fmt: skip
    return made


def _printed(
    setting: StudySetting, world: World, found: Mapping[str, Mapping[tuple[float, float], Floats]]
) -> list[StudyCheck]:
    """Printed counts; of vanishing those with half of the teachers or more."""
    source = Claims(source=_SOURCES[world.name])
    looser = _LOOSER if setting.quick else NEAR
    made = []
    for way, values in found.items():
        for cell, got in values.items():
            name, what = _named(world, way, cell)
            printed = LABELS[world.name][way][cell]
            if printed is None:
                made.append(source.at_least(name, what, expected=CENSORED, got=float(got.mean())))
            elif way != "vanishing" or cell[1] > SHARES[0]:
                near = looser if way != "vanishing" else max(looser, 0.15)
                made.append(
                    source.number(
                        name, what, expected=printed, got=float(got.mean()), relative=near
                    )
                )
    return made


def _named(world: World, way: str, cell: tuple[float, float]) -> tuple[str, str]:
    high, share = cell
    return (
        f"E5/{world.name}/{way}/{high:g}, {share:.0%}",
        f"labels, {share:.0%} of the owners at epsilon {high:g}, {way}, {world.name}",
    )


def _orders(
    setting: StudySetting,
    world: World,
    found: Mapping[str, Mapping[tuple[float, float], Floats]],
    plain: Floats,
) -> list[StudyCheck]:
    """Upsampling is weighting; vanishing is worse; more is more; the law is near."""
    source = Claims(source="Section 6.3")
    mean = {way: {cell: float(v.mean()) for cell, v in each.items()} for way, each in found.items()}
    made = []
    near = _LOOSER if setting.quick else NEAR
    for cell in cells(setting):
        u, v, w = (mean[way][cell] for way in WAYS)
        tail = f"{world.name}/{cell[0]:g}, {cell[1]:.0%}"
        made.append(source.number(f"E5/u is w/{tail}", "upsampling gives what weighting gives",
                                  expected=w, got=u, relative=near))  # fmt: skip
        made.append(source.at_most(f"E5/v below w/{tail}", "vanishing over weighting, labels",
                                   expected=1.0, got=v / w))  # fmt: skip
        if cell[1] == SHARES[0]:
            made.append(source.at_most(f"E5/v below all/{tail}", "vanishing over everybody alike",
                                       expected=1.0, got=v / float(plain.mean())))  # fmt: skip
        made.append(
            Claims(source="M41").number(
                f"E5/law/{tail}", "labels of weighting by the law", expected=law(cell)
                * float(plain.mean()), got=w, relative=0.15,
            )
        )  # fmt: skip
    for way in ("upsampling", "weighting"):
        grown = min(
            mean[way][(high, more)] / mean[way][(high, less)]
            for high in {cell[0] for cell in cells(setting)}
            for less, more in pairwise(SHARES)
        )
        made.append(source.at_least(f"E5/more is more/{world.name}/{way}", "labels when a quarter "
                                    "more of the owners are generous, over before, at least",
                                    expected=1.0, got=grown))  # fmt: skip
    return made


def uniform(
    world: World, weighting: Mapping[tuple[float, float], Floats], alike: Floats
) -> list[StudyCheck]:
    """The same mean budget gives most labels when it is spread evenly; the law is concave."""
    source = Claims(source="Section 6.3, M41")
    even = {3: alike, 2: weighting[3.0, 0.5]}
    uneven = {3: weighting[5.0, 0.5], 2: weighting[5.0, 0.25]}
    words = {3: "(3, 3) over (1, 5), half and half", 2: "(1, 3), half and half, over (1, 5), 25 %"}
    return [
        source.at_least(
            f"E5/even is more/{world.name}/mean {mean}", f"labels of {words[mean]}, the same mean "
            f"budget, {world.name}", expected=1.0, got=float(even[mean].mean() /
                                                             uneven[mean].mean()),
        )
        for mean in (3, 2)
    ]  # fmt: skip


def _gains(
    world: World,
    found: Mapping[str, Mapping[tuple[float, float], Floats]],
    plain: Floats,
) -> list[StudyCheck]:
    """Every cell of upsampling and weighting gains, by more than four standard errors."""
    source = Claims(source="Section 6.3")
    return [
        source.at_least(
            f"E5/gain/{world.name}/{way}", "the smallest gain over everybody alike, in standard "
            "errors", expected=4.0, got=min(gain(v, plain)[0] / gain(v, plain)[1] for v in
                                            found[way].values()),
        )
        for way in ("upsampling", "weighting")
    ]  # fmt: skip


def gain(found: Floats, plain: Floats) -> tuple[float, float]:
    """Labels gained by a personalization in per cent, and the standard error."""
    ratio = float(found.mean() / plain.mean())
    parts = [float(v.std(ddof=1) / v.mean() / math.sqrt(len(v))) for v in (found, plain)]
    return 100 * (ratio - 1), 100 * ratio * math.hypot(*parts)


# ── tables and figures ────────────────────────────────────────────────────────────────────────


def _table(
    world: World, found: Mapping[str, Mapping[tuple[float, float], Floats]], plain: Floats
) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for cell in found["weighting"]:
        row: list[Cell] = [f"{cell[0]:g}", f"{cell[1]:.0%}"]
        for way in WAYS:
            printed = LABELS[world.name][way][cell]
            row += [printed if printed is not None else f"> {CENSORED:,}",
                    round(float(found[way][cell].mean()))]  # fmt: skip
        part = 1 / (2 * cell[0] ** 2)
        ratio = _rho_ratio(cell[0])
        row += [
            round(law(cell) * float(plain.mean())),
            round(vanishing_label_ratio(cell[1], ratio=ratio, part=part) * float(plain.mean())),
        ]
        rows.append(tuple(row))
    return StudyTable(
        id=f"E5/{world.name}/labels",
        title=f"{world.name}: labels until a budget is spent, printed and again",
        columns=("high", "share", *(f"{way}{kind}" for way in WAYS for kind in (", printed", "")),
                 "law, u and w", "law, v"),
        rows=tuple(rows),
        note=f"Everybody at epsilon 1: {plain.mean():.0f} labels, printed {BASELINE[world.name]}. "
        "Accounting of the thesis, a diagnosis and no guarantee. The law: M41.",
    )  # fmt: skip


def _rho_ratio(high: float) -> float:
    return law((high, 1.0))


def _gain_table(
    world: World, found: Mapping[str, Mapping[tuple[float, float], Floats]], plain: Floats
) -> StudyTable:
    rows: list[tuple[Cell, ...]] = []
    for cell in found["weighting"]:
        row: list[Cell] = [f"{cell[0]:g}", f"{cell[1]:.0%}"]
        row += ["{:+.0f} ± {:.0f}".format(*gain(found[way][cell], plain)) for way in WAYS]
        rows.append(tuple(row))
    return StudyTable(
        id=f"E5/{world.name}/gains",
        title=f"{world.name}: labels gained over everybody at epsilon 1, per cent",
        columns=("high", "share", *WAYS),
        rows=tuple(rows),
        note="± one standard error over ensembles, orders of items and noise.",
    )


def _figure(
    setting: StudySetting, world: World, found: Mapping[str, Mapping[tuple[float, float], Floats]]
) -> Figure:
    lines = []
    for high in sorted({cell[0] for cell in cells(setting)}):
        at = [cell for cell in cells(setting) if cell[0] == high]
        lines.append(
            Line(
                label=f"weighting, (1, {high:g})",
                x=tuple(100 * cell[1] for cell in at),
                y=tuple(float(found["weighting"][cell].mean()) for cell in at),
            )
        )
        printed = [(100 * c[1], n) for c in at if (n := LABELS[world.name]["weighting"][c])]
        lines.append(
            Line(
                label=f"printed, (1, {high:g})",
                x=tuple(p[0] for p in printed),
                y=tuple(float(p[1]) for p in printed),
                points=True,
            )
        )
    ensembles, shuffles = repetitions(setting)
    return Figure(
        id=f"E5/{world.name}",
        title=f"{world.name}: labels until a budget is spent",
        x="owners at the larger epsilon, per cent",
        y="labels",
        lines=tuple(lines),
        note=f"delta 1e-5; {ensembles * shuffles} runs; accounting of the thesis",
        log_y=True,
    )
