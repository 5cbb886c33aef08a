"""Counting that can be stopped at any moment: the sum, and how much of which file is in it.

The state of a count is an SQLite database. Sum and positions change in one transaction, so after a
crash both are found as they were at the same moment, and counting goes on from there: every report
is counted once, however often the count is begun again. One process at a time.
"""

from __future__ import annotations

import io
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias, cast

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.local.collection._report_frames import arrow_stream
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.report_file import (
    CHUNK,
    Header,
    NotReports,
    chunks,
    marked,
    read_header,
)
from discreet.local.collection.spec import CollectionSpec
from discreet.ranges.stream.file import KeyValueFile

Progress: TypeAlias = Callable[[int], None]
"""Told how many more bytes have been read."""
COLUMNAR = frozenset({".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc"})
"""Files with reports in a column; all others begin with a header."""
EVERY = 5.0
"""Seconds between two writes of the state."""
_ARROW = b"\xff\xff\xff\xff"  # how a stream of Arrow batches begins
_VERSION = "1"
_FILES = "CREATE TABLE files (name TEXT PRIMARY KEY, counted INTEGER NOT NULL, digest TEXT) STRICT"
_SHARE = 20  # writing the state takes at most one part in so many of the time
_LONGEST_CHUNK = 1 << 26


class StateFailure(PrivacyError):
    """The state of a count could not be read or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """What a file added: reports that were new, and why it was left out if it was."""

    name: str
    reports: int = 0
    refused: int = 0
    note: str = ""


class AggregatorState:
    """Keep an aggregator in a file, with the files that it has counted.

    Args:
        path: File of the state. If None, the state is in memory only.
        collection: Specification of the collection. If None, the one in the file.

    Examples:
        >>> from discreet import local
        >>> collection = local.CollectionSpec(randomizer=local.grr(categories=4, epsilon=1))
        >>> state = local.AggregatorState(None, collection)
        >>> state.aggregate.reports
        0
    """

    def __init__(self, path: str | Path | None, collection: CollectionSpec | None = None) -> None:
        with _failures("opened"):
            self._held = KeyValueFile(path, settings=("synchronous = FULL",))
        try:
            with _failures("opened"):
                self.collection = self._settle(collection)
                held = self._held.get("aggregate")
        except BaseException:
            self._held.close()
            raise
        randomizer = self.collection.randomizer
        self.aggregate = (
            Aggregator(randomizer) if held is None else Aggregator.from_bytes(held, randomizer)
        )
        self._moved: dict[str, tuple[int, str | None]] = {}

    def __repr__(self) -> str:
        return f"AggregatorState({self.aggregate!r})"

    def count(
        self,
        inputs: Sequence[str | Path | BinaryIO],
        *,
        column: str = "report",
        every: float = EVERY,
        progress: Progress = lambda _: None,
    ) -> list[FileProgress]:
        """Count the reports of inputs that are not counted yet.

        When this returns, the counts are saved. A file of reports may have grown since the last
        time. A file with a column of reports must not have changed.

        Args:
            inputs: Files of reports, files with a column of reports (by their suffix), or open
                pipes.
            column: Name of the column with the reports.
            every: Seconds between two saves.
            progress: Function that is called with the number of bytes that were read.

        Returns:
            For each input the number of new reports, and a note if it was left out.

        Raises:
            InvalidArgument: An argument is not valid.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     with local.ReportWriter(f"{folder}/reports", collection) as writer:
            ...         writer.write(collection.randomizer.randomize([0, 1, 2]))
            ...     _ = state.count([f"{folder}/reports"])
            >>> state.aggregate.reports
            3
        """
        listed = check.as_tuple("inputs", inputs)
        clock = _Clock(self, every)
        done = []
        try:
            for one in listed:
                before = self.aggregate.reports, self.aggregate.refused
                name, note = _name(one), ""
                try:
                    _add(self, one, column=column, clock=clock, progress=progress)
                except NotReports as error:
                    note = str(error)
                done.append(
                    FileProgress(
                        name=name,
                        reports=self.aggregate.reports - before[0],
                        refused=self.aggregate.refused - before[1],
                        note=note,
                    )
                )
        except PrivacyError:
            self.save()
            raise
        # Nothing is written after any other error, an interrupt say: it may have hit half a sum.
        self.save()
        return done

    def counted(self, name: str) -> tuple[int, str | None]:
        """Return how many reports of a file are counted.

        Args:
            name: Name of the file.

        Returns:
            The number of reports, and the digest of a file that has no identity of its own.

        Examples:
            >>> state.counted("unknown")
            (0, None)
        """
        if name in self._moved:
            return self._moved[name]
        query = "SELECT counted, digest FROM files WHERE name = ?"
        with _failures("read"):
            found = self._held.base.execute(query, (name,)).fetchone()
        return (0, None) if found is None else (int(found[0]), found[1])

    def move(self, name: str, *, counted: int, digest: str | None = None) -> None:
        """Record how many reports of a file are counted, together with the counts.

        Args:
            name: Name of the file.
            counted: Number of its reports that are counted.
            digest: Digest of a file that has no identity of its own.

        Examples:
            >>> state.move("reports", counted=3)
            >>> state.counted("reports")
            (3, None)
        """
        self._moved[name] = (counted, digest)

    def save(self) -> None:
        """Write counts and positions to the file, both or neither.

        Examples:
            >>> state.save()
        """
        with _failures("written"), self._held.transaction():
            self._held.put("aggregate", self.aggregate.to_bytes())
            self._held.base.executemany(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?)",
                ((name, *place) for name, place in self._moved.items()),
            )
        self._moved.clear()

    def merge(self, other: AggregatorState) -> None:
        """Add the counts of another state of the same collection.

        Args:
            other: State of other files.

        Raises:
            InvalidArgument: The states are of different collections, or have counted the same file.

        Examples:
            >>> state.merge(local.AggregatorState(None, collection))
        """
        if other.collection != self.collection:
            raise InvalidArgument("The states belong to different collections.")
        files = dict(other.files())
        # All of them first: a file that is marked without its reports would never be counted.
        if any(self.counted(name) != (0, None) for name in files):
            raise InvalidArgument(
                "Two of the states have counted the same file: its reports would count twice."
            )
        self.aggregate.merge(other.aggregate)
        for name, (counted, digest) in files.items():
            self.move(name, counted=counted, digest=digest)

    def files(self) -> Iterator[tuple[str, tuple[int, str | None]]]:
        """List the files that are counted.

        Returns:
            Name, number of reports and digest of each file.

        Examples:
            >>> "reports" in dict(state.files())
            True
        """
        known: dict[str, tuple[int, str | None]] = {}
        with _failures("read"):
            for name, counted, digest in self._held.base.execute("SELECT * FROM files"):
                known[name] = (counted, digest)
        yield from (known | self._moved).items()

    def close(self) -> None:
        """Close the file without writing.

        Examples:
            >>> state.close()
        """
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self, collection: CollectionSpec | None) -> CollectionSpec:
        """Make the database, or check that it is of this collection."""
        if not self._held.begun:
            if collection is None or self._held.tables:
                raise InvalidArgument("The state must be a file that a count has written.")
            with self._held.transaction():
                self._held.begin(_FILES)
                self._held.put("version", _VERSION.encode())
                self._held.put("collection", collection.to_json().encode())
        if self._held.text("version") != _VERSION:
            raise InvalidArgument("The state was written by another version of discreet.")
        held = CollectionSpec.from_json(self._held.text("collection"))
        if collection is not None and held != collection:
            raise InvalidArgument(
                f"The state belongs to another collection ({held.fingerprint}, not "
                f"{collection.fingerprint}): name another file, or the collection it was begun for."
            )
        return held


class _Clock:
    """Writes the state now and then."""

    def __init__(self, state: AggregatorState, every: float) -> None:
        self.state = state
        self.every = every
        self.due = time.monotonic() + every

    def tick(self) -> None:
        start = time.monotonic()
        if start < self.due:
            return
        self.state.save()
        end = time.monotonic()
        self.due = end + max(self.every, _SHARE * (end - start) if self.every else 0.0)


def _name(one: str | Path | BinaryIO) -> str:
    return str(one) if isinstance(one, str | Path) else "standard input"


def _add(
    state: AggregatorState,
    one: str | Path | BinaryIO,
    *,
    column: str,
    clock: _Clock,
    progress: Progress,
) -> None:
    if not isinstance(one, str | Path):
        _pipe(state, one, column=column, clock=clock, progress=progress)
        return
    path = Path(one)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read ({type(error).__name__}).") from None
    with stream:
        if marked(path).exists():
            raise NotReports("is being encoded, or was stopped in the middle: encode it again.")
        if path.suffix.lower() in COLUMNAR:
            _column(state, path, stream, column)
            progress(stream.seek(0, os.SEEK_END))
        else:
            _stream(state, stream, clock, progress)


def _pipe(
    state: AggregatorState, stream: BinaryIO, *, column: str, clock: _Clock, progress: Progress
) -> None:
    """Reports behind a header, or Arrow batches: those have no identity and count as a whole."""
    ahead = io.BufferedReader(cast("io.RawIOBase", stream))
    try:
        if ahead.peek(len(_ARROW)).startswith(_ARROW):
            found = arrow_stream(ahead)
            state.aggregate.merge(
                Aggregator.from_frame(found, state.collection.randomizer, column=column)
            )
        else:
            _stream(state, ahead, clock, progress)
    finally:
        ahead.detach()


def _stream(state: AggregatorState, stream: BinaryIO, clock: _Clock, progress: Progress) -> None:
    """Count what is new behind a header."""
    head = read_header(stream)
    place, _ = state.counted(head.identity)
    ours = head.description == state.collection.to_json()
    progress(head.length + place * head.width)
    for rows in chunks(stream, head, skip=place, rows=_rows(head, state)):
        if ours:
            state.aggregate.add(rows)
        else:
            state.aggregate.refused += len(rows)
        place += len(rows)
        state.move(head.identity, counted=place)
        progress(rows.size)
        clock.tick()
    if not ours:
        raise NotReports(f"holds reports of another collection ({head.fingerprint}): refused.")


def _rows(head: Header, state: AggregatorState) -> int:
    """Reports to be added at once: as many as there are counts, in bounded memory."""
    most = _LONGEST_CHUNK // head.width
    return max(1, CHUNK // head.width, min(most, state.collection.randomizer.size))


def _column(state: AggregatorState, path: Path, stream: BinaryIO, column: str) -> None:
    """Count a file with a column of reports as a whole, once."""
    name, digest = f"path:{path.resolve()}", _digest(stream)
    _, before = state.counted(name)
    if before == digest:
        return
    if before is not None:
        raise InvalidArgument(
            f"{path} was counted when it held something else: put new reports into a new file."
        )
    found = Aggregator.from_frame(path, state.collection.randomizer, column=column)
    state.aggregate.merge(found)
    state.move(name, counted=found.reports + found.refused, digest=digest)


def _digest(stream: BinaryIO) -> str:
    known = sha256()
    while some := stream.read(CHUNK):
        known.update(some)
    return known.hexdigest()


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """The errors of the store in our own words."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise StateFailure(
            f"The state could not be {what} ({type(error).__name__}): another process may have it "
            "open, the disk may be full, or the file is no state of a count."
        ) from None
