"""The exact check: right numbers, for its owner alone, and in nothing that is written."""

import copy
import datetime as dt
import io
import json
import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner

import discreet
from discreet.cli.main import main
from discreet.client.remote_table import RemoteTable
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.execute import collect
from discreet.data.program import compile_program, count
from discreet.tables.check import MARK
from discreet.tables.quality import quality_queries

pl = pytest.importorskip("polars")

LINES = [
    b"who,age,score,state,day,ok,note",
    b"a,30,1.5,north,2024-01-05,yes,x",  # 2
    b'a,-3,"0.25"," south",2024-02-30,1.0,',  # 3: a space too many, no such day
    b"b,900,99,south,2025-01-01,maybe,y",  # 4: above, above, a day out of range
    b"b, 40 ,abc,,,,",  # 5
    b"b,NA,,west,unknown,F,z",  # 6: NA is declared for ages, and unknown for days
    b"",  # 7: no record
    b'c,1,2,"north,1,1,1,1',  # 8: an open quote
    b"c,1,2,3",  # 9: too few fields
    b"c,1,2,\xff,2024-01-01,1,1",  # 10: no UTF-8
    b",12abc,-1e999,\x1b[2J,2024-12-31,0,w",  # 11: nobody's; a text that clears a screen
    b'c,120,-0.2,north,1999-01-01,TRUE,"a ""b"""',  # 12
]
COLUMNS = {
    "age": discreet.integer(0, 120, missing_values=["NA"]),
    "score": discreet.real(0, 10, granularity=0.25),
    "state": discreet.category(["north", "south"]),
    "day": discreet.date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), missing_values=["unknown"]),
    "ok": discreet.boolean(required=True),
    "note": discreet.text(),
}
COUNTS = {
    "age": "inside 3, below 1, above 1, missing 1, misfit 1",
    "score": "inside 2, below 2, above 1, missing 1, misfit 1",
    "state": "inside 3, missing 1, misfit 3",
    "day": "inside 2, missing 2, misfit 3",
    "ok": "inside 5, missing 1, misfit 1",
    "note": "inside 5, missing 2, misfit 0",
}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "people.csv"
    found.write_bytes(b"\n".join(LINES) + b"\n")
    return found


def opened(source, **more):
    return discreet.table(source, columns=COLUMNS, privacy_unit="who", max_rows_per_unit=2, **more)


def shown(found, capsys):
    capsys.readouterr()
    found.show()
    return capsys.readouterr().out


def columns_of(text):
    """The counts of each column, by its page."""
    pages = [page.splitlines() for page in text.strip().split("\n\n")]
    assert all(page[0] == MARK == "PRIVATE: exact, not a release" for page in pages)
    return {
        page[1].split()[1].rstrip(":"): page[2].strip()
        for page in pages
        if page[1].strip().startswith("column ")
    }


def test_a_hostile_csv_is_counted_exactly(path, capsys):
    text = shown(opened(path).check(private=True), capsys)
    assert columns_of(text) == COUNTS
    lines = [line.strip() for line in text.splitlines()]
    for line in (
        "rows: 10",
        "smallest -3, largest 900",
        "smallest -inf, largest 99",
        "smallest 1999-01-01, largest 2025-01-01",
        "does not fit: '12abc', once, first in line 11",
        "does not fit: 'abc', once, first in line 5",
        "does not fit: ' south', once, first in line 3",
        "does not fit: '\\x1b[2J', once, first in line 11",
        "does not fit: '2024-02-30', once, first in line 3",
        "does not fit: 'maybe', once, first in line 4",
        "units: 3",
        "rows without a unit: 4",
        "units with 1 row: 1",
        "units with 2 rows: 1",
        "units with 3 rows: 1",
        "a limit of 2 per unit leaves out 1 of 6 rows",
    ):
        assert line in lines, line
    assert "malformed lines: 3, the first: 8, 9, 10" in text
    assert "\x1b" not in text


def test_parquet_and_frames_are_counted_like_the_csv(tmp_path, path, capsys):
    well = [line for i, line in enumerate(LINES, 1) if i not in (7, 8, 9, 10)]
    rows = pl.read_csv(io.BytesIO(b"\n".join(well)), infer_schema=False)
    rows.write_parquet(tmp_path / "people.parquet")
    for source in (tmp_path / "people.parquet", rows):
        text = shown(opened(source).check(private=True), capsys)
        assert columns_of(text) == COUNTS
        assert "rows without a unit: 1" in text
        assert "line" not in text


def test_typed_values_are_what_releases_take_them_for(tmp_path, capsys):
    """The same classes as the exact integers behind `quality`, on files and frames."""
    berlin = dt.timezone(dt.timedelta(hours=2))
    rows = pl.DataFrame(
        {
            "age": [5, -1, None, 2**60, -9, 7],
            "score": [0.1, float("nan"), float("inf"), None, 3.0, -0.2],
            "state": [1, 2, None, 9, 1, 1],
            "day": [dt.datetime(2024, 1, 1, 1, tzinfo=berlin), None]
            + [dt.datetime(2024, 6, 1, 12, tzinfo=berlin)] * 4,
            "ok": [0, 1, 2, None, 1, 1],
        }
    )
    columns = {
        "age": discreet.integer(0, 120, missing_values=[-9]),
        "score": discreet.real(0, 2, granularity=0.25),
        "state": discreet.category([1, 2]),
        "day": discreet.date(dt.date(2024, 1, 1), dt.date(2024, 12, 31)),
        "ok": discreet.boolean(),
    }
    rows.write_parquet(tmp_path / "typed.parquet")
    for source in (tmp_path / "typed.parquet", rows):
        table = discreet.table(source, columns=columns)
        found = columns_of(shown(table.check(private=True), capsys))
        assert found == {
            "age": "inside 2, below 1, above 1, missing 2, misfit 0",
            "score": "inside 1, below 1, above 2, missing 2, misfit 0",
            "state": "inside 4, missing 1, misfit 1",
            "day": "inside 4, missing 1, misfit 1",
            "ok": "inside 4, missing 1, misfit 1",
        }
        _is_that_of_releases(table, found)


def test_each_text_is_what_releases_take_it_for(path, capsys):
    table = opened(path)
    found = columns_of(shown(table.check(private=True), capsys))
    found.pop("note")
    _is_that_of_releases(table, found, malformed=3)


def _is_that_of_releases(table, found, malformed=0):
    spec, queries = quality_queries(table.spec, None)
    for name, query in zip(found, queries, strict=True):
        schema = {name: spec.schema[name]}
        program = compile_program(schema=schema, aggregates={"n": count()}, by=query.by)
        exact = collect(program, source=table._source, key=0)
        releases = dict(zip([key for (key,) in program.labels()], exact.columns["n"], strict=True))
        mine = {one.split()[0]: int(one.split()[1]) for one in found[name].split(", ")}
        if "listed" in releases:
            assert releases["listed"] == mine["inside"]
            assert releases["not listed"] == mine["misfit"]
            assert releases["unknown"] == mine["missing"] + malformed
            continue
        assert releases["inside"] == mine["inside"]
        assert releases["unknown"] == mine["missing"] + mine["misfit"] + malformed
        assert releases.get("below", 0) == mine.get("below", 0)
        assert releases.get("above", 0) == mine.get("above", 0)


def test_only_who_says_private_is_told_and_only_by_show(path, capsys):
    table = opened(path)
    for given in ({}, {"private": False}, {"private": 1}):
        with pytest.raises(InvalidArgument, match="owner of the data.*private=True"):
            table.check(**given)
    found = table.check(private=True)
    assert repr(found) == str(found) == f"{found}" == "Check(private)"
    assert [name for name in dir(found) if name[0] != "_"] == ["show"]
    for keep in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(Unsupported, match="private and exact"):
            keep(found)
    with pytest.raises(TypeError):
        json.dumps(found)
    assert capsys.readouterr() == ("", "")
    assert not hasattr(RemoteTable, "check")


def test_no_server_offers_it():
    files = list(Path(discreet.__file__).with_name("server").rglob("*.py"))
    assert len(files) > 10
    assert not [one for one in files if "tables.check" in one.read_text()]
    assert not [one for one in files if ".check(private" in one.read_text()]


def test_joined_tables_are_refused(path):
    other = discreet.table(
        pl.DataFrame({"who": ["a"], "town": ["x"]}),
        columns={"town": discreet.category(["x"])},
        privacy_unit="who",
        max_rows_per_unit=1,
    )
    with pytest.raises(Unsupported, match="before they are joined"):
        opened(path).join_by_unit(other, columns=["town"]).check(private=True)


SECRETS = ("CANARY-WORD", "731655901337", "CANARY-WHO")
FILE = """
title = "Canary"
[table]
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
x = { kind = "integer", lower = 0, upper = 100 }
k = { kind = "category", categories = ["a", "b"] }
[account]
ledger = "sqlite:///budget.db"
name = "canary"
limit = { epsilon = 1 }
[[statistic]]
kind = "mean"
of = "x"
by = ["k"]
epsilon = 0.2
expected_rows = 10
"""


def test_what_it_shows_is_in_no_artifact(tmp_path, caplog):
    """Checked, then released: neither the check nor a release writes a planted value anywhere."""
    rows = "who,x,k\nCANARY-WHO,731655901337,CANARY-WORD\nother,5,b\nCANARY-WHO,CANARY-WORD,a\n"
    (tmp_path / "people.csv").write_text(rows)
    (tmp_path / "canary.toml").write_text(FILE)
    given = set(tmp_path.rglob("*"))
    caplog.set_level(0)
    words = ["check", str(tmp_path / "people.csv"), str(tmp_path / "canary.toml")]
    checked = CliRunner().invoke(main, [*words, "--private-output"])
    assert checked.exit_code == 0
    assert "CANARY-WORD" in checked.stdout
    assert "731655901337" in checked.stdout  # it would be found
    assert set(tmp_path.rglob("*")) == given  # and it wrote nothing, not even a ledger
    said = CliRunner().invoke(main, ["release", str(tmp_path / "canary.toml")])
    assert said.exit_code == 0, said.output
    written = [one for one in set(tmp_path.rglob("*")) - given if one.is_file()]
    assert {".json", ".csv", ".html", ".db"} <= {one.suffix for one in written}
    left = [one.read_bytes() for one in written]
    left += [said.output.encode(), caplog.text.encode(), checked.stderr.encode()]
    for secret in SECRETS:
        assert not any(secret.encode() in one for one in left)


def test_the_command_refuses_what_is_no_terminal(path, tmp_path, monkeypatch):
    schema = tmp_path / "schema.toml"
    schema.write_text('[columns]\nAges = { kind = "integer", lower = 0, upper = 9 }\n')
    words = ["check", str(path), str(schema)]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "not a terminal" in refused.stderr
    assert not refused.stdout
    told = CliRunner().invoke(main, [*words, "--private-output"])
    assert told.exit_code == 0
    assert "column Ages is not in the source; near: 'age'" in told.stdout
    from discreet.cli import check

    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", screen)
    assert check.run(str(path), schema, private_output=False) == 0
    assert MARK in screen.getvalue()
