"""The runner measures, survives a peer that fails, and writes its page. No time is asserted."""

import json
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from benchmarks import page
from benchmarks.__main__ import main
from benchmarks.cases import SUITES, Case
from benchmarks.environments import Peer, peers
from benchmarks.measure import Side, measure

TINY = Case(
    name="tiny",
    kind="laplace_int",
    params={"n": 1000, "scale": 2},
    warm={"n": 10},
    size="n",
    peers={"numpy": {"n": 100}, "broken": {}},
)


def rows_of(case, known):
    return list(measure(case, known, repeat=1, say=lambda _: None))


def test_a_tiny_case_is_measured_and_a_broken_peer_is_noted():
    known = peers() | {"broken": Peer(name="broken", label="nobody")}
    limit, broken = rows_of(TINY, known)
    assert limit["ours_s"] > 0
    assert limit["peer_s"] > 0
    # Both are rounded to four digits.
    assert limit["ratio"] == pytest.approx(limit["peer_s"] / limit["ours_s"], rel=2e-3)
    assert "extrapolated from 1/10" in limit["note"]
    assert (broken["peer_s"], broken["ratio"]) == (None, None)
    assert broken["note"]


def test_a_peer_that_cannot_be_installed_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.environments.CACHE", tmp_path)
    monkeypatch.setattr("benchmarks.environments.ROOT", tmp_path)
    gone = Peer(name="gone", label="gone", packages=("./no-such-package",))
    (row,) = rows_of(
        Case(name="x", kind="laplace_int", params={"n": 10, "scale": 1}, peers={"gone": {}}),
        peers() | {"gone": gone},
    )
    assert row["peer_s"] is None
    assert "not installed" in row["note"]


@pytest.mark.parametrize("answer", ["float('inf')", "(1.0, float('nan'))"])
def test_an_answer_that_is_not_finite_has_no_time(tmp_path, answer):
    script = tmp_path / "endless.py"
    script.write_text(f"def sgd():\n    return lambda: {answer}\n")
    side = Side(peer=SimpleNamespace(name="endless", script=script, python=sys.executable))
    side.run(Case(name="x", kind="sgd", params={}, peers={}))
    assert side.note == "no finite answer"
    assert side.best == {}


def test_every_case_has_its_scripts():
    for case in (case for suite in SUITES.values() for case in suite):
        for name in ("ours", *case.peers):
            assert f"def {case.kind}(" in peers()[name].script.read_text(encoding="utf-8")
        assert set(case.warm) <= set(case.params)
        assert len({case.name for suite in SUITES.values() for case in suite}) == sum(
            map(len, SUITES.values())
        )


def test_the_command_prints_one_object_a_line(monkeypatch):
    row = {"name": "tiny", "ours_s": 1.0, "peer": "p", "peer_s": 3.0, "ratio": 3.0}
    monkeypatch.setattr("benchmarks.__main__.measure", lambda *_, **__: iter([row]))
    done = CliRunner().invoke(main, ["noise", "--json"])
    assert done.exit_code == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == [row] * len(SUITES["noise"])


def test_the_page_is_rewritten_section_by_section(tmp_path, monkeypatch):
    target = tmp_path / "benchmarks.md"
    target.write_text("# Speed\n<!-- noise: begin -->\nold\n<!-- noise: end -->\nkept\n")
    monkeypatch.setattr(page, "PAGE", target)
    page.update("noise", [{"name": "tiny", "ours_s": 0.5, "peer": "p", "peer_s": 2.0}])
    text = target.read_text()
    assert "| tiny | 0.5 | p | 2 |" in text
    assert "kept" in text
    assert "old" not in text
    with pytest.raises(ValueError, match="one section"):
        page.update("accounting", [])
