"""Structures that a planner compares, and how a comparison is written below each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.noise.law import Floats
from discreet.queries.ranges.design import Design


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A structure with its noise, and its error over the workload."""

    design: Design
    noise: Floats
    mean: float
    """Mean variance over the workload."""

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.mean)

    @property
    def name(self) -> str:
        """Structure and noise in a few words."""
        return self.design.describe()


def table(lines: list[list[str]], *, words: int = 1) -> list[str]:
    """Columns below each other: so many of words, to the left, then numbers, to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            [
                *map(str.ljust, line[:words], widths[:words]),
                *map(str.rjust, line[words:], widths[words:]),
            ]
        )
        for line in lines
    ]
