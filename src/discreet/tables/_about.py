"""What an answer leaves out, in sentences: limits, filter, bounds, unknown values.

Made from the public facts of a release alone, so that it is as public as the query itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from discreet.data.schema import OTHER
from discreet.data.unit import content_words

_LIMITS = (
    ("max_rows_per_unit", "row", ""),
    ("max_groups_per_unit", "group", ""),
    ("max_rows_per_unit_per_group", "row", " in a group"),
)


def about_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    """The sentences about a query; facts of earlier versions know less, and give fewer."""
    yield from _limits(facts["unit"], facts["limits"])
    if facts.get("where") is not None:
        yield f"only rows in which {facts['where']} is true are used"
    if facts.get("other_keys") == "left out":
        yield "rows of keys that were not asked for are left out"
    elif facts.get("other_keys") == "one group":
        yield f"rows of keys that were not asked for are in {OTHER!r}"
    if facts.get("kind") == "keys":  # its facts name all columns of the table
        return
    columns = {one["name"]: one for one in facts["columns"]}
    for one in columns.values():
        yield from _column(one)
    values, by = facts.get("values", ()), facts.get("by", ())
    for names, fate in ((values, "left out"), (by, "in no group")):
        for name in names:
            if _may_be_unknown(columns.get(name)):
                yield f"rows in which {name} is unknown are {fate}"


def about_cells(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The sentences about ranges, rectangles or many tables, and what their intervals cover."""
    return (*about_facts(facts), "the intervals cover the noise only")


def _limits(unit: Any, limits: Mapping[str, int | None]) -> Iterator[str]:
    who = "row" if unit is None else content_words(unit)
    told = [(limits[name], thing, where) for name, thing, where in _LIMITS]
    for most, thing, where in told:
        if most is not None:
            words = (
                f"{thing} of each {who}{where} is"
                if most == 1
                else (f"{thing}s of each {who}{where} are")
            )
            yield f"at most {most} {words} used, others are left out"
    if all(most is None for most, _, _ in told):
        yield "no contribution limit leaves rows out"


def _column(one: Mapping[str, Any]) -> Iterator[str]:
    """What was declared about values that do not fit, or are not there."""
    name = one["name"]
    if "every" in one:
        yield f"dates of {name} before {one['lower']} or after {one['upper']} are unknown"
    elif "lower" in one:
        ends = f"below {_number(one['lower'])} or above {_number(one['upper'])}"
        yield f"values of {name} {ends} count as the bound"
        step = one.get("granularity")
        yield f"values of {name} are rounded to " + (
            "whole numbers" if step is None else f"multiples of {_number(step)}"
        )
    if "include_other" in one:
        yield from _category(one)
    elif one.get("missing") is not None:
        yield f"unknown values of {name} count as {_number(one['missing'])}"
    if one.get("required"):
        yield f"rows in which {name} is unknown are left out of every query"


def _category(one: Mapping[str, Any]) -> Iterator[str]:
    if "missing" not in one:  # facts of an earlier version
        return
    missing, unlisted = one["missing"], one["unlisted"]
    told = {None: "are unknown", OTHER: f"are in {OTHER!r}"}
    fates = [told.get(label, f"count as {label!r}") for label in (missing, unlisted)]
    if fates[0] == fates[1]:
        yield f"missing and unlisted values of {one['name']} {fates[0]}"
    else:
        yield f"missing values of {one['name']} {fates[0]}, unlisted ones {fates[1]}"


def _may_be_unknown(one: Mapping[str, Any] | None) -> bool:
    """Whether it goes without saying elsewhere; None is an expression of several columns."""
    if one is None:
        return True
    if one.get("required"):
        return False
    if "include_other" in one:
        return "missing" in one and None in (one["missing"], one["unlisted"])
    return one.get("missing") is None


def _number(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
