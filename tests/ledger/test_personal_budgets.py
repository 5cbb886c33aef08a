"""A budget for each member: admitted within it, left out beyond it, durable, and checked."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest

import discreet
from discreet.accounting import individual_filter as people
from discreet.accounting.individual_filter import GRAIN
from discreet.accounting.personalized import personalized
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.ledger import _personal_budget_rows as crowd_rows
from discreet.ledger.store import StoreFailure

LIMITS = {"strict": discreet.zcdp(0.25), "open": discreet.zcdp(1)}
MEMBERS = ["ann", "bea", "cem", "dan"]
LEVELS = ["strict", "open", "open", "strict"]


@pytest.fixture
def crowd(ledger):
    return ledger.personal_budgets("survey", limits=LIMITS, members=MEMBERS, privacy_levels=LEVELS)


def rho(crowd):
    return (crowd.spent() * float(GRAIN)).tolist()


def test_the_strict_leave_first(crowd):
    half = discreet.zcdp(0.2)
    assert crowd.charge_eligible(half, label="one").included.tolist() == [True] * 4
    assert crowd.charge_eligible(half, label="two").included.tolist() == [False, True, True, False]
    by_level = personalized({"open": discreet.zcdp(0.4), "strict": discreet.zcdp(0.05)})
    assert crowd.charge_eligible(by_level, label="three").included.tolist() == [True] * 4
    assert rho(crowd) == pytest.approx([0.25, 0.8, 0.8, 0.25])
    assert crowd.levels.tolist() == LEVELS
    assert crowd.members == tuple(MEMBERS)


def test_a_cost_for_each_member(crowd):
    taking = crowd.charge_eligible([0.3, 0.3, 0.0, 0.1], label="by norms").included
    assert taking.tolist() == [False, True, True, True]
    assert rho(crowd) == pytest.approx([0, 0.3, 0, 0.1])


def test_a_hash_confirms_no_guess_of_private_costs(crowd):
    costs = [0.3, 0.3, 0.0, 0.1]
    one, two = (crowd_rows.encode_cost(costs, crowd.limits, 4)[0] for _ in range(2))
    assert one != two


def test_amounts_that_were_written_without_salt_are_read(crowd, ledger):
    blob = zlib.compress(np.array([1, 2, 3, 4], dtype="<i8").tobytes(), level=1)
    told = {"kind": "charge", "label": "old", "each": hashlib.sha256(blob).hexdigest()}
    with crowd._store.write() as session:
        place = crowd_rows.find(session, crowd.name)
        crowd_rows.append(session, place, told, blob)
    assert crowd.spent().tolist() == [1, 2, 3, 4]
    assert ledger.verify().ok


def test_all_or_nobody(crowd):
    crowd.charge_all(discreet.zcdp(0.2), label="all")
    with pytest.raises(BudgetExceeded, match="nobody was charged"):
        crowd.charge_all(discreet.zcdp(0.2), label="again")
    assert rho(crowd) == pytest.approx([0.2] * 4)


def test_another_process_sees_the_same(crowd, ledger, url):
    with discreet.Ledger(url) as other:
        same = other.personal_budgets("survey")
        same.charge_eligible(discreet.zcdp(0.2), label="there")
        assert crowd.charge_eligible(discreet.zcdp(0.2), label="here").included.tolist() == [
            *(False, True, True, False)
        ]
        assert rho(same) == rho(crowd)
        assert same.head == crowd.head
    verified = ledger.verify()
    assert verified
    assert verified.entries == 3
    assert ledger.verify(heads={"crowd survey": crowd.head})
    assert not ledger.verify(heads={"crowd survey": "2:" + "0" * 64})


def test_who_was_left_out_stays_left_out_when_accounting_gets_better(crowd, url, monkeypatch):
    """Amounts are kept: cheaper events later must not change who took part earlier."""
    crowd.charge_eligible(discreet.zcdp(0.2), label="one")
    crowd.charge_eligible(discreet.zcdp(0.1), label="two")
    before = rho(crowd)
    monkeypatch.setattr(crowd_rows, "_grains", lambda cost: dict.fromkeys(cost, 0))
    with discreet.Ledger(url) as other:
        assert rho(other.personal_budgets("survey")) == before


def test_who_has_spent_all_gets_nothing_back_when_limits_are_worth_less(ledger, url, monkeypatch):
    """Limits are kept as they were taken: a charge that was granted fits them for ever."""
    limits = {"only": discreet.approx_dp(1, 1e-5)}
    terms = {"limits": limits, "members": ["ann"], "privacy_levels": ["only"]}
    crowd = ledger.personal_budgets("strict", **terms)
    crowd.charge_all(discreet.zcdp(people.limit_rho(limits["only"])), label="all")
    before = crowd.spent().tolist()
    worth = people._rho_below
    monkeypatch.setattr(people, "_rho_below", lambda *a, **k: worth(*a, **k) - 10 * GRAIN)
    with discreet.Ledger(url) as other:
        same = other.personal_budgets("strict", **terms)
        assert same.spent().tolist() == before
        assert not same.charge_eligible(discreet.zcdp(GRAIN), label="more").included.any()


def test_limits_that_were_raised_are_seen(crowd, ledger, raw, url):
    content, _ = last(raw, 1)
    content["terms"]["grains"]["strict"] += 10**6
    forge(raw, url, 1, content)
    mark = "?" if url.startswith("sqlite") else "%s"
    text = crowd_rows._entries.canonical(content["terms"])
    raw.execute(f"UPDATE crowds SET terms = {mark}", (text,))
    (problem,) = ledger.verify().problems
    assert problem == "crowd survey: entry 1 allows more than its limits are worth"


def test_an_edit_is_seen(crowd, ledger, raw):
    crowd.charge_eligible(discreet.zcdp(0.2), label="one")
    raw.execute("UPDATE crowd_entries SET content = replace(content, 'one', 'uno')")
    assert any("edited" in problem for problem in ledger.verify().problems)
    with pytest.raises(StoreFailure, match="nothing was granted"):
        crowd.charge_eligible(discreet.zcdp(0.01), label="two")


def test_an_entry_that_is_gone_is_seen(crowd, ledger, raw):
    crowd.charge_eligible(discreet.zcdp(0.2), label="one")
    crowd.charge_eligible(discreet.zcdp(0.01), label="two")
    raw.execute("DELETE FROM crowd_entries WHERE sequence = 2")
    assert any("does not follow" in problem for problem in ledger.verify().problems)


def test_a_charge_below_its_events_is_seen(crowd, ledger, raw):
    crowd.charge_eligible(discreet.zcdp(0.2), label="one")
    ((text,),) = raw.execute("SELECT content FROM crowd_entries WHERE sequence = 2").fetchall()
    content = json.loads(text)
    content["grains"] = dict.fromkeys(content["grains"], 1)
    forged = crowd_rows._entries.canonical(content)
    digest = crowd_rows._entries.digest(forged)
    raw.execute(
        f"UPDATE crowd_entries SET content = '{forged}', hash = '{digest}' WHERE sequence = 2"
    )
    raw.execute(f"UPDATE crowds SET head = '{digest}'")
    assert any("less than its events" in problem for problem in ledger.verify().problems)


def forge(raw, url, sequence, content, *, amounts=None):
    """Rewrite the last entry with a hash that fits."""
    mark = "?" if url.startswith("sqlite") else "%s"
    text = crowd_rows._entries.canonical(content)
    digest = crowd_rows._entries.digest(text)
    raw.execute(
        f"UPDATE crowd_entries SET content = {mark}, hash = {mark}, amounts = {mark} "
        f"WHERE sequence = {sequence}",
        (text, digest, amounts),
    )
    raw.execute(f"UPDATE crowds SET head = '{digest}'")


def last(raw, sequence):
    (row,) = raw.execute(
        f"SELECT content, amounts FROM crowd_entries WHERE sequence = {sequence}"
    ).fetchall()
    return json.loads(row[0]), row[1]


def test_other_amounts_are_seen(crowd, ledger, raw, url):
    crowd.charge_eligible([0.1, 0.0, 0.0, 0.2], label="one")
    content, amounts = last(raw, 2)
    forge(raw, url, 2, content, amounts=amounts)
    assert ledger.verify().ok  # the same again is no forgery
    for other in (None, bytes(amounts)[:-1] + b"x"):
        forge(raw, url, 2, content, amounts=other)
        (problem,) = ledger.verify().problems
        assert problem == "crowd survey: entry 2 has other amounts than it says"


def test_a_second_opening_is_seen(crowd, ledger, raw, url):
    crowd.charge_eligible(discreet.zcdp(0.1), label="one")
    opened, _ = last(raw, 1)
    content, _ = last(raw, 2)
    content = {**content, "kind": "open", "terms": opened["terms"]}
    forge(raw, url, 2, content)
    (problem,) = ledger.verify().problems
    assert problem == "crowd survey: entry 2 is of the wrong kind"


def test_other_terms_are_seen(crowd, ledger, raw, url):
    content, _ = last(raw, 1)
    content["terms"] = {**content["terms"], "more": 1}
    forge(raw, url, 1, content)
    (problem,) = ledger.verify().problems
    assert problem == "crowd survey: entry 1 opened other terms than the crowd has"


def test_a_crowd_shows_its_terms_and_nobody(crowd):
    assert repr(crowd) == "PersonalBudgets('survey', 4 members: open, strict)"


def test_other_members_are_seen(crowd, ledger, raw, url):
    other = crowd_rows.pack_members(tuple(MEMBERS), np.array([0, 0, 0, 0]))
    mark = "?" if url.startswith("sqlite") else "%s"
    raw.execute(f"UPDATE crowds SET members = {mark}", (other,))
    assert any("cannot be read" in problem for problem in ledger.verify().problems)
    with discreet.Ledger(url) as other, pytest.raises(StoreFailure, match="members"):
        other.personal_budgets("survey")


def test_terms_never_change(crowd, ledger):
    same = ledger.personal_budgets("survey", limits=LIMITS, members=MEMBERS, privacy_levels=LEVELS)
    assert same.limits == crowd.limits
    with pytest.raises(InvalidArgument, match="never change"):
        ledger.personal_budgets(
            "survey", limits=LIMITS, members=MEMBERS, privacy_levels=["open"] * 4
        )


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"limits": LIMITS}, "all three"),
        ({"limits": LIMITS, "members": ["a", "a"], "privacy_levels": ["open"] * 2}, "distinct"),
        (
            {"limits": LIMITS, "members": ["a", "b"], "privacy_levels": ["open"]},
            "one level for each",
        ),
        ({"limits": LIMITS, "members": [], "privacy_levels": []}, "at least one"),
        ({"limits": LIMITS, "members": ["a"], "privacy_levels": ["secret"]}, "among open, strict"),
        (
            {"limits": {"a": discreet.pure_dp(1)}, "members": ["x"], "privacy_levels": ["a"]},
            "positive delta",
        ),
    ],
)
def test_bad_terms(ledger, terms, words):
    with pytest.raises(InvalidArgument, match=words) as caught:
        ledger.personal_budgets("other", **terms)
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="no crowd"):
        ledger.personal_budgets("other")


def test_bad_costs_charge_nobody(crowd):
    for cost, words in (
        (personalized({"open": discreet.zcdp(1)}), "levels"),
        ([0.1], "per person"),
        (0.1, "for each of 4"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            crowd.charge_eligible(cost, label="x")
    assert rho(crowd) == [0] * 4
    assert "ann" not in repr(crowd.charge_eligible(discreet.zcdp(0.1), label="y"))


HOSTILE = [np.nan, np.inf, -np.inf, -0.1, None, "0.1", 10**5000, 1e9, object(), [0.1], b"x", 1j]


@pytest.mark.parametrize("cost", HOSTILE, ids=range(len(HOSTILE)))
def test_a_cost_that_is_no_number_leaves_out_that_member_alone(crowd, cost):
    """Costs may be private: one of them decides neither an error nor what the others pay."""
    found = crowd.charge_eligible([cost, 0.1, 0.05, -0.0], label="x")
    assert found.included.tolist() == [False, True, True, True]
    assert rho(crowd) == pytest.approx([0, 0.1, 0.05, 0])


def test_members_are_named_one_by_one(ledger):
    members = ["a", "a\0", 7, "b"]
    found = ledger.personal_budgets(
        "odd", limits=LIMITS, members=members, privacy_levels=["open"] * 4
    )
    assert found.members == ("a", "a\0", "7", "b")
    array = ledger.personal_budgets(
        "array", limits=LIMITS, members=np.array([1, 2]), privacy_levels=np.array(["open"] * 2)
    )
    assert array.members == ("1", "2")


def test_an_export_has_the_chain_and_no_person(crowd, ledger):
    crowd.charge_eligible([0.1, 0.0, 0.0, 0.2], label="one")
    (told,) = json.loads(ledger.export())["crowds"]
    assert told["head"] == crowd.head
    assert told["members"] == 4
    assert [crowd_rows._entries.digest(entry["text"]) for entry in told["entries"]] == [
        entry["hash"] for entry in told["entries"]
    ]
    assert "ann" not in json.dumps(told)


def test_threads_take_turns(crowd):
    threads = [
        threading.Thread(
            target=crowd.charge_eligible, args=(discreet.zcdp(0.1),), kwargs={"label": "t"}
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rho(crowd) == pytest.approx([0.2, 1.0, 1.0, 0.2])


KILLED = """
import sys, discreet
crowd = discreet.Ledger(sys.argv[1]).personal_budgets("survey")
while True:
    print(crowd.charge_eligible(discreet.zcdp(0.001), label="step").included.sum(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_again_and_again_nobody_pays_too_little(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    with discreet.Ledger(url) as ledger:
        crowd = ledger.personal_budgets(
            "survey", limits=LIMITS, members=MEMBERS, privacy_levels=LEVELS
        )
        told = 0
        for turn in range(15):
            with subprocess.Popen(
                [sys.executable, "-c", KILLED, url],
                stdout=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            ) as child:
                for _ in range(turn % 5 + 1):
                    told += len(child.stdout.readline()) > 0
                child.kill()
                told += len(child.stdout.read().splitlines())
        paid = round(rho(crowd)[1] * 1000)
        # What was told is paid; of each kill at most one charge was paid and not told.
        assert told <= paid <= told + 15
        assert ledger.verify()
