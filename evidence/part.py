"""A part of the evidence: lines of the index, and what is open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from evidence.steps import ROOT, Outcome

Record: TypeAlias = dict[str, Any]
FOLDER = ROOT / "docs" / "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Something that a reader should not take for shown."""

    where: str
    what: str
    why: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of the index."""

    title: str
    lines: Sequence[str]
    open: Sequence[Open]


def records(outcome: Outcome) -> list[Record]:
    """What a step wrote: a study as one object, anything else as one a line."""
    file = outcome.step.file
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8")
    if outcome.step.kind == "study":
        return [json.loads(text)]
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def unfinished(one: Outcome) -> Open:
    """A step that did not run to its end, and what it said."""
    return Open(
        where=f"{one.step.kind} {one.step.name}",
        what="did not finish" if one.day else "was not run",
        why=one.told or f"exit code {one.code}",
        failed=True,
    )


def made(one: Outcome) -> str:
    """When a step was run, and of which version."""
    less = ", with less simulation" if one.step.quick else ""
    return f"{one.day}, {one.version}{less}"


def write(name: str, lines: Sequence[str]) -> None:
    """A page of its own."""
    (FOLDER / f"{name}.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
