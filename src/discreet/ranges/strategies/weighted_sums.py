"""Cells, blocks of cells, and weighted sums of blocks: strategies for large domains (F35).

A strategy measures the cells, perhaps blocks of some sizes, and a few rows that weigh larger
blocks. Measurements inside a larger block have the weights of that block: where the rows tell much,
cells may get less. With blocks of one cell this is any matrix that holds a weighted identity. The
best weights for a workload and Laplace noise are HDMM's OPT_0, on blocks.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.budget import BudgetChange
from discreet.ranges.strategies.base import LARGEST_COUNT, Contribution, Terms, matrix_move
from discreet.ranges.strategies.square_root import on_grid
from discreet.ranges.workload import Workload, block_energies, block_gram, energy

# ── Strategies ───────────────────────────────────────────────────────────────────────────────────


MOST_BLOCKS = 1 << 10
_MOST = 1 << 21


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedSums:
    """Noisy weighted cells, weighted blocks, and ``matrix`` times the sums over larger blocks."""

    size: int
    sizes: tuple[int, ...]
    """Cells of what is measured one by one: 1, and perhaps blocks."""
    block: int
    """Cells of a larger block."""
    weights: Ints
    """One row for each of ``sizes``, one column for each larger block."""
    matrix: Ints
    """Rows that weigh the larger blocks."""

    def __post_init__(self) -> None:
        check.count("size", self.size)
        if self.sizes[:1] != (1,) or any(b <= a or b % a for a, b in pairwise(self.sizes)):
            raise InvalidArgument("sizes must start with 1, grow, and each divide the next.")
        if check.count("block", self.block) % self.sizes[-1]:
            raise InvalidArgument("block must be a multiple of the last size.")
        blocks = -(-self.size // self.block)
        if self.weights.shape != (len(self.sizes), blocks) or self.matrix.shape[1:] != (blocks,):
            raise InvalidArgument(f"weights and matrix must have a column for each of {blocks}.")
        if blocks > MOST_BLOCKS or len(self.matrix) > MOST_BLOCKS:
            raise InvalidArgument(f"there must be at most {MOST_BLOCKS} blocks and rows.")
        if min(self.weights.min(), self.matrix.min(initial=0)) < 0 or self.weights[0].min() < 1:
            raise InvalidArgument("weights must not be negative, and those of cells positive.")
        if max(self.weights.max(), self.matrix.max(initial=0)) > _MOST:
            raise InvalidArgument("weights must have at most 21 bits.")
        self.weights.setflags(write=False)
        self.matrix.setflags(write=False)

    @property
    def blocks(self) -> int:
        """How many larger blocks there are."""
        return int(self.weights.shape[1])

    @property
    def padded(self) -> int:
        """Cells after filling up the last block with public zeros, which get noise as well."""
        return self.blocks * self.block

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """There is one group."""
        return (Fraction(1),)

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far the measurements move."""
        # Theorem: with `l` and `q` the sums of a block's weights and of their squares, and `c`
        #   its column of the matrix, one row moves them by at most `l + |c|_1` in L1 and
        #   `q + |c|^2` in squared L2; one row replaced by `l + l' + |c - c'|_1` and
        #   `q + q' + |c - c'|^2`, or by `2l` and `2q` within a block.
        # Proof: a row counts in one cell, in one block of each size, and in its larger block's
        #   column. Two cells share none of the former if they are as far apart as they can be.
        #   All are sums of integers, none of them rounded. Several rows: `matrix_move`.
        # Source: F4; docs/theory/ranges.md.
        low, squares = self.weights.sum(axis=0), np.square(self.weights).sum(axis=0)
        l1 = int((low + self.matrix.sum(axis=0)).max())
        l2 = int((squares + np.square(self.matrix).sum(axis=0)).max())
        if central_relation(relation) is NeighboringRelation.REPLACE_ONE:
            for c in range(self.blocks):
                apart = self.matrix - self.matrix[:, c : c + 1]
                far = low + low[c] + np.abs(apart).sum(axis=0)
                square = squares + squares[c] + np.square(apart).sum(axis=0)
                # A unit without a row is possible when units may have several.
                l1, l2 = max(l1, int(far.max())), max(l2, int(square.max()))
        return (matrix_move(contribution, l1=l1, l2_squared=l2),)

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        heaviest = max(
            size * int(row.max()) for size, row in zip(self.sizes, self.weights, strict=True)
        )
        row = max(heaviest, self.block * int(self.matrix.sum(axis=1).max(initial=0)))
        cells = np.zeros(self.padded, dtype=np.int64)
        # Cut cell by cell, so that no pair of data sets moves apart and no sum passes 61 bits.
        np.minimum(counts, min(LARGEST_COUNT, (1 << 61) // row), out=cells[: len(counts)])
        parts = [
            (weights[:, None] * self._summed(cells, size)).ravel()
            for size, weights in zip(self.sizes, self.weights, strict=True)
        ]
        parts.append(self.matrix @ self._summed(cells, self.block)[:, 0])
        return (np.concatenate(parts),)

    def estimate(self, noisy: Sequence[Ints], noise: Floats) -> Floats:  # noqa: ARG002 - one group
        """Generalized least squares in O(size): ``C A^T y``, C as in `_solve`."""
        y = noisy[0].astype(np.float64)
        found = np.zeros((self.blocks, self.block))
        place = 0
        for size, weights in zip(self.sizes, self.weights, strict=True):
            some = y[place : place + self.padded // size].reshape(self.blocks, -1)
            found += np.repeat(weights[:, None] * some, size, axis=1)
            place += self.padded // size
        found += (self.matrix.T @ y[place:])[:, None]
        return self._solve(found)[: self.size]

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        """The energy within the two blocks at the ends, and a quadratic form of the blocks."""
        # Theorem: `Var(w) = v sum_c sum_j (E_j - E_(j+1)) / lambda_j + v u^T K u`, over the larger
        #   blocks c and sizes j, with u the cells of the range in each block, `lambda_j` the sum
        #   of `s_i a_i^2` over sizes up to j, and `K = (diag(lambda) + s B^T B)^-1 / s`.
        # Proof: see `_solve`. Energies differ only in the blocks that hold an end. Between the ends
        #   of blocks, u is linear in each end of the range.
        # Source: docs/theory/ranges.md.
        starts, stops = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        first, last = starts // self.block, stops // self.block
        apart = first < last
        found = self._within(starts, np.where(apart, (first + 1) * self.block - 1, stops), first)
        right = self._within(np.minimum(last * self.block, stops), stops, last)
        found = found + np.where(apart, right, 0.0)
        p, q = self._place(starts), self._place(stops + 1)
        found += self._between(p, p) + self._between(q, q) - 2 * self._between(p, q)
        return floats(np.maximum(found, 0.0) * noise[0])

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        gram, energies = covered(workload, self.size, (*self.sizes, self.block))
        inside = float((self._energy_weights * energies).sum())
        return float(((self._form * gram).sum() + inside) * noise[0])

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        """Over all starts, one by one."""
        means = [
            float(self.variance(starts, starts + r - 1, noise).mean())
            for r in lengths
            for starts in [np.arange(self.size - r + 1)]
        ]
        return np.array(means)

    def terms(self, a: int, b: int, noise: Floats) -> Terms:  # noqa: ARG002 - one group
        """Weights of the noise: ``A C w``; constant in blocks that hold no end of the range."""
        w = np.zeros(self.padded)
        w[a : b + 1] = 1.0
        solved = self._solve(w).reshape(self.blocks, self.block)
        ends = np.zeros(self.blocks, dtype=bool)
        ends[[a // self.block, b // self.block]] = True
        found: list[tuple[Floats, Floats]] = []
        for size, weights in zip(self.sizes, self.weights, strict=True):
            same = size * weights[~ends] * solved[~ends, 0]
            found.append((same, np.full(len(same), self.block // size, dtype=np.float64)))
            each = weights[ends, None] * self._summed(solved, size)[ends]
            found.append((each.ravel(), np.ones(each.size)))
        rows = self.matrix @ self._summed(solved, self.block)[:, 0]
        found.append((rows, np.ones(len(rows))))
        return ((np.concatenate([x for x, _ in found]), np.concatenate([n for _, n in found])),)

    def largest_weights(self, noise: Floats) -> Floats:  # noqa: ARG002 - one group
        """The sum of two bounds for each row."""
        # Proof: summed by parts, what the energies add to a mean of `C w` over a block of size j is
        #   at most `1 / lambda_j` in size; the rest is linear between the ends of blocks.
        sums = np.zeros((self.blocks, self.blocks + 1))
        np.cumsum(self.block * self._form, axis=1, out=sums[:, 1:])
        here = np.ptp(sums, axis=1)
        singly = [
            size * weights * (1 / rate + here)
            for size, weights, rate in zip(self.sizes, self.weights, self._rates, strict=True)
        ]
        rows = self.block * np.ptp(self.matrix @ sums, axis=1)
        return np.array([max(float(np.max(singly)), float(rows.max(initial=0)))])

    def precision(self, x: Floats, noise: Floats) -> Floats:
        cells = np.zeros(self.padded)
        cells[: self.size] = x
        found = np.zeros((self.blocks, self.block))
        for size, weights in zip(self.sizes, self.weights, strict=True):
            squares = np.square(weights.astype(np.float64))[:, None]
            found += np.repeat(squares * self._summed(cells, size), size, axis=1)
        found += self.matrix.T @ (self.matrix @ self._summed(cells, self.block))
        return floats(found.ravel()[: self.size] / noise[0])

    def content(self) -> dict[str, Any]:
        return {
            "kind": "sums",
            "size": self.size,
            "sizes": list(self.sizes),
            "block": self.block,
            "weights": _packed(self.weights),
            "matrix": _packed(self.matrix),
        }

    def describe(self) -> str:
        each = "cells" if len(self.sizes) == 1 else f"blocks {'/'.join(map(str, self.sizes))}"
        of = "" if self.block == 1 else f" of blocks of {self.block}"
        return f"{each} and {len(self.matrix)} weighted sums{of}"

    def _summed(self, x: Any, size: int) -> Any:
        """Sums over blocks of a size, one row for each larger block."""
        return x.reshape(self.blocks, self.block // size, size).sum(axis=2)

    def _solve(self, z: Floats) -> Floats:
        """``C z`` with ``C = (A^T A)^-1``."""
        # Theorem: `C = sum_j (P_j - P_(j+1)) / lambda_j + R^T K R`, with P_j the means over blocks
        #   of size j (the last over larger blocks) and R the sums over larger blocks.
        # Proof: `A^T A` is `sum_j s_j a_j^2 P_j + R^T B^T B R`, with a_j constant on larger
        #   blocks. Within these, as for nested blocks, the differences of the P_j are projections
        #   on which it is `lambda_j`. It takes `R^T c` to `R^T (lambda + s B^T B) c`, because
        #   `R R^T = s`; and the last projection of z is `R^T R z / s`.
        means = z.reshape(self.blocks, self.block)
        top = means.sum(axis=1)
        found = np.repeat((self._form @ top)[:, None], self.block, axis=1)
        for size, above, rate in zip(
            self.sizes, (*self.sizes[1:], self.block), self._rates, strict=True
        ):
            fine = np.repeat(self._summed(means, size) / size, size, axis=1)
            coarse = np.repeat(self._summed(means, above) / above, above, axis=1)
            found += (fine - coarse) / rate[:, None]
        return floats(found.ravel())

    @cached_property
    def _rates(self) -> Floats:
        """``lambda_j`` of each larger block."""
        sizes = np.array(self.sizes, dtype=np.float64)[:, None]
        return floats(np.cumsum(sizes * np.square(self.weights.astype(np.float64)), axis=0))

    @cached_property
    def _form(self) -> Floats:
        """K: the inverse on sums over larger blocks."""
        rows = self.matrix.astype(np.float64)
        whole = np.diag(self._rates[-1]) + self.block * (rows.T @ rows)
        return floats(scipy.linalg.inv(whole) / self.block)

    @cached_property
    def _energy_weights(self) -> Floats:
        """Factors of the energies of ``sizes`` and of the larger blocks, block by block."""
        falls = np.concatenate([1 / self._rates, np.zeros((1, self.blocks))])
        return np.diff(falls, axis=0, prepend=0.0)

    @cached_property
    def _table(self) -> Floats:
        """The quadratic form of prefixes that end with whole blocks."""
        table = np.zeros((self.blocks + 1, self.blocks + 1))
        table[1:, 1:] = self.block**2 * self._form.cumsum(axis=0).cumsum(axis=1)
        return table

    def _within(self, a: Ints, b: Ints, block: Ints) -> Floats:
        """What the energies of a range within one larger block add to its variance."""
        found: Floats = np.zeros(np.shape(a))
        chain = (*self.sizes, self.block)
        for size, factor in zip(chain, self._energy_weights, strict=True):
            found = found + factor[block] * energy(a, b, size)
        return found

    def _place(self, points: Ints) -> tuple[Ints, Floats]:
        """The block of a point, and how much of it lies before."""
        block = np.minimum(points // self.block, self.blocks - 1)
        return block, points / self.block - block

    def _between(self, p: tuple[Ints, Floats], q: tuple[Ints, Floats]) -> Floats:
        (i, x), (j, y) = p, q
        table = self._table
        low = (1 - y) * table[i, j] + y * table[i, j + 1]
        high = (1 - y) * table[i + 1, j] + y * table[i + 1, j + 1]
        return floats((1 - x) * low + x * high)


@lru_cache(maxsize=4)
def covered(workload: Workload, size: int, chain: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Mean products of the cells in blocks of the last size, and mean energies in each of them."""
    *sizes, block = chain
    gram = block_gram(workload, size, block)
    energies = [
        np.add.reduceat(fine, np.arange(0, len(fine), block // level))
        for level in sizes
        for fine in [block_energies(workload, size, level)]
    ]
    found = np.array([*energies, np.diag(gram) / block])
    for shared in (gram, found):
        shared.setflags(write=False)
    return gram, found


def read(content: dict[str, Any]) -> WeightedSums:
    """The inverse of ``content``."""
    sizes, block = tuple(content["sizes"]), content["block"]
    columns = -(-content["size"] // block)
    return WeightedSums(
        size=content["size"],
        sizes=sizes,
        block=block,
        weights=_unpacked(content["weights"], columns),
        matrix=_unpacked(content["matrix"], columns),
    )


def _packed(matrix: Ints) -> str:
    return base64.b64encode(zlib.compress(matrix.astype("<i4").tobytes())).decode("ascii")


def _unpacked(text: str, columns: int) -> Ints:
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4")
    return raw.reshape(-1, columns).astype(np.int64)


# ── Optimal weights ──────────────────────────────────────────────────────────────────────────────


LARGEST = 1 << 17
_BITS = 16
_FEW_CELLS = 256
"""Up to here rows weigh single cells."""
_MOST_BLOCKS = 128
_FAN = 16
_MOST_ROWS = 32
_STARTS = 3
_ROUNDS = 1000
_OWN, _ANY = 0.5, 0.2
"""At the start a row weighs its own part of the domain by so much, and all by up to that."""


def optimal_sums(
    size: int, *, workload: Workload, rows: int | None = None, block: int | None = None
) -> WeightedSums:
    """A good matrix for Laplace noise: the cells, and some sums over blocks, all weighted.

    Heuristic: no theorem about the optimum; the variance of what is returned is exact.
    """
    # Source: McKenna, Miklau, Hay, Machanavajjhala 2018; F35; docs/theory/ranges.md.
    # Needs: at most 131,072 cells.
    if size > LARGEST:
        raise Unsupported(f"weighted sums are optimized for at most {LARGEST} cells.")
    wide = _block(size) if block is None else block
    sizes = tuple(_FAN**j for j in range(wide.bit_length()) if _FAN**j <= wide)
    blocks = -(-size // wide)
    few = max(1, blocks // 16) if wide == 1 else min(_MOST_ROWS, blocks)
    gram, energies = covered(workload, size, (*sizes, wide))
    problem = WeightProblem(
        gram=gram / wide,
        drops=-np.diff(energies, axis=0),
        sizes=sizes,
        block=wide,
        rows=few if rows is None else rows,
    )
    return _made(problem, size, problem.solved(_STARTS if wide == 1 else 1))


def _block(size: int) -> int:
    """The smallest power of two that leaves few blocks."""
    if size <= _FEW_CELLS:
        return 1
    return 1 << (-(-size // _MOST_BLOCKS) - 1).bit_length()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightProblem:
    """Mean variance as a function of the weights, for noise of variance one."""

    gram: Floats
    """Mean products of the sums over larger blocks, divided by their size."""
    drops: Floats
    """Mean energies that each of ``sizes`` holds beyond the next, in each larger block."""
    sizes: tuple[int, ...]
    block: int
    rows: int

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights of ``sizes`` (the first is one), the rows, and what each column sums to."""
        more = len(self.sizes) - 1
        t = np.append(1.0, x[:more])
        theta = x[more:].reshape(self.rows, -1)
        return t, theta, t.sum() + theta.sum(axis=0) / np.sqrt(self.block)

    def cost(self, x: Floats) -> tuple[float, Floats]:
        """The mean variance after all columns are scaled to a sum of one, and its gradient.

        With D = diag(column sums), ``tau_j = sum_(i<=j) s_i t_i^2`` and T the rows times the root
        of the block size, it is ``sum_c d_c^2 sum_j drop_jc / tau_j + tr(D G D M)``,
        ``M = (tau + T^T T)^-1 = (1 - T^T Y) / tau`` with ``Y = T M = (tau + T T^T)^-1 T``.
        """
        t, theta, d = self.split(x)
        tau = np.cumsum(np.array(self.sizes) * t * t)
        y = scipy.linalg.solve(tau[-1] * np.eye(self.rows) + theta @ theta.T, theta, assume_a="pos")
        scaled = self.gram * d[:, None]  # D G
        left = (y @ scaled) * d  # Y D G D
        held = (self.drops / tau[:, None]).sum(axis=0)
        own = np.diag(self.gram) * d
        rest = float((own * d).sum() - (left * theta).sum()) / tau[-1]  # tr(D G D M)
        value = float((held * d * d).sum()) + rest
        inner = (left - (left @ theta.T) @ y) / tau[-1]  # Y D G D M
        column = held * d + (own - ((theta @ scaled) * y).sum(axis=0)) / tau[-1]
        gradient = -2 * inner + 2 * column / np.sqrt(self.block)
        if len(t) == 1:
            return value, floats(gradient.ravel())
        pull = (self.drops * d * d).sum(axis=1) / tau / tau
        pull[-1] += (rest - float((left * y).sum())) / tau[-1]  # tr(D G D M^2)
        above = np.cumsum(pull[::-1])[::-1]
        slopes = 2 * column.sum() - 2 * np.array(self.sizes) * t * above
        return value, np.concatenate([slopes[1:], gradient.ravel()])

    def solved(self, starts: int) -> Floats:
        """Weights of small cost, from several starts."""
        best = min((self._descended(seed) for seed in range(starts)), key=lambda one: one[0])
        return best[1]

    def _descended(self, seed: int) -> tuple[float, Floats]:
        # Public randomness: it decides where the search starts, nothing else.
        source = np.random.default_rng(seed)
        blocks = len(self.gram)
        own = np.arange(blocks) * self.rows // blocks == np.arange(self.rows)[:, None]
        rows = np.sqrt(self.block) * (_OWN * own + source.uniform(0, _ANY, own.shape))
        start = np.concatenate([np.ones(len(self.sizes) - 1), rows.ravel()])
        found = scipy.optimize.minimize(
            self.cost,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS},
        )
        return float(found.fun), floats(found.x)


def _made(problem: WeightProblem, size: int, x: Floats) -> WeightedSums:
    t, theta, d = problem.split(x)
    weights = on_grid(t[:, None] / d, bits=_BITS)
    return WeightedSums(
        size=size,
        sizes=problem.sizes,
        block=problem.block,
        weights=np.maximum(weights, [[1]] + [[0]] * (len(t) - 1)),
        matrix=on_grid(theta / np.sqrt(problem.block) / d, bits=_BITS),
    )
