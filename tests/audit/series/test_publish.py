"""Means with designed noise: exact sensitivities, the noise that was asked for, and refusals."""

import itertools

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.accounting.conversion import gaussian_epsilon
from discreet.audit import series
from discreet.audit.series._publish import _totals, _whitening
from discreet.audit.series.worst_case import variants
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA

SHAPE = np.array([[1.0, 0.6, 0.3], [0.6, 1.2, 0.6], [0.3, 0.6, 0.9]])
PANEL = series.ExchangeableVAR(habits=(0.8,), variance=1.0, correlation=0.1).simulate(
    people=20, times=4, rng=seeded_rng(1)
)


def releases(scale=1.0, *, people=20, times=(0, 1, 3), width=8, weights=None):
    return series.releases(
        times=times, width=width, people=people, covariance=SHAPE * scale, weights=weights
    )


@pytest.mark.parametrize("span", [1, 2, 3])
def test_no_row_moves_the_whitened_totals_further(span):
    """All pairs of rows on a coarse grid; up to sixteen times the bound is attained."""
    column = SortedColumn.of(0, span, 1)
    whitening = _whitening(releases(width=span), column, 20)
    rows = np.array(list(itertools.product(range(span + 1), repeat=3)), dtype=float)
    whole = [whitening.rows @ _totals(row[None], column) for row in rows]
    pairs = [(a, b) for a in range(len(rows)) for b in range(a)]
    # Totals are in half steps: distances are twice, their squares four times those of steps.
    far = max(sum(int(x) ** 2 for x in whole[a] - whole[b]) for a, b in pairs)
    assert 4 * whitening.moved() * (1 - 1e-8) <= far <= 4 * whitening.moved()
    one = max(
        sum(int(x) ** 2 for x in whole[a] - whole[b])
        for a, b in pairs
        if np.count_nonzero(rows[a] != rows[b]) == 1
    )
    assert 4 * whitening.moved(times=1) * (1 - 1e-8) <= one <= 4 * whitening.moved(times=1)


def test_the_noise_is_the_one_that_was_asked_for():
    asked = releases(0.25)
    found = series.publish(PANEL, releases=asked, bounds=(-4, 4), rng=seeded_rng(2))
    assert found.covariance == pytest.approx(asked.covariance, rel=1e-6)
    truth = np.clip(PANEL, -4, 4).mean(axis=0)[[0, 1, 3]]
    runs = 2000
    bits = seeded_rng(3)
    errors = np.array(
        [
            series.publish(PANEL, releases=asked, bounds=(-4, 4), rng=bits).values - truth
            for _ in range(runs)
        ]
    )
    C = asked.covariance
    limit = stats.norm.isf(ALPHA / 24) * np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / runs)
    sample = errors.T @ errors / runs
    assert (np.abs(sample - C) < limit).all()
    assert (np.abs(sample - np.diag(np.diag(C))) > limit).any()  # it is correlated
    assert (np.abs(errors.mean(axis=0)) < stats.norm.isf(ALPHA / 6) * found.std / 44).all()


def test_without_noise_it_is_the_mean():
    found = series.publish(PANEL, releases=releases(1e-8), bounds=(-4, 4), rng=seeded_rng(2))
    truth = np.clip(PANEL, -4, 4).mean(axis=0)[[0, 1, 3]]
    assert found.values == pytest.approx(truth, abs=2e-3)
    far = np.where(PANEL > 1, 1e300, PANEL)  # clipped without a word
    again = series.publish(far, releases=releases(1e-8, width=5), bounds=(-4, 1), rng=seeded_rng(2))
    assert again.values == pytest.approx(np.clip(PANEL, -4, 1).mean(axis=0)[[0, 1, 3]], abs=2e-3)


def test_the_guarantees_are_those_of_the_noise_alone():
    asked = releases(0.25)
    found = series.publish(PANEL, releases=asked, bounds=(-4, 4), rng=seeded_rng(2))
    cells = series.cells(
        series.VAR(lags=np.zeros((20, 20)), noise=np.eye(20)), releases=asked, attacker_knows="all"
    )
    for guarantee, mu in ((found.one_value, cells.worst), (found.guarantee, cells.user.max())):
        assert guarantee.relation is NeighboringRelation.REPLACE_ONE
        exact = gaussian_epsilon(1e-6, mu=float(mu))
        assert guarantee.epsilon(1e-6) == pytest.approx(exact, rel=1e-3)


def test_a_design_is_published(tmp_path):
    model = series.ExchangeableVAR(habits=(0.8,), variance=1.0, correlation=0.1).model(20)
    weekly = series.releases(times=range(4), width=8, people=20, std=1)
    fix = series.design(model, releases=weekly, mu=0.3, shape="correlated")
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        limit = discreet.approx_dp(5, 1e-6, relation=NeighboringRelation.REPLACE_ONE)
        account = ledger.account("panel", limit=limit)
        found = series.publish(PANEL, releases=fix.releases, bounds=(-4, 4), account=account)
        assert found.receipt is not None
        reached = series.cells(model, releases=fix.releases.with_noise(found.covariance)).worst
        assert reached == pytest.approx(fix.reached, rel=1e-6)
        with pytest.raises(BudgetExceeded):
            series.publish(PANEL, releases=fix.releases, bounds=(-4, 4), account=account)


def test_noise_that_knows_the_panel_is_not_published():
    """Its covariance is a function of private values, and is published with the means."""
    alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.1)
    private = alike.simulate(people=5, times=40, rng=seeded_rng(2))
    fitted = series.fit(private)
    given = series.VAR(lags=fitted.lags, noise=fitted.noise)
    asked = series.releases(times=(0, 1, 2), width=8, people=5, std=1)
    for models, public in ((fitted, False), ([given, fitted], False), (given, True)):
        found = series.design(models, releases=asked, mu=0.5, shape="equal")
        assert found.releases.public == public
    looked = series.report(private, bounds=(-4, 4), std=1.0, released=(0, 1, 2))
    for fix in looked.fixes:
        with pytest.raises(NotCertified, match="fitted to private values"):
            series.publish(private, releases=fix.releases, bounds=(-4, 4))
    assert not any(one.public for one in variants(fitted).values())


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"bounds": (-4, 5)}, InvalidArgument, "8 wide"),
        ({"releases": releases(people=3)}, InvalidArgument, "means of the panel's 20 people"),
        ({"releases": releases(weights=np.full(20, 0.1))}, InvalidArgument, "means of the panel's"),
        ({"releases": releases(times=(0, 1, 4))}, InvalidArgument, "panel's 4 times"),
        ({"panel": [[1, 2], [1]]}, OutOfDomain, "as many times"),
        ({"releases": releases(1e40)}, OutOfDomain, "exact totals"),
    ],
)
def test_refused(change, error, text):
    given = {"panel": PANEL, "releases": releases(), "bounds": (-4, 4), **change}
    with pytest.raises(error, match=text):
        series.publish(**given, rng=seeded_rng(1))
