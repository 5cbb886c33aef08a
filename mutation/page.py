"""``python -m mutation.page``: docs/evidence/mutation.md from what the runs left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutation.argued import Argument, arguments
from mutation.mutants import OPERATORS
from mutation.packages import ROOT, located

PAGE = ROOT / "docs" / "evidence" / "mutation.md"
_HEAD = """\
# Mutation testing

A test that no broken source can fail proves nothing. `make mutation` breaks the packages
that carry the guarantees, one place at a time and at random, and runs the tests that run the
broken line. A mutant is *noticed* if one of them fails, or does not end within five times its usual
time and ten seconds of a core. This page is written by that command, and so is every number on
it.

What is changed:

{operators}

What is not: docstrings, words of errors, annotations, decorators, names that begin with two
underscores, `strict=` of `zip`.

Only the tests of the package itself count where there are any, none that is marked slow, the
shortest first and as many as end within so many seconds of a core as the table says. A test
that fails on the source as it is does not count. Mutants that compute the same for every input
are *equivalent*: each is argued below, and an argument that a test refutes is reported. The
rate leaves them out; the raw rate does not. *Tolerated* mutants differ, but harm neither a
guarantee nor an answer; they count as survivors.

| Package | Mutants | Tried | Noticed | by time | Equivalent | Rate | Raw rate | Seed | Seconds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def write(folder: Path, page: Path = PAGE) -> None:
    """Write the page from all results in a folder."""
    runs = sorted(folder.glob("*.json"))
    contents = [json.loads(run.read_text(encoding="utf-8")) for run in runs]
    packages = [content for content in contents if "tried" in content]
    head = _HEAD.format(operators="\n".join(f"- {words}" for words in OPERATORS))
    tables = "".join(_row(content) for content in packages)
    rest = "".join(part for content in packages for part in _survivors(content))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(head + tables + rest, encoding="utf-8")


def _name(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return row["file"], row["function"], row["line"], row["change"]


def _left(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in content["tried"] if row["fate"] in ("survived", "untested")]


def _row(content: dict[str, Any]) -> str:
    argued = {one.mutant: one for one in arguments(content["package"])}
    left, tried = _left(content), len(content["tried"])
    said = [argued.get(_name(row)) for row in left]
    equivalent = sum(one is not None and one.kind == "equivalent" for one in said)
    noticed = tried - len(left)
    slow = sum(row["fate"] == "timeout" for row in content["tried"])
    name = content["under"] or content["package"]
    return (
        f"| `{name}` | {content['all']} | {tried} | {noticed} | {slow} | {equivalent} "
        f"| {noticed / (tried - equivalent):.1%} | {noticed / tried:.1%} | {content['seed']} "
        f"| {content.get('cap', 60.0):g} |\n"
    )


def _survivors(content: dict[str, Any]) -> Iterator[str]:
    """Every mutant that no test noticed, with what is said of it."""
    argued = {one.mutant: one for one in arguments(content["package"])}
    yield f"\n## Survivors of `{content['package']}`\n\n"
    yield "| Where | Line | Change | Why it is left |\n| --- | --- | --- | --- |\n"
    for row in _left(content):
        where = f"`{row['file']}` {row['function'] or 'at import'}"
        line, change = (_code(row[name]) for name in ("line", "change"))
        why = _why(argued.get(_name(row)), row)
        yield f"| {where} | {line} | {change} | {why} |\n"


def _why(argument: Argument | None, row: dict[str, Any]) -> str:
    if argument is not None:
        return f"{argument.kind}: {argument.why}"
    file = located(row["file"])
    here = file.exists() and row["line"] in file.read_text(encoding="utf-8")
    return "not argued" if here else "the line is gone since this run"


def _code(text: str) -> str:
    """Code in a cell of a table."""
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in escaped else f"`{escaped}`"


if __name__ == "__main__":
    write(ROOT / "build" / "mutation")
