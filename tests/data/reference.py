"""The same integers in plain Python, one value at a time, with fractions: slow and obvious."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
from collections import defaultdict
from fractions import Fraction

from discreet.data._integer_ops import (
    CodeBin,
    CodeBinary,
    CodeClip,
    CodeConst,
    CodeDivide,
    CodePick,
    CodeRef,
)
from discreet.data.schema import BooleanColumn, CategoryColumn, DateColumn, NumericColumn
from discreet.data.unit import CompositeUnit

PRIME = 2**31 - 1


def encode(value, column):
    """The code that a raw Python value must get."""
    if isinstance(value, str) and value == "":
        value = None
    if isinstance(value, float) and math.isnan(value):
        value = None
    if isinstance(column, CategoryColumn):
        return encode_category(value, column)
    if isinstance(column, DateColumn):
        return encode_date(value, column)
    if isinstance(value, str):
        value = parse(value.strip(" \t"), boolean=isinstance(column, BooleanColumn))
    if value is None:
        return column.missing
    if isinstance(column, BooleanColumn):
        return int(value) if value in (0, 1) else column.missing
    assert isinstance(column, NumericColumn)
    if value == math.inf:
        return column.upper
    if value == -math.inf:
        return column.lower
    if column.exponent:
        value = float(value)
    steps = math.floor(Fraction(value) / Fraction(2) ** column.exponent + Fraction(1, 2))
    return min(max(steps, column.lower), column.upper)


def parse(text, *, boolean):
    if boolean:
        words = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1}
        words |= {"false": 0, "f": 0, "no": 0, "n": 0, "0": 0}
        if text.lower() in words:
            return words[text.lower()]
    if re.fullmatch("[+-]?[0-9]{1,38}", text):
        return int(text)
    if re.fullmatch("[+-]?(inf|infinity)", text.lower()):
        return float(text)
    if not re.fullmatch(r"[-0-9.eE+]+", text) or re.search("[eE].{5,}", text):
        return None
    if re.search(r"[eE][+-]?[0-9]{4,}", text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def encode_category(value, column):
    if value is None:
        return column.missing
    if isinstance(column.categories[0], int):
        if isinstance(value, str):
            if value.strip(" \t") == "":
                return column.missing
            value = parse(value.strip(" \t"), boolean=False)
        if value is None or value in (math.inf, -math.inf) or value != int(value):
            return column.unknown
        value = int(value)
    return column.categories.index(value) if value in column.categories else column.unknown


def encode_date(value, column):
    if isinstance(value, str):
        value = value.strip(" \t").removesuffix("Z")
        try:
            if len(value) == 10:
                value = dt.datetime.strptime(value, "%Y-%m-%d")  # noqa: DTZ007
            else:  # fromisoformat takes any separator
                value = dt.datetime.fromisoformat(value) if value[10:11] in ("T", " ") else None
        except ValueError:
            value = None
    if value is None:
        return column.missing
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    days = value.toordinal() - dt.date(1970, 1, 1).toordinal()
    code = days if column.step == "day" else 24 * days + value.hour
    return code if column.lower <= code <= column.upper else column.missing


def evaluate(code, row):
    match code:
        case CodeRef(column):
            return row[column]
        case CodeConst(value):
            return value
        case CodeDivide(left, right, zero):
            a, b = evaluate(left, row), evaluate(right, row)
            return a // b if b else zero
        case CodeClip(inner, lower, upper):
            return min(max(evaluate(inner, row), lower), upper)
        case CodeBin(inner, edges):
            return sum(edge <= evaluate(inner, row) for edge in edges)
        case CodePick(inner, first, table):
            return table[evaluate(inner, row) - first]
        case CodeBinary(operator, left, right):
            a, b = evaluate(left, row), evaluate(right, row)
            results = {"+": a + b, "-": a - b, "*": a * b, "<": a < b, "<=": a <= b}
            results |= {"=": a == b, "and": a and b, "or": a or b}
            return int(results[operator])
    raise AssertionError


def word(key, purpose, i):
    digest = hashlib.sha256(f"{key}/{purpose}/{i}".encode()).digest()
    return 1 + int.from_bytes(digest[:16], "big") % (PRIME - 1)


def start(key, purpose, unit, group):
    number = unit
    if isinstance(unit, str):
        number = int(unit) if re.fullmatch("0|-?[1-9][0-9]{0,18}", unit) else 2**64
        if not -(2**63) <= number < 2**63:
            digest = hashlib.md5(unit.encode()).digest()
            number = int.from_bytes(digest[8:], "little") >> 1
    limbs = [number % 2**31, number // 2**31 % 2**31, number // 2**62 % 4]
    if purpose == "rows in group":
        limbs += [group % 2**31, group // 2**31 % 2**31, group // 2**62 % 4]
    state = sum(limb * word(key, purpose, i) for i, limb in enumerate(limbs)) % PRIME
    for i in (6, 7):
        state = pow(state + word(key, purpose, i), 5, PRIME)
    return state


def choose(items, *, limit, offset):
    """``limit`` of the sorted items, evenly spaced."""
    items = sorted(items)
    n = len(items)
    if n <= limit:
        return items
    return [item for i, item in enumerate(items) if (i * limit + offset % n) % n < limit]


def owner(raw):
    """One column's part of whose a row is; None if it is nobody's."""
    if isinstance(raw, float):
        return int(raw) if math.isfinite(raw) and raw == int(raw) else None
    return None if raw == "" else raw


def collect(program, rows, *, key):
    """``{name: [integers]}`` for rows given as dictionaries of raw values."""
    cells = None if program.cells is None else list(program.cells)
    by_unit = defaultdict(list)
    for i, raw in enumerate(rows):
        owners = [owner(raw[name]) for name in program.unit_columns]
        if None in owners:
            continue
        row = {name: encode(raw[name], column) for name, column in program.columns}
        bounds = dict(program.columns)
        if any(not bounds[n].lower <= row[n] <= bounds[n].upper for n in program.known):
            continue
        unit = owners[0] if isinstance(program.unit, str) else i
        if isinstance(program.unit, CompositeUnit):
            unit = "".join(f"{len(str(one).encode())}:{one}" for one in owners)
            if program.unit_value is not None:
                unit += str(evaluate(program.unit_value, row))
        group = evaluate(program.index, row)
        if program.where is not None and evaluate(program.where, row) != 1:
            continue
        if cells is not None:
            if group not in cells and not program.rest:
                continue
            group = cells.index(group) if group in cells else len(cells)
        by_unit[unit].append((group, *(evaluate(v, row) for v in program.values)))
    table = {name: [0] * program.size for name in program.aggregates}
    for unit, mine in by_unit.items():
        add(program, table, limited(program.limits, mine, unit=unit, key=key))
    return table


def limited(limits, kept, *, unit, key):
    """The rows of one unit that count."""
    if limits.max_groups_per_unit is not None:
        groups = {row[0] for row in kept}
        offset = start(key, "groups", unit, 0)
        groups = choose(groups, limit=limits.max_groups_per_unit, offset=offset)
        kept = [row for row in kept if row[0] in groups]
    if limits.max_rows_per_unit_per_group is not None:
        parts = defaultdict(list)
        for row in kept:
            parts[row[0]].append(row)
        kept = []
        for group, part in parts.items():
            offset = start(key, "rows in group", unit, group)
            kept += choose(part, limit=limits.max_rows_per_unit_per_group, offset=offset)
    if limits.max_rows_per_unit is not None:
        offset = start(key, "rows", unit, 0)
        kept = choose(kept, limit=limits.max_rows_per_unit, offset=offset)
    return kept


def add(program, table, kept):
    place = 0
    for name, aggregate in program.aggregates.items():
        if aggregate.kind == "units":
            for group in {row[0] for row in kept}:
                table[name][group] += 1
        elif aggregate.kind == "count":
            for row in kept:
                table[name][row[0]] += 1
        else:
            factors = program.sums[place].factors
            place += 1
            for row in kept:
                table[name][row[0]] += math.prod(row[1 + f] for f in factors)
