"""A tiny integer language: what every engine must be able to compute, and nothing else.

Each node maps int64 codes of one row to an int64 and cannot fail: expressions are checked when they
are bound to a schema, so that no intermediate result leaves the range of int64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator: TypeAlias = Literal["+", "-", "*", "<", "<=", "=", "and", "or"]


@dataclass(frozen=True, slots=True)
class Ref:
    """The code of a declared column."""

    column: str


@dataclass(frozen=True, slots=True)
class Const:
    """A public integer."""

    value: int


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, or a comparison or connective with result 0 or 1."""

    operator: Operator
    left: Code
    right: Code


@dataclass(frozen=True, slots=True)
class Clip:
    """The nearest integer in ``lower .. upper``."""

    inner: Code
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Bin:
    """How many of the (increasing) edges are not above the value."""

    inner: Code
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """``table[value - first]``; the value is known to lie in the table."""

    inner: Code
    first: int
    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Divide:
    """``floor(left / right)``, and ``zero`` where the right side is zero.

    The left side is never ``-2**63``, so that no quotient leaves int64.
    """

    left: Code
    right: Code
    zero: int


Code: TypeAlias = Ref | Const | Binary | Clip | Bin | Pick | Divide


def columns(code: Code) -> set[str]:
    """The columns that a node reads."""
    match code:
        case Ref(column):
            return {column}
        case Const():
            return set()
        case Binary(_, left, right) | Divide(left, right):
            return columns(left) | columns(right)
        case Clip(inner) | Bin(inner) | Pick(inner):
            return columns(inner)
