"""The Laplace and the Gaussian mechanism, on whole numbers and on reals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from discreet.accounting.calibrate import calibrate, smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core._validate import granularity_exponent, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._drawn import MANY, draws_follow
from discreet.mechanisms._inputs import (
    LARGEST_INPUT,
    Domain,
    Norm,
    Released,
    add_clamped,
    check_domain,
    clamp_steps,
    default_domain,
    l1,
    l2_squared,
    largest_real,
    read_integers,
    read_reals,
    restore,
    whole,
    whole_square,
)
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import LARGEST_NOISE_SCALE, DiscreteLaplace, RoundedLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Additive noise ───────────────────────────────────────────────────────────────────────────────
# Laplace and Gaussian noise on whole numbers and on reals.
#
# Where outputs lie is settled when a mechanism is made, never by the type of a private value: a
# mean is an int or a float by whether a sum can be divided. On integers, numbers are rounded, get
# integer noise and stay whole. On reals, they get the ideal continuous noise, and
# the exact sum is rounded to a public grid, a power of two far below the noise: post-processing,
# so nothing is added to the sensitivity and no low-order bit of the input survives.


# Reals are released in pieces, so that a large release needs little memory beyond its result.
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerMechanism:
    """Integer noise for whole numbers."""

    noise: DiscreteLaplace | DiscreteGaussian | RoundedGaussian
    event: events.DiscreteLaplaceEvent | events.DiscreteGaussianEvent | events.GaussianEvent
    step: ClassVar[float] = 1.0

    @property
    def label(self) -> str:
        """Where the outputs lie, and the noise scale there."""
        if isinstance(self.noise, DiscreteLaplace):
            return f"integers with scale {float(self.noise.scale):.9g}"
        return f"integers with sigma {math.sqrt(self.noise.square):.9g}"

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        if isinstance(self.noise, RoundedGaussian):
            return math.sqrt(self.noise.square + Fraction(1, 12))
        return self.noise.std

    def add(self, whole: Ints, rng: RandomSource) -> Ints:
        """The noisy values."""
        if isinstance(self.noise, RoundedGaussian):
            return add_clamped(whole, self.noise.add(np.zeros(len(whole)), rng))
        return add_clamped(whole, self.noise.sample(len(whole), rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMechanism:
    """Continuous noise, rounded to multiples of a power of two."""

    noise: RoundedLaplace | RoundedGaussian
    event: events.LaplaceEvent | events.GaussianEvent

    @property
    def step(self) -> float:
        """Distance of neighboring outputs."""
        return math.ldexp(1.0, self.noise.exponent)

    @property
    def label(self) -> str:
        """Where the outputs lie, and the noise scale there."""
        name = "scale" if isinstance(self.noise, RoundedLaplace) else "sigma"
        return f"reals in steps of {self.step:.3g} with {name} {self.scale:.9g}"

    @property
    def scale(self) -> float:
        """Laplace scale, or Gaussian sigma."""
        if isinstance(self.noise, RoundedLaplace):
            return float(self.noise.scale) * self.step
        return math.sqrt(self.noise.square) * self.step

    @property
    def std(self) -> float:
        """Standard deviation of the noise (rounding adds less than a 10**-12 part)."""
        return self.scale * (math.sqrt(2) if isinstance(self.noise, RoundedLaplace) else 1.0)

    def add(self, reals: NDArray[Any], rng: RandomSource) -> Floats:
        """The noisy values."""
        out = np.empty(len(reals))
        for start in range(0, len(reals), _PIECE):
            piece = slice(start, start + _PIECE)
            steps = clamp_steps(self.noise.add(reals[piece], rng), exponent=self.noise.exponent)
            np.ldexp(steps.astype(np.float64), self.noise.exponent, out=out[piece])
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveMechanism(Mechanism):
    """Independent noise on each coordinate. Made by `laplace` and `gaussian`."""

    name: str
    relation: NeighboringRelation
    integers: IntegerMechanism | None
    """None for a mechanism on reals."""
    reals: RealMechanism | None
    """None for a mechanism on integers."""
    sensitivity: Fraction
    """In the norm of the noise: L1 for Laplace noise; L2, squared, for Gaussian noise."""
    rounds: bool = True
    """Whether vectors of reals may be rounded to integers, coordinate by coordinate."""
    target: tuple[Fraction, Fraction] | None = None
    """The (epsilon, delta) it was calibrated for, if any."""

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if (self.integers is None) == (self.reals is None):
            raise InvalidArgument("An additive mechanism is either on integers or on reals.")

    @property
    def part(self) -> IntegerMechanism | RealMechanism:
        """The noise, on integers or on reals."""
        part = self.integers or self.reals
        assert part is not None  # noqa: S101 - one of them is there
        return part

    @property
    def domain(self) -> Domain:
        """Where outputs lie."""
        return "reals" if self.integers is None else "integers"

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        return Guarantee(self.part.event, self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.part.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise, symmetrically.

        The true number lies between the released number minus the upper bound and the released
        number minus the lower bound with this probability. On integers this holds for the rounded
        true number.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = divergence.half_width(self.part.noise, inside) * self.part.step
        return -high, high

    def release(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Released:
        """Add noise to a number or a vector.

        The type of the private value does not change the type of the output.

        Args:
            value: Private number or vector. On integers it is rounded, halves up. Numbers beyond
                2**61 steps, and infinities, count as the largest one.
            rng: Random source. By default the operating system's.

        Returns:
            A Python number for a number, or an array of the same shape. Integers on integers,
            floats on reals.

        Raises:
            OutOfDomain: The input contains NaN, missing values or text, or is a vector of reals on
                integers that were not declared.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
            >>> isinstance(mechanism.release(1_234), int)
            True
        """
        source = resolve_rng(rng)
        if self.integers is not None:
            steps, shape = read_integers(value, rounds=self.rounds)
            return restore(self.integers.add(steps, source), shape)
        assert self.reals is not None  # noqa: S101 - one of them is there
        reals, shape = read_reals(value, exponent=self.reals.noise.exponent)
        return restore(self.reals.add(reals, source), shape)

    def certify(self) -> Certificate:
        """Recompute the guarantee from the exact distribution of the noise.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
            >>> mechanism.certify().holds
            True
        """
        checks = [self._check(*point) for point in self._points()]
        certificate = Certificate(
            mechanism=self.name,
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=tuple(self._drawn(where) for where in (0, 1)),
        )
        return certificate.demand()

    def _check(self, epsilon: float, delta: float | None) -> CertificateCheck:
        exact, route = divergence.exact_delta(self._added, epsilon)
        return CertificateCheck(
            part=self.part.label,
            epsilon=epsilon,
            claimed=self.guarantee.delta(epsilon) if delta is None else delta,
            exact=exact,
            route=route,
        )

    @property
    def _added(self) -> events.Event:
        """What happens to neighbors, by the noise and the sensitivity alone: not as claimed."""
        part, noise = self.part, self.part.noise
        step = Fraction(2) ** (part.noise.exponent if isinstance(part, RealMechanism) else 0)
        match noise:
            case DiscreteLaplace():
                return events.DiscreteLaplaceEvent(noise.scale, math.ceil(self.sensitivity))
            case DiscreteGaussian():
                # Of an integer vector at most so many coordinates can change.
                moved = round(self.sensitivity)
                return events.DiscreteGaussianEvent(noise.square, Fraction(moved), moved)
            case RoundedLaplace():
                return events.LaplaceEvent(noise.scale * step / self.sensitivity)
            case _:
                sigma = root_down(noise.square * step**2 / self.sensitivity)
                return events.GaussianEvent(sigma)

    def _drawn(self, neighbor: int) -> DrawCheck:
        """Releases of one number, or of one a sensitivity away, against the law of the noise."""
        part = self.part
        moved = float(self.sensitivity)
        many = MANY if part.std < _WIDE * part.step else _FEWER
        if not isinstance(part.noise, DiscreteLaplace | RoundedLaplace):
            moved = math.sqrt(moved)
        name = f"noise {'one sensitivity from' if neighbor else 'at'} zero"
        if isinstance(part, IntegerMechanism):
            whole_number = min(math.ceil(moved), LARGEST_INPUT >> 1) * neighbor
            given = np.full(many, whole_number, dtype=np.int64)
            return draws_follow(
                name, lambda rng: self.release(given, rng=rng) - given, _law(part.noise, 0.0)
            )
        exponent = part.noise.exponent
        real = min(moved, largest_real(exponent) / 4) * neighbor
        center = math.ldexp(real, -exponent)
        start = math.floor(center)

        def draw(rng: RandomSource) -> Ints:
            noisy = self.release(np.full(many, real), rng=rng)
            steps: Ints = np.ldexp(noisy, -exponent).astype(np.int64)
            return steps - start

        return draws_follow(name, draw, _law(part.noise, center - start))

    def _points(self) -> list[tuple[float, float | None]]:
        """Where to compare: at the target if there is one, and along the curve."""
        if self.target is None:
            worth = self.guarantee.epsilon(1e-6)
            shares = (0.0, 0.5, 1.0) if math.isfinite(worth) else ()
            return [(worth * share, None) for share in shares] or [(0.0, None)]
        epsilon, delta = map(float, self.target)
        return [(0.0, None), (epsilon / 2, None), (epsilon, delta)]

    def __repr__(self) -> str:
        return f"{self.name}({self._worth()}; std {short(self.std)}; on {self.part.label})"

    def _worth(self) -> str:
        if self.target is None:
            return f"rho {short(float(rho_of(self.part.event)))}, {self.relation.value}"
        epsilon, delta = self.target
        also = f", delta {float(delta):g}" if delta else ""
        return f"epsilon {float(epsilon):g}{also}, {self.relation.value}"


def _law(
    noise: DiscreteLaplace | DiscreteGaussian | RoundedLaplace | RoundedGaussian, center: float
) -> Callable[[Ints], Floats]:
    """The cumulated law of noise, in steps, rounded around a center between two steps."""
    if isinstance(noise, DiscreteLaplace | DiscreteGaussian):
        return noise.cdf
    if isinstance(noise, RoundedLaplace):
        scale = float(noise.scale)

        def laplace_cdf(k: Ints) -> Floats:
            z = (k + 0.5 - center) / scale
            tail: Floats = np.exp(-np.abs(z)) / 2
            return np.where(z < 0, tail, 1 - tail)

        return laplace_cdf
    sigma = math.sqrt(noise.square)

    def gaussian_cdf(k: Ints) -> Floats:
        below: Floats = special.ndtr((k + 0.5 - center) / sigma)
        return below

    return gaussian_cdf


def _declared(
    domain: Domain | None, *, sensitivity: Number, moved: Fraction, granularity: Number | None
) -> Domain:
    """Where outputs lie: as declared, or by the sensitivity."""
    check_domain(domain)
    if domain == "integers" and granularity is not None:
        raise InvalidArgument("granularity is for reals: leave it out with domain='integers'.")
    return domain or default_domain(sensitivity, moved, granularity)


def _may_round(domain: Domain | None, norm: Norm) -> bool:
    """Whether vectors of reals may be rounded: if declared, or where each coordinate is bounded.

    In the maximum norm a whole sensitivity bounds each rounded coordinate, too.
    """
    return domain is not None or norm == "linf"


def _needs_whole(moved: int | None) -> int:
    """Refuse a mechanism for integers whose sensitivity is not whole."""
    if moved is None:
        raise InvalidArgument(
            "domain='integers' needs a whole sensitivity (squared, for Gaussian)."
        )
    return moved


# ── The Gaussian mechanism ───────────────────────────────────────────────────────────────────────
# The Gaussian mechanism.


# 16 deviations before the range of a release is left, and 24 before 64 bits are.
LARGEST_SQUARE = 1 << 116
# Below it a draw is accepted once in a hundred tries, and less: it would seem not to return.
_SMALLEST_SQUARE = Fraction(1, 1 << 12)
# Doubles hold the certificate while the squares of their ratio are not below this.
_SMALLEST_RATIO = Fraction(1, 10**100)
# Noise of more steps than this is decided draw by draw in whole numbers: fewer are looked at.
_WIDE = 1 << 44
_FEWER = 1 << 10


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
    domain: Domain | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AdditiveMechanism:
    """Create a Gaussian mechanism for a number or a vector.

    Give one of: `epsilon` with `delta`, `rho`, `mu`, or `sigma`. The noise is calibrated with the
    exact distribution. On integers it is discrete Gaussian noise, or, for `mu`, rounded continuous
    noise.

    Args:
        sensitivity: Largest change of the value between neighboring data sets, in `norm`.
        epsilon: Privacy loss in (epsilon, delta)-DP.
        delta: Probability parameter of (epsilon, delta)-DP, between 0 and 1.
        rho: Privacy loss in zero-concentrated DP.
        mu: Privacy loss in Gaussian DP.
        sigma: Standard deviation of the noise.
        norm: Norm of the sensitivity: `"l2"`, `"l1"` or `"linf"`. For `"linf"` also give
            `dimension`.
        dimension: Length of the vector.
        domain: `"integers"` or `"reals"`. By default integers if the sensitivity is an integer and
            no granularity is given, otherwise reals. For integers the squared sensitivity must be
            an integer.
        granularity: Spacing of real-valued outputs, a power of two. The default is far below the
            noise.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism with `release(value)`, `guarantee`, `std`, `interval(confidence)` and
        `certify()`.

    Raises:
        InvalidArgument: Not exactly one budget is given, a number is outside its range, or the
            sensitivity does not fit the domain.

    Privacy:
        The mechanism satisfies the stated (epsilon, delta)-DP, zCDP or GDP. Sampling is exact, so
        the guarantee holds for the released bits. discreet cannot check `sensitivity` for you.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.gaussian(sensitivity=1, rho=0.5)
        >>> round(mechanism.std, 3)
        1.0
        >>> mechanism.guarantee.epsilon(1e-6) < 5.3
        True

    See Also:
        `laplace`, `best_additive_noise`, [choose noise](../how-to/choose-noise.md).

    References:
        Balle and Wang (2018). Canonne, Kamath and Steinke (2020). Dong, Roth and Su (2022).
        [Proof](../theory/theorems.md#mechanisms.additive.gaussian).
    """
    # Theorem: (epsilon, delta)-DP, rho-zCDP or mu-GDP under `relation`, as asked.
    # Proof: reals by the exact curve of Balle and Wang, rounding being post-processing; integers by
    #   the divergence of the lattice law; zCDP by Canonne et al., Theorem 4. See theory/mechanisms.
    # Source: Balle, Wang 2018; Canonne, Kamath, Steinke 2020; Dong, Roth, Su 2022. B18, C17, K8,
    #   K36.
    # Needs: all numbers positive and finite, 0 < delta < 1.
    square = l2_squared(sensitivity, norm=norm, dimension=dimension)
    where = _declared(domain, sensitivity=sensitivity, moved=square, granularity=granularity)
    target = _approx_target(epsilon, delta)
    if sum(given is not None for given in (target, rho, mu, sigma)) != 1:
        raise InvalidArgument("gaussian takes epsilon with delta, or rho, or mu, or sigma.")
    if target is not None:
        relative = Fraction(gaussian_sigma(float(target[0]), delta=float(target[1]))) ** 2
        variance = square * relative
    elif mu is not None:
        variance = square / positive("mu", mu) ** 2
    else:
        variance = _variance(square, rho=rho, sigma=sigma)
    integers, reals = None, None
    if where == "reals":
        reals = _real_gaussian(variance, square, granularity)
    else:
        moved = _needs_whole(whole_square(square))
        if target is not None:
            integers = _certified(moved, variance, target)
        elif mu is not None:
            event = events.GaussianEvent(1 / positive("mu", mu))
            integers = IntegerMechanism(noise=_rounded(variance, 0), event=event)
        else:
            integers = _discrete(variance, moved)
    return AdditiveMechanism(
        name="gaussian",
        relation=relation,
        integers=integers,
        reals=reals,
        sensitivity=square,
        rounds=_may_round(domain, norm),
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


def _real_gaussian(
    variance: Fraction, square: Fraction, granularity: Number | None
) -> RealMechanism:
    if not _SMALLEST_RATIO <= variance / square <= 1 / _SMALLEST_RATIO:
        raise InvalidArgument("sigma must lie within 1e-50 and 1e50 sensitivities.")
    exponent = granularity_exponent(granularity, root_down(variance))
    return RealMechanism(
        noise=_rounded(variance / Fraction(4) ** exponent, exponent),
        event=events.GaussianEvent(root_down(variance / square)),
    )


def _rounded(square: Fraction, exponent: int) -> RoundedGaussian:
    if square > LARGEST_SQUARE:
        raise InvalidArgument("sigma must be at most 2**58 steps: use a coarser grid.")
    if square < _SMALLEST_SQUARE:
        raise InvalidArgument("sigma must be at least 2**-6 steps: this is no noise at all.")
    return RoundedGaussian(square, exponent)


def _discrete(variance: Fraction, moved: int) -> IntegerMechanism:
    # At most `moved` coordinates of an integer vector can change: the dimension is bounded by it.
    event = events.DiscreteGaussianEvent(variance, Fraction(moved), moved)
    return IntegerMechanism(noise=DiscreteGaussian(square=variance), event=event)


def _certified(
    moved: int, analytic: Fraction, target: tuple[Fraction, Fraction]
) -> IntegerMechanism:
    """The discrete Gaussian with the smallest sigma whose own law keeps (epsilon, delta)."""
    sigma = smallest_scale(
        lambda sigma: _discrete(sigma**2, moved).event,
        target=(float(target[0]), float(target[1])),
        start=root_down(analytic),
    )
    return _discrete(sigma**2, moved)


# ── The Laplace mechanism ────────────────────────────────────────────────────────────────────────


def laplace(  # noqa: PLR0913 - each has a default and a name
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number = 0,
    scale: Number | None = None,
    norm: Norm = "l1",
    dimension: int | None = None,
    domain: Domain | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AdditiveMechanism:
    """Create a Laplace mechanism for a number or a vector.

    On integers the mechanism rounds its input, adds discrete Laplace noise and returns integers. On
    reals it adds continuous noise and rounds the exact sum to a multiple of `granularity`.

    Args:
        sensitivity: Largest change of the value between neighboring data sets, in `norm`.
        epsilon: Privacy loss. Give either `epsilon` or `scale`.
        delta: If positive, calibrate the noise to (epsilon, delta)-DP, which needs slightly less
            noise.
        scale: Scale of the Laplace distribution, as an alternative to `epsilon`.
        norm: Norm of the sensitivity: `"l1"`, `"l2"` or `"linf"`. For `"l2"` and `"linf"` also give
            `dimension`.
        dimension: Length of the vector.
        domain: `"integers"` or `"reals"`. By default integers if the sensitivity is an integer and
            no granularity is given, otherwise reals. For a vector of reals that is to be rounded,
            declare `"integers"` and give the sensitivity of the rounded vector.
        granularity: Spacing of real-valued outputs, a power of two. The default is far below the
            noise.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism with `release(value)`, `guarantee`, `std`, `interval(confidence)` and
        `certify()`.

    Raises:
        InvalidArgument: Both or neither of `epsilon` and `scale` are given, a number is outside its
            range, or the sensitivity does not fit the domain.

    Privacy:
        The mechanism is epsilon-DP with epsilon = sensitivity / scale, or (epsilon, delta)-DP if
        you give `delta`. Sampling is exact, so the guarantee holds for the released bits. discreet
        cannot check `sensitivity` for you.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
        >>> mechanism.guarantee.epsilon()
        0.5
        >>> mechanism.interval(0.95)
        (-6.0, 6.0)
        >>> count = mechanism.release(1_234)

    See Also:
        `gaussian`, `best_additive_noise`, [choose noise](../how-to/choose-noise.md).

    References:
        Dwork, McSherry, Nissim and Smith (2006). Ghosh, Roughgarden and Sundararajan (2009).
        [Proof](../theory/theorems.md#mechanisms.additive.laplace).
    """
    # Theorem: the release is epsilon-DP under `relation` with epsilon = sensitivity / scale; with a
    #   delta, (epsilon, delta)-DP by the exact profile, whose worst case is one coordinate.
    # Proof: the density (or mass) at y is proportional to exp(-|y - x|_1 / scale), and the triangle
    #   inequality bounds the ratio by exp(|x - x'|_1 / scale). The noise is sampled exactly and
    #   rounding the exact sum to the grid is post-processing. See theory/mechanisms.
    # Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. B16, A2.
    # Needs: sensitivity, epsilon and scale positive and finite; scale at most 2**55 steps.
    moved = l1(sensitivity, norm=norm, dimension=dimension)
    where = _declared(domain, sensitivity=sensitivity, moved=moved, granularity=granularity)
    shift = _needs_whole(whole(moved)) if where == "integers" else None
    if (epsilon is None) == (scale is None):
        raise InvalidArgument("laplace takes either epsilon or scale.")
    allowed = probability("delta", delta, one=False)
    if scale is not None:
        width = positive("scale", scale)
        target = (moved / width, Fraction(0))
    else:
        target = (positive("epsilon", epsilon), allowed)
        width = _width("laplace" if shift is None else "discrete laplace", moved, target)
    integers, reals = None, None
    if shift is None:
        reals = _real_laplace(width, moved, granularity)
    else:
        event = events.DiscreteLaplaceEvent(width, shift)
        integers = IntegerMechanism(noise=DiscreteLaplace(width), event=event)
    return AdditiveMechanism(
        name="laplace",
        relation=relation,
        integers=integers,
        reals=reals,
        sensitivity=moved,
        rounds=_may_round(domain, norm),
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


def _real_laplace(width: Fraction, moved: Fraction, granularity: Number | None) -> RealMechanism:
    exponent = granularity_exponent(granularity, width)
    if width > LARGEST_NOISE_SCALE * Fraction(2) ** exponent:
        # Beyond, the noise leaves the largest release, 2**62 steps: what is drawn would be less.
        raise InvalidArgument(
            "granularity is too fine for this noise: its scale must be at most 2**55 steps."
        )
    noise = RoundedLaplace(width / Fraction(2) ** exponent, exponent)
    return RealMechanism(noise=noise, event=events.LaplaceEvent(width / moved))
