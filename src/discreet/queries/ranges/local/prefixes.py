"""Texts as rows of bits, their prefixes, and public hashes of prefixes into few cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_128
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import OutOfDomain
from discreet.noise.law import Ints

Texts: TypeAlias = NDArray[np.uint8]
"""Texts as rows of bytes of one length, filled with zeros; the first bit of a byte is highest."""


def texts(value: Iterable[str | bytes], length: int) -> Texts:
    """Private texts as rows: UTF-8, cut after ``length`` bytes, filled with zeros."""
    if isinstance(value, (str, bytes)):
        value = [value]
    if not isinstance(value, Iterable):
        raise OutOfDomain("value must hold texts or bytes.")
    rows = []
    for text in value:
        if not isinstance(text, (str, bytes)):
            raise OutOfDomain("value must hold texts or bytes.")
        whole = text.encode("utf-8", errors="replace") if isinstance(text, str) else text
        rows.append(whole[:length].ljust(length, b"\0"))
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), length)


def prefixes(rows: Texts, digits: int) -> Texts:
    """The same rows with all bits after the first ``digits`` zero."""
    whole, left = divmod(digits, 8)
    cut = rows.copy()
    if left:
        cut[:, whole] &= np.uint8(0xFF << (8 - left) & 0xFF)
    cut[:, whole + (left > 0) :] = 0
    return cut


def extended(rows: Texts, digits: int, step: int) -> Texts:
    """Every row (zero after ``digits`` bits) with all values of the next ``step`` bits."""
    length = rows.shape[1]
    endings = np.zeros((1 << step, length), dtype=np.uint8)
    numbers = np.arange(1 << step)
    for place in range(step):
        byte, bit = divmod(digits + place, 8)
        ones = (numbers >> (step - 1 - place) & 1).astype(np.uint8)
        endings[:, byte] |= ones << np.uint8(7 - bit)
    return (rows[:, None, :] | endings[None]).reshape(-1, length)


def readable(rows: Texts) -> list[bytes]:
    """Rows as bytes without the zeros that fill them."""
    return [row.tobytes().rstrip(b"\0") for row in rows]


@dataclass(frozen=True, slots=True)
class PublicHash:
    """A random affine map over the field of two elements, known to everyone.

    Theorem: two different rows fall into one cell with probability 2^-digits over the maps.
    Proof: the map sends the difference of the rows, which is not zero, to a uniform value.
    """

    masks: Texts
    shift: int

    @classmethod
    def of(cls, *, seed: int, number: int, length: int, digits: int) -> PublicHash:
        """The map with this number of a family: the digits of SHAKE-128 of its name."""
        name = f"discreet public hash {seed}/{number}/{length}/{digits}"
        stream = shake_128(name.encode()).digest(length * digits + 8)
        masks = np.frombuffer(stream[:-8], dtype=np.uint8).reshape(digits, length)
        return cls(masks, int.from_bytes(stream[-8:], "little") % (1 << digits))

    def cells(self, rows: Texts) -> Ints:
        """The cell of each row: digit j is the parity of the bits that mask j selects."""
        found = np.full(len(rows), self.shift, dtype=np.int64)
        chosen = _words(rows)
        for digit, mask in enumerate(_words(self.masks)):
            ones = np.bitwise_count(chosen & mask).sum(axis=1, dtype=np.int64)
            found ^= (ones & 1) << digit
        return found


@lru_cache(maxsize=64)
def family(seed: int, members: int, length: int, digits: int) -> Sequence[PublicHash]:
    """The public hashes of a collection."""
    return tuple(
        PublicHash.of(seed=seed, number=number, length=length, digits=digits)
        for number in range(members)
    )


def _words(rows: Texts) -> NDArray[np.uint64]:
    """Eight bytes at a time, filled with zeros; parities do not mind their order."""
    filled = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), dtype=np.uint8)
    filled[:, : rows.shape[1]] = rows
    return filled.view(np.uint64)
