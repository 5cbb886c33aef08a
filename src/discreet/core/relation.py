"""Who is protected: which two data sets are neighbors."""

from __future__ import annotations

from enum import Enum

from discreet.core.errors import InvalidArgument


class NeighboringRelation(Enum):
    """The neighboring relation: which two data sets must be hard to tell apart.

    Every guarantee and every sensitivity refers to one relation. Guarantees under different
    relations cannot be combined.

    Attributes:
        ADD_REMOVE: One data set has one privacy unit more than the other (unbounded DP). The number
            of units is private.
        REPLACE_ONE: The data sets differ in the values of one privacy unit (bounded DP). The number
            of units is public.
        LOCAL: The data are the value of one client, and any two values are neighbors (the local
            model).

    Examples:
        >>> import discreet
        >>> discreet.pure_dp(1).relation
        NeighboringRelation.ADD_REMOVE
        >>> discreet.pure_dp(1).to_replace_one().epsilon()
        2.0
    """

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
