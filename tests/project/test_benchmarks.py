"""The runner measures, survives a peer that fails, and writes its page. No time is asserted."""

import ast
import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from benchmarks import page, visits, worker
from benchmarks.__main__ import main
from benchmarks.case import Case
from benchmarks.cases import SUITES
from benchmarks.environments import Peer, peers
from benchmarks.measure import Side, job, measure

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


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("os.kill(os.getpid(), 9)", "ended by signal 9"),
        (
            "atexit.register(print, 'bye', file=sys.stderr); raise ValueError('no')",
            "ValueError: no",
        ),
        ("sys.exit('went away')", "went away"),
    ],
)
def test_why_a_peer_failed_is_told(tmp_path, ending, told):
    script = tmp_path / "failing.py"
    script.write_text(f"import atexit, os, sys\ndef sgd():\n    {ending}\n")
    side = Side(peer=SimpleNamespace(name="failing", script=script, python=sys.executable))
    side.run(Case(name="x", kind="sgd", params={}, peers={}))
    assert side.note == told


def defined(script):
    """Functions of a file, and what it has from others: what the worker can find there."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    made = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return made | {alias.name for node in imported for alias in node.names}


def test_every_case_has_its_scripts():
    for case in (case for suite in SUITES.values() for case in suite):
        for name in ("ours", *case.peers):
            assert case.kind in defined(peers()[name].script)
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


SMALL = Case(
    name="small",
    kind="table",
    params={"rows": 200, "people": 40, "even": 1, "keys": 4, "limit": 5, "epsilon": 1.0},
    peers={"exact": {}, "broken": {}},
    repetitions=3,
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.visits.CACHE", tmp_path)
    return tmp_path


def test_errors_are_told_for_each_statistic(cache):
    """Ours against a library that is off by 2 and by 100 everywhere, and one that fails."""
    truth = job(SMALL, "exact")["truth"]
    off = {"count": 2, "sum": 100, "mean": 0}
    wrong = {name: [x + off[name] for x in column] for name, column in truth.items()}
    script = cache / "exact.py"
    script.write_text(f"def table(**_):\n    return lambda: {wrong}\n")
    exact = SimpleNamespace(
        name="exact", label="e", script=script, python=sys.executable, install=lambda _: None
    )
    known = peers() | {"exact": exact, "broken": Peer(name="broken", label="nobody")}
    said = []
    rows = list(measure(SMALL, known, repeat=3, say=said.append))
    assert said == [f"small: {label}, run 1" for label in ("discreet", "e", "nobody")]
    assert [row["name"] for row in rows] == [f"small: {x}" for x in ("count", "sum", "mean")] * 2
    assert [row["peer_error"] for row in rows[:3]] == [2, 100, 0]
    for row in rows[:3]:
        assert row["error"] > 0
        assert row["error_ratio"] == pytest.approx(row["peer_error"] / row["error"], rel=2e-3)
    for row in rows[3:]:
        assert row["error"] > 0
        assert "peer_error" not in row
        assert row["note"]


def test_the_error_is_the_root_of_the_mean_square():
    answers = iter([{"n": [1.0, 5.0]}, {"n": [4.0, 2.0]}])
    found = worker.erring(lambda: next(answers), {"n": [1.0, 2.0]}, 2)
    assert found == {"n": math.sqrt((0 + 9 + 9 + 0) / 4)}
    with pytest.raises(ValueError, match="n has 1 groups, not 2"):
        worker.erring(lambda: {"n": [1.0]}, {"n": [1.0, 2.0]}, 1)


def test_the_data_are_what_the_cases_say(cache):
    path = visits.file(rows=1000, people=200, keys=10, even=1)
    table = pl.read_parquet(path)
    each = table.group_by("person").agg(pl.len(), pl.col("shop").n_unique().alias("shops"))
    assert (each.height, *each["len"].unique(), *each["shops"].unique()) == (200, 5, 5)
    truth = visits.truth(path, keys=10)
    plain = duckdb.sql(
        "SELECT count(*), sum(least(amount, 100)), avg(least(amount, 100)) "
        f"FROM '{path}' GROUP BY shop ORDER BY shop"
    ).fetchall()
    assert [*zip(truth["count"], truth["sum"], strict=True)] == [row[:2] for row in plain]
    assert truth["mean"] == pytest.approx([row[2] for row in plain])
    # Made once, and the same again.
    stamp = path.stat().st_mtime_ns
    assert visits.file(rows=1000, people=200, keys=10, even=1).stat().st_mtime_ns == stamp
    path.unlink()
    visits.file(rows=1000, people=200, keys=10, even=1)
    assert pl.read_parquet(path).equals(table)


def test_processes_below_are_counted():
    """A JVM does the work of Spark: its time and memory are the peer's."""
    before = worker.cpu_seconds()
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert {os.getpid(), child.pid} <= set(worker.family())
        assert worker.cpu_seconds() - before >= 0.25
        alive = worker.resident_mb("VmRSS")
        child.communicate(b"\n")
    assert child.pid not in worker.family()
    assert worker.cpu_seconds() - before >= 0.25
    assert worker.resident_mb("VmRSS") < alive


def test_headings_say_what_the_answers_are():
    row = {"name": "x", "error": 1.0, "peer_error": 2.0, "error_ratio": 2.0}
    assert [c.header for c in page.table([row], "tables").columns][1:] == [
        "ours, RMSE",
        "peer, RMSE",
        "RMSE ratio",
    ]
    assert page.table([row], "accounting").columns[1].header == "ours, ε"
