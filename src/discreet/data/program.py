"""Plans and programs: filters, groups, contribution limits and exact aggregates.

A plan is public and frozen. An engine runs its program; every engine returns the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from itertools import chain, product
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._integer_ops import (
    OPEN,
    BoundedCode,
    Code,
    CodeBin,
    CodeBinary,
    CodeClip,
    CodeConst,
    CodeDivide,
    CodePick,
    CodeRef,
    both,
    columns,
    in_order,
    parts,
)
from discreet.data.expression import Expression, col
from discreet.data.schema import (
    INT64,
    OTHER,
    ColumnSpec,
    Label,
    Schema,
    TextColumn,
    field_of,
    open_levels,
    spelling_of,
)
from discreet.data.unit import CompositeUnit, Unit, unit_columns

# ── Plans ────────────────────────────────────────────────────────────────────────────────────────
# A plan is public and frozen. It says what leaves an engine, integers only, and how far one unit
# can move them (`Plan.reach`); docs/theory/data.md proves it.


Key: TypeAlias = tuple[Label, ...]
MOST_ROWS = 2**40
"""More rows than any source has: sums of up to so many cannot overflow."""
_MOST_GROUPS = 10_000_000
_MOST_ENTRIES = 100_000_000
_MOST_PER_UNIT = 2**20
_PLAIN_SIZE = 2**31
"""With so few groups no code next to the bounds leaves 64 bits."""
_WIDEST = 2**127 // MOST_ROWS  # a sum fits into 128 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionLimits:
    """How much of one unit is used. What is kept is decided by the unit's own rows only."""

    max_rows_per_unit: int | None = None
    max_groups_per_unit: int | None = None
    max_rows_per_unit_per_group: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_unit_per_group"):
            value = getattr(self, name)
            if value is not None and check.count(name, value) > _MOST_PER_UNIT:
                raise InvalidArgument(f"{name} must be at most 2**20, got {value}.")

    def over(self, table: ContributionLimits) -> ContributionLimits:
        """These limits, and those of the table where there are none."""
        if self is NO_LIMITS or self == NO_LIMITS:
            return table
        return ContributionLimits(
            max_rows_per_unit=self.max_rows_per_unit or table.max_rows_per_unit,
            max_groups_per_unit=self.max_groups_per_unit or table.max_groups_per_unit,
            max_rows_per_unit_per_group=self.max_rows_per_unit_per_group
            or table.max_rows_per_unit_per_group,
        )


NO_LIMITS = ContributionLimits()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AggregateSpec:
    """An exact integer per group: see `count`, `units` and `total`."""

    kind: Literal["count", "units", "sum"]
    factors: tuple[Expression, ...] = ()


def count() -> AggregateSpec:
    """The number of rows."""
    return AggregateSpec(kind="count")


def units() -> AggregateSpec:
    """The number of different units."""
    return AggregateSpec(kind="units")


def total(*factors: Expression) -> AggregateSpec:
    """The sum of an expression, or of the product of two (a square: the same one twice)."""
    if not 1 <= len(factors) <= 2 or {isinstance(f, Expression) for f in factors} != {True}:
        raise InvalidArgument("total takes one or two expressions.")
    return AggregateSpec(kind="sum", factors=factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBound:
    """How far adding or removing one unit moves an aggregate over all groups."""

    # Theorem: at most `groups` entries change, each by at most `linf`; together by at most
    #   `l1`, and by at most the root of `l2_squared` in the Euclidean norm.
    # Proof: other units keep the same rows; the unit's kept rows number at most `rows`, at most
    #   `rows_per_group` in a group, and each adds at most `weight` in absolute value. The sum
    #   of squares is convex, so it is largest with as many full groups as possible and one with
    #   the rest.
    # Source: docs/theory/data.md.
    # Needs: the relation "add or remove one unit"; for replacing a unit, twice `l1` and `linf`.

    groups: int
    rows: int
    rows_per_group: int
    weight: int

    @property
    def linf(self) -> int:
        """The most by which one entry moves."""
        return self.rows_per_group * self.weight

    @property
    def l1(self) -> int:
        """The most by which all entries move together."""
        return self.rows * self.weight

    @property
    def l2_squared(self) -> int:
        """The most by which all entries move, squared Euclidean distance."""
        full, rest = divmod(self.rows, self.rows_per_group)
        return (full * self.rows_per_group**2 + rest**2) * self.weight**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSpec:
    """One or two positions among the values, and the largest product in absolute value."""

    factors: tuple[int, ...]
    weight: int
    exponent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One reading of a table as integer code: all that an engine sees.

    `compile_program` makes it, once for each reading: planning, pricing, checking, reading and
    naming the groups share it. What an engine does not need of it stands last, and is not compared.
    """

    columns: tuple[tuple[str, ColumnSpec], ...]
    unit: Unit | None
    where: Code | None
    index: Code
    cells: tuple[int, ...] | None
    size: int
    values: tuple[Code, ...]
    sums: tuple[SumSpec, ...]
    count_units: bool
    limits: ContributionLimits
    bins: tuple[int, int] | None = None
    """A position among the values, which is the bin of a row (from 0 on), and how many there are:
    after the limits, rows are counted at ``group * many + bin``."""
    rest: bool = False
    """Whether rows of no listed cell count in a last group, instead of being left out."""
    texts: tuple[str, ...] = ()
    """Columns of open text by whose values `Engine.keys` groups, before the index."""
    known: tuple[str, ...] = ()
    """Columns whose codes must lie within their bounds: other rows are left out."""
    unit_value: Code | None = None
    """The declared part of whose a row is: rows of one owner with two such codes have two units."""
    schema: Schema = field(default_factory=dict, repr=False, compare=False)
    """The declarations of all columns, also of those that are not used."""
    aggregates: Mapping[str, AggregateSpec] = field(default_factory=dict, compare=False)
    """What is asked for each group, by the names of the integers."""
    by: tuple[str, ...] = field(default=(), compare=False)
    """The names of the group keys."""
    dimensions: tuple[BoundedCode, ...] = field(default=(), repr=False, compare=False)
    """The group keys as codes."""
    bounds: Mapping[str, ContributionBound] = field(default_factory=dict, compare=False)
    """How far one unit moves each aggregate."""
    unit_columns: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The columns of the source that say whose a row is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit_columns", unit_columns(self.unit))

    @property
    def entries(self) -> int:
        """How many integers of each kind come out: one for each group, or for each of its bins."""
        return self.size if self.bins is None else self.size * self.bins[1]

    def labels(self) -> Iterator[Key]:
        """The public keys of the groups, in the order of the answer."""
        if self.cells is not None:
            rest = [(OTHER,) * len(self.dimensions)] if self.rest else []
            return chain(_keys(self.cells, self.dimensions), rest)
        return product(
            *([d.label(c) for c in range(d.lower, d.upper + 1)] for d in self.dimensions)
        )

    def reach(self, name: str) -> ContributionBound:
        """How far one unit moves this aggregate."""
        return self.bounds[name]


def compile_program(  # noqa: PLR0913 - what a query may state, each with a default
    *,
    schema: Schema,
    aggregates: Mapping[str, AggregateSpec],
    unit: Unit | None = None,
    where: Expression | None = None,
    by: Mapping[str, Expression] | None = None,
    keys: tuple[Key, ...] | None = None,
    limits: ContributionLimits = NO_LIMITS,
    bins: Expression | None = None,
    other: bool = False,
    complete: tuple[Expression, ...] = (),
) -> Program:
    """The integer code of a question to a table with a declared schema.

    ``unit`` says whose a row is (``None``: every row is another unit); rows without a unit, or
    without a part of it, are left out. ``by`` names the group keys; ``keys`` lists the public keys
    that are wanted, all combinations if ``None``. Groups without rows are part of the answer.
    ``bins`` divides each group further: aggregates come for each bin, but limits know groups only.
    With ``other`` the rows of all keys that are not listed are one last group, else left out.
    The values of ``complete`` must be known, or the row is left out.
    """
    _check(aggregates, unit, by, keys, limits, other=other)
    kinds = {one.kind for one in aggregates.values()}
    coded = _with_open_levels(schema, by, keys)
    dimensions = _dimensions(by, coded)
    factors = {
        name: [factor.bind(schema) for factor in one.factors] for name, one in aggregates.items()
    }
    needed = complete if bins is None else (*complete, bins)
    known = [*dimensions, *[one.bind(schema) for one in needed]]
    known += [factor for found in factors.values() for factor in found]
    unit_codes = unit_parts(unit, schema)
    known += unit_codes
    used_rows = rows_used(where, schema, known=known)
    index, size = radix(dimensions)
    if size <= _PLAIN_SIZE:
        index, size = radix([used_rows.plain(one) for one in dimensions])
    cells = _cells(dimensions, keys, other=other)
    values: dict[Code, int] = {}
    sums = {
        name: _sum(factors[name], values, used_rows)
        for name, one in aggregates.items()
        if one.kind == "sum"
    }
    size = size if cells is None else len(cells) + other
    if bins is not None and "units" in kinds:
        raise Unsupported("units are counted in groups, not in bins: one may be in several.")
    binned = None if bins is None else _bins(bins.bind(schema), size, values)
    whose = unit_value(unit_codes, used_rows)
    codes = [index, *values, *[one for one in (used_rows.where, whose) if one is not None]]
    used = sorted(set().union(used_rows.known, *map(columns, codes)))
    return Program(
        columns=_coded(coded, used),
        unit=unit,
        where=used_rows.where,
        index=index,
        cells=cells,
        size=size,
        values=tuple(values),
        sums=tuple(sums.values()),
        count_units="units" in kinds,
        limits=limits if unit else NO_LIMITS,
        bins=binned,
        rest=other,
        known=used_rows.known,
        unit_value=whose,
        schema=schema,
        aggregates=aggregates,
        by=tuple(by or ()),
        dimensions=dimensions,
        bounds={
            name: _bound(
                one,
                size,
                unit=unit,
                limits=limits,
                weight=sums[name].weight if one.kind == "sum" else 1,
            )
            for name, one in aggregates.items()
        },
    )


def _check(
    aggregates: Mapping[str, AggregateSpec],
    unit: Unit | None,
    by: Mapping[str, Expression] | None,
    keys: tuple[Key, ...] | None,
    limits: ContributionLimits,
    *,
    other: bool,
) -> None:
    if not aggregates:
        raise InvalidArgument("aggregates must name at least one.")
    if keys is not None and not by:
        raise InvalidArgument("keys need by: the expressions that they are values of.")
    if other and keys is None:
        raise InvalidArgument("other needs keys: those that have a group of their own.")
    if unit is None and limits not in (NO_LIMITS, ContributionLimits(max_rows_per_unit=1)):
        raise InvalidArgument("limits need unit, the column that says whose a row is.")
    bounded = unit is None or limits.max_rows_per_unit or limits.max_rows_per_unit_per_group
    if not bounded and any(a.kind != "units" for a in aggregates.values()):
        raise InvalidArgument(
            "max_rows_per_unit must be given (or max_rows_per_unit_per_group): how many rows of "
            "one unit are used."
        )


def _bound(
    aggregate: AggregateSpec,
    size: int,
    *,
    unit: Unit | None,
    limits: ContributionLimits,
    weight: int,
) -> ContributionBound:
    groups = min(size, limits.max_groups_per_unit or size)
    if unit is None:
        rows = in_group = groups = 1
    elif aggregate.kind == "units":
        groups = min(groups, limits.max_rows_per_unit or groups)
        rows, in_group = groups, 1
    else:
        caps = [limits.max_rows_per_unit, limits.max_rows_per_unit_per_group]
        in_group = min([cap for cap in caps if cap is not None])
        rows = min(groups * in_group, limits.max_rows_per_unit or groups * in_group)
        groups = min(groups, rows)
    return ContributionBound(groups=groups, rows=rows, rows_per_group=in_group, weight=weight)


def _dimensions(by: Mapping[str, Expression] | None, schema: Schema) -> tuple[BoundedCode, ...]:
    found = tuple([expression.bind(schema) for expression in (by or {}).values()])
    if any(dimension.kind == "text" for dimension in found):
        raise InvalidArgument(OPEN)
    return found


def _with_open_levels(
    schema: Schema, by: Mapping[str, Expression] | None, keys: tuple[Key, ...] | None
) -> Schema:
    """The declarations, with open text in ``by`` as the category that the keys make of it."""
    made = dict(schema)
    for place, one in enumerate((by or {}).values()):
        bound = one.bind(schema)
        if bound.kind == "text" and keys and isinstance(bound.code, CodeRef):
            name = bound.code.column
            made[name] = open_levels((_part(key, place) for key in keys), spelling_of(schema[name]))
    return made


def _cells(
    dimensions: tuple[BoundedCode, ...], keys: tuple[Key, ...] | None, *, other: bool
) -> tuple[int, ...] | None:
    if keys is None:
        if radix(dimensions)[1] > _MOST_GROUPS:
            raise InvalidArgument("by has more than 10**7 combinations: list the keys.")
        return None
    cells = []
    axes = [(d.locator(), d.lower, d.upper - d.lower + 1) for d in dimensions]
    for key in keys:
        given: object = key
        if not isinstance(given, tuple) or len(key) != len(dimensions):
            raise InvalidArgument(f"keys must be tuples of {len(dimensions)} values.")
        cell = 0
        for (locate, lower, width), label in zip(axes, key, strict=True):
            cell = cell * width + locate(label) - lower
        cells.append(cell)
    if other and (OTHER,) * len(dimensions) in keys:
        raise InvalidArgument(f"keys must not hold {OTHER!r}: it names the remaining ones.")
    if not cells or len(set(cells)) != len(cells) or len(cells) > _MOST_GROUPS:
        raise InvalidArgument("keys must be different, at least one and at most 10**7.")
    return tuple(sorted(cells))


def _bins(bound: BoundedCode, groups: int, values: dict[Code, int]) -> tuple[int, int]:
    """The position of the bin among the values, and how many bins there are."""
    many = bound.upper - bound.lower + 1
    if groups * many > _MOST_ENTRIES:
        raise InvalidArgument("groups times bins must be at most 10**8: use fewer of either.")
    place = CodeBinary("-", bound.code, CodeConst(bound.lower)) if bound.lower else bound.code
    return values.setdefault(place, len(values)), many


def _sum(factors: Sequence[BoundedCode], values: dict[Code, int], rows: RowFilter) -> SumSpec:
    if {b.kind for b in factors} - {"number", "flag"}:
        raise InvalidArgument("total takes numbers and booleans.")
    weight = math.prod([max(abs(b.lower), abs(b.upper)) for b in factors])
    if weight >= _WIDEST:
        raise Unsupported("a sum of these products may pass 128 bits: use a coarser grid.")
    places = tuple([values.setdefault(rows.plain(b).code, len(values)) for b in factors])
    return SumSpec(factors=places, weight=weight, exponent=sum([b.exponent for b in factors]))


def _keys(cells: Sequence[int], dimensions: Sequence[BoundedCode]) -> Iterator[Key]:
    """What cells stand for, however it was written: a day, not a moment in it."""
    # Column by column: keys come by the million.
    columns: list[list[Label]] = []
    for d in reversed(dimensions):
        width = d.upper - d.lower + 1
        columns.append(d.named([cell % width + d.lower for cell in cells]))
        cells = [cell // width for cell in cells]
    return zip(*reversed(columns), strict=True)


def has_text_unit(program: Program, types: Mapping[str, str]) -> bool:
    """Whether a unit's name is text in an engine. Otherwise it is a whole number.

    Of several parts it is text always: each owner's name after its length and a colon, then the
    number of the declared value. Different parts never give the same text.
    """
    if program.unit is None:
        return False
    return not isinstance(program.unit, str) or types[program.unit] == "text"


def fields(program: Program) -> list[tuple[str, ColumnSpec]]:
    """The field of the source that each column is read from, in the order of the columns."""
    return [(field_of(name, column), column) for name, column in program.columns]


def _part(key: object, place: int) -> object:
    return key[place] if isinstance(key, tuple) and place < len(key) else None


def _coded(schema: Schema, used: Iterable[str]) -> tuple[tuple[str, ColumnSpec], ...]:
    found = tuple([(name, schema[name]) for name in used])
    for _, column in found:
        if isinstance(column, TextColumn):
            raise InvalidArgument(OPEN)
    return found


def condition(where: Expression | None, schema: Schema) -> Code | None:
    """The code that says which rows count."""
    if where is None:
        return None
    bound = where.bind(schema)
    if bound.kind != "flag":
        raise InvalidArgument("where must be a condition, such as col('age') >= 65.")
    return bound.code


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows count: a condition, and columns whose values must be known."""

    where: Code | None
    known: tuple[str, ...]
    codes: Mapping[Code, str]
    """The clipped code of each of these columns: in the rows that count, clipping changes none."""

    def plain(self, value: BoundedCode) -> BoundedCode:
        """The value without what changes nothing in the rows that count.

        Only where nothing but sums are made of it: engines may compute it for other rows as well.
        """
        if not self.codes:
            return value
        name = self.codes.get(value.code)
        return value if name is None else replace(value, code=CodeRef(name))


_ALL_ROWS = RowFilter(where=None, known=(), codes={})


def rows_used(
    where: Expression | None, schema: Schema, *, known: Sequence[BoundedCode] = ()
) -> RowFilter:
    """Which rows count: they pass the condition, and these values are known.

    So must be the values of all columns that are declared as required.
    """
    passed = condition(where, schema)
    required = required_columns(schema)
    if not required and passed is None and {one.known for one in known} <= {None}:
        return _ALL_ROWS
    # No row is kept where a condition is unknown: its code is 0 there.
    tested = _all_of(passed)
    needed = [one for value in [*required, *known] for one in _all_of(value.known)]
    nullable = {
        bound.known: (name, bound.code)
        for name in sorted(set().union(*map(columns, [*tested, *needed])))
        if (bound := col(name).bind(schema)).known is not None
    }
    if not any(one in nullable for one in tested):
        tested = [] if passed is None else [passed]
    needed = list(dict.fromkeys([*tested, *needed]))
    found = [one for one in needed if one in nullable]
    rest = [one for one in needed if one not in nullable]
    return RowFilter(
        where=reduce(both, rest, None),
        known=tuple(nullable[one][0] for one in found),
        codes={nullable[one][1]: nullable[one][0] for one in found},
    )


def unit_parts(unit: Unit | None, schema: Schema) -> list[BoundedCode]:
    """The declared values that are part of whose a row is."""
    return [one.bind(schema) for one in unit.values] if isinstance(unit, CompositeUnit) else []


def unit_schema(unit: Unit | None, schema: Schema) -> Schema:
    """The declared columns that are part of whose a row is."""
    codes = unit_parts(unit, schema)
    used = set().union(*[columns(x) for one in codes for x in (one.code, one.known) if x])
    return {name: schema[name] for name in sorted(used)}


def unit_value(values: Sequence[BoundedCode], rows: RowFilter) -> Code | None:
    """These values as one code, different for different values; None if there are none."""
    if not values:
        return None
    code, size = radix(values)
    return radix([rows.plain(one) for one in values])[0] if size <= _PLAIN_SIZE else code


def _all_of(known: Code | None) -> list[Code]:
    """The conditions that hold together."""
    found: dict[Code, None] = {}
    seen: set[Code] = set()
    waiting = [] if known is None else [known]
    while waiting:
        code = waiting.pop()
        if code in seen:
            continue
        seen.add(code)
        match code:
            case CodeBinary("and", left, right):
                waiting += right, left
            case _:
                found.setdefault(code)
    return list(found)


def required_columns(schema: Schema) -> list[BoundedCode]:
    """The columns without whose value a row is left out of everything."""
    return [
        col(name).bind(schema)
        for name, column in schema.items()
        if not isinstance(column, TextColumn) and column.required
    ]


def radix(dimensions: Iterable[BoundedCode]) -> tuple[Code, int]:
    """The position of a row among all combinations of keys, and their number."""
    index: Code = CodeConst(0)
    size = 1
    for d in dimensions:
        width = d.upper - d.lower + 1
        size *= width
        if size > INT64:
            raise InvalidArgument("by has more than 2**63 combinations: use narrower columns.")
        place = CodeBinary("-", d.code, CodeConst(d.lower)) if d.lower else d.code
        index = CodeBinary("+", CodeBinary("*", index, CodeConst(width)), place)
    return index, size


# ── Engines ──────────────────────────────────────────────────────────────────────────────────────


PRIME = 2**31 - 1
"""Products of two residues fit into 64 bits, on every engine."""
LIMB = 2**31 - 1
"""A mask of 31 bits."""
Row: TypeAlias = Sequence[int]
"""Group, rows, units, then the sums."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ExactResult:
    """Exact private integers per public key: for mechanisms only, so the repr shows none."""

    program: Program
    columns: Mapping[str, NDArray[Any]]

    @property
    def names(self) -> tuple[str, ...]:
        """What groups are values of."""
        return self.program.by

    @property
    def keys(self) -> tuple[Key, ...]:
        """The public keys of the groups."""
        return tuple(self.program.labels())

    def __repr__(self) -> str:
        return f"Table(by={list(self.names)}, groups={len(self.keys)}, of={list(self.columns)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMixer:
    """Constants of a keyed hash of unit and group to ``0 .. PRIME - 1``; see docs/theory/data.md.

    Limbs of 31 bits are combined by a random linear map (two different inputs collide with
    probability 1/PRIME), then permuted twice by ``x -> (x + c)**5``. Only the fairness of the
    choice of rows rests on it; that choice is stable for any function of key and unit.
    """

    unit: tuple[int, int, int]
    group: tuple[int, int, int]
    rounds: tuple[int, int]


def mixer(key: int, *, purpose: str) -> KeyMixer:
    """The constants for one of the limits of one run."""
    words = []
    for i in range(8):
        digest = sha256(f"{key}/{purpose}/{i}".encode()).digest()
        words.append(1 + int.from_bytes(digest[:16], "big") % (PRIME - 1))
    return KeyMixer(
        unit=(words[0], words[1], words[2]),
        group=(words[3], words[4], words[5]),
        rounds=(words[6], words[7]),
    )


class Engine(Protocol):
    """Runs a program on a source that it understands."""

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        """One row for each group (or bin of one) that is not empty, in any order."""

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        """For each key that occurs, in any order: index, different units, texts of the key."""

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        """Each row that the limits leave, in any order: name of the unit, values."""

    def values(self, program: Program, *, key: int) -> tuple[NDArray[np.int64], ...]:
        """The values of each row that the limits leave, in any order: one array for each value."""

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        """How many rows, and how many groups, how many units have: number, units."""


def tabulate(program: Program, *, engine: Engine, key: int) -> ExactResult:
    """Run a program on an engine; ``key`` is a fresh random number, the same for nobody else."""
    check.count("key", key, minimum=0)
    rows = engine.collect(program, key=key)
    table = {}
    place = 0
    for name, aggregate in program.aggregates.items():
        weight, column = 1, 1 if aggregate.kind == "count" else 2
        if aggregate.kind == "sum":
            weight, column = program.sums[place].weight, 3 + place
            place += 1
        # Which of the two types is public: it follows from the declared bounds.
        fits = weight * MOST_ROWS < 2**63
        dense = np.zeros(program.entries, dtype=np.int64 if fits else object)
        for row in rows:
            # NULL would stand for every group, and no encoder makes one: such rows add nothing.
            if row[0] is not None:
                dense[row[0]] = int(row[column] or 0)
        dense.setflags(write=False)
        table[name] = dense
    return ExactResult(program=program, columns=MappingProxyType(table))


# ── Layers of a program ──────────────────────────────────────────────────────────────────────────


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLayers(Generic[Value]):
    """Named columns in an order in which they can be computed, and those that are asked for."""

    layers: tuple[tuple[tuple[str, Value], ...], ...]
    where: Value | None
    index: Value
    values: list[Value]
    unit_value: Value | None


def layered(
    program: Program,
    *,
    column: Callable[[str], Value],
    constant: Callable[[int], Value],
    node: Callable[[CodeBinary | CodeClip | CodeBin | CodePick | CodeDivide, list[Value]], Value],
) -> ProgramLayers[Value]:
    """One column for each node of the expressions, innermost first, in an engine's own words."""
    places = {field: f"c{i}" for i, (field, _) in enumerate(program.columns)}
    made: dict[Code, tuple[Value, int]] = {}  # and the layer after which it exists
    layers: list[list[tuple[str, Value]]] = []
    first = [code for code in (program.where, program.unit_value) if code is not None]
    for code in in_order([*first, program.index, *program.values]):
        match code:
            case CodeRef(source):
                made[code] = column(places[source]), 0
            case CodeConst(value):
                made[code] = constant(value), 0
            case _:
                seen = [made[part] for part in parts(code)]
                depth = 1 + max(layer for _, layer in seen)
                name = f"e{sum(map(len, layers))}"
                layers.extend([] for _ in range(depth - len(layers)))
                layers[depth - 1].append((name, node(code, [one for one, _ in seen])))
                made[code] = column(name), depth
    return ProgramLayers(
        layers=tuple(map(tuple, layers)),
        where=None if program.where is None else made[program.where][0],
        index=made[program.index][0],
        values=[made[value][0] for value in program.values],
        unit_value=None if program.unit_value is None else made[program.unit_value][0],
    )
