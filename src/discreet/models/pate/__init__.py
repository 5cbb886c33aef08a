"""PATE: an ensemble of teachers labels public items with a privacy guarantee.

Each teacher is trained on the records of some of the people. Teachers vote on public items, noisy
winners are published as labels, and a student is trained on them. Each privacy level can have its
own budget.
"""

import discreet.models._charging  # noqa: F401 - first: it names what is missing
from discreet.models.pate._data_dependent_cost import data_dependent_cost
from discreet.models.pate._tune_aggregator import (
    expected_label_quality,
    simulate_votes,
    tune_aggregator,
)
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.classifier import LabelRelease, PATEClassifier, train_student
from discreet.models.pate.label_plan import (
    LabelPlan,
    expected_label_ratio,
    plan_labels,
    vote_weights,
)
from discreet.models.pate.staged_plan import plan_stages, plan_turns
from discreet.models.pate.teacher_assignment import (
    TeacherAssignment,
    assign_hybrid,
    assign_upsampling,
    assign_weighting,
    count_votes,
)

__all__ = [
    "ConfidentGNMax",
    "LabelPlan",
    "LabelRelease",
    "PATEClassifier",
    "TeacherAssignment",
    "assign_hybrid",
    "assign_upsampling",
    "assign_weighting",
    "count_votes",
    "data_dependent_cost",
    "expected_label_quality",
    "expected_label_ratio",
    "plan_labels",
    "plan_stages",
    "plan_turns",
    "simulate_votes",
    "train_student",
    "tune_aggregator",
    "vote_weights",
]
