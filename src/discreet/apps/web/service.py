"""What people can do, in one place: pages and the JSON interface call these methods and no others.

Every method takes who asks, first, and refuses what their role may not do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.apps.web import planning, tables
from discreet.apps.web.answers import BudgetShown, Planned, TableShown
from discreet.apps.web.budgets import Budgets
from discreet.apps.web.config import Config, TableConfig
from discreet.apps.web.people import People, Person, Role
from discreet.apps.web.problems import Forbidden, NotFound
from discreet.apps.web.store import open_store
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger


class Service:
    """The service of one process; several share their store and ledger."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.store = open_store(config.store)
        self.ledger_book = Ledger(config.ledger)
        self.people_known = People(self.store)
        self.budgets = Budgets(config, self.store, self.ledger_book)
        self.opener = tables.Opener()

    # ── tables and plans ─────────────────────────────────────────────────────

    def tables(self, who: Person) -> tuple[TableShown, ...]:
        """All tables, as they are declared."""
        _only(who, "owner", "analyst")
        return tuple(self._shown(who, table) for table in self.config.tables.values())

    def table(self, who: Person, name: str) -> TableShown:
        """One table, as it is declared."""
        _only(who, "owner", "analyst")
        return self._shown(who, self._table(name))

    def plan(
        self,
        who: Person,
        table: str,
        statistics: Sequence[dict[str, Any]],
        *,
        compare: bool = False,
    ) -> Planned:
        """What statistics would cost and how exact they would be; nothing is read or spent.

        With ``compare`` other mechanisms at the same price, and the error at other prices.
        """
        _only(who, "owner", "analyst")
        config = self._table(table)
        found = planning.question(config, statistics)
        account = self.budgets.paying(who, config)
        shown = None if account is None else _capped(account, self.budgets.of_table(config))
        return planning.plan(config, found, account=account, shown=shown, compare=compare)

    def close(self) -> None:
        """Give back connections."""
        self.store.close()
        self.ledger_book.close()

    def _table(self, name: str) -> TableConfig:
        found = self.config.tables.get(name)
        if found is None:
            raise NotFound("There is no such table.")
        return found

    def _shown(self, who: Person, table: TableConfig) -> TableShown:
        own, above = self.budgets.paying(who, table), self.budgets.of_table(table)
        return tables.shown(
            table,
            own=None if own is None else _capped(own, above),
            whole=tables.budget_of(above),
        )


def _only(who: Person, *roles: Role) -> None:
    if who.role not in roles:
        raise Forbidden(f"This is for {' and '.join(roles)}; you are {who.role}.")


def _capped(account: Account, above: Account) -> BudgetShown:
    """What the holder can really spend, if limits are of one kind: not more than the table has."""
    own, table = tables.budget_of(account), tables.budget_of(above)
    if own.currency != table.currency or own.remaining <= table.remaining:
        return own
    return tables.standing(account.name, account.limit, table.remaining)
