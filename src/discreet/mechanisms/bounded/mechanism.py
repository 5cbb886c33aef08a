"""Releases that stay between public bounds: bounded noise, clamping, folding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core._validate import exponent_below, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import EvenWords, charges, releases_follow
from discreet.mechanisms._inputs import (
    LARGEST_INPUT,
    Domain,
    Released,
    check_domain,
    exact_sensitivity,
    read_integers,
    read_reals,
    restore,
)
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.bounded._divergence import BoundedOutputs, spendable, worst_divergence
from discreet.mechanisms.bounded._error import ErrorDistribution, bounded_error
from discreet.mechanisms.mechanism import (
    Certificate,
    CertificateCheck,
    DrawCheck,
    Mechanism,
    target_guarantee,
)
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace, sample_between
from discreet.noise.laplace import LARGEST_SCALE
from discreet.noise.random_source import RandomSource, resolve_rng

# Bits of the grid: steps of the span or of the bounds, and of the scale of the noise, at most.
_SPAN_BITS = 39
_SCALE_BITS = 31
# Beyond this doubles cannot hold the certificate, and there is hardly any noise.
_LARGEST_EPSILON = 256
# True values at which the error is looked at for its largest.
_NODES = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplaceMechanism(Mechanism):
    """Laplace noise conditioned on bounds. Made by `bounded_laplace`."""

    column: SortedColumn
    outputs: BoundedOutputs
    scale: Fraction
    """In steps of the grid."""
    target: tuple[Fraction, Fraction]
    bounds: tuple[float, float]
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        return target_guarantee(*self.target, relation=self.relation)

    @property
    def width(self) -> float:
        """Scale of the noise, in the unit of the data."""
        return float(self.scale) * self.column.step

    def error(self, value: float) -> ErrorDistribution:
        """Compute the distribution of the error for a public or simulated true number.

        Args:
            value: True number. Do not use a private one.

        Returns:
            The distribution, with `root_mean_square`, `mean_absolute` and `size(confidence)`.

        Raises:
            OutOfDomain: The input is not one number.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1)
            >>> mechanism.error(0).root_mean_square < mechanism.error(5).root_mean_square * 2
            True
        """
        return bounded_error(self.steps(value), self.column, float(self.scale))

    @property
    def std(self) -> float:
        """Root of the mean squared error where it is largest."""
        ends = np.linspace(*self.bounds, _NODES)
        return max(self.error(value).root_mean_square for value in ends.tolist())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the error of a release, whatever the true number is.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        # Proof: with g(x) the sum of r^k over 1..x, an error is at most w with probability `(1 +
        #   g(min(w, A)) + g(min(w, B))) / (1 + g(A) + g(B))`, A and B the distances to the
        #   bounds. For A < w it is at least its value at the edge, else at least that in the
        #   middle, because g is concave.
        inside = float(probability("confidence", confidence, zero=False, one=False))
        span, rate = self.column.span, 1 / float(self.scale)
        low, high = -1, span
        while high - low > 1:
            middle = (low + high) // 2
            reached = min(_edge(middle, span, rate), _center(middle, span, rate))
            low, high = (low, middle) if reached >= inside else (middle, high)
        # A real truth is first rounded to the grid.
        width = (high + (self.column.exponent != 0)) * self.column.step
        return -width, width

    def release(self, value: float, *, rng: RandomSource | None = None) -> Released:
        """Release a number with noise, between the bounds.

        Args:
            value: Private number. It is clipped to the bounds, and a missing value counts as their
                middle.
            rng: Random source. By default the operating system's.

        Returns:
            A noisy number between the bounds, an integer on integers.

        Raises:
            OutOfDomain: The input is not one number.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1)
            >>> 0 <= mechanism.release(3) <= 10
            True
        """
        steps = self.steps(value)
        low = np.array([-steps], dtype=np.int64)
        drawn = sample_between(low, low + self.column.span, self.scale, resolve_rng(rng))
        noisy = self.column.number(steps + int(drawn[0]))
        if self.column.exponent == 0:
            return int(noisy)
        return min(max(noisy, self.bounds[0]), self.bounds[1])

    def steps(self, value: float) -> int:
        """A number as steps above the lower bound: private if the number is."""
        given: object = value
        if isinstance(given, str | bytes) or np.ndim(value) != 0:
            raise OutOfDomain("value must be one number: this noise is made for a scalar.")
        # The number of values is public: what is missing counts as the middle of the bounds.
        return int(self.column.sorted([value], rows=1)[0])

    def certify(self) -> Certificate:
        """Recompute the guarantee from the distributions of pairs of inputs.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        epsilon, delta = map(float, self.target)
        outputs = replace(self.outputs, span=self.column.span)
        found, route = worst_divergence(outputs, self.scale, epsilon)
        check = CertificateCheck(
            part=f"scale {short(self.width, digits=6)} on {self.column.span + 1} outputs",
            epsilon=epsilon,
            claimed=delta,
            exact=found,
            route=route,
        )
        span = self.column.span
        centers = dict.fromkeys((0, min(self.outputs.shift, span), span // 2))
        return Certificate(
            mechanism=repr(self),
            guarantee=self.guarantee,
            checks=(check,),
            drawn=tuple(self._drawn(center) for center in centers),
        ).demand()

    def _drawn(self, center: int) -> DrawCheck:
        """Releases of one true number, against the noise conditioned on the bounds."""
        law = BoundedDiscreteLaplace(self.scale, lower=-center, upper=self.column.span - center)
        value = self.column.number(center)
        step, first = Fraction(2) ** self.column.exponent, self.column.first

        def release(rng: RandomSource) -> int:
            found = self.release(value, rng=rng)
            if found in self.bounds:  # which need not be on the grid
                return (0 if found == self.bounds[0] else self.column.span) - center
            return round(Fraction(found) / step) - first - center

        return releases_follow(f"releases {center} steps from the bound", release, law.cdf)

    def __repr__(self) -> str:
        low, high = self.bounds
        return (
            f"bounded_laplace({self.guarantee!r}; scale {short(self.width)} on [{low:g}, {high:g}])"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedOutput(Mechanism):
    """A noise mechanism whose outputs are brought back between bounds.

    Made by `clamp_output` and `reflect_output`.
    """

    inner: AdditiveMechanism | ScalarNoise
    lower: float
    upper: float
    folds: bool

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release: that of the inner mechanism."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Upper bound of the standard deviation of the error."""
        return min(self.inner.std, float(self.upper - self.lower))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the error of a release, whatever the true number is.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.clamp_output(
            ...     discreet.laplace(sensitivity=1, epsilon=1), lower=0, upper=10
            ... )
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        high = min(self.inner.interval(confidence)[1], float(self.upper - self.lower))
        return -high, high

    def release(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Released:
        """Release noisy numbers between the bounds.

        Args:
            value: Private number or vector, as the inner mechanism takes it. It is clipped to the
                bounds.
            rng: Random source. By default the operating system's.

        Returns:
            Noisy numbers between the bounds, integers if noise and bounds are integers.

        Raises:
            OutOfDomain: The input is not a number or a vector that the inner mechanism accepts.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.clamp_output(
            ...     discreet.laplace(sensitivity=1, epsilon=1), lower=0, upper=10
            ... )
            >>> 0 <= mechanism.release(3) <= 10
            True
        """
        return self._brought_back(self.inner.release(self._inside(value), rng=rng))

    def _brought_back(self, noisy: Released) -> Released:
        if self.folds:
            turn = np.mod(np.asarray(noisy) - self.lower, 2 * (self.upper - self.lower))
            noisy = self.lower + np.minimum(turn, 2 * (self.upper - self.lower) - turn)
        out = np.clip(np.asarray(noisy), self.lower, self.upper)
        return out if out.shape else out.item()

    def _inside(self, value: ArrayLike) -> Released:
        """Private numbers, read as the noise reads them, between the bounds."""
        inner = self.inner
        if isinstance(inner, ScalarNoise):
            exponent = inner.scale.exponent
        elif inner.reals is not None:
            exponent = inner.reals.noise.exponent
        else:
            steps, shape = read_integers(value, rounds=inner.rounds)
            return restore(np.clip(steps, math.ceil(self.lower), math.floor(self.upper)), shape)
        reals, shape = read_reals(value, exponent=exponent)
        return restore(np.clip(reals, self.lower, self.upper), shape)

    def certify(self) -> Certificate:
        """Recompute the guarantee from exact distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.clamp_output(
            ...     discreet.laplace(sensitivity=1, epsilon=1), lower=0, upper=10
            ... )
            >>> mechanism.certify().holds
            True
        """
        inner = self.inner.certify()
        drawn = (
            *inner.drawn,
            self._told(),
            charges("what is charged", self.guarantee, self.inner.guarantee),
        )
        return replace(inner, guarantee=self.guarantee, drawn=drawn).demand()

    def _told(self) -> DrawCheck:
        """Releases with the same words must be what becomes of the same noisy numbers."""
        differ = 0
        for value in (self.lower, (self.lower + self.upper) / 2, self.upper):
            noisy = self.inner.release(self._inside(value), rng=EvenWords())
            found = self.release(value, rng=EvenWords())
            differ += not np.array_equal(self._brought_back(noisy), found)
        return DrawCheck(
            part="releases between the bounds",
            found=float(differ),
            allowed=0.0,
            route="releases that are not what becomes of the noisy number",
        )

    def __repr__(self) -> str:
        name = "reflect_output" if self.folds else "clamp_output"
        return f"{name}({self.inner!r}, [{self.lower:g}, {self.upper:g}])"


def clamp_output(
    mechanism: AdditiveMechanism | ScalarNoise, *, lower: Number, upper: Number
) -> BoundedOutput:
    """Clamp the outputs of a noise mechanism to public bounds.

    Outputs below `lower` become `lower`, and outputs above `upper` become `upper`. Inputs are
    clamped first.

    Args:
        mechanism: Additive mechanism, for example made by `laplace`.
        lower: Smallest output.
        upper: Largest output.

    Returns:
        A mechanism with the same guarantee. Its errors are never larger.

    Raises:
        InvalidArgument: `lower` is not below `upper`.
        Unsupported: A bound is beyond ±2**60.

    Privacy:
        The guarantee is that of `mechanism`, because clamping is post-processing. The bounds must
        not come from the data.

    Examples:
        >>> import discreet
        >>> noise = discreet.laplace(sensitivity=1, epsilon=1)
        >>> share = discreet.clamp_output(noise, lower=0, upper=10)
        >>> 0 <= share.release(0) <= 10
        True

    See Also:
        `reflect_output`, `bounded_laplace`.

    References:
        [Proof](../theory/theorems.md#mechanisms.bounded.mechanism.clamp_output).
    """
    # Theorem: the guarantee of `mechanism`; errors never grow.
    # Proof: post-processing. The truth lies between the bounds (or is first set to them, which
    #   moves neighbors apart by no more than before), and clamping to an interval that holds it
    #   takes no number farther away.
    # Source: B44, B54.
    # Needs: bounds that are public.
    low, high = _ends(lower, upper)
    return BoundedOutput(inner=mechanism, lower=low, upper=high, folds=False)


def reflect_output(
    mechanism: AdditiveMechanism | ScalarNoise, *, lower: Number, upper: Number
) -> BoundedOutput:
    """Reflect the outputs of a noise mechanism at public bounds.

    An output beyond a bound is mirrored at this bound. Unlike clamped outputs, reflected outputs do
    not accumulate at the bounds.

    Args:
        mechanism: Additive mechanism, for example made by `laplace`.
        lower: Smallest output.
        upper: Largest output.

    Returns:
        A mechanism with the same guarantee. Its errors are never larger.

    Raises:
        InvalidArgument: `lower` is not below `upper`.
        Unsupported: A bound is beyond ±2**60.

    Privacy:
        The guarantee is that of `mechanism`, because reflection is post-processing. The bounds must
        not come from the data.

    Examples:
        >>> import discreet
        >>> noise = discreet.laplace(sensitivity=1, epsilon=1)
        >>> 0 <= discreet.reflect_output(noise, lower=0, upper=10).release(0) <= 10
        True

    See Also:
        `clamp_output`, `bounded_laplace`.

    References:
        [Proof](../theory/theorems.md#mechanisms.bounded.mechanism.reflect_output).
    """
    # Theorem: the guarantee of `mechanism`; errors never grow.
    # Proof: post-processing. Reflection changes no distance to more than it was, and leaves the
    #   truth in place.
    # Source: B44, B54.
    # Needs: bounds that are public.
    low, high = _ends(lower, upper)
    return BoundedOutput(inner=mechanism, lower=low, upper=high, folds=True)


def bounded_laplace(
    *,
    lower: Number,
    upper: Number,
    sensitivity: Number,
    epsilon: Number,
    delta: Number = 0,
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> BoundedLaplaceMechanism:
    """Create a Laplace mechanism whose outputs stay between two bounds.

    The noise distribution is conditioned on the bounds, so its scale must be larger than that of
    plain Laplace noise. Clamping a Laplace mechanism is usually more accurate; see
    `compare_bounded_noise`.

    Args:
        lower: Smallest output.
        upper: Largest output.
        sensitivity: Largest change of the number between neighboring data sets.
        epsilon: Privacy loss, at most 256.
        delta: Probability parameter of (epsilon, delta)-DP. Values below 2**-36 are not used.
        domain: `"integers"` or `"reals"`. By default integers if the bounds and the sensitivity are
            integers, otherwise reals.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism with `release(value)`, `error(value)`, `interval(confidence)`, `guarantee` and
        `certify()`.

    Raises:
        InvalidArgument: The bounds, the budget or the domain are not valid.

    Privacy:
        The mechanism is (epsilon, delta)-DP. The scale is calibrated for all inputs between the
        bounds.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=1)
        >>> 0 <= mechanism.release(0) <= 10
        True

    See Also:
        `clamp_output`, `reflect_output`, [bounded outputs](../how-to/bounded.md).

    References:
        Holohan, Antonatos, Braghin and Mac Aonghusa (2020).
        [Proof](../theory/theorems.md#mechanisms.bounded.mechanism.bounded_laplace).
    """
    # Theorem: (epsilon, delta)-DP under `relation`.
    # Proof: at delta 0 the worst pair of centers is known, and its loss is compared with epsilon in
    #   whole numbers (`BoundedOutputs.keeps_pure`). Otherwise all centers are covered by branch and
    #   bound (`BoundedOutputs.keeps`). The truth is rounded to a public grid, which moves
    #   neighbors to at most `ceil(sensitivity / step)` steps, and draws are exact.
    # Source: Holohan, Antonatos, Braghin, Mac Aonghusa 2020; B44, B54.
    # Needs: public bounds; one number. A delta below 2**-36, or beside an epsilon above 64, is not
    #   used: the release is pure.
    low, high = check.bounds(lower, upper)
    eps, dlt = positive("epsilon", epsilon), probability("delta", delta, one=False)
    if eps > _LARGEST_EPSILON:
        raise InvalidArgument(f"epsilon must be at most {_LARGEST_EPSILON}, got {epsilon}.")
    moved = min(exact_sensitivity(sensitivity), high - low)
    column = _column((low, high), moved, eps, domain)
    shift = min(math.ceil(moved / Fraction(2) ** column.exponent), column.span)
    outputs = BoundedOutputs(span=column.span, shift=shift)
    spent = spendable(eps, dlt)
    scale = outputs.calibrate(eps, spent)
    if scale > LARGEST_SCALE:
        raise InvalidArgument("epsilon is too small: the noise must have at most 2**33 steps.")
    return BoundedLaplaceMechanism(
        column=column,
        outputs=outputs,
        scale=scale,
        target=(eps, spent),
        bounds=(float(low), float(high)),
        relation=relation,
    )


def _column(
    bounds: tuple[Fraction, Fraction], moved: Fraction, epsilon: Fraction, domain: Domain | None
) -> SortedColumn:
    """Whole numbers if all is whole, else the finest grid that the sampler can hold."""
    check_domain(domain)
    low, high = bounds
    if domain != "reals" and all(number.denominator == 1 for number in (low, high, moved)):
        return SortedColumn.of(low, high, 1)
    if domain == "integers":
        raise InvalidArgument("domain='integers' needs whole bounds and a whole sensitivity.")
    largest = max(abs(low), abs(high), high - low)
    exponent = max(
        exponent_below(moved),
        exponent_below(largest, resolution=_SPAN_BITS) + 1,
        exponent_below(moved / epsilon, resolution=_SCALE_BITS) + 1,
    )
    return SortedColumn.of(low, high, Fraction(2) ** exponent)


def _ends(lower: Number, upper: Number) -> tuple[float, float]:
    """Bounds as whole numbers where they are, so that whole releases stay whole."""
    low, high = check.bounds(lower, upper)
    if max(abs(low), abs(high)) > LARGEST_INPUT // 2:
        raise Unsupported("Bounds must lie within -2**60 and 2**60.")
    if low.denominator == high.denominator == 1:
        return low.numerator, high.numerator
    return float(low), float(high)


def _edge(w: int, span: int, rate: float) -> float:
    """Mass of errors up to w where the truth is a bound."""
    return float(np.expm1(-rate * (w + 1)) / np.expm1(-rate * (span + 1)))


def _center(w: int, span: int, rate: float) -> float:
    """Mass of errors up to w in the middle, where it is smallest if w reaches no bound."""
    half = span / 2
    if w > half:
        return 1.0

    def both_sides(x: float) -> float:
        return float(1 - np.expm1(-rate * x) * 2 * np.exp(-rate) / -np.expm1(-rate))

    return both_sides(w) / both_sides(half)
