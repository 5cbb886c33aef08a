"""Who is protected: which two data sets are neighbors."""

from __future__ import annotations

from enum import Enum

from discreet.core.errors import InvalidArgument


class NeighboringRelation(Enum):
    """Which data sets must be hard to tell apart. Every guarantee and sensitivity names one."""

    ADD_REMOVE = "add or remove one unit"
    REPLACE_ONE = "replace one unit, the number of units is public"
    LOCAL = "any two values of one client"

    def __repr__(self) -> str:
        return f"NeighboringRelation.{self.name}"


def central_relation(relation: NeighboringRelation) -> NeighboringRelation:
    """A relation of data sets, which someone trusted holds; an error for that of one client."""
    if relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")
    return relation
