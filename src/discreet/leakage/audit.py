"""The audit over many mechanisms: what each claims, what it gives exactly, what attacks show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet.leakage import exact
from discreet.leakage.attack import Finding, Point, attack, claim_points
from discreet.leakage.case import Case

Verdict: TypeAlias = Literal["holds", "BROKEN", "MISSED", "ACCUSED"]
FAMILY = 1e-6
"""Probability that any good mechanism of a whole audit is accused."""
TOLERANCE = 1e-9
"""Relative room for the rounding of the exact audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mechanism: claimed, exact and attacked epsilon, all at ``claimed.delta``.

    ``exact`` bounds the true epsilon on the audited inputs (None: not listed); ``attacked`` is
    what sampling alone proves. "holds" means not refuted on these inputs, which is no proof;
    "BROKEN" means refuted and known to be so; "MISSED" and "ACCUSED" are faults of the audit or
    of a mechanism, and fail it.
    """

    name: str
    claimed: Point
    exact: exact.Bounds | None
    attacked: Finding
    verdict: Verdict
    why: str

    @property
    def ok(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict in ("holds", "BROKEN")


def audit(
    cases: Iterable[Case],
    *,
    progress: Callable[[Row], None] | None = None,
    samples: int | None = None,
    seed: int = 2026,
) -> list[Row]:
    """Audit every case; the probability of accusing any good one is at most 1e-6 in total.

    Theorem: as stated, by the union bound over the cases' attacks. Each case is attacked at
        failure probability 1e-6 / number of cases.
    Needs: the cases' draws follow the laws of their mechanisms (seeded bits, fresh for each call).
    """
    cases = tuple(cases)
    rows = []
    for index, case in enumerate(cases):
        row = audit_case(
            case,
            failure=FAMILY / len(cases),
            samples=samples or case.samples,
            seed=seed + 1_000 * index,
        )
        if progress is not None:
            progress(row)
        rows.append(row)
    return rows


def audit_case(case: Case, *, failure: float, samples: int, seed: int) -> Row:
    """One row of the audit."""
    seeds = itertools.count(seed)
    found = attack(
        lambda value, n: case.draw(value, n, next(seeds)),
        case.left,
        case.right,
        claimed=case.claimed,
        samples=samples,
        failure=failure,
    )
    points = claim_points(case.claimed)
    refuted = found.broken
    bounds = None
    if case.laws is not None:
        laws = case.laws()
        bounds = exact.epsilon(laws, points[0].delta)
        refuted = refuted or any(_refutes(laws, point) for point in points)
    verdict: Verdict = "holds"
    if refuted:
        # Both ways of looking must catch a broken case: a demonstration that only sums, or only
        # samples, can refute would hide a blind spot of the other.
        verdict = "BROKEN" if case.broken else "ACCUSED"
    if case.broken and not found.broken:
        verdict = "MISSED"
    return Row(
        name=case.name,
        claimed=points[0],
        exact=bounds,
        attacked=found,
        verdict=verdict,
        why=case.why,
    )


def _refutes(laws: exact.Pair, point: Point) -> bool:
    room = TOLERANCE * (1 + point.epsilon)
    return exact.epsilon(laws, point.delta).lower > point.epsilon + room
