"""How a budget went down; reservations that are asked for twice; the names of crowds."""

import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.ledger.spending_history import spending_steps


def test_the_same_request_is_one_reservation(ledger):
    account = ledger.account("a", limit=discreet.pure_dp(1))
    first = account.reserve(discreet.pure_dp(0.4), label="x", request_id="r")
    again = account.reserve(discreet.pure_dp(0.4), label="x", request_id="r")
    assert (first.receipt.sequence, first.receipt.replayed) == (2, False)
    assert (again.receipt.sequence, again.receipt.replayed) == (2, True)
    assert float(account.remaining) == 0.6
    again.settle("released")
    with pytest.raises(InvalidArgument):
        first.settle("failed")
    with pytest.raises(InvalidArgument, match="another event"):
        account.reserve(discreet.pure_dp(0.1), label="x", request_id="r")
    assert float(account.remaining) == 0.6
    assert account.history[1].outcome == "released"


@pytest.mark.parametrize("outcome", ["released", "failed"])
def test_a_settled_reservation_pays_for_no_second_answer(ledger, outcome):
    account = ledger.account("a", limit=discreet.pure_dp(1))
    account.reserve(discreet.pure_dp(0.4), label="x", request_id="r").settle(outcome)
    with pytest.raises(InvalidArgument, match="new request_id"):
        account.reserve(discreet.pure_dp(0.4), label="x", request_id="r")
    assert float(account.remaining) == 0.6


def test_a_charge_is_no_reservation(ledger):
    account = ledger.account("a", limit=discreet.pure_dp(1))
    account.charge(discreet.pure_dp(0.25), label="x", request_id="charged")
    account.reserve(discreet.pure_dp(0.25), label="x", request_id="reserved")
    with pytest.raises(InvalidArgument, match="new request_id"):
        account.reserve(discreet.pure_dp(0.25), label="x", request_id="charged")
    with pytest.raises(InvalidArgument, match="new request_id"):
        account.charge(discreet.pure_dp(0.25), label="x", request_id="reserved")
    assert float(account.remaining) == 0.5


def test_the_course_of_a_budget(ledger):
    account = ledger.account("a", limit=discreet.pure_dp(1))
    with account.reserve(discreet.pure_dp(0.25), label="first"):
        pass
    account.charge(discreet.pure_dp(0.5), label="second")
    account.reserve(discreet.pure_dp(0.125), label="third")
    steps = spending_steps(account)
    assert [step.entry.kind for step in steps] == ["open", "reserve", "settle", "charge", "reserve"]
    left = [None if step.remaining is None else float(step.remaining) for step in steps]
    assert left == [1, 0.75, None, 0.25, 0.125]
    assert steps[-1].remaining == account.remaining
    assert [step.entry for step in steps] == list(account.history)


def test_a_long_course_is_cut_and_thinned(ledger):
    account = ledger.account("a", limit=discreet.pure_dp(100))
    for _ in range(50):
        account.charge(discreet.pure_dp(1), label="x")
    steps = spending_steps(account, most=30, points=5)
    assert len(steps) == 30
    told = [float(step.remaining) for step in steps if step.remaining is not None]
    assert 5 <= len(told) <= 7
    assert told == sorted(told, reverse=True)
    assert told[-1] == 50


def test_crowds_have_names(ledger):
    assert ledger.all_personal_budgets() == ()
    menu = {"strict": discreet.zcdp(0.1)}
    ledger.personal_budgets("b", limits=menu, members=["x"], privacy_levels=["strict"])
    ledger.personal_budgets("a", limits=menu, members=["x"], privacy_levels=["strict"])
    assert ledger.all_personal_budgets() == ("b", "a")
