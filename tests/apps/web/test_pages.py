"""The pages, asked as a browser would ask them, without one."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import time
from html.parser import HTMLParser

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.apps.web import config
from discreet.apps.web.app import build

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
unit = "who"
rows_per_unit = 1
rows = 400
account = "study"
limit = { epsilon = 100 }
analyst_limit = { epsilon = 10 }

[table.columns]
age = { kind = "integer", lower = 0, upper = 99 }
place = { kind = "category", levels = ["north", "south"], other = false }
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


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "age", "place", "ill"])
        for i in range(400):
            writer.writerow([f"p{i}", i % 90, "north" if i % 4 else "south", i % 3 == 0])
    (folder / "serve.toml").write_text(CONFIG)
    made = build(config.read(folder / "serve.toml"))
    with asyncio.Runner() as loop:
        made.state.loop = loop
        made.state.service.start()
        yield made
        made.state.service.close()


@pytest.fixture(scope="module")
def people(app):
    known = app.state.service.people_known
    return {name: Browser(app, known.add(name, role)[0]) for name, role in PEOPLE.items()}


@pytest.fixture
def ana(people):
    return people["ana"]


# ── the door ──────────────────────────────────────────────────────────────────────────────────


def test_a_stranger_sees_the_door_and_nothing_else(app):
    stranger = Browser(app)
    for path in PATHS:
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert 'name="token"' in answer.text
        assert "<nav" not in answer.text


def test_a_token_that_is_not_known_is_refused(app):
    answer = Browser(app).ask("POST", "/login", data={"token": "dsc_nonsense"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "nonsense" not in answer.text


def test_the_cookie_is_for_this_site_and_not_for_scripts(app):
    token, _ = app.state.service.people_known.add("cara", "analyst")
    answer = Browser(app).ask("POST", "/login", data={"token": token}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token.lower() not in cookie


def test_whoever_leaves_is_out(app):
    token, _ = app.state.service.people_known.add("dora", "analyst")
    dora = Browser(app, token)
    assert dora.get("/tables").status_code == 200
    dora.post("/logout", {})
    assert dora.get("/tables").status_code == 401


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("path", PATHS)
def test_everybody_sees_what_is_theirs(people, name, path):
    answer = people[name].get(path)
    role = PEOPLE[name]
    assert answer.status_code == (200 if role in PATHS[path] else 403)
    if role not in PATHS[path]:
        assert f'href="{path}"' not in answer.text  # no menu leads there


@pytest.mark.parametrize("path", ["/tables/none", "/releases/none", "/releases/none/exe", "/x"])
def test_what_is_not_there_is_told_as_a_page(ana, path):
    answer = ana.get(path)
    assert answer.status_code == 404
    assert "<nav" in answer.text


# ── what a page is made of ────────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/ledger/chain"])
def test_pages_keep_a_strict_policy_and_can_be_read(people, path):
    checked(people["olga" if "analyst" not in PATHS[path] else "ana"].get(path).text)


@pytest.mark.parametrize("kind", ["mean", "covariance", "median", "quantiles", "histogram"])
@pytest.mark.parametrize("aim", ["amount", "within"])
def test_so_do_all_forms(ana, kind, aim):
    form = {**COUNT, "kind": kind, "aim": aim, "within": "0.5"}
    page = ana.post("/tables/people/plan", form)
    checked(page.text)
    assert 'class="figures"' in page.text


def test_everything_that_is_needed_is_shipped(ana):
    for name in ("style.css", "app.js", "htmx.min.js", "mark.svg", "htmx.LICENSE"):
        assert ana.get(f"/static/{name}").status_code == 200
    assert "Zero-Clause BSD" in ana.get("/static/htmx.LICENSE").text
    sheet = ana.get("/static/style.css").text
    assert "url(" not in sheet
    assert "@import" not in sheet


# ── planning ──────────────────────────────────────────────────────────────────────────────────


def test_a_plan_says_the_error_and_spends_nothing(app, ana):
    before = app.state.service.ledger_book.account("study").head
    page = ana.post("/tables/people/plan", {**COUNT, "amount": "1"})
    assert "±3<" in page.text  # discrete Laplace noise of scale 1: P(|X| > 3) = 0.027, not 0.05
    assert "Left afterwards" in page.text
    assert app.state.service.ledger_book.account("study").head == before


def test_more_epsilon_is_less_error(ana):
    found = [
        float(re.search(r"±([\d.,]+)<", ana.post("/tables/people/plan", form).text)[1])
        for form in ({**COUNT, "amount": "0.1"}, {**COUNT, "amount": "1"})
    ]
    assert found[0] > 5 * found[1]


@pytest.mark.parametrize("amount", ["0.1", "0.37", "1", "2"])
def test_what_is_asked_is_marked_on_the_curve(ana, amount):
    page = ana.post("/tables/people/plan", {**COUNT, "amount": amount})
    assert page.text.count('<circle class="dot s2" cx=') == 2  # in the picture and in its legend


def test_ranges_compare_structures(ana):
    form = {**COUNT, "kind": "ranges", "of": "age", "workload": "all"}
    page = ana.post("/tables/people/plan", form)
    checked(page.text)
    assert "Structures that could answer" in page.text
    assert "Error by the size of a range" in page.text


def test_an_error_may_be_chosen_instead_of_a_price(ana):
    form = {**COUNT, "kind": "mean", "of": "age", "by": ["place", "ill"], "aim": "within"}
    page = ana.post("/tables/people/plan", {**form, "within": "5"})
    assert "with 100 rows" in page.text  # 400 rows in four groups
    assert "larger than you asked for" not in page.text


def test_whoever_turns_to_an_error_begins_with_that_of_the_price(ana):
    page = ana.post("/tables/people/plan", {**COUNT, "amount": "1", "aim": "within"})
    assert re.search(r'name="within" value="3"', page.text)


def test_a_condition_offers_the_levels_of_its_column(ana):
    form = {**COUNT, "where_column_1": "place", "where_value_1": "south"}
    page = ana.post("/tables/people/plan", form)
    checked(page.text)
    assert "<option selected>south</option>" in page.text
    page = ana.post("/tables/people/plan", {**form, "where_test_1": "in"})
    assert re.search(r'<input id="where_value_1"[^>]* value="south"', page.text)


def test_a_mistake_is_told_beside_the_form(ana):
    page = ana.post("/tables/people/plan", {**COUNT, "amount": "lots"})
    assert page.status_code == 200
    assert "epsilon: write a number" in page.text
    assert 'value="lots"' in page.text


def test_more_than_is_left_cannot_be_released(ana):
    page = ana.post("/tables/people/plan", {**COUNT, "amount": "50"})
    assert "more than is left" in page.text
    assert re.search(r"<button[^>]* disabled", page.text)


def test_what_somebody_types_is_text(ana):
    form = {**COUNT, "name": "<script>alert(1)</script>", "kept": "[]"}
    for path in ("plan", "confirm"):
        page = ana.post(f"/tables/people/{path}", form)
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text
    page, path = ana.released(form)
    assert "<script>alert" not in page.text + ana.get("/releases").text + ana.get("/ledger").text


# ── releasing ─────────────────────────────────────────────────────────────────────────────────


def test_the_whole_way_from_a_form_to_a_file(ana):
    form = {**COUNT, "kind": "count", "by": "place", "amount": "1"}
    page, path = ana.released(form)
    checked(page.text)
    assert "north" in page.text
    assert 'class="whisker"' in page.text
    assert "What is promised" in page.text
    rows = list(csv.DictReader(ana.get(f"{path}/csv").text.splitlines()))
    assert [row["group"] for row in rows] == ["north", "south"]
    assert abs(float(rows[0]["value"]) - 300) < 40
    assert json.loads(ana.get(f"{path}/json").text)["releases"]
    answer = ana.get(f"{path}/html")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.text.startswith("<!DOCTYPE html>")


def test_pressing_twice_is_one_release_and_one_charge(app, ana):
    form = hidden(ana.post("/tables/people/confirm", COUNT).text)
    first = ana.post("/tables/people/release", form)
    second = ana.post("/tables/people/release", form)
    assert first.url == second.url
    account = app.state.service.ledger_book.account("study/ana")
    number = first.url.path.rpartition("/")[2]
    ends = time.monotonic() + 30
    while app.state.service.queue.get(number).state != "done" and time.monotonic() < ends:
        time.sleep(0.05)
    label = app.state.service.queue.get(number)
    assert label.state == "done"
    asked = [e for e in account.history if e.kind == "reserve"]
    jobs = [j for j in app.state.service.queue.listed("ana") if j.state == "done"]
    assert len(asked) == len(jobs)


def test_what_has_been_seen_is_not_sent_again(ana):
    _, path = ana.released(COUNT)
    htmx = {"HX-Request": "true"}
    assert ana.ask("GET", f"{path}?seen=done:done", headers=htmx).status_code == 204
    assert ana.ask("GET", f"{path}?seen=running:reading", headers=htmx).status_code == 200
    assert ana.ask("GET", f"{path}?seen=done:done").status_code == 200


def test_statistics_are_collected_and_released_together(ana):
    page = ana.post("/tables/people/plan", {**COUNT, "kind": "mean", "of": "age", "add": "1"})
    assert "Asked together with" in page.text
    assert "Mean of age" in page.text
    kept = json.dumps([{"kind": "mean", "of": "age", "epsilon": 0.5}])
    page, path = ana.released({**COUNT, "kept": kept})
    rows = list(csv.DictReader(ana.get(f"{path}/csv").text.splitlines()))
    assert len(rows) == 2


def test_one_of_them_can_be_left_out_again(ana):
    kept = json.dumps([{"kind": "units", "epsilon": 1}, {"kind": "count", "epsilon": 2}])
    page = ana.post("/tables/people/plan", {**COUNT, "kept": kept, "drop": "0"})
    assert "Number of units (people)</li" not in page.text
    assert page.text.count("leave out</button>") == 1


@pytest.mark.parametrize("drop", ["\u00b2", "9" * 5000, "-1", "1", "x"])
def test_what_is_not_in_the_list_cannot_be_left_out(ana, drop):
    kept = json.dumps([{"kind": "units", "epsilon": 1}])
    page = ana.post("/tables/people/plan", {**COUNT, "kept": kept, "drop": drop})
    assert page.status_code == 200
    assert page.text.count("leave out</button>") == 1


def test_the_way_back_finds_the_form_as_it_was(ana):
    form = {**COUNT, "kind": "mean", "of": "age", "by": "place", "rows_per_unit": "1"}
    confirmed = ana.post("/tables/people/confirm", form)
    page = ana.post("/tables/people/plan", {**hidden(confirmed.text), "back": "1"})
    assert re.search(r'<option value="mean" selected>', page.text)
    assert re.search(r'value="place" checked', page.text)


def test_something_similar_can_be_planned_from_a_release(ana):
    page, _ = ana.released({**COUNT, "kind": "units", "by": "place"})
    asked = Hidden()
    asked.feed(page.text)
    again = ana.post("/tables/people/plan", {**asked.fields, "back": "1"})
    assert re.search(r'<option value="units" selected>', again.text)
    assert re.search(r'value="place" checked', again.text)


def test_ranges_are_released_and_drawn(ana):
    form = {**COUNT, "kind": "ranges", "of": "age", "workload": "all", "amount": "1"}
    page, _ = ana.released(form)
    checked(page.text)
    assert "rows up to here" in page.text
    assert 'class="band"' in page.text


def test_a_release_of_somebody_else_is_not_there(people):
    _, path = people["ana"].released(COUNT)
    assert people["ben"].get(path).status_code == 404
    assert people["ben"].get(f"{path}/csv").status_code == 404
    assert people["olga"].get(path).status_code == 200
    assert people["aud"].get(path).status_code == 403


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "[1]", '"x"', '[{"kind": "dance"}]'])
def test_a_release_of_nonsense_is_refused(ana, text):
    answer = ana.post("/tables/people/release", {"statistics": text, "request_id": "one"})
    assert answer.status_code == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "of", "by", "where", "column", "cut", "in", "bins", "levels"])
            | st.text(max_size=5),
            one,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(JSON, max_size=3), kind=st.sampled_from(["count", "mean", "ranges"]))
def test_no_nonsense_breaks_a_page(ana, asked, kind):
    text = json.dumps(asked)
    forms = (
        {**COUNT, "kind": kind, "kept": text},
        {**COUNT, "kind": kind, "kept": text, "drop": "0"},
        {"statistics": text, "back": "1"},
    )
    for form in forms:
        assert ana.post("/tables/people/plan", form).status_code in (200, 422)
    assert ana.post("/tables/people/confirm", forms[0]).status_code in (200, 422)


FIELDS = (
    *("kind", "of", "by", "cut", "points", "levels", "edges", "rows", "bins", "amount", "within"),
    *("aim", "measure", "delta", "where_column_1", "where_test_1", "where_value_1", "name"),
    *("rows_per_unit", "workload", "method", "other", "also", "kept"),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.dictionaries(
        st.sampled_from(FIELDS),
        st.sampled_from(["age", "place", "ill", "mean", "quantiles", "ranges", "in", "1e400", "-1"])
        | st.sampled_from(["0", "1e-300", "9" * 30, "1, 2", "2, 1", "nan", "inf", "within", "rho"])
        | st.text(max_size=8),
        max_size=10,
    )
)
def test_no_fields_break_a_page(ana, form):
    assert ana.post("/tables/people/plan", form).status_code == 200


# ── ledger, audits, leakage ───────────────────────────────────────────────────────────────────


def test_the_ledger_shows_who_spent_what(people):
    people["ana"].released(COUNT)
    page = people["aud"].get("/ledger")
    checked(page.text)
    assert "study/ana" in page.text
    assert "Budget over time" in page.text
    assert "intact" in people["aud"].get("/ledger/chain").text
    own = people["ben"].get("/ledger").text
    assert "study/ana" not in own


def test_many_accounts_are_folded(app, people):
    for i in range(6):
        token, _ = app.state.service.people_known.add(f"guest-{i}", "analyst")
        Browser(app, token).get("/tables")  # the first look opens the account
    page = people["olga"].get("/ledger")
    checked(page.text)
    assert page.text.count('<details class="plain">') >= 7


def test_an_analyst_reads_audits_and_starts_none(people):
    assert "Run the audit" in people["aud"].get("/audit").text
    assert "Run the audit" not in people["ana"].get("/audit").text
    assert people["ana"].post("/audit", {}).status_code == 403


def test_leakage_of_a_model(ana):
    ana.get("/leakage")
    model = {"habits": "0.8", "variance": "1", "correlation": "0.1", "people": "100"}
    rest = {"times": "4", "lower": "0", "upper": "10", "promise": "0.5", "delta": "1e-6"}
    page = ana.post("/leakage", {**model, **rest})
    checked(page.text)
    assert "What one value leaks, by its time" in page.text
    wrong = ana.post("/leakage", {**model, **rest, "people": "few"})
    assert "people: write a number" in wrong.text


def test_a_model_may_come_from_a_file(ana):
    ana.get("/leakage")
    rest = {"people": "100", "times": "3", "lower": "0", "upper": "10", "promise": "0.5"}
    content = {"model": {"habits": [0.25], "variance": 2.0, "correlation": 0.0}}
    files = {"file": ("model.json", json.dumps(content), "application/json")}
    page = ana.post("/leakage", {**rest, "habits": "0.9"}, files=files)
    assert 'value="0.25"' in page.text
    assert "What one value leaks" in page.text
    files = {"file": ("model.json", "[]", "application/json")}
    page = ana.post("/leakage", {**rest, "habits": "0.9"}, files=files)
    assert "must be JSON with habits" in page.text


# ── people ────────────────────────────────────────────────────────────────────────────────────


def test_a_token_is_shown_once_and_works_until_it_is_revoked(app, people):
    olga = people["olga"]
    olga.get("/people")
    page = olga.post("/people", {"name": "emma", "role": "analyst", "days": "7"})
    token = re.search(r'<code id="token">([^<]+)</code>', page.text)[1]
    checked(page.text)
    assert token not in olga.get("/people").text
    emma = Browser(app, token)
    assert emma.get("/tables").status_code == 200
    olga.get("/people")
    olga.post("/people/revoke", {"name": "emma"})
    assert "revoked" in olga.get("/people").text
    assert emma.get("/tables").status_code == 401


@pytest.mark.parametrize(
    "form",
    [
        {"name": "no name", "role": "analyst", "days": "7"},
        {"name": "fred", "role": "king", "days": "7"},
        {"name": "fred", "role": "analyst", "days": "many"},
    ],
)
def test_wrong_people_are_refused_in_words(people, form):
    answer = people["olga"].post("/people", form)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert 'id="token"' not in answer.text


def test_an_account_is_opened_by_the_owner_alone(people):
    form = {"name": "ben", "table": "people", "measure": "epsilon", "amount": "2"}
    assert people["ben"].post("/people/limit", form).status_code == 403
    people["olga"].get("/people")
    page = people["olga"].post("/people/limit", form)
    assert page.status_code == 200
    assert "epsilon 2 left of epsilon 2" in page.text
    people["olga"].get("/people")
    wrong = people["olga"].post("/people/limit", {**form, "amount": "-1"})
    assert wrong.status_code == 422


def test_a_form_without_its_token_is_refused(ana):
    ana.csrf = ""
    assert ana.post("/tables/people/plan", COUNT).status_code == 403
    ana.get("/tables/people/plan")
