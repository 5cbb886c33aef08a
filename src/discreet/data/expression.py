"""Filters and derived columns: row-wise, total, and aware of their own bounds.

An expression is written with `col` and ordinary operators. Bound to a schema it becomes integer
code with proven bounds: interval arithmetic shows that no row can make it overflow, and there is no
operation that could fail or drop a row, so it is stable whatever the data are. Where a value is
unknown, so is what is computed from it; conditions follow Kleene's logic, as in SQL and Polars.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
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
    CodeDivide,
    CodePick,
    CodeRef,
    both,
    category_code,
    constant,
    flag,
    literal,
    number,
    of_kind,
    position,
    small,
    where_known,
)
from discreet.data.schema import INT64, Label, Schema

Operand: TypeAlias = "Expression | Label | Fraction"

__all__ = ["BoundedCode", "Expression", "Then", "When", "col", "when"]

_LONGEST = 2_000
"""Texts of expressions are cut at a length between this and twice this."""
_binding = threading.local()
"""In each thread, the schema that an expression is being bound to, and the parts that are bound."""


class Expression:
    """A filter or a derived column: a function of each row that you write with `col`.

    Combine expressions with `+ - * / // % < <= > >= == != & | ~` and the methods below. discreet
    checks an expression against the declared columns before it reads data. No value of a row can
    make an expression fail.

    Args:
        bind: Function that turns declared columns into code. Build expressions with `col` and
            `when` instead.
        text: Text that represents the expression.
        tree: Operation and operands, for serialization.

    Examples:
        >>> import discreet
        >>> col = discreet.col
        >>> (col("age") >= 18) & ~col("smokes")
        ((18 <= col('age')) & ~col('smokes'))

    See Also:
        `col`, `when`.
    """

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
        # Python shares parts, texts do not: x = x + x, thirty times, would be gigabytes.
        self._text = text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]} ... (long)"
        self._tree = tree

    def bind(self, schema: Schema) -> BoundedCode:
        """Check the expression against declared columns.

        Args:
            schema: Declared columns by name.

        Returns:
            The integer code of the expression, with its bounds.

        Raises:
            InvalidArgument: A column is not declared, or an operation does not fit its type.

        Examples:
            >>> import discreet
            >>> double = discreet.col("age") * 2
            >>> double.bind({"age": discreet.integer(0, 120)}).upper
            240
        """
        outer = getattr(_binding, "state", None)
        if outer is None or outer[0] is not schema:
            _binding.state = schema, {}
            try:
                return self.bind(schema)
            finally:
                _binding.state = outer
        # A part that stands in many places is bound once. It is kept with its code, so that
        # nothing else gets its id meanwhile.
        known = outer[1].get(id(self))
        if known is None:
            known = outer[1][id(self)] = self, self._bind(schema)
        code: BoundedCode = known[1]
        return code

    @property
    def tree(self) -> tuple[object, ...] | None:
        """Operation and operands from which the expression was built, or None."""
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
                "a column divided by a column needs a range: "
                "a.divide(b, lower=, upper=, granularity=)."
            )
        by = check.finite("divisor", other)
        text = f"({self!r} / {other})"
        return self._map(arithmetic.divide_by, by, text=text, tree=("/", self, other))

    def __rtruediv__(self, other: Operand) -> Expression:
        raise InvalidArgument(
            "a number divided by a column needs a range: write (0 * column + number).divide(...)."
        )

    def __floordiv__(self, other: Operand) -> Expression:
        by = constant(other)
        text = f"({self!r} // {other})"
        return self._map(arithmetic.floor_divide, by, text=text, tree=("//", self, other))

    def __mod__(self, other: Operand) -> Expression:
        by = constant(other)
        text = f"({self!r} % {other})"
        return self._map(arithmetic.remainder, by, text=text, tree=("%", self, other))

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
        return self._map(_invert, text=f"~{self!r}", tree=("not", self))

    def _map(
        self,
        function: Callable[..., BoundedCode],
        *given: object,
        text: str,
        tree: tuple[object, ...],
    ) -> Expression:
        return Expression(partial(_bind_map, self, function, given), text=text, tree=tree)

    def divide(
        self,
        other: Operand,
        *,
        lower: Numeric,
        upper: Numeric,
        granularity: Numeric,
        zero: Numeric | None = None,
    ) -> Expression:
        """Divide by another number, and clip and round the quotient.

        The quotient is rounded to the nearest multiple of `granularity`. Halves are rounded up.

        Args:
            other: Divisor: an expression or a number.
            lower: Smallest quotient.
            upper: Largest quotient.
            granularity: Spacing of the quotients, a power of two.
            zero: Result where the divisor is zero. If None, the quotient is unknown there.

        Returns:
            The quotient as an expression with the declared bounds.

        Raises:
            InvalidArgument: The bounds or the granularity are not valid.

        Examples:
            >>> import discreet
            >>> col = discreet.col
            >>> col("pay").divide(col("hours"), lower=0, upper=500, granularity=0.25)
            col('pay').divide(col('hours'), lower=0, upper=500, granularity=0.25)
        """
        # The same checks as for a declared column, and the same rounding.
        range_ = declared.real(lower=lower, upper=upper, granularity=granularity, missing=zero)

        text = (
            f"{self!r}.divide({_text(other)}, lower={lower}, upper={upper}, "
            f"granularity={granularity})"
        )
        tree = ("divide", self, other, lower, upper, granularity, zero)
        return Expression(partial(_bind_quotient, self, other, range_), text=text, tree=tree)

    def is_known(self) -> Expression:
        """Test whether the value is known.

        Returns:
            A condition that is itself always known.

        Examples:
            >>> import discreet
            >>> discreet.col("income").is_known()
            col('income').is_known()

        See Also:
            [Missing data](../how-to/missing-data.md).
        """
        tree = ("is_known", self)
        return Expression(partial(_bind_known, self), text=f"{self!r}.is_known()", tree=tree)

    def is_missing(self) -> Expression:
        """Test whether the value is unknown: missing, or of no meaning in its column.

        Returns:
            A condition that is itself always known.

        Examples:
            >>> import discreet
            >>> (discreet.col("income") > 5000) | discreet.col("income").is_missing()
            ((5000 < col('income')) | col('income').is_missing())

        See Also:
            [Missing data](../how-to/missing-data.md).
        """
        tree = ("is_missing", self)
        return Expression(partial(_bind_missing, self), text=f"{self!r}.is_missing()", tree=tree)

    def fill_missing(self, value: Label | Fraction) -> Expression:
        """Replace unknown values by a public one.

        Args:
            value: Number, date, truth value or category that stands for what is unknown.

        Returns:
            The expression, known everywhere.

        Raises:
            InvalidArgument: `value` does not fit the column. This is checked when a query uses the
                expression.

        Examples:
            >>> import discreet
            >>> discreet.col("income").fill_missing(0)
            col('income').fill_missing(0)

        See Also:
            [Missing data](../how-to/missing-data.md).
        """
        text = f"{self!r}.fill_missing({_text(value)})"
        tree = ("fill_missing", self, value)
        return Expression(partial(_bind_filled, self, value), text=text, tree=tree)

    def year(self) -> Expression:
        """Extract the year of a date.

        Returns:
            The year as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("birth").year()
            col('birth').year()
        """
        return self._part("year")

    def quarter(self) -> Expression:
        """Extract the quarter of a date.

        Returns:
            The quarter, 1 to 4, as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").quarter()
            col('visit').quarter()
        """
        return self._part("quarter")

    def week(self) -> Expression:
        """Extract the ISO week of a date.

        Weeks begin on Monday. The first days of January can be in week 52 or 53 of the year before.

        Returns:
            The week, 1 to 53, as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").week()
            col('visit').week()
        """
        return self._part("week")

    def month(self) -> Expression:
        """Extract the month of a date.

        Returns:
            The month, 1 to 12, as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").month()
            col('visit').month()
        """
        return self._part("month")

    def day(self) -> Expression:
        """Extract the day of the month of a date.

        Returns:
            The day, 1 to 31, as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").day()
            col('visit').day()
        """
        return self._part("day")

    def weekday(self) -> Expression:
        """Extract the day of the week of a date.

        Returns:
            The day, 1 (Monday) to 7 (Sunday), as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").weekday() >= 6
            (6 <= col('visit').weekday())
        """
        return self._part("weekday")

    def hour(self) -> Expression:
        """Extract the hour of a column that is declared with `step="hour"`.

        Returns:
            The hour in UTC, 0 to 23, as an integer expression.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").hour() < 12
            (col('visit').hour() < 12)
        """
        return self._part("hour")

    def truncate(self, period: Literal["year", "quarter", "month", "week"]) -> Expression:
        """Round a date down to its year, quarter, month or ISO week.

        As groups, the periods need no keys: they follow from the bounds of the date. Weeks begin on
        Monday, and belong to the year that has their Thursday.

        Args:
            period: `"year"` (groups such as "2026"), `"quarter"` ("2026-Q1"), `"month"` ("2026-01")
                or `"week"` ("2026-W01").

        Returns:
            The period as an expression with a category for each one within the bounds.

        Raises:
            InvalidArgument: `period` is none of these words.

        Examples:
            >>> import discreet
            >>> discreet.col("visit").truncate("month")
            col('visit').truncate('month')
        """
        check.one_of("period", period, ("year", "quarter", "month", "week"))
        text = f"{self!r}.truncate({period!r})"
        return self._map(arithmetic.date_period, period, text=text, tree=("truncate", self, period))

    def _part(self, part: arithmetic.Part) -> Expression:
        text = f"{self!r}.{part}()"
        return self._map(arithmetic.date_part, part, text=text, tree=(part, self))

    def clip(self, *, lower: Numeric, upper: Numeric) -> Expression:
        """Clip a number to bounds.

        Narrow bounds reduce the noise of sums and means.

        Args:
            lower: Smallest value, rounded up to the granularity of the column.
            upper: Largest value, rounded down to the granularity of the column.

        Returns:
            The clipped number as an expression.

        Raises:
            InvalidArgument: The expression is not a number, or no multiple of its granularity lies
                between the bounds. This is checked when a query uses the expression.

        Examples:
            >>> import discreet
            >>> discreet.col("income").clip(lower=0, upper=10_000)
            col('income').clip(0, 10000)
        """
        text = f"{self!r}.clip({lower}, {upper})"
        return Expression(
            partial(_bind_clip, self, lower, upper), text=text, tree=("clip", self, lower, upper)
        )

    def cut(self, edges: Iterable[Numeric | dt.date]) -> Expression:
        """Cut a number or date into bins.

        Args:
            edges: Increasing edges. A bin includes its lower edge. There is one bin below the first
                edge and one from the last edge on.

        Returns:
            The bin as a category, for example to group by.

        Raises:
            InvalidArgument: The expression is not a number or date, or the edges do not increase.
                This is checked when a query uses the expression.

        Examples:
            >>> import discreet
            >>> discreet.col("age").cut([18, 65])
            col('age').cut(['18', '65'])
        """
        marks = check.as_tuple("edges", edges)

        text = f"{self!r}.cut({list(map(str, marks))})"
        return Expression(partial(_bind_cut, self, marks), text=text, tree=("cut", self, marks))

    def isin(self, values: Iterable[Label]) -> Expression:
        """Test whether the value is one of several public values.

        Args:
            values: Values to compare with.

        Returns:
            A condition.

        Raises:
            InvalidArgument: `values` is not a list, or a value cannot occur in the column.

        Examples:
            >>> import discreet
            >>> discreet.col("region").isin(["north", "south"])
            col('region').isin(['north', 'south'])
        """
        wanted = check.as_tuple("values", values)

        text = f"{self!r}.isin({list(wanted)!r})"
        return Expression(partial(_bind_isin, self, wanted), text=text, tree=("isin", self, wanted))

    def map(self, table: Mapping[Label, str], *, default: str = declared.OTHER) -> Expression:
        """Rename values to categories.

        Args:
            table: New category of each value.
            default: Category of all values that `table` does not name.

        Returns:
            A category, for example to group by.

        Raises:
            InvalidArgument: `table` is not a mapping, or the column is text or has too many
                different values.

        Examples:
            >>> import discreet
            >>> discreet.col("region").map({"n": "north", "s": "south"}, default="elsewhere")
            col('region').map({'n': 'north', 's': 'south'}, default='elsewhere')
        """
        names = dict(check.as_mapping("table", table))

        text = f"{self!r}.map({names!r}, default={default!r})"
        tree = ("map", self, tuple(names.items()), default)
        return Expression(partial(_bind_renamed, self, names, default), text=text, tree=tree)


def col(name: str) -> Expression:
    """Refer to a declared column by its name.

    Args:
        name: Name of the column.

    Returns:
        An expression, to be used in filters, groups and values of queries.

    Raises:
        InvalidArgument: `name` is not text. A name that is not declared is refused when a query
            uses the expression.

    Examples:
        >>> import discreet
        >>> discreet.col("age") >= 65
        (65 <= col('age'))
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be a column's name, got {type(name).__name__}.")

    return Expression(_ColumnBinding(name), text=f"col({name!r})", tree=("col", name))


def when(condition: Expression) -> When:
    """Choose between two values, row by row.

    Write `when(condition).then(value).otherwise(other)`. Values are expressions or public values.

    Args:
        condition: Condition that decides for each row.

    Returns:
        An object with the method `then`.

    Raises:
        InvalidArgument: `condition` is not an expression.

    Examples:
        >>> import discreet
        >>> discreet.when(discreet.col("age") >= 65).then(1).otherwise(0)
        when((65 <= col('age'))).then(1).otherwise(0)
    """
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

        text = f"when({self.condition!r}).then({_text(sides[0])}).otherwise({_text(sides[1])})"
        tree = ("when", self.condition, *sides)
        return Expression(partial(_bind_choice, self.condition, sides), text=text, tree=tree)


def _text(value: Operand) -> str:
    return repr(value) if isinstance(value, Expression | str) else str(value)


def _bound(side: Operand, schema: Schema) -> BoundedCode:
    return side.bind(schema) if isinstance(side, Expression) else constant(side)


def _arithmetic(operator: Literal["+", "-", "*"], left: Operand, right: Operand) -> Expression:

    text = f"({_text(left)} {operator} {_text(right)})"
    return Expression(
        partial(_bind_arithmetic, operator, left, right), text=text, tree=(operator, left, right)
    )


def _comparison(operator: Literal["<", "<=", "="], left: Operand, right: Operand) -> Expression:

    text = f"({_text(left)} {operator} {_text(right)})"
    return Expression(
        partial(_bind_comparison, operator, left, right), text=text, tree=(operator, left, right)
    )


def _connective(operator: Literal["and", "or"], left: Expression, right: Expression) -> Expression:
    if not isinstance(right, Expression):
        raise InvalidArgument("& and | combine expressions; put comparisons in parentheses.")

    text = f"({left!r} {'&' if operator == 'and' else '|'} {right!r})"
    return Expression(
        partial(_bind_connective, operator, left, right), text=text, tree=(operator, left, right)
    )


def cells_of_width(value: Expression, *, lower: int, width: int, many: int) -> Expression:
    """The cell of a code, among ``many`` of equal width from ``lower`` on."""
    return Expression(partial(_bind_cells, value, lower, width, many), text=f"bin of {value!r}")


def cells_between(value: Expression, steps: Sequence[int]) -> Expression:
    """The cell of a code: below the first step, from it on to the next, ..., the rest."""
    return Expression(partial(_bind_steps, value, tuple(steps)), text=f"block of {value!r}")


# ── Binding ──────────────────────────────────────────────────────────────────────────────────────
# What each kind of expression is under a schema: functions of the module, because closures cannot
# be pickled.


def _bind_map(
    inner: Expression,
    function: Callable[..., BoundedCode],
    given: tuple[object, ...],
    schema: Schema,
) -> BoundedCode:
    bound = inner.bind(schema)
    return where_known(function(bound, *given), bound.known)


def _bind_known(inner: Expression, schema: Schema) -> BoundedCode:
    return flag(_known_of(inner, schema))


def _bind_missing(inner: Expression, schema: Schema) -> BoundedCode:
    return flag(CodeBinary("-", CodeConst(1), _known_of(inner, schema)))


def _known_of(inner: Expression, schema: Schema) -> Code:
    bound = inner.bind(schema)
    if bound.kind == "text":
        raise InvalidArgument(OPEN)
    return CodeConst(1) if bound.known is None else bound.known


def _bind_filled(inner: Expression, value: Operand, schema: Schema) -> BoundedCode:
    return _bind_choice(inner.is_known(), (inner, value), schema)


def _bind_quotient(
    inner: Expression, by: Operand, into: declared.NumericColumn, schema: Schema
) -> BoundedCode:
    a, b = inner.bind(schema), _bound(by, schema)
    known = both(a.known, b.known)
    if declared.is_nullable(into) and b.lower <= 0 <= b.upper:
        zero = CodeBinary("=", b.code, CodeConst(0))
        known = both(known, CodeBinary("-", CodeConst(1), zero))
    return where_known(arithmetic.quotient(a, b, into=into), known)


def _invert(a: BoundedCode) -> BoundedCode:
    return flag(CodeBinary("-", CodeConst(1), of_kind(a, "flag").code))


def _bind_clip(whole: Expression, lower: Numeric, upper: Numeric, schema: Schema) -> BoundedCode:
    inner = number(whole.bind(schema))
    step = Fraction(2) ** inner.exponent
    low = (check.finite("lower", lower) / step).__ceil__()
    high = (check.finite("upper", upper) / step).__floor__()
    if low > high or max(abs(low), abs(high)) > INT64:
        raise InvalidArgument(f"clip needs a grid point between {lower} and {upper}.")
    ends = [min(max(end, low), high) for end in (inner.lower, inner.upper)]
    code = CodeClip(inner.code, low, high)
    found = BoundedCode(
        code=code, lower=ends[0], upper=ends[1], kind="number", exponent=inner.exponent
    )
    return where_known(found, inner.known)


def _bind_cut(
    whole: Expression, marks: tuple[Numeric | dt.date, ...], schema: Schema
) -> BoundedCode:
    inner = whole.bind(schema)
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
    return where_known(category_code(CodeBin(inner.code, steps), labels), inner.known)


def _bind_cells(
    value: Expression, lower: int, width: int, many: int, schema: Schema
) -> BoundedCode:
    inner = value.bind(schema)
    code = CodeDivide(CodeBinary("-", inner.code, CodeConst(lower)), CodeConst(width), 0)
    return where_known(BoundedCode(code=code, lower=0, upper=many - 1, kind="number"), inner.known)


def _bind_steps(value: Expression, steps: tuple[int, ...], schema: Schema) -> BoundedCode:
    inner = value.bind(schema)
    code = CodeBin(inner.code, steps)
    return where_known(
        BoundedCode(code=code, lower=0, upper=len(steps), kind="number"), inner.known
    )


def _bind_isin(whole: Expression, wanted: tuple[Label, ...], schema: Schema) -> BoundedCode:
    inner = whole.bind(schema)
    codes = {inner.locate(value) for value in wanted}
    code: Code = CodeConst(0)
    if small(inner):
        table = tuple(int(c in codes) for c in range(inner.lower, inner.upper + 1))
        code = CodePick(inner.code, inner.lower, table)
    else:
        for value in sorted(codes):
            code = CodeBinary("or", code, CodeBinary("=", inner.code, CodeConst(value)))
    return where_known(flag(code), inner.known)


def _bind_renamed(
    whole: Expression, names: Mapping[Label, str], default: str, schema: Schema
) -> BoundedCode:
    inner = whole.bind(schema)
    if inner.kind == "text" or not small(inner):
        raise InvalidArgument(
            OPEN if inner.kind == "text" else f"map takes at most {MOST_PICKS} different values."
        )
    labels = tuple(dict.fromkeys([*names.values(), default]))
    chosen = {inner.locate(value): labels.index(name) for value, name in names.items()}
    rest = labels.index(default)
    picks = (chosen.get(c, rest) for c in range(inner.lower, inner.upper + 1))
    found = category_code(CodePick(inner.code, inner.lower, tuple(picks)), labels)
    return where_known(found, inner.known)


class _ColumnBinding:
    """Binds the column of this name.

    A query binds its columns for each thing that it measures: the last code is kept, for the very
    column that it was made of, because a schema may be changed in between.
    """

    __slots__ = ("_last", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._last: tuple[declared.ColumnSpec, BoundedCode] | None = None

    def __call__(self, schema: Schema) -> BoundedCode:
        column = schema.get(self.name)
        if column is None:
            raise InvalidArgument(
                f"column {self.name!r} is not declared; declared: {sorted(schema)}."
            )
        last = self._last  # read once: threads may share an expression
        if last is None or last[0] is not column:
            self._last = last = column, _bind_column(self.name, column)
        return last[1]

    def __reduce__(self) -> tuple[type[_ColumnBinding], tuple[str]]:
        return _ColumnBinding, (self.name,)


def _bind_column(name: str, column: declared.ColumnSpec) -> BoundedCode:
    code: Code = CodeRef(name)
    if isinstance(column, declared.TextColumn):
        return BoundedCode(code=code, lower=0, upper=0, kind="text")
    low, high = column.lower, column.upper
    plain = column.inner if isinstance(column, declared.LookupColumn) else column
    known: Code | None = None
    if declared.is_nullable(column):
        above = max(plain.missing, getattr(plain, "unknown", plain.missing)) > high
        known = (
            CodeBinary("<=", code, CodeConst(high))
            if above
            else CodeBinary("<=", CodeConst(low), code)
        )
        code = CodeClip(code, low, high)
    return where_known(_coded(plain, code), known)


def _coded(plain: declared.Plain, code: Code) -> BoundedCode:
    low, high = plain.lower, plain.upper
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


def _bind_choice(
    condition: Expression, sides: tuple[Operand, Operand], schema: Schema
) -> BoundedCode:
    bound = [side.bind(schema) if isinstance(side, Expression) else None for side in sides]
    beside = bound[0] or bound[1]
    a, b = (found or literal(side, beside=beside) for found, side in zip(bound, sides, strict=True))
    # Where the condition is unknown, it does not hold: its code is 0.
    return arithmetic.choose(condition.bind(schema), a, b)


def _bind_arithmetic(
    operator: Literal["+", "-", "*"], left: Operand, right: Operand, schema: Schema
) -> BoundedCode:
    a, b = _bound(left, schema), _bound(right, schema)
    return where_known(arithmetic.combine(operator, a, b), both(a.known, b.known))


def _bind_comparison(
    operator: Literal["<", "<=", "="], left: Operand, right: Operand, schema: Schema
) -> BoundedCode:
    if isinstance(left, Expression) and isinstance(right, Expression):
        a, b = left.bind(schema), right.bind(schema)
        return where_known(arithmetic.compare_two(operator, a, b), both(a.known, b.known))
    if isinstance(left, Expression):
        a = left.bind(schema)
        return where_known(arithmetic.compare_literal(operator, a, right, swapped=False), a.known)
    if isinstance(right, Expression):
        b = right.bind(schema)
        return where_known(arithmetic.compare_literal(operator, b, left, swapped=True), b.known)
    raise InvalidArgument("a comparison needs a column.")


def _bind_connective(
    operator: Literal["and", "or"], left: Expression, right: Expression, schema: Schema
) -> BoundedCode:
    a, b = (of_kind(side.bind(schema), "flag") for side in (left, right))
    code = CodeBinary(operator, a.code, b.code)
    if a.known is None and b.known is None:
        return flag(code)
    # Kleene: known to be false as soon as one side is (and), or both are (or). What is unknown has
    # the code 0, so the known false ones are `known - code`.
    false = CodeBinary("or" if operator == "and" else "and", _false(a), _false(b))
    return replace(flag(code), known=CodeBinary("or", code, false))


def _false(a: BoundedCode) -> Code:
    """Whether a condition is known not to hold."""
    return CodeBinary("-", CodeConst(1) if a.known is None else a.known, a.code)
