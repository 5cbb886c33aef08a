"""How a budget went down: the latest entries of an account, and what was left after each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.core import events
from discreet.ledger import _entries
from discreet.ledger._entries import AccountTotals, LedgerEntry
from discreet.ledger._filter_rules import FilterRule
from discreet.ledger.account import Account

_SPENDING = ("charge", "reserve", "renew", "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStep:
    """An entry, and what was left after it, as `Account.remaining` says it."""

    entry: LedgerEntry
    remaining: Fraction | None
    """None where it did not change, or where it was not asked for."""


def spending_steps(
    account: Account, *, most: int = 200, points: int = 40
) -> tuple[BudgetStep, ...]:
    """The last ``most`` entries, oldest first; what was left is computed for about ``points``."""
    own = account._own  # noqa: SLF001 - the same room
    with account._store.read() as session:  # noqa: SLF001 - the same room
        rows = session.run(
            "SELECT sequence, content, hash FROM entries WHERE account = ? "
            "ORDER BY sequence DESC LIMIT ?",
            *(own.id, most),
        )
        settled = session.run(
            "SELECT settles, content FROM entries WHERE account = ? AND settles IS NOT NULL "
            "ORDER BY sequence DESC LIMIT ?",
            *(own.id, most),
        )
    outcomes = {place: json.loads(text)["outcome"] for place, text in settled}
    found = [(json.loads(text), value) for _, text, value in reversed(rows)]
    moving = [i for i, (content, _) in enumerate(found) if content["kind"] in _SPENDING]
    stride = max(1, len(moving) // points)
    told = {*moving[::stride], *moving[-1:]}
    steps = []
    for i, (content, value) in enumerate(found):
        outcome = content.get("outcome")
        if content["kind"] in ("charge", "reserve") and "origin" not in content:
            known = outcomes.get(content["sequence"])
            outcome = known or ("open" if content["kind"] == "reserve" else "released")
        left = None
        if i in told:
            left = _left(own.rule, _entries.canonical(content["state"]))  # type: ignore[arg-type]  # frozen
        entry = _entries.entry(content, value, relation=account.relation, outcome=outcome)
        steps.append(BudgetStep(entry=entry, remaining=left))
    return tuple(steps)


@lru_cache(maxsize=1 << 14)
def _left(rule: FilterRule, text: str) -> Fraction:
    """What a state leaves: entries never change, so this is computed once for each."""
    state = AccountTotals.read(text)
    return rule.remaining(state.sums, state.mode or rule.mode(events.NOTHING))
