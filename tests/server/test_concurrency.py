"""Long work waits its turn without taking every thread; what is remembered has a bound."""

import threading

import pytest

from discreet.core.errors import InvalidArgument
from discreet.server import config as configs
from discreet.server import plans as planning
from discreet.server.jobs.concurrency import BoundedCache, ConcurrencyLimit
from discreet.server.middleware.errors import Busy

CONFIG = """
[[table]]
name = "people"
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 1
limit = { epsilon = 4 }
[table.columns]
age = { kind = "integer", lower = 0, upper = 255 }
hour = { kind = "integer", lower = 0, upper = 255 }
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text(CONFIG)
    return configs.read(path).tables["people"]


def test_few_wait_and_the_rest_is_sent_away_at_once():
    turns = ConcurrencyLimit("later", waiting=1, seconds=60)
    inside, go_on, answers = threading.Event(), threading.Event(), []

    def work():
        with turns.taken():
            inside.set()
            go_on.wait(60)
        answers.append("done")

    first, second = (threading.Thread(target=work) for _ in range(2))
    first.start()
    assert inside.wait(60)
    second.start()
    while turns._room.acquire(blocking=False):  # until the second waits
        turns._room.release()
    with pytest.raises(Busy, match="later"), turns.taken():
        pass
    go_on.set()
    for thread in (first, second):
        thread.join(60)
    assert answers == ["done", "done"]
    with turns.taken():  # all is given back
        pass


def test_whoever_is_patient_is_not_sent_away():
    turns = ConcurrencyLimit("later", waiting=0, seconds=0.01)
    done = threading.Event()

    def work():
        with turns.taken(patient=True):
            done.set()

    with turns.taken():
        thread = threading.Thread(target=work)
        thread.start()
        with pytest.raises(Busy), turns.taken():
            pass
        assert not done.is_set()
    thread.join(60)
    assert done.is_set()


def test_memory_forgets_what_was_not_used_for_longest():
    memory = BoundedCache(most=10)
    memory.put("a", 1, weight=4)
    memory.put("b", 2, weight=4)
    assert memory.get("a") == 1
    memory.put("c", 3, weight=4)
    assert [memory.get(key) for key in "abc"] == [1, None, 3]
    memory.put("a", 4, weight=8)  # in place of the old one
    assert [memory.get(key) for key in "abc"] == [4, None, None]
    memory.put("d", 5, weight=11)  # larger than all of it
    assert [memory.get(key) for key in "ad"] == [None, None]
    memory.put("e", 6, weight=10)
    assert memory.get("e") == 6


def test_large_questions_do_not_stay_for_ever(table):
    """A question of 65,536 groups takes five megabytes: forty of them stay, not thousands."""
    before = planning._KNOWN
    try:
        planning._KNOWN = BoundedCache(most=2_500_000)
        for number in range(1, 61):
            asked = [{"kind": "count", "by": ["age", "hour"], "epsilon": number}]
            planning.price_request(table, asked)
        assert 30 < len(planning._KNOWN._kept) < 40
    finally:
        planning._KNOWN = before


def test_too_many_searches_in_one_request_are_refused(table):
    asked = [{"kind": "count", "within": 10 + number} for number in range(11)]
    with pytest.raises(InvalidArgument, match="at most 10"):
        planning.price_request(table, asked)
