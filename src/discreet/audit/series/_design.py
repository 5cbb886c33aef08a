"""Noise for a leakage target: the least total variance that hides every cell well enough (C30).

`savings` says how much designed noise saves on a panel of exchangeable people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit.series._barrier_method import Barrier, ConstraintGroup, Stationary, shares
from discreet.audit.series._leakage import covariances, given_time, horizon_of
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.model import VAR, Floats
from discreet.audit.series.threat_model import Known, SeriesReleases, releases
from discreet.audit.series.worst_case import worst
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import percent, short

# ── Noise design
# ───────────────────────────────────────────────────────────────────────────────────


Shape: TypeAlias = Literal["equal", "independent", "stationary", "correlated"]
SHAPES: tuple[Shape, ...] = ("equal", "independent", "stationary", "correlated")

LARGEST: dict[Shape, int] = {"correlated": 24, "stationary": 120}
"""Releases that a shape is designed for: correlated noise has their square of entries."""

# Constraints nearer than this to their bound may matter; this many of a group take part at first.
_NEAR = 0.9
_FEW = 3
_STAGES = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseDesign:
    """Noise that meets a target, and how far from the best noise of its shape it can be."""

    releases: SeriesReleases = field(repr=False)
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
            f"{self.shape} noise: every cell below mu {short(self.reached)} (target "
            f"{short(self.target)}), mean variance {short(self.total / len(self.releases.times))}, "
            f"{percent(saved)} below equal noise, within {percent(self.gap)} of the best "
            "of its shape"
        )


def design(
    model: VAR | Sequence[VAR],
    *,
    releases: SeriesReleases,
    mu: float,
    attacker_knows: Known = "time",
    shape: Shape = "independent",
    times: int | None = None,
    people: Sequence[int] | None = None,
) -> NoiseDesign:
    """Find the least noise under which no value leaks more than a target.

    The noise in `releases` is ignored.

    Args:
        model: Model of the values, or several models; then the noise suffices for each of them.
        releases: What is published.
        mu: Largest leakage of a value, as mu of Gaussian DP.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        shape: `"equal"`, `"independent"` (one variance per release), `"stationary"` (correlation
            depends on the lag; at most 120 releases) or `"correlated"` (any covariance; at most 24
            releases).
        times: Number of times. By default up to the last release.
        people: Indices of the people whose values count. By default all.

    Returns:
        The releases with the noise, the leakage that was reached, and a proven lower bound for the
        total variance.

    Raises:
        InvalidArgument: An argument is outside its range, or there are too many releases for the
            shape.
        NotCertified: The noise misses the target because of rounding errors.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1)
        >>> found = series.design(model, releases=means, mu=0.5)
        >>> found.reached <= 0.5
        True

    References:
        [Proof](../theory/theorems.md#audit.series._design.design).
    """
    # Theorem: the noise returned meets the target under the model and directly (`Cells.mu`), and no
    #   noise of its shape with a total variance below `least` does.
    # Proof: `v'(W + S)^-1 v` is convex in S, so this is a convex problem; a barrier method finds a
    #   solution, `_dual` bounds all solutions from below, and the leakage is computed again.
    # Source: C30; matrix-fractional functions: Boyd, Vandenberghe 2004, 3.1.7 and 11.3.
    # Needs: the same assumptions as `cells`.
    target = float(positive("mu", mu))
    if shape not in SHAPES:
        raise InvalidArgument(f"shape must be one of {', '.join(SHAPES)}, got {shape!r}.")
    size = len(releases.times)
    if size > LARGEST.get(shape, size):
        raise InvalidArgument(
            f"shape={shape!r} is for at most {LARGEST[shape]} releases, got {size}. "
            f"Use shape={'stationary' if shape == 'correlated' else 'independent'!r}."
        )
    models = [model] if isinstance(model, VAR) else list(model)
    if not models:
        raise InvalidArgument("model must be at least one model.")
    horizon = max(
        horizon_of(one, releases=releases, attacker_knows=attacker_knows, times=times)
        for one in models
    )
    whose = _whose(people, len(releases.weights))
    groups = [
        group
        for one in models
        for group in _groups(one, releases, attacker_knows, target, horizon, whose)
    ]
    level = _equal(groups, target**2)
    S, least = level * np.eye(size), level * size * (1 - 1e-9)
    if shape != "equal":
        S, least = _solve(groups, 2 * S, bound=target**2, shape=shape)
        S, least = (level * np.eye(size), least) if np.trace(S) > level * size else (S, least)
    chosen = releases.with_noise(S, public=all(one.public for one in models))
    found = worst(models, releases=chosen, attacker_knows=attacker_knows, times=horizon)
    reached = float(found.mu[whose].max())
    if not reached <= target * (1 + 1e-9):
        raise NotCertified("The designed noise misses the target; use shape='equal'.")
    return NoiseDesign(
        releases=chosen,
        shape=shape,
        target=target,
        reached=reached,
        total=float(np.trace(S)),
        least=min(least, float(np.trace(S))),
        equal=float(np.trace(level * np.eye(size))),
    )


def _whose(people: Sequence[int] | None, number: int) -> list[int]:
    if people is None:
        return list(range(number))
    whose = [count("people", person, minimum=0) for person in people]
    if not whose or max(whose) >= number:
        raise InvalidArgument(f"people must be some of 0, ..., {number - 1}: whose cells count.")
    return whose


def _groups(
    model: VAR,
    releases: SeriesReleases,
    attacker_knows: Known,
    mu: float,
    horizon: int,
    people: list[int],
) -> list[ConstraintGroup]:
    """All cells' constraints; what the noise must hide without a model is always among them.

    Without knowledge, ``width^2 a / (v (1 - a)) <= mu^2`` is ``a (width^2 + v mu^2) / v <= mu^2``.
    """
    size, width = len(releases.times), releases.width
    alone = width * float(np.abs(releases.weights[people]).max()) * np.eye(size)
    groups = [ConstraintGroup(left=np.zeros((size, size)), columns=alone)]
    if attacker_knows == "all":
        return groups
    # The noise in ``releases`` only serves the check of precision here.
    moments = covariances(model, releases=releases, horizon=horizon)
    if attacker_knows == "none":
        v = moments.variances[:, people, None]
        columns = moments.cross[:, people] / v * np.sqrt(width**2 + v * mu**2)
        flat = columns.reshape(-1, size).T
        return [*groups, ConstraintGroup(left=moments.total, columns=flat)]
    for j in range(horizon):
        coefficients, left = given_time(moments, j)
        groups.append(ConstraintGroup(left=left, columns=width * coefficients[:, people]))
    return groups


def _equal(groups: list[ConstraintGroup], bound: float) -> float:
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


def _solve(
    groups: list[ConstraintGroup], start: Floats, *, bound: float, shape: Shape
) -> tuple[Floats, float]:
    """The least S that meets all constraints, found with those that matter.

    Fewer constraints give a smaller least trace, so the lower bound holds for all of them.
    """
    near = [_nearest(shares(group, start / 2), bound) for group in groups]
    for _ in range(_STAGES):
        active = [
            ConstraintGroup(left=group.left, columns=group.columns[:, keep])
            for group, keep in zip(groups, near, strict=True)
            if keep.any()
        ]
        method = (
            Stationary(active, bound, len(start))
            if shape == "stationary"
            else Barrier(active, bound, len(start), full=shape == "correlated")
        )
        S, least = method.solve(start)
        found = [shares(group, S) for group in groups]
        if all(float(share.max()) <= bound for share in found):
            return S, least
        near = [keep | _nearest(share, bound) for keep, share in zip(near, found, strict=True)]
    raise NotCertified("The noise design did not converge; use shape='equal'.")


def _nearest(share: Floats, bound: float) -> NDArray[np.bool_]:
    """The few largest of those that are near their bound."""
    result = np.zeros(len(share), dtype=bool)
    result[np.argsort(-share, kind="stable")[:_FEW]] = True
    return result & (share > _NEAR * bound)


# ── Savings
# ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSaving:
    """Total variances for the same worst leakage, as shares of that of equal noise."""

    habit: float
    independent: float
    correlated: float
    least: float
    """No noise, however correlated, has less and meets the target."""


def savings(
    habits: Sequence[float],
    *,
    people: int = 50,
    times: int = 12,
    correlation: float = 0.1,
    width: float = 8.0,
    mu: float = 0.32,
) -> tuple[NoiseSaving, ...]:
    """For each habit: noise under which no value leaks more than mu.

    Shocks have variance 1; ``width`` is that of the public range.
    """
    rows = []
    for habit in habits:
        model, weights = ExchangeableVAR(
            habits=(habit,), variance=1.0, correlation=correlation
        ).pair(people)
        asked = releases(times=range(times), width=width, people=2, std=1.0, weights=weights)
        free = design(model, releases=asked, mu=mu, shape="independent", people=[0])
        best = design(model, releases=asked, mu=mu, shape="correlated", people=[0])
        rows.append(
            NoiseSaving(
                habit=habit,
                independent=free.total / free.equal,
                correlated=best.total / best.equal,
                least=best.least / best.equal,
            )
        )
    return tuple(rows)
