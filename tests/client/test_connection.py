"""The client against a server that misbehaves: patience, errors by name, one id for one request."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from discreet import BudgetExceeded, InvalidArgument, Unsupported, col, query
from discreet.client.connection import ServerRefused, ServerUnreachable, connection
from discreet.client.remote_table import connect

TABLE = {
    "name": "people",
    "unit": None,
    "relation": "add_remove",
    "rows_per_unit": None,
    "groups_per_unit": None,
    "rows_per_unit_and_group": None,
    "columns": [
        {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "missing": 0},
        {"name": "pay", "kind": "real", "lower": 0.0, "upper": 8.0, "missing": 0.0, "step": 0.25},
        {
            "name": "place",
            "kind": "category",
            "levels": ["a", "b", "(other)"],
            "missing": "(other)",
        },
        {"name": "day", "kind": "date", "lower": "2026-01-01", "upper": "2026-12-31"},
        {"name": "well", "kind": "boolean", "missing": False},
        {"name": "word", "kind": "text"},
    ],
    "budget": {"remaining": 0.75, "limit_words": "epsilon 1"},
}
TABLE["columns"][3] |= {"missing": "2026-01-01", "step": "day"}
for one in TABLE["columns"]:
    one |= {name: one.get(name) for name in ("lower", "upper", "missing", "step", "levels")}


class Script:
    """Answers from a list; None breaks the connection. What was asked is kept."""

    def __init__(self):
        self.asked, self.answers = [], []

    def next(self):
        return self.answers.pop(0) if self.answers else (404, {}, {"detail": "no more"})


@pytest.fixture
def script():
    found = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.asked.append((self.command, self.path, dict(self.headers), body))
            answer = found.next()
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            status, headers, content = answer
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": len(text)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def people(script):
    script.answers = [(200, {}, [TABLE]), (200, {}, TABLE)]
    table = connect(script.url, "token", timeout=2)
    script.asked.clear()
    return table


def job(state, **more):
    return {"id": "j1", "state": state, "problem": None, "error": None, "result": None, **more}


def test_what_is_public_is_computed_here(people, script):
    assert people.forecast(query.count(by="place"), epsilon=1).groups == 3
    amount = people.budget_for(query.count(), within=5)
    assert amount["epsilon"] > 0
    assert people.plan_ranges("age", epsilon=1).best is not None
    assert "people" in repr(people)
    assert "token" not in repr(people)
    assert script.asked == []


def test_what_is_refused_here_is_not_sent(people, script):
    for wrong in (
        lambda: people.count(epsilon=-1),
        lambda: people.sum("nothing", epsilon=1),
        lambda: people.count(where=col("word") < 5, epsilon=1),
        lambda: people.release([query.count()], epsilon=1, weights=[1, 2]),
        lambda: people.ranges("pay", bins=0, epsilon=1),
        lambda: people.ranges(["age"], epsilon=1),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    assert script.asked == []


@pytest.mark.parametrize(
    "verb",
    [
        "discover_keys",
        "join",
        "join_by_unit",
        "suggest_bounds",
        "suggest_contribution_limits",
        "large_domain_quantiles",
        "with_personal_budgets",
    ],
)
def test_what_needs_the_data_is_not_there(people, verb):
    assert not hasattr(people, verb)


def test_a_request_is_repeated_under_one_id(people, script):
    script.answers = [
        None,
        (429, {"Retry-After": 0}, {"detail": "busy"}),
        (503, {}, b"<html>"),
        (200, {}, job("queued")),
        None,
        (200, {}, job("running")),
        (200, {}, job("refused", problem="budget-exceeded", error="short")),
    ]
    with pytest.raises(BudgetExceeded, match="short"):
        people.count(epsilon=1)
    bodies = {body for method, _, _, body in script.asked if method == "POST"}
    assert len(bodies) == 1
    assert [method for method, *_ in script.asked] == ["POST"] * 4 + ["GET"] * 3
    assert all(headers["Authorization"] == "Bearer token" for _, _, headers, _ in script.asked)


def test_two_requests_have_two_ids(people, script):
    script.answers = [(409, {}, {"problem": "budget-exceeded", "detail": "short"})] * 2
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            people.count(epsilon=1)
    ids = {json.loads(body)["request_id"] for *_, body in script.asked}
    assert len(ids) == 2


def test_silence_says_how_to_ask_again(people, script):
    script.answers = [(429, {"Retry-After": 3600}, {"detail": "busy"})]
    with pytest.raises(ServerUnreachable, match="busy.*request_id='mine'"):
        people.release([query.count()], epsilon=1, request_id="mine")
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    ("status", "problem", "kind"),
    [
        (401, "sign-in-needed", ServerRefused),
        (403, "forbidden", ServerRefused),
        (404, "not-found", ServerRefused),
        (409, "conflict", ServerRefused),
        (422, "invalid-argument", InvalidArgument),
        (422, "unsupported", Unsupported),
        (500, "failure", ServerRefused),
        (302, None, ServerRefused),
        (404, ["strange"], ServerRefused),
    ],
)
def test_errors_have_their_names(people, script, status, problem, kind):
    script.answers = [(status, {"Location": "http://elsewhere/"}, {"problem": problem})]
    with pytest.raises(kind, match=f"HTTP {status}"):
        people.count(epsilon=1)
    assert len(script.asked) == 1


def test_an_answer_that_is_no_release_is_refused(people, script):
    script.answers = [(200, {}, job("done", result={"releases": [{"value": 5}], "ranges": []}))]
    with pytest.raises(InvalidArgument):
        people.count(epsilon=1)


def test_remaining(people, script):
    script.answers = [(200, {}, TABLE), (200, {}, TABLE), (200, {}, {**TABLE, "budget": None})]
    assert people.remaining == 0.75
    assert people.limit == "epsilon 1"
    with pytest.raises(Unsupported, match="no account"):
        _ = people.remaining


def test_names_stay_in_their_place(script):
    script.answers = [(200, {}, [{"name": "../../x?y#z"}]), (200, {}, TABLE)]
    connect(script.url + "/behind/", "token")
    assert script.asked[1][1] == "/behind/api/v1/tables/..%2F..%2Fx%3Fy%23z"


def test_a_table_must_be_named(script):
    script.answers = [(200, {}, [TABLE, {**TABLE, "name": "other"}])] * 2
    with pytest.raises(InvalidArgument, match="people, other"):
        connect(script.url, "token")
    with pytest.raises(InvalidArgument, match="'third'"):
        connect(script.url, "token", table="third")


def test_words_unknown_here(script):
    for strange in ({**TABLE, "columns": [{"name": "x", "kind": "vector"}]}, {"name": "people"}):
        script.answers = [(200, {}, [TABLE]), (200, {}, strange)]
        with pytest.raises(InvalidArgument):
            connect(script.url, "token")


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("ftp://host", "t"),
        ("host", "t"),
        ("http://", "t"),
        ("http://user@localhost", "t"),
        ("http://192.0.2.1", "t"),
        ("http://stats.example.org", "t"),
        ("http://localhost", ""),
        ("http://localhost", "a b"),
        ("http://localhost", "a\r\nHost: b"),
        ("http://localhost:port", "t"),
        ("http://[::1", "t"),
    ],
)
def test_addresses_that_are_refused(url, token):
    with pytest.raises(InvalidArgument):
        connection(url, token, timeout=1, ca_file=None)


def test_a_server_of_something_else_is_told(script, people):
    for answer in (b"<html>welcome</html>", {"hello": "world"}, 5):
        script.answers = [(200, {}, answer)]
        with pytest.raises(
            (InvalidArgument, ServerRefused), match="not JSON|no server of discreet"
        ):
            connect(script.url, "token")
    script.answers = [(200, {}, b"<html>sign in</html>")]
    with pytest.raises(ServerRefused, match="not JSON"):
        people.count(epsilon=1)


def test_a_certificate_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "none.pem").write_text("no certificate")
    for name in ("absent.pem", "none.pem"):
        with pytest.raises(InvalidArgument, match="ca_file must be a file"):
            connect("https://localhost", "token", ca_file=str(tmp_path / name))


def test_nobody_is_there():
    with pytest.raises(ServerUnreachable, match="no connection"):
        connect("http://127.0.0.1:1", "token", timeout=0.1)
