"""What is run to collect the evidence: each step is a command that writes one file."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from benchmarks.cases import SUITES
from discreet.studies.catalogue import PLANS

Kind: TypeAlias = Literal["study", "audit", "benchmark"]
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command. Studies write their own file; the others print what is kept."""

    kind: Kind
    name: str
    command: tuple[str, ...]
    file: Path
    printed: bool

    @property
    def alone(self) -> bool:
        """Times are compared, so nothing else may run beside it."""
        return self.kind == "benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a step ended. ``told``: the last lines of what it said when it failed."""

    step: Step
    code: int
    seconds: float
    told: str = ""


def steps(folder: Path, *, quick: bool, data: Path | None) -> tuple[Step, ...]:
    """All of them, the longest studies first."""
    discreet = (sys.executable, "-m", "discreet")
    made = []
    for name, plan in PLANS.items():
        file = folder / f"study-{name}.json"
        given = ("--data", str(data)) if data is not None and plan.files else ()
        less = ("--quick",) if quick else ()
        command = (*discreet, "study", name, *less, *given, "--json", str(file))
        made.append(Step(kind="study", name=name, command=command, file=file, printed=False))
    for name, extra in (("mechanisms", ()), ("published", ("--published",))):
        file = folder / f"audit-{name}.jsonl"
        command = (*discreet, "audit", *extra, "--json")
        made.append(Step(kind="audit", name=name, command=command, file=file, printed=True))
    for name in SUITES:
        file = folder / f"benchmark-{name}.jsonl"
        once = ("--repeat", "1") if quick else ()
        command = (sys.executable, "-m", "benchmarks", name, "--json", *once)
        made.append(Step(kind="benchmark", name=name, command=command, file=file, printed=True))
    return tuple(made)


def run(step: Step, *, limit_s: float) -> Outcome:
    """Run a step to its end; a file of an earlier run never stands in for a failed one."""
    step.file.unlink(missing_ok=True)
    fresh = step.file.with_suffix(".part")
    began = time.monotonic()
    try:
        with fresh.open("w", encoding="utf-8") as out:
            done = subprocess.run(  # noqa: S603 - our own commands
                step.command,
                cwd=ROOT,
                stdout=out if step.printed else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=limit_s,
            )
        code, told = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, told = -1, f"given up after {limit_s:.0f} s"
    if step.printed:
        fresh.replace(step.file)
    else:
        fresh.unlink()
    return Outcome(
        step=step,
        code=code,
        seconds=time.monotonic() - began,
        told="" if code == 0 else " ".join(told.split()[-60:]),
    )
