"""The Laplace mechanism."""

from __future__ import annotations

from fractions import Fraction

from discreet.core import events
from discreet.core.check import positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.core.grid import grid_exponent
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive, Lattice, OnGrid, OnIntegers, needs_integers
from discreet.mechanisms.sensitivity import Norm, l1, whole
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace


def laplace(
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    scale: Number | None = None,
    norm: Norm = "l1",
    dimension: int | None = None,
    on: Lattice | None = None,
    grid: Number | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> Additive:
    """Laplace noise on a number or a vector of bounded L1 sensitivity.

    Give ``epsilon``, or the noise ``scale`` itself. A sensitivity in another norm takes the
    ``dimension`` of the vector. Whole numbers get discrete Laplace noise if the sensitivity is
    whole; reals are rounded to ``grid``, a power of two (by default far below the noise).
    ``on`` restricts the mechanism to "integers" or "reals".

    Theorem: the release is epsilon-DP under ``relation`` with epsilon = sensitivity / scale.
    Proof: the density (or mass) at y is proportional to exp(-|y - x|_1 / scale), and the triangle
        inequality bounds the ratio by exp(|x - x'|_1 / scale). The noise is sampled exactly and
        rounding the exact sum to the grid is post-processing. See theory/mechanisms.
    Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. B16, A2.
    Needs: sensitivity, epsilon and scale positive and finite; scale at most 2**50 grid steps.

    >>> laplace(sensitivity=1, epsilon=0.5).guarantee.epsilon()
    0.5
    """
    moved = l1(sensitivity, norm=norm, dimension=dimension)
    if (epsilon is None) == (scale is None):
        raise InvalidArgument("laplace takes either epsilon or scale.")
    width = moved / positive("epsilon", epsilon) if scale is None else positive("scale", scale)
    shift = None if on == "reals" else whole(moved)
    integers = None
    if shift is not None:
        event = events.DiscreteLaplace(width, shift)
        integers = OnIntegers(noise=DiscreteLaplace(width), event=event)
    return Additive(
        name="laplace",
        relation=relation,
        integers=needs_integers(integers, on),
        grid=None if on == "integers" else _on_grid(width, moved, grid),
        target=(moved / width, Fraction(0)),
    )


def _on_grid(width: Fraction, moved: Fraction, grid: Number | None) -> OnGrid:
    exponent = grid_exponent(grid, width)
    noise = RoundedLaplace(width / Fraction(2) ** exponent, exponent)
    return OnGrid(noise=noise, event=events.LaplaceNoise(width / moved))
