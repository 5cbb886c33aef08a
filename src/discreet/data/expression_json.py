"""Expressions as JSON: what a question says about columns, sent from one machine to another.

An expression is a list: an operation and what it is given, for example
``["<=", 65, ["col", "age"]]``. Numbers, texts and truth values stand for themselves, a date is
``{"date": "2026-01-31"}``, a time ``{"time": ...}``, and a number that no double holds
``{"number": "1/3"}``. Reading one calls the operators of `Expression` and nothing else.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression, col, when

DEEPEST = 50
"""So many operations may stand inside each other."""
MOST_OPERATIONS = 10_000
"""So many an expression may hold where it is written out, each as often as it stands there."""
_NUMBER = re.compile(r"-?[0-9]{1,60}(/[0-9]{1,60})?")
_PARTS = ("year", "quarter", "month", "week", "day", "weekday", "hour")


def write_expression(expression: Expression) -> list[Any]:
    """The expression as JSON; `read` gives one that binds to the same code."""
    if expression.tree is None:
        raise InvalidArgument(f"{expression!r} cannot be sent: build it from col and operators.")
    if _size(expression, {}) > MOST_OPERATIONS:
        raise InvalidArgument(
            f"an expression that is sent or stored has at most {MOST_OPERATIONS:,} operations, "
            "counted as often as they stand in it: compute the column before."
        )
    return [_write(part) for part in expression.tree]


def read_expression(content: object) -> Expression:
    """The expression of a JSON value that somebody sent."""
    found = _read(content, DEEPEST)
    if not isinstance(found, Expression):
        raise InvalidArgument('an expression is a list such as ["<=", 65, ["col", "age"]].')
    return found


def write_label(value: object) -> Any:
    """A public value (a key, an edge, an amount) as JSON."""
    return _write(value)


def read_label(content: object) -> Any:
    """The public value of what `write_label` wrote."""
    found = _read(content, 0)
    if isinstance(found, Expression | tuple):
        raise InvalidArgument("a value must be a number, a text, a truth value or a date.")
    return found


def _size(value: object, known: dict[int, int]) -> int:
    """Operations of an expression, written out; shared parts are counted, but not walked, again."""
    if isinstance(value, tuple):
        return sum(_size(one, known) for one in value)
    if not isinstance(value, Expression):
        return 0
    if id(value) not in known:
        known[id(value)] = 1 + _size(value.tree or (), known)
    return known[id(value)]


def _write(value: object) -> Any:
    match value:
        case Expression(tree=tuple(tree)):
            return [_write(part) for part in tree]
        case Expression():
            return write_expression(value)
        case tuple():
            return [_write(one) for one in value]
        case dt.datetime():
            return {"time": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case Fraction() | Decimal():
            return {"number": str(Fraction(value))}
        case None | bool() | int() | float() | str():
            return value
        case _ if hasattr(value, "item"):  # a scalar of NumPy
            return _write(value.item())
    raise InvalidArgument(f"{type(value).__name__} cannot be sent as a part of a question.")


def _read(content: object, depth: int) -> object:
    match content:
        case None | bool() | int() | float() | str():
            return content
        case Mapping():
            return _special(content)
        case [str(operation), *given] if depth:
            return _applied(operation, given, depth - 1)
    raise InvalidArgument(f"an expression has at most {DEEPEST} levels of lists and known values.")


def _special(content: Mapping[Any, Any]) -> object:
    match dict(content):
        case {"date": str(text), **rest} if not rest:
            return _parsed(dt.date.fromisoformat, text)
        case {"time": str(text), **rest} if not rest:
            return _parsed(dt.datetime.fromisoformat, text)
        case {"number": str(text), **rest} if not rest and _NUMBER.fullmatch(text):
            return _parsed(Fraction, text)
    raise InvalidArgument('a value may be {"date": ...}, {"time": ...} or {"number": "1/3"}.')


def _parsed(make: Callable[[str], object], text: str) -> object:
    try:
        return make(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidArgument("a date, time or number is not written as ISO 8601 or n/d.") from None


def _applied(operation: str, given: list[Any], depth: int) -> Expression:
    try:
        match operation, given:
            case "col", [str(name)]:
                return col(name)
            case "isin", [inner, list(values)]:
                return _inner(inner, depth).isin(tuple(map(read_label, values)))
            case "cut", [inner, list(edges)]:
                return _inner(inner, depth).cut(tuple(map(read_label, edges)))
            case "map", [inner, list(pairs), str(default)]:
                table = {read_label(name): str(new) for name, new in pairs}
                return _inner(inner, depth).map(table, default=default)
        made = _OPERATIONS.get(operation)
        if made is not None:
            return made(*(_read(one, depth) for one in given))
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{operation[:20]!r} was given the wrong things.") from None
    raise InvalidArgument(f"an expression knows no operation {operation[:20]!r} of these things.")


def _inner(content: object, depth: int) -> Expression:
    return _column(_read(content, depth))


def _column(value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    raise InvalidArgument('an operation needs a column, for example ["col", "age"].')


def _either(apply: Callable[[Any, Any], Any]) -> Callable[[object, object], Expression]:
    """An operator of which one side at least is an expression: texts are never repeated."""

    def applied(left: object, right: object) -> Expression:
        one = left if isinstance(left, Expression) else right
        _column(one)
        return _column(apply(left, right))

    return applied


def _first(apply: Callable[..., Any]) -> Callable[..., Expression]:
    """An operation on an expression: texts are never formatted."""
    return lambda inner, *given: _column(apply(_column(inner), *given))


def _divided(inner: Expression, by: Any, *given: Any) -> Expression:
    lower, upper, grid, zero = given
    return inner.divide(by, lower=lower, upper=upper, granularity=grid, zero=zero)


_OPERATIONS: Mapping[str, Callable[..., Expression]] = {
    "+": _either(operator.add),
    "-": _either(operator.sub),
    "*": _either(operator.mul),
    "<": _either(operator.lt),
    "<=": _either(operator.le),
    "=": _either(operator.eq),
    "and": _first(operator.and_),
    "or": _first(operator.or_),
    "not": _first(operator.invert),
    "abs": _first(abs),
    "/": _first(operator.truediv),
    "//": _first(operator.floordiv),
    "%": _first(operator.mod),
    "clip": _first(lambda inner, lower, upper: inner.clip(lower=lower, upper=upper)),
    "divide": _first(_divided),
    "is_known": _first(lambda inner: inner.is_known()),
    "is_missing": _first(lambda inner: inner.is_missing()),
    "fill_missing": _first(lambda inner, value: inner.fill_missing(value)),
    "truncate": _first(lambda inner, period: inner.truncate(period)),
    "when": _first(lambda condition, a, b: when(condition).then(a).otherwise(b)),
    **{part: _first(operator.methodcaller(part)) for part in _PARTS},
}
