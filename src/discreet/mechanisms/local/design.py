"""Oracles whose reports are sets of one size, so spread that all triples of points are alike.

A report is a block: a set of ``chosen`` of ``points`` points. Every point lies in equally many
blocks, and so does every pair and every triple of points (a 3-design: all sets of a size, or all
flats of one dimension over two elements). A client sends a block with its own point with
probability ``keep``, uniform among those, and otherwise a block without it, uniform among those.
Everything about the error follows from this alone, whatever the blocks are; they differ in how
many bytes they take.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.exact import Enclosure, light_share
from discreet.mechanisms.local.coin import coin_check
from discreet.mechanisms.local.oracle import Oracle
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.law import Floats


class BlockOracle(Oracle):
    """A randomiser whose report is a block, e^epsilon times likelier if it holds the own point.

    Theorem: a report is epsilon-DP in the local model, exactly. Its supports have means ``keep``
    and ``other``, and the error of every sum of estimates is that of ``range_variance``.
    Proof: if N blocks hold a point and M do not, N / M = chosen / (points - chosen), and a block
    has probability keep / N or (1 - keep) / M, of ratio e^epsilon. Second moments of supports
    given the value involve the own point and two others: counted by the design. Full proof:
    theory page "Oracles of the local model".
    Source: Ye, Barg 2018 for all sets of a size; Feldman, Nelson, Nguyen, Talwar 2022 for designs.
    """

    @property
    @abstractmethod
    def points(self) -> int:
        """Number of points of the design: at least the categories."""

    @property
    @abstractmethod
    def chosen(self) -> int:
        """Number of points of a block."""

    @property
    def _odds(self) -> float:
        """Of a report that does not hold the client's own category."""
        # Beyond 700 doubles hold no difference.
        rarer = math.exp(-min(float(self.epsilon), 700.0))
        return (self.points - self.chosen) / self.chosen * rarer

    @property
    def _miss(self) -> float:
        """Probability that a report does not hold the client's own category."""
        return self._odds / (1 + self._odds)

    @property
    def keep(self) -> float:
        return 1 / (1 + self._odds)

    @property
    def other(self) -> float:
        # F47: chosen - 1 or chosen points are left for the other points, by the own coin.
        return (self.chosen - 1 + self._miss) / (self.points - 1)

    @property
    def _covariances(self) -> tuple[float, float]:
        """Of the supports of own and other, and of two others.

        A block has a constant size, so each row of the covariances adds up to zero.
        """
        with_own = -self.keep * self._miss / (self.points - 1)
        if self.points == 2:
            return with_own, 0.0
        return with_own, -(self.other * (1 - self.other) + with_own) / (self.points - 2)

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n of the estimated share of ``length`` categories, holding ``share``. F47.

        Conditional on the data, exact, and zero for all points together.
        """
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        one = self.other * (1 - self.other)
        with_own, others = self._covariances
        inside = self.keep * self._miss + (r - 1) * (one + 2 * with_own + (r - 2) * others)
        outside = r * (one + (r - 1) * others)
        law = (f * inside + (1 - f) * outside) / (self.keep - self.other) ** 2
        return np.maximum(law, 0.0)  # for all points together what is left is rounding

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """The same once all shares were moved alike so that they add up to one. F15.

        Exact, whatever the data. Proof: the range has weights 1 - r/k inside and -r/k outside,
        that add up to zero. With w the weight of the own point, the others' add up to -w.
        """
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        with_own, others = self._covariances
        beside = self.other * (1 - self.other) - others
        own = self.keep * self._miss - 2 * with_own + others - beside
        part = r / self.categories
        weight = f * (1 - part) ** 2 + (1 - f) * part**2
        law = (weight * own + r * (1 - part) * beside) / (self.keep - self.other) ** 2
        return np.maximum(law, 0.0)

    def contrast_variance(self) -> float:
        """Variance times n of a contrast of unit length between equally frequent categories. F49.

        Proof: with equal shares 1/k all variances are alike, and all covariances; a contrast has
        the one less the other.
        """
        k = self.categories
        with_own, others = self._covariances
        diagonal = (self.keep * self._miss + (k - 1) * self.other * (1 - self.other)) / k
        beside = (2 * with_own + (k - 2) * others) / k
        return (diagonal - beside) / (self.keep - self.other) ** 2

    def _lie(self, precision: int) -> Enclosure:
        """Enclose the probability of a block without the own point."""
        light = self.points - self.chosen
        return light_share(self.epsilon, precision, light=light, heavy=self.chosen)

    def certify(self) -> Certificate:
        """The divergence of the reports of two clients, from the coin."""
        part, light = f"blocks of {self.chosen} of {self.points} points", self.points - self.chosen
        check = coin_check(part, self._lie, epsilon=self.epsilon, light=light, heavy=self.chosen)
        return Certificate(mechanism=self.kind, guarantee=self.guarantee, checks=(check,)).demand()
