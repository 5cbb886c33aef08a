"""The best weighted sums for a workload and Laplace noise: HDMM's OPT_0, on blocks (F35)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from discreet.core.errors import Unsupported
from discreet.noise.law import Floats, floats
from discreet.queries.ranges.sums import Sums, covered
from discreet.queries.ranges.toeplitz import on_grid
from discreet.queries.ranges.workload import Workload

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
) -> Sums:
    """A good matrix for Laplace noise: the cells, and some sums over blocks, all weighted.

    Heuristic: no theorem about the optimum; the variance of what is returned is exact.
    Source: McKenna, Miklau, Hay, Machanavajjhala 2018; F35; docs/theory/ranges.md.
    Needs: at most 131,072 cells.
    """
    if size > LARGEST:
        raise Unsupported(f"weighted sums are optimised for at most {LARGEST} cells.")
    wide = _block(size) if block is None else block
    sizes = tuple(_FAN**j for j in range(wide.bit_length()) if _FAN**j <= wide)
    blocks = -(-size // wide)
    few = max(1, blocks // 16) if wide == 1 else min(_MOST_ROWS, blocks)
    gram, energies = covered(workload, size, (*sizes, wide))
    problem = Problem(
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
class Problem:
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


def _made(problem: Problem, size: int, x: Floats) -> Sums:
    t, theta, d = problem.split(x)
    weights = on_grid(t[:, None] / d, bits=_BITS)
    return Sums(
        size=size,
        sizes=problem.sizes,
        block=problem.block,
        weights=np.maximum(weights, [[1]] + [[0]] * (len(t) - 1)),
        matrix=on_grid(theta / np.sqrt(problem.block) / d, bits=_BITS),
    )
