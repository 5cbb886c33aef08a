"""A secret in the data is in nothing that a server says, shows, writes or keeps."""

import json
import time

import pytest

from tests.server.requests_to import csrf_in, form, sign_in
from tests.server.running import Running, free_port

WHO = "CANARY-7316"
WORD = "CANARY-KEY"
NUMBER = 731_655_901_337
SECRETS = [s.encode() for s in (WHO, WORD, str(NUMBER), f"{NUMBER:,}", "CANARY")]
CONFIG = """
[server]
address = "127.0.0.1:{port}"
[rates]
requests_per_second = 5000
burst = 10000
[[table]]
name = "people"
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
expected_rows = 10
limit = {{ epsilon = 100 }}
analyst_limit = {{ epsilon = 50 }}
[table.columns]
x = {{ kind = "integer", lower = 0, upper = 1_000_000_000_000 }}
k = {{ kind = "category", categories = ["a", "b"] }}
"""
ROWS = f"who,x,k\n{WHO},{NUMBER},{WORD}\n{WHO},{NUMBER},a\nother,5,b\n"
ASKED = [
    {"kind": "sum", "of": "x", "by": ["k"], "epsilon": 0.2},
    {"kind": "units", "epsilon": 0.2},
    {"kind": "mean", "of": "x", "epsilon": 0.2},
    {"kind": "median", "of": "x", "bins": 64, "epsilon": 0.2},
]
PAGES = (
    *("/", "/tables", "/tables/people", "/tables/people/plan", "/releases", "/ledger", "/audit"),
    *("/ledger/chain", "/leakage", "/personal", "/people", "/metrics", "/health/ready", "/nothing"),
)
INTERFACE = ("me", "tables", "tables/people", "releases", "ledger?verify=true", "audit", "people")
MALFORMED = {
    "open quote": ROWS + f'"{WHO},{NUMBER}\n',
    "too many fields": ROWS + f"{WHO},{NUMBER},{WORD},too,many\n",
}
BROKEN = {"another header": ROWS.replace("who,x,k", f"who,{WORD},k")}


class House:
    """A server, and everything that ever came out of it."""

    def __init__(self, folder, rows):
        (folder / "people.csv").write_text(rows)
        config = folder / "serve.toml"
        config.write_text(CONFIG.format(port=free_port()))
        self.running = Running(config)
        self.seen = {}

    def keep(self, name, answer):
        self.seen[name] = answer.body + repr(sorted(answer.headers.items())).encode()
        return answer

    def left(self):
        """What was shown, and what lies in the folder: databases, logs, anything."""
        found = dict(self.seen)
        for path in self.running.folder.rglob("*"):
            if path.is_file() and path.name not in {"people.csv", "serve.toml"}:
                found[path.name] = path.read_bytes()
        return found

    def search(self):
        found = self.left()
        for name, content in found.items():
            for secret in SECRETS:
                assert secret not in content, f"{name} holds {secret!r}"
        return found


@pytest.fixture
def house(tmp_path, request):
    found = House(tmp_path, request.param)
    try:
        found.running.fork()
        found.tokens = {
            role: found.running.token(role, role) for role in ("owner", "analyst", "auditor")
        }
        yield found
    finally:
        found.running.kill()


def released(house, number, statistic):
    token = house.tokens["analyst"]
    body = {"statistics": [statistic], "request_id": f"r{number}", "wait": 10}
    path = "/api/v1/tables/people/releases"
    ends = time.monotonic() + 60
    while True:
        answer = house.keep(
            f"release {number}", house.running.ask("POST", path, token=token, body=body)
        )
        if answer.status >= 300 or answer.json["state"] not in ("queued", "running"):
            return answer
        assert time.monotonic() < ends


def look(house):
    """Every page and every part of the interface, as each role."""
    running = house.running
    for role, token in house.tokens.items():
        session = sign_in(running, token)
        for path in PAGES:
            house.keep(f"{role} {path}", running.ask("GET", path, headers={"Cookie": session}))
        for path in INTERFACE:
            answer = running.ask("GET", f"/api/v1/{path}", token=token)
            house.keep(f"{role} api {path}", answer)
            assert answer.status in (200, 403)
    session = sign_in(running, house.tokens["analyst"])
    page = running.ask("GET", "/tables", headers={"Cookie": session})
    house.keep("out", form(running, "/logout", {"csrf": csrf_in(page.text)}, Cookie=session))


@pytest.mark.parametrize("house", [ROWS], ids=["sound"], indirect=True)
def test_a_server_that_works(house):
    token = house.tokens["analyst"]
    for number, statistic in enumerate(ASKED):
        plan = {"statistics": [statistic], "compare": True}
        answer = house.running.ask("POST", "/api/v1/tables/people/plan", token=token, body=plan)
        assert house.keep(f"plan {number}", answer).status == 200
        answer = released(house, number, statistic)
        job = answer.json
        assert job["state"] == "done", job
        for kind in ("json", "csv", "html", "card.json", "card.md", "card.html"):
            path = f"/api/v1/releases/{job['id']}/file?format={kind}"
            assert (
                house.keep(f"{kind} {number}", house.running.ask("GET", path, token=token)).status
                == 200
            )
        for path in (f"/releases/{job['id']}", f"/api/v1/releases/{job['id']}"):
            house.keep(f"{path} {number}", house.running.ask("GET", path, token=token))
    assert released(house, "too much", {"kind": "count", "epsilon": 49.9}).status == 409
    look(house)
    house.running.stop()
    found = house.search()
    assert {"budget.db", "service.db", "log"} <= set(found)
    assert b"status=200" in found["log"]
    # No token, session or question either.
    for secret in (*house.tokens.values(), "request_id", "epsilon"):
        assert secret.encode() not in found["log"]
    for token in house.tokens.values():
        assert token.encode() not in found["service.db"]


@pytest.mark.parametrize("house", MALFORMED.values(), ids=MALFORMED, indirect=True)
def test_a_malformed_row_changes_nothing(house):
    for number, statistic in enumerate(ASKED[:2]):
        answer = released(house, number, statistic)
        assert answer.status < 300
        assert answer.json["state"] == "done", answer
    house.running.stop()
    found = house.search()
    assert b"Traceback" not in found["log"]


@pytest.mark.parametrize("house", BROKEN.values(), ids=BROKEN, indirect=True)
def test_a_server_whose_data_are_broken(house):
    answer = released(house, 0, ASKED[0])
    assert answer.status < 500
    assert answer.status >= 300 or answer.json["state"] == "failed", answer
    assert released(house, 1, ASKED[1]).status < 500
    look(house)
    house.running.stop()
    found = house.search()
    assert b"Traceback" not in found["log"]


@pytest.mark.parametrize("house", [ROWS], ids=["sound"], indirect=True)
def test_the_search_can_fail(house):
    (house.running.folder / "leak").write_text(json.dumps({"x": f"{NUMBER:,}"}))
    with pytest.raises(AssertionError, match="leak"):
        house.search()
    (house.running.folder / "leak").unlink()
    house.keep("page", house.running.ask("GET", "/health/live"))
    house.seen["page"] += WORD.encode()
    with pytest.raises(AssertionError, match="page"):
        house.search()
