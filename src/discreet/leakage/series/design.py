"""Noise for a leakage target: the least total variance that hides every cell well enough (C30)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.leakage.series import engine
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.moments import covariances, given_time
from discreet.leakage.series.threat import Known, Releases

Shape: TypeAlias = Literal["equal", "independent", "correlated"]

LARGEST = 24
"""Releases that correlated noise is designed for: its entries are their square."""

# Solved to this share of the total; constraints nearer than this to their bound are kept.
_GAP = 1e-4
_NEAR = 0.9
_STAGES = 40
_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Constraints ``v'(left + S)^-1 v <= mu^2`` for all columns v."""

    left: Floats
    columns: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Noise that meets a target, and how far from the best noise of its shape it can be."""

    releases: Releases = field(repr=False)
    shape: Shape
    target: float
    """The largest GDP mu that was asked for."""
    reached: float
    """The largest GDP mu of a cell, computed again from the noise."""
    total: float
    """The sum of the variances."""
    least: float
    """No noise of this shape with a smaller sum meets the target: a proof, not an estimate."""
    equal: float
    """The sum of the variances of equal independent noise that meets the target."""

    @property
    def gap(self) -> float:
        """By what share of itself the total can be too large, at most."""
        return 1 - self.least / self.total

    def __str__(self) -> str:
        saved = max(0.0, 1 - self.total / self.equal)
        return (
            f"{self.shape} noise: every cell below mu {self.reached:.4g} (target "
            f"{self.target:.4g}), mean variance {self.total / len(self.releases.times):.4g}, "
            f"{saved:.1%} below equal noise, within {self.gap:.2%} of the best of its shape"
        )


def design(
    model: VAR,
    *,
    releases: Releases,
    mu: float,
    known: Known = "time",
    shape: Shape = "independent",
    times: int | None = None,
    people: Sequence[int] | None = None,
) -> Design:
    """The least noise under which no cell leaks more than mu; the noise in ``releases`` is ignored.

    ``people`` are those whose cells count; all, if not given.

    Theorem: the noise returned meets the target under the model and directly (`Cells.mu`), and no
        noise of its shape with a total variance below ``least`` does.
    Proof: ``v'(W + S)^-1 v`` is convex in S, so this is a convex problem; a barrier method finds a
        solution, `_dual` bounds all solutions from below, and the leakage is computed again.
    Source: C30; matrix-fractional functions: Boyd, Vandenberghe 2004, 3.1.7 and 11.3.
    Needs: the same assumptions as `cells`.
    """
    target = float(positive("mu", mu))
    if shape not in ("equal", "independent", "correlated"):
        raise InvalidArgument(f"shape must be equal, independent or correlated, got {shape!r}.")
    size = len(releases.times)
    if shape == "correlated" and size > LARGEST:
        raise InvalidArgument(
            f"shape='correlated' is for at most {LARGEST} releases, got {size}. "
            "Use shape='independent'."
        )
    horizon = count("times", releases.times[-1] + 1 if times is None else times)
    whose = list(range(model.people) if people is None else people)
    groups = _groups(model, releases, known, target, horizon, whose)
    level = _equal(groups, target**2)
    S, least = level * np.eye(size), level * size * (1 - 1e-9)
    if shape != "equal":
        S, least = _solve(groups, 2 * S, bound=target**2, full=shape == "correlated")
        S, least = (level * np.eye(size), least) if np.trace(S) > level * size else (S, least)
    chosen = releases.with_noise(S)
    reached = float(
        engine.cells(model, releases=chosen, known=known, times=horizon).mu[whose].max()
    )
    if not reached <= target * (1 + 1e-9):
        raise NotCertified("The designed noise misses the target; use shape='equal'.")
    return Design(
        releases=chosen,
        shape=shape,
        target=target,
        reached=reached,
        total=float(np.trace(S)),
        least=min(least, float(np.trace(S))),
        equal=float(np.trace(level * np.eye(size))),
    )


def _groups(
    model: VAR, releases: Releases, known: Known, mu: float, horizon: int, people: list[int]
) -> list[Group]:
    """All cells' constraints; what the noise must hide without a model is always among them.

    Without knowledge, ``width^2 a / (v (1 - a)) <= mu^2`` is ``a (width^2 + v mu^2) / v <= mu^2``.
    """
    size, width = len(releases.times), releases.width
    alone = width * float(np.abs(releases.weights[people]).max()) * np.eye(size)
    groups = [Group(left=np.zeros((size, size)), columns=alone)]
    if known == "all":
        return groups
    # The noise in ``releases`` only serves the check of precision here.
    moments = covariances(model, releases=releases, horizon=horizon)
    if known == "none":
        v = moments.variances[:, people, None]
        columns = moments.cross[:, people] / v * np.sqrt(width**2 + v * mu**2)
        flat = columns.reshape(-1, size).T
        return [*groups, Group(left=moments.total, columns=flat)]
    for j in range(horizon):
        coefficients, left = given_time(moments, j)
        groups.append(Group(left=left, columns=width * coefficients[:, people]))
    return groups


def _equal(groups: list[Group], bound: float) -> float:
    """The smallest level with ``v'(W + level I)^-1 v <= bound`` everywhere, rounded up."""
    spectra = []
    for group in groups:
        values, vectors = np.linalg.eigh(group.left)
        spectra.append((np.maximum(values, 0), (vectors.T @ group.columns) ** 2))

    def meets(level: float) -> bool:
        return all(
            float((squares / (values + level)[:, None]).sum(axis=0).max()) <= bound
            for values, squares in spectra
        )

    high = max(float(squares.sum(axis=0).max()) for _, squares in spectra) / bound * (1 + 1e-9)
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    if not meets(high):
        raise NotCertified("No equal noise was found for this target.")
    return high


def _solve(groups: list[Group], start: Floats, *, bound: float, full: bool) -> tuple[Floats, float]:
    """The least S that meets all constraints, found with those that matter.

    Fewer constraints give a smaller least trace, so the lower bound holds for all of them.
    """
    near = [_shares(group, start / 2) > _NEAR * bound for group in groups]
    for _ in range(_STAGES):
        active = [
            Group(left=group.left, columns=group.columns[:, keep])
            for group, keep in zip(groups, near, strict=True)
            if keep.any()
        ]
        S, least = _Barrier(active, bound, len(start), full=full).solve(start)
        shares = [_shares(group, S) for group in groups]
        if all(float(share.max()) <= bound for share in shares):
            return S, least
        near = [keep | (share > _NEAR * bound) for keep, share in zip(near, shares, strict=True)]
    raise NotCertified("The noise design did not converge; use shape='equal'.")


def _shares(group: Group, S: Floats) -> Floats:
    """What each constraint of a group comes to."""
    root = np.linalg.cholesky(group.left + S)
    shares: Floats = (solve_triangular(root, group.columns, lower=True) ** 2).sum(axis=0)
    return shares


class _Barrier:
    """Newton's method on ``tau tr S - sum log(bound - f_c(S)) - log det S``.

    S has entries at the pairs (a, b): the diagonal, or everywhere.
    """

    def __init__(self, groups: list[Group], bound: float, size: int, *, full: bool) -> None:
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
            S = self._centre(S, tau)
            least = max(least, self._dual(S, tau))
            if least >= (1 - _GAP) * float(np.trace(S)):
                break
            tau *= 5
        return S, least

    def _centre(self, S: Floats, tau: float) -> Floats:
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
                f = _shares(group, S)
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

    def _solved(self, group: Group, S: Floats) -> tuple[Floats, Floats, Floats]:
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

    def _dual(self, S: Floats, tau: float) -> float:
        """A lower bound on the trace of every feasible noise.

        Theorem: for any vectors y_c and weights l_c >= 0 with ``sum l_c y_c y_c' <= I`` (for
            independent noise: on the diagonal), ``sum l_c (2 y_c'v_c - y_c'W_c y_c - bound)`` is
            at most the trace of any feasible S.
        Proof: ``v'(W + S)^-1 v >= 2 y'v - y'(W + S) y`` for every y. So for feasible S,
            ``0 >= sum l_c (2 y_c'v_c - y_c'W_c y_c - bound) - tr(S sum l_c y_c y_c')``, and the
            last trace is at most that of S.
        """
        weighted = np.zeros_like(S)
        value = 0.0
        for group in self.groups:
            _, y, slack = self._solved(group, S)
            weights = 1 / (tau * slack)
            weighted += (y * weights) @ y.T
            gain = 2 * (y * group.columns).sum(axis=0) - (y * (group.left @ y)).sum(axis=0)
            value += float(weights @ (gain - self.bound))
        top = np.linalg.eigvalsh(weighted)[-1] if self.full else np.diag(weighted).max()
        return value / max(1.0, float(top)) * (1 - 1e-9)


def _logdet(S: Floats) -> float:
    return 2 * float(np.log(np.diag(np.linalg.cholesky(S))).sum())
