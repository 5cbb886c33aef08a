"""Private gradient descent: exact clipped sums of a secret sample, noise in whole numbers.

Each step draws every record independently with probability ``rate``, adds up the clipped gradients
of the drawn ones as whole numbers, adds Gaussian noise that is rounded to whole numbers, and takes
a step along the result. All else (momentum, averages, the penalty) is post-processing. The number
of steps is fixed before the first record is read; nothing stops a run early.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from discreet.core._validate import positive
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain, Unsupported
from discreet.mechanisms._drawn import MANY, EvenWords, moves
from discreet.mechanisms.additive import AdditiveMechanism, gaussian
from discreet.mechanisms.mechanism import DrawCheck
from discreet.models._model_inputs import Bounds, Floats, bounds_of
from discreet.models.dp_sgd.losses import Huber, Logistic, Loss, Norm, Softmax, Squared
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.random_source import RandomSource

# ── Features on a public grid ────────────────────────────────────────────────────────────────────
# A row is clipped to its bounds, scaled, led by a constant 1 for the intercept, rounded to steps
# of ``2**-FEATURE_BITS`` and, if it is longer than ``row_norm``, shrunk to that length.
#
# Everything is a function of one row alone, bit by bit: elementwise operations of IEEE 754, and
# sums of whole numbers below 2**53, which are exact in every order. So what a record contributes
# later cannot depend on where it stands, nor on its neighbors in memory.


FEATURE_BITS = 13
"""Steps in one unit of a scaled feature: 2**13, so that 16 bits hold it."""
Steps: TypeAlias = NDArray[np.int16]
"""Mapped rows, in steps."""
_CHUNK = 1 << 13
_NARROWEST = 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMap:
    """How a row is clipped, scaled, rounded and shrunk; the same for fitting and predicting."""

    lower: Floats
    upper: Floats
    center: Floats
    scale: Floats
    intercept: bool
    row_norm: float

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        *,
        columns: int,
        names: Sequence[str] | None,
        intercept: bool,
        row_norm: float,
    ) -> FeatureMap:
        """The map of declared bounds.

        Columns whose bounds hold zero keep it (so 0/1 columns stay 0/1) and are divided by the
        larger bound; others are moved to -1 ... 1.
        """
        if bounds is None:
            raise InvalidArgument(
                "bounds must be declared: (lower, upper) for all columns, or for each. They are "
                "never taken from the data."
            )
        lower, upper = bounds_of("bounds", bounds, columns=columns, names=names)
        kept = (lower <= 0) & (upper >= 0)
        scale = np.where(kept, np.maximum(-lower, upper), upper / 2 - lower / 2)
        if not (scale >= _NARROWEST * np.maximum(np.abs(lower), np.abs(upper))).all():
            raise InvalidArgument("bounds must be further apart: doubles hardly tell them apart.")
        return cls(
            lower=lower,
            upper=upper,
            center=np.where(kept, 0.0, lower / 2 + upper / 2),
            scale=scale,
            intercept=intercept,
            row_norm=float(positive("row_norm", row_norm)),
        )

    @property
    def width(self) -> int:
        """Columns of the mapped rows."""
        return len(self.lower) + self.intercept

    def steps(self, x: Floats) -> Steps:
        """Mapped rows as whole numbers of ``2**-FEATURE_BITS``, each at most that many in size.

        A missing value is the center of its column. The array is made chunk by chunk.
        """
        out = np.empty((len(x), self.width), dtype=np.int16)
        for start in range(0, len(x), _CHUNK):
            scaled = np.clip(x[start : start + _CHUNK], self.lower, self.upper)
            np.copyto(scaled, self.center, where=np.isnan(scaled))
            rows = np.full((len(scaled), self.width), 2.0**FEATURE_BITS)
            scaled -= self.center
            scaled /= self.scale
            scaled *= 2.0**FEATURE_BITS
            np.rint(scaled, out=rows[:, self.intercept :])
            self._shrink(rows)
            out[start : start + _CHUNK] = rows
        return out

    def rows(self, x: Floats) -> Floats:
        """Mapped rows in units."""
        return in_units(self.steps(x))

    def _shrink(self, rows: Floats) -> None:
        limit = self.row_norm * 2.0**FEATURE_BITS
        squares = squared_norms(rows)
        long = np.flatnonzero(squares > limit * limit)
        if long.size:
            factor = limit / np.sqrt(squares[long])
            rows[long] = np.trunc(rows[long] * factor[:, None])

    def in_units(self, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts for features in their own units, one row a margin.

        ``X @ coefficients.T + intercepts`` are the margins of rows inside of all bounds.
        """
        blocks = theta.reshape(-1, self.width)
        slopes = blocks[:, self.intercept :] / self.scale
        starts = blocks[:, 0] if self.intercept else np.zeros(len(blocks))
        return slopes, starts - slopes @ self.center


def in_units(steps: Steps) -> Floats:
    """Mapped rows in units instead of steps."""
    return np.multiply(steps, 2.0**-FEATURE_BITS, dtype=np.float64)


def squared_norms(rows: Floats) -> Floats:
    """Squared length of each row of whole numbers, exactly (below 2**53 for 2**27 columns)."""
    result: Floats = np.einsum("ij,ij->i", rows, rows)
    return result


def usual_norm(columns: int, *, intercept: bool) -> float:
    """A length that few rows pass: ``sqrt(1 + columns/8)``, from the number of columns alone.

    Rows of 0/1 columns, most of them 0, and of numbers whose bounds are a few deviations away are
    shorter. Rows that are longer keep their direction, which is all that a linear classifier sees.
    """
    return math.sqrt(intercept + columns / 8) if intercept else math.sqrt(max(1.0, columns / 8))


# ── Rounding errors of gradients ─────────────────────────────────────────────────────────────────
# Theorems about sensitivity speak of exact arithmetic. Their sensitivities are enlarged by what
# rounding can add, so that what is claimed is true of what is computed. Rows are whole numbers of
# a public unit and parameters have two pieces of few bits, so that margins are exact but for one
# addition.


# Twice the unit of rounding, which leaves room for terms of the second order.
UNIT = 2.0**-52
# Rows summed at once, in any order; the sums of these are added without rounding.
CHUNK = 1 << 10
# Bits of an entry of a row, and of an exact sum of products.
ROW_BITS = 20
_SUM_BITS = 52
_FEWEST_BITS = 15
# Numbers in a table; where the number of rows is private, bounds hold for all tables up to here.
_MOST_CELLS = 1 << 33


def clipped_rows(x: Floats, row_norm: float, *, norm: Norm = "l2", bits: int = ROW_BITS) -> Floats:
    """Rows shrunk to the declared length, each by itself, on a public grid (toward zero)."""
    if x.size > _MOST_CELLS:
        raise OutOfDomain("X is too large for a fit in memory: at most 2**33 numbers.")
    exponent = bits - math.frexp(row_norm)[1]
    rows: Floats = np.empty_like(x)
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK]
        # By the largest entry first: squares of any doubles then neither vanish nor overflow.
        top = np.maximum(np.abs(part).max(axis=1), np.finfo(np.float64).tiny)
        unit = part / top[:, None]
        # A row of zeros stays one, whatever its length is taken for.
        norms = np.maximum(_lengths(unit, norm), 0.5)
        most = row_norm / norms
        shrunk = np.where((top > most)[:, None], unit * most[:, None], part)
        rows[start : start + CHUNK] = np.ldexp(np.trunc(np.ldexp(shrunk, exponent)), -exponent)
    return rows


def _lengths(rows: Floats, norm: Norm) -> Floats:
    """The norm of each row, column by column: the same bits wherever a row stands.

    NumPy's own sums may take another order for a single row than for many.
    """
    total = np.zeros(len(rows))
    for column in rows.T:
        total += np.abs(column) if norm == "l1" else column * column
    return total if norm == "l1" else np.sqrt(total)


def widened(row_norm: float, features: int) -> float:
    """A bound on the true length of `clipped_rows`."""
    return row_norm * (1 + (2 * features + 8) * UNIT)


def largest_share(rows: int, features: int) -> float:
    """How many times more records than ``rows`` there can be."""
    return max(1.0, _MOST_CELLS / features / rows)


def representable(theta: Floats, features: int) -> Floats:
    """Parameters rounded to two pieces: each by at most `piece_error` of the largest."""
    first, second = _pieces(theta, features)
    return first + second


def piece_error(features: int) -> float:
    """What `representable` may take from a parameter, in units of the largest."""
    return 2.0 ** (-2 * _piece_bits(features))


def _piece_bits(features: int) -> int:
    bits = _SUM_BITS - ROW_BITS - math.ceil(math.log2(features + 1))
    if bits < _FEWEST_BITS:
        raise InvalidArgument("features must be at most 2**16: margins would not be exact.")
    return bits


def _pieces(theta: Floats, features: int) -> tuple[Floats, Floats]:
    """The leading bits of parameters, and the bits after them."""
    bits = _piece_bits(features)
    place = bits - math.frexp(float(np.abs(theta).max()))[1]
    first = np.ldexp(np.rint(np.ldexp(theta, place)), -place)
    second = np.ldexp(np.rint(np.ldexp(theta - first, place + bits)), -place - bits)
    return first, second


def exact_margins(objective: Loss, theta: Floats, rows: Floats) -> Floats:
    """Margins, exact but for one addition: the same for a row wherever it stands."""
    first, second = _pieces(theta, rows.shape[1])
    return objective.margins(first, rows) + objective.margins(second, rows)


def data_gradient(objective: Loss, theta: Floats, x: Floats, y: Floats) -> Floats:
    """The sum of the records' gradients without the penalty, as `gradient_error` assumes."""
    # Needs: rows from `clipped_rows`, parameters that are `representable`.
    parts = []
    for start in range(0, len(x), CHUNK):
        rows = x[start : start + CHUNK]
        slopes = objective.slopes(exact_margins(objective, theta, rows), y[start : start + CHUNK])
        parts.append((slopes.reshape(len(rows), objective.outputs).T @ rows).ravel())
    if not parts:
        return np.zeros_like(theta)
    return np.array([math.fsum(column) for column in np.stack(parts, axis=1)])


def gradient_error(objective: Loss, *, row_norm: float, radius: float, share: float) -> float:
    """A bound on the L2 error of ``data_gradient / rows`` plus the penalty's gradient.

    For parameters within ``radius`` of zero, rows of length up to ``row_norm`` and at most
    ``share`` times as many records as they are divided by.
    """
    # Proof: margins are a sum of two exact numbers (error u ||x|| ||theta||, twice that for the two
    #   pieces); slopes move by the curvature times that, and by a few units for their own
    #   evaluation; a chunk's sum errs by at most CHUNK u times the sum of the norms, in any order
    #   (Higham 2002, section 3.1).
    slope = objective.slope_bound("l2")
    margin = 2 * UNIT * row_norm * radius
    slope_error = objective.curvature * margin + 16 * (objective.outputs + 1) * UNIT * (1 + slope)
    record = row_norm * (slope_error + (CHUNK + 4) * UNIT * slope)
    return share * record + 8 * UNIT * objective.l2 * radius


# ── Clipped slopes as whole numbers ──────────────────────────────────────────────────────────────
# The gradient of a record is its slope times its row. The row is whole already; here the slope
# gets whole, and short enough that the product is at most ``sensitivity`` long. Sums of such
# products are exact in any order, and the bound on one record's share holds in integers, not up to
# rounding.
#
# Margins come as exact numbers on a grid. Exponentials are looked up in tables, because a
# vectorized exponential may round the same number differently at different places of an array;
# then a record could change what others contribute.


Slopes: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""From margins, targets and caps to whole slopes, none longer than its cap."""

# Bits of the longest contribution; sums of 2**22 of them stay below 2**53.
_SHARE_BITS = 30
# Beyond this margin a logistic slope is flat; inside it, slopes are read off every 2**-11.
_REACH = 16
_TABLE_BITS = 11
_WEIGHT_BITS = 40
# Weights of this many classes can be added up exactly.
_MOST_CLASSES = 4096
# Squares of slopes of this many bits can be added up exactly.
_FINEST = 22
# Less than all that rounding can add in a root, a quotient and a product.
_SAFE = 1 - 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeGrid:
    """The steps of slopes and of gradients for a clipping norm, all powers of two."""

    clip: float

    def __post_init__(self) -> None:
        if not 2.0**-16 <= float(positive("clip", self.clip)) <= 2.0**16:
            raise InvalidArgument(f"clip must lie in 2**-16 ... 2**16, got {self.clip}.")

    @property
    def slope_bits(self) -> int:
        """Steps in a unit of slope, as a power of two."""
        return min(_FINEST, _SHARE_BITS - FEATURE_BITS - math.ceil(math.log2(self.clip)))

    @property
    def unit(self) -> float:
        """The step of a gradient."""
        return 2.0 ** -(FEATURE_BITS + self.slope_bits)

    @property
    def sensitivity(self) -> int:
        """The longest contribution of a record in steps: at most ``clip``."""
        return math.floor(self.clip / self.unit)

    def caps(self, steps: Steps) -> Floats:
        """The longest whole slope of each row whose product with it is short enough."""
        # Theorem: `caps**2 * |row|**2 <= sensitivity**2` in whole numbers.
        # Proof: the quotient and the root are off by less than 2**-51 in parts; the factor below
        #   one takes 2**-40 off; floor takes the rest.
        squares = np.empty(len(steps))
        for start in range(0, len(steps), _CHUNK):
            rows = steps[start : start + _CHUNK].astype(np.float64)
            squares[start : start + _CHUNK] = squared_norms(rows)
        # An empty row contributes nothing, whatever its slope.
        lengths = np.sqrt(np.maximum(squares, 1.0))
        return np.where(squares > 0, np.floor(self.sensitivity / lengths * _SAFE), 0.0)


def whole_slopes(objective: Loss, grid: SlopeGrid) -> Slopes:
    """The slopes of an objective in steps of ``2**-slope_bits``."""
    unit = 2.0**grid.slope_bits
    match objective:
        case Logistic():
            return lambda margins, targets, caps: _logistic(margins, targets, caps, unit=unit)
        case Huber(huber_threshold=knee):
            limit = math.floor(knee * unit)
            return lambda margins, targets, caps: _weighted(
                np.clip(margins - targets, -knee, knee) * unit, caps, longest=limit
            )
        case Squared(weight=weight):
            return lambda margins, targets, caps: np.clip(
                np.rint((margins - targets) * (weight * unit)), *_both(caps)
            )
        case Softmax(classes=classes) if classes <= _MOST_CLASSES:
            return lambda margins, targets, caps: _softmax(margins, targets, caps, unit=unit)
        case _:
            raise Unsupported(
                f"{type(objective).__name__} has no slopes in whole numbers; train Logistic, "
                f"Softmax of up to {_MOST_CLASSES} classes, Huber or Squared."
            )


def _both(caps: Floats) -> tuple[Floats, Floats]:
    return -caps, caps


def _weighted(slopes: Floats, caps: Floats, *, longest: float) -> Floats:
    """Whole slopes, those of a row multiplied by one factor that makes the longest short enough.

    The factor depends on the row's features alone: a gradient is not cut, which would move the
    solution, but its row weighs less.
    """
    weights = np.minimum(1.0, caps / longest)
    found: Floats = np.clip(np.rint(slopes * weights), *_both(np.minimum(caps, longest)))
    return found


def _places(margins: Floats) -> Floats:
    ends = _REACH * 2.0**_TABLE_BITS
    return np.clip(np.rint(margins * 2.0**_TABLE_BITS), -ends, ends)


def _logistic(margins: Floats, targets: Floats, caps: Floats, *, unit: float) -> Floats:
    places = _places(margins).astype(np.intp)
    places += _REACH << _TABLE_BITS
    slopes = _logistic_table(unit)[places]
    slopes -= targets * unit
    return _weighted(slopes, caps, longest=unit)


def _softmax(margins: Floats, targets: Floats, caps: Floats, *, unit: float) -> Floats:
    below = _places(margins - margins.max(axis=1, keepdims=True)).astype(np.intp)
    weights = _exponential_table()[-below]
    # Whole weights below 2**40: their sum is exact, every quotient correctly rounded.
    slopes: Floats = np.rint(weights / weights.sum(axis=1, keepdims=True) * unit)
    slopes[np.arange(len(slopes)), targets.astype(np.intp)] -= unit
    # As `_weighted`: a factor of the row alone, and a check for what rounding does.
    weights = np.minimum(1.0, caps / (math.sqrt(2) * unit))
    slopes = np.rint(slopes * weights[:, None])
    squares = squared_norms(slopes)
    long = np.flatnonzero(squares > caps * caps)
    if long.size:
        factor = caps[long] / np.sqrt(squares[long]) * _SAFE
        slopes[long] = np.trunc(slopes[long] * factor[:, None])
    return slopes


@lru_cache(maxsize=16)
def _logistic_table(unit: float) -> Floats:
    """``1 / (1 + e^-z)`` in steps, for z on a grid from one end of the reach to the other."""
    ends = _REACH << _TABLE_BITS
    table: Floats = np.rint(expit(np.arange(-ends, ends + 1) * 2.0**-_TABLE_BITS) * unit)
    return table


@lru_cache(maxsize=1)
def _exponential_table() -> Floats:
    """``e^-z`` in steps of 2**-40, for z >= 0; whatever happens, a class keeps a little."""
    z = np.arange((_REACH << _TABLE_BITS) + 1) * 2.0**-_TABLE_BITS
    table: Floats = np.rint(np.exp(-z) * 2.0**_WEIGHT_BITS)
    return table


# ── Training ─────────────────────────────────────────────────────────────────────────────────────


RATE_BITS = 32
"""Sampling rates are multiples of 2**-32, so that coins of exactly that probability exist."""

# Rows multiplied at once (they stay in the cache); noise and coins drawn at once.
_ROWS = 1 << 10
_NOISE = 1 << 20
_COINS = 1 << 25
_FINEST_PARAMETER = 26
# Sums are cut to this range and noisy sums are cut to it: noise that was itself cut, at twice the
# range, then shows nothing of the sum.
RANGE = 1 << 61
# Seed of the records that a certificate makes up.
_MADE_UP = 2026


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """All public choices of a run, fixed before a record is read."""

    objective: Loss
    rate: Fraction
    steps: int
    noise: Fraction
    """Standard deviation of the noise in units of ``clip``: the noise multiplier."""
    clip: float
    rows: float
    """The number of records that sums are divided by: declared, public or paid for."""
    learning_rate: float
    momentum: float = 0.0
    average: float = 0.0
    """Share of the steps, counted from the end, whose parameters are averaged; 0: the last."""

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise of one step, on an integer vector that one record moves by ``clip``."""
        # Theorem: rounded Gaussian noise is a post-processing of the Gaussian mechanism with
        #   `noise` times the sensitivity: each step costs `GaussianEvent(noise)`, sampled.
        # Proof: the vector is whole, so rounding after the addition and adding rounded noise are
        #   the same; one record's share has a length of at most `sensitivity` (see `SlopeGrid`).
        return gaussian(
            sensitivity=SlopeGrid(clip=self.clip).sensitivity, mu=1 / self.noise, domain="integers"
        )


def descend(steps: Steps, targets: Floats, *, run: TrainingRun, rng: RandomSource) -> Floats:
    """The parameters after a run on mapped rows (see `features`) and their targets."""
    # Theorem: the parameters cost `run.steps` times `SampledEvent(rate, GaussianEvent(noise))`
    #   under add/remove, whatever the rows.
    # Proof: given the parameters so far, a step is the mechanism of `TrainingRun` on a Poisson
    #   sample; the parameters are a function of the noisy sums (adaptive composition,
    #   post-processing).
    # Source: Abadi et al. 2016; C43, C45.
    # Needs: targets that the objective understands, one for each row; a private random source for a
    #   release.
    batch = Batch(steps=steps, targets=targets, run=run)
    draws = _draws(len(steps), run.objective.dimension(steps.shape[1]), run, rng)

    def noisy_sum(theta: Floats) -> NDArray[np.int64]:
        chosen, noise = next(draws)
        # The ends of the range for what is beyond: it brings sums of neighbors no further apart.
        return np.clip(batch.sum(theta, chosen), -RANGE, RANGE) + noise

    return follow(noisy_sum, run=run, features=steps.shape[1])


def follow(
    noisy_sum: Callable[[Floats], NDArray[np.int64]], *, run: TrainingRun, features: int
) -> Floats:
    """The parameters after a run along noisy sums of gradients: post-processing of them."""
    scale = SlopeGrid(clip=run.clip).unit / (float(run.rate) * run.rows)
    theta = np.zeros(run.objective.dimension(features))
    velocity, total = np.zeros_like(theta), np.zeros_like(theta)
    first = min(run.steps - 1, run.steps - math.floor(run.average * run.steps))
    for step in range(run.steps):
        noisy = np.clip(noisy_sum(theta), -RANGE, RANGE) * scale
        velocity = run.momentum * velocity + noisy + run.objective.penalty_gradient(theta)
        theta = theta - run.learning_rate * velocity
        if not np.abs(theta).max() < 2.0**40:
            raise NotCertified("The steps diverge: take a smaller learning_rate.")
        if step >= first:
            total += theta
    return total / (run.steps - first)


def _draws(
    rows: int, width: int, run: TrainingRun, rng: RandomSource
) -> Iterator[tuple[NDArray[np.intp] | None, NDArray[np.int64]]]:
    """For each step the rows that are drawn (None: all) and its noise; many steps at a time."""
    mechanism = run.mechanism
    most = max(1, min(_NOISE // width, _COINS // max(rows, 1)))
    for start in range(0, run.steps, most):
        count = min(most, run.steps - start)
        # Noise on zeros is noise: the sums are whole, so that it can be added to them later.
        noise = mechanism.release(np.zeros((count, width), dtype=np.int64), rng=rng)
        if run.rate == 1 or not rows:
            yield from ((None, part) for part in noise)
            continue
        coins = packed_bernoulli(run.rate, rows=count, columns=rows, rng=rng)
        for packed, part in zip(coins, noise, strict=True):
            drawn = np.unpackbits(packed, count=rows, bitorder="little")
            yield np.flatnonzero(drawn.view(np.bool_)), part


class Batch:
    """The rows with their caps, and exact sums of clipped gradients over some of them."""

    def __init__(self, *, steps: Steps, targets: Floats, run: TrainingRun) -> None:
        grid = SlopeGrid(clip=run.clip)
        if len(steps) * grid.sensitivity >= 1 << 63:
            raise OutOfDomain("X has too many rows for exact sums: at most 2**33.")
        self.steps, self.targets = steps, targets
        self.caps = grid.caps(steps)
        self.slopes = whole_slopes(run.objective, grid)
        self.objective = run.objective
        # Where drawn rows are gathered: fetched short, multiplied as doubles, in the cache.
        self._short = np.empty((_ROWS, steps.shape[1]), dtype=np.int16)
        self._rows = np.empty(self._short.shape)

    def sum(self, theta: Floats, chosen: NDArray[np.intp] | None) -> NDArray[np.int64]:
        """The sum of the clipped gradients of the chosen rows, in steps, exactly."""
        whole, exponent = rounded_parameters(theta, self.steps.shape[1])
        total = np.zeros(len(theta), dtype=np.int64)
        count = len(self.steps) if chosen is None else len(chosen)
        for start in range(0, count, len(self._rows)):
            part = slice(start, min(start + len(self._rows), count))
            picked = part if chosen is None else chosen[part]
            rows = self._gathered(picked)
            # Whole numbers below 2**53 all the way: exact, however the products are added up.
            margins = np.ldexp(self.objective.margins(whole, rows), -FEATURE_BITS - exponent)
            slopes = self.slopes(margins, self.targets[picked], self.caps[picked])
            total += (slopes.T @ rows).ravel().astype(np.int64)
        return total

    def _gathered(self, picked: slice | NDArray[np.intp]) -> Floats:
        if isinstance(picked, slice):
            short = self.steps[picked]
        else:
            short = self._short[: len(picked)]
            np.take(self.steps, picked, axis=0, out=short, mode="clip")
        rows = self._rows[: len(short)]
        rows[:] = short
        return rows


def record_looks(run: TrainingRun, *, features: int) -> tuple[DrawCheck, ...]:
    """What one record adds to the sum of a step, at most, and the noise that a step gets.

    For certificates: made-up records of full length, at parameters near and far from zero.
    """
    width = run.objective.dimension(features)
    longest = 0.0
    generator = np.random.Generator(np.random.Philox(_MADE_UP))
    for size in (0.0, 1.0, 2.0**20):
        theta = size * generator.standard_normal(width)
        for target in (0.0, 1.0):
            for scale in (1, 1 << FEATURE_BITS):
                row = generator.integers(-scale, scale, (1, features), endpoint=True)
                made = Batch(steps=row.astype(np.int16), targets=np.array([target]), run=run)
                total = made.sum(theta, None).astype(np.float64)
                longest = max(longest, float(np.square(total).sum()))
    mechanism = run.mechanism
    ((_, noise),) = _draws(0, MANY, replace(run, steps=1), EvenWords())
    exact = mechanism.release(np.zeros((1, MANY), dtype=np.int64), rng=EvenWords())[0]
    return (
        moves("squared length of a record's gradient", longest, float(mechanism.sensitivity)),
        DrawCheck(
            part="noise of a step",
            found=float(np.count_nonzero(noise != exact)),
            allowed=0.0,
            route=f"of {MANY} entries, those that are not the noise of its mechanism",
        ),
    )


def rounded_parameters(theta: Floats, width: int) -> tuple[Floats, int]:
    """Parameters in whole steps of ``2**-exponent``, and that exponent: margins are exact then."""
    exponent = _exponent(theta, width)
    return np.rint(np.ldexp(theta, exponent)), exponent


def _exponent(theta: Floats, width: int) -> int:
    """Bits after the point of rounded parameters, few enough that margins are exact."""
    largest = max(1.0, float(np.abs(theta).max()))
    room = 52 - FEATURE_BITS - math.ceil(math.log2(width)) - math.ceil(math.log2(largest))
    return min(_FINEST_PARAMETER, room)
