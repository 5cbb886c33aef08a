"""Releases as durable jobs: one request, one charge, one answer.

A request is a row of the store before anything is charged. Whoever runs it holds a lease. The
charge is reserved in the ledger under the job's own number, so a job that is run again, because its
worker died, is not charged again; and the answer is stored only by the holder of the lease, once.
The argument that this is private is that of `execute_reserved` and stands in docs/theory/serve.md.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Receipt
from discreet.ledger.store import Session, Store, Value
from discreet.server.config import RateConfig
from discreet.server.middleware.errors import Busy, Conflict
from discreet.server.schemas import State
from discreet.server.store import now
from discreet.tables.release import receipt_content

MOST_ATTEMPTS = 5
_LONGEST = 200
_COLUMNS = (
    "id, person, request, subject, digest, asked, title, worth, account, made, state, finished, "
    "claim, attempts, receipt, settled, result, error, problem"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as it stands."""

    id: str
    person: str
    request: str
    subject: str
    """The table."""
    digest: str
    asked: str = field(repr=False)
    """The statistics, as JSON."""
    title: str
    worth: str
    account: str
    made: int
    state: State
    finished: int | None
    claim: str | None
    attempts: int
    receipt: str | None
    settled: bool
    result: str | None = field(repr=False)
    error: str | None
    problem: str | None

    @property
    def over(self) -> bool:
        """Whether nothing will change any more for whoever asked."""
        return self.state in ("done", "refused", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """What is asked for, by whom, and who pays."""

    person: str
    request_id: str
    table: str
    statistics: str
    title: str
    worth: str
    account: str

    @property
    def digest(self) -> str:
        """The content: the same number for another content is a mistake."""
        return hashlib.sha256(f"{self.table}\n{self.statistics}".encode()).hexdigest()


class JobQueue:
    """The jobs of a store; workers share it."""

    def __init__(self, store: Store, rates: RateConfig) -> None:
        self._store = store
        self._rates = rates

    def find(self, person: str, request_id: str) -> JobRow | None:
        """The job of a request, if there is one."""
        with self._store.read() as session:
            return _by_request(session, person, request_id)

    def submit(self, order: JobOrder) -> JobRow:
        """A job for a request; the same request again is the same job."""
        check_request(order.request_id)
        with self._store.write() as session:
            known = _by_request(session, order.person, order.request_id)
            if known is None:
                self._check_room(session, order.person)
                _insert(session, order)
                known = _by_request(session, order.person, order.request_id)
        if known is None:  # pragma: no cover - it was just written
            raise Busy("The request could not be kept; send it again.")
        if known.digest != order.digest:
            raise Conflict(
                "request_id was used for another question; nothing was spent. Take a new one."
            )
        return known

    def get(self, number: str) -> JobRow | None:
        """A job by its number."""
        if not number.isalnum():  # no number of ours; PostgreSQL takes no NUL in a text
            return None
        with self._store.read() as session:
            rows = session.run(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", number)  # noqa: S608
        return _row(rows[0]) if rows else None

    def listed(self, person: str | None, *, most: int = 200) -> Sequence[JobRow]:
        """The jobs of a person, or of everybody, newest first; without their results."""
        columns = _COLUMNS.replace("result", "NULL")
        text = f"SELECT {columns} FROM jobs "  # noqa: S608 - our own words
        with self._store.read() as session:
            if person is None:
                rows = session.run(f"{text} ORDER BY made DESC, id LIMIT ?", most)
            else:
                rows = session.run(
                    f"{text} WHERE person = ? ORDER BY made DESC, id LIMIT ?", person, most
                )
        return [_row(row) for row in rows]

    def waiting(self) -> int:
        """How many jobs are not over."""
        with self._store.read() as session:
            return _waiting(session)

    # ── for runners ──────────────────────────────────────────────────────────

    def claim(self) -> JobRow | None:
        """The oldest job that nobody works on, now leased to the caller; None if there is none."""
        with self._store.read() as session:  # most looks find nothing: no write lock for those
            if not session.run("SELECT 1 FROM jobs WHERE settled = 0 AND lease < ? LIMIT 1", now()):
                return None
        claim = secrets.token_hex(16)
        with self._store.write() as session:
            found = session.run(
                "SELECT id FROM jobs WHERE settled = 0 AND lease < ? "  # noqa: S608 - our words
                f"ORDER BY made, id LIMIT 1{self._store.lock}",
                now(),
            )
            if not found:
                return None
            rows = session.run(
                "UPDATE jobs SET claim = ?, lease = ?, attempts = attempts + 1, "  # noqa: S608
                "state = CASE WHEN state = 'queued' THEN 'running' ELSE state END "
                f"WHERE id = ? RETURNING {_COLUMNS}",
                *(claim, self._lease(), found[0][0]),
            )
        return _row(rows[0])

    def keep(self, claims: Sequence[str]) -> None:
        """Say that these are still worked on."""
        if not claims:
            return
        with self._store.write() as session:
            for claim in claims:
                session.run("UPDATE jobs SET lease = ? WHERE claim = ?", self._lease(), claim)

    def publish(self, job: JobRow, result: str, receipt: Receipt) -> bool:
        """Store the answer, if the caller still holds the lease: from here on it is the answer."""
        return self._end(job, "done", result=result, receipt=receipt)

    def refuse(
        self, job: JobRow, state: State, *, problem: str, error: str, receipt: Receipt | None = None
    ) -> bool:
        """Store why there will be no answer."""
        return self._end(job, state, problem=problem, error=error, receipt=receipt)

    def settled(self, job: JobRow) -> None:
        """The ledger knows what became of it: nobody need look at the job again."""
        with self._store.write() as session:
            session.run("UPDATE jobs SET settled = 1 WHERE id = ?", job.id)

    def _end(
        self,
        job: JobRow,
        state: State,
        *,
        result: str | None = None,
        problem: str | None = None,
        error: str | None = None,
        receipt: Receipt | None = None,
    ) -> bool:
        paid = None if receipt is None else json.dumps(receipt_content(receipt))
        with self._store.write() as session:
            return bool(
                session.run(
                    "UPDATE jobs SET state = ?, result = ?, problem = ?, error = ?, receipt = ?, "
                    "finished = ?, settled = ? WHERE id = ? AND claim = ? AND state = 'running' "
                    "RETURNING id",
                    *(state, result, problem, error, paid, now(), int(paid is None)),
                    *(job.id, job.claim),
                )
            )

    def _lease(self) -> int:
        return now() + 1000 * self._rates.lease_seconds

    def _check_room(self, session: Session, person: str) -> None:
        if _waiting(session) >= self._rates.queue:
            raise Busy("Many releases are waiting; nothing was spent. Send the request again.")
        if _waiting(session, person) >= self._rates.queue_per_person:
            raise Busy("Many of your releases are waiting; nothing was spent. Wait for them.")


def check_request(request_id: object) -> None:
    """Refuse what cannot be kept as the name of a request."""
    if (
        not isinstance(request_id, str)
        or not 0 < len(request_id) <= _LONGEST
        or not request_id.isprintable()
    ):
        raise InvalidArgument(f"request_id must be 1 to {_LONGEST} printable characters.")


def _waiting(session: Session, person: str | None = None) -> int:
    text = "SELECT count(*) FROM jobs WHERE settled = 0 AND state IN ('queued', 'running')"
    if person is None:
        return int(session.run(text)[0][0])
    return int(session.run(f"{text} AND person = ?", person)[0][0])


def _insert(session: Session, order: JobOrder) -> None:
    values: dict[str, Value] = {
        "id": secrets.token_hex(16),
        "person": order.person,
        "request": order.request_id,
        "subject": order.table,
        "digest": order.digest,
        "asked": order.statistics,
        "title": _line(order.title),
        "worth": order.worth,
        "account": order.account,
        "made": now(),
        "state": "queued",
        "lease": 0,
        "attempts": 0,
        "settled": 0,
    }
    marks = ", ".join("?" * len(values))
    session.run(
        f"INSERT INTO jobs ({', '.join(values)}) VALUES ({marks}) "  # noqa: S608 - our own names
        "ON CONFLICT (person, request) DO NOTHING",
        *values.values(),
    )


def _line(text: str) -> str:
    """The analyst's words as a label of the ledger: one short printable line."""
    clean = "".join(letter if letter.isprintable() else " " for letter in text).strip() or "release"
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 3] + "..."


def _by_request(session: Session, person: str, request_id: str) -> JobRow | None:
    rows = session.run(
        f"SELECT {_COLUMNS} FROM jobs WHERE person = ? AND request = ?",  # noqa: S608 - our words
        *(person, request_id),
    )
    return _row(rows[0]) if rows else None


def _row(values: Sequence[Any]) -> JobRow:
    found: Mapping[str, Any] = dict(zip(_COLUMNS.split(", "), values, strict=True))
    return JobRow(
        **{**found, "settled": bool(found["settled"]), "state": cast("State", found["state"])}
    )
