"""The ledger: opens accounts and personal budgets, verifies itself, and exports its entries.

The JSON export is complete enough to check the hashes; the CSV export is for reading.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee, describe
from discreet.accounting.individual_filter import limit_rho
from discreet.accounting.personalized import personalized
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.ledger import _entries, _personal_budget_rows
from discreet.ledger._entries import AccountRow, AccountTotals, Policy, policy_content, read_level
from discreet.ledger._filter_rules import ApproxRule, Composition, rule_for
from discreet.ledger._postgres import PostgresStore
from discreet.ledger._sqlite import SqliteStore
from discreet.ledger.account import Account
from discreet.ledger.personal_budgets import PersonalBudgets, check_members
from discreet.ledger.store import Session, Store, StoreFailure
from discreet.ledger.verify import Verification, verify

# ── Export ───────────────────────────────────────────────────────────────────────────────────────


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
    rows = _entries.all_accounts(session)
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
                for _, text, found, _, _ in _entries.chain(session, row.id)
            ],
        }
        for row in rows
    ]
    content = {"discreet_ledger": VERSION, "accounts": accounts}
    crowds = [_crowd(session, name) for name in _personal_budget_rows.names(session)]
    return json.dumps({**content, "crowds": crowds} if crowds else content, indent=1)


def _crowd(session: Session, name: str) -> dict[str, object]:
    """Limits and entries; members and single people's amounts stay in the ledger."""
    place = _personal_budget_rows.find(session, name)
    terms = _personal_budget_rows.read_terms(session, place)
    return {
        "name": name,
        "limits": json.loads(terms.limits.to_json()),
        "members": len(terms.members),
        "head": f"{place.entries}:{place.head}",
        "entries": [
            {"text": _entries.canonical(content), "hash": found}
            for content, _, found in _personal_budget_rows.chain(session, place)
        ],
    }


def as_csv(session: Session) -> str:
    """One line for each entry."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in _entries.all_accounts(session):
        relation = Guarantee.from_json(row.allowance).relation
        for entry in _entries.entries(session, row.id, relation):
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


# ── Ledger ───────────────────────────────────────────────────────────────────────────────────────


class Ledger:
    """A durable, append-only, hash-chained record of what was spent.

    ``sqlite:///budget.db`` (``sqlite:////`` and an absolute path) for one host,
    ``postgresql://...`` for several. One object serves all threads of a process and survives a
    fork.
    """

    def __init__(self, url: str) -> None:
        self._store = _open(url)
        self._kind = url.partition("://")[0]  # the address may hold a password

    def account(
        self,
        name: str,
        *,
        limit: Guarantee | None = None,
        parent: Account | str | None = None,
        expires: datetime | None = None,
        renewals: int = 0,
        composition: Composition | None = None,
        orders: tuple[float, ...] = (),
        adaptive: bool = True,
    ) -> Account:
        """Open an account with a limit, or find one by its name.

        The terms are fixed at the first opening; opening again with others is an error. A charge
        to an account is charged to its ``parent`` too, in one transaction, or to neither.
        """
        _entries.printable("name", name)
        if limit is not None:
            policy = Policy(
                composition=composition,
                orders=tuple(map(float, orders)),
                adaptive=bool(adaptive),
                renewals=check.count("renewals", renewals, minimum=0),
            )
            above = parent.name if isinstance(parent, Account) else parent
            self._open_account(name, limit, above, expires, policy)
        with self._store.read() as session:
            row = _entries.find(session, name)
            if row is None:
                raise InvalidArgument(f"There is no account {name!r}; give a limit to open it.")
            return self._account(session, row)

    def personal_budgets(
        self,
        name: str,
        *,
        limits: Mapping[str, Guarantee] | None = None,
        members: ArrayLike | None = None,
        privacy_levels: ArrayLike | None = None,
    ) -> PersonalBudgets:
        """Open a crowd, a personal budget for each member, or find one by its name.

        ``limits`` is a public menu, such as ``{"strict": discreet.approx_dp(1, 1e-6), ...}``;
        ``members`` are distinct identities and ``privacy_levels`` what each of them chose. All
        three are fixed at the first opening.
        """
        _entries.printable("name", name)
        if limits is not None or members is not None or privacy_levels is not None:
            if limits is None or members is None or privacy_levels is None:
                raise InvalidArgument("limits, members and levels open a crowd; give all three.")
            menu = personalized(limits)
            packed = _personal_budget_rows.pack_members(
                *check_members(members, privacy_levels, menu)
            )
            for level in menu:
                limit_rho(menu[level])  # refused before anything is written
            with self._store.write() as session:
                _personal_budget_rows.insert(session, name, menu, packed)
        return PersonalBudgets(self._store, name)

    def all_personal_budgets(self) -> tuple[str, ...]:
        """The names of all crowds, in the order of their opening."""
        with self._store.read() as session:
            return tuple(_personal_budget_rows.names(session))

    def accounts(self) -> tuple[Account, ...]:
        """Every account, parents before children."""
        with self._store.read() as session:
            return tuple(self._account(session, row) for row in _entries.all_accounts(session))

    def verify(self, *, heads: Mapping[str, str] | None = None) -> Verification:
        """Check every chain and recompute every sum; false, with the problems, if one fails.

        ``heads``: what ``account.head`` said earlier. Whoever can rewrite the whole store can
        write a new chain; a head that was kept elsewhere is what such a forger cannot match.
        """
        with self._store.read() as session:
            return verify(session, check.as_mapping("heads", heads or {}))

    def export(
        self, path: str | Path | None = None, *, kind: Literal["json", "csv"] = "json"
    ) -> str:
        """All accounts and entries as JSON (complete) or CSV (a table for people)."""
        writers = {"json": as_json, "csv": as_csv}
        if kind not in writers:
            raise InvalidArgument(f"kind must be 'json' or 'csv', got {kind!r}.")
        with self._store.read() as session:
            text = writers[kind](session)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def close(self) -> None:
        """Close idle connections; a later use opens new ones."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._kind})"

    def _account(self, session: Session, row: AccountRow) -> Account:
        path = [row]
        while path[0].parent is not None:
            if path[0].parent >= path[0].id:  # parents are opened first: this would have no end
                raise StoreFailure(
                    f"Account {row.name!r} does not stand under an older one. Run Ledger.verify()."
                )
            path.insert(0, _entries.get(session, path[0].parent))
        return Account(self._store, tuple(read_level(step) for step in path))

    def _open_account(
        self,
        name: str,
        limit: Guarantee,
        parent: str | None,
        expires: datetime | None,
        policy: Policy,
    ) -> None:
        if not isinstance(limit, Guarantee):
            raise InvalidArgument(
                f"limit must be a Guarantee such as discreet.approx_dp(3, 1e-6), "
                f"got {type(limit).__name__}."
            )
        rule = rule_for(limit, composition=policy.composition, orders=policy.orders)
        if isinstance(rule, ApproxRule):  # the default orders of today stay with the account
            policy = Policy(
                composition=policy.composition,
                orders=rule.orders,
                adaptive=policy.adaptive,
                renewals=policy.renewals,
            )
        terms = {
            "allowance": limit.to_json(),
            "policy": _entries.canonical(policy_content(policy)),
            "expires": None if expires is None else _entries.stamp("expires", expires),
        }
        with self._store.write() as session:
            above = _parent(session, parent, limit)
            number = _insert(session, name, above, terms, AccountTotals(sums=rule.zero))
            if number is None:
                _same_terms(session, name, above, terms)
                return
            content = {
                "kind": "open",
                "time": _entries.now(),
                "label": "",
                "period": 0,
                "parent": parent,
                "limit": json.loads(terms["allowance"] or ""),
                "policy": policy_content(policy),
                "expires": terms["expires"],
            }
            row = _entries.get(session, number, lock=self._store.lock)
            _entries.append(session, row, content, expires=row.expires)


def _open(url: str) -> Store:
    if not isinstance(url, str):
        raise InvalidArgument(f"url must be text, got {type(url).__name__}.")
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        if rest == "/:memory:":
            raise InvalidArgument("A ledger in memory would not survive a crash; name a file.")
        return SqliteStore(Path(rest[1:]))
    if scheme in ("postgresql", "postgres"):
        return PostgresStore(url)
    raise InvalidArgument(
        "url must be sqlite:///FILE or postgresql://..., "
        f"got the scheme {scheme!r}."  # the rest may hold a password
    )


def _parent(session: Session, name: str | None, limit: Guarantee) -> int | None:
    if name is None:
        return None
    row = _entries.find(session, name)
    if row is None:
        raise InvalidArgument(f"parent must be an account of this ledger, there is no {name!r}.")
    relation = Guarantee.from_json(row.allowance).relation
    if relation is not limit.relation:
        raise RelationMismatch(
            f"The parent {name!r} is under {relation!r}, the limit under {limit.relation!r}."
        )
    return row.id


def _insert(
    session: Session,
    name: str,
    parent: int | None,
    terms: Mapping[str, str | None],
    state: AccountTotals,
) -> int | None:
    """The number of the new account, or None if the name is taken."""
    made = session.run(
        "INSERT INTO accounts (name, parent, allowance, policy, expires, period, entries, head, "
        "state) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING id",
        *(name, parent, terms["allowance"], terms["policy"], terms["expires"]),
        *(_entries.GENESIS, _entries.canonical(state.content())),
    )
    return int(made[0][0]) if made else None


def _same_terms(
    session: Session, name: str, parent: int | None, terms: Mapping[str, str | None]
) -> None:
    row = _entries.find(session, name)
    if row is None:  # pragma: no cover — accounts are never deleted
        raise InvalidArgument(f"There is no account {name!r}.")
    known = (row.allowance, row.policy, row.parent)
    if known != (terms["allowance"], terms["policy"], parent):
        raise InvalidArgument(
            f"Account {name!r} exists with other terms (limit, parent or policy), which never "
            "change; open it without a limit, or take another name."
        )
