"""What every mechanism offers, and the certificate that its guarantee was recomputed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import short
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
        exact = short(self.exact, digits=6) if self.exact > _SMALLEST else "0 up to rounding"
        return f"delta is {exact}, claimed {short(self.claimed, digits=6)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawCheck:
    """One look at the release itself, on made-up data: what was found, and what is allowed."""

    part: str
    found: float
    allowed: float
    route: str

    @property
    def holds(self) -> bool:
        """Whether no more was found than is allowed (up to rounding of doubles)."""
        return self.found <= self.allowed * (1 + _ROUNDING) + _SMALLEST

    @property
    def verdict(self) -> str:
        """Both numbers in words."""
        return f"found {short(self.found)}, allowed {short(self.allowed)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """All recomputations of a mechanism's guarantee, and all looks at its release."""

    mechanism: str
    guarantee: Guarantee
    checks: tuple[CertificateCheck, ...]
    drawn: tuple[DrawCheck, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks) and all(look.holds for look in self.drawn)

    def demand(self) -> Certificate:
        """This certificate, or NotCertified."""
        if not self.holds:
            failed = "the exact law does not keep the claim"
            if all(check.holds for check in self.checks):
                failed = "the release is not what the claim is about"
            raise NotCertified(f"{self.mechanism}: {failed}.\n{self}")
        return self

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {'certified' if self.holds else 'NOT CERTIFIED'}"]
        lines += [
            f"  {check.part}: at epsilon {short(check.epsilon, digits=6)} {check.verdict} "
            f"({check.route})"
            for check in self.checks
        ]
        lines += [f"  {look.part}: {look.verdict} ({look.route})" for look in self.drawn]
        return "\n".join(lines)

    __repr__ = __str__


def target_guarantee(
    epsilon: Fraction, delta: Fraction, *, relation: NeighboringRelation
) -> Guarantee:
    """The guarantee of a mechanism that keeps (epsilon, delta): pure if delta is zero."""
    event = events.ApproxEvent(epsilon, delta) if delta else events.PureEvent(epsilon)
    return Guarantee(event, relation)


class Mechanism(ABC):
    """A randomized function of private data with a stated privacy guarantee.

    Factories such as `laplace` create mechanisms. A mechanism never changes, so each release of the
    same object costs the same. Every mechanism has a method `release`; its arguments depend on the
    mechanism.

    Raises:
        InvalidArgument: `relation` is not a `NeighboringRelation`.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
        >>> isinstance(mechanism, discreet.Mechanism)
        True
        >>> mechanism.guarantee.epsilon()
        0.5

    See Also:
        [Choose noise](../how-to/choose-noise.md), [release a number](../how-to/release.md).
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
        """Privacy guarantee of one release."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation of the error of one released number."""

    @abstractmethod
    def certify(self) -> Certificate:
        """Recompute the guarantee from the exact distribution, and look at the release.

        The release is run on made-up data with fixed random numbers: what it draws is compared with
        its distribution, and what it adds noise to with the sensitivity. No private data is read.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: The exact distribution does not satisfy the guarantee, or the release does
                not follow it.

        Examples:
            >>> import discreet
            >>> discreet.laplace(sensitivity=1, epsilon=0.5).certify().holds
            True
        """
