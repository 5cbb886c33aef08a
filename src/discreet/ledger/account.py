"""Accounts of a ledger: the only way to spend budget."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from types import TracebackType
from typing import Self

from discreet.accounting.guarantee import Guarantee, describe
from discreet.core import events
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, RelationMismatch
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation
from discreet.ledger import _entries
from discreet.ledger._entries import (
    LONGEST,
    AccountLevel,
    AccountRow,
    AccountTotals,
    LedgerEntry,
    Outcome,
    Policy,
)
from discreet.ledger._filter_rules import add
from discreet.ledger.store import Session, Store, StoreClosed, StoreFailure
from discreet.noise.random_source import RandomSource

MOST_KINDS = 64  # distinct events up to which the whole composition is computed for a grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of a charge: its place in the chain. ``replayed``: it was there already."""

    account: str
    sequence: int
    hash: str
    guarantee: Guarantee
    label: str
    time: datetime
    request_id: str | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """A budget. Get one from ``Ledger.account``."""

    _store: Store = field(repr=False)
    _levels: tuple[AccountLevel, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Its name in the ledger."""
        return self._own.name

    @property
    def limit(self) -> Guarantee:
        """What may be spent in one period."""
        return self._own.limit

    @property
    def relation(self) -> NeighboringRelation:
        """Who is protected; every charge must be under the same relation."""
        return self._own.limit.relation

    @property
    def policy(self) -> Policy:
        """The other terms."""
        return self._own.policy

    @property
    def parents(self) -> tuple[str, ...]:
        """The accounts above, root first: they are charged together with this one."""
        return tuple(level.name for level in self._levels[:-1])

    @property
    def expires(self) -> datetime | None:
        """When charges end."""
        text = self._row().expires
        return None if text is None else _entries.moment(text)

    @property
    def period(self) -> int:
        """How often the budget was renewed."""
        return self._row().period

    @property
    def head(self) -> str:
        """Number of entries and hash of the last: kept elsewhere, it shows later tampering."""
        row = self._row()
        return f"{row.entries}:{row.head}"

    @property
    def spent(self) -> Guarantee:
        """All that was charged in this period: ``spent.epsilon(delta)`` by the best accountant."""
        with self._store.read() as session:
            event = _entries.composed_event(session, _entries.get(session, self._own.id))
        return Guarantee(event, self.relation)

    @property
    def remaining(self) -> Fraction:
        """What this account has left, rounded down, in the currency of its limit.

        Epsilon of a pure, rho of a zCDP, mu of a Gaussian limit; for approx(epsilon, delta) the
        largest pure epsilon that would still be granted. Accounts above may have less.
        """
        state = AccountTotals.read(self._row().state)
        mode = state.mode or self._own.rule.mode(events.NOTHING)
        return self._own.rule.remaining(state.sums, mode)

    @property
    def history(self) -> tuple[LedgerEntry, ...]:
        """Every entry, oldest first."""
        with self._store.read() as session:
            return tuple(_entries.entries(session, self._own.id, self.relation))

    def can_afford(self, guarantee: Guarantee) -> bool:
        """Whether a charge would be granted now, on every level; nothing is spent or promised."""
        self._check(guarantee)
        with self._store.read() as session:
            try:
                for level in self._levels:
                    row = _entries.get(session, level.id)
                    self._granted(session, level, row, guarantee.event, _entries.now())
            except BudgetExceeded:
                return False
        return True

    def charge(self, guarantee: Guarantee, *, label: str, request_id: str | None = None) -> Receipt:
        """Spend, durably, or raise BudgetExceeded and spend nothing.

        The same ``request_id`` twice is one charge: publish one answer for it, and the same one.
        """
        request = None if request_id is None else _entries.printable("request_id", request_id)
        return self._record("charge", guarantee, label=label, request=request)

    def reserve(
        self,
        guarantee: Guarantee,
        *,
        label: str,
        private: bool = True,
        request_id: str | None = None,
    ) -> Reservation:
        """Spend before the data are read; settle when the release is out or has failed.

        What is reserved stays spent, whatever happens next. ``private=False``, e.g. noise from
        seeded bits, is refused: such a release has no guarantee. The same ``request_id`` twice is
        one reservation: what was lost with a crash may be run again, and one answer published.
        Once it is settled the same ``request_id`` is refused: there would be a second answer.
        """
        if not private:
            raise NotCertified(
                "A release from seeded bits is not private and cannot be charged; use system()."
            )
        request = None if request_id is None else _entries.printable("request_id", request_id)
        return Reservation(self, self._record("reserve", guarantee, label=label, request=request))

    def renew(self, *, reason: str, expires: datetime | None = None) -> None:
        """Start a new period with the whole limit; the policy says how often, the chain why.

        Over its life the account may spend its limit ``1 + renewals`` times.
        """
        words = _entries.printable("reason", reason)
        until = None if expires is None else _entries.stamp("expires", expires)
        with self._store.write() as session:
            row = _entries.get(session, self._own.id, lock=self._store.lock)
            _entries.check_head(session, row)
            if row.period >= self.policy.renewals:
                raise BudgetExceeded(
                    f"Account {self.name!r} may be renewed {self.policy.renewals} times and was "
                    f"renewed {row.period} times; open a new account with its own limit."
                )
            if row.expires is not None and until is None:
                raise InvalidArgument("expires must be given: this account is one that expires.")
            content = {
                "kind": "renew",
                "time": _entries.now(),
                "label": words,
                "period": row.period + 1,
                "expires": until,
            }
            state = AccountTotals(sums=self._own.rule.zero)
            _entries.append(
                session, row, content, state=state, period=row.period + 1, expires=until
            )

    def __repr__(self) -> str:
        return f"Account({self.name!r}, limit={describe(self.limit.event)})"

    def __copy__(self) -> Self:
        """Itself: copies of what holds an account spend from the same one."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Account], tuple[Store, tuple[AccountLevel, ...]]]:
        """A pickle holds the terms, not the ledger: what is read from it refuses to spend."""
        return Account, (StoreClosed(self.name), self._levels)

    @property
    def _own(self) -> AccountLevel:
        return self._levels[-1]

    def _row(self) -> AccountRow:
        with self._store.read() as session:
            return _entries.get(session, self._own.id)

    def _record(
        self, kind: str, guarantee: Guarantee, *, label: str, request: str | None
    ) -> Receipt:
        """One transaction: on every level or on none."""
        self._check(guarantee)
        words = _entries.printable("label", label)
        for level in self._levels:  # what costs time or is refused, before the lock
            level.rule.price(guarantee.event)
        with self._store.write() as session:
            return self._record_in(session, kind, guarantee, label=words, request=request)

    def _record_in(
        self,
        session: Session,
        kind: str,
        guarantee: Guarantee,
        *,
        label: str,
        request: str | None = None,
    ) -> Receipt:
        """Lock every level, root first, decide everywhere, write everywhere."""
        event = guarantee.event
        rows = [_entries.get(session, x.id, lock=self._store.lock) for x in self._levels]
        for row in rows:
            _entries.check_head(session, row)
        if request is not None:
            known = self._replayed(session, request, guarantee, kind=kind)
            if known is not None:
                return known
        time = _entries.now()
        states = [
            self._granted(session, level, row, event, time)
            for level, row in zip(self._levels, rows, strict=True)
        ]
        content = {
            "kind": kind,
            "time": time,
            "label": label,
            "event": _entries.encode_event(event)[2],
            "cohort": _entries.EVERYONE,
        }
        origin = f"{rows[-1].name}#{rows[-1].entries + 1}"
        for row, state in zip(rows[:-1], states[:-1], strict=True):
            self._write(session, row, {**content, "origin": origin}, state, event)
        own = {**content, "request": request}
        found = self._write(session, rows[-1], own, states[-1], event)
        return self._receipt(own, guarantee, rows[-1].entries + 1, found)

    def _write(
        self,
        session: Session,
        row: AccountRow,
        content: _entries.Content,
        state: AccountTotals,
        event: Event,
    ) -> str:
        _entries.tally(session, row, event)
        return _entries.append(
            session, row, {**content, "period": row.period}, state=state, expires=row.expires
        )

    def _check(self, guarantee: Guarantee) -> None:
        if not isinstance(guarantee, Guarantee):
            raise NotCertified(
                f"Only a Guarantee can be charged, got {type(guarantee).__name__}; "
                "take it from a mechanism or from discreet.pure_dp, approx_dp, zcdp, gdp."
            )
        if guarantee.relation is not self.relation:
            raise RelationMismatch(
                f"Account {self.name!r} is under {self.relation!r}, the charge under "
                f"{guarantee.relation!r}; convert explicitly, e.g. with to_replace_one()."
            )

    def _granted(
        self, session: Session, level: AccountLevel, row: AccountRow, event: Event, time: str
    ) -> AccountTotals:
        """The state after the charge, or BudgetExceeded."""
        if row.expires is not None and time >= row.expires:
            raise BudgetExceeded(
                f"Account {level.name!r} expired on {row.expires}; nothing was spent. Renew it."
            )
        before = AccountTotals.read(row.state)
        # Before the first charge no output was seen, so the way to compose may depend on it.
        mode = before.mode or level.rule.mode(event)
        after = AccountTotals(sums=add(before.sums, level.rule.price(event)), mode=mode)
        if level.rule.allows(after.sums, mode):
            return after
        if not level.policy.adaptive:
            whole = events.compose((_entries.composed_event(session, row), event))
            kinds = len(whole.parts) if isinstance(whole, events.ComposedEvent) else 1
            if kinds <= MOST_KINDS and level.rule.allows_exactly(whole):
                return after
        why = level.rule.shortage(before.sums, after.sums, mode)
        raise BudgetExceeded(
            f"Account {level.name!r}: {describe(event)} would pass the limit "
            f"{describe(level.limit.event)}: {why}; nothing was spent."
        )

    def _replayed(
        self, session: Session, request: str, guarantee: Guarantee, *, kind: str
    ) -> Receipt | None:
        """What a request was charged already; a settled reservation pays for nothing more."""
        found = session.run(
            "SELECT content, hash FROM entries WHERE account = ? AND request = ?",
            *(self._own.id, request),
        )
        if not found:
            return None
        content = json.loads(found[0][0])
        if _entries.decode_event(content["event"]) != guarantee.event:
            raise InvalidArgument(
                f"request_id {request!r} was used for another event; nothing was spent. "
                "Take a new request_id."
            )
        if content["kind"] != kind or _entries.is_settled(
            session, self._own.id, content["sequence"]
        ):
            raise InvalidArgument(
                f"request_id {request!r} was used, and what it paid for is out or has failed; "
                "nothing was spent. Take a new request_id."
            )
        receipt = self._receipt(content, guarantee, content["sequence"], found[0][1])
        return replace(receipt, replayed=True)

    def _receipt(
        self, content: _entries.Content, guarantee: Guarantee, sequence: int, found: str
    ) -> Receipt:
        return Receipt(
            account=self.name,
            sequence=sequence,
            hash=found,
            guarantee=guarantee,
            label=content["label"],
            time=_entries.moment(content["time"]),
            request_id=content.get("request"),
        )

    def _settle(self, sequence: int, outcome: Outcome) -> None:
        if outcome not in ("released", "failed"):
            raise InvalidArgument(f"outcome must be 'released' or 'failed', got {outcome!r}.")
        with self._store.write() as session:
            row = _entries.get(session, self._own.id, lock=self._store.lock)
            _entries.check_head(session, row)  # the next entry would make lowered sums good
            if _entries.is_settled(session, row.id, sequence):
                raise InvalidArgument(
                    "This reservation is settled, and stays as it is: it pays for one answer."
                )
            content = {
                "kind": "settle",
                "time": _entries.now(),
                "settles": sequence,
                "outcome": outcome,
                "period": row.period,
            }
            _entries.append(session, row, content, expires=row.expires)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is spent and waits for its release. As a context it settles itself."""

    account: Account
    receipt: Receipt
    _told: list[Outcome] = field(default_factory=list, init=False, repr=False, compare=False)

    def settle(self, outcome: Outcome) -> None:
        """Say what became of it, once; a failure stays spent."""
        self.account._settle(self.receipt.sequence, outcome)  # noqa: SLF001 — its own half
        self._told.append(outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            if not self._told:  # whoever ran the same request and settled first has the one answer
                self.settle("released")
            return
        # The error that ended the block matters more than the note about it.
        with suppress(InvalidArgument, StoreFailure):
            self.settle("failed")


# ── Reservations for callers with an optional account ────────────────────────────────────────────


def reserve_if_charged(
    account: Account | None, guarantee: Guarantee, *, label: str, rng: RandomSource
) -> AbstractContextManager[Reservation | None]:
    """The budget of a release, spent now, if there is an account; then private bits are needed."""
    if account is None:
        return nullcontext()
    if not isinstance(account, Account):
        raise InvalidArgument(
            "account must come from a ledger: discreet.Ledger(...).account(name, limit=...); got "
            f"{type(account).__name__}."
        )
    return account.reserve(guarantee, label=shorten_label(label), private=rng.private)


def shorten_label(label: str) -> str:
    """A label that the journal has room for."""
    return label if len(label) <= LONGEST else label[: LONGEST - 3] + "..."
