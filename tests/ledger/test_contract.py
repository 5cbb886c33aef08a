"""What every store must do; all are held to the same tests.

Those that ask for `url` are about several processes, which a ledger in memory does not have.
"""

import copy
import csv
import io
import json
import pickle
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.core import events
from discreet.ledger.store import StoreFailure

CROWD = Path(__file__).with_name("personal_budgets_process.py")
TENTH = discreet.pure_dp(0.1)


def crowd(*arguments):
    done = subprocess.run(
        [sys.executable, str(CROWD), *map(str, arguments)],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_copies_spend_from_the_same_account_and_a_pickle_from_none(account):
    for copied in (copy.copy(account), copy.deepcopy([account])[0]):
        assert copied is account
    held = pickle.dumps(account)
    read = pickle.loads(held)
    assert (read.name, read.limit, read.relation) == ("survey", account.limit, account.relation)
    for spend in (read.charge, read.reserve):
        with pytest.raises(StoreFailure, match="comes from a pickle"):
            spend(TENTH, label="twice")
    with pytest.raises(StoreFailure, match="comes from a pickle"):
        _ = read.spent
    assert b"budget.db" not in held
    assert b"postgres" not in held  # nor the password beside it
    assert account.remaining == 1


def test_ten_tenths_are_one_and_an_eleventh_is_refused(ledger, account):
    for number in range(10):
        assert account.remaining == 1 - Fraction(number, 10)
        account.charge(TENTH, label=f"query {number}")
    head = account.head
    with pytest.raises(discreet.BudgetExceeded, match="nothing was spent"):
        account.charge(discreet.pure_dp(1e-12), label="one more")
    assert account.head == head
    assert account.remaining == 0
    assert account.spent == TENTH * 10
    assert account.spent.epsilon(0) == 1.0
    assert ledger.verify()


def test_what_was_charged_is_there_for_others(url, account):
    receipt = account.charge(TENTH, label="first")
    with discreet.Ledger(url) as other:
        found = other.account("survey")
        assert found.limit == discreet.pure_dp(1)
        assert found.spent == TENTH
        entry = found.history[-1]
    assert (entry.kind, entry.label, entry.guarantee) == ("charge", "first", TENTH)
    assert (entry.sequence, entry.hash) == (receipt.sequence, receipt.hash)
    assert found.head == f"{receipt.sequence}:{receipt.hash}"


def test_the_same_request_is_one_charge(account):
    first = account.charge(TENTH, label="a", request_id="r1")
    again = account.charge(TENTH, label="b", request_id="r1")
    assert not first.replayed
    assert again.replayed
    assert (again.sequence, again.hash, again.label) == (first.sequence, first.hash, "a")
    assert account.spent == TENTH
    with pytest.raises(discreet.InvalidArgument, match="another event"):
        account.charge(discreet.pure_dp(0.2), label="a", request_id="r1")
    assert account.spent == TENTH


def test_the_same_request_counts_for_each_account(ledger, account):
    other = ledger.account("other", limit=discreet.pure_dp(1))
    account.charge(TENTH, label="a", request_id="r1")
    assert not other.charge(TENTH, label="a", request_id="r1").replayed


def test_a_request_repeated_at_the_limit_is_still_answered(account):
    account.charge(discreet.pure_dp(1), label="all", request_id="r1")
    assert account.charge(discreet.pure_dp(1), label="all", request_id="r1").replayed


def test_a_reservation_is_spent_at_once_and_settles_once(ledger, account):
    reservation = account.reserve(TENTH, label="histogram")
    assert account.spent == TENTH
    assert account.history[-1].outcome == "open"
    reservation.settle("released")
    outcomes = [entry.outcome for entry in account.history if entry.kind == "reserve"]
    assert outcomes == ["released"]
    with pytest.raises(discreet.InvalidArgument, match="settled"):
        reservation.settle("failed")
    with pytest.raises(discreet.InvalidArgument, match="outcome"):
        account.reserve(TENTH, label="x").settle("refunded")
    assert ledger.verify()


def test_two_who_run_the_same_request_get_one_answer_out(ledger, account):
    first = account.reserve(TENTH, label="histogram", request_id="r1")
    again = account.reserve(TENTH, label="histogram", request_id="r1")
    with first:
        pass
    with pytest.raises(discreet.InvalidArgument, match="pays for one answer"), again:
        pass  # what is published after the block would be a second answer
    with account.reserve(TENTH, label="settled inside") as own:
        own.settle("released")
    assert ledger.verify()


def test_a_failure_stays_spent(ledger, account):
    with pytest.raises(ZeroDivisionError), account.reserve(TENTH, label="division"):
        _ = 1 / 0
    assert account.spent == TENTH
    (entry,) = (entry for entry in account.history if entry.kind == "reserve")
    assert entry.outcome == "failed"
    with account.reserve(TENTH, label="good"):
        pass
    assert [e.outcome for e in account.history if e.kind == "reserve"] == ["failed", "released"]
    assert ledger.verify()


def test_a_charge_is_recorded_at_every_level_or_at_none(ledger):
    whole = ledger.account("organization", limit=discreet.zcdp(0.02))
    team = ledger.account("team", limit=discreet.approx_dp(2, 1e-6), parent=whole)
    anna = ledger.account("anna", limit=discreet.pure_dp(1), parent="team")
    ben = ledger.account("ben", limit=discreet.pure_dp(1), parent=team)
    assert anna.parents == ("organization", "team")
    anna.charge(TENTH, label="a")
    ben.reserve(TENTH, label="b").settle("released")
    assert whole.spent == team.spent == TENTH * 2
    assert [entry.origin for entry in whole.history[1:]] == ["anna#2", "ben#2"]
    heads = {a.name: a.head for a in ledger.accounts()}
    assert anna.can_afford(TENTH)
    assert not anna.can_afford(discreet.pure_dp(0.9))
    with pytest.raises(discreet.BudgetExceeded, match="organization"):
        anna.charge(discreet.pure_dp(0.9), label="more than all have")
    assert heads == {a.name: a.head for a in ledger.accounts()}
    assert ledger.verify(heads=heads)


def test_two_children_cannot_spend_what_the_parent_has_once(ledger):
    parent = ledger.account("parent", limit=discreet.pure_dp(1))
    children = [ledger.account(n, limit=discreet.pure_dp(1), parent=parent) for n in "ab"]
    children[0].charge(discreet.pure_dp(0.7), label="x")
    with pytest.raises(discreet.BudgetExceeded, match="'parent'"):
        children[1].charge(discreet.pure_dp(0.4), label="y")
    assert children[1].spent.event == events.NOTHING


def test_an_expired_account_is_renewed_with_a_reason(ledger):
    past, future = datetime.now(tz=UTC) - timedelta(1), datetime.now(tz=UTC) + timedelta(1)
    account = ledger.account("year", limit=discreet.pure_dp(1), expires=past, renewals=1)
    with pytest.raises(discreet.BudgetExceeded, match="expired"):
        account.charge(TENTH, label="late")
    with pytest.raises(discreet.InvalidArgument, match="expires"):
        account.renew(reason="new year")
    account.renew(reason="new year", expires=future)
    assert account.expires == future
    account.charge(discreet.pure_dp(1), label="all")
    with pytest.raises(discreet.BudgetExceeded, match="may be renewed 1 times"):
        account.renew(reason="again", expires=future)
    assert [e.label for e in account.history if e.kind == "renew"] == ["new year"]
    assert ledger.verify()


@pytest.mark.parametrize(
    "expires",
    [
        "2030-01-01",
        date(2030, 1, 1),
        datetime(2030, 1, 1),  # noqa: DTZ001 - that is what is wrong with it
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_an_end_that_is_no_moment_is_refused(ledger, expires):
    with pytest.raises(discreet.InvalidArgument, match="expires must be"):
        ledger.account("short", limit=discreet.pure_dp(1), expires=expires)
    assert ledger.accounts() == ()


def test_an_account_that_expired_long_ago_has_expired(ledger):
    end = datetime(999, 1, 1, tzinfo=UTC)
    account = ledger.account("old", limit=discreet.pure_dp(1), expires=end)
    assert account.expires == end
    with pytest.raises(discreet.BudgetExceeded, match="expired"):
        account.charge(TENTH, label="late")


def test_a_renewal_starts_anew_and_keeps_the_past(ledger):
    account = ledger.account("year", limit=discreet.pure_dp(1), renewals=2)
    account.charge(discreet.pure_dp(1), label="all")
    account.renew(reason="second year")
    assert (account.period, account.remaining, account.spent.epsilon(0)) == (1, 1, 0.0)
    account.charge(discreet.pure_dp(1), label="all again")
    assert [entry.period for entry in account.history] == [0, 0, 1, 1]
    assert ledger.verify()


def test_accounts_do_not_renew_unless_their_policy_says_so(account):
    with pytest.raises(discreet.BudgetExceeded, match="0 times"):
        account.renew(reason="please")


def test_the_terms_of_an_account_do_not_change(ledger, account):
    same = ledger.account("survey", limit=discreet.pure_dp(1))
    assert same.limit == account.limit
    for terms in (
        {"limit": discreet.pure_dp(2)},
        {"limit": discreet.pure_dp(1), "renewals": 1},
        {"limit": discreet.pure_dp(1), "adaptive": False},
        {"limit": discreet.pure_dp(1, relation=discreet.NeighboringRelation.REPLACE_ONE)},
    ):
        with pytest.raises(discreet.InvalidArgument, match="other terms"):
            ledger.account("survey", **terms)
    with pytest.raises(discreet.InvalidArgument, match="no account"):
        ledger.account("unknown")
    with pytest.raises(discreet.InvalidArgument, match="parent"):
        ledger.account("child", limit=discreet.pure_dp(1), parent="unknown")
    with pytest.raises(discreet.InvalidArgument, match="limit"):
        ledger.account("other", limit=1)
    with pytest.raises(discreet.InvalidArgument, match="time zone"):
        ledger.account("other", limit=discreet.pure_dp(1), expires=datetime(2030, 1, 1))  # noqa: DTZ001
    assert [a.name for a in ledger.accounts()] == ["survey"]


def test_what_cannot_be_charged_is_refused_and_costs_nothing(ledger, account):
    head = account.head
    wrong = discreet.pure_dp(0.1, relation=discreet.NeighboringRelation.REPLACE_ONE)
    with pytest.raises(discreet.RelationMismatch):
        account.charge(wrong, label="x")
    with pytest.raises(discreet.NotCertified):
        account.charge(0.1, label="x")
    with pytest.raises(discreet.NotCertified, match="seeded"):
        account.reserve(TENTH, label="x", private=False)
    with pytest.raises(discreet.Unsupported):
        account.charge(discreet.gdp(0.1), label="no pure epsilon")
    for label in ("", "  ", "two\nlines", "x" * 201, "nul\0", 7):
        with pytest.raises(discreet.InvalidArgument, match="label"):
            account.charge(TENTH, label=label)
    with pytest.raises(discreet.InvalidArgument, match="request_id"):
        account.charge(TENTH, label="x", request_id="")
    with pytest.raises(discreet.RelationMismatch):
        ledger.account("child", limit=wrong, parent=account)
    assert account.head == head


def test_threads_share_one_ledger(ledger, account):
    grants, barrier = [], threading.Barrier(8)

    def work(number):
        barrier.wait()
        try:
            while True:
                grants.append(account.charge(discreet.pure_dp(0.05), label=f"thread {number}").hash)
        except discreet.BudgetExceeded:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(grants) == len(set(grants)) == 20
    assert account.remaining == 0
    assert ledger.verify()


def test_eight_processes_get_exactly_what_the_limit_allows(url, ledger):
    account = ledger.account("shared", limit=discreet.pure_dp(1))
    grants = crowd("race", url, 8)
    assert len(grants) == 8
    assert sum(map(int, grants)) == 99  # one hundred steps of 0.01, one was spent before the start
    assert account.spent == discreet.pure_dp(0.01) * 100
    assert account.remaining == 0
    assert ledger.verify()


def test_a_child_keeps_its_charges_when_the_parent_closes(url, ledger):
    account = ledger.account("shared", limit=discreet.pure_dp(1))
    ledger.close()
    assert crowd("outlive", url) == 10
    assert account.spent == discreet.pure_dp(0.01) * 10
    assert ledger.verify()


def killed(url, ledger, kills, seed):
    account = ledger.account("shared", limit=discreet.pure_dp(10_000))
    found = crowd("kill", url, kills, seed)
    assert found["problems"] == []
    assert found["told"] >= kills / 10  # they did get to work
    # Each of the dead may have had one grant that was stored and not told yet.
    assert found["told"] <= found["stored"] <= found["told"] + kills
    account.charge(discreet.pure_dp(account.remaining), label="the rest")
    with pytest.raises(discreet.BudgetExceeded):
        account.charge(discreet.pure_dp(1e-9), label="more")


def test_a_kill_at_any_instant_never_loses_a_grant(url, ledger):
    killed(url, ledger, 50, seed=20)


@pytest.mark.slow
def test_two_thousand_kills_never_lose_a_grant(url, ledger):
    killed(url, ledger, 2000, seed=21)


def test_exports_are_complete_and_harmless(ledger, account, tmp_path):
    account.charge(TENTH, label="=HYPERLINK(1)", request_id="r")
    account.reserve(TENTH, label="plain, with comma")
    text = ledger.export(tmp_path / "ledger.json")
    assert (tmp_path / "ledger.json").read_text() == text
    (found,) = json.loads(text)["accounts"]
    assert found["head"] == account.head
    from hashlib import sha256

    for entry in found["entries"]:
        assert sha256(entry["text"].encode()).hexdigest() == entry["hash"]
    rows = list(csv.DictReader(io.StringIO(ledger.export(kind="csv"))))
    assert [row["label"] for row in rows] == ["", "'=HYPERLINK(1)", "plain, with comma"]
    assert [row["outcome"] for row in rows] == ["", "released", "open"]
    with pytest.raises(discreet.InvalidArgument, match="kind"):
        ledger.export(kind="xml")


def test_the_store_refuses_changes_by_ordinary_means(url, account):
    account.charge(TENTH, label="x")
    account.charge(TENTH, label="x")
    statements = (
        "UPDATE entries SET content = 'x'",
        "DELETE FROM entries",
        "DELETE FROM accounts",
        "UPDATE accounts SET allowance = 'x'",
        "UPDATE accounts SET state = 'x'",
        "UPDATE accounts SET entries = entries - 1",
        "UPDATE tallies SET number = 1",
        "DELETE FROM tallies",
    )
    with discreet.Ledger(url) as opened:
        for statement in statements:
            with pytest.raises(StoreFailure), opened._store.write() as session:
                session.run(statement)
        assert opened.verify()
