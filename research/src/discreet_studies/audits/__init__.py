"""Published claims that do not hold, and what does, for `discreet audit`."""

from __future__ import annotations

from discreet.audit.case import AuditCase, AuditSuite
from discreet_studies.audits.published_claims import PublishedClaim


def _cases() -> tuple[AuditCase, ...]:
    from discreet_studies.audits import corrected_mechanisms, published_cases, regression_cases

    return (
        *published_cases.published(),
        *corrected_mechanisms.cases(),
        *regression_cases.cases(),
    )


def _published() -> tuple[AuditCase, ...]:
    from discreet_studies.audits import published_cases, regression_cases

    return (*published_cases.cases(), *regression_cases.cases())


def _demonstrations() -> tuple[PublishedClaim, ...]:
    from discreet_studies.audits import published_claims, regression_cases

    return (*published_claims.claims(), *regression_cases.claims())


SUITE = AuditSuite(cases=_cases, published=_published, demonstrations=_demonstrations)
"""What this package adds to the audit."""
