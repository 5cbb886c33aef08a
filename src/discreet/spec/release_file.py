"""Release files: TOML that names a table, its columns, an account and statistics.

Also what the account of a file says about a cost, for plan and release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.ledger._filter_rules import rule_for
from discreet.ledger._limit_words import limit_measure, limit_words
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.query._release_plan import ReleasePlan
from discreet.spec import table as declared
from discreet.spec.budget_arithmetic import (
    cost_amount,
    limit_amount,
    share_of_limit,
    smallest_factor,
)
from discreet.spec.statistics import ReleaseSpec, release_spec

# ── The file ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile(ReleaseSpec):
    """A checked release file. Nothing has been opened yet."""

    title: str
    source: str
    delimiter: str
    records: Literal["lines", "quoted"]
    engine: Literal["spark"] | None
    spark: str | None
    ledger: str
    account: str
    limit: Guarantee | None


def read(path: Path) -> ReleaseFile:
    """Read and check a release file; every error names its section."""
    content = declared.read(path, ("title", "table", "columns", "account", "statistic"))
    table = declared.section(content, "table", declared.TABLE)
    account = declared.section(content, "account", ("ledger", "name", "limit"))
    setting = declared.table_spec(table, content.get("columns"))
    given = account.get("limit")
    checked = release_spec(
        content.get("statistic"), setting=setting, limit=given, folder=path.parent
    )
    return ReleaseFile(
        title=str(content.get("title", path.stem)),
        source=declared.source(declared.text(table, "table", "source"), path.parent),
        delimiter=table.get("delimiter", ","),
        records=table.get("records", "lines"),
        engine=table.get("engine"),
        spark=table.get("spark"),
        setting=setting,
        ledger=declared.ledger(declared.text(account, "account", "ledger"), path.parent),
        account=declared.text(account, "account", "name"),
        limit=None if given is None else declared.limit(given, setting.relation),
        statistics=checked.statistics,
        ranges=checked.ranges,
        marginals=checked.marginals,
    )


# ── Its account ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """An account before a release; ``account`` is None if it will be opened by it."""

    name: str
    limit: Guarantee
    account: Account | None

    @property
    def remaining(self) -> float:
        """What is left, in the measure of the limit."""
        if self.account is not None:
            return float(self.account.remaining)
        return limit_amount(self.limit)

    def can_afford(self, cost: Guarantee) -> bool:
        """Whether the cost would be granted now."""
        if self.account is not None:
            return self.account.can_afford(cost)
        rule = rule_for(self.limit)
        price = rule.price(cost.event)
        return rule.allows(price, rule.mode(cost.event)) or rule.allows_exactly(cost.event)

    def share(self, cost: Guarantee) -> float:
        """The part of the whole limit that a cost takes by itself."""
        amount, limit = cost_amount(cost, self.limit), limit_amount(self.limit)
        return share_of_limit(amount, limit, measure=limit_measure(self.limit))


def budget_status(file: ReleaseFile) -> BudgetStatus:
    """Look at the ledger without creating it."""
    path = file.ledger.removeprefix("sqlite:///")
    if file.ledger.startswith("sqlite:///") and not Path(path).exists():
        account = None
    else:
        with Ledger(file.ledger) as ledger:
            found = {account.name: account for account in ledger.accounts()}
        account = found.get(file.account)
    if account is not None and file.limit not in (None, account.limit):
        raise InvalidArgument(
            f"account: {file.account!r} exists with the limit {limit_words(account.limit)}, "
            "which never changes; leave limit out, or take another name."
        )
    limit = file.limit if account is None else account.limit
    if limit is None:
        raise InvalidArgument(
            f"account: there is no {file.account!r} in the ledger yet; give limit to open it."
        )
    return BudgetStatus(name=file.account, limit=limit, account=account)


def relaxation(file: ReleaseFile, planned: ReleasePlan, found: BudgetStatus) -> float | None:
    """How many times as wide all targets must be to fit into what is left; None if that is no use.

    A hundredth part too wide at most; the answer has been checked.
    """

    def fits(factor: Fraction) -> bool:
        wider = replace(
            file.relaxed(factor).design(), ranges=planned.ranges, marginals=planned.marginals
        )
        return found.can_afford(wider.guarantee)

    return smallest_factor(fits)


def account_text(account: Account) -> str:
    """The budget after a release."""
    left, kind = float(account.remaining), account.limit.event
    what = "a pure epsilon of " if isinstance(kind, events.ApproxEvent) else ""
    return f"account {account.name!r}: limit {limit_words(account.limit)}, left {what}{short(left)}"
