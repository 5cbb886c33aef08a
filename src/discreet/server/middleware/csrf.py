"""The check against cross-site request forgery (CSRF): an unsafe request must come from our pages.

Three things are checked: what the browser says about the origin, the ``Origin`` header against the
hosts of the server, and the token of the session that every form sends along.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hmac import compare_digest
from urllib.parse import parse_qs, urlsplit

from fastapi import Request

_FIELD = re.compile(rb'name="csrf"\r\n\r\n([A-Za-z0-9_-]{1,100})\r\n')


def csrf_of(request: Request) -> str:
    """What forms of this session must send along as ``csrf`` (or as the header X-CSRF-Token)."""
    return str(getattr(request.state, "csrf", ""))


def is_forged(
    headers: Mapping[bytes, bytes], body: bytes, *, expected: str | None, hosts: Collection[str]
) -> bool:
    """Whether an unsafe request of a browser does not come from a page of this server.

    ``expected`` is the token of the session; without a session there is nothing to forge.
    ``hosts`` are the names by which browsers address a server behind a proxy.
    """
    site = headers.get(b"sec-fetch-site", b"same-origin")
    if site not in (b"same-origin", b"none"):
        return True
    origin = headers.get(b"origin", b"").decode("latin-1")
    own = headers.get(b"host", b"").decode("latin-1").lower()
    if origin and _netloc(origin) != own and host_of(_netloc(origin)) not in hosts:
        return True
    if expected is None:
        return False
    return not compare_digest(_given(headers, body).encode(), expected.encode())


def host_of(address: str) -> str:
    """The name in HOST:PORT; nothing where there is none."""
    try:
        return (urlsplit(f"//{address}").hostname or "").lower()
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _given(headers: Mapping[bytes, bytes], body: bytes) -> str:
    """From a header, or from a field of the form."""
    if b"x-csrf-token" in headers:
        return headers[b"x-csrf-token"].decode("latin-1")
    kind = headers.get(b"content-type", b"").lower()
    if kind.startswith(b"application/x-www-form-urlencoded"):
        try:
            return parse_qs(body.decode("latin-1"), max_num_fields=1000).get("csrf", [""])[0]
        except ValueError:
            return ""
    found = _FIELD.search(body) if kind.startswith(b"multipart/form-data") else None
    return found[1].decode("latin-1") if found else ""
