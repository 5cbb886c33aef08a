"""The sum of bounded terms that deviates least from given values, by its dual."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from discreet.models.learned.metrics import Floats


def least_deviations(
    blocks: list[Floats], y: Floats, *, most: float, tube: float, together: int = 1
) -> tuple[list[Floats], float]:
    """Heights f and an offset with the least ``sum of (|y - basis f - offset| - tube)_+``.

    Heights lie between zero and ``most``; of ``together`` blocks in a row, the highest heights add
    up to at most ``most``. All public. The dual has one row for each height instead of two for each
    sample, and its multipliers are the heights.
    """
    many, sizes = len(y), [block.shape[1] for block in blocks]
    total, groups = sum(sizes), len(sizes) // together
    basis = sparse.csr_matrix(np.hstack(blocks).T)
    # Variables: forces on the samples, up and down; what each height is held back by its bound.
    rows: Any = sparse.hstack([basis, -basis, -sparse.eye(total)])
    held = np.full(total, float(most))
    if together > 1:
        block = np.repeat(np.arange(len(sizes)), sizes)
        of_block = sparse.csr_matrix((np.ones(total), (block, np.arange(total))))
        of_group = sparse.kron(sparse.eye(groups), np.ones((together, 1)))
        caps: Any = sparse.hstack([sparse.csr_matrix((len(sizes), 2 * many)), of_block, -of_group])
        rows = sparse.vstack([sparse.hstack([rows, sparse.csr_matrix((total, groups))]), caps])
        held = np.concatenate([np.zeros(total), np.full(groups, float(most))])
    balance = np.concatenate([np.ones(many), -np.ones(many), np.zeros(len(held))])
    limits: Any = [(0, 1)] * (2 * many) + [(0, None)] * len(held)
    found: Any = linprog(
        np.concatenate([tube - y, tube + y, held]),
        A_ub=rows.tocsr(),
        b_ub=np.zeros(rows.shape[0]),
        A_eq=balance[None],
        b_eq=[0.0],
        bounds=limits,
        method="highs",
    )
    if found.x is None:  # a constant is always a solution
        return [np.zeros(size) for size in sizes], float(np.median(y))
    heights = np.clip(-found.ineqlin.marginals[:total], 0, most)
    return np.split(heights, np.cumsum(sizes)[:-1]), -float(found.eqlin.marginals[0])
