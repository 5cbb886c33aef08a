"""The Laplace mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from discreet.accounting.calibrate import calibrate
from discreet.core import events
from discreet.core.check import positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.core.grid import grid_exponent
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive, OnGrid, OnIntegers, needs_integers
from discreet.mechanisms.sensitivity import Lattice, Norm, l1, lattice, whole
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace


def laplace(  # noqa: PLR0913 - each has a default and a name
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number = 0,
    scale: Number | None = None,
    norm: Norm = "l1",
    dimension: int | None = None,
    on: Lattice | None = None,
    grid: Number | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> Additive:
    """Laplace noise on a number or a vector of bounded L1 sensitivity.

    Give ``epsilon``, or the noise ``scale`` itself. A ``delta`` buys a little less noise. A
    sensitivity in another norm takes the ``dimension`` of the vector. Whole numbers get discrete
    Laplace noise if the sensitivity is whole; reals are rounded to ``grid``, a power of two (by
    default far below the noise). ``on`` restricts the mechanism to "integers" or "reals".

    Theorem: the release is epsilon-DP under ``relation`` with epsilon = sensitivity / scale; with a
        delta, (epsilon, delta)-DP by the exact profile, whose worst case is one coordinate.
    Proof: the density (or mass) at y is proportional to exp(-|y - x|_1 / scale), and the triangle
        inequality bounds the ratio by exp(|x - x'|_1 / scale). The noise is sampled exactly and
        rounding the exact sum to the grid is post-processing. See theory/mechanisms.
    Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. B16, A2.
    Needs: sensitivity, epsilon and scale positive and finite; scale at most 2**50 grid steps.

    >>> laplace(sensitivity=1, epsilon=0.5).guarantee.epsilon()
    0.5
    """
    lattice(on)
    moved = l1(sensitivity, norm=norm, dimension=dimension)
    shift = None if on == "reals" else whole(moved)
    if (epsilon is None) == (scale is None):
        raise InvalidArgument("laplace takes either epsilon or scale.")
    allowed = probability("delta", delta, one=False)
    if scale is not None:
        width = integer_width = positive("scale", scale)
        target = (moved / width, Fraction(0))
    else:
        target = (positive("epsilon", epsilon), allowed)
        width = _width("laplace", moved, target)
        integer_width = width if shift is None else _width("discrete laplace", moved, target)
    integers = None
    if shift is not None:
        event = events.DiscreteLaplace(integer_width, shift)
        integers = OnIntegers(noise=DiscreteLaplace(integer_width), event=event)
    return Additive(
        name="laplace",
        relation=relation,
        integers=needs_integers(integers, on),
        grid=None if on == "integers" else _on_grid(width, moved, grid),
        target=target,
    )


def _width(
    family: Literal["laplace", "discrete laplace"],
    moved: Fraction,
    target: tuple[Fraction, Fraction],
) -> Fraction:
    """The smallest certified scale: sensitivity / epsilon, or less if a delta is allowed."""
    epsilon, delta = target
    if delta == 0:
        return moved / epsilon
    return calibrate(family, sensitivity=moved, target=(float(epsilon), float(delta)))


def _on_grid(width: Fraction, moved: Fraction, grid: Number | None) -> OnGrid:
    exponent = grid_exponent(grid, width)
    noise = RoundedLaplace(width / Fraction(2) ** exponent, exponent)
    return OnGrid(noise=noise, event=events.LaplaceNoise(width / moved))
