"""Reports in frames: the same integers from every engine, and what is no report is counted."""

from __future__ import annotations

import base64
import sys

import duckdb
import ibis
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.local.collection import _report_frames as frames
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.noise.random_source import seeded_rng

RANDOMIZERS = [grr(categories=300, epsilon=1), oue(categories=100, epsilon=1)]
TEXTS = {
    "binary": lambda b: b,
    "hex": lambda b: b.hex(),
    "HEX": lambda b: b.hex().upper(),
    "base64": lambda b: base64.b64encode(b).decode(),
    "urlsafe": lambda b: base64.urlsafe_b64encode(b).decode(),
}


class Speaker:
    """Something that speaks Arrow's stream protocol and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def ibis_duckdb(frame, folder):
    frame.write_parquet(folder / "t.parquet")
    return ibis.duckdb.connect().read_parquet(folder / "t.parquet")


def ibis_polars(frame, _):
    return ibis.polars.connect({"t": frame}).table("t")


def as_file(suffix):
    def write(frame, folder):
        path = folder / f"reports{suffix}"
        match suffix:
            case ".csv":
                frame.write_csv(path)
            case ".parquet":
                frame.write_parquet(path)
            case _:
                pyarrow.feather.write_feather(frame.to_arrow(), path, compression="uncompressed")
        return path

    write.__name__ = suffix
    return write


def polars_eager(frame, _):
    return frame


def polars_lazy(frame, _):
    return frame.lazy()


def pandas_frame(frame, _):
    return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})


def pyarrow_table(frame, _):
    return frame.to_arrow()


def pyarrow_reader(frame, _):
    return frame.to_arrow().to_reader(max_chunksize=7)


def speaker(frame, _):
    return Speaker(frame)


def relation(frame, _):
    return duckdb.connect().from_arrow(frame.to_arrow())


def wrapped(frame, _):
    return nw.from_native(frame)


EVERY = [
    polars_eager,
    polars_lazy,
    pandas_frame,
    pyarrow_table,
    pyarrow_reader,
    speaker,
    relation,
    wrapped,
    ibis_duckdb,
    ibis_polars,
    as_file(".parquet"),
    as_file(".arrow"),
]


def sample(randomizer, many=500):
    return randomizer.randomize(np.arange(many) % randomizer.categories, rng=seeded_rng(3))


@pytest.fixture(params=RANDOMIZERS, ids=lambda r: r.kind)
def randomizer(request):
    return request.param


@pytest.fixture(params=TEXTS)
def form(request):
    return TEXTS[request.param]


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_every_frame_gives_the_same_integers(make, randomizer, form, tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "ROWS", 64)
    rows = sample(randomizer)
    column = [form(row.tobytes()) for row in rows]
    frame = pl.DataFrame({"other": range(len(rows)), "the report": column})
    found = Aggregator.from_frame(make(frame, tmp_path), randomizer, column="the report")
    assert found == Aggregator(randomizer).add(rows)


@pytest.mark.parametrize("form", ["hex", "base64"])
def test_csv(form, randomizer, tmp_path):
    rows = sample(randomizer)
    frame = pl.DataFrame({"report": [TEXTS[form](row.tobytes()) for row in rows]})
    found = Aggregator.from_frame(as_file(".csv")(frame, tmp_path), randomizer)
    assert found == Aggregator(randomizer).add(rows)


def bad(randomizer, form):
    width = randomizer.width
    if form is TEXTS["binary"]:
        return [None, b"", b"x" * (width - 1), b"x" * (width + 1), b"\xff" * width]
    return [None, "", "=", "a", "g" * (2 * width), "é" * (2 * width), "  " * width, "a" * 999]


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_what_is_no_report_is_refused_and_counted(make, randomizer, form, tmp_path):
    rows = sample(randomizer, 100)
    wrong = bad(randomizer, form)
    column = [*wrong, *(form(row.tobytes()) for row in rows), *wrong]
    found = Aggregator.from_frame(make(pl.DataFrame({"report": column}), tmp_path), randomizer)
    expected = Aggregator(randomizer).add(rows)
    assert np.array_equal(found.counts, expected.counts)
    assert (found.reports, found.refused) == (100, 2 * len(wrong))


def test_a_column_of_anything_is_refused_and_counted(randomizer):
    good = sample(randomizer, 3)
    mixed = [b"x", 3, 2.5, None, object(), good[0].tobytes(), good[1].tobytes().hex(), [1]]
    found = Aggregator.from_frame(pd.DataFrame({"report": mixed}), randomizer)
    assert (found.reports, found.refused) == (2, 6)
    for column in ([1, 2, 3], [1.5, None, 2.0], [True, False, None], [[1], [2], []]):
        found = Aggregator.from_frame(pl.DataFrame({"report": column}), randomizer)
        assert (found.reports, found.refused) == (0, 3)


def test_a_fixed_width_column_is_read_in_place(randomizer):
    rows = sample(randomizer, 50)
    kind = pa.binary(randomizer.width)
    values = [row.tobytes() for row in rows]
    for column in (
        pa.chunked_array([pa.array(values[:20], kind), pa.array(values[20:], kind)]),
        pa.array([b"\0" * randomizer.width, *values], kind).slice(1),
        pa.array([b"zz", *values], pa.binary()).slice(1),
        pa.array([b"zz", *values], pa.large_binary()).slice(1),
        pa.array(values, pa.binary_view()),
    ):
        found = Aggregator.from_frame(pa.table({"report": column}), randomizer)
        assert found == Aggregator(randomizer).add(rows)
    nulls = pa.array([None, *values, None], kind)
    found = Aggregator.from_frame(pa.table({"report": nulls}), randomizer)
    assert (found.reports, found.refused) == (50, 2)
    other = pa.array([b"x" * (randomizer.width + 1)] * 4, pa.binary(randomizer.width + 1))
    found = Aggregator.from_frame(pa.table({"report": other}), randomizer)
    assert (found.reports, found.refused) == (0, 4)


@pytest.mark.parametrize("width", range(1, 40))
def test_hexadecimal_and_base64_cannot_be_taken_for_each_other(width):
    """Of the same length, one ends in "=" and the other never does."""
    data = bytes(range(width))
    for text in (data.hex(), base64.b64encode(data).decode()):
        assert frames.rows([text], width=width).tobytes() == data
    # Digits that are both: read as hexadecimal if so long, and as base64 if so long.
    assert frames.rows(["ab" * width], width=width).tobytes() == b"\xab" * width


def test_what_is_not_there_is_said():
    frame = pl.DataFrame({"x": ["CANARY"]})
    with pytest.raises(InvalidArgument, match="column 'report' is not in the frame"):
        Aggregator.from_frame(frame, RANDOMIZERS[0])
    with pytest.raises(InvalidArgument, match="source"):
        Aggregator.from_frame(3, RANDOMIZERS[0])
    broken = duckdb.sql("SELECT CAST(s AS BLOB) AS report FROM (SELECT 'CANARY-é' AS s)")
    with pytest.raises(PrivacyError) as error:
        Aggregator.from_frame(broken, RANDOMIZERS[0])
    assert "CANARY" not in str(error.value)


@pytest.mark.parametrize("make", [polars_eager, polars_lazy, relation, as_file(".parquet")])
def test_without_pyarrow(make, tmp_path, monkeypatch, randomizer):
    """It is optional: lists of values are read instead."""
    rows = sample(randomizer)
    frame = pl.DataFrame({"report": [row.tobytes() for row in rows] + [None]})
    source = make(frame, tmp_path)
    gone = [name for name in sys.modules if name.split(".")[0] == "pyarrow"]
    for name in {"pyarrow", *gone}:
        monkeypatch.setitem(sys.modules, name, None)
    found = Aggregator.from_frame(source, randomizer)
    expected = Aggregator(randomizer).add(rows)
    assert np.array_equal(found.counts, expected.counts)
    assert (found.reports, found.refused) == (len(rows), 1)
