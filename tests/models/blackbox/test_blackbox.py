"""Hostile functions and absurd inputs: the range is never broken, and nothing tells (A17, A50)."""

import sys
import threading
import time
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox import Truncated
from discreet.models.blackbox.mechanism import (
    BlackBox,
    BlackBoxMechanism,
    ExpectedError,
    InputShape,
    make_noise,
)
from discreet.models.blackbox.metrics import Adjacency
from discreet.models.blackbox.output_ranges import LeaveOneOutRange

N = 5
WIDTH = 16
PUBLIC = np.random.default_rng(0).uniform(0, 4, size=(12, N))


@dataclass(frozen=True)
class Quiet:
    """No noise: what comes out is the clipped answer."""

    guarantee: object = None

    def release(self, value: int, *, rng: object = None) -> int:
        del rng
        return value


def mechanism(function: object, *, seconds: float | None = None) -> BlackBoxMechanism:
    """A small one, with centers that no function asked for."""
    shape = InputShape.of(PUBLIC, bounds=(0, 4))
    centers = np.random.default_rng(1).integers(-50, 50, size=len(PUBLIC))
    model = LeaveOneOutRange(
        anchors=PUBLIC,
        centers=centers,
        slope=12,
        width=WIDTH,
        metric=Truncated(width=1.0),
        step=Fraction(1, 4),
    )
    made = BlackBoxMechanism(
        box=BlackBox.of(function, shape=shape, seconds=seconds),
        model=model,
        noise=make_noise(WIDTH, epsilon=1),
        posterior=None,
        expected=ExpectedError(error=1, bias=1, noise=1, constant=1),
        chosen="by hand",
        adjacency=Adjacency.of("record"),
    )
    return replace(made, noise=Quiet(guarantee=made.guarantee))


def raising(error: BaseException):
    def function(x):
        raise error

    return function


class Lies:
    """Not what it seems."""

    def __float__(self):
        raise RuntimeError("no")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no")


def recursing(x):
    return recursing(x)


def mutating(x):
    x[:] = 1e9
    return 1e9


def warning(x):
    warnings.warn("about the input", stacklevel=1)
    return float(np.log(-np.abs(x.sum())))


HOSTILE = {
    "nan": lambda x: float("nan"),
    "inf": lambda x: float("inf"),
    "minus inf": lambda x: -np.inf,
    "huge": lambda x: 1e300,
    "minus huge": lambda x: -1e308,
    "tiny": lambda x: 5e-324,
    "whole": lambda x: 10**400,
    "none": lambda x: None,
    "text": lambda x: "1e9",
    "bytes": lambda x: b"7",
    "complex": lambda x: 1j,
    "vector": lambda x: x * 1e9,
    "empty": lambda x: [],
    "one": lambda x: np.array([[1e9]]),
    "object": lambda x: Lies(),
    "ragged": lambda x: [[1], [1, 2]],
    "raises": raising(ValueError("secret")),
    "assertion": raising(AssertionError()),
    "exit": raising(SystemExit(3)),
    "exits": lambda x: sys.exit(int(x[0])),
    "generator": raising(GeneratorExit()),
    "interrupt": raising(KeyboardInterrupt()),
    "memory": raising(MemoryError()),
    "recursion": recursing,
    "mutates": mutating,
    "warns": warning,
    "clock": lambda x: time.time_ns() % 1000 - 500.0,
    "random": lambda x: np.random.default_rng().normal() * 100,
    "large where": lambda x: 1e300 if x[0] > 2 else -1e300,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a17_hostile_answers_stay_in_the_range(name: str) -> None:
    made = mechanism(HOSTILE[name])
    for x in np.random.default_rng(2).uniform(0, 4, size=(20, N)):
        low, high = made.model.ranges(x[None])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = made.answer(x)
        assert low[0] <= found.noisy * 4 <= high[0]


def test_a17_what_is_no_number_is_the_middle_of_the_range() -> None:
    x = PUBLIC[0]
    low, high = mechanism(np.sum).model.ranges(x[None])
    middle = (low[0] + (high[0] - low[0]) // 2) / 4
    for name in ("nan", "inf", "minus inf", "none", "raises", "exit", "vector", "text", "complex"):
        assert mechanism(HOSTILE[name]).answer(x).noisy == middle


def test_a35_neighbors_differ_by_at_most_the_width_for_a_function_that_knows_both() -> None:
    """The function pulls one input up and its neighbor down as far as it can."""
    draw = np.random.default_rng(3)
    up, down = mechanism(lambda x: 1e300), mechanism(lambda x: -1e300)
    reached = 0.0
    for _ in range(300):
        x = draw.uniform(-1, 5, size=N)
        other = x.copy()
        other[draw.integers(N)] = draw.choice([np.nan, np.inf, -1e300, 0.0, 2.2, 4.0])
        gaps = [
            abs(a.answer(x).noisy - b.answer(other).noisy)
            for a, b in ((up, down), (down, up), (up, up))
        ]
        reached = max(reached, *gaps)
    assert reached * 4 <= WIDTH
    assert reached * 4 >= WIDTH - 1, "the test must come near what it forbids"


@pytest.mark.parametrize(
    "entry", [np.nan, np.inf, -np.inf, None, "x", "", 1e308, -1e308, 10**400, object(), 1 + 2j]
)
def test_a35_any_entry_gives_a_finite_answer(entry: object) -> None:
    rows = [entry, *PUBLIC[0][1:].tolist()]
    assert np.isfinite(mechanism(np.sum).answer(rows).noisy)
    assert np.isfinite(mechanism(lambda x: float(np.prod(x))).answer([entry] * N).noisy)


def test_a50_missing_entries_count_as_a_public_one() -> None:
    asked = []
    made = mechanism(lambda x: asked.append(x.copy()) or 0.0)
    made.answer([np.nan, np.inf, 9.0, -3.0, 1.0])
    assert asked[0][:2] == pytest.approx(np.median(PUBLIC, axis=0)[:2])
    assert asked[0][2:].tolist() == [4.0, 0.0, 1.0]


@pytest.mark.parametrize("rows", [[1.0] * (N + 1), [[1.0] * N], 3.0, [], [[1.0], [1.0, 2.0]]])
def test_a50_only_the_public_shape_is_refused_and_no_value_is_shown(rows: object) -> None:
    with pytest.raises(OutOfDomain) as caught:
        mechanism(np.sum).answer(rows)
    assert "1.0" not in str(caught.value)
    assert caught.value.__context__ is None or "1.0" not in str(caught.value.__context__)


def test_a50_a_function_that_never_ends_is_not_waited_for() -> None:
    never = threading.Event()
    made = mechanism(lambda x: never.wait() or 1e9, seconds=0.05)
    low, high = made.model.ranges(PUBLIC[:1])
    assert made.answer(PUBLIC[0]).noisy * 4 == low[0] + (high[0] - low[0]) // 2
    never.set()
    assert "lets no other thread run" in " ".join(made.does_not_protect)
    assert "How long the function takes, and" in " ".join(mechanism(np.sum).does_not_protect)


def test_a50_a_function_in_time_is_heard() -> None:
    assert (
        mechanism(np.sum, seconds=0.2).answer(PUBLIC[0]).noisy
        == mechanism(np.sum).answer(PUBLIC[0]).noisy
    )


def test_a50_what_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="predict"):
        mechanism(3)
    with pytest.raises(InvalidArgument, match="seconds"):
        mechanism(np.sum, seconds=-1)
