"""A ledger of its own for each test."""

import pytest

import discreet


@pytest.fixture
def ledger(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as made:
        yield made
