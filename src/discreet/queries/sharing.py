"""Who pays for what: questions that need the same integers measure them once, and share the cost.

Parts are named by anything hashable. A question that shares no part with another keeps its portion
of the budget to itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Generic[P]):
    """A question's parts, its portion of the budget, and the least that each part must get."""

    parts: tuple[P, ...]
    portion: Fraction
    least: Fraction


def share_out(claims: Sequence[Claim[P]]) -> dict[P, Fraction] | None:
    """The share of each part, or None if the claims cannot all be met.

    Theorem: the shares sum to the portions; each part gets at least what any of its questions
        claims for it. If each claims ``portion / number of its parts`` this is always possible, and
        then no question gets more noise than it would alone.
    Proof: in a component of questions that share parts, shares are ``max(least, factor * largest
        portion)`` with the factor for which they sum to the component's portions; it exists iff the
        least claims sum to no more than that. The largest claim for each part is a claim of one
        question, and the claims of a question sum to its portion.
    Source: docs/theory/queries.md.
    Needs: positive portions.
    """
    found: dict[P, Fraction] = {}
    for component in _components(claims):
        whole = sum((claim.portion for claim in component), start=Fraction(0))
        wanted: dict[P, Fraction] = {}
        least: dict[P, Fraction] = {}
        for claim in component:
            for part in claim.parts:
                wanted[part] = max(wanted.get(part, claim.portion), claim.portion)
                least[part] = max(least.get(part, claim.least), claim.least)
        if sum(least.values()) > whole:
            return None
        found.update(_filled(whole, wanted, least))
    return found


def _filled(
    whole: Fraction, wanted: dict[P, Fraction], least: dict[P, Fraction]
) -> dict[P, Fraction]:
    """Shares in proportion to ``wanted``, raised to ``least`` where they would fall below."""
    raised: dict[P, Fraction] = {}
    while True:
        free = {part: want for part, want in wanted.items() if part not in raised}
        left = whole - sum(raised.values(), start=Fraction(0))
        factor = left / sum(free.values(), start=Fraction(0)) if free else Fraction(0)
        short = [part for part, want in free.items() if factor * want < least[part]]
        if not short:
            return raised | {part: factor * want for part, want in free.items()}
        raised |= {part: least[part] for part in short}


def _components(claims: Sequence[Claim[P]]) -> list[list[Claim[P]]]:
    """Claims that are linked by common parts, directly or through others."""
    groups: list[tuple[set[P], list[Claim[P]]]] = []
    for claim in claims:
        parts = set(claim.parts)
        linked = [group for group in groups if group[0] & parts]
        groups = [group for group in groups if not group[0] & parts]
        members = [member for group in linked for member in group[1]]
        groups.append((parts.union(*(group[0] for group in linked)), [*members, claim]))
    return [members for _, members in groups]
