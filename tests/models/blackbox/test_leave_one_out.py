"""Ranges that leave the changed record out: the sensitivity, exhaustively and by attack."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox.lipschitz_fit import Extension, fit_centers
from discreet.models.blackbox.metrics import (
    FINE,
    ONE,
    CellMetric,
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)
from discreet.models.blackbox.output_ranges import LeaveOneOutRange, clip_to_range


@dataclass(frozen=True, kw_only=True)
class Tables(Metric):
    """Any parts whatever, neither symmetric nor zero on the diagonal: one table per position."""

    tables: tuple

    @property
    def relation_words(self):
        return "one record replaced"

    def coordinates(self, inputs):
        return self.cleaned(inputs).astype(np.int64)

    def between(self, queries, anchors):
        table = np.array(self.tables)
        n = table.shape[0]
        a, b = queries[:, None, :, 0], anchors[None, :, :, 0]
        return table[np.arange(n), a, b]


def random_model(rng, *, n, values, metric=None):
    many = int(rng.integers(1, 5))
    width = int(rng.integers(0, 12))
    parts = rng.integers(0, ONE + 1, (n, values, values))
    return LeaveOneOutRange(
        anchors=rng.integers(0, values, (many, n, 1)),
        centers=rng.integers(-30, 30, many),
        slope=int(rng.integers(0, width + 1)) if rng.random() < 0.6 else width,
        width=width,
        metric=metric or Tables(tables=tuple(map(tuple, parts.tolist()))),
    )


def worst(ranges, inputs, near):
    low, high = ranges.ranges(inputs)
    return int((high[:, None] - low[None])[near].max()), bool((low <= high).all())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a35_every_neighbor_of_every_input_for_random_models(n):
    rng = np.random.default_rng(n)
    attained = 0
    for _ in range(200):
        values = int(rng.integers(2, 4))
        inputs = np.array(list(itertools.product(range(values), repeat=n)))[..., None]
        near = (inputs[:, None] != inputs[None]).any(axis=-1).sum(axis=-1) <= 1
        model = random_model(rng, n=n, values=values)
        found, filled = worst(model, inputs, near)
        assert filled
        assert found <= model.width
        attained += found == model.width
    assert attained > 150  # the bound is no exaggeration


def test_a35_the_claim_is_checked_by_a_test_that_can_fail():
    rng = np.random.default_rng(5)
    inputs = np.array(list(itertools.product(range(3), repeat=3)))[..., None]
    near = (inputs[:, None] != inputs[None]).any(axis=-1).sum(axis=-1) <= 1

    def steep(model):
        model.slope = 2 * model.width + 1  # what the constructor refuses
        return worst(model, inputs, near)

    def inward(model):
        doubled = model._few(inputs), model.doubled(inputs)
        low = -(-(doubled[1].max(axis=1) - (model.width << FINE)) // (2 * ONE))
        return bool((low > doubled[0][1]).any())

    models = [random_model(rng, n=3, values=3) for _ in range(150)]
    # Rounding the lower end up would leave some ranges empty.
    assert any(inward(model) for model in models)
    assert any(
        not filled or found > model.width for model in models for found, filled in [steep(model)]
    )


def test_a35_one_hundred_thousand_pairs_of_neighbors_and_hostile_functions():
    rng = np.random.default_rng(7)
    metric = Truncated(width=0.4)
    model = LeaveOneOutRange(
        anchors=rng.random((12, 6, 2)),
        centers=rng.integers(-5000, 5000, 12),
        slope=700,
        width=1000,
        metric=metric,
        step=2.0**-6,
    )
    one = rng.normal(size=(100_000, 6, 2))
    one[rng.random(one.shape) < 0.05] = np.nan
    other = one.copy()
    rows, at = np.arange(len(one)), rng.integers(6, size=len(one))
    other[rows, at] = rng.choice([np.inf, np.nan, 1e300, -3.0, 0.2, 0.9], size=(len(one), 2))
    # Neighbors share the interval of what differs, to the last bit.
    few = slice(0, 2000)
    shared = model.doubled(one[few])[rows[few], at[few]]
    assert (shared == model.doubled(other[few])[rows[few], at[few]]).all()
    low, high = model.ranges(one)
    low_other, high_other = model.ranges(other)
    assert (low <= high).all()
    assert max((high - low).max(), (high - low_other).max(), (high_other - low).max()) <= 1000
    answers = rng.choice([1e300, -1e300, np.inf, -np.inf, np.nan, 0.0], size=(2, len(one)))
    up = clip_to_range(answers[0], low, high, step=model.step)
    moved = up - clip_to_range(answers[1], low_other, high_other, step=model.step)
    assert np.abs(moved).max() <= 1000


def test_a35_the_range_holds_the_tube_around_the_surrogate():
    rng = np.random.default_rng(8)
    for metric in (Records(), Truncated(width=0.3), WindowGroups(length=2, parts_of=Records())):
        anchors, centers = rng.integers(0, 3, (9, 5, 1)) / 2, rng.integers(-900, 900, 9)
        model = LeaveOneOutRange(
            anchors=anchors, centers=centers, slope=90, width=200, metric=metric
        )
        surrogate = Extension(anchors=anchors, centers=centers, slope=90, metric=metric)
        inputs = rng.integers(0, 3, (500, 5, 1)) / 2
        low, high = model.ranges(inputs)
        doubled = surrogate.doubled(inputs)
        assert (low <= (doubled - (110 << FINE)) // (2 * ONE)).all()
        assert (high >= (doubled + (110 << FINE)) // (2 * ONE)).all()
        floor, ceiling = model.hull
        assert low.min() >= floor
        assert high.max() <= ceiling


@pytest.mark.parametrize("length", [2, 3])
def test_a37_groups_of_consecutive_records_exhaustively(length):
    rng = np.random.default_rng(length)
    inputs = np.array(list(itertools.product(range(2), repeat=5)))[..., None]
    differs = (inputs[:, None] != inputs[None])[..., 0]
    first, last = differs.argmax(axis=-1), 4 - differs[..., ::-1].argmax(axis=-1)
    near = ~differs.any(axis=-1) | (last - first < length)
    for _ in range(60):
        parts = Records() if rng.random() < 0.5 else Truncated(width=1.6)
        model = random_model(rng, n=5, values=2, metric=WindowGroups(length=length, parts_of=parts))
        found, filled = worst(model, inputs, near)
        assert filled
        assert found <= model.width


def test_a43_whole_steps_first_then_the_clip():
    model = LeaveOneOutRange(
        anchors=[[0]], centers=[0], slope=0, width=3, metric=Records(), step=2.0**-3
    )
    low, high = model.ranges([[5]])
    assert (low.item(), high.item()) == (-2, 1)  # floors at both ends, three steps apart
    values = [0.1, 0.125, -0.01, 1e300, -1e300, float("nan"), float("inf")]
    assert model.clip(values, [[0]] * 7).tolist() == [0, 1, -1, 1, -2, -1, -1]
    tiny = LeaveOneOutRange(
        anchors=[[0]], centers=[0], slope=0, width=3, metric=Records(), step=2.0**-1000
    )
    assert tiny.clip([1e300, -5.0, 0.0], [[0]] * 3).tolist() == [1, -2, 0]


def test_a36_a_mean_of_twenty_is_followed_where_a_constant_window_fails():
    rng = np.random.default_rng(9)
    levels = rng.random((550, 1, 1))
    inputs = np.clip(levels + rng.normal(size=(550, 20, 1)) / 10, 0, 1)
    public, asked = inputs[:150], inputs[150:]
    y, truth = 10 * public.mean(axis=(1, 2)), 10 * asked.mean(axis=(1, 2))
    metric, steps = Truncated(width=1.0), 1 << 12
    apart = metric.distances(public, public) / ONE
    fit = fit_centers(np.rint(y * steps), apart, 0.5 * steps, loss="tube", tube=steps / 4)
    learned = LeaveOneOutRange(
        anchors=public,
        centers=np.rint(fit.centers).astype(np.int64),
        slope=steps // 2,
        width=steps,
        metric=metric,
        step=2.0**-12,
    )
    bias = np.abs(learned.clip(truth, asked) / steps - truth).mean()
    middle = np.median(y)
    constant = np.abs(np.clip(truth, middle - 0.5, middle + 0.5) - truth).mean()
    assert bias < 0.1
    assert constant > 1.5


def test_a22_more_areas_than_atoms():
    rng = np.random.default_rng(10)
    metric = CellMetric.even(low=0, high=1, cells=10)  # 10^50 areas
    public = rng.random((300, 50, 1))
    y = np.rint(public.mean(axis=(1, 2)) * 4096).astype(np.int64)
    fit = fit_centers(y, metric.distances(public, public) / ONE, 64)
    model = LeaveOneOutRange(
        anchors=public,
        centers=np.rint(fit.centers).astype(np.int64),
        slope=64,
        width=128,
        metric=metric,
    )
    one = rng.random((200, 50, 1))
    other = one.copy()
    other[:, 17] = rng.random((200, 1))
    low, high = model.ranges(one)
    low_other, _ = model.ranges(other)
    assert (low <= high).all()
    assert (high - low_other).max() <= 128


def test_a_width_of_zero_is_a_public_constant():
    model = LeaveOneOutRange(anchors=[[0], [4]], centers=[3, 9], slope=0, width=0, metric=Records())
    assert model.clip([100.0, float("nan")], [[1], [4]]).tolist() == [6, 6]


def test_a35_what_would_break_the_proof_is_refused():
    good = {"anchors": [[0.0]], "centers": [1], "slope": 1, "width": 2, "metric": Records()}

    for name, value in [
        ("slope", 3),
        ("slope", -1),
        ("centers", [1.5]),
        ("centers", [float("nan")]),
        ("centers", []),
        ("centers", [1, 2]),
        ("centers", [1 << 50]),
        ("anchors", [[float("nan")]]),
        ("metric", UnitCount()),
        ("metric", "hamming"),
        ("metric", Tables(tables=(((ONE + 1,),),))),
        ("metric", Tables(tables=(((-1,),),))),
        ("step", 0.1),
        ("step", 0),
    ]:
        with pytest.raises(InvalidArgument):
            LeaveOneOutRange(**(good | {name: value}))
    # A function may return a whole number that no double holds.
    assert LeaveOneOutRange(**good).clip([10**400], [[0.0]]).tolist() == [1]
    with pytest.raises(OutOfDomain, match="must be numbers"):
        LeaveOneOutRange(**good).ranges([[10**400]])
    with pytest.raises(OutOfDomain, match=r"\(inputs, 1, 1\)"):
        LeaveOneOutRange(**good).ranges([[1.0, 2.0]])
    with pytest.raises(OutOfDomain, match="one for each input"):
        LeaveOneOutRange(**good).clip([1.0, 2.0], [[1.0]])


def test_a35_parts_beyond_their_bounds_are_held_there():
    # Anchors look harmless, an input does not: the parts are forced into [0, 1].
    table = (((0, 0, 0), (0, 0, 0), (9 * ONE, -9 * ONE, 0)),) * 2
    model = LeaveOneOutRange(
        anchors=[[0, 0], [1, 0]],
        centers=[0, 40],
        slope=10,
        width=10,
        metric=Tables(tables=table),
    )
    inputs = np.array(list(itertools.product(range(3), repeat=2)))[..., None]
    near = (inputs[:, None] != inputs[None]).any(axis=-1).sum(axis=-1) <= 1
    found, filled = worst(model, inputs, near)
    assert filled
    assert found <= 10


def test_what_was_proved_cannot_be_changed_by_who_made_it():
    anchors, centers = np.zeros((1, 2, 1)), np.array([4])
    model = LeaveOneOutRange(anchors=anchors, centers=centers, slope=1, width=2, metric=Records())
    before = model.ranges([[0, 1]])
    anchors[:], centers[:] = 9, 99
    assert model.ranges([[0, 1]]) == before
    with pytest.raises(ValueError, match="read-only"):
        model.centers[0] = 5
