"""E8: how far all bins of values together move when one record is replaced."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from discreet_studies.checks import Claims
from discreet_studies.study import StudyCheck


def bin_sensitivities() -> list[StudyCheck]:
    """B41: L1 change of the vector of bins' medians or means, over all small data, in widths."""
    wrong = Claims(
        source="M41, B41",
        why="Parallel composition is claimed for a replaced record; it may change two bins.",
    )
    right = Claims(source="B41")
    published = 1.0
    made = []
    for statistic, empty, expected in (
        ("median", "middle", 1.0), ("mean", "middle", 1.0), ("median", "left", 2.0),
        ("mean", "left", 2.0), ("lower", "middle", 2.0), ("largest", "middle", 2.0),
    ):  # fmt: skip
        made.append(
            (right if expected == published else wrong).number(
                f"E8/bins/{statistic}, {empty}",
                f"largest change of all bins when a record is replaced: {statistic}, {empty} of "
                "empty bins, in widths",
                expected=expected,
                got=largest_bin_change(statistic, empty),
                absolute=1e-6,
            )
        )
    return made


_OF_BIN: dict[str, Callable[[list[float]], float]] = {
    "median": lambda x: float(np.median(x)),
    "mean": lambda x: float(np.mean(x)),
    "lower": lambda x: sorted(x)[(len(x) - 1) // 2],
    "largest": max,
}


def largest_bin_change(statistic: str, empty: str) -> float:
    """Two bins of width 1 and up to three records, near the ends of the bins."""
    near = 1 - 1e-9
    grid = (0.0, near, 1.0, 1 + near)
    of_bin = _OF_BIN[statistic]

    def answers(data: tuple[float, ...]) -> list[float]:
        bins: list[list[float]] = [[], []]
        for value in data:
            bins[int(value)].append(value)
        blank = 0.5 if empty == "middle" else 0.0
        return [of_bin(x) if x else k + blank for k, x in enumerate(bins)]

    worst = 0.0
    for rows in (1, 2, 3):
        for rest in itertools.combinations_with_replacement(grid, rows - 1):
            for a, b in itertools.combinations(grid, 2):
                pairs = zip(answers((*rest, a)), answers((*rest, b)), strict=True)
                worst = max(worst, math.fsum(abs(x - y) for x, y in pairs))
    return worst
