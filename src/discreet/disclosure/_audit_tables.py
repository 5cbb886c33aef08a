"""What published tables of counts reveal together: bounds of hidden cells, differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from discreet.core._validate import as_mapping, as_tuple, count, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import number, short
from discreet.core.tabular import Record
from discreet.disclosure._cell_bounds import (
    CAP,
    CellRange,
    CellSystem,
    Contradiction,
    bound_sums,
    merged,
    multipliers,
    propagate,
    rows_of,
)
from discreet.disclosure.generalization_hierarchy import Ints
from discreet.disclosure.published_tables import PublishedCell, PublishedTable
from discreet.query.result import Result, records

Status = Literal["exact", "narrow", "tight", "bounded", "not finished"]
Labels: TypeAlias = tuple[str | None, ...]

MOST_UNKNOWNS = 200_000
OTHER = "(other)"
_MOST_ENTRIES = 20_000_000
_MOST_DIFFERENCES = 1_000
_NARROW = 2
_EXPLAINED = 20
_TERMS = 6
_MOST_EXPLAINED = 200_000
_WHOLE = 1e-6
_SECONDS = 60.0
_DEFAULT_THRESHOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFinding:
    """What the tables reveal about one count that none of them shows.

    Attributes:
        kind: `"hidden"` for a hidden cell of a table, `"difference"` for people who are in one
            published cell and not in another.
        table: Name of the table, or of both.
        cell: Labels of the cell, in words.
        low: Smallest count that all tables allow together.
        high: Largest count, or None without a limit.
        published_low: Smallest count that the cell alone allows.
        published_high: Largest count that the cell alone allows, or None.
        status: `"exact"` (the count is known), `"narrow"` (at most three counts are left),
            `"tight"` (both bounds are attained), `"bounded"` (valid bounds, perhaps not the best),
            or `"not finished"` (time ran out: valid bounds).
        argument: How the count follows from published cells; empty if it is not worked out.

    Examples:
        >>> from discreet import disclosure
        >>> rows = {"sex": ["f", "m", "Total"], "count": ["x", 12, 14]}
        >>> found = disclosure.audit_tables([disclosure.published_table(rows)])
        >>> found.hidden[0].low, found.hidden[0].status, found.hidden[0].argument
        (2, 'exact', 'total (14) - m (12)')
    """

    kind: Literal["hidden", "difference"]
    table: str
    cell: str
    low: int
    high: int | None
    published_low: int
    published_high: int | None
    status: Status
    argument: str = ""

    @property
    def width(self) -> float:
        """Number of counts that are possible, less one; infinite without an upper bound."""
        return math.inf if self.high is None else self.high - self.low

    def __str__(self) -> str:
        if self.high is None:
            held = f"at least {number(self.low)}"
        else:
            ends = f"{number(self.low)} to {number(self.high)}"
            held = number(self.low) if self.low == self.high else ends
        why = f" = {self.argument}" if self.argument else ""
        return f"{self.table}: {self.cell}: {held}{why}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableAudit(Result):
    """What published tables reveal together. Made by `audit_tables`.

    Attributes:
        tables: The audited tables.
        hidden: What is known about each hidden cell, in the order of the tables.
        differences: Small counts that follow from two overlapping tables, the smallest first.
        unknowns: Number of unknown counts in the system.
        threshold: Counts from 1 to below this one are called small.
        finished: Whether all bounds were computed in time.
        cells: The hidden cells, by the place of the table and the place of the cell in it.

    Examples:
        >>> from discreet import disclosure
        >>> rows = {"sex": ["f", "m", "Total"], "count": ["x", 12, 13]}
        >>> found = disclosure.audit_tables([disclosure.published_table(rows)])
        >>> found.singled_out, found.known_exactly
        (1, 1)
    """

    tables: tuple[PublishedTable, ...]
    hidden: tuple[CellFinding, ...]
    differences: tuple[CellFinding, ...]
    unknowns: int
    threshold: int
    finished: bool
    cells: Mapping[tuple[int, int], CellFinding] = field(repr=False)

    @property
    def findings(self) -> tuple[CellFinding, ...]:
        """Hidden cells and differences together, the worst first."""
        return tuple(sorted((*self.hidden, *self.differences), key=self._severity))

    @property
    def known_exactly(self) -> int:
        """Number of hidden cells whose count is known."""
        return sum(one.status == "exact" for one in self.hidden)

    @property
    def singled_out(self) -> int:
        """Number of hidden cells and differences that hold exactly one person."""
        return sum(one.low == one.high == 1 for one in (*self.hidden, *self.differences))

    @property
    def small(self) -> int:
        """Number of hidden cells and differences that hold few people, at least 1."""
        both = (*self.hidden, *self.differences)
        return sum(one.low >= 1 and (one.high or CAP) < self.threshold for one in both)

    def _severity(self, one: CellFinding) -> tuple[bool, float, int]:
        few = one.low >= 1 and (one.high or CAP) < self.threshold
        return not few, one.width, one.low

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - bounds are exact
        """List each hidden cell and each difference with its bounds.

        Args:
            confidence: Without effect: the bounds hold with certainty.

        Returns:
            One record for each: kind, table, cell, status, value (the middle of the bounds), std
            (None), low and high (None without an upper bound).

        Examples:
            >>> found.rows()[0]["low"]
            1
        """
        every = (*self.hidden, *self.differences)
        open_ended = [one.high is None for one in every]
        return records(
            ("kind", "table", "cell", "status"),
            [(one.kind, one.table, one.cell, one.status) for one in every],
            value=[one.low if one.high is None else (one.low + one.high) / 2 for one in every],
            low=[None if free else one.low for one, free in zip(every, open_ended, strict=True)],
            high=[one.high for one in every],
        )

    def advice(self) -> tuple[str, ...]:
        """Say what to do about the findings.

        Returns:
            One sentence for each measure that helps against what was found.

        Examples:
            >>> print(found.advice()[0].partition(":")[0])
            Hide more cells, or fewer margins
        """
        found = Counter(one.status for one in self.hidden)
        said = []
        if found["exact"] or found["narrow"]:
            said.append(
                "Hide more cells, or fewer margins: each line of a table in which a cell is hidden "
                "needs a second hidden cell, in its row and in its column, in every table that has "
                "the line. Then audit again."
            )
            said.append(
                "Merge rare labels with their neighbors, and use the same labels in all tables: "
                "then nothing needs to be hidden."
            )
        if self.differences:
            said.append(
                "Publish overlapping tables with the same labels and the same population, or wait "
                f"until differences reach {self.threshold:,} people."
            )
        if said or self.hidden:
            said.append(
                f"Or release the tables with differential privacy: with epsilon 1 in all, noise "
                f"with a standard deviation of {short(self.noise_std(), digits=3)} on each cell, "
                "from which totals are computed. Such a release has a guarantee against every "
                "attack, also together with tables that others publish."
            )
        if not said:
            said.append(
                "These tables show every count, and no small difference follows from them: whoever "
                "must not be recognized in a small count needs coarser labels."
                if any(not cell.hidden for table in self.tables for cell in table.cells)
                else "Nothing was found."
            )
        return tuple(said)

    def noise_std(self, epsilon: float = 1.0) -> float:
        """Compute the noise of a differentially private release of the same tables.

        Args:
            epsilon: Privacy loss of all tables together, for one person more or less.

        Returns:
            The standard deviation of discrete Laplace noise on each cell of each table without
            its totals, if the tables share the budget equally.

        Raises:
            InvalidArgument: `epsilon` is not positive.

        Examples:
            >>> round(found.noise_std(), 2)
            1.36
        """
        # Discrete Laplace noise of scale s = tables / epsilon has the variance 2q / (1 - q)^2 with
        # q = e^(-1/s).
        rate = float(positive("epsilon", epsilon)) / len(self.tables)
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    def __str__(self) -> str:
        cells = sum(len(one.cells) for one in self.tables)
        narrow = sum(one.width <= _NARROW for one in self.hidden) - self.known_exactly
        tables = "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"
        lines = [
            f"{tables}, {cells:,} published cells, {self.unknowns:,} unknown counts",
            f"  hidden cells: {len(self.hidden):,}",
            f"  known exactly: {self.known_exactly:,}",
            f"  two or three counts left: {narrow:,}",
            f"  known to hold 1 to {self.threshold - 1:,} people: {self.small:,}",
            f"  known to hold one person: {self.singled_out:,}",
            f"  small differences between tables: {len(self.differences):,}",
        ]
        if not self.finished:
            lines.append("  not finished: time ran out; the bounds are valid, perhaps not the best")
        worst = self.findings[:10]
        lines += ["worst:"] * bool(worst) + [f"  {one}" for one in worst]
        return "\n".join(lines)

    __repr__ = __str__


def audit_tables(
    tables: Sequence[PublishedTable],
    *,
    hierarchies: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    open_columns: Sequence[str] = (),
    threshold: int = _DEFAULT_THRESHOLD,
    seconds: float = _SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> TableAudit:
    """Compute what published tables of counts reveal together.

    All tables are read as one system of equations about the same people. For each hidden cell the
    smallest and the largest count that fits everything published is computed. Where two tables
    overlap, small counts that follow by subtraction are listed.

    Args:
        tables: Tables made by `published_table`. A column of the same name means the same in all.
        hierarchies: Coarse labels by column, each with the finer labels that it covers, such as
            `{"age": {"20-29": ["20-24", "25-29"]}}`.
        open_columns: Columns that have more labels than the tables show. A column of which only
            one label is published is always open.
        threshold: Counts from 1 to below this one are called small.
        seconds: Time for the bounds. When it is over, the remaining bounds are valid but perhaps
            not the best, with the status `"not finished"`.
        progress: Function that is called with the number of finished cells and of all cells.

    Returns:
        Bounds of all hidden cells, small differences, and advice.

    Raises:
        InvalidArgument: The tables contradict each other, or an argument is not valid.
        Unsupported: The system has more than 200,000 unknown counts.

    Privacy:
        The tables are public, so nothing is charged. The result shows counts that the publisher
        meant to hide: treat it as confidential. Finding nothing is no guarantee, since an attacker
        may know people in the tables.

    Examples:
        >>> from discreet import disclosure
        >>> rows = {
        ...     "site": ["a", "b", "Total"],
        ...     "ill": ["x", "x", 7],
        ...     "well": ["x", 20, 60],
        ...     "Total": [43, 24, 67],
        ... }
        >>> table = disclosure.published_table(rows, across="health")
        >>> [(one.cell, one.low) for one in disclosure.audit_tables([table]).hidden]
        [('a / ill', 3), ('a / well', 40), ('b / ill', 4)]

    See Also:
        `published_table`, [Audit published tables](../how-to/published-tables.md).

    References:
        Fischetti and Salazar (2001).
    """
    given = as_tuple("tables", tables)
    if not given or not all(isinstance(one, PublishedTable) for one in given):
        raise InvalidArgument("tables must be a list of tables made by published_table.")
    small = count("threshold", threshold, minimum=2)
    limit = float(positive("seconds", seconds))
    world = _World.of(
        given, {} if hierarchies is None else hierarchies, as_tuple("open_columns", open_columns)
    )
    return _Audit(given, world, small, limit, progress).run()


# ── From tables to a system ──────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _World:
    """The labels of each column, and which finest labels each stands for."""

    columns: tuple[str, ...]
    finest: dict[str, tuple[str, ...]]
    covers: dict[str, dict[str | None, frozenset[int]]]

    @classmethod
    def of(
        cls,
        tables: Sequence[PublishedTable],
        hierarchies: Mapping[str, Mapping[str, Sequence[str]]],
        open_columns: Sequence[str],
    ) -> _World:
        named: dict[str, dict[str, None]] = {}
        for table in tables:
            for place, column in enumerate(table.columns):
                labels = (cell.labels[place] for cell in table.cells)
                named.setdefault(column, {}).update(
                    dict.fromkeys(one for one in labels if one is not None)
                )
            for column, label in table.population.items():
                named.setdefault(column, {})[label] = None
        given = as_mapping("hierarchies", hierarchies)
        mentioned: tuple[tuple[str, list[object]], ...] = (
            ("hierarchies", list(given)),
            ("open_columns", list(open_columns)),
        )
        for argument, found in mentioned:
            unknown = [one for one in found if not isinstance(one, str) or one not in named]
            if unknown:
                raise InvalidArgument(f"{argument} names {unknown}, which no table has.")
        finest: dict[str, tuple[str, ...]] = {}
        covers = {}
        for column, shown in named.items():
            coarse = {
                str(key): [str(one) for one in as_tuple(f"hierarchies[{column!r}]", held)]
                for key, held in as_mapping("hierarchies", given.get(column, {})).items()
            }
            leaves = dict.fromkeys(one for one in shown if one not in coarse)
            for held in coarse.values():
                leaves.update(dict.fromkeys(one for one in held if one not in coarse))
            if len(leaves) == 1 or column in open_columns:
                leaves[OTHER] = None
            finest[column] = tuple(leaves)
            at = {one: i for i, one in enumerate(leaves)}
            covered: dict[str | None, frozenset[int]] = {None: frozenset(at.values())}
            for label in (*shown, *coarse):
                covered[label] = _leaves(label, coarse, at, column, ())
            covers[column] = covered
        return cls(tuple(finest), finest, covers)

    @property
    def unknowns(self) -> int:
        return math.prod(len(one) for one in self.finest.values())

    def region(self, labels: Mapping[str, str | None]) -> tuple[frozenset[int], ...]:
        """The finest labels of each column; None, and a column that is not named, is all."""
        return tuple(self.covers[one][labels.get(one)] for one in self.columns)

    def atoms(self, region: Sequence[frozenset[int]]) -> Ints:
        """The places of the unknown counts of a region."""
        shape = tuple(len(self.finest[one]) for one in self.columns)
        grid = np.ix_(*(np.sort(np.fromiter(one, np.int64, len(one))) for one in region))
        return np.ravel_multi_index(grid, shape).ravel().astype(np.int64)


def _leaves(
    label: str,
    coarse: Mapping[str, Sequence[str]],
    place: Mapping[str, int],
    column: str,
    above: tuple[str, ...],
) -> frozenset[int]:
    if label in above:
        raise InvalidArgument(f"hierarchies[{column!r}] puts {label!r} inside itself.")
    if label not in coarse:
        return frozenset([place[label]])
    inside = (_leaves(one, coarse, place, column, (*above, label)) for one in coarse[label])
    return frozenset[int]().union(*inside)


@dataclass(slots=True)
class _Audit:
    """One run."""

    tables: tuple[PublishedTable, ...]
    world: _World
    threshold: int
    seconds: float
    progress: Callable[[int, int], None] | None
    owner: list[tuple[int, int]] = field(default_factory=list)

    def run(self) -> TableAudit:
        matrix, low, high = self._rows()
        columns = matrix.tocsc()
        of, members = merged(columns)
        system = CellSystem(
            columns[:, members].tocsr(),
            low,
            high,
            np.zeros(len(members), dtype=np.int64),
            np.full(len(members), CAP, dtype=np.int64),
        )
        whole = CellSystem(system.matrix, low, high, system.least.copy(), system.most.copy())
        open_rows = np.flatnonzero(low != high)
        try:
            propagate(system)
            pairs = list(self._differences(of, system))
            sums = sparse.vstack(
                [system.matrix[open_rows], rows_of([one.inside for one in pairs], len(members))]
            ).tocsr()
            sums.sort_indices()
            ranges = bound_sums(system, sums, seconds=self.seconds, progress=self.progress)
        except Contradiction as reason:
            raise self._contradiction(reason) from None
        cells: dict[tuple[int, int], CellFinding] = {}
        for row, one in zip(open_rows, ranges, strict=False):
            table, place = self.owner[row]
            cell = self.tables[table].cells[place]
            # Rows that others imply are no longer in the system: their own range still holds.
            one.low, one.high = max(one.low, int(low[row])), min(one.high, int(high[row]))
            cells[table, place] = CellFinding(
                kind="hidden",
                table=self.tables[table].name,
                cell=self._words(table, cell),
                low=one.low,
                high=None if one.high >= CAP else one.high,
                published_low=cell.low,
                published_high=cell.high,
                status=_status(one),
            )
        row_of = {owner: row for row, owner in enumerate(self.owner)}
        explain = _Explainer(self, whole)
        exact = [(found, at) for at, found in cells.items() if found.status == "exact"]
        exact.sort(key=lambda pair: (pair[0].low == 0, pair[0].low))
        for found, at in exact[:_EXPLAINED]:
            cells[at] = replace(found, argument=explain(row_of[at], found.low))
        differences = []
        for pair, one in zip(pairs, ranges[len(open_rows) :], strict=True):
            if 1 <= one.high < self.threshold:
                differences.append(
                    CellFinding(
                        kind="difference",
                        table=pair.table,
                        cell=pair.cell,
                        low=one.low,
                        high=one.high,
                        published_low=0,
                        published_high=None,
                        status=_status(one),
                        argument=pair.argument,
                    )
                )
        differences.sort(key=lambda one: (one.low != one.high, one.high, one.low, one.cell))
        return TableAudit(
            tables=self.tables,
            hidden=tuple(cells.values()),
            differences=tuple(differences[:_MOST_DIFFERENCES]),
            unknowns=len(members),
            threshold=self.threshold,
            finished=all(one.finished for one in ranges),
            cells=cells,
        )

    def _words(self, table: int, cell: PublishedCell) -> str:
        extra = ", ".join(f"{k} {v}" for k, v in self.tables[table].population.items())
        return f"{cell} ({extra})" if extra else str(cell)

    def labels(self, table: int, labels: Labels) -> dict[str, str | None]:
        """The labels of a cell by column."""
        named: dict[str, str | None] = dict(zip(self.tables[table].columns, labels, strict=True))
        return {**named, **self.tables[table].population}

    def _rows(self) -> tuple[sparse.csr_array, Ints, Ints]:
        if self.world.unknowns > MOST_UNKNOWNS:
            sizes = ", ".join(f"{k}: {len(v):,}" for k, v in self.world.finest.items())
            raise Unsupported(
                f"The tables have {self.world.unknowns:,} unknown counts together ({sizes}), more "
                f"than {MOST_UNKNOWNS:,}: audit fewer tables at once, or merge labels of the "
                "longest column."
            )
        lists, low, high, entries = [], [], [], 0
        for t, table in enumerate(self.tables):
            for place, cell in enumerate(table.cells):
                inside = self.world.atoms(self.world.region(self.labels(t, cell.labels)))
                entries += len(inside)
                if entries > _MOST_ENTRIES:
                    raise Unsupported(
                        f"The tables need more than {_MOST_ENTRIES:,} terms: audit fewer tables at "
                        "once, or merge labels of the longest column."
                    )
                lists.append(inside)
                low.append(cell.low)
                high.append(CAP if cell.high is None else cell.high)
                self.owner.append((t, place))
        matrix = rows_of(lists, self.world.unknowns)
        return matrix, np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def _contradiction(self, reason: Contradiction) -> InvalidArgument:
        owners = [self.owner[row] for row in reason.rows]
        names = sorted({self.tables[t].name for t, _ in owners})
        shown = [
            f"{self.tables[t].name}: {self._words(t, self.tables[t].cells[place])} = "
            f"{self.tables[t].cells[place].text}"
            for t, place in owners[:_TERMS]
        ]
        more = ", ..." if len(owners) > _TERMS else ""
        return InvalidArgument(
            f"tables contradict each other: no counts of people fit {' and '.join(names)}. Check "
            f"these cells, the marks of hidden cells, and the base of rounding: {'; '.join(shown)}"
            f"{more}."
        )

    def _differences(self, of: Ints, system: CellSystem) -> Iterator[_Pair]:
        """People in a cell of one table and not in a cell of another that it contains."""
        world = self.world
        regions = [
            world.region(self.labels(t, self.tables[t].cells[place].labels))
            for t, place in self.owner
        ]
        published = set(regions)
        held: dict[int, dict[Labels, int]] = {}
        for row, (t, place) in enumerate(self.owner):
            held.setdefault(t, {})[self.tables[t].cells[place].labels] = row
        seen = set()
        smallest, largest = system.matrix @ system.least, system.matrix @ system.most
        for row, (t, _) in enumerate(self.owner):
            for other, by_labels in held.items():
                if other == t:
                    continue
                for wide in self._containing(regions[row], other, by_labels):
                    rest = _outside(regions[wide], regions[row])
                    if rest is None or rest in published or rest in seen:
                        continue
                    seen.add(rest)
                    inside = np.unique(of[world.atoms(rest)])
                    most = min(int(system.most[inside].sum()), int(largest[wide] - smallest[row]))
                    first, second = self.cell(wide), self.cell(row)
                    if first.high is not None:
                        most = min(most, first.high - second.low)
                    if most < self.threshold:
                        yield _Pair(
                            inside=inside,
                            table=f"{self.tables[other].name} and {self.tables[t].name}",
                            cell=f"{self._words(other, first)} without {self._words(t, second)}",
                            argument=f"{first.text} - {second.text}",
                        )

    def cell(self, row: int) -> PublishedCell:
        """The published cell of a row."""
        table, place = self.owner[row]
        return self.tables[table].cells[place]

    def _containing(
        self, region: tuple[frozenset[int], ...], other: int, rows: Mapping[Labels, int]
    ) -> Iterator[int]:
        """Cells of another table with all of the region."""
        table = self.tables[other]
        at = dict(zip(self.world.columns, region, strict=True))
        for column, label in table.population.items():
            if not at[column] <= self.world.covers[column][label]:
                return
        choices = [
            [label for label, held in self.world.covers[column].items() if at[column] <= held]
            for column in table.columns
        ]
        for labels in product(*choices):
            found = rows.get(labels)
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A difference of two cells."""

    inside: Ints
    table: str
    cell: str
    argument: str


def _outside(
    wide: tuple[frozenset[int], ...], narrow: tuple[frozenset[int], ...]
) -> tuple[frozenset[int], ...] | None:
    """What one region has and the other has not, if they differ in one column alone."""
    differ = [at for at, (a, b) in enumerate(zip(wide, narrow, strict=True)) if a != b]
    if len(differ) != 1:
        return None
    at = differ[0]
    return (*wide[:at], wide[at] - narrow[at], *wide[at + 1 :])


def _status(one: CellRange) -> Status:
    if one.low == one.high:
        return "exact"
    if not one.finished:
        return "not finished"
    if one.high - one.low <= _NARROW:
        return "narrow"
    return "tight" if one.low_attained and one.high_attained else "bounded"


@dataclass(slots=True)
class _Explainer:
    """Says from which published cells an exact count follows."""

    audit: _Audit
    system: CellSystem

    def __call__(self, row: int, value: int) -> str:
        s = self.system
        if s.matrix.nnz > _MOST_EXPLAINED:
            return ""
        low, high = s.low.copy(), s.high.copy()
        low[row], high[row] = 0, CAP
        free = CellSystem(s.matrix, low, high, s.least, s.most)
        goal = np.zeros(s.matrix.shape[1], dtype=np.int64)
        goal[s.matrix[[row]].indices] = 1
        for largest in (True, False):
            prices = multipliers(free, goal, largest=largest)
            if prices is None:
                continue
            whole = np.rint(prices).astype(np.int64)
            used = np.flatnonzero(whole)
            if (np.abs(prices - whole) > _WHOLE).any() or (s.matrix.T @ whole != goal).any():
                continue
            known = bool((s.low[used] == s.high[used]).all())
            if not known or int(whole @ np.where(whole, s.low, 0)) != value:
                continue
            if len(used) <= _TERMS and (np.abs(whole) <= 1).all():
                return self._sum(used, whole)
            return f"sums and differences of {len(used):,} published cells"
        return ""

    def _sum(self, used: Ints, whole: Ints) -> str:
        order = sorted((int(row) for row in used), key=lambda row: (whole[row] < 0, row))
        text = ""
        for row in order:
            cell = self.audit.cell(row)
            sign = "- " if whole[row] < 0 else "+ " if text else ""
            text += f"{' ' if text else ''}{sign}{cell} ({cell.text})"
        return text
