"""A ledger as JSON, complete enough to check its hashes, and as CSV for people."""

from __future__ import annotations

import csv
import io
import json

from discreet.accounting.guarantee import Guarantee, describe
from discreet.ledger import crowd_rows, journal
from discreet.ledger.store import Session

VERSION = 1
_COLUMNS = (
    "account",
    "sequence",
    "kind",
    "time",
    "period",
    "label",
    "cost",
    "outcome",
    "request_id",
    "origin",
    "hash",
)


def as_json(session: Session) -> str:
    """Accounts and the exact text of every entry with its hash."""
    rows = journal.everything(session)
    names = {row.id: row.name for row in rows}
    accounts = [
        {
            "name": row.name,
            "parent": None if row.parent is None else names[row.parent],
            "limit": json.loads(row.allowance),
            "policy": json.loads(row.policy),
            "expires": row.expires,
            "period": row.period,
            "head": f"{row.entries}:{row.head}",
            "entries": [
                {"text": text, "hash": found}
                for _, text, found, _, _ in journal.chain(session, row.id)
            ],
        }
        for row in rows
    ]
    content = {"discreet_ledger": VERSION, "accounts": accounts}
    crowds = [_crowd(session, name) for name in crowd_rows.names(session)]
    return json.dumps({**content, "crowds": crowds} if crowds else content, indent=1)


def _crowd(session: Session, name: str) -> dict[str, object]:
    """Limits and entries; members and single people's amounts stay in the ledger."""
    place = crowd_rows.place(session, name)
    terms = crowd_rows.read_terms(session, place)
    return {
        "name": name,
        "limits": json.loads(terms.limits.to_json()),
        "members": len(terms.members),
        "head": f"{place.entries}:{place.head}",
        "entries": [
            {"text": journal.canonical(content), "hash": found}
            for content, _, found in crowd_rows.chain(session, place)
        ],
    }


def as_csv(session: Session) -> str:
    """One line for each entry."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in journal.everything(session):
        relation = Guarantee.from_json(row.allowance).relation
        for entry in journal.entries(session, row.id, relation):
            cost = "" if entry.guarantee is None else describe(entry.guarantee.event)
            writer.writerow(
                (
                    plain(entry.account),
                    entry.sequence,
                    entry.kind,
                    entry.time.isoformat(),
                    entry.period,
                    plain(entry.label),
                    cost,
                    entry.outcome or "",
                    plain(entry.request_id or ""),
                    plain(entry.origin or ""),
                    entry.hash,
                )
            )
    return out.getvalue()


def plain(text: str) -> str:
    """Words that a spreadsheet would take for a formula get an apostrophe."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
