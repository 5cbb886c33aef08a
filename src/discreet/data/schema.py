"""Declared columns: what a value may be, and which integer stands for it.

A column turns any raw value into an integer *code* between two public bounds. Null, NaN, a text
that does not parse, an unknown category and a date out of range all become one declared code, so no
row is ever dropped and no value is ever refused. Nothing is inferred from data.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.core import _validate as check
from discreet.core._rational import Number as Numeric
from discreet.core._validate import exponent_below
from discreet.core.errors import InvalidArgument

INT64 = 2**63 - 1
_DOUBLE = 2**53  # every integer up to here is a double
OTHER = "(other)"
"""The label of everything that is not a declared level."""
EPOCH = dt.date(1970, 1, 1)
_SHOWN = 8

Step: TypeAlias = Literal["day", "hour"]
Label: TypeAlias = str | int | float | bool | dt.date | dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericColumn:
    """Numbers on the grid ``2**exponent``; bounds and ``missing`` are codes, multiples of it."""

    lower: int
    upper: int
    missing: int
    exponent: int = 0

    def __repr__(self) -> str:
        if self.exponent == 0:
            return f"integer(lower={self.lower}, upper={self.upper}, missing={self.missing})"
        step = 2.0**self.exponent
        ends = f"lower={self.lower * step:g}, upper={self.upper * step:g}"
        return f"real({ends}, granularity={step:g}, missing={self.missing * step:g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """One of the levels; the code is the position, ``len(levels)`` for everything else."""

    categories: tuple[str | int, ...]
    include_other: bool
    missing: int
    lower: int = 0

    def __repr__(self) -> str:
        shown = [
            *map(repr, self.categories[:_SHOWN]),
            *(["..."] if len(self.categories) > _SHOWN else []),
        ]
        return f"category([{', '.join(shown)}], include_other={self.include_other})"

    @property
    def upper(self) -> int:
        """The largest code."""
        return len(self.categories) - (not self.include_other)

    @property
    def unknown(self) -> int:
        """The code of a value that is no level."""
        return len(self.categories) if self.include_other else self.missing

    @property
    def labels(self) -> tuple[Label, ...]:
        """The levels in the order of their codes."""
        return (*self.categories, OTHER) if self.include_other else self.categories


@dataclass(frozen=True, slots=True, kw_only=True)
class DateColumn:
    """Whole days or hours since 1970-01-01 (UTC)."""

    lower: int
    upper: int
    missing: int
    step: Step

    def __repr__(self) -> str:
        start, each = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(**{f"{self.step}s": 1})
        first, last = (f"{start + each * end:%Y-%m-%d %H:%M}" for end in (self.lower, self.upper))
        if self.step == "day":
            first, last = first[:10], last[:10]
        return f"date({first} to {last}, by {self.step})"


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanColumn:
    """False is 0 and true is 1."""

    missing: int
    lower: int = 0
    upper: int = 1

    def __repr__(self) -> str:
        return f"boolean(missing={bool(self.missing)})"


Plain: TypeAlias = NumericColumn | CategoryColumn | DateColumn | BooleanColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupColumn:
    """The declared column of another table, found by a key: a value of ``source`` in this one.

    Each key has its code; a value that is no key gets the missing code. Texts are compared as
    bytes, whole numbers as numbers.
    """

    source: str
    inner: Plain
    textual: bool
    keys: tuple[str, ...] | tuple[int, ...] = field(repr=False)
    codes: tuple[int, ...] = field(repr=False)

    @property
    def lower(self) -> int:
        """The smallest code."""
        return self.inner.lower

    @property
    def upper(self) -> int:
        """The largest code."""
        return self.inner.upper

    @property
    def missing(self) -> int:
        """The code of what is not found."""
        return self.inner.missing


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Text whose values are not known beforehand. It has no codes: keys make a category of it."""

    def __repr__(self) -> str:
        return "text()"


Column: TypeAlias = Plain | LookupColumn
ColumnSpec: TypeAlias = Column | TextColumn
Schema: TypeAlias = Mapping[str, ColumnSpec]
_KINDS: dict[type[ColumnSpec], str] = {
    NumericColumn: "number",
    CategoryColumn: "category",
    DateColumn: "date",
    BooleanColumn: "boolean",
    LookupColumn: "lookup",
    TextColumn: "text",
}


def kind_of(column: ColumnSpec) -> str:
    """What a column is called in messages."""
    return _KINDS[type(column)]


def nearest(value: Fraction, exponent: int) -> int:
    """``floor(value / 2**exponent + 1/2)``, exactly."""
    return (value / Fraction(2) ** exponent + Fraction(1, 2)).__floor__()


def integer(*, lower: int, upper: int, missing: int | None = None) -> NumericColumn:
    """Whole numbers, clipped to ``lower .. upper``; what is missing becomes ``missing`` (lower)."""
    low = check.count("lower", lower, minimum=-INT64 - 1)
    high = check.count("upper", upper, minimum=low)
    if high > INT64:
        raise InvalidArgument(f"upper must be below 2**63, got {high}.")
    return NumericColumn(lower=low, upper=high, missing=_within("missing", missing, low, high))


def real(
    *, lower: Numeric, upper: Numeric, granularity: Numeric, missing: Numeric | None = None
) -> NumericColumn:
    """Real numbers, clipped, then rounded to a multiple of ``granularity``, a power of two.

    A value is read as the nearest double; from there on the arithmetic is exact. Rounding is
    monotone, so clipping codes to the rounded bounds is the same as clipping values to the bounds.
    """
    step = check.positive("granularity", granularity)
    if isinstance(granularity, float):
        step = Fraction(
            granularity
        )  # a power of two is meant as it is stored, not as it is printed
    exponent = exponent_below(step, resolution=0)
    if Fraction(2) ** exponent != step:
        raise InvalidArgument(f"granularity must be a power of two, for example {2.0**exponent:g}.")
    if abs(exponent) > 900:
        raise InvalidArgument("granularity must lie between 2**-900 and 2**900.")
    ends = check.finite("lower", lower), check.finite("upper", upper)
    if ends[0] > ends[1]:
        raise InvalidArgument(f"lower must not be above upper, got {lower} and {upper}.")
    low, high = (nearest(end, exponent) for end in ends)
    if max(-low, high) > _DOUBLE:
        raise InvalidArgument(
            "granularity is too fine for the bounds: at most 2**53 steps from zero."
        )
    code = None if missing is None else nearest(check.finite("missing", missing), exponent)
    return NumericColumn(
        lower=low, upper=high, missing=_within("missing", code, low, high), exponent=exponent
    )


def category(
    categories: Iterable[str | int], *, include_other: bool = True, missing: Label | None = None
) -> CategoryColumn:
    """One of the declared levels, all texts or all whole numbers.

    With ``include_other=True`` an unknown value is a level of its own and what is missing joins it;
    otherwise both become ``missing`` (the first level unless declared).
    """
    if isinstance(categories, set | frozenset):
        raise InvalidArgument(
            "categories must be a list: a set has another order in every process."
        )
    names = check.as_tuple("categories", categories)
    texts = all(isinstance(name, str) for name in names)
    whole = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
    if not names or not (texts or whole) or len(set(names)) != len(names):
        raise InvalidArgument("categories must be different texts, or different whole numbers.")
    if any(name == "" or "\0" in name for name in names if isinstance(name, str)):
        raise InvalidArgument(
            "categories must not be empty (empty text is missing) or contain NUL."
        )
    if any(abs(name) > INT64 for name in names if isinstance(name, int)):
        raise InvalidArgument("categories must lie strictly between -2**63 and 2**63.")
    if check.flag("include_other", include_other) and OTHER in names:
        raise InvalidArgument(
            f"categories must not contain {OTHER!r}: it names the remaining values."
        )
    labels: tuple[Label, ...] = (*names, OTHER) if include_other else names
    if missing is None:
        code = len(names) if include_other else 0
    elif isinstance(missing, str | int) and not isinstance(missing, bool) and missing in labels:
        code = labels.index(missing)
    else:
        raise InvalidArgument("missing must be one of the levels.")
    return CategoryColumn(categories=names, include_other=include_other, missing=code)


def date(
    *,
    lower: dt.date,
    upper: dt.date,
    step: Step = "day",
    missing: dt.date | None = None,
) -> DateColumn:
    """Dates and times (UTC) cut to whole days or hours; out of range is missing (lower)."""
    check.one_of("step", step, ("day", "hour"))
    low, high = date_code("lower", lower, step=step), date_code("upper", upper, step=step)
    if low > high:
        raise InvalidArgument(f"lower must not be after upper, got {lower} and {upper}.")
    code = None if missing is None else date_code("missing", missing, step=step)
    return DateColumn(lower=low, upper=high, step=step, missing=_within("missing", code, low, high))


def boolean(*, missing: bool = False) -> BooleanColumn:
    """True or false; what is missing becomes ``missing``."""
    if not isinstance(missing, bool):
        raise InvalidArgument(f"missing must be a boolean, got {type(missing).__name__}.")
    return BooleanColumn(missing=int(missing))


def text() -> TextColumn:
    """Text with unknown values: ask for its groups with ``keys``, or find them with `discover`."""
    return TextColumn()


def open_levels(values: Iterable[object]) -> CategoryColumn:
    """The category that a column of open text is for listed keys; all else is one level more."""
    levels = tuple(dict.fromkeys(values))
    if not all(isinstance(level, str) and level and "\0" not in level for level in levels):
        raise InvalidArgument("keys of a text column must be texts that are not empty.")
    # Not by `category`: a text may happen to be the name of the remaining values.
    return CategoryColumn(categories=levels, include_other=True, missing=len(levels))  # type: ignore[arg-type]


def field_of(name: str, column: ColumnSpec) -> str:
    """The field of the source that a column is read from."""
    return column.source if isinstance(column, LookupColumn) else name


def date_code(name: str, value: object, *, step: Step) -> int:
    """The code of a public date or time (a time without a zone is UTC)."""
    if not isinstance(value, dt.date):
        raise InvalidArgument(f"{name} must be a date or a datetime, got {type(value).__name__}.")
    hour = 0
    if isinstance(value, dt.datetime):
        value = value if value.tzinfo is None else value.astimezone(dt.UTC)
        hour = value.hour
        value = value.date()
    days = (value - EPOCH).days
    return days if step == "day" else 24 * days + hour


def date_label(code: int, *, step: Step) -> Label:
    """The date or the hour that a code stands for."""
    if step == "day":
        return EPOCH + dt.timedelta(days=code)
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=code)


def _within(name: str, code: object, lower: int, upper: int) -> int:
    if code is None:
        return lower
    if isinstance(code, bool) or not isinstance(code, int) or not lower <= code <= upper:
        raise InvalidArgument(f"{name} must lie between lower and upper.")
    return code
