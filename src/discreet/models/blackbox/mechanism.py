"""Any function of a short ordered input, made private: clip to a learned range, then add noise."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.foreign_code import alone, draw_seed
from discreet.boundary.rows import matrix
from discreet.boundary.values import doubles, listed, numeric_array
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import positive, probability
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain, Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.ledger.account import Account, Receipt, reserve_if_charged
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.models._model_inputs import Bounds, Floats, bounds_of
from discreet.models.blackbox.certificate import certify_drawn, drawn_neighbors
from discreet.models.blackbox.examples import NoisyValuePosterior
from discreet.models.blackbox.metrics import Adjacency
from discreet.models.blackbox.output_ranges import (
    DeclaredSensitivityRange,
    OutputRanges,
    clip_to_range,
)
from discreet.noise.distribution import Distribution
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

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
        """One input as doubles; only its shape, which is public, can be refused.

        Positions are read one by one: one that is no row of numbers is missing.
        """
        array = numeric_array(private)
        if array is not None:
            found = array.shape
        else:
            held = hasattr(private, "__len__") and not isinstance(private, str | bytes)
            found = (len(listed(private)), *self.expected[1:]) if held else ()
        if found != self.expected:
            raise OutOfDomain(f"The input must have the shape {self.expected}, got {found}.")
        rows = doubles(private) if self.flat else matrix(private, columns=self.attributes)
        return rows.reshape(self.positions, self.attributes)

    def read_one(self, private: object) -> Floats:
        """One position of an input: a number, or one for each attribute; others are missing."""
        return matrix([private], columns=self.attributes).reshape(self.attributes)

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
            with alone(draw_seed()):
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


def largest_change(box: BlackBox, adjacency: Adjacency, inputs: Floats, model: OutputRanges) -> int:
    """By how many steps a function changes between public inputs and neighbors of them."""
    pairs = [box.shape.clean(rows) for rows in drawn_neighbors(adjacency.plain, inputs, _INPUTS)]
    said = [box.evaluate_public(rows) for rows in pairs]
    steps = [model.clip(one, rows).astype(np.int64) for one, rows in zip(said, pairs, strict=True)]
    return int(np.abs(steps[0] - steps[1]).max())


def refuse_if_contradicted(
    box: BlackBox, adjacency: Adjacency, inputs: Floats, model: OutputRanges
) -> None:
    """Refuse a declared sensitivity that two public inputs exceed."""
    if largest_change(box, adjacency, inputs, model) > model.width:
        raise InvalidArgument(
            "sensitivity is too small: between neighbors that were made from public inputs the "
            "function changes by more."
        )


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlackBoxRelease(Result):
    """The release of one answer.

    Attributes:
        value: Best estimate of the output of the function.
        noisy: Clipped output with noise. `value` is computed from it.
        guarantee: Privacy guarantee of the answer.
        receipt: Receipt of the charge, or None.
        mechanism: Mechanism that answered.

    Examples:
        >>> import numpy
        >>> from discreet import blackbox
        >>> public = numpy.random.default_rng(0).uniform(0, 10, size=(20, 4))
        >>> mechanism = blackbox.make_private(
        ...     numpy.mean, public_inputs=public, metric="record", epsilon=1, bounds=(0, 10)
        ... )
        >>> answer = mechanism.answer([5.0] * 4)
        >>> isinstance(answer.value, float)
        True
    """

    value: float
    noisy: float
    guarantee: Guarantee
    receipt: Receipt | None
    mechanism: BlackBoxMechanism = field(repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Compute a confidence interval for the clipped output.

        It covers noise, but not clipping.

        Args:
            confidence: Confidence level, between 0 and 1.

        Returns:
            Lower and upper end.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.
            Unsupported: An alternative mechanism answered.

        Examples:
            >>> low, high = mechanism.answer([5.0] * 4).interval(0.95)
            >>> low <= high
            True
        """
        low, high = self.mechanism.interval(confidence)
        return self.noisy - high, self.noisy - low

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the estimate with the interval of the clipped answer.

        Args:
            confidence: Probability with which the interval holds the clipped answer.

        Returns:
            One record: value, std (of the noise), low and high.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> list(mechanism.answer([5.0] * 4).rows()[0])
            ['value', 'std', 'low', 'high']
        """
        low, high = self.interval(confidence)
        std = self.mechanism.std
        return records((), [()], value=[self.value], std=[std], low=[low], high=[high])

    def _title(self) -> str:
        return "Answer of a black box"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class BlackBoxMechanism(Mechanism):
    """A function behind learned output ranges. Made by `make_private`.

    Attributes:
        box: The function and the shape of its input.
        model: Learned output ranges.
        noise: Noise mechanism, or None if a public constant is best.
        posterior: Public pairs from which estimates are improved, or None.
        expected: Expected errors on public inputs.
        chosen: Method that public cross-validation chose.
        adjacency: What one person can change in an input.
        origin: Public number near the outputs, from which steps are counted.
        account: Ledger account that pays for each answer, or None.
        label: Text for the ledger entries.
        alternative: Mechanism that answers instead, or None.

    Privacy:
        Each answer satisfies `guarantee` for what `protects` describes, whatever the function
        computes; if `rests_on_declaration`, provided that the declared sensitivity is true.

    Examples:
        >>> import numpy
        >>> from discreet import blackbox
        >>> public = numpy.random.default_rng(0).uniform(0, 10, size=(20, 4))
        >>> mechanism = blackbox.make_private(
        ...     numpy.mean, public_inputs=public, metric="record", epsilon=1, bounds=(0, 10)
        ... )
        >>> mechanism.protects[:45]
        'One answer about an input of 4 positions hide'

    References:
        [Proof](../theory/theorems.md#models.blackbox.mechanism.BlackBoxMechanism).
    """

    # Theorem: a release keeps `guarantee` for every function, also a randomized or hostile one,
    #   between inputs that are neighbors in the words of `protects`; where it rests on a declared
    #   sensitivity, for every function that keeps it.
    # Proof: the ranges are public functions of the input, and those of neighbors lie within
    #   `width` steps of each other's ends, so clipped answers differ by at most `width` steps;
    #   the noise is calibrated to that, and what follows reads nothing private. The answer is
    #   rounded to steps before it is clipped, and ranges are whole numbers: nothing is left to
    #   rounding. See docs/theory/blackbox.md.
    # Source: Aoutouf 2021, corrected (A16, A34, A35, A43, A50).
    # Needs: everything the mechanism was made from is public and is not about the people of the
    #   private inputs; the function keeps nothing between calls.

    box: BlackBox
    model: OutputRanges
    noise: Noise | None
    posterior: NoisyValuePosterior | None
    expected: ExpectedError
    chosen: str
    adjacency: Adjacency
    origin: float = 0.0
    account: Account | None = None
    label: str = "learned mechanism"
    alternative: Mechanism | None = None

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one answer. A public constant costs nothing."""
        if self.alternative is not None:
            return self.alternative.guarantee
        if self.noise is None:
            return Guarantee(events.NOTHING, NeighboringRelation.REPLACE_ONE)
        return self.noise.guarantee

    @property
    def step(self) -> Fraction:
        """Spacing of released numbers."""
        return self.model.step

    @property
    def sensitivity(self) -> float:
        """Largest difference of clipped outputs on neighboring inputs."""
        return float(self.model.width * self.step)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        if self.alternative is not None:
            return self.alternative.std
        return 0.0 if self.noise is None else self.noise.std * float(self.step)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise.

        Args:
            confidence: Probability with which the noise lies between the bounds.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.
            Unsupported: An alternative mechanism answers.

        Examples:
            >>> low, high = mechanism.interval(0.95)
            >>> low <= 0 <= high
            True
        """
        probability("confidence", confidence, zero=False, one=False)
        if self.alternative is not None:
            raise Unsupported(f"{self.chosen} answers: see its own interval().")
        if self.noise is None:
            return 0.0, 0.0
        low, high = self.noise.interval(confidence)
        return low * float(self.step), high * float(self.step)

    def release(self, private: object, *, rng: RandomSource | None = None) -> float:
        """Release the estimate for one private input.

        Args:
            private: Private input, in the shape of the public inputs.
            rng: Random source. By default the operating system's.

        Returns:
            The estimate. See `answer` for the noisy number and the receipt.

        Raises:
            BudgetExceeded: The account cannot pay.
            OutOfDomain: The input has another shape than the public inputs.

        Privacy:
            The release satisfies `guarantee`. The account is charged before the function is called.

        Examples:
            >>> isinstance(mechanism.release([5.0] * 4), float)
            True
        """
        return self.answer(private, rng=rng).value

    def answer(self, private: object, *, rng: RandomSource | None = None) -> BlackBoxRelease:
        """Call the function on one private input, once, and release its output.

        Values that are not finite numbers are replaced by public ones, and values outside the
        bounds are clipped. If the function fails, the middle of the range is used.

        Args:
            private: Private input, in the shape of the public inputs.
            rng: Random source. By default the operating system's.

        Returns:
            The release with `value`, `noisy`, `interval(confidence)` and `receipt`.

        Raises:
            BudgetExceeded: The account cannot pay.
            OutOfDomain: The input has another shape than the public inputs.

        Privacy:
            The release satisfies `guarantee`. The account is charged before the function is called.

        Examples:
            >>> isinstance(mechanism.answer([5.0] * 4).noisy, float)
            True
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
        """Return the same mechanism with answers charged to an account.

        Args:
            account: Ledger account, or None to charge nothing.
            label: Text for the ledger entries. By default unchanged.

        Returns:
            The mechanism.

        Privacy:
            Each later answer charges the account before the function is called.

        Examples:
            >>> import discreet
            >>> limit = discreet.pure_dp(2, relation=discreet.NeighboringRelation.REPLACE_ONE)
            >>> account = discreet.Ledger("memory://").account("box", limit=limit)
            >>> value = mechanism.charged_to(account).release([5.0] * 4)
            >>> account.remaining
            Fraction(1, 1)
        """
        return replace(self, account=account, label=self.label if label is None else label)

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise, and try neighboring inputs at random.

        The ranges are proven. The certificate compares them for random neighbors with hostile
        outputs, in exact integers.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: A check fails.

        Examples:
            >>> mechanism.certify().holds
            True
        """
        if self.alternative is not None:
            return self.alternative.certify()
        inner = None if self.noise is None else self.noise.certify()
        parts = () if inner is None else inner.checks
        if self.rests_on_declaration:
            # Hostile answers would break what is declared: the function itself is tried.
            largest = largest_change(self.box, self.adjacency, self._examples(), self.model)
            what, holds = "declared sensitivity", largest <= self.model.width
            route = f"the function, {_INPUTS} drawn neighbors: evidence, not proof"
        else:
            found = certify_drawn(self.model, self.adjacency.plain, self._examples(), pairs=_PAIRS)
            what, largest, holds = "ranges of neighbors", int(found.largest), found.holds
            route = f"whole numbers, hostile answers, {found.pairs} drawn neighbors"
        ranges = CertificateCheck(
            part=f"{what}, {largest} of {self.model.width} steps at most",
            epsilon=parts[-1].epsilon if parts else 0.0,
            claimed=0.0,
            exact=0.0 if holds else 1.0,
            route=route,
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
            drawn=() if inner is None else inner.drawn,
        ).demand()

    def _examples(self) -> Floats:
        """Inputs of the domain, drawn without a look at any."""
        shape = self.box.shape
        size = (_INPUTS, shape.positions, shape.attributes)
        drawn = np.random.default_rng(1).uniform(shape.lower, shape.upper, size=size)
        return np.concatenate([drawn, shape.stand_in[None]])

    @property
    def protects(self) -> str:
        """What an answer protects, in one sentence."""
        return (
            f"One answer about an input of {self.box.shape.positions} positions hides "
            f"{self.adjacency.words}."
        )

    @property
    def rests_on_declaration(self) -> bool:
        """Whether the guarantee needs the declared sensitivity to be true."""
        return isinstance(self.model, DeclaredSensitivityRange) and self.alternative is None

    @property
    def does_not_protect(self) -> tuple[str, ...]:
        """What an answer does not protect, in sentences."""
        shape = self.box.shape
        timing = (
            "How long the function takes, and what it prints, stores or sends by itself."
            if self.box.seconds is None
            else "How long the function takes while it lets no other thread run, beyond the "
            "seconds; what it prints, stores or sends by itself."
        )
        declared = (
            "Anything, if the function fails on some inputs, or can change by more than the "
            f"declared sensitivity ({short(self.sensitivity)}) between neighbors."
        )
        return (
            *([declared] if self.rests_on_declaration else []),
            "The public inputs and outputs: publishing the mechanism publishes them.",
            "The data that the function was trained on: that needs a guarantee of its own.",
            f"That a question was asked, the number of positions ({shape.positions}), their order.",
            timing,
            "Inputs that the function remembers: it must keep nothing between calls.",
            "A person of several inputs: answers add up, so do overlapping windows (`WindowPlan`).",
            "The input from whoever runs this: the function sees it as it is.",
        )

    def explain(self) -> str:
        """Describe guarantee, expected errors and limitations.

        Returns:
            Text with one fact per line.

        Examples:
            >>> "Not protected:" in mechanism.explain()
            True
        """
        exp = self.expected
        lines = [
            repr(self),
            self.protects,
            f"Expected error on public inputs: {short(exp.error)}",
            f"  clipping alone {short(exp.bias)}, noise alone {short(exp.noise)}",
            f"  a public constant instead {short(exp.constant)}",
            "Not protected:",
            *(f"  {line}" for line in self.does_not_protect),
        ]
        if self.noise is None:
            lines.insert(1, "At this epsilon a public constant is best: the input is not used.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"learned({self.chosen}; {self.guarantee!r}; sensitivity {short(self.sensitivity)}; "
            f"expected error {short(self.expected.error)})"
        )
