"""The mutation tester: it breaks what is computed, and notices whether a test notices."""

import ast
import subprocess
import sys

import pytest

from mutation.mutants import mutants
from mutation.trial import ROOT

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


CLOSED = "if number <= 0:"
OPEN = "if number < 0:"


@pytest.mark.parametrize(
    ("source", "expected"), [(OPEN, "killed"), (CLOSED, "survived"), (None, "untested")]
)
def test_a_mutant_is_noticed_exactly_if_a_test_fails(tmp_path, source, expected):
    test = tmp_path / "test_it.py"
    test.write_text(
        "import pytest\nfrom discreet.core import check, errors\n"
        "def test_it():\n    with pytest.raises(errors.InvalidArgument):\n"
        "        check.positive('x', 0)\n"
    )
    tests = [str(test)] if source else []
    program = (
        "from mutation.trial import ROOT, fate\n"
        "path = ROOT / 'src/discreet/core/check.py'\n"
        f"text = path.read_text().replace({CLOSED!r}, {source or OPEN!r})\n"
        f"print(fate(path, text, {tests!r}, limit_s=100))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT, text=True
    )
    assert done.stdout.split() == [expected]
