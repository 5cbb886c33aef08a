"""Stores to test against: a file, memory, and a private PostgreSQL server on the loopback."""

import pytest

import discreet


def pytest_generate_tests(metafunc):
    """Tests that ask for an address or for a forger's way in need a store that others can open."""
    if "place" in metafunc.fixturenames:
        kinds = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
        if "url" not in metafunc.fixturenames:
            kinds.append("memory")
        metafunc.parametrize("place", kinds, indirect=True)


@pytest.fixture
def place(request, tmp_path):
    """The address of an empty store."""
    if request.param == "postgres":
        return request.getfixturevalue("server").empty()
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/budget.db"


@pytest.fixture
def url(place):
    """The address of an empty store that others can open, too."""
    return place


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
def ledger(place):
    with discreet.Ledger(place) as opened:
        yield opened


@pytest.fixture
def account(ledger):
    return ledger.account("survey", limit=discreet.pure_dp(1))
