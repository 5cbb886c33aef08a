"""Statistics of one table, in the words of a release file's [[statistic]].

`release_spec` checks them and makes queries with budgets of them; a statistic of kind "ranges"
becomes a `RangeStatistic`, every other a `StatisticSpec`. Settings are called as in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.data import expression_json as written
from discreet.data.expression import Expression, col
from discreet.data.program import ContributionLimits
from discreet.marginals.plan import MarginalPlan
from discreet.marginals.table_query import plan_marginals
from discreet.query import builders
from discreet.query._release_plan import ReleasePlan, TableSpec, join_plans, plan_release
from discreet.query.budget import QueryBudget, budget
from discreet.query.builders import KeySet, Query
from discreet.query.error_forecast import Measure, budget_for
from discreet.ranges.grid.table_query import GridQuery, plan_grid_query, rectangles
from discreet.ranges.table_query import RangeQuery, plan_query, range_budget_for, ranges
from discreet.spec import query_json as sent
from discreet.spec.table import LIMITS, known, text
from discreet.tables.range_release import AnyPlannedRanges

_AMOUNTS = ("epsilon", "delta", "rho")
_RANGE_OPTIONS = ("workload", "bins", "edges", "name")
_RANGES = ("kind", "of", "where", "expected_rows", "within", *_RANGE_OPTIONS, *LIMITS, *_AMOUNTS)
_MARGINALS = (
    *("kind", "tables", "columns", "where", "objective", "weights", "ranges", "expected_rows"),
    *("spine", "max_rows_per_unit", *_AMOUNTS),
)
_TESTS: Mapping[str, Callable[[Expression, Any], Expression]] = {
    "is": lambda column, value: column == value,
    "is_not": lambda column, value: column != value,
    "in": lambda column, values: column.isin(values),
    "at_least": lambda column, value: column >= value,
    "above": lambda column, value: column > value,
    "at_most": lambda column, value: column <= value,
    "below": lambda column, value: column < value,
}
_SUMS = ("sum", "mean", "variance", "std", "covariance", "correlation", "ratio", "weighted_mean")
_GROUPS = ("share", "compare", "count_distinct")
_ORDERED = ("median", "minimum", "maximum", "quantiles")
_KINDS = ("count", "units", "histogram", *_SUMS, *_GROUPS, *_ORDERED, "ranges")
_PAIRS = ("covariance", "correlation", "ratio", "weighted_mean")
_RANKS = ("q", "bins", "method")
_MORE = ("sampling", "expected_ratio", "to", "at_least")
_ROWS = ("by", "keys", "edges", "where", "expected_rows")
_STATISTIC = (
    "name",
    "kind",
    "of",
    *_ROWS,
    *_RANKS,
    *_MORE,
    *LIMITS,
    "within",
    "weight",
    *_AMOUNTS,
    "noise",
)
_OWN: Mapping[str, tuple[str, ...]] = {
    "edges": ("histogram",),
    "q": ("quantiles",),
    "bins": _ORDERED,
    "method": _ORDERED,
    "sampling": ("mean", "ratio", "weighted_mean", "compare"),
    "expected_ratio": ("ratio",),
    "to": ("compare",),
    "at_least": ("count_distinct",),
}


# ── Ranges ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStatistic:
    """All ranges of columns: the question, what it may cost, the rows that are expected.

    ``within`` is the half-width (95%) that the widest range of the workload may have.
    """

    query: RangeQuery | GridQuery
    budget: QueryBudget
    expected_rows: int | None
    within: Fraction | None = None

    def planned(self, setting: TableSpec) -> AnyPlannedRanges:
        """The structures that could be released, best first."""
        if isinstance(self.query, GridQuery):
            return plan_grid_query(
                self.query, setting=setting, budget=self.budget, expected_rows=self.expected_rows
            )
        return plan_query(
            self.query, setting=setting, budget=self.budget, expected_rows=self.expected_rows
        )


def is_ranges(given: object) -> bool:
    """Whether a statistic of the file is of this kind."""
    return isinstance(given, Mapping) and given.get("kind") == "ranges"


def range_statistic(
    given: Mapping[str, Any], *, where: Expression | None, setting: TableSpec, measure: Measure
) -> RangeStatistic:
    """One column gives ranges, a list of columns gives rectangles.

    Without an amount it is the smallest, in the currency, that keeps the ranges ``within``.
    """
    of: Any = given.get("of")
    of = [sent.read_value(one) for one in of] if isinstance(of, list) else sent.read_value(of)
    more = {name: given[name] for name in _RANGE_OPTIONS if name in given}
    more |= {name: sent.read_labels(more[name]) for name in ("edges", "workload") if name in more}
    limits = ContributionLimits(**{name: given.get(name) for name in LIMITS})
    rows, within = given.get("expected_rows"), sent.read_label(given.get("within"))
    amounts = {name: sent.read_label(given.get(name)) for name in _AMOUNTS}
    if isinstance(of, list):
        if within is not None:
            raise InvalidArgument("within is for ranges of one column: state an amount.")
        if more.get("workload") == "margins":  # the word of version 0.1
            more["workload"] = "marginals"
        asked = rectangles(of, where=where, limits=limits, **more)
        return RangeStatistic(query=asked, budget=budget(**amounts), expected_rows=rows)
    query = ranges(of, where=where, limits=limits, **more)
    wanted = None if within is None else check.positive("within", within)
    if wanted is None or amounts["epsilon"] is not None or amounts["rho"] is not None:
        return RangeStatistic(
            query=query, budget=budget(**amounts), expected_rows=rows, within=wanted
        )
    delta = amounts["delta"]
    found = range_budget_for(
        query,
        setting=setting,
        within=wanted,
        measure=measure if delta is None else "epsilon",
        delta=delta,
    )
    return RangeStatistic(query=query, budget=found, expected_rows=rows, within=wanted)


# ── Statistics ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticSpec:
    """One statistic of the file: the question, what it may cost, the rows that are expected.

    ``within`` is the half-width (95%) that is wanted. Without an amount the budget is the smallest
    that meets it, and ``found`` says so. Statistics with a ``weight`` and the same amount share it,
    in proportion to their weights.
    """

    query: Query
    budget: QueryBudget
    expected_rows: int | None
    within: Fraction | None = None
    found: bool = False
    weight: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSpec:
    """Checked statistics of one table. Nothing has been opened yet."""

    setting: TableSpec
    statistics: tuple[StatisticSpec, ...]
    ranges: tuple[RangeStatistic, ...] = ()
    marginals: tuple[MarginalPlan, ...] = ()
    """Many tables at once, as they are planned."""

    def plan(self) -> ReleasePlan:
        """Statistics and ranges together; structures for ranges are chosen here."""
        ranges = tuple(one.planned(self.setting) for one in self.ranges)
        if not self.statistics:
            return ReleasePlan(ranges=ranges, marginals=self.marginals)
        return replace(self.design(), ranges=ranges, marginals=self.marginals)

    def relaxed(self, factor: Fraction) -> Self:
        """The same with targets so many times as wide, where amounts follow from them."""
        return replace(
            self,
            statistics=tuple(
                _targeted(one, one.within * factor, setting=self.setting)
                if one.found and one.within is not None
                else one
                for one in self.statistics
            ),
        )

    def design(self) -> ReleasePlan:
        """All statistics together; those that share rows and groups also share a pass."""
        return join_plans([self._bundle(places) for places in self._bundles()])

    def order(self) -> list[int]:
        """The place in the list of each question of the design."""
        return [place for places in self._bundles() for place in places]

    def _bundles(self) -> list[list[int]]:
        """Amounts of one kind add up, so they are designed together; deltas stay apart."""
        bundles: dict[object, list[int]] = {}
        for place, one in enumerate(self.statistics):
            kind: object = (one.budget.rho is None, one.budget.noise)
            if one.budget.delta is not None:
                kind = (place,)
            if one.weight is not None:
                kind = one.budget
            bundles.setdefault(kind, []).append(place)
        return list(bundles.values())

    def _bundle(self, places: Sequence[int]) -> ReleasePlan:
        chosen = [self.statistics[place] for place in places]
        weights: list[Fraction] | None = [one.weight for one in chosen if one.weight is not None]
        if weights:
            whole = chosen[0].budget
        elif len(chosen) == 1:
            whole, weights = chosen[0].budget, None
        else:
            weights = [one.budget.rho or one.budget.epsilon or Fraction(0) for one in chosen]
            total = sum(weights, start=Fraction(0))
            rho, noise = chosen[0].budget.rho is not None, chosen[0].budget.noise
            whole = QueryBudget(
                rho=total if rho else None, epsilon=None if rho else total, noise=noise
            )
        queries = [one.query for one in chosen]
        return plan_release(queries, setting=self.setting, budget=whole, weights=weights)


def release_spec(
    statistics: object, *, setting: TableSpec, limit: object = None, folder: Path | None = None
) -> ReleaseSpec:
    """Check statistics; every error names its place in the list.

    ``limit`` is that of the account as the file has it: where an amount follows from a target, it
    is in the same currency. Without a ``folder`` keys in files are refused.
    """
    if not isinstance(statistics, list) or not statistics:
        raise InvalidArgument("At least one [[statistic]] is needed.")
    return ReleaseSpec(
        setting=setting,
        statistics=tuple(
            _statistic(i, one, folder, setting=setting, limit=limit)
            for i, one in enumerate(statistics, 1)
            if not is_ranges(one) and not _is_marginals(one)
        ),
        marginals=tuple(
            _marginals(i, one, setting=setting, allowed=folder is not None)
            for i, one in enumerate(statistics, 1)
            if _is_marginals(one)
        ),
        ranges=tuple(
            _ranges(i, one, setting=setting, limit=limit)
            for i, one in enumerate(statistics, 1)
            if is_ranges(one)
        ),
    )


def _budget(given: Mapping[str, Any]) -> QueryBudget:
    amounts = {name: sent.read_label(given.get(name)) for name in _AMOUNTS}
    return budget(**amounts, noise=given.get("noise"))


def _statistic(
    number: int,
    given: Mapping[str, Any],
    folder: Path | None,
    *,
    setting: TableSpec,
    limit: object,
) -> StatisticSpec:
    where = f"statistic {number}"
    given = known(where, given, _STATISTIC)
    try:
        query = _query(given, folder).limit_contributions(
            **{name: given.get(name) for name in LIMITS}
        )
        within, rows = sent.read_label(given.get("within")), given.get("expected_rows")
        wanted = None if within is None else check.positive("within", within)
        if wanted is None or given.get("epsilon") is not None or given.get("rho") is not None:
            weight = sent.read_label(given.get("weight"))
            return StatisticSpec(
                query=query,
                budget=_budget(given),
                expected_rows=rows,
                within=wanted,
                weight=None if weight is None else check.positive("weight", weight),
            )
        if "weight" in given:
            raise InvalidArgument("weight splits an amount: state epsilon or rho.")
        noise = given.get("noise")
        concentrated = _concentrated(limit) and given.get("delta") is None
        kind = _budget(
            {"rho": 1, "noise": noise}
            if concentrated
            else {"epsilon": 1, "delta": given.get("delta"), "noise": noise}
        )
        found = StatisticSpec(query=query, budget=kind, expected_rows=rows, found=True)
        return _targeted(found, wanted, setting=setting)
    except (PrivacyError, TypeError) as error:
        raise InvalidArgument(f"{where}: {error}") from None


def _concentrated(limit: object) -> bool:
    """Whether the account counts in rho, as far as the file says it."""
    return isinstance(limit, Mapping) and bool({"rho", "mu"} & set(limit))


def _ranges(
    number: int, given: Mapping[str, Any], *, setting: TableSpec, limit: object
) -> RangeStatistic:
    given = known(f"statistic {number}", given, _RANGES)
    try:
        return range_statistic(
            given,
            where=_condition(given.get("where")),
            setting=setting,
            measure="rho" if _concentrated(limit) else "epsilon",
        )
    except (PrivacyError, TypeError) as error:
        raise InvalidArgument(f"statistic {number}: {error}") from None


def _is_marginals(given: object) -> bool:
    return isinstance(given, Mapping) and given.get("kind") == "marginals"


def _marginals(
    number: int, given: Mapping[str, Any], *, setting: TableSpec, allowed: bool
) -> MarginalPlan:
    """`tables` is an order or a list of lists, `columns` are as the groups of a count."""
    where = f"statistic {number}"
    given = known(where, given, _MARGINALS)
    try:
        if not allowed:
            raise InvalidArgument("kind marginals is for release files and Table.marginals.")
        if "tables" not in given:
            raise InvalidArgument("tables must be an order, such as 2, or lists of columns.")
        weights = given.get("weights", [])
        return plan_marginals(
            given["tables"],
            setting=setting,
            budget=_budget(given),
            chosen=_groups(given["columns"]) if "columns" in given else None,
            where=_condition(given.get("where")),
            objective=given.get("objective", "orders"),
            weights={tuple(one["table"]): sent.read_label(one["weight"]) for one in weights},
            ranges=given.get("ranges"),
            spine=given.get("spine"),
            max_rows_per_unit=given.get("max_rows_per_unit"),
            expected_rows=given.get("expected_rows"),
        )
    except (PrivacyError, TypeError, KeyError) as error:
        raise InvalidArgument(f"{where}: {error}") from None


def _targeted(one: StatisticSpec, within: Fraction, *, setting: TableSpec) -> StatisticSpec:
    """The statistic at the smallest amount, of the kind that it has, that meets a target."""
    found = budget_for(
        one.query,
        setting=setting,
        within=within,
        expected_rows=one.expected_rows,
        measure="epsilon" if one.budget.rho is None else "rho",
        delta=one.budget.delta,
        noise=one.budget.noise,
    )
    return replace(one, budget=found, within=within)


def _query(given: Mapping[str, Any], folder: Path | None) -> Query:
    kind, name = given.get("kind"), given.get("name", "")
    where, of = _condition(given.get("where")), sent.read_value(given.get("of"))
    keys = _keys(given.get("keys"), folder)
    if kind not in _KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(_KINDS)}; got {kind!r}.")
    for setting, kinds in _OWN.items():
        if setting in given and kind not in kinds:
            raise InvalidArgument(f"{setting} belongs to {' and '.join(kinds)}, not to a {kind}.")
    if kind == "histogram":
        if "by" in given:
            raise InvalidArgument("a histogram takes of and edges, not by.")
        edges = sent.read_labels(given.get("edges"))
        return builders.histogram(of, edges=edges, where=where, keys=keys, name=name)
    by = _groups(given.get("by", []))
    more: dict[str, Any] = {"where": where, "by": by, "keys": keys, "name": name}
    if kind not in ("share", "count") and (kind == "units") != (of is None):
        which = "no of" if of is not None else "of, the name of a column"
        raise InvalidArgument(f"a {kind} takes {which}.")
    pair = [sent.read_value(one) for one in of] if isinstance(of, list) else [of]
    if (kind in _PAIRS) != (len(pair) == 2):
        raise InvalidArgument(
            f'a {kind} takes of = ["one", "other"].'
            if kind in _PAIRS
            else f"a {kind} takes one column; {', '.join(_PAIRS)} take two."
        )
    ranks: dict[str, Any] = {name: given[name] for name in ("bins", "method") if name in given}
    population: dict[str, Any] = {"sampling": given.get("sampling", False)}
    ranks_of = sent.read_labels(given.get("q", []))
    made: dict[object, Callable[[], Query]] = {
        "count": lambda: builders.count(of=of, **more),
        "units": lambda: builders.count_units(**more),
        "sum": lambda: builders.sum(of, **more),
        "mean": lambda: builders.mean(of, **population, **more),
        "variance": lambda: builders.variance(of, **more),
        "covariance": lambda: builders.covariance(*pair, **more),
        "std": lambda: builders.std(of, **more),
        "correlation": lambda: builders.correlation(*pair, **more),
        "ratio": lambda: builders.ratio(
            pair[0],
            pair[1],
            expected_ratio=sent.read_label(given.get("expected_ratio")),
            **population,
            **more,
        ),
        "weighted_mean": lambda: builders.weighted_mean(pair[0], pair[1], **population, **more),
        "share": lambda: builders.share(value=of, **more),
        "compare": lambda: builders.compare(of, to=_to(given.get("to")), **population, **more),
        "count_distinct": lambda: _distinct(of, given.get("at_least"), more),
        "minimum": lambda: builders.minimum(of, **ranks, **more),
        "maximum": lambda: builders.maximum(of, **ranks, **more),
        "median": lambda: builders.median(of, **ranks, **more),
        "quantiles": lambda: builders.quantiles(of, ranks_of, **ranks, **more),
    }
    return made[kind]()


def _to(given: object) -> Any:
    """The group that others are compared with."""
    if given is None:
        raise InvalidArgument("a compare takes to, the group that the others are compared with.")
    read = sent.read_labels(given)
    return tuple(read) if isinstance(read, list) else read


def _distinct(of: Any, at_least: Any, more: Mapping[str, Any]) -> Query:
    """Without keys: all declared values are counted."""
    if more["keys"] is not None:
        raise InvalidArgument("a count_distinct takes no keys: all declared values are counted.")
    if at_least is None:
        raise InvalidArgument("a count_distinct takes at_least, a number of units.")
    rest = {name: one for name, one in more.items() if name != "keys"}
    return builders.count_distinct(of, at_least=at_least, **rest)


def _keys(given: object, folder: Path | None) -> KeySet | None:
    """A list, or a table {values} or {file, columns}, and whether the rest is a group."""
    if given is None:
        return None
    settings = {"values": given} if isinstance(given, list) else given
    found = known("keys", settings, ("values", "file", "columns", "include_other"))
    other = found.get("include_other", False)
    if "file" in found:
        if folder is None:
            raise InvalidArgument("keys: a file cannot be named here; list the values.")
        path = folder / text(found, "keys", "file")
        return builders.keys(path, columns=found.get("columns", ()), include_other=other)
    values = sent.read_labels(found.get("values", []))
    return builders.keys(
        [tuple(k) if isinstance(k, list) else k for k in values], include_other=other
    )


def _groups(given: object) -> dict[str, Expression]:
    """Names of columns, or tables {column, cut} or {column, expression}."""
    found: dict[str, Expression] = {}
    for one in given if isinstance(given, list) else [given]:
        settings = {"column": one} if isinstance(one, str) else one
        settings = known("by", settings, ("column", "cut", "expression"))
        name = text(settings, "by", "column")
        if name in found:
            raise InvalidArgument(f"by names {name!r} twice.")
        found[name] = col(name)
        if "expression" in settings:
            found[name] = written.read_expression(settings["expression"])
        if "cut" in settings:
            found[name] = found[name].cut(sent.read_labels(settings["cut"]))
    return found


def _condition(given: object) -> Expression | None:
    """A list of {column, test = value} or {expression} that must all hold."""
    if given is None:
        return None
    found: Expression | None = None
    for one in given if isinstance(given, list) else [given]:
        for test in _tests(one):
            found = test if found is None else found & test
    return found


def _tests(given: object) -> list[Expression]:
    if isinstance(given, Mapping) and "expression" in given:
        return [sent.read_expression(given)]
    settings = known("where", given, ("column", *_TESTS))
    column = col(text(settings, "where", "column"))
    tests = [
        _TESTS[name](column, sent.read_labels(value))
        for name, value in settings.items()
        if name in _TESTS
    ]
    if not tests:
        raise InvalidArgument(f"where needs one of {', '.join(_TESTS)}.")
    return tests
