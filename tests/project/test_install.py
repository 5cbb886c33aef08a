"""The pins, the metadata and the commands that a newcomer types first."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
GROUPS = METADATA["dependency-groups"]
DECLARED = [
    *METADATA["project"]["dependencies"],
    *(text for extra in METADATA["project"]["optional-dependencies"].values() for text in extra),
    *(text for group in GROUPS.values() for text in group if isinstance(text, str)),
]


def make(*arguments):
    return subprocess.run(
        ["make", *arguments], capture_output=True, check=False, cwd=ROOT, text=True
    )


@pytest.mark.parametrize("requirement", DECLARED)
def test_what_is_declared_is_pinned(requirement):
    name = re.split(r"[<>=~!\[; ]", requirement)[0]
    assert re.search(rf"^{re.escape(name)}==", LOCK, flags=re.MULTILINE | re.IGNORECASE)


def test_every_pin_has_hashes_and_no_address():
    pins = re.findall(r"^[a-z0-9._-]+==.*$", LOCK, flags=re.MULTILINE | re.IGNORECASE)
    assert len(pins) > len(DECLARED)
    assert all(pin.endswith("\\") for pin in pins)  # a hash follows on the next line
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_help_names_every_command():
    listed = make("help").stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for target in phony.group(1).split():
        assert f"make {target} " in listed


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\ncase $1 in -V) echo Python 3.9.1;; *) exit 1;; esac\n", "is Python 3.9.1"),
        (None, "was not found"),
    ],
    ids=["old", "missing"],
)
def test_a_python_that_will_not_do_is_refused_clearly(tmp_path, script, message):
    python = tmp_path / "python"
    if script:
        python.write_text(script)
        python.chmod(0o755)
    done = make("install", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert message in done.stdout
    assert not (tmp_path / "venv").exists()
