"""Check a ledger: every hash, every link, every sum, recomputed from the events alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.core import events
from discreet.ledger import _entries, _personal_budget_rows
from discreet.ledger._entries import (
    UNREADABLE,
    AccountLevel,
    AccountRow,
    AccountTotals,
    Content,
    policy_content,
    read_level,
)
from discreet.ledger._filter_rules import Sums, add
from discreet.ledger.store import Session

# Divergences are floating-point numbers before they are rounded: another machine may differ.
_AGREE = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked and what is wrong; true if nothing is."""

    accounts: int
    entries: int
    problems: tuple[str, ...]
    heads: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


@dataclass(slots=True, kw_only=True)
class _Replay:
    """An account as its entries tell it."""

    row: AccountRow
    terms: AccountLevel
    names: Mapping[int, str]
    entries: int = 0
    head: str = _entries.GENESIS
    period: int = 0
    expires: str | None = None
    state: AccountTotals
    stored: str = ""
    counted: int = 0
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)
    reserved: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    passed: dict[int, str] = field(default_factory=dict)  # hash after each entry

    def link(self, sequence: int, text: str, found: str) -> Iterator[str]:
        """The chain itself."""
        content = json.loads(text)
        if sequence != self.entries + 1:
            yield f"entry {self.entries + 1} is missing"
        if _entries.digest(text) != found:
            yield f"entry {sequence} was edited"
        if (content["account"], content["sequence"]) != (self.row.name, sequence):
            yield f"entry {sequence} stands in another place than it says"
        if content["previous"] != self.head:
            yield f"entry {sequence} does not follow the one before it"
        self.entries, self.head = sequence, found
        self.passed[sequence] = found

    def tell(self, content: Content, request: object, settles: object) -> Iterator[str]:
        """What the entry did."""
        sequence = content["sequence"]
        before, self.stored = self.stored, _entries.canonical(content["state"])
        if content["kind"] == "settle" and self.stored != before:
            yield f"entry {sequence} changes the sums"
        if (content.get("request"), content.get("settles")) != (request, settles):
            yield f"the columns of entry {sequence} differ from its text"
        if (sequence == 1) != (content["kind"] == "open"):
            yield f"entry {sequence} is of the wrong kind"
        told = content.get("expires", self.expires)  # not told by charges of version 0.1
        if content["kind"] not in ("open", "renew") and told != self.expires:
            yield f"entry {sequence} tells another expiry"
        match content["kind"]:
            case "open":
                self.expires = content["expires"]
                yield from self._terms(content)
            case "charge" | "reserve":
                yield from self._charge(content)
            case "settle":
                if settles not in self.reserved or settles in self.settled:
                    yield f"entry {sequence} settles no open reservation"
                self.settled.add(content["settles"])
            case "renew":
                if not self._within():
                    yield f"the charges before entry {sequence} pass the limit"
                self.period += 1
                self.expires = content["expires"]
                self.state = AccountTotals(sums=self.terms.rule.zero)
                self.counted = 0
                if content["period"] != self.period or self.period > self.terms.policy.renewals:
                    yield f"entry {sequence} renews against the policy"
            case _:
                yield f"entry {sequence} is of an unknown kind"

    def _terms(self, content: Content) -> Iterator[str]:
        row, terms = self.row, self.terms
        parent = None if row.parent is None else self.names.get(row.parent, "")
        told = (content["limit"], content["policy"], content["parent"])
        stand = (json.loads(row.allowance), policy_content(terms.policy), parent)
        if told != stand:
            yield "the terms of the account differ from those it was opened with"

    def _charge(self, content: Content) -> Iterator[str]:
        event = _entries.decode_event(content["event"])
        self.tallies[self.period, events.to_json(event)] += 1
        if content["kind"] == "reserve" and "origin" not in content:
            self.reserved.add(content["sequence"])
        if content["period"] != self.period:
            yield f"entry {content['sequence']} belongs to another period"
        rule = self.terms.rule
        first, mode = not self.state.mode, self.state.mode or rule.mode(event)
        self.state = AccountTotals(sums=add(self.state.sums, rule.price(event)), mode=mode)
        told = AccountTotals.read(json.dumps(content["state"]))
        self.counted += int(_entries.encode_event(event)[1], 16)
        if told.tallied not in (None, self.counted % _entries.TALLY_SIZE):
            yield f"entry {content['sequence']} counts other events than there are"
        if told.mode != mode or _below(told.sums, self.state.sums):
            yield f"the sums of entry {content['sequence']} are below what its events cost"
        within = rule.allows(told.sums, mode)
        fixed = first and not within and rule.allows_exactly(event)  # before any output
        if self.terms.policy.adaptive and not within and not fixed:
            yield f"entry {content['sequence']} passes the limit"

    def close(self, session: Session) -> Iterator[str]:
        """The account row and the tallies against the entries."""
        row = self.row
        if (row.entries, row.head) != (self.entries, self.head):
            yield f"the account counts {row.entries} entries, {self.entries} are there"
        if (row.period, row.expires) != (self.period, self.expires):
            yield "the period or the expiry differs from what the entries say"
        if not self._within():
            yield "the charges pass the limit"
        if row.state != self.stored:
            yield "the sums of the account differ from those of its last entry"
        found = session.run(
            "SELECT period, event, number, digest FROM tallies WHERE account = ?", row.id
        )
        counts = Counter({(period, event): number for period, event, number, _ in found})
        if counts != self.tallies or any(_entries.digest(x[1]) != x[3] for x in found):
            yield "the tallies differ from the entries"

    def _within(self) -> bool:
        """The limit, where single entries do not show it: charges that were fixed in advance."""
        rule, mode = self.terms.rule, self.state.mode
        if not mode or rule.allows(self.state.sums, mode):
            return True
        now = [(text, n) for (period, text), n in self.tallies.items() if period == self.period]
        if self.terms.policy.adaptive and sum(n for _, n in now) > 1:
            return True  # each charge was looked at by itself
        whole = events.ComposedEvent(tuple((events.from_json(text), n) for text, n in now))
        return rule.allows_exactly(events.compose((whole,)))


def _below(told: Sums, found: Sums) -> bool:
    """Whether a stored sum claims less than the events cost."""
    return any(
        a is not None and (b is None or a < b * (1 - _AGREE))
        for a, b in zip(told, found, strict=True)
    )


def verify(session: Session, heads: Mapping[str, str]) -> Verification:
    """Replay all accounts of one snapshot."""
    rows = _entries.all_accounts(session)
    names = {row.id: row.name for row in rows}
    placed = {row.id: row for row in rows}
    problems: list[str] = []
    replays: dict[str, _Replay] = {}
    below: Counter[tuple[str, str, str]] = Counter()  # account above, origin, event
    for row in rows:
        try:
            replays[row.name] = replay = _start(row, names)
            problems.extend(f"{row.name}: {x}" for x in _run(session, replay, placed, below))
        except UNREADABLE as error:
            problems.append(f"{row.name}: cannot be read ({type(error).__name__})")
    problems += [
        f"{above}: the charge {origin} is not recorded alike here and there"
        for (above, origin, _), number in below.items()
        if number
    ]
    known = ",".join(str(number) for number in names) or "0"
    strays = session.run(f"SELECT count(*) FROM entries WHERE account NOT IN ({known})")  # noqa: S608
    if strays[0][0]:
        problems.append(f"{strays[0][0]} entries belong to no account")
    crowds = _personal_budget_rows.verify(session, heads)
    problems += crowds.problems
    problems += _unmatched({n: h for n, h in heads.items() if n not in crowds.heads}, replays)
    told = {name: f"{x.entries}:{x.head}" for name, x in replays.items()}
    return Verification(
        accounts=len(rows),
        entries=sum(replay.entries for replay in replays.values()) + crowds.entries,
        problems=tuple(problems),
        heads={**told, **crowds.heads},
    )


def _start(row: AccountRow, names: Mapping[int, str]) -> _Replay:
    terms = read_level(row)
    return _Replay(row=row, terms=terms, names=names, state=AccountTotals(sums=terms.rule.zero))


def _run(
    session: Session,
    replay: _Replay,
    placed: Mapping[int, AccountRow],
    below: Counter[tuple[str, str, str]],
) -> Iterator[str]:
    row = replay.row
    for sequence, text, found, request, settles in _entries.chain(session, row.id):
        content = json.loads(text)
        yield from replay.link(sequence, text, found)
        yield from replay.tell(content, request, settles)
        if content["kind"] in ("charge", "reserve"):
            event = json.dumps(content["event"], sort_keys=True)
            origin = content.get("origin", f"{row.name}#{sequence}")
            if "origin" in content:
                below[row.name, origin, event] += 1
            # Every account above must hold the same charge.
            if "origin" not in content:
                for name in _above(row, placed):
                    below[name, origin, event] -= 1
    yield from replay.close(session)


def _above(row: AccountRow, placed: Mapping[int, AccountRow]) -> Iterator[str]:
    """Accounts above; one that is gone or younger than its child ends the way, as other terms."""
    while row.parent is not None and row.parent in placed and row.parent < row.id:
        row = placed[row.parent]
        yield row.name


def _unmatched(heads: Mapping[str, str], replays: Mapping[str, _Replay]) -> Iterator[str]:
    for name, head in heads.items():
        count, _, found = head.partition(":")
        replay = replays.get(name)
        if replay is None:
            yield f"{name}: the account is gone"
        elif not count.isdigit() or replay.passed.get(int(count)) != found:
            yield f"{name}: the history up to entry {count} is not the one that was kept"
