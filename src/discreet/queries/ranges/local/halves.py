"""Which half of which block: a signed Hadamard response, one level of the Haar wavelet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.exact import Enclosure, ceil_div, light_share
from discreet.mechanisms.local.coin import coin_check
from discreet.mechanisms.local.hadamard import walsh_hadamard
from discreet.mechanisms.local.randomiser import Randomiser, Reports, Tally, codes
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats, Ints, floats
from discreet.noise.uniform import below, bernoulli_real


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves(Randomiser):
    """One of ``2 * pairs`` halves; estimated is, for each pair, left minus right.

    Theorem: a report is epsilon-DP in the local model, exactly; ``c s H[v]``, for the sign s and
        the row v of the Hadamard matrix that it names, is an unbiased estimate of the signed
        one-hot vector of its client, with second moments ``c^2 I``, ``c = 1 / tanh(eps / 2)``.
    Proof: the row is uniform whatever the value; the sign is a binary randomised response with odds
        ``e^eps``, whose mean is 1/c times the true sign ``s_x H[v, x]``. Rows of H are orthogonal.
    Source: Nguyen et al. 2016; Kulkarni, Cormode, Srivastava 2018; F46, F51.

    A report is twice the row, plus one for a negative sign, in the fewest whole bytes, the lowest
    first. A server keeps the sum of signs of each row.
    """

    kind: ClassVar[str] = "halves"
    pairs: int
    epsilon: Fraction

    @property
    def scale(self) -> float:
        """``(e^eps + 1) / (e^eps - 1)``."""
        return 1 / math.tanh(float(self.epsilon) / 2)

    @property
    def std(self) -> float:
        """Of an estimated difference from one report, at worst."""
        return self.scale

    @property
    def width(self) -> int:
        return ceil_div((2 * self.pairs - 1).bit_length(), 8)

    @property
    def size(self) -> int:
        return self.pairs

    def encode(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        halves = codes(value, 2 * self.pairs)
        source = source_of(bits)
        rows = below(self.pairs, len(halves), source)
        lies = bernoulli_real(self._lie, len(halves), source)
        signs = np.bitwise_count(rows & (halves >> 1)) + halves + lies & 1
        messages = (2 * rows + signs).astype("<u8").view(np.uint8).reshape(-1, 8)
        return np.ascontiguousarray(messages[:, : self.width])

    def tally(self, reports: Reports) -> Tally:
        messages = np.zeros(len(reports), dtype=np.int64)
        for byte in range(self.width):
            messages |= reports[:, byte].astype(np.int64) << (8 * byte)
        valid = messages[messages < 2 * self.pairs]
        seen = np.bincount(valid, minlength=2 * self.pairs).astype(np.int64)
        return Tally(seen[0::2] - seen[1::2], len(valid), len(reports) - len(valid))

    def estimate(self, counts: Ints, reports: int) -> Floats:
        """Shares of the left halves less those of the right ones."""
        return floats(walsh_hadamard(counts) * (self.scale / max(reports, 1)))

    def parameters(self) -> dict[str, Any]:
        return {"pairs": self.pairs}

    def certify(self) -> Certificate:
        """The divergence of the reports of two clients, from the coin."""
        part = f"{self.pairs} pairs of halves"
        check = coin_check(part, self._lie, epsilon=self.epsilon, light=1, heavy=1)
        return Certificate(mechanism=self.kind, guarantee=self.guarantee, checks=(check,)).demand()

    def _lie(self, precision: int) -> Enclosure:
        """Enclose r / (1 + r) with r = e^-epsilon."""
        return light_share(self.epsilon, precision, light=1, heavy=1)
