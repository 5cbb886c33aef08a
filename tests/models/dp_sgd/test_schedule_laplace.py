"""Laplace noise that follows the rates: marginal claims, whole runs, averages (C36, C37)."""

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd._laplace_rates import (
    GradientBound,
    PowerSchedule,
    final_noise_scale,
    marginal_epsilons,
    noise_scales,
)
from discreet_studies.private_inference.iterate_distribution import (
    affine_loss,
    density,
    largest_loss,
)
from discreet_studies.private_inference.published_sgd import PublishedLaplaceDescent
from discreet_studies.private_inference.trajectory_cost import (
    average_loss,
    costs,
    harmonic,
    trajectory,
)

# E12: steps, all iterates basic and by PLD, sampled basic. The theorem says 1 everywhere.
TABLE = [
    (10, 2.929, 2.928, 0.00396),
    (100, 5.187, 3.666, 0.00626),
    pytest.param(1000, 7.485, 3.720, 0.00856, marks=pytest.mark.slow),
]


def line(slope, record):
    return lambda theta: slope * theta - record


def exact_loss(slope, steps, rate=0.5):
    """Largest loss of the last iterate with records 0 and 1, noise for a diameter of 1."""
    rates = np.full(steps, rate)
    scales = noise_scales(rates, diameter=1, epsilon=1)
    left, right = (
        density([line(slope, record)], rates=rates, scales=scales) for record in (0.0, 1.0)
    )
    tail = affine_loss(rates=rates, scales=scales, slope=slope, apart=1)
    return largest_loss(left, right), tail


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_linear_loss_costs_exactly_what_is_claimed(steps):
    found, tail = exact_loss(0.0, steps)
    assert found == pytest.approx(1, abs=1e-3)
    assert tail == pytest.approx(1)


@pytest.mark.parametrize(("steps", "share"), [(2, 0.75), (3, 0.58333), (4, 0.46875)])
def test_a_strongly_convex_loss_costs_less(steps, share):
    found, tail = exact_loss(1.0, steps)
    assert found == pytest.approx(share, abs=1e-3)
    assert tail == pytest.approx(share, abs=1e-5)


def test_expansive_steps_break_the_printed_claim():
    # The distance of gradients at one theta is 1; over all theta there is no bound.
    found, tail = exact_loss(-1.0, 2)
    assert found == pytest.approx(1.25, abs=1e-3)
    assert tail == pytest.approx(1.25)
    assert affine_loss(
        rates=np.full(3, 0.5),
        scales=noise_scales(np.full(3, 0.5), diameter=1, epsilon=1),
        slope=-1,
        apart=1,
    ) == pytest.approx(1.58333, abs=1e-5)
    assert exact_loss(-1.0, 3)[0] > 1.5


def test_random_records_cost_no_more():
    # Two records of three are common; gradients of a Huber loss have diameter 2.
    rates, record = np.full(3, 0.7), (-1.0, 0.5, 2.0, -3.0)
    scales = noise_scales(rates, diameter=2, epsilon=1)

    def huber(value):
        return lambda theta: np.clip(theta - value, -1, 1)

    laws = [
        density([huber(record[i]) for i in chosen], rates=rates, scales=scales)
        for chosen in ((0, 1, 2), (0, 1, 3))
    ]
    found = largest_loss(*laws)
    assert 0.05 < found < 1


def test_one_grid_is_needed():
    rates = np.ones(1)
    wide = density([line(0, 0)], rates=rates, scales=rates, reach=10)
    other = density([line(0, 0)], rates=rates, scales=rates, reach=11)
    with pytest.raises(InvalidArgument):
        largest_loss(wide, other)


# ── the conditions of the marginal claim ──────────────────────────────────────────────────────


def test_the_schedule_gives_every_iterate_its_promise():
    schedule = PowerSchedule(start=0.3, decay=0.5, growth=0.75)
    rates, growths = schedule.rates(200), schedule.growths(200)
    scales = noise_scales(rates, diameter=3, epsilon=0.5, growths=growths)
    bound = GradientBound(dimension=5, diameter=3)
    assert marginal_epsilons(rates, scales=scales, bound=bound) == pytest.approx(0.5 * growths)
    assert scales[0] == pytest.approx(3 / 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"convex": False, "smoothness": 1.0},
        {"convex": True},
        {"convex": True, "smoothness": 1.0, "clipped": True},
        {"convex": True, "smoothness": 2.1},
    ],
)
def test_a_sensitivity_at_one_theta_is_refused_where_runs_may_drift_apart(wrong):
    bound = GradientBound(dimension=1, same_theta=1, **wrong)
    with pytest.raises(Unsupported):
        marginal_epsilons(np.ones(3), scales=np.ones(3), bound=bound)


@pytest.mark.parametrize("smoothness", [0, -1.0, np.nan])
def test_a_smoothness_that_would_allow_every_rate_is_refused(smoothness):
    with pytest.raises(InvalidArgument, match="smoothness"):
        GradientBound(dimension=1, same_theta=1, convex=True, smoothness=smoothness)


def test_a_smooth_convex_loss_may_use_it_with_the_root_of_the_dimension():
    bound = GradientBound(dimension=9, same_theta=1, convex=True, smoothness=2)
    assert bound.drift(np.ones(4)) == 3
    assert final_noise_scale(np.ones(4), bound=bound, epsilon=2) == 6


@pytest.mark.parametrize(("slope", "share"), [(0.0, 1.0), (1.0, 0.25)])
def test_noise_at_the_end_alone_keeps_the_claim(slope, share):
    # A run without noise from records 0 and 1, then one Laplace draw: its loss is move / scale.
    rates, ends = np.full(8, 0.5), []
    for record in (0.0, 1.0):
        theta = 0.0
        for rate in rates:
            theta -= rate * line(slope, record)(theta)
        ends.append(theta)
    scale = final_noise_scale(rates, bound=GradientBound(dimension=1, diameter=1), epsilon=1)
    assert abs(ends[1] - ends[0]) / scale == pytest.approx(share, rel=0.01)


def test_all_coordinates_of_a_linear_loss_stay_within_the_claim():
    # p = 5, records at opposite corners: the move in L1 is the sum over coordinates, and so is the
    # loss in the tail. An L2 diameter in its place would be exceeded by sqrt(5) (M25).
    rates, width = np.full(3, 0.5), 0.4
    scales = noise_scales(rates, diameter=5 * width, epsilon=1)
    each = affine_loss(rates=rates, scales=scales, slope=0, apart=width)
    assert 5 * each == pytest.approx(1)
    short = noise_scales(rates, diameter=math.sqrt(5) * width, epsilon=1)
    beyond = 5 * affine_loss(rates=rates, scales=short, slope=0, apart=width)
    assert beyond == pytest.approx(math.sqrt(5))


def test_the_published_scheme_cannot_release():
    scheme = PublishedLaplaceDescent(schedule=PowerSchedule(), sensitivity=1, epsilon=1)
    assert scheme.as_published
    assert not hasattr(scheme, "release")
    assert not hasattr(scheme, "guarantee")
    assert scheme.claimed(3) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("bad", [[], [1.0, 0.0], [1.0, math.nan], [[1.0]]])
def test_bad_rates_are_refused(bad):
    with pytest.raises(InvalidArgument):
        noise_scales(bad, diameter=1, epsilon=1)


def test_lengths_must_agree():
    bound = GradientBound(dimension=1, diameter=1)
    with pytest.raises(InvalidArgument):
        noise_scales(np.ones(3), diameter=1, epsilon=1, growths=np.ones(2))
    with pytest.raises(InvalidArgument):
        marginal_epsilons(np.ones(3), scales=np.ones(2), bound=bound)
    with pytest.raises(InvalidArgument):
        GradientBound(dimension=1)
    with pytest.raises(InvalidArgument):
        GradientBound(dimension=1, diameter=1, same_theta=1)


# ── whole runs ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("steps", "basic", "composed", "sampled"), TABLE)
def test_what_a_run_costs(steps, basic, composed, sampled):
    found = costs(np.ones(steps), epsilon=1, diameter=2, rows=1000, delta=1e-6)
    assert found.marginal == pytest.approx(1)
    assert found.basic == pytest.approx(basic, abs=0.001)
    assert found.basic == pytest.approx(harmonic(steps))
    assert found.composed == pytest.approx(composed, abs=0.002)
    assert found.sampled_basic == pytest.approx(sampled, abs=1e-5)
    # The two samplers are close; both are below what a grid of 1e-4 gives (.0032, .0036, .0039).
    assert 0.0031 < found.poisson_composed < 0.0035
    assert 0.0031 < found.sampled_composed < 0.0035
    assert found.last == found.sampled_basic


def test_a_step_on_a_secret_record_is_amplified_exactly():
    found = trajectory([2.0], sensitivity=2, batch=3, rows=10)
    assert found.relation is NeighboringRelation.REPLACE_ONE
    assert found.epsilon() == pytest.approx(math.log(1 + 0.3 * math.expm1(1)))
    with pytest.raises(InvalidArgument):
        trajectory([2.0], sensitivity=2, batch=3)


def test_equal_steps_are_one_part():
    assert len(trajectory(np.full(500, 3.0), sensitivity=1).event.parts) == 1


@pytest.mark.parametrize(("steps", "loss"), [(3, 1.5), (4, 1.5), (10, 1.8), (10_000, 2)])
def test_the_average_is_not_private_as_claimed(steps, loss):
    assert average_loss(steps) == pytest.approx(loss, abs=1e-3)


def test_the_loss_of_the_average_is_that_of_its_density():
    # Iterates 0, 1, 2 of a linear loss: their mean is noise of weights 2/3 and 2/3 (in units).
    # By hand, without `average_loss`: a sum of two independent Laplace variables on a grid.
    points = np.linspace(-40, 40, 8001)
    width = points[1] - points[0]
    law = np.exp(-np.abs(points) * 1.5)
    total = np.convolve(law, law, mode="same") * width
    shift = round(1 / width)  # the mean moves by (0 + 1 + 2)/3 = 1
    inside = slice(1500, 6500)
    found = np.abs(np.log(total[inside] / np.roll(total, shift)[inside])).max()
    # A polynomial factor of the tail makes the approach slow.
    assert 1.4 < found < average_loss(3)
