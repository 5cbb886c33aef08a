"""What every interval has in common: the released ends, the forecast, and how it is paid for."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import OutOfDomain
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.values import read
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A released interval; nothing in it is private."""

    low: float
    high: float
    value: float
    """The noisy statistic, before it is kept within the bounds."""
    spread: float | None
    """What was taken as the standard deviation of the rows, or of the reports."""
    nominal: float
    guaranteed: float | None
    """Coverage that holds for any law of the rows and any number of them; None if none does."""
    released: tuple[float, ...] = ()
    """All noisy numbers that the interval was made from."""

    @property
    def width(self) -> float:
        """Of the interval, cut off at the declared bounds."""
        return self.high - self.low

    def __str__(self) -> str:
        return (
            f"{self.value:.6g}, {100 * self.nominal:g} % within {self.low:.6g} to {self.high:.6g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalForecast:
    """An interval before it is released, from public numbers only."""

    width: float
    """Expected, if the guess is right."""
    largest: float
    """What no released interval exceeds."""
    plain: float
    """The width without privacy."""
    guess: str
    """What was supposed about the rows."""
    nominal: float
    guaranteed: float | None
    needs: str

    def __str__(self) -> str:
        return (
            f"{100 * self.nominal:g} % interval of width {self.width:.4g} if {self.guess} "
            f"({self.plain:.4g} without privacy, at most {self.largest:.4g}); holds for "
            f"{self.needs}"
        )


class Payer(Protocol):
    """An account of a ledger, or what behaves like one."""

    def reserve(
        self, guarantee: Guarantee, *, label: str, private: bool = True
    ) -> AbstractContextManager[object]:
        """Spend before the data are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Intervals of many columns at once."""

    low: Floats
    high: Floats
    value: Floats
    spread: Floats | None = None
    released: tuple[Floats, ...] = ()


class IntervalPlan(Mechanism):
    """An interval that is planned: known cost, coverage and width before any row is read."""

    rows: int
    level: float

    @property
    @abstractmethod
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""

    @property
    @abstractmethod
    def needs(self) -> str:
        """What the nominal coverage rests on."""

    @abstractmethod
    def answers(self, tables: Floats, bits: Bits) -> Answers:
        """One interval for each row of ``tables``, which is one column."""

    def release(
        self,
        values: ArrayLike,
        *,
        bits: Bits | None = None,
        account: Payer | None = None,
        label: str = "interval",
    ) -> Interval:
        """The interval for one private column; an ``account`` pays before the column is read."""
        source = source_of(bits)
        if account is None:
            return self._one(values, source)
        with account.reserve(self.guarantee, label=label, private=source.private):
            return self._one(values, source)

    def simulate(self, tables: Floats, bits: Bits) -> tuple[Floats, Floats]:
        """Ends of one interval for each row of ``tables``: made-up columns, for `coverage`."""
        if tables.ndim != 2 or tables.shape[1] != self.rows:
            raise OutOfDomain(f"tables must have {self.rows} columns, the declared number of rows.")
        found = self.answers(tables, bits)
        return found.low, found.high

    def _one(self, values: ArrayLike, bits: Bits) -> Interval:
        given = read(values)
        if len(given.shape) != 1 or given.size != self.rows:
            raise OutOfDomain(f"values must be {self.rows} numbers, the declared number of rows.")
        found = self.answers(given.doubles[None, :], bits)
        return Interval(
            low=float(found.low[0]),
            high=float(found.high[0]),
            value=float(found.value[0]),
            spread=None if found.spread is None else float(found.spread[0]),
            nominal=self.level,
            guaranteed=self.guaranteed,
            released=tuple(float(part[0]) for part in found.released),
        )


def laplace_points(many: int) -> Floats:
    """Quantiles of the Laplace law of scale one, each for an equal share of it."""
    shares = (np.arange(many) + 0.5) / many - 0.5
    return np.asarray(-np.sign(shares) * np.log1p(-2 * np.abs(shares)))
