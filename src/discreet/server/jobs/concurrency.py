"""Turns for long work and memory of a bounded size: no caller uses up a whole worker."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from discreet.server.middleware.errors import Busy

_Kept = TypeVar("_Kept")


class ConcurrencyLimit:
    """One at a time; few wait, for a while, so that threads are left for everybody else."""

    def __init__(self, busy: str, *, waiting: int, seconds: float = 20.0) -> None:
        self._busy = busy
        self._seconds = seconds
        self._room = threading.BoundedSemaphore(waiting + 1)
        self._turn = threading.BoundedSemaphore(1)

    @contextmanager
    def taken(self, *, patient: bool = False) -> Iterator[None]:
        """The turn of the caller, or Busy; who is ``patient`` waits as long as it takes."""
        if patient:
            with self._turn:
                yield
            return
        if not self._room.acquire(blocking=False):
            raise Busy(self._busy)
        try:
            if not self._turn.acquire(timeout=self._seconds):
                raise Busy(self._busy)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._room.release()


class BoundedCache(Generic[_Kept]):
    """What was used last, as much of it as has room: things count by their weight."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: OrderedDict[Hashable, tuple[_Kept, int]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: Hashable) -> _Kept | None:
        """What is kept, if it is."""
        with self._turn:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: _Kept, *, weight: int) -> None:
        """Keep it, and forget what was not used for longest."""
        with self._turn:
            if key in self._kept:
                self._weight -= self._kept.pop(key)[1]
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self._most and self._kept:
                self._weight -= self._kept.popitem(last=False)[1][1]
