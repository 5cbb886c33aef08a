"""The index of theorems: whole, up to date, and nothing in it without a test."""

import ast
from pathlib import Path

from evidence import theorems as found
from evidence.counterexamples import COUNTEREXAMPLES
from evidence.usage import Place, tests

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_docstrings_say():
    written = found.PAGE.read_text(encoding="utf-8")
    assert written == found.index(), "run: python -m evidence.theorems"


def test_every_room_is_looked_through():
    rooms = {path.parent.name for path in (ROOT / "src" / "discreet").glob("*/__init__.py")}
    assert set(found.ROOMS) == rooms


def test_every_statement_has_a_test():
    assert [one.name for one in found.theorems() if not one.tests[1]] == []


def test_every_corrected_statement_has_a_counterexample():
    corrected = {one.name for one in found.theorems() if one.status == "corrected"}
    assert corrected == set(COUNTEREXAMPLES)


def test_every_counterexample_is_where_it_is_said_to_be():
    for shown in COUNTEREXAMPLES.values():
        if shown.where.endswith(".py"):
            tree = ast.parse((ROOT / "tests" / shown.where).read_text(encoding="utf-8"))
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert shown.what in names
            continue
        text = (ROOT / "docs" / "evidence" / f"{shown.where}.md").read_text(encoding="utf-8")
        experiment, _, check = shown.what.partition("/")
        section = text.partition(f"## {experiment}\n")[2] if check else text
        section = section.partition("\n## ")[0] if check else section
        assert f"| {check or shown.what} |" in section


def test_statements_are_read_with_their_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(found.usage, "SOURCE", tmp_path)
    path = tmp_path / "discreet" / "core" / "one.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "class A:\n"
        "    def f(self):\n"
        '        """Do.\n\n        Theorem: it\n            is.\n'
        '        Source: Somebody 2020, corrected.\n        """\n'
        "    def g(self):\n"
        '        """Do.\n\n        Theorem: so.\n        Proof: see.\n        """\n'
        "    def h(self):\n"
        '        """Do: a Theorem: or not."""\n',
        encoding="utf-8",
    )
    first, second = found.stated(path)
    assert (first.name, first.status, first.parts["Theorem"]) == ("one.A.f", "corrected", "it is.")
    assert (second.name, second.status) == ("one.A.g", "proved")


def test_tests_are_found_by_import_by_call_and_not_by_chance():
    way, files = tests(Place(module="discreet.mechanisms.weighted", of="weighted_delta"))
    assert way == ""
    assert "mechanisms/test_weighted.py" in files
    way, files = tests(Place(module="discreet.accounting.renyi", of="_numerical"))
    assert way == "divergence"
    assert "accounting/test_terms.py" in files
    assert tests(Place(module="discreet.core.nowhere", of="unheard_of")) == ("", ())
