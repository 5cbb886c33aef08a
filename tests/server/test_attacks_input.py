"""Attacks by what is sent: each is refused with the right status, and nothing is spent."""

import csv
import io
import json
import re

import pytest

from tests.server.requests_to import (
    API,
    PLAN,
    RELEASES,
    SQL,
    release,
)
from tests.server.running import COUNT

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
    {"kind": "quantiles", "of": "age", "q": list(range(1000)), "epsilon": 0.1},
    {"kind": "ranges", "of": "age", "workload": [[0, 1e18]], "epsilon": 0.1},
    {"kind": "count", "epsilon": 0.1, "name": "a\nb"},
    {"kind": "count", "epsilon": 0.1, "max_rows_per_unit": -1},
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
