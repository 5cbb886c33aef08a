"""The cost of a run, and its plan: noise, rate, steps and learning rate from public numbers.

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
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.accounting.calibrate import smallest_asked, smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee, gdp, zcdp
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, non_negative, positive, probability
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd.losses import Loss
from discreet.models.dp_sgd.train import RATE_BITS, SlopeGrid, TrainingRun, whole_slopes

# ── Cost ─────────────────────────────────────────────────────────────────────────────────────────
# The guarantee is computed from the exact events: Poisson samples of Gaussian noise, composed by
# privacy-loss distributions, both directions apart, and the noisy count where there is one (C43).


# The noise is calibrated to this part; the claim is that of the noise that is used.
_PRECISION = 1e-4
# A noisy count may take this part of the squared Gaussian mu of the budget.
_COUNT_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingBudget:
    """What may be spent: (epsilon, delta), or rho (zCDP), or mu (GDP), under a relation.

    rho and mu are kept by runs on all records only: they say nothing about samples.
    """

    relation: NeighboringRelation
    max_rows_per_unit: int = 1
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None

    @classmethod
    def of(
        cls,
        *,
        relation: NeighboringRelation,
        epsilon: Number | None,
        delta: Number | None,
        rho: Number | None,
        mu: Number | None,
        max_rows_per_unit: int = 1,
    ) -> TrainingBudget:
        """Check the parameters of a user."""
        if relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
            raise RelationMismatch(
                "relation must be ADD_REMOVE or REPLACE_ONE, got "
                f"{relation!r}: gradients are added up by someone who sees the rows."
            )
        both = epsilon is not None and delta is not None
        if (epsilon is None) != (delta is None) or both + sum(
            given is not None for given in (rho, mu)
        ) != 1:
            raise InvalidArgument("Give one of: epsilon together with delta, or rho, or mu.")
        return cls(
            relation=relation,
            max_rows_per_unit=count("max_rows_per_unit", max_rows_per_unit),
            epsilon=None if epsilon is None else positive("epsilon", epsilon),
            delta=None if delta is None else probability("delta", delta, zero=False, one=False),
            rho=None if rho is None else positive("rho", rho),
            mu=None if mu is None else positive("mu", mu),
        )

    @property
    def gaussian_mu(self) -> float:
        """About the mu of a Gaussian mechanism with this guarantee, for one row added."""
        if self.epsilon is not None and self.delta is not None:
            mu = 1 / gaussian_sigma(float(self.epsilon), delta=float(self.delta))
        else:
            mu = float(self.mu) if self.mu is not None else math.sqrt(2 * float(self.rho or 0))
        return mu / changed_rows(self.relation, self.max_rows_per_unit)

    @property
    def amplifies(self) -> bool:
        """Whether samples are accounted for."""
        return self.epsilon is not None

    @property
    def counting(self) -> Fraction:
        """Standard deviation of a noisy count that takes a small part of the budget."""
        return Fraction(math.ceil(64 / (self.gaussian_mu * math.sqrt(_COUNT_SHARE))), 64)


def changed_rows(relation: NeighboringRelation, max_rows_per_unit: int) -> int:
    """How many rows one step of the relation adds or removes: a replacement does both."""
    return max_rows_per_unit * (2 if relation is NeighboringRelation.REPLACE_ONE else 1)


def training_cost(
    *,
    relation: NeighboringRelation,
    rate: Fraction,
    steps: int,
    noise: Fraction,
    counting: Fraction | None = None,
    max_rows_per_unit: int = 1,
) -> Guarantee:
    """The guarantee of a run, and of a count with Gaussian noise of ``counting`` before it."""
    # Theorem: for one row added or removed, `steps` Poisson samples of `GaussianEvent(noise)` and
    #   `GaussianEvent(counting)`, composed. A unit is a group of its rows; under replace-one of
    #   twice as many: a replacement is a removal and an addition.
    # Source: Zhu, Dong, Wang 2022 (the dominating pairs of a sample); C43. For replace-one C43
    #   names a pair that is believed to be the worst; what is used here is proved, and a few per
    #   cent larger.
    used = probability("rate", rate, zero=False)
    once: events.Event = events.GaussianEvent(positive("noise", noise))
    sampled = events.SampledEvent(used, once) if used < 1 else once
    parts = [events.repeat(sampled, count("steps", steps))]
    if counting is not None:
        parts.append(events.GaussianEvent(counting))
    group = changed_rows(relation, count("max_rows_per_unit", max_rows_per_unit))
    whole = events.compose(parts)
    return Guarantee(events.GroupEvent(group, whole) if group > 1 else whole, relation)


@lru_cache(maxsize=128)
def noise_for(
    budget: TrainingBudget, *, rate: Fraction, steps: int, counting: Fraction | None = None
) -> Fraction:
    """Noise multiplier with which a run keeps the budget: certified, and nearly the smallest."""
    # Theorem: the run's guarantee, by the accountant that will be asked, is within the budget; one
    #   with 1e-4 less noise is not (for rho and mu: with 1e-9 less).

    def spent(noise: Fraction) -> Guarantee:
        return training_cost(
            relation=budget.relation,
            rate=rate,
            steps=steps,
            noise=noise,
            counting=counting,
            max_rows_per_unit=budget.max_rows_per_unit,
        )

    share = budget.gaussian_mu / (float(rate) * math.sqrt(steps))
    start = 1 / math.sqrt(math.log1p(share**2)) if rate < 1 else 1 / share
    if budget.epsilon is None or budget.delta is None:
        if rate < 1:
            raise Unsupported(
                "rho and mu are not kept by samples: give epsilon and delta, or rate=1."
            )
        target = zcdp(budget.rho) if budget.rho is not None else gdp(budget.mu or 0)
        return smallest_scale(lambda noise: spent(noise).event, target=target, start=_short(start))
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    found = _smallest(lambda noise: spent(noise).delta(epsilon) <= delta, start)
    return smallest_asked(lambda noise: spent(noise).epsilon(delta), epsilon, start=found)


def _smallest(kept: Callable[[Fraction], bool], start: float) -> Fraction:
    """The smallest number that is kept, up to the precision, near ``start``."""
    low = high = start
    if kept(_short(high)):
        while kept(_short(low)):
            low, high = low / 1.05, low
            if low < start * 1e-6:
                raise Unsupported("The budget is so large that no noise would be added.")
    else:
        while not kept(_short(high)):
            low, high = high, high * 1.05
            if high > start * 1e6:
                raise Unsupported("No noise keeps this budget; give a larger one.")
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(_short(middle)) else (middle, high)
    return _short(high)


def _short(number: float) -> Fraction:
    """A rational just above, within a part of 2**-16, with few digits."""
    digits = 16 - math.floor(math.log2(number))
    unit = Fraction(2) ** digits
    return Fraction(math.ceil(Fraction(number) * unit)) / unit


# ── Plan ─────────────────────────────────────────────────────────────────────────────────────────


# The noise of a step, in units of clip, for which the effective noise is 5 % above its limit.
_ENOUGH_NOISE = 3.0
_USUAL_STEPS = 300
# In steps of a gradient: 64 deviations before noise leaves the range of whole numbers.
_MOST_NOISE = 1 << 56
_FEWEST_STEPS, _MOST_STEPS = 100, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What a user may fix; None leaves it to the plan."""

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
class TrainingPlan:
    """A run before a record is read: its noise, its guarantee, and how it will choose its pace."""

    objective: Loss
    options: TrainingOptions
    relation: NeighboringRelation
    max_rows_per_unit: int
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
        return training_cost(
            relation=self.relation,
            rate=self.rate,
            steps=self.steps,
            noise=self.noise,
            counting=self.counting,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    @property
    def effective_noise(self) -> float:
        """The noise of the whole run in one step on all records, in units of ``clip``."""
        return float(self.noise) / (float(self.rate) * math.sqrt(self.steps))

    def length(self, rows: float) -> float:
        """Learning rate (momentum included) times steps, for that many records."""
        if self.options.learning_rate is not None:
            pace = self.options.learning_rate / (1 - self.options.momentum)
            return pace * self.steps
        most = _stable(self.smoothness, self.options.momentum) * self.steps
        return min(most, self.radius / (self._noise(rows) * math.sqrt(self.dimension)))

    def predicted_excess(self, rows: float) -> float:
        """The excess loss to expect: an order of magnitude for comparing plans, not a guarantee."""
        length = self.length(rows)
        added = length * self.dimension * self._noise(rows) ** 2 / 2
        return self.radius**2 / (2 * length) + added

    def run(self, rows: float) -> TrainingRun:
        """The run, once the number of records to divide by is known."""
        return TrainingRun(
            objective=self.objective,
            rate=self.rate,
            steps=self.steps,
            noise=self.noise,
            clip=self.clip,
            rows=rows,
            learning_rate=self.length(rows) * (1 - self.options.momentum) / self.steps,
            momentum=self.options.momentum,
            average=self.options.average,
        )

    def _noise(self, rows: float) -> float:
        return self.clip * self.effective_noise / rows


def make_plan(
    objective: Loss,
    *,
    budget: TrainingBudget,
    options: TrainingOptions,
    dimension: int,
    clip: float,
    smoothness: float,
    radius: float,
    public_rows: int | None,
) -> TrainingPlan:
    """A plan that keeps the budget; ``public_rows`` is None if their number is not public.

    Only public numbers enter. Without ``public_rows`` a noisy count is part of the run, and
    nothing but the learning rate will depend on it, so that the guarantee is the same whatever it
    shows.
    """
    grid = SlopeGrid(clip=clip)
    whole_slopes(objective, grid)  # what cannot be trained is refused before anything is paid
    counting = budget.counting if public_rows is None else None
    steps = options.steps or _steps(
        budget,
        momentum=options.momentum,
        clip=clip,
        smoothness=smoothness,
        radius=radius,
        dimension=dimension,
        rows=public_rows,
    )
    rate = _rate(budget, options.rate, steps)
    noise = noise_for(budget, rate=rate, steps=steps, counting=counting)
    if noise * grid.sensitivity > _MOST_NOISE:
        raise Unsupported("The budget is so small that its noise does not fit 64 bits.")
    return TrainingPlan(
        objective=objective,
        options=options,
        relation=budget.relation,
        max_rows_per_unit=budget.max_rows_per_unit,
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
    budget: TrainingBudget,
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
    noise = clip / (budget.gaussian_mu * max(rows, 1))
    length = radius / (noise * math.sqrt(dimension))
    wanted = math.ceil(length / _stable(smoothness, momentum))
    return min(max(wanted, _FEWEST_STEPS), _MOST_STEPS)


def _stable(smoothness: float, momentum: float) -> float:
    """The pace, momentum included, at half of where heavy-ball steps cease to be stable."""
    return (1 + momentum) / (smoothness * (1 - momentum))


def _rate(budget: TrainingBudget, wished: float | Fraction | None, steps: int) -> Fraction:
    """The wish, or enough for noise of a few times ``clip``; a multiple of 2**-32 below it."""
    if wished is not None:
        wanted = probability("rate", wished, zero=False)
    elif budget.amplifies:
        wanted = Fraction(min(1.0, _ENOUGH_NOISE * budget.gaussian_mu / math.sqrt(steps)))
    else:
        wanted = Fraction(1)
    steps_of_rate = math.floor(wanted * (1 << RATE_BITS))
    if not steps_of_rate:
        raise InvalidArgument(f"rate must be at least 2**-{RATE_BITS}, got {wished}.")
    return Fraction(steps_of_rate, 1 << RATE_BITS)
