"""Reports on a Spark cluster: summed where they are, to the same integers as anywhere else."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._spark import engine as spark_sums
from discreet.data.source import EngineFailure
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.collection.report_file import ReportWriter
from discreet.local.collection.spec import CollectionSpec
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.noise.random_source import seeded_rng

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RANDOMIZERS = [
    grr(categories=300, epsilon=1),
    oue(categories=100, epsilon=1),
    olh(categories=1000, epsilon=1),
]
SECRET = "CANARY-5512"


@pytest.fixture
def workers(cluster, monkeypatch):
    """A session whose workers run this Python, as PYSPARK_PYTHON would tell them."""
    monkeypatch.setattr(cluster.sparkContext, "pythonExec", sys.executable)
    return cluster


@pytest.fixture(params=RANDOMIZERS, ids=lambda r: r.kind)
def randomizer(request):
    return request.param


def sample(randomizer, many):
    return randomizer.randomize(np.arange(many) % randomizer.categories, rng=seeded_rng(3))


def test_the_same_integers_as_everywhere_else(workers, randomizer, tmp_path):
    rows = sample(randomizer, 20_000)
    wrong = [None, b"", b"too long to be a report of anything" * 10]
    column = [*(row.tobytes() for row in rows), *wrong]
    frame = pl.DataFrame({"a.b": range(len(column)), "The report": column})
    frame.write_parquet(tmp_path / "r.parquet", row_group_size=1000)
    collection = CollectionSpec(randomizer=randomizer)
    with ReportWriter(tmp_path / "r.dlr", collection) as writer:
        writer.write(rows)
    with AggregatorState(None, collection) as state:
        state.count([tmp_path / "r.dlr"])
        whole = state.aggregate
    read = workers.read.parquet(str(tmp_path / "r.parquet"))
    found = {
        "Spark": Aggregator.from_frame(read, randomizer, column="The report"),
        "Spark, 40 parts": Aggregator.from_frame(
            read.repartition(40), randomizer, column="The report"
        ),
        "DuckDB": Aggregator.from_frame(
            duckdb.read_parquet(str(tmp_path / "r.parquet")), randomizer, column="The report"
        ),
        "Polars": Aggregator.from_frame(
            pl.scan_parquet(tmp_path / "r.parquet"), randomizer, column="The report"
        ),
    }
    whole.refused += len(wrong)
    assert {name: one == whole for name, one in found.items()} == dict.fromkeys(found, True)


def test_text_and_nothing(workers):
    randomizer = RANDOMIZERS[1]
    rows = sample(randomizer, 300)
    texts = [(row.tobytes().hex(),) for row in rows] + [("nonsense",), (None,)]
    frame = workers.createDataFrame(texts, "report string")
    found = Aggregator.from_frame(frame, randomizer)
    assert np.array_equal(found.counts, Aggregator(randomizer).add(rows).counts)
    assert (found.reports, found.refused) == (300, 2)
    assert Aggregator.from_frame(frame.limit(0), randomizer) == Aggregator(randomizer)
    numbers = workers.createDataFrame([(1,), (2,)], "report int")
    assert Aggregator.from_frame(numbers, randomizer).refused == 2


def test_only_a_bounded_number_of_sums_reaches_the_driver(workers, monkeypatch):
    randomizer = RANDOMIZERS[0]
    rows = sample(randomizer, 600)
    frame = workers.createDataFrame([(row.tobytes(),) for row in rows], "report binary")
    read = Aggregator.from_bytes
    seen = []

    def watched(state, randomizer=None):
        seen.append(len(state))
        return read(state, randomizer)

    monkeypatch.setattr(Aggregator, "from_bytes", watched)
    found = Aggregator.from_frame(frame.repartition(60), randomizer)
    assert found == Aggregator(randomizer).add(rows)
    assert 0 < len(seen) <= spark_sums.SUMS


def test_errors_quote_nothing(workers):
    frame = workers.createDataFrame([(SECRET,)], "s string")
    with pytest.raises(InvalidArgument, match="column 'report'"):
        Aggregator.from_frame(frame, RANDOMIZERS[0])
    broken = frame.selectExpr("CAST(s AS INT) AS report")
    workers.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(EngineFailure) as error:
        Aggregator.from_frame(broken, RANDOMIZERS[0])
    assert SECRET not in str(error.value)


def test_workers_without_discreet_are_told_of(workers, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    places = tmp_path / "packages"
    places.mkdir()
    for name in ("numpy", "pandas", "pyarrow", "dateutil", "tzdata", "six.py", "numpy.libs"):
        for path in packages:
            if (Path(path) / name).exists():
                (places / name).symlink_to(Path(path) / name)
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{places}" exec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(workers.sparkContext, "pythonExec", str(bare))
    frame = workers.createDataFrame([(b"xx",)], "report binary")
    with pytest.raises(Unsupported, match="PYSPARK_PYTHON"):
        Aggregator.from_frame(frame, RANDOMIZERS[0])
