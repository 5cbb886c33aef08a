"""People who do not exist: the data behind every recorded number, and how they are declared."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import NeighboringRelation
from discreet.data.program import ContributionLimits
from discreet.data.schema import ColumnSpec
from discreet.ledger.account import Account
from discreet.query._release_plan import TableSpec
from discreet.tables.table import Table

FIXTURES = Path(__file__).parent / "fixtures"
PLACES = ("north", "south", "east")
HEADER = ("who", "age", "place", "pay", "day", "well", "town", "level")
COLUMNS: Mapping[str, ColumnSpec] = {
    # What missing meant in version 0.1 where nothing was said: the lower bound, the first category.
    "age": discreet.integer(lower=0, upper=120, missing=0),
    "place": discreet.category(PLACES, include_other=False, missing=PLACES[0]),
    "pay": discreet.real(lower=0, upper=1024, granularity=0.25, missing=0),
    "day": discreet.date(
        lower=dt.date(2026, 1, 1), upper=dt.date(2026, 1, 31), missing=dt.date(2026, 1, 1)
    ),
    "well": discreet.boolean(missing=False),
    "town": discreet.text(),
    "level": discreet.category(["strict", "open"]),
}
SETTINGS: Mapping[str, TableSpec] = {
    "people": TableSpec(
        schema=COLUMNS, privacy_unit="who", limits=ContributionLimits(max_rows_per_unit=3)
    ),
    "groups": TableSpec(
        schema=COLUMNS,
        privacy_unit="who",
        limits=ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=2),
    ),
    "rows": TableSpec(schema=COLUMNS, privacy_unit=None),
    "replaced": TableSpec(
        schema=COLUMNS,
        privacy_unit="who",
        limits=ContributionLimits(max_rows_per_unit=2),
        relation=NeighboringRelation.REPLACE_ONE,
    ),
}


def records(many: int = 240) -> list[tuple[Any, ...]]:
    """Rows in the order of the header; some people have several."""
    draw = random.Random(7)
    found: list[tuple[Any, ...]] = []
    for _ in range(many):
        who = f"p{draw.randrange(many // 2)}"
        age, place = draw.randrange(0, 100), draw.choice(PLACES)
        pay, day = draw.randrange(0, 4000) / 4, dt.date(2026, 1, 1 + draw.randrange(31))
        town = draw.choice(["Aa", "Bergen", "Celle", "Delft"])
        level = draw.choice(["strict", "open"])
        found.append((who, age, place, pay, day.isoformat(), draw.random() < 0.6, town, level))
    return found


def write_rows(path: Path, many: int = 240) -> Path:
    """The rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(
            [str(cell).lower() if isinstance(cell, bool) else cell for cell in row]
            for row in records(many)
        )
    return path


def opened(path: Path, account: Account | None = None, setting: str = "people") -> Table:
    """The table of these rows."""
    chosen = SETTINGS[setting]
    return discreet.table(
        path,
        columns=COLUMNS,
        privacy_unit=chosen.privacy_unit,
        max_rows_per_unit=chosen.limits.max_rows_per_unit,
        max_groups_per_unit=chosen.limits.max_groups_per_unit,
        max_rows_per_unit_per_group=chosen.limits.max_rows_per_unit_per_group,
        relation=chosen.relation,
        account=account,
    )


def plain(value: object) -> Any:
    """What JSON holds, to the last bit: doubles as hexadecimal text, rationals as text."""
    match value:
        case None | bool() | str():
            return value
        case np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value).hex()
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case bytes():
            return value.hex()
        case dt.date():
            return value.isoformat()
        case np.ndarray():
            return plain(value.tolist())
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    raise TypeError(type(value).__name__)


def rounded(value: object, digits: int = 10) -> Any:
    """The same with doubles to so many significant digits: linear algebra differs in the last."""
    match value:
        case float() | np.floating():
            return float(f"{float(value):.{digits}g}")
        case np.ndarray():
            return rounded(value.tolist(), digits)
        case Mapping():
            return {str(name): rounded(one, digits) for name, one in value.items()}
        case list() | tuple():
            return [rounded(one, digits) for one in value]
    return plain(value)


def same(found: object, recorded: object) -> bool:
    """Whether two records agree: doubles to nine digits, all else exactly."""
    match found, recorded:
        case (float() | int(), float() | int()):
            return found == recorded or math.isclose(found, recorded, rel_tol=1e-9)
        case (str(), str()) if found.lstrip("-").startswith("0x") and "p" in found:
            return same(float.fromhex(found), float.fromhex(recorded))
        case (Mapping(), Mapping()):
            keys = found.keys() == recorded.keys()
            return keys and all(same(found[name], recorded[name]) for name in found)
        case (list(), list()):
            return len(found) == len(recorded) and all(map(same, found, recorded))
    return found == recorded


def read_json(name: str) -> Any:
    """A file of the fixtures."""
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))


def write_json(name: str, content: Mapping[str, Any]) -> None:
    """A file of the fixtures, one line for each entry."""
    lines = [
        f"{json.dumps(key)}: {json.dumps(content[key], separators=(',', ':'), sort_keys=True)}"
        for key in sorted(content)
    ]
    (FIXTURES / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
