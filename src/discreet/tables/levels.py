"""One level for every unit of a table: from a column of its own rows, or from a crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from discreet.accounting.people import Admitted
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.schema import Category, Lookup, category
from discreet.ledger.crowd import Crowd
from discreet.queries.personal import Menu

if TYPE_CHECKING:
    from discreet.tables.opened import Opened


def attached(table: Opened, column: str, *, crowd: Crowd | None, levels: Menu) -> Opened:
    """The table in which every unit has one level, the same in all of its rows."""
    from discreet.data.source import Joined, SparkFrame, Stream  # noqa: PLC0415 - slow to import

    setting = table.setting
    unit, schema = setting.unit, setting.schema
    kind = None if unit is None else table.source.columns.get(unit)
    textual = kind in ("text", "object")
    if crowd is not None:
        if isinstance(table.source, SparkFrame):
            raise Unsupported("Spark would keep who was admitted in its logs; use another engine.")
        plain = category([str(x) for x in levels.levels])
        looked = Lookup(source=str(unit), inner=plain, textual=textual, keys=(), codes=())
        changed = {**schema, column: looked}
        return replace(table, setting=replace(setting, schema=changed))
    held = schema[column]
    if unit is None or (isinstance(held, Lookup) and held.source == unit):
        return table
    if isinstance(table.source, Stream | SparkFrame) or isinstance(held, Lookup):
        raise Unsupported(
            "A unit may have several rows here, and must have one level: put the levels into a "
            "table of people and attach them, table.join_units(people, columns=[...])."
        )
    if not isinstance(held, Category):
        raise InvalidArgument(f"{column!r} must be a category.")
    source = Joined(source=table.source, other=table.source, unit=unit, attached={column: held})
    looked = Lookup(source=unit, inner=held, textual=textual, keys=(), codes=())
    changed = {**schema, column: looked}
    return replace(table, source=source, setting=replace(setting, schema=changed))


def members_only(opened: Opened, column: str, *, crowd: Crowd, taking: Admitted) -> Opened:
    """The table in which only the admitted members of a crowd have a level; private."""
    held = opened.setting.schema[column]
    if not isinstance(held, Lookup) or not isinstance(held.inner, Category):
        raise InvalidArgument("The level of a crowd must be looked up by the unit.")
    places = {str(level): place for place, level in enumerate(held.inner.levels)}
    members = [name for name, here in zip(crowd.members, taking.tolist(), strict=True) if here]
    found = replace(
        held,
        keys=_keys(members, textual=held.textual),
        codes=tuple(places.get(x, held.missing) for x in crowd.levels[taking].tolist()),
    )
    schema = {**opened.setting.schema, column: found}
    return replace(opened, setting=replace(opened.setting, schema=schema))


def check_members(table: Opened, crowd: Crowd) -> None:
    """Refuse members that are not one unit each, before anybody pays: no row is read."""
    kind = table.source.columns.get(table.setting.unit or "")
    _keys(crowd.members, textual=kind in ("text", "object"))


def _keys(members: Sequence[str], *, textual: bool) -> tuple[str, ...] | tuple[int, ...]:
    if textual:
        if any(not member or "\0" in member for member in members):
            raise InvalidArgument("Members of the crowd must not be empty or contain NUL here.")
        return tuple(members)
    try:
        keys = tuple(int(member) for member in members)
    except ValueError:
        keys = ()
    # "7" and "07" are two members, with a budget each, but one number.
    if any(str(key) != member for key, member in zip_longest(keys, members)):
        raise InvalidArgument(
            "The unit is a whole number in the table: all members of the crowd must be whole "
            "numbers, without leading zeros or spaces."
        )
    if any(abs(key) >= 1 << 63 for key in keys):
        raise InvalidArgument("Members of the crowd must be numbers of at most 64 bits here.")
    return keys
