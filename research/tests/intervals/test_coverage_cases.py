"""The harness: every interval of the package, and of the rest of the project, put through it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import intervals, query
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.intervals._bootstrap import MeanBootstrap, bootstrap, fit_clipped_normal
from discreet.intervals._coverage import coverage, per_column
from discreet.intervals._mean import mean_interval
from discreet.intervals._proportion import proportion_interval
from discreet.noise.random_source import seeded_rng
from discreet_studies.intervals import mean_comparison as against
from discreet_studies.intervals.coverage_cases import entries
from tests import distributions as laws

ENTRIES = entries()
UNIT = {"lower": 0, "upper": 1}


@pytest.mark.parametrize("name", [name for name in ENTRIES if not name.startswith("reports")])
def test_no_entry_is_refuted(name):
    entry = ENTRIES[name]
    found = entry.run(trials=300, seed=1)
    if name == "mean, bootstrap":
        assert found.rate > 0.85  # less than it says, as stated: no theorem
        return
    assert found.bounds(1 - laws.ALPHA)[1] >= 0.95
    if entry.guaranteed:
        assert found.bounds(0.999)[1] >= 0.95


def test_every_public_interval_has_an_entry():
    words = {
        f"{name.removeprefix('reports, ').split(',')[0]}_from_reports"
        if name.startswith("reports, ")
        else name.split(",")[0]
        for name in ENTRIES
    }
    words |= {"quantile_from_reports"}  # the median is one
    tools = {"bootstrap", "compare_central_local", "compare_by_rows", "coverage", "per_column",
             "leave_one_out"}  # fmt: skip
    assert set(intervals.__all__) - tools <= words


@pytest.mark.parametrize("kind", ["mean", "median"])
def test_intervals_of_tables_can_be_put_through(tmp_path, kind):
    """Any estimator of the project: here of a table, with an account that pays for each release."""
    ledger = discreet.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    account = ledger.account("test", limit=discreet.pure_dp(1000))
    asked = {"mean": query.mean("x"), "median": query.median("x", method="tree", bins=64)}[kind]

    def interval(column, _bits):
        # Not with the bits of the simulation: a release that is charged takes private ones only.
        table = discreet.table(
            pl.DataFrame({"x": column}),
            columns={"x": discreet.real(lower=0, upper=1, granularity=2.0**-10)},
            account=account,
        )
        (release,) = table.release([asked], epsilon=4)
        low, high = release.interval(0.9, sampling=True)
        return float(np.ravel(low)[0]), float(np.ravel(high)[0])

    uniform = {"draw": lambda g, size: g.random(size), "truth": 0.5}
    found = coverage(per_column(interval), **uniform, rows=400, confidence=0.9, trials=10)
    assert found.held >= 3  # a coin of 0.9 falls short of that once in 3 million
    assert 0 < found.width < 0.7


def test_an_account_pays_before_the_column_is_read(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    limit = discreet.Guarantee(
        discreet.pure_dp(1.5).event, discreet.NeighboringRelation.REPLACE_ONE
    )
    account = ledger.account("survey", limit=limit)
    plan = mean_interval(**UNIT, public_rows=5, epsilon=1, share=0.25)
    found = plan.release([0.1, 0.2, 0.3, 0.4, 0.5], account=account, label="hours")
    assert found.low <= found.high
    assert account.spent.epsilon() == pytest.approx(1)
    assert account.history[-2].label == "hours"
    with pytest.raises(discreet.BudgetExceeded):
        plan.release("not even read", account=account)
    with pytest.raises(NotCertified, match="seeded"):
        proportion_interval(public_rows=1, epsilon=0.1).release(
            [1], account=account, rng=seeded_rng(1)
        )
    with pytest.raises(discreet.OutOfDomain):
        proportion_interval(public_rows=2, epsilon=0.1).release([1], account=account)
    assert account.spent.epsilon() == pytest.approx(1.1)  # a failure stays spent


def test_bootstrap_is_post_processing_with_no_guarantee():
    plan = mean_interval(**UNIT, public_rows=100, epsilon=2, share=0.3)
    answer = plan.release(np.random.default_rng(1).random(100), rng=seeded_rng(1))
    found = bootstrap(plan, answer, trials=400)
    assert found == bootstrap(plan, answer, trials=400)
    assert found.guaranteed is None
    assert found.value == answer.value
    assert found.low < found.value < found.high
    assert 0.05 < found.width < 0.3
    known = mean_interval(**UNIT, public_rows=100, epsilon=2, variance=1 / 12)
    assert bootstrap(known, known.release(np.full(100, 0.5), rng=seeded_rng(2))).width > 0.05
    blind = mean_interval(**UNIT, public_rows=100, epsilon=2, share=0)
    with pytest.raises(InvalidArgument, match="release a variance or know it"):
        bootstrap(blind, blind.release(np.full(100, 0.5), rng=seeded_rng(2)))
    with pytest.raises(InvalidArgument, match="trials must be at least 20"):
        bootstrap(plan, answer, trials=3)


def test_bootstrap_simulates_the_clipping():
    """Rows that are clipped at a bound on one side: the model's mean is that of clipped rows."""
    plan = mean_interval(**UNIT, public_rows=200, epsilon=5, share=0.5)
    again = MeanBootstrap(plan=plan, trials=4000)
    off = again._errors(0.02, 0.3, np.random.default_rng(1), seeded_rng(1))
    assert abs(off.mean()) < 0.002


@pytest.mark.parametrize(("mean", "std"), [(0.5, 0.2), (0.5, 12**-0.5), (0.1, 0.15), (0.9, 1e-5)])
def test_bootstrap_fits_clipped_rows(mean, std):
    center, spread = fit_clipped_normal(mean, std, 0.0, 1.0)
    rows = np.clip(np.random.default_rng(1).normal(center, spread, 400_000), 0, 1)
    assert rows.mean() == pytest.approx(mean, abs=0.002)
    assert rows.std() == pytest.approx(std, rel=0.01)


def test_the_grid_counts_what_it_says():
    cases = against.against_published(rows=[100], epsilons=[0.5, 5.0], trials=3000)
    assert len(cases) == 2 * len(against.DISTRIBUTIONS)
    for case in cases:
        assert case.ours.bounds(1 - laws.ALPHA)[1] >= 0.95
        assert case.ratio() <= case.ratio(tuned=True)
        assert len(case.rivals) == 6
    assert min(rival.coverage.rate for case in cases for rival in case.rivals) < 0.8
    assert "of 10 cases" in against.summary(cases)
