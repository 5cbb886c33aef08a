"""The exact privacy leakage of published means under a Gaussian model of a panel (C29).

Everything is jointly Gaussian: given the secret and what is known, the releases are normal with a
mean that is linear in the secret and a covariance that does not depend on it. Two values of the
secret are then exactly as far apart as two normal distributions. The same leakage from the
covariance of all cells is slow, serves any secret, and checks the fast computation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack, solve_triangular

from discreet.accounting.conversion import gaussian_epsilon
from discreet.audit.series.model import VAR, Floats
from discreet.audit.series.threat_model import KNOWN, Known, Secret, SeriesReleases
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.number_format import short
from discreet.core.tabular import Record
from discreet.query.result import Result, records

# ── Covariances of the releases
# ────────────────────────────────────────────────────────────────────


# Model variance times machine precision must stay this far below the noise.
_PRECISION = 1e-9
DETERMINED = 1e-10
"""A value of which others leave a smaller share open is taken for determined."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Covariances of the releases without noise with each other and with all cells."""

    cross: Floats
    """Cell's time x person x release."""
    coefficients: Floats
    """The same, of the regression of the releases on everybody's values at one time."""
    variances: Floats
    """Of the cells, time x person."""
    total: Floats
    """Release x release."""
    lags: NDArray[np.int64]
    """Of the releases after each time, counted from the earliest possible: time x release."""
    products: Floats | None = None
    """Coefficients times covariances by lag, where one table serves all times."""

    def left(self, time: int) -> Floats:
        """What everybody's values at one time leave open of the releases: their covariance."""
        if self.products is None:
            explained = self.coefficients[time].T @ self.cross[time]
        else:
            explained = self.products[np.ix_(self.lags[time], self.lags[time])]
        left: Floats = self.total - (explained + explained.T) / 2
        return left


def covariances(model: VAR, *, releases: SeriesReleases, horizon: int) -> Moments:
    """Second moments of the releases and all cells up to the horizon."""
    # Theorem: with G_j the state's covariance, A the companion matrix and w the weights,
    #   `Cov(state_j, Q_{j+k}) = G_j A'^k w` and `Cov(state_j, Q_{j-k}) = A^k G_{j-k} w`.
    # Proof: `state_{j+k} = A^k state_j + noise that is independent of state_j`.
    found = (_stationary if model.stationary else _started)(model, releases, horizon)
    trustworthy(found.variances, releases)
    return found


def _stationary(model: VAR, releases: SeriesReleases, horizon: int) -> Moments:
    """With one covariance for all times everything depends on the lag alone."""
    n, companion, G = model.people, model.companion, model.initial
    at, w = np.array(releases.times), _state_weights(model, releases)
    ahead, back = powers(companion.T, w, horizon), powers(companion, G @ w, horizon)
    table = np.concatenate([back[:, :0:-1], G @ ahead], axis=1)[:n]  # by lag, from 1 - T
    solved = regressed(G[:n, :n], table)
    lags = _lags(at, horizon)
    total = (releases.weights @ table)[lags[at]]
    return Moments(
        cross=_windows(table, lags),
        coefficients=_windows(solved, lags),
        variances=np.broadcast_to(np.diag(G)[:n], (horizon, n)),
        total=(total + total.T) / 2,
        lags=lags,
        products=solved.T @ table,
    )


def _lags(at: NDArray[np.int64], horizon: int) -> NDArray[np.int64]:
    return at[None, :] - np.arange(horizon)[:, None] + horizon - 1


def _windows(table: Floats, lags: NDArray[np.int64]) -> Floats:
    """For each time the columns at its lags; a view, where no time is left out."""
    size = lags.shape[1]
    if lags[0, -1] - lags[0, 0] + 1 == size:
        every = sliding_window_view(table, size, axis=1)  # person x first lag x release
        result: Floats = every[:, lags[-1, 0] : lags[0, 0] + 1][:, ::-1].transpose(1, 0, 2)
        return result
    return np.array([table[:, lag] for lag in lags])


def _started(model: VAR, releases: SeriesReleases, horizon: int) -> Moments:
    n, companion, noise, G = model.people, model.companion, model.state_noise, model.initial
    at, w = np.array(releases.times), _state_weights(model, releases)
    ahead = powers(companion.T, w, horizon)
    cross = np.empty((horizon, n, len(at)))
    coefficients = np.empty_like(cross)
    variances = np.empty((horizon, n))
    past = np.empty((len(w), 0))
    for j in range(horizon):
        whole = np.concatenate([past, G @ ahead[:, : horizon - j]], axis=1)
        cross[j] = whole[:n, at]
        coefficients[j] = regressed(G[:n, :n], cross[j])
        variances[j] = np.diag(G)[:n]
        past = companion @ whole[:, : j + 1]
        G = companion @ G @ companion.T + noise
    total = np.einsum("jnr,n->jr", cross[at], releases.weights)
    return Moments(
        cross=cross,
        coefficients=coefficients,
        variances=variances,
        total=(total + total.T) / 2,
        lags=_lags(at, horizon),
    )


def given_time(moments: Moments, time: int) -> tuple[Floats, Floats]:
    """Coefficients (release x person) and covariance of the noiseless releases, given a time."""
    return moments.coefficients[time].T, moments.left(time)


def regressed(matrix: Floats, right: Floats) -> Floats:
    """Coefficients of a regression on values with this covariance; refused if one is determined."""
    root, failed = lapack.dpotrf(matrix, lower=True)
    if failed or (np.diag(root) ** 2 <= DETERMINED * np.diag(matrix)).any():
        raise NotCertified(
            "At some time a value of this model is determined by others, up to rounding: given "
            "those it is no secret. Leave such people out, or look at fewer times."
        )
    solved: Floats = cho_solve((root, True), right)
    return solved


def powers(matrix: Floats, vector: Floats, number: int) -> Floats:
    """The columns ``v, A v, A^2 v, ...``."""
    columns = [vector]
    for _ in range(number - 1):
        columns.append(matrix @ columns[-1])
    return np.array(columns).T


def _state_weights(model: VAR, releases: SeriesReleases) -> Floats:
    w = np.zeros(model.people * model.order)
    w[: model.people] = releases.weights
    return w


def trustworthy(variances: Floats, releases: SeriesReleases) -> None:
    """Refuse models in which rounding could hide or invent noise; variances, time x person."""
    # No covariance exceeds the product of the standard deviations.
    size = float((np.sqrt(variances) @ np.abs(releases.weights)).max()) ** 2
    least = float(np.linalg.eigvalsh(releases.covariance)[0])
    if not size * np.finfo(np.float64).eps <= _PRECISION * least:
        raise NotCertified(
            "The values of this model grow too far beyond the noise for exact covariances. "
            "Look at fewer times, give a smaller start, or add more noise."
        )


# ── Brute force over all cells
# ─────────────────────────────────────────────────────────────────────


LARGEST = 4000
"""Cells, people x times, that are taken: the covariance has their square."""


def stacked(model: VAR, *, times: int) -> Floats:
    """The covariance of all cells, ordered by time and then by person.

    States are written as sums of the independent start and noises, and multiplied out: no
    recursion, no Markov property.
    """
    n, companion = model.people, model.companion
    roots = [np.linalg.cholesky(model.initial)]
    kick = np.zeros((len(companion), n))
    kick[:n] = np.linalg.cholesky(model.innovation)
    powers = [np.eye(len(companion))]
    for _ in range(1, times):
        powers.append(companion @ powers[-1])
        roots.append(kick)
    loadings = [
        np.concatenate(
            [(powers[t - s] @ root if s <= t else 0 * root)[:n] for s, root in enumerate(roots)],
            axis=1,
        )
        for t in range(times)
    ]
    whole = np.concatenate(loadings)
    result: Floats = whole @ whole.T
    return result


def brute_factor(
    model: VAR, *, releases: SeriesReleases, secret: Secret, attacker_knows: Known
) -> Floats:
    """The matrix F with ``mu^2 = |F d|^2`` when the secret's values move by d widths."""
    # Theorem: regress the releases on the secret and what is known: F is the whitened coefficient
    #   of the secret.
    # Proof: conditional laws of a joint normal law. C29, in O((n T)^3).
    n = model.people
    times = max(*releases.times, *secret.times) + 1
    if n * times > LARGEST:
        raise Unsupported(
            f"This secret needs all {n * times} cells at once, at most {LARGEST} are taken. "
            "Ask for cells, for everyone at a time, for known='all', or for fewer times."
        )
    C = stacked(model, times=times)
    trustworthy(np.diag(C).reshape(times, n), releases)
    people = range(n) if secret.people is None else secret.people
    target = [t * n + i for t in secret.times for i in people]
    beside = {
        "none": [],
        "time": [t * n + i for t in secret.times for i in range(n)],
        "all": list(range(n * times)),
    }[attacker_knows]
    given = target + sorted(set(beside) - set(target))
    query = np.zeros((len(releases.times), n * times))
    for k, t in enumerate(releases.times):
        query[k, t * n : (t + 1) * n] = releases.weights
    cross = C[given] @ query.T
    coefficients = regressed(C[np.ix_(given, given)], cross).T
    V = query @ C @ query.T + releases.covariance - coefficients @ cross
    root = np.linalg.cholesky((V + V.T) / 2)
    whitened: Floats = np.linalg.solve(root, coefficients[:, : len(target)])
    return whitened * releases.width


# ── Largest change over signs
# ────────────────────────────────────────────────────────────────────── The largest change of a
# release when each of several values changes by plus or minus its width.


# Up to this many values all sign patterns are tried: 2^15 of them.
_ALL = 16
_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Bounds on a maximum; equal where it is found exactly."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the bounds agree, up to rounding."""
        return self.upper <= self.lower * (1 + 1e-12)


def largest(factor: Floats) -> Peak:
    """The largest length of ``factor @ d`` over all d of plus and minus ones (C28)."""
    # Theorem: exact for one or two rows, and for up to 16 columns. Otherwise `upper` is the
    #   smaller of `sqrt(sum |G_ij|)` and `sqrt(columns x largest eigenvalue of G)`,
    #   `G = factor' factor`; the first is attained when no sign pattern is contradictory.
    # Proof: `|factor d|^2 = d'Gd`. One row: take its signs. Two rows: the maximum is attained at a
    #   vertex of the projected cube, and a vertex is the signs of `factor' u` for a direction u;
    #   these change only where u is perpendicular to a column, so one u between every two
    #   such directions meets all vertices. The upper bounds: `|d_i| = 1`.
    columns = factor.shape[1]
    if factor.shape[0] == 1:
        value = float(np.abs(factor).sum())
        return Peak(lower=value, upper=value)
    if columns <= _ALL:
        patterns = np.array([(1, *d) for d in itertools.product((1, -1), repeat=columns - 1)]).T
    elif factor.shape[0] == 2:
        patterns = _directions(factor)
    else:
        return _bounds(factor)
    value = math.sqrt(float(((factor @ patterns) ** 2).sum(axis=0).max()))
    return Peak(lower=value, upper=value)


def _directions(factor: Floats) -> Floats:
    turns = np.sort((np.arctan2(factor[1], factor[0]) + math.pi / 2) % math.pi)
    between = (turns + np.append(turns[1:], turns[0] + math.pi)) / 2
    result: Floats = np.where(
        np.outer(factor[0], np.cos(between)) + np.outer(factor[1], np.sin(between)) >= 0, 1.0, -1.0
    )
    return result


def _bounds(factor: Floats) -> Peak:
    gram = factor.T @ factor
    values, vectors = np.linalg.eigh(gram)
    upper = min(float(np.abs(gram).sum()), float(values[-1]) * len(gram))
    d = np.where(vectors[:, -1] >= 0, 1.0, -1.0)
    for _ in range(_ROUNDS):  # each round follows the gradient of a convex function: it rises
        new = np.where(gram @ d >= 0, 1.0, -1.0)
        if np.array_equal(new, d):
            break
        d = new
    lower = math.sqrt(float(d @ gram @ d))
    return Peak(lower=lower, upper=max(math.sqrt(upper), lower))


# ── Results
# ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFree:
    """How well the noise alone hides values in the range, whatever depends on whom (as GDP mu).

    The first two are no bounds on what dependence gives away. The third is, but only for values
    that really are clipped to the range.
    """

    direct: float
    """The secret's own values change, and nothing else: what differential privacy promises."""
    user: float
    """All values of the secret's people change, at all times."""
    everything: float
    """All values of everybody change, at all times."""

    def __str__(self) -> str:
        return (
            f"without a model: mu {short(self.direct)} if only the secret changes, "
            f"{short(self.user)} "
            f"if all values of its people do, {short(self.everything)} if everybody's do"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Leakage(Result):
    """How well one secret is hidden, under the model and without it."""

    model: float
    """Telling two values of the secret apart is as hard as N(0, 1) from N(model, 1)."""
    exact: bool
    """Whether ``model`` is the exact value (or an upper bound)."""
    free: ModelFree
    assumptions: tuple[str, ...]

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - it is computed
        """List the leakage as GDP mu.

        Args:
            confidence: Without effect: the leakage is computed, not estimated.

        Returns:
            One record: value, std, low and high, the last three None.
        """
        return records((), [()], value=[self.mu])

    __repr__ = Result.__repr__

    @property
    def mu(self) -> float:
        """The number to act on: the model's, or what the noise alone gives away if that is more."""
        return max(self.model, self.free.direct)

    def epsilon(self, delta: float) -> float:
        """The epsilon of mu-GDP at this delta, under the assumptions."""
        return epsilon_of(self.mu, delta=float(probability("delta", delta, zero=False, one=False)))

    def __str__(self) -> str:
        bound = "" if self.exact else " at most"
        epsilon = self.epsilon(1e-6)
        return "\n".join(
            [
                f"leakage: mu{bound} {short(self.mu)} (epsilon {short(epsilon)} at delta 1e-6)",
                str(self.free),
                *(f"assumed: {line}" for line in self.assumptions),
            ]
        )


def epsilon_of(mu: float, *, delta: float) -> float:
    """The epsilon of mu-GDP; infinite where mu is."""
    return gaussian_epsilon(delta, mu=mu) if mu < math.inf else math.inf


def assumptions(model: VAR, attacker_knows: Known) -> tuple[str, ...]:
    """What an answer under the model rests on."""
    start = "its stationary law" if model.stationary else "the given start"
    return (
        f"values follow this Gaussian VAR({model.order}) from {start}, and are not clipped",
        "the attacker knows the model, but not the random part of anybody's values",
        KNOWN[attacker_knows],
    )


def model_free(
    releases: SeriesReleases, *, people: tuple[int, ...], times: tuple[int, ...]
) -> ModelFree:
    """The three numbers for the secret of these people and times."""
    some = float(np.abs(releases.weights[list(people)]).sum())
    every = float(np.abs(releases.weights).sum())
    whole = noise_alone(releases, times=releases.times).upper
    direct = noise_alone(releases, times=times).upper
    return ModelFree(direct=some * direct, user=some * whole, everything=every * whole)


def noise_alone(releases: SeriesReleases, *, times: tuple[int, ...]) -> Peak:
    """The largest mu when the releases of these times each move by at most the width.

    The moves form a box and the square is convex: its maximum is at a corner, all signs.
    """
    moved = np.isin(releases.times, times)
    if not moved.any():
        return Peak(lower=0.0, upper=0.0)
    root = np.linalg.cholesky(releases.covariance)
    factor: Floats = solve_triangular(root, np.eye(len(root))[:, moved], lower=True)
    return largest(factor * releases.width)


# ── Leakage of all cells
# ───────────────────────────────────────────────────────────────────────────


# Products with so few multiplications are left to one thread by OpenBLAS. Hundreds of larger ones
# wait for threads longer than they compute, if other programs have the cores.
_ALONE = 1 << 18
# Entries of matrices that are held at once.
_BLOCK = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CellLeakage(Result):
    """The leakage of every cell, people x times."""

    model: Floats = field(repr=False)
    """GDP mu under the model."""
    direct: Floats = field(repr=False)
    """GDP mu from the noise alone, if nothing but the cell changes."""
    user: Floats = field(repr=False)
    """GDP mu from the noise alone, if all values of a person change; one for each person."""
    everything: float
    """GDP mu from the noise alone, if all values of everybody change."""
    assumptions: tuple[str, ...]

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - it is computed
        """List the leakage of each cell as GDP mu.

        Args:
            confidence: Without effect: the leakage is computed, not estimated.

        Returns:
            One record for each cell: person, time, value, std, low and high, the last three None.
        """
        cells = product(*map(range, self.mu.shape))
        return records(("person", "time"), cells, value=self.mu.ravel())

    def _title(self) -> str:
        return "Leakage of each value (GDP mu)"

    @property
    def mu(self) -> Floats:
        """The numbers to act on: the model's, or the noise's alone where that is more."""
        return np.maximum(self.model, self.direct)

    @property
    def worst(self) -> float:
        """The largest of them."""
        return float(self.mu.max())


def leakage(
    model: VAR, *, releases: SeriesReleases, secret: Secret, attacker_knows: Known
) -> Leakage:
    """Compute how much releases reveal about one secret.

    Args:
        model: Model of the values, which the attacker knows.
        releases: What is published.
        secret: Made with `secret_value`, `secret_person` or `secret_time`.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).

    Returns:
        The leakage with `mu` (as in Gaussian DP), `epsilon(delta)`, the numbers that hold without a
        model, and the assumptions.

    Raises:
        InvalidArgument: The secret or the releases do not fit the model.
        NotCertified: Rounding errors could affect the result.
        Unsupported: The secret needs the joint distribution of too many values.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1.27)
        >>> secret = series.secret_value(0, time=0)
        >>> found = series.leakage(model, releases=means, secret=secret, attacker_knows="time")
        >>> round(found.mu, 3)
        0.427

    See Also:
        `cells`: every value at once. [Releases about the same people](../how-to/series.md).

    References:
        Biswal (2024), chapter 6. [Proof](../theory/theorems.md#audit.series._leakage.leakage).
    """
    # Theorem: under the assumptions listed in the answer, the two laws of the releases for any two
    #   values of the secret are as hard to tell apart as N(0, 1) from N(mu', 1), mu' at most
    #   `model`; equality is attained, if `exact`.
    # Proof: the releases given secret and knowledge are N(M x + c, V), V free of x; the likelihood
    #   ratio of two normal laws with one covariance is that of N(0, 1) and N(m, 1),
    #   `m^2 = d' M' V^-1 M d`; a convex function of d is largest at a corner of the box.
    # Source: C29; Biswal 2024, chapter 6, for two times.
    # Needs: a Gaussian model that is right. This is not differential privacy: see `ModelFree`.
    _match(model, releases, attacker_knows)
    people = tuple(range(model.people)) if secret.people is None else secret.people
    if max(people) >= model.people:
        raise InvalidArgument(f"person must be below {model.people}, got {max(people)}.")
    everyone = len(people) == model.people
    free = model_free(releases, people=people, times=secret.times)
    if attacker_knows == "all" or (
        attacker_knows == "time" and set(releases.times) <= set(secret.times)
    ):
        # All but the secret's own values is known wherever something is released.
        value, exact = free.direct, noise_alone(releases, times=secret.times).exact
    elif len(secret.times) == 1 and (everyone or attacker_knows == "time"):
        moments = covariances(model, releases=releases, horizon=_horizon(releases, secret.times))
        factor = _at_time(moments, releases, secret.times[0])[:, list(people)]
        peak = largest(factor)
        value, exact = peak.upper, peak.exact
    elif len(people) == 1 and attacker_knows == "none":
        peak = largest(_row(model, releases, people[0], secret.times))
        value, exact = peak.upper, peak.exact
    else:
        peak = largest(
            brute_factor(model, releases=releases, secret=secret, attacker_knows=attacker_knows)
        )
        value, exact = peak.upper, peak.exact
    return Leakage(
        model=value, exact=exact, free=free, assumptions=assumptions(model, attacker_knows)
    )


def cells(
    model: VAR,
    *,
    releases: SeriesReleases,
    attacker_knows: Known = "time",
    times: int | None = None,
) -> CellLeakage:
    """Compute the leakage of every person's value at every time.

    Args:
        model: Model of the values, which the attacker knows.
        releases: What is published.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        times: Number of times. By default up to the last release.

    Returns:
        Leakages as `mu` of Gaussian DP, people x times: `model` under the model, `direct` from the
        noise of the value's own release, `mu` the larger of both, and `worst`. `user` and
        `everything` hold without a model.

    Raises:
        InvalidArgument: The releases do not fit the model.
        NotCertified: Rounding errors could affect the result.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1.27)
        >>> series.cells(model, releases=means).mu.round(3).tolist()
        [[0.427, 0.449], [0.441, 0.421]]
    """
    horizon = horizon_of(model, releases=releases, attacker_knows=attacker_knows, times=times)
    weights, width = np.abs(releases.weights), releases.width
    event = np.zeros(horizon)
    event[list(releases.times)] = np.sqrt(np.diag(np.linalg.inv(releases.covariance)))
    direct = np.outer(weights, event) * width
    if attacker_knows == "all":
        model_mu = direct
    else:
        moments = covariances(model, releases=releases, horizon=horizon)
        if attacker_knows == "none":
            model_mu = _nothing_known(moments, releases)
        else:
            model_mu = _others_known(moments, releases)
    free = model_free(releases, people=(0,), times=releases.times)
    unit = free.everything / float(weights.sum())
    return CellLeakage(
        model=model_mu,
        direct=direct,
        user=weights * unit,
        everything=free.everything,
        assumptions=assumptions(model, attacker_knows),
    )


def horizon_of(
    model: VAR, *, releases: SeriesReleases, attacker_knows: Known, times: int | None
) -> int:
    """How many times are looked at; refused if model, releases and times do not fit."""
    _match(model, releases, attacker_knows)
    horizon = count("times", releases.times[-1] + 1 if times is None else times)
    if horizon <= releases.times[-1]:
        raise InvalidArgument(f"times must be above the last release, {releases.times[-1]}.")
    return horizon


def _at_time(moments: Moments, releases: SeriesReleases, time: int) -> Floats:
    """The factor F (release x person) with ``mu^2 = |F d|^2`` when people move by d widths."""
    coefficients, left = given_time(moments, time)
    root = np.linalg.cholesky(left + releases.covariance)
    factor: Floats = solve_triangular(root, coefficients, lower=True) * releases.width
    return factor


def _others_known(moments: Moments, releases: SeriesReleases) -> Floats:
    """The mu of every cell, people x times, when the others' values at its time are known."""
    horizon, n, r = moments.coefficients.shape
    squares = np.empty((horizon, n))
    some, block = max(1, _ALONE // r**2), max(1, _BLOCK // r**2)
    for first in range(0, horizon, block):
        times = range(first, min(first + block, horizon))
        left = np.array([moments.left(j) for j in times]) + releases.covariance
        whitening = _inverses(np.asarray(np.linalg.cholesky(left), np.float64)).transpose(0, 2, 1)
        coefficients = moments.coefficients[times.start : times.stop]
        for start in range(0, n, some):
            people = slice(start, start + some)
            factor = coefficients[:, people] @ whitening
            squares[times.start : times.stop, people] = (factor**2).sum(axis=2)
    result: Floats = np.sqrt(squares.T) * releases.width
    return result


def _inverses(roots: Floats) -> Floats:
    """Of lower triangles, all at once, by forward substitution in this thread."""
    result = np.zeros_like(roots)
    for k in range(roots.shape[1]):
        pivots = roots[:, k, k]
        done = np.einsum("tm,tmr->tr", roots[:, k, :k], result[:, :k, :k])
        result[:, k, :k] = -done / pivots[:, None]
        result[:, k, k] = 1 / pivots
    return result


def _row(model: VAR, releases: SeriesReleases, person: int, times: tuple[int, ...]) -> Floats:
    """The factor (release x time) of one person's values, nobody else's known."""
    horizon, at = _horizon(releases, times), list(times)
    moments = covariances(model, releases=releases, horizon=horizon)
    companion, noise, G = model.companion, model.state_noise, model.initial
    own = np.zeros((horizon, horizon))
    later = powers(companion, G[:, person], horizon)[person]
    for j in range(times[-1] + 1):
        own[j, j:] = own[j:, j] = later[: horizon - j]
        if not model.stationary:
            G = companion @ G @ companion.T + noise
            later = powers(companion, G[:, person], horizon)[person]
    cross = moments.cross[at, person]
    coefficients = regressed(own[np.ix_(at, at)], cross).T
    left = moments.total - coefficients @ cross + releases.covariance
    root = np.linalg.cholesky((left + left.T) / 2)
    factor: Floats = solve_triangular(root, coefficients, lower=True) * releases.width
    return factor


def _nothing_known(moments: Moments, releases: SeriesReleases) -> Floats:
    """The mu of every cell when only the releases are seen."""
    # Theorem: with `a = c'C^-1 c / v` for a cell of variance v, covariance c with the releases and
    #   C the releases' covariance, `mu^2 = width^2 a / (v (1 - a))`.
    # Proof: a is the squared multiple correlation; Sherman-Morrison on `C - c c'/v`.
    root = np.linalg.cholesky(moments.total + releases.covariance)
    horizon, n, r = moments.cross.shape
    whitened = solve_triangular(root, moments.cross.reshape(horizon * n, r).T, lower=True)
    variance = moments.variances
    a = (whitened**2).sum(axis=0).reshape(horizon, n) / variance
    with np.errstate(divide="ignore"):
        # A cell that is known to ten digits is known: infinity, not a rounding error.
        odds = np.where(a < 1 - DETERMINED, a / (1 - np.minimum(a, 1)), math.inf)
    result: Floats = (np.sqrt(odds / variance) * releases.width).T
    return result


def _horizon(releases: SeriesReleases, times: tuple[int, ...]) -> int:
    return max(releases.times[-1], *times) + 1


def _match(model: VAR, releases: SeriesReleases, attacker_knows: Known) -> None:
    if len(releases.weights) != model.people:
        raise InvalidArgument(
            f"releases must be of the model's {model.people} people, got {len(releases.weights)}."
        )
    if attacker_knows not in KNOWN:
        raise InvalidArgument(
            f"attacker_knows must be one of {', '.join(KNOWN)}, got {attacker_knows!r}."
        )
