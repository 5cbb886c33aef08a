"""Four published structures for counts of ranges, as they were published, and what breaks them.

They are those of a thesis (Friis 2021): a flat histogram, a tree of counts, and both again in the
local model. Only the first is what it claims. None can release: they draw from a plain seeded
generator and have no guarantee to charge. `sound_tree` is the tree as it should be, for comparison.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import integers
from discreet.ranges.strategies.hierarchical_histogram import tree

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Levels: TypeAlias = list[Floats]
"""The noisy counts of a tree, the root first."""
Build: TypeAlias = Callable[[Sequence[int], int], Levels]
"""A tree over these leaves, drawn from this seed."""
CERTAIN = 1e-6
"""A count is recovered when it is known to this in every one of many releases."""


# ── the central model ─────────────────────────────────────────────────────────────────────────


def published_flat(leaves: Sequence[int], *, epsilon: float, seed: int) -> Floats:
    """Lap(1/epsilon) on every bin: right for one event added or removed, but for its doubles."""
    noise = np.random.default_rng(seed).laplace(0, 1 / epsilon, len(leaves))
    return np.asarray(leaves, dtype=np.float64) + noise


def published_tree(leaves: Sequence[int], *, epsilon: float, seed: int, degree: int = 2) -> Levels:
    """The tree as coded: noise is pushed down to the wrong child, at the wrong scale (M1, M2).

    A node's noise should be added to its children's. The second assignment wrote to the first
    child again, so the first child carries the second one's variable and the parent's noise, and
    all others their own variable alone. The scale takes a logarithm of the number of levels.
    """
    counts = tree_counts(leaves, degree=degree)
    scale = math.log2(len(counts)) / epsilon
    rng = np.random.default_rng(seed)
    noise = rng.laplace(0, scale, 1)
    noisy = [counts[0] + noise]
    for level in counts[1:]:
        own = rng.laplace(0, scale, len(level)).reshape(-1, degree)
        pushed = own.copy()
        pushed[:, 0] = own[:, 1] + noise
        noise = pushed.ravel()
        noisy.append(level + noise)
    return noisy


def sound_tree(leaves: Sequence[int], *, epsilon: float, seed: int, degree: int = 2) -> Levels:
    """The same tree as this house releases it: independent noise, scaled to all levels (F10)."""
    cells = len(tree_counts(leaves, degree=degree)[-1])
    design = RangeDesign(
        domain=integers(0, cells - 1),
        strategy=tree(cells, branching=degree, root=True),
        budget=budget(epsilon=epsilon),
        family="laplace",
    )
    release = design.release(np.asarray(leaves, dtype=np.int64), rng=seeded_rng(seed))
    return [level.astype(np.float64) for level in release.measured[::-1]]


def tree_counts(leaves: Sequence[int], *, degree: int) -> Levels:
    """Exact counts of all nodes, the root first; the number of leaves must be a power."""
    if check.count("degree", degree) < 2:
        raise InvalidArgument(f"degree must be at least 2, got {degree}.")
    levels = [np.asarray(leaves, dtype=np.float64)]
    while len(levels[-1]) > 1:
        if len(levels[-1]) % degree:
            raise InvalidArgument(f"leaves must be a power of {degree} in number.")
        levels.append(levels[-1].reshape(-1, degree).sum(axis=1))
    return levels[::-1]


def tree_epsilon(levels: int, epsilon: float) -> float:
    """What the published scale gives even to a tree without the other mistake (M2)."""
    return epsilon * levels / math.log2(levels)


def cancel(levels: Levels) -> Floats:
    """Leaves of a binary tree from differences in which the published noise cancels (F22b).

    Parent - first child + second child is twice the second child, exactly, whatever epsilon is. So
    every second child is known, and the first child of each that is known. Only the first leaf of
    all stays in the dark (NaN).
    """
    known = np.full(1, np.nan)
    for parent, child in itertools.pairwise(levels):
        first, second = child[0::2], child[1::2]
        twice = parent - first + second
        found = np.empty(len(child))
        found[1::2] = twice / 2
        found[0::2] = known - twice / 2
        known = found
    return known


def recovered(build: Build, leaves: Sequence[int], *, releases: int = 20, seed: int = 0) -> int:
    """How many leaves the attack tells exactly in every one of several releases.

    In every one: noise on integers hits the truth by chance now and then, which tells nothing.
    """
    truth = np.asarray(leaves, dtype=np.float64)
    sure = np.ones(len(truth), dtype=bool)
    for number in range(releases):
        found = cancel(build(leaves, seed + number))
        sure &= np.abs(found - truth) < CERTAIN
    return int(sure.sum())


def averaged(value: int, *, epsilon: float, repeats: int, seed: int) -> float:
    """The mean of many answers to one question, each with fresh noise (F22a)."""
    answers = value + np.random.default_rng(seed).laplace(0, 1 / epsilon, repeats)
    return float(answers.mean())


def reconstruct(bits: Sequence[int], *, epsilon: float, seed: int) -> float:
    """The share of secret bits found from all ranges, each answered with fresh noise (F22e).

    Least squares over all ranges; for many ranges of n bins it needs n equations only.
    """
    x = np.asarray(bits, dtype=np.float64)
    size = len(x)
    ends = [(a, b) for a in range(size) for b in range(a, size)]
    rows = np.zeros((len(ends), size))
    for row, (a, b) in zip(rows, ends, strict=True):
        row[a : b + 1] = 1
    answers = rows @ x + np.random.default_rng(seed).laplace(0, 1 / epsilon, len(ends))
    found = np.linalg.solve(rows.T @ rows, rows.T @ answers)
    return float(np.mean((found > 0.5) == (x > 0.5)))


# ── the local model ───────────────────────────────────────────────────────────────────────────


def published_oracle(values: Ints, *, size: int, epsilon: float, seed: int) -> Ints:
    """The oracle called OLH: the truth with probability p, else any value, the truth included.

    There is no hash in it, and p is that of randomized response among *other* values (M3).
    """
    rng = np.random.default_rng(seed)
    honest = rng.random(len(values)) < _truth(size, epsilon)
    return np.where(honest, values, rng.integers(0, size, len(values)))


def oracle_distribution(value: int, *, size: int, epsilon: float) -> dict[int, float]:
    """The exact law of one report."""
    p = _truth(size, epsilon)
    return {k: (1 - p) / size + (p if k == value else 0.0) for k in range(size)}


def oracle_epsilon(size: int, epsilon: float) -> float:
    """What it gives: log(1 + size e^epsilon / (size - 1)), never below log 2 (M3)."""
    return math.log1p(size / (size - 1) * math.exp(epsilon))


def oracle_estimates(reports: Ints, *, size: int, epsilon: float) -> Floats:
    """How often each value occurs, by the published (and unbiased) estimator (F13)."""
    p = _truth(size, epsilon)
    found = np.bincount(reports, minlength=size).astype(np.float64)
    return (found - (1 - p) * len(reports) / size) / p


def published_local_tree(
    values: Ints, *, size: int, epsilon: float, seed: int, degree: int = 2
) -> Ints:
    """Each client draws a level and reports its node there by the same oracle: (level, node)."""
    depth = len(tree_counts([0] * size, degree=degree))
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, depth, len(values))
    reports = np.empty(len(values), dtype=np.int64)
    for level in range(depth):
        at = levels == level
        nodes = values[at] // degree ** (depth - 1 - level)
        reports[at] = published_oracle(
            nodes, size=degree**level, epsilon=epsilon, seed=int(rng.integers(1 << 62))
        )
    return np.stack((levels, reports), axis=1)


def local_tree_distribution(
    value: int, *, size: int, epsilon: float, degree: int = 2
) -> dict[tuple[int, int], float]:
    """The exact law of one client's message."""
    depth = len(tree_counts([0] * size, degree=degree))
    return {
        (level, node): mass / depth
        for level in range(depth)
        for node, mass in oracle_distribution(
            value // degree ** (depth - 1 - level), size=degree**level, epsilon=epsilon
        ).items()
    }


def _truth(size: int, epsilon: float) -> float:
    return math.exp(epsilon) / (math.exp(epsilon) + size - 1)
