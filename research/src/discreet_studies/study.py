"""What a study is: published experiments run again, and a verdict on every number they state."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from discreet.core.errors import InvalidArgument

Cell: TypeAlias = str | int | float | None
Value: TypeAlias = Cell | tuple[Cell, ...]
Verdict: TypeAlias = Literal["reproduced", "corrected", "not reproducible"]
Rule: TypeAlias = Literal["within", "at least", "at most", "equal", "order", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCheck:
    """One number or ordering that was stated, and what came out here."""

    id: str
    claim: str
    source: str
    """Where it is stated: a table, figure or item."""
    rule: Rule
    """How `got` is held against `expected`."""
    expected: Value
    got: Value
    tolerance: float | None
    """For "within": the largest difference allowed."""
    ok: bool
    verdict: Verdict
    why: str = ""
    """What was corrected, or why it cannot be reproduced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """Numbers side by side."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve, or points alone (``points``)."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    points: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Curves over one axis. Labels carry units, the note epsilon and repetitions."""

    id: str
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    note: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one experiment gives."""

    checks: tuple[StudyCheck, ...]
    tables: tuple[StudyTable, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySetting:
    """How to run: ``quick`` simulates less; the seed decides everything that is random."""

    quick: bool = False
    seed: int = 0
    data: Path | None = None
    """A folder with public data that cannot be shipped, for the studies that ask for some."""

    def rng(self, name: str) -> np.random.Generator:
        """A stream of its own for each experiment, so that one may be run without the others."""
        # Studies simulate on public or made-up counts and release nothing: no `RandomSource`
        # needed.
        return np.random.Generator(np.random.Philox([self.seed, zlib.crc32(name.encode())]))

    def times(self, full: int, *, quick: int) -> int:
        """A number of repetitions."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A part of a study that can be run by itself."""

    id: str
    title: str
    run: Callable[[StudySetting], Findings]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """A study before it is run."""

    name: str
    title: str
    source: str
    """The publication, by author, year and title."""
    summary: str
    """What was found, for people who will not read the tables."""
    experiments: tuple[Experiment, ...]
    seed: int = 0
    files: tuple[str, ...] = ()
    """Files that it looks for in a folder with data, if it is given one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study after it was run."""

    plan: StudyPlan
    setting: StudySetting
    tables: tuple[StudyTable, ...]
    figures: tuple[Figure, ...]
    checks: tuple[StudyCheck, ...]
    sections: tuple[tuple[Experiment, Findings], ...] = field(repr=False, default=())

    @property
    def ok(self) -> bool:
        """Whether every check came out as expected."""
        return all(check.ok for check in self.checks)

    def count(self, verdict: Verdict) -> int:
        """How many checks have this verdict."""
        return sum(check.verdict == verdict for check in self.checks)


def run(
    plan: StudyPlan,
    *,
    quick: bool = False,
    data: Path | None = None,
    progress: Callable[[Experiment], None] = lambda _: None,
) -> Study:
    """Run every experiment of a plan; ``progress`` is called before each.

    ``data``: a folder with data that the plan cannot ship; what is not there is not checked.
    """
    if data is not None and not plan.files:
        raise InvalidArgument(f"The study {plan.name} reads no files: leave out data.")
    if data is not None and not data.is_dir():
        raise InvalidArgument(f"data must be a folder; there is none at {data}.")
    setting = StudySetting(quick=quick, seed=plan.seed, data=data)
    sections = []
    for experiment in plan.experiments:
        progress(experiment)
        sections.append((experiment, experiment.run(setting)))
    return Study(
        plan=plan,
        setting=setting,
        tables=tuple(table for _, found in sections for table in found.tables),
        figures=tuple(figure for _, found in sections for figure in found.figures),
        checks=tuple(check for _, found in sections for check in found.checks),
        sections=tuple(sections),
    )
