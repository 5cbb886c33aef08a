"""What the ranges of a workload cover of each block, against every range one by one."""

import numpy as np
import pytest

from discreet.ranges import workload as w
from discreet.ranges.workload import block_energies, block_gram

LISTED = w.ranges([(0, 3), (2, 2), (1, 10), (4, 12), (12, 12), (5, 6)], weights=[1, 2, 3, 1, 0, 5])
WORKLOADS = [
    w.points(),
    w.short(3),
    w.length(5),
    w.long(),
    w.prefixes(),
    w.all_ranges(),
    w.LengthWorkload(name="some", shortest=2, longest=7),
    LISTED,
]


@pytest.mark.parametrize("block", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_products_of_blocks(workload, block):
    size = 13
    a, b, weights = w.listed(workload, size)
    starts = np.arange(0, size, block)
    left, right = np.maximum(a[:, None], starts), np.minimum(b[:, None], starts + block - 1)
    cells = np.maximum(right - left + 1, 0)
    direct = (cells.T * weights) @ cells
    assert block_gram(workload, size, block) == pytest.approx(direct, abs=1e-12)
    assert block_energies(workload, size, block) == pytest.approx(
        np.diag(direct) / block, abs=1e-12
    )


@pytest.mark.parametrize("workload", [w.all_ranges(), w.prefixes(), w.long()], ids=str)
def test_large_domains_agree_with_the_closed_form_of_all_blocks(workload):
    size = 5000
    for block in (1, 16, 64):
        whole = w.energies(workload, size, [block])[0]
        assert block_energies(workload, size, block).sum() == pytest.approx(whole, rel=1e-9)
        if block > 1:
            products = block_gram(workload, size, block)
            assert np.trace(products) / block == pytest.approx(whole, rel=1e-9)
