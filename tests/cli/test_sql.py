"""`discreet sql`: shows the queries, charges and answers, or refuses in words."""

import json

from click.testing import CliRunner

from discreet.cli.main import main
from discreet.ledger.ledger import Ledger

FILE = """title = "Visits"
[table]
source = "visits.csv"
privacy_unit = "person"
max_rows_per_unit = 2
[columns.age]
kind = "integer"
lower = 0
upper = 120
[account]
ledger = "sqlite:///budget.db"
name = "visits"
limit = { epsilon = 1 }
[[statistic]]
name = "rows"
kind = "count"
epsilon = 0.1
"""


def run(folder, *arguments):
    (folder / "visits.csv").write_text("person,age\n" + "".join(f"p{i},{i}\n" for i in range(100)))
    (folder / "visits.toml").write_text(FILE)
    return CliRunner().invoke(main, ["sql", str(folder / "visits.toml"), *arguments])


def test_without_a_budget_nothing_is_opened(tmp_path):
    found = run(tmp_path, "SELECT AVG(age) FROM v WHERE age > :low", "--parameter", "low=18")
    assert (found.exit_code, found.output) == (0, "mean of age where 18 < age\n")
    assert not (tmp_path / "budget.db").exists()


def test_with_a_budget_the_account_is_charged_and_the_answer_printed(tmp_path):
    found = run(tmp_path, "SELECT COUNT(*) AS n FROM v", "--epsilon", "0.5", "--json")
    assert found.exit_code == 0
    assert list(json.loads(found.output)["rows"][0]) == ["n", "n low", "n high"]
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        assert float(ledger.accounts()[0].remaining) == 0.5
    short = run(tmp_path, "SELECT COUNT(*) AS n FROM v", "--epsilon", "0.6")
    assert short.exit_code == 3
    assert run(tmp_path, "SELECT COUNT(*) FROM v", "--epsilon", "0.1").exit_code == 0


def test_a_refusal_is_one_line(tmp_path):
    found = run(tmp_path, "SELECT age FROM v", "--epsilon", "0.5")
    assert found.exit_code == 2
    assert found.output.startswith("discreet: SQL: bare column")
    assert not (tmp_path / "budget.db").exists()
