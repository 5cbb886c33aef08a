"""Strategies given by a matrix of integers: optimal for a workload, on small domains (F34).

An optimizer may stop anywhere: its matrix is rounded to a public grid, the sensitivity is computed
from the integers, and the estimate is least squares with the same integers. So neither rounding
nor a failure to converge can touch the guarantee or the stated error.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are slow to import: they are when they are needed

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.budget import BudgetChange
from discreet.ranges.strategies import square_root as toeplitz
from discreet.ranges.strategies.base import LARGEST_COUNT, Contribution, Terms, matrix_move
from discreet.ranges.workload import PrefixWorkload, Workload, gram, length, mean_squares

_BITS = 20
LARGEST_GAUSSIAN = 2048
_GAP = 1e-3
_LARGE, _LARGE_GAP = 512, 1e-2
"""Above this size a percent of the variance must do: a round takes a third of a second."""
_ROUNDS = 60
_MEMORY = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplicitMatrix:
    """Noisy ``A x`` for a matrix A of integers with full column rank."""

    name: str
    matrix: Ints

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)
        # Squares and sums of columns, and products of pairs, must stay within 63 bits.
        if np.abs(self.matrix).max() > 1 << (_BITS + 1) or len(self.matrix) > 1 << 14:
            raise InvalidArgument("matrix must have entries of at most 22 bits and few rows.")
        if not self._full_rank:
            raise InvalidArgument("matrix must have full column rank: some range has no answer.")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.matrix.shape[1])

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """There is one group."""
        return (Fraction(1),)

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far ``A x`` moves: the largest column, or the largest difference of two."""
        # Proof: one row adds a column; one row replaced adds one and takes one away. Norms are sums
        #   of integers, none of them rounded; for L1, which Gaussian noise does not need, twice a
        #   column will do. Several rows: `matrix_move`.
        # Source: F4, F24.
        l1 = int(np.abs(self.matrix).sum(axis=0).max())
        squares = np.square(self.matrix).sum(axis=0)
        l2 = int(squares.max())
        if central_relation(relation) is NeighboringRelation.REPLACE_ONE:
            # A unit without a row is possible when units may have several.
            apart = squares[:, None] + squares[None, :] - 2 * self._column_products(l2)
            l2 = max(l2, int(apart.max()))
            l1 = 2 * l1
        return (matrix_move(contribution, l1=l1, l2_squared=l2),)

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        row = int(np.abs(self.matrix).sum(axis=1).max())
        return (self.matrix @ np.minimum(counts, min(LARGEST_COUNT, (1 << 61) // row)),)

    def estimate(self, noisy: Sequence[Ints], noise: Floats) -> Floats:  # noqa: ARG002 - one group
        return floats(self._inverse @ noisy[0].astype(np.float64))

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        p, q = np.asarray(a), np.asarray(b) + 1
        table = self._products
        found = table[p, p] + table[q, q] - 2 * table[p, q]
        return floats(np.maximum(found, 0.0) * noise[0])

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        return float(mean_squares(workload, self.size, self._prefixes).sum() * noise[0])

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        means = [mean_squares(length(int(r)), self.size, self._prefixes).sum() for r in lengths]
        return floats(np.array(means) * noise[0])

    def terms(self, a: int, b: int, noise: Floats) -> Terms:  # noqa: ARG002 - one group
        weights = self._prefixes[b + 1] - self._prefixes[a]
        return ((weights, np.ones(len(weights))),)

    def largest_weights(self, noise: Floats) -> Floats:  # noqa: ARG002 - one group
        return np.array([np.ptp(self._prefixes, axis=0).max()])

    def precision(self, x: Floats, noise: Floats) -> Floats:
        return floats(self.matrix.T @ (self.matrix @ x) / noise[0])

    def content(self) -> dict[str, Any]:
        packed = zlib.compress(self.matrix.astype("<i4").tobytes())
        return {
            "kind": "dense",
            "name": self.name,
            "shape": list(self.matrix.shape),
            "matrix": base64.b64encode(packed).decode("ascii"),
        }

    def describe(self) -> str:
        return f"{self.name}, {len(self.matrix)} rows"

    @cached_property
    def _triangular(self) -> bool:
        square = len(self.matrix) == self.size
        return square and not np.tril(self.matrix, -1).any()

    @property
    def _full_rank(self) -> bool:
        if self._triangular:
            return bool(np.diag(self.matrix).all())
        return bool(np.linalg.matrix_rank(self.matrix) == self.size)

    def _column_products(self, longest: int) -> Ints:
        """Products of all pairs of columns, exactly."""
        # Proof: sums of absolute products are at most the largest square (Cauchy, Schwarz); below
        #   2**53 all of them are integers that double precision holds.
        if longest >= 1 << 53:
            return self.matrix.T @ self.matrix
        columns = self.matrix.astype(np.float64)
        return (columns.T @ columns).astype(np.int64)

    @cached_property
    def _inverse(self) -> Floats:
        columns = self.matrix.astype(np.float64)
        if self._triangular:
            return floats(scipy.linalg.solve_triangular(columns, np.eye(self.size)))
        return floats(scipy.linalg.pinv(columns))

    @cached_property
    def _prefixes(self) -> Floats:
        """The weights of the noise in the prefix sums 0 .. size."""
        first = np.zeros((1, len(self.matrix)))
        return np.concatenate([first, np.cumsum(self._inverse, axis=0)])

    @cached_property
    def _products(self) -> Floats:
        return floats(self._prefixes @ self._prefixes.T)


def read(content: dict[str, Any]) -> ExplicitMatrix:
    """The inverse of ``content``."""
    raw = zlib.decompress(base64.b64decode(content["matrix"]))
    matrix = np.frombuffer(raw, dtype="<i4").reshape(content["shape"]).astype(np.int64)
    return ExplicitMatrix(name=content["name"], matrix=matrix)


def optimal_gaussian(size: int, *, workload: Workload) -> ExplicitMatrix:
    """The best strategy for Gaussian noise and a workload, to a percent."""
    # Theorem: minimizing `tr(G X^-1)` over `diag(X) <= 1` has, for every `v > 0`, the lower
    #   bound `T^2 / sum(v)` with `T = tr S`, `S = (V^(1/2) G V^(1/2))^(1/2)`; and
    #   `X = V^(-1/2) S V^(-1/2)`, scaled to `diag(X) <= 1`, attains `T max_i(S_ii / v_i)`.
    # Proof: weak duality with multipliers v, maximized over their scale; `tr(G X^-1) = tr S`.
    #   The two agree where `v = diag(S)`, so v is replaced by it until the gap is small.
    # Source: F34; docs/theory/ranges.md.
    # Needs: at most 2048 cells.
    if size > LARGEST_GAUSSIAN:
        raise Unsupported(f"the optimal strategy is for at most {LARGEST_GAUSSIAN} cells.")
    wanted = gram(workload, size)
    wanted /= np.trace(wanted) / size
    wanted[np.diag_indices(size)] += 1e-6  # ranges outside of the workload stay answerable
    gap = _GAP if size <= _LARGE else _LARGE_GAP
    logs = _start(workload, wanted)
    tried: list[tuple[Floats, Floats]] = []
    for last in range(_ROUNDS, 0, -1):
        v = np.exp(logs)
        root = np.sqrt(v)
        values, vectors = scipy.linalg.eigh(
            root[:, None] * wanted * root[None, :], driver="evd", overwrite_a=True
        )
        roots = np.sqrt(np.maximum(values, 0.0))
        diagonal = np.square(vectors) @ roots
        longest = (diagonal / v).max()
        if last == 1 or longest * v.sum() <= (1 + gap) * diagonal.sum():
            x = (vectors * roots) @ vectors.T / (root[:, None] * root[None, :]) / longest
            matrix = toeplitz.on_grid(_upper_factor(x), bits=_BITS)
            return ExplicitMatrix(name="optimal matrix", matrix=matrix)
        # S goes with the root of v, so that the way to the fixed point is about twice the step.
        tried = [*tried[-_MEMORY:], (logs, 2 * (np.log(diagonal) - logs))]
        logs = _mixed(tried)
    raise AssertionError  # the last round returns


def _start(workload: Workload, wanted: Floats) -> Floats:
    """Where the search for multipliers starts, as logarithms."""
    if not isinstance(workload, PrefixWorkload):
        return floats(np.log(np.diag(wanted)) / 2)
    # The normalized square root is nearly the best for prefixes, and the best X has X V X = G.
    size = len(wanted)
    norms = toeplitz.column_norms(toeplitz.coefficients(size))
    steps = toeplitz.inverse_coefficients(size)
    inverse = norms[:, None] * scipy.linalg.toeplitz(steps, np.zeros(size))
    x = inverse @ inverse.T
    return floats(np.log(((x @ wanted) * x).sum(axis=1)))


def _mixed(tried: list[tuple[Floats, Floats]]) -> Floats:
    """The next place of a fixed-point iteration, from places and steps (Anderson 1965)."""
    place, step = tried[-1]
    if len(tried) == 1:
        return floats(place + step)
    places, steps = (np.diff(np.array(each), axis=0) for each in zip(*tried, strict=True))
    weights = np.linalg.lstsq(steps.T, step, rcond=1e-8)[0]
    return floats(place + step - weights @ (places + steps))


def _upper_factor(x: Floats) -> Floats:
    """A with ``A^T A = x``: the columns of A have norms ``sqrt(diag(x))``; its rows need not."""
    return floats(scipy.linalg.cholesky(x + 1e-12 * np.eye(len(x)), lower=True).T)
