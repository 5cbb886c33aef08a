"""Doors on the side of a client: one value, which may come in any type that numbers have.

What is no value of the collection is refused where the client is, who then sends no report. So the
hostile values here are ordinary ones in odd types; the reports of all must be those of plain ones.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import local
from tests.hostile.catalogue import STRANGE, fresh
from tests.hostile.columns import CONTAINERS, ordinary_number
from tests.hostile.harness import Door, Pair, Session

CATEGORIES = 5
TYPES: dict[str, Callable[[int], object]] = {
    "int8": np.int8,
    "uint64": np.uint64,
    "double": float,
    "float16": np.float16,
    "long double": np.longdouble,
    "fraction": Fraction,
    "decimal": lambda n: Decimal(f"{n}.000"),
    "array": lambda n: np.array(n),
    "boolean": lambda n: bool(n) if n < 2 else n,
    "NumPy boolean": lambda n: np.bool_(n) if n < 2 else n,
    "minus zero": lambda n: -0.0 if n == 0 else n,
}
ORACLES: dict[str, Callable[[], Any]] = {
    "grr": lambda: local.grr(categories=CATEGORIES, epsilon=1),
    "oue": lambda: local.oue(categories=CATEGORIES, epsilon=1),
    "sue": lambda: local.sue(categories=CATEGORIES, epsilon=1),
    "olh": lambda: local.olh(categories=CATEGORIES, epsilon=1),
    "hadamard_response": lambda: local.hadamard_response(categories=CATEGORIES, epsilon=1),
    "subset_selection": lambda: local.subset_selection(categories=CATEGORIES, epsilon=1),
    "threshold_histogram_encoding": lambda: local.threshold_histogram_encoding(
        categories=CATEGORIES, epsilon=1
    ),
    "summation_histogram_encoding": lambda: local.summation_histogram_encoding(
        categories=CATEGORIES, epsilon=1
    ),
    "rappor": lambda: local.rappor(categories=CATEGORIES, epsilon=1, permanent_epsilon=2),
    "l_osue": lambda: local.l_osue(categories=CATEGORIES, epsilon=1, permanent_epsilon=2),
    "longitudinal_olh": lambda: local.longitudinal_olh(
        categories=CATEGORIES, epsilon=1, permanent_epsilon=2
    ),
    "best_oracle": lambda: local.best_oracle(CATEGORIES, epsilon=1),
    "distributed_laplace": lambda: local.distributed_laplace(
        sensitivity=10, epsilon=1, min_honest_reports=10
    ),
}
RANGES: dict[str, Callable[[], Any]] = {
    "flat_histogram": lambda: local.flat_histogram(domain=_domain(), epsilon=1),
    "hierarchical_histogram": lambda: local.hierarchical_histogram(domain=_domain(), epsilon=1),
    "haar_wavelet": lambda: local.haar_wavelet(domain=_domain(), epsilon=1),
    "optimal_hierarchical_histogram": lambda: local.optimal_hierarchical_histogram(
        domain=_domain(), epsilon=1, workload=discreet.ranges.workload.all_ranges()
    ),
}
MEANS: dict[str, Callable[[], Any]] = {
    "balanced_piecewise": lambda: local.balanced_piecewise(epsilon=1, lower=0, upper=4),
    "best_mean_randomizer": lambda: local.best_mean_randomizer(epsilon=1, lower=0, upper=4),
    "duchi": lambda: local.duchi(epsilon=1, lower=0, upper=4),
    "hybrid_mean": lambda: local.hybrid_mean(epsilon=1, lower=0, upper=4),
    "local_laplace": lambda: local.local_laplace(epsilon=1, lower=0, upper=4),
    "piecewise_mean": lambda: local.piecewise_mean(epsilon=1, lower=0, upper=4),
    "square_wave": lambda: local.square_wave(cells=5, epsilon=1, lower=0, upper=5),
}


def _domain() -> Any:
    return local.integers(0, CATEGORIES - 1)


@cache
def _made(name: str) -> Any:
    return {**ORACLES, **RANGES, **MEANS}[name]()


def codes(name: str) -> Callable[[random.Random, Path], Session]:
    """Categories: the same one in another type is the same report."""

    def started(draw: random.Random, _: Path) -> Session:
        randomizer = _made(name)
        # Labels of a domain are of its kind: one client at a time, in types of integers.
        labels = name in RANGES
        many = 1 if labels else draw.randrange(1, 6)
        base: list[Any] = [draw.randrange(CATEGORIES) for _ in range(many)]
        place = draw.randrange(len(base))
        hold = CONTAINERS[draw.choice(["list", "tuple", *([] if labels else ["objects"])])]
        types = ["int8", "uint64"] if labels else sorted(TYPES)

        def pairs() -> Iterator[Pair]:
            for code in range(CATEGORIES):
                yield Pair(
                    f"{code}", hold([*base[:place], code, *base[place + 1 :]]), ordinary=True
                )
            while True:
                code, kind = draw.randrange(CATEGORIES), draw.choice(types)
                value = TYPES[kind](code)
                yield Pair(f"{code} as {kind}", hold([*base[:place], value, *base[place + 1 :]]))

        return Session(base=hold(base), run=randomizer.randomize, pairs=pairs)

    return started


_NUMERIC = sorted(n for n, v in STRANGE.items() if ordinary_number(v) is not None)


def numbers(name: str) -> Callable[[random.Random, Path], Session]:
    """Numbers beyond the bounds are cut, in whichever type they come."""

    def started(draw: random.Random, _: Path) -> Session:
        randomizer = _made(name)
        base: list[Any] = [draw.uniform(0, 4) for _ in range(draw.randrange(1, 6))]
        place = draw.randrange(len(base))
        hold = CONTAINERS[draw.choice(["list", "tuple", "objects"])]

        def neighbor(value: object) -> Any:
            return hold([*base[:place], value, *base[place + 1 :]])

        def pairs() -> Iterator[Pair]:
            yield Pair("0", neighbor(0.0), ordinary=True)
            yield Pair("4", neighbor(4.0), ordinary=True)
            while True:
                label, value = draw.choice(_NUMERIC), None
                value = STRANGE[label]
                if draw.random() < 0.3:
                    label, value = fresh(draw)
                meant = ordinary_number(value)
                if meant is None:
                    continue
                plain = meant if math.isfinite(meant) else math.copysign(1e9, meant)
                yield Pair(
                    label, neighbor(value), (neighbor(plain), neighbor(max(-1e9, min(1e9, plain))))
                )

        return Session(base=hold(base), run=randomizer.randomize, pairs=pairs)

    return started


_NARROW = sorted(set(TYPES) - {"long double"})


def client(draw: random.Random, _: Path) -> Session:
    """A client with a budget, and one that remembers."""
    memoized = draw.random() < 0.5
    kinds = ["rappor", "l_osue", "longitudinal_olh"] if memoized else ["grr", "oue", "olh"]
    oracle = _made(draw.choice(kinds))
    if draw.random() < 0.5:  # as it comes over a wire
        oracle = local.randomizer_from_json(oracle.describe())

    def run(value: object) -> object:
        if memoized:
            held = local.MemoizedClient(oracle, budget=4)
            held.memoize(value)
            return held.report(), held.guarantee
        made = local.BudgetedClient(oracle, budget=4)
        return made.report(value), made.guarantee

    def pairs() -> Iterator[Pair]:
        for code in range(CATEGORIES):
            yield Pair(f"{code}", code, ordinary=True)
        while True:
            code, kind = draw.randrange(CATEGORIES), draw.choice(_NARROW)
            yield Pair(f"{code} as {kind}", TYPES[kind](code))

    return Session(base=1, run=run, pairs=pairs)


def one_answer(draw: random.Random, _: Path) -> Session:
    """One category at a time."""

    def pairs() -> Iterator[Pair]:
        for code in range(CATEGORIES):
            yield Pair(f"{code}", code, ordinary=True)
        while True:
            code, kind = draw.randrange(CATEGORIES), draw.choice(_NARROW)
            yield Pair(f"{code} as {kind}", TYPES[kind](code))

    return Session(base=1, run=_made("grr").release, pairs=pairs)


def many_columns(draw: random.Random, _: Path) -> Session:
    """Numbers in several columns: beyond the bounds they are cut."""
    columns = {"a": (0, 4), "b": (-1, 1)}
    randomizer = local.multidimensional_mean(columns=columns, epsilon=1)
    many = draw.randrange(1, 5)
    base = {name: [draw.uniform(*ends) for _ in range(many)] for name, ends in columns.items()}

    def changed(value: object) -> Any:
        return {**base, "a": [value, *base["a"][1:]]}

    def pairs() -> Iterator[Pair]:
        while True:
            label = draw.choice(_NUMERIC)
            if label == "long double":  # NumPy would make long doubles of all
                continue
            meant = ordinary_number(STRANGE[label])
            assert meant is not None
            yield Pair(label, changed(STRANGE[label]), (changed(max(-1e9, min(1e9, meant))),))

    return Session(base=base, run=randomizer.randomize, pairs=pairs)


def grid(draw: random.Random, _: Path) -> Session:
    """Labels of several attributes, of one client."""
    randomizer = local.hybrid_grid(
        {"a": _domain(), "b": _domain()}, epsilon=1, expected_clients=100
    )
    base = {"a": [1], "b": [2]}

    def pairs() -> Iterator[Pair]:
        for code in range(CATEGORIES):
            yield Pair(f"{code}", {**base, "a": [code]}, ordinary=True)
        while True:
            code, kind = draw.randrange(CATEGORIES), draw.choice(["int8", "uint64"])
            yield Pair(f"{code} as {kind}", {**base, "a": [TYPES[kind](code)]})

    return Session(base=base, run=randomizer.randomize, pairs=pairs)


def texts(draw: random.Random, _: Path) -> Session:
    """Texts of clients: what is no text of bytes is refused there; the others are cut."""
    randomizer = local.heavy_hitters(length=4, epsilon=2)
    base: list[Any] = [draw.choice(["a", "b", "ab", "abcd"]) for _ in range(draw.randrange(1, 5))]

    def pairs() -> Iterator[Pair]:
        for word in ("a", "", "zz"):
            yield Pair(word, [word, *base[1:]], ordinary=True)
        yield Pair("bytes", [b"a", *base[1:]])
        yield Pair("NumPy text", [np.str_("a"), *base[1:]])

    return Session(base=base, run=randomizer.randomize, pairs=pairs)


def _named(name: str) -> str:
    return f"discreet.{'randomized_response' if name == 'grr' else f'local.{name}'}.randomize"


DOORS: list[Door] = [
    *(
        Door(f"local {name}", (_named(name),), codes(name), pairs=20)
        for name in (*ORACLES, *RANGES)
    ),
    *(
        Door(f"local {name}", (f"discreet.local.{name}.randomize",), numbers(name), pairs=20)
        for name in MEANS
    ),
    Door(
        "local clients",
        (
            "discreet.local.BudgetedClient.report",
            "discreet.local.MemoizedClient.memoize",
            *(
                f"discreet.local.{name}.remember"
                for name in ("rappor", "l_osue", "longitudinal_olh")
            ),
            "discreet.local.randomizer_from_json.randomize",
        ),
        client,
    ),
    Door("randomized response", ("discreet.randomized_response.release",), one_answer),
    Door("local columns", ("discreet.local.multidimensional_mean.randomize",), many_columns),
    Door("local grid", ("discreet.local.hybrid_grid.randomize",), grid),
    Door("local texts", ("discreet.local.heavy_hitters.randomize",), texts),
]
