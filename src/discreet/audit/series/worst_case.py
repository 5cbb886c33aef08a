"""When the model is not known: the worst of several, or of all that forget fast enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from discreet.audit.series._fit import Dynamics
from discreet.audit.series._leakage import CellLeakage, cells, epsilon_of, largest, noise_alone
from discreet.audit.series.model import VAR, Floats, covariance
from discreet.audit.series.threat_model import KNOWN, Known, SeriesReleases
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short

# Stressed models keep this distance from the unit circle.
_FURTHEST = 0.99


def worst(
    models: Iterable[VAR],
    *,
    releases: SeriesReleases,
    attacker_knows: Known = "time",
    times: int | None = None,
) -> CellLeakage:
    """Compute the largest leakage of every value over several models.

    Args:
        models: Models of the values.
        releases: What is published.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        times: Number of times. By default up to the last release.

    Returns:
        Leakages as in `cells`.

    Raises:
        InvalidArgument: There is no model, or the releases do not fit a model.
        NotCertified: Rounding errors could affect the result.

    Examples:
        >>> from discreet.audit import series
        >>> models = [series.VAR(lags=[[habit]], noise=[[1]]) for habit in (0.2, 0.8)]
        >>> means = series.releases(times=[0, 1], width=1, people=1, std=1)
        >>> round(series.worst(models, releases=means).worst, 3)
        1.149
    """
    found = [
        cells(model, releases=releases, attacker_knows=attacker_knows, times=times)
        for model in models
    ]
    if not found:
        raise InvalidArgument("models must be at least one model.")
    return CellLeakage(
        model=np.max([one.model for one in found], axis=0),
        direct=found[0].direct,
        user=found[0].user,
        everything=found[0].everything,
        assumptions=(
            f"values follow one of these {len(found)} Gaussian models, and are not clipped",
            *found[0].assumptions[1:],
        ),
    )


def worst_over_models(
    *,
    releases: SeriesReleases,
    radius: float,
    dynamics: Dynamics = "own",
    noise: ArrayLike | None = None,
    times: int | None = None,
) -> CellLeakage:
    """Bound the leakage over all stationary models that forget fast enough.

    The attacker knows all other values at the time of the secret.

    Args:
        releases: What is published.
        radius: Largest share of the past that a model keeps per step, below 1.
        dynamics: `"own"` if people depend on their own past only: with the same factor and any
            correlation of shocks, or with different factors and uncorrelated shocks. `"full"` if
            they may depend on everybody's past.
        noise: Covariance of the shocks up to a factor, for `"full"`. By default equal and
            uncorrelated.
        times: Number of times. By default up to the last release.

    Returns:
        Upper bounds of leakages, as in `cells`.

    Raises:
        InvalidArgument: An argument is outside its range.

    Examples:
        >>> from discreet.audit import series
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1)
        >>> round(series.worst_over_models(releases=means, radius=0.8).worst, 3)
        0.64

    References:
        [Proof](../theory/theorems.md#audit.series.worst_case.worst_over_models).
    """
    # Theorem: no such model has a larger mu in any cell.
    # Proof: the law of the releases given the values at the secret's time j has a covariance of at
    #   least that of the noise, S, so `mu^2 <= width^2 m'S^-1 m`, where m_t is what a unit of the
    #   secret adds to the release of time t. `m_j = w_i`. Own: `|m_t| <= |w_i| radius^|t-j|`,
    #   because the series runs backwards as it runs forwards. Full, in units where N = I:
    #   forwards `|w'A^k e_i| <= |w| radius^k |e_i|`. Backwards the coefficient is `w'G A'^k G^-1
    #   e_i = (G^1/2 w)' H^k G^-1/2 e_i` with `H'H = I - G^-1`. From `I <= G <= I / (1 -
    #   radius^2)`, H has norm radius at most, and the coefficient `|w| radius^k |e_i| / sqrt(1
    #   - radius^2)`. The largest `m'S^-1 m` in a box is that of `largest`; m_j and the rest add
    #   up by the triangle inequality, or by Pythagoras for independent noise.
    # Source: C31 (c).
    r = float(probability("radius", radius, one=False))
    if dynamics not in ("own", "full"):
        raise InvalidArgument(f"dynamics must be own or full, got {dynamics!r}.")
    n = len(releases.weights)
    horizon = count("times", releases.times[-1] + 1 if times is None else times)
    followed = (
        f"values follow a stationary Gaussian model of order 1 that keeps at most {r:g} of the "
        f"past ({dynamics} dynamics), and are not clipped"
    )
    # What is known without a model, from any model.
    free = cells(VAR(lags=np.zeros((n, n)), noise=np.eye(n)), releases=releases, times=horizon)
    size = np.abs(releases.weights)
    if dynamics == "full":
        N = np.eye(n) if noise is None else covariance("noise", noise, size=n)
        reach = np.sqrt(releases.weights @ N @ releases.weights)
        size = reach * np.sqrt(np.diag(np.linalg.inv(N)))
    echo = np.outer(size, [_echo(releases, j, r, full=dynamics == "full") for j in range(horizon)])
    independent = np.count_nonzero(releases.covariance) == len(releases.times)
    bound = np.hypot(free.direct, echo) if independent else free.direct + echo
    return CellLeakage(
        model=bound * (1 + 1e-12),
        direct=free.direct,
        user=free.user,
        everything=free.everything,
        assumptions=(
            followed,
            "the attacker knows the model, but not the random part of anybody's values",
            KNOWN["time"],
        ),
    )


def _echo(releases: SeriesReleases, time: int, radius: float, *, full: bool) -> float:
    """The largest mu from other times than the secret's, for a person of size 1."""
    lag = np.array(releases.times) - time
    profile = np.where(lag == 0, 0.0, radius ** np.abs(lag).astype(np.float64))
    if full:
        profile = np.where(lag < 0, profile / np.sqrt(1 - radius**2), profile)
    root = np.linalg.cholesky(releases.covariance)
    factor: Floats = solve_triangular(root, np.diag(profile), lower=True) * releases.width
    used = factor[:, profile > 0]
    return largest(used).upper if used.size else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StressTest:
    """The worst cell if the truth differs from the model in one way."""

    change: str
    mu: float
    epsilon: float


def stress(
    model: VAR,
    *,
    releases: SeriesReleases,
    attacker_knows: Known = "time",
    times: int | None = None,
    delta: float = 1e-6,
) -> tuple[StressTest, ...]:
    """Compute the leakage if the model is wrong in one way at a time.

    Args:
        model: Model of the values.
        releases: What is published.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        times: Number of times. By default up to the last release.
        delta: Probability parameter at which epsilon is reported.

    Returns:
        One result per change of the model, the worst first.

    Raises:
        InvalidArgument: An argument is outside its range, or the releases do not fit the model.
        NotCertified: Rounding errors could affect the result.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1.27)
        >>> series.stress(model, releases=means)[0].change
        'habits 1.25 times as strong'
    """
    small = float(probability("delta", delta, zero=False, one=False))
    rows = []
    for change, other in variants(model).items():
        mu = cells(other, releases=releases, attacker_knows=attacker_knows, times=times).worst
        rows.append(StressTest(change=change, mu=mu, epsilon=epsilon_of(mu, delta=small)))
    return tuple(sorted(rows, key=lambda row: -row.mu))


def variants(model: VAR) -> dict[str, VAR]:
    """The model, and models near it."""
    start = model.start
    lags, noise = model.matrices, model.innovation
    n = model.people
    powers = np.arange(1, model.order + 1)[:, None, None]
    radius = model.radius
    room = _FURTHEST / radius if radius else 1.0
    more = min(1.25, room)
    scale = np.sqrt(np.diag(noise))
    alike = np.outer(scale, scale)
    changes: dict[str, tuple[Floats, Floats]] = {
        # Lag k times c^k moves all eigenvalues by the factor c.
        f"habits {short(more, digits=3)} times as strong": (lags * more**powers, noise),
        "habits 0.75 times as strong": (lags * 0.75**powers, noise),
        "shocks of half the variance": (lags, noise / 2),
        "shocks of twice the variance": (lags, noise * 2),
        "shocks of different people unrelated": (lags, np.diag(np.diag(noise))),
        "shocks half shared by everybody": (lags, noise / 2 + alike / 2),
    }
    led = lags.copy()
    led[0] = 0.8 * led[0] + 0.2 * radius / n
    if VAR(lags=led, noise=noise, start=np.eye(n * model.order)).radius <= _FURTHEST:
        changes["a fifth of the habits is everybody's mean"] = led, noise
    others = {
        change: VAR(lags=A, noise=Sigma, start=start, public=model.public)
        for change, (A, Sigma) in changes.items()
    }
    return {"the model itself": model, **others}


def window(releases: SeriesReleases, *, length: int) -> float:
    """Compute the leakage without a model if a window of a person's values changes.

    This is w-event privacy, for the person with the largest weight.

    Args:
        releases: What is published.
        length: Number of consecutive times in the window.

    Returns:
        The leakage as mu of Gaussian DP.

    Raises:
        InvalidArgument: `length` is not a positive integer.

    Examples:
        >>> from discreet.audit import series
        >>> means = series.releases(times=[0, 1, 2], width=1, people=2, std=1)
        >>> round(series.window(means, length=2), 3)
        0.707

    References:
        Kellaris, Papadopoulos, Xiao and Papadias (2014).
    """
    size = count("length", length)
    # A window that begins at a release holds what any other window holds, or more.
    peaks = [
        noise_alone(releases, times=tuple(range(start, start + size))).upper
        for start in releases.times
    ]
    return max(peaks) * float(np.abs(releases.weights).max())
