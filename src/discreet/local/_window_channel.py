"""A finite channel with a window: the symbols near the input weigh more, by e^epsilon at most.

Input ``i`` of 0 .. inputs - 1 makes each of the symbols i .. i + width - 1 weigh ``near`` and each
of the inputs - 1 others weigh ``far``. Two inputs and a window of one symbol are randomized
response; a wide window is the piecewise mechanism (for means) and the square wave (for whole
distributions). Weights are integers, so a draw is exact and so is the epsilon that is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import exp_minus
from discreet.core.errors import InvalidArgument
from discreet.local.randomizer import Reports, Tally
from discreet.mechanisms.mechanism import CertificateCheck
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.noise.uniform import uniform_integers

LARGEST_ALPHABET = 1 << 20
"""Symbols of one report: what a server keeps is a histogram of them."""

_TOTAL = 1 << 62
_SMALLEST_FAR = 1 << 20  # beyond an epsilon of about 25, less is kept than was allowed
_PRECISION = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChannel:
    """Integer weights of the symbols, given the input. Made by `window`."""

    inputs: int
    width: int
    near: int
    far: int

    @property
    def symbols(self) -> int:
        """How many symbols there are."""
        return self.inputs + self.width - 1

    @property
    def total(self) -> int:
        """Sum of the weights, the same for every input."""
        return self.width * self.near + (self.inputs - 1) * self.far

    @property
    def gain(self) -> float:
        """By how much the mean symbol moves when the input moves by one."""
        return self.width * (self.near - self.far) / self.total

    @property
    def moment(self) -> float:
        """Mean square of the symbol, less ``gain * d**2``, both from the middle."""
        # Theorem: with symbols and inputs counted from the middle of their ranges, the symbol J of
        #   input d has mean gain * d and mean square moment + gain * d^2, exactly.
        # Proof: J is uniform over all N symbols with weight far each, plus uniform over the window,
        #   whose middle is d, with weight near - far each; the squares of n neighboring symbols
        #   about their middle add up to n (n^2 - 1) / 12.
        inside, outside = _squares(self.width), _squares(self.symbols)
        return float(Fraction(self.far * outside + (self.near - self.far) * inside, self.total))

    def draw(self, inputs: Ints, rng: RandomSource) -> Ints:
        """One symbol for each input. The time does not depend on the inputs."""
        place = uniform_integers(self.total, len(inputs), rng)
        border = self.width * self.near
        rest = (place - border) // self.far
        rest += np.where(rest >= inputs, self.width, 0)
        return np.where(place < border, inputs + place // self.near, rest)

    def weights(self, index: int) -> Ints:
        """The weight of every symbol for one input."""
        weights = np.full(self.symbols, self.far, dtype=np.int64)
        weights[index : index + self.width] = self.near
        return weights

    def shares(self, inputs: Floats) -> Floats:
        """Probabilities of the symbols if inputs have these shares, in linear time."""
        sums = np.concatenate(([0.0], np.cumsum(inputs), np.full(self.width - 1, inputs.sum())))
        starts = np.concatenate((np.zeros(self.width), sums[1 : self.inputs]))
        inside: Floats = (self.near - self.far) / self.total * (sums[1:] - starts)
        return inside + self.far / self.total * float(inputs.sum())

    def back(self, symbols: Floats) -> Floats:
        """The transpose of `shares`: a weighted sum over the symbols for every input."""
        sums = np.concatenate(([0.0], np.cumsum(symbols)))
        inside: Floats = (
            (self.near - self.far) / self.total * (sums[self.width :] - sums[: self.inputs])
        )
        return inside + self.far / self.total * float(sums[-1])

    def check(self, epsilon: Fraction, part: str) -> CertificateCheck:
        """The exact divergence of two inputs at epsilon: zero unless near exceeds e^eps far."""
        _, high = exp_minus(epsilon, _PRECISION)
        # near > e^eps far is near e^-eps > far, here with an upper bound of e^-eps.
        excess = max(Fraction(0), Fraction(self.near * high, 1 << _PRECISION) - self.far)
        worst = min(self.width, self.inputs - 1) * excess * math.exp(min(float(epsilon), 700.0))
        return CertificateCheck(
            part=part,
            epsilon=float(epsilon),
            claimed=0.0,
            exact=float(worst) / self.total,
            route="integer weights of the symbols",
        )


def window(*, inputs: int, width: int, epsilon: Fraction) -> WindowChannel:
    """The weights of a window that keep epsilon: far whole, near = floor(far e^epsilon)."""
    # Theorem: a draw is epsilon-DP in the local model.
    # Proof: every symbol weighs near or far for every input, the total is the same for all inputs,
    #   and near <= far e^epsilon because near is rounded down from a lower bound of e^epsilon.
    # Source: F52 (on a public grid); Wang et al. 2019; Li et al. 2020.
    # Needs: near > far, so epsilon above about 2^-40; a very large epsilon is not used up.
    if inputs + width - 1 > LARGEST_ALPHABET:
        raise InvalidArgument(
            f"A report would have {inputs + width - 1} symbols; at most {LARGEST_ALPHABET} are "
            "allowed: take fewer steps or cells."
        )
    _, high = exp_minus(epsilon, _PRECISION)
    growth = Fraction(1 << _PRECISION, high)  # at most e^epsilon
    far = max(_TOTAL // math.ceil(width * growth + inputs - 1), _SMALLEST_FAR)
    near = min(math.floor(far * growth), (_TOTAL - (inputs - 1) * far) // width)
    if near <= far:
        raise InvalidArgument(f"epsilon must be larger, got {float(epsilon):g}: nothing is told.")
    return WindowChannel(inputs=inputs, width=width, near=near, far=far)


def bytes_of(alphabet: int) -> int:
    """Bytes that hold a symbol."""
    return max(1, ((alphabet - 1).bit_length() + 7) // 8)


def rows(symbols: Ints, width: int) -> Reports:
    """Symbols as rows of bytes, the lowest byte first."""
    wide = np.ascontiguousarray(symbols, dtype="<i8").view(np.uint8)
    return wide.reshape(-1, 8)[:, :width]


def symbols_of(reports: Reports) -> NDArray[np.uint32]:
    """Rows of at most four bytes as numbers."""
    wide = np.zeros((len(reports), 4), dtype=np.uint8)
    wide[:, : reports.shape[1]] = reports
    return wide.view("<u4").ravel()


def histogram(reports: Reports, alphabet: int) -> Tally:
    """Count each symbol; what is no symbol is refused."""
    symbols = reports[:, 0] if reports.shape[1] == 1 else symbols_of(reports)
    known = symbols if alphabet == 256 else symbols[symbols < alphabet]
    counts = np.bincount(known, minlength=alphabet).astype(np.int64)
    return Tally(counts, len(known), len(reports) - len(known))


def _squares(count: int) -> Fraction:
    return Fraction(count * (count * count - 1), 12)
