"""What version 0.1 wrote is read, says what it said then, and is written again as it was.

The files are copied first: opening a database may change it. To record a new fixture, see
``tests/compatibility/record.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import Ledger
from tests.compatibility import written
from tests.compatibility.example import read_json

EXPECTED: dict[str, Any] = read_json("written_holds.json")


def test_everything_is_tried() -> None:
    assert EXPECTED.keys() == written.SEEN.keys()
    assert {place for place, _ in written.SEEN.values()} == set(written.MAKE)
    assert {path.name for path in written.WRITTEN.iterdir()} == set(written.MAKE)


@pytest.mark.parametrize("name", list(written.SEEN))
def test_written(name: str, tmp_path: Path) -> None:
    found = written.see(name, tmp_path)
    expected = EXPECTED[name]
    assert found.keys() == expected.keys()
    for part in found:
        if name == "guarantees" and part in written.EVENTS:
            assert_numbers_agree(found[part], expected[part])
        else:
            assert found[part] == expected[part], part


def assert_numbers_agree(found: list[Any], expected: list[Any]) -> None:
    """Numbers from Fourier transforms and SciPy differ in their last digits between processors."""
    assert found[0] == expected[0]
    numbers = [[float.fromhex(one) for one in held[1]] for held in (found, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-12, abs=0)


def test_accounts_go_on(tmp_path: Path) -> None:
    folder = written.copied("ledger", tmp_path)
    with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        for account in ledger.accounts():
            entries, before, spent = len(account.history), account.remaining, account.spent
            cost = discreet.pure_dp(0.0625, relation=account.relation)
            if account.name in ("zcdp", "gdp"):
                cost = discreet.gdp(0.125)
            receipt = account.charge(cost, label="one more")
            assert receipt.sequence == entries + 1
            assert account.spent == spent + cost
            # What an account that is not adaptive has left is composed as a whole.
            assert account.remaining < before or account.name == "not adaptive"
        assert ledger.verify().ok
        pure = ledger.account("pure")
        assert float(pure.remaining) == 3 - 0.5 - 0.25 - 0.125 - 0.125 - 0.125 - 2 * 0.0625
        again = ledger.account("child").charge(
            discreet.pure_dp(0.25), label="a child pays", request_id="request 1"
        )
        assert again.replayed
        held = ledger.account("child").reserve(
            discreet.pure_dp(0.125), label="still open", request_id="request 2"
        )
        assert held.receipt.replayed
        held.settle("released")
        with pytest.raises(discreet.BudgetExceeded):
            pure.charge(discreet.pure_dp(2), label="too much")
        crowd = ledger.personal_budgets("crowd")
        taken = crowd.charge_eligible(discreet.zcdp(0.05), label="one more")
        assert taken.included.tolist() == [False, True, True, False]
        assert ledger.verify().ok


def test_plain_values_of_the_ledger() -> None:
    accounts = EXPECTED["ledger"]["accounts"]
    assert accounts["pure"]["remaining"] == "15/8"
    assert accounts["child"]["remaining"] == "1/2"
    assert accounts["child"]["parents"] == ["pure"]
    assert accounts["zcdp"]["remaining"] == "3/8"
    assert accounts["replaced"]["relation"] == "REPLACE_ONE"
    assert accounts["approx"]["period"] == 1
    outcomes = [one["outcome"] for one in accounts["child"]["history"] if one["kind"] == "reserve"]
    assert outcomes == ["open", "released"]
