"""Statements of account: what each release cost, what it added, and what is left, for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Literal

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.errors import Unsupported
from discreet.core.number_format import number
from discreet.core.tabular import Record, Tabular
from discreet.ledger._filter_rules import FilterRule, Sums
from discreet.ledger._limit_words import (
    cost_amount,
    limit_delta,
    limit_measure,
    limit_words,
)
from discreet.mechanisms.additive import gaussian, laplace

CONFIDENCE = 0.95
SHOWN = 20
"""Releases that a statement lists one by one; those before them are one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine:
    """A release in a statement, in the measure of the account's limit.

    Attributes:
        entry: Number of the entry in the ledger.
        time: When it was charged (UTC).
        label: Text of the entry; for earlier releases that are one line, how many there are.
        outcome: "released", "failed" or "open".
        alone: What it would have cost if nothing else had been released, rounded up.
        added: What it added to the total.
        total: The total after it, rounded up.
    """

    entry: int
    time: datetime
    label: str
    outcome: str
    alone: float
    added: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Tabular):
    """A statement of account that adds up. Made by `Account.statement`.

    The column `added` sums to `total`, and `total` and `left` to the limit (of mu, squares add up).
    The total is what all releases of this period amount to together, an upper bound. `grant` is
    what the account would still grant to one release: an account whose questions may depend on the
    answers before keeps a reserve, so it can be less than what is left, and where many small losses
    add up slowly it can be more.

    Attributes:
        account: Name of the account.
        limit: Guarantee that may be spent in this period.
        measure: "epsilon", "rho" or "mu".
        delta: The delta at which epsilon is told; zero for other limits.
        lines: The releases, oldest first.
        total: What was spent, rounded up.
        left: The limit less the total, rounded down.
        grant: The largest amount (of epsilon: a pure one) that one more release may have, rounded
            down. Accounts above this one may have less.
        reach: Margin of error, at 95%, of a count with one row for each person that takes all of
            `grant`; None if nothing is granted.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
        >>> receipt = account.charge(discreet.pure_dp(0.25), label="count of members")
        >>> account.statement().left
        0.75
    """

    account: str
    limit: Guarantee
    measure: Literal["epsilon", "rho", "mu"]
    delta: float
    lines: tuple[StatementLine, ...]
    total: float
    left: float
    grant: float
    reach: float | None

    def rows(self) -> list[Record]:
        """List the releases, oldest first.

        Returns:
            Dicts with entry, time, label, outcome, alone, added and total.

        Examples:
            >>> import discreet
            >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
            >>> receipt = account.charge(discreet.pure_dp(0.25), label="count of members")
            >>> [row["total"] for row in account.statement().rows()]
            [0.25]
        """
        names = StatementLine.__slots__
        return [{name: getattr(line, name) for name in names} for line in self.lines]

    @property
    def _empty(self) -> tuple[str, ...]:
        return tuple(StatementLine.__slots__)

    @property
    def words(self) -> tuple[str, ...]:
        """What was spent and what is left, in sentences."""
        places = _places(self.limit)
        at = f" at delta {number(self.delta)}" if self.delta else ""
        told = [
            f"spent: {self.measure} {self.total:.{places}f}{at}",
            f"left: {self.measure} {self.left:.{places}f}",
        ]
        if self.reach is None:
            return (*told, "the account grants nothing more in this period")
        kind = "a pure epsilon" if self.measure == "epsilon" else self.measure
        next_one = (
            f"the next release may have {kind} of up to {self.grant:.{places}f}: for example a "
            f"count with a margin of error of ±{number(self.reach)}"
        )
        return (*told, next_one)

    def shown(self, amount: float) -> str:
        """An amount with as many digits as all others of the statement."""
        return f"{amount:.{_places(self.limit)}f}"

    def __str__(self) -> str:
        places = _places(self.limit)
        head = f"account {self.account!r}: limit {limit_words(self.limit)}, "
        head += self.limit.relation.value
        width = max([len(line.label) for line in self.lines] + [7])
        size = max(places + 3, 6)
        lines = [head]
        if self.lines:
            lines.append(
                f"{'#':>4}  {'release':<{width}}  {'alone':>{size}}  {'added':>{size}}  "
                f"{'total':>{size}}"
            )
        for line in self.lines:
            numbers = "  ".join(
                f"{one:>{size}.{places}f}" for one in (line.alone, line.added, line.total)
            )
            failed = " (failed: it stays spent)" if line.outcome == "failed" else ""
            lines.append(f"{line.entry:>4}  {line.label:<{width}}  {numbers}{failed}")
        return "\n".join([*lines, *self.words])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge as the ledger has it."""

    entry: int
    time: datetime
    label: str
    outcome: str
    guarantee: Guarantee


def make_statement(
    name: str,
    limit: Guarantee,
    charges: tuple[Charge, ...],
    *,
    standing: tuple[FilterRule, Sums, str],
    most: int = SHOWN,
) -> Statement:
    """The statement of one period; the oldest charges are one line if there are many."""
    rule, sums, mode = standing
    places, measure = _places(limit), limit_measure(limit)
    whole = _amount(limit)
    cut = max(len(charges) - most, 0)
    lines: list[StatementLine] = []
    before = Decimal(0)
    for last in range(cut, len(charges)) if not cut else range(cut - 1, len(charges)):
        one, together = charges[last], last < cut
        event = events.compose([charge.guarantee.event for charge in charges[: last + 1]])
        total = max(_up(_cost(event, limit), places), before)
        alone = total if together else _up(_cost(one.guarantee.event, limit), places)
        lines.append(
            StatementLine(
                entry=one.entry,
                time=one.time,
                label=f"{cut} earlier releases" if together else one.label,
                outcome="released" if together else one.outcome,
                alone=float(alone),
                added=float(total - before),
                total=float(total),
            )
        )
        before = total
    if measure == "mu":
        rest = math.sqrt(max(float(whole) ** 2 - float(before) ** 2, 0.0))
        left = Decimal(rest).quantize(_unit(places), ROUND_FLOOR)
    else:
        left = max(whole - before, Decimal(0)).quantize(_unit(places), ROUND_FLOOR)
    grant = rule.remaining(sums, mode)
    shown = (Decimal(grant.numerator) / Decimal(grant.denominator)).quantize(
        _unit(places), ROUND_FLOOR
    )
    return Statement(
        account=name,
        limit=limit,
        measure=measure,
        delta=limit_delta(limit),
        lines=tuple(lines),
        total=float(before),
        left=float(left),
        grant=float(shown),
        reach=_reach(Fraction(shown), limit),
    )


def _reach(grant: Fraction, limit: Guarantee) -> float | None:
    """The margin of error of a count that takes all of it."""
    if grant <= 0:
        return None
    match limit_measure(limit):
        case "epsilon":
            found = [laplace(sensitivity=1, epsilon=grant, relation=limit.relation)]
        case "rho":
            found = [gaussian(sensitivity=1, rho=grant, relation=limit.relation)]
        case _:
            found = [gaussian(sensitivity=1, mu=grant, relation=limit.relation)]
    return min(one.interval(CONFIDENCE)[1] for one in found)


def _cost(event: events.Event, limit: Guarantee) -> float:
    try:
        return cost_amount(event, limit)
    except Unsupported:
        return math.inf


def _amount(limit: Guarantee) -> Decimal:
    """All of a limit, in its measure."""
    match limit.event:
        case events.PureEvent(amount) | events.ApproxEvent(amount, _):
            found = amount
        case events.ZcdpEvent(amount, _) | events.GdpEvent(amount):
            found = amount
        case _:
            found = Fraction(0)
    return Decimal(found.numerator) / Decimal(found.denominator)


def _places(limit: Guarantee) -> int:
    """Decimal places at which the limit has about four digits."""
    amount = _amount(limit)
    return 3 if amount <= 0 else max(3 - math.floor(amount.log10()), 0)


def _unit(places: int) -> Decimal:
    return Decimal(1).scaleb(-places)


def _up(amount: float, places: int) -> Decimal:
    if not math.isfinite(amount):
        return Decimal("Infinity")
    # Amounts are upper bounds with roundings of their own in the last of sixteen digits.
    exact = Decimal(f"{amount:.12g}")
    return exact.quantize(_unit(places), ROUND_CEILING)
