"""A count that is stopped and begun again counts every report once."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

from discreet.core.errors import InvalidArgument
from discreet.data.source import EngineFailure
from discreet.local.collection import aggregator_state as module
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState, StateFailure
from discreet.local.collection.report_file import ReportWriter
from discreet.local.collection.spec import CollectionSpec
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.noise.random_source import seeded_rng

HERE = Path(__file__).parent
GRR = CollectionSpec(randomizer=grr(categories=300, epsilon=1))
OUE = CollectionSpec(randomizer=oue(categories=20, epsilon=2))


def reports(collection, many, seed=1):
    codes = np.arange(many) % collection.randomizer.categories
    return collection.randomizer.randomize(codes, rng=seeded_rng(seed))


def write(path, collection, rows):
    with ReportWriter(path, collection) as writer:
        writer.write(rows)
    return path


def summed(collection, *parts):
    total = Aggregator(collection.randomizer)
    for part in parts:
        total.add(part)
    return total


@pytest.fixture
def small(monkeypatch):
    """Chunks of a few reports, so that there are many."""
    monkeypatch.setattr(module, "CHUNK", 8)
    monkeypatch.setattr(module, "_LONGEST_CHUNK", 16)


def test_files_are_counted_once_however_they_are_named(tmp_path, small):
    rows = reports(GRR, 100)
    one = write(tmp_path / "one.dlr", GRR, rows[:60])
    two = write(tmp_path / "two.dlr", GRR, rows[60:])
    with AggregatorState(tmp_path / "s.agg", GRR) as state:
        assert [c.reports for c in state.count([one, two, one])] == [60, 40, 0]
        assert state.aggregate == summed(GRR, rows)
    moved = one.rename(tmp_path / "renamed.dlr")
    copied = tmp_path / "copy.dlr"
    copied.write_bytes(two.read_bytes())
    more = reports(GRR, 7, seed=2)
    write(moved, GRR, more)  # it grows
    with AggregatorState(tmp_path / "s.agg", GRR) as state:
        piped = io.BytesIO(two.read_bytes())
        assert [c.reports for c in state.count([moved, copied, piped])] == [7, 0, 0]
        assert state.aggregate == summed(GRR, rows, more)


def test_a_tail_that_is_still_being_written_is_left_for_later(tmp_path):
    rows = reports(OUE, 10)
    path = write(tmp_path / "a.dlr", OUE, rows)
    whole = path.read_bytes()
    with AggregatorState(tmp_path / "s.agg", OUE) as state:
        for cut, new in ((4, 8), (3, 1), (1, 0), (0, 1)):
            path.write_bytes(whole[: len(whole) - cut])
            assert state.count([path])[0].reports == new
        assert state.aggregate == summed(OUE, rows)


def test_foreign_and_broken_files_are_told_and_move_nothing(tmp_path):
    rows = reports(GRR, 20)
    good = write(tmp_path / "good.dlr", GRR, rows)
    foreign = write(tmp_path / "foreign.dlr", OUE, reports(OUE, 30))
    broken = tmp_path / "broken.dlr"
    broken.write_bytes(os.urandom(1000))
    empty = tmp_path / "empty.dlr"
    empty.write_bytes(b"")
    with AggregatorState(None, GRR) as state:
        for _ in range(2):
            found = state.count([foreign, broken, good, empty])
            assert [bool(c.note) for c in found] == [True, True, False, True]
            assert "another collection" in found[0].note
        assert [c.refused for c in found] == [0, 0, 0, 0]
        assert np.array_equal(state.aggregate.counts, summed(GRR, rows).counts)
        assert (state.aggregate.reports, state.aggregate.refused) == (20, 30)
        with pytest.raises(InvalidArgument, match="cannot be read"):
            state.count([tmp_path / "gone.dlr"])


def test_malformed_reports_are_refused(tmp_path):
    rows = reports(GRR, 20)
    wrong = np.full((5, 2), 255, np.uint8)
    path = write(tmp_path / "a.dlr", GRR, np.concatenate([rows, wrong]))
    with AggregatorState(None, GRR) as state:
        assert [(c.reports, c.refused) for c in state.count([path])] == [(20, 5)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_with_a_column_is_counted_as_a_whole(tmp_path, suffix):
    rows = reports(GRR, 50)
    path = tmp_path / f"a{suffix}"
    frame = pl.DataFrame({"r": [row.tobytes().hex() for row in rows], "x": range(50)})

    def store(table):
        table.write_csv(path) if suffix == ".csv" else table.write_parquet(path)

    store(frame)
    with AggregatorState(tmp_path / "s.agg", GRR) as state:
        assert [c.reports for c in state.count([path, path], column="r")] == [50, 0]
        assert state.aggregate == summed(GRR, rows)
        with pytest.raises(InvalidArgument, match="column 'report'"):
            state.count([write_other(tmp_path, suffix, frame)])
    store(frame.head(20))
    with (
        AggregatorState(tmp_path / "s.agg", GRR) as state,
        pytest.raises(InvalidArgument, match="new file"),
    ):
        state.count([path], column="r")


def write_other(folder, suffix, frame):
    path = folder / f"b{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    return path


def test_arrow_batches_through_a_pipe(tmp_path):
    rows = reports(GRR, 50)
    table = pa.table({"x": range(51), "r": [*(row.tobytes() for row in rows), None]})
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    whole = file.getvalue()
    with AggregatorState(tmp_path / "s.agg", GRR) as state:
        (counted,) = state.count([io.BytesIO(whole)], column="r")
        assert (counted.reports, counted.refused) == (50, 1)
        assert np.array_equal(state.aggregate.counts, summed(GRR, rows).counts)
        before = state.aggregate.copy()
        for cut in (whole[:4], whole[:100], whole[: len(whole) // 2]):
            with pytest.raises(EngineFailure):
                state.count([io.BytesIO(cut)], column="r")
        assert state.aggregate == before  # all of it or nothing
        with pytest.raises(InvalidArgument, match="column 'report'"):
            state.count([io.BytesIO(whole)])


def test_states_add_up_unless_they_share_a_file(tmp_path):
    rows = reports(GRR, 100)
    paths = [write(tmp_path / f"{i}.dlr", GRR, rows[i::3]) for i in range(3)]
    for i in range(3):
        with AggregatorState(tmp_path / f"{i}.agg", GRR) as state:
            state.count([paths[i], paths[0]] if i == 2 else [paths[i]])
    with (
        AggregatorState(tmp_path / "0.agg") as first,
        AggregatorState(tmp_path / "1.agg") as second,
    ):
        first.merge(second)
        assert first.aggregate == summed(GRR, rows[0::3], rows[1::3])
        with (
            AggregatorState(tmp_path / "2.agg") as third,
            pytest.raises(InvalidArgument, match="same file"),
        ):
            first.merge(third)
        with AggregatorState(None, OUE) as other, pytest.raises(InvalidArgument, match="different"):
            first.merge(other)
    with AggregatorState(tmp_path / "0.agg") as again:  # merging in memory did not write
        assert again.aggregate == summed(GRR, rows[0::3])


def test_a_merge_that_is_refused_marks_no_file_as_counted(tmp_path):
    rows = reports(GRR, 100)
    paths = [write(tmp_path / f"{i}.dlr", GRR, rows[i::2]) for i in range(2)]
    with AggregatorState(None, GRR) as one, AggregatorState(None, GRR) as both:
        one.count([paths[1]])
        both.count(paths)
        with pytest.raises(InvalidArgument, match="same file"):
            one.merge(both)
        one.count([paths[0]])
        assert one.aggregate == summed(GRR, rows)


def test_a_state_is_of_one_collection_and_one_process(tmp_path):
    path = tmp_path / "s.agg"
    with AggregatorState(path, GRR), pytest.raises(StateFailure, match="another process"):
        AggregatorState(path, GRR)
    with pytest.raises(InvalidArgument, match="another collection"):
        AggregatorState(path, OUE)
    with pytest.raises(InvalidArgument, match="a count has written"):
        AggregatorState(tmp_path / "new.agg")
    junk = tmp_path / "junk.agg"
    junk.write_bytes(b"no database at all, but long enough to be looked at" * 20)
    with pytest.raises(StateFailure, match="no state"):
        AggregatorState(junk, GRR)


def test_an_interrupt_within_a_sum_writes_nothing_that_is_half_done(tmp_path, monkeypatch, small):
    """An interrupt may come after counts have moved and before the position has."""
    rows = reports(GRR, 100)
    path = write(tmp_path / "a.dlr", GRR, rows)
    add = Aggregator.add
    calls = []

    def interrupted(self, some):
        add(self, some)
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return self

    monkeypatch.setattr(Aggregator, "add", interrupted)
    with AggregatorState(tmp_path / "s.agg", GRR) as state, pytest.raises(KeyboardInterrupt):
        state.count([path], every=0)
    with AggregatorState(tmp_path / "s.agg", GRR) as state:
        assert 0 < state.aggregate.reports < 100
        state.count([path], every=0)
        assert state.aggregate == summed(GRR, rows)


@pytest.mark.slow
@pytest.mark.parametrize("careless", [False, True])
def test_killed_at_any_moment_every_report_counts_once(tmp_path, careless):
    """The careless version writes the sum before the position: the test must notice."""
    rows = reports(GRR, 18_000)  # enough for many kills, however fast the disk is
    for i in range(3):
        write(tmp_path / f"{i}.dlr", GRR, rows[i::3])
    (tmp_path / "c.json").write_text(GRR.to_json())
    command = [sys.executable, str(HERE / "counting.py"), str(tmp_path)]
    told = subprocess.run(
        command + ["careless"] * careless, check=True, capture_output=True, text=True, timeout=300
    )
    assert int(told.stdout) > 10  # kills
    with AggregatorState(tmp_path / "s.agg") as state:
        assert (state.aggregate == summed(GRR, rows)) != careless


def test_a_foreign_database_is_not_written_to(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE theirs (x)")
        base.commit()
    with pytest.raises(InvalidArgument, match="a count has written"):
        AggregatorState(path, CollectionSpec(randomizer=grr(categories=4, epsilon=1)))
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
