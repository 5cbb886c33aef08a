"""Files of reports: what is written is read, files can grow, nothing foreign is believed."""

from __future__ import annotations

import io
import json
import os
import random
import struct
from hashlib import sha256

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.collection.report_file import (
    MAGIC,
    NotReports,
    ReportWriter,
    Unfinished,
    chunks,
    header,
    marked,
    read_header,
)
from discreet.local.collection.spec import CollectionSpec
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.noise.random_source import seeded_rng

GRR = CollectionSpec(randomizer=grr(categories=300, epsilon=1))  # two bytes
OUE = CollectionSpec(randomizer=oue(categories=20, epsilon=2))  # three bytes


class Trickle(io.RawIOBase):
    """A pipe that hands out at most three bytes at a time, and cannot go back."""

    def __init__(self, data):
        self.rest = io.BytesIO(data)

    def readable(self):
        return True

    def read(self, size=-1):
        return self.rest.read(min(size, 3) if size >= 0 else 3)


def reports(collection, many, seed=1):
    codes = np.arange(many) % collection.randomizer.categories
    return collection.randomizer.randomize(codes, rng=seeded_rng(seed))


def read(path, **options):
    with path.open("rb") as stream:
        head = read_header(stream)
        found = list(chunks(stream, head, **options))
    return np.concatenate([np.empty((0, head.width), np.uint8), *found])


@pytest.mark.parametrize("collection", [GRR, OUE])
@pytest.mark.parametrize("rows", [None, 1, 7, 1000])
def test_what_is_written_is_read(tmp_path, collection, rows):
    path = tmp_path / "a.dlr"
    sent = reports(collection, 50)
    with ReportWriter(path, collection) as writer:
        writer.write(sent[:20])
        writer.write(sent[20:20])
        writer.write(sent[20:])
        assert writer.written == 50
    assert np.array_equal(read(path, rows=rows), sent)
    assert np.array_equal(read(path, rows=rows, skip=33), sent[33:])
    assert len(read(path, rows=rows, skip=50)) == len(read(path, rows=rows, skip=99)) == 0
    data = path.read_bytes()
    for stream in (io.BytesIO(data), Trickle(data)):
        head = read_header(stream)
        assert head.fingerprint == collection.fingerprint
        assert CollectionSpec.from_json(head.description) == collection
        assert np.array_equal(np.concatenate(list(chunks(stream, head, skip=13))), sent[13:])


def test_the_layout_is_as_documented(tmp_path):
    path = tmp_path / "a.dlr"
    with ReportWriter(path, OUE) as writer:
        writer.write(np.array([[1, 2, 3]], dtype=np.uint8))
    data = path.read_bytes()
    text = json.dumps(OUE.randomizer.describe(), sort_keys=True, separators=(",", ":")).encode()
    assert data[:8] == bytes.fromhex("89444C520D0A1A0A")
    assert struct.unpack("<III", data[8:20]) == (1, 3, len(text))
    assert data[36:52].decode() == sha256(text).hexdigest()[:16] == OUE.randomizer.fingerprint
    assert data[52:] == text + b"\1\2\3"


def test_a_file_grows_and_keeps_its_identity(tmp_path):
    path = tmp_path / "a.dlr"
    sent = reports(GRR, 30)
    for part in (sent[:10], sent[10:11], sent[11:]):
        with ReportWriter(path, GRR) as writer:
            writer.write(part)
    with path.open("rb") as stream:
        first = read_header(stream).identity
    assert np.array_equal(read(path), sent)
    with ReportWriter(path, GRR):
        pass
    with path.open("rb") as stream:
        assert read_header(stream).identity == first
    assert header(GRR).identity != header(GRR).identity


@pytest.mark.parametrize("collection", [GRR, OUE])
def test_cut_at_any_byte_the_whole_reports_are_read_and_the_file_can_go_on(tmp_path, collection):
    """A crash can end a file anywhere, in the header too."""
    path = tmp_path / "a.dlr"
    sent = reports(collection, 4)
    with ReportWriter(path, collection) as writer:
        writer.write(sent)
    whole = path.read_bytes()
    begin = len(whole) - sent.size
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        left = max(0, length - begin) // collection.randomizer.width
        if length < begin:
            with pytest.raises(Unfinished):
                read(path)
        else:
            assert np.array_equal(read(path), sent[:left])
        with ReportWriter(path, collection) as writer:
            writer.write(sent[left:])
        assert np.array_equal(read(path), sent)


def test_a_writer_never_touches_what_it_did_not_write(tmp_path):
    path = tmp_path / "a.dlr"
    for text in (b"x", b"name,age\n", MAGIC[:4] + b"other", MAGIC + b"\7" * 60):
        path.write_bytes(text)
        with pytest.raises(InvalidArgument, match="Choose another file"):
            ReportWriter(path, GRR)
        assert path.read_bytes() == text
    path.unlink()
    with ReportWriter(path, OUE) as writer:
        writer.write(reports(OUE, 3))
    before = path.read_bytes()
    with pytest.raises(InvalidArgument, match="another collection"):
        ReportWriter(path, GRR)
    assert path.read_bytes() == before
    with pytest.raises(InvalidArgument, match="cannot be written"):
        ReportWriter(tmp_path / "no" / "folder", GRR)
    with ReportWriter(path, OUE) as writer, pytest.raises(InvalidArgument, match="rows of 3 bytes"):
        writer.write(reports(GRR, 3))


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "a.dlr"
    with ReportWriter(path, GRR) as writer:
        with pytest.raises(InvalidArgument, match="someone else"):
            ReportWriter(path, GRR)
        writer.write(reports(GRR, 3))
    with ReportWriter(path, GRR) as writer:
        writer.write(reports(GRR, 3))
    assert len(read(path)) == 6


def test_an_error_takes_back_what_was_written(tmp_path):
    path = tmp_path / "a.dlr"
    with ReportWriter(path, GRR) as writer:
        writer.write(reports(GRR, 3))
    before = path.read_bytes()

    def send(*parts):
        with ReportWriter(path, GRR) as writer:
            for part in parts:
                writer.write(part)

    with pytest.raises(InvalidArgument):
        send(reports(GRR, 100_000), reports(OUE, 1))
    assert path.read_bytes() == before


def killed(path, collection, many, *, all_or_none):
    """A writer that dies with its reports on the disk."""
    child = os.fork()
    if child == 0:
        writer = ReportWriter(path, collection, all_or_none=all_or_none)
        writer.write(reports(collection, many))
        writer._stream.flush()
        os._exit(0)
    os.waitpid(child, 0)


def test_a_killed_run_is_left_out_and_taken_back(tmp_path):
    path = tmp_path / "r.dlr"
    with ReportWriter(path, OUE, all_or_none=True) as writer:
        writer.write(reports(OUE, 10))
    assert not marked(path).exists()
    killed(path, OUE, 70, all_or_none=True)
    assert len(read(path)) == 80
    with AggregatorState(None, OUE) as state:
        (left_out,) = state.count([path])
        assert (left_out.reports, state.aggregate.reports) == (0, 0)
        assert "encode it again" in left_out.note
        with ReportWriter(path, OUE, all_or_none=True) as writer:
            writer.write(reports(OUE, 70))
        assert not marked(path).exists()
        state.count([path])
        assert state.aggregate.reports == 80


def test_a_killed_collector_keeps_what_is_whole(tmp_path):
    path = tmp_path / "r.dlr"
    killed(path, OUE, 70, all_or_none=False)
    with ReportWriter(path, OUE) as writer:
        writer.write(reports(OUE, 5))
    assert len(read(path)) == 75


def test_a_mark_that_is_none_is_not_believed(tmp_path):
    path = tmp_path / "r.dlr"
    with ReportWriter(path, OUE) as writer:
        writer.write(reports(OUE, 5))
    marked(path).write_text("here")
    with pytest.raises(InvalidArgument, match="remove it"):
        ReportWriter(path, OUE, all_or_none=True)
    assert len(read(path)) == 5


def test_a_damaged_header_is_never_believed():
    """Whatever is done to a header: it is refused, or it says the same as before."""
    rng = random.Random(5)
    good = header(GRR)
    data = good.to_bytes()
    assert read_header(io.BytesIO(data)) == good
    refused = 0
    for _ in range(3000):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        if rng.random() < 0.2:
            changed = changed[: rng.randrange(len(changed))]
        try:
            head = read_header(io.BytesIO(changed))
        except NotReports:
            refused += 1
            continue
        assert (head.fingerprint, head.description) == (good.fingerprint, good.description)
    assert refused > 2500
    for junk in (os.urandom(500), b"", b"\x89", b"\0" * 100):
        with pytest.raises(NotReports):
            read_header(io.BytesIO(junk))
    huge = struct.pack("<8sIII16s16s", MAGIC, 1, 2**31, 2**31, b"", b"")
    with pytest.raises(NotReports, match="impossible"):
        read_header(io.BytesIO(huge))
    newer = struct.pack("<8sIII16s16s", MAGIC, 2, 2, 2, b"", b"")
    with pytest.raises(NotReports, match="version 2"):
        read_header(io.BytesIO(newer))


def test_a_collection_with_labels():
    fruit = CollectionSpec(randomizer=grr(categories=3, epsilon=1), labels=("fig", "kiwi", "Äpfel"))
    assert CollectionSpec.from_json(fruit.to_json()) == fruit
    assert fruit.fingerprint != fruit.randomizer.fingerprint
    turned = CollectionSpec(randomizer=fruit.randomizer, labels=fruit.labels[::-1])
    assert turned.fingerprint != fruit.fingerprint
    plain = CollectionSpec(randomizer=fruit.randomizer)
    assert plain.fingerprint == fruit.randomizer.fingerprint
    assert fruit.parse(["kiwi", "fig", "Äpfel"]).tolist() == [1, 0, 2]
    assert fruit.parse(["kiwi", "SECRET", ""], unknown="fig").tolist() == [1, 0, 0]
    assert fruit.parse([]).tolist() == []
    with pytest.raises(OutOfDomain) as error:
        fruit.parse(["kiwi", "SECRET"])
    assert "SECRET" not in str(error.value)
    with pytest.raises(InvalidArgument, match="unknown"):
        fruit.parse(["kiwi"], unknown="pear")
    for labels in (("a", "b"), ("a", "b", "b"), ("a", "b", 3)):
        with pytest.raises(InvalidArgument, match="labels"):
            CollectionSpec(randomizer=fruit.randomizer, labels=labels)
    for text in ("", "[]", "{", '{"labels": 3}', "[" * 5000):
        with pytest.raises(InvalidArgument):
            CollectionSpec.from_json(text)


def test_numbers_are_read_as_numbers():
    assert GRR.parse(["7", " 8 "]).tolist() == [7, 8]
    assert GRR.parse(["7", "8.5"]).tolist() == [7.0, 8.5]
    with pytest.raises(OutOfDomain) as error:
        GRR.parse(["7", "SECRET"])
    seen, link = "", error.value
    while link is not None:  # not even in what it came from
        seen += str(link)
        link = link.__context__
    assert "SECRET" not in seen
    aggregate = Aggregator(GRR.randomizer)
    assert aggregate.add(GRR.randomizer.randomize(GRR.parse(["7"]))).reports == 1
