"""The local experiments: real clients, exact laws, and wrong clients that make checks fail."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.local.oracles.randomized_response import RandomizedResponse, grr
from discreet.local.ranges.haar import LocalHaar, haar_wavelet
from discreet.local.ranges.hierarchical import (
    LevelReports,
    LocalHierarchicalHistogram,
    blocks,
    flat_histogram,
    hierarchical_histogram,
)
from discreet.noise.random_source import seeded_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers
from discreet_studies.checks import Claims
from discreet_studies.range_queries import client_reports as clients
from discreet_studies.range_queries import data_dependent as by_data
from discreet_studies.range_queries import discreet_reports as ours
from discreet_studies.range_queries import local_tables
from discreet_studies.range_queries import trust_models as ladder
from discreet_studies.range_queries.example_counts import SEED, even
from discreet_studies.range_queries.local_model import Flat, PublishedUnary, response
from discreet_studies.range_queries.tree_cover import running
from discreet_studies.study import StudySetting
from tests.distributions import mean_of

QUICK = StudySetting(quick=True, seed=SEED)


def failed(checks):
    return {check.id for check in checks if not check.ok}


def every_range(domain):
    ends = np.array(list(itertools.combinations(range(domain + 1), 2)))
    return ends[:, 0], ends[:, 1] - 1


# ── from variances of ranges to covariances ────────────────────────────────────────────────────


def test_covariances_of_any_errors_follow_from_variances_of_ranges():
    """For any covariance of the cells."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    of_cells = root @ root.T
    first, last = every_range(6)
    inside = (first[:, None] <= np.arange(6)) & (np.arange(6) <= last[:, None])

    def variance(a, b):
        row = (a[:, None] <= np.arange(6)) & (np.arange(6) <= b[:, None])
        return np.einsum("ri,ij,rj->r", row, of_cells, row)

    found = clients.from_single(variance, first, last)
    assert found == pytest.approx(inside @ of_cells @ inside.T, abs=1e-10)


@pytest.mark.parametrize(
    ("oracle", "model"),
    [("grr", Flat(oracle=response(1))), ("oue", Flat(oracle=PublishedUnary(epsilon=1)))],
)
def test_covariances_of_a_flat_structure_are_those_of_the_model_projected(oracle, model):
    """Two ways: the house's law, and the study's model with the total taken out."""
    counts = np.array([30, 5, 0, 15, 40, 10])
    first, last = every_range(6)
    made = flat_histogram(domain=clients.days(6), epsilon=1, oracle=oracle)
    found = clients.covariance(made, counts, first, last)
    cells = model.covariance(counts, np.arange(6), length=1)
    inside = ((first[:, None] <= np.arange(6)) & (np.arange(6) <= last[:, None])).astype(float)
    weights = inside - inside.mean(axis=1, keepdims=True)
    assert found == pytest.approx(weights @ cells @ weights.T, rel=1e-6, abs=1e-6)


# ── answers come from reports ──────────────────────────────────────────────────────────────────


def test_errors_are_those_of_collected_reports():
    counts = even(8, per_day=40)
    made = hierarchical_histogram(domain=clients.days(8), epsilon=1)
    first, last = every_range(8)
    (row,) = clients.errors(made, counts, first, last, structures=1, rng=seeded_rng(5))
    found = clients.collected(made, counts, seeded_rng(5))
    answers = found.answer_many(first, last)
    before = running(counts)
    assert row == pytest.approx(answers - (before[last + 1] - before[first]), abs=1e-6)
    whole = (first == 0) & (last == 7)
    assert row[whole] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("structure", ["tree", "haar"])
def test_simulated_errors_have_the_stated_covariance(structure):
    """Each product of two errors, by its normal variance: the spread of a check rests on it."""
    counts = np.array([400, 50, 0, 150])
    build = {"tree": hierarchical_histogram, "haar": haar_wavelet}[structure]
    made = build(domain=clients.days(4), epsilon=1)
    first, last = np.array([0, 1, 2]), np.array([0, 2, 3])
    exact = clients.covariance(made, counts, first, last)
    drawn = clients.errors(made, counts, first, last, structures=400, rng=seeded_rng(2))
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        spread = exact[i, i] * exact[j, j] + exact[i, j] ** 2
        assert mean_of(drawn[:, i] * drawn[:, j], exact[i, j], spread)
        assert not mean_of(2 * drawn[:, i] * drawn[:, i], exact[i, i], 2 * exact[i, i] ** 2)


# ── wrong clients are seen ─────────────────────────────────────────────────────────────────────


class TooHonest(RandomizedResponse):
    """Every second lie is left out."""

    def _answers(self, own, rng):
        lies = bernoulli_real(self._lie, own.size, rng) & (uniform_integers(2, own.size, rng) == 0)
        return np.where(lies, (own + 1 + uniform_integers(255, own.size, rng)) % 256, own)


def test_a_client_that_lies_too_little_is_seen(monkeypatch):
    monkeypatch.setattr(ours, "grr", lambda **_: TooHonest(categories=256, epsilon=Fraction(1)))
    monkeypatch.setattr(ours, "oue", grr)
    assert failed(ours._oracles(QUICK)) == {"E11/simulated, grr/r=16", "E11/simulated, oue/r=16"}


def test_reports_of_another_epsilon_are_seen(monkeypatch):
    """Reports at twice the epsilon, against the law at the stated one."""
    right = clients.collected

    def louder(randomizer, counts, rng):
        if isinstance(randomizer, LocalHierarchicalHistogram):
            size = randomizer.domain.size
            names = tuple({one.kind for one in randomizer.oracles} & {"oue", "grr", "olh"})
            randomizer = blocks(
                domain=clients.days(size),
                epsilon=2 * randomizer.epsilon,
                sizes=randomizer.sizes,
                shares=randomizer.shares,
                oracle=names or None,
            )
        elif isinstance(randomizer, LocalHaar):
            randomizer = haar_wavelet(domain=randomizer.domain, epsilon=2 * randomizer.epsilon)
        return right(randomizer, counts, rng)

    monkeypatch.setattr(clients, "collected", louder)
    found = failed(local_tables._simulated(QUICK))
    assert {f"E12/simulated, {name}/D=64" for name in ("B=2", "B=4", "optimized", "Haar")} <= found


def test_levels_that_are_drawn_unevenly_are_seen(monkeypatch):
    """Most users on the top level: unbiased still, with another error."""

    def uneven(self, number, rng):
        top = len(self.shares) - 1
        return np.where(
            uniform_integers(8, number, rng) > 0,
            top,
            uniform_integers(len(self.shares), number, rng),
        )

    monkeypatch.setattr(LevelReports, "_levels", uneven)
    found = failed(local_tables._simulated(QUICK))
    assert {"E12/simulated, B=2/D=64", "E12/simulated, B=2, optimized/D=64"} <= found


def test_another_law_than_the_exact_one_is_seen(monkeypatch):
    """Without the known total: flat errors are twice as large."""
    monkeypatch.setattr(
        local_tables,
        "flat_histogram",
        lambda **how: hierarchical_histogram(**{**how, "oracle": "oue"}, branching=2),
    )
    found = failed(local_tables._issue())
    assert found == {"E12/optimized/flat"}


# ── data, ladder ───────────────────────────────────────────────────────────────────────────────


def test_the_users_of_each_shape():
    shapes = by_data.shapes()
    assert {int(counts.sum()) for counts in shapes.values()} == {100_000}
    assert np.count_nonzero(shapes["6 spikes"]) == 6
    assert shapes["uniform"].max() - shapes["uniform"].min() <= 1
    mean = shapes["Beta(5, 2)"] @ (np.arange(256) + 0.5) / 256 / 100_000
    assert mean == pytest.approx(5 / 7, abs=1e-4)


def test_every_method_gives_shares_of_all_cells():
    counts = np.array([100, 400, 0, 0, 2500, 500, 250, 250])
    found = by_data.estimates(counts, 4.0, seeded_rng(1))
    assert tuple(found) == by_data.METHODS
    for name, cells in found.items():
        assert cells.sum() == pytest.approx(1, abs=1e-6), name
        if name != "wave, smoothed":  # which flattens a peak of one cell
            assert np.abs(cells - counts / 4000).max() < 0.25, name
        if name not in ("tree of 4", "optimized"):
            assert cells.min() >= -1e-12, name


def test_a_ladder_that_amplifies_for_too_few_reports_is_seen(monkeypatch):
    right = ladder._epsilon
    monkeypatch.setattr(
        ladder, "_epsilon", lambda one, users, parts=(): right(one, users // 2, parts)
    )
    amplified = {(10_000, 1.0): ladder._amplified(10_000, 1.0)}
    assert len(failed(ladder._amplification(amplified))) == 2


def test_whole_users_are_as_even_as_can_be():
    counts = ladder._counts()
    assert counts.sum() == 100_000
    assert counts.max() - counts.min() == 1


def test_a_spread_with_excess_is_wider():
    drawn, exact = np.ones((4, 3)), np.eye(3)
    plain, wide = (
        clients.squared(Claims(source="x"), "x", "x", drawn, exact, excess=excess)
        for excess in (0.0, 6.0)
    )
    assert wide.tolerance == pytest.approx(2 * plain.tolerance)
