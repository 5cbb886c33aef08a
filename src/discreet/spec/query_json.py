"""Questions as JSON: the words of a release file, and expressions where they have none.

A column may also be ``{"expression": [...]}``, a condition likewise, a group ``{"column": NAME,
"expression": [...]}``; dates and exact numbers are written as in `discreet.data.written`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data import expression_json as written
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.query.builders import Query
from discreet.ranges.grid.table_query import GridQuery
from discreet.ranges.table_query import RangeQuery


def read_label(given: object) -> Any:
    """A public value; of a mapping, the date or number that it writes."""
    return written.read_label(given) if isinstance(given, Mapping) else given


def read_labels(given: object) -> Any:
    """A list of public values, or of lists of them."""
    return [read_labels(one) for one in given] if isinstance(given, list) else read_label(given)


def read_value(given: object) -> Any:
    """A column by its name, or an expression."""
    return read_expression(given) if isinstance(given, Mapping) else given


def read_expression(given: Mapping[Any, Any]) -> Expression:
    """The expression of ``{"expression": [...]}``."""
    if set(given) != {"expression"}:
        raise InvalidArgument('a column is a name, or {"expression": [...]}.')
    return written.read_expression(given["expression"])


def write_query(query: Query | RangeQuery | GridQuery) -> dict[str, Any]:
    """A question in these words; the server that reads them has the same question."""
    found: dict[str, Any] = {"kind": "ranges", **_limits(query.limits)}
    if query.name:
        found["name"] = query.name
    if query.where is not None:
        found["where"] = _sent(query.where)
    match query:
        case Query():
            return {**found, **_statistic(query)}
        case RangeQuery():
            return {**found, **_ranges(query)}
        case _:
            return {**found, **_rectangles(query)}


def _statistic(query: Query) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": query.kind}
    if query.value is not None:
        found["of"] = _sent(query.value)
    if query.second_value is not None:
        found["of"] = [found["of"], _sent(query.second_value)]
    groups = dict(query.by)
    if query.kind == "count_distinct":
        _, value = groups.popitem()
        found["of"] = _sent(value)
    if groups:
        found["by"] = [{"column": name, **_sent(one)} for name, one in groups.items()]
    if query.keys is not None:
        values = [[written.write_label(part) for part in key] for key in query.keys]
        found["keys"] = {"values": values, "include_other": query.include_other}
    if query.kind == "quantiles":
        found["q"] = [written.write_label(q) for q in query.q]
    found |= {name: getattr(query, name) for name in ("bins", "method", "at_least")}
    if query.sampling:
        found["sampling"] = True
    if query.expected_ratio is not None:
        found["expected_ratio"] = written.write_label(query.expected_ratio)
    if query.to is not None:
        found["to"] = [written.write_label(one) for one in query.to]
    return {name: one for name, one in found.items() if one is not None}


def _ranges(query: RangeQuery) -> dict[str, Any]:
    found: dict[str, Any] = {"of": _sent(query.value), "workload": _pairs(query.workload)}
    if query.bins is not None:
        found["bins"] = query.bins
    if query.edges is not None:
        found["edges"] = [written.write_label(edge) for edge in query.edges]
    return found


def _rectangles(query: GridQuery) -> dict[str, Any]:
    of = [_sent(one) for one in query.values.values()]
    return {"of": of, "workload": _pairs(query.workload), "bins": dict(query.bins)}


def _pairs(workload: object) -> Any:
    if isinstance(workload, str):
        return workload
    if isinstance(workload, Sequence):
        return [[written.write_label(end) for end in pair] for pair in workload]
    raise Unsupported("workload must be a name, or pairs of labels, to be sent to a server.")


def _sent(one: Expression) -> dict[str, Any]:
    return {"expression": written.write_expression(one)}


def _limits(limits: ContributionLimits) -> dict[str, int]:
    names = ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_unit_per_group")
    found = {name: getattr(limits, name) for name in names}
    return {name: one for name, one in found.items() if one is not None}
