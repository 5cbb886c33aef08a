"""The same leakage from the covariance of all cells: slow, for any secret, and the oracle."""

from __future__ import annotations

import numpy as np

from discreet.core.errors import Unsupported
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.moments import regressed, trustworthy
from discreet.leakage.series.threat import Known, Releases, Secret

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


def factor(model: VAR, *, releases: Releases, secret: Secret, known: Known) -> Floats:
    """The matrix F with ``mu^2 = |F d|^2`` when the secret's values move by d widths.

    Theorem: regress the releases on the secret and what is known: F is the whitened coefficient
        of the secret.
    Proof: conditional laws of a joint normal law. C29, in O((n T)^3).
    """
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
    }[known]
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
