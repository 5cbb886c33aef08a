"""How much each privacy level may weigh, and how many labels its budget pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import scipy.optimize

from discreet.accounting.conversion import gaussian_delta, zcdp_rho
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._validate import count, finite, positive, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, Unsupported
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.teacher_assignment import TeacherAssignment

# ── Weights of the levels ────────────────────────────────────────────────────────────────────────


Method: TypeAlias = Literal["gaussian", "concentrated", "epsilon"]


def vote_weights(
    limits: Mapping[str, Guarantee], *, method: Method = "gaussian"
) -> dict[str, float]:
    """Compute how much the votes of each privacy level may weigh.

    With these weights all levels reach their limits together. Only their ratios matter.

    Args:
        limits: Limit of each level, made with `discreet.approx_dp`.
        method: `"gaussian"` for the mu of Gaussian DP, which fits `plan_labels` exactly;
            `"concentrated"` for the root of rho; `"epsilon"` for epsilon, which gives high levels
            slightly too much.

    Returns:
        One weight per level.

    Raises:
        Unsupported: A limit is not approximate DP.

    Examples:
        >>> import discreet
        >>> limits = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(3, 1e-5)}
        >>> weights = discreet.models.pate.vote_weights(limits)
        >>> round(weights["high"] / weights["low"], 2)
        2.68
    """
    return {name: _root(*target(limit), method) for name, limit in limits.items()}


def target(limit: Guarantee) -> tuple[float, float]:
    """Epsilon and delta of a level's limit, as doubles: for what is not claimed at them."""
    epsilon, delta = exact_target(limit)
    return float(epsilon), float(delta)


def exact_target(limit: Guarantee) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a level's limit, as they were stated."""
    match limit.event:
        case events.ApproxEvent(epsilon, delta) if delta > 0:
            return epsilon, delta
        case _:
            raise Unsupported("A level's limit must be discreet.approx_dp(epsilon, delta) here.")


def expected_label_ratio(
    people: Mapping[str, float],
    limits: Mapping[str, Guarantee],
    *,
    against: Guarantee,
    method: Method = "concentrated",
) -> float:
    """Compute how many labels personal limits give, compared with one common limit.

    Args:
        people: Number or share of people of each level.
        limits: Limit of each level, made with `discreet.approx_dp`.
        against: Common limit of the ensemble to compare with.
        method: How limits are turned into weights, as in `vote_weights`.

    Returns:
        Number of labels per label of the common ensemble.

    Raises:
        InvalidArgument: `people` and `limits` name different levels.
        Unsupported: A limit is not approximate DP.

    Examples:
        >>> import discreet
        >>> limits = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(3, 1e-5)}
        >>> ratio = discreet.models.pate.expected_label_ratio(
        ...     {"low": 60, "high": 40}, limits, against=limits["low"]
        ... )
        >>> round(ratio, 2)
        3.08

    References:
        [Proof](../theory/theorems.md#models.pate.label_plan.expected_label_ratio).
    """
    # Theorem: with costs that do not depend on the votes it is (sum_l w_l s_l / s)^2 for the shares
    #   w_l of the levels and the `vote_weights` s_l.
    # Proof: weights are s_l / sum_l w_l s_l, and a label costs their square; a level has s_l^2.
    roots = vote_weights(limits, method=method)
    if sorted(people) != sorted(roots):
        raise InvalidArgument("people and limits must name the same levels.")
    total = sum(people.values())
    mean = sum(people[name] * roots[name] for name in roots) / total
    return (mean / _root(*target(against), method)) ** 2


def vanishing_label_ratio(share: float, *, ratio: float, part: float) -> float:
    """Labels for each label of the stricter limit when its teachers sit out.

    ``share``: of the generous level; ``ratio``: of the two rho; ``part``: of the votes that the
    strict teachers take part in.
    """
    present = share + (1 - share) * part
    return min(ratio * present**2, present**2 / part)


def copies(
    sensitivities: Mapping[str, float], *, tolerance: float = 0.05, most: int = 20
) -> dict[str, int]:
    """The fewest copies of each record whose numbers are near the ratios."""
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


def scale_aggregator(aggregator: ConfidentGNMax, factor: float | Fraction) -> ConfidentGNMax:
    """The rule for ``factor`` times as much weight in all: the same noise in proportion."""
    times = positive("factor", factor)
    return ConfidentGNMax(
        threshold=finite("threshold", aggregator.threshold) * times,
        sigma_threshold=positive("sigma_threshold", aggregator.sigma_threshold) * times,
        sigma_votes=positive("sigma_votes", aggregator.sigma_votes) * times,
    )


def balance(
    limits: Mapping[str, Guarantee],
    spend: Callable[[Mapping[str, float]], Mapping[str, float]],
    *,
    tolerance: float = 0.01,
    rounds: int = 50,
) -> dict[str, float]:
    """Sensitivities at which all levels reach their limits together, by trying.

    ``spend`` runs votes that are simulated or from public data, never the private ones, with these
    sensitivities, and says each level's epsilon at the end.
    """
    found = vote_weights(limits)
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


# ── Plan ─────────────────────────────────────────────────────────────────────────────────────────


# Questions beyond what the share of answers lets expect, so that chance does not end a run early.
SPARE = 1.1
_MOST = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """A plan for a run of PATE: largest numbers of queries and answers.

    Args:
        assignment: Assignment of people to teachers.
        aggregator: Aggregator of the votes.
        classes: Number of classes.
        queries: Largest number of items that are asked.
        answers: Largest number of items that are answered.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        A run costs each level `guarantee`, whatever the votes are.

    Examples:
        >>> from discreet.models import pate
        >>> plan = pate.LabelPlan(
        ...     assignment=pate.assign_upsampling(100, copies={"all": 1}),
        ...     aggregator=pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10),
        ...     classes=2,
        ...     queries=10,
        ...     answers=5,
        ... )
        >>> plan.guarantee.epsilons(1e-5)["all"] < 2
        True

    References:
        [Proof](../theory/theorems.md#models.pate.label_plan.LabelPlan).
    """

    # Theorem: a run that ends after `queries` questions or `answers` answers, whichever comes
    #   first, keeps `guarantee`, and so does its length.
    # Proof: the questions and the answers are two interactive mechanisms that are run concurrently;
    #   together they are no worse than one after the other (Vadhan, Zhang 2023), and each is an
    #   adaptive composition of equal events. Questions that are not asked cost nothing more. When
    #   the run ends is a function of what it published.

    assignment: TeacherAssignment
    aggregator: ConfidentGNMax
    classes: int
    queries: int
    answers: int

    def __post_init__(self) -> None:
        count("queries", self.queries, minimum=0)
        count("answers", self.answers)

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """Cost of the whole run for each privacy level, fixed before the first vote."""
        ask = self.aggregator.query_cost(self.assignment)
        tell = self.aggregator.answer_cost(self.assignment, classes=self.classes)
        return ask * self.queries + tell * self.answers


def plan_labels(
    assignment: TeacherAssignment,
    aggregator: ConfidentGNMax,
    limits: Mapping[str, Guarantee],
    *,
    classes: int,
    answered_share: float,
    items: int | None = None,
) -> LabelPlan:
    """Plan the longest run that satisfies the limit of every privacy level.

    Args:
        assignment: Assignment of people to teachers.
        aggregator: Aggregator of the votes.
        limits: Limit of each level, made with `discreet.approx_dp`.
        classes: Number of classes, at least 2.
        answered_share: Expected share of items that are answered, guessed from public data. A wrong
            guess costs labels, not privacy.
        items: Number of public items. By default it does not limit the run.

    Returns:
        The plan.

    Raises:
        BudgetExceeded: A limit does not pay for a single label.
        InvalidArgument: `limits` names other levels, or an argument is outside its range.

    Privacy:
        The plan depends on public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> from discreet.models import pate
        >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
        >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=10, sigma_votes=10)
        >>> limits = {"all": discreet.approx_dp(2, 1e-5)}
        >>> plan = pate.plan_labels(teachers, aggregator, limits, classes=2, answered_share=0.8)
        >>> plan.answers <= plan.queries
        True

    See Also:
        `tune_aggregator`: choose the aggregator as well.
    """
    probability("answered_share", answered_share, zero=False)
    levels = personalized(limits)
    if levels.names != assignment.names:
        raise InvalidArgument(f"limits must name the levels {', '.join(assignment.names)}.")
    number = count("classes", classes, minimum=2)
    most = _MOST if items is None else count("items", items)
    targets = {name: target(levels[name]) for name in levels}

    def run(answers: int) -> LabelPlan:
        questions = math.ceil(answers / answered_share * (SPARE if answered_share < 1 else 1))
        questions = questions if items is None else min(questions, items)
        return LabelPlan(
            assignment=assignment,
            aggregator=aggregator,
            classes=number,
            queries=questions,
            answers=answers,
        )

    def kept(answers: int) -> list[str]:
        """The levels whose limits would be passed."""
        spent = run(answers).guarantee
        return [name for name, (epsilon, d) in targets.items() if spent[name].epsilon(d) > epsilon]

    short = kept(1)
    if short:
        raise BudgetExceeded(
            f"The limit of {', '.join(short)} does not pay for a single label; more noise, more "
            "teachers, less weight for that level or a larger limit would help."
        )
    low, high = 1, 2
    while high <= most and not kept(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return run(low)
