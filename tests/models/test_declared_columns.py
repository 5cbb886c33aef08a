"""Declared columns: each row is encoded by itself, from constants; fits read the same numbers."""

import math
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.models import DeclaredColumns, PrivateLinearRegression
from discreet.models.regression._row_mapping import WEIGHTED_RADIUS
from discreet.noise.random_source import seeded_rng
from tests.models.strange_rows import ROWS, VALUES

DECLARED = DeclaredColumns(
    {"age": (0, 100), "place": ["a", "b", "c"], "ill": [False, True]},
    interactions=[("age", "ill"), ("place", "ill")],
)


def by_hand(age, place, ill):
    """What a row is, written out."""
    b, c = float(place == "b"), float(place == "c")
    age = min(max(age, 0.0), 100.0)
    return [age, b, c, float(ill), age * ill, b * ill, c * ill]


def test_rows_are_encoded_as_written_out():
    rows = [(age, place, ill) for age in (-3, 0, 41.5, 900) for place in "abc" for ill in (0, 1)]
    expected = [by_hand(*row) for row in rows]
    lists = [[age, place, bool(ill)] for age, place, ill in rows]
    assert DECLARED.encode(lists).tolist() == expected
    frame = {
        "more": [0] * len(rows),
        "ill": [bool(ill) for *_, ill in rows],
        "place": [place for _, place, _ in rows],
        "age": [float(age) for age, *_ in rows],
    }
    for made in (pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame)):
        assert DECLARED.encode(made).tolist() == expected
    names = ("age", "place=b", "place=c", "ill=True")
    crossed = ("age:ill=True", "place=b:ill=True", "place=c:ill=True")
    assert DECLARED.terms == names + crossed
    found, (lower, upper) = np.array(expected), np.array(DECLARED.bounds).T
    assert ((lower <= found) & (found <= upper)).all()


def test_missing_and_undeclared_values_leave_the_row_out_unless_they_are_filled():
    rows = [[None, "a", True], [30, "z", True], [30, None, True], [30, "b", None], [30, "b"]]
    assert np.isnan(DECLARED.encode(rows)).any(axis=1).all()
    filled = DeclaredColumns(DECLARED.columns, fill={"age": 40, "place": "c", "ill": False})
    assert filled.encode(rows)[:4].tolist() == [
        [40, 0, 0, 1],
        [30, 0, 1, 1],
        [30, 0, 1, 1],
        [30, 1, 0, 0],
    ]


@pytest.mark.parametrize("strange", [*ROWS.values(), *([v, "b", True] for v in VALUES.values())])
def test_a_strange_row_changes_no_other(strange):
    usual = [[30, "b", True], [40, "a", False]]
    assert DECLARED.encode([*usual, strange])[:2].tolist() == DECLARED.encode(usual).tolist()


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ({}, {}, "at least one column"),
        ({"a": ["x"]}, {}, "two different levels"),
        ({"a": ["x", "x"]}, {}, "two different levels"),
        ({"a": ["x", None]}, {}, "two different levels"),
        ({"a": (3, 3)}, {}, "lower below upper"),
        ({"a": "xy"}, {}, "tuple"),
        ({"a": (0, 1)}, {"interactions": [("a", "a")]}, "interactions"),
        ({"a": (0, 1)}, {"interactions": [("a", "b")]}, "interactions"),
        ({"a": (0, 1)}, {"fill": {"b": 1}}, "none of the columns"),
        ({"a": (0, 1)}, {"fill": {"a": math.nan}}, "fill"),
        ({"a": ["x", "y"]}, {"fill": {"a": "z"}}, "one of the levels"),
    ],
)
def test_declarations_are_checked(columns, more, words):
    with pytest.raises(InvalidArgument, match=words):
        DeclaredColumns(columns, **more)


def test_rows_of_another_shape_are_refused():
    with pytest.raises(InvalidArgument, match="must have the columns"):
        DECLARED.encode(pd.DataFrame({"age": [1.0], "place": ["a"]}))
    with pytest.raises(InvalidArgument, match="with the columns"):
        DECLARED.encode(np.zeros((3, 2)))


def people(rows=20_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, rows),
            "place": rng.choice(list("abc"), rows, p=[0.6, 0.35, 0.05]),
            "ill": rng.random(rows) < 0.2,
        }
    )
    effect = frame["place"].map({"a": 0.0, "b": 1.0, "c": -2.0}).to_numpy()
    target = 5 + 0.1 * frame["age"] + effect + frame["ill"] * (1 + 0.05 * frame["age"])
    return frame, target.to_numpy() + rng.normal(0, 2, rows)


def fitted(columns, frame, y, **how):
    model = PrivateLinearRegression(
        epsilon=2, delta=1e-6, columns=columns, target_bounds=(-20, 60), rng=seeded_rng(3), **how
    )
    return model.fit(frame, y)


def test_a_fit_of_declared_columns_is_that_of_their_encoding():
    frame, y = people()
    columns = DeclaredColumns(DECLARED.columns, interactions=[("age", "ill")])
    model = fitted(columns, frame, y)
    made = model.intervals(confidence=0.9999)
    truth = [0.1, 1.0, -2.0, 1.0, 0.05]
    assert ((made.low[0] < truth) & (truth < made.high[0])).all()
    assert made.slope_std.max() < 0.6
    assert [row["term"] for row in model.summary().rows()] == ["intercept", *columns.terms]
    assert model.n_features_in_ == 3
    assert model.predict(frame[:5]) == pytest.approx(
        model.coef_ @ columns.encode(frame[:5]).T + model.intercept_
    )
    plain = PrivateLinearRegression(
        epsilon=2,
        delta=1e-6,
        bounds=columns.bounds,
        radius=WEIGHTED_RADIUS * math.sqrt(columns.dimensions / len(columns.terms)),
        target_bounds=(-20, 60),
        rng=seeded_rng(3),
    ).fit(columns.encode(frame), y)
    assert plain.coef_ == pytest.approx(model.coef_)
    with pytest.raises(OutOfDomain):
        model.predict([[30.0, "nowhere", True]])
    with pytest.raises(InvalidArgument, match="not both"):
        fitted(columns, frame, y, bounds=(0, 1))


def test_one_level_at_a_time_costs_less_than_as_many_columns():
    """The 0/1 columns of a category share one radius: the standard errors are smaller."""
    rng = np.random.default_rng(5)
    places = rng.integers(0, 20, 20_000)
    columns = DeclaredColumns({"place": list(range(20))})
    y = places % 3 + rng.normal(size=len(places))
    shared = fitted(columns, places[:, None].astype(float), y)
    apart = fitted(None, columns.encode(places[:, None].astype(float)), y, bounds=columns.bounds)
    ratio = shared.intervals().slope_std / apart.intervals().slope_std
    assert ratio.mean() < 0.85
    exact = np.linalg.lstsq(
        np.column_stack((np.ones(len(y)), columns.encode(places[:, None].astype(float)))), y
    )[0][1:]
    off = (shared.coef_ - exact) / shared.intervals().slope_std[0]
    assert np.abs(off).max() < 5


def test_columns_of_a_file_with_levels_that_are_numbers(tmp_path):
    frame, y = people(4000)
    path = tmp_path / "people.parquet"
    codes = frame["place"].map({"a": 0, "b": 1, "c": 2})
    frame.assign(place=codes, ill=frame["ill"].astype(int), y=y).to_parquet(path)
    columns = DeclaredColumns({"age": (0, 100), "place": [0, 1, 2], "ill": [0, 1]})
    how = {"epsilon": 2, "delta": 1e-6, "columns": columns, "target_bounds": (-20, 60)}
    of_file = PrivateLinearRegression(**how, rng=seeded_rng(3)).fit_source(path, target="y")
    given = frame.assign(place=codes, ill=frame["ill"].astype(int))
    in_memory = PrivateLinearRegression(**how, rng=seeded_rng(3)).fit(given, y)
    assert of_file.coef_ == pytest.approx(in_memory.coef_)
    with pytest.raises(InvalidArgument, match="leave them out"):
        PrivateLinearRegression(**how).fit_source(path, features=["age"], target="y")


def visits(extra=0):
    """Two rows a person; person 7 has ``extra`` more, far out; somebody has no name."""
    frame, y = people(3000)
    frame = frame.assign(y=y, who=[f"p{place // 2}" for place in range(len(frame))])
    more = pd.DataFrame(
        {"age": 90.0, "place": "c", "ill": True, "y": 60.0, "who": "p7"}, range(extra)
    )
    return pd.concat([frame, more, frame[:1].assign(who=None)], ignore_index=True)


def sources(frame, folder):
    """The same rows where they may be."""
    path = folder / "visits.parquet"
    frame.to_parquet(path)
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "file": path,
        "relation": duckdb.from_arrow(pa.Table.from_pandas(frame)),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "file", "relation"])
def test_of_each_unit_only_so_many_rows_are_read(kind, tmp_path):
    """Five hundred rows of one person move the sums as far as two."""
    columns = DeclaredColumns(DECLARED.columns)
    how = {"epsilon": 1, "delta": 1e-6, "columns": columns, "target_bounds": (-20, 60)}

    def fit(extra):
        model = PrivateLinearRegression(**how, max_rows_per_unit=2, rng=seeded_rng(3))
        source = sources(visits(extra), tmp_path)[kind]
        return model.fit_source(source, target="y", privacy_unit="who")

    usual, crowded = fit(0), fit(500)
    # The rows of that person that count are others; all that moves are two rows of 3000.
    assert crowded.moments_.rows == pytest.approx(usual.moments_.rows, abs=25)
    assert crowded.coef_ == pytest.approx(usual.coef_, abs=0.3)
    frame = visits()
    in_memory = PrivateLinearRegression(**how, max_rows_per_unit=2, rng=seeded_rng(3)).fit(
        frame, frame["y"], units=frame["who"]
    )
    assert usual.coef_ == pytest.approx(in_memory.coef_)


def test_units_are_checked_before_anything_is_read():
    columns = DeclaredColumns(DECLARED.columns)
    model = PrivateLinearRegression(
        epsilon=1, delta=1e-6, columns=columns, target_bounds=(-20, 60), max_rows_per_unit=2
    )
    with pytest.raises(InvalidArgument, match="not in the source"):
        model.fit_source(visits(), target="y", privacy_unit="nobody")
    doubles = visits().assign(who=1.5)
    with pytest.raises(InvalidArgument, match="doubles"):
        model.fit_source(doubles, target="y", privacy_unit="who")


def test_where_rows_are_public_a_unit_counts_for_as_many_as_are_used():
    """The rows that a unit has beyond its limit are nobody's business."""
    x, y = np.linspace(0, 1, 300)[:, None], np.linspace(0, 1, 300)
    model = PrivateLinearRegression(
        epsilon=1,
        delta=1e-6,
        bounds=(0, 1),
        target_bounds=(0, 1),
        scaling="bounds",
        mapping="ball",
        relation=NeighboringRelation.REPLACE_ONE,
        rng=seeded_rng(1),
    )
    units = np.minimum(np.arange(300), 250)
    assert model.fit(x, y, units=units).moments_.rows == 251


CODE_BOOK = {"age": (18, 90), "ward": ["a", "b", "c"], "trained": [0, 1], "wage": (0, 9)}


def test_a_formula_chooses_columns_and_products() -> None:
    found = DeclaredColumns.from_formula(
        "works ~ C(ward) + age * trained + age:ward", CODE_BOOK, fill={"age": 40, "wage": 1}
    )
    wanted = {name: CODE_BOOK[name] for name in ("ward", "age", "trained")}
    pairs = [("age", "trained"), ("age", "ward")]
    assert found == DeclaredColumns(wanted, interactions=pairs, fill={"age": 40})
    assert DeclaredColumns.from_formula("age", CODE_BOOK).terms == ("age",)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("age + np.log(wage)", "terms are a column"),
        ("age - 1", "terms are a column"),
        ("age + height", "'height', which columns does not declare"),
        ("C(age)", "needs a list of levels"),
        ("age + age:ward", "must be a term by itself"),
        ("age + ward + age:ward + ward:age", "twice"),
        ("age + age", "names 'age' twice"),
        ("a ~ b ~ c", "must be a text"),
        ("age + ", "terms are a column"),
        ("age + trained + age:age", "or of one"),
    ],
)
def test_what_a_formula_cannot_say_is_refused(formula: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        DeclaredColumns.from_formula(formula, CODE_BOOK)
