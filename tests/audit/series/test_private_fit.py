"""Models under differential privacy, and leakage when the model is not known."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.audit import series
from discreet.audit.series import _leakage as brute
from discreet.audit.series import _private_fit as private
from discreet.audit.series import _private_full_fit as private_full
from discreet.audit.series import exchangeable as alike
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    RelationMismatch,
)
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA

HABIT = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
BOUNDS = (-8, 8)


def plan(*, times, order=1, span=3, largest=None, people=1):
    """A plan on a grid that is coarse enough to try all rows."""
    column = SortedColumn.of(0, span, 1)
    most = times * (span + 1) ** 2 // 4 if largest is None else largest
    made = private.plan_fit(people=people, times=times, bounds=(0, 1), epsilon=1, order=order)
    return private.PrivateFitPlan(
        people=people,
        times=times,
        order=order,
        column=column,
        largest=most,
        totals=made.totals,
        products=made.products,
    )


# ── the release ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("times", "order", "span", "largest"),
    [(3, 1, 4, None), (4, 1, 3, None), (4, 2, 3, None), (4, 1, 3, 5), (4, 2, 3, 4), (6, 1, 2, 4)],
)
def test_no_row_moves_the_sums_further_than_the_noise_is_for(times, order, span, largest):
    tried = plan(times=times, order=order, span=span, largest=largest)
    rows = np.array(list(itertools.product(range(span + 1), repeat=times)), dtype=float)
    both = [tried.statistics(row[None]) for row in rows]
    bounds = private.moves(times=times, order=order, largest=tried.largest)
    for side, bound in enumerate(bounds):
        found = np.array([one[side] for one in both])
        gaps = found[:, None] - found[None]
        l1, l2 = np.abs(gaps).sum(axis=-1).max(), (gaps**2).sum(axis=-1).max()
        assert l1 <= bound.l1
        assert l2 <= bound.l2_squared
        assert l2 > bound.l2_squared / 16  # and not by far too little


def test_a_row_is_clipped_and_shrunk_by_itself():
    tried = plan(times=5, span=50, largest=300, people=3)
    values = np.array([[0, 50, 0, 50, 0], [7, 7, 7, 7, 7], [10, 11, 12, 11, 10]], dtype=float)
    rows = tried._rows(values)
    assert ((rows**2).sum(axis=1) <= 300).all()
    assert (rows[0] ** 2).sum() > 250
    assert (rows[1] == 0).all()
    assert rows[2].tolist() == [-1, 0, 1, 0, -1]
    beyond = tried._rows(values + np.array([[0, 1e9, 0, 1e9, 0], [0] * 5, [0] * 5]))
    assert np.array_equal(beyond, rows)


@pytest.mark.parametrize("paid", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
def test_a_fit_costs_its_budget(paid):
    made = private.plan_fit(people=500, times=20, bounds=BOUNDS, **paid)
    assert made.guarantee.relation is NeighboringRelation.REPLACE_ONE
    if "rho" in paid:
        assert made.guarantee.rdp(2.0) == pytest.approx(0.2, rel=1e-6)
    else:
        worth = made.guarantee.epsilon(paid.get("delta", 0.0))
        assert 0.999 < worth <= 1 + 1e-9
    made.totals.certify()


def test_no_fit_without_a_budget():
    with pytest.raises(InvalidArgument, match="Give epsilon"):
        series.private_fit(np.zeros((5, 5)), bounds=BOUNDS)


def test_the_account_is_charged_before_the_values_are_read(tmp_path):
    panel = HABIT.simulate(people=400, times=12, rng=seeded_rng(1))
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        limit = discreet.approx_dp(10, 1e-6, relation=NeighboringRelation.REPLACE_ONE)
        account = ledger.account("panel", limit=limit)
        paid = {"bounds": BOUNDS, "epsilon": 6, "spread": 2, "account": account}
        found = series.private_fit(panel, **paid)
        assert found.receipt is not None
        assert found.receipt.guarantee == found.guarantee
        with pytest.raises(BudgetExceeded):
            series.private_fit(panel, **paid)
        with pytest.raises(NotCertified, match="seeded"):
            series.private_fit(panel, **paid, rng=seeded_rng(1))
        # Noise of this size makes a model with a probability below 1/20: not five times in a row.
        with pytest.raises(NotCertified, match="noise at this budget"):
            _ = [series.private_fit(panel, **{**paid, "epsilon": 0.0001}) for _ in range(5)]
        kept = [entry.outcome for entry in account.history if entry.kind == "reserve"]
        assert kept[0] == "released"
        assert kept[-1] == "failed"
        other = ledger.account("rows", limit=discreet.pure_dp(10))
        with pytest.raises(RelationMismatch):
            series.private_fit(panel, **{**paid, "account": other})


@pytest.mark.parametrize(
    ("panel", "text"),
    [
        ([[1, 2, 3], [1, 2, 3]], "could differ in length"),
        (np.array([1, 2, 3]), "people x times"),
        (np.array([[1, 2], [2, 1]]), "at least 3 times"),
    ],
)
def test_refused_panels(panel, text):
    with pytest.raises(OutOfDomain, match=text):
        series.private_fit(panel, bounds=BOUNDS, epsilon=1)


def test_a_fit_that_drowns_in_noise_is_refused():
    panel = HABIT.simulate(people=20, times=12, rng=seeded_rng(1))
    with pytest.raises(NotCertified, match="noise at this budget"):
        series.private_fit(panel, bounds=BOUNDS, epsilon=0.1, rng=seeded_rng(2))


# ── from moments to a model ──────────────────────────────────────────────────


def test_expected_products_are_those_of_the_model():
    partial = np.array([0.5, -0.3, 0.2])
    habits = alike.habits(partial)
    model = series.VAR(lags=habits[:, None, None], noise=[[1]])
    times = 7
    center = np.eye(times) - 1 / times
    C = center @ brute.stacked(model, times=times) @ center
    found = alike.expected(partial, times)
    assert found == pytest.approx([np.trace(C, offset=k) for k in range(4)], rel=1e-12)


@pytest.mark.parametrize("habits", [(0.7,), (-0.4,), (0.5, 0.3), (0.3, -0.5, 0.2)])
def test_moments_determine_the_model(habits):
    """Exact moments in, exact model out: no bias, however short the series."""
    truth = series.ExchangeableVAR(habits=habits, variance=2.0, correlation=0.2)
    times, people = 6, 30
    single = brute.stacked(
        series.VAR(lags=np.array(habits)[:, None, None], noise=[[2.0]]), times=times
    )
    center = np.eye(times) - 1 / times
    C = center @ single @ center
    products = np.array([np.trace(C, offset=k) for k in range(len(habits) + 1)])
    common = np.trace(C) * (0.2 + 0.8 / people)
    found = alike.solve(products, common=common, people=people, times=times)
    assert found.habits == pytest.approx(truth.habits, abs=1e-6)
    assert (found.variance, found.correlation) == pytest.approx((2.0, 0.2), abs=1e-6)
    assert not found.projected


def test_impossible_moments_give_the_nearest_model():
    found = alike.solve(np.array([10.0, 12.0]), common=100.0, people=50, times=20)
    assert found.projected
    assert found.correlation == 0.99
    found.model(2)  # which is stationary
    assert "nearest" in str(found)


def test_the_bias_vanishes_as_the_budget_grows():
    panel = (
        HABIT.simulate(people=2000, times=6, rng=seeded_rng(1)) + np.linspace(-2, 2, 2000)[:, None]
    )
    errors = []
    for epsilon in (1, 10, 1e3, 1e6):
        found = series.private_fit(panel, bounds=BOUNDS, epsilon=epsilon, rng=seeded_rng(5))
        errors.append(abs(found.alike.habits[0] - 0.7))
    # What is left is sampling: 2000 independent series, but for a common shock.
    limit = stats.norm.isf(ALPHA / 2) * math.sqrt((1 - 0.7**2) / (2000 * 3))
    assert errors[-1] < limit < errors[0]
    centered = panel - panel.mean(axis=1, keepdims=True)
    naive = (centered[:, 1:] * centered[:, :-1]).sum() / (centered**2).sum()
    assert 0.7 - naive > 4 * limit  # what the autocorrelation of six times would say


def test_simulated_panels_follow_the_model():
    wide = series.ExchangeableVAR(habits=(0.5, 0.2), variance=2.0, correlation=0.3)
    runs, times = 3000, 4
    bits = seeded_rng(3)
    pairs = np.array([wide.simulate(people=2, times=times, rng=bits) for _ in range(runs)])
    flat = pairs.transpose(0, 2, 1).reshape(runs, -1)
    exact = brute.stacked(wide.model(2), times=times)
    variance = exact**2 + np.outer(np.diag(exact), np.diag(exact))
    limit = stats.norm.isf(ALPHA / 2 / exact.size) * np.sqrt(variance / runs)
    found = flat.T @ flat / runs
    assert (np.abs(found - exact) <= limit).all()
    swapped = series.ExchangeableVAR(habits=(0.2, 0.5), variance=2.0, correlation=0.3)
    assert (np.abs(found - brute.stacked(swapped.model(2), times=times)) > limit).any()


@pytest.mark.parametrize("known", ["time", "none", "all"])
@pytest.mark.parametrize("habits", [(0.8,), (0.4, 0.3)])
def test_a_person_and_the_mean_of_the_others_stand_for_everybody(known, habits):
    truth = series.ExchangeableVAR(habits=habits, variance=1.5, correlation=0.2)
    n, times = 9, 5
    std = [0.5, 0.4, 0.3, 0.4, 0.5]
    all_of_them = series.cells(
        truth.model(n),
        releases=series.releases(times=range(times), width=4, people=n, std=std),
        attacker_knows=known,
    )
    pair, weights = truth.pair(n)
    small = series.cells(
        pair,
        releases=series.releases(times=range(times), width=4, people=2, std=std, weights=weights),
        attacker_knows=known,
    )
    for i in range(n):
        assert small.mu[0] == pytest.approx(all_of_them.mu[i], rel=1e-10)


def test_plausible_models_surround_the_fit():
    panel = HABIT.simulate(people=500, times=20, rng=seeded_rng(1))
    found = series.private_fit(
        panel, bounds=BOUNDS, epsilon=4, delta=1e-6, spread=2, rng=seeded_rng(2)
    )
    habits = [one.habits[0] for one in found.plausible(40, rng=seeded_rng(3))]
    assert min(habits) < found.alike.habits[0] < max(habits)
    assert min(habits) < 0.7 < max(habits)
    rich = series.private_fit(panel, bounds=BOUNDS, epsilon=1e4, spread=2, rng=seeded_rng(2))
    closer = [one.habits[0] for one in rich.plausible(40, rng=seeded_rng(3))]
    assert np.std(closer) < np.std(habits)
    assert rich.model.people == 500
    assert not rich.private
    assert "not private" in str(rich)


# ── few long series ──────────────────────────────────────────────────────────

TRIO = series.VAR(
    lags=[
        [[0.5, 0.2, 0], [0, 0.4, 0.2], [0.1, 0, 0.3]],
        [[0.1, 0, 0], [0, -0.2, 0], [0, 0.1, 0.2]],
    ],
    noise=[[1, 0.3, 0], [0.3, 1, 0.2], [0, 0.2, 1]],
)


@pytest.mark.parametrize(
    ("people", "times", "order", "span"), [(2, 3, 1, 2), (3, 3, 1, 1), (2, 4, 2, 1)]
)
def test_no_value_moves_the_products_further_than_the_noise_is_for(people, times, order, span):
    """All panels on a coarse grid, and all ways to replace one value."""
    column = SortedColumn.of(0, span, 1)
    bound = private_full.moves(people=people, order=order, half=span)
    l1 = l2 = 0
    for content in itertools.product(range(span + 1), repeat=people * times):
        panel = np.array(content, dtype=float).reshape(people, times)
        here = private_full.statistics(panel, column=column, order=order)
        for place in np.ndindex(people, times):
            other = panel.copy()
            other[place] = span - panel[place] if span == 1 else (panel[place] + 1) % (span + 1)
            gap = private_full.statistics(other, column=column, order=order) - here
            l1, l2 = max(l1, int(np.abs(gap).sum())), max(l2, int((gap**2).sum()))
    assert l1 <= bound.l1
    assert bound.l2_squared / 4 < l2 <= bound.l2_squared


def test_who_depends_on_whom_is_found_as_the_budget_grows():
    panel = TRIO.simulate(times=4000, rng=seeded_rng(4))[0] + np.array([[1.0], [0.0], [-1.0]])
    found = {
        epsilon: series.private_full_fit(
            panel, bounds=(-7, 7), epsilon=epsilon, order=2, rng=seeded_rng(5)
        )
        for epsilon in (1, 30, 1e3, 1e6)
    }
    last = found[1e6]
    away = [np.abs(one.model.matrices - last.model.matrices).max() for one in found.values()]
    assert away == sorted(away, reverse=True)
    assert away[0] > 0.1
    assert away[2] < 0.01
    smallest = np.linalg.eigvalsh(TRIO.initial)[0]
    limit = stats.norm.isf(ALPHA / 36) * math.sqrt(1.1 / smallest / 4000)
    assert np.abs(last.model.matrices - TRIO.matrices).max() < limit
    assert np.abs(last.model.innovation - TRIO.innovation).max() < 6 * math.sqrt(2 / 4000)
    assert not last.projected
    assert found[1].guarantee.epsilon(0.0) <= 1 + 1e-9


def test_products_that_are_spoilt_by_noise():
    panel = TRIO.simulate(times=60, rng=seeded_rng(4))[0]
    found = series.private_full_fit(panel, bounds=(-7, 7), epsilon=400, rng=seeded_rng(5))
    assert found.model.radius <= 0.98 + 1e-9
    with pytest.raises(NotCertified, match="noise at this budget"):
        series.private_full_fit(panel, bounds=(-7, 7), epsilon=0.1, rng=seeded_rng(5))
    with pytest.raises(InvalidArgument, match="Give epsilon"):
        series.private_full_fit(panel, bounds=(-7, 7))
    with pytest.raises(OutOfDomain, match="at least 3 times"):
        series.private_full_fit(panel[:, :2], bounds=(-7, 7), epsilon=1)


# ── when the model is not known ──────────────────────────────────────────────


def random_releases(rng, n, times, *, correlated):
    shape = rng.normal(size=(times, times))
    S = shape @ shape.T + 0.1 * np.eye(times)
    return series.releases(
        times=range(times),
        width=2,
        people=n,
        covariance=S if correlated else np.diag(np.diag(S)),
        weights=rng.normal(size=n),
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_model_passes_the_bound_on_all(seed):
    rng = np.random.default_rng(seed)
    n, times, r = int(rng.integers(1, 6)), int(rng.integers(1, 6)), rng.uniform(0.05, 0.97)
    spread = rng.normal(size=(n, n))
    N = spread @ spread.T + 0.1 * np.eye(n)
    values, vectors = np.linalg.eigh(N)
    root = (vectors * np.sqrt(values)) @ vectors.T
    published = random_releases(rng, n, times, correlated=seed % 2 == 0)
    Q = rng.normal(size=(n, n)) if seed % 3 else np.outer(rng.normal(size=n), rng.normal(size=n))
    Q *= r / np.linalg.norm(Q, 2)
    full = series.VAR(lags=root @ Q @ np.linalg.inv(root), noise=rng.uniform(0.01, 3) * N)
    bound = series.worst_over_models(releases=published, radius=r, dynamics="full", noise=N)
    assert (series.cells(full, releases=published).mu <= bound.mu).all()
    bound = series.worst_over_models(releases=published, radius=r)
    for model in (
        series.VAR(lags=-r * np.eye(n), noise=N),
        series.VAR(lags=np.diag(rng.uniform(-r, r, n)), noise=1e-4 * np.eye(n)),
    ):
        assert (series.cells(model, releases=published).mu <= bound.mu).all()


def test_the_bound_on_all_models_is_attained():
    """By a series whose shocks vanish: then a release speaks of all times."""
    published = series.releases(times=range(5), width=1, people=1, std=0.3)
    bound = series.worst_over_models(releases=published, radius=0.8)
    quiet = series.VAR(lags=[[0.8]], noise=[[1e-7]])
    assert series.cells(quiet, releases=published).mu == pytest.approx(bound.mu, rel=1e-4)
    less = series.worst_over_models(releases=published, radius=0.7)
    assert (series.cells(quiet, releases=published).mu > less.mu).all()
    assert "keeps at most 0.8 of the past" in bound.assumptions[0]


def test_the_worst_of_several_models():
    published = series.releases(times=range(3), width=4, people=3, std=0.5)
    models = [series.VAR(lags=a * np.eye(3), noise=np.eye(3)) for a in (-0.5, 0.2, 0.8)]
    found = series.worst(models, releases=published)
    each = [series.cells(model, releases=published).mu for model in models]
    assert np.array_equal(found.mu, np.max(each, axis=0))
    with pytest.raises(InvalidArgument, match="at least one model"):
        series.worst([], releases=published)


def test_stress_changes_one_thing_at_a_time():
    published = series.releases(times=range(6), width=8, people=20, std=0.5)
    model = HABIT.model(20)
    rows = {row.change: row for row in series.stress(model, releases=published)}
    itself = rows["the model itself"].mu
    assert itself == series.cells(model, releases=published).worst
    assert rows["habits 1.25 times as strong"].mu > itself > rows["habits 0.75 times as strong"].mu
    assert rows["shocks of half the variance"].mu > itself
    assert rows["shocks half shared by everybody"].mu < itself
    listed = [row.mu for row in rows.values()]
    assert listed == sorted(listed, reverse=True)
    lonely = series.VAR(lags=np.zeros((2, 2)), noise=np.eye(2))  # no habits to strengthen
    assert (
        len(series.stress(lonely, releases=series.releases(times=[0, 1], width=1, people=2, std=1)))
        == 8
    )


def test_windows_need_no_model():
    published = series.releases(times=[0, 1, 2, 5], width=4, people=8, std=0.5)
    one = 4 / 8 / 0.5
    for length, several in [(1, 1), (2, 2), (3, 3), (5, 3), (6, 4)]:
        assert series.window(published, length=length) == pytest.approx(one * math.sqrt(several))


# ── the report of a model alone ──────────────────────────────────────────────


def test_a_report_of_a_private_fit_may_be_published():
    panel = HABIT.simulate(people=800, times=8, rng=seeded_rng(1))
    fit = series.private_fit(panel, bounds=BOUNDS, epsilon=4, spread=2, rng=seeded_rng(2))
    told = series.assess(
        fit.alike,
        people=800,
        times=8,
        bounds=BOUNDS,
        std=0.05,
        target=1.0,
        guarantee=fit.guarantee,
        plausible=fit.plausible(5, rng=seeded_rng(3)),
    )
    assert told.alike
    assert told.clipped is None
    assert len(told.plausible) == 5
    text = str(told)
    assert "may be published" in text
    assert "not for publication" not in text.lower()
    mu = max(fix.reached for fix in told.fixes)
    again = series.cells(
        fit.model,
        releases=series.releases(
            times=range(8), width=16, people=800, covariance=told.fixes[-1].releases.covariance
        ),
    )
    assert again.worst <= mu * (1 + 1e-9)


def test_one_person_alone():
    told = series.assess(HABIT, people=1, times=4, bounds=(-1, 1), std=1.0)
    assert not told.alike
    assert told.people[0].promised < told.people[0].epsilon


def test_a_model_of_other_people_is_refused():
    """Else a mean of three would be reported as one of five."""
    three = HABIT.model(3)
    with pytest.raises(InvalidArgument, match="5 people, got 3"):
        series.assess(three, people=5, times=4, bounds=(-1, 1), std=1.0)
    with pytest.raises(InvalidArgument, match="3 people, got 2"):
        series.assess(three, people=3, times=4, bounds=(-1, 1), std=1.0, plausible=[HABIT.model(2)])


def test_a_report_of_a_model_that_knows_private_values_is_not_for_publication():
    shape = {"people": 3, "times": 4, "bounds": (-1, 1), "std": 1.0}
    fitted = series.fit(HABIT.simulate(people=3, times=30, rng=seeded_rng(1)))
    told = series.assess(fitted, **shape)
    assert told.origin == "fitted"
    assert "not for publication" in str(told).lower()
    assert series.assess(HABIT, plausible=[fitted], **shape).origin == "fitted"
    assert series.assess(HABIT, plausible=[HABIT.model(3)], **shape).origin == "given"
