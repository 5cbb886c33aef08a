"""The study of Aoutouf 2021: every check holds, and wrong formulas make checks fail."""

import gzip
import re
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.core.errors import InvalidArgument
from discreet_studies.blackbox_ranges import appendix, illustration, traffic
from discreet_studies.blackbox_ranges import area_tables as areas
from discreet_studies.blackbox_ranges import corrected_experiment as properly
from discreet_studies.blackbox_ranges import discrete_search as descent
from discreet_studies.blackbox_ranges import local_search as search
from discreet_studies.blackbox_ranges import optimum as best
from discreet_studies.blackbox_ranges import reference_values as stated
from discreet_studies.blackbox_ranges import search_against_optimum as searches
from discreet_studies.blackbox_ranges import smooth_ranges as smoothed
from discreet_studies.blackbox_ranges import smooth_ranges_comparison as smooth
from discreet_studies.blackbox_ranges import traffic_data as roads
from discreet_studies.blackbox_ranges.example_functions import traffic_day
from discreet_studies.blackbox_ranges.plan import AOUTOUF
from discreet_studies.study import StudySetting, run
from research.tests.completeness import DOCS, drawn, explained, failed, holds, named, whole

QUICK = StudySetting(quick=True, seed=AOUTOUF.seed)


@pytest.fixture(scope="module")
def study():
    return run(AOUTOUF, quick=True)


def test_every_check_holds(study):
    holds(study)


def test_all_experiments_are_there_with_checks_and_figures_of_their_own(study):
    ids = [experiment.id for experiment in AOUTOUF.experiments]
    assert ids == [f"E{i}" for i in range(1, 8)]
    checked = Counter(c.id.partition("/")[0] for c in study.checks if c.rule != "none")
    assert all(checked[name] >= 3 for name in ids)
    named(study)
    assert {figure.id.partition("/")[0] for figure in study.figures} == set(ids)
    explained(study, ("exact",))


def test_what_needs_the_real_file_is_said_to_be_missing(study):
    beyond = {check.id: check.why for check in study.checks if check.rule == "none"}
    assert set(beyond) == {"E3/ranks", "E4/real day"}
    assert all("traffic.csv" in why and "--data" in why for why in beyond.values())


def test_the_files_are_whole(study):
    whole(study)


def test_the_same_seed_gives_the_same_checks(study):
    again = (*illustration.plane(QUICK).checks, *searches.searches(QUICK).checks)
    assert set(again) <= set(study.checks)


def test_the_study_is_listed_with_its_file():
    result = CliRunner().invoke(main, ["study", "--list"])
    assert "aoutouf: Ranges learned" in result.output
    assert "traffic.csv.gz" in result.output


# ── data ──────────────────────────────────────────────────────────────────────────────────────


def made_up_file(path, *, days=27, rows=roads.ROWS):
    """A file of the shape of the real one: whole days, some of 24 readings, one of 15."""
    rng = np.random.default_rng(1)
    lines = ["time,lane1,total"]
    for day in range(days):
        month, date = (8, 28 + day) if day < 4 else (9, day - 3)
        lines += [f"2017-{month:02}-{date:02} x,1,{int(v)}" for v in traffic_day(rng)]
    lines += [f"2017-10-01 {i},1,5" for i in range(rows - len(lines) + 1)]
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.mark.parametrize("name", ["traffic.csv", "traffic.csv.gz"])
def test_a_folder_may_hold_the_file(tmp_path, name):
    made_up_file(tmp_path / name)
    found = roads.road(tmp_path)
    assert found.real
    assert len(found.day) == 288
    assert len(found.earlier) == 26
    assert found.test[0].shape == (283, 4, 1)
    checks = {check.id for check in traffic._ranks(found, traffic.Day.of(found))}
    assert {f"E3/rank {rank}" for rank in range(4)} <= checks


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "time,total\n2017-09-23,x\n", "time,total\nx,1\n"])
def test_another_file_of_that_name_is_refused(tmp_path, text):
    (tmp_path / "traffic.csv").write_text(text)
    with pytest.raises(InvalidArgument, match="traffic.csv must"):
        roads.road(tmp_path)


def test_nothing_is_learned_from_the_test_day():
    place = roads.road(None)
    one = properly.Task.of(place, np.random.default_rng(1))
    other = roads.Road(name="x", real=False, day=place.day[::-1].copy(), earlier=place.earlier)
    two = properly.Task.of(other, np.random.default_rng(1))
    assert np.array_equal(one.anchors, two.anchors)
    assert np.array_equal(one.outputs, two.outputs)
    chosen = [properly.best_bias(task, 40)[1] for task in (one, two)]
    assert chosen[0] == chosen[1]


def test_the_cuts_are_those_of_the_tree():
    from sklearn.tree import DecisionTreeRegressor

    from discreet_studies.blackbox_ranges.example_functions import uniform, wave
    from discreet_studies.blackbox_ranges.input_partition import of_tree

    x = uniform(many=10, positions=3, attributes=2, seed=10)
    tree = DecisionTreeRegressor(random_state=0).fit(x.reshape(10, 6), wave(x))
    found = of_tree(tree, positions=3, lower=0, upper=1)
    assert [[one.tolist() for one in row] for row in found.cuts] == [
        [list(one) for one in row] for row in stated.APPENDIX_CUTS
    ]


def test_a_window_is_the_best_of_all_windows():
    rng = np.random.default_rng(2)
    y = rng.normal(size=30)
    for width in (0.0, 0.7, 3.0):
        every = [
            np.abs(y - np.clip(y, low, low + width)).mean() for low in np.linspace(-5, 5, 4001)
        ]
        assert best.window_error(y, y, width) == pytest.approx(min(every), abs=0.002)
    assert best.Optima.of(y, np.zeros((30, 1), dtype=int), 0.5).constant == pytest.approx(
        best.window_error(y, y, 0)
    )


# ── wrong formulas are seen ───────────────────────────────────────────────────────────────────


def test_ranks_of_another_adjacency_are_seen(monkeypatch):
    right = areas.ranks
    monkeypatch.setattr(
        search, "ranks", lambda trained, *, adjacency: right(trained, adjacency="step")
    )
    assert {"E2/rank 1", "E2/rank 2"} <= failed(appendix.appendix(QUICK).checks)


def test_slacks_that_are_not_true_are_seen(monkeypatch):
    monkeypatch.setattr(search.Centers, "consistent", lambda self, group: True)
    found = failed((*searches.searches(QUICK).checks, *appendix.appendix(QUICK).checks))
    assert {"E5/gap", "E5/deadlock, search", "E2/true slacks, gap"} <= found


def test_a_descent_that_moves_single_areas_is_seen(monkeypatch):
    right = descent._best_set

    def single(*args):
        gain, group, s = right(*args)
        return (gain, group, s) if group.sum() <= 1 else (0, group, s)

    monkeypatch.setattr(descent, "_best_set", single)
    assert {"E5/descent", "E5/deadlock, descent"} <= failed(searches.searches(QUICK).checks)


def test_an_extension_of_twice_the_slope_is_seen(monkeypatch):
    right = illustration.extended
    monkeypatch.setattr(illustration, "extended", lambda values, slope: right(values, 2 * slope))
    assert {"E1/gap", "E1/exact", "E1/ranks"} <= failed(illustration.plane(QUICK).checks)


def test_a_multiplier_of_two_is_seen(monkeypatch):
    monkeypatch.setattr(smooth, "kappa", lambda **_: 2.0)
    found = failed(smooth.smooth(QUICK).checks)
    assert "E6/kappa/epsilon 1/0.0345" in found
    assert "E6/counts/200/exact" in found


def test_bounds_that_are_really_smooth_would_be_seen(monkeypatch):
    def right(centers, *, width, step, gamma, listing=False):
        local = np.maximum(areas.around(centers, 0, adjacency="replace")[1], 1)
        return smoothed.smooth_bounds(np.broadcast_to(local, centers.shape), 0.1), 1

    monkeypatch.setattr(smooth, "smooth_as_published", right)
    assert "E6/published, zero" in failed(smooth._published())


# ── the documentation ─────────────────────────────────────────────────────────────────────────

PICTURES = {
    "e1": "E1/plane",
    "e2": "E2/centers",
    "e3": "E3/day",
    "e4": "E4/frontier",
    "e5": "E5/excess",
    "e6": "E6/gains",
    "e7": "E7/size",
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_those_of_the_study(study, name):
    drawn(study, PICTURES[name], f"aoutouf-{name}.svg")


@pytest.mark.parametrize(("table", "first"), [("E2/errors", 1), ("E6/counts", 1)])
def test_the_tables_of_the_documentation_are_those_of_the_study(study, table, first):
    (found,) = (one for one in study.tables if one.id == table)
    text = (DOCS / "aoutouf.md").read_text("utf-8")
    for row in found.rows:
        (line,) = re.findall(rf"^\| {re.escape(str(row[0]))} \|(.*)\|$", text, re.MULTILINE)
        cells = [cell.strip() for cell in line.split("|")]
        for cell, value in zip(cells, row[first:], strict=True):
            assert (cell == "–") == (value is None)
            assert value is None or float(cell) == pytest.approx(value, abs=0.0006)
