"""Published claims that an event refutes, as checks of a study."""

from __future__ import annotations

from collections.abc import Sequence

from discreet_studies.audits.published_claims import PublishedClaim
from discreet_studies.checks import Claims
from discreet_studies.study import StudyCheck


def refuted(experiment: str, found: Sequence[PublishedClaim]) -> list[StudyCheck]:
    """One for each claim: its true delta is above the claimed one, and ours is not."""
    return [
        Claims(
            source=claim.name.rpartition("(")[2].rstrip(")"),
            why=f"Claimed {claim.claimed:.3g}; refuted by {claim.event}.",
        ).at_least(
            f"{experiment}/refuted/{claim.name}",
            f"true delta at epsilon {claim.epsilon:g} is above the claimed one, and ours is not",
            expected=claim.claimed,
            got=claim.true if claim.ok else 0.0,
        )
        for claim in found
    ]
