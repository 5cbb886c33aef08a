"""How much each level may weigh, and how many labels that gives (M20, M24, M25, M41)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Literal, TypeAlias

import scipy.optimize

from discreet.accounting.conversion import gaussian_delta, zcdp_rho
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import count, finite, positive
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.models.pate.aggregate import Confident

Method: TypeAlias = Literal["gaussian", "concentrated", "epsilon"]


def sensitivities(
    limits: Mapping[str, Guarantee], *, method: Method = "gaussian"
) -> dict[str, float]:
    """How much each level may weigh so that all reach their limits together; only ratios matter.

    ``gaussian``: the mu of Gaussian privacy, exact for the accounting of `plan`.
    ``concentrated``: the root of rho, for Rényi accounting. ``epsilon``: as in the thesis, which
    gives generous levels a little too much.
    """
    return {name: _root(*target(limit), method) for name, limit in limits.items()}


def target(limit: Guarantee) -> tuple[float, float]:
    """Epsilon and delta of a level's limit, as doubles: for what is not claimed at them."""
    epsilon, delta = stated(limit)
    return float(epsilon), float(delta)


def stated(limit: Guarantee) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a level's limit, as they were stated."""
    match limit.event:
        case events.Approx(epsilon, delta) if delta > 0:
            return epsilon, delta
        case _:
            raise Unsupported("A level's limit must be discreet.approx(epsilon, delta) here.")


def label_law(
    people: Mapping[str, float],
    limits: Mapping[str, Guarantee],
    *,
    against: Guarantee,
    method: Method = "concentrated",
) -> float:
    """Labels for each label of a plain ensemble with the limit ``against`` (M41).

    Theorem: with costs that do not depend on the votes it is (sum_l w_l s_l / s)^2 for the shares
        w_l of the levels and the `sensitivities` s_l.
    Proof: weights are s_l / sum_l w_l s_l, and a label costs their square; a level has s_l^2.
    """
    roots = sensitivities(limits, method=method)
    if sorted(people) != sorted(roots):
        raise InvalidArgument("people and limits must name the same levels.")
    total = sum(people.values())
    mean = sum(people[name] * roots[name] for name in roots) / total
    return (mean / _root(*target(against), method)) ** 2


def vanishing_law(share: float, *, ratio: float, part: float) -> float:
    """Labels for each label of the stricter limit when its teachers sit out (M21, M41).

    ``share``: of the generous level; ``ratio``: of the two rho; ``part``: of the votes that the
    strict teachers take part in.
    """
    present = share + (1 - share) * part
    return min(ratio * present**2, present**2 / part)


def copies(
    sensitivities: Mapping[str, float], *, tolerance: float = 0.05, most: int = 20
) -> dict[str, int]:
    """The fewest copies of each record whose numbers are near the ratios (M20)."""
    smallest = min(sensitivities.values())
    ratios = {name: value / smallest for name, value in sensitivities.items()}
    for times in range(1, count("most", most) + 1):
        found = {name: round(times * ratio) for name, ratio in ratios.items()}
        if all(abs(times * ratios[name] - found[name]) <= tolerance for name in found):
            return found
    raise NotCertified(
        f"No copies up to {most} of the strictest level come within {tolerance} of these ratios; "
        "allow more copies or a larger tolerance, or use weighting."
    )


def scaled(rule: Confident, factor: float | Fraction) -> Confident:
    """The rule for ``factor`` times as much weight in all: the same noise in proportion (M25)."""
    times = positive("factor", factor)
    return Confident(
        threshold=finite("threshold", rule.threshold) * times,
        sigma_threshold=positive("sigma_threshold", rule.sigma_threshold) * times,
        sigma_votes=positive("sigma_votes", rule.sigma_votes) * times,
    )


def balance(
    limits: Mapping[str, Guarantee],
    spend: Callable[[Mapping[str, float]], Mapping[str, float]],
    *,
    tolerance: float = 0.01,
    rounds: int = 50,
) -> dict[str, float]:
    """Sensitivities at which all levels reach their limits together, by trying (M24 iii).

    ``spend`` runs votes that are simulated or from public data, never the private ones, with these
    sensitivities, and says each level's epsilon at the end.
    """
    found = sensitivities(limits)
    for _ in range(rounds):
        spent = spend(found)
        used = {name: spent[name] / target(limit)[0] for name, limit in limits.items()}
        top = max(used.values())
        if not 0 < min(used.values()) <= top < math.inf:
            raise InvalidArgument("spend must give a positive epsilon for each level.")
        if min(used.values()) > (1 - tolerance) * top:
            return found
        # A cost grows about as its sensitivity; half of the step does not oscillate.
        found = {name: found[name] * math.sqrt(top / used[name]) for name in found}
    raise NotCertified(f"The levels did not end together within {rounds} rounds.")


def _root(epsilon: float, delta: float, method: Method) -> float:
    if method == "epsilon":
        return epsilon
    if method == "concentrated":
        return math.sqrt(zcdp_rho(epsilon, delta=delta))
    if method != "gaussian":
        raise InvalidArgument(f"method must be gaussian, concentrated or epsilon, got {method!r}.")

    def excess(mu: float) -> float:
        return float(gaussian_delta(epsilon, mu=mu)) - delta

    return float(scipy.optimize.brentq(excess, 1e-6, 100.0, xtol=1e-13))
