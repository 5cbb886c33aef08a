"""Least deviations by the dual, against the primal."""

import numpy as np
import pytest
from scipy.optimize import linprog

from discreet.models.blackbox.lipschitz_fit import least_deviations


def primal(blocks, y, *, most, tube, together):
    """Heights, the highest of each block, an offset, and what is beyond the tube."""
    basis = np.hstack(blocks)
    many, total = basis.shape
    sizes = [block.shape[1] for block in blocks]
    size = total + len(sizes) + 1 + many
    rows, bounds = [], []
    for k in range(many):
        for sign in (1, -1):
            row = np.zeros(size)
            row[:total] = sign * basis[k]
            row[total + len(sizes)] = sign
            row[total + len(sizes) + 1 + k] = -1
            rows.append(row)
            bounds.append(sign * y[k] + tube)
    for at, block in enumerate(np.repeat(np.arange(len(sizes)), sizes)):
        row = np.zeros(size)
        row[at], row[total + block] = 1, -1
        rows.append(row)
        bounds.append(0)
    for group in range(len(sizes) // together):
        row = np.zeros(size)
        row[total + group * together : total + (group + 1) * together] = 1
        rows.append(row)
        bounds.append(most)
    cost = np.zeros(size)
    cost[-many:] = 1
    limits = [(0, None)] * (size - many - 1) + [(None, None)] + [(0, None)] * many
    return linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=limits).fun


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("tube", [0.0, 0.3])
def test_the_dual_finds_what_the_primal_finds(together, tube):
    rng = np.random.default_rng(int(10 * tube) + together)
    for _ in range(15):
        many = int(rng.integers(2, 25))
        blocks = [rng.random((many, int(rng.integers(1, 4)))) for _ in range(4)]
        y, most = rng.normal(size=many) * 3, float(rng.random() * 3)
        heights, offset = least_deviations(blocks, y, most=most, tube=tube, together=together)
        fitted = sum(block @ height for block, height in zip(blocks, heights, strict=True)) + offset
        loss = np.maximum(np.abs(y - fitted) - tube, 0).sum()
        assert loss == pytest.approx(
            primal(blocks, y, most=most, tube=tube, together=together), abs=1e-7
        )
        tops = np.reshape([height.max() for height in heights], (-1, together))
        assert tops.sum(axis=1).max() <= most + 1e-9
        assert min(height.min() for height in heights) >= 0


def test_without_room_it_is_a_constant():
    heights, offset = least_deviations([np.ones((3, 1))], np.array([1.0, 2.0, 9.0]), most=0, tube=0)
    assert heights[0].item() == 0
    assert offset == 2.0
