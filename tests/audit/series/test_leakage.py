"""Leakage of series: published vectors, a brute-force oracle, and bounds that need no model."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet.audit import series
from discreet.audit.series import _leakage as brute
from discreet.audit.series import _leakage as engine
from discreet.audit.series._leakage import covariances, largest
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA

STD = 1.270205
PAIR = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
N = {"N1": [0], "N2": [1], "N3": [0, 1]}


def means(times, *, people=2, std=STD, **more):
    return series.releases(times=times, width=1, people=people, std=std, **more)


def random_model(seed):
    rng = np.random.default_rng(seed)
    n, p, times = (int(rng.integers(1, high)) for high in (7, 4, 9))
    lags = rng.normal(size=(p, n, n))
    shrink = (
        rng.uniform(0.3, 0.97) / series.VAR(lags=lags, noise=np.eye(n), start=np.eye(n * p)).radius
    )
    lags *= shrink ** np.arange(1, p + 1)[:, None, None]
    if seed % 4 == 0:
        lags *= 1.3  # may grow: then only a start makes sense
    spread, first = rng.normal(size=(n, n)), rng.normal(size=(n * p, n * p))
    model = series.VAR(
        lags=lags,
        noise=spread @ spread.T + 0.1 * np.eye(n),
        start=None if seed % 2 else first @ first.T + 0.1 * np.eye(n * p),
    )
    at = sorted(rng.choice(times, size=int(rng.integers(1, times + 1)), replace=False).tolist())
    shape = rng.normal(size=(len(at), len(at)))
    published = series.releases(
        times=at,
        width=2,
        people=n,
        covariance=shape @ shape.T + 0.2 * np.eye(len(at)),
        weights=rng.normal(size=n),
    )
    return model, published, times


@pytest.mark.parametrize(
    ("secret", "known", "expected"),
    [  # E8
        (series.secret_value(0, time=0), "time", (0.393637, 0.166172, 0.427274)),
        (series.secret_value(0, time=1), "time", (0.215288, 0.393637, 0.448664)),
        (series.secret_value(0, time=0), "none", (0.487366, 0.229745, 0.523202)),
        (series.secret_value(0, time=1), "none", (0.263141, 0.487366, 0.540401)),
        (series.secret_time(time=0), "time", (0.787274, 0.365578, 0.868014)),
        (series.secret_time(time=1), "time", (0.363620, 0.787274, 0.867191)),
        (series.secret_person(0, times=[0, 1]), "all", (0.393637, 0.393637, 0.556687)),
        (series.secret_value(0, time=0), "all", (0.393637, 0, 0.393637)),
    ],
)
def test_vectors(secret, known, expected):
    for times, value in zip(N.values(), expected, strict=True):
        found = series.leakage(PAIR, releases=means(times), secret=secret, attacker_knows=known)
        assert found.model == pytest.approx(value, abs=1e-5)
        assert found.exact


def test_epsilons():
    for secret, expected in [
        (series.secret_value(0, time=0), (1.5276, 0.5926, 1.6731)),
        (series.secret_value(0, time=1), (0.7864, 1.5276, 1.7664)),
    ]:
        for times, value in zip(N.values(), expected, strict=True):
            found = series.leakage(
                PAIR, releases=means(times), secret=secret, attacker_knows="time"
            )
            assert found.epsilon(1e-5) == pytest.approx(value, abs=1e-4)


def test_unknown_others_add_to_the_leakage_of_a_row():
    found = series.leakage(
        PAIR,
        releases=means([0, 1]),
        secret=series.secret_person(0, times=[0, 1]),
        attacker_knows="none",
    )
    assert found.model == pytest.approx(0.677833, abs=1e-5)
    assert found.free.direct == pytest.approx(0.556687, abs=1e-5)


@pytest.mark.parametrize("known", ["time", "none", "all"])
@pytest.mark.parametrize("seed", range(40))
def test_fast_equals_brute_force(seed, known):
    model, published, times = random_model(seed)
    fast = series.cells(model, releases=published, attacker_knows=known, times=times).model
    for i, j in itertools.product(range(model.people), range(times)):
        secret = series.secret_value(i, time=j)
        slow = np.linalg.norm(
            brute.brute_factor(model, releases=published, secret=secret, attacker_knows=known)
        )
        assert fast[i, j] == pytest.approx(slow, abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("times", [range(60), range(0, 60, 2), [3, 40, 59]])
def test_many_cells_are_computed_in_pieces(times, monkeypatch):
    """Against one time at a time; 60 releases leave room for 72 people in a piece."""
    monkeypatch.setattr(engine, "_BLOCK", 1 << 16)  # and for 18 times
    rng = np.random.default_rng(7)
    n = 100
    lags = rng.normal(size=(n, n)) / (1.2 * math.sqrt(n))
    model = series.VAR(lags=lags, noise=np.eye(n) + 0.1)
    published = means(times, people=n, std=0.1)
    fast = series.cells(model, releases=published, times=60).model
    moments = covariances(model, releases=published, horizon=60)
    for j in (0, 3, 31, 59):
        slow = np.linalg.norm(engine._at_time(moments, published, j), axis=0)
        assert fast[:, j] == pytest.approx(slow, rel=1e-10)
        explained = moments.coefficients[j].T @ moments.cross[j]
        assert moments.left(j) == pytest.approx(moments.total - explained, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_other_secrets_equal_brute_force(seed):
    model, published, times = random_model(seed)
    rows = [series.secret_person(i, times=range(times)) for i in range(model.people)]
    rows += [
        series.secret_person(0, times=range(0, times, 2)),
        series.secret_person(0, times=[times - 1, times + 1]),
    ]
    for secret in [*rows, *(series.secret_time(time=t) for t in range(times))]:
        for known in ("time", "none", "all"):
            found = series.leakage(model, releases=published, secret=secret, attacker_knows=known)
            factor = brute.brute_factor(
                model, releases=published, secret=secret, attacker_knows=known
            )
            corners = np.array(list(itertools.product((1, -1), repeat=factor.shape[1]))).T
            top = np.sqrt(((factor @ corners) ** 2).sum(axis=0).max())
            assert found.model == pytest.approx(top, rel=1e-9, abs=1e-9)


def test_the_past_and_the_future_are_independent_given_the_present():
    model = series.VAR(lags=PAIR.lags, noise=PAIR.noise)
    C = brute.stacked(model, times=3)
    past, now, future = slice(0, 2), slice(2, 4), slice(4, 6)
    left = C[past, future] - C[past, now] @ np.linalg.solve(C[now, now], C[now, future])
    assert np.abs(left).max() < 1e-14
    squares = [
        series.leakage(
            model,
            releases=means(times),
            secret=series.secret_value(0, time=1),
            attacker_knows="time",
        ).model
        ** 2
        for times in ([0], [1], [2], [0, 1, 2])
    ]
    assert sum(squares[:3]) == pytest.approx(squares[3], rel=1e-12)


def test_no_model_free_number_bounds_the_leakage():
    """The counter-examples to reporting the smaller number (C29)."""
    twins = series.VAR(lags=np.zeros((2, 2)), noise=[[1, 0.99], [0.99, 1]])
    found = series.leakage(
        twins, releases=means([0, 1]), secret=series.secret_value(0, time=0), attacker_knows="none"
    )
    assert found.free.user < found.model == pytest.approx(0.782, abs=1e-3)
    growing = series.VAR(lags=np.diag([3, 0.1]), noise=0.01 * np.eye(2), start=np.eye(2))
    found = series.leakage(
        growing,
        releases=means([0, 1]),
        secret=series.secret_value(0, time=0),
        attacker_knows="time",
    )
    assert found.free.everything < found.model == pytest.approx(1.243, abs=1e-3)
    assert found.mu == found.model


def test_the_noise_alone_counts_where_the_model_hides_more():
    """With negative dependence a stranger's mu is below what differential privacy counts."""
    against = series.VAR(lags=np.zeros((2, 2)), noise=[[1, -0.9], [-0.9, 1]])
    found = series.leakage(
        against, releases=means([0]), secret=series.secret_value(0, time=0), attacker_knows="none"
    )
    assert found.model < found.free.direct == found.mu == pytest.approx(0.5 / STD)
    everybody = series.cells(against, releases=means([0]), attacker_knows="none")
    assert everybody.mu[0, 0] == found.mu


def test_the_answer_states_its_assumptions_and_what_needs_none():
    text = str(
        series.leakage(
            PAIR, releases=means([0]), secret=series.secret_value(0, time=1), attacker_knows="time"
        )
    )
    assert "without a model" in text
    assert text.count("assumed") == 3
    assert "stationary" in text


def test_weak_dependence_leaks_in_proportion():
    """E8: A = a I; the mu of the later value from the earlier release is linear in a."""
    for a, expected in [(0.5, 0.166), (0.2, 0.0665), (0.1, 0.0332), (0.01, 0.0033)]:
        model = series.VAR(lags=a * np.eye(2), noise=PAIR.noise)
        found = series.leakage(
            model, releases=means([0]), secret=series.secret_value(0, time=1), attacker_knows="time"
        )
        assert found.model == pytest.approx(expected, abs=6e-4)


def test_the_model_is_what_simulations_follow():
    """Simulated covariances against the exact ones, by the exact variance of a product."""
    lags = [[[0.4, 0.1], [0, 0.3]], [[0.2, 0], [0.1, -0.3]]]
    model = series.VAR(lags=lags, noise=PAIR.noise)
    runs, times = 40_000, 4
    panel = model.simulate(times=times, rng=seeded_rng(1), runs=runs)
    flat = panel.transpose(0, 2, 1).reshape(runs, -1)
    exact = brute.stacked(model, times=times)
    found = flat.T @ flat / runs
    variance = exact**2 + np.outer(np.diag(exact), np.diag(exact))
    z = stats.norm.isf(ALPHA / 2 / exact.size)
    assert (np.abs(found - exact) <= z * np.sqrt(variance / runs)).all()
    wrong = brute.stacked(series.VAR(lags=lags[:1], noise=PAIR.noise), times=times)
    assert (np.abs(found - wrong) > z * np.sqrt(variance / runs)).any()
    assert np.array_equal(panel, model.simulate(times=times, rng=seeded_rng(1), runs=runs))


def test_the_stationary_law_does_not_move():
    model, _, _ = random_model(3)
    state = model.initial
    moved = model.companion @ state @ model.companion.T + model.state_noise
    assert np.abs(moved - state).max() < 1e-12 * np.abs(state).max()


def test_signs():
    rng = np.random.default_rng(5)
    for rows, columns in [(1, 30), (2, 30), (2, 5), (3, 12), (4, 40)]:
        factor = rng.normal(size=(rows, columns))
        peak = largest(factor)
        tried = np.where(rng.random((columns, 50_000)) < 0.5, 1.0, -1.0)
        assert peak.upper >= np.sqrt(((factor @ tried) ** 2).sum(axis=0).max()) * (1 - 1e-12)
        assert peak.upper >= peak.lower
        assert peak.exact == (columns < 40)
    few = rng.normal(size=(2, 18))  # more columns than are tried one by one
    every = np.array(list(itertools.product((1, -1), repeat=17))).T
    top = np.sqrt(((few[:, :1] + few[:, 1:] @ every) ** 2).sum(axis=0).max())
    assert largest(few).upper == pytest.approx(top, rel=1e-12)
    friendly = np.abs(rng.normal(size=(4, 40)))  # no contradictory signs: the bound is attained
    assert largest(friendly).exact


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: series.VAR(lags=[[1.0]], noise=[[1]]), "spectral radius"),
        (lambda: series.VAR(lags=[[0.5, 0]], noise=[[1]]), "square matrix"),
        (lambda: series.VAR(lags=[[0.5], [1, 2]], noise=[[1]]), "equal rows"),
        (lambda: series.VAR(lags=[[math.nan]], noise=[[1]]), "finite"),
        (lambda: series.VAR(lags=np.zeros((2, 2)), noise=np.ones((2, 2))), "positive definite"),
        (lambda: series.VAR(lags=np.zeros((2, 2)), noise=[[1, 0.5], [0, 1]]), "symmetric"),
        (lambda: series.VAR(lags=[[0.5]], noise=[[0]]), "positive diagonal"),
        (lambda: series.VAR(lags=[[0.5]], noise=[[1]], start=np.eye(2)), "start must be 1 x 1"),
        (lambda: means([]), "at least one time"),
        (lambda: means(3), "times must be a list"),
        (lambda: series.secret_person(0, times=3), "times must be a list"),
        (
            lambda: series.ExchangeableVAR(habits=[0.5], variance=1, correlation=0).pair(1),
            "at least 2",
        ),
        (
            lambda: series.plan_fit(people=10**6, times=10**6, bounds=(0, 1), rho=1),
            "at most 274743 people",
        ),
        (lambda: means([1, 1]), "none twice"),
        (lambda: means([0], std=0), "std must be positive"),
        (lambda: means([0], covariance=[[1]]), "either std or covariance"),
        (lambda: means([0], weights=[1, 1, 1]), "weights"),
        (lambda: series.secret_value(-1, time=0), "person"),
        (
            lambda: series.leakage(
                PAIR,
                releases=means([0]),
                secret=series.secret_value(2, time=0),
                attacker_knows="time",
            ),
            "person must be below 2",
        ),
        (
            lambda: series.leakage(
                PAIR,
                releases=means([0]),
                secret=series.secret_value(0, time=0),
                attacker_knows="some",
            ),
            "attacker_knows must be one of",
        ),
        (lambda: series.cells(PAIR, releases=means([0], people=3)), "2 people"),
        (lambda: series.cells(PAIR, releases=means([3]), times=2), "above the last release"),
        (lambda: series.cells(PAIR, releases=means([0]), times=0), "times must be at least 1"),
    ],
)
def test_refused(make, text):
    with pytest.raises(InvalidArgument, match=text):
        make()


def test_noise_belongs_to_the_time_it_was_given_for():
    """Times may come in any order; they are kept sorted, and the noise with them."""
    by_std = means([2, 0, 1], std=[3.0, 1.0, 2.0])
    assert by_std.times == (0, 1, 2)
    assert by_std.std.tolist() == [1, 2, 3]
    given = np.array([[9.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 4.0]])
    full = series.releases(times=[2, 0, 1], width=1, people=2, covariance=given)
    assert full.covariance.tolist() == [[1, 0.1, 0.5], [0.1, 4, 0.2], [0.5, 0.2, 9]]
    found = series.cells(PAIR, releases=means([1, 0], std=[0.1, 10]), attacker_knows="all")
    assert found.model[0] == pytest.approx([0.05, 5])


def test_what_cannot_be_computed_is_refused():
    exploding = series.VAR(lags=[[3.0]], noise=[[1]], start=[[1]])
    with pytest.raises(NotCertified, match="grow too far"):
        series.cells(exploding, releases=means(range(40), people=1))
    with pytest.raises(NotCertified, match="determined by others"):
        series.cells(
            series.VAR(lags=[[3, 0], [3, 0.1]], noise=1e-9 * np.eye(2), start=np.eye(2)),
            releases=means(range(14), std=1e6),
        )
    # The same of a secret that needs all cells: a number would be rounding.
    rows = {"secret": series.secret_person(0, times=[0, 1]), "attacker_knows": "time"}
    still = series.VAR(lags=[[0.9, 0.1], [0, 0.8]], noise=1e-16 * np.eye(2), start=np.eye(2))
    with pytest.raises(NotCertified, match="determined by others"):
        series.leakage(still, releases=means([0, 1, 2]), **rows)
    growing = series.VAR(lags=3 * np.eye(2), noise=np.eye(2), start=np.eye(2))
    with pytest.raises(NotCertified, match="grow too far"):
        series.leakage(growing, releases=means(range(40)), **rows)
    many = series.VAR(lags=0.5 * np.eye(60), noise=np.eye(60))
    with pytest.raises(Unsupported, match="cells at once"):
        series.leakage(
            many,
            releases=means(range(80), people=60),
            secret=series.secret_person(0, times=[0, 1]),
            attacker_knows="time",
        )


def test_a_fitted_model_does_not_show_itself():
    assert repr(PAIR) == "VAR(people=2, order=1, stationary)"
