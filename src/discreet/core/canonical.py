"""Canonical text: what is stored, hashed or compared is written in one way only."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from discreet.core.errors import InvalidArgument

_RATIO = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?")


def text(content: Any) -> str:
    """JSON with sorted keys and no white space."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def ratio(value: Fraction) -> str:
    """A rational as ``"p/q"``."""
    return f"{value.numerator}/{value.denominator}"


def read_ratio(name: str, written: object) -> Fraction:
    """A ratio of whole numbers as a description holds it; no powers, which could be endless."""
    if not isinstance(written, str) or not _RATIO.fullmatch(written):
        raise InvalidArgument(f'{name} must be a ratio of whole numbers as text, such as "1/2".')
    return Fraction(written)
