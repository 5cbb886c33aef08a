"""Propose, test, release: the exact law of all neighbors, the threshold, what is refused."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.noise.random_source import seeded_rng
from tests.distributions import frequency


def median(**options):
    given = {
        "bound": 2,
        "lower": 0,
        "upper": 100,
        "public_rows": 99,
        "epsilon": 1,
        "delta": 1e-3,
        **options,
    }
    return propose_test_release("median", **given)


def law(mechanism, data):
    """P(None), and the law of the rounded and clipped answer."""
    codes = np.array(sorted(data))
    span = mechanism.column.span
    room = mechanism.bound - (not mechanism.statistic.whole)
    distance = mechanism.statistic.distance(codes, span, bound=room)
    passes = float(mechanism.test_noise.sf(mechanism.threshold - distance))
    center = math.floor(mechanism.statistic.value(codes))
    scale = float(mechanism.bound / mechanism.answer)
    edges = np.arange(span) + 0.5 - center
    below = np.where(edges < 0, np.exp(edges / scale) / 2, 1 - np.exp(-edges / scale) / 2)
    cells = np.diff(np.concatenate(([0.0], below, [1.0])))
    return np.append(passes * cells, 1 - passes)


@pytest.mark.parametrize("name", ["median", "mean"])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_all_neighbors_keep_the_guarantee(name, bound):
    mechanism = propose_test_release(
        name, bound=bound, lower=0, upper=4, public_rows=4, epsilon=2, delta=0.05, granularity=1
    )
    factor = math.exp(2)
    laws = {
        data: law(mechanism, data) for data in itertools.combinations_with_replacement(range(5), 4)
    }
    worst = 0.0
    for data, p in laws.items():
        for i, v in itertools.product(range(4), range(5)):
            q = laws[tuple(sorted((*data[:i], v, *data[i + 1 :])))]
            worst = max(worst, float(np.maximum(p - factor * q, 0).sum()))
    assert worst <= 0.05 * (1 + 1e-9)
    if bound == 1 and name == "median":
        assert worst > 0.01  # delta is spent where the answer moves by more than the bound


def test_the_threshold_is_the_smallest():
    mechanism = median()
    noise = mechanism.test_noise
    assert noise.sf(mechanism.threshold) <= 1e-3 < noise.sf(mechanism.threshold - 1)


def test_certified_and_not_for_a_smaller_delta():
    good = median()
    assert good.certify().holds

    class Careless(type(good)):
        __slots__ = ()
        threshold = good.threshold - 1

    names = [field.name for field in dataclasses.fields(good)]
    with pytest.raises(NotCertified):
        Careless(**{name: getattr(good, name) for name in names}).certify()


def test_quiet_data_pass_and_wild_data_do_not():
    quiet = np.linspace(40, 60, 99)
    wild = np.where(np.arange(99) < 50, 0.0, 100.0)
    mechanism = median()
    found = [mechanism.release(quiet, rng=seeded_rng(i)) for i in range(200)]
    answers = [one for one in found if one is not None]
    distance = mechanism.statistic.distance(
        mechanism.column.sorted(quiet), mechanism.column.span, bound=mechanism.bound
    )
    passes = float(mechanism.test_noise.sf(mechanism.threshold - distance))
    assert frequency(len(answers), 200, passes)
    nothing = [mechanism.release(wild, rng=seeded_rng(i)) for i in range(200)]
    lucky = float(mechanism.test_noise.sf(mechanism.threshold))
    assert frequency(200 - nothing.count(None), 200, lucky)
    low, high = mechanism.interval(0.999999)
    sure = median(epsilon=20)
    assert (
        abs(sure.release(quiet, rng=seeded_rng(1)) - 50) < sure.interval(0.999999)[1] < high == -low
    )
    assert mechanism.std == pytest.approx(math.sqrt(2) * 4)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        median(relation=NeighboringRelation.ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="step"):
        median(bound=Fraction(1, 10**12))
    with pytest.raises(InvalidArgument, match="test"):
        median(test=1)
