"""Tampering behind the back, with the triggers gone: what a check of the ledger finds."""

import json

import pytest

import discreet
from discreet.ledger import _entries as journal
from discreet.ledger.store import StoreFailure

TENTH = discreet.pure_dp(0.1)


@pytest.fixture
def filled(ledger, account):
    for number in range(5):
        account.charge(TENTH, label=f"query {number}", request_id=f"r{number}")
    assert ledger.verify()
    return account


EDITED = "replace(content, 'query 2', 'query X')"
TAMPERING = {
    "edited": f"UPDATE entries SET content = {EDITED} WHERE sequence = 4",
    "cheaper": "UPDATE entries SET content = replace(content, '1/10', '1/99') WHERE sequence = 4",
    "rehashed": "UPDATE entries SET hash = '00' WHERE sequence = 4",
    "deleted": "DELETE FROM entries WHERE sequence = 4",
    "truncated": "DELETE FROM entries WHERE sequence = 6",
    "inserted": "INSERT INTO entries SELECT account, 7, content, hash, NULL, NULL FROM entries "
    "WHERE sequence = 6",
    "request": "UPDATE entries SET request = 'r9' WHERE sequence = 4",
    "settled": "UPDATE entries SET settles = 3 WHERE sequence = 4",
    "limit": "UPDATE accounts SET allowance = replace(allowance, '1/1', '9/1')",
    "policy": "UPDATE accounts SET policy = replace(policy, '\"renewals\":0', '\"renewals\":9')",
    "sums": "UPDATE accounts SET state = replace(state, '1/2', '1/9')",
    "period": "UPDATE accounts SET period = 1",
    "expiry": "UPDATE accounts SET expires = '2999-01-01T00:00:00.000000Z'",
    "tallies": "UPDATE tallies SET number = 1",
    "unreadable": "UPDATE entries SET content = 'x' WHERE sequence = 4",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_found(ledger, filled, raw, statement):
    raw.execute(statement)
    assert not ledger.verify()
    assert ledger.verify().problems


def test_reordering_is_found(ledger, filled, raw):
    for old, new in ((4, 100), (5, 4), (100, 5)):
        raw.execute(f"UPDATE entries SET sequence = {new} WHERE sequence = {old}")
    assert any("stands in another place" in problem for problem in ledger.verify().problems)


def test_a_truncation_that_fixes_the_account_is_found_by_a_kept_head(ledger, filled, raw):
    """Cut the last charge off and put the account back: consistent, but not what was kept."""
    head = filled.head
    row = raw.execute("SELECT content, hash FROM entries WHERE sequence = 5").fetchone()
    state = json.dumps(json.loads(row[0])["state"], sort_keys=True, separators=(",", ":"))
    raw.execute("DELETE FROM entries WHERE sequence = 6")
    raw.execute(f"UPDATE accounts SET entries = 5, head = '{row[1]}', state = '{state}'")
    raw.execute("UPDATE tallies SET number = 4")
    assert ledger.verify()
    assert not ledger.verify(heads={"survey": head})
    assert not ledger.verify(heads={"vanished": "1:00"})


def test_a_charge_missing_above_is_found(ledger, raw):
    parent = ledger.account("parent", limit=discreet.pure_dp(1))
    child = ledger.account("child", limit=discreet.pure_dp(1), parent=parent)
    child.charge(TENTH, label="x")
    assert ledger.verify()
    raw.execute("UPDATE accounts SET parent = NULL")
    assert any("not recorded alike" in problem for problem in ledger.verify().problems)


@pytest.mark.parametrize("above", ["id", "id + 1", "99"])
def test_an_account_under_itself_or_under_none_that_exists_is_found(ledger, raw, above):
    parent = ledger.account("parent", limit=discreet.pure_dp(1))
    child = ledger.account("child", limit=discreet.pure_dp(1), parent=parent)
    child.charge(TENTH, label="x")
    ledger.account("last", limit=discreet.pure_dp(1))
    raw.execute(f"UPDATE accounts SET parent = {above} WHERE name = 'child'")
    problems = ledger.verify().problems
    assert any(problem.startswith("child: the terms") for problem in problems)
    with pytest.raises(StoreFailure, match="verify"):
        ledger.account("child")


def test_an_account_that_is_gone_is_told(ledger, account, raw):
    raw.execute("DELETE FROM accounts")
    with pytest.raises(StoreFailure, match=r"is gone from the ledger. Run Ledger.verify"):
        account.charge(TENTH, label="x")


def test_numbers_that_are_none_are_found(ledger, filled, raw):
    """A denominator of nothing is no reason to stop looking."""
    raw.execute("UPDATE entries SET content = replace(content, '1/2', '1/0')")
    assert any("cannot be read" in problem for problem in ledger.verify().problems)


@pytest.mark.parametrize(
    "content", ["'5'", "substr(content, 1, 40)", "'{}'", "replace(content, '1/10', '1/0')"]
)
def test_damaged_entries_are_not_listed_as_if_they_were_whole(ledger, filled, raw, content):
    raw.execute(f"UPDATE entries SET content = {content} WHERE sequence = 2")
    with pytest.raises(StoreFailure, match=r"cannot be read. Run Ledger.verify"):
        ledger.account("survey").history  # noqa: B018 - it is read
    with pytest.raises(StoreFailure, match="cannot be read"):
        ledger.export(kind="csv")


def test_no_grant_from_sums_that_were_lowered(ledger, filled, raw):
    raw.execute("UPDATE accounts SET state = replace(state, '1/2', '1/9')")
    with pytest.raises(StoreFailure, match="verify"):
        filled.charge(TENTH, label="x")


def test_no_settlement_or_renewal_makes_lowered_sums_good(ledger, raw):
    account = ledger.account("renewable", limit=discreet.pure_dp(1), renewals=1)
    held = account.reserve(discreet.pure_dp(1), label="all")
    raw.execute("UPDATE accounts SET state = replace(state, '1/1', '1/9')")
    with pytest.raises(StoreFailure, match="verify"):
        held.settle("released")
    with pytest.raises(StoreFailure, match="verify"):
        account.renew(reason="new year")
    with pytest.raises(StoreFailure, match="verify"):
        account.charge(TENTH, label="x")


def reforge(raw, edit):
    """What a forger with time does: change the contents and recompute every hash after them."""
    rows = raw.execute("SELECT content FROM entries ORDER BY sequence").fetchall()
    contents = [json.loads(text) for (text,) in rows]
    edit(contents)
    raw.execute("DELETE FROM entries")
    head = journal.GENESIS
    for number, content in enumerate(contents, start=1):
        text = journal.canonical({**content, "sequence": number, "previous": head})
        head = journal.digest(text)
        request = "NULL" if content.get("request") is None else f"'{content['request']}'"
        settles = content.get("settles", "NULL")
        raw.execute(
            "INSERT INTO entries (account, sequence, content, hash, request, settles) SELECT id, "
            f"{number}, '{text}', '{head}', {request}, {settles} FROM accounts"
        )
    state = journal.canonical(contents[-1]["state"])
    raw.execute(
        f"UPDATE accounts SET entries = {len(contents)}, head = '{head}', state = '{state}'"
    )


def cheaper(contents):
    contents[3]["event"]["epsilon"] = "1/99"


def lower_sums(contents):
    for content in contents[2:]:
        content["state"]["sums"] = ["1/99"]


def settle_nothing(contents):
    contents.append({**contents[-1], "kind": "settle", "settles": 3, "request": None})


def settle_and_pay_back(contents):
    contents[4] |= {"kind": "reserve", "request": None}
    entry = {**contents[-1], "kind": "settle", "settles": 5, "outcome": "failed", "request": None}
    contents.append({**entry, "state": {"mode": "sum", "sums": ["1/10"]}})


def renew(contents):
    entry = {"kind": "renew", "period": 1, "expires": None, "request": None}
    contents.append({**contents[0], **entry})


FORGERIES = {
    "nothing": (lambda _: None, None),
    "cheaper event": (cheaper, "tallies"),
    "lower sums": (lower_sums, "below what its events cost"),
    "dropped": (lambda contents: contents.pop(3), "tallies"),
    "other account": (lambda contents: contents[2].update(account="x"), "another place"),
    "other period": (lambda contents: contents[2].update(period=1), "another period"),
    "unknown kind": (lambda contents: contents[2].update(kind="gift"), "unknown kind"),
    "no opening": (lambda contents: contents.pop(0), "wrong kind"),
    "settle": (settle_nothing, "settles no open reservation"),
    "pay back": (settle_and_pay_back, "changes the sums"),
    "renew": (renew, "renews against the policy"),
    "limit": (lambda contents: contents[0]["limit"]["event"].update(epsilon="9/1"), "terms"),
}


@pytest.mark.parametrize(("edit", "problem"), FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forger_who_recomputes_the_hashes_must_also_get_everything_else_right(
    ledger, filled, raw, edit, problem
):
    head = filled.head
    reforge(raw, edit)
    found = ledger.verify()
    if problem is None:
        assert found
        assert ledger.verify(heads={"survey": head})
    else:
        assert any(problem in text for text in found.problems), found.problems


def test_entries_without_an_account_are_found(ledger, filled, raw):
    if "sqlite" in repr(ledger):
        raw.execute("PRAGMA foreign_keys = OFF")
    raw.execute("INSERT INTO entries (account, sequence, content, hash) VALUES (9, 1, 'x', 'x')")
    assert any("belong to no account" in problem for problem in ledger.verify().problems)
