"""Entries of the ledger: their canonical text, the chain of their hashes, and their rows.

Also the policy and the limits of an account as they are stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical_json as written
from discreet.core import events
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation
from discreet.ledger._filter_rules import Composition, FilterRule, Sums, rule_for
from discreet.ledger.store import Session, StoreFailure

Kind: TypeAlias = Literal["open", "charge", "reserve", "settle", "renew"]
Outcome: TypeAlias = Literal["released", "failed"]
Content: TypeAlias = dict[str, Any]

GENESIS = "0" * 64
LONGEST = 200
TALLY_SIZE = 1 << 256
EVERYONE = ""  # the one cohort there is until budgets are personal
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    PrivacyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading rows ends in where somebody has written something else into them."""
_COLUMNS = "id, name, parent, allowance, policy, expires, period, entries, head, state"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One line of an account's history."""

    account: str
    sequence: int
    kind: Kind
    time: datetime
    label: str
    guarantee: Guarantee | None
    outcome: Literal["released", "failed", "open"] | None
    request_id: str | None
    origin: str | None
    period: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account as it stands: its terms, which never change, and what moves with each entry."""

    id: int
    name: str
    parent: int | None
    allowance: str
    policy: str
    expires: str | None
    period: int
    entries: int
    head: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTotals:
    """The running sums of the current period and how they compose ("" before the first)."""

    sums: Sums
    mode: str = ""
    tallied: int | None = None
    """Sum of the digests of all events of the period, which the tallies must have, too; None where
    version 0.1 wrote the last entry."""

    def content(self) -> Content:
        """As JSON; rationals as p/q."""
        found: Content = {
            "mode": self.mode,
            "sums": [None if x is None else written.ratio(x) for x in self.sums],
        }
        return found if self.tallied is None else {**found, "tallied": f"{self.tallied:x}"}

    @classmethod
    def read(cls, text: str) -> AccountTotals:
        """The inverse of ``content``."""
        found = json.loads(text)
        sums = tuple(None if x is None else Fraction(x) for x in found["sums"])
        tallied = found.get("tallied")
        return cls(
            sums=sums, mode=found["mode"], tallied=None if tallied is None else int(tallied, 16)
        )


# ── Text and hash ────────────────────────────────────────────────────────────────────────────────


def canonical(content: Content) -> str:
    """One text for one content: sorted keys, no spaces, ASCII."""
    return written.text(content)


def digest(text: str) -> str:
    """SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def printable(name: str, value: object, *, empty: bool = False) -> str:
    """A short line of the analyst's own words; it must not come from the data."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, got {type(value).__name__}.")
    if len(value) > LONGEST or not value.isprintable() or not (value.strip() or empty):
        raise InvalidArgument(
            f"{name} must be 1 to {LONGEST} printable characters, got {len(value)} characters."
        )
    return value


def now() -> str:
    """The time in UTC, in one format that sorts."""
    return stamp("time", datetime.now(tz=UTC))


def stamp(name: str, value: object) -> str:
    """A time with its zone as text that sorts."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidArgument(f"{name} must be a datetime with a time zone, e.g. UTC.")
    try:
        found = value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise InvalidArgument(f"{name} must be between the years 1 and 9999 in UTC.") from None
    return found.isoformat(timespec="microseconds") + "Z"  # years have four digits, so it sorts


def moment(text: str) -> datetime:
    """The inverse of ``stamp``."""
    return datetime.fromisoformat(text)


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────


def find(session: Session, name: str) -> AccountRow | None:
    """An account by name, not locked."""
    rows = session.run(f"SELECT {_COLUMNS} FROM accounts WHERE name = ?", name)  # noqa: S608
    return _row(rows[0]) if rows else None


def get(session: Session, number: int, *, lock: str = "") -> AccountRow:
    """An account by its number; ``lock`` holds it until the transaction ends."""
    rows = session.run(
        f"SELECT {_COLUMNS} FROM accounts WHERE id = ?{lock}",  # noqa: S608 — our own words
        number,
    )
    if not rows:
        raise StoreFailure(f"Account {number} is gone from the ledger. Run Ledger.verify().")
    return _row(rows[0])


def all_accounts(session: Session) -> list[AccountRow]:
    """All accounts, parents before children."""
    return [_row(row) for row in session.run(f"SELECT {_COLUMNS} FROM accounts ORDER BY id")]  # noqa: S608


def _row(values: tuple[Any, ...]) -> AccountRow:
    return AccountRow(**dict(zip(_COLUMNS.split(", "), values, strict=True)))


def append(
    session: Session,
    row: AccountRow,
    content: Content,
    *,
    state: AccountTotals | None = None,
    period: int | None = None,
    expires: str | None = None,
) -> str:
    """Write the next entry of an account and move the account along; the entry's hash."""
    after = json.loads(row.state) if state is None else state.content()
    place = {"account": row.name, "sequence": row.entries + 1, "previous": row.head}
    # Each entry tells when charges end: the next one must not have to look for the renewal.
    text = canonical({"expires": expires, **content, **place, "state": after})
    found = digest(text)
    session.run(
        "INSERT INTO entries (account, sequence, content, hash, request, settles) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        *(row.id, row.entries + 1, text, found, content.get("request"), content.get("settles")),
    )
    session.run(
        "UPDATE accounts SET entries = ?, head = ?, state = ?, period = ?, expires = ? "
        "WHERE id = ?",
        row.entries + 1,
        found,
        canonical(after),
        row.period if period is None else period,
        expires,
        row.id,
    )
    return found


@lru_cache(maxsize=4096)
def encode_event(event: Event) -> tuple[str, str, Content]:
    """The text of an event, its digest and its content (shared: not to be changed)."""
    text = events.to_json(event)
    return text, digest(text), json.loads(text)


def tally(session: Session, row: AccountRow, event: Event) -> None:
    """Count an event of the current period."""
    text, found, _ = encode_event(event)
    session.run(
        "INSERT INTO tallies (account, period, cohort, digest, event, number) "
        "VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (account, period, cohort, digest) "
        "DO UPDATE SET number = tallies.number + 1",
        *(row.id, row.period, EVERYONE, found, text),
    )


def tallies(session: Session, row: AccountRow) -> list[tuple[str, int, str]]:
    """All events of the current period: text, count and digest."""
    rows = session.run(
        "SELECT event, number, digest FROM tallies WHERE account = ? AND period = ? "
        "ORDER BY digest",
        *(row.id, row.period),
    )
    return [(text, number, found) for text, number, found in rows]


def composed(rows: Iterable[tuple[str, int, str]]) -> Event:
    """All events, each with its count, as one."""
    parts = tuple((events.from_json(text), number) for text, number, _ in rows)
    return events.compose((events.ComposedEvent(parts),))


def is_settled(session: Session, number: int, sequence: int) -> bool:
    """Whether it is known what became of a reservation."""
    text = "SELECT 1 FROM entries WHERE account = ? AND settles = ?"
    return bool(session.run(text, number, sequence))


def chain(session: Session, number: int) -> Iterator[tuple[Any, ...]]:
    """Sequence, text, hash, request and settled reservation of every entry, in order, in pages."""
    last = 0
    while True:
        page = session.run(
            "SELECT sequence, content, hash, request, settles FROM entries "
            "WHERE account = ? AND sequence > ? ORDER BY sequence LIMIT 1000",
            *(number, last),
        )
        if not page:
            return
        yield from page
        last = page[-1][0]


def entries(session: Session, number: int, relation: NeighboringRelation) -> Iterator[LedgerEntry]:
    """The entries of an account with the outcome of each reservation."""
    try:
        outcomes = {
            settles: json.loads(text)["outcome"]
            for (settles, text) in session.run(
                "SELECT settles, content FROM entries WHERE account = ? AND settles IS NOT NULL",
                number,
            )
        }
        for sequence, text, found, _, _ in chain(session, number):
            content = json.loads(text)
            outcome = content.get("outcome")
            if content["kind"] in ("charge", "reserve") and "origin" not in content:
                waits = "open" if content["kind"] == "reserve" else "released"
                outcome = outcomes.get(sequence, waits)
            yield entry(content, found, relation=relation, outcome=outcome)
    except UNREADABLE as error:
        damaged = StoreFailure("An entry of the account cannot be read. Run Ledger.verify().")
        raise error if isinstance(error, StoreFailure) else damaged from None


def entry(
    content: Content, found: str, *, relation: NeighboringRelation, outcome: Any
) -> LedgerEntry:
    """What people read of an entry."""
    event = content.get("event")
    return LedgerEntry(
        account=content["account"],
        sequence=content["sequence"],
        kind=content["kind"],
        time=moment(content["time"]),
        label=content.get("label", ""),
        guarantee=None if event is None else Guarantee(decode_event(event), relation),
        outcome=outcome,
        request_id=content.get("request"),
        origin=content.get("origin"),
        period=content["period"],
        hash=found,
    )


def decode_event(event: Content) -> Event:
    """The event inside an entry's content."""
    return events.from_json(json.dumps(event))


# ── Policy and limits of an account ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The terms of an account beside its limit; they never change.

    ``composition`` and ``orders``: how a limit approx(epsilon, delta) composes (rules.ApproxRule).
    ``adaptive=False`` is a promise that no event depends on an earlier output; then the exact
    composition decides where the sums say no. ``renewals``: how often the budget may start anew.
    """

    composition: Composition | None = None
    orders: tuple[float, ...] = ()
    adaptive: bool = True
    renewals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLevel:
    """An account on the way from the root: what is needed to decide there."""

    id: int
    name: str
    limit: Guarantee
    policy: Policy
    rule: FilterRule
    allowance: str = field(repr=False)
    """The limit as it stood in the row."""
    terms: str = field(repr=False)
    """The policy as it stood in the row."""
    opening: str = field(repr=False)
    """Hash of the opening entry; empty where there was none."""


def read_level(row: AccountRow, *, opening: str = "") -> AccountLevel:
    """The terms of an account from its row."""
    limit = Guarantee.from_json(row.allowance)
    policy = read_policy(row.policy)
    rule = rule_for(limit, composition=policy.composition, orders=policy.orders)
    return AccountLevel(
        id=row.id,
        name=row.name,
        limit=limit,
        policy=policy,
        rule=rule,
        allowance=row.allowance,
        terms=row.policy,
        opening=opening,
    )


def opening_hash(session: Session, row: AccountRow) -> str:
    """What names an account beside its name: the hash of its first entry."""
    text = "SELECT hash FROM entries WHERE account = ? AND sequence = 1"
    found = session.run(text, row.id)
    return str(found[0][0]) if found else ""


def policy_content(policy: Policy) -> Content:
    """As JSON."""
    return {
        "adaptive": policy.adaptive,
        "composition": policy.composition,
        "orders": list(policy.orders),
        "renewals": policy.renewals,
    }


def read_policy(text: str) -> Policy:
    """The inverse of ``policy_content``."""
    content = json.loads(text)
    return Policy(**{**content, "orders": tuple(content["orders"])})
