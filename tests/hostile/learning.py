"""Doors that take records: regressions, classifiers, descents, teachers and black boxes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.models import blackbox, dp_sgd, pate
from discreet.models.dp_sgd.train import Batch, SlopeGrid
from tests.hostile.catalogue import ROWS, strange
from tests.hostile.columns import CONTAINERS
from tests.hostile.harness import REFUSED, Door, Measured, Pair, Part, Session
from tests.hostile.tables import fresh_account

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
BOUNDS = [(-1.0, 1.0)] * 2
ROW_NAMES = sorted(ROWS)
COLUMNS = discreet.models.DeclaredColumns(
    {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}, interactions=[("a", "b")], fill={"a": 0.5}
)
LEVELS = discreet.models.DeclaredColumns(
    {"a": [-1.0, 1, 2**53 + 1, 3, "a", "\0"], "b": (-1.0, 1.0)}, interactions=[("a", "b")]
)
DECLARED: list[dict[str, Any]] = [
    {},
    {"bounds": None, "columns": COLUMNS},
    {"bounds": None, "columns": LEVELS},
]


def record(draw: random.Random) -> tuple[str, object, object]:
    """A strange row and its target, or an ordinary row with a strange value."""
    where = draw.randrange(4)
    if where == 0:
        name = draw.choice(ROW_NAMES)
        return f"{name} as row", ROWS[name], 1
    name, value = strange(draw)
    if where == 1:
        return f"{name} as target", [0.7, -0.9], value
    row = [value, 0.9] if where == 2 else [0.9, value]
    return f"{name} in row", row, draw.choice([0, 1])


def _objects(rows: list[Any]) -> Any:
    held = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        held[place] = row
    return held


def _frame(rows: list[Any]) -> Any:
    """Objects column by column: every row has two values."""
    return pd.DataFrame(
        {
            name: pd.Series(_objects([row[place] for row in rows]), dtype=object)
            for place, name in enumerate("ab")
        }
    )


@dataclass(frozen=True)
class Records:
    """Honest rows and targets, in a container, and neighbors of them."""

    x: list[Any]
    y: list[Any]
    kind: str
    place: int | None
    """Which record is replaced; None: one is added."""

    @classmethod
    def drawn(
        cls, draw: random.Random, *, relation: NeighboringRelation, labels: bool, columns: int
    ) -> Records:
        many = draw.randrange(12, 30)
        numbers = np.random.default_rng(draw.getrandbits(32))
        x: list[Any] = numbers.uniform(-1.2, 1.2, (many, columns)).tolist()
        y: list[Any] = (np.asarray(x) @ np.linspace(0.5, -0.3, columns)).tolist()
        return cls(
            x=x,
            y=[int(v > 0) for v in y] if labels else y,
            kind=draw.choice(["list", "tuples", "objects", "frame"]),
            place=draw.randrange(many) if relation is REPLACE else None,
        )

    def held(self, rows: list[Any], targets: list[Any]) -> tuple[Any, Any]:
        fits = all(isinstance(row, list) and len(row) == 2 for row in rows)
        if self.kind == "frame" and fits:
            return _frame(rows), pd.Series(_objects(targets), dtype=object)
        if self.kind == "objects":
            return rows, _objects(targets)
        return (tuple(rows), tuple(targets)) if self.kind == "tuples" else (rows, targets)

    def base(self) -> tuple[Any, Any]:
        return self.held(self.x, self.y)

    def neighbor(self, row: object, target: object) -> tuple[Any, Any]:
        if self.place is None:
            return self.held([*self.x, row], [*self.y, target])
        rows = [*self.x[: self.place], row, *self.x[self.place + 1 :]]
        return self.held(rows, [*self.y[: self.place], target, *self.y[self.place + 1 :]])


@dataclass
class GradientSums:
    """Exact sums of gradients of a fit, at the parameters that the honest data led to."""

    thetas: list[Any] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    def fit(self, model: Any, data: tuple[Any, Any]) -> tuple[Part, ...]:
        seen: list[Any] = []
        original = Batch.sum

        def total(batch: Any, theta: Any, chosen: Any) -> Any:
            step = len(seen)
            if step == len(self.thetas):  # the honest data, which go first
                self.thetas.append(theta)
                self.told.append(original(batch, theta, None))
            seen.append(original(batch, self.thetas[step], None))
            return self.told[step]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Batch, "sum", total)
            model.fit(*data)
        limit = SlopeGrid(clip=model.clip).sensitivity ** 2
        return tuple(
            Part(f"sum of step {i}", [int(v) for v in np.ravel(one)], limit, "l2")
            for i, one in enumerate(seen)
        )


def fitted(  # noqa: PLR0913 - a line for each way in which estimators differ
    make: Callable[[random.Random, NeighboringRelation, int], Any],
    *,
    relations: tuple[NeighboringRelation, ...] = (ADD, REPLACE),
    labels: bool = False,
    columns: int = 2,
    named: Callable[[list[Any]], dict[str, Any]] = lambda _: {},
    published: Callable[[Any], object],
    sums: bool = False,
    bounded: bool = True,
    own_noise: bool = False,
) -> Callable[[random.Random, Path], Session]:
    """Sessions of estimators that are fitted to rows and targets."""

    def started(draw: random.Random, _: Path) -> Session:
        relation = draw.choice(relations)
        records = Records.drawn(draw, relation=relation, labels=labels, columns=columns)
        model_of = make(draw, relation, len(records.x))
        gradients = GradientSums()

        def run(data: tuple[Any, Any]) -> object:
            model = model_of()
            if sums:
                parts = gradients.fit(model, data)
                return Measured(published(model), parts)
            return published(model.fit(*data, **named(list(data[1]))))

        def pairs() -> Iterator[Pair]:
            ordinary = records.neighbor([1.0, -1.0][:columns], 1)
            yield Pair("ordinary", ordinary, ordinary=True, bounded=bounded)
            while True:
                name, row, target = record(draw)
                if columns == 1 and isinstance(row, list):
                    row = row[:1]
                strange_one = records.neighbor(row, target)
                yield Pair(f"{name} in {records.kind}", strange_one, bounded=bounded)

        return Session(base=records.base(), run=run, pairs=pairs, local=False, own_noise=own_noise)

    return started


def _coefficients(model: Any) -> object:
    return (np.asarray(model.coef_), np.asarray(model.intercept_), model.guarantee_)


def _theta(model: Any) -> object:
    return (np.asarray(model.theta_), model.guarantee_)


# ── Linear regression ────────────────────────────────────────────────────────────────────────────


def linear(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    more = draw.choice(
        [
            {},
            {"scaling": "bounds", "mapping": "ball"},
            {"fit_intercept": False, "scaling": "bounds", "mapping": "box"},
            {"method": "adassp"},
            *DECLARED[1:],
        ]
    )
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (-1, 1), **more}
    return lambda: discreet.models.PrivateLinearRegression(**given, relation=relation)


def auto(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    method = draw.choice(["level", "gradient", "boosted", "auto"])
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (-1, 1)}
    return lambda: discreet.models.AutoLinearRegression(
        **given, relation=relation, method=method, expected_rows=24
    )


def theil_sen(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS[:1], "target_bounds": (-1, 1)}
    return lambda: discreet.models.AutoLinearRegression(
        **given, relation=relation, method="theil_sen", expected_rows=24
    )


def logit(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "classes": (0, 1)}
    more = draw.choice([*DECLARED, {"radius": 0.5}, {"max_rows_per_unit": 2}])
    return lambda: discreet.models.PrivateLogit(**{**given, **more}, relation=relation)


def poisson(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (0, 5)}
    more = draw.choice(DECLARED)
    return lambda: discreet.models.PrivatePoisson(**{**given, **more}, relation=relation)


def units(draw: random.Random, _: Path) -> Session:
    """Whose a row is: a strange unit is one more person."""
    many = draw.randrange(12, 30)
    numbers = np.random.default_rng(draw.getrandbits(32))
    x = numbers.uniform(-1, 1, (many, 2)).tolist()
    y = numbers.uniform(-1, 1, many).tolist()
    names: list[Any] = [
        draw.choice([2**60 + i, f"p{i}", f"p{i}\0", i, (i, "a")]) for i in range(many)
    ]
    hold = CONTAINERS[draw.choice(sorted(CONTAINERS))]
    given = {"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": (-1, 1)}

    def run(data: Any) -> object:
        rows, targets, whose = data
        model = discreet.models.PrivateLinearRegression(**given, max_rows_per_unit=2)
        return _coefficients(model.fit(rows, targets, units=whose))

    def pairs() -> Iterator[Pair]:
        while True:
            name, owner = strange(draw)
            copies = draw.randrange(1, 4)
            rows = [*x, *[[1.0, -1.0]] * copies]
            yield Pair(
                f"{copies} rows of {name}",
                (rows, [*y, *[1.0] * copies], hold([*names, *[owner] * copies])),
            )

    return Session(base=(x, y, hold(names)), run=run, pairs=pairs, local=False)


# ── Descents ─────────────────────────────────────────────────────────────────────────────────────


def logistic(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    given = {"epsilon": 1, "delta": 1e-6, "steps": 2, "clip": 1.0, "rate": 1}
    return lambda: discreet.models.PrivateLogisticRegression(
        **given, public_rows=many, bounds=BOUNDS, classes=(0, 1)
    )


def huber(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    given = {"epsilon": 1, "delta": 1e-6, "steps": 2, "clip": 1.0, "rate": 1}
    kind = draw.choice([discreet.models.PrivateHuberRegressor, discreet.models.PrivateRidge])
    return lambda: kind(**given, public_rows=many, bounds=BOUNDS, target_bounds=(-1, 1))


def output(draw: random.Random, relation: NeighboringRelation, many: int) -> Callable[[], Any]:
    method = draw.choice(["laplace steps", "output"])
    return lambda: discreet.models.OutputPerturbationLogisticRegression(
        epsilon=1, steps=2, method=method, public_rows=many, bounds=BOUNDS, classes=(0, 1)
    )


def personalized(
    draw: random.Random, relation: NeighboringRelation, many: int
) -> Callable[[], Any]:
    method = draw.choice(["clipping", "sampling"])
    limits = {"strict": discreet.approx_dp(0.5, 1e-6), "open": discreet.approx_dp(2, 1e-6)}
    rate = {"rate": 1} if method == "clipping" else {}
    return lambda: discreet.models.PersonalizedLogisticRegression(
        limits=limits,
        people={"strict": 12, "open": 12},
        bounds=BOUNDS,
        classes=(0, 1),
        steps=2,
        method=method,
        **rate,
    )


def _levels(targets: list[Any]) -> dict[str, Any]:
    return {
        "privacy_levels": ["strict", "open"] * (len(targets) // 2) + ["open"] * (len(targets) % 2)
    }


def levels(draw: random.Random, _: Path) -> Session:
    """A strange level is nobody's: that row is left out."""
    many = 24
    numbers = np.random.default_rng(draw.getrandbits(32))
    x = numbers.uniform(-1, 1, (many, 2)).tolist()
    y = [draw.randrange(2) for _ in range(many)]
    chosen: list[Any] = [draw.choice(["strict", "open"]) for _ in range(many)]
    hold = CONTAINERS[draw.choice(sorted(CONTAINERS))]
    make = personalized(draw, ADD, many)

    def run(data: Any) -> object:
        rows, targets, names = data
        model = make().fit(rows, targets, privacy_levels=names)
        return (np.asarray(model.theta_),)

    def pairs() -> Iterator[Pair]:
        rows, targets = [*x, [0.9, -0.9]], [*y, 1]
        for name in ("strict", "open"):
            yield Pair(name, (rows, targets, hold([*chosen, name])), ordinary=True)
        while True:
            name, level = strange(draw)
            yield Pair(
                name,
                (rows, targets, hold([*chosen, level])),
                ((rows, targets, hold([*chosen, "nobody's"])),),
            )

    return Session(base=(x, y, hold(chosen)), run=run, pairs=pairs)


def mechanism(kind: str) -> Callable[[random.Random, Path], Session]:
    """Descents as mechanisms: the number of records is public, one is replaced."""

    def started(draw: random.Random, _: Path) -> Session:
        many = draw.randrange(10, 24)
        given: dict[str, Any] = {"features": 2, "public_rows": many, "row_norm": 1.0}
        loss = draw.choice([dp_sgd.Logistic(l2=0.1), dp_sgd.Huber(l2=0.1)])
        if kind == "laplace":
            made: Any = dp_sgd.laplace_descent(loss, epsilon=1, steps=2, relation=REPLACE, **given)
        elif kind == "output":
            made = dp_sgd.output_perturbation(loss, epsilon=1, delta=0, relation=REPLACE, **given)
        else:
            made = dp_sgd.noisy_descent(loss, epsilon=1, delta=1e-6, steps=2, **given)
        numbers = np.random.default_rng(draw.getrandbits(32))
        x = numbers.uniform(-1, 1, (many, 2)).tolist()
        y: list[Any] = [draw.choice([0, 1]) for _ in range(many)]
        place = draw.randrange(many)

        def run(data: Any) -> object:
            return made.release(*data)

        def neighbor(row: object, target: object) -> Any:
            rows = [*x[:place], row, *x[place + 1 :]]
            return rows, [*y[:place], target, *y[place + 1 :]]

        def pairs() -> Iterator[Pair]:
            yield Pair("ordinary", neighbor([0.7, -0.7], 1), ordinary=True)
            while True:
                name, row, target = record(draw)
                yield Pair(name, neighbor(row, target))

        return Session(base=(x, y), run=run, pairs=pairs, local=False)

    return started


def durations(draw: random.Random, _: Path) -> Session:
    """Columns whose unit pandas chooses: refused for all, never read in a unit of one row."""
    waits = [pd.Timedelta(draw.randrange(120), "m") for _ in range(20)]
    given = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 120 * 60 * 1e6), "target_bounds": (0, 10)}

    def run(data: list[Any]) -> object:
        model = discreet.models.PrivateLinearRegression(**given)
        try:
            return _coefficients(model.fit(pd.DataFrame({"wait": data}), np.full(len(data), 5.0)))
        except discreet.InvalidArgument:
            return REFUSED

    def pairs() -> Iterator[Pair]:
        yield Pair("a nanosecond", [*waits, waits[0] + pd.Timedelta(1, "ns")])
        yield Pair("a day", [*waits, pd.Timedelta(1, "D")])

    return Session(base=waits, run=run, pairs=pairs, local=False)


def large_labels(draw: random.Random, _: Path) -> Session:
    """Labels that doubles cannot tell apart."""
    first, second = 2**60, 2**60 + 1
    x = [[draw.uniform(-1, 1)] for _ in range(24)]
    y: list[Any] = [second if row[0] > 0 else first for row in x]
    gradients = GradientSums()
    kind = draw.choice(["list", "list", *LABELED])

    def held(labels: list[Any]) -> Any:
        return labels if kind == "list" else LABELED[kind](labels)

    def run(data: Any) -> object:
        model = discreet.models.PrivateLogisticRegression(
            epsilon=1, delta=1e-6, steps=2, clip=1.0, rate=1, public_rows=24,
            bounds=[(-1.0, 1.0)], classes=(first, second),
        )  # fmt: skip
        try:
            return Measured(None, gradients.fit(model, data))
        except discreet.InvalidArgument:
            if kind == "pandas":  # which made doubles of all of them
                return REFUSED
            raise

    def pairs() -> Iterator[Pair]:
        yield Pair("missing", ([*x, [0.5]], held([*y, None])))
        if kind == "list":
            yield Pair("double", ([*x, [0.5]], [*y, float(second)]))
        while True:
            name, label = strange(draw)
            if kind == "list" or (type(label) is int and -(2**63) <= label < 2**63):
                yield Pair(name, ([*x, [0.5]], held([*y, label])))

    return Session(base=(x, held(y)), run=run, pairs=pairs, local=False)


LABELED: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": pd.Series,
    "pandas nullable": lambda labels: pd.Series(labels, dtype="Int64"),
    "pandas arrow": lambda labels: pd.Series(labels, dtype="int64[pyarrow]"),
    "polars": lambda labels: pl.Series(labels, dtype=pl.Int64),
    "arrow": lambda labels: pa.array(labels, pa.int64()),
}
"""Containers of whole numbers, some of which have no missing one."""


# ── Teachers ─────────────────────────────────────────────────────────────────────────────────────


class _Drawing(ClassifierMixin, BaseEstimator):
    """As many draws from NumPy's global generator as there are rows; the last is the answer."""

    def fit(self, x: Any, y: Any) -> _Drawing:
        self.classes_ = np.unique(y)
        self.said_ = self.classes_[int(np.random.random(len(x))[-1] * 2) % len(self.classes_)]  # noqa: NPY002
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.said_)


TEACHERS: dict[str, Callable[[], Any]] = {
    "neighbors": lambda: KNeighborsClassifier(1),
    "by type": lambda: make_pipeline(
        FunctionTransformer(lambda x: x / 255.0 if x.dtype == np.uint8 else x),
        KNeighborsClassifier(1),
    ),
    "forest": lambda: RandomForestClassifier(2, max_depth=2),
    "sgd": lambda: SGDClassifier(max_iter=3, tol=None),
    "bayes": GaussianNB,
    "drawing": _Drawing,
}


def teachers(draw: random.Random, _: Path) -> Session:
    """One strange record moves the votes of one teacher: that of its owner."""
    many, classes, questions = 40, 2, 6
    numbers = np.random.default_rng(draw.getrandbits(32))
    assignment = pate.assign_upsampling(5, copies={"all": 1}, key=f"{draw.getrandbits(32)}")
    x: list[Any] = numbers.normal(size=(many, 2)).tolist()
    y: list[Any] = [int(row[0] > 0) for row in x]
    name_of_teacher = draw.choice(sorted(TEACHERS))
    if name_of_teacher == "by type":
        x = list(numbers.integers(0, 256, (many, 2)).astype(np.uint8))
        y = [int(row[0] > 127) for row in x]
    owners: list[Any] = [2**60 + i if i % 2 else f"p{i}" for i in range(many)]
    given: list[Any] = ["all"] * many
    asked = numbers.normal(size=(questions, 2))
    limit = assignment.shares["all"]

    def run(data: Any) -> object:
        records, labels, whose, chosen = data
        ensemble = discreet.models.PATEClassifier(
            TEACHERS[name_of_teacher](), assignment=assignment, classes=classes, columns=2
        ).fit(records, labels, owners=whose, privacy_levels=chosen)
        counted = pate.count_votes(ensemble.votes(asked), assignment, classes=classes)
        parts = [
            Part(f"votes {q}, class {c}", [int(counted[q, c])], limit, "linf")
            for q in range(questions)
            for c in range(classes)
        ]
        return Measured(counted.shape, tuple(parts))

    def pairs() -> Iterator[Pair]:
        while True:
            name, row, label = record(draw)
            whose: object = "somebody"
            level: object = "all"
            if draw.random() < 0.3:
                owner_name, whose = strange(draw)
                name += f" of {owner_name}"
            elif draw.random() < 0.3:
                level_name, level = strange(draw)
                name += f" at {level_name}"
            yield Pair(
                f"{name}, {name_of_teacher}",
                ([*x, row], [*y, label], [*owners, whose], [*given, level]),
            )

    return Session(base=(x, y, owners, given), run=run, pairs=pairs, local=False)


# ── Black boxes ──────────────────────────────────────────────────────────────────────────────────


def _mean(row: Any) -> float:
    return float(np.mean(row))


def _moody(row: Any) -> float:
    if float(np.max(row)) > 9.9:
        raise ValueError("secret")
    return float(np.max(row))


@cache
def _boxed(name: str, metric: str) -> Any:
    public = np.random.default_rng(0).uniform(0, 10, size=(30, 4))
    function = {"mean": _mean, "moody": _moody, "known": _mean}[name]
    known = {"sensitivity": 10 if metric == "record" else 2.5} if name == "known" else {}
    given = {"public_inputs": public, "metric": metric, "epsilon": 2, "anchors": 30}
    return blackbox.make_private(function, **given, **known, bounds=(0, 10))


def boxed(draw: random.Random, _: Path) -> Session:
    """A learned mechanism is about one input of four positions."""
    mechanism = _boxed(
        draw.choice(["mean", "moody", "known"]), draw.choice(["record", "attribute"])
    )
    base: list[Any] = [draw.uniform(0, 10) for _ in range(4)]
    place = draw.randrange(4)
    hold = draw.choice([list, tuple, _objects])

    def changed(value: object) -> Any:
        return hold([*base[:place], value, *base[place + 1 :]])

    def pairs() -> Iterator[Pair]:
        yield Pair("ordinary", changed(0.0), ordinary=True)
        while True:
            name, value = strange(draw)
            yield Pair(name, changed(value))

    return Session(base=hold(base), run=mechanism.release, pairs=pairs, local=False, own_noise=True)


def windows(draw: random.Random, _: Path) -> Session:
    """Readings one by one: a strange one is like an ordinary one."""
    plan = blackbox.WindowPlan(mechanism=_boxed("mean", "record"), stride=draw.choice([1, 2]))
    account = fresh_account(REPLACE)
    base: list[Any] = [draw.uniform(0, 10) for _ in range(7)]
    place = draw.randrange(7)

    def run(readings: list[Any]) -> object:
        opened = plan.start(account=account)
        found = [opened.feed(reading) for reading in readings]
        opened.close()
        return [None if one is None else (one.value, one.guarantee) for one in found]

    def pairs() -> Iterator[Pair]:
        while True:
            name, value = strange(draw)
            # A reading is in several windows, each of which is paid for.
            yield Pair(name, [*base[:place], value, *base[place + 1 :]])

    return Session(base=base, run=run, pairs=pairs, local=False, account=account, own_noise=True)


def examples(draw: random.Random, _: Path) -> Session:
    """Inputs and outputs of people, as examples."""
    account = fresh_account()
    anchors = np.linspace(0, 10, 11)[:, None]
    many = draw.randrange(6, 20)
    inputs: list[Any] = [[draw.uniform(0, 10)] for _ in range(many)]
    outputs: list[Any] = [draw.uniform(0, 100) for _ in range(many)]

    def run(data: Any) -> object:
        made = blackbox.release_examples(
            data[0],
            data[1],
            anchors=anchors,
            metric=blackbox.Truncated(width=10),
            bounds=(0, 100),
            epsilon=1,
            account=account,
        )
        return (np.asarray(made.outputs), made.guarantee)

    def pairs() -> Iterator[Pair]:
        yield Pair("ordinary", ([*inputs, [5.0]], [*outputs, 50.0]), ordinary=True)
        while True:
            name, value = strange(draw)
            if draw.random() < 0.5:
                yield Pair(f"{name} in", ([*inputs, [value]], [*outputs, 50.0]))
            else:
                yield Pair(f"{name} out", ([*inputs, [5.0]], [*outputs, value]))

    return Session(base=(inputs, outputs), run=run, pairs=pairs, local=False, account=account)


MODELS = "discreet.models."
DOORS: list[Door] = [
    Door(
        "linear regression",
        (f"{MODELS}PrivateLinearRegression.fit",),
        fitted(linear, published=_coefficients),
    ),
    Door(
        "auto linear regression",
        (f"{MODELS}AutoLinearRegression.fit", f"{MODELS}AutoLinearRegression.plan.fit"),
        fitted(auto, published=_coefficients),
        pairs=15,
    ),
    Door(
        "theil sen",
        (f"{MODELS}AutoLinearRegression.fit",),
        # Its proof draws the pairs of rows of neighbors together; the same bits do not.
        fitted(theil_sen, published=_coefficients, columns=1, bounded=False),
        pairs=15,
    ),
    Door(
        "logit",
        (f"{MODELS}PrivateLogit.fit", f"{MODELS}PrivateLogit.plan.release"),
        fitted(logit, labels=True, published=_coefficients),
    ),
    Door(
        "poisson",
        (f"{MODELS}PrivatePoisson.fit", f"{MODELS}PrivatePoisson.plan.release"),
        fitted(poisson, published=_coefficients),
    ),
    Door("units of a regression", (f"{MODELS}PrivateLinearRegression.fit",), units),
    Door(
        "logistic regression",
        (f"{MODELS}PrivateLogisticRegression.fit",),
        fitted(logistic, relations=(ADD,), labels=True, published=_theta, sums=True),
    ),
    Door(
        "huber and ridge",
        (f"{MODELS}PrivateHuberRegressor.fit", f"{MODELS}PrivateRidge.fit"),
        fitted(huber, relations=(ADD,), published=_theta, sums=True),
    ),
    Door(
        "output perturbation logistic regression",
        (f"{MODELS}OutputPerturbationLogisticRegression.fit",),
        fitted(output, relations=(ADD,), labels=True, published=_theta),
    ),
    Door(
        "personalized logistic regression",
        (f"{MODELS}PersonalizedLogisticRegression.fit",),
        fitted(
            personalized,
            relations=(ADD,),
            labels=True,
            named=_levels,
            published=_theta,
            own_noise=True,
        ),
    ),
    Door("durations", (f"{MODELS}PrivateLinearRegression.fit",), durations, pairs=2),
    Door("large labels", (f"{MODELS}PrivateLogisticRegression.fit",), large_labels),
    Door("levels of a model", (f"{MODELS}PersonalizedLogisticRegression.fit",), levels),
    *(
        Door(f"{kind} descent", (f"{MODELS}dp_sgd.{covers}",), mechanism(kind))
        for kind, covers in (
            ("laplace", "LaplaceGradientDescent.release"),
            ("output", "OutputPerturbation.release"),
            ("noisy", "NoisyGradientDescent.release"),
        )
    ),
    Door(
        "teachers",
        (f"{MODELS}PATEClassifier.fit", f"{MODELS}PATEClassifier.votes"),
        teachers,
        pairs=12,
    ),
    Door(
        "black box",
        (
            f"{MODELS}blackbox.BlackBoxMechanism.release",
            f"{MODELS}blackbox.BlackBoxMechanism.answer",
        ),
        boxed,
    ),
    Door("windows", (f"{MODELS}blackbox.Windows.feed",), windows),
    Door("examples", (f"{MODELS}blackbox.release_examples",), examples),
]
