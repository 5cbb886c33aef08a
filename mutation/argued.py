"""Arguments why a mutant cannot, or need not, be noticed: ``mutation/arguments/PACKAGE.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What is said of a mutant, which is named by what it changes and not by a line's number."""

    kind: Literal["equivalent", "tolerated"]
    file: str
    function: str
    line: str
    change: str
    why: str

    @property
    def mutant(self) -> tuple[str, str, str, str]:
        """What names the mutant."""
        return self.file, self.function, self.line, self.change


def arguments(package: str) -> list[Argument]:
    """All arguments about a package."""
    file = FOLDER / f"{package}.toml"
    written = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kinds: tuple[Literal["equivalent"], Literal["tolerated"]] = ("equivalent", "tolerated")
    return [Argument(kind=kind, **one) for kind in kinds for one in written.get(kind, [])]
