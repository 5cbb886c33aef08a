"""`discreet check`: what is in a file, exactly, on the screen of its owner."""

from __future__ import annotations

import sys
from pathlib import Path

from discreet.core.errors import InvalidArgument
from discreet.data.source import open_source
from discreet.spec import table as declared
from discreet.tables.check import check_rows


def run(source: str, path: Path, *, private_output: bool) -> int:
    """Print exact counts to a terminal; nothing is charged or written."""
    if not private_output and not sys.stdout.isatty():
        raise InvalidArgument(
            "check prints exact values of people, and this output is not a terminal: a log or a "
            "file would keep them. If that is what you want, say --private-output."
        )
    content = declared.read(path, ("title", "table", "columns", "account", "statistic"))
    table = declared.known("table", content.get("table", {}), declared.TABLE)
    setting = declared.table_spec(table, content.get("columns"))
    opened = open_source(
        source,
        delimiter=table.get("delimiter", ","),
        records=table.get("records", "lines"),
        engine=table.get("engine"),
        spark=table.get("spark"),
    )
    check_rows(opened, setting).show()
    return 0
