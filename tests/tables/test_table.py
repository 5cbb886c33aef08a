"""The door: what it charges, in which order, what it lets through, and what it never shows."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import logging
import math
import traceback
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import col, query
from discreet.data import program as engine
from discreet.data.program import ContributionLimits
from discreet.noise.random_source import seeded_rng
from discreet.query._release_plan import plan_release
from discreet.query.budget import QueryBudget
from discreet.tables._execute import execute
from discreet.tables.table import Table

CANARY_TEXT = "Zarathustra"
CANARY_NUMBER = 7654321


@pytest.fixture
def people():
    days = [dt.date(2026, 1, 1 + i % 3) for i in range(400)]
    return pl.DataFrame(
        {
            "who": [i // 2 for i in range(400)],
            "age": [i % 100 for i in range(400)],
            "sex": ["f" if i % 3 else "m" for i in range(400)],
            "day": days,
            "pay": [1000.0 + i for i in range(400)],
        }
    )


COLUMNS = {
    "age": discreet.integer(lower=0, upper=120, missing=0),
    "sex": discreet.category(["f", "m"], include_other=False),
    "day": discreet.date(lower=dt.date(2026, 1, 1), upper=dt.date(2026, 1, 4)),
    "pay": discreet.real(lower=0, upper=2000, granularity=0.25, missing=0),
}


def opened(source, account, **changes):
    settings = {
        "privacy_unit": "who",
        "max_rows_per_unit": 2,
        "columns": COLUMNS,
        "account": account,
    }
    return discreet.table(source, **{**settings, **changes})


def carried_out(table, plan, rng=None):
    return execute(table, plan, rng=rng or discreet.system_rng())[0]


@pytest.fixture
def account(ledger):
    return ledger.account("survey", limit=discreet.pure_dp(10**6))


@pytest.fixture
def rich(ledger):
    return ledger.account("rich", limit=discreet.approx_dp(100, 1e-5))


def test_large_budgets_give_the_truth(people, account):
    t = opened(people, account)
    sure = {"epsilon": 10**4}
    assert t.count(**sure).value == 400
    assert t.count_units(**sure).value == 200
    assert t.count(where=col("age") >= 65, **sure).value == 140
    by = t.count(by=["sex", "day"], keys=[("m", dt.date(2026, 1, 1))], **sure)
    assert (by.keys, by.value) == ((("m", dt.date(2026, 1, 1)),), (134,))
    assert t.sum("pay", **sure).value == pytest.approx(people["pay"].sum(), rel=1e-3)
    assert t.mean("age", **sure).value == pytest.approx(people["age"].mean(), rel=1e-3)
    assert t.variance("age", **sure).value == pytest.approx(people["age"].var(ddof=0), rel=1e-2)
    assert t.covariance("age", "pay", **sure).value == pytest.approx(
        np.cov(people["age"], people["pay"], ddof=0)[0, 1], rel=1e-2
    )
    assert t.median("age", **sure).value == 49
    halves = t.quantiles("age", [0.25, 0.75], by="sex", method="tree", **sure)
    assert halves.key_columns == ("sex", "quantile")
    assert dict(zip(halves.keys, halves.value, strict=True)) == {
        (sex, q): ages[math.ceil(q * len(ages)) - 1]
        for sex in "fm"
        for ages in [sorted(people.filter(pl.col("sex") == sex)["age"])]
        for q in (0.25, 0.75)
    }
    ages = t.histogram("age", edges=[18, 65], **sure)
    assert dict(zip(ages.keys, ages.value, strict=True)) == {
        ("< 18",): 72,
        ("[18, 65)",): 188,
        (">= 65",): 140,
    }


def test_limits_are_enforced(people, account):
    t = opened(people, account, max_rows_per_unit=1)
    assert t.count(epsilon=10**4).value == 200


def test_every_source_gives_the_same(people, account, tmp_path):
    people.write_csv(tmp_path / "p.csv")
    people.write_parquet(tmp_path / "p.parquet")
    truth = tuple(people.filter(pl.col("sex") == s)["age"].sum() for s in "fm")
    for source in (people, people.to_pandas(), tmp_path / "p.csv", tmp_path / "p.parquet"):
        assert opened(source, account).sum("age", by="sex", epsilon=10**5).value == truth


def test_one_budget_for_several_questions(people, account):
    t = opened(people, account)
    before = account.remaining
    made = t.release(
        [query.count(by="sex"), query.mean("pay", by="sex")], epsilon=1, weights=[1, 3]
    )
    assert before - account.remaining == 1
    assert [r.guarantee.epsilon() for r in made] == [0.5, 1]  # the rows are counted once
    assert "shared with 'mean of pay by sex'" in made[0].mechanism
    assert made[0].receipt == made[1].receipt
    entry = account.history[-2]
    assert (entry.kind, entry.outcome) == ("reserve", "released")
    assert entry.label == "count by sex; mean of pay by sex"


def test_replacing_is_another_promise(people, ledger):
    relation = discreet.NeighboringRelation.REPLACE_ONE
    account = ledger.account("other", limit=discreet.pure_dp(2, relation=relation))
    t = opened(people, account, relation=relation)
    made = t.count(by="sex", epsilon=1)
    assert made.guarantee.relation is relation
    assert "number is public" in made.privacy_statement
    with pytest.raises(discreet.RelationMismatch):
        opened(people, account)
    with pytest.raises(discreet.InvalidArgument, match="relation"):
        opened(people, None, relation=discreet.NeighboringRelation.LOCAL)


def test_forecasts_cost_nothing(people, account):
    t = opened(people, account)
    head = account.head
    assert t.forecast(query.count(), epsilon=1).width == 6
    assert t.forecast(query.mean("pay"), epsilon=1).width is None
    assert "give expected_rows" in str(t.forecast(query.mean("pay"), epsilon=1))
    assert t.forecast(query.mean("pay"), epsilon=1, expected_rows=400).width > 0
    assert account.head == head


# ── order: reserve, read, settle ─────────────────────────────────────────────


def test_a_short_budget_reads_nothing_and_spends_nothing(people, ledger, monkeypatch):
    account = ledger.account("poor", limit=discreet.pure_dp(0.5))
    t = opened(people, account)
    head = account.head

    def read(*_, **__):
        pytest.fail("the data were read")

    monkeypatch.setattr("discreet.data.execute.tabulate", read)
    with pytest.raises(discreet.BudgetExceeded):
        t.count(epsilon=1)
    assert account.head == head
    with pytest.raises(discreet.InvalidArgument, match="account"):
        opened(people, None).count(epsilon=1)


def test_the_budget_is_spent_before_the_data_are_read(people, account, monkeypatch):
    t = opened(people, account)
    before = account.remaining
    seen = []
    real = engine.tabulate

    def read(*args, **kwargs):
        seen.append(before - account.remaining)
        return real(*args, **kwargs)

    monkeypatch.setattr("discreet.data.execute.tabulate", read)
    t.count(epsilon=1)
    assert seen == [1]


def test_a_failure_stays_spent(people, account, monkeypatch):
    t = opened(people, account)
    before = account.remaining

    def read(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.data.execute.tabulate", read)
    with pytest.raises(KeyboardInterrupt):
        t.count(epsilon=1)
    assert before - account.remaining == 1
    assert account.history[-2].outcome == "failed"


def test_a_typing_error_costs_nothing(people, account):
    columns = {**COLUMNS, "height": discreet.integer(lower=0, upper=250)}
    t = opened(people, account)
    head = account.head
    other = replace(
        t.spec, privacy_unit=None, limits=ContributionLimits()
    )  # would protect rows, not people
    for wrong in (
        lambda: opened(people, account, columns=columns),
        lambda: t.mean("nobody", epsilon=1),
        lambda: t.count(epsilon=-1),
        lambda: t.count(),
        lambda: t.release([], epsilon=1),
        lambda: opened(people, account, max_rows_per_unit=None).count(epsilon=1),
        lambda: opened(people, account, privacy_unit="nobody").count(epsilon=1),
        lambda: opened(people, account, columns={"age": int}),
        lambda: carried_out(
            t, plan_release([query.count()], setting=other, budget=QueryBudget(epsilon=1))
        ),
    ):
        with pytest.raises(discreet.InvalidArgument):
            wrong()
    assert account.head == head


def test_each_run_has_its_own_key(people, account, monkeypatch):
    keys = []
    real = engine.tabulate

    def read(*args, key, **kwargs):
        keys.append(key)
        return real(*args, key=key, **kwargs)

    monkeypatch.setattr("discreet.data.execute.tabulate", read)
    t = opened(people, account)
    for _ in range(3):
        t.count(epsilon=1)
    assert len(set(keys)) == 3
    assert max(keys) > 2**100


def test_the_public_door_takes_no_bits(people, account):
    for name, method in inspect.getmembers(Table, inspect.isfunction):
        if not name.startswith("_"):
            assert "bits" not in inspect.signature(method).parameters
    t = opened(people, account)
    head = account.head
    planned = plan_release([query.count()], setting=t.spec, budget=QueryBudget(epsilon=1))
    with pytest.raises(discreet.NotCertified):
        carried_out(t, planned, rng=seeded_rng(1))
    assert account.head == head


# ── releases ─────────────────────────────────────────────────────────────────


def test_a_release_is_complete(people, rich):
    t = opened(people, rich)
    for made in (
        t.count(epsilon=1),
        t.mean("pay", by="day", rho=0.1),
        t.variance("age", epsilon=1),
        t.covariance("age", "pay", by="sex", epsilon=1, delta=1e-7),
        t.quantiles("age", [0.2, 0.5], by="sex", method="tree", rho=0.1),
    ):
        again = discreet.Release.from_json(made.to_json())
        assert again == made
        assert again.interval(0.8) == made.interval(0.8)
        assert again.std == made.std
        low, high = made.interval()
        if made.key_columns:
            assert all(a <= v <= b for a, v, b in zip(low, made.value, high, strict=True))
        else:
            assert low <= made.value <= high
        assert made.title in str(made)
        assert repr(made) == str(made)
    assert isinstance(t.count(by="day", epsilon=1).keys[0][0], dt.date)
    assert "95% between" in str(made)
    assert "protects whether any one who" in made.privacy_statement


def test_a_choice_has_no_interval(people, account):
    made = opened(people, account).median("age", epsilon=1)
    assert discreet.Release.from_json(made.to_json()) == made
    assert "no interval" in str(made)
    assert (made.std, made.rows()[0]["low"]) == (None, None)
    with pytest.raises(discreet.Unsupported, match="tree"):
        made.interval()


def test_long_releases_print_their_beginning(people, account):
    made = opened(people, account).count(by="age", epsilon=1)
    assert "... and 101 more" in str(made)
    assert len(made.rows()) == 121


def test_post_processing_keeps_the_guarantee_and_drops_the_error(people, account):
    made = opened(people, account).count(by="sex", epsilon=1)
    shares = made.map(lambda value: [max(v, 0) / 400 for v in value])
    assert shares.guarantee == made.guarantee
    assert shares.receipt == made.receipt
    assert discreet.Release.from_json(shares.to_json()) == shares
    assert "no error bars" in str(shares)
    with pytest.raises(discreet.Unsupported):
        shares.interval()
    with pytest.raises(discreet.Unsupported, match="JSON"):
        made.map(lambda _: object()).to_json()


def test_texts_that_are_no_release_are_refused(people, account):
    text = opened(people, account).count(epsilon=1).to_json()
    content = json.loads(text)
    for wrong in (
        "",
        "[]",
        "{}",
        json.dumps({**content, "discreet_release": 99}),
        json.dumps({**content, "value": content["value"] + 1}),
        json.dumps({**content, "answer": {**content["answer"], "keys": 3}}),
        json.dumps({**content, "answer": {**content["answer"], "keys": [[], []]}}),
        json.dumps({**content, "answer": {**content["answer"], "parts": []}}),
        json.dumps({**content, "answer": {**content["answer"], "keys": [["a"]]}}),
        text.replace('"kind": "count"', '"kind": "mean"'),
        text.replace('"scale": "2"', '"scale": "1/0"'),
        text.replace('"scale": "2"', '"scale": "2e0"'),
        text.replace("discrete laplace", "discrete cauchy"),
    ):
        with pytest.raises(discreet.InvalidArgument):
            discreet.Release.from_json(wrong)


def test_pictures(people, account, tmp_path):
    made = opened(people, account).histogram("age", edges=[18, 65], epsilon=1)
    svg = discreet.plot(made, tmp_path / "ages.svg").svg
    assert svg.count("<rect") == 4  # the ground, and a bar for each
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "95 times of 100" in svg
    assert "&lt; 18" in svg
    discreet.plot(made, tmp_path / "ages.png")
    assert (tmp_path / "ages.png").stat().st_size > 1000
    t = opened(people, account)
    for method, whiskers in (("tree", 9), ("exponential", 0)):
        made = t.quantiles("pay", [0.25, 0.5, 0.75], method=method, epsilon=1)
        svg = discreet.plot(made, tmp_path / "pay.svg").svg
        assert svg.count("<circle") == 3
        assert svg.count("<line") - svg.count('text-anchor="middle"') == whiskers + 1
        discreet.plot(made, tmp_path / "pay.png")
        assert (tmp_path / "pay.png").stat().st_size > 1000


# ── nothing private is shown ─────────────────────────────────────────────────


def rows_with_canary(path):
    lines = [f"{CANARY_TEXT},{CANARY_NUMBER},{CANARY_TEXT}"] * 50 + ["1,2,f"] * 50
    path.write_text("who,age,sex\n" + "\n".join(lines) + "\n")
    return path


def broken(path):
    path.write_text(f'who,age,sex\n"{CANARY_TEXT},{CANARY_NUMBER}\n{CANARY_TEXT}')
    return path


@pytest.mark.parametrize("make", [rows_with_canary, broken], ids=["whole", "broken"])
def test_a_planted_secret_appears_nowhere(make, rich, tmp_path, capfd, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    columns = {name: COLUMNS[name] for name in ("age", "sex")}
    source = make(tmp_path / "secret.csv")
    t = opened(source, rich, columns=columns)
    shown = [repr(t), str(t._source), repr(t.spec)]
    for question in (
        lambda: t.count(by="sex", epsilon=1),
        lambda: t.mean("age", by="sex", epsilon=1),
        lambda: t.variance("age", rho=1),
        lambda: t.median("age", epsilon=1),
        lambda: t.quantiles("age", [0.2, 0.8], by="sex", method="tree", epsilon=1),
        lambda: t.count_units(where=col("age") > 60, epsilon=1, delta=1e-6),
    ):
        try:
            made = question()
            shown += [repr(made), made.to_json()]
        except discreet.PrivacyError:
            assert make is broken
            shown.append(traceback.format_exc())

    def fail(*_, **__):
        raise ValueError("no noise today")

    monkeypatch.setattr("discreet.query._release_plan.measure", fail)
    with pytest.raises((ValueError, discreet.PrivacyError)) as caught:
        t.count(epsilon=1)
    shown += traceback.format_exception(caught.value)
    shown += [repr(entry) for entry in rich.history]
    shown += [*capfd.readouterr(), caplog.text]
    kept = [p for p in tmp_path.rglob("*") if p.is_file() and p != source]
    shown += [p.read_bytes().decode("latin-1") for p in kept]
    assert kept
    for secret in (CANARY_TEXT, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}"):
        assert not any(secret in text for text in shown)


def test_columns_are_looked_for_when_a_table_is_opened(tmp_path):
    frame = pl.DataFrame({"income": [1], "who": ["a"]})
    with pytest.raises(discreet.InvalidArgument, match="'incom' may be 'income'"):
        discreet.table(frame, columns={"incom": discreet.integer(0, 9)})
    with pytest.raises(discreet.InvalidArgument, match="'person'.* are not in the source"):
        discreet.table(frame, columns={}, privacy_unit="person", max_rows_per_unit=1)
    path = tmp_path / "rows.csv"
    path.write_text("Income,secret\n1,2\n")
    with pytest.raises(discreet.InvalidArgument, match="'income' may be 'Income'"):
        discreet.table(path, columns={"income": discreet.integer(0, 9)})
    # The first line of a CSV may be somebody's data: it is not quoted.
    with pytest.raises(discreet.InvalidArgument, match="header") as refused:
        discreet.table(path, columns={"secreta": discreet.integer(0, 9)})
    assert "'secret'" not in str(refused.value)
