"""One mutant tried: the tests that run its line, in a process of its own, until one fails."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

Fate: TypeAlias = Literal["killed", "timeout", "survived", "untested"]
ROOT = Path(__file__).parents[1]
_PASSED, _FAILED, _BROKEN = 0, 1, 2


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the broken source for one module; all others are found as ever."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, str(self._path), "exec"), module.__dict__)  # noqa: S102


def fate(path: Path, source: str, tests: Sequence[str], *, limit_s: float) -> Fate:
    """Whether the tests notice. A mutant that never ends is noticed too."""
    if not tests:
        return "untested"
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(_run(path, source, tests))
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == _PASSED else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _run(path: Path, source: str, tests: Sequence[str]) -> int:
    import pytest  # noqa: PLC0415 - loaded once, before the processes part

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    sys.meta_path.insert(0, _Planted(name, path, source))
    try:
        return int(pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", *tests]))
    except BaseException:  # noqa: BLE001 - a mutant may break anything; that is noticed
        return _BROKEN
