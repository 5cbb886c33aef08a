"""What the service says: plain records, shown by pages and sent as JSON. None is "unknown"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["queued", "running", "done", "refused", "failed"]
Currency: TypeAlias = Literal["epsilon", "rho", "mu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInfo:
    """A declared column: nothing here was read from the data."""

    name: str
    kind: Literal["integer", "real", "category", "date", "boolean", "text"]
    lower: int | float | str | None = None
    upper: int | float | str | None = None
    levels: tuple[str | int, ...] = ()
    step: float | str | None = None
    """The grid of real numbers, or "day" and "hour" of dates."""
    missing: int | float | str | bool | None = None
    """What stands for a missing value; None or "exclude": nothing, it is left out."""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetInfo:
    """An account as its holder sees it, in the currency of its limit."""

    account: str
    currency: Currency
    limit: float
    remaining: float
    delta: float | None
    limit_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table: declarations and budgets, no data."""

    name: str
    title: str
    description: str
    unit: str | list[Any] | None
    """One column's name, or a list of names and expressions."""
    relation: Literal["add_remove", "replace_one"]
    protects: str
    rows_per_unit: int | None
    groups_per_unit: int | None
    rows_per_unit_and_group: int | None
    rows: int | None
    """A public guess of the number of rows."""
    columns: tuple[ColumnInfo, ...]
    budget: BudgetInfo | None
    """The caller's own account; None if the owner has opened none."""
    table_budget: BudgetInfo
    """The account of the table, which bounds all others together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPoint:
    """The error at one amount."""

    amount: float
    std: float | None
    width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeInfo:
    """Another way to answer the same question for the same price."""

    name: str
    std: float | None
    width: float | None
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticPlanInfo:
    """What one statistic will cost and how exact it will be."""

    name: str
    asked: str
    budget: str
    share: float | None
    """Of the whole limit."""
    groups: int
    std: float | None
    width: float | None
    """The error stays within this with probability ``level``; a rank's share for quantiles."""
    level: float
    rows: int | None
    step: float | None
    """The width of bins, for quantiles."""
    mechanism: str
    target: float | None
    met: bool | None
    amount: Mapping[str, float]
    """What it costs, as it stands in a question; found from the target if there was no amount."""
    alternatives: tuple[AlternativeInfo, ...] = ()
    curve: tuple[ErrorPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInfo:
    """A structure for ranges with its errors at the lengths that are shown."""

    name: str
    rmse: float
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePlanInfo:
    """What all ranges of a column, or rectangles of several, will cost and how exact they are."""

    name: str
    asked: str
    budget: str
    share: float | None
    cells: int
    workload: str
    shown: tuple[str, ...]
    structures: tuple[StrategyInfo, ...]
    """Best first; the first is used."""
    width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInfo:
    """A plan: from public numbers alone; nothing was read or spent."""

    table: str
    statistics: tuple[StatisticPlanInfo, ...]
    ranges: tuple[RangePlanInfo, ...]
    worth: str
    """The guarantee in one line."""
    promise: str
    """The guarantee in plain words."""
    protects: str
    passes: int
    cost: float | None
    """In the currency of the account's limit."""
    share: float | None
    budget: BudgetInfo | None
    after: float | None
    """What would be left of the caller's account."""
    affordable: bool
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A release that was asked for. ``result`` is there when it is done, and never changes."""

    id: str
    request_id: str
    table: str
    person: str
    title: str
    state: State
    progress: str
    asked: str
    """When, in UTC."""
    finished: str | None
    account: str
    worth: str
    error: str | None
    problem: str | None
    """The kind of error, e.g. "budget-exceeded"."""
    statistics: tuple[Mapping[str, Any], ...]
    result: ResultInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInfo:
    """The texts of ``Release.to_json`` and ``ChargedRangeRelease.to_json``, as objects."""

    releases: tuple[Mapping[str, Any], ...]
    ranges: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadInfo:
    """A file to be saved."""

    name: str
    media_type: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInfo:
    """One line of an account's history."""

    sequence: int
    time: str
    kind: str
    label: str
    cost: str | None
    outcome: str | None
    remaining: float | None
    """Of the account, after the entry; None where it did not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLineInfo:
    """A release in the statement of an account, in the measure of its limit."""

    entry: int
    time: str
    label: str
    outcome: str
    alone: str
    added: str
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountInfo:
    """An account with its history."""

    budget: BudgetInfo
    table: str | None
    person: str | None
    parents: tuple[str, ...]
    spent: str
    entries: int
    head: str
    expires: str | None
    history: tuple[EntryInfo, ...]
    statement: tuple[StatementLineInfo, ...]
    """The latest releases of this period: what each cost by itself, added, and the total."""
    statement_words: tuple[str, ...]
    """What was spent and what is left, in sentences."""
    forecast: str
    """When it will be empty at this pace, in words."""
    days_left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationInfo:
    """Whether every hash and sum of the ledger holds."""

    ok: bool
    accounts: int
    entries: int
    problems: tuple[str, ...]
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerInfo:
    """The accounts that the caller may see."""

    accounts: tuple[AccountInfo, ...]
    verification: VerificationInfo | None
    """For owner and auditor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInfo:
    """A mechanism: epsilon claimed, exact and attacked, at the claimed delta."""

    name: str
    delta: float
    claimed: float | None
    exact: float | None
    attacked: float | None
    verdict: str
    ok: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStatusInfo:
    """The table of audits; ``rows`` grows while it runs."""

    state: Literal["not run", "running", "done"]
    rows: tuple[AuditInfo, ...]
    total: int
    time: str | None
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakInfo:
    """What one kind of person leaks at one published time."""

    person: str
    time: str
    leaks: float
    promised: float
    all_values: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentInfo:
    """What the value of one time leaks under a model, and what the noise alone guarantees."""

    time: str
    leaks: float
    promised: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseInfo:
    """Noise as it is, or such as would meet the target; the standard error of a mean."""

    noise: str
    error: float
    leaks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageInfo:
    """What published means of a panel leak under a public model; no panel was read."""

    people: int
    times: int
    delta: float
    rows: tuple[LeakInfo, ...]
    over_time: tuple[MomentInfo, ...]
    noise: tuple[NoiseInfo, ...]
    remarks: tuple[str, ...]
    fixes: tuple[str, ...]
    target: float
    assumptions: tuple[str, ...]
    publication: str
    html: str = field(repr=False)
    """The whole report as one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyLevelInfo:
    """A level of a crowd: how its members' spent budgets are distributed."""

    name: str
    limit: str
    members: int
    counts: tuple[int, ...]
    """Members whose spent share of the limit is in each tenth, from 0-10 % to 90-100 %."""
    mean_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalBudgetsInfo:
    """A crowd of personal budgets."""

    name: str
    members: int
    entries: int
    levels: tuple[PrivacyLevelInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    """A person as the owner sees them."""

    name: str
    role: Literal["owner", "analyst", "auditor"]
    revoked: bool
    expires: str | None
    """Of the token that lasts longest."""
    budgets: Mapping[str, BudgetInfo]
    """By table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token, shown once."""

    person: str
    role: Literal["owner", "analyst", "auditor"]
    token: str = field(repr=False)
    expires: str
