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
from discreet.audit.cases import marginals as marginal_cases
from discreet.audit.cases import mechanisms as own
from discreet.audit.cases import personalized as personal_cases
from discreet.audit.cases import ranges as range_cases
from discreet.audit.cases import sparse_vector as variants
from discreet.audit.cases import statistics as statistic_cases
from discreet.core._plugins import AUDITS, load, plugins
from discreet.core.errors import NotCertified

Verdict: TypeAlias = Literal["holds", "not refuted", "BROKEN", "MISSED", "ACCUSED"]
FAMILY = 1e-6
"""Probability that any good mechanism of a whole audit is accused."""
TOLERANCE = 1e-9
"""Relative room for the rounding of the exact audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One mechanism: claimed, exact and attacked epsilon, all at ``claimed.delta``.

    ``exact`` bounds the true epsilon on the audited inputs (None: not listed); ``attacked`` is
    what sampling alone proves; ``certified`` says whether its own certificate came out, with its
    look at the release (None: it has none). The verdict "holds" means that the exact laws keep the
    claim on these inputs, "not refuted" that no attack contradicts it (which is no proof), "BROKEN"
    that a demonstration was caught. "MISSED" and "ACCUSED" are faults, of the audit or of a
    mechanism: also of one whose certificate fails.
    """

    name: str
    claimed: ClaimPoint
    exact: exact.Enclosure | None
    attacked: Finding
    verdict: Verdict
    why: str
    certified: bool | None = None

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
    """Audit many mechanisms: exact distributions where they are known, and attacks.

    The probability that any true claim is refuted is at most 1e-6 for the whole audit.

    Args:
        cases: Cases to audit. By default all registered mechanisms and demonstrations, which takes
            minutes.
        progress: Function that receives each row of the result as soon as it is known.
        samples: Number of outputs per input, instead of the number of each case.
        seed: Seed of the simulation.

    Returns:
        One row per case with the claimed, exact and attacked epsilon and a `verdict`: `"holds"`,
        `"not refuted"`, `"BROKEN"` (a known violation was found), `"MISSED"` or `"ACCUSED"`.

    Examples:
        >>> from discreet import audit
        >>> rows = audit.run_audit(audit.mechanism_cases()[:1], samples=1_000)
        >>> rows[0].verdict
        'holds'

    See Also:
        [Audit a mechanism](../how-to/audit.md).

    References:
        [Proof](../theory/theorems.md#audit.runner.run_audit).
    """
    # Theorem: as stated, by the union bound over the cases' attacks. Each case is attacked at
    #   failure probability 1e-6 / number of cases.
    # Needs: the cases' draws follow the laws of their mechanisms (seeded bits, fresh for each
    #   call).
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
    columns = (*own.mechanism_cases(), *statistic_cases.cases(), *marginal_cases.cases())
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
    found = [load(point) for point in plugins(AUDITS).values()]
    return tuple([one for one in found if one is not None])


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
    certified, failure = _certified(case)
    verdict = _verdict(case, found, list(zip(points, truth, strict=bool(truth))))
    return AuditRow(
        name=case.name,
        claimed=points[0],
        exact=truth[0] if truth else None,
        attacked=found,
        verdict="ACCUSED" if certified is False else verdict,
        why=failure or case.why,
        certified=certified,
    )


def _certified(case: AuditCase) -> tuple[bool | None, str]:
    """Whether the mechanism's certificate comes out, and how it fails."""
    if case.mechanism is None:
        return None, ""
    try:
        case.mechanism.certify()
    except NotCertified as error:
        return False, str(error).partition("\n")[0]
    return True, ""


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
