"""A small file that one process holds: named values, changed all or none, and then on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_VALUES = "CREATE TABLE held (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID"


class Held:
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
