"""A release that may have an account: charged before it, once, and only by private noise."""

import pytest

import discreet
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.ledger.account import reserve_if_charged
from discreet.noise.random_source import seeded_rng, system_rng


@pytest.fixture
def account(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        yield ledger.account("one", limit=discreet.pure_dp(3))


def test_without_an_account_nothing_is_held():
    with reserve_if_charged(None, discreet.pure_dp(1), label="free", rng=seeded_rng(1)) as held:
        assert held is None


def test_an_account_is_charged_before_the_block_begins(account):
    with reserve_if_charged(
        account, discreet.pure_dp(1), label="x" * 300, rng=system_rng()
    ) as held:
        assert account.spent.epsilon(0) == 1
    assert held.receipt.label == "x" * 197 + "..."


def test_seeded_bits_are_refused_and_cost_nothing(account):
    with pytest.raises(NotCertified):
        reserve_if_charged(account, discreet.pure_dp(1), label="seeded", rng=seeded_rng(1))
    assert account.spent.epsilon(0) == 0


def test_what_is_no_account_is_refused():
    with pytest.raises(InvalidArgument, match="account must come from a ledger.*got str"):
        reserve_if_charged("survey", discreet.pure_dp(1), label="x", rng=system_rng())
