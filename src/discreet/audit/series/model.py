"""Vector autoregressions: people whose values depend on earlier values, their own and others'.

``X_t = A_1 X_{t-1} + ... + A_p X_{t-p} + B_t`` with independent ``B_t ~ N(0, noise)``. Means play
no part in leakage and are left out. The law at time 0 is the stationary one, or is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.noise.random_source import RandomSource

Floats: TypeAlias = NDArray[np.float64]

# A covariance whose correlation matrix has a smaller eigenvalue is taken for singular.
_SINGULAR = 1e-10
_DOUBLINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VAR:
    """A vector autoregression: values of people that depend on earlier values.

    X_t = A_1 X_(t-1) + ... + A_p X_(t-p) + B_t with independent shocks B_t ~ N(0, noise). The model
    has mean zero, because means do not affect leakage.

    Args:
        lags: Matrix A_1, or a list of matrices, the first for the time just before. Row i says on
            whom person i depends.
        noise: Covariance matrix of the shocks, people x people.
        start: Covariance of the values at time 0, followed by those at times -1 to 1 - p. By
            default the model is stationary.
        public: Whether the model is public. False if it was fitted to private values without noise.

    Attributes:
        matrices: The lags, order x people x people.
        innovation: Covariance of the noise, people x people.
        initial: Covariance of the state at time 0, (order x people) squared.

    Raises:
        InvalidArgument: A matrix has the wrong shape or is not a covariance, or there is no
            stationary distribution.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
        >>> model
        VAR(people=2, order=1, stationary)
        >>> print(model.initial.round(6))
        [[1.416296 0.488889]
         [0.488889 1.333333]]

    See Also:
        [Releases about the same people](../how-to/series.md), [theory](../theory/series.md).
    """

    lags: ArrayLike
    noise: ArrayLike
    start: ArrayLike | None = None
    public: bool = True
    matrices: Floats = field(init=False)
    innovation: Floats = field(init=False)
    initial: Floats = field(init=False)

    def __post_init__(self) -> None:
        matrices = numbers("lags", self.lags)
        matrices = matrices[None] if matrices.ndim == 2 else matrices
        if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not matrices.size:
            raise InvalidArgument(
                f"lags must be a square matrix or a list of them, got shape {matrices.shape}."
            )
        people = matrices.shape[1]
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "innovation", covariance("noise", self.noise, size=people))
        if self.start is None:
            try:
                initial = lyapunov(self.companion, noise=self.state_noise)
            except NotCertified:
                if self.radius < 1:
                    raise
                raise InvalidArgument(
                    "lags must have all eigenvalues inside the unit circle (spectral radius below "
                    "1), or there is no stationary law. Difference the series, or give start."
                ) from None
            object.__setattr__(self, "initial", initial)
        else:
            size = people * len(matrices)
            object.__setattr__(self, "initial", covariance("start", self.start, size=size))

    @property
    def people(self) -> int:
        """Number of people."""
        return int(self.matrices.shape[1])

    @property
    def order(self) -> int:
        """Number of earlier times on which a value depends."""
        return len(self.matrices)

    @property
    def stationary(self) -> bool:
        """Whether the model starts in its stationary distribution."""
        return self.start is None

    @property
    def companion(self) -> Floats:
        """Matrix of the equivalent model of order 1, whose state is the last p values."""
        n, p = self.people, self.order
        result = np.eye(n * p, k=-n)
        result[:n] = np.concatenate(self.matrices, axis=1)
        return result

    @property
    def state_noise(self) -> Floats:
        """Covariance of the noise of this state."""
        n, size = self.people, self.people * self.order
        result = np.zeros((size, size))
        result[:n, :n] = self.innovation
        return result

    @property
    def radius(self) -> float:
        """Spectral radius. Below 1 the model forgets its past."""
        return float(np.abs(np.linalg.eigvals(self.companion)).max())

    def simulate(self, *, times: int, rng: RandomSource, runs: int = 1) -> Floats:
        """Simulate panels.

        Args:
            times: Number of times per panel.
            rng: Random source, for example `seeded_rng(1)`.
            runs: Number of panels.

        Returns:
            An array, runs x people x times.

        Raises:
            InvalidArgument: `times` or `runs` is not a positive integer.

        Privacy:
            The panels are simulated. No private data are read.

        Examples:
            >>> import discreet
            >>> model = discreet.audit.series.VAR(lags=[[0.5]], noise=[[1]])
            >>> model.simulate(times=5, rng=discreet.seeded_rng(1)).shape
            (1, 1, 5)
        """
        n, p = self.people, self.order
        times, runs = count("times", times), count("runs", runs)
        generator = np.random.Generator(np.random.Philox(rng.words(2)))
        root, kick = np.linalg.cholesky(self.initial), np.linalg.cholesky(self.innovation)
        step = np.concatenate(self.matrices, axis=1)
        state = generator.standard_normal((runs, n * p)) @ root.T
        panel = np.empty((runs, n, times))
        panel[:, :, 0] = state[:, :n]
        for t in range(1, times):
            new = state @ step.T + generator.standard_normal((runs, n)) @ kick.T
            state = np.concatenate([new, state[:, : n * (p - 1)]], axis=1)
            panel[:, :, t] = new
        return panel

    def __repr__(self) -> str:
        start = "stationary" if self.stationary else "given start"
        return f"VAR(people={self.people}, order={self.order}, {start})"


def lyapunov(companion: Floats, *, noise: Floats) -> Floats:
    """The covariance G that solves ``G = A G A' + noise``, for a spectral radius below 1."""
    # Theorem: with `A_0 = A, G_0 = noise` and `G_{k+1} = G_k + A_k G_k A_k', A_{k+1} = A_k^2`,
    #   G_k is the sum of the first 2^k terms `A^m noise A'^m`, which converges to G.
    # Proof: by induction; the remainder is `A_k G A_k'`. For a diagonal A each entry of the sum is
    #   a geometric series.
    # Source: Smith 1968. Only sums of positive semidefinite matrices: nothing cancels.
    # Needs: noise that reaches every direction sooner or later, as that of a companion matrix does;
    #   then the sum converges for a spectral radius below 1 only.
    own = np.diag(companion)
    if np.count_nonzero(companion) == np.count_nonzero(own) and np.abs(own).max() < 1:
        return noise / (1 - np.outer(own, own))
    power, result = companion, noise
    for _ in range(_DOUBLINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            more = power @ result @ power.T
            result = result + more
        size = float(np.abs(more).max())
        if not math.isfinite(size):
            break
        if size <= 1e-17 * float(np.abs(result).max()):
            return (result + result.T) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            power = power @ power
    raise NotCertified(
        "The stationary covariance did not converge: lags are too close to the unit circle. "
        "Give start, or difference the series."
    )


def numbers(name: str, values: ArrayLike) -> Floats:
    """Finite numbers as an array; nothing of them appears in an error."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be an array of numbers with equal rows.") from None
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{name} must be finite: no missing or infinite entries.")
    return array


def covariance(name: str, values: ArrayLike, *, size: int) -> Floats:
    """A symmetric, safely positive definite matrix of this size."""
    array = numbers(name, values)
    if array.shape != (size, size):
        raise InvalidArgument(f"{name} must be {size} x {size}, got shape {array.shape}.")
    scale = np.sqrt(np.maximum(np.diag(array), 0))
    if not (scale > 0).all() or np.abs(array - array.T).max() > 1e-12 * float(scale.max()) ** 2:
        raise InvalidArgument(f"{name} must be symmetric with a positive diagonal.")
    array = (array + array.T) / 2
    correlation = array / np.outer(scale, scale)
    try:  # a factor exists if no eigenvalue is below: much faster than eigenvalues
        np.linalg.cholesky(correlation - _SINGULAR * np.eye(size))
    except np.linalg.LinAlgError:
        raise InvalidArgument(
            f"{name} must be positive definite; here some values are combinations of others. "
            "Leave those out: what is determined by what is known is no secret."
        ) from None
    return array
