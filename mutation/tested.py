"""Which tests run a line, as a run of coverage.py with ``dynamic_context`` recorded it."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from coverage.numbits import numbits_to_nums

from mutation.mutants import Place
from mutation.packages import ROOT, SOURCES

_Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Tested:
    """For each line, by path from the root, the tests that run it."""

    tests: dict[_Line, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def read(cls, files: Iterable[Path]) -> Tested:
        """What one or several runs recorded."""
        made = cls()
        for file in files:
            with closing(sqlite3.connect(file)) as base:
                rows = base.execute(
                    "select f.path, c.context, b.numbits from line_bits b "
                    "join file f on f.id = b.file_id join context c on c.id = b.context_id"
                )
                for path, context, bits in rows:
                    made._add(Path(path), context, numbits_to_nums(bits))
        return made

    def _add(self, recorded: Path, context: str, lines: Iterable[int]) -> None:
        here, moved = _moved(recorded)
        if moved is not None:
            lines = [moved[line] for line in lines if line in moved]
        test = _node(context)
        if test is not None:
            for line in lines:
                self.tests[here, line].add(test)

    def of(self, file: str, place: Place, *, far: bool) -> set[str]:
        """The tests that run one of the lines; those of the whole file where none is known.

        Tests of the same package count alone where there are any, unless ``far`` is set.
        """
        lines = range(place.first, place.last + 1)
        found = {test for line in lines for test in self.tests.get((file, line), ())}
        found = found or set().union(*(t for (path, _), t in self.tests.items() if path == file))
        home = re.sub("src/discreet(?:_studies)?/", "tests/", file)
        home = home[: home.index("/", home.index("tests/") + 6) + 1]
        near = {test for test in found if test.startswith(home)}
        return found if far or not near else near


@cache
def _moved(recorded: Path) -> tuple[str, dict[int, int] | None]:
    """The file here, and where its lines are now if it was recorded in another checkout."""
    parts = recorded.parts
    inside = parts[len(parts) - parts[::-1].index("src") :]
    sources = [source for source in SOURCES if (source / inside[0]).is_dir()] or SOURCES
    here = sources[0].joinpath(*inside).relative_to(ROOT)
    if recorded == ROOT / here or not (recorded.is_file() and (ROOT / here).is_file()):
        return here.as_posix(), None
    old, new = (file.read_text(encoding="utf-8").splitlines() for file in (recorded, ROOT / here))
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return here.as_posix(), {a + i + 1: b + i + 1 for a, b, many in blocks for i in range(many)}


@cache
def _node(context: str) -> str | None:
    """A context such as ``tests.noise.test_laplace.test_mean`` as pytest names it."""
    parts = context.split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = ROOT.joinpath(*parts[:end]).with_suffix(".py")
        if file.is_file():
            return f"{file.relative_to(ROOT).as_posix()}::{'::'.join(parts[end:])}"
    return None
