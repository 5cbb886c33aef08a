"""The audit over many mechanisms: what each claims, what it gives exactly, what attacks show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet.audit import exact
from discreet.audit._attack import ClaimPoint, Finding, attack, claim_points
from discreet.audit.case import AuditCase, AuditSuite, Demonstration
from discreet.audit.cases import broken
from discreet.audit.cases import local as local_cases
from discreet.audit.cases import mechanisms as own
from discreet.audit.cases import personalized as personal_cases
from discreet.audit.cases import ranges as range_cases
from discreet.audit.cases import sparse_vector as variants
from discreet.audit.cases import statistics as statistic_cases
from discreet.core._plugins import AUDITS, plugins

Verdict: TypeAlias = Literal["holds", "not refuted", "BROKEN", "MISSED", "ACCUSED"]
FAMILY = 1e-6
"""Probability that any good mechanism of a whole audit is accused."""
TOLERANCE = 1e-9
"""Relative room for the rounding of the exact audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One mechanism: claimed, exact and attacked epsilon, all at ``claimed.delta``.

    ``exact`` bounds the true epsilon on the audited inputs (None: not listed); ``attacked`` is
    what sampling alone proves. The verdict "holds" means that the exact laws keep the claim on
    these inputs, "not refuted" that no attack contradicts it (which is no proof), "BROKEN" that a
    demonstration was caught. "MISSED" and "ACCUSED" are faults, of the audit or of a mechanism.
    """

    name: str
    claimed: ClaimPoint
    exact: exact.Enclosure | None
    attacked: Finding
    verdict: Verdict
    why: str

    @property
    def ok(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict not in ("MISSED", "ACCUSED")


def run_audit(
    cases: Iterable[AuditCase] | None = None,
    *,
    progress: Callable[[AuditRow], None] | None = None,
    samples: int | None = None,
    seed: int = 2026,
) -> list[AuditRow]:
    """Audit every case; the probability of accusing any good one is at most 1e-6 in total.

    Without cases: all that are registered, our own mechanisms and the demonstrations.

    Theorem: as stated, by the union bound over the cases' attacks. Each case is attacked at
        failure probability 1e-6 / number of cases.
    Needs: the cases' draws follow the laws of their mechanisms (seeded bits, fresh for each call).
    """
    audited = registered() if cases is None else tuple(cases)
    rows = []
    for index, case in enumerate(audited):
        row = audit_case(
            case,
            failure_probability=FAMILY / len(audited),
            samples=samples or case.samples,
            seed=seed + 1_000 * index,
        )
        if progress is not None:
            progress(row)
        rows.append(row)
    return rows


def registered() -> tuple[AuditCase, ...]:
    """Our own mechanisms, the sparse vector variants, and what must be caught."""
    good_variants = (case for case in variants.cases() if not case.broken)
    columns = (*own.mechanism_cases(), *statistic_cases.cases())
    ours = (*columns, *local_cases.cases(), *personal_cases.cases())
    added = (case for suite in suites() for case in suite.cases())
    return (*ours, *good_variants, *broken.cases(), *range_cases.cases(), *added)


def published() -> tuple[tuple[AuditCase, ...], tuple[Demonstration, ...]]:
    """Published claims that do not hold and what does: as cases, and by exact numbers."""
    added = suites()
    cases = (*range_cases.cases(), *(case for suite in added for case in suite.published()))
    shown = (one for suite in added for one in suite.demonstrations())
    return cases, (*range_cases.recoveries(), *shown)


def suites() -> tuple[AuditSuite, ...]:
    """What other installed packages add to the audit."""
    return tuple(point.load() for point in plugins(AUDITS).values())


def audit_case(case: AuditCase, *, failure_probability: float, samples: int, seed: int) -> AuditRow:
    """One row of the audit."""
    seeds = itertools.count(seed)
    found = attack(
        lambda value, n: case.draw(value, n, next(seeds)),
        case.left,
        case.right,
        claimed=case.claimed,
        samples=samples,
        failure_probability=failure_probability,
    )
    points = claim_points(case.claimed)
    laws = None if case.laws is None else case.laws()
    truth = [] if laws is None else [exact.epsilon(laws, point.delta) for point in points]
    return AuditRow(
        name=case.name,
        claimed=points[0],
        exact=truth[0] if truth else None,
        attacked=found,
        verdict=_verdict(case, found, list(zip(points, truth, strict=bool(truth)))),
        why=case.why,
    )


def _verdict(
    case: AuditCase, found: Finding, truth: list[tuple[ClaimPoint, exact.Enclosure]]
) -> Verdict:
    refuted = any(true.lower > _with_room(point) for point, true in truth)
    if case.broken:
        # Samples must catch it, and sums too where there are any: a demonstration that only one
        # of them refutes would hide a blind spot of the other.
        return "BROKEN" if found.broken and (refuted or not truth) else "MISSED"
    if found.broken or refuted:
        return "ACCUSED"
    proved = truth and all(true.upper <= _with_room(point) for point, true in truth)
    return "holds" if proved else "not refuted"


def _with_room(point: ClaimPoint) -> float:
    return point.epsilon + TOLERANCE * (1 + point.epsilon)
