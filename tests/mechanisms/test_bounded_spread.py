"""Variance and standard deviation: sensitivities over all neighbors, releases in their domain."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.noise.random_source import seeded_rng
from tests.distributions import frequency

HOW = ["clamp", "fold", "bounded"]


def moved(made):
    """The sensitivity that the noise was made for, in the unit of the statistic."""
    inner = made.inner
    if hasattr(inner, "outputs"):
        return inner.outputs.shift * inner.column.step
    return float(1 / inner.inner.guarantee.event.scale) * inner.inner.reals.scale


def neighbors(rows, span):
    """All data of so many rows, and those that differ in one of them."""
    for data in itertools.product(range(span + 1), repeat=rows):
        for i, v in itertools.product(range(rows), range(span + 1)):
            yield data, (*data[:i], v, *data[i + 1 :])


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
@pytest.mark.parametrize("how", ["clamp", "bounded"])
def test_sensitivities_are_attained_and_never_passed(rows, how):
    span = 4 if rows < 5 else 2
    options = {
        "lower": 0,
        "upper": span,
        "public_rows": rows,
        "epsilon": 1,
        "method": how,
        "granularity": 1,
    }
    pairs = list(neighbors(rows, span))
    one, other = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    variance = np.abs(one.var(axis=1, ddof=1) - other.var(axis=1, ddof=1)).max()
    deviation = np.abs(one.std(axis=1, ddof=1) - other.std(axis=1, ddof=1)).max()
    assert variance == pytest.approx(span**2 / rows)
    assert deviation == pytest.approx(span / math.sqrt(rows))
    found = private_variance(**options), private_std(direct=True, **options)
    for made, true in zip(found, (variance, deviation), strict=True):
        assert true - 1e-12 <= moved(made) <= true * (1 + 1e-5)


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_domains_are_the_largest_values(rows):
    data = np.array(list(itertools.product((0, 3), repeat=rows)), dtype=float)
    options = {"lower": 0, "upper": 3, "public_rows": rows, "epsilon": 1}
    top = private_variance(**options).inner.upper
    assert top == pytest.approx(data.var(axis=1, ddof=1).max(), rel=1e-12)
    top = private_std(direct=True, **options).inner.upper
    assert top == pytest.approx(data.std(axis=1, ddof=1).max(), rel=1e-12)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("direct", [False, True])
def test_releases_are_never_out_of_domain(how, direct):
    values = np.full(20, 3.0)
    made = private_std(lower=0, upper=10, public_rows=20, epsilon=0.05, method=how, direct=direct)
    bits = seeded_rng(1)
    drawn = [made.release(values, rng=bits) for _ in range(300)]
    assert all(0 <= value <= math.sqrt(25 * 20 / 19) * (1 + 1e-9) for value in drawn)
    assert made.certify().holds
    assert made.guarantee.relation is NeighboringRelation.REPLACE_ONE


def test_variances_are_released_around_the_truth():
    values = np.arange(1000) / 100
    made = private_variance(lower=0, upper=10, public_rows=1000, epsilon=1000)
    assert made.release(values) == pytest.approx(values.var(ddof=1), abs=1e-2)
    assert private_std(lower=0, upper=10, public_rows=1000, epsilon=1000).release(
        values
    ) == pytest.approx(values.std(ddof=1), abs=1e-2)
    direct = private_std(lower=0, upper=10, public_rows=1000, epsilon=1000, direct=True)
    assert direct.release(values) == pytest.approx(values.std(ddof=1), abs=1e-2)


def test_how_often_clamping_acts_is_known():
    """Half of exp(-variance * rows * epsilon / width^2), as published for negative variances."""
    values = np.tile([0.0, 2.0], 10)
    made = private_variance(lower=0, upper=10, public_rows=20, epsilon=0.5)
    bits = seeded_rng(3)
    at_zero = sum(made.release(values, rng=bits) == 0 for _ in range(2500))
    chance = math.exp(-values.var(ddof=1) * 20 * 0.5 / 100) / 2
    assert frequency(at_zero, 2500, chance)
    assert not frequency(at_zero, 2500, chance * 0.8)


def test_intervals_hold_for_roots():
    made = private_std(lower=0, upper=10, public_rows=10, epsilon=1)
    low, high = made.interval(0.9)
    assert (low, high) == (-math.sqrt(made.inner.interval(0.9)[1]), -low)
    values = np.tile([0.0, 1.0], 5)
    bits = seeded_rng(4)
    drawn = np.array([made.release(values, rng=bits) for _ in range(500)])
    assert np.mean(np.abs(drawn - values.std(ddof=1)) <= high) > 0.88


def test_refused():
    with pytest.raises(InvalidArgument, match="rows"):
        private_variance(lower=0, upper=1, public_rows=1, epsilon=1)
    with pytest.raises(InvalidArgument, match="method"):
        private_std(lower=0, upper=1, public_rows=4, epsilon=1, method="wrap")
    with pytest.raises(OutOfDomain):
        private_variance(lower=0, upper=1, public_rows=4, epsilon=1).release([0.1, 0.2])


def test_rounding_of_many_rows_is_paid_for():
    made = private_variance(lower=0, upper=1, public_rows=10**9, epsilon=1)
    assert moved(made) > Fraction(1, 10**9) + Fraction(1, 1 << 52)
