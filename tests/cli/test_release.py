"""Plan, release and ledger from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import discreet
from discreet.cli.main import main

FILE = """
title = "Survey <2026>"
[table]
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
age = { kind = "integer", lower = 0, upper = 120 }
sex = { kind = "category", categories = ["f", "m"], include_other = false }
since = { kind = "date", lower = 2020-01-01, upper = 2026-12-31 }
pay = { kind = "real", lower = 0, upper = 5000, granularity = 0.25 }
[account]
ledger = "sqlite:///budget.db"
name = "survey"
limit = { epsilon = 2, delta = 1e-6 }
[[statistic]]
name = "People"
kind = "units"
epsilon = 0.2
[[statistic]]
name = "Pay"
kind = "mean"
of = "pay"
by = ["sex"]
where = [{ column = "age", at_least = 18, below = 65 }]
rho = 0.02
expected_rows = 100
[[statistic]]
kind = "histogram"
of = "age"
edges = [18, 65]
epsilon = 0.3
[[statistic]]
name = "Early"
kind = "count"
by = ["sex", { column = "since", cut = [2024-01-01] }]
keys = [["f", "< 2024-01-01"], ["m", "< 2024-01-01"]]
epsilon = 0.3
delta = 1e-8
"""


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def people(tmp_path):
    rows = [f"{i // 2},{i % 100},{'fm'[i % 2]},202{i % 7}-05-01,{i}.5" for i in range(600)]
    (tmp_path / "people.csv").write_text("who,age,sex,since,pay\n" + "\n".join(rows) + "\n")


MORE = """
[[statistic]]
name = "Pay and age"
kind = "covariance"
of = ["pay", "age"]
by = ["sex"]
epsilon = 0.1
expected_rows = 300
[[statistic]]
name = "Pay in quarters"
kind = "quantiles"
of = "pay"
q = [0.25, 0.5, 0.75]
by = ["sex"]
method = "tree"
epsilon = 0.2
expected_rows = 3000
[[statistic]]
name = "Middle pay"
kind = "median"
of = "pay"
bins = 100
epsilon = 0.1
expected_rows = 600
"""


@pytest.mark.usefixtures("people")
def test_quantiles_and_covariances_from_a_file(file):
    file.write_text(FILE + MORE)
    assert "rank" in run("plan", file).output
    content = json.loads(run("plan", file, "--json").stdout)
    both, quarters, middle = content["statistics"][4:]
    assert both["width"] > 0
    assert quarters["groups"] == 6
    assert 0 < quarters["width"] < 1
    assert middle["step"] == pytest.approx(50.25)
    assert middle["std"] is None
    done = run("release", file)
    assert done.exit_code == 0, done.output
    lines = (file.parent / "survey.release.csv").read_text().splitlines()
    assert len([line for line in lines if line.startswith("Pay in quarters")]) == 6
    assert lines[-1].startswith("Middle pay,")
    assert lines[-1].endswith(",,,")
    page = (file.parent / "survey.html").read_text()
    assert page.count("<circle") == 7
    assert "chosen by their rank" in page


TARGETS = """
[[statistic]]
name = "People"
kind = "count"
by = ["sex"]
within = 50
[[statistic]]
name = "Pay"
kind = "mean"
of = "pay"
by = ["sex"]
within = 100
expected_rows = 3000
[[statistic]]
name = "Middle pay"
kind = "median"
of = "pay"
within = 0.02
expected_rows = 3000
[[statistic]]
name = "Asked too much"
kind = "count"
epsilon = 0.01
within = 3
"""
HEAD = FILE[: FILE.index("[[statistic]]")]


@pytest.mark.parametrize("limit", ["epsilon = 20", "rho = 2", "epsilon = 20, delta = 1e-6"])
@pytest.mark.usefixtures("people")
def test_targets_find_their_amounts(file, limit):
    targets = TARGETS if "rho" not in limit else TARGETS.replace("epsilon = 0.01", "rho = 1e-5")
    file.write_text(HEAD.replace("epsilon = 2, delta = 1e-6", limit) + targets)
    content = json.loads(run("plan", file, "--json").stdout)
    people, pay, middle, asked = content["statistics"]
    for one, target in ((people, 50), (pay, 100), (middle, 0.02)):
        assert one["target"] == target
        assert one["met"] is True
        assert one["width"] <= target
        assert one["amount"].startswith("rho" if "rho" in limit else "epsilon")
    assert (asked["met"], asked["amount"]) == (False, None)
    # The count and the mean share their rows, so only what is alone is barely met.
    assert middle["width"] > 0.0199
    shown = run("plan", file).output
    assert f"{people['amount']}  # People" in shown
    assert "missed" in shown
    # What was found, written down, is the same plan.
    written = targets
    for one, target in ((people, "within = 50"), (pay, "within = 100"), (middle, "within = 0.02")):
        written = written.replace(target, one["amount"])
    file.write_text(HEAD.replace("epsilon = 2, delta = 1e-6", limit) + written)
    again = json.loads(run("plan", file, "--json").stdout)
    assert [x["width"] for x in again["statistics"]] == [x["width"] for x in content["statistics"]]
    file.write_text(HEAD.replace("epsilon = 2, delta = 1e-6", limit) + targets)
    assert run("release", file).exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", "whether any one who, with all its rows, is in the data at all"),
        (
            'privacy_unit = "who"\nmax_rows_per_unit = 2\n',
            "",
            "whether any one row is in the data at all",
        ),
        (
            'privacy_unit = "who"',
            'privacy_unit = "who"\nrelation = "replace_one"',
            "while their number is public",
        ),
    ],
)
def test_a_plan_says_who_is_protected(file, old, new, words):
    counted = '[[statistic]]\nkind = "count"\nepsilon = 0.1\n'
    file.write_text(HEAD.replace(old, new) + counted)
    assert words in json.loads(run("plan", file, "--json").stdout)["protects"]
    assert words in run("plan", file).output


def test_targets_that_do_not_fit_are_relaxed(file):
    file.write_text(HEAD.replace("epsilon = 2, delta = 1e-6", "epsilon = 0.2") + TARGETS)
    content = json.loads(run("plan", file, "--json").stdout)
    assert content["affordable"] is False
    factor = content["relax"]
    assert f"{factor:g} times as wide" in run("plan", file).output
    for scale, fits in ((factor, True), (factor * 0.98, False)):
        wide = TARGETS
        for target in (50, 100, 0.02):
            wide = wide.replace(f"within = {target}\n", f"within = {target * scale}\n")
        file.write_text(HEAD.replace("epsilon = 2, delta = 1e-6", "epsilon = 0.2") + wide)
        assert json.loads(run("plan", file, "--json").stdout)["affordable"] is fits


def test_targets_need_rows_where_the_error_does(file):
    file.write_text(HEAD + TARGETS.replace("expected_rows = 3000", ""))
    done = run("plan", file)
    assert done.exit_code == 2
    assert "statistic 2: expected_rows must be stated" in done.output
    file.write_text(HEAD + TARGETS.replace("within = 0.02", "within = -1"))
    assert "statistic 3: within must be positive" in run("plan", file).output


def test_a_plan_needs_no_data(file):
    done = run("plan", file)
    assert done.exit_code == 0, done.output
    assert "No private data were touched" in done.output
    content = json.loads(run("plan", file, "--json").stdout)
    assert not (file.parent / "budget.db").exists()
    people, pay, ages, early = content["statistics"]
    assert (people["groups"], people["width"]) == (1, 15)
    assert pay["rows"] == 100
    assert pay["width"] > 0
    assert [part["of"] for part in pay["sensitivity"]] == ["rows", "centred sum"]
    assert (ages["groups"], ages["sensitivity"][0]["l1"]) == (3, 2)
    assert early["groups"] == 2
    assert people["share"] == pytest.approx(0.1, rel=1e-4)
    assert content["cost"] < content["remaining"] == 2
    assert content["exists"] is False
    assert content["affordable"] is True


@pytest.mark.usefixtures("people")
def test_a_release_writes_three_files_and_charges_once(file):
    done = run("release", file)
    assert done.exit_code == 0, done.output
    folder = file.parent
    content = json.loads((folder / "survey.json").read_text())
    assert [r["title"] for r in content["releases"]] == [
        "People",
        "Pay",
        "count by age",
        "Early",
    ]
    for one in content["releases"]:
        again = discreet.Release.from_json(json.dumps(one))
        assert [row["value"] for row in again.rows()] == [row["value"] for row in one["rows"]]
    lines = (folder / "survey.release.csv").read_text().splitlines()
    assert lines[0] == "statistic,sex,age,since,value,std,low,high"
    assert len(lines) == 1 + 1 + 2 + 3 + 2
    page = (folder / "survey.html").read_text()
    assert page.count("<svg") == 4
    assert "Survey &lt;2026&gt;" in page
    assert "<2026>" not in page
    assert set(re.findall(r"https?://[^\"' ]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "What is protected, and what is not" in page
    account = discreet.Ledger(f"sqlite:///{folder}/budget.db").account("survey")
    assert [entry.kind for entry in account.history] == ["open", "reserve", "settle"]
    assert account.history[1].hash in page


@pytest.mark.usefixtures("people")
def test_results_are_not_overwritten_by_chance(file):
    assert run("release", file).exit_code == 0
    again = run("release", file)
    assert again.exit_code == 2
    assert "costs again" in again.output
    other = run("release", file, "--output", file.parent / "other", "--json")
    assert other.exit_code in (0, 3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.usefixtures("people")
def test_what_was_paid_is_not_lost_with_the_disk(file):
    """The disk is full when the results are written: they are printed, and no second charge."""
    (file.parent / "survey.json").symlink_to("/dev/full")
    done = run("release", file, "--overwrite")
    assert done.exit_code == 4
    assert "survey.json could not be written" in done.stderr
    content = json.loads(done.stdout)
    assert discreet.Release.from_json(json.dumps(content["releases"][0])).title == "People"
    assert len((file.parent / "survey.release.csv").read_text().splitlines()) == 9
    account = discreet.Ledger(f"sqlite:///{file.parent}/budget.db").account("survey")
    assert [entry.kind for entry in account.history] == ["open", "reserve", "settle"]


@pytest.mark.usefixtures("people")
def test_what_was_paid_is_not_lost_with_a_page(file, monkeypatch):
    """Results are written before cards and pages are made of them."""

    def fail(*_, **__):
        raise RuntimeError

    monkeypatch.setattr("discreet.report.release_report.report_card", fail)
    assert isinstance(run("release", file).exception, RuntimeError)
    content = json.loads((file.parent / "survey.json").read_text())
    assert discreet.Release.from_json(json.dumps(content["releases"][0])).title == "People"
    assert len((file.parent / "survey.release.csv").read_text().splitlines()) == 9


@pytest.mark.usefixtures("people")
def test_a_short_budget_is_refused_politely(file):
    file.write_text(FILE.replace("epsilon = 2, delta", "epsilon = 0.5, delta"))
    assert "more than is left" in run("plan", file).output
    done = run("release", file)
    assert done.exit_code == 3
    assert "The data were not read" in done.output
    assert not (file.parent / "survey.json").exists()
    assert "refused" in json.loads(run("release", file, "--json").stdout)
    account = discreet.Ledger(f"sqlite:///{file.parent}/budget.db").account("survey")
    assert [entry.kind for entry in account.history] == ["open"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[table]", "[tables]", "unknown"),
        ('kind = "units"', 'kind = "mode"', "statistic 1: kind must be"),
        ('kind = "units"', 'kind = "median"', "statistic 1: a median takes of"),
        ('kind = "units"', 'kind = "units"\nq = [0.5]', "q belongs to quantiles"),
        ('kind = "mean"', 'kind = "covariance"', "statistic 2: a covariance takes"),
        ('kind = "mean"', 'kind = "quantiles"', "statistic 2: q must"),
        ('of = "pay"', 'of = "wage"', "wage"),
        ("max_rows_per_unit = 2", "", "max_rows_per_unit"),
        ("epsilon = 0.2", "", "statistic 1: Give epsilon"),
        ('kind = "real"', 'kind = "number"', "columns.pay"),
        ("granularity = 0.25", "granularity = 0.3", "columns.pay: granularity"),
        (
            "granularity = 0.25",
            "steps = 1",
            "columns.pay: unknown ['steps']; known are kind, lower",
        ),
        (", granularity = 0.25", "", "columns.pay: granularity must be given"),
        ('name = "People"', "name = 3", "statistic 1: name must be one line of text"),
        (
            'name = "People"\nkind = "units"',
            'name = 3\nkind = "ranges"\nof = "pay"\nbins = 4',
            "statistic 1: name must be one line of text",
        ),
        ("at_least", "over", "statistic 2: where: unknown"),
        ("limit = { epsilon", "limit = { eps", "account.limit"),
        ("limit = { epsilon = 2, delta = 1e-6 }", "", "give limit to open it"),
        ('privacy_unit = "who"', 'privacy_unit = "who"\nrelation = "local"', "table.relation"),
        ("title", "title =", "not TOML"),
        ('source = "people.csv"', "", "table: source"),
    ],
)
def test_mistakes_in_the_file_are_named(file, old, new, message):
    file.write_text(FILE.replace(old, new, 1))
    done = run("plan", file)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


PURE = re.sub(r"(?m)^(rho|epsilon|delta) = .*$", "", FILE)  # without amounts


@pytest.mark.parametrize(
    ("limit", "amount", "share"),
    [
        ("epsilon = 8", "epsilon = 1", 0.5),
        ("rho = 1", "rho = 0.1", 0.4),
        ("mu = 8", "epsilon = 1", None),
    ],
)
def test_limits_have_their_own_currency(file, limit, amount, share):
    text = PURE.replace("epsilon = 2, delta = 1e-6", limit)
    file.write_text(re.sub("(?m)^kind", f"{amount}\nkind", text))
    content = json.loads(run("plan", file, "--json").stdout)
    assert content["affordable"] is True
    if share:
        assert content["share"] == pytest.approx(share)
    assert 0 < content["share"] < 1
    assert content["share"] == pytest.approx(sum(x["share"] for x in content["statistics"]))


def test_a_currency_that_cannot_pay_is_said(file):
    file.write_text(FILE.replace("epsilon = 2, delta = 1e-6", "epsilon = 2"))
    done = run("plan", file)
    assert done.exit_code == 2
    assert "this release has none" in done.output


@pytest.mark.usefixtures("people")
def test_the_limit_of_an_account_never_changes(file):
    assert run("release", file).exit_code == 0
    file.write_text(FILE.replace("epsilon = 2,", "epsilon = 20,"))
    done = run("release", file, "--overwrite")
    assert done.exit_code == 2
    assert "never changes" in done.output
    file.write_text(FILE.replace("limit = { epsilon = 2, delta = 1e-6 }", ""))
    assert run("plan", file).exit_code == 0


@pytest.mark.usefixtures("people")
def test_replacing_one_unit(file):
    file.write_text(
        FILE.replace('privacy_unit = "who"', 'privacy_unit = "who"\nrelation = "replace_one"')
    )
    content = json.loads(run("release", file, "--json").stdout)
    assert content["guarantee"]["relation"] == "REPLACE_ONE"


def test_a_source_that_is_missing_costs_nothing(file):
    done = run("release", file)
    assert done.exit_code == 2
    assert "does not exist" in done.output
    account = discreet.Ledger(f"sqlite:///{file.parent}/budget.db").account("survey")
    assert account.remaining == 2


@pytest.mark.usefixtures("people")
def test_a_ledger_can_be_looked_at_and_checked(file, tmp_path):
    assert run("release", file).exit_code == 0
    url = f"sqlite:///{tmp_path}/budget.db"
    (row,) = json.loads(run("ledger", "accounts", url, "--json").stdout)
    assert row["account"] == "survey"
    assert "survey" in run("ledger", "accounts", url).stdout
    shown = json.loads(run("ledger", "show", url, "survey", "--json").stdout)
    assert [entry["kind"] for entry in shown["history"]] == ["open", "reserve", "settle"]
    assert shown["head"] in run("ledger", "show", url, "survey").stdout
    checked = run("ledger", "verify", url, "--json")
    assert (checked.exit_code, json.loads(checked.stdout)["ok"]) == (0, True)
    heads = tmp_path / "heads.json"
    heads.write_text(checked.stdout)
    assert run("ledger", "verify", url, "--heads", heads).exit_code == 0
    assert "account,sequence" in run("ledger", "export", url, "--kind", "csv").stdout
    assert run("ledger", "export", url, "--output", tmp_path / "all.json").exit_code == 0
    assert json.loads((tmp_path / "all.json").read_text())["accounts"]
    heads.write_text(json.dumps({"survey": "2:" + "0" * 64}))
    tampered = run("ledger", "verify", url, "--heads", heads)
    assert tampered.exit_code == 1
    assert "NOT INTACT" in tampered.stdout
    heads.write_text("[]")
    assert run("ledger", "verify", url, "--heads", heads).exit_code == 2


def test_an_export_replaces_no_file(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    discreet.Ledger(url).close()
    before = (tmp_path / "budget.db").read_bytes()
    done = run("ledger", "export", url, "--output", tmp_path / "budget.db")
    assert done.exit_code == 2
    assert "budget.db exists" in done.output
    assert (tmp_path / "budget.db").read_bytes() == before


def test_names_with_brackets_are_shown_as_they_are(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    with discreet.Ledger(url) as ledger:
        account = ledger.account("a [/b]", limit=discreet.pure_dp(1))
        account.charge(discreet.pure_dp(0.1), label="[sex]")
    assert "a [/b]" in run("ledger", "accounts", url).stdout
    shown = run("ledger", "show", url, "a [/b]").stdout
    assert "a [/b]" in shown
    assert "[sex]" in shown


def test_heads_that_are_none_are_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    discreet.Ledger(url).close()
    (tmp_path / "heads.json").write_text('{"heads": ["1:0"]}')
    done = run("ledger", "verify", url, "--heads", tmp_path / "heads.json")
    assert done.exit_code == 2
    assert "a JSON object from account to head" in done.output


def test_looking_does_not_create_a_ledger(tmp_path):
    done = run("ledger", "accounts", f"sqlite:///{tmp_path}/none.db")
    assert done.exit_code == 2
    assert not (tmp_path / "none.db").exists()
