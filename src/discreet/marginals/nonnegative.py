"""Tables that can be printed: without negative cells, or in whole numbers that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number, short
from discreet.core.tabular import Record
from discreet.marginals import _whole_numbers as whole_numbers
from discreet.marginals._margins_first import CellsAboveZero, margins_first, part_variances
from discreet.marginals._spine_cells import SpineCellsAboveZero
from discreet.marginals.design import TableKey, table_key
from discreet.marginals.measured_tables import MarginalTable, MeasuredTables
from discreet.marginals.spine import SpineDesign
from discreet.noise.distribution import Floats
from discreet.query.result import AnyGuarantee, Result, records

_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NonnegativeMarginals(Result):
    """Tables of a release without negative cells: to print, not to compute with.

    Made by `MarginalRelease.nonnegative`. The numbers are biased, and the size of their error is
    not known; the intervals are those of the unbiased numbers, without what is below zero, and
    hold.

    Attributes:
        release: The release with unbiased tables.
        integers: Whether all cells are whole numbers that add up.
        guarantee: Guarantee of the release.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> from discreet import col
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67] * 100, "smokes": [True, False] * 200}),
        ...     columns={"age": discreet.integer(0, 120), "smokes": discreet.boolean()},
        ...     budget=discreet.approx_dp(100, 1e-6),
        ... )
        >>> groups = {"age group": col("age").cut([30, 50]), "smokes": "smokes"}
        >>> release = people.marginals([["age group", "smokes"]], columns=groups, rho=0.01)
        >>> printable = release.nonnegative(integers=True)
        >>> cells = printable.table(["age group", "smokes"]).cells
        >>> bool((cells >= 0).all() and cells.sum() == printable.total)
        True
    """

    release: MeasuredTables
    integers: bool
    _cells: CellsAboveZero
    _largest: tuple[TableKey, ...]

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release."""
        return self.release.guarantee

    @property
    def total(self) -> float:
        """The number of rows that the tables add up to."""
        return float(self._table(()))

    @property
    def mismatch(self) -> float:
        """How far, in rows, a sum of cells is at most from the same number in a smaller table.

        Tables of up to two columns agree. For more columns, tables without negative cells that
        have all margins need not exist.
        """
        for key in self._largest:
            self._cells.table(key)
        return 0.0 if self.integers else self._cells.mismatch

    def table(self, by: Iterable[str] = ()) -> NonnegativeTable:
        """Return one table: asked for, or any subset of the columns of one that was.

        Args:
            by: Names of its columns; none for the number of all rows.

        Returns:
            Cells that are not negative, beside the unbiased numbers and their intervals.

        Raises:
            InvalidArgument: The table was not planned.

        Examples:
            >>> bool((printable.table(["smokes"]).cells >= 0).all())
            True
        """
        listed = (by,) if isinstance(by, str) else tuple(by)
        return self._printable(
            table_key(listed, self.release.columns, self.release.design.answered)
        )

    def tables(self) -> Iterator[NonnegativeTable]:
        """Return all tables that were asked for, one after the other.

        Returns:
            The tables, in the order of the question.

        Examples:
            >>> [len(table) for table in printable.tables()]
            [6]
        """
        return map(self._printable, self.release.design.tables)

    def _printable(self, key: TableKey) -> NonnegativeTable:
        return NonnegativeTable(unbiased=self.release._table(key), cells=self._table(key))  # noqa: SLF001 - same package

    def _table(self, key: TableKey) -> Floats:
        if not self.integers:
            return self._cells.table(key)
        design = self.release.design
        within = next(one for one in self._largest if design.follows(key, one))
        return design.summed(self._whole[within].astype(np.float64), within, key)

    @cached_property
    def _whole(self) -> dict[TableKey, Any]:
        total = whole_numbers.rounded_total(float(self._cells.table(())))
        return {key: self._cells.rounded(key, total) for key in self._largest}

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each cell of each table that was asked for.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            Dictionaries with `table`, `cell`, `value`, `std` (None), `low` and `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> len(printable.rows())
            6
        """
        found: list[Record] = []
        for table in self.tables():
            names = [column.name for column in table.unbiased.columns]
            labels = product(*[column.labels for column in table.unbiased.columns])
            low, high = table.interval(confidence)
            found += records(
                ("table", "cell"),
                [(", ".join(names) or "all rows", ", ".join(map(str, each))) for each in labels],
                value=table.values,
                low=np.atleast_1d(low),
                high=np.atleast_1d(high),
            )
        return found

    def _title(self) -> str:
        many = len(self.release.design.tables)
        kind = "whole numbers" if self.integers else "cells"
        return f"{many:,} table{'s' * (many > 1)} of {kind} that are not negative"

    def __str__(self) -> str:
        whole = self.release._table(())  # noqa: SLF001 - same package
        total, linear = (number(one, error=float(whole.std)) for one in (self.total, whole.value))
        lines = [
            f"{self._title()} ({describe_epsilon(self.guarantee)})",
            f"  all rows: {total}; unbiased {linear}",
            *[f"  {table.statement}" for table in map(self._printable, self._largest[:_SHOWN])],
        ]
        left = len(self._largest) - _SHOWN
        if left > 0:
            lines.append(f"  ... and {left:,} more")
        if self.mismatch > _AGREE:
            lines.append(
                f"  sums in different tables are up to {short(self.mismatch, digits=2)} rows apart"
            )
        return "\n".join(lines)

    __repr__ = __str__


_SHOWN = 10
_AGREE = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NonnegativeTable(Result):
    """One table without negative cells, beside its unbiased numbers.

    Made by `NonnegativeMarginals.table`.

    Attributes:
        unbiased: The table of the release: unbiased, with exact errors, and perhaps negative.
        cells: The cells, one axis for each column.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"smokes": [True, False, False] * 50})
        >>> people = discreet.table(rows, columns={"smokes": discreet.boolean()}, budget=10)
        >>> printable = people.marginals([["smokes"]], epsilon=1).nonnegative()
        >>> found = printable.table(["smokes"])
        >>> found.cells.shape, bool((found.cells >= 0).all())
        ((2,), True)
    """

    unbiased: MarginalTable
    cells: Floats

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)

    @property
    def guarantee(self) -> AnyGuarantee | None:
        """The guarantee of the release that it is a table of."""
        return self.unbiased.guarantee

    @property
    def values(self) -> Floats:
        """The cells, the last column running fastest."""
        return self.cells.ravel()

    @property
    def value(self) -> Any:
        """The cells; a number for the table without columns."""
        return self.values if self.unbiased.columns else float(self.cells)

    @property
    def std(self) -> Any:
        """None: the error of biased numbers is not known."""
        return (None,) * len(self) if self.unbiased.columns else None

    def interval(
        self, confidence: float = _LEVEL, *, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return bounds that hold the exact count of each cell.

        They are those of the unbiased numbers, without what is below zero: no count is. A printed
        cell can be outside of its interval.

        Args:
            confidence: Probability with which each interval holds, or all of them.
            simultaneous: Whether all intervals of the table hold at once.

        Returns:
            Lower and upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = printable.table(["smokes"]).interval()
            >>> bool((low >= 0).all())
            True
        """
        # Proof: a count that lies between low and high is at least zero, so it lies between
        #   max(low, 0) and max(high, 0).
        low, high = self.unbiased.interval(confidence, simultaneous=simultaneous)
        return self._cut(low), self._cut(high)

    def _cut(self, ends: Any) -> Any:
        return np.maximum(ends, 0) if self.unbiased.columns else max(float(ends), 0.0)

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each cell.

        Args:
            confidence: Probability with which each interval holds the exact count.

        Returns:
            Dictionaries with a value of each column, then `value`, `std` (None), `low`, `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> [row["smokes"] for row in printable.table(["smokes"]).rows()]
            [False, True]
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        low, high = self.interval(inside)
        return records(
            [column.name for column in self.unbiased.columns],
            product(*[column.labels for column in self.unbiased.columns]),
            value=self.values,
            low=np.atleast_1d(low),
            high=np.atleast_1d(high),
        )

    @property
    def statement(self) -> str:
        """What was done to the unbiased numbers, in one sentence to print beside the table."""
        moved = self.cells - self.unbiased.cells
        std = float(np.mean(self.unbiased.std))
        low, high = (np.reshape(end, self.cells.shape) for end in self.interval())
        outside = int(np.count_nonzero((self.cells < low) | (self.cells > high)))
        return (
            f"{self._names}: biased, error not known; cells differ from the unbiased numbers by "
            f"{number(float(np.abs(moved).mean()), error=std)} on average and "
            f"{number(float(np.abs(moved).max()), error=std)} at most (their noise standard "
            f"deviation is {number(std, error=std)}); {outside:,} of {self.cells.size:,} lie "
            "outside of the 95% interval."
        )

    @property
    def _names(self) -> str:
        return ", ".join(column.name for column in self.unbiased.columns) or "all rows"

    def __len__(self) -> int:
        return int(self.cells.size)

    def _title(self) -> str:
        names = ", ".join(column.name for column in self.unbiased.columns)
        return f"count by {names}, not negative" if names else "count, not negative"


def nonnegative_tables(release: MeasuredTables, *, integers: bool) -> NonnegativeMarginals:
    """Tables without negative cells from the unbiased ones. Reads no data."""
    design = release.design
    if integers:
        names = [column.name for column in design.columns]
        whole_numbers.split_apart(design.largest, names)
        if isinstance(design, SpineDesign) and len(design.largest) > 1:
            raise InvalidArgument("integers must be of one table and those above it, with a spine.")
    return NonnegativeMarginals(
        release=release,
        integers=integers,
        _cells=cells_above_zero(release),
        _largest=design.largest,
    )


def cells_above_zero(release: MeasuredTables) -> CellsAboveZero:
    """Tables near the unbiased ones without negative cells."""
    design, parts = release.design, release._parts  # noqa: SLF001 - same package
    if isinstance(design, SpineDesign):
        return SpineCellsAboveZero(design, parts)
    sizes = [column.size for column in design.columns]
    linear = {key: release._table(key).cells for key in design.largest}  # noqa: SLF001 - same package
    return CellsAboveZero(
        margins_first(linear, part_variances(design.columns, design.variances), sizes)
    )
