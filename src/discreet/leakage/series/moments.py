"""Covariances of the releases with each other and with every cell, from the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from discreet.core.errors import NotCertified
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.threat import Releases

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


def covariances(model: VAR, *, releases: Releases, horizon: int) -> Moments:
    """Second moments of the releases and all cells up to the horizon.

    Theorem: with G_j the state's covariance, A the companion matrix and w the weights,
        ``Cov(state_j, Q_{j+k}) = G_j A'^k w`` and ``Cov(state_j, Q_{j-k}) = A^k G_{j-k} w``.
    Proof: ``state_{j+k} = A^k state_j + noise that is independent of state_j``.
    """
    found = (_stationary if model.stationary else _started)(model, releases, horizon)
    trustworthy(found.variances, releases)
    return found


def _stationary(model: VAR, releases: Releases, horizon: int) -> Moments:
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


def _started(model: VAR, releases: Releases, horizon: int) -> Moments:
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


def _state_weights(model: VAR, releases: Releases) -> Floats:
    w = np.zeros(model.people * model.order)
    w[: model.people] = releases.weights
    return w


def trustworthy(variances: Floats, releases: Releases) -> None:
    """Refuse models in which rounding could hide or invent noise; variances, time x person."""
    # No covariance exceeds the product of the standard deviations.
    size = float((np.sqrt(variances) @ np.abs(releases.weights)).max()) ** 2
    least = float(np.linalg.eigvalsh(releases.covariance)[0])
    if not size * np.finfo(np.float64).eps <= _PRECISION * least:
        raise NotCertified(
            "The values of this model grow too far beyond the noise for exact covariances. "
            "Look at fewer times, give a smaller start, or add more noise."
        )
