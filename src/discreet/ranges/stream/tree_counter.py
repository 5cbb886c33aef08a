"""Counting a stream with integer noise on a tree, read in the best way there is at every step.

The steps of an epoch are the leaves of a tree of blocks; the count of every block gets noise, once.
After step t only the blocks beside the path to t matter: left of it they have passed, right of it
they have not begun, and yet their noise may be used, since the counts that are missing cancel:

    prefix = left blocks = block around t - right blocks.

The best combination of all such ways is least squares along the path, two numbers a level. Nothing
is held but the exact count so far and the noise of the blocks beside the path: O(log T) numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource

# ── Quantiles of the error ───────────────────────────────────────────────────────────────────────
# Of a sum of independent Laplace terms, from the characteristic function.


_NODES = 256
_PERIOD = 40.0
"""In standard deviations: beyond half of it a Laplace variable goes once in e^28."""
_ROUNDS = 40
_PIECE = 2048


def half_width(terms: Iterable[tuple[Floats, Floats]], confidence: float) -> Floats:
    """For each answer, the x with P(|error| <= x) = level.

    A term ``(times, scales)`` holds, for each answer, how often a Laplace variable of a scale
    occurs in its error. The distribution function is the trapezoidal sum of the inversion integral,
    good to about 1e-5. Discrete noise goes less than half a step further than continuous noise of
    the same scale, in law, and half a step is added for it.
    """
    listed = [(np.asarray(times), np.asarray(scales)) for times, scales in terms]
    size = len(listed[0][0])
    found = np.empty(size)
    for start in range(0, size, _PIECE):
        piece = slice(start, min(start + _PIECE, size))
        found[piece] = _quantile([(n[piece], b[piece]) for n, b in listed], confidence)
    return found


def _quantile(terms: list[tuple[Floats, Floats]], confidence: float) -> Floats:
    variance = sum(2 * times * np.square(scales) for times, scales in terms)
    std = np.sqrt(variance)
    nodes = np.arange(1, _NODES + 1) * (2 * np.pi / _PERIOD)
    log = np.zeros((len(std), _NODES))
    for times, scales in terms:
        relative = np.square(scales / np.where(std > 0, std, 1))[:, None]
        log -= times[:, None] * np.log1p(relative * np.square(nodes))
    weight = np.exp(log) / nodes

    low, high = np.zeros(len(std)), np.full(len(std), _PERIOD / 2)
    for _ in range(_ROUNDS):
        x = (low + high) / 2
        inside = (2 / _PERIOD) * (x + 2 * np.sum(np.sin(x[:, None] * nodes) * weight, axis=1))
        low, high = np.where(inside < confidence, x, low), np.where(inside < confidence, high, x)
    return high * std + 0.5


# ── Updates ──────────────────────────────────────────────────────────────────────────────────────


LARGEST_COUNT = (1 << 31) - 1
"""In one step and lane; what is above is cut off, which moves no neighbors apart."""


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """Answers for some steps: the noisy sum up to each, and how to make that behind it.

    When the epoch is over, the sum of what came after step t is ``whole + part`` with the counter's
    ``closing`` added to each. Until then ``whole`` is private.
    """

    prefix: Floats
    whole: Ints
    part: Floats


# ── Tree and counter ─────────────────────────────────────────────────────────────────────────────


Flags: TypeAlias = NDArray[np.bool_]
Then: TypeAlias = Literal["end", "epochs", "window"]
"""What follows an epoch."""
_RADICES = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
_MOST_ON_TOP = 128
_SAMPLE = 1024
"""Steps at which designs are compared, spread evenly (Weyl's sequence); public, like the design."""


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """Blocks of one size: those of the path's own parent, left and right of the path."""

    block: Ints
    """Index of the block that the path enters, or that begins at t."""
    left: Ints
    right: Ints
    inside: Flags
    """Whether t lies strictly inside that block."""
    gains: tuple[Floats, Floats]
    """What the block's own measurement adds to the sums before and after t inside it."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Coefficients of the noise of one level in the error: left blocks, right blocks, own block."""

    left: Floats
    right: Floats
    own: Floats


@dataclass(frozen=True, slots=True)
class Chain:
    """Nested blocks: sizes from 1 upward, each dividing the next, and ``top`` of the largest."""

    sizes: tuple[int, ...]
    top: int

    @property
    def horizon(self) -> int:
        """Steps that fit."""
        return self.sizes[-1] * self.top

    @property
    def levels(self) -> int:
        """Blocks that hold a step: how far one event moves the counts of all blocks, in L1."""
        return len(self.sizes)

    @property
    def widths(self) -> tuple[int, ...]:
        """Blocks beside each other on each level, those whose noise is held."""
        wholes = (*self.sizes[1:], self.horizon)
        return tuple(whole // size for size, whole in zip(self.sizes, wholes, strict=True))

    def path(self, t: Ints) -> list[TreeLevel]:
        """What lies beside the path to each t, with the gains of least squares, leaves first.

        Two numbers are estimated inside each block on the path: the sums before and after t. From
        below they come with covariance ``(a, b, c)``; the block's own count measures their sum.
        """
        shape = np.shape(t)
        a, b, c = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        levels: list[TreeLevel] = []
        for size, width in zip(self.sizes, self.widths, strict=True):
            inside = t % size != 0
            block = t // size
            # Variance 1 for the block itself; one that is not entered tells nothing.
            spread = 1 + a + 2 * b + c
            gains = (a + b) / spread, (b + c) / spread
            top = size == self.sizes[-1]
            left = block if top else block % width
            right = np.where(top | (t % (size * width) != 0), width - left - inside, 0)
            levels.append(
                TreeLevel(block=block, left=left, right=right, inside=inside, gains=gains)
            )
            a, b, c = (
                np.where(inside, a - gains[0] ** 2 * spread, 0) + left,
                np.where(inside, b - gains[0] * gains[1] * spread, 0),
                np.where(inside, c - gains[1] ** 2 * spread, 0) + right,
            )
        return levels

    def weights(self, path: list[TreeLevel], *, suffix: bool = False) -> list[Weights]:
        """The coefficient of every noise in the error of the prefix, or of the suffix."""
        before, after = np.zeros(path[0].left.shape), np.zeros(path[0].left.shape)
        before, after = (before, after + 1) if suffix else (before + 1, after)
        found: list[Weights] = []
        for level in reversed(path):
            left, right = before, after
            gain_before, gain_after = level.gains
            own = np.where(level.inside, before * gain_before + after * gain_after, 0)
            before, after = (np.where(level.inside, x - own, 0) for x in (before, after))
            found.append(Weights(left=left, right=right, own=own))
        return found[::-1]

    def terms(self, t: Ints, *, suffix: bool = False) -> list[tuple[Floats, Floats]]:
        """How often each coefficient occurs: the error is a sum of independent terms."""
        path = self.path(t)
        ones = np.ones(t.shape)
        return [
            term
            for level, weight in zip(path, self.weights(path, suffix=suffix), strict=True)
            for term in (
                (level.left.astype(np.float64), weight.left),
                (level.right.astype(np.float64), weight.right),
                (ones, weight.own),
            )
        ]

    def variance(self, t: Ints, *, suffix: bool = False) -> Floats:
        """Variance of the error after t steps, for noise of variance 1 on each block."""
        total = np.zeros(t.shape)
        for times, weight in self.terms(t, suffix=suffix):
            total += times * np.square(weight)
        return total


@dataclass(frozen=True, slots=True)
class TreeState:
    """All that is held between steps. Private: the exact counts, and noise still to be used."""

    step: int
    total: Ints
    noise: tuple[Ints, ...]
    """For each level the noise of the blocks beside the path, empty where none is entered."""

    @property
    def numbers(self) -> int:
        """How many numbers are held."""
        return 1 + self.total.size + sum(group.size for group in self.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCounter:
    """One epoch of a stream, counted with discrete Laplace noise on blocks."""

    # Theorem: all outputs of the epoch are a function of the noisy counts of all blocks; if one
    #   unit moves the counts of steps by `d` in L1, these move by `d * levels`. The release is `d *
    #   levels / scale`-DP, also when the stream is chosen after seeing earlier outputs.
    # Proof: theory/streams, theorems 1 and 2.
    # Source: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011; Honaker 2015; Andersson,
    #   Pagh, Steiner, Torkamani 2024 (right blocks). F11, F36.
    # Needs: counts of steps as integers; each step fed once.

    chain: Chain
    law: DiscreteLaplace

    @property
    def horizon(self) -> int:
        """Steps that fit."""
        return self.chain.horizon

    @property
    def most(self) -> int:
        """The largest count of a step: with more in every step the integers would overflow."""
        return min(LARGEST_COUNT, (1 << 61) // self.horizon)

    @property
    def design(self) -> str:
        """Names the tree and its noise: with others a stream must not go on."""
        return f"tree, {self.chain.sizes}, {self.chain.top} on top, scale {self.law.scale}"

    def start(self, lanes: int) -> TreeState:
        """Before the first step."""
        return TreeState(
            step=0,
            total=np.zeros(lanes, dtype=np.int64),
            noise=tuple(np.empty((0, lanes), dtype=np.int64) for _ in self.chain.sizes),
        )

    def variance(self, t: Ints, *, suffix: bool = False) -> Floats:
        """Exact variance of the error after t steps; with ``suffix``, of the sum after t."""
        return self.chain.variance(t, suffix=suffix) * self.law.variance

    def feed(
        self, state: TreeState, counts: Ints, rng: RandomSource
    ) -> tuple[TreeState, StreamUpdate]:
        """Count some steps.

        The state that is given stays as it is: if the new one is lost, so must the answers be.
        """
        after = state.step + len(counts)
        path = self.chain.path(np.arange(state.step + 1, after + 1))
        noise, held = self._noise(state, after, rng)
        (left, before), (right, behind) = _errors(path, noise)
        exact = np.cumsum(counts, axis=0) + state.total
        fed = StreamUpdate(prefix=(exact + left) + before, whole=right - exact, part=behind)
        return TreeState(step=after, total=exact[-1], noise=held), fed

    def closing(self, state: TreeState) -> tuple[Ints, Floats]:
        """What is added to `Fed.whole` and `Fed.part` when the epoch is over."""
        return state.total, np.zeros(len(state.total))

    def _noise(
        self, state: TreeState, after: int, rng: RandomSource
    ) -> tuple[list[tuple[int, Ints]], tuple[Ints, ...]]:
        """Noise of all blocks beside the paths of the new steps, first block's index with it."""
        lanes = len(state.total)
        used: list[tuple[int, Ints]] = []
        held: list[Ints] = []
        for width, size, own in zip(self.chain.widths, self.chain.sizes, state.noise, strict=True):
            whole = width * size
            first, end = state.step // whole, -(-after // whole)
            fresh = (end - first) * width - len(own)
            drawn = self.law.sample(fresh * lanes, rng).reshape(fresh, lanes)
            group = np.concatenate((own, drawn))
            used.append((first * width, group))
            kept = group[len(group) - width :] if after % whole else group[:0]
            held.append(kept.copy())
        return used, tuple(held)


def _errors(
    path: list[TreeLevel], noise: list[tuple[int, Ints]]
) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
    """The errors of the sums before and after each t: a whole part, and one by least squares.

    The whole part is the noise of the blocks on that side. The other is made of residues, each
    block's noise less that of the blocks which it is made of: counts cancel from them, so they are
    integers that anyone can compute from the noisy counts, and doubles made of them are, too.
    """
    shape = (len(path[0].left), noise[0][1].shape[1])
    left, right = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    before, behind, residue = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    parts = np.zeros(shape, dtype=np.int64)
    for level, (first, group) in zip(path, noise, strict=True):
        at = level.block - first
        inside = level.inside[:, None]
        own = np.where(inside, group[np.minimum(at, len(group) - 1)], 0)
        residue = np.where(inside, residue + (own - parts), 0.0)
        gains = [gain[:, None] for gain in level.gains]
        before, behind = (
            np.where(inside, sofar + gain * residue, 0.0)
            for sofar, gain in zip((before, behind), gains, strict=True)
        )
        residue *= 1 - gains[0] - gains[1]
        sums = np.zeros((len(group) + 1, shape[1]), dtype=np.int64)
        np.cumsum(group, axis=0, out=sums[1:])
        beyond = at + level.inside
        on_left = sums[at] - sums[at - level.left]
        on_right = sums[beyond + level.right] - sums[beyond]
        left, right = (
            np.where(inside, sofar, 0) + new for sofar, new in ((left, on_left), (right, on_right))
        )
        parts = on_left + on_right + own
    return (left, before), (right, behind)


@lru_cache(maxsize=256)
def best_chain(horizon: int, *, then: Then = "end") -> Chain:
    """The chain with the least mean variance of what is published.

    That is all prefixes, if the stream ends there; prefixes and the last of them, if more epochs
    follow ("epochs"); prefixes and suffixes, for sliding windows ("window"). The blocks of all
    levels get the same noise: other shares gain less than two per cent.
    """
    check.count("horizon", horizon)
    k = np.arange(min(horizon, _SAMPLE))
    t = k + 1
    if horizon > _SAMPLE:
        t = 1 + np.floor((k * (math.sqrt(5) - 1) / 2) % 1 * horizon).astype(np.int64)
    end = np.array([horizon])

    def error(chain: Chain) -> float:
        found = float(chain.variance(t).mean())
        if then == "epochs":
            found += float(chain.variance(end)[0])
        elif then == "window":
            found += float(chain.variance(t, suffix=True).mean())
        return found * chain.levels**2

    return min(_chains(horizon), key=error)


def _chains(horizon: int) -> list[Chain]:
    found = [Chain((1,), horizon)] if horizon <= _MOST_ON_TOP else []
    for radix in _RADICES:
        sizes = [1]
        while sizes[-1] < horizon:
            sizes.append(sizes[-1] * radix)
            top = -(-horizon // sizes[-1])
            if top <= _MOST_ON_TOP:
                found.append(Chain(tuple(sizes), top))
    return found
