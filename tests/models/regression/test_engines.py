"""The same integers, so with the same bits the same release, from every engine."""

import sys

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.data._float_columns import add_up
from discreet.data.source import open_source
from discreet.models.regression import PrivateLinearRegression
from discreet.noise.random_source import seeded_rng

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

FEATURES = ["a", "b", "c d"]


def frame(rows=70_001):
    """More rows than one piece."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, 3))
    y = x @ [0.2, -0.1, 0.0] + 0.1 * rng.normal(size=rows)
    made = pandas.DataFrame(x, columns=FEATURES)
    made["y"] = y
    return made


def model(**changes):
    chosen = {
        "epsilon": 1,
        "delta": 1e-6,
        "bounds": (-3, 3),
        "target_bounds": (-1, 1),
        "rng": seeded_rng(5),
        **changes,
    }
    return PrivateLinearRegression(**chosen)


def same(one, other):
    assert np.array_equal(one.moments_.gram, other.moments_.gram)
    assert np.array_equal(one.moments_.cross, other.moments_.cross)
    assert np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("scaling", ["bounds", "private"])
def test_files_relations_and_frames_give_the_same_release(tmp_path, scaling):
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    data = frame()
    reference = model(scaling=scaling).fit(data[FEATURES], data["y"])
    path = tmp_path / "rows.parquet"
    data.to_parquet(path)
    relation = duckdb.connect().read_parquet(str(path))
    lazy = polars.scan_parquet(path)
    for source in (path, relation, data, polars.read_parquet(path), lazy):
        same(model(scaling=scaling).fit_source(source, features=FEATURES, target="y"), reference)


def test_a_csv_is_read_as_text_and_gives_the_same_release(tmp_path):
    data = frame(1000)
    data.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    found = model().fit_source(tmp_path / "rows.csv", features=FEATURES, target="y")
    same(found, model().fit(data[FEATURES], data["y"]))


def test_several_targets(tmp_path):
    data = frame(500)
    data["z"] = -data["y"]
    found = model(target_bounds=[(-1, 1)] * 2).fit_source(
        data, features=FEATURES, target=["y", "z"]
    )
    assert found.coef_.shape == (2, 3)


def test_rows_with_missing_values_or_words_are_left_out(tmp_path):
    data = frame(100)
    without = data.drop(index=3)
    expected = model().fit(without[FEATURES], without["y"])
    data.loc[3, "b"] = np.nan
    same(model().fit_source(data, features=FEATURES, target="y"), expected)
    words = frame(100).astype(object)
    words.loc[3, "b"] = "secret"
    words.to_csv(tmp_path / "words.csv", index=False)
    as_text = words.astype("string")
    for source in (as_text, pl.from_pandas(as_text), tmp_path / "words.csv"):
        same(model().fit_source(source, features=FEATURES, target="y"), expected)
    with pytest.raises(InvalidArgument, match="not in the source"):
        model().fit_source(data, features=["a", "q"], target="y")
    with pytest.raises(InvalidArgument, match="name columns"):
        model().fit_source(data, features=[], target="y")


def test_one_integer_beyond_doubles_does_not_fail_the_fit():
    # Arrow's own cast to doubles refuses the column because of it: an error would tell of one row.
    data = frame(60)
    data["b"] = [3] * 59 + [2**62]
    table = pyarrow.Table.from_pandas(data, preserve_index=False)
    expected = model().fit(data[FEATURES], data["y"])
    arrow = table.to_pandas(types_mapper=pandas.ArrowDtype)
    for source in (table, arrow, data, pl.from_arrow(table)):
        same(model().fit_source(source, features=FEATURES, target="y"), expected)


def test_a_source_is_charged_like_any_fit(tmp_path):
    account = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").account(
        "survey", limit=discreet.approx_dp(3, 1e-5)
    )
    model(account=account, rng=None).fit_source(frame(50), features=FEATURES, target="y")
    assert [one.outcome for one in account.history if one.kind == "reserve"] == ["released"]


def test_pieces_add_up():
    data = frame()
    total = add_up(
        open_source(data),
        ["a", "y"],
        lambda values: np.array([len(values), (values > 0).sum()], dtype=np.int64),
        start=np.zeros(2, dtype=np.int64),
    )
    assert total.tolist() == [len(data), int((data[["a", "y"]] > 0).sum().sum())]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_same_release(cluster, monkeypatch, tmp_path):
    # Workers that run this Python, as PYSPARK_PYTHON would tell them.
    monkeypatch.setattr(cluster.sparkContext, "pythonExec", sys.executable)
    data = frame(9000)
    data.to_parquet(tmp_path / "rows.parquet")
    table = cluster.read.parquet(str(tmp_path / "rows.parquet")).repartition(3)
    for scaling in ("bounds", "private"):
        found = model(scaling=scaling).fit_source(table, features=FEATURES, target="y")
        same(found, model(scaling=scaling).fit(data[FEATURES], data["y"]))
    data.loc[3, "b"] = np.nan
    data.to_parquet(tmp_path / "gap.parquet")
    gap = cluster.read.parquet(str(tmp_path / "gap.parquet"))
    without = data.drop(index=3)
    same(
        model().fit_source(gap, features=FEATURES, target="y"),
        model().fit(without[FEATURES], without["y"]),
    )
