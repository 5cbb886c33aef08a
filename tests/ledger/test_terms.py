"""Terms that were edited in the store are found by the next charge, before it is granted."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import discreet
from discreet.ledger import _entries as journal
from discreet.ledger.store import StoreFailure

TENTH = discreet.pure_dp(0.1)
FUTURE = datetime.now(tz=UTC) + timedelta(days=30)


@pytest.fixture
def family(ledger):
    """A parent, its child that expires and was renewed once, and an account beside them."""
    parent = ledger.account("parent", limit=discreet.pure_dp(1))
    child = ledger.account(
        "child", limit=discreet.pure_dp(1), parent=parent, expires=FUTURE, renewals=1
    )
    other = ledger.account("other", limit=discreet.pure_dp(1))
    for account in (child, other):
        account.charge(TENTH, label="one")
        account.charge(TENTH, label="two")
    child.renew(reason="spring", expires=FUTURE)
    child.charge(TENTH, label="three", request_id="r")
    assert ledger.verify()
    return child


RELATION = "replace(allowance, 'ADD_REMOVE', 'REPLACE_ONE')"
WIDER = "replace(allowance, '\"1/1\"', '\"9/1\"')"
EDITS = {
    "limit": f"UPDATE accounts SET allowance = {WIDER} WHERE name = 'child'",
    "limit above": f"UPDATE accounts SET allowance = {WIDER} WHERE name = 'parent'",
    "relation": f"UPDATE accounts SET allowance = {RELATION}",
    "renewals": "UPDATE accounts SET policy = replace(policy, '\"renewals\":1', '\"renewals\":9') "
    "WHERE name = 'child'",
    "adaptive": "UPDATE accounts SET policy = replace(policy, 'true', 'false')",
    "orphaned": "UPDATE accounts SET parent = NULL WHERE name = 'child'",
    "renamed": "UPDATE accounts SET name = 'parent2' WHERE name = 'parent'",
    "expiry": "UPDATE accounts SET expires = '2999-01-01T00:00:00.000000Z' WHERE name = 'child'",
    "no expiry": "UPDATE accounts SET expires = NULL WHERE name = 'child'",
    "period": "UPDATE accounts SET period = 0 WHERE name = 'child'",
    "sums": "UPDATE accounts SET state = replace(state, '1/10', '1/99') WHERE name = 'child'",
    "opening": "UPDATE entries SET content = replace(content, '\"1/1\"', '\"9/1\"') "
    "WHERE sequence = 1",
    "policy that is none": "UPDATE accounts SET policy = '7' WHERE name = 'child'",
}


def heads(raw):
    rows = raw.execute("SELECT name, entries, head FROM accounts ORDER BY id").fetchall()
    return sorted(map(tuple, rows))


def refused(raw, action):
    before = heads(raw)
    with pytest.raises(StoreFailure, match="Run Ledger.verify") as caught:
        action()
    assert heads(raw) == before
    return str(caught.value)


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_edited_terms_grant_nothing(url, ledger, family, raw, statement):
    raw.execute(statement)
    assert not ledger.verify()
    refused(raw, lambda: family.charge(TENTH, label="held since before"))
    refused(raw, lambda: family.can_afford(TENTH))
    with discreet.Ledger(url) as again:
        for kind in ("charge", "reserve"):
            refused(raw, lambda kind=kind: spend(again.account("child"), kind))


def spend(account, kind):
    """A tenth under the relation that the account shows."""
    cost = discreet.pure_dp(0.1, relation=account.relation)
    getattr(account, kind)(cost, label="opened after")


def test_terms_that_were_edited_only_while_the_account_was_opened(ledger, family, raw):
    raw.execute(EDITS["limit"])
    misled = ledger.account("child")
    assert misled.limit == discreet.pure_dp(9)
    raw.execute("UPDATE accounts SET allowance = replace(allowance, '\"9/1\"', '\"1/1\"')")
    assert ledger.verify()
    refused(raw, lambda: misled.charge(TENTH, label="x"))
    ledger.account("child").charge(TENTH, label="x")


def test_the_words_name_the_account_and_what_differs(family, ledger, raw):
    raw.execute(EDITS["limit"])
    words = refused(raw, lambda: family.charge(TENTH, label="x"))
    assert words == (
        "Account 'child' has other terms than it was opened with (limit); nothing was granted. "
        "Run Ledger.verify()."
    )


@pytest.mark.parametrize("edit", ["limit", "period", "renewals", "expiry"])
def test_no_renewal_and_no_settlement_under_edited_terms(ledger, family, raw, edit):
    held = family.reserve(TENTH, label="x")
    raw.execute(EDITS[edit])
    refused(raw, lambda: family.renew(reason="more", expires=FUTURE))
    refused(raw, lambda: held.settle("released"))


def test_a_limit_edited_before_the_first_charge_is_not_granted(ledger, raw):
    account = ledger.account("new", limit=discreet.pure_dp(1))
    raw.execute(f"UPDATE accounts SET allowance = {WIDER}")
    refused(raw, lambda: account.charge(discreet.pure_dp(2), label="x"))
    refused(raw, lambda: ledger.account("new").charge(discreet.pure_dp(2), label="x"))


def test_a_new_account_does_not_stand_under_an_edited_one(ledger, family, raw):
    raw.execute(EDITS["limit above"])
    refused(raw, lambda: ledger.account("grandchild", limit=TENTH, parent="parent"))


def test_a_copy_under_another_name_is_no_second_budget(ledger, raw):
    ledger.account("survey", limit=discreet.pure_dp(1))
    columns = "parent, allowance, policy, expires, period, entries, head, state"
    raw.execute(f"INSERT INTO accounts (name, {columns}) SELECT 'again', {columns} FROM accounts")
    raw.execute(
        "INSERT INTO entries (account, sequence, content, hash) SELECT "
        "(SELECT id FROM accounts WHERE name = 'again'), sequence, content, hash FROM entries"
    )
    words = refused(raw, lambda: ledger.account("again").charge(TENTH, label="x"))
    assert "(name)" in words


def test_swapped_names_are_noticed(url, ledger, raw):
    big = ledger.account("big", limit=discreet.pure_dp(9))
    small = ledger.account("small", limit=discreet.pure_dp(1))
    for new, old in (("x", "big"), ("big", "small"), ("small", "x")):
        raw.execute(f"UPDATE accounts SET name = '{new}' WHERE name = '{old}'")
    for account in (big, small, ledger.account("small")):
        refused(raw, lambda account=account: account.charge(TENTH, label="x"))


def test_another_account_of_the_same_name_is_not_the_one_that_was_opened(url, ledger, raw):
    """Whoever holds an account knows its opening entry: a new one in its place is another."""
    account = ledger.account("survey", limit=discreet.pure_dp(1))
    account.charge(discreet.pure_dp(1), label="all")
    raw.execute("DELETE FROM tallies")
    raw.execute("DELETE FROM entries")
    raw.execute("DELETE FROM accounts")
    with discreet.Ledger(url) as again:
        again.account("survey", limit=discreet.pure_dp(1))
    raw.execute("DELETE FROM entries WHERE sequence > 1")
    raw.execute("UPDATE entries SET account = 1")
    raw.execute("UPDATE accounts SET id = 1" if "sqlite" in url else "SELECT 1")
    with pytest.raises(StoreFailure, match="Run Ledger.verify"):
        account.charge(TENTH, label="x")


def test_an_opening_that_was_written_again_does_not_lead_to_the_next_entry(ledger, family, raw):
    """One recomputed hash is not enough: the second entry tells that of the first."""
    row = raw.execute("SELECT id, allowance FROM accounts WHERE name = 'child'").fetchone()
    (text,) = raw.execute(
        f"SELECT content FROM entries WHERE account = {row[0]} AND sequence = 1"
    ).fetchone()
    forged = journal.canonical(json.loads(text.replace('"1/1"', '"9/1"')))
    wider = row[1].replace('"1/1"', '"9/1"')
    raw.execute(
        f"UPDATE entries SET content = '{forged}', hash = '{journal.digest(forged)}' "
        f"WHERE account = {row[0]} AND sequence = 1"
    )
    raw.execute(f"UPDATE accounts SET allowance = '{wider}' WHERE name = 'child'")
    refused(raw, lambda: ledger.account("child").charge(TENTH, label="x"))


def set_back(raw, name, entries):
    """Put an account's row back to an earlier entry, with that entry's own sums and hash."""
    (number,) = raw.execute(f"SELECT id FROM accounts WHERE name = '{name}'").fetchone()
    text, found = raw.execute(
        f"SELECT content, hash FROM entries WHERE account = {number} AND sequence = {entries}"
    ).fetchone()
    state = journal.canonical(json.loads(text)["state"])
    raw.execute(
        f"UPDATE accounts SET entries = {entries}, head = '{found}', state = '{state}' "
        f"WHERE id = {number}"
    )
    return number


def test_a_row_set_back_is_told_as_such(ledger, family, raw):
    set_back(raw, "other", 2)
    other = ledger.account("other")
    assert "entries after" in refused(raw, lambda: other.charge(TENTH, label="x"))
    assert "entries after" in refused(raw, lambda: other.can_afford(TENTH))


def test_whoever_has_seen_more_notices_a_history_cut_off(url, ledger, raw):
    account = ledger.account("survey", limit=discreet.pure_dp(1))
    account.charge(TENTH, label="one")
    account.charge(discreet.pure_dp(0.9), label="the rest")
    number = set_back(raw, "survey", 2)
    raw.execute(f"DELETE FROM entries WHERE account = {number} AND sequence > 2")
    for held in (account, ledger.account("survey")):
        words = refused(raw, lambda held=held: held.charge(TENTH, label="x"))
        assert "was set back" in words


def test_lowered_tallies_buy_nothing_where_the_exact_composition_decides(ledger, raw):
    account = ledger.account("planned", limit=discreet.approx_dp(1, 1e-6), adaptive=False)
    cost = discreet.gdp(0.05)
    while account.can_afford(cost):
        account.charge(cost, label="x")
    raw.execute("UPDATE tallies SET number = 1")
    assert "tallies" in refused(raw, lambda: account.charge(cost, label="x"))
    with pytest.raises(StoreFailure, match="tallies"):
        _ = account.spent


def test_a_request_moved_to_another_entry_is_no_free_answer(ledger, family, raw):
    raw.execute("UPDATE entries SET request = NULL WHERE request = 'r'")
    raw.execute("UPDATE entries SET request = 'new' WHERE sequence = 2")
    other = ledger.account("other")
    refused(raw, lambda: other.charge(TENTH, label="x", request_id="new"))


def test_a_settlement_that_was_hidden_pays_for_no_second_answer(ledger, raw):
    account = ledger.account("survey", limit=discreet.pure_dp(1))
    account.reserve(TENTH, label="x", request_id="r").settle("released")
    account.charge(TENTH, label="later")
    raw.execute("UPDATE entries SET settles = NULL")
    refused(raw, lambda: account.reserve(TENTH, label="x", request_id="r"))


# ── Personal budgets ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def crowd(ledger):
    limits = {"strict": discreet.zcdp(1), "open": discreet.zcdp(3)}
    found = ledger.personal_budgets(
        "people", limits=limits, members=["a", "b", "c"], privacy_levels=["strict", "open", "open"]
    )
    found.charge_eligible(discreet.zcdp(1), label="one")
    found.charge_eligible(discreet.zcdp(1), label="two")
    assert ledger.verify()
    return found


def forget_members(raw):
    """Give everybody the open level, with a digest that fits."""
    import hashlib
    import zlib

    blob = zlib.compress(json.dumps([["a", "b", "c"], [1, 1, 1]]).encode())
    (terms,) = raw.execute("SELECT terms FROM crowds").fetchone()
    content = {**json.loads(terms), "members": hashlib.sha256(blob).hexdigest()}
    mark = "?" if "sqlite3" in type(raw).__module__ else "%s"
    raw.execute(
        f"UPDATE crowds SET members = {mark}, terms = {mark}", (blob, journal.canonical(content))
    )


CROWD_EDITS = {
    "grains": lambda raw: raw.execute(
        "UPDATE crowds SET terms = replace(terms, '1000000000000', '9000000000000')"
    ),
    "limit": lambda raw: raw.execute("UPDATE crowds SET terms = replace(terms, '3/1', '9/1')"),
    "levels": forget_members,
    "name": lambda raw: raw.execute("UPDATE crowds SET name = 'others'"),
    "costs": lambda raw: raw.execute(
        "UPDATE crowd_entries SET content = replace(content, '1000000000000', '1') "
        "WHERE sequence = 2"
    ),
    "set back": lambda raw: raw.execute(
        "UPDATE crowds SET entries = 2, head = (SELECT hash FROM crowd_entries WHERE sequence = 2)"
    ),
    "cut off": lambda raw: (
        CROWD_EDITS["set back"](raw),
        raw.execute("DELETE FROM crowd_entries WHERE sequence = 3"),
    ),
}


@pytest.mark.parametrize("edit", [name for name in CROWD_EDITS if name not in ("name", "costs")])
def test_edited_personal_budgets_grant_nothing(ledger, crowd, raw, edit):
    CROWD_EDITS[edit](raw)
    for charge in (crowd.charge_eligible, crowd.charge_all):
        with pytest.raises(StoreFailure, match="Run Ledger.verify"):
            charge(discreet.zcdp(0.5), label="held since before")


@pytest.mark.parametrize("edit", [name for name in CROWD_EDITS if name != "cut off"])
def test_edited_personal_budgets_are_not_opened_or_grant_nothing(url, crowd, raw, edit):
    CROWD_EDITS[edit](raw)
    name = "others" if edit == "name" else "people"
    with discreet.Ledger(url) as again, pytest.raises(StoreFailure, match="Run Ledger.verify"):
        again.personal_budgets(name).charge_eligible(discreet.zcdp(0.5), label="opened after")


def test_edited_amounts_of_single_people_are_noticed(url, ledger, raw):
    limits = {"one": discreet.zcdp(1)}
    people = ledger.personal_budgets(
        "people", limits=limits, members=["a", "b"], privacy_levels=["one", "one"]
    )
    people.charge_eligible([1.0, 0.5], label="private costs")
    people.charge_eligible([0.0, 0.1], label="cheap")
    raw.execute(
        "UPDATE crowd_entries SET amounts = "
        "(SELECT amounts FROM crowd_entries WHERE sequence = 3) WHERE sequence = 2"
    )
    with discreet.Ledger(url) as again, pytest.raises(StoreFailure, match="Run Ledger.verify"):
        again.personal_budgets("people").charge_eligible([0.9, 0.0], label="again")
