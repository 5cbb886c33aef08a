"""Private convex learning by gradient descent, in the style of scikit-learn.

Noise is added to exact sums of clipped gradients, in whole numbers; the cost of a run is computed
from its exact events.
"""

from discreet.models.sgd.classifier import PrivateLogisticRegression
from discreet.models.sgd.objectives import Huber, Logistic, Objective, Softmax, Squared, faults
from discreet.models.sgd.regressors import PrivateHuberRegressor, PrivateRidge

__all__ = [
    "Huber",
    "Logistic",
    "Objective",
    "PrivateHuberRegressor",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "Softmax",
    "Squared",
    "faults",
]
