"""From a panel to a table: how much each person's series leaks, and what noise would fix it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.conversion import gaussian_mu
from discreet.core.check import finite, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.leakage.series.answer import epsilon_of
from discreet.leakage.series.design import Design, Shape, design
from discreet.leakage.series.engine import Cells, cells
from discreet.leakage.series.fit import Dynamics, checked_panel, fit
from discreet.leakage.series.model import VAR
from discreet.leakage.series.threat import Known, releases

# Releases up to which better noise than equal is looked for: it takes seconds.
_CORRELATED = 12
_INDEPENDENT = 50
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One person's worst moment."""

    person: int
    time: int
    """When their value leaks most."""
    mu: float
    epsilon: float
    """Of that value, under the model."""
    promised: float
    """The epsilon that the noise alone promises for one value of theirs."""
    user: float
    """The epsilon that the noise alone promises for all their values together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """How much a series leaks. It is computed from the panel itself: not for publication."""

    cells: Cells
    people: tuple[Person, ...]
    """The worst first."""
    delta: float
    target: float
    """The epsilon that the designs below keep for every value."""
    clipped: float
    """The share of values outside the bounds: the model does not know that they are clipped."""
    fixes: tuple[Design, ...] = field(repr=False)
    """Noise that meets the target: equal; for few releases also independent and correlated."""

    def __str__(self) -> str:
        head = f"{'person':>8} {'time':>6} {'leaks':>8} {'promised':>9} {'all values':>11}"
        rows = [
            f"{p.person:>8} {p.time:>6} {p.epsilon:>8.3g} {p.promised:>9.3g} {p.user:>11.3g}"
            for p in self.people[:_SHOWN]
        ]
        rest = len(self.people) - len(rows)
        return "\n".join(
            [
                f"epsilon at delta {self.delta:g} of one value, the worst people first",
                head,
                *rows,
                *([f"and {rest} more"] if rest else []),
                "leaks: under the model; promised and all values: from the noise alone",
                f"{self.clipped:.1%} of the values are outside the bounds",
                f"to keep epsilon {self.target:.4g} for every value:",
                *(f"  {fix}" for fix in self.fixes),
                *(f"assumed: {line}" for line in self.cells.assumptions),
                "computed from the panel itself: not for publication",
            ]
        )


def report(  # noqa: PLR0913 (one question with many knobs, all with a default but the first three)
    panel: ArrayLike,
    *,
    bounds: tuple[float, float],
    std: ArrayLike,
    released: Iterable[int] | None = None,
    delta: float = 1e-6,
    target: float | None = None,
    known: Known = "time",
    model: VAR | None = None,
    order: int = 1,
    dynamics: Dynamics = "own",
) -> Report:
    """How much the published means of a panel, people x times, leak about each value.

    ``bounds`` is the public range that values are clipped to, ``std`` the noise on each published
    mean, ``released`` the times that are published (default: all), ``target`` the epsilon to keep
    for every value (default: what the noise promises if values were independent). A public
    ``model`` is better than one that is fitted here.

    Needs: a data holder's eyes only. The answer depends on the panel without noise.
    """
    values = checked_panel(panel)
    low, high = (float(finite("bounds", end)) for end in bounds)
    if not low < high:
        raise InvalidArgument(f"bounds must be increasing, got {low:g} and {high:g}.")
    small = float(probability("delta", delta, zero=False, one=False))
    people, times = values.shape
    outside = float(((values < low) | (values > high)).mean())
    used = (
        fit(np.clip(values, low, high), order=order, dynamics=dynamics) if model is None else model
    )
    published = releases(
        times=range(times) if released is None else released,
        width=high - low,
        people=people,
        std=std,
    )
    found = cells(used, releases=published, known=known, times=times)
    promised = float(found.direct.max())
    mu = promised if target is None else gaussian_mu(float(positive("target", target)), delta=small)
    many = len(published.times)
    shapes: list[Shape] = ["equal"]
    shapes += ["independent"] if many <= _INDEPENDENT else []
    shapes += ["correlated"] if many <= _CORRELATED else []
    return Report(
        cells=found,
        people=_people(found, small),
        delta=small,
        target=epsilon_of(mu, delta=small),
        clipped=outside,
        fixes=tuple(
            design(used, releases=published, mu=mu, known=known, shape=shape, times=times)
            for shape in shapes
        ),
    )


def _people(found: Cells, delta: float) -> tuple[Person, ...]:
    worst = found.mu.argmax(axis=1)
    top = found.mu.max(axis=1)
    return tuple(
        Person(
            person=int(i),
            time=int(worst[i]),
            mu=float(top[i]),
            epsilon=epsilon_of(float(top[i]), delta=delta),
            promised=epsilon_of(float(found.direct[i].max()), delta=delta),
            user=epsilon_of(float(found.user[i]), delta=delta),
        )
        for i in np.argsort(-top, kind="stable")
    )
