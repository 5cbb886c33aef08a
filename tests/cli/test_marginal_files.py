"""Many tables in release files: planned, charged together with all else, and shown on the page."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import discreet
from discreet.cli.main import main
from discreet.data import expression_json
from discreet.report.marginal_section import association, triangle
from discreet.tables.marginals import ChargedMarginalRelease
from tests.marginals.test_release import ROWS, opened

FILE = """
title = "Sites <1>"
[table]
source = "rows.csv"
privacy_unit = "person"
max_rows_per_unit = 2
[columns]
site = { kind = "category", categories = ["a", "b", "c", "d", "e", "f"] }
sex = { kind = "category", categories = ["f", "m"] }
age = { kind = "integer", lower = 0, upper = 120 }
[account]
ledger = "sqlite:///budget.db"
name = "sites"
limit = { rho = 1 }
[[statistic]]
kind = "marginals"
tables = 2
columns = ["site", "sex", { column = "age", cut = [18, 65] }]
objective = "cells"
weights = [{ table = ["site", "sex"], weight = 2 }]
where = [{ column = "age", at_least = 1 }]
rho = 0.25
expected_rows = 1000
"""
COUNT = """
[[statistic]]
kind = "count"
rho = 0.05
"""


def run(*given, code=0):
    found = CliRunner().invoke(main, [str(one) for one in given])
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture
def folder(tmp_path):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "survey.toml").write_text(FILE)
    return tmp_path


def spent(folder):
    with discreet.Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        return 1 - float(ledger.account("sites").remaining)


def test_a_plan_shows_the_error_of_each_table_and_reads_nothing(folder):
    (folder / "rows.csv").unlink()
    text = run("plan", folder / "survey.toml")
    assert "site, sex" in text
    assert "best for cells" in text
    content = json.loads(run("plan", folder / "survey.toml", "--json"))
    assert content["cost"] == pytest.approx(0.25, rel=1e-3)
    names = [row["table"] for row in content["marginals"][0]["tables"]]
    assert names == [
        *("all rows", "site", "sex", "age", "site, sex", "site, age", "sex, age"),
    ]
    assert not (folder / "budget.db").exists()


def test_tables_are_released_and_charged_with_all_else(folder):
    (folder / "survey.toml").write_text(FILE + COUNT)
    run("release", folder / "survey.toml")
    assert spent(folder) == pytest.approx(0.3, rel=1e-3)
    text = (folder / "survey.marginals-1.json").read_text()
    release = ChargedMarginalRelease.from_json(text)
    assert release.receipt.account == "sites"
    assert np.allclose(
        release.table(["site", "sex"]).cells.sum(axis=1), release.table(["site"]).cells
    )
    # At most two of ten rows of 500 people are used; a hundredth has age 0.
    assert abs(release.total - 990) < 60
    lines = list(csv.DictReader(io.StringIO((folder / "survey.release.csv").read_text())))
    wanted = sum(len(table) for table in release.tables()) + 1
    assert len(lines) == wanted
    report = json.loads((folder / "survey.json").read_text())
    assert report["marginals"][0]["file"] == "survey.marginals-1.json"
    card = json.loads((folder / "survey.card.json").read_text())
    assert card["limits"]["max_rows_per_unit"] == 2
    page = (folder / "survey.html").read_text()
    assert "How columns go together" in page
    assert "discreet tables survey.marginals-1.json" in page
    assert "Sites &lt;1&gt;" in page
    shown = json.loads(
        run("tables", folder / "survey.marginals-1.json", "--by", "sex,age", "--json")
    )
    assert len(shown) == len(release.table(["sex", "age"]))


def test_tables_alone_are_a_release(folder):
    run("release", folder / "survey.toml")
    assert spent(folder) == pytest.approx(0.25, rel=1e-3)
    again = run("release", folder / "survey.toml", code=2)
    assert "exists" in again


def test_too_little_budget_releases_nothing(folder):
    (folder / "survey.toml").write_text(FILE.replace("rho = 0.25", "rho = 5"))
    run("release", folder / "survey.toml", code=3)
    assert not (folder / "survey.marginals-1.json").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tables = 2", "", "tables must be"),
        ("tables = 2", 'tables = [["site", "none"]]', "none"),
        ('objective = "cells"', 'objective = "best"', "objective must be one of"),
        ('objective = "cells"', 'objektive = "cells"', "objektive"),
        ("rho = 0.25", "", "epsilon"),
    ],
)
def test_nonsense_names_the_statistic(folder, old, new, words):
    (folder / "survey.toml").write_text(FILE.replace(old, new))
    text = run("plan", folder / "survey.toml", code=2)
    assert "statistic 1" in text
    assert words in text


def test_association_is_that_of_the_rows_and_noise_is_none():
    generator = np.random.default_rng(1)
    table = opened(rows=10)
    release = table.marginals(2, rho=0.05, columns=["site", "sex", "ill"])
    assert not association(release.table(["site", "sex"]))[1]
    first = generator.integers(0, 3, 3000)
    rows = np.where(generator.random(3000) < 0.6, first, generator.integers(0, 3, 3000))
    frame = {"x": first.astype(str), "y": rows.astype(str)}
    names = discreet.category(["0", "1", "2"], include_other=False)
    related = discreet.table(
        pd.DataFrame(frame), columns={"x": names, "y": names}, budget=10
    ).marginals(2, epsilon=2)
    strength, seen = association(related.table(["x", "y"]))
    assert seen
    assert abs(strength - 0.6) < 0.06
    assert triangle(related).texts[1][0] == f"{strength:.2f}"


SPINE = """
tables = [["site", "sex"]]
spine = ["side", "site"]
columns = ["site", "sex", { column = "side", expression = EXPRESSION }]
"""


def test_a_hierarchy_in_a_release_file_agrees_in_the_stored_text(folder):
    left = discreet.col("site").map({"a": "left", "b": "left"}, default="right")
    expression = expression_json.write_expression(left)
    text = FILE[: FILE.index("tables = 2")] + SPINE + "rho = 0.25\n"
    (folder / "survey.toml").write_text(text.replace("EXPRESSION", json.dumps(expression)))
    planned = json.loads(run("plan", folder / "survey.toml", "--json"))
    names = [row["table"] for row in planned["marginals"][0]["tables"]]
    assert "side, sex" in names or "sex, side" in names
    run("release", folder / "survey.toml")
    stored = next(folder.glob("*.marginals-1.json"))
    sides, sites = (
        json.loads(run("tables", stored, "--by", by, "--json")) for by in ("side", "site")
    )
    assert [row["side"] for row in sides] == ["left", "right"]
    assert sum(row["value"] for row in sites[:2]) == pytest.approx(sides[0]["value"])
