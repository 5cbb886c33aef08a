"""Shells complete commands: the printed script is what a real shell runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from discreet.cli.main import main

COMMAND = Path(sys.executable).with_name("discreet")


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_every_shell_gets_its_script(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_DISCREET_COMPLETE" in result.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_runs_the_script_and_completes_a_command(tmp_path):
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    (tmp_path / "completion.sh").write_text(script)
    asked = """
source completion.sh
COMP_WORDS=(discreet led) COMP_CWORD=1
_discreet_completion discreet
echo "${COMPREPLY[@]}"
"""
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", asked],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["ledger"]
