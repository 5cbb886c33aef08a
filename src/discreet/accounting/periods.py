"""What a person pays over several periods, where the privacy unit is one period of a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.accounting import composition
from discreet.core import events
from discreet.core._validate import as_tuple, count
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.number_format import short
from discreet.core.tabular import Record, Tabular

Released: TypeAlias = Literal["separately", "together"]
COUNTS = (7, 30, 365)
HOW = {
    "separately": "a release for each period, composed",
    "together": "one release of all periods, as a group",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PeriodCosts(Tabular):
    """Hold what a person pays over several periods. Made by `Guarantee.over_periods`.

    Attributes:
        delta: Probability parameter at which epsilon is stated.
        released: Whether each period is released separately, or all together.

    Examples:
        >>> import discreet
        >>> costs = discreet.gdp(0.1).over_periods([7], delta=1e-9)
        >>> [row["periods"] for row in costs.rows()]
        [1, 7]
    """

    delta: float
    released: Released
    _event: Event
    _counts: tuple[int, ...]

    def rows(self) -> list[Record]:
        """List what a person pays over one period and over several.

        Returns:
            Records with `periods`, `epsilon` (None if there is none), `delta` and `how`.

        Examples:
            >>> [row["how"] for row in costs.rows()][1]
            'a release for each period, composed'
        """
        return [
            {
                "periods": many,
                "epsilon": period_epsilon(self._event, many, self.delta, self.released),
                "delta": self.delta,
                "how": HOW[self.released],
            }
            for many in dict.fromkeys((1, *self._counts))
        ]

    def __str__(self) -> str:
        lines = [
            f"  {row['periods']} periods: "
            + ("no epsilon" if row["epsilon"] is None else f"epsilon {short(row['epsilon'])}")
            for row in self.rows()
        ]
        return "\n".join([f"a person, at delta {self.delta:g} ({HOW[self.released]})", *lines])

    __repr__ = __str__


def period_costs(
    event: Event, counts: Sequence[int], *, delta: float | Fraction, released: str
) -> PeriodCosts:
    """The table of costs, its arguments checked."""
    if released not in HOW:
        raise InvalidArgument(f"released must be 'separately' or 'together', got {released!r}.")
    many = tuple([count("counts", one) for one in as_tuple("counts", counts)])
    way: Released = "together" if released == "together" else "separately"
    return PeriodCosts(delta=float(delta), released=way, _event=event, _counts=many)


def period_event(event: Event, many: int, released: str) -> Event:
    """What a person with ``many`` units sees of releases that protect one."""
    # Theorem: releases of one period each, or additive noise on cells of one period each, compose:
    #   the person's units of different periods move different draws. One release that mixes the
    #   periods is seen by a group of so many units.
    # Needs: under replace-one, a unit is replaced within its own period.
    if released == "separately" or many == 1:
        return events.repeat(event, many)
    return events.GroupEvent(many, event)


def period_epsilon(event: Event, many: int, delta: float, released: str) -> float | None:
    """Epsilon of so many periods of a person; None if it is infinite."""
    found = composition.epsilon(period_event(event, many, released), delta=delta).value
    return found if math.isfinite(found) else None
