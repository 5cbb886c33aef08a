"""Accounts of a ledger: the only way to spend budget."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from types import TracebackType
from typing import Self

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, RelationMismatch
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation
from discreet.ledger import _entries, _integrity
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
from discreet.ledger._limit_words import cost_words, limit_words
from discreet.ledger.statement import SHOWN, Charge, Statement, make_statement
from discreet.ledger.store import Session, Store, StoreClosed, StoreFailure
from discreet.noise.random_source import RandomSource

SPENDING = ("charge", "reserve")
MOST_KINDS = 64  # distinct events up to which the whole composition is computed for a grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receipt of a charge: what was charged, and where it is recorded.

    Attributes:
        account: Name of the account.
        sequence: Number of the entry in the account, from 1.
        hash: Hash of the entry, in hexadecimal.
        guarantee: What was charged.
        label: Text of the entry.
        time: When it was charged (UTC).
        request_id: Your identifier of the request, or None.
        replayed: Whether the same `request_id` had been charged before. Then nothing more was
            spent.
        durable: Whether the entry survives the process. False for a ledger in memory.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
        >>> receipt = account.charge(discreet.pure_dp(0.25), label="count of members")
        >>> receipt.label, receipt.replayed, receipt.durable
        ('count of members', False, False)
    """

    account: str
    sequence: int
    hash: str
    guarantee: Guarantee
    label: str
    time: datetime
    request_id: str | None
    replayed: bool = False
    durable: bool = True


@dataclass(frozen=True, slots=True)
class Account:
    """A privacy budget in a ledger, opened with `Ledger.account`.

    All objects with the same name spend from the same budget, also in other processes. A table
    charges its account before it reads any data.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
        >>> receipt = account.charge(discreet.pure_dp(0.25), label="count of members")
        >>> account.remaining
        Fraction(3, 4)

    See Also:
        [Keep a ledger](../how-to/ledger.md).
    """

    _store: Store = field(repr=False)
    _levels: tuple[AccountLevel, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the account in its ledger."""
        return self._own.name

    @property
    def limit(self) -> Guarantee:
        """Guarantee that may be spent in one period."""
        return self._own.limit

    @property
    def relation(self) -> NeighboringRelation:
        """Neighboring relation of the limit and of every charge."""
        return self._own.limit.relation

    @property
    def policy(self) -> Policy:
        """Other terms of the account: composition, orders, adaptivity and renewals."""
        return self._own.policy

    @property
    def durable(self) -> bool:
        """Whether charges survive the process: False in a ledger in memory."""
        return self._store.durable

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent accounts, root first, that are charged with this one."""
        return tuple(level.name for level in self._levels[:-1])

    @property
    def expires(self) -> datetime | None:
        """Time after which charges are refused, or None."""
        text = self._row().expires
        return None if text is None else _entries.moment(text)

    @property
    def period(self) -> int:
        """Number of renewals so far."""
        return self._row().period

    @property
    def head(self) -> str:
        """Number of entries and hash of the last entry.

        Store it elsewhere and pass it to `Ledger.verify` to detect later tampering.
        """
        row = self._row()
        return f"{row.entries}:{row.head}"

    @property
    def spent(self) -> Guarantee:
        """Guarantee of everything that was charged in this period.

        `account.spent.epsilon(delta)` composes the charges with the best accountant.
        """
        with self._store.read() as session:
            event = _integrity.composed_event(session, _entries.get(session, self._own.id))
        return Guarantee(event, self.relation)

    @property
    def remaining(self) -> Fraction:
        """Budget that is left in this period, rounded down, in the unit of the limit.

        The unit is epsilon for a pure DP limit, rho for zCDP, mu for GDP. For an (epsilon, delta)
        limit it is the largest pure epsilon that would still be granted. Parent accounts may have
        less.
        """
        state = AccountTotals.read(self._row().state)
        mode = state.mode or self._own.rule.mode(events.NOTHING)
        return self._own.rule.remaining(state.sums, mode)

    @property
    def history(self) -> tuple[LedgerEntry, ...]:
        """Entries of the account, oldest first."""
        with self._store.read() as session:
            return tuple(_entries.entries(session, self._own.id, self.relation))

    def statement(self, *, most: int = SHOWN) -> Statement:
        """State what each release of this period cost, what it added, and what is left.

        Args:
            most: Releases that are listed one by one; those before them are one line.

        Returns:
            A statement that adds up, in the measure of the limit. Printed, it is a table.

        Raises:
            InvalidArgument: `most` is not a whole number above zero.

        Privacy:
            It tells what was released, and nothing of the data.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
            >>> receipt = account.charge(discreet.pure_dp(0.25), label="count of members")
            >>> statement = account.statement()
            >>> statement.total, statement.left
            (0.25, 0.75)
        """
        listed = check.count("most", most)
        with self._store.read() as session:
            row = _entries.get(session, self._own.id)
            entries = tuple(_entries.entries(session, self._own.id, self.relation))
        state = AccountTotals.read(row.state)
        charges = tuple(
            Charge(
                entry=one.sequence,
                time=one.time,
                label=one.label,
                outcome=one.outcome or "released",
                guarantee=one.guarantee,
            )
            for one in entries
            if one.guarantee is not None and one.period == row.period and one.kind in SPENDING
        )
        mode = state.mode or self._own.rule.mode(events.NOTHING)
        return make_statement(
            self.name,
            self.limit,
            charges,
            standing=(self._own.rule, state.sums, mode),
            most=listed,
        )

    def can_afford(self, guarantee: Guarantee) -> bool:
        """Check whether a charge would be granted now, without spending anything.

        Args:
            guarantee: Guarantee of the planned release.

        Returns:
            True if this account and all its parents have enough budget. Another process may spend
            it before you do.

        Raises:
            NotCertified: `guarantee` is not a `Guarantee`.
            RelationMismatch: The guarantee is under another neighboring relation.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
            >>> account.can_afford(discreet.pure_dp(2))
            False
        """
        self._check(guarantee)
        with self._store.read() as session:
            try:
                for level, row in zip(self._levels, self._check_terms(session), strict=True):
                    self._granted(session, level, row, guarantee.event, _entries.now())
            except BudgetExceeded:
                return False
        return True

    def charge(self, guarantee: Guarantee, *, label: str, request_id: str | None = None) -> Receipt:
        """Charge a release to the account and to its parents, or spend nothing.

        Use `charge` for releases that you make outside a table. Charge before you read the data.

        Args:
            guarantee: Guarantee of the release, under the relation of the account.
            label: Text for the ledger entry, such as a description of the query.
            request_id: Your identifier of the request. If it is charged again, you receive the
                first receipt and nothing more is spent. Publish one result only.

        Returns:
            The receipt. The entry is on disk when this method returns.

        Raises:
            BudgetExceeded: The account or a parent cannot pay, or has expired. Nothing was spent.
            NotCertified: `guarantee` is not a `Guarantee`.
            RelationMismatch: The guarantee is under another neighboring relation.
            InvalidArgument: `request_id` was used for another release.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
            >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
            >>> receipt = account.charge(mechanism.guarantee, label="number of members")
            >>> account.remaining
            Fraction(1, 2)
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
        """Charge a release before the data are read, and record its outcome later.

        Use the result in a `with` statement: it records whether the block released its result or
        failed. A failed release stays charged, because the failure itself can reveal information
        about the data.

        Args:
            guarantee: Guarantee of the release, under the relation of the account.
            label: Text for the ledger entry.
            private: Whether the noise comes from a private random source. False is refused.
            request_id: Your identifier of the request. After a crash, the same identifier resumes
                the reservation. It is refused once the outcome was recorded.

        Returns:
            A reservation with `receipt` and `settle(outcome)`.

        Raises:
            BudgetExceeded: The account or a parent cannot pay, or has expired. Nothing was spent.
            NotCertified: `private` is False, or `guarantee` is not a `Guarantee`.
            RelationMismatch: The guarantee is under another neighboring relation.
            InvalidArgument: `request_id` was used for another release, or its outcome was recorded.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
            >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
            >>> with account.reserve(mechanism.guarantee, label="number of members"):
            ...     result = mechanism.release(1_234)
            >>> [entry.kind for entry in account.history]
            ['open', 'reserve', 'settle']
        """
        if not private:
            raise NotCertified(
                "A release from seeded bits is not private and cannot be charged; use system_rng()."
            )
        request = None if request_id is None else _entries.printable("request_id", request_id)
        return Reservation(self, self._record("reserve", guarantee, label=label, request=request))

    def renew(self, *, reason: str, expires: datetime | None = None) -> None:
        """Start a new period in which the whole limit may be spent again.

        Over its life the account may spend its limit `1 + renewals` times.

        Args:
            reason: Why the budget is renewed. It is recorded in the ledger.
            expires: End of the new period (UTC if it has no time zone). Required if the account
                expires.

        Raises:
            BudgetExceeded: The account was renewed as often as its terms allow.
            InvalidArgument: `expires` is missing or is not a time.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> account = ledger.account("monthly", limit=discreet.pure_dp(1), renewals=11)
            >>> receipt = account.charge(discreet.pure_dp(1), label="January")
            >>> account.renew(reason="February")
            >>> account.remaining
            Fraction(1, 1)
        """
        words = _entries.printable("reason", reason)
        until = None if expires is None else _entries.stamp("expires", expires)
        with self._store.write() as session:
            row = self._own_row(session)
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
            state = AccountTotals(sums=self._own.rule.zero, tallied=0)
            found = _entries.append(
                session, row, content, state=state, period=row.period + 1, expires=until
            )
        self._remember(row, found)

    def __repr__(self) -> str:
        kept = "" if self.durable else ", in memory, not durable"
        return f"Account({self.name!r}, limit: {limit_words(self.limit)}{kept})"

    def __copy__(self) -> Self:
        """Itself: copies of what holds an account spend from the same one."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Account], tuple[Store, tuple[AccountLevel, ...]]]:
        """A pickle holds the terms, not the ledger: what is read from it refuses to spend."""
        return Account, (StoreClosed(), self._levels)

    @property
    def _address(self) -> tuple[Store, tuple[AccountLevel, ...]]:
        """What opens it again, also from a pickle where the ledger is a file."""
        return self._store, self._levels

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
            price = level.rule.price(guarantee.event)
            if not level.rule.allows(price, level.rule.mode(guarantee.event)):
                level.rule.allows_exactly(guarantee.event)
        with self._store.write() as session:
            receipt, wrote = self._record_in(session, kind, guarantee, label=words, request=request)
        for row, found in wrote:  # on disk now
            self._remember(row, found)
        return receipt

    def _record_in(
        self,
        session: Session,
        kind: str,
        guarantee: Guarantee,
        *,
        label: str,
        request: str | None = None,
    ) -> tuple[Receipt, list[tuple[AccountRow, str]]]:
        """Lock every level, root first, decide everywhere, write everywhere."""
        event = guarantee.event
        rows = [_entries.get(session, x.id, lock=self._store.lock) for x in self._levels]
        _integrity.check_accounts(session, rows, self._levels, seen=self._store.seen)
        if request is not None:
            known = self._replayed(session, rows[-1], request, guarantee, kind=kind)
            if known is not None:
                return known, []
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
        wrote = [
            (row, self._write(session, row, {**content, "origin": origin}, state, event))
            for row, state in zip(rows[:-1], states[:-1], strict=True)
        ]
        own = {**content, "request": request}
        found = self._write(session, rows[-1], own, states[-1], event)
        receipt = self._receipt(own, guarantee, rows[-1].entries + 1, found)
        return receipt, [*wrote, (rows[-1], found)]

    def _check_terms(self, session: Session) -> list[AccountRow]:
        """The rows of all levels, which must be what the accounts were opened as."""
        rows = [_entries.get(session, level.id) for level in self._levels]
        _integrity.check_accounts(session, rows, self._levels)
        return rows

    def _own_row(self, session: Session) -> AccountRow:
        """The own row, locked and checked: the next entry would make lowered sums good."""
        row = _entries.get(session, self._own.id, lock=self._store.lock)
        above = self._levels[-2] if len(self._levels) > 1 else None
        _integrity.check_account(session, row, self._own, above=above, seen=self._store.seen)
        return row

    def _remember(self, row: AccountRow, found: str) -> None:
        _integrity.remember(self._store.seen, row, entries=row.entries + 1, head=found)

    def _write(
        self,
        session: Session,
        row: AccountRow,
        content: _entries.Content,
        state: AccountTotals,
        event: Event,
    ) -> str:
        tallied = state.tallied
        if tallied is None:
            tallied = _integrity.replayed_tallies(session, row)
        tallied += int(_entries.encode_event(event)[1], 16)
        state = replace(state, tallied=tallied % _entries.TALLY_SIZE)
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
                f"{guarantee.relation!r}; convert explicitly, e.g. with to_replace_one(), or open "
                "an account whose limit has that relation, e.g. approx_dp(..., relation=...)."
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
        # `tallied` is still that of before: `_write` adds the event.
        after = replace(before, sums=add(before.sums, level.rule.price(event)), mode=mode)
        if level.rule.allows(after.sums, mode):
            return after
        if not before.mode:
            # The first batch of a period was fixed before any output. What the filter cannot
            # afford leaves sums beyond it, so that nothing more is granted (docs/theory/ledger.md).
            if level.rule.allows_exactly(event):
                return after
        elif not level.policy.adaptive:
            whole = events.compose((_integrity.composed_event(session, row), event))
            kinds = len(whole.parts) if isinstance(whole, events.ComposedEvent) else 1
            if kinds <= MOST_KINDS and level.rule.allows_exactly(whole):
                return after
        why = level.rule.shortage(before.sums, after.sums, mode)
        raise BudgetExceeded(
            f"Account {level.name!r}: {cost_words(event, level.limit)} would pass the limit "
            f"({limit_words(level.limit)}): {why}; nothing was spent."
        )

    def _replayed(
        self,
        session: Session,
        row: AccountRow,
        request: str,
        guarantee: Guarantee,
        *,
        kind: str,
    ) -> Receipt | None:
        """What a request was charged already; a settled reservation pays for nothing more."""
        found = session.run(
            "SELECT content, hash FROM entries WHERE account = ? AND request = ?",
            *(self._own.id, request),
        )
        if not found:
            return None
        content = _integrity.check_request(row, request, *found[0])
        if _entries.decode_event(content["event"]) != guarantee.event:
            raise InvalidArgument(
                f"request_id {request!r} was used for another event; nothing was spent. "
                "Take a new request_id."
            )
        if content["kind"] != kind or _integrity.is_settled(session, row, content["sequence"]):
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
            durable=self.durable,
        )

    def _settle(self, sequence: int, outcome: Outcome) -> None:
        if outcome not in ("released", "failed"):
            raise InvalidArgument(f"outcome must be 'released' or 'failed', got {outcome!r}.")
        with self._store.write() as session:
            row = self._own_row(session)
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
            found = _entries.append(session, row, content, expires=row.expires)
        self._remember(row, found)


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
