"""Go on drawing new cases: `python -m tests.hostile --minutes N [--seed S] [--door NAME]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.hostile.harness import Door, Tried, try_session
from tests.hostile.registry import DOORS


def main(arguments: list[str] | None = None) -> int:
    """Visit all doors in turn, for equal times; 1 if any person changed more than their own."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, in all")
    parser.add_argument("--seed", type=int, default=None, help="the first seed (default: the time)")
    parser.add_argument("--door", default="", help="a door, or a part of the names of several")
    parser.add_argument("--sessions", type=int, default=None, help="stop after so many per door")
    parser.add_argument("--slice", type=float, default=1.5, help="seconds at a door in one turn")
    parser.add_argument("--list", action="store_true", help="name the doors, and stop")
    asked = parser.parse_args(arguments)
    named = [door for door in DOORS if door.name == asked.door]
    doors = named or [door for door in DOORS if asked.door in door.name]
    doors = [door for door in doors if not door.needs or door.name == asked.door]
    if asked.list or not doors:
        print("\n".join(f"{door.name}: {', '.join(door.covers)}" for door in DOORS))
        return 0 if asked.list else 2
    first = int(time.time()) if asked.seed is None else asked.seed
    print(f"{len(doors)} doors, first seed {first}")
    results = {door.name: Tried() for door in doors}
    with tempfile.TemporaryDirectory() as folder:
        _visit(doors, results, Path(folder), first=first, asked=asked)
    return _report(results)


def _visit(
    doors: list[Door],
    results: dict[str, Tried],
    folder: Path,
    *,
    first: int,
    asked: argparse.Namespace,
) -> None:
    end = time.monotonic() + 60 * asked.minutes
    seeds = {door.name: first for door in doors}
    turn = 0
    while time.monotonic() < end:
        turn += 1
        for door in doors:
            tried = results[door.name]
            known = len(tried.violations)
            until = min(end, time.monotonic() + asked.slice)
            while time.monotonic() < until:
                if asked.sessions is not None and tried.sessions >= asked.sessions:
                    break
                seed = seeds[door.name]
                seeds[door.name] += 1
                try_session(door, seed, folder, tried=tried, stop=_over(tried, until))
            for violation in tried.violations[known:][:3]:
                print(f"VIOLATION {violation}", flush=True)
        pairs = sum(tried.pairs for tried in results.values())
        violations = sum(len(tried.violations) for tried in results.values())
        left = max(0, end - time.monotonic()) / 60
        print(
            f"turn {turn}: {pairs} pairs, {violations} violations, {left:.1f} min left", flush=True
        )
        if asked.sessions is not None and all(
            tried.sessions >= asked.sessions for tried in results.values()
        ):
            break


def _over(tried: Tried, until: float) -> Callable[[], bool]:
    """When a session ends early: its time is over, and it tried a few pairs."""
    few = tried.pairs + 3
    return lambda: time.monotonic() > until and tried.pairs >= few


def _report(results: dict[str, Tried]) -> int:
    width = max(map(len, results))
    for name, tried in sorted(results.items()):
        seeds = sorted({v.seed for v in tried.violations})
        also = f"  {len(tried.violations)} VIOLATIONS, seeds {seeds[:5]}" if seeds else ""
        print(f"{name:{width}} {tried.pairs:7d} pairs in {tried.sessions:5d} sessions{also}")
    violations = sum(len(tried.violations) for tried in results.values())
    pairs = sum(tried.pairs for tried in results.values())
    print(f"{pairs} pairs, {violations} violations, {time.process_time():.0f} s of one core")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
