"""The exact leakage of a Gaussian model, for all cells at once (C29).

Everything is jointly Gaussian: given the secret and what is known, the releases are normal with a
mean that is linear in the secret and a covariance that does not depend on it. Two values of the
secret are then exactly as far apart as two normal laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.leakage.series import answer, brute
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.moments import (
    DETERMINED,
    Moments,
    covariances,
    given_time,
    powers,
    regressed,
)
from discreet.leakage.series.signs import largest
from discreet.leakage.series.threat import KNOWN, Known, Releases, Secret

# Products with so few multiplications are left to one thread by OpenBLAS. Hundreds of larger ones
# wait for threads longer than they compute, if other programs have the cores.
_ALONE = 1 << 18
# Entries of matrices that are held at once.
_BLOCK = 1 << 21


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
    horizon = horizon_of(model, releases=releases, known=known, times=times)
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
            model_mu = _others_known(moments, releases)
    free = answer.model_free(releases, people=(0,), times=releases.times)
    unit = free.everything / float(weights.sum())
    return Cells(
        model=model_mu,
        direct=direct,
        user=weights * unit,
        everything=free.everything,
        assumptions=answer.assumptions(model, known),
    )


def horizon_of(model: VAR, *, releases: Releases, known: Known, times: int | None) -> int:
    """How many times are looked at; refused if model, releases and times do not fit."""
    _match(model, releases, known)
    horizon = count("times", releases.times[-1] + 1 if times is None else times)
    if horizon <= releases.times[-1]:
        raise InvalidArgument(f"times must be above the last release, {releases.times[-1]}.")
    return horizon


def _at_time(moments: Moments, releases: Releases, time: int) -> Floats:
    """The factor F (release x person) with ``mu^2 = |F d|^2`` when people move by d widths."""
    coefficients, left = given_time(moments, time)
    root = np.linalg.cholesky(left + releases.covariance)
    factor: Floats = solve_triangular(root, coefficients, lower=True) * releases.width
    return factor


def _others_known(moments: Moments, releases: Releases) -> Floats:
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


def _row(model: VAR, releases: Releases, person: int, times: tuple[int, ...]) -> Floats:
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
        odds = np.where(a < 1 - DETERMINED, a / (1 - np.minimum(a, 1)), math.inf)
    result: Floats = (np.sqrt(odds / variance) * releases.width).T
    return result


def _horizon(releases: Releases, times: tuple[int, ...]) -> int:
    return max(releases.times[-1], *times) + 1


def _match(model: VAR, releases: Releases, known: Known) -> None:
    if len(releases.weights) != model.people:
        raise InvalidArgument(
            f"releases must be of the model's {model.people} people, got {len(releases.weights)}."
        )
    if known not in KNOWN:
        raise InvalidArgument(f"known must be one of {', '.join(KNOWN)}, got {known!r}.")
