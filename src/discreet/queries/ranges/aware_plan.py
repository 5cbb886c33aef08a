"""Data-aware mechanisms that a planner may offer, on request only: their error is not known."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.queries.budget import Budget
from discreet.queries.ranges.dawa import MOST_CELLS, Dawa
from discreet.queries.ranges.grid import Grid, GridWorkload
from discreet.queries.ranges.mwem import Mwem
from discreet.queries.ranges.strategy import Contribution

Aware: TypeAlias = Dawa | Mwem


def data_aware(
    grid: Grid,
    workload: GridWorkload,
    budget: Budget,
    *,
    relation: Relation,
    contribution: Contribution,
) -> tuple[Aware, ...]:
    """What fits the grid: DAWA on one axis, MWEM if its workload can be listed."""
    if budget.epsilon is None or budget.delta is not None:
        raise InvalidArgument("data_aware needs a pure budget: epsilon alone.")
    found: list[Aware] = []
    if len(grid.domains) == 1 and grid.size <= MOST_CELLS:
        found.append(
            Dawa(
                domain=grid.domains[0],
                budget=budget,
                relation=relation,
                contribution=contribution,
            )
        )
    with suppress(InvalidArgument):  # too many rectangles to choose from
        found.append(
            Mwem(
                grid=grid,
                workload=workload,
                budget=budget,
                relation=relation,
                contribution=contribution,
            )
        )
    return tuple(found)


def listed_names(offers: tuple[Aware, ...]) -> list[str]:
    """One line for each, below a table."""
    return [f"{offer.describe()}, laplace noise" for offer in offers]
