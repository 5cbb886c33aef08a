"""Many analysts at once, several workers, and workers that die: no charge is lost or doubled."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from benchmarks import serve
from discreet import query
from tests.server.running import Running, write_config, write_people

pytestmark = pytest.mark.slow


def test_analysts_at_once(monkeypatch):
    """The load test of the benchmarks, short; its times are not looked at."""
    monkeypatch.setattr(serve, "PLANS", 2)
    monkeypatch.setattr(serve, "PACE_S", 0.2)
    found = serve.measured(analysts=15, seconds=6, rows=10_000, workers=2)
    assert found["failures"] == 0
    assert found["unanswered"] == 0
    assert found["two_answers"] == 0
    assert found["charged"] == found["answered"] == found["release"]["number"] > 0
    assert found["sound"]


def workers_of(process):
    """The worker processes below a server's own."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = []
    for child in children:
        words = Path(f"/proc/{child}/cmdline").read_bytes()
        if b"spawn_main" in words:
            found.append(int(child))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
def test_a_server_whose_workers_are_killed(tmp_path):
    """`discreet serve` with two workers: one dies, again and again; clients only wait longer."""
    write_people(tmp_path / "people.csv", rows=200)
    rates = {"requests_per_second": 5000, "burst": 10_000, "lease_seconds": 1}
    running = Running(write_config(tmp_path, rates=rates, workers=2))
    names, turns = ("ada", "ben", "cleo"), 6
    answers, failures = {}, []

    def ask_on(name, token):
        people = running.connect(token, timeout=300)
        for turn in range(turns):
            try:
                asked = {"epsilon": 0.125, "request_id": f"{name}-{turn}"}
                (first,) = people.release([query.count()], **asked)
                (again,) = people.release([query.count()], **asked)
                answers[name, turn] = (first.to_json(), again.to_json())
            except Exception as error:  # noqa: BLE001 - told below
                failures.append(repr(error))
            time.sleep(0.3)

    try:
        running.start()
        threads = [
            threading.Thread(target=ask_on, args=(name, running.token(name))) for name in names
        ]
        for thread in threads:
            thread.start()
        killed = 0
        while any(thread.is_alive() for thread in threads) and killed < 6:
            found = workers_of(running.process)
            if len(found) == 2:  # the other one serves meanwhile
                os.kill(found[killed % 2], signal.SIGKILL)
                killed += 1
            time.sleep(1)
        for thread in threads:
            thread.join()
        assert killed > 0
        assert failures == []
        assert len(answers) == len(names) * turns
        assert all(first == again for first, again in answers.values())
        assert len(running.charges("people")) == len(answers)
        assert running.verified().ok
    finally:
        running.kill()
