"""Somebody's browser, without one."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import httpx

CONFIG = """
[server]
address = "127.0.0.1:8999"

[rates]
requests_per_second = 5000
burst = 10000

[[table]]
name = "people"
title = "People & places"
description = "People who do not exist."
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 1
expected_rows = 400
account = "study"
limit = { epsilon = 100 }
analyst_limit = { epsilon = 10 }

[table.columns]
age = { kind = "integer", lower = 0, upper = 99 }
place = { kind = "category", categories = ["north", "south"], include_other = false }
ill = { kind = "boolean" }
"""
PEOPLE = {"ana": "analyst", "ben": "analyst", "olga": "owner", "aud": "auditor"}
PATHS = {
    "/tables": ("owner", "analyst"),
    "/tables/people": ("owner", "analyst"),
    "/tables/people/plan": ("owner", "analyst"),
    "/releases": ("owner", "analyst"),
    "/ledger": ("owner", "analyst", "auditor"),
    "/ledger/chain": ("owner", "auditor"),
    "/audit": ("owner", "analyst", "auditor"),
    "/leakage": ("owner", "analyst"),
    "/personal": ("owner",),
    "/people": ("owner",),
}
COUNT = {"kind": "count", "measure": "epsilon", "amount": "0.5", "aim": "amount"}


class Browser:
    """Somebody's browser: a cookie, and the token of the last page for the next form."""

    def __init__(self, app, token=None):
        transport = httpx.ASGITransport(app=app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8999")
        self.loop = app.state.loop
        self.csrf = ""
        if token is not None:
            answer = self.ask("POST", "/login", data={"token": token})
            assert answer.status_code == 200, answer.text
            self.seen(answer)

    def ask(self, method, path, *, follow_redirects=True, **more):
        return self.loop.run(
            self.client.request(method, path, follow_redirects=follow_redirects, **more)
        )

    def seen(self, answer):
        found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer

    def get(self, path):
        return self.seen(self.ask("GET", path))

    def post(self, path, form, **more):
        return self.seen(self.ask("POST", path, data={**form, "csrf": self.csrf}, **more))

    def released(self, form):
        """The page of a release, when it is done, and its path."""
        confirmed = self.post("/tables/people/confirm", form)
        page = self.post("/tables/people/release", hidden(confirmed.text))
        path = page.url.path
        ends = time.monotonic() + 30
        while 'hx-trigger="every' in page.text and time.monotonic() < ends:
            time.sleep(0.05)
            page = self.get(path)
        return page, path


class Hidden(HTMLParser):
    """The fields of the form that asks for a release."""

    def __init__(self):
        super().__init__()
        self.fields = {}

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "input" and given.get("name") in ("statistics", "request_id"):
            self.fields[given["name"]] = given["value"]


def hidden(html):
    found = Hidden()
    found.feed(html)
    return found.fields


class Checked(HTMLParser):
    """What a strict policy, a keyboard and a reader need."""

    def __init__(self):
        super().__init__()
        self.ids, self.labels, self.named, self.wrong, self.open = [], set(), [], [], 0

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.wrong += [f"{tag} {name}" for name in given if name == "style" or name[:2] == "on"]
        for name in ("src", "href", "action", "formaction"):
            if not given.get(name, "/").startswith(("/", "#")):
                self.wrong.append(f"{tag} {name}={given[name]}")
        self.wrong += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []
        self.ids += [given["id"]] if "id" in given else []
        if tag == "label":
            self.labels.add(given.get("for"))
            self.open += 1
        fields = tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        if fields and not self.open and "aria-label" not in given:
            self.named.append(given.get("id"))

    def handle_endtag(self, tag):
        self.open -= tag == "label"


def checked(html):
    found = Checked()
    found.feed(html)
    assert found.wrong == []
    assert len(found.ids) == len(set(found.ids)), "an id is there twice"
    assert set(found.named) <= found.labels, "a field has no label"
    assert "<h1" in html
    assert 'lang="en"' in html
