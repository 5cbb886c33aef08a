"""Questions: what is wanted, of which rows, in which groups. Public, and asked of nothing yet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.data.expression import Expression, col
from discreet.data.program import NO_LIMITS, ContributionLimits, Key
from discreet.data.schema import Label
from discreet.query.key_sets import Keys, KeySet, keys, resolve_keys

Kind: TypeAlias = Literal[
    "count",
    "units",
    "sum",
    "mean",
    "variance",
    "covariance",
    "median",
    "quantiles",
    "std",
    "correlation",
    "ratio",
    "weighted_mean",
    "share",
    "compare",
    "count_distinct",
    "minimum",
    "maximum",
]
_EXTREME = Fraction(1, 1000)
"""Minimum and maximum are these quantiles: a true extreme is the value of one person."""
Method: TypeAlias = Literal["tree", "exponential"]
_FINEST = 10**6
Value: TypeAlias = str | Expression
Values: TypeAlias = list[str] | list[Expression] | list[Value] | tuple[Value, ...]
Edges: TypeAlias = Iterable[Number | dt.date] | None
By: TypeAlias = str | Expression | Iterable[str | Expression] | Mapping[str, Expression] | None

__all__ = [
    "By",
    "Edges",
    "KeySet",
    "Keys",
    "Kind",
    "Method",
    "Query",
    "Value",
    "compare",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "keys",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantiles",
    "ratio",
    "share",
    "std",
    "sum",
    "variance",
    "weighted_mean",
]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """Describe a query of a table, without reading any data.

    A query is public and immutable. Make it with a function of `discreet.query`, such as `count`,
    `mean` or `quantiles`, and pass it to `Table.release`, `Table.forecast` or `Table.budget_for`.

    Attributes:
        kind: What is computed, such as "count" or "mean".
        value: Expression that is aggregated; None for counts.
        second_value: Second expression of a covariance or correlation, the denominator of a ratio,
            or the weights of a weighted mean.
        q: Levels of quantiles, between 0 and 1, increasing.
        bins: Number of cells of quantiles. If None, it is settled when the release is planned.
        method: Method of quantiles, "tree" or "exponential". If None, it is settled when the
            release is planned.
        branching: Number of children of a node of the tree of quantiles. If None, it is settled
            when the release is planned.
        where: Condition that a row must meet to be used. If None, all rows are used.
        by: Expressions whose values form the groups, by name.
        keys: Public keys of the groups. If None, all declared values of `by`.
        include_other: Whether the rows of all keys that are not listed count in one last group.
        name: Title that was given, or an empty text.
        limits: Contribution limits of this query, in place of the table's.
        sampling: Whether what intervals for the population need is measured as well.
        expected_ratio: Guess of a ratio, by which its budget is split.
        to: Group that the others are compared with.
        at_least: Number of privacy units from which a distinct value counts.

    Examples:
        >>> from discreet import col, query
        >>> query.mean("visits", where=col("insured"), by="city")
        Query('mean of visits where insured by city')
    """

    kind: Kind
    value: Expression | None = None
    second_value: Expression | None = None
    q: tuple[Fraction, ...] = ()
    bins: int | None = None
    method: Method | None = None
    branching: int | None = None
    where: Expression | None = None
    by: Mapping[str, Expression] = field(default_factory=dict)
    keys: tuple[Key, ...] | None = None
    include_other: bool = False
    name: str = ""
    limits: ContributionLimits = NO_LIMITS
    sampling: bool = False
    expected_ratio: Fraction | None = None
    to: Key | None = None
    at_least: int | None = None

    def __repr__(self) -> str:
        return f"Query({self.title!r})"

    @property
    def text(self) -> str:
        """The query in words, made only of what the analyst wrote."""
        of = "" if self.value is None else f" of {plainly(self.value)}"
        joined = {"ratio": "to", "weighted_mean": "weighted by"}.get(self.kind, "and")
        of += "" if self.second_value is None else f" {joined} {plainly(self.second_value)}"
        where = "" if self.where is None else f" where {plainly(self.where)}"
        names = list(self.by)
        if self.kind == "count_distinct":
            of = f" of {names.pop()} with at least {self.at_least} units"
        by = f" by {', '.join(names)}" if names else ""
        by += "" if self.to is None else f" to {', '.join(map(str, self.to))}"
        which = ""
        if self.kind == "quantiles":
            which = f" {', '.join(map(number, self.q))}"
        words = {
            "weighted_mean": "weighted mean",
            "compare": "difference of means",
            "count_distinct": "number of values",
            "share": "share of rows" if self.value is None else "share of the sum",
        }
        return f"{words.get(self.kind, self.kind)}{which}{of}{where}{by}"

    @property
    def title(self) -> str:
        """The name that was given, or the query in words."""
        return self.name or self.text

    def limit_contributions(
        self,
        *,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
    ) -> Query:
        """Return the same query with contribution limits of its own.

        Limits that are not given stay the table's. If each person belongs to one group, for example
        to one place of residence, `max_groups_per_unit=1` lowers the noise of a query by place.
        Someone who is in several groups is then counted in one of them.

        Args:
            max_rows_per_unit: Contribution limit: number of rows of one privacy unit that are used.
                If None, the table's.
            max_groups_per_unit: Contribution limit: number of groups to which one privacy unit
                contributes. If None, the table's.
            max_rows_per_unit_per_group: Contribution limit: number of rows of one privacy unit that
                are used in each group. If None, the table's.

        Returns:
            A new query; this one is unchanged.

        Raises:
            InvalidArgument: A limit is not a positive whole number.

        Examples:
            >>> from discreet import query
            >>> query.count_units(by="city").limit_contributions(max_groups_per_unit=1)
            Query('units by city')
        """
        own = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        return replace(self, limits=own.over(self.limits))


def count(
    *,
    of: Value | None = None,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Count rows, in all or by group.

    Args:
        of: Column or expression whose known values are counted. If None, rows are counted.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import col, query
        >>> query.count(where=col("age") >= 65, name="seniors")
        Query('seniors')
    """
    return _query("count", of, where=where, by=by, keys=keys, name=name)


def count_units(
    *, where: Expression | None = None, by: By = None, keys: Keys = None, name: str = ""
) -> Query:
    """Count the privacy units, for example people, that have rows.

    Args:
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.count_units(by="city")
        Query('units by city')
    """
    return _query("units", None, where=where, by=by, keys=keys, name=name)


def sum(  # noqa: A001 - the word of tables and of release files
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Sum a column or an expression over rows.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.sum("visits")
        Query('sum of visits')
    """
    return _query("sum", value, where=where, by=by, keys=keys, name=name)


def mean(
    value: Value,
    *,
    sampling: bool = False,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Average a column or an expression over rows.

    The release divides a noisy sum by a noisy number of rows. The noise is proportional to the
    width of the declared bounds, so wide bounds give inaccurate means. The mean of a boolean column
    is a share.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        sampling: Whether intervals for the population are wanted:
            `release.interval(sampling=True)`. Then the spread of the values is measured as well,
            and these intervals are several times shorter.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import col, query
        >>> query.mean("visits", where=col("insured"), name="visits of the insured")
        Query('visits of the insured')
    """
    asked = _query("mean", value, where=where, by=by, keys=keys, name=name)
    return replace(asked, sampling=_yes("sampling", sampling))


def variance(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compute the variance of a column or an expression over rows.

    The divisor is the number of rows. The release needs three noisy sums.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.variance("visits")
        Query('variance of visits')
    """
    return _query("variance", value, where=where, by=by, keys=keys, name=name)


def covariance(
    value: Value,
    other: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compute the covariance of two columns or expressions over rows.

    The divisor is the number of rows. The release needs four noisy sums.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        other: Second column or expression, like `value`.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.covariance("age", "visits")
        Query('covariance of age and visits')
    """
    asked = _query("covariance", value, where=where, by=by, keys=keys, name=name)
    return replace(asked, second_value=as_expression("other", other))


def std(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compute the standard deviation of a column or an expression over rows.

    It is the root of the variance with the number of rows as divisor, from the same three noisy
    sums.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.std("visits")
        Query('std of visits')
    """
    return _query("std", value, where=where, by=by, keys=keys, name=name)


def correlation(
    value: Value,
    other: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compute the correlation of two columns or expressions over rows.

    It is Pearson's coefficient, from six noisy sums that means, variances and covariances of the
    same columns share.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        other: Second column or expression, like `value`.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.correlation("age", "visits")
        Query('correlation of age and visits')
    """
    asked = _query("correlation", value, where=where, by=by, keys=keys, name=name)
    return replace(asked, second_value=as_expression("other", other))


def ratio(
    value: Value,
    other: Value,
    *,
    expected_ratio: Number | None = None,
    sampling: bool = False,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Divide the sum of a column or an expression by the sum of another one.

    An example is pay per hour: all pay over all hours, and not the mean of each row's own quotient.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        other: Column or expression whose sum is the denominator.
        expected_ratio: Public guess of the ratio, by which the budget is split. If None, the ratio
            of the middles of the declared bounds.
        sampling: Whether intervals for the population are wanted:
            `release.interval(sampling=True)`. Then the spread of the values is measured as well.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Raises:
        InvalidArgument: `expected_ratio` is not a number.

    Examples:
        >>> from discreet import query
        >>> query.ratio("pay", "hours")
        Query('ratio of pay to hours')
    """
    asked = _query("ratio", value, where=where, by=by, keys=keys, name=name)
    guess = None if expected_ratio is None else check.finite("expected_ratio", expected_ratio)
    return replace(
        asked,
        second_value=as_expression("other", other),
        expected_ratio=guess,
        sampling=_yes("sampling", sampling),
    )


def weighted_mean(
    value: Value,
    weight: Value,
    *,
    sampling: bool = False,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Average a column or an expression over rows that count by weights.

    Survey weights are an example. Weights that were computed from the same rows are part of the
    private data, too. A weight of at most W costs W times the noise: trim large weights, for
    example with `col("weight").clip(lower=0, upper=5)`.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        weight: Column or expression of the weights, declared from zero on.
        sampling: Whether intervals for the population are wanted:
            `release.interval(sampling=True)`. Then the spread of the values is measured as well.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.weighted_mean("pay", "weight")
        Query('weighted mean of pay weighted by weight')
    """
    asked = _query("weighted_mean", value, where=where, by=by, keys=keys, name=name)
    weights = as_expression("weight", weight)
    return replace(asked, second_value=weights, sampling=_yes("sampling", sampling))


def share(
    *,
    by: By,
    value: Value | None = None,
    where: Expression | None = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compute the share of each group in the total of all groups.

    One histogram is measured, so the number of groups costs nothing. The shares add up to one.

    Args:
        by: Column or expression whose values are the groups, a list of them, or a mapping from
            names to expressions.
        value: Column or expression whose sum is shared out, with bounds from zero on. If None, rows
            are counted.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Raises:
        InvalidArgument: There is nothing to group by.

    Examples:
        >>> from discreet import query
        >>> query.share(by="city")
        Query('share of rows by city')
    """
    asked = _query("share", value, where=where, by=by, keys=keys, name=name)
    if not asked.by:
        raise InvalidArgument("by must name the groups that share the total.")
    return asked


def compare(
    value: Value,
    *,
    by: By,
    to: Label | Key,
    sampling: bool = False,
    where: Expression | None = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Compare the means of groups with the mean of one of them.

    The intervals of a release hold for all differences at once.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        by: Column or expression whose values are the groups, a list of them, or a mapping from
            names to expressions.
        to: Group that the others are compared with: a value of `by`, or a tuple of values.
        sampling: Whether intervals for the population are wanted:
            `release.interval(sampling=True)`. Then the spread of the values is measured as well.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Raises:
        InvalidArgument: There is nothing to group by.

    Examples:
        >>> from discreet import query
        >>> query.compare("visits", by="arm", to="control")
        Query('difference of means of visits by arm to control')
    """
    asked = _query("compare", value, where=where, by=by, keys=keys, name=name)
    if not asked.by:
        raise InvalidArgument("by must name the groups that are compared.")
    group = tuple(to) if isinstance(to, tuple) else (to,)
    if len(group) != len(asked.by):
        raise InvalidArgument("to must have one value for each column of by.")
    return replace(asked, to=group, sampling=_yes("sampling", sampling))


def count_distinct(
    value: Value,
    *,
    at_least: int,
    where: Expression | None = None,
    by: By = None,
    name: str = "",
) -> Query:
    """Count the declared values that at least so many privacy units have.

    A value that one unit has cannot be told from one that nobody has, so a threshold is needed:
    with noise of a few units, about ten. Values that are not declared are not counted.

    Args:
        value: Column or expression with declared categories, or with few whole numbers.
        at_least: Number of privacy units from which a value counts.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Raises:
        InvalidArgument: `at_least` is not a positive whole number, or `value` is in `by` as well.

    Examples:
        >>> from discreet import query
        >>> query.count_distinct("city", at_least=10)
        Query('number of values of city with at least 10 units')
    """
    asked = _query("count_distinct", None, where=where, by=by, keys=None, name=name)
    label = value if isinstance(value, str) else plainly(as_expression("value", value))
    if label in asked.by:
        raise InvalidArgument("value must not be one of the columns of by.")
    groups = {**asked.by, label: as_expression("value", value)}
    return replace(asked, by=groups, at_least=check.count("at_least", at_least))


def minimum(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    bins: int | None = None,
    method: Method = "tree",
    name: str = "",
) -> Query:
    """Find about the smallest value: the 0.001 quantile.

    The true minimum is the value of one person, and no release that protects each person can tell
    it. Of fewer than about a thousand rows the answer is near an end of the declared range.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        bins: Number of cells of equal width into which the declared range is cut, at least 2. If
            None, it follows from the range and the method.
        method: "tree" (noisy counts in a tree of cells, with intervals) or "exponential" (chooses
            each cell by its rank: often nearer, but without an interval).
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.minimum("age")
        Query('minimum of age')

    See Also:
        `quantiles`.
    """
    asked = _query("minimum", value, where=where, by=by, keys=keys, name=name)
    return _ordered(asked, [_EXTREME], bins=bins, method=method)


def maximum(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    bins: int | None = None,
    method: Method = "tree",
    name: str = "",
) -> Query:
    """Find about the largest value: the 0.999 quantile.

    The true maximum is the value of one person, and no release that protects each person can tell
    it. Of fewer than about a thousand rows the answer is near an end of the declared range.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        bins: Number of cells of equal width into which the declared range is cut, at least 2. If
            None, it follows from the range and the method.
        method: "tree" (noisy counts in a tree of cells, with intervals) or "exponential" (chooses
            each cell by its rank: often nearer, but without an interval).
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.maximum("age")
        Query('maximum of age')

    See Also:
        `quantiles`.
    """
    asked = _query("maximum", value, where=where, by=by, keys=keys, name=name)
    return _ordered(asked, [1 - _EXTREME], bins=bins, method=method)


def median(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    bins: int | None = None,
    method: Method | None = None,
    name: str = "",
) -> Query:
    """Find the value that half of the rows do not exceed.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        bins: Number of cells of equal width into which the declared range is cut, at least 2. If
            None, it follows from the range and the method.
        method: "tree" (noisy counts in a tree of cells; all quantiles at one cost, with intervals)
            or "exponential" (chooses each cell by its rank; no interval). If None, the one with the
            smaller rank error.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.median("age", bins=64)
        Query('median of age')

    See Also:
        `quantiles`.
    """
    asked = _query("median", value, where=where, by=by, keys=keys, name=name)
    return _ordered(asked, [Fraction(1, 2)], bins=bins, method=method)


def quantiles(
    value: Value,
    q: Iterable[Number],
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    bins: int | None = None,
    method: Method | None = None,
    name: str = "",
) -> Query:
    """Compute quantiles: the value that a share q of the rows does not exceed.

    The declared range is cut into cells of equal width, and an answer is the middle of a cell.

    Args:
        value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`. Its
            declared bounds decide the noise.
        q: Levels between 0 and 1, increasing, such as `[0.25, 0.5, 0.75]`.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        by: Column or expression to group by, a list of them, or a mapping from names to
            expressions. If None, there is one group.
        keys: Public keys of the groups: a list, a `KeySet`, or a release of `Table.discover_keys`.
            If None, all declared values of `by` are groups, also those without rows.
        bins: Number of cells of equal width into which the declared range is cut, at least 2. If
            None, it follows from the range and the method.
        method: "tree" (noisy counts in a tree of cells; all quantiles at one cost, with intervals)
            or "exponential" (chooses each cell by its rank; no interval). If None, the one with the
            smaller rank error.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Raises:
        InvalidArgument: `q` is empty, does not increase, or has a level outside of (0, 1).

    Examples:
        >>> from discreet import query
        >>> query.quantiles("age", [0.25, 0.5, 0.75])
        Query('quantiles 0.25, 0.5, 0.75 of age')

    See Also:
        `median`, `Table.large_domain_quantiles`.
    """
    asked = _query("quantiles", value, where=where, by=by, keys=keys, name=name)
    # 3 * 0.1 is meant to be 0.3.
    near = [check.finite("levels", q).limit_denominator(_FINEST) for q in check.as_tuple("q", q)]
    exact = [check.probability("levels", q, zero=False, one=False) for q in near]
    return _ordered(asked, exact, bins=bins, method=method)


def _ordered(query: Query, q: list[Fraction], *, bins: int | None, method: Method | None) -> Query:
    if not q or sorted(set(q)) != q:
        raise InvalidArgument("q must increase, with at least one.")
    if bins is not None:
        check.count("bins", bins, minimum=2)
    if method is not None:
        check.one_of("method", method, get_args(Method))
    return replace(query, q=tuple(q), bins=bins, method=method)


def histogram(
    value: Value,
    *,
    edges: Edges = None,
    where: Expression | None = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """Count the rows in each category, or between each two edges.

    Args:
        value: Column or expression with declared categories, or a numeric one with `edges`.
        edges: Increasing cut points of a numeric or date column. The first bin is below the first
            edge and the last one starts at the last edge. If None, each declared value is a bin.
        where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None, all
            rows are used.
        keys: Public keys of the bins, if not all declared ones are wanted.
        name: Title of the query in releases, reports and the ledger. If empty, the query in words.

    Returns:
        A query for `Table.release`, `Table.forecast` and `Table.budget_for`.

    Examples:
        >>> from discreet import query
        >>> query.histogram("age", edges=[18, 45, 65])
        Query('count by age')
    """
    expression = as_expression("value", value)
    label = value if isinstance(value, str) else repr(value)
    if edges is not None:
        expression = expression.cut(edges)
    return _query("count", None, where=where, by={label: expression}, keys=keys, name=name)


def _yes(name: str, given: object) -> bool:
    """A flag, and nothing that merely looks like one."""
    if not isinstance(given, bool):
        raise InvalidArgument(f"{name} must be True or False, got {type(given).__name__}.")
    return given


def _query(
    kind: Kind, value: Value | None, *, where: Expression | None, by: By, keys: Keys, name: str
) -> Query:
    if where is not None and not isinstance(where, Expression):
        raise InvalidArgument(
            f"where must be a condition such as col('age') >= 65, got {type(where).__name__}."
        )
    groups = _groups(by)
    listed = resolve_keys(keys, names=tuple(groups))
    return Query(
        kind=kind,
        value=None if value is None else as_expression("value", value),
        where=where,
        by=groups,
        keys=None if listed is None else listed.keys,
        include_other=listed is not None and listed.include_other,
        name=one_line(name),
    )


def one_line(name: object) -> str:
    """The name of a question, as it is shown and charged."""
    if not isinstance(name, str) or not name.isprintable():
        raise InvalidArgument("name must be one line of text.")
    return name


def as_expression(name: str, value: object) -> Expression:
    """A column by its name, or the expression itself; ``name`` is for the error."""
    if isinstance(value, str):
        return col(value)
    if isinstance(value, Expression):
        return value
    raise InvalidArgument(
        f"{name} must be a column's name or an expression, got {type(value).__name__}."
    )


def _groups(by: By) -> Mapping[str, Expression]:
    if by is None:
        return {}
    if isinstance(by, str | Expression):
        by = (by,)
    if isinstance(by, Mapping):
        found = {str(label): as_expression("by", one) for label, one in by.items()}
    else:
        listed = check.as_tuple("by", by)
        found = {x if isinstance(x, str) else plainly(x): as_expression("by", x) for x in listed}
        if len(found) != len(listed):
            raise InvalidArgument("by must name different columns.")
    return found


def plainly(expression: Expression) -> str:
    """The expression as its author would write it, without col('...') around every name."""
    text = repr(expression)
    while (start := text.find("col('")) >= 0 and (end := text.find("')", start)) > 0:
        text = text[:start] + text[start + 5 : end] + text[end + 2 :]
    return text[1:-1] if text.startswith("(") and text.endswith(")") and _one(text) else text


def _one(text: str) -> bool:
    """Whether the outer parentheses belong together."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place < len(text) - 1:
            return False
    return True
