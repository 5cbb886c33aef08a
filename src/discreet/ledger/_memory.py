"""The ledger in the memory of one process, for notebooks and tests: gone when the process ends."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.ledger import _sqlite
from discreet.ledger.store import Seen, Session, StoreClosed, StoreFailure


class MemoryStore:
    """One SQLite database without a file, used by one thread at a time.

    A fork would copy it, and the budget with it: the child is refused. Nothing else leads to a
    second one, because neither a ledger nor an account can be copied or sent.
    """

    lock = ""
    durable = False

    def __init__(self) -> None:
        self.seen: Seen = {}
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._busy = False
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA foreign_keys = ON")
        _sqlite.migrate(self._connection, _sqlite.MIGRATIONS)

    def __reduce__(self) -> tuple[type[StoreClosed], tuple[()]]:
        """A second one would double the budget."""
        return StoreClosed, ()

    @contextmanager
    def write(self) -> Iterator[Session]:
        # Before the lock is asked for: in a child its holder may not exist any more.
        if os.getpid() != self._process:
            raise StoreFailure(
                "This ledger lives in the memory of the process that opened it, and a fork does "
                "not double its budget; nothing was granted. Charge in that process, or keep the "
                "ledger in a file: sqlite:///FILE."
            )
        with self._turn:
            if self._busy:  # the same thread, inside a transaction of its own
                raise StoreFailure(
                    "This ledger in memory is in use by this thread already; nothing was granted. "
                    "End what is under way first, or keep the ledger in a file: sqlite:///FILE."
                )
            self._busy = True
            try:
                with _sqlite.own_errors(), _sqlite.transaction(self._connection, "BEGIN") as held:
                    yield held
            finally:
                self._busy = False

    read = write

    def close(self) -> None:
        """Nothing: closing would give the budget back."""
