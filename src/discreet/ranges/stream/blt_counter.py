"""Counting a stream with Gaussian noise through a buffered Toeplitz matrix, in exact integers.

Released is ``y = F(x) + z`` on a grid of 2**-24: F is the matrix of `blt`, with its constants
rounded to integers, applied in chunks of 128 steps. Inside a chunk it is an integer product; what
came before enters through a few buffers in fixed point, which move on once a chunk. F is not quite
linear, because fixed point rounds down; how far that can take two neighbours apart is added to the
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

from discreet.mechanisms.additive import Additive
from discreet.noise.bits import Bits
from discreet.noise.law import Floats, Ints
from discreet.queries.ranges.blt import Blt
from discreet.queries.ranges.stream_fed import LARGEST_COUNT, Fed

Numbers = TypeVar("Numbers", Ints, Floats)
CHUNK = 128
BITS = 24
"""The grid of what is released, and of the buffers."""
_FACTOR = 31
"""Bits of the factors that buffers are multiplied by."""
_ROOM = 1 << 36
"""Events in one epoch and lane that the integers have room for."""


@dataclass(frozen=True)
class Fixed:
    """The matrix of one epoch in integers, and how far one event moves its product."""

    blt: Blt
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
        """How much further than the linear matrix one event may move the product, in L2.

        Proof: two buffers that differ by D differ by ``on D`` and less than one step after a chunk,
            so the rounding of all chunks adds less than ``min(chunks, 1 / (1 - on))`` steps to a
            buffer; ``out`` passes that on, and rounds by less than three steps (`_given`). This
            holds for every step, and there are ``horizon`` of them.
        """
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

    def squared(self, *, rows_per_unit: int, replaced: bool) -> int:
        """The squared L2 sensitivity, in steps of the grid, rounded up.

        Theorem: adding or removing ``rows_per_unit`` events moves the product by at most
            ``norm + slack`` times as much, replacing them by ``sqrt(2) norm + 2 slack`` times.
        Proof: the triangle inequality over single events; for a replacement the linear products of
            both sets of events have no negative entries, so their difference is no longer than
            the root of the sum of the squared lengths. See theory/streams.
        Source: F4, F24, F32; docs/theory/streams.md.
        Needs: each event adds one to one lane at one step.
        """
        one = self.norm + self.slack
        if replaced:
            one = self.norm * Fraction(1_414_213_563, 10**9) + 2 * self.slack
        return math.ceil((rows_per_unit * one) ** 2)


@dataclass(frozen=True, slots=True)
class BltState:
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
class BltCounter:
    """One epoch of a stream, counted with Gaussian noise.

    Theorem: all outputs of the epoch are a function of ``F(x) + z``, rounded Gaussian noise on
        integers that one unit moves by at most ``Fixed.squared``; the release is Gaussian DP as
        ``noise`` says, also when the stream is chosen after seeing earlier outputs.
    Proof: theory/streams, theorems 1, 3 and 4.
    Source: Denisov, McMahan, Rush, Smith, Thakurta 2022; Smith, Thakurta 2022. F32, F33.
    Needs: counts of steps as integers, none above ``most``; each step fed once.
    """

    fixed: Fixed
    noise: Additive

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

    def start(self, lanes: int) -> BltState:
        """Before the first step."""
        number = len(self.fixed.blt.theta)
        return BltState(
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

    def feed(self, state: BltState, counts: Ints, bits: Bits) -> tuple[BltState, Fed]:
        """Count some steps; the state that is given stays as it is."""
        held = len(state.counts)
        end = held + len(counts)
        x = _chunks(np.concatenate((state.counts, counts)))
        buffers = self._buffers(state.buffers, x)
        exact = _rows(self._product(x, buffers))[held:end]
        noisy = np.asarray(self.noise.release(exact.ravel(), bits=bits)).reshape(exact.shape)
        released = np.concatenate((state.released, noisy))
        estimates, read = self._invert(state.read, _chunks(released))
        prefix = _rows(estimates)[held:end]
        full = end // CHUNK
        new = BltState(
            step=state.step + len(counts),
            total=state.total + counts.sum(axis=0),
            counts=_rows(x)[full * CHUNK : end].copy(),
            buffers=buffers[full],
            released=released[full * CHUNK :].copy(),
            read=read[full],
        )
        return new, Fed(prefix=prefix, whole=np.zeros_like(exact), part=-prefix)

    def closing(self, state: BltState) -> tuple[Ints, Floats]:
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
    """``x @ matrix.T`` in integers.

    Proof: a chunk holds at most 128 * 2**31 events and the entries of the matrix are at most
        2**24, so with the entries cut at 14 bits the sums stay below 2**53: doubles are exact.
    """
    low = matrix & ((1 << 14) - 1)
    doubles = x.astype(np.float64)
    high, rest = (
        (doubles @ part.T.astype(np.float64)).astype(np.int64) for part in (matrix >> 14, low)
    )
    return (high << 14) + rest


def _given(buffers: Ints, out: Ints) -> Ints:
    """``buffers @ out / 2**31``, too low by less than 3.

    Proof: they are below 2**60 and 2**31 and are cut into 20 and 16 bits, so that every sum is
        exact in doubles; of the six products three are shifted to the right and lose less than 1.
    """
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
def fixed(blt: Blt, horizon: int) -> Fixed:
    """The integers of an epoch, made once."""
    return Fixed(blt, horizon)
