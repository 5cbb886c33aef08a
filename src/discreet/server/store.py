"""What the service remembers: people, tokens and sessions as hashes, budgets, jobs.

The same SQL in SQLite (one host) and PostgreSQL (several). It lives beside the ledger, in a file or
a schema of its own: the ledger says what was spent, the store who asked for what.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from discreet.core.errors import InvalidArgument
from discreet.ledger import _postgres as postgres
from discreet.ledger import _sqlite as sqlite
from discreet.ledger.store import Store

_FIRST = """
CREATE TABLE people (
    name TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    made BIGINT NOT NULL,
    revoked BIGINT
);
CREATE TABLE tokens (
    hash TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    made BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    revoked BIGINT
);
CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    token TEXT NOT NULL REFERENCES tokens (hash),
    csrf TEXT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE TABLE budgets (
    person TEXT NOT NULL REFERENCES people (name),
    subject TEXT NOT NULL,
    account TEXT NOT NULL UNIQUE,
    number BIGINT NOT NULL,
    PRIMARY KEY (person, subject)
);
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    request TEXT NOT NULL,
    subject TEXT NOT NULL,
    digest TEXT NOT NULL,
    asked TEXT NOT NULL,
    title TEXT NOT NULL,
    worth TEXT NOT NULL,
    account TEXT NOT NULL,
    made BIGINT NOT NULL,
    state TEXT NOT NULL,
    finished BIGINT,
    claim TEXT,
    lease BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    receipt TEXT,
    settled BIGINT NOT NULL,
    result TEXT,
    error TEXT,
    problem TEXT,
    UNIQUE (person, request)
);
CREATE INDEX jobs_open ON jobs (made) WHERE settled = 0;
CREATE INDEX jobs_person ON jobs (person, made);
CREATE TABLE notes (
    name TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    time BIGINT NOT NULL
);
"""
# The n-th script leads from version n to n + 1; append only.
_SCRIPTS = (_FIRST,)
SCHEMA = "discreet_service"


def open_store(url: str) -> Store:
    """The store of an address: sqlite:///FILE or postgresql://..."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1 and rest != "/:memory:":
        path = Path(rest[1:])
        _keep_private(path)
        return sqlite.SqliteStore(path, versions=sqlite.migrations(*_SCRIPTS))
    if scheme in ("postgresql", "postgres"):
        versions = postgres.migrations(*_SCRIPTS)
        return postgres.PostgresStore(url, schema=SCHEMA, versions=versions)
    raise InvalidArgument(
        f"store must be sqlite:///FILE or postgresql://..., got the scheme {scheme!r}."
    )


def _keep_private(path: Path) -> None:
    """Answers are for those who asked: other users of the machine cannot open a new file."""
    with suppress(OSError):  # SQLite will say what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
