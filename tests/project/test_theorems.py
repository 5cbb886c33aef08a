"""The index of theorems: whole, up to date, and nothing in it without a test."""

import ast
import re
from pathlib import Path

import pytest

from evidence import theorems as found
from evidence import usage
from evidence.counterexamples import COUNTEREXAMPLES
from evidence.usage import Place

ROOT = Path(__file__).parents[2]
TESTS = re.compile(r"Tests: .*")


def file_of(path):
    return ROOT / path if path.startswith("research/") else ROOT / "tests" / path


def test_the_page_is_what_the_comments_say():
    written, fresh = found.PAGE.read_text(encoding="utf-8"), found.index()
    # A new test file does not make the page stale; one that is gone does.
    assert TESTS.sub("", written) == TESTS.sub("", fresh), "run: python -m evidence.theorems"
    named = {path for line in TESTS.findall(written) for path in re.findall(r"`(\S+\.py)`", line)}
    assert [path for path in sorted(named) if not file_of(path).exists()] == []


def test_every_package_is_looked_through():
    inside = {path.parent.name for path in (ROOT / "src" / "discreet").glob("*/__init__.py")}
    assert set(found.PACKAGES) == inside | {"studies"}
    outside = [
        *(ROOT / "src").glob("*/__init__.py"),
        *(ROOT / "research/src").glob("*/__init__.py"),
    ]
    assert {path.parent.name for path in outside} == {"discreet", "discreet_studies"}
    assert all(usage.folder(package).is_dir() for package in found.PACKAGES)


def test_every_statement_has_an_anchor_of_its_own():
    anchors = re.findall(r'<a id="(\S+)"></a>', found.PAGE.read_text(encoding="utf-8"))
    assert len(anchors) == len(set(anchors)) == len(list(found.theorems()))


def test_a_docstring_links_to_statements_that_exist():
    anchors = set(re.findall(r'<a id="(\S+)"></a>', found.PAGE.read_text(encoding="utf-8")))
    linked = {
        (path.name, anchor)
        for path in (ROOT / "src").rglob("*.py")
        for anchor in re.findall(r"theorems\.md#([\w.]+)\)", path.read_text(encoding="utf-8"))
    }
    assert len(linked) > 50
    assert {pair for pair in linked if pair[1] not in anchors} == set()


def test_no_docstring_holds_a_statement():
    part = re.compile(r"^ *(Theorem|Proof|Source|Needs)s?: ", re.MULTILINE)
    for package in found.PACKAGES:
        for path in usage.folder(package).rglob("*.py"):
            for node, of in usage.definitions(usage.tree(path)):
                assert not part.search(ast.get_docstring(node) or ""), (path, of)


def test_every_statement_has_a_test():
    assert [one.name for one in found.theorems() if not one.tests[1]] == []


def test_every_corrected_statement_has_a_counterexample():
    corrected = {one.name for one in found.theorems() if one.status == "corrected"}
    assert corrected == set(COUNTEREXAMPLES)


def test_every_counterexample_is_where_it_is_said_to_be():
    for shown in COUNTEREXAMPLES.values():
        if shown.where.endswith(".py"):
            tree = ast.parse(file_of(shown.where).read_text(encoding="utf-8"))
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
        '    """Be.\n\n    More.\n    """\n\n'
        "    # Theorem: that\n    #   `it` is.\n    #\n    # More words.\n\n"
        "    # Source: of something else.\n"
        "    def f(self):\n"
        '        """Do."""\n        # Theorem: it\n        #   is.\n'
        "        # Source: Somebody 2020, corrected.\n        return 1\n"
        "    def g(self):\n"
        '        """Do."""\n        # Theorem: so.\n        # Proof: see.\n'
        "    def h(self):\n"
        '        """Do: a Theorem: or not."""\n'
        "    def i(self):\n"
        '        """Do.\n\n        Theorem: in the wrong place.\n        """\n'
        "    def j(self):\n"
        '        """Do."""\n        a = 1\n        # Theorem: about a line.\n',
        encoding="utf-8",
    )
    first, second, third = found.stated(path)
    assert (first.name, first.status) == ("one.A", "evident")
    assert dict(first.parts) == {"": "Be.", "Theorem": "that `it` is."}
    assert (second.name, second.status, second.parts["Theorem"]) == (
        "one.A.f",
        "corrected",
        "it is.",
    )
    assert (third.name, third.status) == ("one.A.g", "proved")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package with its tests in the place of ours."""
    files = {
        "src/discreet/core/one.py": "def f(): return _g()\ndef _g(): return 1\n"
        "class A:\n    def found(self): return h()\ndef h(): return 2\ndef lost(): return 3\n",
        "src/discreet/core/two.py": "def f(): return 1\n",
        "src/discreet/three.py": "def same(): return 1\n",
        "src/discreet/core/three.py": "def same(): return 2\n",
        "src/discreet/__init__.pyi": "from discreet.core.three import same\n",
        "tests/core/test_one.py": "from discreet.core.one import f\ndef test(): assert f() == 1\n",
        "tests/core/test_dots.py": "import discreet\ndef test(): assert discreet.core.one.f()\n",
        "tests/core/test_made.py": "def test(made): assert made.found() == 2\n",
        "tests/core/test_offered.py": "from discreet import same\ndef test(): assert same()\n",
        "tests/core/test_chance.py": "def f(): pass\ndef test(): f(); lost = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = [one for one in vars(usage).values() if hasattr(one, "cache_clear")]
    monkeypatch.setattr(usage, "SOURCE", tmp_path / "src")
    monkeypatch.setattr(usage, "STUDIES", tmp_path / "research" / "src")
    monkeypatch.setattr(usage, "ROOT", tmp_path)
    for one in kept:
        one.cache_clear()
    yield
    for one in kept:
        one.cache_clear()


@pytest.mark.usefixtures("package")
def test_tests_are_found_by_import_and_by_call_and_not_by_chance():
    def found_for(of, module="discreet.core.one"):
        return usage.exercised(Place(module=module, of=of))

    assert found_for("f") == ("", ("core/test_one.py", "core/test_dots.py"))
    assert found_for("_g") == ("f", ("core/test_one.py", "core/test_dots.py"))
    assert found_for("A.found") == ("", ("core/test_made.py",))
    assert found_for("h") == ("A.found", ("core/test_made.py",))
    assert found_for("lost") == ("", ())
    assert found_for("f", "discreet.core.two") == ("", ())
    assert found_for("same", "discreet.core.three") == ("", ("core/test_offered.py",))
    assert found_for("same", "discreet.three") == ("", ())
