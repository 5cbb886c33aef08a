"""What a noisy number says, given what is public: free of cost, as nothing private is read (A47).

Before the noise stood a clipped answer, and public inputs show which clipped answers there are and
what the function itself said. The estimate is the weighted median of what it said, each weighed by
how well the noise explains the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument
from discreet.models.inputs import Floats
from discreet.noise.law import Ints, Law

Mask: TypeAlias = NDArray[np.bool_]

NODES = 32
"""The noise stands for its quantiles at so many equal steps where an error is expected."""
_PLACES = 256  # noisy numbers for which estimates are made to expect an error
_PARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Posterior:
    """Public pairs: a clipped answer, in steps, and what the function said."""

    clipped: Ints
    said: Floats
    law: Law

    def __post_init__(self) -> None:
        if len(self.clipped) != len(self.said) or not len(self.said):
            raise InvalidArgument("A posterior needs public pairs of clipped answers and outputs.")
        order = np.argsort(self.said, kind="stable")
        object.__setattr__(self, "clipped", np.asarray(self.clipped, dtype=np.int64)[order])
        object.__setattr__(self, "said", np.asarray(self.said, dtype=np.float64)[order])

    def estimate(self, noisy: Ints) -> Floats:
        """The weighted median of what was said, for each noisy number.

        Theorem: costs nothing. Proof: a function of the released number and of public data.
        """
        weights = self._weights(np.asarray(noisy, dtype=np.int64))
        return _median(weights, self.said)

    def expected_error(self) -> float:
        """Mean absolute error over the public pairs, each estimated from others."""
        nodes = noise_nodes(self.law)
        places = np.unique(
            np.linspace(self.clipped.min() + nodes[0], self.clipped.max() + nodes[-1], _PLACES)
            .round()
            .astype(np.int64)
        )
        total = 0.0
        for own, rest in _parts(len(self.said)):
            others = Posterior(clipped=self.clipped[rest], said=self.said[rest], law=self.law)
            found = others.estimate(places)
            noisy = self.clipped[own, None] + nodes
            at = np.minimum(np.searchsorted(places, noisy), len(places) - 1)
            total += float(np.abs(found[at] - self.said[own, None]).mean(axis=1).sum())
        return total / len(self.said)

    def _weights(self, noisy: Ints) -> Floats:
        logs = self.law.log_pmf(noisy[:, None] - self.clipped)
        most = logs.max(axis=1, keepdims=True)
        # Noise of bounded reach explains nothing far away: there all are alike.
        heard = np.isfinite(most)
        weights: Floats = np.exp(np.where(heard, logs, 0.0) - np.where(heard, most, 0.0))
        return weights


def constant_error(said: Floats) -> float:
    """The same expected error for a median that hears nothing: split alike, so they compare."""
    ordered = np.sort(said)
    errors = [
        np.abs(ordered[own] - np.median(ordered[rest])).sum() for own, rest in _parts(len(said))
    ]
    return float(sum(errors) / len(said))


def _parts(size: int) -> list[tuple[Mask, Mask]]:
    """Outputs to judge by, and the others; a single one has no others."""
    part = np.arange(size) % min(_PARTS, size)
    return [(part == one, (part != one) | (size == 1)) for one in range(min(_PARTS, size))]


def _median(weights: Floats, said: Floats) -> Floats:
    """Weighted medians along the last axis; ``said`` is in order."""
    sums = np.cumsum(weights, axis=1)
    half = sums[:, -1:] / 2
    medians: Floats = said[np.argmax(sums >= half, axis=1)]
    return medians


@lru_cache(maxsize=64)
def noise_nodes(law: Law) -> Ints:
    """Quantiles of the noise in the middle of equal shares."""
    return np.array([law.quantile((i + 0.5) / NODES) for i in range(NODES)], dtype=np.int64)
