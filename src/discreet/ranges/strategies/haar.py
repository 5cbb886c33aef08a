"""The Haar wavelet in integers: a total, and for each binary block left half minus right half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, Ints
from discreet.query.budget import BudgetChange
from discreet.ranges.strategies.base import (
    Contribution,
    MeasurementCost,
    Terms,
    cells_within,
    checked_shares,
    group_move,
    rounded_shares,
)
from discreet.ranges.workload import Workload, energies, energy, length_energies


@dataclass(frozen=True, slots=True, kw_only=True)
class Haar:
    """Noisy differences of halves (F31). Groups: the total first, then blocks of 2, 4, ..."""

    size: int
    shares: tuple[Fraction, ...]
    total: int | None = None
    """The public number of rows, if it is known (replace-one only); then it is not measured."""

    def __post_init__(self) -> None:
        check.count("size", self.size)
        if self.total is not None and self.height == 0:
            raise InvalidArgument("a single cell with a public total has nothing to measure.")
        checked_shares(self.shares, self.height + (self.total is None))

    @property
    def height(self) -> int:
        """Levels of differences."""
        return (self.size - 1).bit_length()

    @property
    def padded(self) -> int:
        """Cells after filling up with public zeros."""
        return 1 << self.height

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far each group moves.

        Under replace-one the difference at the smallest block that holds both places moves by two,
        so its square counts four; which level that is depends on the data, and each is charged.
        """
        if self.total is not None and (
            relation is not NeighboringRelation.REPLACE_ONE or contribution.rows != 1
        ):
            raise InvalidArgument(
                "total may be public only under REPLACE_ONE with exactly one row of each unit: "
                "else neighbors differ in it."
            )
        differences = tuple(
            group_move(
                contribution,
                relation,
                entries=self.padded >> j,
                cells=1 << (j - 1),
                signed=True,
            )
            for j in range(1, self.height + 1)
        )
        if self.total is not None:
            return differences
        whole = group_move(contribution, relation, entries=1, cells=self.padded)
        return (whole, *differences)

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        level = cells_within(counts, padded=self.padded)
        differences = []
        for _ in range(self.height):
            differences.append(level[0::2] - level[1::2])
            level = level[0::2] + level[1::2]
        return tuple(differences) if self.total is not None else (level, *differences)

    def estimate(self, noisy: Sequence[Ints] | Sequence[Floats], noise: Floats) -> Floats:  # noqa: ARG002 - a square matrix: there is nothing to weigh
        """From the top down: the halves of t with difference d are (t + d)/2 and (t - d)/2."""
        if self.total is None:
            level, differences = noisy[0].astype(np.float64), noisy[1:]
        else:
            level, differences = np.array([float(self.total)]), noisy
        for difference in reversed(differences):
            halves = np.empty(2 * len(level))
            halves[0::2] = (level + difference) / 2
            halves[1::2] = (level - difference) / 2
            level = halves
        return level[: self.size]

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        """F31: ``sum_j (E_(j-1) - E_j) v_j / 2^j + E_h v_0 / 2^h``."""
        found: Floats = np.zeros(np.shape(a))
        for block, weight in zip(self._blocks, self._weights(noise), strict=True):
            found = found + weight * energy(a, b, block)
        return np.maximum(found, 0.0)

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        return float(self._weights(noise) @ energies(workload, self.size, self._blocks))

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        means = length_energies(self.size, lengths, self._blocks)
        found: Floats = means @ self._weights(noise)
        return found

    def terms(self, a: int, b: int, noise: Floats) -> Terms:  # noqa: ARG002 - no weighing
        """Only blocks that hold an end of the range have a weight: (left - right) / block."""
        found: list[tuple[Floats, Floats]] = []
        if self.total is None:
            found.append((np.array([(b - a + 1) / self.padded]), np.ones(1)))
        for j in range(1, self.height + 1):
            block, half = 1 << j, 1 << (j - 1)
            starts = [node * block for node in sorted({a >> j, b >> j})]
            weights = [
                (_overlap(a, b, start, half) - _overlap(a, b, start + half, half)) / block
                for start in starts
            ]
            found.append((np.array(weights), np.ones(len(weights))))
        return tuple(found)

    def largest_weights(self, noise: Floats) -> Floats:
        """A half at most covered and the other not: a half; the total at most once."""
        weights = np.full(len(noise), 0.5)
        if self.total is None:
            weights[0] = 1.0
        return weights

    def precision(self, x: Floats, noise: Floats) -> Floats:
        level = np.zeros(self.padded)
        level[: self.size] = x
        found = np.zeros(self.padded)
        rates = (1 / noise).tolist()
        if self.total is None:
            found += level.sum() * rates.pop(0)
        for j, rate in enumerate(rates, start=1):
            difference = (level[0::2] - level[1::2]) * rate
            level = level[0::2] + level[1::2]
            halves = np.stack([difference, -difference], axis=1).reshape(-1)
            found += np.repeat(halves, 1 << (j - 1))
        return found[: self.size]

    def content(self) -> dict[str, Any]:
        return {
            "kind": "haar",
            "size": self.size,
            "shares": [str(share) for share in self.shares],
            "total": self.total,
        }

    def describe(self) -> str:
        equal = len(set(self.shares)) == 1
        return f"Haar wavelet, {'equal' if equal else 'weighted'} levels"

    @property
    def _blocks(self) -> tuple[int, ...]:
        return tuple(1 << j for j in range(self.height + 1))

    def _weights(self, noise: Floats) -> Floats:
        """Factors of the energies of blocks of 1, 2, ..., padded."""
        whole = 0.0 if self.total is not None else float(noise[0]) / self.padded
        levels = noise if self.total is not None else noise[1:]
        falls = np.append(levels / 2.0 ** np.arange(1, self.height + 1), whole)
        return np.diff(falls, prepend=0.0)


def haar(size: int, *, total: int | None = None) -> Haar:
    """The Haar wavelet with equal shares on all levels (Xiao, Wang, Gehrke 2010)."""
    groups = (size - 1).bit_length() + (total is None)
    return Haar(size=size, shares=(Fraction(1, max(groups, 1)),) * max(groups, 1), total=total)


def optimal_haar(
    size: int,
    *,
    workload: Workload,
    price: MeasurementCost,
    relation: NeighboringRelation,
    contribution: Contribution,
    total: int | None = None,
) -> Haar:
    """The Haar wavelet with the best shares for a workload."""
    # Proof: the mean variance is a sum of `a_j v_j` over groups. Laplace noise has
    #   `v_j ~ (l1_j / share_j)^2` (discrete noise almost so), Gaussian noise
    #   `v_j ~ l2_j^2 / share_j`; by Lagrange the best shares go with `(a_j l1_j^2)^(1/3)` and
    #   `(a_j l2_j^2)^(1/2)`.
    # Source: F31.
    plain = haar(size, total=total)
    groups = len(plain.shares)
    means = [plain.mean_variance(workload, np.eye(groups)[group]) for group in range(groups)]
    moves = plain.moves(contribution, relation)
    if price.family == "laplace":
        sizes = [mean * move.l1**2 for mean, move in zip(means, moves, strict=True)]
        weights = np.cbrt(sizes)
    else:
        sizes = [mean * move.l2_squared for mean, move in zip(means, moves, strict=True)]
        weights = np.sqrt(np.maximum(sizes, 0.0))
    return Haar(size=size, shares=rounded_shares(np.maximum(weights, 1e-300)), total=total)


def _overlap(a: int, b: int, start: int, cells: int) -> int:
    return max(0, min(b + 1, start + cells) - max(a, start))
