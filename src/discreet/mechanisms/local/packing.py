"""Whole numbers of a few binary digits side by side in bytes, lowest digits first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.local.randomiser import Reports
from discreet.noise.law import Ints


def pack(fields: Ints, digits: int) -> Reports:
    """Bytes of each column: field j takes the digits from j * digits on. The rest is zero."""
    total = len(fields) * digits
    limbs = np.zeros((fields.shape[1], (total + 63) // 64), dtype="<u8")
    for j, field in enumerate(fields.view(np.uint64)):
        limb, offset = divmod(j * digits, 64)
        limbs[:, limb] |= field << np.uint64(offset)
        if offset + digits > 64:
            limbs[:, limb + 1] |= field >> np.uint64(64 - offset)
    return limbs.view(np.uint8)[:, : (total + 7) // 8]


def unpack(reports: Reports, digits: int, number: int) -> Ints:
    """The fields of each report, as columns. Digits are at most 62."""
    size = (number * digits + 63) // 64
    whole = np.zeros((len(reports), 8 * size), dtype=np.uint8)
    whole[:, : reports.shape[1]] = reports
    limbs = np.ascontiguousarray(whole.view("<u8").T)
    fields = np.empty((number, len(reports)), dtype=np.uint64)
    for j in range(number):
        limb, offset = divmod(j * digits, 64)
        fields[j] = limbs[limb] >> np.uint64(offset)
        if offset + digits > 64:
            fields[j] |= limbs[limb + 1] << np.uint64(64 - offset)
    fields &= np.uint64((1 << digits) - 1)
    return fields.view(np.int64)


def padded(reports: Reports, digits: int) -> NDArray[np.bool_]:
    """Whether a report has a digit set beyond the first ``digits``: no client sends that."""
    spare = 8 * reports.shape[1] - digits
    return reports[:, -1] >> (8 - spare) != 0 if spare else np.zeros(len(reports), dtype=np.bool_)
