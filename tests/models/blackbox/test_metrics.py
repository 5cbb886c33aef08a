"""Distances: which inputs are neighbors, in whole numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.models.blackbox.metrics import (
    ONE,
    CellMetric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)
from discreet.models.blackbox.surrogates import TreeLeaves

METRICS = [
    Records(),
    Records(level="attribute"),
    CellMetric(cuts=(0.5, 1.5)),
    CellMetric(cuts=((0.5,), (1.5, 2.5))),
    Truncated(width=1.7),
    Truncated(width=(0.3, 2.0), combine="sum"),
    Truncated(width=0.9, level="attribute"),
    UnitCount(),
    WindowGroups(length=2, parts_of=Records()),
    WindowGroups(length=3, parts_of=Truncated(width=2.3)),
]


def draws(seed, *, many=60, n=5, d=2, top=4):
    rng = np.random.default_rng(seed)
    return rng.integers(0, top, (many, n, d)) + np.where(rng.random((many, n, d)) < 0.3, 0.37, 0.0)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_a37_every_distance_is_a_metric(metric):
    inputs = draws(1)
    apart = metric.distances(inputs, inputs)
    assert (np.diagonal(apart) == 0).all()
    assert (apart == apart.T).all()
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :]).all()
    assert apart.max() > 0


@pytest.mark.parametrize("metric", [m for m in METRICS if m.record_like], ids=repr)
def test_a35_what_is_left_out_cannot_be_seen_and_is_worth_at_most_one(metric):
    rng = np.random.default_rng(2)
    one, anchors = draws(3, many=40), draws(4, many=7)
    parts = metric.parts(one, anchors)
    assert parts.min() >= 0
    assert parts.max() <= ONE
    full, rest = metric.total(parts)[:, :, None], metric.left_out(parts)
    assert (rest <= full).all()
    assert (full <= rest + ONE).all()
    run = metric.length if isinstance(metric, WindowGroups) else 1
    for b in range(rest.shape[-1]):
        other = one.copy()
        if getattr(metric, "level", "record") == "attribute":
            other[:, b // 2, b % 2] = rng.normal(size=len(one))
        else:
            other[:, b : b + run] = rng.normal(size=other[:, b : b + run].shape)
        assert (metric.left_out(metric.parts(other, anchors))[..., b] == rest[..., b]).all()


def test_a20_changing_all_attributes_of_a_record_is_one_change():
    one = draws(5, many=1)
    other = one.copy()
    other[:, 2] += 17.0
    assert Records().distance(one[0], other[0]) == 1
    assert Records(level="attribute").distance(one[0], other[0]) == 2
    assert CellMetric.even(low=0, high=4, cells=4).distance(one[0], other[0]) == 1
    assert Truncated(width=1.0).distance(one[0], other[0]) == 1


def test_a1_boxes_are_as_far_apart_as_their_nearest_points():
    rng = np.random.default_rng(6)
    points = np.array(list(itertools.product(range(4), repeat=3)))
    ends = np.sort(rng.choice([-0.5, 0.5, 1.5, 2.5, 3.5], size=(300, 3, 1, 2)), axis=-1)
    ends = ends[(ends[..., 0] < ends[..., 1]).all(axis=(1, 2))][:40]
    found = TreeLeaves(low=ends[..., 0], high=ends[..., 1]).apart()
    inside = [points[((points > e[:, 0, 0]) & (points <= e[:, 0, 1])).all(axis=1)] for e in ends]
    for a, b in itertools.product(range(len(ends)), repeat=2):
        nearest = min((p != q).sum() for p in inside[a] for q in inside[b])
        assert found[a, b] == nearest


def test_a1_on_a_grid_the_distance_is_that_of_the_indices():
    metric = CellMetric.even(low=0, high=3, cells=3)
    cells = np.array(list(itertools.product(range(3), repeat=3)))
    apart = metric.distances(cells + 0.4, cells + 0.9)
    assert (apart == (cells[:, None] != cells[None]).sum(axis=-1) * ONE).all()


def test_a4_cells_take_everything_and_a_threshold_lies_below():
    metric = CellMetric.even(low=0, high=3, cells=3)
    odd = np.array([[-1e300], [0.0], [1.0], [np.nextafter(1.0, 2)], [3.0], [1e300]])
    assert metric.coordinates(odd).ravel().tolist() == [0, 0, 0, 1, 2, 2]
    assert CellMetric(cuts=(0.1,), single=True).coordinates([[0.1]]).item() == 1  # 0.1f > 0.1


def test_entries_that_are_no_numbers_become_a_public_one():
    for metric in METRICS:
        odd = np.full((1, 5, 2), np.nan)
        odd[0, 1] = np.inf
        assert metric.distance(odd[0], np.zeros((5, 2))) == 0
    assert Records(missing=3.0).distance([[np.nan]], [[3.0]]) == 0
    assert Records().distance([[-0.0]], [[0.0]]) == 0


def test_a37_windows_are_counted_as_by_trying_all():
    rng = np.random.default_rng(7)
    for n, length in itertools.product(range(1, 8), (1, 2, 3, 4)):
        differs = rng.random((12, n)) < 0.5
        metric = WindowGroups(length=length, parts_of=Records())
        starts = range(max(1, n - length + 1))
        for row in differs:
            fewest = next(
                k
                for k in range(n + 1)
                for chosen in itertools.combinations(starts, k)
                if all(any(s <= i < s + length for s in chosen) for i in np.flatnonzero(row))
            )
            assert metric.distance(row[:, None].astype(float), np.zeros((n, 1))) == fewest


def test_a36_the_truncated_distance_is_below_hamming_and_exact():
    metric = Truncated(width=4.0)
    assert metric.distance([[1.0], [9.0]], [[2.0], [3.0]]) == Fraction(1, 4) + 1
    inputs = draws(8)
    assert (metric.distances(inputs, inputs) <= Records().distances(inputs, inputs)).all()
    far = Truncated(width=1e-300, combine="sum")
    assert far.distance([[1e300, 5.0]], [[-1e300, 5.0]]) == 1


def test_a37_events_are_counted_before_any_scaling():
    metric = UnitCount()
    assert metric.distance([[3], [4]], [[4], [3]]) == 2  # one event moved
    assert metric.distance([[2.99]], [[2.0]]) == 0  # whole counts, rounded down
    assert metric.distance([[1e300]], [[-1e300]]) == 2**29
    with pytest.raises(Unsupported, match="TubeClip"):
        metric.left_out(np.zeros((1, 1, 3), dtype=np.int64))


def test_every_metric_says_who_is_protected():
    words = [metric.relation_words for metric in METRICS]
    assert "one attribute of one record" in words[1]
    assert "one event" in words[7]
    assert "up to 3 consecutive records" in words[9]
    assert all("public" in word for word in words)


def test_what_makes_no_metric_is_refused():
    for wrong in (
        lambda: Truncated(width=0.0),
        lambda: Truncated(width=(1.0, float("inf"))),
        lambda: Truncated(width=1.0, combine="product"),
        lambda: Records(level="row"),
        lambda: CellMetric(cuts=(1.0, 1.0)),
        lambda: CellMetric.even(low=1, high=1, cells=2),
        lambda: WindowGroups(length=2, parts_of=UnitCount()),
        lambda: WindowGroups(length=0, parts_of=Records()),
        lambda: Records(missing=float("nan")),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    with pytest.raises(OutOfDomain, match="cuts do not fit"):
        CellMetric(cuts=((0.5,), (1.5,))).coordinates(np.zeros((1, 3, 1)))
    with pytest.raises(OutOfDomain, match="width does not fit"):
        Truncated(width=(1.0, 2.0, 3.0)).coordinates(np.zeros((1, 3, 1)))
    assert WindowGroups(length=2, parts_of=Records(missing=3.0)).missing == 3.0
    with pytest.raises(OutOfDomain, match="shape"):
        Records().coordinates([["secret"]])
