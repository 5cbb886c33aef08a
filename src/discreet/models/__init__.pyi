from discreet.models import blackbox as learned
from discreet.models import dp_sgd as sgd
from discreet.models import pate, regression
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
    "PersonalizedLogisticRegression",
    "OutputPerturbationLogisticRegression",
    "PATEClassifier",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "learned",
    "pate",
    "regression",
    "sgd",
]
