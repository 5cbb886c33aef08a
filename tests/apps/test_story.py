"""The demo tells its story, the audit prints its table, errors are one line."""

import json

import pytest
from click.testing import CliRunner

from discreet.apps.cli.main import EXIT_REFUSED, main


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    figure = tmp_path_factory.mktemp("demo") / "histogram.png"
    result = CliRunner().invoke(main, ["demo", "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    return result.output, figure


def test_the_demo_tells_a_count_a_histogram_the_guarantee_and_an_audit(story):
    text, _ = story
    for part in ("A private count", "A private histogram", "±", "epsilon", "holds", "BROKEN"):
        assert part in text


def test_the_demo_writes_a_picture_and_says_where(story):
    text, figure = story
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.name in text.replace("\n", "")


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
    from discreet.leakage import audit, cases

    good = next(iter(cases.cases()))
    wrong = type(good)(
        **{name: getattr(good, name) for name in good.__slots__ if name != "broken"}, broken=True
    )
    monkeypatch.setattr(audit, "registered", lambda: (wrong,))
    monkeypatch.setattr("discreet.apps.cli.audit.registered", lambda: (wrong,))
    result = CliRunner().invoke(main, ["audit"])
    assert result.exit_code == 1
    assert "MISSED" in result.output
