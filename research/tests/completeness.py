"""What is asked of every study: checks that hold and have names, files and pictures in order."""

import json
import re
from pathlib import Path

from discreet_studies.catalog import planned
from discreet_studies.checks import MOST_SIMULATED
from discreet_studies.report import as_html, as_json, picture

DOCS = Path(__file__).parents[2] / "docs" / "studies"


def failed(checks):
    return {check.id for check in checks if not check.ok}


def holds(study):
    """Every check came out as expected, and the study can be asked for by its name."""
    assert [check for check in study.checks if not check.ok] == []
    assert planned(study.plan.name) is study.plan


def named(study):
    """Every check has a name of its own, and a reason where it does not just reproduce."""
    assert len({check.id for check in study.checks}) == len(study.checks)
    assert all(bool(check.why) == (check.verdict != "reproduced") for check in study.checks)


def few_by_chance(study):
    """The error of chance is shared among no more checks than assumed."""
    # At most these: those that compare with a tolerance. Most of them are exact.
    assert sum(check.rule == "within" for check in study.checks) < MOST_SIMULATED


def explained(study, words):
    """Every figure has axes and numbers, and its note says by one of the words how it came."""
    for figure in study.figures:
        assert figure.x
        assert figure.y
        assert any(word in figure.note for word in words)
        assert all(len(line.x) == len(line.y) > 0 for line in figure.lines)


def whole(study):
    """The JSON has every check, the page every figure, and neither a number that is none."""
    made = json.loads(as_json(study))
    assert made["ok"]
    assert len(made["checks"]) == len(study.checks)
    page = as_html(study)
    assert page.count("<svg ") == len(study.figures)
    assert "NaN" not in page
    assert "nan" not in re.findall(r"<td>([^<]*)</td>", page)


def drawn(study, figure, file):
    """The picture in the documentation says what the study's figure says."""
    (found,) = (one for one in study.figures if one.id == figure)
    kept = (DOCS / file).read_text(encoding="utf-8")
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
    assert words.findall(kept) == words.findall(picture(found)), "write picture(figure) there"
