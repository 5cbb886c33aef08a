"""The Haar wavelet in the local model: which half of one block a value is in  (HaarHRR, F51)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import check
from discreet.core.canonical import read_ratio
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.noise.law import Ints
from discreet.queries.ranges.domain import Domain, declared, read
from discreet.queries.ranges.local.halves import Halves
from discreet.queries.ranges.local.law import HaarLaw
from discreet.queries.ranges.local.layered import Layered
from discreet.queries.ranges.local.release import Level, LocalRanges
from discreet.queries.ranges.question import Asked, workload_of
from discreet.queries.ranges.strategy import rounded_shares
from discreet.queries.ranges.workload import energies


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HaarTree(Layered):
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
    def parts(self) -> Sequence[Halves]:
        top = len(self.shares)
        return [Halves(pairs=1 << (top - j), epsilon=self.epsilon) for j in range(1, top + 1)]

    @property
    def law(self) -> HaarLaw:
        """The error of every range, before a report is collected."""
        return HaarLaw(
            size=self.domain.size,
            rates=tuple(float(share) for share in self.shares),
            square=self.parts[0].scale ** 2,
        )

    def estimate(self, counts: Ints, reports: int) -> LocalRanges:
        """All ranges, from the known total down."""
        levels = [
            Level(
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
        equal = "equal" if len(set(self.shares)) == 1 else "optimised"
        return f"Haar wavelet, {equal} levels"


def described(*, epsilon: Fraction, domain: dict[str, Any], shares: list[str]) -> HaarTree:
    """The wavelet that `HaarTree.parameters` describes."""
    told = tuple(read_ratio("shares", share) for share in shares)
    return HaarTree(domain=read(domain), epsilon=epsilon, shares=told)


def haar(*, domain: Domain, epsilon: Number, workload: Asked | None = None) -> HaarTree:
    """The Haar wavelet with equally many clients on every level, or the best for a workload.

    Proof: the mean variance is ``c^2 sum_j (E_(j-1) - E_j) / (2^j p_j)`` less a constant, so by
        Lagrange the best p_j go with the root of ``(E_(j-1) - E_j) / 2^j``.
    Source: Kulkarni, Cormode, Srivastava 2018; F51.
    """
    if declared(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    height = (domain.size - 1).bit_length()
    shares = (Fraction(1, height),) * height
    if workload is not None:
        asked = workload_of(workload, domain)
        held = energies(asked, domain.size, [1 << j for j in range(height + 1)])
        weights = np.sqrt(np.maximum(-np.diff(held), 1e-30) / 2.0 ** np.arange(1, height + 1))
        shares = rounded_shares(weights)
    return HaarTree(domain=domain, epsilon=check.positive("epsilon", epsilon), shares=shares)
