"""Sums of curves of counts, where one event is a neighbor."""

import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.certificate import certify_all, certify_drawn
from discreet.models.blackbox.lipschitz_fit import TubeClip, fit_centers
from discreet.models.blackbox.metrics import ONE, UnitCount
from discreet.models.blackbox.surrogates import CountTube

COUNTS = np.array(list(itertools.product(range(7), repeat=3)), dtype=float)
APART = np.abs(COUNTS[:, None] - COUNTS[None]).sum(axis=-1)


def random_tube(rng):
    slope = int(rng.integers(0, 6))
    width = slope + int(rng.integers(0, 6)) * int(rng.integers(0, 2))
    knots = [np.sort(rng.choice(7, int(rng.integers(1, 5)), replace=False)) for _ in range(3)]
    return CountTube(
        knots=knots,
        rises=[rng.integers(-slope * ONE, slope * ONE + 1, len(curve) - 1) for curve in knots],
        offset=int(rng.integers(-9 * ONE, 9 * ONE)),
        shape=(3, 1),
        slope=slope,
        width=width,
    )


def test_a37_every_event_of_every_count_for_random_curves():
    rng = np.random.default_rng(1)
    for _ in range(150):
        tube = random_tube(rng)
        low, high = tube.ranges(COUNTS)
        assert (low <= high).all()
        gaps = high[:, None] - low
        assert gaps[APART <= 1].max() <= tube.width
        assert tube.hull[0] <= low.min()
        assert high.max() <= tube.hull[1]
        assert tube.proportional == (tube.slope == tube.width)
        if tube.proportional:
            assert (gaps <= tube.width * APART).all()
    certify_all(tube, UnitCount(), range(7), positions=3).demand()
    certify_drawn(tube, UnitCount(), COUNTS[..., None]).demand()


def test_a37_a_curve_is_a_chain_of_lines():
    tube = CountTube(
        knots=[[0, 2, 10]],
        rises=[[3 * ONE, -ONE]],
        offset=5 * ONE,
        shape=(1, 1),
        slope=3,
        width=3,
    )
    asked = [[-4], [0], [1], [2], [3], [10], [99], [1e300], [float("nan")], [2.9]]
    assert (tube.surrogate(asked) / ONE).tolist() == [5, 5, 8, 11, 10, 3, 3, 3, 5, 11]


def test_a37_a_linear_forecast_of_counts_needs_no_bias():
    rng = np.random.default_rng(2)
    public, asked = rng.integers(0, 600, (300, 4, 1)), rng.integers(0, 600, (300, 4, 1))
    weights = np.array([0.11, 0.14, 0.24, 0.49])
    steps = 64
    y, truth = (steps * (x[:, :, 0] @ weights) for x in (public, asked))
    tube = CountTube.fitted(inputs=public, y=y, slope=32, width=32, step=2.0**-6)
    inside = ((asked >= public.min(axis=0)) & (asked <= public.max(axis=0))).all(axis=(1, 2))
    bias = np.abs(tube.ranges(asked)[0] - truth)[inside].mean() / steps
    metric = UnitCount()
    apart = metric.distances(public, public) / ONE
    centers = np.rint(fit_centers(y, apart, 32).centers).astype(np.int64)
    anchors = TubeClip(anchors=public, centers=centers, slope=32, width=32, metric=metric)
    by_anchors = np.abs(anchors.ranges(asked)[0] - truth)[inside].mean() / steps
    assert bias < 0.05
    assert by_anchors > 10
    # Less slope than the steepest weight has a price, and is still sound.
    flat = CountTube.fitted(inputs=public, y=y, slope=20, width=24, step=2.0**-6)
    certify_drawn(flat, metric, public).demand()
    constant = CountTube.fitted(inputs=public, y=y, slope=0, width=0, step=2.0**-6)
    assert np.ptp(constant.ranges(asked)[0]) == 0


def test_what_breaks_the_proof_is_refused():
    good = {
        "knots": [[0, 5]],
        "rises": [[ONE]],
        "offset": 0,
        "shape": (1, 1),
        "slope": 1,
        "width": 2,
    }
    CountTube(**good)
    for name, value in [
        ("rises", [[ONE + 1]]),
        ("rises", [[-ONE - 1]]),
        ("rises", [[0.5]]),
        ("rises", [[1, 1]]),
        ("knots", [[5, 0]]),
        ("knots", [[0, 1 << 60]]),
        ("knots", []),
        ("slope", 3),
        ("shape", (2, 1)),
        ("offset", 1 << 62),
        ("step", 0.3),
    ]:
        with pytest.raises(InvalidArgument):
            CountTube(**(good | {name: value}))
