"""Range queries on a table: from declared columns to cells, contributions and a ranked plan.

Also the smallest budget whose intervals have a wanted margin of error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data._integer_ops import (
    OPEN,
    BoundedCode,
    position,
)
from discreet.data.expression import Expression, cells_of_width
from discreet.data.program import ContributionLimits, Program, compile_program, count
from discreet.data.schema import INT64, BooleanColumn, CategoryColumn, DateColumn, Label, Schema
from discreet.data.schema import NumericColumn as NumberColumn
from discreet.query._measure import TableSpec
from discreet.query.budget import QueryBudget, budget
from discreet.query.builders import Value, as_expression, one_line, plainly
from discreet.query.error_forecast import Measure, budget_factory, smallest_amount
from discreet.ranges import domain as domains
from discreet.ranges import workload as workloads
from discreet.ranges.domain import Domain, span
from discreet.ranges.grid.plan import GridPlan
from discreet.ranges.plan import RangePlan
from discreet.ranges.plan import plan_ranges as ranked
from discreet.ranges.strategies.base import Contribution
from discreet.ranges.workload import Workload

# ── Queries and plans ────────────────────────────────────────────────────────────────────────────


MOST_CELLS = 10**7
"""What an engine counts in one pass."""
ROWS = "rows"
WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "all": workloads.all_ranges,
    "points": workloads.points,
    "short": workloads.short,
    "long": workloads.long,
    "prefixes": workloads.prefixes,
}
WorkloadLike: TypeAlias = str | Workload | Sequence[tuple[Any, Any]]
"""A name, a workload, or pairs of labels (first, last)."""
Axis: TypeAlias = Domain | NumberColumn | CategoryColumn | DateColumn | int
"""A domain, a declared column, or a number of cells."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellQuery(ABC):
    """A question about the cells of one or several columns."""

    where: Expression | None = None
    name: str = ""
    limits: ContributionLimits = field(default_factory=ContributionLimits)
    """Its own; those not given here are the table's."""

    @property
    @abstractmethod
    def columns(self) -> str:
        """The columns in words."""

    @property
    def text(self) -> str:
        """The question in words; it holds nothing but what the analyst wrote."""
        where = "" if self.where is None else f" where {plainly(self.where)}"
        return f"ranges of {self.columns}{where}"

    @property
    def title(self) -> str:
        """The name that was given, or the text."""
        return self.name or self.text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeQuery(CellQuery):
    """A question about all ranges of a column; made by `ranges`."""

    value: Expression
    workload: WorkloadLike = "all"
    bins: int | None = None
    edges: tuple[Number, ...] | None = None

    @property
    def columns(self) -> str:
        """The column in words."""
        return plainly(self.value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedCells:
    """What an engine will be asked, and the structures that could be released, best first."""

    query: CellQuery
    counted: Program
    ranked: RangePlan | GridPlan

    @property
    def guarantee(self) -> Guarantee:
        """What the best structure costs."""
        return self.ranked.best.guarantee

    @property
    def relation(self) -> NeighboringRelation:
        """Who is protected."""
        return self.ranked.best.relation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedRanges(PlannedCells):
    """Planned ranges of one column."""

    query: RangeQuery
    ranked: RangePlan


def ranges(
    value: Value,
    *,
    workload: WorkloadLike = "all",
    bins: int | None = None,
    edges: Iterable[Number] | None = None,
    where: Expression | None = None,
    name: str = "",
    limits: ContributionLimits | None = None,
) -> RangeQuery:
    """All ranges of a column or an expression: whole numbers, days, or categories in their order.

    Real numbers are cut into ``bins`` of equal width, or at ``edges``. ``workload`` says which
    ranges matter: "all", "points", "short", "long", "prefixes", or pairs of labels. ``limits`` are
    the question's own: someone who is counted once needs the noise for one row.
    """
    if where is not None and not isinstance(where, Expression):
        raise InvalidArgument(
            f"where must be a condition such as col('age') >= 65, got {type(where).__name__}."
        )
    if bins is not None and edges is not None:
        raise InvalidArgument("Give bins or edges, not both.")
    return RangeQuery(
        value=as_expression("value", value),
        workload=workload,
        bins=None if bins is None else check.count("bins", bins, minimum=2),
        edges=None if edges is None else tuple(edges),
        where=where,
        name=one_line(name),
        limits=ContributionLimits() if limits is None else limits,
    )


def plan_query(
    query: RangeQuery, *, setting: TableSpec, budget: QueryBudget, expected_rows: int | None = None
) -> PlannedRanges:
    """Cells, sensitivity and noise from public facts; `expected_rows` only scales what is shown."""
    # Theorem: the counts that the engine returns for `counted` move by no more than the plan's
    #   contribution when one unit comes or goes, or is replaced.
    # Proof: cells are the groups of the plan, so its limits hold cell by cell: `Plan.reach` bounds
    #   the rows of a unit and those in one cell; `group_move` bounds what follows.
    # Source: docs/theory/data.md, docs/theory/ranges.md.
    # Needs: nothing of the data.
    cell, domain = cells_of(query, setting.schema)
    own = with_limits(setting, query.limits)
    counted = count_cells({plainly(query.value): cell}, where=query.where, setting=own)
    # The number of rows is never taken as public here: conditions and limits change it.
    found = ranked(
        domain,
        workload_of(query.workload, domain),
        budget,
        relation=setting.relation,
        contribution=contribution_of(counted),
    )
    shown = None if expected_rows is None else check.count("expected_rows", expected_rows)
    return PlannedRanges(query=query, counted=counted, ranked=replace(found, expected_rows=shown))


def with_limits(setting: TableSpec, own: ContributionLimits) -> TableSpec:
    """The setting with a question's own limits in place of the table's."""
    return replace(setting, limits=own.over(setting.limits))


def count_cells(
    by: Mapping[str, Expression], *, where: Expression | None, setting: TableSpec
) -> Program:
    """Rows in each cell: cells are the groups of the plan, so that its limits know them."""
    return compile_program(
        schema=setting.schema,
        aggregates={ROWS: count()},
        unit=setting.privacy_unit,
        where=where,
        by=by,
        limits=setting.limits,
    )


def contribution_of(counted: Program) -> Contribution:
    """What one unit may have in the cells, as the engine enforces it."""
    reach = counted.reach(ROWS)
    within = reach.rows_per_group if reach.rows_per_group < reach.rows else None
    return Contribution(rows=reach.rows, per_cell=within)


def plan_ranges(  # noqa: PLR0913 - each has a name, most a default
    domain: Axis,
    workload: WorkloadLike = "all",
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    expected_rows: int | None = None,
    max_rows_per_unit: int = 1,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    thorough: bool = False,
    data_aware: bool = False,
) -> RangePlan:
    """Compare the strategies for counting ranges by their exact error, best first.

    Nothing is read and nothing is charged.

    Args:
        domain: Declared column such as `discreet.integer(0, 120)`, a domain such as
            `ranges.integers(0, 120)`, or a number of cells.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`.
        epsilon: Privacy loss to plan for, as epsilon.
        delta: Probability parameter of (epsilon, delta)-DP. With it, the noise is Gaussian noise.
        rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
        expected_rows: Number of rows: public under `REPLACE_ONE` with one row of each privacy unit,
            otherwise a guess that only scales what is shown.
        max_rows_per_unit: Contribution limit: number of rows of one privacy unit that are used.
        relation: Neighboring relation of the guarantee, such as `NeighboringRelation.ADD_REMOVE`.
        thorough: Whether matrices are also optimized on domains where that takes minutes.
        data_aware: Whether mechanisms are also offered whose error depends on the data. They are
            listed without a rank.

    Returns:
        A plan: every strategy with its error. `plan.best` is the design with the smallest error.

    Raises:
        InvalidArgument: An argument is not valid, or the budget is not stated in one way.

    Privacy:
        The plan releases nothing. A release of its design has the stated privacy loss for one
        privacy unit with at most `max_rows_per_unit` rows.

    Examples:
        >>> from discreet import ranges
        >>> plan = ranges.plan_ranges(ranges.integers(0, 7), "points", epsilon=1)
        >>> plan.best.guarantee.epsilon()
        1.0

    See Also:
        `Table.plan_ranges`.
    """
    cells = domain_of(domain)
    return ranked(
        cells,
        workload_of(workload, cells),
        budget(epsilon=epsilon, delta=delta, rho=rho),
        expected_rows=expected_rows,
        relation=relation,
        contribution=Contribution(rows=max_rows_per_unit),
        thorough=thorough,
        data_aware=data_aware,
    )


def domain_of(domain: Axis) -> Domain:
    """The cells of a declared column, of a domain, or so many of them."""
    if isinstance(domain, bool | BooleanColumn):
        raise InvalidArgument("domain must have an order: a boolean has no ranges.")
    if isinstance(domain, int):
        return domains.integers(0, check.count("domain", domain) - 1)
    if isinstance(domain, NumberColumn | CategoryColumn | DateColumn):
        return cells_of(ranges("domain"), {"domain": domain})[1]
    if not isinstance(domain, Domain):
        raise InvalidArgument(
            "domain must be a declared column such as discreet.date(...), one of discreet.ranges "
            f"such as integers(0, 120), or a number of cells; got {type(domain).__name__}."
        )
    return domain


def workload_of(asked: WorkloadLike, domain: Domain) -> Workload:
    """The workload of a name or of pairs of labels."""
    if isinstance(
        asked, workloads.LengthWorkload | workloads.PrefixWorkload | workloads.ListedWorkload
    ):
        return asked
    if isinstance(asked, str):
        if asked not in WORKLOADS:
            known = ", ".join(WORKLOADS)
            raise InvalidArgument(f"workload must be one of {known}, or pairs; got {asked!r}.")
        return WORKLOADS[asked]()
    try:
        pairs = [(first, last) for first, last in asked]
    except (TypeError, ValueError):
        raise InvalidArgument(
            "workload must be a name, or pairs (first, last) of labels."
        ) from None
    ends = [span(domain, first, last) for first, last in pairs]
    return workloads.ranges([(int(a), int(b)) for a, b in ends])


def cells_of(query: RangeQuery, schema: Schema) -> tuple[Expression, Domain]:
    """The cell of a row, counted from the first, and the cells themselves."""
    bound = query.value.bind(schema)
    if bound.kind == "text":
        raise InvalidArgument(OPEN)
    cut = query.bins is not None or query.edges is not None
    if cut and bound.kind != "number":
        raise InvalidArgument(f"bins and edges cut numbers; this is a {bound.kind}.")
    many = bound.upper - bound.lower + 1
    if many > INT64:
        raise InvalidArgument("the value has more than 2**63 steps: clip it first.")
    if query.edges is not None:
        return _at_edges(query.value, bound, query.edges)
    if query.bins is not None:
        return _in_bins(query.value, bound, min(query.bins, many))
    if bound.kind == "flag" or (bound.kind == "number" and bound.exponent != 0):
        raise InvalidArgument(
            "a boolean has no ranges: count it."
            if bound.kind == "flag"
            else "real numbers need bins=, how many, or edges=, where to cut."
        )
    if many > MOST_CELLS:
        raise InvalidArgument(f"there are {many} cells, more than 10**7: use bins= or edges=.")
    return query.value, _domain(bound)


def _domain(bound: BoundedCode) -> Domain:
    match bound.kind:
        case "number":
            return domains.integers(bound.lower, bound.upper)
        case "date" if bound.step == "day":
            first, last = (bound.label(end) for end in (bound.lower, bound.upper))
            return domains.dates(str(first), str(last))
        case "date":
            hours = (bound.label(code) for code in range(bound.lower, bound.upper + 1))
            return domains.ordered([f"{hour:%Y-%m-%d %H:00}" for hour in hours])
        case _:
            return domains.ordered([_name(label) for label in bound.labels])


def _name(label: Label) -> str | int:
    return label if isinstance(label, int) else str(label)


def _at_edges(
    value: Expression, bound: BoundedCode, edges: Sequence[Number]
) -> tuple[Expression, Domain]:
    """Every row is in a bin: what the edges leave out on either side are bins of their own."""
    places = [position(bound, edge) for edge in edges]
    if any(not bound.lower <= place <= bound.upper for place in places):
        raise InvalidArgument("edges must lie within the declared bounds.")
    kept = [
        edge for edge, place in zip(edges, places, strict=True) if bound.lower < place < bound.upper
    ]
    if not kept:
        raise InvalidArgument("edges must cut the declared bounds at least once.")
    ends = [_value(bound, bound.lower), *map(float, kept), _value(bound, bound.upper)]
    return value.cut(kept), domains.bins(ends)


def _in_bins(value: Expression, bound: BoundedCode, bins: int) -> tuple[Expression, Domain]:
    """Bins of equal width on the grid of the value; the last may be narrower."""
    span = bound.upper - bound.lower + 1
    width = -(-span // bins)
    many = -(-span // width)
    if many > MOST_CELLS:
        raise InvalidArgument(f"bins must be at most 10**7, got {bins}.")
    marks = [bound.lower + width * k for k in range(many)]
    # The last bin is closed; a single grid point at the end needs an edge beyond it.
    last = max(bound.upper, marks[-1] + 1)
    edges = [_value(bound, mark) for mark in (*marks, last)]
    cells = cells_of_width(value, lower=bound.lower, width=width, many=many)
    return cells, domains.bins(edges)


def _value(bound: BoundedCode, code: int) -> float:
    return float(code * Fraction(2) ** bound.exponent)


# ── Budget for a margin of error ─────────────────────────────────────────────────────────────────


_PLANS = 12


def range_budget_for(
    query: RangeQuery,
    *,
    setting: TableSpec,
    within: Number,
    confidence: float = 0.95,
    measure: Measure = "epsilon",
    delta: Number | None = None,
) -> QueryBudget:
    """The budget at which every range of the workload has an interval ``within`` a half-width.

    It is the smallest, up to a thousandth, for the structure that is best at the amount one. The
    plan at the result is made and its widest interval checked, so the target is met by what will
    be released; where another structure is best there, the amount grows until it is.

    On more than 256 cells, "every range" is every one of the many that the planner tries.
    """
    wanted, budget = check.positive("within", within), budget_factory(measure, delta)
    first = plan_query(query, setting=setting, budget=budget(Fraction(1))).ranked.candidates[0]

    def meets(amount: Fraction) -> bool:
        design = replace(first.design, budget=budget(amount))
        return Fraction(design.width(*first.widest, confidence=confidence)) <= wanted

    amount = smallest_amount(meets, title=query.title)
    for _ in range(_PLANS):
        best = plan_query(query, setting=setting, budget=budget(amount)).ranked.candidates[0]
        width = Fraction(best.width(confidence=confidence))
        if width <= wanted:
            return budget(amount)
        part = (width / wanted).limit_denominator(10**4)
        amount *= max(part if measure == "epsilon" else part**2, Fraction(1001, 1000))
    raise InvalidArgument(
        f"within cannot be met for {query.title!r}: state a wider one, or an amount."
    )
