"""Run a case by turns: ours, each peer, ours again, so that a busy machine is unfair to nobody."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from benchmarks import adult, regression_data, visits, wide
from benchmarks.case import Case
from benchmarks.environments import HERE, ROOT, Peer

Say: TypeAlias = Callable[[str], None]
Answer: TypeAlias = float | list[float] | dict[str, float] | None
ENOUGH_S = 15.0  # a side that has run this long in total is not repeated


@dataclass(slots=True, kw_only=True)
class Side:
    """What one library took: the best of its runs."""

    peer: Peer
    runs: int = 0
    spent: float = 0.0
    best: dict[str, float] = field(default_factory=dict)
    answer: Answer = None
    note: str = ""

    def run(self, case: Case) -> None:
        """One more run in a fresh process; a failure becomes a note."""
        command = [str(self.peer.python), "-P", str(HERE / "worker.py"), str(self.peer.script)]
        try:
            done = subprocess.run(
                [*command, json.dumps(job(case, self.peer.name))],
                capture_output=True,
                check=True,
                cwd=ROOT,
                text=True,
                timeout=case.limit_s,
            )
            result = json.loads(done.stdout.splitlines()[-1])
        except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
            self.note = reason(error)
            return
        answer = result.pop("answer")
        if not all(map(math.isfinite, _numbers(answer))):
            self.note = "no finite answer"  # then its time says nothing either
            return
        self.answer = answer
        self.runs += 1
        self.spent += result["seconds"]
        for key, value in result.items():
            pick = max if key == "mb" else min  # the fastest run, but the highest peak
            self.best[key] = pick(value, self.best.get(key, value))

    def wants_more(self, repeat: int) -> bool:
        """Whether another run is worth its time."""
        return not self.note and self.runs < repeat and self.spent < ENOUGH_S


def job(case: Case, peer: str) -> dict[str, Any]:
    """What the worker is told. Parameters that describe data become the name of a file."""
    params: dict[str, Any] = case.params_for(peer)
    warm: dict[str, Any] = {**params, **case.warm}
    told = {"kind": case.kind, "once": case.once, "repetitions": case.repetitions}
    if "people" in case.params:
        params, warm = _with_file(params), _with_file(warm)
    if params.pop("adult", None):
        params["file"] = str(adult.file())
        warm = {name: value for name, value in {**params, **case.warm}.items() if name != "adult"}
    if case.kind == "regression_error" and not params["given"]:
        regression_data.file(int(params["table"]))
    if case.kind == "regression_file":
        params["file"] = str(wide.file(n=int(params["n"]), d=int(params["d"])))
        warm["file"] = str(wide.file(n=int(warm["n"]), d=int(warm["d"])))
    if case.repetitions:
        told["truth"] = visits.truth(params["file"], keys=params["keys"])
    return {**told, "params": params, "warm": warm}


def _with_file(params: dict[str, Any]) -> dict[str, Any]:
    made = {
        name: params[name] for name in ("rows", "people", "keys", "even", "csv") if name in params
    }
    kept = {
        name: value
        for name, value in params.items()
        if name not in ("rows", "people", "even", "csv")
    }
    return {**kept, "file": str(visits.file(**made))}


def reason(error: Exception) -> str:
    """What a failed process raised or else printed last, or the error itself."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"gave up after {error.timeout:.0f} s"
    if isinstance(error, subprocess.CalledProcessError) and error.returncode < 0:
        return f"ended by signal {-error.returncode}"
    lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (raised or lines or [type(error).__name__])[-1]


def measure(
    case: Case, known: dict[str, Peer], *, repeat: int, say: Say
) -> Iterator[dict[str, object]]:
    """One row for each peer of the case, and for each statistic if there are several."""
    if case.repetitions:
        repeat = 1  # its errors are what counts, and were repeated
    ours = Side(peer=known["ours"])
    sides = [Side(peer=known[name]) for name in case.peers]
    for side in sides:
        try:
            side.peer.install(say)
        except (subprocess.SubprocessError, OSError) as error:
            side.note = f"not installed: {reason(error)}"
    while any(side.wants_more(repeat) for side in [ours, *sides]):
        for side in [ours, *sides]:
            if side.wants_more(repeat):
                say(f"{case.name}: {side.peer.label}, run {side.runs + 1}")
                side.run(case)
    for side in sides:
        yield from rows(case, ours, side)


def rows(case: Case, ours: Side, theirs: Side) -> Iterator[dict[str, object]]:
    """The rows of one peer: one, or one for each statistic that was repeated for its error."""
    row = _row(case, ours, theirs)
    if not isinstance(ours.answer, dict):
        yield row | _claims("error", ours.answer) | _claims("peer_error", theirs.answer)
        return
    for statistic, error in ours.answer.items():
        found = row | {"name": f"{case.name}: {statistic}", "error": _round(error)}
        if isinstance(theirs.answer, dict):
            found["peer_error"] = _round(theirs.answer[statistic])
            found["error_ratio"] = _round(theirs.answer[statistic] / error)
        yield found


def _row(case: Case, ours: Side, theirs: Side) -> dict[str, object]:
    """The public form of a comparison: seconds, megabytes, ratio."""
    factor = case.factor(theirs.peer.name)
    ours_s, peer_s = ours.best.get("seconds"), theirs.best.get("seconds")
    if peer_s is not None:
        peer_s *= factor
    found: dict[str, object] = {
        "name": case.name,
        "ours_s": _round(ours_s),
        "peer": theirs.peer.label,
        "peer_s": _round(peer_s),
        "ratio": _round(peer_s / ours_s) if ours_s and peer_s is not None else None,
        "ours_cpu_s": _round(ours.best.get("cpu")),
        "ours_mb": ours.best.get("mb"),
    }
    ours_cpu, peer_cpu = ours.best.get("cpu"), theirs.best.get("cpu")
    if peer_cpu is not None:
        peer_cpu *= factor
        found["peer_cpu_s"] = _round(peer_cpu)
        # On a busy machine wall time flatters whoever has more and shorter runs.
        found["ratio_cpu"] = _round(peer_cpu / ours_cpu) if ours_cpu else None
    if factor == 1:  # the memory of a smaller job says nothing about the full one
        found["peer_mb"] = theirs.best.get("mb")
    notes = [f"ours failed: {ours.note}" if ours.note else "", theirs.note]
    if factor != 1:
        notes.append(f"extrapolated from 1/{factor:.0f} of the work")
    if note := "; ".join(text for text in notes if text):
        found["note"] = note
    return found


def _numbers(answer: Answer) -> list[float]:
    match answer:
        case None:
            return []
        case dict():
            return list(answer.values())
        case list():
            return answer
    return [answer]


def _claims(key: str, answer: Answer) -> dict[str, object]:
    """What was computed: the claim, and what is proved to be unavoidable if both are known."""
    if answer is None or isinstance(answer, dict):
        return {}
    if isinstance(answer, list):
        return {key: answer[1], f"{key}_lower": answer[0]}
    return {key: answer}


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
