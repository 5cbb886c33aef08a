"""Run one case of one library in this process and print what it took, as JSON.

Started as ``python -P worker.py SCRIPT CASE`` with the library's own interpreter, so it uses the
standard library only. A small warm-up comes first; then the case is timed, several times when it
is short, and the fastest run counts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Answer: TypeAlias = float | tuple[float, float] | None
Work: TypeAlias = Callable[[], Answer]
SHORT_S = 0.5  # cases faster than this in total are repeated
MOST_REPEATS = 10


def load(script: Path) -> Any:
    """Import a peer's file under a name that cannot shadow the library it imports."""
    spec = importlib.util.spec_from_file_location(f"peer_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {script}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resident_mb(field: str) -> float:
    """``VmRSS`` (now) or ``VmHWM`` (peak) of this process in megabytes."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    except OSError:  # not Linux: only the peak since the start is known
        pass
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def reset_peak() -> None:
    """Forget the peak so far (Linux); elsewhere the peak includes the imports."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def timed(work: Work, *, once: bool) -> dict[str, Answer]:
    """Wall and CPU seconds of the fastest run, peak memory above the start, and the answer."""
    best, cpu = float("inf"), float("inf")
    spent, runs = 0.0, 0
    reset_peak()
    before = resident_mb("VmRSS")
    answer: Answer = None
    while runs == 0 or (not once and spent < SHORT_S and runs < MOST_REPEATS):
        start, start_cpu = time.perf_counter(), time.process_time()
        answer = work()
        took, took_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        best, cpu = min(best, took), min(cpu, took_cpu)
        spent, runs = spent + took, runs + 1
    peak = max(0.0, resident_mb("VmHWM") - before)
    return {"seconds": best, "cpu": cpu, "mb": round(peak, 1), "answer": answer}


def main() -> None:
    """Read the case from the command line, run it, print one line."""
    script, case = Path(sys.argv[1]), json.loads(sys.argv[2])
    make = getattr(load(script), case["kind"])
    make(**{**case["params"], **case["warm"]})()
    print(json.dumps(timed(make(**case["params"]), once=case["once"])))


if __name__ == "__main__":
    main()
