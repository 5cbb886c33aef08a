"""Private aggregation of teacher ensembles, with a budget for each level of data owners."""

import discreet.models.extra  # noqa: F401 - first: it names what is missing
from discreet.models.pate.aggregate import Confident
from discreet.models.pate.assignment import Assignment, counted, hybrid, upsampling, weighting
from discreet.models.pate.calibrate import label_law, sensitivities
from discreet.models.pate.costs import diagnose
from discreet.models.pate.ensemble import Labels, PrivateEnsemble
from discreet.models.pate.plan import LabelPlan, plan_labels
from discreet.models.pate.search import expected, search_rule
from discreet.models.pate.simulate import simulate_votes
from discreet.models.pate.staged import plan_stages, plan_turns
from discreet.models.pate.student import train_student

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
