"""What `make lint` runs, as tests: a red tree is red whichever command finds it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("src", "research", "benchmarks", "evidence", "mutation", "tests", "examples", "conftest.py")


@pytest.mark.lint
@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", *CODE),
        ("ruff", "format", "--check", *CODE),
        ("mypy", "--strict", "src", "research/src", "benchmarks", "evidence", "mutation"),
        ("lint-imports",),
    ],
    ids=["style", "format", "types", "layers"],
)
def test_the_tree_is_clean(command):
    tool, *arguments = command
    done = subprocess.run(
        [Path(sys.executable).parent / tool, *arguments],
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
