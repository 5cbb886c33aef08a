from discreet.models import blackbox, dp_sgd, pate, regression
from discreet.models.dp_sgd import (
    OutputPerturbationLogisticRegression,
    PersonalizedLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.pate import PATEClassifier
from discreet.models.regression import AutoLinearRegression, PrivateLinearRegression

__all__ = [
    "AutoLinearRegression",
    "OutputPerturbationLogisticRegression",
    "PATEClassifier",
    "PersonalizedLogisticRegression",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "blackbox",
    "dp_sgd",
    "pate",
    "regression",
]
