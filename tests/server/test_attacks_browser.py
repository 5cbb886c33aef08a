"""Attacks through a browser: forms, cookies and headers."""

import json

import pytest

from tests.server.requests_to import (
    API,
    RELEASES,
    SQL,
    csrf_in,
    forged,
    form,
    sign_in,
)
from tests.server.running import COUNT


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
