"""One strange record changes the votes of its owner's teachers, and nothing else."""

import random
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet.core.errors import InvalidArgument
from discreet.models.pate import PATEClassifier, assign_upsampling, count_votes
from discreet.models.pate._records import read_features
from tests.models.strange_rows import ROWS, VALUES

TEACHERS = assign_upsampling(8, copies={"all": 1})
N = 64
X = np.random.default_rng(0).normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
Z = np.random.default_rng(1).normal(size=(40, 2))
OWNERS = list(range(N))
LEVELS = ["all"] * N


class Moody(ClassifierMixin, BaseEstimator):
    """Fails, warns and draws from global generators, all as its records say."""

    def __init__(self, mood: str = "fail", random_state: object = None) -> None:
        self.mood = mood
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "Moody":
        self.classes_ = np.unique(y)
        upset = bool((np.asarray(X, dtype=float) > 1e6).any())
        if upset and self.mood == "fail":
            raise ValueError(f"secret {X}")
        if upset and self.mood == "exit":
            raise SystemExit("secret")
        if upset and self.mood == "warn":
            warnings.warn(f"secret {X}", stacklevel=1)
        if upset and self.mood == "draw":
            np.random.random(5)  # noqa: NPY002
            random.random()
        self.mark_ = int(np.random.randint(1000) + 1000 * random.randrange(1000))  # noqa: NPY002
        self.upset_ = upset
        return self

    def predict(self, X: Any) -> Any:
        if self.upset_ and self.mood == "predict":
            return ["secret"] * 3
        if self.upset_ and self.mood == "classes":
            return np.full(len(X), 7.5)
        return (np.arange(len(X)) + self.mark_) // 3 % 2


def taught(x: Any, y: Any, owners: Any, levels: Any = None, **changes: Any) -> PATEClassifier:
    given: dict[str, Any] = {"estimator": GaussianNB(), "columns": 2, **changes}
    levels = ["all"] * len(y) if levels is None else levels
    made = PATEClassifier(given.pop("estimator"), assignment=TEACHERS, classes=2, **given)
    return made.fit(x, y, owners=owners, privacy_levels=levels)


def moved(one: PATEClassifier, other: PATEClassifier, items: Any = Z) -> list[int]:
    """Which teachers say something else; and what that moves is within the share."""
    before, after = one.votes(items), other.votes(items)
    counts = [count_votes(votes, TEACHERS, classes=2) for votes in (before, after)]
    # A moved vote leaves one class and joins another.
    assert (np.abs(counts[0] - counts[1]).max(axis=1) <= TEACHERS.shares["all"]).all()
    return np.flatnonzero((before != after).any(axis=0)).tolist()


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def plain() -> PATEClassifier:
    return taught(X.tolist(), Y.tolist(), OWNERS)


def own(owner: object) -> list[int]:
    return [place for place, rows in enumerate(TEACHERS.rows([owner], ["all"])) if len(rows)]


@pytest.mark.parametrize("row", [*ROWS.values(), *([v, 3.0] for v in VALUES.values())])
def test_a_strange_record_moves_its_own_teacher_alone(plain, row):
    found = taught([*X.tolist(), row], [*Y.tolist(), 0], [*OWNERS, "new"])
    assert set(moved(plain, found)) <= set(own("new"))


def test_a_strange_label_owner_or_level_moves_its_own_teacher_alone(plain):
    for case, value in VALUES.items():
        label = taught([*X.tolist(), [9.0, 9.0]], [*Y.tolist(), value], [*OWNERS, "new"])
        assert set(moved(plain, label)) <= set(own("new")), case
        owner = taught([*X.tolist(), [9.0, 9.0]], [*Y.tolist(), 0], [*OWNERS, value])
        assert set(moved(plain, owner)) <= set(own(value)), case
        level = taught(
            [*X.tolist(), [9.0, 9.0]], [*Y.tolist(), 0], [*OWNERS, "new"], [*LEVELS, value]
        )
        assert moved(plain, level) == [], case
    assert moved(plain, taught([*X.tolist(), [9.0, 9.0]], [*Y.tolist(), 0], [*OWNERS, "new"]))


def test_an_owner_of_two_levels_takes_no_part():
    both = assign_upsampling(8, copies={"a": 1, "b": 2})
    rows = both.rows(["x", "y", "x", "y"], ["a", "a", "b", "odd"])
    assert sorted(np.concatenate(rows).tolist()) == [1]
    # Another type is another person.
    rows = both.rows([7, "7"], ["a", "b"])
    assert sorted(np.concatenate(rows).tolist()) == [0, 1, 1]


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3),
        SGDClassifier(max_iter=3),
        make_pipeline(FunctionTransformer(), RandomForestClassifier(3)),
        Moody("draw"),
    ],
    ids=["forest", "sgd", "pipeline", "global"],
)
def test_teachers_do_not_share_random_numbers(estimator):
    """One label more makes a teacher of a single class train, and draw."""
    mine = TEACHERS.rows(OWNERS, LEVELS)[0]
    y = Y.copy()
    y[mine] = 0
    other = y.copy()
    other[mine[0]] = 1
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    one = taught(X, y, OWNERS, estimator=estimator)
    state = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    two = taught(X, other, OWNERS, estimator=estimator)
    assert set(moved(one, two)) <= {0}
    # Neither did they draw from the numbers of whoever called them.
    assert state == (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002


@pytest.mark.parametrize("mood", ["fail", "exit", "warn", "draw", "predict", "classes"])
def test_what_a_teacher_does_stays_with_it(mood):
    one = taught(X, Y, OWNERS, estimator=Moody(mood))
    two = taught(np.vstack([X, [[1e7, 0]]]), [*Y, 1], [*OWNERS, "new"], estimator=Moody(mood))
    assert set(moved(one, two)) <= set(own("new"))
    assert one.failed_teachers() == 0
    assert two.failed_teachers() == (mood in ("fail", "exit"))
    assert "secret" not in repr(two)


def test_other_seeds_are_other_teachers():
    one, two, same = (taught(X, Y, OWNERS, estimator=Moody(), seed=seed) for seed in (0, 1, 0))
    assert moved(one, same) == []
    assert (one.votes(Z) != two.votes(Z)).any()


def by_type(x: Any) -> Any:
    return x / 255.0 if x.dtype == np.uint8 else x


@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
def test_no_record_sets_the_type_for_all(dtype):
    pixels = np.random.default_rng(0).integers(0, 256, (N, 8)).astype(np.uint8)
    y = (pixels[:, 0] > 127) * 1
    pipe = make_pipeline(FunctionTransformer(by_type), KNeighborsClassifier(1))
    given = {"estimator": pipe, "columns": 8, "dtype": dtype}
    one = taught(list(pixels), y, OWNERS, **given)
    two = taught([*pixels[:-1], pixels[-1].astype(float)], y, OWNERS, **given)
    assert moved(one, two, pixels[:20]) == []
    assert {teacher.steps[1][1]._fit_X.dtype for teacher in one.estimators_} == {
        np.dtype(np.float64)
    }
    as_array = taught(pixels, y, OWNERS, **given)
    assert moved(one, as_array, pixels[:20]) == []


def test_whole_types_take_the_nearest_number():
    given = [[300.0, -1], [2**70, 0.9], [float("nan"), 1], ["x", 1], [-(2**70), True]]
    for dtype, first in ((np.uint8, [255, 255, 0]), (np.int64, [300, 2**63 - 1024, -(2**63)])):
        found, fits = read_features(given, np.dtype(dtype), columns=2, missing=False)
        assert found[[0, 1, 4], 0].tolist() == first
        assert fits.tolist() == [True, True, False, False, True]
    found, fits = read_features(given, np.dtype(np.float32), columns=2, missing=True)
    assert fits.tolist() == [True, True, True, True, True]
    whole = np.array([[2**63 + 5]], dtype=np.uint64)
    assert read_features(whole, np.dtype(np.int64), columns=None, missing=False)[0] == 2**63 - 1


def test_missing_values_stay_where_the_estimator_takes_them():
    trees = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=1)
    x = np.where(np.arange(N)[:, None] % 5 == 0, np.nan, X)
    kept = taught(x, Y, OWNERS, estimator=trees)
    left = taught(x, Y, OWNERS, estimator=LogisticRegression())
    assert kept.failed_teachers() == left.failed_teachers() == 0


def test_texts_and_objects_are_read_one_by_one():
    words = ["a good day" if one else "bad weather" for one in Y]
    pipe = make_pipeline(CountVectorizer(), MultinomialNB())
    for dtype in (str, object):
        given = {"estimator": pipe, "dtype": dtype, "columns": None}
        one = taught(words, Y, OWNERS, **given)
        items = ["good day", "bad weather"]
        assert (one.votes(items).mean(axis=1) == [1, 0]).all()
        for case, value in VALUES.items():
            two = taught([*words, value], [*Y, 0], [*OWNERS, "new"], **given)
            assert set(moved(one, two, items)) <= set(own("new")), case


def test_frames_are_records():
    one = taught(X, Y, OWNERS)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        for objects in (frame, frame.astype(object) if hasattr(frame, "iloc") else frame):
            assert moved(one, taught(objects, Y, pd.Series(OWNERS))) == []


def test_what_is_refused_is_public():
    with pytest.raises(InvalidArgument, match="one pair each|array"):
        taught(X.tolist(), Y, OWNERS, columns=None)
    with pytest.raises(InvalidArgument, match="text"):
        taught(X.astype(str), Y, OWNERS)
    with pytest.raises(InvalidArgument, match="not text"):
        taught(X, Y.astype(str), OWNERS)
    for dtype in (complex, "datetime64[s]", "no type"):
        with pytest.raises(InvalidArgument, match="dtype"):
            taught(X, Y, OWNERS, dtype=dtype)
    with pytest.raises(InvalidArgument, match="public items"):
        taught(X, Y, OWNERS).votes([[1.0, None]])


def test_an_estimator_that_always_fails_is_told_of_before_a_record_is_read():
    with pytest.warns(UserWarning, match="made-up records"):
        made = taught(X, Y, OWNERS, estimator=LogisticRegression(penalty="wrong"))
    assert made.failed_teachers() > 0
    with pytest.warns(UserWarning, match="made-up records"):
        taught(X[:0], Y[:0], [], estimator=LogisticRegression(penalty="wrong"))


@pytest.mark.parametrize("values", [[1, 2], [2**60, 2**60 + 1], [True, False], ["a", "b"]])
def test_records_of_pandas_are_the_same_whatever_type_pandas_chose(values):
    """One missing number made doubles of a column of integers, for all teachers."""
    for dtype in ("U", "O"):
        seen = []
        for last in ([], [None], [0.5], ["x"]):
            frame = pd.DataFrame({"a": values * 3 + last})
            held, _ = read_features(frame, np.dtype(dtype), columns=1, missing=True)
            seen.append([(type(v), v) for v in held[:6, 0]])
        assert seen[1:] == seen[:1] * 3
