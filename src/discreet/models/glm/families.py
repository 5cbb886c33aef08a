"""What tells a logit from a Poisson regression: means, variances and the largest residual."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit

from discreet.models._model_inputs import Floats

# Means are looked up at margins on a grid of this many steps a unit, because a vectorized
# exponential may round one number differently at two places of an array; then a row could change
# what others contribute.
_TABLE_BITS = 11
_REACH = 16

# How much of a release goes to the Hessian: its length in the joint bound, relative to that of the
# gradient where both are longest. For the logit the two are never longest together.
_LOGIT_HESSIAN = 3.3
_POISSON_HESSIAN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(ABC):
    """A distribution with its canonical link: the mean is a function of the margin alone."""

    @property
    @abstractmethod
    def most(self) -> float:
        """The largest target; residuals are at most this far from zero."""

    @property
    @abstractmethod
    def hessian_length(self) -> float:
        """Factor of Hessians in a joint release, in units of `gradient / radius`."""

    @property
    @abstractmethod
    def settled(self) -> float:
        """How far a last step may move margins for the score to be about linear on the way."""

    @property
    @abstractmethod
    def joint_length(self) -> float:
        """The greatest ``sqrt(residual**2 + (hessian_length variance)**2)`` of a row."""

    @abstractmethod
    def _table(self) -> Floats:
        """Means at margins from ``-_REACH`` on, every ``2**-_TABLE_BITS``."""

    @abstractmethod
    def variances(self, means: Floats) -> Floats:
        """The variance of targets with these means: the derivative of the mean in the margin."""

    def slopes(self, means: Floats) -> Floats:
        """That derivative where it counts for a covariance: zero where means are cut."""
        return np.where(means < self.most, self.variances(means), 0.0)

    @abstractmethod
    def link(self, mean: float) -> float:
        """The margin of a mean, cut to what the family can have."""

    def means(self, margins: Floats) -> Floats:
        """The mean of the target at each margin: the same bits wherever a row stands."""
        table = self._table()
        places = np.rint((margins + _REACH) * 2.0**_TABLE_BITS)
        found: Floats = table[np.clip(places, 0, len(table) - 1).astype(np.intp)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitFamily(Family):
    """Targets 0 and 1; the mean is ``1 / (1 + exp(-margin))``."""

    @property
    def most(self) -> float:
        return 1.0

    @property
    def hessian_length(self) -> float:
        return _LOGIT_HESSIAN

    @property
    def settled(self) -> float:
        return 2.0

    @property
    def joint_length(self) -> float:
        return _logit_length(_LOGIT_HESSIAN)

    def _table(self) -> Floats:
        return _logistic_table()

    def variances(self, means: Floats) -> Floats:
        return means * (1 - means)

    def link(self, mean: float) -> float:
        cut = min(max(mean, 1e-3), 1 - 1e-3)
        return math.log(cut / (1 - cut))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonFamily(Family):
    """Targets from 0 to ``largest``; the mean is ``exp(margin)``, at most ``largest``."""

    largest: float

    @property
    def most(self) -> float:
        return self.largest

    @property
    def hessian_length(self) -> float:
        return _POISSON_HESSIAN

    @property
    def settled(self) -> float:
        return 0.7

    @property
    def joint_length(self) -> float:
        return self.largest * math.hypot(1, _POISSON_HESSIAN)

    def _table(self) -> Floats:
        return _exponential_table(self.largest)

    def variances(self, means: Floats) -> Floats:
        return means

    def link(self, mean: float) -> float:
        return math.log(min(max(mean, 1e-4 * self.largest), self.largest))


@lru_cache(maxsize=8)
def _logit_length(share: float) -> float:
    # A residual s of a row with target 0 has the mean s, and so the variance s (1 - s).
    residual = np.linspace(0, 1, 10_001)
    return float(np.sqrt(np.max(residual**2 + (share * residual * (1 - residual)) ** 2))) * 1.0001


@lru_cache(maxsize=1)
def _logistic_table() -> Floats:
    ends = _REACH << _TABLE_BITS
    table: Floats = expit(np.arange(-ends, ends + 1) * 2.0**-_TABLE_BITS)
    return table


@lru_cache(maxsize=16)
def _exponential_table(largest: float) -> Floats:
    above = math.ceil(math.log(largest) * 2**_TABLE_BITS)
    first = -(_REACH << _TABLE_BITS)
    margins = np.arange(first, max(above, first) + 1) * 2.0**-_TABLE_BITS
    return np.minimum(np.exp(margins), largest)
