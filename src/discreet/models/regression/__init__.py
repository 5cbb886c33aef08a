"""Private linear regression: noisy moments on a grid, and what is fitted from them."""

import discreet.models._model_inputs  # noqa: F401 - first: it names what is missing
from discreet.models.regression._row_lattice import Lattice, RowMap, Sums, sums
from discreet.models.regression._row_mapping import Scaling
from discreet.models.regression.auto import BestLinearRegression, Choice, choose
from discreet.models.regression.linear_regression import PrivateLinearRegression
from discreet.models.regression.ssp_and_adassp import (
    Solution,
    adassp,
    penalised,
    psd,
    select_features,
    shrunken,
    ssp,
)
from discreet.models.regression.sufficient_statistics import (
    MomentsPlan,
    PrivateMoments,
    plan_moments,
)

__all__ = [
    "BestLinearRegression",
    "Choice",
    "Lattice",
    "MomentsPlan",
    "PrivateLinearRegression",
    "PrivateMoments",
    "RowMap",
    "Scaling",
    "Solution",
    "Sums",
    "adassp",
    "choose",
    "penalised",
    "plan_moments",
    "psd",
    "select_features",
    "shrunken",
    "ssp",
    "sums",
]
