"""The audit of many tables: sound releases stand, and each mistake is caught."""

import pytest

from discreet.audit.cases.marginals import cases
from discreet.audit.runner import FAMILY, audit_case, registered

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict(case):
    row = audit_case(case, failure_probability=FAMILY / 100, samples=case.samples, seed=11)
    assert row.verdict == ("BROKEN" if case.broken else "not refuted")
    assert row.certified is (None if case.broken else True)
    if case.broken:
        assert row.attacked.epsilon > row.claimed.epsilon
        assert case.why


def test_they_are_registered():
    assert {case.name for case in CASES} <= {case.name for case in registered()}
    assert sum(case.broken for case in CASES) == 5
