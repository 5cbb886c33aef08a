"""Closed forms for two releases, as published and corrected. Demonstrations, not guarantees.

Times 1 and 2 of the thesis are 0 and 1 elsewhere in this package. The noise of release t is
``s_t = (D/eps_t) sqrt(2 ln(1.26/delta_t))`` with ``D = width/n`` for a mean of n people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.conversion import gaussian_epsilon
from discreet.audit.series._leakage import largest
from discreet.audit.series.model import VAR, Floats
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, Unsupported

Mode: TypeAlias = Literal["as_text", "corrected"]
Scenario: TypeAlias = Literal["A1+N2", "A1+N3", "A2+N1", "A3+N3", "A4+N3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesClaim:
    """What a formula says, and what is true of the same releases under the model."""

    epsilon: float
    delta: float
    mu: float
    """The exact GDP mu under the model and the prior that was asked for."""

    @property
    def true_epsilon(self) -> float:
        """The exact epsilon at the claim's delta; infinite where the claim has no delta left."""
        return gaussian_epsilon(self.delta, mu=self.mu) if self.delta < 1 else math.inf


def total_dependence(first: float, *, second: float, ratio: float, mode: Mode) -> float:
    """The epsilon of two Laplace releases of x and ``ratio`` x, both scaled for x (C21)."""
    # Theorem: `first + |ratio| second`, attained. As published, `second / ratio` (M16).
    # Proof: a unit move of x moves the second release by `|ratio|` units.
    return first + (second / ratio if mode == "as_text" else abs(ratio) * second)


def independence(first: float, *, second: float) -> tuple[float, float]:
    """The epsilons of two releases of independent values: for one value, for a person (C22)."""
    return max(first, second), first + second


def adjusted_epsilon(
    epsilon: float, *, delta: float, shift: float, sensitivity: float, variance: float
) -> float:
    """The epsilon of a release whose noise is helped by model noise of this variance (C23, 6.6).

    Classical calibration: a claim at ``delta`` only while the result is below 1.
    """
    noise = (sensitivity / epsilon) ** 2 + variance / (2 * math.log(1.26 / delta))
    return shift / math.sqrt(noise)


def noise_std(epsilon: float, *, delta: float, sensitivity: float) -> float:
    """The thesis's noise: 1.26 in the place of the classical 1.25."""
    return sensitivity / epsilon * math.sqrt(2 * math.log(1.26 / delta))


def claim(
    model: VAR,
    *,
    scenario: Scenario,
    width: float,
    epsilons: tuple[float, float],
    deltas: tuple[float, float],
    person: int = 0,
    mode: Mode = "corrected",
    prior: Literal["model", "flat"] = "model",
) -> SeriesClaim:
    """Theorems 6.3.4 to 6.3.8, with everybody else's value at the secret's time known (C24-C28).

    ``prior="flat"`` forgets where values come from, as the published A2+N1 always does.
    """
    if model.order != 1:
        raise Unsupported("The published formulas are for models of order 1.")
    if scenario not in ("A1+N2", "A1+N3", "A2+N1", "A3+N3", "A4+N3"):
        raise InvalidArgument(f"scenario must be one of the theorems', got {scenario!r}.")
    n, i = model.people, count("person", person, minimum=0)
    D = float(positive("width", width)) / n
    e = (float(positive("epsilons", epsilons[0])), float(positive("epsilons", epsilons[1])))
    d = tuple(float(probability("deltas", x, zero=False, one=False)) for x in deltas)
    s = [noise_std(e[t], delta=d[t], sensitivity=D) for t in (0, 1)]
    text = mode == "as_text"
    late = scenario != "A2+N1"
    slopes, true = _forward(model) if late else _backward(model, flat=prior == "flat")
    stated, variance = _backward(model, flat=True) if text and not late else (slopes, true)
    t = 1 if late else 0
    # M17: the variance of a mean has n^2 below; M21: a slope may be negative.
    variance = variance * n if text else variance
    parts = [
        adjusted_epsilon(
            e[t], delta=d[t], shift=(x if text else abs(x)) * D, sensitivity=D, variance=variance
        )
        for x in stated.tolist()
    ]
    direct = np.array([D / s[0], D / s[1]])
    carried = slopes * D / math.sqrt(s[t] ** 2 + true)
    # M19: deltas add; the published sum is looser.
    both = d[0] + d[1]
    if text:
        both = math.exp(e[0]) * d[1] + math.exp(e[1]) * d[0] + d[0] * d[1]
    match scenario:
        case "A1+N2" | "A2+N1":
            return SeriesClaim(epsilon=parts[i], delta=d[t], mu=float(abs(carried[i])))
        case "A1+N3":
            mu = math.hypot(direct[0], carried[i])
            return SeriesClaim(epsilon=e[0] + parts[i], delta=both, mu=mu)
        case "A4+N3":
            return SeriesClaim(epsilon=e[0] + e[1], delta=both, mu=math.hypot(*direct))
        case _:
            mu = largest(np.array([np.full(n, direct[0]), carried])).upper
            return _everyone(e, d, parts, mu, text=text)


def _everyone(
    e: tuple[float, float], d: tuple[float, ...], parts: list[float], mu: float, *, text: bool
) -> SeriesClaim:
    """A3+N3: as stated, the group deltas of the proof added up, 1 at most (M20); or exact."""
    if not text:
        return SeriesClaim(epsilon=gaussian_epsilon(d[0] + d[1], mu=mu), delta=d[0] + d[1], mu=mu)
    with np.errstate(over="ignore"):
        first = d[0] * float(np.exp(e[0] * np.arange(len(parts))).sum())
        second = d[1] * float(np.exp(np.cumsum([0.0, *parts[:-1]])).sum())
    return SeriesClaim(epsilon=e[0] + sum(parts), delta=min(1.0, first + second), mu=mu)


def _forward(model: VAR) -> tuple[Floats, float]:
    """Slopes of the second sum on the first values, and the second mean's variance given them."""
    n = model.people
    slopes: Floats = model.matrices[0].sum(axis=0)
    return slopes, float(model.innovation.sum()) / n**2


def _backward(model: VAR, *, flat: bool) -> tuple[Floats, float]:
    """The same of the first sum and mean on the second values (C26)."""
    # Theorem: with `K = G A'(A G A' + Sigma)^-1` and `P = G - K A G`, the slopes are the column
    #   sums of K and the variance is `1'P 1 / n^2`. A flat prior has `K = A^-1` and
    #   `P = A^-1 Sigma A'^-1`.
    A, Sigma, G = model.matrices[0], model.innovation, model.initial
    n = model.people
    if flat:
        try:
            slopes = np.linalg.solve(A.T, np.ones(n))
        except np.linalg.LinAlgError:
            raise InvalidArgument("lags must be invertible for a flat prior.") from None
        return slopes, float(slopes @ Sigma @ slopes) / n**2
    K = np.linalg.solve(A @ G @ A.T + Sigma, A @ G).T
    rest = np.eye(n) - K @ A
    P = rest @ G @ rest.T + K @ Sigma @ K.T  # equal to G - K A G, without cancellation
    return K.sum(axis=0), float(P.sum()) / n**2
