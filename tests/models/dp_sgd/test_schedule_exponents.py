"""Schedules: exponents, verdicts, the best noise under a budget, the analyzer (C39, C41)."""

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd._laplace_rates import (
    PowerSchedule,
    best_gaussian_sigmas,
    best_laplace_scales,
    best_steps,
    measured_exponents,
    noise_scales,
    schedule_sums,
)
from discreet.models.dp_sgd.convergence import ConvergenceProblem
from discreet.models.dp_sgd.schedule_analysis import (
    analyze_schedule,
    drawn_epsilons,
    undrawn_epsilons,
)
from discreet_studies.private_inference.published_sgd import noise_vanishes_as_published

# (decay, growth): the slopes of distance, variance and noise between 1e5 and 1e6 steps (E9).
SLOPES = {
    (0, 0): (-1, 0, 2),
    (0.5, 0): (-0.50, -0.43, 1.50),
    (0.75, 0): (-0.26, -0.26, 1.26),
    (0.5, 0.75): (-0.50, -0.43, 0.007),
    (0.5, 0.9): (-0.50, -0.43, -0.27),
    (0.5, 1.2): (-0.50, -0.43, -0.50),
    (0, 1.1): (-1, 0, -0.20),
    (0, 1.5): (-1, 0, -0.92),
}
FACTS = ConvergenceProblem(dimension=10, smoothness=0.25, variance=0.2, distance=5.0)


@pytest.mark.parametrize(("powers", "slopes"), SLOPES.items())
def test_terms_grow_as_tabulated(powers, slopes):
    found = measured_exponents(PowerSchedule(decay=powers[0], growth=powers[1]), steps=100_000)
    assert (found.distance, found.variance, found.noise) == pytest.approx(slopes, abs=0.02)


@pytest.mark.parametrize("powers", [(0, 0), (0.25, 0.3), (0.75, 0), (0.25, 0.9), (0, 1.1)])
def test_the_stated_exponents_are_those_in_the_limit(powers):
    schedule = PowerSchedule(decay=powers[0], growth=powers[1])
    # Away from the corners where logarithms rule; what is left falls as a power of the steps.
    found = measured_exponents(schedule, steps=1_000_000, factor=2)
    stated = schedule.exponents
    assert found.distance == pytest.approx(stated.distance, abs=0.01)
    assert found.variance == pytest.approx(stated.variance, abs=0.01)
    assert found.noise == pytest.approx(stated.noise, abs=0.02)


@pytest.mark.parametrize(
    ("decay", "growth", "verdict"),
    [
        (0, 1.1, "converges to a neighborhood"),
        (0.5, 0.76, "converges"),
        (0.5, 0.75, "stalls"),
        (0, 0.9, "diverges"),
        (0.5, 0.7, "diverges"),
        (0.9, 0, "diverges"),
    ],
)
def test_the_verdict(decay, growth, verdict):
    schedule = PowerSchedule(decay=decay, growth=growth)
    assert schedule.verdict == verdict
    assert schedule.noise_vanishes == verdict.startswith("converges")
    assert schedule.noise_vanishes == (schedule.exponents.noise < 0)


def test_the_printed_rule_asks_for_too_much():
    schedule = PowerSchedule(growth=1.2)
    assert schedule.noise_vanishes
    assert not noise_vanishes_as_published(schedule)
    assert measured_exponents(schedule, steps=10_000).noise < -0.3
    with pytest.raises(InvalidArgument):
        noise_vanishes_as_published(PowerSchedule(decay=0.5))


def test_the_leading_constant_of_the_constant_rate_is_a_third():
    many = 20_000
    scales = noise_scales(np.ones(many), diameter=1, epsilon=1)
    assert schedule_sums(np.ones(many), scales=scales).noise == pytest.approx(many**2 / 3, rel=1e-3)


def test_a_decay_of_one_or_more_is_refused():
    with pytest.raises(InvalidArgument):
        PowerSchedule(decay=1.0)
    with pytest.raises(InvalidArgument):
        PowerSchedule(start=0.0)


# ── the best noise under a budget ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("decay", [0.0, 0.25, 0.5, 0.75])
def test_no_other_laplace_schedule_of_the_same_budget_is_better(decay):
    rates = PowerSchedule(decay=decay).rates(50)
    best = best_laplace_scales(rates, sensitivity=2, epsilon=1)
    assert (2 / best).sum() == pytest.approx(1)
    rng = np.random.default_rng(1)
    least = ((rates * best) ** 2).sum()
    for size in (1e-3, 0.1, 1.0):
        for _ in range(100):
            spent = (2 / best) * np.exp(size * rng.normal(size=50))
            other = 2 / (spent / spent.sum())
            assert ((rates * other) ** 2).sum() > least


@pytest.mark.parametrize("decay", [0.0, 0.25, 0.5, 0.75])
def test_no_other_gaussian_schedule_of_the_same_budget_is_better(decay):
    rates = PowerSchedule(decay=decay).rates(50)
    best = best_gaussian_sigmas(rates, sensitivity=2, rho=0.1)
    spent = 2 / best**2
    assert spent.sum() == pytest.approx(0.1)
    least = ((rates * best) ** 2).sum()
    assert least == pytest.approx((2 * rates.sum()) ** 2 / 0.2)
    rng = np.random.default_rng(2)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(100):
            other = spent * np.exp(size * rng.normal(size=50))
            sigmas = np.sqrt(2 / (other / other.sum() * 0.1))
            assert ((rates * sigmas) ** 2).sum() > least


def test_a_constant_rate_has_constant_noise():
    rates = np.full(30, 0.1)
    assert np.ptp(best_laplace_scales(rates, sensitivity=1, epsilon=1)) < 1e-12
    assert np.ptp(best_gaussian_sigmas(rates, sensitivity=1, rho=1)) < 1e-12


@pytest.mark.parametrize(("decay", "share"), [(0, 1), (0.25, 0.90), (0.5, 0.51), (0.75, 0.14)])
def test_what_the_best_gaussian_schedule_saves(decay, share):
    rates = PowerSchedule(decay=decay).rates(1000)
    best = best_gaussian_sigmas(rates, sensitivity=1, rho=0.5)
    constant = math.sqrt(1000)  # the same budget in equal parts
    assert ((rates * best) ** 2).sum() / ((rates * constant) ** 2).sum() == pytest.approx(
        share, abs=0.005
    )


# ── the analyzer ──────────────────────────────────────────────────────────────────────────────


def test_the_best_number_of_steps_is_the_closed_form():
    schedule = PowerSchedule(start=0.01)
    found = analyze_schedule(FACTS, schedule=schedule, sensitivity=2, epsilon=1000, steps=100_000)
    wanted = best_steps(distance=5, epsilon=1000, dimension=10, rate=0.01, diameter=2)
    assert abs(found.best.steps - wanted) <= 1
    assert found.verdict == "diverges"
    assert found.best.bound.total <= min(point.bound.total for point in found.points)


def test_a_table_states_privacy_and_the_terms():
    found = analyze_schedule(
        FACTS,
        schedule=PowerSchedule(decay=0.5, growth=0.75),
        sensitivity=2,
        epsilon=1,
        steps=[100, 10_000],
    )
    last = found.rows()[-1]
    # The theorem says 1000 for the last iterate; all iterates together cost less (M28).
    assert last["run_cost"] == pytest.approx(680, abs=1)
    assert last["last_cost"] == last["run_cost"]
    assert last["total"] == pytest.approx(last["distance"] + last["variance"] + last["noise"])
    assert "10000" in str(found)
    assert "stalls" in str(found)


def test_secret_records_make_a_fixed_budget_go_further():
    schedule = PowerSchedule(start=0.03)
    asked = {"schedule": schedule, "sensitivity": 2, "epsilon": 1, "budget": "run"}
    open_run = analyze_schedule(FACTS, **asked, steps=3000)
    secret = analyze_schedule(FACTS, **asked, steps=3000, public_rows=5000)
    assert secret.best.bound.total < open_run.best.bound.total / 4
    assert secret.best.steps > open_run.best.steps
    # What a step may spend is what amplification gives back.
    shares = 1 / best_laplace_scales(schedule.rates(100), sensitivity=1, epsilon=1)
    spent = undrawn_epsilons(shares, rows=5000)
    assert drawn_epsilons(spent, rows=5000).sum() == pytest.approx(1)
    wide = np.array([1e-9, 1.0, 29.9, 30.1, 500.0])
    for batch in (1, 10):
        there = undrawn_epsilons(wide, rows=10, batch=batch)
        assert drawn_epsilons(there, rows=10, batch=batch) == pytest.approx(wide, rel=1e-12)


def test_a_gaussian_run():
    found = analyze_schedule(
        FACTS, schedule=PowerSchedule(start=0.03), sensitivity=2, rho=0.1, steps=300, budget="run"
    )
    # The noise term is p D^2 / (2 rho) times the sum of the rates.
    first = found.points[0]
    assert first.bound.noise == pytest.approx(10 * 4 / 0.2 * 0.03)
    # R^2/S + c S is least at S = R / sqrt(c).
    assert found.best.steps == pytest.approx(5 / math.sqrt(200) / 0.03, abs=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1, "rho": 1},
        {},
        {"rho": 1},
        {"rho": 1, "budget": "run", "public_rows": 10},
        {"epsilon": 1, "budget": "all"},
        {"epsilon": 1, "steps": []},
        {"epsilon": 1, "schedule": PowerSchedule(start=2.0)},
    ],
)
def test_contradictions_are_refused(wrong):
    asked = {"schedule": PowerSchedule(start=0.1), "sensitivity": 1, "steps": 10, **wrong}
    with pytest.raises(InvalidArgument):
        analyze_schedule(FACTS, **asked)
