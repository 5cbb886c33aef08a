"""Choices for those who make none: rate, steps and learning rate from public numbers alone.

The error of gradient descent has a part that shrinks with the way walked, ``learning rate times
steps``, and a part that the noise adds to it. For a run of length H over p parameters

    predicted excess = radius^2 / (2 H) + H p c^2 / 2,        c = clip e / rows,

where ``e = noise / (rate sqrt(steps))`` is the effective noise: what the noise of the whole run
would be in one step on all records. The accountant decides e; once the noise of a step is a few
times ``clip`` it hardly depends on rate and steps, so that H alone is chosen: ``radius / (c
sqrt(p))``, unless steps that stay stable do not reach as far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.guarantee import Guarantee
from discreet.core.check import count, non_negative, positive, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import Relation
from discreet.models.sgd.budget import Budget, cost, noise_for
from discreet.models.sgd.objectives import Objective
from discreet.models.sgd.slopes import Grid, whole_slopes
from discreet.models.sgd.train import RATE_BITS, Descent

# The noise of a step, in units of clip, for which the effective noise is 5 % above its limit.
_ENOUGH_NOISE = 3.0
_USUAL_STEPS = 300
# In steps of a gradient: 64 deviations before noise leaves the range of whole numbers.
_MOST_NOISE = 1 << 56
_FEWEST_STEPS, _MOST_STEPS = 100, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a person may fix; None leaves it to the plan."""

    rate: float | Fraction | None = None
    steps: int | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    average: float = 0.5

    def __post_init__(self) -> None:
        if self.rate is not None:
            probability("rate", self.rate, zero=False)
        if self.steps is not None:
            count("steps", self.steps)
        if self.learning_rate is not None:
            positive("learning_rate", self.learning_rate)
        if not 0 <= float(non_negative("momentum", self.momentum)) < 1:
            raise InvalidArgument(f"momentum must lie in [0, 1), got {self.momentum}.")
        probability("average", self.average)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run before a record is read: its noise, its guarantee, and how it will choose its pace."""

    objective: Objective
    wishes: Wishes
    relation: Relation
    rows_per_unit: int
    rate: Fraction
    steps: int
    noise: Fraction
    clip: float
    dimension: int
    smoothness: float
    radius: float
    counting: Fraction | None
    """Noise of the count of records, where their number is neither public nor declared."""

    @property
    def guarantee(self) -> Guarantee:
        """What the run costs."""
        return cost(
            relation=self.relation,
            rate=self.rate,
            steps=self.steps,
            noise=self.noise,
            counting=self.counting,
            rows_per_unit=self.rows_per_unit,
        )

    @property
    def effective_noise(self) -> float:
        """The noise of the whole run in one step on all records, in units of ``clip``."""
        return float(self.noise) / (float(self.rate) * math.sqrt(self.steps))

    def length(self, rows: float) -> float:
        """Learning rate (momentum included) times steps, for that many records."""
        if self.wishes.learning_rate is not None:
            pace = self.wishes.learning_rate / (1 - self.wishes.momentum)
            return pace * self.steps
        most = _stable(self.smoothness, self.wishes.momentum) * self.steps
        return min(most, self.radius / (self._noise(rows) * math.sqrt(self.dimension)))

    def predicted_excess(self, rows: float) -> float:
        """The excess loss to expect: an order of magnitude for comparing plans, not a promise."""
        length = self.length(rows)
        added = length * self.dimension * self._noise(rows) ** 2 / 2
        return self.radius**2 / (2 * length) + added

    def run(self, rows: float) -> Descent:
        """The run, once the number of records to divide by is known."""
        return Descent(
            objective=self.objective,
            rate=self.rate,
            steps=self.steps,
            noise=self.noise,
            clip=self.clip,
            rows=rows,
            learning_rate=self.length(rows) * (1 - self.wishes.momentum) / self.steps,
            momentum=self.wishes.momentum,
            average=self.wishes.average,
        )

    def _noise(self, rows: float) -> float:
        return self.clip * self.effective_noise / rows


def make_plan(
    objective: Objective,
    *,
    budget: Budget,
    wishes: Wishes,
    dimension: int,
    clip: float,
    smoothness: float,
    radius: float,
    rows: int | None,
) -> Plan:
    """A plan that keeps the budget. ``rows``: the public number of records, None if it is not.

    Only public numbers enter. Without ``rows`` a noisy count is part of the run, and nothing but
    the learning rate will depend on it, so that the guarantee is the same whatever it shows.
    """
    grid = Grid(clip=clip)
    whole_slopes(objective, grid)  # what cannot be trained is refused before anything is paid
    counting = budget.counting if rows is None else None
    steps = wishes.steps or _steps(
        budget,
        momentum=wishes.momentum,
        clip=clip,
        smoothness=smoothness,
        radius=radius,
        dimension=dimension,
        rows=rows,
    )
    rate = _rate(budget, wishes.rate, steps)
    noise = noise_for(budget, rate=rate, steps=steps, counting=counting)
    if noise * grid.sensitivity > _MOST_NOISE:
        raise Unsupported("The budget is so small that its noise has no room in 64 bits.")
    return Plan(
        objective=objective,
        wishes=wishes,
        relation=budget.relation,
        rows_per_unit=budget.rows_per_unit,
        rate=rate,
        steps=steps,
        noise=noise,
        clip=clip,
        dimension=dimension,
        smoothness=smoothness,
        radius=radius,
        counting=counting,
    )


def _steps(
    budget: Budget,
    *,
    momentum: float,
    clip: float,
    smoothness: float,
    radius: float,
    dimension: int,
    rows: int | None,
) -> int:
    """As many as the best length needs at the fastest stable pace, within limits."""
    if rows is None:
        return _USUAL_STEPS
    noise = clip / (budget.worth * max(rows, 1))
    length = radius / (noise * math.sqrt(dimension))
    wanted = math.ceil(length / _stable(smoothness, momentum))
    return min(max(wanted, _FEWEST_STEPS), _MOST_STEPS)


def _stable(smoothness: float, momentum: float) -> float:
    """The pace, momentum included, at half of where heavy-ball steps cease to be stable."""
    return (1 + momentum) / (smoothness * (1 - momentum))


def _rate(budget: Budget, wished: float | Fraction | None, steps: int) -> Fraction:
    """The wish, or enough for noise of a few times ``clip``; a multiple of 2**-32 below it."""
    if wished is not None:
        wanted = probability("rate", wished, zero=False)
    elif budget.amplifies:
        wanted = Fraction(min(1.0, _ENOUGH_NOISE * budget.worth / math.sqrt(steps)))
    else:
        wanted = Fraction(1)
    steps_of_rate = math.floor(wanted * (1 << RATE_BITS))
    if not steps_of_rate:
        raise InvalidArgument(f"rate must be at least 2**-{RATE_BITS}, got {wished}.")
    return Fraction(steps_of_rate, 1 << RATE_BITS)
