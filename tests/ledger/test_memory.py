"""A ledger in memory: the same rules, for one process, and it says that it is not durable."""

import gc
import json
import multiprocessing
import os
import threading
import weakref
from contextlib import suppress

import polars as pl
import pytest

import discreet
from discreet.cli.ledger import open_ledger
from discreet.ledger.store import StoreFailure
from discreet.report.release_report import ReleaseReport, as_html
from discreet.spec.table import ledger as declared_ledger
from discreet.tables.release import Release

HALF = discreet.pure_dp(0.5)


@pytest.fixture
def ledger():
    return discreet.Ledger("memory://")


@pytest.fixture
def account(ledger):
    return ledger.account("survey", limit=discreet.pure_dp(1))


def test_it_says_what_it_is(ledger, account, tmp_path):
    receipt = account.charge(HALF, label="x")
    assert (ledger.durable, account.durable, receipt.durable) == (False, False, False)
    assert repr(ledger) == "Ledger(memory, not durable)"
    assert repr(account) == "Account('survey', limit: epsilon 1, in memory, not durable)"
    assert json.loads(ledger.export())["durable"] is False
    kept = discreet.Ledger(f"sqlite:///{tmp_path}/b.db")
    held = kept.account("survey", limit=discreet.pure_dp(1))
    assert (kept.durable, held.durable, held.charge(HALF, label="x").durable) == (True,) * 3
    assert "durable" not in json.loads(kept.export())


def test_a_release_and_its_report_say_it(account):
    frame = pl.DataFrame({"x": [1, 2, 3]})
    table = discreet.table(
        frame, columns={"x": discreet.integer(lower=0, upper=3)}, account=account
    )
    release = table.count(epsilon=0.5)
    assert json.loads(release.to_json())["receipt"]["durable"] is False
    assert Release.from_json(release.to_json()).receipt.durable is False
    report = ReleaseReport(title="t", releases=(release,), guarantee=release.guarantee, account="a")
    assert "in memory: it is not durable" in as_html(report)


def test_two_ledgers_in_memory_are_two(account):
    account.charge(discreet.pure_dp(1), label="all")
    other = discreet.Ledger("memory://")
    assert other.accounts() == ()


def test_closing_gives_nothing_back(ledger, account):
    account.charge(discreet.pure_dp(1), label="all")
    with ledger:
        pass
    with pytest.raises(discreet.BudgetExceeded):
        account.charge(HALF, label="more")
    assert ledger.verify()


def attempt(account, answers):
    try:
        account.charge(HALF, label="child")
    except StoreFailure as error:
        answers.put(str(error))
    else:
        answers.put("granted")


@pytest.mark.parametrize("busy", [False, True])
def test_a_fork_does_not_double_the_budget(ledger, account, busy):
    """Also while another thread of the parent is inside: the child must not wait for it."""
    context = multiprocessing.get_context("fork")
    answers, leave = context.Queue(), threading.Event()
    inside = threading.Event()

    def work():
        with ledger._store.read():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    if busy:
        thread.start()
        inside.wait(60)
    child = context.Process(target=attempt, args=(account, answers))
    child.start()
    said = answers.get(timeout=60)
    child.join(60)
    leave.set()
    if busy:
        thread.join()
    assert child.exitcode == 0
    assert "a fork does not double its budget; nothing was granted" in said
    account.charge(discreet.pure_dp(1), label="all of it is still there")


def test_every_way_in_is_closed_to_a_child(ledger, account, monkeypatch):
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    for ask in (
        lambda: account.remaining,
        lambda: account.can_afford(HALF),
        lambda: account.reserve(HALF, label="x"),
        lambda: ledger.account("other", limit=HALF),
        ledger.verify,
        ledger.accounts,
    ):
        with pytest.raises(StoreFailure, match="fork"):
            ask()


def test_a_transaction_inside_another_is_refused_and_not_waited_for(ledger, account):
    with ledger._store.write(), pytest.raises(StoreFailure, match="in use by this thread"):
        account.charge(HALF, label="x")
    account.charge(HALF, label="x")


def test_what_fails_is_undone(ledger, account):
    with suppress(ZeroDivisionError), ledger._store.write() as session:
        session.run("INSERT INTO tallies VALUES (1, 0, '', 'd', 'e', 1)")
        raise ZeroDivisionError
    assert ledger.verify()
    with pytest.raises(StoreFailure, match="SQLite refused"), ledger._store.write() as session:
        session.run("UPDATE entries SET content = 'x'")
    assert ledger.verify()


def test_nothing_is_left_when_nobody_holds_it():
    ledger = discreet.Ledger("memory://")
    account = ledger.account("a", limit=HALF)
    held = weakref.ref(ledger._store)
    del ledger
    account.charge(HALF, label="the account alone keeps it")
    del account
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("url", ["memory://x", "memory:", "memory:///b.db"])
def test_other_spellings_are_refused(url):
    with pytest.raises(discreet.InvalidArgument, match="memory://"):
        discreet.Ledger(url)


def test_a_file_called_memory_is_not_meant():
    with pytest.raises(discreet.InvalidArgument, match="say memory:// if that is what you want"):
        discreet.Ledger("sqlite:///:memory:")


def test_commands_and_servers_need_a_ledger_that_stays(tmp_path):
    with pytest.raises(discreet.InvalidArgument, match="forgets what was spent"):
        declared_ledger("memory://", tmp_path)
    with pytest.raises(discreet.InvalidArgument, match="its own process"):
        open_ledger("memory://")
