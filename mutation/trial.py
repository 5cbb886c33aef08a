"""Mutants tried: the tests that run a line, in a process of its own, until one fails.

The tests are collected once. For a mutant the process forks, and the code of the changed functions
is swapped in the copy. What is computed at import cannot be swapped: such a mutant is planted in a
new process, which imports everything from the start.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Protocol, TypeAlias

import pytest

from mutation.child import Ended, Fate, grouped, prepare, run, watch
from mutation.durations import Durations
from mutation.packages import ROOT, below_source

Key: TypeAlias = tuple[str, str, int]
Way: TypeAlias = Callable[[Sequence[str], Sequence[float]], Ended]


class Cached(Protocol):
    """A function that remembers its answers."""

    def cache_clear(self) -> None:
        """Forget them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One mutant: its file before and after, and the tests that may notice."""

    path: Path
    before: str
    after: str
    tests: frozenset[str]
    planted: bool
    """Whether swapping is out of the question."""


@dataclass(slots=True)
class Trials:
    """A plugin of pytest that tries mutants instead of running the tests."""

    trials: Sequence[Trial]
    durations: Durations
    told: Callable[[int, Fate], None]
    cap_s: float = 60.0
    broken: set[str] = field(default_factory=set)
    """Tests that fail on the source as it is; they cannot notice anything."""
    _noticed: Counter[tuple[Path, str]] = field(default_factory=Counter)
    _sound: set[tuple[bool, str]] = field(default_factory=set)
    _items: dict[str, list[pytest.Item]] = field(default_factory=dict)
    _functions: dict[Key, list[FunctionType]] = field(default_factory=dict)
    _early: set[Key] = field(default_factory=set)
    """Functions that ran before the first test: swapped code may come too late for them."""
    _caches: list[Cached] = field(default_factory=list)
    """What was remembered during collection was computed by the source as it is."""

    def pytest_sessionstart(self) -> None:
        """Note which functions the imports and the collection of tests call."""
        inside = {str(trial.path) for trial in self.trials}

        def called(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename in inside:
                self._early.add(_key(frame.f_code))

        sys.setprofile(called)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests that are new, then try every mutant."""
        sys.setprofile(None)
        if session.testsfailed:
            raise session.Interrupted("Some tests cannot be read: mend them first.")
        for path in {trial.path for trial in self.trials}:
            importlib.import_module(module_name(path))
        self._items = grouped(session)
        self._functions, self._caches = _functions(), _caches()
        gc.collect()
        gc.freeze()
        needed = {test for trial in self.trials for test in trial.tests if test in self._items}
        self.durations.measure(needed, lambda test: self._forked({}, [test], [600.0]))
        for number, trial in enumerate(self.trials):
            self.told(number, self._fate(trial))
        return True

    def _fate(self, trial: Trial) -> Fate:
        """Swapped first, which is fast; what survives and may have come too late is planted."""
        codes = self._changed(trial)
        found: Fate = "survived"
        if codes:
            found = self._tried(trial, partial(self._forked, codes), planted=False)
        if found == "survived" and (not codes or codes.keys() & self._early):
            found = self._tried(trial, partial(_planted, trial.path, trial.after), planted=True)
        return found

    def _tried(self, trial: Trial, way: Way, *, planted: bool) -> Fate:
        while tests := self._chosen(trial):
            ended = way(tests, self._limits(tests))
            if ended.fate == "survived":
                return "survived"
            test = tests[ended.test]
            if self._is_sound(trial, test, planted=planted):
                self._noticed[trial.path, test] += 1
                return ended.fate
            self.broken.add(test)
        return "untested"

    def _chosen(self, trial: Trial) -> list[str]:
        """The shortest, as many as end within the cap and one at least.

        Those that noticed most in this file go first: they often notice again.
        """
        usable = [test for test in trial.tests if test in self._items and test not in self.broken]
        timed = sorted((self.durations.of(test), test) for test in usable)
        chosen: list[str] = []
        total = 0.0
        for seconds, test in timed:
            total += seconds
            if total > self.cap_s and (chosen or total == math.inf):
                break
            chosen.append(test)
        return sorted(chosen, key=lambda test: -self._noticed[trial.path, test])

    def _limits(self, tests: Sequence[str]) -> list[float]:
        return [5 * self.durations.of(test) + 10 for test in tests]

    def _is_sound(self, trial: Trial, test: str, *, planted: bool) -> bool:
        """Whether the test that failed passes, the same way, on the source as it is."""
        if (planted, test) not in self._sound:
            limits = self._limits([test])
            if planted:
                ended = _planted(trial.path, trial.before, [test], limits)
            else:
                ended = self._forked({}, [test], limits)
            if ended.fate != "survived":
                return False
            self._sound.add((planted, test))
        return True

    def _changed(self, trial: Trial) -> dict[Key, CodeType]:
        """The codes that differ, of functions that exist; none if any of them cannot be swapped."""
        if trial.planted:
            return {}
        before, after = (
            dict(_codes(compile(text, str(trial.path), "exec", dont_inherit=True)))
            for text in (trial.before, trial.after)
        )
        changed = {key: code for key, code in after.items() if before.get(key) != code}
        outer = [key for key in changed if "<locals>" not in key[1]]
        if not outer or not all(key in self._functions for key in outer):
            return {}
        return {key: code for key, code in changed.items() if key in self._functions}

    def _forked(
        self, codes: dict[Key, CodeType], tests: Sequence[str], limits: Sequence[float]
    ) -> Ended:
        """Run the tests in a copy of this process, with the codes of some functions swapped."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                prepare()
                for cached in self._caches:
                    cached.cache_clear()
                for key, code in codes.items():
                    for function in self._functions[key]:
                        function.__code__ = code
                run([self._items[test] for test in tests], limits, writing)
            finally:
                os._exit(0)
        os.close(writing)
        try:
            return watch(child, reading, limits)
        finally:
            os.close(reading)


def module_name(path: Path) -> str:
    """The name by which a file of the package is imported."""
    name = below_source(path).removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def _planted(path: Path, source: str, tests: Sequence[str], limits: Sequence[float]) -> Ended:
    """The same in a new process, whose import finds the other source."""
    limits = [limits[0] + 20, *limits[1:]]  # the imports
    reading, writing = os.pipe()
    process = subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-m", "mutation.planted", str(writing)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=[writing],
        text=True,
    )
    os.close(writing)
    try:
        content = {"path": str(path), "source": source, "tests": tests, "limits": limits}
        if process.stdin is not None:
            process.stdin.write(json.dumps(content))
            process.stdin.close()
        ended = watch(process.pid, reading, limits)
    finally:
        os.close(reading)
    process.returncode = 0  # waited for already
    return ended


def _functions() -> dict[Key, list[FunctionType]]:
    """Every function that exists, by where it was written."""
    made: dict[Key, list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            made[_key(one.__code__)].append(one)
    return dict(made)


def _caches() -> list[Cached]:
    kind = functools._lru_cache_wrapper  # noqa: SLF001 - its only name
    found = [one for one in gc.get_objects() if isinstance(one, kind)]
    return [one for one in found if one.__module__.startswith(("discreet", "research", "tests"))]


def _codes(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    """The functions in a compiled module, also those in classes and in functions."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_flags & 1:  # CO_OPTIMIZED: a function, not the body of a class
                yield _key(one), one
            yield from _codes(one)


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno
