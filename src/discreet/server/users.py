"""Who may do what: people, their tokens and sessions.

A token is 32 random bytes, shown once; only its SHA-256 is kept. It cannot be guessed, so no slow
hash is needed, and it is found by its hash, so no comparison tells how much of a guess was right.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, cast

from discreet.core.errors import InvalidArgument
from discreet.ledger.store import Session, Store
from discreet.server.config import is_name
from discreet.server.store import now

Role: TypeAlias = Literal["owner", "analyst", "auditor"]
ROLES: tuple[Role, ...] = ("owner", "analyst", "auditor")
LIFE = timedelta(days=90)
SESSION_LIFE = timedelta(hours=12)
_BYTES = 32
_PREFIX = "dsc_"  # lets people and scanners recognize a token that was left lying about
_LONGEST_TOKEN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who was recognized, by a token or a session."""

    name: str
    role: Role
    key: str = field(default="", repr=False)
    """What rates are counted by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A browser's session: who it is, and what its forms must bring along."""

    person: User
    csrf: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """A person in the store."""

    name: str
    role: Role
    revoked: bool
    expires: int | None
    """When the last token ends, in milliseconds."""


class UserStore:
    """The people of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str, role: str, *, life: timedelta = LIFE) -> tuple[str, datetime]:
        """A new token for a person, who is added if unknown; the token is never shown again."""
        if not is_name(name):
            raise InvalidArgument("name must be 1 to 64 letters, digits, dashes or underscores.")
        if role not in ROLES:
            raise InvalidArgument(f"role must be one of {', '.join(ROLES)}.")
        if not timedelta(0) < life <= timedelta(days=3660):
            raise InvalidArgument("A token must last longer than no time and at most ten years.")
        token = _PREFIX + secrets.token_urlsafe(_BYTES)
        expires = datetime.now(tz=UTC) + life
        with self._store.write() as session:
            session.run(
                "INSERT INTO people (name, role, made) VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO NOTHING",
                *(name, role, now()),
            )
            ((known, revoked),) = session.run(
                f"SELECT role, revoked FROM people WHERE name = ?{self._store.lock}",  # noqa: S608
                name,
            )
            if known != role:
                raise InvalidArgument(f"{name} is known as {known}; roles never change.")
            if revoked is not None:
                raise InvalidArgument(f"{name} was revoked; take another name.")
            session.run(
                "INSERT INTO tokens (hash, person, made, expires) VALUES (?, ?, ?, ?)",
                *(hash_secret(token), name, now(), int(expires.timestamp() * 1000)),
            )
        return token, expires

    def revoke(self, name: str) -> None:
        """End all tokens and sessions of a person, at once and for ever.

        What they have asked for and nobody has begun is refused, and costs nothing.
        """
        with self._store.write() as session:
            if not is_name(name) or not session.run("SELECT 1 FROM people WHERE name = ?", name):
                raise InvalidArgument(f"There is nobody called {name!r}.")
            session.run(
                "UPDATE people SET revoked = ? WHERE name = ? AND revoked IS NULL", now(), name
            )
            session.run(
                "UPDATE tokens SET revoked = ? WHERE person = ? AND revoked IS NULL", now(), name
            )
            session.run(
                "DELETE FROM sessions WHERE token IN (SELECT hash FROM tokens WHERE person = ?)",
                name,
            )
            session.run(
                "UPDATE jobs SET state = 'refused', problem = 'forbidden', error = ?, "
                "finished = ?, settled = 1 WHERE person = ? AND state = 'queued'",
                *("Revoked before it began; nothing was spent.", now(), name),
            )

    def by_token(self, token: str) -> User | None:
        """Who holds a token; nobody if it is unknown, too old or revoked."""
        if not token.isascii() or len(token) > _LONGEST_TOKEN:
            return None
        with self._store.read() as session:
            return _holder(session, hash_secret(token))

    def sign_in(self, token: str) -> tuple[str, SignedIn] | None:
        """A session's secret, for a cookie, and the session; None for a token that is no use."""
        person = self.by_token(token)
        if person is None:
            return None
        secret, csrf = secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES)
        ends = now() + int(SESSION_LIFE.total_seconds() * 1000)
        with self._store.write() as session:
            session.run("DELETE FROM sessions WHERE expires < ?", now())
            session.run(
                "INSERT INTO sessions (hash, token, csrf, expires) VALUES (?, ?, ?, ?)",
                *(hash_secret(secret), hash_secret(token), csrf, ends),
            )
        return secret, SignedIn(person=person, csrf=csrf)

    def by_session(self, secret: str) -> SignedIn | None:
        """Whose session it is; nobody's if it has ended, or its token has."""
        if not secret.isascii() or len(secret) > _LONGEST_TOKEN:
            return None
        with self._store.read() as session:
            found = session.run(
                "SELECT token, csrf FROM sessions WHERE hash = ? AND expires > ?",
                *(hash_secret(secret), now()),
            )
            person = _holder(session, found[0][0]) if found else None
        return None if person is None else SignedIn(person=person, csrf=found[0][1])

    def sign_out(self, secret: str) -> None:
        """End a session."""
        with self._store.write() as session:
            session.run("DELETE FROM sessions WHERE hash = ?", hash_secret(secret))

    def known(self) -> Sequence[UserRecord]:
        """Everybody, by name."""
        with self._store.read() as session:
            rows = session.run(
                "SELECT name, role, people.revoked, max(tokens.expires) FROM people "
                "LEFT JOIN tokens ON tokens.person = people.name "
                "GROUP BY name, role, people.revoked ORDER BY name"
            )
        return [
            UserRecord(name=name, role=role, revoked=revoked is not None, expires=expires)
            for name, role, revoked, expires in rows
        ]


def hash_secret(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _holder(session: Session, token: str) -> User | None:
    found = session.run(
        "SELECT name, role FROM tokens JOIN people ON people.name = tokens.person "
        "WHERE hash = ? AND expires > ? AND tokens.revoked IS NULL AND people.revoked IS NULL",
        *(token, now()),
    )
    if not found:
        return None
    name, role = found[0]
    return User(name=name, role=cast("Role", role), key=token)
