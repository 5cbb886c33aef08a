"""Two side channels of noise: the low bits of the output, and the time it took to draw.

A mechanism can follow its law to twelve digits and still tell its input by the last bit (Mironov
2012; Haney et al. 2022), or by how long it ran (Jin et al. 2022).
"""

from __future__ import annotations

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

Cell: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionFinding:
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

    @property
    def separates(self) -> bool:
        """Whether the low bits tell the two inputs apart beyond chance."""
        return self.epsilon > 0


def precision_attack(
    run: Run,
    left: object,
    right: object,
    *,
    epsilon: float,
    samples: int = 200_000,
    failure_probability: float = 1e-9,
) -> PrecisionFinding:
    """Which low bits occur on which input.

    Every output falls into a class: its sign and binade, and the position of its last non-zero
    bit. Classes seen on one input only are learned on one half of the outputs and counted on the
    other. The noise may tell up to the claimed ``epsilon``; ``separates`` says that more was told.

    Theorem: if the mechanism is ``epsilon``-private, it ``separates`` with probability at most
        failure. Proof: Clopper-Pearson on fresh outputs, both directions.
    Source: Mironov 2012; Haney et al. 2022 (arXiv:2207.13793).
    """
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
class TimingFinding:
    """Spearman's correlation between time and size of the noise, and its limit under no relation.

    ``limit`` is exceeded by independent times with probability at most ``failure_probability``.
    """

    correlation: float
    limit: float
    failure_probability: float
    repetitions: int

    @property
    def tells(self) -> bool:
        """Whether the time tells the size beyond chance."""
        return abs(self.correlation) > self.limit


def timing_attack(
    draw: Callable[[], object],
    *,
    repetitions: int = 2000,
    failure_probability: float = 1e-6,
    clock: Callable[[], int] = time.thread_time_ns,
) -> TimingFinding:
    """Call ``draw()`` many times and relate the time of a call to the size of its noise.

    ``draw`` returns the noise of one call, a number or a vector; the size of a vector is its mean
    absolute entry. The default clock counts the work of this thread only, not that of others.
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
