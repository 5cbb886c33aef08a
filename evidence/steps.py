"""What is run to collect the evidence: each step is a command that writes one file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Literal, TypeAlias

from benchmarks.cases import SUITES
from benchmarks.page import machine
from discreet_studies.catalog import PLANS
from evidence.packages import environment

Kind: TypeAlias = Literal["study", "audit", "benchmark"]
ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "evidence" / "records"
"""What the last run of each step wrote, and how it ended: the pages are made from these alone."""
_PATH = re.compile(r"(?:/[\w.+-]+)+/([\w.+-]+)")
_SHOWN = ("title", "source", "seed", "checks")
"""What the pages show of a study; tables and figures are in its own report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command. Studies write their own file; the others print what is kept."""

    kind: Kind
    name: str
    command: tuple[str, ...]
    file: Path
    quick: bool = False
    lacks: tuple[str, ...] = ()
    """Public files that a study would read and was not given."""

    @property
    def printed(self) -> bool:
        """Whether what is kept is what it prints."""
        return self.kind != "study"

    @property
    def alone(self) -> bool:
        """Times are compared, so nothing else may run beside it."""
        return self.kind == "benchmark"

    @property
    def record(self) -> Path:
        """How the last run ended, beside what it wrote."""
        return self.file.with_suffix(".run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a step ended, when, and of which version. ``told``: what it said when it failed."""

    step: Step
    code: int
    seconds: float
    told: str = ""
    day: str = ""
    version: str = ""
    machine: str = ""


def steps(folder: Path, *, quick: bool, data: Path | None) -> tuple[Step, ...]:
    """All of them."""
    return (
        *_studies(folder, quick=quick, data=data),
        *_audits(folder),
        *_benchmarks(folder, quick=quick),
    )


def _studies(folder: Path, *, quick: bool, data: Path | None) -> Iterator[Step]:
    for name, plan in PLANS.items():
        file = folder / f"study-{name}.json"
        given = ("--data", str(data)) if data is not None and plan.files else ()
        less = ("--quick",) if quick else ()
        yield Step(
            kind="study",
            name=name,
            command=(*_DISCREET, "study", name, *less, *given, "--json", str(file)),
            file=file,
            quick=quick,
            lacks=tuple(one for one in plan.files if data is None or not (data / one).exists()),
        )


def _audits(folder: Path) -> Iterator[Step]:
    for name, extra in (("mechanisms", ()), ("published", ("--published",))):
        command = (*_DISCREET, "audit", *extra, "--json")
        yield Step(kind="audit", name=name, command=command, file=folder / f"audit-{name}.jsonl")


def _benchmarks(folder: Path, *, quick: bool) -> Iterator[Step]:
    """The suites, and the comparisons that have pages of their own; all write into those pages."""
    once = ("--repeat", "1") if quick else ("--update-docs",)
    asked = {name: ("benchmarks", name, "--json", *once) for name in SUITES}
    regression = str(folder / "benchmark-regression.jsonl")
    less = {
        "regression-comparison": ("--results", regression),
        "learned-comparison": ("--only", "median") if quick else (),
        "serve": ("--analysts", "5", "--seconds", "30", "--rows", "10000") if quick else (),
    }
    for name, extra in less.items():
        module = f"benchmarks.{name.partition('-')[0]}"
        asked[name] = (module, "--json", *extra, *(() if quick else ("--update-docs",)))
    for name, words in asked.items():
        file = folder / f"benchmark-{name}.jsonl"
        command = (sys.executable, "-m", *words)
        yield Step(kind="benchmark", name=name, command=command, file=file, quick=quick)


_DISCREET = (sys.executable, "-m", "discreet")


def run(step: Step, *, limit_s: float) -> Outcome:
    """Run a step to its end; a file of an earlier run never stands in for a failed one."""
    for old in (step.file, step.record):
        old.unlink(missing_ok=True)
    fresh = step.file.with_suffix(".part")
    where, began = machine(), time.monotonic()
    with fresh.open("w", encoding="utf-8") as out:
        code, told = _ended(step, out if step.printed else subprocess.DEVNULL, limit_s)
    if step.printed:
        fresh.replace(step.file)
    else:
        fresh.unlink()
        _shorten(step.file)
    outcome = Outcome(
        step=step,
        code=code,
        seconds=time.monotonic() - began,
        # Records are published: no paths of the machine that made them.
        told="" if code == 0 else _PATH.sub(r"\1", " ".join(told.split()[-60:])),
        day=f"{datetime.now(tz=UTC):%d %B %Y}",
        version=_version(),
        machine=where,
    )
    keep(outcome)
    return outcome


def _shorten(file: Path) -> None:
    """Leave of a study what the pages show."""
    if file.exists():
        study = json.loads(file.read_text(encoding="utf-8"))
        shown = {name: study[name] for name in _SHOWN}
        file.write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")


def _ended(step: Step, out: IO[str] | int, limit_s: float) -> tuple[int, str]:
    """Its code and what it said; at the limit all that it started is ended with it."""
    with subprocess.Popen(  # noqa: S603 - our own commands
        step.command,
        cwd=ROOT,
        env=environment() if step.kind == "study" else None,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, told = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return -1, f"given up after {limit_s:.0f} s"
        else:
            return process.returncode, told
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def keep(outcome: Outcome) -> None:
    """Write down how a step ended."""
    told = asdict(outcome)
    told["step"] = {"quick": outcome.step.quick, "lacks": outcome.step.lacks}
    outcome.step.record.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def kept(step: Step) -> Outcome:
    """How the last run of a step ended: nothing is assumed of a file without a record."""
    if not step.record.exists():
        return Outcome(step=step, code=-1, seconds=0.0, told="not run")
    told = json.loads(step.record.read_text(encoding="utf-8"))
    was = told.pop("step")
    then = replace(step, quick=was["quick"], lacks=tuple(was["lacks"]))
    return Outcome(step=then, **told)


def _version() -> str:
    """Of the package, and the commit where there is one."""
    number = version("discreet")
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return number

    def said(*words: str) -> str:
        command = (git, *words)
        return subprocess.run(  # noqa: S603 - our own commands
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    changed = " and changes" if said("status", "--porcelain", "--", "src") else ""
    return f"{number} ({said('rev-parse', '--short=7', 'HEAD')}{changed})"
