"""What the experiments share: which sets are here, curves over epsilon, checks of what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.linear_regression.datasets import RegressionDataSet, find
from discreet_studies.linear_regression.folds import Folds
from discreet_studies.linear_regression.methods import METHODS
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
"""Of the figures; Wang 2018 goes on to 10."""
THESIS = "Kalaja 2020"
SAME = 0.05
"""Relative tolerance against reference means, from epsilon 0.1 on."""
HEAVY = 0.15
"""The same where one fit in thousands decides the mean."""
HEAVY_UP_TO = {"airfoil": 0.2}
"""Sets on which that happens, and up to which epsilon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Data sets that an experiment asks for: those that are here, and those that are not."""

    here: tuple[RegressionDataSet, ...]
    absent: tuple[str, ...]

    @classmethod
    def of(cls, setting: StudySetting, names: Sequence[str]) -> Sets:
        """Look for all of them."""
        found = {name: find(name, setting.data) for name in names}
        return cls(
            here=tuple(data for data in found.values() if data is not None),
            absent=tuple(name for name, data in found.items() if data is None),
        )

    def __iter__(self) -> Iterator[RegressionDataSet]:
        return iter(self.here)

    def unchecked(self, experiment: str, source: str) -> list[StudyCheck]:
        """One check for each absent set, which says what would be needed."""
        claims = Claims(source=source, why="The set is not here: name a folder with --data.")
        return [
            claims.beyond(f"{experiment}/{name}", f"what is stated of {name}")
            for name in self.absent
        ]


@dataclass(frozen=True, slots=True, eq=False)
class RegressionRuns:
    """Private fits of one experiment on one set."""

    rng: np.random.Generator
    draws: int

    def errors(self, data: Folds, method: str, epsilon: float) -> Floats:
        """Test errors: (folds, draws)."""
        return METHODS[method].errors(data, epsilon=epsilon, draws=self.draws, rng=self.rng)

    def mean(self, data: Folds, method: str, epsilon: float) -> float:
        """The mean over folds and draws."""
        return float(self.errors(data, method, epsilon).mean())

    def middle(self, data: Folds, method: str, epsilon: float) -> float:
        """The median over draws of the mean over folds, where one fit can decide the mean."""
        return float(np.median(self.errors(data, method, epsilon).mean(axis=0)))

    def judged(
        self,
        claims: Claims,
        name: str,
        claim: str,
        *,
        data: Folds,
        method: str,
        expected: Mapping[float, float],
        heavy: float = 0.0,
    ) -> list[StudyCheck]:
        """Means by epsilon against reference means; medians, less strictly, up to ``heavy``."""
        return [
            claims.number(
                f"{name}/epsilon {e:g}",
                f"{claim}, epsilon {e:g}",
                expected=value,
                got=(self.middle if e <= heavy else self.mean)(data, method, e),
                relative=HEAVY if e <= heavy else SAME,
            )
            for e, value in expected.items()
        ]

    def curve(self, label: str, data: Folds, method: str, *, middle: bool = False) -> Line:
        """Means (or medians over draws) for a figure."""
        found = [self.errors(data, method, e) for e in EPSILONS]
        y = (np.median(one.mean(axis=0)) if middle else one.mean() for one in found)
        return Line(label=label, x=EPSILONS, y=tuple(float(value) for value in y))


def runs(
    setting: StudySetting, experiment: str, name: str, *, full: int = 200, quick: int = 60
) -> RegressionRuns:
    """A stream of its own for each set, so that sets can be absent."""
    return RegressionRuns(setting.rng(f"{experiment}/{name}"), setting.times(full, quick=quick))


def by_set(
    setting: StudySetting,
    experiment: str,
    names: Sequence[str],
    *,
    source: str,
    each: Callable[[RegressionDataSet, RegressionRuns], tuple[Sequence[StudyCheck], Figure]],
) -> Findings:
    """Checks and a figure for each set that is here; what is stated of the others is unchecked."""
    sets = Sets.of(setting, names)
    found = [each(data, runs(setting, experiment, data.name)) for data in sets]
    checks = [check for made, _ in found for check in made]
    return Findings(
        checks=(*checks, *sets.unchecked(experiment, source)),
        figures=tuple(drawn for _, drawn in found),
    )


def level(label: str, value: float) -> Line:
    """A line without privacy."""
    return Line(label=label, x=(EPSILONS[0], EPSILONS[-1]), y=(value, value))


def figure(name: str, title: str, lines: Iterable[Line], *, draws: int) -> Figure:
    """Errors against epsilon."""
    return Figure(
        id=name,
        title=title,
        x="epsilon",
        y="squared error (largest target is 1)",
        lines=tuple(lines),
        note=f"delta 1e-6; 10 folds of {draws} draws",
        log_x=True,
        log_y=True,
    )
