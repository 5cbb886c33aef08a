"""Plans: what questions cost and how exact they will be, from declarations alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core.errors import BudgetExceeded, InvalidArgument, PrivacyError
from discreet.core.number_format import number
from discreet.ledger._limit_words import limit_measure
from discreet.ledger.account import Account
from discreet.query._release_plan import (
    PlannedQuery,
    PlannedScan,
    ReleasePlan,
    TableSpec,
    plan_release,
)
from discreet.query.budget import QueryBudget
from discreet.query.builders import Query
from discreet.query.error_forecast import ErrorForecast, forecast
from discreet.report.html_page import plainly
from discreet.server.config import TableConfig
from discreet.server.jobs.concurrency import BoundedCache, ConcurrencyLimit
from discreet.server.middleware.errors import as_invalid_argument
from discreet.server.schemas import (
    AlternativeInfo,
    BudgetInfo,
    ErrorPoint,
    PlanInfo,
    RangePlanInfo,
    StatisticPlanInfo,
    StrategyInfo,
)
from discreet.spec.budget_arithmetic import (
    amount_left,
    curve_budgets,
    fast_budgets,
    limit_amount,
    share_of_limit,
    stated_amount,
)
from discreet.spec.query_size import count_cells, count_groups, rows_per_group
from discreet.spec.ranges import range_content
from discreet.spec.release_file import BudgetStatus
from discreet.spec.statistics import ReleaseSpec, StatisticSpec, is_ranges, release_spec
from discreet.tables.release import describe_protection

# ── Limits of a request ──────────────────────────────────────────────────────────────────────────
# A server has others to serve: it refuses what would keep one worker busy.


MOST_CELLS = 65_536
"""Groups of a statistic (times bins, for quantiles), or cells of ranges."""
MOST_SEARCHES = 10
"""Ranges and targets in one request: each may take a second or two of a core."""
LEAST, MOST = Fraction(1, 1_000_000_000), Fraction(1_000_000)
"""Of an epsilon or a rho."""
_PRICE = ("epsilon", "delta", "rho", "noise", "within")


def check_searches(number: int) -> None:
    """Refuse too many questions for which structures or amounts must be looked for."""
    if number > MOST_SEARCHES:
        raise InvalidArgument(
            f"statistics: this server looks for at most {MOST_SEARCHES} ranges or targets at once; "
            "ask for the others in another request, or state their epsilon."
        )


def check_sizes(statistics: list[Any], setting: TableSpec) -> int:
    """How many groups or cells there are; too many are refused, before they are designed."""
    free = [
        {**{k: v for k, v in one.items() if k not in _PRICE}, "epsilon": 1}
        if isinstance(one, Mapping)
        else one
        for one in statistics
    ]
    found = release_spec(free, setting=setting)  # with an amount nothing is searched for
    cells = [count_groups(one.query, setting) for one in found.statistics]
    cells += [count_cells(one.query, setting) for one in found.ranges]
    if sum(cells) > MOST_CELLS:
        raise InvalidArgument(
            f"statistics: {sum(cells):,} groups or cells are more than the {MOST_CELLS:,} that "
            "this server answers at once; cut columns into fewer parts, or list keys."
        )
    return sum(cells)


def check_amounts(found: ReleaseSpec) -> None:
    """Refuse amounts that nobody means: arithmetic has its limits there."""
    budgets = [one.budget for one in found.statistics] + [one.budget for one in found.ranges]
    for budget in budgets:
        amount = budget.epsilon if budget.rho is None else budget.rho
        if amount is None or not LEAST <= amount <= MOST:
            raise InvalidArgument(
                f"statistics: an amount must lie between {number(LEAST)} and {number(MOST)}."
            )


# ── Plans ────────────────────────────────────────────────────────────────────────────────────────


LEVEL = 0.95
MOST_STATISTICS = 50
_DELTA = Fraction(1, 1_000_000)
_STRUCTURES = 12
_TURNS = ConcurrencyLimit("Other plans are being made; try again soon.", waiting=7)
"""Structures for ranges, and amounts for targets, are looked for one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRequest:
    """Statistics of one table, checked, designed and priced."""

    text: str
    asked: ReleaseSpec
    plan: ReleasePlan

    @property
    def title(self) -> str:
        """What is asked, in a few words."""
        return "; ".join(self.plan.titles)

    @property
    def guarantee(self) -> Guarantee:
        """What all of it costs."""
        return self.plan.guarantee


def price_request(
    table: TableConfig, statistics: object, *, patient: bool = False
) -> PricedRequest:
    """Check statistics in the words of a release file; known ones are remembered.

    Who is ``patient`` waits for the turn instead of being sent away.
    """
    if not isinstance(statistics, Sequence) or isinstance(statistics, str):
        raise InvalidArgument("statistics must be a list of questions.")
    if not 0 < len(statistics) <= MOST_STATISTICS:
        raise InvalidArgument(f"statistics must be 1 to {MOST_STATISTICS} questions.")
    if not all(isinstance(one, Mapping) for one in statistics):
        raise InvalidArgument("statistics must be a list of questions.")
    return _question(_NamedQuery(table), canonical_text(statistics), patient=patient)


def canonical_text(statistics: object) -> str:
    """One text for one list of questions."""
    with as_invalid_argument("statistics"):
        text = json.dumps(
            statistics, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
        )
        text.encode()  # half of a character cannot be stored or sent back
        return text


class _NamedQuery:
    """A table as a key of the memory: there is one configuration for each name in a process."""

    def __init__(self, table: TableConfig) -> None:
        self.table = table

    def __hash__(self) -> int:
        return hash(self.table.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NamedQuery) and other.table is self.table


# A group takes some 80 bytes: 200 megabytes at most, however large the questions are.
_KNOWN: BoundedCache[PricedRequest] = BoundedCache(most=2_500_000)


def _question(named: _NamedQuery, text: str, *, patient: bool = False) -> PricedRequest:
    found = _KNOWN.get((named, text))
    if found is None:
        found, cells = _designed(named.table, text, patient=patient)
        _KNOWN.put((named, text), found, weight=cells + len(text) // 64 + 100)
    return found


def _designed(table: TableConfig, text: str, *, patient: bool) -> tuple[PricedRequest, int]:
    """The question and how many groups or cells it has."""
    given = json.loads(text)
    heavy = sum(isinstance(one, Mapping) and (is_ranges(one) or "within" in one) for one in given)
    check_searches(heavy)
    with (
        _TURNS.taken(patient=patient) if heavy else nullcontext(),
        as_invalid_argument("statistics"),
    ):
        cells = check_sizes(given, table.setting)
        found = release_spec(given, setting=table.setting, limit={table.measure: 1})
        check_amounts(found)
        return PricedRequest(text=text, asked=found, plan=found.plan()), cells


def warm(table: TableConfig) -> None:
    """Plan something, so that the first who asks does not wait for libraries."""
    with suppress(PrivacyError):  # a table may need limits that a question brings
        found = price_request(table, [{"kind": "count", "epsilon": 1}])
        plan(table, found, account=None, shown=None, compare=True)


def check_affordable(asked_for: PricedRequest, account: Account) -> None:
    """Refuse what an account cannot count or pay, before anything is queued."""
    if not account.can_afford(asked_for.guarantee):
        raise BudgetExceeded(
            f"Account {account.name!r} or the account of its table has too little left for this: "
            f"{guarantee_line(asked_for)}; nothing was spent."
        )


@lru_cache(maxsize=1024)
def _worth(guarantee: Guarantee) -> str:
    return describe_epsilon(guarantee)


def guarantee_line(asked_for: PricedRequest) -> str:
    """The guarantee in one line."""
    return _worth(asked_for.guarantee)


def plan(
    table: TableConfig,
    asked_for: PricedRequest,
    *,
    account: Account | None,
    shown: BudgetInfo | None,
    compare: bool,
) -> PlanInfo:
    """The plan for the holder of an account; nothing is read or spent."""
    standing = _limit(table)
    if account is not None:
        standing = BudgetStatus(name=account.name, limit=account.limit, account=account)
    after = None
    with as_invalid_argument("statistics"):
        cost = _cost(asked_for.guarantee, standing.limit)
        public = _public(_NamedQuery(table), asked_for.text, compare=compare)
    if shown is not None and cost is not None:  # for display; the ledger decides
        after = amount_left(shown.remaining, cost, measure=shown.currency)
    return PlanInfo(
        table=table.name,
        **public,
        cost=cost,
        share=_share(cost, standing.limit),
        budget=shown,
        after=after,
        affordable=account is not None and account.can_afford(asked_for.guarantee),
        level=LEVEL,
    )


@lru_cache(maxsize=512)
def _public(named: _NamedQuery, text: str, *, compare: bool) -> Mapping[str, Any]:
    """All of a plan that does not depend on who asks."""
    table, found = named.table, _question(named, text)
    work, setting = found.plan, found.asked.setting
    statistics: dict[int, StatisticPlanInfo] = {}
    raw = [given for given in json.loads(text) if not is_ranges(given)]
    for place, one, index in _questions(found.asked):
        made = _statistic(table, one, work, index)
        if compare:
            made = replace(
                made,
                alternatives=_alternatives(setting, one, work.questions[index], made.rows),
                curve=_curve(named, _unpriced(raw[place]), made.rows),
            )
        statistics[place] = made
    shown = tuple(statistics[place] for place in sorted(statistics))
    ranges = tuple(_ranges(table, one) for one in work.ranges)
    content = [*map(asdict, shown), *map(asdict, ranges)]
    json.dumps(content, allow_nan=False)  # what is not finite is refused
    return {
        "statistics": shown,
        "ranges": ranges,
        "worth": guarantee_line(found),
        "promise": plainly(found.guarantee),
        "protects": describe_protection(setting),
        "passes": len(work.scans),
    }


def _questions(given: ReleaseSpec) -> list[tuple[int, StatisticSpec, int]]:
    """Place in the list, statistic, and its number in the design."""
    return [(place, given.statistics[place], i) for i, place in enumerate(given.order())]


def _statistic(
    table: TableConfig, one: StatisticSpec, work: ReleasePlan, index: int
) -> StatisticPlanInfo:
    asked_for = work.questions[index]
    rows = one.expected_rows
    if rows is None and table.expected_rows is not None:  # a guess: groups that are alike
        rows = rows_per_group(table.expected_rows, [len(asked_for.keys)])
    error = forecast(asked_for, expected_rows=rows, confidence=LEVEL)
    return StatisticPlanInfo(
        name=asked_for.query.title,
        asked=asked_for.query.text,
        budget=str(one.budget),
        share=_share(_cost(asked_for.guarantee, table.limit), table.limit),
        groups=error.groups,
        std=_finite(error.std),
        width=_finite(error.width),
        level=error.confidence,
        rows=error.expected_rows,
        step=error.step,
        mechanism=work.words(asked_for),
        target=None if one.within is None else float(one.within),
        met=None if one.within is None else (error.width or math.inf) <= one.within,
        amount=budget_amounts(one.budget),
    )


def _least(
    setting: TableSpec, query: Query, price: QueryBudget, expected_rows: int | None
) -> ErrorForecast:
    """The error with the better noise, calibrated fast."""
    found = [_one(setting, query, one, expected_rows) for one in fast_budgets(price)]
    return min(found, key=lambda one: math.inf if one.width is None else one.width)


def _one(
    setting: TableSpec, query: Query, price: QueryBudget, expected_rows: int | None
) -> ErrorForecast:
    made: ReleasePlan = plan_release([query], setting=setting, budget=price)
    return forecast(made.questions[0], expected_rows=expected_rows, confidence=LEVEL)


def _alternatives(
    setting: TableSpec,
    one: StatisticSpec,
    planned: PlannedQuery,
    expected_rows: int | None,
) -> tuple[AlternativeInfo, ...]:
    """The same question with other noise, and quantiles by other methods, at the same price."""
    price, noise = one.budget, planned.noise_name
    # How quantiles will be found; the design says it where the question does not.
    settled = planned.query.method
    ways: list[tuple[str, Query, QueryBudget, bool]] = []
    if price.epsilon is not None:
        delta = price.delta or _DELTA
        normal = QueryBudget(epsilon=price.epsilon, delta=delta, noise="gaussian")
        ways = [
            (
                "Laplace noise",
                one.query,
                QueryBudget(epsilon=price.epsilon, delta=price.delta, noise="laplace"),
                noise == "laplace",
            ),
            (f"Gaussian noise, delta {number(delta)}", one.query, normal, noise == "gaussian"),
        ]
    if one.query.q:
        ways = [
            (f"by {method}", replace(one.query, method=method, bins=None), price, method == settled)
            for method in ("tree", "exponential")
        ]
    found = []
    for name, query, amount_of, chosen in ways:
        with suppress(PrivacyError):  # not every question can be answered in every way
            error = _least(setting, query, amount_of, expected_rows)
            std, width = _finite(error.std), _finite(error.width)
            found.append(AlternativeInfo(name=name, std=std, width=width, chosen=chosen))
    return tuple(found)


@lru_cache(maxsize=512)
def _curve(named: _NamedQuery, text: str, expected_rows: int | None) -> tuple[ErrorPoint, ...]:
    """The error of one statistic at amounts that do not depend on the one that is asked for."""
    table = named.table
    given = json.loads(text)
    delta = given.get("delta")
    measure: Literal["rho", "epsilon"] = "rho" if "rho" in given else "epsilon"
    (one,) = release_spec([{**given, measure: 1}], setting=table.setting).statistics
    points = []
    for x, price in curve_budgets(measure, delta=delta):
        with suppress(PrivacyError):
            error = _least(
                table.setting, one.query, replace(price, noise=one.budget.noise), expected_rows
            )
            points.append(ErrorPoint(amount=x, std=_finite(error.std), width=_finite(error.width)))
    return tuple(points)


def _unpriced(given: Mapping[str, Any]) -> str:
    """A statistic with the kind of its amount, and without the amount itself."""
    rest = {name: value for name, value in given.items() if name not in ("epsilon", "within")}
    return canonical_text({**rest, "rho": 1} if "rho" in rest else rest)


def _ranges(table: TableConfig, one: PlannedScan) -> RangePlanInfo:
    content = range_content(one, _limit(table))
    kept = {name: content[name] for name in ("name", "asked", "budget", "share", "cells")}
    return RangePlanInfo(
        **kept,
        workload=content["workload"],
        shown=tuple(content["shown"]),
        structures=tuple(
            StrategyInfo(name=e["structure"], rmse=e["rmse"], errors=tuple(e["errors"]))
            for e in content["structures"][:_STRUCTURES]
        ),
        width=content["width"],
    )


def budget_amounts(price: QueryBudget) -> dict[str, float]:
    """A budget as it stands in a question."""
    parts = {"epsilon": price.epsilon, "delta": price.delta, "rho": price.rho}
    return {name: float(part) for name, part in parts.items() if part is not None}


def _limit(table: TableConfig) -> BudgetStatus:
    return BudgetStatus(name=table.account, limit=table.limit, account=None)


@lru_cache(maxsize=1024)
def _cost(cost: Guarantee, limit: Guarantee) -> float | None:
    """A cost in the measure of a limit: for pure noise the epsilon that was asked for."""
    return _finite(stated_amount(cost, limit))


def _share(cost: float | None, limit: Guarantee) -> float | None:
    """The part of the whole limit that a cost takes by itself."""
    if cost is None:
        return None
    return share_of_limit(cost, limit_amount(limit), measure=limit_measure(limit))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
