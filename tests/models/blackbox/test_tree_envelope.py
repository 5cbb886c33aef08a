"""Trees and forests: exact envelopes, and ranges around them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.lipschitz_fit import TubeClip
from discreet.models.blackbox.metrics import Records, UnitCount
from discreet.models.blackbox.output_ranges import LeaveOneOutRange
from discreet.models.blackbox.surrogates import SumClip, TreeClip, TreeLeaves, leaves_of

INPUTS = np.array(list(itertools.product(range(4), repeat=4)), dtype=float)
APART = (INPUTS[:, None] != INPUTS[None]).sum(axis=-1)


def training(seed, *, many=120):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (many, 4)).astype(float)
    return x, np.rint(10 * np.sin(x.sum(axis=1)) + 3 * x[:, 0])


def tree(seed=0, **options):
    return DecisionTreeRegressor(random_state=0, **options).fit(*training(seed))


@pytest.mark.parametrize("slope", [1, 3, 8])
def test_a38_envelopes_are_the_best_there_are(slope):
    fitted = tree(max_leaf_nodes=25)
    values = np.floor(fitted.predict(INPUTS) * 256).astype(np.int64)
    clip = TreeClip.of(fitted, shape=(4, 1), slope=256 * slope, width=256 * slope, step=2.0**-8)
    lowest, highest = clip.envelopes(INPUTS)
    assert (lowest == (values + 256 * slope * APART).min(axis=1)).all()
    assert (highest == (values - 256 * slope * APART).max(axis=1)).all()
    middle = [Fraction(int(a + b), 2) for a, b in zip(lowest, highest, strict=True)]
    error = max(abs(m - int(v)) for m, v in zip(middle, values, strict=True))
    # Every leaf of this tree holds a point of the domain, so the error is attained.
    assert error == clip.largest_error


@pytest.mark.parametrize("share", [0, 1, 2])
def test_a38_ranges_of_a_tree_change_by_at_most_the_width(share):
    clip = TreeClip.of(tree(), shape=(4, 1), slope=256 * share, width=512, step=2.0**-8)
    low, high = clip.ranges(INPUTS)
    assert (low <= high).all()
    assert (high[:, None] - low)[APART <= 1].max() == 512
    assert clip.hull[0] <= low.min()
    assert high.max() <= clip.hull[1]


def test_a38_a_range_around_a_tree_beats_the_middle_of_its_envelopes():
    fitted = tree()
    values = fitted.predict(INPUTS)
    clip = TreeClip.of(fitted, shape=(4, 1), slope=384, width=768, step=2.0**-8)
    plain = TreeClip.of(fitted, shape=(4, 1), slope=768, width=768, step=2.0**-8)
    middle = sum(plain.envelopes(INPUTS)) / 512
    clipped = clip.clip(values, INPUTS) / 256
    assert np.abs(clipped - values).mean() < np.abs(middle - values).mean()


def test_a38_forests_add_up():
    x, y = training(1)
    forest = RandomForestRegressor(7, random_state=0).fit(x, y)
    clip = SumClip.of_forest(forest, shape=(4, 1), slope=500, width=1000, step=2.0**-8)
    assert clip.width == 1000
    low, high = clip.ranges(INPUTS)
    assert (low <= high).all()
    assert (high[:, None] - low)[APART <= 1].max() <= 1000
    assert clip.hull[0] <= low.min()
    assert high.max() <= clip.hull[1]
    wide = SumClip.of_forest(forest, shape=(4, 1), slope=0, width=1 << 16, step=2.0**-8)
    assert (
        np.abs(wide.clip(forest.predict(INPUTS), INPUTS) / 256 - forest.predict(INPUTS)).max()
        < 0.01
    )


def test_a5_leaves_hold_what_the_tree_says_also_at_thresholds():
    rng = np.random.default_rng(2)
    x = rng.random((200, 6))
    fitted = DecisionTreeRegressor(random_state=0).fit(x, rng.normal(size=200))
    cuts = fitted.tree_.threshold[fitted.tree_.feature >= 0]
    asked = rng.choice(np.concatenate([cuts, np.nextafter(cuts, 2), [0.0, 1.0]]), size=(3000, 6))
    boxes, values = leaves_of(fitted, (3, 2))
    clip = TreeClip(boxes=boxes, centers=np.arange(len(values)), slope=10**6, width=10**6)
    lowest, highest = clip.envelopes(asked.reshape(-1, 3, 2))
    # With so steep a slope both envelopes are the leaf itself.
    assert (lowest == highest).all()
    assert (values[lowest] == fitted.predict(asked)).all()


def test_a38_boxes_outside_the_domain_are_left_out():
    boxes = TreeLeaves(low=[[[-np.inf]], [[5.0]]], high=[[[5.0]], [[np.inf]]])
    kept, which = boxes.within((0.0, 4.0))
    assert which.tolist() == [0]
    assert (kept.low.item() < 0.0, kept.high.item()) == (True, 4.0)
    odd = TreeClip(boxes=boxes, centers=[0, 10], slope=5, width=6)
    low, high = odd.ranges([[np.nan], [-1e300], [1e300]])
    assert (low <= high).all()
    assert odd.envelopes([[-1e300], [1e300]])[0].tolist() == [0, 5]


def test_what_is_no_tree_of_these_inputs_is_refused():
    with pytest.raises(InvalidArgument, match="features"):
        leaves_of(tree(), (3, 1))
    with pytest.raises(InvalidArgument, match="one for each box"):
        TreeClip(boxes=TreeLeaves(low=[[[0.0]]], high=[[[1.0]]]), centers=[1, 2], slope=0, width=1)
    with pytest.raises(InvalidArgument, match="shape"):
        TreeLeaves(low=[[0.0]], high=[[1.0]])
    with pytest.raises(InvalidArgument, match="numbers"):
        TreeLeaves(low=[[[np.nan]]], high=[[[1.0]]])
    with pytest.raises(InvalidArgument, match="too small"):
        TreeClip.of(tree(), shape=(4, 1), slope=0, width=1, step=2.0**-60)
    records = LeaveOneOutRange(anchors=[[0]], centers=[0], slope=0, width=1, metric=Records())
    cars = TubeClip(anchors=[[0]], centers=[0], slope=0, width=1, metric=UnitCount())
    with pytest.raises(InvalidArgument, match="one relation"):
        SumClip([records, cars])
    with pytest.raises(InvalidArgument, match="at least one"):
        SumClip([])
