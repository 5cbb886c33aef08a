"""A barrier method for the least noise, and a bound from below that does not depend on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular, toeplitz

from discreet.audit.series.model import Floats

# Solved to this share of the total.
_GAP = 1e-4
_STAGES = 40
_STEPS = 60
# Frequencies at which a spectrum is looked at, for each release.
_FINE = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstraintGroup:
    """Constraints ``v'(left + S)^-1 v <= mu^2`` for all columns v."""

    left: Floats
    columns: Floats


def shares(group: ConstraintGroup, S: Floats) -> Floats:
    """What each constraint of a group comes to."""
    root = np.linalg.cholesky(group.left + S)
    shares: Floats = (solve_triangular(root, group.columns, lower=True) ** 2).sum(axis=0)
    return shares


class Barrier:
    """Newton's method on ``tau tr S - sum log(bound - f_c(S)) - log det S``.

    S has entries at the pairs (a, b): the diagonal, or everywhere.
    """

    def __init__(
        self, groups: list[ConstraintGroup], bound: float, size: int, *, full: bool
    ) -> None:
        self.groups, self.bound, self.full = groups, bound, full
        self.a, self.b = np.tril_indices(size) if full else (np.arange(size), np.arange(size))
        self.twice = np.where(self.a == self.b, 1.0, 2.0)
        self.trace = (self.a == self.b).astype(float)
        self.scale = np.outer(self.twice, self.twice) / 4
        ends = {"a": self.a, "b": self.b}
        # Places of all pairs of entries in a matrix that is laid out as one line.
        self.places = {
            x + y: ends[x][:, None] * size + ends[y][None, :] for x in ends for y in ends
        }

    def solve(self, start: Floats) -> tuple[Floats, float]:
        """A feasible S, and a lower bound on the trace of every feasible one."""
        S, least = start, 0.0
        many = sum(group.columns.shape[1] for group in self.groups) + len(start)
        tau = many / float(np.trace(start))
        for _ in range(_STAGES):
            S = self._center(S, tau)
            least = max(least, self.dual(S, tau))
            if least >= (1 - _GAP) * float(np.trace(S)):
                break
            tau *= 5
        return S, least

    def _center(self, S: Floats, tau: float) -> Floats:
        value = self._value(S, tau)
        for _ in range(_STEPS):
            gradient, hessian = self._derivatives(S, tau)
            step: Floats = -np.linalg.solve(hessian, gradient).astype(np.float64)
            decrement = -float(gradient @ step)
            if not decrement > 1e-8:
                break
            move, length = self._matrix(step), 1.0
            new = self._value(S + move, tau)
            while not new <= value - 0.1 * length * decrement and length > 1e-9:
                length /= 2
                new = self._value(S + length * move, tau)
            if length <= 1e-9:
                break
            S, value = S + length * move, new
        return S

    def _value(self, S: Floats, tau: float) -> float:
        """The function; infinity where S is no covariance or misses the target."""
        try:
            result = tau * float(np.trace(S)) - _logdet(S)
            for group in self.groups:
                f = shares(group, S)
                if not float(f.max()) < self.bound:
                    return math.inf
                result -= float(np.log(self.bound - f).sum())
        except np.linalg.LinAlgError:
            return math.inf
        return result

    def _derivatives(self, S: Floats, tau: float) -> tuple[Floats, Floats]:
        inverse: Floats = cho_solve((np.linalg.cholesky(S), True), np.eye(len(S)))
        gradient = tau * self.trace - self.twice * inverse[self.a, self.b]
        hessian = self._second(inverse, inverse)
        for group in self.groups:
            B, y, slack = self._solved(group, S)
            first = self.twice[:, None] * y[self.a] * y[self.b]  # minus the derivative of f
            gradient = gradient - first @ (1 / slack)
            hessian = hessian + (first / slack**2) @ first.T
            hessian = hessian + 2 * self._second(B, (y / slack) @ y.T)
        return gradient, hessian

    def _solved(self, group: ConstraintGroup, S: Floats) -> tuple[Floats, Floats, Floats]:
        root = np.linalg.cholesky(group.left + S)
        B: Floats = cho_solve((root, True), np.eye(len(S)))
        y = B @ group.columns
        return B, y, self.bound - (y * group.columns).sum(axis=0)

    def _second(self, B: Floats, P: Floats) -> Floats:
        """The traces of ``E B E' P`` for all pairs of basis matrices E, E'."""
        b_, p_ = B.ravel(), P.ravel()
        aa, ab, ba, bb = (self.places[key] for key in ("aa", "ab", "ba", "bb"))
        sums = b_[ba] * p_[ab] + b_[ab] * p_[ba] + b_[aa] * p_[bb] + b_[bb] * p_[aa]
        result: Floats = sums * self.scale
        return result

    def _matrix(self, entries: Floats) -> Floats:
        size = int(self.trace.sum())
        result = np.zeros((size, size))
        result[self.a, self.b] = entries
        result[self.b, self.a] = entries
        return result

    def _excess(self, weighted: Floats) -> float:
        """The largest ``tr(S weighted) / tr S`` over noise of this shape."""
        if not self.full:
            return float(np.diag(weighted).max())
        return float(np.linalg.eigvalsh(weighted)[-1])

    def dual(self, S: Floats, tau: float) -> float:
        """A lower bound on the trace of every feasible noise."""
        # Theorem: for any vectors y_c and weights l_c >= 0 with `tr(S sum l_c y_c y_c') <= tr S`
        #   for all noise S of this shape, `sum l_c (2 y_c'v_c - y_c'W_c y_c - bound)` is at most
        #   the trace of any feasible S.
        # Proof: `v'(W + S)^-1 v >= 2 y'v - y'(W + S) y` for every y. So for feasible S,
        #   `0 >= sum l_c (2 y_c'v_c - y_c'W_c y_c - bound) - tr(S sum l_c y_c y_c')`, and the
        #   last trace is at most that of S.
        weighted = np.zeros_like(S)
        value = 0.0
        for group in self.groups:
            _, y, slack = self._solved(group, S)
            weights = 1 / (tau * slack)
            weighted += (y * weights) @ y.T
            gain = 2 * (y * group.columns).sum(axis=0) - (y * (group.left @ y)).sum(axis=0)
            value += float(weights @ (gain - self.bound))
        return value / max(1.0, self._excess(weighted)) * (1 - 1e-9)


class Stationary(Barrier):
    """The same for noise whose covariance depends on the lag alone, one entry for each lag."""

    def __init__(self, groups: list[ConstraintGroup], bound: float, size: int) -> None:
        super().__init__(groups, bound, size, full=False)
        self.size = size
        self.trace = np.zeros(size)
        self.trace[0] = size

    def _derivatives(self, S: Floats, tau: float) -> tuple[Floats, Floats]:
        inverse: Floats = cho_solve((np.linalg.cholesky(S), True), np.eye(self.size))
        gradient = tau * self.trace - _lagged(inverse)
        moved = self._moved(inverse)  # lag x row x column: inverse times each basis matrix
        flat = moved.reshape(self.size, -1)
        hessian: Floats = flat @ moved.transpose(0, 2, 1).reshape(self.size, -1).T
        for group in self.groups:
            B, y, slack = self._solved(group, S)
            for column, rest in zip(y.T, slack, strict=True):
                around = self._moved(column[None])[:, 0]  # lag x release
                first = around @ column
                gradient = gradient - first / rest
                hessian = hessian + np.outer(first, first) / rest**2
                hessian = hessian + 2 / rest * (around @ B @ around.T)
        return gradient, hessian

    def _moved(self, rows: Floats) -> Floats:
        """Rows times the basis matrices: ones at lag k on both sides of the diagonal."""
        size = self.size
        wide = np.zeros((len(rows), 3 * size))
        wide[:, size : 2 * size] = rows
        result: Floats = np.array(
            [
                wide[:, size - k : 2 * size - k] + wide[:, size + k : 2 * size + k]
                for k in range(size)
            ]
        )
        result[0] /= 2
        return result

    def _matrix(self, entries: Floats) -> Floats:
        result: Floats = toeplitz(entries)
        return result

    def _excess(self, weighted: Floats) -> float:
        """See `Barrier._excess`."""
        # Theorem: it is the maximum over frequencies of `a* M a / T`, `a_t = exp(i t w)`.
        # Proof: a positive semidefinite Toeplitz matrix is a mixture of `a a*` (Carathéodory). The
        #   maximum of a trigonometric polynomial p of degree T exceeds that on a grid with steps
        #   2 h by at most `h^2 T^2 max p / 2` (Bernstein; its derivative vanishes there).
        size = self.size
        points = _FINE * size
        spectrum = np.zeros(points)
        spectrum[:size] = _lagged(weighted)
        top = float(np.fft.rfft(spectrum).real.max())
        return top / (1 - (math.pi / _FINE) ** 2 / 2) / size


def _lagged(matrix: Floats) -> Floats:
    """Sums along diagonals, both sides."""
    size = len(matrix)
    sums = np.array([np.trace(matrix, offset=k) for k in range(size)])
    return np.append(sums[:1], 2 * sums[1:])


def _logdet(S: Floats) -> float:
    return 2 * float(np.log(np.diag(np.linalg.cholesky(S))).sum())
