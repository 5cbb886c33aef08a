"""People who each chose a level, and tables of them."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import polars as pl

import discreet
from discreet.core.relation import NeighboringRelation

LEVELS = {"strict": Fraction(1, 5), "open": 1}
COLUMNS = {
    "consent": discreet.category(["strict", "open"]),
    "x": discreet.integer(lower=-1, upper=3),
    "g": discreet.category(["a", "b"], include_other=False),
}
TYPES = {"who": pl.Int64, "consent": pl.String, "x": pl.Int64, "g": pl.String}


def frame(people):
    """Rows of people, each (name, level, rows)."""
    rows = [(who, level, x, g) for who, level, held in people for x, g in held]
    return pl.DataFrame(rows, schema=TYPES, orient="row")


def duck(rows):
    return duckdb.connect().from_arrow(rows.to_arrow())


def opened(
    people,
    ledger,
    *,
    relation=NeighboringRelation.ADD_REMOVE,
    privacy_unit="who",
    source=lambda rows: rows,
):
    limit = discreet.pure_dp(10**9, relation=relation)
    account = None if ledger is None else ledger.account(relation.name, limit=limit)
    source = source(frame(people))
    limits = {} if privacy_unit is None else {"privacy_unit": privacy_unit, "max_rows_per_unit": 2}
    return discreet.table(source, columns=COLUMNS, account=account, relation=relation, **limits)
