"""Reading the JSON of a card strictly: the published schema, and nothing that JSON leaves open."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from discreet.core.errors import InvalidArgument

Content = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}
_LONGEST = 200_000_000


@lru_cache(maxsize=1)
def schema() -> Content:
    """The JSON Schema (2020-12) of a card."""
    found: Content = json.loads(
        (files("discreet.cards") / "card.schema.json").read_text(encoding="utf-8")
    )
    return found


def read(text: str) -> Content:
    """The JSON object of a text: no key twice, no NaN, no number beyond a double."""
    if len(text) > _LONGEST:
        raise InvalidArgument(f"A card has at most {_LONGEST:,} characters.")
    try:
        content = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("text must be the JSON of a card.") from None
    if not isinstance(content, dict):
        raise InvalidArgument("text must be the JSON of a card: one object.")
    return content


def _object(pairs: list[tuple[str, Any]]) -> Content:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"{twice!r} stands twice in one object.")
    return dict(pairs)


def _constant(word: str) -> float:
    raise InvalidArgument(f"{word} is no number of JSON.")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidArgument(f"The number {text[:40]} is beyond a double.")
    return value


def problems(value: Any, rule: Content | None = None, path: str = "") -> list[str]:
    """Where a value breaks a rule of the schema; the words of JSON Schema that it uses."""
    if rule is None:  # one of two, told apart by their first field
        audit = isinstance(value, dict) and "discreet_audit" in value
        rule = schema()["$defs"]["audit" if audit else "release"]
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    here = path or "the card"
    if "oneOf" in rule:
        tried = [problems(value, one, path) for one in rule["oneOf"]]
        return [] if [] in tried else max(tried, key=lambda found: _depth(found[0]))
    if "const" in rule and not _same(value, rule["const"]):
        return [f"{here}: must be {rule['const']!r}"]
    if "enum" in rule and not any(_same(value, one) for one in rule["enum"]):
        return [f"{here}: must be one of {', '.join(map(str, rule['enum']))}"]
    if "type" in rule:
        named = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        if not any(_is(value, one) for one in named):
            return [f"{here}: must be {' or '.join(named)}"]
    if isinstance(value, dict):
        return _of_object(value, rule, path)
    if isinstance(value, list) and "items" in rule:
        return [
            found
            for place, one in enumerate(value)
            for found in problems(one, rule["items"], f"{path}[{place}]")
        ]
    return _of_plain(value, rule, here)


def _depth(problem: str) -> int:
    return problem.partition(":")[0].count(".")


def _same(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _of_object(value: Content, rule: Content, path: str) -> list[str]:
    known, more = rule.get("properties", {}), rule.get("additionalProperties", True)
    dot = f"{path}." if path else ""
    found = [f"{dot}{name}: is missing" for name in rule.get("required", ()) if name not in value]
    for name, one in value.items():
        if name in known:
            found += problems(one, known[name], f"{dot}{name}")
        elif more is False:
            found.append(f"{dot}{name}: is no field of a card")
        elif isinstance(more, dict):
            found += problems(one, more, f"{dot}{name}")
    return found


def _of_plain(value: Any, rule: Content, here: str) -> list[str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and "minimum" in rule and value < rule["minimum"]:
        return [f"{here}: must be at least {rule['minimum']}"]
    if not isinstance(value, str):
        return []
    if "pattern" in rule and not re.search(rule["pattern"], value):
        return [f"{here}: is not of the form {rule['pattern']}"]
    if rule.get("format") == "date-time" and not _is_time(value):
        return [f"{here}: must be a time with its offset, such as 2026-01-31T12:00:00+00:00"]
    return []


def _is_time(text: str) -> bool:
    try:
        return dt.datetime.fromisoformat(text).tzinfo is not None and "T" in text
    except ValueError:
        return False
