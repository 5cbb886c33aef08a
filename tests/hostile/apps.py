"""Doors of the command line: one line of a file, and all that is then printed and written."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from discreet.cli.main import main
from tests.hostile.catalogue import CSV_LINES
from tests.hostile.harness import Door, Pair, Session, settled

RELEASE = """
title = "Survey"
[table]
source = "people.csv"
privacy_unit = "who"
max_rows_per_unit = 2
[columns]
x = { kind = "real", lower = 0, upper = 10, granularity = 0.25 }
w = { kind = "integer", lower = -5, upper = 5 }
t = { kind = "category", categories = ["a", "b"] }
[account]
ledger = "sqlite:///budget.db"
name = "survey"
limit = { epsilon = 100 }
"""
STATISTICS = [
    'kind = "count"\nby = ["t"]',
    'kind = "mean"\nof = "x"',
    'kind = "sum"\nof = "w"',
    'kind = "median"\nof = "w"',
    'kind = "maximum"\nof = "x"',
    'kind = "share"\nby = ["t"]',
    'kind = "compare"\nof = "x"\nby = ["t"]\nto = "a"',
    'kind = "count_distinct"\nof = "w"\nat_least = 2',
    'kind = "ranges"\nof = "w"',
    'kind = "marginals"\ntables = [["t", "w"]]',
]
COMMANDS = [
    ["release", "survey.toml"],
    ["release", "survey.toml", "--json"],
    ["plan", "survey.toml", "--suggest-bounds", "--epsilon", "2"],
    ["sql", "survey.toml", "SELECT t, AVG(x), COUNT(*) FROM people GROUP BY t", "--epsilon", "2"],
    ["sql", "survey.toml", "SELECT SUM(w) FROM people WHERE x > 2", "--epsilon", "2", "--json"],
]


def command(draw: random.Random, folder: Path) -> Session:
    """One hostile line of a CSV: exit code, printed text, and the files that are written."""
    base = [
        f"p{i},{draw.uniform(0, 10):.2f},{draw.choice('ab')},{draw.randrange(-5, 6)}".encode()
        for i in range(40)
    ]
    told = "".join(f"[[statistic]]\n{one}\nepsilon = 1\n" for one in draw.sample(STATISTICS, 4))
    words = draw.choice(COMMANDS)
    place, numbers = draw.getrandbits(40), itertools.count()

    def run(given: list[bytes]) -> object:
        home = folder / f"{place}-{next(numbers)}"
        home.mkdir()
        (home / "people.csv").write_bytes(b"who,x,t,w\n" + b"\n".join(given) + b"\n")
        (home / "survey.toml").write_text(RELEASE + told)
        paths = [str(home / word) if word.endswith(".toml") else word for word in words]
        done = CliRunner().invoke(main, paths)
        written = {
            path.name: settled(path.read_text().replace(home.name, ""))
            for path in home.iterdir()
            if path.suffix not in (".csv", ".toml", ".db") or path.name.startswith("survey.release")
        }
        return done.exit_code, settled(done.output.replace(home.name, "")), written

    def pairs() -> Iterator[Pair]:
        while True:
            name = draw.choice(sorted(CSV_LINES))
            strange = CSV_LINES[name].replace(b"{u}", b"somebody")
            where = draw.choice([0, len(base), draw.randrange(len(base) + 1)])
            yield Pair(f"{name} at {where}", [*base[:where], strange, *base[where:]])

    return Session(base=base, run=run, pairs=pairs, local=False)


DOORS: list[Door] = [Door("command line", ("discreet.table",), command, pairs=3)]
