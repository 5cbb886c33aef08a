"""What other installed packages add: found by their entry points, imported when first used."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

AUDITS = "discreet.audits"
"""Entry points of this group are `discreet.audit.case.AuditSuite` objects."""
COMMANDS = "discreet.commands"
"""Entry points of this group are click commands of ``discreet``."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name, in the order of their names."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda p: p.name)}
