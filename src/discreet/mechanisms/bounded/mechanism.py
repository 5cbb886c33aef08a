"""Releases that stay between public bounds: bounded noise, clamping, folding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core._validate import exponent_below, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import (
    LARGEST_INPUT,
    Domain,
    Released,
    check_domain,
    exact_sensitivity,
    read,
)
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.bounded._divergence import BoundedOutputs, spendable, worst_divergence
from discreet.mechanisms.bounded._error import ErrorDistribution, bounded_error
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism, target_guarantee
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.noise.bounded_laplace import sample_between
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
    """Laplace noise conditioned on the bounds. Made by `bounded_laplace`."""

    column: SortedColumn
    outputs: BoundedOutputs
    scale: Fraction
    """In steps of the grid."""
    target: tuple[Fraction, Fraction]
    bounds: tuple[float, float]
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return target_guarantee(*self.target, relation=self.relation)

    @property
    def width(self) -> float:
        """Scale of the noise, in the unit of the data."""
        return float(self.scale) * self.column.step

    def error(self, value: float) -> ErrorDistribution:
        """The law of the error where ``value`` is true: for public or made-up values."""
        return bounded_error(self.steps(value), self.column, float(self.scale))

    @property
    def std(self) -> float:
        """Root of the mean squared error where it is largest."""
        ends = np.linspace(*self.bounds, _NODES)
        return max(self.error(value).root_mean_square for value in ends.tolist())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the error with probability at least ``confidence``, whatever is true.

        Proof: with g(x) the sum of r^k over 1..x, an error is at most w with probability ``(1 +
            g(min(w, A)) + g(min(w, B))) / (1 + g(A) + g(B))``, A and B the distances to the
            bounds. For A < w it is at least its value at the edge, else at least that in the
            middle, because g is concave.
        """
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
        """A noisy number between the bounds; a whole one on whole bounds."""
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
        """Recompute the divergence from the laws of pairs of centers, both orders."""
        epsilon, delta = map(float, self.target)
        found, route = worst_divergence(self.outputs, self.scale, epsilon)
        check = CertificateCheck(
            part=f"scale {self.width:.6g} on {self.column.span + 1} outputs",
            epsilon=epsilon,
            claimed=delta,
            exact=found,
            route=route,
        )
        return Certificate(mechanism=repr(self), guarantee=self.guarantee, checks=(check,)).demand()

    def __repr__(self) -> str:
        low, high = self.bounds
        return f"bounded_laplace({self.guarantee!r}; scale {self.width:.4g} on [{low:g}, {high:g}])"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedOutput(Mechanism):
    """Any additive noise, brought back between public bounds. Made by `clamped` and `folded`."""

    inner: AdditiveMechanism | ScalarNoise
    lower: float
    upper: float
    folds: bool

    @property
    def guarantee(self) -> Guarantee:
        """That of the noise: what is done afterwards is free."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """At most this: neither clamping nor folding takes a release farther from the truth."""
        return min(self.inner.std, float(self.upper - self.lower))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the error with probability at least ``confidence``, whatever is true."""
        high = min(self.inner.interval(confidence)[1], float(self.upper - self.lower))
        return -high, high

    def release(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Released:
        """Noisy numbers between the bounds."""
        given = read(value)
        if given.whole is not None:
            inside = given.restore(np.clip(given.whole, self.lower, self.upper))
        else:
            assert given.real is not None  # noqa: S101 - Values holds one or the other
            inside = given.restore(np.clip(given.real, self.lower, self.upper))
        noisy = self.inner.release(inside, rng=rng)
        if self.folds:
            turn = np.mod(np.asarray(noisy) - self.lower, 2 * (self.upper - self.lower))
            noisy = self.lower + np.minimum(turn, 2 * (self.upper - self.lower) - turn)
        out = np.clip(np.asarray(noisy), self.lower, self.upper)
        return out if given.shape else out.item()

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise from its exact law."""
        return self.inner.certify()

    def __repr__(self) -> str:
        name = "reflect_output" if self.folds else "clamp_output"
        return f"{name}({self.inner!r}, [{self.lower:g}, {self.upper:g}])"


def clamp_output(
    mechanism: AdditiveMechanism | ScalarNoise, *, lower: Number, upper: Number
) -> BoundedOutput:
    """The same noise; what leaves the bounds is set to the nearer one.

    Theorem: the guarantee of ``mechanism``; errors never grow.
    Proof: post-processing. The truth lies between the bounds (or is first set to them, which
        moves neighbors apart by no more than before), and clamping to an interval that holds it
        takes no number farther away.
    Source: B44, B54.
    Needs: bounds that are public.
    """
    low, high = _ends(lower, upper)
    return BoundedOutput(inner=mechanism, lower=low, upper=high, folds=False)


def reflect_output(
    mechanism: AdditiveMechanism | ScalarNoise, *, lower: Number, upper: Number
) -> BoundedOutput:
    """The same noise; what leaves the bounds is reflected back, so that nothing piles up there.

    Theorem: the guarantee of ``mechanism``; errors never grow.
    Proof: post-processing. Reflection changes no distance to more than it was, and leaves the
        truth in place.
    Source: B44, B54.
    Needs: bounds that are public.
    """
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
    """Laplace noise that stays between two bounds, with the scale that this needs.

    Noise conditioned on bounds depends on where the truth lies between them: with the usual scale
    it is up to twice as leaky. Clamping is free and most often better (`advise_bounded`).

    Theorem: (epsilon, delta)-DP under ``relation``.
    Proof: at delta 0 the worst pair of centers is known, and its loss is compared with epsilon in
        whole numbers (`BoundedOutputs.keeps_pure`). Otherwise all centers are covered by branch and
        bound (`BoundedOutputs.keeps`). The truth is rounded to a public grid, which moves
        neighbors to at most ``ceil(sensitivity / step)`` steps, and draws are exact.
    Source: Holohan, Antonatos, Braghin, Mac Aonghusa 2020; B44, B54.
    Needs: public bounds; one number. A delta below 2**-36, or beside an epsilon above 64, is not
        used: the release is pure.
    """
    low, high = check.bounds(lower, upper)
    eps, dlt = positive("epsilon", epsilon), probability("delta", delta, one=False)
    if eps > _LARGEST_EPSILON:
        raise InvalidArgument(f"epsilon must be at most {_LARGEST_EPSILON}, got {epsilon}.")
    moved = min(exact_sensitivity(sensitivity), high - low)
    column = _column((low, high), moved, eps, domain)
    shift = min(math.ceil(moved / Fraction(2) ** column.exponent), column.span)
    outputs = BoundedOutputs(span=column.span, shift=shift)
    spent = spendable(eps, dlt)
    return BoundedLaplaceMechanism(
        column=column,
        outputs=outputs,
        scale=outputs.calibrate(eps, spent),
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
