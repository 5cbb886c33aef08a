"""Declared columns: what a value may be, and which integer stands for it.

A column turns any raw value into an integer *code*. What is known lies between two public bounds.
Null, NaN, a text that does not parse and a date out of range are *unknown*: they get one declared
code. It lies beyond the bounds, and then no expression takes it for a value, unless a value that
stands for what is missing was declared. No value is ever refused, and nothing is inferred from
data.
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
from discreet.data._spelling import (
    Spelling,
    spelling_of_levels,
    spelling_of_moments,
    spelling_of_numbers,
    spelling_of_truth,
)

INT64 = 2**63 - 1
_DOUBLE = 2**53  # every integer up to here is a double
OTHER = "(other)"
"""The label of everything that is not a declared level."""
MISSING = "(missing)"
"""The label of missing values, where they are a group of their own."""
EXCLUDE = "exclude"
"""The policy by which an unknown value is in no group and in no sum."""
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
    """The code of an unknown value; beyond the bounds unless a value stands for it."""
    exponent: int = 0
    required: bool = False
    spelling: Spelling | None = None

    def __repr__(self) -> str:
        step = 1 if self.exponent == 0 else 2.0**self.exponent
        parts = [f"{name}={_plain(end * step)}" for name, end in self._ends()]
        if self.exponent:
            parts.append(f"granularity={step:g}")
        if not is_nullable(self):
            parts.append(f"missing={_plain(self.missing * step)}")
        parts += ["required=True"] * self.required + _spelled(self)
        return f"{'real' if self.exponent else 'integer'}({', '.join(parts)})"

    def _ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        return ("lower", self.lower), ("upper", self.upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """One of the levels; the code is the position, then come the groups of unknown values."""

    categories: tuple[str | int, ...]
    include_other: bool
    missing: int
    lower: int = 0
    missing_group: bool = False
    """Whether missing values are a group of their own, the last one."""
    required: bool = False
    spelling: Spelling | None = None

    def __repr__(self) -> str:
        shown = [
            *map(repr, self.categories[:_SHOWN]),
            *(["..."] if len(self.categories) > _SHOWN else []),
        ]
        text = f"category([{', '.join(shown)}], include_other={self.include_other}"
        usual = len(self.categories) if self.include_other else self.upper + 1
        if self.missing != usual:
            inside = self.missing <= self.upper
            text += f", missing={self.labels[self.missing] if inside else EXCLUDE!r}"
        return ", ".join([text, *["required=True"] * self.required, *_spelled(self)]) + ")"

    @property
    def upper(self) -> int:
        """The largest code of a group."""
        return len(self.categories) + self.include_other + self.missing_group - 1

    @property
    def unknown(self) -> int:
        """The code of a value that is no level."""
        if self.include_other:
            return len(self.categories)
        return self.missing if self.missing < len(self.categories) else self.upper + 1

    @property
    def labels(self) -> tuple[Label, ...]:
        """The levels in the order of their codes."""
        other = (OTHER,) if self.include_other else ()
        return (*self.categories, *other, *((MISSING,) if self.missing_group else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DateColumn:
    """Whole days or hours since 1970-01-01 (UTC)."""

    lower: int
    upper: int
    missing: int
    step: Step
    required: bool = False
    spelling: Spelling | None = None

    def __repr__(self) -> str:
        start, each = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(**{f"{self.step}s": 1})
        first, last = (f"{start + each * end:%Y-%m-%d %H:%M}" for end in (self.lower, self.upper))
        if self.step == "day":
            first, last = first[:10], last[:10]
        return f"date({', '.join([f'{first} to {last}', f'by {self.step}', *_spelled(self)])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanColumn:
    """False is 0 and true is 1."""

    missing: int
    lower: int = 0
    upper: int = 1
    required: bool = False
    spelling: Spelling | None = None

    def __repr__(self) -> str:
        parts = [] if is_nullable(self) else [f"missing={bool(self.missing)}"]
        parts += ["required=True"] * self.required + _spelled(self)
        return f"boolean({', '.join(parts)})"


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

    @property
    def required(self) -> bool:
        """Whether a row without a known value is left out of everything."""
        return self.inner.required


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Text whose values are not known beforehand. It has no codes: keys make a category of it."""

    spelling: Spelling | None = None

    def __repr__(self) -> str:
        return f"text({', '.join(_spelled(self))})"


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


def _spelled(column: Plain | TextColumn) -> list[str]:
    return [] if column.spelling is None else [repr(column.spelling)]


def spelling_of(column: ColumnSpec) -> Spelling | None:
    """What a column declares about its texts; a key of a lookup declares nothing."""
    return None if isinstance(column, LookupColumn) else column.spelling


def kind_of(column: ColumnSpec) -> str:
    """What a column is called in messages."""
    return _KINDS[type(column)]


def is_nullable(column: Column) -> bool:
    """Whether a value may be unknown: then its code lies beyond the bounds."""
    plain = column.inner if isinstance(column, LookupColumn) else column
    unknown = plain.unknown if isinstance(plain, CategoryColumn) else plain.missing
    low, high = plain.lower, plain.upper
    return not (low <= plain.missing <= high and low <= unknown <= high)


def nearest(value: Fraction, exponent: int) -> int:
    """``floor(value / 2**exponent + 1/2)``, exactly."""
    return (value / Fraction(2) ** exponent + Fraction(1, 2)).__floor__()


def integer(
    lower: int,
    upper: int,
    *,
    missing: int | Literal["exclude"] | None = None,
    required: bool = False,
    missing_values: Iterable[str | float] | None = None,
    decimal: str = ".",
    thousands: str | None = None,
) -> NumericColumn:
    """Declare a column of integers.

    Values are clipped to the bounds. A missing value, or a text that is not a number, is unknown:
    it is in no sum, no mean and no group.

    Args:
        lower: Smallest value.
        upper: Largest value.
        missing: Value that replaces unknown values. If None or "exclude", nothing replaces them.
        required: Whether rows with an unknown value are left out of every query. All queries then
            use the same rows and share their number, which lowers the noise.
        missing_values: Texts and numbers that stand for a missing value in the data, such as
            `["NA", -9]`. Numbers are compared by value.
        decimal: Decimal separator in texts, `"."` or `","`.
        thousands: Separator of thousands in texts, such as `","`. Groups must have three digits.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: A bound is not a 64-bit integer, `lower` exceeds `upper`, or `missing` is
            outside the bounds, or a spelling is unclear.

    Examples:
        >>> import discreet
        >>> discreet.integer(0, 120)
        integer(lower=0, upper=120)
        >>> discreet.integer(0, 120, missing_values=["NA", -9])
        integer(lower=0, upper=120, missing_values=['NA', '-9'])

    See Also:
        [Missing data](../how-to/missing-data.md), [Data sources](../how-to/sources.md).
    """
    low = check.count("lower", lower, minimum=-INT64 - 1)
    high = check.count("upper", upper, minimum=low)
    if high > INT64:
        raise InvalidArgument(f"upper must be below 2**63, got {high}.")
    return NumericColumn(
        lower=low,
        upper=high,
        missing=_within("missing", None if _is_excluded(missing) else missing, low, high),
        required=check.flag("required", required),
        spelling=spelling_of_numbers(missing_values, decimal, thousands),
    )


def real(
    lower: Numeric,
    upper: Numeric,
    *,
    granularity: Numeric,
    missing: Numeric | Literal["exclude"] | None = None,
    required: bool = False,
    missing_values: Iterable[str | float] | None = None,
    decimal: str = ".",
    thousands: str | None = None,
) -> NumericColumn:
    """Declare a column of real numbers.

    Each value is read as the nearest double, clipped to the bounds, and rounded to a multiple of
    `granularity`. All further arithmetic is exact. A missing value, NaN, or a text that is not a
    number is unknown: it is in no sum, no mean and no group.

    Args:
        lower: Smallest value, in the unit of the column.
        upper: Largest value.
        granularity: Spacing of the rounded values, a power of two such as `0.25` or `1/1024`. A
            finer granularity does not change the noise.
        missing: Value that replaces unknown values. If None or "exclude", nothing replaces them.
        required: Whether rows with an unknown value are left out of every query. All queries then
            use the same rows and share their number, which lowers the noise.
        missing_values: Texts and numbers that stand for a missing value in the data, such as
            `["NA", -9]`. Numbers are compared by value.
        decimal: Decimal separator in texts, `"."` or `","`.
        thousands: Separator of thousands in texts, such as `","`. Groups must have three digits.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: `granularity` is not a power of two or too fine for the bounds, `lower`
            exceeds `upper`, `missing` is outside the bounds, or a spelling is unclear.

    Examples:
        >>> import discreet
        >>> discreet.real(0, 10_000, granularity=0.25)
        real(lower=0, upper=10000, granularity=0.25)

    See Also:
        [Missing data](../how-to/missing-data.md).
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
    excluded = _is_excluded(missing)
    code = None if excluded else nearest(check.finite("missing", missing), exponent)
    return NumericColumn(
        lower=low,
        upper=high,
        missing=_within("missing", code, low, high),
        exponent=exponent,
        required=check.flag("required", required),
        spelling=spelling_of_numbers(missing_values, decimal, thousands),
    )


def category(
    categories: Iterable[str | int],
    *,
    include_other: bool = True,
    missing: Label | None = None,
    required: bool = False,
    missing_values: Iterable[str | float] | None = None,
    strip: bool = False,
) -> CategoryColumn:
    """Declare a column of categories.

    Args:
        categories: Public list of all values, either texts or integers.
        include_other: Whether values that are not in the list form a category of their own,
            `"(other)"`. If False, they are unknown and in no group, or they are replaced by
            `missing` if that is a category.
        missing: What becomes of missing values: `"(other)"`, `"(missing)"` for a category of their
            own, `"exclude"` to leave them out of every group, or a category that replaces them. By
            default `"(other)"`, or `"exclude"` if `include_other` is False.
        required: Whether rows with an unknown value are left out of every query.
        missing_values: Texts (of categories of integers also numbers) that stand for a missing
            value in the data, such as `["NA"]`.
        strip: Whether spaces and tabs around a text are ignored.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: The categories are empty, repeated or of mixed types, `missing` is not one
            of them, or a missing value is.

    Examples:
        >>> import discreet
        >>> discreet.category(["f", "m"], include_other=False)
        category(['f', 'm'], include_other=False)

    See Also:
        [Missing data](../how-to/missing-data.md). `text`: a column whose values are not public.
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
    excluded = _is_excluded(missing)
    if excluded and missing is not None and EXCLUDE in names:
        raise InvalidArgument(
            f"missing={EXCLUDE!r} is not clear, because it is a category as well: rename it."
        )
    labels: tuple[Label, ...] = (*names, OTHER) if include_other else names
    own_group = isinstance(missing, str) and missing == MISSING and MISSING not in names
    if missing is None:  # "(other)", or the code beyond all categories
        code = len(names)
    elif excluded or own_group:
        code = len(labels)
    elif isinstance(missing, str | int) and not isinstance(missing, bool) and missing in labels:
        code = labels.index(missing)
    else:
        raise InvalidArgument(
            f"missing must be a category, {OTHER!r}, {MISSING!r} or {EXCLUDE!r}; {OTHER!r} needs "
            "include_other=True."
        )
    return CategoryColumn(
        categories=names,
        include_other=include_other,
        missing=code,
        missing_group=own_group,
        required=check.flag("required", required),
        spelling=spelling_of_levels(missing_values, strip, names),
    )


def date(
    lower: dt.date,
    upper: dt.date,
    *,
    step: Step = "day",
    missing: dt.date | Literal["exclude"] | None = None,
    required: bool = False,
    missing_values: Iterable[str | dt.date] | None = None,
    format: str | None = None,  # noqa: A002
    zone: str | None = None,
) -> DateColumn:
    """Declare a column of dates or times.

    Times are read in UTC and cut to whole days or hours. Texts are read as ISO 8601, with or
    without a time and an offset (`Z`, `+02:00`). A missing date, or one outside the bounds, is
    unknown: it is in no group.

    Args:
        lower: First date, or time.
        upper: Last date, or time.
        step: `"day"` or `"hour"`.
        missing: Date that replaces unknown dates. If None or "exclude", nothing replaces them.
        required: Whether rows with an unknown date are left out of every query.
        missing_values: Dates and texts that stand for a missing date in the data, such as
            `["unknown", "9999-12-31"]`. Dates are compared by value.
        format: How texts are written, such as `"%d/%m/%Y"`. The directives are `%Y`, `%m`, `%d`,
            `%H`, `%M` and `%S`. If None, as in ISO 8601.
        zone: Time zone of times without an offset, such as `"Europe/Berlin"`; a time that the clock
            shows twice is the first of both. If None, they are in UTC. Days without a time are left
            as they are.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: A bound is not a date, `lower` is after `upper`, `missing` is outside the
            bounds, or `format` or `zone` is not known.

    Examples:
        >>> import datetime
        >>> import discreet
        >>> discreet.date(datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
        date(2024-01-01 to 2024-12-31, by day)
        >>> year = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
        >>> discreet.date(*year, format="%d/%m/%Y")
        date(2024-01-01 to 2024-12-31, by day, format='%d/%m/%Y')
    """
    check.one_of("step", step, ("day", "hour"))
    low, high = date_code("lower", lower, step=step), date_code("upper", upper, step=step)
    if low > high:
        raise InvalidArgument(f"lower must not be after upper, got {lower} and {upper}.")
    excluded = _is_excluded(missing)
    code = None if excluded else date_code("missing", missing, step=step)
    return DateColumn(
        lower=low,
        upper=high,
        step=step,
        missing=_within("missing", code, low, high),
        required=check.flag("required", required),
        spelling=spelling_of_moments(
            missing_values,
            format,
            zone,
            first=_day(low, step),
            last=_day(high, step),
            code=lambda minutes: minutes // (1440 if step == "day" else 60),
        ),
    )


def boolean(
    *,
    missing: bool | Literal["exclude"] | None = None,
    required: bool = False,
    missing_values: Iterable[str | float] | None = None,
    true: Iterable[str | float] | None = None,
    false: Iterable[str | float] | None = None,
) -> BooleanColumn:
    """Declare a column of truth values.

    A missing value, or one that is neither true nor false, is unknown: it is in no sum, no mean and
    no group.

    Args:
        missing: Value that replaces unknown values. If None or "exclude", nothing replaces them.
        required: Whether rows with an unknown value are left out of every query.
        missing_values: Texts and numbers that stand for a missing value in the data.
        true: Texts and numbers that mean true, such as `["J"]` or `[1]`. If None, "true", "t",
            "yes", "y" and 1. Given together with `false`.
        false: Texts and numbers that mean false.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: `missing` is not a boolean, or a text has two meanings.

    Examples:
        >>> import discreet
        >>> discreet.boolean(missing=True)
        boolean(missing=True)
        >>> discreet.boolean(true=["J"], false=["N"])
        boolean(true=['J'], false=['N'])
    """
    if isinstance(missing, bool):
        code = int(missing)
    elif _is_excluded(missing):
        code = _beyond(0, 1)
    else:
        raise InvalidArgument(f"missing must be a boolean, got {type(missing).__name__}.")
    return BooleanColumn(
        missing=code,
        required=check.flag("required", required),
        spelling=spelling_of_truth(missing_values, true, false),
    )


def text(*, missing_values: Iterable[str | float] | None = None, strip: bool = False) -> TextColumn:
    """Declare a column of text whose values are not known in advance.

    To group by such a column, list public keys with `keys`, or find frequent values with
    `Table.discover_keys`.

    Args:
        missing_values: Texts that stand for a missing value in the data, such as `["NA"]`.
        strip: Whether spaces and tabs around a text are ignored.

    Returns:
        A column declaration for `table`.

    Raises:
        InvalidArgument: `missing_values` is not a list of texts.

    Examples:
        >>> import discreet
        >>> discreet.text()
        text()

    See Also:
        [Group keys](../how-to/keys.md).
    """
    return TextColumn(spelling=spelling_of_levels(missing_values, strip, ()))


def open_levels(values: Iterable[object], spelling: Spelling | None = None) -> CategoryColumn:
    """The category that a column of open text is for listed keys; all else is one level more."""
    levels = tuple(dict.fromkeys(values))
    if not all(isinstance(level, str) and level and "\0" not in level for level in levels):
        raise InvalidArgument("keys of a text column must be texts that are not empty.")
    # Not by `category`: a text may happen to be the name of the remaining values.
    return CategoryColumn(
        categories=levels,  # type: ignore[arg-type]
        include_other=True,
        missing=len(levels),
        spelling=spelling,
    )


def field_of(name: str, column: ColumnSpec) -> str:
    """The field of the source that a column is read from."""
    return column.source if isinstance(column, LookupColumn) else name


def date_code(name: str, value: object, *, step: Step) -> int:
    """The code of a public date or time (a time without a zone is UTC)."""
    if not isinstance(value, dt.date):
        parse = " Write datetime.date.fromisoformat(...)." if isinstance(value, str) else ""
        raise InvalidArgument(
            f"{name} must be a date or a datetime, got {type(value).__name__}.{parse}"
        )
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


def _day(code: int, step: Step) -> dt.date:
    return EPOCH + dt.timedelta(days=code if step == "day" else code // 24)


def _is_excluded(missing: object) -> bool:
    return missing is None or (isinstance(missing, str) and missing == EXCLUDE)


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _beyond(lower: int, upper: int) -> int:
    """A code of 64 bits that no known value has."""
    if upper < INT64:
        return upper + 1
    if lower > -INT64:
        return lower - 1
    raise InvalidArgument(
        "bounds must leave room for missing values: declare missing= or narrower."
    )


def _within(name: str, code: object, lower: int, upper: int) -> int:
    if code is None:
        return _beyond(lower, upper)
    if isinstance(code, bool) or not isinstance(code, int) or not lower <= code <= upper:
        raise InvalidArgument(f"{name} must lie between lower and upper.")
    return code
