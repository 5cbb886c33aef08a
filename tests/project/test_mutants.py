"""The mutation tester: it breaks what is computed, and notices whether a test notices."""

import ast
import json
import subprocess
import sys

import coverage
import pytest

from mutation import page, tested
from mutation.argued import arguments
from mutation.mutants import Place, mutants
from mutation.packages import PACKAGES, ROOT, below_source, files, located

SOURCE = '''
def f(a: "int < float", b=2):
    """Text + text."""
    if a < b and not (b
                      == 3):
        raise ValueError(f"{a + b}")
    return max(a - 1, np.ceil(b))  # é
'''


def test_every_mutant_parses_and_differs():
    made = mutants(SOURCE)
    for one in made:
        assert ast.dump(ast.parse(one.apply(SOURCE))) != ast.dump(ast.parse(SOURCE)), one
    told = {(one.before, one.text) for one in made}
    assert {("<", "<="), ("and", "or"), ("==", "!="), ("-", "+"), ("max", "min")} <= told
    assert {("ceil", "floor"), ("2", "(2 + 1)")} <= told


def test_words_and_annotations_stay():
    assert not [one for one in mutants(SOURCE) if one.before == "+"]
    assert {one.before for one in mutants("def f(a: 'Final[1 < 2]') -> 1 + 2: pass")} == set()


@pytest.mark.parametrize(
    ("changed", "function", "first", "last"),
    [("1 <", "f", 6, 7), ("2 <", "f.<locals>.g", 9, 9), ("3 <", "", 3, 13), ("4 <", "", 1, 15)],
)
def test_a_mutant_knows_whose_tests_may_notice(changed, function, first, last):
    source = """\
x = 4 < 5

def f(
    y=3 < 4,
):
    if (y and
            1 < 2):
        def g():
            return 2 < 3

        return g
    z = y
    return z

"""
    (found,) = [
        one
        for one in mutants(source)
        if source[one.start - 2 :].startswith(changed) and one.before == "<"
    ]
    assert (found.place.function, found.place.first, found.place.last) == (function, first, last)


CLOSED = "if number <= 0:"
OPEN = "if number < 0:"


NOTICES = "tests/core/test_rational.py::test_checks_know_their_ends"
DOES_NOT = "tests/core/test_rational.py::test_floats_are_read_as_typed"


def fates(tmp_path, tried, file="tests/core/test_rational.py", *, planted=False):
    program = f"""
import pathlib, pytest
from mutation.child import OPTIONS
from mutation.durations import Durations
from mutation.packages import ROOT
from mutation.trial import Trial, Trials
path = ROOT / "src/discreet/core/_validate.py"
text = path.read_text()
trials = [
    Trial(path=path, before=text, after=text.replace({CLOSED!r}, new), tests=frozenset(tests),
          planted={planted})
    for new, tests in {tried!r}
]
plugin = Trials(trials, Durations(pathlib.Path({str(tmp_path)!r}, "durations.json")),
                lambda number, fate: print("fate", fate))
raise SystemExit(pytest.main([*OPTIONS, {str(file)!r}], plugins=[plugin]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, cwd=ROOT, text=True
    )
    words = done.stdout.split()
    return done.returncode, [words[i + 1] for i, word in enumerate(words) if word == "fate"]


@pytest.mark.parametrize("planted", [False, True])
def test_a_mutant_is_noticed_exactly_if_a_test_fails(tmp_path, planted):
    tried = {
        (OPEN, (DOES_NOT, NOTICES)): "killed",
        (OPEN, (DOES_NOT,)): "survived",
        (CLOSED, (DOES_NOT, NOTICES)): "survived",
        (OPEN, ("tests/core/test_rational.py::test_that_is_gone",)): "untested",
    }
    assert fates(tmp_path, list(tried), planted=planted) == (0, list(tried.values()))


def test_nothing_is_tried_while_a_test_cannot_be_read(tmp_path):
    broken = tmp_path / "test_broken.py"
    broken.write_text("import a_module_that_is_not_there\n")
    code, found = fates(tmp_path, [(OPEN, (NOTICES,))], broken)
    assert code == pytest.ExitCode.INTERRUPTED
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_argued_about_exists(package):
    inside = {below_source(path) for path in files(package)}
    for argument in arguments(package):
        assert argument.file in inside, argument
        text = located(argument.file).read_text(encoding="utf-8")
        lines = text.splitlines()
        known = {
            (one.place.function, lines[one.line - 1].strip(), str(one)) for one in mutants(text)
        }
        assert argument.mutant[1:] in known, argument
        assert len(argument.why.split()) >= 5, argument


def test_the_page_counts_what_was_noticed(tmp_path):
    argued = next(one for one in arguments("noise") if one.kind == "equivalent")
    file, function, line, change = argued.mutant
    equivalent = {"file": file, "function": function, "line": line, "change": change}
    other = equivalent | {"change": "a | b -> c"}
    fates = [(other, "killed")] * 6 + [(other, "timeout"), (equivalent, "survived")]
    fates += [(other, "survived"), (other, "untested")]
    tried = [named | {"fate": fate, "number": 1} for named, fate in fates]
    run = {"package": "noise", "all": 99, "seed": 5, "under": "", "cap": 8.0, "tried": tried}
    (tmp_path / "noise.json").write_text(json.dumps(run))
    (tmp_path / "durations.json").write_text("{}")
    page.write(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "| `noise` | 99 | 10 | 7 | 1 | 1 | 77.8% | 70.0% | 5 | 8 |" in text
    assert text.count("not argued") == 2
    assert f"equivalent: {argued.why}" in text
    assert r"`a \| b -> c`" in text


def test_lines_are_followed_into_another_checkout(tmp_path):
    """Coverage that was recorded before a line moved still names the tests of that line."""
    here = "src/discreet/core/_validate.py"
    lines = (ROOT / here).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / here).parent.mkdir(parents=True)
    (tmp_path / here).write_text("".join(["# one more\n", *lines[:-1]]))
    data = coverage.CoverageData(tmp_path / "data")
    data.set_context("tests.core.test_rational.test_floats_are_read_as_typed")
    data.add_lines({str(tmp_path / here): [1, 11]})
    data.set_context("")
    data.add_lines({str(tmp_path / here): [12]})
    data.write()
    assert tested.Tested.read([tmp_path / "data"]).tests == {
        (here, 10): {"tests/core/test_rational.py::test_floats_are_read_as_typed"}
    }


def test_the_tests_of_a_package_go_before_those_of_others():
    far, near = "tests/data/test_a.py::test_a", "tests/core/test_b.py::test_b"
    file = "src/discreet/core/_validate.py"
    known = tested.Tested({(file, 5): {far}, (file, 6): {near, far}})
    assert known.of(file, Place("f", 5, 5), far=False) == {far}
    assert known.of(file, Place("f", 5, 6), far=False) == {near}
    assert known.of(file, Place("f", 5, 6), far=True) == {near, far}
    assert known.of(file, Place("f", 9, 9), far=False) == {near}
