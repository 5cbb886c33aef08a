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

from discreet.core import _validate as check
from discreet.core._rational import Number as Numeric
from discreet.core.errors import InvalidArgument
from discreet.data import _expression_arithmetic as arithmetic
from discreet.data import schema as declared
from discreet.data._integer_ops import (
    MOST_PICKS,
    OPEN,
    BoundedCode,
    Code,
    CodeBin,
    CodeBinary,
    CodeClip,
    CodeConst,
    CodePick,
    CodeRef,
    category_code,
    constant,
    flag,
    literal,
    number,
    of_kind,
    position,
    small,
)
from discreet.data.schema import INT64, Label, Schema

Operand: TypeAlias = "Expression | Label | Fraction"

__all__ = ["BoundedCode", "Expression", "Then", "When", "col", "when"]


class Expression:
    """A row-wise, total function of declared columns; build it from `col`."""

    __slots__ = ("_bind", "_text", "_tree")
    __hash__ = None  # type: ignore[assignment]  # == builds an expression

    def __init__(
        self,
        bind: Callable[[Schema], BoundedCode],
        *,
        text: str,
        tree: tuple[object, ...] | None = None,
    ) -> None:
        self._bind = bind
        self._text = text
        self._tree = tree

    def bind(self, schema: Schema) -> BoundedCode:
        """The integer code under these declarations, or an error about the expression."""
        return self._bind(schema)

    @property
    def tree(self) -> tuple[object, ...] | None:
        """How it was built: an operation and what it was given; None inside the package."""
        return self._tree

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

    def __neg__(self) -> Expression:
        return _arithmetic("-", 0, self)

    def __abs__(self) -> Expression:
        return self._map(arithmetic.absolute, text=f"abs({self!r})", tree=("abs", self))

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            raise InvalidArgument(
                "a column divided by a column needs a range: a.divide(b, lower=, upper=, grid=)."
            )
        by = check.finite("divisor", other)
        text = f"({self!r} / {other})"
        return self._map(lambda a: arithmetic.divide_by(a, by), text=text, tree=("/", self, other))

    def __rtruediv__(self, other: Operand) -> Expression:
        raise InvalidArgument(
            "a number divided by a column needs a range: write (0 * column + number).divide(...)."
        )

    def __floordiv__(self, other: Operand) -> Expression:
        by = constant(other)
        text = f"({self!r} // {other})"
        return self._map(
            lambda a: arithmetic.floor_divide(a, by), text=text, tree=("//", self, other)
        )

    def __mod__(self, other: Operand) -> Expression:
        by = constant(other)
        text = f"({self!r} % {other})"
        return self._map(lambda a: arithmetic.remainder(a, by), text=text, tree=("%", self, other))

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
        def invert(a: BoundedCode) -> BoundedCode:
            return flag(CodeBinary("-", CodeConst(1), of_kind(a, "flag").code))

        return self._map(invert, text=f"~{self!r}", tree=("not", self))

    def _map(
        self, function: Callable[[BoundedCode], BoundedCode], *, text: str, tree: tuple[object, ...]
    ) -> Expression:
        return Expression(lambda schema: function(self.bind(schema)), text=text, tree=tree)

    def divide(
        self,
        other: Operand,
        *,
        lower: Numeric,
        upper: Numeric,
        granularity: Numeric,
        zero: Numeric | None = None,
    ) -> Expression:
        """This number divided by another, on a declared grid and clipped to declared bounds.

        Rounded to the nearest multiple of ``granularity``, halves up. Where the divisor is zero
        the result is ``zero``, the lower bound unless declared.
        """
        # The same checks as for a declared column, and the same rounding.
        range_ = declared.real(lower=lower, upper=upper, granularity=granularity, missing=zero)

        def bind(schema: Schema) -> BoundedCode:
            return arithmetic.quotient(self.bind(schema), _bound(other, schema), into=range_)

        text = f"{self!r}.divide({_text(other)}, lower={lower}, upper={upper}, grid={granularity})"
        tree = ("divide", self, other, lower, upper, granularity, zero)
        return Expression(bind, text=text, tree=tree)

    def year(self) -> Expression:
        """The year of a date."""
        return self._part("year")

    def month(self) -> Expression:
        """The month of a date, 1 to 12."""
        return self._part("month")

    def day(self) -> Expression:
        """The day of the month of a date, 1 to 31."""
        return self._part("day")

    def weekday(self) -> Expression:
        """The day of the week of a date, 1 (Monday) to 7."""
        return self._part("weekday")

    def hour(self) -> Expression:
        """The hour (UTC) of a date that is declared in hours, 0 to 23."""
        return self._part("hour")

    def _part(self, part: arithmetic.Part) -> Expression:
        text = f"{self!r}.{part}()"
        return self._map(lambda a: arithmetic.date_part(a, part), text=text, tree=(part, self))

    def clip(self, *, lower: Numeric, upper: Numeric) -> Expression:
        """Clip a number to declared bounds, rounded inward to its grid."""

        def bind(schema: Schema) -> BoundedCode:
            inner = number(self.bind(schema))
            step = Fraction(2) ** inner.exponent
            low = (check.finite("lower", lower) / step).__ceil__()
            high = (check.finite("upper", upper) / step).__floor__()
            if low > high or max(abs(low), abs(high)) > INT64:
                raise InvalidArgument(f"clip needs a grid point between {lower} and {upper}.")
            ends = [min(max(end, low), high) for end in (inner.lower, inner.upper)]
            code = CodeClip(inner.code, low, high)
            return BoundedCode(
                code=code, lower=ends[0], upper=ends[1], kind="number", exponent=inner.exponent
            )

        text = f"{self!r}.clip({lower}, {upper})"
        return Expression(bind, text=text, tree=("clip", self, lower, upper))

    def cut(self, edges: Iterable[Numeric | dt.date]) -> Expression:
        """The bin of a number or date: below the first edge, [first, second), ..., the rest."""
        marks = check.as_tuple("edges", edges)

        def bind(schema: Schema) -> BoundedCode:
            inner = self.bind(schema)
            if inner.kind not in ("number", "date") or not marks:
                raise InvalidArgument("cut needs a number or a date and at least one edge.")
            exact = [position(inner, mark) for mark in marks]
            if any(a >= b for a, b in pairwise(exact)):
                raise InvalidArgument("edges must increase.")
            # code >= edge is code >= ceil(edge), on whatever grid; beyond int64 nothing is.
            steps = tuple(min(max(e.__ceil__(), -INT64 - 1), INT64) for e in exact)
            names = [str(mark) for mark in marks]
            inside = [f"[{a}, {b})" for a, b in pairwise(names)]
            labels = (f"< {names[0]}", *inside, f">= {names[-1]}")
            return category_code(CodeBin(inner.code, steps), labels)

        text = f"{self!r}.cut({list(map(str, marks))})"
        return Expression(bind, text=text, tree=("cut", self, marks))

    def isin(self, values: Iterable[Label]) -> Expression:
        """Whether the value is one of these."""
        wanted = check.as_tuple("values", values)

        def bind(schema: Schema) -> BoundedCode:
            inner = self.bind(schema)
            codes = {inner.locate(value) for value in wanted}
            code: Code = CodeConst(0)
            if small(inner):
                table = tuple(int(c in codes) for c in range(inner.lower, inner.upper + 1))
                code = CodePick(inner.code, inner.lower, table)
            else:
                for value in sorted(codes):
                    code = CodeBinary("or", code, CodeBinary("=", inner.code, CodeConst(value)))
            return flag(code)

        text = f"{self!r}.isin({list(wanted)!r})"
        return Expression(bind, text=text, tree=("isin", self, wanted))

    def map(self, table: Mapping[Label, str], *, default: str = declared.OTHER) -> Expression:
        """Rename values to categories; what the table does not name becomes ``default``."""
        names = dict(check.as_mapping("table", table))

        def bind(schema: Schema) -> BoundedCode:
            inner = self.bind(schema)
            if inner.kind == "text" or not small(inner):
                raise InvalidArgument(
                    OPEN
                    if inner.kind == "text"
                    else f"map takes at most {MOST_PICKS} different values."
                )
            labels = tuple(dict.fromkeys([*names.values(), default]))
            chosen = {inner.locate(value): labels.index(name) for value, name in names.items()}
            rest = labels.index(default)
            picks = (chosen.get(c, rest) for c in range(inner.lower, inner.upper + 1))
            return category_code(CodePick(inner.code, inner.lower, tuple(picks)), labels)

        text = f"{self!r}.map({names!r}, default={default!r})"
        return Expression(bind, text=text, tree=("map", self, tuple(names.items()), default))


def col(name: str) -> Expression:
    """A declared column."""
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be a column's name, got {type(name).__name__}.")

    def bind(schema: Schema) -> BoundedCode:
        column = schema.get(name)
        if column is None:
            raise InvalidArgument(f"column {name!r} is not declared; declared: {sorted(schema)}.")
        code: Code = CodeRef(name)
        if isinstance(column, declared.TextColumn):
            return BoundedCode(code=code, lower=0, upper=0, kind="text")
        low, high = column.lower, column.upper
        plain = column.inner if isinstance(column, declared.LookupColumn) else column
        match plain:
            case declared.NumericColumn():
                return BoundedCode(
                    code=code, lower=low, upper=high, kind="number", exponent=plain.exponent
                )
            case declared.CategoryColumn():
                return category_code(code, plain.labels)
            case declared.DateColumn():
                return BoundedCode(code=code, lower=low, upper=high, kind="date", step=plain.step)
            case declared.BooleanColumn():
                return flag(code)

    return Expression(bind, text=f"col({name!r})", tree=("col", name))


def when(condition: Expression) -> When:
    """``when(condition).then(a).otherwise(b)``: one value or another, row by row."""
    if not isinstance(condition, Expression):
        raise InvalidArgument("when takes a condition, such as col('age') >= 65.")
    return When(condition)


@dataclass(frozen=True, slots=True)
class When:
    """A condition that waits for its first value."""

    condition: Expression

    def then(self, value: Operand) -> Then:
        """The value where the condition holds: an expression, or a public value."""
        return Then(self.condition, value)


@dataclass(frozen=True, slots=True)
class Then:
    """A condition and a value that wait for the other value."""

    condition: Expression
    value: Operand

    def otherwise(self, value: Operand) -> Expression:
        """The value where the condition does not hold."""
        sides = self.value, value

        def bind(schema: Schema) -> BoundedCode:
            known = [side.bind(schema) if isinstance(side, Expression) else None for side in sides]
            beside = known[0] or known[1]
            a, b = (
                found or literal(side, beside=beside)
                for found, side in zip(known, sides, strict=True)
            )
            return arithmetic.choose(self.condition.bind(schema), a, b)

        text = f"when({self.condition!r}).then({_text(sides[0])}).otherwise({_text(sides[1])})"
        return Expression(bind, text=text, tree=("when", self.condition, *sides))


def _text(value: Operand) -> str:
    return repr(value) if isinstance(value, Expression | str) else str(value)


def _bound(side: Operand, schema: Schema) -> BoundedCode:
    return side.bind(schema) if isinstance(side, Expression) else constant(side)


def _arithmetic(operator: Literal["+", "-", "*"], left: Operand, right: Operand) -> Expression:
    def bind(schema: Schema) -> BoundedCode:
        return arithmetic.combine(operator, _bound(left, schema), _bound(right, schema))

    text = f"({_text(left)} {operator} {_text(right)})"
    return Expression(bind, text=text, tree=(operator, left, right))


def _comparison(operator: Literal["<", "<=", "="], left: Operand, right: Operand) -> Expression:
    def bind(schema: Schema) -> BoundedCode:
        if isinstance(left, Expression) and isinstance(right, Expression):
            return arithmetic.compare_two(operator, left.bind(schema), right.bind(schema))
        if isinstance(left, Expression):
            return arithmetic.compare_literal(operator, left.bind(schema), right, swapped=False)
        if isinstance(right, Expression):
            return arithmetic.compare_literal(operator, right.bind(schema), left, swapped=True)
        raise InvalidArgument("a comparison needs a column.")

    text = f"({_text(left)} {operator} {_text(right)})"
    return Expression(bind, text=text, tree=(operator, left, right))


def _connective(operator: Literal["and", "or"], left: Expression, right: Expression) -> Expression:
    if not isinstance(right, Expression):
        raise InvalidArgument("& and | combine expressions; put comparisons in parentheses.")

    def bind(schema: Schema) -> BoundedCode:
        a, b = (of_kind(side.bind(schema), "flag") for side in (left, right))
        return flag(CodeBinary(operator, a.code, b.code))

    text = f"({left!r} {'&' if operator == 'and' else '|'} {right!r})"
    return Expression(bind, text=text, tree=(operator, left, right))
