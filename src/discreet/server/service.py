"""What people can do, in one place: pages and the JSON interface call these methods and no others.

Every method takes who asks, first, and refuses what their role may not do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.server import audits as findings
from discreet.server import ledger_view as overview
from discreet.server import plans as planning
from discreet.server import table_registry as tables
from discreet.server.config import Config, TableConfig
from discreet.server.jobs import exports as downloads
from discreet.server.jobs import release_jobs as jobs
from discreet.server.jobs.release_jobs import JobOrder, JobQueue, JobRow
from discreet.server.jobs.runner import JobRunner
from discreet.server.ledger_view import UserBudgets
from discreet.server.middleware import monitoring as log
from discreet.server.middleware.errors import Busy, Forbidden, NotFound, as_invalid_argument
from discreet.server.middleware.monitoring import Note
from discreet.server.schemas import (
    AuditStatusInfo,
    BudgetInfo,
    DownloadInfo,
    JobInfo,
    LeakageInfo,
    LedgerInfo,
    NewToken,
    PersonalBudgetsInfo,
    PlanInfo,
    TableInfo,
    UserInfo,
)
from discreet.server.store import open_store
from discreet.server.users import ROLES, Role, User, UserRecord, UserStore
from discreet.spec import table as declared
from discreet.tables.range_release import AnyRangeRelease
from discreet.tables.release import Release

_PATIENCE_S = 30.0
_MOST_DAYS = 10_000
"""More than a token may last, and less than what a date can hold."""


class Service:
    """The service of one process; several share their store and ledger."""

    def __init__(self, config: Config, *, note: Note | None = None) -> None:
        self.config = config
        self.store = open_store(config.store)
        self.shared_ledger = Ledger(config.ledger)
        self.users = UserStore(self.store)
        self.budgets = UserBudgets(config, self.store, self.shared_ledger)
        self.queue = JobQueue(self.store, config.rates)
        self.audits = findings.Audits(self.store)
        self.runner = JobRunner(
            config, self.queue, self.budgets, tables.TableOpener(), note=note or log.failure
        )

    # ── tables and plans ─────────────────────────────────────────────────────

    def tables(self, who: User) -> tuple[TableInfo, ...]:
        """All tables, as they are declared."""
        _only(who, "owner", "analyst")
        return tuple(self._shown(who, table) for table in self.config.tables.values())

    def table(self, who: User, name: str) -> TableInfo:
        """One table, as it is declared."""
        _only(who, "owner", "analyst")
        return self._shown(who, self._table(name))

    def plan(
        self,
        who: User,
        table: str,
        statistics: Sequence[Mapping[str, Any]],
        *,
        compare: bool = False,
    ) -> PlanInfo:
        """What statistics would cost and how exact they would be; nothing is read or spent.

        With ``compare`` other mechanisms at the same price, and the error at other prices.
        """
        _only(who, "owner", "analyst")
        config = self._table(table)
        found = planning.price_request(config, statistics)
        account = self.budgets.paying(who, config)
        shown = None if account is None else self._budget(account, config)
        return planning.plan(config, found, account=account, shown=shown, compare=compare)

    # ── releases ─────────────────────────────────────────────────────────────

    def submit(
        self, who: User, table: str, statistics: Sequence[Mapping[str, Any]], *, request_id: str
    ) -> JobInfo:
        """Ask for a release: charged, carried out in the background, and kept.

        The same ``request_id`` again is the same release, charged once; with another question it
        is refused.
        """
        _only(who, "owner", "analyst")
        config = self._table(table)
        jobs.check_request(request_id)
        found = planning.price_request(config, statistics)
        account = self.budgets.paying(who, config)
        known = self.queue.find(who.name, request_id)
        if known is None:
            if self.runner.stopping:
                raise Busy("The server is about to stop; nothing was spent. Send it again.")
            if account is None:
                raise Forbidden("You have no budget for this table: ask the owner for one.")
            planning.check_affordable(found, account)
        order = JobOrder(
            person=who.name,
            request_id=request_id,
            table=config.name,
            statistics=found.text,
            title=found.title,
            worth=planning.guarantee_line(found),
            account="" if account is None else account.name,
        )
        row = self.queue.submit(order)
        self.runner.wake()
        return self._job(row)

    def job(self, who: User, number: str) -> JobInfo:
        """A release, with its result if it is done."""
        return self._job(self._own(who, number))

    def over(self, number: str) -> bool | None:
        """Whether a job ended in this process; None if it may have ended elsewhere."""
        return True if number in self.runner.finished else None

    def releases(self, who: User) -> tuple[JobInfo, ...]:
        """The caller's releases, newest first, without results; the owner sees everybody's."""
        _only(who, "owner", "analyst")
        rows = self.queue.listed(None if who.role == "owner" else who.name)
        return tuple(self._job(row) for row in rows)

    def result(self, who: User, number: str) -> tuple[list[Release], list[AnyRangeRelease]]:
        """The released numbers as objects, for pictures."""
        return downloads.objects(self._done(who, number))

    def release_file(self, who: User, number: str, kind: downloads.Kind) -> DownloadInfo:
        """A finished release as JSON, CSV or one HTML page."""
        row = self._done(who, number)
        config = self._table(row.subject)
        return downloads.download(row, config, kind)

    # ── ledger, audits, models ───────────────────────────────────────────────

    def ledger(self, who: User, *, verify: bool = False) -> LedgerInfo:
        """Budgets over time: an analyst's own, or all of them for owner and auditor."""
        everything = who.role in ("owner", "auditor")
        accounts = self.shared_ledger.accounts() if everything else self._accounts_of(who)
        checked = overview.verification(self.shared_ledger) if everything and verify else None
        return LedgerInfo(
            accounts=overview.account_infos(accounts, self.budgets), verification=checked
        )

    def audit(self, who: User) -> AuditStatusInfo:
        """What is claimed of mechanisms, what is exact, and what an attack shows."""
        _only(who, *ROLES)
        return self.audits.shown()

    def start_audit(self, who: User) -> AuditStatusInfo:
        """Audit every mechanism again, in the background."""
        _only(who, "owner", "auditor")
        self.audits.start()
        return self.audits.shown()

    def leakage(self, who: User, model: Mapping[str, Any]) -> LeakageInfo:
        """What published means of a panel leak under a public model; no data are read."""
        _only(who, "owner", "analyst")
        return findings.leakage(model)

    def models(self, who: User) -> Mapping[str, Mapping[str, Any]]:
        """Models for `leakage` that one can begin with."""
        _only(who, "owner", "analyst")
        return findings.MODELS

    def personal(self, who: User) -> tuple[PersonalBudgetsInfo, ...]:
        """Personal budgets by level of consent; exact, so for the owner alone."""
        _only(who, "owner")
        return findings.personal_budgets_info(self.shared_ledger)

    # ── people ───────────────────────────────────────────────────────────────

    def me(self, who: User) -> UserInfo:
        """The caller."""
        return next(self._person(one) for one in self.users.known() if one.name == who.name)

    def people(self, who: User) -> tuple[UserInfo, ...]:
        """Everybody, for the owner."""
        _only(who, "owner")
        return tuple(self._person(one) for one in self.users.known())

    def add_person(self, who: User, name: str, role: str, *, days: int = 90) -> NewToken:
        """A token for somebody, who is added if unknown. It is shown this once."""
        _only(who, "owner")
        life = timedelta(days=min(check.count("days", days), _MOST_DAYS))
        token, expires = self.users.add(name, role, life=life)
        return NewToken(
            person=name,
            role=cast("Role", role),
            token=token,
            expires=expires.isoformat(timespec="seconds"),
        )

    def revoke(self, who: User, name: str) -> None:
        """End all tokens and sessions of a person."""
        _only(who, "owner")
        if name == who.name:
            raise InvalidArgument("You cannot revoke yourself; another owner can.")
        self.users.revoke(name)

    def set_limit(self, who: User, name: str, table: str, limit: Mapping[str, float]) -> BudgetInfo:
        """From now on a person may spend this much, in a new account under the table's."""
        _only(who, "owner")
        config = self._table(table)
        with as_invalid_argument("limit"):
            allowance = declared.limit(dict(limit), config.setting.relation)
            account = self.budgets.set_limit(name, config, allowance)
        return tables.budget_info(account.name, account.limit, self.budgets.remaining(account))

    # ── life ─────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to carry out releases."""
        self.runner.start()

    def ready(self) -> bool:
        """Whether store and ledger answer and releases are carried out."""
        try:
            self.queue.waiting()
            for table in self.config.tables.values():
                self.budgets.remaining(self.budgets.of_table(table))
        except PrivacyError:
            return False
        return self.runner.alive and not self.runner.stopping

    def close(self) -> None:
        """Finish what is running, and give back connections."""
        self.runner.stop(seconds=_PATIENCE_S)
        self.store.close()
        self.shared_ledger.close()

    # ── inside ───────────────────────────────────────────────────────────────

    def _table(self, name: str) -> TableConfig:
        found = self.config.tables.get(name)
        if found is None:
            raise NotFound("There is no such table.")
        return found

    def _shown(self, who: User, table: TableConfig) -> TableInfo:
        above, own = self.budgets.of_table(table), self.budgets.paying(who, table)
        return tables.table_info(
            table,
            own=None if own is None else self._budget(own, table),
            whole=tables.budget_info(above.name, above.limit, self.budgets.remaining(above)),
        )

    def _budget(self, account: Account, table: TableConfig) -> BudgetInfo:
        """What its holder can really spend: not more than the table has, in the same currency."""
        above = self.budgets.of_table(table)
        left, most = self.budgets.remaining(account), self.budgets.remaining(above)
        same = type(account.limit.event) is type(above.limit.event)
        return tables.budget_info(account.name, account.limit, min(left, most) if same else left)

    def _own(self, who: User, number: str) -> JobRow:
        _only(who, "owner", "analyst")
        row = self.queue.get(number)
        if row is None or (who.role != "owner" and row.person != who.name):
            raise NotFound("There is no such release.")
        return row

    def _done(self, who: User, number: str) -> JobRow:
        row = self._own(who, number)
        if row.state != "done":
            raise NotFound("There is no result (yet).")
        return row

    def _job(self, row: JobRow) -> JobInfo:
        return downloads.job(row, stage=self.runner.stage(row.id))

    def _accounts_of(self, who: User) -> list[Account]:
        found = [self.budgets.of(who.name, table) for table in self.config.tables.values()]
        return [account for account in found if account is not None]

    def _person(self, one: UserRecord) -> UserInfo:
        budgets = {}
        for table in self.config.tables.values():
            account = self.budgets.of(one.name, table)
            if account is not None:
                left = self.budgets.remaining(account)
                budgets[table.name] = tables.budget_info(account.name, account.limit, left)
        ends = None if one.expires is None else datetime.fromtimestamp(one.expires / 1000, tz=UTC)
        return UserInfo(
            name=one.name,
            role=one.role,
            revoked=one.revoked,
            expires=None if ends is None else ends.isoformat(timespec="seconds"),
            budgets=budgets,
        )


def _only(who: User, *roles: Role) -> None:
    if who.role not in roles:
        raise Forbidden(f"This is for {' and '.join(roles)}; you are {who.role}.")
