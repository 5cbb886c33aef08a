"""What other installed packages add: found by their entry points, imported when first used."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

AUDITS = "discreet.audits"
"""Entry points of this group are `discreet.audit.case.AuditSuite` objects."""
COMMANDS = "discreet.commands"
"""Entry points of this group are click commands of ``discreet``."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name; those whose package is gone are left out."""
    found = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point for point in found if find_spec(point.module.partition(".")[0])}
