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
from discreet.data.expression import Expression, col
from discreet.data.program import ContributionLimits, Key
from discreet.query.key_sets import Keys, KeySet, keys, resolve_keys

Kind: TypeAlias = Literal[
    "count", "units", "sum", "mean", "variance", "covariance", "median", "quantiles"
]
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
    "count",
    "count_units",
    "covariance",
    "histogram",
    "keys",
    "mean",
    "median",
    "quantiles",
    "sum",
    "variance",
]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A question; made by `count`, `units`, `sum`, `mean`, `quantiles` and the others here.

    ``include_other`` adds a group for all keys that are not listed. ``second_value`` is the second
    value of a
    covariance. For quantiles, ``q`` says which, ``bins`` into how many parts the declared
    range is cut, and ``method`` how they are found (``branching`` is that of the tree); what is
    None is settled by the design. ``limits`` are its own, see `limited`.
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
    limits: ContributionLimits = field(default_factory=ContributionLimits)

    def __repr__(self) -> str:
        return f"Query({self.title!r})"

    @property
    def text(self) -> str:
        """The question in words; it holds nothing but what the analyst wrote."""
        of = "" if self.value is None else f" of {plainly(self.value)}"
        of += "" if self.second_value is None else f" and {plainly(self.second_value)}"
        where = "" if self.where is None else f" where {plainly(self.where)}"
        by = f" by {', '.join(self.by)}" if self.by else ""
        which = f" {', '.join(f'{float(q):g}' for q in self.q)}" * (self.kind == "quantiles")
        return f"{self.kind}{which}{of}{where}{by}"

    @property
    def title(self) -> str:
        """The name that was given, or the text."""
        return self.name or self.text

    def limit_contributions(
        self,
        *,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
    ) -> Query:
        """The same question with limits of its own; those not given here are the table's.

        Someone who lives in one place is in one group: with ``max_groups_per_unit=1`` a question by
        place gets the noise for one group. Whoever is in more is counted in one of them.
        """
        own = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        return replace(self, limits=own.over(self.limits))


def count(
    *, where: Expression | None = None, by: By = None, keys: Keys = None, name: str = ""
) -> Query:
    """How many rows there are."""
    return _query("count", None, where=where, by=by, keys=keys, name=name)


def count_units(
    *, where: Expression | None = None, by: By = None, keys: Keys = None, name: str = ""
) -> Query:
    """How many different units (people) there are."""
    return _query("units", None, where=where, by=by, keys=keys, name=name)


def sum(  # noqa: A001 - the word of tables and of release files
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """The sum of a column or an expression."""
    return _query("sum", value, where=where, by=by, keys=keys, name=name)


def mean(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """The mean over rows: a noisy sum around the middle of the bounds over a noisy count."""
    return _query("mean", value, where=where, by=by, keys=keys, name=name)


def variance(
    value: Value,
    *,
    where: Expression | None = None,
    by: By = None,
    keys: Keys = None,
    name: str = "",
) -> Query:
    """The variance over rows (divided by their number), from three noisy sums."""
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
    """The covariance of two values over rows (divided by their number), from four noisy sums."""
    asked = _query("covariance", value, where=where, by=by, keys=keys, name=name)
    return replace(asked, second_value=as_expression("other", other))


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
    """The value that half of the rows do not exceed; see `quantiles`."""
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
    """For each level q, the value that a share q of the rows does not exceed.

    The declared range is cut into ``bins`` of equal width, and an answer is the middle of one.
    ``method="tree"`` counts rows in a tree of bins: all quantiles at one price, with intervals.
    ``method="exponential"`` chooses each bin by its rank: better for one or two, but without an
    interval. By default the one with the smaller rank error is taken.
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
    """The number of rows in each category, or between each two ``edges``."""
    expression = as_expression("value", value)
    label = value if isinstance(value, str) else repr(value)
    if edges is not None:
        expression = expression.cut(edges)
    return _query("count", None, where=where, by={label: expression}, keys=keys, name=name)


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
