"""The same clients behind a shuffler: what their reports are worth, and how much they may say."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.accounting import randomisers, shuffle
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.shuffle import Parts
from discreet.mechanisms.local.design import BlockOracle
from discreet.mechanisms.local.piecewise import Piecewise
from discreet.mechanisms.local.randomiser import Randomiser
from discreet.mechanisms.local.response import RandomisedResponse
from discreet.mechanisms.local.unary import ONE, Unary
from discreet.mechanisms.local.wave import SquareWave


def parts(randomiser: Randomiser) -> Parts:
    """The two levels of a randomiser, or nothing if it is not known to have two."""
    match randomiser:
        case RandomisedResponse():
            return randomisers.blocks(points=randomiser.categories)
        case BlockOracle():
            return randomisers.blocks(points=randomiser.points, chosen=randomiser.chosen)
        case Unary():
            return randomisers.unary(Fraction(randomiser.coins[1], ONE))
        case Piecewise() | SquareWave():
            inside = randomiser.window
            return randomisers.window(inputs=inside.inputs, width=inside.width)
        case _:
            return ()


def shuffled(randomiser: Randomiser, *, reports: int) -> Guarantee:
    """What ``reports`` reports of one randomiser are worth once a shuffler has mixed them.

    Theorem: S3 of docs/theory/shuffle.md for randomisers of two levels, S2 for all others.
    Proof: a report is e^epsilon times likelier (or less) on one set of outputs, under one law.
    Source: Feldman, McMillan, Talwar 2021; Balle, Bell, Gascón, Nissim 2019. F56.
    Needs: ``reports`` honest clients, all with this randomiser, and a shuffler that drops whatever
        else comes with a report.
    """
    return randomiser.guarantee.shuffled(reports=reports, parts=parts(randomiser))


def local_epsilon(
    make: Callable[[float], Randomiser], *, epsilon: float, delta: float, reports: int
) -> float:
    """The largest epsilon of a report whose shuffle is (epsilon, delta)-DP, rounded down.

    ``make`` gives the randomiser of a local epsilon.
    """
    return shuffle.local_epsilon(
        epsilon, delta=delta, reports=reports, parts=lambda local: parts(make(local))
    )
