"""Private convex learning by gradient descent, in the style of scikit-learn.

Noise is added to exact sums of clipped gradients, in whole numbers; the cost of a run is computed
from its exact events.
"""

import discreet.models._model_inputs  # noqa: F401 - first: it names what is missing
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd.convergence import Problem
from discreet.models.dp_sgd.estimators import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.dp_sgd.laplace_gradient_descent import LaplaceDescent, laplace_descent
from discreet.models.dp_sgd.losses import Huber, Logistic, Objective, Softmax, Squared, faults
from discreet.models.dp_sgd.noisy_gradient_descent import NoisyDescent, noisy_descent
from discreet.models.dp_sgd._output_perturbation import OutputPerturbation, output_perturbation
from discreet.models.dp_sgd.output_perturbation_logistic import PerturbedLogisticRegression
from discreet.models.dp_sgd.personalized import PersonalLogisticRegression
from discreet.models.dp_sgd.schedule_analysis import Analysis, analyse

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
