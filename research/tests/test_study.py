"""The frame of the studies: verdicts, files, exit codes."""

import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.core.errors import InvalidArgument
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.line_chart import curves
from discreet_studies import catalog
from discreet_studies.checks import MOST_SIMULATED, Claims, explained
from discreet_studies.public_data import DAYS, births
from discreet_studies.report import as_html, as_json
from discreet_studies.study import (
    Experiment,
    Figure,
    Findings,
    Line,
    StudyPlan,
    StudySetting,
    StudyTable,
    run,
)

PLAIN = Claims(source="Table 1")
BETTER = Claims(source="Table 1", why="The scale was wrong.")


def tiny(*, got=2.0, claim="two"):
    """A study of one check."""

    def found(setting):
        return Findings(
            checks=(PLAIN.number("X/two", claim, expected=2.0, got=got, absolute=0.1),),
            tables=(
                StudyTable(id="X/t", title="<t>", columns=("a",), rows=((math.inf,), (None,))),
            ),
            figures=(
                Figure(
                    id="X/f",
                    title="f",
                    x="days",
                    y="RMSE (visits)",
                    lines=(Line(label="a & b", x=(1.0, 2.0), y=(1.0, math.inf)),),
                    note="epsilon 1, 3 repetitions",
                ),
            ),
        )

    return StudyPlan(
        name="tiny",
        title="A <tiny> study",
        source="Nobody 2000",
        summary="Nothing.",
        experiments=(Experiment(id="X", title="only", run=found),),
        seed=7,
    )


def verdicts(*checks):
    return [(check.ok, check.verdict) for check in checks]


def test_a_number_is_reproduced_within_its_tolerance_and_not_beyond():
    near, far, odd = (
        PLAIN.number("n", "", expected=100, got=got, relative=0.02)
        for got in (101.9, 102.1, np.nan)
    )
    assert verdicts(near, far, odd) == [
        (True, "reproduced"),
        (False, "not reproducible"),
        (False, "not reproducible"),
    ]
    assert near.tolerance == 2


def test_a_reason_makes_a_correction_and_a_failure_is_neither():
    good = BETTER.equal("n", "", expected=3, got=3)
    bad = BETTER.equal("n", "", expected=3, got=4)
    assert verdicts(good, bad) == [(True, "corrected"), (False, "not reproducible")]
    assert good.why == "The scale was wrong."
    assert "otherwise" in bad.why


def test_an_ordering_is_by_value_and_refuses_what_is_not_a_number():
    order = {"c": 3.0, "a": 1.0, "b": 2.0}
    assert PLAIN.order("n", "", expected=("a", "b", "c"), got=order).ok
    assert not PLAIN.order("n", "", expected=("a", "c", "b"), got=order).ok
    assert not PLAIN.order("n", "", expected=("a", "b", "c"), got={**order, "c": np.nan}).ok
    # Else names that were listed as expected would pass whatever came out alike.
    assert not PLAIN.order("n", "", expected=("a", "b", "c"), got=dict.fromkeys("abc", 1.0)).ok


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (PLAIN.at_least("n", "", expected=1, got=1), True),
        (PLAIN.at_least("n", "", expected=1, got=0.99), False),
        (PLAIN.at_least("n", "", expected=1, got=np.nan), False),
        (PLAIN.at_most("n", "", expected=1, got=1), True),
        (PLAIN.at_most("n", "", expected=1, got=1.01), False),
        (PLAIN.at_most("n", "", expected=1, got=np.nan), False),
    ],
)
def test_limits(check, ok):
    assert check.ok is ok


def test_printed_simulations_are_corrected_within_what_they_can_be_off():
    fine, coarse, wrong = PLAIN.sampled(
        "n",
        "",
        expected={"a": 100, "b": 100, "c": 100},
        got={"a": 100.5, "b": 104, "c": 106},
        fine=0.01,
        coarse=0.05,
        why="Sampled.",
    )
    assert verdicts(fine, coarse, wrong) == [
        (True, "reproduced"),
        (True, "corrected"),
        (False, "not reproducible"),
    ]


def test_what_nobody_can_check_needs_a_reason_and_fails_nothing():
    assert verdicts(BETTER.beyond("n", "")) == [(True, "not reproducible")]
    with pytest.raises(InvalidArgument, match="why"):
        PLAIN.beyond("n", "")


def test_numbers_must_be_expected_under_the_same_keys():
    with pytest.raises(InvalidArgument, match="same keys"):
        PLAIN.numbers("n", "", expected={"a": 1}, got={"b": 1})


def test_simulated_means_take_their_tolerance_from_the_exact_spread():
    rng = np.random.default_rng(1)
    values = rng.normal(size=10000)
    check = PLAIN.simulated("n", "", values=values, expected=0, spread=1)
    # Two-sided, 1e-6 over all checks of a study.
    tail = math.erfc(check.tolerance * 100 / math.sqrt(2))
    assert tail * MOST_SIMULATED == pytest.approx(1e-6, rel=1e-6)
    assert check.ok
    assert not PLAIN.simulated("n", "", values=values + 0.1, expected=0, spread=1).ok
    assert not PLAIN.simulated("n", "", values=values - 0.1, expected=0, spread=1).ok


def test_explained_is_one_for_a_line_and_known_for_a_parabola():
    assert explained([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    # Residuals of x^2 at -1, 0, 1 against their mean are all of the variance.
    assert explained([-1, 0, 1], [1, 0, 1]) == pytest.approx(0)
    assert explained([-1, 0, 1], [1, 0, 1], degree=2) == pytest.approx(1)


def test_an_experiment_has_a_stream_of_its_own():
    one, again, other = (StudySetting(seed=5).rng(name).random() for name in ("E1", "E1", "E2"))
    assert one == again != other
    assert StudySetting(seed=6).rng("E1").random() != one


def test_json_holds_tables_figures_and_checks_and_nothing_that_is_not_json():
    made = json.loads(as_json(run(tiny())), parse_constant=pytest.fail)
    assert made["study"] == "tiny"
    assert made["ok"] is True
    assert made["tables"][0]["rows"] == [[None], [None]]
    assert made["figures"][0]["lines"][0]["y"] == [1.0, None]
    assert made["checks"] == [
        {
            "id": "X/two",
            "claim": "two",
            "source": "Table 1",
            "rule": "within",
            "expected": 2.0,
            "got": 2.0,
            "tolerance": 0.1,
            "ok": True,
            "verdict": "reproduced",
            "why": "",
        }
    ]


def test_the_page_stands_alone_and_escapes_everything():
    page = as_html(run(tiny(claim="<script>")))
    assert "A &lt;tiny&gt; study" in page
    assert "a &amp; b" in page
    assert "<script" not in page
    outside = re.findall(r"https?://[^\"'\s]+", page)
    assert set(outside) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "epsilon 1, 3 repetitions" in page
    assert "FAILED" not in page
    assert "FAILED" in as_html(run(tiny(got=3.0)))


def test_curves_leave_out_what_logs_cannot_show():
    drawn = curves(
        [ChartCurve(label="a", x=[0, 1, 10], y=[5, 0, 50])],
        x=ChartAxis(label="days", log=True),
        y=ChartAxis(label="error", log=True),
        title="t",
        note="n",
    )
    (path,) = re.findall(r'<polyline points="([^"]+)" fill="none" stroke="#000"', drawn)[:1]
    assert len(path.split()) == 1  # (10, 50) alone has logarithms
    assert "days (log scale)" in drawn


def test_marks_and_dashes_tell_eight_curves_apart():
    lines = [ChartCurve(label=str(i), x=[1, 2], y=[i, i]) for i in range(8)]
    drawn = curves(lines, x=ChartAxis(label="x"), y=ChartAxis(label="y"), title="t", note="n")
    dashes = re.findall(r'<polyline [^>]*?(stroke-dasharray="[^"]+")?/>', drawn)
    assert len(set(dashes)) == 8


@pytest.fixture
def only(monkeypatch):
    """Make a study the only one there is."""

    def change(plan):
        monkeypatch.setattr(catalog, "PLANS", {plan.name: plan})
        return CliRunner()

    return change


def test_the_command_writes_both_files_and_exits_with_zero(only, tmp_path):
    data, page = tmp_path / "s.json", tmp_path / "s.html"
    result = only(tiny()).invoke(main, ["study", "tiny", "--json", str(data), "--html", str(page)])
    assert result.exit_code == 0, result.output
    assert "1 checks: 1 reproduced, 0 corrected, 0 beyond checking, 0 failed." in result.output
    assert json.loads(data.read_text(encoding="utf-8"))["quick"] is False
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_failed_check_exits_with_one_and_is_shown(only, tmp_path):
    data = tmp_path / "s.json"
    result = only(tiny(got=2.2)).invoke(main, ["study", "tiny", "--json", str(data)])
    assert result.exit_code == 1
    assert "X/two" in result.output
    (check,) = json.loads(data.read_text(encoding="utf-8"))["checks"]
    assert (check["ok"], check["verdict"]) == (False, "not reproducible")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["study", "nobody"], "there are: friis"),
        (["study"], "--list"),
        (["study", "friis", "--json", "no/such/folder/s.json"], "no such folder"),
    ],
)
def test_the_command_refuses_with_two(arguments, says):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_the_list_names_every_study():
    result = CliRunner().invoke(main, ["study", "--list"])
    assert result.exit_code == 0
    assert all(result.output.count(f"{name}: ") == 1 for name in catalog.PLANS)


def test_births_are_what_the_source_says():
    series = births(DAYS)
    assert (len(series), series[0], series[-1]) == (7305, 8486, 9133)
    assert series.sum() == 70_486_538
    with pytest.raises(InvalidArgument, match="7305"):
        births(DAYS + 1)
