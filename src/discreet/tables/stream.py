"""Streams through the one door: charged once, before the first event, and safe against crashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from discreet.core._rational import Number
from discreet.ledger.account import Account, Receipt
from discreet.noise.random_source import system_rng
from discreet.ranges.stream.file import StreamFile
from discreet.ranges.stream.plan import StreamForecast, StreamPlan, plan_stream
from discreet.ranges.stream.state import Counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """A private stream of counts: feed it, and publish what comes back. See `stream`."""

    plan: StreamPlan = field(repr=False)
    receipt: Receipt
    _file: StreamFile = field(repr=False)

    @property
    def steps(self) -> int:
        """How many steps were fed; the next one is ``steps + 1``."""
        return self._file.steps

    @property
    def last(self) -> Counts | None:
        """The answers of the last feed. After a crash, publish these first."""
        return self._file.last

    def feed(self, counts: Any) -> Counts:
        """Count the next steps: one whole number for each step, or one for each step and key.

        When this returns, the answers are on disk with the state that they belong to. If it does
        not return, nothing was counted, or ``last`` has the answers when the stream is opened
        again: ``steps`` tells which.
        """
        return self._file.feed(counts, rng=system_rng())

    def events(self, steps: Any, *, end: int, keys: Any = None, units: Any = None) -> Counts:
        """Count events into steps, and close the steps up to ``end``.

        ``steps`` tells for each event the step in which it happened, ``keys`` the place of its key
        and ``units`` whose it is (if the stream limits units; whole numbers in all feeds, or texts
        in all): of each unit the first ``max_rows_per_unit`` events of the whole stream are
        counted.
        """
        return self._file.events(steps, end=end, rng=system_rng(), keys=keys, units=units)

    def forecast(self, step: int, *, confidence: float = 0.95) -> StreamForecast:
        """The error of the answer after a step."""
        return self.plan.forecast(step, confidence=confidence)

    def close(self) -> None:
        """Let go of the file; it can be opened again."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stream(  # noqa: PLR0913 - each has a name, most a default
    path: str | Path | None = None,
    *,
    account: Account,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    horizon: int | None = None,
    window: int | None = None,
    max_rows_per_unit: int = 1,
    enforce_limits: bool = False,
    keys: Sequence[str] | None = None,
    label: str = "stream",
) -> Stream:
    """Open a private stream of counts, or go on with the one in the file.

    The account is charged once, for the whole stream, before the first event. ``horizon``: how many
    steps there will be; ``window``: publish counts of the last so many steps; neither: totals
    without end. Of one unit at most ``max_rows_per_unit`` events; with ``enforce_limits`` the
    stream
    itself counts them, else the caller promises it. ``keys`` names counts that run side by side.

    Theorem: all that is published, over all crashes and restarts, has the plan's guarantee.
    Proof: theory/streams; answers leave only after the state that made them is on disk, in one
        transaction, so no noise is drawn twice for a published step or used for other counts.
    Source: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011; Denisov et al. 2022.
    Needs: the file is used by one process at a time, kept private, and never put back to an
        earlier copy.
    """
    plan = plan_stream(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        horizon=horizon,
        window=window,
        max_rows_per_unit=max_rows_per_unit,
        keys=keys,
        relation=account.relation,
    )
    guarantee = plan.guarantee
    file = StreamFile(path, plan=plan, units=enforce_limits, payer=account.name)
    try:
        receipt = account.charge(guarantee, label=label, request_id=file.request_id)
    except BaseException:
        file.close()
        raise
    return Stream(plan=plan, receipt=receipt, _file=file)
