"""Doors that take one column of numbers: mechanisms over rows, intervals, points."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import discreet
from discreet.core.relation import NeighboringRelation
from tests.hostile.catalogue import HONEST, STRANGE, fresh, strange
from tests.hostile.harness import Door, Measured, Pair, Part, Session

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
LOWER, UPPER = 0, 10
EPSILON = 2


def ordinary_number(value: object) -> float | None:
    """The double that a value is as a number; None if it is none. Written without the library."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf":
        value = value[()]
    if isinstance(value, bool | np.bool_):
        return float(bool(value))
    if isinstance(value, np.timedelta64) or value is np.ma.masked:
        return None  # NumPy takes a duration for an integer
    if isinstance(value, int | np.integer):
        exact = Fraction(int.__int__(value) if isinstance(value, int) else int(value))
    elif isinstance(value, Fraction):
        exact = value
    elif isinstance(value, float | np.floating):
        with np.errstate(all="ignore"):
            return None if math.isnan(value) else float(value)
    elif isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_infinite() or abs(value.adjusted()) > 400:
            large = value.is_infinite() or value.adjusted() > 0
            return math.copysign(math.inf if large else 0.0, -1 if value.is_signed() else 1)
        exact = Fraction(value)
    else:
        return None
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# ── Containers that hold values of any type, each as it is ───────────────────────────────────────


def _objects(values: list[Any]) -> Any:
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return held


def _series(values: list[Any]) -> Any:
    return pd.Series(_objects(values), dtype=object)


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": _objects,
    "pandas objects": _series,
}
TYPED: dict[str, Callable[[list[Any]], Any]] = {
    "doubles": lambda values: np.array(values, dtype=np.float64),
    "pandas doubles": lambda values: pd.Series(values, dtype="float64"),
    "pandas nullable": lambda values: pd.Series(values, dtype="Float64"),
    "polars": lambda values: pl.Series(values, dtype=pl.Float64, strict=False),
}
"""Containers of doubles: a person can bring one, or nothing."""


@dataclass(frozen=True)
class Column:
    """A configuration: what is released about values between the bounds."""

    release: Callable[[Any], object]
    relation: NeighboringRelation = ADD
    rows: int | None = None
    """A public number of rows."""
    free_lengths: bool = False
    typed: bool = True
    """Whether containers of doubles are taken, too."""
    span: tuple[float, float] = (LOWER, UPPER)
    shapes: tuple[str, ...] = tuple(HONEST)
    account: Any = None


def start(make: Callable[[random.Random], Column]) -> Callable[[random.Random, Path], Session]:
    def started(draw: random.Random, _: Path) -> Session:
        column = make(draw)
        many = column.rows or draw.randrange(8, 60)
        shape = draw.choice(column.shapes)
        honest: list[Any] = HONEST[shape](draw, many)
        kinds = dict(CONTAINERS)
        doubles = column.typed and all(isinstance(v, float) for v in honest)
        if doubles:
            kinds |= TYPED
        kind = draw.choice(sorted(kinds))
        hold = kinds[kind]
        place = draw.randrange(many)
        replaced = column.rows is not None or column.relation is REPLACE

        def neighbor(value: object) -> Any:
            if replaced:
                return hold([*honest[:place], value, *honest[place + 1 :]])
            return hold([*honest, value])

        low, high = column.span

        def pairs() -> Iterator[Pair]:
            for value in (float(low), float(high), (low + high) / 2):
                yield Pair(f"{value:g}", neighbor(value), ordinary=True)
            if column.rows is None:
                yield Pair("left out", hold([*honest[:place], *honest[place + 1 :]]), ordinary=True)
            while True:
                name, value = strange(draw)
                if kind in TYPED:
                    value = ordinary_number(value)
                    value = math.nan if value is None else value
                meant = ordinary_number(value)
                readings = []
                if meant is not None:
                    largest = 1.7976931348623157e308
                    readings.append(neighbor(min(max(meant, low - 1e9), high + 1e9)))
                    readings.append(neighbor(min(max(meant, -largest), largest)))
                yield Pair(f"{name} in {kind}, {shape}", neighbor(value), tuple(readings))

        return Session(
            base=hold(honest),
            run=column.release,
            pairs=pairs,
            free_lengths=column.free_lengths,
            account=column.account,
        )

    return started


def _relation(draw: random.Random) -> NeighboringRelation:
    return draw.choice([ADD, REPLACE])


@cache
def _quantile(method: str, relation: NeighboringRelation) -> Any:
    grid = {"granularity": 0.25} if method == "permute_and_flip" else {}
    return discreet.private_quantile(
        lower=LOWER, upper=UPPER, epsilon=EPSILON, method=method, relation=relation, **grid
    )


def quantile(draw: random.Random) -> Column:
    relation = _relation(draw)
    method = draw.choice(["interpolated", "exponential", "permute_and_flip"])
    return Column(release=_quantile(method, relation).release, relation=relation)


@cache
def _quantiles(relation: NeighboringRelation) -> Any:
    return discreet.private_quantiles(
        [0.25, 0.5, 0.75], lower=LOWER, upper=UPPER, epsilon=EPSILON, relation=relation
    )


def quantiles(draw: random.Random) -> Column:
    relation = _relation(draw)
    return Column(release=_quantiles(relation).release, relation=relation)


@cache
def _bins(relation: NeighboringRelation) -> Any:
    return discreet.private_bin_counts(
        lower=LOWER, upper=UPPER, bins=7, epsilon=EPSILON, relation=relation
    )


def bin_counts(draw: random.Random) -> Column:
    relation = _relation(draw)
    return Column(release=_bins(relation).release, relation=relation)


ROWS = 24


@cache
def _smooth(statistic: str, delta: float, granularity: float | None) -> Any:
    given = {"quantile": 0.25} if statistic == "quantile" else {}
    given |= {"trim": 4} if statistic == "trimmed_mean" else {}
    return discreet.smooth_sensitivity(
        statistic,
        lower=LOWER,
        upper=UPPER,
        public_rows=ROWS,
        epsilon=EPSILON,
        delta=delta,
        granularity=granularity,
        **given,
    )


def smooth(draw: random.Random) -> Column:
    statistic = draw.choice(["median", "mean", "variance", "quantile", "trimmed_mean"])
    mechanism = _smooth(statistic, draw.choice([0, 1e-6]), draw.choice([None, 1]))
    return Column(release=mechanism.release, rows=ROWS, relation=REPLACE)


@cache
def _propose(statistic: str) -> Any:
    return discreet.propose_test_release(
        statistic,
        bound=2,
        lower=LOWER,
        upper=UPPER,
        public_rows=ROWS,
        epsilon=EPSILON,
        delta=1e-3,
        relation=REPLACE,
    )


def propose(draw: random.Random) -> Column:
    mechanism = _propose(draw.choice(["median", "mean"]))

    def release(values: Any) -> object:
        found = mechanism.release(values)  # that there is no answer is a noisy answer, too
        return (found is None, 0.0 if found is None else found)

    return Column(release=release, rows=ROWS, relation=REPLACE)


@cache
def _weighted(statistic: str) -> Any:
    return discreet.weighted_sensitivity(
        statistic, lower=LOWER, upper=UPPER, public_rows=ROWS, epsilon=EPSILON, delta=1e-3
    )


def weighted(draw: random.Random) -> Column:
    mechanism = _weighted(draw.choice(["median", "mean"]))
    return Column(release=mechanism.release, rows=ROWS, relation=REPLACE)


@cache
def _spread(kind: str, delta: float) -> Any:
    make = {"std": discreet.private_std, "variance": discreet.private_variance}[kind]
    return make(lower=LOWER, upper=UPPER, public_rows=ROWS, epsilon=EPSILON, delta=delta)


def std(draw: random.Random) -> Column:
    mechanism = _spread("std", draw.choice([0, 1e-6]))
    return Column(release=mechanism.release, rows=ROWS, relation=REPLACE)


def variance(draw: random.Random) -> Column:
    mechanism = _spread("variance", draw.choice([0, 1e-6]))
    return Column(release=mechanism.release, rows=ROWS, relation=REPLACE)


@cache
def _unbounded(rows: int | None, relation: NeighboringRelation) -> Any:
    return discreet.mean_without_bounds(
        unit=1, epsilon=EPSILON, public_rows=rows, relation=relation
    )


def unbounded(draw: random.Random) -> Column:
    relation = _relation(draw)
    rows = ROWS if relation is REPLACE else None
    return Column(release=_unbounded(rows, relation).release, rows=rows, relation=relation)


@cache
def _points(small: str, relation: NeighboringRelation) -> Any:
    return discreet.disclosure.private_points(
        edges=[0, 1, 2, 5, 10], epsilon=EPSILON, minimum=2, small=small, relation=relation
    )


def points(draw: random.Random) -> Column:
    relation = _relation(draw)
    mechanism = _points(draw.choice(["keep", "drop", "merge"]), relation)
    return Column(release=mechanism.release, relation=relation, free_lengths=True)


def wide(draw: random.Random, _: Path) -> Session:
    """So many rows, so far apart, that a sum leaves 64 bits."""
    rows, upper = 2**23, 2**40
    mechanism = discreet.smooth_sensitivity(
        "mean", lower=0, upper=upper, public_rows=rows, granularity=1, epsilon=1, delta=1e-6
    )
    base = np.full(rows, upper, dtype=np.int64)
    statistic = mechanism.statistic

    def run(value: int) -> object:
        given = base.copy()
        given[0] = value
        found = statistic.value(mechanism.column.sorted(given))
        limit = math.ceil(statistic.largest(mechanism.column.span))
        return Measured(None, (Part("mean", [math.floor(found)], limit, "linf"),))

    def pairs() -> Iterator[Pair]:
        for value in (0, -(2**62), 2**62, 17):
            yield Pair(f"{value}", value)

    return Session(base=upper, run=run, pairs=pairs, local=False)


# ── Intervals ────────────────────────────────────────────────────────────────────────────────────


@cache
def _interval(kind: str, choice: int) -> Any:
    given: dict[str, Any] = {"public_rows": ROWS, "epsilon": EPSILON}
    bounds = {"lower": LOWER, "upper": UPPER}
    intervals = discreet.intervals
    if kind == "mean":
        more: list[dict[str, Any]] = [{}, {"std": 2}, {"variance": "rough"}]
        return intervals.mean(**given, **bounds, **(more[choice] if choice < 2 else {}))
    if kind == "variance":
        return intervals.variance(**given, **bounds)
    if kind == "proportion":
        return intervals.proportion(**given)
    if kind == "quantile":
        return intervals.quantile(**given, **bounds)
    return intervals.difference(**{**given, "public_rows": (ROWS // 2, ROWS // 2)}, **bounds)


def interval(kind: str) -> Callable[[random.Random], Column]:
    def made(draw: random.Random) -> Column:
        plan = _interval(kind, draw.randrange(2))
        half = ROWS // 2

        def both(values: Any) -> object:
            return plan.release(values[:half], values[half:])

        release = both if kind == "difference" else plan.release
        span = (0, 1) if kind == "proportion" else (LOWER, UPPER)
        return Column(release=release, rows=ROWS, relation=REPLACE, span=span)

    return made


# ── Black boxes over rows ────────────────────────────────────────────────────────────────────────


def _mean(part: Any) -> float:
    return float(np.mean(part))


def _by_type(part: Any) -> float:
    """What an estimator makes of the type of its rows."""
    return {"i": 2.0, "f": 4.0, "O": 6.0}.get(np.asarray(part).dtype.kind, 8.0)


def _largest(part: Any) -> float:
    return max(float(v) for v in part)


def _chatty(part: Any) -> float:
    import warnings

    warnings.warn("secret", stacklevel=1)
    return float(np.median(part))


def _drawing(part: Any) -> float:
    """As many draws from NumPy's global generator as there are rows."""
    return 10.0 * (np.random.random(len(part))[-1] < 0.5)  # noqa: NPY002


@cache
def _aggregate(name: str, summary: str, relation: NeighboringRelation) -> Any:
    estimators = {
        "mean": _mean,
        "type": _by_type,
        "largest": _largest,
        "chatty": _chatty,
        "drawing": _drawing,
    }
    return discreet.sample_and_aggregate(
        estimators[name],
        lower=LOWER,
        upper=UPPER,
        groups=6,
        epsilon=EPSILON,
        summary=summary,
        relation=relation,
    )


def aggregate(draw: random.Random, _: Path) -> Session:
    """Rows of any type and their owners: one group is one person's, and no other moves.

    An estimator is any function, so no ordinary value is what a strange one is read as: the
    estimate of one group may be anything. That of the others may not, and the mechanism behind
    accounts for one of them.
    """
    relation = _relation(draw)
    summary = draw.choice(["mean", "median"])
    name = draw.choice(["mean", "type", "largest", "chatty", "drawing"])
    mechanism = _aggregate(name, summary, relation)
    many = draw.randrange(12, 40)
    rows: list[Any] = HONEST[draw.choice(["uniform", "whole", "alike"])](draw, many)
    ids: list[Any] = [2**61 + 7 * place for place in range(many)]
    if draw.random() < 0.5:
        ids = [f"p{place}" for place in range(many)]
    owned = draw.random() < 0.6
    kind = draw.choice(sorted(CONTAINERS))
    hold = CONTAINERS[kind]
    place = draw.randrange(many)

    def run(data: tuple[Any, Any]) -> object:
        return mechanism.release(data[0], owners=data[1])

    def neighbor(value: object, owner: object) -> tuple[Any, Any]:
        if relation is REPLACE:
            found = [*rows[:place], value, *rows[place + 1 :]]
            whose = [*ids[:place], owner, *ids[place + 1 :]]
        else:
            found, whose = [*rows, value], [*ids, owner]
        return hold(found), hold(whose) if owned else None

    def pairs() -> Iterator[Pair]:
        yield Pair("5", neighbor(5, 1), ordinary=True)
        while True:
            first, value = strange(draw)
            second, owner = strange(draw) if draw.random() < 0.5 else ("usual", "somebody")
            if relation is REPLACE:  # an owner who is nobody, or another one, is no replaced row
                second, owner = "usual", ids[place]
            label = f"{first} of owner {second} in {kind}, {name}"
            yield Pair(label, neighbor(value, owner))

    base = hold(rows), hold(ids) if owned else None
    # The smooth noise of a median is no mechanism of its own.
    own_noise = summary == "median"
    return Session(base=base, run=run, pairs=pairs, local=False, own_noise=own_noise)


# ── One number, one vector: types and sizes of what is public but for its value ──────────────────


SCALARS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: discreet.laplace(sensitivity=1, epsilon=1),
    "laplace on reals": lambda: discreet.laplace(sensitivity=0.5, epsilon=1),
    "gaussian": lambda: discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6),
    "gaussian on reals": lambda: discreet.gaussian(sensitivity=1, mu=1, domain="reals"),
    "bounded laplace": lambda: discreet.bounded_laplace(
        lower=0, upper=10, sensitivity=1, epsilon=1
    ),
    "clamped": lambda: discreet.clamp_output(
        discreet.laplace(sensitivity=1, epsilon=1), lower=0, upper=10
    ),
    "reflected": lambda: discreet.reflect_output(
        discreet.laplace(sensitivity=0.5, epsilon=1), lower=0, upper=10
    ),
    "truncated laplace": lambda: discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-6),
    "best": lambda: discreet.best_additive_noise(sensitivity=1, epsilon=2, delta=1e-6),
    "compared": lambda: (
        discreet.compare_bounded_noise(lower=0, upper=10, sensitivity=1, epsilon=1).best
    ),
}
SCALARS_COVER = {
    "laplace": "discreet.laplace",
    "laplace on reals": "discreet.laplace",
    "gaussian": "discreet.gaussian",
    "gaussian on reals": "discreet.gaussian",
    "bounded laplace": "discreet.bounded_laplace",
    "clamped": "discreet.clamp_output",
    "reflected": "discreet.reflect_output",
    "truncated laplace": "discreet.truncated_laplace",
    "best": "discreet.best_additive_noise",
    "compared": "discreet.compare_bounded_noise",
}


@cache
def _scalar(name: str) -> Any:
    return SCALARS[name]()


_NUMERIC = sorted(name for name, value in STRANGE.items() if ordinary_number(value) is not None)


def scalar(name: str) -> Callable[[random.Random, Path], Session]:
    """A statistic of private rows, which is the caller's: its type must not show."""

    def started(draw: random.Random, _: Path) -> Session:
        mechanism = _scalar(name)

        def number() -> tuple[str, Any]:
            if draw.random() < 0.3:
                while ordinary_number((found := fresh(draw))[1]) is None:
                    pass
                return found
            chosen = draw.choice(_NUMERIC)
            return chosen, STRANGE[chosen]

        def pairs() -> Iterator[Pair]:
            while True:
                label, value = number()
                meant = ordinary_number(value)
                assert meant is not None
                exact = Fraction(value) if isinstance(value, int | Fraction) else meant
                if isinstance(value, Decimal) and math.isfinite(meant) and meant:
                    exact = Fraction(value)
                if isinstance(value, np.longdouble) and np.isfinite(value):
                    exact = Fraction(*value.as_integer_ratio())
                readings: list[Any] = [
                    meant if math.isfinite(meant) else math.copysign(1e300, meant)
                ]
                if not math.isinf(meant):
                    readings.append(Fraction(exact))
                yield Pair(label, value, tuple(readings), bounded=False)

        return Session(base=5, run=mechanism.release, pairs=pairs)

    return started


# ── Levels ───────────────────────────────────────────────────────────────────────────────────────


def sampling(draw: random.Random, _: Path) -> Session:
    """Privacy levels of people: one unknown level leaves that person out."""
    mechanism = discreet.personalized_sampling(
        discreet.pure_dp(1), {"a": discreet.pure_dp(0.5), "b": discreet.pure_dp(1)}
    )
    levels: list[Any] = [draw.choice("ab") for _ in range(draw.randrange(5, 30))]
    kind = draw.choice(sorted(CONTAINERS))
    hold = CONTAINERS[kind]

    def run(given: Any) -> object:
        return mechanism.draw(given)

    def pairs() -> Iterator[Pair]:
        for level in "ab":
            yield Pair(level, hold([*levels, level]), ordinary=True)
        while True:
            name, value = strange(draw)
            left_out = hold([*levels, "nobody's"])
            yield Pair(f"{name} in {kind}", hold([*levels, value]), (left_out,))

    return Session(base=hold(levels), run=run, pairs=pairs, free_lengths=True, local=True)


DOORS: list[Door] = [
    Door("quantile", ("discreet.private_quantile",), start(quantile)),
    Door("quantiles", ("discreet.private_quantiles",), start(quantiles)),
    Door("bin counts", ("discreet.private_bin_counts",), start(bin_counts)),
    Door("smooth sensitivity", ("discreet.smooth_sensitivity",), start(smooth)),
    Door("wide columns", ("discreet.smooth_sensitivity",), wide, pairs=1),
    Door("propose test release", ("discreet.propose_test_release",), start(propose)),
    Door("weighted sensitivity", ("discreet.weighted_sensitivity",), start(weighted)),
    Door("std", ("discreet.private_std",), start(std)),
    Door("variance", ("discreet.private_variance",), start(variance)),
    Door("mean without bounds", ("discreet.mean_without_bounds",), start(unbounded)),
    Door(
        "private points",
        ("discreet.disclosure.private_points", "discreet.disclosure.PrivatePoints.release"),
        start(points),
    ),
    *(
        Door(f"interval of a {kind}", (f"discreet.intervals.{kind}",), start(interval(kind)))
        for kind in ("mean", "variance", "proportion", "quantile", "difference")
    ),
    Door("sample and aggregate", ("discreet.sample_and_aggregate",), aggregate),
    *(Door(name, (SCALARS_COVER[name],), scalar(name)) for name in SCALARS),
    Door("personalized sampling", ("discreet.personalized_sampling",), sampling),
]
