"""Counting a stream with Gaussian noise by a buffered linear Toeplitz (BLT) matrix.

Released is ``y = F(x) + z`` on a grid of 2**-24: F is a BLT matrix, with its constants rounded to
integers, applied in chunks of 128 steps. Inside a chunk it is an integer product; what came before
enters through a few buffers in fixed point, which move on once per chunk. F is not quite linear,
because fixed point rounds down; how far that can take two neighbors apart is added to the
sensitivity. All that follows, the inverse and its prefix sums, reads y alone: post-processing.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.ranges.stream.tree_counter import LARGEST_COUNT, StreamUpdate

# ── Parameters ───────────────────────────────────────────────────────────────────────────────────
# For horizons of 4, 8, ..., 2**27 steps. Found once by minimizing the largest error (BFGS, then
# Nelder and Mead, in log(omega) and log(1 / theta - 1)) and kept as digits: a stream must find the
# same matrix on every machine and after every update. The largest error is within a thousandth of
# that of the square root.


# fmt: off
PARAMETERS: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    # omega, 1 - theta
    ((0.492364,), (0.213024,)),
    ((0.173678, 0.325977), (0.577914, 0.0723644)),
    ((0.227183, 0.270984), (0.468317, 0.0456209)),
    ((0.276163, 0.216679), (0.361531, 0.0270571)),
    ((0.182307, 0.182594, 0.134321), (0.532468, 0.124634, 0.010573)),
    ((0.223535, 0.170762, 0.103097), (0.451805, 0.0818596, 0.00602517)),
    ((0.168013, 0.168943, 0.0966074, 0.0659212), (0.558925, 0.149884, 0.0300941, 0.00252358)),
    ((0.200049, 0.166579, 0.0821991, 0.0497458), (0.496761, 0.108975, 0.0184334, 0.00140826)),
    ((0.230564, 0.160049, 0.0689717, 0.0371566), (0.437201, 0.0781637, 0.0110991, 0.000770685)),
    (
        (0.185861, 0.16749, 0.0826311, 0.0388235, 0.0242416),
        (0.524203, 0.126155, 0.0243734, 0.00425939, 0.000336379),
    ),
    (
        (0.211122, 0.164249, 0.0732577, 0.0314288, 0.0179678),
        (0.475266, 0.0971484, 0.0161665, 0.00248019, 0.000182095),
    ),
    (
        (0.176266, 0.167882, 0.0857489, 0.0389787, 0.0185205, 0.011892),
        (0.542798, 0.138751, 0.028428, 0.00553674, 0.00100505, 8.13446e-05),
    ),
    (
        (0.197667, 0.16633, 0.0780222, 0.0331734, 0.0146758, 0.00876876),
        (0.501353, 0.111916, 0.0202265, 0.00350469, 0.000572838, 4.36939e-05),
    ),
    (
        (0.218349, 0.162773, 0.0704067, 0.028056, 0.0115754, 0.00643528),
        (0.461183, 0.089819, 0.0143273, 0.00220709, 0.000323973, 2.32524e-05),
    ),
    (
        (0.187857, 0.167325, 0.0815758, 0.0356329, 0.01531, 0.0069723, 0.00430362),
        (0.520343, 0.123664, 0.0236818, 0.00434291, 0.000787906, 0.000135009, 1.05826e-05),
    ),
    (
        (0.205974, 0.165139, 0.074972, 0.0309811, 0.0126376, 0.00542356, 0.00314783),
        (0.48526, 0.102627, 0.0176518, 0.00292527, 0.000480837, 7.52597e-05, 5.60356e-06),
    ),
    (
        (0.180384, 0.167767, 0.0842707, 0.0376458, 0.0164537, 0.00719291, 0.00335449, 0.0021213),
        (0.534832, 0.133237, 0.0266518, 0.00509228, 0.000964593, 0.000181846, 3.22859e-05,
         2.58162e-06),
    ),
    (
        (0.196469, 0.166477, 0.078455, 0.033374, 0.0139487, 0.00583028, 0.00258055, 0.00154698),
        (0.503674, 0.113306, 0.0206248, 0.00360627, 0.0006261, 0.000108316, 1.77855e-05,
         1.36068e-06),
    ),
    (
        (0.212102, 0.164059, 0.0727117, 0.0294864, 0.011787, 0.00471164, 0.00198045, 0.00112512),
        (0.473371, 0.0961354, 0.0159349, 0.00254992, 0.000405628, 6.43553e-05, 9.75551e-06,
         7.1335e-07),
    ),
    (
        (0.188841, 0.16727, 0.0812374, 0.0353752, 0.0150891, 0.00640968, 0.00272896, 0.00123499,
         0.000760604),
        (0.518455, 0.122433, 0.0232995, 0.00424376, 0.00076593, 0.000137953, 2.4779e-05,
         4.22162e-06, 3.30538e-07),
    ),
    (
        (0.203228, 0.16554, 0.075996, 0.0316647, 0.0129822, 0.00531402, 0.00217825, 0.00094344,
         0.000553378),
        (0.490546, 0.105654, 0.0184798, 0.00311106, 0.000520824, 8.70993e-05, 1.45297e-05,
         2.3092e-06, 1.73484e-07),
    ),
    (
        (0.18394, 0.17074, 0.0828788, 0.0355979, 0.01497, 0.00628648, 0.00272923, 0.00118699,
         0.000525086, 0.000334275),
        (0.530735, 0.126657, 0.0235993, 0.00421922, 0.000753963, 0.000137883, 2.57007e-05,
         4.63007e-06, 7.90103e-07, 6.50485e-08),
    ),
    (
        (0.198614, 0.165196, 0.0776898, 0.0331391, 0.0139007, 0.0058036, 0.00242419, 0.00101518,
         0.000451475, 0.000272221),
        (0.498405, 0.111399, 0.0203557, 0.00358193, 0.000625481, 0.000109056, 1.9024e-05,
         3.31402e-06, 5.48555e-07, 4.21843e-08),
    ),
    (
        (0.207966, 0.164833, 0.0743242, 0.0304674, 0.012288, 0.0049603, 0.00199386, 0.000805067,
         0.000342301, 0.000197149),
        (0.481405, 0.100476, 0.0170464, 0.00278029, 0.000451546, 7.32375e-05, 1.18571e-05,
         1.92008e-06, 2.96646e-07, 2.19622e-08),
    ),
    (
        (0.197174, 0.164132, 0.0781141, 0.0338014, 0.0145686, 0.00618881, 0.00260517, 0.0011076,
         0.000481548, 0.000223845, 0.00013717),
        (0.500145, 0.113902, 0.0214325, 0.00392808, 0.000714473, 0.000128205, 2.32222e-05,
         4.2926e-06, 7.99473e-07, 1.38181e-07, 1.07037e-08),
    ),
    (
        (0.198472, 0.16699, 0.0777329, 0.0325051, 0.0134335, 0.00556906, 0.00230969, 0.000954561,
         0.000391014, 0.000167668, 9.79233e-05),
        (0.500937, 0.110546, 0.0196079, 0.0033489, 0.000572475, 9.80628e-05, 1.66604e-05,
         2.7941e-06, 4.6117e-07, 7.25031e-08, 5.43008e-09),
    ),
)
# fmt: on


# ── Matrices ─────────────────────────────────────────────────────────────────────────────────────
# C is lower triangular and Toeplitz with c_0 = 1 and c_k = sum of omega_i theta_i^(k-1): nearly
# the square root of the prefix matrix. A product with it needs one buffer for each i. Its inverse
# has the same form, with the eigenvalues phi_i of diag(theta) - 1 omega^T, and so have prefix sums
# of the inverse: a_k = g_0 + sum of g_i phi_i^k. Everything about errors is therefore a sum of
# geometric series.
#
# Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024; McMahan, Xu, Zhang 2024. F33.


LONGEST = 1 << 27
"""Steps for which the fixed point arithmetic of the counter is fine enough."""


@dataclass(frozen=True, slots=True)
class BLT:
    """The parameters: 0 < omega_i, 0 < theta_i < 1, all theta different."""

    omega: tuple[float, ...]
    theta: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.omega) != len(self.theta) or not self.omega:
            raise InvalidArgument("omega and theta must have the same length, at least 1.")
        if not all(0 < theta < 1 for theta in self.theta) or min(self.omega) <= 0:
            raise InvalidArgument("omega must be positive and theta between 0 and 1.")

    def column(self, size: int) -> Floats:
        """c_0, ..., c_(size-1)."""
        k = np.arange(size - 1)[:, None]
        tail: Floats = (np.array(self.omega) * np.array(self.theta) ** k).sum(axis=1)
        return np.concatenate((np.ones(1), tail))

    def norm_squared(self, size: int) -> float:
        """Sum of the squares of the first ``size`` coefficients."""
        omega, theta = np.array(self.omega), np.array(self.theta)
        both = theta[:, None] * theta
        return 1 + float(omega @ _series(both, np.array(size - 1)) @ omega)

    def prefixes(self) -> tuple[Floats, Floats]:
        """``(g, phi)`` of the coefficients a_k of prefix sums of the inverse; phi_0 is 1."""
        omega, theta = np.array(self.omega), np.array(self.theta)
        phi = np.linalg.eigvals(np.diag(theta) - np.outer(np.ones(len(theta)), omega)).real
        gaps = phi[:, None] - theta
        between = phi[:, None] - phi + np.eye(len(phi))
        weight = np.prod(gaps, axis=1) / np.prod(between, axis=1)
        g = -weight / (1 - phi)
        return np.concatenate(([1 - g.sum()], g)), np.concatenate(([1.0], phi))

    def variance(self, t: Ints) -> Floats:
        """Variance of the prefix after t steps, for noise of variance 1 on C x."""
        g, phi = self.prefixes()
        sums = _series(phi[:, None] * phi, np.asarray(t)[..., None, None])
        found: Floats = np.einsum("i,...ij,j->...", g, sums, g)
        return found

    def suffix_variance(self, t: Ints, *, size: int) -> Floats:
        """Variance of the sum after t, out of ``size`` steps: of a difference of prefixes."""
        g, phi = self.prefixes()
        at = np.asarray(t)[..., None, None]
        lagged = _series(phi[:, None] * phi, at) * phi ** (size - at)
        shared = np.einsum("i,...ij,j->...", g, lagged, g)
        found: Floats = self.variance(np.array(size)) + self.variance(t) - 2 * shared
        return np.maximum(found, 0)


def _series(ratio: Floats, size: Ints) -> Floats:
    """1 + ratio + ... + ratio**(size - 1), also where the ratio is 1."""
    one = ratio == 1
    small = ratio < 0.5
    low, high = np.where(small, ratio, 0.0), np.where(small | one, 0.5, ratio)
    # Near 1 the power is close to 1 and must not be subtracted from it.
    found = np.where(small, 1 - low**size, -np.expm1(size * np.log(high)))
    return np.where(one, size, found / np.where(one, 1.0, 1 - ratio))


def best_blt(horizon: int) -> BLT:
    """Parameters whose largest error over ``horizon`` steps is nearly the least.

    Heuristic: no theorem is needed, any parameters are private; the error is told from those used.
    """
    size = check.count("horizon", horizon)
    if size > LONGEST:
        raise InvalidArgument(f"horizon must be at most {LONGEST} steps, got {size}.")
    omega, gaps = PARAMETERS[max(0, (size - 1).bit_length() - 2)]
    return BLT(omega, tuple(1 - gap for gap in gaps))


# ── Counter ──────────────────────────────────────────────────────────────────────────────────────


Numbers = TypeVar("Numbers", Ints, Floats)
CHUNK = 128
BITS = 24
"""The grid of what is released, and of the buffers."""
_FACTOR = 31
"""Bits of the factors that buffers are multiplied by."""
_ROOM = 1 << 36
"""Events in one epoch and lane that the integers have room for."""


@dataclass(frozen=True)
class FixedPoint:
    """The matrix of one epoch in integers, and how far one event moves its product."""

    blt: BLT
    horizon: int

    @property
    def chunks(self) -> int:
        """Chunks in the epoch."""
        return -(-self.horizon // CHUNK)

    @cached_property
    def inside(self) -> Ints:
        """The matrix of one chunk, in steps of the grid.

        Partial sums are rounded, not entries, so that the errors do not add up.
        """
        sums = np.rint(np.ldexp(np.cumsum(self.blt.column(CHUNK)), BITS)).astype(np.int64)
        column = np.diff(sums, prepend=0)
        k = np.arange(CHUNK)
        lag = k[:, None] - k
        return np.where(lag >= 0, column[np.abs(lag)], 0)

    @cached_property
    def into(self) -> Ints:
        """What each step of a chunk leaves in the buffers: theta^(127 - r), on the grid."""
        return _fixed(np.array(self.blt.theta)[:, None] ** np.arange(CHUNK)[::-1], BITS)

    @cached_property
    def out(self) -> Ints:
        """What the buffers give to each step of the next chunk: omega theta^r."""
        theta = np.array(self.blt.theta)[:, None] ** np.arange(CHUNK)
        return _fixed(np.array(self.blt.omega)[:, None] * theta, _FACTOR)

    @cached_property
    def on(self) -> Ints:
        """The factor of the buffers from chunk to chunk."""
        return _fixed(np.array(self.blt.theta) ** CHUNK, _FACTOR)

    @cached_property
    def norm(self) -> Fraction:
        """A bound of the longest column of the rounded matrix, in steps of the grid.

        Column r of the first chunk is the longest of its kind: the others are cut shorter. Its
        entries in the chunk are integers; in chunk j after it they are ``sum_i out_i on_i^(j-1)
        into_i``, whose squares add up to geometric series. Doubles give them to 1e-12.
        """
        rows = min(CHUNK, self.horizon)
        squares = np.square(self.inside[:rows].astype(np.float64)).sum(axis=0)
        into = self.into.astype(np.float64)
        out = np.ldexp(self.out.astype(np.float64), -_FACTOR)
        on = np.ldexp(self.on.astype(np.float64), -_FACTOR)
        whole = self.chunks - 2
        if whole >= 0:
            both = on[:, None] * on
            powers = (1 - both**whole) / (1 - both)
            squares += np.einsum("ir,ij,jr->r", into, (out @ out.T) * powers, into)
            last = out[:, : self.horizon - (self.chunks - 1) * CHUNK].T * on**whole
            squares += np.square(last @ into).sum(axis=0)
        return Fraction(math.sqrt(float(squares.max()))) * Fraction(1_000_000_001, 10**9)

    @cached_property
    def slack(self) -> Fraction:
        """How much further than the linear matrix one event may move the product, in L2."""
        # Proof: two buffers that differ by D differ by `on D` and less than one step after a chunk,
        #   so the rounding of all chunks adds less than `min(chunks, 1 / (1 - on))` steps to a
        #   buffer; `out` passes that on, and rounds by less than three steps (`_given`). This
        #   holds for every step, and there are `horizon` of them.
        on = np.ldexp(self.on.astype(np.float64), -_FACTOR)
        out = np.ldexp(self.out.astype(np.float64), -_FACTOR).max(axis=1)
        drift = np.minimum(self.chunks, 1 / (1 - on))
        step = (float(np.sum(out * drift)) + 3) * 1.000001
        return Fraction(math.ceil(step)) * (math.isqrt(self.horizon) + 1)

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of `inside`, for results in counts."""
        found: Floats = np.linalg.inv(np.ldexp(self.inside.astype(np.float64), -BITS))
        return np.tril(found)

    def squared(self, *, max_rows_per_unit: int, replaced: bool) -> int:
        """The squared L2 sensitivity, in steps of the grid, rounded up."""
        # Theorem: adding or removing `max_rows_per_unit` events moves the product by at most
        #   `norm + slack` times as much, replacing them by `sqrt(2) norm + 2 slack` times.
        # Proof: the triangle inequality over single events; for a replacement the linear products
        #   of both sets of events have no negative entries, so their difference is no longer than
        #   the root of the sum of the squared lengths. See theory/streams.
        # Source: F4, F24, F32; docs/theory/streams.md.
        # Needs: each event adds one to one lane at one step.
        one = self.norm + self.slack
        if replaced:
            one = self.norm * Fraction(1_414_213_563, 10**9) + 2 * self.slack
        return math.ceil((max_rows_per_unit * one) ** 2)


@dataclass(frozen=True, slots=True)
class BLTState:
    """All that is held between steps. Private: exact counts of the chunk, and exact buffers."""

    step: int
    total: Ints
    counts: Ints
    """Exact counts of the chunk that has begun, (steps, lanes)."""
    buffers: Ints
    released: Ints
    """y of that chunk."""
    read: Floats
    """Buffers and sum as estimated from y at the beginning of the chunk, (lanes, buffers + 1)."""

    @property
    def numbers(self) -> int:
        """How many numbers are held."""
        arrays = self.total, self.counts, self.buffers, self.released, self.read
        return 1 + sum(array.size for array in arrays)


@dataclass(frozen=True, slots=True, kw_only=True)
class BLTCounter:
    """One epoch of a stream, counted with Gaussian noise."""

    # Theorem: all outputs of the epoch are a function of `F(x) + z`, rounded Gaussian noise on
    #   integers that one unit moves by at most `FixedPoint.squared`; the release is Gaussian DP
    #   as `noise` says, also when the stream is chosen after seeing earlier outputs.
    # Proof: theory/streams, theorems 1, 3 and 4.
    # Source: Denisov, McMahan, Rush, Smith, Thakurta 2022; Smith, Thakurta 2022. F32, F33.
    # Needs: counts of steps as integers, none above `most`; each step fed once.

    fixed: FixedPoint
    noise: AdditiveMechanism

    @property
    def horizon(self) -> int:
        """Steps that fit."""
        return self.fixed.horizon

    @property
    def most(self) -> int:
        """The largest count of a step: with more in every step the integers would overflow."""
        return min(LARGEST_COUNT, _ROOM // self.horizon)

    @property
    def design(self) -> str:
        """Names the integers of the matrix: with others a stream must not go on."""
        made = self.fixed
        tables = hashlib.sha256()
        for table in (made.inside[:, 0], made.into, made.out, made.on):
            tables.update(np.ascontiguousarray(table).astype("<i8").tobytes())
        return f"buffers, {made.horizon} steps, {tables.hexdigest()}"

    def start(self, lanes: int) -> BLTState:
        """Before the first step."""
        number = len(self.fixed.blt.theta)
        return BLTState(
            step=0,
            total=np.zeros(lanes, dtype=np.int64),
            counts=np.empty((0, lanes), dtype=np.int64),
            buffers=np.zeros((lanes, number), dtype=np.int64),
            released=np.empty((0, lanes), dtype=np.int64),
            read=np.zeros((lanes, number + 1)),
        )

    def variance(self, t: Ints, *, suffix: bool = False) -> Floats:
        """Variance of the error after t steps; with ``suffix``, of the sum after t."""
        if suffix:
            unit = self.fixed.blt.suffix_variance(t, size=self.horizon)
        else:
            unit = self.fixed.blt.variance(t)
        return unit * math.ldexp(self.noise.std, -BITS) ** 2

    def feed(
        self, state: BLTState, counts: Ints, rng: RandomSource
    ) -> tuple[BLTState, StreamUpdate]:
        """Count some steps; the state that is given stays as it is."""
        held = len(state.counts)
        end = held + len(counts)
        x = _chunks(np.concatenate((state.counts, counts)))
        buffers = self._buffers(state.buffers, x)
        exact = _rows(self._product(x, buffers))[held:end]
        noisy = np.asarray(self.noise.release(exact.ravel(), rng=rng)).reshape(exact.shape)
        released = np.concatenate((state.released, noisy))
        estimates, read = self._invert(state.read, _chunks(released))
        prefix = _rows(estimates)[held:end]
        full = end // CHUNK
        new = BLTState(
            step=state.step + len(counts),
            total=state.total + counts.sum(axis=0),
            counts=_rows(x)[full * CHUNK : end].copy(),
            buffers=buffers[full],
            released=released[full * CHUNK :].copy(),
            read=read[full],
        )
        return new, StreamUpdate(prefix=prefix, whole=np.zeros_like(exact), part=-prefix)

    def closing(self, state: BLTState) -> tuple[Ints, Floats]:
        """What is added to `Fed.whole` and `Fed.part` when the epoch is over: the last prefix."""
        last = state.read[:, -1]
        if len(state.released):
            estimates, _ = self._invert(state.read, _chunks(state.released))
            last = _rows(estimates)[len(state.released) - 1]
        return np.zeros_like(state.total), last

    def _buffers(self, first: Ints, x: Ints) -> Ints:
        """The buffers at the beginning of each chunk, and after the last."""
        added = _integer_product(x, self.fixed.into)
        found = np.empty((len(x) + 1, *first.shape), dtype=np.int64)
        found[0] = first
        for number, more in enumerate(added):
            found[number + 1] = _times(found[number], self.fixed.on) + more
        return found

    def _product(self, x: Ints, buffers: Ints) -> Ints:
        """F: inside the chunks, and from the buffers."""
        return _integer_product(x, self.fixed.inside) + _given(buffers[:-1], self.fixed.out)

    def _invert(self, read: Floats, released: Ints) -> tuple[Floats, Floats]:
        """Prefix sums of the estimated counts, and the estimates at the beginning of each chunk."""
        fixed = self.fixed
        alone = np.ldexp(released.astype(np.float64), -BITS) @ fixed.inverse.T
        seen = fixed.inverse @ np.ldexp(fixed.out.astype(np.float64), -_FACTOR).T
        # One step of the chunk recursion: buffers and sum, less what the buffers explain.
        number = len(fixed.on)
        gather = np.ones((number + 1, CHUNK))
        gather[:number] = np.ldexp(fixed.into.astype(np.float64), -BITS)
        move = np.diag([*np.ldexp(fixed.on.astype(np.float64), -_FACTOR), 1.0])
        move[:, :number] -= gather @ seen
        added = alone @ gather.T
        found = np.empty((len(released) + 1, *read.shape))
        found[0] = read
        for index, more in enumerate(added):
            found[index + 1] = found[index] @ move.T + more
        alone -= found[:-1, :, :number] @ seen.T
        return np.cumsum(alone, axis=2) + found[:-1, :, number, None], found


def _fixed(values: Floats, bits: int) -> Ints:
    """Rounded down, so that no factor reaches 1."""
    return np.floor(np.ldexp(values, bits)).astype(np.int64)


def _times(numbers: Ints, factor: Ints) -> Ints:
    """``floor(numbers * factor / 2**31)`` for 0 <= factor < 2**31, without overflow."""
    high, low = numbers >> _FACTOR, numbers & ((1 << _FACTOR) - 1)
    return high * factor + (low * factor >> _FACTOR)


def _integer_product(x: Ints, matrix: Ints) -> Ints:
    """``x @ matrix.T`` in integers."""
    # Proof: a chunk holds at most 128 * 2**31 events and the entries of the matrix are at most
    #   2**24, so with the entries cut at 14 bits the sums stay below 2**53: doubles are exact.
    low = matrix & ((1 << 14) - 1)
    doubles = x.astype(np.float64)
    high, rest = (
        (doubles @ part.T.astype(np.float64)).astype(np.int64) for part in (matrix >> 14, low)
    )
    return (high << 14) + rest


def _given(buffers: Ints, out: Ints) -> Ints:
    """``buffers @ out / 2**31``, too low by less than 3."""
    # Proof: they are below 2**60 and 2**31 and are cut into 20 and 16 bits, so that every sum is
    #   exact in doubles; of the six products three are shifted to the right and lose less than 1.
    total = np.zeros((*buffers.shape[:2], out.shape[1]), dtype=np.int64)
    for place in (0, 20, 40):
        piece = ((buffers >> place) & ((1 << 20) - 1)).astype(np.float64)
        for start, part in ((0, out & 0xFFFF), (16, out >> 16)):
            product = (piece @ part.astype(np.float64)).astype(np.int64)
            shift = place + start - _FACTOR
            total += product << shift if shift >= 0 else product >> -shift
    return total


def _chunks(rows: Ints) -> Ints:
    """Whole chunks, the last one filled with zeros: from (steps, lanes) to (chunks, lanes, 128)."""
    missing = -len(rows) % CHUNK
    filled = np.concatenate((rows, np.zeros((missing, rows.shape[1]), dtype=rows.dtype)))
    return filled.reshape(-1, CHUNK, rows.shape[1]).swapaxes(1, 2)


def _rows(chunks: Numbers) -> Numbers:
    """The inverse of `_chunks`, with the zeros."""
    return chunks.swapaxes(1, 2).reshape(-1, chunks.shape[1])


@lru_cache(maxsize=64)
def fixed(blt: BLT, horizon: int) -> FixedPoint:
    """The integers of an epoch, made once."""
    return FixedPoint(blt, horizon)
