"""One strange row changes nothing but its own contribution: all estimators, exact pairs."""

import itertools
import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models import DeclaredColumns
from discreet.models._labels import class_places, declared_classes
from discreet.models._model_inputs import doubles, matrix, target_values
from discreet.models.dp_sgd import (
    Huber,
    Logistic,
    OutputPerturbationLogisticRegression,
    PersonalizedLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    laplace_descent,
    noisy_descent,
    output_perturbation,
)
from discreet.models.dp_sgd._output_perturbation import read_records
from discreet.models.dp_sgd.train import Batch, SlopeGrid
from discreet.models.regression import AutoLinearRegression, PrivateLinearRegression
from discreet.models.regression._row_sources import ArrayRows, first_rows
from discreet.noise.random_source import seeded_rng
from tests.models.strange_rows import ROWS, VALUES
from tests.replay import Tape, furthest

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
BOUNDS = [(-1.0, 1.0)] * 2
COLUMNS = DeclaredColumns(
    {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}, interactions=[("a", "b")], fill={"a": 0.5}
)
N = 24
X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
Y = X @ [0.5, -0.3]
STRANGE = (
    [(f"{name} in X", [value, 0.9], 0.4) for name, value in VALUES.items()]
    + [(f"{name} as row", row, 0.4) for name, row in ROWS.items()]
    + [(f"{name} in y", [0.7, -0.9], value) for name, value in VALUES.items()]
)
CASES = [pytest.param(row, target, id=name) for name, row, target in STRANGE]


@pytest.fixture(autouse=True)
def _no_warning():
    """A warning for one row is an output."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def linear(**changes: Any) -> PrivateLinearRegression:
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (-1, 1)}
    return PrivateLinearRegression(**{**given, **changes})


def auto(**changes: Any) -> AutoLinearRegression:
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (-1, 1)}
    return AutoLinearRegression(**{**given, "expected_rows": N, **changes})


MODELS = {
    "moments": lambda relation: linear(relation=relation),
    "private scaling": lambda relation: linear(relation=relation, scaling="private"),
    "projected rows": lambda relation: linear(relation=relation, scaling="bounds", mapping="ball"),
    "no intercept": lambda relation: linear(
        relation=relation, fit_intercept=False, mapping="box", scaling="bounds"
    ),
    "declared columns": lambda relation: linear(relation=relation, bounds=None, columns=COLUMNS),
    "adassp": lambda relation: linear(relation=relation, method="adassp"),
    "weighted": lambda relation: linear(relation=relation, mapping="weighted"),
    "level": lambda relation: auto(relation=relation, method="level"),
    "gradient": lambda relation: auto(relation=relation, method="gradient"),
    "boosted": lambda relation: auto(relation=relation, method="boosted"),
}


def published(model: Any) -> Any:
    moments = getattr(model, "moments_", None)
    rows = 0.0 if moments is None else moments.rows
    return model.coef_.tolist(), model.intercept_, rows


def run(name: str, relation: NeighboringRelation, x: list[Any], y: list[Any], tape: Tape) -> Any:
    def fit() -> Any:
        return published(MODELS[name](relation).fit(x, y))

    return tape.run(fit)


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("name", MODELS)
def test_no_strange_row_moves_more_than_a_regression_accounts_for(name, relation):
    """With the answers of one run, what the other run hands to each mechanism is near enough."""
    tape = Tape(seed=1)
    x, y = X.tolist(), Y.tolist()
    if relation is ADD:
        said, calls = run(name, relation, x, y, tape)
    else:
        # The row that is replaced is as far out as rows get.
        said, calls = run(name, relation, [*x, [1.0, -1.0]], [*y, 1.0], tape)
    for case, row, target in STRANGE:
        other, others = run(name, relation, [*x, row], [*y, target], tape)
        assert other == said, case
        assert furthest(calls, others) <= 1, case


@pytest.mark.parametrize(("row", "target"), CASES)
def test_strange_rows_leave_the_codes_of_all_others(row, target):
    alone = ArrayRows(X, Y[:, None])
    model = linear()
    captured = {}

    def keep(self, rows, *, names):
        captured["rows"] = rows.used()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PrivateLinearRegression, "_fit_rows", keep)
        model.fit([*X.tolist(), row], [*Y.tolist(), target])
    found = captured["rows"]
    assert len(found.x) in (N, N + 1)
    assert np.array_equal(found.x[:N], alone.x)
    assert np.array_equal(found.y[:N], alone.y)


def test_theil_sen_takes_what_comes():
    for case, row, target in STRANGE:
        one = row[:1] if isinstance(row, list) else row
        fitted = auto(method="theil_sen", bounds=BOUNDS[:1], rng=seeded_rng(1)).fit(
            [*X[:, :1].tolist(), one], [*Y.tolist(), target]
        )
        assert np.isfinite(fitted.coef_).all(), case


LABELS = (X[:, 0] > 0).astype(int).tolist()
CLASSIFIERS = {
    "descent": lambda **given: PrivateLogisticRegression(
        epsilon=1, delta=1e-6, steps=3, public_rows=N, **given
    ),
    "laplace": lambda **given: OutputPerturbationLogisticRegression(
        epsilon=1, steps=3, public_rows=N, **given
    ),
    "output": lambda **given: OutputPerturbationLogisticRegression(
        epsilon=1, method="output", public_rows=N, **given
    ),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_misfit_has_no_gradient_and_others_keep_theirs(kind):
    """Rows in steps and targets are all that a descent sees: exactly one row of them may change."""
    for case, row, label in STRANGE:
        model = CLASSIFIERS[kind](bounds=BOUNDS, classes=(0, 1), rng=seeded_rng(1))
        seen, original = {}, type(model)._steps

        def steps(self, table, targets, mapped, seen=seen, original=original):
            seen["steps"], seen["targets"] = original(self, table, targets, mapped), targets
            return seen["steps"]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(model), "_steps", steps)
            model.fit(X.tolist(), LABELS)
            before = seen["steps"].copy(), seen["targets"].copy()
            model.fit([*X.tolist(), row], [*LABELS, label])
        assert (seen["steps"][:N] == before[0]).all(), case
        assert (seen["targets"][:N] == before[1]).all(), case
        target = seen["targets"][N]
        if math.isnan(target):
            assert not seen["steps"][N].any(), case
        else:
            assert target in (0, 1), case


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateHuberRegressor])
def test_regressors_by_descent_take_what_comes(kind):
    for case, row, target in STRANGE:
        given = {
            "epsilon": 1,
            "delta": 1e-6,
            "steps": 2,
            "bounds": BOUNDS,
            "target_bounds": (-1, 1),
        }
        model = kind(**given, public_rows=N, rng=seeded_rng(1))
        strange = model.fit([*X.tolist(), row], [*Y.tolist(), target]).theta_
        assert np.isfinite(strange).all(), case


def test_the_longest_contribution_is_that_of_a_record():
    """In whole numbers: the sums of neighbors differ by at most the sensitivity of the noise."""
    grid = SlopeGrid(clip=1.0)
    sums = {}
    for case, row, label in [("none", None, 0), *STRANGE]:
        model = PrivateLogisticRegression(
            epsilon=1,
            delta=1e-6,
            steps=1,
            clip=1.0,
            rate=1,
            public_rows=N,
            bounds=BOUNDS,
            classes=(0, 1),
            rng=seeded_rng(1),
        )

        def total(self, theta, chosen, original=Batch.sum, case=case):
            sums[case] = original(self, np.array([3.0, -2.0, 5.0]), None)
            return original(self, theta, chosen)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Batch, "sum", total)
            model.fit([*X.tolist(), row], [*LABELS, label])
    for case, found in sums.items():
        moved = sum(int(d) ** 2 for d in found - sums["none"])
        assert moved <= grid.sensitivity**2, case
    assert any((found != sums["none"]).any() for found in sums.values())


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
def test_mechanisms_that_take_records_read_them_one_by_one(relation):
    """`read_records`: others stay bit by bit, a misfit is a row of zeros."""
    rows = None if relation is ADD else N + 1
    for objective in (Logistic(l2=0.1), Huber(l2=0.1)):
        plain, targets = read_records(objective, X, np.array(LABELS), features=2, row_norm=1.0)
        for case, row, label in STRANGE:
            found, others = read_records(
                objective, [*X.tolist(), row], [*LABELS, label], features=2, row_norm=1.0, rows=rows
            )
            assert np.array_equal(found[:N], plain), case
            assert np.array_equal(others[:N], targets), case
            assert np.linalg.norm(found[N]) <= 1, case
            assert np.isfinite(others[N]), case


def test_mechanisms_release_whatever_comes():
    given = {"features": 2, "public_rows": N + 1, "row_norm": 1.0}
    mechanisms = [
        laplace_descent(Logistic(), epsilon=1, steps=2, **given),
        output_perturbation(Logistic(l2=0.1), epsilon=1, delta=0, relation=ADD, **given),
        noisy_descent(Logistic(l2=0.1), epsilon=1, delta=1e-6, steps=2, **given),
    ]
    for (case, row, label), mechanism in itertools.product(STRANGE, mechanisms):
        found = mechanism.release([*X.tolist(), row], [*LABELS, label], rng=seeded_rng(1))
        assert np.isfinite(found).all(), case


# ── labels ───────────────────────────────────────────────────────────────────


def test_large_labels_stay_apart_whatever_another_label_is():
    a, b = 2**60, 2**60 + 1
    classes = declared_classes((a, b))
    y = [a, b, a]
    for last in (b, float(b), "x", None, math.nan, Decimal(b), np.uint64(b), 10**5000):
        held = np.empty(4, dtype=object)
        held[:] = [*y, last]
        assert class_places(held, classes)[:3].tolist() == [0, 1, 0]
    assert class_places(np.array(y), classes).tolist() == [0, 1, 0]
    # A double is the number that it is: 2**60, whatever it was meant to be.
    assert np.array_equal(
        class_places(np.array([2.0**60, 1.0]), classes), [0, np.nan], equal_nan=True
    )


def test_a_classifier_does_not_notice_one_double_among_large_labels():
    a, b = 2**60, 2**60 + 1
    x = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    y = [b if v > 0 else a for v in x[:, 0]]
    found = []
    for last in (b, float(b)):
        model = PrivateLogisticRegression(
            epsilon=20, delta=1e-6, bounds=(-1, 1), classes=(a, b), rng=seeded_rng(1)
        )
        found.append(model.fit(np.vstack([x, [[0.0]]]), [*y, last]).score(x, y))
    assert min(found) > 0.9


@pytest.mark.parametrize(
    "hold",
    [
        lambda rows: pl.Series(rows, dtype=pl.Int64),
        lambda rows: pa.array(rows, pa.int64()),
        lambda rows: pd.Series(rows, dtype="Int64"),
        lambda rows: pd.Series(rows, dtype="int64[pyarrow]"),
        lambda rows: pa.array(rows, pa.int64()).dictionary_encode(),
        lambda rows: pd.Series(rows, dtype="Int64").astype("category"),
    ],
)
def test_a_missing_label_does_not_merge_large_ones(hold):
    """NumPy has no missing integer: one of them made doubles of everybody's labels."""
    a, b = 2**60, 2**60 + 1
    for last in ([], [None]):
        read = target_values(hold([a, b] * 3 + last))
        assert class_places(read, declared_classes((a, b)))[:6].tolist() == [0, 1] * 3


def test_labels_that_pandas_made_doubles_are_refused_by_their_type():
    a, b = 2**60, 2**60 + 1
    x = np.linspace(-1, 1, 40)[:, None]
    model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(a, b), steps=2)
    labels = [b if v > 0 else a for v in x[:, 0]]
    model.fit(x, pd.Series(labels))
    with pytest.raises(InvalidArgument, match="Int64"):
        model.fit(x, pd.Series([*labels[:-1], None]))


@pytest.mark.parametrize(
    "classes", [(2**60 + 1, 0.5), (1, "1"), ("a", "a\0"), (0, None), (0, math.nan), (b"a", "a")]
)
def test_classes_that_an_array_would_merge_are_refused(classes):
    with pytest.raises(InvalidArgument, match="classes"):
        declared_classes(classes)


def test_labels_of_another_type_are_refused_by_the_type_of_the_array():
    for y, classes in ((np.array(["a", "b"] * 12), (0, 1)), (np.array(LABELS), ("a", "b"))):
        with pytest.raises(InvalidArgument, match="declared classes"):
            CLASSIFIERS["descent"](bounds=BOUNDS, classes=classes).fit(X, y)


# ── containers ───────────────────────────────────────────────────────────────


def frames(x: np.ndarray) -> dict[str, Any]:
    named = {"a": x[:, 0], "b": x[:, 1]}
    pandas = pd.DataFrame(named)
    return {
        "list": x.tolist(),
        "list of arrays": list(x),
        "tuple": tuple(map(tuple, x)),
        "objects": x.astype(object),
        "long doubles": x.astype(np.longdouble),
        "pandas": pandas,
        "pandas objects": pandas.astype(object),
        "pandas nullable": pandas.astype("Float64"),
        "pandas arrow": pandas.astype("double[pyarrow]"),
        "polars": pl.DataFrame(named),
        "arrow": pa.table(named),
        "repeated names": pandas.set_axis(["a", "a"], axis=1),
    }


def test_the_container_does_not_matter():
    expected = linear(rng=seeded_rng(1)).fit(X, Y).coef_
    for case, x in frames(X).items():
        assert np.array_equal(linear(rng=seeded_rng(1)).fit(x, Y).coef_, expected), case
    targets = frames(np.column_stack([Y, Y]))
    for case in ("pandas", "pandas objects", "pandas nullable", "pandas arrow", "polars", "arrow"):
        column = targets[case]["a"]
        assert np.array_equal(linear(rng=seeded_rng(1)).fit(X, column).coef_, expected), case
    assert np.array_equal(linear(rng=seeded_rng(1)).fit(X, Y.tolist()).coef_, expected)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_gap_in_a_column_is_a_gap_of_its_row(missing):
    expected = linear(rng=seeded_rng(1)).fit(X[:-1], Y[:-1]).coef_
    a = [*X[:-1, 0].tolist(), missing]
    for frame in (
        pd.DataFrame({"a": a, "b": X[:, 1]}),
        pd.DataFrame({"a": pd.array(a, dtype="Float64"), "b": X[:, 1]}),
        pl.DataFrame({"a": a, "b": X[:, 1]}, strict=False),
        pa.table({"a": pa.array(a, from_pandas=True), "b": X[:, 1]}),
    ):
        assert np.array_equal(linear(rng=seeded_rng(1)).fit(frame, Y).coef_, expected)


def test_a_gap_among_whole_numbers_does_not_change_the_others():
    whole = [2**60 + 1, 2**60 - 1, 3]
    for last in (4, None):
        frame = pl.DataFrame({"a": [*whole, last]})
        pandas = pd.DataFrame({"a": pd.array([*whole, last], dtype="Int64")})
        for x in (frame, pandas, pa.table({"a": [*whole, last]})):
            assert doubles(matrix("X", x))[:3, 0].tolist() == [float(v) for v in whole]


@pytest.mark.parametrize(
    "x",
    [
        pd.DataFrame({"a": pd.to_timedelta([1] * N, unit="s"), "b": 0.5}),
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * N, utc=True), "b": 0.5}),
        pd.DataFrame({"a": ["x"] * N, "b": 0.5}).astype({"a": "string"}),
        pl.DataFrame({"a": ["x"] * N, "b": 0.5}),
        pl.DataFrame({"a": np.full(N, 1, "m8[s]").astype("m8[ms]"), "b": np.zeros(N)}),
        pa.table({"a": ["x"] * N, "b": [0.5] * N}),
        np.full((N, 2), "x"),
        np.full((N, 2), 1j),
        np.full((N, 2), np.timedelta64(1, "s")),
        np.full((N, 2), b"x"),
        {"a": 1},
        {1, 2},
        iter([[1, 2]]),
    ],
    ids=lambda x: type(x).__module__.split(".")[0],
)
def test_types_that_hold_no_numbers_are_refused_for_all_estimators(x):
    for model in (linear(), auto(), CLASSIFIERS["descent"](bounds=BOUNDS, classes=(0, 1))):
        with pytest.raises(InvalidArgument, match="X"):
            model.fit(x, np.array(LABELS))


def test_a_list_needs_declared_columns():
    for model in (linear(bounds=(-1, 1)), auto(bounds=(-1, 1))):
        with pytest.raises(InvalidArgument, match="one pair each"):
            model.fit(X.tolist(), Y)


# ── units and levels ─────────────────────────────────────────────────────────


def test_one_strange_unit_moves_nobody_else():
    units = ["a", "b", "a", 7, "7", 2**60, 2**60 + 1, b"a", "b"]
    plain = first_rows(units, 1).tolist()
    assert plain == [True, True, False, True, True, True, True, True, False]
    for case, value in VALUES.items():
        assert first_rows([*units, value], 1).tolist()[:-1] == plain, case
        fitted = linear(rng=seeded_rng(1)).fit(X[:10], Y[:10], units=[*units, value])
        assert np.isfinite(fitted.coef_).all()


def test_one_strange_level_moves_nobody_else():
    def fitted(levels: list[object], rows: int) -> Any:
        model = PersonalizedLogisticRegression(
            limits={"strict": discreet.approx_dp(0.5, 1e-6), "open": discreet.approx_dp(2, 1e-6)},
            people={"strict": 12, "open": 12},
            bounds=BOUNDS,
            classes=(0, 1),
            steps=2,
            method="clipping",
            rate=1,
            rng=seeded_rng(1),
        )
        x = np.vstack([X, [[0.9, -0.9]]])[:rows]
        return model.fit(x, [*LABELS, 1][:rows], privacy_levels=levels).theta_

    levels: list[object] = ["strict", "open"] * 12
    alone = fitted(levels, N)
    for case, value in VALUES.items():
        assert (fitted([*levels, value], N + 1) == alone).all(), case
    assert not (fitted([*levels, "open"], N + 1) == alone).all()
