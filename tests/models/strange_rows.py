"""Rows that one strange person may bring: nothing of them may change anybody else's."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd


class Hostile:
    """Whatever is asked of it fails, in words that are a secret."""

    def _fail(self, *_: object) -> Any:
        raise ValueError("secret")

    __str__ = __repr__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __hash__ = _fail
    __bool__ = __getitem__ = __array__ = __eq__ = _fail  # type: ignore[assignment]


class Unapproachable:
    """It has no attributes, and says so in words of its own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ZeroDivisionError("secret")


VALUES: dict[str, object] = {
    "none": None,
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "minus zero": -0.0,
    "largest": 1.7e308,
    "smallest": 5e-324,
    "text": "HIV positive",
    "number as text": "1",
    "empty": "",
    "zero byte": "a\0",
    "surrogate": "\ud800",
    "long": "x" * 100_000,
    "bytes": b"1",
    "huge": 10**5000,
    "2**63": 2**63,
    "decimal": Decimal("0.5"),
    "decimal nan": Decimal("sNaN"),
    "decimal huge": Decimal("1e999999"),
    "fraction": Fraction(1, 3),
    "true": True,
    "float32": np.float32(0.1),
    "long double": np.longdouble("1e4000"),
    "uint64": np.uint64(2**64 - 1),
    "complex": 1j,
    "date": dt.date(2020, 1, 1),
    "moment": np.datetime64("2020-01-01"),
    "duration": pd.Timedelta(30, "m"),
    "nat": pd.NaT,
    "na": pd.NA,
    "list": [1, 2],
    "array": np.zeros(2),
    "dict": {"a": 1},
    "hostile": Hostile(),
    "unapproachable": Unapproachable(),
}

ROWS: dict[str, object] = {
    "no row": None,
    "empty row": [],
    "short": [0.5],
    "wide": [0.5, 0.5, 0.5],
    "nested": [[0.5, 0.5]],
    "text row": "ab",
    "number row": 0.5,
    "dict row": {"a": 0.5, "b": 0.5},
    "set row": {0.1, 0.2},
    "array row": np.array([0.5, 0.5]),
    "flat array": np.array(None, dtype=object),
    "text array": np.array(["0.5", "0.5"]),
    "series": pd.Series([0.5, 0.5]),
    "hostile row": Hostile(),
    "unapproachable row": Unapproachable(),
}
