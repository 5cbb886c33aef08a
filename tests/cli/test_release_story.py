"""The demo tells its story, the audit prints its table, errors are one line."""

import json

import jsonschema_rs
import pytest
from click.testing import CliRunner

from discreet import Ledger, ReleaseCard, pure_dp
from discreet.cli.main import EXIT_REFUSED, main


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made here"
    result = CliRunner().invoke(main, ["demo", "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    return result.output, folder


def test_the_demo_plans_releases_and_audits(story):
    text, _ = story
    for part in ("No private data were touched", "95% between", "Spent: epsilon", "BROKEN"):
        assert part in text


def test_the_demo_publishes_ten_statistics_and_more_from_real_data(story):
    _, folder = story
    content = json.loads((folder / "health.json").read_text())
    assert len(content["releases"]) >= 10
    people = next(one for one in content["releases"] if one["title"] == "People")
    # The noise has standard deviation below 25: ten of them never pass.
    assert abs(people["value"] - 5912) < 250


def test_the_demo_says_where_the_report_is_and_what_is_left(story):
    text, folder = story
    assert (folder / "health.html").resolve().as_uri() in text.replace("\n", "")
    assert "left" in text.split("Spent:")[1]


def test_the_card_of_the_demo_is_one_by_the_schema_and_holds(story):
    _, folder = story
    text = (folder / "health.card.json").read_text(encoding="utf-8")
    jsonschema_rs.Draft202012Validator(ReleaseCard.schema()).validate(json.loads(text))
    assert ReleaseCard.from_json(text).verify().ok


def test_the_demo_begins_anew_each_time(story):
    _, folder = story
    (folder / "mine.txt").write_text("stays")
    again = CliRunner().invoke(main, ["demo", "--folder", str(folder)])
    assert again.exit_code == 0, again.output
    assert (folder / "mine.txt").read_text() == "stays"


def test_the_demo_leaves_other_folders_alone(tmp_path):
    (tmp_path / "budget.db").write_bytes(b"a ledger of somebody's")
    result = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path)])
    assert result.exit_code == EXIT_REFUSED
    assert "holds budget.db of something else" in result.output
    assert "--folder" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]


def test_the_demo_says_that_a_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / "file" / "demo")])
    assert result.exit_code == EXIT_REFUSED
    assert "cannot be made" in result.output
    assert "--folder" in result.output


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    target = tmp_path / "none" / "ledger.json"
    url = f"sqlite:///{tmp_path}/budget.db"
    Ledger(url).account("a", limit=pure_dp(1))
    result = CliRunner().invoke(main, ["ledger", "export", url, "--output", str(target)])
    assert result.exit_code == EXIT_REFUSED
    assert result.output.startswith("discreet: ")
    assert "No such file or directory" in result.output


def test_help_cuts_nothing_off():
    for command in ([], ["ledger"], ["local"], ["serve"]):
        assert (
            "..."
            not in CliRunner().invoke(main, [*command, "--help"]).output.split("\nCommands:")[1]
        )


def test_the_audit_lists_its_cases():
    listed = CliRunner().invoke(main, ["audit", "--list"]).output.splitlines()
    assert "laplace" in listed
    assert "same noise twice" in listed
    assert len(listed) > 50


def test_the_audit_prints_json_and_a_table():
    result = CliRunner().invoke(main, ["audit", "--json", "exact count for nothing"])
    assert result.exit_code == 0
    row = json.loads(result.output)
    assert (row["verdict"], row["ok"]) == ("BROKEN", True)
    assert row["attacked"] > row["claimed"]
    table = CliRunner().invoke(main, ["audit", "exact count for nothing"])
    assert "1 broken ones caught" in table.output


def test_an_unknown_case_is_refused_in_one_line():
    result = CliRunner().invoke(main, ["audit", "no such mechanism"])
    assert result.exit_code == EXIT_REFUSED
    assert "--list" in result.output
    assert "Traceback" not in result.output


def test_a_missed_or_accused_mechanism_fails_the_command(monkeypatch):
    from discreet.audit import runner as auditing
    from discreet.audit.cases import mechanisms as catalog

    good = next(iter(catalog.mechanism_cases()))
    wrong = type(good)(
        **{name: getattr(good, name) for name in good.__slots__ if name != "broken"}, broken=True
    )
    monkeypatch.setattr(auditing, "registered", lambda: (wrong,))
    monkeypatch.setattr("discreet.cli.audit.registered", lambda: (wrong,))
    result = CliRunner().invoke(main, ["audit"])
    assert result.exit_code == 1
    assert "MISSED" in result.output
