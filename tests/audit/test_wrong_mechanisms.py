"""The audit accuses every wrong mechanism: where its samples show nothing, by the certificate."""

import pytest

from discreet.audit.case import one_by_one
from discreet.audit.runner import audit_case
from tests.wrong_mechanisms import wrong_mechanisms


def row(case, made, *, samples=100):
    audited = one_by_one(
        case.name,
        lambda data, rng: case.run(made, data, rng),
        case.left,
        case.other,
        claimed=made.guarantee,
        mechanism=made,
    )
    return audit_case(audited, failure_probability=1e-6, samples=samples, seed=3)


@pytest.mark.parametrize("case", wrong_mechanisms(), ids=lambda case: case.name)
def test_a_wrong_mechanism_is_accused(case):
    found = row(case, case.wrong)
    assert (found.verdict, found.certified) == ("ACCUSED", False)
    assert found.why
    assert not found.ok


def test_a_right_mechanism_is_not():
    for case in wrong_mechanisms()[:3]:
        found = row(case, case.right)
        assert (found.verdict, found.certified) == ("not refuted", True)
