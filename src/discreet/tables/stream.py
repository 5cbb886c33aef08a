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
    """Count events privately as they happen, and publish the counts. See `stream`.

    Attributes:
        plan: Plan of the stream, with its guarantee and its error.
        receipt: Entry of the ledger that paid for the stream.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
        >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
        ...     visits.plan.horizon, visits.steps
        (24, 0)
    """

    plan: StreamPlan = field(repr=False)
    receipt: Receipt
    _file: StreamFile = field(repr=False)

    @property
    def steps(self) -> int:
        """Number of steps that were fed; the next one is `steps + 1`."""
        return self._file.steps

    @property
    def last(self) -> Counts | None:
        """Counts of the last feed. After a crash, publish these first."""
        return self._file.last

    @property
    def about(self) -> tuple[str, ...]:
        """What the counts cover and leave out, in sentences.

        It follows from the plan alone, so it is public and costs nothing.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
            ...     for sentence in visits.about:
            ...         print(sentence)
            the guarantee is for at most 1 event of each privacy unit in the whole stream
            each count covers all steps so far
            the intervals cover the noise only
        """
        plan = self.plan
        most, window = plan.max_rows_per_unit, plan.window
        events = "1 event" if most == 1 else f"{most} events"
        steps = "all steps so far" if window is None else f"the last {window} steps"
        told = [
            f"the guarantee is for at most {events} of each privacy unit in the whole stream",
            f"each count covers {steps}",
        ]
        if plan.keys is not None:
            told.append("events of keys that are not in the plan are left out")
        return (*told, "the intervals cover the noise only")

    def feed(self, counts: Any) -> Counts:
        """Count the next steps.

        When this returns, the counts are saved together with the state they belong to. If it does
        not return, either nothing was counted, or `last` has the counts when the stream is opened
        again. `steps` shows which.

        Args:
            counts: Whole number of events of each step; with keys, one row of numbers for each
                step. In a list each number is rounded and clipped by itself, and what is not a
                number counts nothing. The type and shape of an array are checked.

        Returns:
            The noisy counts of the new steps.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
            ...     len(visits.feed([12, 7, 9]).values)
            3
        """
        return self._file.feed(counts, rng=system_rng())

    def events(self, steps: Any, *, end: int, keys: Any = None, units: Any = None) -> Counts:
        """Count events into steps, and close the steps up to `end`.

        Each event is read by itself. An event is left out without a message if its step is over or
        beyond `end`, if its key is not in the plan, or if it has no privacy unit although units are
        limited: an error would reveal it.

        Args:
            steps: Step in which each event happened, counted from 1.
            end: Last step to close.
            keys: Position of each event's key among the keys of the stream.
            units: Privacy unit of each event. Required if the stream limits units. The first
                `max_rows_per_unit` events of each unit in the whole stream are counted. The number
                7 and the text "7" are different units, so use one type throughout.

        Returns:
            The noisy counts of the steps that were closed.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
            ...     _ = visits.events([1, 1, 2], end=2)
            ...     visits.steps
            2
        """
        return self._file.events(steps, end=end, rng=system_rng(), keys=keys, units=units)

    def forecast(self, step: int, *, confidence: float = 0.95) -> StreamForecast:
        """Forecast the error of the count after a step.

        Args:
            step: Step, counted from 1.
            confidence: Probability with which the interval holds the exact number, between 0 and 1.

        Returns:
            The forecast, with the noise standard deviation and the margin of error.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
            ...     visits.forecast(24).std > 0
            True
        """
        return self.plan.forecast(step, confidence=confidence)

    def close(self) -> None:
        """Close the file. The stream can be opened again.

        Examples:
            >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
            >>> visits = discreet.stream(account=account, epsilon=1, horizon=24)
            >>> visits.close()
        """
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
    """Open a private stream of counts (continual counting), or continue one.

    The stream publishes a noisy total after every step, for one charge. If `path` holds a stream
    that was opened with the same arguments, nothing is charged again and counting continues at the
    next step.

    Args:
        path: File that keeps the state, so that counting survives a crash. Keep it private, use it
            in one process at a time, and never restore an earlier copy. If None, the state is in
            memory only.
        account: Account of a ledger that pays. It is charged before data is read.
        epsilon: Privacy loss of the whole stream, as epsilon. Without `delta`, the noise is Laplace
            noise.
        delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
        rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
        horizon: Number of steps that the stream will have. If None, it may continue without end,
            with more noise.
        window: Number of steps that each published count covers, up to the last one. If None,
            counts are totals since the first step.
        max_rows_per_unit: Contribution limit: number of events of one privacy unit in the whole
            stream.
        enforce_limits: Whether the stream itself drops the events of a privacy unit above the
            limit; then `events` needs `units`. If False, you must make sure that no privacy unit
            has more.
        keys: Names of counts that run side by side. If None, there is one count.
        label: Text for the ledger entry.

    Returns:
        A stream with `feed` and `events`. Use it as a context manager, or close it.

    Raises:
        BudgetExceeded: The account has not enough budget left; nothing is charged.
        InvalidArgument: An argument is not valid, or the file holds another stream.

    Privacy:
        Everything that is published, over all restarts, has the stated privacy loss for one privacy
        unit under the account's neighboring relation. The account is charged once, before the first
        event.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("visits", limit=discreet.pure_dp(1))
        >>> with discreet.stream(account=account, epsilon=1, horizon=24) as visits:
        ...     counts = visits.feed([12, 7, 9])
        ...     visits.steps
        3

    See Also:
        `plan_stream`: the error before you spend budget.
    """
    # Theorem: all that is published, over all crashes and restarts, has the plan's guarantee.
    # Proof: theory/streams; answers leave only after the state that made them is on disk, in one
    #   transaction, so no noise is drawn twice for a published step or used for other counts.
    # Source: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011; Denisov et al. 2022.
    # Needs: the file is used by one process at a time, kept private, and never put back to an
    #   earlier copy.
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
