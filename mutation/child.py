"""The process in which tests meet a mutant, and how it is watched."""

from __future__ import annotations

import os
import resource
import select
import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pytest

Fate: TypeAlias = Literal["killed", "timeout", "survived", "untested"]
FAST = "not slow and not postgres and not spark and not browser and not lint"
OPTIONS = ("-q", "-n0", "-s", "-p", "no:cacheprovider", "-m", FAST)
_MEMORY = 8 << 30
_PASSED, _FAILED = b".", b"F"


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went: what was noticed, by which of the tests, after how many seconds of a core."""

    fate: Fate
    test: int
    seconds: float


def prepare() -> None:
    """A group of its own, which can be ended as a whole; no output; a limit of memory."""
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def grouped(session: pytest.Session) -> dict[str, list[pytest.Item]]:
    """The cases of each test function."""
    made: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in session.items:
        made[item.nodeid.partition("[")[0]].append(item)
    return dict(made)


def run(groups: Sequence[list[pytest.Item]], limits: Sequence[float], pipe: int) -> None:
    """Run the tests in order and tell of each that passed, up to the first that fails."""
    items = [(item, number) for number, group in enumerate(groups) for item in group]
    reached = -1
    for (item, number), following in zip(items, [*items[1:], (None, -1)], strict=True):
        if number != reached:
            reached = number
            _allow(limits[number])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following[0])
        if item.session.testsfailed:
            os.write(pipe, _FAILED)
            return
        if following[1] != number:
            os.write(pipe, _PASSED)


def _allow(seconds: float) -> None:
    """So many seconds of a core from now on; the kernel ends the process after them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def watch(child: int, pipe: int, limits: Sequence[float]) -> Ended:
    """Wait until a test fails or all have passed; the clock only ends what sleeps for ever."""
    fate, number = _read(pipe, limits)
    end(child)
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) == -signal.SIGXCPU:
        fate = "timeout"
    return Ended(fate, number, used.ru_utime + used.ru_stime)


def _read(pipe: int, limits: Sequence[float]) -> tuple[Fate, int]:
    for number, limit in enumerate(limits):
        if not select.select([pipe], [], [], 10 * limit + 60)[0]:
            return "timeout", number
        if os.read(pipe, 1) != _PASSED:
            return "killed", number
    return "survived", len(limits)


def end(child: int) -> None:
    """End the process and those it started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
