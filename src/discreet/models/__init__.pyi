from discreet.models import blackbox as blackbox
from discreet.models import dp_sgd as dp_sgd
from discreet.models import glm as glm
from discreet.models import pate as pate
from discreet.models import regression as regression
from discreet.models._declared_columns import DeclaredColumns as DeclaredColumns
from discreet.models._inference_table import InferenceTable as InferenceTable
from discreet.models.dp_sgd import (
    OutputPerturbationLogisticRegression as OutputPerturbationLogisticRegression,
)
from discreet.models.dp_sgd import PersonalizedLogisticRegression as PersonalizedLogisticRegression
from discreet.models.dp_sgd import PrivateHuberRegressor as PrivateHuberRegressor
from discreet.models.dp_sgd import PrivateLogisticRegression as PrivateLogisticRegression
from discreet.models.dp_sgd import PrivateRidge as PrivateRidge
from discreet.models.glm import PrivateLogit as PrivateLogit
from discreet.models.glm import PrivatePoisson as PrivatePoisson
from discreet.models.pate import PATEClassifier as PATEClassifier
from discreet.models.regression import AutoLinearRegression as AutoLinearRegression
from discreet.models.regression import PrivateLinearRegression as PrivateLinearRegression

__all__ = [
    "AutoLinearRegression",
    "DeclaredColumns",
    "InferenceTable",
    "OutputPerturbationLogisticRegression",
    "PATEClassifier",
    "PersonalizedLogisticRegression",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateLogit",
    "PrivatePoisson",
    "PrivateRidge",
    "blackbox",
    "dp_sgd",
    "glm",
    "pate",
    "regression",
]
