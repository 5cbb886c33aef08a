"""What is measured for many tables at once, how far one unit moves it, and what follows from it.

Two kinds of measurements, all of integers:

- *Contrasts*, with Gaussian noise. A place names a level of some columns; measured is the Kronecker
  product of their contrasts and of sums over all other columns. Different places share nothing.
- *Plain tables*, with Laplace noise, put together by least squares.

Either way a table of columns W is the sum, over the places within W, of parts that are uncorrelated
between places. So every table, and every subset of it, is answered from the same parts: tables
agree, and the variance of any answer is a sum of products over columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from scipy import sparse

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.marginals import _noise_widths as widths
from discreet.marginals.columns import MarginalColumn
from discreet.noise.distribution import Distribution, Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

TableKey: TypeAlias = tuple[int, ...]
"""The columns of a table, by their ascending numbers."""
Place: TypeAlias = tuple[tuple[int, int], ...]
"""Columns with a level each; `EACH` in place of a level: every value by itself."""
EACH = 0
MOST_BASES = 20_000
MOST_CELLS = 1 << 22
MOST_ALL_CELLS = 1 << 26
_LEAST = 1e-100
_NONE = 1e-50
_LARGEST = 1 << 61  # what noise is added to


def subsets(table: TableKey) -> Iterator[TableKey]:
    """All subsets of some columns, from the empty one."""
    for order in range(len(table) + 1):
        yield from combinations(table, order)


def closure(tables: Sequence[TableKey]) -> tuple[TableKey, ...]:
    """All tables that some tables answer, by order and then by columns."""
    found = {part for table in tables for part in subsets(table)}
    return tuple(sorted(found, key=lambda one: (len(one), one)))


def places_of(tables: Sequence[TableKey], columns: Sequence[MarginalColumn]) -> tuple[Place, ...]:
    """The places of all contrasts that these tables need."""
    found = []
    many = 0
    for table in closure(tables):
        many += math.prod([len(columns[i].levels) for i in table])
        if many > MOST_BASES:
            raise InvalidArgument(
                f"by needs more than {MOST_BASES:,} groups of measurements: ask for fewer tables, "
                "or for ranges of fewer columns."
            )
        levels = product(*[columns[i].levels for i in table])
        found += [tuple(zip(table, one, strict=True)) for one in levels]
    return tuple(found)


def contrast(place: Place) -> bool:
    """Whether contrasts are measured there; of no column, they are the table itself."""
    return any(level != EACH for _, level in place)


def support(place: Place) -> TableKey:
    """The columns of a place."""
    return tuple([column for column, _ in place])


def table_key(
    by: Iterable[str], columns: Sequence[MarginalColumn], answered: frozenset[TableKey]
) -> TableKey:
    """The numbers of named columns, if their table is answered."""
    listed = (by,) if isinstance(by, str) else check.as_tuple("by", by)
    numbers = {column.name: i for i, column in enumerate(columns)}
    for name in listed:
        if name not in numbers:
            raise InvalidArgument(
                f"by must name columns of the tables ({', '.join(numbers)}), got {name!r}."
            )
    if len(set(listed)) != len(listed):
        raise InvalidArgument("by must name different columns.")
    key = tuple(sorted(numbers[name] for name in listed))
    if key not in answered:
        raise InvalidArgument(
            f"no table of {', '.join(map(repr, listed))} was planned: ask for it when you plan."
        )
    return key


# ── Sensitivity ──────────────────────────────────────────────────────────────────────────────────


def moved_squared(
    place: Place,
    columns: Sequence[MarginalColumn],
    *,
    rows: int,
    relation: NeighboringRelation,
) -> int:
    """The most that one step of the relation moves the contrasts of a place, squared (L2)."""
    # Theorem: with at most R rows of a unit, adding or removing it moves them by at most R^2 f,
    #   `f = prod b (b - 1)`; replacing it by at most `R^2 2 f b / (b - 1)`, b the smallest number
    #   of children among the columns. The sum of all moves by at most R^2 under both.
    # Proof: a row in cell c adds a Kronecker product of columns of K_b, each of squared length
    #   `b (b - 1)`; R rows: the triangle inequality. To replace: `|F(x - y)|^2` is convex in x and
    #   in y, so it is largest at R rows in one cell each, or none. Then it is
    #   `R^2 (2 f - 2 prod k_i)`, where k_i is the inner product of two columns of K_b: b(b-1) for
    #   the same child, -b for siblings, 0 otherwise. The product is most negative when exactly
    #   one column differs, that with the smallest b. Cutting counts above a public bound moves
    #   every cell by no more than the unit's own rows in it.
    # Source: docs/theory/marginals.md; Xiao, He, Zhang, Kifer 2023 for the bases.
    # Needs: the counts of one table of the same kept rows; no unit has more than `rows` of them.
    # Of a column that is taken value by value (a level of a spine) a row enters one value: the
    #   factor is 1, and rows with different values have nothing in common, so that replacing moves
    #   by `R^2 2 f`, or by what one contrast more says, which is no less.
    replaced = central_relation(relation) is NeighboringRelation.REPLACE_ONE
    branchings = [columns[i].branching(level) for i, level in place if level != EACH]
    alone = math.prod([b * (b - 1) for b in branchings])
    if replaced and place:
        least = min(branchings, default=0)
        alone = 2 * alone * least // (least - 1) if branchings else 2
    return rows * rows * alone


def moved_plain(place: Place, *, rows: int, relation: NeighboringRelation) -> int:
    """The most that one step of the relation moves all cells of a plain table (L1)."""
    # Theorem: R for a unit that is added or removed, and for the number of all rows; 2 R for the
    #   cells of a table if a unit is replaced.
    # Proof: a row counts in one cell, by one.
    # Source: docs/theory/marginals.md.
    # Needs: as above.
    replaced = central_relation(relation) is NeighboringRelation.REPLACE_ONE
    return 2 * rows if replaced and place else rows


def most_counted(table: TableKey, columns: Sequence[MarginalColumn]) -> int:
    """Counts are cut here, so that no contrast of them leaves what noise is added to."""
    return _LARGEST // math.prod([2 * columns[i].positions for i in table])


def measured(place: Place, table: Ints, columns: Sequence[MarginalColumn], *, plain: bool) -> Ints:
    """The exact integers of a place, from the exact table of its columns."""
    cut = np.clip(table, 0, most_counted(support(place), columns))
    if plain:
        return cut
    for axis, (column, level) in enumerate(place):
        if level != EACH:
            cut = columns[column].contrasts(columns[column].placed(cut, axis), axis, level)
    return cut


def measured_shape(
    place: Place, columns: Sequence[MarginalColumn], *, plain: bool
) -> tuple[int, ...]:
    """The shape of what is measured at a place."""
    each = [
        columns[i].size
        if plain or level == EACH
        else columns[i].positions // columns[i].chain[level - 1]
        for i, level in place
    ]
    return tuple(each)


# ── What follows ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalDesign:
    """Columns, asked tables and noisy measurements: all that answers and their errors rest on."""

    columns: tuple[MarginalColumn, ...]
    tables: tuple[TableKey, ...]
    """The tables that were asked for; all their subsets are answered, too."""
    plain: bool
    """Whether plain tables are measured, in place of contrasts."""
    places: tuple[Place, ...]
    laws: tuple[DiscreteGaussian | DiscreteLaplace, ...]
    """The noise of each place."""

    @cached_property
    def every(self) -> tuple[TableKey, ...]:
        """All tables that are answered, by order and then by columns."""
        return closure(self.tables)

    @cached_property
    def answered(self) -> frozenset[TableKey]:
        """The same, to look them up."""
        return frozenset(self.every)

    @cached_property
    def largest(self) -> tuple[TableKey, ...]:
        """The asked tables that do not follow from another one."""
        asked = sorted(set(self.tables), key=lambda one: (len(one), one))
        return tuple(
            [one for one in asked if not any(one != k and self.follows(one, k) for k in asked)]
        )

    def follows(self, table: TableKey, larger: TableKey) -> bool:
        """Whether a table is made of sums of another one."""
        return set(table) <= set(larger)

    def summed(self, cells: Floats, larger: TableKey, table: TableKey) -> Floats:
        """The cells of a table from those of one that it follows from."""
        rest = tuple([axis for axis, i in enumerate(larger) if i not in table])
        return np.asarray(cells.sum(axis=rest))

    def coded(self, codes: Ints) -> Ints:
        """The codes of rows, one line for each column, where columns depend on each other."""
        return codes

    @cached_property
    def bases(self) -> tuple[Place, ...]:
        """The places of the parts of all answers."""
        return places_of(self.tables, self.columns)

    @cached_property
    def variances(self) -> Mapping[Place, float]:
        """The variance of each part, in the units in which `energy` says what an answer gets."""
        # Theorem: the part of plain tables has variance `1 / sum (N_B / N_A) / v_A`.
        # Proof: `T_A' T_A` is `N / N_A` times the projection on all spaces within A, so the
        #   information of all tables about a part adds up.
        # Source: docs/theory/marginals.md.
        if not self.plain:
            return {
                place: variance_of(law) / self._square(place)
                for place, law in zip(self.places, self.laws, strict=True)
            }
        known = dict.fromkeys(self.bases, 0.0)
        for place, law in zip(self.places, self.laws, strict=True):
            table = support(place)
            if contrast(place):
                known[place] += self._square(place) / variance_of(law)
                continue
            for part in subsets(table):
                spread = math.prod([self.columns[i].size for i in table if i not in part])
                key = tuple([(i, 1) for i in part])
                if key in known:
                    known[key] += 1 / spread / variance_of(law)
        return {place: 1 / value if value else math.inf for place, value in known.items()}

    @cached_property
    def _units(self) -> Mapping[Place, float]:
        """The same for noise of variance one."""
        return {place: 1 / self._square(place) for place in self.places}

    def _square(self, place: Place) -> float:
        return float(math.prod([self.columns[i].branching(level) for i, level in place]) ** 2)

    def within(self, table: TableKey) -> list[Place]:
        """The places of the parts of a table."""
        parts = []
        for part in subsets(table):
            levels = product(*[self.columns[i].levels for i in part])
            parts += [tuple(zip(part, one, strict=True)) for one in levels]
        return parts

    def cell_variance(self, table: TableKey, *, unit: bool = False) -> Floats:
        """The variance of each cell of a table; axes of columns whose values are alike have one."""
        known = self._units if unit else self.variances
        total = np.zeros((1,) * len(table))
        for place in self.within(table):
            levels = dict(place)
            each = [
                self.columns[i]
                .cell_energies[levels.get(i, 0)]
                .reshape([-1 if axis == k else 1 for k in range(len(table))])
                for axis, i in enumerate(table)
            ]
            total = total + known[place] * reduce(np.multiply, each, np.ones((1,) * len(table)))
        return total

    def answer_variance(self, weights: Mapping[int, Floats], *, unit: bool = False) -> float:
        """The variance of a product of weighted sums, one for each of some columns."""
        known = self._units if unit else self.variances
        table = tuple(sorted(weights))
        energies = {
            i: [
                self.columns[i].energy(weights[i], level)
                for level in range(len(self.columns[i].chain))
            ]
            for i in table
        }
        return sum(
            known[place] * math.prod([energies[i][dict(place).get(i, 0)] for i in table])
            for place in self.within(table)
        )

    def mean_energies(
        self, tables: Sequence[TableKey], ordered: frozenset[int] = frozenset()
    ) -> sparse.csr_array:
        """For each table and part: its share of the mean variance over the table's answers."""
        numbers = {place: k for k, place in enumerate(self.bases)}
        means = [
            column.mean_range_energies if i in ordered else column.mean_cell_energies
            for i, column in enumerate(self.columns)
        ]
        held, row, col = [], [], []
        for k, table in enumerate(tables):
            for place in self.within(table):
                levels = dict(place)
                row.append(k)
                col.append(numbers[place])
                held.append(math.prod([float(means[i][levels.get(i, 0)]) for i in table]))
        shape = (len(tables), len(self.bases))
        return sparse.csr_array((held, (row, col)), shape=shape)

    # ── Estimates ────────────────────────────────────────────────────────────────────────────

    def parts(self, noisy: Sequence[Ints]) -> dict[Place, Floats]:
        """The best linear unbiased estimate of each part, from the noisy measurements."""
        if not self.plain:
            found = {}
            for place, values in zip(self.places, noisy, strict=True):
                part = values.astype(np.float64)
                for axis, (i, level) in enumerate(place):
                    part = self.columns[i].centered(part, axis, level)
                found[place] = part / math.sqrt(self._square(place))
            return found
        sizes = {i: column.size for i, column in enumerate(self.columns)}
        tables: list[tuple[TableKey, Floats, float]] = []
        known: list[tuple[TableKey, Floats, float]] = []
        for place, law, values in zip(self.places, self.laws, noisy, strict=True):
            data = values.astype(np.float64)
            if contrast(place):
                for axis, (i, level) in enumerate(place):
                    data = self.columns[i].centered(data, axis, level)
                square = self._square(place)
                known.append((support(place), data / math.sqrt(square), variance_of(law) / square))
            else:
                tables.append((support(place), data, variance_of(law)))
        parts = weighted_parts(tables, sizes=sizes, parts=known)
        return {place: parts[support(place)][0] for place in self.bases}

    def table(self, table: TableKey, parts: Mapping[Place, Floats]) -> Floats:
        """The estimate of each cell of a table, from the parts."""
        shape = tuple([self.columns[i].size for i in table])
        total = np.zeros(shape)
        for place in self.within(table):
            part, levels = parts[place], dict(place)
            for axis, i in enumerate(table):
                if i not in levels:
                    part = np.expand_dims(part, axis)
            for axis, i in enumerate(table):
                part = self._spread(part, axis, i, levels.get(i, 0))
            total += part
        return total

    def _spread(self, part: Floats, axis: int, column: int, level: int) -> Floats:
        return self.columns[column].spread(part, axis, level)

    # ── Intervals ────────────────────────────────────────────────────────────────────────────

    def cell_widths(self, table: TableKey, tail: float) -> Floats:
        """Half-widths that the noise of each cell of a table leaves with probability ``tail``."""
        if (table, tail) not in self._known_widths:
            self._known_widths[table, tail] = self._cell_widths(table, tail)
        return self._known_widths[table, tail]

    @cached_property
    def _known_widths(self) -> dict[tuple[TableKey, float], Floats]:
        """Widths that were asked for: they follow from the design alone."""
        return {}

    def _cell_widths(self, table: TableKey, tail: float) -> Floats:
        variance = self.cell_variance(table)
        if self.plain:
            weights = {i: _one(self.columns[i].size) for i in table}
            return np.full(variance.shape, self._plain_width(weights, tail))
        if not table:
            return np.full((), widths.single(self.laws[self.places.index(())], tail))
        return widths.gaussian(
            self._gaussians, variance, self.cell_variance(table, unit=True), tail
        )

    def answer_width(self, weights: Mapping[int, Floats], tail: float) -> float:
        """The half-width that the noise of a weighted sum leaves with probability ``tail``."""
        if self.plain:
            return self._plain_width(weights, tail)
        variance, unit = (self.answer_variance(weights, unit=one) for one in (False, True))
        return float(widths.gaussian(self._gaussians, np.array(variance), np.array(unit), tail))

    @cached_property
    def _gaussians(self) -> tuple[tuple[DiscreteGaussian, int], ...]:
        """The noise of each place, and how many numbers have it."""
        return tuple(
            (law, math.prod(measured_shape(place, self.columns, plain=False)))
            for place, law in zip(self.places, self.laws, strict=True)
            if isinstance(law, DiscreteGaussian)
        )

    def _plain_width(self, weights: Mapping[int, Floats], tail: float) -> float:
        # What is public has no noise.
        noisy = [(place, law) for place, law in self._measured if law.variance > _NONE]
        terms = tuple([self._terms(place, law, weights) for place, law in noisy])
        if not any(np.any(held) for held, _ in terms):
            return 0.0
        laws = tuple([law for _, law in noisy])
        return widths.sums(laws, terms, self.answer_variance(weights), tail)

    @property
    def _measured(self) -> Iterator[tuple[Place, DiscreteGaussian | DiscreteLaplace]]:
        return iter(zip(self.places, self.laws, strict=True))

    def _terms(
        self, place: Place, law: Distribution, weights: Mapping[int, Floats]
    ) -> tuple[Floats, Floats]:
        """The different weights of the noise of a measurement, and how many numbers have each."""
        # Proof: the estimate of a part is `sigma_B^2` times the sum over tables A of its data in A,
        #   divided by the variance of A and by the cells that are summed; a part is spread evenly
        #   over all other columns, so each weighs the mean of what is asked of it. Contrasts tell
        #   one part, `P y / N`, with precision `N^2 / v`.
        table = support(place)
        known = self.variances
        own = contrast(place)
        scale = math.sqrt(self._square(place)) if own else 1.0
        total: Floats = np.zeros(())
        many: Floats = np.ones(())
        for part in (table,) if own else subsets(table):
            key = tuple([(i, 1) for i in part])
            if key not in known or any(i not in weights for i in part):
                continue  # nothing of what is summed varies
            factor, many = self._factor(table, part, weights)
            total = total + factor * (known[key] * scale / variance_of(law))
        return np.ravel(np.broadcast_to(total, many.shape)), np.ravel(many)

    def _factor(
        self, table: TableKey, part: TableKey, weights: Mapping[int, Floats]
    ) -> tuple[Floats, Floats]:
        """What an answer makes of one part of a measured table, for each class of its cells.

        And how many cells each class has.
        """
        means = {i: float(w.mean()) for i, w in weights.items()}
        rest = math.prod([self.columns[i].size for i in table if i not in part])
        outside = math.prod([mean for i, mean in means.items() if i not in table])
        factor: Floats = np.array(outside / rest)
        many: Floats = np.ones(())
        for i in table:
            asked = weights.get(i)
            if asked is None:
                values, counts = np.ones(1), np.array([float(self.columns[i].size)])
            else:
                values, held = np.unique(asked, return_counts=True)
                counts = held.astype(np.float64)
            mean = means.get(i, 1.0)
            each = values - mean if i in part else np.full(len(values), mean)
            factor = np.multiply.outer(factor, each)
            many = np.multiply.outer(many, counts)
        return factor, many


def variance_of(law: Distribution) -> float:
    """Of noise; so little that doubles have none is rounded up, to divide by it."""
    return max(law.variance, _LEAST)


def weighted_parts(
    tables: Sequence[tuple[TableKey, Floats, float]],
    *,
    sizes: Mapping[int, int],
    parts: Sequence[tuple[TableKey, Floats, float]] = (),
) -> dict[TableKey, tuple[Floats, float]]:
    """The parts of all tables by least squares, and their variances: each cell's noise is known."""
    # Theorem: these are the generalized least-squares estimates; tables made of them are unbiased,
    #   agree, and no variance is larger than before.
    # Proof: the information matrix of all tables is diagonal in the parts (`variances`), so each
    #   part is the mean of what the tables say of it, weighted by their precision: a cell of the
    #   sum over `k` cells has k times the variance. Gauss-Markov.
    # Source: docs/theory/marginals.md.
    # Needs: independent noise, of one variance in each table.
    sums: dict[TableKey, Floats] = {}
    known: dict[TableKey, float] = {}
    for table, values, variance in tables:
        for part in subsets(table):
            rest = tuple([axis for axis, i in enumerate(table) if i not in part])
            found = values.sum(axis=rest)
            for axis in range(len(part)):
                found = found - found.mean(axis=axis, keepdims=True)
            weight = 1 / variance / math.prod([sizes[table[axis]] for axis in rest])
            sums[part] = sums.get(part, np.zeros(())) + weight * found
            known[part] = known.get(part, 0.0) + weight
    for part, found, variance in parts:
        sums[part] = sums.get(part, np.zeros(())) + found / variance
        known[part] = known.get(part, 0.0) + 1 / variance
    return {part: (sums[part] / known[part], 1 / known[part]) for part in known}


def _one(size: int) -> Floats:
    made = np.zeros(size)
    made[0] = 1
    return made
