"""Arithmetic, comparison and choice on bounded code: exact, total, and never out of range."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from discreet.core.errors import InvalidArgument
from discreet.data._integer_ops import (
    MOST_PICKS,
    OPEN,
    BoundedCode,
    Code,
    CodeBinary,
    CodeClip,
    CodeConst,
    CodeDivide,
    CodePick,
    Operator,
    align,
    category_code,
    checked_number,
    flag,
    number,
    of_kind,
    position,
    small,
    where_known,
)
from discreet.data.schema import EPOCH, NumericColumn

Part = Literal["year", "quarter", "month", "week", "day", "weekday", "hour"]
Period = Literal["year", "quarter", "month", "week"]


def combine(operator: Literal["+", "-", "*"], a: BoundedCode, b: BoundedCode) -> BoundedCode:
    """Sum, difference or product of two numbers; of two dates the time between them."""
    if operator == "-" and a.kind == b.kind == "date":
        if a.step != b.step:
            raise InvalidArgument("two dates are subtracted if they are declared with one step.")
        ends = [a.lower - b.upper, a.upper - b.lower]
        return checked_number(CodeBinary("-", a.code, b.code), ends, 0)
    a, b = number(a), number(b)
    if operator == "*":
        ends = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
        return checked_number(CodeBinary("*", a.code, b.code), ends, a.exponent + b.exponent)
    a, b = align(a, b)
    if operator == "+":
        ends = [a.lower + b.lower, a.upper + b.upper]
    else:
        ends = [a.lower - b.upper, a.upper - b.lower]
    return checked_number(CodeBinary(operator, a.code, b.code), ends, a.exponent)


def absolute(a: BoundedCode) -> BoundedCode:
    """The distance from zero."""
    a = number(a)
    sign = CodeBinary(
        "-", CodeConst(1), CodeBinary("*", CodeConst(2), CodeBinary("<", a.code, CodeConst(0)))
    )
    largest = max(-a.lower, a.upper)
    least = 0 if a.lower <= 0 <= a.upper else min(abs(a.lower), abs(a.upper))
    return checked_number(CodeBinary("*", a.code, sign), (least, largest), a.exponent)


def divide_by(a: BoundedCode, divisor: Fraction) -> BoundedCode:
    """A number divided by a public one, rounded (halves up) so finely that no two values meet.

    A divisor c = p/q makes ``a q / p``: exact if p is a power of two, else on a grid finer by the
    least power of two that is not below c.
    """
    a = number(a)
    if divisor == 0:
        raise InvalidArgument("a number cannot be divided by the constant zero.")
    p, q = abs(divisor.numerator), divisor.denominator * (1 if divisor > 0 else -1)
    exact = p & (p - 1) == 0
    finer = p.bit_length() - 1 if exact else max(0, -(-p // abs(q)) - 1).bit_length()
    factor = q if exact else q << finer
    ends = a.lower * factor, a.upper * factor
    scaled = checked_number(
        CodeBinary("*", a.code, CodeConst(factor)), (*ends, factor), a.exponent - finer
    )
    if exact:
        return checked_number(scaled.code, ends, scaled.exponent)
    # floor(x / p + 1/2) = floor((2 x + p) / (2 p))
    doubled = [2 * end + p for end in ends]
    top = checked_number(
        CodeBinary("+", CodeBinary("*", CodeConst(2), scaled.code), CodeConst(p)),
        (*doubled, 2 * p),
        0,
    )
    code = CodeDivide(top.code, CodeConst(2 * p), 0)
    return checked_number(code, (end // (2 * p) for end in doubled), scaled.exponent)


def quotient(a: BoundedCode, b: BoundedCode, *, into: NumericColumn) -> BoundedCode:
    """One number divided by another: nearest point of a declared range; x/0 is what is missing."""
    # In steps, x / y is (a 2**shift) / b; floor(x / y + 1/2) = floor((2 x + y) / (2 y)), for
    # either sign of y.
    a, b = number(a), number(b)
    shift = a.exponent - b.exponent - into.exponent
    x = combine("*", _whole(a), _constant(2 ** (1 + max(shift, 0))))
    y = combine("*", _whole(b), _constant(2 ** max(-shift, 0)))
    top, bottom = combine("+", x, y), combine("*", y, _constant(2))
    code = CodeClip(CodeDivide(top.code, bottom.code, into.missing), into.lower, into.upper)
    return checked_number(code, (into.lower, into.upper), into.exponent)


def floor_divide(a: BoundedCode, b: BoundedCode) -> BoundedCode:
    """How often a public number fits into a number, rounded down."""
    a, c = align(a, b)
    divisor = _divisor(c)
    ends = [end // divisor for end in (a.lower, a.upper)]
    return checked_number(CodeDivide(_whole(a).code, c.code, 0), ends, 0)


def remainder(a: BoundedCode, b: BoundedCode) -> BoundedCode:
    """What is left after `floor_divide` by a positive public number."""
    a, c = align(a, b)
    divisor = _divisor(c)
    if divisor < 0:
        raise InvalidArgument("the right side of % must be positive.")
    times = [end // divisor for end in (a.lower, a.upper)]
    whole = checked_number(
        CodeBinary("*", CodeDivide(a.code, c.code, 0), c.code),
        (*(n * divisor for n in times), a.lower, a.upper),
        a.exponent,
    )
    ends = (0, divisor - 1)
    if times[0] == times[1]:
        ends = (a.lower - times[0] * divisor, a.upper - times[0] * divisor)
    return checked_number(CodeBinary("-", a.code, whole.code), ends, a.exponent)


def choose(condition: BoundedCode, a: BoundedCode, b: BoundedCode) -> BoundedCode:
    """One value where the condition holds, the other where it does not."""
    test = of_kind(condition, "flag").code
    known = None
    if a.known is not None or b.known is not None:  # that of the side that is taken
        known = _either(test, *(one.known or CodeConst(1) for one in (a, b)))
    return where_known(_chosen(test, a, b), known)


def _chosen(test: Code, a: BoundedCode, b: BoundedCode) -> BoundedCode:
    if "label" in (a.kind, b.kind):
        labels = tuple(dict.fromkeys([*a.labels, *b.labels]))
        a, b = _relabeled(a, labels), _relabeled(b, labels)
        return category_code(_either(test, a.code, b.code), labels)
    if "date" in (a.kind, b.kind):
        if a.kind != b.kind or a.step != b.step:
            raise InvalidArgument("then and otherwise must both be dates with the same step.")
    elif a.kind == b.kind == "flag":
        return flag(_either(test, a.code, b.code))
    else:
        a, b = align(a, b)
    return BoundedCode(
        code=_either(test, a.code, b.code),
        lower=min(a.lower, b.lower),
        upper=max(a.upper, b.upper),
        kind=a.kind,
        exponent=a.exponent,
        step=a.step,
    )


def date_part(a: BoundedCode, part: Part) -> BoundedCode:
    """A part of a date (UTC) as a whole number; Monday is weekday 1."""
    a = of_kind(a, "date")
    if part == "hour":
        if a.step == "day":
            raise InvalidArgument("hour needs a date declared with step='hour'.")
        hour = CodeBinary(
            "-", a.code, CodeBinary("*", CodeDivide(a.code, CodeConst(24), 0), CodeConst(24))
        )
        return checked_number(hour, (0, 23), 0)
    days, low, high = _days(a, part)
    table = _calendar(low, high, part)
    return checked_number(CodePick(days, low, table), (min(table), max(table)), 0)


def date_period(a: BoundedCode, period: Period) -> BoundedCode:
    """The year, quarter, month or ISO week of a date (UTC): a category for each in the bounds."""
    days, low, high = _days(of_kind(a, "date"), period)
    names = _periods(low, high, period)
    labels = tuple(dict.fromkeys(names))  # they never decrease, so each is one run of days
    place = {name: number for number, name in enumerate(labels)}
    return category_code(CodePick(days, low, tuple(place[name] for name in names)), labels)


def _days(a: BoundedCode, word: str) -> tuple[Code, int, int]:
    """The day of a date, and the first and the last of the bounds; a table lists them all."""
    days, low, high = a.code, a.lower, a.upper
    if a.step == "hour":
        days, low, high = CodeDivide(a.code, CodeConst(24), 0), low // 24, high // 24
    if high - low >= MOST_PICKS:
        raise InvalidArgument(f"{word} takes dates within {MOST_PICKS} days: declare fewer.")
    return days, low, high


@lru_cache(maxsize=64)
def _calendar(first: int, last: int, part: Part) -> tuple[int, ...]:
    days = (EPOCH + dt.timedelta(days=code) for code in range(first, last + 1))
    if part == "weekday":
        return tuple(day.isoweekday() for day in days)
    if part == "week":
        return tuple(day.isocalendar().week for day in days)
    if part == "quarter":
        return tuple((day.month + 2) // 3 for day in days)
    return tuple(getattr(day, part) for day in days)


@lru_cache(maxsize=64)
def _periods(first: int, last: int, period: Period) -> tuple[str, ...]:
    days = (EPOCH + dt.timedelta(days=code) for code in range(first, last + 1))
    if period == "week":
        weeks = (day.isocalendar() for day in days)
        return tuple(f"{one.year:04}-W{one.week:02}" for one in weeks)
    if period == "quarter":
        return tuple(f"{day.year:04}-Q{(day.month + 2) // 3}" for day in days)
    return tuple(day.isoformat()[: 7 if period == "month" else 4] for day in days)


def _either(test: Code, a: Code, b: Code) -> Code:
    """``test * a + (1 - test) * b``: one of the products is zero, so nothing can overflow."""
    return CodeBinary(
        "+", CodeBinary("*", test, a), CodeBinary("*", CodeBinary("-", CodeConst(1), test), b)
    )


def _relabeled(value: BoundedCode, labels: tuple[object, ...]) -> BoundedCode:
    if value.kind != "label" or not small(value):
        raise InvalidArgument("then and otherwise must both be categories or texts.")
    table = tuple(labels.index(label) for label in value.labels)
    return category_code(CodePick(value.code, 0, table), value.labels)


def _divisor(c: BoundedCode) -> int:
    if c.lower != c.upper or c.lower == 0:
        raise InvalidArgument("// and % take a public number other than zero on the right.")
    return c.lower


def _whole(a: BoundedCode) -> BoundedCode:
    """The codes themselves as a whole number."""
    return checked_number(a.code, (a.lower, a.upper), 0)


def _constant(value: int) -> BoundedCode:
    return checked_number(CodeConst(value), (value,), 0)


def compare_two(operator: Operator, a: BoundedCode, b: BoundedCode) -> BoundedCode:
    """Two expressions of one kind."""
    if {a.kind, b.kind} <= {"number", "flag"}:
        a, b = align(a, b)
    elif "text" in (a.kind, b.kind):
        raise InvalidArgument(OPEN)
    elif a.kind != b.kind or a.labels != b.labels or a.step != b.step:
        raise InvalidArgument("two columns can be compared if they are declared alike.")
    elif a.kind == "label" and operator != "=":
        raise InvalidArgument("categories have no order: use == or isin.")
    return flag(CodeBinary(operator, a.code, b.code))


def compare_literal(
    operator: Operator, a: BoundedCode, mark: object, *, swapped: bool
) -> BoundedCode:
    """``a < mark``, or ``mark < a`` if swapped, with the literal taken exactly."""
    if operator == "=" and a.kind in ("label", "flag"):
        return flag(CodeBinary("=", a.code, CodeConst(a.locate(mark))))
    if a.kind == "label":
        raise InvalidArgument("categories have no order: use == or isin.")
    exact = position(number(a) if a.kind == "flag" else a, mark)
    if operator == "=":
        inside = exact.denominator == 1 and a.lower <= exact <= a.upper
        return flag(CodeBinary("=", a.code, CodeConst(int(exact))) if inside else CodeConst(0))
    strict = operator == "<"
    if swapped:  # mark <= a: from ceil(mark) on; mark < a: from floor(mark) + 1 on
        first = exact.__floor__() + 1 if strict else exact.__ceil__()
        return (
            flag(CodeBinary("<=", CodeConst(_into(first, a)), a.code))
            if first <= a.upper
            else _never()
        )
    last = exact.__ceil__() - 1 if strict else exact.__floor__()
    return (
        flag(CodeBinary("<=", a.code, CodeConst(_into(last, a)))) if last >= a.lower else _never()
    )


def _into(value: int, a: BoundedCode) -> int:
    """A threshold beyond the range acts like one at its end, and fits into 64 bits."""
    return min(max(value, a.lower), a.upper)


def _never() -> BoundedCode:
    return flag(CodeConst(0))
