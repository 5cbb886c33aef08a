"""What answers many tables: noisy measurements, and one table made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core.tabular import Record
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import MarginalDesign, Place, TableKey
from discreet.noise.distribution import Floats, Ints
from discreet.query.result import AnyGuarantee, Result, records

_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MeasuredTables:
    """Noisy measurements from which every table follows.

    Attributes:
        design: What was measured, with which noise.
        measured: Noisy measurements.
        guarantee: Privacy guarantee of the release.
        max_rows_per_unit: Most rows of one privacy unit that were used.
        private: Whether the noise came from a private random source.
    """

    design: MarginalDesign
    measured: tuple[Ints, ...]
    guarantee: Guarantee
    max_rows_per_unit: int
    private: bool = True

    def __post_init__(self) -> None:
        for group in self.measured:
            group.setflags(write=False)

    @property
    def columns(self) -> tuple[MarginalColumn, ...]:
        """The columns of the tables, with their values."""
        return self.design.columns

    @cached_property
    def _parts(self) -> Mapping[Place, Floats]:
        return self.design.parts(self.measured)

    def _table(self, key: TableKey) -> MarginalTable:
        return MarginalTable(
            columns=tuple([self.columns[i] for i in key]),
            cells=self.design.table(key, self._parts),
            guarantee=self.guarantee,
            _key=key,
            _design=self.design,
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MarginalTable(Result):
    """One table of a release: the estimate of each cell, with exact errors.

    Made by `MarginalRelease.table`, whose examples open the `release` that is used here.

    Attributes:
        columns: Columns of the table, with their values.
        cells: Estimate of each cell, one axis for each column. Estimates can be negative.
        guarantee: Guarantee of the release that it is a table of.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67], "smokes": [True, False, False, True]}),
        ...     columns={"age": discreet.integer(0, 120), "smokes": discreet.boolean()},
        ...     budget=1,
        ... )
        >>> release = people.marginals([["smokes"]], columns={"smokes": "smokes"}, epsilon=1)
        >>> release.table(["smokes"]).keys
        ((False,), (True,))
    """

    columns: tuple[MarginalColumn, ...]
    cells: Floats
    guarantee: AnyGuarantee | None
    _key: TableKey
    _design: MarginalDesign

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)

    @property
    def values(self) -> Floats:
        """The estimates, the last column running fastest."""
        return self.cells.ravel()

    @property
    def value(self) -> Any:
        """The estimates; a number for the table without columns."""
        return self._shaped(self.cells)

    @property
    def std(self) -> Any:
        """The exact standard deviation of each estimate."""
        return self._shaped(np.sqrt(self._variance))

    @cached_property
    def _variance(self) -> Floats:
        return self._design.cell_variance(self._key)

    def interval(
        self, confidence: float = _LEVEL, *, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return bounds that hold the exact count of each cell.

        Args:
            confidence: Probability with which each interval holds, or all of them.
            simultaneous: Whether all intervals of the table hold at once.

        Returns:
            Lower and upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.table(["smokes"]).interval(0.9, simultaneous=True)
            >>> len(low)
            2
        """
        # Proof: simultaneously by the union bound over the cells of the table.
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        tail = (1 - inside) / (self.cells.size if simultaneous else 1)
        width = self._design.cell_widths(self._key, tail)
        width = width + rounding(self.cells)
        return self._shaped(self.cells - width), self._shaped(self.cells + width)

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each cell.

        Args:
            confidence: Probability with which each interval holds the exact count.

        Returns:
            Dictionaries with a value of each column, then `value`, `std`, `low` and `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> [row["smokes"] for row in release.table(["smokes"]).rows()]
            [False, True]
        """
        low, high = self.interval(confidence)
        return records(
            [column.name for column in self.columns],
            product(*[column.labels for column in self.columns]),
            value=self.values,
            std=np.atleast_1d(self.std),
            low=np.atleast_1d(low),
            high=np.atleast_1d(high),
        )

    def __len__(self) -> int:
        return int(self.cells.size)

    def _title(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"count by {names}" if names else "count"

    def _shaped(self, numbers: Floats) -> Any:
        flat = np.broadcast_to(numbers, self.cells.shape).ravel()
        return flat if self.columns else float(flat[0])


def rounding(values: Floats) -> float:
    """Room for the rounding of doubles: far below the noise."""
    return 2.0**-40 * max(1.0, float(np.abs(values).max(initial=0.0)))
