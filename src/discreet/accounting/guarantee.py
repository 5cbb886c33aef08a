"""Guarantees: an event with its relation, and what it is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import composition
from discreet.accounting._event_tree import leaves
from discreet.accounting.meaning import AttackBounds, attack_bounds
from discreet.accounting.periods import COUNTS, PeriodCosts, Released, period_costs
from discreet.accounting.shuffle import Parts
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import Event
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation

SHOWN_DELTA = 1e-6
"""Where epsilon is told of guarantees that have no pure one."""
_LARGEST_SHOWN_DELTA = 0.01


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A privacy guarantee: what was released, and under which neighboring relation.

    Make one with `pure_dp`, `approx_dp`, `zcdp` or `gdp`, or take it from a mechanism or a release.
    `first + second` composes two guarantees adaptively, and `guarantee * k` composes k copies. All
    numbers are upper bounds, rounded upward.

    Args:
        event: Description of what was released, for example the noise and its scale. Constructors
            and mechanisms fill it in.
        relation: Neighboring relation to which the guarantee refers.
        group_size: Number of privacy units that the guarantee protects together. See `for_group`.

    Raises:
        InvalidArgument: `relation` is not a `NeighboringRelation`, or `event` is not an event.
        RelationMismatch: The event contains sampling or shuffling that does not amplify privacy
            under `relation`.

    Examples:
        >>> import discreet
        >>> total = discreet.gdp(0.3) + discreet.gdp(0.4)
        >>> round(total.epsilon(1e-6), 3)
        2.254
        >>> total.relation
        NeighboringRelation.ADD_REMOVE

    See Also:
        [Composition](../how-to/compose.md), [how guarantees are computed](../theory/accounting.md).
    """

    event: Event
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    group_size: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.relation, NeighboringRelation):
            raise InvalidArgument(
                f"relation must be a NeighboringRelation, got {type(self.relation).__name__}."
            )
        _check_relation(self.event, self.relation, 1)

    def epsilon(self, delta: float | Fraction = 0.0) -> float:
        """Compute the smallest epsilon that is certified at a delta.

        Args:
            delta: Probability parameter of (epsilon, delta)-DP, from 0 (the default) up to but not
                including 1.

        Returns:
            An upper bound of epsilon, or infinity if there is no finite bound at this delta.

        Examples:
            >>> import discreet
            >>> round(discreet.gdp(1).epsilon(1e-6), 3)
            4.887
            >>> discreet.gdp(1).epsilon()
            inf
        """
        return composition.epsilon(self.event, delta=_delta(delta)).value

    def delta(self, epsilon: float | Fraction) -> float:
        """Compute the smallest delta that is certified at an epsilon.

        Args:
            epsilon: Privacy loss, zero or above.

        Returns:
            An upper bound of delta, between 0 and 1.

        Examples:
            >>> import discreet
            >>> round(discreet.gdp(1).delta(4), 8)
            4.712e-05
        """
        return composition.delta(self.event, epsilon=_epsilon(epsilon)).value

    def rdp(self, order: float) -> float:
        """Compute the Rényi divergence of an order.

        Args:
            order: Order of the divergence, above 1.

        Returns:
            An upper bound of the divergence, for the worse of the two directions between neighbors.

        Raises:
            InvalidArgument: `order` is 1 or below, or not finite.

        Examples:
            >>> import discreet
            >>> round(discreet.zcdp(0.5).rdp(4), 6)
            2.0
        """
        number = float(check.finite("order", order))
        if number <= 1:
            raise InvalidArgument(f"order must exceed 1, got {order}.")
        return composition.rdp(self.event, order=number)

    def bounds(self, delta: float | Fraction) -> tuple[float, float]:
        """Bracket the true epsilon at a delta.

        The distance between the bounds shows how tight the accounting is.

        Args:
            delta: Probability parameter of (epsilon, delta)-DP, from 0 up to but not including 1.

        Returns:
            A lower bound that some pair of neighbors attains, and the certified upper bound.

        Examples:
            >>> import discreet
            >>> low, high = discreet.zcdp(0.5).bounds(1e-6)
            >>> round(low, 2), round(high, 2)
            (4.89, 5.22)
        """
        return composition.bounds(self.event, delta=_delta(delta))

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        if other.relation is not self.relation:
            raise RelationMismatch(
                f"Cannot compose {self.relation!r} with {other.relation!r}; "
                "convert explicitly, e.g. with to_replace_one()."
            )
        if other.group_size != self.group_size:
            raise InvalidArgument(
                f"Cannot compose a guarantee for groups of {self.group_size} with one for groups "
                f"of {other.group_size}: add the guarantees first, then call for_group on the sum."
            )
        event = events.compose((self.event, other.event))
        return Guarantee(event, self.relation, self.group_size)

    def __radd__(self, other: object) -> Guarantee:
        # sum() starts from the integer 0.
        if isinstance(other, int) and not isinstance(other, bool) and other == 0:
            return self
        return NotImplemented

    def __mul__(self, count: int) -> Guarantee:
        return Guarantee(events.repeat(self.event, count), self.relation, self.group_size)

    __rmul__ = __mul__

    def for_group(self, size: int) -> Guarantee:
        """Return the guarantee for several privacy units together, such as a family.

        Args:
            size: Number of units in the group, at least 1.

        Returns:
            The guarantee for data sets that differ in up to `size` units.

        Raises:
            InvalidArgument: `size` is not a positive integer.

        Examples:
            >>> import discreet
            >>> discreet.pure_dp(0.5).for_group(4).epsilon()
            2.0
        """
        steps = check.count("size", size)
        if steps == 1:
            return self
        event = events.GroupEvent(steps, self.event)
        return Guarantee(event, self.relation, self.group_size * steps)

    def over_periods(
        self,
        counts: Sequence[int] = COUNTS,
        *,
        delta: float | Fraction = SHOWN_DELTA,
        released: Released = "separately",
    ) -> PeriodCosts:
        """Compute what a person pays over several periods.

        For guarantees whose privacy unit is one period of a person, such as a person-day: the
        person has a unit in every period, and all of them are protected by less.

        Args:
            counts: Numbers of periods, for example 7, 30 and 365 days.
            delta: Probability parameter at which epsilon is stated, from 0 up to but not
                including 1.
            released: "separately" if each period has a release of its own, or is a group of its own
                with additive noise. "together" if one release mixes the periods.

        Returns:
            A table with one row for each number of periods.

        Raises:
            InvalidArgument: A count is not a positive integer, or `released` is another word.

        Examples:
            >>> import discreet
            >>> day = discreet.zcdp(0.015)
            >>> [round(row["epsilon"], 2) for row in day.over_periods([7, 365], delta=1e-9).rows()]
            [1.0, 2.79, 25.8]

        See Also:
            [Units in time](../how-to/periods.md), `for_group`.
        """
        return period_costs(self.event, counts, delta=_delta(delta), released=released)

    def to_replace_one(self) -> Guarantee:
        """Convert an add/remove guarantee to the replace-one relation.

        To replace a unit is to remove it and to add another one, so the guarantee is that of a
        group of two. There is no conversion back.

        Returns:
            The guarantee under `NeighboringRelation.REPLACE_ONE`.

        Raises:
            RelationMismatch: The guarantee is not under `NeighboringRelation.ADD_REMOVE`.

        Examples:
            >>> import discreet
            >>> discreet.pure_dp(0.5).to_replace_one().epsilon()
            1.0
        """
        if self.relation is not NeighboringRelation.ADD_REMOVE:
            raise RelationMismatch(
                "Only NeighboringRelation.ADD_REMOVE converts to replace-one, this is "
                f"{self.relation!r}; "
                "there is no conversion back."
            )
        event = events.GroupEvent(2, self.event)
        return Guarantee(event, NeighboringRelation.REPLACE_ONE, self.group_size)

    def sampled(
        self,
        rate: float | Fraction | None = None,
        *,
        sample: int | None = None,
        population: int | None = None,
    ) -> Guarantee:
        """Return the guarantee of the same release on a secret random sample.

        Give either `rate`, or both `sample` and `population`. Call `sampled` before `for_group`.

        Args:
            rate: Probability with which each unit is in the sample, independently of the others
                (Poisson sampling). Add/remove neighbors only.
            sample: Number of units that are drawn without replacement. Replace-one neighbors only.
            population: Public number of units from which the sample is drawn.

        Returns:
            The amplified guarantee. It holds only if nobody learns which units were sampled.

        Raises:
            InvalidArgument: The arguments are not one of the two combinations, or the guarantee is
                one of a group.
            RelationMismatch: This kind of sampling does not amplify privacy under the relation.

        Examples:
            >>> import discreet
            >>> round(discreet.pure_dp(1).sampled(0.1).epsilon(), 4)
            0.1586
        """
        self._one_person("sampled")
        if rate is not None and sample is None and population is None:
            poisson = events.SampledEvent(check.probability("rate", rate), self.event)
            return Guarantee(poisson, self.relation)
        if rate is None and sample is not None and population is not None:
            drawn = events.SampledWithoutReplacementEvent(sample, population, self.event)
            return Guarantee(drawn, self.relation)
        raise InvalidArgument("sampled takes either rate, or both sample and population.")

    def _one_person(self, method: str) -> None:
        if self.group_size != 1:
            raise InvalidArgument(
                f"{method} takes the guarantee of one person, this one speaks of groups of "
                f"{self.group_size}: call {method} first, then for_group."
            )

    def shuffled(self, *, reports: int, parts: Parts = ()) -> Guarantee:
        """Return the guarantee of local reports whose order and senders are unknown.

        Args:
            reports: Number of reports from clients who follow the protocol, at least 1.
            parts: Description of the randomizer that makes the bound tighter. Randomizers in
                `discreet.local` provide it. Leave it empty for any other randomizer.

        Returns:
            The guarantee of all shuffled reports together, under `NeighboringRelation.REPLACE_ONE`.

        Raises:
            RelationMismatch: The guarantee is not under `NeighboringRelation.LOCAL`.
            Unsupported: The guarantee is not pure DP, or `parts` are given for more than one
                report.
            InvalidArgument: The guarantee is one of a group, or `reports` is not a positive
                integer.

        Examples:
            >>> import discreet
            >>> local = discreet.pure_dp(1, relation=discreet.NeighboringRelation.LOCAL)
            >>> round(local.shuffled(reports=1_000).epsilon(1e-6), 3)
            0.182

        See Also:
            [The shuffle model](../how-to/shuffle.md), [theory](../theory/shuffle.md).
        """
        # Theorem: shuffling amplifies; the numbers are those of the tightest proved pair.
        # Source: Feldman, McMillan, Talwar 2021 (F56); docs/theory/shuffle.md.
        # Needs: a pure guarantee under NeighboringRelation.LOCAL; every report is made by the same
        #   public randomizer; `reports` counts the honest ones. `parts` (see
        #   `accounting.randomizers`) describes the randomizer and makes the bound tighter.
        self._one_person("shuffled")
        if self.relation is not NeighboringRelation.LOCAL:
            raise RelationMismatch(
                "Only reports under NeighboringRelation.LOCAL can be shuffled, this is "
                f"{self.relation!r}."
            )
        total, failure = composition.basic(self.event)
        if total is None or failure:
            raise Unsupported("Only a pure local guarantee amplifies by shuffling here.")
        if parts and not isinstance(self.event, events.PureEvent):
            raise Unsupported("parts describe one report; this guarantee composes several.")
        mixed = (
            events.ShuffledTwoLevelEvent(total, reports, parts)
            if parts
            else events.ShuffledEvent(total, reports)
        )
        return Guarantee(mixed, NeighboringRelation.REPLACE_ONE)

    def explain(self, *, delta: float | Fraction) -> str:
        """Explain which accountant gives epsilon, and what the others would give.

        Args:
            delta: Probability parameter of (epsilon, delta)-DP, from 0 up to but not including 1.

        Returns:
            Text with one fact per line.

        Examples:
            >>> import discreet
            >>> print((discreet.pure_dp(0.1) * 10).explain(delta=1e-6))
            epsilon = 0.999371 at delta = 1e-06, by privacy-loss distributions.
            The relation is: add or remove one unit.
              by Rényi divergences it would be 0.999401
              by basic composition it would be 1
        """
        answer = composition.epsilon(self.event, delta=_delta(delta), compare=True)
        at = f"at delta = {float(delta):g}, by {answer.by}."
        lines = [f"epsilon = {short(answer.value, digits=6)} {at}"]
        lines.append(f"The relation is: {self.relation.value}.")
        lines += _sources(self.event)
        others = sorted(answer.others, key=lambda item: item[1])
        lines += [
            f"  by {name} it would be {short(value, digits=6)}"
            for name, value in others
            if name != answer.by and value < math.inf
        ]
        return "\n".join(lines)

    def meaning(self) -> AttackBounds:
        """Compute what any attacker gains from the release, at most.

        The numbers follow from the whole privacy profile and not from one epsilon: how often an
        attacker guesses right who took part, how many participants they find at a rate of false
        alarms, what they believe afterwards, and how often they pick the true values among several.

        Returns:
            Bounds of attacks, with a paragraph in plain words.

        Examples:
            >>> import discreet
            >>> meaning = discreet.gdp(0.5).meaning()
            >>> round(meaning.advantage, 4), round(meaning.true_positive_rate(0.001), 4)
            (0.1974, 0.0048)

        See Also:
            [What epsilon means](../how-to/meaning.md), `budget_for_risk`.
        """
        return attack_bounds(self.event, self.relation)

    def to_json(self) -> str:
        """Return the canonical JSON text of the guarantee.

        Returns:
            JSON with the event and the relation, for `from_json`. The group size is not stored.

        Examples:
            >>> import discreet
            >>> discreet.pure_dp(1).to_json()
            '{"event":{"epsilon":"1/1","kind":"pure","version":1},"relation":"ADD_REMOVE"}'
        """
        return f'{{"event":{events.to_json(self.event)},"relation":"{self.relation.name}"}}'

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Read a guarantee from its canonical JSON text.

        Args:
            text: Text that `to_json` returned.

        Returns:
            The guarantee.

        Raises:
            InvalidArgument: The text is not a guarantee.

        Examples:
            >>> import discreet
            >>> discreet.Guarantee.from_json(discreet.zcdp(0.5).to_json())
            Guarantee(rho 0.5)
        """
        with canonical.reading("a guarantee"):
            content = json.loads(text)
            relation = NeighboringRelation[content["relation"]]
            event = events.from_json(json.dumps(content["event"]))
        return cls(event, relation)

    def __repr__(self) -> str:
        suffix = "" if self.relation is NeighboringRelation.ADD_REMOVE else f", {self.relation!r}"
        return f"Guarantee({describe(self.event)}{suffix})"


def pure_dp(
    epsilon: float | Fraction, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> Guarantee:
    """Create a pure DP guarantee.

    Args:
        epsilon: Privacy loss, zero or above.
        relation: Neighboring relation of the guarantee.

    Returns:
        The guarantee. It can be the limit of an account or the claim of an audit.

    Raises:
        InvalidArgument: `epsilon` is negative or not finite.

    Examples:
        >>> import discreet
        >>> discreet.pure_dp(0.5).epsilon()
        0.5
    """
    return Guarantee(events.PureEvent(check.non_negative("epsilon", epsilon)), relation)


def approx_dp(
    epsilon: float | Fraction,
    delta: float | Fraction,
    *,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> Guarantee:
    """Create an approximate DP guarantee, also called (epsilon, delta)-DP.

    Args:
        epsilon: Privacy loss, zero or above.
        delta: Probability parameter, from 0 up to but not including 1. It should be far below 1 /
            number of units.
        relation: Neighboring relation of the guarantee.

    Returns:
        The guarantee. It can be the limit of an account or the claim of an audit.

    Raises:
        InvalidArgument: `epsilon` is negative or `delta` is not a probability.

    Examples:
        >>> import discreet
        >>> limit = discreet.approx_dp(3, 1e-6)
        >>> discreet.Ledger("memory://").account("survey", limit=limit).remaining
        Fraction(3, 1)
    """
    event = events.ApproxEvent(
        check.non_negative("epsilon", epsilon), check.probability("delta", delta, one=False)
    )
    return Guarantee(event, relation)


def zcdp(
    rho: float | Fraction, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> Guarantee:
    """Create a zero-concentrated DP guarantee (zCDP).

    Args:
        rho: Privacy loss in zCDP, zero or above. Gaussian noise of standard deviation sigma and
            sensitivity 1 costs rho = 1 / (2 sigma²).
        relation: Neighboring relation of the guarantee.

    Returns:
        The guarantee. It can be the limit of an account or the claim of an audit.

    Raises:
        InvalidArgument: `rho` is negative or not finite.

    Examples:
        >>> import discreet
        >>> round(discreet.zcdp(0.1).epsilon(1e-6), 3)
        2.142
    """
    return Guarantee(events.ZcdpEvent(check.non_negative("rho", rho)), relation)


def gdp(
    mu: float | Fraction, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> Guarantee:
    """Create a Gaussian DP guarantee (GDP).

    Args:
        mu: Privacy loss in GDP, zero or above. Gaussian noise of standard deviation sigma and
            sensitivity 1 costs mu = 1 / sigma.
        relation: Neighboring relation of the guarantee.

    Returns:
        The guarantee. It can be the limit of an account or the claim of an audit.

    Raises:
        InvalidArgument: `mu` is negative or not finite.

    Examples:
        >>> import discreet
        >>> round(discreet.gdp(0.5).epsilon(1e-6), 3)
        2.254
    """
    return Guarantee(events.GdpEvent(check.non_negative("mu", mu)), relation)


def describe(event: Event) -> str:
    """A short name of an event for people."""
    match event:
        case events.ComposedEvent(parts):
            if not parts:
                return "nothing"
            if len(parts) > 3:
                return f"{sum(count for _, count in parts)} events of {len(parts)} kinds"
            return " + ".join(
                describe(part) if count == 1 else f"{count} x {describe(part)}"
                for part, count in parts
            )
        case events.EitherEvent(branches):
            return " or ".join(describe(branch) for branch in branches)
        case events.SampledEvent(rate, inner):
            return f"sample({float(rate):g}, {describe(inner)})"
        case events.SampledWithoutReplacementEvent(sample, population, inner):
            return f"sample({sample} of {population}, {describe(inner)})"
        case events.GroupEvent(size, inner):
            return f"group({size}, {describe(inner)})"
        case events.ShuffledEvent(epsilon, reports) | events.ShuffledTwoLevelEvent(
            epsilon, reports
        ):
            return f"shuffle({reports} reports, epsilon {float(epsilon):g})"
        case _:
            return _describe_one(event)


def _describe_one(event: Event) -> str:
    """What was declared or released, by the names of the field; never by that of a class."""
    match event:
        case events.PureEvent(epsilon):
            return f"epsilon {float(epsilon):g}"
        case events.ApproxEvent(epsilon, delta):
            return f"epsilon {float(epsilon):g}, delta {float(delta):g}"
        case events.ZcdpEvent(rho, xi):
            return f"rho {float(rho):g}" + (f", xi {float(xi):g}" if xi else "")
        case events.GdpEvent(mu):
            return f"mu {float(mu):g}"
        case events.LaplaceEvent(scale):
            return f"Laplace noise of scale {float(scale):g}"
        case events.GaussianEvent(sigma):
            return f"Gaussian noise of sigma {float(sigma):g}"
        case events.DiscreteLaplaceEvent(scale, shift):
            return f"discrete Laplace noise of scale {float(scale):g} at sensitivity {shift}"
        case events.DiscreteGaussianEvent(variance, shift_squared, _):
            spread, moved = math.sqrt(variance), math.sqrt(shift_squared)
            return f"discrete Gaussian noise of sigma {spread:g} at sensitivity {moved:g}"
        case events.TruncatedLaplaceEvent(scale, shift):
            return f"truncated Laplace noise of scale {float(scale):g} at sensitivity {shift}"
        case events.BoundedRangeEvent(epsilon):
            return f"a choice of epsilon {float(epsilon):g}"
        case _:
            return "a release of another kind"


def describe_epsilon(guarantee: Guarantee, *, delta: float = SHOWN_DELTA) -> str:
    """Epsilon in words, with a delta where there must be one."""
    pure = guarantee.epsilon(0.0)
    if math.isfinite(pure):
        return f"epsilon {short(pure)}"
    shown = stated_delta(guarantee, delta=delta)
    return f"epsilon {short(guarantee.epsilon(shown))} at delta {shown:g}"


def stated_delta(guarantee: Guarantee, *, delta: float = SHOWN_DELTA) -> float:
    """The delta at which epsilon is told: larger where a mechanism itself has a larger one."""
    while delta < _LARGEST_SHOWN_DELTA and not math.isfinite(guarantee.epsilon(delta)):
        delta = float(f"{10 * delta:.3g}")
    return delta


def _sources(event: Event) -> list[str]:
    """The theorems behind shuffled reports, once each."""
    kinds = {
        type(leaf.inner if isinstance(leaf, events.GroupEvent) else leaf)
        for leaf, _ in leaves(event)
    }
    found = []
    if events.ShuffledEvent in kinds:
        found.append("Shuffled reports hide among clones (Feldman, McMillan, Talwar 2021).")
    if events.ShuffledTwoLevelEvent in kinds:
        found.append(
            "Shuffled reports of two levels hide in their blanket "
            "(after Balle, Bell, Gascón, Nissim 2019)."
        )
    return found


def _check_relation(event: Event, relation: NeighboringRelation, steps: int) -> None:
    """Refuse a kind of sampling whose theorem does not hold under the relation."""
    match event:
        case events.ComposedEvent(parts):
            for part, _ in parts:
                _check_relation(part, relation, steps)
        case events.EitherEvent(branches):
            for branch in branches:
                _check_relation(branch, relation, steps)
        case events.GroupEvent(size, inner):
            _check_relation(inner, relation, steps * size)
        case events.SampledEvent(_, inner):
            # Within a group of two, a replacement is one removal and one addition.
            if relation is NeighboringRelation.REPLACE_ONE and steps % 2 == 0:
                relation = NeighboringRelation.ADD_REMOVE
            if relation is not NeighboringRelation.ADD_REMOVE:
                raise RelationMismatch(
                    "Poisson sampling amplifies under NeighboringRelation.ADD_REMOVE only, got "
                    f"{relation!r}; "
                    "sample first, then convert with to_replace_one()."
                )
            _check_relation(inner, relation, 1)
        case (
            events.SampledWithoutReplacementEvent()
            | events.ShuffledEvent()
            | events.ShuffledTwoLevelEvent()
        ):
            if relation is not NeighboringRelation.REPLACE_ONE:
                raise RelationMismatch(
                    "Sampling without replacement and shuffling amplify under "
                    f"NeighboringRelation.REPLACE_ONE only, got {relation!r}."
                )
            if isinstance(event, events.SampledWithoutReplacementEvent):
                _check_relation(event.inner, relation, 1)  # a drawn unit is replaced once
        case _:
            events.check_event(event)


def _delta(value: float | Fraction) -> Fraction:
    return check.probability("delta", value, one=False)


def _epsilon(value: float | Fraction) -> Fraction:
    return check.non_negative("epsilon", value)


__all__ = ["Guarantee", "Unsupported", "approx_dp", "describe", "gdp", "pure_dp", "zcdp"]
