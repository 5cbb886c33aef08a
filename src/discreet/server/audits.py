"""What is known about mechanisms and models: audits, leakage of series, personal budgets."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.ledger._limit_words import limit_words
from discreet.ledger.ledger import Ledger
from discreet.ledger.spent_shares import spent_shares
from discreet.ledger.store import Store
from discreet.server.jobs.concurrency import ConcurrencyLimit
from discreet.server.middleware.errors import Busy, as_invalid_argument
from discreet.server.plans import canonical_text
from discreet.server.schemas import (
    AuditInfo,
    AuditStatusInfo,
    LeakageInfo,
    LeakInfo,
    MomentInfo,
    NoiseInfo,
    PersonalBudgetsInfo,
    PrivacyLevelInfo,
)
from discreet.server.store import now

_NOTE = "audit"
_COMMAND = "import os; os.nice(10); from discreet.cli.main import main; main()"
_STALE_MS = 15 * 60 * 1000
_MOST_PEOPLE = 1_000_000
_MOST_TIMES = 60
_MOST_HABITS = 10
_TURNS = ConcurrencyLimit("Another model is being looked at; try again soon.", waiting=2)
_LEAKAGE = (
    *("habits", "variance", "correlation", "people", "times", "lower", "upper", "noise"),
    *("promise", "delta", "target", "known"),
)
MODELS: Mapping[str, Mapping[str, Any]] = {
    "weekly spending, strong habits": {
        "habits": [0.8],
        "variance": 100.0,
        "correlation": 0.1,
        "people": 500,
        "times": 12,
        "lower": 0,
        "upper": 200,
        "promise": 0.5,
    },
    "monthly visits, weak habits": {
        "habits": [0.3],
        "variance": 4.0,
        "correlation": 0.0,
        "people": 2000,
        "times": 24,
        "lower": 0,
        "upper": 20,
        "promise": 0.25,
    },
}
"""Made-up models that one can begin with."""


class Audits:
    """The table of audits: made by a process of its own, kept in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()

    def shown(self) -> AuditStatusInfo:
        """What is known so far."""
        with self._store.read() as session:
            found = session.run("SELECT content, time FROM notes WHERE name = ?", _NOTE)
        if not found:
            return AuditStatusInfo(state="not run", rows=(), total=0, time=None, summary="")
        content = json.loads(found[0][0])
        rows = tuple(AuditInfo(**row) for row in content["rows"])
        done = content["state"] == "done"
        when = datetime.fromtimestamp(found[0][1] / 1000, tz=UTC).isoformat(timespec="seconds")
        return AuditStatusInfo(
            state="done" if done else "running",
            rows=rows,
            total=content["total"],
            time=when,
            summary=_summary(rows) if done else f"{len(rows)} of {content['total']} so far.",
        )

    def start(self) -> None:
        """Audit every mechanism, in the background; several minutes of one core."""
        with self._turn:
            with self._store.read() as session:
                found = session.run("SELECT content, time FROM notes WHERE name = ?", _NOTE)
            if found:
                running = json.loads(found[0][0])["state"] == "running"
                if running and found[0][1] > now() - _STALE_MS:
                    raise Busy("An audit is running already.")
            self._write("running", [], 0)
            threading.Thread(target=self._run, name="audit", daemon=True).start()

    def _run(self) -> None:
        rows: list[dict[str, Any]] = []
        listed = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-c", _COMMAND, "audit", "--list"],
            capture_output=True,
            check=False,
            text=True,
        )
        total = len(listed.stdout.splitlines())
        with subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", _COMMAND, "audit", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            for line in process.stdout or ():
                row = json.loads(line)
                row.pop("witness", None)
                rows.append(row)
                self._write("running", rows, total)
        self._write("done", rows, total)

    def _write(self, state: str, rows: list[dict[str, Any]], total: int) -> None:
        content = json.dumps({"state": state, "rows": rows, "total": total})
        with self._store.write() as session:
            session.run(
                "INSERT INTO notes (name, content, time) VALUES (?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET content = excluded.content, time = excluded.time",
                *(_NOTE, content, now()),
            )


def _summary(rows: tuple[AuditInfo, ...]) -> str:
    caught = sum(row.verdict == "BROKEN" for row in rows)
    good = sum(row.verdict in ("holds", "not refuted") for row in rows)
    wrong = sum(not row.ok for row in rows)
    return (
        f"{good} correct mechanisms not accused, {caught} broken ones caught, {wrong} wrong "
        "verdicts. A pass by attack proves nothing; the exact column does."
    )


def leakage(given: Mapping[str, Any]) -> LeakageInfo:
    """What the published means of people who are alike leak; no panel is read.

    It takes seconds of a core, so there is one at a time in a worker.
    """
    text = canonical_text(given)
    with _TURNS.taken(), as_invalid_argument("model"):
        found = _leakage(text)
        json.dumps(asdict(found), allow_nan=False)  # what is not finite is refused
        return found


@lru_cache(maxsize=64)
def _leakage(text: str) -> LeakageInfo:
    from discreet.audit import series
    from discreet.audit.series._mean_noise import mean_noise
    from discreet.report.leakage_report import SeriesPage, as_html, over_time

    given = json.loads(text)
    unknown = sorted(str(name) for name in set(given) - set(_LEAKAGE))
    if unknown:
        raise InvalidArgument(f"model: unknown {unknown}; known are {', '.join(_LEAKAGE)}.")
    people = _count(given, "people", _MOST_PEOPLE)
    times = _count(given, "times", _MOST_TIMES)
    low, high = (float(check.finite(name, given.get(name))) for name in ("lower", "upper"))
    delta = float(check.probability("delta", given.get("delta", 1e-6), zero=False, one=False))
    habits = given.get("habits")
    if not isinstance(habits, list) or not 0 < len(habits) <= _MOST_HABITS:
        raise InvalidArgument(f"habits must be a list of 1 to {_MOST_HABITS} numbers.")
    known = given.get("known", "time")
    if known not in ("time", "none", "all"):
        raise InvalidArgument("known must be time, none or all.")
    if not low < high:
        raise InvalidArgument("lower must be below upper.")
    if (given.get("noise") is None) == (given.get("promise") is None):
        raise InvalidArgument("Give noise, or promise: what is on each published mean.")
    if given.get("noise") is not None:
        std = float(check.positive("noise", given["noise"]))
    else:
        promise = float(check.positive("promise", given["promise"]))
        std = mean_noise((low, high), people=people, epsilon=promise, delta=delta)
    target = given.get("target")
    model = series.ExchangeableVAR(
        habits=tuple(habits),
        variance=float(check.positive("variance", given.get("variance"))),
        correlation=float(check.probability("correlation", given.get("correlation", 0))),
    )
    report = series.assess(
        model,
        people=people,
        times=times,
        bounds=(low, high),
        std=std,
        delta=delta,
        target=None if target is None else float(check.positive("target", target)),
        attacker_knows=known,
    )
    labels = tuple(str(i) for i in range(1, times + 1))
    told = SeriesPage(report=report, title="What a series leaks", times=labels, model=model)
    names = ("person", "time", "leaks", "promised", "all_values")
    lines = over_time(told).lines
    return LeakageInfo(
        people=people,
        times=times,
        delta=delta,
        rows=tuple(LeakInfo(**{name: row[name] for name in names}) for row in told.rows()),
        over_time=tuple(
            MomentInfo(time=label, leaks=leaks, promised=promised)
            for label, leaks, promised in zip(labels, lines[0].y, lines[-1].y, strict=True)
        ),
        noise=tuple(
            NoiseInfo(noise=row["noise"], error=row["error"], leaks=row["leaks"])
            for row in told.noise()
        ),
        remarks=tuple(map(str, report.remarks())),
        fixes=tuple(map(str, report.fixes)),
        target=report.target,
        assumptions=tuple(report.cells.assumptions),
        publication=report.publication,
        html=as_html(told),
    )


def _count(given: Mapping[str, Any], name: str, most: int) -> int:
    value = check.count(name, given.get(name))
    if value > most:
        raise InvalidArgument(f"{name} must be at most {most}.")
    return value


def personal_budgets_info(ledger: Ledger) -> tuple[PersonalBudgetsInfo, ...]:
    """How the spent personal budgets are distributed: for the data owner."""
    shown = []
    for name in ledger.all_personal_budgets():
        budgets = ledger.personal_budgets(name)
        levels = tuple(
            PrivacyLevelInfo(
                name=one.level,
                limit=limit_words(one.limit),
                members=one.members,
                counts=one.counts,
                mean_share=one.mean,
            )
            for one in spent_shares(budgets)
        )
        entries = int(budgets.head.partition(":")[0])
        shown.append(
            PersonalBudgetsInfo(name=name, members=len(budgets), entries=entries, levels=levels)
        )
    return tuple(shown)
