"""From the fields of a form to a question in the words of a release file, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.server.schemas import ColumnInfo, TableInfo
from discreet.spec.table import current_words

Fields: TypeAlias = Mapping[str, Sequence[str]]
CONDITIONS = 3
"""Conditions that a form has room for."""
TESTS = {
    "is": "is",
    "is_not": "is not",
    "in": "is one of",
    "at_least": "is at least",
    "above": "is above",
    "at_most": "is at most",
    "below": "is below",
}
WORKLOADS = {
    "all": "all ranges alike",
    "points": "single values",
    "short": "short ranges",
    "long": "long ranges",
    "prefixes": "everything up to a value",
}
METHODS = {"": "the better one", "tree": "tree, with intervals", "exponential": "by rank"}
LIMITS = {
    "max_rows_per_unit": "Rows of one unit, at most",
    "max_groups_per_unit": "Groups with one unit, at most",
    "max_rows_per_unit_per_group": "Rows of one unit in a group, at most",
}
_SENT = {
    "max_rows_per_unit": "rows_per_unit",
    "max_groups_per_unit": "groups_per_unit",
    "max_rows_per_unit_per_group": "rows_per_unit_and_group",
}
"""What the limits are called where a table is described."""
_SIMPLE = ("name", "expected_rows", "method", "workload", "delta", "within", *LIMITS)
_SEVERAL = ("edges", "q")
_EXACT = 1 << 53
"""Whole numbers below this are exact as doubles."""
_FEW = 200
_NUMBERS = ("integer", "real")
_ORDERED = (*_NUMBERS, "date")
_LISTED = ("category", "boolean")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticKind:
    """A kind of question: its words, the columns it is of, and which fields it has."""

    words: str
    of: tuple[str, ...] = ()
    """Kinds of columns it can be of; none, if it is of no column."""
    fields: tuple[str, ...] = ("by", "where")


KINDS: Mapping[str, StatisticKind] = {
    "count": StatisticKind(words="Number of rows"),
    "units": StatisticKind(words="Number of units (people)"),
    "sum": StatisticKind(words="Sum", of=_NUMBERS),
    "mean": StatisticKind(words="Mean", of=_NUMBERS, fields=("by", "where", "expected_rows")),
    "variance": StatisticKind(
        words="Variance", of=_NUMBERS, fields=("by", "where", "expected_rows")
    ),
    "covariance": StatisticKind(
        words="Covariance", of=_NUMBERS, fields=("also", "by", "where", "expected_rows")
    ),
    "median": StatisticKind(
        words="Median", of=_NUMBERS, fields=("by", "where", "expected_rows", "bins", "method")
    ),
    "quantiles": StatisticKind(
        words="Quantiles",
        of=_NUMBERS,
        fields=("q", "by", "where", "expected_rows", "bins", "method"),
    ),
    "std": StatisticKind(
        words="Standard deviation", of=_NUMBERS, fields=("by", "where", "expected_rows")
    ),
    "correlation": StatisticKind(
        words="Correlation", of=_NUMBERS, fields=("also", "by", "where", "expected_rows")
    ),
    "ratio": StatisticKind(
        words="Ratio of two sums", of=_NUMBERS, fields=("also", "by", "where", "expected_rows")
    ),
    "weighted_mean": StatisticKind(
        words="Weighted mean", of=_NUMBERS, fields=("also", "by", "where", "expected_rows")
    ),
    "minimum": StatisticKind(
        words="Minimum (0.001 quantile)",
        of=_NUMBERS,
        fields=("by", "where", "expected_rows", "bins", "method"),
    ),
    "maximum": StatisticKind(
        words="Maximum (0.999 quantile)",
        of=_NUMBERS,
        fields=("by", "where", "expected_rows", "bins", "method"),
    ),
    "histogram": StatisticKind(
        words="Histogram", of=(*_LISTED, *_ORDERED), fields=("edges", "where")
    ),
    "ranges": StatisticKind(
        words="All ranges",
        of=(*_ORDERED, "category"),
        fields=("other", "workload", "bins", "where"),
    ),
}
MEASURES = {"epsilon": ("epsilon", "0.001", "10"), "rho": ("rho", "0.00001", "1")}
"""What an amount is called, and the ends of its slider."""
FIRST: Fields = {"kind": ["count"], "measure": ["epsilon"], "amount": ["0.1"], "aim": ["amount"]}


def first(fields: Fields, name: str, default: str = "") -> str:
    """The only value of a field."""
    found = fields.get(name) or [default]
    return found[0].strip()


def kind_of(fields: Fields) -> StatisticKind:
    """The kind that is asked for; a count, if it is none."""
    return KINDS.get(first(fields, "kind"), KINDS["count"])


def listed(column: ColumnInfo) -> tuple[str, ...]:
    """The values that a condition can choose from, if there are few."""
    if column.kind == "boolean":
        return ("true", "false")
    return tuple(map(str, column.levels)) if len(column.levels) <= _FEW else ()


def columns_for(kind: StatisticKind, columns: Sequence[ColumnInfo]) -> list[ColumnInfo]:
    """The columns that such a question can be of."""
    return [column for column in columns if column.kind in kind.of]


def declared_limits(table: TableInfo) -> dict[str, int | None]:
    """The contribution limits of a table, by the names of the fields."""
    return {name: getattr(table, sent) for name, sent in _SENT.items()}


def query_of_form(fields: Fields, columns: Sequence[ColumnInfo]) -> dict[str, Any]:
    """The question of a form; errors name the field."""
    name = first(fields, "kind")
    if name not in KINDS:
        raise InvalidArgument("kind: choose what to ask.")
    kind, named = KINDS[name], {column.name: column for column in columns}
    found: dict[str, Any] = {"kind": name}
    if title := first(fields, "name"):
        found["name"] = title
    if kind.of:
        found["of"] = _of(fields, kind, named)
    for field, read in _READ.items():
        if field in kind.fields and (value := read(fields, named)) not in (None, []):
            found[field] = value
    for limit in LIMITS:
        if text := first(fields, limit):
            found[limit] = whole_number(text, limit)
    return {**found, **_amount(fields)}


def kept_queries(fields: Fields) -> list[Any]:
    """The questions that were added before, which the form carries along as JSON."""
    text = first(fields, "kept")
    if not text:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidArgument("kept: must be a list of questions.")
    return found


def query_words(asked: Mapping[str, Any]) -> str:
    """A question in a few words, for a list of them."""
    title = asked.get("name")
    if title:
        return str(title)
    listed, by = _names(asked.get("of")), _names(asked.get("by"))
    kind = KINDS.get(str(asked.get("kind")), KINDS["count"]).words
    where = _conditions(asked.get("where"))
    return "".join(
        [
            kind,
            f" of {listed}" if listed else "",
            f" by {by}" if by else "",
            f", where {where}" if where else "",
        ]
    )


def _names(given: object) -> str:
    """Columns by their names, as far as they have some."""
    several = given if isinstance(given, list) else [] if given is None else [given]
    names = [one.get("column", "…") if isinstance(one, Mapping) else one for one in several]
    return ", ".join(map(str, names))


def _conditions(given: object) -> str:
    """Conditions in words, as far as they have some."""
    several = given if isinstance(given, list) else [] if given is None else [given]
    found = []
    for one in several:
        known = one if isinstance(one, Mapping) else {}
        tests = [name for name in TESTS if name in known]
        words = [f"{known.get('column')} {TESTS[name]} {_told(known[name])}" for name in tests]
        found += words or ["…"]
    return " and ".join(found)


def group_counts(asked: Mapping[str, Any], columns: Sequence[ColumnInfo]) -> list[int]:
    """How many groups there are by each of its columns."""
    levels = {column.name: len(column.levels) or 2 for column in columns}  # true and false are two
    return [
        levels[one] if isinstance(one, str) else len(one["cut"]) + 1 for one in asked.get("by", ())
    ]


def _of(fields: Fields, kind: StatisticKind, columns: Mapping[str, ColumnInfo]) -> str | list[str]:
    one = _column(fields, "of", columns)
    if "also" in kind.fields:
        return [one, _column(fields, "also", columns)]
    if "other" in kind.fields and first(fields, "other"):
        return [one, _column(fields, "other", columns)]
    return one


def _column(fields: Fields, field: str, columns: Mapping[str, ColumnInfo]) -> str:
    name = first(fields, field)
    if name not in columns:
        raise InvalidArgument(f"{field}: choose a column.")
    return name


def _by(fields: Fields, columns: Mapping[str, ColumnInfo]) -> list[Any]:
    found: list[Any] = [name for name in fields.get("by", ()) if name in columns]
    if cut := first(fields, "cut"):
        name = _column(fields, "cut", columns)
        points = _list(first(fields, "points"), columns[name], "points")
        if not points:
            raise InvalidArgument(f"points: say where {cut} is cut, such as 18, 65.")
        found.append({"column": name, "cut": points})
    return found


def _where(fields: Fields, columns: Mapping[str, ColumnInfo]) -> list[dict[str, Any]]:
    found = []
    for i in range(1, CONDITIONS + 1):
        name, test = first(fields, f"where_column_{i}"), first(fields, f"where_test_{i}", "is")
        if not name:
            continue
        if name not in columns or test not in TESTS:
            raise InvalidArgument(f"condition {i}: choose a column and a test.")
        text = first(fields, f"where_value_{i}")
        if not text:
            continue  # still being written
        where = f"condition {i}"
        value: Any = (
            _list(text, columns[name], where) if test == "in" else typed(text, columns[name], where)
        )
        found.append({"column": name, test: value})
    return found


def _edges(fields: Fields, columns: Mapping[str, ColumnInfo]) -> list[Any] | None:
    name = first(fields, "of")
    text = first(fields, "edges")
    if not text or name not in columns or columns[name].kind in _LISTED:
        return None
    return _list(text, columns[name], "edges")


def _bins(fields: Fields, columns: Mapping[str, ColumnInfo]) -> int | dict[str, int] | None:
    text = first(fields, "bins")
    if not text:
        return None
    bins = whole_number(text, "bins")
    other = first(fields, "other")
    if first(fields, "kind") != "ranges":
        return bins
    # Rectangles: only real numbers must be cut, each column by itself.
    chosen = [name for name in (first(fields, "of"), other) if name]
    real = {name: bins for name in chosen if name in columns and columns[name].kind == "real"}
    return (real or None) if other else bins


def _q(fields: Fields, _: Mapping[str, ColumnInfo]) -> list[float]:
    texts = _texts(first(fields, "q", "0.25, 0.5, 0.75"))
    return [number(text, "q") for text in texts]


def _rows(fields: Fields, _: Mapping[str, ColumnInfo]) -> int | None:
    text = first(fields, "expected_rows")
    return whole_number(text, "expected_rows") if text else None


def _choice(field: str, allowed: Mapping[str, str]) -> Callable[..., str | None]:
    def read(fields: Fields, _: Mapping[str, ColumnInfo]) -> str | None:
        text = first(fields, field)
        if text and text not in allowed:
            raise InvalidArgument(f"{field} must be one of {', '.join(filter(None, allowed))}.")
        return text or None

    return read


_READ: Mapping[str, Callable[[Fields, Mapping[str, ColumnInfo]], Any]] = {
    "by": _by,
    "where": _where,
    "edges": _edges,
    "q": _q,
    "expected_rows": _rows,
    "bins": _bins,
    "method": _choice("method", METHODS),
    "workload": _choice("workload", WORKLOADS),
}


def _amount(fields: Fields) -> dict[str, float]:
    delta = first(fields, "delta")
    also = {"delta": number(delta, "delta")} if delta else {}
    if first(fields, "aim") == "within":
        return {"within": number(first(fields, "within"), "within"), **also}
    measure = first(fields, "measure", "epsilon")
    if measure not in MEASURES:
        raise InvalidArgument("measure must be epsilon or rho.")
    if measure == "rho":
        also = {}
    return {measure: number(first(fields, "amount"), measure), **also}


def typed(text: str, column: ColumnInfo, where: str) -> Any:
    """What was typed as a value of a column."""
    match column.kind:
        case "integer":
            return whole_number(text, where)
        case "real":
            return number(text, where)
        case "boolean":
            if text.lower() not in ("true", "false"):
                raise InvalidArgument(f"{where}: write true or false.")
            return text.lower() == "true"
        case "category":
            levels = {str(level): level for level in column.levels}
            return levels.get(text, text)
        case "date":
            return {"date": text}
        case _:
            return text


def _list(text: str, column: ColumnInfo, where: str) -> list[Any]:
    return [typed(one, column, where) for one in _texts(text)]


def _texts(text: str) -> list[str]:
    return [one.strip() for one in text.replace(";", ",").split(",") if one.strip()]


def number(text: str, where: str) -> float:
    """A number; thousands may be set apart by blanks or underscores."""
    plain = text.replace("\u202f", "").replace("\u00a0", "").replace(" ", "")
    try:
        found = float(plain)
    except ValueError:
        raise InvalidArgument(f"{where}: write a number, such as 0.5.") from None
    return int(found) if found.is_integer() and abs(found) < _EXACT else found


def whole_number(text: str, where: str) -> int:
    """A whole number."""
    found = number(text, where)
    if not isinstance(found, int):
        raise InvalidArgument(f"{where}: write a whole number.")
    return found


def fields_of(asked: Mapping[str, Any]) -> Fields:
    """The fields of a form that asks a question: the inverse of ``question``.

    A script may ask what no form can; then the form is a new one.
    """
    try:
        return _fields_of(asked)
    except (AttributeError, LookupError, StopIteration, TypeError):
        return FIRST


def _fields_of(asked: Mapping[str, Any]) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {"kind": [str(asked.get("kind", "count"))], "aim": ["amount"]}
    asked = current_words(asked, (*_SIMPLE, *_SEVERAL))
    made |= {name: [str(asked[name])] for name in _SIMPLE if name in asked}
    made |= {name: [_told(asked[name])] for name in _SEVERAL if name in asked}
    of = asked.get("of")
    if isinstance(of, list):
        made |= {"of": [str(of[0])], "also": [str(of[-1])], "other": [str(of[-1])]}
    elif of is not None:
        made["of"] = [str(of)]
    bins = asked.get("bins")
    if bins is not None:
        made["bins"] = [str(next(iter(bins.values())) if isinstance(bins, Mapping) else bins)]
    for one in asked.get("by", ()):
        if isinstance(one, str):
            made.setdefault("by", []).append(one)
        else:
            made |= {"cut": [one["column"]], "points": [_told(one["cut"])]}
    for i, one in enumerate(asked.get("where", ()), 1):
        test = next(name for name in one if name != "column")
        text = _told(one[test])
        made |= {
            f"where_column_{i}": [one["column"]],
            f"where_test_{i}": [test],
            f"where_value_{i}": [text],
        }
    for measure in MEASURES:
        if measure in asked:
            return {**made, "measure": [measure], "amount": [str(asked[measure])]}
    return {**made, "aim": ["within"]}


def _told(value: object) -> str:
    """A value, or several, as one would type them."""
    match value:
        case list():
            return ", ".join(map(_told, value))
        case {"date": str(text)}:
            return text
        case _:
            return str(value)
