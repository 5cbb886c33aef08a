"""Hierarchical histograms: counts of cells and of larger and larger blocks (F27, F28, F30).

Flat histograms, trees of any branching and of mixed radix are all of this kind: blocks of sizes
``1 = s_0 | s_1 | ... | s_k``, each level with its own share of the budget. The best sizes and
shares for a workload are found here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, Ints, floats
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

# ── Strategies ───────────────────────────────────────────────────────────────────────────────────


_NAMED = 5
"""Levels that a name lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalHistogram:
    """Noisy sums over nested blocks, made consistent by weighted least squares."""

    size: int
    sizes: tuple[int, ...]
    shares: tuple[Fraction, ...]
    total: int | None = None
    """The public number of rows, if it is known (replace-one only)."""

    def __post_init__(self) -> None:
        check.count("size", self.size)
        chain = all(b > a > 0 and b % a == 0 for a, b in pairwise(self.sizes))
        if not self.sizes or self.sizes[0] != 1 or not chain:
            raise InvalidArgument("sizes must start with 1, grow, and each divide the next.")
        checked_shares(self.shares, len(self.sizes))

    @property
    def padded(self) -> int:
        """Cells after filling up the last block with public zeros, which get noise as well."""
        return -(-self.size // self.sizes[-1]) * self.sizes[-1]

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        if self.total is not None and (
            relation is not NeighboringRelation.REPLACE_ONE or contribution.rows != 1
        ):
            raise InvalidArgument(
                "total may be public only under REPLACE_ONE with exactly one row of each unit: "
                "else neighbors differ in it."
            )
        return tuple(
            group_move(contribution, relation, entries=-(-self.size // block), cells=block)
            for block in self.sizes
        )

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        level = cells_within(counts, padded=self.padded)
        levels = [level]
        for a, b in pairwise(self.sizes):
            levels.append(levels[-1].reshape(-1, b // a).sum(axis=1))
        return tuple(levels)

    def estimate(self, noisy: Sequence[Ints] | Sequence[Floats], noise: Floats) -> Floats:
        """Generalized least squares in two passes, O(size)."""
        # Theorem: the result is the best linear unbiased estimate of the cells.
        # Proof: going up, z is the best estimate of a block from what was measured inside it: the
        #   sum of its children's is independent of its own measurement, and the two are averaged
        #   with inverse variances. Going down, what the parent's best estimate adds is shared
        #   equally by the children, whose estimates have equal variances and are independent.
        # Source: Hay, Rastogi, Miklau, Suciu 2010, with weights (F28); docs/theory/ranges.md.
        z = noisy[0].astype(np.float64)
        variance = float(noise[0])
        below: list[tuple[Floats, Floats]] = []
        for j, (a, b) in enumerate(pairwise(self.sizes), start=1):
            children = z.reshape(-1, b // a)
            sums = children.sum(axis=1)
            spread = b // a * variance
            weight = spread / (noise[j] + spread)
            below.append((children, sums))
            z = weight * noisy[j] + (1 - weight) * sums
            variance = float(noise[j] * weight)
        if self.total is not None:
            z += (self.total - z.sum()) / len(z)
        for children, sums in reversed(below):
            share = (z - sums) / children.shape[1]
            z = (children + share[:, None]).reshape(-1)
        return z[: self.size]

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        found: Floats = np.zeros(np.shape(a))
        for block, weight in zip(self._energy_sizes, self._energy_weights(noise), strict=True):
            found = found + weight * energy(a, b, block)
        return np.maximum(found, 0.0)

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        means = energies(workload, self.size, self._energy_sizes)
        return float(self._energy_weights(noise) @ means)

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        found: Floats = length_energies(self.size, lengths, self._energy_sizes) @ (
            self._energy_weights(noise)
        )
        return found

    def terms(self, a: int, b: int, noise: Floats) -> Terms:
        """Weights of the noise; blocks that the range covers alike share them."""
        # Proof: the weight of a block of level l is `s_l / v_l` times the mean over it of
        #   `C w = sum_j (P_j - P_(j+1)) w / lambda_j + P_k w / lambda_k`. Terms below l average
        #   out. Above, P_j w is 0 or 1 except on the blocks that hold an end of the range, so a
        #   block off these two paths has the weight of the place where it leaves its path.
        rate = self._rates(noise)
        top = len(self.sizes) - 1
        rest = 0.0 if self.total is None else (b - a + 1) / (self.padded * rate[top])
        ends = [(a // block, b // block) for block in self.sizes]
        found: list[list[tuple[float, int]]] = [[] for _ in self.sizes]

        def subtrees(level: int, mean: float, count: int) -> None:
            for lower in range(level + 1):
                copies = count * (self.sizes[level] // self.sizes[lower])
                found[lower].append((self.sizes[lower] / noise[lower] * mean, copies))

        def visit(level: int, node: int, mean: float) -> None:
            """A block that holds an end of the range, where C w has this mean."""
            found[level].append((self.sizes[level] / noise[level] * mean, 1))
            if level == 0:
                return
            cover = self._covered(node, level, a, b)
            fan = self.sizes[level] // self.sizes[level - 1]
            first, last = ends[level - 1]
            paths = {path for path in (first, last) if path // fan == node}
            inside = len(range(max(first + 1, node * fan), min(last, (node + 1) * fan)))
            step = 1 / rate[level - 1]
            subtrees(level - 1, mean + (1 - cover) * step, inside)
            subtrees(level - 1, mean - cover * step, fan - inside - len(paths))
            for path in paths:
                here = self._covered(path, level - 1, a, b)
                visit(level - 1, path, mean + (here - cover) * step)

        inside = max(0, ends[top][1] - ends[top][0] - 1)
        outside = self.padded // self.sizes[top] - inside - len(set(ends[top]))
        subtrees(top, 1 / rate[top] - rest, inside)
        subtrees(top, -rest, outside)
        for path in set(ends[top]):
            visit(top, path, self._covered(path, top, a, b) / rate[top] - rest)
        return tuple(_compressed(level) for level in found)

    def largest_weights(self, noise: Floats) -> Floats:
        # Proof: summed by parts, a mean of `C w` is at most `1 / lambda_l` in size.
        sizes = np.array(self.sizes, dtype=np.float64)
        return sizes / noise / self._rates(noise)

    def precision(self, x: Floats, noise: Floats) -> Floats:
        level = np.zeros(self.padded)
        level[: self.size] = x
        found = level / noise[0]
        for j, (a, b) in enumerate(pairwise(self.sizes), start=1):
            level = level.reshape(-1, b // a).sum(axis=1)
            found += np.repeat(level / noise[j], b)
        return floats(found[: self.size])

    def content(self) -> dict[str, Any]:
        return {
            "kind": "blocks",
            "size": self.size,
            "sizes": list(self.sizes),
            "shares": [str(share) for share in self.shares],
            "total": self.total,
        }

    def describe(self) -> str:
        if self.sizes == (1,):
            return "flat"
        if len(self.sizes) > _NAMED:
            names = f"{'/'.join(map(str, self.sizes[:3]))}/../{self.sizes[-1]}"
        else:
            names = "/".join(map(str, self.sizes))
        equal = len(set(self.shares)) == 1
        return f"blocks {names}, {'equal' if equal else 'weighted'} levels"

    def _covered(self, node: int, level: int, a: int, b: int) -> float:
        """The share of a block that the range covers."""
        block = self.sizes[level]
        return (min(b, (node + 1) * block - 1) - max(a, node * block) + 1) / block

    def _rates(self, noise: Floats) -> Floats:
        """``lambda_j``: the sum of ``s_i / v_i`` over the levels ``i <= j``."""
        return np.cumsum(np.array(self.sizes, dtype=np.float64) / noise)

    @property
    def _energy_sizes(self) -> tuple[int, ...]:
        return self.sizes if self.total is None else (*self.sizes, self.padded)

    def _energy_weights(self, noise: Floats) -> Floats:
        """The variance of a range is the sum of these times its energies (F27)."""
        # Theorem: `Var(w) = sum_j (E_j - E_(j+1)) / lambda_j + E_k / lambda_k`; if the total is
        #   known, `E_k - r^2/padded` takes the place of the last `E_k`.
        # Proof: `A^T Sigma^-1 A = sum_j (s_j / v_j) P_j` with nested projections P_j, so it is
        #   `sum_j lambda_j (P_j - P_(j+1)) + lambda_k P_k` and its inverse has the reciprocals.
        # Source: docs/theory/ranges.md.
        inverse = 1 / self._rates(noise)
        if self.total is not None:
            inverse = np.append(inverse, 0.0)
        return np.diff(inverse, prepend=0.0)


def flat(size: int, *, total: int | None = None) -> HierarchicalHistogram:
    """A histogram alone."""
    return HierarchicalHistogram(size=size, sizes=(1,), shares=(Fraction(1),), total=total)


def tree(
    size: int, *, branching: int, root: bool = False, total: int | None = None
) -> HierarchicalHistogram:
    """A tree of one branching with equal shares on all levels; by default without the root."""
    check.count("branching", branching, minimum=2)
    sizes = [1]
    while sizes[-1] * branching < size or (root and sizes[-1] < size):
        sizes.append(sizes[-1] * branching)
    shares = (Fraction(1, len(sizes)),) * len(sizes)
    return HierarchicalHistogram(size=size, sizes=tuple(sizes), shares=shares, total=total)


def _compressed(level: Sequence[tuple[float, int]]) -> tuple[Floats, Floats]:
    kept = [(weight, count) for weight, count in level if count]
    weights, counts = np.array(kept, dtype=np.float64).reshape(-1, 2).T
    return weights, counts


# ── Optimal sizes and shares ─────────────────────────────────────────────────────────────────────


_STEPS = 60
_LAST_STEPS = 400
_LEAST = 1e-7
_MANY_CELLS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCandidates:
    """Block sizes that may be measured, with their mean energies and sensitivities."""

    sizes: Ints
    energies: Floats
    tops: Floats
    """Mean energies of a known total if the largest block is this one; else zero."""
    l1: Floats
    l2_squared: Floats

    def cost(self, chain: Ints, shares: Floats, price: MeasurementCost) -> tuple[Floats, Floats]:
        """Mean variance of chains (one in each row), and minus its slope in each share.

        With ``d_j`` the drop of energy above level j and ``lambda_j`` the summed rates up to it,
        the mean is the sum of ``d_j / lambda_j`` and its slope in the rate of level i is
        ``-s_i`` times the sum over ``j >= i`` of ``d_j / lambda_j^2``.
        """
        held = self.energies[chain]
        drop = held - np.concatenate([held[:, 1:], self.tops[chain[:, -1:]]], axis=1)
        sizes, l1, l2 = self.sizes[chain], self.l1[chain], self.l2_squared[chain]
        rate = np.cumsum(price.precision(shares, l1, l2) * sizes, axis=1)
        pull = np.cumsum((drop / rate / rate)[:, ::-1], axis=1)[:, ::-1]
        return (drop / rate).sum(axis=1), pull * sizes * price.slope(shares, l1, l2)


def optimal_blocks(
    size: int,
    *,
    workload: Workload,
    price: MeasurementCost,
    relation: NeighboringRelation,
    contribution: Contribution,
    total: int | None = None,
) -> HierarchicalHistogram:
    """The nested blocks of least mean variance over a workload, for a budget.

    Heuristic: no theorem about the optimum; the variance of what is returned is exact. Laplace
        noise: all sets of at most four (five on large domains) powers of two that hold 1, each with
        the shares at which all slopes agree. Gaussian noise: the problem is convex, all powers of
        two are taken and levels that get nothing are dropped.
    """
    # Source: F30; docs/theory/ranges.md.
    powers = 1 << np.arange(max(1, size - 1).bit_length() + 1)
    fits = powers if size > 1 else powers[:1]
    padded = [-(-size // block) * block for block in fits.tolist()]
    moves = [
        group_move(contribution, relation, entries=n // block, cells=block)
        for n, block in zip(padded, fits.tolist(), strict=True)
    ]
    known = energies(workload, size, padded) if total is not None else np.zeros(len(padded))
    found = BlockCandidates(
        sizes=fits,
        energies=energies(workload, size, fits.tolist()),
        tops=known,
        l1=np.array([float(move.l1) for move in moves]),
        l2_squared=np.array([float(move.l2_squared) for move in moves]),
    )
    chain, shares = _searched(found, price) if price.family == "laplace" else _all(found, price)
    sizes = tuple(int(block) for block in fits[chain])
    return HierarchicalHistogram(size=size, sizes=sizes, shares=rounded_shares(shares), total=total)


def _searched(found: BlockCandidates, price: MeasurementCost) -> tuple[Ints, Floats]:
    """The best small set of levels."""
    many = len(found.sizes)
    most = 4 if found.sizes[-1] <= _MANY_CELLS else 5
    best: tuple[float, Ints, Floats] | None = None
    for levels in range(1, min(most, many) + 1):
        chains = np.array([(0, *more) for more in combinations(range(1, many), levels - 1)])
        shares, costs = _balanced(found, chains, price, steps=_STEPS)
        leader = int(np.argmin(costs))
        if best is None or costs[leader] < best[0] * (1 - 1e-9):
            best = float(costs[leader]), chains[leader], shares[leader]
    assert best is not None  # noqa: S101 - there is always the flat histogram
    shares, _ = _balanced(found, best[1][None], price, steps=_LAST_STEPS, start=best[2][None])
    return best[1], shares[0]


def _all(found: BlockCandidates, price: MeasurementCost) -> tuple[Ints, Floats]:
    """All levels at once; those that get (almost) nothing are left out."""
    chain = np.arange(len(found.sizes))
    shares, _ = _balanced(found, chain[None], price, steps=_LAST_STEPS)
    kept = (shares[0] > 1e-3) | (chain == 0)
    shares, _ = _balanced(found, chain[kept][None], price, steps=_LAST_STEPS)
    return chain[kept], shares[0]


def _balanced(
    found: BlockCandidates,
    chains: Ints,
    price: MeasurementCost,
    *,
    steps: int,
    start: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Shares at which every level's slope is the same, and the costs there.

    A level whose variance goes with ``share^-2`` (Laplace) has its best share in proportion to the
    cube root of slope times ``share^3``, and to the square root of slope times ``share^2`` for
    Gaussian noise: repeat until it stays.
    """
    power = 1 / 3 if price.family == "laplace" else 1 / 2
    shares = np.full(chains.shape, 1 / chains.shape[1]) if start is None else start
    for _ in range(steps):
        _, pull = found.cost(chains, shares, price)
        shares = shares * np.maximum(pull, 1e-300) ** power
        shares /= shares.sum(axis=1, keepdims=True)
        shares = np.maximum(shares, _LEAST)  # a level that fades must not make others vanish
    return shares, found.cost(chains, shares, price)[0]
