"""`python -m evidence.theorems`: the index of theorems, from the comments that state them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path

from benchmarks.environments import ROOT
from evidence import usage
from evidence.counterexamples import COUNTEREXAMPLES
from evidence.markdown import table
from evidence.usage import Place, definitions, module_of

DOCS = ROOT / "docs"
PAGE = DOCS / "theory" / "theorems.md"
PACKAGES = (
    *("core", "boundary", "noise", "accounting", "data", "mechanisms", "query", "ranges"),
    *("intervals", "marginals"),
    *(
        "ledger",
        "interop",
        "tables",
        "local",
        "models",
        "audit",
        "disclosure",
        "report",
        "cards",
        "spec",
        "client",
    ),
    *("cli", "server", "studies"),
)
"""Of ``discreet``, in the order of the page; the last is ``discreet_studies``."""
STATUSES = ("proved", "cited", "evident", "corrected")
_PART = re.compile(r"^(Theorem|Proof|Source|Needs)s?: ", re.MULTILINE)
_CORRECTED = re.compile(r"\bcorrect(?:ed|ion)\b|\bAs published\b")
_CODE = re.compile(r"`(?:\w+\.)*(\w+)(?:\(.*?\))?`")
_MOST_TESTS = 3
_ABOUT = (
    "Every claim that the code makes in a comment below a docstring: the statement, its "
    "conditions, its proof, its source, and the tests that hold the code to it. Collected by "
    "`python -m evidence.theorems`; nothing here is written by hand."
)
_STATUSES = """\
- *proved*: the proof stands here, and beside the code; more of it on the page of theory.
- *cited*: proved in the source.
- *evident*: follows from the definition, or from the statement that it names.
- *corrected*: what was published does not hold as it stands. Here is what holds, with its proof;
  the counterexample is computed where the link leads.
"""
_MORE = (
    "Published claims that nothing here rests on, and that are broken, are in the [audit of "
    "published claims](../evidence/audit-published.md) and on the pages of the studies."
)


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """What the comment below a docstring claims, and where."""

    place: Place
    parts: Mapping[str, str]

    @property
    def name(self) -> str:
        """Module and name, without the package."""
        below = self.place.below
        return f"{below}.{self.place.of}" if self.place.of else below

    @property
    def status(self) -> str:
        """Proved: a proof stands beside it. Cited: only its source does."""
        if any(_CORRECTED.search(self.parts.get(part, "")) for part in ("", "Theorem", "Source")):
            return "corrected"
        if "Proof" in self.parts or "Proof:" in self.parts["Theorem"]:
            return "proved"
        return "cited" if "Source" in self.parts else "evident"

    @cached_property
    def tests(self) -> tuple[str, tuple[str, ...]]:
        """The files that exercise it, and by way of what."""
        return usage.exercised(self.place)


def theorems() -> Iterator[Theorem]:
    """All of them, by package and in the order of the lines."""
    for package in PACKAGES:
        for path in sorted(usage.folder(package).rglob("*.py")):
            yield from stated(path)


def stated(path: Path) -> Iterator[Theorem]:
    """The theorems of one module."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node, of in definitions(usage.tree(path)):
        summary = (ast.get_docstring(node) or "").partition("\n")[0]
        parts = {"": summary} | _parts(_comment(node, lines)) if summary else {}
        if "Theorem" in parts:
            yield Theorem(place=Place(module=module_of(path), of=of), parts=parts)


def _comment(node: usage.Scope, lines: Sequence[str]) -> str:
    """The block of comments directly below a docstring."""
    start = node.body[0].end_lineno or 0
    start += not lines[start : start + 1] or not lines[start].strip()
    block = takewhile(lambda line: line.lstrip().startswith("#"), lines[start:])
    return "\n".join(line.strip().removeprefix("#").removeprefix(" ") for line in block)


def index() -> str:
    """The page."""
    found = list(theorems())
    lines = ["# Theorems", "", _ABOUT, "", _STATUSES, _MORE, "", *_counts(found)]
    for package in PACKAGES:
        own = [one for one in found if one.place.package == package]
        if own:
            lines += [f"## {package}", "", *(line for one in own for line in _entry(one))]
    return "\n".join(lines).rstrip() + "\n"


def _counts(found: Sequence[Theorem]) -> list[str]:
    counts = Counter((one.place.package, one.status) for one in found)
    rows = {
        f"[{package}](#{package})": [counts[package, status] for status in STATUSES]
        for package in PACKAGES
    }
    rows["all"] = [sum(counts[package, status] for package in PACKAGES) for status in STATUSES]
    filled = ([package, *own, sum(own)] for package, own in rows.items() if any(own))
    return table(["package", *STATUSES, "all"], filled)


def _entry(one: Theorem) -> Iterator[str]:
    """The statement, then whose it is, its proof and its tests."""
    anchor = f'<a id="{one.place.package}.{one.name}"></a>'
    yield f"- {anchor}**`{one.name}`**, *{one.status}*: {_prose(one.parts['Theorem'])}"
    yield ""
    for part in ("Needs", "Proof"):
        if part in one.parts:
            yield f"    {part}: {_prose(one.parts[part])}"
            yield ""
    told = [f"Source: {_prose(one.parts['Source'])}"] if "Source" in one.parts else []
    if pages := _theory(one):
        told.append(f"Theory: {', '.join(pages)}")
    if one.status == "corrected":
        told.append(f"Counterexample: {COUNTEREXAMPLES[one.name]}")
    told.append(f"Tests: {_tests(one)}")
    yield f"    {' · '.join(told)}"
    yield ""


def _tests(one: Theorem) -> str:
    """The first of them, the module's own before others."""
    through, files = one.tests
    shown = ", ".join(f"`{path}`" for path in files[:_MOST_TESTS])
    return f"{shown}, through `{through}`" if through else shown


def _theory(one: Theorem) -> list[str]:
    """Pages of theory that speak of it, or that it names."""
    told = " ".join(one.parts.values())
    return [
        f"[{page.removesuffix('.md')}]({page})"
        for page, names in _pages()
        if f"theory/{page}" in told or one.place.top in names
    ]


@cache
def _pages() -> tuple[tuple[str, frozenset[str]], ...]:
    """The pages of theory but for this one, and the names in their marks of code."""
    return tuple(
        (path.name, frozenset(_CODE.findall(path.read_text(encoding="utf-8"))))
        for path in sorted(PAGE.parent.glob("*.md"))
        if path != PAGE
    )


def _prose(text: str) -> str:
    """What is no code keeps no meaning in Markdown."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(piece if piece.startswith("`") else _plain(piece) for piece in pieces)


def _plain(text: str) -> str:
    return re.sub(r"([*_\[\]<])", r"\\\1", text)


def _parts(text: str) -> dict[str, str]:
    """The paragraphs of a comment by their names."""
    found = list(_PART.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)][: len(found)]
    made: dict[str, str] = {}
    for one, end in zip(found, ends, strict=True):
        paragraph = text[one.end() : end].split("\n\n", maxsplit=1)[0]
        made.setdefault(one[1], " ".join(paragraph.split()))
    return made


if __name__ == "__main__":
    PAGE.write_text(index(), encoding="utf-8")
