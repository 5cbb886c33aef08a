"""Doors that take counts: ranges, grids, streams, and selections among scores."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet
from discreet.core.relation import NeighboringRelation
from tests.hostile.catalogue import STRANGE, strange
from tests.hostile.columns import CONTAINERS, ordinary_number
from tests.hostile.harness import Door, Pair, Session
from tests.hostile.tables import fresh_account

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def whole(value: object, most: int = 2**40) -> int:
    """What a strange count is read as: rounded and cut; what is no number counts nothing."""
    number = ordinary_number(value)
    if number is None or number <= 0:
        return 0
    return most if number >= most else int(number + 0.5)


# ── Ranges and grids ─────────────────────────────────────────────────────────────────────────────


@cache
def _range_designs(relation: NeighboringRelation) -> tuple[Any, ...]:
    plan = discreet.plan_ranges(12, epsilon=1, relation=relation, data_aware=True)
    gauss = discreet.plan_ranges(12, epsilon=1, delta=1e-6, relation=relation)
    return (plan.best, *(c.design for c in plan.candidates[1:4]), *plan.aware, gauss.best)


@cache
def _grid_designs(relation: NeighboringRelation) -> tuple[Any, ...]:
    plan = discreet.ranges.plan_grid([3, 4], epsilon=1, relation=relation, data_aware=True)
    return (plan.best, *(c.design for c in plan.candidates[1:3]), *plan.aware)


def counts(shape: tuple[int, ...], designs: Callable[..., Any]) -> Callable[..., Session]:
    """Counts of cells: one more in one cell is a neighbor, a strange count is an ordinary one."""

    def started(draw: random.Random, _: Path) -> Session:
        relation = draw.choice([ADD, REPLACE])
        design = draw.choice(designs(relation))
        size = int(np.prod(shape))
        base = [draw.randrange(50) for _ in range(size)]
        place, other = draw.randrange(size), draw.randrange(size)

        def held(values: list[Any]) -> Any:
            if len(shape) == 1:
                return list(values)
            return [values[i : i + shape[1]] for i in range(0, size, shape[1])]

        def changed(value: object, *, moved: int | None = None) -> Any:
            found: list[Any] = list(base)
            found[place] = value
            if moved is not None and moved != place:
                found[moved] += 1
            return held(found)

        def pairs() -> Iterator[Pair]:
            yield Pair("one more", changed(base[place] + 1), ordinary=True)
            if base[place]:
                yield Pair("one less", changed(base[place] - 1), ordinary=True)
                if relation is REPLACE:
                    yield Pair("moved", changed(base[place] - 1, moved=other), ordinary=True)
            while True:
                name, value = strange(draw)
                reading = changed(whole(value))
                yield Pair(name, changed(value), (reading, changed(0)), bounded=False)

        return Session(base=held(base), run=design.release, pairs=pairs, free_lengths=True)

    return started


# ── Streams ──────────────────────────────────────────────────────────────────────────────────────


def _opened(draw: random.Random, account: Any, folder: Path, **more: Any) -> Callable[[], Any]:
    kind: dict[str, Any] = draw.choice([{"horizon": 16}, {"window": 4}, {}])
    given = {"epsilon": 1}
    on_disk = draw.random() < 0.3
    number = iter(range(10**9))

    def opened() -> Any:
        path = folder / f"{draw.getrandbits(64)}-{next(number)}.stream" if on_disk else None
        return discreet.stream(path, account=account, **kind, **given, **more)

    return opened


def feed(draw: random.Random, folder: Path) -> Session:
    """Counts of steps, with or without keys."""
    account = fresh_account()
    keys = draw.choice([None, ["a", "b"]])
    opened = _opened(draw, account, folder, keys=keys)
    steps = 6
    width = 1 if keys is None else 2
    base = [draw.randrange(20) for _ in range(steps * width)]
    place = draw.randrange(len(base))

    def held(values: list[Any]) -> Any:
        if keys is None:
            return list(values)
        return [values[i : i + 2] for i in range(0, len(values), 2)]

    def changed(value: object) -> Any:
        return held([*base[:place], value, *base[place + 1 :]])

    def run(given: Any) -> object:
        with opened() as stream:
            return stream.feed(given)

    def pairs() -> Iterator[Pair]:
        yield Pair("one more", changed(base[place] + 1), ordinary=True)
        while True:
            name, value = strange(draw)
            yield Pair(name, changed(value), (changed(whole(value)), changed(0)), bounded=False)

    return Session(base=held(base), run=run, pairs=pairs, account=account)


def events(draw: random.Random, folder: Path) -> Session:
    """Events with steps, keys and units: one strange event is left out or counted where it is."""
    account = fresh_account()
    keyed = draw.random() < 0.5
    limited = draw.random() < 0.7
    more: dict[str, Any] = {"keys": ["a", "b"]} if keyed else {}
    if limited:
        more["enforce_limits"] = True
    opened = _opened(draw, account, folder, **more)
    many = draw.randrange(3, 12)
    end = 4
    steps: list[Any] = [draw.randrange(1, end + 1) for _ in range(many)]
    keys: list[Any] = [draw.randrange(2) for _ in range(many)]
    kind = draw.choice(["texts", "ids", "mixed"])
    units: list[Any] = [
        {"texts": f"p{i}", "ids": 2**61 + i, "mixed": draw.choice([i, f"p{i}"])}[kind]
        for i in range(many)
    ]
    name_of_container = draw.choice(sorted(CONTAINERS))
    hold = CONTAINERS[name_of_container]

    def data(step: object = None, key: object = None, unit: object = None) -> Any:
        if step is None:
            return hold(steps), hold(keys), hold(units)
        return hold([*steps, step]), hold([*keys, key]), hold([*units, unit])

    def run(given: Any) -> object:
        with opened() as stream:
            named = {"keys": given[1]} if keyed else {}
            if limited:
                named["units"] = given[2]
            return stream.events(given[0], end=end, **named)

    def pairs() -> Iterator[Pair]:
        for step in range(1, end + 1):
            for key in (0, 1):
                yield Pair(f"step {step}, key {key}", data(step, key, "new"), ordinary=True)
        while True:
            given: dict[str, object] = {"step": 2, "key": 1, "unit": "new"}
            told = []
            for part in draw.sample(sorted(given), draw.randrange(1, 4)):
                label, given[part] = strange(draw)
                told.append(f"{part}={label}")
            yield Pair(f"{', '.join(told)} in {name_of_container}", data(**given))

    return Session(base=data(), run=run, pairs=pairs, account=account)


# ── Scores ───────────────────────────────────────────────────────────────────────────────────────

_NUMERIC = sorted(n for n, v in STRANGE.items() if ordinary_number(v) is not None)
_FINITE = [n for n in _NUMERIC if np.isfinite(ordinary_number(STRANGE[n]))]


@cache
def _selection(name: str, sensitivity: float, monotonic: bool) -> Any:
    given: dict[str, Any] = {"sensitivity": sensitivity, "epsilon": 1, "monotonic": monotonic}
    return getattr(discreet, name)(**given)


def scores(name: str) -> Callable[[random.Random, Path], Session]:
    """Scores are the caller's, and public but for their values: no type of one may show."""

    def started(draw: random.Random, _: Path) -> Session:
        mechanism = _selection(name, draw.choice([1, 0.5]), draw.random() < 0.5)
        base: list[Any] = [draw.randrange(20) for _ in range(draw.randrange(2, 8))]
        hold = draw.choice([list, tuple, lambda v: pd.Series(v, dtype=object)])
        place = draw.randrange(len(base))

        def changed(value: object) -> Any:
            return hold([*base[:place], value, *base[place + 1 :]])

        def run(given: Any) -> object:
            if name == "above_threshold":
                return mechanism.release(given, threshold=5)
            return mechanism.release(given)

        def pairs() -> Iterator[Pair]:
            yield Pair("one more", changed(base[place] + mechanism.scale.step), ordinary=True)
            while True:
                label = draw.choice(_FINITE)
                value = STRANGE[label]
                exact = int.__int__(value) if isinstance(value, int) else ordinary_number(value)
                readings = (changed(exact),)
                yield Pair(label, changed(value), readings, bounded=False)

        return Session(
            base=hold(base), run=run, pairs=pairs, free_lengths=name == "above_threshold"
        )

    return started


SELECTIONS = ("exponential_mechanism", "permute_and_flip", "report_noisy_max", "above_threshold")

DOORS: list[Door] = [
    Door("counts of ranges", ("discreet.plan_ranges",), counts((12,), _range_designs)),
    Door("counts of grids", ("discreet.ranges.plan_grid",), counts((3, 4), _grid_designs)),
    Door("stream feed", ("discreet.stream", "discreet.stream.feed"), feed),
    Door("stream events", ("discreet.stream", "discreet.stream.events"), events),
    *(Door(name, (f"discreet.{name}.release",), scores(name)) for name in SELECTIONS),
]
