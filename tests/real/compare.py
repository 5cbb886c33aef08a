"""Ask a real table everything, and explain each difference from what pandas says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl

import discreet
from tests.real.catalog import RealTable
from tests.real.questions import Answers, Question, Rows, questions

EPSILON = 100
SURE = 1 - 1e-9
"""The confidence of intervals that a number without noise may not leave: some 5,000 of them."""
SOURCES = ("pandas", "polars", "csv", "parquet")


@dataclass(frozen=True, slots=True)
class Compared:
    """One number beside those of pandas, and what is wrong with it."""

    question: str
    key: tuple[object, ...]
    value: float
    declared: float
    raw: float
    width: float
    scale: float
    faults: tuple[str, ...]

    def __str__(self) -> str:
        told = f"{self.question} {self.key}: {self.value:g} ± {self.width:g}"
        return f"{told}; declared {self.declared:g}, raw {self.raw:g}: {'; '.join(self.faults)}"


def source(frame: pd.DataFrame, kind: str, folder: Path) -> Any:
    """The rows as a user would hand them over."""
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return folder / "rows.csv"
    if kind == "parquet":
        frame.to_parquet(folder / "rows.parquet", index=False)
        return folder / "rows.parquet"
    return frame if kind == "pandas" else pl.from_pandas(frame)


def compare(
    table: RealTable, kind: str, folder: Path, *, widths: bool = True
) -> Iterator[Compared]:
    """Open a table as this kind of source, ask, and compare each number."""
    frame = table.frame()
    limits = {} if table.unit is None else {"max_rows_per_unit": table.most}
    account = discreet.Ledger("memory://").account("real", limit=discreet.pure_dp(10**6))
    opened = discreet.table(
        source(frame, kind, folder),
        columns=dict(table.columns),
        privacy_unit=table.unit,
        account=account,
        **limits,
    )
    declared, raw = (Rows(table, frame, declared=one) for one in (True, False))
    for asked in questions(table, len(frame)):
        exact = asked.exact if not raw.dropped() else asked.limited
        if exact is None:
            continue
        (made,) = opened.release([asked.query], epsilon=EPSILON)
        yield from _compare(asked, made, exact(declared), asked.exact(raw), declared, widths)


def _compare(
    asked: Question,
    made: discreet.Release,
    expected: Answers,
    naive: Answers,
    declared: Rows,
    widths: bool,
) -> Iterator[Compared]:
    widest = made.interval(SURE)
    usual = made.interval() if widths else widest
    values = made.value
    keys = list(made.keys)
    if not made.key_columns:
        keys, values = [()], (values,)
        widest, usual = [(end,) for end in widest], [(end,) for end in usual]
    if asked.name == "histogram":  # pandas has no names for them
        keys = [(place,) for place in range(len(keys))]
    assert set(expected) <= set(keys), (asked.name, set(expected) - set(keys))
    drawn = _drawn(asked, declared)
    for place, key in enumerate(keys):
        exact, plain = (answers.get(key, asked.empty) for answers in (expected, naive))
        reach = 1e-9 * asked.scale + drawn
        low, high = widest[0][place] - reach, widest[1][place] + reach
        faults = []
        if not low <= exact <= high:
            faults.append("neither noise nor declaration explain it")
        if not low <= plain <= high and not _explained(asked, made, declared):
            faults.append("the answer does not say why")
        yield Compared(
            question=asked.name,
            key=key,
            value=values[place],
            declared=exact,
            raw=plain,
            width=(usual[1][place] - usual[0][place]) / 2,
            scale=asked.scale,
            faults=tuple(faults) if not math.isnan(exact) else (),
        )


def _drawn(asked: Question, declared: Rows) -> float:
    """How far the rows that a limit draws may take a sum or a mean from what is expected."""
    if asked.name not in ("sum", "mean", "mean of y") or not declared.dropped():
        return 0
    (column,) = asked.uses
    return 7 * declared.spread(column) / (1 if asked.name == "sum" else declared.kept(column))


def _explained(asked: Question, made: discreet.Release, declared: Rows) -> bool:
    """Whether the answer says what changed the values of the columns that it uses."""
    told = "; ".join(made.about)
    changes = declared.changes(asked.uses)
    return bool(changes) and all(one in told for one in changes)
