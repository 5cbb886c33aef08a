"""`discreet sql`: answer a SELECT of aggregates from the table of a release file."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

from discreet.cli.release import open_table, print_refusal
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.ledger.ledger import Ledger
from discreet.query._sql import translate
from discreet.spec.release_file import account_text, budget_status, read

Amounts = tuple[float | None, float | None, float | None]
"""Epsilon, delta and rho."""


def run(
    path: Path, text: str, amounts: Amounts, *, parameters: tuple[str, ...], as_json: bool
) -> int:
    """Translate the text; with a budget, charge and answer."""
    file = read(path)
    given = _given(parameters)
    asked = translate(text, spec=file.setting, parameters=given)  # refused before the ledger opens
    epsilon, delta, rho = amounts
    if epsilon is None and rho is None:
        if delta is not None:
            raise InvalidArgument("--delta goes with --epsilon.")
        found = {"queries": [one.text for one in asked.queries]}
        print(json.dumps(found) if as_json else "\n".join(found["queries"]))
        return 0
    known = budget_status(file).account is not None
    with Ledger(file.ledger) as ledger:
        account = ledger.account(file.account, limit=None if known else file.limit)
        try:
            answer = open_table(file, account).sql(
                text, epsilon=epsilon, delta=delta, rho=rho, parameters=given
            )
        except BudgetExceeded as refusal:
            return print_refusal(refusal, as_json=as_json)
        if as_json:
            rows = [
                {name: x.isoformat() if isinstance(x, dt.date) else x for name, x in row.items()}
                for row in answer.rows()
            ]
            paid = json.loads(answer.guarantee.to_json())
            print(json.dumps({"rows": rows, "guarantee": paid}))
        else:
            print(f"{answer}\nSpent. {account_text(account)}.")
    return 0


def _given(parameters: tuple[str, ...]) -> dict[str, object]:
    """NAME=VALUE: numbers, dates and booleans as what they are, all else is text."""
    found: dict[str, object] = {}
    for one in parameters:
        name, sign, text = one.partition("=")
        if not sign:
            raise InvalidArgument("--parameter takes NAME=VALUE, such as low=18.")
        found[name] = _value(text)
    return found


def _value(text: str) -> object:
    try:
        value = json.loads(text)
        if isinstance(value, bool | int | float):
            return value
    except ValueError:
        pass
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return text
