"""What a test asks of a running server: releases, forms, sessions."""

import hashlib
import re
import time

from tests.server.running import COUNT

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


def forged(running):
    """Tokens that are none."""
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
