"""The ledger in PostgreSQL: several hosts share one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from discreet.core.errors import Unsupported
from discreet.ledger.store import (
    Pool,
    Seen,
    Session,
    StoreClosed,
    StoreFailure,
    Value,
    check_version,
)

Connection: TypeAlias = Any  # psycopg is an extra; it is not imported for its types
MIGRATION_LOCK = 0x64697363  # "disc": one opener migrates at a time

# By how the state begins; without one there was no connection.
_REMEDIES = {
    "none": " Is the server up, and does the address name its host, database, user and password?",
    "42501": " Let this user create a schema and its tables.",
    "53": " The server lacks connections, memory or disk: make room, then ask again.",
    "55P03": " Somebody holds the ledger: ask again.",
    "57": " The server stops or starts: ask again.",
}

_FIRST = """
CREATE TABLE accounts (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    parent BIGINT REFERENCES accounts (id),
    allowance TEXT NOT NULL,
    policy TEXT NOT NULL,
    expires TEXT,
    period BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    head TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE TABLE entries (
    account BIGINT NOT NULL REFERENCES accounts (id),
    sequence BIGINT NOT NULL,
    content TEXT NOT NULL,
    hash TEXT NOT NULL,
    request TEXT,
    settles BIGINT,
    PRIMARY KEY (account, sequence)
);
CREATE UNIQUE INDEX entries_request ON entries (account, request)
    WHERE request IS NOT NULL;
CREATE UNIQUE INDEX entries_settles ON entries (account, settles)
    WHERE settles IS NOT NULL;
CREATE TABLE tallies (
    account BIGINT NOT NULL REFERENCES accounts (id),
    period BIGINT NOT NULL,
    cohort TEXT NOT NULL,
    digest TEXT NOT NULL,
    event TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (account, period, cohort, digest)
);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER accounts_remain BEFORE DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER accounts_stay BEFORE UPDATE OF id, name, parent, allowance, policy
    ON accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER accounts_grow BEFORE UPDATE ON accounts
    FOR EACH ROW WHEN (NEW.entries <> OLD.entries + 1) EXECUTE FUNCTION refuse();
CREATE TRIGGER tallies_remain BEFORE DELETE OR TRUNCATE ON tallies
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER tallies_grow BEFORE UPDATE ON tallies
    FOR EACH ROW WHEN (NEW.number <= OLD.number) EXECUTE FUNCTION refuse();
"""

_CROWDS = """
CREATE TABLE crowds (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    terms TEXT NOT NULL,
    members BYTEA NOT NULL,
    entries BIGINT NOT NULL,
    head TEXT NOT NULL
);
CREATE TABLE crowd_entries (
    crowd BIGINT NOT NULL REFERENCES crowds (id),
    sequence BIGINT NOT NULL,
    content TEXT NOT NULL,
    amounts BYTEA,
    hash TEXT NOT NULL,
    PRIMARY KEY (crowd, sequence)
);
CREATE TRIGGER crowd_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON crowd_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER crowds_remain BEFORE DELETE OR TRUNCATE ON crowds
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER crowds_stay BEFORE UPDATE OF id, name, terms, members
    ON crowds FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER crowds_grow BEFORE UPDATE ON crowds
    FOR EACH ROW WHEN (NEW.entries <> OLD.entries + 1) EXECUTE FUNCTION refuse();
"""


def _script(text: str, connection: Connection) -> None:
    connection.execute(text)


Migration: TypeAlias = Callable[[Connection], None]
# The n-th function leads from version n to n + 1; append only.
MIGRATIONS: tuple[Migration, ...] = (partial(_script, _FIRST), partial(_script, _CROWDS))
SCHEMA = "discreet"


def migrations(*scripts: str) -> tuple[Migration, ...]:
    """The versions of another store than the ledger's, kept with the same care."""
    return tuple(partial(_script, text) for text in scripts)


class PostgresStore:
    """Durable by ``synchronous_commit``; one writer for each account by a row lock.

    Why READ COMMITTED is enough: a charge first locks the rows of its accounts, root first, with
    ``SELECT ... FOR UPDATE``, which waits for whoever holds them and then returns their newest
    committed version. It decides from these rows and from entries of the locked accounts, and it
    writes to nothing else. Two charges that share an account are thus one after the other, and
    those that share none commute: every history is equivalent to a serial one. Locks are taken
    along the tree, so there is no deadlock.
    """

    lock = " FOR UPDATE"
    durable = True

    def __init__(
        self, url: str, *, schema: str = SCHEMA, versions: Sequence[Migration] = MIGRATIONS
    ) -> None:
        self.seen: Seen = {}
        # A function of the address, not of self: without a cycle the pool closes as soon as it may.
        self._pool: Pool[Connection] = Pool(partial(_connect, url, schema), lambda c: c.close())
        with self._pool.borrow() as connection, _own_errors(), connection.transaction():
            _migrate(connection, schema, versions)

    def __reduce__(self) -> tuple[type[StoreClosed], tuple[()]]:
        """The address may hold a password."""
        return StoreClosed, ()

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._pool.borrow() as connection, _own_errors(), connection.transaction():
            yield _PostgresSession(connection)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._pool.borrow() as connection, _own_errors(), connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _PostgresSession(connection)

    def close(self) -> None:
        self._pool.close()


def _connect(url: str, schema: str) -> Connection:
    try:
        import psycopg  # noqa: PLC0415 — an extra
    except ImportError:
        raise Unsupported(
            "A ledger in PostgreSQL needs psycopg: pip install 'discreet[postgres]'."
        ) from None
    with _own_errors():
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(f"SET search_path = {schema}, pg_temp")
        # A commit that returns must survive a crash of the server, whatever its default is.
        connection.execute("SET synchronous_commit = on")
        connection.execute("SET default_transaction_isolation = 'read committed'")
    return connection


class _PostgresSession:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, sql: str, *values: Value) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def _own_errors() -> Iterator[None]:
    import psycopg  # noqa: PLC0415 — an extra

    try:
        yield
    except psycopg.Error as error:
        # The text could quote a label or the address with its password.
        state = error.sqlstate or "none"
        remedy = next((text for start, text in _REMEDIES.items() if state.startswith(start)), "")
        raise StoreFailure(
            f"PostgreSQL refused: {type(error).__name__}, state {state}.{remedy}"
        ) from None


def _migrate(connection: Connection, schema: str, versions: Sequence[Migration]) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    connection.execute("CREATE TABLE IF NOT EXISTS version (version BIGINT NOT NULL)")
    row = connection.execute("SELECT max(version) FROM version").fetchone()
    version = (row and row[0]) or 0
    check_version(version, len(versions))
    for step in versions[version:]:
        step(connection)
    if version < len(versions):
        connection.execute("INSERT INTO version VALUES (%s)", (len(versions),))
