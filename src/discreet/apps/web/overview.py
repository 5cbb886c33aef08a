"""The ledger as people see it: budgets over time, who spent what, how long it lasts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from discreet.accounting.guarantee import describe
from discreet.apps.web.answers import (
    AccountShown,
    BudgetShown,
    EntryShown,
    VerificationShown,
)
from discreet.apps.web.budgets import Budgets
from discreet.apps.web.tables import standing
from discreet.ledger.account import Account
from discreet.ledger.course import Step, course
from discreet.ledger.ledger import Ledger

_DAY_S = 86_400.0
_ENTRIES = 100
_POINTS = 200


def shown(accounts: Iterable[Account], budgets: Budgets) -> tuple[AccountShown, ...]:
    """Accounts with their histories, what is left and for how long."""
    holders, every = budgets.holders(), tuple(accounts)
    # What an entry left takes time to compute: few points of many accounts, or many of one.
    points = max(3, min(40, _POINTS // max(1, len(every))))
    return tuple(_account(account, budgets, holders, points=points) for account in every)


def verification(ledger: Ledger) -> VerificationShown:
    """Replay every chain of the ledger."""
    found = ledger.verify()
    return VerificationShown(
        ok=found.ok,
        accounts=found.accounts,
        entries=found.entries,
        problems=found.problems,
        time=datetime.now(tz=UTC).isoformat(timespec="seconds"),
    )


def _account(
    account: Account,
    budgets: Budgets,
    holders: Mapping[str, tuple[str | None, str | None]],
    *,
    points: int,
) -> AccountShown:
    steps = course(account, most=_ENTRIES, points=points)
    budget = standing(account.name, account.limit, budgets.remaining(account))
    table, person = holders.get(account.name, (None, None))
    head = account.head
    expires = account.expires
    days = _days(steps, budget.remaining)
    return AccountShown(
        budget=budget,
        table=table,
        person=person,
        parents=account.parents,
        spent=_spent(budget),
        entries=int(head.partition(":")[0]),
        head=head,
        expires=None if expires is None else expires.isoformat(timespec="seconds"),
        history=tuple(_entry(step) for step in steps),
        forecast=_in_words(days, budget.remaining),
        days_left=days,
    )


def _spent(budget: BudgetShown) -> str:
    """What is gone of the limit; the tightest accountant would take seconds for long histories."""
    gone = budget.limit - budget.remaining
    if budget.currency == "mu":
        gone = math.sqrt(max(budget.limit**2 - budget.remaining**2, 0.0))
    return f"{budget.currency} {max(gone, 0.0):.4g}"


def _entry(step: Step) -> EntryShown:
    one = step.entry
    return EntryShown(
        sequence=one.sequence,
        time=one.time.isoformat(timespec="seconds"),
        kind=one.kind,
        label=one.label,
        cost=None if one.guarantee is None else describe(one.guarantee.event),
        outcome=one.outcome,
        remaining=None if step.remaining is None else float(step.remaining),
    )


def _days(steps: tuple[Step, ...], left: float) -> float | None:
    """Days until nothing is left, at the pace of the entries that are shown."""
    told = [step for step in steps if step.remaining is not None]
    if len(told) < 3 or left <= 0:
        return None
    first, last = told[0], told[-1]
    gone = float((first.remaining or 0) - (last.remaining or 0))
    # A day at least: five releases within one minute are no pace.
    days = max((datetime.now(tz=UTC) - first.entry.time).total_seconds() / _DAY_S, 1.0)
    return None if gone <= 0 else left * days / gone


def _in_words(days: float | None, left: float) -> str:
    if left <= 0:
        return "empty"
    if days is None:
        return "too few releases to tell"
    if days > 3650:
        return "at this pace, lasts for more than ten years"
    if days < 1:
        return "at this pace, empty within a day"
    number = round(days)
    return f"at this pace, empty in {number} day{'s' * (number != 1)}"
