"""How large a question is: what many people share refuses what would keep one worker busy.

On one's own machine a table of ten million cells is one's own affair; a server has others to serve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.apps.asked import Asked, asked
from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression
from discreet.queries.ask import Query
from discreet.queries.design import Setting
from discreet.queries.ranges.grid_question import GridQuery
from discreet.queries.ranges.question import RangeQuery

MOST_CELLS = 65_536
"""Groups of a statistic (times bins, for quantiles), or cells of ranges."""
MOST_SEARCHES = 10
"""Ranges and targets in one request: each may take a second or two of a core."""
LEAST, MOST = Fraction(1, 10**9), Fraction(10**6)
"""Of an epsilon or a rho."""
_BINS = 64
"""Counted for quantiles that leave the number of bins to the design."""
_PRICE = ("epsilon", "delta", "rho", "within")


def check_searches(number: int) -> None:
    """Refuse too many questions for which structures or amounts must be looked for."""
    if number > MOST_SEARCHES:
        raise InvalidArgument(
            f"statistics: this server looks for at most {MOST_SEARCHES} ranges or targets at once; "
            "ask for the others in another request, or state their epsilon."
        )


def check_sizes(statistics: list[Any], setting: Setting) -> int:
    """How many groups or cells there are; too many are refused, before they are designed."""
    free = [
        {**{k: v for k, v in one.items() if k not in _PRICE}, "epsilon": 1}
        if isinstance(one, Mapping)
        else one
        for one in statistics
    ]
    found = asked(free, setting=setting)  # with an amount nothing is searched for
    cells = [_groups(one.query, setting) for one in found.statistics]
    cells += [_cells(one.query, setting) for one in found.ranges]
    if sum(cells) > MOST_CELLS:
        raise InvalidArgument(
            f"statistics: {sum(cells):,} groups or cells are more than the {MOST_CELLS:,} that "
            "this server answers at once; cut columns into fewer parts, or list keys."
        )
    return sum(cells)


def check_amounts(found: Asked) -> None:
    """Refuse amounts that nobody means: arithmetic has its limits there."""
    budgets = [one.budget for one in found.statistics] + [one.budget for one in found.ranges]
    for budget in budgets:
        amount = budget.epsilon if budget.rho is None else budget.rho
        if amount is None or not LEAST <= amount <= MOST:
            raise InvalidArgument(
                f"statistics: an amount must lie between {float(LEAST):g} and {float(MOST):g}."
            )


def _groups(query: Query, setting: Setting) -> int:
    each = query.bins or _BINS if query.levels else 1
    if query.keys is not None:
        return each * (len(query.keys) + query.rest)
    return each * math.prod(_width(one, setting) for one in query.by.values())


def _cells(query: RangeQuery | GridQuery, setting: Setting) -> int:
    if isinstance(query, GridQuery):
        return math.prod(
            query.bins.get(name) or _width(one, setting) for name, one in query.values.items()
        )
    if query.bins is not None:
        return query.bins
    return _width(query.value, setting) if query.edges is None else len(query.edges)


def _width(expression: Expression, setting: Setting) -> int:
    bound = expression.bind(setting.schema)
    return 1 if bound.kind == "text" else bound.upper - bound.lower + 1
