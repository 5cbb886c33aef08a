"""A secret in the data is in nothing that a whole run of the command prints or writes."""

import subprocess
import sys
from pathlib import Path

import pytest

WHO = "CANARY-7316"
WORD = "CANARY-KEY"
NUMBER = 731_655_901_337
SECRETS = [s.encode() for s in (WHO, WORD, str(NUMBER), f"{NUMBER:,}", "CANARY")]
FILE = """
title = "Canary"
[table]
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
x = { kind = "integer", lower = 0, upper = 1_000_000_000_000 }
k = { kind = "category", categories = ["a", "b"] }
[account]
ledger = "sqlite:///budget.db"
name = "canary"
limit = { epsilon = 1 }
[[statistic]]
kind = "sum"
of = "x"
by = ["k"]
epsilon = 0.2
[[statistic]]
kind = "units"
epsilon = 0.2
[[statistic]]
kind = "mean"
of = "x"
epsilon = 0.2
expected_rows = 10
"""
ROWS = f"who,x,k\n{WHO},{NUMBER},{WORD}\n{WHO},{NUMBER},a\nother,5,b\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text(ROWS)
    (tmp_path / "canary.toml").write_text(FILE)
    return tmp_path


def run(folder, *words):
    """Run the real command; give its exit code after searching all that it left."""
    command = Path(sys.executable).with_name("discreet")
    done = subprocess.run(
        [sys.executable, "-X", "dev", command, *words], cwd=folder, capture_output=True, check=False
    )
    left = {"stdout": done.stdout, "stderr": done.stderr}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in {"people.csv", "canary.toml"}:
            left[path.name] = path.read_bytes()
    for name, content in left.items():
        for secret in SECRETS:
            assert secret not in content, f"{name} holds {secret!r}"
    return done.returncode, left


def test_a_release_that_works(folder):
    code, left = run(folder, "plan", "canary.toml", "--json")
    assert code == 0
    code, left = run(folder, "release", "canary.toml")
    assert code == 0, left["stderr"]
    assert {"canary.json", "canary.release.csv", "canary.html", "budget.db"} <= set(left)
    for words in (("show", "canary"), ("verify",), ("export",), ("accounts",)):
        code, left = run(folder, "ledger", words[0], "sqlite:///budget.db", *words[1:])
        assert code == 0, left["stderr"]


def test_a_release_that_is_refused(folder):
    (folder / "canary.toml").write_text(FILE.replace("epsilon = 0.2", "epsilon = 2"))
    code, _ = run(folder, "release", "canary.toml")
    assert code == 3


@pytest.mark.parametrize(
    "row",
    [f'"{WHO},{NUMBER}\n', f"{WHO},{NUMBER},{WORD},too,many\n"],
    ids=["open quote", "too many fields"],
)
def test_a_malformed_row_changes_nothing(folder, row):
    (folder / "people.csv").write_text(ROWS + row)
    code, left = run(folder, "release", "canary.toml")
    assert code == 0, left["stderr"]


@pytest.mark.parametrize(
    "rows",
    [f"{WHO},{NUMBER},{WORD}\n", ROWS.replace("who,x,k", f"who,{WORD},k")],
    ids=["no header", "another header"],
)
def test_a_release_that_breaks(folder, rows):
    (folder / "people.csv").write_text(rows)
    code, left = run(folder, "release", "canary.toml")
    assert code == 2
    assert b"Traceback" not in left["stderr"]


def test_the_search_can_fail(folder):
    (folder / "leak.html").write_text(f"<p>{NUMBER:,}</p>")
    with pytest.raises(AssertionError, match="leak.html"):
        run(folder, "plan", "canary.toml")
