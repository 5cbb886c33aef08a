"""``python -m evidence.theorems``: the index of theorems, from the docstrings that state them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from evidence.markdown import table
from evidence.steps import ROOT

_Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
PAGE = ROOT / "docs" / "theory" / "theorems.md"
_ROOMS = (
    *("core", "noise", "accounting", "mechanisms", "data", "queries", "ledger", "tables", "local"),
    *("models", "leakage", "disclosure", "studies", "report", "apps"),
)
_PART = re.compile(r"^ *(Theorem|Proof|Source|Needs)s?: ", re.MULTILINE)
_CORRECTED = re.compile(
    r"\bcorrect(ed|s|ion)\b|as_published|as published|as printed", re.IGNORECASE
)
_MOST_TESTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """What a docstring claims, and where."""

    path: Path
    name: str
    line: int
    parts: Mapping[str, str]

    @property
    def status(self) -> str:
        """Proved: a proof stands beside it. Cited: only its source does."""
        told = " ".join(self.parts.values())
        proved = "Proof" in self.parts
        if _CORRECTED.search(told):
            return "corrected, proved" if proved else "corrected"
        return "proved" if proved else "cited" if "Source" in self.parts else "stated"


def theorems(path: Path) -> Iterator[Theorem]:
    """The theorems of one module, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node, name in _named(tree, ""):
        text = ast.get_docstring(node) or ""
        parts = _parts(text)
        if "Theorem" in parts:
            line = getattr(node, "lineno", 1)
            yield Theorem(path=path, name=name or path.stem, line=line, parts=parts)


def index() -> str:
    """The page."""
    lines = [
        "# Theorems",
        "",
        _ABOUT,
        "",
    ]
    for room in _ROOMS:
        folder = ROOT / "src" / "discreet" / room
        found = [one for path in sorted(folder.rglob("*.py")) for one in theorems(path)]
        if not found:
            continue
        rows = [
            (
                f"`{one.path.relative_to(folder).with_suffix('').as_posix()}` **{one.name}**",
                one.parts["Theorem"],
                one.parts.get("Source", ""),
                one.status,
                ", ".join(_tests(one, room)),
            )
            for one in found
        ]
        heads = ["code", "statement", "source", "status", "tests"]
        lines += [f"## {room}", "", *table(heads, rows), ""]
    return "\n".join(lines)


_ABOUT = (
    "Every claim that code makes in its docstring, collected by `python -m evidence.theorems`. "
    "*Proved*: the proof stands in the docstring or on the page that it names. *Cited*: proved in "
    "the source. *Corrected*: what was published does not hold as it stands; the docstring, the "
    "studies and `discreet audit --published` show the counterexample. *Stated*: follows from the "
    "definition. Tests: the first files that exercise the name."
)


def _named(node: _Scope, prefix: str) -> Iterator[tuple[_Scope, str]]:
    if isinstance(node, ast.Module):
        yield node, ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield child, name
            yield from _named(child, f"{name}.")


def _parts(text: str) -> dict[str, str]:
    found = list(_PART.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)][: len(found)]
    made: dict[str, str] = {}
    for one, end in zip(found, ends, strict=True):
        paragraph = text[one.end() : end].split("\n\n", maxsplit=1)[0]
        made.setdefault(one[1], " ".join(paragraph.split()))
    return made


@cache
def _words() -> tuple[tuple[str, frozenset[str]], ...]:
    """The words of every test file."""
    return tuple(
        (
            path.relative_to(ROOT / "tests").as_posix(),
            frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8"))),
        )
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    )


def _tests(one: Theorem, room: str) -> list[str]:
    """Those that name it, the module's own first."""
    name = one.name.split(".", maxsplit=1)[0]
    found = [path for path, words in _words() if name in words]
    found.sort(key=lambda path: (one.path.stem not in path, not path.startswith(room)))
    return [f"`{path}`" for path in found[:_MOST_TESTS]]


if __name__ == "__main__":
    PAGE.write_text(index(), encoding="utf-8")
