"""How many labels a menu of budgets pays for, before a vote is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core.check import count, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.models.pate.aggregate import Confident
from discreet.models.pate.assignment import Assignment
from discreet.models.pate.calibrate import target

# Questions beyond what the share of answers lets expect, so that chance does not end a run early.
SPARE = 1.1
_MOST = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """At most so many questions and answers; what they cost each level at most.

    Theorem: a run that ends after ``questions`` questions or ``answers`` answers, whichever comes
        first, keeps ``guarantee``, and so does its length.
    Proof: the questions and the answers are two interactive mechanisms that are run concurrently;
        together they are no worse than one after the other (Vadhan, Zhang 2023), and each is an
        adaptive composition of equal events. Questions that are not asked cost nothing more. When
        the run ends is a function of what it published.
    """

    assignment: Assignment
    rule: Confident
    classes: int
    questions: int
    answers: int

    def __post_init__(self) -> None:
        count("questions", self.questions, minimum=0)
        count("answers", self.answers)

    @property
    def guarantee(self) -> PersonalGuarantee:
        """What each level pays for the whole run, fixed before the first vote."""
        ask = self.rule.question(self.assignment)
        tell = self.rule.answer(self.assignment, classes=self.classes)
        return ask * self.questions + tell * self.answers


def plan_labels(
    assignment: Assignment,
    rule: Confident,
    limits: Mapping[str, Guarantee],
    *,
    classes: int,
    answered: float,
    items: int | None = None,
) -> LabelPlan:
    """The longest run that keeps every level's limit.

    ``answered``: the share of items that are answered, guessed from public data; a wrong guess
    costs labels, not privacy. ``items``: how many there are to ask, if that is the limit.
    """
    probability("answered", answered, zero=False)
    menu = personal(limits)
    if menu.names != assignment.names:
        raise InvalidArgument(f"limits must name the levels {', '.join(assignment.names)}.")
    number = count("classes", classes, minimum=2)
    most = _MOST if items is None else count("items", items)
    targets = {name: target(menu[name]) for name in menu}

    def run(answers: int) -> LabelPlan:
        questions = math.ceil(answers / answered * (SPARE if answered < 1 else 1))
        questions = questions if items is None else min(questions, items)
        return LabelPlan(
            assignment=assignment, rule=rule, classes=number, questions=questions, answers=answers
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
