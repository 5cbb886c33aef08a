"""Any function of a short ordered input, made private: clip to a learned range, then add noise."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import positive, probability
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, Receipt, reserve_if_charged
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.models._model_inputs import Bounds, Floats, bounds_of
from discreet.models.blackbox.certificate import certify_drawn
from discreet.models.blackbox.examples import NoisyValuePosterior
from discreet.models.blackbox.metrics import Adjacency
from discreet.models.blackbox.output_ranges import OutputRanges, clip_to_range
from discreet.noise.distribution import Distribution
from discreet.noise.random_source import RandomSource, resolve_rng

# ── The function ─────────────────────────────────────────────────────────────────────────────────
# It is called once, and whatever it does, a number or nothing comes back: that a function fails,
# warns, is late or answers in another shape would reveal something about its input.


Function: TypeAlias = Callable[[Any], Any]

MISSING = math.nan
"""What a function that failed has said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputShape:
    """The public shape of an input, its domain, and what takes the place of what is no number."""

    positions: int
    attributes: int
    flat: bool
    """Whether the function takes ``(positions,)``: one attribute, without an axis of its own."""
    lower: Floats
    upper: Floats
    stand_in: Floats
    """For entries that are no finite numbers, one for each place: ``(positions, attributes)``."""

    @classmethod
    def of(cls, public: NDArray[Any], *, bounds: Bounds | None) -> InputShape:
        """From the public inputs. Without bounds the domain is three times as wide as theirs."""
        flat = public.ndim == 2
        table = cube(public)
        attributes = table.shape[2]
        if bounds is None:
            low, high = table.min(axis=(0, 1)), table.max(axis=(0, 1))
            span = np.maximum(high - low, 1.0)
            lower, upper = low - span, high + span
        else:
            lower, upper = bounds_of("bounds", bounds, columns=attributes)
        stand_in = np.clip(np.median(table, axis=0), lower, upper)
        return cls(
            positions=table.shape[1],
            attributes=attributes,
            flat=flat,
            lower=lower,
            upper=upper,
            stand_in=stand_in,
        )

    @property
    def expected(self) -> tuple[int, ...]:
        """The shape of one input."""
        return (self.positions,) if self.flat else (self.positions, self.attributes)

    def read(self, private: object) -> Floats:
        """One input as doubles; only its shape, which is public, can be refused."""
        found = numbers(private)
        if found.shape != self.expected:
            raise OutOfDomain(f"The input must have the shape {self.expected}, got {found.shape}.")
        return found.reshape(self.positions, self.attributes)

    def read_one(self, private: object) -> Floats:
        """One position of an input: a number, or one for each attribute."""
        found = numbers(private)
        if found.shape not in ((self.attributes,), self.expected[1:]):
            raise OutOfDomain(f"A reading must have the shape {self.expected[1:]}.")
        return found.reshape(self.attributes)

    def clean(self, rows: Floats) -> Floats:
        """Finite numbers of the domain. Every entry by itself, so neighbors stay neighbors."""
        rows = np.where(np.isfinite(rows), rows, self.stand_in)
        return np.clip(rows, self.lower, self.upper)

    def as_argument(self, rows: Floats) -> Floats:
        """A copy in the shape that the function takes."""
        return rows.reshape(self.expected).copy()


def cube(inputs: NDArray[Any]) -> Floats:
    """Inputs as ``(how many, positions, attributes)``."""
    table = np.asarray(inputs, dtype=np.float64)
    return table[:, :, None] if table.ndim == 2 else table


def numbers(private: object) -> Floats:
    """Doubles of the same shape; what is no number becomes NaN, entry by entry."""
    with suppress(Exception):  # which entry it was, and why, would tell about it
        return np.asarray(private, dtype=np.float64)
    try:
        entries = np.asarray(private, dtype=object)
    except Exception:  # noqa: BLE001 - one by one then
        raise OutOfDomain("The input must be a rectangular array.") from None
    return np.array([_number(entry) for entry in entries.ravel()]).reshape(entries.shape)


def _number(entry: object) -> float:
    try:
        return float(np.asarray(entry, dtype=np.float64).reshape(()))
    except Exception:  # noqa: BLE001 - one by one then
        return MISSING


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlackBox:
    """A callable or a fitted regressor, asked so that nothing but one number can come out."""

    function: Function
    shape: InputShape
    regressor: bool
    seconds: float | None = None
    """If given, every answer takes just this long, and a later one is not waited for; a function
    that lets no other thread run (one long operation in C) holds up the answer all the same."""

    @classmethod
    def of(cls, function: object, *, shape: InputShape, seconds: float | None) -> BlackBox:
        """A callable as it is; of anything else its ``predict``."""
        late = None if seconds is None else float(positive("seconds", seconds))
        predict = getattr(function, "predict", None)
        if callable(predict):
            return cls(function=predict, shape=shape, regressor=True, seconds=late)
        if not callable(function):
            raise InvalidArgument(
                f"function must be callable or have predict(), got {type(function).__name__}."
            )
        return cls(function=function, shape=shape, regressor=False, seconds=late)

    def evaluate(self, rows: Floats) -> float:
        """What the function says about one clean input; NaN where it says no number."""
        given = self.shape.as_argument(rows)
        if self.regressor:
            given = given.reshape(1, -1)
        return self._evaluate(given) if self.seconds is None else self._in_time(given, self.seconds)

    def _evaluate(self, given: Floats) -> float:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                answer = np.asarray(self.function(given))
                if answer.size != 1 or answer.dtype.kind not in "biufO":
                    return MISSING
                return float(answer.reshape(()).item())
        except BaseException:  # noqa: BLE001 - also sys.exit and an interrupt: that it fails tells
            return MISSING

    def _in_time(self, given: Floats, seconds: float) -> float:
        """Wait for the same time, whatever a function does that lets other threads run."""
        end = time.monotonic() + seconds
        said: list[float] = []
        asked = threading.Thread(target=lambda: said.append(self._evaluate(given)), daemon=True)
        asked.start()
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
        return said[0] if said else MISSING

    def evaluate_public(self, table: Floats) -> Floats:
        """What the function says about public inputs."""
        if self.regressor:
            try:
                found = np.asarray(self.function(table.reshape(len(table), -1)), dtype=np.float64)
            except Exception:  # noqa: BLE001 - one by one then
                found = np.empty(0)
            if found.size == len(table):
                return found.reshape(len(table))
        return np.array([self._evaluate(self._argument(rows)) for rows in table])

    def _argument(self, rows: Floats) -> Floats:
        given = self.shape.as_argument(rows)
        return given.reshape(1, -1) if self.regressor else given


# ── The mechanism ────────────────────────────────────────────────────────────────────────────────


Noise: TypeAlias = AdditiveMechanism | ScalarNoise

_INPUTS = 64  # that a certificate mixes, and pairs that it makes of them
_PAIRS = 2000


def make_noise(width: int, *, epsilon: Number, delta: Number = 0) -> Noise | None:
    """The noise of least expected error for a sensitivity of ``width`` steps; none for zero."""
    if width == 0:
        return None
    return _made(width, positive("epsilon", epsilon), probability("delta", delta, one=False))


@lru_cache(maxsize=256)
def _made(width: int, epsilon: Fraction, delta: Fraction) -> Noise:
    found = best_additive_noise(
        sensitivity=width,
        epsilon=epsilon,
        delta=delta,
        loss="mae",
        domain="integers",
        relation=NeighboringRelation.REPLACE_ONE,
    )
    return found.chosen


class ScalarMechanism(Protocol):
    """Anything that releases one number about one input."""

    def release(self, value: Any, *, rng: RandomSource | None = None) -> Any:
        """The number."""


def release_alternative(mechanism: Mechanism, given: Floats, rng: RandomSource) -> float:
    """What another mechanism releases about an input: one number about the whole of it.

    Noise for each entry, of a sensitivity that is not that of a record, does not pass as one.
    """
    said = np.asarray(cast("ScalarMechanism", mechanism).release(given, rng=rng))
    if said.ndim or said.dtype.kind not in "biuf":
        raise InvalidArgument("alternatives must release one number about a whole input.")
    return float(said)


def distribution_of(noise: Noise) -> Distribution:
    """The law of integer noise."""
    if isinstance(noise, ScalarNoise):
        return noise.noise
    if noise.integers is None or not isinstance(noise.integers.noise, Distribution):
        raise NotCertified("The noise must be a law on the integers.")
    return noise.integers.noise


def steps_of(noise: Noise | None) -> int:
    """The sensitivity, in steps, that the guarantee of integer noise is about; 0 if none is."""
    if isinstance(noise, ScalarNoise):
        return noise.scale.shift if noise.scale.exponent == 0 else 0
    event = None if noise is None or noise.integers is None else noise.integers.event
    match event:
        case events.DiscreteLaplaceEvent(_, shift):
            return shift
        case events.DiscreteGaussianEvent(_, square):
            return math.isqrt(math.floor(square))
        case _:
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
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
class BlackBoxRelease:
    """What was released about one input."""

    value: float
    """The best estimate of what the function says."""
    noisy: float
    """The clipped answer with noise: all that was released; the value is computed from it."""
    guarantee: Guarantee
    receipt: Receipt | None
    mechanism: BlackBoxMechanism = field(repr=False)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the clipped answer with probability at least ``confidence``."""
        low, high = self.mechanism.interval(confidence)
        return self.noisy - high, self.noisy - low

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class BlackBoxMechanism(Mechanism):
    """A function behind ranges that were learned from public data. Made by `make_private`.

    Theorem: a release keeps ``guarantee`` for every function, also a randomized or hostile one,
        between inputs that are neighbors in the words of ``protects``.
    Proof: the ranges are public functions of the input, and those of neighbors lie within
        ``width`` steps of each other's ends, so clipped answers differ by at most ``width`` steps;
        the noise is calibrated to that, and what follows reads nothing private. The answer is
        rounded to steps before it is clipped, and ranges are whole numbers: nothing is left to
        rounding. See docs/theory/blackbox.md.
    Source: Aoutouf 2021, corrected (A16, A34, A35, A43, A50).
    Needs: everything the mechanism was made from is public and is not about the people of the
        private inputs; the function keeps nothing between calls.
    """

    box: BlackBox
    model: OutputRanges
    noise: Noise | None
    posterior: NoisyValuePosterior | None
    expected: ExpectedError
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
            return Guarantee(events.NOTHING, NeighboringRelation.REPLACE_ONE)
        return self.noise.guarantee

    @property
    def step(self) -> Fraction:
        """Released numbers are multiples of it."""
        return self.model.step

    @property
    def sensitivity(self) -> float:
        """How far clipped answers of neighbors may lie apart."""
        return float(self.model.width * self.step)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        if self.alternative is not None:
            return self.alternative.std
        return 0.0 if self.noise is None else self.noise.std * float(self.step)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``confidence``."""
        probability("confidence", confidence, zero=False, one=False)
        if self.alternative is not None:
            raise Unsupported(f"{self.chosen} answers: see its own interval().")
        if self.noise is None:
            return 0.0, 0.0
        low, high = self.noise.interval(confidence)
        return low * float(self.step), high * float(self.step)

    def release(self, private: object, *, rng: RandomSource | None = None) -> float:
        """The estimate for one private input; see `answer`."""
        return self.answer(private, rng=rng).value

    def answer(self, private: object, *, rng: RandomSource | None = None) -> BlackBoxRelease:
        """Ask the function about one private input, once, and release what it says.

        The budget is spent before the input is looked at. Entries that are no finite numbers
        count as a public one, those outside the domain as its end; a function that fails has said
        the middle of its range.
        """
        entries = self.box.shape.read(private)
        source = resolve_rng(rng)
        with reserve_if_charged(self.account, self.guarantee, label=self.label, rng=source) as held:
            rows = self.box.shape.clean(entries)
            # What a process has set for numbers too small or too large would tell of them.
            with np.errstate(all="ignore"):
                noisy, value = self._replaced(rows, source) or self._noisy(rows, source)
        return BlackBoxRelease(
            value=value,
            noisy=noisy,
            guarantee=self.guarantee,
            receipt=None if held is None else held.receipt,
            mechanism=self,
        )

    def _noisy(self, rows: Floats, rng: RandomSource) -> tuple[float, float]:
        """The noisy number, and the estimate from it."""
        low, high = self.model.ranges(rows[None])
        steps = int(low[0])
        if self.noise is not None:
            said = self.box.evaluate(rows) - self.origin  # about a copy: the ranges are made
            steps = int(clip_to_range([said], low, high, step=self.step)[0])
            steps = int(np.asarray(self.noise.release(steps, rng=rng)).item())
        noisy = float(steps * self.step) + self.origin
        if self.posterior is None:
            return noisy, noisy
        return noisy, float(self.posterior.estimate(np.array([steps]))[0]) + self.origin

    def _replaced(self, rows: Floats, rng: RandomSource) -> tuple[float, float] | None:
        if self.alternative is None:
            return None
        value = release_alternative(self.alternative, self.box.shape.as_argument(rows), rng)
        return value, value

    def charged_to(self, account: Account | None, *, label: str | None = None) -> BlackBoxMechanism:
        """The same mechanism, with answers charged to this account."""
        return replace(self, account=account, label=self.label if label is None else label)

    def certify(self) -> Certificate:
        """Recompute the noise's guarantee from its exact law, and try neighbors of all kinds.

        The ranges are proved; here inputs are drawn at random, what a neighbor may change is
        replaced by others and by absurd values, hostile answers are clipped, and all of it is
        compared in whole numbers.
        """
        if self.alternative is not None:
            return self.alternative.certify()
        parts = () if self.noise is None else self.noise.certify().checks
        found = certify_drawn(self.model, self.adjacency.plain, self._examples(), pairs=_PAIRS)
        ranges = CertificateCheck(
            part=f"ranges of neighbors, {found.largest} of {self.model.width} steps at most",
            epsilon=parts[-1].epsilon if parts else 0.0,
            claimed=0.0,
            exact=0.0 if found.holds else 1.0,
            route=f"whole numbers, hostile answers, {found.pairs} drawn neighbors",
        )
        made_for = steps_of(self.noise)
        fits = CertificateCheck(
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
