"""Fitted models, designed noise, the report of a panel, and the published formulas."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import toeplitz

from discreet.accounting.conversion import gaussian_delta, gaussian_epsilon, gaussian_mu
from discreet.audit import series
from discreet.audit.series import _leakage as brute
from discreet.audit.series._barrier_method import Barrier, Stationary
from discreet.audit.series._design import _groups
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.noise.random_source import seeded_rng
from discreet_studies.private_inference import published_series as published
from tests.distributions import ALPHA

PAIR = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
FIVE = series.VAR(lags=np.diag([0.3, 0.4, 0.5, 0.6, 0.7]), noise=0.7 * np.eye(5) + 0.3)
SIX = series.releases(times=range(6), width=4, people=5, std=1)


# ── noise for a target ───────────────────────────────────────────────────────


@pytest.mark.parametrize("known", ["time", "none", "all"])
@pytest.mark.parametrize("shape", ["equal", "independent", "stationary", "correlated"])
def test_designed_noise_meets_the_target_and_is_the_least(known, shape):
    found = series.design(FIVE, releases=SIX, mu=0.5, attacker_knows=known, shape=shape)
    again = series.cells(FIVE, releases=found.releases, attacker_knows=known)
    assert again.worst == found.reached <= 0.5 * (1 + 1e-9)
    assert found.least <= found.total <= found.equal
    assert found.gap <= 1e-3
    assert found.total == pytest.approx(np.trace(found.releases.covariance))
    less = found.releases.with_noise(found.releases.covariance * 0.99)
    assert series.cells(FIVE, releases=less, attacker_knows=known).worst > 0.5


def test_correlated_noise_saves_more_than_a_third():
    correlated = series.design(FIVE, releases=SIX, mu=0.5, shape="correlated")
    independent = series.design(FIVE, releases=SIX, mu=0.5, shape="independent")
    assert correlated.total < 0.65 * correlated.equal
    assert correlated.total < independent.total < independent.equal
    assert np.count_nonzero(independent.releases.covariance) == 6
    assert "below equal noise" in str(correlated)


def test_the_lower_bound_holds_for_every_feasible_noise():
    """Weak duality, at points that are far from the optimum as well."""
    groups = _groups(FIVE, SIX, "time", 0.5, 6, [0, 1, 2, 3, 4])
    best, still = (
        series.design(FIVE, releases=SIX, mu=0.5, shape=shape).total
        for shape in ("correlated", "stationary")
    )
    rng = np.random.default_rng(3)
    for tau in (0.1, 1, 10, 100):
        shape = rng.normal(size=(6, 6))
        S = 60 * np.eye(6) + shape @ shape.T
        assert Barrier(groups, 0.25, 6, full=True).dual(S, tau) <= best
        assert Stationary(groups, 0.25, 6).dual(S, tau) <= still


def test_noise_for_whichever_model_is_true():
    other = series.VAR(lags=0.9 * np.eye(5), noise=np.eye(5))
    both = series.design([FIVE, other], releases=SIX, mu=0.5, shape="correlated")
    assert both.gap < 1e-3
    for model in (FIVE, other):
        assert series.cells(model, releases=both.releases).worst <= 0.5 * (1 + 1e-9)
        alone = series.design(model, releases=SIX, mu=0.5, shape="correlated")
        assert alone.total <= both.total * (1 + 1e-3)
    first = series.design(FIVE, releases=SIX, mu=0.5, shape="correlated")
    assert series.cells(other, releases=first.releases).worst > 0.53  # one is not enough
    with pytest.raises(InvalidArgument, match="at least one model"):
        series.design([], releases=SIX, mu=0.5)


def test_stationary_noise_is_nearly_the_best():
    stationary = series.design(FIVE, releases=SIX, mu=0.5, shape="stationary")
    correlated = series.design(FIVE, releases=SIX, mu=0.5, shape="correlated")
    S = stationary.releases.covariance
    assert np.array_equal(S, toeplitz(S[0]))
    assert np.count_nonzero(S) == 36
    assert correlated.total < stationary.total < 1.05 * correlated.total
    weekly = series.releases(times=range(25), width=4, people=5, std=1)
    year = series.design(FIVE, releases=weekly, mu=0.5, shape="stationary")
    assert year.gap < 1e-3
    assert year.total < 0.7 * year.equal


def test_the_excess_of_stationary_noise():
    """The largest ``tr(S M) / tr S`` over mixtures of cosines, at many frequencies."""
    rng = np.random.default_rng(9)
    shape = rng.normal(size=(6, 6))
    M = shape @ shape.T
    bound = Stationary([], 1.0, 6)._excess(M)
    waves = [np.exp(1j * np.arange(6) * w) for w in np.linspace(0, math.pi, 5001)]
    top = max(float((wave.conj() @ M @ wave).real) / 6 for wave in waves)
    assert top <= bound <= 1.001 * top
    assert bound < np.linalg.eigvalsh(M)[-1]


def test_the_derivatives_of_the_barrier():
    groups = _groups(FIVE, SIX, "time", 0.5, 6, [0, 1, 2, 3, 4])
    rng = np.random.default_rng(4)
    for barrier in (
        Barrier(groups, 0.25, 6, full=False),
        Barrier(groups, 0.25, 6, full=True),
        Stationary(groups, 0.25, 6),
    ):
        S = 60 * np.eye(6) + (0 if len(barrier.trace) == 6 and barrier.trace[1] else 2)
        gradient, hessian = barrier._derivatives(S, 1.0)
        step = rng.normal(size=len(gradient))
        move = barrier._matrix(step)
        h = 1e-3
        up, down = (barrier._value(S + k * h * move, 1.0) for k in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(gradient @ step, rel=1e-6)
        up, down = (barrier._derivatives(S + k * h * move, 1.0)[0] for k in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(hessian @ step, rel=1e-6, abs=1e-9)


def test_refused_designs():
    many = series.releases(times=range(25), width=1, people=5, std=1)
    with pytest.raises(InvalidArgument, match="at most 24 .* Use shape='stationary'"):
        series.design(FIVE, releases=many, mu=1, shape="correlated")
    with pytest.raises(InvalidArgument, match="shape must be"):
        series.design(FIVE, releases=SIX, mu=1, shape="round")
    with pytest.raises(InvalidArgument, match="mu must be positive"):
        series.design(FIVE, releases=SIX, mu=0)
    with pytest.raises(InvalidArgument, match="times must be above the last release"):
        series.design(FIVE, releases=SIX, mu=1, times=3)
    with pytest.raises(InvalidArgument, match="attacker_knows must be"):
        series.design(FIVE, releases=SIX, mu=1, attacker_knows="some")
    with pytest.raises(InvalidArgument, match="5 people, got 3"):
        series.design(
            FIVE, releases=series.releases(times=range(6), width=1, people=3, std=1), mu=1
        )
    for people in ([], [5], [-1]):
        with pytest.raises(InvalidArgument, match="people must be"):
            series.design(FIVE, releases=SIX, mu=1, people=people)


# ── less error for free ──────────────────────────────────────────────────────


def smoother(model, releases, **more):
    """Estimates are linear in what is published: the matrix."""
    size = len(releases.times)
    columns = [
        series.smooth(unit, model=model, releases=releases, **more).values for unit in np.eye(size)
    ]
    return np.array(columns).T


@pytest.mark.parametrize("level", [None, 0.0])
def test_smoothing_is_the_best_linear_estimate(level):
    rng = np.random.default_rng(8)
    shape = rng.normal(size=(6, 6))
    noisy = SIX.with_noise(shape @ shape.T + 0.3 * np.eye(6))
    K = smoother(FIVE, noisy, level=level)
    C = brute.stacked(FIVE, times=6).reshape(6, 5, 6, 5).mean(axis=(1, 3))
    if level is None:
        assert K.sum(axis=1) == pytest.approx(np.ones(6))  # whatever the level is

    def errors(K):
        return (K - np.eye(6)) @ C @ (K - np.eye(6)).T + K @ noisy.covariance @ K.T

    found = series.smooth(rng.normal(size=6), model=FIVE, releases=noisy, level=level)
    assert found.covariance == pytest.approx(errors(K), rel=1e-9, abs=1e-12)
    assert (found.std < noisy.std).all()
    for _ in range(20):
        other = rng.normal(size=(6, 6)) * 1e-3
        other -= other.mean(axis=1, keepdims=True)  # keeps the estimates unbiased
        assert np.trace(errors(K + other)) > np.trace(errors(K))


def test_smoothed_levels_and_refusals():
    found = series.smooth(np.full(6, 7.0), model=FIVE, releases=SIX)
    assert found.values == pytest.approx(np.full(6, 7.0))
    with pytest.raises(InvalidArgument, match="published must be 6 numbers"):
        series.smooth([1.0], model=FIVE, releases=SIX)
    with pytest.raises(InvalidArgument, match="5 people"):
        series.smooth(
            [1.0], model=FIVE, releases=series.releases(times=[0], width=1, people=3, std=1)
        )


# ── models from panels ───────────────────────────────────────────────────────


@pytest.mark.parametrize("dynamics", ["own", "full"])
def test_fit_finds_the_model(dynamics):
    lags = [np.diag([0.5, 0.3]), np.diag([-0.3, 0.2])]
    model = series.VAR(lags=lags, noise=PAIR.noise)
    times = 20_000
    found = series.fit(
        model.simulate(times=times, rng=seeded_rng(2))[0], order=2, dynamics=dynamics
    )
    # Least squares: the coefficients' variance is at most noise variance / smallest eigenvalue.
    smallest = np.linalg.eigvalsh(model.initial)[0]
    limit = stats.norm.isf(ALPHA / 16) * math.sqrt(1.1 / smallest / times)
    assert np.abs(found.matrices - lags).max() < limit
    assert np.abs(found.matrices[::-1] - lags).max() > limit
    assert np.abs(found.innovation - model.innovation).max() < 6 * math.sqrt(2 / times)


def test_fit_takes_more_people_than_times():
    model = series.VAR(lags=0.5 * np.eye(60), noise=0.8 * np.eye(60) + 0.2)
    found = series.fit(model.simulate(times=30, rng=seeded_rng(3))[0])
    assert np.linalg.eigvalsh(found.innovation)[0] > 0
    off = found.innovation[~np.eye(60, dtype=bool)]
    assert 0.05 < off.mean() < 0.3


@pytest.mark.parametrize(
    ("panel", "text"),
    [
        ([[1, 2, 3, 4, 5], [1, 2, 3]], "as many times for everybody"),
        ([[1, 2, 3, 2, math.nan], [1, 2, 1, 3, 1]], "missing"),
        ([[1, 1, 1, 1, 1], [1, 2, 1, 3, 1]], "never change"),
        ([[1, 2, 1], [2, 1, 2]], "at least 4 times"),
        ([1, 2, 3], "people x times"),
        ([["a", "b"]], "numbers"),
        ([[1, 2, 4, 8, 16, 32, 64, 128]], "not stationary"),
        ([[1, -1, 1, -1, 1, -1], [1, 2, 1, 3, 1, 2]], "past determines"),
    ],
)
def test_refused_panels(panel, text):
    with pytest.raises(OutOfDomain, match=text):
        series.fit(panel)


def test_full_dynamics_need_many_times():
    panel = FIVE.simulate(times=6, rng=seeded_rng(1))[0]
    with pytest.raises(OutOfDomain, match="at least 8 times"):
        series.fit(panel, dynamics="full")
    with pytest.raises(InvalidArgument, match="dynamics"):
        series.fit(panel, dynamics="some")


# ── the report ───────────────────────────────────────────────────────────────


def test_report_of_a_panel():
    panel = FIVE.simulate(times=6, rng=seeded_rng(4))[0]
    found = series.report(panel, bounds=(-2, 2), std=2.0, model=FIVE, delta=1e-5)
    cells = series.cells(FIVE, releases=series.releases(times=range(6), width=4, people=5, std=2.0))
    assert np.array_equal(found.cells.mu, cells.mu)
    first = found.people[0]
    assert first.mu == cells.worst == cells.mu[first.person, first.time]
    assert first.epsilon == gaussian_epsilon(1e-5, mu=cells.worst)
    assert first.promised == gaussian_epsilon(1e-5, mu=4 / 5 / 2)
    assert first.user == pytest.approx(gaussian_epsilon(1e-5, mu=4 / 5 / 2 * math.sqrt(6)))
    assert found.target == first.promised < first.epsilon
    assert [fix.shape for fix in found.fixes] == ["equal", "independent", "correlated"]
    assert all(fix.reached <= 0.4 * (1 + 1e-9) for fix in found.fixes)
    assert found.clipped == float((np.abs(panel) > 2).mean()) > 0
    text = str(found)
    assert "not for publication" in text.lower()
    assert text.count("assumed") == 3


def test_report_fits_and_keeps_a_target():
    panel = FIVE.simulate(times=60, rng=seeded_rng(5))[0]
    found = series.report(panel, bounds=(-3, 3), std=1.0, target=1.0, released=range(0, 60, 10))
    assert found.target == pytest.approx(1.0, rel=1e-9)
    mu = gaussian_mu(1.0, delta=1e-6)
    assert all(fix.reached <= mu * (1 + 1e-9) for fix in found.fixes)
    assert found.cells.mu.shape == (5, 60)
    constant = np.zeros((5, 3))  # says nothing, and needs not with a model
    assert series.report(constant, bounds=(-3, 3), std=1.0, model=FIVE).clipped == 0
    with pytest.raises(OutOfDomain, match="never change"):
        series.report(np.zeros((5, 6)), bounds=(-3, 3), std=1.0)
    with pytest.raises(InvalidArgument, match="bounds must be increasing"):
        series.report(panel, bounds=(3, -3), std=1.0)


# ── the published formulas ───────────────────────────────────────────────────


def claim(model, scenario, *, eps=1.0, delta=0.05, **more):
    return published.claim(
        model, scenario=scenario, width=1, epsilons=(eps, eps), deltas=(delta, delta), **more
    )


@pytest.mark.parametrize(
    ("lags", "scenario", "mode", "expected"),
    [  # E7, at rho = -0.5, 0, 0.5
        ([[1, 0], [1, 0]], "A1+N2", "as_text", (1.7475, 1.5714, 1.4397)),
        ([[1, 0], [1, 0]], "A1+N2", "corrected", (1.8610, 1.7475, 1.6525)),
        ([[0.5, 0.1], [0, 0.5]], "A2+N1", "as_text", (1.3998, 1.1484, 0.9969)),
        ([[0.5, 0.1], [0, 0.5]], "A2+N1", "corrected", (1.6219, 1.4084, 1.2618)),
        ([[0.9, 0.5], [0, 0.9]], "A2+N1", "as_text", (0.9790, 0.9201, 0.8708)),
        ([[0.9, 0.5], [0, 0.9]], "A2+N1", "corrected", (1.0388, 1.0022, 0.9693)),
    ],
)
def test_published_figures(lags, scenario, mode, expected):
    for rho, value in zip((-0.5, 0, 0.5), expected, strict=True):
        model = series.VAR(lags=lags, noise=[[1, rho], [rho, 1]], start=np.eye(2))
        assert claim(model, scenario, mode=mode, prior="flat").epsilon == pytest.approx(
            value, abs=6e-5
        )


def test_a_mean_of_many_is_less_noisy_than_published():
    """M17: at the published epsilon the true delta is over a thousand times the claimed one."""
    model = series.VAR(lags=0.9 * np.eye(100), noise=np.eye(100))
    wrong = claim(model, "A1+N2", delta=1e-5, mode="as_text")
    right = claim(model, "A1+N2", delta=1e-5)
    assert wrong.epsilon == pytest.approx(0.0436, abs=1e-4)
    assert right.epsilon == pytest.approx(0.3925, abs=1e-4)
    assert right.true_epsilon == pytest.approx(0.2708, abs=1e-4)
    assert gaussian_delta(wrong.epsilon, mu=wrong.mu) == pytest.approx(0.0154, abs=1e-4)


@pytest.mark.parametrize(
    ("scenario", "secret", "times"),
    [
        ("A1+N2", series.secret_value(0, time=0), [1]),
        ("A1+N3", series.secret_value(0, time=0), [0, 1]),
        ("A2+N1", series.secret_value(0, time=1), [0]),
        ("A3+N3", series.secret_time(time=0), [0, 1]),
        ("A4+N3", series.secret_person(0, times=[0, 1]), [0, 1]),
    ],
)
def test_corrected_formulas_agree_with_the_engine(scenario, secret, times):
    std = published.noise_std(1, delta=0.05, sensitivity=0.5)
    assert std == pytest.approx(1.270205, abs=1e-6)
    releases = series.releases(times=times, width=1, people=2, std=std)
    found = series.leakage(PAIR, releases=releases, secret=secret, attacker_knows="time")
    assert claim(PAIR, scenario).mu == pytest.approx(found.model, rel=1e-12)


@pytest.mark.parametrize("scenario", ["A1+N2", "A1+N3", "A2+N1", "A4+N3"])
def test_corrected_claims_are_true_where_they_are_claims(scenario):
    for eps in (0.1, 0.4):
        found = claim(PAIR, scenario, eps=eps, delta=1e-5)
        assert found.epsilon < 1
        assert found.true_epsilon <= found.epsilon


def test_looking_back_needs_a_prior():
    """M18: with no dependence there is nothing to see; the published formula sees a lot."""
    for a in (0.1, 0.01):
        model = series.VAR(lags=a * np.eye(2), noise=PAIR.noise)
        found = claim(model, "A2+N1", mode="as_text")
        assert found.epsilon > 1.09
        assert found.mu == pytest.approx(0.332 * a, rel=0.01)
    wide = series.VAR(lags=PAIR.lags, noise=PAIR.noise, start=1e8 * np.eye(2))
    flat = claim(PAIR, "A2+N1", prior="flat").mu
    assert claim(wide, "A2+N1").mu == pytest.approx(flat, rel=1e-6)


def test_everybody_at_once():
    """M20: at the stated epsilon of ten people the true delta is a hundredth."""
    model = series.VAR(lags=0.9 * np.eye(10), noise=np.eye(10))
    found = claim(model, "A3+N3", delta=1e-5)
    assert found.mu == pytest.approx(2.58384, abs=1e-5)
    assert gaussian_delta(8.5374, mu=found.mu) == pytest.approx(0.01112, abs=1e-5)
    assert found.true_epsilon == found.epsilon > 8.5374
    more = series.VAR(lags=0.9 * np.eye(14), noise=np.eye(14))
    vacuous = claim(more, "A3+N3", delta=1e-5, mode="as_text")
    assert vacuous.delta == 1
    assert vacuous.true_epsilon == math.inf


def test_deltas_add():
    right, wrong = (claim(PAIR, "A4+N3", mode=mode) for mode in ("corrected", "as_text"))
    assert right.delta == 0.1 < wrong.delta == pytest.approx(2 * math.e * 0.05 + 0.0025)


@pytest.mark.parametrize("ratio", [0.5, 3, -2])
def test_total_dependence(ratio):
    """The largest log-ratio of two Laplace releases of x and ratio x, on a grid."""
    points = np.linspace(-20, 20, 401)
    first = np.abs(points - 1) - np.abs(points)
    second = (np.abs(points - ratio) - np.abs(points)) * 0.7
    worst = (first[:, None] + second[None, :]).max()
    assert published.total_dependence(1, second=0.7, ratio=ratio, mode="corrected") == (
        pytest.approx(worst, abs=1e-6)
    )
    text = published.total_dependence(1, second=0.7, ratio=ratio, mode="as_text")
    assert (text < worst) == (abs(ratio) > 1)
    assert published.independence(1, second=0.7) == (1, 1.7)


def test_refused_claims():
    second = series.VAR(lags=[0.3 * np.eye(2), 0.1 * np.eye(2)], noise=np.eye(2))
    with pytest.raises(Unsupported, match="order 1"):
        claim(second, "A1+N2")
    with pytest.raises(InvalidArgument, match="scenario"):
        claim(PAIR, "A9+N9")
    with pytest.raises(InvalidArgument, match="invertible"):
        claim(series.VAR(lags=np.zeros((2, 2)), noise=np.eye(2)), "A2+N1", prior="flat")


def test_the_leakage_is_that_of_the_best_test():
    """Simulated pairs of releases for two values of the secret, told apart by likelihood."""
    mu = claim(PAIR, "A1+N2").mu
    std = published.noise_std(1, delta=0.05, sensitivity=0.5)
    rng = np.random.default_rng(6)
    runs = 1_000_000
    shocks = rng.multivariate_normal(np.zeros(2), PAIR.innovation, runs).mean(axis=1)
    noise = rng.normal(0, std, runs)
    secrets = np.array([[0.0, 0.2], [1.0, 0.2]])
    low, high = (float((PAIR.matrices[0] @ x).mean()) for x in secrets)
    cut = (low + high) / 2 + 0.1 / mu * (high - low) / mu
    share = [float((m + shocks + noise > cut).mean()) for m in (low, high)]
    delta = share[1] - math.exp(0.1) * share[0]
    exact = float(gaussian_delta(0.1, mu=mu))
    error = stats.norm.isf(ALPHA) * math.sqrt(0.5 * (1 + math.exp(0.2)) / runs)
    assert abs(delta - exact) < error
    assert abs(float(gaussian_delta(0.1, mu=1.3 * mu)) - exact) > error
