"""Who is protected: which two data sets are neighbours, and what one person may contribute."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from discreet.core.check import count
from discreet.core.errors import InvalidArgument


class Relation(Enum):
    """Which data sets must be hard to tell apart. Every guarantee and sensitivity names one."""

    ADD_REMOVE = "add or remove one unit"
    REPLACE_ONE = "replace one unit, the number of units is public"
    LOCAL = "any two values of one client"

    def __repr__(self) -> str:
        return f"Relation.{self.name}"


def trusted(relation: Relation) -> Relation:
    """A relation of data sets, which someone trusted holds; an error for that of one client."""
    if relation not in (Relation.ADD_REMOVE, Relation.REPLACE_ONE):
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")
    return relation


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyUnit:
    """The unit of privacy: the relation, the column that says whose a row is, rows per owner.

    ``owner=None`` means that each row is a different person.
    """

    relation: Relation = Relation.ADD_REMOVE
    owner: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        count("max_rows", self.max_rows)
