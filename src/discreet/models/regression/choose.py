"""Which method to fit with: the one with the smallest error to expect, from public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.models.inputs import Bounds
from discreet.models.regression.boosted import Boosted
from discreet.models.regression.forecast import forecast
from discreet.models.regression.gradient import Gradient
from discreet.models.regression.guard import Level
from discreet.models.regression.moments import gaussian_budget
from discreet.models.regression.task import Method, strength
from discreet.models.regression.theil_sen import TheilSen

METHODS: Mapping[str, Method] = {
    "level": Level(),
    "gradient": Gradient(),
    "boosted": Boosted(),
    "theil_sen": TheilSen(),
}
WIDTH = 10.0
# Forecasts are guesses. Whatever has slopes must promise clearly less than the level; among those,
# descent suffers more than boosting where columns differ more than in the forecast, and Theil-Sen
# where the target is explained worse: their forecasts are weighed.
_WEIGHTS = {"gradient": 1.3, "boosted": 1.0, "theil_sen": 1.3}
_CLEARLY = 0.95
# Below this signal nothing but the level is tried.
_LEAST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen method, and the error to expect of each, best first.

    Errors are mean squares, in multiples of what least squares without privacy would have.
    """

    method: str
    errors: Mapping[str, float] = field(default_factory=dict)
    signal: float
    """Rows times mu over the root of the columns."""

    def __str__(self) -> str:
        lines = [
            f"{'*' if name == self.method else ' '} {name:<10} {error:8.3f}"
            for name, error in self.errors.items()
        ]
        return "\n".join(["error to expect, 1 is least squares without privacy:", *lines])


def choose(
    *,
    rows: float,
    bounds: Bounds = None,
    features: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    width: float = WIDTH,
) -> Choice:
    """Rank the methods by the error to expect of them; nothing private is looked at.

    ``rows``: about how many there are; a factor of two does not matter. Give ``features``, or the
    ``bounds`` that are declared of each. ``width``: how many deviations of a column fit into half
    its declared range, at a guess: 3 is tight, 40 very wide.

    A method with slopes must promise clearly less error than the level; what suffers more where
    data differ from the forecast is weighed.

    >>> choose(rows=100_000, features=8, epsilon=1, delta=1e-6).method
    'boosted'
    >>> choose(rows=300, features=8, epsilon=0.1, delta=1e-6).method
    'level'
    """
    if (bounds is None) == (features is None):
        raise InvalidArgument("Give bounds, one pair for each feature, or features, their number.")
    many = check.count("features", len(bounds) if features is None else features)
    if not 0 < float(rows) < float("inf"):
        raise InvalidArgument(f"rows must be a positive number, got {rows}.")
    mu = strength(gaussian_budget(epsilon=epsilon, delta=delta, rho=rho))
    errors = forecast(rows=float(rows), features=many, mu=mu, width=width)
    signal = float(rows) * mu / math.sqrt(many + 1)
    tried = {
        name: error * _WEIGHTS[name]
        for name, error in errors.items()
        if signal >= _LEAST and error < _CLEARLY * errors["level"]
    }
    chosen = min(tried, key=lambda name: tried[name]) if tried else "level"
    return Choice(method=chosen, errors=errors, signal=signal)
