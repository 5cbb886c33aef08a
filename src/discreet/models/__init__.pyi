from discreet.models import blackbox as learned
from discreet.models import dp_sgd as sgd
from discreet.models import pate, regression
from discreet.models.dp_sgd import (
    PersonalLogisticRegression,
    PerturbedLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.pate import PrivateEnsemble
from discreet.models.regression import BestLinearRegression, PrivateLinearRegression

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
