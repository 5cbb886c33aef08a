"""Many tables of a private table: from declared columns to a program, a sensitivity and a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.data._integer_ops import (
    OPEN,
    BoundedCode,
    Code,
    CodeBin,
    CodeBinary,
    CodeConst,
    columns,
    small,
)
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits, Program, rows_used, unit_parts, unit_value
from discreet.data.schema import Label, Schema, TextColumn
from discreet.marginals._plan_shares import Objective
from discreet.marginals.columns import MarginalColumn, ordered_chain, unordered_chain
from discreet.marginals.design import MOST_CELLS, TableKey, closure
from discreet.marginals.plan import MarginalPlan, plan_tables
from discreet.marginals.spine import Spine
from discreet.noise.distribution import Ints
from discreet.query._measure import TableSpec
from discreet.query.budget import QueryBudget
from discreet.query.builders import as_expression, plainly

Tables: TypeAlias = int | Iterable[str | Iterable[str]]
"""All tables of up to so many columns, or the columns of each table."""
Columns: TypeAlias = Iterable[str | Expression] | Mapping[str, str | Expression] | None
Weights: TypeAlias = Mapping[str | tuple[str, ...], Number]
MOST_COLUMNS = 100
_WORD = 1 << 61
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalQuery:
    """What an engine is asked: the codes of all columns of each kept row, packed into integers."""

    text: str
    program: Program
    words: tuple[tuple[int, ...], ...]
    """The columns in each packed integer, by their numbers."""
    sizes: tuple[int, ...]
    setting: TableSpec
    """Of the table, with the limits that are enforced."""
    dropped: tuple[str, ...] = ()
    """Columns of a single value, which no table needs."""
    values: Mapping[str, Expression] = field(default_factory=dict)
    """The columns of the tables."""
    where: Expression | None = None

    def chunks(self, values: Sequence[Ints]) -> Iterator[Ints]:
        """The codes of some rows at a time: one line for each column."""
        many = len(values[0])
        for start in range(0, many, _CHUNK):
            part = [word[start : start + _CHUNK] for word in values]
            codes = np.empty((len(self.sizes), len(part[0])), dtype=np.int64)
            for word, members in zip(part, self.words, strict=True):
                rest = word
                for i in reversed(members):
                    rest, codes[i] = np.divmod(rest, self.sizes[i])
            yield codes


def plan_marginals(  # noqa: PLR0913 - each has a name
    by: Tables,
    *,
    setting: TableSpec,
    budget: QueryBudget,
    chosen: Columns = None,
    where: Expression | None = None,
    objective: Objective = "orders",
    weights: Weights | None = None,
    ranges: Mapping[str, str] | None = None,
    spine: Iterable[str] | None = None,
    max_rows_per_unit: int | None = None,
    expected_rows: int | None = None,
) -> MarginalPlan:
    """Columns, tables, sensitivity and noise from public facts."""
    # Theorem: in the rows that the program leaves, no unit has more than the plan's
    #   `max_rows_per_unit`, and all tables are counted from these same rows.
    # Proof: the limit is the program's own, applied once, to rows that hold all columns; it keeps
    #   of a unit what its own rows and a fresh key decide (docs/theory/data.md).
    # Source: docs/theory/marginals.md.
    # Needs: nothing of the data.
    if where is not None and not isinstance(where, Expression):
        raise InvalidArgument(
            f"where must be a condition such as col('age') >= 65, got {type(where).__name__}."
        )
    shown = None if expected_rows is None else check.count("expected_rows", expected_rows)
    limits = _limits(setting, max_rows_per_unit)
    expressions = _expressions(by, chosen, setting.schema)
    bound = {name: one.bind(setting.schema) for name, one in expressions.items()}
    for name, one in bound.items():
        _check_column(name, one)
    dropped = tuple(name for name, one in bound.items() if one.upper == one.lower)
    if not isinstance(by, int) and dropped:
        raise InvalidArgument(f"by must not name {dropped[0]!r}: it has a single value.")
    kept = {name: one for name, one in bound.items() if name not in dropped}
    levels = None if spine is None else _spine(spine, kept, dropped, setting.schema)
    ordered = _ordered(ranges, kept)
    made = tuple(
        [
            _column(
                name,
                one,
                ordered=name in ordered,
                whole=_uncut(expressions[name], setting.schema),
            )
            for name, one in kept.items()
        ]
    )
    tables = _tables(by, list(kept), levels)
    query = replace(
        _query(kept, tables, where, replace(setting, limits=limits), dropped, by),
        values={name: expressions[name] for name in kept},
        where=where,
    )
    return plan_tables(
        made,
        tables,
        budget=budget,
        relation=setting.relation,
        rows=limits.max_rows_per_unit or 1,
        objective=objective,
        weights=_weights(weights, list(kept), tables, objective, levels),
        ordered=frozenset(i for i, name in enumerate(kept) if name in ordered),
        spine=levels,
        expected_rows=shown,
        query=query,
    )


def _limits(setting: TableSpec, own: int | None) -> ContributionLimits:
    if setting.privacy_unit is None:
        if own not in (None, 1):
            raise InvalidArgument("max_rows_per_unit must be 1: each row is its own privacy unit.")
        return ContributionLimits()
    if own is not None:
        return ContributionLimits(max_rows_per_unit=own)
    table = setting.limits
    if table.max_groups_per_unit or table.max_rows_per_unit_per_group:
        raise InvalidArgument(
            "max_rows_per_unit must be given here: a limit per group is one of a single table, and "
            "does not bound what one privacy unit has in others."
        )
    return table


def _expressions(by: Tables, chosen: Columns, schema: Schema) -> dict[str, Expression]:
    if chosen is None:
        if isinstance(by, int):
            names = [name for name, one in schema.items() if not isinstance(one, TextColumn)]
        else:
            names = list(dict.fromkeys(name for table in _listed(by) for name in table))
        found = {name: as_expression("by", name) for name in names}
    elif isinstance(chosen, Mapping):
        found = {str(name): as_expression("columns", one) for name, one in chosen.items()}
    else:
        listed = check.as_tuple("columns", chosen)
        found = {
            one if isinstance(one, str) else plainly(one): as_expression("columns", one)
            for one in listed
        }
        if len(found) != len(listed):
            raise InvalidArgument("columns must name different columns.")
    if len(found) > MOST_COLUMNS:
        raise InvalidArgument(f"columns must be at most {MOST_COLUMNS}, got {len(found)}.")
    return found


def _listed(by: object) -> list[tuple[str, ...]]:
    """The columns of each table, as they were asked for."""
    if isinstance(by, bool | str) or not isinstance(by, Iterable):
        raise InvalidArgument(
            "by must be how many columns tables have at most, such as 2, or a list of tables such "
            f"as [['age', 'sex'], ['site']]; got {type(by).__name__}."
        )
    found = []
    for table in by:
        names = (table,) if isinstance(table, str) else check.as_tuple("by", table)
        if not all(isinstance(name, str) for name in names):
            raise InvalidArgument("by must list names of columns.")
        if len(set(names)) != len(names):
            raise InvalidArgument(f"by must not name a column twice in one table: {names}.")
        found.append(tuple(names))
    if not found:
        raise InvalidArgument("by must name one table or more.")
    return found


def _tables(by: Tables, names: list[str], spine: Spine | None) -> list[TableKey]:
    if isinstance(by, int) and not isinstance(by, bool):
        order = check.count("by", by)
        if not names:
            raise InvalidArgument("columns must have two values or more: there is no such column.")
        levels = set() if spine is None else set(spine.columns)
        wide = len(names) - max(len(levels) - 1, 0)
        every = combinations(range(len(names)), min(order, wide))
        return list(closure([one for one in every if len(levels.intersection(one)) <= 1]))
    numbers = {name: i for i, name in enumerate(names)}
    found = []
    for table in _listed(by):
        unknown = [name for name in table if name not in numbers]
        if unknown:
            raise InvalidArgument(
                f"by must name columns of these tables ({', '.join(names)}), got {unknown[0]!r}."
            )
        found.append(tuple(sorted(numbers[name] for name in table)))
    return list(dict.fromkeys(found))


def _check_column(name: str, bound: BoundedCode) -> None:
    if bound.kind == "text":
        raise InvalidArgument(OPEN)
    many = bound.upper - bound.lower + 1
    if many > MOST_CELLS:
        raise InvalidArgument(
            f"column {name!r} has {many:,} values, more than {MOST_CELLS:,}: cut it into bins, "
            f"such as columns={{{name!r}: col({name!r}).cut([...])}}."
        )


def _column(
    name: str, bound: BoundedCode, *, ordered: bool, whole: BoundedCode | None
) -> MarginalColumn:
    many = bound.upper - bound.lower + 1
    return MarginalColumn(
        bins=() if whole is None else _bins(bound, whole),
        unit=2.0**whole.exponent if whole is not None and whole.kind == "number" else 1.0,
        name=name,
        labels=tuple([bound.label(code) for code in range(bound.lower, bound.upper + 1)]),
        chain=ordered_chain(many) if ordered else unordered_chain(many),
    )


def _uncut(expression: Expression, schema: Schema) -> BoundedCode | None:
    """The numbers or dates that an expression cuts into bins, if that is what it does."""
    match expression.tree:
        case ("cut", Expression() as inner, _):
            return inner.bind(schema)
        case _:
            return None


def _bins(bound: BoundedCode, whole: BoundedCode) -> tuple[tuple[Label, Label], ...]:
    """The first and the last value in each bin; a bin beyond the bounds has the nearest one."""
    if not isinstance(bound.code, CodeBin):
        return ()
    firsts = [whole.lower, *bound.code.edges]
    lasts = [*[step - 1 for step in bound.code.edges], whole.upper]
    found = []
    for first, last in zip(firsts, lasts, strict=True):
        begin = min(max(first, whole.lower), whole.upper)
        end = max(min(last, whole.upper), begin)
        found.append((whole.label(begin), whole.label(end)))
    return tuple(found)


def _ordered(ranges: Mapping[str, str] | None, kept: Mapping[str, BoundedCode]) -> frozenset[str]:
    asked = {} if ranges is None else ranges
    if not isinstance(asked, Mapping):
        raise InvalidArgument("ranges must map columns to 'all', such as {'age': 'all'}.")
    for name, which in asked.items():
        if name not in kept:
            raise InvalidArgument(f"ranges must be of columns of the tables, got {name!r}.")
        if which != "all":
            raise InvalidArgument(f"ranges of {name!r} must be 'all', got {which!r}.")
        if kept[name].kind == "flag":
            raise InvalidArgument(f"ranges must be of ordered columns; {name!r} is a boolean.")
    return frozenset(asked)


def _spine(
    spine: Iterable[str], kept: Mapping[str, BoundedCode], dropped: Sequence[str], schema: Schema
) -> Spine:
    """The levels of a hierarchy, and to which value above each value belongs: public facts."""
    from discreet.data._numpy.engine import evaluate  # noqa: PLC0415 - engines are slow to import

    names = [] if isinstance(spine, str) else list(check.as_tuple("spine", spine))
    if len(names) < 2 or len(set(map(str, names))) != len(names):
        raise InvalidArgument(
            "spine must name two columns or more, from the top of a hierarchy to its bottom, such "
            "as ['state', 'county']."
        )
    for name in names:
        if name not in kept:
            why = "has a single value" if name in dropped else "is no column of these tables"
            raise InvalidArgument(f"spine names {name!r}, which {why}.")
    levels = [kept[name] for name in names]
    read = set().union(*[columns(one.code) for one in levels])
    if len(read) != 1:
        raise InvalidArgument(
            "spine must have levels that are computed from one declared column, such as "
            "columns={'state': col('county').map({...}), 'county': 'county'}."
        )
    (source,) = read
    whole = as_expression("spine", source).bind(schema)
    if not small(whole):
        raise InvalidArgument(f"spine must be of a column with fewer values than {source!r}.")
    every = {source: np.arange(whole.lower, whole.upper + 1)}
    seen = [np.broadcast_to(evaluate(one.code, every), len(every[source])) for one in levels]
    parents = [np.zeros(levels[0].upper - levels[0].lower + 1, dtype=np.int64)]
    for k in range(1, len(levels)):
        above, own = (
            codes - one.lower for codes, one in zip(seen[k - 1 :], levels[k - 1 :], strict=False)
        )
        parents.append(_parents(above, own, levels[k], names[k - 1 : k + 1]))
    numbers = list(kept)
    return Spine(columns=tuple([numbers.index(name) for name in names]), parents=tuple(parents))


def _parents(above: Ints, own: Ints, level: BoundedCode, names: Sequence[str]) -> Ints:
    """To which value of the level above each value belongs; one that nothing has, to any."""
    found = np.zeros(level.upper - level.lower + 1, dtype=np.int64)
    found[own] = above
    several = found[own] != above
    if several.any():
        label = level.label(int(own[several][0]) + level.lower)
        raise InvalidArgument(
            f"spine must have one {names[0]!r} for each {names[1]!r}: {label!r} has several."
        )
    return found


def _weights(
    weights: Weights | None,
    names: list[str],
    tables: Sequence[TableKey],
    objective: str,
    spine: Spine | None,
) -> dict[TableKey, float]:
    given = {} if weights is None else weights
    if not isinstance(given, Mapping):
        raise InvalidArgument("weights must map tables to numbers: {('age', 'sex'): 5}.")
    every = closure(tables) if spine is None else spine.closure(tables)
    known = set(every if objective == "orders" else tables)
    found = {}
    for table, weight in given.items():
        asked = (table,) if isinstance(table, str) else tuple(table)
        unknown = [name for name in asked if name not in names]
        key = tuple(sorted(names.index(name) for name in asked)) if not unknown else None
        if key is None or key not in known:
            raise InvalidArgument(f"weights must be of tables that were asked for, got {table!r}.")
        found[key] = float(check.positive("weights", weight))
    return found


def _query(
    kept: Mapping[str, BoundedCode],
    tables: Sequence[TableKey],
    where: Expression | None,
    setting: TableSpec,
    dropped: tuple[str, ...],
    by: Tables,
) -> MarginalQuery:
    bounds = list(kept.values())
    sizes = tuple([one.upper - one.lower + 1 for one in bounds])
    words: list[list[int]] = [[]]
    codes: list[Code] = [CodeConst(0)]
    size = 1
    for i, (bound, many) in enumerate(zip(bounds, sizes, strict=True)):
        if size * many > _WORD:
            words.append([])
            codes.append(CodeConst(0))
            size = 1
        size *= many
        words[-1].append(i)
        place = CodeBinary("-", bound.code, CodeConst(bound.lower)) if bound.lower else bound.code
        codes[-1] = (
            CodeBinary("+", CodeBinary("*", codes[-1], CodeConst(many)), place)
            if len(words[-1]) > 1
            else place
        )
    parts = unit_parts(setting.privacy_unit, setting.schema)
    used_rows = rows_used(where, setting.schema, known=[*bounds, *parts])
    whose = unit_value(parts, used_rows)
    used = sorted(
        set().union(
            used_rows.known,
            *map(columns, [*codes, *[c for c in (used_rows.where, whose) if c is not None]]),
        )
    )
    program = Program(
        columns=tuple([(name, setting.schema[name]) for name in used]),
        unit=setting.privacy_unit,
        where=used_rows.where,
        known=used_rows.known,
        index=CodeConst(0),
        cells=None,
        size=1,
        values=tuple(codes),
        sums=(),
        count_units=False,
        limits=setting.limits,
        unit_value=whose,
    )
    told = "" if where is None else f" where {plainly(where)}"
    what = (
        f"all tables of up to {by} of {', '.join(kept)}"
        if isinstance(by, int)
        else "; ".join(" x ".join(list(kept)[i] for i in table) or "all rows" for table in tables)
    )
    return MarginalQuery(
        text=f"counts by {what}{told}",
        program=program,
        words=tuple([tuple(word) for word in words]),
        sizes=sizes,
        setting=setting,
        dropped=dropped,
    )
