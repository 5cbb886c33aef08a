"""The surrogate between anchors, and the tube around it."""

import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.lipschitz_fit import Extension, TubeClip, fit_centers
from discreet.models.blackbox.metrics import ONE, Records, Truncated, UnitCount, WindowGroups


@pytest.mark.parametrize(
    "metric",
    [Records(), Truncated(width=0.7), UnitCount(), WindowGroups(length=2, parts_of=Records())],
    ids=repr,
)
def test_a31_the_surrogate_is_lipschitz_for_any_centers(metric):
    rng = np.random.default_rng(1)
    surrogate = Extension(
        anchors=rng.integers(0, 5, (8, 4, 1)),
        centers=rng.integers(-500, 500, 8),
        slope=37,
        metric=metric,
    )
    inputs = rng.integers(0, 5, (300, 4, 1)) + rng.choice([0, 0.25], (300, 4, 1))
    apart = metric.distances(inputs, inputs)
    for ends in (*surrogate.ends(inputs), surrogate.doubled(inputs) // 2):
        assert (np.abs(ends[:, None] - ends) <= 37 * apart + 1).all()  # halves: one fine unit
    middle = surrogate.middle(inputs)
    assert (np.abs(middle[:, None] - middle) <= -(-37 * apart // ONE)).all()


def test_a31_fitted_centers_are_met_and_any_slope_is_used():
    rng = np.random.default_rng(2)
    anchors = np.unique(rng.integers(0, 3, (20, 4)), axis=0)[..., None]
    metric = Records()
    apart = metric.distances(anchors, anchors) / ONE
    fit = fit_centers(np.rint(rng.normal(size=len(anchors)) * 99), apart, 40)
    centers = np.floor(fit.centers).astype(np.int64)  # floors keep whole differences
    surrogate = Extension(anchors=anchors, centers=centers, slope=40, metric=metric)
    upper, lower = surrogate.ends(anchors)
    assert (upper == lower).all()
    assert (surrogate.middle(anchors) == centers).all()


def test_e1_two_trained_areas_are_met_exactly_if_their_difference_allows():
    metric = Records()
    anchors = np.array([[0, 0, 0, 0], [0, 1, 1, 0]])[..., None]
    areas = np.array(list(itertools.product(range(3), repeat=4)))[..., None]
    ranks = metric.distances(areas, anchors).min(axis=1) // ONE
    for gap, met in ((20, True), (21, False)):
        apart = metric.distances(anchors, anchors) / ONE
        fit = fit_centers([0, gap], apart, 10)
        assert (fit.loss == 0) == met
        centers = np.floor(fit.centers).astype(np.int64)
        surrogate = Extension(anchors=anchors, centers=centers, slope=10, metric=metric)
        values = surrogate.middle(areas)
        near = metric.distances(areas, areas) <= ONE
        assert np.abs(values[:, None] - values)[near].max() <= 10
        nearest = np.abs(values[:, None] - centers)
        assert (nearest.min(axis=1) <= 10 * ranks).all()


@pytest.mark.parametrize(("slope", "width"), [(5, 5), (5, 12), (0, 3), (7, 8)])
def test_a37_the_tube_over_single_events_exhaustively(slope, width):
    rng = np.random.default_rng(3)
    metric = UnitCount()
    inputs = np.array(list(itertools.product(range(7), repeat=3)))[..., None]
    apart = metric.distances(inputs, inputs)
    for _ in range(20):
        tube = TubeClip(
            anchors=rng.integers(0, 7, (4, 3, 1)),
            centers=rng.integers(-40, 40, 4),
            slope=slope,
            width=width,
            metric=metric,
        )
        low, high = tube.ranges(inputs)
        assert (low <= high).all()
        gaps = high[:, None] - low
        assert gaps[apart <= ONE].max() <= width
        floor, ceiling = tube.hull
        assert floor <= low.min()
        assert high.max() <= ceiling
        # Only the bare surrogate protects far inputs in proportion.
        assert tube.proportional == (slope == width)
        if tube.proportional:
            assert (gaps <= width * (apart // ONE)).all()


def test_a37_a_clipped_release_is_not_proportional():
    metric = Truncated(width=1000.0)
    tube = TubeClip(
        anchors=[[0.0]], centers=[0], slope=512, width=1024, metric=metric, step=2.0**-10
    )
    near = [[0.0], [1.0]]  # at distance 0.001
    moved = np.diff(tube.clip([9.0, -9.0], near)).item() / 1024
    assert not tube.proportional
    assert 0.5 <= abs(moved) <= 0.5005 + 2 / 1024


def test_a37_record_level_ranges_work_with_the_tube_too():
    rng = np.random.default_rng(4)
    inputs = np.array(list(itertools.product((0.0, 0.3, 0.5, 2.0), repeat=3)))[..., None]
    near = (inputs[:, None] != inputs[None]).any(axis=-1).sum(axis=-1) <= 1
    tube = TubeClip(
        anchors=rng.random((6, 3, 1)),
        centers=rng.integers(-40, 40, 6),
        slope=9,
        width=13,
        metric=Truncated(width=0.6),
    )
    low, high = tube.ranges(inputs)
    assert (high[:, None] - low)[near].max() <= 13


def test_what_does_not_fit_is_refused():
    for wrong in (
        {"slope": 3},
        {"centers": [1 << 45]},
        {"anchors": np.zeros((1, 5000, 1))},
        {"step": 3},
    ):
        good = {"anchors": [[0]], "centers": [1], "slope": 1, "width": 2, "metric": UnitCount()}
        with pytest.raises(InvalidArgument):
            TubeClip(**(good | wrong))
    huge = TubeClip(anchors=[[0]], centers=[1], slope=1 << 30, width=1 << 30, metric=UnitCount())
    low, high = huge.ranges([[1e300], [-1e300], [float("nan")]])
    assert (low <= high).all()
