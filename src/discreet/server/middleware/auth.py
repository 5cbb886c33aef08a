"""The door of the server: is this a request for us, from whom, and may it come in.

One ASGI layer around everything: addressed host, size and pace of the body, token or session, rate,
forgery, headers of the answer, one line in the log. What comes through has been read completely.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.server.config import Config, is_loopback
from discreet.server.middleware import monitoring as log
from discreet.server.middleware.csrf import host_of, is_forged
from discreet.server.middleware.errors import ProblemDetail, SignInNeeded
from discreet.server.middleware.monitoring import METHODS, ServerMetrics
from discreet.server.middleware.rate_limit import RateLimit
from discreet.server.service import Service
from discreet.server.users import User

COOKIE = "discreet_session"
_SAFE = ("GET", "HEAD", "OPTIONS")
_PUBLIC = ("/static/",)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def service_of(request: Request) -> Service:
    """The service that the application serves."""
    found: Service = request.app.state.service
    return found


def caller(request: Request) -> User:
    """Who asks; SignInNeeded if nobody is signed in."""
    found: User | None = getattr(request.state, "who", None)
    if found is None:
        raise SignInNeeded("Sign in with a token.")
    return found


Who = Annotated[User, Depends(caller)]
Serving = Annotated[Service, Depends(service_of)]


class _RequestRefused(Exception):
    """An answer without asking the application."""

    def __init__(self, status: int, code: str, detail: str, *, wait: int | None = None) -> None:
        super().__init__(detail)
        self.problem = ProblemDetail(status=status, problem=code, detail=detail)
        self.wait = wait


class AuthMiddleware:
    """The layer around the application."""

    def __init__(self, app: ASGIApp, *, service: Service, metrics: ServerMetrics) -> None:
        self._app = app
        self._service = service
        self._config: Config = service.config
        self._metrics = metrics
        self._rate = RateLimit(
            per_second=self._config.rates.requests_per_second, burst=self._config.rates.burst
        )
        self._strangers = RateLimit(per_second=1, burst=self._config.rates.burst)
        self._lookups: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        number = secrets.token_hex(6)
        scope.setdefault("state", {})
        seen: dict[str, int] = {}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                message["headers"] = self._headers(scope, number, message.get("headers", ()))
            await send(message)

        self._metrics.begin()
        try:
            await self._within(scope, receive, answer)
        except _RequestRefused as refusal:
            await _send(answer, refusal.problem, wait=refusal.wait)
        except Exception as error:  # noqa: BLE001 - a server never shows its inside
            log.failure(f"request={number}", error)
            if "status" not in seen:
                problem = ProblemDetail(
                    status=500, problem="failure", detail="Something went wrong."
                )
                await _send(answer, problem)
        finally:
            spent = time.perf_counter() - began
            who: User | None = scope["state"].get("who")
            route = _template(scope)
            status = seen.get("status", 499)
            self._metrics.end(scope["method"], route, status, spent)
            log.request(
                number=number,
                role="-" if who is None else who.role,
                method=scope["method"] if scope["method"] in METHODS else "other",
                route=route,
                status=status,
                milliseconds=1000 * spent,
            )

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        if any(_twice(scope, name) for name in (b"authorization", b"host", b"x-csrf-token")):
            raise _RequestRefused(
                400, "ambiguous", "A header that decides something is there twice."
            )
        self._check_host(scope, headers)
        bearer = await self._recognize(scope, headers)
        body = await self._body(headers, receive)
        if scope["method"] not in _SAFE and not bearer:
            self._check_forgery(scope, headers, body)
        await self._app(scope, _replay(body, receive), send)

    # ── one check each ───────────────────────────────────────────────────────

    def _check_host(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """A page that makes a browser believe our address is its own gets nothing."""
        if scope["path"].startswith("/health/"):
            return
        if self._config.proxy and self._config.certificate is None and scope["scheme"] != "https":
            # Only the word of a declared proxy changes the scheme of a plain connection.
            raise _RequestRefused(403, "not-encrypted", "Come through the proxy, encrypted.")
        host = host_of(headers.get(b"host", b"").decode("latin-1"))
        known = {self._config.host, *self._config.hosts}
        if host in known or (self._config.loopback and is_loopback(host)):
            return
        raise _RequestRefused(421, "wrong-host", "This server has another name.")

    async def _recognize(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Set who asks; whether it was by a token that no browser sends by itself."""
        people = self._service.users
        given = headers.get(b"authorization", b"").decode("latin-1")
        client = (scope.get("client") or ("?", 0))[0]
        if given:
            kind, _, token = given.partition(" ")
            who = None
            if kind.lower() == "bearer":
                who = await self._aside(people.by_token, token.strip())
            if who is None:
                self._take(self._strangers, client)
                raise _RequestRefused(
                    401, "sign-in-needed", "The token is unknown, too old or revoked."
                )
            scope["state"]["who"] = who
            self._take(self._rate, who.key)
            return True
        secret = _cookie(headers.get(b"cookie", b"").decode("latin-1"))
        session = await self._aside(people.by_session, secret) if secret else None
        if session is not None:
            scope["state"]["who"] = session.person
            scope["state"]["csrf"] = session.csrf
            if not scope["path"].startswith(_PUBLIC):
                self._take(self._rate, session.person.key)
        elif scope["method"] not in _SAFE:
            self._take(self._strangers, client)
        return False

    def _take(self, rate: RateLimit, key: str) -> None:
        wait = rate.take(key)
        if wait:
            raise _RequestRefused(429, "busy", "Too many requests; nothing was spent.", wait=wait)

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        most = self._config.rates.body_bytes
        length = headers.get(b"content-length", b"0")
        too_large = _RequestRefused(413, "too-large", f"A request may have {most} bytes at most.")
        if not length.isdigit() or int(length) > most:
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._config.rates.seconds_to_send):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _RequestRefused(400, "gone", "The client is gone.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _RequestRefused(408, "too-slow", "The request took too long to arrive.") from None
        return b"".join(parts)

    def _check_forgery(self, scope: Scope, headers: Mapping[bytes, bytes], body: bytes) -> None:
        """An unsafe request of a browser must come from our own pages."""
        expected = scope["state"].get("csrf")
        if is_forged(headers, body, expected=expected, hosts=self._config.hosts):
            raise _RequestRefused(403, "forgery", "This did not come from a page of this server.")

    def _headers(self, scope: Scope, number: str, given: Any) -> list[tuple[bytes, bytes]]:
        kept = {name.lower() for name, _ in given}
        wanted = dict(_HEADERS)
        wanted["x-request-number"] = number
        if not scope["path"].startswith(_PUBLIC):
            wanted["cache-control"] = "no-store"
        elif b"cache-control" not in kept:
            wanted["cache-control"] = "public, max-age=3600"
        if self._config.secure:
            wanted["strict-transport-security"] = "max-age=31536000"
        added = [(k.encode(), v.encode()) for k, v in wanted.items() if k.encode() not in kept]
        return [*given, *added]

    async def _aside(self, function: Any, argument: str) -> Any:
        """A look at the store, in a thread that plans do not occupy."""
        if self._lookups is None:
            self._lookups = CapacityLimiter(8)
        return await to_thread.run_sync(function, argument, limiter=self._lookups)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more; afterwards only whether the client is gone."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _send(send: Send, problem: ProblemDetail, *, wait: int | None = None) -> None:
    body = json.dumps({"problem": problem.problem, "detail": problem.detail}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if wait is not None:
        headers.append((b"retry-after", str(wait).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.status in (400, 408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _template(scope: Scope) -> str:
    """The route as it is declared: what stood in its places is not for a log."""
    path = getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    return "/static" if scope["path"].startswith("/static/") else "(none)"


def _twice(scope: Scope, name: bytes) -> bool:
    return len([1 for given, _ in scope["headers"] if given.lower() == name]) > 1


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
