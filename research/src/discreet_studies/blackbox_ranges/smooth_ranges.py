"""Noise that follows the area: the smooth variant of Aoutouf 2021, made true, and as it was.

Ranges of any width on listed areas; the local sensitivity comes from the ranges, is smoothed by a
factor for every position, and the noise is calibrated to that factor. For short tuples this cannot
help: nowhere is the noise below that of the whole by more than ``e^(smoothness * n)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import positive, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent._smooth_noise import (
    SMALLEST_BETA,
    SmoothLaplace,
    laplace_multiplier,
)
from discreet.mechanisms.data_dependent.smooth_sensitivity import worst_divergence
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.models.blackbox.output_ranges import make_read_only
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet_studies.blackbox_ranges.area_tables import Adjacency, around, neighbors, spread_min

# Bounds are computed in doubles: raised, and smoothed by a factor a little nearer to one.
_RAISED = 1 + Fraction(1, 1 << 38)
_SLACK = 2.0**-36
# Noise is never below this many steps.
_FEWEST_STEPS = 16
_LARGEST = 1 << 60


def local_sensitivities(low: Ints, high: Ints, *, adjacency: Adjacency = "replace") -> Ints:
    """By how much a clipped value can change if one position of an area's data set does (A39)."""
    found = high - low
    for axis in range(low.ndim):
        lows, _ = around(low, axis, adjacency=adjacency)
        _, highs = around(high, axis, adjacency=adjacency)
        found = np.maximum(found, np.maximum(high - lows, highs - low))
    return found


def smooth_bounds(
    local: NDArray[np.float64] | Ints, smoothness: float, *, adjacency: Adjacency = "replace"
) -> Floats:
    """``max_b e^(-smoothness d(a, b)) local_b`` for every area, one pass per axis (A39)."""
    with np.errstate(divide="ignore"):
        logs = -np.log(np.asarray(local, dtype=np.float64))
    return np.asarray(np.exp(-spread_min(logs, smoothness, adjacency=adjacency)))


def textbook(*, epsilon: Number, delta: Number) -> tuple[float, float]:
    """Smoothness and multiplier of Nissim, Raskhodnikova and Smith 2007 (A3).

    Refused beyond epsilon 8 or delta 0.1, where they are too small.
    """
    eps, dlt = float(positive("epsilon", epsilon)), float(probability("delta", delta, zero=False))
    if eps > 8 or dlt > 0.1:
        raise InvalidArgument(
            "The multiplier 2 holds for epsilon up to 8 and delta up to 0.1: use kappa()."
        )
    return eps / (2 * math.log(2 / dlt)), 2.0


def kappa(*, epsilon: Number, delta: Number, smoothness: float) -> float:
    """The smallest multiplier of ``bound / epsilon`` that keeps (epsilon, delta) (A40).

    >>> round(kappa(epsilon=1, delta=1e-6, smoothness=0.0345), 4)
    1.4437
    """
    eps, dlt = float(positive("epsilon", epsilon)), float(probability("delta", delta, zero=False))
    if smoothness == 0:
        return 1.0
    if not 0 < smoothness < eps:
        raise InvalidArgument(f"smoothness must lie between 0 and epsilon, got {smoothness}.")
    found = laplace_multiplier(eps, dlt, smoothness)
    if not math.isfinite(found):
        raise InvalidArgument(f"No noise keeps delta={dlt:g} at smoothness {smoothness:g}: less.")
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothRanges:
    """Listed ranges with Laplace noise of their smooth sensitivity (A39)."""

    # Theorem: `release` is (epsilon, delta)-DP if one position is replaced, for every function.
    # Proof: values of neighbors differ by at most the smaller of their two bounds, which are local
    #   sensitivities of the ranges, smoothed; between neighbors bounds change by a factor of at
    #   most e^smoothness. Doubles are good to 2**-40: bounds are raised by 2**-38 and smoothed with
    #   2**-36 less (as in `discreet.mechanisms.smooth`). The multiplier keeps (epsilon, delta) for
    #   any two such Laplace laws, and the exact sum of value and noise is rounded to a step, which
    #   is post-processing. The scale of an area is never told.
    # Source: Nissim, Raskhodnikova, Smith 2007; A39, A40.
    # Needs: whole ranges, none empty; everything public but the data set.

    low: Ints
    high: Ints
    noise: SmoothLaplace
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        kinds = {self.low.dtype.kind, self.high.dtype.kind}
        if kinds != {"i"} or self.low.shape != self.high.shape:
            raise InvalidArgument("low and high must be tables of whole numbers of one shape.")
        # Copies, in 64 bits: differences of short integers would wrap around.
        for name, ends in (("low", self.low), ("high", self.high)):
            object.__setattr__(self, name, make_read_only(ends.astype(np.int64)))
        if self.low.size and max(-int(self.low.min()), int(self.high.max())) > _LARGEST:
            raise InvalidArgument("low and high must lie within 2**60 steps: use a larger step.")
        if (self.low > self.high).any():
            raise NotCertified("A range is empty: clipping to it would keep no bound.")
        if self.noise.beta < SMALLEST_BETA:
            raise InvalidArgument("smoothness must be at least 2**-20: below, rounding matters.")
        if self.adjacency != "replace":
            raise NotCertified("Areas one cell apart are not all neighbors: use 'replace'.")

    @property
    def bounds(self) -> Floats:
        """Smooth bounds of all areas in steps: public as a table, private for a data set."""
        local = local_sensitivities(self.low, self.high, adjacency=self.adjacency)
        floor = max(1.0, _FEWEST_STEPS / float(self.noise.multiplier))
        return smooth_bounds(np.maximum(local, floor), self.noise.beta - _SLACK)

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return Guarantee(
            events.ApproxEvent(self.noise.epsilon, self.noise.delta),
            NeighboringRelation.REPLACE_ONE,
        )

    def expected_noise(self) -> Floats:
        """Mean absolute noise of every area, in steps."""
        return self.bounds * float(self.noise.multiplier)

    def release(
        self, value: int, cells: tuple[int, ...], *, rng: RandomSource | None = None
    ) -> int:
        """A whole value, clipped to the range of its area, with that area's noise."""
        whole = min(max(value, int(self.low[cells])), int(self.high[cells]))
        scale = Fraction(float(self.bounds[cells])) * _RAISED * self.noise.multiplier
        return whole + self.noise.draw(scale, resolve_rng(rng))

    def certify(self) -> Certificate:
        """Every edge once more: bounds hold, and are smooth; and the divergence by integration."""
        local = local_sensitivities(self.low, self.high, adjacency=self.adjacency)
        found = self.bounds * float(_RAISED)
        ratio = 0.0
        for axis in range(found.ndim):
            least, most = around(found, axis, adjacency=self.adjacency)
            ratio = max(ratio, float(np.log(most / least).max()))
        checks = tuple(
            CertificateCheck(part=part, epsilon=float(self.noise.epsilon), claimed=claimed,
                  exact=exact,
                  route=route)
            for part, claimed, exact, route in (
                ("local sensitivity over its bound", 1.0, float((local / found).max()),
                 "every area"),
                ("logarithm of the ratio of neighbors' bounds", self.noise.beta, ratio,
                 "every line"),
                ("noise", float(self.noise.delta), worst_divergence(self.noise),
                 "integrals of the densities, both directions"),
            )
        )  # fmt: skip
        return Certificate(
            mechanism="smooth ranges", guarantee=self.guarantee, checks=checks
        ).demand()


def smooth_ranges(
    low: Ints,
    high: Ints,
    *,
    epsilon: Number,
    delta: Number,
    smoothness: float | None = None,
    adjacency: Adjacency = "replace",
) -> SmoothRanges:
    """Listed ranges with exactly calibrated noise."""
    noise = SmoothLaplace.calibrated(
        positive("epsilon", epsilon), probability("delta", delta, one=False), smoothness
    )
    return SmoothRanges(low=low, high=high, noise=noise, adjacency=adjacency)


# ── ranges and noise at once ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """Ranges and bounds of a linear program; for a release, `smooth_ranges` recomputes bounds."""

    low: Floats
    high: Floats
    bounds: Floats
    error: float
    """Mean absolute error, of clipping and of noise."""


def joint_ranges(
    edges: Ints,
    targets: Floats,
    *,
    areas: Ints,
    many: int,
    epsilon: float,
    smoothness: float = 0.0,
    multiplier: float = 1.0,
) -> Joint:
    """Ranges and smooth bounds of least mean error, in one linear program (A41).

    ``edges`` lists neighboring areas once. Without smoothness this is one sensitivity for all
    areas (A33).
    """
    rows = _Rows(3 * many + 2 * len(targets))
    low, high, bound = np.arange(many), many + np.arange(many), 2 * many + np.arange(many)
    miss = 3 * many + np.arange(len(targets))
    a, b = (np.concatenate((edges[:, i], edges[:, 1 - i])) for i in (0, 1))
    rows.add((low, 1.0), (high, -1.0))
    rows.add((high, 1.0), (low, -1.0), (bound, -1.0))
    rows.add((high[a], 1.0), (low[b], -1.0), (bound[a], -1.0))
    rows.add((high[a], 1.0), (low[b], -1.0), (bound[b], -1.0))
    rows.add((bound[a], 1.0), (bound[b], -math.exp(smoothness)))
    above = miss + len(targets)
    rows.add((high[areas], -1.0), (miss, -1.0), limit=-targets)
    rows.add((low[areas], 1.0), (above, -1.0), limit=targets)
    cost = np.zeros(rows.columns)
    cost[miss] = cost[above] = 1 / len(targets)
    np.add.at(cost, bound[areas], multiplier / epsilon / len(targets))
    free = [(None, None)] * (2 * many) + [(0, None)] * (many + 2 * len(targets))
    solved: Any = optimize.linprog(cost, A_ub=rows.matrix(), b_ub=rows.limits(), bounds=free)
    if not solved.success:
        raise NotCertified("The linear program was not solved.")
    return Joint(
        low=solved.x[low], high=solved.x[high], bounds=solved.x[bound], error=float(solved.fun)
    )


class _Rows:
    """Inequalities of a linear program, many at a time."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._parts: list[Any] = []
        self._limits: list[Floats] = []

    def add(self, *terms: tuple[Ints, float], limit: Floats | float = 0.0) -> None:
        """``sum of factor * variable <= limit``, row by row."""
        many = len(terms[0][0])
        where = np.tile(np.arange(many), len(terms))
        columns = np.concatenate([term[0] for term in terms])
        factors = np.repeat([term[1] for term in terms], many)
        shape = (many, self.columns)
        self._parts.append(sparse.csr_array((factors, (where, columns)), shape=shape))
        self._limits.append(np.broadcast_to(np.asarray(limit, dtype=np.float64), (many,)))

    def matrix(self) -> Any:
        """All of them."""
        return sparse.vstack(self._parts, format="csr")

    def limits(self) -> Floats:
        """Their right-hand sides."""
        return np.concatenate(self._limits)


# ── as published ──────────────────────────────────────────────────────────────────────────────


def smooth_as_published(
    centers: Ints,
    *,
    width: Fraction,
    step: Fraction,
    gamma: Fraction,
    listing: bool = False,
    adjacency: Adjacency = "replace",
) -> tuple[NDArray[np.object_], Ints]:
    """The bounds of Algorithm 6, or of the listing, and the passes it took. Not private (A15).

    They differ by at most gamma between neighbors, where a *factor* is needed; they reach zero;
    and they bound differences of centers, not of what is released.
    """
    near = [
        [b for line in area for b in line] for area in neighbors(centers.shape, adjacency=adjacency)
    ]
    flat = centers.ravel().tolist()
    local = [max((abs(flat[a] - flat[b]) for b in near[a]), default=0) * step
             for a in range(len(flat))]  # fmt: skip
    bound = [width] * len(flat)
    final: dict[int, None] = {}
    passes = 0
    while len(final) < len(flat):
        passes += 1
        for area in range(len(flat)):
            if area in final:
                continue
            if width - local[area] >= passes * gamma:
                bound[area] -= gamma
            else:
                final[area] = None
        queue = list(final)
        for area in queue:
            for b in near[area]:
                if b not in final:
                    final[b] = None
                    if listing:  # a list that grows while it is read floods the whole graph (M14)
                        queue.append(b)
    levels = np.empty(len(flat), dtype=object)
    levels[:] = bound
    return levels.reshape(centers.shape), np.array(passes)
