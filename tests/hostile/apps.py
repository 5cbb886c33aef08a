"""Doors of the command line and of the server: one line of a file, and what both then show."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from click.testing import CliRunner

from discreet.cli.main import main
from discreet.server import config as configs
from discreet.server.service import Service
from discreet.server.users import User
from tests.hostile.catalogue import CSV_LINES
from tests.hostile.harness import Door, Pair, Session

RELEASE = """
title = "Survey"
[table]
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
x = { kind = "real", lower = 0, upper = 10, granularity = 0.25 }
w = { kind = "integer", lower = -5, upper = 5 }
t = { kind = "category", categories = ["a", "b"] }
[account]
ledger = "sqlite:///budget.db"
name = "survey"
limit = { epsilon = 100 }
[[statistic]]
kind = "count"
by = ["t"]
epsilon = 1
[[statistic]]
kind = "mean"
of = "x"
epsilon = 1
[[statistic]]
kind = "sum"
of = "w"
epsilon = 1
"""
SERVER = """
[server]
store = "sqlite:///service.db"
ledger = "sqlite:///budget.db"
[[table]]
name = "people"
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
limit = { epsilon = 40 }
analyst_limit = { epsilon = 20 }
[table.columns]
x = { kind = "real", lower = 0, upper = 10, granularity = 0.25 }
t = { kind = "category", categories = ["a", "b"] }
"""
ASKED = [
    {"kind": "count", "by": ["t"], "epsilon": 1},
    {"kind": "mean", "of": "x", "epsilon": 1},
]


def _plain(text: str) -> str:
    """Without numbers, which are noisy, and hashes and times, which differ each time."""
    return re.sub(r"\s+", " ", re.sub(r"[0-9a-f]{8,}|[-+]?\d[\d.,:]*(e[-+]?\d+)?", "#", text))


def command(folder: Path) -> object:
    """Exit code, printed text, and the files that are written."""
    (folder / "survey.toml").write_text(RELEASE)
    done = CliRunner().invoke(main, ["release", str(folder / "survey.toml")])
    written = sorted(path.name for path in folder.iterdir())
    return done.exit_code, _plain(done.output), written


def service(folder: Path) -> object:
    """State and texts of a job, its result without numbers, and what is left of the budget."""
    (folder / "serve.toml").write_text(SERVER)
    running = Service(configs.read(folder / "serve.toml"))
    who = User(name="ana", role="analyst")
    try:
        running.users.add(who.name, who.role)
        job = running.submit(who, "people", ASKED, request_id="a")
        running.runner.step()
        seen = running.job(who, job.id)
        spent = running.shared_ledger.account("people/ana").spent
        return seen.state, _plain(str(seen.error)), _plain(str(seen.result)), spent
    finally:
        running.close()


def lines(show: Callable[[Path], object]) -> Callable[[random.Random, Path], Session]:
    """One hostile line of a CSV."""

    def started(draw: random.Random, folder: Path) -> Session:
        base = [
            f"p{i},{draw.uniform(0, 10):.2f},{draw.choice('ab')},{draw.randrange(-5, 6)}".encode()
            for i in range(40)
        ]

        def run(given: list[bytes]) -> object:
            home = folder / f"{draw.getrandbits(64)}"
            home.mkdir()
            (home / "people.csv").write_bytes(b"who,x,t,w\n" + b"\n".join(given) + b"\n")
            return show(home)

        def pairs() -> Iterator[Pair]:
            while True:
                name = draw.choice(sorted(CSV_LINES))
                strange = CSV_LINES[name].replace(b"{u}", b"somebody")
                where = draw.choice([0, len(base), draw.randrange(len(base) + 1)])
                yield Pair(f"{name} at {where}", [*base[:where], strange, *base[where:]])

        return Session(base=base, run=run, pairs=pairs, local=False)

    return started


DOORS: list[Door] = [
    Door("command line", ("discreet.table",), lines(command), pairs=2),
    Door("server", ("discreet.table",), lines(service), pairs=2),
]
