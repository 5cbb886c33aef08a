"""Sums of bounded contributions: their ranges, exhaustively, and what they are good for."""

import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.models.blackbox.certificate import certify_all, certify_drawn
from discreet.models.blackbox.lipschitz_fit import fit_centers
from discreet.models.blackbox.metrics import ONE, Records, Truncated, UnitCount, WindowGroups
from discreet.models.blackbox.output_ranges import LeaveOneOutRange
from discreet.models.blackbox.surrogates import AdditiveClip


def random_sum(rng, *, n, d=1, metric=None):
    width = int(rng.integers(0, 12))
    knots = [
        np.sort(rng.choice(9, int(rng.integers(1, 4)), replace=False)) / 3 for _ in range(n * d)
    ]
    return AdditiveClip(
        knots=knots,
        heights=[rng.integers(-3 * ONE, 12 * ONE, len(curve)) for curve in knots],
        offset=int(rng.integers(-9 * ONE, 9 * ONE)),
        shape=(n, d),
        slope=int(rng.integers(0, width + 1)) if rng.random() < 0.6 else width,
        width=width,
        metric=metric or Records(),
    )


@pytest.mark.parametrize(
    "metric", [Records(), WindowGroups(length=2, parts_of=Records())], ids=repr
)
def test_every_neighbor_of_every_input_for_random_sums(metric):
    rng = np.random.default_rng(1)
    attained = 0
    for _ in range(150):
        n = int(rng.integers(1, 4))
        ranges = random_sum(rng, n=n, metric=metric)
        found = certify_all(ranges, metric, [0, 0.4, 1, 2.7], positions=n).demand()
        attained += found.largest == ranges.width
        low, high = ranges.ranges(np.array(list(itertools.product([0, 0.4, 1, 2.7], repeat=n))))
        assert ranges.hull[0] <= low.min()
        assert high.max() <= ranges.hull[1]
    assert attained > 100


@pytest.mark.parametrize("level", ["record", "attribute"])
def test_several_attributes_of_a_record(level):
    rng = np.random.default_rng(2)
    metric = Records(level=level)
    inputs = np.array(list(itertools.product([0.0, 1.1, 2.0], repeat=4))).reshape(-1, 2, 2)
    differs = inputs[:, None] != inputs[None]
    changed = differs.any(axis=-1) if level == "record" else differs.reshape(81, 81, 4)
    near = changed.sum(axis=-1) <= 1
    for _ in range(60):
        ranges = random_sum(rng, n=2, d=2, metric=metric)
        low, high = ranges.ranges(inputs)
        assert (low <= high).all()
        assert (high[:, None] - low)[near].max() <= ranges.width
        certify_drawn(ranges, metric, inputs, pairs=200).demand()


def test_a_record_that_is_left_out_leaves_no_trace():
    rng = np.random.default_rng(3)
    ranges = random_sum(rng, n=5)
    one = rng.normal(size=(500, 5, 1))
    other = one.copy()
    other[:, 3] = rng.choice([np.nan, np.inf, 1e300, 0.2], size=(500, 1))
    added, changed = ranges.contributions(one), ranges.contributions(other)
    assert (np.delete(added, 3, axis=1) == np.delete(changed, 3, axis=1)).all()
    # One by one they are what they are together.
    assert (added == np.concatenate([ranges.contributions(row[None]) for row in one])).all()
    assert added.min() >= 0
    assert added.max() <= ranges.most


def test_a_sum_is_followed_exactly_if_the_slope_allows():
    rng = np.random.default_rng(4)
    public, asked = rng.random((60, 4)), rng.random((200, 4))
    weights = np.array([100, 300, 0, 200])
    ranges = AdditiveClip.fitted(
        inputs=public, y=public @ weights, slope=300, width=300, metric=Records(), pieces=1
    )
    inside = (asked >= public.min(axis=0)).all(axis=1) & (asked <= public.max(axis=0)).all(axis=1)
    truth = (asked @ weights)[inside]
    assert np.abs(ranges.clip(truth, asked[inside]) - np.floor(truth)).max() <= 1


def test_a36_independent_records_are_where_anchors_fail():
    rng = np.random.default_rng(5)
    public, asked = rng.random((200, 20)), rng.random((300, 20))
    y, truth = 2**14 * public.mean(axis=1), 2**14 * asked.mean(axis=1)
    width = 2**9
    errors = {}
    for shared in (False, True):
        ranges = AdditiveClip.fitted(
            inputs=public, y=y, slope=width, width=width, metric=Records(), pieces=3, shared=shared
        )
        errors[shared] = np.abs(ranges.clip(truth, asked) - truth).mean()
    metric = Truncated(width=0.5)
    fit = fit_centers(y, metric.distances(public, public) / ONE, width)
    centers = np.rint(fit.centers).astype(np.int64)
    anchors = LeaveOneOutRange(
        anchors=public, centers=centers, slope=width, width=width, metric=metric
    )
    by_anchors = np.abs(anchors.clip(truth, asked) - truth).mean()
    assert errors[True] <= errors[False] < by_anchors / 2


def test_several_attributes_share_the_slope_when_fitted():
    rng = np.random.default_rng(6)
    public = rng.random((80, 3, 2))
    y = public @ [50.0, 30.0] @ np.ones(3)
    for metric, slope in ((Records(), 80), (Records(level="attribute"), 50)):
        ranges = AdditiveClip.fitted(
            inputs=public, y=y, slope=slope, width=slope, metric=metric, pieces=1, shared=True
        )
        assert np.abs(ranges.clip(y, public) - y).mean() < 2
        certify_drawn(ranges, metric, public, pairs=300).demand()
    runs = WindowGroups(length=2, parts_of=Records())
    ranges = AdditiveClip.fitted(inputs=public, y=y, slope=160, width=160, metric=runs, shared=True)
    assert np.abs(ranges.clip(y, public) - y).mean() < 2


def test_what_breaks_the_proof_is_refused():
    good = {
        "knots": [[0.0, 1.0]],
        "heights": [[0, ONE]],
        "offset": 0,
        "shape": (1, 1),
        "slope": 1,
        "width": 2,
        "metric": Records(),
    }
    AdditiveClip(**good)
    for name, value in [
        ("slope", 3),
        ("knots", [[1.0, 0.0]]),
        ("knots", [[0.0, np.inf]]),
        ("knots", [[0.0]]),
        ("knots", []),
        ("heights", [[0.0, 1.5]]),
        ("heights", [[0, 1 << 51]]),
        ("offset", 1 << 62),
        ("offset", 0.5),
        ("shape", (2, 1)),
        ("step", 3),
    ]:
        with pytest.raises(InvalidArgument):
            AdditiveClip(**(good | {name: value}))
    with pytest.raises(Unsupported, match="whole entries"):
        AdditiveClip(**(good | {"metric": UnitCount()}))
    with pytest.raises(OutOfDomain, match="inputs, 1, 1"):
        AdditiveClip(**good).ranges([[1.0, 2.0]])
