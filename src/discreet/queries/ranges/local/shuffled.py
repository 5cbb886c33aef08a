"""Local ranges whose reports pass a shuffler: the structure and the epsilon that go together (F56).

How far shuffling amplifies depends on how the reports of a randomiser hide each other; which
randomiser is best depends on the epsilon that amplification leaves. The two are settled in turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import randomisers
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.shuffle import Parts, local_epsilon
from discreet.core import check
from discreet.core.exact import Number
from discreet.mechanisms.local.design import BlockOracle
from discreet.mechanisms.local.randomiser import Randomiser
from discreet.mechanisms.local.response import RandomisedResponse
from discreet.queries.ranges.domain import Domain, declared
from discreet.queries.ranges.local import haar, tree
from discreet.queries.ranges.local.haar import HaarTree
from discreet.queries.ranges.local.halves import Halves
from discreet.queries.ranges.local.plan import plan_local
from discreet.queries.ranges.local.tree import Tree
from discreet.queries.ranges.question import Asked, workload_of

_TURNS = 3
_STEP = 1 << 16
"""Local epsilons are rounded down to multiples of one over this (finer below one)."""


@dataclass(frozen=True, kw_only=True)
class ShuffledRanges:
    """A randomiser of n clients whose shuffled reports have the guarantee."""

    randomiser: Tree | HaarTree
    guarantee: Guarantee
    mean: float
    """Mean squared error over the workload, in clients squared, for equally frequent cells."""


def parts_of(randomiser: Tree | HaarTree) -> Parts:
    """The levels as two-level randomisers; nothing if one of them is of another kind.

    Proof: blocks of a design as in `accounting.randomisers`. A half's sign at a random row: all
        rows and signs are alike but that one sign of each row is likelier, so half of the messages
        are; two halves of one pair have no likelier message in common.
    """
    described = [_parts(part) for part in randomiser.parts]
    if not all(described):
        return ()
    return randomisers.levels(zip(randomiser.shares, described, strict=True))


def shuffled_ranges(
    domain: Domain,
    workload: Asked,
    *,
    epsilon: Number,
    delta: Number,
    clients: int,
    honest: int | None = None,
) -> ShuffledRanges:
    """The local randomiser of least error whose shuffled reports are (epsilon, delta)-DP.

    ``honest`` is how many of the clients surely report as they should and keep their report to
    themselves: all, unless it is stated. Only their reports hide one another.

    Theorem: the guarantee is that of the returned randomiser's own reports, and within the target.
    Proof: its local epsilon is the largest that `local_epsilon` certifies for its parts, rounded
        down; structure and shares were chosen before, at another epsilon, and are kept.
    Source: Feldman, McMillan, Talwar 2021; docs/theory/shuffle.md.
    Needs: one report of each client; a shuffler that hides who sent what and when. Neighbours
        replace one client's value.
    """
    target = float(check.positive("epsilon", epsilon))
    slack = float(check.probability("delta", delta, zero=False, one=False))
    check.count("clients", clients)
    hidden = clients if honest is None else min(check.count("honest", honest), clients)
    workload = workload_of(workload, declared(domain))
    local = local_epsilon(target, delta=slack, reports=hidden)
    best: ShuffledRanges | None = None
    for _ in range(_TURNS):
        found = plan_local(domain, workload, epsilon=local, clients=clients).chosen.randomiser
        parts = parts_of(found)
        local = local_epsilon(target, delta=slack, reports=hidden, parts=parts)
        made = _at(found, local)
        mean = clients * made.law.mean(workload)
        if best is None or mean < best.mean:
            pure = made.guarantee
            whole = pure.shuffled(reports=hidden, parts=parts) if local > target else pure
            best = ShuffledRanges(randomiser=made, guarantee=whole, mean=mean)
    assert best is not None  # noqa: S101 - there was a turn
    return best


def _at(randomiser: Tree | HaarTree, local: float) -> Tree | HaarTree:
    """The same structure with the same designs at another epsilon."""
    # Finer for a small epsilon: what is rounded must not come out as nothing, or as more.
    step = _STEP << max(0, -math.floor(math.log2(local)))
    epsilon = Fraction(math.floor(local * step), step)
    if isinstance(randomiser, HaarTree):
        return haar.described(epsilon=epsilon, **randomiser.parameters())
    return tree.described(epsilon=epsilon, **randomiser.parameters())


def _parts(part: Randomiser) -> Parts:
    # Fewer than `shuffling.parts` knows: those whose numbers stay when epsilon changes (`_at`).
    match part:
        case BlockOracle():
            return randomisers.blocks(points=part.points, chosen=part.chosen)
        case RandomisedResponse():
            return randomisers.blocks(points=part.categories)
        case Halves():
            return ((Fraction(1), Fraction(1, 2), Fraction(1, 2)),)
        case _:
            return ()
