"""A stream in a file: what was fed is on disk before an answer is seen, and is there once.

The file is an SQLite database, written in one transaction for each feed. Killed at any moment, the
process finds on return either the state before the feed and no answer that was seen, or the state
after it and the answer. The file holds exact counts and noise still to be used: it is as private as
the data, is made readable for its owner only, and must not be restored from a copy after a loss,
because a stream that goes on twice from the same state reveals its noise.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.boundary.owners import OwnerKey, check_owner_type, number_owners, owner_key
from discreet.boundary.values import Ints, listed
from discreet.core.errors import InvalidArgument, OutOfDomain, PrivacyError
from discreet.noise.random_source import RandomSource
from discreet.ranges.stream.plan import StreamPlan
from discreet.ranges.stream.state import (
    Counts,
    advance,
    begin,
    event_lanes,
    pack,
    tally,
    unpack,
)

# ── Key-value file ───────────────────────────────────────────────────────────────────────────────
# Named values that one process holds, changed all or none, and then on disk.


_VALUES = "CREATE TABLE held (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID"


class KeyValueFile:
    """Values by name, and tables of the owner's own, in a file or (``path=None``) in memory.

    Errors are those of SQLite: its owner says them in words of its own, which quote no value.
    """

    def __init__(self, path: str | Path | None, *, settings: Sequence[str] = ()) -> None:
        # Threads take turns: their owner sees to it.
        self.base = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=1.0,
            isolation_level=None,
            check_same_thread=False,
        )
        for setting in ("locking_mode = EXCLUSIVE", "journal_mode = DELETE", *settings):
            self.base.execute(f"PRAGMA {setting}").close()

    @property
    def tables(self) -> set[str]:
        """The names of the tables, and of their indices."""
        return {name for (name,) in self.base.execute("SELECT name FROM sqlite_schema")}

    @property
    def begun(self) -> bool:
        """Whether values were ever held here."""
        return "held" in self.tables

    def begin(self, *tables: str) -> None:
        """Make the table of values, and these."""
        for table in (_VALUES, *tables):
            self.base.execute(table)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is changed in here is changed, or nothing is."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self.base.execute("ROLLBACK")
            raise
        self.base.execute("COMMIT")

    def get(self, name: str) -> bytes | None:
        """A value, or None."""
        found = self.base.execute("SELECT value FROM held WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def text(self, name: str) -> str:
        """A value that is text; empty if there is none."""
        return (self.get(name) or b"").decode()

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""
        self.base.execute("INSERT OR REPLACE INTO held VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Let go of the file."""
        self.base.close()


# ── Stream file ──────────────────────────────────────────────────────────────────────────────────


Unit: TypeAlias = int | str | bytes
Flags: TypeAlias = NDArray[np.bool_]
VERSION = 1
_UNITS = "CREATE TABLE units (id ANY PRIMARY KEY, used INTEGER NOT NULL) STRICT, WITHOUT ROWID"
_MANY = 500


class StreamFailure(PrivacyError):
    """The file of a stream could not be read or written; open the stream again."""


class StreamFile:
    """The state of one stream, in a file or (``path=None``) in memory. One process at a time."""

    def __init__(
        self, path: str | Path | None, *, plan: StreamPlan, units: bool, payer: str
    ) -> None:
        self.plan = plan
        self.limits_units = units
        self._owner = os.getpid()
        self._gate = threading.Lock()
        self._usable = True
        with _failures("opened"):
            self._held = _opened(path)
        try:
            with _failures("opened"):
                self._settle(units=units, payer=payer)
        except BaseException:
            self._held.close()
            raise

    @property
    def steps(self) -> int:
        """Steps that were fed."""
        return self._state.step

    @property
    def last(self) -> Counts | None:
        """The answers of the last feed: after a crash they may not have been seen."""
        with self._turn():
            held = self._held.get("last")
        if held is None:
            return None
        with np.load(io.BytesIO(held), allow_pickle=False) as arrays:
            return Counts(plan=self.plan, first=int(arrays["first"]), values=arrays["values"])

    def feed(self, counts: ArrayLike, *, rng: RandomSource) -> Counts:
        """Count the next steps."""
        if self.limits_units:
            raise InvalidArgument("This stream limits units: feed events, with their units.")
        with self._turn():
            return self._feed(counts, rng, used=())

    def events(
        self,
        steps: ArrayLike,
        *,
        end: int,
        rng: RandomSource,
        keys: ArrayLike | None = None,
        units: ArrayLike | None = None,
    ) -> Counts:
        """Count events into the steps up to ``end``, at most ``max_rows_per_unit`` of each unit."""
        if (units is not None) != self.limits_units:
            raise InvalidArgument("units must be given if the stream limits units, and only then.")
        with self._turn():
            kept: Flags | None = None
            used: list[tuple[Unit, int]] = []
            kind, after = "", self._state.step
            if units is not None:
                # An event that is left out uses nothing up.
                lanes = event_lanes(self.plan, steps, after=after, keys=keys, end=end)
                kind = self._kind(units)
                kept, used = self._limit(units, lanes >= 0)
            counts = tally(self.plan, steps, after=after, keys=keys, end=end, kept=kept)
            return self._feed(counts, rng, used=used, kind=kind)

    def close(self) -> None:
        """Let go of the file."""
        with self._gate:
            self._usable = False
            self._held.close()

    def _settle(self, *, units: bool, payer: str) -> None:
        """Make the file, or check that it is this stream's."""
        wanted = {
            "version": str(VERSION),
            "plan": self.plan.to_json(),
            "units": "limited" if units else "stated",
            "account": payer,
        }
        with self._held.transaction():
            if not self._held.begun:
                self._held.begin(_UNITS)
                for name, text in {**wanted, "request": f"stream-{secrets.token_hex(16)}"}.items():
                    self._held.put(name, text.encode())
                self._held.put("state", pack(begin(self.plan)))
                self._held.put("design", self._design(0))
        for name, text in wanted.items():
            if self._held.text(name) != text:
                raise InvalidArgument(
                    f"path holds a stream with another {name}: open it as it was begun, "
                    "or begin a new one in another file."
                )
        self.request_id = self._held.text("request")
        """Names this stream in the ledger: opened again, it is not charged again."""
        held = self._held.get("state")
        if held is None:
            raise InvalidArgument("path must be the file of a stream.")
        state = None
        with suppress(EOFError, KeyError, ValueError, BadZipFile):  # could quote what is held
            state = unpack(held)
        if state is None:
            raise StreamFailure("The state of the stream is damaged: begin a new one.")
        self._state = state
        if self._held.get("design") != self._design(self._state.step):
            raise StreamFailure(
                "This discreet would count the open epoch in another way than the one that began "
                "it: go on with the version (and the machine) that did, or begin a new stream."
            )

    def _design(self, step: int) -> bytes:
        """How the next step is counted; it must stay until the epoch is over."""
        return self.plan.counter(self.plan.epoch(step + 1)).design.encode()

    def _feed(
        self,
        counts: ArrayLike,
        rng: RandomSource,
        *,
        used: Sequence[tuple[Unit, int]],
        kind: str = "",
    ) -> Counts:
        """Draw, write, and only then tell."""
        state, answers = advance(self.plan, self._state, counts, rng=rng)
        file = io.BytesIO()
        np.savez(file, first=np.array(answers.first), values=answers.values)
        self._usable = False  # until it is known what is on disk
        with _failures("written"), self._held.transaction():
            self._held.put("state", pack(state))
            self._held.put("design", self._design(state.step))
            self._held.put("last", file.getvalue())
            if kind:
                self._held.put("kind", kind.encode())
            self._held.base.executemany(
                "INSERT INTO units VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET used = ?",
                ((unit, number, number) for unit, number in used),
            )
        self._state = state
        self._usable = True
        return answers

    def _kind(self, units: ArrayLike) -> str:
        """The kind of units that a container has by its type; lists are read unit by unit."""
        kind = _kind_of(units)
        if kind and self._held.text("kind") not in ("", kind):
            # The unit 7 and the unit "7" would each have the events of one.
            raise InvalidArgument(
                "units must be of one kind in all of a stream, whole numbers or texts: it was "
                "begun with the other kind."
            )
        return kind

    def _limit(self, units: ArrayLike, open_events: Flags) -> tuple[Flags, list[tuple[Unit, int]]]:
        """Which events stay, the first of each unit, and how many each unit has had since."""
        odd = isinstance(units, np.ndarray) and (units.ndim != 1 or units.dtype.kind not in "iuUO")
        if odd or isinstance(units, str | bytes) or not hasattr(units, "__len__"):
            raise OutOfDomain("units must be whole numbers or texts, one for each event.")
        check_owner_type("units", units)
        names, owners = _numbered(units)
        if len(owners) != len(open_events):
            raise OutOfDomain("units must be one for each event.")
        mine = open_events & (owners >= 0)  # an event that is nobody's is not counted
        before = self._used(names)
        used = np.array([before[name] for name in names], dtype=np.int64)
        numbers = np.bincount(owners[mine], minlength=len(names))
        # The place of each event among those of its unit, in the order in which they came.
        rank = np.empty(int(mine.sum()), dtype=np.int64)
        starts = np.repeat(np.cumsum(numbers) - numbers, numbers)
        rank[np.argsort(owners[mine], kind="stable")] = np.arange(len(rank)) - starts
        kept = mine.copy()
        kept[mine] = rank < (self.plan.max_rows_per_unit - used)[owners[mine]]
        after = np.minimum(used + numbers, self.plan.max_rows_per_unit)
        return kept, [
            (name, int(number))
            for name, number, old in zip(names, after, used, strict=True)
            if number != old
        ]

    def _used(self, names: list[Unit]) -> dict[Unit, int]:
        """How many events each of these units has had."""
        before = dict.fromkeys(names, 0)
        for start in range(0, len(names), _MANY):
            some = names[start : start + _MANY]
            marks = ",".join("?" * len(some))
            query = f"SELECT id, used FROM units WHERE id IN ({marks})"  # noqa: S608 - marks
            before.update(self._held.base.execute(query, some))
        return before

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._gate:
            if os.getpid() != self._owner:
                raise StreamFailure("A stream belongs to the process that opened it.")
            if not self._usable:
                raise StreamFailure("The stream is closed, or a write has failed: open it again.")
            yield


def _kind_of(units: ArrayLike) -> str:
    if isinstance(units, np.ndarray):
        return {"i": "numbers", "u": "numbers", "U": "texts"}.get(units.dtype.kind, "")
    # By the type that a series declares: what NumPy makes of it follows from its missing units.
    declared = str(getattr(units, "dtype", getattr(units, "type", ""))).lower()
    if declared.startswith(("int", "uint")):
        return "numbers"
    return "texts" if declared.startswith(("str", "large_str")) else ""


def _numbered(units: ArrayLike) -> tuple[list[Unit], Ints]:
    """The units of a feed as they are stored, and the place of each event's among them."""
    if isinstance(units, np.ndarray) and units.dtype.kind in "iu" and units.dtype != np.uint64:
        whole, places = np.unique(units, return_inverse=True)
        return whole.tolist(), places.reshape(-1)
    places, _ = number_owners(units)
    rows = listed(units)
    _, first = np.unique(places, return_index=True)
    names = (_name(rows[place]) for place in first.tolist())
    return [name for name in names if name is not None], places


def _name(unit: object) -> Unit | None:
    """What a unit is remembered by; None for what names nobody."""
    if type(unit) is int and -(1 << 63) <= unit < 1 << 63:  # by far the commonest
        return unit
    key = owner_key(unit)
    return None if key is None else _stored(key)


def _stored(key: OwnerKey) -> Unit:
    """What a unit is remembered by: whole numbers and texts as they are, others by a digest."""
    kind, value = key
    if kind == "text" and isinstance(value, str):
        with suppress(UnicodeError):
            value.encode()
            return value
    if kind == "number" and isinstance(value, Fraction) and value.denominator == 1:
        whole = int(value)
        if -(1 << 63) <= whole < 1 << 63:
            return whole
    return hashlib.sha256(_plain(key).encode(errors="surrogatepass")).digest()


def _plain(key: object) -> str:
    """One text for one key: a number of any length in hexadecimal digits, tuples part by part."""
    if isinstance(key, tuple):
        return f"({','.join(map(_plain, key))})"
    if isinstance(key, Fraction):
        return f"{key.numerator:x}/{key.denominator:x}"
    return f"{key:x}" if isinstance(key, int) else repr(key)


def _opened(path: str | Path | None) -> KeyValueFile:
    """Readable for its owner only; noise that was used does not stay behind in free pages."""
    if path is not None:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return KeyValueFile(path, settings=("synchronous = EXTRA", "secure_delete = ON"))


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """The errors of the store in our own words: theirs could quote a value."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        raise StreamFailure(
            f"The file of the stream could not be {what} ({type(error).__name__}): another process "
            "may have it open, or the disk may be full. Open it again."
        ) from None
