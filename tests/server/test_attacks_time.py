"""Attacks by those who take their time, or too much of everyone's."""

import socket
import threading
import time

import pytest

from tests.server.requests_to import (
    API,
    PLAN,
    RELEASES,
    release,
)
from tests.server.running import COUNT, FAST, Running, write_config, write_people


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server with little patience."""
    folder = tmp_path_factory.mktemp("strict")
    write_people(folder / "people.csv", rows=20)
    rates = {"requests_per_second": 5, "burst": 20, "seconds_to_send": 1, "connections": 30}
    found = Running(write_config(folder, rates=rates))
    try:
        found.fork()
        found.tokens = {name: found.token(name) for name in ("ada", "ben")}
        yield found
    finally:
        found.kill()


def test_slow_clients_are_let_go(strict):
    starts = [
        b"GET /api/v1/tables HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ",
        (
            f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1:{strict.port}\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {strict.tokens['ben']}\r\n"
            "Content-Length: 500\r\n\r\n{"
        ).encode(),
    ]
    lines = [socket.create_connection(("127.0.0.1", strict.port), timeout=20) for _ in range(10)]
    try:
        for i, line in enumerate(lines):
            line.sendall(starts[i % 2])
        for _ in range(3):  # a byte now and then must not buy time
            time.sleep(0.3)
            for line in lines:
                line.sendall(b"a")
        # Somebody else is served meanwhile.
        assert strict.ask("GET", f"{API}/tables", token=strict.tokens["ada"]).status == 200
        for line in lines:
            found = b""
            try:
                while part := line.recv(1000):
                    found += part
            except ConnectionResetError:
                pass
            assert found == b"" or found.split()[1] in (b"400", b"408"), found
    finally:
        for line in lines:
            line.close()


def test_too_many_requests(strict):
    answers = [strict.ask("GET", f"{API}/tables", token=strict.tokens["ben"]) for _ in range(60)]
    statuses = {answer.status for answer in answers}
    assert statuses == {200, 429}
    for answer in answers:
        if answer.status == 429:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json["problem"] == "busy"
    # Others are not held up by it.
    time.sleep(0.3)
    assert strict.ask("GET", f"{API}/tables", token=strict.tokens["ada"]).status == 200


def test_guessing_tokens_is_slowed_down(strict):
    answers = [strict.ask("GET", f"{API}/tables", token=f"dsc_{i}") for i in range(60)]
    statuses = {answer.status for answer in answers}
    assert statuses <= {401, 429}


def test_a_full_queue_pushes_back(tmp_path):
    write_people(tmp_path / "people.csv", rows=20)
    found = Running(write_config(tmp_path, rates={**FAST, "queue": 5, "queue_per_person": 3}))
    try:
        found.fork()
        found.tokens = {"ada": found.token("ada")}
        answers = []

        def send(i):
            body = {"statistics": [COUNT], "request_id": f"r{i}"}
            answers.append(found.ask("POST", RELEASES, token=found.tokens["ada"], body=body))

        threads = [threading.Thread(target=send, args=(i,)) for i in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status for answer in answers} <= {200, 201, 202, 429}
        for answer in answers:
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1
        kept = [answer for answer in answers if answer.status < 300]
        assert kept
        for answer in kept:
            assert release(found, "ada", answer.json["request_id"])["state"] == "done"
        assert len(found.charges("people")) == len(kept)
        found.stop()
        assert found.verified().ok
    finally:
        found.kill()
