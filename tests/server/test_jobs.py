"""One request, one charge, one answer, whoever dies when; on both stores."""

import json
import threading
from datetime import timedelta

import pytest

from discreet.accounting.guarantee import pure_dp
from discreet.core.errors import BudgetExceeded, InvalidArgument, Unsupported
from discreet.data.source import EngineFailure
from discreet.server import config as configs
from discreet.server.jobs import runner as runners
from discreet.server.middleware.errors import Busy, Conflict, Forbidden, NotFound
from discreet.server.service import Service
from discreet.server.store import open_store
from discreet.server.users import User, UserStore
from tests.server.running import write_people

ANA = User(name="ana", role="analyst")
BEN = User(name="ben", role="analyst")
OLGA = User(name="olga", role="owner")
VERA = User(name="vera", role="auditor")
COUNT = [{"kind": "count", "epsilon": 0.5}]
CONFIG = """
[server]
store = "{store}"
ledger = "{ledger}"
[rates]
queue = 4
queue_per_person = 3
lease_seconds = 1
[[table]]
name = "people"
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
limit = {{ epsilon = 4 }}
analyst_limit = {{ epsilon = 2 }}
[table.columns]
age = {{ kind = "integer", lower = 0, upper = 120 }}
place = {{ kind = "category", categories = ["north", "south"], include_other = false }}
"""


class Died(BaseException):
    """What kill -9 would do: nothing after it runs."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def start(request, tmp_path):
    """A function that begins a worker; all of them share store and ledger."""
    store, ledger = "sqlite:///service.db", "sqlite:///budget.db"
    if request.param == "postgres":
        store = ledger = request.getfixturevalue("server").empty()
    write_people(tmp_path / "people.csv", rows=50)
    path = tmp_path / "serve.toml"
    path.write_text(CONFIG.format(store=store, ledger=ledger))
    begun = []

    def make():
        begun.append(Service(configs.read(path)))
        return begun[-1]

    service = make()
    for who in (ANA, BEN, OLGA, VERA):
        service.users.add(who.name, who.role)
    yield make
    for one in begun:
        one.close()


def charges(service, name="people/ana"):
    return [e for e in service.shared_ledger.account(name).history if e.kind == "reserve"]


def expire(service):
    """As if the lease of every job had run out."""
    with service.store.write() as session:
        session.run("UPDATE jobs SET lease = 0")


def test_the_same_request_is_one_job_and_one_charge(start):
    service = start()
    first = service.submit(ANA, "people", COUNT, request_id="a")
    assert service.submit(ANA, "people", COUNT, request_id="a").id == first.id
    assert service.runner.step()
    assert not service.runner.step()
    again = service.submit(ANA, "people", COUNT, request_id="a")
    assert (again.id, again.state) == (first.id, "done")
    assert again.result == service.job(ANA, first.id).result
    assert len(charges(service)) == 1
    with pytest.raises(Conflict):
        service.submit(ANA, "people", [{"kind": "count", "epsilon": 0.25}], request_id="a")
    other = service.submit(BEN, "people", COUNT, request_id="a")  # a number of somebody else's
    assert other.id != first.id
    assert service.ledger(OLGA, verify=True).verification.ok


STEPS = ("reserve_plan", "execute_reserved", "publish", "settle", "settled")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_that_dies_anywhere_is_replaced(start, monkeypatch, step, after):
    victim, heir = start(), start()
    job = victim.submit(ANA, "people", COUNT, request_id="a")
    place = {
        "reserve_plan": (runners, "reserve_plan"),
        "execute_reserved": (runners, "execute_reserved"),
        "publish": (victim.queue, "publish"),
        "settle": (runners.Reservation, "settle"),
        "settled": (victim.queue, "settled"),
    }[step]
    real = getattr(*place)

    def dies(*given, **named):
        if after:
            real(*given, **named)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(*place, dies)
        with pytest.raises(Died):
            victim.runner.step()
    seen = heir.job(ANA, job.id)
    published = seen.state == "done"
    assert not heir.runner.step()  # leased: nobody else works on it
    expire(heir)
    heir.runner.step()
    assert not heir.runner.step()
    found = heir.job(ANA, job.id)
    assert found.state == "done"
    assert not published or found.result == seen.result  # what was shown stays
    (charge,) = charges(heir)
    assert charge.outcome == "released"
    assert charge.request_id == job.id
    assert heir.queue.get(job.id).settled
    assert heir.ledger(OLGA, verify=True).verification.ok


def test_who_has_lost_the_lease_cannot_publish(start, monkeypatch):
    slow, heir = start(), start()
    job = slow.submit(ANA, "people", COUNT, request_id="a")
    real = runners.execute_reserved

    def overtaken(*given, **named):
        monkeypatch.setattr(runners, "execute_reserved", real)
        made = real(*given, **named)
        expire(heir)
        assert heir.runner.step()
        return made

    monkeypatch.setattr(runners, "execute_reserved", overtaken)
    slow.runner.step()
    found = heir.job(ANA, job.id)
    assert found.state == "done"
    assert len(charges(heir)) == 1
    assert charges(heir)[0].outcome == "released"
    expire(heir)
    assert not slow.runner.step()
    assert heir.job(ANA, job.id).result == found.result


def test_a_store_that_is_set_back_gets_no_second_answer(start):
    service = start()
    job = service.submit(ANA, "people", COUNT, request_id="a")
    service.runner.step()
    assert service.job(ANA, job.id).state == "done"
    with service.store.write() as session:  # as in a copy that was made before it ran
        session.run("UPDATE jobs SET state = 'queued', settled = 0, lease = 0, result = NULL")
    service.runner.step()
    found = service.job(ANA, job.id)
    assert (found.state, found.result) == ("failed", None)
    assert len(charges(service)) == 1
    assert service.ledger(OLGA, verify=True).verification.ok


def test_a_job_that_kills_its_workers_is_given_up(start, monkeypatch):
    service = start()
    job = service.submit(ANA, "people", COUNT, request_id="a")
    real = runners.execute_reserved

    def dies(*_, **__):
        raise Died

    monkeypatch.setattr(runners, "execute_reserved", dies)
    for _ in range(runners.MOST_ATTEMPTS):
        with pytest.raises(Died):
            service.runner.step()
        expire(service)
    monkeypatch.setattr(runners, "execute_reserved", real)
    service.runner.step()
    found = service.job(ANA, job.id)
    assert found.state == "failed"
    assert "stays spent" in found.error
    assert len(charges(service)) == 1


def test_errors_say_nothing_of_what_went_wrong(start, monkeypatch):
    service = start()
    job = service.submit(ANA, "people", COUNT, request_id="a")

    def fails(*_, **__):
        raise RuntimeError("secret of p17")

    monkeypatch.setattr(runners, "execute_reserved", fails)
    service.runner.step()
    found = service.job(ANA, job.id)
    assert (found.state, found.problem) == ("failed", "failure")
    assert "p17" not in json.dumps([found.error, found.progress])
    assert charges(service)[0].outcome == "failed"  # and stays spent


def test_errors_do_not_say_where_the_data_are(start, tmp_path):
    service = start()
    job = service.submit(ANA, "people", COUNT, request_id="a")
    (tmp_path / "people.csv").unlink()
    service.runner.step()
    found = service.job(ANA, job.id)
    assert (found.state, found.problem) == ("failed", "unsupported")
    assert "people.csv" not in found.error
    assert str(tmp_path) not in found.error
    assert not charges(service)


def test_what_cannot_be_paid_is_refused_and_costs_nothing(start):
    service = start()
    with pytest.raises(BudgetExceeded):
        service.submit(ANA, "people", [{"kind": "count", "epsilon": 3}], request_id="a")
    big = [{"kind": "count", "epsilon": 1.5}]
    jobs = [service.submit(ANA, "people", big, request_id=name) for name in "bc"]
    while service.runner.step():
        pass
    states = sorted(service.job(ANA, job.id).state for job in jobs)
    assert states == ["done", "refused"]
    assert len(charges(service)) == 1
    assert service.table(ANA, "people").budget.remaining == 0.5


def test_a_full_queue_says_so(start):
    service = start()
    for name in "abc":
        service.submit(ANA, "people", COUNT, request_id=name)
    with pytest.raises(Busy):
        service.submit(ANA, "people", COUNT, request_id="d")
    service.submit(BEN, "people", COUNT, request_id="a")
    with pytest.raises(Busy):
        service.submit(BEN, "people", COUNT, request_id="b")
    assert service.submit(ANA, "people", COUNT, request_id="a").state == "queued"  # known: no room


def test_threads_take_each_job_once(start):
    services = [start() for _ in range(3)]
    names = [f"r{i}" for i in range(3)]
    jobs = [services[0].submit(ANA, "people", COUNT, request_id=name) for name in names]

    def work(service):
        while service.runner.step():
            pass

    threads = [threading.Thread(target=work, args=(service,)) for service in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [services[0].job(ANA, job.id).state for job in jobs] == ["done"] * 3
    assert len(charges(services[0])) == 3


def test_a_new_limit_is_a_new_account_under_the_table(start):
    service = start()
    service.submit(ANA, "people", [{"kind": "count", "epsilon": 2}], request_id="a")
    service.runner.step()
    with pytest.raises(BudgetExceeded):
        service.submit(ANA, "people", COUNT, request_id="b")
    shown = service.set_limit(OLGA, "ana", "people", {"epsilon": 3})
    assert shown.account == "people/ana/2"
    assert service.table(ANA, "people").budget.remaining == 2  # no more than the table has left
    with pytest.raises(BudgetExceeded):
        service.submit(ANA, "people", [{"kind": "count", "epsilon": 2.5}], request_id="c")
    service.submit(ANA, "people", COUNT, request_id="b")
    service.runner.step()
    assert len(charges(service, "people/ana/2")) == 1
    with pytest.raises(InvalidArgument):
        service.set_limit(OLGA, "nobody", "people", {"epsilon": 1})


def test_a_table_with_another_account_is_paid_from_there(start, tmp_path):
    service = start()
    service.submit(ANA, "people", COUNT, request_id="a")
    service.runner.step()
    path = tmp_path / "serve.toml"
    path.write_text(path.read_text().replace("source =", 'account = "next year"\nsource ='))
    later = start()
    later.submit(ANA, "people", COUNT, request_id="b")
    later.runner.step()
    assert len(charges(later, "people/ana")) == 1
    assert len(charges(later, "next year")) == 1
    assert later.table(ANA, "people").table_budget.remaining == 3.5


def test_a_table_with_another_name_keeps_its_accounts(start, tmp_path):
    service = start()
    service.submit(ANA, "people", COUNT, request_id="a")
    service.runner.step()
    path = tmp_path / "serve.toml"
    named = 'name = "visitors"\naccount = "people"'
    path.write_text(path.read_text().replace('name = "people"', named))
    later = start()
    budget = later.table(ANA, "visitors").budget
    assert (budget.account, budget.remaining) == ("people/ana", 1.5)


def test_a_limit_whose_worker_died_does_not_stand_in_the_way(start):
    service = start()
    relation = service.budgets.of_table(service.config.tables["people"]).relation
    service.shared_ledger.account(
        "people/ana", limit=pure_dp(0.125, relation=relation), parent="people"
    )  # and no note of it in the store
    shown = service.set_limit(OLGA, "ana", "people", {"epsilon": 0.25})
    assert (shown.account, shown.limit) == ("people/ana/2", 0.25)
    assert service.table(ANA, "people").budget.account == "people/ana/2"


def test_a_number_that_is_none_is_not_there(start):
    service = start()
    for number in ("\0", "", "a b", "'--"):
        with pytest.raises(NotFound):
            service.job(OLGA, number)
        with pytest.raises(InvalidArgument, match="nobody"):
            service.revoke(OLGA, number)
        with pytest.raises(InvalidArgument, match="nobody"):
            service.set_limit(OLGA, number, "people", {"epsilon": 1})


def test_tokens_do_not_last_longer_than_dates_do(start):
    with pytest.raises(InvalidArgument, match="ten years"):
        start().add_person(OLGA, "eve", "analyst", days=10**12)


def test_roles(start):
    service = start()
    job = service.submit(ANA, "people", COUNT, request_id="a")
    for who in (ANA, VERA):
        for refused in (
            lambda who=who: service.people(who),
            lambda who=who: service.add_person(who, "x", "owner"),
            lambda who=who: service.revoke(who, "ben"),
            lambda who=who: service.set_limit(who, "ana", "people", {"epsilon": 1}),
            lambda who=who: service.personal(who),
        ):
            with pytest.raises(Forbidden):
                refused()
    for refused in (
        lambda: service.tables(VERA),
        lambda: service.plan(VERA, "people", COUNT),
        lambda: service.submit(VERA, "people", COUNT, request_id="a"),
        lambda: service.releases(VERA),
        lambda: service.job(VERA, job.id),
        lambda: service.leakage(VERA, {}),
        lambda: service.start_audit(ANA),
        lambda: service.submit(OLGA, "people", COUNT, request_id="a"),  # no budget of her own
    ):
        with pytest.raises(Forbidden):
            refused()
    with pytest.raises(NotFound):
        service.job(BEN, job.id)
    assert service.job(OLGA, job.id).id == job.id
    assert [a.budget.account for a in service.ledger(ANA).accounts] == ["people/ana"]
    assert {a.budget.account for a in service.ledger(VERA).accounts} >= {"people", "people/ana"}


def test_others_on_the_machine_cannot_read_the_store(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'service.db'}")
    UserStore(store).add("ana", "analyst")
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("service.db*")}
    store.close()
    assert modes
    assert set(modes.values()) == {0}


def test_what_the_revoked_have_asked_for_is_not_begun(start):
    service = start()
    done = service.submit(ANA, "people", COUNT, request_id="a")
    service.runner.step()
    mine = service.submit(ANA, "people", COUNT, request_id="b")
    other = service.submit(BEN, "people", COUNT, request_id="b")
    service.revoke(OLGA, "ana")
    assert service.runner.step()
    assert not service.runner.step()
    states = [service.job(OLGA, job.id).state for job in (done, mine, other)]
    assert states == ["done", "refused", "done"]
    assert len(charges(service)) == 1


def test_tokens_are_hashes_and_end(start):
    service = start()
    people = service.users
    token, _ = people.add("ana", "analyst")
    assert people.by_token(token).name == "ana"
    with service.store.read() as session:
        kept = json.dumps(session.run("SELECT hash FROM tokens"))
    assert token not in kept
    secret, signed = people.sign_in(token)
    assert people.by_session(secret).csrf == signed.csrf
    short, _ = people.add("ana", "analyst", life=timedelta(microseconds=1))
    assert people.by_token(short) is None
    assert people.sign_in(short) is None
    people.sign_out(secret)
    assert people.by_session(secret) is None
    secret, _ = people.sign_in(token)
    people.revoke("ana")
    assert people.by_token(token) is None
    assert people.by_session(secret) is None
    with pytest.raises(InvalidArgument, match="revoked"):
        people.add("ana", "analyst")
    with pytest.raises(InvalidArgument, match="never change"):
        people.add("ben", "owner")


@pytest.mark.parametrize(
    "failure",
    [
        InvalidArgument("line 7 of 'people.csv' begins a record that is not of RFC 4180"),
        EngineFailure("reading the lines failed"),
        Unsupported("these files can be read only with pyarrow"),
    ],
)
def test_why_data_cannot_be_opened_is_for_the_owner_alone(start, monkeypatch, failure):
    """It may name a line, or a folder; nothing is charged."""
    service = start()

    def refuse(*_):
        raise failure

    monkeypatch.setattr(service.runner._opener, "open", refuse)
    job = service.submit(ANA, "people", COUNT, request_id="r1")
    assert service.runner.step()
    found = service.job(ANA, job.id)
    assert (found.state, found.error) == (
        "failed",
        "The data of this table cannot be opened: ask the owner.",
    )
    assert charges(service) == []
