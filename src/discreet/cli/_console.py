"""Where words of other people are printed: names and labels are shown as they are."""

from __future__ import annotations

from rich.console import Console


def literal_console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that takes nothing for markup: [other] is a label, and [/] is no mistake."""
    return Console(stderr=stderr, soft_wrap=soft_wrap, markup=False, emoji=False)
