"""`discreet audit`: the table of what is claimed, what is exact and what an attack shows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from discreet.audit import runner
from discreet.audit.case import AuditCase, Demonstration
from discreet.audit.runner import AuditRow, registered, run_audit
from discreet.cards.card import card
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short


def run(
    names: Sequence[str],
    *,
    as_json: bool,
    only_list: bool,
    published: bool = False,
    to: Path | None = None,
) -> int:
    """Audit the chosen cases; the exit code says whether every verdict is the expected one.

    ``published``: claims of theses only, each with its witness and beside what keeps its promise;
    the attack that reads leaves out of a tree; and claims that only an exact law refutes.
    ``to``: where the card of the audit goes.
    """
    among: Sequence[AuditCase] | None = None
    shown: Sequence[Demonstration] = ()
    if published:
        among, shown = runner.published()
    found = tuple(one for one in shown if _asked(one.name, names))
    cases = choose_cases(names, among, need=not found)
    if published and not runner.suites():
        Console(stderr=True).print("More published claims: pip install discreet-studies.")
    if only_list:
        for name in (*(case.name for case in cases), *(one.name for one in found)):
            print(name)
        return 0
    console = Console()
    if as_json:
        rows = run_audit(cases, progress=lambda row: print(json.dumps(as_dict(row)), flush=True))
    else:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("auditing", total=len(cases))
            rows = run_audit(cases, progress=lambda _: progress.advance(task))
        console.print(table(rows))
        console.print(summary(rows))
        if published:
            witnesses(rows)
    for result in found:
        print(json.dumps(result.record(), allow_nan=False) if as_json else result)
    if to is not None:
        card(rows).save(to)
    expected = all(row.ok for row in rows) and all(result.ok for result in found)
    return 0 if expected else 1


def choose_cases(
    names: Sequence[str], among: Sequence[AuditCase] | None = None, *, need: bool = True
) -> list[AuditCase]:
    """The cases whose name contains one of ``names`` (all without names), of those registered."""
    cases = [case for case in (all_cases() if among is None else among) if _asked(case.name, names)]
    if need and not cases:
        raise InvalidArgument(f"No case is called {' or '.join(names)}: see discreet audit --list.")
    return cases


def all_cases() -> tuple[AuditCase, ...]:
    """All that is registered, and the models where they can be used."""
    if find_spec("sklearn") is None:
        Console(stderr=True).print("Models are left out: pip install 'discreet[models]'.")
        return registered()
    from discreet.audit.cases import models as model_cases

    return (*registered(), *model_cases.cases())


def _asked(name: str, names: Sequence[str]) -> bool:
    return not names or any(part.lower() in name.lower() for part in names)


def table(rows: Sequence[AuditRow]) -> Table:
    """The rows for people; epsilons at the claimed delta."""
    made = Table(title="Audit: epsilon claimed, exact and attacked, at the claimed delta")
    made.add_column("mechanism")
    for name in ("delta", "claimed", "exact", "attacked"):
        made.add_column(name, justify="right")
    made.add_column("verdict")
    made.add_column("why", overflow="fold")
    for row in rows:
        color = {"BROKEN": "yellow", "MISSED": "red", "ACCUSED": "red"}.get(row.verdict, "green")
        made.add_row(
            row.name,
            short(row.claimed.delta, digits=3),
            short(row.claimed.epsilon),
            "" if row.exact is None else short(row.exact.upper),
            f"> {short(row.attacked.epsilon)}",
            f"[{color}]{row.verdict}[/]",
            row.why,
        )
    return made


def witnesses(rows: Sequence[AuditRow]) -> None:
    """The event that refutes each broken claim, with its probability on both inputs."""
    for row in rows:
        if row.verdict == "BROKEN":
            print(f"{row.name}: {row.attacked}")


def summary(rows: Sequence[AuditRow]) -> str:
    """One sentence for the end."""
    caught = sum(row.verdict == "BROKEN" for row in rows)
    good = sum(row.verdict in ("holds", "not refuted") for row in rows)
    wrong = sum(not row.ok for row in rows)
    return (
        f"{good} correct mechanisms not accused, {caught} broken ones caught, {wrong} wrong "
        "verdicts. A rejection holds with probability 1 - 1e-6; a pass by attack proves nothing, "
        "the exact column does."
    )


def as_dict(row: AuditRow) -> dict[str, object]:
    """The row for machines; infinity as null."""
    return {
        "name": row.name,
        "delta": row.claimed.delta,
        "claimed": _finite(row.claimed.epsilon),
        "exact": None if row.exact is None else _finite(row.exact.upper),
        "attacked": _finite(row.attacked.epsilon),
        "certified": row.certified,
        "verdict": row.verdict,
        "witness": row.attacked.event if row.verdict == "BROKEN" else None,
        "ok": row.ok,
        "why": row.why,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
