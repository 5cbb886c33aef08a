"""Connections that do not wait for ever: clients that send slowly, and too many of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

_FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class TimeoutMiddleware(H11Protocol):
    """HTTP whose headers must arrive in time; the body is the guard's."""

    seconds: ClassVar[float] = 10.0
    most: ClassVar[int] = 500
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or say that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_FULL)
            transport.close()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._rest()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Headers that have begun to arrive must end; a request that is here has no hurry."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._rest()
        elif self._late is None:
            self._late = self.loop.call_later(self.seconds, self._close)

    def _rest(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()
