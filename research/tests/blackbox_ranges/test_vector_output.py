"""Several outputs at once."""

import itertools
import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox.lipschitz_fit import Extension
from discreet.models.blackbox.metrics import Records, Truncated
from discreet.models.blackbox.output_ranges import LeaveOneOutRange
from discreet_studies.blackbox_ranges.vector_output import BallClip, VectorClip

INPUTS = np.array(list(itertools.product(range(3), repeat=3)), dtype=float)
NEAR = (INPUTS[:, None] != INPUTS[None]).sum(axis=-1) <= 1


def hostile(rng, shape):
    odd = rng.choice([1e300, -1e300, np.nan, np.inf, 0.0], size=shape)
    return np.where(rng.random(shape) < 0.3, odd, rng.normal(size=shape) * 100)


def changes(clip, rng, outputs, rounds):
    """All differences between neighbors, for hostile functions."""
    for _ in range(rounds):
        found = clip.clip(hostile(rng, (27, outputs)), INPUTS)
        other = clip.clip(hostile(rng, (27, outputs)), INPUTS)
        yield (found[:, None] - other[None])[NEAR]


def test_a45_ranges_for_each_output_are_exact_in_both_norms():
    rng = np.random.default_rng(1)
    widths = (3, 7, 0)
    parts = [
        LeaveOneOutRange(
            anchors=rng.integers(0, 3, (4, 3, 1)),
            centers=rng.integers(-30, 30, 4),
            slope=width // 2,
            width=width,
            metric=Records(),
        )
        for width in widths
    ]
    clip = VectorClip(parts)
    assert (clip.l1, clip.l2_squared) == (10, 58)
    worst = [
        (np.abs(d).sum(axis=1).max(), (d**2).sum(axis=1).max()) for d in changes(clip, rng, 3, 30)
    ]
    assert max(a for a, _ in worst) == 10
    assert max(b for _, b in worst) == 58


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("radius", [0, 5, 40])
def test_a45_balls_around_surrogates(norm, radius):
    rng = np.random.default_rng(radius)
    slopes = (4, 0, 9)
    surrogates = [
        Extension(
            anchors=rng.integers(0, 3, (4, 3, 1)),
            centers=rng.integers(-30, 30, 4),
            slope=slope,
            metric=Truncated(width=1.5),
        )
        for slope in slopes
    ]
    clip = BallClip(surrogates, radius=radius, norm=norm)
    assert clip.l2 == math.ceil(math.sqrt(97)) + 2 * radius
    if norm == "l1":
        assert clip.l1 == 13 + 2 * radius
    for differences in changes(clip, rng, 3, 20):
        assert np.abs(differences).sum(axis=1).max() <= clip.l1
        assert (differences**2).sum(axis=1).max() <= (math.sqrt(97) + 2 * radius) ** 2


def test_a45_rounding_a_real_vector_would_not_be_free():
    ones, nearly = np.ones(10), np.full(10, 0.999)
    assert np.abs(np.floor(ones) - np.floor(nearly)).sum() == 10  # from 0.01
    surrogates = [
        Extension(anchors=[[0.0]], centers=[0], slope=0, metric=Records()) for _ in range(10)
    ]
    ball = BallClip(surrogates, radius=1, norm="l1")
    moved = ball.clip([ones, nearly], [[0.0], [0.0]])
    assert np.abs(moved[0] - moved[1]).sum() <= ball.l1 == 2


def test_a45_inside_the_ball_nothing_is_changed():
    surrogates = [
        Extension(anchors=[[0.0]], centers=[c], slope=2, metric=Records()) for c in (10, -4)
    ]
    clip = BallClip(surrogates, radius=5, norm="l2", step=0.5)
    assert clip.clip([[6.5, 0.0]], [[0.0]]).tolist() == [[13, 0]]  # 3, 4, 5
    assert clip.clip([[8.0, 2.0]], [[0.0]]).tolist() == [[13, 0]]  # 6, 8 shrinks to 3, 4
    assert clip.clip([[float("nan"), 1.0]], [[0.0]]).tolist() == [[10, -4]]


def test_what_does_not_fit_is_refused():
    one = Extension(anchors=[[0.0]], centers=[0], slope=2, metric=Records())
    other = Extension(anchors=[[0.0]], centers=[0], slope=2, metric=Truncated(width=1.0))
    for wrong in (
        lambda: BallClip([], radius=1),
        lambda: BallClip([one, other], radius=1),
        lambda: BallClip([one], radius=-1),
        lambda: BallClip([one], radius=1 << 31),
        lambda: BallClip([one], radius=1, norm="l3"),
        lambda: VectorClip([]),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    with pytest.raises(OutOfDomain, match="outputs"):
        BallClip([one], radius=1).clip([1.0], [[0.0]])
