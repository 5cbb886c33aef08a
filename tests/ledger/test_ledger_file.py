"""The ledger's file is one file: found again from any folder, private, and noticed when it goes."""

from __future__ import annotations

import stat

import pytest

import discreet
from discreet.core.errors import BudgetExceeded
from discreet.ledger.store import StoreFailure


def _charge(account, epsilon):
    with account.reserve(discreet.pure_dp(epsilon), label="x"):
        pass


def test_a_relative_path_does_not_follow_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    discreet.Ledger("sqlite:///budget.db").account("x", limit=discreet.pure_dp(1))
    monkeypatch.chdir(tmp_path / "a")
    ledger = discreet.Ledger("sqlite:///budget.db")
    account = ledger.account("x", limit=discreet.pure_dp(1))
    _charge(account, 0.9)
    monkeypatch.chdir(tmp_path / "b")
    ledger.close()
    with pytest.raises(BudgetExceeded):
        _charge(account, 0.9)


def test_a_new_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "budget.db"
    discreet.Ledger(f"sqlite:////{path}").account("x", limit=discreet.pure_dp(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_or_replaced_file_takes_no_charge(tmp_path, replaced):
    path = tmp_path / "budget.db"
    ledger = discreet.Ledger(f"sqlite:////{path}")
    account = ledger.account("x", limit=discreet.pure_dp(1))
    _charge(account, 0.1)
    if replaced:
        other = tmp_path / "other.db"
        discreet.Ledger(f"sqlite:////{other}").account("x", limit=discreet.pure_dp(1))
        other.replace(path)
    else:
        path.unlink()
    with pytest.raises(StoreFailure, match="deleted or replaced"):
        _charge(account, 0.1)
