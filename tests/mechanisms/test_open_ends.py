"""Levels, shares and counts: their open ends are refused by every mechanism that takes them."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bin_statistics import BinnedColumn
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.data_dependent._smooth_statistics import SmoothVariance, TrimmedMean
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.personalized.exponential_mechanism import personalized_quantile
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace

ONE = {"sensitivity": 1, "epsilon": 1}
UNIT = {"lower": 0, "upper": 1, "epsilon": 1}
ROWS = {**UNIT, "public_rows": 9}
MENU = {"a": discreet.pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)}

INTERVALS = {
    "laplace": discreet.laplace(**ONE).interval,
    "bounded": bounded_laplace(**UNIT, sensitivity=1).interval,
    "propose": propose_test_release(**ROWS, bound=1, delta=1e-6).interval,
    "quantile": private_quantile(**UNIT).interval,
    "choice": lambda level: discreet.exponential_mechanism(**ONE).interval(level, candidates=3),
    "smooth": smooth_sensitivity(**ROWS).interval,
    "threshold": lambda level: discreet.above_threshold(**ONE).interval(level, queries=3),
    "weighted": weighted_sensitivity(**ROWS, delta=1e-6).interval,
}


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_have_a_level_between_zero_and_one(name):
    interval = INTERVALS[name]
    for level in (0, 1, -0.1, 1.1):
        with pytest.raises(InvalidArgument, match="confidence"):
            interval(level)
    narrow, wide = (interval(level) for level in (0.01, 0.99))
    assert wide[0] <= narrow[0] <= 0 <= narrow[1] < wide[1]


NEED_DELTA = {
    "gaussian": lambda d: discreet.gaussian(**ONE, delta=d),
    "grafted": lambda d: grafted(**ONE, delta=d),
    "partition": lambda d: partition_selection(groups=1, epsilon=1, delta=d, method="laplace"),
    "propose": lambda d: propose_test_release(**ROWS, bound=1, delta=d),
    "truncated": lambda d: truncated_laplace(**ONE, delta=d),
    "weighted": lambda d: weighted_sensitivity(**ROWS, delta=d),
}
MAY_HAVE_DELTA = {
    "best": lambda d: best_additive_noise(**ONE, delta=d),
    "bounded": lambda d: bounded_laplace(**UNIT, sensitivity=1, delta=d),
    "laplace": lambda d: discreet.laplace(**ONE, delta=d),
    "smooth": lambda d: smooth_sensitivity(**ROWS, delta=d),
}


@pytest.mark.parametrize("name", NEED_DELTA | MAY_HAVE_DELTA)
def test_deltas_are_below_one(name):
    make = (NEED_DELTA | MAY_HAVE_DELTA)[name]
    make(1e-3)
    for delta in (1, -0.1, 1.5):
        with pytest.raises(InvalidArgument, match="delta"):
            make(delta)
    if name in NEED_DELTA:
        with pytest.raises(InvalidArgument, match="delta"):
            make(0)
    else:
        make(0)


OPEN = {
    "test": lambda x: propose_test_release(**ROWS, bound=1, delta=1e-6, test=x),
    "quantile": lambda x: private_quantile(x, **UNIT),
    "levels": lambda x: private_quantiles([x], **UNIT),
}
CLOSED = {
    "counts": lambda x: BinnedColumn(edges=(0.0, 1.0), counts=(3,)).quantile(x),
    "rows": lambda x: TrimmedMean.quantile(5, x),
    "personal": lambda x: personalized_quantile(MENU, quantile=x, lower=0, upper=4),
    "stretched": lambda x: stretched_quantile(MENU, quantile=x, lower=0, upper=4),
}


def test_shares_with_and_without_their_ends():
    for make in (OPEN | CLOSED).values():
        make(Fraction(1, 2))
        for share in (-0.1, 1.1):
            with pytest.raises(InvalidArgument):
                make(share)
    for make in OPEN.values():
        for share in (0, 1):
            with pytest.raises(InvalidArgument):
                make(share)
    for make in CLOSED.values():
        for share in (0, 1):
            make(share)
    mean_without_bounds(unit=1, epsilon=1, tail=Fraction(1, 4))
    with pytest.raises(InvalidArgument):
        mean_without_bounds(unit=1, epsilon=1, tail=0)


COUNTS = {
    "rows of a variance": (lambda n: private_variance(**UNIT, public_rows=n), 2),
    "rows of a deviation": (lambda n: private_std(**UNIT, public_rows=n), 2),
    "rows of any variance": (lambda n: SmoothVariance(public_rows=n), 2),
    "groups": (lambda n: partition_selection(groups=n, epsilon=1, delta=1e-3, method="laplace"), 1),
    "minimum": (
        lambda n: partition_selection(groups=1, epsilon=1, delta=1e-3, minimum=n, method="laplace"),
        1,
    ),
    "units": (
        partition_selection(groups=1, epsilon=1, delta=1e-3, method="laplace").chance,
        0,
    ),
    "trim": (lambda n: smooth_sensitivity("trimmed_mean", **ROWS, trim=n), 0),
    "order": (lambda n: smooth_sensitivity(**ROWS, order=n), 2),
    "below": (lambda n: TrimmedMean(public_rows=5, below=n, above=0), 0),
    "above": (lambda n: TrimmedMean(public_rows=5, below=0, above=n), 0),
    "kept": (lambda n: TrimmedMean(public_rows=n, below=2, above=2), 5),
    "lower personal bounds": (
        lambda n: personalized_quantile(MENU, lower=n, upper=n + 1),
        -(2**62),
    ),
    "lower stretched bounds": (lambda n: stretched_sum(MENU, lower=n, upper=n + 1), -(2**40)),
    "positives": (lambda n: discreet.above_threshold(**ONE, positives=n), 1),
    "candidates": (lambda n: discreet.exponential_mechanism(**ONE).interval(0.9, candidates=n), 1),
    "queries": (lambda n: discreet.above_threshold(**ONE).interval(0.9, queries=n), 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_have_a_least_one(name):
    make, least = COUNTS[name]
    make(least)
    with pytest.raises(InvalidArgument):
        make(least - 1)


def test_a_lomax_law_of_order_two_has_no_variance():
    assert math.isinf(smooth_sensitivity(**ROWS, order=2).std)
    third = smooth_sensitivity(**ROWS, order=3)
    x = np.linspace(0, 5_000, 1_000_001)
    density = 1.5 * (1 + x) ** -4.0
    square = 2 * (x * x * density).sum() * (x[1] - x[0])
    assert third.family.std == pytest.approx(math.sqrt(square), rel=1e-3)
