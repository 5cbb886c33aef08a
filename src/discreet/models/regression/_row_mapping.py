"""How rows are mapped: by declared bounds and scales, or by scales that are found privately.

Nothing here looks at exact statistics of private data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.models._model_inputs import LARGEST, Bounds, Flags, Floats, bounds_of
from discreet.models.regression._row_lattice import CHUNK, Ints, Mapping, RowMap, box_radius
from discreet.models.regression._row_sources import RowSource, empty
from discreet.models.regression._task import RegressionTask
from discreet.models.regression.sufficient_statistics import SufficientStatisticsPlan
from discreet.noise.random_source import RandomSource
from discreet.query.budget import BudgetChange

# ── Private medians and radii ────────────────────────────────────────────────────────────────────
# The exponential mechanism on counts of a public grid. A candidate is the likelier, the fewer rows
# would have to change for it to be the quantile. The error is a few ranks, however wide the
# declared bounds are; a mean would pay for their width.


CELLS = 1024
"""Cells of the grid between the bounds of a column."""
RADII = 56
"""Candidates for a radius: from the top down by quarters of an octave."""
# The radius that holds 4 of 5 rows.
_PART, _OF = 4, 5
# How much likelier the midpoint of the bounds is than all other candidates, before a row is read.
_PRIOR = 1000.0


def median_sensitivity(task: RegressionTask) -> BudgetChange:
    """A row moves ``2 below - n`` by one if added, by two if replaced."""
    return task.choice(1, 2)


def radius_sensitivity(task: RegressionTask) -> BudgetChange:
    """A row moves ``5 below - 4 n`` by at most four if added, by five if replaced."""
    return task.choice(max(_PART, _OF - _PART), _OF)


def cell_counts(values: Floats, lower: Floats, upper: Floats) -> Ints:
    """Rows in each cell of each column, clipped to the bounds: (columns, CELLS), private."""
    places = np.floor((np.clip(values, lower, upper) - lower) * (CELLS / (upper - lower)))
    codes = np.minimum(places, CELLS - 1).astype(np.int64)
    codes += np.arange(len(lower)) * CELLS
    found = np.bincount(codes.ravel(), minlength=len(lower) * CELLS)
    return found.astype(np.int64).reshape(len(lower), CELLS)


def radius_counts(values: Floats, tops: Floats) -> Ints:
    """Rows between one candidate radius and the next: (columns, RADII), private."""
    found = np.empty((len(tops), RADII), dtype=np.int64)
    for column, top in enumerate(tops):
        edges = radii(float(top))[::-1]
        places = np.minimum(np.searchsorted(edges, values[:, column], side="left"), RADII - 1)
        found[column] = np.bincount(places, minlength=RADII)
    return found


def radii(top: float) -> Floats:
    """All candidates, the largest first."""
    return np.asarray(top * np.exp2(-np.arange(RADII) / 4))


def median(
    counts: Ints,
    lower: float,
    upper: float,
    *,
    mechanism: ExponentialMechanism,
    rng: RandomSource,
    prior: float | None = None,
) -> float:
    """The middle of the chosen cell; with ``prior`` on the midpoint, that may be chosen itself."""
    # Theorem: as private as `mechanism`, whose sensitivity is `median_sensitivity`.
    # Proof: the score of a cell is minus `max(0, 2 below - n, n - 2 (below + inside))`; each term
    #   moves by at most one if a row is added, and by at most two if one is replaced. The bonus of
    #   the midpoint is a public constant.
    # Source: McSherry, Talwar 2007; Smith 2011.
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    scores = -np.maximum(0, np.maximum(2 * below - many, many - 2 * upto))
    middles = lower + (np.arange(CELLS) + 0.5) * ((upper - lower) / CELLS)
    if prior is not None:
        bonus = math.ceil(math.log(_PRIOR * CELLS) / float(mechanism.rate))
        at = min(max(math.floor((prior - lower) / (upper - lower) * CELLS), 0), CELLS - 1)
        scores = np.append(scores, scores[at] + bonus)
        middles = np.append(middles, prior)
    return float(middles[mechanism.choose(scores.astype(np.int64), rng)])


def radius(
    counts: Ints, top: float, *, mechanism: ExponentialMechanism, rng: RandomSource
) -> float:
    """The chosen radius: about four of five rows lie within."""
    # Theorem: as private as `mechanism`, whose sensitivity is `radius_sensitivity`; proof as
    #   for `median`.
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    scores = -np.maximum(0, np.maximum(_OF * below - _PART * many, _PART * many - _OF * upto))
    return float(radii(top)[::-1][mechanism.choose(scores.astype(np.int64), rng)])


# ── Centers and scales of columns ────────────────────────────────────────────────────────────────


ROUNDS = 3
BINS = 16
_MERGED = (1, 2, 4)
# The targets' part of the share: without their range nothing works.
_TARGETS = Fraction(1, 3)
# What is taken off the sum of bins, in deviations of its noise, before it is believed.
_DOUBT = 2.5
# A wrong range of the targets would be worse than a wide one.
_DOUBT_OF_TARGETS = 3.0
# Deviations of the noise beyond which a bin of its own surely holds rows.
_SURE = 3.5
# How much more a coarser stretch must hold than a finer one.
_CLEARLY = 1.25
# Zoom in if the bins that hold rows are at most so much of the window.
_NARROW = 0.5
# Bins that are kept on each side of those.
_EDGE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnScaling:
    """Declared centers and scales of columns: z = (x - center) / scale.

    They must come from public sources such as a code book, not from the private rows.

    Args:
        center: Center, one number for all columns or one per column.
        scale: Scale, one number for all columns or one per column.

    Examples:
        >>> from discreet.models import regression
        >>> regression.ColumnScaling(center=(40.0, 170.0), scale=(15.0, 10.0))
        ColumnScaling(center=(40.0, 170.0), scale=(15.0, 10.0))
    """

    center: float | tuple[float, ...] = 0.0
    scale: float | tuple[float, ...] = 1.0

    def arrays(self, columns: int) -> tuple[Floats, Floats]:
        """Return one center and one scale per column.

        Args:
            columns: Number of columns.

        Returns:
            Centers and scales.

        Raises:
            InvalidArgument: There is a wrong number of them, or one is too large or too small.

        Examples:
            >>> from discreet.models import regression
            >>> center, scale = regression.ColumnScaling(scale=2.0).arrays(3)
            >>> scale.tolist()
            [2.0, 2.0, 2.0]
        """
        center = np.asarray(self.center, dtype=np.float64)
        scale = np.asarray(self.scale, dtype=np.float64)
        for name, given in (("center", center), ("scale", scale)):
            if given.shape not in ((), (columns,)):
                raise InvalidArgument(f"{name} must be one number, or {columns} of them.")
        if not ((np.abs(center) < LARGEST) & (scale > 1 / LARGEST) & (scale < LARGEST)).all():
            raise InvalidArgument(
                f"center and scale must be below {LARGEST:g}, and scale above {1 / LARGEST:g}."
            )
        return np.broadcast_to(center, columns).copy(), np.broadcast_to(scale, columns).copy()


def midpoints(bounds: Bounds, *, columns: int) -> ColumnScaling:
    """The scaling to -1 and 1 between declared bounds."""
    lower, upper = bounds_of("bounds", bounds, columns=columns)
    center, scale = (lower + upper) / 2, (upper - lower) / 2
    return ColumnScaling(center=tuple(center.tolist()), scale=tuple(scale.tolist()))


def histogram_sensitivities(
    features: int, outputs: int, *, relation: NeighboringRelation, max_rows_per_unit: int = 1
) -> list[tuple[BudgetChange, Fraction]]:
    """How far a unit moves the histograms of features and of targets, in each round; and shares."""
    # Theorem: one row is in one bin of each column: adding it moves as many counts by one as there
    #   are columns, replacing it twice as many; m rows of a unit move them m times as far.
    times = count("max_rows_per_unit", max_rows_per_unit) ** 2
    if relation is not NeighboringRelation.ADD_REMOVE:
        times *= 2
    found = []
    for columns, part in ((features, 1 - _TARGETS), (outputs, _TARGETS)):
        move = BudgetChange(l1=columns * times, l2_squared=columns * times)
        found.append((move, part / ROUNDS))
    return found * ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivateScaling:
    """Privately found centers and spreads of all columns; those of the bounds if not ``seen``."""

    center: Floats
    scale: Floats
    seen: Flags
    rows: float
    """About how many rows there are, by the noisy counts of the targets."""


def private_scaling(
    rows: RowSource,
    *,
    lower: Floats,
    upper: Floats,
    noises: tuple[AdditiveMechanism, ...],
    rng: RandomSource,
) -> PrivateScaling:
    """Center and spread of each column, from noisy histograms that zoom in on its rows.

    A column whose rows the noise hides keeps its bounds: the guard against nonsense.
    """
    # Theorem: as private as the composition of `noises`; the windows of a round are functions of
    #   the noisy counts of the round before.
    # Needs: public outermost bounds; noises for `histogram_sensitivities`.
    low, high = lower.copy(), upper.copy()
    columns, size = len(low), BINS + 2
    doubts = np.where(np.arange(columns) < rows.features, _DOUBT, _DOUBT_OF_TARGETS)
    noisy, stds, times = np.zeros((columns, size)), np.zeros(columns), np.zeros(columns)
    # Where rows were surely seen that a later window leaves out: counts, and where.
    far = np.zeros((columns, 0)), np.zeros((columns, 0))
    for features, targets in zip(noises[::2], noises[1::2], strict=True):
        if times.any():
            before = low, high
            mean, std = noisy / times[:, None], stds / np.sqrt(times)
            low, high = _zoomed(mean, low, high, std, doubts)
            left = _left_behind(mean, before, (low, high), std)
            far = np.hstack((far[0], left[0])), np.hstack((far[1], left[1]))
            moved = (low != before[0]) | (high != before[1])
            noisy[moved], times[moved] = 0.0, 0.0
        counting = partial(_histograms, lower, upper, low, high)
        exact = rows.add_up(counting, start=empty(columns * size))
        first = rows.features * size
        parts = [
            features.release(exact[:first], rng=rng),
            targets.release(exact[first:], rng=rng),
        ]
        del exact
        # A window that stays is measured again, and the mean is taken.
        noisy += np.concatenate(parts).reshape(columns, size)
        times += 1
        stds[: rows.features], stds[rows.features :] = features.std, targets.std
    found = _spread(noisy / times[:, None], (low, high), stds / np.sqrt(times), doubts, far)
    # A window that was drawn in was seen before, even if its last histogram shows nothing.
    found = replace(found, rows=float((noisy / times[:, None])[rows.features :].sum(axis=1).mean()))
    return replace(found, seen=found.seen | (low > lower) | (high < upper))


def _left_behind(
    noisy: Floats, before: tuple[Floats, Floats], now: tuple[Floats, Floats], stds: Floats
) -> tuple[Floats, Floats]:
    """Counts of bins that the new windows leave out and that surely hold rows; their middles.

    So the ones of a rare level, or what is not zero in a column of zeros, are not forgotten.
    """
    low, high = before
    middles = low[:, None] + (np.arange(BINS) + 0.5) * ((high - low) / BINS)[:, None]
    outside = (middles < now[0][:, None]) | (middles > now[1][:, None])
    counts = noisy[:, 1:-1]
    return np.where(outside & (counts > _SURE * stds[:, None]), counts, 0.0), middles


def _histograms(
    lower: Floats, upper: Floats, low: Floats, high: Floats, x: Floats, y: Floats
) -> Ints:
    """Counts of all columns: below the window, in each of its bins, above it."""
    size = len(low) * (BINS + 2)
    # A hair less than so many bins a unit: the upper end belongs to the last bin.
    steps = BINS * (1 - 2.0**-40) / (high - low)
    # Beyond the bounds a value is at them: outside of the window only where that is narrower.
    first, last = np.where(low > lower, -1.0, 0.0), np.where(high < upper, BINS, BINS - 1.0)
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, len(x), CHUNK):
        columns = [*x[start : start + CHUNK].T, *y[start : start + CHUNK].T]
        held = np.empty((len(columns), len(columns[0])))
        # Column by column: one bound at a time is several times faster than a row of bounds.
        with np.errstate(over="ignore"):  # beyond the largest double is far away
            for place, (values, own) in enumerate(zip(held, columns, strict=True)):
                np.subtract(own, low[place], out=values)
                np.multiply(values, steps[place], out=values)
                np.floor(values, out=values)
                np.clip(values, first[place], last[place], out=values)
                np.add(values, place * (BINS + 2) + 1, out=values)
        total += np.bincount(held.ravel().astype(np.intp), minlength=size)
    return total


def _box(counts: Floats, *, std: float, doubt: float) -> tuple[int, int] | None:
    """The bins first..last that hold most rows; None if their sum might be noise.

    For bins by themselves, pairs and fours: the stretch whose sum is largest after each paid one
    deviation of its noise, so that noise alone does not extend it; of these the finest, unless a
    coarser one surely holds clearly more.
    """
    best, most = None, 0.0
    for size in _MERGED:
        merged = counts[1:-1].reshape(-1, size).sum(axis=1)
        paid = np.concatenate(([0.0], np.cumsum(merged - std * math.sqrt(size))))
        # The largest of what stands after each place.
        gains = np.maximum.accumulate(paid[:0:-1])[::-1] - paid[:-1]
        first = int(gains.argmax())
        if gains[first] <= 0:
            continue
        last = first + 1 + int((paid[first + 1 :] - paid[first]).argmax())
        surely = merged[first:last].sum() - doubt * std * math.sqrt(size * (last - first))
        if surely > _CLEARLY * most:
            best, most = (first * size, last * size - 1), surely
    return best


def _zoomed(
    noisy: Floats, low: Floats, high: Floats, stds: Floats, doubts: Floats
) -> tuple[Floats, Floats]:
    """The windows of the bins that surely hold rows, and one more on each side."""
    low, high = low.copy(), high.copy()
    for column, (counts, std) in enumerate(zip(noisy, stds, strict=True)):
        box = _box(counts, std=std, doubt=doubts[column])
        if box is None:
            continue
        width = (high[column] - low[column]) / BINS
        first, last = max(box[0] - _EDGE, 0), min(box[1] + 1 + _EDGE, BINS)
        if last - first <= _NARROW * BINS:
            low[column], high[column] = low[column] + first * width, low[column] + last * width
    return low, high


def _spread(
    noisy: Floats,
    window: tuple[Floats, Floats],
    stds: Floats,
    doubts: Floats,
    far: tuple[Floats, Floats],
) -> PrivateScaling:
    """Center and spread of the rows that are surely seen, else of the window."""
    low, high = window
    center, scale = (low + high) / 2, (high - low) / math.sqrt(12)
    seen = np.zeros(len(low), dtype=bool)
    for column, (counts, std) in enumerate(zip(noisy, stds, strict=True)):
        box = _box(counts, std=std, doubt=doubts[column])
        if box is None:
            continue
        seen[column] = True
        # Bins in the box that are likely to hold rows, and any others that surely do; what lies
        # outside of the window counts at its edge.
        least = np.full(BINS + 2, _SURE * std)
        least[box[0] : box[1] + 3] = std
        kept = np.where(counts > least, counts, 0.0)
        beyond, places = far[0][column], far[1][column]
        if beyond.any():
            # They are known better than as what lies outside of the window.
            kept[[0, -1]] = 0.0
        width = (high[column] - low[column]) / BINS
        middle = low[column] + np.clip(np.arange(-1, BINS + 1) + 0.5, 0, BINS) * width
        held, at = np.concatenate((kept, beyond)), np.concatenate((middle, places))
        weight = held / held.sum()
        center[column] = at[0] + float(weight @ (at - at[0]))
        variance = float(weight @ np.square(at - center[column])) + width**2 / 12
        scale[column] = math.sqrt(variance)
    return PrivateScaling(center=center, scale=scale, seen=seen, rows=0.0)


# ── From declarations to the map of rows ─────────────────────────────────────────────────────────


HowScaled: TypeAlias = Literal["bounds", "private"] | ColumnScaling

# Radius of the ball, in roots of the number of features (K35).
RADIUS = 0.75
# Rows that are weighted down lose what they know, rows that are projected lose less.
WEIGHTED_RADIUS = 1.25
# Targets are clipped so many deviations from their center, features twice as many.
_CLIP = 3.0
# And the further, one more deviation for ten times the signal, the less the noise weighs, where
# coefficients are to be read; from this signal on.
_ENOUGH = 100.0
# The least scale of a column, in declared ranges: of a column that is 0 or 1, and of others.
_LEAST_OF_FLAG = 0.5
_LEAST = 1e-3
# A box around known or found centers reaches so many deviations.
_BOX = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeclaredScaling:
    """Public bounds of features (infinite where there are none) and of targets."""

    lower: Floats
    upper: Floats
    target_lower: Floats
    target_upper: Floats
    scaling: HowScaled
    mapping: Mapping
    radius: float | None
    dimensions: float
    """About how many numbers a row has: fewer than columns, if some belong to one category."""


def declare(
    *,
    bounds: Bounds,
    target_bounds: Bounds,
    scaling: HowScaled,
    mapping: Mapping,
    radius: float | None,
    features: int,
    outputs: int,
    names: Sequence[str] | None,
) -> DeclaredScaling:
    """Check what is declared; nothing is read."""
    if mapping not in ("ball", "row", "box", "weighted"):
        raise InvalidArgument(
            f"mapping must be 'ball', 'weighted', 'box' or 'row', got {mapping!r}."
        )
    if not isinstance(scaling, ColumnScaling) and scaling not in ("bounds", "private"):
        raise InvalidArgument(f"scaling must be 'bounds', 'private' or a Scaling, got {scaling!r}.")
    if target_bounds is None:
        raise InvalidArgument("target_bounds must be declared: (lower, upper) of the target.")
    target = bounds_of("target_bounds", target_bounds, columns=outputs)
    if bounds is not None:
        lower, upper = bounds_of("bounds", bounds, columns=features, names=names)
    elif isinstance(scaling, ColumnScaling):
        lower, upper = np.full(features, -np.inf), np.full(features, np.inf)
    else:
        raise InvalidArgument(
            "bounds must be declared: (lower, upper) of each feature. Only with a declared scaling "
            "may a feature be unbounded."
        )
    if isinstance(scaling, ColumnScaling):
        scaling.arrays(features)
    if radius is not None and not 1 / LARGEST < positive("radius", radius) < LARGEST:
        raise InvalidArgument(f"radius must be within {1 / LARGEST:g} and {LARGEST:g}.")
    return DeclaredScaling(
        lower=lower,
        upper=upper,
        target_lower=target[0],
        target_upper=target[1],
        scaling=scaling,
        mapping=mapping,
        radius=radius,
        dimensions=float(features),
    )


def row_map(
    rows: RowSource,
    plan: SufficientStatisticsPlan,
    *,
    declared: DeclaredScaling,
    rng: RandomSource,
) -> RowMap:
    """The map of rows: by declared constants alone, or by a private scaling that the plan pays."""
    d = rows.features
    lower, upper = declared.lower, declared.upper
    target = declared.target_lower, declared.target_upper
    if isinstance(declared.scaling, ColumnScaling):
        center, scale = declared.scaling.arrays(d)
    elif declared.scaling == "private":
        found = private_scaling(
            rows,
            lower=np.concatenate((lower, target[0])),
            upper=np.concatenate((upper, target[1])),
            noises=plan.scaling,
            rng=rng,
        )
        center, scale = found.center[:d], np.maximum(found.scale[:d], least_scale(lower, upper))
        reach_of_target = _CLIP
        if declared.mapping == "weighted":
            # No row is moved: rows far off are weighted, within their declared bounds.
            reach_of_target += float(np.clip(math.log10(_signal(found, plan)), 0.0, _CLIP))
        else:
            lower, upper = _around(lower, upper, center, 2 * _CLIP * scale, np.ones(d, dtype=bool))
        target = _around(
            *target, found.center[d:], reach_of_target * found.scale[d:], found.seen[d:]
        )
    else:
        center, scale = (lower + upper) / 2, (upper - lower) / 2
    if declared.mapping == "box":
        if declared.scaling != "bounds":
            # Two-sided clipping to tight bounds (K25): noise is then that of the bounds.
            clip = _BOX if declared.radius is None else float(declared.radius)
            lower, upper = _around(lower, upper, center, clip * scale, np.ones(d, dtype=bool))
        reach = box_radius(lower, upper, center, scale)
    else:
        usual = WEIGHTED_RADIUS if declared.mapping == "weighted" else RADIUS
        reach = math.sqrt(declared.dimensions) * (
            usual if declared.radius is None else float(declared.radius)
        )
    return RowMap(
        lattice=plan.lattice,
        mapping=declared.mapping,
        lower=lower,
        upper=upper,
        center=center,
        scale=scale,
        radius=reach,
        target_center=(target[0] + target[1]) / 2,
        target_half=(target[1] - target[0]) / 2,
    )


def _signal(found: PrivateScaling, plan: SufficientStatisticsPlan) -> float:
    """Rows in deviations of the noise and roots of the columns, in multiples of what is enough."""
    noise = plan.sigma * math.sqrt(plan.lattice.columns)
    return max(found.rows / (noise * _ENOUGH), 1.0)


def least_scale(lower: Floats, upper: Floats) -> Floats:
    """The least scale that is believed of each column, by its declared bounds.

    A column between two neighboring whole numbers is taken as one of yes and no: however few say
    yes, half of that step is its scale, so that they are not far away.
    """
    flag = (upper - lower == 1) & (lower == np.rint(lower))
    return np.asarray((upper - lower) * np.where(flag, _LEAST_OF_FLAG, _LEAST))


def _around(
    lower: Floats, upper: Floats, center: Floats, reach: Floats, seen: Flags
) -> tuple[Floats, Floats]:
    """The bounds, drawn in to ``reach`` from the centers of columns that were seen."""
    low = np.where(seen, np.maximum(lower, center - reach), lower)
    high = np.where(seen, np.minimum(upper, center + reach), upper)
    return low, high
