"""Run one case of one library in this process and print what it took, as JSON.

Started as ``python -P worker.py SCRIPT CASE`` with the library's own interpreter, so it uses the
standard library only. A small warm-up comes first; then the case is timed, several times when it
is short, and the fastest run counts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Table: TypeAlias = dict[str, list[float]]
"""An answer for each group, of each statistic."""
Answer: TypeAlias = float | tuple[float, float] | dict[str, float] | None
Work: TypeAlias = Callable[[], Any]
SHORT_S = 0.5  # cases faster than this in total are repeated
MOST_REPEATS = 10


def load(script: Path) -> Any:
    """Import a peer's file under a name that cannot shadow the library it imports."""
    # Last, so that nothing here can hide a library: what peers share is in `benchmarks.tasks`.
    root = str(Path(__file__).parents[1])
    if root not in sys.path:
        sys.path.append(root)
    spec = importlib.util.spec_from_file_location(f"peer_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {script}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def family() -> dict[int, list[str]]:
    """This process and all below it (a JVM, its workers): the fields of ``/proc/PID/stat``."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may have ended
            # The name comes first, in parentheses, and may hold spaces.
            stats[int(path.parent.name)] = (
                path.read_text("utf-8", "replace").rpartition(")")[2].split()
            )
    known, before = {os.getpid()}, 0
    while len(known) > before:
        before = len(known)
        known |= {pid for pid, stat in stats.items() if int(stat[1]) in known}
    return {pid: stats[pid] for pid in known if pid in stats}


def cpu_seconds() -> float:
    """What this process and all below it have used, those that have ended included."""
    below = [stat for pid, stat in family().items() if pid != os.getpid()]
    ticks = sum(int(field) for stat in below for field in stat[11:15])
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def resident_mb(field: str) -> float:
    """``VmRSS`` (now) or ``VmHWM`` (peak) in megabytes, of this process and all below it."""
    found = 0.0
    for pid in family():
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines():
                if line.startswith(field):
                    found += int(line.split()[1]) / 1024
    if found:
        return found
    # Not Linux: only the peak since the start is known.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def reset_peak() -> None:
    """Forget the peaks so far (Linux); elsewhere the peak includes the imports."""
    for pid in family():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def timed(work: Work, *, once: bool) -> dict[str, Answer]:
    """Wall and CPU seconds of the fastest run, peak memory above the start, and the answer."""
    best, cpu = float("inf"), float("inf")
    spent, runs = 0.0, 0
    reset_peak()
    before = resident_mb("VmRSS")
    answer: Answer = None
    while runs == 0 or (not once and spent < SHORT_S and runs < MOST_REPEATS):
        start_cpu, start = cpu_seconds(), time.perf_counter()
        answer = work()
        took, took_cpu = time.perf_counter() - start, cpu_seconds() - start_cpu
        best, cpu = min(best, took), min(cpu, took_cpu)
        spent, runs = spent + took, runs + 1
    peak = max(0.0, resident_mb("VmHWM") - before)
    whole = None if isinstance(answer, dict) else answer  # a table is not told
    return {"seconds": best, "cpu": cpu, "mb": round(peak, 1), "answer": whole}


def erring(work: Work, truth: Table, repetitions: int) -> dict[str, float]:
    """The root of the mean squared error of each statistic over all groups and repetitions."""
    squares = dict.fromkeys(truth, 0.0)
    for _ in range(repetitions):
        answer: Table = work()
        for name, exact in truth.items():
            if len(answer[name]) != len(exact):
                raise ValueError(f"{name} has {len(answer[name])} groups, not {len(exact)}")
            errors = (found - true for found, true in zip(answer[name], exact, strict=True))
            squares[name] += sum(error**2 for error in errors) / len(exact)
    return {name: math.sqrt(total / repetitions) for name, total in squares.items()}


def main() -> None:
    """Read the case from the command line, run it, print one line."""
    script, case = Path(sys.argv[1]), json.loads(sys.argv[2])
    make = getattr(load(script), case["kind"])
    make(**case["warm"])()
    work = make(**case["params"])
    result = timed(work, once=case["once"])
    if case["repetitions"]:
        result["answer"] = erring(work, case["truth"], case["repetitions"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
