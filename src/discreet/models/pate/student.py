"""The model that is published: it learns from the labels alone, so it costs nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.semi_supervised import SelfTrainingClassifier

from discreet.core.check import probability
from discreet.core.errors import InvalidArgument
from discreet.models.pate.aggregate import UNANSWERED
from discreet.models.pate.ensemble import Labels


def train_student(
    estimator: Any,
    X: ArrayLike,
    labels: Labels,
    *,
    semi_supervised: bool = False,
    threshold: float = 0.9,
) -> Any:
    """A classifier trained on the public items that have a label.

    Theorem: the student has the guarantee of the labels. Proof: post-processing.

    ``semi_supervised``: the student also labels the items without an answer of which it is at
    least ``threshold`` sure, and goes on from there (self-training; the estimator needs
    ``predict_proba``). ``X`` holds all public items, in the order in which they were asked; those
    after the end of the run count as unanswered.
    """
    items = np.asarray(X)
    if len(items) < labels.asked:
        raise InvalidArgument(f"X must hold the {labels.asked} items that were asked.")
    target = np.full(len(items), UNANSWERED, dtype=np.int64)
    target[: labels.asked] = labels.labels
    told = np.flatnonzero(target != UNANSWERED)
    if not len(told):
        raise InvalidArgument("No item has a label; the student has nothing to learn from.")
    if not semi_supervised:
        return clone(estimator).fit(items[told], target[told])
    if not hasattr(estimator, "predict_proba"):
        raise InvalidArgument("semi_supervised needs an estimator with predict_proba.")
    probability("threshold", threshold, zero=False, one=False)
    learner = SelfTrainingClassifier(clone(estimator), threshold=threshold)
    return learner.fit(items, target)
