"""The setting of a table from what its server shows of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.data import schema
from discreet.data.plan import Limits
from discreet.data.schema import OTHER, Declared
from discreet.queries.design import Setting

_RELATIONS = {"add_remove": Relation.ADD_REMOVE, "replace_one": Relation.REPLACE_ONE}
_LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")


def setting_of(shown: Mapping[str, Any]) -> Setting:
    """What forecasts and plans follow from; the server declares it, nothing is read."""
    try:
        return Setting(
            schema={one["name"]: _column(one) for one in shown["columns"]},
            unit=shown["unit"],
            limits=Limits(**{name: shown[name] for name in _LIMITS}),
            relation=_RELATIONS[shown["relation"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "url: the server describes its table in words unknown here."
        ) from None


def _column(shown: Mapping[str, Any]) -> Declared:
    lower, upper, missing = shown["lower"], shown["upper"], shown["missing"]
    match shown["kind"]:
        case "integer":
            return schema.integer(lower=lower, upper=upper, missing=missing)
        case "real":
            return schema.real(lower=lower, upper=upper, grid=shown["step"], missing=missing)
        case "category":
            names = [level for level in shown["levels"] if level != OTHER]
            other = OTHER in shown["levels"]
            return schema.category(names, other=other, missing=missing)
        case "date":
            ends = {"lower": _time(lower), "upper": _time(upper), "missing": _time(missing)}
            return schema.date(**ends, step=shown["step"])
        case "boolean":
            return schema.boolean(missing=missing)
        case "text":
            return schema.text()
    raise InvalidArgument(f"url: the server has columns of kind {shown['kind']!r}.")


def _time(text: str) -> dt.date:
    return dt.date.fromisoformat(text) if len(text) == 10 else dt.datetime.fromisoformat(text)
