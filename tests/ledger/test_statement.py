"""Statements of account add up; and an empty account grants whatever costs at most its limit."""

import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.core.errors import BudgetExceeded

LIMITS = {
    "pure": discreet.pure_dp(1),
    "approximate": discreet.approx_dp(2, 1e-6),
    "rho": discreet.zcdp(0.5),
    "mu": discreet.gdp(1.5),
}
CHARGES = [
    discreet.pure_dp(0.05),
    discreet.laplace(sensitivity=1, epsilon=0.03).guarantee,
    discreet.laplace(sensitivity=3, epsilon=0.1).guarantee,
]
CLASSES = re.compile(r"Event|Pure|Approx|Zcdp|Gdp|Composed|DiscreteLaplace|events of")


def opened(limit, name="survey", **terms):
    return discreet.Ledger("memory://").account(name, limit=limit, **terms)


def exact(number):
    return Decimal(repr(number))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(LIMITS)),
    st.lists(st.sampled_from(CHARGES), max_size=8),
    st.integers(1, 6),
)
def test_the_columns_add_up(kind, charges, most):
    account = opened(LIMITS[kind])
    for i, one in enumerate(charges):
        account.charge(one, label=f"release {i}")
    told = account.statement(most=most)
    assert sum((exact(line.added) for line in told.lines), Decimal(0)) == exact(told.total)
    for before, line in zip((None, *told.lines), told.lines, strict=False):
        start = Decimal(0) if before is None else exact(before.total)
        assert start + exact(line.added) == exact(line.total)
    if kind != "mu":
        assert (
            exact(told.total) + exact(told.left)
            == {"pure": 1, "approximate": 2, "rho": Decimal("0.5")}[kind]
        )
    assert len(told.lines) == min(len(charges), most + (len(charges) > most))
    # Rounded up, and right: against the sums by hand.
    if kind in ("pure", "approximate") and charges:
        by_hand = sum(one.epsilon() for one in charges)
        assert told.total <= by_hand + 0.0011
        assert told.total >= account.spent.epsilon(told.delta) - 1e-9
    assert told.grant <= float(account.remaining)
    assert not CLASSES.search(str(told))
    assert all(line in str(told) for line in told.words)


def test_a_statement_in_print():
    account = opened(discreet.approx_dp(1, 1e-6))
    account.charge(discreet.pure_dp(0.2), label="count by smokes")
    with (
        pytest.raises(ValueError, match="lost"),
        account.reserve(discreet.pure_dp(0.3), label="mean of visits"),
    ):
        raise ValueError("lost")
    margin = "for example a count with a margin of error of ±6"
    assert str(account.statement()).splitlines() == [
        "account 'survey': limit epsilon 1, delta 1e-06, add or remove one unit",
        "   #  release           alone   added   total",
        "   2  count by smokes   0.200   0.200   0.200",
        "   3  mean of visits    0.300   0.300   0.500 (failed: it stays spent)",
        "spent: epsilon 0.500 at delta 1e-06",
        "left: epsilon 0.500",
        f"the next release may have a pure epsilon of up to 0.500: {margin}",
    ]
    assert account.statement().to_dict()["total"] == [0.2, 0.5]
    assert (
        account.statement().reach == discreet.laplace(sensitivity=1, epsilon=0.5).interval(0.95)[1]
    )


def test_a_new_period_has_a_statement_of_its_own():
    account = opened(discreet.pure_dp(1), renewals=1)
    account.charge(discreet.pure_dp(1), label="January")
    assert account.statement().words[-1] == "the account grants nothing more in this period"
    assert account.statement().reach is None
    account.renew(reason="February")
    assert account.statement().lines == ()
    assert account.statement().left == 1


def test_parents_tell_what_their_children_spent():
    ledger = discreet.Ledger("memory://")
    whole = ledger.account("whole", limit=discreet.pure_dp(1))
    part = ledger.account("part", limit=discreet.pure_dp(0.5), parent="whole")
    part.charge(discreet.pure_dp(0.25), label="count")
    assert [line.total for line in whole.statement().lines] == [0.25]


# ── Granting ─────────────────────────────────────────────────────────────────────────────────────


def pair_of_laplace():
    made = discreet.laplace(sensitivity=1, epsilon=0.5).guarantee
    return made + made


BATCHES = {
    "gaussian": lambda: discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6).guarantee,
    "reals": lambda: discreet.gaussian(sensitivity=0.7, epsilon=1, delta=1e-6).guarantee,
    "laplace pair": pair_of_laplace,
    "declared": lambda: discreet.approx_dp(1, 1e-6),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("composition", [None, "concentrated"])
def test_what_costs_the_limit_is_granted_to_an_empty_account(name, composition, tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    limit = discreet.approx_dp(1, 1e-6)
    account = ledger.account("survey", limit=limit, composition=composition)
    batch = BATCHES[name]()
    assert account.can_afford(batch)
    account.charge(batch, label="all of it")
    assert account.statement().total == 1
    small = discreet.pure_dp(0.001)
    assert not account.can_afford(small)
    with pytest.raises(BudgetExceeded, match="epsilon 0.001 would pass") as refused:
        account.charge(small, label="more")
    assert not CLASSES.search(str(refused.value))
    assert ledger.verify().ok


def test_a_second_batch_has_to_fit_the_filter():
    account = opened(discreet.approx_dp(1, 1e-6))
    account.charge(discreet.pure_dp(0.001), label="first")
    batch = discreet.gaussian(sensitivity=1, epsilon=0.99, delta=1e-6).guarantee
    with pytest.raises(BudgetExceeded):
        account.charge(batch, label="second")


def test_more_than_the_limit_is_refused():
    account = opened(discreet.approx_dp(1, 1e-6))
    for epsilon in (1.01, 2, 50):
        batch = discreet.gaussian(sensitivity=1, epsilon=epsilon, delta=1e-6).guarantee
        with pytest.raises(BudgetExceeded):
            account.charge(batch, label="too much")
    assert account.statement().total == 0


def test_accounts_above_decide_by_themselves():
    ledger = discreet.Ledger("memory://")
    limit = discreet.approx_dp(1, 1e-6)
    whole = ledger.account("whole", limit=limit)
    batch = discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6).guarantee
    whole.charge(discreet.pure_dp(0.01), label="before")
    part = ledger.account("part", limit=limit, parent="whole")
    assert not part.can_afford(batch)


def test_the_chain_shows_a_grant_that_was_none(tmp_path):
    """A ledger whose first charge is beyond the limit is found out."""
    path = tmp_path / "budget.db"
    ledger = discreet.Ledger(f"sqlite:///{path}")
    account = ledger.account("survey", limit=discreet.approx_dp(1, 1e-6))
    account.charge(discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6).guarantee, label="all")
    from discreet.ledger import _filter_rules

    assert ledger.verify().ok
    real = _filter_rules.ApproxRule.allows_exactly
    _filter_rules.ApproxRule.allows_exactly = lambda *_: False
    try:
        assert not ledger.verify().ok
    finally:
        _filter_rules.ApproxRule.allows_exactly = real


def test_a_release_of_all_of_the_limit_by_a_table():
    import pandas as pd

    rows = pd.DataFrame({"id": range(90), "x": np.arange(90) % 10})
    for queries in (["count"], ["count", "mean", "sum", "variance"]):
        account = opened(discreet.approx_dp(1, 1e-6))
        table = discreet.table(
            rows,
            columns={"x": discreet.integer(0, 9)},
            privacy_unit="id",
            max_rows_per_unit=1,
            account=account,
        )
        asked = [
            discreet.query.count() if one == "count" else getattr(discreet.query, one)("x")
            for one in queries
        ]
        table.release(asked, epsilon=1, delta=1e-6, noise="gaussian")
        assert account.statement().total <= 1
