"""Parallel composition: disjoint parts of the data, each with a guarantee of its own.

It holds in few cases, and those that are often assumed but false are refused (B26).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation


class RecordPartition(Enum):
    """What decides in which part a record lies."""

    IDENTITY = "a keyed hash of the unit's public identity"
    POSITION = "the position of the record"
    VALUE = "the value of the record, by public bins"


def parallel(
    parts: Sequence[Guarantee],
    *,
    partition: RecordPartition,
    relation: NeighboringRelation,
    in_part: Sequence[Guarantee] | None = None,
) -> Guarantee:
    """The guarantee of mechanisms on disjoint parts of the data."""
    # Theorem: identity or position: one step of the relation touches one part, the worst counts.
    #   Position only under replace-one, because a removed record shifts all later ones. Value
    #   under add/remove: one part, the worst. Value under replace-one: the record moves between
    #   two parts (one removal, one addition, parts certified under add/remove) or is replaced
    #   inside one part: the worst pair of parts, or the worst `in_part`, by default two steps.
    # Proof: condition on where the record lies before and after; the other parts are equal.
    # Source: B26, with its corrections.
    # Needs: at least one part; all parts under the relation that the case demands.
    if not parts:
        raise InvalidArgument("parts must name at least one guarantee, got none.")
    if relation is NeighboringRelation.LOCAL:
        raise RelationMismatch(
            "Under NeighboringRelation.LOCAL a client is alone; nothing is partitioned."
        )
    if partition is RecordPartition.POSITION and relation is not NeighboringRelation.REPLACE_ONE:
        raise RelationMismatch(
            "A partition by position holds under NeighboringRelation.REPLACE_ONE only: a "
            "removed record "
            "shifts all later ones. Partition by a hash of the identity instead."
        )
    if partition is RecordPartition.VALUE and relation is NeighboringRelation.REPLACE_ONE:
        return _moved(parts, in_part)
    if in_part is not None:
        raise InvalidArgument("in_part applies to a partition by value under replace-one only.")
    for part in parts:
        _demand(part, relation)
    return Guarantee(_worst([part.event for part in parts]), relation)


def _moved(parts: Sequence[Guarantee], in_part: Sequence[Guarantee] | None) -> Guarantee:
    for part in parts:
        _demand(part, NeighboringRelation.ADD_REMOVE)
    # Two distinct parts: the worst pair; equal events are kept apart by their place.
    moves: list[events.Event] = []
    kinds: dict[events.Event, int] = {}
    for part in parts:
        kinds[part.event] = kinds.get(part.event, 0) + 1
    distinct = list(kinds)
    for i, first in enumerate(distinct):
        if kinds[first] > 1:
            moves.append(events.compose([first, first]))
        moves += [events.compose([first, second]) for second in distinct[i + 1 :]]
    if in_part is None:
        moves += [events.GroupEvent(2, event) for event in distinct]
    else:
        if len(in_part) != len(parts):
            raise InvalidArgument(
                f"in_part must have one guarantee per part ({len(parts)}), got {len(in_part)}."
            )
        for inside in in_part:
            _demand(inside, NeighboringRelation.REPLACE_ONE)
        moves += [inside.event for inside in in_part]
    return Guarantee(_worst(moves), NeighboringRelation.REPLACE_ONE)


def _demand(part: Guarantee, relation: NeighboringRelation) -> None:
    if part.relation is not relation:
        raise RelationMismatch(
            f"Every part must be certified under {relation!r} here, got {part.relation!r}."
        )


def _worst(found: Sequence[events.Event]) -> events.Event:
    distinct = tuple(dict.fromkeys(found))
    if all(isinstance(event, events.PureEvent) for event in distinct):
        return max(distinct, key=lambda event: event.epsilon)  # type: ignore[union-attr]
    return distinct[0] if len(distinct) == 1 else events.EitherEvent(distinct)
