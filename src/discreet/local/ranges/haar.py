"""The Haar wavelet in the local model: which half of one block a value is in (HaarHRR, F51).

A level of the wavelet is a signed Hadamard response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import _validate as check
from discreet.core._rational import Enclosure, Number, ceil_div, light_share
from discreet.core.canonical_json import read_ratio
from discreet.core.errors import InvalidArgument
from discreet.local.randomizer import (
    LocalRandomizer,
    Reports,
    Tally,
    codes,
    coin_check,
    walsh_hadamard,
)
from discreet.local.ranges._variance import HaarVariance
from discreet.local.ranges.hierarchical import LevelReports
from discreet.local.ranges.release import LevelEstimate, LocalRanges
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints, floats
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers
from discreet.ranges.domain import Domain, check_domain, read
from discreet.ranges.strategies.base import rounded_shares
from discreet.ranges.table_query import WorkloadLike, workload_of
from discreet.ranges.workload import energies

# ── One level ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class HaarResponse(LocalRandomizer):
    """One of ``2 * pairs`` halves; estimated is, for each pair, left minus right.

    A report is twice the row, plus one for a negative sign, in the fewest whole bytes, the lowest
    first. A server keeps the sum of signs of each row.
    """

    # Theorem: a report is epsilon-DP in the local model, exactly; `c s H[v]`, for the sign s and
    #   the row v of the Hadamard matrix that it names, is an unbiased estimate of the signed
    #   one-hot vector of its client, with second moments `c^2 I`, `c = 1 / tanh(eps / 2)`.
    # Proof: the row is uniform whatever the value; the sign is a binary randomized response with
    #   odds `e^eps`, whose mean is 1/c times the true sign `s_x H[v, x]`. Rows of H are orthogonal.
    # Source: Nguyen et al. 2016; Kulkarni, Cormode, Srivastava 2018; F46, F51.

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

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        halves = codes(value, 2 * self.pairs)
        source = resolve_rng(rng)
        rows = uniform_integers(self.pairs, len(halves), source)
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
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return np.zeros(many, dtype=np.int64), np.full(many, 2 * self.pairs - 1)

    def _told(self, counts: Ints) -> Floats:
        """Half of what each pair's signs say, from their transform: at most 1/2 a report."""
        return walsh_hadamard(counts) / 2

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        means = np.zeros(self.pairs)
        means[-1 if last else 0] = (-0.5 if last else 0.5) / self.scale
        return means

    def _lie(self, precision: int) -> Enclosure:
        """Enclose r / (1 + r) with r = e^-epsilon."""
        return light_share(self.epsilon, precision, light=1, heavy=1)


# ── All levels ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LocalHaar(LevelReports):
    """Blocks of 2, 4, ... cells: left half or right half, as one sign of a Hadamard row.

    Reports have about ``log2`` of the domain's size many bits. Answers are consistent by
    themselves, because the number of reports is known and halves are added to it from the top down.
    """

    kind: ClassVar[str] = "ranges.haar"
    domain: Domain
    epsilon: Fraction
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.domain.size < 2 or len(self.shares) != (self.domain.size - 1).bit_length():
            raise InvalidArgument(
                "shares must be as many as the domain can be halved, with at least two cells."
            )
        self._check_levels()

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(1 << j for j in range(len(self.shares)))

    @property
    def parts(self) -> Sequence[HaarResponse]:
        top = len(self.shares)
        return [HaarResponse(pairs=1 << (top - j), epsilon=self.epsilon) for j in range(1, top + 1)]

    @property
    def law(self) -> HaarVariance:
        """The error of every range, before a report is collected."""
        return HaarVariance(
            size=self.domain.size,
            rates=tuple(float(share) for share in self.shares),
            square=self.parts[0].scale ** 2,
        )

    def estimate(self, counts: Ints, reports: int) -> LocalRanges:
        """All ranges, from the known total down."""
        levels = [
            LevelEstimate(
                block=block,
                spread=(part.scale**2, -1.0),
                reports=int(state[-1]),
                values=part.estimate(state[:-1], int(state[-1])),
            )
            for block, part, state in zip(self.blocks, self.parts, self.states(counts), strict=True)
        ]
        return LocalRanges(
            domain=self.domain,
            structure="haar",
            levels=tuple(levels),
            reports=reports,
            guarantee=self.guarantee,
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "domain": self.domain.content(),
            "shares": [str(share) for share in self.shares],
        }

    @property
    def name(self) -> str:
        """In a few words."""
        equal = "equal" if len(set(self.shares)) == 1 else "optimized"
        return f"Haar wavelet, {equal} levels"


def described(*, epsilon: Fraction, domain: dict[str, Any], shares: list[str]) -> LocalHaar:
    """The wavelet that `LocalHaar.parameters` describes."""
    told = tuple(read_ratio("shares", share) for share in shares)
    return LocalHaar(domain=read(domain), epsilon=epsilon, shares=told)


def haar_wavelet(
    *, domain: Domain, epsilon: Number, workload: WorkloadLike | None = None
) -> LocalHaar:
    """Create a Haar wavelet for ranges in the local model.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        epsilon: Privacy loss of one report.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`. It decides how many clients report about each level.
            If None, all levels have the same number.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local, ranges
        >>> wavelet = local.haar_wavelet(domain=ranges.integers(0, 7), epsilon=1)
        >>> wavelet.guarantee.epsilon() <= 1
        True
    """
    # Proof: the mean variance is `c^2 sum_j (E_(j-1) - E_j) / (2^j p_j)` less a constant, so by
    #   Lagrange the best p_j go with the root of `(E_(j-1) - E_j) / 2^j`.
    # Source: Kulkarni, Cormode, Srivastava 2018; F51.
    if check_domain(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    height = (domain.size - 1).bit_length()
    shares = (Fraction(1, height),) * height
    if workload is not None:
        asked = workload_of(workload, domain)
        held = energies(asked, domain.size, [1 << j for j in range(height + 1)])
        weights = np.sqrt(np.maximum(-np.diff(held), 1e-30) / 2.0 ** np.arange(1, height + 1))
        shares = rounded_shares(weights)
    return LocalHaar(domain=domain, epsilon=check.positive("epsilon", epsilon), shares=shares)
