"""`discreet plan --suggest-bounds`: charged, told beforehand, and ready to paste."""

from __future__ import annotations

import json
import random
import tomllib

import pytest
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.ledger.ledger import Ledger

FILE = """
title = "t"
[table]
source = "people.csv"
privacy_unit = "person"
max_rows_per_unit = 2
[columns]
age = { kind = "integer", lower = 0, upper = 1000000 }
income = { kind = "real", lower = -1e9, upper = 1e9, granularity = 0.25 }
city = { kind = "text" }
[account]
ledger = "sqlite:///budget.db"
name = "a"
limit = { epsilon = 100 }
[[statistic]]
kind = "count"
by = "city"
keys = { file = "cities.csv", columns = ["city"], include_other = true }
epsilon = 0.5
"""


@pytest.fixture
def folder(tmp_path):
    rng = random.Random(2)
    lines = ["person,age,income,city"]
    for row in range(4000):
        city = rng.choice(["Rome", "Ulm", "elsewhere"])
        lines.append(f"{row // 2},{rng.randint(0, 99)},{rng.gauss(30_000, 9_000):.2f},{city}")
    (tmp_path / "people.csv").write_text("\n".join(lines))
    (tmp_path / "cities.csv").write_text("city\nRome\nUlm\n")
    (tmp_path / "r.toml").write_text(FILE)
    return tmp_path


def run(folder, *arguments):
    return CliRunner().invoke(main, [*arguments[:1], str(folder / "r.toml"), *arguments[1:]])


def left(folder):
    with Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        return float(ledger.account("a").remaining)


def test_suggestions_can_be_pasted(folder):
    """With so much epsilon that no noise but zero is drawn, but for one run in 10**10."""
    done = run(folder, "plan", "--suggest-bounds", "--epsilon", "96")
    assert done.exit_code == 0, done.output
    assert "reads the data and charges epsilon 96" in done.stderr
    pasted = tomllib.loads(done.stdout)
    assert pasted["table"] == {"max_rows_per_unit": 2}
    assert pasted["columns"]["age"] == {"kind": "integer", "lower": 0, "upper": 128}
    assert (pasted["columns"]["income"]["lower"], pasted["columns"]["income"]["upper"]) == (
        0,
        65536,
    )
    assert left(folder) == 4


def test_json_and_refusals(folder):
    done = run(folder, "plan", "--suggest-bounds", "--epsilon", "96", "--json")
    content = json.loads(done.stdout)
    assert [one["column"] for one in content["bounds"]] == ["age", "income"]
    assert content["max_rows_per_unit"] == 2
    short = run(folder, "plan", "--suggest-bounds", "--epsilon", "96")
    assert short.exit_code == 3
    assert left(folder) == 4
    assert run(folder, "plan", "--suggest-bounds").exit_code == 2


def test_keys_from_a_file_with_the_rest(folder):
    done = run(folder, "release", "--json")
    assert done.exit_code == 0, done.output
    with (folder / "r.json").open() as file:
        keys = json.load(file)
    text = json.dumps(keys, ensure_ascii=False)
    assert "Rome" in text
    assert "(other)" in text
    assert "elsewhere" not in text


@pytest.mark.parametrize(
    "keys",
    [
        '{ file = "missing.csv", columns = ["city"] }',
        '{ file = "cities.csv", columns = ["nothing"] }',
        '{ file = "cities.csv" }',
        '{ values = ["Rome"], color = 3 }',
        '"Rome"',
    ],
)
def test_wrong_keys_are_refused(folder, keys):
    text = FILE.replace('{ file = "cities.csv", columns = ["city"], include_other = true }', keys)
    (folder / "r.toml").write_text(text)
    assert run(folder, "plan").exit_code == 2
