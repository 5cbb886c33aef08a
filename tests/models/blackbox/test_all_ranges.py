"""Every kind of ranges, drawn at random, against neighbors, odd inputs and hostile functions."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.certificate import certify_drawn
from discreet.models.blackbox.choose import AdditiveMethod, additive_methods
from discreet.models.blackbox.interval_fit import IntervalClip
from discreet.models.blackbox.lipschitz_fit import TubeClip
from discreet.models.blackbox.metrics import CellMetric, Records, Truncated, UnitCount, WindowGroups
from discreet.models.blackbox.output_ranges import LeaveOneOutRange
from discreet.models.blackbox.surrogates import AdditiveClip, CountTube


def drawn_metric(rng, scale, n):
    level = "record" if rng.random() < 0.6 else "attribute"
    missing = float(rng.normal() * scale)
    metric = [
        Records(level=level, missing=missing),
        CellMetric(cuts=(-0.5 * scale, 0.5 * scale), level=level, missing=missing),
        Truncated(
            width=float(rng.random() * scale + 1e-9),
            combine="sum" if rng.random() < 0.5 else "largest",
            level=level,
            missing=missing,
        ),
    ][int(rng.integers(3))]
    if level == "record" and rng.random() < 0.3:
        return WindowGroups(length=int(rng.integers(1, n + 2)), parts_of=metric)
    return metric


def drawn_ranges(kind, rng):
    """A model of this kind with parameters of all sizes; None for metrics that it cannot have."""
    n, d, many = (int(rng.integers(1, most)) for most in (7, 4, 15))
    scale = 10.0 ** rng.integers(-3, 7)
    inputs = rng.normal(size=(many, n, d)) * scale
    metric = drawn_metric(rng, scale, n)
    if kind is CountTube or (kind is TubeClip and rng.random() < 0.5):
        metric = UnitCount(missing=metric.missing)
    width = int(2 ** rng.uniform(0, 20))
    values = rng.integers(-4 * width - 1, 4 * width + 2, many)
    slope = int(rng.integers(0, width + 1)) if rng.random() < 0.6 else width
    sizes = {"width": width, "step": Fraction(2) ** int(rng.integers(-20, 5))}
    if kind is IntervalClip:
        if not metric.discrete:
            return None
        return inputs, metric, kind.fitted(anchors=inputs, y=values, metric=metric, **sizes)
    sizes["slope"] = slope
    if kind is AdditiveClip:
        shared = bool(rng.integers(2))
        fitted = kind.fitted(inputs=inputs, y=values, metric=metric, shared=shared, **sizes)
    elif kind is CountTube:
        fitted = kind.fitted(inputs=inputs, y=values, missing=metric.missing, **sizes)
    else:
        fitted = kind(anchors=inputs, centers=values, metric=metric, **sizes)
    return inputs, metric, fitted


@pytest.mark.parametrize(
    "kind", [LeaveOneOutRange, TubeClip, AdditiveClip, CountTube, IntervalClip]
)
def test_a44_drawn_models_of_every_kind_keep_their_width(kind):
    rng = np.random.default_rng(11)
    tight = tried = 0
    for _ in range(60):
        try:
            found = drawn_ranges(kind, rng)
        except InvalidArgument:  # too many steps for 64 bits
            continue
        if found is None:
            continue
        inputs, metric, ranges = found
        certificate = certify_drawn(ranges, metric, inputs, pairs=150, seed=tried).demand()
        low, high = ranges.ranges(inputs)
        assert ranges.hull[0] <= low.min()
        assert high.max() <= ranges.hull[1]
        tight += certificate.largest == ranges.width
        tried += 1
    assert tried > 15
    assert tight > tried / 4  # the widths are no exaggeration


def test_sums_are_offered_where_they_are_quick():
    widths = [(512, Fraction(1, 4)), (512, Fraction(1, 2))]
    few = additive_methods(Records(), widths, columns=4)
    assert [one.shared for one in few] == [True, True, False, False]
    assert all(one.shared for one in additive_methods(Records(), widths, columns=100))
    assert len(additive_methods(UnitCount(), widths, columns=4)) == 2
    assert additive_methods(UnitCount(), widths, columns=100) == []


def test_sums_are_named_and_built():
    rng = np.random.default_rng(12)
    inputs = rng.integers(0, 50, (40, 3, 1)).astype(float)
    said = inputs.sum(axis=(1, 2)) / 4
    for metric, kind, words in (
        (Records(), AdditiveClip, "sum of records, alike, slope 1 of the width"),
        (UnitCount(), CountTube, "sum of counts, slope 1 of the width"),
    ):
        one = AdditiveMethod(metric=metric, slope=64, width=64, step=Fraction(1, 4), shared=True)
        assert one.name == words
        ranges = one.build(inputs, said)
        assert isinstance(ranges, kind)
        assert np.abs(ranges.clip(said, inputs) / 4 - said).max() <= 0.5
