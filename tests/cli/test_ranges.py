"""Ranges in release files, in the report, and answered from the artifact alone."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import discreet
from discreet.cli.main import main
from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.heat_map import heat
from discreet.report.drawing.line_chart import curves
from discreet.tables.range_release import ChargedRangeRelease

FILE = """
title = "Visits <2024>"
[table]
source = "rows.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
day = { kind = "date", lower = 2024-01-01, upper = 2024-02-29 }
age = { kind = "integer", lower = -5, upper = 20 }
pay = { kind = "real", lower = 0, upper = 100, granularity = 0.25 }
[account]
ledger = "sqlite:///budget.db"
name = "visits"
limit = { epsilon = 2000 }
[[statistic]]
name = "Days <b>"
kind = "ranges"
of = "day"
workload = "prefixes"
epsilon = 400
expected_rows = 600
"""
MORE = """
[[statistic]]
kind = "count"
epsilon = 300
[[statistic]]
name = "Pay"
kind = "ranges"
of = "pay"
bins = 16
where = [{ column = "age", at_least = 0 }]
epsilon = 300
[[statistic]]
kind = "ranges"
of = "age"
workload = [[-5, 0], [3, 20]]
epsilon = 400
"""
MANY = 600


def day(i):
    return f"2024-0{1 + i % 2}-{1 + i % 29:02}"


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "visits.toml"
    path.write_text(FILE + MORE)
    rows = [f"{i},{day(i)},{i % 26 - 5},{i % 100}" for i in range(MANY)]
    (tmp_path / "rows.csv").write_text("who,day,age,pay\n" + "\n".join(rows) + "\n")
    return path


def test_plan_shows_structures_and_errors_without_data(file):
    (file.parent / "rows.csv").unlink()
    done = run("plan", file)
    assert done.exit_code == 0, done.output
    assert "60 cells" in done.output
    assert "No private data" in done.output
    content = json.loads(run("plan", file, "--json").stdout)
    assert len(content["statistics"]) == 1
    days, pay, age = content["ranges"]
    assert (days["cells"], pay["cells"], age["cells"]) == (60, 16, 26)
    assert days["shown"] == ["1 cell", "6 cells", "30 cells", "60 cells"]
    assert (days["workload"], age["workload"]) == ("prefixes", "2 listed ranges")
    errors = [one["rmse"] for one in days["structures"]]
    assert errors == sorted(errors)
    assert days["share"] == pytest.approx(0.2)
    assert content["share"] == pytest.approx(0.7)


def test_an_accuracy_and_limits_in_a_file(file):
    stated = FILE.replace("epsilon = 400", "within = 40")
    file.write_text(stated)
    content = json.loads(run("plan", file, "--json").stdout)["ranges"][0]
    assert 39 < content["width"] <= 40
    twice = float(content["budget"].removeprefix("epsilon "))
    file.write_text(stated.replace("within = 40", "within = 40\nmax_rows_per_unit = 1"))
    content = json.loads(run("plan", file, "--json").stdout)["ranges"][0]
    assert float(content["budget"].removeprefix("epsilon ")) == pytest.approx(twice / 2, rel=0.01)
    assert "widest is within ±" in " ".join(run("plan", file).output.split())
    file.write_text(stated.replace("epsilon = 2000", "rho = 2000"))
    assert json.loads(run("plan", file, "--json").stdout)["ranges"][0]["budget"].startswith("rho")
    for wrong, words in {
        "within = 0": "within",
        'of = ["day", "age"]\nwithin = 40': "one column",
        "within = 40\nmax_rows_per_unit = 0": "max_rows_per_unit",
    }.items():
        text = stated if "of =" not in wrong else stated.replace('of = "day"\n', "")
        file.write_text(text.replace("within = 40", wrong))
        done = run("plan", file)
        assert done.exit_code == 2
        assert words in done.output


def test_release_writes_artifacts_that_answer_alone(file):
    """Two rows of a unit are allowed, so scales double; at these epsilons the noise is zero."""
    done = run("release", file)
    assert done.exit_code == 0, done.output
    for name in ("rows.csv", "budget.db"):
        (file.parent / name).unlink()
    text = (file.parent / "visits.ranges-1.json").read_text()
    days = discreet.RangeRelease.from_json(text)
    january = sum(day(i).startswith("2024-01") for i in range(MANY))
    assert days.answer("2024-01-01", "2024-01-31") == pytest.approx(january, abs=0.01)
    charged = ChargedRangeRelease.from_json(text)
    assert charged.title == "Days <b>"
    assert charged.receipt.account == "visits"
    summary = json.loads((file.parent / "visits.json").read_text())["ranges"]
    assert [one["file"] for one in summary] == [f"visits.ranges-{i}.json" for i in (1, 2, 3)]


def test_the_command_answers_ranges(file):
    assert run("release", file).exit_code == 0
    days, pay, age = (file.parent / f"visits.ranges-{i}.json" for i in (1, 2, 3))

    def answer(*arguments):
        done = run("ranges", *arguments, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["low"] <= found["value"] <= found["high"]
        return found["value"]

    exact = [i % 26 - 5 for i in range(MANY)]
    few = sum(a <= 0 for a in exact)
    assert answer(age, "-5", "0") == pytest.approx(few, abs=0.01)
    assert answer(age, "-", "0") == pytest.approx(few, abs=0.01)
    one = sum(day(i) == "2024-02-02" for i in range(MANY))
    assert answer(days, "2024-02-02") == pytest.approx(one, abs=0.01)
    assert answer(days) == pytest.approx(MANY, abs=0.01)
    first = [i % 100 for i in range(MANY) if exact[i] >= 0 and i % 100 < 26]
    assert answer(pay, "0", "26") == pytest.approx(len(first), abs=0.01)
    words = run("ranges", days, "2024-01-01", "2024-01-31").output
    assert words.startswith("2024-01-01 .. 2024-01-31: 3")
    assert "95% between" in words
    for wrong in ((age, "x"), (age, "30"), (pay, "1"), (days, "2024-13-01"), (file, "1")):
        done = run("ranges", *wrong)
        assert done.exit_code == 2, wrong
        assert "Traceback" not in done.output


def test_the_page_draws_the_ranges(file):
    assert run("release", file).exit_code == 0
    page = (file.parent / "visits.html").read_text()
    assert "Days &lt;b&gt;" in page
    assert "Days <b>" not in page
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg|http-equiv", "", page)
    drawn = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawn) == 1 + 2 * 3  # a count; a curve and the errors of each of the ranges
    for one in drawn:
        ET.fromstring(one)
    assert sum('fill="#ccc"' in one for one in drawn) == 3
    assert "2024-01-01" in drawn[1]
    assert "-5 – 0" in page  # a range that was listed


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ('workload = "prefixes"', 'workload = "most"'),
        ('of = "day"', 'of = "days"'),
        ('of = "day"', 'of = "pay"'),
        ("expected_rows = 600", "within = -3"),
        ("expected_rows = 600", "by = ['age']"),
        ("epsilon = 400\nexpected_rows", "expected_rows"),
    ],
)
def test_mistakes_are_named(file, changed, words):
    file.write_text(FILE.replace(changed, words))
    done = run("plan", file)
    assert done.exit_code == 2
    assert "discreet: " in done.output
    assert "Traceback" not in done.output


def test_a_file_of_ranges_alone(file):
    file.write_text(FILE)
    assert "Plan:" not in run("plan", file).output
    done = run("release", file, "--output", file.parent / "out")
    assert done.exit_code == 0, done.output
    assert "all of it: 600" in done.output
    rows = list(
        csv.DictReader(io.StringIO((file.parent / "out" / "visits.release.csv").read_text()))
    )
    assert len(rows) == 60
    found = {row["cell"]: float(row["value"]) for row in rows}
    assert found["2024-02-29"] == pytest.approx(
        sum(day(i) == "2024-02-29" for i in range(MANY)), abs=0.01
    )
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)
    again = run("release", file, "--output", file.parent / "out")
    assert again.exit_code == 2
    assert "costs again" in again.output


def test_bands_and_words_on_axes():
    drawn = curves(
        [ChartCurve(label="a", x=[0, 1, 2], y=[1, 2, 3])],
        x=ChartAxis(label="day", words=lambda tick: f"<{tick:g}>" if tick == int(tick) else ""),
        y=ChartAxis(label="n"),
        title="t",
        note="",
        band=ChartBand(x=[0, 1, 2], low=[0, 1, 2], high=[2, 3, 9]),
    )
    ET.fromstring(drawn)
    assert "&lt;1&gt;" in drawn
    assert "&lt;0.5&gt;" not in drawn
    (corners,) = re.findall(r'<polygon points="([^"]*)" fill="#ccc"', drawn)
    assert len(corners.split()) == 6
    assert ">8<" in drawn  # the axis reaches to the top of the band


GRID = """
[[statistic]]
name = "Day by age"
kind = "ranges"
of = ["day", "age"]
epsilon = 600
"""


def test_two_columns_make_a_grid_with_a_heat_map(file):
    file.write_text(FILE + GRID)
    done = run("plan", file)
    assert done.exit_code == 0, done.output
    assert "1560 cells" in done.output
    assert json.loads(run("plan", file, "--json").stdout)["ranges"][1]["shown"][0] == "one cell"
    done = run("release", file)
    assert done.exit_code == 0, done.output
    artifact = file.parent / "visits.ranges-2.json"
    asked = ("2024-01-01", "2024-01-31", "-5", "3")
    found = json.loads(run("ranges", artifact, *asked, "--json").stdout)
    january = sum(day(i).startswith("2024-01") and i % 26 <= 8 for i in range(MANY))
    assert found["value"] == pytest.approx(january, abs=0.01)
    assert found["ranges"] == [["2024-01-01", "2024-01-31"], ["-5", "3"]]
    assert run("ranges", artifact).output.startswith("all; all: 600")
    assert run("ranges", artifact, "2024-01-01").exit_code == 2
    page = (file.parent / "visits.html").read_text()
    drawn = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawn) == 3
    ET.fromstring(drawn[2])
    assert "rgb(0,0,0)" in drawn[2]
    assert "all; all" in page
    rows = list(csv.DictReader(io.StringIO((file.parent / "visits.release.csv").read_text())))
    cells = {row["cell"]: float(row["value"]) for row in rows if row["statistic"] == "Day by age"}
    assert len(cells) == 1560
    assert sum(cells.values()) == pytest.approx(MANY)
    first = sum(day(i) == "2024-01-03" and i % 26 - 5 == -3 for i in range(MANY))
    assert cells["2024-01-03, -3"] == pytest.approx(first, abs=0.01)


def test_shades_tell_more_from_less():
    drawn = heat(
        np.array([[0.0, 1.0], [-3.0, 90.0]]), across="ab", down=["<x>", "y"], title="t", note="n"
    )
    ET.fromstring(drawn)
    assert "&lt;x&gt;" in drawn
    boxes = re.findall(r'height="36.0" fill="rgb\((\d+)', drawn)
    assert boxes == ["0"]  # next to nothing, and less than nothing, are white
    assert ">-3<" in drawn


def test_results_never_replace_the_data(file):
    file.with_name("rows.csv").rename(file.with_suffix(".release.csv"))
    file.write_text(FILE.replace("rows.csv", "visits.release.csv"))
    before = file.with_suffix(".release.csv").read_text()
    done = run("release", file, "--overwrite")
    assert done.exit_code == 2
    assert "would be overwritten" in done.output
    assert file.with_suffix(".release.csv").read_text() == before
    assert not (file.parent / "budget.db").exists()
