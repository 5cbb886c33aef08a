"""What a schedule buys: privacy and the terms of the bound against the number of steps.

A plan is made from public or assumed constants (`ConvergenceProblem`) before any record is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.tabular import Record, Tabular
from discreet.models.dp_sgd._laplace_rates import (
    Floats,
    GradientBound,
    PowerSchedule,
    Verdict,
    best_gaussian_sigmas,
    best_laplace_scales,
    marginal_epsilons,
    noise_scales,
)
from discreet.models.dp_sgd.convergence import (
    ConvergenceBound,
    ConvergenceProblem,
    Noise,
    convergence_bound,
)

Budget: TypeAlias = Literal["iterate", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePoint:
    """One number of steps: what it costs and what the bound says."""

    steps: int
    last_cost: float
    """Epsilon (or rho, for Gaussian noise) of the last iterate, if it alone is published."""
    run_cost: float
    """Of all iterates, and of their average."""
    bound: ConvergenceBound

    def row(self) -> dict[str, float]:
        """As a line of a table."""
        return {
            "steps": self.steps,
            "last_cost": self.last_cost,
            "run_cost": self.run_cost,
            **asdict(self.bound),
            "total": self.bound.total,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleAnalysis(Tabular):
    """Cost and error bound of a schedule. Made by `analyze_schedule`.

    Attributes:
        schedule: Learning rates.
        budget: `"iterate"` or `"run"`.
        noise: `"laplace"` or `"gaussian"`.
        points: Cost and error bound for each number of steps.
        best: The number of steps with the smallest bound, up to the largest one.
        verdict: Behavior of the bound as the number of steps grows.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> problem = dp_sgd.ConvergenceProblem(
        ...     dimension=2, smoothness=1, variance=1, distance=1
        ... )
        >>> schedule = dp_sgd.PowerSchedule(start=0.25, decay=0.5, growth=1)
        >>> analysis = dp_sgd.analyze_schedule(
        ...     problem, schedule=schedule, sensitivity=1, steps=[10, 100], epsilon=1
        ... )
        >>> analysis.noise
        'laplace'
    """

    schedule: PowerSchedule
    budget: Budget
    noise: Noise
    points: tuple[SchedulePoint, ...]
    best: SchedulePoint
    verdict: Verdict

    def rows(self) -> list[Record]:
        """List one row per number of steps.

        Returns:
            Dicts with costs and the terms of the bound.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> problem = dp_sgd.ConvergenceProblem(
            ...     dimension=2, smoothness=1, variance=1, distance=1
            ... )
            >>> schedule = dp_sgd.PowerSchedule(start=0.25, decay=0.5, growth=1)
            >>> analysis = dp_sgd.analyze_schedule(
            ...     problem, schedule=schedule, sensitivity=1, steps=[10, 100], epsilon=1
            ... )
            >>> len(analysis.rows())
            2
        """
        return [point.row() for point in self.points]

    def __str__(self) -> str:
        unit = "epsilon" if self.noise == "laplace" else "rho"
        head = f"{'steps':>9} {unit + ' last':>13} {unit + ' run':>13}"
        head += f" {'distance':>11} {'variance':>11} {'noise':>11} {'bound':>11}"
        lines = [head]
        for point in self.points:
            terms = point.bound
            numbers = (terms.distance, terms.variance, terms.noise, terms.total)
            lines.append(
                f"{point.steps:>9} {short(point.last_cost, digits=5):>13} "
                f"{short(point.run_cost, digits=5):>13}"
                + "".join(f" {short(number):>11}" for number in numbers)
            )
        lines.append(
            f"With more steps the bound {self.verdict}; "
            f"the smallest is {short(self.best.bound.total)} after {self.best.steps} steps."
        )
        return "\n".join(lines)

    __repr__ = __str__


def analyze_schedule(
    facts: ConvergenceProblem,
    *,
    schedule: PowerSchedule,
    sensitivity: float,
    steps: int | Sequence[int],
    epsilon: float | None = None,
    rho: float | None = None,
    budget: Budget = "iterate",
    public_rows: int | None = None,
) -> ScheduleAnalysis:
    """Compute privacy and error bound of a schedule for several numbers of steps.

    Args:
        facts: Constants of the problem, assumed or from public data.
        schedule: Learning rates.
        sensitivity: Largest distance of two gradients: in L1 over all parameters for `"iterate"`,
            at the same parameters for `"run"` (L1 with `epsilon`, L2 with `rho`).
        steps: Numbers of steps, or the largest one.
        epsilon: Privacy loss with Laplace noise. Give `epsilon` or `rho`.
        rho: Privacy loss in zCDP with Gaussian noise, for `budget="run"`.
        budget: `"iterate"` gives a guarantee for one published iterate, which may grow with the
            schedule. `"run"` spreads the budget over all steps and covers all iterates.
        public_rows: Public number of records, of which one secret record is drawn per step. By
            default all records are used in each step.

    Returns:
        The analysis, with `best` and `verdict`.

    Raises:
        InvalidArgument: The budget or another argument is not valid.

    Privacy:
        No record is read. The analysis is as private as `facts`.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> problem = dp_sgd.ConvergenceProblem(
        ...     dimension=2, smoothness=1, variance=1, distance=1
        ... )
        >>> schedule = dp_sgd.PowerSchedule(start=0.25, decay=0.5, growth=1)
        >>> analysis = dp_sgd.analyze_schedule(
        ...     problem, schedule=schedule, sensitivity=1, steps=[10, 100], epsilon=1
        ... )
        >>> analysis.best.steps <= 100
        True

    See Also:
        [Schedules](../how-to/sgd-schedules.md).
    """
    wanted = _grid(steps)
    plan = _plan(schedule, sensitivity, epsilon=epsilon, rho=rho, budget=budget, rows=public_rows)
    noise: Noise = "laplace" if rho is None else "gaussian"

    def point(number: int) -> SchedulePoint:
        scales, last, run = plan(number)
        rates = schedule.rates(number)
        terms = convergence_bound(facts, rates=rates, scales=scales, noise=noise)
        return SchedulePoint(steps=number, last_cost=last, run_cost=run, bound=terms)

    points = tuple(point(number) for number in wanted)
    return ScheduleAnalysis(
        schedule=schedule,
        budget=budget,
        noise=noise,
        points=points,
        best=_best(points, point),
        # One budget for the whole run lasts for no unlimited number of steps: the noise term grows
        # as N^(2 - decay) for Laplace and N^(1 - decay) for Gaussian noise.
        verdict=schedule.verdict if budget == "iterate" else "diverges",
    )


def _grid(steps: int | Sequence[int]) -> list[int]:
    if isinstance(steps, int):
        most = count("steps", steps)
        spread = np.geomspace(1, most, num=min(most, 25))
        return sorted({round(number) for number in spread.tolist()})
    wanted = sorted({count("steps", number) for number in steps})
    if not wanted:
        raise InvalidArgument("steps must name at least one number of steps.")
    return wanted


_Plan: TypeAlias = Callable[[int], tuple[Floats, float, float]]


def _plan(
    schedule: PowerSchedule,
    sensitivity: float,
    *,
    epsilon: float | None,
    rho: float | None,
    budget: Budget,
    rows: int | None,
) -> _Plan:
    """From a number of steps to the noise of each step and what the run costs."""
    width = float(positive("sensitivity", sensitivity))
    records = None if rows is None else count("public_rows", rows)
    if (epsilon is None) == (rho is None):
        raise InvalidArgument("analyze takes either epsilon or rho.")
    if budget == "iterate":
        if epsilon is None:
            raise InvalidArgument(
                "budget='iterate' takes epsilon: the schedule's noise is Laplace."
            )
        return _iterate_plan(schedule, width, float(positive("epsilon", epsilon)), records)
    if budget != "run":
        raise InvalidArgument(f"budget must be 'iterate' or 'run', got {budget!r}.")
    if rho is not None:
        if records is not None:
            raise InvalidArgument("rows is for Laplace noise: rho has no simple amplification.")
        total = float(positive("rho", rho))
        return lambda number: (
            best_gaussian_sigmas(schedule.rates(number), sensitivity=width, rho=total),
            total,
            total,
        )
    assert epsilon is not None  # noqa: S101 - one of the two
    return _run_plan(schedule, width, float(positive("epsilon", epsilon)), records)


def _iterate_plan(schedule: PowerSchedule, width: float, epsilon: float, rows: int | None) -> _Plan:
    gradients = GradientBound(dimension=1, diameter=width)

    def plan(number: int) -> tuple[Floats, float, float]:
        rates = schedule.rates(number)
        growths = schedule.growths(number)
        scales = noise_scales(rates, diameter=width, epsilon=epsilon, growths=growths)
        run = float(drawn_epsilons(width / scales, rows=rows).sum())
        last = float(marginal_epsilons(rates, scales=scales, bound=gradients)[-1])
        return scales, min(last, run), run

    return plan


def _run_plan(schedule: PowerSchedule, width: float, epsilon: float, rows: int | None) -> _Plan:
    def plan(number: int) -> tuple[Floats, float, float]:
        rates = schedule.rates(number)
        shares = 1 / best_laplace_scales(rates, sensitivity=1.0, epsilon=epsilon)
        if rows is not None:
            shares = undrawn_epsilons(shares, rows=rows)
        return width / shares, epsilon, epsilon

    return plan


def drawn_epsilons(epsilons: Floats, *, rows: int | None, batch: int = 1) -> Floats:
    """Epsilons of steps on a secret fresh batch of ``batch`` out of ``rows`` records."""
    if rows is None:
        return epsilons
    rate = min(1.0, count("batch", batch) / count("rows", rows))
    amplified: Floats = np.log1p(rate * np.expm1(epsilons))
    return amplified


def undrawn_epsilons(epsilons: Floats, *, rows: int, batch: int = 1) -> Floats:
    """The inverse of `drawn_epsilons`: what steps may cost before drawing, to cost this after."""
    ratio = max(1.0, count("rows", rows) / count("batch", batch))
    # Beyond 30 the logarithm is linear to the last digit, and the exponential would overflow.
    near = np.log1p(ratio * np.expm1(np.minimum(epsilons, 30.0)))
    allowed: Floats = np.where(epsilons > 30, epsilons + math.log(ratio), near)
    return allowed


def _best(points: Iterable[SchedulePoint], point: Callable[[int], SchedulePoint]) -> SchedulePoint:
    """The smallest bound: on the grid first, then between the neighbors of what was found."""
    known = {item.steps: item for item in points}
    while True:
        numbers = sorted(known)
        best = min(numbers, key=lambda number: known[number].bound.total)
        at = numbers.index(best)
        low, high = numbers[max(at - 1, 0)], numbers[min(at + 1, len(numbers) - 1)]
        fresh = [
            number
            for number in {round(x) for x in np.linspace(low, high, 9).tolist()}
            if number not in known
        ]
        if not fresh:
            return known[best]
        for number in fresh:
            known[number] = point(number)
