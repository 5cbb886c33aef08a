"""Any function of a short ordered input, made private: clip to a learned range, then add noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import positive, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.ledger.account import Account, Receipt
from discreet.ledger.charged import charged
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.best import best_additive
from discreet.mechanisms.mechanism import Certificate, Check, Mechanism
from discreet.mechanisms.scalar import Scalar
from discreet.models.inputs import Floats
from discreet.models.learned.adjacency import Adjacency
from discreet.models.learned.blackbox import BlackBox
from discreet.models.learned.certificate import certify_drawn
from discreet.models.learned.posterior import Posterior
from discreet.models.learned.ranges import Ranges, clipped
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Law

Noise: TypeAlias = Additive | Scalar

_INPUTS = 64  # that a certificate mixes, and pairs that it makes of them
_PAIRS = 2000


def make_noise(width: int, *, epsilon: Number, delta: Number = 0) -> Noise | None:
    """The noise of least expected error for a sensitivity of ``width`` steps; none for zero."""
    if width == 0:
        return None
    return _made(width, positive("epsilon", epsilon), probability("delta", delta, one=False))


@lru_cache(maxsize=256)
def _made(width: int, epsilon: Fraction, delta: Fraction) -> Noise:
    found = best_additive(
        sensitivity=width,
        epsilon=epsilon,
        delta=delta,
        loss="mae",
        on="integers",
        relation=Relation.REPLACE_ONE,
    )
    return found.chosen


class Releases(Protocol):
    """Anything that releases one number about one input."""

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """The number."""


def ask_alternative(mechanism: Mechanism, given: Floats, bits: Bits) -> float:
    """What another mechanism releases about an input: one number about the whole of it.

    Noise for each entry, of a sensitivity that is not that of a record, does not pass as one.
    """
    said = np.asarray(cast("Releases", mechanism).release(given, bits=bits))
    if said.ndim or said.dtype.kind not in "biuf":
        raise InvalidArgument("alternatives must release one number about a whole input.")
    return float(said)


def law_of(noise: Noise) -> Law:
    """The law of integer noise."""
    if isinstance(noise, Scalar):
        return noise.noise
    if noise.integers is None or not isinstance(noise.integers.noise, Law):
        raise NotCertified("The noise must be a law on the integers.")
    return noise.integers.noise


def steps_of(noise: Noise | None) -> int:
    """The sensitivity, in steps, that the guarantee of integer noise is about; 0 if none is."""
    if isinstance(noise, Scalar):
        return noise.scale.shift if noise.scale.exponent == 0 else 0
    event = None if noise is None or noise.integers is None else noise.integers.event
    match event:
        case events.DiscreteLaplace(_, shift):
            return shift
        case events.DiscreteGaussian(_, square):
            return math.isqrt(math.floor(square))
        case _:
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Errors on public inputs that the fit did not see, in the unit of the output."""

    error: float
    """Mean absolute difference between what is released and what the function says."""
    bias: float
    """The part of it that clipping makes, before noise."""
    noise: float
    """Mean absolute noise."""
    constant: float
    """The same error if the best public constant were published and nothing asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was released about one input."""

    value: float
    """The best estimate of what the function says."""
    noisy: float
    """The clipped answer with noise: all that was released; the value is computed from it."""
    guarantee: Guarantee
    receipt: Receipt | None
    mechanism: LearnedMechanism = field(repr=False)

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds that hold the clipped answer with probability at least ``level``."""
        low, high = self.mechanism.interval(level)
        return self.noisy - high, self.noisy - low

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LearnedMechanism(Mechanism):
    """A function behind ranges that were learned from public data. Made by `wrap`.

    Theorem: a release keeps ``guarantee`` for every function, also a randomised or hostile one,
        between inputs that are neighbours in the words of ``protects``.
    Proof: the ranges are public functions of the input, and those of neighbours lie within
        ``width`` steps of each other's ends, so clipped answers differ by at most ``width`` steps;
        the noise is calibrated to that, and what follows reads nothing private. The answer is
        rounded to steps before it is clipped, and ranges are whole numbers: nothing is left to
        rounding. See docs/theory/learned.md.
    Source: Aoutouf 2021, corrected (A16, A34, A35, A43, A50).
    Needs: everything the mechanism was made from is public and is not about the people of the
        private inputs; the function keeps nothing between calls.
    """

    box: BlackBox
    model: Ranges
    noise: Noise | None
    posterior: Posterior | None
    expected: Expected
    chosen: str
    """What public cross-validation chose."""
    adjacency: Adjacency
    origin: float = 0.0
    """A public number near the outputs; steps are counted from there."""
    account: Account | None = None
    label: str = "learned mechanism"
    alternative: Mechanism | None = None
    """A mechanism that was better on public data and answers instead."""

    @property
    def guarantee(self) -> Guarantee:
        """What one answer costs; a public constant costs nothing."""
        if self.alternative is not None:
            return self.alternative.guarantee
        if self.noise is None:
            return Guarantee(events.NOTHING, Relation.REPLACE_ONE)
        return self.noise.guarantee

    @property
    def step(self) -> Fraction:
        """Released numbers are multiples of it."""
        return self.model.step

    @property
    def sensitivity(self) -> float:
        """How far clipped answers of neighbours may lie apart."""
        return float(self.model.width * self.step)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        if self.alternative is not None:
            return self.alternative.std
        return 0.0 if self.noise is None else self.noise.std * float(self.step)

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``level``."""
        probability("level", level, zero=False, one=False)
        if self.alternative is not None:
            raise Unsupported(f"{self.chosen} answers: see its own interval().")
        if self.noise is None:
            return 0.0, 0.0
        low, high = self.noise.interval(level)
        return low * float(self.step), high * float(self.step)

    def release(self, private: object, *, bits: Bits | None = None) -> float:
        """The estimate for one private input; see `answer`."""
        return self.answer(private, bits=bits).value

    def answer(self, private: object, *, bits: Bits | None = None) -> Answer:
        """Ask the function about one private input, once, and release what it says.

        The budget is spent before the input is looked at. Entries that are no finite numbers
        count as a public one, those outside the domain as its end; a function that fails has said
        the middle of its range.
        """
        entries = self.box.shape.read(private)
        source = source_of(bits)
        with charged(self.account, self.guarantee, label=self.label, bits=source) as held:
            rows = self.box.shape.clean(entries)
            # What a process has set for numbers too small or too large would tell of them.
            with np.errstate(all="ignore"):
                noisy, value = self._replaced(rows, source) or self._noisy(rows, source)
        return Answer(
            value=value,
            noisy=noisy,
            guarantee=self.guarantee,
            receipt=None if held is None else held.receipt,
            mechanism=self,
        )

    def _noisy(self, rows: Floats, bits: Bits) -> tuple[float, float]:
        """The noisy number, and the estimate from it."""
        low, high = self.model.ranges(rows[None])
        steps = int(low[0])
        if self.noise is not None:
            said = self.box.ask(rows) - self.origin  # about a copy: the ranges are made
            steps = int(clipped([said], low, high, step=self.step)[0])
            steps = int(np.asarray(self.noise.release(steps, bits=bits)).item())
        noisy = float(steps * self.step) + self.origin
        if self.posterior is None:
            return noisy, noisy
        return noisy, float(self.posterior.estimate(np.array([steps]))[0]) + self.origin

    def _replaced(self, rows: Floats, bits: Bits) -> tuple[float, float] | None:
        if self.alternative is None:
            return None
        value = ask_alternative(self.alternative, self.box.shape.given(rows), bits)
        return value, value

    def charged_to(self, account: Account | None, *, label: str | None = None) -> LearnedMechanism:
        """The same mechanism, with answers charged to this account."""
        return replace(self, account=account, label=self.label if label is None else label)

    def certify(self) -> Certificate:
        """Recompute the noise's guarantee from its exact law, and try neighbours of all kinds.

        The ranges are proved; here inputs are drawn at random, what a neighbour may change is
        replaced by others and by absurd values, hostile answers are clipped, and all of it is
        compared in whole numbers.
        """
        if self.alternative is not None:
            return self.alternative.certify()
        parts = () if self.noise is None else self.noise.certify().checks
        found = certify_drawn(self.model, self.adjacency.plain, self._examples(), pairs=_PAIRS)
        ranges = Check(
            part=f"ranges of neighbours, {found.largest} of {self.model.width} steps at most",
            epsilon=parts[-1].epsilon if parts else 0.0,
            claimed=0.0,
            exact=0.0 if found.holds else 1.0,
            route=f"whole numbers, hostile answers, {found.pairs} drawn neighbours",
        )
        made_for = steps_of(self.noise)
        fits = Check(
            part=f"noise for {made_for} steps, ranges of {self.model.width}",
            epsilon=ranges.epsilon,
            claimed=0.0,
            exact=0.0 if self.model.width <= made_for else 1.0,
            route="whole numbers",
        )
        return Certificate(
            mechanism=f"learned ({self.chosen})",
            guarantee=self.guarantee,
            checks=(*parts, fits, ranges),
        ).demand()

    def _examples(self) -> Floats:
        """Inputs of the domain, drawn without a look at any."""
        shape = self.box.shape
        size = (_INPUTS, shape.positions, shape.attributes)
        drawn = np.random.default_rng(1).uniform(shape.lower, shape.upper, size=size)
        return np.concatenate([drawn, shape.stand_in[None]])

    @property
    def protects(self) -> str:
        """Who is protected, in one sentence."""
        return (
            f"One answer about an input of {self.box.shape.positions} positions hides "
            f"{self.adjacency.words}."
        )

    @property
    def does_not_protect(self) -> tuple[str, ...]:
        """What is not protected, in sentences."""
        shape = self.box.shape
        timing = (
            "How long the function takes, and what it prints, stores or sends by itself."
            if self.box.seconds is None
            else "How long the function takes while it lets no other thread run, beyond the "
            "seconds; what it prints, stores or sends by itself."
        )
        return (
            "The public inputs and outputs: publishing the mechanism publishes them.",
            "The data that the function was trained on: that needs a guarantee of its own.",
            f"That a question was asked, the number of positions ({shape.positions}), their order.",
            timing,
            "Inputs that the function remembers: it must keep nothing between calls.",
            "A person of several inputs: answers add up, so do overlapping windows (`WindowPlan`).",
            "The input from whoever runs this: the function sees it as it is.",
        )

    def explain(self) -> str:
        """Everything a reader of the released numbers should know."""
        exp = self.expected
        lines = [
            repr(self),
            self.protects,
            f"Expected error on public inputs: {exp.error:.4g}",
            f"  clipping alone {exp.bias:.4g}, noise alone {exp.noise:.4g}",
            f"  a public constant instead {exp.constant:.4g}",
            "Not protected:",
            *(f"  {line}" for line in self.does_not_protect),
        ]
        if self.noise is None:
            lines.insert(1, "At this epsilon a public constant is best: the input is not used.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"learned({self.chosen}; {self.guarantee!r}; sensitivity {self.sensitivity:.4g}; "
            f"expected error {self.expected.error:.4g})"
        )
