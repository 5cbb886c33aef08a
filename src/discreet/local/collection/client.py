"""What a client keeps between its reports: its spent budget, and its permanent response.

Both kinds of client refuse what would exceed their budget, and both are saved as text. Save the
text before a report is sent, so that a crash can waste budget but never spend it twice. A text that
is lost or damaged is an error, never a new client: starting again starts a new budget, and should
be a decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical_json as canonical
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.events import PureEvent
from discreet.local.longitudinal import MemoizedOracle
from discreet.local.randomizer import LocalRandomizer, Reports, codes
from discreet.noise.random_source import RandomSource

VERSION = 1
"""Version of the saved text; a reader refuses a version it does not know."""


class BudgetedClient:
    """Report with fresh randomness each time, within a budget.

    Args:
        randomizer: Local randomizer of the collection.
        budget: Largest privacy loss of all reports together, as epsilon.

    Raises:
        InvalidArgument: `budget` is not positive, or `randomizer` is no local randomizer.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.grr(categories=4, epsilon=1)
        >>> client = local.BudgetedClient(randomizer, budget=2)
        >>> client.report(3).shape
        (1, 1)
    """

    __slots__ = ("budget", "randomizer", "sent")

    def __init__(self, randomizer: LocalRandomizer, *, budget: Number) -> None:
        self.randomizer = randomizer
        self.budget = positive("budget", budget)
        self.sent = 0

    @property
    def guarantee(self) -> Guarantee:
        """What all reports so far cost together."""
        return self.randomizer.guarantee * self.sent

    def report(self, value: object, *, rng: RandomSource | None = None) -> Reports:
        """Randomize a value into one more report.

        Args:
            value: The client's current value.
            rng: Random source of the client. If None, the operating system's; pass another one in
                tests only.

        Returns:
            One report.

        Raises:
            BudgetExceeded: The report would exceed the budget.
            InvalidArgument: `value` is not the value of one client.

        Privacy:
            All reports together are within the budget, in the local model.

        Examples:
            >>> client.report(1).shape
            (1, 1)
        """
        cost = _epsilon(self.randomizer.guarantee)
        if (self.sent + 1) * cost > self.budget:
            raise _exceeded(self.budget, f"{self.sent} reports", cost)
        # Drawn first: a value that is refused costs nothing, and nothing was sent.
        one = value if isinstance(value, Mapping) else np.atleast_1d(np.asarray(value))
        reports = self.randomizer.randomize(cast("ArrayLike", one), rng=rng)
        if len(reports) != 1:
            raise InvalidArgument("value must be the value of one client.")
        self.sent += 1
        return reports

    def to_json(self) -> str:
        """Save what must be kept until the next report.

        Returns:
            JSON text for `from_json`.

        Examples:
            >>> local.BudgetedClient.from_json(client.to_json(), randomizer=randomizer).sent
            2
        """
        content = {**_head(self.randomizer, self.budget), "sent": self.sent}
        return json.dumps(content, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, *, randomizer: LocalRandomizer) -> BudgetedClient:
        """Restore a client from the text of `to_json`.

        Args:
            text: Text of `to_json`.
            randomizer: Local randomizer of the same collection.

        Returns:
            The client.

        Raises:
            InvalidArgument: The text is no saved client, or of another collection.

        Examples:
            >>> local.BudgetedClient.from_json(client.to_json(), randomizer=randomizer).sent
            2
        """
        content = _read(text, randomizer, {"sent"})
        client = cls(randomizer, budget=canonical.read_ratio("budget", content["budget"]))
        client.sent = count("sent", content["sent"], minimum=0)
        return client

    def __repr__(self) -> str:
        return (
            f"BudgetedClient({self.randomizer!r}, sent={self.sent}, budget={float(self.budget):g})"
        )


class MemoizedClient:
    """Report repeatedly about one value from a memoized permanent response.

    Args:
        plan: Longitudinal randomizer, such as `rappor`.
        budget: Largest privacy loss of all periods together, as epsilon.
        reports: Largest number of reports in a period. If None, any number.

    Raises:
        InvalidArgument: `plan` is no longitudinal randomizer, or a number is not positive.

    Examples:
        >>> longitudinal = local.rappor(categories=4, epsilon=0.5, permanent_epsilon=2)
        >>> memoized = local.MemoizedClient(longitudinal, budget=2)
        >>> memoized.memoize(3)
        >>> memoized.report().shape
        (1, 1)
    """

    # Theorem: all that it ever sends is budget-DP in the local model, for any two sequences of
    #   values, if periods begin at times that do not depend on them.
    # Proof: permanent responses of different periods are independent given the values; each period
    #   costs `Memoized.after` of its reports, and costs of periods add up.
    #   `reports` limits the reports of a period: a few cost less than any number.

    __slots__ = ("_memory", "budget", "limit", "periods", "plan", "sent")

    def __init__(self, plan: MemoizedOracle, *, budget: Number, reports: int | None = None) -> None:
        if not isinstance(plan, MemoizedOracle):
            raise InvalidArgument(
                "plan must be of permanent responses, such as discreet.local.l_osue, got "
                f"{type(plan).__name__}."
            )
        self.plan = plan
        self.budget = positive("budget", budget)
        self.limit = None if reports is None else count("reports", reports)
        self.periods = 0
        self.sent = 0
        self._memory: Reports | None = None

    @property
    def period(self) -> Guarantee:
        """What one period costs, counted in full when it begins."""
        return self.plan.after(self.limit)

    @property
    def guarantee(self) -> Guarantee:
        """What all periods so far cost together."""
        return self.period * self.periods

    def memoize(self, value: object, *, rng: RandomSource | None = None) -> None:
        """Start a period: draw a permanent response for a value.

        Args:
            value: The client's value in this period.
            rng: Random source of the client. If None, the operating system's; pass another one in
                tests only.

        Raises:
            BudgetExceeded: The period would exceed the budget.
            InvalidArgument: `value` is not the value of one client.

        Privacy:
            The whole period is charged now. All periods together are within the budget, in the
            local model.

        Examples:
            >>> local.MemoizedClient(longitudinal, budget=2).memoize(0)
        """
        one = codes(np.atleast_1d(np.asarray(value)), self.plan.categories)
        if len(one) != 1:
            raise InvalidArgument("value must be the value of one client.")
        cost = _epsilon(self.period)
        if (self.periods + 1) * cost > self.budget:
            raise _exceeded(self.budget, f"{self.periods} periods", cost)
        self.periods += 1
        self.sent = 0
        self._memory = self.plan.remember(one, rng=rng)

    def report(self, *, rng: RandomSource | None = None) -> Reports:
        """Send one more report of this period.

        It takes no value: the permanent response decides.

        Args:
            rng: Random source of the client. If None, the operating system's; pass another one in
                tests only.

        Returns:
            One report.

        Raises:
            BudgetExceeded: All reports of this period were sent.
            InvalidArgument: There is no permanent response yet; call `memoize` first.

        Privacy:
            All reports of a period together have the privacy loss that `memoize` charged.

        Examples:
            >>> memoized.report().shape
            (1, 1)
        """
        if self._memory is None:
            raise InvalidArgument("There is no answer yet: call answer(value) first.")
        if self.limit is not None and self.sent >= self.limit:
            raise BudgetExceeded(f"All {self.limit} reports of this period were sent.")
        self.sent += 1
        return self.plan.report(self._memory, rng=rng)

    def to_json(self) -> str:
        """Save what must be kept until the next report, including the permanent response.

        The text is private.

        Returns:
            JSON text for `from_json`.

        Examples:
            >>> local.MemoizedClient.from_json(memoized.to_json(), plan=longitudinal).sent
            2
        """
        memory = None if self._memory is None else self._memory.tobytes().hex()
        kept = {"limit": self.limit, "periods": self.periods, "sent": self.sent, "memory": memory}
        return json.dumps({**_head(self.plan, self.budget), **kept}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, *, plan: MemoizedOracle) -> MemoizedClient:
        """Restore a client from the text of `to_json`.

        Args:
            text: Text of `to_json`.
            plan: Longitudinal randomizer of the same collection.

        Returns:
            The client.

        Raises:
            InvalidArgument: The text is no saved client, or of another collection.

        Examples:
            >>> local.MemoizedClient.from_json(memoized.to_json(), plan=longitudinal).periods
            1
        """
        content = _read(text, plan, {"limit", "periods", "sent", "memory"})
        client = cls(
            plan, budget=canonical.read_ratio("budget", content["budget"]), reports=content["limit"]
        )
        client.periods = count("periods", content["periods"], minimum=0)
        client.sent = count("sent", content["sent"], minimum=0)
        client._memory = _row(content["memory"], plan)
        if (client._memory is None) != (client.periods == 0):
            raise _damaged()
        return client

    def __repr__(self) -> str:
        return (
            f"MemoizedClient({self.plan!r}, periods={self.periods}, sent={self.sent}, "
            f"budget={float(self.budget):g})"
        )


def _epsilon(guarantee: Guarantee) -> Fraction:
    """The cost as stated, not as the next double above it: ten times 0.1 is one."""
    event = guarantee.event
    return event.epsilon if isinstance(event, PureEvent) else Fraction(guarantee.epsilon(0.0))


def _exceeded(budget: Fraction, so_far: str, cost: Fraction) -> BudgetExceeded:
    return BudgetExceeded(
        f"The budget of {float(budget):g} is spent: after {so_far}, another costs {float(cost):g}."
    )


def _head(randomizer: LocalRandomizer, budget: Fraction) -> dict[str, Any]:
    return {
        "version": VERSION,
        "collection": randomizer.fingerprint,
        "budget": canonical.ratio(budget),
    }


def _read(text: str, randomizer: LocalRandomizer, names: set[str]) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _damaged() from None
    wanted = {"version", "collection", "budget"} | names
    if not isinstance(content, dict) or content.keys() != wanted or content["version"] != VERSION:
        raise _damaged()
    if content["collection"] != randomizer.fingerprint:
        raise InvalidArgument("The saved client belongs to another collection.")
    if not isinstance(content["budget"], str):
        raise _damaged()
    return content


def _row(text: object, plan: MemoizedOracle) -> Reports | None:
    if text is None:
        return None
    try:
        row = np.frombuffer(bytes.fromhex(str(text)), dtype=np.uint8)[None].copy()
    except ValueError:
        raise _damaged() from None
    if row.shape[1] != plan.width or plan.tally(row).accepted != 1:
        raise _damaged()
    return row


def _damaged() -> InvalidArgument:
    return InvalidArgument(
        "text must be a client as to_json() wrote it. If it is lost, do not start a new client "
        "without counting what the old one spent."
    )
