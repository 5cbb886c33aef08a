"""Make grids over one and two attributes that were measured separately consistent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.core.tabular import Record
from discreet.local.oracles.base import Frequencies
from discreet.noise.distribution import Floats, Ints
from discreet.query.result import Result, records
from discreet.ranges.domain import Domain, span

_ROUNDS = 6
_STEPS = 200
_SETTLED = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockShares:
    """One group's unbiased shares of blocks, with their exact error."""

    edges: tuple[Ints, ...]
    shares: Frequencies

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of blocks."""
        return tuple(len(edges) - 1 for edges in self.edges)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GridEstimate(Result):
    """Shares of clients in ranges of any attributes.

    ``measured`` holds what each group says by itself: unbiased, with exact errors. Answers combine
    all groups: never negative, consistent, biased where the data are uneven within a block or
    depend on three attributes at once. No law of their error holds.
    """

    domains: dict[str, Domain]
    measured: dict[tuple[str, ...], BlockShares]
    reports: int
    guarantee: Guarantee | None = None
    """What each report satisfies."""

    def _title(self) -> str:
        return f"Shares of {', '.join(self.domains)} from {self.reports:,} reports"

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the share of each cell of each attribute; `share` answers any ranges.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each cell: attribute, cell, value, std, low and high, the last three
            None.
        """
        cells = [
            (name, place) for name, domain in self.domains.items() for place in range(domain.size)
        ]
        keys = ((name, str(self.domains[name].label(place))) for name, place in cells)
        shares = (self._share({name: (place, place + 1)}) for name, place in cells)
        return records(("attribute", "cell"), keys, value=shares)

    def share(self, **ranges: tuple[Any, Any]) -> float:
        """The share of clients in all of these ranges (both ends included; None is open)."""
        return self._share({name: self._ends(name, ends) for name, ends in ranges.items()})

    def _share(self, inside: dict[str, tuple[int, int]]) -> float:
        """The same for cells from one up to another."""
        names = sorted(inside, key=list(self.domains).index)
        if not names:
            return 1.0
        if len(names) == 1:
            partner = next(name for name in self.domains if name != names[0])
            names = sorted((names[0], partner), key=list(self.domains).index)
            inside[partner] = (0, self.domains[partner].size)
        if len(names) == 2:
            return self._pair(names[0], names[1], inside)
        return self._many(names, inside)

    def answer(self, **ranges: tuple[Any, Any]) -> float:
        """The number of clients in all of these ranges."""
        return self.share(**ranges) * self.reports

    def _ends(self, name: str, ends: tuple[Any, Any]) -> tuple[int, int]:
        if name not in self.domains:
            raise InvalidArgument(f"{name!r} is none of the attributes {', '.join(self.domains)}.")
        first, last = span(self.domains[name], *ends)
        return int(first), int(last) + 1

    @cached_property
    def agreed(self) -> dict[tuple[str, ...], Floats]:
        """Shares of all groups' blocks after every attribute's marginal was made the same."""
        shares = {group: one.shares.projected().shares for group, one in self.measured.items()}
        tables = {group: flat.reshape(self.measured[group].shape) for group, flat in shares.items()}
        for _ in range(_ROUNDS):
            for name in self.domains:
                _agree(name, tables)
            tables = {group: _distribution(table) for group, table in tables.items()}
        return tables

    @cached_property
    def _tables(self) -> dict[tuple[str, str], tuple[Ints, Ints, Floats]]:
        """For each pair, the edges and shares of the finest grid that its groups speak of."""
        made = {}
        for group in self.measured:
            if len(group) == 2:
                first, second = group
                made[first, second] = self._fit(first, second)
        return made

    def _fit(self, first: str, second: str) -> tuple[Ints, Ints, Floats]:
        """Scale a table until all three grids of a pair are met: iterative proportional fitting."""
        pair = self.measured[first, second]
        rows = np.union1d(pair.edges[0], self.measured[first,].edges[0])
        columns = np.union1d(pair.edges[1], self.measured[second,].edges[0])
        table = np.outer(np.diff(rows), np.diff(columns)) / (rows[-1] * columns[-1])
        row = np.searchsorted(pair.edges[0], rows[:-1], side="right") - 1
        column = np.searchsorted(pair.edges[1], columns[:-1], side="right") - 1
        both = (row[:, None], column[None, :])
        fine_row = np.searchsorted(self.measured[first,].edges[0], rows[:-1], side="right") - 1
        fine_column = (
            np.searchsorted(self.measured[second,].edges[0], columns[:-1], side="right") - 1
        )
        wanted = self.agreed
        for _ in range(_STEPS):
            before = table
            blocks = np.zeros(pair.shape)
            np.add.at(blocks, np.broadcast_arrays(*both), table)
            table = table * _factor(wanted[first, second], blocks)[both]
            sums = np.bincount(fine_row, table.sum(axis=1)).astype(np.float64)
            table = table * _factor(wanted[first,], sums)[fine_row][:, None]
            sums = np.bincount(fine_column, table.sum(axis=0)).astype(np.float64)
            table = table * _factor(wanted[second,], sums)[fine_column][None, :]
            if np.abs(table - before).sum() < _SETTLED:
                break
        return rows, columns, table

    def _pair(self, first: str, second: str, inside: Mapping[str, tuple[int, int]]) -> float:
        rows, columns, table = self._tables[first, second]
        total = _covered(rows, inside[first]) @ table @ _covered(columns, inside[second])
        return float(total)

    def _many(self, names: list[str], inside: Mapping[str, tuple[int, int]]) -> float:
        """In or out of each range: a table of all cases, scaled until every pair is met."""
        sizes = len(names)
        table = np.full((2,) * sizes, 0.5**sizes)
        wholes = {name: (0, self.domains[name].size) for name in names}
        for _ in range(_STEPS):
            before = table
            for a in range(sizes):
                for b in range(a + 1, sizes):
                    first, second = names[a], names[b]
                    both = self._pair(first, second, inside)
                    one = self._pair(first, second, {**inside, second: wholes[second]})
                    two = self._pair(first, second, {**inside, first: wholes[first]})
                    wanted = np.array([[1 - one - two + both, two - both], [one - both, both]])
                    others = tuple(axis for axis in range(sizes) if axis not in (a, b))
                    factor = _factor(np.maximum(wanted, 0), table.sum(axis=others))
                    table = table * np.expand_dims(factor, others)
            if np.abs(table - before).sum() < _SETTLED:
                break
        return float(table[(1,) * sizes])


def _agree(name: str, tables: dict[tuple[str, ...], Floats]) -> None:
    """Move the blocks of every group so that all have one marginal of this attribute.

    On the coarsest grid, each group's marginal is an average of as many blocks as it sums, so it is
    weighted by the inverse of their number; the difference is spread evenly (Yang et al. 2020).
    """
    mine = {group: group.index(name) for group in tables if name in group}
    coarsest = min(tables[group].shape[axis] for group, axis in mine.items())
    marginals, weights = {}, {}
    for group, axis in mine.items():
        table = np.moveaxis(tables[group], axis, 0)
        folded = np.add.reduceat(table, _starts(len(table), coarsest), axis=0)
        marginals[group] = folded.reshape(coarsest, -1).sum(axis=1)
        weights[group] = coarsest / table.size
    total = sum(weights.values())
    mean = sum(marginals[group] * weights[group] for group in mine) / total
    for group, axis in mine.items():
        table = np.moveaxis(tables[group], axis, 0)
        starts = _starts(len(table), coarsest)
        counts = np.diff((*starts, len(table)))
        move = np.repeat((mean - marginals[group]) / counts, counts) / (table.size / len(table))
        moved = table + move.reshape(-1, *([1] * (table.ndim - 1)))
        tables[group] = np.moveaxis(moved, 0, axis)


def _starts(fine: int, coarse: int) -> Ints:
    return np.arange(coarse) * fine // coarse


def _distribution(table: Floats) -> Floats:
    flat = Frequencies(shares=table.ravel(), reports=1, variance=np.full(table.size, np.nan))
    return flat.projected().shares.reshape(table.shape)


def _factor(wanted: Floats, found: Floats) -> Floats:
    """What to multiply with; where nothing is left, nothing comes back."""
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)


def _covered(edges: Ints, inside: tuple[int, int]) -> Floats:
    """The part of each block that lies inside."""
    low = np.maximum(edges[:-1], inside[0])
    high = np.minimum(edges[1:], inside[1])
    part: Floats = np.maximum(high - low, 0) / np.diff(edges)
    return part
