"""Two side channels of noise: the low bits of the output, and the time it took to draw.

A mechanism can follow its law to twelve digits and still tell its input by the last bit (Mironov
2012; Haney et al. 2022), or by how long it ran (Jin et al. 2022).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discreet.audit._attack import NO_BIT, Floats, Run, lower_bound, lowest_bit, upper_bound
from discreet.core._validate import count, non_negative, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import percent, short
from discreet.core.tabular import Record
from discreet.query.result import FixedResult, check_confidence, records

Cell: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionFinding(FixedResult):
    """What the low bits tell.

    ``left_only`` is the share of outputs on left that lie in classes never seen on right, in as
    many outputs again; ``right_only`` the reverse. ``epsilon`` is what they prove, at the stated
    failure probability: zero when nothing is separated.
    """

    left_only: float
    right_only: float
    epsilon: float
    failure_probability: float
    samples: int

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the lower bound on the true epsilon.

        Args:
            confidence: One less `failure_probability`, if it is given.

        Returns:
            One record: value, std (None), low (the same bound) and high (infinite).
        """
        check_confidence(confidence, self._confidence)
        bound = [self.epsilon]
        return records((), [()], value=bound, low=bound, high=[math.inf])

    @property
    def _confidence(self) -> float:
        return 1 - self.failure_probability

    @property
    def separates(self) -> bool:
        """Whether the low bits tell the two inputs apart beyond chance."""
        return self.epsilon > 0

    def __str__(self) -> str:
        told = f"an epsilon of at least {short(self.epsilon)}" if self.separates else "nothing"
        left, right = percent(self.left_only), percent(self.right_only)
        return (
            f"the low bits of {self.samples:,} outputs tell {told} "
            f"({left} were seen on the left alone, {right} on the right alone)"
        )

    __repr__ = __str__


def precision_attack(
    run: Run,
    left: object,
    right: object,
    *,
    epsilon: float,
    samples: int = 200_000,
    failure_probability: float = 1e-9,
) -> PrecisionFinding:
    """Test whether the low bits of floating-point outputs reveal the input.

    Args:
        run: Function `(input, n)` that returns n independent numbers, with fresh randomness at
            every call.
        left: Input.
        right: Neighboring input.
        epsilon: Claimed privacy loss. The low bits may reveal this much.
        samples: Number of outputs per input, at least 100.
        failure_probability: Largest probability that a true claim is refuted.

    Returns:
        A finding. `separates` is true if the low bits reveal more than claimed.

    Raises:
        InvalidArgument: A number is outside its range, or `run` does not return n numbers.

    Examples:
        >>> import numpy
        >>> from discreet import audit
        >>> generator = numpy.random.default_rng(1)
        >>> def run(value, n):
        ...     return value + numpy.round(generator.laplace(size=n))
        >>> audit.precision_attack(run, 0, 0.5, epsilon=0.5, samples=1_000).separates
        True

    References:
        Mironov (2012). Haney et al. (2022).
        [Proof](../theory/theorems.md#audit.side_channels.precision_attack).
    """
    # Theorem: if the mechanism is `epsilon`-private, it `separates` with probability at most
    #   failure. Proof: Clopper-Pearson on fresh outputs, both directions.
    # Source: Mironov 2012; Haney et al. 2022 (arXiv:2207.13793).
    samples = count("samples", samples, minimum=100)
    alpha = float(probability("failure_probability", failure_probability, zero=False, one=False))
    claimed = float(non_negative("epsilon", epsilon))
    learned = [_classes(run(value, samples), samples) for value in (left, right)]
    fresh = [_classes(run(value, samples), samples) for value in (left, right)]
    shares, proved = [], 0.0
    for one, other in ((0, 1), (1, 0)):
        own = np.setdiff1d(learned[one], learned[other])
        hits = int(np.isin(fresh[one], own).sum())
        stray = int(np.isin(fresh[other], own).sum())
        p = lower_bound(hits, samples, alpha / 4)
        q = upper_bound(stray, samples, alpha / 4)
        shares.append(hits / samples)
        if p > 0 and np.log(p / q) > claimed:
            proved = max(proved, float(np.log(p / q)))
    return PrecisionFinding(
        left_only=shares[0],
        right_only=shares[1],
        epsilon=proved,
        failure_probability=alpha,
        samples=samples,
    )


def _classes(outputs: object, number: int) -> Cell:
    values: Floats = np.asarray(outputs, dtype=np.float64)
    if values.shape != (number,):
        # Parts of one output are not independent draws: counted as such they would prove too much.
        raise InvalidArgument(
            f"run must return {number} single numbers, as asked, got shape {values.shape}."
        )
    _, binade = np.frexp(np.where(np.isfinite(values), values, 0.0))
    last = np.where(lowest_bit(values) == NO_BIT, 1100, lowest_bit(values)).astype(np.int64)
    sign = np.signbit(values).astype(np.int64) + 2 * np.isnan(values) + 4 * np.isinf(values)
    return np.asarray((binade.astype(np.int64) * 4096 + last) * 8 + sign, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingFinding(FixedResult):
    """Spearman's correlation between time and size of the noise, and its limit under no relation.

    ``limit`` is exceeded by independent times with probability at most ``failure_probability``.
    """

    correlation: float
    limit: float
    failure_probability: float
    repetitions: int

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the correlation; `limit` says what chance alone reaches.

        Args:
            confidence: One less `failure_probability`, if it is given.

        Returns:
            One record: value, std, low and high, the last three None.
        """
        check_confidence(confidence, self._confidence)
        return records((), [()], value=[self.correlation])

    @property
    def _confidence(self) -> float:
        return 1 - self.failure_probability

    @property
    def tells(self) -> bool:
        """Whether the time tells the size beyond chance."""
        return abs(self.correlation) > self.limit

    def __str__(self) -> str:
        told = "tells" if self.tells else "does not tell"
        return (
            f"the time of a draw {told} the size of its noise: correlation "
            f"{short(self.correlation)} in {self.repetitions:,} draws, chance reaches "
            f"{short(self.limit)}"
        )

    __repr__ = __str__


def timing_attack(
    draw: Callable[[], object],
    *,
    repetitions: int = 2000,
    failure_probability: float = 1e-6,
    clock: Callable[[], int] = time.thread_time_ns,
) -> TimingFinding:
    """Test whether the time of a draw reveals the size of its noise.

    Args:
        draw: Function that draws noise once and returns it, as a number or a vector.
        repetitions: Number of draws, at least 10.
        failure_probability: Probability that unrelated times exceed the limit.
        clock: Function that returns a time in nanoseconds. By default the processor time of this
            thread.

    Returns:
        A finding with the rank `correlation` of time and size, its `limit`, and `tells`.

    Raises:
        InvalidArgument: `repetitions` is below 10.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=1)
        >>> found = discreet.audit.timing_attack(lambda: mechanism.release(0), repetitions=50)
        >>> -1 <= found.correlation <= 1
        True

    References:
        Jin et al. (2022).
    """
    repetitions = count("repetitions", repetitions, minimum=10)
    times = np.empty(repetitions)
    sizes = np.empty(repetitions)
    for i in range(repetitions):
        start = clock()
        noise = draw()
        times[i] = clock() - start
        sizes[i] = np.mean(np.abs(np.asarray(noise, dtype=np.float64)))
    return relate(times, sizes, failure_probability=failure_probability)


def relate(
    times: Sequence[float] | Floats, sizes: Sequence[float] | Floats, *, failure_probability: float
) -> TimingFinding:
    """Spearman's correlation of two columns, with its limit when they are independent.

    The limit uses that the correlation of n independent pairs is nearly normal with variance
    1/(n - 1) (exact variance, any law without ties).
    """
    if len(times) != len(sizes):
        raise InvalidArgument("times and sizes must have one length.")
    if np.ptp(sizes) == 0 or np.ptp(times) == 0:
        correlation = 0.0
    else:
        correlation = float(stats.spearmanr(times, sizes).statistic)
    limit = float(stats.norm.isf(failure_probability / 2)) / np.sqrt(len(times) - 1)
    return TimingFinding(
        correlation=correlation,
        limit=float(limit),
        failure_probability=failure_probability,
        repetitions=len(times),
    )
