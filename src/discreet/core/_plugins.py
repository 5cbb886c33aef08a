"""What other installed packages add: found by their entry points, imported when first used."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

AUDITS = "discreet.audits"
"""Entry points of this group are `discreet.audit.case.AuditSuite` objects."""
COMMANDS = "discreet.commands"
"""Entry points of this group are click commands of ``discreet``."""
MECHANISMS = "discreet.mechanisms"
"""Entry points of this group make a mechanism that certifies itself."""
SOURCES = "discreet.sources"
"""Entry points of this group, named as the beginning of an address, open it as a table."""
SECTIONS = "discreet.report_sections"
"""Entry points of this group write a title and paragraphs about the releases of a report."""
GROUPS = (AUDITS, COMMANDS, MECHANISMS, SECTIONS, SOURCES)
_OWN = "discreet"


def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name; those whose package is gone are left out."""
    found = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point for point in found if find_spec(point.module.partition(".")[0])}


def load(point: EntryPoint) -> Any:
    """What an entry point names; None, with a warning, if its package cannot be imported."""
    try:
        return point.load()
    except Exception as error:  # noqa: BLE001 - code of others may fail in any way
        warn_of(point, error)
        return None


def warn_of(point: EntryPoint, error: Exception) -> None:
    """Say whose code failed, and leave it out."""
    warnings.warn(
        f"{point.name!r} of the package {_package(point)} ({point.group}) is left out: "
        f"{type(error).__name__}.",
        RuntimeWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """What another package adds."""

    group: str
    name: str
    package: str
    version: str
    loads: bool


def guests() -> list[Guest]:
    """All that other packages add; each is imported."""
    return [
        Guest(
            group=group,
            name=name,
            package=_package(point),
            version="" if point.dist is None else point.dist.version,
            loads=load(point) is not None,
        )
        for group in GROUPS
        for name, point in plugins(group).items()
        if _package(point) != _OWN
    ]


def _package(point: EntryPoint) -> str:
    return point.module.partition(".")[0] if point.dist is None else point.dist.name
