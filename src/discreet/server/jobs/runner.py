"""Runners: threads that take jobs and carry them out."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from discreet.core.errors import BudgetExceeded, InvalidArgument, PrivacyError, Unsupported
from discreet.ledger.account import Reservation
from discreet.ledger.store import StoreFailure
from discreet.server import plans as planning
from discreet.server.config import Config, TableConfig
from discreet.server.jobs.release_jobs import MOST_ATTEMPTS, JobQueue, JobRow
from discreet.server.ledger_view import UserBudgets
from discreet.server.middleware.errors import problem_of
from discreet.server.table_registry import TableOpener
from discreet.tables._execute import execute_reserved, reserve_plan
from discreet.tables.release import Release, read_receipt
from discreet.tables.table import Table

_LOOK_S = 0.2
"""So often a runner looks for jobs that others have left."""
_NICE = 2
_CLOSED = "The data of this table cannot be opened: ask the owner."
_FAILED = "The release failed; what was reserved for it stays spent. Ask the owner."


class JobRunner:
    """The threads of one worker that carry out jobs, and one that keeps their leases."""

    def __init__(
        self,
        config: Config,
        queue: JobQueue,
        budgets: UserBudgets,
        opener: TableOpener,
        *,
        note: Callable[[str, BaseException], None],
    ) -> None:
        self._config = config
        self._queue = queue
        self._budgets = budgets
        self._opener = opener
        self._note = note
        self._threads: list[threading.Thread] = []
        self._stages: dict[str, str] = {}
        self._claims: set[str] = set()
        self._news = threading.Condition()
        self._asked = 0
        self._stopping = False
        self.finished: dict[str, float] = {}
        """Jobs that ended here lately, and when: waiting for them needs no look at the store."""

    @property
    def stopping(self) -> bool:
        """Whether no new job is taken."""
        return self._stopping

    @property
    def alive(self) -> bool:
        """Whether all threads are at work."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Begin to take jobs."""
        names = [f"runner-{i}" for i in range(1, self._config.runners + 1)]
        self._threads = [
            *(threading.Thread(target=self._loop, name=name, daemon=True) for name in names),
            threading.Thread(target=self._keep, name="leases", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, *, seconds: float) -> None:
        """Finish what is running; what is queued stays for others, or for the next start."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def wake(self) -> None:
        """There is a new job."""
        with self._news:
            self._asked += 1
            self._news.notify()

    def stage(self, number: str) -> str | None:
        """What is being done for a job, if it runs here."""
        return self._stages.get(number)

    def step(self) -> bool:
        """Carry out the oldest job that nobody works on; whether there was one."""
        job = self._queue.claim()
        if job is None:
            return False
        self._run(job)
        return True

    # ── threads ──────────────────────────────────────────────────────────────

    def _loop(self) -> None:
        _yield_to_plans()
        self._warm()
        while not self._stopping:
            seen = self._asked
            try:
                if self.step():
                    continue
            except Exception as error:  # noqa: BLE001 - nothing of it may reach the caller
                self._note("runner", error)
                time.sleep(_LOOK_S)
            with self._news:
                if self._asked == seen:
                    self._news.wait(_LOOK_S)

    def _warm(self) -> None:
        """Open every source and plan a question, so that nobody waits for libraries to load."""
        for table in self._config.tables.values():
            try:
                self._opener.open(table, self._budgets.of_table(table))
                planning.warm(table)
            except Exception as error:  # noqa: BLE001 - nothing of it may reach the caller
                self._note(f"table {table.name}", error)

    def _keep(self) -> None:
        """Renew leases three times before they end."""
        while not self._stopping or self._claims:
            time.sleep(min(self._config.rates.lease_seconds / 4, 5.0) if self._claims else 0.1)
            with suppress(StoreFailure):
                self._queue.keep(tuple(self._claims))

    def _run(self, job: JobRow) -> None:
        claim = job.claim or ""
        self._claims.add(claim)
        try:
            if job.over:
                self._settle(job)
            elif job.attempts > MOST_ATTEMPTS:
                self._give_up(job)
            else:
                self._carry_out(job)
        finally:
            self._claims.discard(claim)
            self._stages.pop(job.id, None)
            self._told(job.id)

    def _carry_out(self, job: JobRow) -> None:
        held: Reservation | None = None
        try:
            table = self._config.tables[job.subject]
            opened = self._open(table, job.account)
            found = planning.price_request(table, json.loads(job.asked), patient=True)
            work = found.plan
            self._stages[job.id] = "reserving the budget"
            held = reserve_plan(opened, work, label=job.title, request_id=job.id)
            releases, ranges = execute_reserved(
                opened, work, held, progress=lambda words: self._say(job.id, words)
            )
            result = json.dumps(
                {
                    "releases": _in_order(found.asked.order(), releases),
                    "ranges": [json.loads(one.to_json()) for one in ranges],
                }
            )
        except StoreFailure:
            raise  # the lease ends, and somebody tries again under the same reservation
        except BudgetExceeded as error:
            self._queue.refuse(job, "refused", problem="budget-exceeded", error=str(error))
        except PrivacyError as error:
            self._fail(job, held, problem_of(error).problem, str(error))
        except Exception as error:  # noqa: BLE001 - nothing of it may reach the caller
            self._note("job", error)
            self._fail(job, held, "failure", _FAILED)
        else:
            if self._queue.publish(job, result, held.receipt):
                self._told(job.id)
                self._settled(job, held, "released")

    def _open(self, table: TableConfig, account: str) -> Table:
        try:
            return self._opener.open(table, self._budgets.account(account))
        except StoreFailure:
            raise
        except PrivacyError as error:  # it may say where the data are, or tell of a row
            self._note(f"table {table.name}", error)
            raise Unsupported(_CLOSED) from None

    def _fail(self, job: JobRow, held: Reservation | None, problem: str, words: str) -> None:
        receipt = None if held is None else held.receipt
        if self._queue.refuse(job, "failed", problem=problem, error=words, receipt=receipt):
            self._told(job.id)
            if held is not None:
                self._settled(job, held, "failed")

    def _give_up(self, job: JobRow) -> None:
        """A job whose workers died again and again; its reservation, if any, stays open."""
        self._queue.refuse(job, "failed", problem="failure", error=_FAILED)

    def _settle(self, job: JobRow) -> None:
        """The worker died between the answer and the note about it."""
        if job.receipt is not None:
            receipt = read_receipt(json.loads(job.receipt))
            held = Reservation(self._budgets.account(job.account), receipt)
            self._settled(job, held, "released" if job.state == "done" else "failed")

    def _settled(self, job: JobRow, held: Reservation, outcome: str) -> None:
        with suppress(InvalidArgument):  # it was settled before the worker died
            held.settle("released" if outcome == "released" else "failed")
        self._queue.settled(job)

    def _say(self, number: str, words: str) -> None:
        self._stages[number] = words

    def _told(self, number: str) -> None:
        """Remember for a while that a job is over."""
        moment = time.monotonic()
        self.finished[number] = moment
        if len(self.finished) > 1000:
            for old in [one for one, at in self.finished.items() if at < moment - 60]:
                self.finished.pop(old, None)


def _in_order(order: Sequence[int], releases: Sequence[Release]) -> list[Any]:
    """In the order of the question: a design may have another."""
    placed = sorted(zip(order, releases, strict=True), key=lambda pair: pair[0])
    return [json.loads(release.to_json()) for _, release in placed]


def _yield_to_plans() -> None:
    """A release takes a while anyway; who moves a slider waits for every plan.

    On Linux a thread has a priority of its own, and the engine's threads inherit it.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
