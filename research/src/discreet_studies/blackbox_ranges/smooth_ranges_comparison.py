"""E6: noise that follows the area: what it costs, when it helps, and what the thesis has."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet_studies.blackbox_ranges import reference_values as stated
from discreet_studies.blackbox_ranges.prototypes import pair_delta
from discreet_studies.blackbox_ranges.smooth_ranges import (
    joint_ranges,
    kappa,
    smooth_as_published,
    textbook,
)
from discreet_studies.checks import Claims
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_RUNS = Claims(source=stated.RUNS.format(6))
_WRONG = Claims(
    source="Aoutouf 2021, lemma 4.9 and theorem 5.3",
    why="The thesis: a bound that changes by at most gamma between neighbors is smooth. The "
    "theorem it rests on wants a factor e^gamma.",
)
_BETAS = (0.001, 0.01, 0.0345, 0.05)


def smooth(_: StudySetting) -> Findings:
    """Multipliers, the published bound, and errors on counts of ones."""
    sizes = (10, 20, 50, 100, 200)
    errors = {n: _counts(n) for n in sizes}
    checks: list[StudyCheck] = []
    for epsilon, row in stated.KAPPAS.items():
        checks += _RUNS.numbers(
            f"E6/kappa/epsilon {epsilon:g}", f"multiplier at delta 1e-6, epsilon {epsilon:g}",
            expected={f"{b:g}": value for b, value in row.items()},
            got={f"{b:g}": kappa(epsilon=epsilon, delta=1e-6, smoothness=b) for b in row},
            absolute=0.0002,
        )  # fmt: skip
    for n in stated.COUNTS:
        names = ("one sensitivity", "textbook", "exact")
        checks += _RUNS.numbers(
            f"E6/counts/{n}", f"expected error on counts of ones, n = {n}",
            expected=dict(zip(names, stated.COUNTS[n], strict=True)),
            got=dict(zip(names, errors[n], strict=True)), absolute=0.002,
        )  # fmt: skip
    checks += [*_published(), *_short(errors)]
    return Findings(
        checks=tuple(checks),
        tables=(
            StudyTable(
                id="E6/counts",
                title="Counts of ones through a steep curve from 0 to 10, epsilon 1, delta 1e-6",
                columns=("n", "one sensitivity", "smooth, textbook", "smooth, exact"),
                rows=tuple((n, *row) for n, row in errors.items()),
                note="Expected absolute error of the best ranges and noise, by linear programs.",
            ),
        ),
        figures=(_multipliers(), _gains(errors)),
    )


def _counts(n: int) -> tuple[float, float, float]:
    at = np.arange(n + 1)
    y = 10 / (1 + np.exp(-10 * (at / n - 0.5)))
    edges = np.column_stack((at[:-1], at[1:]))

    def solved(smoothness: float, multiplier: float) -> float:
        return joint_ranges(edges, y, areas=at, many=n + 1, epsilon=1, smoothness=smoothness,
                            multiplier=multiplier).error  # fmt: skip

    exact = [solved(b, kappa(epsilon=1, delta=1e-6, smoothness=b)) for b in _BETAS]
    return solved(0, 1), solved(*textbook(epsilon=1, delta=1e-6)), min(exact)


def _published() -> list[StudyCheck]:
    """What the bound of the thesis is worth."""
    centers = np.zeros((2,) * 7, dtype=np.int64)
    centers[(1,) * 7] = 5
    bounds, _ = smooth_as_published(
        centers, width=Fraction(3, 5), step=Fraction(3, 50), gamma=Fraction(3, 25)
    )
    rng = np.random.Generator(np.random.Philox(6))
    levels = 0
    for _ in range(20):
        centers = rng.integers(0, 6, size=(3, 3, 3))
        drawn, _ = smooth_as_published(
            centers, width=Fraction(10), step=Fraction(1), gamma=Fraction(1), listing=True
        )
        levels = max(levels, len(set(drawn.ravel())))
    return [
        _WRONG.number("E6/published, delta", "true delta at epsilon 1 of neighbors with bounds "
                      "0.24 and 0.12", expected=0.119, got=pair_delta(0.24, 0.12, epsilon=1),
                      absolute=0.001),
        _WRONG.number("E6/published, claimed", "what the theorem would claim at gamma = 0.12",
                      expected=0.031, got=2 * math.exp(-1 / 0.24), absolute=0.001),
        _WRONG.equal("E6/published, zero", "smallest bound on seven binary positions: no noise "
                     "at all, next to noise", expected=0, got=int(min(bounds.ravel()))),
        _WRONG.at_most("E6/listing, levels", "different bounds that the listing can give",
                       expected=2, got=levels),
    ]  # fmt: skip


def _short(errors: dict[int, tuple[float, float, float]]) -> list[StudyCheck]:
    """Nowhere is the noise below that of one sensitivity by more than e^(smoothness n)."""
    smoothness, two = textbook(epsilon=1, delta=1e-6)
    return [
        _RUNS.number("E6/break-even", "positions from which the textbook's noise can gain at all",
                     expected=20.1, got=math.log(two) / smoothness, absolute=0.1),
        *(
            _RUNS.at_least(f"E6/no gain/{n}", f"textbook over one sensitivity, n = {n}",
                           expected=1.0, got=errors[n][1] / errors[n][0])
            for n in errors if n < 20
        ),
        _RUNS.at_most("E6/gain/200", "textbook over one sensitivity, n = 200", expected=0.9,
                      got=errors[200][1] / errors[200][0]),
    ]  # fmt: skip


def _multipliers() -> Figure:
    lines = []
    for epsilon, top in ((0.5, 0.04), (1.0, 0.075), (2.0, 0.14), (4.0, 0.25)):
        at = np.geomspace(0.001, top, 40)
        values = [kappa(epsilon=epsilon, delta=1e-6, smoothness=float(b)) for b in at]
        lines.append(Line(label=f"epsilon {epsilon:g}", x=tuple(at), y=tuple(values)))
    book = [(textbook(epsilon=e, delta=1e-6)[0], 2.0) for e in (0.5, 1.0, 2.0, 4.0)]
    lines.append(
        Line(
            label="textbook", x=tuple(x for x, _ in book), y=tuple(y for _, y in book), points=True
        )
    )
    return Figure(
        id="E6/multipliers",
        title="How much more noise a smooth bound needs",
        x="smoothness",
        y="noise, in that for one sensitivity",
        lines=tuple(lines),
        note="exact; delta 1e-6",
        log_x=True,
    )


def _gains(errors: dict[int, tuple[float, float, float]]) -> Figure:
    names = ("smooth, textbook", "smooth, exact")
    return Figure(
        id="E6/gains",
        title="When smooth noise helps",
        x="positions n",
        y="error, in that of one sensitivity",
        lines=tuple(
            Line(label=name, x=tuple(map(float, errors)),
                 y=tuple(row[k + 1] / row[0] for row in errors.values()))
            for k, name in enumerate(names)
        ),
        note="exact; counts of ones, epsilon 1, delta 1e-6",
        log_x=True,
    )  # fmt: skip
