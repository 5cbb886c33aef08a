"""The Gaussian mechanism."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.calibrate import smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.core import events
from discreet.core.check import positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number, root_down
from discreet.core.grid import grid_exponent
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive, OnGrid, OnIntegers, needs_integers
from discreet.mechanisms.sensitivity import Lattice, Norm, l2_squared, lattice, whole_square
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian

# 16 deviations before the range of a release is left, and 24 before 64 bits are.
LARGEST_SQUARE = 1 << 116


def gaussian(  # noqa: PLR0913 - four ways to say how much, each named
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    sigma: Number | None = None,
    norm: Norm = "l2",
    dimension: int | None = None,
    on: Lattice | None = None,
    grid: Number | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> Additive:
    """Gaussian noise on a number or a vector of bounded L2 sensitivity.

    Give one of: ``epsilon`` and ``delta`` (exact calibration, no classical formula), ``rho``
    (zCDP), ``mu`` (Gaussian DP), or ``sigma`` itself. Reals get the analytic sigma and are rounded
    to ``grid``. Whole numbers get the discrete Gaussian with the smallest sigma that its own exact
    law certifies: it is not exactly Gaussian DP, so the analytic sigma would be a claim, not a
    fact. For ``mu`` they get rounded continuous noise, which is exactly Gaussian DP.
    ``on`` restricts the mechanism to "integers" or "reals".

    Theorem: (epsilon, delta)-DP, rho-zCDP or mu-GDP under ``relation``, as asked.
    Proof: reals by the exact curve of Balle and Wang, rounding being post-processing; integers by
        the divergence of the lattice law; zCDP by Canonne et al., Theorem 4. See theory/mechanisms.
    Source: Balle, Wang 2018; Canonne, Kamath, Steinke 2020; Dong, Roth, Su 2022. B18, C17, K8, K36.
    Needs: all numbers positive and finite, 0 < delta < 1.

    >>> m = gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    >>> m.guarantee.delta(1.0) <= 1e-6
    True
    """
    lattice(on)
    square = l2_squared(sensitivity, norm=norm, dimension=dimension)
    moved = None if on == "reals" else whole_square(square)
    target = _approx_target(epsilon, delta)
    if sum(given is not None for given in (target, rho, mu, sigma)) != 1:
        raise InvalidArgument("gaussian takes epsilon with delta, or rho, or mu, or sigma.")
    integers: OnIntegers | None = None
    if target is not None:
        relative = Fraction(gaussian_sigma(float(target[0]), delta=float(target[1]))) ** 2
        variance = square * relative
        if moved is not None:
            integers = _certified(moved, variance, target)
    elif mu is not None:
        variance = square / positive("mu", mu) ** 2
        if moved is not None:
            event = events.GaussianNoise(1 / positive("mu", mu))
            integers = OnIntegers(noise=_rounded(variance, 0), event=event)
    else:
        variance = _variance(square, rho=rho, sigma=sigma)
        if moved is not None:
            integers = _discrete(variance, moved)
    return Additive(
        name="gaussian",
        relation=relation,
        integers=needs_integers(integers, on),
        grid=None if on == "integers" else _on_grid(variance, square, grid),
        target=target,
    )


def _approx_target(
    epsilon: Number | None, delta: Number | None
) -> tuple[Fraction, Fraction] | None:
    if epsilon is None and delta is None:
        return None
    if epsilon is None or delta is None:
        raise InvalidArgument("gaussian takes epsilon together with delta.")
    return positive("epsilon", epsilon), probability("delta", delta, zero=False, one=False)


def _variance(square: Fraction, *, rho: Number | None, sigma: Number | None) -> Fraction:
    if rho is not None:
        return square / (2 * positive("rho", rho))
    return positive("sigma", sigma) ** 2


def _on_grid(variance: Fraction, square: Fraction, grid: Number | None) -> OnGrid:
    exponent = grid_exponent(grid, root_down(variance))
    return OnGrid(
        noise=_rounded(variance / Fraction(4) ** exponent, exponent),
        event=events.GaussianNoise(root_down(variance / square)),
    )


def _rounded(square: Fraction, exponent: int) -> RoundedGaussian:
    if square > LARGEST_SQUARE:
        raise InvalidArgument("sigma must be at most 2**58 steps: use a coarser grid.")
    return RoundedGaussian(square, exponent)


def _discrete(variance: Fraction, moved: int) -> OnIntegers:
    # At most `moved` coordinates of an integer vector can change: the dimension is bounded by it.
    event = events.DiscreteGaussian(variance, Fraction(moved), moved)
    return OnIntegers(noise=DiscreteGaussian(square=variance), event=event)


def _certified(moved: int, analytic: Fraction, target: tuple[Fraction, Fraction]) -> OnIntegers:
    """The discrete Gaussian with the smallest sigma whose own law keeps (epsilon, delta)."""
    sigma = smallest_scale(
        lambda sigma: _discrete(sigma**2, moved).event,
        target=(float(target[0]), float(target[1])),
        start=root_down(analytic),
    )
    return _discrete(sigma**2, moved)
