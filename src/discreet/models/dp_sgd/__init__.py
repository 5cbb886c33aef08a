"""Private convex learning by gradient descent (DP-SGD).

Noise is added to exact integer sums of clipped gradients, and the cost of a run is computed from
its exact events.
"""

import discreet.models._charging  # noqa: F401 - first: it names what is missing
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd._output_perturbation import OutputPerturbation, output_perturbation
from discreet.models.dp_sgd.convergence import ConvergenceProblem
from discreet.models.dp_sgd.estimators import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.dp_sgd.laplace_gradient_descent import LaplaceGradientDescent, laplace_descent
from discreet.models.dp_sgd.losses import Huber, Logistic, Loss, Softmax, Squared, check_objective
from discreet.models.dp_sgd.noisy_gradient_descent import NoisyGradientDescent, noisy_descent
from discreet.models.dp_sgd.output_perturbation_logistic import OutputPerturbationLogisticRegression
from discreet.models.dp_sgd.personalized import PersonalizedLogisticRegression
from discreet.models.dp_sgd.schedule_analysis import ScheduleAnalysis, analyze_schedule

__all__ = [
    "ConvergenceProblem",
    "Huber",
    "LaplaceGradientDescent",
    "Logistic",
    "Loss",
    "NoisyGradientDescent",
    "OutputPerturbation",
    "OutputPerturbationLogisticRegression",
    "PersonalizedLogisticRegression",
    "PowerSchedule",
    "PrivateHuberRegressor",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "ScheduleAnalysis",
    "Softmax",
    "Squared",
    "analyze_schedule",
    "check_objective",
    "laplace_descent",
    "noisy_descent",
    "output_perturbation",
]
