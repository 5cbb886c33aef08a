"""Twenty-three questions about a real table, and their answers by pandas.

Each number is computed twice with pandas: from the values as they are (`raw`), and from the values
after what the declaration says (clipped to the bounds, rounded to the granularity). The noise must
explain the second, and what an answer says about itself the step from the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import discreet
from discreet import col, query
from discreet.data.schema import BooleanColumn, CategoryColumn, DateColumn, NumericColumn
from discreet.query.builders import Query
from tests.real.catalog import RealTable

OTHER = "(other)"
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]
Answers = dict[tuple[object, ...], float]


class Rows:
    """The rows of a table as pandas sees them, with or without clipping and rounding."""

    def __init__(self, table: RealTable, frame: pd.DataFrame, *, declared: bool) -> None:
        self.table, self.frame, self.declared = table, frame, declared

    def value(self, name: str) -> pd.Series:
        """The numbers of a column, NaN where they are unknown."""
        column, values = self.table.columns[name], self.frame[name]
        if isinstance(column, BooleanColumn):
            words = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}
            return values.map(lambda one: words.get(_text(one).strip().lower(), np.nan)).astype(
                float
            )
        assert isinstance(column, NumericColumn)
        numbers = pd.to_numeric(values, errors="coerce").astype(float)
        if self.declared:
            step = 2.0**column.exponent
            numbers = numbers.clip(column.lower * step, column.upper * step)
            numbers = np.floor(numbers / step + 0.5) * step
        return numbers

    def group(self) -> pd.Series:
        """The group of each row, missing where it is in none."""
        name = self.table.group
        column, values = self.table.columns[name], self.frame[name]
        match column:
            case CategoryColumn():
                listed = {str(one): one for one in column.categories}
                return values.map(lambda one: listed.get(_text(one), OTHER))
            case BooleanColumn():
                return self.value(name).map({0.0: False, 1.0: True})
            case DateColumn():
                days = pd.to_datetime(values, utc=True)
                inside = (days >= _day(column.lower)) & (days < _day(column.upper + 1))
                return days.where(inside).dt.month
            case NumericColumn():
                high = self.value(name) > _middle(column)  # what is unknown is not
                return high.map({True: "high", False: "low"})
        raise AssertionError(column)

    def known(self, *names: str) -> list[pd.Series]:
        """The numbers of several columns, of the rows in which all are known."""
        values = pd.DataFrame({n: self.value(name) for n, name in enumerate(names)}).dropna()
        return [values[n] for n in values]

    def sizes(self) -> pd.Series:
        """How many people each group has."""
        unit = self.table.unit
        people = self.frame.index.to_series() if unit is None else self.frame[unit]
        return people.groupby(self.group()).nunique()

    def kept(self, name: str | None = None) -> int:
        """How many rows the limit keeps, of those in which a column is known."""
        return int(self._sizes(name).clip(upper=self.table.most).sum())

    def dropped(self) -> int:
        """How many rows the limit drops."""
        return 0 if self.table.unit is None else len(self.frame) - self.kept()

    def expected(self, name: str) -> float:
        """The mean of the sum over the rows that a limit keeps, which are drawn for each person."""
        sizes = self._sizes(name)
        kept = sizes.clip(upper=self.table.most) / sizes
        return float((self.value(name) * self.frame[self.table.unit].map(kept)).sum())

    def spread(self, column: str) -> float:
        """The standard deviation of that sum."""
        values = self.value(column).groupby(self.frame[self.table.unit])
        sizes = self._sizes(column)
        kept = sizes.clip(upper=self.table.most)
        return math.sqrt(float((kept * (1 - kept / sizes) * values.var()).sum()))

    def _sizes(self, name: str | None) -> pd.Series:
        known = self.frame if name is None else self.frame[self.value(name).notna()]
        return known.groupby(self.table.unit).size()

    def changes(self, names: Iterable[str]) -> list[str]:
        """What an answer must say, as values of these columns or rows are not used as they are."""
        told = ["others are left out"] if self.dropped() else []
        for name in names:
            if not isinstance(self.table.columns[name], NumericColumn):
                continue
            values = Rows(self.table, self.frame, declared=False).value(name).dropna()
            low, high = ends(self.table, name)
            inside = values.clip(low, high)
            if (inside != values).any():
                told.append(f"values of {name} below")
            if (self.value(name).dropna() != inside).any():
                told.append(f"values of {name} are rounded to")
        return told

    def units(self) -> int:
        """How many people there are."""
        unit = self.table.unit
        return len(self.frame) if unit is None else self.frame[unit].nunique()


def grouping(table: RealTable) -> discreet.Expression:
    """The same groups as `Rows.group`."""
    name = table.group
    match table.columns[name]:
        case DateColumn():
            return col(name).month()
        case NumericColumn() as column:
            return discreet.when(col(name) > _middle(column)).then("high").otherwise("low")
        case _:
            return col(name)


Exact = Callable[[Rows], Answers]


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the function of the rows that it asks for.

    `uses` are the columns whose clipping and rounding may show; `scale` is what a width is compared
    with: the range of the values for means, the number of rows for counts. `limited` is what is
    expected if contribution limits drop rows, `empty` what pandas says of a group without rows.
    """

    name: str
    query: Query
    exact: Callable[[Rows], Answers]
    scale: float
    uses: tuple[str, ...] = ()
    limited: Callable[[Rows], Answers] | None = None
    empty: float = math.nan


def questions(table: RealTable, rows: int) -> tuple[Question, ...]:
    """The questions that are asked about a table of so many rows."""
    x, y, w, g = table.x, table.y, table.weight, table.group
    by = {"group": grouping(table)}
    (low, high), y_ends = ends(table, x), ends(table, y)
    x_range, y_range = high - low, y_ends[1] - y_ends[0]
    x_top, y_top = (max(abs(end) for end in both) for both in ((low, high), y_ends))
    middle, quarter = low + x_range / 2, low + x_range / 4
    to = first_group(table)
    asked = (
        Question("count", query.count(), one(lambda r: len(r.frame)), rows, (), one(Rows.kept)),
        Question(
            "count of",
            query.count(of=x),
            one(lambda r: r.value(x).count()),
            rows,
            (x,),
            one(lambda r: r.kept(x)),
        ),
        Question(
            "count where",
            query.count(where=col(x) > middle),
            one(lambda r: (r.value(x) > middle).sum()),
            rows,
            (x,),
        ),
        Question("count by", query.count(by=by), grouped(ones, "sum"), rows, (g,), empty=0),
        Question("count units", query.count_units(), one(Rows.units), rows, (), one(Rows.units)),
        Question(
            "sum",
            query.sum(x),
            one(lambda r: r.value(x).sum()),
            rows * x_top,
            (x,),
            one(lambda r: r.expected(x)),
        ),
        Question(
            "mean",
            query.mean(x),
            one(lambda r: r.value(x).mean()),
            x_range,
            (x,),
            one(lambda r: r.expected(x) / r.kept(x)),
        ),
        Question(
            "mean of y",
            query.mean(y),
            one(lambda r: r.value(y).mean()),
            y_range,
            (y,),
            one(lambda r: r.expected(y) / r.kept(y)),
        ),
        Question(
            "mean by",
            query.mean(x, by=by),
            grouped(lambda r: r.value(x), "mean"),
            x_range,
            (x, g),
        ),
        Question(
            "variance",
            query.variance(x),
            one(lambda r: r.value(x).var(ddof=0)),
            x_range**2 / 4,
            (x,),
        ),
        Question("std", query.std(y), one(lambda r: r.value(y).std(ddof=0)), y_range / 2, (y,)),
        Question(
            "covariance",
            query.covariance(x, y),
            one(lambda r: np.cov(*r.known(x, y), ddof=0)[0, 1]),
            x_range * y_range / 4,
            (x, y),
        ),
        Question(
            "correlation",
            query.correlation(x, y),
            one(lambda r: np.corrcoef(*r.known(x, y))[0, 1]),
            1,
            (x, y),
        ),
        Question(
            "ratio",
            query.ratio(y, x),
            one(lambda r: np.divide(*[values.sum() for values in r.known(y, x)])),
            y_top / x_top,
            (x, y),
        ),
        Question(
            "weighted mean",
            query.weighted_mean(x, w),
            one(lambda r: np.average(r.known(x, w)[0], weights=r.known(x, w)[1])),
            x_range,
            (x, w),
        ),
        Question("share", query.share(by=by), shares(ones), 1, (g,), empty=0),
        Question(
            "share of y",
            query.share(by=by, value=y),
            shares(lambda r: r.value(y)),
            1,
            (y, g),
            empty=0,
        ),
        Question("compare", query.compare(x, by=by, to=to), differences(x, to), x_range, (x, g)),
        Question(
            "count distinct",
            query.count_distinct(by["group"], at_least=20),
            one(lambda r: (r.sizes().drop(OTHER, errors="ignore") >= 20).sum()),
            1,
            (g,),
        ),
        Question(
            "quantiles",
            query.quantiles(x, LEVELS, method="tree"),
            quantiles(x, LEVELS),
            x_range,
            (x,),
        ),
        Question("minimum", query.minimum(x), quantiles(x, [0.001]), x_range, (x,)),
        Question("maximum", query.maximum(x), quantiles(x, [0.999]), x_range, (x,)),
        Question(
            "histogram",
            query.histogram(x, edges=[quarter, middle]),
            cells(x, [quarter, middle]),
            rows,
            (x,),
        ),
    )
    pairs = ("covariance", "correlation", "ratio", "weighted mean")
    return tuple(one for one in asked if len({x, y, w}) == 3 or one.name not in pairs)


# ── What pandas answers ──────────────────────────────────────────────────────────────────────────


def ones(rows: Rows) -> pd.Series:
    return pd.Series(1.0, index=rows.frame.index)


def one(answer: Callable[[Rows], float]) -> Exact:
    return lambda rows: {(): float(answer(rows))}


def grouped(value: Callable[[Rows], pd.Series], how: str) -> Exact:
    def answer(rows: Rows) -> Answers:
        found = value(rows).groupby(rows.group()).agg(how)
        return {(key,): float(number) for key, number in found.items()}

    return answer


def shares(value: Callable[[Rows], pd.Series]) -> Exact:
    def answer(rows: Rows) -> Answers:
        sums = value(rows).groupby(rows.group()).sum()
        return {(key,): float(part) for key, part in (sums / sums.sum()).items()}

    return answer


def differences(name: str, to: object) -> Exact:
    def answer(rows: Rows) -> Answers:
        means = rows.value(name).groupby(rows.group()).mean()
        than = means.get(to, math.nan)
        return {(key,): float(mean - than) for key, mean in means.items() if key != to}

    return answer


def quantiles(name: str, levels: list[float]) -> Exact:
    def answer(rows: Rows) -> Answers:
        known = rows.value(name).dropna()
        found = np.quantile(known, levels, method="inverted_cdf")
        if len(levels) == 1:
            return {(): float(found[0])}
        return {(level,): float(value) for level, value in zip(levels, found, strict=True)}

    return answer


def cells(name: str, edges: list[float]) -> Exact:
    def answer(rows: Rows) -> Answers:
        counts = np.bincount(np.digitize(rows.value(name).dropna(), edges), minlength=3)
        return {(place,): float(count) for place, count in enumerate(counts)}

    return answer


# ── Helpers ──────────────────────────────────────────────────────────────────────────────────────


def ends(table: RealTable, name: str) -> tuple[float, float]:
    """The declared bounds of a column, as numbers."""
    column = table.columns[name]
    if isinstance(column, BooleanColumn):
        return 0.0, 1.0
    assert isinstance(column, NumericColumn)
    return column.lower * 2.0**column.exponent, column.upper * 2.0**column.exponent


def first_group(table: RealTable) -> Any:
    match table.columns[table.group]:
        case CategoryColumn() as column:
            return column.categories[0]
        case BooleanColumn():
            return False
        case DateColumn():
            return 1
        case _:
            return "low"


def _text(value: object) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _day(code: int) -> pd.Timestamp:
    return pd.Timestamp("1970-01-01", tz="UTC") + pd.Timedelta(days=code)


def _middle(column: NumericColumn) -> float:
    return (column.lower + column.upper) / 2 * 2.0**column.exponent
