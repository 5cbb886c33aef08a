"""What a store must offer: transactions that are durable when they end, and snapshots."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from discreet.core.errors import PrivacyError, Unsupported

Value: TypeAlias = int | str | bytes | None
Seen: TypeAlias = dict[str, tuple[int, str]]
"""The number of entries and the last hash of each chain, as this process saw them last."""
C = TypeVar("C")


class StoreFailure(PrivacyError):
    """The ledger's store could not be read or written; nothing was granted."""


NO_PICKLE = (
    "Only a ledger in a file (sqlite:///FILE) can be pickled: one in memory would be there twice, "
    "and an address of PostgreSQL may hold a password. Open it where it is needed."
)


class Session(Protocol):
    """One transaction. Placeholders are question marks."""

    def run(self, sql: str, *values: Value) -> list[tuple[Any, ...]]: ...


class Store(Protocol):
    """Where a ledger lives."""

    @property
    def lock(self) -> str:
        """What a SELECT needs at its end to hold the row until the transaction ends."""
        ...

    @property
    def durable(self) -> bool:
        """Whether what was written survives the process."""
        ...

    @property
    def seen(self) -> Seen:
        """How far each chain went when this process looked last: none becomes shorter."""
        ...

    def write(self) -> AbstractContextManager[Session]:
        """A transaction that is on disk when the block ends, and undone if the block fails."""
        ...

    def read(self) -> AbstractContextManager[Session]:
        """A snapshot."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StoreClosed:
    """In the place of a store that a pickle cannot name."""

    lock: str = ""
    durable: bool = True  # what was charged is where it was
    seen: Seen = field(default_factory=dict, repr=False, compare=False)

    def write(self) -> AbstractContextManager[Session]:
        """Refused."""
        raise StoreFailure(
            "This account comes from a pickle, which holds no way to its ledger; nothing was "
            "spent. Take it from Ledger.account() and set it again."
        )

    read = write

    def close(self) -> None:
        """Nothing is open."""


class Pool(Generic[C]):
    """Connections: each is used by one thread at a time, and none is open during a fork.

    SQLite keeps its locks in the memory of the process. A child that inherits an open connection
    believes to hold locks that it does not hold, even through connections of its own; when the
    parent then closes, the child's later commits can be lost. So a fork waits until no connection
    is in use, and all are closed first.
    """

    def __init__(self, connect: Callable[[], C], close: Callable[[C], None]) -> None:
        self._connect = connect
        self._close = close
        self._idle: list[C] = []
        self._users: list[int] = []
        self._gate = threading.Condition()
        _POOLS.add(self)

    @contextmanager
    def borrow(self) -> Iterator[C]:
        """A connection for a while; after an error that it may not survive it is closed."""
        with self._gate:
            self._users.append(threading.get_ident())
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is None:
                connection = self._connect()
            try:
                yield connection
            except StoreFailure:
                self._close(connection)
                connection = None
                raise
        finally:
            with self._gate:
                self._users.remove(threading.get_ident())
                if connection is not None:
                    self._idle.append(connection)
                self._gate.notify_all()

    def close(self) -> None:
        """Close what is idle."""
        with self._gate:
            while self._idle:
                self._close(self._idle.pop())

    def __del__(self) -> None:
        self.close()

    def hold(self) -> None:
        """Before a fork: wait for other threads, close everything, let nobody begin."""
        self._gate.acquire()
        own = threading.get_ident()
        self._gate.wait_for(lambda: all(user == own for user in self._users))
        self.close()

    def resume(self) -> None:
        """After a fork, in both processes."""
        self._gate.release()


_POOLS: weakref.WeakSet[Pool[Any]] = weakref.WeakSet()
_HELD: list[Pool[Any]] = []


def _before_fork() -> None:
    # In one order, so that two threads that fork do not wait for each other.
    for pool in sorted(_POOLS, key=id):
        pool.hold()
        _HELD.append(pool)


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().resume()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def check_version(found: int, known: int) -> None:
    """Refuse a store that a newer discreet has written."""
    if found > known:
        raise Unsupported(
            f"The ledger has version {found}, this discreet knows {known}; use a newer discreet."
        )
