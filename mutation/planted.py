"""``python -m mutation.planted PIPE``: run tests with another source for one module.

The standard input says which, as JSON. Each test that passed is told to the pipe.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from mutation.child import OPTIONS, grouped, prepare, run
from mutation.trial import module_name


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the broken source for one module; all others are found as ever."""

    def __init__(self, path: Path, source: str) -> None:
        self._name, self._path, self._source = module_name(path), path, source

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, str(self._path), "exec"), module.__dict__)  # noqa: S102


@dataclass(slots=True)
class _Ordered:
    """A plugin of pytest that runs tests in the order in which they are named."""

    tests: Sequence[str]
    limits: Sequence[float]
    pipe: int

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        groups = grouped(session)
        run([groups[test] for test in self.tests], self.limits, self.pipe)
        return True


def main(pipe: int) -> None:
    """Plant the source, then collect and run the tests."""
    content = json.load(sys.stdin)
    prepare()
    sys.meta_path.insert(0, _Finder(Path(content["path"]), content["source"]))
    plugin = _Ordered(content["tests"], content["limits"], pipe)
    pytest.main([*OPTIONS, *content["tests"]], plugins=[plugin])


if __name__ == "__main__":
    main(int(sys.argv[1]))
