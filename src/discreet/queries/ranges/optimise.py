"""The best nested blocks for a workload: which sizes, and how to share the budget (F30)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.core.relation import Relation
from discreet.noise.law import Floats, Ints
from discreet.queries.ranges.blocks import Blocks
from discreet.queries.ranges.noise import Price
from discreet.queries.ranges.strategy import Contribution, group_move, rounded_shares
from discreet.queries.ranges.workload import Workload, energies

_STEPS = 60
_LAST_STEPS = 400
_LEAST = 1e-7
_MANY_CELLS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Block sizes that may be measured, with their mean energies and sensitivities."""

    sizes: Ints
    energies: Floats
    tops: Floats
    """Mean energies of a known total if the largest block is this one; else zero."""
    l1: Floats
    l2_squared: Floats

    def cost(self, chain: Ints, shares: Floats, price: Price) -> tuple[Floats, Floats]:
        """Mean variance of chains (one in each row), and minus its slope in each share.

        With ``d_j`` the drop of energy above level j and ``lambda_j`` the summed rates up to it,
        the mean is the sum of ``d_j / lambda_j`` and its slope in the rate of level i is
        ``-s_i`` times the sum over ``j >= i`` of ``d_j / lambda_j^2``.
        """
        held = self.energies[chain]
        drop = held - np.concatenate([held[:, 1:], self.tops[chain[:, -1:]]], axis=1)
        sizes, l1, l2 = self.sizes[chain], self.l1[chain], self.l2_squared[chain]
        rate = np.cumsum(price.precision(shares, l1, l2) * sizes, axis=1)
        pull = np.cumsum((drop / rate / rate)[:, ::-1], axis=1)[:, ::-1]
        return (drop / rate).sum(axis=1), pull * sizes * price.slope(shares, l1, l2)


def optimal_blocks(
    size: int,
    *,
    workload: Workload,
    price: Price,
    relation: Relation,
    contribution: Contribution,
    total: int | None = None,
) -> Blocks:
    """The nested blocks of least mean variance over a workload, for a budget.

    Heuristic: no theorem about the optimum; the variance of what is returned is exact. Laplace
        noise: all sets of at most four (five on large domains) powers of two that hold 1, each with
        the shares at which all slopes agree. Gaussian noise: the problem is convex, all powers of
        two are taken and levels that get nothing are dropped.
    Source: F30; docs/theory/ranges.md.
    """
    powers = 1 << np.arange(max(1, size - 1).bit_length() + 1)
    fits = powers if size > 1 else powers[:1]
    padded = [-(-size // block) * block for block in fits.tolist()]
    moves = [
        group_move(contribution, relation, entries=n // block, cells=block)
        for n, block in zip(padded, fits.tolist(), strict=True)
    ]
    known = energies(workload, size, padded) if total is not None else np.zeros(len(padded))
    found = Candidates(
        sizes=fits,
        energies=energies(workload, size, fits.tolist()),
        tops=known,
        l1=np.array([float(move.l1) for move in moves]),
        l2_squared=np.array([float(move.l2_squared) for move in moves]),
    )
    chain, shares = _searched(found, price) if price.family == "laplace" else _all(found, price)
    sizes = tuple(int(block) for block in fits[chain])
    return Blocks(size=size, sizes=sizes, shares=rounded_shares(shares), total=total)


def _searched(found: Candidates, price: Price) -> tuple[Ints, Floats]:
    """The best small set of levels."""
    many = len(found.sizes)
    most = 4 if found.sizes[-1] <= _MANY_CELLS else 5
    best: tuple[float, Ints, Floats] | None = None
    for levels in range(1, min(most, many) + 1):
        chains = np.array([(0, *more) for more in combinations(range(1, many), levels - 1)])
        shares, costs = _balanced(found, chains, price, steps=_STEPS)
        leader = int(np.argmin(costs))
        if best is None or costs[leader] < best[0] * (1 - 1e-9):
            best = float(costs[leader]), chains[leader], shares[leader]
    assert best is not None  # noqa: S101 - there is always the flat histogram
    shares, _ = _balanced(found, best[1][None], price, steps=_LAST_STEPS, start=best[2][None])
    return best[1], shares[0]


def _all(found: Candidates, price: Price) -> tuple[Ints, Floats]:
    """All levels at once; those that get (almost) nothing are left out."""
    chain = np.arange(len(found.sizes))
    shares, _ = _balanced(found, chain[None], price, steps=_LAST_STEPS)
    kept = (shares[0] > 1e-3) | (chain == 0)
    shares, _ = _balanced(found, chain[kept][None], price, steps=_LAST_STEPS)
    return chain[kept], shares[0]


def _balanced(
    found: Candidates, chains: Ints, price: Price, *, steps: int, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Shares at which every level's slope is the same, and the costs there.

    A level whose variance goes with ``share^-2`` (Laplace) has its best share in proportion to the
    cube root of slope times ``share^3``, and to the square root of slope times ``share^2`` for
    Gaussian noise: repeat until it stays.
    """
    power = 1 / 3 if price.family == "laplace" else 1 / 2
    shares = np.full(chains.shape, 1 / chains.shape[1]) if start is None else start
    for _ in range(steps):
        _, pull = found.cost(chains, shares, price)
        shares = shares * np.maximum(pull, 1e-300) ** power
        shares /= shares.sum(axis=1, keepdims=True)
        shares = np.maximum(shares, _LEAST)  # a level that fades must not make others vanish
    return shares, found.cost(chains, shares, price)[0]
