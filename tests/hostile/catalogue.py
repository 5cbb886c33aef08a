"""What one hostile person may bring, by name; and honest people of several shapes."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from tests.models.strange_rows import ROWS, VALUES, Hostile, Unapproachable

__all__ = ["CSV_LINES", "HONEST", "ROWS", "STRANGE", "TEXTS", "Odd", "fresh"]


class Odd(int):
    """A number that answers for itself."""

    def __lt__(self, other: object) -> bool:
        raise ValueError("secret")

    __gt__ = __le__ = __ge__ = __lt__


class Shouting(str):
    """A text that fails when it is asked for anything."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        raise ValueError("secret")

    def strip(self, *_: object) -> str:
        raise ValueError("secret")


def _payload(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return found


NUMBERS: dict[str, object] = {
    "nan with a payload": _payload(0x7FF8_0000_DEAD_BEEF),
    "negative nan": _payload(0xFFF8_0000_0000_0000),
    "signaling nan": _payload(0x7FF0_0000_0000_0001),
    "largest double": 1.7976931348623157e308,
    "minus largest double": -1.7976931348623157e308,
    "1e305": 1e305,
    "smallest normal": 2.2250738585072014e-308,
    "minus subnormal": -5e-324,
    "just below a half": 0.49999999999999994,
    "2**53": 2**53,
    "2**53 + 1": 2**53 + 1,
    "2**62": 2**62,
    "2**63 - 1": 2**63 - 1,
    "-2**63": -(2**63),
    "-2**63 - 1": -(2**63) - 1,
    "2**64": 2**64,
    "2**127": 2**127,
    "10**309": 10**309,
    "-10**400": -(10**400),
    "a double of 2**63": 2.0**63,
    "3.5 among integers": 3.5,
    "False": False,
    "int8": np.int8(-128),
    "uint8": np.uint8(255),
    "int64 least": np.int64(-(2**63)),
    "float16 inf": np.float16("inf"),
    "float32 nan": np.float32("nan"),
    "float64 inf": np.float64("inf"),
    "numpy bool": np.True_,
    "long double": np.longdouble(1) / 3,
    "complex nan": complex(math.nan, 1),
    "numpy complex": np.complex64(1),
    "decimal inf": Decimal("-Infinity"),
    "decimal of many digits": Decimal("1." + "0" * 60 + "1"),
    "tiny decimal": Decimal("1e-999999"),
    "decimal whole": Decimal("3.00"),
    "large fraction": Fraction(10**400 + 1, 3),
    "small fraction": Fraction(1, 10**400),
    "number that answers for itself": Odd(3),
    "array of one": np.array(3.0),
    "object array of one": np.array(None, dtype=object),
    "masked": np.ma.masked,
}

TEXTS: dict[str, object] = {
    "n/a": "n/a",
    "NaN as text": "NaN",
    "NULL as text": "NULL",
    "inf as text": "inf",
    "nul alone": "\0",
    "inner nul": "a\0b",
    "low surrogate": "x\udfff",
    "combining": "e\u0301\u0301\u0301",
    "composed": "\u00e9",
    "bidirectional": "\u202eabc\u202c",
    "zero width": "a\u200bb\ufeff",
    "non-character": "\uffff",
    "astral": "\U0010ffff",
    "quote": 'a"b',
    "apostrophe": "a'; DROP TABLE t; --",
    "backslash": "a\\",
    "delimiters": "a,b;c\td|e",
    "line breaks": "a\r\nb\rc\nd",
    "unit separator": "a\x1fb\x1e",
    "private use": "\ue000\uf8ff",
    "spaces": "  a  ",
    "upper case": "A",
    "number with a space": " 5",
    "leading zeros": "05",
    "full width digits": "\uff11\uff12",
    "arabic digits": "\u0661",
    "true as text": "true",
    "1 MB": "m" * 1_000_000,
    "every plane": "".join(map(chr, (0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF))),
    "every ASCII character": "".join(map(chr, range(1, 128))),
    "text that fails": Shouting("a"),
    "numpy text": np.str_("a"),
    "numpy bytes": np.bytes_(b"a"),
    "bytes that are no UTF-8": b"\xff\xfe",
    "bytearray": bytearray(b"a"),
}

OTHERS: dict[str, object] = {
    "date out of range": dt.date(9999, 12, 31),
    "first date": dt.date(1, 1, 1),
    "moment with a zone": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
    "moment without a zone": dt.datetime(1, 1, 1),  # noqa: DTZ001
    "time": dt.time(12),
    "long duration": dt.timedelta.max,
    "timestamp": pd.Timestamp("2262-04-11"),
    "timestamp with a zone": pd.Timestamp("2020-01-01", tz="Asia/Tokyo"),
    "period": pd.Period("2020-01", freq="M"),
    "interval": pd.Interval(0, 1),
    "not a date": np.datetime64("NaT"),
    "far year": np.datetime64(2**40, "Y"),
    "numpy duration": np.timedelta64(5, "ns"),
    "uuid": uuid.UUID(int=5),
    "a type": int,
    "ellipsis": ...,
    "not implemented": NotImplemented,
    "function": len,
    "empty tuple": (),
    "nested tuple": ((1,), (2,)),
    "set": {1},
    "frozen set": frozenset({1}),
    "object": object(),
    "generator": (i for i in ()),
    "void": np.void(b"ab"),
    "matrix": np.zeros((2, 2)),
    "frame": pd.DataFrame({"a": [1]}),
}

STRANGE: dict[str, object] = {**VALUES, **NUMBERS, **TEXTS, **OTHERS}
"""All values, each under what is strange about it."""

CSV_LINES: dict[str, bytes] = {
    "latin-1": b"{u},3,Z\xfcrich,5",
    "cut UTF-8": b"{u},3,\xc3,5",
    "surrogate": b"{u},3,\xed\xa0\x80,5",
    "extra fields": b"{u},3,a,5,6,7",
    "many fields": b"{u},3,a,5" + b",5" * 300,
    "short line": b"{u},3",
    "one field": b"{u}",
    "lone opening quote": b'{u},3,"a,5',
    "quote in the unit": b'"{u},3,a,5',
    "text behind a quote": b'{u},3,"a"b,5',
    "backslash": b'{u},3,"a\\",5',
    "three quotes": b'{u},3,""",5',
    "quotes within quotes": b'{u},3,"a""b",5',
    "NUL": b"{u},3,a\0,5",
    "bare CR": b"{u},3\r,a,5",
    "CR at the end": b"{u},3,a,5\r",
    "blank": b"",
    "CR alone": b"\r",
    "spaces": b"    ",
    "only commas": b",,,",
    "many commas": b"," * 200,
    "other delimiter": b"{u};3;a;5",
    "tabs": b"{u}\t3\ta\t5",
    "comment": b"# {u},3,a,5",
    "byte order mark": b"\xef\xbb\xbf{u},3,a,5",
    "UTF-16": "{u},3,a,5".encode("utf-16-le"),
    "long field": b"{u},3," + b"m" * 300_000 + b",5",
    "long number": b"{u}," + b"9" * 5000 + b",a,5",
    "header again": b"who,x,t,w",
    "spaces around": b" {u} , 3 , a , 5 ",
    "signs": b"{u},+-3,a,--5",
    "exponents": b"{u},1e400,a,1e-400",
    "hexadecimal": b"{u},0x10,a,1_000",
    "nan": b"{u},nan,NaN,-inf",
    "control characters": b"{u},3,\x01\x02\x1a,5",
    "vertical space": b"{u},3,a\x0b\x0cb,5",
    "next line": b"{u},3,a\xc2\x85b,5",
    "line separator": b"{u},3,a\xe2\x80\xa8b,5",
}
"""Lines of a CSV with the columns who, x, t, w; a unit takes the place of ``{u}``."""


def _uniform(draw: random.Random, many: int) -> list[float]:
    return [draw.uniform(0, 10) for _ in range(many)]


def _whole(draw: random.Random, many: int) -> list[int]:
    return [draw.randrange(11) for _ in range(many)]


def _alike(draw: random.Random, many: int) -> list[float]:
    return [draw.choice([0.0, 5.0, 10.0])] * many


def _edges(draw: random.Random, many: int) -> list[float]:
    return [draw.choice([0.0, 10.0]) for _ in range(many)]


def _skewed(draw: random.Random, many: int) -> list[float]:
    return [min(draw.expovariate(1.0), 10.0) for _ in range(many)]


def _mixed(draw: random.Random, many: int) -> list[Any]:
    return [draw.choice([draw.randrange(11), draw.uniform(0, 10)]) for _ in range(many)]


def _missing(draw: random.Random, many: int) -> list[Any]:
    return [None if draw.random() < 0.3 else draw.uniform(0, 10) for _ in range(many)]


def _nans(draw: random.Random, many: int) -> list[float]:
    return [math.nan if draw.random() < 0.3 else draw.uniform(0, 10) for _ in range(many)]


HONEST = {
    "uniform": _uniform,
    "whole": _whole,
    "alike": _alike,
    "at the bounds": _edges,
    "skewed": _skewed,
    "integers and doubles": _mixed,
    "with gaps": _missing,
    "with NaN": _nans,
}
"""Numbers between 0 and 10, as honest people have them."""


def fresh(draw: random.Random) -> tuple[str, object]:
    """A value that is in no list: a random double, integer, text or decimal."""
    kind = draw.randrange(6)
    if kind == 0:
        return "random double", _payload(draw.getrandbits(64))
    if kind == 1:
        return "random integer", draw.getrandbits(draw.choice([8, 53, 62, 63, 64, 128, 2000])) * (
            draw.choice([1, -1])
        )
    if kind == 2:
        points = [draw.randrange(0x110000) for _ in range(draw.randrange(1, 6))]
        return "random text", "".join(map(chr, points))
    if kind == 3:
        return "random decimal", Decimal(draw.getrandbits(64)).scaleb(draw.randrange(-80, 80))
    if kind == 4:
        return "random bytes", draw.randbytes(draw.randrange(6))
    scalar = draw.choice([np.float16, np.float32, np.float64, np.longdouble])
    return "random NumPy scalar", scalar(draw.uniform(-100, 100))


def strange(draw: random.Random) -> tuple[str, object]:
    """One hostile value with its name: mostly of the list, sometimes a fresh one."""
    if draw.random() < 0.15:
        return fresh(draw)
    name = draw.choice(_NAMES)
    value = STRANGE[name]
    # What is used up, or changed, by one reader must be new for the next.
    if name == "hostile":
        return name, Hostile()
    if name == "unapproachable":
        return name, Unapproachable()
    return name, value


_NAMES = sorted(STRANGE)
