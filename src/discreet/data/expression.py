"""Filters and derived columns: row-wise, total, and aware of their own bounds.

An expression is written with `col` and ordinary operators. Bound to a schema it becomes integer
code with proven bounds: interval arithmetic shows that no row can make it overflow, and there is no
operation that could fail or drop a row, so it is stable whatever the data are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, TypeAlias

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number as Numeric
from discreet.data import schema as declared
from discreet.data.code import Bin, Binary, Clip, Code, Const, Operator, Pick, Ref
from discreet.data.schema import INT64, Label, Schema

Kind: TypeAlias = Literal["number", "flag", "label", "date"]
Operand: TypeAlias = "Expression | Label | Fraction"
_MOST_PICKS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """Integer code with its range; a number is ``code * 2**exponent``, a label its position."""

    code: Code
    lower: int
    upper: int
    kind: Kind
    exponent: int = 0
    labels: tuple[Label, ...] = ()
    step: declared.Step = "day"

    def label(self, code: int) -> Label:
        """What a code stands for."""
        match self.kind:
            case "label":
                return self.labels[code]
            case "date":
                return declared.date_label(code, step=self.step)
            case "flag":
                return bool(code)
            case "number":
                value = code * Fraction(2) ** self.exponent
                return int(value) if value.denominator == 1 else float(value)

    def locate(self, label: object) -> int:
        """The code of a public label; an error if nothing can have it."""
        if self.kind == "label":
            found = [i for i, name in enumerate(self.labels) if name == label]
            code = found[0] if found and not isinstance(label, bool) else None
        elif self.kind == "date":
            code = declared.date_code("value", label, step=self.step)
        elif self.kind == "flag":
            code = int(label) if isinstance(label, bool) else None
        else:
            exact = check.finite("value", label) / Fraction(2) ** self.exponent
            code = int(exact) if exact.denominator == 1 else None
        if code is None or not self.lower <= code <= self.upper:
            raise InvalidArgument(f"value {label!r} is none that this expression can take.")
        return code


class Expression:
    """A row-wise, total function of declared columns; build it from `col`."""

    __slots__ = ("_bind", "_text")
    __hash__ = None  # type: ignore[assignment]  # == builds an expression

    def __init__(self, bind: Callable[[Schema], Bounded], *, text: str) -> None:
        self._bind = bind
        self._text = text

    def bind(self, schema: Schema) -> Bounded:
        """The integer code under these declarations, or an error about the expression."""
        return self._bind(schema)

    def __repr__(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        raise InvalidArgument("an expression has no truth value: combine with &, | and ~.")

    def __add__(self, other: Operand) -> Expression:
        return _arithmetic("+", self, other)

    def __sub__(self, other: Operand) -> Expression:
        return _arithmetic("-", self, other)

    def __mul__(self, other: Operand) -> Expression:
        return _arithmetic("*", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _arithmetic("+", other, self)

    def __rsub__(self, other: Operand) -> Expression:
        return _arithmetic("-", other, self)

    def __rmul__(self, other: Operand) -> Expression:
        return _arithmetic("*", other, self)

    def __lt__(self, other: Operand) -> Expression:
        return _comparison("<", self, other)

    def __le__(self, other: Operand) -> Expression:
        return _comparison("<=", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return _comparison("<", other, self)

    def __ge__(self, other: Operand) -> Expression:
        return _comparison("<=", other, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _comparison("=", self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return ~_comparison("=", self, other)  # type: ignore[arg-type]

    def __and__(self, other: Expression) -> Expression:
        return _connective("and", self, other)

    def __or__(self, other: Expression) -> Expression:
        return _connective("or", self, other)

    def __invert__(self) -> Expression:
        def bind(schema: Schema) -> Bounded:
            inner = _of_kind(self.bind(schema), "flag")
            return _flag(Binary("-", Const(1), inner.code))

        return Expression(bind, text=f"~{self!r}")

    def clip(self, *, lower: Numeric, upper: Numeric) -> Expression:
        """Clip a number to declared bounds, rounded inward to its grid."""

        def bind(schema: Schema) -> Bounded:
            inner = _number(self.bind(schema))
            step = Fraction(2) ** inner.exponent
            low = (check.finite("lower", lower) / step).__ceil__()
            high = (check.finite("upper", upper) / step).__floor__()
            if low > high or max(abs(low), abs(high)) > INT64:
                raise InvalidArgument(f"clip needs a grid point between {lower} and {upper}.")
            ends = [min(max(end, low), high) for end in (inner.lower, inner.upper)]
            code = Clip(inner.code, low, high)
            return Bounded(
                code=code, lower=ends[0], upper=ends[1], kind="number", exponent=inner.exponent
            )

        return Expression(bind, text=f"{self!r}.clip({lower}, {upper})")

    def cut(self, edges: Iterable[Numeric | dt.date]) -> Expression:
        """The bin of a number or date: below the first edge, [first, second), ..., the rest."""
        marks = tuple(edges)

        def bind(schema: Schema) -> Bounded:
            inner = self.bind(schema)
            if inner.kind not in ("number", "date") or not marks:
                raise InvalidArgument("cut needs a number or a date and at least one edge.")
            exact = [_position(inner, mark) for mark in marks]
            if any(a >= b for a, b in pairwise(exact)):
                raise InvalidArgument("edges must increase.")
            # code >= edge is code >= ceil(edge), on whatever grid; beyond int64 nothing is.
            steps = tuple(min(max(e.__ceil__(), -INT64 - 1), INT64) for e in exact)
            names = [str(mark) for mark in marks]
            inside = [f"[{a}, {b})" for a, b in pairwise(names)]
            labels = (f"< {names[0]}", *inside, f">= {names[-1]}")
            return _labelled(Bin(inner.code, steps), labels)

        return Expression(bind, text=f"{self!r}.cut({list(map(str, marks))})")

    def isin(self, values: Iterable[Label]) -> Expression:
        """Whether the value is one of these."""
        wanted = tuple(values)

        def bind(schema: Schema) -> Bounded:
            inner = self.bind(schema)
            codes = {inner.locate(value) for value in wanted}
            code: Code = Const(0)
            if _small(inner):
                table = tuple(int(c in codes) for c in range(inner.lower, inner.upper + 1))
                code = Pick(inner.code, inner.lower, table)
            else:
                for value in sorted(codes):
                    code = Binary("or", code, Binary("=", inner.code, Const(value)))
            return _flag(code)

        return Expression(bind, text=f"{self!r}.isin({list(wanted)!r})")

    def map(self, table: Mapping[Label, str], *, default: str = declared.OTHER) -> Expression:
        """Rename values to categories; what the table does not name becomes ``default``."""
        names = dict(table)

        def bind(schema: Schema) -> Bounded:
            inner = self.bind(schema)
            if not _small(inner):
                raise InvalidArgument(f"map takes at most {_MOST_PICKS} different values.")
            labels = tuple(dict.fromkeys([*names.values(), default]))
            chosen = {inner.locate(value): labels.index(name) for value, name in names.items()}
            rest = labels.index(default)
            picks = (chosen.get(c, rest) for c in range(inner.lower, inner.upper + 1))
            return _labelled(Pick(inner.code, inner.lower, tuple(picks)), labels)

        return Expression(bind, text=f"{self!r}.map({names!r}, default={default!r})")


def col(name: str) -> Expression:
    """A declared column."""

    def bind(schema: Schema) -> Bounded:
        column = schema.get(name)
        if column is None:
            raise InvalidArgument(f"column {name!r} is not declared; declared: {sorted(schema)}.")
        code, low, high = Ref(name), column.lower, column.upper
        match column:
            case declared.Number():
                return Bounded(
                    code=code, lower=low, upper=high, kind="number", exponent=column.exponent
                )
            case declared.Category():
                return _labelled(code, column.labels)
            case declared.Date():
                return Bounded(code=code, lower=low, upper=high, kind="date", step=column.step)
            case declared.Boolean():
                return _flag(code)

    return Expression(bind, text=f"col({name!r})")


def _flag(code: Code) -> Bounded:
    return Bounded(code=code, lower=0, upper=1, kind="flag")


def _labelled(code: Code, labels: tuple[Label, ...]) -> Bounded:
    return Bounded(code=code, lower=0, upper=len(labels) - 1, kind="label", labels=labels)


def _small(value: Bounded) -> bool:
    return value.upper - value.lower < _MOST_PICKS


def _of_kind(value: Bounded, kind: Kind) -> Bounded:
    if value.kind != kind:
        raise InvalidArgument(f"this operation takes a {kind}, got a {value.kind}.")
    return value


def _number(value: Bounded) -> Bounded:
    """A number; a flag counts as 0 or 1."""
    if value.kind == "flag":
        return Bounded(code=value.code, lower=0, upper=1, kind="number")
    return _of_kind(value, "number")


def _position(inner: Bounded, mark: object) -> Fraction:
    """A public literal in steps of an expression's grid, exactly."""
    if inner.kind == "date":
        return Fraction(declared.date_code("value", mark, step=inner.step))
    return check.finite("value", mark) / Fraction(2) ** inner.exponent


def _text(value: Operand) -> str:
    return repr(value) if isinstance(value, Expression) else str(value)


def _constant(value: object) -> Bounded:
    """A public number, which must be a multiple of a power of two to be exact in arithmetic."""
    exact = check.finite("value", value)
    exponent = 1 - exact.denominator.bit_length()
    if Fraction(2) ** -exponent != exact.denominator:
        raise InvalidArgument(f"value {value} in arithmetic must be a dyadic number, such as 0.25.")
    return _checked(Const(exact.numerator), (exact.numerator,), exponent)


def _checked(code: Code, ends: Iterable[int], exponent: int) -> Bounded:
    """A number whose extreme values are these, if they fit into 64 bits."""
    ends = tuple(ends)
    if max(map(abs, ends)) > INT64:
        raise InvalidArgument(
            "the bounds of this expression pass 2**63 steps of its grid: clip the parts, or "
            "declare narrower bounds or a coarser grid."
        )
    return Bounded(code=code, lower=min(ends), upper=max(ends), kind="number", exponent=exponent)


def _rescale(value: Bounded, exponent: int) -> Bounded:
    factor = 2 ** (value.exponent - exponent)
    if factor == 1:
        return value
    ends = value.lower * factor, value.upper * factor
    return _checked(Binary("*", value.code, Const(factor)), ends, exponent)


def _arithmetic(operator: Literal["+", "-", "*"], left: Operand, right: Operand) -> Expression:
    def bind(schema: Schema) -> Bounded:
        a, b = (
            _number(side.bind(schema)) if isinstance(side, Expression) else _constant(side)
            for side in (left, right)
        )
        if operator == "*":
            ends = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
            return _checked(Binary("*", a.code, b.code), ends, a.exponent + b.exponent)
        exponent = min(a.exponent, b.exponent)
        a, b = _rescale(a, exponent), _rescale(b, exponent)
        if operator == "+":
            ends = [a.lower + b.lower, a.upper + b.upper]
        else:
            ends = [a.lower - b.upper, a.upper - b.lower]
        return _checked(Binary(operator, a.code, b.code), ends, exponent)

    return Expression(bind, text=f"({_text(left)} {operator} {_text(right)})")


def _comparison(operator: Literal["<", "<=", "="], left: Operand, right: Operand) -> Expression:
    def bind(schema: Schema) -> Bounded:
        if isinstance(left, Expression) and isinstance(right, Expression):
            return _compare_two(operator, left.bind(schema), right.bind(schema))
        if isinstance(left, Expression):
            return _compare_literal(operator, left.bind(schema), right, swapped=False)
        if isinstance(right, Expression):
            return _compare_literal(operator, right.bind(schema), left, swapped=True)
        raise InvalidArgument("a comparison needs a column.")

    return Expression(bind, text=f"({_text(left)} {operator} {_text(right)})")


def _compare_two(operator: Operator, a: Bounded, b: Bounded) -> Bounded:
    if {a.kind, b.kind} <= {"number", "flag"}:
        exponent = min(a.exponent, b.exponent)
        a, b = _rescale(_number(a), exponent), _rescale(_number(b), exponent)
    elif a.kind != b.kind or a.labels != b.labels or a.step != b.step:
        raise InvalidArgument("two columns can be compared if they are declared alike.")
    elif a.kind == "label" and operator != "=":
        raise InvalidArgument("categories have no order: use == or isin.")
    return _flag(Binary(operator, a.code, b.code))


def _compare_literal(operator: Operator, a: Bounded, mark: object, *, swapped: bool) -> Bounded:
    """``a < mark``, or ``mark < a`` if swapped, with the literal taken exactly."""
    if operator == "=" and a.kind in ("label", "flag"):
        return _flag(Binary("=", a.code, Const(a.locate(mark))))
    if a.kind == "label":
        raise InvalidArgument("categories have no order: use == or isin.")
    exact = _position(_number(a) if a.kind == "flag" else a, mark)
    if operator == "=":
        inside = exact.denominator == 1 and a.lower <= exact <= a.upper
        return _flag(Binary("=", a.code, Const(int(exact))) if inside else Const(0))
    strict = operator == "<"
    if swapped:  # mark <= a: from ceil(mark) on; mark < a: from floor(mark) + 1 on
        first = exact.__floor__() + 1 if strict else exact.__ceil__()
        return _flag(Binary("<=", Const(_into(first, a)), a.code)) if first <= a.upper else _never()
    last = exact.__ceil__() - 1 if strict else exact.__floor__()
    return _flag(Binary("<=", a.code, Const(_into(last, a)))) if last >= a.lower else _never()


def _into(value: int, a: Bounded) -> int:
    """A threshold beyond the range acts like one at its end, and fits into 64 bits."""
    return min(max(value, a.lower), a.upper)


def _never() -> Bounded:
    return _flag(Const(0))


def _connective(operator: Literal["and", "or"], left: Expression, right: Expression) -> Expression:
    if not isinstance(right, Expression):
        raise InvalidArgument("& and | combine expressions; put comparisons in parentheses.")

    def bind(schema: Schema) -> Bounded:
        a, b = (_of_kind(side.bind(schema), "flag") for side in (left, right))
        return _flag(Binary(operator, a.code, b.code))

    return Expression(bind, text=f"({left!r} {'&' if operator == 'and' else '|'} {right!r})")
