"""``python -m mutation ROOM --coverage FILE``: how many mutants of a room its tests kill.

FILE is coverage.py's data of a run with ``dynamic_context = test_function``: it says which tests
run a line, so that only those are run against a mutant of it.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path

import click

from mutation.mutants import Mutant, mutants
from mutation.trial import ROOT, fate

_ROOMS = ("core", "noise", "accounting", "mechanisms", "ledger")


@click.command()
@click.argument("room", type=click.Choice(_ROOMS))
@click.option("--coverage", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--sample", default=150, show_default=True, help="Mutants tried, drawn at random.")
@click.option("--seed", default=0, show_default=True)
@click.option("--limit", default=120.0, show_default=True, help="Seconds for one mutant.")
@click.option("--json", "out", type=click.Path(path_type=Path))
def main(
    *, room: str, coverage: Path, sample: int, seed: int, limit: float, out: Path | None
) -> None:
    """Try a sample of the mutants and list those that no test noticed."""
    import numpy  # noqa: F401, ICN001, PLC0415 - before the processes part
    import pytest  # noqa: F401, PLC0415
    import scipy.optimize  # noqa: F401, PLC0415

    found = [
        (path, one)
        for path in sorted((ROOT / "src" / "discreet" / room).rglob("*.py"))
        for one in mutants(path.read_text(encoding="utf-8"))
    ]
    chosen = random.Random(seed).sample(found, min(sample, len(found)))  # noqa: S311
    tested = _tests(coverage)
    fates = []
    for number, (path, one) in enumerate(chosen, 1):
        source = path.read_text(encoding="utf-8")
        names = _near(path, tested[path.relative_to(ROOT).as_posix(), one.line])
        result = fate(path, one.apply(source), names, limit_s=limit)
        fates.append((path, one, result))
        if result in ("survived", "untested"):
            click.echo(f"{number}/{len(chosen)} {result}: {_told(path, one)}")
    counts = Counter(result for _, _, result in fates)
    caught = counts["killed"] + counts["timeout"]
    click.echo(f"{room}: {caught} of {len(fates)} noticed ({caught / len(fates):.1%}), {counts}")
    if out is not None:
        rows = [
            {"place": _told(path, one), "fate": result}
            for path, one, result in fates
            if result in ("survived", "untested")
        ]
        content: dict[str, object] = {"room": room, "all": len(found), "tried": len(fates)}
        content |= {str(name): many for name, many in counts.items()} | {"left": rows}
        out.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _tests(data: Path) -> dict[tuple[str, int], list[str]]:
    """The tests that run each line, by path from the root."""
    from coverage.numbits import numbits_to_nums  # noqa: PLC0415

    made: dict[tuple[str, int], list[str]] = defaultdict(list)
    with sqlite3.connect(data) as base:
        rows = base.execute(
            "select f.path, c.context, b.numbits from line_bits b "
            "join file f on f.id = b.file_id join context c on c.id = b.context_id"
        )
        for path, context, bits in rows:
            test = _node(context)
            if test is None or not Path(path).is_relative_to(ROOT):
                continue
            place = Path(path).relative_to(ROOT).as_posix()
            for line in numbits_to_nums(bits):
                made[place, line].append(test)
    return made


def _node(context: str) -> str | None:
    """A context such as ``tests.noise.test_laplace.test_mean`` as pytest names it."""
    parts = context.split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = ROOT.joinpath(*parts[:end]).with_suffix(".py")
        if file.is_file():
            return f"{file.relative_to(ROOT).as_posix()}::{'::'.join(parts[end:])}"
    return None


def _near(path: Path, tests: list[str]) -> list[str]:
    """Tests of the same room and name first: they notice soonest."""
    stem, room = path.stem, path.relative_to(ROOT / "src" / "discreet").parts[0]
    return sorted(set(tests), key=lambda test: (stem not in test, f"tests/{room}/" not in test))


def _told(path: Path, one: Mutant) -> str:
    return f"{path.relative_to(ROOT).as_posix()} {one}"


if __name__ == "__main__":
    main()
