"""What every mechanism offers, and the certificate that its guarantee was recomputed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation

# Sums in double precision may differ by this much, relatively and absolutely, between two routes.
# Absolutely: terms that are equal in truth differ by a few units in the last place, times the
# exponent of their exponential (up to a hundred).
_ROUNDING = 1e-9
_SMALLEST = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateCheck:
    """One recomputation: the divergence of the exact law against the claim at one epsilon."""

    part: str
    epsilon: float
    claimed: float
    exact: float
    route: str

    @property
    def holds(self) -> bool:
        """Whether the exact delta stays within the claim (up to rounding of doubles)."""
        return self.exact <= self.claimed * (1 + _ROUNDING) + _SMALLEST

    @property
    def verdict(self) -> str:
        """Exact and claimed delta in words; below the rounding of doubles there is no number."""
        exact = f"{self.exact:.6g}" if self.exact > _SMALLEST else "0 up to rounding"
        return f"delta is {exact}, claimed {self.claimed:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """All recomputations of a mechanism's guarantee."""

    mechanism: str
    guarantee: Guarantee
    checks: tuple[CertificateCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def demand(self) -> Certificate:
        """This certificate, or NotCertified."""
        if not self.holds:
            raise NotCertified(f"{self.mechanism}: the exact law does not keep the claim.\n{self}")
        return self

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {'certified' if self.holds else 'NOT CERTIFIED'}"]
        lines += [
            f"  {check.part}: at epsilon {check.epsilon:.6g} {check.verdict} ({check.route})"
            for check in self.checks
        ]
        return "\n".join(lines)

    __repr__ = __str__


def target_guarantee(
    epsilon: Fraction, delta: Fraction, *, relation: NeighboringRelation
) -> Guarantee:
    """The guarantee of a mechanism that keeps (epsilon, delta): pure if delta is zero."""
    event = events.ApproxEvent(epsilon, delta) if delta else events.PureEvent(epsilon)
    return Guarantee(event, relation)


class Mechanism(ABC):
    """A randomized map with a stated cost. Frozen: the same object always costs the same.

    Every mechanism also has ``release``; what it takes and returns differs.
    """

    def __post_init__(self) -> None:
        # Refused where it is written, not after a release whose guarantee cannot be named.
        relation = getattr(self, "relation", NeighboringRelation.LOCAL)
        if not isinstance(relation, NeighboringRelation):
            raise InvalidArgument(
                "relation must be one of discreet.NeighboringRelation, got "
                f"{type(relation).__name__}."
            )

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one release costs."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation of the error of one released number."""

    @abstractmethod
    def certify(self) -> Certificate:
        """Recompute the guarantee from the exact law; NotCertified if it does not hold."""
