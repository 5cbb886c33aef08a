"""The commands of the local model, from a description to an estimate."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from discreet.cli import _local_commands as kinds
from discreet.cli.main import main
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.report_file import ReportWriter, chunks, read_header
from discreet.local.collection.spec import CollectionSpec
from discreet.noise.random_source import seeded_rng

SECRET = "CANARY-3370"
FRUIT = ["fig", "kiwi", "pear", "other"]


def run(*arguments, ok=True, stdin=None):
    done = CliRunner().invoke(main, ["local", *map(str, arguments)], input=stdin)
    assert done.exit_code == (0 if ok else 2), done.output
    assert SECRET not in done.output
    if not ok:
        assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "collection.json"
    path.write_text(run("create", "--randomizer", "oue", "--categories", 20, "--epsilon", 3).stdout)
    return path


@pytest.fixture
def fruit(tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(FRUIT))
    path = tmp_path / "fruit.json"
    labels = tmp_path / "labels.txt"
    path.write_text(
        run("create", "--randomizer", "grr", "--categories-file", labels, "--epsilon", 4).stdout
    )
    return path


def made(path, folder, many=4000, name="r.dlr"):
    """Reports of a fixed seed, so that estimates are the same each time."""
    held = CollectionSpec.from_json(path.read_text())
    codes = np.arange(many) % 5
    with ReportWriter(folder / name, held) as writer:
        writer.write(held.randomizer.randomize(codes, rng=seeded_rng(many)))
    return folder / name


def counted(collection, *files):
    held = CollectionSpec.from_json(collection.read_text())
    total = Aggregator(held.randomizer)
    for path in files:
        with path.open("rb") as stream:
            for rows in chunks(stream, read_header(stream)):
                total.add(rows)
    return total


@pytest.mark.parametrize("kind", sorted(kinds.RANDOMIZERS))
def test_every_kind_from_description_to_estimate(kind, tmp_path):
    needed = kinds.RANDOMIZERS[kind][1]
    options = {"categories": 8, "lower": 0, "upper": 10, "length": 3, "cells": 16}
    given = [part for name in needed for part in (f"--{name}", options[name])]
    told = run("create", "--randomizer", kind, "--epsilon", 2, *given)
    assert "bytes and costs its client epsilon 2" in told.stderr
    path, target = tmp_path / "c.json", tmp_path / "r.dlr"
    path.write_text(told.stdout)
    run("randomize", path, "-o", target, stdin="".join(f"{i % 8}\n" for i in range(300)))
    content = json.loads(run("aggregate", path, target, "--json").stdout)
    run("aggregate", path, target, "--csv", tmp_path / "out.csv")
    assert (content["reports"], content["refused"]) == (300, 0)
    found, rows = counted(path, target).estimate(), content["estimate"]
    match kind:
        case "mean":
            assert [(row["mean"], row["std"]) for row in rows] == [(found.value, found.std)]
        case "ranges":
            assert [row["count"] for row in rows] == found.cells.tolist()
            assert [row["cell"] for row in rows] == [str(i) for i in range(11)]
        case "words":
            assert [row["text"] for row in rows] == list(found.texts)
        case _:
            assert [row["share"] for row in rows] == found.shares.tolist()
    assert all(row["low"] <= row["high"] for row in rows if "low" in row)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == len(rows) + 1


def test_ranges_are_answered_from_what_was_written(tmp_path, collection):
    path, out = tmp_path / "c.json", tmp_path / "ranges.json"
    bounds = ("--lower", 0, "--upper", 99)
    path.write_text(run("create", "--randomizer", "ranges", "--epsilon", 2, *bounds).stdout)
    run(
        "randomize",
        path,
        "-o",
        tmp_path / "r.dlr",
        stdin="".join(f"{i % 50}\n" for i in range(800)),
    )
    run("aggregate", path, tmp_path / "r.dlr", "--ranges", out)
    found = counted(path, tmp_path / "r.dlr").estimate()
    done = CliRunner().invoke(main, ["ranges", str(out), "10", "49", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["value"] == pytest.approx(found.answer(10, 49))
    target = made(collection, tmp_path, 10, "o.dlr")
    assert "--ranges" in run("aggregate", collection, target, "--ranges", out, ok=False).stderr


def test_texts_are_collected_as_they_are(tmp_path):
    """Numbers among them stay texts."""
    path = tmp_path / "c.json"
    path.write_text(run("create", "--randomizer", "words", "--epsilon", 6, "--length", 2).stdout)
    text = "".join(f"{['7', 'ab'][i % 2]}\n" for i in range(20_000))
    run("randomize", path, "-o", tmp_path / "r.dlr", stdin=text)
    done = run("aggregate", path, tmp_path / "r.dlr", "--json")
    assert {row["text"] for row in json.loads(done.stdout)["estimate"]} == {"7", "ab"}


def test_what_a_spreadsheet_would_run_is_disarmed(tmp_path):
    """The texts of a collection of words are those of its clients."""
    (tmp_path / "labels.txt").write_text("=1+1\nplain")
    path = tmp_path / "c.json"
    given = ("--randomizer", "grr", "--categories-file", tmp_path / "labels.txt", "--epsilon", 4)
    path.write_text(run("create", *given).stdout)
    run("randomize", path, "-o", tmp_path / "r.dlr", stdin="plain\n" * 20)
    run("aggregate", path, tmp_path / "r.dlr", "--csv", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["category"] for row in rows] == ["'=1+1", "plain"]


def test_labels_are_read_and_shown(fruit, tmp_path):
    values = "".join(f"{FRUIT[i % 2]}\n" for i in range(500))
    run("randomize", fruit, "-o", tmp_path / "r.dlr", stdin=values)
    done = run("aggregate", fruit, tmp_path / "r.dlr", "--csv", tmp_path / "out.csv")
    assert "500 reports counted, 0 refused." in done.stdout
    assert "r.dlr: 500 new, 0 refused" in done.stderr
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["category"] for row in rows] == FRUIT
    shares = counted(fruit, tmp_path / "r.dlr").estimate().shares
    assert [float(row["share"]) for row in rows] == shares.tolist()
    assert done.stdout.index("fig") < done.stdout.index("pear")  # the largest first


def test_brackets_are_a_part_of_a_label(tmp_path):
    names = ["[other]", "a [/b]", ":warning:"]
    (tmp_path / "labels.txt").write_text("\n".join(names))
    path = tmp_path / "c.json"
    given = ("--randomizer", "grr", "--categories-file", tmp_path / "labels.txt", "--epsilon", 4)
    path.write_text(run("create", *given).stdout)
    run("randomize", path, "-o", tmp_path / "r.dlr", stdin="[other]\n" * 20)
    shown = run("aggregate", path, tmp_path / "r.dlr").stdout
    assert all(name in shown for name in names)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", None])
def test_values_from_a_column(fruit, tmp_path, suffix):
    frame = pl.DataFrame({"id": range(6), "what, if any": ["fig", "kiwi"] * 3})
    path = tmp_path / f"values{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix:
        frame.write_csv(path)
    named = ("--column", "what, if any", "-o", tmp_path / "r.dlr")
    if suffix:
        run("randomize", fruit, path, *named)
    else:
        run("randomize", fruit, *named, stdin=frame.write_csv())
    assert counted(fruit, tmp_path / "r.dlr").reports == 6
    wrong = ("--column", "where", "-o", tmp_path / "x.dlr")
    done = run(
        "randomize", fruit, *([path] if suffix else []), *wrong, ok=False, stdin="a,b\n1,2\n"
    )
    assert "column 'where' is not in" in done.stderr


def test_no_value_is_ever_quoted(fruit, collection, tmp_path):
    target = tmp_path / "x.dlr"
    for path, text in (
        (fruit, f"fig\n{SECRET}\n"),
        (fruit, "fig\n\n"),
        (collection, f"1\n{SECRET}\n"),
        (collection, "1\n20\n"),
        (collection, "1\n2.5\n"),
        (collection, "nan\n"),
    ):
        done = run("randomize", path, "-o", target, ok=False, stdin=text)
        assert done.stderr.startswith("discreet: ")
        target.unlink(missing_ok=True)
    run("randomize", fruit, "-o", target, "--unknown", "other", stdin=f"fig\n{SECRET}\n")
    assert counted(fruit, target).reports == 2
    done = run("randomize", fruit, "-o", target, "--unknown", "apple", ok=False, stdin="fig\n")
    assert "unknown must be one of the labels" in done.stderr
    short = tmp_path / "short.txt"
    short.write_text(f"id,fruit\n{SECRET}\n")
    run("randomize", fruit, short, "--column", "fruit", "-o", target, ok=False)
    short.write_bytes(b"\xff\xfe" + SECRET.encode())
    run("randomize", fruit, short, "-o", target, ok=False)


def test_values_are_encoded_all_or_none(collection, tmp_path, monkeypatch):
    """Else those before the error would be sent twice when it is mended, at twice the cost."""
    monkeypatch.setattr("discreet.cli._local_commands._VALUES", 10)
    target = made(collection, tmp_path, 50)
    before = target.read_bytes()
    run("randomize", collection, "-o", target, ok=False, stdin="1\n" * 95 + "99\n")
    assert target.read_bytes() == before
    run("randomize", collection, "-o", target, stdin="1\n" * 95)
    assert counted(collection, target).reports == 145


def test_a_count_goes_on_where_it_stopped(collection, tmp_path):
    first, second = (made(collection, tmp_path, many, f"{many}.dlr") for many in (1000, 300))
    state = tmp_path / "s.agg"
    run("aggregate", collection, first, "--state", state)
    done = run("aggregate", collection, first, second, "--state", state, "--json")
    content = json.loads(done.stdout)
    assert [one["reports"] for one in content["files"]] == [0, 300]
    assert content["reports"] == 1300
    expected = counted(collection, first, second).estimate().shares.tolist()
    assert [row["share"] for row in content["estimate"]] == expected
    again = json.loads(run("estimate", state, "--json").stdout)
    assert again["estimate"] == content["estimate"]
    other = tmp_path / "t.agg"
    third = made(collection, tmp_path, 50, "50.dlr")
    run("aggregate", collection, third, "--state", other)
    both = json.loads(run("estimate", state, other, "--json").stdout)
    assert both["reports"] == 1350
    other.write_bytes(state.read_bytes())
    assert "same file" in run("estimate", state, other, ok=False).stderr


def test_foreign_files_are_told(collection, fruit, tmp_path):
    good, bad = made(collection, tmp_path, 100), tmp_path / "foreign.dlr"
    run("randomize", fruit, "-o", bad, stdin="fig\n" * 7)
    junk = tmp_path / "junk.dlr"
    junk.write_bytes(b"nothing of that kind")
    done = run("aggregate", collection, good, bad, junk)
    assert "100 reports counted, 7 refused." in done.stdout
    assert "another collection" in done.stderr
    assert "does not begin as a file of reports does" in done.stderr
    assert "0 reports counted, 7 refused." in run("aggregate", collection, bad, ok=False).stdout
    run("aggregate", collection, junk, ok=False)


def test_what_cannot_be_written_is_told(collection, tmp_path):
    where = tmp_path / "nowhere" / "out.csv"
    done = run("aggregate", collection, made(collection, tmp_path, 9), "--csv", where, ok=False)
    assert "cannot be written" in done.stderr


def test_nothing_but_noise_if_nothing_was_sent(collection, tmp_path):
    done = run("aggregate", collection, made(collection, tmp_path, 0))
    assert done.stdout == "0 reports counted, 0 refused.\n"


def test_what_is_wrong_with_a_description_is_said(tmp_path):
    for arguments, told in (
        (("--randomizer", "oue"), "--categories"),
        (("--randomizer", "mean", "--categories", 3), "--lower and --upper"),
        (("--randomizer", "mean", "--lower", 2, "--upper", 1), "upper"),
        (("--randomizer", "oue", "--categories", 1), "categories"),
        (("--randomizer", "ranges", "--lower", 0, "--upper", 1.5), "whole numbers"),
    ):
        assert told in run("create", "--epsilon", 1, *arguments, ok=False).stderr
    broken = tmp_path / "c.json"
    for text in ("{", "[1]", '{"version": 9, "kind": "oue", "epsilon": "1/1"}', "\xff"):
        broken.write_text(text, encoding="latin-1")
        run("aggregate", broken, broken, ok=False)


def test_pipes(collection):
    """As a shell runs it: reports are bytes on standard output and standard input."""
    text = "".join(f"{i % 20}\n" for i in range(1000)).encode()
    start = "from discreet.cli.main import main; main()"
    command = [sys.executable, "-c", start, "local"]
    sent = subprocess.run(
        [*command, "randomize", str(collection)], input=text, capture_output=True, check=True
    )
    done = subprocess.run(
        [*command, "aggregate", str(collection), "--json"],
        input=sent.stdout,
        capture_output=True,
        check=True,
    )
    content = json.loads(done.stdout)
    assert (content["reports"], content["refused"]) == (1000, 0)
