"""The pages, asked as a browser would ask them, without one."""

from __future__ import annotations

import re

import pytest

from tests.server.browser import COUNT, PATHS, PEOPLE, Browser, checked

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
    token, _ = app.state.service.users.add("cara", "analyst")
    answer = Browser(app).ask("POST", "/login", data={"token": token}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token.lower() not in cookie


def test_whoever_leaves_is_out(app):
    token, _ = app.state.service.users.add("dora", "analyst")
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
    before = app.state.service.shared_ledger.account("study").head
    page = ana.post("/tables/people/plan", {**COUNT, "amount": "1"})
    assert "±3<" in page.text  # discrete Laplace noise of scale 1: P(|X| > 3) = 0.027, not 0.05
    assert "Left afterwards" in page.text
    assert app.state.service.shared_ledger.account("study").head == before


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
