"""Attacks by those who may not, or not so much: each is refused, and nothing is spent."""

import json
import threading
import time
from datetime import timedelta

import pytest

from tests.server.requests_to import (
    API,
    PLAN,
    RELEASES,
    forged,
    release,
    routes,
    sign_in,
)
from tests.server.running import COUNT

# ── tokens ───────────────────────────────────────────────────────────────────


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
