"""SQL as queries: one SELECT of aggregates is parsed, and translated to the same questions.

No text reaches an engine. What is not in the subset is refused with its place and a way that works.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, cast

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.expression import Expression, col, when
from discreet.data.unit import unit_columns
from discreet.query import builders
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import budget
from discreet.query.builders import Query

LONGEST, NODES, DEEPEST = 10_000, 2_000, 60
_PARTS = ("year", "quarter", "month", "week", "day", "hour")
_PERIODS = ("year", "quarter", "month", "week")
_FREE = "Compute it from the released numbers: that costs nothing."

# Kinds of nodes, with the name of the refusal and the nearest thing that works. The first in this
# order that occurs anywhere is told.
_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("With CTE", "WITH", "Write one SELECT from the table."),
    ("Union Intersect Except SetOperation", "UNION", "Ask one SELECT for each, under one account."),
    ("Join Lateral", "JOIN", "Join with table.with_lookup(...) in Python, then ask."),
    ("Exists", "subquery", "Ask one SELECT; use the released number as a parameter."),
    ("Subquery", "subquery", "Ask one SELECT; use the released number as a parameter."),
    ("TableSample", "TABLESAMPLE", "Leave it out: the noise is smaller on all rows."),
    ("Lock", "FOR UPDATE", "Leave it out: nothing is changed."),
    ("Having", "HAVING", "Filter the released rows: that costs nothing."),
    ("Qualify Window", "window function", "Use GROUP BY."),
    ("Rollup Cube GroupingSets", "GROUP BY ROLLUP", "Release the groups and add them up."),
    ("ILike ILikeAny", "ILIKE", "List the values: column IN (...)."),
    ("Like LikeAny", "LIKE", "List the values: column IN (...)."),
    ("SimilarTo", "SIMILAR TO", "List the values: column IN (...)."),
    ("RegexpLike RegexpILike", "regular expression", "List the values: column IN (...)."),
    ("Nvl2 Nullif", "COALESCE", "Use COALESCE(column, value) or CASE."),
    ("Rand Randn Uuid", "random number", "Leave it out: the noise is added by the release."),
    (
        "CurrentDate CurrentTimestamp CurrentTime CurrentDatetime Localtime Localtimestamp",
        "clock",
        "Write the date: DATE '2026-01-31'.",
    ),
    ("IntDiv", "division", "Divide the released numbers, or use col(...).divide in Python."),
    ("Mod", "modulo", "Declare a column of the parts, or use CASE."),
    ("Min", "MIN", "Use PERCENTILE_CONT(0.01) WITHIN GROUP (ORDER BY column)."),
    ("Max", "MAX", "Use PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY column)."),
    ("Offset", "OFFSET", "Leave rows out of the answer: that costs nothing."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column of the answer: a key of the groups, or the number of a query."""

    name: str
    key: str | None = None
    query: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuestion:
    """A translated SELECT."""

    queries: tuple[Query, ...]
    columns: tuple[OutputColumn, ...]
    order: tuple[tuple[int, bool], ...] = ()
    """Positions of columns, and whether they descend."""
    limit: int | None = None


def translate(
    text: str,
    *,
    spec: TableSpec,
    name: str | None = None,
    parameters: Mapping[str, object] | None = None,
    dialect: str = "postgres",
) -> SqlQuestion:
    """The queries of a SELECT; nothing is read, and everything else is refused in words."""
    # Theorem: the questions are those that the same words in Python would be; so is their cost.
    # Proof: the only outputs are `Query` objects of `discreet.query` and the order of their
    #   answers; `tests/query/test_sql.py` compares them bit by bit.
    root = _parsed(text, dialect)
    try:
        return _Translator(spec, name, dict(parameters or {})).select(root)
    except (InvalidArgument, Unsupported) as error:
        if str(error).startswith("SQL: "):
            raise
        # What the declared types do not allow, in the words of the query itself.
        raise InvalidArgument(f"SQL: types: {error}") from None


def _parsed(text: str, dialect: str) -> Any:
    if not isinstance(text, str):
        raise InvalidArgument(f"text must be SQL, got {type(text).__name__}.")
    if len(text) > LONGEST:
        raise InvalidArgument(f"SQL: size: at most {LONGEST:,} characters. Ask several SELECTs.")
    try:
        import sqlglot  # noqa: PLC0415 - optional, and only here
    except ModuleNotFoundError:
        raise Unsupported("SQL needs sqlglot: pip install 'discreet[sql]'.") from None
    logger = logging.getLogger("sqlglot")
    was, logger.disabled = logger.disabled, True
    try:
        found = [one for one in sqlglot.parse(text, read=dialect) if one is not None]
    except Exception:  # noqa: BLE001 - whatever a parser meets in strange text, it is no SQL
        found = []
    finally:
        logger.disabled = was
    if not found:
        raise InvalidArgument(
            "SQL: not SQL: the text is not a statement. Write SELECT COUNT(*) FROM table."
        )
    if len(found) > 1:
        raise InvalidArgument("SQL: several statements: write one SELECT at a time.")
    _sizes(found[0])
    return found[0]


def _sizes(root: Any) -> None:
    many, level = 0, [root]
    for _ in range(DEEPEST):
        many += len(level)
        level = [child for node in level for child in node.iter_expressions()]
        if many > NODES:
            break
    if level or many > NODES:
        raise InvalidArgument(
            f"SQL: size: at most {NODES:,} parts, {DEEPEST} inside each other. Ask several SELECTs."
        )


def _kind(node: Any) -> str:
    return type(node).__name__


def refuse(name: str, node: Any, remedy: str) -> NoReturn:
    """One refusal: its name, its place in the text, and the nearest thing that works."""
    place = ""
    for one in [] if node is None else node.walk():
        if "line" in one.meta:
            first = one.meta["col"] - (one.meta["end"] - one.meta["start"])
            place = f" (line {one.meta['line']}, column {first})"
            break
    raise InvalidArgument(f"SQL: {name}{place}: {remedy}")


class _Translator:
    def __init__(self, spec: TableSpec, name: str | None, parameters: dict[str, object]) -> None:
        self.spec = spec
        self.table = name
        self.parameters = parameters
        self.known: set[str] = set()
        """What the table may be called before a column."""
        self.groups: list[tuple[str, Any, Expression]] = []

    # ── The statement ────────────────────────────────────────────────────────────────────────────

    def select(self, root: Any) -> SqlQuestion:
        self._refusals(root)
        if _kind(root) != "Select":
            refuse("not a SELECT", root, "Only SELECT reads a table: SELECT COUNT(*) FROM table.")
        self._only(root, "expressions from_ where group order limit distinct")
        if root.args.get("distinct"):
            refuse("DISTINCT", root, "Use GROUP BY with COUNT(*).")
        self._table(root.args.get("from_"))
        where = root.args.get("where")
        condition = None if where is None else self.condition(where.this)
        self._group_by(root)
        queries: list[Query] = []
        columns: list[OutputColumn] = []
        for one in root.expressions:
            self._column(one, condition, queries, columns)
        if not queries:
            refuse("no aggregate", root, "Add COUNT(*), SUM, AVG or another aggregate.")
        order = self._order(root, columns)
        limit = self._limit(root, ordered=bool(order))
        self._planned(queries)
        return SqlQuestion(queries=tuple(queries), columns=tuple(columns), order=order, limit=limit)

    def _refusals(self, root: Any) -> None:
        nodes: dict[str, Any] = {}
        selects = 0
        for node in root.walk():
            nodes.setdefault(_kind(node), node)
            selects += _kind(node) == "Select"
        statement = _kind(root) in {"Select", "Union", "Intersect", "Except"}
        if not statement:
            refuse("not a SELECT", root, "Only SELECT reads a table: SELECT COUNT(*) FROM table.")
        for kinds, name, remedy in _REFUSED:
            for kind in kinds.split():
                if kind not in nodes:
                    continue
                refuse(name, nodes[kind], remedy)
        if selects > 1:
            refuse("subquery", root, "Ask one SELECT; use the released number as a parameter.")

    def _only(self, node: Any, allowed: str) -> None:
        """Nothing that the parser understood goes unread."""
        for name, value in node.args.items():
            if name not in allowed.split() and value not in (None, False, [], ()):
                part = value[0] if isinstance(value, list) else value
                word = name.strip("_").replace("_", " ").upper()
                refuse(
                    word,
                    part if hasattr(part, "walk") else node,
                    f"{word} is not understood. Leave it out.",
                )

    def _table(self, clause: Any) -> None:
        if clause is None:
            refuse("no FROM", None, "Name the table: SELECT COUNT(*) FROM table.")
        table = clause.this
        if _kind(table) != "Table":
            refuse("table function", table, "Name the table.")
        if _kind(table.this) != "Identifier":
            refuse("table function", table, "Declare the file with discreet.table(...).")
        self._only(table, "this alias")
        name = table.this
        if self.table is not None and not _same(name, self.table):
            refuse("unknown table", name, f"There is one table here: {self.table}.")
        self.known = {name.name if name.args.get("quoted") else name.name.lower()}
        if alias := table.args.get("alias"):
            self._only(alias, "this")
            self.known = {alias.name.lower()}

    # ── Groups, columns, order ───────────────────────────────────────────────────────────────────

    def _group_by(self, root: Any) -> None:
        group = root.args.get("group")
        if group is None:
            return
        self._only(group, "expressions")
        aliased = {one.alias.lower(): one.this for one in root.expressions if one.alias}
        for one in group.expressions:
            node = _inside(one)
            if _kind(node) == "Literal" and not node.is_string:
                place = int(node.this) if node.this.isdigit() else 0
                if not 1 <= place <= len(root.expressions):
                    refuse("GROUP BY", node, "A position counts the columns of SELECT from 1.")
                node = _inside(root.expressions[place - 1])
                node = _inside(node.this) if _kind(node) == "Alias" else node
            elif _kind(node) == "Column" and not self._declared(node):
                node = _inside(aliased.get(node.name.lower(), node))
            if _aggregate(node):
                refuse("GROUP BY", node, "Group by columns, not by aggregates.")
            if self._is_unit(node):
                refuse("GROUP BY unit", node, "Groups of one person are no statistics.")
            named = [name for name, this in aliased.items() if _inside(this) == node]
            plain = node.name if _kind(node) == "Column" else ""
            spelled = self._spelled(node) if plain and self._declared(node) else plain
            name = next((one.alias for one in root.expressions if one.alias.lower() in named), "")
            name = name or spelled or f"group {len(self.groups) + 1}"
            self.groups.append((name, node, self.value(node)))

    def _column(
        self,
        one: Any,
        where: Expression | None,
        queries: list[Query],
        columns: list[OutputColumn],
    ) -> None:
        alias, node = one.alias, _inside(one)
        node = _inside(node.this) if _kind(node) == "Alias" else node
        if _kind(node) == "Star" or (_kind(node) == "Column" and _kind(node.this) == "Star"):
            refuse("star", node, "Name aggregates: rows of people are never shown.")
        for name, group, _ in self.groups:
            if group == node or (
                _kind(node) == "Column" and node.name.lower() == name.lower() and not alias
            ):
                columns.append(OutputColumn(name=alias or name, key=name))
                return
        if _kind(node) in {"Literal", "Boolean", "Neg"} and not _aggregate(node):
            refuse("constant", node, "Leave it out, or add it to the released rows.")
        ratio = _kind(node) == "Div" and _aggregate(node)
        if _kind(node) in {"Add", "Sub", "Mul"} and _aggregate(node):
            refuse("arithmetic on aggregates", node, _FREE)
        if _kind(node) == "Column":
            grouped = f"Use an aggregate, or GROUP BY {node.name}."
            self._declared(node, must=not self._is_unit(node))
            refuse("bare column", node, grouped)
        make = self._ratio if ratio else self.aggregate
        query = make(node, where, alias)
        spoken = alias or ("ratio" if ratio else _spoken(node))
        taken = {column.name for column in columns}
        name, more = spoken, 2
        while name in taken:
            name, more = f"{spoken}_{more}", more + 1
        columns.append(OutputColumn(name=name, query=len(queries)))
        queries.append(query)

    def _order(self, root: Any, columns: Sequence[OutputColumn]) -> tuple[tuple[int, bool], ...]:
        clause = root.args.get("order")
        if clause is None:
            return ()
        self._only(clause, "expressions")
        found = []
        inner = [
            _inside(one.this) if _kind(one) == "Alias" else _inside(one) for one in root.expressions
        ]
        for one in clause.expressions:
            self._only(one, "this desc nulls_first")
            node = _inside(one.this)
            names = [column.name.lower() for column in columns]
            if (
                _kind(node) == "Literal"
                and node.this.isdigit()
                and 0 < int(node.this) <= len(names)
            ):
                place = int(node.this) - 1
            elif _kind(node) == "Column" and node.name.lower() in names:
                place = names.index(node.name.lower())
            elif node in inner:
                place = inner.index(node)
            else:
                refuse("ORDER BY", node, "Order by columns of SELECT.")
            found.append((place, bool(one.args.get("desc"))))
        return tuple(found)

    def _limit(self, root: Any, *, ordered: bool) -> int | None:
        clause = root.args.get("limit")
        if clause is None:
            return None
        if _kind(clause) == "Limit":
            self._only(clause, "expression")
        number = clause.args.get("expression")
        if number is None or _kind(number) != "Literal" or not number.this.isdigit():
            refuse("LIMIT", clause, "Write a whole number.")
        if not ordered:
            refuse("LIMIT without ORDER BY", clause, "Add ORDER BY: else any rows could be meant.")
        return int(number.this)

    # ── Aggregates ───────────────────────────────────────────────────────────────────────────────

    def aggregate(self, node: Any, where: Expression | None, name: str) -> Query:
        if _kind(node) == "Filter":
            self._only(node, "this expression")
            only = self.condition(node.expression.this)
            return self.aggregate(node.this, only if where is None else where & only, name)
        more = self._more(where, name)
        for inner in node.find_all(*_aggregates()):
            if inner is not node and _kind(node) != "WithinGroup":
                refuse("nested aggregate", inner, "Aggregate the column itself.")
        kind = _kind(node)
        one = {
            "Sum": builders.sum,
            "Avg": builders.mean,
            "Variance": builders.variance,
            "VariancePop": builders.variance,
            "Stddev": builders.std,
            "StddevPop": builders.std,
            "Median": builders.median,
        }
        two = {"CovarPop": builders.covariance, "Corr": builders.correlation}
        if kind == "Count":
            return self._count(node, more)
        if kind in one:
            self._only(node, "this")
            return _built(one[kind], self._summand(node.this), **more)
        if kind in two:
            self._only(node, "this expression")
            parts = self._summand(node.this), self._summand(node.expression)
            return _built(two[kind], *parts, **more)
        if kind == "WithinGroup":
            return self._percentile(node, more)
        if kind in {"Anonymous", "AnonymousAggFunc"} or _function(node):
            refuse("unknown function", node, "Use COUNT, SUM, AVG, VARIANCE, STDDEV or MEDIAN.")
        if _kind(node) == "Case" or _kind(node) == "Extract":
            refuse("bare column", node, "Add it to GROUP BY, or put it into an aggregate.")
        return refuse("bare column", node, "Use an aggregate such as SUM(...).")

    def _more(self, where: Expression | None, name: str) -> dict[str, Any]:
        by = {key: value for key, _, value in self.groups} or None
        return {"where": where, "by": by, "name": name}

    def _ratio(self, node: Any, where: Expression | None, name: str) -> Query:
        """SUM(a) / SUM(b), where SQL would not cut the quotient to a whole number."""
        over, under, cuts = _inside(node.this), _inside(node.expression), True
        if _kind(over) == "Mul" and _is_one(over.this):
            over, cuts = _inside(over.expression), False
        if {_kind(over), _kind(under)} != {"Sum"} or any(
            inner not in (over, under) for inner in node.find_all(*_aggregates())
        ):
            refuse("arithmetic on aggregates", node, _FREE)
        self._only(over, "this")
        self._only(under, "this")
        parts = self._summand(over.this), self._summand(under.this)
        if cuts and all(self._whole(one) for one in parts):
            refuse("division", node, "SQL cuts it: write 1.0 * SUM(a) / SUM(b).")
        return _built(builders.ratio, *parts, **self._more(where, name))

    def _whole(self, value: Any) -> bool:
        """Whether SQL would take it for a whole number."""
        if isinstance(value, Expression):
            bound = value.bind(self.spec.schema)
            return bound.kind == "number" and bound.exponent >= 0
        return isinstance(value, int)

    def _quotient(self, node: Any) -> Any:
        left, right = self.operand(node.this), self.operand(node.expression)
        _numbers(node, left, right)
        if isinstance(right, Expression):
            refuse("division", node, "Divide the released numbers, or use divide in Python.")
        decimal = _kind(_inside(node.expression)) == "Literal" and "." in node.expression.this
        if self._whole(left) and self._whole(right) and not decimal:
            refuse(
                "division", node, f"SQL cuts it: write / {right}.0 for a number with a fraction."
            )
        return left / right

    def _known(self, node: Any) -> Expression:
        """IS NULL and IS TRUE; each is true or false for every row."""
        self._only(node, "this expression negate")
        inner, wanted = self.value(node.this), _inside(node.expression)
        if _kind(wanted) == "Null":
            return inner.is_known() if node.args.get("negate") else inner.is_missing()
        if _kind(wanted) != "Boolean":
            refuse("IS", node, "Write IS NULL, IS TRUE or IS FALSE.")
        found = inner if wanted.this else ~inner
        found = found.fill_missing(value=False)
        return ~found if node.args.get("negate") else found

    def _filled(self, node: Any) -> Expression:
        """COALESCE: the first of its values that is known."""
        self._only(node, "this expressions")
        *parts, last = [self.operand(one) for one in (node.this, *node.expressions)]
        if not parts:
            refuse("COALESCE", node, "Write COALESCE(column, value).")
        for one in reversed(parts):
            if not isinstance(one, Expression):
                refuse("constant", node, "Values behind a constant are never used.")
            if isinstance(last, Expression):
                last = when(one.is_known()).then(one).otherwise(last)
            else:
                last = one.fill_missing(last)
        assert isinstance(last, Expression)  # noqa: S101 - one part is one
        return last

    def _count(self, node: Any, more: Mapping[str, Any]) -> Query:
        self._only(node, "this big_int")
        inner = _inside(node.this) if node.this is not None else None
        if inner is None or _kind(inner) == "Star":
            self._only(inner or node, "this big_int")
            return builders.count(**more)
        if _kind(inner) == "Literal" and inner.this == "1" and not inner.is_string:
            return builders.count(**more)
        if _kind(inner) == "Distinct":
            if len(inner.expressions) == 1 and self._is_unit(_inside(inner.expressions[0])):
                if not isinstance(self.spec.privacy_unit, str):
                    told = f"The privacy unit is {self.spec.privacy_unit}"
                    refuse("COUNT(DISTINCT)", inner, f"{told}: use query.count_units in Python.")
                return builders.count_units(**more)
            refuse(
                "COUNT(DISTINCT)",
                inner,
                "Only the privacy unit is counted so; use query.count_distinct in Python.",
            )
        if _kind(inner) in {"Literal", "Boolean"}:
            refuse("COUNT(column)", inner, "Use COUNT(*).")
        return _built(builders.count, of=self.value(inner), **more)

    def _percentile(self, node: Any, more: Mapping[str, Any]) -> Query:
        function, order = node.this, node.args.get("expression")
        if _kind(function) != "PercentileCont" or _kind(order) != "Order":
            refuse("unknown function", node, "Use PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY c).")
        self._only(node, "this expression")
        self._only(function, "this")
        (ordered, *others) = order.expressions
        if others or ordered.args.get("desc"):
            refuse("PERCENTILE", order, "Order by one column, ascending.")
        level = self.constant(_inside(function.this))
        if isinstance(level, bool) or not isinstance(level, int | float | Fraction):
            refuse("PERCENTILE", function, "The level is a number between 0 and 1.")
        if not 0 <= level <= 1:
            refuse("PERCENTILE", function, "The level is a number between 0 and 1.")
        return _built(builders.quantiles, self._summand(ordered.this), [level], **more)

    def _summand(self, node: Any) -> Expression:
        inner = _inside(node)
        if _kind(inner) == "Distinct":
            refuse("DISTINCT", inner, "Sums are over rows; COUNT(DISTINCT unit) counts people.")
        if _kind(inner) in {"Literal", "Boolean"}:
            refuse("constant", inner, "Use COUNT(*), and multiply the released number.")
        return self.value(inner)

    # ── Values and conditions ────────────────────────────────────────────────────────────────────

    def value(self, node: Any) -> Expression:
        """An expression; a constant alone is none."""
        found = self.operand(node)
        if not isinstance(found, Expression):
            refuse("constant", node, "Use a column.")
        return found

    def operand(self, node: Any) -> Any:
        """An expression or a public value."""
        node = _inside(node)
        kind = _kind(node)
        if _aggregate(node) and kind not in {"And", "Or", "Not"}:
            refuse("aggregate in the wrong place", node, "Filter the released rows: that is free.")
        made: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(("Literal", "Boolean", "Placeholder", "Parameter"), self.constant),
            **dict.fromkeys(("Null", "Cast"), self.constant),
            **dict.fromkeys(_CONDITIONS, self.condition),
            **dict.fromkeys(_ARITHMETIC, self._arithmetic),
            "Column": self._col,
            "Neg": self._negative,
            "Div": self._quotient,
            "Coalesce": self._filled,
            "Abs": self._absolute,
            "Case": self._case,
            "Extract": self._part,
            "DateTrunc": self._period,
            "TimestampTrunc": self._period,
        }
        if kind in made:
            return made[kind](node)
        return refuse(
            "unknown function", node, "Use + - * /, ABS, CASE, COALESCE, EXTRACT and DATE_TRUNC."
        )

    def _arithmetic(self, node: Any) -> Any:
        left, right = self.operand(node.this), self.operand(node.expression)
        _numbers(node, left, right)
        return _ARITHMETIC[_kind(node)](left, right)

    def _negative(self, node: Any) -> Any:
        found = self.operand(node.this)
        _numbers(node, found)
        return -found

    def _absolute(self, node: Any) -> Expression:
        self._only(node, "this")
        return abs(self.value(node.this))

    def constant(self, node: Any) -> Any:
        kind = _kind(node)
        if kind == "Literal":
            return node.this if node.is_string else _number(node)
        if kind == "Boolean":
            return bool(node.this)
        if kind == "Neg":
            inner = self.constant(node.this)
            _numbers(node, inner)
            return -inner
        if kind == "Cast":
            return self._date(node)
        if kind in {"Placeholder", "Parameter"}:
            name = node.name or str(node.this or "")
            if name not in self.parameters:
                refuse("parameter", node, f"Give it: parameters={{{name!r}: ...}}.")
            given = self.parameters[name]
            if not isinstance(given, int | float | str | bool | Fraction | dt.date):
                refuse("parameter", node, "A parameter is a number, a text, a boolean or a date.")
            return given
        if kind == "Null":
            refuse("NULL", node, "Write IS NULL: no value is equal to NULL.")
        return refuse("constant", node, "Write a number, a text, a boolean or a date.")

    def condition(self, node: Any) -> Expression:
        node = _inside(node)
        kind = _kind(node)
        if kind in {"And", "Or"}:
            left, right = self.condition(node.this), self.condition(node.expression)
            return left & right if kind == "And" else left | right
        if kind == "Not":
            return ~self.condition(node.this)
        if kind in _COMPARED:
            left, right = self.operand(node.this), self.operand(node.expression)
            if not isinstance(left, Expression) and not isinstance(right, Expression):
                refuse("constant condition", node, "Leave it out, or compare a column.")
            found = _COMPARED[kind](left, right)
            assert isinstance(found, Expression)  # noqa: S101 - one side is one
            return found
        if kind == "Is":
            return self._known(node)
        if kind == "Between":
            self._only(node, "this low high")
            inner = self.value(node.this)
            low, high = self.operand(node.args["low"]), self.operand(node.args["high"])
            between: Expression = (inner >= low) & (inner <= high)
            return between
        if kind == "In":
            self._only(node, "this expressions")
            inner = self.value(node.this)
            return inner.isin([self.constant(_inside(one)) for one in node.expressions])
        if kind in {"Boolean", "Literal"}:
            refuse("constant condition", node, "Leave it out, or compare a column.")
        return self.value(node)

    def _case(self, node: Any) -> Expression:
        self._only(node, "this ifs default")
        if node.args.get("default") is None:
            refuse("CASE without ELSE", node, "Add ELSE 0 or another value.")
        subject = None if node.this is None else self.value(node.this)
        found: Any = self.operand(node.args["default"])
        for one in reversed(node.args["ifs"]):
            self._only(one, "this true")
            if subject is None:
                condition = self.condition(one.this)
            else:
                condition = subject == self.constant(_inside(one.this))
            found = when(condition).then(self.operand(one.args["true"])).otherwise(found)
        assert isinstance(found, Expression)  # noqa: S101 - a CASE has at least one WHEN
        return found

    def _part(self, node: Any) -> Expression:
        self._only(node, "this expression")
        part = str(node.this).lower()
        if part not in _PARTS:
            refuse("date part", node, f"Use one of {', '.join(_PARTS).upper()}.")
        found = getattr(self.value(node.expression), part)()
        assert isinstance(found, Expression)  # noqa: S101 - all parts are
        return found

    def _period(self, node: Any) -> Expression:
        self._only(node, "this unit")
        unit = node.args.get("unit")
        period = "" if unit is None else str(unit.name).lower()
        if period not in _PERIODS:
            refuse("date part", node, f"Use DATE_TRUNC with one of {', '.join(_PERIODS)}.")
        return self.value(node.this).truncate(cast("Any", period))

    def _date(self, node: Any) -> dt.date:
        self._only(node, "this to")
        inner, kind = _inside(node.this), str(node.args.get("to")).upper()
        if _kind(inner) == "Literal" and inner.is_string and kind in {"DATE", "TIMESTAMP"}:
            try:
                if kind == "DATE":
                    return dt.date.fromisoformat(inner.this)
                return dt.datetime.fromisoformat(inner.this)
            except ValueError:
                refuse("date", node, "Write DATE '2026-01-31'.")
        return refuse("CAST", node, "Declare the column with the type that you need.")

    # ── Columns ──────────────────────────────────────────────────────────────────────────────────

    def _col(self, node: Any) -> Expression:
        self._only(node, "this table db catalog")
        if self._is_unit(node):
            refuse(
                "unit as a value", node, "The privacy unit is only counted: COUNT(DISTINCT ...)."
            )
        self._declared(node, must=True)
        return col(self._spelled(node))

    def _is_unit(self, node: Any) -> bool:
        """Whether it names whose a row is, and no declared value that is a part of that."""
        unit = self.spec.privacy_unit
        whose = [
            name
            for name in unit_columns(unit)
            if isinstance(unit, str) or name not in self.spec.schema
        ]
        named = _kind(node) == "Column" and _kind(node.this) == "Identifier"
        return named and any(_same(node.this, name) for name in whose)

    def _declared(self, node: Any, *, must: bool = False) -> bool:
        if _kind(node) != "Column" or _kind(node.this) != "Identifier":
            if must:
                refuse("unknown column", node, "Name a declared column.")
            return False
        for extra in ("db", "catalog"):
            if node.args.get(extra):
                refuse("unknown table", node, "Name a column, or the table and a column.")
        table = node.args.get("table")
        if table is not None and table.name.lower() not in {one.lower() for one in self.known}:
            refuse("unknown table", table, f"Columns are of {', '.join(sorted(self.known))}.")
        found = [name for name in self.spec.schema if _same(node.this, name)]
        if must and len(found) != 1:
            named = ", ".join(list(self.spec.schema)[:20])
            refuse("unknown column", node, f"Declared are {named}.")
        return len(found) == 1

    def _spelled(self, node: Any) -> str:
        return next(name for name in self.spec.schema if _same(node.this, name))

    def _planned(self, queries: Sequence[Query]) -> None:
        """What the declared types do not allow is refused here, before a budget is named."""
        plan_release(queries, setting=self.spec, budget=budget(epsilon=1))


# ── Nodes ────────────────────────────────────────────────────────────────────────────────────────

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": lambda a, b: a == b,
    "NEQ": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LTE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GTE": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
}
_CONDITIONS = {*_COMPARED, "And", "Or", "Not", "Between", "In", "Is"}


def _inside(node: Any) -> Any:
    while _kind(node) == "Paren":
        node = node.this
    return node


def _same(identifier: Any, name: str) -> bool:
    """Quoted names are exact, others have no case."""
    if identifier.args.get("quoted"):
        return bool(identifier.name == name)
    return bool(identifier.name.lower() == name.lower())


def _aggregates() -> tuple[type, ...]:
    from sqlglot import exp  # noqa: PLC0415 - optional, and only here

    return (exp.AggFunc, exp.WithinGroup)


def _aggregate(node: Any) -> bool:
    return node.find(*_aggregates()) is not None


def _function(node: Any) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - optional, and only here

    return isinstance(node, exp.Func)


def _is_one(node: Any) -> bool:
    return _kind(node) == "Literal" and not node.is_string and node.this in ("1.0", "1.")


def _spoken(node: Any) -> str:
    while _kind(node) == "Filter":
        node = node.this
    inner = node.this if _kind(node) == "WithinGroup" else node
    return str(inner.sql_name()).lower() if hasattr(inner, "sql_name") else "value"


def _number(node: Any) -> int | float | Fraction:
    text = node.this
    if len(text) > 60:
        refuse("number", node, "Write at most 60 digits.")
    if text.isdigit():
        return int(text)
    try:
        value = float(text)
    except ValueError:
        refuse("number", node, "Write digits, such as 12.5.")
    if not math.isfinite(value):
        refuse("number", node, "Write a number that a double holds.")
    exact = Fraction(text)
    return value if Fraction(repr(value)) == exact else exact


def _numbers(node: Any, *given: object) -> None:
    if any(isinstance(one, str | bool | dt.date) for one in given):
        refuse("text arithmetic", node, "Add numbers and numeric columns.")


def _built(make: Callable[..., Query], *given: Any, **more: Any) -> Query:
    return make(*given, **more)
