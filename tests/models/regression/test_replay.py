"""Every estimator, replayed on neighbors: nothing goes around the mechanisms or moves too far."""

import numpy as np
import pytest

from discreet.core.relation import NeighboringRelation
from discreet.models.regression import ColumnScaling, PrivateLinearRegression
from discreet.models.regression.auto import AutoLinearRegression
from discreet.models.regression.ssp_and_adassp import shrink
from discreet.noise.random_source import seeded_rng
from discreet_studies.linear_regression.as_published import as_published
from tests.replay import Tape, furthest

DELTA = 1e-6
ROWS = 25
DECLARED = {"bounds": [(-1, 3)] * 2, "target_bounds": (-5, 5)}
MOMENTS = {
    "usual": {},
    "declared bounds": {"scaling": "bounds", "mapping": "ball"},
    "private scales": {"scaling": "private"},
    "declared scales": {"scaling": ColumnScaling(center=1.0, scale=0.5)},
    "rows of length one": {"mapping": "row", "scaling": ColumnScaling(center=1.0)},
    "box": {"mapping": "box"},
    "no intercept": {"fit_intercept": False, "mapping": "ball"},
    "no squares": {"squares_share": 0},
    "adassp": {"method": "adassp"},
    "ssp": {"method": "ssp"},
    "ridge": {"method": "ridge"},
    "a row replaced": {"relation": NeighboringRelation.REPLACE_ONE},
    "private scales, a row replaced": {
        "scaling": "private",
        "relation": NeighboringRelation.REPLACE_ONE,
    },
    "rho": {"epsilon": None, "delta": None, "rho": 0.02},
    "shrunken": {"method": shrink},
    "Wang's constants": {"method": "adassp", "constants": "wang", "scaling": "bounds"},
    "the thesis's constants": {"method": "adassp", "constants": "thesis", "scaling": "bounds"},
}
BEST = {
    "level": {"method": "level"},
    "gradient": {"method": "gradient"},
    "boosted": {"method": "boosted"},
    "auto": {},
    "boosted, a row replaced": {"method": "boosted", "relation": NeighboringRelation.REPLACE_ONE},
    "gradient, a row replaced": {"method": "gradient", "relation": NeighboringRelation.REPLACE_ONE},
}
OUTLIERS = (
    ((3.0, 3.0), 5.0),
    ((-1.0, 3.0), -5.0),
    ((1e9, -1e9), 1e9),
    ((1.0, 1.0), 0.0),
    ((-1e-300, 5e-324), -1e300),
)


def rows():
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 3, (ROWS, 2))
    return x, x @ [1.0, -1.0] + rng.normal(size=ROWS)


def neighbors(relation):
    """The table and others that differ in one row: added, removed or replaced."""
    x, y = rows()
    for outlier, target in OUTLIERS:
        if relation is NeighboringRelation.ADD_REMOVE:
            yield np.vstack((x, outlier)), np.append(y, target)
            yield np.vstack((outlier, x)), np.append(target, y)
        else:
            yield np.vstack((x[1:], outlier)), np.append(y[1:], target)
            yield np.vstack((outlier, x[1:])), np.append(target, y[1:])
    if relation is NeighboringRelation.ADD_REMOVE:
        yield x[1:], y[1:]


def published(value, seen=None):
    """Every number that an object holds, however deep; private parts must not be there."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value.astype(np.float64, copy=False).ravel().tolist()
    elif isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from published(inner, seen)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from published(inner, seen)
    elif hasattr(value, "__dict__"):
        yield from published(vars(value), seen)
    elif hasattr(value, "__slots__"):
        names = [n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ())]
        for name in names:
            if not name.startswith("__"):
                yield from published(getattr(value, name, None), seen)


def numbers(model):
    """What a fitted estimator shows: its attributes, and predictions."""
    held = {k: v for k, v in vars(model).items() if k not in ("rng", "account")}
    at = np.array([[0.0, 0.0], [2.5, -0.5], [100.0, -100.0]])[:, : model.n_features_in_]
    return [*published(held), model.predict(at).tolist()]


def audited(make, relation, *, seed=0, tables=None):
    """Fit once on the table, then on all neighbors with the same answers."""
    tape = Tape(seed=seed)
    first, calls = tape.run(lambda: make().fit(*rows()))
    worst = 0
    for x, y in tables or neighbors(relation):
        again, others = tape.run(lambda x=x, y=y: make().fit(x, y))
        assert numbers(again) == numbers(first)
        worst = max(worst, furthest(calls, others))
    return first, calls, worst


def paid(calls):
    """What the mechanisms that were used cost together."""
    first, *others = (call.mechanism.guarantee for call in calls)
    return sum(others, start=first)


@pytest.mark.filterwarnings("ignore:The noisy matrix is not positive definite")
@pytest.mark.parametrize("name", MOMENTS)
def test_regression_from_moments(name):
    how = {"epsilon": 1, "delta": DELTA, **DECLARED, **MOMENTS[name]}
    relation = how.get("relation", NeighboringRelation.ADD_REMOVE)

    # Planned once, from what is declared: no row is at hand.
    plan = PrivateLinearRegression(**how).plan(features=2)

    def make():
        made = PrivateLinearRegression(**how, rng=seeded_rng(3))
        made.plan = lambda **_: plan
        return made

    model, calls, worst = audited(make, relation)
    assert worst <= 1
    # Not far from tight: a replaced row is worst at an angle that no row here has.
    assert worst > (0.5 if relation is NeighboringRelation.ADD_REMOVE else 0.4)
    assert paid(calls).epsilon(DELTA) == pytest.approx(model.guarantee_.epsilon(DELTA))
    assert len(calls) == len(model.released_)


@pytest.mark.parametrize("name", BEST)
def test_regression_by_the_best_method(name):
    how = {"epsilon": 1, "delta": DELTA, "expected_rows": ROWS, **DECLARED, **BEST[name]}
    relation = how.get("relation", NeighboringRelation.ADD_REMOVE)

    def make():
        return AutoLinearRegression(**how, rng=seeded_rng(3))

    model, calls, worst = audited(make, relation)
    assert 0.2 < worst <= 1
    assert paid(calls).epsilon(DELTA) <= model.guarantee_.epsilon(DELTA) * (1 + 1e-9)
    assert len(calls) == len(model.released_)


def test_theil_sen_when_a_row_is_replaced():
    # Both tables are matched by the same random words: that is the coupling of the proof.
    x, y = rows()

    def make():
        return AutoLinearRegression(
            epsilon=1, delta=DELTA, expected_rows=ROWS, bounds=[(-1, 3)], target_bounds=(-5, 5),
            method="theil_sen", relation=NeighboringRelation.REPLACE_ONE, rng=seeded_rng(3),
        )  # fmt: skip

    tape = Tape()
    first, calls = tape.run(lambda: make().fit(x[:, :1], y))
    worst = 0
    for place in range(0, ROWS, 6):
        for outlier, target in OUTLIERS:
            other_x, other_y = x[:, :1].copy(), y.copy()
            other_x[place], other_y[place] = outlier[0], target
            again, others = tape.run(lambda a=other_x, b=other_y: make().fit(a, b))
            assert numbers(again) == numbers(first)
            worst = max(worst, furthest(calls, others))
    assert 0.2 < worst <= 1


# ── what must be found ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mapping", ["max", "row"])
def test_pipelines_as_published_are_found(mapping):
    x, y = rows()

    def fit(x, y):
        return as_published(x, y, epsilon=1.0, delta=DELTA, rng=seeded_rng(3), mapping=mapping)

    tape = Tape()
    first, calls = tape.run(fit, x, y)
    again, others = tape.run(fit, np.vstack((x, [1e3, 1e3])), np.append(y, 1e3))
    assert first.is_private is again.is_private is False
    assert "no DP guarantee" in first.statement
    # Sums move further than one row may move them, and the scales themselves are shown.
    assert furthest(calls, others) > 10
    assert first.scaling.radius != again.scaling.radius or mapping == "row"
    assert first.scaling.center.tolist() != again.scaling.center.tolist()


def test_a_path_around_the_mechanisms_is_found():
    class Leaking(PrivateLinearRegression):
        def fit(self, X, y):
            super().fit(X, y)
            self.largest_ = float(np.max(y))
            return self

    with pytest.raises(AssertionError):
        audited(
            lambda: Leaking(epsilon=1, delta=DELTA, rng=seeded_rng(3), **DECLARED),
            NeighboringRelation.ADD_REMOVE,
        )


def test_bounds_from_the_data_are_found():
    x, y = rows()

    def fit(x, y):
        wide = [(float(a), float(b)) for a, b in zip(x.min(axis=0), x.max(axis=0), strict=True)]
        model = PrivateLinearRegression(
            epsilon=1, delta=DELTA, bounds=wide, target_bounds=(-5, 5), rng=seeded_rng(3)
        )
        return model.fit(x, y)

    tape = Tape()
    _, calls = tape.run(fit, x, y)
    _, others = tape.run(fit, np.vstack((x, [1e3, 1e3])), np.append(y, 1.0))
    assert furthest(calls, others) > 10


def test_a_neighbor_that_is_none_is_found():
    x, y = rows()

    def make():
        return PrivateLinearRegression(epsilon=1, delta=DELTA, rng=seeded_rng(3), **DECLARED)

    many = [(np.vstack((x, np.tile([3.0, 3.0], (5, 1)))), np.append(y, [5.0] * 5))]
    _, _, worst = audited(make, NeighboringRelation.ADD_REMOVE, tables=many)
    assert worst > 10
