"""How much designed noise saves on a panel of people who are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.leakage.series.alike import Alike
from discreet.leakage.series.design import design
from discreet.leakage.series.threat import releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Total variances for the same worst leakage, as shares of that of equal noise."""

    habit: float
    independent: float
    correlated: float
    least: float
    """No noise, however correlated, has less and meets the target."""


def savings(
    habits: Sequence[float],
    *,
    people: int = 50,
    times: int = 12,
    correlation: float = 0.1,
    width: float = 8.0,
    mu: float = 0.32,
) -> tuple[Saving, ...]:
    """For each habit: noise under which no value leaks more than mu.

    Shocks have variance 1; ``width`` is that of the public range.
    """
    rows = []
    for habit in habits:
        model, weights = Alike(habits=(habit,), variance=1.0, correlation=correlation).pair(people)
        asked = releases(times=range(times), width=width, people=2, std=1.0, weights=weights)
        free = design(model, releases=asked, mu=mu, shape="independent", people=[0])
        best = design(model, releases=asked, mu=mu, shape="correlated", people=[0])
        rows.append(
            Saving(
                habit=habit,
                independent=free.total / free.equal,
                correlated=best.total / best.equal,
                least=best.least / best.equal,
            )
        )
    return tuple(rows)
