"""`discreet ledger`: look at accounts, check the chain, export it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from discreet.accounting.guarantee import Guarantee
from discreet.cli._console import literal_console
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.ledger._entries import LedgerEntry
from discreet.ledger._limit_words import cost_words, limit_words
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.ledger.statement import Statement

EXIT_TAMPERED = 1
_ACCOUNT = ("account", "above", "limit", "left", "entries", "expires")
_ENTRY = ("entry", "time", "kind", "label", "cost", "outcome")


def accounts(url: str, *, as_json: bool) -> int:
    """All accounts with their limits and what is left."""
    with open_ledger(url) as ledger:
        rows = [_account(account) for account in ledger.accounts()]
    if as_json:
        print(json.dumps(rows))
        return 0
    made = Table(title="Accounts")
    for name in _ACCOUNT:
        made.add_column(name)
    for row in rows:
        made.add_row(*(str(row[name] or "") for name in _ACCOUNT))
    literal_console().print(made)
    return 0


def show(url: str, name: str, *, as_json: bool) -> int:
    """The history of one account."""
    with open_ledger(url) as ledger:
        account = ledger.account(name)
        told = account.statement()
        content = {
            **_account(account),
            "statement": _statement(told),
            "head": account.head,
            "history": [_entry(entry, account.limit) for entry in account.history],
        }
    if as_json:
        print(json.dumps(content))
        return 0
    console = literal_console()
    console.print(str(told), soft_wrap=True)
    made = Table(title="History")
    for column in _ENTRY:
        made.add_column(column, overflow="fold")
    for row in content["history"]:
        made.add_row(*(str(row[column] or "") for column in _ENTRY))
    console.print(made)
    console.print(f"head: {content['head']}", soft_wrap=True)
    return 0


def verify(url: str, *, heads: Path | None, as_json: bool) -> int:
    """Replay every chain; 1 if something is wrong."""
    kept = None if heads is None else _heads(heads)
    with open_ledger(url) as ledger:
        found = ledger.verify(heads=kept)
    if as_json:
        content = {"ok": found.ok, "accounts": found.accounts, "entries": found.entries}
        print(json.dumps({**content, "problems": found.problems, "heads": dict(found.heads)}))
    else:
        print(f"{found.entries} entries of {found.accounts} accounts: ", end="")
        print("intact" if found.ok else "NOT INTACT")
        for problem in found.problems:
            print(f"  {problem}")
    return 0 if found.ok else EXIT_TAMPERED


def export(url: str, *, path: Path | None, kind: Literal["json", "csv"]) -> int:
    """Write the whole ledger, or print it."""
    if path is not None and path.exists():  # it may be the ledger itself
        raise InvalidArgument(f"{path} exists: name another file.")
    with open_ledger(url) as ledger:
        text = ledger.export(path, kind=kind)
    if path is None:
        print(text)
    else:
        print(f"Written: {path}")
    return 0


def open_ledger(url: str) -> Ledger:
    """An existing ledger: looking must not create one."""
    path = url.removeprefix("sqlite:///")
    if url.startswith("sqlite:///") and not Path(path).exists():
        raise InvalidArgument(f"There is no ledger at {url!r}.")
    if url.startswith("memory:"):
        raise InvalidArgument("A ledger in memory is known to its own process alone.")
    return Ledger(url)


def _heads(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None
    heads = content.get("heads", content) if isinstance(content, dict) else None
    if not isinstance(heads, dict):
        raise InvalidArgument(f"{path}: must be a JSON object from account to head.")
    return {str(name): str(head) for name, head in heads.items()}


def _account(account: Account) -> dict[str, Any]:
    expires = account.expires
    return {
        "account": account.name,
        "above": ", ".join(account.parents),
        "limit": limit_words(account.limit),
        "left": short(float(account.remaining), digits=6),
        "entries": account.head.partition(":")[0],
        "expires": None if expires is None else expires.isoformat(timespec="seconds"),
    }


def _statement(told: Statement) -> dict[str, Any]:
    lines = [{**line, "time": line["time"].isoformat(timespec="seconds")} for line in told.rows()]
    amounts = {name: getattr(told, name) for name in ("total", "left", "grant", "reach")}
    return {"measure": told.measure, "delta": told.delta, "lines": lines, **amounts}


def _entry(entry: LedgerEntry, limit: Guarantee) -> dict[str, Any]:
    return {
        "entry": entry.sequence,
        "time": entry.time.isoformat(timespec="seconds"),
        "kind": entry.kind,
        "label": entry.label,
        "cost": None if entry.guarantee is None else cost_words(entry.guarantee.event, limit),
        "outcome": entry.outcome,
        "hash": entry.hash,
    }
