"""Each door, with a few hostile people; `python -m tests.hostile` goes on with new ones."""

from __future__ import annotations

import pytest

from tests.hostile.harness import sweep
from tests.hostile.registry import DOORS
from tests.hostile.tables import SERVICES

HERE = [door for door in DOORS if not door.needs]


@pytest.mark.parametrize("door", HERE, ids=lambda door: door.name)
def test_one_person_changes_only_their_own_contribution(door, tmp_path):
    tried = sweep(door, tmp_path, seed=1, sessions=1)
    assert not tried.violations, "\n".join(map(str, tried.violations[:5]))
    assert tried.pairs + tried.refused >= min(door.pairs, 3) or tried.refused


@pytest.mark.slow
@pytest.mark.parametrize("door", HERE, ids=lambda door: door.name)
def test_many_people_change_only_their_own_contribution(door, tmp_path):
    # One or two pairs at a time: each takes seconds.
    tried = sweep(door, tmp_path, seed=1_000, sessions=12 if door.pairs > 2 else 3)
    assert not tried.violations, "\n".join(map(str, tried.violations[:5]))


def _named(name):
    (door,) = (door for door in DOORS if door.name == name)
    return door


@pytest.mark.postgres
def test_one_person_in_a_database(server, tmp_path, monkeypatch):
    monkeypatch.setitem(SERVICES, "postgres", server.empty())
    tried = sweep(_named("postgres"), tmp_path, seed=1, sessions=2)
    assert not tried.violations, "\n".join(map(str, tried.violations[:5]))
    assert tried.pairs >= 10


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", "parquet of spark", "csv of spark"])
def test_one_person_on_a_cluster(cluster, tmp_path, name):
    tried = sweep(_named(name), tmp_path, seed=1, sessions=2)
    assert not tried.violations, "\n".join(map(str, tried.violations[:5]))
    assert tried.pairs >= 4
