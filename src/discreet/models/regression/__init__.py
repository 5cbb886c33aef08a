"""Private linear regression from noisy sufficient statistics.

One release of noisy moments serves every model that is fitted from it. Everything after the release
is post-processing.
"""

import discreet.models._charging  # noqa: F401 - first: it names what is missing
from discreet.models.regression._row_lattice import MomentSums, RowLattice, RowMap, sum_moments
from discreet.models.regression._row_mapping import ColumnScaling
from discreet.models.regression.auto import AutoLinearRegression, MethodChoice, choose_method
from discreet.models.regression.linear_regression import PrivateLinearRegression
from discreet.models.regression.ssp_and_adassp import (
    Coefficients,
    adassp,
    project_psd,
    ridge,
    select_features,
    shrink,
    ssp,
)
from discreet.models.regression.sufficient_statistics import (
    NoisySufficientStatistics,
    SufficientStatisticsPlan,
    plan_sufficient_statistics,
)

__all__ = [
    "AutoLinearRegression",
    "Coefficients",
    "ColumnScaling",
    "MethodChoice",
    "MomentSums",
    "NoisySufficientStatistics",
    "PrivateLinearRegression",
    "RowLattice",
    "RowMap",
    "SufficientStatisticsPlan",
    "adassp",
    "choose_method",
    "plan_sufficient_statistics",
    "project_psd",
    "ridge",
    "select_features",
    "shrink",
    "ssp",
    "sum_moments",
]
