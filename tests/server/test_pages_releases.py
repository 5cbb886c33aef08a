"""From a form to a release, its charge and its file; the ledger, audits and people."""

from __future__ import annotations

import csv
import json
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from tests.server.browser import COUNT, Browser, Hidden, checked, hidden

# ── releasing ─────────────────────────────────────────────────────────────────────────────────


def test_the_whole_way_from_a_form_to_a_file(ana):
    form = {**COUNT, "kind": "count", "by": "place", "amount": "1"}
    page, path = ana.released(form)
    checked(page.text)
    assert "north" in page.text
    assert 'class="whisker"' in page.text
    assert "What is promised" in page.text
    rows = list(csv.DictReader(ana.get(f"{path}/csv").text.splitlines()))
    assert [row["place"] for row in rows] == ["north", "south"]
    assert abs(float(rows[0]["value"]) - 300) < 40
    assert json.loads(ana.get(f"{path}/json").text)["releases"]
    answer = ana.get(f"{path}/html")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.text.startswith("<!DOCTYPE html>")


def test_the_card_of_a_release_is_there_as_files_and_holds(ana, people):
    page, path = ana.released({**COUNT, "name": "<i>people</i>"})
    files = {}
    for kind in ("card.json", "card.md", "card.html"):
        assert f'href="{path}/{kind}"' in page.text
        files[kind] = ana.get(f"{path}/{kind}")
        named = files[kind].headers["content-disposition"]
        assert named.startswith("attachment")
        assert named.endswith(f'.{kind}"')
        assert people["ben"].get(f"{path}/{kind}").status_code == 404
    card = discreet.ReleaseCard.from_json(files["card.json"].text)
    (release,) = json.loads(ana.get(f"{path}/json").text)["releases"]
    assert card.verify(json.dumps(release)).problems == ()
    assert files["card.md"].text == card.to_markdown()
    assert files["card.html"].text.startswith("<!DOCTYPE html>")
    assert card.to_html() in files["card.html"].text
    assert "<i>" not in files["card.html"].text
    assert ana.get(f"{path}/card.yaml").status_code == 404


def test_pressing_twice_is_one_release_and_one_charge(app, ana):
    form = hidden(ana.post("/tables/people/confirm", COUNT).text)
    first = ana.post("/tables/people/release", form)
    second = ana.post("/tables/people/release", form)
    assert first.url == second.url
    account = app.state.service.shared_ledger.account("study/ana")
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
    form = {**COUNT, "kind": "mean", "of": "age", "by": "place", "max_rows_per_unit": "1"}
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
            st.sampled_from(["kind", "of", "by", "where", "column", "cut", "in", "bins", "q"])
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
    *(
        "kind",
        "of",
        "by",
        "cut",
        "points",
        "q",
        "edges",
        "expected_rows",
        "bins",
        "amount",
        "within",
    ),
    *("aim", "measure", "delta", "where_column_1", "where_test_1", "where_value_1", "name"),
    *("max_rows_per_unit", "workload", "method", "other", "also", "kept"),
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
        token, _ = app.state.service.users.add(f"guest-{i}", "analyst")
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
