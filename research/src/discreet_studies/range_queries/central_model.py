"""Flat and tree in the central model: errors in closed form, as published and corrected.

All errors are those of the noise and do not depend on the data. Noise is the continuous Laplace
noise of the published code; the house's own structures draw discrete noise, whose variance is
smaller (by 8% at epsilon 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.noise.distribution import Floats, Ints
from discreet.ranges.strategies import hierarchical_histogram as blocks
from discreet_studies.range_queries.tree_cover import cover, height, starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Answers whose error is ``weights @ noise`` with independent noise of mean zero."""

    weights: Floats
    variance: Floats
    """Of the noise, column by column."""
    excess: Floats
    """Kurtosis minus three: 3 for Laplace noise."""

    @property
    def variances(self) -> Floats:
        """The variance of each answer."""
        found: Floats = np.square(self.weights) @ self.variance
        return found

    def spread(self) -> float:
        """The standard deviation, over structures, of the mean squared error of the answers.

        With Q = z' S z and independent z of variances v and excess k:
        Var Q = 2 tr(S V S V) + sum k v^2 S_ii^2.
        """
        ranges = len(self.weights)
        together = np.square((self.weights * self.variance) @ self.weights.T).sum() / ranges**2
        own = np.square(self.weights).sum(axis=0) * self.variance / ranges
        return math.sqrt(2 * together + (self.excess * np.square(own)).sum())


def laplace(weights: Floats, *, scale: float) -> Linear:
    """Continuous Laplace noise of one scale in every column, as in the published code."""
    columns = weights.shape[1]
    return Linear(
        weights=weights, variance=np.full(columns, 2 * scale**2), excess=np.full(columns, 3.0)
    )


def simulate(model: Linear, *, structures: int, rng: np.random.Generator) -> Floats:
    """Errors of every answer (columns) in independent structures (rows) with Laplace noise."""
    noise = rng.laplace(size=(structures, model.weights.shape[1])) * np.sqrt(model.variance / 2)
    errors: Floats = noise @ model.weights.T
    return errors


def flat(first: Ints, *, length: int, domain: int, epsilon: float) -> Linear:
    """Laplace noise in each bin  # F8."""
    place = np.arange(domain)
    inside = (first[:, None] <= place) & (place < first[:, None] + length)
    return laplace(inside.astype(np.float64), scale=1 / epsilon)


def tree(
    first: Ints, *, length: int, domain: int, degree: int, epsilon: float, root: bool = True
) -> Linear:
    """A tree with independent noise on each node, answers by the fewest nodes  # F10."""
    h = height(domain, degree=degree)
    top = h if root else h - 1
    parts = [
        runs.incidence(degree ** (h - runs.height))
        for runs in cover(first, length=length, degree=degree, top=top)
    ]
    return laplace(np.hstack(parts), scale=(top + 1) / epsilon)


def tree_as_coded(first: Ints, *, length: int, domain: int, degree: int, epsilon: float) -> Linear:
    """The tree of the published code: noise pushed down wrongly, and too little of it  # M1, M2.

    The first child of a node carries the noise of the node plus the variable of the second child;
    every other child carries its own variable alone. For third and later children that is a choice
    between two readings of the code, made by the errors that are printed for degrees 3 and 4.
    The scale is log2(h + 1) / epsilon where h + 1 is needed.
    """
    h = height(domain, degree=degree)
    runs = cover(first, length=length, degree=degree, top=h)
    parts = []
    down = np.zeros((len(first), degree**h))
    for level in range(h):
        own = down + runs[level].incidence(degree ** (h - level))
        by_child = own.reshape(len(first), -1, degree).copy()
        down = by_child[:, :, 0].copy()
        by_child[:, :, 1] += by_child[:, :, 0]
        by_child[:, :, 0] = 0
        parts.append(by_child.reshape(len(first), -1))
    parts.append(down + runs[h].incidence(1))
    return laplace(np.hstack(parts), scale=math.log2(h + 1) / epsilon)


def nodes(*, length: int, domain: int, degree: int, root: bool = True) -> Ints:
    """How many nodes answer each range of a length."""
    top = height(domain, degree=degree) - (0 if root else 1)
    found = cover(starts(domain, length=length), length=length, degree=degree, top=top)
    total: Ints = np.sum([runs.nodes for runs in found], axis=0)
    return total


def plain(*, length: int, domain: int, degree: int, root: bool = True) -> float:
    """RMSE of a tree without inference at epsilon 1, over all ranges of a length  # F10."""
    levels = height(domain, degree=degree) + (1 if root else 0)
    mean = nodes(length=length, domain=domain, degree=degree, root=root).mean()
    return math.sqrt(2 * levels**2 * mean)


def coded(*, length: int, domain: int, degree: int) -> float:
    """RMSE of the published tree at epsilon 1, over all ranges of a length."""
    first = starts(domain, length=length)
    scale = math.log2(height(domain, degree=degree) + 1)
    mean = coded_energy(first, length=length, domain=domain, degree=degree).mean()
    return math.sqrt(2 * scale**2 * mean)


def coded_energy(first: Ints, *, length: int, domain: int, degree: int) -> Ints:
    """The sum of the squared weights of the published tree's noise in each range  # M1.

    A node of the cover hands its weight, 1, on to its parent while it is a first child. Nodes of
    one cover do not overlap, so no variable gets two such weights; but a first child uses the
    variable of the second, and if that has a weight as well the square is 4 and not 1 + 1. It has
    one just if the range goes on behind the first child.
    """
    h = height(domain, degree=degree)
    end = first + length
    total = np.zeros(len(first), dtype=np.int64)
    for runs in cover(first, length=length, degree=degree, top=h):
        for start, stop in ((runs.left, runs.left_end), (runs.right, runs.right_end)):
            for offset in range(int((stop - start).max())):
                node = start + offset
                above = range(1, h - runs.height + 1)
                chain = 1 + np.sum([node % degree**t == 0 for t in above], axis=0, dtype=np.int64)
                goes_on = end > (node + 1) * degree**runs.height
                shared = (node % degree == 0) & goes_on & (runs.height < h)
                total += np.where(node < stop, chain + 2 * shared, 0)
    return total


def inferred(*, length: int, domain: int, degree: int, root: bool = True) -> float:
    """RMSE of a tree with inference at epsilon 1, over all ranges of a length  # F27."""
    return math.sqrt(inferred_by_length([length], domain=domain, degree=degree, root=root)[0])


def inferred_by_length(lengths: Sequence[int], *, domain: int, degree: int, root: bool) -> Floats:
    """Mean variances at epsilon 1 by the house's own structure, with continuous noise."""
    made = blocks.tree(domain, branching=degree, root=root)
    levels = len(made.sizes)
    return made.by_length(np.array(lengths), np.full(levels, 2.0 * levels**2))
