"""``python -m benchmarks.serve``: fifty analysts at once against one server on this machine.

Each analyst moves a slider (a plan every second), and after twenty plans releases a statistic of a
million rows and waits for the answer. There is no peer to compare with: what is told are
latencies as the analysts see them, what was refused, and whether the ledger agrees with them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import page
from discreet.ledger.ledger import Ledger
from discreet.server.store import open_store
from discreet.server.users import UserStore

ROWS = 1_000_000
PLANS = 20
PACE_S = 1.0
WAIT_S = 20
_CONFIG = """
[server]
address = "127.0.0.1:{port}"
workers = {workers}
[[table]]
name = "visits"
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 4
rows = {rows}
limit = {{ epsilon = 1000000 }}
analyst_limit = {{ epsilon = 10000 }}
[table.columns]
age = {{ kind = "integer", lower = 0, upper = 100 }}
place = {{ kind = "category", categories = [1, 2, 3, 4, 5, 6, 7, 8], include_other = false }}
cost = {{ kind = "real", lower = 0, upper = 1024, grid = 0.25 }}
"""
_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"kind": "count"},
    {"kind": "count", "by": "place"},
    {"kind": "sum", "of": "cost"},
    {"kind": "mean", "of": "cost", "by": "place"},
    {"kind": "histogram", "of": "age", "edges": [18, 30, 45, 65]},
    {"kind": "median", "of": "age"},
    {"kind": "count", "where": {"column": "age", "at_least": 65}},
)


@dataclass(slots=True)
class Seen:
    """What the analysts saw, together."""

    plans: list[float] = field(default_factory=list)
    releases: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    answers: dict[str, set[str]] = field(default_factory=dict)
    """By analyst and request: the values that came back."""
    broken: int = 0


class Analyst(threading.Thread):
    """Somebody at a browser; one connection, kept open."""

    def __init__(self, number: int, port: int, token: str, ends: float, seen: Seen) -> None:
        super().__init__(daemon=True)
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._draw = random.Random(number)
        self._number, self._token, self._ends, self._seen = number, token, ends, seen

    def run(self) -> None:
        """Plan, plan, ..., release, until time is up; what was begun is finished."""
        time.sleep(self._draw.random() * PACE_S * PLANS)
        turn = 0
        while time.monotonic() < self._ends:
            turn += 1
            asked = {**self._draw.choice(_QUESTIONS)}
            for _ in range(PLANS):
                asked["epsilon"] = round(self._draw.uniform(0.01, 0.2), 3)
                started = time.perf_counter()
                body = {"statistics": [asked], "compare": True}
                if self._sent("POST", "/api/v1/tables/visits/plan", body)[0] == 200:
                    self._seen.plans.append(time.perf_counter() - started)
                time.sleep(self._draw.uniform(0.5, 1.5) * PACE_S)
                if time.monotonic() > self._ends:
                    self._line.close()
                    return
            self._release(asked, f"{self._number}-{turn}")
        self._line.close()

    def _release(self, asked: dict[str, Any], request_id: str) -> None:
        started = time.perf_counter()
        body = {"statistics": [asked], "request_id": request_id, "wait": WAIT_S}
        while True:
            status, job = self._sent("POST", "/api/v1/tables/visits/releases", body)
            if status not in (0, 429):  # no connection, or too many: again, under the same id
                break
            time.sleep(0.5)
        while 0 < status < 300 and job["state"] in ("queued", "running"):
            address = f"/api/v1/releases/{job['id']}?wait={WAIT_S}"
            status, job = self._sent("GET", address, None)
        if 0 < status < 300 and job["state"] == "done":
            self._seen.releases.append(time.perf_counter() - started)
            value = json.dumps(job["result"], sort_keys=True)
            self._seen.answers.setdefault(request_id, set()).add(value)
            if self._draw.random() < 0.2:  # a browser that loads its page again
                _, again = self._sent("POST", "/api/v1/tables/visits/releases", body)
                self._seen.answers[request_id].add(json.dumps(again["result"], sort_keys=True))
        else:
            self._seen.broken += 1

    def _sent(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
        }
        try:
            text = None if body is None else json.dumps(body)
            self._line.request(method, path, body=text, headers=headers)
            response = self._line.getresponse()
            content = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self._line.close()
            self._seen.statuses[0] += 1
            return 0, {}
        self._seen.statuses[response.status] += 1
        return response.status, content


def visits(folder: Path, rows: int) -> Path:
    """A million made-up visits of a third as many people."""
    import duckdb

    path = folder / "visits.parquet"
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT i // 3 AS person, (hash(i) % 101)::INT AS age, "
            f"(1 + hash(i + 1) % 8)::INT AS place, (hash(i + 2) % 4096) / 4.0 AS cost "
            f"FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


@contextlib.contextmanager
def server(folder: Path, *, rows: int, workers: int) -> Iterator[int]:
    """A server with its data; the port. Ended as a person would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    visits(folder, rows)
    config = folder / "serve.toml"
    config.write_text(_CONFIG.format(port=port, rows=rows, workers=workers), encoding="utf-8")
    command = [sys.executable, "-c", "from discreet.cli.main import main; main()"]
    with (folder / "log").open("ab") as log:
        running = subprocess.Popen(
            [*command, "serve", str(config)],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    try:
        _ready(port, running, folder / "log")
        yield port
        running.send_signal(signal.SIGTERM)
        running.wait(60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait(60)


def _ready(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if running.poll() is not None:
            break
        with contextlib.suppress(OSError):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.closing(line):
                line.request("GET", "/health/ready")
                if line.getresponse().status == 200:
                    return
        time.sleep(0.1)
    raise click.ClickException(f"The server does not start: {log.read_text(encoding='utf-8')}")


def measured(*, analysts: int, seconds: float, rows: int, workers: int) -> dict[str, Any]:
    """One run; the server is its own process, the analysts are threads of this one."""
    with tempfile.TemporaryDirectory(prefix="serve-") as name:
        folder = Path(name)
        with server(folder, rows=rows, workers=workers) as port:
            store = open_store(f"sqlite:///{folder / 'service.db'}")
            tokens = [UserStore(store).add(f"analyst-{i}", "analyst")[0] for i in range(analysts)]
            store.close()
            seen = Seen()
            ends = time.monotonic() + seconds
            people = [Analyst(i, port, token, ends, seen) for i, token in enumerate(tokens)]
            for one in people:
                one.start()
            for one in people:
                one.join()
        return _told(seen, folder)


def _told(seen: Seen, folder: Path) -> dict[str, Any]:
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        history = ledger.account("visits").history
        sound = ledger.verify().ok
    charges = sum(one.kind in ("reserve", "charge") for one in history)
    found: dict[str, Any] = {"statuses": dict(sorted(seen.statuses.items())), "sound": sound}
    for name, times in (("plan", seen.plans), ("release", seen.releases)):
        cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
        found[name] = {
            "number": len(times),
            "median_ms": 1000 * cuts[49],
            "p95_ms": 1000 * cuts[94],
            "worst_ms": 1000 * max(times, default=0.0),
        }
    return {
        **found,
        "failures": sum(n for status, n in seen.statuses.items() if status >= 500 or not status),
        "answered": len(seen.answers),
        "charged": charges,
        "unanswered": seen.broken,
        "two_answers": sum(len(values) > 1 for values in seen.answers.values()),
    }


def lines(found: dict[str, Any], *, rows: int) -> list[str]:
    """The table of the page."""
    shown = [
        "| as analysts see it | number | median, ms | p95, ms | worst, ms |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, words in (("plan", "a plan"), ("release", f"a release on {rows:,} rows")):
        one = found[name]
        shown.append(
            f"| {words} | {one['number']:,} | {one['median_ms']:.0f} | {one['p95_ms']:.0f} | "
            f"{one['worst_ms']:.0f} |"
        )
    return [
        *shown,
        "",
        (
            f"Answers of the server that begin with 5, or none at all: {found['failures']}. "
            f"Releases answered: {found['answered']}; charges in the ledger: {found['charged']}; "
            f"requests with two different answers: {found['two_answers']}."
        ),
    ]


@click.command()
@click.option("--analysts", default=50, show_default=True)
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--rows", default=ROWS, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--update-docs", is_flag=True, help="Write the results into docs/benchmarks.md.")
def main(
    *, analysts: int, seconds: float, rows: int, workers: int, as_json: bool, update_docs: bool
) -> None:
    """Fifty analysts for a minute."""
    found = measured(analysts=analysts, seconds=seconds, rows=rows, workers=workers)
    if as_json:
        click.echo(json.dumps(found))
    else:
        drawn = Table("what", "number", "median, ms", "p95, ms", "worst, ms")
        for name in ("plan", "release"):
            drawn.add_row(name, *(f"{value:.0f}" for value in found[name].values()))
        Console().print(drawn)
        Console().print({k: v for k, v in found.items() if k not in ("plan", "release")})
    if update_docs:
        page.replace_section("serve", lines(found, rows=rows))


if __name__ == "__main__":
    main()
