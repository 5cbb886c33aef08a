"""Doors of the account: what a charge is checked against, and what groups of people cost."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb, exp
from pathlib import Path

import discreet
from discreet.core.events import DiscreteLaplaceEvent
from discreet.core.relation import NeighboringRelation
from tests.hostile.harness import Door, Pair, Session


def _edited(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "b.db")) as store, store:
        names = store.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            store.execute(f"DROP TRIGGER {name}")
        held = store.execute("SELECT allowance FROM accounts").fetchone()[0]
        store.execute("UPDATE accounts SET allowance = ?", (held.replace("1/1", "9/1"),))


TAMPERING: dict[str, Callable[[Path], None]] = {
    "nothing": lambda _: None,
    "another folder": lambda folder: os.chdir(folder / "other"),
    "an edited limit": _edited,
    "a deleted file": lambda folder: (folder / "b.db").unlink(),
    "a deleted file that is open": lambda folder: (folder / "b.db").unlink(),
    "a replaced file that is open": lambda folder: (folder / "other" / "b.db").replace(
        folder / "b.db"
    ),
}


def ledger(draw: random.Random, folder: Path) -> Session:
    """0.9 of a limit of 1 is spent: no second 0.9, and nothing on a file that is gone."""

    def run(what: str) -> object:
        here = Path.cwd()
        home = folder / f"{draw.getrandbits(64)}"
        (home / "other").mkdir(parents=True)
        with discreet.Ledger(f"sqlite:///{home}/other/b.db") as another:
            another.account("a", limit=discreet.pure_dp(1))
        os.chdir(home)
        try:
            opened = discreet.Ledger("sqlite:///b.db")
            account = opened.account("a", limit=discreet.pure_dp(1))
            account.charge(discreet.pure_dp(Fraction(9, 10)), label="first")
            mode = (home / "b.db").stat().st_mode & 0o77
            # What fits within the limit would be lost with a file that is gone.
            second = Fraction(1, 20) if what.endswith("open") else Fraction(9, 10)
            if not what.endswith("open"):
                opened.close()
            TAMPERING[what](home)
            try:
                if what == "an edited limit":  # seen by whoever opens the account next
                    account = discreet.Ledger("sqlite:///b.db").account("a")
                account.charge(discreet.pure_dp(second), label="second")
            except discreet.PrivacyError:
                return "refused", mode
            return "granted", mode
        finally:
            os.chdir(here)

    def pairs() -> Iterator[Pair]:
        for what in TAMPERING:
            yield Pair(what, what)

    return Session(base="nothing", run=run, pairs=pairs)


def groups(draw: random.Random, _: Path) -> Session:
    """Several people in a sample: either it is refused, or the claim holds on exact laws."""
    scale, rate = draw.randrange(1, 5), Fraction(1, draw.choice([2, 10]))

    def run(people: int) -> object:
        event = DiscreteLaplaceEvent(Fraction(scale), 1)
        one = discreet.Guarantee(event, NeighboringRelation.ADD_REMOVE)
        try:
            claimed = one.for_group(people).sampled(rate).delta(0.0)
        except discreet.PrivacyError:
            return "holds"
        return "holds" if claimed >= _exact(scale, float(rate), people) - 1e-9 else "does not hold"

    def pairs() -> Iterator[Pair]:
        for people in (2, 3, 4):
            yield Pair(f"{people} people", people)

    return Session(base=1, run=run, pairs=pairs)


def _exact(scale: int, rate: float, people: int) -> float:
    """Total variation of a noisy count of a sample, with and without these people."""
    reach = range(-60 * scale, 60 * scale + people + 1)
    ratio = exp(-1 / scale)

    def mass(k: int) -> float:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(k)

    taken = [comb(people, j) * rate**j * (1 - rate) ** (people - j) for j in range(people + 1)]
    return sum(max(0.0, sum(w * mass(k - j) for j, w in enumerate(taken)) - mass(k)) for k in reach)


DOORS: list[Door] = [
    Door("ledger files", ("discreet.Account.charge",), ledger, pairs=6),
    Door("groups in a sample", ("discreet.Guarantee.for_group",), groups, pairs=3),
]
