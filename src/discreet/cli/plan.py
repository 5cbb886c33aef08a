"""`discreet plan`: what each statistic of a release file costs and how exact it will be."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.accounting.guarantee import describe_epsilon
from discreet.cli._console import literal_console
from discreet.cli.ranges import range_table
from discreet.core.number_format import number, percent, short
from discreet.data.program import ContributionLimits
from discreet.ledger._limit_words import limit_words
from discreet.query._release_plan import ReleasePlan
from discreet.query.budget import QueryBudget
from discreet.query.error_forecast import forecast
from discreet.spec.budget_arithmetic import cost_amount
from discreet.spec.ranges import range_content
from discreet.spec.release_file import (
    BudgetStatus,
    ReleaseFile,
    budget_status,
    read,
    relaxation,
)
from discreet.tables.release import describe_protection


def run(path: Path, *, as_json: bool) -> int:
    """Show the plan. The source is not even opened."""
    file = read(path)
    planned = file.plan()
    found = budget_status(file)
    content = _content(file, planned, found)
    if as_json:
        print(json.dumps(content, indent=1))
        return 0
    console = literal_console()
    if content["statistics"]:
        console.print(_table(file.title, content["statistics"]))
    for one in content["ranges"]:
        console.print(range_table(one))
    for plan in file.marginals:
        console.print(str(plan), soft_wrap=True, markup=False, highlight=False)
    console.print(
        f"All together: {describe_epsilon(planned.guarantee)}; {_percent(content['share'])} of "
        f"the limit ({limit_words(found.limit)}) of account {found.name!r}, of which "
        f"{short(found.remaining)} is left.",
        soft_wrap=True,
    )
    console.print(f"It {content['protects']}.", soft_wrap=True, markup=False, highlight=False)
    if not content["affordable"]:
        refusal = Text.assemble(("This is more than is left", "bold"), f": {_advice(content)}")
        console.print(refusal, soft_wrap=True)
    if content["targets"]:
        console.print("Amounts for the stated targets, to write into the file:")
        for one in content["statistics"]:
            if one["amount"] is not None:
                console.print(f"  {one['amount']}  # {one['name']}", highlight=False)
    if any(one["step"] is not None for one in content["statistics"]):
        console.print(
            "Quantiles: the error is one of rank, as a share of the rows; add half a bin in value.",
            soft_wrap=True,
        )
    console.print("No private data were touched.")
    return 0


def _content(file: ReleaseFile, planned: ReleasePlan, found: BudgetStatus) -> dict[str, Any]:
    """Everything that is shown, for machines."""
    statistics: list[dict[str, Any]] = [{} for _ in file.statistics]
    for place, question in zip(file.order(), planned.questions, strict=True):
        one = file.statistics[place]
        error = forecast(question, expected_rows=one.expected_rows)
        statistics[place] = {
            "name": question.query.title,
            "asked": question.query.text,
            "budget": str(one.budget),
            "share": _finite(found.share(question.guarantee)),
            "groups": error.groups,
            "rows": error.expected_rows,
            "std": error.std,
            "width": error.width,
            "level": error.confidence,
            "step": error.step,
            "noise": error.noise,
            "other_widths": dict(error.other_widths),
            "target": None if one.within is None else float(one.within),
            "met": None if one.within is None else (error.width or math.inf) <= one.within,
            "amount": _toml(one.budget) if one.found else None,
            "sensitivity": [
                {"of": m.part.name, "l1": m.move.l1, "l2_squared": m.move.l2_squared}
                for m in question.measurements
            ],
        }
    affordable = found.can_afford(planned.guarantee)
    targets = any(one.found for one in file.statistics)
    return {
        "title": file.title,
        "statistics": statistics,
        "ranges": [range_content(one, found) for one in planned.ranges],
        "marginals": [
            {"asked": one.title, "budget": str(one.budget), "tables": one.rows()}
            for one in file.marginals
        ],
        "targets": targets,
        "relax": relaxation(file, planned, found) if targets and not affordable else None,
        "passes": len(planned.scans) + len(planned.marginals),
        "account": found.name,
        "exists": found.account is not None,
        "limit": json.loads(found.limit.to_json()),
        "remaining": found.remaining,
        "affordable": affordable,
        "cost": _finite(cost_amount(planned.guarantee, found.limit)),
        "share": _finite(found.share(planned.guarantee)),
        "protects": describe_protection(replace(file.setting, limits=ContributionLimits())),
    }


def _advice(content: dict[str, Any]) -> str:
    if content["relax"] is not None:
        wider = number(content["relax"])
        return f"make every target at least {wider} times as wide, or drop a statistic."
    return "lower the amounts or drop a statistic."


def _toml(budget: QueryBudget) -> str:
    """The amount as it stands in a release file."""
    if budget.rho is not None:
        return f"rho = {float(budget.rho)!r}"
    also = "" if budget.delta is None else f"; delta = {float(budget.delta)!r}"
    return f"epsilon = {float(budget.epsilon or 0)!r}{also}"


def _table(title: str, statistics: list[dict[str, Any]]) -> Table:
    made = Table(title=f"Plan: {title}")
    made.add_column("statistic", overflow="fold")
    for name in ("groups", "cost", "of the limit", "noise", "std", "within, 95%"):
        made.add_column(name, justify="right")
    for one in statistics:
        made.add_row(
            one["name"],
            str(one["groups"]),
            one["budget"],
            _percent(one["share"]),
            one["noise"],
            "–" if one["std"] is None else short(one["std"]),
            _within(one),
        )
    return made


def _within(one: dict[str, Any]) -> str:
    if one["width"] is None:
        return "state rows"
    missed = " (target missed)" if one["met"] is False else ""
    if one["step"] is None:
        return f"±{short(one['width'])}{missed}"
    return f"±{short(one['width'], digits=3)} rank{missed}"


def _percent(share: float | None) -> str:
    return "?" if share is None else percent(share)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
