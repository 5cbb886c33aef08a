"""The ledger in an SQLite file: one host, any number of processes and threads."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ledger.store import (
    Pool,
    Seen,
    Session,
    Store,
    StoreClosed,
    StoreFailure,
    Value,
    check_version,
)

PATIENCE_S = 60.0

_REMEDIES = {
    sqlite3.SQLITE_BUSY: " Another process holds the file: end it, or ask again.",
    sqlite3.SQLITE_CANTOPEN: " Name a file in a folder that exists and may be written to.",
    sqlite3.SQLITE_ERROR: " If the file was made by another program, name another one.",
    sqlite3.SQLITE_FULL: " Make room on the disk, then ask again.",
    sqlite3.SQLITE_NOTADB: " Name another file: this one was made by another program.",
    sqlite3.SQLITE_READONLY: " Let this user write to the file and to its folder.",
}
_HOPELESS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)  # waiting does not help

_FIRST = """
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    parent INTEGER REFERENCES accounts (id),
    allowance TEXT NOT NULL,
    policy TEXT NOT NULL,
    expires TEXT,
    period INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    head TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE TABLE entries (
    account INTEGER NOT NULL REFERENCES accounts (id),
    sequence INTEGER NOT NULL,
    content TEXT NOT NULL,
    hash TEXT NOT NULL,
    request TEXT,
    settles INTEGER,
    PRIMARY KEY (account, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entries_request ON entries (account, request) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX entries_settles ON entries (account, settles) WHERE settles IS NOT NULL;
CREATE TABLE tallies (
    account INTEGER NOT NULL REFERENCES accounts (id),
    period INTEGER NOT NULL,
    cohort TEXT NOT NULL,
    digest TEXT NOT NULL,
    event TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (account, period, cohort, digest)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER accounts_remain BEFORE DELETE ON accounts
    BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
CREATE TRIGGER accounts_stay BEFORE UPDATE OF id, name, parent, allowance, policy ON accounts
    BEGIN SELECT RAISE(ABORT, 'the terms of an account never change'); END;
CREATE TRIGGER accounts_grow BEFORE UPDATE ON accounts WHEN NEW.entries <> OLD.entries + 1
    BEGIN SELECT RAISE(ABORT, 'an account changes with an entry only'); END;
CREATE TRIGGER tallies_remain BEFORE DELETE ON tallies
    BEGIN SELECT RAISE(ABORT, 'tallies are never deleted'); END;
CREATE TRIGGER tallies_grow BEFORE UPDATE ON tallies WHEN NEW.number <= OLD.number
    BEGIN SELECT RAISE(ABORT, 'tallies only grow'); END;
"""

_CROWDS = """
CREATE TABLE crowds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    terms TEXT NOT NULL,
    members BLOB NOT NULL,
    entries INTEGER NOT NULL,
    head TEXT NOT NULL
) STRICT;
CREATE TABLE crowd_entries (
    crowd INTEGER NOT NULL REFERENCES crowds (id),
    sequence INTEGER NOT NULL,
    content TEXT NOT NULL,
    amounts BLOB,
    hash TEXT NOT NULL,
    PRIMARY KEY (crowd, sequence)
) STRICT;
CREATE TRIGGER crowd_entries_stay BEFORE UPDATE ON crowd_entries
    BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER crowd_entries_remain BEFORE DELETE ON crowd_entries
    BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER crowds_remain BEFORE DELETE ON crowds
    BEGIN SELECT RAISE(ABORT, 'crowds are never deleted'); END;
CREATE TRIGGER crowds_stay BEFORE UPDATE OF id, name, terms, members ON crowds
    BEGIN SELECT RAISE(ABORT, 'the terms of a crowd never change'); END;
CREATE TRIGGER crowds_grow BEFORE UPDATE ON crowds WHEN NEW.entries <> OLD.entries + 1
    BEGIN SELECT RAISE(ABORT, 'a crowd changes with an entry only'); END;
"""


def _script(text: str, connection: sqlite3.Connection) -> None:
    for statement in _statements(text):
        connection.execute(statement)


Migration: TypeAlias = Callable[[sqlite3.Connection], None]
# The n-th function leads from version n to n + 1; append only.
MIGRATIONS: tuple[Migration, ...] = (partial(_script, _FIRST), partial(_script, _CROWDS))


def migrations(*scripts: str) -> tuple[Migration, ...]:
    """The versions of another store than the ledger's, kept with the same care."""
    return tuple(partial(_script, text) for text in scripts)


class SqliteStore:
    """Durable by ``synchronous=FULL``; one writer at a time by ``BEGIN IMMEDIATE``.

    The write lock is taken before anything is read, so what a charge decides on cannot change
    until it is on disk.
    """

    lock = ""
    durable = True

    def __init__(self, path: Path, *, versions: Sequence[Migration] = MIGRATIONS) -> None:
        # Absolute: os.chdir must not lead a later connection to another file.
        self._path = path = path.absolute()
        self._versions = tuple(versions)
        self.seen: Seen = {}
        _create_private(path)
        # A function of the path, not of self: without a cycle the pool closes as soon as it may.
        connect = partial(_connect, path, _identity(path), versions)
        self._check_file = partial(_check_same, path, _identity(path))
        self._pool: Pool[sqlite3.Connection] = Pool(connect, lambda c: c.close())
        with self._pool.borrow() as connection, own_errors():
            migrate(connection, versions)

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[Path, tuple[Migration, ...], Seen]]:
        """A pickle names the file, and how far its chains went."""
        return _reopened, (self._path, self._versions, dict(self.seen))

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._transaction("BEGIN") as session:
            yield session

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        with self._pool.borrow() as connection, own_errors(), transaction(connection, begin) as x:
            self._check_file()
            yield x


def _reopened(path: Path, versions: tuple[Migration, ...], seen: Seen) -> Store:
    """The ledger that a pickle names; a new, empty one would give its budget again."""
    if not path.exists():
        return StoreClosed()
    store = SqliteStore(path, versions=versions)
    store.seen.update(seen)
    return store


def _create_private(path: Path) -> None:
    """Create a new file for its owner alone; SQLite gives its companions the same mode."""
    with suppress(OSError):  # one that exists keeps its mode; SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_same(path: Path, identity: tuple[int, int] | None) -> None:
    if identity is not None and _identity(path) != identity:
        raise StoreFailure(
            "The ledger's file was deleted or replaced since it was opened: what is written now "
            "would be lost. Restore the file, or open the ledger again."
        )


def _connect(
    path: Path, identity: tuple[int, int] | None, versions: Sequence[Migration]
) -> sqlite3.Connection:
    _check_same(path, identity)
    with own_errors():
        connection = sqlite3.connect(
            path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        try:
            _refuse_foreign(connection, versions)
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


class _SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, *values: Value) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[Session]:
    """All that the block does, or nothing if it fails."""
    connection.execute(begin)
    try:
        yield _SqliteSession(connection)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def own_errors() -> Iterator[None]:
    """SQLite's errors as ours, with the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        remedy = _REMEDIES.get(_code(error), "")
        raise StoreFailure(f"SQLite refused: {error}.{remedy}") from None


def _code(error: sqlite3.Error) -> int:
    """The kind of an error; the higher bits say how exactly."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; the first openers may get in each other's way."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            (found,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if _code(error) in _HOPELESS:
                raise
            found = "busy"
        if found == "wal":
            return
        if time.monotonic() > deadline:
            raise StoreFailure("The ledger's file does not accept a write-ahead log.")
        time.sleep(0.01)


def _refuse_foreign(connection: sqlite3.Connection, versions: Sequence[Migration]) -> None:
    """Refuse a file that holds something else, before a byte of it is changed.

    A file without a version must be empty, one with a version must have the tables of it.
    """
    connection.execute("BEGIN")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    found = _tables(connection)
    connection.execute("COMMIT")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for step in versions[:version]:
            step(model)
        wanted = _tables(model)
    foreign = not wanted <= found if version else bool(found)
    if foreign:
        raise StoreFailure(
            "This SQLite file holds something else; it was left as it is. If it was made by "
            "another program, name another one."
        )


def _tables(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in found}


def migrate(connection: sqlite3.Connection, versions: Sequence[Migration]) -> None:
    """Lead a store to the newest version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        check_version(version, len(versions))
        for step in versions[version:]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(versions)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Split a script; the end of a trigger is not the end of a statement."""
    part = ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            yield part
            part = ""
