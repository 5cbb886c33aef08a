"""Plans for continual counting: a stream is planned, then fed, and each step publishes a count.

Time comes in steps (an hour, a second, an event). The events of a step are counted exactly, and the
total so far, or that of the last ``window`` steps, is published with noise. A plan is public: its
guarantee and its error are known before the first step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee, pure_dp
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.core.tabular import Record, Tabular
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget, budget
from discreet.ranges.stream.blt_counter import BLTCounter, best_blt, fixed
from discreet.ranges.stream.tree_counter import (
    StreamUpdate,
    Then,
    TreeCounter,
    best_chain,
    half_width,
)

FIRST_EPOCH = 256
"""Steps of the first epoch of a stream without an end; each later one doubles what was before."""


class Counter(Protocol):
    """One epoch of a stream: `TreeCounter` or `BLTCounter`."""

    @property
    def horizon(self) -> int:
        """Steps that fit."""

    @property
    def design(self) -> str:
        """Names everything that must not change while the epoch lasts."""

    @property
    def most(self) -> int:
        """The largest count of a step that the integers have room for."""

    def start(self, lanes: int) -> Any:
        """The state before the first step."""

    def variance(self, t: Ints, *, suffix: bool = False) -> Floats:
        """Variance of the sum up to step t, or after it."""

    def feed(self, state: Any, counts: Ints, rng: RandomSource) -> tuple[Any, StreamUpdate]:
        """Count some steps."""

    def closing(self, state: Any) -> tuple[Ints, Floats]:
        """What turns `Fed.whole` and `Fed.part` into the sums after each step."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamForecast(Tabular):
    """The error that an answer will have. Made by `StreamPlan.forecast`.

    Attributes:
        step: Step after which the answer holds.
        std: Standard deviation of the noise.
        confidence: Probability with which the answer is within `half_width`.
        half_width: Largest error at that confidence.

    Examples:
        >>> import discreet
        >>> forecast = discreet.plan_stream(epsilon=1, horizon=8).forecast(8)
        >>> forecast.step, forecast.half_width > forecast.std
        (8, True)
    """

    step: int
    std: float
    confidence: float
    half_width: float

    def rows(self) -> list[Record]:
        """List the forecast as one row.

        Returns:
            One record with `step`, `std`, `half_width` and `confidence`.

        Examples:
            >>> import discreet
            >>> plan = discreet.plan_stream(epsilon=1, horizon=8)
            >>> len(plan.forecast(8).rows())
            1
        """
        names = ("step", "std", "half_width", "confidence")
        return [{name: getattr(self, name) for name in names}]

    def __str__(self) -> str:
        return (
            f"after step {self.step}: standard deviation {short(self.std)}, "
            f"{percent(self.confidence)} within {short(self.half_width)}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """Describe a stream before it starts. See `plan_stream`.

    Attributes:
        budget: Privacy budget of the whole stream.
        relation: Neighboring relation of the guarantee.
        max_rows_per_unit: Number of events of one privacy unit in the whole stream.
        keys: Names of counts that run side by side; None if there is one count.
        horizon: Number of steps; None if the stream may continue without end.
        window: Number of steps that each count covers; None for totals.

    Examples:
        >>> import discreet
        >>> plan = discreet.plan_stream(epsilon=1, horizon=8)
        >>> plan.horizon, plan.guarantee.epsilon()
        (8, 1.0)
    """

    budget: QueryBudget
    relation: NeighboringRelation
    max_rows_per_unit: int
    keys: tuple[str, ...] | None
    horizon: int | None
    window: int | None

    @property
    def lanes(self) -> int:
        """Counts that run side by side."""
        return 1 if self.keys is None else len(self.keys)

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace noise on a tree."""
        return self.budget.epsilon is not None and self.budget.delta is None

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream costs, however long it runs."""
        # Theorem: all answers of all epochs together are within the budget under `relation`, if one
        #   unit has at most `max_rows_per_unit` events; also when later ones depend on answers.
        # Proof: theory/streams. Every epoch is within the budget for `max_rows_per_unit` events;
        #   the
        #   cost of events is additive in L1 (Laplace), convex in L2 (Gaussian): spreading events
        #   over epochs costs no more than putting all into one.
        # Source: Chan, Shi, Song 2011; Denisov et al. 2022; Smith, Thakurta 2022. F42, F43.
        # Needs: the stated relation and `max_rows_per_unit` are those of the data.
        if self.pure:
            if self.horizon is None and self.window is None:
                return pure_dp(
                    check.positive("epsilon", self.budget.epsilon), relation=self.relation
                )
            return _laplace(self, best_chain(self.length(0), then=_then(self)).levels).guarantee
        return Guarantee(events.GaussianEvent(_sigma(self.budget)), self.relation)

    def length(self, epoch: int) -> int:
        """Count the steps of an epoch.

        Args:
            epoch: Number of the epoch, counted from 0.

        Returns:
            Number of steps.

        Examples:
            >>> import discreet
            >>> plan = discreet.plan_stream(epsilon=1, horizon=8)
            >>> plan.length(0)
            8
        """
        if self.horizon is not None:
            return self.horizon
        if self.window is not None:
            return self.window
        return FIRST_EPOCH << max(0, epoch - 1)

    def start(self, epoch: int) -> int:
        """Count the steps before an epoch.

        Args:
            epoch: Number of the epoch, counted from 0.

        Returns:
            Number of steps.

        Examples:
            >>> plan.start(0)
            0
        """
        if self.horizon is not None:
            return 0
        if self.window is not None:
            return epoch * self.window
        return 0 if epoch == 0 else FIRST_EPOCH << (epoch - 1)

    def epoch(self, t: int) -> int:
        """Find the epoch of a step.

        Args:
            t: Step, counted from 1.

        Returns:
            Number of the epoch, counted from 0.

        Examples:
            >>> plan.epoch(3)
            0
        """
        if self.horizon is not None:
            return 0
        if self.window is not None:
            return (t - 1) // self.window
        return ((t - 1) // FIRST_EPOCH).bit_length()

    def counter(self, epoch: int) -> Counter:
        """Make the counter of an epoch.

        Args:
            epoch: Number of the epoch, counted from 0.

        Returns:
            The counter, which has seen nothing.

        Examples:
            >>> type(plan.counter(0)).__name__.endswith("Counter")
            True
        """
        return _counter(self, self.length(epoch))

    def variance(self, steps: ArrayLike) -> Floats:
        """Return the exact variance of the counts after steps.

        Args:
            steps: Step, or array of steps, counted from 1.

        Returns:
            A number for each step, the same for every key.

        Examples:
            >>> plan.variance([1, 8]).shape
            (2,)
        """
        t = self._steps(steps)
        found = np.zeros(t.shape)
        for epoch, at in self._by_epoch(t):
            counter = self.counter(epoch)
            r = t[at] - self.start(epoch)
            found[at] = counter.variance(r)
            if self.window is not None and epoch:
                rest = counter.variance(r, suffix=True)
                found[at] += np.where(r < self.window, rest, 0)
            elif self.window is None:
                for past in range(epoch):
                    end = np.array([self.length(past)])
                    found[at] += self.counter(past).variance(end)[0]
        return found

    def std(self, steps: ArrayLike) -> Floats:
        """Return the noise standard deviation of the counts after steps.

        Args:
            steps: Step, or array of steps, counted from 1.

        Returns:
            A number for each step.

        Examples:
            >>> bool((plan.std([1, 8]) > 0).all())
            True
        """
        return np.sqrt(self.variance(steps))

    def half_width(self, steps: ArrayLike, *, confidence: float = 0.95) -> Floats:
        """Return the margin of error of the counts after steps.

        Args:
            steps: Step, or array of steps, counted from 1.
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            A number for each step.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> bool((plan.half_width([8], confidence=0.99) > plan.half_width([8])).all())
            True
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        t = self._steps(steps)
        if not self.pure:
            return self.std(t) * float(ndtri((1 + inside) / 2))
        found = np.zeros(t.shape)
        for epoch, at in self._by_epoch(t):
            found[at] = half_width(self._terms(epoch, t[at] - self.start(epoch)), inside)
        return found

    def forecast(self, step: int, *, confidence: float = 0.95) -> StreamForecast:
        """Forecast the error of the count after a step.

        Nothing is read and nothing is charged.

        Args:
            step: Step, counted from 1.
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            The forecast, with `std` and `half_width` (the margin of error).

        Raises:
            InvalidArgument: The step is not in the plan, or the confidence is not between 0 and 1.

        Examples:
            >>> plan.forecast(8).std == float(plan.std([8])[0])
            True
        """
        at = [check.count("step", step)]
        return StreamForecast(
            step=step,
            std=float(self.std(at)[0]),
            confidence=confidence,
            half_width=float(self.half_width(at, confidence=confidence)[0]),
        )

    def to_json(self) -> str:
        """Return the plan as JSON text, for `from_json`.

        Returns:
            The text.

        Examples:
            >>> type(plan.to_json()).__name__
            'str'
        """
        content = {
            "budget": {
                name: None if value is None else str(value)
                for name, value in (
                    ("epsilon", self.budget.epsilon),
                    ("delta", self.budget.delta),
                    ("rho", self.budget.rho),
                )
            },
            "relation": self.relation.name,
            "rows_per_unit": self.max_rows_per_unit,
            "keys": None if self.keys is None else list(self.keys),
            "horizon": self.horizon,
            "window": self.window,
        }
        return json.dumps(content, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> StreamPlan:
        """Read a plan back from the text of `to_json`.

        Args:
            text: What `to_json` has written.

        Returns:
            The plan.

        Raises:
            InvalidArgument: The text is no plan of a stream.

        Examples:
            >>> discreet.plan_stream(epsilon=1, horizon=8).from_json(plan.to_json()) == plan
            True
        """
        with canonical.reading("a plan of a stream"):
            content: Mapping[str, Any] = json.loads(text)
            amounts = content["budget"].items()
            return plan_stream(
                **{name: None if amount is None else Fraction(amount) for name, amount in amounts},
                relation=NeighboringRelation[content["relation"]],
                max_rows_per_unit=content["rows_per_unit"],
                keys=content["keys"],
                horizon=content["horizon"],
                window=content["window"],
            )

    def _terms(self, epoch: int, r: Ints) -> Iterator[tuple[Floats, Floats]]:
        """The independent Laplace terms of the errors: how often, and their scales."""
        parts: list[tuple[int, Ints, bool]] = [(epoch, r, False)]
        if self.window is not None:
            parts += [(epoch - 1, r, True)] if epoch else []
        else:
            parts += [(past, np.full(r.shape, self.length(past)), False) for past in range(epoch)]
        for number, at, suffix in parts:
            counter = self.counter(number)
            assert isinstance(counter, TreeCounter)  # noqa: S101 - asked for trees only
            scale = float(counter.law.scale)
            for times, weight in counter.chain.terms(at, suffix=suffix):
                yield (
                    (np.where(r < self.length(number), times, 0) if suffix else times),
                    (np.abs(weight) * scale),
                )

    def _by_epoch(self, t: Ints) -> Iterator[tuple[int, Ints]]:
        if not t.size:
            return
        for epoch in range(self.epoch(int(t.min())), self.epoch(int(t.max())) + 1):
            first = self.start(epoch)
            at = np.flatnonzero((t > first) & (t <= first + self.length(epoch)))
            if at.size:
                yield epoch, at

    def _steps(self, steps: ArrayLike) -> Ints:
        t = np.atleast_1d(np.asarray(steps))
        if t.ndim != 1 or t.dtype.kind not in "iu" or (t.size and t.min() < 1):
            raise InvalidArgument("steps must be whole numbers from 1.")
        if self.horizon is not None and t.size and t.max() > self.horizon:
            raise InvalidArgument(f"steps must be at most the horizon {self.horizon}.")
        return t.astype(np.int64)


def plan_stream(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    horizon: int | None = None,
    window: int | None = None,
    max_rows_per_unit: int = 1,
    keys: Sequence[str] | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> StreamPlan:
    """Plan a stream of counts: its privacy loss and its error, before it starts.

    Nothing is read and nothing is charged.

    Args:
        epsilon: Privacy loss of the whole stream, as epsilon. Without `delta`, Laplace noise on a
            tree is used.
        delta: Probability parameter of (epsilon, delta)-DP. With it, the noise is Gaussian noise.
        rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
        horizon: Number of steps that the stream will have. If None, it may continue without end,
            with more noise.
        window: Number of steps that each published count covers, up to the last one. If None,
            counts are totals since the first step.
        max_rows_per_unit: Contribution limit: number of events of one privacy unit in the whole
            stream.
        keys: Names of counts that run side by side; an event belongs to one of them. If None, there
            is one count.
        relation: Neighboring relation of the guarantee, such as `NeighboringRelation.ADD_REMOVE`.

    Returns:
        A plan with `guarantee`, `std` and `forecast`.

    Raises:
        InvalidArgument: An argument is not valid, or the budget is not stated in one way.

    Privacy:
        The plan releases nothing. A stream of this plan has the stated privacy loss for one privacy
        unit, over all of its steps.

    Examples:
        >>> import discreet
        >>> plan = discreet.plan_stream(epsilon=1, horizon=24)
        >>> plan.forecast(24).std < 5
        True

    See Also:
        `stream`.
    """
    central_relation(relation)
    if horizon is not None and window is not None:
        raise InvalidArgument("Give horizon or window: a window slides on without end.")
    names = None
    if keys is not None:
        names = tuple(str(key) for key in check.as_tuple("keys", keys))
        if not names or len(set(names)) < len(names):
            raise InvalidArgument("keys must be different names, at least one.")
    return StreamPlan(
        budget=budget(epsilon=epsilon, delta=delta, rho=rho),
        relation=relation,
        max_rows_per_unit=check.count("max_rows_per_unit", max_rows_per_unit),
        keys=names,
        horizon=None if horizon is None else check.count("horizon", horizon),
        window=None if window is None else check.count("window", window, minimum=2),
    )


@lru_cache(maxsize=256)
def _counter(plan: StreamPlan, length: int) -> Counter:
    if plan.pure:
        chain = best_chain(length, then=_then(plan))
        noise = _laplace(plan, chain.levels).integers
        assert noise is not None  # noqa: S101 - made on integers
        assert isinstance(noise.noise, DiscreteLaplace)  # noqa: S101
        return TreeCounter(chain=chain, law=noise.noise)
    made = fixed(best_blt(length), length)
    square = made.squared(
        max_rows_per_unit=plan.max_rows_per_unit,
        replaced=plan.relation is NeighboringRelation.REPLACE_ONE,
    )
    # A squared distance N is that of N coordinates which move by one: no root is rounded.
    noise_on_grid = gaussian(
        sensitivity=1,
        norm="linf",
        dimension=square,
        mu=1 / _sigma(plan.budget),
        domain="integers",
        relation=plan.relation,
    )
    return BLTCounter(fixed=made, noise=noise_on_grid)


def _then(plan: StreamPlan) -> Then:
    if plan.horizon is not None:
        return "end"
    return "epochs" if plan.window is None else "window"


def _laplace(plan: StreamPlan, levels: int) -> AdditiveMechanism:
    """Noise for all blocks of an epoch: one event is in one block of each level."""
    moved = plan.max_rows_per_unit * (2 if plan.relation is NeighboringRelation.REPLACE_ONE else 1)
    epsilon = check.positive("epsilon", plan.budget.epsilon)
    return laplace(
        sensitivity=moved * levels, epsilon=epsilon, domain="integers", relation=plan.relation
    )


def _sigma(budget: QueryBudget) -> Fraction:
    """Standard deviation of Gaussian noise for a sensitivity of 1."""
    if budget.rho is not None:
        return 1 / root_down(2 * budget.rho)
    epsilon, delta = check.positive("epsilon", budget.epsilon), budget.delta
    assert delta is not None  # noqa: S101 - a pure budget has Laplace noise
    return Fraction(gaussian_sigma(float(epsilon), delta=float(delta)))
