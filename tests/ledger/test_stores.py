"""The stores themselves: addresses, versions, forks, crashes of the server, work per charge."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.ledger import _postgres as postgres
from discreet.ledger import _sqlite as sqlite
from discreet.ledger import store
from discreet.ledger._filter_rules import ApproxRule
from discreet.ledger.store import Pool, StoreFailure

TENTH = discreet.pure_dp(0.1)


@pytest.mark.parametrize(
    "url", ["budget.db", "sqlite:///", "sqlite:///:memory:", "mysql://root:canary@host/x", 7]
)
def test_other_addresses_are_refused_without_quoting_them(url):
    with pytest.raises(InvalidArgument) as caught:
        discreet.Ledger(url)
    assert "canary" not in str(caught.value)


def test_a_password_is_never_shown():
    with pytest.raises(StoreFailure) as caught:
        discreet.Ledger("postgresql://me:canary@127.0.0.1:9/none")
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__}"
    assert "Is the server up" in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_relative_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with discreet.Ledger("sqlite:///budget.db") as ledger:
        ledger.account("a", limit=discreet.pure_dp(1))
        assert repr(ledger) == "Ledger(sqlite)"
    assert (tmp_path / "budget.db").exists()


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    discreet.Ledger(f"sqlite:///{path}").close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(sqlite.MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(Unsupported, match="newer"):
        discreet.Ledger(f"sqlite:///{path}")


@pytest.mark.postgres
def test_a_database_of_a_newer_version_is_refused(server):
    import psycopg

    url = server.empty()
    discreet.Ledger(url).close()
    discreet.Ledger(url).close()  # opening again migrates nothing
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO discreet.version VALUES (99)")
    with pytest.raises(Unsupported, match="newer"):
        discreet.Ledger(url)


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreFailure, match="Name another file"):
        discreet.Ledger(f"sqlite:///{tmp_path}/text.db")


def test_a_file_of_another_program_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE entries (x)")
    with pytest.raises(StoreFailure, match="made by another program, name another one"):
        discreet.Ledger(f"sqlite:///{tmp_path}/other.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("entries",)]


def test_looking_at_a_file_of_another_program_leaves_it_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE music (x)")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreFailure, match="holds something else"):
        discreet.Ledger(f"sqlite:///{tmp_path}/other.db")
    assert (tmp_path / "other.db").read_bytes() == before


def test_one_store_is_not_taken_for_another(tmp_path):
    versions = sqlite.migrations("CREATE TABLE people (x);\n")
    sqlite.SqliteStore(tmp_path / "service.db", versions=versions).close()
    with pytest.raises(StoreFailure, match="holds something else"):
        discreet.Ledger(f"sqlite:///{tmp_path}/service.db")
    sqlite.SqliteStore(tmp_path / "service.db", versions=versions).close()  # as good as before
    discreet.Ledger(f"sqlite:///{tmp_path}/budget.db").close()
    with pytest.raises(StoreFailure, match="holds something else"):
        sqlite.SqliteStore(tmp_path / "budget.db", versions=versions)


def test_a_folder_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(StoreFailure, match="a folder that exists"):
        discreet.Ledger(f"sqlite:///{tmp_path}/none/budget.db")


def test_a_ledger_that_is_held_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "PATIENCE_S", 0.05)
    path = tmp_path / "budget.db"
    with discreet.Ledger(f"sqlite:///{path}") as ledger:
        account = ledger.account("a", limit=discreet.pure_dp(1))
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreFailure, match="Another process holds the file"):
                account.charge(discreet.pure_dp(0.5), label="one")
        account.charge(discreet.pure_dp(1), label="all")  # nothing had been spent


@pytest.mark.postgres
def test_a_user_without_rights_is_told(server):
    import psycopg

    url = server.empty()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreFailure, match="state 42501. Let this user create a schema"):
        discreet.Ledger(url.replace("ledger@", "guest@"))


def test_without_psycopg_the_message_says_what_to_install():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import discreet\n"
        "try: discreet.Ledger('postgresql://x')\n"
        "except discreet.Unsupported as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert "discreet[postgres]" in done.stdout


def test_without_psycopg_nothing_is_opened(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unsupported, match=r"discreet\[postgres\]"):
        postgres._connect("postgresql://x", "discreet")


def test_other_stores_have_versions_of_their_own(tmp_path):
    """A trigger's inner statement does not end the script's; old versions are not run again."""
    first = "CREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES (1);\n"
    second = (
        "CREATE TRIGGER t BEFORE DELETE ON a BEGIN\n"
        "  SELECT RAISE(ABORT, 'no');\nEND;\nINSERT INTO a VALUES (2);\n"
    )
    sqlite.SqliteStore(tmp_path / "b.db", versions=sqlite.migrations(first)).close()
    kept = sqlite.SqliteStore(tmp_path / "b.db", versions=sqlite.migrations(first, second))
    with kept.read() as session:
        assert session.run("SELECT x FROM a ORDER BY x") == [(1,), (2,)]
    with pytest.raises(StoreFailure), kept.write() as session:
        session.run("DELETE FROM a")
    with pytest.raises(Unsupported, match="newer"):
        sqlite.SqliteStore(tmp_path / "b.db", versions=sqlite.migrations(first))


def test_other_databases_have_versions_of_their_own():
    done = []

    class Fake:
        execute = staticmethod(done.append)

    for step in postgres.migrations("CREATE TABLE a ()", "CREATE TABLE b ()"):
        step(Fake())
    assert done == ["CREATE TABLE a ()", "CREATE TABLE b ()"]


class Busy:
    """A file that somebody else is switching to a write-ahead log."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def execute(self, _):
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return self

    def fetchone(self):
        return ("wal",) if not self.answers else ("delete",)


def test_the_first_openers_wait_for_each_other(monkeypatch):
    locked = sqlite3.OperationalError("database is locked")
    busy = Busy(locked, "delete", "wal")
    sqlite._use_wal(busy)
    assert not busy.answers
    monkeypatch.setattr(sqlite, "PATIENCE_S", -1)
    with pytest.raises(StoreFailure, match="write-ahead"):
        sqlite._use_wal(Busy(locked, "wal"))


def test_a_file_that_cannot_be_written_is_not_waited_for(tmp_path):
    (tmp_path / "budget.db").touch()
    opened = sqlite3.connect(f"file:{tmp_path}/budget.db?mode=ro", uri=True)
    with (
        closing(opened) as connection,
        pytest.raises(StoreFailure, match="readonly.*Let this user write"),
        sqlite.own_errors(),
    ):
        sqlite._use_wal(connection)


def test_sqlite_is_durable(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    with ledger._store._pool.borrow() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def pool_of_numbers():
    opened, closed = [], []
    return Pool(lambda: opened.append(1) or len(opened), closed.append), closed


def test_a_connection_is_used_by_one_at_a_time_and_again():
    pool, closed = pool_of_numbers()
    with pool.borrow() as first, pool.borrow() as second:
        assert first != second
    with pool.borrow() as again:
        assert again in (first, second)
    pool.close()
    assert sorted(closed) == [first, second]


def test_no_connection_is_open_during_a_fork():
    pool, closed = pool_of_numbers()
    with pool.borrow() as first:
        pass
    store._before_fork()
    assert closed == [first]
    store._after_fork()
    with pool.borrow() as second:
        assert second != first


def test_a_fork_waits_for_connections_in_use():
    pool, closed = pool_of_numbers()
    inside, leave, events_seen = threading.Event(), threading.Event(), []

    def work():
        with pool.borrow():
            inside.set()
            leave.wait(60)
            events_seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    threading.Timer(0.05, leave.set).start()
    store._before_fork()
    events_seen.append("forked")
    store._after_fork()
    thread.join()
    assert events_seen == ["done", "forked"]
    assert len(closed) == 1


def test_a_broken_connection_is_not_used_again():
    closed = []
    pool = Pool(object, closed.append)
    with pytest.raises(StoreFailure), pool.borrow() as broken:
        raise StoreFailure("gone")
    assert closed == [broken]
    with pytest.raises(KeyError), pool.borrow() as kept:
        raise KeyError
    with pool.borrow() as again:
        assert again is kept


@pytest.mark.postgres
def test_a_crash_of_the_server_loses_no_grant(server):
    url = server.empty()
    account = discreet.Ledger(url).account("survey", limit=discreet.pure_dp(1))
    for _ in range(5):
        account.charge(TENTH, label="before")
    server.stop("immediate")  # as if the power had failed
    with pytest.raises(StoreFailure):
        account.charge(TENTH, label="during")
    server.start()
    for _ in range(5):
        account.charge(TENTH, label="after")
    with pytest.raises(discreet.BudgetExceeded):
        account.charge(TENTH, label="one more")
    assert discreet.Ledger(url).verify()


def work_of(account, ledger, event):
    """Steps of SQLite's machine for one charge: a measure of work without a clock."""
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    with ledger._store._pool.borrow() as connection:
        connection.set_progress_handler(count, 1)
    account.charge(event, label="counted")
    with ledger._store._pool.borrow() as connection:
        connection.set_progress_handler(None, 1)
    return steps


@pytest.mark.parametrize(
    "limit", [discreet.pure_dp(9), discreet.approx_dp(9, 1e-6), discreet.zcdp(9)]
)
def test_the_work_of_a_charge_does_not_grow_with_the_history(tmp_path, limit):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("survey", limit=limit)
    costs = [discreet.pure_dp(1e-4), discreet.pure_dp(2e-4)]
    for cost in costs:
        account.charge(cost, label="first")
    early = work_of(account, ledger, costs[0])
    with ledger._store._pool.borrow() as connection:
        connection.execute("PRAGMA synchronous = OFF")
    for number in range(1500):
        account.charge(costs[number % 2], label="later", request_id=f"r{number}")
    assert work_of(account, ledger, costs[0]) <= early + 20
    assert len(account._row().state) < 400


def test_an_account_that_is_not_adaptive_may_spend_up_to_the_exact_composition(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    grants = {}
    for adaptive in (True, False):
        account = ledger.account(
            f"{adaptive}", limit=discreet.approx_dp(1, 1e-6), adaptive=adaptive
        )
        number = 0
        try:
            while number < 100:
                account.charge(discreet.gdp(0.05), label="x")
                number += 1
        except discreet.BudgetExceeded:
            pass
        grants[adaptive] = number
        assert account.spent.epsilon(1e-6) <= 1
    assert grants[True] < grants[False]
    best = (discreet.gdp(0.05) * (grants[False] + 1)).epsilon(1e-6)
    assert best > 1
    assert ledger.verify()


def test_an_empty_account_has_spent_nothing(tmp_path):
    account = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").account("a", limit=discreet.gdp(1))
    assert account.spent.event == events.NOTHING
    assert account.remaining == 1
    assert account.expires is None
    assert (account.name, account.relation) == ("a", discreet.NeighboringRelation.ADD_REMOVE)
    assert repr(account) == "Account('a', limit: mu 1)"


@pytest.mark.parametrize("adaptive", [True, False])
def test_verify_finds_a_grant_beyond_the_limit(tmp_path, monkeypatch, adaptive):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("a", limit=discreet.approx_dp(1, 1e-6), adaptive=adaptive)
    with monkeypatch.context() as broken:
        broken.setattr(ApproxRule, "allows", lambda *_: True)
        account.charge(discreet.pure_dp(1.01), label="too much")
    assert any("limit" in problem for problem in ledger.verify().problems)


@pytest.mark.parametrize("adaptive", [True, False])
def test_verify_finds_a_grant_beyond_the_limit_of_an_earlier_period(
    tmp_path, monkeypatch, adaptive
):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    limit = discreet.approx_dp(1, 1e-6)
    account = ledger.account("a", limit=limit, adaptive=adaptive, renewals=1)
    with monkeypatch.context() as broken:
        broken.setattr(ApproxRule, "allows", lambda *_: True)
        account.charge(discreet.pure_dp(1.01), label="too much")
    account.renew(reason="new year")
    assert any("limit" in problem for problem in ledger.verify().problems)


def test_verify_finds_sums_that_were_too_low_from_the_start(tmp_path, monkeypatch):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("a", limit=discreet.approx_dp(1, 1e-6))
    with monkeypatch.context() as broken:
        broken.setattr(ApproxRule, "price", lambda self, _: self.zero)
        account.charge(discreet.pure_dp(0.5), label="for nothing")
    assert any("below what its events cost" in problem for problem in ledger.verify().problems)
