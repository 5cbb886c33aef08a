"""E7: sizes that a list of areas cannot reach."""

from __future__ import annotations

import math
import time

import numpy as np

from discreet.models.blackbox.lipschitz_fit import fit_centers
from discreet.models.blackbox.metrics import ONE, CellMetric, Truncated
from discreet.models.blackbox.output_ranges import LeaveOneOutRange
from discreet_studies.blackbox_ranges import reference_values as stated
from discreet_studies.blackbox_ranges.area_tables import spread_min
from discreet_studies.blackbox_ranges.input_partition import chessboard
from discreet_studies.checks import Claims
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_RUNS = Claims(source=stated.RUNS.format(7))
_OURS = Claims(
    source="Aoutouf 2021, chapter 6.3; A22, A31, A35",
    why="The thesis lists all areas, whose number grows exponentially with the positions. Only "
    "trained areas matter.",
)
_WIDTH = 1 << 12


def scaling(setting: StudySetting) -> Findings:
    """A fit of many anchors, a query of many records, a domain that nobody can list."""
    rng = setting.rng("E7")
    anchors = setting.times(1000, quick=200)
    checks: list[StudyCheck] = []
    started = time.perf_counter()
    x = rng.uniform(size=(anchors, 100, 1))
    metric = Truncated(width=0.5)
    apart = metric.distances(x, x) / ONE
    y = np.median(x, axis=(1, 2)) * 50 * _WIDTH
    found = fit_centers(y, apart, _WIDTH)
    fit = time.perf_counter() - started
    model = LeaveOneOutRange(anchors=x, centers=np.rint(found.centers).astype(np.int64),
                    slope=_WIDTH,
                    width=_WIDTH, metric=metric)  # fmt: skip
    one = rng.uniform(size=(1, 100, 1))
    started = time.perf_counter()
    model.ranges(one)
    query = time.perf_counter() - started
    checks.append(
        _RUNS.at_most("E7/gap", "relative gap between the fit of all anchors and its dual bound",
                      expected=1e-9, got=found.gap / max(found.loss, 1.0))
    )  # fmt: skip
    checks += _astronomical(rng, setting)
    started = time.perf_counter()
    table = np.full((10,) * 6, np.inf)
    table[tuple(rng.integers(0, 10, size=(6, 40)))] = rng.uniform(size=40)
    spread = spread_min(table, 0.1, adjacency="replace")
    listed = time.perf_counter() - started
    checks.append(
        _RUNS.at_most("E7/table", "largest gap in a table of a million areas, in the slope",
                      expected=1 + 1e-9,
                      got=max(float(np.ptp(spread, axis=axis).max()) for axis in range(6)) / 0.1)
    )  # fmt: skip
    return Findings(
        checks=tuple(checks),
        tables=(
            StudyTable(
                id="E7/times",
                title="Seconds on this machine",
                columns=("what", "seconds"),
                rows=(
                    (f"fit of {anchors} anchors of 100 records, distances and all", fit),
                    (f"ranges of one input of 100 records, {anchors} anchors", query),
                    ("extension over a table of a million areas", listed),
                ),
            ),
        ),
        figures=(_figure(),),
    )


def _astronomical(rng: np.random.Generator, setting: StudySetting) -> list[StudyCheck]:
    """Fifty positions of ten cells each."""
    board = chessboard(positions=50, parts=10, lower=0, upper=1)
    x = rng.uniform(size=(100, 50, 1))
    metric = CellMetric.even(low=0, high=1, cells=10)
    centers = rng.integers(-20 * _WIDTH, 20 * _WIDTH, size=100)
    model = LeaveOneOutRange(anchors=x, centers=centers, slope=_WIDTH, width=_WIDTH, metric=metric)
    worst = empty = 0
    for _ in range(setting.times(200, quick=40)):
        # One input near an anchor, one of its positions replaced in all ways.
        family = np.repeat(x[rng.integers(100)][None], 11, axis=0)
        family[:, rng.integers(50), 0] = np.linspace(0, 1, 11)
        low, high = model.ranges(family)
        empty += int((low > high).sum())
        worst = max(worst, int(high.max() - low.min()))
    return [
        _OURS.equal("E7/areas", "areas of fifty positions of ten cells", expected="10^50",
                    got=f"10^{len(str(board.areas)) - 1}"),
        _OURS.at_most("E7/sensitivity", "largest change between neighbors, any centers, in the "
                      "sensitivity", expected=1.0, got=worst / _WIDTH),
        _OURS.equal("E7/empty", "empty ranges", expected=0, got=empty),
    ]  # fmt: skip


def _figure() -> Figure:
    n = np.arange(1, 51)
    return Figure(
        id="E7/size",
        title="What must be kept",
        x="positions",
        y="digits of how many numbers",
        lines=(
            Line(label="areas, 3 cells", x=tuple(map(float, n)), y=tuple(n * math.log10(3))),
            Line(label="areas, 10 cells", x=tuple(map(float, n)), y=tuple(map(float, n))),
            Line(label="250 anchors", x=tuple(map(float, n)), y=tuple(np.log10(250.0 * (n + 1)))),
        ),
        note="exact; logarithm to base 10",
    )
