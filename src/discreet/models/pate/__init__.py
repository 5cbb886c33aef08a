"""Private aggregation of teacher ensembles, with a budget for each level of data owners."""

import discreet.models._model_inputs  # noqa: F401 - first: it names what is missing
from discreet.models.pate._data_dependent_cost import diagnose
from discreet.models.pate._tune_aggregator import expected, search_rule, simulate_votes
from discreet.models.pate.aggregators import Confident
from discreet.models.pate.classifier import Labels, PrivateEnsemble, train_student
from discreet.models.pate.label_plan import LabelPlan, label_law, plan_labels, sensitivities
from discreet.models.pate.staged_plan import plan_stages, plan_turns
from discreet.models.pate.teacher_assignment import (
    Assignment,
    counted,
    hybrid,
    upsampling,
    weighting,
)

__all__ = [
    "Assignment",
    "Confident",
    "LabelPlan",
    "Labels",
    "PrivateEnsemble",
    "counted",
    "diagnose",
    "expected",
    "hybrid",
    "label_law",
    "plan_labels",
    "plan_stages",
    "plan_turns",
    "search_rule",
    "sensitivities",
    "simulate_votes",
    "train_student",
    "upsampling",
    "weighting",
]
