"""Values and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_LARGE = 10_000


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table, a line each, with an empty one behind it."""
    lines = [heads, ["---"] * len(heads), *([cell(one) for one in row] for row in rows)]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]


def cell(value: object) -> str:
    """A value that cannot break a table. Text may hold links and code."""
    return number(value).replace("|", "∣").replace("\n", " ").replace("<", "&lt;")


def number(value: object) -> str:
    """Five digits are enough; a list is an order."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) >= _LARGE else str(value)
        case float() if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        case float():
            return f"{value:.5g}"
        case list() | tuple():
            return " < ".join(map(number, value))
        case _:
            return str(value)
