"""Attacks on a running server: each is refused, with the right status, and nothing is spent."""

import csv
import hashlib
import io
import json
import re
import socket
import threading
import time
from datetime import timedelta

import pytest

from tests.apps.web.serving import COUNT, FAST, Running, write_config, write_people

API = "/api/v1"
RELEASES = f"{API}/tables/people/releases"
PLAN = f"{API}/tables/people/plan"
SQL = "x'; DROP TABLE jobs; DROP TABLE entries; --"


def release(running, who, request_id, *statistics, seconds=30):
    """A release as a client sees it: the job when it is over."""
    body = {"statistics": list(statistics) or [COUNT], "request_id": request_id}
    answer = running.ask("POST", RELEASES, token=running.tokens[who], body=body)
    assert answer.status < 300, answer
    job, ends = answer.json, time.monotonic() + seconds
    while job["state"] in ("queued", "running"):
        assert time.monotonic() < ends, job
        time.sleep(0.02)
        answer = running.ask("GET", f"{API}/releases/{job['id']}", token=running.tokens[who])
        job = answer.json
    return job


def routes(running):
    """Every operation of the interface: method, path with something in its places."""
    found = running.ask("GET", "/api/openapi.json", token=running.tokens["olga"]).json
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "x", path))
        for path, operations in found["paths"].items()
        for method in operations
        if path.startswith(API)
    ]


# ── tokens ───────────────────────────────────────────────────────────────────


def forged(running):
    good = running.tokens["ada"]
    return [
        "",
        "dsc_",
        "null",
        good[:-1],
        good + "A",
        good.lower(),
        good.swapcase(),
        hashlib.sha256(good.encode()).hexdigest(),
        "dsc_" + "A" * 43,
        "A" * 5000,
        SQL,
        "' OR '1'='1",
        "%",
    ]


def test_forged_tokens(running):
    for token in forged(running):
        answer = running.ask("GET", f"{API}/tables", headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 401, (token, answer)
        assert answer.json["problem"] == "sign-in-needed"
        assert "www-authenticate" in answer.headers


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "bearer  ", "Token x", "Bearer a b"])
def test_other_words(running, header):
    assert running.ask("GET", f"{API}/tables", headers={"Authorization": header}).status == 401


def test_nobody_comes_in_without_a_token(running):
    found = routes(running)
    assert len(found) > 10
    for method, path in found:
        answer = running.ask(method, path, body={} if method != "GET" else None)
        assert answer.status == 401, (method, path, answer)


def test_two_tokens_in_one_request(running):
    good = running.tokens["ada"]
    text = (
        f"GET {API}/tables HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n"
        f"Authorization: Bearer wrong\r\nAuthorization: Bearer {good}\r\n\r\n"
    )
    assert b" 400 " in running.raw(text.encode()).partition(b"\r\n")[0]


def test_expired_tokens(running):
    token = running.token("eve", life=timedelta(milliseconds=1))
    time.sleep(0.01)
    assert running.ask("GET", f"{API}/tables", token=token).status == 401


def test_revoked_tokens(running):
    token = running.token("mallory")
    assert running.ask("GET", f"{API}/tables", token=token).status == 200
    session = sign_in(running, token)
    running.revoke("mallory")
    assert running.ask("GET", f"{API}/tables", token=token).status == 401
    answer = running.ask("GET", "/tables", headers={"Cookie": session})
    assert answer.status in (303, 401)


# ── who may do what ──────────────────────────────────────────────────────────

QUESTION = {"statistics": [COUNT]}
ALLOWED = {
    ("GET", f"{API}/tables", None): "olga ada",
    ("GET", f"{API}/tables/people", None): "olga ada",
    ("POST", PLAN, json.dumps(QUESTION)): "olga ada",
    ("GET", f"{API}/releases", None): "olga ada",
    ("GET", f"{API}/ledger", None): "olga ada vera",
    ("GET", f"{API}/audit", None): "olga ada vera",
    ("GET", f"{API}/personal", None): "olga",
    ("GET", f"{API}/people", None): "olga",
    ("GET", f"{API}/me", None): "olga ada vera",
}


@pytest.mark.parametrize("asked", ALLOWED, ids=lambda asked: f"{asked[0]} {asked[1]}")
def test_roles(running, asked):
    method, path, body = asked
    for who in ("olga", "ada", "vera"):
        given = None if body is None else json.loads(body)
        answer = running.ask(method, path, token=running.tokens[who], body=given)
        expected = 200 if who in ALLOWED[asked].split() else 403
        assert answer.status == expected, (who, answer)


def test_only_the_owner_changes_anything(running):
    before = len(running.charges("people"))
    for who in ("ada", "vera"):
        token = running.tokens[who]
        for method, path, body in (
            ("POST", f"{API}/people", {"name": "eve2", "role": "owner"}),
            ("POST", f"{API}/people/ben/revoke", {}),
            ("PUT", f"{API}/people/ada/limit", {"table": "people", "epsilon": 1e6}),
        ):
            answer = running.ask(method, path, token=token, body=body)
            assert answer.status in (403, 404, 405), (who, path, answer)
    names = [
        one["name"]
        for one in running.ask("GET", f"{API}/people", token=running.tokens["olga"]).json
    ]
    assert "eve2" not in names
    assert running.ask("GET", f"{API}/tables", token=running.tokens["ben"]).status == 200
    assert len(running.charges("people")) == before


def test_the_auditor_releases_nothing(running):
    body = {"statistics": [COUNT], "request_id": "a"}
    assert running.ask("POST", RELEASES, token=running.tokens["vera"], body=body).status == 403


def test_releases_of_others_do_not_exist(running):
    job = release(running, "ada", "mine")
    for who, status in (("ada", 200), ("olga", 200), ("ben", 404), ("vera", 403)):
        for path in (f"{API}/releases/{job['id']}", f"{API}/releases/{job['id']}/file?format=csv"):
            answer = running.ask("GET", path, token=running.tokens[who])
            assert answer.status == status, (who, path, answer)


# ── one charge, one answer ───────────────────────────────────────────────────


def test_a_request_that_is_replayed(running):
    before = len(running.charges("people/ada"))
    body = {"statistics": [COUNT], "request_id": "again and again"}
    answers = []

    def send():
        answers.append(running.ask("POST", RELEASES, token=running.tokens["ada"], body=body))

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} <= {200, 201, 202}
    assert len({answer.json["id"] for answer in answers}) == 1
    first = release(running, "ada", "again and again")
    second = release(running, "ada", "again and again")
    assert first == second
    assert first["state"] == "done"
    assert len(running.charges("people/ada")) == before + 1


def test_an_id_for_another_question(running):
    release(running, "ada", "taken")
    before = len(running.charges("people"))
    other = {"statistics": [{**COUNT, "epsilon": 0.25}], "request_id": "taken"}
    answer = running.ask("POST", RELEASES, token=running.tokens["ada"], body=other)
    assert answer.status == 409
    assert len(running.charges("people")) == before


def test_the_same_id_of_somebody_else(running):
    one, two = release(running, "ada", "shared"), release(running, "ben", "shared")
    assert one["id"] != two["id"]
    assert one["account"] != two["account"]


def test_more_than_is_left(running):
    before = len(running.charges("people"))
    body = {"statistics": [{"kind": "count", "epsilon": 500}], "request_id": "too much"}
    answer = running.ask("POST", RELEASES, token=running.tokens["ada"], body=body)
    if answer.status < 300:
        job = release(running, "ada", "too much", *body["statistics"])
        assert (job["state"], job["problem"]) == ("refused", "budget-exceeded")
    else:
        assert (answer.status, answer.json["problem"]) == (409, "budget-exceeded")
    assert len(running.charges("people")) == before


# ── paths, SQL, formulas ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../etc/passwd",
        "/static/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/%2e%2e/config.py",
        "/static/..%5c..%5cconfig.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/style.css%00.html",
        f"{API}/tables/..%2f..%2fserve.toml",
        f"{API}/tables/%00",
        f"{API}/releases/..%2f..%2fservice.db",
        f"{API}/releases/{SQL.replace(' ', '%20')}",
        f"{API}/tables/{SQL.replace(' ', '%20')}",
        "//etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/people.csv",
        "/serve.toml",
        "/service.db",
    ],
)
def test_paths_that_lead_elsewhere(running, path):
    answer = running.ask("GET", path, token=running.tokens["olga"])
    assert answer.status in (400, 404, 422), answer
    for word in ("root:", "SQLite format", "import ", "[server]", "p17"):
        assert word not in answer.text


STRANGE = [
    {"kind": "count", "epsilon": 0.1, "where": {"column": SQL, "is": 1}},
    {"kind": "count", "epsilon": 0.1, "where": {"column": "place", "is": SQL}},
    {"kind": "count", "epsilon": 0.1, "where": {"column": "age", "is": SQL}},
    {"kind": "count", "epsilon": 0.1, "by": [SQL]},
    {"kind": "sum", "epsilon": 0.1, "of": "age) FROM people; --"},
    {"kind": "sum", "epsilon": 0.1, "of": {"expression": ["col", SQL]}},
    {"kind": "count", "epsilon": 0.1, "by": "place", "keys": {"file": "/etc/passwd"}},
    {
        "kind": "count",
        "epsilon": 0.1,
        "by": "place",
        "keys": {"file": "people.csv", "columns": "who"},
    },
    {"kind": "sum", "epsilon": 0.1, "of": "who"},
    {"kind": SQL, "epsilon": 0.1},
    {"kind": "count", "epsilon": SQL},
    {"kind": "count", "epsilon": 1e999},
    {"kind": "count", "epsilon": -1},
    {"kind": "count", "epsilon": 0},
    {"kind": "count", "epsilon": True},
    {"kind": "count", "epsilon": {"number": "9" * 5000}},
    {"kind": "quantiles", "of": "age", "levels": list(range(1000)), "epsilon": 0.1},
    {"kind": "ranges", "of": "age", "workload": [[0, 1e18]], "epsilon": 0.1},
    {"kind": "count", "epsilon": 0.1, "name": "a\nb"},
    {"kind": "count", "epsilon": 0.1, "rows_per_unit": -1},
    {"kind": "count", "epsilon": 0.1, "__class__": "x"},
]


@pytest.mark.parametrize("statistic", STRANGE, ids=lambda one: json.dumps(one)[:60])
def test_questions_that_make_no_sense(running, statistic):
    before = len(running.charges("people"))
    for path, more in (
        (PLAN, {}),
        (RELEASES, {"request_id": f"strange {STRANGE.index(statistic)}"}),
    ):
        body = json.dumps({"statistics": [statistic], **more}).encode()
        headers = {"Content-Type": "application/json"}
        answer = running.ask("POST", path, token=running.tokens["ada"], body=body, headers=headers)
        assert answer.status in (400, 422), answer
    assert len(running.charges("people")) == before


def test_sql_in_names_is_text(running):
    job = release(running, "ada", SQL, {**COUNT, "name": SQL})
    assert job["state"] == "done"
    assert job["request_id"] == SQL
    assert SQL in json.dumps(job["result"])
    assert running.verified().ok


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(1)", "\t=1"])
def test_formulas_are_disarmed(running, name):
    if not name.isprintable():
        body = {"statistics": [{**COUNT, "name": name}]}
        assert running.ask("POST", PLAN, token=running.tokens["ada"], body=body).status == 422
        return
    job = release(running, "ada", f"formula {name}", {**COUNT, "name": name})
    answer = running.ask(
        "GET", f"{API}/releases/{job['id']}/file?format=csv", token=running.tokens["ada"]
    )
    assert answer.status == 200
    for row in csv.reader(io.StringIO(answer.text)):
        for cell in row:
            assert not re.match(r"[=@\t\r]|[-+](?![0-9.])", cell), cell
            assert cell != name


def test_formulas_in_labels_are_disarmed(running):
    label = ["map", ["col", "place"], [["north", "=1+1"]], "@SUM(A1)"]
    by = {"column": "=cmd|x", "expression": label}
    job = release(running, "ada", "formula of a label", {**COUNT, "by": by})
    path = f"{API}/releases/{job['id']}/file?format=csv"
    found = running.ask("GET", path, token=running.tokens["ada"]).text
    cells = [cell for row in csv.reader(io.StringIO(found)) for cell in row]
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]


def test_half_a_character(running):
    """What no text can hold is refused, not tripped over."""
    half = "\ud800"
    for statistic in (
        {**COUNT, "name": half},
        {**COUNT, half: 1},
        {**COUNT, "by": half},
        {**COUNT, "where": {"column": "place", "is": half}},
    ):
        body = json.dumps({"statistics": [statistic]}).encode()
        headers = {"Content-Type": "application/json"}
        answer = running.ask("POST", PLAN, token=running.tokens["ada"], body=body, headers=headers)
        assert answer.status == 422


def test_markup_in_names_is_text(running):
    name = "<script>alert(1)</script>"
    job = release(running, "ada", "markup", {**COUNT, "name": name})
    answer = running.ask(
        "GET", f"{API}/releases/{job['id']}/file?format=html", token=running.tokens["ada"]
    )
    assert answer.status == 200
    assert name not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert "attachment" in answer.headers["content-disposition"]


# ── sizes and times ──────────────────────────────────────────────────────────


def test_a_body_that_is_too_large(running):
    big = json.dumps({"statistics": [{**COUNT, "name": "x" * 200_000}]}).encode()
    headers = {"Content-Type": "application/json"}
    answer = running.ask("POST", PLAN, token=running.tokens["ada"], body=big, headers=headers)
    assert answer.status == 413


def test_a_body_that_says_it_is_larger_than_it_is(running):
    text = (
        f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n"
        f"Authorization: Bearer {running.tokens['ada']}\r\nContent-Length: 99999999999\r\n\r\n"
    )
    assert b" 413 " in running.raw(text.encode(), timeout=10).partition(b"\r\n")[0]


def test_a_body_without_end(running):
    start = (
        f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n"
        f"Authorization: Bearer {running.tokens['ada']}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    assert b" 413 " in running.raw(start.encode() + 8 * piece, timeout=10).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"statistics":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"statistics": [{"kind": "count", "epsilon": ' + b"9" * 5000 + b"}]}",
        b'{"statistics": [{"kind": "count", "epsilon": NaN}]}',
        b'{"statistics": [{"kind": "count", "epsilon": 0.1}], "more": 1}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bodies_that_are_no_question(running, body):
    headers = {"Content-Type": "application/json"}
    answer = running.ask("POST", PLAN, token=running.tokens["ada"], body=body, headers=headers)
    assert answer.status in (400, 422), answer


def test_headers_that_are_too_large(running):
    text = f"GET {API}/tables HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'x' * 200_000}\r\n\r\n"
    first = running.raw(text.encode(), timeout=10).partition(b"\r\n")[0]
    assert first == b"" or first.split()[1] in (b"400", b"431")


@pytest.mark.parametrize(
    "smuggled",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        "Content-Length: -1\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n",
    ],
)
def test_requests_with_two_ends(running, smuggled):
    text = (
        f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {running.tokens['ada']}\r\n"
        f"{smuggled}"
    )
    first = running.raw(text.encode(), timeout=10).partition(b"\r\n")[0]
    assert first == b"" or first.split()[1][:1] == b"4", first


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "a b", "localhost@x"]
)
def test_another_host(running, host):
    text = (
        f"GET /tables HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        f"Authorization: Bearer {running.tokens['ada']}\r\n\r\n"
    )
    first = running.raw(text.encode(), timeout=10).partition(b"\r\n")[0]
    assert first.split()[1] in (b"400", b"421"), first


@pytest.mark.parametrize(
    "method", ["TRACE", "CONNECT", "PUT", "DELETE", "PATCH", "PROPFIND", "EVIL"]
)
def test_other_methods(running, method):
    answer = running.ask(method, f"{API}/tables", token=running.tokens["ada"])
    assert answer.status in (400, 404, 405, 501), answer


# ── browsers ─────────────────────────────────────────────────────────────────


def csrf_in(page):
    found = re.search(r'name="csrf"[^>]*value="([^"]+)"', page) or re.search(
        r'value="([^"]+)"[^>]*name="csrf"', page
    )
    assert found, page[:2000]
    return found[1]


def form(running, path, fields, **headers):
    from urllib.parse import urlencode

    given = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return running.ask("POST", path, body=urlencode(fields).encode(), headers=given)


def sign_in(running, token):
    """The cookie of a session."""
    answer = form(running, "/login", {"token": token})
    assert answer.status == 303, answer
    (cookie,) = [one for one in answer.cookies if one.startswith("discreet_session=")]
    words = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= words
    return cookie.partition(";")[0]


def test_signing_in_needs_a_token(running):
    for token in forged(running):
        answer = form(running, "/login", {"token": token})
        assert answer.status in (400, 401, 403, 422), (token, answer)
        assert not [one for one in answer.cookies if one.startswith("discreet_session=")]


def test_forms_need_their_word(running):
    session = sign_in(running, running.tokens["olga"])
    page = running.ask("GET", "/people", headers={"Cookie": session})
    assert page.status == 200, page
    good, other = csrf_in(page.text), sign_in(running, running.tokens["olga"])
    stolen = csrf_in(running.ask("GET", "/people", headers={"Cookie": other}).text)
    fields = {"name": "trudy", "role": "owner", "days": "1"}
    for word in (None, "", "x", good[:-1], stolen):
        given = fields if word is None else {**fields, "csrf": word}
        answer = form(running, "/people", given, Cookie=session)
        assert answer.status == 403, (word, answer)
    answer = form(
        running, "/people", {**fields, "csrf": good}, Cookie=session, Origin="http://evil"
    )
    assert answer.status == 403
    names = [
        one["name"]
        for one in running.ask("GET", f"{API}/people", token=running.tokens["olga"]).json
    ]
    assert "trudy" not in names
    assert form(running, "/people", {**fields, "csrf": good}, Cookie=session).status < 400


def test_a_cookie_without_its_word_does_not_release(running):
    session = sign_in(running, running.tokens["ada"])
    before = len(running.charges("people"))
    body = {"statistics": [COUNT], "request_id": "cross-site"}
    for headers in ({}, {"Content-Type": "text/plain"}, {"X-CSRF-Token": "x"}):
        answer = running.ask(
            "POST", RELEASES, body=json.dumps(body).encode(), headers={"Cookie": session, **headers}
        )
        assert answer.status in (401, 403), answer
    assert len(running.charges("people")) == before


def test_a_session_ends(running):
    session = sign_in(running, running.tokens["ada"])
    page = running.ask("GET", "/tables", headers={"Cookie": session})
    assert page.status == 200
    assert form(running, "/logout", {"csrf": csrf_in(page.text)}, Cookie=session).status == 303
    assert running.ask("GET", "/tables", headers={"Cookie": session}).status in (303, 401)


@pytest.mark.parametrize(
    "cookie", ["discreet_session=", "discreet_session=x", f"discreet_session={SQL}"]
)
def test_forged_sessions(running, cookie):
    assert running.ask("GET", "/tables", headers={"Cookie": cookie}).status in (303, 401)


def test_headers_that_protect(running):
    token = running.tokens["ada"]
    for path in (
        "/login",
        "/tables",
        f"{API}/tables",
        "/nothing",
        "/health/live",
        "/static/style.css",
    ):
        headers = running.ask("GET", path, token=token).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] in ("no-referrer", "same-origin")
        assert "server" not in headers
        if not path.startswith("/static"):
            assert "no-store" in headers["cache-control"]


def test_nothing_sends_the_browser_elsewhere(running):
    for path in ("/login?next=//evil.example/", "/login?next=https://evil.example/"):
        answer = form(running, path, {"token": running.tokens["ada"], "next": "//evil.example"})
        assert not answer.headers.get("location", "/").startswith(("//", "http"))


# ── those who take their time ────────────────────────────────────────────────


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
