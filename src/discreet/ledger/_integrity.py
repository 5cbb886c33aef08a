"""Whether an account still is what its chain says: asked by each charge, in its transaction.

What is looked at does not grow with the history: the account's row, its opening entry and the one
after it, its last entry, and the entry that this process saw last. The whole chain is the matter
of `verify`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn

from discreet.core.events import Event
from discreet.ledger import _entries
from discreet.ledger._entries import UNREADABLE, AccountLevel, AccountRow, AccountTotals, Content
from discreet.ledger.store import Seen, Session, StoreFailure


def check_accounts(
    session: Session,
    rows: Sequence[AccountRow],
    levels: Sequence[AccountLevel],
    *,
    seen: Seen | None = None,
) -> None:
    """Refuse to go on from accounts that are not what they were opened as, root first.

    ``seen`` only where rows are locked: a snapshot may be older than what another thread saw.
    """
    for place, (row, level) in enumerate(zip(rows, levels, strict=True)):
        above = levels[place - 1] if place else None
        check_account(session, row, level, above=above, seen=seen)


def check_account(
    session: Session,
    row: AccountRow,
    level: AccountLevel,
    *,
    above: AccountLevel | None,
    seen: Seen | None = None,
) -> None:
    """Refuse to go on from an account that does not agree with its opening and its last entry."""
    known = None if seen is None else seen.get(_key(row.id))
    places = {1, 2, row.entries, row.entries + 1, known[0] if known else 1}
    found = session.run(
        f"SELECT sequence, content, hash FROM entries WHERE account = ? "  # noqa: S608
        f"AND sequence IN ({', '.join('?' * len(places))})",
        *(row.id, *places),
    )
    entries = {sequence: (text, digest) for sequence, text, digest in found}
    try:
        _check(session, row, level, above, entries)
    except UNREADABLE as error:
        raise error if isinstance(error, StoreFailure) else _disagreement(row) from None
    if known is not None and (known[0] > row.entries or entries[known[0]][1] != known[1]):
        _refuse(row, f"was set back: entry {known[0]} is not the one that was seen here before")


def remember(seen: Seen, row: AccountRow, *, entries: int, head: str) -> None:
    """Note how far a committed history went; it never becomes shorter."""
    if entries >= seen.get(_key(row.id), (0, ""))[0]:
        seen[_key(row.id)] = (entries, head)


def _key(number: int) -> str:
    return f"account {number}"


def _check(
    session: Session,
    row: AccountRow,
    level: AccountLevel,
    above: AccountLevel | None,
    entries: dict[int, tuple[str, str]],
) -> None:
    if 1 not in entries or row.entries not in entries:
        raise _disagreement(row)
    opening = entries[1]
    differing = _differing(*opening, row.name, row.allowance, row.policy)
    stands = (row.parent, _opened(*opening)["parent"])
    if stands != ((None, None) if above is None else (above.id, above.name)):
        differing += ("parent",)
    # What was read when the account was opened decides: it must be what stands here now.
    held = (level.name, level.allowance, level.terms, level.opening)
    if not differing and held != (row.name, row.allowance, row.policy, opening[1]):
        differing = ("they were read when others stood here",)
    _refuse_terms(row, differing)
    text, found = entries[row.entries]
    last = json.loads(text)
    told = (last["account"], last["sequence"], last["period"])
    if (
        not found == row.head == _entries.digest(text)
        or f'"state":{row.state}' not in text  # the text is canonical
        or told != (row.name, row.entries, row.period)
    ):
        raise _disagreement(row)
    if row.expires != _expires(session, row, last, _opened(*opening)):
        _refuse_terms(row, ("expiry",))
    if row.entries + 1 in entries:
        _refuse(row, "has entries after the last one that it counts")
    if 2 in entries and not _follows(*entries[2], opening[1]):
        _refuse(row, "has another opening entry than its next entry follows")


def _refuse_terms(row: AccountRow, differing: tuple[str, ...]) -> None:
    if differing:
        _refuse(row, f"has other terms than it was opened with ({', '.join(differing)})")


def _disagreement(row: AccountRow) -> StoreFailure:
    return StoreFailure(
        f"Account {row.name!r} does not agree with its last entry; nothing was granted. "
        "Run Ledger.verify()."
    )


def _refuse(row: AccountRow, why: str) -> NoReturn:
    raise StoreFailure(f"Account {row.name!r} {why}; nothing was granted. Run Ledger.verify().")


@lru_cache(maxsize=4096)
def _opened(text: str, found: str) -> Content:
    """What an opening entry says (shared: not to be changed); nothing if it is none."""
    content: Content = json.loads(text)
    place = (content["kind"], content["sequence"], content["previous"])
    if _entries.digest(text) != found or place != ("open", 1, _entries.GENESIS):
        raise ValueError("not an opening entry")
    return content


@lru_cache(maxsize=4096)
def _differing(text: str, found: str, name: str, allowance: str, policy: str) -> tuple[str, ...]:
    """Which terms of a row are not those of its opening entry."""
    opened = _opened(text, found)
    stand = {"name": name, "limit": _read(allowance), "policy": _read(policy)}
    told = {"name": opened["account"], "limit": opened["limit"], "policy": opened["policy"]}
    return tuple(part for part in stand if stand[part] != told[part])


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # which is not what was written


@lru_cache(maxsize=4096)
def _follows(text: str, found: str, opening: str) -> bool:
    return _entries.digest(text) == found and json.loads(text)["previous"] == opening


def _expires(session: Session, row: AccountRow, last: Content, opened: Content) -> Any:
    """When charges end, as the chain says it."""
    if "expires" in last:
        return last["expires"]
    if not row.period:
        return opened["expires"]
    # Charges of version 0.1 do not tell it: the renewal does, and from the next charge on each.
    renewals = session.run(
        "SELECT content FROM entries WHERE account = ? AND content LIKE ? "
        "ORDER BY sequence DESC LIMIT 1",
        *(row.id, '%"kind":"renew"%'),
    )
    return json.loads(renewals[0][0])["expires"]


# ── Tallies ──────────────────────────────────────────────────────────────────────────────────────


def composed_event(session: Session, row: AccountRow) -> Event:
    """All events of the current period; the tallies must be those that the chain counts."""
    rows = _entries.tallies(session, row)
    told = AccountTotals.read(row.state).tallied
    found = sum(number * int(digest, 16) for _, number, digest in rows) % _entries.TALLY_SIZE
    edited = any(_entries.digest(text) != digest for text, _, digest in rows)
    if edited or found != (replayed_tallies(session, row) if told is None else told):
        raise StoreFailure(
            f"The tallies of account {row.name!r} differ from its entries; nothing was granted. "
            "Run Ledger.verify()."
        )
    return _entries.composed(rows)


def replayed_tallies(session: Session, row: AccountRow) -> int:
    """What the chain counts so far, from all its entries: needed once, after version 0.1."""
    total = 0
    for _, text, _, _, _ in _entries.chain(session, row.id):
        content = json.loads(text)
        if content["kind"] in ("charge", "reserve") and content["period"] == row.period:
            event = _entries.decode_event(content["event"])
            total += int(_entries.encode_event(event)[1], 16)
    return total % _entries.TALLY_SIZE


# ── Requests ─────────────────────────────────────────────────────────────────────────────────────


def check_request(row: AccountRow, request: str, text: str, found: str) -> Content:
    """The entry of a request, which must say so itself."""
    content: Content = json.loads(text)
    told = (content["account"], content.get("request"))
    if _entries.digest(text) != found or told != (row.name, request):
        _refuse(row, "has an entry that another request paid for")
    return content


def is_settled(session: Session, row: AccountRow, sequence: int) -> bool:
    """Whether it is known what became of a reservation; its column alone is not believed."""
    if _entries.is_settled(session, row.id, sequence):
        return True
    hidden = session.run(
        "SELECT 1 FROM entries WHERE account = ? AND sequence > ? AND content LIKE ? LIMIT 1",
        *(row.id, sequence, f'%"settles":{sequence},"state":%'),
    )
    if hidden:
        _refuse(row, "has a settlement that its column does not show")
    return False
