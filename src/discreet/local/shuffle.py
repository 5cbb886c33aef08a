"""The shuffle model: the guarantee of shuffled reports, and the local epsilon for a target."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.accounting import shuffle
from discreet.accounting import shuffle as randomizers
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.shuffle import Parts
from discreet.core.errors import Unsupported
from discreet.local.distribution import SquareWave
from discreet.local.longitudinal import MemoizedOracle
from discreet.local.means.balanced_piecewise import BalancedPiecewise
from discreet.local.means.piecewise import Duchi, PiecewiseMean
from discreet.local.oracles.local_hashing import LocalHashing
from discreet.local.oracles.randomized_response import RandomizedResponse
from discreet.local.oracles.subset_selection import BlockOracle, SubsetSelection
from discreet.local.oracles.unary_encoding import (
    ONE,
    OptimizedUnary,
    SymmetricUnary,
    ThresholdHistogramEncoding,
    UnaryEncoding,
)
from discreet.local.randomizer import LocalRandomizer

# Exactly these: what is derived from them may report differently.
_RESPONSES = (RandomizedResponse,)
_BLOCKS = (SubsetSelection, LocalHashing)
_UNARY = (SymmetricUnary, OptimizedUnary, ThresholdHistogramEncoding)
_WINDOWS = (PiecewiseMean, Duchi, BalancedPiecewise, SquareWave)


def parts(randomizer: LocalRandomizer) -> Parts:
    """The two levels of a randomizer, or nothing if it is not known to have two.

    Memoized reports are refused: what a client remembers ties its reports to each other.
    """
    if isinstance(randomizer, MemoizedOracle):
        raise Unsupported(
            f"{randomizer.kind} repeats what it remembers, so that reports of one client can be "
            "tied to each other: a shuffler does not hide them. Use an oracle with fresh coins."
        )
    kind = type(randomizer)
    if kind in _RESPONSES and isinstance(randomizer, RandomizedResponse):
        return randomizers.block_design_parts(points=randomizer.categories)
    if kind in _BLOCKS and isinstance(randomizer, BlockOracle):
        return randomizers.block_design_parts(points=randomizer.points, chosen=randomizer.chosen)
    if kind in _UNARY and isinstance(randomizer, UnaryEncoding):
        return randomizers.unary_parts(Fraction(randomizer.coins[1], ONE))
    if kind in _WINDOWS and isinstance(randomizer, PiecewiseMean | SquareWave):
        inside = randomizer.window
        return randomizers.window_parts(inputs=inside.inputs, width=inside.width)
    return ()


def shuffled_guarantee(randomizer: LocalRandomizer, *, reports: int) -> Guarantee:
    """Compute the central guarantee of shuffled reports of one local randomizer.

    Args:
        randomizer: Local randomizer that all clients use.
        reports: Number of honest clients, each with one report.

    Returns:
        A guarantee for neighbors that differ in the value of one client.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        The guarantee needs a shuffler that hides who sent which report, and all that comes with it.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.grr(categories=2, epsilon=1)
        >>> local.shuffled_guarantee(randomizer, reports=1_000).epsilon(1e-6) < 0.5
        True
    """
    # Theorem: S3 of docs/theory/shuffle.md for randomizers of two levels, S2 for all others.
    # Proof: a report is e^epsilon times likelier (or less) on one set of outputs, under one law.
    # Source: Feldman, McMillan, Talwar 2021; Balle, Bell, Gascón, Nissim 2019. F56.
    # Needs: `reports` honest clients, all with this randomizer, and a shuffler that drops whatever
    #   else comes with a report.
    return randomizer.guarantee.shuffled(reports=reports, parts=parts(randomizer))


def local_epsilon_for(
    make: Callable[[float], LocalRandomizer] | None = None,
    *,
    epsilon: float,
    delta: float,
    reports: int,
) -> float:
    """Find the largest local epsilon whose shuffled reports meet a central target.

    Args:
        make: Function from a local epsilon to a randomizer. If None, the result holds for any
            randomizer.
        epsilon: Epsilon of the central target.
        delta: Delta of the central target.
        reports: Number of honest clients, each with one report.

    Returns:
        The local epsilon, rounded down.

    Raises:
        InvalidArgument: An argument is not valid, or no local epsilon meets the target.

    Examples:
        >>> local.local_epsilon_for(epsilon=0.5, delta=1e-6, reports=10_000) > 3
        True
    """
    if make is None:
        return shuffle.local_epsilon(epsilon, delta=delta, reports=reports)
    return shuffle.local_epsilon(
        epsilon, delta=delta, reports=reports, parts=lambda local: parts(make(local))
    )
