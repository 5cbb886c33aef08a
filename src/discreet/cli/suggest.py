"""`discreet plan --suggest-bounds`: bounds and limits from the data, charged to the account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discreet.accounting.guarantee import pure_dp
from discreet.cli._console import literal_console
from discreet.cli.release import open_table, print_refusal
from discreet.core import _validate as check
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.number_format import number
from discreet.data.schema import NumericColumn
from discreet.ledger.ledger import Ledger
from discreet.spec.budget_arithmetic import split_evenly
from discreet.spec.release_file import account_text, budget_status, read
from discreet.spec.table import column_bounds
from discreet.tables.suggest import SuggestedBounds, SuggestedLimits


def run(path: Path, *, epsilon: float | None, as_json: bool) -> int:
    """Charge, read, and print lines to paste into the file."""
    file = read(path)
    if epsilon is None:
        raise InvalidArgument("--suggest-bounds needs --epsilon: what the suggestions may cost.")
    amount = check.positive("epsilon", epsilon)
    columns = {
        name: column
        for name, column in file.setting.schema.items()
        if isinstance(column, NumericColumn)
    }
    parts = len(columns) + (file.setting.privacy_unit is not None)
    if not parts:
        raise InvalidArgument("The file declares no numbers and no unit: nothing to suggest.")
    known = budget_status(file).account is not None
    with Ledger(file.ledger) as ledger:
        account = ledger.account(file.account, limit=None if known else file.limit)
        literal_console(stderr=True).print(
            f"This reads the data and charges epsilon {number(amount)} to {account_text(account)}.",
            soft_wrap=True,
        )
        if not account.can_afford(pure_dp(amount, relation=file.setting.relation)):
            short = BudgetExceeded(f"Epsilon {number(amount)} is more than the account has left.")
            return print_refusal(short, as_json=as_json)
        table = open_table(file, account)
        each = split_evenly(amount, parts)
        # The bounds in the file are taken as the range that surely holds everything.
        bounds = [
            table.suggest_bounds(name, outermost=column_bounds(column), epsilon=each)
            for name, column in columns.items()
        ]
        limits = None
        if file.setting.privacy_unit is not None:
            limits = table.suggest_contribution_limits(epsilon=each)
        return _told(bounds, limits, account_text(account), as_json=as_json)


def _told(
    bounds: list[SuggestedBounds], limits: SuggestedLimits | None, account: str, *, as_json: bool
) -> int:
    if as_json:
        content: dict[str, Any] = {
            "bounds": [
                {
                    "column": one.column,
                    "lower": one.lower,
                    "upper": one.upper,
                    "grid": one.granularity,
                    "outside_at_most": one.outside,
                }
                for one in bounds
            ],
            "account": account,
        }
        if limits is not None:
            content["max_rows_per_unit"] = limits.max_rows_per_unit
        print(json.dumps(content, indent=1))
        return 0
    if limits is not None:
        print(f"# {str(limits).replace(chr(10), chr(10) + '# ')}\n[table]\n{limits.toml}\n")
    if bounds:
        print("[columns]")
        for one in bounds:
            print(f"# {one}\n{one.toml}")
    literal_console(stderr=True).print(f"Charged to {account}.", soft_wrap=True)
    return 0
