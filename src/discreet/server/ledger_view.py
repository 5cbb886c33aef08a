"""Accounts of users under the account of their table, and the ledger as pages show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.ledger._limit_words import cost_words
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.ledger.spending_history import BudgetStep, spending_steps
from discreet.ledger.statement import Statement
from discreet.ledger.store import Store
from discreet.server.config import Config, TableConfig, is_name
from discreet.server.schemas import (
    AccountInfo,
    BudgetInfo,
    EntryInfo,
    StatementLineInfo,
    VerificationInfo,
)
from discreet.server.table_registry import budget_info
from discreet.server.users import User
from discreet.spec.budget_arithmetic import amount_spent, days_left

_LINES = 12
"""Releases that a page lists one by one."""

# ── Accounts of users ────────────────────────────────────────────────────────────────────────────


class UserBudgets:
    """Which account of the ledger a person pays from.

    The terms of an account never change. A new limit is a new account beside the old one: what was
    spent stays in the history, and the account of the table bounds all of them together.
    """

    def __init__(self, config: Config, store: Store, ledger: Ledger) -> None:
        self._config = config
        self._store = store
        self._ledger = ledger
        self._known: dict[str, Account] = {}
        self._left: dict[str, tuple[str, float]] = {}
        self._told: dict[str, tuple[str, Statement]] = {}
        for table in config.tables.values():
            self._known[table.account] = ledger.account(table.account, limit=table.limit)

    def of_table(self, table: TableConfig) -> Account:
        """The account that bounds all others."""
        return self._known[table.account]

    def of(self, person: str, table: TableConfig) -> Account | None:
        """The account of a person; None if there is none under the table's account."""
        return self._of(person, table)[0]

    def paying(self, who: User, table: TableConfig) -> Account | None:
        """The account of a person; an analyst's first one is opened with the table's default."""
        found, number = self._of(who.name, table)
        if found is None and who.role == "analyst" and table.analyst_limit is not None:
            return self._open(who.name, table, table.analyst_limit, number=number + 1)
        return found

    def remaining(self, account: Account) -> float:
        """What is left; computed once for each entry of the account."""
        head = account.head
        known = self._left.get(account.name)
        if known is None or known[0] != head:
            known = head, float(account.remaining)  # not older than the head that it goes with
            self._left[account.name] = known
        return known[1]

    def statement(self, account: Account) -> Statement:
        """The statement of an account; made once for each entry of it."""
        head = account.head
        known = self._told.get(account.name)
        if known is None or known[0] != head:
            known = head, account.statement(most=_LINES)
            self._told[account.name] = known
        return known[1]

    def account(self, name: str) -> Account:
        """An account by its name; its terms are remembered, what is left is read each time."""
        if name not in self._known:
            self._known[name] = self._ledger.account(name)
        return self._known[name]

    def set_limit(self, person: str, table: TableConfig, limit: Guarantee) -> Account:
        """From now on a person may spend this much more from the table."""
        with self._store.read() as session:
            if not is_name(person) or not session.run(
                "SELECT 1 FROM people WHERE name = ?", person
            ):
                raise InvalidArgument(f"There is nobody called {person!r}.")
        _, number = self._of(person, table)
        taken = {account.name for account in self._ledger.accounts()}
        while _name(person, table, number := number + 1) in taken:
            pass  # a worker died before it was noted: nobody pays from that one
        return self._open(person, table, limit, number=number)

    def holders(self) -> dict[str, tuple[str, str]]:
        """Table and person of each account that is in use."""
        with self._store.read() as session:
            rows = session.run("SELECT account, subject, person FROM budgets")
        return {account: (table, person) for account, table, person in rows}

    def _of(self, person: str, table: TableConfig) -> tuple[Account | None, int]:
        """The account of a person under the table's, and how many the person has had."""
        with self._store.read() as session:
            found = session.run(
                "SELECT account, number FROM budgets WHERE person = ? AND subject = ?",
                *(person, table.name),
            )
        if not found:
            return None, 0
        account, number = self.account(found[0][0]), int(found[0][1])
        # The owner may have given the table another account: from then on all must count there.
        return account if table.account in account.parents else None, number

    def _open(self, person: str, table: TableConfig, limit: Guarantee, *, number: int) -> Account:
        name = _name(person, table, number)
        account = self._ledger.account(name, limit=limit, parent=table.account)
        with self._store.write() as session:
            # The table may have had another name: its accounts go with it.
            session.run("DELETE FROM budgets WHERE account = ? AND subject <> ?", name, table.name)
            session.run(
                "INSERT INTO budgets (person, subject, account, number) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (person, subject) DO UPDATE SET account = excluded.account, "
                "number = excluded.number WHERE budgets.number < excluded.number",
                *(person, table.name, name, number),
            )
        return account


def _name(person: str, table: TableConfig, number: int) -> str:
    return f"{table.account}/{person}" + ("" if number == 1 else f"/{number}")


# ── What is shown ────────────────────────────────────────────────────────────────────────────────


_DAY_S = 86_400.0
_ENTRIES = 100
_POINTS = 200


def account_infos(accounts: Iterable[Account], budgets: UserBudgets) -> tuple[AccountInfo, ...]:
    """Accounts with their histories, what is left and for how long."""
    holders, every = budgets.holders(), tuple(accounts)
    # What an entry left takes time to compute: few points of many accounts, or many of one.
    points = max(3, min(40, _POINTS // max(1, len(every))))
    return tuple(_account(account, budgets, holders, points=points) for account in every)


def verification(ledger: Ledger) -> VerificationInfo:
    """Replay every chain of the ledger."""
    found = ledger.verify()
    return VerificationInfo(
        ok=found.ok,
        accounts=found.accounts,
        entries=found.entries,
        problems=found.problems,
        time=datetime.now(tz=UTC).isoformat(timespec="seconds"),
    )


def _account(
    account: Account,
    budgets: UserBudgets,
    holders: Mapping[str, tuple[str | None, str | None]],
    *,
    points: int,
) -> AccountInfo:
    steps = spending_steps(account, most=_ENTRIES, points=points)
    budget = budget_info(account.name, account.limit, budgets.remaining(account))
    table, person = holders.get(account.name, (None, None))
    head = account.head
    expires = account.expires
    days = _days(steps, budget.remaining)
    told = budgets.statement(account)
    return AccountInfo(
        budget=budget,
        table=table,
        person=person,
        parents=account.parents,
        spent=_spent(budget),
        entries=int(head.partition(":")[0]),
        head=head,
        expires=None if expires is None else expires.isoformat(timespec="seconds"),
        history=tuple(_entry(step, account.limit) for step in steps),
        statement=_lines(told),
        statement_words=told.words,
        forecast=_in_words(days, budget.remaining),
        days_left=days,
    )


def _lines(told: Statement) -> tuple[StatementLineInfo, ...]:
    return tuple(
        StatementLineInfo(
            entry=line.entry,
            time=line.time.isoformat(timespec="seconds"),
            label=line.label,
            outcome=line.outcome,
            alone=told.shown(line.alone),
            added=told.shown(line.added),
            total=told.shown(line.total),
        )
        for line in told.lines
    )


def _spent(budget: BudgetInfo) -> str:
    """What is spent of the limit."""
    spent = amount_spent(budget.remaining, budget.limit, measure=budget.currency)
    return f"{budget.currency} {short(spent)}"


def _entry(step: BudgetStep, limit: Guarantee) -> EntryInfo:
    one = step.entry
    return EntryInfo(
        sequence=one.sequence,
        time=one.time.isoformat(timespec="seconds"),
        kind=one.kind,
        label=one.label,
        cost=None if one.guarantee is None else cost_words(one.guarantee.event, limit),
        outcome=one.outcome,
        remaining=None if step.remaining is None else float(step.remaining),
    )


def _days(steps: tuple[BudgetStep, ...], left: float) -> float | None:
    """Days until nothing is left, at the pace of the entries that are shown."""
    known = [step for step in steps if step.remaining is not None]
    if not known:
        return None
    age = (datetime.now(tz=UTC) - known[0].entry.time).total_seconds() / _DAY_S
    return days_left([float(step.remaining or 0) for step in known], days=age, now=left)


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
