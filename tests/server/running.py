"""A real server in a process of its own, on the loopback, with people who hold tokens."""

import contextlib
import csv
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from discreet.client.remote_table import connect
from discreet.ledger.ledger import Ledger
from discreet.server.store import open_store
from discreet.server.users import UserStore

COLUMNS = """
[table.columns]
age = { kind = "integer", lower = 0, upper = 120 }
place = { kind = "category", categories = ["north", "south"], include_other = false }
pay = { kind = "real", lower = 0, upper = 8192, grid = 0.25 }
day = { kind = "date", lower = 2026-01-01, upper = 2026-12-31 }
"""
CONFIG = """
[server]
address = "127.0.0.1:{port}"
workers = {workers}
runners = {runners}

[rates]
{rates}

[[table]]
name = "people"
title = "People"
source = "people.{kind}"
privacy_unit = "who"
max_rows_per_unit = 2
expected_rows = 1000
account = "people"
limit = {{ epsilon = {limit} }}
analyst_limit = {{ epsilon = {own} }}
"""
FAST = {"requests_per_second": 5_000, "burst": 10_000}
COUNT = {"kind": "count", "epsilon": 0.125}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def write_people(path, *, rows=1000, seed=7):
    """People who do not exist."""
    draw = random.Random(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "age", "place", "pay", "day"])
        for i in range(rows):
            place = draw.choice(["north", "south"])
            day = f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            writer.writerow([f"p{i}", draw.randint(0, 99), place, draw.randint(0, 8000), day])


def write_config(folder, *, rates=FAST, limit=1000, own=100, workers=1, runners=1, kind="csv"):
    path = folder / "serve.toml"
    words = "\n".join(f"{name} = {value}" for name, value in rates.items())
    text = CONFIG.format(
        port=free_port(),
        workers=workers,
        runners=runners,
        rates=words,
        limit=limit,
        own=own,
        kind=kind,
    )
    path.write_text(text + COLUMNS)
    return path


class Answer:
    """What came back."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.cookies = [v for n, v in response.getheaders() if n.lower() == "set-cookie"]
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.text[:300]}"


class Forked:
    """A child with the manners of subprocess.Popen."""

    def __init__(self, config, log):
        self.returncode = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                with log.open("ab") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
                sys.stderr = os.fdopen(2, "w", buffering=1)
                from discreet.server.serve import run

                run(config)
            finally:
                os._exit(1)

    def poll(self):
        if self.returncode is None and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.returncode = 1
        return self.returncode

    def wait(self, seconds):
        ends = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > ends:
                raise subprocess.TimeoutExpired("serve", seconds)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)


class Running:
    """`discreet serve`, and a way to talk to it that hides nothing."""

    def __init__(self, config, *, environment=None):
        self.config = config
        self.folder = config.parent
        text = config.read_text()
        self.port = int(text.partition("127.0.0.1:")[2].partition('"')[0])
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = f"sqlite:///{self.folder / 'service.db'}"
        self.ledger = f"sqlite:///{self.folder / 'budget.db'}"
        self.environment = {**os.environ, **(environment or {})}
        self.log = self.folder / "log"
        self.process = None

    def start(self):
        command = [sys.executable, Path(sys.executable).with_name("discreet"), "serve", self.config]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*map(str, command)],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.ready()
        return self

    def fork(self):
        """The same from a copy of this process, which has imported everything."""
        self.process = Forked(self.config, self.log)
        self.ready()
        return self

    def ready(self, seconds=60):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            assert self.process.poll() is None, self.said()
            try:
                if self.ask("GET", "/health/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"not ready: {self.said()}")

    def said(self):
        return self.log.read_text(errors="replace")

    def stop(self, *, seconds=30):
        """As a person would; the exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        finally:
            self.kill()

    def kill(self):
        """As no person would: the whole group, at once."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
            self.process = None

    # ── people ───────────────────────────────────────────────────────────────

    def token(self, name, role="analyst", *, life=timedelta(days=1)):
        store = open_store(self.store)
        try:
            return UserStore(store).add(name, role, life=life)[0]
        finally:
            store.close()

    def revoke(self, name):
        store = open_store(self.store)
        try:
            UserStore(store).revoke(name)
        finally:
            store.close()

    def connect(self, token, **more):
        return connect(self.url, token, table="people", **more)

    # ── HTTP ─────────────────────────────────────────────────────────────────

    def ask(self, method, path, *, token=None, body=None, headers=None, timeout=30):
        """One request, on a connection of its own; nothing is repeated or followed."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = dict(headers or {})
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            line.request(method, path, body=body, headers=sent)
            response = line.getresponse()
            return Answer(response, response.read())
        finally:
            line.close()

    def raw(self, data, *, timeout=30):
        """Bytes in, all bytes out until the server closes, or says nothing more."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as line:
            line.sendall(data)
            found = b""
            try:
                while part := line.recv(65536):
                    found += part
            except (TimeoutError, ConnectionResetError):
                pass
        return found

    # ── what was spent ───────────────────────────────────────────────────────

    def charges(self, account="people"):
        """The entries that cost something."""
        with Ledger(self.ledger) as ledger:
            found = ledger.account(account).history
        return [entry for entry in found if entry.kind in ("reserve", "charge")]

    def verified(self):
        with Ledger(self.ledger) as ledger:
            return ledger.verify()
