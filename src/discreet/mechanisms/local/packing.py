"""Whole numbers of a few binary digits side by side in bytes, lowest digits first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.local.randomiser import Reports
from discreet.noise.law import Ints


def pack(fields: Sequence[Ints] | Ints, digits: Sequence[int]) -> Reports:
    """Bytes of each column of the fields, one after the other; what is left of a byte is zero.

    A field is a whole number of so many digits, at most 62.
    """
    total = sum(digits)
    limbs = np.zeros((len(fields[0]), (total + 63) // 64), dtype="<u8")
    place = 0
    for field, length in zip(fields, digits, strict=True):
        limb, offset = divmod(place, 64)
        whole = field.astype(np.uint64)
        limbs[:, limb] |= whole << np.uint64(offset)
        if offset + length > 64:
            limbs[:, limb + 1] |= whole >> np.uint64(64 - offset)
        place += length
    return limbs.view(np.uint8)[:, : (total + 7) // 8]


def unpack(reports: Reports, digits: Sequence[int]) -> Ints:
    """The fields of each report, as columns."""
    whole = np.zeros((len(reports), 8 * ((sum(digits) + 63) // 64)), dtype=np.uint8)
    whole[:, : reports.shape[1]] = reports
    limbs = np.ascontiguousarray(whole.view("<u8").T)
    fields = np.empty((len(digits), len(reports)), dtype=np.uint64)
    place = 0
    for j, length in enumerate(digits):
        limb, offset = divmod(place, 64)
        fields[j] = limbs[limb] >> np.uint64(offset)
        if offset + length > 64:
            fields[j] |= limbs[limb + 1] << np.uint64(64 - offset)
        fields[j] &= np.uint64((1 << length) - 1)
        place += length
    return fields.view(np.int64)


def padded(reports: Reports, digits: int) -> NDArray[np.bool_]:
    """Whether a report has a digit set beyond the first ``digits``: no client sends that."""
    spare = 8 * reports.shape[1] - digits
    return reports[:, -1] >> (8 - spare) != 0 if spare else np.zeros(len(reports), dtype=np.bool_)
