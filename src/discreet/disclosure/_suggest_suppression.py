"""Which further cells to hide so that hidden cells of published tables stay hidden."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from discreet.core._validate import positive
from discreet.core.tabular import Record, Tabular
from discreet.disclosure._audit_tables import TableAudit, audit_tables
from discreet.disclosure.published_tables import PublishedCell, PublishedTable

Place = tuple[int, int]
"""Of a table, and of a cell in it."""
_NARROW = 2
_MARK = "hidden besides"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuppressionSuggestion(Tabular):
    """Hold which further cells to hide. Made by `suggest_suppression`.

    Attributes:
        hide: Cells to hide besides, as the name of the table and the cell in words.
        tables: The tables with these cells hidden.
        audit: Audit of these tables.
        protected: Whether no cell that was hidden at first is known within three counts any more.

    Examples:
        >>> from discreet import disclosure
        >>> rows = {"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]}
        >>> table = disclosure.published_table(rows)
        >>> disclosure.suggest_suppression([table]).hide
        (('table', 'm'),)
    """

    hide: tuple[tuple[str, str], ...]
    tables: tuple[PublishedTable, ...] = field(repr=False)
    audit: TableAudit = field(repr=False)
    protected: bool

    def rows(self) -> list[Record]:
        """List the cells to hide besides.

        Returns:
            Records with `table` and `cell`.

        Examples:
            >>> from discreet import disclosure
            >>> rows = {"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]}
            >>> table = disclosure.published_table(rows, name="sexes")
            >>> disclosure.suggest_suppression([table]).rows()
            [{'table': 'sexes', 'cell': 'm'}]
        """
        return [{"table": table, "cell": cell} for table, cell in self.hide]

    def __str__(self) -> str:
        state = "all hidden cells are then protected" if self.protected else "not all are protected"
        many = "1 more cell" if len(self.hide) == 1 else f"{len(self.hide):,} more cells"
        lines = [f"hide {many}: {state}"]
        return "\n".join([*lines, *(f"  {table}: {cell}" for table, cell in self.hide)])

    __repr__ = __str__


def suggest_suppression(
    tables: Sequence[PublishedTable],
    *,
    hierarchies: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    open_columns: Sequence[str] = (),
    seconds: float = 60.0,
) -> SuppressionSuggestion:
    """Suggest which further cells to hide, so that hidden cells cannot be computed.

    Cells are hidden besides in the lines of each cell that the audit finds, the small ones first,
    until none of the cells that were hidden at first is known within three counts. Then each of
    the new ones that is not needed is shown again. The result is audited. It is not always the
    smallest number of cells.

    Args:
        tables: Tables made by `published_table`.
        hierarchies: Coarse labels by column, as in `audit_tables`.
        open_columns: Columns that have more labels than the tables show.
        seconds: Time for the search. When it is over, the best that was found is returned.

    Returns:
        The cells, the tables without them, and their audit.

    Raises:
        InvalidArgument: The tables contradict each other, or an argument is not valid.
        Unsupported: The system has more than 200,000 unknown counts.

    Privacy:
        The tables are public, so nothing is charged. Hide the further cells with a mark that does
        not say that the count is small: a rule such as "below 10" would be false of them, and
        would give them away. Hiding cells is no guarantee against an attacker who knows people in
        the tables.

    Examples:
        >>> from discreet import disclosure
        >>> rows = {"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]}
        >>> print(disclosure.suggest_suppression([disclosure.published_table(rows)]))
        hide 1 more cell: all hidden cells are then protected
          table: m

    See Also:
        `audit_tables`, [Audit published tables](../how-to/published-tables.md).

    References:
        Fischetti and Salazar (2001).
    """
    until = time.monotonic() + float(positive("seconds", seconds))

    def audited(given: Sequence[PublishedTable]) -> TableAudit:
        left = max(until - time.monotonic(), 1.0)
        return audit_tables(given, hierarchies=hierarchies, open_columns=open_columns, seconds=left)

    found = audited(tables)
    return _HidingSearch(tuple(tables), set(found.cells), audited, until).run(found)


@dataclass(slots=True)
class _HidingSearch:
    tables: tuple[PublishedTable, ...]
    primary: set[Place]
    audited: Callable[[Sequence[PublishedTable]], TableAudit]
    until: float

    def run(self, found: TableAudit) -> SuppressionSuggestion:
        hidden: list[Place] = []
        open_cells = self._open(found)
        while open_cells and time.monotonic() < self.until:
            chosen: set[Place] = set()
            for place in open_cells:
                more = self._choose(place, {*self.primary, *hidden, *chosen})
                chosen |= set(() if more is None else self._twins(more))
            chosen -= {*self.primary, *hidden}
            if not chosen:
                break
            hidden += sorted(chosen)
            found = self.audited(self._with(hidden))
            open_cells = self._open(found)
        if not open_cells:
            hidden, found = self._pruned(hidden, found)
        return SuppressionSuggestion(
            hide=tuple([(self.tables[t].name, str(self._cell((t, c)))) for t, c in sorted(hidden)]),
            tables=self._with(hidden),
            audit=found,
            protected=not open_cells,
        )

    def _pruned(self, hidden: list[Place], found: TableAudit) -> tuple[list[Place], TableAudit]:
        """Show again what is not needed, the largest counts first."""
        for place in sorted(hidden, key=self._size, reverse=True):
            if time.monotonic() >= self.until or place not in hidden:
                continue
            back = self._twins(place)
            fewer = [one for one in hidden if one not in back]
            tried = self.audited(self._with(fewer))
            if not self._open(tried):
                hidden, found = fewer, tried
        return hidden, found

    def _open(self, found: TableAudit) -> list[Place]:
        """The cells that were hidden at first and are nearly known."""
        return [place for place in sorted(self.primary) if found.cells[place].width <= _NARROW]

    def _choose(self, place: Place, hidden: set[Place]) -> Place | None:
        """The smallest count whose line has no second hidden cell; else of any line, or table."""
        lines = list(self._lines(place))
        alone = [line for line in lines if not hidden & set(line)]
        for candidates in (*alone[:1], [c for line in lines for c in line], self._everywhere()):
            seen = [one for one in candidates if one not in hidden and not self._cell(one).hidden]
            if seen:
                return min(seen, key=self._size)
        return None

    def _lines(self, place: Place) -> Iterator[list[Place]]:
        """The other cells in each line of a cell, without its total."""
        table, _ = place
        own = self._cell(place).labels
        for column in range(len(own)):
            yield [
                (table, i)
                for i, one in enumerate(self.tables[table].cells)
                if one.labels != own
                and one.labels[column] is not None
                and one.labels[:column] == own[:column]
                and one.labels[column + 1 :] == own[column + 1 :]
            ]

    def _everywhere(self) -> Iterable[Place]:
        for t, table in enumerate(self.tables):
            for i, _ in enumerate(table.cells):
                yield t, i

    def _twins(self, place: Place) -> list[Place]:
        """The same people in all tables: what one hides, another must not show."""
        wanted = self._people(place)
        return [one for one in self._everywhere() if self._people(one) == wanted]

    def _people(self, place: Place) -> dict[str, str]:
        table = self.tables[place[0]]
        named = zip(table.columns, self._cell(place).labels, strict=True)
        return {**table.population, **{name: label for name, label in named if label is not None}}

    def _cell(self, place: Place) -> PublishedCell:
        return self.tables[place[0]].cells[place[1]]

    def _size(self, place: Place) -> tuple[bool, bool, float]:
        """Totals and zeros last, then by count."""
        cell = self._cell(place)
        return None in cell.labels, cell.low == 0, math.inf if cell.high is None else cell.high

    def _with(self, hidden: Sequence[Place]) -> tuple[PublishedTable, ...]:
        gone = set(hidden)
        return tuple(
            [
                replace(
                    table,
                    cells=tuple(
                        [
                            replace(cell, low=0, high=None, text=_MARK) if (t, i) in gone else cell
                            for i, cell in enumerate(table.cells)
                        ]
                    ),
                )
                for t, table in enumerate(self.tables)
            ]
        )
