"""Tables, synthetic rows and reconciled releases from the files alone."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import ReconciledRelease
from discreet.cli.main import main
from tests.marginals.test_release import opened


def run(*given, code=0):
    found = CliRunner().invoke(main, [str(one) for one in given])
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("released"), opened()
    many = table.marginals([["site", "sex"], ["ill"]], rho=0.05)
    (folder / "many.json").write_text(many.to_json())
    for name, by in {"total": None, "sites": "site", "cells": ["site", "sex"]}.items():
        (folder / f"{name}.json").write_text(table.count(by=by, epsilon=1).to_json())
    return folder, many


def test_a_table_is_that_of_the_release(files):
    folder, many = files
    rows = json.loads(run("tables", folder / "many.json", "--by", "site,sex", "--json"))
    assert [row["value"] for row in rows] == list(many.table(["site", "sex"]).value)
    text = run("tables", folder / "many.json", "--by", "site")
    assert "count by site" in text
    assert "2 tables that agree" in run("tables", folder / "many.json")
    listed = json.loads(run("tables", folder / "many.json", "--json"))
    assert listed["tables"] == [["site", "sex"], ["ill"]]


def test_printed_tables_say_what_was_done(files):
    folder, many = files
    text = run("tables", folder / "many.json", "--by", "site,sex", "--nonnegative")
    assert "biased, error not known" in text
    whole = json.loads(
        run("tables", folder / "many.json", "--by", "site,sex", "--integers", "--json")
    )
    assert sum(row["value"] for row in whole) == many.nonnegative(integers=True).total
    assert all(row["value"] == int(row["value"]) >= 0 for row in whole)
    assert "whole numbers" in run("tables", folder / "many.json", "--integers")


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_rows_are_written(files, tmp_path, end):
    folder, many = files
    out = tmp_path / f"rows.{end}"
    text = run("synthesize", folder / "many.json", "--out", out, "--size", 50, "--seed", 3)
    assert "Not promised" in text
    assert "within its bound" in text
    read = pd.read_csv(out) if end == "csv" else pd.read_parquet(out)
    assert read.to_dict("list") == many.synthesize(50, seed=3).to_dict()
    again = run("synthesize", folder / "many.json", "--out", out, code=2)
    assert "exists" in again


def test_rows_tell_their_seed(files, tmp_path):
    folder, many = files
    out = tmp_path / "rows.csv"
    told = json.loads(run("synthesize", folder / "many.json", "--out", out, "--json"))
    assert told["rows"] == len(many.synthesize(seed=told["seed"]))
    bad = run("synthesize", folder / "many.json", "--out", tmp_path / "rows.txt", code=2)
    assert ".csv or .parquet" in bad


def test_files_are_reconciled(files, tmp_path):
    folder, _ = files
    names = [folder / f"{name}.json" for name in ("total", "sites", "cells", "many")]
    text = run("reconcile", *names, "--out", tmp_path / "both.json")
    assert "4 releases reconciled" in text
    both = ReconciledRelease.from_json((tmp_path / "both.json").read_text())
    assert both.guarantee.epsilon(1e-6) > 3
    shown = json.loads(run("tables", tmp_path / "both.json", "--by", "site", "--json"))
    assert [row["value"] for row in shown] == list(both.table(["site"]).value)
    assert json.loads(run("reconcile", *names, "--json"))[0]["table"] == "all rows"


def test_what_is_no_release_is_refused_by_name(files, tmp_path):
    folder, _ = files
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert "other.json" in run("tables", other, code=2)
    assert "other.json" in run("reconcile", folder / "total.json", other, code=2)
    assert "no table of" in run("tables", folder / "many.json", "--by", "site,ill", code=2)
