"""The evidence pages: nothing is left out, and nothing fails silently."""

import json
import sys

import pytest

from benchmarks.cases import SUITES
from discreet.studies.catalogue import PLANS
from evidence import page
from evidence.steps import Outcome, Step, run, steps

CHECK = {
    "id": "T1/a",
    "claim": "a | b",
    "source": "table 1",
    "rule": "within",
    "expected": 1.5,
    "got": 1.4,
    "tolerance": 0.2,
    "ok": True,
    "verdict": "reproduced",
    "why": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "FOLDER", tmp_path / "pages")
    return tmp_path


def study(folder, *checks):
    file = folder / "study-x.json"
    content = {"title": "X", "source": "Y", "seed": 0, "checks": checks}
    file.write_text(json.dumps(content), encoding="utf-8")
    step = Step(kind="study", name="x", command=(), file=file, printed=False)
    return Outcome(step=step, code=0, seconds=60)


def lines(folder, kind, *records, code=0):
    file = folder / f"{kind}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    step = Step(kind=kind, name="y", command=(), file=file, printed=True)
    return Outcome(step=step, code=code, seconds=1)


def test_every_study_audit_and_suite_is_a_step(tmp_path):
    made = steps(tmp_path, quick=True, data=None)
    assert {one.name for one in made if one.kind == "study"} == set(PLANS)
    assert {one.name for one in made if one.kind == "benchmark"} == set(SUITES)
    assert {one.name for one in made if one.kind == "audit"} == {"mechanisms", "published"}
    assert len({one.file for one in made}) == len(made)


def test_pages_hold_every_check_and_ratio(folder):
    audited = {"name": "m", "claimed": 1.0, "ok": True}
    ratio = {"name": "case", "peer": "p", "ours_s": 1.0, "peer_s": 2.0, "ratio": 2.0}
    outcomes = [
        study(folder, CHECK),
        lines(folder, "audit", audited),
        lines(folder, "benchmark", ratio),
    ]
    assert page.write(outcomes, quick=False)
    index = (page.FOLDER / "index.md").read_text(encoding="utf-8")
    assert "| [X](x.md) | 1 | 1 | 0 | 0 | 0 | 1.0 |" in index
    assert "| y | case | p | 1 | 2 | 2 |" in index
    assert "| T1/a | a ∣ b | table 1 | 1.5 ± 0.2 | 1.4 |" in (page.FOLDER / "x.md").read_text(
        encoding="utf-8"
    )


def test_a_failed_check_fails_the_evidence(folder):
    assert not page.write([study(folder, CHECK | {"ok": False})], quick=False)
    assert "**FAILED**" in (page.FOLDER / "x.md").read_text(encoding="utf-8")


def test_a_wrong_verdict_fails_the_evidence(folder):
    assert not page.write([lines(folder, "audit", {"name": "m", "ok": False}, code=1)], quick=False)


def test_what_did_not_run_is_said(folder):
    outcome = lines(folder, "benchmark", code=3)
    assert not page.write([outcome], quick=False)
    assert "did not finish" in (page.FOLDER / "index.md").read_text(encoding="utf-8")


def test_an_old_file_never_stands_in_for_a_failed_run(tmp_path):
    file = tmp_path / "old.json"
    file.write_text("{}", encoding="utf-8")
    command = (sys.executable, "-c", "import sys; sys.exit('no luck')")
    step = Step(kind="study", name="x", command=command, file=file, printed=False)
    outcome = run(step, limit_s=60)
    assert outcome.code == 1
    assert "no luck" in outcome.told
    assert not file.exists()
