"""Whose a row is, told by several columns: a person in a month, a device on a day."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression
from discreet.data.expression_json import read_expression, write_expression
from discreet.data.schema import ColumnSpec

_PARTS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompositeUnit:
    """All rows that agree in these columns of the source and in these declared values."""

    columns: tuple[str, ...]
    """Columns that are read as they are: numbers or text, compared exactly."""
    values: tuple[Expression, ...] = ()
    """Values of declared columns, such as a month; a row without one has no unit."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompositeUnit) and unit_content(self) == unit_content(other)

    def __hash__(self) -> int:
        return hash(json.dumps(unit_content(self)))

    def __str__(self) -> str:
        """What it is made of, in words."""
        return " and ".join([*self.columns, *map(_words, self.values)])

    def __repr__(self) -> str:
        return repr([*self.columns, *self.values])


Unit: TypeAlias = str | CompositeUnit
"""The name of one column, or several parts."""
GivenUnit: TypeAlias = str | Expression | CompositeUnit | Sequence[str | Expression]
"""How somebody declares one."""


def checked_unit(given: object, schema: Mapping[str, ColumnSpec]) -> Unit | None:
    """The privacy unit that somebody declared, checked against the declared columns."""
    if given is None or isinstance(given, str | CompositeUnit):
        return given
    parts = list(given) if isinstance(given, list | tuple) else [given]
    if not 1 <= len(parts) <= _PARTS or not all(isinstance(one, str | Expression) for one in parts):
        wrong = next((type(x).__name__ for x in parts if not isinstance(x, str | Expression)), "")
        raise InvalidArgument(
            "privacy_unit must be one column's name, or a list of up to "
            f"{_PARTS} names and expressions, such as ['person', discreet.col('month')]; got "
            f"{wrong or f'{len(parts)} parts'}."
        )
    names = tuple([one for one in parts if isinstance(one, str)])
    if len(set(names)) != len(names):
        raise InvalidArgument("privacy_unit names a column twice.")
    values = tuple([one for one in parts if isinstance(one, Expression)])
    for value in values:
        if value.bind(schema).kind not in ("date", "label", "flag"):
            raise InvalidArgument(
                f"{value!r} cannot be a part of privacy_unit: an expression must be a date, a "
                "category or a truth value. Name a column of numbers or text by its name, without "
                "col(), so that no two of its values become one."
            )
    if len(parts) == 1 and names:
        return names[0]
    return CompositeUnit(columns=names, values=values)


def unit_columns(unit: Unit | None) -> tuple[str, ...]:
    """The columns of the source that are read as they are."""
    if unit is None:
        return ()
    return (unit,) if isinstance(unit, str) else unit.columns


def unit_content(unit: Unit | None) -> Any:
    """A privacy unit as JSON: a name, or a list of names and expressions."""
    if unit is None or isinstance(unit, str):
        return unit
    return [*unit.columns, *map(write_expression, unit.values)]


def read_unit(content: object, schema: Mapping[str, ColumnSpec]) -> Unit | None:
    """The privacy unit of what `unit_content` wrote, or somebody in a file."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = [one if isinstance(one, str) else read_expression(one) for one in content]
    return checked_unit(content, schema)


def unit_words(unit: Unit) -> str:
    """What a privacy unit is, after "any one"."""
    return unit if isinstance(unit, str) else f"combination of {unit}"


def content_words(content: Any) -> str:
    """The same of what `unit_content` wrote."""
    if isinstance(content, str):
        return content
    parts = [one if isinstance(one, str) else _words(read_expression(one)) for one in content]
    return f"combination of {' and '.join(parts)}"


def _cut(value: Expression) -> str | None:
    """The length of time to which dates are cut, such as a month."""
    tree = value.tree
    return str(tree[2]) if tree is not None and tree[0] == "truncate" else None


def _words(value: Expression) -> str:
    tree = value.tree
    if tree is not None and (every := _cut(value)) is not None and isinstance(tree[1], Expression):
        return f"{every} of {_words(tree[1])}"
    return str(tree[1]) if tree is not None and tree[0] == "col" else repr(value)


def content_columns(content: Any) -> list[str]:
    """The columns of what `unit_content` wrote, however they are used."""
    if content is None or isinstance(content, str):
        return [] if content is None else [content]
    found = [name for one in content for name in ([one] if isinstance(one, str) else _named(one))]
    return list(dict.fromkeys(found))


def _named(tree: Any) -> list[str]:
    match tree:
        case ["col", str(name)]:
            return [name]
        case list():
            return [name for part in tree for name in _named(part)]
    return []


def unit_period(unit: Unit | None, schema: Mapping[str, ColumnSpec]) -> dict[str, str] | None:
    """The column that tells time, and how long a unit is; None if it has no end, or two."""
    parts = unit.values if isinstance(unit, CompositeUnit) else ()
    bound = [one.bind(schema) for one in parts]
    cut = [_cut(one) for one in parts]
    found = [i for i, one in enumerate(bound) if one.kind == "date" or cut[i] is not None]
    if len(found) != 1:
        return None
    [place] = found
    columns = content_columns([write_expression(parts[place])])
    every = cut[place] or bound[place].step
    return {"column": columns[0], "every": every} if len(columns) == 1 else None
