"""Stores to test against: a file, and a private PostgreSQL server on the loopback."""

import pytest

import discreet


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    return request.getfixturevalue("server").empty()


@pytest.fixture
def raw(url):
    """A connection behind the ledger's back, with the triggers off: what a forger has."""
    if url.startswith("sqlite"):
        import sqlite3

        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
    else:
        import psycopg

        connection = psycopg.connect(url, autocommit=True)
        connection.execute("SET search_path = discreet")
        connection.execute("SET session_replication_role = replica")
    yield connection
    connection.close()


@pytest.fixture
def ledger(url):
    with discreet.Ledger(url) as opened:
        yield opened


@pytest.fixture
def account(ledger):
    return ledger.account("survey", limit=discreet.pure_dp(1))
