"""The study of inference in Biswal 2024: every check holds, and wrong formulas make checks fail."""

import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest

from discreet.audit.series import VAR
from discreet.core.errors import Unsupported
from discreet_studies import optional_models as learned
from discreet_studies.private_inference import calibration, methods, schedules
from discreet_studies.private_inference import gradient_descent as learning
from discreet_studies.private_inference import interval_coverage as coverage
from discreet_studies.private_inference import interval_widths as widths
from discreet_studies.private_inference import median_comparison as medians
from discreet_studies.private_inference import reference_values as stated
from discreet_studies.private_inference import schedule_costs as runs
from discreet_studies.private_inference import series_figures as figures
from discreet_studies.private_inference import series_leakage as series
from discreet_studies.private_inference import variance_comparison as variances
from discreet_studies.private_inference.plan import BISWAL_INFERENCE
from discreet_studies.private_inference.published_series import claim
from discreet_studies.study import StudySetting, run
from research.tests.completeness import (
    DOCS,
    drawn,
    explained,
    failed,
    few_by_chance,
    holds,
    named,
    whole,
)

QUICK = StudySetting(quick=True, seed=BISWAL_INFERENCE.seed)


@pytest.fixture(scope="module")
def study():
    return run(BISWAL_INFERENCE, quick=True)


def starting(found, start):
    return sum(name.startswith(start) for name in found)


def test_every_check_holds(study):
    holds(study)


def test_all_experiments_and_their_figures_are_there(study):
    ids = [experiment.id for experiment in BISWAL_INFERENCE.experiments]
    assert ids == [f"E{i}" for i in range(1, 13)]
    seen = Counter(check.id.partition("/")[0] for check in study.checks)
    assert all(seen[name] >= 12 for name in ids)
    assert {figure.id.partition("/")[0] for figure in study.figures} == set(ids)
    assert {table.id.partition("/")[0] for table in study.tables} == set(ids)


def test_every_stated_number_is_checked(study):
    expected = {
        round(float(check.expected), 10)
        for check in study.checks
        if isinstance(check.expected, int | float)
    }
    tables = (
        stated.MATCHED, stated.CLASSICAL, stated.ANALYTIC, stated.WIDTHS, stated.SIGMAS,
        stated.COMPOSED, stated.FIGURES, stated.SWEEPS, stated.LEAKAGE, stated.EPSILONS,
        stated.DECAY, stated.EXPONENTS, stated.EXCESS,
    )  # fmt: skip
    numbers = set(itertools.chain.from_iterable(row for table in tables for row in table.values()))
    numbers |= set(stated.NOISE_EXPONENTS.values())
    numbers |= {value for row in stated.TRAJECTORY.values() for value in row[:3]}
    assert {round(number, 10) for number in numbers} <= expected


def test_checks_have_names_of_their_own_and_reasons_where_they_correct(study):
    named(study)
    assert study.count("reproduced") > 200
    assert study.count("corrected") > 150
    assert study.count("not reproducible") == 2


def test_the_error_of_chance_is_shared_among_no_more_checks_than_assumed(study):
    few_by_chance(study)


def test_figures_say_how_they_came_about(study):
    explained(study, ("exact", "runs"))
    for figure in study.figures:
        assert all(math.isfinite(value) for line in figure.lines for value in (*line.x, *line.y))


def test_the_files_are_whole(study):
    whole(study)


def test_the_same_seed_gives_the_same_study(study):
    again = (*variances.variances(QUICK).checks, *schedules.convergence(QUICK).checks)
    assert set(again) <= set(study.checks)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name, name=lacking)

    monkeypatch.setattr(learned, "import_module", missing)
    lacking = "sklearn"
    with pytest.raises(Unsupported, match=r"discreet\[models\]"):
        BISWAL_INFERENCE.experiments[8].run(QUICK)
    lacking = "discreet.models"
    with pytest.raises(ModuleNotFoundError):
        BISWAL_INFERENCE.experiments[8].run(QUICK)


# ── wrong formulas are seen ───────────────────────────────────────────────────────────────────


def test_another_scale_of_noise_on_rows_is_seen(monkeypatch):
    right = medians.noisy_median
    monkeypatch.setattr(medians, "noisy_median", lambda x, scale: right(x, 1.1 * scale))
    found = failed(medians.medians(QUICK).checks)
    assert {"E1/pre, deviation", "E1/spread, as coded"} <= found


def test_missing_cross_terms_are_seen(monkeypatch):
    def squares_only(n, *, variance, scale):
        error = variances.published_error(n, variance=variance, fourth=variance**2, scale=scale)
        return variance + 2 * scale**2, error, error

    monkeypatch.setattr(variances, "moments", squares_only)
    found = failed(variances.variances(QUICK).checks)
    assert {"E2/variance", "E2/error", "E2/second moment"} <= found
    assert starting(found, "E2/simulated error") == 3


def analytic_checks():
    drawn = {n: coverage.samples(n, 2000, QUICK.rng("x")) for n in (100, 1000)}
    found = {key: coverage._analytic(drawn[key[0]], *key[1:]) for key in stated.ANALYTIC}
    return failed(coverage._analytic_checks(found))


def test_less_noise_than_the_width_knows_is_seen(monkeypatch):
    right = coverage.gaussian_sigma
    monkeypatch.setattr(coverage, "gaussian_sigma", lambda *a, **k: right(*a, **k) * 0.5)
    assert "E3/exact noise, plug-in, width/n 1000, epsilon 0.9 and 0.5" in analytic_checks()
    monkeypatch.setattr(widths, "textbook_noise", lambda n, epsilon: 4.0 / (n * epsilon))
    assert starting(failed(widths.widths(QUICK).checks), "E4/classical Gaussian") >= 3


def test_an_upper_end_that_is_none_is_seen(monkeypatch):
    monkeypatch.setattr(coverage, "upper", coverage.plug_in)
    found = analytic_checks()
    assert "E3/safe" in found
    assert starting(found, "E3/exact noise, safe/") >= 4


def test_the_printed_sigma_in_place_of_the_solution_is_seen(monkeypatch):
    right = calibration.sigma

    def printed(epsilon, *, delta, mode):
        del mode
        return right(epsilon, delta=delta, mode="as_text")

    monkeypatch.setattr(calibration, "sigma", printed)
    found = failed(calibration.calibrations(QUICK).checks)
    assert starting(found, "E5/zCDP, corrected/") == 9
    assert "E5/zCDP wins" in found


def test_a_variance_over_n_is_seen(monkeypatch):
    right = figures.adjusted_epsilon

    def over_n(epsilon, *, variance, **how):
        return right(epsilon, variance=2 * variance, **how)

    monkeypatch.setattr(figures, "adjusted_epsilon", over_n)
    found = failed(figures._curves())
    assert starting(found, "E7/6.1, corrected/") == 4  # at rho -1 there is no variance
    assert starting(found, "E7/6.2, corrected/") == 5
    assert starting(found, "E7/6.2, as_coded/") == 0


def test_another_noise_of_the_releases_is_seen(monkeypatch):
    monkeypatch.setattr(series, "_STD", 1.001 * series._STD)
    found = failed(series.vectors(QUICK).checks)
    assert sum(bool(re.match(r"E8/A\d( at t=\d)?\+N", name)) for name in found) >= 18


def test_noise_of_the_step_before_is_seen(monkeypatch):
    monkeypatch.setattr(
        schedules, "noise_scales",
        lambda rates, **how: np.sqrt(np.arange(len(rates)) + 1.0),
    )  # fmt: skip
    found = failed((*schedules._constants(), *schedules.convergence(QUICK).checks))
    assert "E9/constant" in found
    assert starting(found, "E10/bound/") == 3


def test_descent_without_noise_is_seen(monkeypatch):
    monkeypatch.setattr(methods, "PublishedLaplaceDescent", NoNoise)
    found = failed(learning._fixed_checks(learning._fixed(QUICK, methods.made_up(QUICK))))
    assert starting(found, "E11/rate 1, thesis/") == 4


class NoNoise:
    """Descent that claims to be private."""

    def __init__(self, *, schedule, sensitivity, epsilon):
        self.schedule = schedule
        del sensitivity, epsilon

    def simulate(self, objective, x, y, *, steps, repetitions, seed):
        rates = self.schedule.rates(steps)
        how = {"rates": rates, "scales": None, "repetitions": repetitions, "seed": seed}
        return methods.simulate(objective, x, y, **how)


def test_steps_that_contract_are_told_from_steps_that_drive_apart():
    assert runs.last_loss(-1.0, 2) > 1.2
    assert runs.last_loss(1.0, 2) < 0.8


# ── pieces ────────────────────────────────────────────────────────────────────────────────────


def test_the_law_of_a_noisy_median_is_that_of_draws():
    rng = np.random.default_rng(3)
    x = rng.exponential(5, 51)
    exact = medians.noisy_median(x, 8.0)
    draws = np.median(x + rng.laplace(scale=8, size=(40_000, 51)), axis=1) - np.median(x)
    # Six deviations of a mean, and of a variance of a nearly normal law.
    assert abs(draws.mean() - exact.bias) < 6 * exact.std / 200
    assert abs(draws.var() / exact.std**2 - 1) < 6 * 1.5 / 200


def test_printed_and_true_moments_agree_where_nothing_is_crossed():
    # One term, no cross terms: for n = 2 both rows have the same square, and half of it is lost.
    _, spread, _ = variances.moments(2, variance=0.0, scale=1.0)
    second = spread + 4
    assert variances.fourth_moment(2, scale=1.0, as_text=False) * 4 == pytest.approx(second)


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.4])
@pytest.mark.parametrize(
    ("name", "scenario"), [("6.1", "A1+N2"), ("6.2", "A2+N1"), ("6.3", "A2+N1")]
)
@pytest.mark.parametrize("mode", ["as_text", "corrected"])
def test_points_of_the_figures_are_what_the_theorems_claim(name, scenario, rho, mode):
    model = VAR(
        lags=figures._MATRICES[name], noise=((1, rho), (rho, 1)), start=np.eye(2)
    )  # fmt: skip
    made = claim(
        model, scenario=scenario, width=1.0, epsilons=(1, 1), deltas=(0.05, 0.05), mode=mode,
        prior="flat",
    )  # fmt: skip
    assert figures.adjusted(name, rho, mode=mode) == pytest.approx(made.epsilon)


def test_the_slopes_backward_are_those_that_the_engine_uses():
    slopes, variance = series.backward()
    assert abs(slopes[0]) / math.sqrt(variance) == pytest.approx(series.mu("A2", knowledge="N1"))


def test_mini_batches_average_the_second_half():
    data = methods.made_up(QUICK)
    found = methods.mini_batches(
        data, steps=1, multiplier=0.0, rate=1.0, runs=500, rng=np.random.default_rng(1)
    )
    # One step from zero: an unbiased estimate of minus the gradient there.
    gradient = ((0.5 - data.y) @ data.x) / len(data.x)
    spread = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) + gradient) < 6 * spread).all()


# ── the documentation ─────────────────────────────────────────────────────────────────────────

PICTURES = {
    "e1": "E1/medians",
    "e3": "E3/coverage",
    "e4": "E4/widths",
    "e7": "E7/6.2",
    "e8": "E8/fading",
    "e9": "E9/noise",
    "e11": "E11/excess",
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_those_of_the_study(study, name):
    drawn(study, PICTURES[name], f"biswal-inference-{name}.svg")


def test_the_tables_of_the_documentation_are_those_of_the_study(study):
    text = (DOCS / "biswal-inference.md").read_text("utf-8")
    rows = {
        table: [
            [cell for cell in row if isinstance(cell, float)]
            for found in study.tables
            if found.id == table
            for row in found.rows
        ]
        for table in ("E1/medians", "E11/excess")
    }
    medians_found = re.findall(
        r"^\| (?:noise on|choice).* \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE
    )
    stated_medians = sorted(tuple(map(float, row)) for row in medians_found)
    assert len(stated_medians) == 4
    for row, got in zip(stated_medians, sorted(rows["E1/medians"]), strict=True):
        assert list(row) == pytest.approx(got, abs=0.05)
    excess = {name: value for name, *rest in _excess(study) for value in rest}
    for words, name in {
        "predicting 0": "predicting 0",
        "thesis, tuned": "thesis, last iterate, tuned",
        "Laplace noise, steps on secret records": "Laplace on sampled records, tuned",
        "noise on the minimizer": "noise on the minimizer",
        "Gaussian mini-batches (δ = 10⁻⁶)": "Gaussian mini-batches",
    }.items():
        (number,) = re.findall(rf"^\| {re.escape(words)} \| ([\d.]+) \|$", text, re.MULTILINE)
        assert float(number) == pytest.approx(excess[name], rel=0.05)


def _excess(study):
    (table,) = (table for table in study.tables if table.id == "E11/excess")
    return [(row[0], row[3]) for row in table.rows]
