"""E1: a plane, two training inputs, and what is learned between them."""

from __future__ import annotations

import numpy as np

from discreet_studies.blackbox_ranges.area_tables import extended, ranges, ranks
from discreet_studies.blackbox_ranges.example_functions import hyperplane
from discreet_studies.blackbox_ranges.input_partition import chessboard
from discreet_studies.checks import Claims
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting

_STEP = 1 / 1024
_CLAIMS = Claims(source="Aoutouf 2021, figure 5.1; A31")
_WIDTH = 512


def plane(setting: StudySetting) -> Findings:
    """Areas without data follow those with data, and never hold them back."""
    rng = setting.rng("E1")
    board = chessboard(positions=4, parts=3, lower=0, upper=1)
    checks: list[StudyCheck] = []
    wrong = far = 0
    gap = 0.0
    many = setting.times(200, quick=50)
    for _ in range(many):
        x = rng.uniform(size=(2, 4, 1))
        y, slope = hyperplane(x), float(rng.uniform(0.05, 1.0))
        cells = board.cells(x)
        apart = int((cells[0] != cells[1]).sum())
        trained = np.zeros(board.shape, dtype=bool)
        values = np.full(board.shape, np.nan)
        for cell, value in zip(cells, y, strict=True):
            trained[tuple(cell)] = True
            values[tuple(cell)] = value
        made = extended(values, slope)
        if apart:
            kept = max(abs(made[tuple(c)] - v) for c, v in zip(cells, y, strict=True)) < 1e-12
            wrong += bool(kept != (abs(y[0] - y[1]) <= slope * apart + 1e-12))
        spread = [np.ptp(made, axis=axis).max() for axis in range(4)]
        gap = max(gap, float(max(spread)) - slope)
        away = np.min([np.abs(made - made[tuple(cell)]) for cell in cells], axis=0)
        far += bool((away > slope * ranks(trained) + 1e-12).any())
    checks += [
        _CLAIMS.equal("E1/exact", "examples where trained centers do not equal the outputs exactly "
                      "if the slope allows it", expected=0, got=wrong),
        _CLAIMS.at_most("E1/gap", "largest excess of a gap over the slope",
                        expected=1e-12, got=gap),
        _CLAIMS.equal("E1/ranks", "examples where an area of rank k is more than k slopes away",
                      expected=0, got=far),
    ]  # fmt: skip
    return Findings(checks=tuple(checks), figures=(_figure(),))


def _figure() -> Figure:
    """Along the diagonal of the cube."""
    board = chessboard(positions=4, parts=3, lower=0, upper=1)
    x = np.array([[0.1, 0.2, 0.15, 0.1], [0.8, 0.9, 0.75, 0.95]])[..., None]
    values = np.full(board.shape, np.nan)
    values.ravel()[board.numbers(x)] = hyperplane(x)
    centers = np.rint(extended(values, _WIDTH * _STEP) / _STEP).astype(np.int64)
    low, high = ranges(centers, _WIDTH)
    at = np.linspace(0, 1, 121)
    inputs = np.repeat(at[:, None, None], 4, axis=1)
    areas = board.numbers(inputs)
    said = hyperplane(inputs)
    low_at, high_at = (end.ravel()[areas] * _STEP for end in (low, high))
    clipped = np.clip(said, low_at, high_at)
    lines = (("function", said), ("lower end", low_at), ("upper end", high_at),
             ("clipped", clipped))  # fmt: skip
    return Figure(
        id="E1/plane",
        title="A sum of four, clipped to ranges learned from two inputs",
        x="all four positions at",
        y="value",
        lines=tuple(Line(label=name, x=tuple(at), y=tuple(v)) for name, v in lines),
        note="exact; sensitivity 0.5, 81 areas, slope 0.5 between neighboring areas",
    )
