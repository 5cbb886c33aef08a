"""From a CSV of a panel to what it leaks: both layouts, all errors, and what may be published."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import discreet
from discreet.audit import series
from discreet.audit.series._design import savings
from discreet.cli.main import main
from discreet.noise.random_source import seeded_rng
from discreet.report.leakage_report import savings as savings_picture

MODEL = series.VAR(lags=np.diag([0.3, 0.6, 0.9]), noise=0.8 * np.eye(3) + 0.2)
PANEL = MODEL.simulate(times=40, rng=seeded_rng(1))[0].round(3)
NAMES = ("Ann", "<b>Bob</b>", "=Carl")
POINTS = re.compile(r"<polyline points=\"([^\"]+)\"")
ASK = ("--bounds", "-4", "4", "--noise", "1", "--released", "t1,t2,t9")


def text(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def wide(panel=PANEL, names=NAMES):
    head = ("who", *(f"t{t}" for t in range(np.shape(panel)[1])))
    return text([head, *((name, *row) for name, row in zip(names, panel, strict=True))])


def run(folder, content, *options):
    path = folder / "panel.csv"
    path.write_text(content, encoding="utf-8")
    return CliRunner().invoke(main, ["series", str(path), *map(str, options)])


def told(folder, content, *options):
    result = run(folder, content, *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_command_says_what_the_library_says(tmp_path):
    found = told(tmp_path, wide(), *ASK)
    expected = series.report(PANEL, bounds=(-4, 4), std=1.0, released=[1, 2, 9])
    assert [row["leaks"] for row in found["leaks"]] == [one.epsilon for one in expected.people]
    assert found["leaks"][0]["person"] == NAMES[expected.people[0].person]
    assert found["leaks"][0]["time"] == f"t{expected.people[0].time}"
    assert [row["noise"] for row in found["noise"]] == [
        "as it is",
        "equal",
        "independent",
        "correlated",
    ]
    assert found["private"] is True
    assert "Not for publication" in found["publication"]
    assert found["stress"]


def test_one_value_a_line_is_the_same_panel(tmp_path):
    rows = [(NAMES[i], f"{t}", PANEL[i, t]) for t in range(40) for i in range(3)]
    np.random.default_rng(1).shuffle(rows)
    long = text([("who", "when", "what"), *rows])
    named = ("--person", "who", "--time", "when", "--value", "what")
    ask = (*ASK[:-1], "1,2,9")
    found = told(tmp_path, long, *ask, *named)
    expected = told(tmp_path, wide(), *ASK)
    assert [row["leaks"] for row in found["leaks"]] == pytest.approx(
        [row["leaks"] for row in expected["leaks"]]
    )
    assert found["times"] == [str(t) for t in range(40)]  # as numbers, not as text


def test_the_promise_of_each_mean_gives_its_noise(tmp_path):
    found = told(tmp_path, wide(), "--bounds", -4, 4, "--promise", 1, "--released", "t1,t2")
    assert found["leaks"][0]["promised"] == pytest.approx(1, rel=1e-6)
    assert found["leaks"][0]["leaks"] > 1


def test_compressed_files_and_byte_order_marks(tmp_path):
    path = tmp_path / "panel.csv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + wide()).encode()))
    result = CliRunner().invoke(main, ["series", str(path), *ASK])
    assert result.exit_code == 0, result.output
    assert "Ann" in result.output


def test_the_page_is_whole_and_safe(tmp_path):
    page, table = tmp_path / "page.html", tmp_path / "people.csv"
    result = run(tmp_path, wide(), *ASK, "--html", page, "--csv", table)
    assert result.exit_code == 0, result.output
    assert "Not for publication" in result.output
    html = page.read_text(encoding="utf-8")
    assert "Not for publication" in html
    assert "<b>Bob</b>" not in html
    assert "&lt;b&gt;Bob&lt;/b&gt;" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    pictures = html.split("<svg ")[1:]
    assert len(pictures) == 3
    for picture in pictures:
        ET.fromstring("<svg " + picture.split("</svg>")[0] + "</svg>")
    lines = csv.DictReader(io.StringIO(table.read_text(encoding="utf-8")))
    assert {line["person"] for line in lines} == {"Ann", "<b>Bob</b>", "'=Carl"}


def test_a_private_fit_may_be_published_and_names_nobody(tmp_path):
    alike = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
    panel = alike.simulate(people=600, times=8, rng=seeded_rng(2)).round(3)
    names = [f"Secret{i}" for i in range(600)]
    ask = ("--bounds", -6, 6, "--noise", 0.05, "--epsilon", 6, "--spread", 2)
    page = tmp_path / "page.html"
    result = run(tmp_path, wide(panel, names), *ask, "--html", page, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["private"] is False
    assert found["clipped"] is None
    assert "may be published" in found["publication"]
    assert "epsilon 6, if one person's whole row is replaced" in found["publication"]
    assert "Secret" not in result.stdout + page.read_text(encoding="utf-8")
    assert len(found["leaks"]) == 1
    assert len(found["plausible"]) >= 10
    # What was written can be read back as a public model.
    model = tmp_path / "model.json"
    model.write_text(result.stdout, encoding="utf-8")
    again = told(tmp_path, wide(panel, names), "--bounds", -6, 6, "--noise", 0.05, "--model", model)
    assert again["leaks"] == found["leaks"]
    assert again["origin"] == "given"


def test_a_private_fit_is_charged(tmp_path):
    relation = discreet.NeighboringRelation.REPLACE_ONE
    url = f"sqlite:///{tmp_path}/budget.db"
    with discreet.Ledger(url) as ledger:
        ledger.account("panel", limit=discreet.pure_dp(5, relation=relation))
    alike = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
    panel = alike.simulate(people=600, times=8, rng=seeded_rng(2)).round(3)
    content = wide(panel, range(600))
    ask = ("--bounds", -6, 6, "--noise", 0.05, "--epsilon", 4, "--spread", 2)
    charged = (*ask, "--ledger", url, "--account", "panel")
    for wrong in (("--target", -1), ("--released", "t99"), ("--delta", 2)):  # nothing is spent
        assert run(tmp_path, content, *charged, *wrong).exit_code == 2
    assert run(tmp_path, content, *charged).exit_code == 0
    refused = run(tmp_path, content, *charged)
    assert refused.exit_code == 3
    assert "budget is short" in refused.stderr
    with discreet.Ledger(url) as ledger:
        assert float(ledger.account("panel").remaining) < 1.01
    alone = run(tmp_path, content, *ask, "--ledger", url)
    assert alone.exit_code == 2
    assert "together" in alone.output


def test_matrices_are_a_model_too(tmp_path):
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps({"lags": MODEL.matrices.tolist(), "noise": MODEL.innovation.tolist()})
    )
    found = told(tmp_path, wide(), *ASK, "--model", model)
    expected = series.report(PANEL, bounds=(-4, 4), std=1.0, released=[1, 2, 9], model=MODEL)
    assert found["leaks"][0]["leaks"] == expected.people[0].epsilon
    assert found["origin"] == "given"
    for broken in ("[1]", "{", '{"habits": [0.5]}'):
        model.write_text(broken)
        assert run(tmp_path, wide(), *ASK, "--model", model).exit_code == 2


SHORT = PANEL[:, :3]
HOLE = PANEL.astype(object)
HOLE[1, 5] = "NA"
FLAT = PANEL.copy()
FLAT[0] = 1.0
DRIFT = PANEL + np.exp(np.arange(40) / 2)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (wide(HOLE), ASK, "1 values of 1 people are missing"),
        (wide() + "Dan,1,2,3\n", ASK, "Line 5 has 4 cells, the first line has 41"),
        (wide(FLAT), ASK, "never change"),
        (wide(DRIFT), ("--bounds", "0", "1e9", *ASK[3:]), "not stationary"),
        (wide(SHORT), (*ASK[:-1], "t1"), "at least 4 times"),
        (wide(PANEL[:, :1]), (*ASK[:-1], "t0"), "at least 4 times"),
        (wide(names=("Ann", "Ann", "Bob")), ASK, "each person once"),
        (wide().replace("Ann,", "Ann,x"), ASK, "Line 2 has a cell that is no number"),
        (wide().replace("Ann,", "Ann,inf", 1).replace("inf-", "inf", 1), ASK, "Line 2"),
        ("who,t1\n", ASK, "one more"),
        ("who\nAnn\n", ASK, "no times"),
        ("", ASK, "one more"),
        (wide(), (*ASK[:-1], "t1,t99"), "'t99' is none"),
        (wide(), ASK[:3], "Give --noise, or --promise"),
        (wide(), (*ASK, "--promise", "1"), "Give --noise, or --promise"),
        (wide(), ("--bounds", "4", "-4", *ASK[3:]), "increasing"),
        (wide(), ("--bounds", "-4", "4", "--noise", "-1"), "positive"),
        (wide(), (*ASK, "--time", "t1"), "needs --person, --time and --value"),
        (wide(), (*ASK, "--person", "nobody"), "'nobody' must be in the first line"),
        (wide(), (*ASK, "--spread", "1"), "need --epsilon"),
        (wide(), (*ASK, "--epsilon", "1", "--drop-incomplete"), "complete the panel first"),
        (wide(), (*ASK, "--epsilon", "1"), "noise at this budget"),
        (wide(), (*ASK, "--epsilon", "0"), "epsilon must be positive"),
        (wide(), (*ASK, "--delimiter", ";;"), "one character"),
        (wide(), (*ASK, "--html", "nowhere/page.html"), "no such folder"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, content, options, words):
    result = run(tmp_path, content, *options)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
    assert str(PANEL[0, 5]) not in result.output  # no value is quoted


def test_a_repeated_value_is_refused(tmp_path):
    long = text([("p", "t", "v"), ("a", 1, 1), ("a", 2, 2), ("a", 1, 3)])
    result = run(tmp_path, long, *ASK, "--person", "p", "--time", "t", "--value", "v")
    assert result.exit_code == 2
    assert "Line 4 repeats" in result.output


def test_people_with_gaps_can_be_left_out(tmp_path):
    result = run(tmp_path, wide(HOLE), *ASK, "--drop-incomplete")
    assert result.exit_code == 0, result.output
    assert "1 people with missing values were left out" in result.stderr
    assert "Bob" not in result.stdout


def test_one_person_is_a_panel(tmp_path):
    found = told(tmp_path, wide(PANEL[:1], NAMES[:1]), *ASK)
    assert found["people"] == 1


def test_the_saving_is_shown_and_certified():
    rows = savings([0.0, 0.8], times=6)
    assert rows[0].correlated == pytest.approx(1, abs=1e-4)
    assert rows[1].correlated < 0.5
    assert rows[1].independent > 0.7
    for row in rows:
        assert row.least <= row.correlated <= row.least * 1.001
    picture = savings_picture(rows).svg()
    assert "proof" in picture
    ET.fromstring(picture)


@pytest.mark.slow
def test_the_figure_in_the_documentation_is_what_comes_out():
    """Curves alone: text and layout may change."""
    kept = Path(__file__).parents[2] / "docs" / "theory" / "series-design.svg"
    habits = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    made = savings_picture(savings(habits)).svg()
    assert POINTS.findall(kept.read_text(encoding="utf-8")) == POINTS.findall(made)


STRANGE_LINES = [
    "x,1,2,3,4,5,6,7,a", "x,1,2", "x,1,2,3,4,5,6,7,8,9,9", "x,,,,,,,,", "x,inf,1,1,1,1,1,1,1e999",
    'x,"1,1,1,1,1,1,1,1', "x,nan,NA,null,None,.,1,1,1", "Secret7,1,1,1,1,1,1,1,1", "\0", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("line", STRANGE_LINES, ids=range(len(STRANGE_LINES)))
def test_no_line_of_a_panel_makes_a_private_fit_fail(tmp_path, line):
    alike = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
    panel = alike.simulate(people=600, times=8, rng=seeded_rng(2)).round(3)
    lines = wide(panel, [f"Secret{i}" for i in range(600)]).splitlines()
    lines.insert(300, line)
    ask = ("--bounds", -6, 6, "--noise", 0.05, "--epsilon", 200, "--spread", 2)
    result = run(tmp_path, "\n".join(lines) + "\n", *ask)
    assert result.exit_code == 0, result.output
    assert "Secret" not in result.output


def test_a_private_fit_refuses_panels_whose_times_are_in_the_lines(tmp_path):
    content = "who,when,what\na,1,2\na,2,3\nb,1,2\nb,2,3\n"
    ask = ("--bounds", -6, 6, "--noise", 0.05, "--epsilon", 6)
    columns = ("--person", "who", "--time", "when", "--value", "what")
    result = run(tmp_path, content, *ask, *columns)
    assert result.exit_code == 2
    assert "one line for each person" in result.output
