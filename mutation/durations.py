"""How long each test takes on the source as it is, kept between runs."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from mutation.child import Ended
from mutation.packages import ROOT

_OFTEN = 50


class Durations:
    """Seconds of a core by test; one whose file has changed since is measured again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = self._read()

    def of(self, test: str) -> float:
        """Seconds; infinite for a test that fails."""
        return self._known[_stamped(test)]

    def measure(self, tests: Iterable[str], run: Callable[[str], Ended]) -> None:
        """Run those that are not known, each once."""
        new = sorted(test for test in tests if _stamped(test) not in self._known)
        for number, test in enumerate(new, 1):
            ended = run(test)
            passed = ended.fate == "survived"
            self._known[_stamped(test)] = ended.seconds if passed else math.inf
            if number % _OFTEN == 0 or number == len(new):
                self._write()

    def _write(self) -> None:
        """Keep what is known, also what another process measured meanwhile."""
        self._known = self._read() | self._known
        passing = {test: s for test, s in self._known.items() if math.isfinite(s)}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(f".{time.monotonic_ns()}")
        fresh.write_text(json.dumps(passing, indent=0, sort_keys=True), encoding="utf-8")
        fresh.replace(self._file)

    def _read(self) -> dict[str, float]:
        if not self._file.exists():
            return {}
        known: dict[str, float] = json.loads(self._file.read_text(encoding="utf-8"))
        return known


def _stamped(test: str) -> str:
    return f"{test} {_stamp(test.partition('::')[0])}"


@cache
def _stamp(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]
