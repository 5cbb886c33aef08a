"""Canonical text: what is stored, hashed or compared is written in one way only."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

from discreet.core.errors import InvalidArgument

_RATIO = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?")
_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    ZeroDivisionError,
    zlib.error,
)


def text(content: Any) -> str:
    """JSON with sorted keys and no white space."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def reading(what: str) -> AbstractContextManager[None, None]:
    """Whatever fails in here fails because a text is not the JSON of ``what``."""
    return _Reading(what)


def ratio(value: Fraction) -> str:
    """A rational as ``"p/q"``."""
    return f"{value.numerator}/{value.denominator}"


def read_ratio(name: str, written: object) -> Fraction:
    """A ratio of whole numbers as a description holds it; no powers, which could be endless."""
    if not isinstance(written, str) or not _RATIO.fullmatch(written):
        raise InvalidArgument(f'{name} must be a ratio of whole numbers as text, such as "1/2".')
    return Fraction(written)


class _Reading(AbstractContextManager[None, None]):
    def __init__(self, what: str) -> None:
        self._what = what

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, _UNREADABLE) and not isinstance(error, InvalidArgument):
            raise InvalidArgument(f"text must be the JSON of {self._what}.") from None
