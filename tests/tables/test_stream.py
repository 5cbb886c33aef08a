"""Streams in a file: charged once, one process, units limited, killed and going on."""

import datetime as dt
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain
from discreet.noise.random_source import seeded_rng
from discreet.ranges.stream import state as running
from discreet.ranges.stream.file import StreamFailure, StreamFile
from discreet.ranges.stream.plan import plan_stream
from discreet.tables.stream import stream

KILLED = Path(__file__).with_name("killed_release.py")


@pytest.fixture
def account(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    yield ledger.account("visits", limit=discreet.pure_dp(2))
    ledger.close()


def charges(account):
    return [entry.label for entry in account.history if entry.kind == "charge"]


def exact(path, *, max_rows_per_unit=1, limited=True, **more):
    """A file whose noise is nearly none, to see what was counted."""
    plan = plan_stream(epsilon=10**6, max_rows_per_unit=max_rows_per_unit, **more)
    return StreamFile(path, plan=plan, units=limited, payer="nobody")


def test_opened_again_it_goes_on_and_is_charged_once(tmp_path, account):
    path = tmp_path / "stream.db"
    with stream(path, account=account, epsilon=1, horizon=10) as visits:
        assert visits.last is None
        first = visits.feed([3, 4])
        assert not visits.receipt.replayed
    with stream(path, account=account, epsilon=1, horizon=10) as visits:
        assert visits.receipt.replayed
        assert visits.steps == 2
        assert visits.last.values.tolist() == first.values.tolist()
        assert visits.last.steps.tolist() == [1, 2]
        assert visits.feed([5]).steps.tolist() == [3]
        assert visits.forecast(3).std == visits.plan.std([3])[0]
    assert float(account.remaining) == 1.0
    assert charges(account) == ["stream"]


def test_the_budget_is_asked_first(tmp_path, account):
    with pytest.raises(BudgetExceeded):
        stream(tmp_path / "stream.db", account=account, epsilon=3)
    assert charges(account) == []
    # And the file was let go: the same stream can be opened when there is budget.
    plan = plan_stream(epsilon=3)
    StreamFile(tmp_path / "stream.db", plan=plan, units=False, payer="visits").close()


def test_a_stream_in_memory(account):
    with stream(account=account, epsilon=1, keys=["in", "out"], window=5) as visits:
        answers = visits.feed(np.ones((7, 2), dtype=np.int64))
    assert answers.values.shape == (7, 2)
    assert answers.std.shape == (7, 2)
    low, high = answers.interval(0.9)
    assert np.all(low < answers.values)
    assert np.all(answers.values < high)


def test_the_file_is_for_its_owner_only(tmp_path, account):
    path = tmp_path / "stream.db"
    with stream(path, account=account, epsilon=1) as visits:
        visits.feed([1])
        if os.name == "posix":
            modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("stream.db*")}
            assert modes == {0o600}


def test_one_process_at_a_time(tmp_path, account):
    path = tmp_path / "stream.db"
    with stream(path, account=account, epsilon=1) as visits:
        visits.feed([1])
        with pytest.raises(StreamFailure, match="another process"):
            stream(path, account=account, epsilon=1)
        visits.feed([2])
    with pytest.raises(StreamFailure, match="closed"):
        visits.feed([3])


def test_another_process_cannot_go_on_with_an_open_stream(tmp_path, account, monkeypatch):
    with stream(tmp_path / "stream.db", account=account, epsilon=1) as visits:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StreamFailure, match="belongs"):
            visits.feed([1])


def test_another_plan_is_another_stream(tmp_path, account):
    path = tmp_path / "stream.db"
    stream(path, account=account, epsilon=1).close()
    for change, name in [
        ({"epsilon": 0.5}, "plan"),
        ({"epsilon": 1, "max_rows_per_unit": 2}, "plan"),
        ({"epsilon": 1, "enforce_limits": True}, "units"),
    ]:
        with pytest.raises(InvalidArgument, match=f"another {name}"):
            stream(path, account=account, **change)
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    other = ledger.account("other", limit=discreet.pure_dp(2))
    with pytest.raises(InvalidArgument, match="another account"):
        stream(path, account=other, epsilon=1)
    ledger.close()


@pytest.mark.parametrize("amount", [{"epsilon": 1}, {"rho": 0.1}], ids=str)
def test_an_epoch_that_would_be_counted_in_another_way_is_refused(tmp_path, monkeypatch, amount):
    """After an update that changes trees or matrices: never half of one and half of another."""
    plan = plan_stream(**amount)
    StreamFile(tmp_path / "stream.db", plan=plan, units=False, payer="nobody").close()
    other = plan_stream(**{name: value / 2 for name, value in amount.items()}, horizon=300)
    kind = type(plan.counter(0))
    monkeypatch.setattr(kind, "design", property(lambda _: f"changed {other}"))
    with pytest.raises(StreamFailure, match="another way"):
        StreamFile(tmp_path / "stream.db", plan=plan, units=False, payer="nobody")


def test_designs_tell_counters_apart():
    designs = {
        plan_stream(**amount, horizon=horizon).counter(0).design
        for amount in ({"epsilon": 1}, {"epsilon": 2}, {"rho": 1})
        for horizon in (100, 300, 5000)
    }
    assert len(designs) == 9


def test_what_is_not_a_stream_is_refused(tmp_path, account):
    path = tmp_path / "text"
    path.write_text("not a stream" * 100)
    with pytest.raises(StreamFailure):
        stream(path, account=account, epsilon=1)
    with pytest.raises(StreamFailure):
        stream(tmp_path / "no" / "where", account=account, epsilon=1)


def test_a_failed_write_ends_the_stream(tmp_path, account):
    path = tmp_path / "stream.db"
    visits = stream(path, account=account, epsilon=1)
    visits.feed([1])
    visits._file._held.base.execute("DROP TABLE units")
    visits._file._held.base.execute("CREATE TABLE units (wrong)")
    with pytest.raises(StreamFailure, match="written"):
        visits._file._feed([1], seeded_rng(1), used=[(1, 1)])
    with pytest.raises(StreamFailure, match="open it again"):
        visits.feed([1])
    visits.close()


def test_of_each_unit_the_first_events_count(tmp_path):
    """50 events of one unit count C times over the whole stream, also after a restart (F42)."""
    path = tmp_path / "stream.db"
    file = exact(path, max_rows_per_unit=3)
    told = file.events([1] * 4 + [2, 2], units=[7, 7, 8, 7, 7, 8], end=2, rng=seeded_rng(1))
    assert np.rint(told.values).tolist() == [4, 5]
    file.close()
    file = exact(path, max_rows_per_unit=3)
    told = file.events([3] * 50, units=[7] * 48 + [8, 9], end=4, rng=seeded_rng(1))
    assert np.rint(told.values).tolist() == [7, 7]
    with pytest.raises(InvalidArgument, match="limits units"):
        file.feed([1], rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="units"):
        file.events([5], end=5, rng=seeded_rng(1))
    for units in (np.array([1.5]), "7", 7, np.array([[7]]), [7, 8]):
        with pytest.raises(OutOfDomain, match="units"):
            file.events([5], units=units, end=5, rng=seeded_rng(1))
    file.close()


def test_an_event_that_is_left_out_uses_nothing_up():
    """Late, beyond the end, or of no key: neither counted, nor one of the unit's events."""
    for keys, place in ((None, {}), (["a", "b"], {"keys": [0, 0, 2, 1]})):
        file = exact(None, horizon=9, keys=keys)
        first = {} if keys is None else {"keys": [0]}
        file.events([1], units=[8], end=1, rng=seeded_rng(1), **first)
        steps = [1, 3, 2 if keys else 7, 2]
        told = file.events(steps, units=[7] * 4, end=2, rng=seeded_rng(1), **place)
        assert np.rint(told.values).sum() == 2
        assert file.steps == 2


def test_without_one_unit_the_counts_move_by_at_most_its_limit():
    """All neighbors of some random streams: remove a unit, and count what changed."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        steps = np.sort(rng.integers(1, 6, 30))
        units = rng.integers(0, 5, 30).astype(str)
        keys = rng.integers(0, 2, 30)

        def counted(kept, steps=steps, units=units, keys=keys):
            file = exact(None, max_rows_per_unit=4, keys=["a", "b"])
            told = [
                file.events(
                    steps[kept & half],
                    units=units[kept & half],
                    keys=keys[kept & half],
                    end=end,
                    rng=seeded_rng(1),
                ).values
                for half, end in ((steps < 3, 2), (steps >= 3, 5))
            ]
            file.close()
            return np.diff(np.rint(np.concatenate(told)), axis=0, prepend=0)

        whole = counted(np.ones(30, dtype=bool))
        moves = [np.abs(whole - counted(units != unit)).sum() for unit in set(units)]
        assert max(moves) == 4


def test_an_array_of_the_other_kind_of_units_is_refused(tmp_path):
    file = exact(tmp_path / "stream.db")
    one = np.array([7, 7])
    assert round(file.events([1, 1], units=one, end=1, rng=seeded_rng(1)).values[-1]) == 1
    with pytest.raises(InvalidArgument, match="one kind"):
        file.events([2], units=np.array(["7"]), end=2, rng=seeded_rng(1))
    assert file.steps == 1
    assert round(file.events([2, 2], units=[7, 8], end=2, rng=seeded_rng(1)).values[-1]) == 2
    file.close()
    names = exact(None)
    names.events([1], units=np.array(["7"]), end=1, rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="one kind"):
        names.events([2], units=np.array([7]), end=2, rng=seeded_rng(1))


PEOPLE = [
    *("a", "a\0", "a\0\0", "\0", "", "7", 7, b"7", b"a", 7.5, 2**63, 2**64 + 7, -(2**63) - 1),
    *(
        "anna\ud800",
        "\udfff",
        10**5000,
        ("a", 7),
        ("a", "7"),
        dt.date(2020, 1, 1),
        uuid.UUID(int=7),
    ),
]


def test_strange_units_are_as_many_people_as_they_are(tmp_path):
    """One event each, over three feeds and a restart, in any order."""
    path = tmp_path / "stream.db"
    file = exact(path)
    first = file.events([1] * len(PEOPLE), units=PEOPLE, end=1, rng=seeded_rng(1))
    assert round(first.values[-1]) == len(PEOPLE)
    file.close()
    file = exact(path)
    for step, units in ((2, PEOPLE[::-1]), (3, PEOPLE + PEOPLE)):
        told = file.events([step] * len(units), units=units, end=step, rng=seeded_rng(1))
        assert round(told.values[-1]) == len(PEOPLE)
    same = [7.0, np.int8(7), Fraction(7), Decimal("7.00"), np.uint64(2**63), Fraction(15, 2)]
    told = file.events([4] * len(same), units=same, end=4, rng=seeded_rng(1))
    assert round(told.values[-1]) == len(PEOPLE)
    file.close()


class Raises:
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __hash__ = __eq__ = __str__


NOBODY = [
    None,
    float("nan"),
    float("inf"),
    np.datetime64("NaT"),
    Raises(),
    {},
    [7],
    1j,
    Decimal("NaN"),
]


@pytest.mark.parametrize("odd", NOBODY, ids=range(len(NOBODY)))
def test_an_event_that_is_nobodys_changes_nothing(odd):
    file = exact(None)
    told = file.events([1, 1, 1], units=[odd, 2**61 + 1, 2**61 + 2], end=1, rng=seeded_rng(1))
    assert round(told.values[-1]) == 2


@pytest.mark.parametrize("held", [b"", b"noise", b"PK\x03\x04 so on", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_state_is_an_error_of_the_stream(tmp_path, held):
    exact(tmp_path / "stream.db").close()
    with sqlite3.connect(tmp_path / "stream.db") as base:
        base.execute("UPDATE held SET value = ? WHERE name = 'state'", (held,))
    base.close()
    with pytest.raises(StreamFailure, match="damaged"):
        exact(tmp_path / "stream.db")


def test_events_without_units(account):
    with stream(account=account, epsilon=1, keys=["a", "b"]) as visits:
        assert visits.events([2, 1], keys=[0, 1], end=3).values.shape == (3, 2)
        with pytest.raises(InvalidArgument, match="units"):
            visits.events([4], keys=[0], units=[1], end=5)


def test_a_file_and_a_running_state_agree(tmp_path):
    """With the same bits, through the file with restarts and without a file: the same answers."""
    plan = plan_stream(rho=1)
    one, two = seeded_rng(3), seeded_rng(3)
    state = running.begin(plan)
    for size in (1, 300, 2):
        counts = np.arange(size)
        state, expected = running.advance(plan, state, counts, rng=one)
        file = StreamFile(tmp_path / "stream.db", plan=plan, units=False, payer="nobody")
        assert np.array_equal(file.feed(counts, rng=two).values, expected.values)
        file.close()


def test_threads_take_turns(account):
    visits = stream(account=account, epsilon=1)
    threads = [threading.Thread(target=visits.feed, args=([1] * 10,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert visits.steps == 80
    visits.close()


def published(folder, kills, amount, *more):
    done = subprocess.run(
        [sys.executable, KILLED, folder, str(kills), "5", json.dumps(amount), *more],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    answers = {}
    for line in done.stdout.splitlines():
        first, values = json.loads(line)
        for step, value in enumerate(values, start=first):
            answers.setdefault(step, set()).add(value)
    return answers


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("amount", [{"epsilon": 1}, {"rho": 1, "window": 20}], ids=str)
def test_killed_at_any_moment(tmp_path, amount):
    """Hundreds of kills: every step has one answer, none is missing, and one charge is made."""
    answers = published(tmp_path, 250, amount)
    assert sorted(answers) == list(range(1, len(answers) + 1))
    assert len(answers) > 100
    assert all(len(values) == 1 for values in answers.values())
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    assert charges(ledger.account("visits")) == ["stream"]
    assert not ledger.verify().problems
    ledger.close()
    # The errors are those of the plan: none of them is far out.
    plan = plan_stream(**amount)
    counts = np.arange(1, len(answers) + 1) % 7
    total = np.cumsum(counts)
    if plan.window:
        total[20:] = total[20:] - np.cumsum(counts)[:-20]
    errors = np.array([answers[step].pop() for step in sorted(answers)]) - total
    assert np.all(np.abs(errors) < 12 * plan.std(np.arange(1, len(errors) + 1)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_telling_before_writing_is_caught(tmp_path):
    answers = published(tmp_path, 100, {"epsilon": 1}, "careless")
    assert any(len(values) > 1 for values in answers.values())


def test_a_stream_says_what_its_counts_cover(account):
    plan = {"account": account, "epsilon": 1, "max_rows_per_unit": 3}
    with discreet.stream(**plan, window=7, keys=["a", "b"]) as visits:
        assert visits.about == (
            "the guarantee is for at most 3 events of each privacy unit in the whole stream",
            "each count covers the last 7 steps",
            "events of keys that are not in the plan are left out",
            "the intervals cover the noise only",
        )
