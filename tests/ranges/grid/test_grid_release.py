"""Releases of grids: their law, their intervals, their text, and the planner's choice."""

import datetime as dt
import json

import numpy as np
import pytest

from discreet import category, date, ranges
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import _noise_tails as tails
from discreet.ranges import workload as w
from discreet.ranges.domain import dates, integers, ordered
from discreet.ranges.grid import domain as g
from discreet.ranges.grid._optimize import flat_grid, quadtree
from discreet.ranges.grid.plan import GridDesign, plan_grid
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.strategies.base import Contribution
from tests.distributions import mean_of

DAYS, REGIONS = dates("2023-01-01", "2023-01-20"), ordered(["north", "east", "south", "west"])
AXES = (DAYS, REGIONS)


@pytest.fixture(scope="module", name="counts")
def fixture_counts():
    return np.random.default_rng(1).poisson(30, size=(20, 4))


@pytest.fixture(scope="module", name="plan")
def fixture_plan():
    return plan_grid(AXES, g.all_rectangles(), budget(epsilon=1), expected_rows=2400)


@pytest.fixture(scope="module", name="release")
def fixture_release(plan, counts):
    return plan.best.release(counts, rng=seeded_rng(1))


def test_answers_are_sums_of_cells(release):
    week = release.answer(("2023-01-02", "2023-01-08"), ("east", "south"))
    assert week == pytest.approx(release.cells[1:8, 1:3].sum())
    assert release.answer(None, None) == pytest.approx(release.total)
    many = release.answer((np.array(["2023-01-01", "2023-01-05"]), "2023-01-08"), None)
    assert many == pytest.approx([release.cells[:8].sum(), release.cells[4:8].sum()])
    assert release.labels[1] == REGIONS.labels
    assert release.cells.shape == release.cell_std.shape == (20, 4)
    assert release.cell_std[3, 2] == pytest.approx(
        release.answer_std(("2023-01-04", "2023-01-04"), ("south", "south"))
    )


def test_the_stated_error_is_the_error(counts):
    design = GridDesign(
        grid=g.GridDomain(domains=AXES),
        strategy=quadtree((20, 4)),
        budget=budget(epsilon=1),
        family="laplace",
    )
    spans = (("2023-01-03", "2023-01-17"), ("north", "south"))
    truth = counts[2:17, :3].sum()
    errors = np.array(
        [design.release(counts, rng=seeded_rng(i)).answer(*spans) - truth for i in range(800)]
    )
    deviation = design.release(counts, rng=seeded_rng(0)).answer_std(*spans)
    assert mean_of(errors, 0, deviation**2)
    # Sums of many Laplace variables: a fourth moment of at most six squares.
    assert mean_of(errors**2, deviation**2, 5 * deviation**4)
    assert not mean_of(errors**2, 1.5 * deviation**2, 5 * deviation**4)


@pytest.mark.parametrize("price", [budget(epsilon=1), budget(rho=0.5)])
def test_intervals_hold_and_are_not_wide(counts, price):
    design = plan_grid(AXES, g.all_rectangles(), price).best
    spans = (("2023-01-03", "2023-01-17"), ("north", "south"))
    truth = counts[2:17, :3].sum()
    release = design.release(counts, rng=seeded_rng(0))
    low, high = release.answer_interval(*spans, confidence=0.9)
    answers = [design.release(counts, rng=seeded_rng(i)).answer(*spans) for i in range(400)]
    # The width depends on nothing that was measured.
    held = (np.abs(np.array(answers) - truth) <= (high - low) / 2).sum()
    # P(fewer than 333 of 400 | 0.9 each) < 1e-5; the seeds are fixed.
    assert held >= 333
    assert high - low < 2 * 1.9 * release.answer_std(*spans)
    many = (np.full(150, "2023-01-03"), np.full(150, "2023-01-17"))
    lows, highs = release.answer_interval(many, ("north", "south"), confidence=0.9)
    assert (highs - lows >= high - low).all()


def test_small_gaussian_weights_may_be_taken_together(counts):
    design = plan_grid(AXES, g.all_rectangles(), budget(rho=0.001)).best
    release = design.release(counts, rng=seeded_rng(3))
    rectangle = [(2, 16), (0, 2)]
    ends = tuple((np.array(a), np.array(b)) for a, b in rectangle)
    variance = float(design.variance(ends))
    plain = design.strategy.terms(rectangle, design.noise)
    fewer = release._terms(rectangle, variance)
    assert sum(len(weights) for weights, _ in fewer) < sum(len(weights) for weights, _ in plain)
    widths = [tails.close(release.laws, terms, variance, 0.05) for terms in (plain, fewer)]
    assert widths[0] == pytest.approx(widths[1], rel=1e-5)


def test_margins_are_totals_of_an_axis(release, counts):
    regions = release.marginal(1)
    assert regions.labels == REGIONS.labels
    assert regions.values == pytest.approx(release.cells.sum(axis=0))
    assert regions.std[0] == pytest.approx(release.answer_std(None, ("north", "north")))
    low, high = release.answer_interval(None, ("north", "north"))
    assert (regions.low[0], regions.high[0]) == pytest.approx((low, high))
    days = release.marginal(0)
    assert days.values == pytest.approx(release.cells.sum(axis=1))
    assert ((days.low < counts.sum(axis=1)) & (counts.sum(axis=1) < days.high)).mean() > 0.7
    with pytest.raises(InvalidArgument, match="axis"):
        release.marginal(2)


def test_heavy_cells_are_surely_above(counts):
    spiky = counts.copy()
    spiky[4, 1] = 5000
    release = plan_grid(AXES, g.points(), budget(epsilon=1)).best.release(spiky, rng=seeded_rng(2))
    (cell,) = release.cells_above(1000)
    assert cell.labels == (DAYS.label(4), "east")
    assert cell.low <= 5000 <= cell.high
    assert release.cells_above(6000) == []


def test_the_text_stands_alone(release):
    again = GridRelease.from_json(release.to_json())
    spans = (("2023-01-03", "2023-01-17"), None)
    assert again.answer(*spans) == release.answer(*spans)
    assert again.answer_interval(*spans) == release.answer_interval(*spans)
    assert again.guarantee.epsilon() == pytest.approx(1)
    assert not again.private
    assert "not private" in str(again)


@pytest.mark.parametrize("broken", ["{}", "[]", "no", '{"discreet_grid": 2}'])
def test_other_texts_are_refused(broken):
    with pytest.raises(InvalidArgument):
        GridRelease.from_json(broken)


def test_measurements_must_fit(release):
    content = json.loads(release.to_json())
    content["grid"] = [integers(0, 19).content(), integers(0, 2).content()]
    with pytest.raises(InvalidArgument, match="fit"):
        GridRelease.from_json(json.dumps(content))


@pytest.mark.parametrize("counts", [np.zeros((4, 20), int), np.zeros((20, 4)), np.zeros(80, int)])
def test_counts_must_be_whole_and_of_the_grid(plan, counts):
    with pytest.raises(OutOfDomain):
        plan.best.release(counts)


WORKLOADS = {
    "all": g.all_rectangles(),
    "points": g.points(),
    "marginals": g.marginals(),
    "prefixes by points": g.product(w.prefixes(), w.points()),
    "listed": g.rectangles([[(0, 6), (0, 3)], [(7, 13), (0, 3)], [(14, 19), (1, 2)]]),
}


@pytest.mark.parametrize("price", [budget(epsilon=1), budget(rho=0.5)])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_the_choice_is_the_best_by_brute_comparison(workload, price):
    plan = plan_grid(AXES, workload, price)
    ends, weights = g.listed_rectangles(workload, (20, 4))
    means = [float(weights @ one.design.variance(ends)) for one in plan.candidates]
    assert [one.mean for one in plan.candidates] == pytest.approx(means, rel=1e-6)
    assert means[0] <= min(means) * 1.01
    assert {"flat", "quadtree, equal levels", "product of blocks"} <= {
        one.design.strategy.name for one in plan.candidates
    }
    assert plan.best.guarantee.epsilon(1e-6) <= (1 if price.epsilon else 6)


def test_single_cells_are_best_asked_flat():
    best = plan_grid(AXES, g.points(), budget(epsilon=1)).best
    assert best.strategy == flat_grid((20, 4))


def test_a_year_by_regions_of_a_hundred_thousand_rows():
    days, regions = dates("2023-01-01", "2023-12-31"), integers(1, 50)
    plan = plan_grid([days, regions], g.all_rectangles(), budget(epsilon=1), expected_rows=100_000)
    flat = next(one for one in plan.candidates if one.name.startswith("flat"))
    assert flat.mean / plan.candidates[0].mean > 3
    assert plan.candidates[0].rmse < 35.5
    assert "of all rows" in str(plan)
    rows = np.random.default_rng(1).integers(0, 365 * 50, size=100_000)
    counts = np.bincount(rows, minlength=365 * 50).reshape(365, 50)
    release = plan.best.release(counts, rng=seeded_rng(5))
    assert abs(release.total - 100_000) < 6 * release.answer_std(None, None)


def test_the_door_is_the_planner_with_declared_columns(plan):
    days = date(lower=dt.date(2023, 1, 1), upper=dt.date(2023, 1, 20))
    declared = [days, category(list(REGIONS.labels), include_other=False)]
    assert str(ranges.plan_grid(declared, epsilon=1, expected_rows=2400)) == str(plan)
    several = ranges.plan_grid(
        AXES,
        "points",
        rho=1,
        max_rows_per_unit=3,
        relation=NeighboringRelation.REPLACE_ONE,
        data_aware=False,
    )
    behind = plan_grid(
        AXES,
        g.points(),
        budget(rho=1),
        relation=NeighboringRelation.REPLACE_ONE,
        contribution=Contribution(rows=3),
    )
    assert several.candidates[0].rmse == behind.candidates[0].rmse
    assert ranges.plan_grid([2, 2], "points", epsilon=1, data_aware=True).aware


def test_replacing_and_several_rows_cost_more(counts):
    def rmse(**options):
        return plan_grid(AXES, g.all_rectangles(), budget(epsilon=1), **options).candidates[0].rmse

    assert rmse(relation=NeighboringRelation.REPLACE_ONE) > 1.8 * rmse()
    assert rmse(contribution=Contribution(rows=3)) > 2.7 * rmse()
    with pytest.raises(InvalidArgument, match="relation"):
        plan_grid(AXES, g.all_rectangles(), budget(epsilon=1), relation=NeighboringRelation.LOCAL)
