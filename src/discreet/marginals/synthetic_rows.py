"""Synthetic rows from released tables: post-processing, with a stated error for each table."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import percent, short
from discreet.core.tabular import ColumnKind, Record, Tabular, column_of
from discreet.marginals._exchange import Exchange, Impossible, tree_start, wanted_tables
from discreet.marginals.columns import MarginalColumn, cells
from discreet.marginals.design import TableKey, table_key
from discreet.marginals.measured_tables import MeasuredTables, rounding
from discreet.marginals.nonnegative import NonnegativeTable, cells_above_zero
from discreet.marginals.spine import SpineDesign
from discreet.noise.distribution import Floats, Ints, floats

Values: TypeAlias = Literal["uniform", "middle", "label"]
Wanted: TypeAlias = Mapping[str, object]
MOST_ENTRIES = 1 << 30
_LEVEL = 0.95
_SEEDS = 1 << 63
NOT_PROMISED = (
    "Not promised: tables, combinations and models beyond the planned tables; unbiased numbers; "
    "links between rows, such as households. A synthetic row can equal a real one by chance."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticRows(Tabular):
    """Synthetic rows whose tables are near the released ones.

    Made by `MarginalRelease.synthesize`. Nothing is read and nothing is charged: the rows follow
    from the released tables and public randomness, and have the guarantee of the release.

    Attributes:
        columns: Columns of the rows, with their values.
        codes: One row for each row, one whole number for each column: the position of its value.
        guarantee: Guarantee of the release.
        seed: Seed of the public randomness.
        values: What stands for a bin: "uniform", "middle" or "label".

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> from discreet import col
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67] * 100, "smokes": [True, False] * 200}),
        ...     columns={"age": discreet.integer(0, 120), "smokes": discreet.boolean()},
        ...     budget=discreet.approx_dp(100, 1e-6),
        ... )
        >>> groups = {"age": col("age").cut([30, 50]), "smokes": "smokes"}
        >>> release = people.marginals([["age", "smokes"]], columns=groups, rho=1)
        >>> synthetic = release.synthesize(size=1000, seed=1)
        >>> len(synthetic), sorted(synthetic.to_dict())
        (1000, ['age', 'smokes'])
    """

    columns: tuple[MarginalColumn, ...]
    codes: Ints
    guarantee: Guarantee
    seed: int
    values: Values
    _release: MeasuredTables
    _numbers: tuple[int, ...]
    """Of the columns, in the release."""
    _total: float

    def __post_init__(self) -> None:
        self.codes.setflags(write=False)

    def rows(self) -> list[Record]:
        """List the rows, each a dict from the name of a column to a value.

        Returns:
            One dict for each row.

        Examples:
            >>> sorted(synthetic.rows()[0])
            ['age', 'smokes']
        """
        names = [column.name for column in self.columns]
        columns = [held for _, held in self._decoded.values()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _columns(self, confidence: float | None) -> dict[str, tuple[ColumnKind, list[Any]]]:  # noqa: ARG002 - tables have intervals
        return self._decoded

    @cached_property
    def _decoded(self) -> dict[str, tuple[ColumnKind, list[Any]]]:
        # Randomness of its own, so that rows are the same whatever stands for a bin.
        generator = np.random.default_rng([self.seed, 1])
        made: dict[str, tuple[ColumnKind, list[Any]]] = {}
        for place, column in enumerate(self.columns):
            found = column.decoded(self.codes[:, place], self.values, generator)
            made[column.name] = column_of(found)
        return made

    def table(self, by: Iterable[str] = ()) -> NonnegativeTable:
        """Return a table of the rows, beside the unbiased numbers of the release.

        Where rows are as many as the release estimates, cells are whole numbers, and all tables
        agree. For another size, they are scaled to that number.

        Args:
            by: Names of its columns; none for the number of all rows.

        Returns:
            The cells, with the intervals of the unbiased numbers.

        Raises:
            InvalidArgument: The table was not planned.

        Examples:
            >>> len(synthetic.table(["age", "smokes"]))
            6
        """
        listed = (by,) if isinstance(by, str) else tuple(by)
        design = self._release.design
        return self._table(table_key(listed, self._release.columns, design.answered))

    def _table(self, key: TableKey) -> NonnegativeTable:
        unbiased = self._release._table(key)  # noqa: SLF001 - same package
        return NonnegativeTable(unbiased=unbiased, cells=self._counted(key))

    def _counted(self, key: TableKey) -> Floats:
        shape = tuple([self._release.columns[i].size for i in key])
        held = [self.codes[:, self._numbers.index(i)] for i in key]
        scale = self._total / len(self)
        if not key:
            return np.array(len(self) * scale)
        index = np.ravel_multi_index(tuple(held), shape)
        return floats(np.bincount(index, minlength=prod(shape)).reshape(shape) * scale)

    def fidelity(self, confidence: float = _LEVEL) -> SyntheticFidelity:
        """Return how far each table of the rows can be from the exact one.

        Args:
            confidence: Probability with which all bounds of all tables hold at once.

        Returns:
            For each table that the release answers, the bound on the error of a cell: mean and
            largest.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> [row["table"] for row in synthetic.fidelity()]
            ['all rows', 'age', 'smokes', 'age, smokes']
        """
        # Theorem: with the stated probability, every cell t of every table of the rows is within
        #   `|t - q| + half` of the exact count, q the unbiased estimate and half the margin of
        #   error over all cells of all these tables at once.
        # Proof: the triangle inequality, where all margins hold (union bound).
        # Source: docs/theory/marginals.md.
        # Needs: tables that the release answers; nothing private.
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        design = self._release.design
        keys = design.every
        many = sum(cells([design.columns[i] for i in key]) for key in keys)
        found = []
        for key in keys:
            table = self._release._table(key)  # noqa: SLF001 - same package
            half = design.cell_widths(key, (1 - inside) / many) + rounding(table.cells)
            away = np.abs(self._counted(key) - table.cells)
            bound = away + half
            found.append(
                {
                    "table": ", ".join(column.name for column in table.columns) or "all rows",
                    "cells": table.cells.size,
                    "asked": key in design.tables,
                    "difference": float(away.mean()),
                    "bound": float(bound.mean()),
                    "largest bound": float(bound.max()),
                }
            )
        return SyntheticFidelity(listed=tuple(found), confidence=inside)

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        paid = self.guarantee
        what = f"{len(self):,} synthetic rows of {len(self.columns)} columns"
        return "\n".join(
            [
                f"{what} ({describe_epsilon(paid)}, {paid.relation.value})",
                "  made of released tables and public randomness: nothing more is charged",
                f"  {NOT_PROMISED}",
            ]
        )

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticFidelity(Tabular):
    """How far each table of synthetic rows can be from the exact one.

    Made by `SyntheticRows.fidelity`.

    Attributes:
        listed: For each table its columns, number of cells, whether it was asked for, the mean
            difference from the unbiased estimate, and the mean and largest bound on the error.
        confidence: Probability with which all bounds hold at once.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"smokes": [True, False, False] * 50})
        >>> people = discreet.table(rows, columns={"smokes": discreet.boolean()}, budget=10)
        >>> synthetic = people.marginals([["smokes"]], epsilon=1).synthesize(size=100, seed=1)
        >>> synthetic.fidelity().confidence
        0.95
    """

    listed: tuple[Record, ...]
    confidence: float

    def rows(self) -> list[Record]:
        """List each table with the bound on the error of its cells.

        Returns:
            One record for each table.

        Examples:
            >>> fidelity = synthetic.fidelity()
            >>> list(fidelity.rows()[0])
            ['table', 'cells', 'asked', 'difference', 'bound', 'largest bound']
        """
        return [dict(one) for one in self.listed]

    def __str__(self) -> str:
        sure = f"all at once with {percent(self.confidence)} confidence"
        lines = [f"Each cell of these tables is within its bound of the exact count, {sure}"]
        lines += [
            f"  {row['table']}: {short(row['bound'])} on average, "
            f"{short(row['largest bound'])} at most"
            for row in self.listed[:_SHOWN]
        ]
        left = len(self.listed) - _SHOWN
        return "\n".join(
            [*lines, *([f"  ... and {left:,} more"] if left > 0 else []), NOT_PROMISED]
        )

    __repr__ = __str__


_SHOWN = 20


def synthesize(
    release: MeasuredTables,
    *,
    size: int | None,
    impossible: Iterable[Wanted],
    values: Values,
    seed: int | None,
) -> SyntheticRows:
    """Make rows whose tables are near those of a release. Reads no data."""
    check.one_of("values", values, ("uniform", "middle", "label"))
    own = secrets.randbelow(_SEEDS) if seed is None else check.count("seed", seed, minimum=0)
    design = release.design
    if isinstance(design, SpineDesign):
        raise InvalidArgument(
            "rows cannot be made of tables with a spine: plan tables of its last level without it."
        )
    used = tuple(sorted({i for table in design.tables for i in table}))
    if not used:
        raise InvalidArgument("rows must have columns: the release has the number of rows alone.")
    columns = tuple([design.columns[i] for i in used])
    forbidden = _impossible(impossible, columns)
    above = cells_above_zero(release)
    total = float(above.table(()))
    many = _size(size, total, len(used))
    scale = many / total if total > 0 else 1.0
    numbers = {i: place for place, i in enumerate(used)}
    pairs, more = wanted_tables(design.largest)
    wanted = {
        tuple([numbers[i] for i in key]): above.table(key) * scale
        for key in [*[(i,) for i in used], *pairs, *more]
    }
    for one in forbidden:
        _empty(wanted, one, many)
    sizes = [column.size for column in columns]
    rng = np.random.default_rng([own, 0])
    rows = Exchange(
        tree_start(many, sizes, wanted, rng), sizes, wanted, impossible=forbidden, rng=rng
    )
    rows.repair()
    rows.run()
    rows.repair()
    return SyntheticRows(
        columns=columns,
        codes=rows.codes,
        guarantee=release.guarantee,
        seed=own,
        values=values,
        _release=release,
        _numbers=used,
        _total=float(round(total)) if size is None else max(total, 0.0),
    )


def _size(size: int | None, total: float, columns: int) -> int:
    if size is None:
        if round(total) < 1:
            raise InvalidArgument(
                "size must be given: the release estimates that there are no rows."
            )
        many = round(total)
    else:
        many = check.count("size", size)
    most = MOST_ENTRIES // columns
    if many > most:
        raise InvalidArgument(f"size must be at most {most:,} for {columns} columns, got {many:,}.")
    return many


def _impossible(
    given: Iterable[Wanted], columns: Sequence[MarginalColumn]
) -> tuple[Impossible, ...]:
    if isinstance(given, Mapping):
        raise InvalidArgument("impossible must be a list of combinations, such as [{'sex': 'm'}].")
    places = {column.name: place for place, column in enumerate(columns)}
    found = []
    for one in check.as_tuple("impossible", given):
        if not _is_mapping(one):
            raise InvalidArgument(
                "impossible must list mappings from columns to values, such as "
                "{'age': (0, 4), 'status': 'married'}."
            )
        unknown = [name for name in one if name not in places]
        if unknown:
            raise InvalidArgument(
                f"impossible must name columns of the rows ({', '.join(places)}), got "
                f"{unknown[0]!r}."
            )
        values = {places[name]: columns[places[name]].weights(held) for name, held in one.items()}
        if all(bool(weights.all()) for weights in values.values()):
            raise InvalidArgument(f"impossible must leave values: {dict(one)!r} excludes all rows.")
        found.append(Impossible(values=values))
    return tuple(found)


def _is_mapping(one: object) -> bool:
    return isinstance(one, Mapping) and bool(one)


def _empty(wanted: dict[TableKey, Floats], one: Impossible, many: int) -> None:
    """Take what is impossible out of the tables that tell it."""
    for key, table in wanted.items():
        if set(one.values) <= set(key):
            hit = np.ones(())
            for i in key:
                own = one.values.get(i, np.ones(table.shape[key.index(i)]))
                hit = np.multiply.outer(hit, own)
            left = table * (hit == 0)
            total = float(left.sum())
            wanted[key] = left * (many / total) if total > 0 else left
