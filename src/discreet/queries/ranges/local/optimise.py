"""The best levels of a local tree for a workload, and how many clients each should get (F50)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.noise.law import Floats, floats
from discreet.queries.ranges.domain import Domain, declared
from discreet.queries.ranges.local.choice import Oracles
from discreet.queries.ranges.local.law import BlocksLaw
from discreet.queries.ranges.local.tree import Tree, blocks
from discreet.queries.ranges.question import Asked, workload_of
from discreet.queries.ranges.strategy import rounded_shares
from discreet.queries.ranges.workload import Workload, energies

_STEPS = 400
_FADED = 1e-3


def optimal_tree(
    *,
    domain: Domain,
    epsilon: Number,
    workload: Asked,
    oracle: Oracles = None,
    report_bits: int | None = None,
) -> Tree:
    """The nested blocks of least mean variance over a workload, for equally frequent cells.

    Theorem: for given levels and oracles the mean variance is convex in the shares of clients, and
        its minimum is found; the law of what is returned is exact.
    Proof: it is ``sum_j d_j / lambda_j`` less a constant, with energies that fall by ``d_j >= 0``
        and ``lambda_j`` linear in the shares. Levels that get (almost) nobody are left out.
    Source: F50; docs/theory/local-ranges.md. Among all powers of two, every largest block is tried:
        it decides how far the domain is filled up.
    """
    if declared(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    check.positive("epsilon", epsilon)
    workload = workload_of(workload, domain)
    # Of the largest blocks that fill up the domain alike, the largest one offers all levels.
    tops = {-(-domain.size // block) * block: block for block in _powers(domain.size)}
    best: tuple[float, Tree] | None = None
    for top in tops.values():
        sizes = [block for block in _powers(domain.size) if block <= top]
        whole = blocks(
            domain=domain, epsilon=epsilon, sizes=sizes, oracle=oracle, report_bits=report_bits
        )
        shares = best_shares(whole.law, workload)
        kept = [b for b, share in zip(sizes, shares, strict=True) if share > _FADED or b == 1]
        some = blocks(
            domain=domain, epsilon=epsilon, sizes=kept, oracle=oracle, report_bits=report_bits
        )
        made = replace(some, shares=rounded_shares(best_shares(some.law, workload)))
        mean = made.law.mean(workload)
        if best is None or mean < best[0] * (1 - 1e-9):
            best = mean, made
    assert best is not None  # noqa: S101 - the flat histogram is always there
    return best[1]


def _powers(size: int) -> list[int]:
    """Powers of two below the size."""
    return [1 << j for j in range((size - 1).bit_length())]


def best_shares(law: BlocksLaw, workload: Workload) -> Floats:
    """The shares of clients at which moving one from level to level changes nothing.

    The slope in the share of level i is ``-s_i / V_i`` times the sum over ``j >= i`` of
    ``d_j / lambda_j^2``; shares go with the root of slope times ``share^2`` where they are best.
    """
    held = energies(workload, law.size, (*law.sizes, law.padded))
    drops = np.maximum(-np.diff(held), 0.0)
    rates = np.array(law.sizes, dtype=np.float64) / law.noise
    shares = np.full(len(rates), 1 / len(rates))
    for _ in range(_STEPS):
        inverse = 1 / np.cumsum(rates * shares)
        pull = rates * np.cumsum((drops * inverse * inverse)[::-1])[::-1]
        shares = shares * np.sqrt(np.maximum(pull, 1e-300))
        shares = np.maximum(shares / shares.sum(), 1e-9)
    return floats(shares / shares.sum())
