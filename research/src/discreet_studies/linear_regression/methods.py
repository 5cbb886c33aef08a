"""The algorithms, as published and with joint accounting, on many draws of noise at once.

Simulations on public data: floating-point noise, and no way to a release. Rows and targets are
within 1; coefficients come as (folds, draws, d).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.conversion import gaussian_epsilon, gaussian_mu
from discreet.noise.distribution import Floats
from discreet_studies.linear_regression.folds import Folds

Shape: TypeAlias = Literal["upper", "full", "averaged"]
DELTA = 1e-6
RHO = 0.05
"""Failure probability of the bound on the noise's norm, by Wang 2018; the thesis is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Many draws of noise of one deviation on the sums of all folds."""

    data: Folds
    sigma: float
    shape: Shape
    epsilon: float
    """Nominal: some penalties are a function of it."""
    draws: int
    rng: np.random.Generator

    def normal(self) -> Floats:
        """Noise on one number of each fold."""
        return self.sigma * self.rng.standard_normal((len(self.data.moment), self.draws))

    def sums(self) -> tuple[Floats, Floats]:
        """The Gram matrix and the moments with their noise."""
        k, d = self.data.moment.shape
        gram = self.data.gram[:, None] + self.sigma * matrices(
            self.shape, (k, self.draws), d, self.rng
        )
        noise = self.sigma * self.rng.standard_normal((k, self.draws, d))
        return gram, self.data.moment[:, None] + noise


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMethod:
    """How much noise goes where, and what is made of it."""

    name: str
    deviation: Callable[[float, float], float]
    """Of the noise on one release at (epsilon, delta), for bounds of 1."""
    releases: int
    shape: Shape
    fit: Callable[[Round], Floats]

    def mu(self, epsilon: float, delta: float = DELTA) -> float:
        """All releases as one Gaussian: the root of the sum of squares (K31)."""
        return math.sqrt(self.releases) / self.deviation(epsilon, delta)

    def true_epsilon(self, epsilon: float, delta: float = DELTA) -> float:
        """What is really paid at delta for a nominal epsilon (M3)."""
        return gaussian_epsilon(delta, mu=self.mu(epsilon, delta))

    def errors(
        self, data: Folds, *, epsilon: float, draws: int, rng: np.random.Generator
    ) -> Floats:
        """Test errors of many private fits: (folds, draws)."""
        noise = Round(
            data=data,
            sigma=self.deviation(epsilon, DELTA),
            shape=self.shape,
            epsilon=epsilon,
            draws=draws,
            rng=rng,
        )
        return data.errors(self.fit(noise))


# ── noise ─────────────────────────────────────────────────────────────────────────────────────


def matrices(shape: Shape, size: tuple[int, ...], d: int, rng: np.random.Generator) -> Floats:
    """Noise on a Gram matrix, of deviation 1 on the diagonal (K9)."""
    z = rng.standard_normal((*size, d, d))
    match shape:
        case "full":
            return z
        case "averaged":
            return np.asarray((z + np.swapaxes(z, -1, -2)) / 2, dtype=np.float64)
        case "upper":
            upper = np.triu(z)
            return np.asarray(upper + np.swapaxes(np.triu(z, 1), -1, -2), dtype=np.float64)


def _solved(gram: Floats, moment: Floats, penalty: Floats | float) -> Floats:
    d = moment.shape[-1]
    shift = np.asarray(penalty, dtype=np.float64)[..., None, None] * np.eye(d)
    return np.asarray(np.linalg.solve(gram + shift, moment[..., None])[..., 0], dtype=np.float64)


# ── what is made of it ────────────────────────────────────────────────────────────────────────


def _ssp(noise: Round) -> Floats:
    """K10: solve the noisy equations; a constant of 1 is added as in Wang's code."""
    return _solved(*noise.sums(), 1.0)


def _adassp(extra: float) -> Callable[..., Floats]:
    """K11 to K14: a penalty from a private lower bound of the smallest eigenvalue."""

    def fit(noise: Round) -> Floats:
        sigma, d = noise.sigma, noise.data.moment.shape[1]
        root = sigma * noise.epsilon / 3  # the square root of L
        smallest = np.linalg.eigvalsh(noise.data.gram)[:, :1] + extra
        seen = smallest + noise.normal() - root * sigma
        target = sigma * math.sqrt(d * math.log(2 * d * d / RHO))
        penalty = np.maximum(0.0, target - np.maximum(0.0, seen))
        return _solved(*noise.sums(), penalty + extra)

    return fit


def _adassp_joint(noise: Round) -> Floats:
    """K32: the same from three releases that are accounted for together."""
    sigma, d = noise.sigma, noise.data.moment.shape[1]
    smallest = np.linalg.eigvalsh(noise.data.gram)[:, :1]
    seen = np.maximum(0.0, smallest + noise.normal() - 2 * sigma)
    penalty = np.maximum(0.0, sigma * (math.sqrt(2 * d) + 2) - seen)
    return _solved(*noise.sums(), penalty)


def _two_releases(noise: Round) -> Floats:
    """K33: the penalty is taken from the released matrix, so it costs nothing."""
    gram, moment = noise.sums()
    edge = noise.sigma * (math.sqrt(2 * moment.shape[-1]) + 1)
    penalty = np.maximum(0.0, edge - np.linalg.eigvalsh(gram)[..., 0])
    return _solved(gram, moment, penalty)


# ── how much noise ────────────────────────────────────────────────────────────────────────────


def _ssp_paper(epsilon: float, delta: float) -> float:
    return 2 * math.sqrt(math.log(4 / delta)) / epsilon


def _ssp_code(epsilon: float, delta: float) -> float:
    return math.sqrt(math.log(4 / delta)) / epsilon


def _ssp_fixed(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(2.5 / delta)) * 2 / epsilon


def _wang(epsilon: float, delta: float) -> float:
    return math.sqrt(math.log(6 / delta)) * 3 / epsilon


def _thesis(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(3.75 / delta)) * 3 / epsilon


def _joint(releases: int) -> Callable[[float, float], float]:
    return lambda epsilon, delta: math.sqrt(releases) / gaussian_mu(epsilon, delta=delta)


def analytic_apart(epsilon: float, delta: float) -> float:
    """The thesis's future work: exact noise for each of three releases, epsilons added up."""
    return 1 / gaussian_mu(epsilon / 3, delta=delta / 3)


_ALL = (
    PublishedMethod(name="SSP paper", deviation=_ssp_paper, releases=2, shape="full", fit=_ssp),
    PublishedMethod(name="SSP code", deviation=_ssp_code, releases=2, shape="full", fit=_ssp),
    PublishedMethod(name="SSP fixed", deviation=_ssp_fixed, releases=2, shape="upper", fit=_ssp),
    PublishedMethod(name="Alg. 2", deviation=_wang, releases=3, shape="upper", fit=_adassp(0.0)),
    PublishedMethod(
        name="Alg. 2 code", deviation=_wang, releases=3, shape="averaged", fit=_adassp(1.0)
    ),
    PublishedMethod(name="Alg. 3", deviation=_thesis, releases=3, shape="upper", fit=_adassp(0.0)),
    PublishedMethod(
        name="joint, 3", deviation=_joint(3), releases=3, shape="averaged", fit=_adassp_joint
    ),
    PublishedMethod(
        name="joint, 2", deviation=_joint(2), releases=2, shape="averaged", fit=_two_releases
    ),
)
METHODS: Mapping[str, PublishedMethod] = {method.name: method for method in _ALL}
