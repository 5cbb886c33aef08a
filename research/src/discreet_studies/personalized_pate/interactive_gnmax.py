"""Asking teachers only where a student is wrong or unsure (M15)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument
from discreet.models.pate.aggregators import UNANSWERED, as_counts
from discreet.models.pate.classifier import LabelRelease
from discreet.models.pate.label_plan import LabelPlan
from discreet.noise.random_source import RandomSource, resolve_rng


def reinforced(
    counts: ArrayLike,
    confidences: ArrayLike,
    *,
    plan: LabelPlan,
    sure: float,
    rng: RandomSource | None = None,
) -> LabelRelease:
    """Labels from teachers where they contradict a student, from a sure student elsewhere.

    ``counts``: units of votes, a row for each public item; ``confidences``: the probabilities that
    the student, trained on published labels, gives each class. The threshold of the plan's rule
    is one for votes beyond what the student expects. Where the test does not pass and the student
    is more than ``sure``, the label is the student's own.
    """
    # Theorem: the run keeps the guarantee of `plan`.
    # Proof: the student's expectation is public, so the largest excess of a count over it moves by
    #   no more than the largest count; the test costs as much, in all three branches, and the
    #   votes on top of it where it passes. The rest is post-processing.
    # Source: Papernot et al. 2018, Algorithm 2 (which thresholds in the same way).
    source = resolve_rng(rng)
    found = as_counts(counts)
    known = np.asarray(confidences, dtype=np.float64)
    if known.shape != found.shape or found.shape[1] != plan.classes:
        raise InvalidArgument("counts and confidences must have a row for each item, a column for "
                              "each class.")  # fmt: skip
    if not np.isfinite(known).all() or (known < 0).any() or (known > 1).any():
        raise InvalidArgument("confidences must be probabilities.")
    limit = float(probability("sure", sure))
    expected = np.rint(known * float(plan.assignment.weights.sum())).astype(np.int64)
    held = found[: plan.queries]
    told = np.flatnonzero(
        plan.aggregator.passes_threshold(held - expected[: plan.queries], rng=source)
    )
    told = told[: plan.answers]
    asked = int(told[-1]) + 1 if len(told) == plan.answers else len(held)
    own = np.where(known.max(axis=1) > limit, known.argmax(axis=1), UNANSWERED)
    labels = own[:asked].astype(np.int64)
    labels[told] = plan.aggregator.answers(held[told], rng=source)
    return LabelRelease(labels=labels, guarantee=plan.guarantee)
