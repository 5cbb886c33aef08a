"""Results as a table on the terminal and as a page of the documentation."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from rich.table import Table

from benchmarks.environments import ROOT

Row: TypeAlias = Mapping[str, object]
PAGE = ROOT / "docs" / "benchmarks.md"
COLUMNS = {
    "case": "name",
    "ours, s": "ours_s",
    "peer": "peer",
    "peer, s": "peer_s",
    "ratio": "ratio",
    "ratio, CPU": "ratio_cpu",
    "ours, MB": "ours_mb",
    "peer, MB": "peer_mb",
    "ours, {}": "error",
    "ours, {} at least": "error_lower",
    "peer, {}": "peer_error",
    "{} ratio": "error_ratio",
    "note": "note",
}
ERRORS = {
    "accounting": "ε",
    "tables": "RMSE",
    "ranges": "RMSE",
    "local": "√n RMSE",
    "median": "RMSE",
    "sgd": "accuracy",
    "regression": "relative error",
}
"""What the answers of a suite are."""


def table(rows: Iterable[Row], title: str) -> Table:
    """For a person at a terminal."""
    kept = list(rows)
    shown = _used(kept, title)
    drawn = Table(title=title)
    for heading in shown:
        words = heading in ("case", "peer", "note")
        drawn.add_column(heading, justify="left" if words else "right", overflow="fold")
    for row in kept:
        drawn.add_row(*(_text(row.get(key)) for key in shown.values()))
    return drawn


def update(suite: str, rows: Iterable[Row]) -> None:
    """Replace this suite's section of the page, with the machine and the day."""
    replace_section(suite, _markdown(list(rows), suite))


def replace_section(name: str, lines: Iterable[str], *, page: Path | None = None) -> None:
    """Write lines between the marks of a section, with the machine and the day."""
    page = PAGE if page is None else page
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    section = "\n".join((begin, "", f"*{machine()}*", "", *lines, "", end))
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    text, found = re.subn(pattern, lambda _: section, text, flags=re.DOTALL)
    if found != 1:
        raise ValueError(f"{page.name} must hold one section between {begin} and {end}")
    page.write_text(text, encoding="utf-8")


def machine() -> str:
    """Where and when: processor, cores, how busy, versions, date."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return ", ".join(
        (
            models[0] if models else platform.processor() or platform.machine(),
            f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}, of which the run itself is 1)",
            f"Python {platform.python_version()}",
            f"NumPy {version('numpy')}",
            f"{datetime.now(tz=UTC):%d %B %Y}",
        )
    )


def _used(rows: list[Row], suite: str) -> dict[str, str]:
    """Only columns that hold something."""
    return {
        heading.format(ERRORS.get(suite, "answer")): key
        for heading, key in COLUMNS.items()
        if any(row.get(key) is not None for row in rows)
    }


def _markdown(rows: list[Row], suite: str) -> list[str]:
    shown = _used(rows, suite)
    cells = [[_text(row.get(key)) for key in shown.values()] for row in rows]
    marks = ["---" if heading in ("case", "peer", "note") else "---:" for heading in shown]
    return [line(shown), line(marks), *(line(row) for row in cells)]


def line(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
