"""Guarantees: an event with its relation, and what it is worth."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import composition
from discreet.accounting._event_tree import leaves
from discreet.accounting.shuffle import Parts
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What an event is worth under a relation: always an upper bound, rounded outward.

    ``g1 + g2`` composes adaptively, ``g * k`` is k-fold. Equality is by content.
    """

    event: Event
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    group_size: int = 1
    """How many people it speaks of together: see `for_group`."""

    def __post_init__(self) -> None:
        if not isinstance(self.relation, NeighboringRelation):
            raise InvalidArgument(
                f"relation must be a NeighboringRelation, got {type(self.relation).__name__}."
            )
        _check_relation(self.event, self.relation, 1)

    def epsilon(self, delta: float | Fraction = 0.0) -> float:
        """The smallest certified epsilon at ``delta`` (infinity when there is none)."""
        return composition.epsilon(self.event, delta=_delta(delta)).value

    def delta(self, epsilon: float | Fraction) -> float:
        """The smallest certified delta at ``epsilon``."""
        return composition.delta(self.event, epsilon=_epsilon(epsilon)).value

    def rdp(self, order: float) -> float:
        """The Rényi divergence of the given order (> 1), the worse of both directions."""
        number = float(check.finite("order", order))
        if number <= 1:
            raise InvalidArgument(f"order must exceed 1, got {order}.")
        return composition.rdp(self.event, order=number)

    def bounds(self, delta: float | Fraction) -> tuple[float, float]:
        """A bracket of the true epsilon at ``delta``: attained at least, certified at most."""
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
        """The guarantee for ``size`` steps of the relation (a family, a household) (B24)."""
        steps = check.count("size", size)
        if steps == 1:
            return self
        event = events.GroupEvent(steps, self.event)
        return Guarantee(event, self.relation, self.group_size * steps)

    def to_replace_one(self) -> Guarantee:
        """Under replace-one: to replace is to remove and to add, two steps (B1)."""
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
        """The guarantee on a secret random sample.

        ``rate``: Poisson, each unit independently (add/remove only). ``sample`` of a public
        ``population``: without replacement (replace-one only). Sample before `for_group`: several
        people of a group may be in the sample, each with the chance of one.
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
        """The guarantee of ``reports`` such local reports whose order and senders are unknown.

        Theorem: shuffling amplifies; the numbers are those of the tightest proved pair.
        Source: Feldman, McMillan, Talwar 2021 (F56); docs/theory/shuffle.md.
        Needs: a pure guarantee under NeighboringRelation.LOCAL; every report is made by the same
            public randomizer; ``reports`` counts the honest ones. ``parts`` (see
            ``accounting.randomizers``) describes the randomizer and makes the bound tighter.
        """
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
        """In plain words: which accountant gives epsilon at ``delta``, what others would give."""
        answer = composition.epsilon(self.event, delta=_delta(delta), compare=True)
        lines = [f"epsilon = {answer.value:.6g} at delta = {float(delta):g}, by {answer.by}."]
        lines.append(f"The relation is: {self.relation.value}.")
        lines += _sources(self.event)
        others = sorted(answer.others, key=lambda item: item[1])
        lines += [
            f"  by {name} it would be {value:.6g}"
            for name, value in others
            if name != answer.by and value < math.inf
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The canonical text: relation and event."""
        return f'{{"event":{events.to_json(self.event)},"relation":"{self.relation.name}"}}'

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """The guarantee of a canonical text."""
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
    """Pure differential privacy."""
    return Guarantee(events.PureEvent(check.non_negative("epsilon", epsilon)), relation)


def approx_dp(
    epsilon: float | Fraction,
    delta: float | Fraction,
    *,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> Guarantee:
    """Approximate differential privacy."""
    event = events.ApproxEvent(
        check.non_negative("epsilon", epsilon), check.probability("delta", delta, one=False)
    )
    return Guarantee(event, relation)


def zcdp(
    rho: float | Fraction, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> Guarantee:
    """Zero-concentrated differential privacy."""
    return Guarantee(events.ZcdpEvent(check.non_negative("rho", rho)), relation)


def gdp(
    mu: float | Fraction, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> Guarantee:
    """Gaussian differential privacy."""
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
            return f"shuffle({reports} reports, Pure({float(epsilon):g}))"
        case _:
            values = (f"{float(getattr(event, name)):g}" for name in event.__slots__)
            return f"{events.label(event)}({', '.join(values)})"


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
            events.to_json(event)  # refuses what is not an event


def _delta(value: float | Fraction) -> Fraction:
    return check.probability("delta", value, one=False)


def _epsilon(value: float | Fraction) -> Fraction:
    return check.non_negative("epsilon", value)


__all__ = ["Guarantee", "Unsupported", "approx_dp", "describe", "gdp", "pure_dp", "zcdp"]
