"""Every example runs, as a person would run it, in a folder of its own."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


SLOW = {"05_spark": [pytest.mark.spark, pytest.mark.slow]}


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=SLOW.get(path.stem, ())) for path in EXAMPLES]
)
def test_an_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    if path.stem in SLOW:
        # Spark: another session may be active in this process.
        subprocess.run([sys.executable, str(path)], check=True, timeout=600)
        return
    runpy.run_path(str(path), run_name="__main__")
