"""The probes find the known leaks of floating-point noise, and nothing in integer noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.audit._attack import NO_BIT, lowest_bit
from discreet.audit.cases.sparse_vector import laplace_integers
from discreet.audit.side_channels import precision_attack, relate, timing_attack
from discreet.core.errors import InvalidArgument

SCALES = [0.1, 1.0, 10.0, 1000.0]


def seeded(draw):
    seeds = itertools.count(77)
    return lambda value, n: draw(value, n, np.random.default_rng(next(seeds)))


def test_lowest_bit() -> None:
    values = np.array([1.0, 3.0, 0.25, -0.75, 96.0, 0.0, 2.0**-1074, math.nan, math.inf])
    expected = [0, 0, -2, -2, 5, NO_BIT, -1074, NO_BIT, NO_BIT]
    assert lowest_bit(values).tolist() == expected


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_float_noise_is_separated_by_its_low_bits(kind: str, scale: float) -> None:
    run = seeded(lambda x, n, rng: x + getattr(rng, kind)(0, scale, n))
    found = precision_attack(run, 0.0, scale, epsilon=1.0)
    assert found.separates
    assert found.epsilon > 3
    assert max(found.left_only, found.right_only) > 0.01


@pytest.mark.parametrize("scale", SCALES)
def test_noise_on_a_public_grid_is_not_separated(scale: float) -> None:
    grid = 2.0 ** math.floor(math.log2(scale) - 10)
    steps = scale / grid
    run = seeded(lambda x, n, rng: grid * (round(x / grid) + laplace_integers(steps, n, rng)))
    found = precision_attack(run, 0.0, scale, epsilon=1.0)
    assert not found.separates
    assert found.epsilon == 0
    assert max(found.left_only, found.right_only) < 1e-3


def test_what_is_not_one_number_per_draw_is_refused() -> None:
    """Coordinates of one output counted as draws prove too much, or nothing once they exceed n."""
    rng = np.random.default_rng(1)
    for shape in (lambda n: (n, 2), lambda n: n // 4):
        with pytest.raises(InvalidArgument, match="run must return 1000 single numbers"):
            precision_attack(
                lambda x, n, shape=shape: x + rng.laplace(0, 1, shape(n)),
                0.0,
                1.0,
                epsilon=1.0,
                samples=1000,
            )
    with pytest.raises(InvalidArgument, match="failure"):
        precision_attack(lambda x, n: np.full(n, x), 0.0, 1.0, epsilon=1.0, failure_probability=0)
    with pytest.raises(InvalidArgument, match="epsilon"):
        precision_attack(lambda x, n: np.full(n, x), 0.0, 1.0, epsilon=math.nan)


def test_time_that_follows_the_noise_is_told() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.exponential(1, 2000)
    follows = sizes + rng.exponential(3, 2000)
    assert relate(follows, sizes, failure_probability=1e-6).tells
    assert relate(-follows, sizes, failure_probability=1e-6).tells
    assert not relate(rng.exponential(3, 2000), sizes, failure_probability=1e-6).tells


def test_constant_columns_tell_nothing() -> None:
    assert relate([1.0] * 20, list(range(20)), failure_probability=1e-6).correlation == 0


@pytest.mark.parametrize("follows", [True, False])
def test_timing_probe_reads_the_clock_around_each_draw(follows: bool) -> None:
    rng = np.random.default_rng(9)
    now = 0

    def draw() -> list[int]:
        nonlocal now
        size = int(rng.geometric(0.01))
        now += size if follows else int(rng.geometric(0.01))
        return [size, -size]

    found = timing_attack(draw, repetitions=400, clock=lambda: now)
    assert found.repetitions == 400
    assert found.tells == follows
    assert (found.correlation == pytest.approx(1)) == follows
