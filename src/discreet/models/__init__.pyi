from discreet.models import learned, pate, regression, sgd
from discreet.models.pate import PrivateEnsemble
from discreet.models.regression import BestLinearRegression, PrivateLinearRegression
from discreet.models.sgd import (
    PersonalLogisticRegression,
    PerturbedLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)

__all__ = [
    "BestLinearRegression",
    "PersonalLogisticRegression",
    "PerturbedLogisticRegression",
    "PrivateEnsemble",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "learned",
    "pate",
    "regression",
    "sgd",
]
