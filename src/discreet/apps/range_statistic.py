"""A statistic of kind "ranges" in a release file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.apps import sent
from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression
from discreet.data.plan import Limits
from discreet.queries.budget import Budget, budget
from discreet.queries.passes import Setting
from discreet.queries.ranges.grid_question import GridQuery, planned_grid, rectangles
from discreet.queries.ranges.question import RangeQuery, planned, ranges
from discreet.queries.ranges.target import range_amount_for
from discreet.queries.targets import Currency
from discreet.tables.ranges import AnyPlanned

_AMOUNTS = ("epsilon", "delta", "rho")
_ASKED = ("workload", "bins", "edges", "name")
_LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")
KNOWN = ("kind", "of", "where", "rows", "within", *_ASKED, *_LIMITS, *_AMOUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStatistic:
    """All ranges of columns: the question, what it may cost, the rows that are expected.

    ``within`` is the half-width (95%) that the widest range of the workload may have.
    """

    query: RangeQuery | GridQuery
    budget: Budget
    rows: int | None
    within: Fraction | None = None

    def planned(self, setting: Setting) -> AnyPlanned:
        """The structures that could be released, best first."""
        if isinstance(self.query, GridQuery):
            return planned_grid(self.query, setting=setting, budget=self.budget, rows=self.rows)
        return planned(self.query, setting=setting, budget=self.budget, rows=self.rows)


def is_ranges(given: object) -> bool:
    """Whether a statistic of the file is of this kind."""
    return isinstance(given, Mapping) and given.get("kind") == "ranges"


def range_statistic(
    given: Mapping[str, Any], *, where: Expression | None, setting: Setting, currency: Currency
) -> RangeStatistic:
    """One column gives ranges, a list of columns gives rectangles.

    Without an amount it is the smallest, in the currency, that keeps the ranges ``within``.
    """
    of: Any = given.get("of")
    of = [sent.value(one) for one in of] if isinstance(of, list) else sent.value(of)
    more = {name: given[name] for name in _ASKED if name in given}
    more |= {name: sent.labels(more[name]) for name in ("edges", "workload") if name in more}
    limits = Limits(**{name: given.get(name) for name in _LIMITS})
    rows, within = given.get("rows"), sent.label(given.get("within"))
    amounts = {name: sent.label(given.get(name)) for name in _AMOUNTS}
    if isinstance(of, list):
        if within is not None:
            raise InvalidArgument("within is for ranges of one column: state an amount.")
        asked = rectangles(of, where=where, limits=limits, **more)
        return RangeStatistic(query=asked, budget=budget(**amounts), rows=rows)
    query = ranges(of, where=where, limits=limits, **more)
    wanted = None if within is None else check.positive("within", within)
    if wanted is None or amounts["epsilon"] is not None or amounts["rho"] is not None:
        return RangeStatistic(query=query, budget=budget(**amounts), rows=rows, within=wanted)
    delta = amounts["delta"]
    found = range_amount_for(
        query,
        setting=setting,
        within=wanted,
        currency=currency if delta is None else "epsilon",
        delta=delta,
    )
    return RangeStatistic(query=query, budget=found, rows=rows, within=wanted)
