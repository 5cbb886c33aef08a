"""Compare what a door does with honest data and with those of one hostile person among them.

A *door* is a public way for private data to come in. Its *session* holds honest data and a function
that takes data and publishes something. Both data sets of a pair run on the same random bits, and
every mechanism gives the answers that it gave on the honest ones (`tests.replay`). Then these must
be alike, whatever the person brought:

- whether there is an exception or a warning, and its words;
- the types of all that comes out, and what was charged;
- which mechanisms were asked, and what they were handed, up to the sensitivity that they account
  for, in their norm, in exact numbers;
- what is published: it follows from the answers of the mechanisms, which are the same, unless the
  door has *noise of its own*;
- if the door is *local*: everything. What comes out is exactly what comes out if the person brings
  some ordinary value instead, or nothing. So a strange value is read as an ordinary one, and no
  other row is read differently.
"""

from __future__ import annotations

import dataclasses
import enum
import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest

from discreet.core.events import ComposedEvent
from discreet.ledger.account import Account, Receipt
from discreet.noise.random_source import SystemRandomSource
from tests.replay import Call, Tape, excess

__all__ = [
    "Door",
    "Measured",
    "Pair",
    "Part",
    "Session",
    "Tried",
    "Violation",
    "settled",
    "sweep",
    "try_session",
]

_ROUNDING = Fraction(1, 10**9)
"""Room for claims about doubles."""


@dataclass(frozen=True)
class Pair:
    """A neighbor of the honest data."""

    name: str
    data: Any
    readings: tuple[Any, ...] = ()
    """Neighbors by ordinary values that this one may be read as, beyond those of the session."""
    ordinary: bool = False
    """Whether it is by an ordinary value: then it is a reading, not something that needs one."""
    bounded: bool = True
    """Whether this pair moves what mechanisms are handed by at most what those account for."""


REFUSED = "refused by the type of the container"
"""What a session publishes instead of an error that follows from a type that pandas or NumPy chose
from all rows: documented, free of charge, and no violation."""


@dataclass(frozen=True)
class Part:
    """Whole numbers that are about to get noise, and how far one person may move them."""

    name: str
    numbers: list[int]
    limit: int
    norm: str


@dataclass(frozen=True)
class Measured:
    """What is published, with what went into noise that is no mechanism's own."""

    value: object
    parts: tuple[Part, ...]


@dataclass
class Session:
    """Honest data, what is done with data, and neighbors: the ordinary ones first."""

    base: Any
    run: Callable[[Any], object]
    pairs: Callable[[], Iterable[Pair]]
    local: bool = True
    account: Account | None = None
    own_noise: bool = False
    """Whether there is noise in what comes out that no mechanism draws: only types are compared."""
    free_lengths: bool = False
    """Whether the number of things that come out is itself a noisy answer."""


@dataclass(frozen=True)
class Door:
    """A public way for private data to come in."""

    name: str
    covers: tuple[str, ...]
    """The public callables behind it, as `tests.hostile.registry.public` names them."""
    start: Callable[[random.Random, Path], Session]
    """Honest data and a configuration, all drawn from the seed."""
    needs: str = ""
    """A service: "postgres" or "spark"."""
    pairs: int = 30
    """How many pairs are tried for each seed; fewer where a pair takes long."""


@dataclass(frozen=True)
class Violation:
    """One person's row changed more than that person's bounded contribution."""

    door: str
    seed: int
    pair: str
    what: str

    def __str__(self) -> str:
        again = f"python -m tests.hostile --door '{self.door}' --seed {self.seed} --sessions 1"
        return f"{self.door}, seed {self.seed}, {self.pair}: {self.what}\n    again: {again}"


@dataclass
class Seen:
    """All that one run shows."""

    failure: str | None
    warned: tuple[str, ...]
    charged: tuple[str, ...]
    calls: list[Call] = field(default_factory=list)
    shape: object = None
    output: object = None
    parts: tuple[Part, ...] = ()


# ── One run ──────────────────────────────────────────────────────────────────────────────────────


class _Bits:
    """The same words in each run, in place of the operating system's."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.Philox(seed)

    def words(self, _: SystemRandomSource, count: int) -> Any:
        return self._source.random_raw(count)


def observe(session: Session, data: Any, *, tape: Tape) -> Seen:
    """Run a session on data and the answers of a tape."""
    before = spent(session)
    calls: list[Call] = []
    output, failure = None, None
    bits = _Bits(tape.seed)
    with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("always")
        patched.setattr(SystemRandomSource, "words", lambda own, count: bits.words(own, count))
        random.seed(tape.seed)
        np.random.seed(tape.seed % 2**32)  # noqa: NPY002 - estimators of users draw from it
        try:
            output, calls = tape.run(session.run, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failure = f"{type(error).__name__}: {error}"
    parts: tuple[Part, ...] = ()
    if isinstance(output, Measured):
        output, parts = output.value, output.parts
    charged = tuple(
        f"{many - before.get(event, 0)} times {event}"
        for event, many in spent(session).items()
        if many != before.get(event, 0)
    )
    return Seen(
        failure=failure,
        warned=tuple(f"{w.category.__name__}: {w.message}" for w in caught),
        charged=charged,
        calls=calls,
        shape=described(output, values=False, free=session.free_lengths),
        output=described(output, values=True, free=session.free_lengths),
        parts=parts,
    )


def spent(session: Session) -> dict[str, int]:
    """How often the account was charged what."""
    if session.account is None:
        return {}
    event = session.account.spent.event
    parts = event.parts if isinstance(event, ComposedEvent) else ((event, 1),)
    return {repr(part): many for part, many in parts}


_PLAIN = (bool, int, float, complex, str, bytes, type(None), Fraction, enum.Enum, np.generic)


def described(given: Any, *, values: bool, free: bool) -> object:
    """What is published, as something to compare: its types and, if asked, its values."""
    if isinstance(given, Receipt):
        return "Receipt"
    if isinstance(given, _PLAIN):
        return (type(given).__name__, repr(given)) if values else type(given).__name__
    if isinstance(given, np.ndarray):
        shape = given.ndim if free and not values else given.shape
        if given.dtype.kind == "O":
            inner: object = [described(v, values=values, free=free) for v in given.ravel().tolist()]
            return (
                "array",
                shape,
                inner if values or not free else sorted({str(v) for v in inner}),
            )
        return ("array", given.dtype.str, shape, given.tobytes() if values else None)
    if isinstance(given, dict):
        parts = [
            (described(k, values=True, free=free), described(v, values=values, free=free))
            for k, v in given.items()
        ]
        return ("dict", parts if values or not free else sorted({str(v) for _, v in parts}))
    if isinstance(given, list | tuple | set | frozenset):
        inside = [described(v, values=values, free=free) for v in given]
        return (
            type(given).__name__,
            inside if values or not free else sorted(map(str, inside))[:1],
        )
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        parts = [
            (one.name, described(getattr(given, one.name), values=values, free=free))
            for one in dataclasses.fields(given)
        ]
        return (type(given).__name__, parts)
    frame = nw.from_native(given, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = [(name, str(frame.schema[name])) for name in frame.columns]
        return ("frame", names, frame.rows() if values else None if free else len(frame))
    return type(given).__name__ if not values else (type(given).__name__, repr(given))


# ── Texts ────────────────────────────────────────────────────────────────────────────────────────

_NEW = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}"  # ids
    r"|\b[0-9a-f]{12,}\b|(?<=people-)[0-9a-f]{8}\b"  # hashes, numbers of requests, files
    r"|\bdsc_[\w-]+|(?<=\")[\w-]{43}(?=\")"  # tokens of people and of forms
    r"|\b20(?!20)\d\d-\d\d-\d\d|\d\d? [A-Z][a-z]{2} 20(?!20)\d\d"  # days, not those of data
    r"|[T ]?\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?(,\d+)?"
    r"|127\.0\.0\.1:\d+"
    r"|\bms=[\d.]+"
)


def settled(text: str) -> str:
    """Without what is new each time."""
    return _NEW.sub("#", text)


# ── One pair ─────────────────────────────────────────────────────────────────────────────────────


def compare(
    base: Seen, other: Seen, *, bounded: bool = True, replayed: bool = False
) -> Iterator[str]:
    """What one person changed that no person may change."""
    if other.failure != base.failure:
        yield f"failure: {_short(base.failure)} became {_short(other.failure)}"
        return
    if other.warned != base.warned:
        yield f"warnings: {_short(base.warned)} became {_short(other.warned)}"
    if other.charged != base.charged:
        yield f"charge: {_short(base.charged)} became {_short(other.charged)}"
    if other.shape != base.shape:
        yield f"types: {_short(base.shape)} became {_short(other.shape)}"
    elif replayed and other.output != base.output:
        one, two = _where(base.output, other.output)
        yield f"published: {_short(one)} became {_short(two)}"
    if len(other.calls) != len(base.calls):
        yield f"mechanisms: {len(base.calls)} became {len(other.calls)}"
        return
    for place, (one, two) in enumerate(zip(base.calls, other.calls, strict=True)):
        if one.value.shape != two.value.shape or type(one.mechanism) is not type(two.mechanism):
            yield f"mechanism {place}: {one.value.shape} numbers became {two.value.shape}"
            continue
        moved = excess(two, one) if bounded else Fraction(0)
        if moved > 1 + _ROUNDING:
            yield f"mechanism {place}: moved {float(moved):.6g} times what it accounts for"

    for one_part, two_part in zip(base.parts, other.parts, strict=True):
        moved = distance(one_part, two_part) if bounded else 0
        if moved > one_part.limit:
            yield f"{one_part.name}: moved {moved}, accounted for {one_part.limit}"


def distance(one: Part, other: Part) -> int | float:
    """How far two vectors of whole numbers are apart; squared for "l2"."""
    change = [abs(a - b) for a, b in zip(one.numbers, other.numbers, strict=True)]
    if one.norm == "l2":
        return sum(c * c for c in change)
    return max(change, default=0) if one.norm == "linf" else sum(change)


def same(one: Seen, other: Seen) -> bool:
    """Whether two runs show, and hand on, exactly the same."""
    return (
        one.output == other.output
        and len(one.calls) == len(other.calls)
        and all(
            a.value.shape == b.value.shape and a.value.tolist() == b.value.tolist()
            for a, b in zip(one.calls, other.calls, strict=True)
        )
    )


def _where(one: object, other: object) -> tuple[object, object]:
    """The first place where two descriptions differ."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return next(_where(a, b) for a, b in zip(one, other, strict=True) if a != b)
    if isinstance(one, str) and isinstance(other, str):
        place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        return one[max(0, place - 80) :], other[max(0, place - 80) :]
    return one, other


def _short(what: object) -> str:
    text = str(what)
    return text if len(text) < 300 else f"{text[:200]} ... {text[-80:]}"


# ── Sessions and sweeps ──────────────────────────────────────────────────────────────────────────


@dataclass
class Tried:
    """What was tried at one door."""

    pairs: int = 0
    sessions: int = 0
    refused: int = 0
    """Sessions and pairs that were refused by the type of the container."""
    violations: list[Violation] = field(default_factory=list)


def try_session(
    door: Door,
    seed: int,
    folder: Path,
    *,
    tried: Tried,
    most: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Draw honest data and a configuration from the seed, and try neighbors."""
    draw = random.Random(f"{door.name} {seed}")
    session = door.start(draw, folder)
    tape = Tape(seed=seed)

    def found(pair: str, what: str) -> None:
        tried.violations.append(Violation(door=door.name, seed=seed, pair=pair, what=what))

    base = observe(session, session.base, tape=tape)
    tried.sessions += 1
    if base.output == described(REFUSED, values=True, free=False):
        tried.refused += 1
        return
    if base.failure is not None:
        found("honest data", f"they fail: {_short(base.failure)}")
        return
    readings = [base]
    for number, pair in enumerate(session.pairs()):
        # The ordinary neighbors are what the others are compared with, so they all run.
        if not pair.ordinary and (number >= (most or door.pairs) or stop()):
            break
        seen = observe(session, pair.data, tape=tape)
        tried.pairs += 1
        if seen.output == described(REFUSED, values=True, free=False) and not seen.charged:
            tried.refused += 1
            continue
        replayed = not (session.local or session.own_noise or session.free_lengths)
        problems = list(compare(base, seen, bounded=pair.bounded, replayed=replayed))
        if pair.ordinary:
            readings.append(seen)
        elif session.local and not problems and not any(same(seen, one) for one in readings):
            more = [observe(session, data, tape=tape) for data in pair.readings]
            if not any(same(seen, one) for one in more):
                problems.append("read as no ordinary value, and not left out")
        for what in problems:
            found(pair.name, what)


def sweep(door: Door, folder: Path, *, seed: int, sessions: int = 1) -> Tried:
    """Try a door with a number of seeds, from the given one on."""
    tried = Tried()
    for number in range(seed, seed + sessions):
        try_session(door, number, folder, tried=tried)
    return tried
