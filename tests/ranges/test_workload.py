"""Closed forms of workloads against sums over every range."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.ranges import workload as w

SIZES = [1, 2, 7, 16, 33]


def workloads(size):
    yield from (w.points(), w.all_ranges(), w.long(), w.prefixes(), w.short(min(5, size)))
    yield w.ranges([(0, 0), (0, size - 1), (size // 2, size - 1)], weights=[1, 2, 3])
    yield from (w.length(r) for r in range(1, size + 1))


def indicators(size, workload):
    a, b, weights = w.listed(workload, size)
    cells = np.arange(size)
    inside = (cells >= a[:, None]) & (cells <= b[:, None])
    return a, b, weights, inside.astype(float)


@pytest.mark.parametrize("size", SIZES)
def test_closed_forms_are_sums_over_all_ranges(size):
    source = np.random.default_rng(1)
    for workload in workloads(size):
        a, b, weights, rows = indicators(size, workload)
        assert weights.sum() == pytest.approx(1)
        assert w.gram(workload, size) == pytest.approx((rows * weights[:, None]).T @ rows)
        x = source.normal(size=(size + 1, 3))
        direct = weights @ np.square(x[b + 1] - x[a])
        assert w.mean_squares(workload, size, x) == pytest.approx(direct)
        for block in (1, 2, 3, 4, 8, 40):
            padded = -(-size // block) * block
            whole = np.zeros((len(rows), padded))
            whole[:, :size] = rows
            sums = whole.reshape(len(rows), -1, block).sum(axis=2)
            energy = np.square(sums).sum(axis=1) / block
            assert w.energy(a, b, block) == pytest.approx(energy)
            assert w.energies(workload, size, [block])[0] == pytest.approx(weights @ energy)


def test_energies_by_length():
    lengths = np.arange(1, 14)
    found = w.length_energies(13, lengths, [1, 3, 4])
    direct = [w.energies(w.length(int(r)), 13, [1, 3, 4]) for r in lengths]
    assert found == pytest.approx(np.array(direct))


def test_published_energies():
    # Spec 6.2 (d), and the printed polynomials of F27 for blocks that fill the domain.
    assert w.energies(w.all_ranges(), 16, [1, 4, 16]) == pytest.approx([6, 4.8970588235, 3.1875])
    assert w.energies(w.prefixes(), 16, [1, 4, 16]) == pytest.approx([8.5, 7.875, 5.84375])
    D, s = 4096.0, np.array([1.0, 16.0, 256.0])
    every = (2 * D**2 * s - 2 * D * s**2 + 6 * D * s + 2 * D + s**3 - 2 * s**2 + 3 * s + 2) / (
        6 * s * (D + 1)
    )
    assert w.energies(w.all_ranges(), 4096, [1, 16, 256]) == pytest.approx(every)
    heads = (3 * D * s - s**2 + 3 * s + 1) / (6 * s)
    assert w.energies(w.prefixes(), 4096, [1, 16, 256]) == pytest.approx(heads)


def test_the_mean_length_of_a_range_is_a_third():
    a, b, weights = w.listed(w.all_ranges(), 31)
    assert weights @ (b - a + 1) == pytest.approx(33 / 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: w.length(0),
        lambda: w.short(0),
        lambda: w.ranges([]),
        lambda: w.ranges([(3, 2)]),
        lambda: w.ranges([(-1, 2)]),
        lambda: w.ranges([(0, 1)], weights=[-1]),
        lambda: w.ranges([(0, 1)], weights=[0]),
        lambda: w.ranges([(0, 1)], weights=[1, 1]),
        lambda: w.energies(w.length(9), 8, [1]),
        lambda: w.energies(w.ranges([(0, 8)]), 8, [1]),
    ],
)
def test_wrong_workloads_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()
