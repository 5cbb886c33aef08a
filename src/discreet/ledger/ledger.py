"""The ledger: opens accounts and personal budgets, verifies itself, and exports its entries.

The JSON export is complete enough to check the hashes; the CSV export is for reading.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import limit_rho
from discreet.accounting.personalized import personalized
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.ledger import _entries, _personal_budget_rows
from discreet.ledger._entries import (
    AccountLevel,
    AccountRow,
    AccountTotals,
    Policy,
    policy_content,
    read_level,
)
from discreet.ledger._filter_rules import ApproxRule, Composition, rule_for
from discreet.ledger._limit_words import cost_words
from discreet.ledger._memory import MemoryStore
from discreet.ledger._postgres import PostgresStore
from discreet.ledger._sqlite import SqliteStore
from discreet.ledger.account import Account
from discreet.ledger.personal_budgets import PersonalBudgets, check_members
from discreet.ledger.store import NO_PICKLE, Session, Store, StoreFailure
from discreet.ledger.verify import Verification, verify

# ── Export ───────────────────────────────────────────────────────────────────────────────────────


VERSION = 1
_VERIFY = "Run Ledger.verify()."
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


def as_json(session: Session, *, durable: bool) -> str:
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
    content: dict[str, object] = {"discreet_ledger": VERSION, "accounts": accounts}
    if not durable:
        content["durable"] = False
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
        limit = Guarantee.from_json(row.allowance)
        for entry in _entries.entries(session, row.id, limit.relation):
            cost = "" if entry.guarantee is None else cost_words(entry.guarantee.event, limit)
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
    """A durable record of all privacy charges, protected by a hash chain.

    Entries are only appended, never changed.
    One object serves all threads of a process and survives a fork. Any number of processes may use
    the same file or database. A copy of a ledger is the ledger itself. A pickle of a ledger in a
    file names the file. Other ledgers refuse to be pickled.

    Args:
        url: Where the ledger is kept. `sqlite:///budget.db` (or `sqlite:////` and an absolute path)
            is a file for one computer. `postgresql://...` is a database for several. The default,
            `memory://`, is a new, empty ledger in the memory of this process. It is for notebooks
            and tests: when the process ends, discreet no longer knows what was spent.

    Raises:
        InvalidArgument: `url` is none of these.

    Examples:
        >>> import discreet
        >>> ledger = discreet.Ledger()
        >>> account = ledger.account("survey", limit=discreet.approx_dp(3, 1e-6))
        >>> ledger
        Ledger(memory, not durable)

    See Also:
        [Keep a ledger](../how-to/ledger.md), [theory](../theory/ledger.md).
    """

    def __init__(self, url: str = "memory://") -> None:
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
        """Open an account with a limit, or find an existing account by its name.

        The terms are fixed when the account is first opened. Opening it again with other terms is
        an error.

        Args:
            name: Name of the account, unique in the ledger.
            limit: Guarantee that may be spent, such as `discreet.approx_dp(3, 1e-6)`. If None, the
                account must exist.
            parent: Account, or its name, that is charged together with this one. Each charge
                succeeds on both or on neither.
            expires: Time after which charges are refused (UTC if it has no time zone). By default
                the account does not expire.
            renewals: How often the budget may be renewed with `Account.renew`.
            composition: How charges to an (epsilon, delta) limit are added up: `"basic"` adds
                epsilon and delta, `"concentrated"` adds zCDP or Rényi divergences. By default the
                first charge decides.
            orders: Orders of the Rényi divergences for an (epsilon, delta) limit. By default one
                order that suits the limit.
            adaptive: Whether releases may depend on earlier results. If you set it to False, you
                guarantee that they do not, and the exact composition decides when the sums exceed
                the limit.

        Returns:
            The account.

        Raises:
            InvalidArgument: The account does not exist, has other terms, or an argument is not
                valid.
            RelationMismatch: The parent is under another neighboring relation.

        Privacy:
            The account refuses every charge that would exceed its limit, so all its releases of a
            period together satisfy the limit.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> agency = ledger.account("agency", limit=discreet.pure_dp(2))
            >>> survey = ledger.account("survey", limit=discreet.pure_dp(1), parent=agency)
            >>> receipt = survey.charge(discreet.pure_dp(0.5), label="number of members")
            >>> survey.remaining, agency.remaining
            (Fraction(1, 2), Fraction(3, 2))

        References:
            [Proof](../theory/ledger.md).
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
        """Open a privacy budget for each person, or find such budgets by their name.

        To open them, give `limits`, `members` and `privacy_levels`. All three are fixed when they
        are first opened.

        Args:
            name: Name of the personal budgets, unique in the ledger.
            limits: Public limit of each privacy level, such as `{"low": discreet.approx_dp(1,
                1e-6)}`.
            members: Distinct identifiers of the people.
            privacy_levels: Level of each member, in the order of `members`.

        Returns:
            The personal budgets. Queries charge members with enough budget and exclude the others.

        Raises:
            InvalidArgument: An argument is missing or not valid, or the name does not exist.

        Privacy:
            Levels and remaining budgets of members are private. They are not part of the export.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> budgets = ledger.personal_budgets(
            ...     "panel",
            ...     limits={"strict": discreet.zcdp(0.1), "open": discreet.zcdp(0.5)},
            ...     members=[1, 2, 3],
            ...     privacy_levels=["open", "strict", "open"],
            ... )
            >>> ledger.all_personal_budgets()
            ('panel',)

        See Also:
            [Personalized privacy](../how-to/personal.md).
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
        """List the names of all personal budgets, in the order in which they were opened.

        Returns:
            The names, for `personal_budgets`.

        Examples:
            >>> import discreet
            >>> discreet.Ledger("memory://").all_personal_budgets()
            ()
        """
        with self._store.read() as session:
            return tuple(_personal_budget_rows.names(session))

    def accounts(self) -> tuple[Account, ...]:
        """List all accounts, parents before children.

        Returns:
            The accounts.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> account = ledger.account("survey", limit=discreet.pure_dp(1))
            >>> [account.name for account in ledger.accounts()]
            ['survey']
        """
        with self._store.read() as session:
            return tuple(self._account(session, row) for row in _entries.all_accounts(session))

    def verify(self, *, heads: Mapping[str, str] | None = None) -> Verification:
        """Check every hash chain and recompute every sum.

        Args:
            heads: Values of `Account.head` that you stored elsewhere, by account name. Without
                them, someone who can rewrite the whole store can also write a new chain.

        Returns:
            A verification that is true if nothing is wrong, with `problems` in words.

        Raises:
            InvalidArgument: `heads` is not a mapping.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> account = ledger.account("survey", limit=discreet.pure_dp(1))
            >>> ledger.verify(heads={"survey": account.head}).ok
            True
        """
        with self._store.read() as session:
            return verify(session, check.as_mapping("heads", heads or {}))

    def export(
        self, path: str | Path | None = None, *, kind: Literal["json", "csv"] = "json"
    ) -> str:
        """Export all accounts and entries as text.

        Args:
            path: File to write. By default the text is only returned.
            kind: `"json"` for a complete export with hashes, or `"csv"` for a table with one row
                per entry.

        Returns:
            The text.

        Raises:
            InvalidArgument: `kind` is not one of the two.

        Examples:
            >>> import discreet
            >>> ledger = discreet.Ledger("memory://")
            >>> account = ledger.account("survey", limit=discreet.pure_dp(1))
            >>> ledger.export(kind="csv").splitlines()[0]
            'account,sequence,kind,time,period,label,cost,outcome,request_id,origin,hash'
        """
        if kind not in ("json", "csv"):
            raise InvalidArgument(f"kind must be 'json' or 'csv', got {kind!r}.")
        with self._store.read() as session:
            whole = kind == "json"
            text = as_json(session, durable=self.durable) if whole else as_csv(session)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def close(self) -> None:
        """Close idle connections. A later use opens new ones.

        Closing a ledger in memory changes nothing.

        Examples:
            >>> import discreet
            >>> with discreet.Ledger("memory://") as ledger:
            ...     account = ledger.account("survey", limit=discreet.pure_dp(1))
        """
        self._store.close()

    @property
    def durable(self) -> bool:
        """Whether charges survive the process: False for a ledger in memory."""
        return self._store.durable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        """Itself: there is one record of what was spent."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[Store], Ledger], tuple[Store]]:
        """A pickle names the file of the ledger."""
        if not isinstance(self._store, SqliteStore):
            raise Unsupported(NO_PICKLE)
        return _reopened, (self._store,)

    def __repr__(self) -> str:
        return f"Ledger({self._kind})" if self.durable else "Ledger(memory, not durable)"

    def _account(self, session: Session, row: AccountRow) -> Account:
        path = [row]
        while path[0].parent is not None:
            if path[0].parent >= path[0].id:  # parents are opened first: this would have no end
                raise StoreFailure(
                    f"Account {row.name!r} does not stand under an older one. {_VERIFY}"
                )
            path.insert(0, _entries.get(session, path[0].parent))
        return Account(self._store, tuple(_level(session, step) for step in path))

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
            above = self._parent(session, parent, limit)
            number = _insert(session, name, above, terms, AccountTotals(sums=rule.zero, tallied=0))
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

    def _parent(self, session: Session, name: str | None, limit: Guarantee) -> int | None:
        if name is None:
            return None
        row = _entries.find(session, name)
        if row is None:
            raise InvalidArgument(
                f"parent must be an account of this ledger, there is no {name!r}."
            )
        self._account(session, row)._check_terms(session)  # noqa: SLF001 — its own half
        relation = Guarantee.from_json(row.allowance).relation
        if relation is not limit.relation:
            raise RelationMismatch(
                f"The parent {name!r} is under {relation!r}, the limit under {limit.relation!r}."
            )
        return row.id


def _reopened(store: Store) -> Ledger:
    ledger = Ledger.__new__(Ledger)
    ledger._store, ledger._kind = store, "sqlite"  # noqa: SLF001 — its own
    return ledger


def _open(url: str) -> Store:
    if not isinstance(url, str):
        raise InvalidArgument(f"url must be text, got {type(url).__name__}.")
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        if rest == "/:memory:":
            raise InvalidArgument(
                "A ledger in memory does not survive the process: name a file, or say memory:// "
                "if that is what you want."
            )
        return SqliteStore(Path(rest[1:]))
    if url == "memory://":
        return MemoryStore()
    if scheme in ("postgresql", "postgres"):
        return PostgresStore(url)
    raise InvalidArgument(
        "url must be sqlite:///FILE, postgresql://... or memory://, "
        f"got the scheme {scheme!r}."  # the rest may hold a password
    )


def _level(session: Session, row: AccountRow) -> AccountLevel:
    try:
        return read_level(row, opening=_entries.opening_hash(session, row))
    except _entries.UNREADABLE as error:
        damaged = StoreFailure(f"The terms of account {row.name!r} cannot be read. {_VERIFY}")
        raise error if isinstance(error, StoreFailure) else damaged from None


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
