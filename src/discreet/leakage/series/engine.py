"""The exact leakage of a Gaussian model, for all cells at once (C29).

Everything is jointly Gaussian: given the secret and what is known, the releases are normal with a
mean that is linear in the secret and a covariance that does not depend on it. Two values of the
secret are then exactly as far apart as two normal laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_solve, lapack, solve_triangular

from discreet.core.check import count
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.leakage.series import answer, brute
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.signs import largest
from discreet.leakage.series.threat import KNOWN, Known, Releases, Secret

# Model variance times machine precision must stay this far below the noise.
_PRECISION = 1e-9
# A value of which others leave a smaller share open is taken for determined.
_DETERMINED = 1e-10


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
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

    @property
    def mu(self) -> Floats:
        """The numbers to act on: the model's, or the noise's alone where that is more."""
        return np.maximum(self.model, self.direct)

    @property
    def worst(self) -> float:
        """The largest of them."""
        return float(self.mu.max())


def leakage(model: VAR, *, releases: Releases, secret: Secret, known: Known) -> answer.Leakage:
    """How well these releases hide a secret from someone who knows the model (C20, C29).

    Theorem: under the assumptions listed in the answer, the two laws of the releases for any two
        values of the secret are as hard to tell apart as N(0, 1) from N(mu', 1), mu' at most
        ``model``; equality is attained, if ``exact``.
    Proof: the releases given secret and knowledge are N(M x + c, V), V free of x; the likelihood
        ratio of two normal laws with one covariance is that of N(0, 1) and N(m, 1),
        ``m^2 = d' M' V^-1 M d``; a convex function of d is largest at a corner of the box.
    Source: C29; Biswal 2024, chapter 6, for two times.
    Needs: a Gaussian model that is right. This is not differential privacy: see `ModelFree`.
    """
    _match(model, releases, known)
    people = tuple(range(model.people)) if secret.people is None else secret.people
    if max(people) >= model.people:
        raise InvalidArgument(f"person must be below {model.people}, got {max(people)}.")
    everyone = len(people) == model.people
    free = answer.model_free(releases, people=people, times=secret.times)
    if known == "all" or (known == "time" and set(releases.times) <= set(secret.times)):
        # All but the secret's own values is known wherever something is released.
        value, exact = free.direct, answer.noise_alone(releases, times=secret.times).exact
    elif len(secret.times) == 1 and (everyone or known == "time"):
        moments = covariances(model, releases=releases, horizon=_horizon(releases, secret.times))
        factor = _at_time(moments, releases, secret.times[0])[:, list(people)]
        peak = largest(factor)
        value, exact = peak.upper, peak.exact
    elif len(people) == 1 and known == "none":
        peak = largest(_row(model, releases, people[0], secret.times))
        value, exact = peak.upper, peak.exact
    else:
        peak = largest(brute.factor(model, releases=releases, secret=secret, known=known))
        value, exact = peak.upper, peak.exact
    return answer.Leakage(
        model=value, exact=exact, free=free, assumptions=answer.assumptions(model, known)
    )


def cells(
    model: VAR, *, releases: Releases, known: Known = "time", times: int | None = None
) -> Cells:
    """The leakage of every person's value at every time, in O(n^3 + n^2 T + n T^3 + T^4).

    ``times`` is how many times there are; by default up to the last release.
    """
    _match(model, releases, known)
    horizon = count("times", releases.times[-1] + 1 if times is None else times)
    if horizon <= releases.times[-1]:
        raise InvalidArgument(f"times must be above the last release, {releases.times[-1]}.")
    weights, width = np.abs(releases.weights), releases.width
    event = np.zeros(horizon)
    event[list(releases.times)] = np.sqrt(np.diag(np.linalg.inv(releases.covariance)))
    direct = np.outer(weights, event) * width
    if known == "all":
        model_mu = direct
    else:
        moments = covariances(model, releases=releases, horizon=horizon)
        if known == "none":
            model_mu = _nothing_known(moments, releases)
        else:
            squares = [(_at_time(moments, releases, j) ** 2).sum(axis=0) for j in range(horizon)]
            model_mu = np.sqrt(np.array(squares).T)
    free = answer.model_free(releases, people=(0,), times=releases.times)
    unit = free.everything / float(weights.sum())
    return Cells(
        model=model_mu,
        direct=direct,
        user=weights * unit,
        everything=free.everything,
        assumptions=answer.assumptions(model, known),
    )


def covariances(model: VAR, *, releases: Releases, horizon: int) -> Moments:
    """Second moments of the releases and all cells up to the horizon.

    Theorem: with G_j the state's covariance, A the companion matrix and w the weights,
        ``Cov(state_j, Q_{j+k}) = G_j A'^k w`` and ``Cov(state_j, Q_{j-k}) = A^k G_{j-k} w``.
    Proof: ``state_{j+k} = A^k state_j + noise that is independent of state_j``.
    """
    n, companion = model.people, model.companion
    w = np.zeros(len(companion))
    w[:n] = releases.weights
    ahead = _powers(companion.T, w, horizon)
    at = np.array(releases.times)
    cross = np.empty((horizon, n, len(at)))
    coefficients = np.empty_like(cross)
    variances = np.empty((horizon, n))
    G = model.initial
    if model.stationary:
        back = _powers(companion, G @ w, horizon)
        table = np.concatenate([back[:, :0:-1], G @ ahead], axis=1)[:n]  # by lag, from 1 - T
        solved = _solve(G[:n, :n], table)
        for j in range(horizon):
            lag = at - j + horizon - 1
            cross[j], coefficients[j] = table[:, lag], solved[:, lag]
        variances[:] = np.diag(G)[:n]
    else:
        noise, past = model.state_noise, np.empty((len(w), 0))
        for j in range(horizon):
            whole = np.concatenate([past, G @ ahead[:, : horizon - j]], axis=1)
            cross[j] = whole[:n, at]
            coefficients[j] = _solve(G[:n, :n], cross[j])
            variances[j] = np.diag(G)[:n]
            past = companion @ whole[:, : j + 1]
            G = companion @ G @ companion.T + noise
    total = np.einsum("jnr,n->jr", cross[at], releases.weights)
    # No covariance exceeds the product of the standard deviations.
    size = float((np.sqrt(variances) @ np.abs(releases.weights)).max()) ** 2
    _trustworthy(size, releases.covariance)
    return Moments(
        cross=cross,
        coefficients=coefficients,
        variances=variances,
        total=(total + total.T) / 2,
    )


def given_time(moments: Moments, time: int) -> tuple[Floats, Floats]:
    """Coefficients (release x person) and covariance of the noiseless releases, given a time."""
    coefficients = moments.coefficients[time].T
    left = moments.total - coefficients @ moments.cross[time]
    return coefficients, (left + left.T) / 2


def _at_time(moments: Moments, releases: Releases, time: int) -> Floats:
    """The factor F (release x person) with ``mu^2 = |F d|^2`` when people move by d widths."""
    coefficients, left = given_time(moments, time)
    root = np.linalg.cholesky(left + releases.covariance)
    factor: Floats = solve_triangular(root, coefficients, lower=True) * releases.width
    return factor


def _row(model: VAR, releases: Releases, person: int, times: tuple[int, ...]) -> Floats:
    """The factor (release x time) of one person's values, nobody else's known."""
    horizon, at = _horizon(releases, times), list(times)
    moments = covariances(model, releases=releases, horizon=horizon)
    companion, noise, G = model.companion, model.state_noise, model.initial
    own = np.zeros((horizon, horizon))
    later = _powers(companion, G[:, person], horizon)[person]
    for j in range(times[-1] + 1):
        own[j, j:] = own[j:, j] = later[: horizon - j]
        if not model.stationary:
            G = companion @ G @ companion.T + noise
            later = _powers(companion, G[:, person], horizon)[person]
    cross = moments.cross[at, person]
    coefficients = _solve(own[np.ix_(at, at)], cross).T
    left = moments.total - coefficients @ cross + releases.covariance
    root = np.linalg.cholesky((left + left.T) / 2)
    factor: Floats = solve_triangular(root, coefficients, lower=True) * releases.width
    return factor


def _nothing_known(moments: Moments, releases: Releases) -> Floats:
    """The mu of every cell when only the releases are seen.

    Theorem: with ``a = c'C^-1 c / v`` for a cell of variance v, covariance c with the releases and
        C the releases' covariance, ``mu^2 = width^2 a / (v (1 - a))``.
    Proof: a is the squared multiple correlation; Sherman-Morrison on ``C - c c'/v``.
    """
    root = np.linalg.cholesky(moments.total + releases.covariance)
    horizon, n, r = moments.cross.shape
    whitened = solve_triangular(root, moments.cross.reshape(horizon * n, r).T, lower=True)
    variance = moments.variances
    a = (whitened**2).sum(axis=0).reshape(horizon, n) / variance
    with np.errstate(divide="ignore"):
        # A cell that is known to ten digits is known: infinity, not a rounding error.
        odds = np.where(a < 1 - _DETERMINED, a / (1 - np.minimum(a, 1)), math.inf)
    result: Floats = (np.sqrt(odds / variance) * releases.width).T
    return result


def _solve(matrix: Floats, right: Floats) -> Floats:
    root, failed = lapack.dpotrf(matrix, lower=True)
    if failed or (np.diag(root) ** 2 <= _DETERMINED * np.diag(matrix)).any():
        raise NotCertified(
            "At some time a value of this model is determined by others, up to rounding: given "
            "those it is no secret. Leave such people out, or look at fewer times."
        )
    solved: Floats = cho_solve((root, True), right)
    return solved


def _powers(matrix: Floats, vector: Floats, number: int) -> Floats:
    """The columns ``v, A v, A^2 v, ...``."""
    columns = [vector]
    for _ in range(number - 1):
        columns.append(matrix @ columns[-1])
    return np.array(columns).T


def _trustworthy(size: float, noise: Floats) -> None:
    """Refuse models in which rounding could hide or invent noise."""
    least = float(np.linalg.eigvalsh(noise)[0])
    if not size * np.finfo(np.float64).eps <= _PRECISION * least:
        raise NotCertified(
            "The values of this model grow too far beyond the noise for exact covariances. "
            "Look at fewer times, give a smaller start, or add more noise."
        )


def _horizon(releases: Releases, times: tuple[int, ...]) -> int:
    return max(releases.times[-1], *times) + 1


def _match(model: VAR, releases: Releases, known: Known) -> None:
    if len(releases.weights) != model.people:
        raise InvalidArgument(
            f"releases must be of the model's {model.people} people, got {len(releases.weights)}."
        )
    if known not in KNOWN:
        raise InvalidArgument(f"known must be one of {', '.join(KNOWN)}, got {known!r}.")
