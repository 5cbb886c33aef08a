"""Structures, noise and measurements as JSON, and back."""

from __future__ import annotations

import base64
import zlib
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.law import Ints
from discreet.queries.ranges import dense, sums
from discreet.queries.ranges.blocks import Blocks
from discreet.queries.ranges.haar import Haar
from discreet.queries.ranges.roots import Roots
from discreet.queries.ranges.strategy import Strategy


def packed(group: Ints) -> str:
    """Integers as text: compressed, then base64."""
    return base64.b64encode(zlib.compress(group.astype("<i8").tobytes(), 1)).decode("ascii")


def unpacked(text: str) -> Ints:
    """The inverse of ``packed``."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)


def read_strategy(content: dict[str, Any]) -> Strategy:
    """The structure of its JSON."""
    match content["kind"]:
        case "blocks":
            return Blocks(
                size=content["size"],
                sizes=tuple(content["sizes"]),
                shares=tuple(Fraction(share) for share in content["shares"]),
                total=content["total"],
            )
        case "haar":
            shares = tuple(Fraction(share) for share in content["shares"])
            return Haar(size=content["size"], shares=shares, total=content["total"])
        case "roots":
            return Roots(size=content["size"], normalised=content["normalised"])
        case "dense":
            return dense.read(content)
        case "sums":
            return sums.read(content)
        case _:
            raise InvalidArgument("text must be a release of ranges; its structure is unknown.")
