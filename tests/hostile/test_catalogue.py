"""What hostile people bring: enough of it, and all that was ever seen to do harm."""

from __future__ import annotations

import math
import random

import numpy as np

from tests.hostile.catalogue import CSV_LINES, HONEST, ROWS, STRANGE, strange


def test_there_are_many_values_rows_and_lines():
    assert len(STRANGE) >= 120
    assert len(ROWS) >= 12
    assert len(CSV_LINES) >= 35
    assert len(HONEST) >= 6


def test_nan_keeps_its_payload_and_zero_its_sign():
    assert np.float64(STRANGE["nan with a payload"]).view(np.uint64) & 0xFFFF_FFFF == 0xDEAD_BEEF
    assert math.copysign(1, STRANGE["minus zero"]) == -1


def test_all_values_are_drawn_and_fresh_ones():
    draw = random.Random(1)
    drawn = {strange(draw)[0] for _ in range(20_000)}
    assert set(STRANGE) <= drawn
    assert any(name.startswith("random") for name in drawn)
