"""Writes the fixtures: ``python -m tests.compatibility.record numbers`` or ``... written``.

What is written by version 0.1 must stay readable for ever, so ``written`` is for a new fixture of
a new format only; ``numbers`` is for numbers that were meant to change.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.compatibility import planned, seeded_releases, written
from tests.compatibility.example import FIXTURES, write_json, write_rows


def record_numbers() -> None:
    """Everything that is planned, and releases from seeds."""
    found = {f"planned: {name}": one for name, one in planned.all_planned().items()}
    with TemporaryDirectory() as folder:
        tables = seeded_releases.of_tables(write_rows(Path(folder) / "rows.csv"))
    parts = {name: make() for name, make in seeded_releases.EXACT.items()}
    sql = planned.queries_as_sql()
    write_json("same_numbers.json", {**found, **parts, "tables": tables, "sql": sql})
    write_json("same_to_ten_digits.json", seeded_releases.of_models())


def record_written() -> None:
    """Everything that is written, and what is in it."""
    written.make_all()
    record_expected()


def record_expected() -> None:
    """What is in the fixtures that are there."""
    found = {}
    for name in written.SEEN:
        with TemporaryDirectory() as folder:
            found[name] = written.see(name, Path(folder))
    write_json("written_holds.json", found)


RECORDERS = {"numbers": record_numbers, "written": record_written, "expected": record_expected}


def main(what: str) -> None:
    """Write one of them."""
    FIXTURES.mkdir(exist_ok=True)
    RECORDERS[what]()


if __name__ == "__main__":
    main(sys.argv[1])
