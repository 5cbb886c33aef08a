"""E12: how far one row moves what was scaled by the data, and what is left of epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet.accounting.conversion import gaussian_epsilon
from discreet.noise.distribution import Floats
from discreet_studies.audits.published_claims import PublishedClaim
from discreet_studies.audits.refuted_claims import refuted
from discreet_studies.audits.regression_cases import (
    by_bounds,
    by_largest,
    change,
    claims,
    largest_pair,
)
from discreet_studies.checks import Claims
from discreet_studies.linear_regression.datasets import SMALL, RegressionDataSet
from discreet_studies.linear_regression.methods import DELTA, METHODS
from discreet_studies.linear_regression.preprocessing import (
    lengths,
    row_normed,
    scales,
    standardized,
)
from discreet_studies.linear_regression.run_helpers import Sets
from discreet_studies.study import (
    Cell,
    Figure,
    Findings,
    Line,
    StudyCheck,
    StudySetting,
    StudyTable,
)

LARGEST = {"airfoil": 114.0, "elevators": 5.7, "wine": 30.8, "concrete": 84.0, "housing": 30.0}
"""How far X'X moves when a row of ten times the largest norm is added (M4, K19); claimed: 1."""
TARGET = {"airfoil": 118.0, "elevators": 874.0}
"""How far X'y moves when a target of ten times the largest is added (M5); claimed: 1."""
MOMENTS = {"airfoil": 145.0, "elevators": 413.0}
"""How far X'X of rows of length 1 moves through means and deviations (M5); claimed: 1."""
RATIOS = {"airfoil": 3.0, "concrete": 2.6, "housing": 3.3, "wine": 5.4, "elevators": 42.0,
          "california": 59.0}  # fmt: skip
"""The largest norm over the median."""
_LEAK = Claims(
    source="M4, M5",
    why="The thesis scales with exact statistics of the private rows and counts a sensitivity of "
    "1. One row changes the scale of all others: there is no bound, so no epsilon either.",
)


def scaling_leakage(setting: StudySetting) -> Findings:
    """One outlier, and every row moves."""
    sets = Sets.of(setting, (*SMALL, "california"))
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    for data in sets:
        if data.name in RATIOS:
            z = lengths(standardized(data.x, scales(data.x)))
            checks.append(
                Claims(source="K19").number(
                    f"E12/norms/{data.name}", f"largest norm over the median, {data.name}",
                    expected=RATIOS[data.name], got=float(z.max() / np.median(z)), relative=0.02,
                )
            )  # fmt: skip
        moved = moves(data)
        checks += _moved(data.name, moved)
        rows.append((data.name, *moved.values(), *(true_epsilon(m) for m in moved.values())))
    found = claims()
    checks += [*refuted("E12", found), *_unbounded(), *sets.unchecked("E12", "M4, M5")]
    return Findings(
        checks=tuple(checks),
        tables=(_table(rows), _refuted_table(found)),
        figures=(_figure(),),
    )


def moves(data: RegressionDataSet) -> dict[str, float]:
    """How far one more row moves X'X or X'y; 1 is claimed for each."""
    by = scales(data.x)
    z = standardized(data.x, by)
    norms = lengths(z)
    furthest = z[norms.argmax()]
    u, y = row_normed(z), data.y / np.abs(data.y).max()
    return {
        "largest norm": _gram_change(z / norms.max(), np.vstack((z / 10, furthest)) / norms.max()),
        "largest target": float(np.linalg.norm(0.9 * u.T @ y)),
        "means and deviations": max(
            _gram_change(u, _rescaled(data.x, by.mean + by.deviation * far * furthest))
            for far in (10, 100, 1000)
        ),
        "row norm, declared scales": _gram_change(u, np.vstack((u, row_normed(furthest[None])))),
    }


def _rescaled(x: Floats, row: Floats) -> Floats:
    more = np.vstack((x, row))
    return row_normed(standardized(more, scales(more)))


def _gram_change(before: Floats, after: Floats) -> float:
    return float(np.linalg.norm(after.T @ after - before.T @ before))


def true_epsilon(moved: float) -> float:
    """What is paid at least for such a row with the thesis's noise, nominal epsilon 1."""
    return gaussian_epsilon(DELTA, mu=moved / METHODS["Alg. 3"].deviation(1.0, DELTA))


def _moved(name: str, moved: dict[str, float]) -> list[StudyCheck]:
    made = [
        Claims(source="K17").number(
            f"E12/row norm/{name}", f"how far one row moves X'X, declared scales, {name}",
            expected=1.0, got=moved["row norm, declared scales"], absolute=1e-6,
        )
    ]  # fmt: skip
    if name in LARGEST:
        made.append(_LEAK.number(f"E12/largest norm/{name}", "how far a row of ten times the "
                                 f"largest norm moves X'X, {name}; claimed: 1",
                                 expected=LARGEST[name], got=moved["largest norm"],
                                 relative=0.015))  # fmt: skip
    if name in TARGET:
        made.append(_LEAK.number(f"E12/largest target/{name}", "how far a target of ten times the "
                                 f"largest moves X'y, {name}; claimed: 1",
                                 expected=TARGET[name], got=moved["largest target"],
                                 relative=0.01))  # fmt: skip
    if name in MOMENTS:
        made.append(_LEAK.at_least(f"E12/means and deviations/{name}", "how far an outlier moves "
                                   f"X'X of rows of length 1, {name}; claimed: 1",
                                   expected=MOMENTS[name],
                                   got=moved["means and deviations"]))  # fmt: skip
    return made


def _table(rows: Sequence[tuple[Cell, ...]]) -> StudyTable:
    return StudyTable(
        id="E12/moves",
        title="How far one row moves the sums (claimed: 1), and what it then pays at least with "
        "the thesis's noise at nominal epsilon 1",
        columns=(
            "set",
            *("largest norm", "largest target", "means, deviations", "row norm, declared"),
            *("epsilon, norm", "epsilon, target", "epsilon, means", "epsilon, declared"),
        ),
        rows=tuple(rows),
        note="One row of ten times the largest norm or target is added; for means and deviations "
        "the worst of ten, a hundred and a thousand times. Twice the rows, twice the change.",
    )  # fmt: skip


# ── without data ──────────────────────────────────────────────────────────────────────────────


def _unbounded() -> list[StudyCheck]:
    """The change grows with the number of rows, and is that of one row if bounds are declared."""
    grown = [change(by_largest, *largest_pair(n)) for n in (100, 1000, 10_000)]
    kept = [change(by_bounds, *largest_pair(n)) for n in (100, 1000, 10_000)]
    return [
        _LEAK.at_least("E12/unbounded", "change of X'X and X'y by one outlier, 10,000 rows over "
                       "that of 1,000", expected=9.9, got=grown[2] / grown[1]),
        Claims(source="K25").at_most("E12/declared", "the same change with declared bounds, at "
                                     "any number of rows", expected=math.sqrt(2), got=max(kept)),
    ]  # fmt: skip


def _refuted_table(found: Sequence[PublishedClaim]) -> StudyTable:
    return StudyTable(
        id="E12/refuted",
        title="Claims, and their true delta",
        columns=("claim", "epsilon", "claimed", "true"),
        rows=tuple((c.name, c.epsilon, c.claimed, c.true) for c in found),
        note="One regressor. An event and its probability on both inputs is kept with every check.",
    )


def _figure() -> Figure:
    n = tuple(float(round(10 * 10 ** (k / 4))) for k in range(17))
    grown = tuple(change(by_largest, *largest_pair(int(m))) for m in n)
    return Figure(
        id="E12/growth",
        title="One outlier among n rows: how far the sums move",
        x="rows",
        y="change of X'X and X'y",
        lines=(
            Line(label="scaled by the largest row", x=n, y=grown),
            Line(label="declared bounds", x=(n[0], n[-1]), y=(math.sqrt(2), math.sqrt(2))),
        ),
        note="exact; one regressor, rows at 1, one more at 10",
        log_x=True,
        log_y=True,
    )
