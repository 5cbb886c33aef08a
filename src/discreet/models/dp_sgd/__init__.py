"""Private convex learning by gradient descent, in the style of scikit-learn.

Noise is added to exact sums of clipped gradients, in whole numbers; the cost of a run is computed
from its exact events.
"""

import discreet.models.extra  # noqa: F401 - first: it names what is missing
from discreet.models.sgd.analysis import Analysis, analyse
from discreet.models.sgd.classifier import PrivateLogisticRegression
from discreet.models.sgd.convergence import Problem
from discreet.models.sgd.full_batch import NoisyDescent, noisy_descent
from discreet.models.sgd.laplace_steps import LaplaceDescent, laplace_descent
from discreet.models.sgd.objectives import Huber, Logistic, Objective, Softmax, Squared, faults
from discreet.models.sgd.personal_classifier import PersonalLogisticRegression
from discreet.models.sgd.perturbed import OutputPerturbation, output_perturbation
from discreet.models.sgd.perturbed_logistic import PerturbedLogisticRegression
from discreet.models.sgd.regressors import PrivateHuberRegressor, PrivateRidge
from discreet.models.sgd.schedule import PowerSchedule

__all__ = [
    "Analysis",
    "Huber",
    "LaplaceDescent",
    "Logistic",
    "NoisyDescent",
    "Objective",
    "OutputPerturbation",
    "PersonalLogisticRegression",
    "PerturbedLogisticRegression",
    "PowerSchedule",
    "PrivateHuberRegressor",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "Problem",
    "Softmax",
    "Squared",
    "analyse",
    "faults",
    "laplace_descent",
    "noisy_descent",
    "output_perturbation",
]
