"""The door to intervals for the difference of two means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.values import read
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats
from discreet.queries.intervals.interval import Interval, IntervalForecast, Payer
from discreet.queries.intervals.planning import column_of, setting
from discreet.queries.intervals.statistics import DifferenceOf
from discreet.queries.intervals.studentised import Assume, Method, Studentised


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceInterval(Mechanism):
    """The difference of the means of two columns. Made by `difference_interval`."""

    inner: Studentised
    """The same for both columns, one after the other."""
    sizes: tuple[int, int]

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: one row of either column is replaced."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on the difference."""
        return self.inner.std

    @property
    def level(self) -> float:
        """Nominal coverage."""
        return self.inner.level

    @property
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""
        return self.inner.guaranteed

    @property
    def needs(self) -> str:
        """What the nominal coverage rests on."""
        return self.inner.needs

    @property
    def rows(self) -> int:
        """Of both columns together."""
        return self.inner.rows

    def release(
        self,
        first: ArrayLike,
        second: ArrayLike,
        *,
        bits: Bits | None = None,
        account: Payer | None = None,
        label: str = "difference",
    ) -> Interval:
        """The interval for the mean of ``first`` less that of ``second``.

        An ``account`` pays before either is read.
        """
        source = source_of(bits)
        if account is None:
            return self.inner.release(self._both(first, second), bits=source)
        with account.reserve(self.guarantee, label=label, private=source.private):
            return self.inner.release(self._both(first, second), bits=source)

    def _both(self, first: ArrayLike, second: ArrayLike) -> Floats:
        both = [read(first), read(second)]
        if any(
            len(one.shape) != 1 or one.size != size
            for one, size in zip(both, self.sizes, strict=True)
        ):
            raise OutOfDomain(
                f"first and second must be {self.sizes[0]} and {self.sizes[1]} numbers, the "
                "declared numbers of rows."
            )
        return np.concatenate([one.doubles for one in both])

    def simulate(self, tables: Floats, bits: Bits) -> tuple[Floats, Floats]:
        """Ends for each row of ``tables``: a first column followed by a second, for `coverage`."""
        return self.inner.simulate(tables, bits)

    def forecast(self, std: float) -> IntervalForecast:
        """The width before release, if rows of both have this standard deviation."""
        return self.inner.forecast(std)

    def certify(self) -> Certificate:
        """Recompute the guarantees of both noises from their exact laws."""
        return self.inner.certify()


def difference_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    rows: tuple[int, int],
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    share: Number | None = None,
    std: Number | None = None,
    method: Method = "safe",
    assume: Assume = "normal",
    grid: Number | None = None,
) -> DifferenceInterval:
    """A confidence interval for the difference of the means of two populations.

    Two columns, of public numbers of rows: treated and not, say, where who is in which group is
    public. One difference is released, not two means: its noise is that of the smaller column
    alone. The rest is as for `mean_interval`; unequal variances are allowed.

    Theorem: the release is (epsilon, delta)-DP if one row of either column is replaced; its
        coverage is that of `Studentised`.
    Proof: a replaced row moves one of the means, by at most w / n, and one of the squared errors
        s^2 / n, by at most w^2 / n^2, for the smaller n at most. Noise for that; they compose.
    Source: Welch 1947 (degrees of freedom, from below); docs/theory/intervals.md. C9-C12.
    Needs: bounds, rows and std from elsewhere than the private columns; each at least two rows.
    """
    if len(check.listed("rows", rows)) != 2:
        raise InvalidArgument("rows must be two numbers, one for each column.")
    first, second = (check.count("rows", one, minimum=2) for one in rows)
    asked = setting(
        DifferenceOf(column=column_of(lower, upper, grid, first + second), sizes=(first, second)),
        epsilon=epsilon,
        delta=delta,
        level=level,
        method=method,
        assume=assume,
    )
    inner = asked.best(share=0 if assume == "nothing" else share, std=std)
    return DifferenceInterval(inner=inner, sizes=(first, second))
