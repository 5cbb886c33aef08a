"""A discovered key is somebody's words: shown, it is one row, and in a CSV one cell."""

from __future__ import annotations

import csv
import io

import polars as pl

import discreet
from discreet.core.tabular import csv_text

KEYS = ["=cmd()", "\x1b[31mred", "a\u202eb", "a\nall of them: 99", "\rcr", "a,b", 'a"b', "\ttab"]


def _found():
    frame = pl.DataFrame({"k": KEYS * 60, "who": range(60 * len(KEYS))})
    account = discreet.Ledger("memory://").account("a", limit=discreet.approx_dp(100, 0.1))
    table = discreet.table(
        frame,
        columns={"k": discreet.text()},
        privacy_unit="who",
        max_rows_per_unit=1,
        max_groups_per_unit=1,
        account=account,
    )
    return table.discover_keys("k", epsilon=50, delta=1e-6)


def test_a_key_neither_breaks_a_line_nor_steers_a_terminal():
    found = _found()
    assert {key for (key,) in found.keys} == set(KEYS)
    said = str(found)
    assert len(said.splitlines()) == 1 + len(KEYS)
    assert all(one.isprintable() for one in said.split("\n"))
    assert r"a\nall of them: 99: 60" in said
    assert "\x1b" not in found.to_html()


def test_a_key_is_one_cell_of_a_csv():
    read = list(csv.reader(io.StringIO(_found().to_csv(), newline="")))
    assert {row[0] for row in read[1:]} == set(KEYS)
    assert {len(row) for row in read} == {5}


def test_lines_of_a_csv_end_in_lf_whatever_is_in_them():
    assert csv_text([["a", "b"], ["\rc", 1], ["d\r\n", None]]) == 'a,b\n"\rc",1\n"d\r\n",\n'
