"""Models in which all people are alike, and how a few moments determine one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import toeplitz
from scipy.optimize import least_squares

from discreet.audit.series.model import VAR, Floats
from discreet.core._validate import count, finite, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.noise.random_source import RandomSource

# Partial autocorrelations and correlations beyond these would make models that hardly forget.
_EDGE = 0.98
_CORRELATION = 0.99
_SOLVED = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeableVAR:
    """A model in which all people depend on their own past in the same way.

    Args:
        habits: How a value depends on the person's earlier values, the last one first.
        variance: Variance of a shock.
        correlation: Correlation of the shocks of any two people, from 0 up to but not including 1.
        projected: Whether this is only the nearest model to the fitted moments.

    Raises:
        InvalidArgument: An argument is outside its range.

    Examples:
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> alike.model(3)
        VAR(people=3, order=1, stationary)
    """

    habits: tuple[float, ...]
    variance: float
    correlation: float
    projected: bool = False

    def __post_init__(self) -> None:
        habits = tuple(float(finite("habits", habit)) for habit in self.habits)
        if not habits:
            raise InvalidArgument("habits must be one number for each earlier time that matters.")
        object.__setattr__(self, "habits", habits)
        object.__setattr__(self, "variance", float(positive("variance", self.variance)))
        share = float(probability("correlation", self.correlation, one=False))
        object.__setattr__(self, "correlation", share)

    def model(self, people: int) -> VAR:
        """Build the model for a number of people.

        Args:
            people: Number of people.

        Returns:
            The vector autoregression.

        Examples:
            >>> from discreet.audit import series
            >>> series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2).model(3).people
            3
        """
        shocks = np.full((people, people), self.variance * self.correlation)
        np.fill_diagonal(shocks, self.variance)
        lags = np.array(self.habits)[:, None, None] * np.eye(people)
        return VAR(lags=lags, noise=shocks)

    def pair(self, people: int) -> tuple[VAR, Floats]:
        """Build a small model of one person and the mean of all others.

        A value of the person leaks as much in this model as in `model(people)`, which is much
        larger.

        Args:
            people: Number of people, at least 2.

        Returns:
            The model of two, and their weights in the mean of all people.

        Raises:
            InvalidArgument: `people` is below 2.

        Examples:
            >>> from discreet.audit import series
            >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
            >>> model, weights = alike.pair(50)
            >>> weights.tolist()
            [0.02, 0.98]

        References:
            [Proof](../theory/theorems.md#audit.series.exchangeable.ExchangeableVAR.pair).
        """
        # Theorem: a cell of the first leaks what it leaks in `model`, whether the others' values at
        #   its time are known, or nobody's.
        # Proof: given the mean of the others at a time, the single values tell nothing about any
        #   mean, earlier or later, nor about the person: all people are alike.
        others = count("people", people, minimum=2) - 1
        shared = self.variance * self.correlation
        rest = shared + self.variance * (1 - self.correlation) / others
        lags = np.array(self.habits)[:, None, None] * np.eye(2)
        weights = np.array([1 / people, others / people])
        return VAR(lags=lags, noise=[[self.variance, shared], [shared, rest]]), weights

    def simulate(self, *, people: int, times: int, rng: RandomSource) -> Floats:
        """Simulate a panel.

        Args:
            people: Number of people.
            times: Number of times.
            rng: Random source, for example `seeded_rng(1)`.

        Returns:
            An array, people x times.

        Privacy:
            The panel is simulated. No private data are read.

        Examples:
            >>> import discreet
            >>> alike = discreet.audit.series.ExchangeableVAR(
            ...     habits=(0.5,), variance=1.0, correlation=0.2
            ... )
            >>> alike.simulate(people=3, times=4, rng=discreet.seeded_rng(1)).shape
            (3, 4)
        """
        generator = np.random.Generator(np.random.Philox(rng.words(2)))
        p = len(self.habits)
        single = VAR(lags=np.array(self.habits)[:, None, None], noise=[[1.0]])
        share, own = math.sqrt(self.correlation), math.sqrt(1 - self.correlation)

        def shocks(size: int) -> Floats:
            common, each = (
                generator.standard_normal(size),
                generator.standard_normal((people, size)),
            )
            return share * common + own * each

        panel = np.empty((people, p + times))
        # The state lists the last value first.
        panel[:, :p] = (shocks(p) @ np.linalg.cholesky(single.initial).T)[:, ::-1]
        new = shocks(times)
        past = np.array(self.habits[::-1])
        for t in range(times):
            panel[:, p + t] = panel[:, t : t + p] @ past + new[:, t]
        result: Floats = panel[:, p:] * math.sqrt(self.variance)
        return result

    def __str__(self) -> str:
        habits = ", ".join(short(habit, digits=3) for habit in self.habits)
        near = "; the nearest model: none has these moments" if self.projected else ""
        return (
            f"habits {habits}; shocks with variance {short(self.variance, digits=3)} and "
            "correlation "
            f"{short(self.correlation, digits=3)}{near}"
        )


def solve(products: Floats, *, common: float, people: int, times: int) -> ExchangeableVAR:
    """The model with these expected sums of products of a person's values around their mean.

    ``products`` are those at lags 0, 1, ..., of one person on average; ``common`` is the expected
    sum of squares of everybody's mean, around its own mean over time.
    """
    # Theorem: with c = x - mean(x), `E sum c_t c_{t-k} = variance f_k` and `E sum mean_t^2 =
    #   variance (r + (1 - r)/n) f_0`, f_k being the k-th diagonal sum of `M G M` for
    #   `M = I - 11'/T` and G the autocovariance of the series with unit shocks. The solution has
    #   none of the bias of autocorrelations of short series.
    # Proof: c = M x. The mean of n such series has the same dependence and shocks of variance
    #   `variance (r + (1 - r)/n)`.
    shares = products[1:] / products[0]

    def miss(partial: Floats) -> Floats:
        f = expected(partial, times)
        result: Floats = f[1:] / f[0] - shares
        return result

    start = np.clip(_partial(shares), -0.9, 0.9)
    found = least_squares(miss, start, bounds=(-_EDGE, _EDGE), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    f = expected(found.x, times)
    variance = float(products[0] / f[0])
    ratio = common / float(products[0])
    r = (ratio - 1 / people) / (1 - 1 / people) if people > 1 else 0.0
    return ExchangeableVAR(
        habits=tuple(habits(found.x).tolist()),
        variance=variance,
        correlation=min(max(r, 0.0), _CORRELATION),
        projected=bool(np.abs(found.fun).max() > _SOLVED) or not 0 <= r <= _CORRELATION,
    )


def expected(partial: Floats, times: int) -> Floats:
    """The f_k of `solve`, k = 0, ..., p, for these partial autocorrelations."""
    G = toeplitz(_autocovariance(partial, times))
    side = G.mean(axis=0)
    centered = G - side - side[:, None] + side.mean()
    return np.array([np.trace(centered, offset=k) for k in range(len(partial) + 1)])


def habits(partial: Floats) -> Floats:
    """Coefficients of the autoregression with these partial autocorrelations (Durbin, Levinson)."""
    found: Floats = np.empty(0)
    for value in partial:
        found = np.append(found - value * found[::-1], value)
    return found


def _autocovariance(partial: Floats, times: int) -> Floats:
    """Of the stationary series with unit shocks, by the same recursion."""
    p = len(partial)
    result = np.zeros(max(times, p + 1))
    result[0] = 1 / math.prod(1 - float(value) ** 2 for value in partial)
    phi, left = np.empty(0), float(result[0])
    for k in range(1, p + 1):
        last = float(partial[k - 1])
        result[k] = last * left + float(phi @ result[k - 1 : 0 : -1])
        phi = np.append(phi - last * phi[::-1], last)
        left *= 1 - last**2
    for k in range(p + 1, times):
        result[k] = float(phi @ result[k - p : k][::-1])
    return result[:times]


def _partial(correlations: Floats) -> Floats:
    """Partial autocorrelations, as a first guess."""
    phi: Floats = np.empty(0)
    found = []
    for k, r in enumerate(correlations):
        error = 1 - float(phi @ correlations[:k])
        value = (float(r) - float(phi @ correlations[:k][::-1])) / max(error, 1e-3)
        found.append(min(max(value, -0.9), 0.9))
        phi = np.append(phi - found[-1] * phi[::-1], found[-1])
    return np.array(found)
