"""The evidence pages: nothing is left out, and nothing fails silently."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cases import SUITES
from discreet_studies.catalog import PLANS
from evidence import page, part
from evidence.steps import RECORDS, ROOT, Outcome, Step, kept, run, steps

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
AUDITED = {
    "name": "m",
    "delta": 0.0,
    "claimed": 1.0,
    "exact": 1.0,
    "attacked": 0.9,
    "verdict": "holds",
    "witness": None,
    "ok": True,
    "why": "",
}
RATIO = {"name": "case", "peer": "p", "ours_s": 1.0, "peer_s": 2.0, "ratio": 2.0}
LIMIT = {"peer": "NumPy (limit, not private)", "ratio": 0.5}
LEARNED = {
    "box": "median",
    "epsilon": 1.0,
    "ours": 1.0,
    "expected": 1.1,
    "chosen": "sum",
    "baselines": {"constant": 2.0},
}
REGRESSED = {
    "table": "wine",
    "rows": 9,
    "features": 2,
    "epsilon": 1.0,
    "midpoint": 3.0,
    "chosen": "level",
    "forecast": 1.5,
    "errors": {"discreet": 1.0, "other": 2.0},
}
TIMES = {"number": 7, "median_ms": 1.0, "p95_ms": 2.0, "worst_ms": 3.0}
SERVED = {"plan": TIMES, "release": TIMES, "failures": 0, "answered": 7, "charged": 7}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(part, "FOLDER", tmp_path / "pages")
    return tmp_path


def study(folder, *checks, lacks=()):
    file = folder / "study-x.json"
    content = {"title": "X", "source": "Y", "seed": 0, "checks": checks}
    file.write_text(json.dumps(content), encoding="utf-8")
    step = Step(kind="study", name="x", command=(), file=file, lacks=lacks)
    return Outcome(step=step, code=0, seconds=60, day="1 May 2026", version="0.1")


def lines(folder, kind, name, *records, code=0):
    file = folder / f"{kind}-{name}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    step = Step(kind=kind, name=name, command=(), file=file)
    return Outcome(step=step, code=code, seconds=1, day="2 May 2026", version="0.1")


def read(name):
    return (part.FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_every_study_audit_suite_and_comparison_is_a_step(tmp_path):
    made = steps(tmp_path, quick=True, data=None)
    compared = {"serve", "learned-comparison", "regression-comparison"}
    assert {one.name for one in made if one.kind == "study"} == set(PLANS)
    assert {one.name for one in made if one.kind == "benchmark"} == {*SUITES, *compared}
    assert {one.name for one in made if one.kind == "audit"} == {"mechanisms", "published"}
    assert len({one.file for one in made}) == len(made)


def test_a_study_that_is_not_given_its_files_says_so(tmp_path):
    by_name = {one.name: one for one in steps(tmp_path, quick=True, data=tmp_path)}
    assert by_name["aoutouf"].lacks == PLANS["aoutouf"].files
    (tmp_path / PLANS["aoutouf"].files[0]).touch()
    by_name = {one.name: one for one in steps(tmp_path, quick=True, data=tmp_path)}
    assert by_name["aoutouf"].lacks == ()


def test_pages_hold_every_check_verdict_and_ratio(folder):
    broken = AUDITED | {"name": "n", "exact": None, "verdict": "BROKEN"}
    claim = {"name": "mixed", "epsilon": 1, "claimed": 0.1, "true": 0.2, "event": "E", "ok": True}
    claim |= {"repaired": "grafted", "repaired_delta": 0.1}
    tree = {"name": "tree", "leaves": 64, "recovered": 63, "broken": True, "ok": True}
    outcomes = [
        study(folder, CHECK),
        lines(folder, "audit", "mechanisms", AUDITED, broken),
        lines(folder, "audit", "published", broken, claim, tree),
        lines(folder, "benchmark", "noise", RATIO, RATIO | LIMIT),
        lines(folder, "benchmark", "learned-comparison", LEARNED),
        lines(folder, "benchmark", "regression-comparison", REGRESSED),
        lines(folder, "benchmark", "serve", SERVED),
    ]
    assert page.write(outcomes)
    index = read("index")
    assert "| [X](x.md) | 1 | 1 | 0 | 0 | 0 | 1.0 | 1 May 2026, 0.1 |" in index
    assert "| [Audit of every mechanism](audit-mechanisms.md) | 2 | 1 | 2 | 0 |" in index
    assert (
        "faster in 1 of 1, ratio from 2 to 2, geometric mean 2; without privacy, as a limit: ratio"
        in index
    )
    assert "lowest error in 1 of 1; at worst 0.500" in index
    assert "| a | a ∣ b | table 1 | 1.5 ± 0.2 | 1.4 | reproduced |" in read("x")
    assert "| m | 0 | 1 | 1 | > 0.9 | holds, exactly | yes |" in read("audit-mechanisms")
    assert "| n | 0 | 1 | – | > 0.9 | **broken** | yes |" in read("audit-published")
    assert "| mixed | 1 | 0.1 | 0.2 | E | grafted | 0.1 |" in read("audit-published")
    assert "| tree | 64 | 63 | yes |" in read("audit-published")
    shown = read("benchmarks")
    assert "| case | 1 | p | 2 | 2 |" in shown
    assert "| median | 1 | 1 | 1.1 | 2 (constant) | 0.5 | sum |" in shown
    assert "| wine | 9 | 2 | 1 | 1 | 2 | 3 | level | 1.5 |" in shown
    assert "| plan | 7 | 1 | 2 | 3 |" in shown
    for name in ("audits", "benchmarks"):
        assert (part.FOLDER / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_failed_check_fails_the_evidence(folder):
    wrong = CHECK | {"ok": False, "verdict": "not reproducible", "why": "it came out otherwise"}
    assert not page.write([study(folder, wrong)])
    assert "**FAILED**" in read("x")
    assert "| x | **T1/a: a ∣ b** | it came out otherwise |" in read("index")


def test_what_nobody_can_check_is_listed_with_its_reason(folder):
    beyond = CHECK | {"verdict": "not reproducible", "why": "no data"}
    assert page.write([study(folder, beyond, lacks=("wine.csv",))])
    assert "| x | T1/a: a ∣ b | no data |" in read("index")
    assert "read no `wine.csv`" in read("index")


def test_a_wrong_verdict_fails_the_evidence(folder):
    accused = AUDITED | {"verdict": "ACCUSED", "ok": False}
    assert not page.write([lines(folder, "audit", "mechanisms", accused, code=1)])
    assert "m: ACCUSED" in read("index")


def test_an_audit_that_broke_off_is_not_taken_for_whole(folder):
    assert not page.write([lines(folder, "audit", "mechanisms", AUDITED, code=1)])
    assert "did not finish" in read("index")


def test_a_peer_that_gave_up_is_listed(folder):
    lost = {"name": "case", "peer": "p", "ours_s": 1.0, "note": "gave up after 60 s"}
    assert page.write([lines(folder, "benchmark", "noise", lost)])
    assert "| noise | case: p | gave up after 60 s |" in read("index")
    failed = lost | {"note": "ours failed: ValueError; extrapolated from 1/5 of the work"}
    assert not page.write([lines(folder, "benchmark", "noise", failed)])


def test_what_did_not_finish_is_said_without_the_paths_of_a_machine(folder):
    command = (sys.executable, "-c", "import sys; sys.exit('no /some/where/peer.py')")
    file = folder / "noise.jsonl"
    step = Step(kind="benchmark", name="noise", command=command, file=file)
    assert not page.write([run(step, limit_s=60)])
    assert "| benchmark noise | **did not finish** | no peer.py |" in read("index")
    assert "/some/where" not in step.record.read_text(encoding="utf-8")


def test_of_a_study_only_what_pages_show_is_kept(tmp_path):
    file = tmp_path / "x.json"
    whole = {"title": "X", "source": "Y", "seed": 0, "checks": [CHECK], "figures": ["<svg/>"]}
    program = f"import json; json.dump({whole!r}, open({str(file)!r}, 'w'))"
    command = (sys.executable, "-c", program)
    run(Step(kind="study", name="x", command=command, file=file), limit_s=60)
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "title": "X",
        "source": "Y",
        "seed": 0,
        "checks": [CHECK],
    }


def test_published_pages_are_made_from_the_records_beside_them(folder):
    planned = steps(RECORDS, quick=False, data=None)
    page.write([kept(one) for one in planned])
    for made in part.FOLDER.glob("*.md"):
        published = ROOT / "docs" / "evidence" / made.name
        assert made.read_text(encoding="utf-8") == published.read_text(encoding="utf-8")


def test_an_old_file_never_stands_in_for_a_failed_run(tmp_path):
    file = tmp_path / "old.json"
    file.write_text("{}", encoding="utf-8")
    command = (sys.executable, "-c", "import sys; sys.exit('no luck')")
    step = Step(kind="study", name="x", command=command, file=file)
    assert kept(step).code == -1  # nobody knows how it came about
    outcome = run(step, limit_s=60)
    assert outcome.code == 1
    assert "no luck" in outcome.told
    assert not file.exists()


def test_at_its_limit_a_step_is_ended_with_all_that_it_started(tmp_path):
    mark = tmp_path / "child"
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "child.wait()"
    )
    command = (sys.executable, "-c", program)
    step = Step(kind="benchmark", name="x", command=command, file=tmp_path / "x.jsonl")
    outcome = run(step, limit_s=5)
    assert outcome.code == -1
    assert outcome.told == "given up after 5 s"
    status = Path("/proc") / mark.read_text() / "status"
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_a_step_that_is_kept_keeps_its_time_day_and_version(tmp_path):
    command = (sys.executable, "-c", "print('{}')")
    step = Step(kind="audit", name="x", command=command, file=tmp_path / "x.jsonl", quick=True)
    outcome = run(step, limit_s=60)
    assert outcome.code == 0
    assert outcome.seconds > 0
    assert outcome.day
    assert outcome.version
    assert kept(replace(step, quick=False)) == outcome
