"""The study of Friis 2021: every check holds, and wrong structures make checks fail."""

import dataclasses
import json
import re
from collections import Counter
from fractions import Fraction

import pytest

from discreet.query.budget import QueryBudget
from discreet.ranges._strategy_design import RangeDesign
from discreet_studies.checks import MOST_SIMULATED
from discreet_studies.range_queries import central_model, trees
from discreet_studies.range_queries import claimed_guarantees as promises
from discreet_studies.range_queries import long_ranges as long
from discreet_studies.range_queries.local_model import Keep, Levels, PublishedUnary
from discreet_studies.range_queries.plan import FRIIS
from discreet_studies.report import as_json
from discreet_studies.study import StudySetting, run
from research.tests.completeness import DOCS, drawn, failed, holds, named, whole

QUICK = StudySetting(quick=True, seed=FRIIS.seed)


@pytest.fixture(scope="module")
def study():
    return run(FRIIS, quick=True)


def test_every_check_holds(study):
    holds(study)


def test_all_experiments_and_their_figures_are_there(study):
    ids = [experiment.id for experiment in FRIIS.experiments]
    assert ids == [f"E{i}" for i in range(15)]
    seen = Counter(check.id.partition("/")[0] for check in study.checks)
    assert all(seen[name] >= 8 for name in ids)
    figures = {figure.id.partition("/")[0] for figure in study.figures}
    assert figures >= {f"E{i}" for i in range(1, 9)} | {f"E{i}" for i in range(10, 15)}


def test_checks_have_names_of_their_own_and_reasons_where_they_correct(study):
    named(study)


def test_the_error_of_chance_is_shared_among_no_more_checks_than_assumed(study):
    simulated = [check for check in study.checks if "simulated" in check.id or "births" in check.id]
    assert 50 < len(simulated) < MOST_SIMULATED / 2.5  # a full run has 2.2 times as many


def test_figures_say_units_epsilon_and_repetitions(study):
    for figure in study.figures:
        assert figure.x
        assert any(unit in figure.y for unit in ("RMSE (visits)", "share", "epsilon"))
        assert "epsilon" in figure.note or "epsilon" in figure.x or "epsilon" in str(figure.lines)
        assert "exact" in figure.note or "structures" in figure.note


def test_the_files_are_whole(study):
    whole(study)
    made = json.loads(as_json(study))
    keys = {"id", "claim", "expected", "got", "tolerance", "ok", "verdict"}
    assert all(keys <= check.keys() for check in made["checks"])
    assert {check["verdict"] for check in made["checks"]} == {
        "reproduced",
        "corrected",
        "not reproducible",
    }


def test_the_same_seed_gives_the_same_study(study):
    again = trees.central_tree(QUICK)
    assert set(again.checks) <= set(study.checks)


@pytest.mark.parametrize("name", ["E3", "E6", "E8", "E10", "E11", "E12", "E14"])
def test_the_pictures_of_the_documentation_are_those_of_the_study(study, name):
    drawn(study, f"{name}/errors", f"friis-{name.lower()}.svg")


def test_the_table_of_the_documentation_is_that_of_the_study(study):
    (table,) = (table for table in study.tables if table.id == "E9/central")
    rows = {row[:3]: [row[i] for i in (3, 4, 5, 8, 10)] for row in table.rows}
    lines = re.findall(r"^\| (\d+ \|.*) \|$", (DOCS / "friis.md").read_text("utf-8"), re.MULTILINE)
    assert len(lines) == len(rows)
    for line in lines:
        cells = [float(cell) for cell in line.split("|")]
        assert cells[3:] == pytest.approx(rows[tuple(map(int, cells[:3]))], abs=0.06)


def rows_of(page, start):
    """Lines of the tables of a page whose first cell looks like this."""
    text = (DOCS / page).read_text("utf-8")
    return [
        [cell.strip() for cell in line.split("|")]
        for line in re.findall(rf"^\| ({start} \|.*) \|$", text, re.MULTILINE)
    ]


def test_the_local_tables_of_the_documentation_are_those_of_the_study(study):
    tables = {table.id: table for table in study.tables}
    lines = rows_of("friis-local.md", r"\d+")
    short = [(row[0], *row[2:7]) for row in tables["E11/short"].rows]
    assert [list(map(float, line)) for line in lines] == [
        pytest.approx(row, abs=0.51) for row in short
    ]
    ladder = {row[0]: row for row in tables["E14/ladder"].rows}
    for model, trusted, epsilon, error in rows_of("friis-local.md", "(?:central|shuffle|local)"):
        assert (trusted, float(error)) == (
            ladder[model][1],
            pytest.approx(ladder[model][3], rel=0.002),
        )
        assert epsilon == ("none" if model == "central" else f"{ladder[model][5]:.3g}")
    (cells,) = (row for row in tables["E12/all ranges"].rows if row[:2] == (64, 1))
    found = dict(zip(tables["E12/all ranges"].columns, cells, strict=True))
    for line, name in {
        "flat, unary, raw": "flat, oue, raw",
        "flat, unary, known total": "flat, oue",
        "flat, randomized response": "flat, grr",
        "tree of 2, unary, raw": "B=2, raw",
        "tree of 2, unary, consistent": "B=2",
        "tree of 4, unary, consistent": "B=4",
        "Haar, Hadamard responses": "Haar",
        "tree of 2, unary, best shares": "B=2, optimized",
        "tree of 2, subset selection, best shares": "B=2, ss, optimized",
    }.items():
        ((_, at_64, *_),) = rows_of("friis-local.md", re.escape(line))
        assert float(at_64) == pytest.approx(found[name], rel=0.003)


def test_too_little_noise_in_a_simulation_is_seen(monkeypatch):
    right = central_model.simulate

    def less(model, **how):
        return 0.9 * right(model, **how)

    monkeypatch.setattr("discreet_studies.range_queries.simulation.simulate", less)
    found = failed(trees._simulated_central(QUICK))
    assert any(name.startswith("E4/simulated, corrected") for name in found)


def test_a_tree_whose_scale_is_one_level_short_is_seen(monkeypatch):
    right = central_model.plain

    def short(**size):
        levels = central_model.height(size["domain"], degree=size["degree"]) + 1
        return right(**size) * (levels - 1) / levels

    monkeypatch.setattr(central_model, "plain", short)
    monkeypatch.setattr(long, "_on_births", lambda _: [])
    found = failed(long.long_ranges(QUICK).checks)
    assert sum(name.endswith(("/root", "/no root")) for name in found) == 22


def test_another_oracle_is_seen(monkeypatch):
    monkeypatch.setattr(trees, "published", lambda epsilon: Keep(epsilon=epsilon, published=False))
    monkeypatch.setattr(trees, "_simulated_local", lambda _: [])
    monkeypatch.setattr(trees, "_small", lambda _: [])
    found = failed(trees.local_tree(QUICK).checks)
    assert {name for name in found if name.startswith("E5/as coded/")} >= {
        "E5/as coded/epsilon 0.2",
        "E5/as coded/epsilon 1",
    }
    assert "E5/exp" in found


def test_a_simulation_that_forgets_to_split_the_users_is_seen(monkeypatch):
    right = Levels.simulate

    def everybody(self, counts, first, **how):
        whole = dataclasses.replace(self, oracle=PublishedUnary(epsilon=3))
        return right(whole, counts, first, **how)

    monkeypatch.setattr(Levels, "simulate", everybody)
    found = failed(trees._simulated_local(QUICK))
    assert sum("simulated, unary" in name for name in found) == 3


def test_noise_of_the_house_that_is_too_small_is_seen(monkeypatch):
    right = RangeDesign.release

    def quiet(self, counts, *, rng):
        louder = dataclasses.replace(self, budget=QueryBudget(epsilon=Fraction(5, 4)))
        return right(louder, counts, rng=rng)

    monkeypatch.setattr(RangeDesign, "release", quiet)
    assert len(failed(long._on_births(QUICK))) == 2


def test_the_attack_needs_the_published_tree(monkeypatch):
    monkeypatch.setattr(promises, "_published_tree", promises._sound_tree)
    assert failed(promises.claimed_guarantees(QUICK).checks) == {"E0/leaves, published tree"}


@pytest.mark.slow
def test_the_full_study_holds():
    found = run(FRIIS)
    assert [check for check in found.checks if not check.ok] == []
