"""Doors of the server: a real one on the loopback, asked as programs and as browsers ask it.

Each data set has a server of its own, which answers the same requests: plans, releases by the JSON
interface and by the form, files, pages, refusals. All that it says must be the same for neighbors:
status, headers, bodies, metrics and log; without what is new each time (ids, keys, times).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import uvicorn

from discreet.server import config as configs
from discreet.server.app import build
from discreet.server.middleware.timeouts import TimeoutMiddleware
from discreet.server.serve import options
from tests.data import sources
from tests.hostile.catalogue import CSV_LINES
from tests.hostile.harness import Door, Pair, Session, settled
from tests.hostile.tables import LEVELS, TYPES, honest_rows, typed_person
from tests.server.browser import hidden
from tests.server.requests_to import csrf_in, form, sign_in
from tests.server.running import Running, free_port

CONFIG = """
[server]
address = "127.0.0.1:{port}"
[rates]
requests_per_second = 5000
burst = 10000
[[table]]
name = "people"
source = "people.{ending}"
privacy_unit = "who"
max_rows_per_unit = 2
expected_rows = 40
limit = {{ epsilon = 100 }}
analyst_limit = {{ epsilon = 50 }}
[table.columns]
x = {{ kind = "real", lower = 0, upper = 10, granularity = 0.25 }}
w = {{ kind = "integer", lower = -5, upper = 5 }}
t = {{ kind = "category", categories = {levels} }}
b = {{ kind = "boolean" }}
d = {{ kind = "date", lower = 2020-01-01, upper = 2020-12-31 }}
"""
STATISTICS: list[dict[str, Any]] = [
    {"kind": "count", "by": ["t"]},
    {"kind": "count", "where": {"column": "x", "above": 5}},
    {"kind": "units", "by": ["b"]},
    {"kind": "mean", "of": "x"},
    {"kind": "sum", "of": "w", "by": ["t", "b"]},
    {"kind": "variance", "of": "x"},
    {"kind": "std", "of": "x", "by": ["b"]},
    {"kind": "covariance", "of": ["x", "w"]},
    {"kind": "median", "of": "x", "bins": 16},
    {"kind": "quantiles", "of": "w", "q": [0.25, 0.75]},
    {"kind": "histogram", "of": "x", "edges": [1, 2.5, 5]},
    {"kind": "ranges", "of": "d"},
    {"kind": "maximum", "of": "x"},
    {"kind": "share", "by": ["b"]},
    {"kind": "compare", "of": "x", "by": ["b"], "to": True},
    {"kind": "count_distinct", "of": "w", "at_least": 2},
]
REFUSED: list[list[dict[str, Any]]] = [
    [{"kind": "sum", "of": "nothing", "epsilon": 1}],
    [{"kind": "count", "epsilon": 49.9}, {"kind": "units", "epsilon": 1}],
    [{"kind": "quantiles", "of": "x", "q": [2], "epsilon": 1}],
]
PAGES = (
    *("/tables", "/tables/people", "/tables/people/plan", "/releases", "/ledger"),
    *("/ledger/chain", "/personal", "/people", "/nothing"),
)
INTERFACE = (
    *("me", "tables", "tables/people", "releases", "ledger?verify=true", "people", "personal"),
    *("releases/nothing", "tables/nothing"),
)
CANARY = "zq-7316-wanderer"
"""The strange person's id, which nothing that leaves the server, or that it keeps, may hold."""


class InThread(Running):
    """The server in a thread of this process: what it draws and hands on can be replayed."""

    def start(self) -> InThread:
        config = configs.read(self.config)
        self.words = io.StringIO()
        TimeoutMiddleware.seconds = float(config.rates.seconds_to_send)
        TimeoutMiddleware.most = config.rates.connections
        self.app = build(config)
        # The handlers of the log keep the stream. To configure them closes all that there are, and
        # that of absl, which peers import, would close what pytest captures.
        others = mock.patch.object(logging, "_handlerList", [])
        with others, contextlib.redirect_stderr(self.words):
            self.server = uvicorn.Server(uvicorn.Config(self.app, **options(config)))
        self.thread = threading.Thread(target=self.server.run, name="http")
        self.thread.start()
        ends = time.monotonic() + 30
        while not self.server.started and self.thread.is_alive() and time.monotonic() < ends:
            time.sleep(0.005)
        assert self.server.started, self.words.getvalue()
        return self

    def stop(self, *, seconds: float = 30) -> int:
        self.server.should_exit = True
        self.thread.join(seconds)
        assert not self.thread.is_alive()
        for name in ("discreet.web", "uvicorn", "uvicorn.error", "asyncio"):
            logging.getLogger(name).handlers.clear()
            logging.getLogger(name).propagate = True
        return 0


def _counters(text: str) -> list[str]:
    """What metrics say besides times."""
    return [
        line for line in text.splitlines() if "seconds_bucket" not in line and "_sum" not in line
    ]


class Visit:
    """All requests to one server, and what it said, under the name of each request."""

    def __init__(self, running: InThread) -> None:
        self.running = running
        self.said: dict[str, object] = {}
        users = running.app.state.service.users
        self.tokens = {role: users.add(role, role)[0] for role in ("owner", "analyst", "auditor")}

    def ask(self, name: str, method: str, path: str, **more: Any) -> Any:
        return self.keep(name, self.running.ask(method, path, **more))

    def keep(self, name: str, answer: Any) -> Any:
        assert CANARY not in answer.text, f"{name} shows who it is"
        # The length is in the body; a moment may have more or fewer digits.
        headers = {
            k: settled(v) for k, v in answer.headers.items() if k not in ("date", "content-length")
        }
        text = answer.text
        if "/ledger" in name:  # its pictures have an axis of time
            text = re.sub(r'(<text [^>]*>[^<]*</text>\s*)+|(points|d|cx|x\d?)="[^"]*"', "#", text)
        said: object = _counters(text) if name == "metrics" else settled(text)
        self.said[name] = (answer.status, sorted(headers.items()), said)
        return answer

    def interface(self, statistics: list[dict[str, Any]]) -> None:
        """As a program asks."""
        token = self.tokens["analyst"]
        table = "/api/v1/tables/people"
        plan = {"statistics": statistics, "compare": True}
        self.ask("plan", "POST", f"{table}/plan", token=token, body=plan)
        body = {"statistics": statistics, "request_id": "one", "wait": 25}
        job = self.ask("release", "POST", f"{table}/releases", token=token, body=body).json
        assert job.get("state") == "done", job
        self.ask("again", "POST", f"{table}/releases", token=token, body=body)
        for kind in ("json", "csv", "html", "card.json", "card.md", "card.html"):
            path = f"/api/v1/releases/{job['id']}/file?format={kind}"
            self.ask(f"file {kind}", "GET", path, token=token)
        self.ask("job", "GET", f"/api/v1/releases/{job['id']}", token=token)
        for number, refused in enumerate(REFUSED):
            body = {"statistics": refused, "request_id": f"refused {number}", "wait": 25}
            for path in ("plan", "releases"):
                sent = {"statistics": refused} if path == "plan" else body
                self.ask(
                    f"refused {path} {number}", "POST", f"{table}/{path}", token=token, body=sent
                )

    def browser(self, fields: dict[str, str]) -> None:
        """As a browser asks: forms, and the pages that follow them."""
        cookie = {"Cookie": sign_in(self.running, self.tokens["analyst"])}
        page = self.ask("form", "GET", "/tables/people/plan", headers=cookie)
        fields = {**fields, "csrf": csrf_in(page.text)}
        self.keep("planned", form(self.running, "/tables/people/plan", fields, **cookie))
        confirmed = form(self.running, "/tables/people/confirm", fields, **cookie)
        self.keep("confirmed", confirmed)
        sent = {**hidden(confirmed.text), "csrf": fields["csrf"]}
        moved = self.keep("sent", form(self.running, "/tables/people/release", sent, **cookie))
        path = moved.headers["location"]
        number = path.rpartition("/")[2]
        job = self.running.ask(
            "GET", f"/api/v1/releases/{number}?wait=25", token=self.tokens["analyst"]
        ).json
        assert job.get("state") == "done", job
        for place in (path, f"{path}/json", f"{path}/csv", f"{path}/html", "/nothing"):
            self.ask(f"page {place.replace(number, '')}", "GET", place, headers=cookie)

    def look(self) -> None:
        """Every page and every part of the interface, as each role."""
        for role, token in self.tokens.items():
            cookie = {"Cookie": sign_in(self.running, token)}
            for path in PAGES:
                self.ask(f"{role} {path}", "GET", path, headers=cookie)
            for path in INTERFACE:
                self.ask(f"{role} api {path}", "GET", f"/api/v1/{path}", token=token)
        self.ask("metrics", "GET", "/metrics", token=self.tokens["owner"])
        self.ask("ready", "GET", "/health/ready")

    def charged(self) -> object:
        """What was charged to whom."""
        ledger = self.running.app.state.service.shared_ledger
        return [
            (entry.kind, entry.label, entry.outcome, entry.guarantee)
            for account in ledger.accounts()
            for entry in account.history
        ]


def visited(folder: Path, ending: str, asked: Callable[[Visit], None]) -> object:
    """What a server on a folder with data says."""
    config = folder / "serve.toml"
    config.write_text(
        CONFIG.format(port=free_port(), ending=ending, levels=json.dumps(LEVELS)), encoding="utf-8"
    )
    running = InThread(config)
    running.start()
    try:
        visit = Visit(running)
        asked(visit)
        charged = visit.charged()
    finally:
        running.stop()
    log = running.words.getvalue()
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, content in {"log": log.encode(), **kept}.items():
        private = name != f"people.{ending}" and CANARY.encode() in content
        assert not private, f"{name} holds who it is"
    return visit.said, sorted(kept), sorted(settled(log).splitlines()), charged


FIELDS: list[dict[str, str]] = [
    {"kind": "count", "measure": "epsilon", "amount": "0.5", "aim": "amount"},
    {"kind": "count", "by": "t", "measure": "epsilon", "amount": "0.5", "aim": "amount"},
    {"kind": "mean", "of": "x", "measure": "epsilon", "amount": "0.5", "aim": "amount"},
    {"kind": "sum", "of": "w", "by": "b", "measure": "epsilon", "amount": "0.5", "aim": "amount"},
]


def _requests(draw: random.Random) -> Callable[[Visit], None]:
    """What is asked, the same of every server of a session."""
    statistics = [{**one, "epsilon": 1} for one in draw.sample(STATISTICS, 4)]
    fields = draw.choice(FIELDS)

    def asked(visit: Visit) -> None:
        visit.interface(statistics)
        visit.browser(fields)
        visit.look()

    return asked


def lines(draw: random.Random, folder: Path) -> Session:
    """One hostile line of a CSV."""
    base = [
        f"p{i},{draw.uniform(0, 10):.2f},{draw.choice('ab')},{draw.randrange(-5, 6)},"
        f"{draw.choice(['true', 'false', ''])},2020-{draw.randrange(1, 13):02}-11".encode()
        for i in range(40)
    ]
    asked, numbers = _requests(draw), itertools.count()

    def run(given: list[bytes]) -> object:
        home = folder / f"lines-{next(numbers)}-{draw.getrandbits(30)}"
        home.mkdir()
        (home / "people.csv").write_bytes(b"who,x,t,w,b,d\n" + b"\n".join(given) + b"\n")
        return visited(home, "csv", asked)

    def pairs() -> Iterator[Pair]:
        while True:
            name = draw.choice(sorted(CSV_LINES))
            more = draw.choice([b"", b",true,2020-02-30", b",5,99999-01-01", b",,"])
            strange = CSV_LINES[name].replace(b"{u}", CANARY.encode()) + more
            where = draw.choice([0, len(base), draw.randrange(len(base) + 1)])
            yield Pair(f"{name} at {where}", [*base[:where], strange, *base[where:]])

    return Session(base=base, run=run, pairs=pairs, local=False)


def rows(draw: random.Random, folder: Path) -> Session:
    """Rows of one hostile person in a Parquet file."""
    base = honest_rows(draw)
    asked, numbers = _requests(draw), itertools.count()

    def run(given: list[dict[str, Any]]) -> object:
        home = folder / f"rows-{next(numbers)}-{draw.getrandbits(30)}"
        home.mkdir()
        pl.from_arrow(sources.arrow(given, TYPES)).write_parquet(home / "people.parquet")
        return visited(home, "parquet", asked)

    def pairs() -> Iterator[Pair]:
        while True:
            told, strange = typed_person(draw, TYPES, CANARY)
            where = draw.choice([0, len(base), draw.randrange(len(base) + 1)])
            yield Pair(f"{told} at {where}", [*base[:where], *strange, *base[where:]])

    return Session(base=base, run=run, pairs=pairs, local=False)


def started(draw: random.Random, folder: Path) -> Session:
    """A server on a CSV or on a Parquet file."""
    return draw.choice([lines, rows])(draw, folder)


DOORS: list[Door] = [Door("over HTTP", ("discreet.table",), started, pairs=2)]
