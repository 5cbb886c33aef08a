"""Workers that are killed at any point of a release: one charge, one answer, nothing lost."""

import contextlib
import http.client
import json
import mmap
import os
import signal
import socket
import sqlite3
import threading
import time

import duckdb  # noqa: F401 - before the forks
import pytest
import uvicorn
import uvicorn.lifespan.on
import uvicorn.protocols.http.h11_impl

import discreet.data.execute
import discreet.data.source  # noqa: F401
from discreet.server.app import build
from discreet.server.config import read
from discreet.server.jobs import runner
from tests.server.running import COUNT, FAST, Running, write_config, write_people

STATEMENTS = 70
"""About as many as a release takes, from the request to the settlement."""
POINTS = [(number, after) for number in range(1, STATEMENTS + 1) for after in (False, True)]
MOMENTS = [0.002 * i for i in range(60)]
KILLS = len(POINTS) + len(MOMENTS)


class Worker:
    """A worker of the server, forked from here so that it starts at once.

    The application is built before: no connection to a database survives a fork.
    """

    def __init__(self, app, listening, *, kill_at=None, after=False):
        self.armed = mmap.mmap(-1, 1)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(app, listening, self.armed, kill_at, after)
            finally:
                os._exit(0)

    def arm(self):
        self.armed[0] = 1

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds):
        """How it ended; None if it lives."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                return status
            time.sleep(0.002)
        return None


def _serve(app, listening, armed, kill_at, after):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if kill_at is not None:
        _die_at(kill_at, armed, after=after)
    settings = uvicorn.Config(app, log_config=None, loop="asyncio", http="h11")
    uvicorn.Server(settings).run(sockets=[listening])


def _die_at(kill_at, armed, *, after):
    """Kill this process at a statement to a database, counted from when it is armed."""
    lock, seen = threading.Lock(), [0]

    def reached():
        with lock:
            seen[0] += armed[0]
            return seen[0] >= kill_at

    class Dying(sqlite3.Connection):
        def execute(self, *given):
            if reached():
                if after:
                    super().execute(*given)
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
            return super().execute(*given)

    real = sqlite3.connect
    sqlite3.connect = lambda *given, **more: real(*given, **more, factory=Dying)


def ask(port, token, path, body=None, *, timeout=20):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        text = None if body is None else json.dumps(body)
        line.request("GET" if body is None else "POST", path, body=text, headers=headers)
        response = line.getresponse()
        return response.status, json.loads(response.read())
    finally:
        line.close()


def send(port, token, request_id):
    """A request whose answer may never come."""
    body = {"statistics": [COUNT], "request_id": request_id}
    with contextlib.suppress(OSError, http.client.HTTPException):
        ask(port, token, "/api/v1/tables/people/releases", body, timeout=10)


def released(port, token, request_id, *, seconds=60):
    """Ask again and again, as a client does; the answer."""
    ends = time.monotonic() + seconds
    body = {"statistics": [COUNT], "request_id": request_id}
    while time.monotonic() < ends:
        status, job = ask(port, token, "/api/v1/tables/people/releases", body)
        assert status < 500, job
        if status < 300 and job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.02)
    raise AssertionError(f"no answer: {job}")


@pytest.fixture
def house(tmp_path):
    write_people(tmp_path / "people.csv", rows=50)
    path = write_config(tmp_path, rates={**FAST, "lease_seconds": 1, "queue": 1000}, own=1000)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield Running(path), listening


@pytest.mark.slow
def test_kill_at_any_point(house, monkeypatch):
    # A job is given up after some deaths; here workers die far more often than jobs are hopeless.
    monkeypatch.setattr(runner, "MOST_ATTEMPTS", 1_000_000)
    running, listening = house
    app, port = build(read(running.config)), listening.getsockname()[1]
    # The store is made before the first fork, by nobody who is killed.
    token = running.token("ada")
    for i, point in enumerate([*POINTS, *MOMENTS]):
        exact = isinstance(point, tuple)
        number, after = point if exact else (None, False)
        worker = Worker(app, listening, kill_at=number, after=after)
        # Ready: it has answered something.
        assert ask(port, token, "/api/v1/tables")[0] == 200
        worker.arm()
        sender = threading.Thread(target=send, args=(port, token, f"request-{i}"))
        sender.start()
        if not exact:
            time.sleep(point)
            worker.kill()
        if worker.wait(1) is None:  # the release was over before
            worker.kill()
            assert worker.wait(30) is not None
        sender.join()
    last = Worker(app, listening)
    try:
        jobs = [released(port, token, f"request-{i}") for i in range(KILLS)]
        again = [released(port, token, f"request-{i}") for i in range(KILLS)]
    finally:
        last.kill()
        last.wait(5)
    assert again == jobs
    _check(running, jobs)


def _check(running, jobs):
    """What the ledger says, against what was answered."""
    assert {job["state"] for job in jobs} == {"done"}
    charges = running.charges("people/ada")
    assert len({job["id"] for job in jobs}) == len(jobs) == KILLS
    # Under its number each job was charged, once; and so was the table.
    assert sorted(entry.request_id for entry in charges) == sorted(job["id"] for job in jobs)
    assert {entry.guarantee.epsilon(0) for entry in charges} == {COUNT["epsilon"]}
    assert len(running.charges("people")) == KILLS
    for job in jobs:
        (release,) = job["result"]["releases"]
        assert release["receipt"]["request_id"] == job["id"]
    assert running.verified().ok


@pytest.mark.slow
def test_a_job_that_kills_its_workers_is_given_up(house, monkeypatch):
    monkeypatch.setattr(runner, "MOST_ATTEMPTS", 1)
    running, listening = house
    app, port = build(read(running.config)), listening.getsockname()[1]
    token = running.token("ada")
    # In the middle of the job: after the reservation, before the answer.
    killed = Worker(app, listening, kill_at=STATEMENTS - 15)
    assert ask(port, token, "/api/v1/tables")[0] == 200
    killed.arm()
    send(port, token, "deadly")
    if killed.wait(5) is None:
        killed.kill()
        killed.wait(30)
    last = Worker(app, listening)
    try:
        job = released(port, token, "deadly")
    finally:
        last.kill()
        last.wait(30)
    # Whatever was reached before the death: a clear answer, and one charge at most.
    assert job["state"] in ("done", "failed")
    assert (job["error"] is None) == (job["state"] == "done")
    assert len(running.charges("people/ada")) <= 1
    assert running.verified().ok
