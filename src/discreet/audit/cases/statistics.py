"""Statistics of a column, its intervals, and the model of a panel, registered for the audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet.audit import exact
from discreet.audit.case import ONE_BY_ONE, AuditCase, one_by_one
from discreet.audit.cases.mechanisms import integer_distributions
from discreet.audit.lattice_distribution import Floats, listed
from discreet.audit.series._private_fit import plan_fit
from discreet.intervals._mean import difference_interval, mean_interval, variance_interval
from discreet.intervals._proportion import proportion_interval
from discreet.intervals._quantile import quantile_interval
from discreet.intervals.interval import IntervalPlan
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.bin_statistics import private_bin_counts
from discreet.mechanisms.bounded.mechanism import BoundedOutput, clamp_output, reflect_output
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.quantiles import private_quantiles
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, seeded_rng

_ROWS, _MANY = 6, 40
_TOP = 5
"""Upper bound of what is clamped or folded; the lower one is zero."""
_ALL_LOW, _ONE_HIGH = (0.0,) * _ROWS, (0.0,) * (_ROWS - 1) + (1.0,)
"""One row is replaced, from one bound to the other."""


def cases() -> tuple[AuditCase, ...]:
    """Each on the neighbors that move it most."""
    return (*_within(), *_columns(), *_intervals(), _panel())


# ── brought back between bounds ───────────────────────────────────────────────────────────────


def _within() -> tuple[AuditCase, ...]:
    noise = laplace(sensitivity=1, epsilon=1, domain="integers")
    ends = {"lower": 0, "upper": _TOP}

    def cut(k: int) -> int:
        return min(max(k, 0), _TOP)

    def mirrored(k: int) -> int:
        turn = k % (2 * _TOP)
        return min(turn, 2 * _TOP - turn)

    return (
        _between("clamped laplace", clamp_output(noise, **ends), cut),
        _between("folded laplace", reflect_output(noise, **ends), mirrored),
    )


def _between(name: str, mechanism: BoundedOutput, back: Callable[[int], int]) -> AuditCase:
    def draw(value: int, n: int, seed: int) -> object:
        return mechanism.release(np.full(n, value), rng=seeded_rng(seed))

    assert isinstance(mechanism.inner, AdditiveMechanism)  # noqa: S101 - both of these are
    assert mechanism.inner.integers is not None  # noqa: S101 - and made on integers
    assert isinstance(mechanism.inner.integers.noise, DiscreteLaplace)  # noqa: S101
    noise = listed(mechanism.inner.integers.noise)

    def law(value: int) -> dict[int, float]:
        masses: dict[int, list[float]] = {}
        for k, mass in zip(range(noise.start, noise.stop), noise.mass, strict=True):
            masses.setdefault(back(value + k), []).append(float(mass))
        return {place: math.fsum(found) for place, found in masses.items()}

    left, right = 1, 2
    return AuditCase(
        name=name,
        claimed=mechanism.guarantee,
        draw=draw,
        left=left,
        right=right,
        laws=lambda: exact.pair(law(left), law(right), error=noise.missing),
        mechanism=mechanism,
    )


# ── of a column ───────────────────────────────────────────────────────────────────────────────


def _columns() -> tuple[AuditCase, ...]:
    quantiles = private_quantiles([0.3, 0.7], lower=0, upper=1, granularity=0.5, epsilon=12)
    mean = mean_without_bounds(unit=1, epsilon=8)
    variance = private_variance(lower=0, upper=1, public_rows=_ROWS, epsilon=1)
    root = private_std(lower=0, upper=1, public_rows=_ROWS, epsilon=1)
    direct = private_std(lower=0, upper=1, public_rows=_ROWS, epsilon=1, direct=True)
    counts = private_bin_counts(lower=0, upper=1, bins=3, epsilon=1)

    def counted(values: Sequence[float], *, rng: RandomSource) -> tuple[float, ...]:
        return counts.release(values, rng=rng).counts

    def found(values: Sequence[float], *, rng: RandomSource) -> tuple[float, float, float]:
        released = mean.release(values, rng=rng)
        return released.value, released.lower, released.upper

    low, more = (0.0,) * 4, (0.0,) * 4 + (1.0,)
    spreads = {"private variance": variance, "private sd": root, "private sd, direct": direct}
    return (
        one_by_one(
            "private quantiles",
            quantiles.release,
            (),
            (1.0,),
            claimed=quantiles.guarantee,
            mechanism=quantiles,
        ),
        one_by_one(
            "unbounded mean",
            found,
            low,
            (*low, 1e6),
            claimed=mean.guarantee,
            samples=500,
            mechanism=mean,
        ),
        *(
            one_by_one(
                name, made.release, _ALL_LOW, _ONE_HIGH, claimed=made.guarantee, mechanism=made
            )
            for name, made in spreads.items()
        ),
        one_by_one(
            "counts of bins",
            counted,
            low,
            more,
            claimed=counts.guarantee,
            mechanism=counts,
            # The bins without the row have the same law on both sides.
            laws=lambda: integer_distributions(counts.inner, 1),
        ),
    )


# ── intervals ─────────────────────────────────────────────────────────────────────────────────


def _intervals() -> tuple[AuditCase, ...]:
    mean = mean_interval(lower=0, upper=1, public_rows=_ROWS, epsilon=1)
    variance = variance_interval(lower=0, upper=1, public_rows=_ROWS, epsilon=1)
    share = proportion_interval(public_rows=_ROWS, epsilon=1)
    # With fewer rows it would answer with the bounds, for nothing.
    median = quantile_interval(lower=0, upper=1, public_rows=_MANY, granularity=0.125, epsilon=4)
    apart = difference_interval(lower=0, upper=1, public_rows=(3, 3), epsilon=1)

    def difference(values: Sequence[float], *, rng: RandomSource) -> tuple[float, ...]:
        found = apart.release(values[:3], values[3:], rng=rng)
        return found.low, found.high, found.value, *found.released

    few, half = (_ALL_LOW, _ONE_HIGH), _MANY // 2
    many = ((0.0,) * half + (1.0,) * half, (0.0,) * (half - 1) + (1.0,) * (half + 1))
    return (
        _interval("interval of a mean", mean, *few),
        _interval("interval of a variance", variance, *few),
        _interval("interval of a share", share, *few),
        _interval("interval of a median", median, *many),
        one_by_one(
            "interval of a difference", difference, *few, claimed=apart.guarantee, mechanism=apart
        ),
    )


def _interval(
    name: str, plan: IntervalPlan, left: Sequence[float], right: Sequence[float]
) -> AuditCase:
    samples = 20_000 if len(left) == _ROWS else ONE_BY_ONE
    return AuditCase(
        name=name,
        claimed=plan.guarantee,
        draw=partial(_ends, plan),
        left=left,
        right=right,
        samples=samples,
        mechanism=plan,
    )


def _ends(plan: IntervalPlan, values: Sequence[float], n: int, seed: int) -> Floats:
    """All that an interval tells."""
    found = plan.answers(np.tile(np.array(values), (n, 1)), seeded_rng(seed))
    spread = () if found.spread is None else (found.spread,)
    told = (found.low, found.high, found.value, *spread, *found.released)
    return np.stack([np.asarray(part, dtype=np.float64) for part in told], axis=1)


# ── a panel ───────────────────────────────────────────────────────────────────────────────────


def _panel() -> AuditCase:
    plan = plan_fit(people=3, times=4, bounds=(0, 1), epsilon=4, delta=1e-3)

    def draw(panel: Any, n: int, seed: int) -> Floats:
        """All that is released; the model is solved from it."""
        bits = seeded_rng(seed)
        totals, products = (
            np.tile(np.ravel(part), (n, 1)) for part in plan.statistics(np.asarray(panel))
        )
        noisy = (plan.totals.release(totals, rng=bits), plan.products.release(products, rng=bits))
        return np.concatenate(noisy, axis=1).astype(np.float64)

    flat = ((0.5,) * 4,) * 2
    return AuditCase(
        name="model of a panel",
        claimed=plan.guarantee,
        draw=draw,
        # A person's own level is removed first: what moves most is a row turned upside down.
        left=(*flat, (0.0, 1.0, 0.0, 1.0)),
        right=(*flat, (1.0, 0.0, 1.0, 0.0)),
        samples=100_000,
    )
