"""HTTP to a server, with the standard library: a token, a timeout, and errors by their names."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)

DEFAULT_TIMEOUT = 60.0
"""Seconds after which a server that cannot be reached, or is busy, is given up."""
_ROOT = "/api/v1"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_SOCKET_TIMEOUT = 30.0
_BUSY = (429, 502, 503, 504)
_NO_JSON: Mapping[str, str] = {"detail": "the answer is not JSON"}
_KINDS: Mapping[str, type[PrivacyError]] = {
    "budget-exceeded": BudgetExceeded,
    "invalid-argument": InvalidArgument,
    "not-certified": NotCertified,
    "out-of-domain": OutOfDomain,
    "relation-mismatch": RelationMismatch,
    "unsupported": Unsupported,
}


class ServerRefused(PrivacyError):
    """The server does not let this token do that, knows no such thing, or failed to answer.

    A failed release may have been charged; its words say so.
    """


class ServerUnreachable(PrivacyError):
    """No answer in time. Asking again with the same request_id is charged at most once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where a server is and who asks. Nothing stays open between requests: threads may share it."""

    host: str
    port: int | None
    prefix: str
    context: ssl.SSLContext | None = field(repr=False)
    token: str = field(repr=False)
    timeout: float = DEFAULT_TIMEOUT

    def get(self, *path: str, wait: int = 0) -> Any:
        """What stands at an address; ``wait`` lets the server wait for it so many seconds."""
        return self._until_answered("GET", _address(path) + (f"?wait={wait}" if wait else ""), None)

    def post(self, *path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a request that the server recognizes when it comes twice."""
        return self._until_answered(
            "POST", _address(path), json.dumps(body, allow_nan=False).encode()
        )

    def _until_answered(self, method: str, path: str, body: bytes | None) -> Any:
        """Every request here may be repeated: planning spends nothing, a release has its id."""
        ends, pause = time.monotonic() + self.timeout, _FIRST_PAUSE
        while True:
            try:
                status, wait, content = self._once(method, path, body)
            except ssl.SSLError as error:
                raise ServerRefused(f"{self.host}: no trusted connection: {error}.") from None
            except (OSError, http.client.HTTPException) as error:
                status, wait = 0, None
                content = {"detail": f"no connection ({type(error).__name__})"}
            if 200 <= status < 300 and content is not _NO_JSON:
                return content
            if status and status not in _BUSY:
                raise _refusal(status, content)
            pause = min(2 * pause, _LONGEST_PAUSE)
            rest = pause if wait is None else max(wait, _FIRST_PAUSE)
            if time.monotonic() + rest > ends:
                raise ServerUnreachable(f"{self.host}: {_detail(content)}; try again later.")
            time.sleep(rest)

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, float | None, Any]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "Connection": "close",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        socket = self._socket()
        try:
            socket.request(method, self.prefix + path, body=body, headers=headers)
            response = socket.getresponse()
            text = response.read()
        finally:
            socket.close()
        wait = response.getheader("Retry-After", "")
        return response.status, float(wait) if wait.isdigit() else None, _content(text)

    def _socket(self) -> http.client.HTTPConnection:
        if self.context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=_SOCKET_TIMEOUT)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=_SOCKET_TIMEOUT, context=self.context
        )


def connection(url: str, token: str, *, timeout: float, ca_file: str | None) -> Connection:
    """A checked address; nothing is sent yet.

    A token is a password: over plain HTTP it goes to this machine alone.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidArgument("url must be http://HOST:PORT or https://HOST.") from None
    try:
        port = parts.port
    except ValueError:
        raise InvalidArgument("url: the port must be a number.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise InvalidArgument("url must be http://HOST:PORT or https://HOST.")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidArgument("token must be one that the server has shown, without spaces.")
    if parts.scheme == "http" and not _loopback(parts.hostname):
        raise InvalidArgument(
            f"url: plain HTTP would show the token to the network; use https://{parts.hostname}."
        )
    try:
        context = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
    except OSError:
        raise InvalidArgument(
            "ca_file must be a file with certificates in PEM that can be read."
        ) from None
    return Connection(
        host=parts.hostname,
        port=port,
        prefix=parts.path.rstrip("/"),
        context=context,
        token=token,
        timeout=timeout,
    )


def _address(path: tuple[str, ...]) -> str:
    return "/".join([_ROOT, *(quote(part, safe="") for part in path)])


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _content(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return _NO_JSON


def _refusal(status: int, content: Any) -> PrivacyError:
    code = content.get("problem") if isinstance(content, Mapping) else None
    return _KINDS.get(str(code), ServerRefused)(f"{_detail(content)} (HTTP {status})")


def error_of(problem: str | None, detail: str) -> PrivacyError:
    """The error of a job that failed."""
    return _KINDS.get(str(problem), ServerRefused)(detail)


def _detail(content: Any) -> str:
    found = content.get("detail") if isinstance(content, Mapping) else None
    return found if isinstance(found, str) else "the server refused"
