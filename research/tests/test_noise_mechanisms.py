"""The study of Biswal 2024: every check holds, and wrong formulas make checks fail."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bin_statistics import bin_sensitivity
from discreet_studies.audits import published_distributions as published_laws
from discreet_studies.noise_mechanisms import bin_sensitivity as bins
from discreet_studies.noise_mechanisms import blocked_medians as blocks
from discreet_studies.noise_mechanisms import claimed_guarantees as promises
from discreet_studies.noise_mechanisms import disclosure_control as ages
from discreet_studies.noise_mechanisms import mixed_noise as mixed
from discreet_studies.noise_mechanisms import noise_sums as sums
from discreet_studies.noise_mechanisms import smooth_guarantees as smooth_promises
from discreet_studies.noise_mechanisms import textbook_numbers as basics
from discreet_studies.noise_mechanisms import weighted_sensitivity as weighted
from discreet_studies.noise_mechanisms.plan import BISWAL_MECHANISMS
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

QUICK = StudySetting(quick=True, seed=BISWAL_MECHANISMS.seed)


@pytest.fixture(scope="module")
def study():
    return run(BISWAL_MECHANISMS, quick=True)


def test_every_check_holds(study):
    holds(study)


def test_all_experiments_and_their_figures_are_there(study):
    ids = [experiment.id for experiment in BISWAL_MECHANISMS.experiments]
    assert ids == [f"E{i}" for i in range(14)]
    seen = Counter(check.id.partition("/")[0] for check in study.checks)
    assert all(seen[name] >= 3 for name in ids)
    figures = {figure.id.partition("/")[0] for figure in study.figures}
    assert figures == {f"E{i}" for i in (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13)}


def test_checks_have_names_of_their_own_and_reasons_where_they_correct(study):
    named(study)
    assert study.count("reproduced") > 50
    assert study.count("corrected") > 50


def test_the_error_of_chance_is_shared_among_no_more_checks_than_assumed(study):
    few_by_chance(study)


def test_figures_say_how_they_came_about(study):
    explained(study, ("exact", "runs", "run of", "draws"))


def test_the_files_are_whole(study):
    whole(study)


def test_the_same_seed_gives_the_same_study(study):
    again = (*ages.noisy_ages(QUICK).checks, *mixed.mixed_medians(QUICK).checks)
    assert set(again) <= set(study.checks)


# ── wrong formulas are seen ───────────────────────────────────────────────────────────────────


def test_noise_of_another_deviation_is_seen(monkeypatch):
    right = published_laws.gaussian_delta

    def wider(epsilon, **pair):
        return right(epsilon, **{**pair, "shift": 0.9 * pair["shift"]})

    monkeypatch.setattr(published_laws, "gaussian_delta", wider)
    found = failed((*promises._mixed(), *basics._gaussians()))
    assert sum(name.startswith("E0/mixed/") for name in found) == 6
    assert sum(name.startswith("E11/Gaussian") for name in found) == 5


def test_another_smoothness_is_seen(monkeypatch):
    monkeypatch.setattr(published_laws, "thesis_beta", published_laws.gaussian_beta)
    found = failed(smooth_promises.smooth_guarantees(QUICK).checks)
    assert sum(name.startswith("E12/smooth Gaussian/") for name in found) == 6
    assert sum(name.startswith("E12/smooth Laplace/") for name in found) == 3


def test_a_variance_of_one_for_laplace_noise_is_seen(monkeypatch):
    right = weighted.useful
    monkeypatch.setattr(weighted, "useful", lambda mean, factor: right(mean, factor / 2))
    found = failed(weighted.weighted_sensitivity(QUICK).checks)
    assert found >= {"E4/useful, as printed", "E4/useful, corrected", "E4/useful, new theorem"}


def test_another_interval_is_seen(monkeypatch):
    right = mixed._coverage

    def ninety_nine(found, noise, delta, *, width):
        return right(found, noise, delta, width=width * 2.576 / 1.96)

    monkeypatch.setattr(mixed, "_coverage", ninety_nine)
    found = failed(mixed.mixed_means(QUICK).checks)
    assert sum(name.startswith("E5/printed/") for name in found) >= 15
    assert sum(name.startswith("E5/coverage/") for name in found) >= 15


def test_medians_of_whole_rows_in_place_of_blocks_are_seen(monkeypatch):
    def whole(x, m):
        return np.repeat(np.median(x, axis=1)[:, None], m, axis=1)

    monkeypatch.setattr(blocks, "blocks_of_values", whole)
    found = failed(blocks.block_medians(QUICK).checks)
    assert {"E8/exponential, clipped/I, 5", "E8/beta/I, 20", "E8/middle"} <= found


def test_noise_of_another_width_is_seen(monkeypatch):
    right = ages.k_noise

    def wider(x, **how):
        return right(x, **how, half_width=3.0)

    monkeypatch.setattr(ages, "k_noise", wider)
    found = failed(ages.noisy_ages(QUICK).checks)
    assert {"E1/k-noise, MSE", "E1/k-noise, exact MSE"} <= found


def test_a_bounded_law_without_its_constant_is_seen(monkeypatch):
    def forgotten(scale, *, sensitivity, width):
        del width
        return sensitivity / scale

    monkeypatch.setattr(published_laws, "bounded_loss", forgotten)
    found = failed(sums._bounded_scales())
    assert len(found) == 5  # all but the one whose sensitivity is the width


# ── pieces ────────────────────────────────────────────────────────────────────────────────────


def test_smooth_sensitivity_is_that_of_all_windows():
    rng = np.random.default_rng(3)
    for n in (5, 8, 21):
        x = np.sort(rng.uniform(0, 100, (4, n)) ** 2 / 100, axis=1)
        m = (n - 1) // 2
        for beta in (0.1, 0.7):
            found = blocks.smooth_sensitivities(x, beta)
            for row, got in zip(x, found, strict=True):
                padded = [*[0.0] * (n + 1), *row, *[100.0] * (n + 2)]
                at = m + n + 1
                best = max(
                    math.exp(-beta * k) * (padded[at + t] - padded[at + t - k - 1])
                    for k in range(n + 1)
                    for t in range(k + 2)
                )
                assert got == pytest.approx(best)


@pytest.mark.parametrize("statistic", ["median", "mean", "lower", "largest"])
@pytest.mark.parametrize("empty", ["middle", "left"])
def test_bins_move_as_far_as_the_mechanism_pays_for(statistic, empty):
    names = {"lower": "lower_median", "left": "lower"}
    paid = bin_sensitivity(
        names.get(statistic, statistic),
        empty=names.get(empty, empty),
        relation=NeighboringRelation.REPLACE_ONE,
    )
    assert bins.largest_bin_change(statistic, empty) == pytest.approx(float(paid), abs=1e-6)


def test_medians_of_blocks_are_medians_of_blocks():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 60, (3, 40)), axis=1)
    found = blocks.blocks_of_values(x, 7)
    edges = np.linspace(0, 100, 8)
    for row, got in zip(x, found, strict=True):
        for k in range(7):
            inside = row[(row >= edges[k]) & (row < edges[k + 1])]
            middle = (edges[k] + edges[k + 1]) / 2
            assert got[k] == pytest.approx(np.median(inside) if len(inside) else middle)


def test_chances_to_stay_inside_are_those_of_draws():
    rng = np.random.default_rng(5)
    sensitivity, half = np.array([0.5]), np.array([0.8])
    draws = 400_000
    for got, noise in (
        (mixed.laplace_inside(sensitivity, half), rng.laplace(0, 0.5, draws)),
        (
            mixed.gaussian_inside(sensitivity, half, 0.1),
            rng.normal(0, 0.5 * math.sqrt(2 * math.log(12.5)), draws),
        ),
        (
            mixed.mixed_inside(sensitivity, half, 0.9),
            rng.normal(0, 0.5 * math.sqrt(2), draws),
        ),
    ):
        p = float(got[0])
        # Six deviations of a share: about 1e-9 each.
        assert abs((np.abs(noise) < 0.8).mean() - p) < 6 * math.sqrt(p * (1 - p) / draws)


# ── the documentation ─────────────────────────────────────────────────────────────────────────

PICTURES = {
    "e0": "E0/mixed",
    "e8": "E8/exponential, clipped",
    "e12": "E12/smooth Gaussian",
    "e13": "E13/errors",
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_those_of_the_study(study, name):
    drawn(study, PICTURES[name], f"biswal-mechanisms-{name}.svg")


def test_the_table_of_the_documentation_is_that_of_the_study(study):
    (table,) = (table for table in study.tables if table.id == "E0/refuted")
    rows = {row[0]: row[1:4] for row in table.rows}
    text = (DOCS / "biswal-mechanisms.md").read_text("utf-8")
    lines = re.findall(r"^\| (.*\(M\d+\)) \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert len(lines) == 11
    for claim, *numbers in lines:
        assert [float(cell) for cell in numbers] == pytest.approx(rows[claim], rel=0.005)
