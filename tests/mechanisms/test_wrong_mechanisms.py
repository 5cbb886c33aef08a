"""No wrong mechanism is certified, and each right one beside it is."""

import pytest

from discreet.core.errors import NotCertified
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate
from tests.wrong_mechanisms import further, reported, wrong_mechanisms


def test_there_are_ten_and_twice_as_many_more():
    assert len(reported()) == 10
    assert len(further()) >= 20


@pytest.mark.parametrize("case", wrong_mechanisms(), ids=lambda case: case.name)
def test_a_wrong_mechanism_is_not_certified(case):
    with pytest.raises(NotCertified):
        case.wrong.certify()
    assert case.right.certify().holds


def test_the_claimed_event_alone_would_certify_all_ten(monkeypatch):
    """As certificates once were: they recomputed the claim, and never looked at what is drawn."""
    claimed = property(lambda self: all(check.holds for check in self.checks))
    monkeypatch.setattr(Certificate, "holds", claimed)
    monkeypatch.setattr(AdditiveMechanism, "_added", property(lambda self: self.guarantee.event))
    assert all(case.wrong.certify().holds for case in reported())
