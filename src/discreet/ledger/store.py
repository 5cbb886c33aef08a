"""What a store must offer: transactions that are durable when they end, and snapshots."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from discreet.core.errors import PrivacyError, Unsupported

Value: TypeAlias = int | str | None
C = TypeVar("C")


class StoreFailure(PrivacyError):
    """The ledger's store could not be read or written; nothing was granted."""


class Session(Protocol):
    """One transaction. Placeholders are question marks."""

    def run(self, sql: str, *values: Value) -> list[tuple[Any, ...]]: ...


class Store(Protocol):
    """Where a ledger lives."""

    @property
    def lock(self) -> str:
        """What a SELECT needs at its end to hold the row until the transaction ends."""
        ...

    def write(self) -> AbstractContextManager[Session]:
        """A transaction that is on disk when the block ends, and undone if the block fails."""
        ...

    def read(self) -> AbstractContextManager[Session]:
        """A snapshot."""
        ...

    def close(self) -> None: ...


class Pool(Generic[C]):
    """Connections: each is used by one thread at a time and by the process that opened it."""

    def __init__(self, connect: Callable[[], C], close: Callable[[C], None]) -> None:
        self._connect = connect
        self._close = close
        self._idle: deque[C] = deque()
        self._process = os.getpid()

    @contextmanager
    def borrow(self) -> Iterator[C]:
        """A connection for a while; after an error that it does not survive it is closed."""
        self._notice_fork()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except StoreFailure:
            self._close(connection)
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle."""
        self._notice_fork()
        while self._idle:
            self._close(self._idle.pop())

    def __del__(self) -> None:
        if self._process == os.getpid():
            self.close()

    def _notice_fork(self) -> None:
        if self._process != os.getpid():
            # The parent's connections are not ours: to close one here would disturb its locks.
            _INHERITED.append(self._idle)
            self._idle = deque()
            self._process = os.getpid()


_INHERITED: list[object] = []


def check_version(found: int, known: int) -> None:
    """Refuse a store that a newer discreet has written."""
    if found > known:
        raise Unsupported(
            f"The ledger has version {found}, this discreet knows {known}; use a newer discreet."
        )
