"""The rows behind a crowd: its terms, and the chain of its charges."""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import Grains, IndividualFilter, limit_grains
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core.errors import InvalidArgument
from discreet.ledger import _entries
from discreet.ledger._entries import Content
from discreet.ledger.store import Seen, Session, StoreFailure

_SALT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalBudgetTerms:
    """What never changes: who is in the crowd, at which level, and what a level may spend."""

    limits: PersonalizedGuarantee
    grains: tuple[int, ...]
    """The limits as they were taken at the opening, in the order of their names."""
    members: tuple[str, ...] = field(repr=False)
    codes: NDArray[np.int64] = field(repr=False)
    text: str = field(repr=False)
    """Limits, and the digest of members and levels, as they stood in the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalBudgetRow:
    """Where a crowd stands: what moves with each entry."""

    id: int
    name: str
    entries: int
    head: str


# ── Members and limits ───────────────────────────────────────────────────────────────────────────


def pack_members(members: tuple[str, ...], codes: NDArray[np.int64]) -> bytes:
    """Who is in the crowd, at which level."""
    return zlib.compress(json.dumps([members, codes.tolist()]).encode(), level=1)


def insert(session: Session, name: str, limits: PersonalizedGuarantee, members: bytes) -> None:
    """A new crowd with its first entry; nothing if there is one of this name and these terms."""
    asked = {"limits": json.loads(limits.to_json()), "members": _digest(members)}
    # Limits in grains, for the same reason as costs: who could pay in the past must stay so, also
    # when another accounting, or machine, finds a limit with a delta to be worth a little less.
    terms = _entries.canonical({**asked, "grains": _allowed(limits)})
    made = session.run(
        "INSERT INTO crowds (name, terms, members, entries, head) VALUES (?, ?, ?, 0, ?) "
        "ON CONFLICT (name) DO NOTHING RETURNING id",
        *(name, terms, members, _entries.GENESIS),
    )
    if made:
        opened = {"kind": "open", "time": _entries.now(), "terms": json.loads(terms)}
        append(session, find(session, name), opened, None)
        return
    (known,) = session.run("SELECT terms FROM crowds WHERE name = ?", name)
    held = json.loads(known[0])
    if any(held[part] != asked[part] for part in asked):
        raise InvalidArgument(
            f"There is a crowd {name!r} with other limits, members or levels; its terms never "
            "change. Leave them out to open it, or take another name."
        )


def find(session: Session, name: str, *, lock: str = "") -> PersonalBudgetRow:
    """Where a crowd stands; ``lock`` holds it until the transaction ends."""
    found = session.run(
        f"SELECT id, name, entries, head FROM crowds WHERE name = ?{lock}",  # noqa: S608 — our own
        name,
    )
    if not found:
        raise InvalidArgument(f"There is no crowd {name!r}; give limits and members to open it.")
    number, known, entries, head = found[0]
    return PersonalBudgetRow(id=number, name=known, entries=entries, head=head)


def names(session: Session) -> list[str]:
    """All crowds, in the order of opening."""
    return [name for (name,) in session.run("SELECT name FROM crowds ORDER BY id")]


def read_terms(session: Session, where: PersonalBudgetRow) -> PersonalBudgetTerms:
    """The terms of a crowd, checked against their digest."""
    ((text, blob),) = session.run("SELECT terms, members FROM crowds WHERE id = ?", where.id)
    content = json.loads(text)
    if _digest(bytes(blob)) != content["members"]:
        raise refusal(where, "has other members or levels than it was opened with")
    members, codes = json.loads(zlib.decompress(bytes(blob)))
    limits = PersonalizedGuarantee.from_json(json.dumps(content["limits"]))
    grains = content.get("grains") or _allowed(limits)
    return PersonalBudgetTerms(
        limits=limits,
        grains=tuple(grains[name] for name in limits),
        members=tuple(members),
        codes=np.array(codes, dtype=np.int64),
        text=text,
    )


# ── Charges ──────────────────────────────────────────────────────────────────────────────────────


def encode_cost(
    cost: Guarantee | PersonalizedGuarantee | ArrayLike, limits: PersonalizedGuarantee, people: int
) -> tuple[Content, bytes | None]:
    """A cost as an entry tells it: events by level, or the digest of one amount per member."""
    if isinstance(cost, Guarantee):
        cost = PersonalizedGuarantee(tuple((name, cost) for name in limits))
    if isinstance(cost, PersonalizedGuarantee):
        if cost.names != limits.names:
            raise InvalidArgument(
                f"cost must name the levels {', '.join(limits.names)}, got {', '.join(cost.names)}."
            )
        # The amounts stand beside the events: who was left out must stay the same for ever, also
        # when better accounting would charge less.
        return {"cost": json.loads(cost.to_json()), "grains": _grains(cost)}, None
    each = IndividualFilter(np.zeros(people)).price(cost)
    if each.shape != (people,):
        raise InvalidArgument(f"cost must be a guarantee, or one rho for each of {people} members.")
    # Hashes are shown and kept elsewhere. Costs may be private, and easily guessed: without salt,
    # a hash would confirm a guess.
    blob = secrets.token_bytes(_SALT) + zlib.compress(each.astype("<i8").tobytes(), level=1)
    return {"each": _digest(blob), "salt": _SALT}, blob


def member_costs(
    content: Mapping[str, Any], blob: bytes | None, terms: PersonalBudgetTerms
) -> Grains:
    """What an entry costs each member."""
    if blob is not None:
        amounts = zlib.decompress(blob[content.get("salt", 0) :])
        return np.frombuffer(amounts, dtype="<i8").astype(np.int64)
    levels = np.array([content["grains"][name] for name in terms.limits], dtype=np.int64)
    return levels[terms.codes]


def _grains(cost: PersonalizedGuarantee) -> dict[str, int]:
    one = IndividualFilter([0.0])
    return {name: int(one.price(cost[name])) for name in cost}


def _allowed(limits: PersonalizedGuarantee) -> dict[str, int]:
    return {name: limit_grains(limits[name]) for name in limits}


def charges(
    session: Session,
    where: PersonalBudgetRow,
    terms: PersonalBudgetTerms,
    *,
    after: int,
    head: str,
) -> Iterator[tuple[str, Grains | None]]:
    """The hash of each entry since one, and what it cost each member; each must follow the last."""
    for content, blob, found in chain(session, where, after=after):
        after += 1
        place = (content["crowd"], content["sequence"], content["previous"])
        sound = place == (where.name, after, head)
        sound = sound and _entries.digest(_entries.canonical(content)) == found
        if not sound or (blob is not None and _digest(blob) != content["each"]):
            raise refusal(where, f"has an entry {after} that was edited")
        head = found
        charge = content["kind"] == "charge"
        yield found, member_costs(content, blob, terms) if charge else None


def chain(
    session: Session, row: PersonalBudgetRow, *, after: int = 0
) -> Iterator[tuple[Content, bytes | None, str]]:
    """Content, amounts and hash of every entry after one, in pages."""
    while True:
        page = session.run(
            "SELECT sequence, content, amounts, hash FROM crowd_entries "
            "WHERE crowd = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT 100",
            *(row.id, after, row.entries),
        )
        if not page:
            return
        for _, text, blob, found in page:
            yield json.loads(text), None if blob is None else bytes(blob), found
        after = page[-1][0]


def append(session: Session, row: PersonalBudgetRow, content: Content, blob: bytes | None) -> str:
    """Write the next entry; its hash covers the amounts through their digest."""
    place = {"crowd": row.name, "sequence": row.entries + 1, "previous": row.head}
    text = _entries.canonical({**content, **place})
    found = _entries.digest(text)
    session.run(
        "INSERT INTO crowd_entries (crowd, sequence, content, amounts, hash) "
        "VALUES (?, ?, ?, ?, ?)",
        *(row.id, row.entries + 1, text, blob, found),
    )
    session.run(
        "UPDATE crowds SET entries = ?, head = ? WHERE id = ?", row.entries + 1, found, row.id
    )
    return found


def check(
    session: Session, row: PersonalBudgetRow, terms: PersonalBudgetTerms, seen: Seen | None = None
) -> None:
    """Refuse to go on from a crowd that does not agree with its opening and its last entry."""
    known = None if seen is None else seen.get(_key(str(row.id)))
    places = {1, row.entries, row.entries + 1, known[0] if known else 1}
    found = session.run(
        f"SELECT sequence, content, hash FROM crowd_entries WHERE crowd = ? "  # noqa: S608
        f"AND sequence IN ({', '.join('?' * len(places))})",
        *(row.id, *places),
    )
    entries = {sequence: (text, digest) for sequence, text, digest in found}
    try:
        why = _disagreement(session, row, terms, entries)
    except _entries.UNREADABLE:
        why = "cannot be read"
    if not why and known and (known[0] > row.entries or entries[known[0]][1] != known[1]):
        why = f"was set back: entry {known[0]} is not the one that was seen here before"
    if why:
        raise refusal(row, why)


def refusal(row: PersonalBudgetRow, why: str) -> StoreFailure:
    """What ends a charge of a crowd that was tampered with."""
    return StoreFailure(f"Crowd {row.name!r} {why}; nothing was granted. Run Ledger.verify().")


def remember(seen: Seen, row: PersonalBudgetRow, *, entries: int, head: str) -> None:
    """Note how far a committed history went; it never becomes shorter."""
    if entries >= seen.get(_key(str(row.id)), (0, ""))[0]:
        seen[_key(str(row.id))] = (entries, head)


def _disagreement(
    session: Session,
    row: PersonalBudgetRow,
    terms: PersonalBudgetTerms,
    entries: Mapping[int, tuple[str, str]],
) -> str:
    """Why nothing is granted; empty if all is well."""
    if 1 not in entries or row.entries not in entries:
        return "does not agree with its last entry"
    opening, last = json.loads(entries[1][0]), json.loads(entries[row.entries][0])
    ((stand,),) = session.run("SELECT terms FROM crowds WHERE id = ?", row.id)
    if _entries.digest(entries[1][0]) != entries[1][1] or opening["kind"] != "open":
        return "has an opening entry that was edited"
    if opening["crowd"] != row.name:
        return "has other terms than it was opened with (name)"
    if opening["terms"] != json.loads(stand) or stand != terms.text:
        return "has other terms than it was opened with (limits, members or levels)"
    text, found = entries[row.entries]
    told = (last["crowd"], last["sequence"])
    if not found == row.head == _entries.digest(text) or told != (row.name, row.entries):
        return "does not agree with its last entry"
    if row.entries + 1 in entries:
        return "has entries after the last one that it counts"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalBudgetsIndex:
    """What a check of all crowds found."""

    problems: tuple[str, ...]
    entries: int
    heads: Mapping[str, str]


def verify(session: Session, heads: Mapping[str, str]) -> PersonalBudgetsIndex:
    """Check every chain of every crowd.

    Sums need no check: they are not stored. A limit cannot be passed, whatever the entries say,
    because members who cannot afford an entry are left out of it.
    """
    problems, entries, told = [], 0, {}
    for name in names(session):
        row = find(session, name)
        entries += row.entries
        told[_key(name)] = f"{row.entries}:{row.head}"
        try:
            read_terms(session, row)
            found = list(_problems(session, row, heads.get(_key(name))))
        except (*_entries.UNREADABLE, zlib.error) as error:
            found = [f"cannot be read ({type(error).__name__})"]
        problems += [f"crowd {name}: {problem}" for problem in found]
    return PersonalBudgetsIndex(problems=tuple(problems), entries=entries, heads=told)


def _key(name: str) -> str:
    """An account may have the same name."""
    return f"crowd {name}"


def _problems(session: Session, row: PersonalBudgetRow, kept: str | None) -> Iterator[str]:
    head, count, passed = _entries.GENESIS, 0, {}
    for content, blob, found in chain(session, row):
        count += 1
        if _entries.digest(_entries.canonical(content)) != found:
            yield f"entry {count} was edited"
        if (content["crowd"], content["sequence"]) != (row.name, count):
            yield f"entry {count} stands in another place than it says"
        if content["previous"] != head:
            yield f"entry {count} does not follow the one before it"
        if (count == 1) != (content["kind"] == "open"):
            yield f"entry {count} is of the wrong kind"
        yield from (f"entry {count} {what}" for what in _wrong(session, row, content, blob))
        head = passed[count] = found
    if (row.entries, row.head) != (count, head):
        yield f"the crowd counts {row.entries} entries, {count} are there"
    if kept is not None:
        number, _, digest = kept.partition(":")
        if not number.isdigit() or passed.get(int(number)) != digest:
            yield f"the history up to entry {number} is not the one that was kept"


def _wrong(
    session: Session, row: PersonalBudgetRow, content: Content, blob: bytes | None
) -> Iterator[str]:
    """What is wrong inside an entry."""
    if content["kind"] == "open":
        (stand,) = session.run("SELECT terms FROM crowds WHERE id = ?", row.id)
        if json.loads(stand[0]) != content["terms"]:
            yield "opened other terms than the crowd has"
        terms = read_terms(session, row)
        most = _allowed(terms.limits)
        if any(
            given > most[name] * (1 + 1e-9)
            for name, given in zip(terms.limits, terms.grains, strict=True)
        ):
            yield "allows more than its limits are worth"
    elif "each" in content:
        if blob is None or _digest(blob) != content["each"]:
            yield "has other amounts than it says"
    else:
        costs = _grains(PersonalizedGuarantee.from_json(json.dumps(content["cost"])))
        # Divergences are floating-point numbers before they are rounded: machines may differ.
        if any(content["grains"][name] < cost * (1 - 1e-9) for name, cost in costs.items()):
            yield "charges less than its events cost"


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()
