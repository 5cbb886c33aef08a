"""Guarantees that differ from person to person: one for each level of a public menu.

Which levels there are, and who chose which, is public. Neighbors differ in the records of one
person, whose level stays; everything public stays too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.guarantee import Guarantee, describe
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation


@dataclass(frozen=True, slots=True)
class PersonalizedGuarantee:
    """What each level is promised, or pays; levels in the order of their names.

    ``a + b`` and ``a * k`` compose level by level.
    """

    # Theorem: if mechanisms are private for the levels with g and g', adaptively run after each
    #   other they are private with g + g', level by level.
    # Proof: fix a person. Toward the neighbors that differ in this person alone each mechanism has
    #   the guarantee of the person's level, so the composition theorem applies.
    # Source: Jorgensen, Yu, Cormode 2015; Muehl 2021 (M1).

    privacy_levels: tuple[tuple[str, Guarantee], ...]

    def __post_init__(self) -> None:
        if not self.privacy_levels:
            raise InvalidArgument("privacy_levels must name at least one level, got none.")
        names = [name for name, _ in self.privacy_levels]
        if not all(names) or {type(name) for name in names} != {str}:
            raise InvalidArgument("privacy_levels must have names, text that is not empty.")
        if len(set(names)) < len(names):
            raise InvalidArgument("privacy_levels must have different names.")
        if not all(isinstance(guarantee, Guarantee) for _, guarantee in self.privacy_levels):
            raise InvalidArgument(
                "privacy_levels must map names to guarantees, such as discreet.pure_dp(1)."
            )
        relations = {guarantee.relation for _, guarantee in self.privacy_levels}
        if len(relations) > 1:
            raise RelationMismatch("All levels must be under one relation; convert explicitly.")
        object.__setattr__(
            self, "privacy_levels", tuple(sorted(self.privacy_levels, key=lambda level: level[0]))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The levels, sorted."""
        return tuple(name for name, _ in self.privacy_levels)

    @property
    def relation(self) -> NeighboringRelation:
        """Whom neighbors differ in."""
        return self.privacy_levels[0][1].relation

    @property
    def worst(self) -> Guarantee:
        """What holds for everybody, whatever their level."""
        every = dict.fromkeys(guarantee.event for _, guarantee in self.privacy_levels)
        kinds = tuple(
            one for one in every if not any(_implies(one, more) for more in every if more != one)
        )
        event = kinds[0] if len(kinds) == 1 else events.EitherEvent(kinds)
        return Guarantee(event, self.relation)

    def __getitem__(self, name: str) -> Guarantee:
        for level, guarantee in self.privacy_levels:
            if level == name:
                return guarantee
        raise InvalidArgument(f"There is no level {name!r}; there are: {', '.join(self.names)}.")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.privacy_levels)

    def __add__(self, other: PersonalizedGuarantee) -> PersonalizedGuarantee:
        if not isinstance(other, PersonalizedGuarantee):
            return NotImplemented
        if self.names != other.names:
            raise InvalidArgument(
                f"Only guarantees of the same levels compose: {', '.join(self.names)} "
                f"against {', '.join(other.names)}."
            )
        return PersonalizedGuarantee(tuple((name, self[name] + other[name]) for name in self))

    def __radd__(self, other: object) -> PersonalizedGuarantee:
        # sum() starts from the integer 0.
        if isinstance(other, int) and not isinstance(other, bool) and other == 0:
            return self
        return NotImplemented

    def __mul__(self, count: int) -> PersonalizedGuarantee:
        times = check.count("count", count, minimum=0)
        return PersonalizedGuarantee(tuple((name, self[name] * times) for name in self))

    __rmul__ = __mul__

    def epsilons(self, delta: float | Fraction = 0.0) -> dict[str, float]:
        """Epsilon at ``delta`` of each level."""
        return {name: self[name].epsilon(delta) for name in self}

    def to_json(self) -> str:
        """The canonical text: every level's guarantee."""
        content = {name: json.loads(guarantee.to_json()) for name, guarantee in self.privacy_levels}
        return canonical.text({"levels": content})

    @classmethod
    def from_json(cls, text: str) -> PersonalizedGuarantee:
        """The guarantee of a canonical text."""
        with canonical.reading("a personal guarantee"):
            levels = json.loads(text)["levels"].items()
        return cls(tuple((name, Guarantee.from_json(json.dumps(each))) for name, each in levels))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {describe(each.event)}" for name, each in self.privacy_levels)
        return f"PersonalizedGuarantee({inside})"


def _implies(event: events.Event, other: events.Event) -> bool:
    """Whether both state an epsilon and a delta, and those of ``event`` are no larger."""
    match event, other:
        case events.ApproxEvent(epsilon, delta), events.ApproxEvent(more, failure):
            return epsilon <= more and delta <= failure
        case _:
            return False


def personalized(privacy_levels: Mapping[str, Guarantee]) -> PersonalizedGuarantee:
    """A guarantee for each level of a menu.

    >>> from discreet.accounting.guarantee import pure_dp
    >>> personalized({"strict": pure_dp(1), "open": pure_dp(3)})
    PersonalizedGuarantee(open: epsilon 3, strict: epsilon 1)
    """
    if not isinstance(privacy_levels, Mapping):
        raise InvalidArgument(
            f"privacy_levels must map names to guarantees, got {type(privacy_levels).__name__}; "
            "for example "
            '{"strict": discreet.pure_dp(1), "open": discreet.pure_dp(3)}.'
        )
    return PersonalizedGuarantee(tuple(privacy_levels.items()))
