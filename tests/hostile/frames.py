"""Doors that take whole frames and panels: safe k-anonymity and series."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import discreet
from discreet.audit import series
from discreet.core.relation import NeighboringRelation
from discreet.disclosure import (
    category_hierarchy,
    hierarchy_level,
    interval_hierarchy,
    prefix_hierarchy,
    safe_k_anonymity,
)
from tests.hostile.catalogue import strange
from tests.hostile.columns import ordinary_number
from tests.hostile.harness import Door, Pair, Session

REPLACE = NeighboringRelation.REPLACE_ONE


@cache
def _safe() -> Any:
    maps = {
        "age": hierarchy_level(interval_hierarchy(range(0, 101, 10), range(0, 101, 50)), 1),
        "sex": hierarchy_level(category_hierarchy(), 0),
        "postcode": hierarchy_level(prefix_hierarchy(3, keep=[2, 1]), 2),
    }
    return safe_k_anonymity(columns=maps, rate=0.5, k=3, epsilon=1)


def _held(kind: str, given: list[tuple[Any, ...]]) -> Any:
    columns = dict(zip(("age", "sex", "postcode"), zip(*given, strict=True), strict=True))
    if kind == "polars":
        types = {"age": pl.Float64, "sex": pl.String, "postcode": pl.String}
        return pl.DataFrame({k: list(v) for k, v in columns.items()}, schema=types)
    held: dict[str, Any] = {"age": pd.Series(columns["age"], dtype="float64")}
    for name in ("sex", "postcode"):
        objects = np.empty(len(given), dtype=object)
        for place, value in enumerate(columns[name]):
            objects[place] = value
        held[name] = pd.Series(objects, dtype=object)
        if kind == "inferred" and name == "sex":  # pandas chooses the type, from all values
            with suppress(Exception):  # one that answers for itself
                held[name] = pd.Series([*columns[name]])
    return pd.DataFrame(held)


def _typed(kind: str, value: object, column: int) -> object:
    """What a column can hold: ages are doubles, texts are texts in Polars."""
    if column == 0:
        return ordinary_number(value)
    if kind != "polars":
        return value
    if not isinstance(value, str):
        return None
    try:
        return str(value).encode().decode()
    except UnicodeError:
        return None


def safe(draw: random.Random, _: Path) -> Session:
    """A strange row is in one group: that of an ordinary row, or one of its own, never shown."""
    many = draw.randrange(20, 60)
    kind = draw.choice(["pandas objects", "inferred", "polars"])
    kinds: list[Any] = ["f", "m"]
    if kind == "inferred":
        kinds = draw.choice([["f", "m"], [1.0, 2.0], [1, 2], [True, False], [2**60, 2**60 + 1]])
    rows: list[tuple[Any, ...]] = [
        (draw.randrange(100), draw.choice(kinds), f"{draw.randrange(1, 4)}{draw.randrange(9)}0")
        for _ in range(many)
    ]

    def run(data: list[tuple[Any, ...]]) -> object:
        return _safe().release(_held(kind, data))

    def pairs() -> Iterator[Pair]:
        for row in itertools.product((10.0, 60.0), kinds, ("100", "200", "300")):
            yield Pair(str(row), [*rows, row], ordinary=True)
        while True:
            strange_row: list[object] = [10.0, kinds[0], "100"]
            told = []
            for column in draw.sample(range(3), draw.randrange(1, 4)):
                name, value = strange(draw)
                if kind == "inferred" and draw.random() < 0.3:
                    name, value = "another type", draw.choice([None, 0.5])
                strange_row[column] = _typed(kind, value, column)
                told.append(name)
            # An age is an ordinary double: its interval may be one that no ordinary pair has.
            readings = tuple(
                [*rows, (strange_row[0], *others)]
                for others in itertools.product(kinds, ("100", "200", "300"))
            )
            yield Pair(f"{', '.join(told)} in {kind}", [*rows, tuple(strange_row)], readings)

    return Session(base=rows, run=run, pairs=pairs, free_lengths=True)


def _account() -> Any:
    limit = discreet.approx_dp(10**9, 0.5, relation=REPLACE)
    return discreet.Ledger("memory://").account("a", limit=limit)


# ── Series ───────────────────────────────────────────────────────────────────────────────────────


def panel(kind: str) -> Callable[[random.Random, Path], Session]:
    """A person's row of a panel, replaced by strange numbers."""

    def started(draw: random.Random, _: Path) -> Session:
        people, times = 6, 8
        numbers = np.random.default_rng(draw.getrandbits(32))
        base = numbers.uniform(-1, 1, (people, times)).tolist()
        place = draw.randrange(people)
        account = None if kind == "private_full_fit" else _account()
        design = series.releases(times=[1, 2, 3], width=2, people=people, std=0.5)

        def run(rows: Any) -> object:
            data = np.empty((people, times), dtype=object)
            for one, row in enumerate(rows):
                for time, value in enumerate(row):
                    data[one, time] = value
            if kind == "private_fit":
                found: Any = series.private_fit(
                    data, bounds=(-1, 1), epsilon=10**6, account=account
                )
                return found.guarantee, found.totals.shape
            if kind == "private_full_fit":
                fit = series.private_full_fit(data, bounds=(-1, 1), epsilon=10**6)
                return (fit.guarantee,)
            said = series.publish(data, releases=design, bounds=(-1, 1), account=account)
            return said.guarantee, np.shape(said.std)

        def pairs() -> Iterator[Pair]:
            ones = [1.0, *base[place][1:]]
            yield Pair("a one", [*base[:place], ones, *base[place + 1 :]], ordinary=True)
            while True:
                row, told = list(base[place]), []
                # A full fit protects one value of a person, the others the whole row.
                many = 1 if kind == "private_full_fit" else draw.randrange(1, times)
                for time in draw.sample(range(times), many):
                    name, value = strange(draw)
                    row[time] = value
                    told.append(name)
                yield Pair(", ".join(told), [*base[:place], row, *base[place + 1 :]])

        return Session(base=base, run=run, pairs=pairs, local=False, account=account)

    return started


DOORS: list[Door] = [
    Door(
        "safe k-anonymity",
        ("discreet.disclosure.SafeKAnonymousTable.release",),
        safe,
        pairs=40,
    ),
    *(
        Door(f"series {kind}", (f"discreet.audit.series.{kind}",), panel(kind))
        for kind in ("private_fit", "private_full_fit", "publish")
    ),
]
