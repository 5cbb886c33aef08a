"""k-anonymity: generalize quasi-identifiers until every row agrees with k - 1 others.

Levels are found in the lattice of all levels, one for each column, or by local recoding, with
levels of their own for every class. This is disclosure control, not differential privacy: the risk
is bounded only against an attacker who knows the quasi-identifiers and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import Number
from discreet.core._validate import as_mapping, as_tuple, count, one_of, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.number_format import percent
from discreet.core.tabular import Record, Tabular
from discreet.disclosure._disclosure_risk import (
    DisclosureRisk,
    Frame,
    Series,
    measured,
    named,
    opened,
)
from discreet.disclosure.generalization_hierarchy import (
    CategoryHierarchy,
    EncodedColumn,
    Flags,
    Floats,
    Hierarchy,
    IntervalHierarchy,
    Ints,
    PrefixHierarchy,
    together,
    total,
)

# ── Full-domain generalization
# ───────────────────────────────────────────────────────────────────── Two facts carry the search.
# Coarser levels only merge classes, so the number of rows in small classes never grows on the way
# up: what fails, fails for everything below. And the loss of a node is at least its loss without
# suppression, a sum over columns that is known for all nodes at once.


LARGEST_LATTICE = 200_000
_ROUNDING = 1e-12  # of two sums of losses

Node = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizationResult:
    """A node that keeps the promise: levels, loss with suppression counted as total, rows lost."""

    node: Node
    loss: float
    suppressed: int


@dataclass(slots=True)
class GeneralizationLattice:
    """Classes at any node, each rolled up from the smallest known node below it."""

    columns: Sequence[EncodedColumn]
    k: int
    allowed: int
    progress: Callable[[str], None] = lambda _: None
    rows: int = 0
    tables: dict[Node, tuple[Ints, Ints]] = field(default_factory=dict)
    """Of nodes seen: one cell of each class, and the rows in it."""
    lost: dict[Node, int] = field(default_factory=dict)
    """Of each node seen: rows in classes that are too small."""
    marginal: list[Floats] = field(default_factory=list)
    codes: dict[tuple[int, int], NDArray[np.int32]] = field(default_factory=dict)
    heads: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """One row of each cell: of the rows that agree in all exact values."""

    def __post_init__(self) -> None:
        self.rows = len(self.columns[0].codes)
        cells = together(
            [column.codes for column in self.columns], [column.size(0) for column in self.columns]
        )
        self.heads = cells.head
        self.tables[(0,) * len(self.columns)] = (np.arange(len(cells.head)), cells.sizes)
        for column in self.columns:
            seen = np.bincount(column.codes, minlength=column.size(0))
            lost = [column.loss[i][column.up[i]] @ seen for i in range(column.height + 1)]
            self.marginal.append(np.array(lost) / max(self.rows, 1))

    @property
    def top(self) -> Node:
        """Where all rows are alike."""
        return tuple(column.height for column in self.columns)

    def lower(self, node: Node) -> float:
        """The loss without suppression."""
        parts = zip(self.marginal, node, strict=True)
        return math.fsum(losses[i] for losses, i in parts) / len(node)

    def classes(self, node: Node) -> tuple[Ints, Ints]:
        """One cell of each class of a node, and the rows in each."""
        if node in self.tables:
            return self.tables[node]
        cells, counts = self._smallest_below(node)
        whole = len(cells) == len(self.heads)
        parts = [self._codes(c, level) for c, level in enumerate(node)]
        bounds = [column.size(level) for column, level in zip(self.columns, node, strict=True)]
        merged = together(
            parts if whole else [part[cells] for part in parts], bounds, counts=counts
        )
        made = cells[merged.head], merged.sizes
        # Tables nearly as large as the one they were made of are not worth their memory.
        if 2 * len(made[0]) <= len(cells):
            self.tables[node] = made
        return made

    def lost_rows(self, node: Node) -> int:
        """Rows in classes that are too small."""
        if node not in self.lost:
            _, sizes = self.classes(node)
            self.lost[node] = int(sizes[sizes < self.k].sum())
            self.progress(f"searching: {len(self.lost)} combinations of levels tried")
        return self.lost[node]

    def found(self, node: Node) -> GeneralizationResult | None:
        """The node, if it keeps the promise."""
        suppressed = self.lost_rows(node)
        if suppressed > self.allowed:
            return None
        cells, sizes = self.classes(node)
        kept = sizes >= self.k
        lost = np.zeros(len(cells))
        for place, level in enumerate(node):
            lost += self.columns[place].loss[level][self._codes(place, level)[cells]]
        total = float(lost[kept] @ sizes[kept]) / len(node) + suppressed
        return GeneralizationResult(
            node=node, loss=total / max(self.rows, 1), suppressed=suppressed
        )

    def _smallest_below(self, node: Node) -> tuple[Ints, Ints]:
        below = (m for m in self.tables if all(a <= b for a, b in zip(m, node, strict=True)))
        return self.tables[min(below, key=lambda m: len(self.tables[m][0]))]

    def _codes(self, column: int, level: int) -> NDArray[np.int32]:
        """The codes of all cells at a level, looked up once."""
        if (column, level) not in self.codes:
            exact = self.columns[column].codes[self.heads]
            self.codes[column, level] = self.columns[column].up[level][exact].astype(np.int32)
        return self.codes[column, level]


def optimal(lattice: GeneralizationLattice) -> GeneralizationResult:
    """The node of smallest loss among all that keep the promise."""
    # Proof: nodes are visited in the order of their loss without suppression, a lower bound of the
    #   loss, until the bound reaches the best loss found. A node is skipped only when one above it
    #   failed, and then it fails too (head of this module).
    sizes = [height + 1 for height in lattice.top]
    if math.prod(sizes) > LARGEST_LATTICE:
        raise Unsupported(
            f"The lattice has {math.prod(sizes):,} combinations of levels, more than "
            f"{LARGEST_LATTICE:,}: use method='greedy' or 'local', or fewer levels."
        )
    nodes = np.indices(sizes).reshape(len(sizes), -1).T
    lower = np.mean([lattice.marginal[c][nodes[:, c]] for c in range(len(sizes))], axis=0)
    failed = np.zeros(len(nodes), dtype=np.bool_)
    best = greedy(lattice)
    for place in np.argsort(lower, kind="stable"):
        if lower[place] >= best.loss - _ROUNDING:
            break
        if failed[place]:
            continue
        first, below = _first_on_chain(lattice, tuple(map(int, nodes[place])))
        if below is not None:
            failed |= (nodes <= np.array(below)).all(axis=1)
        best = first if first.loss < best.loss else best
    return best


def greedy(lattice: GeneralizationLattice) -> GeneralizationResult:
    """Up the cheapest way until the promise is kept, then down, or sideways, while that is better.

    Heuristic: no theorem. The node keeps the promise. No step down, and no step down in one column
    with a step up in another, would lose less.
    """
    here, _ = _first_on_chain(lattice, (0,) * len(lattice.columns))
    while (better := _better(lattice, here)) is not None:
        here = better
    return here


def _better(
    lattice: GeneralizationLattice, here: GeneralizationResult
) -> GeneralizationResult | None:
    """A neighbor that loses less, the most promising first; what cannot is not looked at."""
    down = [_moved(here.node, c, -1) for c, level in enumerate(here.node) if level > 0]
    aside = [up for node in down for up in _steps_up(lattice, node) if up != here.node]
    for node in sorted([*down, *aside], key=lattice.lower):
        if lattice.lower(node) >= here.loss - _ROUNDING:
            return None
        found = lattice.found(node)
        if found is not None and found.loss < here.loss:
            return found
    return None


def _moved(node: Node, column: int, step: int) -> Node:
    return (*node[:column], node[column] + step, *node[column + 1 :])


def _steps_up(lattice: GeneralizationLattice, node: Node) -> list[Node]:
    return [_moved(node, c, 1) for c, top in enumerate(lattice.top) if node[c] < top]


def _first_on_chain(
    lattice: GeneralizationLattice, node: Node
) -> tuple[GeneralizationResult, Node | None]:
    """The first node that keeps the promise on a way to the top, and the one before it."""
    chain = [node]
    while chain[-1] != lattice.top:
        chain.append(min(_steps_up(lattice, chain[-1]), key=lattice.lower))
    low, high = -1, len(chain) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if lattice.lost_rows(chain[middle]) <= lattice.allowed:
            high = middle
        else:
            low = middle
    first = lattice.found(chain[high])
    assert first is not None  # noqa: S101 - the top has one class of all rows
    return first, chain[low] if low >= 0 else None


# ── Local recoding
# ───────────────────────────────────────────────────────────────────────────────── All rows begin
# as one class. A class is split along the column in which it is coarsest, into the groups of the
# next finer level; groups that would be too small stay together at their level. The idea is that
# of Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), along public hierarchies: no border is read
# from the data.


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRecoding:
    """The levels of every row, column by column."""

    levels: tuple[Ints, ...] = field(repr=False)
    loss: float


@dataclass(slots=True)
class _State:
    """Cells (different rows) in classes, and the levels of each class."""

    codes: list[Ints]
    counts: Ints
    k: int
    of: Ints
    levels: Ints
    open: Flags
    """Columns along which a class may still be split."""
    ups: list[Ints]
    losses: list[Floats]

    def split(self) -> bool:
        """Split every class that can be split, once; False when none can."""
        heads = np.zeros(len(self.levels), dtype=np.int64)
        heads[self.of] = np.arange(len(self.of))
        able = self.open & (self.levels > 0)
        lost = [
            losses[self.levels[:, c], self.codes[c][heads]] for c, losses in enumerate(self.losses)
        ]
        choice = np.where(able, np.stack(lost, axis=1), -1.0).argmax(axis=1)
        choice[~able.any(axis=1)] = -1
        # Classes made along one column of this round wait for the next round.
        chosen = choice[self.of]
        for c in range(len(self.codes)):
            cells = np.flatnonzero(chosen == c)
            if len(cells):
                self._split_along(c, cells)
        return bool((choice >= 0).any())

    def _split_along(self, c: int, cells: Ints) -> None:
        """Split the classes of these cells along one column.

        Groups of their own become classes one level finer. What stays is closed for the column,
        and a class of which nothing stays is closed altogether.
        """
        parent = self.of[cells]
        child = self.ups[c][self.levels[parent, c] - 1, self.codes[c][cells]]
        bounds = [len(self.levels), int(self.ups[c].max()) + 1]
        groups = together([parent, child], bounds, counts=self.counts[cells])
        origin = parent[groups.head]
        alone = self._alone(origin, groups.sizes)
        levels, inherited = self.levels[origin[alone]], self.open[origin[alone]]
        levels[:, c] -= 1
        self.open[origin[alone]] &= _rest(origin, alone, len(self.levels))[origin[alone], None]
        self.open[origin[~alone], c] = False
        new = np.cumsum(alone) - 1 + len(self.levels)
        moved = alone[groups.of]
        self.of[cells[moved]] = new[groups.of[moved]]
        self.levels = np.concatenate([self.levels, levels])
        self.open = np.concatenate([self.open, inherited])

    def _alone(self, origin: Ints, sizes: Ints) -> Flags:
        """Which groups become classes of their own; the others of a class stay together."""
        alone = sizes >= self.k
        rest = total(origin[~alone], len(self.levels), sizes[~alone])
        short = (rest > 0) & (rest < self.k)
        # A rest that is too small takes in the smallest of the others.
        order = np.lexsort((sizes, ~alone, origin))
        smallest = order[np.unique(origin[order], return_index=True)[1]]
        alone[smallest[short[origin[smallest]]]] = False
        return alone


def _rest(origin: Ints, alone: Flags, classes: int) -> Flags:
    """Which classes keep something."""
    return np.bincount(origin[~alone], minlength=classes) > 0


def recode(
    columns: Sequence[EncodedColumn], *, k: int, progress: Callable[[str], None] = lambda _: None
) -> LocalRecoding:
    """Levels for every row such that each class has at least k rows (if there are so many)."""
    # Theorem: every class of the result has at least k rows.
    # Proof: the first class has all rows. A split makes classes of at least k rows, and leaves a
    #   rest that is empty or has at least k rows (a smaller rest takes in another group, and if
    #   there is none, nothing is split). Classes with the same label only merge.
    # Source: after LeFevre, DeWitt, Ramakrishnan 2006.
    cells = together([column.codes for column in columns], [column.size(0) for column in columns])
    state = _State(
        codes=[column.codes[cells.head] for column in columns],
        counts=cells.sizes,
        k=k,
        of=np.zeros(len(cells.head), dtype=np.int64),
        levels=np.array([[column.height for column in columns]], dtype=np.int64),
        open=np.ones((1, len(columns)), dtype=np.bool_),
        ups=[np.stack(column.up) for column in columns],
        losses=[
            np.stack([column.loss[i][column.up[i]] for i in range(column.height + 1)])
            for column in columns
        ],
    )
    rounds = 0
    while len(cells.head) and state.split():
        rounds += 1
        progress(f"splitting: round {rounds}")
    levels = state.levels[state.of]
    lost = sum(
        float(state.losses[c][levels[:, c], state.codes[c]] @ state.counts)
        for c in range(len(columns))
    )
    rows = max(len(cells.of), 1)
    return LocalRecoding(
        levels=tuple(levels[cells.of, c] for c in range(len(columns))),
        loss=lost / len(columns) / rows,
    )


# ── Anonymized tables
# ──────────────────────────────────────────────────────────────────────────────


Method: TypeAlias = Literal["optimal", "greedy", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymizedTable(Tabular):
    """A k-anonymous table, with the remaining risk and the lost information.

    Attributes:
        frame: Released rows, as the same kind of data frame.
        method: Search method that was used.
        asked: The k that was requested.
        levels: Level of each column, or None for local recoding.
        heights: Last level of each column.
        suppressed: Number of rows that were dropped.
        loss: Information lost, from 0 (nothing) to 1 (everything), averaged over the cells.
        before: Disclosure risk of the original table.
        risk: Disclosure risk of the released table.

    Examples:
        >>> import polars
        >>> from discreet import disclosure
        >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
        >>> frame = polars.DataFrame({"age": [31, 35, 62, 64]})
        >>> disclosure.k_anonymize(frame, quasi_identifiers={"age": ages}, k=2).k
        2
    """

    frame: Any = field(repr=False)
    method: Method
    asked: int
    levels: Mapping[str, int] | None
    heights: Mapping[str, int]
    suppressed: int
    loss: float
    before: DisclosureRisk
    risk: DisclosureRisk

    def rows(self) -> list[Record]:
        """List the released rows; `frame` holds them as the kind of frame that was given.

        Returns:
            One dict for each row.

        Examples:
            >>> import polars
            >>> from discreet import disclosure
            >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
            >>> frame = polars.DataFrame({"age": [31, 35, 62, 64]})
            >>> len(disclosure.k_anonymize(frame, quasi_identifiers={"age": ages}, k=2).rows())
            4
        """
        return list(nw.from_native(self.frame, eager_only=True).iter_rows(named=True))

    @property
    def k(self) -> int:
        """Size of the smallest class that was released."""
        return self.risk.k

    @property
    def discernibility(self) -> int:
        """Sum of squared class sizes. A dropped row adds the original number of rows."""
        kept = int((self.risk.sizes.astype(np.float64) ** 2).sum())
        return kept + self.suppressed * self.before.row_count

    def __repr__(self) -> str:
        how = "levels of each class" if self.levels is None else _levels(self.levels, self.heights)
        return "\n".join(
            [
                f"anonymized table, k = {self.k} (asked {self.asked}); {self.method}: {how}",
                f"  {self.suppressed:,} rows left out; information lost: {percent(self.loss)}",
                *(f"  {line}" for line in str(self.risk).splitlines()),
                "  Not differentially private: whoever knows more can learn more.",
            ]
        )


def k_anonymize(
    frame: object,
    *,
    quasi_identifiers: Mapping[str, Hierarchy],
    k: int,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    suppress: Number = 0,
    method: Method = "optimal",
    progress: Callable[[str], None] = lambda _: None,
) -> AnonymizedTable:
    """Generalize a table until each row agrees with at least k - 1 others.

    Rows agree if they have the same labels in all quasi-identifiers.

    Args:
        frame: Table to release: any data frame that narwhals supports.
        quasi_identifiers: Public hierarchy of each column that an attacker may know.
        k: Smallest size of a class.
        sensitive: Columns that are released unchanged, and for which diversity is reported.
        keep: Other columns that are released unchanged. All remaining columns are dropped.
        suppress: Largest share of rows that may be dropped.
        method: `"optimal"` finds the level of each column with the smallest loss, `"greedy"` finds
            good levels faster, and `"local"` gives each class its own levels.
        progress: Function that receives a text for each step of the search.

    Returns:
        The released table with its risk and the lost information.

    Raises:
        InvalidArgument: A column does not exist or is named twice, or an argument is outside its
            range.
        OutOfDomain: The table has fewer than k rows.

    Privacy:
        Not differentially private. An attacker who knows only the quasi-identifiers finds a row
        with probability at most 1/k. Equal sensitive values in a class, other releases or further
        knowledge break this protection.

    Examples:
        >>> import polars
        >>> from discreet import disclosure
        >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
        >>> frame = polars.DataFrame({"age": [31, 35, 62, 64]})
        >>> table = disclosure.k_anonymize(frame, quasi_identifiers={"age": ages}, k=2)
        >>> table.frame["age"].to_list()
        ['[20, 40)', '[20, 40)', '[60, 80)', '[60, 80)']

    See Also:
        `safe_k_anonymity`: with a guarantee. [Disclosure control](../how-to/disclosure.md).

    References:
        Sweeney (2002). Samarati (2001).
        [Proof](../theory/theorems.md#disclosure.k_anonymity.k_anonymize).
    """
    # Theorem: the classes of the released table have at least k rows. Against somebody who knows
    #   only the quasi-identifiers, a row is found with probability at most 1/k.
    # Proof: classes are counted again on the released labels; smaller ones are left out.
    # Source: Sweeney 2002; B8. Search: after Samarati 2001, and Kohlmayer et al. 2012.
    # Needs: nothing of the attacker can be enforced. Equal sensitive values in a class, other
    #   releases, or knowledge of another column break it: not differential privacy (M8).
    wanted = count("k", k)
    share = probability("suppress", suppress)
    one_of("method", method, ("optimal", "greedy", "local"))
    secret = as_tuple("sensitive", sensitive)
    others = [*secret, *as_tuple("keep", keep)]
    table = _checked(frame, quasi_identifiers, others)
    if 0 < len(table) < wanted:
        raise OutOfDomain("frame must have at least k rows: with fewer, nobody has company.")
    progress("reading")
    coded = {name: hierarchy.code(table[name]) for name, hierarchy in quasi_identifiers.items()}
    columns = list(coded.values())
    before = together([one.codes for one in columns], [one.size(0) for one in columns])
    allowed = math.floor(share * len(table))
    node, levels = _chosen(columns, wanted, allowed, method, progress)
    progress("writing")
    released = [_released(one, level) for one, level in zip(columns, levels, strict=True)]
    classes = together(released, [_labels(one) for one in columns])
    kept = (classes.sizes >= wanted)[classes.of]
    shown = [name for name in table.columns if name in {*quasi_identifiers, *others}]
    made = _frame(table.select(shown), coded, released, node, np.flatnonzero(kept))
    return AnonymizedTable(
        frame=made.to_native(),
        method=method,
        asked=wanted,
        levels=None if node is None else dict(zip(quasi_identifiers, node, strict=True)),
        heights={name: one.height for name, one in coded.items()},
        suppressed=int((~kept).sum()),
        loss=_loss(columns, levels, kept),
        before=measured(before, {}),
        risk=measured(
            together([classes.of[kept]], [len(classes.sizes)]),
            {name: made[name] for name in secret},
        ),
    )


def _chosen(
    columns: Sequence[EncodedColumn],
    k: int,
    allowed: int,
    method: Method,
    progress: Callable[[str], None],
) -> tuple[Node | None, tuple[Ints, ...]]:
    """The levels of all columns, if they are the same in every row, and the levels of each row."""
    rows = len(columns[0].codes)
    if method == "local" or not rows:
        return None, recode(columns, k=k, progress=progress).levels
    lattice = GeneralizationLattice(columns, k, allowed, progress)
    node = (optimal if method == "optimal" else greedy)(lattice).node
    return node, tuple(np.full(rows, level, dtype=np.int64) for level in node)


def _checked(
    frame: object, quasi_identifiers: Mapping[str, Hierarchy], others: Sequence[str]
) -> Frame:
    table = opened(frame)
    if not as_mapping("quasi_identifiers", quasi_identifiers):
        raise InvalidArgument("quasi_identifiers must name at least one column with its hierarchy.")
    named(table, "quasi", list(quasi_identifiers))
    named(table, "sensitive and keep", others)
    for name, hierarchy in quasi_identifiers.items():
        if not isinstance(hierarchy, IntervalHierarchy | CategoryHierarchy | PrefixHierarchy):
            raise InvalidArgument(
                f"quasi_identifiers[{name!r}] must be made by interval_hierarchy(), "
                f"category_hierarchy() or prefix_hierarchy(), got {type(hierarchy).__name__}."
            )
    twice = set(quasi_identifiers) & set(others)
    if twice or len(set(others)) < len(others):
        raise InvalidArgument("a column is either quasi, sensitive or kept: name each once.")
    return table


def _labels(one: EncodedColumn) -> int:
    return sum(one.size(level) for level in range(one.height + 1))


def _released(one: EncodedColumn, levels: Ints) -> Ints:
    """The number of each row's label: levels one after the other."""
    starts = np.cumsum([0, *(one.size(level) for level in range(one.height))])
    number: Ints = starts[levels] + np.stack(one.up)[levels, one.codes]
    return number


def _loss(columns: Sequence[EncodedColumn], levels: Sequence[Ints], kept: Flags) -> float:
    if not len(kept):
        return 0.0
    lost = np.zeros(len(kept))
    for one, level in zip(columns, levels, strict=True):
        table = np.stack([one.loss[i][one.up[i]] for i in range(one.height + 1)])
        lost += table[level, one.codes]
    return float(np.where(kept, lost / len(columns), 1.0).mean())


def _frame(
    table: Frame,
    coded: Mapping[str, EncodedColumn],
    released: Sequence[Ints],
    node: Node | None,
    rows: Ints,
) -> Frame:
    """The table, its quasi-identifiers replaced by labels, without the rows left out."""
    # An index of pandas may name rows; it is no column and is not released.
    narrow = nw.maybe_reset_index(table if len(rows) == len(table) else table[rows, :])
    made: list[Series] = []
    for place, (name, one) in enumerate(coded.items()):
        if node is None or node[place] > 0:
            used, codes = np.unique(released[place][rows], return_inverse=True)
            labels = nw.new_series(name, _texts(one, used), nw.String, backend=table.implementation)
            made.append(labels[codes])
        else:
            # What counts as equal must look equal: -0.0 like 0.0, and one kind of missing.
            head = np.zeros(len(one.exact), dtype=np.int64)
            head[one.codes] = np.arange(len(one.codes))
            made.append(table[name][head[one.codes[rows]]])
    return narrow.with_columns(*made)


def _texts(one: EncodedColumn, used: Ints) -> list[str]:
    """The labels of these numbers."""
    starts = np.cumsum([0, *(one.size(level) for level in range(one.height))])
    level = np.searchsorted(starts, used, side="right") - 1
    exact = None
    texts = []
    for number, at in zip(used.tolist(), level.tolist(), strict=True):
        if at == 0:
            exact = one.names(0) if exact is None else exact
            texts.append(exact[number])
        else:
            texts.append(one.labels[at][number - int(starts[at])])
    return texts


def _levels(levels: Mapping[str, int], heights: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level} of {heights[name]}" for name, level in levels.items())
